package lower

import (
	"fmt"
	"maps"
	"math"
	"math/bits"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/tracedag/tracedag/dag"
)

var memberCounts = []int{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 32, 33}

// sizes of the members' own contributions; one of them nothing.
func ownSize(position int) int64 {
	return int64(position*position*13) % 101
}

const commonSize = 1000

// collectiveOp returns the op of one member as docs/lowering.md has it.
func collectiveOp(kind dag.Subkind, n, position, root int) dag.Op {
	op := dag.Op{Kind: dag.Coll, Subkind: kind}
	isRoot := position == root
	sum := int64(0)
	for i := range n {
		sum += ownSize(i)
	}
	switch kind {
	case dag.Bcast:
		if isRoot {
			op.Bytes = commonSize
		} else {
			op.RecvBytes = commonSize
		}
	case dag.Scatter:
		op.RecvBytes = part(commonSize, n, position)
		if isRoot {
			op.Bytes = commonSize
		}
	case dag.Gather, dag.Reduce, dag.Allreduce, dag.Allgather, dag.Alltoall, dag.Scan, dag.Exscan, dag.ReduceScatter:
		op.Bytes = commonSize
	case dag.Scatterv:
		op.RecvBytes = ownSize(position)
		if isRoot {
			op.Bytes = sum
		}
	case dag.Gatherv, dag.Allgatherv, dag.Alltoallv:
		op.Bytes = ownSize(position)
	}
	return op
}

// oneCollective returns a trace in which each rank computes, takes part in a collective of the communicator, if it is a
// member, and computes again.
func oneCollective(kind dag.Subkind, ranks int, members []int32, root int) *dag.Trace {
	b := dag.NewBuilder(ranks)
	comm := b.AddComm(dag.NewComm("", members))
	for position, rank := range members {
		op := collectiveOp(kind, len(members), position, root)
		op.Comm, op.Peer = comm, members[root]
		r := b.Rank(int(rank))
		r.Calc(1)
		r.Add(op, 0)
		r.Calc(1, 1)
	}
	return b.Trace()
}

