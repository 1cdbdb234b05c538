// This file writes the page about a trace.

package tracecat

import (
	"cmp"
	"math/bits"
	"path/filepath"
	"slices"
	"strings"

	"github.com/tracedag/tracedag/dag"
	"github.com/tracedag/tracedag/internal/cli"
	"github.com/tracedag/tracedag/internal/report"
)

// reported are the members of the summary that only a page needs.
type reported struct {
	Sizes  []sizeBin      `json:"sizes"`
	Matrix *report.Matrix `json:"matrix,omitempty"`
	Ranks  []rankSums     `json:"by_rank"` // with many ranks, those with most bytes
	*shape
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
)

// checkReport returns an error if the flags and the number of files do not fit --report or --plot, or if their files
// cannot be written.
func (v *view) checkReport(p *cli.Program, files int) error {
	flag, what := "--report", "page"
	if v.outputs.Page == "" {
		flag, what = "--plot", "picture"
	}
	if err := v.outputs.BeginTrace(); err != nil {
		return cli.Usagef("%v", err)
	}
	switch {
	case !v.outputs.Any():
		return nil
	case v.outputs.Page != "" && !strings.EqualFold(filepath.Ext(v.outputs.Page), ".html"):
		return cli.Usagef("--report: %s: expected a name that ends with .html", v.outputs.Page)
	case files > 1:
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

// writeReport writes the page and the pictures.
func (v *view) writeReport(p *cli.Program, s *summary, t *dag.Trace) (*reported, error) {
	with := *s
	with.reported = measure(t)
	v.outputs.Create = func(name string) (report.File, error) { return p.Create(name, false) }
	_, err := v.outputs.Write(with.writeJSON)
	return with.reported, err
}
