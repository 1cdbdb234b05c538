package fit

import (
	"math"
	"slices"
)

// PacketOptions select how the parameters of the packet backend are estimated.
type PacketOptions struct {
	Options
	Topology  string // the network, for the file
	Transport string
	Header    int64 // of packets of the transport in bytes
	// Alone returns the latency of the path between the ranks that a table names, and the time of the bytes of a
	// message alone on its links, in seconds, for a payload and a header of packets in bytes.
	Alone func(where string, bytes, mss, header int64) (latency, transfer float64, err error)
	// Simulate returns the times in seconds of ping-pongs between the ranks that a table names, half of round trips,
	// with the parameters of a file.
	Simulate func(f *File, where string, sizes []int64) ([]float64, error)
}

// defaultMSS is the payload of packets of the packet backend unless the caller selects another one, in bytes.
const defaultMSS = 4096

// payloads are the payloads of packets that a machine may have in bytes, up to those of jumbo frames.
var payloads = []int64{256, 512, 1024, 1460, 2048, defaultMSS, 8192, 8936}

// largestHeader is the largest header of a packet in bytes; it is also at most a quarter of the payload.
const largestHeader = 256

// Errors up to which times of packets describe a machine well enough to select their size, in root mean squares: those
// that segments of size leave, times a factor, and a constant. Otherwise the errors are those of the model, which
// another size may hide.
const (
	describedShare = 1.5
	describedMore  = 0.005
)

// Packet estimates the parameters of the packet backend on a given network. A message alone takes
// 2 o + latency x latency factor + time of its packets / bandwidth factor, where each packet has a header, and each
// link of the path takes whole packets. There is one value for all sizes. It needs ping-pongs; times in calls
// (send_call, recv_late) determine o. The remarks of the file name what the tables do not determine.
//
// Transports add to these times, such as waits for acknowledgements. Simulations have these parts, and the parameters
// are estimated again with them.
func Packet(tables []*Table, o PacketOptions) (*File, error) {
	common, err := newEstimate(tables, o.Options, &File{Backend: "packet", Model: o.Transport, Topology: o.Topology,
		Segments: []FileSegment{}})
	if err != nil {
		return nil, err
	}
	e := &packetEstimate{estimate: *common, options: o, times: map[packetSize][]packetTime{}}
	if err := e.findOverhead(); err != nil {
		return nil, err
	}
	if err := e.choose(); err != nil {
		return nil, err
	}
	if err := e.refineBySimulation(); err != nil {
		return nil, err
	}
	if err := e.bootstrap(); err != nil {
		return nil, err
	}
	e.describe()
	return e.file, nil
}

// packetEstimate is the state of the estimation.
type packetEstimate struct {
	estimate
	options  PacketOptions
	times    map[packetSize][]packetTime // of the points
	size     packetSize
	free     bool      // the header is estimated, not that of size
	overhead float64   // o by the times in calls
	split    bool      // o is estimated from paths of different latencies
	ratio    []float64 // of the points: simulated time over that of the packets alone; nil: 1
	found    packetCosts
}

// packetSize is the payload and the header of packets.
type packetSize struct{ mss, header int64 }

// packetTime is the time of a message alone.
type packetTime struct{ latency, transfer float64 }

// packetCosts are the estimated parameters.
type packetCosts struct {
	overhead, latency float64 // o in seconds, latency factor
	perByte           float64 // inverse of the bandwidth factor
	header            float64 // bytes
}

// known reports whether times in calls determine o.
func (e *packetEstimate) known() bool { return e.send != nil || e.recv != nil }

// findOverhead takes o from times in calls.
func (e *packetEstimate) findOverhead() error {
	e.eager = math.MaxInt64
	if most, least, known := e.threshold(SendLate, e.waits); known && least < math.MaxInt64 {
		e.eager = Cut(most, least) - 1
		e.file.Remark("a send above %d bytes waits for its receive; S is left unlimited, because the backend would "+
			"add the round trip of an announcement to such messages", e.eager)
	}
	if err := e.findOverheads(); err != nil {
		return err
	}
	e.overhead = overheadOf(e.send, e.recv)
	return nil
}

// overheadOf returns o, the mean of the times in a send and in a receive of the smallest size, one of which may be
// unknown.
func overheadOf(send, recv []Segment) float64 {
	sum, n := 0.0, 0
	for _, list := range [][]Segment{send, recv} {
		if len(list) > 0 {
			sum += list[0].At(0, list[0].Least)
			n++
		}
	}
	return sum / float64(max(n, 1))
}

// at returns the times of the points alone with packets of a size.
func (e *packetEstimate) at(size packetSize) ([]packetTime, error) {
	if t := e.times[size]; t != nil {
		return t, nil
	}
	all := make([]packetTime, len(e.points))
	for i, p := range e.points {
		latency, transfer, err := e.options.Alone(e.paths[p.Path], p.Bytes, size.mss, size.header)
		if err != nil {
			return nil, err
		}
		all[i] = packetTime{latency, transfer}
	}
	e.times[size] = all
	return all, nil
}

