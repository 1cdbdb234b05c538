package fit

import (
	"cmp"
	"fmt"
	"math"
	"slices"
)

// Route is what a network has between two ranks.
type Route struct {
	Latency float64 // seconds, of all links together
	Rate    float64 // bytes per second of one message alone
}

// Factors are latency and bandwidth factors by the bytes that travel: entry i holds above From[i] bytes.
type Factors struct {
	Model              string
	From               []int64 // ascending, the first 0
	Latency, Bandwidth []float64
	WeightS            float64
}

// at returns the factors of a number of bytes.
func (f *Factors) at(bytes int64) (latency, bandwidth float64) {
	i, _ := slices.BinarySearch(f.From, bytes)
	i = max(i-1, 0)
	return f.Latency[i], f.Bandwidth[i]
}

// FlowOptions select how the parameters of the flow backend are estimated.
type FlowOptions struct {
	Options
	Topology string                            // the network, for the file
	Route    func(where string) (Route, error) // between the ranks that a table names
	Models   []Factors                         // known tables of factors, which a machine may have
	Envelope int64                             // bytes that travel with each message, at least 1

	// Simulate returns the times of windows and exchanges of pairs with parameters, NaN for those that it cannot
	// predict; nil: they do not count.
	Simulate func(f *File, rows []Measurement) ([]float64, error)
}

// Flow estimates the parameters of the flow backend with the protocol of SMPI on a given network. A message of s bytes
// takes os + latency x latency factor + (s + envelope) / (rate x bandwidth factor) + or. Overheads and factors depend
// on the size, in segments. Messages of fewer than async_small bytes start at once, others when their receive is
// posted; sends of fewer than detached bytes end after os, others with the message, and then neither os nor or count.
// It needs ping-pongs. The remarks of the file name what the tables do not determine.
//
// If a known table of factors explains the ping-pongs about as well as fitted factors, the file has that table.
func Flow(tables []*Table, o FlowOptions) (*File, error) {
	common, err := newEstimate(tables, o.Options, &File{Backend: "flow", Model: "smpi", Topology: o.Topology})
	if err != nil {
		return nil, err
	}
	e := &flowEstimate{options: o, estimate: *common}
	for _, where := range e.paths {
		r, err := o.Route(where)
		if err != nil {
			return nil, err
		}
		if !(r.Latency > 0 && r.Rate > 0) {
			return nil, fmt.Errorf("expected a latency and a rate of the links between ranks %s, found %g s and %g B/s"+
				"; give the topology a latency", where, r.Latency, r.Rate)
		}
		e.routes = append(e.routes, r)
	}
	e.findThresholds()
	if err := e.findOverheads(); err != nil {
		return nil, err
	}
	e.network, e.networkFiner = e.messages, e.finer
	if e.refineDetached() {
		if err := e.findOverheads(); err != nil {
			return nil, err
		}
	}
	e.joinDetached()
	e.refineCuts()
	e.findFactors()
	if err := e.estimateJointly(); err != nil {
		return nil, err
	}
	e.bootstrap()
	e.describe()
	return e.file, nil
}

// flowEstimate is the state of the estimation.
type flowEstimate struct {
	estimate
	options         FlowOptions
	routes          []Route // by path
	nonBlocking     []Segment
	nonBlockingAt   []Point
	detached, async int64
	network         []Segment   // of the times of messages without os and or; messages, if these exceed some
	networkFiner    [][]Segment // divisions of them that the measurements do not exclude
	chosen          Factors     // by bytes that travel: fitted, or a known table
	divided         *divided
	joined          *Segment // of or or os whose slope ping-pongs on both sides of detached show
	jointly         *joint   // measurements of joint; nil: none
	joint           *jointEstimate
	known           string    // remark about a known table of factors
	bracketed       Parameter // range of detached that calls show
	summed          bool      // ping-pongs have os + or at sizes between those of calls; see splitSum
}

// findThresholds brackets the sizes at which the protocol changes.
func (e *flowEstimate) findThresholds() {
	e.detached = e.bracket("detached", SendLate, e.waits, "sends whose receive is posted late", assumed)
	e.bracketed = e.file.Parameters["detached"]
	same := int64(assumed) // machines with one threshold for both are common
	if p := e.file.Parameters["detached"]; p.High < unlimited {
		same = e.detached
	}
	e.async = e.bracket("async_small", RecvLate, func(m Measurement) bool {
		if m.Waits != 0 {
			return m.Waits > 0
		}
		return m.Seconds > e.shortest(m.Bytes)/2
	}, "receives that are posted late", same)
}

// Thresholds that tables do not show.
const (
	assumed   = 65536
	unlimited = 1 << 62 // above all sizes
)

