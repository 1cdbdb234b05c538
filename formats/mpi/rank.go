// This file converts the lines of one rank's file to its DAG.
//
// The ops of a rank form a chain in call order, with a calc for each gap between the end of a call and the start
// of the next. The op after a blocking call waits for the call's end; the op after a call that returns at once
// waits for its start, and so does the op after MPI_Bsend. A call that waits for a request is a calc of duration 0 that
// waits for both.

package mpi

import (
	"bytes"
	"context"
	"fmt"
	"math"
	"math/bits"
	"strconv"
	"strings"

	"github.com/tracedag/tracedag/dag"
	"github.com/tracedag/tracedag/dag/attr"
	"github.com/tracedag/tracedag/formats/format"
)

// rankReader reads the file of one rank.
type rankReader struct {
	ctx     context.Context // carries the limit of memory; may be nil
	file    string
	rank    int32
	ranks   int32
	lenient bool
	line    int64
	fields  fields // of the line

	b        dag.RankBuilder
	steps    int32        // steps that began
	after    predecessors // dependencies of the next op
	pending  []testPoint  // tests in the current gap that may have completed a request
	last     dag.Time     // end of the previous call, since base
	calls    dag.Time     // time since then in calls that become no op
	left     bool         // the current call has become an op
	base     int64        // microseconds: the first time of the file
	based    bool
	began    bool     // whether last is set
	first    dag.Time // first value of last
	closing  bool     // the tracer measured clocks again after the last call
	tail     dag.Time // from that call to MPI_Finalize if so
	over     bool     // MPI_Finalize or MPI_Abort was called
	whole    bool     // MPI_Finalize was called
	backward finding  // gaps of negative length
	shift    int64    // microseconds by which the clock is behind rank 0's, as measured by the tracer at the start
	second   bool     // the file is from liballprof2
	library  library  // the MPI library of the program

	dag dag.Rank // set after reading the file

	requests
	anyWaits
	probes
	communicators
	problems problems

	unidentified bool // a call is on a communicator whose members are unknown
}

// predecessors are the dependencies of an op.
type predecessors struct {
	ends, starts []int
}

func (p *predecessors) clear() {
	p.ends, p.starts = p.ends[:0], p.starts[:0]
}

func (r *rankReader) fail(class, expected, found string) error {
	return &format.SyntaxError{File: r.file, Line: r.line, Class: class, Expected: expected, Found: found}
}

// lines reads whole lines.
func (r *rankReader) lines(b []byte) error {
	for len(b) > 0 {
		r.line++
		end := bytes.IndexByte(b, '\n')
		line := b[:end]
		b = b[end+1:]
		if n := len(line); n > 0 && line[n-1] == '\r' {
			line = line[:n-1]
		}
		if err := r.anyLine(line); err != nil {
			syntax, ok := err.(*format.SyntaxError)
			if !ok || !r.lenient {
				return err
			}
			r.problems.add(r.line, syntax.Class, "lines without "+syntax.Expected)
		}
	}
	return nil
}

func (r *rankReader) anyLine(line []byte) error {
	if len(line) == 0 || line[0] == '#' {
		return r.comment(line)
	}
	return r.callLine(line)
}

// comment reads the clock difference at the start, which the tracer measured, and notes that it measured again at the
// end. It also reads the name of the system if that is SMPI.
func (r *rankReader) comment(line []byte) error {
	if bytes.HasPrefix(line, []byte("# uname: SMPI")) {
		r.library = smpi
		return nil
	}
	if bytes.HasPrefix(line, []byte("# Finalize clockdiff")) {
		r.closing = true
		return nil
	}
	text := bytes.TrimPrefix(bytes.TrimPrefix(line, []byte("# ")), []byte("Init "))
	rest, found := bytes.CutPrefix(text, []byte("clockdiff: "))
	if !found {
		return nil
	}
	value, _, _ := strings.Cut(string(rest), " ")
	seconds, err := strconv.ParseFloat(value, 64)
	const most = 1 << 33 // seconds, some 270 years
	if err != nil || !(seconds >= -most && seconds <= most) {
		return r.fail(inValue, "a difference of clocks in seconds", strconv.Quote(excerpt(rest)))
	}
	micros, _ := strconv.ParseInt(strings.Replace(strconv.FormatFloat(seconds, 'f', 6, 64), ".", "", 1), 10, 64)
	r.shift = micros
	return nil
}

func excerpt(text []byte) string {
	const most = 60
	if len(text) > most {
		return strings.ToValidUTF8(string(text[:most]), "") + "..."
	}
	return string(text)
}

