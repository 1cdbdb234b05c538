package traceconv

import (
	"strings"
	"testing"

	"github.com/tracedag/tracedag/dag"
	"github.com/tracedag/tracedag/internal/cli/clitest"
)

// TestModels reads extended traces with flags for parameters that the files lack.
func TestModels(t *testing.T) {
	const dcnw = "VEF3 4 10 0 0 0 FALSE\nEXT CDCNW\nsizes.txt GAUSS\n"
	const horovod = "VEF3 4 0 0 0 0 FALSE\nEXT HOROVOD\nBATCHES 2 LAYERS 3\nDEFAULT ARED_KBYTES 64 BCAST_BYTES 100 " +
		"GATV_PROB 0.5 GATV_TOTAL_BYTES 120 GATV_BYTES 60 NEGOTIATION_LOOP_MS 0.01 COMPUTE_MS 0.1\n"
	in(t, map[string]string{"d.vef": dcnw, "h.vef": horovod, "sizes.txt": "8 0.5\n100 1\n", "empty.vef": ""})
	for args, want := range map[string]string{
		"d.vef --gauss-sigma-frac 0":  "--gauss-sigma-frac: expected a number above 0, found 0",
		"d.vef --gauss-sigma-frac -1": "--gauss-sigma-frac: expected a number above 0, found -1",
		"h.vef --jitter -1":           "--jitter: expected 0 to 1, found -1",
		"h.vef --jitter NaN":          "--jitter: expected 0 to 1, found NaN",
	} {
		if got := clitest.Run(New, strings.Fields(args)...); got.Status != 2 || !strings.Contains(got.Stderr, want) {
			t.Errorf("traceconv %s: status %d, stderr %q", args, got.Status, got.Stderr)
		}
	}
	trace := readStore(t, ok(t, "", "d.vef", "--seed", "3"))
	p := trace.Provenance[0]
	if *p.Seed != 3 || len(p.Inputs) != 2 || p.Inputs[1].Name != "sizes.txt" ||
		p.Inputs[1].SHA256 != "75ac9b746dd1e0cad6b6f257b52a442c03782db66834d8d4ae9d6a4c09a0d353" {
		t.Errorf("provenance %+v", p)
	}
	steps := func(args ...string) (fine bool) {
		trace := readStore(t, ok(t, "", append(args, "h.vef")...))
		for _, d := range trace.Ranks[1].Duration {
			fine = fine || d%(100*dag.Nanosecond) != 0
		}
		return fine
	}
	if steps() || !steps("--time-step", "1ns") || steps("--time-step", "1ns", "--jitter", "0") {
		t.Error("drawn times are not multiples of the time step")
	}
	if got := clitest.Run(New, "empty.vef"); got.Status != 1 || !strings.HasPrefix(got.Stderr, "empty.vef:1: header: ") {
		t.Errorf("an empty file: status %d, stderr %q", got.Status, got.Stderr)
	}
}

// TestToVEF converts a trace that VEF holds and one that it does not, in every version and mode.
func TestToVEF(t *testing.T) {
	const both = `num_ranks 2
rank 0 {
a: recv 10b from 1 tag 5
b: recv 10b from 1 tag 6
c: send 8b to 1 tag 7
c requires a
c requires b
}
rank 1 {
a: send 10b to 0 tag 5
b: calc 100
c: send 10b to 0 tag 6
c requires b
d: recv 8b from 0 tag 7
}
`
	in(t, map[string]string{"pingpong.goal": pingpong, "both.goal": both, "bad.vef": "VFE3 1 0 0 0 0 TRUE\n"})
	const (
		exact = "VEF3 2 1 1 0 0 TRUE 1000\nC0 0 1\n0 0 1 10 0 100 -1\n"
		old   = "VEF 2 1 1 0 0 TRUE\nC0 0 1\n0 0 1 10 0 100 -1\n"
		near  = "VEF3 2 3 1 0 0 FALSE 1000\nC0 0 1\n0 1 0 10 0 100 -1\n1 0 1 8 2 0 0\n2 1 0 10 0 0 -1\n"
	)
	for _, c := range []struct {
		args, stdout, stderr string // stderr: a part of it, "" nothing
		status               int
	}{
		{"pingpong.goal --to vef --strict", exact, "", 0},
		{"pingpong.goal --to vef --vef-version 1", old, "", 0},
		{"pingpong.goal --to vef --vef-version 3", exact, "", 0},
		{"pingpong.goal --to vef --vef-version 2", "", "expected 1 or 3, found 2", 2},
		{"pingpong.goal --to goal --vef-version 1", "", "expected an output in VEF, found goal", 2},
		{"both.goal --to vef --approx", near, "1 op: dependencies on several events", 0},
		{"both.goal --to vef", near, "1 op: dependencies on several events", 0},
		{"both.goal --to vef --strict", "", "the format loses 1 op: dependencies on several events", 3},
		{"both.goal --to vef --strict --approx", "", "--approx and --strict exclude each other", 2},
		// The format follows from the name; the reader reports the line with the error.
		{"bad.vef", "", `bad.vef:1: header: expected VEF, VEF2 or VEF3, found "VFE3"`, 1},
	} {
		got := clitest.Run(New, strings.Fields(c.args)...)
		if got.Status != c.status || got.Stdout != c.stdout || !strings.Contains(got.Stderr, c.stderr) ||
			c.stderr == "" && got.Stderr != "" {
			t.Errorf("traceconv %s: status %d, stderr %q, stdout\n%s", c.args, got.Status, got.Stderr, got.Stdout)
		}
	}
}
