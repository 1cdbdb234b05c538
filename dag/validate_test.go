package dag

import (
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

// build returns the trace of n ranks that fill makes.
func build(n int, fill func(b *Builder)) *Trace {
	b := NewBuilder(n)
	fill(b)
	return b.Trace()
}

// calcs returns a trace of one rank of n calcs, changed by change.
func calcs(n int, change func(t *Trace, r *Rank)) *Trace {
	t := build(1, func(b *Builder) {
		for range n {
			b.Rank(0).Calc(1)
		}
	})
	change(t, t.Ranks[0])
	return t
}

// exchanges returns a trace of two ranks, the first of which sends to the second what sends lists, as tags on
// communicators 0, 1, ..., and the second of which receives so.
func exchanges(sends, receives func(r *RankBuilder)) *Trace {
	return build(2, func(b *Builder) {
		b.AddComm(World(2))
		sends(b.Rank(0))
		receives(b.Rank(1))
	})
}

// collectives returns a trace of ranks with a list of collectives each, on the communicators 0 (all), 1 (ranks 0 and 2)
// and 2 (only rank 1).
func collectives(ranks ...[]Op) *Trace {
	return build(len(ranks), func(b *Builder) {
		b.AddComm(NewComm("even", []int32{2, 0}))
		b.AddComm(NewComm("one", []int32{1}))
		for i, ops := range ranks {
			for _, op := range ops {
				op.Kind = Coll
				b.Rank(i).Add(op)
			}
		}
	})
}

func TestValidate(t *testing.T) {
	barrier, bcast0, bcast1 := Op{Subkind: Barrier}, Op{Subkind: Bcast}, Op{Subkind: Bcast, Peer: 1}
	even, unknown := Op{Subkind: Allreduce, Comm: 1}, Op{Subkind: Bcast, Peer: UnknownRoot}
	ring := func(n int) []int32 {
		off := []int32{int32(1 - n)}
		return append(off, slices.Repeat([]int32{1}, n-1)...)
	}
	ends := func(n int) []uint32 {
		var end []uint32
		for i := range n {
			end = append(end, uint32(i+1))
		}
		return end
	}
	for _, c := range []struct {
		name  string
		trace *Trace
		want  []string // CLASS PROBLEM
	}{
		{"no ranks", build(0, func(*Builder) {}), nil},
		{"zero value", &Trace{}, []string{
			"communicator trace: no communicators, expected communicator 0 of all ranks"}},
		{"empty ranks", build(3, func(*Builder) {}), nil},
		{"everything right", build(3, func(b *Builder) {
			pair := b.AddComm(NewComm("pair", []int32{2, 0}))
			b.Meta().Nodes, b.Meta().Jobs = []int32{0, 0, 1}, []string{"a", "b"}
			for i := range 3 {
				r := b.Rank(i)
				r.Send(int32(i+1)%3, 8, 5, 3)
				r.Recv(int32(i+2)%3, 9, 5, 2, 0)
				r.Calc(7, 0)
				r.Calc(7)
				r.RequiresStart(2, 3)
				r.Add(Op{Kind: Coll, Subkind: Barrier})
			}
			for _, i := range []int{0, 2} {
				b.Rank(i).Add(Op{Kind: Coll, Subkind: Bcast, Peer: 2, Comm: pair, Bytes: 3, Job: 1})
			}
			b.Rank(1).Add(Op{Kind: IO, Subkind: Read, Bytes: 4096, Release: 5, Stream: 300, NIC: 2})
			b.Rank(1).Add(Op{Kind: Mem, Subkind: Store, Bytes: 64})
			b.Rank(1).Send(1, 0, 0)
			b.Rank(1).Recv(1, 0, 0)
		}), nil},

		{"nodes", calcs(1, func(t *Trace, _ *Rank) { t.Nodes = []int32{0, 1} }), []string{
			"trace trace: nodes of 2 ranks, expected 1"}},
		{"negative node", calcs(1, func(t *Trace, _ *Rank) { t.Nodes = []int32{-1} }), []string{
			"trace rank 0: runs on node -1, expected 0 or more"}},
		{"columns too long", calcs(1, func(_ *Trace, r *Rank) {
			r.Bytes = Column[int64]{1, -1}
			r.Stream.Set(4, 1)
			r.MeasuredEnd = []Time{1, 2, 3}
			r.Name.Append(1, "x")
			r.Host.Set(1, 1)
			r.Dims.Set(2, 1)
			r.Priority.Set(3, 1)
		}), []string{
			"trace rank 0: 2 bytes for 1 ops",
			"trace rank 0: 5 streams for 1 ops",
			"trace rank 0: 2 hosts for 1 ops",
			"trace rank 0: 3 dimensions for 1 ops",
			"trace rank 0: 4 priorities for 1 ops",
			"trace rank 0: 2 names for 1 ops",
			"trace rank 0: 3 measured times for 1 ops"}},
		{"kinds", calcs(4, func(_ *Trace, r *Rank) {
			r.Kind[0] = NumKinds
			r.Kind[1], r.Kind[2] = Mem, IO
			r.Subkind = Column[Subkind]{0, Read, 0, NumSubkinds}
		}), []string{
			"kind rank 0, op 0: kind(6), expected 0..5",
			`kind rank 0, op 1: mem with subkind "read", expected load or store`,
			`kind rank 0, op 2: io with subkind "", expected read or write`,
			`kind rank 0, op 3: calc with subkind "subkind(21)", expected "" or "marker"`}},
		{"markers", build(1, func(b *Builder) {
			b.Rank(0).Add(Op{Kind: Calc, Subkind: Marker})
			b.Rank(0).Add(Op{Kind: Mem, Subkind: Marker})
			b.Rank(0).Add(Op{Kind: Recv, Subkind: Marker, Peer: AnySource, Tag: AnyTag})
			b.Rank(0).Send(0, 0, 0)
		}), []string{
			`kind rank 0, op 1: mem with subkind "marker", expected load or store`,
			`kind rank 0, op 2: recv with subkind "marker", expected ""`}},
		{"negative fields", calcs(3, func(_ *Trace, r *Rank) {
			r.Bytes, r.RecvBytes = Column[int64]{-1}, Column[int64]{0, -2}
			r.Duration, r.Flops, r.Release = Column[Time]{-3}, Column[int64]{0, 0, -4}, Column[Time]{-5}
			r.Stream.Set(1, -6)
			r.NIC.Set(2, -7)
			r.Host.Set(1, -8)
			r.Dims.Set(2, -9)
			r.Priority.Set(2, -10)
			r.Tag = Column[int64]{math.MinInt64}
		}), []string{
			"field rank 0, op 0: bytes is -1, expected 0 or more",
			"field rank 0, op 0: duration is -3, expected 0 or more",
			"field rank 0, op 0: release is -5, expected 0 or more",
			"field rank 0, op 1: recv_bytes is -2, expected 0 or more",
			"field rank 0, op 1: stream is -6, expected 0 or more",
			"field rank 0, op 1: host is -8, expected 0 or more",
			"field rank 0, op 2: flops is -4, expected 0 or more",
			"field rank 0, op 2: nic is -7, expected 0 or more",
			"field rank 0, op 2: dims is -9, expected 0 or more"}},
		{"jobs", calcs(3, func(t *Trace, r *Rank) {
			t.Jobs = []string{"a", "b"}
			r.Job.Set(1, 2)
			r.Job.Set(2, -1)
		}), []string{
			"field rank 0, op 1: job 2, expected 0..1",
			"field rank 0, op 2: job -1, expected 0..1"}},
		{"job without jobs", calcs(1, func(_ *Trace, r *Rank) { r.Job.Set(0, 1) }), []string{
			"field rank 0, op 0: job 1, expected 0..0"}},
		{"peers", build(2, func(b *Builder) {
			b.Rank(0).Send(2, 1, 1)
			b.Rank(0).Send(AnySource, 1, 1)
			b.Rank(1).Recv(2, 1, 1)
			b.Rank(1).Recv(-2, 1, 1)
			for i := range 2 {
				b.Rank(i).Add(Op{Kind: Coll, Subkind: Reduce, Peer: -2})
			}
		}), []string{
			"peer rank 0, op 0: send to rank 2, expected 0..1",
			"peer rank 0, op 1: send to rank -1, expected 0..1",
			"peer rank 0, op 2: reduce with root -2, expected 0..1",
			"peer rank 1, op 0: receive from rank 2, expected 0..1 or -1 (any source)",
			"peer rank 1, op 1: receive from rank -2, expected 0..1 or -1 (any source)",
			"peer rank 1, op 2: reduce with root -2, expected 0..1"}},

		{"world", build(2, func(b *Builder) { b.trace.Comms[0] = NewComm("", []int32{1, 0}) }), []string{
			"communicator trace: communicator 0 is not all ranks in ascending order"}},
		{"malformed communicators", build(2, func(b *Builder) {
			b.trace.Comms[0] = World(3)
			b.AddComm(NewComm("", []int32{1, 1}))
			b.Rank(0).Add(Op{Kind: Coll, Subkind: Barrier, Comm: 1})
			b.Rank(1).Add(Op{Kind: Coll, Subkind: Barrier, Comm: 2})
			b.Rank(1).Add(Op{Kind: Calc, Comm: -1})
		}), []string{
			"communicator trace: communicator 0: range of 3 ranks from 0 in steps of 1, expected ranks in 0..1",
			"communicator trace: communicator 1: rank 1 is listed twice",
			"communicator rank 1, op 0: communicator 2, expected 0..1",
			"communicator rank 1, op 1: communicator -1, expected 0..1"}},

		{"references", calcs(2, func(_ *Trace, r *Rank) {
			r.Deps = Edges{End: []uint32{2, 3}, Off: []int32{-2, 1, 1}}
			r.StartDeps = Edges{End: []uint32{0, 1}, Off: []int32{math.MaxInt32}}
			r.Order = Edges{End: []uint32{9}}
		}), []string{
			"reference rank 0, op 0: deps on op -1, expected 0..1",
			"reference rank 0, op 0: deps on op 2, expected 0..1",
			"reference rank 0, op 1: start_deps on op -2147483646, expected 0..1"}},
		{"malformed lists", calcs(3, func(_ *Trace, r *Rank) {
			r.Deps = Edges{End: []uint32{1, 0, 1}, Off: []int32{0}}
			r.StartDeps = Edges{End: []uint32{0, 0, 0, 0}}
		}), []string{
			"reference rank 0: start_deps: 4 lists for 3 ops",
			"cycle rank 0, op 0: waits for itself",
			"reference rank 0, op 1: deps: the list of op 1 ends at offset 0, expected 1..1"}},
		{"wrong orders", calcs(3, func(_ *Trace, r *Rank) {
			r.Deps = Edges{End: []uint32{0, 1, 2}, Off: []int32{1, 2}}
			r.Order = Edges{End: []uint32{2}, Off: []int32{2, 2}}
			r.StartOrder = Edges{End: []uint32{0, 7}, Off: []int32{2, 2}}
		}), []string{
			"reference rank 0, op 0: deps: the order of op 0's dependents does not list op 1 once for each time it " +
				"depends on it",
			"reference rank 0, op 1: start_deps: order of dependents: the list of op 1 ends at offset 7, expected 0..2"}},

		{"cycles", build(2, func(b *Builder) {
			r := b.Rank(1)
			for range 9 {
				r.Calc(1)
			}
			r.Requires(0, 8) // behind cycles, on none
			r.Requires(1, 1) // itself
			r.Requires(5, 3) // three with a longer way round
			r.RequiresStart(3, 4)
			r.Requires(4, 5)
			r.Requires(4, 2)
			r.Requires(2, 5)
			r.RequiresStart(8, 7) // two by start
			r.RequiresStart(7, 8)
			r.Requires(7, 3)
		}), []string{
			"cycle rank 1, op 1: waits for itself",
			"cycle rank 1, op 2: cycle of 4 ops: 2 waits for 5 waits for 3 waits for 4 waits for 2",
			"cycle rank 1, op 7: cycle of 2 ops: 7 waits for 8 waits for 7"}},
		{"long cycle", calcs(20, func(_ *Trace, r *Rank) { r.Deps = Edges{End: ends(20), Off: ring(20)} }), []string{
			"cycle rank 0, op 0: cycle of 20 ops: 0 waits for 19 waits for 18 waits for 17 waits for 16 waits for 15 " +
				"waits for 14 waits for 13 waits for 12 waits for 11 waits for 10 waits for 9 waits for 8 waits for 7 " +
				"waits for 6 waits for 5 waits for ... 1 waits for 0"}},
		{"short way in a long cycle", calcs(5, func(_ *Trace, r *Rank) {
			r.Deps = Edges{End: ends(5), Off: ring(5)}
			r.StartDeps = Edges{End: []uint32{1}, Off: []int32{-1}}
		}), []string{
			"cycle rank 0, op 0: cycle of 2 ops: 0 waits for 1 waits for 0 (5 ops wait for each other in total)"}},

		{"unmatched", exchanges(
			func(r *RankBuilder) {
				r.Send(1, 8, 5)
				r.Send(1, 8, 5)
				r.Send(1, 8, 6)
				r.Add(Op{Kind: Send, Peer: 1, Tag: 7, Comm: 1})
			},
			func(r *RankBuilder) {
				r.Recv(0, 9, 5) // sizes may differ
				r.Recv(0, 8, 7) // another communicator
				r.Recv(1, 8, 6)
			}), []string{
			"unmatched-send rank 0, op 1: no receive matches the send of 8 bytes to rank 1 with tag 5 on communicator 0",
			"unmatched-send rank 0, op 2: no receive matches the send of 8 bytes to rank 1 with tag 6 on communicator 0",
			"unmatched-send rank 0, op 3: no receive matches the send of 0 bytes to rank 1 with tag 7 on communicator 1",
			"unmatched-receive rank 1, op 1: no send matches the receive of 8 bytes from rank 0 with tag 7 on " +
				"communicator 0",
			"unmatched-receive rank 1, op 2: no send matches the receive of 8 bytes from rank 1 with tag 6 on " +
				"communicator 0"}},
		{"same flow in another order", exchanges(
			func(r *RankBuilder) {
				r.Send(1, 8, 5)
				r.Add(Op{Kind: Send, Peer: 1, Tag: 7, Comm: 1})
				r.Send(1, 8, 4)
			},
			func(r *RankBuilder) {
				r.Recv(0, 8, 4)
				r.Recv(0, 8, 5)
				r.Add(Op{Kind: Recv, Peer: 0, Tag: 7, Comm: 1})
			}), nil},
		{"wildcards that all match", exchanges(
			func(r *RankBuilder) {
				r.Send(1, 8, 5) // taken by tag 5
				r.Send(1, 8, 6) // by any tag from rank 0, though any source with tag 6 does not exist
				r.Send(1, 8, 5) // by any
				r.Send(1, 8, CollectiveTag)
				r.Send(1, 8, CollectiveTag-1)
			},
			func(r *RankBuilder) {
				r.Recv(AnySource, 8, AnyTag)
				r.Recv(0, 8, AnyTag)
				r.Recv(AnySource, 8, 5)
				r.Recv(AnySource, 8, CollectiveTag)
				r.Recv(0, 8, CollectiveTag-1)
			}), nil},
		{"wildcards and collective tags", exchanges(
			func(r *RankBuilder) { r.Send(1, 8, CollectiveTag) },
			func(r *RankBuilder) {
				r.Recv(AnySource, 8, AnyTag)
				r.Recv(0, 8, AnyTag)
				r.Recv(AnySource, 8, CollectiveTag-1)
			}), []string{
			"unmatched-send rank 0, op 0: no receive matches the send of 8 bytes to rank 1 with tag -2 on communicator 0",
			"unmatched-receive rank 1, op 0: no send matches the receive of 8 bytes from any rank with any tag on " +
				"communicator 0",
			"unmatched-receive rank 1, op 1: no send matches the receive of 8 bytes from rank 0 with any tag on " +
				"communicator 0",
			"unmatched-receive rank 1, op 2: no send matches the receive of 8 bytes from any rank with tag -3 on " +
				"communicator 0"}},
		{"wildcards stay on their communicator", exchanges(
			func(r *RankBuilder) { r.Send(1, 8, 0) },
			func(r *RankBuilder) { r.Add(Op{Kind: Recv, Peer: AnySource, Tag: AnyTag, Comm: 1}) },
		), []string{
			"unmatched-send rank 0, op 0: no receive matches the send of 8 bytes to rank 1 with tag 0 on communicator 0",
			"unmatched-receive rank 1, op 0: no send matches the receive of 0 bytes from any rank with any tag on " +
				"communicator 1"}},
		{"a send has no wildcards", exchanges(
			func(r *RankBuilder) {
				r.Send(1, 8, AnyTag)
				r.Send(1, 8, AnyTag)
			},
			func(r *RankBuilder) {
				r.Recv(0, 8, AnyTag)
				r.Recv(0, 8, 3)
			}), []string{
			"field rank 0, op 0: send with tag -1 (any tag), which only a receive may have",
			"field rank 0, op 1: send with tag -1 (any tag), which only a receive may have",
			"unmatched-send rank 0, op 1: no receive matches the send of 8 bytes to rank 1 with tag -1 on communicator 0",
			"unmatched-receive rank 1, op 1: no send matches the receive of 8 bytes from rank 0 with tag 3 on " +
				"communicator 0"}},
		{"contested wildcards", build(4, func(b *Builder) {
			// 1 must give to any source with 5, so 2 must give its 5 to any tag, so its 6 must go to any source.
			b.Rank(1).Send(0, 1, 5)
			b.Rank(2).Send(0, 1, 5)
			b.Rank(2).Send(0, 1, 6)
			b.Rank(3).Send(0, 1, 6)
			b.Rank(0).Recv(AnySource, 1, 5)
			b.Rank(0).Recv(2, 1, AnyTag)
			b.Rank(0).Recv(AnySource, 1, 6)
			b.Rank(0).Recv(3, 1, AnyTag)
		}), nil},

		{"collectives agree", collectives(
			[]Op{barrier, bcast1, even, {Subkind: Allreduce, Peer: 1}}, []Op{barrier, bcast1, {Subkind: Allreduce}},
			[]Op{even, barrier, bcast1, {Subkind: Allreduce}}), nil},
		{"unknown roots", collectives(
			[]Op{{Subkind: Reduce, Peer: UnknownRoot, Comm: 1}, unknown},
			[]Op{unknown},
			[]Op{{Subkind: Reduce, Peer: UnknownRoot, Comm: 1}, unknown}), nil},
		{"a root that some do not know", collectives([]Op{unknown}, []Op{bcast0}, []Op{unknown}), []string{
			"collective rank 1, op 0: bcast with root 0 on communicator 0, expected bcast with root -1 as in op 0 of rank 2"}},
		{"not a member", collectives([]Op{even}, []Op{even, even}, []Op{even, {Subkind: Scan, Comm: 2}}), []string{
			"collective rank 1, op 0: allreduce on communicator 1, which does not contain the rank",
			"collective rank 1, op 1: allreduce on communicator 1, which does not contain the rank",
			"collective rank 2, op 1: scan on communicator 2, which does not contain the rank"}},
		{"member without collectives", collectives([]Op{even, barrier}, nil, nil), []string{
			"collective rank 1: no collective on communicator 0, unlike other members (2 of 3 members have none)",
			"collective rank 2: no collective on communicator 1, unlike other members (1 of 2 members have none)",
		}},
		{"different collectives", collectives(
			[]Op{bcast0}, []Op{bcast1}, []Op{barrier}, []Op{bcast1}, []Op{bcast1, bcast1}, nil, []Op{bcast1}, []Op{bcast1},
		), []string{
			"collective rank 0, op 0: bcast with root 0 on communicator 0, expected bcast with root 1 as in op 0 of rank 7",
			"collective rank 2, op 0: barrier on communicator 0, expected bcast with root 1 as in op 0 of rank 7",
			"collective rank 4, op 1: bcast with root 1 on communicator 0, but rank 7 has no more collectives on it",
			"collective rank 5: no collective on communicator 0, unlike other members (1 of 8 members have none)",
		}},
		{"too few collectives", collectives([]Op{barrier, bcast0}, []Op{barrier}, []Op{barrier, bcast0}), []string{
			"collective rank 1: fewer collectives on communicator 0 than on rank 2"}},
		{"root is no member", collectives(
			[]Op{{Subkind: Gather, Comm: 1, Peer: 1}}, nil, []Op{{Subkind: Gather, Comm: 1, Peer: 1}}), []string{
			"collective rank 0, op 0: gather with root 1, which is not a member of communicator 1"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			var got []string
			for _, p := range Validate(c.trace) {
				got = append(got, string(p.Class)+" "+p.String())
			}
			if !slices.Equal(got, c.want) {
				t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(c.want, "\n"))
			}
			for _, limit := range []int{-1, 0, 1, len(c.want) + 1} {
				problems, n := ValidateLimit(c.trace, limit)
				if n != len(c.want) || len(problems) != min(max(0, limit), n) {
					t.Errorf("limit %d: %d of %d problems", limit, len(problems), n)
				}
				for i, p := range problems[:min(len(problems), len(c.want))] {
					if string(p.Class)+" "+p.String() != c.want[i] {
						t.Errorf("limit %d: problem %d is %v, want %s", limit, i, p, c.want[i])
					}
				}
			}
		})
	}
}

