// This file follows the annotations of each thread in order and creates events, the work of NCCL kernels.
//
// The calls of a thread and NCCL's records of them form a batch. It begins with a call or the start of a group,
// and extends to the next call or group outside it: details of collectives, pieces of messages, launches. Order
// violations are at worst errors: a detail before the end of a group ends the group, an end without a start is
// skipped.

package nsys

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"sort"

	"github.com/tracedag/tracedag/dag/attr"
)

// machine processes annotations.
type machine struct {
	r       *report
	threads map[uint64]*thread
	n       annotation
	scratch []byte
	member  attr.NCCLCall // reused by attrs
	numbers []int64
	stock   stockReader
	steps   map[uint64][]stepRange // by process
}

func newMachine(r *report) *machine {
	r.events = make([]event, 0, len(r.kernels)) // usually one event per kernel
	r.members = make([]member, 0, len(r.kernels))
	return &machine{r: r, threads: make(map[uint64]*thread), steps: make(map[uint64][]stepRange)}
}

// annotationRow is a row of the table of annotations.
type annotationRow struct {
	row        int64 // number of the row or line, for messages
	start, end int64 // end is unknownTime for a mark, or a range that was not closed
	globalTid  int64 // 0: unknown
	text       string
	json       string // payload, or a binary one as text
	binary     []byte // payload
}

// thread is the state of a thread.
type thread struct {
	proc     int32
	launches []launch    // not yet passed
	nodes    []graphNode // not yet passed
	depth    int         // of groups
	b        batch
}

// batch is the records of calls that belong together.
type batch struct {
	open       bool
	inner      bool // the implicit group of a send or receive was seen
	start, end int64
	host       int64 // of the first launch
	at         int64 // of the first detail
	calls      []call
	runs       map[callKey]callRun
	details    []detail
	channels   []channel
	launches   []launchAnnotation
	kernels    []int32 // of the launches
	nodes      []int64 // of the launches
	segments   map[segment]int32
}

// segment may have a kernel of its own: a communicator's collectives on a stream, or its messages.
type segment struct {
	comm   int32
	stream uint64
	p2p    bool
}

type call struct {
	op     opKind
	comm   int32
	peer   int32
	stream uint64
	left   int64 // bytes without a piece so far
	next   int32 // next call with the same partner; -1: none
}

// detail is the record of a member.
type detail struct {
	member
	stream     uint64
	chunk      int64 // piece: bytes
	typeSize   int64
	chunkSteps int64
	sliceSteps int64
	stepSize   int64
	first, end int32 // channels
	segment    int32
	stock      bool // there are no further records
}

// channel is a channel's part of a collective.
type channel struct {
	warps, work, chunk, last int64
}

// launchAnnotation is a launch. Its kernels or graph nodes in the batch's lists end at these indices.
type launchAnnotation struct {
	kernels, nodes int32
}

// thread returns the state of a thread.
func (m *machine) thread(id uint64, proc uint64) *thread {
	if t, ok := m.threads[id]; ok {
		return t
	}
	r := m.r
	t := &thread{proc: r.process(proc)}
	from := sort.Search(len(r.launches), func(i int) bool { return r.launches[i].thread >= id })
	to := sort.Search(len(r.launches), func(i int) bool { return r.launches[i].thread > id })
	t.launches = r.launches[from:to]
	from = sort.Search(len(r.graphNodes), func(i int) bool { return r.graphNodes[i].thread >= id })
	to = sort.Search(len(r.graphNodes), func(i int) bool { return r.graphNodes[i].thread > id })
	t.nodes = r.graphNodes[from:to]
	m.threads[id] = t
	return t
}

// annotation processes the next annotation. Annotations come in start order.
func (m *machine) annotation(row *annotationRow) error {
	n := &m.n
	if err := parseAnnotation(row.text, n); err != nil {
		return m.r.problem("such annotations are skipped", err)
	}
	if n.kind == noAnnotation {
		m.step(row)
		if !m.r.annotated {
			m.stock.annotation(row)
		}
		return nil
	}
	if row.start < -latest || row.start > latest || row.end > latest {
		return m.r.problem("such annotations are skipped", checkTimes(row.start, max(row.start, row.end)))
	}
	return m.known(row, n)
}

