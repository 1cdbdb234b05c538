package analytical

import (
	"context"
	"fmt"
	"math"
	"slices"

	"github.com/tracedag/tracedag/dag"
	"github.com/tracedag/tracedag/dag/attr"
	"github.com/tracedag/tracedag/sim"
)

// compiler compiles the ranks of a program into graphs, batch by batch.
type compiler struct {
	p    *Program
	read dag.Reader
	ctx  context.Context // nil: no limit

	// The last compiled rank and its columns. If the source is stable, further ranks with equal columns share its
	// graph.
	last    *graph
	columns dag.Rank
	stable  bool

	accesses bool // the trace has memory accesses, which attributes describe

	rank    int
	r       *dag.Rank
	g       *graph
	streams []int32 // by lane: stream of the rank
}

func newCompiler(ctx context.Context, p *Program, s dag.Source, h *dag.Header) *compiler {
	c := &compiler{p: p, ctx: ctx, stable: h.Stable, accesses: slices.Contains(h.Kinds, dag.Mem)}
	columns := dag.Replay
	if c.accesses {
		columns = dag.All
	}
	c.read = s.NewReader(columns)
	return c
}

func (c *compiler) batch(b dag.Batch) error {
	if err := sim.Interrupted(c.ctx); err != nil {
		return err
	}
	ranks, err := c.read(b)
	if err != nil {
		return err
	}
	for k := range ranks {
		c.rank, c.r = b.First+k, ranks[k]
		if c.r.Len() == 0 {
			c.p.graphs[c.rank] = noOps
			continue
		}
		if c.last == nil || !c.stable || !c.same() {
			if err := c.compile(); err != nil {
				return err
			}
			c.last, c.columns = c.g, *c.r
		} else if err := c.checkMembership(); err != nil {
			return err
		}
		c.p.graphs[c.rank] = c.last
	}
	return nil
}

// noOps is the graph of all ranks without ops.
var noOps = &graph{ops: make([]op, 1)}

// same reports whether the rank has the graph of the last one.
func (c *compiler) same() bool {
	return sameColumns(&c.columns, c.r) && (!c.accesses || c.columns.Attrs.Equal(&c.r.Attrs))
}

// sameColumns reports whether two ranks have equal values in all columns that affect a graph. Ranks of a trace with one
// DAG for all ranks share these columns.
func sameColumns(a, b *dag.Rank) bool {
	return len(a.Kind) > 0 && dag.Column[dag.Kind](a.Kind).Equal(b.Kind) && a.Subkind.Equal(b.Subkind) &&
		a.Bytes.Equal(b.Bytes) && a.Peer.Equal(b.Peer) && a.Tag.Equal(b.Tag) && a.Comm.Equal(&b.Comm) &&
		a.Duration.Equal(b.Duration) && a.Flops.Equal(b.Flops) && a.Release.Equal(b.Release) &&
		a.Stream.Equal(&b.Stream) && a.Host.Equal(&b.Host) && a.Dims.Equal(&b.Dims) && a.Priority.Equal(&b.Priority) &&
		a.Deps.Equal(&b.Deps) && a.StartDeps.Equal(&b.StartDeps)
}

func (c *compiler) fail(i int, why string) error {
	return &sim.NotCompiledError{Rank: c.rank, Op: i, Kind: c.r.Kind[i], Why: why}
}

// checkOps is the number of ops of a rank between two checks of the context.
const checkOps = 1 << 16

