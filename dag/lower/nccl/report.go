package nccl

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/tracedag/tracedag/dag"
	"github.com/tracedag/tracedag/dag/lower/nodes"
)

// Report counts the calls, messages and calcs of a lowering.
type Report struct {
	GPUs    int     `json:"gpus"` // ranks of the trace
	Nodes   int     `json:"nodes"`
	GPUNode []int32 `json:"gpu_node"`

	// Calls by kind; a collective counts once per member.
	Ops map[string]int64 `json:"ops"`
	// Calls by algorithms without model, which exchange no messages, by "algo N" with NCCL's number N.
	Unsupported map[string]int64 `json:"unsupported"`

	// Messages by ordered pair of ranks, "A->B", and by pair of nodes. Messages of a rank to itself are not counted.
	GPUPairs  map[string]Traffic `json:"gpu_pairs"`
	NodePairs map[string]Traffic `json:"node_pairs"`
	Network   Traffic            `json:"network"`    // between nodes
	IntraNode Traffic            `json:"intra_node"` // inside nodes

	SendRecvAgree bool `json:"send_recv_agree"` // sent and received bytes are equal for every pair of ranks

	Calcs map[int]Calcs `json:"calc_per_node"`

	// Untimed counts work without a table of times.
	Untimed int64 `json:"untimed"`
	// Estimated counts work by LL128 whose times are estimated from those of Simple.
	Estimated int64 `json:"estimated,omitempty"`

	// SwitchBytes is the number of bytes over the link between each GPU and the switch in NVLS calls, in its busier
	// direction, by rank.
	SwitchBytes map[int]int64 `json:"switch_bytes,omitempty"`

	// Choices are the algorithms and protocols of collectives.
	Choices []Choice `json:"choices"`
}

// Choice is the algorithm and protocol of the equal collectives of a communicator.
type Choice struct {
	Comm       int    `json:"comm"` // index of the communicator in the trace
	Name       string `json:"name,omitempty"`
	Ranks      int    `json:"ranks"`
	Nodes      int    `json:"nodes"`
	Collective string `json:"collective"`
	Bytes      int64  `json:"bytes"` // of one rank; of an allgather sent, of a reduce-scatter received
	Calls      int64  `json:"calls"`
	Algorithm  string `json:"algorithm"`
	Protocol   string `json:"protocol"`
	Channels   int    `json:"channels"`
	// Why is the reason: trace, size, options or least predicted time. The algorithm can differ from that of Lowered.
	Why     string       `json:"why"`
	Lowered string       `json:"lowered,omitempty"` // algorithm by which the calls are lowered if it is another; none
	Best    []Prediction `json:"best,omitempty"`    // the two least predicted times
}

// Traffic is a number of messages and their bytes.
type Traffic struct {
	Messages int64 `json:"messages"`
	Bytes    int64 `json:"bytes"`
}

// Calcs is the computation of a node.
type Calcs struct {
	Gap        int64 `json:"gap_ns"`         // calcs of the trace, ns
	ReduceCopy int64 `json:"reduce_copy_ns"` // GPU work of NCCL calls, ns
	Transfer   int64 `json:"transfer_ns"`    // messages inside the node, both ends, ns
	Ops        int64 `json:"calc_ops"`       // number of calcs of all kinds
}

// Kinds of calls in reports.
const (
	sendKind = iota
	recvKind
	allreduceKind
	allgatherKind
	reduceScatterKind
	broadcastKind
	reduceKind
	numKinds
)

var kindNames = [numKinds]string{"Send", "Recv", "AllReduce", "AllGather", "ReduceScatter", "Broadcast", "Reduce"}

func kindOf(s dag.Subkind) int {
	switch s {
	case dag.Allreduce:
		return allreduceKind
	case dag.Allgather:
		return allgatherKind
	case dag.ReduceScatter:
		return reduceScatterKind
	case dag.Bcast:
		return broadcastKind
	}
	return reduceKind
}

// figures are the counts of one rank.
type figures struct {
	kinds         [numKinds]int64
	unsupported   [len(algorithmNames)]int64
	gapNS, workNS int64
	untimed       int64
	estimated     int64
	switchNS      int64 // transfers of NVLS
	switchBytes   int64
	sent, recvd   map[int32]Traffic // by peer
}

func newFigures() figures {
	return figures{sent: make(map[int32]Traffic), recvd: make(map[int32]Traffic)}
}

// count counts messages with a peer.
func (f *feed) count(peer int32, sent, bytes, received, bytesReceived int64) {
	if !f.Counting() {
		return
	}
	if sent > 0 {
		f.figures.sent[peer] = f.figures.sent[peer].plus(sent, bytes)
	}
	if received > 0 {
		f.figures.recvd[peer] = f.figures.recvd[peer].plus(received, bytesReceived)
	}
}

func (t Traffic) plus(messages, bytes int64) Traffic {
	return Traffic{t.Messages + messages, t.Bytes + bytes}
}

func (f *feed) countLink(l *link) { f.count(l.peer, l.sent, l.bytes, l.received, l.bytesReceived) }

// countLane counts the messages of a link, and stores the number of messages of the lane on which the rank sends.
func (f *feed) countLane(c *comm, lane int32, l *link) {
	if !f.Counting() {
		return
	}
	if l.sent > 1<<31-1 {
		f.Fail(errTags)
		return
	}
	c.tags[lane] = int32(l.sent)
	f.countLink(l)
}

