package calibrate

import (
	"context"
	"fmt"
	"math"
	"slices"

	"github.com/tracedag/tracedag/dag"
	gen "github.com/tracedag/tracedag/dag/gen/collective"
	"github.com/tracedag/tracedag/dag/lower/collective"
	"github.com/tracedag/tracedag/sim/fit"
)

// unknown is the error of the best algorithm from which none is taken for the measured one.
const unknown = 0.1

// near is the difference of errors that does not decide between two algorithms: the one of the neighboring sizes stays.
const near = 0.005

// Errors by which a rule for all sizes and ranks may exceed the best algorithm of each measurement: their mean, and
// each one. Such a rule also selects the algorithms of sizes and ranks between and beyond the measured ones.
const (
	ruleMean  = 0.01
	ruleWorst = 0.04
)

// Limits of a measurement that is predicted.
const (
	maxRanks    = 4096
	maxMessages = 4 << 20 // of the algorithm with most, about ranks squared
)

// identified are the algorithms of measured collectives.
type identified struct {
	choices    []fit.Choice
	table      table                // that explains most collectives; without name: none
	explained  map[dag.Subkind]bool // collectives that it explains
	expression string               // for --collective
	remarks    []string
}

// identify finds the algorithms of the measured collectives, by collective and number of ranks, with a range of sizes
// for each: it predicts each time with every algorithm and selects the one with the smallest error. If the rules of a
// table, such as that of MPICH, or one algorithm for all sizes explain the times of a collective about as well, the
// expression has these rules. If none but the default does, the table usual decides for other collectives, unless it is
// empty. Remarks name measurements that it cannot use.
func identify(ctx context.Context, rows []fit.Measurement, threads int, time replayer, usual string) (*identified,
	error) {
	groups, found := grouped(rows)
	var incasts []fit.Measurement
	for _, m := range rows {
		if m.Incast() > 0 {
			incasts = append(incasts, m)
		}
	}
	p := newPredictor(time, threads)
	p.incasts = incasts
	if err := found.findTable(ctx, groups, p); err != nil {
		return nil, err
	}
	p.table, p.explained = found.table, found.explained
	if found.table.name == "" {
		// Barriers precede the others, and allreduces of times follow them: find these first.
		for _, kind := range []dag.Subkind{dag.Barrier, dag.Allreduce} {
			for _, g := range groups {
				if g.kind == kind {
					if err := p.findKnown(ctx, *g); err != nil {
						return nil, err
					}
				}
			}
		}
	}
	var kinds []*measured
	for _, g := range groups {
		if err := p.follow(ctx, g, g.candidates()); err != nil {
			return nil, err
		}
		kinds = add(kinds, g)
	}
	for _, g := range groups {
		if g.unpredicted > 0 {
			found.unused(g.unpredicted, fmt.Sprintf("%v on %d ranks, which no algorithm can predict,", g.kind, g.ranks))
		}
		if g.tooLarge > 0 {
			found.unused(g.tooLarge, fmt.Sprintf("%v on %d ranks, whose simulation takes too long,", g.kind, g.ranks))
		}
		found.choices = append(found.choices, g.choices()...)
	}
	slices.Sort(found.remarks)
	found.explain(kinds, usual)
	return found, nil
}

// grouped returns the measurements of collectives by collective and number of ranks, and remarks about others.
func grouped(rows []fit.Measurement) (groups []*group, found *identified) {
	found = new(identified)
	unused := map[string]int{}
	for _, m := range rows {
		kind, known := subkind(m.Test)
		switch {
		case !known:
			if !m.Used() {
				unused[fmt.Sprintf("the test %q", m.Test)]++
			}
		case m.Ranks == 0:
			unused[m.Test+" without a number of ranks, which FILE@RANKS would state,"]++
		case m.Ranks == 1:
			unused[m.Test+" on 1 rank"]++
		case m.Ranks > maxRanks || m.Ranks*m.Ranks > maxMessages:
			unused[fmt.Sprintf("%s on %d ranks", m.Test, m.Ranks)]++
		default:
			i := slices.IndexFunc(groups, func(g *group) bool { return g.kind == kind && g.ranks == m.Ranks })
			if i < 0 {
				i = len(groups)
				groups = append(groups, &group{kind: kind, ranks: m.Ranks})
			}
			groups[i].rows = append(groups[i].rows, m)
		}
	}
	for what, n := range unused {
		found.unused(n, what)
	}
	return groups, found
}