func (c *compiler) compile() error {
	n := c.r.Len()
	if n > sim.MaxOps {
		return fmt.Errorf("rank %d has %d ops, expected at most %d", c.rank, n, sim.MaxOps)
	}
	c.g = &graph{ops: make([]op, n+1), waits: make([]uint32, n), lanes: laneStreams}
	c.streams = c.streams[:0]
	for i := range n {
		if i%checkOps == 0 {
			if err := sim.Interrupted(c.ctx); err != nil {
				return err
			}
		}
		if err := c.op(i); err != nil {
			return err
		}
	}
	c.g.streams = slices.Clone(c.streams)
	c.dependencies()
	c.g.tags = used(c.r.Tag, n)
	c.g.flops = used(c.r.Flops, n)
	c.g.dims = wide(&c.r.Dims, n)
	c.g.priority = wide(&c.r.Priority, n)
	for i, release := range c.r.Release {
		if release != 0 {
			if c.g.release == nil {
				c.g.release = make([]uint64, n)
			}
			c.g.release[i] = c.nanoseconds(release)
		}
	}
	return nil
}

// used returns a copy of a column, or nil if all values are 0.
func used(column dag.Column[int64], n int) []int64 {
	if len(column) == 0 {
		return nil
	}
	values := make([]int64, n)
	copy(values, column)
	return values
}

func wide(column *dag.Narrow, n int) []int32 {
	if column.Len() == 0 {
		return nil
	}
	values := make([]int32, n)
	column.Copy(values, 0)
	return values
}

// nanoseconds converts a time to nanoseconds, rounded to the nearest, and counts roundings.
func (c *compiler) nanoseconds(t dag.Time) uint64 {
	if t%dag.Nanosecond != 0 {
		c.g.rounded++
		t += min(dag.Nanosecond/2, dag.MaxTime-t)
	}
	return uint64(t / dag.Nanosecond)
}

func (c *compiler) op(i int) error {
	r := c.r
	o := &c.g.ops[i]
	if b, d := r.Bytes.At(i), r.Duration.At(i); b < 0 || d < 0 || r.Release.At(i) < 0 || r.Flops.At(i) < 0 {
		return c.fail(i, "has a negative size, time or number of flops")
	}
	duration := r.Duration.At(i)
	*o = op{bytes: uint64(r.Bytes.At(i)), time: max(c.nanoseconds(duration), 1), peer: r.Peer.At(i), comm: r.Comm.At(i),
		lane: laneComm}
	if r.Host.At(i) != 0 {
		o.lane = laneHost
	}
	switch kind := r.Kind[i]; kind {
	case dag.Calc:
		if r.Subkind.At(i) == dag.Marker {
			o.kind = opMarker
			return nil
		}
		o.kind = opCompute
		o.bare = o.bytes == 0 && r.Flops.At(i) == 0 && duration > 0
		if o.lane != laneHost {
			if duration == 0 && r.Flops.At(i) > 0 {
				c.g.untimed++
			}
			return c.chooseLane(i, o)
		}
	case dag.Mem:
		o.kind, o.peer = opMemory, 0
		if c.accesses {
			access, _ := attr.ParseMemAccess(r.Attrs.At(i))
			if access.Gather < 0 || access.Gather > math.MaxInt32 {
				return c.fail(i, fmt.Sprintf("gathers the parts of %d ranks, expected 1..%d", access.Gather,
					math.MaxInt32))
			}
			o.peer, o.local = int32(access.Gather), access.Local
		}
		if c.p.overlapped {
			return c.chooseLaneOf(i, memoryPlace, o)
		}
	case dag.Send, dag.Recv:
		if o.kind = opSend; kind == dag.Recv {
			o.kind, o.lane = opRecv, laneUnneeded
		}
		if o.peer < 0 && (kind == dag.Send || o.peer != dag.AnySource) || int(o.peer) >= len(c.p.graphs) {
			return c.fail(i, fmt.Sprintf("is a %v with rank %d, expected 0..%d", kind, o.peer, len(c.p.graphs)-1))
		}
		if r.Host.At(i) != 0 {
			return c.fail(i, fmt.Sprintf("is a %v on the host", kind))
		}
	case dag.Coll:
		return c.collective(i, o)
	default:
		why := fmt.Sprintf("is of kind %v, which the analytical backend does not run", kind)
		if kind == dag.IO {
			why += "; lower storage accesses first (--lower directdrive)"
		}
		return c.fail(i, why)
	}
	return nil
}

