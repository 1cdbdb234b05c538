// This file builds the DAG of a trace from its records.
//
// A message becomes a send and a receive with its number as tag; a part in a collective becomes a coll op with the
// collective's number as tag. Records that wait for the same event (the start of the trace, the end of a send or
// of a part in a collective, the arrival of a message) wait for a chain of calcs after it, in the order of the
// delays. Each calc is as long as a delay exceeds the previous one.

package vef

import (
	"cmp"
	"encoding/json"
	"slices"

	"github.com/tracedag/tracedag/dag"
)

// selfAttrs are the attributes of the calcs that represent a message of a task to itself: its end at the sender
// and its arrival. They have duration 0.
const (
	selfSendAttrs = `{"vef":{"self":"send"}}`
	selfRecvAttrs = `{"vef":{"self":"recv"}}`
)

// trace returns the trace of the records.
func (r *reader) trace() (*dag.Trace, error) {
	if err := r.resolve(); err != nil {
		return nil, err
	}
	r.checkAdvice()
	meta, err := r.meta()
	if err != nil {
		return nil, err
	}
	comms, shift := r.dagComms()
	b := builder{reader: r, ids: r.ids(), shift: shift}
	b.chain()
	b.arrange()
	b.place()
	b.allot()
	if err := b.fill(); err != nil {
		return nil, err
	}
	t := &dag.Trace{Comms: comms, Ranks: b.ranks}
	t.Attrs = meta
	return t, nil
}

// meta returns the facts about the trace.
func (r *reader) meta() (string, error) {
	h := &r.header
	f := facts{
		Kind: plain, Magic: h.magic, Tasks: int(h.tasks), Clock: h.clock, Messages: int64(len(r.messages)),
		Communicators: len(r.comms), Collectives: len(r.instances),
		Participations: int64(len(r.records) - len(r.messages)),
		OnlySend:       r.onlySend(),
	}
	for i := range r.records {
		rec := &r.records[i]
		f.Dependencies[rec.dep]++
		if rec.kind == message {
			f.Bytes += rec.size // wraps, but only beyond the range of any simulation
		}
	}
	if len(r.instances) <= maxSummary {
		for k := range r.instances {
			g := &r.instances[k]
			s := collectiveSummary{ID: g.id, Op: opNames[g.op], Comm: g.comm}
			if g.root >= 0 {
				s.Root = &g.root
			}
			f.Summary = append(f.Summary, s)
		}
	}
	text, err := json.Marshal(map[string]facts{"vef": f})
	return string(text), err
}

// onlySend reports whether no message depends on a reception or a collective.
func (r *reader) onlySend() bool {
	for i := range r.records {
		if rec := &r.records[i]; rec.kind == message && (rec.dep == depRecv || rec.dep == depCollective) {
			return false
		}
	}
	return true
}

// checkAdvice warns about harmless inconsistencies.
func (r *reader) checkAdvice() {
	h := &r.header
	if only := r.onlySend(); only != h.onlySend {
		r.warn("%s:%d: the header's flag for only send dependencies is %t, but %t for the messages", r.file, h.line,
			h.onlySend, only)
	}
	if len(r.comms) > 0 && !r.comms[0].isWorld(h.tasks) {
		r.warn("%s:%d: communicator 0 does not have all tasks in order", r.file, h.line+1)
	}
	if r.rounded > 0 {
		r.warn("%s:%d: this and %d other times are rounded to whole picoseconds", r.file, r.firstRounded,
			r.rounded-1)
	}
	odd, first := 0, int32(-1)
	for i := range r.records {
		rec := &r.records[i]
		if rec.kind == participation && !r.consistent(rec) {
			if odd++; first < 0 {
				first = int32(i)
			}
		}
	}
	if odd > 0 {
		r.warn("%s:%d: the sizes of this and %d other collective records contradict their collective",
			r.file, r.lineOf(first), odd-1)
	}
}

// consistent reports whether the sizes of a record match its collective.
func (r *reader) consistent(rec *record) bool {
	g := &r.instances[rec.a]
	root := rec.task == g.root
	switch g.op {
	case opBroadcast:
		return !g.mixed && (root && rec.recv == 0 || !root && rec.size == 0)
	case opReduce:
		return !g.mixed && (root && rec.size == 0 || !root && rec.recv == 0)
	case opAllreduce:
		return !g.mixed && rec.size == rec.recv && rec.size > 0
	case opGather:
		return root && rec.recv == g.sum || !root && rec.recv == 0
	case opScatter:
		return root && rec.size == g.sum || !root && rec.size == 0
	case opAllgather:
		return rec.recv == g.sum
	case opBarrier:
		return rec.size == 0 && rec.recv == 0
	}
	return rec.recv == 1 || !g.mixed // all-to-all
}

// builder builds the ranks. All slices are by record unless stated otherwise.
type builder struct {
	*reader
	ids      []int64   // of messages, by position; nil: equal to the position
	shift    int32     // from communicator numbers of the file to those of the trace
	before   []int32   // previous record in the chain; -1: none
	sorted   [][]int32 // chains whose order differs from the file's
	sequence []int32   // records in the order of their ops; nil: file order
	op       []int32   // index, on its task, of the record's op
	recv     []int32   // of a message: index, on its destination, of the receive
	base     []int32   // index of the op whose end releases the record; -1: the start of the trace

	ops, deps []int32 // by rank: counts
	ranks     []*dag.Rank
}