// TestWildcardsAgainstNaive compares how many messages match with a plain bipartite matching of sends and receives, and
// checks that those reported fit nothing that is left.
func TestWildcardsAgainstNaive(t *testing.T) {
	random := rand.New(rand.NewPCG(6, 1))
	for round := range 3000 {
		ranks, tags, comms := 2+random.IntN(4), 1+random.IntN(4), 1+random.IntN(2)
		tag := func() int64 { return int64(random.IntN(tags)) - int64(round%3) } // from -2, so that some are collectives'
		trace := build(ranks, func(b *Builder) {
			b.AddComm(World(ranks))
			for range random.IntN(30) {
				op := Op{Kind: Send, Tag: tag(), Comm: int32(random.IntN(comms))}
				b.Rank(random.IntN(ranks)).Add(op)
			}
			for range random.IntN(30) {
				op := Op{Kind: Recv, Peer: int32(random.IntN(ranks)), Tag: tag(), Comm: int32(random.IntN(comms))}
				switch random.IntN(4) {
				case 0:
					op.Peer = AnySource
				case 1:
					op.Tag = AnyTag
				case 2:
					if random.IntN(4) == 0 {
						op.Peer, op.Tag = AnySource, AnyTag
					}
				}
				b.Rank(0).Add(op)
			}
		})
		want := naiveUnmatched(trace)
		var sends, receives []Op // not matched
		for _, p := range Validate(trace) {
			switch op := trace.Ranks[p.Rank].Op(p.Op); p.Class {
			case UnmatchedSend:
				sends = append(sends, op)
				if slices.ContainsFunc(receives, func(r Op) bool { return fits(int32(p.Rank), op, r) }) {
					t.Fatalf("round %d: %v fits a receive that is not matched either", round, p)
				}
			case UnmatchedRecv:
				receives = append(receives, op)
			}
		}
		if len(sends)+len(receives) != want {
			t.Fatalf("round %d: %d sends and %d receives unmatched, want %d in all", round, len(sends), len(receives), want)
		}
	}
}

