package calibrate

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/tracedag/tracedag/dag"
	"github.com/tracedag/tracedag/dag/lower/collective"
	"github.com/tracedag/tracedag/sim/fit"
)

// measured are the measurements of a collective on all numbers of ranks.
type measured struct {
	kind   dag.Subkind
	groups []*group
}

// add adds a group to the measurements of its collective.
func add(kinds []*measured, g *group) []*measured {
	i := slices.IndexFunc(kinds, func(m *measured) bool { return m.kind == g.kind })
	if i < 0 {
		i = len(kinds)
		kinds = append(kinds, &measured{kind: g.kind})
	}
	kinds[i].groups = append(kinds[i].groups, g)
	return kinds
}

// table is a table of algorithms.
type table struct {
	name   string // empty: the default
	choice collective.Choice
}

// tables returns the tables of algorithms, the default first.
func tables() (all []table) {
	for _, name := range collective.Tables() {
		c, err := collective.ParseChoice(name)
		if err != nil {
			panic(err) // names are those of the tables
		}
		all = append(all, table{name, c})
	}
	return all
}

// Errors up to which a table explains the measurements of a collective on a number of ranks: their mean, and each one
// but a tenth, since the first call of a communicator may set it up.
const (
	tableMean  = 0.03
	tableWorst = 0.1
	tableLeast = 3 // number of collectives that a table has to explain
)

// findTable finds the table that explains most collectives, more than half of them, if there is one.
func (f *identified) findTable(ctx context.Context, groups []*group, with predictor) error {
	all := map[dag.Subkind]bool{}
	for _, g := range groups {
		all[g.kind] = true
	}
	most, least := max(tableLeast, len(all)/2+1), math.Inf(1)
	for _, t := range tables() {
		p := with
		p.table, p.now, p.threads = t, map[int]past{}, 1
		var kinds []*measured
		failed := map[dag.Subkind]bool{}
		for _, g := range groups {
			if len(all)-len(failed) < most {
				break // it cannot explain as many
			}
			own := *g
			own.rows = slices.Clone(g.rows)
			if err := p.follow(ctx, &own, []string{""}); err != nil {
				return err
			}
			kinds = add(kinds, &own)
			one := measured{groups: []*group{&own}}
			if q := one.judge(func(*group, int) string { return "" }); !q.explains() {
				failed[g.kind] = true
			}
		}
		if len(all)-len(failed) < most {
			continue
		}
		explained, sum := map[dag.Subkind]bool{}, 0.0
		for _, m := range kinds {
			q := m.judge(func(*group, int) string { return "" })
			if !failed[m.kind] {
				explained[m.kind] = true
			}
			sum += min(q.mean, 1)
		}
		if n := len(explained); n > most || n == most && sum < least-1e-9 {
			f.table, f.explained, most, least = t, explained, n, sum
		}
	}
	return nil
}

// findKnown finds the algorithm of small barriers or allreduces.
func (p *predictor) findKnown(ctx context.Context, g group) error {
	if g.rows = slices.Clone(g.rows); len(g.rows) > 1 {
		g.rows = g.rows[:1]
	}
	own := *p
	own.now = map[int]past{}
	if err := own.follow(ctx, &g, g.candidates()); err != nil || len(g.best) == 0 {
		return err
	}
	p.known[member{g.kind, g.ranks}] = g.algorithms[g.best[0]]
	return nil
}

// quality is the errors of a rule, in absolute values.
type quality struct {
	mean   float64
	worst  float64 // but for a tenth of the measurements, at least one of five
	excess float64 // largest one over the best algorithm
}

func (q quality) explains() bool { return q.mean <= tableMean && q.worst <= tableWorst }

// judge returns the quality of a rule, which names an algorithm for each measurement of a group.
func (m *measured) judge(rule func(g *group, row int) string) (q quality) {
	var all []float64
	for _, g := range m.groups {
		for i := range g.rows {
			a := slices.Index(g.algorithms, rule(g, i))
			e := math.Inf(1)
			if a >= 0 && !math.IsNaN(g.errors[i][a]) {
				e = math.Abs(g.errors[i][a])
			}
			all = append(all, e)
			q.excess = max(q.excess, e-math.Abs(g.errors[i][g.best[i]]))
		}
	}
	if len(all) == 0 {
		return q
	}
	slices.Sort(all)
	if len(all) >= 5 {
		all = all[:len(all)-max(1, len(all)/10)]
	}
	for _, e := range all {
		q.mean += e / float64(len(all))
	}
	q.worst = all[len(all)-1]
	return q
}

