package flit

import (
	"image/color"
	"io"
	"path/filepath"
	"strings"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/plotutil"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"

	"github.com/tracedag/tracedag/param"
)

// plotFormats are the picture formats by file name ending.
var plotFormats = []string{"svg", "png", "pdf"}

// plotFormat returns the picture format of a file name.
func plotFormat(path string) (string, error) {
	format := strings.ToLower(strings.TrimPrefix(filepath.Ext(path), "."))
	for _, f := range plotFormats {
		if f == format {
			return f, nil
		}
	}
	return "", param.Errorf("plot", "%s: expected a name that ends with .svg, .png or .pdf", path)
}

// series is a curve of a plot.
type series struct {
	name   string
	points plotter.XYs
}

// plotCurve plots the mean packet latency and the accepted load over the nominal load, with a series per routing
// algorithm.
func plotCurve(w io.Writer, format string, points []syntheticPoint) error {
	var latency, accepted []series
	for i := range points {
		pt := &points[i]
		if i == 0 || pt.Model != points[i-1].Model {
			latency, accepted = append(latency, series{name: pt.Model}), append(accepted, series{name: pt.Model})
		}
		if pt.figures != nil {
			last := len(latency) - 1
			latency[last].points = append(latency[last].points, plotter.XY{X: pt.Traffic.Load, Y: pt.Packet.Mean})
			accepted[last].points = append(accepted[last].points, plotter.XY{X: pt.Traffic.Load, Y: pt.Accepted})
		}
	}
	title := patternName(&points[0].Traffic)
	if len(latency) == 1 {
		title += ", " + points[0].Model
	}
	left, err := axes(title, "mean latency of packets, cycles", latency)
	if err != nil {
		return err
	}
	right, err := axes(title, "accepted load, flits per cycle and host", accepted)
	if err != nil {
		return err
	}
	c, err := draw.NewFormattedCanvas(20*vg.Centimeter, 9*vg.Centimeter, format)
	if err != nil {
		return err
	}
	row := [][]*plot.Plot{{left, right}}
	tiles := draw.Tiles{Rows: 1, Cols: 2, PadX: vg.Centimeter, PadTop: vg.Millimeter, PadBottom: vg.Millimeter,
		PadLeft: vg.Millimeter, PadRight: 3 * vg.Millimeter}
	for k, at := range plot.Align(row, tiles, draw.New(c))[0] {
		row[0][k].Draw(at)
	}
	_, err = c.WriteTo(w)
	return err
}

// axes returns a plot of series. Several have a legend, and differ by color, dashes and marks.
func axes(title, y string, all []series) (*plot.Plot, error) {
	p := plot.New()
	p.Title.Text, p.X.Label.Text, p.Y.Label.Text = title, "load, flits per cycle and host", y
	p.Y.Min = 0
	p.Add(plotter.NewGrid())
	p.Legend.Top, p.Legend.Left = true, true
	for i := range all {
		if len(all[i].points) == 0 { // every load ended in a deadlock
			continue
		}
		line, marks, err := plotter.NewLinePoints(all[i].points)
		if err != nil {
			return nil, err
		}
		if len(all) > 1 {
			line.Color, marks.Color = seriesColors[i%len(seriesColors)], seriesColors[i%len(seriesColors)]
			line.Dashes, marks.Shape = plotutil.Dashes(i), plotutil.Shape(i)
			p.Legend.Add(all[i].name, line, marks)
		}
		p.Add(line, marks)
	}
	return p, nil
}

// seriesColors are colors of Okabe and Ito (2008), which the color-blind can tell apart.
var seriesColors = []color.Color{
	color.RGBA{0, 114, 178, 255}, color.RGBA{213, 94, 0, 255}, color.RGBA{0, 158, 115, 255},
	color.RGBA{204, 121, 167, 255}, color.RGBA{0, 0, 0, 255},
}
