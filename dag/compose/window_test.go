package compose

import (
	"context"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"

	"github.com/tracedag/tracedag/dag"
)

func names(r *dag.Rank) (names []string) {
	for i := range r.Len() {
		names = append(names, r.Name.At(i))
	}
	return names
}

func TestWindow(t *testing.T) {
	measured := dag.NewBuilder(2)
	timed := func(name string, kind dag.Kind, start, end dag.Time) dag.Op {
		op := dag.Op{Name: name, Kind: kind, Timed: true, MeasuredStart: start, MeasuredEnd: end, Peer: 1, Tag: 3}
		if kind == dag.Recv {
			op.Peer = 0
		}
		if kind == dag.Coll {
			op.Subkind, op.Peer = dag.Barrier, 0
		}
		return op
	}
	r := measured.Rank(0)
	r.Add(timed("before", dag.Calc, 5, 20))
	r.Add(timed("first", dag.Calc, 10, 12), 0)
	r.Add(dag.Op{Name: "unmeasured"}, 1)
	r.Add(timed("by its end", dag.Calc, dag.Unmeasured, 13), 2)
	r.Add(timed("sent inside", dag.Send, 14, 15), 3)
	r.Add(timed("half outside", dag.Send, 15, 16), 4)
	r.Add(timed("whole", dag.Coll, 17, 18), 5)
	r.Add(timed("last", dag.Calc, 19, 50), 6)
	r.Add(timed("cut collective", dag.Coll, 19, 50), 7)
	r.Add(timed("after", dag.Calc, 20, 21), 8)
	r.Add(dag.Op{Name: "unmeasured after"}, 9)
	r = measured.Rank(1)
	r.Add(dag.Op{Name: "first of all"})
	r.Add(dag.Op{Name: "its receive", Kind: dag.Recv, Tag: 3})
	r.Add(timed("too late", dag.Recv, 25, 26))
	r.Add(dag.Op{Name: "whole", Kind: dag.Coll, Subkind: dag.Barrier})
	r.Add(timed("cut collective", dag.Coll, 20, 50))

	released := dag.NewBuilder(2)
	for i := range dag.Time(5) {
		op := dag.Op{Kind: dag.Send, Peer: 1, Tag: int64(i), Release: i * 10, Name: "s" + string(rune('0'+i))}
		released.Rank(0).Add(op)
		op.Kind, op.Peer, op.Release = dag.Recv, 0, 0
		released.Rank(1).Add(op)
	}
	released.Rank(1).Add(dag.Op{Name: "late", Duration: 9}, 4)
	released.Rank(1).Add(dag.Op{Name: "mid"}, 2)
	ofMeasured, ofReleased := measured.Trace(), released.Trace()
	for _, c := range []struct {
		name     string
		trace    *dag.Trace
		from, to dag.Time
		want     [2][]string
		release  [2]dag.Column[dag.Time]
		removed  Removed
	}{
		{"measured", ofMeasured, 10, 20,
			[2][]string{{"first", "unmeasured", "by its end", "sent inside", "whole", "last"}, {"its receive", "whole"}},
			[2]dag.Column[dag.Time]{}, Removed{Ops: 6, Messages: 1, Collectives: 1}},
		{"released", ofReleased, 10, 30,
			[2][]string{{"s1", "s2"}, {"s1", "s2", "mid"}}, [2]dag.Column[dag.Time]{{0, 10}}, Removed{Ops: 7}},
		{"all", ofReleased, 0, dag.MaxTime,
			[2][]string{{"s0", "s1", "s2", "s3", "s4"}, {"s0", "s1", "s2", "s3", "s4", "late", "mid"}},
			[2]dag.Column[dag.Time]{{0, 10, 20, 30, 40}}, Removed{}},
	} {
		got, removed, err := Window(context.Background(), c.trace, c.from, c.to)
		if err != nil {
			t.Fatal(err)
		}
		if problems := dag.Validate(got); len(problems) > 0 {
			t.Errorf("%s: problems: %v", c.name, problems)
		}
		for rank := range got.Ranks {
			r := got.Ranks[rank]
			if !reflect.DeepEqual(names(r), c.want[rank]) {
				t.Errorf("%s: rank %d has %q, expected %q", c.name, rank, names(r), c.want[rank])
			}
			if len(r.Release)+len(c.release[rank]) > 0 && !reflect.DeepEqual(r.Release, c.release[rank]) {
				t.Errorf("%s: rank %d is released at %v, expected %v", c.name, rank, r.Release, c.release[rank])
			}
		}
		if removed != c.removed {
			t.Errorf("%s: removed %+v, expected %+v", c.name, removed, c.removed)
		}
	}
	got, _, _ := Window(context.Background(), ofMeasured, 10, 20)
	if start, end := got.Ranks[0].Measured(0); start != 0 || end != 2 {
		t.Errorf("the first op was measured from %v to %v", start, end)
	}
	if start, end := got.Ranks[0].Measured(2); start != dag.Unmeasured || end != 3 {
		t.Errorf("the op of which only the end is known was measured from %v to %v", start, end)
	}
	if deps := got.Ranks[0].Deps.Of(4); !reflect.DeepEqual(deps, []int32{1}) {
		t.Errorf("what waited for the half message has dependencies %v", deps)
	}
}

