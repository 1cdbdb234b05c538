// Package timeline writes runs of any backend for viewers of traces: in Chromium's Trace Event Format (JSON) and in
// Perfetto's protocol buffers. Each rank has tracks for its streams, its waits and collectives, and its NICs.
// docs/reference/simulate.md describes the tracks.
package timeline

import (
	"bufio"
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/klauspost/compress/gzip"

	"github.com/tracedag/tracedag/dag"
	"github.com/tracedag/tracedag/sim"
)

// Endings are the file name endings of the formats.
var Endings = []string{".json", ".json.gz", ".pftrace"}

// EndingOf returns the ending of a file name that selects a format; "" if there is none.
func EndingOf(name string) string {
	for _, ending := range Endings {
		if strings.HasSuffix(strings.ToLower(name), ending) {
			return ending
		}
	}
	return ""
}

// Options select and name what a timeline contains.
type Options struct {
	Trace  *dag.Trace // the trace as it runs, with collectives lowered
	Ranks  []int      // ranks with tracks; nil: all
	Window *Window    // slices that overlap it are written, in full; nil: all

	// Collective returns the name and the number of the collective to which a message with a tag of at most
	// [dag.CollectiveTag] belongs; ok is false if it does not know them. nil: it knows none.
	Collective func(tag int64) (name string, number int64, ok bool)
	// Kept returns the number of collective k of a communicator that is not lowered, counted from 0; nil: no collective
	// was lowered.
	Kept func(comm int32, k int64) (number int64, ok bool)
}

// Window is a window of time. Both ends belong to it.
type Window struct{ From, To dag.Time }

// Writer writes a timeline while the trace runs. It is a [sim.NetworkTimeline].
//
// Its memory does not grow with the ops of the trace, except by about 100 bytes per lowered collective and rank. It
// keeps, per track, the intervals that are free for slices reported late, and names that many slices share.
type Writer struct {
	// About describes the run, as JSON; nil: nothing. Set it before End.
	About any

	o       Options
	out     *bufio.Writer
	zip     *gzip.Writer // nil: not compressed
	enc     encoder
	l       *sim.Layout
	from    uint64 // window in units of l
	to      uint64
	shown   []bool // by rank; nil: all
	ranks   []rankTracks
	network rankTracks
	opened  bool // network has been announced
	counter map[string]*track
	tracks  uint64 // tracks so far

	// The receive of each rank that was reported last, until the transfer of its message or the next receive is
	// reported; and the sends of transfers that were reported before their receives, by receive.
	err   error // the trace is not the one that runs
	held  []heldSpan
	taken map[uint32]uint32 // sends by receive

	open  []map[int64]interval // collectives by rank and number; those without a known name have negative numbers
	slice slice
	text  []byte

	numbers *numbering // of collectives that are not lowered; nil before the first one
}

// encoder is a format. Times are in units of the layout.
type encoder interface {
	begin(unit dag.Time)
	process(pid int, name string)
	track(t *track)
	slice(t *track, s *slice)
	mark(t *track, at uint64, text string)
	count(t *track, at uint64, value float64)
	end(about []byte)
}

// track is a row of a viewer.
type track struct {
	id      uint64 // unique, from 1
	pid     int    // rank, or the number of ranks for the network
	tid     int64  // unique within pid
	order   int32  // tracks of a pid are shown in ascending order
	name    string
	unit    string // of a counter
	counter bool
}

// slice is an interval of a track.
type slice struct {
	start, end uint64
	category   category
	name       []byte
	args       [4]arg
	n          int  // args
	flow       flow // arrows through the slice
	id         uint64
}

type arg struct {
	name  argument
	value int64
}

func (s *slice) add(name argument, value int64) {
	s.args[s.n] = arg{name, value}
	s.n++
}

// category is a kind of slice.
type category uint8

const (
	calcs category = iota
	sends
	recvs
	noise
	mems
	ios
	comms
	waits
	collectives
	messages
)

var categories = [...]string{"calc", "send", "recv", "noise", "mem", "io", "comm", "wait", "collective", "message"}

// argument is the name of a property of a slice.
type argument uint8

const (
	opArg argument = iota
	peerArg
	bytesArg
	tagArg
)

var arguments = [...]string{"op", "peer", "bytes", "tag"}

// flow is the place of a slice in the arrows of a message: from its send to the message, and from there to its receive.
type flow uint8

