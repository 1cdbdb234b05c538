package gpustats

import (
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/tracedag/tracedag/dag"
	"github.com/tracedag/tracedag/formats/format"
	"github.com/tracedag/tracedag/formats/kineto"
)

// htaPath is a critical path of HTA.
type htaPath struct {
	Nodes          int
	Edges          map[string]int
	CriticalNodes  int                `json:"critical_nodes"`
	CriticalEvents int                `json:"critical_events"`
	Weight         float64            `json:"critical_weight_us"`
	Waits          [][2][4]any        `json:"sync_edges"`
	Summary        map[string]float64 `json:"summary_pct"`
	File           string
}

// TestPathVectors compares with critical paths of HTA.
func TestPathVectors(t *testing.T) {
	root := os.Getenv("TRACEDAG_VECTORS")
	if root == "" {
		t.Skip("TRACEDAG_VECTORS is not set")
	}
	content, err := os.ReadFile(filepath.Join(root, "kineto", "hta_critical_path.json"))
	if err != nil {
		t.Skip(err)
	}
	var all map[string]json.RawMessage
	if err := json.Unmarshal(content, &all); err != nil {
		t.Fatal(err)
	}
	parts := map[string]Part{"event_sync_multi_stream": {}, "event_sync": {Name: "ProfilerStep"},
		"alexnet":    {Name: "[param|pytorch.model.alex_net|0|0|0|measure|forward]", First: 1, Last: 1},
		"simple_add": {Name: "[param|pytorch.model.alex_net|0|0|0|measure|forward]", First: 1, Last: 1}}
	for name, part := range parts {
		if all[name] == nil {
			continue
		}
		t.Run(name, func(t *testing.T) {
			var want htaPath
			if err := json.Unmarshal(all[name], &want); err != nil {
				t.Fatal(err)
			}
			in := readFile(t, filepath.Join(root, "kineto", want.File))
			profiles, err := kineto.ReadProfiles([]*format.Input{in},
				format.ReadOptions{Warn: func(string, ...any) {}}, kineto.Events{Reference: true, Path: true})
			if err != nil {
				t.Fatal(err)
			}
			paths, err := Paths(profiles, part, true)
			if err != nil {
				t.Fatal(err)
			}
			checkPath(t, paths[0], &want)
		})
	}
}

func checkPath(t *testing.T, got *Path, want *htaPath) {
	t.Helper()
	if got.Points != want.Nodes || fmt.Sprint(got.Edges) != fmt.Sprint(want.Edges) ||
		got.PathPoints != want.CriticalNodes || got.PathEvents != want.CriticalEvents ||
		micros(got.Length) != want.Weight {
		t.Errorf("found %d points, edges %v; path: %d points, %d events, %v; expected %+v", got.Points, got.Edges,
			got.PathPoints, got.PathEvents, got.Length, want)
	}
	for _, p := range got.Parts {
		if math.Abs(100*p.Share-want.Summary[p.Bound]) > 5.1e-4 {
			t.Errorf("%s: expected %v %%, found %v", p.Bound, want.Summary[p.Bound], 100*p.Share)
		}
	}
	edge := func(events [2][4]any) string { return fmt.Sprint(events) }
	var found, expected []string
	for _, w := range got.Waits {
		var x [2][4]any
		for i, e := range []PathEvent{w.From, w.To} {
			x[i] = [4]any{float64(e.Event), e.Name[:min(len(e.Name), 60)], nil, float64(e.Correlation)}
			if e.Stream != nil {
				x[i][2] = float64(*e.Stream)
			}
		}
		found = append(found, edge(x))
	}
	for _, w := range want.Waits {
		expected = append(expected, edge(w))
	}
	slices.Sort(found)
	slices.Sort(expected)
	if !slices.Equal(found, expected) {
		t.Errorf("waits:\n%s\nexpected:\n%s", strings.Join(found, "\n"), strings.Join(expected, "\n"))
	}
}

// TestPath finds the path of a kernel that is launched late, one that follows, and a wait of the host.
func TestPath(t *testing.T) {
	const us = dag.Microsecond
	var f kineto.Reference
	add := func(name string, kind kineto.EventKind, start, end dag.Time, stream, correlation int64, source, record int64) {
		d := kineto.Detail{Process: "1", Thread: "1", Kind: kind, Source: source, Record: record}
		if stream >= 0 {
			d.Process, d.Thread = "0", fmt.Sprint(stream)
		}
		f.Rows = append(f.Rows, kineto.Row{Start: start * us, End: end * us, Stream: stream, Correlation: correlation,
			Index: int64(len(f.Rows)), Name: name, OnDevice: stream >= 0 && correlation >= 0})
		f.Details = append(f.Details, d)
	}
	const op, run, sync, other = kineto.OperatorEvent, kineto.RuntimeEvent, kineto.SyncEvent, kineto.OtherEvent
	add("aten::a", op, 0, 20, -1, -1, -1, -1)
	add("cudaLaunchKernel", run, 5, 8, -1, 1, -1, -1)
	add("cudaLaunchKernel", run, 16, 18, -1, 2, -1, -1)
	add("first", other, 14, 40, 7, 1, -1, -1)
	add("ncclDevKernel_AllReduce", other, 41, 90, 7, 2, -1, -1)
	add("aten::b", op, 25, 100, -1, -1, -1, -1)
	add("cudaStreamSynchronize", run, 30, 95, -1, 3, -1, -1)
	add("Stream Sync", sync, 30, 91, 7, 3, -1, -1)
	paths, err := Paths([]*kineto.Profile{{Rank: 4, Reference: &f}}, Part{}, false)
	if err != nil {
		t.Fatal(err)
	}
	p := paths[0]
	want := map[string]dag.Time{"cpu_bound": 5*us + 5*us, "gpu_compute_bound": 26 * us,
		"gpu_communication_bound": 49 * us, "gpu_kernel_kernel_overhead": 1 * us, "gpu_kernel_launch_overhead": 9 * us}
	total := dag.Time(0)
	for _, x := range p.Parts {
		if x.Time != want[x.Bound] {
			t.Errorf("%s: %v, expected %v", x.Bound, x.Time, want[x.Bound])
		}
		total += x.Time
	}
	if p.Rank != 4 || total != p.Length || p.Length != 95*us || p.Names[0].Name != "ncclDevKernel_AllReduce" ||
		len(p.Waits) != 1 {
		t.Errorf("%+v", p)
	}
	if _, err := Paths([]*kineto.Profile{{Reference: &f}}, Part{Name: "absent"}, false); err == nil {
		t.Error("a part that is absent has a path")
	}
}
