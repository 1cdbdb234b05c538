package report

import (
	"bytes"
	"encoding/csv"
	"fmt"
	"image/png"
	"math"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/recorder"

	"github.com/spf13/pflag"

	"github.com/tracedag/tracedag/internal/golden"
)

// runOf returns the report of a run with ranks whose times have parts.
func runOf(t *testing.T, title string, ranks int) *Report {
	t.Helper()
	var finish, parts, rows []string
	for rank := range ranks {
		finish = append(finish, fmt.Sprint(3000*rank+2000))
		parts = append(parts, fmt.Sprintf(`{"rank":%d,"compute_ps":%d,"exposed_comm_ps":%d,"wait_ps":2000}`, rank, 1000*rank,
			2000*rank))
		cells := make([]string, ranks)
		for k := range cells {
			cells[k] = fmt.Sprint(1000 * ((rank + k) % 3) * (k + 1))
		}
		rows = append(rows, "["+strings.Join(cells, ",")+"]")
	}
	return reportOf(t, Simulation, fmt.Sprintf(`{"run":{"trace":{"title":%q}},"makespan_ps":%d,"finish_ps":[%s],`+
		`"breakdown":[%s],"breakdown_total":{"compute_ps":1,"exposed_comm_ps":1,"wait_ps":1},"matrix":{"ranks_per_row":1,`+
		`"pairs":1,"bytes":[%s]}}`, title, 3000*ranks, strings.Join(finish, ","), strings.Join(parts, ","),
		strings.Join(rows, ",")))
}

