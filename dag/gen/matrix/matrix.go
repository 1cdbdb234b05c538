// Package matrix generates flows whose sizes, times and pairs of nodes follow given distributions, at a given load.
//
// The model is TrafPy, flow-centric: C. W. F. Parsonson et al., "Traffic generation for benchmarking data centre
// networks", Optical Switching and Networking, 2022. It draws sizes and times between arrivals until they are close
// enough to their distributions, stretches the times to the load, and packs the flows into pairs of nodes so that the
// bytes of the pairs follow a node matrix. pack.go describes the packing, docs/reference/generators/matrix.md has the
// rules.
//
// Sizes are whole numbers of bytes. The parameters' times are microseconds, as floats, until the arrivals are known:
// then each is rounded to picoseconds.
package matrix

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/tracedag/tracedag/dag"
	"github.com/tracedag/tracedag/dag/gen/openloop"
)

// Params describe a workload.
type Params struct {
	Nodes     int     // one per rank; 2..MaxNodes
	Matrix    *Matrix // the node matrix; nil: from Recipe
	Recipe    *Recipe // of the node matrix
	Racks     int     // of consecutive nodes; 0: none, or 2..Nodes-1
	InterRack float64 // part of a Recipe's bytes that leaves its rack, if there are racks; 0: as drawn
	Capacity  float64 // of a node, half of it for sending and half for receiving, in bytes per microsecond; above 0
	Load      float64 // sent bytes, relative to all nodes' capacity for sending; ..MaxLoad; 0: times stay as drawn

	Sizes         Values
	Interarrivals Values
	Flows         int     // smallest number; 1..MaxFlows. Given values set the number themselves
	MaxFlows      int     // largest number of drawn flows, whatever the threshold; Flows..MaxFlows
	Threshold     float64 // largest Jensen-Shannon distance of drawn values from their distribution; above 0, up to 1

	AutoCorrect bool     // move bytes away from nodes above their capacity
	IgnorePorts bool     // ignore the capacity of ports
	MinDuration dag.Time // repeat the flows until the last arrives then or later; 0 or more

	Placed func(flows int64)                     // called while flows are packed; may be nil
	Took   func(sampling, packing time.Duration) // called when the flows are packed; may be nil

	Context context.Context // ends NewSource and reading early, with an error that wraps its cause; nil: never
}

// Values are sizes or times between arrivals.
type Values struct {
	Given        []float64 // the values; nil: they are drawn
	PMF          *PMF      // draw from it, or compare Given with it; nil: draw from Distribution
	Distribution *Distribution
}

// Limits of a workload.
const (
	MaxNodes = 1 << 14
	MaxFlows = 1 << 30
	MaxLoad  = 0.95
	MaxBytes = 1 << 50 // of a flow

	maxTotal = 1 << 53 // bytes of all flows, exact in a float64
	maxGap   = 1e13    // microseconds, about the length of the longest trace
)

// Default returns the preset uniform for 64 nodes with 100 Gbit/s, half loaded.
func Default() Params {
	p := Params{Nodes: 64, Capacity: 12500, Load: 0.5, Flows: 5 * 64 * 64, MaxFlows: 1 << 27, Threshold: 0.1}
	p.Use("uniform")
	return p
}

// Check returns a ParamError for parameters out of range.
func (p *Params) Check() error {
	return cmp.Or(
		openloop.InRange("nodes", p.Nodes, 2, MaxNodes),
		openloop.InRange("flows", p.Flows, 1, MaxFlows),
		openloop.InRange("max-flows", p.MaxFlows, p.Flows, MaxFlows),
		openloop.InRange("min-duration", p.MinDuration, 0, dag.MaxTime/4),
		inRange("capacity", p.Capacity, p.Capacity > 0 && p.Capacity <= 1e9, "above 0 and at most 1e9 bytes per us"),
		inRange("load", p.Load, p.Load >= 0 && p.Load <= MaxLoad, fmt.Sprintf("0..%v", MaxLoad)),
		inRange("threshold", p.Threshold, p.Threshold > 0 && p.Threshold <= 1, "above 0 and at most 1"),
		inRange("inter-rack", p.InterRack, p.InterRack >= 0 && p.InterRack <= 1, "0..1"),
		p.checkRacks(),
		p.checkGivenMatrix(),
		p.Sizes.check(Size),
		p.Interarrivals.check(Interarrival),
	)
}

