// This file builds the trace.

package kineto

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	"github.com/tracedag/tracedag/dag"
	"github.com/tracedag/tracedag/dag/attr"
	"github.com/tracedag/tracedag/internal/par"
)

// trace builds the trace of the job.
func (j *job) trace() (*dag.Trace, error) {
	b := dag.NewBuilder(len(j.ranks))
	meta := b.Meta()
	meta.Attrs = j.attrs()
	for c := range j.comms[1:] {
		x := &j.comms[c+1]
		b.AddComm(dag.NewComm(x.name, x.members))
	}
	var first int32
	meta.Steps, first = j.stepsOf()
	err := par.Each(len(j.ranks), func(i int) error {
		rb := rankBuilder{RankBuilder: b.Rank(i), rank: &j.ranks[i], job: j, at: int32(i), firstStep: first,
			lastTalk: -1}
		return rb.build()
	})
	if err != nil {
		return nil, err
	}
	t := b.Trace()
	if err := b.Err(); err != nil || !j.o.own.MergeCalcs {
		return t, err
	}
	return t, mergeCalcs(t)
}

// rankBuilder builds a rank.
type rankBuilder struct {
	*dag.RankBuilder
	*rank
	job       *job
	at        int32
	firstStep int32

	label   []int32 // number in the trace by stream
	streams []streamState
	zero    dag.Time // start of the first op
	places  []place  // by device op
	deps    []int    // scratch space
	talks   []int32  // communications in the order of device ops; slots are those of their instances

	lastTalk int // last communication; -1: none

	host *hostBuilder // nil: the threads of the host are not kept
}

// place is where a device op is in the rank.
type place struct {
	op    int32 // first op
	count int32
	end   dag.Time // in a replay with recorded durations, since zero
}

// streamState is the state of a stream.
type streamState struct {
	tails []int32 // device ops for which the next op waits
	base  []int32 // those for which the ops of the current graph wait
	graph int32
	call  int64 // that launched the graph
}

// build adds the ops.
func (b *rankBuilder) build() error {
	watch := par.Watch{Context: b.job.o.ctx}
	b.setLabels()
	b.places = make([]place, len(b.ops))
	b.streams = make([]streamState, len(b.rank.streams))
	if len(b.ops) > 0 {
		b.zero = b.ops[0].start
	}
	b.host = b.newHost()
	b.Reserve(len(b.ops)*5/4, len(b.ops)*3/2)
	b.ReserveMeasured(len(b.ops)*5/4, 0)
	b.orderTalks()
	next := 0
	waits := b.waits.events
	for i := range b.ops {
		if err := watch.Err(); err != nil {
			return err
		}
		n := next
		for n < len(b.talk.list) && b.talk.list[n].at == int32(i) {
			n++
		}
		k := 0
		for k < len(waits) && waits[k][0] == int32(i) {
			k++
		}
		if b.host != nil {
			b.addUntil(b.ops[i].start, b.ops[i].correlation)
		}
		b.add(int32(i), b.talks[next:n], waits[:k])
		next, waits = n, waits[k:]
	}
	if b.host != nil {
		b.addUntil(noTime, -1)
	}
	return nil
}

// setLabels numbers the streams by device and number, from 1.
func (b *rankBuilder) setLabels() {
	order := b.order()
	b.label = make([]int32, len(order))
	for label, s := range order {
		b.label[s] = int32(label) + 1
	}
}

// order returns the streams by device and number.
func (r *recording) order() []int32 {
	order := make([]int32, len(r.streams))
	for i := range order {
		order[i] = int32(i)
	}
	slices.SortFunc(order, func(x, y int32) int {
		a, b := r.streams[x], r.streams[y]
		return cmp.Or(cmp.Compare(a.device, b.device), cmp.Compare(a.stream, b.stream))
	})
	return order
}

// orderTalks makes the collectives of a group of calls come in the order of their instances.
func (b *rankBuilder) orderTalks() {
	list := b.talk.list
	b.talks = make([]int32, len(list))
	for k := range list {
		b.talks[k] = int32(k)
	}
	for from := 0; from < len(list); {
		to := from + 1
		for to < len(list) && list[to].at == list[from].at {
			to++
		}
		of := make(map[int32][]int32) // by communicator
		for k := from; k < to && to > from+1; k++ {
			if _, ok := list[k].op.subkind(); ok && !list[k].unrelated {
				c := b.talk.groups[list[k].group].comm
				of[c] = append(of[c], int32(k))
			}
		}
		for _, slots := range of {
			sorted := slices.Clone(slots)
			slices.SortStableFunc(sorted, func(x, y int32) int {
				return cmp.Compare(list[x].instance, list[y].instance)
			})
			for n, slot := range slots {
				b.talks[slot] = sorted[n]
			}
		}
		from = to
	}
}