func reportOf(t *testing.T, read func([]byte) (*Report, error), document string) *Report {
	t.Helper()
	r, err := read([]byte(document))
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// pointsOf returns the report of points.
func pointsOf(t *testing.T, of subject, points ...string) *Report {
	t.Helper()
	var s Sweep
	for _, point := range points {
		if err := s.Add([]byte(point)); err != nil {
			t.Fatal(err)
		}
	}
	r, err := s.Report()
	if err != nil {
		t.Fatal(err)
	}
	r.of = of
	return r
}

// sweepOf returns the report of a sweep over as many factors.
func sweepOf(t *testing.T, factors int) *Report {
	t.Helper()
	var points []string
	for i := range 60 {
		all := []string{fmt.Sprintf(`"L":"%dus"`, i%5+1), fmt.Sprintf(`"G":"%dGB/s"`, i/5%3+1), fmt.Sprintf(
			`"topology":"%c"`, 'a'+i/15%2), fmt.Sprintf(`"</text>":"<%d>"`, i/30)}
		points = append(points, fmt.Sprintf(`{"run":{"factors":{%s},"seed":%d},"makespan_ps":%d}`, strings.Join(
			all[:factors], ","), i, 1_000_000*(i+1)))
	}
	points = append(points, `{"run":{"factors":{"L":"1us"}},"error":"no"}`)
	return pointsOf(t, ofSweep, points...)
}

// loadOf returns the report of synthetic traffic.
func loadOf(t *testing.T) *Report {
	t.Helper()
	var points []string
	for i := range 8 {
		points = append(points, fmt.Sprintf(`{"run":{"settings":{"synthetic":"uniform"}},"model":"%s","traffic":{"load":`+
			`0.%d},"packet_latency":{"mean":%d},"packet_latency_interval":{"half_width":%d},"accepted_load":0.%d}`,
			[]string{"minimal", "valiant"}[i/4], i%4*2+1, 10*i+10, i, i+1))
	}
	return pointsOf(t, ofLoad, points...)
}

// saturationOf returns the report of searches for saturation.
func saturationOf(t *testing.T) *Report {
	t.Helper()
	const point = `{"model":"%s","traffic":{"load":%g},"packet_latency":{"mean":400},"accepted_load":0.8,"saturation":` +
		`{"zero_load":0.01,"zero_load_latency":12,"zero_load_interval":{"half_width":0.5}}}`
	return pointsOf(t, ofLoad, fmt.Sprintf(point, "minimal", 0.8), fmt.Sprintf(point, "adaptive", 0.9))
}

var longTitle = strings.Repeat("very long ", 1000)

// samples returns results that have a picture of each kind, with odd ones.
func samples(t *testing.T) map[string][]*Report {
	t.Helper()
	odd := []*Report{runOf(t, "", 1), runOf(t, `a < b & "c" </text>`, 3), runOf(t, "\u202eabc \u05e9\u05dc\u05d5\u05dd",
		65), runOf(t, longTitle, 1024)}
	big := reportOf(t, Simulation, `{"finish_ps":[9007199254740993,0],"matrix":{"bytes":[[0,1e18],[1,0]],`+
		`"ranks_per_row":2}}`)
	idle := reportOf(t, Simulation, `{"makespan_ps":0,"finish_ps":[0,0],"breakdown":[{"wait_ps":0},{"wait_ps":0}],`+
		`"breakdown_total":{"wait_ps":0},"matrix":{"bytes":[[5]]}}`)
	load := []*Report{loadOf(t), saturationOf(t)}
	packet := reportOf(t, Simulation, string(result("packet", 5)))
	flows := reportOf(t, Simulation, `{"fct_cdf":[[5,0.5],[9000000,1]],"fct_bins":{"columns":["job","class","size",`+
		`"slowdown_p50","slowdown_p95","slowdown_p99"],"rows":[[null,null,"1kB..10kB",1,2,3.5],[null,null,"10kB..",1.5,2,`+
		`400]]},"ports":{"columns":["port","utilisation"],"rows":[["tor0->host1",0.5],["tor0->agg10",0.25],["tor0->agg9",`+
		`0],["host1->tor0",1]]},"io_latency_cdf":[{"kind":"read","cdf":[[7,0.5],[8,1]]},{"kind":"write","cdf":[[9,1]]}],`+
		`"jobs":[{"name":"a","start_ps":5,"makespan_ps":10,"slowdown":1.5},{"name":"`+longTitle+`","start_ps":0,`+
		`"makespan_ps":0}],"critical_path":{"length_ps":7,"compute_ps":3,"wait_ps":4,"by_name":[{"name":"","time_ps":7}]}}`)
	large := reportOf(t, Simulation, `{"network":{"ports":{"switches_per_row":2,"ports_per_column":3,"names":["a","b"],`+
		`"use":[[0.1,0.9],[0]]}}}`)
	trace := reportOf(t, Trace, `{"title":"a \"quoted\" trace","stats":{"ranks":300,"ops_by_kind":{"calc":5,"send":0,`+
		`"recv":70000},"ops_by_subkind":{"read":1}},"sizes":[{"up_to_bytes":0,"messages":1,"bytes":0},{"up_to_bytes":65536,`+
		`"messages":9,"bytes":500000}],"matrix":{"bytes":[[0,3],[0,0]]},"by_rank":[{"rank":7,"ops":5,"sent_bytes":6,`+
		`"received_bytes":0,"collective_bytes":3,"calc_ps":0},{"rank":1,"ops":1,"sent_bytes":0}],"arrivals":{"bin_ps":1000,`+
		`"ops":[1,0,5]},"dag":{"ops":[{"rank":0,"op":0,"kind":"calc","name":"a \"b\" \\"},{"rank":0,"op":1,"kind":`+
		`"send","deps":[0]},{"rank":1,"op":0,"kind":"recv"},{"rank":1,"op":1,"kind":"calc","deps":[0],"start_deps":[0]}],`+
		`"messages":[[0,1,1,0]]}}`)
	cycle := reportOf(t, Trace, `{"dag":{"ops":[{"rank":0,"op":0,"kind":"recv"},{"rank":1,"op":0,"kind":"recv"}],`+
		`"messages":[[0,0,1,0],[1,0,0,0],[1,0,5,0]],"unmatched":"<no>"}}`)
	several, err := Compare([]Kept{{Name: "a.json", Document: []byte(`{"makespan_ps":5000,"fct_cdf":[[5,0.5],[9,1]]}`)},
		{Name: longTitle, Document: []byte(`{"makespan_ps":7000,"fct_cdf":[[6,1]]}`)}})
	if err != nil {
		t.Fatal(err)
	}
	table := func(text string) *Report {
		r, err := Table(strings.NewReader(text))
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	intervals := table("system,load,time (ms),low,high\na,0.1,1,0.5,2\na,0.2,-2,,\nb,0.1,3.25,3,3.5\nb,0.3,,,\n" +
		"c,0.2,4,4,4\n")
	simple := table("ranks,,makespan (s)\n1,,5\n16,,3\n4,,1e9\n")
	all := map[string][]*Report{
		"bars":     {intervals, simple},
		"lines":    {intervals, simple},
		"ranks":    append(slices.Clone(odd), big, idle, trace),
		"matrix":   append(slices.Clone(odd[1:3]), big, idle, trace),
		"fct":      {flows, several},
		"slowdown": {flows},
		"topology": {reportOf(t, Simulation, `{"network":{"layout":"rows","links":3,"max_use":0.5,"nodes":{"columns":["node",`+
			`"kind","x","y"],"rows":[["host0","host",0.25,1],["host1","host",0.75,1],["</text>","switch",0.25,0],`+
			`["b","switch",0.5,0],["c","switch",0.75,0]]},"drawn":{"columns":["link","from","to","rate_bits_s","bytes",`+
			`"back_bytes","use","back_use"],"rows":[["host0-a",0,2,1,10,null,0.5,null],["a-c",2,4,1,5,6,0.1,0.2],`+
			`["host1-c",1,4,1,0,0,0,0],["bad",1,99,1,0,0,0,0]]}}}`)},
		"queues": {reportOf(t, Simulation, `{"queues":{"interval_ps":1000,"ports":[{"port":"tor0->host1","bytes":[0,5,3000],`+
			`"ecn_min_bytes":10000,"ecn_max_bytes":20000},{"port":"a","bytes":[7]}]}}`)},
		"ports":    {flows, packet, large},
		"critical": {flows, packet},
		"jobs":     {flows, packet},
		"sizes":    {trace},
		"ops":      {trace},
		"arrivals": {trace},
		"dag":      {trace, cycle},
		"sweep":    {sweepOf(t, 1), sweepOf(t, 2), sweepOf(t, 3), sweepOf(t, 4), several},
		"load":     load,
		"latency":  append(slices.Clone(load), flows),
		"gantt":    timelines(t),
		"timeline": {spacetimeOf(t)},
		"fit":      fitsOf(t),
	}
	gpu := allGPU(t)
	for _, kind := range plots {
		if kind.of == ofGPU {
			all[kind.name] = append(all[kind.name], gpu)
		}
	}
	return all
}

// fitsOf returns fits of parameters: of two paths with a cut, and of as many paths as exceed a picture.
func fitsOf(t *testing.T) (all []*Report) {
	t.Helper()
	const curve = `{"name":"%s","bytes":[0,1,1024,4096],"measured_ps":[1e6,1.1e6,2e6,9e6],"fitted_ps":[1e6,1e6,2.1e6,` +
		`9e6],"line_bytes":[0,1,1024,2047,2048,4096],"line_ps":[1e6,1e6,2.1e6,3e6,5e6,9e6]}`
	for _, paths := range []int{2, maxSeries + 3} {
		var curves []string
		for i := range paths {
			curves = append(curves, fmt.Sprintf(curve, fmt.Sprintf("0-%d", i+1)))
		}
		text := `{"title":"fit","cuts":[2048,1048576],"curves":[` + strings.Join(curves, ",") + `]}`
		all = append(all, &Report{document: []byte(text), of: ofFit})
	}
	return all
}

// options returns options of pictures from arguments.
func options(t *testing.T, args ...string) *Plots {
	t.Helper()
	var p Plots
	flags := pflag.NewFlagSet("", pflag.ContinueOnError)
	p.Register(flags)
	if err := flags.Parse(args); err != nil {
		t.Fatal(err)
	}
	return &p
}

// TestPlots draws each kind of pictures from samples in each format, twice.
func TestPlots(t *testing.T) {
	if testing.Short() {
		t.Skip("computes long on one thread")
	}
	begins := map[string]string{"svg": "<?xml", "png": "\x89PNG", "pdf": "%PDF"}
	all := samples(t)
	for i := range plots {
		k := &plots[i]
		if len(all[k.name]) == 0 {
			t.Errorf("%s: no sample", k.name)
		}
		found := false
		for n, r := range all[k.name] {
			if r.of&k.of == 0 {
				continue
			}
			found = true
			for format, begin := range begins {
				if n > 1 && format != "svg" {
					continue // the same drawing
				}
				o := options(t, "--plot-size", "12cm:8cm")
				if n%2 == 1 {
					o = options(t, "--plot-dark", "--plot-font", "serif:8pt")
				}
				var first, again bytes.Buffer
				var data PlotData
				f := PlotFile{Kind: k.name, Name: "x." + format}
				if err := r.Plot(&first, f, o, &data); err != nil {
					t.Errorf("%s, sample %d: %v", k.name, n, err)
					break
				}
				if format == "svg" || n == 0 {
					if err := r.Plot(&again, f, o, nil); err != nil {
						t.Error(err)
					}
					if !bytes.Equal(first.Bytes(), again.Bytes()) {
						t.Errorf("%s, sample %d: two %s files differ", k.name, n, format)
					}
				}
				if !strings.HasPrefix(first.String(), begin) {
					t.Errorf("%s, sample %d: the %s file begins with %.10q", k.name, n, format, first.String())
				}
				if len(data.rows) == 0 || len(data.columns) < 2 {
					t.Errorf("%s, sample %d: no numbers", k.name, n)
				}
			}
		}
		if !found {
			t.Errorf("%s: no sample of %s", k.name, subjectName(k.of))
		}
	}
}

// TestPlotsInside checks that all marks are between the axes, and that all that is drawn is in the picture.
func TestPlotsInside(t *testing.T) {
	if testing.Short() {
		t.Skip("computes long on one thread")
	}
	for kind, reports := range samples(t) {
		for n, r := range reports {
			for _, log := range []string{"", "x", "y", "xy"} {
				p := plotOf(t, r, kind)
				if err := p.setLog(log); err != nil {
					continue
				}
				o := options(t)
				p.title = label(p.title)
				name := fmt.Sprintf("%s, sample %d, log %q", kind, n, log)
				marks := 0
				for _, panel := range p.panels {
					panel.setRanges()
					for _, m := range panel.marks {
						m.extent(func(x, y float64) {
							marks++
							if x < panel.x.min && !panel.x.log || x > panel.x.max || y < panel.y.min && !panel.y.log || y > panel.y.max {
								t.Errorf("%s: a mark at %g, %g is outside of %g..%g, %g..%g", name, x, y, panel.x.min, panel.x.max,
									panel.y.min, panel.y.max)
							}
						})
					}
				}
				if marks == 0 {
					t.Errorf("%s: no marks", name)
				}
				checkInside(t, name, p, o)
			}
		}
	}
}

func plotOf(t *testing.T, r *Report, kind string) *picture {
	t.Helper()
	root, err := decode(r.document)
	if err != nil {
		t.Fatal(err)
	}
	s := &source{Report: r, root: root}
	p := kindOf(kind, r.of).draw(s)
	if p == nil {
		t.Fatalf("%s: no picture", kind)
	}
	if p.title == "" {
		p.title = s.title()
	}
	p.kind = kind
	return p
}

// checkInside draws a picture and checks that lines, areas and texts are on the paper.
func checkInside(t *testing.T, name string, p *picture, o *Plots) {
	t.Helper()
	var c recorder.Canvas
	p.drawTo(draw.NewCanvas(&c, o.Width, o.Height), o.theme())
	in := func(at vg.Point) bool {
		const slack = 0.01
		return at.X >= -slack && at.Y >= -slack && at.X <= o.Width+slack && at.Y <= o.Height+slack
	}
	turned := 0
	for _, action := range c.Actions {
		switch a := action.(type) {
		case *recorder.Push:
			turned++
		case *recorder.Pop:
			turned--
		case *recorder.FillString:
			if turned > 0 { // the label of a vertical axis, which fit cuts
				continue
			}
			s := o.theme().text
			s.Font = a.Font
			if end := (vg.Point{X: a.Point.X + s.Width(a.String), Y: a.Point.Y}); !in(a.Point) || !in(end) {
				t.Errorf("%s: the text %.40q from %v to %v is cut", name, a.String, a.Point, end)
			}
		case *recorder.Stroke:
			checkPath(t, name, a.Path, in)
		case *recorder.Fill:
			checkPath(t, name, a.Path, in)
		}
	}
}

func checkPath(t *testing.T, name string, path vg.Path, in func(at vg.Point) bool) {
	t.Helper()
	for _, part := range path {
		if part.Type != vg.CloseComp && (!in(part.Pos) || math.IsNaN(float64(part.Pos.X+part.Pos.Y))) {
			t.Errorf("%s: a line to %v", name, part.Pos)
		}
	}
}

// TestPlotFlags checks errors of the flags.
func TestPlotFlags(t *testing.T) {
	for _, c := range []struct{ flag, value, want string }{
		{"plot", "x.gif", "expected a name that ends with .svg, .png or .pdf"},
		{"plot", "nothing=x.svg", `no kind "nothing" of pictures, expected one of `},
		{"plot", "ranks=.svg", "expected a name"},
		{"plot", "ranks=x.dot", "only the kind dag"},
		{"plot", "ranks:a=x.svg", "only the kind sweep"},
		{"plot-size", "3cm", "expected WIDTH:HEIGHT"},
		{"plot-size", "3cm:1cm", "expected a length of 2cm to 200cm"},
		{"plot-size", "NaNcm:9cm", "expected a length"},
		{"plot-font", "comic", "expected the family sans, serif or mono"},
		{"plot-font", "sans:100", "expected a size of 4pt to 72pt"},
		{"plot-log", "z", "expected x, y or xy"},
	} {
		var p Plots
		flags := pflag.NewFlagSet("", pflag.ContinueOnError)
		p.Register(flags)
		if err := flags.Set(c.flag, c.value); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("--%s %s: %v, want %s", c.flag, c.value, err, c.want)
		}
	}
}

func TestTableErrors(t *testing.T) {
	for text, want := range map[string]string{
		"":                                    "line of headings",
		"a,b\n":                               "found 2 columns",
		"g,s,v\na,b,x\n":                      "line 2: expected a number",
		"g,s,v\na,b,NaN\n":                    "line 2: expected a number",
		"g,s,v\na,b,1\na,b,2\n":               "line 3: expected one value",
		"g,s,v,l,h\na,b,1,3,2\n":              "low at most high",
		"g,s,v,l,h\na,b,1,3,\n":               "expected a number",
		"g,s,v\na,b\n":                        "wrong number of fields",
		"g,s,v\n" + strings.Repeat("\"\n", 3): "line",
	} {
		if _, err := Table(strings.NewReader(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, expected %q", text, err, want)
		}
	}
}

// FuzzTable checks that a table is an error, or that its pictures can be drawn.
func FuzzTable(f *testing.F) {
	f.Add("g,s,v,l,h\na,b,1,0,2\nc,b,2,,\n")
	f.Add("x,,y\n1,,2\n3,,4\n")
	f.Fuzz(func(t *testing.T, text string) {
		r, err := Table(strings.NewReader(text))
		if err != nil {
			return
		}
		s := &source{Report: r}
		for _, draw := range []func(*source) *picture{drawBars, drawLines} {
			if p := draw(s); p != nil {
				for _, panel := range p.panels {
					panel.setRanges()
				}
				new(PlotData).add(p)
			}
		}
	})
}

// TestPlotFiles checks how pictures are named.
func TestPlotFiles(t *testing.T) {
	o := options(t, "--plot", "./a=b.svg", "--plot", "sweep:fct_ps.p99=C.PDF", "--plot", "matrix=d=e.png")
	want := []PlotFile{{"", "", "./a=b.svg"}, {"sweep", "fct_ps.p99", "C.PDF"}, {"matrix", "", "d=e.png"}}
	if !slices.Equal(o.Files, want) {
		t.Errorf("%+v", o.Files)
	}
}

// TestPlotData checks the table of plotted numbers.
func TestPlotData(t *testing.T) {
	var data PlotData
	o := options(t)
	for kind, r := range map[string]*Report{"ranks": runOf(t, "", 2)} {
		if err := r.Plot(new(bytes.Buffer), PlotFile{Kind: kind, Name: "x.svg"}, o, &data); err != nil {
			t.Fatal(err)
		}
	}
	if err := sweepOf(t, 2).Plot(new(bytes.Buffer), PlotFile{Name: "x.svg"}, o, &data); err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	if err := data.WriteCSV(&out); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"kind,series,rank,time (ps),L (ps),makespan (ps),", "\nranks,exposed communication,1,2000,",
		"\nsweep,G = 1GB/s,,,1000000,23500000,1000000,46000000\n"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("%q lacks %q", out.String(), want)
		}
	}
}

