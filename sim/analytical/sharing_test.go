package analytical

import (
	"math"
	"testing"

	"github.com/tracedag/tracedag/dag"
)

// sharedRun runs two jobs of four ranks each, of which rank r and rank r+4 are on node r, and returns the finishes.
func sharedRun(t *testing.T, trace *dag.Trace, aware bool, nodes []int32) []uint64 {
	t.Helper()
	network, err := ParseNetwork("Switch(8)@1GB/s,100ns")
	if err != nil {
		t.Fatal(err)
	}
	network.Aware = aware
	program, err := Compile(dag.FromTrace(trace))
	if err != nil {
		t.Fatal(err)
	}
	r, err := program.Run(Options{Network: network, System: DefaultSystem(&network), FreeMarkers: true, Nodes: nodes})
	if err != nil || !r.Complete {
		t.Fatalf("complete %t, error %v", err == nil && r.Complete, err)
	}
	var finish []uint64
	for _, f := range r.Finish {
		finish = append(finish, f.Ticks)
	}
	return finish
}

// TestSharedNICs checks when messages of ranks on one node leave. A message of 2^30 + 1 bytes takes 10^9 ns, and 100 ns for
// each of the two links.
func TestSharedNICs(t *testing.T) {
	const second, links = 1_000_000_000, 200
	nodes := []int32{0, 1, 2, 3, 0, 1, 2, 3}
	build := func(messages ...[2]int) *dag.Trace {
		b := dag.NewBuilder(8)
		for tag, m := range messages {
			b.Rank(m[0]).Send(int32(m[1]), 1<<30+1, int64(tag))
			b.Rank(m[1]).Recv(int32(m[0]), 1<<30+1, int64(tag))
		}
		return b.Trace()
	}
	for _, c := range []struct {
		what     string
		messages [][2]int
		nodes    []int32
		rank     int // of the last receiver
		unaware  uint64
		aware    uint64
	}{
		{"one message", [][2]int{{0, 1}}, nodes, 1, second + links, 2*second + links},
		{"messages of two ranks on a node", [][2]int{{0, 1}, {4, 5}}, nodes, 5, 2 * (second + links), 3*second + links},
		{"the same without shared NICs", [][2]int{{0, 1}, {4, 5}}, nil, 5, second + links, 2*second + links},
		{"messages of two nodes", [][2]int{{0, 1}, {5, 6}}, nodes, 6, second + links, 2*second + links},
		{"a message within the node", [][2]int{{0, 4}, {4, 5}}, nodes, 5, second + links, 2*second + links},
	} {
		trace := build(c.messages...)
		for aware, want := range map[bool]uint64{false: c.unaware, true: c.aware} {
			if got := sharedRun(t, trace, aware, c.nodes)[c.rank]; got != want {
				t.Errorf("%s, aware %t: rank %d ends at %d ns, expected %d", c.what, aware, c.rank, got, want)
			}
		}
	}
}

// TestSharedCollectives runs an allreduce by halvingDoubling of each of two communicators at once, on nodes of their own
// and on the same.
func TestSharedCollectives(t *testing.T) {
	b := dag.NewBuilder(8)
	for job := range 2 {
		members := []int32{int32(4 * job), int32(4*job + 1), int32(4*job + 2), int32(4*job + 3)}
		comm := b.AddComm(dag.NewComm("", members))
		for _, rank := range members {
			b.Rank(int(rank)).Add(dag.Op{Kind: dag.Coll, Subkind: dag.Allreduce, Bytes: 1 << 30, Comm: comm})
		}
	}
	trace := b.Trace()
	apart := sharedRun(t, trace, false, nil)
	same := sharedRun(t, trace, false, []int32{0, 1, 2, 3, 0, 1, 2, 3})
	for rank := range apart {
		// Messages of 1/2, 1/4, 1/4 and 1/2 of the data alternate: the last one of the first job does not wait.
		want := [...]float64{2.5 / 1.5, 2}[rank/4]
		if ratio := float64(same[rank]) / float64(apart[rank]); math.Abs(ratio/want-1) > 1e-3 {
			t.Errorf("rank %d: %.4f times as long, expected %.4f", rank, ratio, want)
		}
	}
}
