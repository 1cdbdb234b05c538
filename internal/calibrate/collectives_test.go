package calibrate

import (
	"context"
	"io"
	"math/big"
	"slices"
	"strings"
	"testing"

	"github.com/tracedag/tracedag/dag"
	"github.com/tracedag/tracedag/dag/lower/collective"
	_ "github.com/tracedag/tracedag/internal/testheap"
	"github.com/tracedag/tracedag/sim/fit"
	"github.com/tracedag/tracedag/sim/loggops"
)

// machine returns the times of ranks on a network with the given latency.
func machine(latency dag.Time) replayer {
	return replay(loggops.Params{L: latency, Overhead: 300 * dag.Nanosecond, Gap: 100 * dag.Nanosecond,
		GPerByte: big.NewRat(100, 1), OPerByte: new(big.Rat), S: 1 << 30})
}

// TestUnused checks that remarks count the measurements that determine nothing, and that the file can be written.
func TestUnused(t *testing.T) {
	table := &fit.Table{Name: "t", Tool: "csv"}
	for bytes := int64(1); bytes <= 1<<10; bytes *= 2 {
		table.Rows = append(table.Rows, fit.Measurement{Test: fit.PingPong, Bytes: bytes, Seconds: 1e-6})
	}
	table.Rows = append(table.Rows, fit.Measurement{Test: "pingpoong", Bytes: 8, Seconds: 1},
		fit.Measurement{Test: "pingpoong", Bytes: 16, Seconds: 1},
		fit.Measurement{Test: fit.Window, Window: 1, Bytes: 8, Seconds: 1},
		fit.Measurement{Test: "incast4", Bytes: 8, Seconds: 1e-6},
		fit.Measurement{Test: "allreduce", Bytes: 8, Ranks: 1, Seconds: 1},
		fit.Measurement{Test: "allreduce", Bytes: 1 << 62, Ranks: 16, Seconds: 1})
	f, err := Estimate(context.Background(), []*fit.Table{table}, Options{Threads: 2})
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		`2 measurements of the test "pingpoong" are not used`, `1 measurement of the test "window" is not used`,
		"1 measurement of allreduce on 1 rank is not used",
		"1 measurement of allreduce on 16 ranks, which no algorithm can predict, is not used",
	} {
		if !slices.Contains(f.Remarks, want) {
			t.Errorf("remarks %q lack %q", f.Remarks, want)
		}
	}
	if slices.ContainsFunc(f.Remarks, func(r string) bool { return strings.Contains(r, "incast") }) {
		t.Errorf("remarks %q", f.Remarks)
	}
	if err := f.Write(io.Discard); err != nil {
		t.Error(err)
	}
}

// TestIdentify: measurements made with an algorithm identify it or one that takes the same time.
func TestIdentify(t *testing.T) {
	ctx, time := context.Background(), machine(dag.Microsecond)
	truth := []struct {
		kind      dag.Subkind
		algorithm string
		sizes     []int64
	}{
		{dag.Allreduce, "recdoubling", []int64{8, 1024}}, {dag.Allreduce, "ring", []int64{1 << 20, 16 << 20}},
		{dag.Alltoall, "bruck", []int64{8, 64}}, {dag.Alltoall, "pairwise", []int64{1 << 16, 1 << 18}},
		{dag.Bcast, "scatterallgather", []int64{1 << 20, 4 << 20}},
	}
	var rows []fit.Measurement
	for _, tr := range truth {
		for _, size := range tr.sizes {
			g := group{kind: tr.kind, ranks: 16}
			p := newPredictor(time, 1)
			o, err := p.predict(ctx, &g, size, fresh, tr.algorithm, allLight)
			if err != nil {
				t.Fatal(err)
			}
			rows = append(rows, fit.Measurement{Test: tr.kind.String(), Bytes: size, Ranks: 16, Seconds: o.longest})
		}
	}
	rows = append(rows, fit.Measurement{Test: "allreduce", Bytes: 8, Seconds: 1}, fit.Measurement{Test: fit.PingPong,
		Bytes: 8, Seconds: 1})
	found, err := identify(ctx, rows, 2, time, "")
	if err != nil {
		t.Fatal(err)
	}
	remarks := found.remarks
	const want = "allreduce=recdoubling:size<1048576,ring;alltoall=bruck:block<65536,pairwise;bcast=scatterallgather"
	if got := found.expression; got != want {
		t.Errorf("%s, expected %s: %+v", got, want, found.choices)
	}
	if len(remarks) != 1 || remarks[0] != "1 measurement of allreduce without a number of ranks, which FILE@RANKS would state, is not used" {
		t.Errorf("remarks %q", remarks)
	}
	for _, c := range found.choices {
		if c.None || c.Error != 0 {
			t.Errorf("%+v, expected no error", c)
		}
	}
	// The nearest table of SMPI decides for collectives that are not measured.
	const nearest = "smpi-mvapich2"
	found, err = identify(ctx, rows, 2, time, smpiTable)
	if err != nil || found.expression != nearest {
		t.Errorf("%s, %v: expected the table %s", found.expression, err, nearest)
	}
	// On another machine no algorithm fits.
	found, err = identify(ctx, rows[:2], 2, machine(10*dag.Microsecond), "")
	if err != nil || len(found.choices) == 0 || !found.choices[0].None || found.expression != "" {
		t.Errorf("%+v, %v: expected none of the algorithms", found, err)
	}
}

// TestExpression: sizes without an algorithm have no rule.
func TestExpression(t *testing.T) {
	choices := []fit.Choice{
		{Collective: "bcast", Ranks: 8, From: 8, To: 512, Algorithm: "binomial"},
		{Collective: "bcast", Ranks: 8, From: 2048, To: 8192, Algorithm: "linear", None: true},
		{Collective: "bcast", Ranks: 8, From: 32768, To: 1 << 20, Algorithm: "binomial"},
		{Collective: "alltoall", Ranks: 8, From: 8, To: 64, Algorithm: "bruck"},
		{Collective: "alltoall", Ranks: 8, From: 256, To: 4096, Algorithm: "linear"},
		{Collective: "alltoall", Ranks: 16, From: 8, To: 4096, Algorithm: "pairwise"},
	}
	const want = "bcast=binomial:size<2048,binomial:size>=32768;alltoall=bruck:block<256&ranks<12,linear:ranks<12," +
		"pairwise:ranks>=12"
	got := "bcast=" + strings.Join(rules(choices[:3]), ",") + ";alltoall=" + strings.Join(rules(choices[3:]), ",")
	if got != want {
		t.Errorf("%s, expected %s", got, want)
	}
	if _, err := collective.ParseChoice(got); err != nil {
		t.Error(err)
	}
}