// TestPlotAxes checks that a logarithmic axis is labelled, and that the unit of times follows their size.
func TestPlotAxes(t *testing.T) {
	p := plotOf(t, sweepOf(t, 2), "sweep")
	panel := p.panels[0]
	panel.setRanges()
	if x, y := panel.x.label(), panel.y.label(); x != "L (µs)" || y != "makespan (µs)" {
		t.Errorf("%q and %q", x, y)
	}
	if err := p.setLog("xy"); err != nil {
		t.Fatal(err)
	}
	panel.setRanges()
	if x, y := panel.x.label(), panel.y.label(); x != "L (logarithmic)" || y != "makespan (logarithmic)" {
		t.Errorf("%q and %q", x, y)
	}
	if err := plotOf(t, runOf(t, "", 2), "ranks").setLog("y"); err == nil {
		t.Error("an axis of stacked bars is logarithmic")
	}
	if err := plotOf(t, reportOf(t, Simulation, `{"finish_ps":[0]}`), "ranks").setLog("y"); err == nil {
		t.Error("an axis from 0 to 0 is logarithmic")
	}
}

// TestPlotGround checks the background of pictures.
func TestPlotGround(t *testing.T) {
	for _, c := range []struct {
		args  []string
		red   uint32
		alpha uint32
	}{{nil, 0xffff, 0xffff}, {[]string{"--plot-dark"}, 0x1616, 0xffff}, {[]string{"--plot-transparent"}, 0, 0}} {
		var out bytes.Buffer
		if err := runOf(t, "", 2).Plot(&out, PlotFile{Name: "x.png"}, options(t, c.args...), nil); err != nil {
			t.Fatal(err)
		}
		image, err := png.Decode(&out)
		if err != nil {
			t.Fatal(err)
		}
		if red, _, _, alpha := image.At(2, 2).RGBA(); red != c.red || alpha != c.alpha {
			t.Errorf("%v: red %x, alpha %x", c.args, red, alpha)
		}
	}
}

