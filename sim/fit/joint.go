package fit

import (
	"math"
	"slices"
)

// Functions of the size whose segments a joint estimate divides, each on its own.
const (
	ofNetwork = iota // latency factor, and 1 / bandwidth factor
	ofSend           // os, and os per byte
	ofReceive        // or, and or per byte
	functions
)

// shape is a division into segments: the first sizes of the segments but the first ones, as indexes of sizes.
type shape struct {
	cuts     [functions][]int
	detached int      // the first size whose messages have neither os nor or; the number of sizes: none
	known    *Factors // nil: fitted
}

// clone returns a copy that has its own cuts.
func (s shape) clone() shape {
	for i := range s.cuts {
		s.cuts[i] = slices.Clone(s.cuts[i])
	}
	return s
}

// segment returns the segment of a function that a size is in.
func (s *shape) segment(function, at int) int {
	i, found := slices.BinarySearch(s.cuts[function], at)
	if found {
		i++
	}
	return i
}

// jointRow is a measurement as a linear model of both parameters of each function at its size.
type jointRow struct {
	kind     int // rowsOf...
	path     int
	at       int // index of the size, or of the next smaller one
	bytes    int64
	columns  [2 * functions]float64
	value    float64
	seconds  float64 // measured
	scale    float64 // to which errors are relative
	measured Measurement
}

// Kinds of measurements of a joint estimate.
const (
	rowsOfPingPong = iota
	rowsOfSend
	rowsOfReceive
	rowsOfShared // windows and exchanges, by simulation
	rowKinds
)

// joint estimates all parameters at once: by least squares of the relative errors of ping-pongs, calls, and windows and
// exchanges of pairs, whose simulated times it takes as linear about an estimate.
type joint struct {
	e     *flowEstimate
	sizes []int64 // of ping-pongs, ascending
	rows  []jointRow
	least int // range of detached in shapes
	most  int
	about *jointEstimate // about which times are linear
}

// jointEstimate is a solution for a shape.
type jointEstimate struct {
	shape
	values    [functions][][2]float64 // by segment
	cost      float64                 // sum of Huber's function of the relative errors
	criterion float64
}

// at returns both parameters of a function at a size.
func (s *jointEstimate) at(function, at int) [2]float64 {
	return s.values[function][s.segment(function, at)]
}

// foreign is the number by which the errors of windows and exchanges count less than others: they are single times, and
// messages of a barrier before them may take part of their links.
const foreign = 4

// newJoint returns the measurements of an estimate. Those with several messages at once are without columns; linearize
// adds them.
func newJoint(e *flowEstimate) *joint {
	j := &joint{e: e}
	for _, p := range e.points {
		j.sizes = append(j.sizes, p.Bytes)
	}
	slices.Sort(j.sizes)
	j.sizes = slices.Compact(j.sizes)
	add := func(kind int, p Point, columns [2 * functions]float64) {
		j.rows = append(j.rows, jointRow{kind: kind, path: p.Path, at: j.index(p.Bytes), bytes: p.Bytes,
			columns: columns, value: p.Seconds, seconds: p.Seconds, scale: p.Seconds})
	}
	for _, p := range e.points {
		r, s := e.routes[p.Path], float64(p.Bytes)
		add(rowsOfPingPong, p, [2 * functions]float64{r.Latency, float64(p.Bytes+e.options.Envelope) / r.Rate, 1, s, 1,
			s})
	}
	for _, p := range e.sendAt {
		add(rowsOfSend, p, [2 * functions]float64{2 * ofSend: 1, 2*ofSend + 1: float64(p.Bytes)})
	}
	for _, p := range e.recvAt {
		add(rowsOfReceive, p, [2 * functions]float64{2 * ofReceive: 1, 2*ofReceive + 1: float64(p.Bytes)})
	}
	known := map[Measurement]bool{}
	for _, t := range e.tables {
		for _, m := range t.Rows {
			m.Line = 0
			if (m.Test != Exchange && (m.Test != Window || m.Window < 2)) || m.Bytes >= int64(e.bracketed.Low) ||
				known[m] {
				continue
			}
			known[m] = true
			j.rows = append(j.rows, jointRow{kind: rowsOfShared, at: j.index(m.Bytes), bytes: m.Bytes,
				seconds: m.Seconds, measured: m, scale: foreign * max(m.Seconds, e.shortest(m.Bytes))})
		}
	}
	j.least, j.most = len(j.sizes), len(j.sizes)
	for i, bytes := range slices.Backward(j.sizes) {
		if float64(bytes) >= e.bracketed.Low {
			j.least = i
		}
		if float64(bytes) >= e.bracketed.High {
			j.most = i
		}
	}
	return j
}

// index returns the index of a size, or of the next smaller one.
func (j *joint) index(bytes int64) int {
	i, found := slices.BinarySearch(j.sizes, bytes)
	if !found {
		i--
	}
	return max(i, 0)
}