// concurrent reports whether an op and the op before it on its stream are of one CUDA graph and overlap.
func (b *rankBuilder) concurrent(s *streamState, o *deviceOp) bool {
	return o.graph != 0 && s.graph == o.graph && s.call == o.correlation
}

// previous returns the ops of the stream for which an op waits, and updates the stream.
func (b *rankBuilder) previous(i int32) []int32 {
	o := &b.ops[i]
	s := &b.streams[o.stream]
	before := s.tails
	if !b.concurrent(s, o) {
		s.base = append(s.base[:0], before...)
		s.graph, s.call = o.graph, o.correlation
		before = s.base
		s.tails = append([]int32(nil), i)
		return before
	}
	latest := -1 // branch whose end is the last before the op
	for k, t := range s.tails {
		if b.ops[t].end() <= o.start && (latest < 0 || b.ops[t].end() > b.ops[s.tails[latest]].end()) {
			latest = k
		}
	}
	if latest < 0 {
		s.tails = append(s.tails, i)
		return s.base
	}
	on := []int32{s.tails[latest]}
	s.tails[latest] = i
	return on
}

// add adds a device op with its communications, and the gap before it.
func (b *rankBuilder) add(i int32, talks []int32, events [][2]int32) {
	o := &b.ops[i]
	b.deps = b.deps[:0]
	ended, ready := b.zero, dag.Time(0) // as measured, and in a replay
	wait := func(on int32) {
		p := &b.places[on]
		for k := range p.count {
			if d := int(p.op + k); !slices.Contains(b.deps, d) {
				b.deps = append(b.deps, d)
			}
		}
		ended, ready = max(ended, b.ops[on].end()), max(ready, p.end)
	}
	for _, on := range b.previous(i) {
		wait(on)
	}
	for _, e := range events {
		wait(e[1])
	}
	label := b.label[o.stream]
	b.Step(b.stepOf(o))
	isCalc := len(talks) == 0 || b.isCalc(talks)
	call, isLaunched := b.launched(o)
	if isLaunched {
		ended, ready = max(ended, b.calls[o.correlation].start), max(ready, call.end)
	}
	first := b.Len()
	extra := b.gap(o, label, isCalc, ended, ready, wait)
	if isLaunched {
		defer func() { b.RequiresStart(first, int(call.op)) }() // the gap, or else the op
	}
	start := max(ready, 0)
	if extra.end > start {
		start = extra.end
	}
	p := &b.places[i]
	p.op = int32(b.Len())
	p.end = start + extra.launch + o.took
	if isCalc {
		p.count = 1
		op := b.calc(o, label, extra.launch)
		b.vary.apply(&op)
		b.Add(op, b.deps...)
		return
	}
	for _, k := range talks {
		if c := &b.talk.list[k]; c.op != opNone {
			op := b.Add(b.communication(o, c, label), b.deps...)
			p.count++
			if b.lastTalk >= 0 && b.job.varies() {
				b.RequiresStart(op, b.lastTalk)
			}
			b.lastTalk = op
		}
	}
}

// isCalc reports whether none of the communications of a device op is one in the trace.
func (b *rankBuilder) isCalc(talks []int32) bool {
	return !slices.ContainsFunc(talks, func(k int32) bool { return !b.talk.list[k].unrelated })
}

// stepOf returns the step in which an op was launched.
func (b *rankBuilder) stepOf(o *deviceOp) int32 {
	if o.correlation < 0 {
		return 0
	}
	return b.stepAt(b.calls[o.correlation].start, b.firstStep)
}

// added is the time before an op that was added.
type added struct {
	launch dag.Time // part of the op
	end    dag.Time // of a calc of its own in a replay; 0: none
}

// gapName is the name of calcs for time that no op explains.
const gapName = "gap"