// TestPlotText checks that texts are escaped, and that no picture has the time at which it was drawn.
func TestPlotText(t *testing.T) {
	var svg, pdf bytes.Buffer
	r := runOf(t, `a < b & "c" </text>`, 3)
	for format, out := range map[string]*bytes.Buffer{"svg": &svg, "pdf": &pdf} {
		if err := r.Plot(out, PlotFile{Kind: "ranks", Name: "x." + format}, options(t), nil); err != nil {
			t.Fatal(err)
		}
	}
	if !strings.Contains(svg.String(), ">a &lt; b &amp; &#34;c&#34; &lt;/text&gt;</text>") ||
		!strings.Contains(svg.String(), ">exposed communication</text>") ||
		!strings.Contains(svg.String(), "Liberation Sans,Arial,") {
		t.Errorf("%s", svg.String())
	}
	dates := regexp.MustCompile(`Date \(D:(\d{8})`).FindAllStringSubmatch(pdf.String(), -1)
	if len(dates) == 0 {
		t.Error("no date in the pdf file")
	}
	for _, date := range dates {
		if date[1] != "20000101" {
			t.Errorf("a date in the pdf file: %v", date)
		}
	}
	if encoded, ok := encode("µs – …"); !ok || encoded != "\xb5s \x96 \x85" {
		t.Errorf("%q", encoded)
	}
	if got := visual("abc \u05e9\u05dc"); got != "abc \u05dc\u05e9" {
		t.Errorf("%q", got)
	}
}

