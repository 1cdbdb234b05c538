package analytical

import (
	"runtime"
	"testing"

	"github.com/tracedag/tracedag/dag"
)

// TestSharedGraphs compiles pairs of ranks. Ranks share a graph if all columns that a graph depends on have the same
// values, whether or not they are in the same memory. It runs on one processor, for a goroutine shares the graphs of the
// ranks that it compiles itself.
func TestSharedGraphs(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	pair := func(change func(r *dag.Rank)) *dag.Trace {
		b := dag.NewBuilder(2)
		calc := b.Rank(0).Calc(dag.Microsecond)
		b.Rank(0).Add(dag.Op{Kind: dag.Coll, Subkind: dag.Allreduce, Bytes: 1 << 20}, calc)
		b.Rank(0).Calc(3 * dag.Microsecond)
		trace := b.Trace()
		trace.Comms = []dag.Comm{dag.World(2), dag.World(2)}
		trace.Ranks[1] = trace.Ranks[0]
		if change != nil {
			trace.Ranks[1] = trace.Ranks[0].Clone()
			change(trace.Ranks[1])
		}
		return trace
	}
	const op = 1 // the collective
	for _, c := range []struct {
		name   string
		change func(r *dag.Rank)
		shared bool
	}{
		{"same memory", nil, true},
		{"other memory", func(*dag.Rank) {}, true},
		{"name", func(r *dag.Rank) { r.Name.Append(op, "gradients") }, true},
		{"measured times", func(r *dag.Rank) { r.MeasuredStart = []dag.Time{1, 2, 3} }, true},
		{"kind", func(r *dag.Rank) { r.Kind[2] = dag.Mem }, false},
		{"subkind", func(r *dag.Rank) { r.Subkind.Set(op, dag.Allgather) }, false},
		{"bytes", func(r *dag.Rank) { r.Bytes.Set(op, 1<<21) }, false},
		{"peer", func(r *dag.Rank) { r.Peer.Set(op, 1) }, false},
		{"tag", func(r *dag.Rank) { r.Tag.Set(op, 7) }, false},
		{"communicator", func(r *dag.Rank) { r.Comm.Set(op, 1) }, false},
		{"duration", func(r *dag.Rank) { r.Duration.Set(0, 2*dag.Microsecond) }, false},
		{"flops", func(r *dag.Rank) { r.Flops.Set(0, 5) }, false},
		{"release", func(r *dag.Rank) { r.Release.Set(op, dag.Nanosecond) }, false},
		{"stream", func(r *dag.Rank) { r.Stream.Set(0, 3) }, false},
		{"host", func(r *dag.Rank) { r.Host.Set(0, 1) }, false},
		{"dims", func(r *dag.Rank) { r.Dims.Set(op, 1) }, false},
		{"priority", func(r *dag.Rank) { r.Priority.Set(op, 300) }, false},
		{"dependencies", func(r *dag.Rank) { r.Deps = dag.Edges{} }, false},
		{"start dependencies", func(r *dag.Rank) { r.StartDeps, r.Deps = r.Deps, dag.Edges{} }, false},
	} {
		p, err := Compile(dag.FromTrace(pair(c.change)))
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		if shared := p.graphs[0] == p.graphs[1]; shared != c.shared {
			t.Errorf("%s: ranks share a graph: %v, expected %v", c.name, shared, c.shared)
		}
	}
}
