package lower

import (
	"context"
	"fmt"
	"slices"
	"testing"

	"github.com/tracedag/tracedag/dag"
	"github.com/tracedag/tracedag/dag/lower/collective"
)

// lowerNeeded lowers a trace by rules for a target, and returns the result and the lines of the report.
func lowerNeeded(t *testing.T, trace *dag.Trace, lacks Lacks, rules ...string) (*dag.Trace, []string) {
	t.Helper()
	p, err := Parse(append(rules, "needed"))
	if err != nil {
		t.Fatal(err)
	}
	var notes []string
	note := func(format string, args ...any) { notes = append(notes, fmt.Sprintf(format, args...)) }
	p.Lacks = func(dag.Source) (Lacks, error) { return lacks, nil }
	p.Note, p.Warn = note, func(format string, args ...any) { note("warning: "+format, args...) }
	s, err := p.Lower(dag.FromTrace(trace))
	if err != nil {
		t.Fatal(err)
	}
	lowered, err := dag.ReadAll(s)
	if err != nil {
		t.Fatal(err)
	}
	if problems := dag.Validate(lowered); len(problems) > 0 {
		t.Error(problems)
	}
	return lowered, notes
}

// opsOf counts the ops of a trace by kind, collectives by subkind.
func opsOf(t *dag.Trace) map[string]int {
	counts := make(map[string]int)
	for i := range t.Ranks {
		r := t.Ranks[i]
		for op, kind := range r.Kind {
			name := kind.String()
			if kind == dag.Coll {
				name = r.Subkind.At(op).String()
			}
			counts[name]++
		}
	}
	return counts
}

// allKinds returns a trace of 4 ranks with every collective, a memory and a storage access.
func allKinds() *dag.Trace {
	const n = 4
	b := dag.NewBuilder(n)
	for rank := range n {
		r := b.Rank(rank)
		last := r.Calc(dag.Microsecond)
		for kind := dag.Subkind(1); int(kind) < dag.NumSubkinds; kind++ {
			if kind.Of(dag.Coll) {
				last = r.Add(dag.Op{Kind: dag.Coll, Subkind: kind, Bytes: 64, RecvBytes: sizeOf(kind)}, last)
			}
		}
		last = r.Add(dag.Op{Kind: dag.Mem, Subkind: dag.Load, Bytes: 4096, Duration: 3 * dag.Microsecond}, last)
		r.Add(dag.Op{Kind: dag.IO, Subkind: dag.Read, Bytes: 4096}, last)
	}
	return b.Trace()
}

// sizeOf returns the received size on which the members of a valid collective of 64 bytes agree.
func sizeOf(kind dag.Subkind) int64 {
	if kind == dag.ReduceScatter {
		return 16
	}
	return 0
}

// TestNeeded checks, for every kind of collective alone, that exactly what a target lacks is lowered and reported.
func TestNeeded(t *testing.T) {
	trace := allKinds()
	before := opsOf(trace)
	for lacking := dag.Subkind(1); int(lacking) < dag.NumSubkinds; lacking++ {
		if !lacking.Of(dag.Coll) {
			continue
		}
		only := func(kind dag.Subkind) bool { return kind == lacking }
		lowered, notes := lowerNeeded(t, trace, Lacks{Collectives: collective.Selection{Kinds: only}})
		after := opsOf(lowered)
		for name, n := range before {
			want := n
			if name == lacking.String() {
				want = 0
			}
			if name != "calc" && after[name] != want {
				t.Errorf("without %v: %d ops %s, expected %d", lacking, after[name], name, want)
			}
		}
		want := []string{fmt.Sprintf("--lower needed: 4 %v ops lowered to messages", lacking)}
		if !slices.Equal(notes, want) {
			t.Errorf("%v: report %q, expected %q", lacking, notes, want)
		}
		if after["send"] == 0 || after["send"] != after["recv"] {
			t.Errorf("%v: %d sends, %d receives", lacking, after["send"], after["recv"])
		}
	}
	if same, notes := lowerNeeded(t, trace, Lacks{}); !slices.Equal(same.Ranks[0].Kind, trace.Ranks[0].Kind) ||
		notes != nil {
		t.Errorf("a target that lacks nothing: %v, %q", opsOf(same), notes)
	}
	lowered, notes := lowerNeeded(t, trace, Everything())
	for name := range opsOf(lowered) {
		if name != "calc" && name != "send" && name != "recv" {
			t.Errorf("%s remains", name)
		}
	}
	want := []string{"--lower needed: 4 memory accesses lowered to calcs",
		"--lower needed: 4 storage accesses lowered to messages of directdrive"}
	if !slices.Equal(notes[:2], want) {
		t.Errorf("report %q, expected first %q", notes, want)
	}
}