// fits reports whether receive r can take the send s of rank from.
func fits(from int32, s, r Op) bool {
	return s.Comm == r.Comm && (r.Peer == from || r.Peer == AnySource) &&
		(r.Tag == s.Tag || r.Tag == AnyTag && s.Tag > AnyTag || r.Tag == AnyTag && s.Tag == AnyTag)
}

// naiveUnmatched returns how many sends to and receives of rank 0 a maximum matching leaves, found by augmenting paths.
func naiveUnmatched(t *Trace) int {
	type send struct {
		from int32
		op   Op
	}
	var sends []send
	var receives []Op
	for id := range t.Ranks {
		for i := range t.Ranks[id].Len() {
			if op := t.Ranks[id].Op(i); op.Kind == Send {
				sends = append(sends, send{int32(id), op})
			} else {
				receives = append(receives, op)
			}
		}
	}
	taken := slices.Repeat([]int{-1}, len(receives))
	var augment func(s int, seen []bool) bool
	augment = func(s int, seen []bool) bool {
		for r := range receives {
			if seen[r] || !fits(sends[s].from, sends[s].op, receives[r]) {
				continue
			}
			seen[r] = true
			if taken[r] < 0 || augment(taken[r], seen) {
				taken[r] = s
				return true
			}
		}
		return false
	}
	unmatched := len(sends) + len(receives)
	for s := range sends {
		if augment(s, make([]bool, len(receives))) {
			unmatched -= 2
		}
	}
	return unmatched
}