const (
	noFlow flow = iota
	flowBegin
	flowStep
	flowEnd
)

// heldSpan is the span of a receive.
type heldSpan struct {
	sim.Span
	is bool
}

// interval is the extent of a collective on a rank.
type interval struct {
	start, end uint64
	op         int // first op that was reported
}

// New returns a timeline that writes to w in the format of an ending of [Endings].
func New(w io.Writer, ending string, o Options) *Writer {
	t := &Writer{o: o, counter: map[string]*track{}, taken: map[uint32]uint32{}}
	if ending == ".json.gz" {
		t.zip, _ = gzip.NewWriterLevel(w, gzip.BestSpeed) // the level is valid
		w = t.zip
	}
	t.out = bufio.NewWriterSize(w, 1<<16)
	if ending == ".pftrace" {
		t.enc = newPerfetto(t.out)
	} else {
		t.enc = &chrome{w: t.out}
	}
	return t
}

// Begin starts the file.
func (t *Writer) Begin(l *sim.Layout) {
	t.l, t.to = l, ^uint64(0)
	if w := t.o.Window; w != nil {
		if t.from, t.to = uint64(max(0, w.From)/l.Unit), uint64(max(0, w.To)/l.Unit); w.From%l.Unit > 0 {
			t.from++
		}
	}
	if t.o.Ranks != nil {
		t.shown = make([]bool, l.Ranks())
		for _, rank := range t.o.Ranks {
			if rank < 0 || rank >= l.Ranks() {
				t.err = fmt.Errorf("ranks of the timeline: expected 0 to %d, found %d", l.Ranks()-1, rank)
				return
			}
			t.shown[rank] = true
		}
	}
	if t.err = t.checkTrace(); t.err != nil {
		return
	}
	t.ranks, t.held = make([]rankTracks, l.Ranks()), make([]heldSpan, l.Ranks())
	t.open = make([]map[int64]interval, l.Ranks())
	t.network.pid = l.Ranks()
	t.enc.begin(l.Unit)
	for rank := range t.ranks {
		t.ranks[rank].pid = rank
		if t.shows(uint32(rank)) {
			t.text = appendInt(append(t.text[:0], "rank "...), int64(rank))
			t.enc.process(rank, string(t.text))
		}
	}
}

// checkTrace returns an error if the trace is not the one that runs.
func (t *Writer) checkTrace() error {
	for rank := range max(t.l.Ranks(), len(t.o.Trace.Ranks)) {
		found, want := 0, 0
		if rank < len(t.o.Trace.Ranks) {
			found = t.o.Trace.Ranks[rank].Len()
		}
		if rank < t.l.Ranks() {
			want = int(t.l.Start[rank+1] - t.l.Start[rank])
		}
		if found != want {
			return fmt.Errorf("rank %d of the timeline's trace: expected the %d ops that run, found %d; "+
				"lower its collectives as the backend does", rank, want, found)
		}
	}
	return nil
}

func (t *Writer) shows(rank uint32) bool {
	return t.err == nil && (t.shown == nil || t.shown[rank])
}

// Span writes a slice, except for noise, calcs and waits of length 0.
func (t *Writer) Span(s sim.Span) {
	if !t.shows(s.Rank) {
		return
	}
	s.End = max(s.Start, s.End)
	if s.Start == s.End && (s.Kind == sim.NoiseSpan || s.Kind == sim.CalcSpan || s.Kind == sim.WaitSpan) {
		return
	}
	if s.Kind == sim.RecvSpan {
		send, known := t.taken[s.Op]
		if !known {
			t.flush(s.Rank)
			t.held[s.Rank] = heldSpan{s, true}
			return
		}
		delete(t.taken, s.Op)
		t.span(&s, flowEnd, send)
		return
	}
	t.span(&s, noFlow, s.Op)
}

// flush writes the held receive of a rank, if any, without an arrow.
func (t *Writer) flush(rank uint32) {
	if held := &t.held[rank]; held.is {
		held.is = false
		t.span(&held.Span, noFlow, held.Op)
	}
}

