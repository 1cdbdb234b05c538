package report

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"

	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

// Limits of a timeline file that is drawn.
const (
	spanTracks = 200     // in the picture
	mostTracks = 1 << 16 // in the file
	mostSpans  = 1 << 20 // and arrows
)

// spacetime is the content of a timeline file: spans on tracks, and messages between them.
type spacetime struct {
	tracks []*spanTrack // in the order of the picture; those without spans are last
	drawn  int          // tracks with spans
	arrows []*spanArrow // that have both ends, by the order of their starts in the file
	least  uint64       // size in bytes of the smallest message with an arrow
}

// spanTrack is a stream or a NIC of a rank.
type spanTrack struct {
	pid, tid       int64
	process, order int64 // places among processes, and among the tracks of its process
	name           string
	row            int
	spans          []span
}

// span is a time on a track, in microseconds, also as in the file.
type span struct {
	kind        SliceKind
	start, end  float64
	from, takes string
	bytes       uint64
}

// spanArrow is a message.
type spanArrow struct {
	from, to   *spanTrack // nil: unknown
	start, end float64
	left, came string
	bytes      uint64
}

// traceEvent is an event of Chromium's Trace Event Format.
type traceEvent struct {
	Phase    string          `json:"ph"`
	PID      int64           `json:"pid"`
	TID      int64           `json:"tid"`
	Time     json.Number     `json:"ts"`
	Duration json.Number     `json:"dur"`
	Name     string          `json:"name"`
	Category string          `json:"cat"`
	ID       json.RawMessage `json:"id"`
	Args     json.RawMessage `json:"args"`
}

// TimelineFile returns the report of a timeline in Chromium's Trace Event Format, as simulate --timeline FILE.json
// writes it. It has a picture of the kind timeline, with arrows for messages of at least the given size in bytes, and
// no
// page.
func TimelineFile(r io.Reader, least uint64) (*Report, error) {
	p := &timelineParser{of: &spacetime{least: least}, tracks: make(map[[2]int64]*spanTrack),
		arrows: make(map[string]*spanArrow), processes: make(map[int64]*spanTrack)}
	if err := p.parse(json.NewDecoder(r)); err != nil {
		return nil, err
	}
	p.arrange()
	return &Report{document: []byte("{}"), of: ofTimeline, spacetime: p.of}, nil
}

// timelineParser reads a timeline file.
type timelineParser struct {
	of        *spacetime
	tracks    map[[2]int64]*spanTrack // by process and thread
	processes map[int64]*spanTrack    // name and order of processes
	arrows    map[string]*spanArrow   // by ID
	events    int
	spans     int
}

// parse reads an object with the member traceEvents, or an array of events.
func (p *timelineParser) parse(d *json.Decoder) error {
	begin, err := d.Token()
	switch {
	case err != nil:
		return fmt.Errorf("expected a timeline in JSON, as simulate --timeline FILE.json writes it: %w", err)
	case begin == json.Delim('['):
		return p.list(d)
	case begin != json.Delim('{'):
		return fmt.Errorf("expected a timeline in JSON, as simulate --timeline FILE.json writes it, found %.20v", begin)
	}
	found := false
	for d.More() {
		name, err := d.Token()
		if err != nil {
			return err
		}
		if name != "traceEvents" {
			var skipped json.RawMessage
			if err := d.Decode(&skipped); err != nil {
				return err
			}
			continue
		}
		found = true
		if open, err := d.Token(); err != nil || open != json.Delim('[') {
			return errors.Join(errors.New("traceEvents: expected an array"), err)
		}
		if err := p.list(d); err != nil {
			return err
		}
	}
	if _, err := d.Token(); err != nil {
		return err
	}
	if !found {
		return errors.New("expected a member traceEvents, found none")
	}
	return nil
}

// list reads events up to the end of their array.
func (p *timelineParser) list(d *json.Decoder) error {
	for d.More() {
		var e traceEvent
		err := d.Decode(&e)
		if err == nil {
			err = p.event(&e)
		}
		if err != nil {
			return fmt.Errorf("event %d: %w", p.events, err)
		}
		p.events++
	}
	_, err := d.Token()
	return err
}

func (p *timelineParser) event(e *traceEvent) error {
	switch e.Phase {
	case "M":
		return p.describe(e)
	case "X":
		return p.span(e)
	case "s", "t", "f":
		return p.arrow(e)
	}
	return nil
}

