// This file builds the trace.

package nsys

import (
	"cmp"
	"encoding/json"
	"math"
	"slices"
	"sync/atomic"

	"github.com/tracedag/tracedag/dag"
	"github.com/tracedag/tracedag/dag/attr"
	"github.com/tracedag/tracedag/internal/par"
)

// trace builds the trace of the job.
func (j *job) trace() (*dag.Trace, error) {
	b := dag.NewBuilder(len(j.gpus))
	meta := b.Meta()
	meta.Attrs = j.attrs()
	meta.Nodes = make([]int32, len(j.gpus))
	for g := range j.gpus {
		meta.Nodes[g] = j.gpus[g].node
	}
	numbers := make([]int32, len(j.comms)) // numbers in the trace
	for c := range j.comms {
		numbers[c] = b.AddComm(dag.NewComm(j.comms[c].name(), j.comms[c].gpus))
	}
	offsets := j.clocks()
	if j.options.AlignClocks {
		j.align(offsets)
	}
	for g := range j.gpus {
		j.gpus[g].setEnds(j.options.KeepEnds)
	}
	merged := j.options.MergeNonOverlap && j.mayMerge()
	if j.options.MergeNonOverlap && !merged {
		j.warn("the streams of each GPU are not merged, because kernels or calls of a GPU overlap")
	}
	highest, first := j.steps()
	meta.Steps = highest
	var negative atomic.Int64
	err := par.Each(len(j.gpus), func(g int) error {
		gpu := &j.gpus[g]
		rb := rankBuilder{RankBuilder: b.Rank(g), gpu: gpu, job: j, comms: numbers, merged: merged, firstStep: first,
			offset: offsets[slices.Index(j.reports, gpu.report)]}
		n, err := rb.build()
		negative.Add(n)
		return err
	})
	if err != nil {
		return nil, err
	}
	if n := negative.Load(); n > 0 {
		j.warn("%d gaps between kernels count as 0, because the kernels overlap", n)
	}
	t := b.Trace()
	return t, b.Err()
}

// setEnds determines the start of the GPU's time and, if requested, its end.
func (g *gpu) setEnds(keepEnds bool) {
	r := g.report
	w := &r.procs[g.proc].window
	if g.start, g.stop = w.start, w.stop; keepEnds {
		if g.start == unknownTime {
			g.start = max(r.session[0], 0)
		}
		if g.stop == math.MaxInt64 {
			g.stop = r.session[1]
		}
	}
	if g.start != unknownTime {
		return
	}
	g.start = math.MaxInt64
	for _, i := range g.events {
		g.start = min(g.start, r.events[i].start)
	}
}

// mayMerge reports whether on no GPU two events overlap or overtake each other, neither as calls nor as kernels.
func (j *job) mayMerge() bool {
	for g := range j.gpus {
		gpu := &j.gpus[g]
		r := gpu.report
		for k := 1; k < len(gpu.events); k++ {
			before, e := &r.events[gpu.events[k-1]], &r.events[gpu.events[k]]
			if e.start < before.end || e.call < before.done {
				return false
			}
		}
	}
	return true
}

// rankBuilder builds the rank of a GPU.
type rankBuilder struct {
	*dag.RankBuilder
	gpu     *gpu
	job     *job
	comms   []int32
	offset  int64
	merged  bool
	streams []streamState
	labelOf map[int32]int32 // by stream of the report, one more than its index in streams
	final   map[attrsKey]string

	firstStep int32 // difference of the numbers of steps to those of the report
}

// streamState is the state of a stream.
type streamState struct {
	end     int64 // of its last event
	members []int // ops of that event
}

type attrsKey struct {
	text             int32
	inPlace, grouped bool
}

// build adds the ops. It returns the number of negative gaps, and an error only if the context has ended.
func (b *rankBuilder) build() (negative int64, err error) {
	watch := par.Watch{Context: b.job.ctx}
	b.labelOf = make(map[int32]int32)
	b.final = make(map[attrsKey]string)
	r := b.gpu.report
	ops, attrs := 1, 0
	for _, i := range b.gpu.events {
		e := &r.events[i]
		ops += 1 + int(e.count)
		for k := range e.count {
			attrs += len(b.attrs(&r.members[e.first+k], k > 0))
		}
	}
	b.Reserve(ops, ops)
	b.ReserveMeasured(ops, attrs)
	var waits map[int32][]int32
	if b.job.options.SyncEdges {
		waits = b.gpu.waits()
	}
	places := make(map[int32]int) // first op of events that others may wait for
	for _, event := range b.gpu.events {
		if err := watch.Err(); err != nil {
			return 0, err
		}
		e := &r.events[event]
		b.Step(r.stepAt(e.proc, e.host, b.firstStep))
		label := b.label(e.stream)
		s := &b.streams[label-1]
		gap := e.start - s.end
		before := s.end
		if gap < 0 {
			negative++
			gap, before = 0, e.start
		}
		calc := b.Add(dag.Op{Kind: dag.Calc, Duration: ps(gap), Stream: label, Timed: true,
			MeasuredStart: ps(before + b.offset), MeasuredEnd: ps(e.start + b.offset)}, s.members...)
		s.members = s.members[:0]
		for k := range e.count {
			op := b.op(&r.members[e.first+k], k > 0)
			op.Stream, op.Timed = label, true
			op.MeasuredStart, op.MeasuredEnd = ps(e.start+b.offset), ps(e.end+b.offset)
			i := b.Add(op, calc)
			s.members = append(s.members, i)
			for _, w := range waits[event] {
				for m := range r.events[w].count {
					b.Requires(i, places[w]+int(m))
				}
			}
		}
		if waits != nil {
			places[event] = calc + 1
		}
		s.end = max(s.end, e.end)
	}
	if b.job.options.KeepEnds {
		negative += b.tail()
	}
	return negative, nil
}

