package graph500

// Numbers of ops per rank, known before the trace is generated.

import (
	"fmt"

	"github.com/tracedag/tracedag/internal/par"
)

// counts returns a function that returns the numbers of ops and dependencies of a rank, and the total number of ops.
// With more than exact processes, the former are expected values.
func (s *search) counts(exact int) (count func(rank int) (ops, deps int64), total int64, err error) {
	n := s.p.Nodes
	sends, all := make([]int64, n), int64(0) // messages with queries
	first, end := s.written()
	for _, level := range s.levels[first:end] {
		for process, a := range level {
			sends[process] += a.messages
			all += a.messages
		}
	}
	var receives []int64
	if n <= exact {
		if receives, err = s.receives(); err != nil {
			return nil, 0, err
		}
	}
	count = func(rank int) (ops, deps int64) {
		received := (all - sends[rank]) / int64(n-1)
		if receives != nil {
			received = receives[rank]
		}
		out, in := s.control(rank)
		ops = 2*sends[rank] + 2*received + out + in
		return ops, ops + received + in
	}
	for rank := range n {
		ops, _ := count(rank)
		if ops > maxRankOps {
			return nil, 0, fmt.Errorf("rank %d has %d ops, expected at most %d: use more nodes, "+
				"more coalescing or less scale", rank, ops, maxRankOps)
		}
		out, _ := s.control(rank)
		total += 4*sends[rank] + 2*out // each message is sent and received
	}
	return count, total, nil
}

// control returns the numbers of notices and all-reduce messages that a rank sends and receives.
func (s *search) control(rank int) (out, in int64) {
	others := int64(s.p.Nodes - 1)
	first, end := s.written()
	levels := int64(end - first)
	if out, in = levels, levels; rank == s.root {
		out, in = levels*others, levels*others
	}
	if s.p.Notices == AllNotices {
		if first == 0 { // the root's process notifies the others
			levels--
			if rank == s.root {
				out += others
			} else {
				in++
			}
		}
		out += levels * others
		in += levels * others
	}
	return out, in
}

// receives returns the number of query messages that each process receives.
func (s *search) receives() ([]int64, error) {
	all := make([]int64, s.p.Nodes)
	newCounts := func() []int64 { return make([]int64, len(all)) }
	parts, err := par.EachWith(s.p.Nodes, newCounts, func(own []int64, source int) error {
		s.sentBy(source, own)
		return par.Interrupted(s.p.Context)
	})
	if err != nil {
		return nil, err
	}
	for _, part := range parts {
		for process, n := range part {
			all[process] += n
		}
	}
	return all, nil
}

// sentBy adds the messages of one process to the counts of their receivers.
func (s *search) sentBy(source int, received []int64) {
	first, end := s.written()
	for level := first; level < end; level++ {
		s.targets.each(level, source, s.levels[level][source], func(process int, messages int64) {
			received[process] += messages
		})
	}
}
