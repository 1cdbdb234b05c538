// Node matrices: the part of all bytes from each node to each other.

package matrix

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"

	"github.com/tracedag/tracedag/dag/attr"
)

// Matrix is the part of all bytes that each node sends to each other: Cells[source*N+destination]. The parts are 0 or
// more, 0 from a node to itself, and their sum is 1.
type Matrix struct {
	N     int
	Cells []float64
	Racks attr.Racks // of the nodes; nil: unknown
}

// Recipe is a recipe for a node matrix. All matrices are symmetric.
type Recipe struct {
	Kind string // one of Kinds
	// Kinds nodes and pairs: the skewed ones. List has their numbers, those of pairs as lower*N+higher; or Count or
	// Fraction is the number of drawn ones. If all are empty, the number is drawn, too: between 10 and 30 % of all.
	List     [][2]int // nodes have twice the same number
	Count    int
	Fraction float64 // of all nodes or pairs; the number is rounded up

	// Replacement draws nodes with replacement: those drawn again count once, so that there are fewer skewed nodes with
	// less than Share. TrafPy did that until October 2022 (commit ece465a), also for its measurements of packing.
	Replacement bool

	// The probability of each skewed node or pair: P in the order of List, or Share for all together. If both are
	// empty, the sum is drawn: between 50 and 80 % of all bytes for nodes, between 30 and 50 % for pairs.
	P     []float64
	Share float64
}

// Kinds returns the kinds of node matrix.
func Kinds() []string {
	return []string{"uniform", "multinomial", "nodes", "pairs"}
}

