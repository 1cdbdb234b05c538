package report

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/pflag"
	"gonum.org/v1/plot/vg"
)

// subject is what a picture is about.
type subject uint16

const (
	ofRun      subject = 1 << iota // a run of a trace
	ofSweep                        // the points of a sweep
	ofLoad                         // the points of synthetic traffic
	ofTrace                        // a trace
	ofSeveral                      // several results
	ofTable                        // a table of numbers
	ofMatrix                       // node matrices
	ofTimeline                     // a timeline file
	ofGPU                          // statistics of a GPU trace
	ofFit                          // a fit of parameters to measured times
)

// Feature is a part of the result that a picture needs and that a run has only on request.
type Feature uint8

// Features of runs.
const (
	Breakdown    Feature = 1 << iota // the parts of the time of each rank
	CriticalPath                     // the critical path
	Traffic                          // the traffic matrix
	Figures                          // distributions of flows and storage accesses, and the network
	Spans                            // the timeline of Outputs
)

// plotKind is a kind of picture.
//
// A kind is an entry of plots, in a file plot*.go with its draw function. draw returns the picture of a result, nil if
// the result lacks what the kind shows; needs then explains the error. draw reads the JSON document (r.root of a
// source); a kind that shows more gets it from a field of Report that the program sets before it draws, for example
// collected spans. A Feature names data that a run has only on request, and the programs ask Outputs.Wants for it.
type plotKind struct {
	name  string
	title string  // in lists and errors
	of    subject // subjects that can have the picture
	wants Feature
	flag  string   // an option without which there is no picture; "": none
	with  []string // backends without which there is no picture; nil: all have it
	needs string   // what results have the picture
	draw  func(s *source) *picture
}

// plots are the kinds of pictures in the order in which one is chosen by default. Kinds of different subjects can have
// the same name.
var plots = []plotKind{
	{name: "ranks", title: "parts of the time of each rank", of: ofRun, wants: Breakdown,
		needs: "at least one rank", draw: drawRanks},
	{name: "load", title: "latency and accepted load over the offered load", of: ofLoad,
		needs: "a load without a deadlock", draw: drawLoad},
	{name: "latency", title: "latency over the offered load", of: ofLoad,
		needs: "a load without a deadlock", draw: drawLatency},
	{name: "sweep", title: "a measure over the axes of a sweep", of: ofSweep,
		needs: "a point with a result", draw: drawSweep},
	{name: "topology", title: "the network with the utilization of its links", of: ofRun, wants: Figures,
		needs: "a network of the packet, flow, flit or slots backend with at most 2,000 links", draw: drawTopology},
	{name: "matrix", title: "bytes from rank to rank", of: ofRun | ofTrace | ofMatrix, wants: Traffic,
		needs: "messages between ranks", draw: drawMatrix},
	{name: "sweep", title: "a measure of each result", of: ofSeveral, needs: "a result with a makespan",
		draw: drawResults},
	{name: "fct", title: "distribution of flow completion times", of: ofRun | ofSeveral, wants: Figures,
		with: []string{"packet", "flow", "slots"}, needs: "flows", draw: drawFCT},
	{name: "slowdown", title: "percentiles of slowdowns by size of the flow", of: ofRun, wants: Figures,
		with: []string{"packet"}, needs: "flows", draw: drawSlowdown},
	{name: "queues", title: "data in the queues of the fullest ports over time", of: ofRun, wants: Figures,
		flag: "sample", with: []string{"packet"}, needs: "ports of switches that queue data in a sample",
		draw: drawQueues},
	{name: "ports", title: "utilization of ports by switch", of: ofRun, wants: Figures,
		with: []string{"packet", "flow", "flit"}, needs: "links with traffic", draw: drawPorts},
	{name: "critical", title: "time on the critical path by part and name", of: ofRun, wants: CriticalPath,
		needs: "a critical path, which --critical-path explains", draw: drawPath},
	{name: "latency", title: "distribution of latencies of storage accesses", of: ofRun, wants: Figures,
		needs: "a trace with lowered storage accesses", draw: drawAccesses},
	{name: "ranks", title: "ops, bytes and computation of each rank", of: ofTrace, needs: "ops", draw: drawTraceRanks},
	{name: "sizes", title: "messages and bytes by size", of: ofTrace, needs: "messages", draw: drawSizes},
	{name: "ops", title: "ops by kind and subkind", of: ofTrace, needs: "ops", draw: drawOps},
	{name: "arrivals", title: "ops with a release time over time", of: ofTrace, needs: "release times",
		draw: drawArrivals},
	{name: "dag", title: "graph of ops; also FILE.dot or .gv for Graphviz", of: ofTrace,
		needs: "a trace of 1 to 200 ops", draw: drawDAG},
	{name: "bars", title: "bars of a table in CSV, see below", of: ofTable,
		needs: "1 to 200 groups and 1 to 16 series", draw: drawBars},
	{name: "lines", title: "lines of a table in CSV, see below", of: ofTable, needs: "1 to 16 series",
		draw: drawLines},
	{name: "timeline", title: "tracks of a timeline file over time, see below", of: ofTimeline,
		needs: "1 to 200 tracks with spans", draw: drawSpacetime},
	{name: "jobs", title: "jobs over time", of: ofRun, needs: "several jobs", draw: drawJobs},
	{name: "gantt", title: "ranks over time, with the critical path", of: ofRun, wants: Spans | CriticalPath,
		needs: "a run whose ops take time, not a kept result", draw: drawGantt},
	{name: "fit", title: "measured and fitted times by size, and residuals", of: ofFit, flag: "fit",
		needs: "1 to 10,000 ping-pongs of messages with bytes", draw: drawFit},
	{name: "ranks", title: "parts of the time of each rank", of: ofGPU, needs: "ops of devices",
		draw: drawGPU("ranks")},
	{name: "types", title: "time by the kinds of ops that run", of: ofGPU, needs: "ops of devices",
		draw: drawGPU("types")},
	{name: "critical", title: "critical path of each rank by what bounds it", of: ofGPU, needs: "--critical-path",
		draw: drawGPU("paths")},
	{name: "path", title: "time on critical paths by name", of: ofGPU, needs: "--critical-path",
		draw: drawGPU("path_names")},
	{name: "stragglers", title: "waiting time of other ranks by straggler", of: ofGPU, needs: "collectives that match",
		draw: drawGPU("stragglers")},
	{name: "collectives", title: "time of communication by kind, group and size", of: ofGPU, needs: "communication",
		draw: drawGPU("collectives")},
	{name: "kernels", title: "kernels with most time", of: ofGPU, needs: "ops of devices",
		draw: drawGPU("kernels")},
	{name: "idle", title: "idle time of each stream by reason", of: ofGPU, needs: "ops of devices",
		draw: drawGPU("idle")},
	{name: "launches", title: "mean delay of launches by rank", of: ofGPU, needs: "ops of devices",
		draw: drawGPU("launches")},
	{name: "queues", title: "mean length of the queue of each stream", of: ofGPU, needs: "launches",
		draw: drawGPU("queues")},
}

