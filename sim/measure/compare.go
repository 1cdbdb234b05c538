package measure

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"math"
	"math/big"
	"slices"

	"github.com/tracedag/tracedag/dag"
	"github.com/tracedag/tracedag/dag/attr"
	"github.com/tracedag/tracedag/sim"
)

// measured is the recorded activity of a rank: its first start and its last end, or Unmeasured.
type measured struct {
	first, last dag.Time
	steps       []stepEnd // ascending
	computed    dag.Time  // sum of the calcs without calls of MPI, if they are on one stream; otherwise negative
	excess      dag.Time  // of excluded outliers
	start       dag.Time  // predicted start
}

// stepEnd is the recorded end of the last op of a step of a rank.
type stepEnd struct {
	number int32
	last   dag.Time
}

var unmeasured = measured{first: dag.Unmeasured, last: dag.Unmeasured}

// extendStep extends a step by a recorded end.
func (m *measured) extendStep(number int32, last dag.Time) {
	if number <= 0 || last == dag.Unmeasured {
		return
	}
	at := len(m.steps) - 1
	if at < 0 || m.steps[at].number != number {
		var found bool
		at, found = slices.BinarySearchFunc(m.steps, number, func(s stepEnd, n int32) int {
			return cmp.Compare(s.number, n)
		})
		if !found {
			m.steps = slices.Insert(m.steps, at, stepEnd{number, last})
		}
	}
	m.steps[at].last = max(m.steps[at].last, last)
}

// extend extends the interval by further recorded times.
func (m *measured) extend(first, last dag.Time) {
	if first != dag.Unmeasured && (m.first == dag.Unmeasured || first < m.first) {
		m.first = first
	}
	if last != dag.Unmeasured && (m.last == dag.Unmeasured || last > m.last) {
		m.last = last
	}
}

// runTime returns the recorded duration; ok is false if it is unknown.
func (m measured) runTime() (t sim.Clock, ok bool) {
	if m.first == dag.Unmeasured || m.last == dag.Unmeasured || m.last < m.first {
		return t, false
	}
	ticks := uint64(m.last) - uint64(m.first)
	return sim.Clock{Ticks: ticks - min(ticks, uint64(m.excess)), Unit: dag.Picosecond}, true
}

// Measured is the recorded activity of the ranks.
type Measured struct {
	ranks      []measured
	resolution dag.Time // greatest common divisor of the recorded times of each rank
	outliers   []outlier
}

// MeasuredOptions are options of [MeasuredOf].
type MeasuredOptions struct {
	ExcludeOutliers bool       // subtract what the first collective of a communicator took too long
	Starts          []dag.Time // predicted starts of the ranks; nil: 0
}

// computed returns the time of all calcs of a rank outside calls of MPI, -1 if they are on several streams, where they
// may overlap.
func computed(r *dag.Rank) (sum dag.Time) {
	stream := int32(-1)
	for i := range r.Len() {
		if r.Kind[i] != dag.Calc {
			continue
		}
		t := r.CalcTime(i)
		if t == 0 {
			continue
		}
		if attrs := r.Attrs.At(i); attrs != "" && t > 0 {
			t -= min(t, dag.Time(attr.ParseCallTime(attrs)))
		}
		if on := r.Stream.At(i); stream < 0 {
			stream = on
		} else if stream != on {
			return -1
		}
		if sum += t; sum < 0 {
			return -1
		}
	}
	return sum
}

// MeasuredOf returns the recorded times of a trace. It returns an error if there are none.
func MeasuredOf(t *dag.Trace, o MeasuredOptions) (*Measured, error) {
	ranks, any := make([]measured, len(t.Ranks)), false
	resolution := dag.Time(0)
	for i := range t.Ranks {
		r := t.Ranks[i]
		ranks[i] = unmeasured
		origin := dag.Unmeasured
		for op := range max(len(r.MeasuredStart), len(r.MeasuredEnd)) {
			first, last := r.Measured(op)
			ranks[i].extend(first, last)
			for _, at := range [...]dag.Time{first, last} {
				if at == dag.Unmeasured {
					continue
				}
				if origin == dag.Unmeasured {
					origin = at
				}
				resolution = divisor(resolution, at-origin)
			}
			ranks[i].extendStep(r.Step.At(op), last)
		}
		ranks[i].computed = computed(r)
		if o.Starts != nil {
			ranks[i].start = o.Starts[i]
		}
		_, ok := ranks[i].runTime()
		any = any || ok
	}
	if !any {
		return nil, errors.New("--compare: the trace has no measured times")
	}
	m := &Measured{ranks: ranks, resolution: resolution, outliers: outliersOf(t)}
	if o.ExcludeOutliers {
		m.without(t, m.outliers)
	}
	return m, nil
}

// divisor returns the greatest common divisor of two times, which may be negative, 0 if both are 0.
func divisor(a, b dag.Time) dag.Time {
	for b != 0 {
		a, b = b, a%b
	}
	return max(a, -a)
}

