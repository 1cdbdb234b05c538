// This file measures the analytical backend as a whole process.
//
// TRACEDAG_ASTRASIM is the path of ASTRA-sim's AstraSim_Analytical_Congestion_Unaware, to compare with; without it
// there is no comparison. The reference runs only where it takes less than a minute, or TRACEDAG_ASTRASIM_ALL is set.

package simulate

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/tracedag/tracedag/dag"
	"github.com/tracedag/tracedag/formats"
	"github.com/tracedag/tracedag/formats/format"
)

// analyticalRun is a simulation that ASTRA-sim supports, too.
type analyticalRun struct {
	name       string
	topologies []string
	npus       []int
	bandwidth  []int // GB/s of 2^30 bytes
	latency    int   // ns
	system     map[string]any
	trace      []string // arguments of tracegen
	make       func() *dag.Trace
	slow       bool // for the reference
}

func torusRun(size int) analyticalRun {
	return analyticalRun{
		name: fmt.Sprintf("torus%d", size), topologies: []string{"Ring", "Ring", "Ring"}, npus: []int{size, size, size},
		bandwidth: []int{50, 50, 50}, latency: 500, slow: size > 16,
		system: map[string]any{"preferred-dataset-splits": 1, "endpoint-delay": 10, "local-mem-bw": 50,
			"all-reduce-implementation": []string{"ring", "ring", "ring"}},
		trace: []string{"collective", "--type", "allreduce", "--size", "1MiB", "--ranks", fmt.Sprint(size * size * size)},
	}
}

func analyticalRuns() []analyticalRun {
	halving := []string{"halvingDoubling", "halvingDoubling", "halvingDoubling", "halvingDoubling"}
	return []analyticalRun{
		torusRun(16), torusRun(32),
		{
			name: "table3", topologies: []string{"Switch", "Switch", "Switch", "Switch"}, npus: []int{16, 8, 8, 4},
			bandwidth: []int{1000, 200, 100, 50}, latency: 1, slow: true,
			system: map[string]any{"preferred-dataset-splits": 64, "endpoint-delay": 1, "local-mem-bw": 500000,
				"all-reduce-implementation": halving},
			trace: []string{"collective", "--type", "allreduce", "--size", "1GiB", "--ranks", "4096"},
		},
		{
			name: "ready", topologies: []string{"Ring"}, npus: []int{2}, bandwidth: []int{50}, latency: 500,
			system: map[string]any{"preferred-dataset-splits": 1, "all-reduce-implementation": []string{"ring"}},
			make:   func() *dag.Trace { return independentCalcs(2, 2000) },
		},
		{
			name: "training", topologies: []string{"Ring", "Switch"}, npus: []int{8, 8}, bandwidth: []int{100, 50},
			latency: 500, slow: true,
			system: map[string]any{"preferred-dataset-splits": 4, "endpoint-delay": 10,
				"all-reduce-implementation": halving[:2]},
			make: func() *dag.Trace { return nodes(64, 100_000) },
		},
	}
}

// independentCalcs returns a trace of calcs all of which are ready at the start.
func independentCalcs(ranks, n int) *dag.Trace {
	b := dag.NewBuilder(ranks)
	for r := range ranks {
		for range n {
			b.Rank(r).Calc(dag.Microsecond)
		}
	}
	return b.Trace()
}

// nodes returns a trace with as many nodes as a step of training has with every kernel on record: calcs that wait for
// one or two of those before, messages to the next rank, and now and then an all-reduce.
func nodes(ranks, n int) *dag.Trace {
	b := dag.NewBuilder(ranks)
	for r := range ranks {
		rank := b.Rank(r)
		for i := range n {
			var deps []int
			if i > 0 {
				deps = append(deps, i-1)
			}
			switch {
			case i%1000 == 997:
				rank.Add(dag.Op{Kind: dag.Coll, Subkind: dag.Allreduce, Bytes: 1 << 20, Stream: 2}, deps...)
			case i%50 == 48:
				rank.Add(dag.Op{Kind: dag.Send, Peer: int32((r + 1) % ranks), Bytes: 1 << 16, Tag: int64(i), Stream: 2}, deps...)
			case i%50 == 49:
				rank.Add(dag.Op{Kind: dag.Recv, Peer: int32((r + ranks - 1) % ranks), Bytes: 1 << 16, Tag: int64(i - 1),
					Stream: 2}, deps...)
			default:
				if i > 20 && i%7 == 0 {
					deps = append(deps, i-13)
				}
				rank.Calc(dag.Time(1+i%13)*dag.Microsecond, deps...)
			}
		}
	}
	return b.Trace()
}

