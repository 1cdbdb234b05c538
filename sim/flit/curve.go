package flit

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"math/big"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"

	"golang.org/x/sync/errgroup"

	"github.com/tracedag/tracedag/param"
	"github.com/tracedag/tracedag/sim"
	"github.com/tracedag/tracedag/sim/measure"
)

// checkSynthetic validates the flags of synthetic traffic.
func (b *backend) checkSynthetic(env *sim.Env) error {
	for _, name := range []string{"sweep", "timeline", "alone", "compare", "trace", "placement", "cores", "o",
		"max-cycles"} {
		if env.IsGiven(name) {
			return param.Exclude(name, "synthetic")
		}
	}
	t, err := parsePattern(b.synthetic)
	if err != nil {
		return param.Errorf("synthetic", "%v", err)
	}
	if b.network.Hosts < 2 {
		return param.Errorf("synthetic", "expected a network with at least 2 hosts, found %d", b.network.Hosts)
	}
	if d := b.network.Dragonfly; d != nil && b.compat == "fogsim" {
		t.asFOGSim(d.H)
	}
	const most = 1 << 40
	switch {
	case b.warmup < 0 || b.warmup > most:
		return param.Errorf("warmup", "expected 0 to %d cycles, found %d", int64(most), b.warmup)
	case b.measure < 1 || b.measure > most:
		return param.Errorf("measure", "expected 1 to %d cycles, found %d", int64(most), b.measure)
	}
	if err := b.checkPattern(&t, env); err != nil {
		return err
	}
	traffic := []Traffic{t}
	switch {
	case t.Pattern == Transient, t.fixed() && !env.IsGiven("load"):
	case b.load != saturation:
		loads, err := measure.ParseAxis("load", b.load, b.parseLoad)
		if err != nil {
			return &param.Error{Name: "load", Err: err}
		}
		traffic = nil
		for _, load := range loads {
			t.Load, _ = load.Float64()
			traffic = append(traffic, t)
		}
	case t.Pattern == Bursty:
		return param.Errorf("load", "expected loads with bursty traffic, which drops no packets, found %s", saturation)
	case b.precision == 0:
		b.precision = 0.02
	}
	if len(b.routings) == 0 {
		b.routings = []Routing{b.params.Routing}
	}
	for _, routing := range b.routings {
		params := b.params
		params.Routing = routing
		params.setClasses(&t)
		if err := params.resolve(b.network); err != nil {
			return &param.Error{Err: err}
		}
		for _, t := range traffic {
			b.points = append(b.points, syntheticPoint{Backend: Backend.Name, Model: routing.String(), Params: params,
				Traffic: t})
		}
	}
	b.params = b.points[0].Params
	return nil
}

// checkPattern validates the flags that not all patterns have, and completes the traffic.
func (b *backend) checkPattern(t *Traffic, env *sim.Env) error {
	t.Warmup, t.Measure, t.Seed = uint64(b.warmup), uint64(b.measure), b.trafficSeed
	refused, name := []string{}, t.Pattern.String()
	switch {
	case t.Pattern == Transient:
		if b.window < 1 {
			return param.Errorf("window", "expected 1 or more cycles, found %d", b.window)
		}
		t.Window, refused = uint64(b.window), []string{"load", "precision"}
	case t.fixed():
		t.Load, t.Warmup, t.Measure = 1, 0, 0
		refused = []string{"precision", "warmup", "measure"}
		if b.load == saturation {
			return param.Errorf("load", "expected loads with %s, which ends, found %s", name, saturation)
		}
	}
	for _, flag := range refused {
		if env.IsGiven(flag) {
			return param.Errorf(flag, "not with %s traffic; remove it", name)
		}
	}
	if t.MaxRequests = b.maxRequests; t.Pattern != Reactive && env.IsGiven("max-requests") {
		return param.Needs("max-requests", "--synthetic reactive")
	}
	if t.Window == 0 && env.IsGiven("window") {
		return param.Needs("window", "--synthetic transient")
	}
	if err := t.checkPattern(b.network); err != nil {
		return param.Errorf("synthetic", "%v", err)
	}
	if err := t.checkLoads(b.params.PacketFlits); err != nil {
		return param.Errorf("synthetic", "%v", err)
	}
	return nil
}

