package sim

// Timeline receives the spans and messages of a run as the replay comes to them, which is not always time order.
type Timeline interface {
	// Begin is called first.
	Begin(p *Program)
	// Span reports that a stream was busy.
	Span(s Span)
	// Transfer reports a message that met its receive.
	Transfer(t Transfer)
	// End is called last, and returns the first write error.
	End() error
}

// SpanKind is the reason why a stream is busy.
type SpanKind uint8

// Kinds of span.
const (
	CalcSpan SpanKind = iota
	SendSpan
	RecvSpan
	NoiseSpan // operating-system noise; may have length 0
)

// Span is an interval in which a stream was busy. Times are in Program.Unit.
type Span struct {
	Kind       SpanKind
	Rank       uint32
	Stream     uint32 // as in Op.Stream
	Op         uint32 // that occupied the stream
	Start, End uint64
}

// Transfer is the way of a message through the network. Times are in Program.Unit.
type Transfer struct {
	Source, Target uint32 // ranks
	Send, Recv     uint32 // ops
	Start, End     uint64 // when it entered the network, and when its receive took it
	Arrived        uint64 // when its last byte arrived: End, or earlier if it waited for its receive
	Bytes          uint64
}
