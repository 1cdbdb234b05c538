package calibrate

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/tracedag/tracedag/dag"
	"github.com/tracedag/tracedag/sim"
	"github.com/tracedag/tracedag/sim/backends"
	"github.com/tracedag/tracedag/sim/fit"
	"github.com/tracedag/tracedag/sim/flow"
)

// traceRounds is the largest number of simulations of a recording, and settled the largest change of a time between
// two of them behind which there are no more.
const (
	traceRounds = 8
	settled     = 1e-3
)

// maxSimulated is the number of messages of a recording that are simulated: the first ones.
const maxSimulated = 1 << 18

// flowTimes adds ping-pongs, thresholds and times in calls of a recording to a table, for flow. Its ping-pongs are
// those of messages alone between ranks of each distance, although few messages of a program are alone: the messages
// are simulated with the recorded times of the calls that post them, and each recorded time is compared with the
// simulated one. The ratio of both, times that of a message alone, is a sample. The parameters from the samples give
// the next simulation, until the samples do not change.
func flowTimes(ctx context.Context, rec *recording, table *fit.Table, o Options) error {
	route, _, err := flow.Routes(ctx, o.Topology, true)
	if err != nil {
		return err
	}
	f := &traceFlow{ctx: ctx, rec: rec, file: unfitted(), options: fit.FlowOptions{Options: fit.Options{Seed: o.Seed,
		Draws: 1}, Topology: o.Topology, Models: flow.Factors(), Envelope: flow.DefaultEnvelope,
		Route: roundTrips(route)}}
	if err := f.findDistances(); err != nil {
		return err
	}
	var before []fit.Measurement
	f.sizes = rec.representatives()
	var wrong int
	var far dag.Time
	for round := range traceRounds {
		n, by, ok := rec.alignClocks(func(m *message) dag.Time { return ticks(f.alone(m)) / 2 })
		if !ok {
			return fmt.Errorf("expected clocks that agree, found %d of %d messages that end before they are sent, by "+
				"differences that messages in both directions do not determine; give tables of a micro-benchmark", n,
				len(rec.messages))
		}
		if n > 0 {
			wrong, far = n, by
		}
		calls := rec.observe(func(m *message) dag.Time { return ticks(f.alone(m)) })
		rows, remarks := calls.rows(f.sizes)
		f.os, f.ois = overheadOf(rows, fit.SendCall), overheadOf(rows, fit.IsendCall)
		f.or = overheadOf(rows, fit.WaitLate)
		f.detached, f.async, f.remarks = calls.sends.threshold(), calls.receives.threshold(), remarks
		alone, err := f.pingPongs()
		if err == nil {
			err = checkSizes(alone)
		}
		if err != nil {
			return err
		}
		table.Rows = append(alone, rows...)
		if round > 0 && change(before, alone) < settled {
			break
		}
		before = alone
		if f.file, err = fit.Flow([]*fit.Table{table}, f.options); err != nil {
			return err
		}
	}
	if err := f.describe(table); err != nil {
		return err
	}
	if wrong > 0 {
		table.Remark("%d messages end before they are sent: the clocks of ranks are corrected by messages in both "+
			"directions, which leave differences of up to %.3g s", wrong, seconds(far))
	}
	return nil
}

// ticks converts seconds.
func ticks(seconds float64) dag.Time { return dag.Time(math.Round(seconds * float64(dag.Second))) }

// traceFlow estimates the times of messages alone.
type traceFlow struct {
	ctx             context.Context
	rec             *recording
	options         fit.FlowOptions
	file            *fit.File   // parameters of the last round
	names           []string    // of distances: the first two ranks
	routes          []fit.Route // of distances
	os, ois, or     func(bytes int64) float64
	remarks         []string        // about times in calls
	detached, async int64           // first sizes that wait
	sizes           map[int64]int64 // by size: the size that represents it
	used            []sample
	samples, early  int // number of samples, and of calls that end before the message begins
}

// sample is the time of a message alone, as a recorded message has it.
type sample struct {
	distance int32
	bytes    int64
	seconds  float64
	crowding float64 // time of the message over that alone, simulated
	ratio    float64 // of the recorded and the simulated time
}

// unfitted returns parameters with factors of 1.
func unfitted() *fit.File {
	one := fit.Parameter{Value: 1, Low: 1, High: 1, Unit: "1"}
	return &fit.File{Segments: []fit.FileSegment{{Parameters: map[string]fit.Parameter{"latency_factor": one,
		"bandwidth_factor": one}}}}
}

