package exec

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"unicode/utf8"

	"github.com/tracedag/tracedag/sim"
)

// conversation is the protocol with a peer over a pair of streams. It checks every rule that the peer must keep.
type conversation struct {
	to    io.Writer
	from  *bufio.Reader
	timed func()          // restarts the time limit of the next answer
	lost  func(err error) // is called with the first error of a stream

	lines   int64  // lines of the peer so far
	pending []byte // lines for the peer that are not written yet
	asked   string // what the peer has to answer, for messages

	peer    readyLine
	sent    bool   // the peer has the feature sent
	stats   bool   // the peer has the feature stats
	window  uint64 // longest time that the reports of an answer span
	now     uint64 // time of the peer
	flights []flight
	open    int // number of messages that are not done
}

// flight is a message that was handed to the peer.
type flight struct {
	at    uint64 // time of its send line
	op    uint32
	state uint8 // bits hasSent and isDone
}

const (
	hasSent = 1 << iota
	isDone
)

// report is a line "sent" or "done" about a message.
type report struct {
	at   uint64
	op   uint32
	done bool
}

const (
	// longestLine is the largest number of bytes in a line of a peer, with its line end.
	longestLine = 1 << 16
	// fullBatch is the number of bytes of pending lines from which they are written at once.
	fullBatch = 1 << 16
	// maxStats is the largest number of counters of a peer, and maxStatBytes that of their bytes.
	maxStats, maxStatBytes = 10_000, 1 << 20
)

// never is the time of "run -".
const never = math.MaxUint64

func newConversation(to io.Writer, from io.Reader, timed func()) *conversation {
	return &conversation{to: to, from: bufio.NewReaderSize(from, longestLine), timed: timed, lost: func(error) {}}
}

// lineError is an error about a line of the peer.
type lineError struct {
	line            int64
	expected, found string
}

func (e *lineError) Error() string {
	return fmt.Sprintf("line %d of its output: expected %s, found %s; see \"simulate --help exec\"", e.line, e.expected,
		e.found)
}

// wrong returns an error about the current line.
func (c *conversation) wrong(l *line, format string, args ...any) error {
	return &lineError{c.lines, fmt.Sprintf(format, args...), strconv.Quote(l.String())}
}

// String returns the line as the peer wrote it, without leading zeros of numbers.
func (l *line) String() string {
	switch l.verb {
	case sentVerb, doneVerb:
		return fmt.Sprintf("%s %d %d", verbs[l.verb], l.id, l.at)
	case nowVerb:
		if l.idle {
			return "now -"
		}
		return fmt.Sprintf("now %d", l.at)
	case endVerb:
		return "end"
	}
	text := l.rest
	if len(text) > quoted {
		text = text[:quoted]
	}
	return verbs[l.verb] + " " + string(text)
}

// errPeer is an "error TEXT" of the peer.
type errPeer struct{ text string }

func (e *errPeer) Error() string { return "reports an error: " + e.text }

// flush writes the pending lines.
func (c *conversation) flush() error {
	if len(c.pending) == 0 {
		return nil
	}
	c.timed()
	_, err := c.to.Write(c.pending)
	c.pending = c.pending[:0]
	if err != nil {
		return c.writeFailed(err)
	}
	return nil
}

// writeFailed returns the reason of a failed write. A peer that ended may have said why.
func (c *conversation) writeFailed(err error) error {
	for range maxStats {
		l, readErr := c.next()
		if e := (*errPeer)(nil); errors.As(readErr, &e) {
			return readErr
		}
		if readErr != nil || l.verb == endVerb {
			break
		}
	}
	c.lost(err)
	return err
}

// next reads a line. It returns an error for a line "error TEXT".
func (c *conversation) next() (l line, err error) {
	text, err := c.from.ReadSlice('\n')
	if c.lines++; err != nil {
		return l, c.readFailed(text, err)
	}
	text = text[:len(text)-1]
	if l, err = parseLine(text); err != nil {
		return l, &lineError{c.lines, err.Error(), quoteLine(text)}
	}
	if l.verb == errorVerb {
		return l, &errPeer{quoteLine(l.rest)}
	}
	return l, nil
}

func (c *conversation) readFailed(text []byte, err error) error {
	if errors.Is(err, bufio.ErrBufferFull) {
		return &lineError{c.lines, fmt.Sprintf("a line of at most %d bytes", longestLine-1), quoteLine(text)}
	}
	if errors.Is(err, io.EOF) && len(text) > 0 {
		return &lineError{c.lines, "an LF at the end of the line", quoteLine(text) + " and the end of the output"}
	}
	c.lost(err)
	return err
}

