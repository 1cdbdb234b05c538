// This file prints the statistics of GPU traces.

package tracecat

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"strconv"
	"strings"
	"text/tabwriter"

	"github.com/tracedag/tracedag/dag"
	"github.com/tracedag/tracedag/formats/format"
	"github.com/tracedag/tracedag/formats/kineto"
	"github.com/tracedag/tracedag/formats/kineto/gpustats"
	"github.com/tracedag/tracedag/internal/cli"
	"github.com/tracedag/tracedag/internal/report"
	"github.com/tracedag/tracedag/internal/units"
)

// gpuPage is the help of statistics of GPU traces.
const gpuPage = `tracecat --gpu prints statistics of the traces of torch.profiler as it recorded them, per rank: idle time, compute
time, communication that overlaps computation or is exposed, reasons of idle time and lengths of queues per stream,
delays of launches, bandwidths of collectives, stragglers, and the kernels with the greatest sums.

  tracecat --gpu profiles/
  tracecat --gpu --json profiles/ | jq '.ranks[] | .exposed / .kernel_time'
  tracecat --gpu --critical-path --path-part 0:ProfilerStep profiles/
  tracecat --gpu --compat profiles/

--report writes a page and --plot pictures: kinds ranks, types, critical, path, stragglers, collectives, kernels, idle,
launches and queues. --critical-path adds the longest path of operators, launches and kernels of each rank, and what
bounds it.

--compat prints the figures of HolisticTraceAnalysis (HTA): without the last step, in whole microseconds, and with
waits of the host as busy time. --json prints times in picoseconds.`

// showGPU prints the statistics of a GPU trace.
func (v *view) showGPU(p *cli.Program, name string, read cli.ReadFlags) error {
	in, err := p.OpenTrace(name, read, cli.ReadOptions{})
	if err != nil {
		return err
	}
	defer in.Close()
	if in.Format.Name != kineto.Format.Name {
		return format.FileErrorf(in.Name, "--gpu reads traces of torch.profiler (kineto), found %s", in.Format.Name)
	}
	var s *gpustats.Stats
	f := *in.Format
	f.Read = func(inputs []*format.Input, o format.ReadOptions) (*dag.Trace, error) {
		profiles, err := kineto.ReadProfiles(inputs, o, kineto.Events{Reference: o.Compat, Path: v.gpuPath,
			Only: o.Compat})
		if err == nil {
			s, err = gpustats.Compute(profiles, o.Compat)
		}
		if err == nil && v.gpuPath {
			s.Paths, err = gpustats.Paths(profiles, v.part, o.Compat)
		}
		return new(dag.Trace), err
	}
	in.Format = &f
	if _, err := in.Read(); err != nil {
		return err
	}
	in.DoneReading()
	if v.outputs.Any() {
		if err := v.reportGPU(p, cmp.Or(name, in.Name), s); err != nil {
			return err
		}
	}
	out, err := p.Create("-", false)
	if err != nil {
		return err
	}
	defer out.Close()
	if v.json {
		encoder := json.NewEncoder(out)
		encoder.SetEscapeHTML(false)
		encoder.SetIndent("", "  ")
		err = encoder.Encode(s)
	} else {
		err = writeGPU(out, s)
	}
	if err != nil {
		return err
	}
	return out.Commit()
}

// reportGPU writes the page and the pictures.
func (v *view) reportGPU(p *cli.Program, name string, s *gpustats.Stats) error {
	document, err := json.Marshal(struct {
		Input string           `json:"input"`
		Ranks int              `json:"rank_count"`
		GPU   *gpustats.Digest `json:"gpu"`
	}{name, len(s.Ranks), s.Digest()})
	if err != nil {
		return err
	}
	v.outputs.Create = func(name string) (report.File, error) { return p.Create(name, false) }
	return v.outputs.WriteGPU(document)
}