// solve fits the parameters to points for a size of packets, and returns the cost of the errors. The time of packets is
// linear in the header.
func (e *packetEstimate) solve(points []Point, size packetSize, free bool, overhead float64) (c packetCosts,
	cost float64, err error) {
	with, err := e.at(size)
	if err != nil {
		return c, 0, err
	}
	without := with
	if free {
		if without, err = e.at(packetSize{mss: size.mss}); err != nil {
			return c, 0, err
		}
	}
	rows := make([]equation, len(points))
	for i, t := range without {
		columns := []float64{t.latency, t.transfer}
		if free {
			columns = append(columns, (with[i].transfer-t.transfer)/float64(size.header))
		}
		if e.split {
			columns = append(columns, 2)
		}
		alone := points[i].Seconds
		if e.ratio != nil {
			alone /= e.ratio[i]
		}
		rows[i] = equation{columns, alone - 2*overhead, alone}
	}
	x, cost := fitLinear(rows)
	c = packetCosts{overhead: overhead, latency: x[0], perByte: max(x[1], leastInverse), header: float64(size.header)}
	if free {
		c.header = min(x[2]/c.perByte, float64(min(largestHeader, size.mss/4)))
	}
	if e.split {
		c.overhead = x[len(x)-1]
	}
	return c, cost, nil
}

// packetCandidate is a size of packets that may be that of the machine.
type packetCandidate struct {
	size      packetSize
	free      bool
	criterion float64 // Akaike's
	error     float64 // root mean square, relative
}

// choose selects the payload, and whether the header is estimated: the defaults unless others explain the times better,
// and packets describe them.
func (e *packetEstimate) choose() error {
	times, err := e.at(packetSize{defaultMSS, e.options.Header})
	if err != nil {
		return err
	}
	low, high := math.Inf(1), 0.0
	for _, t := range times {
		low, high = min(low, t.latency), max(high, t.latency)
	}
	e.split = !e.known() && high > 1.05*low
	var all []packetCandidate
	var best, usual packetCandidate
	for _, mss := range payloads {
		for _, free := range []bool{false, true} {
			c := packetCandidate{size: packetSize{mss, e.options.Header}, free: free}
			costs, cost, err := e.solve(e.points, c.size, free, e.overhead)
			if err != nil {
				return err
			}
			n := float64(len(e.points))
			c.error = math.Sqrt(cost / n)
			if c.criterion = n * math.Log(cost/n+resolution*resolution); free {
				c.criterion += 2
			}
			if free && (costs.header < 1 || costs.header >= float64(min(largestHeader, mss/4))) {
				continue // no header explains the times
			}
			if len(all) == 0 || c.criterion < best.criterion {
				best = c
			}
			if mss == defaultMSS && !free {
				usual = c
			}
			all = append(all, c)
		}
	}
	sum := 0.0
	for _, p := range e.points {
		err := At(e.messages, p.Path, p.Bytes)/p.Seconds - 1
		sum += err * err
	}
	described := best.error <= describedShare*math.Sqrt(sum/float64(len(e.points)))+describedMore
	if usual.criterion-best.criterion <= leastGain || !described {
		best = usual
	}
	e.size, e.free = best.size, best.free
	p := exactly(float64(best.size.mss), "B")
	for _, c := range all {
		if c.criterion < best.criterion+leastGain || !described {
			p = p.hull(float64(c.size.mss), float64(c.size.mss))
		}
	}
	e.file.set("mss", p)
	return nil
}

// Refinements of the parameters by simulations, and the relative change of a time at which they end.
const (
	simulations = 4
	settled     = 1e-4
)

// refineBySimulation estimates the parameters with the parts of times that only simulations have.
func (e *packetEstimate) refineBySimulation() (err error) {
	for range simulations {
		if e.found, _, err = e.solve(e.points, e.size, e.free, e.overhead); err != nil {
			return err
		}
		before := e.ratio
		if e.ratio, err = e.simulate(); err != nil {
			return err
		}
		change := 0.0
		for i, r := range e.ratio {
			if before != nil {
				r /= before[i]
			}
			change = max(change, math.Abs(r-1))
		}
		if change <= settled {
			return nil
		}
	}
	return nil
}

// simulate returns the simulated times of the points relative to those of their packets alone.
func (e *packetEstimate) simulate() ([]float64, error) {
	c := e.found
	e.file.set("o", exactly(c.overhead, "s"))
	e.file.set("latency_factor", exactly(c.latency, "1"))
	e.file.set("bandwidth_factor", exactly(1/c.perByte, "1"))
	e.file.set("header_size", exactly(math.Round(c.header), "B"))
	ratio := make([]float64, len(e.points))
	for path, where := range e.paths {
		var sizes []int64
		for _, p := range e.points {
			if p.Path == path {
				sizes = append(sizes, p.Bytes)
			}
		}
		slices.Sort(sizes)
		sizes = slices.Compact(sizes)
		seconds, err := e.options.Simulate(e.file, where, sizes)
		if err != nil {
			return nil, err
		}
		for i, p := range e.points {
			if p.Path == path {
				k, _ := slices.BinarySearch(sizes, p.Bytes)
				alone, err := e.alone(path, p.Bytes)
				if err != nil {
					return nil, err
				}
				ratio[i] = seconds[k] / alone
			}
		}
	}
	return ratio, nil
}