// source is what a kind draws from.
type source struct {
	*Report
	root    value  // the whole document
	measure string // after the name of the kind, as in sweep:fct_ps.p99; "": by default
}

// PlotFile is a picture to write.
type PlotFile struct {
	Kind    string // "" for the first kind that the result has
	Measure string // what the kind shows, "" by default
	Name    string // ends with .svg, .png, .pdf, and for dag also .dot or .gv
}

// format returns the ending of the name in lower case, without the dot.
func (f *PlotFile) format() string {
	return strings.ToLower(strings.TrimPrefix(filepath.Ext(f.Name), "."))
}

// Plots are the pictures that flags select. It is the value of the flag --plot.
type Plots struct {
	Files       []PlotFile
	Width       vg.Length
	Height      vg.Length
	Font        plotFont
	Title       string // "" for that of the trace
	Dark        bool
	Transparent bool
	Log         string // axes with a logarithmic scale: "", x, y or xy
	Data        string // file of the plotted numbers; "": none
	MinBytes    int64  // size of the smallest message with an arrow in a picture of a timeline

	// Suggest returns the end of an error about an unknown name; nil: no end.
	Suggest func(name string, names []string) string
}

// Register adds the flag --plot and its options to the flags of a program, and returns the names of the options.
func (p *Plots) Register(flags *pflag.FlagSet) (options []string) {
	p.Width, p.Height = 16*vg.Centimeter, 9*vg.Centimeter
	p.Font = plotFont{"sans", 10}
	flags.Var(p, "plot", "draw a `picture`, [KIND=]FILE.svg, .png or .pdf")
	flags.Var((*plotSize)(p), "plot-size", "`size` of pictures, width:height in cm, mm, in or pt")
	flags.Var(&p.Font, "plot-font", "`font` of pictures: sans, serif or mono, and :SIZE in pt")
	flags.StringVar(&p.Title, "plot-title", "", "title of pictures")
	flags.BoolVar(&p.Dark, "plot-dark", false, "draw light on a dark background")
	flags.BoolVar(&p.Transparent, "plot-transparent", false, "draw without a background")
	flags.Var((*plotLog)(&p.Log), "plot-log", "logarithmic `axes`: x, y or xy")
	flags.StringVar(&p.Data, "plot-data", "", "write the plotted numbers to a CSV `FILE`")
	return []string{"plot-size", "plot-font", "plot-title", "plot-dark", "plot-transparent", "plot-log", "plot-data"}
}

