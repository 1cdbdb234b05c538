package collective

import (
	"context"
	"fmt"
	"maps"
	"math"
	"math/bits"
	"math/rand/v2"
	"os"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/tracedag/tracedag/dag"
)

var memberCounts = []int{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 32, 33}

// roots returns the root positions to test: all for few members, otherwise some.
func roots(kind dag.Subkind, n int) []int {
	switch {
	case !kind.Rooted():
		return []int{0}
	case n > 17:
		return []int{0, n / 2, n - 1}
	}
	all := make([]int, n)
	for i := range all {
		all[i] = i
	}
	return all
}

// ownSize returns the size of a member's own contribution; one of them is 0.
func ownSize(position int) int64 {
	return int64(position*position*13) % 101
}

const commonSize = 1000

// collectiveOp returns the op of one member as docs/reference/lowering.md defines it. scale, 0 or 1, multiplies all sizes.
func collectiveOp(kind dag.Subkind, n, position, root int, scale int64) dag.Op {
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
		op.RecvBytes = partSize(commonSize, n, position)
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
	op.Bytes *= scale
	op.RecvBytes *= scale
	return op
}

// oneCollective returns a trace in which each rank computes, takes part in a collective if it is a member, and computes
// again.
func oneCollective(kind dag.Subkind, ranks int, members []int32, root int, scale int64) *dag.Trace {
	b := dag.NewBuilder(ranks)
	comm := b.AddComm(dag.NewComm("", members))
	for position, rank := range members {
		op := collectiveOp(kind, len(members), position, root, scale)
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
	out, err := Lower(context.Background(), tr, c)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// TestAlgorithms runs every algorithm on communicators of many sizes and orders without two of the ranks, with and
// without data. It checks that each member depends on all members whose data it needs, and the total messages and
// bytes.
func TestAlgorithms(t *testing.T) {
	for _, a := range algorithms {
		t.Run(name(a.kind, "/", a.name), func(t *testing.T) {
			for _, n := range memberCounts {
				if n > 9 && testing.Short() {
					continue
				}
				for _, root := range roots(a.kind, n) {
					for scale := range int64(2) {
						t.Run(name(n, "/", root, "/", scale), func(t *testing.T) { checkAlgorithm(t, &a, n, root, scale) })
					}
				}
			}
		})
	}
}

func checkAlgorithm(t *testing.T, a *algorithm, n, root int, scale int64) {
	members := permutation(n + 2)[1 : n+1]
	tr := oneCollective(a.kind, n+2, members, root, scale)
	re := run(t, mustLower(t, tr, a.kind.String()+"="+a.name), func(rank, op int) bool { return op == 0 })
	if a.name != "ringsegments" { // it sends no empty blocks
		checkDependence(t, re, a, members, root)
	}
	messages, bytes, known := traffic(a, n, root)
	if !known {
		return
	}
	if a.kind != dag.Barrier {
		bytes *= scale
	}
	if got := int64(len(re.sends)); got != messages {
		t.Errorf("%d messages travel, expected %d", got, messages)
	}
	if got := total(re); got != bytes {
		t.Errorf("%d bytes travel, expected %d", got, bytes)
	}
}

func total(re *replay) int64 {
	sum := int64(0)
	for _, m := range re.sends {
		sum += m.bytes
	}
	return sum
}

// checkDependence checks the members on whose start the end of the collective depends at each member.
func checkDependence(t *testing.T, re *replay, a *algorithm, members []int32, root int) {
	t.Helper()
	for position, rank := range members {
		needs := set(rank)
		switch a.kind {
		case dag.Bcast, dag.Scatter, dag.Scatterv:
			needs |= set(members[root])
		case dag.Reduce, dag.Gather, dag.Gatherv:
			if position == root {
				needs = set(members...)
			}
		case dag.Scan, dag.Exscan:
			needs = set(members[:position+1]...)
		default:
			needs = set(members...)
		}
		last := re.trace.Ranks[rank].Len() - 1
		got := re.sources[rank][last]
		exactly := a.kind.Rooted() && a.name == "linear" // members communicate with the root only
		if got&needs != needs || exactly && got != needs {
			t.Errorf("member %d depends on ranks %b, needs %b", position, got, needs)
		}
	}
}

// traffic returns the total messages and bytes of an algorithm as its source states them, and whether it does.
func traffic(a *algorithm, n, root int) (messages, bytes int64, known bool) {
	members, others := int64(n), int64(n-1)
	floorLog, ceilLog := int64(bits.Len(uint(n))-1), int64(bits.Len(uint(n-1)))
	power := int64(1) << floorLog
	extra := members - power
	sum := int64(0)
	for i := range n {
		sum += ownSize(i)
	}
	common := func(int) int64 { return commonSize }
	commonPart := func(p int) int64 { return partSize(commonSize, n, p) }
	// Total size of the subtrees of a binomial tree without the root.
	subtrees := func(block func(position int) int64) int64 {
		all := int64(0)
		for v := 1; v < n; v++ {
			for k := v; k < min(n, v+v&-v); k++ {
				all += block((k + root) % n)
			}
		}
		return all
	}
	// Total size if every member sends each other member a part of its own data.
	parts := func(own func(position int) int64) int64 {
		all := int64(0)
		for i := range n {
			all += own(i) - partSize(own(i), n, i)
		}
		return all
	}
	switch name(a.kind, "/", a.name) {
	case "barrier/dissemination", "barrier/hierarchical":
		messages, bytes = members*ceilLog, members*ceilLog
	case "barrier/linear", "barrier/binomial":
		messages, bytes = 2*others, 2*others
	case "barrier/recdoubling":
		messages = power*floorLog + 2*extra
		bytes = messages
	case "bcast/binomial", "bcast/binary", "bcast/kary", "bcast/knomial", "bcast/chain", "bcast/linear",
		"bcast/hierarchical", "reduce/binomial", "reduce/binary", "reduce/kary", "reduce/knomial", "reduce/chain",
		"reduce/linear", "reduce/hierarchical", "gather/linear", "scan/linear", "exscan/linear":
		messages, bytes = others, others*commonSize
	case "bcast/doublebinarytree", "reduce/doublebinarytree":
		messages, bytes = 2*others, others*commonSize
	case "bcast/scatterallgather":
		messages, bytes = others+members*others, subtrees(commonPart)+others*commonSize
	case "bcast/scatterrecdoubling":
		messages, bytes = others+members*ceilLog, subtrees(commonPart)+others*commonSize
	case "reduce/rabenseifner":
		messages, bytes = extra+power*floorLog+power-1, (extra+power-1)*commonSize
		for q := range power { // the binomial gather
			bytes += int64(bits.OnesCount64(uint64(q))) * partSize(commonSize, int(power), int(q))
		}
	case "allreduce/recdoubling", "allreduce/hierarchical": // on one level, for small sizes
		messages, bytes = power*floorLog+2*extra, (power*floorLog+2*extra)*commonSize
	case "allreduce/ring":
		messages, bytes = 2*members*others, 2*others*commonSize
	case "allreduce/rabenseifner":
		messages, bytes = 2*power*floorLog+2*extra, 2*(power-1+extra)*commonSize
	case "allreduce/reducebcast":
		messages, bytes = 2*others, 2*others*commonSize
	case "allreduce/doublebinarytree":
		messages, bytes = 4*others, 2*others*commonSize
	case "gather/binomial":
		messages, bytes = others, subtrees(common)
	case "gatherv/binomial", "scatterv/binomial":
		messages, bytes = others, subtrees(ownSize)
	case "gatherv/linear", "scatterv/linear":
		messages, bytes = others, sum-ownSize(root)
	case "scatter/binomial":
		messages, bytes = others, subtrees(commonPart)
	case "scatter/linear":
		messages, bytes = others, commonSize-commonPart(root)
	case "allgather/ring", "allgather/linear":
		messages, bytes = members*others, others*members*commonSize
	case "allgather/recdoubling", "allgather/bruck":
		messages, bytes = members*ceilLog, others*members*commonSize
	case "allgatherv/ring", "allgatherv/linear":
		messages, bytes = members*others, others*sum
	case "allgatherv/recdoubling", "allgatherv/bruck":
		messages, bytes = members*ceilLog, others*sum
	case "alltoall/pairwise", "alltoall/linear":
		messages, bytes = members*others, parts(common)
	case "alltoall/bruck":
		messages = members * ceilLog
		for i := range n {
			for distance := range n {
				bytes += int64(bits.OnesCount(uint(distance))) * partSize(commonSize, n, (i+distance)%n)
			}
		}
	case "alltoallv/pairwise", "alltoallv/linear":
		messages, bytes = members*others, parts(ownSize)
	case "reducescatter/ring", "reducescatter/pairwise":
		messages, bytes = members*others, others*commonSize
	case "reducescatter/reducescatterv":
		messages, bytes = 2*others, others*commonSize+commonSize-commonPart(0)
	case "reducescatter/rechalving", "reducescatter/butterfly":
		messages, bytes = power*floorLog+2*extra, (power-1+extra)*commonSize
		for i := range extra {
			bytes += commonPart(int(2 * i))
		}
		for i := range power {
			reversed := int64(bits.Reverse64(uint64(i)) >> (64 - floorLog))
			if a.name == "rechalving" || i == reversed {
				continue
			}
			messages++ // a member that has the block of another one
			bytes += commonPart(int(i + min(i+1, extra)))
		}
	case "scan/recdoubling", "exscan/recdoubling":
		for bit := 1; bit < n; bit *= 2 {
			for i := range n {
				if i^bit < n {
					messages++
				}
			}
		}
		bytes = messages * commonSize
	default:
		return 0, 0, false
	}
	return messages, bytes, true
}

// TestReduceScatterBlocks checks a reduce-scatter whose members state different blocks.
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

// TestStatedForms checks that equivalent statements of sizes, such as 0 for data that a member neither contributes nor
// receives, give the same messages, listed as FROM>TO:BYTES.
func TestStatedForms(t *testing.T) {
	type form struct{ bytes, receives int64 }
	tests := []struct {
		kind      dag.Subkind
		root      int32
		algorithm string
		forms     []form
		want      string
	}{
		{dag.Bcast, 2, "linear", []form{{0, 9}, {0, 9}, {9, 0}}, "2>0:9 2>1:9"},
		{dag.Bcast, 2, "linear", []form{{9, 9}, {9, 9}, {9, 9}}, "2>0:9 2>1:9"},
		{dag.Bcast, 1, "binomial", []form{{0, 9}, {9, 0}, {0, 9}}, "1>0:9 1>2:9"},
		{dag.Bcast, 0, "scatterallgather", []form{{5, 0}, {0, 5}}, "0>1:2 0>1:3 1>0:2"},
		{dag.Bcast, 0, "linear", []form{{0, 0}, {0, 0}}, "0>1:0"},
		{dag.Reduce, 1, "linear", []form{{9, 0}, {0, 9}, {9, 0}}, "0>1:9 2>1:9"},
		{dag.Reduce, 0, "binomial", []form{{0, 9}, {9, 0}, {9, 0}, {9, 0}}, "1>0:9 2>0:9 3>2:9"},
		{dag.Reduce, 0, "binomial", []form{{9, 9}, {9, 9}, {9, 0}, {9, 0}}, "1>0:9 2>0:9 3>2:9"},
		{dag.Allreduce, 0, "reducebcast", []form{{9, 9}, {9, 9}, {9, 9}}, "0>1:9 0>2:9 1>0:9 2>0:9"},
		{dag.Gather, 0, "binomial", []form{{4, 16}, {4, 0}, {4, 0}, {4, 0}}, "1>0:4 2>0:8 3>2:4"},
		{dag.Gatherv, 2, "linear", []form{{4, 9}, {5, 0}, {0, 9}}, "0>2:4 1>2:5"},
		{dag.Gatherv, 0, "binomial", []form{{100, 1000}, {200, 0}, {300, 0}, {400, 0}}, "1>0:200 2>0:700 3>2:400"},
		{dag.Scatter, 1, "linear", []form{{0, 4}, {11, 4}, {0, 3}}, "1>0:4 1>2:3"},
		{dag.Scatter, 1, "linear", []form{{0, 0}, {11, 0}, {0, 0}}, "1>0:4 1>2:3"},
		{dag.Scatter, 0, "binomial", []form{{12, 3}, {0, 3}, {0, 3}, {0, 3}}, "0>1:3 0>2:6 2>3:3"},
		{dag.Scatterv, 2, "linear", []form{{0, 100}, {0, 200}, {1000, 300}, {0, 400}}, "2>0:100 2>1:200 2>3:400"},
		{dag.Scatterv, 2, "binomial", []form{{0, 100}, {0, 200}, {1000, 300}, {0, 400}}, "0>1:200 2>0:300 2>3:400"},
		{dag.Allgatherv, 0, "linear", []form{{1, 6}, {2, 6}, {3, 6}}, "0>1:1 0>2:1 1>0:2 1>2:2 2>0:3 2>1:3"},
		{dag.Alltoall, 0, "linear", []form{{6, 0}, {6, 0}, {6, 0}}, "0>1:2 0>2:2 1>0:2 1>2:2 2>0:2 2>1:2"},
		{dag.Alltoallv, 0, "linear", []form{{10, 0}, {5, 1}, {0, 4}}, "0>1:3 0>2:3 1>0:2 1>2:1 2>0:0 2>1:0"},
		{dag.Alltoallv, 0, "pairwise", []form{{11, 0}, {5, 1}, {0, 4}}, "0>1:4 0>2:3 1>0:2 1>2:1 2>0:0 2>1:0"},
		{dag.Barrier, 0, "linear", []form{{}, {}, {}}, "0>1:1 0>2:1 1>0:1 2>0:1"},
	}
	for _, test := range tests {
		b := dag.NewBuilder(len(test.forms))
		for rank, f := range test.forms {
			b.Rank(rank).Add(dag.Op{
				Kind: dag.Coll, Subkind: test.kind, Peer: test.root, Bytes: f.bytes, RecvBytes: f.receives, Tag: 77,
			})
		}
		out := mustLower(t, b.Trace(), test.kind.String()+"="+test.algorithm)
		re := run(t, out, func(int, int) bool { return false })
		var messages []string
		for _, m := range re.sends {
			messages = append(messages, name(m.from, ">", m.to, ":", m.bytes))
			if m.tag != dag.CollectiveTag {
				t.Errorf("%v of %v: tag %d, expected %d", test.kind, test.forms, m.tag, dag.CollectiveTag)
			}
		}
		slices.Sort(messages)
		if got := strings.Join(messages, " "); got != test.want {
			t.Errorf("%v, root %d, of %v by %s sends\n%s, expected\n%s", test.kind, test.root, test.forms,
				test.algorithm, got, test.want)
		}
	}
}

// randomTrace returns a trace of many concurrent collectives on several communicators, with calcs, messages and
// dependencies, some of them forward.
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
	b.Meta().Jobs = []string{"first", "second"}
	for number := range collectives {
		comm := random.IntN(len(groups))
		g := groups[comm]
		kind := allCollectives[random.IntN(len(allCollectives))]
		root := random.IntN(len(g))
		for position, rank := range g {
			op := collectiveOp(kind, len(g), position, root, 1)
			op.Comm, op.Peer = int32(comm), g[root]
			op.Stream, op.NIC, op.Job = int32(comm), int32(comm%2), int32(number%2)
			op.Tag, op.Flops, op.Release = int64(number), 3, dag.Time(number)
			op.Name, op.Attrs = name("collective ", number), name(`{"number":`, number, "}")
			op.Timed, op.MeasuredStart, op.MeasuredEnd = true, 10, 20
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
				// An op before its dependency. No other op may wait for it.
				j := r.Add(dag.Op{Kind: dag.Calc, Duration: 5, Name: "early"})
				k := r.Add(dag.Op{Kind: dag.Calc, Duration: 6, Name: "late"}, i)
				r.Requires(j, k)
				r.RequiresStart(j, i)
			}
			if random.IntN(4) == 0 { // the collective waits for a later op
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
	for rank := range tr.Ranks { // a unique duration identifies each op
		for i, kind := range tr.Ranks[rank].Kind {
			if kind == dag.Calc {
				tr.Ranks[rank].Duration.Set(i, dag.Time(i+1))
			}
		}
	}
	return tr
}

// predecessors returns, for each op with a duration, the durations of its direct and indirect dependencies in ascending
// order.
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

// TestManyCommunicators checks that lowering keeps exactly the dependencies between the other ops of a rank.
func TestManyCommunicators(t *testing.T) {
	seeds := uint64(20)
	if testing.Short() {
		seeds = 3
	}
	for seed := range seeds {
		tr := randomTrace(9, 60, seed)
		for rank := range tr.Ranks {
			tr.Meta.Nodes = append(tr.Meta.Nodes, int32(rank*rank%4))
		}
		before := dump(tr)
		for _, choice := range []string{
			"", "mpich", "openmpi", "collectives=ring", "collectives=linear", "collectives=hierarchical,rechalving",
			"collectives=doublebinarytree(segment=64),bruck", "collectives=kary(segment=100),rabenseifner",
			"bcast=scatterallgather;allreduce=reducebcast",
		} {
			out := mustLower(t, tr, choice)
			run(t, out, func(int, int) bool { return false })
			for _, problem := range dag.Validate(out) {
				t.Errorf("seed %d, %q: %v", seed, choice, problem)
			}
			for rank := range out.Ranks {
				got, want := predecessors(out.Ranks[rank]), predecessors(tr.Ranks[rank])
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

// TestSomeCollectives lowers some collectives and then the rest. The result must equal that of lowering all at once
// except for tags, and the first step must not change the other collectives.
func TestSomeCollectives(t *testing.T) {
	some := func(kind dag.Subkind) bool {
		return kind == dag.ReduceScatter || kind == dag.Scan || kind == dag.Bcast || kind == dag.Alltoallv
	}
	collectives := func(ops []dag.Op, lowered bool) []dag.Op {
		return filter(ops, func(op *dag.Op) bool { return op.Kind == dag.Coll && some(op.Subkind) == lowered })
	}
	isMessage := func(op *dag.Op) bool { return op.Kind == dag.Send || op.Kind == dag.Recv }
	seeds := uint64(20)
	if testing.Short() {
		seeds = 5
	}
	for seed := range seeds {
		tr := randomTrace(9, 60, seed)
		half, err := LowerSelected(context.Background(), tr, Choice{}, some)
		if err != nil {
			t.Fatal(err)
		}
		for _, problem := range dag.Validate(half) {
			t.Errorf("seed %d: %v", seed, problem)
		}
		rest := mustLower(t, half, "")
		run(t, rest, func(int, int) bool { return false })
		all := mustLower(t, tr, "")
		tags := map[int64]bool{} // tags of the collectives lowered first
		for rank := range tr.Ranks {
			before, between := ops(tr.Ranks[rank]), ops(half.Ranks[rank])
			if got, want := collectives(between, false), collectives(before, false); !slices.Equal(got, want) {
				t.Fatalf("seed %d, rank %d: collectives\n%+v\nare left, expected\n%+v", seed, rank, got, want)
			}
			if left := collectives(between, true); len(left) > 0 {
				t.Fatalf("seed %d, rank %d: %+v was not lowered", seed, rank, left[0])
			}
			for _, m := range filter(between, isMessage) {
				tags[m.Tag] = true
			}
		}
		for rank := range tr.Ranks {
			want := filter(ops(all.Ranks[rank]), func(op *dag.Op) bool { return isMessage(op) && tags[op.Tag] })
			if got := filter(ops(half.Ranks[rank]), isMessage); !slices.Equal(got, want) {
				t.Fatalf("seed %d, rank %d: messages\n%+v\nexpected\n%+v", seed, rank, got, want)
			}
			got, want := ops(rest.Ranks[rank]), ops(all.Ranks[rank])
			if len(got) != len(want) {
				t.Fatalf("seed %d, rank %d: %d ops, expected %d", seed, rank, len(got), len(want))
			}
			for i := range got {
				if first := tags[want[i].Tag]; isMessage(&want[i]) && first != tags[got[i].Tag] {
					t.Errorf("seed %d, rank %d, op %d: tag %d, as messages of collectives lowered before", seed, rank, i,
						got[i].Tag)
				}
				got[i].Tag, want[i].Tag = 0, 0
			}
			if !slices.Equal(got, want) {
				t.Errorf("seed %d, rank %d: lowered in two passes\n%+v\nexpected\n%+v", seed, rank, got, want)
			}
			after, wait := predecessors(rest.Ranks[rank]), predecessors(tr.Ranks[rank])
			if !maps.EqualFunc(after, wait, slices.Equal) {
				t.Errorf("seed %d, rank %d: ops wait for\n%v\nexpected\n%v", seed, rank, after, wait)
			}
		}
		none, err := LowerSelected(context.Background(), tr, Choice{}, func(dag.Subkind) bool { return false })
		if err != nil || dump(none) != dump(tr) {
			t.Errorf("seed %d: lowering no collective changes the trace (error %v)", seed, err)
		}
	}
}

func ops(r *dag.Rank) []dag.Op {
	all := make([]dag.Op, r.Len())
	for i := range all {
		all[i] = r.Op(i)
	}
	return all
}

func filter(ops []dag.Op, keep func(op *dag.Op) bool) []dag.Op {
	var kept []dag.Op
	for i := range ops {
		if keep(&ops[i]) {
			kept = append(kept, ops[i])
		}
	}
	return kept
}

// TestKeptCollectivesAgree checks that members must agree on the kind of collectives that are not lowered, and on
// nothing else.
func TestKeptCollectivesAgree(t *testing.T) {
	onlyBarriers := func(kind dag.Subkind) bool { return kind == dag.Barrier }
	trace := func(kinds ...dag.Subkind) *dag.Trace {
		b := dag.NewBuilder(len(kinds))
		for rank, kind := range kinds {
			b.Rank(rank).Add(dag.Op{Kind: dag.Coll, Subkind: kind, Peer: int32(rank) - 9, Bytes: int64(rank) - 1})
		}
		return b.Trace()
	}
	tr := trace(dag.Bcast, dag.Bcast, dag.Bcast)
	if out, err := LowerSelected(context.Background(), tr, Choice{}, onlyBarriers); err != nil || dump(out) != dump(tr) {
		t.Errorf("error %v and\n%s, expected no change", err, dump(out))
	}
	const want = "rank 1, op 0, collective 0 of communicator 0: barrier, expected bcast"
	_, err := LowerSelected(context.Background(), trace(dag.Bcast, dag.Barrier), Choice{}, onlyBarriers)
	if err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("error %v, expected %s", err, want)
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

// dump returns a trace as text for comparison.
func dump(tr *dag.Trace) string {
	var b strings.Builder
	for rank := range tr.Ranks {
		r := tr.Ranks[rank]
		for i := range r.Len() {
			fmt.Fprintf(&b, "%d.%d %+v deps %v starts %v\n", rank, i, r.Op(i), r.Deps.Of(i), r.StartDeps.Of(i))
		}
	}
	return b.String()
}

// TestPlace checks the dependencies between the messages and the other ops of a rank.
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
	marker := dag.Op{Kind: dag.Calc, Subkind: dag.Marker, Stream: 3, NIC: 1}
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
		r := out.Ranks[rank]
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

// TestUnknownRoot checks that an unknown root is the first member.
func TestUnknownRoot(t *testing.T) {
	for _, kind := range allCollectives {
		if !kind.Rooted() {
			continue
		}
		members := []int32{2, 0, 3}
		known := oneCollective(kind, 4, members, 0, 1)
		want := dump(mustLower(t, known, ""))
		for _, rank := range members {
			known.Ranks[rank].Peer.Set(1, dag.UnknownRoot)
		}
		if got := dump(mustLower(t, known, "")); got != want {
			t.Errorf("%s without a root becomes\n%s\nexpected, as with root 2,\n%s", kind, got, want)
		}
	}
}

// TestKept checks that other ops keep all their fields, and that reused memory has no remains of earlier ops.
func TestKept(t *testing.T) {
	b := dag.NewBuilder(2)
	b.Meta().Jobs = []string{"a", "b"}
	full := dag.Op{
		Kind: dag.Coll, Subkind: dag.Bcast, Bytes: 1, RecvBytes: 2, Peer: 1, Tag: 3, Duration: 4, Flops: 5, Release: 6,
		Stream: 7, NIC: 8, Job: 1, Host: 1, Dims: 10, Priority: -11, Name: "n", Attrs: "{}", Timed: true,
		MeasuredStart: 12, MeasuredEnd: 13,
	}
	for rank := range 2 {
		r := b.Rank(rank)
		r.Add(dag.Op{Kind: dag.Coll, Subkind: dag.Allreduce, Bytes: 100, Host: 1, Dims: 2, Priority: 3})
		r.Add(full)
		host := full
		host.Kind, host.Subkind, host.Bytes = dag.Mem, dag.Load, 9
		r.Add(host)
		r.Add(dag.Op{})
	}
	tr := b.Trace()
	out, err := LowerSelected(context.Background(), tr, Choice{}, func(kind dag.Subkind) bool { return kind == dag.Allreduce })
	if err != nil {
		t.Fatal(err)
	}
	for rank := range out.Ranks {
		got, want := ops(out.Ranks[rank]), ops(tr.Ranks[rank])
		n := len(got) - 3
		if !slices.Equal(got[n:], want[1:]) {
			t.Errorf("rank %d: kept %+v, expected %+v", rank, got[n:], want[1:])
		}
		for _, op := range got[:n] {
			if op.Host != 0 || op.Dims != 0 || op.Priority != 0 {
				t.Errorf("rank %d: %+v stands for an allreduce", rank, op)
			}
		}
	}
}

// TestTags checks that each instance has a unique tag, numbered over all communicators.
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

// TestTagsBelowOthers checks that new tags are below all tags of the trace.
func TestTagsBelowOthers(t *testing.T) {
	trace := func(tag int64) *dag.Trace {
		b := dag.NewBuilder(2)
		b.Rank(0).Send(1, 8, tag)
		b.Rank(1).Recv(0, 8, tag)
		for rank := range 2 {
			for range 2 {
				b.Rank(rank).Add(dag.Op{Kind: dag.Coll, Subkind: dag.Bcast, Tag: math.MinInt64})
			}
		}
		return b.Trace()
	}
	for tag, want := range map[int64][]int64{
		7: {-2, -3}, 0: {-2, -3}, -2: {-3, -4}, -9: {-10, -11}, math.MinInt64 + 4: {math.MinInt64 + 3, math.MinInt64 + 2},
	} {
		out := mustLower(t, trace(tag), "")
		if got := []int64(out.Ranks[0].Tag[1:]); !slices.Equal(got, want) {
			t.Errorf("beside tag %d, collectives have tags %d, expected %d", tag, got, want)
		}
	}
	const want = "rank 0: tag -9223372036854775805, expected -9223372036854775804 or more, because tags below are needed for 2 "
	_, err := Lower(context.Background(), trace(math.MinInt64+3), Choice{})
	if err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("error %v, expected %s", err, want)
	}
	seen := map[int64]bool{} // tags of both trees of both collectives
	out := mustLower(t, trace(-9), "bcast=doublebinarytree")
	for _, tag := range out.Ranks[0].Tag[1:] {
		seen[tag] = true
	}
	if want := map[int64]bool{-10: true, -11: true, -12: true, -13: true, 0: true}; !maps.Equal(seen, want) {
		t.Errorf("tags %v, expected %v", seen, want)
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

// TestDisagreement checks the errors for members that disagree and for malformed collectives.
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
		ops  [3][]dag.Op // by rank; communicator 1 is ranks 2 and 1, communicator 2 is malformed
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
			"rank 0: collective of communicator 1, which does not contain the rank",
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
			_, err := Lower(context.Background(), b.Trace(), Choice{})
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("error %v, expected %s", err, test.want)
			}
		})
	}
}

// TestLargestSizes checks that sums stay in range at the size limit.
func TestLargestSizes(t *testing.T) {
	for _, a := range algorithms {
		for n := 1; n < 10; n++ {
			b := dag.NewBuilder(n)
			for rank := range n {
				b.Rank(rank).Add(dag.Op{Kind: dag.Coll, Subkind: a.kind, Bytes: math.MaxInt64 / int64(n)})
			}
			re := run(t, mustLower(t, b.Trace(), a.kind.String()+"="+a.name), func(int, int) bool { return false })
			for _, m := range re.sends {
				if m.bytes < 0 {
					t.Errorf("%v by %s: a message of %d bytes", a.kind, a.name, m.bytes)
				}
			}
		}
	}
}

// TestTooManySegments checks the error for schedules that would exhaust the memory, also in a phase of an algorithm.
func TestTooManySegments(t *testing.T) {
	for _, c := range []struct {
		kind   dag.Subkind
		choice string
	}{
		{dag.Bcast, "bcast=chain(segment=1KiB)"},
		{dag.Allreduce, "allreduce=reducethenbcast;bcast=chain(segment=1KiB)"},
		{dag.Allgather, "allgather=gatherthenbcast;bcast=chain(segment=512)"},
	} {
		b := dag.NewBuilder(2)
		for rank := range 2 {
			b.Rank(rank).Calc(1)
			b.Rank(rank).Add(dag.Op{Kind: dag.Coll, Subkind: c.kind, Bytes: 1<<30 + 1})
		}
		choice, err := ParseChoice(c.choice)
		if err != nil {
			t.Fatal(err)
		}
		want := "lowering collectives: rank 0, op 1: bcast of 1073741825 bytes by chain in segments of 1024 bytes, " +
			"expected at most 1048576 of them"
		if c.kind == dag.Allgather {
			want = strings.NewReplacer("1073741825", "2147483650", "1024", "512").Replace(want)
		}
		if _, err := Lower(context.Background(), b.Trace(), choice); err == nil || err.Error() != want {
			t.Errorf("%s: error %v, expected %s", c.choice, err, want)
		}
	}
}

// TestNodes checks that a wrong number of nodes is an error if the choice uses nodes.
func TestNodes(t *testing.T) {
	b := dag.NewBuilder(3)
	for rank := range 3 {
		b.Rank(rank).Add(dag.Op{Kind: dag.Coll, Subkind: dag.Barrier})
	}
	b.Meta().Nodes = []int32{7, 7}
	tr := b.Trace()
	mustLower(t, tr, "")
	choice, err := ParseChoice("mpich")
	if err != nil {
		t.Fatal(err)
	}
	const want = "lowering collectives: the trace names the nodes of 2 ranks, expected 3"
	if _, err := Lower(context.Background(), tr, choice); err == nil || err.Error() != want {
		t.Errorf("error %v, expected %s", err, want)
	}
	tr.Nodes = append(tr.Nodes, 3)
	var between int
	for _, m := range run(t, mustLower(t, tr, "mpich"), func(int, int) bool { return true }).sends {
		if tr.Nodes[m.from] != tr.Nodes[m.to] {
			between++
		}
	}
	if between != 2 {
		t.Errorf("%d messages between two nodes, expected 2", between)
	}
}

// TestHostile checks that arbitrary fields of collectives give an error or a trace that completes.
func TestHostile(t *testing.T) {
	sizes := []int64{0, 0, 1, 8, -1, math.MinInt64, math.MaxInt64, math.MaxInt64 / 3}
	choices := []string{"", "collectives=linear,bruck,reducebcast", "collectives=binomial,recdoubling,scatterallgather",
		"mpich", "collectives=doublebinarytree(segment=8),bruck,rechalving,gatherbcast"}
	accepted := 0
	seeds := uint64(500)
	if os.Getenv("TRACEDAG_LONG") != "" {
		seeds = 3000
	}
	for seed := range seeds {
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
		choice, err := ParseChoice(choices[random.IntN(len(choices))])
		if err != nil {
			t.Fatal(err)
		}
		if out, err := Lower(context.Background(), b.Trace(), choice); err == nil {
			run(t, out, func(int, int) bool { return false })
			accepted++
		}
	}
	if accepted < int(seeds)/10 {
		t.Errorf("only %d traces were accepted: the test does not try much", accepted)
	}
}

// TestPosted checks that the op after the messages waits for the start of every receive and send of the algorithms that
// post all of them at once, and that no other op waits for a receive: protocols charge a receive in the wait for it.
func TestPosted(t *testing.T) {
	for _, test := range []struct{ choice, algorithm string }{
		{"alltoall", "linearreverse"}, {"alltoall", "ordered"},
		{"alltoallv", "linearreverse"}, {"alltoallv", "ordered"},
		{"allgather", "ordered"}, {"allgatherv", "ordered"}, {"scan", "ordered"}, {"exscan", "ordered"},
	} {
		kind, _ := parseCollective(test.choice)
		trace := mustLower(t, oneCollective(kind, 5, []int32{0, 1, 2, 3, 4}, 0, 8), test.choice+"="+test.algorithm)
		for rank := range trace.Ranks {
			r := trace.Ranks[rank]
			waiters, starts, messages := make([]int, r.Len()), make([]int, r.Len()), 0
			for i := range r.Len() {
				for _, off := range r.Deps.Of(i) {
					waiters[i-int(off)]++
				}
				for _, off := range r.StartDeps.Of(i) {
					if r.Kind[i] == dag.Calc {
						starts[i-int(off)]++
					}
				}
			}
			for i, kind := range r.Kind {
				if kind == dag.Calc {
					continue
				}
				messages++
				if waiters[i] != 1 || starts[i] != 1 {
					t.Errorf("%s by %s: rank %d, %v %d: %d ops wait for its end and %d for its start, expected one",
						test.choice, test.algorithm, rank, kind, i, waiters[i], starts[i])
				}
			}
			if messages == 0 {
				t.Errorf("%s by %s: no messages of rank %d", test.choice, test.algorithm, rank)
			}
		}
	}
}

// TestDirect checks the lowering of a non-blocking allreduce by SMPI's tables, whatever other rules are: the op behind
// its start waits for the last send, and the op behind its end for every message.
func TestDirect(t *testing.T) {
	lower := func(choice string, waiters int, last dag.Op) string {
		b := dag.NewBuilder(3)
		for rank := range 3 {
			r := b.Rank(rank)
			r.Add(dag.Op{Kind: dag.Coll, Subkind: dag.Allreduce, Bytes: 8})
			r.RequiresStart(r.Calc(5), 0)
			for range waiters {
				r.Add(last, 0, 1)
			}
		}
		var got strings.Builder
		r := mustLower(t, b.Trace(), choice).Ranks[1]
		for i := range r.Len() {
			fmt.Fprintf(&got, "%v %d after %v, starts %v\n", r.Kind[i], r.Peer.At(i), r.Deps.Of(i), r.StartDeps.Of(i))
		}
		return got.String()
	}
	const messages = `send 0 after [], starts []
recv 0 after [], starts [1]
send 2 after [], starts []
recv 2 after [], starts [1]
`
	wait := dag.Op{Kind: dag.Calc}
	for _, choice := range []string{"smpi-default", "smpi-mpich", "smpi-ompi", "smpi-mpich;allreduce=ring"} {
		want := messages + "calc 0 after [], starts [2]\ncalc 0 after [5 4 3 2 1], starts [5 4 3 2]\n"
		if got := lower(choice, 1, wait); got != want {
			t.Errorf("%s: got\n%sexpected\n%s", choice, got, want)
		}
	}
	marker := messages + "calc 0 after [4 3 2 1], starts [4 3 2 1]\ncalc 0 after [], starts [3]\n"
	for _, test := range []struct {
		waiters int
		last    dag.Op
		want    string
	}{
		{2, wait, marker + "calc 0 after [2 1], starts []\ncalc 0 after [3 2], starts []\n"},
		{1, dag.Op{Kind: dag.Send, Peer: 1}, marker + "send 1 after [2 1], starts []\n"},
	} {
		if got := lower("smpi-ompi", test.waiters, test.last); got != test.want {
			t.Errorf("%d ops wait: got\n%sexpected\n%s", test.waiters, got, test.want)
		}
	}
	if got := lower("mpich", 1, wait); !strings.Contains(got, "send 0 after") || strings.Count(got, "recv") != 2 {
		t.Errorf("mpich: got\n%s", got)
	}
	// One member that goes on before the end makes the collective non-blocking for all.
	b := dag.NewBuilder(3)
	for rank := range 3 {
		r := b.Rank(rank)
		r.Add(dag.Op{Kind: dag.Coll, Subkind: dag.Allreduce, Bytes: 8})
		if rank == 1 {
			r.RequiresStart(r.Calc(5), 0)
		}
	}
	for rank, r := range mustLower(t, b.Trace(), "smpi-mpich").Ranks {
		messages := 0
		for _, kind := range r.Kind {
			if kind != dag.Calc {
				messages++
			}
		}
		if messages != 4 {
			t.Errorf("rank %d has %d messages, expected one to and one from each of the others", rank, messages)
		}
	}
}

// TestReduceSegments checks the order of a member with two children that reduces three segments: a calc waits for each
// receive when the next one has begun; the send of a segment waits for the second of its receives.
func TestReduceSegments(t *testing.T) {
	var s Schedule
	p := Participant{Kind: dag.Reduce, Members: 16, Me: 4, Bytes: 3000}
	if err := Plan(&p, "binomialtuned", &s); err != nil {
		t.Fatal(err)
	}
	var got strings.Builder
	for i, step := range s.Steps {
		fmt.Fprintf(&got, "%v %d %d after %v\n", step.Kind, step.Peer, step.Bytes, s.After(i))
	}
	want := `recv 5 1024 after []
recv 6 1024 after []
calc 0 0 after [0]
recv 5 1024 after [2]
calc 0 0 after [1 2]
send 0 1024 after [4]
recv 6 1024 after [5]
calc 0 0 after [3 5]
recv 5 952 after [7]
calc 0 0 after [6 7]
send 0 1024 after [9]
recv 6 952 after [10]
calc 0 0 after [8 10]
calc 0 0 after [11 12]
send 0 952 after [13]
`
	if got.String() != want {
		t.Errorf("got\n%sexpected\n%s", got.String(), want)
	}
}

// TestRepeated: the messages of a collective do not depend on the collectives before it.
func TestRepeated(t *testing.T) {
	type call struct {
		kind  dag.Subkind
		bytes int64
		root  int32
		comm  int32
		deps  int // the number of earlier ops on which it depends
	}
	calls := []call{
		{dag.Allreduce, 64, 0, 0, 0}, {dag.Allreduce, 64, 0, 0, 1}, {dag.Allreduce, 64, 0, 0, 2},
		{dag.Allreduce, 1 << 20, 0, 0, 1}, {dag.Allreduce, 64, 0, 1, 1}, {dag.Allreduce, 64, 0, 0, 1},
		{dag.Reduce, 64, 0, 0, 1}, {dag.Reduce, 64, 1, 0, 2}, {dag.Gatherv, 64, 1, 0, 1}, {dag.Gatherv, 7, 1, 0, 1},
		{dag.Gatherv, 64, 1, 0, 1},
	}
	const ranks = 6
	lower := func(calls []call) *dag.Trace {
		t.Helper()
		b := dag.NewBuilder(ranks)
		b.AddComm(dag.World(ranks))
		for rank := range ranks {
			r := b.Rank(rank)
			first, second := r.Calc(1), r.Calc(2)
			for _, c := range calls {
				op := dag.Op{Kind: dag.Coll, Subkind: c.kind, Bytes: c.bytes, Peer: c.root, Comm: c.comm}
				r.Add(op, []int{first, second}[:c.deps]...)
			}
		}
		lowered, err := Lower(context.Background(), b.Trace(), Choice{})
		if err != nil {
			t.Fatal(err)
		}
		return lowered
	}
	// text lists the ops of a rank after the calcs, without tags.
	text := func(r *dag.Rank) (list []string) {
		for i := 2; i < r.Len(); i++ {
			op := r.Op(i)
			op.Tag = 0
			offs := slices.Clone(r.Deps.Of(i))
			for k, off := range offs {
				if int32(i)-off < 2 {
					offs[k] = 1000 + int32(i) - off // a calc
				}
			}
			list = append(list, fmt.Sprintf("%+v after %v", op, offs))
		}
		return list
	}
	all := lower(calls)
	var want [ranks][]string
	for _, c := range calls {
		for rank, r := range lower([]call{c}).Ranks {
			want[rank] = append(want[rank], text(r)...)
		}
	}
	for rank, r := range all.Ranks {
		if got := text(r); !slices.Equal(got, want[rank]) {
			t.Errorf("rank %d: %q, expected %q", rank, got, want[rank])
		}
	}
}