func (p *Params) checkRacks() error {
	if p.Racks == 0 || p.Racks >= 2 && p.Racks < p.Nodes {
		return nil
	}
	return &openloop.ParamError{
		Param: "racks", Found: fmt.Sprint(p.Racks), Expected: fmt.Sprintf("0 or 2..%d, fewer than nodes", p.Nodes-1),
	}
}

func (p *Params) checkGivenMatrix() error {
	wrong := func(found, expected string) error {
		return &openloop.ParamError{Param: "node-matrix", Found: found, Expected: expected}
	}
	switch m := p.Matrix; {
	case m == nil && p.Recipe == nil:
		return &openloop.ParamError{Param: "matrix", Found: "none", Expected: "a recipe, or a node matrix"}
	case m == nil:
		return nil
	case m.N != p.Nodes || len(m.Cells) != m.N*m.N:
		return wrong(fmt.Sprintf("of %d nodes", m.N), fmt.Sprintf("%d, with a cell for each pair", p.Nodes))
	default:
		total := 0.0
		for i, v := range m.Cells {
			if i/m.N == i%m.N && v != 0 {
				return wrong(fmt.Sprintf("%v from node %d to itself", v, i/m.N), "0")
			}
			total += v
		}
		if !(math.Abs(total-1) <= tolerance) {
			return wrong(fmt.Sprintf("%v in total", total), "1")
		}
		return nil
	}
}

func inRange(param string, value float64, ok bool, expected string) error {
	if ok {
		return nil
	}
	return &openloop.ParamError{Param: param, Found: fmt.Sprint(value), Expected: expected}
}

// Quantity is the quantity that values measure.
type Quantity uint8

// The quantities.
const (
	Size         Quantity = iota // in bytes, a whole number, 1..MaxBytes
	Interarrival                 // time between arrivals, in microseconds, 0..1e13
	JobOps                       // number of ops of a job, 1..MaxJobOps
)

// String returns the quantity's name in parameters.
func (q Quantity) String() string {
	return [...]string{"size", "interarrival", "ops"}[q]
}

func (q Quantity) has(v float64) bool {
	switch q {
	case Size:
		return v >= 1 && v <= MaxBytes && v == math.Trunc(v)
	case JobOps:
		return v >= 1 && v <= MaxJobOps && v == math.Trunc(v)
	}
	return v >= 0 && v <= maxGap
}

func (q Quantity) expected() string {
	switch q {
	case Size:
		return fmt.Sprintf("a whole number of bytes, 1..%d", int64(MaxBytes))
	case JobOps:
		return fmt.Sprintf("a whole number of ops, 1..%d", MaxJobOps)
	}
	return fmt.Sprintf("0..%g us", maxGap)
}

// check validates given values and mass functions.
func (v *Values) check(q Quantity) error {
	wrong := func(value float64) bool { return !q.has(value) }
	refuse := func(what, found string) error {
		return &openloop.ParamError{Param: q.String() + what, Found: found, Expected: q.expected()}
	}
	if i := slices.IndexFunc(v.Given, wrong); i >= 0 {
		return refuse("s", fmt.Sprint(v.Given[i]))
	}
	switch {
	case len(v.Given) == 0 && (v.Given != nil || v.PMF == nil && v.Distribution == nil):
		return refuse("s", "none")
	case v.PMF == nil:
		return nil
	case len(v.PMF.Values) == 0:
		return refuse("-pmf", "none")
	}
	if i := slices.IndexFunc(v.PMF.Values, wrong); i >= 0 {
		return refuse("-pmf", fmt.Sprint(v.PMF.Values[i]))
	}
	return nil
}