// writeGPU prints statistics as tables.
func writeGPU(out io.Writer, s *gpustats.Stats) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "rank\ttime\tidle\tcompute\tnon-compute\tcommunication\toverlapped\texposed")
	row := func(name string, shares bool, t [7]float64) {
		fmt.Fprintf(w, "%s\t%s", name, shortTime(t[0]))
		for i, x := range t[1:] {
			whole := t[0]
			if i >= 4 {
				whole = t[4]
			}
			if !shares {
				whole = 0
			}
			fmt.Fprintf(w, "\t%s", timeAndShare(x, whole))
		}
		fmt.Fprintln(w)
	}
	for i := range s.Ranks {
		r := &s.Ranks[i]
		row(fmt.Sprint(r.Rank), true, [7]float64{float64(r.KernelTime), float64(r.Idle), float64(r.Compute),
			float64(r.NonCompute), float64(r.Communication), float64(r.Overlapped), float64(r.Exposed)})
	}
	if len(s.Spread) > 0 && len(s.Ranks) > 1 {
		var least, mean, most [7]float64
		n := 0
		for _, d := range s.Spread {
			if d.Name != "memory" {
				least[n], mean[n], most[n] = float64(d.Min), d.Mean, float64(d.Max)
				n++
			}
		}
		row("min", false, least)
		row("mean", false, mean)
		row("max", false, most)
	}
	writeTypes(w, s)
	fmt.Fprintln(w, "\nrank\tstream\thost wait\tkernel wait\tother idle")
	for i := range s.Ranks {
		r := &s.Ranks[i]
		for _, x := range r.Streams {
			all := float64(x.HostWait + x.KernelWait + x.Other)
			fmt.Fprintf(w, "%d\t%s\t%s\t%s\t%s\n", r.Rank, streamName(s, x.Device, x.Stream),
				timeAndShare(float64(x.HostWait), all), timeAndShare(float64(x.KernelWait), all),
				timeAndShare(float64(x.Other), all))
		}
	}
	fmt.Fprintln(w, "\nrank\tstream\tqueue lengths\tmean\tstd\tmin\tp25\tp50\tp75\tmax\ttime full")
	for i := range s.Ranks {
		r := &s.Ranks[i]
		for _, q := range r.Queues {
			fmt.Fprintf(w, "%d\t%s\t%d\t%.4g\t%.4g\t%g\t%g\t%g\t%g\t%g\t%s\n", r.Rank,
				streamName(s, q.Device, q.Stream), q.Count, q.Mean, q.Std, q.Min, q.P25, q.P50, q.P75, q.Max,
				shortTime(float64(q.Full)))
		}
	}
	fmt.Fprintln(w, "\nrank\tlaunches\tdelay mean\tp50\tp99\tmax\tshort ops\tlong calls\tlong delays")
	for i := range s.Ranks {
		l := &s.Ranks[i].Launches
		fmt.Fprintf(w, "%d\t%d\t%s\t%s\t%s\t%s\t%d\t%d\t%d\n", s.Ranks[i].Rank, l.Count, shortTime(l.Mean),
			shortTime(l.P50), shortTime(l.P99), shortTime(float64(l.Max)), l.Short, l.LongCalls, l.LongDelays)
	}
	writeCollectives(w, s)
	writeKernels(w, s)
	writePaths(w, s)
	return w.Flush()
}

// mostKernels is the number of kernels per rank and kind that the table shows.
const mostKernels = 3

// writeKernels prints the kernels with the greatest sums.
func writeKernels(w io.Writer, s *gpustats.Stats) {
	fmt.Fprintln(w, "\nrank\tkind\tops\tsum\tmin\tmean\tmax\tstd\tname")
	for i := range s.Ranks {
		r := &s.Ranks[i]
		shown := make(map[string]int)
		for _, k := range r.Kernels {
			if shown[k.Kind]++; shown[k.Kind] > mostKernels {
				continue
			}
			fmt.Fprintf(w, "%d\t%s\t%d\t%s\t%s\t%s\t%s\t%s\t%s\n", r.Rank, k.Kind, k.Count, shortTime(float64(k.Sum)),
				shortTime(float64(k.Min)), shortTime(k.Mean), shortTime(float64(k.Max)), shortTime(k.Std),
				shortName(k.Name))
		}
	}
}

// writePaths prints critical paths.
func writePaths(w io.Writer, s *gpustats.Stats) {
	if len(s.Paths) == 0 {
		return
	}
	fmt.Fprintln(w, "\ncritical path\tlength\tcpu\tgpu compute\tgpu communication\tbetween kernels\tlaunches\tevents")
	for _, p := range s.Paths {
		fmt.Fprintf(w, "rank %d\t%s", p.Rank, shortTime(float64(p.Length)))
		for _, part := range p.Parts {
			fmt.Fprintf(w, "\t%s", timeAndShare(float64(part.Time), float64(p.Length)))
		}
		fmt.Fprintf(w, "\t%d\n", p.PathEvents)
	}
	fmt.Fprintln(w, "\nrank\ton the path\ttime\tedges\tbound by")
	for _, p := range s.Paths {
		for _, n := range p.Names[:min(len(p.Names), mostOnPath)] {
			fmt.Fprintf(w, "%d\t%s\t%s\t%d\t%s\n", p.Rank, shortName(n.Name),
				timeAndShare(float64(n.Time), float64(p.Length)), n.Edges, n.Bound)
		}
	}
}