// TestPlotGolden compares pictures with files.
func TestPlotGolden(t *testing.T) {
	for name, r := range map[string]*Report{"sweep": sweepOf(t, 2), "ranks": runOf(t, "three ranks", 3)} {
		var out bytes.Buffer
		if err := r.Plot(&out, PlotFile{Kind: name, Name: "x.svg"}, options(t), nil); err != nil {
			t.Fatal(err)
		}
		golden.Check(t, "testdata/"+name+".svg", out.String())
	}
}

// TestExample draws the picture of an example from its table.
func TestExample(t *testing.T) {
	const table, name = "../../docs/examples/flit-vef.csv", "../../docs/examples/flit-vef.svg"
	text, err := os.ReadFile(table)
	if err != nil {
		t.Fatal(err)
	}
	rows, err := csv.NewReader(bytes.NewReader(text)).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	p := &picture{title: "Variants of three workloads"}
	for k, series := range rows[0][2:] {
		p.keys = append(p.keys, fillKey(series, 2*k))
	}
	for _, row := range rows[1:] {
		n := len(p.panels)
		if n == 0 || p.panels[n-1].title != row[0] {
			y := plotAxis{of: quantity{name: "relative to the reference"}}
			p.panels = append(p.panels, &panel{title: row[0], x: plotAxis{of: quantity{name: "variant"}}, y: y})
			n++
		}
		panel := p.panels[n-1]
		for k, cell := range row[2:] {
			v, err := strconv.ParseFloat(cell, 64)
			if err != nil {
				t.Fatal(err)
			}
			panel.marks = append(panel.marks, &barMarks{name: rows[0][2+k], fill: 2 * k, at: []int{len(panel.x.names)}, wide: 0.2,
				shift: 0.2 * (float64(k) - 1.5), to: []num{rounded(v)}, size: []num{rounded(v)}})
		}
		panel.x.names = append(panel.x.names, row[1])
	}
	for _, panel := range p.panels {
		panel.sameAs = p.panels
	}
	var out bytes.Buffer
	o := options(t, "--plot-size", "24cm:9cm")
	if err := p.write(&out, "svg", o); err != nil {
		t.Fatal(err)
	}
	checkInside(t, name, p, o)
	golden.Check(t, name, out.String())
}