// bracket sets the threshold from which the measurements of a test meet a condition. Without measurements, it is
// otherwise.
func (e *flowEstimate) bracket(name, test string, meets func(Measurement) bool, what string,
	otherwise int64) int64 {
	most, least, known := e.threshold(test, meets)
	p := Parameter{Value: float64(otherwise), High: unlimited, Unit: "B"}
	switch {
	case !known:
		e.file.Remark("%s is not determined: the tables have no %s (%s); %d bytes are assumed", name, what, test,
			otherwise)
	case least == math.MaxInt64:
		p.Value, p.Low = unlimited, float64(most+1)
		e.file.Remark("%s is not determined: it exceeds %d bytes, the largest size of %s", name, most, test)
	case most == 0:
		p = Parameter{High: float64(least), Unit: "B"}
	default:
		p = Parameter{Value: float64(Cut(most, least)), Low: float64(most + 1), High: float64(least), Unit: "B"}
	}
	e.file.set(name, p)
	return int64(p.Value)
}

// leastCriterion is the difference of Bayesian information criteria by which a size is more likely than another one.
const leastCriterion = 6

// refineDetached selects detached from the range that sends with late receives leave: the ping-pongs, which have more
// sizes, have no os and or from there on. It reports whether detached changed.
func (e *flowEstimate) refineDetached() bool {
	p, ok := e.file.Parameters["detached"]
	if !ok || p.High >= unlimited {
		return false
	}
	low, high := int64(p.Low), int64(p.High)
	var firsts []int64 // sizes of ping-pongs, the first not detached
	last := low - 1    // the largest size that is
	for _, point := range e.points {
		if point.Bytes >= low && point.Bytes <= high {
			firsts = append(firsts, point.Bytes)
		}
	}
	slices.Sort(firsts)
	if firsts = slices.Compact(firsts); len(firsts) < 2 {
		return false
	}
	best, least := -1, math.Inf(1)
	criteria := make([]float64, len(firsts))
	before := e.detached
	for i, first := range firsts {
		e.detached = first
		criteria[i] = e.criterion()
		if criteria[i] < least-1e-9 {
			best, least = i, criteria[i]
		}
	}
	e.detached = before
	if best < 0 {
		return false
	}
	from, to := best, best
	for i, c := range criteria {
		if c < least+leastCriterion {
			from, to = min(from, i), max(to, i)
		}
	}
	if from > 0 {
		last = firsts[from-1]
	}
	p.Low, p.High = float64(last+1), float64(firsts[to])
	p.Value = float64(Cut(last, firsts[to]))
	e.setDetached(p)
	e.divideNetwork()
	return e.detached != before
}

// setDetached sets detached, and async_small to the same size if that is possible: machines with one threshold for both
// are common.
func (e *flowEstimate) setDetached(p Parameter) {
	e.detached = int64(p.Value)
	e.file.set("detached", p)
	if a, ok := e.file.Parameters["async_small"]; ok && p.Value >= a.Low && p.Value <= a.High {
		a.Value = p.Value
		e.async = e.detached
		e.file.set("async_small", a)
	}
}

// joinDetached estimates the slope of os or or in its last segment if calls have one size there. From detached on,
// messages have neither: if one latency and one bandwidth explain the ping-pongs on both sides with some slope, as they
// do if the network changes nothing there, the slope is that one.
func (e *flowEstimate) joinDetached() {
	i := slices.IndexFunc(e.network, func(s Segment) bool { return s.CutAfter < e.detached && e.detached <= s.Least })
	s, at := e.single()
	if i < 1 || s == nil {
		return
	}
	first := max(e.network[i-1].Least, s.From)
	var points []Point
	below := map[int64]bool{}
	for _, p := range e.points {
		if p.Bytes >= first && p.Bytes < e.network[i].To {
			points = append(points, p)
			if p.Bytes < e.detached {
				below[p.Bytes] = true
			}
		}
	}
	if len(below) < 2 {
		return
	}
	apart := e.solve([]int64{0, e.travelling(e.detached)}, points, e.send, e.recv)
	criterion := e.information(&apart, points, 4)
	before := *s
	perByte, ok := e.commonSlope(points, at)
	if !ok {
		return
	}
	s.Start = slices.Clone(s.Start)
	s.slope(s.PerByte + perByte)
	together := e.solve([]int64{0}, points, e.send, e.recv)
	if e.information(&together, points, 3) >= criterion {
		*s = before
		return
	}
	e.joined = s
	e.divideNetwork()
}

// refineCuts moves the starts of segments of os and or between the sizes of calls: ping-pongs have more sizes.
func (e *flowEstimate) refineCuts() {
	var sizes []int64
	for _, p := range e.points {
		if p.Bytes < e.detached {
			sizes = append(sizes, p.Bytes)
		}
	}
	slices.Sort(sizes)
	sizes = slices.Compact(sizes)
	for range 2 { // cuts of os and or may depend on each other
		moved := false
		for _, list := range [][]Segment{e.send, e.recv} {
			for i := 1; i < len(list); i++ {
				moved = e.refineCut(list, i, sizes) || moved
			}
		}
		if !moved {
			return
		}
		e.divideNetwork()
	}
}

