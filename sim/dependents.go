package sim

import "slices"

// Op.first holds the dependents of an op if there are at most nearInOp of them, each at most farthestInOp ops after
// the op, the usual case: listInOp is set, and the lowest bits are the distances, inOpBits each, the first dependent
// lowest. 0 ends the list.
//
// Otherwise Op.first is the start of a list in the dependents of the rank: one list after the other, in 16-bit words.
// A dependent up to nearMost ops after its op takes one word: the distance, with lastDependent in the last dependent
// of a list. Any other takes three: farDependent instead of the distance, and the lower and upper half of its index
// within the rank.
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
	c.long, c.rest = c.long[:0], c.rest[:0]
	first := uint32(0)
	for i, end := range deps.End {
		ops[i].Waits = end - first
		for _, off := range deps.Off[first:end] {
			list := &ops[i-int(off)].first
			near := *list
			switch {
			case near&listInOp == 0 || uint32(off-1) >= farthestInOp:
				c.addToRest(i-int(off), i)
			case near&farthestInOp == 0:
				*list = near | uint32(off)
			case near&(farthestInOp<<inOpBits) == 0:
				*list = near | uint32(off)<<inOpBits
			case near&(farthestInOp<<(2*inOpBits)) == 0:
				*list = near | uint32(off)<<(2*inOpBits)
			default:
				c.addToRest(i-int(off), i)
			}
		}
		first = end
	}
	if len(c.rest) >= listInOp/mostWords {
		return c.fail(0, "belongs to a rank with too many dependencies")
	}
	c.invertRest()
	c.reorder()
	c.encodeRest()
	return nil
}

// addToRest adds an op to the dependents of op on, which do not fit into Op.first. Until encodeRest, Op.first of such
// an op has their number.
func (c *rankCompiler) addToRest(on, op int) {
	list := &c.ops[on].first
	if near := *list & inOpMask; *list&listInOp != 0 {
		c.long, *list = append(c.long, uint32(on)), 0
		for ; near != 0; near >>= inOpBits {
			c.rest = append(c.rest, dependency{uint32(on), uint32(on) + near&farthestInOp})
			*list++
		}
	}
	c.rest = append(c.rest, dependency{uint32(on), uint32(op)})
	*list++
}

// dependency is a dependency of an op of a rank on another.
type dependency struct{ on, op uint32 }

// mostWords is the largest number of words of a dependent.
const mostWords = 3

// invertRest collects the dependents of each of the ops long in inverted, and sets their Op.first to the ends of the
// lists there.
func (c *rankCompiler) invertRest() {
	at := uint32(0)
	for _, on := range c.long {
		list := &c.ops[on].first
		*list, at = at, at+*list
	}
	c.inverted = slices.Grow(c.inverted[:0], len(c.rest))[:len(c.rest)]
	for _, d := range c.rest {
		list := &c.ops[d.on].first
		c.inverted[*list] = d.op
		*list++
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

// encodeRest encodes the lists in inverted.
func (c *rankCompiler) encodeRest() {
	if len(c.long) == 0 {
		return
	}
	before, most := len(c.words), mostWords*len(c.inverted)
	c.words = slices.Grow(c.words, most)
	words := c.words[before : before+most]
	n, begin := 0, uint32(0)
	for _, i := range c.long {
		end := c.ops[i].first
		c.ops[i].first = uint32(n)
		last := n
		for _, d := range c.inverted[begin:end] {
			last = n
			if distance := d - i; distance-1 < nearMost {
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