// TestCyclesAgainstNaive compares the components of random dependencies with the ops that can reach each other.
func TestCyclesAgainstNaive(t *testing.T) {
	random := rand.New(rand.NewPCG(7, 1))
	for range 2000 {
		n := 1 + random.IntN(12)
		trace := calcs(n, func(_ *Trace, r *Rank) {
			r.Deps, _ = randomEdges(random, n)
			if random.IntN(2) == 0 {
				r.StartDeps, _ = randomEdges(random, n)
			}
		})
		rank := trace.Ranks[0]
		waits := make([][]bool, n)
		for i := range n {
			waits[i] = make([]bool, n)
			for _, off := range slices.Concat(rank.Deps.Of(i), rank.StartDeps.Of(i)) {
				waits[i][i-int(off)] = true
			}
		}
		direct := make([][]bool, n)
		for i := range n {
			direct[i] = slices.Clone(waits[i])
		}
		for k := range n {
			for i := range n {
				for j := range n {
					waits[i][j] = waits[i][j] || waits[i][k] && waits[k][j]
				}
			}
		}
		var want []string
		blocked := int64(0)
		for i := range n {
			lowest, size, stuck := true, 0, false
			for j := range n {
				if waits[i][j] && waits[j][i] {
					lowest, size = lowest && j >= i, size+1
				}
				stuck = stuck || waits[i][j] && waits[j][j]
			}
			if stuck || waits[i][i] {
				blocked++
			}
			if lowest && waits[i][i] {
				length := shortestCycle(direct, i)
				text := fmt.Sprintf("%d: cycle of %d ops", i, length)
				if length == 1 && size == 1 {
					text = fmt.Sprintf("%d: waits for itself", i)
				} else if size > length {
					text += fmt.Sprintf(" of %d", size)
				}
				want = append(want, text)
			}
		}
		var got []string
		for _, p := range Validate(trace) {
			text, _, _ := strings.Cut(p.Message, ":")
			if _, all, found := strings.Cut(p.Message, "("); found {
				size, _, _ := strings.Cut(all, " ")
				text += " of " + size
			}
			got = append(got, fmt.Sprintf("%d: %s", p.Op, text))
		}
		if !slices.Equal(got, want) {
			t.Fatalf("got %q, want %q", got, want)
		}
		if s := Summarize(trace); s.BlockedOps != blocked {
			t.Fatalf("%d blocked ops, want %d", s.BlockedOps, blocked)
		}
	}
}