// refineCut moves the start of a segment to that of the size of ping-pongs with the least criterion.
func (e *flowEstimate) refineCut(list []Segment, i int, sizes []int64) (moved bool) {
	s, before := &list[i], &list[i-1]
	set := func(from int64) { s.From, before.To = from, from }
	best, last := s.From, s.CutAfter
	least := e.criterion() - leastCriterion
	for _, size := range sizes {
		if size <= s.CutAfter || size > s.Least {
			continue
		}
		from := beginning(last, size)
		last = size
		if set(from); from > before.From {
			if c := e.criterion(); c < least {
				best, least, moved = from, c, true
			}
		}
	}
	set(best)
	return moved
}

// single returns the last segment of or or os if one of them has calls of a single size there, and that size.
func (e *flowEstimate) single() (s *Segment, at int64) {
	for _, calls := range []struct {
		segments []Segment
		points   []Point
	}{{e.send, e.sendAt}, {e.recv, e.recvAt}} {
		if len(calls.segments) == 0 {
			return nil, 0
		}
		last := &calls.segments[len(calls.segments)-1]
		if !last.oneSize(calls.points) {
			continue
		}
		if s != nil {
			return nil, 0 // ping-pongs have the sum of both
		}
		s, at = last, last.Least
	}
	return s, at
}

// commonSlope returns the slope that os or or has beside its present one about a size, in seconds per byte, if the
// factors of the network are the same below and from detached on.
func (e *flowEstimate) commonSlope(points []Point, at int64) (perByte float64, ok bool) {
	var a [3][4]float64 // normal equations of relative errors
	for _, p := range points {
		r := e.routes[p.Path]
		row := [4]float64{r.Latency, float64(p.Bytes+e.options.Envelope) / r.Rate, 0,
			p.Seconds - e.overheads(e.send, e.recv, p.Bytes)}
		if p.Bytes < e.detached {
			row[2] = float64(p.Bytes - at)
		}
		for i := range a {
			for j := range row {
				a[i][j] += row[i] * row[j] / (p.Seconds * p.Seconds)
			}
		}
	}
	for i := range a { // Gauss-Jordan; the matrix is positive definite
		if !(a[i][i] > 0) {
			return 0, false
		}
		for j := range a {
			if j == i {
				continue
			}
			f := a[j][i] / a[i][i]
			for k := i; k < len(a[j]); k++ {
				a[j][k] -= f * a[i][k]
			}
		}
	}
	latency, inverse, perByte := a[0][3]/a[0][0], a[1][3]/a[1][1], a[2][3]/a[2][2]
	return perByte, latency >= 0 && inverse >= leastInverse && perByte > 0
}

// networkPoints returns the ping-pongs without os and or; nil if these exceed some.
func (e *flowEstimate) networkPoints() []Point {
	points := slices.Clone(e.points)
	for i := range points {
		p := &points[i]
		if p.Seconds -= e.overheads(e.send, e.recv, p.Bytes); p.Seconds <= 0 {
			return nil
		}
	}
	return points
}

// divideNetwork divides the times of messages without os and or.
func (e *flowEstimate) divideNetwork() {
	if points := e.networkPoints(); points != nil {
		if segments, finer, err := divisions(points); err == nil {
			e.network, e.networkFiner = segments, finer
		}
	}
}

// criterion is the Bayesian information criterion of the times of messages without os and or.
func (e *flowEstimate) criterion() float64 {
	points := e.networkPoints()
	if points == nil {
		return math.Inf(1)
	}
	segments, err := Split(points)
	if err != nil {
		return math.Inf(1)
	}
	from := e.starts(segments)
	f := e.solve(from, e.points, e.send, e.recv)
	return e.information(&f, e.points, 3*len(from)-1)
}

// information is the Bayesian information criterion of factors with a number of parameters.
func (e *flowEstimate) information(f *Factors, points []Point, parameters int) float64 {
	sum := 0.0
	for _, p := range points {
		err := e.predict(f, p.Path, p.Bytes)/p.Seconds - 1
		sum += err * err
	}
	n := float64(len(points))
	free := max(n-float64(parameters), 1)
	return n*math.Log(sum/free+resolution*resolution) + float64(parameters)*math.Log(n)
}

// findOverheads fits the times in calls. Their segments begin where those of messages do, if possible: tables of calls
// have fewer sizes.
func (e *flowEstimate) findOverheads() (err error) {
	if e.sendAt, e.send, err = overhead(e.calls(SendCall, e.detached-1)); err != nil {
		return err
	}
	late := append(e.calls(RecvLate, min(e.async, e.detached)-1), e.calls(WaitLate, e.detached-1)...)
	if e.recvAt, e.recv, err = overhead(late); err != nil {
		return err
	}
	if e.nonBlockingAt, e.nonBlocking, err = overhead(e.calls(IsendCall, math.MaxInt64)); err != nil {
		return err
	}
	e.send, e.recv = attach(e.send, e.sendAt), attach(e.recv, e.recvAt)
	e.align(e.send, e.sendAt)
	e.align(e.recv, e.recvAt)
	e.align(e.nonBlocking, e.nonBlockingAt)
	return nil
}

