package sim

// Timeline receives the spans and messages of a run in replay order, which is not always time order.
type Timeline interface {
	// Begin is called before all other methods.
	Begin(p *Program)
	// Span reports a busy interval of a stream.
	Span(s Span)
	// Transfer reports a message that matched a receive.
	Transfer(t Transfer)
	// End is called last. It returns the first write error.
	End() error
}

// SpanKind is the reason why a stream is busy.
type SpanKind uint8

// Kinds of span.
const (
	CalcSpan SpanKind = iota
	SendSpan
	RecvSpan
	NoiseSpan // operating-system noise; length 0 is valid
)

// Span is an interval in which a stream is busy. Times are in Program.Unit.
type Span struct {
	Kind       SpanKind
	Rank       uint32
	Stream     uint32 // as in Op.Stream
	Op         uint32 // the op that occupies the stream
	Start, End uint64
}

// Transfer is the transfer of a message through the network. Times are in Program.Unit.
type Transfer struct {
	Source, Target uint32 // ranks
	Send, Recv     uint32 // ops
	Start, End     uint64 // time at which it entered the network, and at which its receive took it
	Arrived        uint64 // arrival of its last byte: End, or earlier if it waited for its receive
	Bytes          uint64
}
