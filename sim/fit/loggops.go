package fit

import (
	"cmp"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
)

// Options select how parameters are estimated.
type Options struct {
	Seed  uint64 // of the bootstrap
	Draws int    // of the bootstrap; 0: 1000
}

// LogGOPS estimates the parameters of the strict model of the loggops backend. A message of s bytes takes
// os + L + (s-1) G + or, where os and or are linear in s. It needs ping-pongs. Blocking sends (send_call), late
// receives (recv_late) and late posting (send_late) determine overheads and the largest eager message, and windows the
// gap g. The remarks of the file name what the tables do not determine.
func LogGOPS(tables []*Table, o Options) (*File, error) {
	e, err := newEstimate(tables, o, &File{Backend: "loggops", Model: "strict"})
	if err != nil {
		return nil, err
	}
	e.findEager()
	if err := e.findOverheads(); err != nil {
		return nil, err
	}
	e.decompose()
	e.findGap()
	e.bootstrap()
	e.describe()
	return e.file, nil
}

// estimate is the state of the estimation.
type estimate struct {
	tables   []*Table
	points   []Point
	paths    []string
	messages []Segment   // times of messages, from the send to the end of the receive
	finer    [][]Segment // divisions that the measurements do not exclude
	send     []Segment   // time in a send; nil: unknown
	recv     []Segment   // time in a receive whose message has arrived; nil: unknown
	sendAt   []Point
	recvAt   []Point
	eager    int64 // largest eager message of the model
	limit    int64 // largest size whose send does not wait for its receive
	random   *rand.Rand
	draws    int // of the bootstrap
	file     *File

	from   []int64 // first sizes of the segments of parameters
	values []costs
}

// mostNamed is the number of tables and tests that an error names.
const mostNamed = 5

// namesOf returns the names of tables, for errors.
func namesOf(tables []*Table) string {
	var names []string
	for _, t := range tables {
		names = append(names, t.Name)
	}
	return named(names)
}

// testsOf returns the names of the tests of tables, for errors.
func testsOf(tables []*Table) string {
	var tests []string
	for _, t := range tables {
		for _, m := range t.Rows {
			if !slices.Contains(tests, m.Test) && len(tests) <= mostNamed {
				tests = append(tests, m.Test)
			}
		}
	}
	return named(tests)
}

// named joins names, and replaces those beyond mostNamed by "...".
func named(names []string) string {
	if len(names) > mostNamed {
		names = append(names[:mostNamed:mostNamed], "...")
	}
	return strings.Join(names, ", ")
}

// newEstimate divides the ping-pongs of tables into segments, for the parameters of a file.
func newEstimate(tables []*Table, o Options, file *File) (*estimate, error) {
	rows := Only(tables, PingPong)
	if len(rows) == 0 {
		return nil, fmt.Errorf("%s: expected measurements of the test %s, half of round trips by size, found only %s",
			namesOf(tables), PingPong, testsOf(tables))
	}
	e := &estimate{tables: tables, random: rand.New(rand.NewPCG(o.Seed, 0)), draws: cmp.Or(o.Draws, 1000), file: file}
	e.points, e.paths = Points(rows)
	var err error
	if e.messages, e.finer, err = divisions(e.points); err != nil {
		return nil, fmt.Errorf("%s: %s: %w", namesOf(tables), PingPong, err)
	}
	file.Seed = o.Seed
	file.add(tables)
	return e, nil
}

// shortest returns the shortest time of a message on a path that has messages of about that size.
func (e *estimate) shortest(bytes int64) float64 {
	took := math.Inf(1)
	for path := range e.paths {
		if t := At(e.messages, path, bytes); t == t {
			took = min(took, t)
		}
	}
	return took
}

// costs are the parameters of a segment, in seconds.
type costs struct {
	latency, perByte         float64 // L, G
	sendFixed, sendPerByte   float64 // o and O of a send
	recvFixed, recvPerByte   float64
	shortLatency, shortBytes float64 // by which L or G would be below 0
}