// attach moves sizes on the line of the segment before to that segment: tables of calls have few sizes, so that a jump
// behind a size can hide in a steep line from it to the next one. Only a machine without noise shows such lines.
func attach(segments []Segment, points []Point) []Segment {
	off := func(s Segment, p Point) bool { return math.Abs(s.At(0, p.Bytes)/p.Seconds-1) > noiseless }
	for i := 1; i < len(segments); i++ {
		before, s := &segments[i-1], &segments[i]
		var rest []Point
		steady := true
		for _, p := range points {
			switch {
			case p.Bytes < before.From || p.Bytes >= s.To:
			case p.Bytes < s.From:
				steady = steady && !off(*before, p)
			default:
				rest = append(rest, p)
			}
		}
		slices.SortStableFunc(rest, func(a, b Point) int { return cmp.Compare(a.Bytes, b.Bytes) })
		moved := slices.IndexFunc(rest, func(p Point) bool { return off(*before, p) })
		if !steady || moved <= 0 || rest[moved].Bytes == rest[moved-1].Bytes {
			continue
		}
		var line scratch
		line.fit(rest[moved:], 1)
		s.CutAfter, s.Least = rest[moved-1].Bytes, rest[moved].Bytes
		s.From = Cut(s.CutAfter, s.Least)
		before.To = s.From
		s.Start, s.PerByte = slices.Clone(line.start), line.perByte
	}
	return segments
}

// align moves the starts of segments of overheads to those of segments of messages between the same two measured
// sizes. A last segment of one size has the slope of the one before.
func (e *flowEstimate) align(list []Segment, calls []Point) {
	for i := 1; i < len(list); i++ {
		for _, m := range e.messages[1:] {
			if m.CutAfter >= list[i].CutAfter && m.Least <= list[i].Least {
				list[i].From = m.From
				if m.CutAfter&(m.CutAfter-1) == 0 {
					list[i].From = m.CutAfter + 1 // the last size of a protocol often is a power of two
				}
			}
		}
		list[i-1].To = list[i].From
	}
	if n := len(list); n > 1 && list[n-1].oneSize(calls) {
		list[n-1].slope(list[n-2].PerByte)
	}
}

// oneSize reports whether a last segment has points of one size.
func (s *Segment) oneSize(points []Point) bool {
	return !slices.ContainsFunc(points, func(p Point) bool { return p.Bytes >= s.From && p.Bytes != s.Least })
}

// overheads returns os and or of a message.
func (e *flowEstimate) overheads(send, recv []Segment, bytes int64) float64 {
	if bytes >= e.detached {
		return 0
	}
	return segmentAt(send, bytes).At(0, bytes) + segmentAt(recv, bytes).At(0, bytes)
}

// predict returns the time of a message.
func (e *flowEstimate) predict(f *Factors, path int, bytes int64) float64 {
	latency, bandwidth := f.at(bytes + e.options.Envelope)
	r := e.routes[path]
	return e.overheads(e.send, e.recv, bytes) + r.Latency*latency + float64(bytes+e.options.Envelope)/(r.Rate*bandwidth)
}

// errors returns the mean and the largest relative error of the ping-pongs.
func (e *flowEstimate) errors(f *Factors) (mean, worst float64) {
	for _, p := range e.points {
		err := math.Abs(e.predict(f, p.Path, p.Bytes)/p.Seconds - 1)
		mean += err / float64(len(e.points))
		worst = max(worst, err)
	}
	return mean, worst
}

// Errors of the ping-pongs up to which a known table is that of the machine: mean and largest error may exceed those of
// fitted factors, by degrees of freedom, by a factor and, without noise, a constant.
const (
	knownShare = 1.1
	knownMean  = 0.002
	worstShare = 2
	knownWorst = 0.01
)

// findFactors fits factors in the segments of messages, and looks for a known table that explains the times as well.
func (e *flowEstimate) findFactors() {
	from := e.starts(e.network)
	e.chosen = e.solve(from, e.points, e.send, e.recv)
	mean, worst := e.errors(&e.chosen)
	n := float64(len(e.points))
	free := mean * math.Sqrt(n/max(n-float64(2*len(from)), 1))
	least, best := math.Inf(1), e
	for _, f := range e.options.Models {
		with := e.with(f)
		m, w := with.errors(&f)
		if m <= knownShare*free+knownMean && w <= max(worstShare*worst, knownWorst) && m < least {
			least, best = m, with
		}
	}
	if *e = *best; e.chosen.Model != "" {
		e.file.Model = e.chosen.Model
		e.explained(least, mean)
	}
}

// explained notes the mean errors of the ping-pongs with the known table of factors and with fitted ones.
func (e *flowEstimate) explained(known, fitted float64) {
	e.known = fmt.Sprintf("the factors are those of --flow-model %s, which explain the ping-pongs with a mean error "+
		"of %.2g %%; fitted ones leave %.2g %%", e.chosen.Model, 100*known, 100*fitted)
}

