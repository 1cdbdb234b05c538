// This file finds what each communication of a recording did, from the best of its sources.

package kineto

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	"github.com/tracedag/tracedag/dag"
	"github.com/tracedag/tracedag/dag/attr"
)

// communication is a collective, send or receive of a rank.
type communication struct {
	at         int32 // device op
	group      int32 // of the recording
	seq        int64 // number on its group; -1: unknown
	bytes      int64
	recv       int64
	own        int64 // part of an uneven alltoall that stays on the rank; -1: unknown
	peer       int32 // in the job: partner or root; -1: unknown
	op         operation
	sized      bool // bytes are known
	grouped    bool // the kernel of the previous one executes it, too
	uneven     bool // an alltoall whose parts differ
	unrelated  bool // no partner is in the trace: only its time counts
	instance   int32
	peerInside int32 // partner as a number in the group; -1: unknown

	counts *attr.Counts // bytes by partner of an uneven alltoall; nil: unknown
}

// group is a process group of a recording.
type group struct {
	name, about string
	members     []int32 // ranks of the job; nil: all ranks
	unknown     bool    // no source names the group
	ordinal     int32   // among those with the same members and description
	comm        int32   // of the job
}

// talk is the communication of a recording.
type talk struct {
	list   []communication // by device op
	groups []group
	of     map[groupKey]int32

	unsized, unnamed int64
	irregular        string // a group whose list of ranks is cut and not regular
	foreign          []string
}

type groupKey struct {
	name, about, ranks int32
	size               int64
}

// communicate finds the communication of the recording.
func (r *recording) communicate() *talk {
	t := &talk{of: make(map[groupKey]int32)}
	enclosing := r.enclose()
	seen := make(map[int32]bool)
	for i := range r.ops {
		o := &r.ops[i]
		if o.class == foreign && !seen[o.name] {
			seen[o.name] = true
			t.foreign = append(t.foreign, r.texts.text(o.name))
		}
		if o.class == communicates {
			t.add(r, int32(i), enclosing[int32(i)])
		}
	}
	return t
}

// enclosure is the innermost marks around the launch of a device op, as indices of marks; -1: none.
type enclosure struct{ record, annotation, group int32 }

// enclose finds the marks around the launch of each communication.
func (r *recording) enclose() map[int32]enclosure {
	ops := make(map[int32][]int32) // by call
	var calls []int32
	for i := range r.ops {
		if o := &r.ops[i]; o.class == communicates && o.correlation >= 0 {
			c := int32(o.correlation)
			if ops[c] == nil {
				calls = append(calls, c)
			}
			ops[c] = append(ops[c], int32(i))
		}
	}
	found := make(map[int32]enclosure, len(calls))
	r.around(calls, func(c int32, open []int32) {
		e := enclosure{-1, -1, -1}
		for k := len(open) - 1; k >= 0; k-- {
			m := &r.marks[open[k]]
			m.launches = true
			switch {
			case m.group && e.group < 0:
				e.group = open[k]
			case m.group:
			case m.record && e.record < 0 && m.args >= 0 && r.args[m.args].present:
				e.record = open[k]
			case !m.record && e.annotation < 0:
				e.annotation = open[k]
			}
		}
		for _, i := range ops[c] {
			found[i] = e
		}
	})
	return found
}

// around calls do with each of the given calls and the marks around its start, the innermost last.
func (r *recording) around(calls []int32, do func(c int32, open []int32)) {
	slices.SortFunc(calls, func(a, b int32) int {
		return cmp.Or(cmp.Compare(r.calls[a].thread, r.calls[b].thread), cmp.Compare(a, b))
	})
	next := 0
	var open, inside []int32
	for _, i := range calls {
		c := &r.calls[i]
		for ; next < len(r.marks) && (r.marks[next].thread < c.thread ||
			r.marks[next].thread == c.thread && r.marks[next].start <= c.start); next++ {
			open = append(r.closed(open, r.marks[next].thread, r.marks[next].start), int32(next))
		}
		open = r.closed(open, c.thread, c.start)
		inside = inside[:0]
		for _, k := range open {
			if r.marks[k].end >= c.start {
				inside = append(inside, k)
			}
		}
		do(i, inside)
	}
}

// closed removes from the open marks those of other threads, and the innermost ones that ended before a time.
func (r *recording) closed(open []int32, thread int32, at dag.Time) []int32 {
	for len(open) > 0 {
		m := &r.marks[open[len(open)-1]]
		if m.thread == thread && m.end >= at {
			break
		}
		open = open[:len(open)-1]
	}
	return open
}