// shape returns the division of the present estimate.
func (j *joint) shape() shape {
	s := shape{}
	s.detached, _ = slices.BinarySearch(j.sizes, j.e.detached)
	s.detached = min(max(s.detached, j.least), j.most)
	cut := func(function int, least int64) {
		if i, _ := slices.BinarySearch(j.sizes, least); i > 0 && i < len(j.sizes) {
			s.cuts[function] = append(s.cuts[function], i)
		}
	}
	for _, above := range j.e.chosen.From[1:] {
		cut(ofNetwork, above+1-j.e.options.Envelope)
	}
	for _, segment := range j.e.send {
		cut(ofSend, segment.From)
	}
	for _, segment := range j.e.recv {
		cut(ofReceive, segment.From)
	}
	for function := range s.cuts {
		slices.Sort(s.cuts[function])
		s.cuts[function] = slices.Compact(s.cuts[function])
	}
	return s
}

// with returns the division of a shape with a known table of factors.
func (s shape) with(known *Factors) shape {
	s = s.clone()
	s.known, s.cuts[ofNetwork] = known, nil
	return s
}

// detach returns the shape with another detached.
func (s shape) detach(to int) shape {
	s = s.clone()
	s.detached = to
	for _, function := range []int{ofSend, ofReceive} {
		s.cuts[function] = slices.DeleteFunc(s.cuts[function], func(at int) bool { return at >= to })
	}
	return s
}

// Shares of the diagonal that are added to normal equations: ridge divides what only a sum is known of, and leastRidge
// shows it.
const (
	ridge      = 1e-8
	leastRidge = 1e-12
)

// unknowns returns the number of unknowns and the first one of each function; -1 for known factors.
func (s *shape) unknowns() (n int, first [functions]int) {
	for function := range s.cuts {
		if first[function] = n; function == ofNetwork && s.known != nil {
			first[function] = -1
			continue
		}
		n += 2 * (len(s.cuts[function]) + 1)
	}
	return n, first
}

// reduced returns the places of the unknowns of a row, their coefficients, and the value that these have to give.
func (j *joint) reduced(s *shape, first [functions]int, r *jointRow, places *[2 * functions]int,
	coefficients *[2 * functions]float64) (n int, value float64) {
	value = r.value
	for function := range functions {
		a, b := r.columns[2*function], r.columns[2*function+1]
		if a == 0 && b == 0 || function != ofNetwork && r.kind == rowsOfPingPong && r.at >= s.detached {
			continue
		}
		if first[function] < 0 {
			latency, bandwidth := s.known.at(r.bytes + j.e.options.Envelope)
			value -= a*latency + b/bandwidth
			continue
		}
		places[n] = first[function] + 2*s.segment(function, r.at)
		places[n+1] = places[n] + 1
		coefficients[n], coefficients[n+1] = a, b
		n += 2
	}
	return n, value
}

// normal returns the normal equations of a shape with weights of rows; nil: equal ones.
func (j *joint) normal(s *shape, weights []float64, ridge float64) (a [][]float64, b []float64) {
	n, first := s.unknowns()
	a, b = make([][]float64, n), make([]float64, n)
	entries := make([]float64, n*n)
	for i := range a {
		a[i] = entries[i*n : (i+1)*n]
	}
	var places [2 * functions]int
	var coefficients [2 * functions]float64
	for i := range j.rows {
		r := &j.rows[i]
		k, value := j.reduced(s, first, r, &places, &coefficients)
		w := 1 / (r.scale * r.scale)
		if weights != nil {
			w *= weights[i]
		}
		for u := range k {
			row := a[places[u]]
			b[places[u]] += w * coefficients[u] * value
			for v := range k {
				row[places[v]] += w * coefficients[u] * coefficients[v]
			}
		}
	}
	for i := range a {
		if a[i][i] *= 1 + ridge; a[i][i] == 0 {
			a[i][i] = 1 // nothing depends on it
		}
	}
	j.addProportion(s, first, a)
	return a, b
}

// proportion is the relative error that counts as much as slopes of os and or that are not in proportion to their
// times, if both have a segment of the same sizes.
const proportion = 1e3

// addProportion adds equations for slopes in proportion to normal equations: calls of one size show the sum of slopes.
func (j *joint) addProportion(s *shape, first [functions]int, a [][]float64) {
	if j.about == nil {
		return
	}
	send, receive := s.cuts[ofSend], s.cuts[ofReceive]
	for k := range len(send) + 1 {
		var from int
		if k > 0 {
			from = send[k-1]
		}
		to := s.detached
		if k < len(send) {
			to = send[k]
		}
		l := s.segment(ofReceive, from)
		if l > 0 && receive[l-1] != from || l == 0 && from > 0 || l < len(receive) && receive[l] != to ||
			l == len(receive) && to != s.detached || to <= from {
			continue
		}
		at := (from + to) / 2
		bytes := float64(j.sizes[at])
		x, y := j.about.at(ofSend, at), j.about.at(ofReceive, at)
		here, there := x[0]+x[1]*bytes, y[0]+y[1]*bytes
		if !(here > 0 && there > 0) {
			continue
		}
		p, q := first[ofSend]+2*k+1, first[ofReceive]+2*l+1
		u, v := bytes/here/proportion, bytes/there/proportion
		a[p][p] += u * u
		a[q][q] += v * v
		a[p][q] -= u * v
		a[q][p] -= u * v
	}
}

