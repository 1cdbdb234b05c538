package sim

import "sync"

// tagTable maps pairs of communicator and tag to numbers. A tag of communicator 0 that fits into 31 bits is its own
// number; other pairs get numbers from 1<<31. Numbers depend on the order in which ranks are compiled, so they are only
// valid for tests of equality.
type tagTable struct {
	mutex sync.RWMutex
	index map[commTag]uint32
	pairs []commTag
}

type commTag struct {
	comm int32
	tag  int64
}

const firstPair = 1 << 31

func newTagTable() *tagTable {
	return &tagTable{index: make(map[commTag]uint32)}
}

func (t *tagTable) number(comm int32, tag int64) uint32 {
	pair := commTag{comm, tag}
	t.mutex.RLock()
	n, known := t.index[pair]
	t.mutex.RUnlock()
	if known {
		return n
	}
	t.mutex.Lock()
	defer t.mutex.Unlock()
	if n, known = t.index[pair]; !known {
		n = firstPair + uint32(len(t.pairs))
		t.index[pair] = n
		t.pairs = append(t.pairs, pair)
	}
	return n
}

// tagCache caches a tagTable for one goroutine.
type tagCache struct {
	table *tagTable
	known [1 << 12]knownTag
}

type knownTag struct {
	commTag
	number uint32 // 0: none
}

func (c *tagCache) number(comm int32, tag int64) uint32 {
	if comm == 0 && uint64(tag) < firstPair {
		return uint32(tag)
	}
	k := &c.known[hash(uint32(tag), uint32(comm)^uint32(tag>>32))%uint32(len(c.known))]
	if pair := (commTag{comm, tag}); k.number == 0 || k.commTag != pair {
		*k = knownTag{pair, c.table.number(comm, tag)}
	}
	return k.number
}

func (t *tagTable) tag(n uint32) int64 {
	if n < firstPair {
		return int64(n)
	}
	return t.pairs[n-firstPair].tag
}

// comm returns the communicator of a number.
func (t *tagTable) comm(n uint32) int32 {
	if n < firstPair {
		return 0
	}
	return t.pairs[n-firstPair].comm
}