func mustLower(t *testing.T, tr *dag.Trace, choice string) *dag.Trace {
	t.Helper()
	c, err := ParseChoice(choice)
	if err != nil {
		t.Fatal(err)
	}
	out, err := Collectives(tr, c)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// TestAlgorithms runs every algorithm on communicators of many sizes and orders, and checks that each member waits for
// all whose data it needs, that messages hold what the collective needs, and how many bytes travel in all.
func TestAlgorithms(t *testing.T) {
	for _, a := range algorithms {
		for _, n := range memberCounts {
			for _, root := range []int{0, n / 2, n - 1} {
				if root > 0 && !a.kind.Rooted() {
					continue
				}
				t.Run(name(a.kind, "/", a.name, "/", n, "/", root), func(t *testing.T) {
					members := permutation(n)
					tr := oneCollective(a.kind, n, members, root)
					out := mustLower(t, tr, a.kind.String()+"="+a.name)
					re := run(t, out, func(rank, op int) bool { return op == 0 })
					checkDependence(t, re, a.kind, members, root)
					checkBlocks(t, re, a.kind, members, root)
					if got, want := total(re), totalBytes(a.kind, a.name, n, root); got != want {
						t.Errorf("%d bytes travel, expected %d", got, want)
					}
				})
			}
		}
	}
}

func total(re *replay) int64 {
	sum := int64(0)
	for _, m := range re.sends {
		sum += m.bytes
	}
	return sum
}

// checkDependence checks on whose start the end of the collective depends at each member.
func checkDependence(t *testing.T, re *replay, kind dag.Subkind, members []int32, root int) {
	t.Helper()
	for position, rank := range members {
		needs, exactly := set(rank), false
		switch kind {
		case dag.Bcast, dag.Scatter, dag.Scatterv:
			needs |= set(members[root])
		case dag.Reduce, dag.Gather, dag.Gatherv:
			if position == root {
				needs = set(members...)
			} else if kind == dag.Gatherv {
				exactly = true
			}
		case dag.Scan, dag.Exscan:
			needs = set(members[:position+1]...)
		default:
			needs = set(members...)
		}
		last := re.trace.Ranks[rank].Len() - 1
		got := re.sources[rank][last]
		if got&needs != needs || exactly && got != needs {
			t.Errorf("member %d depends on ranks %b, needs %b", position, got, needs)
		}
	}
}

// checkBlocks checks the messages of collectives that move blocks: their sizes must be those of the blocks they hold.
func checkBlocks(t *testing.T, re *replay, kind dag.Subkind, members []int32, root int) {
	t.Helper()
	n := len(members)
	received, sentBytes := make([]int64, n), make([]int64, n)
	position := make([]int, n)
	for p, rank := range members {
		position[rank] = p
	}
	contribution := func(p int) int64 {
		if kind == dag.Gather || kind == dag.Allgather || kind == dag.Alltoall {
			return commonSize
		}
		return ownSize(p)
	}
	for _, m := range re.sends {
		received[position[m.to]] += m.bytes
		sentBytes[position[m.from]] += m.bytes
		want := int64(0)
		switch kind {
		case dag.Gather, dag.Gatherv: // the blocks of all that the sender has heard from
			for p, rank := range members {
				if m.sources&set(rank) != 0 {
					want += contribution(p)
				}
			}
		case dag.Alltoall, dag.Alltoallv:
			want = part(contribution(position[m.from]), n, position[m.to])
		default:
			continue
		}
		if m.bytes != want {
			t.Errorf("message of %d bytes from member %d to %d, expected %d", m.bytes, position[m.from],
				position[m.to], want)
		}
	}
	for p := range members {
		switch {
		case kind == dag.Scatter && p != root:
			if kept := received[p] - sentBytes[p]; kept != part(commonSize, n, p) {
				t.Errorf("member %d keeps %d bytes, expected %d", p, kept, part(commonSize, n, p))
			}
		case kind == dag.Scatterv && p != root:
			if kept := received[p] - sentBytes[p]; kept != ownSize(p) {
				t.Errorf("member %d keeps %d bytes, expected %d", p, kept, ownSize(p))
			}
		case kind == dag.Allgather || kind == dag.Allgatherv:
			want := -contribution(p)
			for q := range n {
				want += contribution(q)
			}
			if received[p] != want {
				t.Errorf("member %d receives %d bytes, expected %d", p, received[p], want)
			}
		}
	}
}

// totalBytes is the bytes that an algorithm sends in all, as its source gives them.
func totalBytes(kind dag.Subkind, algorithm string, n, root int) int64 {
	ceilLog := int64(bits.Len(uint(n - 1)))
	power := 1 << (bits.Len(uint(n)) - 1)
	others, sum := int64(n-1), int64(0)
	for i := range n {
		sum += ownSize(i)
	}
	// What the subtrees of a binomial tree, root excluded, hold together.
	subtrees := func(block func(position int) int64) int64 {
		all := int64(0)
		for v := 1; v < n; v++ {
			for k := v; k < min(n, v+v&-v); k++ {
				all += block((k + root) % n)
			}
		}
		return all
	}
	switch name(kind, "/", algorithm) {
	case "barrier/dissemination":
		return int64(n) * ceilLog
	case "bcast/binomial", "reduce/binomial", "gather/linear", "reducescatter/ring":
		return others * commonSize
	case "allreduce/recdoubling":
		return (int64(power)*int64(bits.Len(uint(power))-1) + 2*int64(n-power)) * commonSize
	case "allreduce/ring":
		return 2 * others * commonSize
	case "gather/binomial":
		return subtrees(func(int) int64 { return commonSize })
	case "scatter/binomial":
		return subtrees(func(p int) int64 { return part(commonSize, n, p) })
	case "scatter/linear":
		return commonSize - part(commonSize, n, root)
	case "gatherv/linear", "scatterv/linear":
		return sum - ownSize(root)
	case "allgather/ring":
		return others * int64(n) * commonSize
	case "allgatherv/ring":
		return others * sum
	case "alltoall/pairwise":
		total := int64(0)
		for i := range n {
			total += commonSize - part(commonSize, n, i)
		}
		return total
	case "alltoallv/pairwise":
		total := int64(0)
		for i := range n {
			total += ownSize(i) - part(ownSize(i), n, i)
		}
		return total
	case "scan/recdoubling", "exscan/recdoubling":
		messages := int64(0)
		for bit := 1; bit < n; bit *= 2 {
			for i := range n {
				if i^bit < n {
					messages++
				}
			}
		}
		return messages * commonSize
	}
	panic("no formula for " + name(kind, "/", algorithm))
}

// TestReduceScatterBlocks gives the members of a reduce-scatter blocks of their own.
func TestReduceScatterBlocks(t *testing.T) {
	const n = 5
	b := dag.NewBuilder(n)
	sum := int64(0)
	for i := range n {
		sum += ownSize(i)
	}
	for i := range n {
		b.Rank(i).Add(dag.Op{Kind: dag.Coll, Subkind: dag.ReduceScatter, Bytes: sum, RecvBytes: ownSize(i)})
	}
	re := run(t, mustLower(t, b.Trace(), ""), func(int, int) bool { return true })
	received := make([]int64, n)
	for _, m := range re.sends {
		received[m.to] += m.bytes
	}
	for i, got := range received { // all blocks but that of the left neighbour, whose last hop is to itself
		if want := sum - ownSize((i+n-1)%n); got != want {
			t.Errorf("member %d receives %d bytes, expected %d", i, got, want)
		}
	}
}

// randomTrace returns a trace of many collectives on several communicators at once, with computation, messages and
// dependencies, some of them forward, around them.
func randomTrace(ranks, collectives int, seed uint64) *dag.Trace {
	random := rand.New(rand.NewPCG(seed, 1))
	b := dag.NewBuilder(ranks)
	groups := [][]int32{nil, permutation(ranks), nil, nil, {int32(ranks - 1)}}
	for i := range int32(ranks) {
		groups[0] = append(groups[0], i)
		groups[2+i%2] = append(groups[2+i%2], int32(ranks)-1-i)
	}
	for _, g := range groups[1:] {
		b.AddComm(dag.NewComm("", g))
	}
	for range collectives {
		comm := random.IntN(len(groups))
		g := groups[comm]
		kind := allCollectives[random.IntN(len(allCollectives))]
		root := random.IntN(len(g))
		for position, rank := range g {
			op := collectiveOp(kind, len(g), position, root)
			op.Comm, op.Peer = int32(comm), g[root]
			op.Stream, op.NIC = int32(comm), int32(comm%2)
			r := b.Rank(int(rank))
			var deps []int
			for range random.IntN(4) {
				if r.Len() > 0 {
					deps = append(deps, random.IntN(r.Len()))
				}
			}
			i := r.Add(op, deps...)
			if i > 0 && random.IntN(4) == 0 {
				r.RequiresStart(i, random.IntN(i))
			}
			if random.IntN(4) == 0 {
				// An op that stands before what it waits for. It must not be one that others wait for.
				j := r.Add(dag.Op{Kind: dag.Calc, Duration: 5, Name: "early"})
				k := r.Add(dag.Op{Kind: dag.Calc, Duration: 6, Name: "late"}, i)
				r.Requires(j, k)
				r.RequiresStart(j, i)
			}
			if random.IntN(4) == 0 { // the collective waits for an op that follows it
				r.Requires(i, r.Calc(0))
			}
			r.Calc(0, r.Len()-1)
		}
	}
	for rank := range ranks {
		b.Rank(rank).Send(int32((rank+1)%ranks), 7, 5)
		b.Rank(rank).Recv(int32((rank+ranks-1)%ranks), 7, 5)
	}
	tr := b.Trace()
	for rank := range tr.Ranks { // a duration that tells each op from the others
		for i, kind := range tr.Ranks[rank].Kind {
			if kind == dag.Calc {
				tr.Ranks[rank].Duration.Set(i, dag.Time(i+1))
			}
		}
	}
	return tr
}

// predecessors returns, for each op with a duration, the durations of the ops that it waits for, directly or not, in
// ascending order.
func predecessors(r *dag.Rank) map[dag.Time][]dag.Time {
	before := make([]map[dag.Time]bool, r.Len()) // of each op, itself included
	var visit func(i int) map[dag.Time]bool
	visit = func(i int) map[dag.Time]bool {
		if before[i] == nil {
			before[i] = map[dag.Time]bool{}
			for _, off := range slices.Concat(r.Deps.Of(i), r.StartDeps.Of(i)) {
				maps.Copy(before[i], visit(i-int(off)))
			}
			if d := r.Duration.At(i); d != 0 {
				before[i][d] = true
			}
		}
		return before[i]
	}
	result := map[dag.Time][]dag.Time{}
	for i := range r.Len() {
		if d := r.Duration.At(i); d != 0 {
			result[d] = slices.Sorted(maps.Keys(visit(i)))
		}
	}
	return result
}

// TestManyCommunicators checks that everything still waits for what it waited for, and for nothing else of its rank.
func TestManyCommunicators(t *testing.T) {
	for seed := range uint64(20) {
		tr := randomTrace(9, 60, seed)
		before := dump(tr)
		for _, choice := range []string{"", "collectives=ring", "gather=linear;scatter=linear"} {
			out := mustLower(t, tr, choice)
			run(t, out, func(int, int) bool { return false })
			for _, problem := range dag.Validate(out) {
				t.Errorf("seed %d, %q: %v", seed, choice, problem)
			}
			for rank := range out.Ranks {
				got, want := predecessors(&out.Ranks[rank]), predecessors(&tr.Ranks[rank])
				if !maps.EqualFunc(got, want, slices.Equal) {
					t.Errorf("seed %d, rank %d: ops wait for\n%v\nexpected\n%v", seed, rank, got, want)
				}
			}
		}
		if dump(tr) != before {
			t.Fatal("the input was changed")
		}
	}
}

func TestDeterministic(t *testing.T) {
	tr := randomTrace(9, 60, 1)
	want := dump(mustLower(t, tr, ""))
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	if got := dump(mustLower(t, tr, "")); got != want {
		t.Error("the result depends on the number of processors")
	}
}

// dump writes a trace for comparison.
func dump(tr *dag.Trace) string {
	var b strings.Builder
	for rank := range tr.Ranks {
		r := &tr.Ranks[rank]
		for i := range r.Len() {
			fmt.Fprintf(&b, "%d.%d %+v deps %v starts %v\n", rank, i, r.Op(i), r.Deps.Of(i), r.StartDeps.Of(i))
		}
	}
	return b.String()
}

// TestPlace shows how the messages are tied into the DAG of a rank.
func TestPlace(t *testing.T) {
	b := dag.NewBuilder(3)
	coll := dag.Op{Kind: dag.Coll, Subkind: dag.Gatherv, Bytes: 8, Stream: 3, NIC: 1, Release: 9, Name: "collect"}
	for rank := range 3 {
		r := b.Rank(rank)
		r.Calc(10)
		r.Calc(20)
		r.Add(coll, 0, 1)
		r.Calc(30, 2)
		r.RequiresStart(r.Calc(40), 2)
	}
	out := mustLower(t, b.Trace(), "")
	marker := dag.Op{Kind: dag.Calc, Stream: 3, NIC: 1}
	named := marker
	named.Name, named.Release = "collect", 9
	message := func(kind dag.Kind, peer int32) dag.Op {
		return dag.Op{Kind: kind, Peer: peer, Bytes: 8, Tag: -2, Stream: 3, NIC: 1}
	}
	single := message(dag.Send, 0)
	single.Name, single.Release = "collect", 9
	calc := func(d dag.Time) dag.Op { return dag.Op{Kind: dag.Calc, Duration: d} }
	type placed struct {
		op            dag.Op
		deps, started string
	}
	want := [][]placed{
		{ // the root: two receives at once
			{calc(10), "[]", "[]"},
			{calc(20), "[]", "[]"},
			{named, "[2 1]", "[]"},
			{message(dag.Recv, 1), "[1]", "[]"},
			{message(dag.Recv, 2), "[2]", "[]"},
			{marker, "[2 1]", "[]"},
			{calc(30), "[1]", "[]"},
			{calc(40), "[]", "[5]"},
		},
		{
			{calc(10), "[]", "[]"},
			{calc(20), "[]", "[]"},
			{single, "[2 1]", "[]"},
			{calc(30), "[1]", "[]"},
			{calc(40), "[]", "[2]"},
		},
	}
	for rank := range want {
		r := &out.Ranks[rank]
		if r.Len() != len(want[rank]) {
			t.Fatalf("rank %d has %d ops, expected %d:\n%s", rank, r.Len(), len(want[rank]), dump(out))
		}
		for i, w := range want[rank] {
			deps, started := fmt.Sprint(r.Deps.Of(i)), fmt.Sprint(r.StartDeps.Of(i))
			if r.Op(i) != w.op || deps != w.deps || started != w.started {
				t.Errorf("rank %d, op %d is %+v after %s, starts %s,\nexpected %+v after %s, starts %s", rank, i,
					r.Op(i), deps, started, w.op, w.deps, w.started)
			}
		}
	}
}

// TestTags: instances are numbered through the communicators, and each has a tag of its own.
func TestTags(t *testing.T) {
	b := dag.NewBuilder(2)
	other := b.AddComm(dag.NewComm("", []int32{1, 0}))
	for rank := range 2 {
		for _, comm := range []int32{other, 0, other, 0, 0} {
			b.Rank(rank).Add(dag.Op{Kind: dag.Coll, Subkind: dag.Barrier, Comm: comm})
		}
	}
	out := mustLower(t, b.Trace(), "")
	var got []string
	for i := range out.Ranks[0].Len() {
		if op := out.Ranks[0].Op(i); op.Kind == dag.Send {
			got = append(got, name(op.Comm, ":", op.Tag))
		}
	}
	if want := "1:-5 0:-2 1:-6 0:-3 0:-4"; strings.Join(got, " ") != want {
		t.Errorf("tags %v, expected %s", got, want)
	}
}

func TestRanksWithoutCollectives(t *testing.T) {
	b := dag.NewBuilder(3)
	pair := b.AddComm(dag.NewComm("", []int32{0, 2}))
	for _, rank := range []int{0, 2} {
		b.Rank(rank).Add(dag.Op{Kind: dag.Coll, Subkind: dag.Barrier, Comm: pair})
	}
	r := b.Rank(1)
	r.KeepOrder()
	r.Calc(1)
	r.Calc(2)
	r.Calc(3)
	r.Requires(2, 0)
	r.Requires(1, 0)
	tr := b.Trace()
	if len(tr.Ranks[1].Order.Off) == 0 {
		t.Fatal("the test needs an order of dependents")
	}
	out := mustLower(t, tr, "")
	if got, want := fmt.Sprintf("%+v", out.Ranks[1]), fmt.Sprintf("%+v", tr.Ranks[1]); got != want {
		t.Errorf("rank 1 is %s, expected %s", got, want)
	}
	none := dag.NewBuilder(2)
	none.Rank(0).Calc(1)
	if same := mustLower(t, none.Trace(), ""); same.Ops() != 1 {
		t.Errorf("%d ops, expected 1", same.Ops())
	}
}

// TestDisagreement: what members must agree on, and what is no collective at all.
func TestDisagreement(t *testing.T) {
	coll := func(kind dag.Subkind, bytes int64) dag.Op {
		return dag.Op{Kind: dag.Coll, Subkind: kind, Bytes: bytes}
	}
	rooted := func(op dag.Op, root int32) dag.Op {
		op.Peer = root
		return op
	}
	on := func(op dag.Op, comm int32) dag.Op {
		op.Comm = comm
		return op
	}
	receives := func(op dag.Op, bytes int64) dag.Op {
		op.RecvBytes = bytes
		return op
	}
	tests := map[string]struct {
		ops  [3][]dag.Op // by rank; communicator 1 is the ranks 2 and 1, communicator 2 is broken
		want string
	}{
		"kind": {
			[3][]dag.Op{{coll(dag.Allreduce, 8)}, {coll(dag.Allreduce, 8)}, {coll(dag.Allgather, 8)}},
			"rank 2, op 0, collective 0 of communicator 0: allgather, expected allreduce as in rank 0, op 0",
		},
		"size": {
			[3][]dag.Op{{coll(dag.Allreduce, 8)}, {coll(dag.Allreduce, 9)}, {coll(dag.Allreduce, 9)}},
			"allreduce of 9 bytes, expected 8 bytes as in rank 0, op 0",
		},
		"root": {
			[3][]dag.Op{{coll(dag.Bcast, 8)}, {rooted(coll(dag.Bcast, 8), 1)}, {coll(dag.Bcast, 8)}},
			"bcast with root 1, expected root 0 as in",
		},
		"root outside": {
			[3][]dag.Op{nil, {on(coll(dag.Bcast, 8), 1)}, {on(coll(dag.Bcast, 8), 1)}},
			"rank 2, op 0: root 0 of bcast, expected a member of communicator 1",
		},
		"too few": {
			[3][]dag.Op{{coll(dag.Barrier, 0), coll(dag.Barrier, 0)}, {coll(dag.Barrier, 0)}, {coll(dag.Barrier, 0)}},
			"rank 1 has 1 collectives of communicator 0, expected 2",
		},
		"none": {
			[3][]dag.Op{{coll(dag.Barrier, 0)}, nil, {coll(dag.Barrier, 0)}},
			"rank 1 has no collective of communicator 0, expected 1",
		},
		"no member": {
			[3][]dag.Op{{on(coll(dag.Barrier, 0), 1)}, {on(coll(dag.Barrier, 0), 1)}, {on(coll(dag.Barrier, 0), 1)}},
			"rank 0 has a collective of communicator 1, of which it is no member",
		},
		"no communicator": {
			[3][]dag.Op{{on(coll(dag.Barrier, 0), 3)}, nil, nil},
			"rank 0, op 0: communicator 3, expected one of the trace's 3",
		},
		"negative communicator": {
			[3][]dag.Op{{on(coll(dag.Barrier, 0), -1)}, nil, nil},
			"rank 0, op 0: communicator -1, expected one of the trace's 3",
		},
		"broken communicator": {
			[3][]dag.Op{{on(coll(dag.Barrier, 0), 2)}, nil, nil},
			"communicator 2: ",
		},
		"no collective": {
			[3][]dag.Op{{coll(dag.Load, 8)}, {coll(dag.Load, 8)}, {coll(dag.Load, 8)}},
			`rank 0, op 0: collective "load", expected one such as "allreduce"`,
		},
		"negative size": {
			[3][]dag.Op{{coll(dag.Gatherv, 8)}, {coll(dag.Gatherv, -8)}, {coll(dag.Gatherv, 8)}},
			"rank 1, op 0: gatherv of -8 bytes, expected 0..",
		},
		"negative size of a bcast": {
			[3][]dag.Op{{coll(dag.Bcast, 0)}, {coll(dag.Bcast, -8)}, {coll(dag.Bcast, 0)}},
			"rank 1, op 0: bcast of -8 bytes, expected 0..",
		},
		"huge size": {
			[3][]dag.Op{{coll(dag.Gather, 1<<62)}, {coll(dag.Gather, 1<<62)}, {coll(dag.Gather, 1<<62)}},
			"rank 0, op 0: gather of 4611686018427387904 bytes, expected 0..3074457345618258602",
		},
		"part of a scatter": {
			[3][]dag.Op{
				{coll(dag.Scatter, 30)}, {receives(coll(dag.Scatter, 0), 10)}, {receives(coll(dag.Scatter, 0), 11)},
			},
			"receives 11 bytes of a scatter of 30 over 3 members, expected 10",
		},
		"parts of a reduce-scatter": {
			[3][]dag.Op{
				{coll(dag.ReduceScatter, 30)},
				{receives(coll(dag.ReduceScatter, 30), 10)},
				{coll(dag.ReduceScatter, 30)},
			},
			"the members of the reducescatter receive 10 bytes together, expected 30",
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			b := dag.NewBuilder(3)
			b.AddComm(dag.NewComm("", []int32{2, 1}))
			b.AddComm(dag.Comm{Ranges: []dag.Range{{First: 0, Stride: 0, Count: 2}}})
			for rank, ops := range test.ops {
				for _, op := range ops {
					b.Rank(rank).Add(op)
				}
			}
			_, err := Collectives(b.Trace(), Choice{})
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("error %v, expected %s", err, test.want)
			}
		})
	}
}

