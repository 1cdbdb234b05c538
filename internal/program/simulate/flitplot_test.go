package simulate

import (
	"bytes"
	"encoding/csv"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/plotutil"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"

	"github.com/tracedag/tracedag/internal/cli/clitest"
	"github.com/tracedag/tracedag/internal/golden"
)

func TestFlitPlot(t *testing.T) {
	dir := t.TempDir()
	for name, begins := range map[string]string{"x.svg": "<?xml", "x.PNG": "\x89PNG", "x.pdf": "%PDF"} {
		path := filepath.Join(dir, name)
		r := clitest.Run(newCommand, "--backend", "flit", "--synthetic", "uniform", "--load", "0.1..0.9:3", "--warmup", "100",
			"--measure", "200", "--plot", path)
		picture, err := os.ReadFile(path)
		if err != nil || r.Status != 0 || !bytes.HasPrefix(picture, []byte(begins)) || !strings.Contains(r.Stdout, "0.9") {
			t.Errorf("%s: %v, status %d, %.20q", name, err, r.Status, picture)
		}
	}
	r := clitest.Run(newCommand, "--backend", "flit", "--synthetic", "uniform", "--plot", filepath.Join(dir, "x.gif"))
	if r.Status != 2 || !strings.Contains(r.Stderr, ".svg, .png or .pdf") {
		t.Errorf("status %d, %s", r.Status, r.Stderr)
	}
}

// The picture of the example is drawn from its figures.
func TestFlitFigures(t *testing.T) {
	const table, picture = "../../../docs/examples/flit-vef.csv", "../../../docs/examples/flit-vef.svg"
	f, err := os.Open(table)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	rows, err := csv.NewReader(f).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	p := plot.New()
	p.Y.Label.Text, p.Y.Min = "of the reference", 0
	p.Legend.Top = true
	var names []string
	for _, row := range rows[1:] {
		names = append(names, row[1]+"\n"+row[0])
	}
	const width = 6
	for k, what := range rows[0][2:] {
		var values plotter.Values
		for _, row := range rows[1:] {
			v, err := strconv.ParseFloat(row[2+k], 64)
			if err != nil {
				t.Fatal(err)
			}
			values = append(values, v)
		}
		bars, err := plotter.NewBarChart(values, width)
		if err != nil {
			t.Fatal(err)
		}
		bars.Color, bars.LineStyle.Width, bars.Offset = plotutil.Color(k), 0, vg.Length(width*(2*k-3))/2
		p.Add(bars)
		p.Legend.Add(what, bars)
	}
	p.NominalX(names...)
	c, err := draw.NewFormattedCanvas(24*vg.Centimeter, 9*vg.Centimeter, "svg")
	if err != nil {
		t.Fatal(err)
	}
	p.Draw(draw.New(c))
	var got bytes.Buffer
	if _, err := c.WriteTo(&got); err != nil {
		t.Fatal(err)
	}
	if golden.Update() {
		golden.Write(t, picture, got.Bytes())
	}
	if want, err := os.ReadFile(picture); err != nil || !bytes.Equal(got.Bytes(), want) {
		t.Errorf("%s differs from the data in %s (%v); -update draws it", picture, table, err)
	}
}

// TestFlitRoutings runs two algorithms at once, and compares their points with those of single runs.
func TestFlitRoutings(t *testing.T) {
	picture := filepath.Join(t.TempDir(), "x.svg")
	run := func(args ...string) []string {
		t.Helper()
		r := clitest.Run(newCommand, append([]string{"--backend", "flit", "--topology", "torus:dims=4x4", "--synthetic",
			"uniform", "--warmup", "200", "--measure", "2000", "-q"}, args...)...)
		if r.Status != 0 {
			t.Fatalf("%v: status %d, %s", args, r.Status, r.Stderr)
		}
		return strings.Split(strings.TrimSpace(r.Stdout), "\n")
	}
	number := func(line string) string { // from the routing algorithm on
		_, rest, _ := strings.Cut(line, `"model":`)
		return rest
	}
	both := run("--load", "0.1,0.4", "--routing", "min,adaptive", "--json", "--plot", picture)
	single := append(run("--load", "0.1,0.4", "--json"), run("--load", "0.1,0.4", "--routing", "adaptive", "--json")...)
	if len(both) != 4 || len(single) != 4 {
		t.Fatalf("%d and %d lines", len(both), len(single))
	}
	for i := range both {
		if number(both[i]) == "" || number(both[i]) != number(single[i]) {
			t.Errorf("line %d: %s, expected %s", i, both[i], single[i])
		}
	}
	svg, err := os.ReadFile(picture)
	if err != nil || !bytes.Contains(svg, []byte(">adaptive</text>")) || !bytes.Contains(svg, []byte(">minimal</text>")) {
		t.Errorf("%v, %.100s", err, svg)
	}
	table := strings.Join(run("--load", "0.1", "--precision", "0.1", "--routing", "minimal,adaptive"), "\n")
	for _, part := range []string{"routing minimal, adaptive,", "measured to 10 %", "packets", "interval", "±"} {
		if !strings.Contains(table, part) {
			t.Errorf("%s lacks %s", table, part)
		}
	}
	table = strings.Join(run("--load", "saturation", "--precision", "0.2", "--routing", "minimal,adaptive"), "\n")
	if strings.Count(table, "±") != 4 || !strings.Contains(table, "zero-load latency") {
		t.Error(table)
	}
	for _, test := range []struct {
		args []string
		want string
	}{
		{[]string{"--routing", "minimal,adaptive", "x.goal"}, "--routing needs --synthetic for several algorithms"},
		{[]string{"--routing", "minimal,min", "--synthetic", "uniform"}, "expected each algorithm once"},
		{[]string{"--routing", "minimal,none", "--synthetic", "uniform"}, `unknown routing "none"`},
		{[]string{"--precision", "0.1", "x.goal"}, "--precision needs --synthetic"},
		{[]string{"--precision", "0.6", "--synthetic", "uniform"}, "0 to 0.5"},
		{[]string{"--load", "saturation", "--plot", "x.svg", "--synthetic", "uniform"}, "which has no curve"},
	} {
		r := clitest.Run(newCommand, append([]string{"--backend", "flit"}, test.args...)...)
		if r.Status != 2 || !strings.Contains(r.Stderr, test.want) {
			t.Errorf("%v: status %d, %s", test.args, r.Status, r.Stderr)
		}
	}
}
