package simulate

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/tracedag/tracedag/dag"
	"github.com/tracedag/tracedag/internal/cli/clitest"
	_ "github.com/tracedag/tracedag/internal/testheap"
)

const vectors = "../../../formats/goal/testdata/vectors/"

// document is the JSON result, with the text of numbers.
type document struct {
	Backend, Model string
	Params         map[string]json.Number
	Complete       *bool
	Makespan       json.Number   `json:"makespan_ps"`
	Finish         []json.Number `json:"finish_ps"`
	Ops, Events    int64
	NeverRun       int64 `json:"never_run"`
	Messages       int64
	Bytes          int64
	Wall           float64 `json:"wall_s"`
	OpsPerS        float64 `json:"ops_per_s"`
	Leftover       any
	Stuck          []struct {
		Rank, Op int
		Kind     string
		WaitsFor string `json:"waits_for"`
	}
	Error string
}

func parse(t *testing.T, text string) document {
	t.Helper()
	var d document
	if err := json.Unmarshal([]byte(text), &d); err != nil {
		t.Fatalf("%v in %.500s", err, text)
	}
	return d
}

func TestJSON(t *testing.T) {
	r := clitest.Run(newCommand, "--backend", "loggops", "--model", "loggopsim", "--L", "2500", "--o", "1500", "--g", "1000",
		"--G", "6", "--O", "0", "--S", "65535", "--json", "--timing", vectors+"spec_example.bin")
	if r.Status != 0 || r.Stderr != "" {
		t.Fatalf("status %d, stderr %q", r.Status, r.Stderr)
	}
	d := parse(t, r.Stdout)
	if d.Backend != "loggops" || d.Model != "loggopsim" || d.Complete == nil || !*d.Complete || d.Makespan != "5642000" ||
		!slices.Equal(d.Finish, []json.Number{"1600000", "5642000"}) || d.Ops != 4 || d.Events != 5 || d.Messages != 1 ||
		d.Bytes != 8 || d.Wall <= 0 || d.OpsPerS <= 0 || d.Params["L_ps"] != "2500000" || d.Params["G_ps_per_byte"] != "6000" {
		t.Errorf("got %s", r.Stdout)
	}
}

// TestWrappedClocks checks that times beyond 64 bits of picoseconds are printed exactly.
func TestWrappedClocks(t *testing.T) {
	r := clitest.Run(newCommand, "--model", "loggopsim", "--L", "10", "--o", "2", "--g", "5", "--G", "600", "--O", "7",
		"--json", vectors+"zero_byte.bin")
	d := parse(t, r.Stdout)
	beyond := false
	for _, f := range d.Finish {
		if len(f) > 20 {
			beyond = true
			if !strings.HasSuffix(string(f), "000") {
				t.Errorf("finish %s is no whole number of nanoseconds", f)
			}
		}
	}
	if !beyond {
		t.Errorf("no clock wrapped around: %s", r.Stdout)
	}
	if !strings.Contains(r.Stdout, `"wrapped":true`) {
		t.Errorf("no flag: %s", r.Stdout)
	}
	r = clitest.Run(newCommand, "--model", "loggopsim", "--L", "10", "--o", "2", "--g", "5", "--G", "600", "--O", "7",
		vectors+"zero_byte.bin")
	if !regexp.MustCompile(`(?m)^overflow +rank [0-9]+ op [0-9]+ \(send\): a clock wrapped around`).MatchString(r.Stdout) {
		t.Errorf("no flag: %s", r.Stdout)
	}
}

func TestIncomplete(t *testing.T) {
	r := clitest.Run(newCommand, "--json", vectors+"unmatched_tag.bin")
	d := parse(t, r.Stdout)
	if r.Status != 1 || d.Complete == nil || *d.Complete || len(d.Stuck) != 4 || d.Stuck[1].WaitsFor != "a message from rank 0, tag 4" {
		t.Errorf("status %d, got %s", r.Status, r.Stdout)
	}
	if !strings.Contains(r.Stderr, "incomplete: 0 of 6 ops never ran, 4 messages and receives found no partner") ||
		!strings.Contains(r.Stderr, "rank 2 op 2 (recv) waits for a message from rank 1, tag 8") {
		t.Errorf("stderr %q", r.Stderr)
	}
	r = clitest.Run(newCommand, "--model", "loggopsim", "--json", vectors+"sg_allreduce_ring_12_d1000000.bin")
	if d = parse(t, r.Stdout); len(d.Stuck) != 10 || d.NeverRun != 240 || r.Status != 1 {
		t.Errorf("status %d, %d ops never ran, %d are listed; expected 1, 240 and 10", r.Status, d.NeverRun, len(d.Stuck))
	}
}