// chooseLane assigns the lane of its stream to a calc.
func (c *compiler) chooseLane(i int, o *op) error {
	return c.chooseLaneOf(i, c.r.Stream.At(i), o)
}

// memoryPlace is the stream of the memory accesses of a program with overlapped accesses, unlike any in a trace.
const memoryPlace = -1

func (c *compiler) chooseLaneOf(i int, stream int32, o *op) error {
	k := slices.Index(c.streams, stream)
	if k < 0 {
		k = len(c.streams)
		if k == maxLanes-laneStreams {
			return c.fail(i, fmt.Sprintf("is a calc on stream %d of its rank, expected at most %d streams", k+1, k))
		}
		c.streams = append(c.streams, stream)
		c.g.lanes++
	}
	o.lane = uint8(laneStreams + k)
	return nil
}

func (c *compiler) collective(i int, o *op) error {
	subkind := c.r.Subkind.At(i)
	o.kind = opCollective
	switch subkind {
	case dag.Allreduce:
		o.coll = AllReduce
	case dag.Allgather:
		o.coll = AllGather
	case dag.ReduceScatter:
		o.coll = ReduceScatter
	case dag.Alltoall:
		o.coll = AllToAll
	case dag.Bcast:
		o.kind = opReplayed
	default:
		return c.fail(i, fmt.Sprintf("is a %v; lower it first (--lower collectives)", subkind))
	}
	if c.r.Host.At(i) != 0 {
		return c.fail(i, fmt.Sprintf("is the %v on the host", subkind))
	}
	return c.member(i, o)
}

// member returns an error unless the rank is in the communicator of its collective.
func (c *compiler) member(i int, o *op) error {
	if uint32(o.comm) >= uint32(len(c.p.groups)) {
		return c.fail(i, fmt.Sprintf("has communicator %d, expected 0..%d", o.comm, len(c.p.groups)-1))
	}
	if c.p.groups[o.comm].position(int32(c.rank)) < 0 {
		return c.fail(i, fmt.Sprintf("is the %v of communicator %d, which does not contain the rank",
			c.r.Subkind.At(i), o.comm))
	}
	return nil
}

// checkMembership is member for all collectives of a rank that shares the graph of the previous rank.
func (c *compiler) checkMembership() error {
	if len(c.p.groups) == 1 { // the communicator of all ranks
		return nil
	}
	for i := range c.last.waits {
		if o := &c.last.ops[i]; o.kind == opCollective || o.kind == opReplayed {
			if err := c.member(i, o); err != nil {
				return err
			}
		}
	}
	return nil
}

// dependencies inverts the dependencies of the rank.
func (c *compiler) dependencies() {
	g, r := c.g, c.r
	first, dependents := c.invert(&r.Deps)
	for i := range g.ops {
		g.ops[i].first = first[i]
	}
	g.dependents = dependents
	if len(r.StartDeps.Off) > 0 {
		g.startFirst, g.startDependents = c.invert(&r.StartDeps)
	}
	for i, w := range g.waits {
		if w == 0 {
			g.roots = append(g.roots, uint32(i))
		}
	}
}

// invert returns the dependents of each op in ascending order, and the start of each op's list. It adds to the waits of
// ops.
func (c *compiler) invert(e *dag.Edges) (first, dependents []uint32) {
	n := len(c.g.waits)
	first = make([]uint32, n+1)
	dependents = make([]uint32, len(e.Off))
	start := uint32(0)
	for i, end := range e.End {
		c.g.waits[i] += end - start
		for _, off := range e.Off[start:end] {
			first[i-int(off)]++
		}
		start = end
	}
	sum := uint32(0)
	for i, count := range first {
		sum += count
		first[i] = sum
	}
	for i := len(e.End) - 1; i >= 0; i-- {
		for _, off := range e.Of(i) {
			first[i-int(off)]--
			dependents[first[i-int(off)]] = uint32(i)
		}
	}
	return first, dependents
}

// noTime is later than any time.
const noTime = math.MaxUint64
