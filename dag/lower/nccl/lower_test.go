package nccl

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/tracedag/tracedag/dag"
	"github.com/tracedag/tracedag/dag/attr"
	"github.com/tracedag/tracedag/dag/lower/nodes"
)

// job builds a trace of NCCL calls.
type job struct {
	*dag.Builder
	last []int // op of each rank on which the next kernel depends
	tags map[[3]int32]int64
}

func newJob(ranks int, nodeOf ...int32) *job {
	j := &job{Builder: dag.NewBuilder(ranks), last: make([]int, ranks), tags: make(map[[3]int32]int64)}
	j.Meta().Nodes = nodeOf
	for rank := range ranks {
		j.last[rank] = j.Rank(rank).Add(dag.Op{Duration: 1000 * dag.Nanosecond, Stream: 1})
	}
	return j
}

func (j *job) add(rank int32, op dag.Op, attrs string) {
	op.Stream = 1
	if attrs != "" {
		op.Attrs = `{"nccl":` + attrs + `}`
	}
	j.Rank(int(rank)).Add(op, j.last[rank])
}

// gap ends the kernels of all ranks.
func (j *job) gap() {
	for rank := range j.last {
		r := j.Rank(rank)
		var on []int
		for i := j.last[rank] + 1; i < r.Len(); i++ {
			on = append(on, i)
		}
		if len(on) == 0 {
			on = []int{j.last[rank]}
		}
		j.last[rank] = r.Add(dag.Op{Duration: 7 * dag.Nanosecond, Stream: 1}, on...)
	}
}

// message adds a send and its receive.
func (j *job) message(from, to, comm int32, bytes int64, attrs string) {
	key := [3]int32{from, to, comm}
	tag := j.tags[key]
	j.tags[key]++
	j.add(from, dag.Op{Kind: dag.Send, Peer: to, Bytes: bytes, Tag: tag, Comm: comm}, attrs)
	j.add(to, dag.Op{Kind: dag.Recv, Peer: from, Bytes: bytes, Tag: tag, Comm: comm}, attrs)
}

func testOptions(t *testing.T) Options {
	t.Helper()
	simple, ll, err := MachineTables("clariden")
	if err != nil {
		t.Fatal(err)
	}
	return Options{Simple: simple, LL: ll, Nodes: nodes.Options{Bandwidth: 150e9}}
}

func mustLower(t *testing.T, trace *dag.Trace, o Options) (*dag.Trace, *Report) {
	t.Helper()
	l, err := Lower(context.Background(), trace, o)
	if err != nil {
		t.Fatal(err)
	}
	lowered, err := dag.ReadAll(l)
	if err != nil {
		t.Fatal(err)
	}
	for _, problem := range dag.Validate(lowered) {
		t.Fatal(problem)
	}
	return lowered, &l.Report
}

// TestWorkedExample compares an allreduce of 1 MiB on four GPUs of two nodes with a calculation by hand: each GPU
// forwards 6 chunks of 65536 elements in two slices each.
func TestWorkedExample(t *testing.T) {
	j := newJob(4, 0, 0, 1, 1)
	world := j.AddComm(dag.World(4))
	for rank := range int32(4) {
		j.add(rank, dag.Op{Kind: dag.Coll, Subkind: dag.Allreduce, Comm: world, Bytes: 1 << 20},
			`{"algo":"ring","proto":"simple","type":4,"chunk_steps":4,"slice_steps":2,"step_size":524288,"channels":[[0,262144,524288,65536]]}`)
	}
	lowered, r := mustLower(t, j.Trace(), testOptions(t))
	if r.Network != (Traffic{24, 3 << 20}) || r.IntraNode != (Traffic{24, 3 << 20}) || !r.SendRecvAgree {
		t.Errorf("messages %+v between nodes and %+v inside", r.Network, r.IntraNode)
	}
	// Per GPU 4 reductions of about 3909 ns, 2 with copies, and 4 copies. The tables of the machine are rounded
	// medians.
	if c := r.Calcs[0]; c.Gap != 2000 || c.Transfer != 24*436 || c.Ops != 54 || c != r.Calcs[1] {
		t.Errorf("calcs %+v and %+v", c, r.Calcs[1])
	}
	if len(lowered.Ranks) != 2 || lowered.Ops() != 2*(54+24) {
		t.Errorf("%d ops of %d ranks", lowered.Ops(), len(lowered.Ranks))
	}
}

