// This file makes the ranks of a job that have no files from those that have.

package kineto

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"slices"

	"github.com/tracedag/tracedag/dag"
	"github.com/tracedag/tracedag/formats/format"
	"github.com/tracedag/tracedag/memory"
	"github.com/tracedag/tracedag/param"
)

// tiling is how the groups like a group of a present rank divide the job: rank q is at position q/stride modulo size of
// the group that begins with q - position*stride.
type tiling struct{ stride, size int32 }

func (t tiling) position(q int32) int32 { return q / t.stride % t.size }

func (t tiling) member(q, position int32) int32 { return q + (position-t.position(q))*t.stride }

// tilingOf returns the tiling of a group of a rank of the job.
func (j *job) tilingOf(r *rank, g *group) (tiling, error) {
	if g.unknown || g.members == nil {
		return tiling{1, int32(j.world)}, nil
	}
	t := tiling{1, int32(len(g.members))}
	if t.size > 1 {
		t.stride = g.members[1] - g.members[0]
	}
	fits := t.stride > 0 && int64(j.world)%(int64(t.stride)*int64(t.size)) == 0 && slices.Contains(g.members, r.global)
	for i := 0; fits && i < len(g.members); i++ {
		fits = g.members[i] == t.member(r.global, int32(i))
	}
	if !fits {
		return t, format.FileErrorf(r.name, "--replicate: group %q: its ranks %v do not divide the %d ranks of the "+
			"job into equal groups", g.name, abbreviatedRanks(g.members), j.world)
	}
	return t, nil
}

// abbreviatedRanks returns the first ranks of a list.
func abbreviatedRanks(ranks []int32) []int32 { return ranks[:min(len(ranks), 8)] }

// replicate adds the ranks without files: each is a copy of the present rank whose positions in its groups are closest.
func (j *job) replicate() error {
	if len(j.ranks) == j.world {
		return nil
	}
	if err := memory.CheckRanks(j.o.ctx, int64(j.world)); err != nil {
		return err
	}
	present := slices.Clone(j.ranks)
	tilings := make([][]tiling, len(present))
	uneven := int64(0)
	for i := range present {
		t := present[i].talk
		for k := range t.groups {
			tile, err := j.tilingOf(&present[i], &t.groups[k])
			if err != nil {
				return err
			}
			tilings[i] = append(tilings[i], tile)
		}
		for k := range t.list {
			if c := &t.list[k]; c.op == collective(dag.Alltoallv) {
				c.op, c.recv, c.uneven, c.counts = collective(dag.Alltoall), c.bytes, false, nil
				uneven++
			}
		}
	}
	if err := j.checkStragglers(); err != nil {
		return err
	}
	for q := range int32(j.world) {
		if j.rankOf(q) >= 0 {
			continue
		}
		best, least := 0, int64(-1)
		for i := range present {
			distance := int64(0)
			for _, t := range tilings[i] {
				d := int64(t.position(q)) - int64(t.position(present[i].global))
				distance += max(d, -d)
			}
			if least < 0 || distance < least {
				best, least = i, distance
			}
		}
		made := present[best].copyTo(q, tilings[best])
		made.vary = j.o.own.variationOf(q)
		j.ranks = append(j.ranks, made)
	}
	slices.SortFunc(j.ranks, func(a, b rank) int { return cmp.Compare(a.global, b.global) })
	for i := range j.ranks {
		j.index[j.ranks[i].global] = int32(i)
	}
	times := "the same times"
	if own := j.o.own; own.Jitter > 0 || len(own.factors) > 0 {
		times = fmt.Sprintf("computation that varies by %v of itself and takes longer on %d stragglers", own.Jitter,
			len(own.factors))
	}
	j.o.warn("%s: --replicate: %d of the %d ranks are copies of those with files, with %s, and with process groups "+
		"that divide the job like theirs; %d all-to-alls of uneven sizes become even", present[0].name,
		j.world-len(present), j.world, times, uneven)
	return nil
}

// checkStragglers returns an error if a straggler is not a rank that replicate makes.
func (j *job) checkStragglers() error {
	for _, q := range slices.Sorted(maps.Keys(j.o.own.factors)) {
		switch {
		case int64(q) >= int64(j.world):
			return param.Errorf("straggler", "expected a rank below %d, the size of the job, found %d", j.world, q)
		case j.rankOf(q) >= 0:
			return param.Errorf("straggler", "rank %d has a file with the times of its computation; name a "+
				"rank that --replicate makes", q)
		}
	}
	return nil
}

// variation makes the computation of a rank differ from that of its original.
type variation struct {
	random *rand.Rand
	jitter float64
	factor float64
}

// variationOf returns the variation of a rank made by --replicate, or nil.
func (o *Options) variationOf(rank int32) *variation {
	factor, straggler := o.factors[rank]
	if !straggler {
		factor = 1
	}
	if o.Jitter == 0 && factor == 1 {
		return nil
	}
	return &variation{rand.New(rand.NewPCG(uint64(o.Seed), uint64(rank))), o.Jitter, factor}
}

// varies reports whether the computation of ranks differs from that of their originals. Their communications then start
// in the recorded order, as NCCL requires of communicators that share GPUs: otherwise ranks could enter two collectives
// in different orders and wait for each other.
func (j *job) varies() bool {
	return j.o.own.Replicate && (j.o.own.Jitter > 0 || len(j.o.own.factors) > 0)
}

// apply changes the duration of a calc. A calc that varies has no recorded times.
func (v *variation) apply(op *dag.Op) {
	if v == nil {
		return
	}
	factor := v.factor * max(0, 1+v.jitter*v.random.NormFloat64())
	longer := float64(op.Duration) * factor
	op.Duration = dag.Time(math.Round(min(longer, math.MaxInt64/2)))
	op.Timed, op.MeasuredStart, op.MeasuredEnd = false, 0, 0
}

// copyTo returns a copy of the rank as another rank of the job.
func (r *rank) copyTo(q int32, tilings []tiling) rank {
	t := *r.talk
	t.list, t.groups = slices.Clone(t.list), slices.Clone(t.groups)
	for k := range t.groups {
		if g := &t.groups[k]; g.members != nil {
			members := make([]int32, len(g.members))
			for i := range members {
				members[i] = tilings[k].member(q, int32(i))
			}
			g.members = members
		}
	}
	for k := range t.list {
		c := &t.list[k]
		if c.peer < 0 {
			continue
		}
		tile := tilings[c.group]
		at := tile.position(q) + tile.position(c.peer) - tile.position(r.global)
		if c.peer = -1; at >= 0 && at < tile.size {
			c.peer = tile.member(q, at)
		}
	}
	return rank{recording: r.recording, global: q, talk: &t, waits: r.waits, offset: r.offset}
}
