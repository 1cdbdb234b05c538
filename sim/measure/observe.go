// Package measure derives figures from runs of any backend: distributions, per-job times, storage latencies,
// comparisons with measured times, sweeps. Each figure is an [Observer] that adds a section to the result.
package measure

import (
	"github.com/tracedag/tracedag/sim"
)

// Observer follows a run and adds to its result.
type Observer interface {
	sim.Timeline
	Finish(r *sim.Result)
}

// Run runs a replay with observers, which add to the result in order. An error of the run takes precedence over one of
// the timeline.
func Run(replay sim.Replay, o sim.RunOptions, observers ...Observer) (*sim.Result, error) {
	switch {
	case len(observers) == 1 && o.Timeline == nil:
		o.Timeline = observers[0]
	case len(observers) > 0:
		o.Timeline = &fanOut{observers: observers, next: o.Timeline}
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
}

func (a *fanOut) Begin(l *sim.Layout) {
	for _, o := range a.observers {
		o.Begin(l)
	}
	if a.next != nil {
		a.next.Begin(l)
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

func (a *fanOut) Mark(at uint64, text string) {
	if network, ok := a.next.(sim.NetworkTimeline); ok {
		network.Mark(at, text)
	}
}

func (a *fanOut) Counter(at uint64, name, unit string, value float64) {
	if network, ok := a.next.(sim.NetworkTimeline); ok {
		network.Counter(at, name, unit, value)
	}
}

func (a *fanOut) End() error {
	if a.next == nil {
		return nil
	}
	return a.next.End()
}