// begin greets a peer and reads its answer.
func (c *conversation) begin(hosts int, window uint64, settings []string) error {
	c.pending = fmt.Appendf(c.pending, "hello tracedag-net %d hosts=%d unit=ps", version, hosts)
	if window > 0 {
		c.pending = fmt.Appendf(c.pending, " window=%d", window)
	}
	c.pending = append(c.pending, '\n')
	c.asked = "hello"
	if err := c.flush(); err != nil {
		return err
	}
	l, err := c.next()
	if err != nil {
		return err
	}
	if l.verb != readyVerb {
		return c.wrong(&l, "%q, the answer to hello", forms[readyVerb])
	}
	if c.peer, err = parseReady(l.rest); err != nil {
		return c.wrong(&l, "%v", err)
	}
	c.sent, c.stats = slices.Contains(c.peer.features, "sent"), slices.Contains(c.peer.features, "stats")
	if window > 0 && !slices.Contains(c.peer.features, "window") {
		return fmt.Errorf("the simulator %s lacks the feature window; remove --exec-window", c.peer.name)
	}
	c.window = window
	for _, s := range settings {
		key, value := cutSetting(s)
		c.pending = fmt.Appendf(c.pending, "config %s %s\n", key, value)
	}
	return nil
}

// send hands a message to the peer at time t, or at the time of the peer if that is later. It returns the time.
func (c *conversation) send(op uint32, t uint64, from, to uint32, bytes uint64, tag int64, nic uint8) (uint64, error) {
	t = max(t, c.now)
	b := append(c.pending, "send "...)
	b = strconv.AppendInt(b, int64(len(c.flights)), 10)
	b = strconv.AppendUint(append(b, ' '), t, 10)
	b = strconv.AppendUint(append(b, ' '), uint64(from), 10)
	b = strconv.AppendUint(append(b, ' '), uint64(to), 10)
	b = strconv.AppendUint(append(b, ' '), bytes, 10)
	b = strconv.AppendInt(append(b, ' '), tag, 10)
	b = strconv.AppendUint(append(b, ' '), uint64(nic), 10)
	c.pending = append(b, '\n')
	c.flights = append(c.flights, flight{at: t, op: op})
	c.open++
	if len(c.pending) >= fullBatch {
		return t, c.flush()
	}
	return t, nil
}

// run makes the peer simulate up to a time, or never for no limit, and appends its reports to into. idle: nothing is
// under way.
func (c *conversation) run(until uint64, into []report) (reports []report, idle bool, err error) {
	c.pending = append(c.pending, "run "...)
	if until == never {
		c.pending = append(c.pending, '-')
	} else {
		c.pending = strconv.AppendUint(c.pending, until, 10)
	}
	c.pending = append(c.pending, '\n')
	c.asked = "run"
	if err := c.flush(); err != nil {
		return into, false, err
	}
	a := answer{until: until, least: c.now}
	for {
		l, err := c.next()
		if err != nil {
			return into, false, err
		}
		switch l.verb {
		case sentVerb, doneVerb:
			r, err := c.report(&l, &a)
			if err != nil {
				return into, false, err
			}
			into = append(into, r)
		case nowVerb:
			return into, l.idle, c.endAnswer(&l, &a)
		default:
			return into, false, c.wrong(&l, "%q, %q or %q, the answer to run", forms[sentVerb], forms[doneVerb],
				forms[nowVerb])
		}
	}
}

// answer is the state of an answer to run.
type answer struct {
	until   uint64
	least   uint64 // smallest possible time of the next report
	most    uint64 // largest possible time, if reports > 0
	reports int
	owed    int // number of messages that are done and not sent
}

