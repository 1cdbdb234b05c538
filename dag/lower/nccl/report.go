package nccl

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/tracedag/tracedag/dag"
	"github.com/tracedag/tracedag/dag/lower/nodes"
)

// Report says what a lowering made of a trace.
type Report struct {
	GPUs    int     `json:"gpus"` // ranks of the trace
	Nodes   int     `json:"nodes"`
	GPUNode []int32 `json:"gpu_node"`

	// Calls of each kind, those of a collective once for each member.
	Ops map[string]int64 `json:"ops"`
	// Calls by algorithms that are not modelled, and that exchange no messages: by "algo N", N being NCCL's number.
	Unsupported map[string]int64 `json:"unsupported"`

	// Messages of each ordered pair of ranks, "A->B", and those between nodes. Messages of a rank to itself are in none.
	GPUPairs  map[string]Traffic `json:"gpu_pairs"`
	NodePairs map[string]Traffic `json:"node_pairs"`
	Network   Traffic            `json:"network"`    // between nodes
	IntraNode Traffic            `json:"intra_node"` // inside nodes

	SendRecvAgree bool `json:"send_recv_agree"` // every rank receives what the others send it

	Calcs map[int]Calcs `json:"calc_per_node"`

	// Untimed counts pieces of work for which there is no table of times.
	Untimed int64 `json:"untimed"`
}

// Traffic is messages.
type Traffic struct {
	Messages int64 `json:"messages"`
	Bytes    int64 `json:"bytes"`
}

// Calcs is the computation of a node, in nanoseconds.
type Calcs struct {
	Gap        int64 `json:"gap_ns"`         // calcs of the trace
	ReduceCopy int64 `json:"reduce_copy_ns"` // work on data of NCCL's calls
	Transfer   int64 `json:"transfer_ns"`    // messages inside the node, at both ends
	Ops        int64 `json:"calc_ops"`       // calcs of all kinds
}

// Names of the calls in reports.
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

// figures are what was counted at a rank.
type figures struct {
	kinds         [numKinds]int64
	unsupported   [len(algorithmNames)]int64
	gapNS, workNS int64
	untimed       int64
	sent, recvd   map[int32]Traffic // by the other rank
}

func newFigures() figures {
	return figures{sent: make(map[int32]Traffic), recvd: make(map[int32]Traffic)}
}

// count counts messages with another rank.
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

// countLane is countLink for a lane on which the rank sends.
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

// report puts the figures of all ranks together.
func (l *lowering) report(s *nodes.Source) (Report, error) {
	r := Report{
		GPUs: len(l.ranks), GPUNode: l.trace.Nodes, Ops: map[string]int64{}, Unsupported: map[string]int64{},
		GPUPairs: map[string]Traffic{}, NodePairs: map[string]Traffic{}, SendRecvAgree: true, Calcs: map[int]Calcs{},
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
		c := &calcs[r.GPUNode[rank]]
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

// reportTraffic adds the messages that a rank sends.
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

// UnsupportedCalls describes the calls that exchange no messages for want of a model, "" if there are none.
func (r *Report) UnsupportedCalls() string {
	var parts []string
	for a, name := range algorithmNames {
		if n := r.Unsupported[algorithm(a).number()]; n > 0 {
			parts = append(parts, fmt.Sprintf("%d of %s", n, name))
		}
	}
	return strings.Join(parts, ", ")
}

// number returns what reports call an algorithm: by NCCL's number.
func (a algorithm) number() string { return fmt.Sprintf("algo %d", a) }