// TestNeededMemory checks the durations of memory accesses as calcs.
func TestNeededMemory(t *testing.T) {
	b := dag.NewBuilder(1)
	b.Rank(0).Add(dag.Op{Kind: dag.Mem, Subkind: dag.Load, Bytes: 1000, Duration: 7})
	b.Rank(0).Add(dag.Op{Kind: dag.Mem, Subkind: dag.Store, Bytes: 1000}, 0)
	trace := b.Trace()
	lowered, notes := lowerNeeded(t, trace, Lacks{Memory: true}, "roofline:peak-flops=1GFLOPS,mem-bw=1GB/s")
	if r := lowered.Ranks[0]; r.Kind[1] != dag.Calc || r.Duration.At(0) != 7 || r.Duration.At(1) != dag.Microsecond ||
		len(notes) != 1 {
		t.Errorf("%+v, report %q", r, notes)
	}
	if _, notes = lowerNeeded(t, trace, Lacks{Memory: true}); len(notes) != 2 {
		t.Errorf("an access without a time: report %q, expected a warning", notes)
	}
	if trace.Ranks[0].Kind[0] != dag.Mem {
		t.Error("the input changed")
	}
}

// TestNeededUneven checks that a target without blocks of different sizes keeps the collectives with equal ones.
func TestNeededUneven(t *testing.T) {
	blocks := [][]int64{{4, 3, 3}, {5, 5, 0}, {0, 0, 0}, {3, 3, 4}} // of 10 bytes: even, uneven, not stated, uneven
	b := dag.NewBuilder(3)
	for rank := range 3 {
		for k := range blocks {
			b.Rank(rank).Add(dag.Op{Kind: dag.Coll, Subkind: dag.ReduceScatter, Bytes: 10, RecvBytes: blocks[k][rank],
				Tag: int64(k)})
		}
	}
	every := func(dag.Subkind) bool { return true }
	s, counts, err := collective.LowerNeeded(context.Background(), dag.FromTrace(b.Trace()), collective.Choice{},
		collective.Selection{Uneven: every})
	if err != nil {
		t.Fatal(err)
	}
	lowered, err := dag.ReadAll(s)
	if err != nil {
		t.Fatal(err)
	}
	for rank := range 3 {
		var kept []int64
		r := lowered.Ranks[rank]
		for i, kind := range r.Kind {
			if kind == dag.Coll {
				kept = append(kept, r.Tag.At(i))
			}
		}
		if !slices.Equal(kept, []int64{0, 2}) {
			t.Errorf("rank %d keeps %v, expected 0 and 2", rank, kept)
		}
	}
	if counts.Lowered[dag.ReduceScatter] != 6 || counts.Kept != 6 || counts.Total() != 6 {
		t.Errorf("%+v", counts)
	}
}

// TestNeededRules checks the rules beside needed.
func TestNeededRules(t *testing.T) {
	if _, err := Parse([]string{"needed", "collectives"}); err == nil {
		t.Error("needed and collectives: expected an error")
	}
	p, err := Parse([]string{"needed", "allreduce=ring"})
	if err != nil || !p.Needed || p.Collectives || p.DefaultChoice || p.None() {
		t.Errorf("%+v, error %v", p, err)
	}
}