func TestTable(t *testing.T) {
	r := clitest.Run(newCommand, "--params", "ai", "--G", "400Gbps", vectors+"pingpong_2.goal")
	for _, want := range []string{"2 ranks, 12 ops", "loggops, model strict", "L=3.7us o=200ns g=5ns G=0.02ns/B O=0ns/B S=0B",
		"makespan", "rank  finish\n0 "} {
		if !strings.Contains(r.Stdout, want) {
			t.Errorf("no %q in\n%s", want, r.Stdout)
		}
	}
	if r.Status != 0 || r.Stderr != "" {
		t.Errorf("status %d, stderr %q", r.Status, r.Stderr)
	}
}

func TestTimelines(t *testing.T) {
	folder := t.TempDir()
	viz := filepath.Join(folder, "x.viz")
	if r := clitest.Run(newCommand, "--model", "loggopsim", "--timeline", viz, vectors+"unexpected.bin"); r.Status != 0 {
		t.Fatal(r.Stderr)
	}
	got, err := os.ReadFile(viz)
	if err != nil {
		t.Fatal(err)
	}
	want, err := os.ReadFile(vectors + "unexpected.viz.txt")
	if err != nil {
		t.Fatal(err)
	}
	if string(got) != string(want) {
		t.Errorf("the timeline differs from the reference's:\n%s", got)
	}

	for _, model := range []string{"strict", "loggopsim", "atlahs"} {
		chrome := filepath.Join(folder, model+".json")
		if r := clitest.Run(newCommand, "--model", model, "--timeline", chrome, vectors+"pingpong_2.bin"); r.Status != 0 {
			t.Fatal(r.Stderr)
		}
		text, err := os.ReadFile(chrome)
		if err != nil {
			t.Fatal(err)
		}
		var events struct {
			TraceEvents []struct {
				Phase string `json:"ph"`
				Cat   string
			}
		}
		if err := json.Unmarshal(text, &events); err != nil {
			t.Fatalf("%s: %v", model, err)
		}
		count := map[string]int{}
		for _, e := range events.TraceEvents {
			count[e.Phase]++
			if e.Phase == "X" {
				count[e.Cat]++
			}
		}
		if count["send"] != 6 || count["recv"] != 6 || count["s"] != 6 || count["t"] != 6 || count["f"] != 6 {
			t.Errorf("%s: %v, expected 6 sends, receives and arrows", model, count)
		}
	}
}

func TestSweep(t *testing.T) {
	args := []string{"--sweep", "L=1us..3us:3;G=0.02,0.5,1", "--params", "ai", "--S", "64KiB"}
	r := clitest.Run(newCommand, append(args, vectors+"pingpong_2.bin")...)
	lines := strings.Split(strings.TrimSpace(r.Stdout), "\n")
	if r.Status != 0 || len(lines) != 9 {
		t.Fatalf("status %d, %d lines, stderr %q", r.Status, len(lines), r.Stderr)
	}
	for i, line := range lines {
		d := parse(t, line)
		l := []json.Number{"1000000", "2000000", "3000000"}[i/3]
		g := []json.Number{"20", "500", "1000"}[i%3]
		if d.Params["L_ps"] != l || d.Params["G_ps_per_byte"] != g || d.Params["S_bytes"] != "65536" {
			t.Errorf("line %d has %v, expected L %s, G %s", i+1, d.Params, l, g)
		}
		single := clitest.Run(newCommand, "--params", "ai", "--S", "64KiB", "--L", string(l)+"ps", "--G", string(g)+"ps/B", "--json",
			vectors+"pingpong_2.bin")
		if want := parse(t, single.Stdout); d.Makespan != want.Makespan || !slices.Equal(d.Finish, want.Finish) {
			t.Errorf("line %d: makespan %s, alone %s", i+1, d.Makespan, want.Makespan)
		}
	}

	// A point that fails does not stop the others.
	r = clitest.Run(newCommand, "--sweep", "G=1,0.5,2", "--model", "loggopsim", vectors+"pingpong_2.bin")
	lines = strings.Split(strings.TrimSpace(r.Stdout), "\n")
	if r.Status != 1 || len(lines) != 3 || parse(t, lines[1]).Error == "" || *parse(t, lines[2]).Complete != true {
		t.Errorf("status %d, stdout %s", r.Status, r.Stdout)
	}

	rows := rowsOf(t, append(args, "--csv", vectors+"pingpong_2.bin")...)
	if len(rows) != 9 || rows[0]["backend"] != "loggops" || rows[0]["model"] != "strict" || rows[0]["complete"] != "true" ||
		!strings.HasPrefix(rows[0]["params"], `{"L_ps":1000000,"o_ps":200000,"g_ps":5000,"G_ps_per_byte":20,`) {
		t.Errorf("csv: %v", rows)
	}
}