// span writes a slice. id is the send of its message.
func (t *Writer) span(s *sim.Span, f flow, id uint32) {
	r, i := t.rank(s.Rank), t.l.Index(s.Rank, s.Op)
	kind := r.Kind[i]
	out := &t.slice
	*out = slice{start: s.Start, end: s.End, flow: f, id: uint64(id), name: out.name[:0]}
	out.add(opArg, int64(i))
	part := false // of a lowered collective
	if kind == dag.Send || kind == dag.Recv {
		out.add(peerArg, int64(r.Peer.At(i)))
		out.add(bytesArg, r.Bytes.At(i))
		out.add(tagArg, r.Tag.At(i))
		if part = r.Tag.At(i) <= dag.CollectiveTag; part && s.Kind != sim.NoiseSpan {
			t.extend(s, i, r.Tag.At(i))
		}
	} else if kind != dag.Calc {
		out.add(bytesArg, r.Bytes.At(i))
	}
	if !t.overlaps(s.Start, s.End) {
		return
	}
	g := group{kind: streamGroup, number: s.Stream}
	switch s.Kind {
	case sim.CalcSpan:
		out.category = calcs
	case sim.SendSpan:
		out.category, out.flow = sends, flowBegin
	case sim.RecvSpan:
		out.category = recvs
	case sim.NoiseSpan:
		out.category = noise
	case sim.MemSpan:
		out.category = mems
	case sim.IOSpan:
		out.category = ios
	default:
		g.kind = waitGroup
		switch {
		case kind == dag.Coll:
			out.category = collectives
		case s.Kind == sim.WaitSpan:
			out.category = waits
		default:
			if out.category = comms; kind == dag.Send {
				out.flow = flowBegin
			}
		}
	}
	t.name(r, i, part, out.category)
	if kind == dag.Coll {
		if t.numbers == nil {
			t.numbers = newNumbering(&t.o)
		}
		out.name = appendInt(append(out.name, " #"...), t.numbers.of(r, s.Rank, i))
	}
	t.put(&t.ranks[s.Rank], g)
}

// name sets the name of the slice of op i of a rank.
func (t *Writer) name(r *dag.Rank, i int, part bool, c category) {
	out, name := &t.slice, strings.ToValidUTF8(r.Name.At(i), "\uFFFD")
	switch peer := int64(r.Peer.At(i)); {
	case c == noise:
		out.name = append(out.name, "noise"...)
	case part:
		out.name = t.collective(out.name, r.Tag.At(i))
	case name != "":
		out.name = append(out.name, name...)
	case r.Kind[i] == dag.Send && c == messages:
		out.name = appendInt(append(out.name, "message to "...), peer)
	case r.Kind[i] == dag.Send:
		out.name = appendInt(append(out.name, "send to "...), peer)
	case r.Kind[i] == dag.Recv && peer == dag.AnySource:
		out.name = append(out.name, "recv from any"...)
	case r.Kind[i] == dag.Recv:
		out.name = appendInt(append(out.name, "recv from "...), peer)
	case r.Subkind.At(i) != dag.NoSubkind:
		out.name = append(out.name, r.Subkind.At(i).String()...)
	default:
		out.name = append(out.name, r.Kind[i].String()...)
	}
}

// collective appends the name of the collective of a tag.
func (t *Writer) collective(to []byte, tag int64) []byte {
	name, number, _ := t.find(tag)
	return appendInt(append(append(to, strings.ToValidUTF8(name, "\uFFFD")...), " #"...), number)
}

func (t *Writer) find(tag int64) (name string, number int64, known bool) {
	if t.o.Collective != nil {
		if name, number, known = t.o.Collective(tag); known {
			return name, number, true
		}
	}
	return "collective", dag.CollectiveTag - tag, false
}

// extend extends the collective of a tag on a rank by a span of op i.
func (t *Writer) extend(s *sim.Span, i int, tag int64) {
	all := t.open[s.Rank]
	if all == nil {
		all = map[int64]interval{}
		t.open[s.Rank] = all
	}
	_, number, known := t.find(tag)
	if !known {
		number = -1 - number
	}
	c, begun := all[number]
	if !begun {
		c = interval{s.Start, s.End, i}
	}
	c.start, c.end = min(c.start, s.Start), max(c.end, s.End)
	all[number] = c
}

// Transfer writes a slice for a message and arrows from its send and to its receive.
func (t *Writer) Transfer(m sim.Transfer) {
	if !m.Swapped && t.shows(m.Source) { // swapped: it was reported before, when it arrived
		t.message(&m)
	}
	if m.Recv == sim.NoOp || !t.shows(m.Target) {
		return
	}
	held := &t.held[m.Target]
	if !held.is || held.Op != m.Recv {
		t.taken[m.Recv] = m.Send
		return
	}
	held.is = false
	t.span(&held.Span, flowEnd, m.Send)
}