// shortestCycle returns the length of a shortest cycle through op i.
func shortestCycle(direct [][]bool, i int) int {
	reached := slices.Clone(direct[i])
	for length := 1; ; length++ {
		if reached[i] {
			return length
		}
		next := make([]bool, len(direct))
		for k, r := range reached {
			for j := range direct {
				next[j] = next[j] || r && direct[k][j]
			}
		}
		reached = next
	}
}

func TestMembership(t *testing.T) {
	comm := NewComm("", []int32{9, 4, 5, 0, 7, 1})
	for _, queries := range []int{1, 1000} {
		m := newMembership(&comm, queries)
		if listed := m.sorted != nil; listed != (queries == 1000) {
			t.Errorf("%d queries: members listed: %v", queries, listed)
		}
		for rank := int32(-1); rank < 12; rank++ {
			if m.has(rank) != comm.Contains(rank) {
				t.Errorf("%d queries: rank %d is a member: %v", queries, rank, m.has(rank))
			}
		}
	}
}

func TestProblemJSON(t *testing.T) {
	got, err := json.Marshal(Problem{Class: BadPeer, Rank: 3, Op: 17, Message: "send to rank 9, expected 0..7"})
	want := `{"class":"peer","rank":3,"op":17,"message":"send to rank 9, expected 0..7"}`
	if err != nil || string(got) != want {
		t.Errorf("%s, %v, want %s", got, err, want)
	}
}

