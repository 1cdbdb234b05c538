package graph500

// The parameters of a search and their ranges.

import (
	"context"
	"fmt"

	"github.com/tracedag/tracedag/dag"
)

// Params describe a search.
type Params struct {
	Scale       int      // s: the graph has 2^s vertices
	EdgeFactor  int      // f_e: half the mean degree of a vertex
	Nodes       int      // n: processes, one per rank
	Coalescing  int64    // c_s: queries of a full message
	QueryTime   dag.Time // t_q: to process a query
	Groups      []Group  // processes with a query time of their own, each in at most one group
	RootDegree  int64    // d_r; 0: drawn from Degrees
	Degrees     Degrees
	RootProcess int     // of the root; -1: drawn
	Variation   float64 // factor of the standard deviations of eq. 16; 0: all processes have the mean
	Eq7         Equation7
	HIntDiv     bool // s/10 in eq. 13 is an integer division

	Injection    Injection
	PacketPhits  int64    // p_s, for ReferenceInjection
	Cycle        dag.Time // t_c: a process tries to generate once per cycle; 0: at any time
	ConsumeMin   dag.Time // the shortest time in which a process consumes a message
	Notices      Notices
	MessageBytes int64 // 0: 16 for each query of a full message
	ControlBytes int64 // of notices and of messages of the all-reduce; 0: MessageBytes

	MaxLevels int     // of the search, including level 0
	Levels    *Span   // levels of the search that the trace has; nil: all
	Rest      float64 // from level 5 on, the search ends when at most this share of the queries is left

	Context context.Context // ends NewSource and reading early, with an error that wraps its cause; nil: never
}

// Equation7 is a form of eq. 7.
type Equation7 uint8

// The forms.
const (
	ReferenceEq7 Equation7 = iota // of the reference program: it fits measured graphs
	PrintedEq7                    // of the paper as printed
)

// String returns the name on the command line.
func (e Equation7) String() string { return [...]string{"ref", "printed"}[e] }

// Injection is the mean of the time that a process takes to generate a message; see Params.Cycle.
type Injection uint8

// The means.
const (
	ReferenceInjection Injection = iota // t_q c_s / p_s, as the reference program reads eq. 17
	PaperInjection                      // t_q c_s
)

// String returns the name on the command line.
func (i Injection) String() string { return [...]string{"ref", "paper"}[i] }

// Notices selects the notices of the end of a level.
type Notices uint8

// The notices.
const (
	AllNotices Notices = iota // from every process to every other
	NoNotices
)

// String returns the name on the command line.
func (n Notices) String() string { return [...]string{"all", "none"}[n] }

// Machine is a machine on which query times were measured.
type Machine struct {
	Name      string // on the command line
	Title     string
	QueryTime dag.Time
}

// Machines are those of Table III of the paper.
var Machines = []Machine{
	{"altamira", "Altamira node, Xeon E5-2670 2.6 GHz", 1500 * dag.Picosecond},
	{"i5-5200u", "Core i5-5200U 2.2 GHz", 2250 * dag.Picosecond},
	{"e5-2620", "Xeon E5-2620 2 GHz", 2400 * dag.Picosecond},
	{"mont-blanc", "Mont-Blanc prototype, Cortex-A15 1.7 GHz", 15 * dag.Nanosecond},
}

// Default returns a search of a graph of a million vertices on 72 nodes of Altamira.
func Default() Params {
	return Params{
		Scale: 20, EdgeFactor: 16, Nodes: 72, Coalescing: 256, QueryTime: Machines[0].QueryTime, RootProcess: -1,
		Variation: 1, PacketPhits: 1024, Cycle: 800 * dag.Picosecond, MaxLevels: 9, Rest: 0.1,
	}
}