// ParseRecipe parses a recipe: "uniform", "multinomial", "nodes:fraction=0.2,share=0.55",
// "nodes:fraction=0.2,share=0.55,replacement=true", "nodes:list=3/7,p=0.2/0.1",
// "pairs:count=10,share=0.4", "pairs:list=0-1/4-9".
func ParseRecipe(text string) (*Recipe, error) {
	kind, rest, _ := strings.Cut(text, ":")
	l := &Recipe{Kind: kind}
	if !slices.Contains(Kinds(), kind) {
		return nil, fmt.Errorf("expected one of %s, found %q", strings.Join(Kinds(), ", "), kind)
	}
	skewed := kind == "nodes" || kind == "pairs"
	err := eachSetting(rest, func(key, value string) (err error) {
		switch {
		case key == "count" && skewed:
			if l.Count, err = strconv.Atoi(value); err != nil || l.Count < 1 {
				return fmt.Errorf("expected a number of %s, 1 or more", kind)
			}
		case key == "fraction" && skewed:
			l.Fraction, err = fraction(value)
		case key == "share" && skewed:
			l.Share, err = fraction(value)
		case key == "replacement" && kind == "nodes":
			l.Replacement, err = strconv.ParseBool(value)
			if err != nil {
				return errors.New("expected true or false")
			}
		case key == "p" && skewed:
			l.P, err = numbers(value)
		case key == "list" && skewed:
			l.List, err = parseList(value, kind)
		default:
			return fmt.Errorf("%s has no parameter %q", kind, key)
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	return l, l.check()
}

func fraction(text string) (float64, error) {
	v, err := number(text)
	if err == nil && !(v > 0 && v <= 1) {
		err = fmt.Errorf("expected above 0 and at most 1")
	}
	return v, err
}

// parseList reads nodes such as 3/7, or pairs such as 0-1/4-9.
func parseList(text, kind string) ([][2]int, error) {
	var list [][2]int
	for part := range strings.SplitSeq(text, "/") {
		low, high, isPair := strings.Cut(part, "-")
		if !isPair {
			high = low
		}
		a, err := strconv.ParseUint(low, 10, 31)
		b, err2 := strconv.ParseUint(high, 10, 31)
		if err != nil || err2 != nil || isPair != (kind == "pairs") || isPair && a == b {
			return nil, fmt.Errorf("expected %s such as %s", kind, map[string]string{"nodes": "3/7",
				"pairs": "0-1/4-9"}[kind])
		}
		list = append(list, [2]int{int(min(a, b)), int(max(a, b))})
	}
	sorted := slices.SortedFunc(slices.Values(list), func(a, b [2]int) int { return slices.Compare(a[:], b[:]) })
	if len(slices.Compact(sorted)) < len(list) {
		return nil, fmt.Errorf("expected distinct %s", kind)
	}
	return list, nil
}

func (l *Recipe) check() error {
	given := 0
	for _, is := range []bool{len(l.List) > 0, l.Count > 0, l.Fraction > 0} {
		if is {
			given++
		}
	}
	total := 0.0
	for _, p := range l.P {
		if !(p > 0) {
			return fmt.Errorf("p is %v, expected above 0", p)
		}
		total += p
	}
	switch {
	case l.Replacement && len(l.List) > 0:
		return errors.New("replacement needs drawn nodes, found a list")
	case given > 1:
		return fmt.Errorf("expected one of list, count and fraction")
	case len(l.P) > 0 && l.Share > 0:
		return fmt.Errorf("expected one of p and share")
	case len(l.P) > 0 && len(l.P) != len(l.List):
		return fmt.Errorf("expected %d values of p, one for each of the list of %s, found %d",
			len(l.List), l.Kind, len(l.P))
	case total > 1+1e-9:
		return fmt.Errorf("the sum of p is %v, expected at most 1", total)
	}
	return nil
}

// Matrix returns the node matrix of n nodes.
func (l *Recipe) Matrix(n int, random *rand.Rand) (*Matrix, error) {
	m := newMatrix(n)
	pairs := n * (n - 1) / 2
	switch l.Kind {
	case "uniform":
		m.eachPair(func(p *float64, _, _ int) { *p = 0.5 / float64(pairs) })
	case "multinomial":
		m.throw(500, pairs, 0.5, random)
	default:
		if err := l.skew(m, random); err != nil {
			return nil, err
		}
	}
	m.mirror()
	m.normalise()
	return m, nil
}

func newMatrix(n int) *Matrix {
	return &Matrix{N: n, Cells: make([]float64, n*n)}
}

// eachPair calls f with the cells above the diagonal, row by row.
func (m *Matrix) eachPair(f func(p *float64, i, j int)) {
	for i := range m.N {
		for j := i + 1; j < m.N; j++ {
			f(&m.Cells[i*m.N+j], i, j)
		}
	}
}

// mirror copies the cells above the diagonal to below it.
func (m *Matrix) mirror() {
	m.eachPair(func(p *float64, i, j int) { m.Cells[j*m.N+i] = *p })
}

// normalise sets cells below 0 to 0 and scales the sum of all cells to 1. It returns the number of cells below 0.
func (m *Matrix) normalise() (below int) {
	total := 0.0
	for i, v := range m.Cells {
		if v < 0 {
			m.Cells[i] = 0
			below++
			continue
		}
		total += v
	}
	for i := range m.Cells {
		m.Cells[i] /= total
	}
	return below
}

// throw distributes mass over the pairs that have none yet, by a multinomial draw.
func (m *Matrix) throw(balls, pairs int, mass float64, random *rand.Rand) {
	hits := make([]uint32, pairs)
	for range balls {
		hits[random.IntN(pairs)]++
	}
	at := 0
	m.eachPair(func(p *float64, _, _ int) {
		if *p == 0 {
			*p = float64(hits[at]) / float64(balls) * mass
			at++
		}
	})
}

// skew assigns the bytes of the skewed nodes or pairs, and throws the rest at the other pairs.
func (l *Recipe) skew(m *Matrix, random *rand.Rand) error {
	chosen, drawn, err := l.choose(m.N, random)
	if err != nil {
		return err
	}
	for i, c := range chosen {
		p := l.probability(i, drawn, random)
		if c[0] != c[1] {
			m.Cells[c[0]*m.N+c[1]] += p / 2
			continue
		}
		for other := range m.N {
			if other != c[0] {
				m.Cells[min(c[0], other)*m.N+max(c[0], other)] += p / float64(m.N-1) / 2
			}
		}
	}
	total, empty := 0.0, 0
	m.eachPair(func(p *float64, _, _ int) {
		total += *p
		if *p == 0 {
			empty++
		}
	})
	if total < 0.5 && empty > 0 {
		m.throw(100*empty, empty, 0.5-total, random)
	}
	return nil
}

// choose returns the skewed nodes or pairs, and the number of draws, which is larger if some are drawn again.
func (l *Recipe) choose(n int, random *rand.Rand) (chosen [][2]int, draws int, err error) {
	all := n
	if l.Kind == "pairs" {
		all = n * (n - 1) / 2
	}
	count := l.Count
	switch {
	case len(l.List) > 0:
		for _, c := range l.List {
			if c[1] >= n {
				return nil, 0, fmt.Errorf("the list of skewed %s has node %d, expected 0..%d", l.Kind, c[1], n-1)
			}
		}
		return l.List, len(l.List), nil
	case l.Fraction > 0:
		count = int(math.Ceil(float64(l.Fraction*float64(all)) - 1e-9))
	case count == 0:
		least, most := int(math.Ceil(float64(all)/10)), int(0.3*float64(all))
		count = least + random.IntN(max(1, most-least+1))
	case count > all:
		return nil, 0, fmt.Errorf("%d skewed %s, expected 1..%d", count, l.Kind, all)
	}
	if l.Replacement {
		drawn := make([]bool, all)
		for range count {
			k := random.IntN(all)
			if !drawn[k] {
				chosen = append(chosen, [2]int{k, k})
			}
			drawn[k] = true
		}
		return chosen, count, nil
	}
	chosen = make([][2]int, count)
	for i, k := range distinct(count, all, random) {
		chosen[i] = [2]int{k, k}
		if l.Kind == "pairs" {
			chosen[i] = pairOf(k, n)
		}
	}
	return chosen, count, nil
}

// distinct returns k of the numbers 0..n-1, drawn without replacement.
func distinct(k, n int, random *rand.Rand) []int {
	numbers := make([]int, n)
	for i := range numbers {
		numbers[i] = i
	}
	for i := range k {
		other := i + random.IntN(n-i)
		numbers[i], numbers[other] = numbers[other], numbers[i]
	}
	return numbers[:k]
}

// pairOf returns pair k above the diagonal, counted row by row.
func pairOf(k, n int) [2]int {
	i := 0
	for row := n - 1; k >= row; row-- {
		k -= row
		i++
	}
	return [2]int{i, i + 1 + k}
}

// probability returns the probability of skewed node or pair i of k.
func (l *Recipe) probability(i, k int, random *rand.Rand) float64 {
	switch {
	case len(l.P) > 0:
		return l.P[i]
	case l.Share > 0:
		return l.Share / float64(k)
	case l.Kind == "nodes":
		return (0.5 + 0.3*random.Float64()) / float64(k)
	}
	return (0.3 + 0.2*random.Float64()) / float64(k)
}

// Rack returns the rack of a node. Racks have consecutive nodes; their sizes differ by at most one.
func Rack(node, nodes, racks int) int {
	return node * racks / nodes
}

// racksOf returns the racks of nodes.
func racksOf(nodes, racks int) (firsts attr.Racks) {
	for node := range nodes {
		if Rack(node, nodes, racks) == len(firsts) {
			firsts = append(firsts, node)
		}
	}
	return firsts
}

// shareRacks moves bytes between pairs within a rack and pairs across racks, so that the latter have the part inter of
// all. The reference leaves cells below 0 if a pair would lose more than it has, and then misses inter. Here these
// cells become 0, and the other cells of each kind are scaled to the kind's part. It returns the number of cells below
// 0.
func (m *Matrix) shareRacks(racks int, inter float64) (below int) {
	total, count := [2]float64{}, [2]int{} // of pairs within a rack, and across racks
	class := func(i, j int) int {
		if Rack(i, m.N, racks) == Rack(j, m.N, racks) {
			return 0
		}
		return 1
	}
	m.eachPair(func(p *float64, i, j int) {
		total[class(i, j)] += *p
		count[class(i, j)]++
	})
	more := inter/2 - total[1]
	steps := [2]float64{-more / float64(count[0]), more / float64(count[1])}
	var largest [2]*maxHeap
	m.eachPair(func(p *float64, i, j int) {
		c := class(i, j)
		if *p+steps[c] >= 0 {
			*p += steps[c]
			return
		}
		if largest[c] == nil {
			largest[c] = m.byValue(func(i, j int) bool { return class(i, j) == c })
		}
		m.reduceLargest(largest[c], steps[c])
	})
	all := 0.0
	m.eachPair(func(p *float64, _, _ int) { all += *p })
	shift := (0.5 - all) / float64(count[0]+count[1])
	m.eachPair(func(p *float64, _, _ int) { *p += shift })
	kept := [2]float64{}
	m.eachPair(func(p *float64, i, j int) {
		if *p < 0 {
			*p = 0
			below += 2
		}
		kept[class(i, j)] += *p
	})
	wanted := [2]float64{(1 - inter) / 2, inter / 2}
	m.eachPair(func(p *float64, i, j int) {
		if c := class(i, j); kept[c] > 0 {
			*p *= wanted[c] / kept[c]
		} else {
			*p = wanted[c] / float64(count[c])
		}
	})
	m.mirror()
	return below
}

// byValue returns a heap of the pairs of a class by their values, none below 0.
func (m *Matrix) byValue(class func(i, j int) bool) *maxHeap {
	h := newMaxHeap(0)
	m.eachPair(func(p *float64, i, j int) {
		if class(i, j) {
			h.keys = append(h.keys, int64(math.Float64bits(*p)))
			h.items = append(h.items, int32(i*m.N+j))
		}
	})
	h.order()
	return &h
}

// reduceLargest adds a negative step to the largest pair of a heap, which may hold outdated larger values.
func (m *Matrix) reduceLargest(h *maxHeap, step float64) {
	for {
		item := h.items[0]
		if now := int64(math.Float64bits(m.Cells[item])); now != h.keys[0] {
			h.sink(0, now, item)
			continue
		}
		m.Cells[item] = max(0, m.Cells[item]+step)
		h.sink(0, int64(math.Float64bits(m.Cells[item])), item)
		return
	}
}

// overloaded returns a node that would send or receive more than its capacity at the given total rate, both in bytes
// per microsecond, and its rate; -1 if there is none.
func (m *Matrix) overloaded(rate, capacity float64) (node int, load float64) {
	c := newCorrection(m, rate, capacity)
	for node := range m.N {
		if load := c.load(node); load > capacity {
			return node, load
		}
	}
	return -1, 0
}

// correct moves the excess of nodes above their capacity to other nodes, until no node is above its capacity. The sum
// of the matrix may then be less than 1.
func (m *Matrix) correct(rate, capacity float64) {
	c := newCorrection(m, rate, capacity)
	for again := true; again; {
		again = false
		for node := range m.N {
			if load := c.load(node); load > capacity {
				c.fill(node, load)
				again = true
			}
		}
	}
	for i := range m.Cells {
		switch source, destination := i/m.N, i%m.N; {
		case source == destination:
		case c.full[source] || c.full[destination]:
			m.Cells[i] = c.cell
		default:
			m.Cells[i] += c.gained
		}
	}
}

// correction is the state of correct. All pairs of nodes below capacity gain the same amount.
type correction struct {
	m              *Matrix
	rate, capacity float64
	cell           float64   // value of every pair with a node at capacity
	gained         float64   // by every other pair
	full           []bool    // nodes at capacity
	fullNodes      int       // number of nodes at capacity
	sent, received []float64 // initial values of each other node with others still below capacity
}

func newCorrection(m *Matrix, rate, capacity float64) *correction {
	c := &correction{
		m: m, rate: rate, capacity: capacity, cell: capacity / rate / float64(m.N-1),
		full: make([]bool, m.N), sent: make([]float64, m.N), received: make([]float64, m.N),
	}
	for i, v := range m.Cells {
		c.sent[i/m.N] += v
		c.received[i%m.N] += v
	}
	return c
}

// load returns the larger of a node's sent and received parts, to six decimals.
func (c *correction) load(node int) float64 {
	if c.full[node] {
		return c.capacity
	}
	part := max(c.sent[node], c.received[node]) + float64(c.gained*float64(c.m.N-1-c.fullNodes)) +
		float64(c.cell*float64(c.fullNodes))
	return math.RoundToEven(part*c.rate*1e6) / 1e6
}

// fill reduces a node to its capacity.
func (c *correction) fill(node int, load float64) {
	c.full[node] = true
	c.fullNodes++
	free := c.m.N - c.fullNodes
	for other := range c.m.N {
		c.sent[other] -= c.m.Cells[other*c.m.N+node]
		c.received[other] -= c.m.Cells[node*c.m.N+other]
	}
	if free > 0 {
		c.gained += 2 * (load - c.capacity) / float64(free) / c.rate / float64(c.m.N-1)
	}
}