// findDistances finds the distance of each message: messages of routes with the same latency and rate have the same.
func (f *traceFlow) findDistances() error {
	known, byRoute := map[[2]int32]int32{}, map[fit.Route]int32{}
	for i := range f.rec.messages {
		m := &f.rec.messages[i]
		pair := [2]int32{m.from, m.to}
		d, ok := known[pair]
		if !ok {
			name := fmt.Sprintf("%d-%d", m.from, m.to)
			r, err := f.options.Route(name)
			if err != nil {
				return err
			}
			// Sums of latencies in another order differ by their last digits.
			key := fit.Route{Latency: float64(float32(r.Latency)), Rate: float64(float32(r.Rate))}
			if d, ok = byRoute[key]; !ok {
				d = int32(len(f.routes))
				f.routes, f.names, byRoute[key] = append(f.routes, r), append(f.names, name), d
			}
			known[pair] = d
		}
		m.distance = d
	}
	return nil
}

// alone returns the time of a message alone in the network, in seconds, by the parameters of the last round.
func (f *traceFlow) alone(m *message) float64 {
	at := f.file.Segments[0]
	for _, s := range f.file.Segments {
		if m.bytes >= s.From {
			at = s
		}
	}
	r := f.routes[m.distance]
	return r.Latency*at.Parameters["latency_factor"].Value +
		float64(m.bytes+f.options.Envelope)/(r.Rate*at.Parameters["bandwidth_factor"].Value)
}

// overheadOf returns the time in calls of a test: the measured one of a size or, if there is none, that of the
// segment, or of the only size.
func overheadOf(rows []fit.Measurement, test string) func(bytes int64) float64 {
	known, points := map[int64]float64{}, []fit.Point(nil)
	for _, m := range rows {
		if m.Test == test {
			points = append(points, fit.Point{Bytes: m.Bytes, Seconds: max(m.Seconds, 1e-12)})
			known[m.Bytes] = m.Seconds
		}
	}
	segments, err := fit.Split(points)
	return func(bytes int64) float64 {
		t, is := known[bytes]
		switch {
		case is:
		case err == nil:
			t = max(0, fit.At(segments, 0, bytes))
		case len(points) > 0:
			t = points[0].Seconds
		}
		return t
	}
}

// begins returns when a message enters the network, unless it waits for its receive, and when the latter is posted.
func (f *traceFlow) begins(m *message) (left, posted dag.Time) {
	left, posted = m.left, m.posted
	switch {
	case m.call == exchanging:
		left = m.sent + ticks(f.ois(m.bytes))
	case m.call != nonBlocking && (m.bytes >= f.detached || m.call == otherSend):
		left = m.sent
	}
	if m.taking != noCompletion {
		// The receive of MPI_Sendrecv is posted behind the send.
		if c := &f.rec.completions[m.taking]; c.start == m.posted && len(c.requests) == 2 && !c.requests[0].receive {
			posted += ticks(f.ois(f.rec.messages[c.requests[0].message].bytes))
		}
	}
	return left, posted
}

// simulate returns when the messages arrive, in the time of the recording.
func (f *traceFlow) simulate() ([]dag.Time, error) {
	n := min(len(f.rec.messages), maxSimulated)
	ranks := 0
	for i := range f.rec.messages[:n] {
		ranks = max(ranks, int(f.rec.messages[i].from)+1, int(f.rec.messages[i].to)+1)
	}
	b := dag.NewBuilder(ranks)
	for i := range f.rec.messages[:n] {
		m := &f.rec.messages[i]
		left, posted := f.begins(m)
		b.Rank(int(m.from)).Add(dag.Op{Kind: dag.Send, Peer: m.to, Bytes: m.bytes, Tag: int64(i),
			Release: left - f.rec.start})
		b.Rank(int(m.to)).Add(dag.Op{Kind: dag.Recv, Peer: m.from, Bytes: m.bytes, Tag: int64(i),
			Release: posted - f.rec.start})
	}
	if err := b.Err(); err != nil {
		return nil, err
	}
	settings, err := flow.Settings(f.network())
	if err != nil {
		return nil, err
	}
	texts := []string{"topology=" + f.options.Topology}
	for _, s := range settings {
		texts = append(texts, s[0]+"="+s[1])
	}
	trace := b.Trace()
	a := &arrivals{trace: trace, at: make([]dag.Time, n)}
	result, err := backends.Run(trace, flow.Backend.Name, backends.Set(texts...),
		backends.Options(sim.RunOptions{Context: f.ctx, Timeline: a}))
	if err == nil && !result.Complete {
		err = errors.New("expected messages that arrive, found some that wait")
	}
	for i := range a.at {
		a.at[i] += f.rec.start
	}
	return a.at, err
}