// threadOf returns the state of the thread of an annotation.
func (m *machine) threadOf(row *annotationRow, pid int64) *thread {
	if row.globalTid != 0 {
		return m.thread(uint64(row.globalTid), processKey(row.globalTid))
	}
	return m.thread(uint64(pid)<<24, uint64(pid))
}

func (m *machine) known(row *annotationRow, n *annotation) error {
	t := m.threadOf(row, n.pid)
	switch n.kind {
	case annotationInit:
		return m.init(t, n)
	case annotationRing, annotationTree:
		return m.neighbours(t, n)
	case annotationStart:
		w := &m.r.procs[t.proc].window
		if w.marks[0]++; w.marks[0] == 1 {
			w.start = row.start
		}
		return nil
	case annotationStop:
		w := &m.r.procs[t.proc].window
		w.marks[1]++
		w.stop = row.start
		return nil
	}
	if n.kind != annotationGroupStart && n.kind != annotationGroupEnd {
		m.r.annotated = true
	}
	switch n.kind {
	case annotationGroupStart:
		return m.groupStart(t, row)
	case annotationGroupEnd:
		if t.depth > 0 {
			t.depth--
		}
		t.b.end = max(t.b.end, row.end)
	case annotationCall:
		return m.call(t, row, n)
	case annotationColl, annotationPiece:
		return m.detail(t, row, n)
	case annotationChannel:
		return m.channel(t, n)
	case annotationLaunch:
		m.launch(t, row)
	}
	return nil
}

// comm returns the communicator of an annotation.
func (m *machine) comm(t *thread, n *annotation) (int32, error) {
	p := &m.r.procs[t.proc]
	if c, ok := p.commOf[n.comm]; ok {
		return c, nil
	}
	if c, ok := p.commOf[n.also]; ok && n.also != 0 {
		return c, nil
	}
	return -1, m.r.problem("such annotations are skipped",
		fmt.Errorf("communicator %#x is unknown in process %d, because no annotation creates it: profile from the "+
			"start",
			n.comm, p.pid))
}

// maxDevices is a limit above the devices of any process.
const maxDevices = 128

func (m *machine) init(t *thread, n *annotation) error {
	p := &m.r.procs[t.proc]
	c, ok := p.commOf[n.comm]
	if !ok || p.comms[c].id != n.id {
		c = int32(len(p.comms))
		p.comms = append(p.comms, localComm{id: n.id, nranks: n.nranks})
		p.commOf[n.comm] = c
	}
	if n.also != 0 {
		p.commOf[n.also] = c
	}
	comm := &p.comms[c]
	if comm.nranks != n.nranks {
		return fmt.Errorf("communicator 0x%x: rank %d has a size of %d ranks, rank %d of %d", n.id, n.rank,
			n.nranks, comm.ranks[0].rank, comm.nranks)
	}
	if comm.rankOf(n.rank) == nil { // repeated creation changes nothing
		if len(comm.ranks) == maxDevices {
			return fmt.Errorf("communicator 0x%x: expected at most %d ranks in process %d, found "+
				"more", n.id, maxDevices, p.pid)
		}
		comm.ranks = append(comm.ranks, localRank{rank: n.rank, gpu: -1, device: -1})
	}
	if p.inits++; p.inits == 1 {
		m.r.made = append(m.r.made, t.proc)
	}
	return nil
}

// rankOf returns a rank of the communicator, or nil if the process does not have it.
func (c *localComm) rankOf(rank int32) *localRank {
	for i := range c.ranks {
		if c.ranks[i].rank == rank {
			return &c.ranks[i]
		}
	}
	return nil
}

func (m *machine) neighbours(t *thread, n *annotation) error {
	c, err := m.comm(t, n)
	if c < 0 {
		return err
	}
	comm := &m.r.procs[t.proc].comms[c]
	if comm.nranks == 1 {
		return nil
	}
	rank := comm.rankOf(n.rank)
	if rank == nil {
		return m.r.problem("such annotations are skipped", fmt.Errorf("communicator 0x%x: process %d does not have "+
			"rank %d",
			comm.id, m.r.procs[t.proc].pid, n.rank))
	}
	for _, q := range append(n.down[:], n.prev, n.next) {
		if q < -1 || q >= comm.nranks || n.kind == annotationRing && (n.prev < 0 || n.next < 0) {
			return m.r.problem("such annotations are skipped", fmt.Errorf("communicator 0x%x: expected neighbours "+
				"below "+
				"%d, found %d", comm.id, comm.nranks, q))
		}
	}
	list := &rank.rings
	if n.kind == annotationTree {
		list = &rank.trees
	}
	for int(n.channel) >= len(*list) {
		*list = append(*list, neighbours{})
	}
	found := neighbours{present: true, prev: n.prev, next: n.next, down: n.down}
	if have := &(*list)[n.channel]; !have.present {
		*have = found
	} else if *have != found {
		return fmt.Errorf("communicator 0x%x: channel %d of rank %d has other neighbours than before", comm.id,
			n.channel, n.rank)
	}
	return nil
}

