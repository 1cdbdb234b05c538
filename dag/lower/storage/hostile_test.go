package storage

import (
	"context"
	"math"
	"strings"
	"testing"

	"github.com/tracedag/tracedag/dag"
)

// TestHostile checks that accesses beyond the limits fail quickly.
func TestHostile(t *testing.T) {
	if testing.Short() {
		t.Skip("computes long on one thread")
	}
	const most = math.MaxInt64
	io := func(op dag.Op) *dag.Trace {
		op.Kind = dag.IO
		b := dag.NewBuilder(1)
		b.Rank(0).Add(op)
		return b.Trace()
	}
	many := make([]record, 60)
	for i := range many {
		many[i] = record{bytes: 1 << 39, write: true}
	}
	withSend := dag.NewBuilder(1)
	withSend.Rank(0).Add(dag.Op{Kind: dag.IO, Subkind: dag.Read, Bytes: 1})
	withSend.Rank(0).Send(1, 1, 1)
	sends := withSend.Trace()
	badComm := dag.NewBuilder(1)
	badComm.Rank(0).Add(dag.Op{Kind: dag.IO, Subkind: dag.Read, Bytes: 1})
	badComm.Rank(0).Add(dag.Op{Kind: dag.Send, Comm: 1})
	badAttrs := traceOf(record{bytes: 1})
	badAttrs.Attrs = "["
	badNodes := traceOf(record{bytes: 1})
	badNodes.Nodes = []int32{1, 2}
	lastStream := dag.Op{Subkind: dag.Read, Bytes: 1, Stream: math.MaxInt32}
	lastNode := traceOf(record{bytes: 1})
	lastNode.Nodes = []int32{math.MaxInt32}
	for _, c := range []struct {
		trace  *dag.Trace
		choice string
		want   string // "": no error
	}{
		{traceOf(record{bytes: most}), "directdrive", "rank 0, op 0: 9223372036854775807 bytes at address 0 of unit 0 touch"},
		{traceOf(record{bytes: most}), "directdrive:compat", "touch 8796093022208 slices, expected at most 1048576"},
		{traceOf(record{bytes: most, write: true}), "directdrive:slice=4EiB,write-rate=1EiB/s", "bytes of messages"},
		{traceOf(record{bytes: most}), "directdrive:slice=4EiB", "4611686018427387904 bytes take more than"},
		{traceOf(record{bytes: most}), "directdrive:slice=4EiB,read-rate=1B/s", "take more than"},
		{traceOf(record{bytes: most}), "directdrive:compat,slice=4EiB,read-rate=1EiB/s", "bytes of messages"},
		{traceOf(record{address: most - 1, bytes: 1}), "directdrive", ""},
		{traceOf(record{address: most - 1, bytes: 1}), "directdrive:compat", ""},
		{traceOf(record{address: most - 1, bytes: 1}), "directdrive:compat,block=1", ""},
		{traceOf(record{address: most, bytes: 1}), "directdrive", "rank 0, op 0: access to 1 bytes at address"},
		{traceOf(record{address: most - 1, bytes: 1}, record{unit: 1, address: most - 1, bytes: 1}),
			"directdrive:slice=1", "more than 2^63 slices"},
		{traceOf(record{unit: math.MaxInt32, bytes: 1}), "directdrive", ""},
		{traceOf(record{unit: math.MaxInt32, bytes: 1}), "directdrive:compat", "more than 262144 ranks"},
		{traceOf(many...), "directdrive:slice=512KiB,compat,block=1", "more than 3221225472 dependencies"},
		{traceOf(record{bytes: 1}), "directdrive:n_bss=262144", "more than 262144 ranks"},
		{io(dag.Op{Subkind: dag.Read, Bytes: -1}), "directdrive", "access to -1 bytes"},
		{io(dag.Op{Subkind: dag.Read, Tag: -1}), "directdrive", "at address -1"},
		{io(dag.Op{Subkind: dag.Read, Peer: -1}), "directdrive", "access to unit -1"},
		{io(dag.Op{Subkind: dag.Read, Release: -1}), "directdrive", "release time -1ps"},
		{io(dag.Op{Subkind: dag.Load}), "directdrive", `subkind "load"`},
		{io(lastStream), "directdrive", ""},
		{io(lastStream), "directdrive:order=timed", "no stream is left"},
		{sends, "directdrive:compat", "rank 0 has dependencies or ops besides storage accesses"},
		{sends, "directdrive", "rank 0: op 1: send with rank 1, expected 0..0"},
		{badComm.Trace(), "directdrive", "op 1 is of communicator 1, expected 0..0"},
		{badAttrs, "directdrive", "attributes of the trace"},
		{badNodes, "directdrive", "nodes of 2 ranks, expected 1"},
		{lastNode, "directdrive", "no node numbers above"},
	} {
		_, _, err := Lower(context.Background(), c.trace, mustParse(t, c.choice))
		switch {
		case c.want == "" && err != nil:
			t.Errorf("%s: %v", c.choice, err)
		case c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)):
			t.Errorf("%s: %v, expected ...%s...", c.choice, err, c.want)
		}
	}
}

// TestTooManyOps checks that writing stops at the maximum number of ops.
func TestTooManyOps(t *testing.T) {
	tr := traceOf(record{bytes: 1 << 30})
	units, err := findUnits(context.Background(), tr)
	if err != nil {
		t.Fatal(err)
	}
	c := mustParse(t, "directdrive")
	l, err := newLowering(tr, &c, units)
	if err != nil {
		t.Fatal(err)
	}
	l.ops = maxOps - 1000
	if err := l.run(context.Background()); err == nil || err.Error() != "rank 0, op 0: more than 1073741824 ops" {
		t.Error(err)
	}
	if l.ops > maxOps+100 {
		t.Errorf("%d ops more than there may be", l.ops-maxOps)
	}
}

// TestNothing checks that a trace without accesses is returned unchanged.
func TestNothing(t *testing.T) {
	b := dag.NewBuilder(2)
	b.Rank(0).Calc(1)
	tr := b.Trace()
	lowered, report, err := Lower(context.Background(), tr, Choice{})
	if err != nil || lowered != tr || *report != (Report{Ranks: 2}) {
		t.Errorf("%v, %+v, %v", lowered, report, err)
	}
}

// TestLongTimes checks the timer chain for the longest possible trace, and for times below a nanosecond.
func TestLongTimes(t *testing.T) {
	tr := traceOf(record{bytes: 1, time: 400}, record{bytes: 1, time: 1000}, record{bytes: 1, time: 2000},
		record{bytes: 1, time: dag.MaxTime})
	lowered, report := mustLower(t, tr, "directdrive:order=timed,mount=off,lookup=none")
	var got []dag.Time
	r := lowered.Ranks[0]
	for i := range r.Len() {
		if r.Stream.At(i) == 1 {
			got = append(got, r.Duration.At(i))
		}
	}
	whole, _ := mustLower(t, traceOf(record{bytes: 1}, record{bytes: 1, time: dag.MaxTime}), "directdrive:order=timed")
	if problems := dag.Validate(whole); len(problems) > 0 {
		t.Error(problems[0])
	}
	// Times after the first: 0, 600 ps, 1600 ps, nearly MaxTime; rounded to ns: 0, 1, 2, MaxTime.
	if report.Gaps != 4 || len(got) != 4 || got[0] != 0 || got[1] != 1000 || got[2] != 1000 ||
		got[3] != dag.MaxTime/1000*1000-2000 {
		t.Errorf("the chain of times is %v", got)
	}
}