// TestLargestSizes: sums stay in range at the limit.
func TestLargestSizes(t *testing.T) {
	for _, kind := range allCollectives {
		b := dag.NewBuilder(3)
		for rank := range 3 {
			b.Rank(rank).Add(dag.Op{Kind: dag.Coll, Subkind: kind, Bytes: math.MaxInt64 / 3})
		}
		tr := b.Trace()
		for _, choice := range []string{"", "allreduce=recdoubling", "gather=linear;scatter=linear"} {
			re := run(t, mustLower(t, tr, choice), func(int, int) bool { return false })
			for _, m := range re.sends {
				if m.bytes < 0 {
					t.Errorf("%v: a message of %d bytes", kind, m.bytes)
				}
			}
		}
	}
}

// TestHostile: whatever the fields of the collectives, there is an error or a trace that runs to its end.
func TestHostile(t *testing.T) {
	sizes := []int64{0, 0, 1, 8, -1, math.MinInt64, math.MaxInt64, math.MaxInt64 / 3}
	accepted := 0
	for seed := range uint64(3000) {
		random := rand.New(rand.NewPCG(seed, 2))
		b := dag.NewBuilder(3)
		b.AddComm(dag.NewComm("", []int32{2, 0}))
		b.AddComm(dag.Comm{Ranges: []dag.Range{{First: int32(random.IntN(5) - 1), Stride: -1, Count: math.MaxInt32}}})
		b.AddComm(dag.Comm{})
		common := dag.Op{Kind: dag.Coll, Subkind: dag.Subkind(1 + random.IntN(dag.NumSubkinds))}
		common.Bytes, common.RecvBytes = sizes[random.IntN(len(sizes))], sizes[random.IntN(len(sizes))]
		if random.IntN(4) == 0 {
			common.Comm = int32(random.IntN(6) - 1)
		}
		for rank := range 3 {
			op := common
			switch random.IntN(10) {
			case 0:
				op.Bytes = sizes[random.IntN(len(sizes))]
			case 1:
				op.RecvBytes = sizes[random.IntN(len(sizes))]
			case 2:
				op.Peer = int32(random.Uint32())
			case 3:
				op.Subkind = dag.Subkind(random.IntN(256))
			}
			b.Rank(rank).Add(op)
		}
		if out, err := Collectives(b.Trace(), Choice{}); err == nil {
			run(t, out, func(int, int) bool { return false })
			accepted++
		}
	}
	if accepted < 300 {
		t.Errorf("only %d traces were accepted: the test does not try much", accepted)
	}
}