// rule returns the algorithm of the table for a measurement.
func (t table) rule(g *group, row int) string {
	return t.choice.Selected(g.kind, g.largest(g.rows[row].Bytes), g.ranks)
}

// nearest returns the table whose algorithms, with single ones for some collectives, are nearest to the measured times:
// the first of those that are not clearly worse than another one.
func nearest(kinds []*measured, among []table) table {
	sums := make([]float64, len(among))
	for _, m := range kinds {
		_, single := m.single()
		for i, t := range among {
			sums[i] += min(m.judge(t.rule).mean, single.mean+ruleMean, 1)
		}
	}
	least := slices.Min(sums)
	return among[slices.IndexFunc(sums, func(s float64) bool { return s <= least+ruleMean })]
}

// front returns tables, those whose names begin with a prefix first.
func front(all []table, prefix string) (sorted []table) {
	var others []table
	for _, t := range all {
		if strings.HasPrefix(t.name, prefix) {
			sorted = append(sorted, t)
		} else {
			others = append(others, t)
		}
	}
	return append(sorted, others...)
}

// explain sets the expression: the table that explains most collectives, if there is one, or else the nearest table of
// SMPI unless the usual one is empty, and rules for the collectives that it does not explain.
func (f *identified) explain(kinds []*measured, usual string) {
	var entries []string
	noName := tables()[0].name // the default
	base, known := f.table, f.explained != nil
	if usual != "" && len(kinds) > 0 && (!known || base.name == noName) {
		smpi := slices.DeleteFunc(tables(), func(t table) bool { return !strings.HasPrefix(t.name, smpiTables) })
		base, known = nearest(kinds, front(smpi, usual)), false
		f.remarks = append(f.remarks, fmt.Sprintf("no table of algorithms but the default explains the collectives; "+
			"the protocol of SMPI explains the messages: the table %s, which is the nearest one, decides for "+
			"collectives that the tables lack", base.name))
	}
	named := base.name != "" && base.name != noName
	if named {
		entries = append(entries, base.name)
	}
	for _, m := range kinds {
		var rules []string
		switch {
		case known && f.explained[m.kind]:
		case named:
			rules = m.exceptions(base)
		default:
			rules = m.rules()
		}
		if len(rules) == 0 {
			continue
		}
		entries = append(entries, m.kind.String()+"="+strings.Join(rules, ","))
		if named && base.name != usual {
			continue // the table has rules of related collectives
		}
		if v, is := vectors[m.kind]; is && len(rules) == 1 && !strings.Contains(rules[0], ":") &&
			slices.Contains(collective.AlgorithmNames(v), rules[0]) {
			entries = append(entries, v.String()+"="+rules[0])
		}
	}
	if known {
		f.remarks = append(f.remarks, fmt.Sprintf("the algorithms of %d of %d collectives are those of the table %s; "+
			"it decides for sizes, ranks and collectives that the tables lack", len(f.explained), len(kinds),
			f.table.name))
	}
	f.expression = strings.Join(entries, ";")
}

// exceptions returns the rules of a collective that a table does not explain: one algorithm that explains all times or,
// if the table is far off, one that is at most half as far off, or else few ranges that explain them. Many ranges
// explain nothing: one of thirty algorithms fits each size by chance.
func (m *measured) exceptions(t table) []string {
	of := m.judge(t.rule)
	if of.explains() {
		return nil
	}
	if name, q := m.single(); q.mean < of.mean-ruleMean {
		return []string{name}
	}
	if of.mean <= unknown && of.worst <= farOff {
		return nil
	}
	nearest, _ := m.nearest(func(q quality) bool { return q.mean < of.mean/2 })
	switch {
	case nearest != "":
		return []string{nearest}
	case of.mean > unknown && !slices.ContainsFunc(m.groups, (*group).scattered):
		return m.rules()
	}
	return nil
}

// farOff is the error of a measurement from which a table is not right for it.
const farOff = 0.2

// scattered reports whether the best algorithms explain nothing: some times have none, or there are many ranges.
func (g *group) scattered() bool {
	choices := g.choices()
	return len(choices) > fewRanges || slices.ContainsFunc(choices, func(c fit.Choice) bool { return c.None })
}

