package calibrate

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/tracedag/tracedag/dag"
	"github.com/tracedag/tracedag/dag/lower/collective"
	"github.com/tracedag/tracedag/internal/par"
	"github.com/tracedag/tracedag/sim/fit"
)

// predictor predicts times of collectives. The time is the longest of all ranks, from the end of a barrier, as
// benchmarks measure it. Ranks leave a barrier at different times, which depend on what the benchmark did before, and
// eager messages keep such differences through many collectives. The predictor follows the measurements in their order,
// and predicts each for several pasts.
type predictor struct {
	threads   int
	trials    *trials[outcome]
	heavy     *budget
	table     table                // of the algorithms of all collectives
	explained map[dag.Subkind]bool // collectives whose algorithms are those of the table
	known     map[member]string    // algorithms that replace those of the table
	now       map[int]past         // by number of ranks: before the next measurement
	incasts   []fit.Measurement    // that tables have before collectives
	used      int                  // past that explained the last measurement
}

// newPredictor returns a predictor by the default table.
func newPredictor(time replayer, threads int) predictor {
	heavy := budget(allHeavy)
	return predictor{threads: threads, trials: newTrials(time, outcomeOf), heavy: &heavy, now: map[int]past{},
		known: map[member]string{}}
}

// outcome is the longest time of a rank in a collective, and how far each rank is ahead of the first one behind it.
type outcome struct {
	longest float64
	after   past
}

func outcomeOf(at [][]float64, end []float64) outcome { return outcome{longestOf(at), ahead(end)} }

// member is a collective on a number of ranks.
type member struct {
	kind  dag.Subkind
	ranks int
}

// Pasts of a measurement that follows others: with an allreduce of the time behind each, without, or none of them.
const (
	reduced = iota
	plain
	fresh
	pasts // number of pasts
)

// past is how far each rank is ahead of the first one when a measurement begins, in seconds; nil: all begin together.
type past []float64

// lateness is the time in seconds by which a rank comes late: longer than a barrier.
const lateness = 0.01

// start returns the past of the first collective: that of the last incast or, without one, rank 0 comes late, as after
// other tests whose root it is.
func (p *predictor) start(ctx context.Context, g *group) (past, error) {
	var last fit.Measurement
	for _, m := range p.incasts {
		if n := m.Incast(); n < g.ranks && (n > last.Incast() || n == last.Incast() && m.Bytes > last.Bytes) {
			last = m
		}
	}
	if last.Incast() == 0 {
		from := make(past, g.ranks)
		from[0] = lateness
		return from, nil
	}
	choice, err := p.choice(g, 0, "")
	if err != nil {
		return nil, err
	}
	s := newScene(g.ranks)
	s.collective(dag.Barrier, 0)
	s.incast(last.Incast(), last.Bytes)
	_, end, err := s.run(ctx, choice, p.trials.time)
	return ahead(end), err
}

// ahead returns how far each rank is ahead of the first one.
func ahead(end []float64) past {
	if len(end) == 0 {
		return nil
	}
	first := slices.Min(end)
	for r := range end {
		end[r] -= first
	}
	return end
}

// certain is the error up to which a past is taken for the real one, and fewBest the number of algorithms that may be
// the measured one in another past.
const (
	certain = 0.01
	fewBest = 4
)

// follow predicts the measurements of a group with each algorithm, in the order of sizes, and selects the best of each.
// An algorithm "" is that of the table. It drops the measurements whose times no algorithm predicts, such as those of
// sizes beyond the limits of traces.
func (p *predictor) follow(ctx context.Context, g *group, algorithms []string) error {
	slices.SortStableFunc(g.rows, func(a, b fit.Measurement) int { return cmp.Compare(a.Bytes, b.Bytes) })
	g.algorithms, g.errors, g.best, g.unpredicted, g.tooLarge = algorithms, nil, nil, 0, 0
	g.far = map[string]int{}
	var kept []fit.Measurement
	if p.now[g.ranks] == nil {
		from, err := p.start(ctx, g)
		if err != nil {
			return err
		}
		p.now[g.ranks] = from
	}
	for i, m := range g.rows {
		// Algorithms beside a table that is known to be right are predicted at the ends of its ranges of sizes.
		of := p.ofTable(g, m)
		alone := p.explained[g.kind] && i > 0 && i+1 < len(g.rows) && of == p.ofTable(g, g.rows[i-1])
		row, ends, err := p.row(ctx, g, m, algorithms, of, alone)
		if err != nil {
			return err
		}
		b := smallest(row, -1)
		if b < 0 {
			g.tooLarge++
			continue
		}
		if a := slices.Index(algorithms, of); p.explained[g.kind] && a >= 0 &&
			math.Abs(row[a]) <= math.Abs(row[b])+tableWorst {
			b = a
		}
		if math.IsInf(row[b], 0) {
			g.unpredicted++
			continue
		}
		kept, g.errors, g.best = append(kept, m), append(g.errors, row), append(g.best, b)
		p.now[g.ranks] = ends[b]
	}
	g.rows = kept
	if p.explained[g.kind] {
		return nil
	}
	// A neighbor's algorithm that is as good keeps ranges whole.
	for i := 1; i < len(g.rows); i++ {
		g.join(i, g.best[i-1])
	}
	for i := len(g.rows) - 2; i >= 0; i-- {
		g.join(i, g.best[i+1])
	}
	return nil
}

