package store

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/tracedag/tracedag/dag"
	"github.com/tracedag/tracedag/formats/format"
)

// divided is a trace as a source that delivers ranks of more than some ops in parts, and spoils each part after its
// delivery.
type divided struct {
	*delivered
	long int
	part func() int // number of ops of the next part
}

func newDivided(t *dag.Trace, long int, part func() int) *divided {
	d := &divided{newDelivered(t, func() int { return 1 }), long, part}
	for i, r := range t.Ranks {
		b := &d.batches[i]
		b.Ops, b.Deps, b.StartDeps = int64(r.Len()), int64(len(r.Deps.Off)), int64(len(r.StartDeps.Off))
	}
	return d
}

func (d *divided) InParts(b dag.Batch) bool { return b.Ops > int64(d.long) }

func (d *divided) ReadParts(b dag.Batch, take func(dag.Run) error) error {
	r := d.trace.Ranks[b.First]
	if d.fails == b.First {
		return errDelivery
	}
	for first := 0; first < r.Len(); {
		last := min(first+d.part(), r.Len())
		part := cut(r, first, last)
		if err := take(dag.Run{Rank: b.First, First: first, Ops: part}); err != nil {
			return err
		}
		spoil(part)
		first = last
	}
	return nil
}

// cut returns a copy of some ops of a rank without orders of dependents.
func cut(r *dag.Rank, first, last int) *dag.Rank {
	part := new(dag.Rank)
	for i := first; i < last; i++ {
		op := r.Op(i)
		part.Kind = append(part.Kind, op.Kind)
		part.Peer.Set(i-first, op.Peer)
		part.Tag.Set(i-first, op.Tag)
		part.Duration.Set(i-first, op.Duration)
		part.Stream.Set(i-first, op.Stream)
		if op.Name != "" {
			part.Name.Append(i-first, op.Name)
		}
		for _, lists := range [...]struct{ from, to *dag.Edges }{{&r.Deps, &part.Deps}, {&r.StartDeps, &part.StartDeps}} {
			lists.to.Off = append(lists.to.Off, lists.from.Of(i)...)
			lists.to.End = append(lists.to.End, uint32(len(lists.to.Off)))
		}
	}
	return part.Keep()
}

// TestWriteParts checks that ranks in parts give the bytes of writing at once: ranks shorter than a row group, and
// longer ones.
func TestWriteParts(t *testing.T) {
	b := dag.NewBuilder(30)
	for rank, n := range []int{1000, 3*minGroupRows/2 + 77, 0, 500, minGroupRows / 2, 3*minGroupRows + 1} {
		for i := range n {
			op := dag.Op{Kind: dag.Send, Peer: int32(i & 3), Tag: int64(i / 5), Stream: int32(i / 400_000)}
			if i%1000 == 7 {
				op.Name = "named"
			}
			if op.Peer == 0 {
				op = dag.Op{Duration: dag.Time(i) * dag.Nanosecond}
			}
			switch {
			case i > 0 && i%3 == 0:
				b.Rank(rank).Add(op, i-1)
			case i > 100_000:
				b.Rank(rank).Add(op, i-1, i-100_000)
			default:
				b.Rank(rank).Add(op)
			}
		}
	}
	trace := b.Trace()
	want := encode(t, trace)
	rng := rand.New(rand.NewPCG(1, 1))
	for k, part := range []func() int{
		func() int { return 1 << 15 }, func() int { return 1 + rng.IntN(100_000) }, func() int { return 3 << 20 },
	} {
		if testing.Short() && k > 0 {
			break
		}
		var got bytes.Buffer
		s := newDivided(trace, 400, part)
		h, err := s.Header()
		if err == nil {
			err = Format.WriteSource(&got, dag.WithHeader(s, h), format.WriteOptions{Frugal: true})
		}
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(got.Bytes(), want) {
			t.Error("other bytes")
		}
		if s.reads.Load() != 25 { // the empty ranks
			t.Errorf("%d batches were read as a whole", s.reads.Load())
		}
	}
}

// TestWritePartsErrors checks the errors about parts, and that reading ends with them.
func TestWritePartsErrors(t *testing.T) {
	newSource := func() *divided {
		b := dag.NewBuilder(2)
		for i := range 1000 {
			b.Rank(0).Add(dag.Op{Duration: 1}, max(i-1, 0))
			b.Rank(1).Add(dag.Op{Duration: 1})
		}
		trace := b.Trace()
		trace.Ranks[0].Deps = dag.Edges{}
		return newDivided(trace, 10, func() int { return 100 })
	}
	broken, outside, negative := newSource(), newSource(), newSource()
	broken.fails = 1
	outside.trace.Change(1).Deps = dag.Edges{End: []uint32{0, 1}, Off: []int32{5}}
	negative.trace.Change(0).Duration[345] = -1
	for _, c := range []struct {
		s    *divided
		want string
	}{
		{broken, errDelivery.Error()},
		{outside, "rank 1: deps: op 1 depends on op -4, expected 0..999"},
		{negative, "rank 0: op 345: duration_ps: expected 0 or more, found -1"},
	} {
		var file bytes.Buffer
		err := Format.WriteSource(&file, c.s, format.WriteOptions{Frugal: true})
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("error %v, expected %q", err, c.want)
		}
	}
}

// wrapping is a source that wraps errors about parts.
type wrapping struct{ *divided }

func (w wrapping) ReadParts(b dag.Batch, take func(dag.Run) error) error {
	if err := w.divided.ReadParts(b, take); err != nil {
		return fmt.Errorf("wrapped: %w", err)
	}
	return nil
}

// TestWritePartsStops checks that reading ends after an error about a rank before, whatever the source does with the
// error by which it ends.
func TestWritePartsStops(t *testing.T) {
	b := dag.NewBuilder(2)
	b.Rank(0).Add(dag.Op{Duration: 1})
	for range 5000 {
		b.Rank(1).Add(dag.Op{Duration: 1})
	}
	s := wrapping{newDivided(b.Trace(), 400, func() int { return 100 })}
	s.fails = 0
	var file bytes.Buffer
	if err := Format.WriteSource(&file, s, format.WriteOptions{Frugal: true}); !errors.Is(err, errDelivery) {
		t.Errorf("error %v, expected %v", err, errDelivery)
	}
}