// callLine reads the line of a call.
func (r *rankReader) callLine(line []byte) error {
	colon := bytes.IndexByte(line, ':')
	name := line[:max(colon, 0)]
	c := calls[string(name)]
	if c == nil {
		if !isCallName(name) {
			return r.fail(inLine, "a comment or a call of MPI, such as MPI_Send:START:...:END",
				strconv.Quote(excerpt(line)))
		}
		if c = lookUp(name); c == nil {
			r.problems.add(r.line, inCall, unsupported(name))
			return nil
		}
	}
	switch c.do {
	case nothing:
		r.localCall(line, colon)
		return nil
	case probe:
		if !r.probe(line, c, colon) {
			r.localCall(line, colon)
		}
		return nil
	case nextStep:
		if r.steps < math.MaxInt32 {
			r.steps++
		}
		r.b.Step(r.steps)
		return nil
	}
	if c.do != finalize {
		r.closing = false
	}
	f := &r.fields
	*f = fields{}
	s := parser{b: line, p: colon}
	if s.parse(c, f); s.expected != "" {
		if cut := bytes.Index(line, []byte("  # backtrace [")); cut >= 0 {
			*f = fields{}
			s = parser{b: line[:cut], p: colon}
			s.parse(c, f)
		}
		if s.expected != "" {
			return r.fail(inLine, s.expected+" in "+string(name), strconv.Quote(excerpt(line[min(s.p, len(line)):])))
		}
	}
	r.left = false
	if err := r.call(name, c, f); err != nil {
		return err
	}
	if !r.left && c.do != initialize && c.do != finalize && c.do != abort {
		if d := r.addCall(f); c.do == commSplit || c.do == commDup || c.parts {
			r.setUp.add(r.line)
			r.setUpFor += d
		}
	}
	return nil
}

// unsupported describes a function that is not in calls.
func unsupported(name []byte) string {
	text := excerpt(name)
	if strings.HasSuffix(strings.TrimRight(strings.ToLower(text), "_"), "alltoallw") {
		return text + ", whose trace does not have the sizes of its datatypes"
	}
	return text + ", an unknown function"
}

// localCall reads the times of a call that becomes no op. Its other fields may have any form.
func (r *rankReader) localCall(line []byte, colon int) {
	var f fields
	s := parser{b: line, p: colon}
	if s.parse(&call{}, &f); s.expected == "" {
		r.addCall(&f)
	}
}

// addCall adds the time of a call that becomes no op, and returns it.
func (r *rankReader) addCall(f *fields) (took dag.Time) {
	if !r.began || r.over || !f.hasStart || !f.hasEnd {
		return 0
	}
	if at, err := r.spanOf(f); err == nil {
		took = max(0, at.end-max(at.start, r.last))
		r.calls += took
	}
	return took
}

// spanOf returns the time of a call, which has a start and an end.
func (r *rankReader) spanOf(f *fields) (at span, err error) {
	if at.start, err = r.since(f.start); err == nil {
		at.end, err = r.since(f.end)
	}
	return at, err
}

// since returns a time since the first time of the file.
func (r *rankReader) since(m timestamp) (dag.Time, error) {
	if !r.based {
		r.base, r.based = m.us, true
	}
	const most = int64(50 * 24 * 3600 * dag.Second / dag.Microsecond)
	us := m.us - r.base
	if us < -most || us > most {
		return 0, r.fail(inValue, "a time within 50 days of the first time of the file",
			strconv.FormatInt(m.us, 10)+" us")
	}
	return dag.Time(us)*dag.Microsecond + m.ps, nil
}

// span is the start and the end of a call.
type span struct{ start, end dag.Time }