// begin starts a batch with a call or a group at the row.
func (m *machine) begin(t *thread, row *annotationRow) error {
	err := m.close(t, false)
	t.b.reset(row.start, row.end)
	return err
}

// reset clears the batch.
func (b *batch) reset(start, end int64) {
	clear(b.runs)
	*b = batch{runs: b.runs, open: true, start: start, end: max(start, end), host: unknownTime, at: unknownTime,
		calls: b.calls[:0], details: b.details[:0], channels: b.channels[:0], launches: b.launches[:0],
		kernels: b.kernels[:0], nodes: b.nodes[:0], segments: b.segments}
}

// planned reports whether NCCL has recorded work of the batch.
func (b *batch) planned() bool {
	return len(b.details) > 0 || len(b.launches) > 0
}

func (m *machine) groupStart(t *thread, row *annotationRow) error {
	b := &t.b
	if t.depth++; t.depth > 1 {
		return nil
	}
	if b.open && !b.planned() && !b.inner && len(b.calls) == 1 && b.calls[0].op.p2p() {
		b.inner = true
		return nil
	}
	return m.begin(t, row)
}

func (m *machine) call(t *thread, row *annotationRow, n *annotation) error {
	c, err := m.comm(t, n)
	if err != nil {
		return err
	}
	if t.depth == 0 || !t.b.open {
		if err := m.begin(t, row); err != nil {
			return err
		}
	}
	if c >= 0 {
		t.b.addCall(call{op: n.op, comm: c, peer: n.peer, stream: n.stream, left: n.bytes})
		t.b.end = max(t.b.end, row.end)
	}
	return nil
}

func (m *machine) detail(t *thread, row *annotationRow, n *annotation) error {
	b := &t.b
	t.depth = 0
	if !b.open {
		if err := m.begin(t, row); err != nil {
			return err
		}
	}
	d := detail{member: member{bytes: n.bytes, peer: n.peer, op: n.op, algo: n.algo, proto: n.proto, inPlace: noRank},
		stream: n.stream, chunk: n.chunkSize, typeSize: n.typeSize, chunkSteps: n.chunkSteps, sliceSteps: n.sliceSteps,
		stepSize: n.stepSize, first: int32(len(b.channels)), end: int32(len(b.channels))}
	if n.kind == annotationColl {
		c, err := m.comm(t, n)
		if err != nil {
			return err
		}
		d.comm = c // a detail without a communicator is dropped at the end, with its channels
	} else {
		c := b.takePiece(n)
		if c == nil {
			return m.r.problem("such annotations are skipped", fmt.Errorf("annotation of a piece: expected a call "+
				"of nccl%v with "+
				"peer %d before it", n.op, n.peer))
		}
		d.comm, d.stream = c.comm, c.stream
	}
	if b.at == unknownTime {
		b.at = row.start
	}
	b.details = append(b.details, d)
	return nil
}

// callKey identifies the call in the annotation of a piece.
type callKey struct {
	op   opKind
	peer int32
}

// callRun is the calls with one key, linked by next.
type callRun struct {
	first, last int32
}

// addCall adds a call.
func (b *batch) addCall(c call) {
	n := int32(len(b.calls))
	c.next = -1
	b.calls = append(b.calls, c)
	if !c.op.p2p() {
		return
	}
	if b.runs == nil {
		b.runs = make(map[callKey]callRun)
	}
	key := callKey{c.op, c.peer}
	run, ok := b.runs[key]
	if !ok {
		run.first = n
	} else {
		b.calls[run.last].next = n
	}
	run.last = n
	b.runs[key] = run
}