// report checks a report.
func (c *conversation) report(l *line, a *answer) (r report, err error) {
	switch {
	case l.id >= uint64(len(c.flights)):
		return r, c.wrong(l, "the ID of a message that was sent, below %d", len(c.flights))
	case l.at < a.least:
		return r, c.wrong(l, "a time that is not before %d ps", a.least)
	case l.at > a.until:
		return r, c.wrong(l, "a time of at most %d ps, that of run", a.until)
	case a.reports > 0 && l.at > a.most && c.window == 0:
		return r, c.wrong(l, "the time %d ps of the first report of the answer", a.most)
	case a.reports > 0 && l.at > a.most:
		return r, c.wrong(l, "a time of at most %d ps, the first report of the answer and the window", a.most)
	}
	f := &c.flights[l.id]
	if l.at < f.at {
		return r, c.wrong(l, "a time that is not before the send at %d ps", f.at)
	}
	if err := c.advance(l, f, a); err != nil {
		return r, err
	}
	a.least = l.at
	if a.reports++; a.reports == 1 {
		a.most = l.at + c.window // at most MaxInt64 each
	}
	return report{at: l.at, op: f.op, done: l.verb == doneVerb}, nil
}

// advance changes the state of a message.
func (c *conversation) advance(l *line, f *flight, a *answer) error {
	switch {
	case l.verb == doneVerb && f.state&isDone != 0:
		return c.wrong(l, "one %q per message", forms[doneVerb])
	case l.verb == sentVerb && !c.sent:
		return c.wrong(l, "no %q from a peer without the feature sent", forms[sentVerb])
	case l.verb == sentVerb && f.state&hasSent != 0:
		return c.wrong(l, "one %q per message", forms[sentVerb])
	}
	if l.verb == sentVerb {
		f.state |= hasSent
		if f.state&isDone != 0 {
			a.owed--
		}
		return nil
	}
	f.state |= isDone
	c.open--
	if c.sent && f.state&hasSent == 0 {
		a.owed++
	}
	return nil
}

// endAnswer checks the line "now" at the end of an answer.
func (c *conversation) endAnswer(l *line, a *answer) error {
	least, most := a.until, a.until // without reports
	if a.reports > 0 {
		least, most = a.least, min(a.most, a.until)
	}
	switch {
	case a.owed > 0:
		id := slices.IndexFunc(c.flights, func(f flight) bool { return f.state == isDone })
		return c.wrong(l, "\"sent %d T\" before or together with \"done %[1]d T\"", id)
	case l.idle && a.reports > 0:
		return c.wrong(l, "the time of the reports, %d ps", a.least)
	case l.idle && a.until != never:
		return c.wrong(l, "\"now %d\" or reports, the answer to \"run %[1]d\"", a.until)
	case l.idle:
		return nil
	case least == never:
		return c.wrong(l, "\"now -\" or reports, the answer to \"run -\"")
	case l.at < least || l.at > most:
		if least == most {
			return c.wrong(l, "\"now %d\"", least)
		}
		return c.wrong(l, "a time of %d to %d ps", least, most)
	}
	c.now = l.at
	return nil
}

// finish asks for counters and ends the conversation.
func (c *conversation) finish() (values sim.Values, err error) {
	if c.stats {
		c.asked = "stats"
		c.pending = append(c.pending, "stats\n"...)
		if err := c.flush(); err != nil {
			return nil, err
		}
		if values, err = c.readStats(); err != nil {
			return nil, err
		}
	}
	c.asked = "bye"
	c.pending = append(c.pending, "bye\n"...)
	return values, c.flush()
}

// readStats reads counters. Keys of numbers may repeat no key.
func (c *conversation) readStats() (values sim.Values, err error) {
	seen, size := make(map[string]bool), 0
	for {
		l, err := c.next()
		switch {
		case err != nil:
			return nil, err
		case l.verb == endVerb:
			return values, nil
		case l.verb != statVerb:
			return nil, c.wrong(&l, "%q or %q, the answer to stats", forms[statVerb], forms[endVerb])
		}
		s, err := parseStat(l.rest)
		if err != nil {
			return nil, c.wrong(&l, "%v", err)
		}
		size += len(l.rest)
		switch {
		case seen[s.key]:
			return nil, c.wrong(&l, "different keys")
		case len(values) == maxStats || size > maxStatBytes:
			return nil, c.wrong(&l, "at most %d counters of %d bytes in total", maxStats, maxStatBytes)
		case !utf8.ValidString(s.key + s.value):
			return nil, c.wrong(&l, "text in UTF-8")
		}
		seen[s.key] = true
		values = append(values, sim.Value{Name: s.key, Value: statValue(s.value)})
	}
}

// statValue returns the number that a text has, or the text.
func statValue(text string) any {
	if n, err := strconv.ParseInt(text, 10, 64); err == nil {
		return n
	}
	if f, err := strconv.ParseFloat(text, 64); err == nil && !math.IsInf(f, 0) && !math.IsNaN(f) {
		return f
	}
	return text
}