// network returns the parameters of the last round without overheads: the simulated messages are posted at the
// times behind them.
func (f *traceFlow) network() *fit.File {
	one := func(v float64, unit string) fit.Parameter {
		return fit.Parameter{Value: v, Low: v, High: v, Unit: unit}
	}
	n := &fit.File{Backend: flow.Backend.Name, Model: cmp.Or(f.file.Model, "smpi")}
	n.Parameters = map[string]fit.Parameter{"detached": one(1<<62, "B"),
		"envelope":    one(float64(f.options.Envelope), "B"),
		"async_small": one(float64(min(f.async, 1<<62)), "B")}
	for _, s := range f.file.Segments {
		n.Segments = append(n.Segments, fit.FileSegment{From: s.From, To: s.To, Parameters: map[string]fit.Parameter{
			"latency_factor":   s.Parameters["latency_factor"],
			"bandwidth_factor": s.Parameters["bandwidth_factor"]}})
	}
	return n
}

// arrivals is a timeline that records when messages arrive.
type arrivals struct {
	trace  *dag.Trace
	layout *sim.Layout
	at     []dag.Time // by tag
}

func (a *arrivals) Begin(l *sim.Layout) { a.layout = l }
func (a *arrivals) Span(sim.Span)       {}
func (a *arrivals) End() error          { return nil }

func (a *arrivals) Transfer(t sim.Transfer) {
	tag := a.trace.Ranks[t.Source].Tag.At(a.layout.Index(t.Source, t.Send))
	a.at[tag] = dag.Time(t.Arrived) * a.layout.Unit
}

// pingPongs simulates the recording, and returns the times of ping-pongs by distance and size.
func (f *traceFlow) pingPongs() (rows []fit.Measurement, err error) {
	arrived, err := f.simulate()
	if err != nil {
		return nil, err
	}
	f.used, f.samples, f.early = f.used[:0], 0, 0
	var all []sample
	for i := range f.rec.completions {
		if s, ok := f.sample(&f.rec.completions[i], arrived); ok {
			all = append(all, s)
		}
	}
	if f.samples = len(all); f.samples == 0 {
		return nil, fmt.Errorf("%w that end receives or waits, with measured times of both ranks, found none; give "+
			"the trace of another program, or tables of a micro-benchmark", ErrFewMessages)
	}
	slices.SortStableFunc(all, func(a, b sample) int {
		return cmp.Or(cmp.Compare(a.bytes, b.bytes), cmp.Compare(a.distance, b.distance),
			cmp.Compare(a.crowding, b.crowding))
	})
	for len(all) > 0 {
		n := 1
		for n < len(all) && all[n].bytes == all[0].bytes && all[n].distance == all[0].distance {
			n++
		}
		group := all[:n]
		all = all[n:]
		group = leastCrowded(group)
		f.used = append(f.used, group...)
		s := slices.SortedFunc(slices.Values(group), func(a, b sample) int { return cmp.Compare(a.seconds, b.seconds) })
		t := s[len(s)/2]
		rows = append(rows, fit.Measurement{Test: fit.PingPong, Where: f.names[t.distance], Bytes: t.bytes,
			Seconds: t.seconds + f.overhead(t.bytes)})
	}
	return rows, nil
}

// ErrFewMessages is the error about a trace whose messages do not determine parameters of flow; its collectives may
// identify algorithms.
var ErrFewMessages = errors.New("expected messages of different sizes")

// leastSpread is the ratio of the largest and the smallest size that separates latency from bandwidth.
const leastSpread = 1.5

// checkSizes returns an error if the sizes, which ascend, are about the same.
func checkSizes(rows []fit.Measurement) error {
	if least, most := rows[0].Bytes, rows[len(rows)-1].Bytes; float64(most) < leastSpread*float64(least) || most == 0 {
		return fmt.Errorf("%w, found only %d to %d bytes: they do not separate latency from bandwidth; give the "+
			"trace of another program, or tables of a micro-benchmark", ErrFewMessages, least, most)
	}
	return nil
}

