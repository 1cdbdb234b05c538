package calibrate

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/tracedag/tracedag/dag"
	gen "github.com/tracedag/tracedag/dag/gen/collective"
	"github.com/tracedag/tracedag/dag/lower/collective"
	"github.com/tracedag/tracedag/internal/par"
	"github.com/tracedag/tracedag/sim/fit"
)

// replayer returns when each rank of a trace of sends, receives and calcs finishes, in seconds. Calls may be
// concurrent.
type replayer func(ctx context.Context, t *dag.Trace) ([]float64, error)

// unknown is the error of the best algorithm from which none is taken for the measured one.
const unknown = 0.1

// near is the difference of errors that does not decide between two algorithms: the one of the neighboring sizes stays.
const near = 0.005

// Limits of a measurement that is predicted.
const (
	maxRanks    = 4096
	maxMessages = 4 << 20 // of the algorithm with most, about ranks squared
)

// identify finds the algorithms of the measured collectives, by collective and number of ranks, with a range of sizes
// for each: it predicts each time with every algorithm and selects the one with the smallest error. Remarks name
// measurements that it cannot use.
func identify(ctx context.Context, rows []fit.Measurement, threads int, time replayer) (found []fit.Choice,
	remarks []string, err error) {
	groups := map[group][]fit.Measurement{}
	var order []group
	unused := map[string]int{}
	for _, m := range rows {
		kind, known := subkind(m.Test)
		switch {
		case !known:
			if !m.Used() {
				unused[fmt.Sprintf("the test %q", m.Test)]++
			}
		case m.Ranks == 0:
			unused[m.Test+" without a number of ranks"]++
		case m.Ranks == 1:
			unused[m.Test+" on 1 rank"]++
		case m.Ranks > maxRanks || m.Ranks*m.Ranks > maxMessages:
			unused[fmt.Sprintf("%s on %d ranks", m.Test, m.Ranks)]++
		default:
			g := group{kind, m.Ranks}
			if groups[g] == nil {
				order = append(order, g)
			}
			groups[g] = append(groups[g], m)
		}
	}
	for _, g := range order {
		choices, unpredicted, err := g.identify(ctx, groups[g], threads, time)
		if err != nil {
			return nil, nil, fmt.Errorf("%v on %d ranks: %w", g.kind, g.ranks, err)
		}
		if unpredicted > 0 {
			unused[fmt.Sprintf("%v on %d ranks, which no algorithm can predict,", g.kind, g.ranks)] = unpredicted
		}
		found = append(found, choices...)
	}
	for what, n := range unused {
		text := "%d measurements of %s are not used"
		if n == 1 {
			text = "%d measurement of %s is not used"
		}
		remarks = append(remarks, fmt.Sprintf(text, n, what))
	}
	slices.Sort(remarks)
	return found, remarks, nil
}

