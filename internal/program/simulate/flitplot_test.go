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
