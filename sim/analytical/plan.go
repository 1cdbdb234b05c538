package analytical

import (
	"fmt"
	"hash/maphash"
	"math/bits"
)

// phase is one pass of a chunk through an algorithm on a ring. It is the same for all NPUs, except for their positions
// in the ring.
type phase struct {
	op        Collective
	algorithm AlgorithmName
	backward  bool   // direction around the ring
	minTree   bool   // DoubleBinaryTree: the tree whose root is the lowest NPU
	queue     int32  // queue of the NPU
	comm      int32  // communicator that forms the ring; -1: the ring is n equidistant NPUs
	n, stride int32  // number and distance of the NPUs of the ring
	window    int32  // number of steps that start at once
	sends     int32  // messages sent by each NPU
	cycle     int32  // period of the reduction pattern in steps
	size, out uint64 // bytes of the chunk per NPU before and after
	message   uint64 // bytes per message; HalvingDoubling: of the first message
	delay     uint64 // end-point delay in nanoseconds
	reduction uint64 // reduction time of a message in nanoseconds; not for HalvingDoubling
	custom    *Program
}

// customAlgorithm marks a phase run by a program.
const customAlgorithm AlgorithmName = 255

// plan is the phases of a chunk, a part of planTable.phases.
type plan struct {
	first, count int32
}

// planTable contains the phases of all plans without duplicates.
type planTable struct {
	phases []phase
	known  map[uint64][]plan // by hash
	seed   maphash.Seed
	last   plan // result of the last lookup
}

func newPlanTable() planTable {
	return planTable{known: make(map[uint64][]plan), seed: maphash.MakeSeed()}
}

// intern returns the plan with the given phases.
func (t *planTable) intern(phases []phase) plan {
	if t.same(t.last, phases) {
		return t.last
	}
	var h maphash.Hash
	h.SetSeed(t.seed)
	for i := range phases {
		maphash.WriteComparable(&h, phases[i])
	}
	key := h.Sum64()
	for _, p := range t.known[key] {
		if t.same(p, phases) {
			t.last = p
			return p
		}
	}
	p := plan{int32(len(t.phases)), int32(len(phases))}
	t.phases = append(t.phases, phases...)
	t.known[key] = append(t.known[key], p)
	t.last = p
	return p
}

func (t *planTable) same(p plan, phases []phase) bool {
	if int(p.count) != len(phases) {
		return false
	}
	for i := range phases {
		if t.phases[int(p.first)+i] != phases[i] {
			return false
		}
	}
	return true
}

// chunker creates the plans of the chunks of a collective at an NPU.
type chunker struct {
	e        *engine
	npu      int32
	coll     Collective
	rings    []ring
	involved uint32 // one bit per ring
	comm     int32  // communicator that forms the only ring; -1 if rings are dimensions
	row      row    // NPUs of the collective
	tag      uint64 // of the first chunk

	order  []int // order of rings
	phases []phase
	size   uint64 // size of the chunk after the phases so far
}

// chunk returns the plan of the next chunk with the given tag, and the remaining size.
func (c *chunker) chunk(o *op, tag, chunk, left uint64) (plan, uint64, error) {
	c.order = c.order[:0]
	for i := range c.rings {
		if c.coll == AllGather {
			i = len(c.rings) - 1 - i
		}
		c.order = append(c.order, i)
	}
	switch e := c.e; {
	case e.rotation != nil:
		turn := &e.rotation[c.npu]
		k := int(*turn) % len(c.order)
		c.order = append(append([]int(nil), c.order[k:]...), c.order[:k]...)
		if *turn++; int(*turn) == len(c.rings) {
			*turn = 0
		}
	case c.byThemis():
		p := e.themis.plan(c, chunkKey{o.comm, tag, c.row}, left, chunk)
		c.order, chunk = append(c.order[:0], p.dims...), p.chunk
	}
	left -= min(chunk, left)
	c.size, c.phases = chunk, c.phases[:0]
	if err := c.makePhases(); err != nil {
		return plan{}, 0, err
	}
	if len(c.phases) == 0 {
		return plan{}, 0, fmt.Errorf("the %v uses no dimension of the network", c.coll)
	}
	return c.e.plans.intern(c.phases), left, nil
}

// byThemis reports whether Themis selects the order of the dimensions.
func (c *chunker) byThemis() bool {
	return c.e.themis != nil && c.coll != AllToAll && c.comm < 0
}