// saturation is the text of --load that searches for the highest accepted load.
const saturation = "saturation"

// parseLoad parses a load.
func (b *backend) parseLoad(text string) (*big.Rat, error) {
	v, err := strconv.ParseFloat(text, 64)
	if most := float64(b.params.PacketFlits); err != nil || !(v >= 0 && v <= most) {
		return nil, fmt.Errorf("expected 0 to %v flits per cycle and host, found %q", most, text)
	}
	exact, ok := new(big.Rat).SetString(text) // from the text, so that distances between loads are exact
	if !ok {
		exact = new(big.Rat).SetFloat64(v)
	}
	return exact, nil
}

// syntheticPoint is the result of synthetic traffic at one load.
type syntheticPoint struct {
	Backend string  `json:"backend"`
	Model   string  `json:"model"` // routing
	Params  Params  `json:"params"`
	Traffic Traffic `json:"traffic"`
	Error   string  `json:"error,omitempty"`
	*figures
	Saturation *Saturation `json:"saturation,omitempty"`
}

// StandsAlone reports whether the backend runs synthetic traffic instead of a trace.
func (b *backend) StandsAlone() bool {
	return b.synthetic != ""
}

// curve is the result of synthetic traffic at all loads.
type curve struct {
	b      *backend
	points []syntheticPoint
}

// RunAlone runs synthetic traffic at all loads, several in parallel. A deadlock at one load does not stop the others.
func (b *backend) RunAlone(env *sim.Env, o sim.RunOptions) (sim.Curve, error) {
	env = env.OrEmpty()
	b, err := b.overridden(o.Settings)
	if err != nil {
		return nil, err
	}
	each := b.warmup + b.measure
	progress := env.Meter("simulating", each*int64(len(b.points)), "cycles")
	c := &curve{b, slices.Clone(b.points)}
	threads := 1 // threads per load
	if len(c.points) == 1 {
		if threads = 0; env.IsGiven("threads") {
			threads = o.Threads
		}
	}
	warn := env.WarnOnce()
	var runs errgroup.Group
	runs.SetLimit(max(1, o.Threads))
	for i := range c.points {
		runs.Go(func() error { return b.runPoint(o.Context, &c.points[i], threads, progress, warn) })
	}
	err = runs.Wait()
	progress.Close()
	if err != nil {
		return nil, err
	}
	switch {
	case b.points[0].Traffic.fixed():
	case b.precision == 0:
		warnFew(c.points, b.measure, warn)
	default:
		c.warnImprecise(warn)
	}
	for i := range c.points {
		if pt := &c.points[i]; pt.Error == "" {
			wall := pt.Wall.Seconds()
			cycles := pt.Traffic.Warmup + pt.Traffic.Measure
			env.Explainf("%s: %d cycles in %.3f s, %.4g cycles/s, %.4g events/s", c.name(pt), cycles, wall,
				float64(cycles)/wall, float64(pt.Events)/wall)
		}
	}
	return c, nil
}

// overridden returns the backend with other parameters, at all of its points.
func (b *backend) overridden(settings []param.Setting) (*backend, error) {
	if len(settings) == 0 {
		return b, nil
	}
	own := *b
	if err := own.Params().Override(settings); err != nil {
		return nil, err
	}
	own.points = slices.Clone(b.points)
	for i := range own.points {
		pt := &own.points[i]
		routing := pt.Params.Routing
		pt.Params = own.params
		pt.Params.Routing = routing
		pt.Params.setClasses(&pt.Traffic)
		if err := errors.Join(pt.Params.resolve(own.network), pt.Params.Check()); err != nil {
			return nil, err
		}
	}
	return &own, nil
}

// warnImprecise warns about points that are not known to the precision.
func (c *curve) warnImprecise(warn func(message string, args ...any)) {
	for i := range c.points {
		pt := &c.points[i]
		switch s := pt.Saturation; {
		case pt.figures == nil:
		case s != nil && s.Imprecise > 0:
			warn("%d of the %d loads of the search with %s routing are not known to --precision %v; use a longer "+
				"--measure", s.Imprecise, s.Runs, pt.Model, c.b.precision)
		case s == nil && pt.Traffic.Load > 0 && (pt.Interval == nil || !pt.Interval.Reached):
			warn("the mean latency at %s is not known to --precision %v after %d measured cycles; use a longer "+
				"--measure", c.name(pt), c.b.precision, pt.Cycles)
		}
	}
}