// TestGraphviz checks the text for Graphviz.
func TestGraphviz(t *testing.T) {
	r := samples(t)["dag"][0]
	var out bytes.Buffer
	if err := r.Plot(&out, PlotFile{Kind: "dag", Name: "x.dot"}, options(t), nil); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{`digraph "a \"quoted\" trace" {`, `r0_0 [label="0 calc a \"b\" \\"]`, "r0_0 -> r0_1\n",
		"r1_0 -> r1_1 [style=dashed]", `r0_1 -> r1_0 [color=`} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("%s lacks %s", out.String(), want)
		}
	}
}

// TestMeasure checks the measures of paths in a result.
func TestMeasure(t *testing.T) {
	for path, want := range map[string]string{"fct_ps.p99": "fct p99 (ps)", "makespan_ps": "makespan (ps)",
		"slowdown.p50": "slowdown p50", "bytes": "bytes (bytes)"} {
		m := measureOf(path)
		if got := (quantity{m.name, m.unit, m.in}).column(); got != want {
			t.Errorf("%s: %s, want %s", path, got, want)
		}
	}
	r := pointsOf(t, ofSweep, `{"run":{"factors":{"L":"1us"}},"fct_ps":{"p99":7}}`)
	var data PlotData
	if err := r.Plot(new(bytes.Buffer), PlotFile{"sweep", "fct_ps.p99", "x.svg"}, options(t), &data); err != nil {
		t.Fatal(err)
	}
	if len(data.rows) != 1 || data.rows[0]["fct p99 (ps)"] != "7" {
		t.Errorf("%v", data.rows)
	}
	err := r.Plot(new(bytes.Buffer), PlotFile{"sweep", "fct_ps.p98", "x.svg"}, options(t), nil)
	if err == nil || !strings.Contains(err.Error(), "fct_ps.p98") {
		t.Error(err)
	}
}

