package sim

import (
	"math/bits"
	"slices"
)

// Op.first holds the dependents of an op if there are at most nearInOp of them, each at most farthestInOp ops after the
// op, the usual case: listInOp is set, and the lowest bits are the distances, inOpBits each, the first dependent lowest.
// 0 ends the list.
//
// Otherwise Op.first is the start of a list in the dependents of the rank: one list after the other, in 16-bit words. A
// dependent up to nearMost ops after its op takes one word: the distance, with lastDependent in the last dependent of a
// list. Any other takes three: farDependent instead of the distance, and the lower and upper half of its index within
// the rank.
const (
	listInOp     = 1 << 31
	noDependents = listInOp
	nearInOp     = 3
	inOpBits     = 10
	farthestInOp = 1<<inOpBits - 1
	inOpMask     = 1<<(nearInOp*inOpBits) - 1

	lastDependent = 1 << 15
	farDependent  = 0
	nearMost      = lastDependent - 1
)

// AppendDependents appends the ops that depend on the end of op i to list, in order.
func (p *Program) AppendDependents(list []uint32, i uint32) []uint32 {
	op := &p.Ops[i]
	if op.first == noDependents {
		return list
	}
	if p.windows != nil {
		return p.windows.appendDependents(p, list, i)
	}
	if op.first&listInOp != 0 {
		for near := op.first & inOpMask; near != 0; near >>= inOpBits {
			list = append(list, i+near&farthestInOp)
		}
		return list
	}
	words := p.dependents[op.Rank][op.first:]
	for k := 0; ; k++ {
		word := words[k]
		if near := uint32(word) &^ lastDependent; near != farDependent {
			list = append(list, i+near)
		} else {
			list = append(list, p.Start[op.Rank]+(uint32(words[k+1])|uint32(words[k+2])<<16))
			k += 2
		}
		if word&lastDependent != 0 {
			return list
		}
	}
}

// Release marks the end of op i at its dependents, and appends those without further dependencies to ready. It skips
// dependents with any of the given flags.
func (p *Program) Release(ready []uint32, i uint32, skipped uint8) []uint32 {
	op := &p.Ops[i]
	if op.first == noDependents {
		return ready
	}
	if p.windows != nil {
		return p.windows.releaseDependents(p, ready, i, skipped)
	}
	if op.first&listInOp == 0 {
		return p.releaseList(ready, i, skipped)
	}
	for near := op.first & inOpMask; near != 0; near >>= inOpBits {
		d := i + near&farthestInOp
		if dependent := &p.Ops[d]; dependent.Flags&skipped == 0 {
			if dependent.Waits--; dependent.Waits == 0 {
				ready = append(ready, d)
			}
		}
	}
	return ready
}

// releaseList is Release for an op whose dependents are not in Op.first.
func (p *Program) releaseList(ready []uint32, i uint32, skipped uint8) []uint32 {
	op := &p.Ops[i]
	words := p.dependents[op.Rank][op.first:]
	for k := 0; ; k++ {
		word := words[k]
		d := i + uint32(word)&^lastDependent
		if d == i { // farDependent
			d = p.Start[op.Rank] + (uint32(words[k+1]) | uint32(words[k+2])<<16)
			k += 2
		}
		if dependent := &p.Ops[d]; dependent.Flags&skipped == 0 {
			if dependent.Waits--; dependent.Waits == 0 {
				ready = append(ready, d)
			}
		}
		if word&lastDependent != 0 {
			return ready
		}
	}
}