// findEager finds the largest eager message: a send of a larger one waits for its late receive.
func (e *estimate) findEager() {
	e.eager, e.limit = math.MaxInt64, math.MaxInt64
	most, least, known := e.threshold(SendLate, e.waits)
	if !known {
		e.file.Remark("S is not determined: the tables have no sends whose receive is posted late (send_late); " +
			"all messages are eager")
		return
	}
	if least == math.MaxInt64 {
		e.file.Remark("no send waits for its receive up to %d bytes, the largest size of send_late", most)
		return
	}
	e.eager = Cut(most, least) - 1
	e.limit = e.eager
	e.file.set("S", Parameter{Value: float64(e.eager), Low: float64(most), High: float64(least - 1), Unit: "B"})
}

// threshold brackets the size from which the measurements of a test meet a condition: it is above most, and at most
// least, which is [math.MaxInt64] if none meets it. known reports whether there are measurements.
func (e *estimate) threshold(test string, meets func(Measurement) bool) (most, least int64, known bool) {
	rows := Only(e.tables, test)
	least = math.MaxInt64
	for _, m := range rows {
		if meets(m) {
			least = min(least, m.Bytes)
		}
	}
	least = max(least, 1) // messages without bytes are eager
	for _, m := range rows {
		if m.Bytes < least {
			most = max(most, m.Bytes)
		}
	}
	return most, least, len(rows) > 0
}

// waits reports whether a send whose receive was late took longer than the message takes.
func (e *estimate) waits(m Measurement) bool {
	if m.Waits != 0 {
		return m.Waits > 0
	}
	took := 0.0
	for path := range e.paths {
		if t := At(e.messages, path, m.Bytes); t == t {
			took = max(took, t)
		}
	}
	return m.Seconds > 2*took
}

// findOverheads fits the times in sends and receives of eager messages.
func (e *estimate) findOverheads() (err error) {
	if e.sendAt, e.send, err = overhead(e.calls(SendCall, e.eager)); err != nil {
		return err
	}
	e.recvAt, e.recv, err = overhead(append(e.calls(RecvLate, e.eager), e.calls(WaitLate, e.eager)...))
	return err
}

// picosecond replaces the time 0 of a call: errors are relative.
const picosecond = 1e-12

// calls returns the times in calls of a test for messages of at most a size. Calls that wait for bytes do not count:
// receives that take half of the time of the message or more, as those of a message that starts once both ends have
// been posted.
func (e *estimate) calls(test string, most int64) (rows []Measurement) {
	for _, m := range Only(e.tables, test) {
		if m.Waits == 0 && m.Bytes <= most && (test == WaitLate || m.Seconds < e.shortest(m.Bytes)/2) {
			m.Where = "" // a call does not depend on the path
			rows = append(rows, m)
		}
	}
	return rows
}

// overhead fits the time in calls.
func overhead(rows []Measurement) (points []Point, segments []Segment, err error) {
	sizes, longest := map[int64]bool{}, 0.0
	for i, m := range rows {
		sizes[m.Bytes] = true
		longest = max(longest, m.Seconds)
		rows[i].Seconds = max(m.Seconds, picosecond)
	}
	switch {
	case len(sizes) < 2:
		return nil, nil, nil
	case longest < picosecond:
		return nil, []Segment{{To: math.MaxInt64, Start: []float64{0}}}, nil
	}
	points, _ = Points(rows)
	if segments, err = Split(points); err != nil {
		return nil, nil, fmt.Errorf("%s: %w", rows[0].Test, err)
	}
	return points, segments, nil
}

// segmentAt returns the segment of a size; the zero segment if there are none.
func segmentAt(segments []Segment, bytes int64) Segment {
	for i := len(segments) - 1; i >= 0; i-- {
		if i == 0 || bytes >= segments[i].From {
			return segments[i]
		}
	}
	return Segment{Start: []float64{0}}
}

