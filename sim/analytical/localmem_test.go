package analytical_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/tracedag/tracedag/dag"
	"github.com/tracedag/tracedag/formats/chakra"
	"github.com/tracedag/tracedag/sim/analytical"
)

// localMemFolder has folders as its README.md describes them.
var localMemFolder = flag.String("localmem", "testdata/localmem", "folder with runs of ASTRA-sim in folders")

// TestLocalMem compares traces of local memory with those of ASTRA-sim.
func TestLocalMem(t *testing.T) {
	folders, err := filepath.Glob(filepath.Join(*localMemFolder, "*", "w.0.et"))
	if err != nil || len(folders) == 0 {
		t.Fatal("no cases in", *localMemFolder, err)
	}
	for _, name := range folders {
		folder := filepath.Dir(name)
		t.Run(filepath.Base(folder), func(t *testing.T) {
			npus, _ := filepath.Glob(filepath.Join(folder, "w.*.et"))
			c := simulationCase{NPUs: len(npus), Workload: "w", Network: "net.yml", System: "sys.json",
				RemoteMemory: "mem.json", Queues: 1, folder: folder}
			trace := c.trace(t)
			program, err := analytical.Compile(dag.FromTrace(trace))
			if err != nil {
				t.Fatal(err)
			}
			o := c.options(t, "unaware")
			tensors := chakra.Tensors(trace)
			o.Tensors = func(rank, op int) (reads, writes []analytical.Tensor, err error) {
				in, out, err := tensors(rank, op)
				for _, x := range in {
					reads = append(reads, analytical.Tensor(x))
				}
				for _, x := range out {
					writes = append(writes, analytical.Tensor(x))
				}
				return reads, writes, err
			}
			result, err := program.Run(o)
			if err != nil {
				t.Fatal(err)
			}
			for npu := range c.NPUs {
				rank := trace.Ranks[npu]
				ids := rank.IDs()
				node := func(op int) (string, uint64) { return rank.Name.At(op), ids[op] }
				var text bytes.Buffer
				if err := result.LocalMem[npu].WriteTrace(&text, npu, node); err != nil {
					t.Fatal(err)
				}
				expected, err := os.ReadFile(filepath.Join(folder, fmt.Sprintf("ref.%d.json", npu)))
				if err != nil {
					t.Fatal(err)
				}
				got, peak := memoryEvents(t, text.Bytes())
				want, _ := memoryEvents(t, expected)
				if !maps.Equal(got, want) {
					for _, line := range slices.Sorted(maps.Keys(got)) {
						if got[line] != want[line] {
							t.Errorf("NPU %d: got %d times, expected %d: %s", npu, got[line], want[line], line)
						}
					}
					for _, line := range slices.Sorted(maps.Keys(want)) {
						if got[line] == 0 {
							t.Errorf("NPU %d: missing: %s", npu, line)
						}
					}
				}
				if float64(result.NPUs.PeakMemory[npu]) != peak*(1<<20) {
					t.Errorf("NPU %d: got a peak of %d bytes, the trace has %v MiB", npu, result.NPUs.PeakMemory[npu], peak)
				}
			}
		})
	}
}

// memoryEvents counts the events of a trace of local memory, but those of the heat map. Threads, which stand for tensors,
// may be numbered otherwise in another trace. It returns the highest value of the counter, too.
func memoryEvents(t *testing.T, text []byte) (count map[string]int, peak float64) {
	t.Helper()
	var document struct {
		Events []map[string]any `json:"traceEvents"`
	}
	if err := json.Unmarshal(text, &document); err != nil {
		t.Fatal(err)
	}
	count = make(map[string]int)
	threads := make(map[any]any)
	for _, e := range document.Events {
		if e["ph"] == "M" || e["cat"] == "tensorHeatmap" {
			continue
		}
		if thread, ok := e["tid"]; ok {
			if name, known := threads[thread]; known && name != e["name"] {
				t.Errorf("thread %v is %v and %v", thread, name, e["name"])
			}
			threads[thread] = e["name"]
			e["tid"] = "its tensor's"
		}
		e["ts"] = math.Round(e["ts"].(float64) * 1000)
		if usage, ok := e["args"].(map[string]any)["Memory_MB"].(float64); ok {
			peak = max(peak, usage)
		}
		line, err := json.Marshal(e)
		if err != nil {
			t.Fatal(err)
		}
		count[string(line)]++
	}
	return count, peak
}

// TestLocalMemory follows tensors of calcs of 1 us, one after the other, that NPU 0 has and NPU 1 has not.
func TestLocalMemory(t *testing.T) {
	type tensors = []analytical.Tensor
	type uses [2]tensors // reads and writes
	tensor := func(name string, bytes int64) analytical.Tensor { return analytical.Tensor{Name: name, Bytes: bytes} }
	a, b, c := tensor("a", 10), tensor("b", 5), tensor("c", 7)
	nothing, huge := tensor("a", 0), tensor("h", math.MaxInt64-9)
	for _, test := range []struct {
		ops      []uses
		peak     int64
		rewrites int
		err      string
	}{
		{nil, 0, 0, ""},
		{[]uses{{{a}, {b}}}, 15, 0, ""}, // b is there when the op begins, and a until it ends
		{[]uses{{{}, {a}}, {{a}, {b}}, {{b}, {c}}}, 15, 0, ""},
		{[]uses{{{}, {a}}, {{}, {b}}, {{a, b}, {}}}, 15, 0, ""},
		{[]uses{{{}, {a}}, {{a}, {a}}, {{b}, {b, c}}}, 15, 2, ""}, // a and b at first, b and c in the end
		{[]uses{{{nothing}, {nothing}}}, 0, 0, ""},
		{[]uses{{{}, {a}}, {{huge}, {}}}, 0, 0, "expected at most 9223372036854775807 bytes of tensors on rank 0, found more"},
	} {
		builder := dag.NewBuilder(2)
		rank := builder.Rank(0)
		for i := range test.ops {
			op := dag.Op{Kind: dag.Calc, Duration: dag.Microsecond}
			if i == 0 {
				rank.Add(op)
			} else {
				rank.Add(op, i-1)
			}
		}
		program, err := analytical.Compile(dag.FromTrace(builder.Trace()))
		if err != nil {
			t.Fatal(err)
		}
		network, err := analytical.ParseNetwork("Ring(2)@1GB/s,1ns")
		if err != nil {
			t.Fatal(err)
		}
		o := analytical.Options{Network: network, System: analytical.DefaultSystem(&network)}
		o.Tensors = func(rank, op int) (reads, writes []analytical.Tensor, err error) {
			return test.ops[op][0], test.ops[op][1], nil
		}
		result, err := program.Run(o)
		if test.err != "" {
			if err == nil || err.Error() != test.err {
				t.Errorf("%v: got error %v, expected %s", test.ops, err, test.err)
			}
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		m := &result.LocalMem[0]
		if m.Peak != test.peak || m.Rewrites != test.rewrites || result.LocalMem[1].Peak != 0 {
			t.Errorf("%v: got a peak of %d bytes and %d rewrites, expected %d and %d", test.ops, m.Peak, m.Rewrites,
				test.peak, test.rewrites)
		}
	}
}
