package simulate

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"

	"github.com/tracedag/tracedag/dag"
	"github.com/tracedag/tracedag/internal/cli/clitest"
)

// measuredTrace returns a trace of calcs of 100, 60 and 7 ns and an empty rank, of which the tracer saw 80 ns from 1000
// on, 60 and 20 ns with a gap of 20 between, and nothing that has an end.
func measuredTrace() *dag.Trace {
	b := dag.NewBuilder(4)
	b.Rank(0).Add(dag.Op{Duration: 100 * ns, Timed: true, MeasuredStart: 1000 * ns, MeasuredEnd: 1080 * ns})
	b.Rank(1).Calc(10 * ns)
	b.Rank(1).Add(dag.Op{Duration: 25 * ns, Timed: true, MeasuredStart: -20 * ns, MeasuredEnd: 40 * ns}, 0)
	b.Rank(1).Add(dag.Op{Duration: 25 * ns, Timed: true, MeasuredStart: -60 * ns, MeasuredEnd: -40 * ns}, 1)
	b.Rank(2).Add(dag.Op{Duration: 7 * ns, Timed: true, MeasuredStart: 3, MeasuredEnd: dag.Unmeasured})
	return b.Trace()
}

const measuredResult = `{"ranks":[{"rank":0,"measured_ps":80000,"predicted_ps":100000,"error":0.25},` +
	`{"rank":1,"measured_ps":100000,"predicted_ps":60000,"error":-0.4},` +
	`{"rank":2,"measured_ps":null,"predicted_ps":7000,"error":null},` +
	`{"rank":3,"measured_ps":null,"predicted_ps":0,"error":null}],` +
	`"overall":{"measured_ps":100000,"predicted_ps":100000,"error":0},"resolution_ps":20000,` +
	`"mean_abs_error":0.325,"max_abs_error":0.4}`

// TestCompare checks the comparison of a store, alone, as a job that starts later, and in each line of a sweep.
func TestCompare(t *testing.T) {
	path := storedFile(t, measuredTrace())
	for _, args := range [][]string{
		{path}, {"--trace", path + "@3ms"}, {path, "--backend", "ideal"}, {path, "--sweep", "L=1,2"},
		{path, "--backend", "analytical", "--network", "Ring(4)@50GB/s,500ns"}, {path, "--threads", "1"},
		{path, "--lower", "roofline:peak-flops=1TFLOPS,mem-bw=1TB/s"},
	} {
		r := clitest.Run(newCommand, append(args, "--compare", "--json")...)
		if r.Status != 0 {
			t.Errorf("%v: status %d, %s", args, r.Status, r.Stderr)
		}
		for line := range strings.Lines(r.Stdout) {
			var d struct{ Compare json.RawMessage }
			if err := json.Unmarshal([]byte(line), &d); err != nil || string(d.Compare) != measuredResult {
				t.Errorf("%v: %v, %s, expected %s", args, err, d.Compare, measuredResult)
			}
		}
	}
	r := clitest.Run(newCommand, path, "--compare")
	want := "rank measured predicted error\n0 80ns 100ns 25.00%\n1 100ns 60ns -40.00%\n2 7ns \n3 0s \nall 100ns 100ns 0.00%\n\n" +
		"error of ranks mean of absolute values 32.50%, largest 40.00%\n" +
		"resolution 20ns, ±20.00% of the longest rank\n"
	if !strings.Contains(squeezed(r.Stdout), want) {
		t.Errorf("no %q in\n%s", want, squeezed(r.Stdout))
	}
}

// TestCompareJobs checks that of several jobs each is compared from its start.
func TestCompareJobs(t *testing.T) {
	path := storedFile(t, measuredTrace())
	r := clitest.Run(newCommand, path, "--trace", path+"@1ms", "--compare", "--alone", "--json")
	var got struct {
		Compare struct {
			Ranks   []map[string]any
			Overall map[string]any
		}
	}
	if err := json.Unmarshal([]byte(r.Stdout), &got); err != nil || r.Status != 0 || len(got.Compare.Ranks) != 8 {
		t.Fatal(err, r.Stdout, r.Stderr)
	}
	for rank := range 4 {
		first, second := got.Compare.Ranks[rank], got.Compare.Ranks[rank+4]
		first["rank"] = first["rank"].(float64) + 4
		if !reflect.DeepEqual(first, second) {
			t.Errorf("%v and %v", first, second)
		}
	}
	if got.Compare.Overall["predicted_ps"] != 100000. {
		t.Errorf("overall %v", got.Compare.Overall)
	}
}

func TestCompareErrors(t *testing.T) {
	path := storedFile(t, pairs(3).Trace())
	b := dag.NewBuilder(1)
	b.Rank(0).Add(dag.Op{Timed: true, MeasuredStart: 5, MeasuredEnd: 4})
	backwards := storedFile(t, b.Trace())
	for _, c := range []struct {
		args   string
		status int
		want   string
	}{
		{path, 1, path + ": --compare: the trace has no measured times"},
		{path + " --trace " + path, 1, ": --compare: the trace has no measured times"},
		{backwards, 1, backwards + ": --compare: the trace has no measured times"},
		{path + " --lower nccl --gpus-per-node 1", 2, "the trace was measured on its own nodes"},
		{path + " --backend ideal --ops", 2, "add --json to use it with --alone or --compare"},
	} {
		r := clitest.Run(newCommand, append(strings.Fields(c.args), "--compare")...)
		if r.Status != c.status || !strings.Contains(r.Stderr, c.want) || r.Stdout != "" {
			t.Errorf("%s: status %d, stderr %q, stdout %.100q; expected %d, %q", c.args, r.Status, r.Stderr, r.Stdout,
				c.status, c.want)
		}
	}
}

