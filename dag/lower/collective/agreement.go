package collective

import (
	"fmt"
	"math"
	"sync/atomic"

	"github.com/tracedag/tracedag/dag"
	"github.com/tracedag/tracedag/dag/attr"
)

// docs/reference/lowering.md defines the sizes that members of a collective state, and the values they must agree on.

// describe sets the instance from the op of the member at position 0.
func (in *instances) describe(m *member) error {
	kind := m.r.Subkind.At(m.op)
	if !kind.Of(dag.Coll) {
		return fmt.Errorf("rank %d, op %d: collective %q, expected one such as %q", m.rank, m.op, kind, dag.Allreduce)
	}
	inst := instance{kind: kind, op: int32(m.op), table: -1}
	if kind.Rooted() && in.lowered[kind] {
		root, ok := m.comm.position(m.root())
		if !ok {
			return fmt.Errorf("rank %d, op %d: root %d of %s, expected a member of communicator %d",
				m.rank, m.op, m.r.Peer.At(m.op), kind, m.id)
		}
		inst.root = int32(root)
	}
	inst.bytes, _ = agreed(m.r, m.op)
	if in.elements[kind] {
		element, _ := attr.ParseElement(m.r.Attrs.At(m.op))
		inst.element = uint32(min(element, math.MaxUint32))
	}
	m.comm.instances[m.k] = inst
	return nil
}

// root returns the rank of the root of a rooted collective. An unknown root is the first member.
func (m *member) root() int32 {
	if root := m.r.Peer.At(m.op); root != dag.UnknownRoot {
		return root
	}
	return m.comm.rank(0)
}

// agreed returns the size on which all members of a collective must agree, and whether there is one. Members that only
// receive may state it as received bytes.
func agreed(r *dag.Rank, op int) (size int64, ok bool) {
	switch r.Subkind.At(op) {
	case dag.Bcast, dag.Reduce:
		return max(r.Bytes.At(op), r.RecvBytes.At(op)), true
	case dag.Allreduce, dag.Gather, dag.Allgather, dag.Alltoall, dag.ReduceScatter, dag.Scan, dag.Exscan:
		return r.Bytes.At(op), true
	}
	return 0, false
}

// own returns the size of the member's own block as its op states it.
func own(r *dag.Rank, op int) int64 {
	switch r.Subkind.At(op) {
	case dag.Gatherv, dag.Allgatherv, dag.Alltoallv:
		return r.Bytes.At(op)
	case dag.Scatterv:
		if size := r.RecvBytes.At(op); size != 0 {
			return size
		}
		return r.Bytes.At(op)
	case dag.Scatter, dag.ReduceScatter:
		return r.RecvBytes.At(op)
	}
	return 0
}

// hasTable reports whether the members of a collective may have different sizes.
func hasTable(kind dag.Subkind) bool {
	switch kind {
	case dag.Gatherv, dag.Scatterv, dag.Allgatherv, dag.Alltoallv, dag.ReduceScatter:
		return true
	}
	return false
}

// makeTables allocates the tables of the instances to lower.
func (in *instances) makeTables() {
	for _, c := range in.comms {
		if c == nil {
			continue
		}
		cells := 0
		for k := range c.instances {
			if kind := c.instances[k].kind; hasTable(kind) && in.lowered[kind] {
				c.instances[k].table = int64(cells)
				cells += c.size + 1
			}
		}
		c.tables = make([]int64, cells)
	}
}

// check compares a member's op with the instance, and enters its own size in the table.
func (in *instances) check(m *member) error {
	inst := &m.comm.instances[m.k]
	kind := m.r.Subkind.At(m.op)
	if kind != inst.kind {
		return m.differs(kind.String(), inst.kind.String())
	}
	if !in.lowered[kind] {
		return nil
	}
	isRoot := false
	if kind.Rooted() {
		root := m.comm.rank(int(inst.root))
		if peer := m.root(); peer != root {
			return m.differs(fmt.Sprintf("%s with root %d", kind, peer), fmt.Sprintf("root %d", root))
		}
		isRoot = m.position == int(inst.root)
	}
	size, common := agreed(m.r, m.op)
	block := own(m.r, m.op)
	switch {
	case isRoot && kind == dag.Scatter:
		size, block = m.r.Bytes.At(m.op), 0
	case isRoot && kind == dag.Scatterv:
		block = 0 // the root does not send its own block
	}
	limit := math.MaxInt64 / int64(m.comm.size) // keeps sums over all members in range
	for _, s := range [...]int64{size, block, min(0, m.r.Bytes.At(m.op)), min(0, m.r.RecvBytes.At(m.op))} {
		if s < 0 || s > limit {
			return fmt.Errorf("rank %d, op %d: %s of %d bytes, expected 0..%d", m.rank, m.op, kind, s, limit)
		}
	}
	if common && size != inst.bytes {
		return m.differs(fmt.Sprintf("%s of %d bytes", kind, size), fmt.Sprintf("%d bytes", inst.bytes))
	}
	if isRoot && kind == dag.Scatter {
		inst.bytes = size
	}
	if kind == dag.Alltoallv {
		if err := m.weigh(inst); err != nil {
			return err
		}
	}
	if m.later {
		atomic.StoreUint32(&inst.later, 1)
	}
	if inst.table >= 0 {
		m.comm.tables[inst.table+int64(m.position)+1] = block // sumTables computes the prefix sums
	}
	return nil
}

