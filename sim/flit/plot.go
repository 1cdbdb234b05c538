package flit

import (
	"fmt"
	"io"
	"path/filepath"
	"strings"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
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

// plotCurve plots the mean packet latency and the accepted load over the nominal load.
func plotCurve(w io.Writer, format string, points []syntheticPoint) error {
	var latency, accepted plotter.XYs
	for i := range points {
		if pt := &points[i]; pt.figures != nil {
			latency = append(latency, plotter.XY{X: pt.Traffic.Load, Y: pt.Packet.Mean})
			accepted = append(accepted, plotter.XY{X: pt.Traffic.Load, Y: pt.Accepted})
		}
	}
	title := fmt.Sprintf("%s, %s", patternName(&points[0].Traffic), points[0].Model)
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

func axes(title, y string, points plotter.XYs) (*plot.Plot, error) {
	p := plot.New()
	p.Title.Text, p.X.Label.Text, p.Y.Label.Text = title, "load, flits per cycle and host", y
	p.Y.Min = 0
	p.Add(plotter.NewGrid())
	if len(points) == 0 { // every load ended in a deadlock
		return p, nil
	}
	line, marks, err := plotter.NewLinePoints(points)
	if err != nil {
		return nil, err
	}
	p.Add(line, marks)
	return p, nil
}