func TestProfiles(t *testing.T) {
	for _, name := range []string{"cpu.pprof", "mem.pprof"} {
		path := filepath.Join(t.TempDir(), name)
		r := clitest.Run(newCommand, "--profile", path, "-v", vectors+"ties_ring_12.bin")
		if info, err := os.Stat(path); err != nil || info.Size() == 0 || r.Status != 0 {
			t.Errorf("%s: status %d, %v", name, r.Status, err)
		}
		for _, phase := range []string{"open", "decode", "lower", "compile", "run", "report", "total"} {
			if !strings.Contains(r.Stderr, ": "+phase) {
				t.Errorf("no phase %s in %q", phase, r.Stderr)
			}
		}
	}
}

func TestUsageErrors(t *testing.T) {
	for _, c := range []struct {
		args string
		want string
	}{
		{"--backend nosuch", "no backend"},
		{"--model nosuch", "unknown model"},
		{"--params nosuch", "a parameter file needs a path, such as ./nosuch"},
		{"--L fast", "expected a number"},
		{"--sweep L=1 --sweep o=1 --sweep L=2", "--sweep: parameter L occurs twice, expected once"},
		{"a.goal", "expected one trace, found 2; traceconv --job merges several"},
		{"--collective allreduce=nosuch", "--collective"},
		{"--timeline x.png", "ends with .json or .json.gz or .pftrace or .viz"},
		{"--timeline x.viz --timeline-ranks 1", "--timeline-ranks: .viz timelines of the loggops backend contain all ranks"},
		{"--timeline-window 1us..", "--timeline-window needs --timeline"},
		{"--timeline x.json --timeline-window 2us..1us", "expected an end after the start"},
		{"--csv=x", "--csv: expected points, results, summary, found \"x\""},
		{"--flows -", "--flows and the result both write to standard output; name a file"},
		{"--fit --fit-out - x.csv", "--fit-out and the result both write to standard output; name a file"},
		{"--points a.csv --summary ./a.csv", "--points and --summary name the same file, ./a.csv"},
		{"--csv --json", "--json and --csv exclude each other"},
		{"--points x.txt", "--points: x.txt: expected a name that ends with .csv or .parquet"},
		{"--threads 0", "--threads"},
		{"--sweep L=1 --timeline x.json", "exclude each other"},
		{"--sweep L", "expected NAME=VALUES"},
		{"--sweep X=1", "expected one of the parameters L, o, g, G, O, S"},
		{"--sweep L=1;L=2", "twice"},
		{"--sweep L=1..2", "FROM..TO:N"},
		{"--sweep L=1..2:1", "FROM..TO:N"},
		{"--sweep L=0..9:1000000;o=1,2", "at most 1000000 points"},
		{"--sweep G=x", "G:"},
		{"--model loggopsim --G 0.5", "expected whole nanoseconds"},
		{"--noise-cosched", "needs --noise-trace"},
	} {
		r := clitest.Run(newCommand, append(strings.Fields(c.args), vectors+"pingpong_2.bin")...)
		if r.Status != 2 || r.Stdout != "" || !strings.Contains(r.Stderr, c.want) {
			t.Errorf("%s: status %d, stdout %q, stderr %q; expected 2 and %q", c.args, r.Status, r.Stdout, r.Stderr, c.want)
		}
	}
}