// gap adds the time between what an op waited for and its start. ended is the end of that as measured, ready in a
// replay; wait adds another op to the dependencies.
func (b *rankBuilder) gap(o *deviceOp, label int32, isCalc bool, ended, ready dag.Time, wait func(int32)) (a added) {
	gap := o.start - b.zero - ready
	if gap <= 0 || b.job.o.own.Gaps == gapsNone {
		return a
	}
	name, host := gapName, int32(0)
	if b.host == nil && o.correlation >= 0 && b.calls[o.correlation].start > ended {
		name, host = "host", 1
		if on := b.waits.host[o.correlation]; on >= 0 && b.ops[on].end() <= o.start && b.places[on].count > 0 {
			wait(on)
			if end := b.places[on].end; end > ready {
				gap -= end - ready
			}
		}
		if gap <= 0 {
			return a
		}
	} else if b.job.o.own.Gaps == gapsHost {
		return a
	} else if isCalc && o.start-ended < b.job.o.own.KernelGap {
		a.launch = gap
		return a
	}
	op := dag.Op{Kind: dag.Calc, Duration: gap, Stream: label, Host: host, Name: name, Timed: true,
		MeasuredStart: o.start - gap + b.offset, MeasuredEnd: o.start + b.offset}
	b.vary.apply(&op)
	calc := b.Add(op, b.deps...)
	b.deps = append(b.deps[:0], calc)
	a.end = o.start - b.zero
	return a
}

// calc returns the op of a kernel or copy.
func (b *rankBuilder) calc(o *deviceOp, label int32, launch dag.Time) dag.Op {
	op := dag.Op{Kind: dag.Calc, Duration: launch + o.took, Stream: label, Name: b.texts.text(o.name), Timed: true,
		MeasuredStart: o.start + b.offset, MeasuredEnd: o.end() + b.offset}
	if o.bytes > 0 {
		op.Attrs = `{"kineto":{"bytes":` + strconv.FormatInt(o.bytes, 10) + `}}`
	}
	if o.ordinal >= 0 && int(o.ordinal) < len(b.notes) {
		n := &b.notes[o.ordinal]
		op.Flops = n.flops
		switch {
		case n.attrs == "":
		case op.Attrs == "":
			op.Attrs = "{" + n.attrs + "}"
		default:
			op.Attrs = strings.TrimSuffix(op.Attrs, "}") + "," + n.attrs + "}"
		}
	}
	return op
}

// communication returns the op of a communication. One that has no partners in the trace takes its recorded time.
func (b *rankBuilder) communication(o *deviceOp, c *communication, label int32) dag.Op {
	op := b.calc(o, label, 0)
	if c.unrelated {
		return op
	}
	op.Comm = b.talk.groups[c.group].comm
	op.Bytes = c.bytes
	if s, ok := c.op.subkind(); ok {
		op.Kind, op.Subkind, op.RecvBytes = dag.Coll, s, c.recv
		if s.Rooted() {
			op.Peer = dag.UnknownRoot
			if c.peer >= 0 {
				op.Peer = b.job.rankOf(c.peer) // -1 without a file
			}
		}
	} else {
		op.Kind, op.Peer, op.Tag = dag.Send, c.peer, int64(c.instance)
		if c.op == opRecv {
			op.Kind = dag.Recv
		}
	}
	if c.grouped {
		op.Attrs = attr.WithNCCLFlags("", false, true)
	}
	if c.counts != nil && !c.counts.Even() {
		op.Attrs = attr.WithCounts(op.Attrs, c.counts)
	}
	return op
}

// attrs returns the data that the model lacks.
func (j *job) attrs() string {
	type about struct {
		Rank    int32      `json:"rank"`
		Streams [][2]int64 `json:"streams"` // device and number of each stream of the trace
		Host    string     `json:"host,omitempty"`
	}
	all := struct {
		Origin int64   `json:"origin_ns"`
		Ranks  []about `json:"ranks"`
	}{Origin: j.origin}
	for i := range j.ranks {
		r := &j.ranks[i]
		a := about{Rank: r.global, Streams: [][2]int64{}, Host: r.meta.host}
		for _, s := range r.order() {
			a.Streams = append(a.Streams, [2]int64{r.streams[s].device, r.streams[s].stream})
		}
		all.Ranks = append(all.Ranks, a)
	}
	return attr.Encode("kineto", all)
}
