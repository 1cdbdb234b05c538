// This file writes the page about a trace.

package tracecat

import (
	"cmp"
	"context"
	"math/bits"
	"path/filepath"
	"slices"
	"strings"

	"github.com/tracedag/tracedag/dag"
	"github.com/tracedag/tracedag/dag/attr"
	"github.com/tracedag/tracedag/dag/compose"
	"github.com/tracedag/tracedag/formats/format"
	"github.com/tracedag/tracedag/internal/cli"
	"github.com/tracedag/tracedag/internal/report"
)

// reported are the members of the summary that only a page needs.
type reported struct {
	Sizes  []sizeBin      `json:"sizes"`
	Matrix *report.Matrix `json:"matrix,omitempty"`
	Ranks  []rankSums     `json:"by_rank"` // with many ranks, those with most bytes
	*shape

	Load     *report.LoadMatrix `json:"load,omitempty"` // with a picture of it
	Arrivals *arrivals          `json:"arrivals,omitempty"`
	Graph    *graph             `json:"dag,omitempty"` // of a small trace
}

// arrivals counts the ops with a release time by time.
type arrivals struct {
	Width dag.Time `json:"bin_ps"`
	Ops   []int64  `json:"ops"`
}

// graph is the ops of a trace.
type graph struct {
	Ops       []graphOp `json:"ops"`
	Messages  [][4]int  `json:"messages"`            // rank and op of the send, rank and op of the receive
	Unmatched string    `json:"unmatched,omitempty"` // why there are no messages
}

// graphOp is an op with its dependencies, ops of the same rank.
type graphOp struct {
	Rank      int     `json:"rank"`
	Op        int     `json:"op"`
	Kind      string  `json:"kind"`
	Name      string  `json:"name,omitempty"`
	Deps      []int32 `json:"deps,omitempty"`
	StartDeps []int32 `json:"start_deps,omitempty"`
}

// sizeBin counts the messages of more than half of its size; those of no bytes are in a bin of their own.
type sizeBin struct {
	UpTo     uint64     `json:"up_to_bytes"`
	Messages int64      `json:"messages"`
	Bytes    report.Sum `json:"bytes"`
}

// rankSums are the ops of a rank.
type rankSums struct {
	Rank        int        `json:"rank"`
	Ops         int        `json:"ops"`
	Sent        report.Sum `json:"sent_bytes"`
	Received    report.Sum `json:"received_bytes"`
	Collectives report.Sum `json:"collective_bytes"`
	Calc        report.Sum `json:"calc_ps"`
}

// shownRanks is the largest number of ranks that a page shows one by one. With more, it shows mostBytes.
const (
	shownRanks = 256
	mostBytes  = 32

	graphOps    = 200 // of the largest trace with a graph
	arrivalBins = 64
)

// checkReport returns an error if the flags and the number of files do not fit --report or --plot, or if their files
// cannot be written.
func (v *view) checkReport(p *cli.Program, files int) error {
	flag, what := "--report", "page"
	if v.outputs.Page == "" {
		flag, what = "--plot", "picture"
	}
	begin := v.outputs.BeginTrace
	if v.gpu {
		begin = v.outputs.BeginGPU
	}
	if err := begin(); err != nil {
		return cli.Usagef("%v", err)
	}
	switch {
	case !v.outputs.Any():
		return nil
	case v.outputs.Page != "" && !strings.EqualFold(filepath.Ext(v.outputs.Page), ".html"):
		return cli.Usagef("--report: %s: expected a name that ends with .html", v.outputs.Page)
	case v.outputs.Page != "" && v.outputs.IsTable():
		return cli.Usagef("--report is about a trace, --plot bars and lines are about a table: omit one of them")
	case files > 1 && !v.outputs.AreMatrices():
		return cli.Usagef("%s reads one trace, found %d files", flag, files)
	case v.ops || v.matrix || v.check || v.diff || v.csv:
		return cli.Usagef("%s adds a %s to the summary: omit --ops, --matrix, --check, --diff and --csv", flag, what)
	}
	for _, name := range v.outputs.Names() {
		if err := p.CheckOutput(name, true); err != nil {
			return err
		}
	}
	return nil
}