// randomTopology returns the attributes of a communicator.
func randomTopology(draw *rand.Rand, n, channels int) attr.NCCLTopology {
	var a attr.NCCLTopology
	for range channels {
		order := []int32{0}
		for _, rank := range draw.Perm(n - 1) {
			order = append(order, int32(rank)+1)
		}
		a.Rings = append(a.Rings, order)
		parent := make([]int32, n)
		at := draw.Perm(n)
		parent[at[0]] = none
		for i := 1; i < n; i++ {
			parent[at[i]] = int32(at[draw.IntN(i)])
		}
		a.Trees = append(a.Trees, parent)
	}
	return a
}

// randomJob returns a trace of calls of all kinds.
func randomJob(draw *rand.Rand) *dag.Trace {
	n := 1 + draw.IntN(7)
	nodeOf := make([]int32, n)
	for i := range nodeOf {
		nodeOf[i] = int32(draw.IntN(4))
	}
	j := newJob(n, nodeOf...)
	comms := make(map[string]attr.NCCLTopology)
	var groups [][]int32
	for c := range 1 + draw.IntN(3) {
		var members []int32
		for _, rank := range draw.Perm(n)[:1+draw.IntN(n)] {
			members = append(members, int32(rank))
		}
		name := fmt.Sprint("0x", c)
		j.AddComm(dag.NewComm(name, members))
		if draw.IntN(3) > 0 {
			comms[name] = randomTopology(draw, len(members), 1+draw.IntN(3))
		}
		groups = append(groups, members)
	}
	attrs, _ := json.Marshal(map[string]any{"nccl": map[string]any{"comms": comms}})
	j.Meta().Attrs = string(attrs)
	for range draw.IntN(12) {
		comm := draw.IntN(len(groups))
		members := groups[comm]
		grouped := ""
		for range 1 + draw.IntN(3) {
			if draw.IntN(3) == 0 {
				from, to := members[draw.IntN(len(members))], members[draw.IntN(len(members))]
				chunk := 16 << draw.IntN(4)
				j.message(from, to, int32(comm+1), int64(draw.IntN(200)),
					fmt.Sprintf(`{"proto":%q,"chunk":%d%s}`, protocolNames[draw.IntN(3)], chunk, grouped))
			} else {
				randomCollective(draw, j, int32(comm+1), members, grouped)
			}
			grouped = `,"grouped":true`
		}
		j.gap()
	}
	return j.Trace()
}

func randomCollective(draw *rand.Rand, j *job, comm int32, members []int32, grouped string) {
	kinds := []dag.Subkind{dag.Allreduce, dag.Allreduce, dag.Allgather, dag.ReduceScatter, dag.Bcast, dag.Reduce}
	op := dag.Op{Kind: dag.Coll, Subkind: kinds[draw.IntN(len(kinds))], Comm: comm, Bytes: int64(draw.IntN(1 << 20))}
	if op.Subkind.Rooted() {
		op.Peer = members[draw.IntN(len(members))]
	}
	attrs := ""
	if draw.IntN(4) > 0 {
		steps := 1 + draw.IntN(2)
		var channels []string
		for ch := range draw.IntN(4) {
			channels = append(channels, fmt.Sprintf("[%d,%d,%d,%d]", ch, draw.IntN(300), 1+draw.IntN(100), draw.IntN(50)))
		}
		attrs = fmt.Sprintf(`{"algo":%q,"proto":%q,"type":%d,"chunk_steps":%d,"slice_steps":%d,"step_size":%d,"channels":[%s]`,
			modelled[draw.IntN(len(modelled))], protocolNames[draw.IntN(3)], 1<<draw.IntN(4), 2*steps, steps, draw.IntN(2)*512,
			strings.Join(channels, ","))
	}
	inPlace := draw.IntN(2) == 0
	for _, rank := range members {
		text := attrs
		if text != "" && inPlace {
			text += `,"in_place":true`
		}
		if text != "" {
			text += grouped + "}"
		} else if grouped != "" {
			text = "{" + grouped[1:] + "}"
		}
		j.add(rank, op, text)
	}
}