// plotFormats are the endings of pictures.
var plotFormats = []string{"svg", "png", "pdf"}

// scalesOfMatrix are the scales of the colors of a matrix, after the name of its kind.
var scalesOfMatrix = []string{"linear", "log"}

// graphFormats are the endings of graphs as text for Graphviz.
var graphFormats = []string{"dot", "gv"}

// Outputs returns the names of the pictures.
func (p *Plots) Outputs() []string {
	names := make([]string, len(p.Files))
	for i := range p.Files {
		names[i] = p.Files[i].Name
	}
	return names
}

// Set adds a picture.
func (p *Plots) Set(text string) error {
	f := PlotFile{Name: text}
	if kind, name, found := strings.Cut(text, "="); found && !strings.ContainsAny(kind, `/\.`) ||
		found && strings.Contains(kind, ":") && !strings.Contains(kind, "/") {
		f.Kind, f.Measure, _ = strings.Cut(kind, ":")
		f.Name = name
		if kindOf(f.Kind, ^subject(0)) == nil {
			names, suggestion := kindNames(^subject(0)), ""
			if p.Suggest != nil {
				suggestion = p.Suggest(f.Kind, names)
			}
			return fmt.Errorf("no kind %q of pictures, expected one of %s%s", f.Kind, strings.Join(names, ", "),
				suggestion)
		}
		switch {
		case f.Measure == "" || f.Kind == "sweep":
		case f.Kind != "matrix":
			return fmt.Errorf("%s:%s: only the kind sweep has a measure", f.Kind, f.Measure)
		case !slices.Contains(scalesOfMatrix, f.Measure):
			return fmt.Errorf("%s:%s: expected one of %s", f.Kind, f.Measure, strings.Join(scalesOfMatrix, ", "))
		}
	}
	isGraph := slices.Contains(graphFormats, f.format())
	switch {
	case strings.TrimSuffix(filepath.Base(f.Name), filepath.Ext(f.Name)) == "" ||
		!isGraph && !slices.Contains(plotFormats, f.format()):
		return fmt.Errorf("%s: expected a name that ends with .svg, .png or .pdf", f.Name)
	case isGraph && f.Kind != "dag":
		return fmt.Errorf("%s: only the kind dag has this format; expected a name that ends with .svg, .png or .pdf",
			f.Name)
	}
	for _, other := range p.Files {
		if filepath.Clean(other.Name) == filepath.Clean(f.Name) {
			return fmt.Errorf("two pictures have the name %s", f.Name)
		}
	}
	p.Files = append(p.Files, f)
	return nil
}

// String returns the pictures as the flag has them.
func (p *Plots) String() string {
	texts := make([]string, len(p.Files))
	for i, f := range p.Files {
		if texts[i] = f.Name; f.Kind != "" {
			texts[i] = f.Kind + "=" + f.Name
		}
	}
	return strings.Join(texts, ",")
}

// Type returns the type of the flag.
func (p *Plots) Type() string { return "string" }

// kindNames returns the names of the kinds that subjects can have.
func kindNames(of subject) (names []string) {
	for i := range plots {
		if k := &plots[i]; k.of&of != 0 && !slices.Contains(names, k.name) {
			names = append(names, k.name)
		}
	}
	return names
}