// solve returns the estimate of a shape with the least errors.
func (j *joint) solve(s shape) *jointEstimate {
	n, first := s.unknowns()
	weights := make([]float64, len(j.rows))
	for i := range weights {
		weights[i] = 1
	}
	result := &jointEstimate{shape: s}
	free := make([]bool, n)
	for i := range free {
		free[i] = true
	}
	for round := range rounds {
		a, b := j.normal(&s, weights, ridge)
		x := solveFree(a, b, free, dependent)
		if x == nil || slices.Min(x) < 0 {
			x = nonNegative(a, b)
		}
		for function := range functions {
			result.values[function] = nil
			if first[function] < 0 {
				continue
			}
			for k := range len(s.cuts[function]) + 1 {
				at := first[function] + 2*k
				v := [2]float64{x[at], x[at+1]}
				if function == ofNetwork {
					v[1] = min(max(v[1], leastInverse), mostInverse)
				}
				result.values[function] = append(result.values[function], v)
			}
		}
		before := result.cost
		if j.evaluate(result, weights); round > 0 && result.cost >= before*(1-1e-3) {
			break
		}
	}
	return result
}

// floor is the error that counts as none in the criterion of a joint estimate.
const floor = 2e-4

// evaluate sets the cost and the criterion of an estimate, and Huber's weights of the rows. It returns their mean
// errors by kind, and the largest one of those with several messages at once, relative to a ping-pong if that is
// longer: the last steps of the benchmark before them move the times of exchanges that do not wait for a message.
func (j *joint) evaluate(s *jointEstimate, weights []float64) (mean [rowKinds]float64, worst float64) {
	var count [rowKinds]float64
	s.cost = 0
	for i := range j.rows {
		r := &j.rows[i]
		err := math.Abs(j.predict(s, r)-r.value) / r.scale
		mean[r.kind] += err
		count[r.kind]++
		if r.kind == rowsOfShared {
			worst = max(worst, foreign*err)
		}
		weight := 1.0
		if err <= huber {
			s.cost += err * err
		} else {
			s.cost += 2*huber*err - huber*huber
			weight = huber / err
		}
		if weights != nil {
			weights[i] = weight
		}
	}
	for kind, n := range count {
		mean[kind] /= max(n, 1)
	}
	mean[rowsOfShared] *= foreign
	parameters := 0.0
	for function, cuts := range s.cuts {
		if function != ofNetwork || s.known == nil {
			parameters += float64(3*len(cuts) + 2)
		}
	}
	rows := float64(len(j.rows))
	s.criterion = rows*math.Log(s.cost/max(rows-parameters, 1)+floor*floor) + parameters*math.Log(rows)
	return mean, worst
}

// predict returns what an estimate gives for the value of a row.
func (j *joint) predict(s *jointEstimate, r *jointRow) (value float64) {
	for function := range functions {
		a, b := r.columns[2*function], r.columns[2*function+1]
		if a == 0 && b == 0 || function != ofNetwork && r.kind == rowsOfPingPong && r.at >= s.detached {
			continue
		}
		if function == ofNetwork && s.known != nil {
			latency, bandwidth := s.known.at(r.bytes + j.e.options.Envelope)
			value += a*latency + b/bandwidth
			continue
		}
		v := s.at(function, r.at)
		value += a*v[0] + b*v[1]
	}
	return value
}

// search improves the division of an estimate step by step: it adds, removes or moves cuts and detached as long as the
// Bayesian information criterion becomes smaller.
func (j *joint) search(best *jointEstimate) *jointEstimate {
	for range 4 * maxSegments {
		before := best
		for _, steps := range []func(*shape) []shape{j.neighbors, j.replacements} {
			for _, s := range steps(&before.shape) {
				if other := j.solve(s); other.criterion < best.criterion-leastCriterion/2 {
					best = other
				}
			}
			if best != before {
				break
			}
		}
		if best == before {
			break
		}
	}
	return best
}

// near is the number of sizes between two cuts that may stand for another one.
const near = 4

// replacements returns the shapes in which two cuts near each other, of any functions, are missing or replaced by one.
func (j *joint) replacements(s *shape) (all []shape) {
	type cut struct{ function, at int }
	var cuts []cut
	for function, list := range s.cuts {
		for _, at := range list {
			cuts = append(cuts, cut{function, at})
		}
	}
	for i, a := range cuts {
		for _, b := range cuts[i+1:] {
			low, high := min(a.at, b.at), max(a.at, b.at)
			if high-low > near {
				continue
			}
			without := s.clone()
			for _, c := range []cut{a, b} {
				without.cuts[c.function] = slices.DeleteFunc(without.cuts[c.function], func(at int) bool {
					return at == c.at
				})
			}
			all = append(all, without)
			for at := max(low-2, 1); at <= min(high+2, len(j.sizes)-1); at++ {
				all = append(all, j.additions(&without, at)...)
			}
		}
	}
	return all
}

