package sim

import (
	"slices"

	"github.com/tracedag/tracedag/dag"
)

// Timeline receives the spans and messages of a run in replay order, which is not always time order. All backends
// report to it.
type Timeline interface {
	// Begin is called before all other methods.
	Begin(l *Layout)
	// Span reports an interval of an op.
	Span(s Span)
	// Transfer reports a message that matched a receive, right after the RecvSpan of the receive or before it. A
	// backend may also report one that arrived before its receive was posted, with the receive NoOp.
	Transfer(t Transfer)
	// End is called last. It returns the first write error.
	End() error
}

// NetworkTimeline is a [Timeline] that also receives the state of the network. Backends with such a state report it to
// timelines that implement it.
type NetworkTimeline interface {
	Timeline
	// Mark reports an event, such as the failure of a link. Times are in Layout.Unit.
	Mark(at uint64, text string)
	// Counter reports the value of a counter from a time on. The unit is not "".
	Counter(at uint64, name, unit string, value float64)
}

// Layout is the numbering of the ops of a run, and its unit of time. Ops are numbered through all ranks: those of rank
// r are Start[r] to Start[r+1]-1.
type Layout struct {
	Unit  dag.Time
	Start []uint32
}

// Ranks returns the number of ranks.
func (l *Layout) Ranks() int {
	return len(l.Start) - 1
}

// NumOps returns the number of ops.
func (l *Layout) NumOps() int {
	return int(l.Start[l.Ranks()])
}

// Index returns the index of op i within its rank.
func (l *Layout) Index(rank, i uint32) int {
	return int(i - l.Start[rank])
}

// Rank returns the rank of op i.
func (l *Layout) Rank(i uint32) uint32 {
	rank, found := slices.BinarySearch(l.Start, i)
	if !found {
		return uint32(rank - 1)
	}
	for l.Start[rank+1] == i { // ranks without ops
		rank++
	}
	return uint32(rank)
}

// SpanKind is what happens in a span.
type SpanKind uint8

// Kinds of span. All but the last three are busy intervals of a stream.
const (
	CalcSpan  SpanKind = iota // a calc, which may have length 0
	SendSpan                  // the overhead of a send
	RecvSpan                  // the overhead of a receive
	NoiseSpan                 // operating-system noise; length 0 is valid
	MemSpan                   // a memory access
	IOSpan                    // a storage access

	// CommSpan is a send or collective that the backend runs without overheads, from its issue to its end.
	CommSpan
	// WaitSpan is an op that has started and waits: a receive from its post until it takes its message, or a send from
	// the end of its overhead until the network ends it.
	WaitSpan
	// CollWaitSpan is a collective that waits for other ranks.
	CollWaitSpan
)

// Busy reports whether a span occupies its stream.
func (k SpanKind) Busy() bool {
	return k < CommSpan
}

// Span is an interval of an op. Times are in Layout.Unit.
type Span struct {
	Kind       SpanKind
	Rank       uint32
	Stream     int32 // the trace's number of the stream that it occupies or, if it occupies none, of its op
	Op         uint32
	Start, End uint64
}

// Transfer is the transfer of a message through the network. Times are in Layout.Unit.
type Transfer struct {
	Source, Target uint32 // ranks
	Send, Recv     uint32 // ops
	// Begun is the time from which the message could enter the network: the end of its send's overhead or, if it waits
	// for its receive, the time of their match if that is later. Backends that do not know it set it to Start.
	Begun      uint64
	Start, End uint64 // time at which it entered the network, and at which its receive took it
	// Arrived is the arrival of its last byte: End, or earlier if it waited for its receive. The models of reference
	// simulators receive the bytes after the first one after End.
	Arrived uint64
	Bytes   uint64
	Swapped bool // the reproduced simulator draws it from the receiver to the sender
}
