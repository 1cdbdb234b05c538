package sim

// Timeline receives what happens in a run as it happens, in the order in which the replay comes upon it, which is not
// always that of time.
type Timeline interface {
	// Begin announces the run, before anything else.
	Begin(p *Program)
	// Span reports that a stream was busy.
	Span(s Span)
	// Transfer reports a message that met its receive.
	Transfer(t Transfer)
	// End reports that there is no more, and returns the first error of writing.
	End() error
}

// SpanKind says what kept a stream busy.
type SpanKind uint8

// What keeps a stream busy.
const (
	CalcSpan SpanKind = iota
	SendSpan
	RecvSpan
	NoiseSpan // operating-system noise; may have no length
)

// Span is an interval in which a stream was busy. Times are in Program.Unit.
type Span struct {
	Kind       SpanKind
	Rank       uint32
	Stream     uint32 // as in Op.Stream
	Op         uint32 // whose work it was
	Start, End uint64
}

// Transfer is a message on its way through the network. Times are in Program.Unit.
type Transfer struct {
	Source, Target uint32 // ranks
	Send, Recv     uint32 // ops
	Start, End     uint64 // when it entered the network, and when its receive took it
	Arrived        uint64 // when its last byte was there: at the end, or before where it waited for its receive
	Bytes          uint64
}
