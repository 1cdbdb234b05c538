package simulate

import (
	"bytes"
	"encoding/json"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/tracedag/tracedag/dag"
	"github.com/tracedag/tracedag/internal/cli/clitest"
)

// idealDocument is the ideal backend's part of the result.
type idealDocument struct {
	document
	CriticalPath struct {
		Length  int64   `json:"length_ps"`
		Compute int64   `json:"compute_ps"`
		Share   float64 `json:"compute_share"`
		Mem     int64   `json:"mem_ps"`
		IO      int64   `json:"io_ps"`
		Wait    int64   `json:"wait_ps"`
		Ops     int
		Path    []pathEntry
	} `json:"critical_path"`
	OpTimes []map[string]any `json:"op_times"`
}

type pathEntry struct {
	Rank, Op int
	Kind     string
	Start    int64  `json:"start_ps"`
	End      int64  `json:"end_ps"`
	LedBy    string `json:"led_by"`
}

func parseIdeal(t *testing.T, text string) idealDocument {
	t.Helper()
	var d idealDocument
	decoder := json.NewDecoder(strings.NewReader(text))
	decoder.UseNumber()
	if err := decoder.Decode(&d); err != nil {
		t.Fatalf("%v in %.500s", err, text)
	}
	return d
}

// collectiveTrace returns a trace that broadcasts a result of rank 0. One receive has no matching send.
func collectiveTrace() *dag.Trace {
	b := dag.NewBuilder(2)
	deps := []int{b.Rank(0).Add(dag.Op{Duration: 30, Release: 10}), b.Rank(1).Calc(7)}
	for rank, dep := range deps {
		b.Rank(rank).Add(dag.Op{Kind: dag.Coll, Subkind: dag.Bcast, Bytes: int64(8 * (1 - rank)), Tag: 5}, dep)
	}
	load := b.Rank(1).Add(dag.Op{Kind: dag.Mem, Subkind: dag.Load, Bytes: 4096, Duration: 60}, 1)
	b.Rank(1).Calc(1, b.Rank(1).Recv(dag.AnySource, 64, dag.AnyTag, load))
	return b.Trace()
}

// TestIdealJSON checks the document, from a store in a file and in a pipe, and with another job beside.
func TestIdealJSON(t *testing.T) {
	path := storedFile(t, collectiveTrace())
	file, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	args := []string{"--backend", "ideal", "--json", "--ops", "--critical-path"}
	for name, r := range map[string]clitest.Result{
		"file": clitest.Run(newCommand, append(args, path)...),
		"pipe": clitest.Session{Stdin: bytes.NewReader(file)}.Run(newCommand, args...),
		"jobs": clitest.Run(newCommand, append(args, path, "--trace", storedFile(t, dag.NewBuilder(0).Trace()))...),
	} {
		d := parseIdeal(t, r.Stdout)
		if r.Status != 1 || d.Backend != "ideal" || d.Makespan != "100" || !slices.Equal(d.Finish, []json.Number{"40", "100"}) ||
			d.Ops != 7 || d.NeverRun != 1 || *d.Complete || len(d.Stuck) != 2 || d.Stuck[0].WaitsFor != "a message from any rank, any tag" {
			t.Errorf("%s: status %d, %+v", name, r.Status, d.document)
		}
		c := d.CriticalPath
		want := []pathEntry{{0, 0, "calc", 10, 40, "release"}, {0, 1, "coll", 40, 40, "dep"},
			{1, 1, "coll", 40, 40, "collective"}, {1, 2, "mem", 40, 100, "dep"}}
		if c.Length != 100 || c.Compute != 30 || c.Share != 0.3 || c.Mem != 60 || c.IO != 0 || c.Wait != 10 || c.Ops != 4 ||
			!slices.Equal(c.Path, want) {
			t.Errorf("%s: critical path %+v", name, c)
		}
		times, err := json.Marshal(d.OpTimes) // sorts the names
		if err != nil {
			t.Fatal(err)
		}
		wantTimes := `[{"end_ps":40,"kind":"calc","op":0,"rank":0,"start_ps":10},` +
			`{"bytes":8,"comm":0,"end_ps":40,"kind":"coll","op":1,"peer":0,"rank":0,"start_ps":40,"subkind":"bcast","tag":5},` +
			`{"end_ps":7,"kind":"calc","op":0,"rank":1,"start_ps":0},` +
			`{"bytes":0,"comm":0,"end_ps":40,"kind":"coll","op":1,"peer":0,"rank":1,"start_ps":7,"subkind":"bcast","tag":5},` +
			`{"bytes":4096,"end_ps":100,"kind":"mem","op":2,"rank":1,"start_ps":40,"subkind":"load"},` +
			`{"bytes":64,"comm":0,"end_ps":null,"kind":"recv","op":3,"peer":-1,"rank":1,"start_ps":100,"tag":-1},` +
			`{"end_ps":null,"kind":"calc","op":4,"rank":1,"start_ps":null}]`
		if name == "jobs" { // where the collectives of each job have a communicator of its own
			wantTimes = strings.ReplaceAll(wantTimes, `"comm":0,"end_ps":40`, `"comm":1,"end_ps":40`)
		}
		if string(times) != wantTimes {
			t.Errorf("%s: %s", name, times)
		}
	}
	r := clitest.Run(newCommand, "--backend", "ideal", "--json", path)
	if d := parseIdeal(t, r.Stdout); d.CriticalPath.Ops != 4 || d.CriticalPath.Path != nil || d.OpTimes != nil {
		t.Errorf("without flags: %s", r.Stdout)
	}
}