// decompose computes the parameters of each range of sizes in which all times are linear.
func (e *estimate) decompose() {
	for _, list := range [][]Segment{e.messages, e.send, e.recv} {
		for _, s := range list {
			e.from = append(e.from, s.From)
		}
	}
	if e.eager < math.MaxInt64 {
		e.from = append(e.from, e.eager+1)
	}
	slices.Sort(e.from)
	e.from = slices.Compact(e.from)
	e.values = e.divide(e.messages, e.send, e.recv, e.from)
	short := 0.0
	for i, c := range e.values {
		if e.from[i] <= e.eager {
			short = max(short, relative(c.shortLatency, e.messages, e.from[i]))
		}
	}
	if short > 0.01 {
		e.file.Remark("times in sends and receives exceed the times of messages by up to %.2g %%; L is 0 there",
			100*short)
	}
	e.handshake()
}

// relative returns a time relative to that of a message.
func relative(t float64, messages []Segment, bytes int64) float64 {
	if took := mean(segmentAt(messages, bytes).Start); took > 0 {
		return t / took
	}
	return 0
}

// handshake checks whether messages above S are slow enough for the round trip of a rendezvous, which takes twice the
// latency of a small message. Otherwise S stays unlimited, and such messages keep their measured time.
func (e *estimate) handshake() {
	if e.eager == math.MaxInt64 {
		return
	}
	first := e.values[0].latency
	for i, from := range e.from {
		if from > e.eager && e.values[i].latency < 2.2*first {
			e.file.Remark("a send above %d bytes waits for its receive, but the ping-pong shows no round trip before "+
				"such a message, which the model would add; S is left unlimited", e.eager)
			e.file.unset("S")
			e.eager = math.MaxInt64
			return
		}
	}
	for i, from := range e.from {
		if from > e.eager {
			e.values[i].latency -= 2 * first
		}
	}
}

// divide splits the times of messages into overheads, latency and bytes, for segments that begin at some sizes. No
// table has the overheads of messages whose send waits: theirs are assumed not to depend on the size.
func (e *estimate) divide(messages, send, recv []Segment, begins []int64) []costs {
	values := make([]costs, len(begins))
	for i, from := range begins {
		message, s, r := segmentAt(messages, from), segmentAt(send, from), segmentAt(recv, from)
		if from > e.limit {
			s.PerByte, r.PerByte = 0, 0
		}
		c := costs{
			sendFixed: s.Start[0] + s.PerByte, sendPerByte: s.PerByte,
			recvFixed: r.Start[0] + r.PerByte, recvPerByte: r.PerByte,
		}
		c.latency = mean(message.Start) + message.PerByte - c.sendFixed - c.recvFixed
		c.perByte = message.PerByte - c.sendPerByte - c.recvPerByte
		if c.perByte < 0 {
			// The bytes of a message hide in those of its ends. Keep the time at the first size of the segment.
			c.shortBytes = -c.perByte
			c.latency += c.perByte * float64(max(from-1, 0))
			c.perByte = 0
		}
		if c.latency < 0 {
			c.shortLatency, c.latency = -c.latency, 0
		}
		values[i] = c
	}
	return values
}

// mean returns the mean of the numbers that are numbers.
func mean(values []float64) float64 {
	sum, n := 0.0, 0
	for _, v := range values {
		if v == v {
			sum += v
			n++
		}
	}
	if n == 0 {
		return 0
	}
	return sum / float64(n)
}