// PlotPage returns the help about pictures of simulations, or of traces.
func PlotPage(traces bool) string {
	of, example := ofRun|ofSweep|ofLoad|ofSeveral|ofFit, "  simulate --plot run.svg --plot matrix=matrix.png "+
		"x.parquet\n"+
		"  simulate --sweep 'L=1us..10us:10' --plot sweep.pdf --plot-log x --plot-data sweep.csv x.parquet"
	if traces {
		of, example = ofTrace|ofTable|ofTimeline|ofGPU, "  tracecat --plot matrix=matrix.svg --plot-dark x.parquet\n"+
			"  tracecat --plot bars=times.svg times.csv\n\n"+
			"bars and lines draw a CSV file instead of a trace. It has a line of headings, which name the axes, and "+
			"the "+
			"columns\ngroup, series, value, and perhaps low and high, the bounds of an interval.\n\n"+
			"matrix has colors by the share of all bytes, from 0, or with matrix:log=FILE on a logarithmic scale, and "+
			"borders of\nracks. It also draws CSV files of tracegen matrix --matrix-only, beside each other.\n\n"+
			"timeline draws a file of simulate --timeline FILE.json: a row per stream and NIC, the time of ops by "+
			"kind, and arrows from sends to receives of at least --min-bytes. Use --timeline-ranks of simulate to "+
			"select ranks."
	}
	var kinds strings.Builder
	for i := range plots {
		if k := &plots[i]; k.of&of != 0 {
			with := ""
			if k.with != nil {
				with = " of --backend " + strings.Join(k.with, " or ")
			}
			if k.flag != "" {
				with += " with --" + k.flag
			}
			if k.of == ofGPU {
				with += " with --gpu"
			}
			fmt.Fprintf(&kinds, "  %-11s  %s; needs %s%s\n", k.name, k.title, k.needs, with)
		}
	}
	return fmt.Sprintf(`--plot [KIND=]FILE draws a picture of the result. The name of the file selects the format:
.svg, .png or .pdf. The flag can be repeated. Without a kind, the picture is the first of these that the result has:

%s
%s`, kinds.String(), example)
}

// check returns an error about a picture that no result of the subject can have. backend is the name of the backend of
// a simulation, "" if it is unknown; given reports whether an option is set, nil if that is unknown.
func (p *Plots) check(of subject, backend string, given func(flag string) bool) error {
	if p.Data != "" && len(p.Files) == 0 {
		return errors.New("--plot-data needs --plot")
	}
	for i := range p.Files {
		f := &p.Files[i]
		if f.Kind == "" {
			continue
		}
		k := kindOf(f.Kind, of)
		switch {
		case k == nil:
			return fmt.Errorf("--plot %s: this is no picture of %s, expected one of %s", f.Kind, subjectName(of),
				strings.Join(kindNames(of), ", "))
		case f.Kind == "matrix" && f.Measure != "" && of&(ofTrace|ofMatrix) == 0:
			return fmt.Errorf("--plot matrix:%s: this is no picture of %s, expected matrix, or tracecat", f.Measure,
				subjectName(of))
		case k.with != nil && backend != "" && !slices.Contains(k.with, backend):
			return fmt.Errorf("--plot %s: needs --backend %s", k.name, strings.Join(k.with, " or "))
		case k.flag != "" && given != nil && !given(k.flag):
			return fmt.Errorf("--plot %s: needs --%s", k.name, k.flag)
		}
	}
	return nil
}

func subjectName(of subject) string {
	switch of {
	case ofSweep:
		return "a sweep"
	case ofLoad:
		return "synthetic traffic"
	case ofTrace:
		return "a trace"
	case ofSeveral:
		return "several results"
	case ofTable:
		return "a table"
	case ofMatrix:
		return "node matrices"
	case ofTimeline:
		return "a timeline"
	case ofGPU:
		return "a GPU trace"
	case ofFit:
		return "a fit"
	}
	return "a run"
}

// kindOf returns the kind of a name that subjects can have, nil without one.
func kindOf(name string, of subject) *plotKind {
	for i := range plots {
		if k := &plots[i]; k.name == name && k.of&of != 0 {
			return k
		}
	}
	return nil
}

// wants returns the features that the pictures of a subject need. One without a kind needs those of the first kind.
func (p *Plots) wants(of subject) (all Feature) {
	for _, f := range p.Files {
		for i := range plots {
			if k := &plots[i]; k.of&of != 0 && (f.Kind == "" && k.flag == "" || f.Kind == k.name) {
				all |= k.wants
				break
			}
		}
	}
	return all
}