// runPoint runs synthetic traffic at one load, or searches for saturation.
func (b *backend) runPoint(ctx context.Context, pt *syntheticPoint, threads int, progress sim.Meter,
	warn func(message string, args ...any)) error {
	seen := int64(0)
	o := SyntheticOptions{Context: ctx, Network: b.network, Params: pt.Params, Traffic: pt.Traffic, Threads: threads,
		Warn: warn, Rates: b.rates, Precision: b.precision, Progress: func(cycle uint64) error {
			now := min(int64(cycle), b.warmup+b.measure)
			progress.Add(now - seen)
			seen = now
			return nil
		}}
	var r *Report
	var err error
	if b.load == saturation {
		if pt.Saturation, r, err = FindSaturation(o); err == nil {
			pt.Traffic.Load = pt.Saturation.Load
		}
	} else {
		r, err = RunSynthetic(o)
	}
	progress.Add(b.warmup + b.measure - seen)
	if deadlock := (*DeadlockError)(nil); errors.As(err, &deadlock) {
		pt.Error = err.Error()
		return nil
	} else if err != nil {
		return err // an error of the network, for any load
	}
	pt.figures, pt.Traffic.Measure = newFigures(r), r.Cycles
	r.Links = nil // the tables have them, and there may be many
	return nil
}

// Points returns the results by load.
func (c *curve) Points() []sim.CurvePoint {
	shared := make(map[string]string)
	sim.ValuesOf(c.b.params).Units("params.", shared)
	shared["traffic.load"] = reportUnits["applied_load"]
	network := c.b.network.Describe(c.b.topology)
	points := make([]sim.CurvePoint, len(c.points))
	for i := range c.points {
		pt, units := &c.points[i], maps.Clone(shared)
		if maps.Copy(units, reportUnits); pt.figures != nil {
			maps.Copy(units, pt.units())
		}
		factors := map[string]string{"load": saturation}
		if c.b.load != saturation {
			factors["load"] = strconv.FormatFloat(pt.Traffic.Load, 'g', -1, 64)
		}
		if len(c.b.routings) > 1 {
			factors["routing"] = pt.Model
		}
		points[i] = sim.CurvePoint{Name: c.name(pt), Value: pt, Units: units, Topology: network, Failed: pt.Error,
			Factors: factors}
	}
	return points
}

// name returns the name of a point in messages.
func (c *curve) name(pt *syntheticPoint) string {
	text := "load " + saturation
	if c.b.load != saturation {
		text = fmt.Sprintf("load %v", pt.Traffic.Load)
	}
	if len(c.b.routings) > 1 {
		text = pt.Model + ", " + text
	}
	return text
}