// Lowered returns the recorded times for the ranks of a lowered trace, which are the ranks of the original trace before
// or one per node.
func (m *Measured) Lowered(before, lowered *dag.Trace) (*Measured, error) {
	ranks := m.ranks
	if len(lowered.Ranks) == len(ranks) && (before.Nodes == nil || slices.Equal(before.Nodes, lowered.Nodes)) {
		return m, nil
	}
	toRank, err := rankOfNode(before, len(lowered.Ranks))
	if err != nil {
		return nil, fmt.Errorf("--compare: cannot map the %d ranks of the trace to the %d ranks after --lower: %w",
			len(ranks), len(lowered.Ranks), err)
	}
	joined := slices.Repeat([]measured{unmeasured}, len(lowered.Ranks))
	for rank, one := range ranks {
		node := &joined[toRank(before.Nodes[rank])]
		if one.first != dag.Unmeasured && (node.first == dag.Unmeasured || one.start < node.start) {
			node.start = one.start
		}
		node.extend(one.first, one.last)
		node.computed = -1 // ranks of a node overlap
		node.excess = max(node.excess, one.excess)
		for _, s := range one.steps {
			node.extendStep(s.number, s.last)
		}
	}
	return &Measured{ranks: joined, resolution: m.resolution, outliers: m.outliers}, nil
}

// rankOfNode returns the mapping of nodes to the given number of ranks. If there are as many nodes as ranks, a node
// maps to its index among the sorted nodes; otherwise to the rank of its number.
func rankOfNode(t *dag.Trace, ranks int) (func(node int32) int, error) {
	if len(t.Nodes) != len(t.Ranks) {
		return nil, errors.New("the trace does not have the nodes of its ranks")
	}
	nodes := slices.Compact(slices.Sorted(slices.Values(t.Nodes)))
	if len(nodes) == ranks {
		return func(node int32) int {
			place, _ := slices.BinarySearch(nodes, node)
			return place
		}, nil
	}
	if len(nodes) > 0 && (nodes[0] < 0 || int(nodes[len(nodes)-1]) >= ranks) {
		return nil, fmt.Errorf("expected one rank per node, found %d nodes", len(nodes))
	}
	return func(node int32) int { return int(node) }, nil
}

// Compare returns an observer that compares the times of the ranks with the recorded ones and adds the section
// "compare". The ranks of a part count from the start of the part. With steps, which may be nil, it also compares the
// steps of each rank.
func (m *Measured) Compare(parts []Part, steps *Steps) Observer {
	c := &comparer{Measured: m, start: make([]dag.Time, len(m.ranks))}
	for i := range m.ranks {
		c.start[i] = m.ranks[i].start
	}
	if steps != nil {
		c.steps = &stepTimes{steps: steps}
	}
	for _, part := range parts {
		for k := range part.Ranks {
			c.start[part.FirstRank+k] += part.Start
		}
	}
	return c
}

type comparer struct {
	*Measured
	start []dag.Time // by rank: start of its job
	steps *stepTimes // nil: without
}

func (c *comparer) Begin(l *sim.Layout) {
	if c.steps != nil {
		c.steps.begin(l)
	}
}

func (c *comparer) Span(s sim.Span) {
	if c.steps != nil {
		c.steps.ended(s.Rank, s.Op, s.End)
	}
}

func (c *comparer) Transfer(sim.Transfer) {}
func (c *comparer) End() error            { return nil }

func (c *comparer) Finish(r *sim.Result) {
	compared := c.compare(r.Finish)
	r.Add(sim.Section{Key: "compare", Value: compared, Tables: func(w io.Writer) { printComparison(w, compared) }})
}

// comparison compares predicted with measured times. Errors are relative: (predicted - measured) / measured.
type comparison struct {
	Ranks   []comparedRank `json:"ranks"`
	Overall compared       `json:"overall"`       // the longest time of all ranks
	Sum     *compared      `json:"sum,omitempty"` // of all ranks
	// Communication is the time outside calcs, the sum of all ranks. It is known if each rank has calcs on one stream.
	Communication *compared `json:"communication,omitempty"`

	// Resolution is the greatest common divisor of the recorded times, counted from the first of each rank; nil: all
	// are equal.
	Resolution *dag.Time      `json:"resolution_ps,omitempty"`
	Outliers   []outlier      `json:"outliers,omitempty"`
	MeanAbs    *float64       `json:"mean_abs_error"`
	MaxAbs     *float64       `json:"max_abs_error"`
	Steps      []comparedStep `json:"steps,omitempty"`
}

// comparedStep is a step of a rank. It begins when the previous step of the rank ends, the first one with the rank.
type comparedStep struct {
	Step int32 `json:"step"`
	Rank int   `json:"rank"`
	compared
}

type comparedRank struct {
	Rank int `json:"rank"`
	compared
}

// compared is one predicted time with the measured one. Measured is nil if unknown; Error is nil if Measured is unknown
// or 0.
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
	c.sum(out)
	out.Steps, out.Outliers = c.compareSteps(finish), c.outliers
	if c.resolution > 0 {
		out.Resolution = &c.resolution
	}
	if count > 0 {
		mean := sum / float64(count)
		out.MeanAbs, out.MaxAbs = &mean, &most
	}
	return out
}