// leastCrowded returns the samples of a size and distance that share links least.
func leastCrowded(group []sample) []sample {
	return group[:max(min(len(group), fewSamples), len(group)/4)]
}

// overhead returns os and or of a message.
func (f *traceFlow) overhead(bytes int64) float64 {
	if bytes >= f.detached {
		return 0
	}
	return f.os(bytes) + f.or(bytes)
}

// sample returns the sample of the last message for which a call waited.
func (f *traceFlow) sample(c *completion, arrived []dag.Time) (s sample, ok bool) {
	if !c.whole {
		return s, false
	}
	now, last := c.start, -1
	var behind dag.Time // overheads of the receives from the last message on
	for i, q := range c.requests {
		if int(q.message) >= len(arrived) {
			return s, false
		}
		m := &f.rec.messages[q.message]
		if !q.receive && m.bytes < f.detached && m.call != otherSend {
			continue
		}
		if at := arrived[q.message]; at >= now {
			now, last, behind = at, i, 0
		}
		if q.receive && m.bytes < f.detached {
			or := ticks(f.or(m.bytes))
			now += or
			behind += or
		}
	}
	if last < 0 || c.end-behind <= c.start {
		return s, false
	}
	m := &f.rec.messages[c.requests[last].message]
	begun, posted := f.begins(m)
	if m.bytes >= f.async {
		begun = max(begun, posted)
	}
	took, simulated := c.end-behind-begun, arrived[c.requests[last].message]-begun
	switch {
	case f.inCollective(m, begun, c.end):
		return s, false
	case took <= 0 || simulated <= 0:
		f.early++
		return s, false
	}
	s = sample{distance: m.distance, bytes: f.sizes[m.bytes], ratio: float64(took) / float64(simulated)}
	s.crowding = seconds(simulated) / f.alone(m)
	s.seconds = f.alone(&message{bytes: s.bytes, distance: m.distance}) * s.ratio
	return s, true
}

// inCollective reports whether one of the ranks of a message is in a collective between two times: its messages are not
// simulated.
func (f *traceFlow) inCollective(m *message, from, to dag.Time) bool {
	return overlaps(f.rec.collectives[m.from], from, to) || overlaps(f.rec.collectives[m.to], from, to)
}

// change returns the largest relative difference between times.
func change(a, b []fit.Measurement) (largest float64) {
	if len(a) != len(b) {
		return math.Inf(1)
	}
	for i := range a {
		largest = max(largest, math.Abs(a[i].Seconds/b[i].Seconds-1))
	}
	return largest
}

// unexplained is the error of half of the messages from which a trace does not determine the parameters.
const unexplained = 0.15

// describe adds remarks about what the trace determines. It returns an error if the parameters explain too few times.
func (f *traceFlow) describe(table *fit.Table) error {
	sizes, errs := map[int64]bool{}, []float64(nil)
	alone := 0
	for _, s := range f.used {
		sizes[s.bytes] = true
		errs = append(errs, math.Abs(s.ratio-1))
		if s.crowding < 1.01 {
			alone++
		}
	}
	slices.Sort(errs)
	if median := errs[len(errs)/2]; median > unexplained {
		return fmt.Errorf("%w whose times show the parameters, found half of them missed by more than %.2g %%: calls "+
			"that the trace lacks, such as late receives, would determine thresholds and overheads; give the trace of "+
			"another program, or tables of a micro-benchmark", ErrFewMessages, 100*median)
	}
	table.Remark("times of a trace instead of ping-pongs: of %d messages for which a call waited, those of %d sizes "+
		"and %d distances that share links least, %d of %d alone; a simulation of the recorded calls has their share "+
		"of links", f.samples, len(sizes), len(f.routes), alone, len(f.used))
	table.Remark("the simulation misses half of these times by less than %.2g %%, 95 %% of them by less than %.2g %%",
		100*errs[len(errs)/2], 100*errs[len(errs)*95/100])
	for _, text := range f.remarks {
		table.Remark("%s", text)
	}
	if f.early > 0 {
		table.Remark("%d receives end before their sends start, and are discarded: clocks of ranks differ", f.early)
	}
	if n := len(f.rec.messages); n > maxSimulated {
		table.Remark("%d of %d messages are used, the first ones", maxSimulated, n)
	}
	return nil
}
