package calibrate

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/tracedag/tracedag/dag"
	"github.com/tracedag/tracedag/dag/lower/collective"
	"github.com/tracedag/tracedag/internal/par"
	"github.com/tracedag/tracedag/sim/fit"
	"github.com/tracedag/tracedag/sim/topology"
)

// Limits of the collectives of a trace that are predicted: calls of each collective, communicator and size, and sizes
// of each collective on a number of ranks.
const (
	instancesTried = 3
	sizesTried     = 6
)

// ruledOut is the error from which an algorithm is not tried on further calls, relative to the best one and at least.
const (
	ruledOutShare = 4
	ruledOutLeast = 0.25
)

// call is a collective of a recording.
type call struct {
	trace   *dag.Trace
	comm    int32
	ops     []place // by member
	entered dag.Time
	spread  dag.Time // between the first member that enters it and the last one
	took    dag.Time // from the last one to the end
}

// place is an op of a rank.
type place struct{ rank, op int }

// calls are the calls of a collective, a communicator's number of ranks and a size.
type calls struct {
	use
	first      []call // of each trace: it may set the communicator up
	calls      []call
	algorithms []string
	errors     []float64 // by algorithm; no number: not predicted
	works      []int64   // by algorithm, of those that are too heavy; else 0
}

// identifyRecorded finds the algorithms of the collectives of a recording: it simulates calls whose members enter them
// at the recorded times with every algorithm, and compares the ends of all members. The nearest table and exceptions
// follow as for tables, see [identified.explain].
//
// Without collectives, the table usual decides, unless it is empty.
func identifyRecorded(ctx context.Context, traces []*dag.Trace, f *fit.File, threads int, time replayer, usual string) (
	*identified, error) {
	groups := callsOf(traces)
	if err := par.EachOn(threads, len(groups), func(i int) error {
		return groups[i].predict(ctx, time)
	}); err != nil {
		return nil, err
	}
	heavy := budget(allHeavy)
	for _, g := range groups {
		if err := g.predictHeavy(ctx, time, &heavy); err != nil {
			return nil, err
		}
	}
	groups = slices.DeleteFunc(groups, func(g *calls) bool {
		b := smallest(g.errors, -1)
		return b < 0 || math.IsInf(g.errors[b], 0)
	})
	found := new(identified)
	if len(groups) == 0 {
		if found.expression = usual; usual != "" {
			found.remarks = append(found.remarks, fmt.Sprintf("the trace has no collectives; the protocol of SMPI "+
				"explains the messages: the table %s decides for collectives", usual))
		}
		return found, nil
	}
	among := tables()
	if topology.IsPlatform(f.Topology) {
		among = front(front(among, smpiTables), usual)
	}
	kinds := measurements(groups)
	base := nearest(kinds, among)
	entries := []string{base.name}
	for _, m := range kinds {
		if rules := m.exceptions(base); len(rules) > 0 {
			entries = append(entries, m.kind.String()+"="+strings.Join(rules, ","))
		}
	}
	if base.name == collective.Tables()[0] {
		entries = entries[1:] // the default needs no name
	}
	found.expression = strings.Join(entries, ";")
	choice, err := collective.ParseChoice(found.expression)
	if err != nil {
		return nil, err
	}
	for _, g := range groups {
		found.choices = append(found.choices, g.choice(choice))
	}
	found.remarks = append(found.remarks, fmt.Sprintf("the algorithms are those of collectives of the trace: up to %d "+
		"calls of each size, whose other messages are not simulated; the table %s decides for collectives that the "+
		"trace lacks", instancesTried, base.name))
	return found, nil
}

// callsOf returns the calls of collectives by collective, ranks and size. The first call of a communicator may set it
// up, and counts only if it is the only one. Calls whose members enter them at about the same time come first.
func callsOf(traces []*dag.Trace) (groups []*calls) {
	index := map[use]*calls{}
	for _, t := range traces {
		several := map[use]bool{} // uses of the trace
		for _, c := range allCalls(t) {
			u, ok := c.measure()
			if !ok {
				continue
			}
			g := index[u]
			if g == nil {
				g = &calls{use: u}
				index[u], groups = g, append(groups, g)
			}
			if !several[u] {
				g.first = append(g.first, *c)
				several[u] = true
			} else {
				g.calls = append(g.calls, *c)
			}
		}
	}
	for _, g := range groups {
		if len(g.calls) == 0 {
			g.calls = g.first
		}
		slices.SortStableFunc(g.calls, func(a, b call) int { return cmp.Compare(a.spread, b.spread) })
		g.calls = g.calls[:min(len(g.calls), instancesTried)]
	}
	slices.SortFunc(groups, func(a, b *calls) int {
		return cmp.Or(cmp.Compare(a.kind, b.kind), cmp.Compare(a.ranks, b.ranks), cmp.Compare(a.bytes, b.bytes))
	})
	return thinned(groups)
}