// TestRandom lowers random calls. It checks that all messages have partners of the same size, that dependencies have no
// cycle, that the counts of both sides agree, and that the result is deterministic, with and without joined ranks.
func TestRandom(t *testing.T) {
	o := testOptions(t)
	for seed := range uint64(400) {
		trace := randomJob(rand.New(rand.NewPCG(seed, 0)))
		o.Sample = seed%2 == 0
		joined, r := mustLower(t, trace, o)
		again, _ := mustLower(t, trace, o)
		if !reflect.DeepEqual(joined, again) {
			t.Fatalf("seed %d: two runs differ", seed)
		}
		if !r.SendRecvAgree {
			t.Errorf("seed %d: sends and receives do not agree", seed)
		}
		apart := o
		apart.Apart = true
		_, q := mustLower(t, trace, apart)
		if !reflect.DeepEqual(r.GPUPairs, q.GPUPairs) || !reflect.DeepEqual(r.NodePairs, q.NodePairs) {
			t.Errorf("seed %d: the messages differ where ranks are not joined", seed)
		}
		for node, c := range r.Calcs {
			if d := q.Calcs[node]; c.Gap != d.Gap || c.ReduceCopy != d.ReduceCopy {
				t.Errorf("seed %d: node %d has calcs of %+v, and apart of %+v", seed, node, c, d)
			}
		}
		messages, bytes := int64(0), int64(0)
		for rank := range joined.Ranks {
			for i, kind := range joined.Ranks[rank].Kind {
				if kind == dag.Send {
					messages++
					bytes += joined.Ranks[rank].Bytes[i]
				}
			}
		}
		if r.Network != (Traffic{messages, bytes}) {
			t.Errorf("seed %d: %d messages of %d bytes, the report has %+v", seed, messages, bytes, r.Network)
		}
	}
}

// TestForward lowers a trace in which ops wait for later ones.
func TestForward(t *testing.T) {
	b := dag.NewBuilder(2)
	for rank := range 2 {
		r := b.Rank(rank)
		calc := r.Add(dag.Op{Duration: 5})
		r.Requires(calc, 2)
		first := r.Add(dag.Op{Kind: dag.Coll, Subkind: dag.Allreduce, Bytes: 100})
		second := r.Add(dag.Op{Kind: dag.Coll, Subkind: dag.Allreduce, Bytes: 300})
		r.Requires(first, second)
	}
	mustLower(t, b.Trace(), testOptions(t))
}

func TestDoubleTree(t *testing.T) {
	for n := 1; n < 70; n++ {
		ranks := make([]int32, n)
		for i := range ranks {
			ranks[i] = int32(i)
		}
		leaves := make([]int, n) // number of trees in which the rank is a leaf
		for which, tree := range doubleTree(byNodes(ranks, ranks)) {
			if _, err := newTree(tree.parent, n); err != nil {
				t.Fatalf("%d nodes, tree %d: %v", n, which, err)
			}
			for i := range ranks {
				if len(tree.children[i]) == 0 {
					leaves[i]++
				}
				if len(tree.children[i]) > 2 {
					t.Errorf("%d nodes, tree %d: node %d has the children %v", n, which, i, tree.children[i])
				}
			}
		}
		if n%2 == 0 && slices.Max(leaves) > 1 {
			t.Errorf("%d nodes: some node is a leaf of both trees", n)
		}
	}
}

// TestBroadcastSizes lowers a broadcast in which only the root contributes data.
func TestBroadcastSizes(t *testing.T) {
	j := newJob(3, 0, 1, 2)
	for rank := range int32(3) {
		op := dag.Op{Kind: dag.Coll, Subkind: dag.Bcast, Peer: 1, RecvBytes: 1000}
		if rank == 1 {
			op.Bytes, op.RecvBytes = 1000, 0
		}
		j.add(rank, op, "")
	}
	if _, r := mustLower(t, j.Trace(), Options{Protocol: "simple"}); r.Network != (Traffic{2, 2000}) {
		t.Errorf("messages %+v", r.Network)
	}
}

// TestUnknownRoot lowers a broadcast whose root the trace does not state: as from the first member.
func TestUnknownRoot(t *testing.T) {
	lowered := func(root int32) *dag.Trace {
		j := newJob(3, 0, 1, 2)
		for rank := range int32(3) {
			j.add(rank, dag.Op{Kind: dag.Coll, Subkind: dag.Bcast, Peer: root, Bytes: 1000}, "")
		}
		out, _ := mustLower(t, j.Trace(), Options{Protocol: "simple"})
		return out
	}
	if d, err := dag.Compare(dag.FromTrace(lowered(0)), dag.FromTrace(lowered(dag.UnknownRoot))); err != nil || !d.Equal() {
		t.Errorf("%+v, %v", d, err)
	}
}