// unused adds a remark about measurements.
func (f *identified) unused(n int, what string) {
	text := "%d measurements of %s are not used"
	if n == 1 {
		text = "%d measurement of %s is not used"
	}
	f.remarks = append(f.remarks, fmt.Sprintf(text, n, what))
}

// group are the measurements of a collective on a number of ranks.
type group struct {
	kind        dag.Subkind
	ranks       int
	rows        []fit.Measurement
	algorithms  []string
	errors      [][]float64 // relative, by measurement and algorithm
	best        []int       // by measurement
	unpredicted int
	tooLarge    int            // measurements whose predictions take too much work
	far         map[string]int // by heavy algorithm: the number of its predictions that are far off
}

// subkind returns the collective of a test's name.
func subkind(test string) (dag.Subkind, bool) {
	for _, k := range gen.Types() {
		if k.String() == test {
			return k, true
		}
	}
	return 0, false
}

// size returns the size of a rank's input of a collective, where tables count blocks.
func (g *group) size(bytes int64) int64 {
	if g.kind == dag.Alltoall || g.kind == dag.Scatter {
		return bytes * int64(g.ranks)
	}
	return bytes
}

// largest returns the bytes by which tables of algorithms select.
func (g *group) largest(bytes int64) int64 {
	if amount(g.kind.String()) == "block" {
		return bytes * int64(g.ranks)
	}
	return bytes
}

// candidates returns the algorithms of the collective, with the parameters that tables have.
func (g *group) candidates() []string {
	algorithms := collective.AlgorithmNames(g.kind)
	for _, c := range tables() {
		for _, m := range g.rows {
			if a := c.choice.Selected(g.kind, g.largest(m.Bytes), g.ranks); !slices.Contains(algorithms, a) {
				algorithms = append(algorithms, a)
			}
		}
	}
	return algorithms
}

// join selects the algorithm of a neighbor if it is about as good.
func (g *group) join(i, neighbor int) {
	if math.Abs(g.errors[i][neighbor]) <= math.Abs(g.errors[i][g.best[i]])+near {
		g.best[i] = neighbor
	}
}

// choices joins neighboring sizes with the same algorithm.
func (g *group) choices() (choices []fit.Choice) {
	for i := 0; i < len(g.rows); {
		end := i + 1
		for end < len(g.rows) && g.best[end] == g.best[i] {
			end++
		}
		c := fit.Choice{Collective: g.kind.String(), Ranks: g.ranks, From: g.rows[i].Bytes, To: g.rows[end-1].Bytes,
			Algorithm: g.algorithms[g.best[i]]}
		worst := make([]float64, len(g.algorithms)) // of the predicted ones
		for a := range worst {
			worst[a] = math.NaN()
			for _, row := range g.errors[i:end] {
				if e := row[a]; math.IsNaN(worst[a]) || math.Abs(e) > math.Abs(worst[a]) {
					worst[a] = e
				}
			}
		}
		c.Error = worst[g.best[i]]
		if second := smallest(worst, g.best[i]); second >= 0 && !math.IsInf(worst[second], 0) {
			c.RunnerUp, c.RunnerUpError = g.algorithms[second], worst[second]
		}
		c.None = math.Abs(c.Error) > unknown
		choices = append(choices, c)
		i = end
	}
	return choices
}

// smallest returns the index of the smallest absolute value but for one index, -1 if there is none. It skips what is no
// number.
func smallest(values []float64, but int) int {
	at := -1
	for i, v := range values {
		if i != but && v == v && (at < 0 || math.Abs(v) < math.Abs(values[at])) {
			at = i
		}
	}
	return at
}
