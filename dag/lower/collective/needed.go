package collective

import (
	"context"

	"github.com/tracedag/tracedag/dag"
)

// Selection selects the collectives to lower.
type Selection struct {
	Kinds  func(dag.Subkind) bool // kinds of which all are lowered; nil: none
	Uneven func(dag.Subkind) bool // other kinds, of which those with blocks of different sizes are lowered; nil: none
	Nodes  []int32                // node of each rank; nil: those of the trace
}

// None reports whether the selection selects nothing of any trace.
func (s Selection) None() bool {
	return s.Kinds == nil && s.Uneven == nil
}

// of returns whether collectives of a kind are lowered, and if so, whether only uneven ones are.
func (s Selection) of(kind dag.Subkind) (lowered, uneven bool) {
	if s.Kinds != nil && s.Kinds(kind) {
		return true, false
	}
	uneven = s.Uneven != nil && hasTable(kind) && s.Uneven(kind)
	return uneven, uneven
}

// Counts are the collective ops of a trace.
type Counts struct {
	Lowered [dag.NumSubkinds]int64 // by kind
	Kept    int64
}

// Total returns the number of lowered ops.
func (c *Counts) Total() (n int64) {
	for _, count := range c.Lowered {
		n += count
	}
	return n
}

// LowerNeeded is [LowerSource] restricted to the selected collectives; the others remain in the trace. It also returns
// the number of ops that it lowers. If that is 0, the result is s, and members of collectives need not agree.
func LowerNeeded(ctx context.Context, s dag.Source, choice Choice, needed Selection) (dag.Source, Counts, error) {
	var counts Counts
	if needed.None() {
		return s, counts, nil
	}
	some, err := hasAny(ctx, s, needed)
	if err != nil || !some {
		return s, counts, err
	}
	lowered, err := lowerSource(ctx, s, choice, needed)
	if err != nil {
		return nil, counts, err
	}
	l, ok := lowered.(*loweredSource)
	if !ok {
		return s, counts, nil
	}
	if counts = l.in.counts(); counts.Total() == 0 {
		return s, counts, nil
	}
	return l, counts, nil
}

// hasAny reports whether the trace has an op of a selected kind.
func hasAny(ctx context.Context, s dag.Source, needed Selection) (bool, error) {
	h, err := s.Header()
	if err != nil {
		return false, err
	}
	some := make([]bool, h.Ranks)
	none := func() struct{} { return struct{}{} }
	err = forEachRank(ctx, s, none, func(rank int, r *dag.Rank, _ struct{}) error {
		for i, kind := range r.Kind {
			if kind == dag.Coll {
				if lowered, _ := needed.of(r.Subkind.At(i)); lowered {
					some[rank] = true
					break
				}
			}
		}
		return nil
	})
	for _, has := range some {
		if has {
			return true, err
		}
	}
	return false, err
}

// counts counts the ops of all instances.
func (in *instances) counts() (c Counts) {
	for _, comm := range in.comms {
		if comm == nil {
			continue
		}
		for k := range comm.instances {
			inst := &comm.instances[k]
			if in.lowers(inst) {
				c.Lowered[inst.kind] += int64(comm.size)
			} else {
				c.Kept += int64(comm.size)
			}
		}
	}
	return c
}

// lowers reports whether an instance is lowered.
func (in *instances) lowers(inst *instance) bool {
	return in.lowered[inst.kind] && !inst.even
}

// keepEven marks the instances that are not lowered because their blocks are equal, or differ only as far as the
// number of members does not divide the total. Tables have prefix sums.
func (in *instances) keepEven() {
	for _, c := range in.comms {
		if c == nil {
			continue
		}
		for k := range c.instances {
			inst := &c.instances[k]
			if in.uneven[inst.kind] {
				inst.even = c.isEven(inst)
			}
		}
	}
}

// isEven reports whether the members of an instance have blocks as in an equal division of their total.
func (c *comm) isEven(inst *instance) bool {
	if inst.counted != 0 {
		return false
	}
	starts := c.table(inst)
	if starts == nil {
		return true
	}
	total := starts[c.size]
	for i := range c.size {
		if starts[i] != partStart(total, c.size, i) {
			return false
		}
	}
	return true
}