// WriteTable writes a human-readable table.
func (c *curve) WriteTable(w io.Writer) error {
	b, points, params := c.b, c.points, c.b.params
	names := make([]string, len(b.routings))
	for i, r := range b.routings {
		names[i] = r.String()
	}
	measured := fmt.Sprintf("%d cycles measured after %d", b.measure, b.warmup)
	if points[0].Traffic.fixed() {
		measured = "all cycles measured"
	}
	if b.precision > 0 {
		measured = fmt.Sprintf("measured to %.4g %% after %d cycles", 100*b.precision, b.warmup)
	}
	fmt.Fprintf(w, "%s, routing %s, %d hosts, links of %.4g Gb/s, %s\n%v\n\n", patternName(&points[0].Traffic),
		strings.Join(names, ", "), b.network.Hosts, params.linkRate(), measured, params)
	if f := points[0].figures; f != nil && f.IdleHosts > 0 {
		fmt.Fprintf(w, "%.4g %% of the hosts are their own targets and send nothing\n\n", 100*f.IdleHosts)
	}
	tab := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	if b.load == saturation {
		c.writeSaturation(tab)
		return tab.Flush()
	}
	if len(names) > 1 {
		fmt.Fprint(tab, "routing\t")
	}
	fixed := points[0].Traffic.fixed()
	if fixed {
		fmt.Fprint(tab, "cycles\t")
	}
	fmt.Fprint(tab, "load\tapplied\taccepted\tlatency\tp50\tp99\tmax\tnetwork\thops\tdropped\tlocal use\tglobal "+
		"use\t")
	if points[0].Traffic.Pattern == Reactive {
		fmt.Fprint(tab, "requests\treplies\tround trip\t")
	}
	if b.precision > 0 {
		fmt.Fprint(tab, "packets\tinterval\t")
	}
	fmt.Fprintln(tab)
	for i := range points {
		pt := &points[i]
		if len(names) > 1 {
			fmt.Fprintf(tab, "%s\t", pt.Model)
		}
		if pt.figures == nil {
			if fixed {
				fmt.Fprint(tab, "-\t")
			}
			fmt.Fprintf(tab, "%.4g\tfailed\t\n", pt.Traffic.Load)
			continue
		}
		if fixed {
			fmt.Fprintf(tab, "%d\t", pt.Cycles)
		}
		d := &pt.Packet
		fmt.Fprintf(tab, "%.4g\t%.4f\t%.4f\t%.1f\t%d\t%d\t%d\t%.1f\t%.3f\t%d\t%.1f%%\t%.1f%%\t", pt.Traffic.Load,
			pt.Applied, pt.Accepted,
			d.Mean, d.P50, d.P99, d.Max, pt.NetworkLatency, pt.Hops, pt.Dropped, 100*meanUse(pt.use, "local"),
			100*meanUse(pt.use, "global"))
		if v := pt.Reactive; v != nil {
			fmt.Fprintf(tab, "%.1f\t%.1f\t%.1f\t", v.RequestLatency, v.ReplyLatency, v.RoundTrip)
		}
		if b.precision > 0 {
			fmt.Fprintf(tab, "%d\t%s\t", pt.Packets, pt.Interval)
		}
		fmt.Fprintln(tab)
	}
	if err := tab.Flush(); err != nil {
		return err
	}
	c.writeWindows(tab)
	return tab.Flush()
}

// writeWindows writes a line per window of each point that has some.
func (c *curve) writeWindows(w io.Writer) {
	head := "\nwindow\taccepted\tlatency\tpackets\t"
	if len(c.b.routings) > 1 {
		head = "\nrouting\t" + head[1:]
	}
	for i := range c.points {
		pt := &c.points[i]
		if pt.figures == nil {
			continue
		}
		for _, v := range pt.Windows {
			if head != "" {
				fmt.Fprintln(w, head)
				head = ""
			}
			if len(c.b.routings) > 1 {
				fmt.Fprintf(w, "%s\t", pt.Model)
			}
			fmt.Fprintf(w, "%d\t%.4f\t%.1f\t%d\t\n", v.Cycle, v.Accepted, v.Latency, v.Packets)
		}
	}
}

// writeSaturation writes a line per routing algorithm.
func (c *curve) writeSaturation(w io.Writer) {
	fmt.Fprintln(w, "routing\tzero-load latency\tinterval\tpackets\tsaturation load\tthroughput\tlatency there"+
		"\tinterval\tpackets\tloads tried\t")
	for i := range c.points {
		pt := &c.points[i]
		if pt.figures == nil {
			fmt.Fprintf(w, "%s\tfailed\t\n", pt.Model)
			continue
		}
		s := pt.Saturation
		fmt.Fprintf(w, "%s\t%.1f\t%s\t%d\t%.4g\t%.4f\t%.1f\t%s\t%d\t%d\t\n", pt.Model, s.ZeroLoadLatency,
			s.ZeroLoadInterval, s.ZeroLoadPackets, s.Load, s.Throughput, pt.Packet.Mean, pt.Interval, pt.Packets,
			s.Runs)
	}
}

// String formats the half width in cycles and in percent of the mean.
func (i *Interval) String() string {
	if i == nil {
		return "unknown"
	}
	return fmt.Sprintf("±%.4g (%.2g%%)", i.HalfWidth, 100*i.Relative)
}