func TestErrors(t *testing.T) {
	coll := func(comm int32, attrs string) func(j *job, rank int32) {
		return func(j *job, rank int32) {
			j.add(rank, dag.Op{Kind: dag.Coll, Subkind: dag.Allreduce, Comm: comm, Bytes: 4}, attrs)
		}
	}
	good := coll(0, "")
	ring := func(channels string) string {
		return `{"algo":"ring","proto":"ll","type":4,"channels":[` + channels + `]}`
	}
	for _, c := range []struct {
		first, second func(j *job, rank int32)
		want          string
	}{
		{good, func(*job, int32) {}, "rank 1 has 0 collectives of communicator 0, expected 1"},
		{good, coll(0, ring("[0,1,1,1]")), "rank 1: op 1: collective 0 of communicator 0 differs from that of rank 0"},
		{coll(9, ""), good, "communicator 9, expected one of the trace's 1"},
		{coll(0, `{"algo":"star","proto":"ll"}`), good, `NCCL algorithm "star", expected one of tree, ring`},
		{coll(0, `{"algo":"ring","proto":"fast"}`), good, `NCCL protocol "fast", expected one of ll`},
		{coll(0, ring("[0,1,0,1]")), good, "chunks of 0"},
		{coll(0, ring("[0,1]")), good, "expected four numbers"},
		{coll(0, ring("[0,1099511627776,1,1]")), good, "an NCCL call of 1099511627776 elements"},
		{coll(0, ring("[0,100000000,1,1]")), good, "an NCCL call of more than 16777216 messages: 100000000 elements in chunks of 1"},
		{coll(0, `{"algo":"ring","proto":"ll","type":0}`), good, "data type of 0 bytes"},
		{coll(0, `{"algo":"ring","proto":"simple","type":4}`), good, "chunks of 0 steps"},
		{coll(0, `7`), good, "the attributes of an NCCL call"},
		{func(j *job, rank int32) { j.add(rank, dag.Op{Kind: dag.Coll, Subkind: dag.Barrier}, "") }, good, "NCCL has no barrier"},
		{func(j *job, rank int32) { j.add(rank, dag.Op{Kind: dag.Send, Peer: 1, Bytes: 1}, "") }, func(*job, int32) {},
			"from rank 0 to rank 1 on communicator 0: the send with tag 0 (op 1) has no receive"},
		{func(j *job, rank int32) { j.add(rank, dag.Op{Kind: dag.Recv, Peer: dag.AnySource}, "") }, good, "from any source"},
		{func(j *job, rank int32) { j.add(rank, dag.Op{Kind: dag.Send, Peer: 2}, "") }, good, "send with rank 2, expected 0..1"},
	} {
		j := newJob(2, 0, 1)
		c.first(j, 0)
		c.second(j, 1)
		if _, err := Lower(context.Background(), j.Trace(), Options{}); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("error %v, expected %q", err, c.want)
		}
	}
	for _, a := range []attr.NCCLTopology{
		{Rings: [][]int32{{0, 1, 1}}}, {Rings: [][]int32{{0, 1}}}, {Rings: [][]int32{{1, 0, 2}}}, {Rings: [][]int32{{0, 1, 9}}},
		{Trees: [][]int32{{-1, 0}}}, {Trees: [][]int32{{-1, 2, 1}}}, {Trees: [][]int32{{-1, -1, 0}}}, {Trees: [][]int32{{1, 2, 0}}},
		{Trees: [][]int32{{-1, 7, 0}}}, {Channels: 1 << 30},
	} {
		if _, err := newTopology(a, []int32{0, 1, 2}, []int32{0, 1, 2}); err == nil {
			t.Errorf("no error for %+v", a)
		}
	}
}