func BenchmarkAnalytical(b *testing.B) {
	folder := b.TempDir()
	build := exec.Command("go", "build", "-o", folder, "github.com/tracedag/tracedag/cmd/simulate",
		"github.com/tracedag/tracedag/cmd/tracegen")
	if out, err := build.CombinedOutput(); err != nil {
		b.Fatalf("%v: %v\n%s", build, err, out)
	}
	astrasim := os.Getenv("TRACEDAG_ASTRASIM")
	if astrasim == "" {
		fmt.Println("TRACEDAG_ASTRASIM is not set: no comparison with ASTRA-sim")
	}
	var results table
	for _, r := range analyticalRuns() {
		if testing.Short() && r.slow {
			continue
		}
		b.Run(r.name, func(b *testing.B) {
			r.write(b, folder)
			compare := astrasim != "" && (!r.slow || os.Getenv("TRACEDAG_ASTRASIM_ALL") != "") && r.name != "torus32"
			m := measurement{name: r.name}
			for b.Loop() {
				ours := r.simulate(b, &m, folder)
				if compare {
					r.check(b, ours, m.run(b, reference, astrasim,
						"--workload-configuration="+filepath.Join(folder, r.name),
						"--system-configuration="+filepath.Join(folder, r.name+".system.json"),
						"--network-configuration="+filepath.Join(folder, r.name+".yml"),
						"--remote-memory-configuration="+filepath.Join(folder, r.name+".memory.json"),
						"--logging-folder="+b.TempDir()))
				}
			}
			results.report(b, &m)
		})
	}
	results.print()
}

// write makes the files of a run: PREFIX.RANK.et for ASTRA-sim and the configuration files.
func (r *analyticalRun) write(b *testing.B, folder string) {
	b.Helper()
	prefix := filepath.Join(folder, r.name)
	r.system["scheduling-policy"], r.system["collective-optimization"] = "LIFO", "localBWAware"
	r.system["active-chunks-per-dimension"] = 1
	system, err := json.Marshal(r.system)
	if err != nil {
		b.Fatal(err)
	}
	list := func(values any) string { return strings.ReplaceAll(strings.Trim(fmt.Sprint(values), "[]"), " ", ", ") }
	latency := make([]int, len(r.npus))
	for i := range latency {
		latency[i] = r.latency
	}
	network := fmt.Sprintf("topology: [ %s ]\nnpus_count: [ %s ]\nbandwidth: [ %s ]\nlatency: [ %s ]\n", list(r.topologies),
		list(r.npus), list(r.bandwidth), list(latency))
	for name, content := range map[string]string{
		".system.json": string(system), ".yml": network, ".memory.json": `{"memory-type": "NO_MEMORY_EXPANSION"}`,
	} {
		if err := os.WriteFile(prefix+name, []byte(content), 0o644); err != nil {
			b.Fatal(err)
		}
	}
	if r.make == nil {
		generate := exec.Command(filepath.Join(folder, "tracegen"), append(r.trace, "--to", "chakra", "-o", prefix)...)
		if out, err := generate.CombinedOutput(); err != nil {
			b.Fatalf("%v: %v\n%s", generate, err, out)
		}
		return
	}
	var file *os.File
	create := func(suffix string) (w io.Writer, err error) {
		file.Close()
		file, err = os.Create(prefix + suffix)
		return file, err
	}
	chakra := formats.All.Named("chakra")
	if err := chakra.WriteFiles(create, r.make(), format.WriteOptions{Warn: func(string, ...any) {}}); err != nil {
		b.Fatal(err)
	}
	if err := file.Close(); err != nil {
		b.Fatal(err)
	}
	forgetPeak()
}

// simulate measures simulate, and returns when each NPU finished, in nanoseconds.
func (r *analyticalRun) simulate(b *testing.B, m *measurement, folder string) []uint64 {
	b.Helper()
	prefix := filepath.Join(folder, r.name)
	out := m.run(b, "simulate", filepath.Join(folder, "simulate"), "--backend", "analytical", "--network", prefix+".yml",
		"--system", prefix+".system.json", "--json", prefix)
	var o struct {
		Ops      int64
		Complete bool
		NPUs     struct{ Cycles []uint64 } `json:"npu_stats"`
	}
	if err := json.Unmarshal(out, &o); err != nil {
		b.Fatal(err)
	}
	if !o.Complete {
		b.Fatalf("%s: not complete", r.name)
	}
	m.ops = o.Ops
	return o.NPUs.Cycles
}

var astraSimFinish = regexp.MustCompile(`sys\[(\d+)\] finished, (\d+) cycles`)

// check compares the finish times of the NPUs with ASTRA-sim's output.
func (r *analyticalRun) check(b *testing.B, ours []uint64, printed []byte) {
	b.Helper()
	theirs := astraSimFinish.FindAllSubmatch(printed, -1)
	if len(theirs) != len(ours) {
		b.Fatalf("%s: %d NPUs finished, in ASTRA-sim %d", r.name, len(ours), len(theirs))
	}
	for _, line := range theirs {
		var npu int
		var cycles uint64
		if _, err := fmt.Sscan(string(line[1])+" "+string(line[2]), &npu, &cycles); err != nil || npu >= len(ours) {
			b.Fatalf("%s: ASTRA-sim printed %q", r.name, line[0])
		}
		if ours[npu] != cycles {
			b.Fatalf("%s: NPU %d finished at %d ns, in ASTRA-sim at %d", r.name, npu, ours[npu], cycles)
		}
	}
}
