package llm

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/tracedag/tracedag/dag"
)

// Dimension is a dimension of parallelism.
type Dimension uint8

// The dimensions. Expert parallelism is a part of data parallelism.
const (
	Tensor Dimension = iota
	Data
	Pipeline
)

var dimensionNames = [...]string{"tp", "dp", "pp"}

// Order is the order of the dimensions. Neighbouring ranks differ in the first one.
type Order [3]Dimension

// DefaultOrder is the order of Megatron-LM.
var DefaultOrder = Order{Tensor, Data, Pipeline}

// String returns the order as "tp,dp,pp".
func (o Order) String() string {
	var names []string
	for _, d := range o {
		if int(d) >= len(dimensionNames) {
			return fmt.Sprint([3]Dimension(o))
		}
		names = append(names, dimensionNames[d])
	}
	return strings.Join(names, ",")
}

// ParseOrder is the inverse of [Order.String].
func ParseOrder(s string) (o Order, err error) {
	names := strings.Split(s, ",")
	if len(names) != len(o) {
		return o, fmt.Errorf("expected tp, dp and pp in some order, found %q", s)
	}
	for i, name := range names {
		o[i] = Dimension(slices.Index(dimensionNames[:], name))
	}
	if !o.valid() {
		return o, fmt.Errorf("expected tp, dp and pp in some order, found %q", s)
	}
	return o, nil
}

// MarshalText returns the order as a text.
func (o Order) MarshalText() ([]byte, error) { return []byte(o.String()), nil }

// UnmarshalText parses an order.
func (o *Order) UnmarshalText(text []byte) error {
	order, err := ParseOrder(string(text))
	if err == nil {
		*o = order
	}
	return err
}

func (o Order) valid() bool {
	seen := [3]bool{}
	for _, d := range o {
		if int(d) >= len(seen) || seen[d] {
			return false
		}
		seen[d] = true
	}
	return true
}

// place is the index of a rank in each dimension.
type place [3]int

// group is a kind of communicator.
type group uint8

const (
	tensorGroup     group = iota // ranks that divide a matrix
	dataGroup                    // ranks with the same part of the model
	expertGroup                  // ranks that divide the experts
	expertDataGroup              // ranks with the same experts
	tableGroup                   // the first and the last stage, which share the table of tokens
	numGroups
)

// layout maps ranks to places and communicators.
type layout struct {
	p      *Params
	stride [3]int
	comms  []dag.Comm
	first  [numGroups]int32 // by kind: its first communicator; 0: the communicator of all ranks; -1: none
	dims   [numGroups]int32 // by kind: dimensions of the network that its collectives involve; 0: all, or unknown
}

// newLayout returns the layout of ranks; net is nil if the network's dimensions are unknown.
func newLayout(p *Params, net *network) *layout {
	l := &layout{p: p, comms: []dag.Comm{dag.World(p.Ranks())}}
	if net != nil {
		l.dims = net.masks
	}
	stride := 1
	for _, d := range p.Order {
		l.stride[d] = stride
		stride *= p.size(d)
	}
	tied := 1
	if p.Tied && p.Vocab > 0 && p.PP > 1 {
		tied = 2
	}
	experts := 1
	if p.EP > 1 {
		experts = p.DP / p.EP
	}
	data, pipeline := l.stride[Data], l.stride[Pipeline]
	l.add(tensorGroup, p.TP, l.stride[Tensor])
	l.add(dataGroup, p.DP, data)
	l.add(expertGroup, p.EP, data)
	l.add(expertDataGroup, experts, data*p.EP)
	l.add(tableGroup, tied, pipeline*(p.PP-1))
	return l
}

// size returns the number of ranks along a dimension.
func (p *Params) size(d Dimension) int {
	return [...]int{p.TP, p.DP, p.PP}[d]
}

// add appends the communicators of a kind, with the given number of ranks each.
func (l *layout) add(g group, size, stride int) {
	switch size {
	case 1:
		l.first[g] = -1
		return
	case l.p.Ranks(): // in ascending order: all other dimensions have one place
		l.first[g] = 0
		return
	}
	if l.dims[g] != 0 { // a part of the communicator of all ranks
		l.first[g] = 0
		return
	}
	l.first[g] = int32(len(l.comms))
	n := l.groups(g)
	ranges := make([]dag.Range, n)
	for i := range ranges {
		ranges[i] = dag.Range{First: -1, Stride: int32(stride), Count: int32(size)}
	}
	for rank := range l.p.Ranks() {
		at := l.place(rank)
		if number, member := l.member(g, at); member == 0 {
			ranges[number].First = int32(rank)
		}
	}
	for i := range ranges {
		l.comms = append(l.comms, dag.Comm{Name: strconv.Itoa(len(l.comms)), Ranges: ranges[i : i+1 : i+1]})
	}
}

// place returns the place of a rank.
func (l *layout) place(rank int) (at place) {
	for d := range at {
		at[d] = rank / l.stride[d] % l.p.size(Dimension(d))
	}
	return at
}

// rank returns the rank at a place.
func (l *layout) rank(at place) int32 {
	rank := 0
	for d, i := range at {
		rank += i * l.stride[d]
	}
	return int32(rank)
}

// groups returns the number of groups of a kind.
func (l *layout) groups(g group) int {
	p := l.p
	switch g {
	case tensorGroup:
		return p.DP * p.PP
	case dataGroup:
		return p.TP * p.PP
	case expertGroup:
		return p.TP * p.PP * (p.DP / p.EP)
	case expertDataGroup:
		return p.TP * p.PP * p.EP
	}
	return p.TP * p.DP
}

// member returns the group of a kind that a rank belongs to, and its index there; -1 if it belongs to none.
func (l *layout) member(g group, at place) (number, member int) {
	p := l.p
	switch g {
	case tensorGroup:
		return at[Pipeline]*p.DP + at[Data], at[Tensor]
	case dataGroup:
		return at[Pipeline]*p.TP + at[Tensor], at[Data]
	case expertGroup:
		return (at[Pipeline]*p.TP+at[Tensor])*(p.DP/p.EP) + at[Data]/p.EP, at[Data] % p.EP
	case expertDataGroup:
		return (at[Pipeline]*p.TP+at[Tensor])*p.EP + at[Data]%p.EP, at[Data] / p.EP
	}
	number = at[Data]*p.TP + at[Tensor]
	switch at[Pipeline] {
	case 0:
		return number, 0
	case p.PP - 1:
		return number, 1
	}
	return number, -1
}

// comm returns the communicator of a kind that a rank belongs to, -1 for none.
func (l *layout) comm(g group, at place) int32 {
	number, member := l.member(g, at)
	if l.first[g] < 1 || member < 0 {
		return min(l.first[g], int32(member))
	}
	return l.first[g] + int32(number)
}