// add adds the communication of a device op.
func (t *talk) add(r *recording, at int32, e enclosure) {
	o := &r.ops[at]
	if o.correlation < 0 {
		e = enclosure{-1, -1, -1}
	}
	if e.group >= 0 && t.addGroup(r, at, e.group) {
		return
	}
	c := communication{at: at, seq: -1, peer: -1, peerInside: -1}
	if k, ok := r.onHost[int64(at)]; ok {
		t.fromMark(r, &c, &r.marks[k])
	} else if o.args >= 0 {
		t.fromArgs(r, &c, &r.args[o.args])
	} else if e.record >= 0 {
		t.fromArgs(r, &c, &r.args[r.marks[e.record].args])
	}
	if c.op <= opNone && e.annotation >= 0 {
		t.fromMark(r, &c, &r.marks[e.annotation])
	}
	if c.op <= opNone {
		c.op = kernelOperation(r.texts.text(o.name))
		c.group = t.unknownGroup()
	}
	t.keep(c)
}

// keep adds a communication and counts what is unknown.
func (t *talk) keep(c communication) {
	if c.op <= opSendRecv {
		t.unnamed++
	} else if c.op == collective(dag.Barrier) {
		c.bytes, c.recv, c.sized = 0, 0, true
	} else if !c.sized {
		t.unsized++
	}
	t.list = append(t.list, c)
}

// addGroup adds the calls of a group that one kernel executes. It returns false if there are none.
func (t *talk) addGroup(r *recording, at, outer int32) bool {
	g := &r.marks[outer]
	first := len(t.list)
	add := func(m *mark) {
		if m.thread != g.thread || m.launches || m.group || m.op <= opNone || !m.record && t.recorded(r, m) {
			return
		}
		m.launches = true // by this kernel
		c := communication{at: at, seq: -1, peer: -1, peerInside: -1, grouped: len(t.list) > first}
		if m.record {
			t.fromArgs(r, &c, &r.args[m.args])
		} else {
			t.fromMark(r, &c, m)
		}
		t.keep(c)
	}
	for k := outer + 1; int(k) < len(r.marks) && r.marks[k].thread == g.thread && r.marks[k].start <= g.end; k++ {
		add(&r.marks[k])
	}
	if len(t.list) == first { // the calls come before the mark of their end
		from := outer
		for from > 0 && r.marks[from-1].thread == g.thread && !r.marks[from-1].launches {
			from--
		}
		for k := from; k < outer; k++ {
			add(&r.marks[k])
		}
	}
	return len(t.list) > first
}

// recorded reports whether an annotation is of a call that has a record with arguments.
func (t *talk) recorded(r *recording, m *mark) bool {
	at, _ := slices.BinarySearchFunc(r.marks, m, func(x mark, y *mark) int {
		return cmp.Or(cmp.Compare(x.thread, y.thread), cmp.Compare(x.start, y.start), cmp.Compare(y.end, x.end))
	})
	for k := at; k >= 0 && k > at-4 && r.marks[k].thread == m.thread; k-- { // around it
		if x := &r.marks[k]; x.record && x.args >= 0 && x.start <= m.start && x.end >= m.end {
			return true
		}
	}
	for k := at + 1; k < len(r.marks) && r.marks[k].thread == m.thread && r.marks[k].start <= m.end; k++ { // in it
		if x := &r.marks[k]; x.record && x.args >= 0 && x.op == m.op {
			return true
		}
	}
	return false
}

// fromArgs fills in what the arguments state.
func (t *talk) fromArgs(r *recording, c *communication, a *commArgs) {
	name := r.texts.text(a.call)
	c.op = operationOf([]byte(name))
	c.sized = a.element > 0
	in, out := mulBytes(a.in, a.element), mulBytes(a.out, a.element)
	switch s, _ := c.op.subkind(); s {
	case dag.Alltoall, dag.Alltoallv:
		if c.op = collective(dag.Alltoall); a.uneven || s == dag.Alltoallv {
			c.op = collective(dag.Alltoallv)
		}
		c.bytes, c.recv = in, out
		defer func() { // once the group is known
			c.own = t.ownPart(r, c, a)
			if c.uneven = a.uneven; a.uneven {
				c.counts = r.counts(a, t.sizeOf(c.group, a))
			}
		}()
	case dag.Allgather, dag.ReduceScatter, dag.Gather, dag.Scatter:
		c.bytes, c.recv = in, out
	default:
		c.bytes = in
		if c.op == opRecv || in == 0 {
			c.bytes = out
		}
	}
	c.seq = a.seq
	if s, ok := c.op.subkind(); ok && s.Rooted() && a.hasRoot {
		c.peer = a.root
	}
	if c.op == opSend && a.target >= 0 {
		c.peer = int32(a.target)
	}
	if c.op == opRecv && a.source >= 0 {
		c.peer = int32(a.source)
	}
	c.group = t.group(r, a)
}

