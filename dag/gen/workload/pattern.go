// Patterns of sources and destinations.

package workload

import (
	"fmt"
	"math/rand/v2"
	"slices"

	"github.com/tracedag/tracedag/dag"
	"github.com/tracedag/tracedag/dag/gen/openloop"
)

// Kind is a kind of pattern.
type Kind uint8

// Kinds of patterns.
const (
	Uniform     Kind = iota // every flow goes to any other host with equal probability
	Permutation             // all flows of a host go to its successor in a random cycle of all hosts
	AllToAll                // the flows of host i go to hosts i+1, i+2, ..., i-1 round robin
	Shift                   // the flows of host i go to host i + Shift
	Hotspot                 // a part of the flows goes to one host, the other flows to any other host
	Incast                  // Degree hosts repeatedly send a flow each to one host at the same time
)

// Kinds are all kinds of patterns.
var Kinds = []Kind{Uniform, Permutation, AllToAll, Shift, Hotspot, Incast}

// String returns the name of the kind.
func (k Kind) String() string {
	return [...]string{"uniform", "permutation", "alltoall", "shift", "hotspot", "incast"}[k]
}

// Pattern selects the sources and destinations of flows. In all but Incast each host is an independent source.
type Pattern struct {
	Kind     Kind
	Degree   int      // Incast: 1..ranks-1
	Period   dag.Time // Incast: mean time between two; 0: from the rate
	Shift    int      // Shift: 1..ranks-1
	Fraction float64  // Hotspot: part of the flows of other hosts that goes to the hotspot; 0..1
	Node     int      // Hotspot, Incast: the host; -1: host 0 (Hotspot), another at random each time (Incast)
}

func (p *Pattern) check(ranks int) error {
	switch p.Kind {
	case Shift:
		return openloop.InRange("shift", p.Shift, 1, ranks-1)
	case Hotspot:
		if !(p.Fraction >= 0 && p.Fraction <= 1) {
			return &openloop.ParamError{Param: "fraction", Found: fmt.Sprint(p.Fraction), Expected: "0..1"}
		}
		return openloop.InRange("node", p.Node, -1, ranks-1)
	case Incast:
		if err := openloop.InRange("degree", p.Degree, 1, ranks-1); err != nil {
			return err
		}
		if err := openloop.InRange("period", p.Period, 0, dag.MaxTime/4); err != nil {
			return err
		}
		return openloop.InRange("node", p.Node, -1, ranks-1)
	}
	return nil
}

// router draws sources and destinations.
type router struct {
	*Pattern
	ranks  int
	random *rand.ChaCha8
	hosts  []int32 // Permutation: destination of each host; Incast: all hosts, in a random order
	group  []int32 // Incast: senders
}

func newRouter(p *Pattern, ranks int, random *rand.ChaCha8) *router {
	r := &router{Pattern: p, ranks: ranks, random: random}
	if p.Kind != Permutation && p.Kind != Incast {
		return r
	}
	r.hosts = make([]int32, ranks)
	for i := range r.hosts {
		r.hosts[i] = int32(i)
	}
	if p.Kind == Permutation { // Sattolo's shuffle gives one cycle of all hosts
		for i := ranks - 1; i > 0; i-- {
			k := r.below(i)
			r.hosts[i], r.hosts[k] = r.hosts[k], r.hosts[i]
		}
	}
	return r
}

// below draws one of 0..n-1.
func (r *router) below(n int) int {
	return int(openloop.Scale(r.random.Uint64(), uint64(n)))
}

// other draws any host but one.
func (r *router) other(host int32) int32 {
	n := int32(r.below(r.ranks - 1))
	if n >= host {
		n++
	}
	return n
}

// destination returns the destination of a host's flow after the given number of earlier ones.
func (r *router) destination(source int32, sent uint32) int32 {
	after := func(n int) int32 { return int32((int(source) + n) % r.ranks) }
	switch r.Kind {
	case Permutation:
		return r.hosts[source]
	case AllToAll:
		return after(1 + int(sent)%(r.ranks-1))
	case Shift:
		return after(r.Shift)
	case Hotspot:
		// Every flow takes two numbers, so that runs with other fractions share as many draws as possible.
		hot, any := unit(r.random.Uint64()) <= r.Fraction, r.other(source)
		if node := int32(max(0, r.Node)); hot && source != node {
			return node
		}
		return any
	}
	return r.other(source)
}

// incast draws the senders and the destination. The senders, ascending, are valid until the next call.
func (r *router) incast() (senders []int32, receiver int32) {
	receiver = int32(r.Node)
	if r.Node < 0 {
		receiver = int32(r.below(r.ranks))
	}
	r.group = r.group[:0]
	for i := 0; len(r.group) < r.Degree; i++ {
		k := i + r.below(r.ranks-i)
		r.hosts[i], r.hosts[k] = r.hosts[k], r.hosts[i]
		if host := r.hosts[i]; host != receiver {
			r.group = append(r.group, host)
		}
	}
	slices.Sort(r.group)
	return r.group, receiver
}