func TestUnsupported(t *testing.T) {
	j := newJob(2, 0, 1)
	for rank := range int32(2) {
		j.add(rank, dag.Op{Kind: dag.Coll, Subkind: dag.Allreduce, Bytes: 4000},
			`{"algo":"nvls","proto":"simple","type":4,"chunk_steps":1,"slice_steps":1,"step_size":64,"channels":[[0,1000,100,100]]}`)
	}
	trace := j.Trace()
	_, r := mustLower(t, trace, Options{})
	if r.UnsupportedCalls() != "2 of nvls" || r.Unsupported["algo 4"] != 2 || r.Network.Messages != 0 || r.Calcs[0].Ops != 2+4 {
		t.Errorf("%+v", r)
	}
	_, r = mustLower(t, trace, Options{AssumeRing: true})
	if r.UnsupportedCalls() != "" || r.Network.Messages == 0 || r.Network.Bytes != 2*4000 {
		t.Errorf("%+v", r)
	}
}

func TestRegroup(t *testing.T) {
	j := newJob(6, 0, 0, 0, 1, 1, 1)
	members := []int32{5, 4, 3, 2, 1, 0}
	comm := j.AddComm(dag.NewComm("0xc", members))
	j.Meta().Attrs = `{"nccl":{"comms":{"0xc":{"rings":[[0,1,2,3,4,5],[0,2,4,1,3,5]],"trees":[[-1,0,1,2,3,4]]}}},"x":1}`
	for _, rank := range members {
		j.add(rank, dag.Op{Kind: dag.Coll, Subkind: dag.Allreduce, Comm: comm, Bytes: 1 << 20}, "")
	}
	trace := j.Trace()
	regrouped, err := Regroup(trace, []int{2, 4})
	if err != nil {
		t.Fatal(err)
	}
	if want := `{"nccl":{"comms":{"0xc":{"channels":2}}},"x":1}`; regrouped.Attrs != want {
		t.Errorf("attributes %s, expected %s", regrouped.Attrs, want)
	}
	if !slices.Equal(regrouped.Nodes, []int32{0, 0, 1, 1, 1, 1}) || trace.Nodes[2] != 0 {
		t.Errorf("nodes %v", regrouped.Nodes)
	}
	_, r := mustLower(t, regrouped, Options{Channels: 2})
	for _, hop := range []string{"0->1", "1->2", "2->3", "3->4", "4->5", "5->0"} {
		if r.GPUPairs[hop].Messages == 0 {
			t.Errorf("no messages %s", hop)
		}
	}
	if len(r.GPUPairs) != 6 || len(r.NodePairs) != 2 {
		t.Errorf("messages %v", r.GPUPairs)
	}
	for _, counts := range [][]int{{2, 3}, {6, 0}, {7}, {}, {3, 4}} {
		if _, err := Regroup(trace, counts); err == nil {
			t.Errorf("no error for nodes of %v", counts)
		}
	}
	merged := *trace
	merged.Attrs = `{"jobs":[null,{"nccl":{"comms":{"a":{"rings":[[0]]}}}}]}`
	if regrouped, err = Regroup(&merged, []int{6}); err != nil ||
		regrouped.Attrs != `{"jobs":[null,{"nccl":{"comms":{"a":{"channels":1}}}}]}` {
		t.Errorf("%v, %s", err, regrouped.Attrs)
	}
}

// TestJobs checks that a call uses the connections of its own job.
func TestJobs(t *testing.T) {
	j := newJob(6, 0, 1, 2, 3, 4, 5)
	j.Meta().Jobs = []string{"a", "b"}
	j.Meta().Attrs = `{"jobs":[{"nccl":{"comms":{"c":{"rings":[[0,1,2]]}}}},{"nccl":{"comms":{"c":{"rings":[[0,2,1]]}}}}]}`
	for job, members := range [][]int32{{0, 1, 2}, {3, 4, 5}} {
		comm := j.AddComm(dag.NewComm("c", members))
		for _, rank := range members {
			j.add(rank, dag.Op{Kind: dag.Coll, Subkind: dag.Allgather, Comm: comm, Bytes: 8, Job: int32(job)}, "")
		}
	}
	_, r := mustLower(t, j.Trace(), Options{})
	for _, hop := range []string{"0->1", "1->2", "2->0", "3->5", "5->4", "4->3"} {
		if r.GPUPairs[hop].Messages == 0 {
			t.Errorf("no messages %s", hop)
		}
	}
	if len(r.GPUPairs) != 6 {
		t.Errorf("messages %v", r.GPUPairs)
	}
}

