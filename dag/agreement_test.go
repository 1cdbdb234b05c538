package dag

import (
	"math"
	"math/rand/v2"
	"strings"
	"testing"
)

// TestDisagreement compares one wrong op at a time with the expected message.
func TestDisagreement(t *testing.T) {
	sound := func() *Trace {
		b := NewBuilder(3)
		pair := b.AddComm(NewComm("pair", []int32{0, 1}))
		for rank := range 3 {
			r := b.Rank(rank)
			for to := range int32(3) {
				r.Add(Op{Kind: Send, Peer: to, Bytes: 1 << 62, Tag: int64(to)})
				r.Add(Op{Kind: Recv, Peer: to, Bytes: 1 << 62, Tag: int64(rank)})
			}
			r.Add(Op{Kind: Coll, Subkind: Allreduce, Bytes: 64})
			r.Add(Op{Kind: Coll, Subkind: Alltoall, Bytes: int64(rank)})
			if rank < 2 {
				r.Add(Op{Kind: Coll, Subkind: Bcast, Bytes: 9, Comm: pair})
			}
			root := Op{Kind: Coll, Subkind: Bcast, Bytes: 5}
			if rank > 0 { // the others receive it
				root.Bytes, root.RecvBytes = 0, 5
			}
			r.Add(root)
		}
		return b.Trace()
	}
	if what := Disagreement(sound()); what != "" {
		t.Fatalf("a sound trace: %s", what)
	}
	for want, change := range map[string]func(t *Trace){
		"rank 2 lacks receives for 1 of the messages": func(t *Trace) { t.Ranks[2].Kind[1] = Calc },
		"rank 1 lacks messages for 1 of its receives": func(t *Trace) { t.Ranks[0].Kind[2] = Calc },
		"rank 0 lacks receives for 1 of the messages that are sent to it; ": func(t *Trace) {
			t.Ranks[1].Peer.Set(2, 0) // rank 1 lacks a message
		},
		"the receives of rank 1 have other sources or tags": func(t *Trace) { t.Ranks[2].Tag.Set(2, 99) },
		"messages to rank 2 have 4 bytes more":              func(t *Trace) { t.Ranks[0].Bytes[4] += 4 },
		"messages to rank 2 have 4611686018427387904 bytes less": func(t *Trace) {
			t.Ranks[0].Bytes[4], t.Ranks[1].Bytes[4] = 0, 1<<62
		},
		"the receives of rank 0 have other sizes": func(t *Trace) {
			t.Ranks[1].Bytes[0]++
			t.Ranks[2].Bytes[0]--
		},
		"rank 1 has 63 bytes in its allreduce, op 6, but rank 0 has 64": func(t *Trace) { t.Ranks[1].Bytes[6]-- },
		"rank 1 has 8 bytes in its bcast, op 8, but rank 0 has 9":       func(t *Trace) { t.Ranks[1].Bytes[8]-- },
	} {
		trace := sound()
		change(trace)
		what := Disagreement(trace)
		first, _, _ := strings.Cut(want, "; ")
		if !strings.Contains(what, first) {
			t.Errorf("%q, expected %q", what, want)
		}
	}
	wild := sound()
	wild.Ranks[0].Peer.Set(1, AnySource)
	wild.Ranks[0].Tag.Set(3, AnyTag)
	if what := Disagreement(wild); what != "" {
		t.Errorf("wildcards: %s", what)
	}
	wild.Ranks[0].Kind[1] = Calc
	if what := Disagreement(wild); !strings.Contains(what, "rank 0 lacks receives for 1 of") {
		t.Errorf("wildcards and a receive less: %q", what)
	}
}

// TestDisagreementValidates compares random traces with the matching of Validate: a trace with unmatched messages and
// no wildcards disagrees.
func TestDisagreementValidates(t *testing.T) {
	random := rand.New(rand.NewPCG(20, 4))
	for range 2000 {
		b := NewBuilder(3)
		for range random.IntN(6) {
			from, to, tag := random.IntN(3), random.IntN(3), random.Int64N(2)
			b.Rank(from).Send(int32(to), 8, tag)
			if random.IntN(8) == 0 {
				tag = 1 - tag
			}
			if random.IntN(8) > 0 {
				b.Rank(to).Recv(int32(from), 8, tag)
			}
		}
		trace := b.Trace()
		if what, problems := Disagreement(trace), Validate(trace); (what != "") != (len(problems) > 0) {
			t.Errorf("%q, but Validate finds %v", what, problems)
		}
	}
}

func TestNegated(t *testing.T) {
	for _, v := range []int64{0, 1, -1, math.MaxInt64, math.MinInt64, 1 << 32} {
		s := negated(v)
		if s.add(v); s != (Total{}) {
			t.Errorf("%d plus its negation is %v", v, s.Big())
		}
	}
}
