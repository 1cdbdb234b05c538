package fit

import (
	"math"
	"slices"
	"testing"
)

// TestSmooth: a segment of one size whose latency and bandwidth make up for each other joins its neighbor, although
// windows, taken as linear about its factors, do not show that.
func TestSmooth(t *testing.T) {
	const latency, rate, os, or = 1e-5, 1e9, 1e-6, 2e-6
	const latencyFactor, bandwidthFactor = 1.4, 0.8
	window := func(bytes int64, latencyFactor, bandwidthFactor, or float64) float64 {
		transfer := float64(bytes+16) / (rate * bandwidthFactor)
		return os + latency*latencyFactor + math.Max(16*transfer, transfer+16*or)
	}
	table := &Table{Name: "machine", Tool: "csv"}
	for _, bytes := range []int64{512, 768, 1024, 2048, 3072, 4096, 6144, 8192} {
		transfer := latency*latencyFactor + float64(bytes+16)/(rate*bandwidthFactor)
		for test, seconds := range map[string]float64{PingPong: os + transfer + or, SendCall: os, SendLate: os,
			RecvLate: or, IsendCall: os, Window: window(bytes, latencyFactor, bandwidthFactor, or)} {
			table.Rows = append(table.Rows, Measurement{Test: test, Where: "0-1", Bytes: bytes, Window: 16,
				Seconds: seconds})
		}
	}
	options := FlowOptions{Topology: "x.xml", Envelope: 16,
		Route: func(string) (Route, error) { return Route{Latency: latency, Rate: rate}, nil },
		Simulate: func(f *File, rows []Measurement) (times []float64, err error) {
			for _, m := range rows {
				k := 0
				for k+1 < len(f.Segments) && f.Segments[k+1].From <= m.Bytes {
					k++
				}
				p := f.Segments[k].Parameters
				each := p["or"].Value + p["or_per_byte"].Value*float64(m.Bytes)
				times = append(times, window(m.Bytes, p["latency_factor"].Value, p["bandwidth_factor"].Value, each))
			}
			return times, nil
		}}
	common, err := newEstimate([]*Table{table}, options.Options, &File{Backend: "flow", Model: "smpi"})
	if err != nil {
		t.Fatal(err)
	}
	e := &flowEstimate{options: options, estimate: *common, routes: []Route{{latency, rate}}}
	e.findThresholds()
	if err := e.findOverheads(); err != nil {
		t.Fatal(err)
	}
	e.network = e.messages
	e.findFactors()
	j := newJoint(e)
	right := j.present(j.shape())
	if len(right.cuts[ofNetwork]) > 0 {
		t.Fatalf("factors have cuts at %v, expected none", right.cuts[ofNetwork])
	}
	if err := j.linearize(right); err != nil {
		t.Fatal(err)
	}
	wrong := right.shape.clone()
	at := slices.Index(j.sizes, 2048)
	wrong.cuts[ofNetwork] = []int{at, at + 1}
	best := j.solve(wrong)
	const narrow = 0.1 // 1 / bandwidth factor
	best.values[ofNetwork][1] = [2]float64{latencyFactor + (2048+16)/rate*(1/bandwidthFactor-narrow)/latency, narrow}
	if err := j.linearize(best); err != nil {
		t.Fatal(err)
	}
	if _, worst := j.evaluate(best, nil); !best.odd(1) || best.odd(0) || best.odd(2) || worst < 0.01 {
		t.Fatalf("factors %v with a largest error of %g, expected those of the middle segment to be odd",
			best.values[ofNetwork], worst)
	}
	c := contest{joint: j, best: best, bestRows: slices.Clone(j.rows)}
	if err := c.smooth(); err != nil {
		t.Fatal(err)
	}
	if len(c.best.cuts[ofNetwork]) != 1 {
		t.Fatalf("cuts at %v, expected one less", c.best.cuts[ofNetwork])
	}
	j.rows = c.bestRows
	if _, worst := j.evaluate(c.best, nil); worst > 1e-4 {
		t.Errorf("largest error of windows is %g", worst)
	}
	for _, v := range c.best.values[ofNetwork] {
		if math.Abs(v[0]/latencyFactor-1) > 1e-3 || math.Abs(v[1]*bandwidthFactor-1) > 1e-3 {
			t.Errorf("factors %v, expected a latency factor of %g and a bandwidth factor of %g", v, latencyFactor,
				bandwidthFactor)
		}
	}
}