// mostOnPath is the number of names on a critical path that the table shows.
const mostOnPath = 5

// shortName returns the name of an event in at most 60 characters.
func shortName(name string) string {
	name = plain(name)
	if runes := []rune(name); len(runes) > 60 {
		return string(runes[:57]) + "..."
	}
	return name
}

// writeCollectives prints collectives and stragglers.
func writeCollectives(w io.Writer, s *gpustats.Stats) {
	if s.Reference {
		if n := len(s.Candidates); n > 0 {
			fmt.Fprintln(w, "\nstragglers\tcandidates")
			for k, ranks := range s.Candidates {
				fmt.Fprintf(w, "%d\t%s\n", k+1, strings.Trim(fmt.Sprint(ranks), "[]"))
			}
		}
		return
	}
	bandwidth := func(v float64) string {
		if v == 0 {
			return "-"
		}
		return fmt.Sprintf("%.4g GB/s", v)
	}
	fmt.Fprintln(w, "\nrank\tcommunication\tgroup\tmembers\tsize\tcount\tsum\tmin\tmax\talgbw\tbusbw")
	for i := range s.Ranks {
		r := &s.Ranks[i]
		for _, c := range r.Collectives {
			size, group := "-", "-"
			if c.Size >= 0 {
				size = units.FormatSize(c.Size)
			}
			if c.Group != "" {
				group = plain(c.Group)
			}
			fmt.Fprintf(w, "%d\t%s\t%s\t%d\t%s\t%d\t%s\t%s\t%s\t%s\t%s\n", r.Rank, c.Kind, group, c.Ranks, size,
				c.Count, shortTime(float64(c.Sum)), shortTime(float64(c.Min)), shortTime(float64(c.Max)),
				bandwidth(c.AlgBW), bandwidth(c.BusBW))
		}
		if r.SharedBusBW > 0 {
			fmt.Fprintf(w, "%d\tall\t-\t-\t-\t-\t%s\t-\t-\t-\t%s\n", r.Rank, shortTime(float64(r.Communication)),
				bandwidth(r.SharedBusBW))
		}
	}
	if len(s.Stragglers) == 0 {
		return
	}
	fmt.Fprintln(w, "\nstraggler\tlast in\tothers waited\tworst\tstart\tothers waited")
	for _, x := range s.Stragglers {
		fmt.Fprintf(w, "%d\t%d\t%s\t%s %d\t%s\t%s\n", x.Rank, x.Collectives, shortTime(float64(x.Caused)),
			plain(x.Worst.Kind), x.Worst.Instance, shortTime(float64(x.Worst.Start)),
			shortTime(float64(x.Worst.Caused)))
	}
}

// writeTypes prints the kinds of ops that run at a time, of all ranks.
func writeTypes(w io.Writer, s *gpustats.Stats) {
	all := 0.0
	for _, t := range s.Types {
		all += float64(t.Time)
	}
	fmt.Fprintln(w, "\nrunning\ttime on all ranks")
	for _, t := range s.Types {
		fmt.Fprintf(w, "%s\t%s\n", t.Name, timeAndShare(float64(t.Time), all))
	}
}

// streamName returns the number of a stream, after that of its device unless HTA's, which ignores devices.
func streamName(s *gpustats.Stats, device, stream int64) string {
	if s.Reference {
		return fmt.Sprint(stream)
	}
	return fmt.Sprintf("%d:%d", device, stream)
}

// timeAndShare formats a time in picoseconds and its share in percent.
func timeAndShare(t, of float64) string {
	if of == 0 {
		return shortTime(t)
	}
	return fmt.Sprintf("%s (%.1f%%)", shortTime(t), 100*t/of)
}

// shortTime formats a time in picoseconds with four significant digits.
func shortTime(ps float64) string {
	text := formatMeanTime(ps)
	digits := strings.TrimRight(text, "abcdefghijklmnopqrstuvwxyz")
	v, err := strconv.ParseFloat(digits, 64)
	if err != nil {
		return text
	}
	return strconv.FormatFloat(v, 'g', 4, 64) + text[len(digits):]
}
