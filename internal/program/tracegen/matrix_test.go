package tracegen

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"runtime"
	"strings"
	"testing"

	"github.com/tracedag/tracedag/dag"
	"github.com/tracedag/tracedag/dag/gen/matrix"
	"github.com/tracedag/tracedag/internal/cli/clitest"
)

// matrixTrace returns the trace and the report of a workload.
func matrixTrace(t *testing.T, p matrix.Params, seed int64) (*dag.Trace, *matrix.Report) {
	t.Helper()
	s, r, err := matrix.NewSource(p, seed)
	if err != nil {
		t.Fatal(err)
	}
	trace, err := dag.ReadAll(s)
	if err != nil {
		t.Fatal(err)
	}
	return trace, r
}

func readReport(t *testing.T, path string) map[string]any {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var report map[string]any
	if err := json.Unmarshal(text, &report); err != nil {
		t.Fatal(err)
	}
	return report
}

func TestMatrix(t *testing.T) {
	p := matrix.Default()
	want, _ := matrixTrace(t, p, 1)
	got, first := generate(t, "matrix")
	same(t, got, want)
	if v := got.Provenance; len(v) != 1 || v[0].Seed == nil || *v[0].Seed != 1 {
		t.Errorf("provenance %+v", v)
	}
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	if _, again := generate(t, "matrix"); again != first {
		t.Error("one processor gives other bytes")
	}

	p.Use("private_enterprise")
	p.Nodes, p.Racks, p.InterRack, p.Load, p.Capacity, p.Flows, p.Threshold = 10, 2, 0.6, 0.1, 1250, 2000, 0.2
	p.MaxFlows, p.MinDuration = 100_000, dag.Second
	p.Sizes.Distribution, _ = matrix.ParseDistribution("uniform:min=5,max=50")
	want, r := matrixTrace(t, p, 9)
	report := filepath.Join(t.TempDir(), "r.json")
	args := strings.Fields("matrix --preset private_enterprise --nodes 10 --racks 2 --inter-rack 0.6 --load 0.1 --flows 2000 " +
		"--threshold 0.2 --size-dist uniform:min=5,max=50 --max-flows 100000 --min-duration 1s --seed 9 --report " + report)
	for _, capacity := range []string{"1250", "1.25e3", "10Gbps", "1250MB/s"} {
		run := clitest.Run(newCommand, append(args, "--capacity", capacity, "-o", report+".parquet")...)
		const warning = "tracegen: warning: the flows end before --min-duration, because --max-flows limits them\n"
		if run.Status != 0 || run.Stderr != warning {
			t.Fatalf("%s: exit status %d, stderr %q", capacity, run.Status, run.Stderr)
		}
		if got := readReport(t, report); got["copies"] != float64(r.Copies) || got["inter_rack_share"] != *r.InterRackShare {
			t.Errorf("report %v, want %+v", got, r)
		}
	}
	if want.Ops() != 2*r.Copies*int64(r.Flows) || r.Copies < 2 {
		t.Errorf("%d ops, %+v", want.Ops(), r)
	}
}

