package calibrate

import (
	"cmp"
	"context"
	"maps"
	"math"
	"slices"

	"github.com/tracedag/tracedag/dag"
	"github.com/tracedag/tracedag/dag/attr"
	"github.com/tracedag/tracedag/dag/compose"
)

// recording is the messages of a recorded trace, with the times of the calls that send and receive them.
type recording struct {
	messages    []message
	completions []completion
	collectives [][]period // by rank, ascending
	start       dag.Time   // of the first call
}

// message is a message of a recording.
type message struct {
	from, to   int32
	send, recv int32 // ops
	bytes      int64
	sent, left dag.Time // start and end of the call that sends it
	posted     dag.Time // start of the call that posts its receive
	call       sendCall
	alone      bool  // the call that sends it sends nothing else
	sending    int32 // the completion of its send; noCompletion: unknown
	taking     int32 // that of its receive
	distance   int32 // of its ranks; see [traceFlow]
}

// sendCall is the kind of a call that sends a message.
type sendCall uint8

const (
	blocking    sendCall = iota
	nonBlocking          // returns before the message is sent
	exchanging           // MPI_Sendrecv
	otherSend            // a synchronous, buffered or persistent send
)

const noCompletion = -1

// completion is a call that ends when messages have been sent or received: a blocking call, or a wait for requests.
type completion struct {
	rank       int32
	start, end dag.Time
	requests   []request // in the order of the call
	whole      bool      // it waits for nothing else
}

// request is the send or the receive of a message.
type request struct {
	message int32
	receive bool
}

// period is the start and the end of a call.
type period struct{ start, end dag.Time }

// overlaps reports whether one of the ascending spans has a part between two times.
func overlaps(spans []period, from, to dag.Time) bool {
	i, _ := slices.BinarySearchFunc(spans, from, func(s period, t dag.Time) int { return cmp.Compare(s.end, t) })
	return i < len(spans) && spans[i].start < to
}

// rankCalls finds the calls of a rank that complete messages.
type rankCalls struct {
	number  int32
	rank    *dag.Rank
	returns dag.Dependents // ops that wait for the start of another
	owner   []int32        // by op: the completion of the message; noCompletion: unknown
}

// read adds the completions of the rank, and its collectives, to a recording.
func (c *rankCalls) read(rec *recording, rank int) {
	r := c.rank
	c.returns, c.owner = r.StartDependents(), make([]int32, r.Len())
	for i := range c.owner {
		c.owner[i] = noCompletion
	}
	for i := range r.Len() {
		start, end := r.Measured(i)
		if start == dag.Unmeasured || end == dag.Unmeasured {
			continue
		}
		rec.start = min(rec.start, start)
		switch kind := r.Kind[i]; {
		case kind == dag.Coll:
			rec.collectives[rank] = append(rec.collectives[rank], period{start, end})
		case kind == dag.Calc && r.Duration.At(i) == 0:
			c.wait(rec, i, start, end)
		case !isMessage(kind) || c.returnsAtOnce(i):
		case c.isSecond(i):
			c.owner[i] = c.owner[i-1]
		default:
			c.own(rec, i, start, end)
		}
	}
	slices.SortFunc(rec.collectives[rank], func(a, b period) int { return cmp.Compare(a.start, b.start) })
}

func isMessage(kind dag.Kind) bool { return kind == dag.Send || kind == dag.Recv }

// returnsAtOnce reports whether the call of a message ends before the message: another op starts with it.
func (c *rankCalls) returnsAtOnce(i int) bool { return len(c.returns.Of(i)) > 0 }

// isSecond reports whether a message is the receive of the MPI_Sendrecv whose send is the op before.
func (c *rankCalls) isSecond(i int) bool {
	r := c.rank
	if i == 0 || r.Kind[i] != dag.Recv || r.Kind[i-1] != dag.Send || c.returnsAtOnce(i-1) {
		return false
	}
	start, end := r.Measured(i)
	before, until := r.Measured(i - 1)
	return before == start && until == end
}

// own adds the completion of a blocking call.
func (c *rankCalls) own(rec *recording, i int, start, end dag.Time) {
	c.owner[i] = int32(len(rec.completions))
	rec.completions = append(rec.completions, completion{rank: c.number, start: start, end: end, whole: true})
}

// wait adds the completion of a call that waits for requests.
func (c *rankCalls) wait(rec *recording, i int, start, end dag.Time) {
	whole, some := true, false
	at := int32(len(rec.completions))
	for _, off := range c.rank.Deps.Of(i) {
		on := i - int(off)
		switch kind := c.rank.Kind[on]; {
		case !c.returnsAtOnce(on):
		case kind == dag.Coll:
			whole = false
		case isMessage(kind):
			c.owner[on], some = at, true
		}
	}
	if some {
		rec.completions = append(rec.completions, completion{rank: c.number, start: start, end: end, whole: whole})
	}
}

