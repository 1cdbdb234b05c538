package llm

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// Dims assigns the dimensions of a network to kinds of parallelism: each list has numbers of dimensions, ascending. EP
// has the first of DP.
type Dims struct {
	Auto           bool // dimensions in the order of Params.Order, the lowest first
	TP, DP, EP, PP []int
}

// maxDims is the largest number of dimensions, the bits of dag.Op.Dims.
const maxDims = 31

// given reports whether dimensions are assigned.
func (d *Dims) given() bool {
	return d.Auto || len(d.TP)+len(d.DP)+len(d.EP)+len(d.PP) > 0
}

// MarshalText returns the assignments, such as "tp=0,dp=1+2".
func (d *Dims) MarshalText() ([]byte, error) {
	if d.Auto {
		return []byte("auto"), nil
	}
	var texts []string
	for _, name := range []string{"tp", "dp", "ep", "pp"} {
		if list := *d.of(name); len(list) > 0 {
			texts = append(texts, name+"="+joined(list, "+"))
		}
	}
	return []byte(strings.Join(texts, ",")), nil
}

// joined returns numbers with a separator between them.
func joined(list []int, separator string) string {
	texts := make([]string, len(list))
	for i, n := range list {
		texts[i] = strconv.Itoa(n)
	}
	return strings.Join(texts, separator)
}

// of returns the dimensions of a kind of parallelism, nil for an unknown one.
func (d *Dims) of(name string) *[]int {
	switch name {
	case "tp":
		return &d.TP
	case "dp":
		return &d.DP
	case "ep":
		return &d.EP
	case "pp":
		return &d.PP
	}
	return nil
}

// UnmarshalText parses assignments such as tp=0,dp=1+2, or auto.
func (d *Dims) UnmarshalText(text []byte) error {
	*d = Dims{Auto: string(text) == "auto"}
	if d.Auto {
		return nil
	}
	for part := range strings.SplitSeq(string(text), ",") {
		name, numbers, _ := strings.Cut(part, "=")
		list := d.of(name)
		if list == nil || len(*list) > 0 {
			return fmt.Errorf("expected auto, or tp, dp, ep and pp once each with their dimensions, such as "+
				"tp=0,dp=1+2, found %q", text)
		}
		for number := range strings.SplitSeq(numbers, "+") {
			n, err := strconv.ParseUint(number, 10, 5)
			if err != nil || n >= maxDims {
				return fmt.Errorf("expected numbers of dimensions, 0 to %d, with + between them, found %q",
					maxDims-1, part)
			}
			*list = append(*list, int(n))
		}
		slices.Sort(*list)
	}
	return nil
}

// Order returns the order of the kinds of parallelism that have the assigned dimensions, those with the lowest first.
// Kinds without dimensions keep their places in the default order behind the others.
func (d *Dims) Order() Order {
	order := DefaultOrder
	lowest := func(kind Dimension) int {
		if list := *d.of(dimensionNames[kind]); len(list) > 0 {
			return list[0]
		}
		return maxDims
	}
	slices.SortStableFunc(order[:], func(a, b Dimension) int { return lowest(a) - lowest(b) })
	return order
}

// network is the dimensions of a network as collectives address them.
type network struct {
	sizes []int // of dimensions, or of the halves of dimensions that are cut
	outer []bool
	masks [numGroups]int32 // by kind of group: one bit per dimension
}

// String returns the sizes, such as "16*2x16": the first dimension of 32 is cut.
func (n *network) String() string {
	var b strings.Builder
	for i, size := range n.sizes {
		switch {
		case n.outer[i]:
			b.WriteByte('*')
		case i > 0:
			b.WriteByte('x')
		}
		b.WriteString(strconv.Itoa(size))
	}
	return b.String()
}

// span is a kind of parallelism and the ranks along it. Expert parallelism and the replicas of experts are two spans.
type span struct {
	name   string
	degree int
	groups []group // whose ranks are along the span
}

// spans returns the spans in the order of ranks.
func (p *Params) spans() (list []span) {
	for _, d := range p.Order {
		switch {
		case d == Tensor:
			list = append(list, span{"tp", p.TP, []group{tensorGroup}})
		case d == Pipeline:
			list = append(list, span{"pp", p.PP, nil})
		case p.EP > 1:
			list = append(list, span{"ep", p.EP, []group{expertGroup, dataGroup}},
				span{"dp / ep", p.DP / p.EP, []group{expertDataGroup, dataGroup}})
		default:
			list = append(list, span{"dp", p.DP, []group{dataGroup}})
		}
	}
	return list
}

// network returns the dimensions of the kinds of parallelism, nil if none are given.
func (p *Params) network() (*network, error) {
	if len(p.NetworkDims) == 0 && !p.Dims.given() {
		return nil, nil
	}
	if err := p.checkNetwork(); err != nil {
		return nil, err
	}
	n := &network{sizes: slices.Clone(p.NetworkDims), outer: make([]bool, len(p.NetworkDims))}
	next := 0
	for _, s := range p.spans() {
		first := next
		var err error
		if next, err = n.take(p, s, first); err != nil {
			return nil, err
		}
		for _, g := range s.groups {
			n.masks[g] |= 1<<next - 1<<first
		}
	}
	return n, nil
}