// additions returns the shapes with a cut more at a place, of one function or of several.
func (j *joint) additions(s *shape, at int) (all []shape) {
	for set := 1; set < 1<<functions; set++ {
		other, possible := s.clone(), true
		for function, cuts := range s.cuts {
			if set>>function&1 == 0 {
				continue
			}
			if slices.Contains(cuts, at) || len(cuts)+1 >= maxSegments || function == ofNetwork && s.known != nil ||
				function != ofNetwork && at >= s.detached {
				possible = false
				break
			}
			other.cuts[function] = append(other.cuts[function], at)
			slices.Sort(other.cuts[function])
		}
		if possible {
			all = append(all, other)
		}
	}
	return all
}

// mostPlaces is the number of places of a new cut from which these are not next to each other.
const mostPlaces = 64

// neighbors returns the shapes that differ by a step.
func (j *joint) neighbors(s *shape) (all []shape) {
	stride := 1 + (len(j.sizes)-1)/mostPlaces
	add := func(change func(other *shape)) {
		other := s.clone()
		change(&other)
		for function := range other.cuts {
			slices.Sort(other.cuts[function])
		}
		all = append(all, other)
	}
	for function, cuts := range s.cuts {
		for i, at := range cuts {
			add(func(o *shape) { o.cuts[function] = slices.Delete(o.cuts[function], i, i+1) })
			for _, to := range []int{at - stride, at - 2, at - 1, at + 1, at + 2, at + stride} {
				if to > 0 && to < len(j.sizes) && !slices.Contains(cuts, to) {
					add(func(o *shape) { o.cuts[function][i] = to })
				}
			}
		}
	}
	for at := 1; at < len(j.sizes); at += stride {
		all = append(all, j.additions(s, at)...)
	}
	for to := j.least; to <= j.most; to++ {
		if to != s.detached {
			all = append(all, s.detach(to))
		}
	}
	return all
}

// apply returns the estimation with the parameters of a joint estimate.
func (j *joint) apply(s *jointEstimate) *flowEstimate {
	e := *j.e
	before := func(at int) int64 { return j.sizes[at-1] }
	e.detached = j.e.detached
	if at := s.detached; at < len(j.sizes) && at > 0 {
		e.detached = Cut(before(at), j.sizes[at])
	}
	if s.known != nil {
		e.chosen = *s.known
	} else {
		e.chosen = Factors{}
		for k, v := range s.values[ofNetwork] {
			from := int64(0)
			if k > 0 {
				at := s.cuts[ofNetwork][k-1]
				from = e.travelling(Cut(before(at), j.sizes[at]))
			}
			e.chosen.From = append(e.chosen.From, from)
			e.chosen.Latency = append(e.chosen.Latency, v[0])
			e.chosen.Bandwidth = append(e.chosen.Bandwidth, 1/min(max(v[1], leastInverse), mostInverse))
		}
	}
	for function, list := range map[int]*[]Segment{ofSend: &e.send, ofReceive: &e.recv} {
		*list = nil
		for k, v := range s.values[function] {
			segment := Segment{Start: []float64{v[0]}, PerByte: v[1], Least: j.sizes[0], To: math.MaxInt64}
			if k > 0 {
				at := s.cuts[function][k-1]
				segment.CutAfter, segment.Least = before(at), j.sizes[at]
				segment.From = beginning(before(at), j.sizes[at])
				(*list)[k-1].To = segment.From
			}
			*list = append(*list, segment)
		}
	}
	return &e
}

// present returns the parameters of the estimation so far as a joint estimate, for a shape of it.
func (j *joint) present(s shape) *jointEstimate {
	result := &jointEstimate{shape: s}
	first := func(function, k int) int64 {
		if k == 0 {
			return j.sizes[0]
		}
		return j.sizes[s.cuts[function][k-1]]
	}
	for k := range len(s.cuts[ofNetwork]) + 1 {
		latency, bandwidth := j.e.chosen.at(first(ofNetwork, k) + j.e.options.Envelope)
		result.values[ofNetwork] = append(result.values[ofNetwork], [2]float64{latency, 1 / bandwidth})
	}
	for function, list := range map[int][]Segment{ofSend: j.e.send, ofReceive: j.e.recv} {
		for k := range len(s.cuts[function]) + 1 {
			v := segmentAt(list, first(function, k))
			result.values[function] = append(result.values[function], [2]float64{v.Start[0], v.PerByte})
		}
	}
	return result
}

// step is the relative change of a parameter with which simulated times are taken as linear; see longer.
const step = 0.01

