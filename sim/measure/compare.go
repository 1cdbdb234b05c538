package measure

import (
	"errors"
	"fmt"
	"io"
	"math"
	"math/big"
	"slices"

	"github.com/tracedag/tracedag/dag"
	"github.com/tracedag/tracedag/sim"
)

// measured is from when to when the tracer saw a rank do something; Unmeasured where it did not.
type measured struct {
	first, last dag.Time
}

var unmeasured = measured{dag.Unmeasured, dag.Unmeasured}

// extend adds what was measured elsewhere.
func (m *measured) extend(first, last dag.Time) {
	if first != dag.Unmeasured && (m.first == dag.Unmeasured || first < m.first) {
		m.first = first
	}
	if last != dag.Unmeasured && (m.last == dag.Unmeasured || last > m.last) {
		m.last = last
	}
}

// runTime returns how long what was measured took; ok is false where nothing was.
func (m measured) runTime() (t sim.Clock, ok bool) {
	if m.first == dag.Unmeasured || m.last == dag.Unmeasured || m.last < m.first {
		return t, false
	}
	return sim.Clock{Ticks: uint64(m.last) - uint64(m.first), Unit: dag.Picosecond}, true
}

// Measured are the times of each rank that a tracer recorded.
type Measured []measured

// MeasuredOf returns the recorded times of a trace. It fails if there are none.
func MeasuredOf(t *dag.Trace) (Measured, error) {
	ranks, any := make([]measured, len(t.Ranks)), false
	for i := range t.Ranks {
		r := &t.Ranks[i]
		ranks[i] = unmeasured
		for op := range max(len(r.MeasuredStart), len(r.MeasuredEnd)) {
			ranks[i].extend(r.Measured(op))
		}
		_, ok := ranks[i].runTime()
		any = any || ok
	}
	if !any {
		return nil, errors.New("--compare: the trace has no measured times")
	}
	return ranks, nil
}

// Lowered returns the recorded times by the ranks of the trace that before was lowered to: the same ranks, or one per
// node.
func (ranks Measured) Lowered(before, lowered *dag.Trace) (Measured, error) {
	if len(lowered.Ranks) == len(ranks) && (before.Nodes == nil || slices.Equal(before.Nodes, lowered.Nodes)) {
		return ranks, nil
	}
	of, err := rankOfNode(before, len(lowered.Ranks))
	if err != nil {
		return nil, fmt.Errorf("--compare: of %d ranks, --lower made %d: %w", len(ranks), len(lowered.Ranks), err)
	}
	joined := slices.Repeat([]measured{unmeasured}, len(lowered.Ranks))
	for rank, m := range ranks {
		joined[of(before.Nodes[rank])].extend(m.first, m.last)
	}
	return joined, nil
}

// rankOfNode returns which of so many ranks stands for a node: its place among the nodes that there are, if those are
// as many, or the one of its number.
func rankOfNode(t *dag.Trace, ranks int) (func(node int32) int, error) {
	if len(t.Nodes) != len(t.Ranks) {
		return nil, errors.New("the trace does not say on which nodes its ranks run")
	}
	nodes := slices.Compact(slices.Sorted(slices.Values(t.Nodes)))
	if len(nodes) == ranks {
		return func(node int32) int {
			place, _ := slices.BinarySearch(nodes, node)
			return place
		}, nil
	}
	if len(nodes) > 0 && (nodes[0] < 0 || int(nodes[len(nodes)-1]) >= ranks) {
		return nil, fmt.Errorf("they are not those of the %d nodes", len(nodes))
	}
	return func(node int32) int { return int(node) }, nil
}

// Compare returns an observer that compares the time of each rank with the recorded one and adds the section "compare".
// Parts start at times of their own, from which the ranks of each count.
func (ranks Measured) Compare(parts []Part) Observer {
	c := &comparer{ranks: ranks, start: make([]dag.Time, len(ranks))}
	for _, part := range parts {
		for k := range part.Ranks {
			c.start[part.FirstRank+k] = part.Start
		}
	}
	return c
}

type comparer struct {
	ranks Measured
	start []dag.Time // of the job of each rank
}