// ofTable returns the algorithm of the table for a measurement.
func (p *predictor) ofTable(g *group, m fit.Measurement) string {
	return p.table.choice.Selected(g.kind, g.largest(m.Bytes), g.ranks)
}

// tries are the predictions of a measurement with algorithms.
type tries struct {
	errs  []float64 // relative; no number: not predicted
	after []past    // how far each rank is ahead behind it
	works []int64   // of heavy ones; else 0
}

// row returns the relative errors of the algorithms for a measurement, and how far each rank is ahead behind it: of the
// past that explained the last measurement or, if no algorithm explains this one then, of another past that does. It
// predicts the algorithm of the table alone, or all, and in other pasts only the few best; the errors of others are no
// numbers. Heavy algorithms are predicted if no other explains the measurement.
func (p *predictor) row(ctx context.Context, g *group, m fit.Measurement, algorithms []string, ofTable string,
	alone bool) (errs []float64, ends []past, err error) {
	skip := make([]bool, len(algorithms))
	for a, name := range algorithms {
		skip[a] = alone && name != ofTable
	}
	first, err := p.try(ctx, g, m, p.used, algorithms, skip)
	if err != nil {
		return nil, nil, err
	}
	explains := func(t *tries) bool {
		if a := slices.Index(algorithms, ofTable); p.explained[g.kind] && a >= 0 {
			return math.Abs(t.errs[a]) <= tableMean
		}
		return t.least() <= certain
	}
	if explains(first) {
		return first.errs, first.after, nil
	}
	order := make([]float64, 0, len(first.errs))
	for _, e := range first.errs {
		if e == e {
			order = append(order, math.Abs(e))
		}
	}
	slices.Sort(order)
	for a, e := range first.errs {
		skip[a] = len(order) == 0 || !(math.Abs(e) <= order[min(fewBest, len(order))-1])
	}
	for i := 1; i < pasts && len(order) > 0; i++ {
		which := (p.used + i) % pasts
		other, err := p.try(ctx, g, m, which, algorithms, skip)
		if err != nil {
			return nil, nil, err
		}
		if explains(other) {
			p.used = which
			return other.errs, other.after, nil
		}
	}
	if !g.isLost(algorithms) {
		err = p.tryHeavy(ctx, g, m, algorithms, first)
	}
	return first.errs, first.after, err
}

// least returns the smallest error in absolute value, infinite if there is none.
func (t *tries) least() float64 {
	if b := smallest(t.errs, -1); b >= 0 {
		return math.Abs(t.errs[b])
	}
	return math.Inf(1)
}

// try predicts a measurement in a past with light algorithms but those to skip.
func (p *predictor) try(ctx context.Context, g *group, m fit.Measurement, which int, algorithms []string,
	skip []bool) (*tries, error) {
	t := &tries{make([]float64, len(algorithms)), make([]past, len(algorithms)), make([]int64, len(algorithms))}
	err := par.EachOn(p.threads, len(algorithms), func(a int) error {
		if t.errs[a] = math.NaN(); skip[a] {
			return nil
		}
		o, err := p.predict(ctx, g, m.Bytes, which, algorithms[a], allLight)
		t.set(a, o, err, m)
		return ctx.Err()
	})
	return t, err
}

// set sets the prediction of an algorithm.
func (t *tries) set(a int, o outcome, err error, m fit.Measurement) {
	t.errs[a], t.after[a] = o.longest/m.Seconds-1, o.after
	var of heavy
	if errors.As(err, &of) {
		t.errs[a], t.works[a] = math.NaN(), of.work
	} else if err != nil {
		t.errs[a] = math.Inf(1) // an algorithm that does not apply, such as one for powers of two
	}
}