// dependents counts the dependencies of each op and inverts them.
func (c *rankCompiler) dependents() error {
	ops, deps := c.ops, &c.r.Deps
	// The lists of most ops fit into Op.first. Of the others, count the dependents there.
	first, rest := uint32(0), uint64(0)
	for i, end := range deps.End {
		ops[i].Waits = end - first
		for _, off := range deps.Off[first:end] {
			list := &ops[i-int(off)].first
			near, n := *list, uint32(nearInOp)
			switch {
			case near&listInOp == 0:
				*list++
				rest++
				continue
			case uint32(off-1) >= farthestInOp:
				n = inOp(near)
			case near&farthestInOp == 0:
				*list = near | uint32(off)
				continue
			case near&(farthestInOp<<inOpBits) == 0:
				*list = near | uint32(off)<<inOpBits
				continue
			case near&(farthestInOp<<(2*inOpBits)) == 0:
				*list = near | uint32(off)<<(2*inOpBits)
				continue
			}
			*list = n + 1
			rest += uint64(n) + 1
		}
		first = end
	}
	if rest >= listInOp/mostWords {
		return c.fail(0, "belongs to a rank with too many dependencies")
	}
	if rest > 0 {
		c.invertRest(int(rest))
	}
	c.reorder()
	if rest > 0 {
		c.encodeRest(int(rest))
	}
	return nil
}

// inOp returns the number of dependents in an Op.first with listInOp.
func inOp(list uint32) uint32 {
	return uint32(bits.Len32(list&inOpMask)+inOpBits-1) / inOpBits
}

// mostWords is the largest number of words of a dependent.
const mostWords = 3

// invertRest collects the dependents of the ops whose Op.first is the number of dependents, n in all, in inverted, and
// sets Op.first to the end of the list there.
func (c *rankCompiler) invertRest(n int) {
	ops, deps := c.ops, &c.r.Deps
	at := uint32(0)
	for i := range ops {
		if list := &ops[i].first; *list&listInOp == 0 {
			*list, at = at, at+*list
		}
	}
	c.inverted = slices.Grow(c.inverted[:0], n)[:n]
	inverted, first := c.inverted, uint32(0)
	for i, end := range deps.End {
		for _, off := range deps.Off[first:end] {
			if list := &ops[i-int(off)].first; *list&listInOp == 0 {
				inverted[*list] = uint32(i)
				*list++
			}
		}
		first = end
	}
}

// reorder gives dependents the order of the trace where that is not the canonical one.
func (c *rankCompiler) reorder() {
	first := uint32(0)
	for i, end := range c.r.Order.End {
		if end == first {
			continue
		}
		order, list := c.r.Order.Off[first:end], &c.ops[i].first
		if *list&listInOp != 0 {
			near := uint32(0)
			for k, off := range order {
				near |= uint32(off) << (k * inOpBits)
			}
			*list = listInOp | near
		} else {
			reordered := c.inverted[int(*list)-len(order) : *list]
			for k, off := range order {
				reordered[k] = uint32(i + int(off))
			}
		}
		first = end
	}
}

// encodeRest encodes the lists of n dependents in inverted.
func (c *rankCompiler) encodeRest(total int) {
	before := len(c.words)
	c.words = slices.Grow(c.words, mostWords*total)
	words := c.words[before : before+mostWords*total]
	n, begin := 0, uint32(0)
	for i := range c.ops {
		end := c.ops[i].first
		if end&listInOp != 0 {
			continue
		}
		c.ops[i].first = uint32(n)
		last := n
		for _, d := range c.inverted[begin:end] {
			last = n
			if distance := d - uint32(i); distance-1 < nearMost {
				words[n] = uint16(distance)
				n++
			} else {
				words[n], words[n+1], words[n+2] = farDependent, uint16(d), uint16(d>>16)
				n += mostWords
			}
		}
		words[last] |= lastDependent
		begin = end
	}
	c.words = c.words[:before+n]
	c.encoded = append(c.encoded, rankWords{c.rank, len(c.words)})
}

// mostStoredLater is the number of words from which a worker calls storeDependents.
const mostStoredLater = 1 << 16

// rankWords is the end of the dependents of a rank in rankCompiler.words.
type rankWords struct {
	rank, end int
}

// storeDependents stores the encoded dependents in the program: those of neighboring ranks one after the other, since
// ranks that behave alike are mostly run in that order.
func (c *rankCompiler) storeDependents() {
	words, first := slices.Clone(c.words), 0
	for _, e := range c.encoded {
		c.p.dependents[e.rank] = words[first:e.end:e.end]
		first = e.end
	}
	c.words, c.encoded = c.words[:0], c.encoded[:0]
}
