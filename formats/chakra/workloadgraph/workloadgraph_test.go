package workloadgraph

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tracedag/tracedag/dag"
	"github.com/tracedag/tracedag/formats/format"
)

const sample = `{"workload_name": "w", "workload_graph": [
  {"Id": 5, "Name": "a", "NodeType": 4, "data_deps": [], "ctrlDeps": [99], "runtime": 7, "is_cpu_op": true,
   "tensor_size": 9},
  {"Id": 6, "Name": "b", "NodeType": 7, "data_deps": [5], "is_cpu_op": false, "comm_type": 2, "comm_size": 64,
   "comm_priority": -3},
  {"Id": 9, "Name": "c", "NodeType": 5, "data_deps": [5, 6], "is_cpu_op": false, "comm_size": 8, "comm_dst": 0,
   "comm_tag": 4},
  {"Id": 10, "Name": "d", "NodeType": 2, "data_deps": [9], "runtime": 1}
], "ngpus": 8, "soc": "s"}`

func readText(text string) (*dag.Trace, error) {
	in := &format.Input{Name: "w.json", Reader: strings.NewReader(text)}
	return read([]*format.Input{in}, format.ReadOptions{Warn: func(string, ...any) {}})
}

func TestRead(t *testing.T) {
	trace, err := readText(sample)
	if err != nil {
		t.Fatal(err)
	}
	if len(trace.Ranks) != 1 || trace.Ranks[0].Len() != 4 {
		t.Fatalf("%d ranks, %d ops", len(trace.Ranks), trace.Ops())
	}
	r := trace.Ranks[0]
	for i, want := range []struct {
		id       uint64
		kind     dag.Kind
		subkind  dag.Subkind
		bytes    int64
		duration dag.Time
		host     int32
		deps     int
	}{
		{5, dag.Calc, dag.NoSubkind, 0, 7 * dag.Microsecond, 1, 0},
		{6, dag.Coll, dag.Allgather, 64, 0, 0, 1},
		{9, dag.Send, dag.NoSubkind, 8, 0, 0, 2},
		{10, dag.Mem, dag.Load, 0, dag.Microsecond, 0, 1},
	} {
		if r.ID(i) != want.id || r.Kind[i] != want.kind || r.Subkind.At(i) != want.subkind || r.Bytes.At(i) != want.bytes ||
			r.Duration.At(i) != want.duration || r.Host.At(i) != want.host || len(r.Deps.Of(i)) != want.deps {
			t.Errorf("op %d: id %d, %v %v, %d bytes, %v, host %d, %d deps, want %+v", i, r.ID(i), r.Kind[i], r.Subkind.At(i),
				r.Bytes.At(i), r.Duration.At(i), r.Host.At(i), len(r.Deps.Of(i)), want)
		}
	}
	if r.Priority.At(1) != -3 || r.Tag.At(2) != 4 {
		t.Errorf("priority %d, tag %d", r.Priority.At(1), r.Tag.At(2))
	}
}

func TestErrors(t *testing.T) {
	for node, want := range map[string]string{
		`1`:                         "w.json:2: expected a node, found json: cannot unmarshal",
		`{"NodeType": 4}`:           "w.json:2: expected a node with Id and NodeType",
		`{"Id": 4}`:                 "w.json:2: expected a node with Id and NodeType",
		`{"Id": 4, "NodeType": 8}`:  "w.json:2: expected a NodeType of 0 to 7, found 8",
		`{"Id": 4, "NodeType": -1}`: "w.json:2: expected a node, found json: cannot unmarshal number -1",
	} {
		_, err := readText("{\"workload_graph\": [\n" + node + "]}")
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %s", node, err, want)
		}
	}
}

func TestDetect(t *testing.T) {
	for text, want := range map[string]bool{
		sample:                       true,
		"{\n  \"workload_graph\": [": true,
		`{"workload": 1}`:            false,
		`["workload_graph"]`:         false,
	} {
		if got := Format.Detect([]byte(text)); got != want {
			t.Errorf("detect(%.30s) = %v", text, got)
		}
	}
}

// The sample of the feeder itself.
func TestForeign(t *testing.T) {
	folder := os.Getenv("TRACEDAG_VECTORS")
	if folder == "" {
		t.Skip("TRACEDAG_VECTORS is not set")
	}
	text, err := os.ReadFile(filepath.Join(folder, "chakra/pytorch/feeder_workload_graph_sample.json"))
	if err != nil {
		t.Fatal(err)
	}
	trace, err := readText(string(text))
	if err != nil {
		t.Fatal(err)
	}
	for _, kind := range trace.Ranks[0].Kind {
		if kind != dag.Calc { // the collectives do not say of which kind they are
			t.Errorf("a %v", kind)
		}
	}
	if trace.Ops() != 7 || trace.Ranks[0].Duration.At(0) != 318*dag.Microsecond || !Format.Detect(text) {
		t.Errorf("%d ops, the first takes %v", trace.Ops(), trace.Ranks[0].Duration.At(0))
	}
}

func FuzzRead(f *testing.F) {
	f.Add(sample)
	f.Add(`{"workload_graph": [{"Id": 1, "NodeType": 7, "data_deps": [1]}]}`)
	f.Fuzz(func(t *testing.T, text string) {
		trace, err := readText(text)
		if err != nil {
			return
		}
		if err := trace.Ranks[0].CheckReferences(); err != nil {
			t.Error(err)
		}
	})
}