// measure returns what the page shows beyond the summary.
func measure(t *dag.Trace) *reported {
	all := &reported{Sizes: []sizeBin{}, Matrix: report.NewMatrix(len(t.Ranks)), Ranks: make([]rankSums, len(t.Ranks)),
		shape: shapeOf(t)}
	var bins [65]sizeBin
	for rank, r := range t.Ranks {
		sums := &all.Ranks[rank]
		sums.Rank, sums.Ops = rank, r.Len()
		for i, kind := range r.Kind {
			bytes := uint64(max(0, r.Bytes.At(i)))
			switch kind {
			case dag.Calc:
				sums.Calc.Add(uint64(max(0, r.CalcTime(i))))
			case dag.Send:
				sums.Sent.Add(bytes)
				bin := &bins[bits.Len64(max(bytes, 1)-1)+min(1, int(bytes))]
				bin.Messages++
				bin.Bytes.Add(bytes)
			case dag.Recv:
				sums.Received.Add(bytes)
			case dag.Coll:
				sums.Collectives.Add(bytes)
			}
		}
	}
	for i := range bins {
		if bins[i].Messages > 0 {
			if i > 0 {
				bins[i].UpTo = 1 << (i - 1)
			}
			all.Sizes = append(all.Sizes, bins[i])
		}
	}
	if addMatrix(all.Matrix, t); all.Matrix.Empty() {
		all.Matrix = nil
	}
	all.Arrivals, all.Graph = arrivalsOf(t), graphOf(t)
	if len(all.Ranks) > shownRanks {
		slices.SortStableFunc(all.Ranks, func(a, b rankSums) int {
			x, y := a.Sent.Big(), b.Sent.Big()
			x.Add(x, a.Collectives.Big())
			y.Add(y, b.Collectives.Big())
			return cmp.Or(y.Cmp(x), cmp.Compare(b.Ops, a.Ops))
		})
		all.Ranks = all.Ranks[:mostBytes]
	}
	return all
}

// arrivalsOf counts the ops with a release time by time. It returns nil without one.
func arrivalsOf(t *dag.Trace) *arrivals {
	last := dag.Time(0)
	each := func(do func(release dag.Time)) {
		for _, r := range t.Ranks {
			for i := range r.Len() {
				if at := r.Release.At(i); at > 0 {
					do(at)
				}
			}
		}
	}
	each(func(at dag.Time) { last = max(last, at) })
	if last == 0 {
		return nil
	}
	a := &arrivals{Width: last/arrivalBins + 1}
	a.Ops = make([]int64, last/a.Width+1)
	each(func(at dag.Time) { a.Ops[at/a.Width]++ })
	return a
}

// graphOf returns the graph of a trace of up to graphOps ops, and otherwise nil.
func graphOf(t *dag.Trace) *graph {
	ops := 0
	for _, r := range t.Ranks {
		ops += r.Len()
	}
	if ops == 0 || ops > graphOps {
		return nil
	}
	g := &graph{Messages: [][4]int{}}
	absolute := func(i int, edges []int32) (all []int32) {
		for _, d := range edges {
			all = append(all, int32(i)-d)
		}
		return all
	}
	for rank, r := range t.Ranks {
		for i, kind := range r.Kind {
			g.Ops = append(g.Ops, graphOp{rank, i, kind.String(), r.Name.At(i), absolute(i, r.Deps.Of(i)),
				absolute(i, r.StartDeps.Of(i))})
		}
	}
	err := compose.Messages(context.Background(), t, func(from, send, to, recv int) {
		g.Messages = append(g.Messages, [4]int{from, send, to, recv})
	})
	if err != nil {
		g.Messages, g.Unmatched = [][4]int{}, err.Error()
	}
	return g
}

// writeReport writes the page and the pictures.
func (v *view) writeReport(p *cli.Program, s *summary, t *dag.Trace) (*reported, error) {
	with := *s
	with.reported = measure(t)
	if v.outputs.WantsLoad() {
		with.reported.Load = loadOf(t)
	}
	v.outputs.Create = func(name string) (report.File, error) { return p.Create(name, false) }
	_, err := v.outputs.Write(with.writeJSON)
	return with.reported, err
}

// loadOf returns the shares of bytes by pair of ranks, nil without any.
func loadOf(t *dag.Trace) *report.LoadMatrix {
	m := report.NewLoadMatrix(len(t.Ranks), attr.ParseRacks(t.Attrs, len(t.Ranks)))
	for _, pair := range dag.Matrix(t) {
		m.Add(int(pair.Src), int(pair.Dst), max(0, pair.Bytes.Float()))
	}
	if !m.Normalise() {
		return nil
	}
	return m
}

// plotTable writes the pictures of a table in CSV.
func (v *view) plotTable(p *cli.Program, name string) error {
	in, err := p.Open(name, false)
	if err != nil {
		return err
	}
	defer in.Close()
	v.outputs.Create = func(name string) (report.File, error) { return p.Create(name, false) }
	return format.InFile(name, v.outputs.WriteTable(in.Reader))
}