// findGap estimates g from windows: n messages at once, and an empty answer.
func (e *estimate) findGap() {
	least, at := math.Inf(1), Measurement{}
	for _, m := range Only(e.tables, Window) {
		if m.Window < 2 || m.Bytes > e.eager {
			continue
		}
		took := func(bytes int64) (sum float64) {
			for path := range e.paths {
				sum += At(e.messages, path, bytes)
			}
			return sum / float64(len(e.paths))
		}
		gap := (m.Seconds - took(m.Bytes) - took(0)) / float64(m.Window-1)
		if gap < least && gap > 0 {
			least, at = gap, m
		}
	}
	if at.Window == 0 {
		e.file.set("g", Parameter{Value: 0, Low: 0, High: e.values[0].sendFixed + e.values[0].latency, Unit: "s"})
		e.file.Remark("g is not determined: the tables have no windows of messages at once; 0 is assumed")
		return
	}
	i, _ := slices.BinarySearch(e.from, at.Bytes+1)
	c := e.values[max(i-1, 0)]
	x := float64(max(at.Bytes-1, 0))
	hidden := max(c.sendFixed+x*c.sendPerByte, c.recvFixed+x*c.recvPerByte)
	p := exactly(least-x*c.perByte, "s")
	if least < 1.05*max(hidden, x*c.perByte) || p.Value <= 0 {
		p = Parameter{Value: 0, Low: 0, High: max(least, 0), Unit: "s"}
		e.file.Remark("g is hidden behind overheads or bytes in the windows: it is at most %.3g s; 0 is assumed",
			p.High)
	}
	e.file.set("g", p)
}

// bootstrap computes 95 % intervals by drawing errors of the fit again.
func (e *estimate) bootstrap() {
	send, recv := newResampler(e.sendAt, e.send), newResampler(e.recvAt, e.recv)
	// A parameter may be that of any division of the sizes.
	divisions := append([][]Segment{e.messages}, e.finer...)
	begins, samples := make([][]int64, len(divisions)), make([][][]costs, len(divisions))
	resamplers := make([]*resampler, len(divisions))
	for k, division := range divisions {
		begins[k] = slices.Clone(e.from)
		for _, s := range division {
			begins[k] = append(begins[k], s.From)
		}
		slices.Sort(begins[k])
		begins[k] = slices.Compact(begins[k])
		resamplers[k] = newResampler(e.points, division)
	}
	for range e.draws {
		s, r := send.draw(e.random), recv.draw(e.random)
		for k := range divisions {
			samples[k] = append(samples[k], e.divide(resamplers[k].draw(e.random), s, r, begins[k]))
		}
	}
	column := make([]float64, e.draws)
	estimated := func(segment int, value float64, unit string, of func(costs) float64) Parameter {
		p := exactly(value, unit)
		for k, list := range samples {
			for j, at := range begins[k] {
				if at < e.from[segment] || segment+1 < len(e.from) && at >= e.from[segment+1] {
					continue
				}
				for i, s := range list {
					column[i] = of(s[j])
				}
				p = p.hull(interval(column))
			}
		}
		return p
	}
	first := e.values[0].latency
	for i, c := range e.values {
		handshake := 0.0
		if e.from[i] > e.eager {
			handshake = 2 * first
		}
		seconds := func(value float64, of func(costs) float64) Parameter {
			return estimated(i, value, "s", of)
		}
		perByte := func(value float64, of func(costs) float64) Parameter {
			return estimated(i, value, "s/B", of)
		}
		s := FileSegment{From: e.from[i], Parameters: map[string]Parameter{
			"L":      seconds(c.latency, func(c costs) float64 { return max(0, c.latency-handshake) }),
			"G":      perByte(c.perByte, func(c costs) float64 { return c.perByte }),
			"o_send": seconds(c.sendFixed, func(c costs) float64 { return c.sendFixed }),
			"o_recv": seconds(c.recvFixed, func(c costs) float64 { return c.recvFixed }),
			"O_send": perByte(c.sendPerByte, func(c costs) float64 { return c.sendPerByte }),
			"O_recv": perByte(c.recvPerByte, func(c costs) float64 { return c.recvPerByte }),
		}}
		if i+1 < len(e.from) {
			s.To = e.from[i+1]
		}
		if e.send == nil || e.recv == nil {
			e.undetermined(s.Parameters, c)
		}
		e.file.Segments = append(e.file.Segments, s)
	}
}