// group are the measurements of a collective on a number of ranks.
type group struct {
	kind  dag.Subkind
	ranks int
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
func (g group) size(bytes int64) int64 {
	if g.kind == dag.Alltoall || g.kind == dag.Scatter {
		return bytes * int64(g.ranks)
	}
	return bytes
}

// identify selects an algorithm per size and joins neighboring sizes with the same one. It skips the measurements whose
// times no algorithm predicts, such as those of sizes beyond the limits of traces, and returns their number.
func (g group) identify(ctx context.Context, rows []fit.Measurement, threads int, time replayer) (choices []fit.Choice,
	unpredicted int, err error) {
	slices.SortStableFunc(rows, func(a, b fit.Measurement) int { return cmp.Compare(a.Bytes, b.Bytes) })
	algorithms := collective.AlgorithmNames(g.kind)
	errors := make([][]float64, len(rows)) // relative, by measurement and algorithm
	for i := range errors {
		errors[i] = make([]float64, len(algorithms))
	}
	err = par.EachOn(threads, len(rows)*len(algorithms), func(n int) error {
		i, a := n/len(algorithms), n%len(algorithms)
		e, err := g.predict(ctx, rows[i], algorithms[a], time)
		if err != nil {
			e = math.Inf(1) // an algorithm that does not apply, such as one for powers of two
		}
		errors[i][a] = e
		return ctx.Err()
	})
	if err != nil {
		return nil, 0, err
	}
	var best []int // by measurement that is kept
	for i := range rows {
		b := smallest(errors[i], -1)
		if math.IsInf(errors[i][b], 0) {
			unpredicted++
			continue
		}
		rows[len(best)], errors[len(best)] = rows[i], errors[i]
		best = append(best, b)
	}
	rows = rows[:len(best)]
	// A neighbor's algorithm that is as good keeps ranges whole.
	for i := 1; i < len(rows); i++ {
		if b := best[i-1]; math.Abs(errors[i][b]) <= math.Abs(errors[i][best[i]])+near {
			best[i] = b
		}
	}
	for i := len(rows) - 2; i >= 0; i-- {
		if b := best[i+1]; math.Abs(errors[i][b]) <= math.Abs(errors[i][best[i]])+near {
			best[i] = b
		}
	}
	for i := 0; i < len(rows); {
		end := i + 1
		for end < len(rows) && best[end] == best[i] {
			end++
		}
		c := fit.Choice{Collective: g.kind.String(), Ranks: g.ranks, From: rows[i].Bytes, To: rows[end-1].Bytes,
			Algorithm: algorithms[best[i]]}
		worst := make([]float64, len(algorithms))
		for _, row := range errors[i:end] {
			for a, e := range row {
				if math.Abs(e) > math.Abs(worst[a]) {
					worst[a] = e
				}
			}
		}
		c.Error = worst[best[i]]
		if second := smallest(worst, best[i]); second >= 0 && !math.IsInf(worst[second], 0) {
			c.RunnerUp, c.RunnerUpError = algorithms[second], worst[second]
		}
		c.None = math.Abs(c.Error) > unknown
		choices = append(choices, c)
		i = end
	}
	return choices, unpredicted, nil
}

// smallest returns the index of the smallest absolute value but for one index, -1 if there is none.
func smallest(values []float64, but int) int {
	at := -1
	for i, v := range values {
		if i != but && (at < 0 || math.Abs(v) < math.Abs(values[at])) {
			at = i
		}
	}
	return at
}

// predict returns the relative error of the time of a collective with an algorithm. The time is the longest of all
// ranks, from the end of a barrier, as benchmarks measure it. Ranks leave a barrier at different times, which depend on
// what the benchmark did before, and collectives of small messages show that. So the error is 0 if the measured time is
// between the predictions for several histories, and else the distance to the nearest one.
func (g group) predict(ctx context.Context, m fit.Measurement, algorithm string, time replayer) (float64, error) {
	choice, err := collective.ParseChoice(g.kind.String() + "=" + algorithm)
	if err != nil {
		return 0, err
	}
	p := gen.Default()
	p.Type, p.Size, p.Ranks = g.kind, g.size(m.Bytes), g.ranks
	source, err := gen.NewSource(p)
	if err != nil {
		return 0, err
	}
	measured, err := dag.ReadAll(source)
	if err != nil {
		return 0, err
	}
	least, most := math.Inf(1), 0.0
	for h := range histories {
		begin, err := g.time(ctx, measured, h, false, choice, time)
		if err != nil {
			return 0, err
		}
		end, err := g.time(ctx, measured, h, true, choice, time)
		if err != nil {
			return 0, err
		}
		longest := 0.0
		for r := range end {
			longest = max(longest, end[r]-begin[r])
		}
		least, most = min(least, longest), max(most, longest)
	}
	switch {
	case m.Seconds < least:
		return least/m.Seconds - 1, nil
	case m.Seconds > most:
		return most/m.Seconds - 1, nil
	}
	return 0, nil
}

// history is what a benchmark does before the barrier and the measured collective.
type history uint8

const (
	nothing   history = iota
	repeated          // the same collective
	reduced           // the same collective, and an allreduce of its time
	histories         // number of histories
)

// time returns when ranks finish a history, a barrier and, with the call, the measured collective.
func (g group) time(ctx context.Context, measured *dag.Trace, h history, call bool, choice collective.Choice,
	time replayer) ([]float64, error) {
	b := dag.NewBuilder(g.ranks)
	for r := range g.ranks {
		rank := b.Rank(r)
		add := func(op dag.Op) {
			if op.Stream = 0; rank.Len() > 0 {
				rank.Add(op, rank.Len()-1)
			} else {
				rank.Add(op)
			}
		}
		collective := func(kind dag.Subkind, bytes int64) {
			add(dag.Op{Kind: dag.Coll, Subkind: kind, Bytes: bytes, Peer: -1})
		}
		if h != nothing {
			collective(dag.Barrier, 0)
			add(measured.Ranks[r].Op(0))
		}
		if h == reduced {
			collective(dag.Allreduce, 8)
		}
		collective(dag.Barrier, 0)
		if call {
			add(measured.Ranks[r].Op(0))
		}
	}
	if err := b.Err(); err != nil {
		return nil, err
	}
	trace, err := collective.Lower(ctx, b.Trace(), choice)
	if err != nil {
		return nil, err
	}
	return time(ctx, trace)
}

// expression returns the choices as a value of --collective. Choices of several numbers of ranks have conditions on it.
// Sizes without an algorithm have no rule, so that the default table decides.
func expression(choices []fit.Choice) string {
	var entries []string
	for len(choices) > 0 {
		kind := choices[0].Collective
		n := slices.IndexFunc(choices, func(c fit.Choice) bool { return c.Collective != kind })
		if n < 0 {
			n = len(choices)
		}
		if rules := rules(choices[:n]); len(rules) > 0 {
			entries = append(entries, kind+"="+strings.Join(rules, ","))
		}
		choices = choices[n:]
	}
	return strings.Join(entries, ";")
}

// rules returns the rules of the choices of a collective.
func rules(choices []fit.Choice) (rules []string) {
	several := choices[0].Ranks != choices[len(choices)-1].Ranks
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
		if several {
			conditions = append(conditions, fmt.Sprintf("ranks<=%d", c.Ranks), fmt.Sprintf("ranks>=%d", c.Ranks))
		}
		rule := c.Algorithm
		if len(conditions) > 0 {
			rule += ":" + strings.Join(conditions, "&")
		}
		rules = append(rules, rule)
	}
	return rules
}

// amount returns the size of a condition that tables count: a block, or all that a member contributes or receives.
func amount(kind string) string {
	switch kind {
	case dag.Allgather.String(), dag.Alltoall.String(), dag.Gather.String(), dag.Scatter.String():
		return "block"
	}
	return "size"
}