// sum adds the sums over all ranks if the times of all are known.
func (c *comparer) sum(out *comparison) {
	var total, outside [2]big.Int // measured, predicted
	apart := true                 // the time outside calcs is known
	for rank, r := range out.Ranks {
		if r.Measured == nil {
			return
		}
		calcs := c.ranks[rank].computed
		for i, t := range []sim.Clock{*r.Measured, r.Predicted} {
			total[i].Add(&total[i], exact(t))
			rest := new(big.Int).Sub(exact(t), big.NewInt(int64(calcs)))
			apart = apart && calcs >= 0 && rest.Sign() >= 0
			outside[i].Add(&outside[i], rest)
		}
	}
	out.Sum = sums(&total)
	if apart {
		out.Communication = sums(&outside)
	}
}

// sums compares two sums in picoseconds; nil if one exceeds 64 bits.
func sums(of *[2]big.Int) *compared {
	if !of[0].IsUint64() || !of[1].IsUint64() {
		return nil
	}
	c := &compared{Measured: &sim.Clock{Ticks: of[0].Uint64(), Unit: dag.Picosecond},
		Predicted: sim.Clock{Ticks: of[1].Uint64(), Unit: dag.Picosecond}}
	c.setError()
	return c
}

// compareSteps compares the steps of all ranks, by step and rank.
func (c *comparer) compareSteps(finish []sim.Clock) []comparedStep {
	if c.steps == nil {
		return nil
	}
	var all []comparedStep
	for rank := range min(len(c.steps.ends), len(c.ranks)) {
		m := &c.ranks[rank]
		recorded, known := m.first, m.first != dag.Unmeasured // end of the previous step
		begin := sim.Clock{Ticks: uint64(c.start[rank]), Unit: dag.Picosecond}
		for k, number := range c.steps.steps.ranks[rank].numbers {
			s := comparedStep{Step: number, Rank: rank}
			end := sim.Clock{Ticks: min(c.steps.ends[rank][k], finish[rank].Ticks), Unit: c.steps.unit}
			if exact(end).Cmp(exact(begin)) < 0 {
				end = begin
			}
			s.Predicted, begin = since(begin, end), end
			at, found := slices.BinarySearchFunc(m.steps, number, func(s stepEnd, n int32) int {
				return cmp.Compare(s.number, n)
			})
			if found && known {
				last := max(recorded, m.steps[at].last)
				s.Measured = &sim.Clock{Ticks: uint64(last) - uint64(recorded), Unit: dag.Picosecond}
				recorded = last
			}
			s.setError()
			all = append(all, s)
		}
	}
	slices.SortStableFunc(all, func(a, b comparedStep) int { return cmp.Compare(a.Step, b.Step) })
	return all
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

// exactRatio returns a/b; b must not be 0.
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
	if c.Sum != nil {
		fmt.Fprintf(w, "sum\t%s\n", c.Sum.row())
	}
	if c.Communication != nil {
		fmt.Fprintf(w, "non-calc\t%s\n", c.Communication.row())
	}
	if c.MeanAbs != nil {
		fmt.Fprintf(w, "\nerror of ranks\tmean of absolute values %s, largest %s\n", percent(*c.MeanAbs),
			percent(*c.MaxAbs))
	}
	if c.Resolution != nil && c.Overall.Measured != nil && c.Overall.Measured.Ticks > 0 {
		fmt.Fprintf(w, "resolution\t%v, \u00b1%s of the longest rank\n", *c.Resolution,
			percent(float64(*c.Resolution)/float64(c.Overall.Measured.Ticks)))
	}
	for _, o := range c.Outliers {
		excluded := ""
		if o.Excluded {
			excluded = ", excluded"
		}
		fmt.Fprintf(w, "outlier\t%s of communicator %d (rank %d, op %d): %v, median of %d others %v%s\n", o.Kind,
			o.Comm, o.Rank, o.Op, o.Measured, o.Others, o.Median, excluded)
	}
	c.printSteps(w)
}

// printSteps prints the steps, with the ranks if there are few rows, and the longest times of each step.
func (c *comparison) printSteps(w io.Writer) {
	if len(c.Steps) == 0 {
		return
	}
	fmt.Fprintln(w, "\nstep\trank\tmeasured\tpredicted\terror")
	for from := 0; from < len(c.Steps); {
		longest := compared{}
		to := from
		for ; to < len(c.Steps) && c.Steps[to].Step == c.Steps[from].Step; to++ {
			s := &c.Steps[to]
			if len(c.Steps) <= sim.ListedRanks {
				fmt.Fprintf(w, "%d\t%d\t%s\n", s.Step, s.Rank, s.row())
			}
			if to == from || exact(s.Predicted).Cmp(exact(longest.Predicted)) > 0 {
				longest.Predicted = s.Predicted
			}
			if s.Measured != nil && (longest.Measured == nil || s.Measured.Ticks > longest.Measured.Ticks) {
				longest.Measured = s.Measured
			}
		}
		longest.setError()
		fmt.Fprintf(w, "%d\tall\t%s\n", c.Steps[from].Step, longest.row())
		from = to
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