// files writes files into a new folder and runs the test there.
func files(t *testing.T, content map[string]string) {
	t.Helper()
	t.Chdir(t.TempDir())
	for name, text := range content {
		if err := os.WriteFile(name, []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
	}
}

// TestMatrixFiles packs three flows by hand: 10 bytes arrive in 4 us at half of 3 nodes' capacity for sending.
func TestMatrixFiles(t *testing.T) {
	content := map[string]string{
		"M.csv": "0,0.6,0\n0,0,0.3\n0.1,0,0\n", "S.csv": "size\n1\n3\n6\n", "T.csv": "10\n30\n7\n",
		"P.csv": "1,0.5\n3,0.25\n6,0.25\n", "big.csv": "1\n3\n60\n",
	}
	files(t, content)
	args := strings.Fields("matrix --node-matrix M.csv --sizes S.csv --interarrivals T.csv --load 0.5 --report r.json " +
		"--capacity 3.3333333333333335")
	got, _ := generate(t, args...)
	pairs := map[int64]string{}
	for rank := range got.Ranks {
		for i := range got.Ranks[rank].Len() {
			if op := got.Ranks[rank].Op(i); op.Kind == dag.Send {
				pairs[op.Bytes] = fmt.Sprint(rank, " to ", op.Peer)
			}
		}
	}
	if want := map[int64]string{6: "0 to 1", 3: "1 to 2", 1: "2 to 0"}; !reflect.DeepEqual(pairs, want) {
		t.Errorf("flows %v, want %v", pairs, want)
	}
	var inputs []dag.Input
	for _, name := range []string{"M.csv", "S.csv", "T.csv"} {
		inputs = append(inputs, dag.Input{Name: name, SHA256: fmt.Sprintf("%x", sha256.Sum256([]byte(content[name])))})
	}
	if !reflect.DeepEqual(got.Provenance[0].Inputs, inputs) {
		t.Errorf("inputs %+v, want %+v", got.Provenance[0].Inputs, inputs)
	}
	report := readReport(t, "r.json")
	for key, want := range map[string]float64{
		"flows": 3, "sum_sizes": 10, "raw_duration": 40, "interarrival_factor": 0.1, "duration": 4, "load_rate": 2.5, "load": 0.5,
		"packing_distance": 0, "max_source_port_use": 0.9, "max_destination_port_use": 0.9, "port_room": 20.0 / 3,
	} {
		if got, ok := report[key].(float64); !ok || math.Abs(got-want) > 1e-7 {
			t.Errorf("%s is %v, want %v", key, report[key], want)
		}
	}
	for _, key := range []string{"size_distance", "interarrival_distance"} {
		if value, there := report[key]; !there || value != nil {
			t.Errorf("%s is %v, want null", key, value)
		}
	}
	run := clitest.Run(newCommand, append(args, "--size-pmf", "P.csv", "-o", "x.parquet")...)
	const warning = "tracegen: warning: the distance of the sizes from their distribution is 0.12\n"
	if run.Status != 0 || run.Stderr != warning {
		t.Errorf("exit status %d, stderr %q", run.Status, run.Stderr)
	}

	args[4] = "big.csv"
	run = clitest.Run(newCommand, append(args, "-o", "big.parquet")...)
	const want = "tracegen: no port can take flow 0 of 60 bytes: each has room for 42 bytes"
	if run.Status != 1 || !strings.HasPrefix(run.Stderr, want) {
		t.Errorf("exit status %d, stderr %q", run.Status, run.Stderr)
	}
	if _, err := os.Stat("big.parquet"); err == nil {
		t.Error("flows that cannot be packed have a trace")
	}
}

func TestMatrixUsage(t *testing.T) {
	files(t, map[string]string{
		"M.csv": "0,1\n1,0\n", "bad.csv": "0,1\n1,2\n", "S.csv": "5\n6\n", "T.csv": "1\n2\n3\n", "none.csv": "size\n",
		"skewed.csv": "0,9,0,0\n0,0,0,0\n0,0,0,1\n1,0,0,0\n",
	})
	for args, want := range map[string]string{
		"--preset nothing":                     "--preset: expected one of university, private_enterprise",
		"--nodes 1":                            "--nodes is 1, expected 2..16384",
		"--load 0.96":                          "--load is 0.96, expected 0..0.95",
		"--capacity 0":                         "--capacity is 0, expected above 0",
		"--capacity fast":                      "--capacity",
		"--flows 0":                            "--flows is 0, expected 1..",
		"--flows 10 --max-flows 5":             "--max-flows is 5, expected 10..",
		"--threshold 1.5":                      "--threshold is 1.5, expected above 0 and at most 1",
		"--racks 64":                           "--racks is 64, expected 0 or 2..63",
		"--inter-rack 0.5":                     "--inter-rack needs --racks",
		"--size-dist weibull:alpha=1":          "--size-dist: weibull needs lambda",
		"--interarrival-dist x":                "--interarrival-dist: expected one of",
		"--matrix pairs:count=0":               "--matrix: count=0: expected a number of pairs",
		"--matrix nodes:count=99":              "--matrix is nodes, expected a matrix that can be made",
		"--matrix uniform --node-matrix M.csv": "--matrix and --node-matrix exclude each other",
		"--node-matrix M.csv --nodes 3":        "--ranks is 3, expected 2, as M.csv has",
		"--sizes S.csv --interarrivals T.csv":  "--interarrivals is 3 values, expected one for each of the 2 sizes",
		"--report -":                           "--report: the trace already uses standard output",
	} {
		got := clitest.Run(newCommand, append([]string{"matrix"}, strings.Fields(args)...)...)
		if got.Status != 2 || got.Stdout != "" || !strings.Contains(got.Stderr, want) {
			t.Errorf("tracegen matrix %s: exit status %d, stderr %q; want 2 and %q", args, got.Status, got.Stderr, want)
		}
	}
	for args, want := range map[string]string{
		"--node-matrix bad.csv":               "bad.csv:2: expected 0 from node 1 to itself, found 2\n",
		"--node-matrix missing":               "missing: no such file",
		"--sizes none.csv":                    "none.csv:1: expected values, found none\n",
		"--size-pmf S.csv":                    "S.csv:1: expected a value and its probability, found 1 numbers\n",
		"--node-matrix skewed.csv --load 0.9": "the node matrix has node 0 send or receive ",
		"--report missing/r.json":             "missing/r.json: creating: directory missing",
	} {
		got := clitest.Run(newCommand, append([]string{"matrix"}, strings.Fields(args)...)...)
		if got.Status != 1 || got.Stdout != "" || !strings.Contains(got.Stderr, want) {
			t.Errorf("tracegen matrix %s: exit status %d, stderr %q; want 1 and %q", args, got.Status, got.Stderr, want)
		}
	}
	got := clitest.Session{Terminal: "stdout"}.Run(newCommand, "matrix")
	if got.Status != 2 || !strings.Contains(got.Stderr, "terminal") {
		t.Errorf("to a terminal: exit status %d, stderr %q", got.Status, got.Stderr)
	}
}

// TestMatrixOnly checks that --matrix-only writes the matrix that flows then follow, and its racks.
func TestMatrixOnly(t *testing.T) {
	t.Chdir(t.TempDir())
	flags := "matrix --ranks 16 --racks 3 --preset university --size-dist uniform:min=100,max=200 --threshold 1 " +
		"--interarrival-dist uniform:min=1,max=9 --seed 4 "
	for _, args := range []string{flags + "--matrix-only -o m.csv", flags + "--report a.json -o a.parquet",
		flags + "--node-matrix m.csv --report b.json -o b.parquet"} {
		if got := clitest.Run(newCommand, strings.Fields(args)...); got.Status != 0 {
			t.Fatalf("tracegen %s: status %d, %s", args, got.Status, got.Stderr)
		}
	}
	a, b := readReport(t, "a.json"), readReport(t, "b.json")
	for _, name := range []string{"packing_distance", "inter_rack_share"} { // the file's cells are divided by their sum
		if x, y := a[name].(float64), b[name].(float64); math.Abs(x-y) > 1e-9 {
			t.Errorf("%s is %v, with the written matrix %v", name, x, y)
		}
		delete(a, name)
		delete(b, name)
	}
	if !reflect.DeepEqual(a, b) {
		t.Errorf("report %v, with the written matrix %v", a, b)
	}
	text, err := os.ReadFile("m.csv")
	if err != nil || !strings.HasPrefix(string(text), "racks,0,6,11\n0,0.0") {
		t.Errorf("error %v, matrix %.100s", err, text)
	}
}
