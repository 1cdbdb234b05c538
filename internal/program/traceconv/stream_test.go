package traceconv

import (
	"bytes"
	"context"
	"errors"
	"reflect"
	"strings"
	"testing"

	"github.com/tracedag/tracedag/dag"
	"github.com/tracedag/tracedag/dag/gen/horovod"
	"github.com/tracedag/tracedag/dag/lower/collective"
	"github.com/tracedag/tracedag/formats"
	"github.com/tracedag/tracedag/formats/format"
	"github.com/tracedag/tracedag/formats/goal"
	"github.com/tracedag/tracedag/formats/vef/model"
	"github.com/tracedag/tracedag/internal/cli"
	"github.com/tracedag/tracedag/internal/cli/clitest"
)

// synthetic is a format of one file, "synthetic\n", for a generated trace. It counts the reads of the whole trace.
func synthetic(whole *int) format.Format {
	return format.Format{
		Name: "synthetic", Extensions: []string{".synthetic"},
		Detect: func(head []byte) bool { return bytes.HasPrefix(head, []byte("synthetic\n")) },
		Read: func([]*format.Input, format.ReadOptions) (*dag.Trace, error) {
			return nil, errors.New("read where it could be opened")
		},
		Generates: true,
		Options:   model.Table,
		Open: func(_ *format.Input, o format.ReadOptions) (dag.Source, error) {
			s, err := horovod.NewSource(horovod.Default(), o.Own.(*model.Options).Seed)
			return &generated{s, whole}, err
		},
	}
}

type generated struct {
	*horovod.Source
	whole *int
}

func (g *generated) ReadAll() (*dag.Trace, error) {
	*g.whole++
	return dag.ReadAll(g.Source)
}

// A trace of a format with batches is converted batch by batch, unless an edit needs the whole trace.
func TestStream(t *testing.T) {
	in(t, map[string]string{"x.synthetic": "synthetic\n"})
	whole := 0
	run := func(args ...string) string {
		t.Helper()
		got := clitest.Session{Formats: append(formats.List{synthetic(&whole)}, formats.All...)}.Run(New, args...)
		if got.Status != 0 || got.Stderr != "" {
			t.Fatalf("traceconv %q: exit status %d, stderr %q", args, got.Status, got.Stderr)
		}
		return got.Stdout
	}
	want, err := readAll(horovod.NewSource(horovod.Default(), 5))
	if err != nil {
		t.Fatal(err)
	}
	got := readStore(t, run("x.synthetic", "--seed", "5", "--title", "T"))
	if whole != 0 {
		t.Error("the trace was made as a whole")
	}
	if !reflect.DeepEqual(got.Ranks, readStore(t, asStore(t, want)).Ranks) || got.Title != "T" {
		t.Errorf("the trace differs, with title %q", got.Title)
	}
	if p := got.Provenance; len(p) != 1 || len(p[0].Inputs) != 1 || p[0].Inputs[0].Name != "x.synthetic" ||
		len(p[0].Inputs[0].SHA256) != 64 || p[0].Seed == nil || *p[0].Seed != 5 {
		t.Errorf("provenance %+v", p)
	}
	run("x.synthetic", "-o", "x.parquet")
	if store := content(t, "x.parquet"); len(readStore(t, store).Ranks) != 8 || whole != 0 {
		t.Errorf("%d ranks, made as a whole %d times", len(readStore(t, store).Ranks), whole)
	}
	lowered, err := collective.Lower(context.Background(), want, collective.Choice{})
	if err != nil {
		t.Fatal(err)
	}
	got = readStore(t, run("x.synthetic", "--seed", "5", "--lower", "collectives"))
	if !reflect.DeepEqual(got.Ranks, readStore(t, asStore(t, lowered)).Ranks) || whole != 0 {
		t.Errorf("%d ops, expected %d, made as a whole %d times", got.Ops(), lowered.Ops(), whole)
	}

	// The same applies to a format with losses, which it reports.
	asGOAL := func(args ...string) clitest.Result {
		args = append(args, "x.synthetic", "--seed", "5", "--lower", "collectives", "--to", "goal")
		return clitest.Session{Formats: append(formats.List{synthetic(&whole)}, formats.All...)}.Run(New, args...)
	}
	lossy, strict := asGOAL(), asGOAL("--strict")
	var goalText bytes.Buffer
	if err := goal.Text.Write(&goalText, lowered, format.WriteOptions{}); err != nil {
		t.Fatal(err)
	}
	losses := goal.Text.Losses(lowered)
	if lossy.Status != 0 || lossy.Stdout != goalText.String() || whole != 0 {
		t.Errorf("exit status %d, %d bytes, made as a whole %d times", lossy.Status, len(lossy.Stdout), whole)
	}
	for _, l := range losses {
		lost := "<stdout>: lost: " + l.String() + "\n"
		if !strings.Contains(lossy.Stderr, lost) || !strings.Contains(strict.Stderr, l.String()) {
			t.Errorf("stderr %q and %q, expected %s", lossy.Stderr, strict.Stderr, l)
		}
	}
	if len(losses) == 0 || strict.Status != cli.ExitLoss || strict.Stdout != "" || whole != 0 {
		t.Errorf("%d losses; with --strict exit status %d, %d bytes", len(losses), strict.Status, len(strict.Stdout))
	}
}

// readAll returns the trace of a source, or the error of making the source.
func readAll[S dag.Source](s S, err error) (*dag.Trace, error) {
	if err != nil {
		return nil, err
	}
	return dag.ReadAll(s)
}