// with returns the estimate with known factors, which may determine overheads that calls do not.
func (e *flowEstimate) with(f Factors) *flowEstimate {
	other := *e
	other.chosen = f
	for _, list := range []*[]Segment{&other.send, &other.recv, &other.nonBlocking} {
		*list = slices.Clone(*list)
		for i := range *list {
			(*list)[i].Start = slices.Clone((*list)[i].Start)
		}
	}
	other.divideSum()
	if _, worst := other.errors(&f); other.divided == nil && worst > exact {
		other.splitSum()
	}
	return &other
}

// leastKnown is the number of sizes that known factors have to explain before they give overheads.
const leastKnown = 6

// splitSum estimates os and or between the sizes of calls if known factors leave no errors where the overheads are
// known: at the sizes of calls, and from detached on, where there are none. The ping-pongs then have the sum of both
// overheads at all their sizes, and calls one or both of them at some.
func (e *flowEstimate) splitSum() {
	if e.send == nil || e.recv == nil {
		return
	}
	call := func(points []Point, bytes int64) (seconds float64, known bool) {
		for _, p := range points {
			if p.Bytes == bytes {
				return p.Seconds, true
			}
		}
		return 0, false
	}
	explained := map[int64]bool{}
	var sums []Point
	for _, p := range e.points {
		network := e.predict(&e.chosen, p.Path, p.Bytes) - e.overheads(e.send, e.recv, p.Bytes)
		os, sends := call(e.sendAt, p.Bytes)
		or, receives := call(e.recvAt, p.Bytes)
		if p.Bytes >= e.detached {
			os, or, sends, receives = 0, 0, true, true
		}
		if sends && receives {
			if explained[p.Bytes] = true; math.Abs((network+os+or)/p.Seconds-1) > noiseless {
				return
			}
		}
		if p.Bytes < e.detached {
			if p.Seconds <= network {
				return
			}
			sums = append(sums, Point{Bytes: p.Bytes, Seconds: p.Seconds - network})
		}
	}
	if len(explained) < leastKnown {
		return
	}
	segments, err := Split(sums)
	if err != nil {
		return
	}
	var send, recv []Segment
	several := func(points []Point) bool { return len(points) > 0 && points[0].Bytes != points[len(points)-1].Bytes }
	part := func(points []Point, s Segment) []Point {
		return slices.DeleteFunc(slices.Clone(points), func(p Point) bool {
			return p.Bytes < s.From ||
				p.Bytes >= s.To
		})
	}
	for i, sum := range segments {
		if i > 0 {
			sum.From = beginning(sum.CutAfter, sum.Least)
		}
		if i+1 < len(segments) {
			sum.To = beginning(segments[i+1].CutAfter, segments[i+1].Least)
		}
		sends, receives := part(e.sendAt, sum), part(e.recvAt, sum)
		of, or := sum, sum
		switch {
		case several(sends):
			of.line(sends)
			or.remainder(&sum, &of)
		case several(receives):
			or.line(receives)
			of.remainder(&sum, &or)
		case i == 0 && (len(sends) == 0 || len(receives) == 0):
			return
		case len(sends) > 0:
			of.share(&sum, sends[0])
			or.remainder(&sum, &of)
		case len(receives) > 0:
			or.share(&sum, receives[0])
			of.remainder(&sum, &or)
		default:
			before := recv[i-1]
			or.Start, or.PerByte = slices.Clone(before.Start), before.PerByte
			of.remainder(&sum, &or)
		}
		for _, at := range []int64{sum.From, min(sum.To, e.detached) - 1} {
			if min(of.At(0, at), or.At(0, at)) < -resolution*sum.At(0, at) {
				return
			}
		}
		send, recv = append(send, of), append(recv, or)
	}
	e.send, e.recv, e.summed = send, recv, true
	for _, s := range send[1:] {
		e.cutNonBlocking(s.From)
	}
}

// cutNonBlocking moves the start of a segment of ois to a size if it may lie there: the protocol changes for all sends.
func (e *flowEstimate) cutNonBlocking(from int64) {
	for i := 1; i < len(e.nonBlocking); i++ {
		if s := &e.nonBlocking[i]; s.CutAfter < from && from <= s.Least {
			s.From, e.nonBlocking[i-1].To = from, from
		}
	}
}

// line fits the segment to points.
func (s *Segment) line(points []Point) {
	var line scratch
	line.fit(points, 1)
	s.Start, s.PerByte = slices.Clone(line.start), line.perByte
}

// remainder makes the segment a sum without another segment.
func (s *Segment) remainder(sum, other *Segment) {
	s.Start, s.PerByte = []float64{sum.Start[0] - other.Start[0]}, sum.PerByte-other.PerByte
}

