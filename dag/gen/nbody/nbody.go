// Package nbody generates traces of a simulation of bodies that all attract each other: in each step the bodies of
// every rank pass around a ring, and each rank computes the forces of passing bodies upon its own.
//
// docs/reference/generators/nbody.md defines the model.
package nbody

import (
	"fmt"
	"math"
	"math/bits"

	"github.com/tracedag/tracedag/dag"
	"github.com/tracedag/tracedag/dag/gen/rankwise"
)

// Params describe a run.
type Params struct {
	Ranks       int      // 1..2^24
	Bodies      int64    // of a rank: 0..2^24
	BodyBytes   int64    // message bytes per body: 0..2^14
	Interaction dag.Time // computation of the force of a body upon another: 0 or more
	Update      dag.Time // computation of the new place of a body, after a step: 0 or more
	Steps       int      // 1 or more
}

// Default returns 16 ranks with 4096 bodies of 32 bytes each: three coordinates and a mass.
func Default() Params {
	return Params{
		Ranks: 16, Bodies: 4096, BodyBytes: 32, Interaction: 2 * dag.Nanosecond, Update: 10 * dag.Nanosecond, Steps: 3,
	}
}

// Limits that keep sizes and counts in range.
const (
	maxRanks     = 1 << 24
	maxBodies    = 1 << 24
	maxBodyBytes = 1 << 14
	maxOps       = 1 << 30 // of a rank
)

// NewSource returns the trace of a run.
func NewSource(p Params) (*rankwise.Source, error) {
	if err := p.check(); err != nil {
		return nil, fmt.Errorf("nbody: %w", err)
	}
	ops := (3*int64(p.Ranks) - 1) * int64(p.Steps) // a force, a send and a receive per hop; no last message
	s, err := rankwise.NewSource(rankwise.Model{
		Title: fmt.Sprintf("nbody, %d ranks, %d bodies each, %d steps", p.Ranks, p.Bodies, p.Steps),
		Ranks: p.Ranks,
		Kinds: []dag.Kind{dag.Calc, dag.Send, dag.Recv},
		Steps: p.Steps,
		Count: func(int) (int64, int64) { return ops, 3 * ops },
		Fill:  p.fill,
	})
	if err != nil {
		return nil, fmt.Errorf("nbody: %w", err)
	}
	return s, nil
}

func (p *Params) check() error {
	switch {
	case p.Ranks < 1 || p.Ranks > maxRanks:
		return fmt.Errorf("ranks is %d, expected 1..%d", p.Ranks, maxRanks)
	case p.Bodies < 0 || p.Bodies > maxBodies:
		return fmt.Errorf("bodies is %d, expected 0..%d", p.Bodies, maxBodies)
	case p.BodyBytes < 0 || p.BodyBytes > maxBodyBytes:
		return fmt.Errorf("body bytes is %d, expected 0..%d", p.BodyBytes, maxBodyBytes)
	case p.Interaction < 0 || tooLong(p.Bodies*p.Bodies, p.Interaction):
		return fmt.Errorf("interaction time is %v, expected 0 or more and computations of at most %v", p.Interaction,
			dag.MaxTime)
	case p.Update < 0 || tooLong(p.Bodies, p.Update):
		return fmt.Errorf("update time is %v, expected 0 or more and computations of at most %v", p.Update, dag.MaxTime)
	case p.Steps < 1 || p.Steps > maxOps/(3*p.Ranks):
		return fmt.Errorf("steps is %d, expected 1..%d", p.Steps, maxOps/(3*p.Ranks))
	}
	return nil
}

// tooLong reports whether n times t exceeds the range of times.
func tooLong(n int64, t dag.Time) bool {
	hi, lo := bits.Mul64(uint64(n), uint64(t))
	return hi > 0 || lo > math.MaxInt64
}

// fill appends the ops of a rank. It has two buffers for passing bodies, one of them with a copy of its own at first:
// while it computes with the bodies of one buffer it sends them on, and receives the next ones into the other.
func (p *Params) fill(rank int, b *dag.RankBuilder) {
	next, previous := int32((rank+1)%p.Ranks), int32((rank-1+p.Ranks)%p.Ranks)
	bytes := p.Bodies * p.BodyBytes
	forces := dag.Time(p.Bodies*p.Bodies) * p.Interaction
	update := none
	for step := range p.Steps {
		b.Step(int32(step + 1))
		// Ops after which the current bodies have arrived, and after which the other buffer is free.
		there, sent, computed := update, none, none
		for shift := range p.Ranks {
			received := none
			if shift < p.Ranks-1 {
				send := b.Send(next, bytes, 0)
				require(b, send, there)
				received = b.Recv(previous, bytes, 0)
				require(b, received, there)
				require(b, received, sent)
				require(b, received, computed)
				sent = send
			}
			calc := b.Calc(forces)
			require(b, calc, there)
			require(b, calc, computed)
			there, computed = received, calc
		}
		update = b.Calc(dag.Time(p.Bodies) * p.Update)
		require(b, update, computed)
		require(b, update, sent)
	}
}

// none is the index of no op.
const none = -1

func require(b *dag.RankBuilder, op, on int) {
	if on != none {
		b.Requires(op, on)
	}
}