// chain links the records that wait for the same event by their delays, and converts the delays to differences.
func (b *builder) chain() {
	n := len(b.records)
	b.before = make([]int32, n)
	last := make([]int32, 2*n) // per event, one more than its latest record: the end of op i, then the arrival of i
	lastOrigin := make([]int32, b.header.tasks)
	var disordered []*int32
	for i := range b.records {
		rec := &b.records[i]
		var slot *int32
		switch rec.dep {
		case depNone:
			slot = &lastOrigin[rec.task]
		case depRecv:
			slot = &last[2*rec.ref+1]
		default:
			slot = &last[2*rec.ref]
		}
		before := *slot - 1
		b.before[i] = before
		if before >= 0 && b.records[before].time > rec.time {
			disordered = append(disordered, slot)
		}
		*slot = int32(i) + 1
	}
	for _, slot := range disordered {
		if tail := *slot - 1; !b.records[tail].sorted {
			b.sortChain(tail)
		}
	}
	for i := n - 1; i >= 0; i-- {
		if before := b.before[i]; before >= 0 && !b.records[i].sorted {
			b.records[i].time -= b.records[before].time
		}
	}
}

// sortChain sorts a chain by delay; tail is its last record in the file.
func (b *builder) sortChain(tail int32) {
	var chain []int32
	for i := tail; i >= 0; i = b.before[i] {
		chain = append(chain, i)
	}
	slices.SortFunc(chain, func(x, y int32) int {
		return cmp.Or(cmp.Compare(b.records[x].time, b.records[y].time), cmp.Compare(x, y))
	})
	for k := len(chain) - 1; k >= 0; k-- {
		i := chain[k]
		b.records[i].sorted, b.before[i] = true, -1
		if k > 0 {
			b.before[i] = chain[k-1]
			b.records[i].time -= b.records[chain[k-1]].time
		}
	}
	b.sorted = append(b.sorted, chain)
}

// arrange orders the collectives of each communicator equally on all its tasks, as package dag requires: by their
// first records.
func (b *builder) arrange() {
	latest := make([]int32, b.members) // per member, one more than its latest collective
	bad := make([]bool, len(b.comms))
	anyBad := false
	for i := range b.records {
		rec := &b.records[i]
		if rec.kind != participation {
			continue
		}
		g := &b.instances[rec.a]
		c := &b.comms[g.comm]
		slot := &latest[c.first+int64(c.position(rec.task))]
		if rec.a+1 < *slot {
			bad[g.comm], anyBad = true, true
		}
		*slot = rec.a + 1
	}
	if !anyBad {
		return
	}
	b.sequence = make([]int32, len(b.records))
	type member struct{ comm, task int32 }
	of := map[member][]int32{}
	for i := range b.records {
		b.sequence[i] = int32(i)
		if rec := &b.records[i]; rec.kind == participation && bad[b.instances[rec.a].comm] {
			m := member{b.instances[rec.a].comm, rec.task}
			of[m] = append(of[m], int32(i))
		}
	}
	for _, places := range of {
		ordered := slices.Clone(places)
		slices.SortFunc(ordered, func(x, y int32) int { return cmp.Compare(b.records[x].a, b.records[y].a) })
		for k, place := range places {
			b.sequence[place] = ordered[k]
		}
	}
}

// at returns the record at a position of the sequence.
func (b *builder) at(place int) int32 {
	if b.sequence == nil {
		return int32(place)
	}
	return b.sequence[place]
}

// place assigns every op its index.
func (b *builder) place() {
	n := len(b.records)
	b.op, b.recv, b.base = make([]int32, n), make([]int32, n), make([]int32, n)
	b.ops, b.deps = make([]int32, b.header.tasks), make([]int32, b.header.tasks)
	for place := range n {
		i := b.at(place)
		rec := &b.records[i]
		ops := &b.ops[rec.task]
		if rec.time > 0 {
			*ops++
		}
		b.op[i] = *ops
		*ops++
		if rec.kind == message {
			to := &b.ops[rec.a]
			b.recv[i] = *to
			*to++
		}
	}
	for i := range b.records {
		if !b.records[i].sorted {
			b.setBase(int32(i))
		}
	}
	for _, chain := range b.sorted {
		for _, i := range chain {
			b.setBase(i)
		}
	}
}

// waits returns the op that a record's calc waits for, or the record's op if it has no calc; -1 is the start of
// the trace.
func (b *builder) waits(i int32) int32 {
	rec := &b.records[i]
	switch before := b.before[i]; {
	case before >= 0:
		return b.base[before]
	case rec.dep == depNone:
		return -1
	case rec.dep == depRecv:
		return b.recv[rec.ref]
	default:
		return b.op[rec.ref]
	}
}

// setBase sets the base of a record, after those before it in its chain, and counts its dependencies.
func (b *builder) setBase(i int32) {
	rec := &b.records[i]
	on := b.waits(i)
	if on >= 0 {
		b.deps[rec.task]++
	}
	if rec.time > 0 {
		on = b.op[i] - 1
		b.deps[rec.task]++
	}
	b.base[i] = on
	if rec.kind == message && rec.a == rec.task {
		b.deps[rec.task]++
	}
}