// call converts a call. It changes nothing before the whole line is known to be valid.
func (r *rankReader) call(name []byte, c *call, f *fields) error {
	if r.over {
		r.problems.add(r.line, inCall, "calls after MPI_Finalize")
		return nil
	}
	switch c.do {
	case initialize:
		return r.initialize(f)
	case finalize, abort:
		if !f.hasStart {
			return r.fail(inLine, "the time at which "+excerpt(name)+" starts", `"-"`)
		}
		at, err := r.since(f.start)
		if err != nil {
			return err
		}
		if r.closing && !r.hasPending() {
			r.begin(at)
			r.tail = max(0, at-r.last)
		} else {
			r.closing = false
			r.closeGap(at)
		}
		r.over, r.whole = true, c.do == finalize
		return nil
	case commInfo:
		r.parts = r.parts || c.parts
		_, err := r.communicator(f)
		return err
	case commSplit, commDup, commFree:
		return r.communicatorCall(c, f)
	}
	if !f.hasStart || !f.hasEnd {
		return r.fail(inLine, "the times of the start and of the end", `"-"`)
	}
	at, err := r.spanOf(f)
	if err != nil {
		return err
	}
	switch c.do {
	case send, receive, sendLater, receiveLater, exchange, exchangeOne:
		return r.pointToPoint(c, f, at)
	case collective:
		return r.collective(c, f, at)
	}
	if r.second {
		r.problems.add(r.line, inCall, excerpt(name)+" of liballprof2, which omits the requests")
		return nil
	}
	return r.requestCall(c, f, at)
}

func (r *rankReader) initialize(f *fields) error {
	if !f.hasEnd {
		return r.fail(inLine, "the time at which MPI_Init ends", `"-"`)
	}
	end, err := r.since(f.end)
	if err != nil {
		return err
	}
	r.begin(end)
	r.last = end
	return nil
}

// begin records the start of the rank if it is unknown.
func (r *rankReader) begin(at dag.Time) {
	if !r.began {
		r.began, r.last, r.first = true, at, at
	}
}

// hasPending reports whether a test in the current gap may have completed a request.
func (r *rankReader) hasPending() bool {
	for i := range r.pending {
		if r.pending[i].waiting > 0 {
			return true
		}
	}
	return false
}

// closeGap adds the computation up to the start of a call.
func (r *rankReader) closeGap(start dag.Time) {
	r.begin(start)
	before := dag.Time(0) // in calls before the last test
	for i := range r.pending {
		if t := &r.pending[i]; t.waiting > 0 {
			if t.waits {
				r.compute(t.at.start, t.calls-before)
			} else {
				r.compute(max(t.at.start, t.at.end), t.callsBehind()-before)
			}
			before = t.callsBehind()
			r.last = max(t.at.start, t.at.end)
			r.tested[t.id] = int32(r.b.Len())
		}
	}
	r.pending = r.pending[:0]
	r.compute(start, r.calls-before)
	r.calls = 0
}

// compute adds the computation from the end of the last call to a time, which contains the given time in calls.
func (r *rankReader) compute(until, calls dag.Time) {
	d := until - r.last
	if d < 0 {
		r.backward.add(r.line)
	}
	if d <= 0 {
		return
	}
	op := dag.Op{Kind: dag.Calc, Duration: d}
	if calls = min(calls, d); calls > 0 {
		op.Attrs = attr.CallTime(int64(calls))
	}
	i := r.add(&op, span{r.last, until})
	r.after.clear()
	r.after.ends = append(r.after.ends, i)
}

// add adds an op that waits for the predecessors.
func (r *rankReader) add(op *dag.Op, at span) int {
	op.Timed, op.MeasuredStart, op.MeasuredEnd = true, at.start, at.end
	i := r.b.Add(*op)
	if op.Kind == dag.Recv && len(r.open) > 0 {
		r.received(op)
	}
	for _, on := range r.after.ends {
		r.b.Requires(i, on)
	}
	for _, on := range r.after.starts {
		r.b.RequiresStart(i, on)
	}
	return i
}

// leave records the end of a call.
func (r *rankReader) leave(at span) {
	r.last, r.left = max(at.start, at.end), true
	if at.end < at.start {
		r.backward.add(r.line)
	}
}

// product returns the size of count items, or an error.
func (r *rankReader) product(count, size int64) (int64, error) {
	switch {
	case size == noSize:
		return 0, r.fail(inCall, "a datatype as CODE,SIZE,EXTENT", "only a handle, as liballprof2 writes it: "+
			"its traces do not include message sizes")
	case count < 0:
		return 0, r.fail(inValue, "a count of 0 or more", strconv.FormatInt(count, 10))
	case size < 0:
		return 0, r.fail(inValue, "a datatype of 0 bytes or more", strconv.FormatInt(size, 10))
	}
	high, low := bits.Mul64(uint64(count), uint64(size))
	if high != 0 || int64(low) < 0 {
		return 0, r.fail(inValue, "a size of 63 bits", fmt.Sprintf("%d times %d bytes", count, size))
	}
	return int64(low), nil
}