// takePiece removes the bytes of an annotation's piece from a call and returns the call, or nil: the first call
// with enough bytes left to send or receive, else the first with the same partner.
func (b *batch) takePiece(n *annotation) *call {
	key := callKey{n.op, n.peer}
	run, ok := b.runs[key]
	if !ok {
		return nil
	}
	found := &b.calls[run.first]
	for i := run.first; i >= 0; i = b.calls[i].next {
		c := &b.calls[i]
		if c.left >= n.bytes && (c.left > 0 || n.bytes == 0) {
			found = c
			break
		}
		if found.left == 0 && c.left > 0 {
			found = c
		}
	}
	found.left -= min(found.left, n.bytes)
	if head := &b.calls[run.first]; head == found && n.bytes > 0 && head.left == 0 && head.next >= 0 {
		run.first = head.next // keeps long runs fast
		b.runs[key] = run
	}
	return found
}

func (m *machine) channel(t *thread, n *annotation) error {
	b := &t.b
	if len(b.details) == 0 || b.details[len(b.details)-1].op.p2p() {
		return m.r.problem("such annotations are skipped", fmt.Errorf("annotation of a channel: expected an "+
			"annotation of a collective "+
			"before it"))
	}
	d := &b.details[len(b.details)-1]
	if d.first == d.end && n.buffers {
		d.setInPlace(n)
	}
	b.channels = append(b.channels, channel{warps: n.warps, work: n.workCount, chunk: n.chunkCount, last: n.lastChunk})
	d.end++
	return nil
}

// setInPlace determines the rank for which the buffers of the collective are in place.
func (d *detail) setInPlace(n *annotation) {
	switch d.op {
	case opBroadcast:
		if n.sendBuffer == n.recvBuffer {
			d.inPlace = anyRank
		}
	case opAllGather:
		if n.count == 0 || n.sendBuffer < n.recvBuffer {
			return
		}
		distance, count := n.sendBuffer-n.recvBuffer, uint64(n.count)
		if rank := distance / count; distance%count == 0 && rank <= math.MaxInt32 {
			d.inPlace = int32(rank)
		}
	}
}

func (m *machine) launch(t *thread, row *annotationRow) {
	b := &t.b
	t.depth = 0
	if !b.open {
		return
	}
	if b.host == unknownTime {
		b.host = row.start
	}
	b.end = max(b.end, row.end)
	t.take(row.start, row.end)
	b.launches = append(b.launches, launchAnnotation{int32(len(b.kernels)), int32(len(b.nodes))})
}

// take adds to the batch the launches and graph nodes from start to end; if the end is unknown, the next one.
func (t *thread) take(start, end int64) {
	b := &t.b
	for len(t.launches) > 0 && t.launches[0].start < start {
		t.launches = t.launches[1:]
	}
	for len(t.launches) > 0 && (t.launches[0].start <= end || end == unknownTime) {
		b.kernels = append(b.kernels, t.launches[0].kernel)
		t.launches = t.launches[1:]
		if end == unknownTime {
			break
		}
	}
	for len(t.nodes) > 0 && t.nodes[0].start < start {
		t.nodes = t.nodes[1:]
	}
	for len(t.nodes) > 0 && t.nodes[0].start <= end {
		b.nodes = append(b.nodes, t.nodes[0].node)
		t.nodes = t.nodes[1:]
	}
}

// finish closes all open batches after the last annotation, thread by thread.
func (m *machine) finish() error {
	m.r.steps = m.steps
	if err := m.finishStock(); err != nil {
		return err
	}
	for _, id := range slices.Sorted(maps.Keys(m.threads)) {
		if err := m.close(m.threads[id], true); err != nil {
			return err
		}
	}
	return nil
}

