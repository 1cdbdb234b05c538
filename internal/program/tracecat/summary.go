// This file prints the summary of a trace.

package tracecat

import (
	"encoding/json"
	"fmt"
	"io"
	"math"
	"math/big"
	"strconv"
	"strings"
	"text/tabwriter"

	"github.com/tracedag/tracedag/dag"
	"github.com/tracedag/tracedag/internal/cli"
	"github.com/tracedag/tracedag/internal/shell"
	"github.com/tracedag/tracedag/internal/units"
)

// summary is the default output of tracecat, and its JSON form.
type summary struct {
	Input      string           `json:"input"`
	Format     string           `json:"format"`
	Title      string           `json:"title"`
	Stats      *dag.Stats       `json:"stats"`
	Storage    *dag.IOStats     `json:"storage,omitempty"`
	HostOps    int64            `json:"host_ops,omitempty"` // ops that run on the host processor
	Comms      []comm           `json:"communicators"`
	Jobs       []string         `json:"jobs,omitempty"`
	Steps      int32            `json:"steps,omitempty"`
	Nodes      []int32          `json:"nodes,omitempty"` // per rank; empty if rank i is on node i
	Attrs      any              `json:"attrs,omitempty"`
	Provenance []dag.Provenance `json:"provenance"`

	*reported // with --report and --plot
}

// comm is a communicator. Each range is first, first + stride, ...
type comm struct {
	Name   string  `json:"name,omitempty"`
	Size   int     `json:"size"`
	Ranges []ranks `json:"ranks"`
}

type ranks struct {
	First  int32 `json:"first"`
	Stride int32 `json:"stride"`
	Count  int32 `json:"count"`
}

func summarize(r *cli.Read) *summary {
	t := r.Trace
	s := &summary{
		Input: r.Name, Format: r.Format.Name, Title: t.Title, Stats: dag.Summarize(t),
		Comms: make([]comm, len(t.Comms)), Jobs: t.Jobs, Steps: t.Steps, Nodes: t.Nodes,
		Provenance: append([]dag.Provenance{}, t.Provenance...), Storage: dag.SummarizeIO(t),
	}
	for i := range t.Ranks {
		s.HostOps += t.Ranks[i].Host.Present()
	}
	if t.Attrs != "" {
		s.Attrs = rawOrText(t.Attrs)
	}
	for i := range t.Comms {
		c := comm{Name: t.Comms[i].Name, Size: t.Comms[i].Size(), Ranges: []ranks{}}
		for _, r := range t.Comms[i].Ranges {
			c.Ranges = append(c.Ranges, ranks(r))
		}
		s.Comms[i] = c
	}
	return s
}

func (s *summary) writeJSON(w io.Writer) error {
	encoder := json.NewEncoder(w)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "  ")
	return encoder.Encode(s)
}

// maxComms is the number of communicators, and of ranges of each, in the short summary.
const maxComms = 8

// writeText prints the summary as text; all selects all statistics.
func (s *summary) writeText(w io.Writer, all bool) error {
	table := textTable{tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)}
	if s.Title != "" {
		table.row("title", "%s", plain(s.Title))
	}
	table.row("format", "%s", s.Format)
	s.writeCounts(table, all)
	s.writeShape(table, all)
	s.writeComms(table, all)
	s.writeProvenance(table)
	return table.w.Flush()
}

// textTable is a table with two columns: name and value.
type textTable struct{ w *tabwriter.Writer }

func (t textTable) row(name, format string, args ...any) {
	fmt.Fprintf(t.w, "%s\t%s\n", name, fmt.Sprintf(format, args...))
}

func (s *summary) writeCounts(t textTable, all bool) {
	st := s.Stats
	if st.Nodes != st.Ranks {
		t.row("ranks", "%d on %d nodes", st.Ranks, st.Nodes)
	} else {
		t.row("ranks", "%d", st.Ranks)
	}
	if st.Jobs > 1 || len(s.Jobs) > 0 {
		t.row("jobs", "%d: %s", st.Jobs, plain(strings.Join(s.Jobs, ", ")))
	}
	if s.Steps > 0 {
		t.row("steps", "%d", s.Steps)
	}
	t.row("ops", "%d", st.Ops)
	for k, n := range st.Kinds {
		if n > 0 || all {
			t.row("  "+dag.Kind(k).String(), "%d%s", n, s.subkinds(dag.Kind(k)))
		}
	}
	if s.HostOps > 0 {
		t.row("host ops", "%d", s.HostOps)
	}
	t.row("compute time", "%s on all ranks together", formatTime(st.CalcTime))
	if all || st.Flops.Float() > 0 {
		t.row("flops", "%v", st.Flops)
	}
	t.row("sent", "%s", amount(st.SentBytes))
	if m := st.Messages; m.Count > 0 {
		t.row("messages", "%d of %s to %s, median %s, mean %sB", m.Count, units.FormatSize(m.Min),
			units.FormatSize(m.Max), units.FormatSize(m.Median), formatMean(m.Mean))
	}
	if all || st.ReceivedBytes != st.SentBytes {
		t.row("received", "%s", amount(st.ReceivedBytes))
	}
	if all || st.Kinds[dag.Coll] > 0 {
		t.row("in collectives", "%s contributed", amount(st.CollectiveBytes))
	}
	if all || st.Kinds[dag.Mem] > 0 {
		t.row("memory", "%s", amount(st.MemBytes))
	}
	if all || st.Kinds[dag.IO] > 0 {
		t.row("storage", "%s", amount(st.IOBytes))
		s.writeStorage(t, all)
	}
	if all || st.LastRelease > 0 {
		t.row("last release", "%v", st.LastRelease)
	}
}