// linearize predicts the measurements with several messages at once by the parameters of an estimate, and sets the
// columns of their rows. It drops those that the backend cannot predict.
func (j *joint) linearize(s *jointEstimate) error {
	var measured []Measurement
	for _, r := range j.rows {
		if r.kind == rowsOfShared {
			measured = append(measured, r.measured)
		}
	}
	e := j.apply(s)
	j.about = s
	more := step * j.e.shortest(j.sizes[0]) // of or, in seconds
	var times [4][]float64
	for i, change := range []func(p map[string]Parameter){
		func(map[string]Parameter) {},
		func(p map[string]Parameter) {
			p["latency_factor"] = exactly(longer(p["latency_factor"].Value), "1")
		},
		func(p map[string]Parameter) {
			p["bandwidth_factor"] = exactly(1/longer(1/p["bandwidth_factor"].Value), "1")
		},
		func(p map[string]Parameter) { p["or"] = exactly(p["or"].Value+more, "s") },
	} {
		f := e.plain()
		for _, segment := range f.Segments {
			change(segment.Parameters)
		}
		var err error
		if times[i], err = j.e.options.Simulate(f, measured); err != nil {
			return err
		}
	}
	rows, k := j.rows[:0], 0
	for _, r := range j.rows {
		if r.kind == rowsOfShared {
			took, slower, narrower, busier := times[0][k], times[1][k], times[2][k], times[3][k]
			if k++; math.IsNaN(took + slower + narrower + busier) {
				continue
			}
			latency, bandwidth := e.chosen.at(r.bytes + e.options.Envelope)
			receive := s.at(ofReceive, r.at)
			r.value = r.seconds - took
			r.columns = [2 * functions]float64{}
			r.columns[0] = (slower - took) / (longer(latency) - latency)
			r.columns[1] = (narrower - took) / (longer(1/bandwidth) - 1/bandwidth)
			each := (busier - took) / more
			r.columns[2*ofReceive], r.columns[2*ofReceive+1] = each, each*float64(r.bytes)
			r.value += r.columns[0]*latency + r.columns[1]/bandwidth + each*(receive[0]+receive[1]*float64(r.bytes))
		}
		rows = append(rows, r)
	}
	j.rows = rows
	return nil
}

// longer returns a larger factor of latency, or of the time per byte, also of one that is 0.
func longer(factor float64) float64 { return factor + step*(1+factor) }

// plain returns the parameters of the estimation as a file, without intervals.
func (e *flowEstimate) plain() *File {
	f := &File{Backend: e.file.Backend, Model: "smpi", Topology: e.file.Topology, Parameters: map[string]Parameter{}}
	if e.chosen.Model != "" {
		f.Model = e.chosen.Model
	}
	f.Parameters["async_small"] = exactly(float64(e.async), "B")
	f.Parameters["detached"] = exactly(float64(e.detached), "B")
	f.Parameters["envelope"] = exactly(float64(e.options.Envelope), "B")
	bounds := e.bounds()
	for i, at := range bounds {
		latency, bandwidth := e.chosen.at(at + e.options.Envelope)
		s := FileSegment{From: at, Parameters: map[string]Parameter{"latency_factor": exactly(latency, "1"),
			"bandwidth_factor": exactly(bandwidth, "1")}}
		if i+1 < len(bounds) {
			s.To = bounds[i+1]
		}
		for name, list := range e.calling() {
			v := segmentAt(list, at)
			s.Parameters[name] = exactly(v.Start[0], "s")
			s.Parameters[name+"_per_byte"] = exactly(v.PerByte, "s/B")
		}
		f.Segments = append(f.Segments, s)
	}
	return f
}

// calling returns the segments of the times in calls by name.
func (e *flowEstimate) calling() map[string][]Segment {
	lists := map[string][]Segment{"os": e.send, "or": e.recv, "ois": e.nonBlocking}
	if e.nonBlocking == nil {
		lists["ois"] = e.send
	}
	return lists
}

// A joint estimate is made about the one before: firstRounds times without a search, then up to jointRounds times, as
// long as it becomes better.
const (
	firstRounds = 2
	jointRounds = 6
)

// estimateJointly replaces the estimate by one of all measurements at once if windows and exchanges of pairs show that
// it is wrong, and if that one has smaller errors.
func (e *flowEstimate) estimateJointly() error {
	if e.options.Simulate == nil {
		return nil
	}
	j := newJoint(e)
	if !slices.ContainsFunc(j.rows, func(r jointRow) bool { return r.kind == rowsOfShared }) {
		return nil
	}
	before := j.present(j.shape())
	if err := j.linearize(before); err != nil {
		return err
	}
	c := contest{joint: j, before: before, best: before, start: before}
	var worst float64
	c.old, worst = j.evaluate(before, nil)
	_, c.worstPingPong = e.errors(&e.chosen)
	wrong := worst > exact && c.old[rowsOfShared] > leastGained
	// A machine without noise has no ping-pong that is far off.
	if !wrong && (c.worstPingPong <= exact || c.old[rowsOfPingPong] > noiseless) {
		return nil
	}
	for range firstRounds { // times are linear only near an estimate
		c.start = j.solve(c.start.shape)
		if err := j.linearize(c.start); err != nil {
			return err
		}
	}
	c.first = slices.Clone(j.rows)
	c.bestRows = c.first
	for i := range e.options.Models {
		if err := c.try(&e.options.Models[i]); err != nil {
			return err
		}
	}
	if err := c.try(nil); err != nil {
		return err
	}
	if c.best == before {
		return nil
	}
	for _, improve := range []func() error{c.renew, c.smooth} {
		if err := improve(); err != nil {
			return err
		}
	}
	j.rows = c.bestRows
	j.take(c.best)
	if c.best.known != nil {
		mean, _ := j.evaluate(c.best, nil)
		e.explained(mean[rowsOfPingPong], c.free)
	}
	return nil
}

