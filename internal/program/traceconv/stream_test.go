package traceconv

import (
	"bytes"
	"context"
	"errors"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/tracedag/tracedag/dag"
	"github.com/tracedag/tracedag/dag/gen/horovod"
	"github.com/tracedag/tracedag/dag/lower/collective"
	"github.com/tracedag/tracedag/formats"
	"github.com/tracedag/tracedag/formats/format"
	"github.com/tracedag/tracedag/formats/goal"
	"github.com/tracedag/tracedag/formats/store"
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

// TestStreamStore checks that a store is converted batch by batch, lowered or not, to the bytes of a conversion in
// memory, unless an edit needs the whole trace, the output replaces the input, or the format of the output is written
// from memory.
func TestStreamStore(t *testing.T) {
	trace, err := readAll(horovod.NewSource(horovod.Default(), 5))
	if err != nil {
		t.Fatal(err)
	}
	in(t, map[string]string{"x.parquet": asStore(t, trace)})
	whole := 0
	counting := store.Format
	counting.Open = func(in *format.Input, o format.ReadOptions) (dag.Source, error) {
		s, err := store.Format.Open(in, o)
		if err != nil {
			return nil, err
		}
		return &counted{s, &whole}, nil
	}
	inMemory := store.Format
	inMemory.Open = nil
	all := func(f format.Format) formats.List {
		list := slices.Clone(formats.All)
		for i := range list {
			if list[i].Name == f.Name {
				list[i] = f
			}
		}
		return list
	}
	for _, c := range []struct {
		args  string
		whole int
	}{
		{"x.parquet -o y.parquet", 0},
		{"x.parquet --lower collectives -o y.parquet", 0},
		{"x.parquet --lower collectives -o y.goal", 0},
		{"x.parquet --lower collectives=ring -o y.bin", 0},
		{"x.parquet --lower collectives -o y.vef", 1},
		{"x.parquet --lower collectives --only-ranks 0-3 -o y.parquet", 1},
		{"x.parquet --lower collectives -o x.parquet", 1},
	} {
		args := strings.Fields(c.args)
		output := args[len(args)-1]
		before := content(t, "x.parquet")
		want := clitest.Session{Formats: all(inMemory)}.Run(New, args...)
		wanted := content(t, output)
		if err := os.WriteFile("x.parquet", []byte(before), 0o666); err != nil {
			t.Fatal(err)
		}
		whole = 0
		got := clitest.Session{Formats: all(counting)}.Run(New, args...)
		if got != want || got.Status != 0 || content(t, output) != wanted || whole != c.whole {
			t.Errorf("%s: %+v, expected %+v; %d bytes, expected %d; read as a whole %d times, expected %d", c.args, got,
				want, len(content(t, output)), len(wanted), whole, c.whole)
		}
	}
}

// counted counts the reads of a whole trace.
type counted struct {
	dag.Source
	whole *int
}

func (c *counted) ReadAll() (*dag.Trace, error) {
	*c.whole++
	return dag.ReadAll(c.Source)
}

// readAll returns the trace of a source, or the error of making the source.
func readAll[S dag.Source](s S, err error) (*dag.Trace, error) {
	if err != nil {
		return nil, err
	}
	return dag.ReadAll(s)
}