// subkinds returns the counts of a kind's ops by subkind, in parentheses.
func (s *summary) subkinds(kind dag.Kind) string {
	var parts []string
	for i, n := range s.Stats.Subkinds {
		if subkind := dag.Subkind(i); n > 0 && subkind != dag.NoSubkind && subkind.Of(kind) {
			parts = append(parts, fmt.Sprintf("%d %s", n, subkind))
		}
	}
	if parts == nil {
		return ""
	}
	return " (" + strings.Join(parts, ", ") + ")"
}

func (s *summary) writeShape(t textTable, all bool) {
	st := s.Stats
	t.row("dependencies", "%d", st.Deps)
	if all || st.StartDeps > 0 {
		t.row("start dependencies", "%d", st.StartDeps)
	}
	if st.BlockedOps > 0 {
		t.row("blocked", "%d ops can never run; --check lists the reasons", st.BlockedOps)
	}
	t.row("streams", "at most %d per rank", st.Streams)
	if all {
		t.row("NICs", "at most %d per rank", st.NICs)
	}
	if st.Depth.Rank >= 0 {
		t.row("depth", "%d ops, on rank %d", st.Depth.Ops, st.Depth.Rank)
	}
	if st.Width.Rank >= 0 {
		t.row("width", "%d ops, on rank %d, level %d", st.Width.Ops, st.Width.Rank, st.Width.Level)
	}
	if st.CriticalPath.Rank >= 0 {
		longer := ""
		if st.CriticalPath.Longer {
			longer = "at least "
		}
		t.row("critical path", "%s%v of computation, on rank %d", longer, st.CriticalPath.Time, st.CriticalPath.Rank)
	}
	if all && st.Ranks > 0 {
		t.row("ops per rank", "%v to %v, mean %s", st.RankOps.Min, st.RankOps.Max, formatMean(st.RankOps.Mean))
		t.row("sent per rank", "%s to %s, mean %sB", formatSize(st.RankSentBytes.Min),
			formatSize(st.RankSentBytes.Max), formatMean(st.RankSentBytes.Mean))
		t.row("compute per rank", "%v to %v, mean %v", formatTime(st.RankCalcTime.Min.Big()),
			formatTime(st.RankCalcTime.Max.Big()),
			formatMeanTime(st.RankCalcTime.Mean))
	}
}

func (s *summary) writeComms(t textTable, all bool) {
	t.row("communicators", "%d", len(s.Comms))
	for i, c := range s.Comms {
		if i == maxComms && !all {
			t.row("  ...", "%d more", len(s.Comms)-i)
			break
		}
		name := ""
		if c.Name != "" {
			name = plain(c.Name) + ", "
		}
		var runs []string
		for _, r := range c.Ranges {
			if len(runs) == maxComms && !all {
				runs = append(runs, "...")
				break
			}
			runs = append(runs, r.String())
		}
		t.row("  "+strconv.Itoa(i), "%s%d ranks: %s", name, c.Size, strings.Join(runs, " "))
	}
}

// String returns the ranks, such as "0-7" or "0,4,...,28".
func (r ranks) String() string {
	last := int64(r.First) + int64(r.Stride)*int64(r.Count-1)
	switch {
	case r.Count == 1:
		return strconv.Itoa(int(r.First))
	case r.Stride == 1:
		return fmt.Sprintf("%d-%d", r.First, last)
	case r.Count == 2:
		return fmt.Sprintf("%d,%d", r.First, last)
	}
	return fmt.Sprintf("%d,%d,...,%d", r.First, int64(r.First)+int64(r.Stride), last)
}

func (s *summary) writeProvenance(t textTable) {
	for i, p := range s.Provenance {
		name := "made by"
		if i > 0 {
			name = "then by"
		}
		seed := ""
		if p.Seed != nil {
			seed = fmt.Sprintf(", seed %d", *p.Seed)
		}
		t.row(name, "%s %s%s", plain(p.Program), plain(p.Version), seed)
		if len(p.Command) > 0 {
			t.row("  command", "%s", shell.Join(p.Command...))
		}
		for _, in := range p.Inputs {
			t.row("  input", "%s sha256:%s", plain(in.Name), plain(in.SHA256))
		}
	}
}

// amount returns a size, followed by its value to three digits if it is long.
func amount(total dag.Total) string {
	exact, bytes := formatSize(total), total.Float()
	if bytes < 10_000 || len(exact) < 7 {
		return exact
	}
	size, units := bytes, "kMGTPEZYRQ"
	for size /= 1000; size >= 999.5; size /= 1000 {
		units = units[1:]
	}
	return fmt.Sprintf("%s (%.3g%cB)", exact, size, units[0])
}

// formatSize formats a number of bytes of any length.
func formatSize(bytes dag.Total) string {
	return sizeOf(bytes.Big())
}

// sizeOf formats a number of bytes of any length.
func sizeOf(bytes *big.Int) string {
	if !bytes.IsInt64() {
		return bytes.String() + "B"
	}
	return units.FormatSize(bytes.Int64())
}

// formatMeanTime formats a mean of times, in picoseconds, of any length.
func formatMeanTime(mean float64) string {
	if mean >= math.MaxInt64 {
		return fmt.Sprintf("%.7gs", mean/float64(dag.Second))
	}
	return dag.Time(math.Round(mean)).String()
}

func formatMean(mean float64) string {
	return strconv.FormatFloat(mean, 'f', 1, 64)
}

// formatTime formats a time in picoseconds that may exceed dag.Time.
func formatTime(ps *big.Int) string {
	if ps.IsInt64() {
		return dag.Time(ps.Int64()).String()
	}
	seconds := new(big.Rat).SetFrac(ps, big.NewInt(int64(dag.Second)))
	return strings.TrimRight(strings.TrimRight(seconds.FloatString(12), "0"), ".") + "s"
}