// track returns the track of an event.
func (p *timelineParser) track(e *traceEvent) (*spanTrack, error) {
	at := [2]int64{e.PID, e.TID}
	t := p.tracks[at]
	if t != nil {
		return t, nil
	}
	if len(p.of.tracks) == mostTracks {
		return nil, fmt.Errorf("expected at most %d tracks, found more; select ranks with --timeline-ranks of simulate",
			mostTracks)
	}
	t = &spanTrack{pid: e.PID, tid: e.TID, name: "thread " + strconv.FormatInt(e.TID, 10), order: e.TID}
	p.tracks[at], p.of.tracks = t, append(p.of.tracks, t)
	return t, nil
}

// describe reads the name or the place of a process or track.
func (p *timelineParser) describe(e *traceEvent) error {
	var args struct {
		Name string      `json:"name"`
		Sort json.Number `json:"sort_index"`
	}
	switch e.Name {
	case "process_name", "process_sort_index", "thread_name", "thread_sort_index":
		if err := json.Unmarshal(e.Args, &args); err != nil {
			return fmt.Errorf("args of %s: %w", e.Name, err)
		}
	default:
		return nil
	}
	of := p.processes[e.PID]
	if e.Name[0] == 't' {
		var err error
		if of, err = p.track(e); err != nil {
			return err
		}
	} else if of == nil {
		if len(p.processes) == mostTracks {
			return fmt.Errorf("expected at most %d processes, found more", mostTracks)
		}
		of = &spanTrack{order: e.PID}
		p.processes[e.PID] = of
	}
	if e.Name == "process_name" || e.Name == "thread_name" {
		of.name = args.Name
		return nil
	}
	order, err := args.Sort.Int64()
	if err != nil {
		return fmt.Errorf("sort_index: expected a whole number, found %.40q", args.Sort)
	}
	of.order = order
	return nil
}

// microseconds parses a time.
func microseconds(name string, n json.Number) (float64, error) {
	x, err := n.Float64()
	if err != nil || !(x >= 0 && x <= math.MaxInt64/1e6) {
		return 0, fmt.Errorf("%s: expected microseconds, at most 2^63 ps, found %.40q", name, n)
	}
	return x, nil
}

// spanKinds are the kinds of spans by category.
var spanKinds = map[string]SliceKind{"calc": CalcSlice, "send": OverheadSlice, "recv": OverheadSlice,
	"noise": NoiseSlice, "mem": MemorySlice, "io": StorageSlice, "wait": WaitSlice, "collective": CollectiveSlice,
	"message": MessageSlice}

func (p *timelineParser) span(e *traceEvent) error {
	if p.spans == mostSpans {
		return fmt.Errorf("expected at most %d spans, found more; use --timeline-ranks or --timeline-window of "+
			"simulate", mostSpans)
	}
	p.spans++
	start, err := microseconds("ts", e.Time)
	if err != nil {
		return err
	}
	length, err := microseconds("dur", e.Duration)
	if err != nil {
		return err
	}
	t, err := p.track(e)
	if err != nil {
		return err
	}
	kind, known := spanKinds[e.Category]
	if !known {
		kind = CommSlice
	}
	var args struct {
		Bytes json.Number `json:"bytes"`
	}
	s := span{kind: kind, start: start, end: start + length, from: string(e.Time), takes: string(e.Duration)}
	if json.Unmarshal(e.Args, &args) == nil { // args of other programs may have any type
		s.bytes, _ = strconv.ParseUint(string(args.Bytes), 10, 64)
	}
	t.spans = append(t.spans, s)
	return nil
}

// arrow reads the start of a message, a step or its end. A span at its place has the size.
func (p *timelineParser) arrow(e *traceEvent) error {
	at, err := microseconds("ts", e.Time)
	if err != nil {
		return err
	}
	t, err := p.track(e)
	if err != nil {
		return err
	}
	a := p.arrows[string(e.ID)]
	if a == nil {
		if len(p.arrows) == mostSpans {
			return fmt.Errorf("expected at most %d messages, found more; use --timeline-ranks or --timeline-window of "+
				"simulate", mostSpans)
		}
		a = new(spanArrow)
		p.arrows[string(e.ID)], p.of.arrows = a, append(p.of.arrows, a)
	}
	switch e.Phase {
	case "s":
		a.from, a.start, a.left = t, at, string(e.Time)
	case "f":
		a.to, a.end, a.came = t, at, string(e.Time)
	}
	if n := len(t.spans); n > 0 && t.spans[n-1].start == at {
		a.bytes = max(a.bytes, t.spans[n-1].bytes)
	}
	return nil
}