func (c *comparer) Begin(*sim.Program)            {}
func (c *comparer) Span(sim.Span)                 {}
func (c *comparer) Transfer(sim.Transfer)         {}
func (c *comparer) End() error                    { return nil }
func (c *comparer) OpEnded(_, _ int, _, _ uint64) {}

func (c *comparer) Finish(r *sim.Result) {
	compared := c.compare(r.Finish)
	r.Add(sim.Section{Key: "compare", Value: compared, Tables: func(w io.Writer) { printComparison(w, compared) }})
}

// comparison is predicted against measured times. Errors are relative: (predicted - measured) / measured.
type comparison struct {
	Ranks   []comparedRank `json:"ranks"`
	Overall compared       `json:"overall"` // the longest of all ranks
	MeanAbs *float64       `json:"mean_abs_error"`
	MaxAbs  *float64       `json:"max_abs_error"`
}

type comparedRank struct {
	Rank int `json:"rank"`
	compared
}

// compared is one of these times. Measured is nil where nothing was, and Error where that took no time, too.
type compared struct {
	Measured  *sim.Clock `json:"measured_ps"`
	Predicted sim.Clock  `json:"predicted_ps"`
	Error     *float64   `json:"error"`
}

func (c *comparer) compare(finish []sim.Clock) *comparison {
	out := &comparison{Ranks: make([]comparedRank, len(finish))}
	sum, count, most := 0.0, 0, 0.0
	for rank := range finish {
		r := &out.Ranks[rank]
		r.Rank, r.Predicted = rank, since(sim.Clock{Ticks: uint64(c.start[rank]), Unit: dag.Picosecond}, finish[rank])
		if t, ok := c.ranks[rank].runTime(); ok {
			r.Measured = &t
			if out.Overall.Measured == nil || t.Ticks > out.Overall.Measured.Ticks {
				out.Overall.Measured = &t
			}
		}
		if rank == 0 || exact(r.Predicted).Cmp(exact(out.Overall.Predicted)) > 0 {
			out.Overall.Predicted = r.Predicted
		}
		if r.setError(); r.Error != nil {
			sum, count, most = sum+math.Abs(*r.Error), count+1, max(most, math.Abs(*r.Error))
		}
	}
	out.Overall.setError()
	if count > 0 {
		mean := sum / float64(count)
		out.MeanAbs, out.MaxAbs = &mean, &most
	}
	return out
}

func (c *compared) setError() {
	if c.Measured == nil || c.Measured.Ticks == 0 {
		return
	}
	quotient := exactRatio(c.Predicted, *c.Measured)
	e, _ := quotient.Sub(quotient, big.NewRat(1, 1)).Float64()
	c.Error = &e
}

// exact returns a clock in picoseconds.
func exact(c sim.Clock) *big.Int {
	ps := new(big.Int).SetUint64(c.Ticks)
	return ps.Mul(ps, big.NewInt(int64(c.Unit)))
}

// exactRatio returns a by b, which is not 0.
func exactRatio(a, b sim.Clock) *big.Rat {
	return new(big.Rat).SetFrac(exact(a), exact(b))
}

// printComparison prints a table of predicted and measured times.
func printComparison(w io.Writer, c *comparison) {
	fmt.Fprintln(w, "\nrank\tmeasured\tpredicted\terror")
	if len(c.Ranks) <= sim.ListedRanks {
		for _, r := range c.Ranks {
			fmt.Fprintf(w, "%d\t%s\n", r.Rank, r.row())
		}
	}
	fmt.Fprintf(w, "all\t%s\n", c.Overall.row())
	if c.MeanAbs != nil {
		fmt.Fprintf(w, "\nerror of ranks\tmean %s, at most %s, either way\n", percent(*c.MeanAbs), percent(*c.MaxAbs))
	}
}

func (c *compared) row() string {
	took, off := "", ""
	if c.Measured != nil {
		took = c.Measured.String()
	}
	if c.Error != nil {
		off = percent(*c.Error)
	}
	return fmt.Sprintf("%s\t%v\t%s", took, c.Predicted, off)
}

func percent(v float64) string {
	return fmt.Sprintf("%.2f%%", 100*v)
}