// TestIdealTables checks the tables of the output.
func TestIdealTables(t *testing.T) {
	path := storedFile(t, collectiveTrace())
	r := clitest.Run(newCommand, "--backend", "ideal", "--ops", path)
	want := "rank\top\tkind\tsubkind\tpeer\ttag\tcomm\tbytes\tstart_ps\tend_ps\n" +
		"0\t0\tcalc\t\t\t\t\t\t10\t40\n0\t1\tcoll\tbcast\t0\t5\t0\t8\t40\t40\n" +
		"1\t0\tcalc\t\t\t\t\t\t0\t7\n1\t1\tcoll\tbcast\t0\t5\t0\t0\t7\t40\n1\t2\tmem\tload\t\t\t\t4096\t40\t100\n" +
		"1\t3\trecv\t\t-1\t-1\t0\t64\t100\t\n1\t4\tcalc\t\t\t\t\t\t\t\n"
	if r.Status != 1 || r.Stdout != want {
		t.Errorf("status %d, %q", r.Status, r.Stdout)
	}
	r = clitest.Run(newCommand, "--backend", "ideal", "--critical-path", path)
	for _, want := range []string{"backend        ideal\n",
		"critical path  4 ops, 30% compute, 60% memory, 10% waiting for a release time\n",
		"from  to     rank  ops   count  busy  led by\n10ps  40ps   0     0..1  2      30ps  release\n" +
			"40ps  100ps  1     1..2  2      60ps  collective\n"} {
		if !strings.Contains(r.Stdout, want) {
			t.Errorf("no %q in\n%s", want, r.Stdout)
		}
	}
}

// TestIdealSource checks that a store with collectives is not read as a whole, and once more for --ops.
func TestIdealSource(t *testing.T) {
	path := storedFile(t, collectiveTrace())
	for _, args := range [][]string{{"--json"}, {"--ops"}} {
		r := clitest.Run(newCommand, append(args, "--backend", "ideal", "-v", path)...)
		if strings.Contains(r.Stderr, "lowered") || !strings.Contains(r.Stderr, "lower            0s ") {
			t.Errorf("%v: %s", args, r.Stderr)
		}
	}
}

// TestIdealUsage checks that flags that mean nothing together are refused.
func TestIdealUsage(t *testing.T) {
	path := storedFile(t, pairs(2).Trace())
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"--backend", "ideal", "--L", "5us"}, "--L is for the loggops backend, not for ideal"},
		{[]string{"--backend", "ideal", "--model", "strict"}, "--model is for the loggops backend"},
		{[]string{"--backend", "ideal", "--params", "ai"}, "--params is for the loggops, analytical, packet and flow backends"},
		{[]string{"--backend", "ideal", "--noise-trace", "x"}, "--noise-trace is for the loggops backend"},
		{[]string{"--backend", "ideal", "--timeline", "x.viz"}, "expected a name that ends with .json or .json.gz or .pftrace"},
		{[]string{"--backend", "ideal", "--sweep", "L=1,2"}, "point 1 (L=1): --L is for the loggops backend, not for ideal"},
		{[]string{"--backend", "ideal", "--collective", "allreduce=ring"}, "--collective: the ideal backend"},
		{[]string{"--backend", "ideal", "--ops", "--critical-path"}, "--ops and --critical-path"},
		{[]string{"--ops"}, "--ops is for the ideal backend, not for loggops"},
		{[]string{"--critical-path", "--model", "atlahs"}, "--critical-path: the loggops backend finds no critical path"},
	} {
		r := clitest.Run(newCommand, append(c.args, path)...)
		if r.Status != 2 || r.Stdout != "" || !strings.Contains(r.Stderr, c.want) {
			t.Errorf("%v: status %d, %s%s", c.args, r.Status, r.Stdout, r.Stderr)
		}
	}
}