func TestFailures(t *testing.T) {
	folder := t.TempDir()
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{folder + "/nosuch.bin"}, "no such file"},
		{[]string{"--timeline", folder + "/t.json", "--timeline-ranks", "0..2", vectors + "pingpong_2.bin"},
			"--timeline-ranks: there is no rank 2, the trace has 2"},
		{[]string{"--noise-trace", folder + "/nosuch", vectors + "pingpong_2.bin"}, "no such file"},
		{[]string{vectors + "sg_chained_dissem_8.bin"}, "rank 0 op 6 sends to rank 9999999, expected 0..7"},
		{[]string{"--timeline", folder + "/t.json", "--noise-trace", vectors + "noise_trace.txt", "--model", "loggopsim", "--o",
			"105us", vectors + "pingpong_2.bin"}, "exactly as long as the noise trace"},
	} {
		r := clitest.Run(newCommand, c.args...)
		if r.Status != 1 || r.Stdout != "" || !strings.Contains(r.Stderr, c.want) {
			t.Errorf("%v: status %d, stdout %q, stderr %q; expected 1 and %q", c.args, r.Status, r.Stdout, r.Stderr, c.want)
		}
	}
	if files, err := os.ReadDir(folder); err != nil || len(files) > 0 {
		t.Errorf("left behind %v, %v", files, err)
	}
}

// TestTimelineNames checks the names of collectives that are lowered, or were lowered before, and that they do not
// depend on the backend.
func TestTimelineNames(t *testing.T) {
	b := dag.NewBuilder(4)
	for rank := range 4 {
		b.Rank(rank).Send(int32(rank+1)%4, 8, dag.CollectiveTag)
		b.Rank(rank).Recv(int32(rank+3)%4, 8, dag.CollectiveTag)
		first := b.Rank(rank).Add(dag.Op{Kind: dag.Coll, Subkind: dag.Gatherv, Bytes: 64, RecvBytes: []int64{256, 0, 0, 0}[rank]})
		first = b.Rank(rank).Add(dag.Op{Kind: dag.Coll, Subkind: dag.Allreduce, Bytes: 64, Name: "MPI_Allreduce"}, first)
		b.Rank(rank).Add(dag.Op{Kind: dag.Coll, Subkind: dag.Barrier}, first)
	}
	path := storedFile(t, b.Trace())
	for _, args := range [][]string{{"--backend", "loggops"}, {"--backend", "packet", "--topology", "star:hosts=4"},
		{"--backend", "ideal"}, {"--backend", "analytical", "--network", "Ring(4)@25GB/s,500ns"}} { // runs allreduce itself
		lowered := args[1] == "loggops" || args[1] == "packet"
		file := filepath.Join(t.TempDir(), "t.json")
		if r := clitest.Run(newCommand, append(args, "-q", "--timeline", file, "--timeline-ranks", "1,2", path)...); r.Status != 0 {
			t.Fatal(r.Stderr)
		}
		var read struct {
			TraceEvents []struct {
				Ph, Cat, Name string
				PID           int
			}
			OtherData struct{ Program string }
		}
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal(text, &read); err != nil || read.OtherData.Program != "simulate" {
			t.Fatalf("error %v, program %q", err, read.OtherData.Program)
		}
		count := map[string]int{}
		for _, e := range read.TraceEvents {
			if e.Ph == "X" && e.Cat != "calc" {
				count[e.Cat+" "+e.Name]++
			}
			if e.PID != 1 && e.PID != 2 {
				t.Errorf("%v: %+v is not of rank 1 or 2", args, e)
			}
		}
		for _, name := range []string{"gatherv #0", "MPI_Allreduce #1", "barrier #2", "collective #0"} {
			if count["collective "+name] != 2 || lowered &&
				(count["send "+name] < 1 || count["recv "+name] < 1 && name != "gatherv #0" || count["message "+name] < 1) {
				t.Errorf("%v: %s in %v", args, name, count)
			}
			for _, kind := range []string{"collective ", "send ", "recv ", "message ", "wait ", "comm "} {
				delete(count, kind+name)
			}
		}
		if len(count) > 0 {
			t.Errorf("%v: also %v", args, count)
		}
	}
}