// allCalls returns the blocking collectives of a trace, by communicator, in their order.
func allCalls(t *dag.Trace) (found []*call) {
	type instance struct{ comm, k int32 }
	all := map[instance]*call{}
	var order []instance
	for rank, r := range t.Ranks {
		next := map[int32]int32{}
		returns := r.StartDependents()
		for i, kind := range r.Kind {
			if kind != dag.Coll {
				continue
			}
			at := instance{r.Comm.At(i), next[r.Comm.At(i)]}
			next[at.comm]++
			if len(returns.Of(i)) > 0 {
				continue // a non-blocking one
			}
			c := all[at]
			if c == nil {
				c = &call{trace: t, comm: at.comm}
				all[at], order = c, append(order, at)
			}
			c.ops = append(c.ops, place{rank, i})
		}
	}
	slices.SortFunc(order, func(a, b instance) int {
		return cmp.Or(cmp.Compare(a.comm, b.comm), cmp.Compare(a.k, b.k))
	})
	for _, at := range order {
		found = append(found, all[at])
	}
	return found
}

// thinned returns few sizes of each collective and number of ranks, among them the smallest and the largest one.
func thinned(groups []*calls) (some []*calls) {
	for i := 0; i < len(groups); {
		end := i + 1
		for end < len(groups) && groups[end].kind == groups[i].kind && groups[end].ranks == groups[i].ranks {
			end++
		}
		n := end - i
		for k := range min(n, sizesTried) {
			at := k
			if n > sizesTried {
				at = k * (n - 1) / (sizesTried - 1)
			}
			some = append(some, groups[i+at])
		}
		i = end
	}
	return some
}

// measure returns the collective of the call. It returns false if a member has no times, or the call is too large.
func (c *call) measure() (u use, ok bool) {
	t := c.trace
	first, last, end := dag.MaxTime, dag.Time(math.MinInt64), dag.Time(math.MinInt64)
	for _, p := range c.ops {
		r := t.Ranks[p.rank]
		start, until := r.Measured(p.op)
		if start == dag.Unmeasured || until == dag.Unmeasured {
			return u, false
		}
		u.kind, u.bytes = r.Subkind.At(p.op), max(u.bytes, r.Bytes.At(p.op))
		first, last, end = min(first, start), max(last, start), max(end, until)
	}
	c.entered, c.spread, c.took = first, last-first, end-last
	if c.took <= 0 {
		c.took = end - first
	}
	u.ranks = len(c.ops)
	if u.kind == dag.Alltoall || u.kind == dag.Scatter {
		u.bytes /= int64(max(u.ranks, 1))
	}
	ok = u.ranks == t.Comms[c.comm].Size() && u.ranks > 1 && u.ranks <= maxRanks && u.ranks*u.ranks <= maxMessages
	return u, ok && c.took > 0
}

// predict computes the errors of all light algorithms, and those of tables with their parameters: the mean over the
// members of the difference of ends, relative to the time of the call.
func (g *calls) predict(ctx context.Context, time replayer) error {
	own := group{kind: g.kind, ranks: g.ranks, rows: []fit.Measurement{{Bytes: g.bytes}}}
	g.algorithms = own.candidates()
	g.works = make([]int64, len(g.algorithms))
	errs := make([][]float64, len(g.algorithms))
	out := make([]bool, len(g.algorithms))
	for i := range g.calls {
		best := math.Inf(1)
		all := g.calls[i].trials(time)
		for a, name := range g.algorithms {
			if out[a] || g.works[a] > 0 {
				continue
			}
			e, err := g.calls[i].error(ctx, g.kind, name, all, allLight)
			var of heavy
			switch {
			case errors.As(err, &of):
				g.works[a] = of.work
				continue
			case ctx.Err() != nil:
				return err
			case err != nil:
				e = math.Inf(1) // an algorithm that does not apply, such as one for powers of two
			}
			errs[a] = append(errs[a], e)
			best = min(best, e)
		}
		for a, e := range errs {
			out[a] = out[a] || len(e) > 0 && e[len(e)-1] > max(ruledOutShare*best, ruledOutLeast)
		}
	}
	for a, e := range errs {
		slices.Sort(e)
		switch {
		case len(e) == 0:
			g.errors = append(g.errors, math.NaN())
		case out[a]:
			g.errors = append(g.errors, max(e[len(e)/2], ruledOutLeast))
		default:
			g.errors = append(g.errors, e[len(e)/2])
		}
	}
	return nil
}