// TestNatural checks the order of names with numbers.
func TestNatural(t *testing.T) {
	names := []string{"tor10", "tor9", "tor", "host010", "host2", "a", ""}
	slices.SortFunc(names, natural)
	if want := []string{"", "a", "host2", "host010", "tor", "tor9", "tor10"}; !slices.Equal(names, want) {
		t.Errorf("%q, want %q", names, want)
	}
}

// TestPlotChecks checks the errors about pictures that a result cannot have.
func TestPlotChecks(t *testing.T) {
	for _, c := range []struct {
		plot, backend string
		sweep, alone  bool
		want          string
	}{
		{"ranks=x.svg", "loggops", false, false, ""},
		{"x.svg", "loggops", true, false, ""},
		{"fct=x.svg", "packet", false, false, ""},
		{"fct=x.svg", "loggops", false, false, "--plot fct: needs --backend packet"},
		{"queues=x.svg", "packet", false, false, "--plot queues: needs --sample"},
		{"ranks=x.svg", "loggops", true, false, "--plot ranks: this is no picture of a sweep, expected one of sweep"},
		{"sweep=x.svg", "flit", false, true, "--plot sweep: this is no picture of synthetic traffic, expected one of load, "},
		{"dag=x.svg", "packet", false, false, "--plot dag: this is no picture of a run, expected one of "},
	} {
		o := Outputs{Plots: *options(t, "--plot", c.plot)}
		err := o.Begin(c.backend, c.sweep, c.alone, func(string) bool { return false })
		if (err == nil) != (c.want == "") || err != nil && !strings.HasPrefix(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", c.plot, err, c.want)
		}
	}
	for kind, want := range map[string]Feature{"": Breakdown, "queues=": Figures, "matrix=": Traffic, "critical=": CriticalPath,
		"jobs=": 0} {
		o := Outputs{Plots: *options(t, "--plot", kind+"x.svg"), of: ofRun}
		for _, f := range []Feature{Breakdown, CriticalPath, Traffic, Figures} {
			if o.Wants(f) != (f == want) {
				t.Errorf("--plot %sx.svg: feature %d: %v", kind, f, o.Wants(f))
			}
		}
	}
	o := Outputs{Plots: *options(t, "--plot-data", "x.csv")}
	if err := o.BeginTrace(); err == nil {
		t.Error("numbers without a picture")
	}
	var w bytes.Buffer
	err := reportOf(t, Simulation, `{"finish_ps":[1]}`).Plot(&w, PlotFile{Kind: "jobs", Name: "x.svg"}, options(t), nil)
	if err == nil || err.Error() != "--plot jobs: needs several jobs" {
		t.Error(err)
	}
	if err := reportOf(t, Simulation, `{}`).Plot(&w, PlotFile{Name: "x.svg"}, options(t), nil); err == nil {
		t.Error("a picture of nothing")
	}
}

