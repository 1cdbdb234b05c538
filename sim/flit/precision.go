// This file measures synthetic traffic until its mean latency is known to a given precision, by batch means, and
// searches for the load at which a network saturates.

package flit

import "math"

// numBatches is the number of batches of a measurement.
const numBatches = 20

// batch is the counts of a part of the measured cycles.
type batch struct {
	packets uint64 // received
	total   uint64 // sum of their latencies in cycles
	flits   uint64 // received
	offered uint64 // flits of generated and of dropped packets
}

func (b *batch) add(c *batch) {
	b.packets += c.packets
	b.total += c.total
	b.flits += c.flits
	b.offered += c.offered
}

// quantiles of Student's t distribution for intervals of 95 %, with 19 and 9 degrees of freedom.
const (
	t19 = 2.093024054408263
	t9  = 2.2621571627409915
)

// Interval is the 95 % confidence interval of the mean packet latency, by batch means: the wider one of those from 20
// batches and from 10, which are wider if the batches are too short to be independent.
type Interval struct {
	HalfWidth float64 `json:"half_width"` // cycles
	Relative  float64 `json:"relative"`   // HalfWidth divided by the mean latency
	Batches   int     `json:"batches"`
	Reached   bool    `json:"reached"` // Relative is at most the requested precision
}

// halfWidth returns the half width of the 95 % confidence interval of the mean of a figure over batches; +Inf if a
// batch has none.
func halfWidth(all *[numBatches]batch, figure func(b *batch) (v float64, ok bool)) float64 {
	var pairs [numBatches / 2]batch
	for i := range all {
		pairs[i/2].add(&all[i])
	}
	return max(width(all[:], t19, figure), width(pairs[:], t9, figure))
}

func width(all []batch, t float64, figure func(b *batch) (v float64, ok bool)) float64 {
	values, sum := make([]float64, len(all)), 0.0
	for i := range all {
		v, ok := figure(&all[i])
		if !ok {
			return math.Inf(1)
		}
		values[i] = v
		sum += v
	}
	n := float64(len(all))
	mean, squares := sum/n, 0.0
	for _, v := range values {
		squares += (v - mean) * (v - mean)
	}
	return t * math.Sqrt(squares/(n-1)/n)
}

// latencyWidth returns the half width of the mean packet latency relative to the mean.
func latencyWidth(r *Report) float64 {
	w := halfWidth(r.batches, func(b *batch) (float64, bool) { return ratio(b.total, b.packets), b.packets > 0 })
	if r.Packet.Mean == 0 {
		return math.Inf(1)
	}
	return w / r.Packet.Mean
}

// deficit returns the share of the offered flits that the network did not accept.
func deficit(r *Report) float64 {
	var all batch
	for i := range r.batches {
		all.add(&r.batches[i])
	}
	if all.offered == 0 {
		return 0
	}
	return 1 - float64(all.flits)/float64(all.offered)
}

// deficitWidth returns the half width of the deficit.
func deficitWidth(r *Report) float64 {
	offered := uint64(0)
	for i := range r.batches {
		offered += r.batches[i].offered
	}
	if offered == 0 {
		return math.Inf(1)
	}
	w := halfWidth(r.batches, func(b *batch) (float64, bool) { return float64(b.offered) - float64(b.flits), true })
	return w / (float64(offered) / numBatches)
}

const (
	fewestPackets = 1000 // expected in the shortest measurement
	mostLonger    = 64   // longest measurement in multiples of the shortest one
	mostCycles    = 1 << 40
)

// measureUntil repeats a run, each time with a longer measurement, until the width of its figure is at most the target.
// So the result is that of a run with as many measured cycles from the start.
func measureUntil(o SyntheticOptions, width func(*Report) float64, target float64) (*Report, error) {
	t := &o.Traffic
	cycles := float64(t.Measure)
	if t.Load > 0 {
		cycles = max(cycles, fewestPackets*float64(o.Params.PacketFlits)/(t.Load*float64(o.Network.Hosts)))
	}
	limit := min(mostLonger*cycles, mostCycles)
	for {
		t.Measure = (uint64(min(cycles, limit)) + numBatches - 1) / numBatches * numBatches
		t.Measure = min(t.Measure, mostCycles/numBatches*numBatches)
		o.batch = t.Measure / numBatches
		r, err := runOnce(&o)
		if err != nil {
			return nil, err
		}
		w := width(r)
		if w <= target || cycles >= limit {
			return r, nil
		}
		o.Progress, o.Warn = nil, nil // which the first run did
		cycles *= min(8, max(1.5, 1.2*(w/target)*(w/target)))
	}
}

