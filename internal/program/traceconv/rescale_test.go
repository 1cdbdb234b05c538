package traceconv

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/tracedag/tracedag/dag"
	"github.com/tracedag/tracedag/dag/rescale"
	"github.com/tracedag/tracedag/formats"
	"github.com/tracedag/tracedag/internal/cli"
	"github.com/tracedag/tracedag/internal/cli/clitest"
)

// pipeline is a trace in GOAL: each rank receives bytes from the previous one and sends them to the next one.
func pipeline(ranks, bytes int) string {
	var b strings.Builder
	fmt.Fprintf(&b, "num_ranks %d\n", ranks)
	for rank := range ranks {
		fmt.Fprintf(&b, "rank %d {\nc: calc %d\n", rank, 800/ranks)
		if rank > 0 {
			fmt.Fprintf(&b, "r: recv %db from %d tag 1\nc requires r\n", bytes, rank-1)
		}
		if rank < ranks-1 {
			fmt.Fprintf(&b, "s: send %db to %d tag 1\ns requires c\n", bytes, rank+1)
		}
		b.WriteString("}\n")
	}
	return b.String()
}

func TestRescale(t *testing.T) {
	in(t, map[string]string{"p4.goal": pipeline(4, 64), "p8.goal": pipeline(8, 64)})
	got := clitest.Run(New, "--rescale", "6", "--second-trace", "p8.goal", "--rescale-report", "r.json", "p4.goal", "-o",
		"p6.parquet")
	if got.Status != cli.ExitOK || !strings.Contains(got.Stderr, "p4.goal: rescale: strong scaling") {
		t.Fatalf("status %d, stderr %q", got.Status, got.Stderr)
	}
	a, err := formats.Read("p6.parquet", formats.Options{})
	if err != nil {
		t.Fatal(err)
	}
	var want []dag.Pair
	for rank := range int32(5) {
		want = append(want, dag.Pair{Src: rank, Dst: rank + 1, Messages: 1, Bytes: dag.TotalOf(64)})
	}
	if m := dag.Matrix(a); !slices.Equal(m, want) {
		t.Errorf("messages %v, expected %v", m, want)
	}
	last := a.Provenance[len(a.Provenance)-1]
	if len(last.Inputs) != 2 || last.Seed == nil || !slices.Contains(last.Command, "--rescale") {
		t.Errorf("provenance %+v", last)
	}
	var report rescale.Report
	if err := json.Unmarshal([]byte(content(t, "r.json")), &report); err != nil {
		t.Fatal(err)
	}
	if report.From != 4 || report.To != 6 || report.Second == nil || report.Second.Bytes != 0 {
		t.Errorf("report %+v", report)
	}
}

// TestRescaleInputs rescales several inputs concurrently. The second trace is an input of each output.
func TestRescaleInputs(t *testing.T) {
	inputs := map[string]string{"p8.goal": pipeline(8, 64)}
	args := []string{"--rescale", "6", "--second-trace", "p8.goal", "--jobs", "4", "--skip-existing", "-o", "out/"}
	for i := range 6 {
		name := fmt.Sprintf("in%d.goal", i)
		inputs[name] = pipeline(4, 64)
		args = append(args, name)
	}
	in(t, inputs)
	ok(t, "", append(args, "-q")...)
	for i := range 6 {
		name := fmt.Sprintf("out/in%d.parquet", i)
		made, err := formats.Read(name, formats.Options{})
		if err != nil {
			t.Fatal(err)
		}
		last := made.Provenance[len(made.Provenance)-1]
		if len(made.Ranks) != 6 || len(last.Inputs) != 2 || last.Inputs[1].Name != "p8.goal" ||
			last.Inputs[1].SHA256 == "" {
			t.Errorf("%s: %d ranks, provenance %+v", name, len(made.Ranks), last)
		}
	}
	got := clitest.Run(New, args...)
	if got.Status != cli.ExitOK || !strings.Contains(got.Stderr, "6 unchanged") {
		t.Errorf("again: status %d, stderr %q", got.Status, got.Stderr)
	}
}

func TestRescaleErrors(t *testing.T) {
	in(t, map[string]string{"p4.goal": pipeline(4, 64), "p.goal": pingpong})
	for _, c := range []struct {
		args   string
		status int
		want   string
	}{
		{"--rescale 8 p.goal -o x.goal", cli.ExitFailed, "p.goal: not rescaled: the trace has 2 ranks"},
		{"--scaling strong p4.goal -o x.goal", cli.ExitUsage, "--scaling is for --rescale"},
		{"--growth linear p4.goal -o x.goal", cli.ExitUsage, "--growth is for --rescale"},
		{"--rescale 8 --growth linear --second-trace p4.goal p4.goal -o x.goal", cli.ExitUsage, "--growth is for a single"},
		{"--rescale 8 --job p4.goal -o x.goal", cli.ExitUsage, "--rescale is for single traces"},
		{"--rescale x p4.goal -o x.goal", cli.ExitUsage, "expected a whole number"},
		{"--rescale 8 --rescale-report r.json p4.goal -o out/", cli.ExitUsage, "is for a single output"},
		{"--rescale 8 --rescale-report r.json p4.goal --publish set/", cli.ExitUsage, "is for a single output"},
		{"--rescale 8 --rescale-report no/r.json absent.goal -o x.goal", cli.ExitFailed, "no/r.json: "},
		{"--rescale 8 --second-trace absent.goal p4.goal -o x.goal", cli.ExitFailed, "absent.goal: no such file"},
		{"--rescale 8 --second-trace p4.goal p4.goal -o x.goal", cli.ExitFailed, "expected another number"},
	} {
		got := clitest.Run(New, strings.Fields(c.args)...)
		if got.Status != c.status || !strings.Contains(got.Stderr, c.want) {
			t.Errorf("%s: status %d, stderr %q, expected %d and %q", c.args, got.Status, got.Stderr, c.status, c.want)
		}
	}
}
