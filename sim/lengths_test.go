package sim

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/tracedag/tracedag/dag"
)

// TestWarnShortReceives counts warnings about receives that are shorter than their messages.
func TestWarnShortReceives(t *testing.T) {
	type end struct {
		rank, peer, bytes int
		tag               int64
		recv              bool
	}
	for _, c := range []struct {
		name string
		ends []end
		want string // part of the warning; "": none
	}{
		{"equal", []end{{0, 1, 100, 5, false}, {1, 0, 100, 5, true}}, ""},
		{"longer", []end{{0, 1, 100, 5, false}, {1, 0, 101, 5, true}}, ""},
		{"shorter", []end{{0, 1, 100, 5, false}, {1, 0, 99, 5, true}},
			"rank 1 op 0 receives 99 bytes of a message of 100 bytes from rank 0, op 0 (1 such"},
		{"another order", []end{{0, 1, 100, 5, false}, {0, 1, 50, 5, false}, {1, 0, 50, 5, true}, {1, 0, 100, 5, true}}, ""},
		{"one of two", []end{{0, 1, 100, 5, false}, {0, 1, 50, 5, false}, {1, 0, 60, 5, true}, {1, 0, 99, 5, true}},
			"rank 1 op 0 receives 60 bytes of a message of 100 bytes from rank 0, op 0 (1 such"},
		{"another tag", []end{{0, 1, 100, 5, false}, {1, 0, 99, 6, true}}, ""},
		{"another source", []end{{0, 1, 100, 5, false}, {1, 2, 99, 5, true}}, ""},
		{"wildcard", []end{{0, 1, 100, 5, false}, {1, -1, 99, 5, true}}, ""},
		{"wildcard beside it", []end{{0, 1, 100, 5, false}, {0, 2, 100, 5, false}, {1, 0, 99, dag.AnyTag, true},
			{2, 0, 99, 5, true}}, "rank 2 op 0 receives 99 bytes of a message of 100 bytes from rank 0, op 1 (1 such"},
		{"no receive", []end{{0, 1, 100, 5, false}, {0, 1, 100, 5, false}, {1, 0, 99, 5, true}}, ""},
		{"two", []end{{0, 1, 100, 5, false}, {0, 2, 7, 5, false}, {1, 0, 0, 5, true}, {2, 0, 6, 5, true}},
			"rank 1 op 0 receives 0 bytes of a message of 100 bytes from rank 0, op 0 (2 such"},
	} {
		b := dag.NewBuilder(3)
		for _, e := range c.ends {
			op := dag.Op{Kind: dag.Send, Peer: int32(e.peer), Bytes: int64(e.bytes), Tag: e.tag}
			if e.recv {
				op.Kind = dag.Recv
			}
			b.Rank(e.rank).Add(op)
		}
		p, err := Compile(dag.FromTrace(b.Trace()), CompileOptions{})
		if err != nil {
			t.Fatal(err)
		}
		got := ""
		p.WarnShortReceives(&Env{Warn: func(message string, args ...any) { got += fmt.Sprintf(message, args...) }})
		if c.want == "" && got != "" || !strings.HasPrefix(got, c.want) {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
}

// TestFindShortReceives compares random messages with all orders in which they can match, with groups of receivers of
// all sizes.
func TestFindShortReceives(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for range 3000 {
		ranks := 1 + r.IntN(3)
		var ends []MessageEnd
		for range r.IntN(7) {
			m := MessageEnd{From: r.Uint32N(2), To: r.Uint32N(uint32(ranks)), Tag: r.Int64N(2), Comm: r.Int32N(2),
				Size: r.Uint64N(4), Send: true}
			m.Op = uint32(len(ends))
			ends = append(ends, m)
			m.Send, m.Op = false, uint32(len(ends))
			m.Size += max(r.Uint64N(4), 1) - 1
			if r.IntN(3) == 0 {
				m.Size = r.Uint64N(4)
			}
			ends = append(ends, m)
		}
		each := func(add func(m MessageEnd)) {
			for _, m := range ends {
				add(m)
			}
		}
		want := mustTruncate(ends)
		first := findShortReceives(ranks, 1<<20, each)
		if want != (first.count > 0) {
			t.Fatalf("%v: %v, want short receives: %v", ends, first, want)
		}
		if first.count > 0 && (first.send.Size <= first.recv.Size || !first.send.Send || first.recv.Send) {
			t.Fatalf("%v: %v", ends, first)
		}
		for group := range len(ends) {
			if got := findShortReceives(ranks, group, each); got != first {
				t.Fatalf("%v: groups of %d: %v, want %v", ends, group, got, first)
			}
		}
	}
}

// mustTruncate reports whether no order in which the messages match has only receives that are long enough.
func mustTruncate(ends []MessageEnd) bool {
	i := 0
	for i < len(ends) && !ends[i].Send {
		i++
	}
	if i == len(ends) {
		return false
	}
	for k, m := range ends {
		s := ends[i]
		if m.Send || m.From != s.From || m.To != s.To || m.Tag != s.Tag || m.Comm != s.Comm || m.Size < s.Size {
			continue
		}
		var rest []MessageEnd
		for n, other := range ends {
			if n != i && n != k {
				rest = append(rest, other)
			}
		}
		if !mustTruncate(rest) {
			return false
		}
	}
	return true
}

// TestNoWarnings checks that nothing is compared without a receiver of warnings.
func TestNoWarnings(t *testing.T) {
	for _, e := range []*Env{nil, {}} {
		WarnShortReceives(e, 1, func(func(MessageEnd)) { t.Error("compared") })
		e.WarnOnce()("nothing")
	}
	var got []string
	warn := (&Env{Warn: func(message string, args ...any) { got = append(got, fmt.Sprintf(message, args...)) }}).WarnOnce()
	for range 3 {
		warn("%d%%", 5)
		warn("six")
	}
	if len(got) != 2 || got[0] != "5%" || got[1] != "six" {
		t.Errorf("%q", got)
	}
}