// contest compares joint estimates with the estimate before.
type contest struct {
	*joint
	before        *jointEstimate
	old           [rowKinds]float64 // mean errors of before
	worstPingPong float64           // largest error of before
	start         *jointEstimate    // from which searches begin
	first         []jointRow        // about start
	best          *jointEstimate
	bestRows      []jointRow // about best
	free          float64    // mean error of ping-pongs with fitted factors; 0: unknown
}

// try searches an estimate with a known table of factors, or with fitted ones if that is nil, and keeps it if it is the
// best one.
func (c *contest) try(known *Factors) error {
	j := c.joint
	j.rows, j.about = slices.Clone(c.first), c.start
	s := c.start.shape
	if known != nil {
		s = s.with(known)
	}
	next, last := j.search(j.solve(s)), math.Inf(1)
	rms := math.Sqrt(next.cost / float64(len(j.rows)))
	// A search ends where no step helps. Errors that are neither none nor noise, and uneven factors, need others.
	explained := c.best != c.before && c.best.cost <= 4*floor*floor*float64(len(j.rows))
	if !explained && rms < exact && (rms > 2*floor || next.uneven()) {
		next = j.widen(next, s)
	}
	for range jointRounds {
		if next.criterion > c.best.criterion+hopeless {
			if mean, _ := j.evaluate(next, nil); known == nil && c.free == 0 {
				c.free = mean[rowsOfPingPong]
			}
			break
		}
		if err := j.linearize(next); err != nil {
			return err
		}
		mean, _ := j.evaluate(next, nil)
		if known == nil {
			c.free = mean[rowsOfPingPong]
		}
		if c.isBetter(mean) && next.criterion < c.best.criterion-leastCriterion {
			c.best, c.bestRows = next, slices.Clone(j.rows)
		}
		if next.criterion > last-leastCriterion {
			break
		}
		last = next.criterion
		next = j.again(next)
	}
	return nil
}

// isBetter reports whether mean errors are smaller than those of the estimate before.
func (c *contest) isBetter(mean [rowKinds]float64) bool {
	shared, pingPong := c.old[rowsOfShared], c.old[rowsOfPingPong]
	return mean[rowsOfShared] <= min(leastShare*shared, shared-leastGained) &&
		mean[rowsOfPingPong] <= knownShare*pingPong+resolution ||
		c.worstPingPong > exact && mean[rowsOfPingPong] <= leastShare*pingPong &&
			mean[rowsOfShared] <= knownShare*shared+resolution
}

// renew solves the best shape again: the proportions of slopes are those of the estimate before, which may have had
// other segments.
func (c *contest) renew() error {
	c.rows, c.about = c.bestRows, c.best
	same := c.solve(c.best.shape)
	if err := c.linearize(same); err != nil {
		return err
	}
	if c.evaluate(same, nil); same.criterion < c.best.criterion+leastCriterion {
		c.best, c.bestRows = same, c.rows
	}
	return nil
}

// smooth removes cuts of the network at segments whose factors are far outside the range of their neighbors', if the
// criterion becomes smaller. Such factors are wrong where a segment has one size, whose latency and bandwidth make up
// for each other. A search keeps them: it takes windows as linear about a bandwidth that does not limit them.
func (c *contest) smooth() error {
	for changed := true; changed; {
		changed = false
		best, rows := c.best, c.bestRows
		for k := range best.values[ofNetwork] {
			if !best.odd(k) {
				continue
			}
			for _, cut := range []int{k - 1, k} {
				s := best.shape.clone()
				s.cuts[ofNetwork] = slices.Delete(s.cuts[ofNetwork], cut, cut+1)
				c.rows, c.about = slices.Clone(rows), best
				next := best
				for range firstRounds {
					next = c.solve(s)
					if err := c.linearize(next); err != nil {
						return err
					}
				}
				if c.evaluate(next, nil); next.criterion < c.best.criterion-leastCriterion {
					c.best, c.bestRows, changed = next, c.rows, true
				}
			}
		}
	}
	return nil
}

// odd reports whether a factor of a segment between others is outside the range of its neighbors' by more than
// oddness.
func (s *jointEstimate) odd(segment int) bool {
	values := s.values[ofNetwork]
	if segment == 0 || segment+1 >= len(values) {
		return false
	}
	for part, v := range values[segment] {
		x, y := values[segment-1][part], values[segment+1][part]
		if v < min(x, y)*(1-oddness) || v > max(x, y)*(1+oddness) {
			return true
		}
	}
	return false
}

