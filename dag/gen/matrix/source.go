package matrix

import (
	"fmt"

	"github.com/tracedag/tracedag/dag"
	"github.com/tracedag/tracedag/dag/gen/openloop"
)

// maxBatch is the limit of the ops in a batch of several ranks. It is smaller than openloop's, because the flows are in
// memory, too: 1024 nodes stay within 1 GiB.
const maxBatch = 1 << 21

// columns are the flows of a workload in the order of arrival, 20 bytes each.
type columns struct {
	sizes  []int64
	routes []uint32 // source << 16 | destination
	times  []dag.Time
	copies int64 // of all flows; each begins when the previous one ends
}

// newSource returns the trace of the flows. Each flow is a send of its source, released when it arrives, and a receive
// of its destination.
func newSource(w *workload, maxBatch int64) (*openloop.Source, error) {
	c := &columns{w.sizes, w.routes, w.times, w.report.Copies}
	flows := c.copies * int64(len(c.sizes))
	perCopy := make([]int64, w.Nodes)
	for _, route := range c.routes {
		perCopy[route>>16]++
		perCopy[route&0xffff]++
	}
	ops := make([]uint32, w.Nodes)
	for node, n := range perCopy {
		if n *= c.copies; n > openloop.MaxRankOps {
			return nil, &openloop.ParamError{Param: "flows", Found: fmt.Sprint(flows),
				Expected: fmt.Sprintf("fewer, with at most %d sends and receives per rank", openloop.MaxRankOps)}
		}
		ops[node] = uint32(perCopy[node] * c.copies)
	}
	m := openloop.Model{
		Meta: dag.Meta{
			Title: fmt.Sprintf("matrix, %d nodes, %d flows", w.Nodes, flows), Attrs: w.matrix.Racks.Encode(),
		},
		Tasks:    w.Nodes,
		Context:  w.Context,
		Messages: func() openloop.Stream { return &stream{columns: c} },
	}
	return openloop.NewCountedSource(m, ops, maxBatch), nil
}

// stream returns the flows as messages, some at a time.
type stream struct {
	*columns
	flow     int   // next flow of the current copy
	copied   int64 // complete copies
	messages [1024]openloop.Message
}

// Next returns the next messages, none at the end.
func (s *stream) Next() []openloop.Message {
	if s.flow == len(s.routes) {
		s.flow = 0
		s.copied++
	}
	if s.copied == s.copies {
		return nil
	}
	start := dag.Time(s.copied) * s.times[len(s.times)-1]
	routes := s.routes[s.flow:]
	if len(routes) > len(s.messages) {
		routes = routes[:len(s.messages)]
	}
	sizes, times := s.sizes[s.flow:][:len(routes)], s.times[s.flow:][:len(routes)]
	for i, route := range routes {
		s.messages[i] = openloop.Message{
			Time: start + times[i], Bytes: sizes[i], Source: int32(route >> 16), Destination: int32(route & 0xffff),
		}
	}
	s.flow += len(routes)
	return s.messages[:len(routes)]
}