// Plot writes a picture to w, and adds its numbers to data unless that is nil.
func (r *Report) Plot(w io.Writer, f PlotFile, o *Plots, data *PlotData) error {
	if !r.whole.known {
		var err error
		if r.whole, err = decode(r.document); err != nil {
			return err
		}
	}
	s := &source{Report: r, root: r.whole, measure: f.Measure}
	var drawn *picture
	for i := range plots {
		k := &plots[i]
		if k.of&r.of == 0 || f.Kind != "" && f.Kind != k.name {
			continue
		}
		if drawn = k.draw(s); drawn == nil && f.Measure != "" && k.name == "sweep" {
			return fmt.Errorf("--plot %s:%s: no point has this number", k.name, f.Measure)
		} else if drawn == nil && f.Kind != "" {
			return fmt.Errorf("--plot %s: needs %s", k.name, k.needs)
		}
		if drawn != nil {
			drawn.kind = k.name
			break
		}
	}
	if drawn == nil {
		return fmt.Errorf("--plot: %s has nothing to draw", subjectName(r.of))
	}
	if slices.Contains(graphFormats, f.format()) {
		_, err := io.WriteString(w, drawn.graph)
		return err
	}
	drawn.title = clean(cmp.Or(o.Title, drawn.title, s.title()))
	if err := drawn.setLog(o.Log); err != nil {
		return fmt.Errorf("--plot-log: %w", err)
	}
	data.add(drawn)
	return drawn.write(w, f.format(), o)
}

// title returns the title of the trace, or its name.
func (s *source) title() string {
	run := s.root.get("run", "trace")
	return cmp.Or(run.get("title").text(), run.get("name").text(), s.root.get("title").text(),
		s.root.get("input").text(), s.root.get("points").at(0).get("traffic", "pattern").text())
}

// plotSize is the value of --plot-size.
type plotSize Plots

func (s *plotSize) Type() string { return "string" }
func (s *plotSize) String() string {
	if s.Width == 0 {
		return ""
	}
	return fmt.Sprintf("%.4gcm:%.4gcm", s.Width/vg.Centimeter, s.Height/vg.Centimeter)
}

// Set parses WIDTH:HEIGHT.
func (s *plotSize) Set(text string) error {
	width, height, found := strings.Cut(text, ":")
	if !found {
		return fmt.Errorf("expected WIDTH:HEIGHT such as 16cm:9cm, found %q", text)
	}
	w, err := parseLength(width)
	if err != nil {
		return err
	}
	h, err := parseLength(height)
	if err != nil {
		return err
	}
	s.Width, s.Height = w, h
	return nil
}

// parseLength parses a length of 2 cm to 2 m.
func parseLength(text string) (vg.Length, error) {
	for _, u := range []struct {
		name string
		of   vg.Length
	}{{"cm", vg.Centimeter}, {"mm", vg.Millimeter}, {"in", vg.Inch}, {"pt", 1}} {
		if number, found := strings.CutSuffix(text, u.name); found {
			x, err := strconv.ParseFloat(strings.TrimSpace(number), 64)
			if length := vg.Length(x) * u.of; err == nil && length >= 2*vg.Centimeter && length <= 200*vg.Centimeter {
				return length, nil
			}
			break
		}
	}
	return 0, fmt.Errorf("expected a length of 2cm to 200cm in cm, mm, in or pt, found %q", text)
}

// plotFont is the value of --plot-font: a family and a size in points.
type plotFont struct {
	family string
	size   float64
}

func (f *plotFont) Type() string { return "string" }

func (f *plotFont) String() string {
	if f.family == "" {
		return ""
	}
	return fmt.Sprintf("%s:%gpt", f.family, f.size)
}

// Set parses FAMILY, FAMILY:SIZE or :SIZE.
func (f *plotFont) Set(text string) error {
	family, size, found := strings.Cut(text, ":")
	next := plotFont{cmp.Or(strings.ToLower(family), "sans"), 10}
	if !slices.Contains([]string{"sans", "serif", "mono"}, next.family) {
		return fmt.Errorf("expected the family sans, serif or mono, found %q", family)
	}
	if found {
		x, err := strconv.ParseFloat(strings.TrimSuffix(size, "pt"), 64)
		if err != nil || !(x >= 4 && x <= 72) {
			return fmt.Errorf("expected a size of 4pt to 72pt, found %q", size)
		}
		next.size = x
	}
	*f = next
	return nil
}

// plotLog is the value of --plot-log.
type plotLog string

func (l *plotLog) Type() string   { return "string" }
func (l *plotLog) String() string { return string(*l) }

// Set accepts x, y and xy.
func (l *plotLog) Set(text string) error {
	if !slices.Contains([]string{"x", "y", "xy"}, text) {
		return fmt.Errorf("expected x, y or xy, found %q", text)
	}
	*l = plotLog(text)
	return nil
}
