package graph500

// Processes with query times of their own.

import (
	"cmp"
	"fmt"
	"math/big"
	"math/bits"
	"slices"
	"strconv"
	"strings"

	"github.com/tracedag/tracedag/dag"
	"github.com/tracedag/tracedag/internal/units"
)

// Span is the processes First to Last, both included.
type Span struct{ First, Last int }

// Group is a set of processes with a query time of its own. Amounts of queries do not depend on it.
type Group struct {
	Processes []Span
	QueryTime dag.Time // if Factor is nil

	// Factor is a capability from 0.01 to 100 with at most 6 decimals: the processes take Params.QueryTime divided by
	// it, and their injection probability is multiplied by it. nil: QueryTime counts.
	Factor *big.Rat
}

// maxGroups bounds the spans of all groups, which come from a command line.
const maxGroups = 1 << 12

// String returns the group as in the flag, such as 0-3+7=x0.5.
func (g Group) String() string {
	var spans []string
	for _, s := range g.Processes {
		spans = append(spans, s.String())
	}
	value := g.QueryTime.String()
	if g.Factor != nil {
		value = "x" + strings.TrimRight(strings.TrimRight(g.Factor.FloatString(6), "0"), ".")
	}
	return strings.Join(spans, "+") + "=" + value
}

// String returns the span as in the flag, such as 0-3.
func (s Span) String() string {
	if s.First == s.Last {
		return strconv.Itoa(s.First)
	}
	return fmt.Sprintf("%d-%d", s.First, s.Last)
}

// pace is the query time of a process: a fraction of picoseconds.
type pace struct{ time, divisor int64 }

// pace returns the query time of a group, given the base.
func (g *Group) pace(base dag.Time) pace {
	if g.Factor == nil {
		return pace{int64(g.QueryTime), 1}
	}
	time := int64(base)
	num, den := g.Factor.Num().Int64(), g.Factor.Denom().Int64()
	if common := gcd(time, num); common > 1 {
		time, num = time/common, num/common
	}
	return pace{time * den, num}
}

func gcd(a, b int64) int64 {
	for b != 0 {
		a, b = b, a%b
	}
	return a
}

// picoseconds returns the query time as a real number.
func (c pace) picoseconds() float64 { return float64(c.time) / float64(c.divisor) }

// of returns the time of some queries, rounded up to whole picoseconds.
func (c pace) of(queries int64) dag.Time {
	high, low := bits.Mul64(uint64(c.time), uint64(queries))
	low, carry := bits.Add64(low, uint64(c.divisor-1), 0)
	whole, _ := bits.Div64(high+carry, low, uint64(c.divisor))
	return dag.Time(whole)
}

// paceOf returns the query time of a process.
func (p *Params) paceOf(process int) pace {
	for i := range p.Groups {
		for _, s := range p.Groups[i].Processes {
			if s.First <= process && process <= s.Last {
				return p.Groups[i].pace(p.QueryTime)
			}
		}
	}
	return pace{int64(p.QueryTime), 1}
}

// differing returns the groups whose query time is another than the base, as in the flag.
func (p *Params) differing() (texts []string) {
	for i := range p.Groups {
		if c := p.Groups[i].pace(p.QueryTime); c != (pace{int64(p.QueryTime), 1}) {
			texts = append(texts, p.Groups[i].String())
		}
	}
	return texts
}

// checkGroups returns an error that names the first group with a wrong process or query time.
func (p *Params) checkGroups() error {
	type member struct {
		Span
		group int
	}
	var all []member
	for i := range p.Groups {
		g := &p.Groups[i]
		if err := p.checkGroup(g); err != nil {
			return fmt.Errorf("query-time %q: %w", g, err)
		}
		for _, s := range g.Processes {
			all = append(all, member{s, i})
		}
	}
	slices.SortStableFunc(all, func(a, b member) int { return cmp.Compare(a.First, b.First) })
	for i := 1; i < len(all); i++ {
		if before, at := all[i-1], all[i]; at.First <= before.Last {
			return fmt.Errorf("query-time %q: process %d is also in %q, expected each process once",
				p.Groups[at.group], at.First, p.Groups[before.group])
		}
	}
	return nil
}

func (p *Params) checkGroup(g *Group) error {
	if len(g.Processes) == 0 {
		return fmt.Errorf("no processes, expected such as 0-3+7")
	}
	for _, s := range g.Processes {
		switch {
		case s.First > s.Last:
			return fmt.Errorf("the range %d-%d is empty, expected the lower number first", s.First, s.Last)
		case s.First < 0 || s.Last >= p.Nodes:
			return fmt.Errorf("processes %v, expected 0..%d, as there are %d", s, p.Nodes-1, p.Nodes)
		}
	}
	if g.Factor != nil {
		if err := checkFactor(g.Factor); err != nil {
			return err
		}
	} else if g.QueryTime < 0 || g.QueryTime > maxTime {
		return fmt.Errorf("the time is %v, expected 0s..%v", g.QueryTime, maxTime)
	}
	if c := g.pace(p.QueryTime); c.picoseconds() > float64(dag.MaxTime)/64/float64(p.Coalescing) {
		return fmt.Errorf("a message of %d queries takes more than %v, expected less or fewer queries",
			p.Coalescing, dag.MaxTime/64)
	}
	return nil
}