// FuzzBrokenTraces makes traces of arbitrary bytes, structurally wrong ones included: nothing may panic, and what needs
// sound references must be refused by CheckReferences.
func FuzzBrokenTraces(f *testing.F) {
	f.Add([]byte{})
	f.Add([]byte("\x02\x05\x00\x01\x02\x03\x04\x05\x06\x07\x08\x09"))
	f.Add([]byte(strings.Repeat("\x01\xff\x02", 40)))
	f.Add([]byte(strings.Repeat("\x03\x02\x01\x02\x02\x00\x01\x00\x00\x01\x01\x02", 9)))
	f.Fuzz(func(t *testing.T, data []byte) {
		trace := arbitraryTrace(data)
		problems := Validate(trace)
		Summarize(trace)
		Matrix(trace)
		for i := range trace.Ranks {
			r := trace.Ranks[i]
			if r.CheckReferences() == nil {
				r.Dependents()
				r.StartDependents()
			} else if !slices.ContainsFunc(problems, func(p Problem) bool {
				return p.Rank == i && p.Class == BadReference
			}) {
				t.Errorf("CheckReferences finds what Validate does not: %v", r.CheckReferences())
			}
		}
	})
}

// arbitraryTrace makes a trace that may break every rule.
func arbitraryTrace(data []byte) *Trace {
	next := func() int {
		if len(data) == 0 {
			return 0
		}
		b := data[0]
		data = data[1:]
		if b > 250 { // mostly small values, a few extreme ones
			return [...]int{-1, -2, math.MaxInt32, math.MinInt32, 300}[b-251]
		}
		return int(b % 8)
	}
	count := func() int { return max(0, next()) % 8 }
	edges := func() Edges {
		var e Edges
		for range count() {
			e.End = append(e.End, uint32(next()))
			e.Off = append(e.Off, int32(next()-3))
		}
		if count() > 0 { // sound after all
			for i := range e.End {
				e.End[i] = uint32(i + 1)
			}
		}
		return e
	}
	t := &Trace{Ranks: NewRanks(count())}
	for range count() {
		c := Comm{}
		for range count() {
			c.Ranges = append(c.Ranges, Range{int32(next()), int32(next()), int32(next())})
		}
		t.Comms = append(t.Comms, c)
	}
	if count() > 0 {
		t.Comms = append([]Comm{World(len(t.Ranks))}, t.Comms...)
	}
	for range count() {
		t.Nodes = append(t.Nodes, int32(next()))
	}
	for i := range t.Ranks {
		r := t.Change(i)
		for k := range count() * 2 {
			r.Kind = append(r.Kind, Kind(next()))
			r.Subkind.Set(k, Subkind(next()))
			r.Bytes.Set(k, int64(next()))
			r.Peer.Set(k, int32(next()))
			r.Tag.Set(k, int64(next()-2))
			r.Duration.Set(k, Time(next())<<32)
			for _, column := range []*Narrow{&r.Comm, &r.Stream, &r.NIC, &r.Job} {
				column.Set(k, int32(next()))
			}
		}
		r.Deps, r.StartDeps, r.Order, r.StartOrder = edges(), edges(), edges(), edges()
		r.Flops.Set(count(), int64(next()))
	}
	return t
}
