package calibrate

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/tracedag/tracedag/dag"
	"github.com/tracedag/tracedag/dag/lower/collective"
	"github.com/tracedag/tracedag/sim/fit"
)

// use is a collective that a trace has.
type use struct {
	kind      dag.Subkind
	ranks     int
	bytes     int64 // as tables count them
	algorithm string
}

// Uncovered returns what the estimate of a file does not cover of the collectives of a trace: collectives, numbers of
// ranks and sizes that no measurement has, and those for which it found no algorithm, one text per collective and
// range, with the algorithms that choice selects. Only the kinds that lowered reports count.
func Uncovered(f *fit.File, t *dag.Trace, choice collective.Choice, lowered func(dag.Subkind) bool) (texts []string) {
	ranges := map[reason]*covered{}
	var order []reason
	for _, u := range usesOf(t, choice, lowered) {
		why := uncovered(f, u)
		if why == (reason{}) {
			continue
		}
		r := ranges[why]
		if r == nil {
			r = &covered{least: u, most: u}
			ranges[why], order = r, append(order, why)
		}
		r.least.bytes, r.most.bytes = min(r.least.bytes, u.bytes), max(r.most.bytes, u.bytes)
		r.least.ranks, r.most.ranks = min(r.least.ranks, u.ranks), max(r.most.ranks, u.ranks)
		if !slices.Contains(r.algorithms, u.algorithm) {
			r.algorithms = append(r.algorithms, u.algorithm)
		}
	}
	for _, why := range order {
		texts = append(texts, why.text(f, ranges[why]))
	}
	return texts
}

// usesOf returns the collectives of a trace once each, in the order of kinds, ranks and sizes.
func usesOf(t *dag.Trace, choice collective.Choice, lowered func(dag.Subkind) bool) (uses []use) {
	type instance struct{ comm, k int32 }
	largest := map[instance]int64{} // bytes of the member with most
	kinds := map[instance]dag.Subkind{}
	for _, r := range t.Ranks {
		next := map[int32]int32{}
		for i, kind := range r.Kind {
			if kind != dag.Coll || !lowered(r.Subkind.At(i)) {
				continue
			}
			comm := r.Comm.At(i)
			at := instance{comm, next[comm]}
			next[comm]++
			kinds[at], largest[at] = r.Subkind.At(i), max(largest[at], r.Bytes.At(i))
		}
	}
	known := map[use]bool{}
	for at, kind := range kinds {
		u := use{kind: kind, ranks: t.Comms[at.comm].Size(), bytes: largest[at]}
		if u.ranks < 2 {
			continue
		}
		g := group{kind: kind, ranks: u.ranks}
		if kind == dag.Alltoall || kind == dag.Scatter {
			u.bytes /= int64(u.ranks)
		}
		if kind == dag.Barrier {
			u.bytes = 0
		}
		u.algorithm = choice.Selected(kind, g.largest(u.bytes), u.ranks)
		known[u] = true
	}
	for u := range known {
		uses = append(uses, u)
	}
	slices.SortFunc(uses, func(a, b use) int {
		return cmp.Or(cmp.Compare(a.kind, b.kind), cmp.Compare(a.ranks, b.ranks), cmp.Compare(a.bytes, b.bytes))
	})
	return uses
}

// reason is why an estimate does not cover a collective; the zero value if it does.
type reason struct {
	kind dag.Subkind
	what lack
	none int // index of the range without an algorithm
}

// lack is what measurements lack.
type lack uint8

const (
	nothingLacks lack = iota
	allLacks
	ranksLack
	smallLack
	largeLack
	algorithmLacks
)

// covered are the collectives that a file does not cover for one reason.
type covered struct {
	least, most use
	algorithms  []string
}

// measuredOf returns the measured ranges of a collective: of sizes and ranks.
func measuredOf(f *fit.File, kind string) (from, to int64, fewest, most int, ok bool) {
	for _, c := range f.Choices {
		if c.Collective != kind {
			continue
		}
		if !ok {
			from, to, fewest, most, ok = c.From, c.To, c.Ranks, c.Ranks, true
		}
		from, to, fewest, most = min(from, c.From), max(to, c.To), min(fewest, c.Ranks), max(most, c.Ranks)
	}
	return from, to, fewest, most, ok
}

// uncovered returns why the estimate does not cover a collective.
func uncovered(f *fit.File, u use) reason {
	from, to, fewest, most, ok := measuredOf(f, u.kind.String())
	switch {
	case !ok:
		return reason{u.kind, allLacks, 0}
	case u.ranks < fewest || u.ranks > most:
		return reason{u.kind, ranksLack, 0}
	case u.bytes > to:
		return reason{u.kind, largeLack, 0}
	case u.bytes < from && u.bytes > 0:
		return reason{u.kind, smallLack, 0}
	}
	// Rules of a number of ranks reach up to the middle to its neighbors.
	nearest := func(c fit.Choice) float64 {
		return max(float64(c.Ranks)/float64(u.ranks), float64(u.ranks)/float64(c.Ranks))
	}
	best := -1
	for i, c := range f.Choices {
		if c.Collective == u.kind.String() && c.From <= u.bytes && u.bytes <= c.To &&
			(best < 0 || nearest(c) < nearest(f.Choices[best])) {
			best = i
		}
	}
	if best >= 0 && f.Choices[best].None {
		return reason{u.kind, algorithmLacks, best}
	}
	return reason{}
}

// text describes the collectives of a reason.
func (r reason) text(f *fit.File, c *covered) string {
	kind := r.kind.String()
	from, to, fewest, most, _ := measuredOf(f, kind)
	used := strings.Join(c.algorithms, ", ")
	switch r.what {
	case allLacks:
		return fmt.Sprintf("no measurement of %s; the algorithm is %s", kind, used)
	case ranksLack:
		return fmt.Sprintf("%s on %s ranks, measured on %s; the algorithm is %s", kind,
			extent(int64(c.least.ranks), int64(c.most.ranks)), extent(int64(fewest), int64(most)), used)
	case algorithmLacks:
		n := f.Choices[r.none]
		return fmt.Sprintf("no algorithm explains the times of %s of %s bytes on %d ranks (%s: %s); the algorithm is "+
			"%s", kind, extent(n.From, n.To), n.Ranks, n.Algorithm, percent(n.Error), used)
	}
	return fmt.Sprintf("%s of %s bytes, measured from %d to %d; the algorithm is %s", kind,
		extent(c.least.bytes, c.most.bytes), from, to, used)
}

// extent formats a range of numbers.
func extent(from, to int64) string {
	if from == to {
		return fmt.Sprint(from)
	}
	return fmt.Sprintf("%d to %d", from, to)
}

func percent(v float64) string { return fmt.Sprintf("%+.2g%%", 100*v) }