func (t *Writer) message(m *sim.Transfer) {
	end := max(m.Start, m.Arrived)
	if !t.overlaps(m.Start, end) {
		return
	}
	r, i := t.rank(m.Source), t.l.Index(m.Source, m.Send)
	out := &t.slice
	*out = slice{start: m.Start, end: end, category: messages, flow: flowStep, id: uint64(m.Send), name: out.name[:0]}
	out.add(opArg, int64(i))
	out.add(peerArg, int64(m.Target))
	out.add(bytesArg, int64(m.Bytes))
	out.add(tagArg, r.Tag.At(i))
	t.name(r, i, r.Tag.At(i) <= dag.CollectiveTag, messages)
	t.put(&t.ranks[m.Source], group{kind: nicGroup, number: r.NIC.At(i)})
}

// put writes the slice to a track of a group.
func (t *Writer) put(r *rankTracks, g group) {
	lane := r.lane(g, t.slice.start, t.slice.end, t.perNanosecond())
	if lane.id == 0 {
		t.begin(&lane.track)
	}
	t.enc.slice(&lane.track, &t.slice)
}

// begin announces a new track.
func (t *Writer) begin(k *track) {
	t.tracks++
	k.id = t.tracks
	t.enc.track(k)
}

// perNanosecond returns the units of the layout per nanosecond, at least 1.
func (t *Writer) perNanosecond() uint64 {
	return max(1, uint64(dag.Nanosecond/t.l.Unit))
}

func (t *Writer) overlaps(start, end uint64) bool {
	return start <= t.to && end >= t.from
}

func (t *Writer) rank(r uint32) *dag.Rank {
	return t.o.Trace.Ranks[r]
}

// Mark writes an event of the network at a time, such as the failure of a link.
func (t *Writer) Mark(at uint64, text string) {
	if t.err == nil && t.overlaps(at, at) {
		t.enc.mark(t.networkTrack("events", ""), at, text)
	}
}

// Counter writes the value of a counter of the network from a time on.
func (t *Writer) Counter(at uint64, name, unit string, value float64) {
	if t.err != nil || !t.overlaps(at, at) {
		return
	}
	t.enc.count(t.networkTrack(name, unit), at, value)
}

// networkTrack returns a track of the network. It is a counter if the unit is not "".
func (t *Writer) networkTrack(name, unit string) *track {
	k := t.counter[name]
	if k != nil {
		return k
	}
	if !t.opened {
		t.opened = true
		t.enc.process(t.network.pid, "network")
	}
	k = &track{pid: t.network.pid, tid: int64(len(t.counter)), order: int32(len(t.counter)), name: name, unit: unit,
		counter: unit != ""}
	t.counter[name] = k
	t.begin(k)
	return k
}

// End writes collectives and the description of the run, and completes the file. It returns the first write error.
func (t *Writer) End() error {
	if t.err != nil {
		return t.err
	}
	for rank := range t.open {
		t.flush(uint32(rank))
		t.endCollectives(uint32(rank))
	}
	var about []byte
	if t.About != nil {
		var err error
		if about, err = sim.MarshalJSON(t.About); err != nil {
			return err
		}
	}
	t.enc.end(about)
	if err := t.out.Flush(); err != nil || t.zip == nil {
		return err
	}
	return t.zip.Close()
}

// endCollectives writes the lowered collectives of a rank.
func (t *Writer) endCollectives(rank uint32) {
	all := make([]interval, 0, len(t.open[rank]))
	for _, c := range t.open[rank] {
		all = append(all, c)
	}
	slices.SortFunc(all, func(a, b interval) int { return cmp.Or(cmp.Compare(a.start, b.start), a.op-b.op) })
	r := t.rank(rank)
	for _, c := range all {
		if !t.overlaps(c.start, c.end) {
			continue
		}
		out := &t.slice
		*out = slice{start: c.start, end: c.end, category: collectives, name: out.name[:0]}
		out.name = t.collective(out.name, r.Tag.At(c.op))
		t.put(&t.ranks[rank], group{kind: collectiveGroup})
	}
	t.open[rank] = nil
}