// oddness is the relative distance from the factors of the neighbors that is one of a wrong division.
const oddness = 0.1

// widen searches from a shape, from one without cuts, and from one with the cuts of non-blocking calls, where the
// protocol may change: with each size of detached. It returns the best of these estimates and the given one.
func (j *joint) widen(best *jointEstimate, s shape) *jointEstimate {
	plain, calls := shape{known: s.known}, shape{known: s.known}
	list := j.e.nonBlocking
	for _, segment := range list[min(1, len(list)):] {
		if at, _ := slices.BinarySearch(j.sizes, segment.From); at > 0 && at < len(j.sizes) {
			calls.cuts[ofSend] = append(calls.cuts[ofSend], at)
			calls.cuts[ofReceive] = append(calls.cuts[ofReceive], at)
		}
	}
	for to := j.least; to <= j.most; to++ {
		for _, first := range []shape{s, plain, calls} {
			if other := j.search(j.solve(first.detach(to))); other.criterion < best.criterion {
				best = other
			}
		}
	}
	return best
}

// take makes an estimate that of all measurements.
func (j *joint) take(best *jointEstimate) {
	p := j.e.bracketed
	j.about = nil
	if j.least < j.most {
		from, to := best.detached, best.detached
		for at := j.least; at <= j.most; at++ {
			s := best.shape.clone()
			if s.detached = at; j.solve(s).criterion < best.criterion+leastCriterion {
				from, to = min(from, at), max(to, at)
			}
		}
		if from > 0 {
			p.Low = max(p.Low, float64(j.sizes[from-1]+1))
		}
		if to < len(j.sizes) {
			p.High = min(p.High, float64(j.sizes[to]))
		}
	}
	e := j.apply(best)
	p.Value = float64(e.detached)
	e.setDetached(p)
	e.divided, e.summed, e.joined = nil, false, nil
	for _, s := range e.send[1:] {
		e.cutNonBlocking(s.From)
	}
	if e.file.Model, e.known = "smpi", ""; e.chosen.Model != "" {
		e.file.Model = e.chosen.Model
	}
	e.jointly, e.joint = j, best
	*j.e = *e
}

// A joint estimate is better if the mean error of windows and exchanges becomes smaller by leastGained, and by a fifth.
const (
	leastShare  = 0.8
	leastGained = 5e-4
)

// uneven reports whether fitted factors are those of a wrong division: a latency factor becomes smaller with the size,
// or the rate does. Machines may have such factors, but mostly these hide overheads.
func (s *jointEstimate) uneven() bool {
	for k, v := range s.values[ofNetwork] {
		if k > 0 {
			before := s.values[ofNetwork][k-1]
			if v[0] < before[0]*(1-evenness) || v[1] > before[1]*(1+evenness) {
				return true
			}
		}
	}
	return false
}

// evenness is the relative change of a factor that is none.
const evenness = 0.01

// again searches from an estimate without the windows and exchanges that it misses by far: their times may change with
// other parameters at other ones, such as those of a window whose receives take longer than its messages.
func (j *joint) again(s *jointEstimate) *jointEstimate {
	all := j.rows
	defer func() { j.rows = all }()
	j.rows = slices.DeleteFunc(slices.Clone(all), func(r jointRow) bool {
		return r.kind == rowsOfShared && math.Abs(j.predict(s, &r)-r.value) > huber*r.scale
	})
	return j.search(j.solve(s.shape))
}

// hopeless is the difference of criteria from which further rounds do not make an estimate the best one.
const hopeless = 200

// unknownFrom is the ratio of the variance of a parameter to that with all others known from which the measurements do
// not determine it.
const unknownFrom = 1e8

// intervals returns the 95 % intervals of the parameters of a joint estimate, by function and segment, by drawing
// errors of the measurements again, each from those of its kind.
func (j *joint) intervals(s *jointEstimate) (all [functions][][2]Parameter) {
	a, _ := j.normal(&s.shape, nil, leastRidge)
	n, first := s.unknowns()
	inverse, free := make([][]float64, n), make([]bool, n)
	for i := range free {
		free[i] = true
	}
	for i := range inverse {
		unit := make([]float64, n)
		unit[i] = 1
		if inverse[i] = solveFree(a, unit, free, leastRidge/2); inverse[i] == nil {
			inverse[i] = make([]float64, n)
		}
	}
	scale := enlargement(len(j.rows), len(j.rows)-n)
	measured := j.rows
	defer func() { j.rows = measured }()
	j.rows = slices.Clone(measured)
	var errs [rowKinds][]float64 // relative
	for i := range j.rows {
		r := &j.rows[i]
		predicted := j.predict(s, r)
		errs[r.kind] = append(errs[r.kind], scale*(r.value-predicted)/r.seconds)
		r.value = predicted
	}
	predicted := j.rows
	_, b := j.normal(&s.shape, nil, leastRidge)
	drawn := make([][]float64, n) // differences by unknown
	for range j.e.draws {
		j.rows = slices.Clone(predicted)
		for i := range j.rows {
			r := &j.rows[i]
			r.value += r.seconds * errs[r.kind][j.e.random.IntN(len(errs[r.kind]))]
		}
		_, with := j.normal(&s.shape, nil, leastRidge)
		for i, row := range inverse {
			difference := 0.0
			for k, v := range row {
				difference += v * (with[k] - b[k])
			}
			drawn[i] = append(drawn[i], difference)
		}
	}
	for function, segments := range s.values {
		for k, values := range segments {
			var p [2]Parameter
			for part := range p {
				at := first[function] + 2*k + part
				low, high := interval(drawn[at])
				v := values[part]
				p[part] = Parameter{Value: v, Low: max(0, v+min(low, 0)), High: v + max(high, 0)}
				if inverse[at][at]*a[at][at] > unknownFrom {
					p[part] = p[part].hull(0, v+j.other(s, function, k, part))
				}
			}
			all[function] = append(all[function], p)
		}
	}
	return all
}

