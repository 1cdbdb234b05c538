package tracegen

import (
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tracedag/tracedag/dag"
	"github.com/tracedag/tracedag/dag/gen/graph500"
	"github.com/tracedag/tracedag/internal/cli/clitest"
)

func TestGraph500(t *testing.T) {
	params := graph500.Params{
		Scale: 12, EdgeFactor: 20, Nodes: 9, Coalescing: 32, QueryTime: 15 * dag.Nanosecond, RootDegree: 40,
		RootProcess: 3,
		Variation:   0.5, Eq7: graph500.PrintedEq7, HIntDiv: true, Injection: graph500.PaperInjection, PacketPhits: 16,
		ConsumeMin: dag.Microsecond, Notices: graph500.NoNotices, MessageBytes: 1024, ControlBytes: 64, MaxLevels: 8,
		Rest: 0.2, Cycle: 2 * dag.Nanosecond,
	}
	args := []string{"graph500", "--scale", "12", "--edge-factor", "20", "--nodes", "9", "--coalescing", "32",
		"--query-time", "mont-blanc", "--root-degree", "40", "--root-process", "3", "--variation", "0.5", "--eq7",
		"printed",
		"--h-intdiv", "--inj", "paper", "--packet-phits", "16", "--consume-min", "1us", "--notices", "none",
		"--message-bytes", "1KiB", "--control-bytes", "64", "--max-levels", "8", "--rest", "0.2", "--cycle", "2ns",
		"--seed", "7"}
	want, err := readAll(graph500.NewSource(params, 7))
	if err != nil {
		t.Fatal(err)
	}
	got, first := generate(t, args...)
	same(t, got, want)
	if _, again := generate(t, args...); again != first {
		t.Error("two runs give different bytes")
	}

	if want, err = readAll(graph500.NewSource(graph500.Default(), 1)); err != nil {
		t.Fatal(err)
	}
	got, _ = generate(t, "graph500", "--query-time", "1500ps")
	same(t, got, want)
}

func TestGraph500Model(t *testing.T) {
	file := filepath.Join(t.TempDir(), "model.json")
	args := []string{"graph500", "--print-model", "--scale", "26", "--edge-factor", "16", "--root-degree", "16",
		"--nodes",
		"72", "--coalescing", "256"}
	got := clitest.Run(newCommand, append(args, "--eq7", "printed", "--json", "--link", "100Gbps", "-o", file)...)
	if got.Status != 0 || got.Stderr != "" || got.Stdout != "" {
		t.Fatalf("exit status %d, stderr %q, stdout %q", got.Status, got.Stderr, got.Stdout)
	}
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var d struct {
		Levels               []map[string]float64
		RootDegree           graph500.RootDegree `json:"root_degree"`
		InjectionProbability float64             `json:"injection_probability"`
	}
	if err := json.Unmarshal(data, &d); err != nil {
		t.Fatal(err)
	}
	if len(d.Levels) != 9 || len(d.Levels[1]) != 7 {
		t.Fatalf("levels are %v", d.Levels)
	}
	law := d.Levels[1]
	for what, pair := range map[string][2]float64{
		"level": {law["level"], 1}, "sigma": {law["sigma"], 275831.95262835606},
		"mean_truncated": {law["mean_truncated"], 1<<31 - 16}, "destinations": {law["destinations"], 72},
		"queries_per_process":  {law["queries_per_process"], (1<<31 - 16) / 72.0 * 71 / 72},
		"messages_per_process": {law["messages_per_process"], 114912},
		"mu":                   {d.RootDegree.Mu, 1.18637081555}, "root sigma": {d.RootDegree.Sigma, 2.06213969},
		"median": {d.RootDegree.Median, 3.27517340427}, "root mean": {d.RootDegree.Mean, 27.4558940965},
		"injection probability": {d.InjectionProbability, 4096 * 8 / 100.0 / 1.5 / 256},
	} {
		if !(math.Abs(pair[0]-pair[1]) <= 1e-9*pair[1]) {
			t.Errorf("%s is %v, expected %v", what, pair[0], pair[1])
		}
	}

	got = clitest.Run(newCommand, args...)
	for _, want := range []string{
		"root degree  16; drawn: median 3.27517",
		"      2  1.23081e+09  1.06431e+08  1.23081e+09  1.68571e+07",
	} {
		if got.Status != 0 || got.Stderr != "" || !strings.Contains(got.Stdout, want) {
			t.Errorf("exit status %d, stderr %q, stdout without %q:\n%s", got.Status, got.Stderr, want, got.Stdout)
		}
	}
}