// sizeOf returns the number of members of a group.
func (t *talk) sizeOf(g int32, a *commArgs) int {
	if members := t.groups[g].members; members != nil {
		return len(members)
	}
	return int(min(a.size, mostMembers))
}

// ownPart returns the bytes that the rank keeps in an uneven alltoall, -1 if they are unknown.
func (t *talk) ownPart(r *recording, c *communication, a *commArgs) int64 {
	member := int(r.meta.rank)
	if members := t.groups[c.group].members; members != nil {
		member = slices.Index(members, int32(r.meta.rank))
	}
	if !a.uneven || member < 0 {
		return -1
	}
	for _, list := range []int32{a.gives, a.gets} {
		if n, ok := part(r.texts.text(list), member); ok {
			return mulBytes(n, a.element)
		}
	}
	return -1
}

// fromMark fills in what an annotation states.
func (t *talk) fromMark(r *recording, c *communication, m *mark) {
	if m.args >= 0 && r.args[m.args].present { // completed
		t.fromArgs(r, c, &r.args[m.args])
		return
	}
	c.op = m.op
	c.group = t.unknownGroup()
	if m.args >= 0 {
		if a := &r.args[m.args]; a.sized {
			c.sized, c.bytes = true, a.in
		}
	}
	if m.op == opSend || m.op == opRecv {
		c.peerInside = partner(r.texts.text(m.name))
	}
}

// partner returns the second number in the name of an annotation such as "nccl:send 0->1", -1 if there is none.
func partner(name string) int32 {
	for _, arrow := range []string{"->", "<-"} {
		if _, after, found := strings.Cut(name, arrow); found {
			if n, err := strconv.ParseInt(strings.TrimSpace(after), 10, 32); err == nil && n >= 0 {
				return int32(n)
			}
		}
	}
	return -1
}

// unknownGroup returns the group of communication without a known one.
func (t *talk) unknownGroup() int32 {
	key := groupKey{name: -1}
	g, ok := t.of[key]
	if !ok {
		g = int32(len(t.groups))
		t.groups = append(t.groups, group{unknown: true})
		t.of[key] = g
	}
	return g
}

// group returns the group that arguments name.
func (t *talk) group(r *recording, a *commArgs) int32 {
	if a.group == 0 && a.about == 0 && a.ranks == 0 && a.size == 0 {
		return t.unknownGroup()
	}
	key := groupKey{a.group, a.about, a.ranks, a.size}
	if g, ok := t.of[key]; ok {
		return g
	}
	n := int32(len(t.groups))
	t.of[key] = n
	t.groups = append(t.groups, t.newGroup(r, a))
	return n
}

// newGroup finds the members of a group: from the description in the file, else from the list in the arguments.
func (t *talk) newGroup(r *recording, a *commArgs) group {
	g := group{name: r.texts.text(a.group), about: r.texts.text(a.about)}
	listed := rankList{size: a.size}
	whole := listed.read([]byte(r.texts.text(a.ranks)))
	if whole && !listed.cut && len(listed.ranks) > 0 {
		g.members = listed.ranks
		return g
	}
	for i := range r.meta.groups {
		p := &r.meta.groups[i]
		if p.name == g.name && a.group != 0 && (g.about == "" || p.about == "" || p.about == g.about) &&
			(p.ranks != nil || p.all) {
			if !p.all {
				g.members = p.ranks
			}
			return g
		}
	}
	if listed.cut && whole {
		if g.members = listed.ranks; !regular(g.members) {
			t.irregular = cmp.Or(g.name, g.about)
		}
		return g
	}
	if a.stride > 0 && a.size > 0 && a.size <= mostMembers && a.start >= 0 && a.start+a.size*a.stride <= 1<<31 {
		for k := range a.size {
			g.members = append(g.members, int32(a.start+k*a.stride))
		}
	}
	return g
}