// other returns by how much a parameter that the measurements do not determine may be larger: by those with which only
// its sum is known.
func (j *joint) other(s *jointEstimate, function, segment, part int) float64 {
	at := 0
	if segment > 0 {
		at = s.cuts[function][segment-1]
	}
	send, receive := s.at(ofSend, at), s.at(ofReceive, at)
	switch {
	case function == ofSend:
		return receive[part]
	case function == ofReceive:
		return send[part]
	case part == 0:
		latency := math.Inf(1)
		for _, r := range j.e.routes {
			latency = min(latency, r.Latency)
		}
		return (send[0] + receive[0]) / latency
	default:
		rate := 0.0
		for _, r := range j.e.routes {
			rate = max(rate, r.Rate)
		}
		return (send[1] + receive[1]) * rate
	}
}

// preferred widens the intervals of os and or where only ping-pongs show that one of them changes: the other one may
// change instead.
func (e *flowEstimate) preferred(s *FileSegment) {
	j, best := e.jointly, e.joint
	for function, list := range map[int][]Segment{ofSend: e.send, ofReceive: e.recv} {
		for k := 1; k < len(list); k++ {
			from, to := best.cuts[function][k-1], len(j.sizes)
			if k < len(best.cuts[function]) {
				to = best.cuts[function][k]
			}
			if s.From < list[k].From || s.From >= list[k].To || slices.ContainsFunc(j.rows, func(r jointRow) bool {
				return r.kind != rowsOfPingPong && r.at >= from && r.at < to
			}) {
				continue
			}
			names := []string{"os", "or"}
			if function == ofReceive {
				names = []string{"or", "os"}
			}
			for suffix, more := range map[string]float64{"": list[k].Start[0] - list[k-1].Start[0],
				"_per_byte": list[k].PerByte - list[k-1].PerByte} {
				for i, name := range names {
					p := s.Parameters[name+suffix]
					v := max(0, p.Value+more*float64(2*i-1))
					s.Parameters[name+suffix] = p.hull(v, v)
				}
			}
		}
	}
}

// jointSegments returns the segments of the file of a joint estimate.
func (e *flowEstimate) jointSegments() (segments []FileSegment) {
	all := e.jointly.intervals(e.joint)
	nonBlocking := newResampler(e.nonBlockingAt, e.nonBlocking)
	var drawn [][]Segment
	for range e.draws {
		drawn = append(drawn, nonBlocking.draw(e.random))
	}
	column := make([]float64, e.draws)
	plain := e.plain().Segments
	for i, s := range plain {
		network, _ := slices.BinarySearch(e.chosen.From, s.From+e.options.Envelope)
		if network = max(network-1, 0); all[ofNetwork] != nil {
			p := all[ofNetwork][network]
			inverse := p[1]
			p[1] = Parameter{Value: 1 / inverse.Value, Low: 1 / inverse.High, High: 1 / max(inverse.Low, leastInverse)}
			for part, name := range []string{"latency_factor", "bandwidth_factor"} {
				s.Parameters[name] = s.Parameters[name].hull(p[part].Low, p[part].High)
			}
		}
		set := func(name string, list []Segment, parameters [][2]Parameter) {
			k := len(list) - 1
			for k > 0 && list[k].From > s.From {
				k--
			}
			for part, name := range []string{name, name + "_per_byte"} {
				s.Parameters[name] = s.Parameters[name].hull(parameters[k][part].Low, parameters[k][part].High)
			}
		}
		set("os", e.send, all[ofSend])
		set("or", e.recv, all[ofReceive])
		if e.nonBlocking == nil {
			set("ois", e.send, all[ofSend])
		} else {
			for part, name := range []string{"ois", "ois_per_byte"} {
				for k, list := range drawn {
					v := segmentAt(list, s.From)
					column[k] = []float64{v.Start[0], v.PerByte}[part]
				}
				low, high := interval(column)
				s.Parameters[name] = s.Parameters[name].hull(max(0, low), high)
			}
		}
		if s.From < e.detached {
			e.preferred(&s)
		}
		plain[i] = s
	}
	return plain
}