// undetermined widens the intervals of what ping-pongs alone do not determine: only the sum of os, L and or is
// known.
func (e *estimate) undetermined(p map[string]Parameter, c costs) {
	widen := func(name string, high float64) { p[name] = p[name].hull(0, high) }
	if e.send == nil {
		widen("o_send", c.latency/2)
		widen("O_send", c.perByte)
	}
	if e.recv == nil {
		widen("o_recv", c.latency/2)
		widen("O_recv", c.perByte)
	}
	widen("L", 0)
	widen("G", 0)
}

// describe adds residuals and what the tables do not determine.
func (e *estimate) describe() {
	switch {
	case e.send == nil && e.recv == nil:
		e.file.Remark("os, or and L are not determined apart: the tables have only their sum; os = or = 0 is " +
			"assumed, and the intervals reach from 0 to the sum. send_call and recv_late separate them")
	case e.send == nil:
		e.file.Remark("os and L are not determined apart: the tables have no times in sends (send_call); os = 0 is " +
			"assumed")
	case e.recv == nil:
		e.file.Remark("or and L are not determined apart: the tables have no times in late receives (recv_late) of " +
			"eager messages; or = 0 is assumed")
	}
	low, high := math.Inf(1), 0.0
	for _, start := range e.messages[0].Start {
		if start == start {
			low, high = min(low, start), max(high, start)
		}
	}
	if high > 1.05*low {
		e.file.Remark("the latency depends on the path: the smallest message takes %.4g s to %.4g s; L is the mean of "+
			"%d paths", low, high, len(e.paths))
	}
	e.residuals(func(path int, bytes int64) float64 { return At(e.messages, path, bytes) })
	e.sharing()
}

// residuals reports the errors of the model, with the latency of each path, by table, and keeps the curves.
func (e *estimate) residuals(predict func(path int, bytes int64) float64) {
	e.file.curves = e.curves(predict)
	for _, t := range e.tables {
		r := Residual{Table: t.Name}
		sum := 0.0
		for _, m := range t.Rows {
			if path := slices.Index(e.paths, m.Where); m.Test == PingPong {
				err := math.Abs(predict(path, m.Bytes)/m.Seconds - 1)
				sum += err
				r.Largest = max(r.Largest, err)
				r.Points++
			}
		}
		if r.Points > 0 {
			r.Mean = sum / float64(r.Points)
			e.file.Residuals = append(e.file.Residuals, r)
		}
	}
}

// coarse warns if the errors of ping-pongs show that the model does not describe the machine.
func (e *estimate) coarse(why string) {
	worst := 0.0
	for _, r := range e.file.Residuals {
		worst = max(worst, r.Largest)
	}
	if worst > 0.05 {
		e.file.Remark("times depend on the size otherwise than in the model: errors of ping-pongs reach %.2g %%; %s",
			100*worst, why)
	}
}

// sharing warns if messages at once slow each other, which the backend does not model.
func (e *estimate) sharing() {
	worst, at := 1.1, Measurement{}
	for _, t := range e.tables {
		for _, m := range t.Rows {
			senders := m.Incast()
			if m.Test == Exchange || m.Test == AllExchange {
				senders = 1
			}
			if senders == 0 {
				continue
			}
			took := 0.0
			for path := range e.paths {
				took = max(took, At(e.messages, path, m.Bytes))
			}
			bytes := segmentAt(e.messages, m.Bytes).PerByte * float64(m.Bytes)
			if slow := m.Seconds / (took + float64(senders-1)*bytes); slow > worst {
				worst, at = slow, m
			}
		}
	}
	if at.Test != "" {
		e.file.Remark("messages share links: %s of %d bytes between %s takes %.2f times what messages without "+
			"contention take; the %s backend has no contention inside the network, use flow or packet", at.Test,
			at.Bytes, at.Where, worst, e.file.Backend)
	}
}