// fewRanges is the largest number of ranges of sizes, on a number of ranks, that explain times.
const fewRanges = 3

// vectors are the collectives of different sizes per rank, which benchmarks rarely measure.
var vectors = map[dag.Subkind]dag.Subkind{dag.Allgather: dag.Allgatherv, dag.Alltoall: dag.Alltoallv,
	dag.Gather: dag.Gatherv, dag.Scatter: dag.Scatterv}

// single returns the algorithm that is nearly as good for all sizes and ranks as the best one of each measurement, and
// its errors; "" and an infinite mean if there is none.
func (m *measured) single() (name string, of quality) {
	best := m.judge(func(g *group, i int) string { return g.algorithms[g.best[i]] })
	return m.nearest(func(q quality) bool {
		return q.mean <= min(best.mean+ruleMean, unknown) && q.excess <= ruleWorst
	})
}

// same is the difference of mean errors up to which algorithms do not differ: those on several levels, which come last,
// take about the time of their parts if each node has one rank.
const same = 1e-4

// nearest returns the accepted algorithm with the smallest mean error, the first of those that do not differ, and its
// errors; "" and an infinite mean if there is none.
func (m *measured) nearest(accept func(quality) bool) (name string, of quality) {
	of.mean = math.Inf(1)
	for _, a := range m.groups[0].algorithms {
		if q := m.judge(func(*group, int) string { return a }); accept(q) && q.mean < of.mean-same {
			name, of = a, q
		}
	}
	return name, of
}

// rules returns the rules of a collective: one algorithm for all sizes and ranks if it is about as good as the best one
// of each measurement, or else these by range.
func (m *measured) rules() []string {
	if name, _ := m.single(); name != "" {
		return []string{name}
	}
	var choices []fit.Choice
	for _, g := range m.groups {
		choices = append(choices, g.choices()...)
	}
	return rules(choices)
}

// rules returns the rules of the choices of a collective. Choices of several numbers of ranks have conditions on it:
// each has the ranks up to the middle to its neighbors.
func rules(choices []fit.Choice) (rules []string) {
	var ranks []int
	for _, c := range choices {
		ranks = append(ranks, c.Ranks)
	}
	slices.Sort(ranks)
	ranks = slices.Compact(ranks)
	for i, c := range choices {
		last := i+1 == len(choices) || choices[i+1].Ranks != c.Ranks
		if c.None || !last && !choices[i+1].None && choices[i+1].Algorithm == c.Algorithm {
			continue // the next rule has these sizes, too
		}
		var conditions []string
		for first := i; first > 0 && choices[first-1].Ranks == c.Ranks; first-- {
			if before := choices[first-1]; before.None {
				conditions = append(conditions, fmt.Sprintf("%s>=%d", amount(c.Collective),
					fit.Cut(before.To, choices[first].From)))
				break
			}
		}
		if !last {
			conditions = append(conditions, fmt.Sprintf("%s<%d", amount(c.Collective), fit.Cut(c.To,
				choices[i+1].From)))
		}
		switch at := slices.Index(ranks, c.Ranks); {
		case len(ranks) == 1:
		case at == 0:
			conditions = append(conditions, fmt.Sprintf("ranks<%d", between(c.Ranks, ranks[1])))
		case at == len(ranks)-1:
			conditions = append(conditions, fmt.Sprintf("ranks>=%d", between(ranks[at-1], c.Ranks)))
		default:
			conditions = append(conditions, fmt.Sprintf("ranks>=%d", between(ranks[at-1], c.Ranks)),
				fmt.Sprintf("ranks<%d", between(c.Ranks, ranks[at+1])))
		}
		rule := c.Algorithm
		if len(conditions) > 0 {
			rule += ":" + strings.Join(conditions, "&")
		}
		rules = append(rules, rule)
	}
	return rules
}

// between returns the first number of ranks that belongs to the larger one: their geometric mean.
func between(low, high int) int {
	return int(math.Ceil(math.Sqrt(float64(low) * float64(high))))
}

// amount returns the size of a condition that tables count: a block, or all that a member contributes or receives.
func amount(kind string) string {
	switch kind {
	case dag.Allgather.String(), dag.Alltoall.String(), dag.Gather.String(), dag.Scatter.String():
		return "block"
	}
	return "size"
}