// share makes the segment the part of a sum that a point has, at all sizes.
func (s *Segment) share(sum *Segment, p Point) {
	part := p.Seconds / sum.At(0, p.Bytes)
	s.Start, s.PerByte = []float64{part * sum.Start[0]}, part*sum.PerByte
}

// divided is a range of sizes whose calls have one size: the times of others in a send and in a receive are known by
// their sum.
type divided struct {
	from, at   int64   // first size, and that of the calls
	send, recv float64 // seconds of the calls
	perByte    float64 // of the sum
}

// divideSum estimates the last segment of os and or if calls have one size there and the factors leave no errors but
// theirs: the ping-pongs have the sum of both, which is divided in proportion to the times of the calls, and the size
// at which the segment begins.
func (e *flowEstimate) divideSum() {
	ns, nr := len(e.send)-1, len(e.recv)-1
	if ns < 1 || nr < 1 {
		return
	}
	send, recv := &e.send[ns], &e.recv[nr]
	if !send.oneSize(e.sendAt) || !recv.oneSize(e.recvAt) || send.Least != recv.Least ||
		send.CutAfter != recv.CutAfter {
		return
	}
	low, d := send.CutAfter, divided{at: send.Least, send: send.At(0, send.Least), recv: recv.At(0, recv.Least)}
	var within []Point // with the sum of both overheads, relative to that of the calls
	var times []float64
	for _, p := range e.points {
		if p.Bytes <= low || p.Bytes >= e.detached {
			if math.Abs(e.predict(&e.chosen, p.Path, p.Bytes)/p.Seconds-1) > exact {
				return // noise, or other factors
			}
		} else {
			times = append(times, p.Seconds)
			p.Seconds -= e.predict(&e.chosen, p.Path, p.Bytes) - e.overheads(e.send, e.recv, p.Bytes)
			within = append(within, p)
		}
	}
	least := math.Inf(1)
	last := low
	sizes := make([]int64, len(within))
	for i, p := range within {
		sizes[i] = p.Bytes
	}
	slices.Sort(sizes)
	for _, first := range slices.Compact(sizes) {
		if first > d.at {
			break
		}
		var xx, xy, cost float64
		for i, p := range within {
			if x := float64(p.Bytes - d.at); p.Bytes >= first {
				xx += x * x / (times[i] * times[i])
				xy += x * (p.Seconds - d.send - d.recv) / (times[i] * times[i])
			}
		}
		perByte := 0.0
		if xx > 0 {
			perByte = max(0, xy/xx)
		}
		for i, p := range within {
			sum := d.send + d.recv + perByte*float64(p.Bytes-d.at)
			if p.Bytes < first {
				sum = e.send[ns-1].At(0, p.Bytes) + e.recv[nr-1].At(0, p.Bytes)
			}
			cost += (p.Seconds - sum) * (p.Seconds - sum) / (times[i] * times[i])
		}
		if cost < least {
			least, d.perByte, d.from = cost, perByte, beginning(last, first)
		}
		last = first
	}
	if d.from == 0 {
		return
	}
	share := d.send / (d.send + d.recv)
	send.slope(d.perByte * share)
	recv.slope(d.perByte * (1 - share))
	send.From, recv.From, e.send[ns-1].To, e.recv[nr-1].To = d.from, d.from, d.from, d.from
	e.cutNonBlocking(d.from)
	e.divided = &d
}

// beginning returns the first size of a segment that begins between two measured sizes: the last size of a protocol
// often is a power of two.
func beginning(after, least int64) int64 {
	if after&(after-1) == 0 {
		return after + 1
	}
	return Cut(after, least)
}

// starts returns the bytes that travel above which segments begin.
func (e *flowEstimate) starts(segments []Segment) (from []int64) {
	for _, s := range segments {
		from = append(from, e.travelling(s.From))
	}
	return from
}

// travelling returns the bytes above which a table of factors has those of messages from a size on.
func (e *flowEstimate) travelling(from int64) int64 {
	if from == 0 {
		return 0
	}
	return from - 1 + e.options.Envelope
}

// solve fits the factors of messages above each of the given numbers of bytes that travel.
func (e *flowEstimate) solve(from []int64, points []Point, send, recv []Segment) Factors {
	f := Factors{From: from, Latency: make([]float64, len(from)), Bandwidth: make([]float64, len(from))}
	parts := make([][]Point, len(from))
	for _, p := range points {
		i, _ := slices.BinarySearch(from, p.Bytes+e.options.Envelope)
		parts[max(i-1, 0)] = append(parts[max(i-1, 0)], p)
	}
	var line twoColumns
	inverse := 1.0 // of the bandwidth factor, of the segment above
	for i := len(from) - 1; i >= 0; i-- {
		line.rows = line.rows[:0]
		one := true
		for _, p := range parts[i] {
			one = one && p.Bytes == parts[i][0].Bytes
			r := e.routes[p.Path]
			line.rows = append(line.rows, [4]float64{r.Latency, float64(p.Bytes+e.options.Envelope) / r.Rate,
				p.Seconds - e.overheads(send, recv, p.Bytes), p.Seconds})
		}
		switch {
		case len(line.rows) == 0 && i+1 < len(from):
			f.Latency[i] = f.Latency[i+1]
		case len(line.rows) == 0:
			f.Latency[i] = 1
		case one:
			f.Latency[i] = line.first(inverse)
		default:
			f.Latency[i], inverse = line.fit()
		}
		f.Bandwidth[i] = 1 / inverse
	}
	return f
}