// TestOnLowered checks the mapping of ranks after lowering.
// TestCompareExtremes checks times that 64 bits of picoseconds do not hold.

// TestCompareSteps checks the comparison of steps: one that takes longer than measured, and one that is measured on one
// of two ranks.
func TestCompareSteps(t *testing.T) {
	b := dag.NewBuilder(2)
	b.Meta().Steps = 3
	timed := func(rank int, took, start, end dag.Time, step int32, deps ...int) {
		b.Rank(rank).Add(dag.Op{Duration: took * ns, Timed: true, MeasuredStart: start * ns, MeasuredEnd: end * ns,
			Step: step}, deps...)
	}
	timed(0, 100, 1000, 1080, 1)
	timed(0, 50, 1080, 1130, 2, 0)
	timed(1, 40, 500, 540, 1)
	b.Rank(1).Add(dag.Op{Duration: 10 * ns, Step: 2}, 0)
	path := storedFile(t, b.Trace())
	for _, args := range [][]string{{path}, {"--trace", path + "@3ms"}, {path, "--backend", "ideal"}} {
		r := clitest.Run(newCommand, append(args, "--compare", "--json")...)
		want := `"steps":[{"step":1,"rank":0,"measured_ps":80000,"predicted_ps":100000,"error":0.25},` +
			`{"step":1,"rank":1,"measured_ps":40000,"predicted_ps":40000,"error":0},` +
			`{"step":2,"rank":0,"measured_ps":50000,"predicted_ps":50000,"error":0},` +
			`{"step":2,"rank":1,"measured_ps":null,"predicted_ps":10000,"error":null}]`
		if r.Status != 0 || !strings.Contains(r.Stdout, want) {
			t.Errorf("%v: %s%s, expected %s", args, r.Stdout, r.Stderr, want)
		}
	}
	r := clitest.Run(newCommand, path, "--compare")
	want := "step rank measured predicted error\n1 0 80ns 100ns 25.00%\n1 1 40ns 40ns 0.00%\n1 all 80ns 100ns 25.00%\n" +
		"2 0 50ns 50ns 0.00%\n2 1 10ns \n2 all 50ns 50ns 0.00%\n"
	if !strings.Contains(squeezed(r.Stdout), want) {
		t.Errorf("no %q in\n%s", want, squeezed(r.Stdout))
	}
}

// TestStartMeasured checks that ranks start at their recorded times, which the comparison subtracts, and the errors of
// the flags.
func TestStartMeasured(t *testing.T) {
	path := storedFile(t, measuredTrace())
	r := clitest.Run(newCommand, path, "--start", "measured", "--compare", "--json", "--exclude-outliers")
	var d struct {
		Makespan int64 `json:"makespan_ps"`
		Compare  json.RawMessage
	}
	if err := json.Unmarshal([]byte(r.Stdout), &d); err != nil || r.Status != 0 {
		t.Fatal(err, r.Stdout, r.Stderr)
	}
	// Rank 0 starts 1060 ns after the first op of rank 1, and takes 100 ns.
	if string(d.Compare) != measuredResult || d.Makespan != int64(1160*ns) {
		t.Errorf("makespan %d, %s", d.Makespan, d.Compare)
	}
	// Points of sweeps start as the command line or an axis selects, and have other settings.
	for _, args := range [][]string{
		{path, "--start", "measured", "--sweep", "L=1us", "--compare", "--exclude-outliers"},
		{path, "--sweep", "start=measured", "--compare", "--exclude-outliers"},
	} {
		r := clitest.Run(newCommand, args...)
		d.Makespan, d.Compare = 0, nil
		if err := json.Unmarshal([]byte(r.Stdout), &d); err != nil || r.Status != 0 {
			t.Fatal(args, err, r.Stdout, r.Stderr)
		}
		if string(d.Compare) != measuredResult || d.Makespan != int64(1160*ns) ||
			!strings.Contains(r.Stdout, `"start":"measured"`) {
			t.Errorf("%v: makespan %d, %s", args, d.Makespan, r.Stdout)
		}
	}
	for want, args := range map[string][]string{
		"--exclude-outliers needs --compare":       {path, "--exclude-outliers"},
		"--start: expected together or measured":   {path, "--start", "late"},
		"--start measured: expected one trace":     {path, "--trace", path, "--start", "measured"},
		"--start: the trace has no measured times": {storedFile(t, dag.NewBuilder(1).Trace()), "--start", "measured"},
	} {
		if r := clitest.Run(newCommand, args...); r.Status == 0 || !strings.Contains(r.Stderr, want) {
			t.Errorf("%v: status %d, %s", args, r.Status, r.Stderr)
		}
	}
}