// arrange orders the tracks and discards arrows without both ends.
func (p *timelineParser) arrange() {
	for _, t := range p.of.tracks {
		if of := p.processes[t.pid]; of != nil {
			t.process, t.name = of.order, of.name+" "+t.name
		} else {
			t.process = t.pid
		}
	}
	slices.SortStableFunc(p.of.tracks, func(a, b *spanTrack) int {
		empty := func(t *spanTrack) int { return min(len(t.spans), 1) }
		return cmp.Or(empty(b)-empty(a), cmp.Compare(a.process, b.process), cmp.Compare(a.pid, b.pid),
			cmp.Compare(a.order, b.order), cmp.Compare(a.tid, b.tid))
	})
	for i, t := range p.of.tracks {
		t.row = i
		p.of.drawn += min(len(t.spans), 1)
	}
	p.of.arrows = slices.DeleteFunc(p.of.arrows, func(a *spanArrow) bool {
		return a.from == nil || a.to == nil || max(a.from.row, a.to.row) >= p.of.drawn || a.bytes < p.of.least
	})
}

// drawSpacetime draws the tracks over time, with an arrow per message.
func drawSpacetime(s *source) *picture {
	m := s.spacetime
	if m.drawn == 0 || m.drawn > spanTracks {
		return nil
	}
	names, kinds := make([]string, m.drawn), [sliceKinds]bool{}
	for i, t := range m.tracks[:m.drawn] {
		names[i] = label(t.name)
		for _, s := range t.spans {
			kinds[s.kind] = true
		}
	}
	out := &picture{title: "timeline", panels: []*panel{{
		x: plotAxis{of: quantity{name: "time", unit: time}, stack: true},
		y: plotAxis{of: quantity{name: "track"}, names: names, down: true}, marks: []marks{m},
	}}}
	for k, shown := range kinds {
		if shown {
			out.keys = append(out.keys, plotKey{sliceNames[k].name, func(c draw.Canvas, t *theme) {
				t.slices(c, []vg.Rectangle{c.Rectangle}, SliceKind(k))
			}})
		}
	}
	if len(m.arrows) > 0 {
		out.keys = append(out.keys, plotKey{"from send to receive", func(c draw.Canvas, t *theme) {
			y := c.Center().Y
			t.arrow(c, 2, vg.Point{X: c.Min.X, Y: y}, vg.Point{X: c.Max.X, Y: y}, vg.Point{})
		}})
	}
	return out
}

// perMicrosecond is the number of picoseconds in a microsecond.
const perMicrosecond = 1e6

func (m *spacetime) extent(add func(x, y float64)) {
	add(0, -0.5)
	for i, t := range m.tracks[:m.drawn] {
		for _, s := range t.spans {
			add(s.end*perMicrosecond, float64(i)+0.5)
		}
	}
	for _, a := range m.arrows {
		add(a.end*perMicrosecond, float64(a.to.row))
	}
}

func (m *spacetime) plot(c draw.Canvas, at func(x, y float64) vg.Point, t *theme) {
	var all [sliceKinds][]vg.Rectangle
	for i, track := range m.tracks[:m.drawn] {
		for _, s := range track.spans {
			all[s.kind] = append(all[s.kind], rectangle(at(s.start*perMicrosecond, float64(i)-0.4),
				at(s.end*perMicrosecond, float64(i)+0.4)))
		}
	}
	for k := range all {
		t.slices(c, all[k], SliceKind(k))
	}
	for _, a := range m.arrows {
		t.arrow(c, 2, at(a.start*perMicrosecond, float64(a.from.row)), at(a.end*perMicrosecond, float64(a.to.row)),
			vg.Point{})
	}
}

func (m *spacetime) list(l *lister) {
	for _, t := range m.tracks[:m.drawn] {
		for _, s := range t.spans {
			l.row(sliceNames[s.kind].name, plotCell{"track", t.name}, plotCell{"from (us)", s.from},
				plotCell{"length (us)", s.takes})
		}
	}
	for _, a := range m.arrows {
		l.row("arrow", plotCell{"track", a.from.name}, plotCell{"from (us)", a.left}, plotCell{"to track", a.to.name},
			plotCell{"to (us)", a.came}, plotCell{"bytes", strconv.FormatUint(a.bytes, 10)})
	}
}