// statedCounts returns the bytes by partner that the op states; ok is false if it states none.
func (m *member) statedCounts() (c attr.Counts, ok bool, err error) {
	c, ok = attr.ParseCounts(m.r.Attrs.At(m.op))
	if !ok {
		return c, false, nil
	}
	for _, list := range [...]struct {
		name   string
		counts []int64
		sum    int64
	}{{"sends", c.Send, m.r.Bytes.At(m.op)}, {"receives", c.Recv, m.r.RecvBytes.At(m.op)}} {
		if len(list.counts) != m.comm.size {
			return c, false, fmt.Errorf("rank %d, op %d: bytes of %d partners that it %s, expected %d", m.rank, m.op,
				len(list.counts), list.name, m.comm.size)
		}
		rest := list.sum
		for _, n := range list.counts {
			if n > rest {
				rest = -1
				break
			}
			rest -= n
		}
		if rest != 0 {
			return c, false, fmt.Errorf("rank %d, op %d: the bytes by partner that it %s do not sum to %d", m.rank,
				m.op, list.name, list.sum)
		}
	}
	return c, true, nil
}

// counts returns the bytes by partner, equal parts of the sums if the op states none.
func (m *member) counts() (sends, recvs []int64) {
	if c, ok, err := m.statedCounts(); ok && err == nil {
		return c.Send, c.Recv
	}
	n := m.comm.size
	for j := range n {
		sends = append(sends, partSize(m.r.Bytes.At(m.op), n, j))
		recvs = append(recvs, partSize(m.r.RecvBytes.At(m.op), n, j))
	}
	return sends, recvs
}

// weigh notes that an instance has counts by partner, and adds a hash of each count to its balance: plus at the sender,
// minus at the receiver.
func (m *member) weigh(inst *instance) error {
	_, stated, err := m.statedCounts()
	if err != nil {
		return err
	}
	sends, recvs := m.counts()
	sum := uint64(0)
	for j := range sends {
		sum += weight(m.position, j, sends[j]) - weight(j, m.position, recvs[j])
	}
	atomic.AddUint64(&inst.balance, sum)
	if stated {
		atomic.StoreUint32(&inst.counted, 1)
	}
	return nil
}

// weight returns a hash of a count, by the finalizer of splitmix64.
func weight(from, to int, count int64) uint64 {
	mix := func(x uint64) uint64 {
		x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
		x = (x ^ x>>27) * 0x94d049bb133111eb
		return x ^ x>>31
	}
	return mix(mix(uint64(from)<<32|uint64(uint32(to))) + mix(uint64(count)+0x9e3779b97f4a7c15))
}

// differs returns the error for a member's op that disagrees with that of the member at position 0.
func (m *member) differs(found, expected string) error {
	return fmt.Errorf("rank %d, op %d, collective %d of communicator %d: %s, expected %s as in rank %d, op %d",
		m.rank, m.op, m.k, m.id, found, expected, m.comm.rank(0), m.comm.instances[m.k].op)
}

// sumTables computes the prefix sums of the tables and the bytes of their instances. It drops the tables of
// reduce-scatters that state no blocks; Participant.splitsTotal divides these.
func (in *instances) sumTables() error {
	for id, c := range in.comms {
		if c == nil || len(c.tables) == 0 {
			continue
		}
		for k := range c.instances {
			inst := &c.instances[k]
			if inst.table < 0 {
				continue
			}
			sum, most := int64(0), int64(0)
			table := c.table(inst) // of members at 1 and above
			inst.uneven = inst.counted != 0
			for i, size := range table {
				inst.uneven = inst.uneven || i > 1 && size != table[1]-table[0]
				sum += size
				most = max(most, size)
				table[i] = sum
			}
			switch {
			case inst.kind == dag.Alltoallv && inst.counted != 0 && inst.balance != 0:
				return fmt.Errorf("rank %d, op %d, collective %d of communicator %d: members of the %s disagree on "+
					"the bytes that one sends to another", c.rank(0), inst.op, k, id, inst.kind)
			case inst.kind == dag.Alltoallv:
				inst.bytes = most
			case inst.kind != dag.ReduceScatter:
				inst.bytes = sum
			case sum == 0:
				inst.table = -1
			case sum != inst.bytes:
				return fmt.Errorf("rank %d, op %d, collective %d of communicator %d: the members of the %s receive %d "+
					"bytes together, expected %d", c.rank(0), inst.op, k, id, inst.kind, sum, inst.bytes)
			}
		}
	}
	return nil
}

// checkBlock compares the received bytes of a member of a scatter with its part of the root's data.
func (m *member) checkBlock() error {
	if inst := &m.comm.instances[m.k]; inst.kind != dag.Scatter || m.position == int(inst.root) {
		return nil
	}
	c := m.participant()
	if size := own(m.r, m.op); size != 0 && size != c.block(c.Me).bytes {
		return fmt.Errorf("rank %d, op %d, collective %d of communicator %d: receives %d bytes of a scatter of %d "+
			"over %d members, expected %d", m.rank, m.op, m.k, m.id, size, c.Bytes, c.Members, c.block(c.Me).bytes)
	}
	return nil
}