// report combines the counts of all ranks.
func (l *lowering) report(s *nodes.Source) (Report, error) {
	r := Report{
		GPUs: len(l.ranks), GPUNode: l.trace.Nodes, Ops: map[string]int64{}, Unsupported: map[string]int64{},
		GPUPairs: map[string]Traffic{}, NodePairs: map[string]Traffic{}, SendRecvAgree: true, Calcs: map[int]Calcs{},
		Choices: l.choices(),
	}
	if r.GPUNode == nil {
		r.GPUNode = make([]int32, len(l.ranks))
		for i := range r.GPUNode {
			r.GPUNode[i] = int32(i)
		}
	}
	if len(r.GPUNode) > 0 {
		r.Nodes = int(slices.Max(r.GPUNode)) + 1
	}
	calcs := make([]Calcs, r.Nodes)
	between := make(map[pair]Traffic)
	for rank := range l.ranks {
		f := &l.ranks[rank].figures
		for kind, n := range f.kinds {
			if n > 0 {
				r.Ops[kindNames[kind]] += n
			}
		}
		for a, n := range f.unsupported {
			if n > 0 {
				r.Unsupported[algorithm(a).number()] += n
			}
		}
		r.Untimed += f.untimed
		r.Estimated += f.estimated
		if f.switchBytes > 0 {
			if r.SwitchBytes == nil {
				r.SwitchBytes = make(map[int]int64)
			}
			r.SwitchBytes[rank] = f.switchBytes
		}
		c := &calcs[r.GPUNode[rank]]
		c.Transfer += f.switchNS
		c.Gap += f.gapNS
		c.ReduceCopy += f.workNS
		if c.Gap < 0 || c.ReduceCopy < 0 {
			return r, errors.New("calcs of more than 2^63 ns on one node")
		}
		l.reportTraffic(&r, int32(rank), between)
	}
	for p, t := range between {
		r.NodePairs[fmt.Sprintf("%d->%d", p.from, p.to)] = t
	}
	h, err := s.Header()
	if err != nil {
		return r, err
	}
	for i := range h.Ranks {
		node := i
		if l.o.Apart {
			node = int(r.GPUNode[i])
		}
		ops, transfer := s.Calcs(i)
		calcs[node].Ops += ops
		calcs[node].Transfer += transfer
	}
	for node, c := range calcs {
		r.Calcs[node] = c
	}
	return r, nil
}

// choices returns the algorithms and protocols of collectives, in the order of communicators and first calls.
func (l *lowering) choices() []Choice {
	type key struct {
		call *call
		kind dag.Subkind
	}
	all := []Choice{}
	for id, c := range l.comms {
		if c == nil {
			continue
		}
		index := make(map[key]int)
		for i := range c.instances {
			inst := &c.instances[i]
			k := key{inst.call, inst.kind}
			at, known := index[k]
			if !known {
				at = len(all)
				index[k] = at
				all = append(all, l.choice(id, c, inst))
			}
			all[at].Calls++
		}
	}
	return all
}

// choice describes the call of a collective.
func (l *lowering) choice(id int, c *comm, inst *instance) Choice {
	call := inst.call
	d := Choice{
		Comm: id, Name: l.trace.Comms[id].Name, Ranks: len(c.members), Nodes: c.topology.nodes(),
		Collective: kindNames[kindOf(inst.kind)], Algorithm: algorithmNames[call.algorithm],
		Protocol: protocolNames[call.protocol], Channels: len(call.channels), Why: reasonNames[call.why],
	}
	for _, p := range call.best {
		p.US = math.Round(p.US*1000) / 1000
		d.Best = append(d.Best, p)
	}
	for i := range call.channels {
		d.Bytes += call.channels[i].work * call.typeSize
	}
	switch {
	case inst.omitted:
		d.Lowered = "none"
	case inst.algorithm != call.algorithm:
		d.Lowered = algorithmNames[inst.algorithm]
	}
	return d
}

// reportTraffic adds the messages that a rank sends, and compares sent with received ones.
func (l *lowering) reportTraffic(r *Report, rank int32, between map[pair]Traffic) {
	f := &l.ranks[rank].figures
	for from, t := range f.recvd {
		if l.ranks[from].figures.sent[rank] != t {
			r.SendRecvAgree = false
		}
	}
	for to, t := range f.sent {
		if l.ranks[to].figures.recvd[rank] != t {
			r.SendRecvAgree = false
		}
		if to == rank {
			continue
		}
		r.GPUPairs[fmt.Sprintf("%d->%d", rank, to)] = t
		a, b := r.GPUNode[rank], r.GPUNode[to]
		if a == b {
			r.IntraNode = r.IntraNode.plus(t.Messages, t.Bytes)
			continue
		}
		r.Network = r.Network.plus(t.Messages, t.Bytes)
		between[pair{a, b}] = between[pair{a, b}].plus(t.Messages, t.Bytes)
	}
}

// UnsupportedCalls describes the calls by algorithms without model, "" if there are none.
func (r *Report) UnsupportedCalls() string {
	var parts []string
	for a, name := range algorithmNames {
		if n := r.Unsupported[algorithm(a).number()]; n > 0 {
			parts = append(parts, fmt.Sprintf("%d of %s", n, name))
		}
	}
	return strings.Join(parts, ", ")
}

// number returns the name of an algorithm in reports, which has NCCL's number.
func (a algorithm) number() string { return fmt.Sprintf("algo %d", a) }
