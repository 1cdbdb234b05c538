// This file approximates dependencies that VEF cannot express. If an op does not wait for a single event, or waits
// for a receive that may end after the arrival of its message, its record waits for the event that was last on the
// ideal timeline, with a delay that preserves the op's start there.

package vef

import (
	"fmt"

	"github.com/tracedag/tracedag/dag"
	"github.com/tracedag/tracedag/sim/ideal"
)

// resolveTiming replays the trace on the ideal timeline, matches its messages, and replaces unclear events.
func (p *plan) resolveTiming() error {
	timeline, err := ideal.Run(p.t)
	if err != nil {
		return err
	}
	if result := timeline.Result; !result.Complete {
		if len(result.Stuck) == 0 {
			return fmt.Errorf("the trace does not complete: %s", result.Aborted)
		}
		stuck := result.Stuck[0]
		return fmt.Errorf("the trace is stuck: rank %d, op %d (%s) waits for %s", stuck.Rank, stuck.Op,
			stuck.Kind, stuck.Waits)
	}
	if !p.matched {
		p.sender = make([]uint32, p.first[len(p.t.Ranks)])
	}
	for rank := range p.t.Ranks {
		s := timingResolver{plan: p.newRankPlan(rank), timeline: timeline}
		r := s.plan.r
		for op, kind := range r.Kind {
			if kind == dag.Recv && p.sender != nil {
				from, send, _ := timeline.Sender(rank, op)
				p.sender[p.first[rank]+op] = uint32(p.first[from] + send)
			}
			if s.plan.waits[op].event == unclear && recorded(r, op) {
				s.resolveTiming(op)
			}
		}
	}
	return nil
}

// timingResolver resolves the ops of one rank.
type timingResolver struct {
	plan     *rankPlan
	timeline *ideal.Timeline
	decided  []int32 // for visited ops: the event that determined the op's start, plus 3; else 0
	path     []int32
}

func (s *timingResolver) resolveTiming(op int) {
	event := s.decider(op)
	start := s.timeline.Start(s.plan.rank, op)
	if event != origin {
		start -= s.eventTime(int(event))
	}
	s.plan.waits[op].event, s.plan.waits[op].delay = event, start
}

// eventTime returns the time of op i's event.
func (s *timingResolver) eventTime(i int) dag.Time {
	if s.plan.r.Kind[i] == dag.Recv {
		return s.arrival(i)
	}
	return s.timeline.End(s.plan.rank, i)
}

func (s *timingResolver) arrival(recv int) dag.Time {
	rank, send, _ := s.timeline.Sender(s.plan.rank, recv)
	return s.timeline.Start(rank, send)
}

// decider returns the event that determined the start of op i: the latest one it waited for, through calcs and
// through receives whose message arrived earlier.
func (s *timingResolver) decider(i int) int32 {
	if s.decided == nil {
		s.decided = make([]int32, s.plan.r.Len())
	}
	s.path = s.path[:0]
	event := int32(0)
	for {
		if known := s.decided[i]; known != 0 {
			event = known - 3
			break
		}
		s.path = append(s.path, int32(i))
		last, ended := s.last(i)
		if last < 0 {
			event = origin
			break
		}
		if s.happens(last, ended) {
			event = int32(last)
			break
		}
		i = last
	}
	for _, op := range s.path {
		s.decided[op] = event + 3
	}
	return event
}

// last returns the op whose end or start op i waited for last, or -1 for the start of the trace.
func (s *timingResolver) last(i int) (op int, ended bool) {
	r, rank := s.plan.r, s.plan.rank
	op, latest := -1, r.Release.At(i)
	for _, off := range r.Deps.Of(i) {
		on := i - int(off)
		if t := s.timeline.End(rank, on); t > latest || op < 0 && t == latest {
			op, latest, ended = on, t, true
		}
	}
	for _, off := range r.StartDeps.Of(i) {
		on := i - int(off)
		if t := s.timeline.Start(rank, on); t > latest || op < 0 && t == latest {
			op, latest, ended = on, t, false
		}
	}
	return op, ended
}

// happens reports whether the end (or the start) of op i is an event.
func (s *timingResolver) happens(i int, end bool) bool {
	if !end {
		return s.plan.r.Kind[i] == dag.Send
	}
	if s.plan.r.Kind[i] == dag.Recv {
		return s.arrival(i) >= s.timeline.Start(s.plan.rank, i)
	}
	return s.plan.communicates(i)
}