// Limits of 1 / bandwidth factor.
const (
	leastInverse = 1e-6
	mostInverse  = 1e6
)

// twoColumns fits a linear model without constant: rows are both columns, the value, and the time to which errors are
// relative.
type twoColumns struct {
	rows   [][4]float64
	weight []float64
}

// fit returns the coefficients with the least relative errors, with Huber's weights. Both are at least 0, the second
// one within the limits.
func (l *twoColumns) fit() (a, b float64) {
	l.weight = slices.Grow(l.weight[:0], len(l.rows))[:len(l.rows)]
	for i := range l.weight {
		l.weight[i] = 1
	}
	for range rounds {
		var aa, ab, bb, ay, by float64
		for i, r := range l.rows {
			w := l.weight[i] / (r[3] * r[3])
			aa += w * r[0] * r[0]
			ab += w * r[0] * r[1]
			bb += w * r[1] * r[1]
			ay += w * r[0] * r[2]
			by += w * r[1] * r[2]
		}
		if d := aa*bb - ab*ab; d > 1e-14*aa*bb {
			b = (aa*by - ab*ay) / d
		} else {
			b = by / bb
		}
		b = min(max(b, leastInverse), mostInverse)
		if a = (ay - b*ab) / aa; a < 0 {
			a, b = 0, min(max(by/bb, leastInverse), mostInverse)
		}
		changed := false
		for i, r := range l.rows {
			w := 1.0
			if err := math.Abs(a*r[0]+b*r[1]-r[2]) / r[3]; err > huber {
				w = huber / err
			}
			changed = changed || math.Abs(w-l.weight[i]) > 1e-6
			l.weight[i] = w
		}
		if !changed {
			break
		}
	}
	return a, b
}

// first returns the first coefficient for a given second one.
func (l *twoColumns) first(b float64) float64 {
	sum, n := 0.0, 0.0
	for _, r := range l.rows {
		sum += r[0] * (r[2] - b*r[1]) / (r[3] * r[3])
		n += r[0] * r[0] / (r[3] * r[3])
	}
	return max(0, sum/n)
}

// bootstrap computes 95 % intervals by drawing errors of the fit again, and adds the segments to the file.
func (e *flowEstimate) bootstrap() {
	if e.joint != nil {
		e.file.Segments = e.jointSegments()
		return
	}
	from := e.chosen.From
	predicted, errs := make([]float64, len(e.points)), make([]float64, len(e.points))
	scale := enlargement(len(e.points), len(e.points)-2*len(from))
	for i, p := range e.points {
		predicted[i] = e.predict(&e.chosen, p.Path, p.Bytes)
		errs[i] = scale * (p.Seconds/predicted[i] - 1)
	}
	send, recv := newResampler(e.sendAt, e.send), newResampler(e.recvAt, e.recv)
	nonBlocking := newResampler(e.nonBlockingAt, e.nonBlocking)
	divisions := [][]int64{from}
	if e.chosen.Model == "" {
		for _, finer := range e.networkFiner {
			divisions = append(divisions, e.starts(finer))
		}
	}
	factors := make([][]Factors, len(divisions))
	var calls [3][][]Segment
	points := slices.Clone(e.points)
	for range e.draws {
		for i, seconds := range predicted {
			points[i].Seconds = redraw(seconds, errs, e.random)
		}
		s, r := send.draw(e.random), recv.draw(e.random)
		calls[0], calls[1] = append(calls[0], s), append(calls[1], r)
		calls[2] = append(calls[2], nonBlocking.draw(e.random))
		for i, division := range divisions {
			factors[i] = append(factors[i], e.solve(division, points, s, r))
		}
	}
	bounds := e.bounds()
	column := make([]float64, e.draws)
	estimated := func(value float64, unit string, of func(draw int) float64) Parameter {
		for i := range column {
			column[i] = of(i)
		}
		p := exactly(value, unit).hull(interval(column))
		p.Low = max(0, p.Low)
		return p
	}
	for i, at := range bounds {
		latency, bandwidth := e.chosen.at(at + e.options.Envelope)
		s := FileSegment{From: at, Parameters: map[string]Parameter{}}
		if i+1 < len(bounds) {
			s.To = bounds[i+1]
		}
		// A factor may be that of any division there.
		l, b := exactly(latency, "1"), exactly(bandwidth, "1")
		for k, division := range divisions {
			for j, above := range division {
				first := max(above+1-e.options.Envelope, at)
				if s.To > 0 && first >= s.To || j+1 < len(division) && first+e.options.Envelope > division[j+1] {
					continue // none of its sizes are in the segment
				}
				for i, f := range factors[k] {
					column[i] = f.Latency[j]
				}
				l = l.hull(interval(column))
				for i, f := range factors[k] {
					column[i] = f.Bandwidth[j]
				}
				b = b.hull(interval(column))
			}
		}
		s.Parameters["latency_factor"], s.Parameters["bandwidth_factor"] = l, b
		for k, name := range []string{"os", "or", "ois"} {
			list := [][]Segment{e.send, e.recv, e.nonBlocking}[k]
			if name == "ois" && list == nil {
				list = e.send
			}
			v := segmentAt(list, at)
			s.Parameters[name] = estimated(v.Start[0], "s", func(draw int) float64 {
				return segmentAt(calls[k][draw], at).Start[0]
			})
			s.Parameters[name+"_per_byte"] = estimated(v.PerByte, "s/B", func(draw int) float64 {
				return segmentAt(calls[k][draw], at).PerByte
			})
		}
		e.undetermined(s.Parameters, at)
		e.file.Segments = append(e.file.Segments, s)
	}
}