// close creates the events of the batch. The last batch of a thread may be incomplete.
func (m *machine) close(t *thread, last bool) error {
	b := &t.b
	if !b.open {
		return nil
	}
	b.open = false
	r := m.r
	for _, k := range b.kernels {
		r.kernels[k].used = true
	}
	p := &r.procs[t.proc]
	if missing := b.missing(p); missing != "" {
		if !last || len(b.launches) > 0 {
			r.incomplete = append(r.incomplete, incompleteCall{t.proc, b.start, missing})
		}
		return nil
	}
	b.details = slices.DeleteFunc(b.details, func(d detail) bool {
		return d.comm < 0 || p.comms[d.comm].nranks == 1 || d.bytes == 0 && !d.op.p2p()
	})
	if len(b.details) == 0 {
		return nil
	}
	if b.host == unknownTime {
		b.host = b.start
	}
	segments := b.segment()
	one := segments == 1 || segments != len(b.launches)
	if one && segments > 1 && (len(b.launches) > 1 || b.severalComms()) {
		r.mixedGroups++
	}
	if one {
		return m.event(t, b.details, b.kernels, b.nodes, max(1, len(b.launches)))
	}
	slices.SortStableFunc(b.details, func(a, b detail) int { return int(a.segment - b.segment) })
	rest, kernels, nodes := b.details, int32(0), int32(0)
	for _, l := range b.launches {
		n := 1
		for n < len(rest) && rest[n].segment == rest[0].segment {
			n++
		}
		details := rest[:n]
		rest = rest[n:]
		if err := m.event(t, details, b.kernels[kernels:l.kernels], b.nodes[nodes:l.nodes], 1); err != nil {
			return err
		}
		kernels, nodes = l.kernels, l.nodes
	}
	return nil
}

// missing returns the records that the batch's calls lack, or "".
func (b *batch) missing(p *process) string {
	if len(b.calls) == 0 {
		return ""
	}
	colls := 0
	for i := range b.calls {
		c := &b.calls[i]
		switch {
		case p.comms[c.comm].nranks == 1:
		case !c.op.p2p() && c.left > 0:
			colls++
		case c.op.p2p() && c.left > 0:
			return fmt.Sprintf("expected annotations of all pieces of nccl%v with peer %d, %d bytes are missing",
				c.op, c.peer, c.left)
		}
	}
	for i := range b.details {
		if d := &b.details[i]; !d.op.p2p() && d.comm >= 0 && p.comms[d.comm].nranks > 1 && d.bytes > 0 {
			colls--
		}
	}
	switch {
	case colls > 0:
		return fmt.Sprintf("expected an annotation for each collective, found %d too few", colls)
	case colls < 0:
		return fmt.Sprintf("expected an annotation for each collective, found %d too many", -colls)
	}
	return ""
}

// segment identifies the parts with kernels of their own, and returns their number.
func (b *batch) segment() int {
	if len(b.details) == 1 {
		return 1
	}
	clear(b.segments)
	if b.segments == nil {
		b.segments = make(map[segment]int32)
	}
	for i := range b.details {
		d := &b.details[i]
		s := segment{d.comm, d.stream, d.op.p2p()}
		number, ok := b.segments[s]
		if !ok {
			number = int32(len(b.segments))
			b.segments[s] = number
		}
		d.segment = number
	}
	return len(b.segments)
}

func (b *batch) severalComms() bool {
	return slices.ContainsFunc(b.details, func(d detail) bool { return d.comm != b.details[0].comm })
}

// event creates an event.
func (m *machine) event(t *thread, details []detail, kernels []int32, nodes []int64, launches int) error {
	r, b := m.r, &t.b
	e := event{start: unknownTime, host: b.host, call: b.start, done: b.end, at: b.at, first: int32(len(r.members)),
		count: int32(len(details)), proc: t.proc, stream: -1, launches: int32(launches),
		annotationStream: details[0].stream, order: int32(len(r.events))}
	switch {
	case len(kernels) >= launches:
		if err := r.setKernels(&e, kernels); err != nil {
			return err
		}
	case len(nodes) > 0:
		e.graphNode = nodes[0]
	}
	r.linked = r.linked || len(kernels) > 0
	if len(r.members)+len(details) > math.MaxInt32 {
		return fmt.Errorf("more than %d collectives and messages", math.MaxInt32)
	}
	replayed := m.replay(t, details)
	for i := range details {
		d := &details[i]
		mem := d.member
		mem.attrs = r.attrs.number(m.attrs(b, d, nil))
		if replayed != nil && !d.op.p2p() {
			first := d.first - details[0].first
			mem.replayed = r.attrs.number(m.attrs(b, d, replayed[first:]))
		}
		r.members = append(r.members, mem)
	}
	r.events = append(r.events, e)
	return nil
}

