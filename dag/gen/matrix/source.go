package matrix

import (
	"fmt"

	"github.com/tracedag/tracedag/dag"
	"github.com/tracedag/tracedag/dag/gen/openloop"
)

// maxBatch is how many ops a batch of several ranks has at most. A reader takes 29 bytes for each.
const maxBatch = 1 << 21

// maxRankOps is how many ops a rank has at most: it is in memory as a whole.
const maxRankOps = 1 << 26

// Source is the trace of a workload whose flows are in memory, 20 bytes each: flow k, in the order of arrival, is a
// send of its source, released when it arrives, and a receive of its destination without dependencies, both with tag k.
// Its ranks are made batch by batch. It is a format.Source.
type Source struct {
	nodes   int
	sizes   []int64
	routes  []uint32
	times   []dag.Time
	copies  int64 // of all flows; each begins when the one before ends
	ops     []int64
	batches []dag.Batch
}

func newSource(w *workload) (*Source, error) {
	s := &Source{
		nodes: w.Nodes, sizes: w.sizes, routes: w.routes, times: w.times, copies: w.report.Copies,
		ops: make([]int64, w.Nodes),
	}
	for _, route := range s.routes {
		s.ops[route>>16] += s.copies
		s.ops[route&0xffff] += s.copies
	}
	var b dag.Batch
	for rank, ops := range s.ops {
		if ops > maxRankOps {
			return nil, &openloop.ParamError{Param: "flows", Found: fmt.Sprint(s.copies * int64(len(s.sizes))),
				Expected: fmt.Sprintf("so few that no rank sends and receives more than %d", maxRankOps)}
		}
		if rank > b.First && b.Ops+ops > maxBatch {
			s.batches = append(s.batches, b)
			b = dag.Batch{First: rank}
		}
		b.Last, b.Ops = rank+1, b.Ops+ops
	}
	s.batches = append(s.batches, b)
	return s, nil
}

// Meta returns the title.
func (s *Source) Meta() dag.Meta {
	return dag.Meta{Title: fmt.Sprintf("matrix, %d nodes, %d flows", s.nodes, s.copies*int64(len(s.sizes)))}
}

// Comms returns the communicator of all ranks.
func (s *Source) Comms() []dag.Comm {
	return []dag.Comm{dag.World(s.nodes)}
}

// NumRanks returns the number of nodes.
func (s *Source) NumRanks() int {
	return s.nodes
}

// NumOps returns the number of ops, which is exact.
func (s *Source) NumOps() int64 {
	return 2 * s.copies * int64(len(s.sizes))
}

// Kinds returns sends and receives.
func (s *Source) Kinds() ([]dag.Kind, error) {
	return []dag.Kind{dag.Send, dag.Recv}, nil
}

// Batches divides all ranks.
func (s *Source) Batches() []dag.Batch {
	return s.batches
}

// Complete reports that readers leave nothing out.
func (s *Source) Complete() bool {
	return true
}

// Close does nothing.
func (s *Source) Close() error {
	return nil
}

// Reader returns a function that makes the ranks of a batch.
func (s *Source) Reader() func(dag.Batch) ([]dag.Rank, error) {
	var c columns
	return func(b dag.Batch) ([]dag.Rank, error) {
		return s.fill(b, &c), nil
	}
}

// Trace makes the whole trace.
func (s *Source) Trace() (*dag.Trace, error) {
	ranks := s.fill(dag.Batch{Last: s.nodes, Ops: s.NumOps()}, &columns{})
	return &dag.Trace{Meta: s.Meta(), Comms: s.Comms(), Ranks: ranks}, nil
}

// columns are those of the ops of a batch, rank after rank.
type columns struct {
	kind    []dag.Kind
	bytes   []int64
	peer    []int32
	tag     []int64
	release []dag.Time
}

// fill enters the ops of the batch's ranks into the columns.
func (s *Source) fill(b dag.Batch, c *columns) []dag.Rank {
	if int64(len(c.kind)) < b.Ops {
		*c = columns{
			make([]dag.Kind, b.Ops), make([]int64, b.Ops), make([]int32, b.Ops), make([]int64, b.Ops), make([]dag.Time, b.Ops),
		}
	}
	at := make([]int64, b.Last-b.First) // where each rank's next op goes
	end := int64(0)
	for i := range at {
		at[i] = end
		end += s.ops[b.First+i]
	}
	enter := func(i uint, kind dag.Kind, bytes int64, peer int32, tag int64, release dag.Time) {
		op := at[i]
		at[i]++
		c.kind[op], c.bytes[op], c.peer[op], c.tag[op], c.release[op] = kind, bytes, peer, tag, release
	}
	tag := int64(0)
	for copies := range s.copies {
		start := dag.Time(copies) * s.times[len(s.times)-1]
		for flow, route := range s.routes {
			source, destination := int(route>>16), int(route&0xffff)
			if i := uint(source - b.First); i < uint(len(at)) {
				enter(i, dag.Send, s.sizes[flow], int32(destination), tag, start+s.times[flow])
			}
			if i := uint(destination - b.First); i < uint(len(at)) {
				enter(i, dag.Recv, s.sizes[flow], int32(source), tag, 0)
			}
			tag++
		}
	}
	ranks := make([]dag.Rank, len(at))
	first := int64(0)
	for i, end := range at {
		ranks[i] = dag.Rank{
			Kind: c.kind[first:end:end], Bytes: c.bytes[first:end:end], Peer: c.peer[first:end:end], Tag: c.tag[first:end:end],
			Release: c.release[first:end:end],
		}
		first = end
	}
	return ranks
}