// Limits of parameters. Within them no equation gives NaN and no count overflows.
const (
	maxScale      = 44
	maxEdgeFactor = 1 << 10
	maxNodes      = 1 << 20
	maxCoalescing = 1 << 30
	maxBytes      = 1 << 38
	maxTime       = dag.Second // for a query
	maxLevels     = 16
	maxRankOps    = 1 << 26 // a rank is in memory as a whole
)

// totalEdges returns 2 f_e 2^s: every edge is explored from both ends.
func (p *Params) totalEdges() int64 {
	return 2 * int64(p.EdgeFactor) << p.Scale
}

func (p *Params) messageBytes() int64 {
	if p.MessageBytes == 0 {
		return 16 * p.Coalescing
	}
	return p.MessageBytes
}

func (p *Params) controlBytes() int64 {
	if p.ControlBytes == 0 {
		return p.messageBytes()
	}
	return p.ControlBytes
}

// check returns an error that names the first parameter outside its range.
func (p *Params) check() error {
	for _, l := range []struct {
		name        string
		value       int64
		least, most int64
	}{
		{"scale", int64(p.Scale), 1, maxScale},
		{"edge-factor", int64(p.EdgeFactor), 1, maxEdgeFactor},
		{"nodes", int64(p.Nodes), 2, maxNodes},
		{"coalescing", p.Coalescing, 1, maxCoalescing},
		{"packet-phits", p.PacketPhits, 1, 1 << 20},
		{"message-bytes", p.MessageBytes, 0, maxBytes},
		{"control-bytes", p.ControlBytes, 0, maxBytes},
		{"max-levels", int64(p.MaxLevels), 1, maxLevels},
	} {
		if l.value < l.least || l.value > l.most {
			return fmt.Errorf("%s is %d, expected %d..%d", l.name, l.value, l.least, l.most)
		}
	}
	switch total := p.totalEdges(); {
	case p.RootDegree < 0 || p.RootDegree > total:
		return fmt.Errorf("root-degree is %d, expected 1..%d, the ends of all edges, or 0", p.RootDegree, total)
	case p.RootProcess < -1 || p.RootProcess >= p.Nodes:
		return fmt.Errorf("root-process is %d, expected 0..%d, or -1", p.RootProcess, p.Nodes-1)
	case p.QueryTime < 0 || p.QueryTime > maxTime:
		return fmt.Errorf("query-time is %v, expected 0s..%v", p.QueryTime, maxTime)
	case p.ConsumeMin < 0 || p.ConsumeMin > maxTime:
		return fmt.Errorf("consume-min is %v, expected 0s..%v", p.ConsumeMin, maxTime)
	case p.Cycle < 0 || p.Cycle > maxTime:
		return fmt.Errorf("cycle is %v, expected 0s..%v", p.Cycle, maxTime)
	case int64(p.QueryTime) > int64(dag.MaxTime)/64/p.Coalescing:
		return fmt.Errorf("query-time is %v and coalescing %d, expected at most %v per message",
			p.QueryTime, p.Coalescing, dag.MaxTime/64)
	case !(p.Variation >= 0 && p.Variation <= 1):
		return fmt.Errorf("variation is %v, expected 0..1", p.Variation)
	case !(p.Rest >= 0 && p.Rest <= 1):
		return fmt.Errorf("rest is %v, expected 0..1", p.Rest)
	case p.Levels != nil && (p.Levels.First < 0 || p.Levels.Last < p.Levels.First):
		return fmt.Errorf("levels are %v, expected a range of levels, the lower one first", p.Levels)
	case p.Eq7 > PrintedEq7:
		return fmt.Errorf("no equation 7 with the number %d", p.Eq7)
	case p.Injection > PaperInjection:
		return fmt.Errorf("no injection with the number %d", p.Injection)
	case p.Notices > NoNotices:
		return fmt.Errorf("no notices with the number %d", p.Notices)
	}
	if err := p.Degrees.check(p.totalEdges()); err != nil {
		return err
	}
	return p.checkGroups()
}