// FuzzPlot checks that no document makes a picture fail.
func FuzzPlot(f *testing.F) {
	f.Add(result("title", 3))
	f.Add([]byte(`{"finish_ps":[1e400,-5,"x"],"breakdown_total":{"wait_ps":1},"ports":{"columns":["use"],"rows":[1,[]]}}`))
	f.Add([]byte(`{"fct_cdf":[[1],{}],"jobs":[{}],"matrix":{"bytes":[[-1,1e300,5e-324]]},"critical_path":{"a_ps":1}}`))
	f.Add([]byte(`{"dag":{"ops":[{"rank":0,"op":1e9}],"messages":[[]]},"by_rank":[{"ops":-5}],"sizes":[{}]}`))
	f.Fuzz(func(t *testing.T, document []byte) {
		for _, read := range []func([]byte) (*Report, error){Simulation, Trace} {
			r, err := read(bytes.Clone(document))
			if err != nil {
				return
			}
			for _, log := range []string{"x", "y", ""} {
				for i := range plots {
					if plots[i].of&r.of == 0 {
						continue
					}
					o := options(t)
					o.Log = log
					var out bytes.Buffer
					if err := r.Plot(&out, PlotFile{Kind: plots[i].name, Name: "x.svg"}, o, new(PlotData)); err == nil &&
						out.Len() == 0 {
						t.Errorf("%s: an empty picture", plots[i].name)
					}
					if bytes.Contains(out.Bytes(), []byte("NaN")) || bytes.Contains(out.Bytes(), []byte("Inf")) {
						t.Errorf("%s: a number that is none", plots[i].name)
					}
				}
			}
		}
	})
}