// makePhases creates the phases of a chunk.
func (c *chunker) makePhases() error {
	var involved []int
	for _, i := range c.order {
		if c.involved>>i&1 != 0 {
			involved = append(involved, i)
		}
	}
	if c.coll != AllReduce || !c.e.system.LocalBWAware {
		for _, i := range involved {
			if err := c.add(c.coll, i, (*counters).next); err != nil {
				return err
			}
		}
		return nil
	}
	turning := len(involved) - 1
	if c.byThemis() {
		turning = len(involved)
	}
	for _, i := range involved[:max(turning, 0)] {
		if err := c.add(ReduceScatter, i, (*counters).nextLower); err != nil {
			return err
		}
	}
	if turning >= 0 && turning < len(involved) {
		if err := c.add(AllReduce, involved[turning], (*counters).nextLower); err != nil {
			return err
		}
	}
	for k := turning - 1; k >= 0; k-- {
		if err := c.add(AllGather, involved[k], (*counters).nextUpper); err != nil {
			return err
		}
	}
	return nil
}

// next, nextLower and nextUpper return the next of a dimension's queues (all queues, their lower half or their upper
// half), and whether its phase goes backward around a ring.
func (c *counters) next(queues int) (queue int, backward bool) {
	queue = int(c.any)
	if c.any++; int(c.any) >= queues {
		c.any = 0
	}
	return queue, queues > 1 && queue >= queues/2
}

func (c *counters) nextLower(queues int) (queue int, backward bool) {
	queue = int(c.lower)
	if c.lower++; int(c.lower) >= queues/2 {
		c.lower = 0
	}
	return queue, false
}

func (c *counters) nextUpper(queues int) (queue int, backward bool) {
	queue = int(c.upper)
	if c.upper++; int(c.upper) >= queues {
		c.upper = uint16(queues / 2)
	}
	return queue, true
}

// add adds a phase.
func (c *chunker) add(op Collective, i int, next func(*counters, int) (int, bool)) error {
	e, r := c.e, &c.rings[i]
	queues := e.system.Queues
	count := &e.counters[int(c.npu)*e.dims+r.dim]
	queue, backward := next(count, queues)
	p := phase{
		op: op, algorithm: r.algorithm.Name, backward: backward, queue: int32(r.dim*queues + queue), comm: c.comm,
		n: r.n, stride: r.stride, window: 1, size: c.size, out: c.size, delay: uint64(e.system.EndpointDelay),
	}
	if c.comm >= 0 {
		p.delay = groupDelay
	}
	n := uint64(p.n)
	switch p.algorithm {
	case DoubleBinaryTree:
		if c.comm >= 0 || p.n&(p.n-1) != 0 {
			return fmt.Errorf("doubleBinaryTree needs a dimension whose size is a power of two, found %d NPUs%s", p.n,
				map[bool]string{true: " of a communicator"}[c.comm >= 0])
		}
		p.op, p.message = AllReduce, p.size
		p.minTree = count.trees[c.coll]%2 == 1
		count.trees[c.coll]++
	case HalvingDoubling:
		if p.n&(p.n-1) != 0 || op == AllToAll {
			return fmt.Errorf("halvingDoubling needs a power of two of NPUs and no alltoall, found %d NPUs and %v", p.n,
				op)
		}
		steps := int32(bits.Len32(uint32(p.n)) - 1)
		p.sends, p.cycle, p.message = steps, steps, p.size/2
		switch op {
		case AllReduce:
			p.sends = 2 * steps
		case AllGather:
			p.message, p.out = p.size, p.size*n
		case ReduceScatter:
			p.out = p.size / n
		}
	default:
		p.message = p.size / n
		p.sends, p.cycle = p.n-1, p.n
		switch op {
		case AllReduce:
			p.sends *= 2
		case AllGather:
			p.message, p.out = p.size, p.size*n
		case ReduceScatter:
			p.out = p.size / n
		case AllToAll:
			if p.algorithm == RingAlgorithm {
				sends := int64(p.n) * int64(p.n-1) / 2
				if sends > 1<<30 {
					return fmt.Errorf("an alltoall on a ring of %d NPUs has too many steps", p.n)
				}
				p.sends = int32(sends)
			}
		}
		if p.algorithm == Direct {
			p.window = p.n - 1
			if w := r.algorithm.Window; w > 0 {
				p.window = min(int32(w), p.window)
			}
			if p.cycle = 2 * p.window; c.comm >= 0 {
				p.cycle = p.window * p.n
			}
		}
	}
	if hi, lo := bits.Mul64(p.size, n); hi != 0 || lo>>62 != 0 {
		return fmt.Errorf("a chunk of %d bytes on %d NPUs is too large", p.size, p.n)
	}
	p.reduction = e.system.reductionTime(p.message)
	c.phases = append(c.phases, p)
	c.size = p.out
	return nil
}

// groupDelay is the end-point delay of collectives of communicators that lack some NPUs, in nanoseconds.
const groupDelay = 10

// reductionTime returns the reduction time of a message: two reads and a write, each truncated to nanoseconds.
func (s *System) reductionTime(bytes uint64) uint64 {
	if s.LocalMemBW == 0 {
		return 0
	}
	t, ok := truncate(float64(bytes) / (s.LocalMemBW * 1e9) * 1e9)
	if !ok {
		return 1 << 61
	}
	return 3 * t
}
