package sim

// causes records, in a run of an engine, why each op started when it did, so that [Engine.Path] finds the critical path
// after the run.
type causes struct {
	lead  []lead     // by op: why it started or, for a receive, why it was posted
	taken []uint32   // by receive: the lead of the time at which it took its message; by send: see RecordPath
	last  [][]uint32 // by rank and stream: the op of the latest span
	ends  []uint32   // by rank: the op that ends at its finish; NoOp: none

	// By op: the start of its span; nil if it follows from the end, without noise and with a Tracer.
	start []uint64
	// By send that waited for its receive: the time of their match, with byPost; nil without such sends.
	match []uint64
}

// lead is the event that an op waited for last: an op, and in the highest three bits what happened to it. 0 is no
// event.
type lead uint32

// Events of a lead.
const (
	noLead     lead = iota << opBits
	afterEnd        // the end of the op
	afterStart      // the start of the op
	afterSpan       // the end of the op's span on the same stream
	onArrival       // the arrival of its message
	onPost          // the post of the receive itself
)

func (l lead) op() uint32  { return uint32(l) & opMask }
func (l lead) event() lead { return l &^ opMask }

// byPost marks a match for which the post of the receive was the last event, not the request of the message.
const byPost = 1 << 63

// RecordPath makes Run record why each op started, for [Engine.Path]. It returns an array for the network, with an
// element per send.
func (e *Engine) RecordPath() []uint32 {
	n := e.p.NumOps()
	c := &causes{lead: make([]lead, n), taken: make([]uint32, n), last: make([][]uint32, e.p.Ranks()),
		ends: make([]uint32, e.p.Ranks())}
	for r := range c.last {
		c.last[r] = make([]uint32, len(e.p.streams[r]))
		c.ends[r] = NoOp
	}
	if _, traces := e.network.(Tracer); !traces || e.host.Work != nil {
		c.start = make([]uint64, n)
	}
	if e.p.LargestMessage > e.host.Rendezvous || e.host.Synchronous || e.host.Mode != nil {
		c.match = make([]uint64, n)
	}
	e.causes = c
	return c.taken
}

// released records that an op whose dependencies were met at the given time so far waits for an event at time t.
func (c *causes) released(d uint32, ready, t uint64, by lead) {
	if l := c.lead[d]; t > ready || t == ready && (l == noLead || l.op() > by.op()) {
		c.lead[d] = by
	}
}

// occupies records that op i occupies its stream from begin on; waited reports whether it waited for the stream.
func (c *causes) occupies(i uint32, op *Op, begin uint64, waited bool) {
	last := &c.last[op.Rank][op.Stream]
	if waited {
		if by := afterSpan | lead(*last); op.Flags&IsRecv != 0 {
			c.taken[i] = uint32(by)
		} else {
			c.lead[i] = by
		}
	}
	*last = i
	if c.start != nil {
		c.start[i] = begin
	}
}

// matched records that message m, which waits for its receive, matches it at time t, when the receive is posted or when
// the message's request arrives.
func (c *causes) matched(m uint32, t uint64, posted bool) {
	if c.match == nil {
		return
	}
	if posted {
		t |= byPost
	}
	c.match[m] = t
}

// takes records that a receive takes its message, which arrived at the given time.
func (c *causes) takes(i uint32, posted, arrived uint64) {
	if arrived >= posted {
		c.taken[i] = uint32(onArrival | lead(i))
	} else {
		c.taken[i] = uint32(onPost | lead(i))
	}
}

// finishes records that op i of a rank ends later than all others so far.
func (c *causes) finishes(rank, i uint32, later bool) {
	if later || c.ends[rank] == NoOp {
		c.ends[rank] = i
	}
}