func TestGraph500Refused(t *testing.T) {
	for args, want := range map[string]string{
		"--nodes 1":                      "nodes is 1, expected 2..1048576",
		"--print-model --scale 99":       "scale is 99, expected 1..44",
		"--query-time fast":              "altamira, i5-5200u, e5-2620, mont-blanc",
		"--notices some":                 "expected one of all, none",
		"--json":                         "--link needs --print-model, and --json needs it or --measure",
		"--link 40Gbps":                  "--link needs --print-model",
		"--print-model --csv":            "--csv needs --measure",
		"--roots all":                    "--roots needs --measure",
		"--from-graph --scale 25":        "scale is 25, expected 1..24 for a graph in memory",
		"--from-graph --roots all":       "--roots needs --measure",
		"--from-graph --measure":         "--from-graph and --measure exclude each other",
		"--print-model --dedup":          "--dedup needs --measure",
		"--measure --scale 25":           "scale is 25, expected 1..24 for a graph in memory",
		"--measure --to goal":            "--measure prints no trace",
		"--measure --roots some":         "expected all, a number of roots, or per-degree:NUMBER",
		"--measure --degrees 3-2":        "expected a number or a range such as 10-20, the lower one first",
		"--print-model --to goal":        "--print-model prints no trace",
		"--coalescing 1 --scale 44":      "expected at most 67108864",
		"--root-process 72 --nodes 72":   "root-process is 72, expected 0..71",
		"--query-time 2s":                "query-time is 2s, expected 0s..1s",
		"--variation -1":                 "variation is -1, expected 0..1",
		"--print-model --root-degree=-1": "root-degree is -1, expected 1..33554432",
		"--degree-distribution zipf":     "expected lognormal, power:ALPHA[,MIN], rmat, rmat-noise:B or file:FILE",
	} {
		got := clitest.Run(newCommand, append([]string{"graph500"}, strings.Fields(args)...)...)
		if got.Status != 2 || got.Stdout != "" || !strings.Contains(got.Stderr, want) {
			t.Errorf("%s: exit status %d, stdout %q, stderr %q, expected %q", args, got.Status, got.Stdout, got.Stderr,
				want)
		}
	}
}

// TestGraph500FromGraph: flags of the model give a warning, --dedup fewer queries.
func TestGraph500FromGraph(t *testing.T) {
	args := []string{"graph500", "--from-graph", "--scale", "10", "--ranks", "4", "--seed", "3", "--query-time", "2ns",
		"--cycle", "1ns", "--to", "goal"}
	plain := clitest.Run(newCommand, args...)
	if plain.Status != 0 || plain.Stderr != "" {
		t.Fatalf("exit status %d, stderr %q", plain.Status, plain.Stderr)
	}
	for _, flag := range []string{"--variation=0", "--rest=0", "--max-levels=3", "--eq7=printed", "--h-intdiv",
		"--degree-distribution=rmat"} {
		got := clitest.Run(newCommand, append(args, flag)...)
		name, _, _ := strings.Cut(flag, "=")
		if got.Status != 0 || !strings.Contains(got.Stderr, name+" shapes the model only") {
			t.Errorf("%s: exit status %d, stderr %q", flag, got.Status, got.Stderr)
		}
		if ops(got.Stdout) != ops(plain.Stdout) {
			t.Errorf("%s has an effect", flag)
		}
	}
	if got := clitest.Run(newCommand, append(args, "--dedup")...); ops(got.Stdout) == ops(plain.Stdout) {
		t.Error("--dedup has no effect")
	}
}

// ops returns the lines of GOAL without comments.
func ops(goal string) string {
	var lines []string
	for line := range strings.Lines(goal) {
		if !strings.HasPrefix(line, "//") {
			lines = append(lines, line)
		}
	}
	return strings.Join(lines, "")
}

// TestGraph500DegreesOfFile: the degree of the root comes from a file, and an error names its line.
func TestGraph500DegreesOfFile(t *testing.T) {
	file := filepath.Join(t.TempDir(), "degrees.txt")
	args := []string{"graph500", "--print-model", "--scale", "13", "--degree-law", "file:" + file}
	for text, want := range map[string]string{
		"degree vertices\n17 3\n": "root degree  17; drawn: median 17, mean 17,",
		"17 3\nx\n":               `degrees.txt:2: expected a degree and a number of vertices`,
		"999999 3\n":              "degrees.txt: degree 999999, expected 1..262144",
	} {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		got := clitest.Run(newCommand, args...)
		if !strings.Contains(got.Stdout+got.Stderr, want) || (got.Status == 0) != (got.Stderr == "") {
			t.Errorf("%q: %+v, expected %s", text, got, want)
		}
	}
}

// TestGraph500Measure: the tables of a measurement, one of which gives degrees of roots.
func TestGraph500Measure(t *testing.T) {
	args := []string{"graph500", "--measure", "--scale", "10", "--roots", "per-degree:5"}
	file := filepath.Join(t.TempDir(), "degrees.csv")
	got := clitest.Run(newCommand, append(args, "--csv", "--table", "degrees", "-o", file)...)
	if got.Status != 0 || got.Stderr != "" {
		t.Fatal(got)
	}
	got = clitest.Run(newCommand, "graph500", "--print-model", "--scale", "10", "--degree-distribution", "file:"+file,
		"--json")
	var model graph500.Description
	if err := json.Unmarshal([]byte(got.Stdout), &model); err != nil {
		t.Fatal(err, got)
	}
	var result graph500.Measured
	got = clitest.Run(newCommand, append(args, "--json")...)
	if err := json.Unmarshal([]byte(got.Stdout), &result); err != nil {
		t.Fatal(err, got)
	}
	want := float64(result.Ends) / float64(result.Vertices-result.Isolated)
	if math.Abs(model.RootDegree.Mean-want) > 1e-9*want {
		t.Errorf("the mean degree is %v, expected %v", model.RootDegree.Mean, want)
	}
	for table, first := range map[string]string{
		"levels": "from,to,roots,degree,level,mean,sd,model mean,model sd\n1,1,5,1,0,1,0,1,0\n",
		"bins":   "from,to,roots\n0,512,",
	} {
		got := clitest.Run(newCommand, append(args, "--csv", "--table", table)...)
		if got.Status != 0 || !strings.HasPrefix(got.Stdout, first) {
			t.Errorf("%s: %+v, expected %q", table, got, first)
		}
	}
}
