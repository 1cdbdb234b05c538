// Package measure derives figures from runs of any backend: distributions, per-job times, storage latencies,
// comparisons with measured times, sweeps. Each figure is an [Observer] that adds a section to the result.
package measure

import (
	"github.com/tracedag/tracedag/sim"
)

// Observer follows a run and adds to its result. Backends with timelines call the methods of [sim.Timeline]. Other
// backends call OpEnded, or record the times of all ops in the result.
type Observer interface {
	sim.Timeline
	OpEnded(rank, op int, issued, ended uint64)
	Finish(r *sim.Result)
}

// Run runs a replay with observers, which add to the result in order. An error of the run takes precedence over one of
// the timeline.
func Run(replay sim.Replay, o sim.RunOptions, observers ...Observer) (*sim.Result, error) {
	if len(observers) > 0 {
		all := &fanOut{observers: observers, next: o.Timeline, opEnded: o.OpEnded}
		o.Timeline, o.OpEnded = all, all.ended
	}
	r, err := replay.Run(o)
	if err != nil {
		return r, err
	}
	for _, observer := range observers {
		observer.Finish(r)
	}
	return r, nil
}

// fanOut forwards a run to observers and to the caller's timeline.
type fanOut struct {
	observers []Observer
	next      sim.Timeline // the caller's timeline; nil: none
	opEnded   sim.OpEnded
}

func (a *fanOut) Begin(p *sim.Program) {
	for _, o := range a.observers {
		o.Begin(p)
	}
	if a.next != nil {
		a.next.Begin(p)
	}
}

func (a *fanOut) Span(s sim.Span) {
	for _, o := range a.observers {
		o.Span(s)
	}
	if a.next != nil {
		a.next.Span(s)
	}
}

func (a *fanOut) Transfer(t sim.Transfer) {
	for _, o := range a.observers {
		o.Transfer(t)
	}
	if a.next != nil {
		a.next.Transfer(t)
	}
}

func (a *fanOut) End() error {
	if a.next == nil {
		return nil
	}
	return a.next.End()
}

func (a *fanOut) ended(rank, op int, issued, ended uint64) {
	for _, o := range a.observers {
		o.OpEnded(rank, op, issued, ended)
	}
	if a.opEnded != nil {
		a.opEnded(rank, op, issued, ended)
	}
}