// setKernels assigns kernels to the event.
func (r *report) setKernels(e *event, kernels []int32) error {
	for i, number := range kernels {
		k := &r.kernels[number]
		k.used = true
		if i == 0 {
			e.start, e.end, e.stream = k.start, k.end, k.stream
			continue
		}
		if a, b := r.streams[e.stream], r.streams[k.stream]; a.device != b.device {
			return fmt.Errorf("process %d: one group has kernels on the devices %d and %d, "+
				"and the annotations do not assign its calls to them", r.procs[e.proc].pid, a.device, b.device)
		}
		e.start, e.end = min(e.start, k.start), max(e.end, k.end)
	}
	return nil
}

// attrs returns the attributes of a member without the flags for in-place and grouped calls, or nil if the member
// has no annotation. channels are the numbers of its channels; nil means 0, 1, ...
func (m *machine) attrs(b *batch, d *detail, channels []int32) []byte {
	if d.stock {
		return nil
	}
	m.member = attr.NCCLCall{Protocol: protoNames[d.proto], Channels: m.member.Channels[:0]}
	if d.op.p2p() {
		m.member.Chunk = d.chunk
	} else {
		m.member.Algorithm, m.member.Type = algoNames[d.algo], d.typeSize
		m.member.ChunkSteps, m.member.SliceSteps, m.member.StepSize = d.chunkSteps, d.sliceSteps, d.stepSize
		list := b.channels[d.first:d.end]
		m.numbers = slices.Grow(m.numbers[:0], 4*len(list)) // never reallocated while channels refer to it
		for i, c := range list {
			number := int64(i)
			if channels != nil {
				number = int64(channels[i])
			}
			m.numbers = append(m.numbers, number, c.work, c.chunk, c.last)
			m.member.Channels = append(m.member.Channels, m.numbers[4*i:])
		}
	}
	m.scratch = append(m.member.Append(append(m.scratch[:0], '{')), '}')
	return m.scratch
}

// replay returns the channels of the collectives of a group that one kernel executes, if they are not 0, 1, ...
// for each. NCCL fills one channel after the other up to an equal share of all bytes. It returns nil if no number
// of channels gives the recorded amounts.
func (m *machine) replay(t *thread, details []detail) []int32 {
	if len(details) < 2 || details[0].op.p2p() || details[0].stock {
		return nil
	}
	b := &t.b
	comm := &m.r.procs[t.proc].comms[details[0].comm]
	most := max(len(comm.ranks[0].rings), len(comm.ranks[0].trees))
	total, least := int64(0), 1
	for i := range details {
		d := &details[i]
		if d.op.p2p() || d.comm != details[0].comm || d.typeSize < 1 || d.typeSize > 8 || d.bytes > 1<<56-total ||
			i > 0 && d.first != details[i-1].end {
			return nil
		}
		total += d.bytes
		least = max(least, int(d.end-d.first))
	}
	for n := least; n <= most; n++ {
		if channels, ok := b.fill(details, total, n); ok {
			for i := range details {
				for k := range details[i].end - details[i].first {
					if channels[details[i].first-details[0].first+k] != k {
						return channels
					}
				}
			}
			return nil
		}
	}
	return nil
}

// fill returns the channels for a number of channels, and whether the amounts equal the recorded ones.
func (b *batch) fill(details []detail, total int64, n int) ([]int32, bool) {
	share := (total + int64(n) - 1) / int64(n)
	share = (share + 15) / 16 * 16
	used := make([]int64, n)
	var channels []int32
	for i := range details {
		d := &details[i]
		noted := b.channels[d.first:d.end]
		left, count := d.bytes, d.bytes/d.typeSize
		for c := 0; c < n && left > 0; c++ {
			if used[c] >= share {
				continue
			}
			if len(noted) == 0 {
				return nil, false
			}
			var align int64
			switch d.proto {
			case protoSim:
				align = 4096 / d.typeSize
			case protoLL:
				align = 8 / d.typeSize * 32 * min(noted[0].warps, 32)
			default:
				align = 480 / d.typeSize * min(noted[0].warps, 32)
			}
			if align == 0 {
				return nil, false
			}
			work := (min(share-used[c], left) + d.typeSize - 1) / d.typeSize
			work = min((work+align-1)/align*align, count)
			if work != noted[0].work {
				return nil, false
			}
			noted = noted[1:]
			channels = append(channels, int32(c))
			used[c] += work * d.typeSize
			left -= work * d.typeSize
			count -= work
		}
		if len(noted) > 0 {
			return nil, false
		}
	}
	return channels, true
}