func BenchmarkCollectives(b *testing.B) {
	for _, bench := range []struct {
		name        string
		kind        dag.Subkind
		bytes       int64
		ranks, each int
	}{
		{"barrier-16", dag.Barrier, 0, 16, 20000},
		{"bcast-16", dag.Bcast, 8, 16, 20000},
		{"gatherv-16", dag.Gatherv, 8, 16, 20000},
		{"allreduce-recdoubling-16", dag.Allreduce, 8, 16, 20000},
		{"allreduce-ring-128", dag.Allreduce, 8 << 20, 128, 100},
		{"alltoall-512", dag.Alltoall, 1 << 20, 512, 4},
	} {
		b.Run(bench.name, func(b *testing.B) {
			builder := dag.NewBuilder(bench.ranks)
			for rank := range bench.ranks {
				r := builder.Rank(rank)
				r.Calc(1)
				for range bench.each {
					i := r.Add(dag.Op{Kind: dag.Coll, Subkind: bench.kind, Bytes: bench.bytes}, r.Len()-1)
					r.Calc(1, i)
				}
			}
			tr := builder.Trace()
			b.ReportAllocs()
			ops := int64(0)
			for b.Loop() {
				out, err := Collectives(tr, Choice{})
				if err != nil {
					b.Fatal(err)
				}
				ops += out.Ops()
			}
			b.ReportMetric(float64(ops)/b.Elapsed().Seconds(), "ops/s")
			b.ReportMetric(float64(bench.ranks*bench.each*b.N)/b.Elapsed().Seconds(), "collectives/s")
		})
	}
}