// predictHeavy computes the errors of heavy algorithms of the first call if that matters, within a budget.
func (g *calls) predictHeavy(ctx context.Context, time replayer, left *budget) error {
	least := math.Inf(1)
	if b := smallest(g.errors, -1); b >= 0 {
		least = g.errors[b]
	}
	all := g.calls[0].trials(time)
	own := group{kind: g.kind, ranks: g.ranks}
	for a, name := range g.algorithms {
		if g.works[a] == 0 || !worthwhile(least, inTable(&own, g.bytes, name)) || !left.allow(g.works[a]) {
			continue
		}
		e, err := g.calls[0].error(ctx, g.kind, name, all, math.MaxInt64)
		if ctx.Err() != nil {
			return err
		}
		if g.errors[a] = e; err != nil {
			g.errors[a] = math.Inf(1)
		}
	}
	return nil
}

// trials returns replays of the call with algorithms. Their error is the mean over the members of the difference of
// ends, relative to the time of the call.
func (c *call) trials(time replayer) *trials[float64] {
	return newTrials(time, func(at [][]float64, _ []float64) float64 {
		sum := 0.0
		for _, p := range c.ops {
			_, end := c.trace.Ranks[p.rank].Measured(p.op)
			sum += math.Abs(at[p.rank][0] - seconds(end-c.entered))
		}
		return sum / float64(len(c.ops)) / seconds(c.took)
	})
}

// error returns the error of an algorithm.
func (c *call) error(ctx context.Context, kind dag.Subkind, algorithm string, all *trials[float64], limit int64) (
	float64, error) {
	t := c.trace
	choice, err := collective.ParseChoice(kind.String() + "=" + algorithm)
	if err != nil {
		return 0, err
	}
	s := newScene(len(t.Ranks))
	comm := int32(0)
	if c.comm != 0 {
		comm = s.builder.AddComm(t.Comms[c.comm])
	}
	for _, p := range c.ops {
		start, _ := t.Ranks[p.rank].Measured(p.op)
		s.add(p.rank, dag.Op{Kind: dag.Calc, Duration: start - c.entered})
		op := t.Ranks[p.rank].Op(p.op)
		s.add(p.rank, dag.Op{Kind: dag.Coll, Subkind: kind, Bytes: op.Bytes, RecvBytes: op.RecvBytes, Peer: op.Peer,
			Comm: comm, Attrs: op.Attrs})
	}
	s.mark()
	return all.run(ctx, s, choice, limit)
}

// measurements returns the calls by collective and number of ranks, as those of tables.
func measurements(all []*calls) (kinds []*measured) {
	var groups []*group
	for _, c := range all {
		g := &group{kind: c.kind, ranks: c.ranks}
		if n := len(groups); n > 0 && groups[n-1].kind == c.kind && groups[n-1].ranks == c.ranks {
			g = groups[n-1]
		} else {
			groups = append(groups, g)
		}
		g.rows = append(g.rows, fit.Measurement{Bytes: c.bytes, Ranks: c.ranks})
		for _, name := range c.algorithms {
			if !slices.Contains(g.algorithms, name) {
				g.algorithms = append(g.algorithms, name)
			}
		}
	}
	i := 0
	for _, g := range groups {
		for range g.rows {
			row := make([]float64, len(g.algorithms))
			for a, name := range g.algorithms {
				row[a] = all[i].of(name)
			}
			g.errors, g.best = append(g.errors, row), append(g.best, smallest(row, -1))
			i++
		}
		kinds = add(kinds, g)
	}
	return kinds
}

// of returns the error of an algorithm, up to 1.
func (g *calls) of(algorithm string) float64 {
	if a := slices.Index(g.algorithms, algorithm); a >= 0 && g.errors[a] < 1 {
		return g.errors[a]
	}
	return 1
}

// selected returns the algorithm of a choice.
func (g *calls) selected(c *collective.Choice) string {
	own := group{kind: g.kind, ranks: g.ranks}
	return c.Selected(g.kind, own.largest(g.bytes), g.ranks)
}

// choice returns the algorithm that a choice selects, and the best other one.
func (g *calls) choice(c collective.Choice) fit.Choice {
	a := g.selected(&c)
	f := fit.Choice{Collective: g.kind.String(), Ranks: g.ranks, From: g.bytes, To: g.bytes, Algorithm: a,
		Error: g.of(a), RunnerUpError: math.Inf(1)}
	for i, name := range g.algorithms {
		if name != a && g.errors[i] < f.RunnerUpError {
			f.RunnerUp, f.RunnerUpError = name, g.errors[i]
		}
	}
	if f.RunnerUp == "" {
		f.RunnerUpError = 0
	}
	f.None = f.Error > unknown
	return f
}