func TestTables(t *testing.T) {
	const text = `{"NPKIT_EVENT_GPU_RECV_REDUCE_SEND":{"8":[10],"16":[30,50],"4":[5]},
		"NPKIT_EVENT_GPU_DIRECT_RECV_COPY_SEND":{"100":[1]},"other":{}}`
	table, err := ReadTable(strings.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	for bytes, want := range map[int64]int64{0: 5, 4: 5, 5: 6, 8: 10, 9: 13, 16: 40, 1000: 40} {
		if got := table.reduce.mean(bytes); got != want {
			t.Errorf("%d bytes take %d ns, expected %d", bytes, got, want)
		}
	}
	draw := rand.New(rand.NewPCG(1, 1))
	seen := map[int64]bool{}
	for range 100 {
		seen[table.reduce.sample(1000, draw)] = true
		if ns := table.reduce.sample(12, draw); ns < 23 || ns > 27 {
			t.Errorf("12 bytes take %d ns", ns)
		}
	}
	if len(seen) != 2 || !seen[30] || !seen[50] {
		t.Errorf("drawn %v", seen)
	}
	for text, want := range map[string]string{
		`{}`:  "NPKIT_EVENT_GPU_",
		`[1]`: "NPKit table",
		`{"NPKIT_EVENT_GPU_RECV_REDUCE_SEND":{"a":[1]},"NPKIT_EVENT_GPU_DIRECT_RECV_COPY_SEND":{"a":[1]}}`:                   "a size in bytes",
		`{"NPKIT_EVENT_GPU_RECV_REDUCE_SEND":{"1":[]},"NPKIT_EVENT_GPU_DIRECT_RECV_COPY_SEND":{"1":[]}}`:                     "expected times",
		`{"NPKIT_EVENT_GPU_RECV_REDUCE_SEND":{"1":[-1]},"NPKIT_EVENT_GPU_DIRECT_RECV_COPY_SEND":{"1":[1e99]}}`:               "expected times of 0",
		`{"NPKIT_EVENT_GPU_RECV_REDUCE_SEND":{"1":[1],"01":[2]},"NPKIT_EVENT_GPU_DIRECT_RECV_COPY_SEND":{"1":[1],"01":[2]}}`: "twice",
	} {
		if _, err := ReadTable(strings.NewReader(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: error %v, expected %q", text, err, want)
		}
	}
	for _, name := range Machines {
		if _, _, err := MachineTables(name); err != nil {
			t.Error(err)
		}
	}
}

// TestChoice checks the algorithm and protocol of calls without description.
func TestChoice(t *testing.T) {
	for _, c := range []struct {
		bytes     int64
		ranks     int
		algorithm algorithm
		protocol  protocol
	}{
		{1000, 2, ring, ll}, {1000, 3, tree, ll}, {1 << 19, 3, tree, simple}, {1 << 20, 3, ring, simple}, {1 << 17, 2, ring, simple},
		{1<<17 - 4, 2, ring, ll},
	} {
		members := make([]int32, c.ranks)
		for i := range members {
			members[i] = int32(i)
		}
		topology, err := newTopology(attr.NCCLTopology{}, members, members)
		if err != nil {
			t.Fatal(err)
		}
		group := &comm{members: members, topology: topology, chosen: make(map[choiceKey]*call)}
		got := group.choose(&Options{}, dag.Allreduce, c.bytes, 0)
		if got.algorithm != c.algorithm || got.protocol != c.protocol {
			t.Errorf("%d bytes of %d ranks: %s %s", c.bytes, c.ranks, algorithmNames[got.algorithm], protocolNames[got.protocol])
		}
		sum := int64(0)
		for _, ch := range got.channels {
			sum += ch.work
		}
		if sum*got.typeSize != c.bytes {
			t.Errorf("%d bytes: the channels carry %d", c.bytes, sum*got.typeSize)
		}
	}
	// NCCL 2.20 for 1 MiB of float on one channel, as in the notes of the vectors.
	four, err := newTopology(attr.NCCLTopology{}, []int32{0, 1, 2, 3}, []int32{0, 0, 1, 1})
	if err != nil {
		t.Fatal(err)
	}
	group := &comm{members: []int32{0, 1, 2, 3}, topology: four, chosen: make(map[choiceKey]*call)}
	got := group.choose(&Options{Channels: 1}, dag.Allreduce, 1<<20, 0)
	if want := []channel{{0, 262144, 524288, 65536}}; !slices.Equal(got.channels, want) || got.slices != 2 || got.slice != 32768 {
		t.Errorf("channels %v in %d slices of %d or more", got.channels, got.slices, got.slice)
	}
}
