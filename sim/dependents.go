package sim

import "slices"

// The dependents of a rank's ops are one list after the other, in 16-bit words. A dependent up to nearMost ops after
// its op, the usual case, takes one word: the distance, with lastDependent in the last dependent of a list. Any other
// takes three: farDependent instead of the distance, and the lower and upper half of its index within the rank.
const (
	lastDependent = 1 << 15
	farDependent  = 0
	nearMost      = lastDependent - 1
)

// AppendDependents appends the ops that depend on the end of op i to list, in order.
func (p *Program) AppendDependents(list []uint32, i uint32) []uint32 {
	op := &p.Ops[i]
	if op.first == NoOp {
		return list
	}
	if p.windows != nil {
		return p.windows.appendDependents(p, list, i)
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
	if op.first == NoOp {
		return ready
	}
	if p.windows != nil {
		return p.windows.releaseDependents(p, ready, i, skipped)
	}
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
	c.starts = slices.Grow(c.starts[:0], len(ops)+1)[:len(ops)+1]
	clear(c.starts)
	starts, first := c.starts, uint32(0)
	for i, end := range deps.End {
		ops[i].Waits = end - first
		for _, off := range deps.Off[first:end] {
			starts[i-int(off)]++
		}
		first = end
	}
	total := uint32(0)
	for i := range starts {
		total += starts[i]
		starts[i] = total // the end of the list; filling it backwards turns this into its start
	}
	c.inverted = slices.Grow(c.inverted[:0], int(total))[:total]
	inverted := c.inverted
	for i := len(deps.End) - 1; i >= 0; i-- {
		first := uint32(0)
		if i > 0 {
			first = deps.End[i-1]
		}
		for _, off := range deps.Off[first:deps.End[i]] {
			start := &starts[i-int(off)]
			*start--
			inverted[*start] = uint32(i)
		}
	}
	first = 0
	for i, end := range c.r.Order.End {
		for k, off := range c.r.Order.Off[first:end] {
			inverted[starts[i]+uint32(k)] = uint32(i + int(off))
		}
		first = end
	}
	return c.encodeDependents()
}

// encodeDependents encodes the lists of dependents.
func (c *rankCompiler) encodeDependents() error {
	const mostWords = 3 // of a dependent
	if len(c.inverted) >= NoOp/mostWords {
		return c.fail(0, "belongs to a rank with too many dependencies")
	}
	before := len(c.words)
	c.words = slices.Grow(c.words, mostWords*len(c.inverted))
	words := c.words[before : before+mostWords*len(c.inverted)]
	n := 0
	for i := range c.ops {
		list := c.inverted[c.starts[i]:c.starts[i+1]]
		if len(list) == 0 {
			c.ops[i].first = NoOp
			continue
		}
		c.ops[i].first = uint32(n)
		last := n
		for _, d := range list {
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
	}
	if n == 0 {
		return nil
	}
	c.words = c.words[:before+n]
	c.encoded = append(c.encoded, rankWords{c.rank, len(c.words)})
	return nil
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