// readRecording returns the messages of a trace whose times are measured, in the order of their sends. It returns
// [ErrUnmeasured] for a trace without measured times, and errors for receives from any source or of any tag.
func readRecording(ctx context.Context, t *dag.Trace) (*recording, error) {
	measured := slices.ContainsFunc(t.Ranks, func(r *dag.Rank) bool {
		return len(r.MeasuredStart) > 0 && len(r.MeasuredEnd) > 0
	})
	if !measured {
		return nil, ErrUnmeasured
	}
	rec := &recording{collectives: make([][]period, len(t.Ranks)), start: dag.MaxTime}
	calls := make([]rankCalls, len(t.Ranks))
	for rank, r := range t.Ranks {
		calls[rank].number, calls[rank].rank = int32(rank), r
		calls[rank].read(rec, rank)
	}
	err := compose.Messages(ctx, t, func(from, send, to, recv int) {
		m := message{from: int32(from), to: int32(to), send: int32(send), recv: int32(recv),
			bytes: t.Ranks[from].Bytes.At(send), sending: calls[from].owner[send], taking: calls[to].owner[recv]}
		m.sent, m.left = t.Ranks[from].Measured(send)
		m.posted, _ = t.Ranks[to].Measured(recv)
		if from == to || m.sent == dag.Unmeasured || m.left == dag.Unmeasured || m.posted == dag.Unmeasured {
			return
		}
		m.call, m.alone = calls[from].sendCall(send)
		rec.messages = append(rec.messages, m)
	})
	if err != nil {
		return nil, err
	}
	slices.SortStableFunc(rec.messages, func(a, b message) int { return cmp.Compare(a.sent, b.sent) })
	order := make([][]int32, len(t.Ranks)) // by rank and op: 1 + the message, with its sign for receives
	for rank, r := range t.Ranks {
		order[rank] = make([]int32, r.Len())
	}
	for i, m := range rec.messages {
		order[m.from][m.send], order[m.to][m.recv] = int32(i+1), -int32(i+1)
	}
	for rank := range t.Ranks {
		rec.request(calls[rank].rank, calls[rank].owner, order[rank])
	}
	return rec, nil
}

// mostSizes is the number of sizes of messages from which sizes of about the same magnitude count as one of them, and
// sizesPerOctave their number between powers of two then: an estimate takes the time of the square of their number.
const (
	mostSizes      = 64
	sizesPerOctave = 4
)

// representatives returns, by size, the size that stands for it: itself or, of many sizes, the most frequent one of
// about its magnitude.
func (rec *recording) representatives() map[int64]int64 {
	number := map[int64]int{}
	for i := range rec.messages {
		number[rec.messages[i].bytes]++
	}
	sizes := slices.Sorted(maps.Keys(number))
	of := make(map[int64]int64, len(sizes))
	magnitude := func(bytes int64) int { return int(math.Floor(sizesPerOctave * math.Log2(float64(max(bytes, 1))))) }
	for i := 0; i < len(sizes); {
		end, best := i+1, sizes[i]
		for len(sizes) > mostSizes && end < len(sizes) && magnitude(sizes[end]) == magnitude(sizes[i]) {
			if number[sizes[end]] > number[best] {
				best = sizes[end]
			}
			end++
		}
		for ; i < end; i++ {
			of[sizes[i]] = best
		}
	}
	return of
}

// request adds the requests of a rank to their completions, in the order of the calls.
func (rec *recording) request(r *dag.Rank, owner, order []int32) {
	add := func(i int) {
		if owner[i] == noCompletion {
			return
		}
		c := &rec.completions[owner[i]]
		switch k := order[i]; {
		case k == 0:
			c.whole = false // its times are unknown, or it is one to the rank itself
		case k > 0:
			c.requests = append(c.requests, request{message: k - 1})
		default:
			c.requests = append(c.requests, request{message: -k - 1, receive: true})
		}
		owner[i] = noCompletion
	}
	for i := range r.Len() {
		if r.Kind[i] == dag.Calc && r.Duration.At(i) == 0 {
			for _, off := range r.Deps.Of(i) {
				add(i - int(off))
			}
		}
	}
	for i := range r.Len() {
		add(i) // blocking calls
	}
}

// sendCall returns the kind of the call of a send, and whether it sends nothing else.
func (c *rankCalls) sendCall(i int) (call sendCall, alone bool) {
	r := c.rank
	mode, persistent := attr.ParseSendMode(r.Attrs.At(i))
	same := func(k int) bool {
		if k < 0 || k >= r.Len() || !isMessage(r.Kind[k]) {
			return false
		}
		start, end := r.Measured(i)
		other, until := r.Measured(k)
		return other == start && until == end
	}
	alone = !same(i-1) && !same(i+1)
	switch {
	case persistent || mode == attr.Synchronous || mode == attr.Buffered:
		return otherSend, alone
	case c.returnsAtOnce(i):
		return nonBlocking, alone
	case !alone:
		return exchanging, false
	}
	return blocking, true
}
