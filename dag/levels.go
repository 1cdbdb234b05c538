package dag

// levels finds the level of every op of a rank, the number of ops in the longest chain of dependencies that ends with
// it, and the earliest start of the op if only calcs take time. It reuses its memory from rank to rank.
type levels struct {
	level   []int32 // by op, from 1; 0 for blocked ops
	start   []Time  // earliest start by op, if only calcs take time
	finish  []Time
	counts  []int64 // ops on each level; counts[0] is unused
	last    Time    // the latest finish
	blocked int64   // ops on a cycle, or waiting for a blocked op

	components components
}

func (l *levels) find(r *Rank) {
	n := r.Len()
	l.level, l.start, l.finish = zeroed(l.level, n), zeroed(l.start, n), zeroed(l.finish, n)
	l.counts, l.last, l.blocked = append(l.counts[:0], 0), 0, 0
	g := r.graph()
	if g.indexOrdered() {
		for op := range n {
			l.visit(r, &g, op)
		}
		return
	}
	l.components.find(&g, func(ops []int32) {
		if l.components.cyclic(&g, ops) {
			l.blocked += int64(len(ops))
			return
		}
		l.visit(r, &g, int(ops[0]))
	})
}

// visit sets level and start of an op. All its dependencies must have been visited, except those on a cycle.
func (l *levels) visit(r *Rank, g *graph, op int) {
	level, start, blocked := int32(0), Time(0), false
	for _, off := range g.deps.Of(op) {
		if p := op - int(off); uint(p) < uint(g.n) {
			level, start = max(level, l.level[p]), max(start, l.finish[p])
			blocked = blocked || l.level[p] == 0
		}
	}
	for _, off := range g.start.Of(op) {
		if p := op - int(off); uint(p) < uint(g.n) {
			level, start = max(level, l.level[p]), max(start, l.start[p])
			blocked = blocked || l.level[p] == 0
		}
	}
	if blocked {
		l.blocked++
		return
	}
	level++
	finish := start
	if r.Kind[op] == Calc {
		finish = addTimes(start, max(0, r.CalcTime(op)))
	}
	l.level[op], l.start[op], l.finish[op] = level, start, finish
	l.last = max(l.last, finish)
	if int(level) == len(l.counts) {
		l.counts = append(l.counts, 0)
	}
	l.counts[level]++
}

// depth returns the highest level.
func (l *levels) depth() int64 {
	return int64(len(l.counts) - 1)
}

// width returns the level with the most ops.
func (l *levels) width(rank int) Width {
	w := Width{Rank: rank}
	for level, ops := range l.counts {
		if ops > w.Ops {
			w.Ops, w.Level = ops, int64(level)
		}
	}
	return w
}

// Widths returns the number of ops by level over all ranks: element 0 counts the ops without dependencies, element k
// those at the end of chains of k+1 ops of their rank. It omits blocked ops.
func Widths(t *Trace) (ops []int64) {
	var l levels
	for _, r := range t.Ranks {
		l.find(r)
		for level, n := range l.counts[1:] {
			if level == len(ops) {
				ops = append(ops, 0)
			}
			ops[level] += n
		}
	}
	return ops
}