// checkFactor bounds a factor, so that sums of fractions with its numbers fit.
func checkFactor(f *big.Rat) error {
	const decimals = 1_000_000
	least, most := big.NewRat(1, 100), big.NewRat(100, 1)
	if f.Cmp(least) < 0 || f.Cmp(most) > 0 {
		return fmt.Errorf("the factor is %s, expected 0.01..100", f.FloatString(6))
	}
	if scaled := new(big.Rat).Mul(f, big.NewRat(decimals, 1)); !scaled.IsInt() {
		return fmt.Errorf("the factor is %s, expected at most 6 decimals", f.FloatString(9))
	}
	return nil
}

// queryTimes is the text of Params.QueryTime and Params.Groups: a time or machine, then groups.
type queryTimes Params

// MarshalText returns the base and the groups.
func (q *queryTimes) MarshalText() ([]byte, error) {
	text := q.QueryTime.String()
	for _, g := range q.Groups {
		text += "," + g.String()
	}
	return []byte(text), nil
}

// UnmarshalText parses the base and the groups.
func (q *queryTimes) UnmarshalText(text []byte) error {
	pieces := strings.Split(string(text), ",")
	if strings.Contains(pieces[0], "=") {
		return fmt.Errorf("%q, expected first the time or machine of all other processes, "+
			"such as altamira,%s", pieces[0], pieces[0])
	}
	base, err := parseQueryTime(pieces[0])
	if err != nil {
		return err
	}
	var groups []Group
	spans := 0
	for _, piece := range pieces[1:] {
		g, err := parseGroup(piece)
		if err != nil {
			return fmt.Errorf("%q: %w", piece, err)
		}
		if spans += len(g.Processes); spans > maxGroups {
			return fmt.Errorf("more than %d ranges of processes", maxGroups)
		}
		groups = append(groups, g)
	}
	q.QueryTime, q.Groups = base, groups
	return nil
}

// parseGroup parses such as 0-3+7=2ns, 4=mont-blanc or 5-6=x0.5.
func parseGroup(text string) (g Group, err error) {
	ranges, value, found := strings.Cut(text, "=")
	if !found {
		return g, fmt.Errorf("expected RANGES=TIME, RANGES=MACHINE or RANGES=xFACTOR, such as 0-3+7=x0.5")
	}
	for piece := range strings.SplitSeq(ranges, "+") {
		span, err := parseSpan(piece)
		if err != nil {
			return g, err
		}
		g.Processes = append(g.Processes, span)
	}
	factor, isFactor := strings.CutPrefix(value, "x")
	if !isFactor {
		g.QueryTime, err = parseQueryTime(value)
		return g, err
	}
	const longest = 20
	if len(factor) > longest || strings.ContainsAny(factor, "eEpP/_xX") {
		return g, fmt.Errorf("factor %.20q, expected a decimal number from 0.01 to 100", factor)
	}
	if g.Factor, isFactor = new(big.Rat).SetString(factor); !isFactor {
		return g, fmt.Errorf("factor %q, expected a decimal number from 0.01 to 100", factor)
	}
	return g, checkFactor(g.Factor)
}

func parseSpan(text string) (s Span, err error) {
	first, last, isRange := strings.Cut(text, "-")
	if !isRange {
		last = first
	}
	a, errA := strconv.ParseUint(first, 10, 31)
	b, errB := strconv.ParseUint(last, 10, 31)
	if errA != nil || errB != nil {
		return s, fmt.Errorf("%q, expected the number of a process or a range such as 0-3", text)
	}
	if a > b {
		return s, fmt.Errorf("the range %q is empty, expected the lower number first", text)
	}
	return Span{int(a), int(b)}, nil
}

// parseQueryTime parses a time or the name of a machine.
func parseQueryTime(text string) (dag.Time, error) {
	for _, m := range Machines {
		if strings.EqualFold(text, m.Name) {
			return m.QueryTime, nil
		}
	}
	t, err := units.ParseTime(text, 0)
	if err != nil {
		return 0, fmt.Errorf("%w, or one of %s", err, strings.Join(machineNames(), ", "))
	}
	return t, nil
}

func machineNames() (names []string) {
	for _, m := range Machines {
		names = append(names, m.Name)
	}
	return names
}