// bounds returns the first sizes of the segments of the file.
func (e *flowEstimate) bounds() []int64 {
	bounds := []int64{0}
	for _, above := range e.chosen.From[1:] {
		bounds = append(bounds, max(above+1-e.options.Envelope, 0))
	}
	for _, list := range [][]Segment{e.send, e.recv, e.nonBlocking} {
		for _, s := range list {
			bounds = append(bounds, s.From)
		}
	}
	slices.Sort(bounds)
	return slices.Compact(bounds)
}

// undetermined widens the intervals of what ping-pongs alone do not determine: only the sum of os, latency and or
// is known.
func (e *flowEstimate) undetermined(p map[string]Parameter, bytes int64) {
	if bytes >= e.detached {
		return
	}
	if d := e.divided; d != nil && bytes >= d.from {
		for name, seconds := range map[string]float64{"os": d.send, "or": d.recv} {
			p[name] = p[name].hull(max(0, seconds-d.perByte*float64(d.at)), seconds)
			p[name+"_per_byte"] = p[name+"_per_byte"].hull(0, d.perByte)
		}
	}
	for name, list := range map[string][]Segment{"os": e.send, "or": e.recv} {
		if s, at := e.single(); s != nil && e.joined == nil && &list[len(list)-1] == s && bytes >= s.From {
			p[name+"_per_byte"] = p[name+"_per_byte"].hull(0, s.At(0, at)/float64(max(at, 1)))
		}
	}
	latency := math.Inf(1)
	for _, r := range e.routes {
		latency = min(latency, r.Latency*p["latency_factor"].Value)
	}
	widen := func(name string, high float64) { p[name] = p[name].hull(0, high) }
	for name, known := range map[string]bool{"os": e.send != nil, "or": e.recv != nil} {
		if !known {
			widen(name, latency)
			widen("latency_factor", 0)
		}
	}
	if e.nonBlocking == nil {
		widen("ois", latency)
	}
}

// describe adds residuals and what the tables do not determine.
func (e *flowEstimate) describe() {
	if e.known != "" {
		e.file.Remark("%s", e.known)
	}
	if e.joint != nil {
		e.file.Remark("factors, os, or and detached come from all tables of two ranks at once, with the windows (%s) "+
			"and exchanges (%s) by simulation: ping-pongs and calls alone miss these", Window, Exchange)
	}
	if e.send == nil {
		e.file.Remark("os is not determined: the tables have no times in sends (%s); 0 is assumed", SendCall)
	}
	if e.recv == nil {
		e.file.Remark("or is not determined: the tables have no times in late receives (%s) of messages that start at "+
			"once; 0 is assumed", RecvLate)
	}
	if e.nonBlocking == nil {
		e.file.Remark("ois is not determined: the tables have no times in non-blocking sends (%s); os is assumed",
			IsendCall)
	}
	if d := e.divided; d != nil {
		e.file.Remark("os and or from %d bytes on are known by their sum in ping-pongs: the times in calls have only "+
			"%d bytes there; their slopes are assumed to be in proportion to these times", d.from, d.at)
	}
	if e.summed {
		e.file.Remark("os + or between the sizes of calls comes from the ping-pongs: in a segment where calls have " +
			"one size of one overhead, both have its share of the sum; where they have none, or continues, and os " +
			"has the rest")
	}
	if s := e.joined; s != nil && !e.summed {
		e.file.Remark("calls have only %d bytes in the last segment of an overhead, from %d bytes on: its slope is "+
			"that with which one latency and one bandwidth factor explain the ping-pongs below and from detached on",
			s.Least, s.From)
	}
	e.residuals(func(path int, bytes int64) float64 { return e.predict(&e.chosen, path, bytes) })
	e.file.set("envelope", exactly(float64(e.options.Envelope), "B"))
}