// runPrecise measures traffic until the mean latency is known to the precision.
func runPrecise(o *SyntheticOptions) (*Report, error) {
	r, err := measureUntil(*o, latencyWidth, o.Precision)
	if err != nil {
		return nil, err
	}
	r.Interval = intervalOf(r, o.Precision)
	return r, nil
}

// intervalOf returns the interval of the mean latency, nil if it is unknown.
func intervalOf(r *Report, precision float64) *Interval {
	w := latencyWidth(r)
	if math.IsInf(w, 0) {
		return nil
	}
	return &Interval{HalfWidth: w * r.Packet.Mean, Relative: w, Batches: numBatches, Reached: w <= precision}
}

// Saturation is the result of [FindSaturation]. Loads are in flits per cycle and host.
type Saturation struct {
	Load       float64 `json:"load"`       // highest load that the network accepts
	Throughput float64 `json:"throughput"` // accepted load there
	// ZeroLoadLatency is the mean packet latency in cycles at ZeroLoad, a load at which twice the load makes no
	// difference above the precision.
	ZeroLoadLatency  float64   `json:"zero_load_latency"`
	ZeroLoad         float64   `json:"zero_load"`
	ZeroLoadPackets  uint64    `json:"zero_load_packets"`
	ZeroLoadInterval *Interval `json:"zero_load_interval,omitempty"`
	Runs             int       `json:"runs"`      // number of loads that the search tried
	Imprecise        int       `json:"imprecise"` // number of those with an interval that does not decide
}

// FindSaturation searches for the latency without load and for the highest load up to 1 of which a network accepts a
// share of at least 1 - o.Precision, by bisection to the same precision. It returns the report at the latter load. The
// load of o.Traffic is ignored.
func FindSaturation(o SyntheticOptions) (*Saturation, *Report, error) {
	const first, lowest = 0.01, 1e-4
	s := &Saturation{}
	before := math.Inf(1)
	for load := first; ; load /= 2 {
		o.Traffic.Load = load
		r, err := runPrecise(&o)
		if err != nil {
			return nil, nil, err
		}
		s.Runs++
		if r.Interval == nil || !r.Interval.Reached {
			s.Imprecise++
		}
		o.Progress, o.Warn = nil, nil
		s.ZeroLoad, s.ZeroLoadLatency = load, r.Packet.Mean
		s.ZeroLoadPackets, s.ZeroLoadInterval = r.Packets, r.Interval
		if math.Abs(before-r.Packet.Mean) <= o.Precision*r.Packet.Mean || load < lowest {
			break
		}
		before = r.Packet.Mean
	}
	try := func(load float64) (r *Report, saturated bool, err error) {
		s.Runs++
		o.Traffic.Load = load
		undecided := func(r *Report) float64 {
			w := deficitWidth(r)
			if math.Abs(deficit(r)-o.Precision) > w {
				return 0
			}
			return w
		}
		if r, err = measureUntil(o, undecided, o.Precision/2); err != nil {
			return nil, false, err
		}
		if undecided(r) > o.Precision/2 {
			s.Imprecise++
		}
		return r, deficit(r) > o.Precision, nil
	}
	at, saturated, err := try(1)
	if err != nil {
		return nil, nil, err
	}
	low, high := 1.0, 1.0
	if saturated {
		low, at = 0, nil
	}
	for high-low > o.Precision*high && high > lowest {
		load := (low + high) / 2
		r, saturated, err := try(load)
		if err != nil {
			return nil, nil, err
		}
		if saturated {
			high = load
		} else {
			low, at = load, r
		}
	}
	if at == nil { // not even the lowest load
		if at, _, err = try(high); err != nil {
			return nil, nil, err
		}
		low = high
	}
	s.Load, s.Throughput = low, at.Accepted
	at.Interval = intervalOf(at, o.Precision)
	return s, at, nil
}