// alone returns the time of a message with the parameters found, without what only simulations have.
func (e *packetEstimate) alone(path int, bytes int64) (float64, error) {
	latency, transfer, err := e.options.Alone(e.paths[path], bytes, e.size.mss, int64(math.Round(e.found.header)))
	return 2*e.found.overhead + latency*e.found.latency + transfer*e.found.perByte, err
}

// predict returns the time of a message: that of its packets, with what simulations add to the largest measured size
// below.
func (e *packetEstimate) predict(path int, bytes int64) float64 {
	ratio, at := 1.0, int64(-1)
	for i, p := range e.points {
		if p.Path == path && p.Bytes <= bytes && p.Bytes > at {
			ratio, at = e.ratio[i], p.Bytes
		}
	}
	alone, err := e.alone(path, bytes)
	if err != nil {
		return math.NaN()
	}
	return alone * ratio
}

// bootstrap computes 95 % intervals by drawing errors of the fit again.
func (e *packetEstimate) bootstrap() error {
	predicted, errs := make([]float64, len(e.points)), make([]float64, len(e.points))
	unknowns := 2
	for _, is := range []bool{e.free, e.split} {
		if is {
			unknowns++
		}
	}
	scale := enlargement(len(e.points), len(e.points)-unknowns)
	for i, p := range e.points {
		predicted[i] = e.predict(p.Path, p.Bytes)
		errs[i] = scale * (p.Seconds/predicted[i] - 1)
	}
	send, recv := newResampler(e.sendAt, e.send), newResampler(e.recvAt, e.recv)
	points := slices.Clone(e.points)
	all := make([]packetCosts, e.draws)
	for k := range all {
		for i, seconds := range predicted {
			points[i].Seconds = redraw(seconds, errs, e.random)
		}
		var err error
		overhead := overheadOf(send.draw(e.random), recv.draw(e.random))
		if all[k], _, err = e.solve(points, e.size, e.free, overhead); err != nil {
			return err
		}
	}
	column := make([]float64, e.draws)
	for name, of := range map[string]func(packetCosts) float64{
		"o":                func(c packetCosts) float64 { return c.overhead },
		"latency_factor":   func(c packetCosts) float64 { return c.latency },
		"bandwidth_factor": func(c packetCosts) float64 { return 1 / c.perByte },
		"header_size":      func(c packetCosts) float64 { return math.Round(c.header) },
	} {
		for k, c := range all {
			column[k] = of(c)
		}
		e.file.set(name, e.file.Parameters[name].hull(interval(column)))
	}
	return nil
}

// describe adds residuals and what the tables do not determine.
func (e *packetEstimate) describe() {
	smallest := math.Inf(1)
	for _, t := range e.times[e.size] {
		smallest = min(smallest, e.found.latency*t.latency)
	}
	widen := func(name string, high float64) { e.file.set(name, e.file.Parameters[name].hull(0, high)) }
	switch {
	case !e.known() && !e.split:
		widen("o", smallest/2)
		widen("latency_factor", 0)
		e.file.Remark("o and the latency of links are not determined apart: the tables have only their sum; o = 0 is " +
			"assumed, and the intervals reach from 0 to the sum. send_call and recv_late separate them, or " +
			"ping-pongs of several distances")
	case !e.known():
		e.file.Remark("o is estimated from the distances of ping-pongs alone: the tables have no times in calls " +
			"(send_call, recv_late)")
	case e.send == nil || e.recv == nil:
		e.file.Remark("o is known at one end only: the tables have no times in sends (send_call) or none in late " +
			"receives (recv_late); the other end is assumed to be equal")
	}
	for _, list := range [][]Segment{e.send, e.recv} {
		if len(list) > 1 || len(list) > 0 && list[0].PerByte > 0 {
			e.file.Remark("times in calls depend on the size, which the backend does not model: o is that of the " +
				"smallest message")
			break
		}
	}
	if p := e.file.Parameters["mss"]; p.Low < p.High {
		e.file.Remark("mss is not determined: payloads from %.0f to %.0f bytes explain the ping-pongs about as well, "+
			"or none explains them; %.0f is assumed", p.Low, p.High, p.Value)
	}
	if !e.free {
		widen("header_size", float64(min(largestHeader, e.size.mss/4)))
		e.file.Remark("header_size is not determined: no other header explains the ping-pongs better; %d bytes are "+
			"assumed", e.size.header)
	}
	e.residuals(e.predict)
	e.coarse("the backend has one set of parameters for all sizes")
}