func (p *Params) checkNetwork() error {
	ranks := 1
	for _, size := range p.NetworkDims {
		if size < 2 || size > maxRanks {
			return fmt.Errorf("network-dims is %s, expected sizes of 2 to %d", joined(p.NetworkDims, "x"), maxRanks)
		}
		ranks = min(ranks*size, maxRanks+1)
	}
	switch {
	case len(p.NetworkDims) == 0:
		return errors.New("dims needs network-dims, the sizes of the network's dimensions, such as 16x8x4")
	case !p.Dims.given():
		return errors.New("network-dims needs dims, such as auto or tp=0,dp=1+2")
	case p.DimsSplit && !p.Dims.Auto:
		return errors.New("dims-split needs dims auto")
	case len(p.NetworkDims) > maxDims/2:
		return fmt.Errorf("network-dims has %d dimensions, expected at most %d", len(p.NetworkDims), maxDims/2)
	case ranks != p.Ranks():
		return fmt.Errorf("network-dims is %s, expected a product of tp x dp x pp, %d", joined(p.NetworkDims, "x"),
			p.Ranks())
	case p.Dims.Auto:
		return nil
	}
	return p.checkAssigned()
}

// checkAssigned returns an error unless the assigned dimensions follow each other in the order of ranks.
func (p *Params) checkAssigned() error {
	var all []int
	for _, d := range p.Order {
		all = append(all, *p.Dims.of(dimensionNames[d])...)
	}
	if sorted := slices.Sorted(slices.Values(all)); len(sorted) != len(p.NetworkDims) ||
		sorted[len(sorted)-1] != len(sorted)-1 || len(slices.Compact(sorted)) != len(p.NetworkDims) {
		return fmt.Errorf("dims assigns %d dimensions to tp, dp and pp, expected each of 0..%d once", len(all),
			len(p.NetworkDims)-1)
	}
	if !slices.IsSorted(all) {
		return fmt.Errorf("dims has the dimensions %s in the order %v, expected ascending ones; "+
			"order gives the lowest to its first", joined(all, ", "), p.Order)
	}
	for _, d := range []Dimension{Tensor, Data, Pipeline} {
		list := *p.Dims.of(dimensionNames[d])
		if product := p.product(list); product != p.size(d) {
			return fmt.Errorf("dims gives %s the dimensions %s of %d ranks, expected %d, its degree", dimensionNames[d],
				joined(list, "+"), product, p.size(d))
		}
	}
	ep := p.Dims.EP
	if len(ep) > 0 && (len(ep) > len(p.Dims.DP) || !slices.Equal(ep, p.Dims.DP[:len(ep)]) || p.product(ep) != p.EP) {
		return fmt.Errorf("dims gives ep the dimensions %s, expected the first of those of dp whose product is %d",
			joined(ep, "+"), p.EP)
	}
	return nil
}

// product returns the number of ranks along dimensions, 1 along none.
func (p *Params) product(dims []int) int {
	product := 1
	for _, d := range dims {
		product *= p.NetworkDims[d]
	}
	return product
}

// take returns the end of the dimensions of a span that begins with the given one. It cuts the last of them if it is
// larger than what the span needs and p permits it.
func (n *network) take(p *Params, s span, first int) (end int, err error) {
	product := 1
	for end = first; product < s.degree && end < len(n.sizes); end++ {
		if need := s.degree / product; p.DimsSplit && s.degree%product == 0 && n.sizes[end] > need {
			if err := n.cut(end, need); err != nil {
				return 0, err
			}
		}
		product *= n.sizes[end]
	}
	if product == s.degree {
		return end, nil
	}
	var fit []string
	product = 1
	for _, size := range n.sizes[first:] {
		product *= size
		fit = append(fit, strconv.Itoa(product))
	}
	hint := ""
	if p.Dims.Auto && !p.DimsSplit {
		hint = "; dims-split cuts a dimension in two"
	}
	return 0, fmt.Errorf("%s is %d, which does not end at a dimension of the network %v from dimension %d on, "+
		"expected 1 or %s%s", s.name, s.degree, n, first, strings.Join(fit, ", "), hint)
}

// cut cuts a dimension in two, of which the first has the given size.
func (n *network) cut(dim, size int) error {
	if n.sizes[dim]%size != 0 {
		return fmt.Errorf("%d ranks are no part of a dimension of %d of the network %v, expected a divisor", size,
			n.sizes[dim], n)
	}
	if n.outer[dim] {
		return fmt.Errorf("a dimension of the network %v has to be cut in more than two", n)
	}
	n.sizes = slices.Insert(n.sizes, dim+1, n.sizes[dim]/size)
	n.outer = slices.Insert(n.outer, dim+1, true)
	n.sizes[dim] = size
	return nil
}