// tail adds the time after the last kernel of the GPU.
func (b *rankBuilder) tail() (negative int64) {
	b.Step(0)
	last, label := b.gpu.start, int32(1)
	var members []int
	for i := range b.streams {
		s := &b.streams[i]
		if members = append(members, s.members...); s.end > last {
			last, label = s.end, int32(i+1)
		}
	}
	if b.gpu.stop == unknownTime || b.gpu.stop == math.MaxInt64 || b.gpu.start == math.MaxInt64 {
		return 0
	}
	if b.gpu.stop < last {
		return 1
	}
	b.Add(dag.Op{Kind: dag.Calc, Duration: ps(b.gpu.stop - last), Stream: label, Timed: true,
		MeasuredStart: ps(last + b.offset), MeasuredEnd: ps(b.gpu.stop + b.offset)}, members...)
	return 0
}

func ps(ns int64) dag.Time { return dag.Time(ns) * dag.Nanosecond }

// label returns the number of a stream in the trace: 1, 2, ... in the order of first use.
func (b *rankBuilder) label(stream int32) int32 {
	if b.merged {
		stream = 0
	}
	label, ok := b.labelOf[stream]
	if !ok {
		b.streams = append(b.streams, streamState{end: b.gpu.start})
		label = int32(len(b.streams))
		b.labelOf[stream] = label
	}
	return label
}

// subkinds are the collectives of NCCL.
var subkinds = [opSend]dag.Subkind{dag.Bcast, dag.Reduce, dag.Allgather, dag.ReduceScatter, dag.Allreduce}

// op returns the op of a member.
func (b *rankBuilder) op(m *member, grouped bool) dag.Op {
	at := b.gpu.ranks[m.comm]
	c := &b.job.comms[at.comm]
	op := dag.Op{Comm: b.comms[at.comm], Bytes: m.bytes, Attrs: b.attrs(m, grouped)}
	switch m.op {
	case opSend, opRecv:
		op.Kind, op.Peer, op.Tag = dag.Send, c.gpus[m.peer], int64(m.instance)
		if m.op == opRecv {
			op.Kind = dag.Recv
		}
		return op
	case opBroadcast:
		op.Peer = c.gpus[m.peer]
		if m.peer != at.rank {
			op.Bytes, op.RecvBytes = 0, m.bytes
		}
	case opReduce:
		op.Peer = c.gpus[m.peer]
	case opAllGather:
		op.RecvBytes = m.bytes * int64(len(c.gpus))
	case opReduceScatter:
		op.Bytes, op.RecvBytes = m.bytes*int64(len(c.gpus)), m.bytes
	}
	op.Kind, op.Subkind = dag.Coll, subkinds[m.op]
	return op
}

// attrs returns the attributes of a member.
func (b *rankBuilder) attrs(m *member, grouped bool) string {
	inPlace := m.inPlace == anyRank || m.inPlace == b.gpu.ranks[m.comm].rank
	key := attrsKey{m.attrs, inPlace, grouped}
	if m.replayed != 0 && b.job.comms[b.gpu.ranks[m.comm].comm].channelsDiffer {
		key.text = m.replayed
	}
	if s, ok := b.final[key]; ok {
		return s
	}
	s := attr.WithNCCLFlags(b.gpu.report.attrs.text(key.text), inPlace, grouped)
	b.final[key] = s
	return s
}

// attrs returns the data that the model lacks: rings and trees, hosts, the version of the exporting program.
func (j *job) attrs() string {
	s := []byte{'{'}
	topologies := make(attr.NCCLTopologies)
	for c := range j.comms {
		if x := &j.comms[c]; len(x.rings) > 0 || len(x.trees) > 0 {
			topologies[x.name()] = attr.NCCLTopology{Rings: x.rings, Trees: x.trees}
		}
	}
	if len(topologies) > 0 {
		s = append(topologies.Append(s), ',')
	}
	about := struct {
		Hosts   []string `json:"hosts"`
		Version string   `json:"version,omitempty"`
	}{Hosts: j.hosts}
	for _, r := range j.reports {
		about.Version = cmp.Or(about.Version, r.version)
	}
	text, _ := json.Marshal(about) // strings cannot fail
	s = append(append(s, `"nsys":`...), text...)
	return string(append(s, '}'))
}