// A heavy algorithm that was off by heavyOff twice is not tried at larger sizes.
const (
	heavyOff   = 0.3
	heavyTwice = 2
)

// tryHeavy predicts a measurement with the heavy algorithms that are worthwhile, within the budget.
func (p *predictor) tryHeavy(ctx context.Context, g *group, m fit.Measurement, algorithms []string, t *tries) error {
	var some []int
	for a, name := range algorithms {
		if t.works[a] > 0 && g.far[name] < heavyTwice && worthwhile(t.least(), inTable(g, m.Bytes, name)) &&
			p.heavy.allow(t.works[a]) {
			some = append(some, a)
		}
	}
	err := par.EachOn(p.threads, len(some), func(i int) error {
		o, err := p.predict(ctx, g, m.Bytes, p.used, algorithms[some[i]], math.MaxInt64)
		t.set(some[i], o, err, m)
		return ctx.Err()
	})
	for _, a := range some {
		if math.Abs(t.errs[a]) > heavyOff {
			g.far[algorithms[a]]++
		}
	}
	if err != nil {
		return err
	}
	return p.tryOtherPasts(ctx, g, m, algorithms, t)
}

// tryOtherPasts predicts a measurement that the best algorithm, a heavy one, nearly explains in other pasts, until it
// does.
func (p *predictor) tryOtherPasts(ctx context.Context, g *group, m fit.Measurement, algorithms []string,
	t *tries) error {
	b := smallest(t.errs, -1)
	first := p.used
	for i := 1; i < pasts && b >= 0; i++ {
		if t.works[b] == 0 || t.least() <= certain || t.least() > unknown || !p.heavy.allow(t.works[b]) {
			break
		}
		which := (first + i) % pasts
		o, err := p.predict(ctx, g, m.Bytes, which, algorithms[b], math.MaxInt64)
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if err == nil && math.Abs(o.longest/m.Seconds-1) <= certain {
			t.set(b, o, err, m)
			p.used = which
		}
	}
	return nil
}

// inTable reports whether a table has an algorithm for a size; "" is that of the table.
func inTable(g *group, bytes int64, algorithm string) bool {
	return algorithm == "" || slices.ContainsFunc(tables(), func(t table) bool {
		return t.choice.Selected(g.kind, g.largest(bytes), g.ranks) == algorithm
	})
}

// isLost reports whether the first measurements show that the only one of the algorithms, that of a table, does not
// explain them.
func (g *group) isLost(algorithms []string) bool {
	off := 0
	for _, row := range g.errors {
		if math.Abs(row[0]) > tableWorst {
			off++
		}
	}
	return len(algorithms) == 1 && off > max(1, len(g.rows)/10)
}

// choice returns the algorithms of a trace that measures a collective of a size: others, and those in the past, have
// the algorithm of the table.
func (p *predictor) choice(g *group, bytes int64, algorithm string) (collective.Choice, error) {
	text := p.table.name
	switch size := g.largest(bytes); {
	case algorithm == "":
	case g.kind == dag.Barrier:
		text += ";" + g.kind.String() + "=" + algorithm
	default:
		text += fmt.Sprintf(";%v=%s:size>=%d&size<=%d", g.kind, algorithm, size, size)
	}
	for _, k := range []dag.Subkind{dag.Barrier, dag.Allreduce} {
		if known := p.known[member{k, g.ranks}]; known != "" && k != g.kind {
			text += ";" + k.String() + "=" + known
		}
	}
	return collective.ParseChoice(text)
}

// predict returns the outcome of a collective after a past and a barrier. Its end is behind an allreduce of the time in
// the past reduced. The error of one that takes more work than the limit is [heavy].
func (p *predictor) predict(ctx context.Context, g *group, bytes int64, which int, algorithm string, limit int64) (
	outcome, error) {
	choice, err := p.choice(g, bytes, algorithm)
	if err != nil {
		return outcome{}, err
	}
	s := newScene(g.ranks)
	if which != fresh {
		for r, seconds := range p.now[g.ranks] {
			s.add(r, dag.Op{Kind: dag.Calc, Duration: dag.Time(math.Round(seconds * float64(dag.Second)))})
		}
	}
	s.collective(dag.Barrier, 0)
	s.mark()
	s.collective(g.kind, g.size(bytes))
	s.mark()
	if which == reduced {
		s.collective(dag.Allreduce, 8)
	}
	return p.trials.run(ctx, s, choice, limit)
}
