// This file decides what VEF cannot say: of an op that does not wait for one event alone, or for a receive that may end
// later than its message arrives, the record waits for the event that was last on the ideal timeline, so long that the
// op starts there when it should.

package vef

import (
	"fmt"

	"github.com/tracedag/tracedag/dag"
	"github.com/tracedag/tracedag/sim/ideal"
)

// settle replays the trace on the ideal timeline, matches its messages, and replaces unclear events.
func (p *plan) settle() error {
	timeline, err := ideal.Run(p.t)
	if err != nil {
		return err
	}
	if result := timeline.Result; !result.Complete {
		if len(result.Stuck) == 0 {
			return fmt.Errorf("the trace does not run to its end: %s", result.Aborted)
		}
		stuck := result.Stuck[0]
		return fmt.Errorf("the trace does not run to its end: rank %d op %d (%s) waits for %s", stuck.Rank, stuck.Op,
			stuck.Kind, stuck.Waits)
	}
	if !p.matched {
		p.sender = make([]uint32, p.first[len(p.t.Ranks)])
	}
	for rank := range p.t.Ranks {
		s := settler{plan: p.newRankPlan(rank), timeline: timeline}
		r := s.plan.r
		for op, kind := range r.Kind {
			if kind == dag.Recv && p.sender != nil {
				from, send, _ := timeline.Sender(rank, op)
				p.sender[p.first[rank]+op] = uint32(p.first[from] + send)
			}
			if s.plan.waits[op].event == unclear && recorded(r, op) {
				s.settle(op)
			}
		}
	}
	return nil
}

// settler settles the ops of one rank.
type settler struct {
	plan     *rankPlan
	timeline *ideal.Timeline
	decided  []int32 // for ops that were looked at: the event that decided when each started, plus 3; else 0
	path     []int32
}

func (s *settler) settle(op int) {
	event := s.decider(op)
	start := s.timeline.Start(s.plan.rank, op)
	if event != origin {
		start -= s.eventTime(int(event))
	}
	s.plan.waits[op].event, s.plan.waits[op].delay = event, start
}

// eventTime returns when the event of op i happened.
func (s *settler) eventTime(i int) dag.Time {
	if s.plan.r.Kind[i] == dag.Recv {
		return s.arrival(i)
	}
	return s.timeline.End(s.plan.rank, i)
}

func (s *settler) arrival(recv int) dag.Time {
	rank, send, _ := s.timeline.Sender(s.plan.rank, recv)
	return s.timeline.Start(rank, send)
}

// decider returns the event that decided when op i started: the last one that it waited for, through calcs, and through
// receives whose message had arrived before.
func (s *settler) decider(i int) int32 {
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

// last returns the op whose end, or else whose start, op i waited for last, -1 for the start of the trace.
func (s *settler) last(i int) (op int, ended bool) {
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

// happens reports whether the end, or else the start, of op i is an event.
func (s *settler) happens(i int, end bool) bool {
	if !end {
		return s.plan.r.Kind[i] == dag.Send
	}
	if s.plan.r.Kind[i] == dag.Recv {
		return s.arrival(i) >= s.timeline.Start(s.plan.rank, i)
	}
	return s.plan.communicates(i)
}