// TestWindowOrder checks that the first of equal messages is for the first receive, and the others in order.
func TestWindowOrder(t *testing.T) {
	b := dag.NewBuilder(2)
	for i := range int64(4) {
		b.Rank(0).Add(dag.Op{Kind: dag.Send, Peer: 1, Bytes: i, Tag: 5, Release: 1 + dag.Time(i)})
		b.Rank(1).Add(dag.Op{Kind: dag.Recv, Bytes: i, Tag: 5})
	}
	b.Rank(0).Add(dag.Op{Kind: dag.Send, Peer: 1, Bytes: 9, Tag: 5, Release: 9}) // which nobody receives
	cut, _, err := Window(context.Background(), b.Trace(), 2, 4)
	if err != nil {
		t.Fatal(err)
	}
	for rank := range cut.Ranks {
		if got, want := cut.Ranks[rank].Bytes, (dag.Column[int64]{1, 2}); !reflect.DeepEqual(got, want) {
			t.Errorf("rank %d has messages of %v, expected %v", rank, got, want)
		}
	}
}

// TestWindowTiles checks that every op of random traces is in exactly one of windows that adjoin, unless it is a
// message or collective that one of them cuts, and that what is left can run.
func TestWindowTiles(t *testing.T) {
	cut := int64(0)
	for seed := range uint64(300) {
		random := rand.New(rand.NewPCG(seed, 0))
		trace := randomJob(random, false)
		for rank := range trace.Ranks {
			r := trace.Ranks[rank]
			for i := range r.Len() {
				at := dag.Time(random.IntN(100))
				r.MeasuredStart, r.MeasuredEnd = append(r.MeasuredStart, at), append(r.MeasuredEnd, at+dag.Time(i))
			}
		}
		ops := int64(0)
		for from := dag.Time(0); from < 100; from += 25 {
			part, removed, err := Window(context.Background(), trace, from, from+25)
			if err != nil {
				t.Fatal(err)
			}
			if problems := dag.Validate(part); len(problems) > 0 {
				t.Fatalf("seed %d: problems: %v", seed, problems)
			}
			junctions := int64(0)
			for rank := range part.Ranks {
				for i := range part.Ranks[rank].Len() {
					if part.Ranks[rank].Subkind.At(i) == dag.Marker {
						junctions++
					}
				}
			}
			ops += part.Ops() - junctions + removed.Messages + removed.Collectives
			cut += removed.Messages + removed.Collectives
		}
		if ops != trace.Ops() {
			t.Fatalf("seed %d: %d ops in windows, expected %d", seed, ops, trace.Ops())
		}
	}
	if cut < 1000 {
		t.Errorf("%d ops were cut, too few to tell", cut)
	}
}

func TestWindowErrors(t *testing.T) {
	with := func(op dag.Op) *dag.Trace {
		b := dag.NewBuilder(2)
		b.Rank(1).Add(dag.Op{Release: 1})
		b.Rank(1).Add(op)
		return b.Trace()
	}
	for _, c := range []struct {
		trace    *dag.Trace
		from, to dag.Time
		want     string
	}{
		{first(), 5, 5, "window from 5ps to 5ps, expected an end after a start"},
		{first(), -1, 5, "window from -1ps to 5ps, expected an end after a start"},
		{dag.NewBuilder(1).Trace(), 0, 5, "no op has a measured time or a release time"},
		{with(dag.Op{Kind: dag.Recv, Peer: -1}), 0, 5, "rank 1: op 1: receive from any source or any tag"},
		{with(dag.Op{Kind: dag.Recv, Tag: -1}), 0, 5, "rank 1: op 1: receive from any source or any tag"},
		{with(dag.Op{Kind: dag.Send, Peer: 2}), 0, 5, "rank 1: op 1: send with rank 2, expected 0..1"},
	} {
		if got, _, err := Window(context.Background(), c.trace, c.from, c.to); err == nil || got != nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("error %v, expected %q", err, c.want)
		}
	}
}
