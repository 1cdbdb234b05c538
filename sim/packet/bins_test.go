package packet

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"slices"
	"strconv"
	"testing"

	"github.com/tracedag/tracedag/dag"
	"github.com/tracedag/tracedag/param"
	"github.com/tracedag/tracedag/sim"
	"github.com/tracedag/tracedag/sim/measure"
)

// TestFlowBins compares bins with figures worked out by hand.
func TestFlowBins(t *testing.T) {
	r := &Report{}
	for i := range 20 { // 1000 B: FCTs of 100 to 2000, delivered half-way
		took := dag.Time(100 * (i + 1))
		r.Flows = append(r.Flows, Flow{Bytes: 1000, Start: 10, Delivered: 10 + took/2, Acknowledged: 10 + took})
		r.Ideal = append(r.Ideal, 50)
	}
	r.Flows = append(r.Flows, Flow{Bytes: 1001, Start: 9, Delivered: 309, Acknowledged: 509}, // too early
		Flow{Bytes: 1001, Start: 20, Delivered: 320, Acknowledged: 520}, // too late
		Flow{Bytes: 1001, Start: 19, Delivered: 319, Acknowledged: 519},
		Flow{Bytes: 1001, Start: 19, Delivered: 319})
	r.Ideal = append(r.Ideal, 100, 100, 150, 100)
	r.summarize(&Options{Window: measure.Window{From: 10, Until: 20}})
	times := func(mean float64, n int64, p50, p95, p99, most, least dag.Time) measure.Distribution[dag.Time] {
		return measure.Distribution[dag.Time]{Count: n, Mean: mean, Min: least, P50: p50, P95: p95, P99: p99, P999: most,
			Max: most}
	}
	slow := func(mean float64, n int64, p50, p95, p99, most, least float64) measure.Distribution[float64] {
		return measure.Distribution[float64]{Count: n, Mean: mean, Min: least, P50: p50, P95: p95, P99: p99, P999: most,
			Max: most}
	}
	want := []FlowBin{
		{Bin: measure.Bin{Name: "100B..1kB", From: 101, To: 1000}, FCT: times(1050, 20, 1000, 1900, 2000, 2000, 100),
			Slowdown: slow(10.5, 20, 10, 19, 20, 20, 1)},
		{Bin: measure.Bin{Name: "1kB..10kB", From: 1001, To: 10_000}, FCT: times(500, 1, 500, 500, 500, 500, 500),
			Slowdown: slow(2, 1, 2, 2, 2, 2, 2)},
	}
	same := slices.EqualFunc(r.Bins, want, func(a, b FlowBin) bool {
		return a.Name == b.Name && a.From == b.From && a.To == b.To && a.FCT == b.FCT && a.Slowdown == b.Slowdown
	})
	if !same {
		t.Errorf("got %+v, expected %+v", r.Bins, want)
	}
	if r.Excluded != 2 || r.Incomplete != 1 || r.FCT.Count != 21 || r.Delivered.Count != 22 || r.Slowdown.Count != 22 ||
		len(r.Sizes) != 2 || r.Sizes[1].FCT.Count != 1 || r.Last != 2010 || r.Bytes != 20*1000+3*1001 {
		t.Errorf("got %+v", r)
	}
}

// output is a file in memory.
type output struct{ bytes.Buffer }

func (*output) Commit() error { return nil }
func (*output) Close()        {}

// TestFlowLabels runs two jobs and compares the labels and bins of their flows with those of the trace.
func TestFlowLabels(t *testing.T) {
	const name = "first, \"a\"\nsecond"
	b := dag.NewBuilder(2)
	b.Meta().Jobs = []string{"x", ""}
	sizes, jobs := []int64{500, 5000, 700}, []int32{1, 0, 1}
	names, classes := []string{name, "", "last"}, []string{`{"class":"query"}`, `{"class":7}`, `{"classes":"none"}`}
	for i, size := range sizes {
		b.Rank(0).Add(dag.Op{Kind: dag.Send, Peer: 1, Bytes: size, Tag: int64(i), Job: jobs[i], Name: names[i],
			Attrs: classes[i], Release: dag.Time(i) * dag.Millisecond})
		b.Rank(1).Add(dag.Op{Kind: dag.Recv, Peer: 0, Bytes: size, Tag: int64(i), Job: jobs[i]})
	}
	var flows output
	env := &sim.Env{
		Create: func(string) (sim.Output, error) { return &flows, nil },
		Given:  func(name string) bool { return name == "fct-bins" },
	}
	backend := Backend.New()
	err := backend.Params().Apply(param.Texts{"topology": {"star:hosts=2"}, "flows": {"f.csv"}, "fct-bins": {"1KB"}})
	if err == nil {
		err = backend.Check(env)
	}
	if err != nil {
		t.Fatal(err)
	}
	replay, err := backend.Compile(dag.FromTrace(b.Trace()), env)
	if err != nil {
		t.Fatal(err)
	}
	result, err := replay.Run(sim.RunOptions{Files: true})
	if err != nil {
		t.Fatal(err)
	}
	rows, err := csv.NewReader(&flows).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	want := [][]string{{"job", "class", "name"}, {"#1", "query", name}, {"x", "7", ""}, {"#1", "", "last"}}
	if len(rows) != len(want) {
		t.Fatalf("%q", rows)
	}
	for i, row := range rows {
		if len(row) != 13 || !slices.Equal(row[10:], want[i]) || i > 0 && row[2] != strconv.FormatInt(sizes[i-1], 10) {
			t.Errorf("row %d: %q", i, row)
		}
	}
	text, err := sim.MarshalJSON(result.Section("fct_bins").Value)
	if err != nil {
		t.Fatal(err)
	}
	var table struct{ Rows [][]any }
	if err := json.Unmarshal(text, &table); err != nil {
		t.Fatal(err)
	}
	bins := [][]any{
		{nil, nil, "0B..1kB", 0.0, 1000.0, 2.0}, {nil, nil, "1kB..", 1001.0, nil, 1.0},
		{"x", nil, "1kB..", 1001.0, nil, 1.0}, {"#1", nil, "0B..1kB", 0.0, 1000.0, 2.0},
		{nil, "7", "1kB..", 1001.0, nil, 1.0}, {nil, "query", "0B..1kB", 0.0, 1000.0, 1.0},
	}
	if !slices.EqualFunc(table.Rows, bins, func(a, b []any) bool { return slices.Equal(a[:6], b) }) {
		t.Errorf("%s", text)
	}
}
