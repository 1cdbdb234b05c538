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

// row returns the relative errors of the algorithms for a measurement, and how far each rank is ahead behind it: of the
// past that explained the last measurement or, if no algorithm explains this one then, of another past that does. It
// predicts the algorithm of the table alone, or all, and in other pasts only the few best; the errors of others are no
// numbers.
func (p *predictor) row(ctx context.Context, g *group, m fit.Measurement, algorithms []string, ofTable string,
	alone bool) (errs []float64, ends []past, err error) {
	skip := make([]bool, len(algorithms))
	for a, name := range algorithms {
		skip[a] = alone && name != ofTable
	}
	for i := range pasts {
		which := (p.used + i) % pasts
		tried, after, err := p.try(ctx, g, m, which, algorithms, skip, i == 0 && !g.isLost(algorithms))
		if err != nil {
			return nil, nil, err
		}
		b := smallest(tried, -1)
		if b < 0 {
			if i == 0 {
				errs, ends = tried, after
			}
			break
		}
		explains := math.Abs(tried[b]) <= certain
		if a := slices.Index(algorithms, ofTable); p.explained[g.kind] && a >= 0 {
			explains = math.Abs(tried[a]) <= tableMean
		}
		if i == 0 || explains {
			errs, ends = tried, after
		}
		if explains {
			p.used = which
			break
		}
		if i == 0 {
			order := make([]float64, 0, len(tried))
			for _, e := range tried {
				if e == e {
					order = append(order, math.Abs(e))
				}
			}
			slices.Sort(order)
			for a, e := range tried {
				skip[a] = !(math.Abs(e) <= order[min(fewBest, len(order))-1])
			}
		}
	}
	return errs, ends, nil
}

// heavyOff is the error from which a heavy algorithm is not tried at larger sizes if it was at two sizes.
const heavyOff = 0.3

// try predicts a measurement in a past with algorithms but those to skip, whose errors are no numbers. It tries heavy
// ones last, if at all, within the budget.
func (p *predictor) try(ctx context.Context, g *group, m fit.Measurement, which int, algorithms []string,
	skip []bool, heavies bool) (errs []float64, after []past, err error) {
	errs, after = make([]float64, len(algorithms)), make([]past, len(algorithms))
	works := make([]int64, len(algorithms)) // of heavy ones
	predict := func(a int, limit int64) error {
		o, err := p.predict(ctx, g, m.Bytes, which, algorithms[a], limit)
		errs[a], after[a], works[a] = o.longest/m.Seconds-1, o.after, 0
		var of heavy
		if errors.As(err, &of) {
			errs[a], works[a] = math.NaN(), of.work
		} else if err != nil {
			errs[a] = math.Inf(1) // an algorithm that does not apply, such as one for powers of two
		}
		return ctx.Err()
	}
	if err := par.EachOn(p.threads, len(algorithms), func(a int) error {
		if errs[a] = math.NaN(); skip[a] {
			return nil
		}
		return predict(a, allLight)
	}); err != nil || !heavies {
		return errs, after, err
	}
	least := math.Inf(1)
	if b := smallest(errs, -1); b >= 0 {
		least = math.Abs(errs[b])
	}
	var some []int
	for a, w := range works {
		name := algorithms[a]
		if w > 0 && worthwhile(least, inTable(g, m.Bytes, name)) && g.far[name] < 2 && p.heavy.allow(w) {
			some = append(some, a)
		}
	}
	err = par.EachOn(p.threads, len(some), func(i int) error { return predict(some[i], math.MaxInt64) })
	for _, a := range some {
		if math.Abs(errs[a]) > heavyOff {
			g.far[algorithms[a]]++
		}
	}
	return errs, after, err
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