// pointToPoint reads one or two messages, or a persistent request for one.
func (r *rankReader) pointToPoint(c *call, f *fields, at span) error {
	comm, err := r.communicator(f)
	if err != nil {
		return err
	}
	n := &f.numbers
	switch c.do {
	case exchange, exchangeOne:
		var out, in dag.Op
		var outNone, inNone bool
		if out, outNone, err = r.message(f, comm, dag.Send, n[0], f.sizes[0], n[1], n[2]); err != nil {
			return err
		}
		if c.do == exchange {
			in, inNone, err = r.message(f, comm, dag.Recv, n[3], f.sizes[1], n[4], n[5])
		} else {
			in, inNone, err = r.message(f, comm, dag.Recv, n[0], f.sizes[0], n[3], n[4])
		}
		if err != nil || outNone && inNone {
			return err
		}
		r.closeGap(at.start)
		first := r.b.Len()
		if !outNone {
			r.add(&out, at)
		}
		if !inNone {
			r.add(&in, at)
		}
		r.after.clear()
		for i := first; i < r.b.Len(); i++ {
			r.after.ends = append(r.after.ends, i)
		}
		r.leave(at)
		return nil
	}
	kind := dag.Send
	if c.do == receive || c.do == receiveLater {
		kind = dag.Recv
	}
	op, none, err := r.message(f, comm, kind, n[0], f.sizes[0], n[1], n[2])
	if err != nil {
		return err
	}
	op.Attrs = c.mode
	switch {
	case c.do == sendLater || c.do == receiveLater:
		r.noteAlignment(f.request)
		r.prepare(f.request, &op, none)
	case none && c.later:
		r.noteAlignment(f.request)
		r.forget(f.request)
	case none:
	case c.later:
		r.startRequest(f.request, &op, at)
	default:
		r.closeGap(at.start)
		i := r.add(&op, at)
		r.after.clear()
		if c.local {
			r.after.starts = append(r.after.starts, i)
		} else {
			r.after.ends = append(r.after.ends, i)
		}
		r.leave(at)
	}
	return nil
}

// message returns the op of a message; none is true if the partner is MPI_PROC_NULL.
func (r *rankReader) message(f *fields, comm int32, kind dag.Kind, count, size, peer, tag int64) (op dag.Op, none bool,
	err error) {
	switch {
	case kind == dag.Recv && peer == smpiAnySource:
		peer, r.library = dag.AnySource, smpi
	case kind == dag.Recv && peer == r.anySource():
		peer = dag.AnySource
	case peer == -1 || peer == -2 || peer == smpiProcNull:
		return op, true, nil
	case peer < 0 || peer >= int64(f.comm.size):
		return op, false, r.fail(inValue, fmt.Sprintf("a partner in 0..%d, MPI_ANY_SOURCE or MPI_PROC_NULL",
			f.comm.size-1), strconv.FormatInt(peer, 10))
	}
	if kind == dag.Recv && tag == smpiAnyTag {
		tag, r.library = dag.AnyTag, smpi
	}
	if tag < 0 && (kind == dag.Send || tag != dag.AnyTag) {
		return op, false, r.fail(inValue, "a tag", strconv.FormatInt(tag, 10))
	}
	bytes, err := r.product(count, size)
	return dag.Op{Kind: kind, Bytes: bytes, Peer: int32(peer), Tag: tag, Comm: comm}, false, err
}

// Constants of SMPI; other libraries have no such ranks, tags and buffers.
const (
	smpiAnySource = -555
	smpiProcNull  = -666
	smpiAnyTag    = -444
	smpiInPlace   = -222
	smpiPoll      = 100 * dag.Microsecond // option smpi/iprobe: a probe takes that long before it looks for a message
)

// library is an implementation of MPI, as far as it affects the meaning of a trace.
type library uint8

const (
	unknownLibrary library = iota // before the first communicator
	mpich                         // or a derivative
	smpi
	otherLibrary // Open MPI and others
)

// libraryOf returns the library with such communicator handles. MPICH's handles are 32-bit words: the top two bits
// tell whether the object is predefined, in the first block or in a later one; the next four bits mark a
// communicator.
func libraryOf(handle uint64) library {
	word := uint32(handle)
	fits := handle == uint64(word) || handle == uint64(int64(int32(word)))
	if fits && word>>30 != 0 && word>>26&0xf == 1 {
		return mpich
	}
	return otherLibrary
}

// anySource returns the value of MPI_ANY_SOURCE: -2 in MPICH, -1 in Open MPI. The other value is MPI_PROC_NULL.
func (r *rankReader) anySource() int64 {
	if r.library == mpich {
		return -2
	}
	return -1
}
