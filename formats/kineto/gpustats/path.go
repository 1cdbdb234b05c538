// This file finds the critical path of a rank.

package gpustats

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/tracedag/tracedag/dag"
	"github.com/tracedag/tracedag/formats/format"
	"github.com/tracedag/tracedag/formats/kineto"
	"github.com/tracedag/tracedag/internal/par"
)

// Path is the critical path of a rank: the longest path in a graph of the starts and ends of operators, calls of the
// runtime and ops of devices.
type Path struct {
	Rank int32    `json:"rank"`
	From dag.Time `json:"from"` // of the part of the trace, relative to some event of the file
	To   dag.Time `json:"to"`

	Points int            `json:"points"` // starts and ends
	Edges  map[string]int `json:"edges"`  // by kind

	PathPoints int      `json:"path_points"`
	PathEvents int      `json:"path_events"` // different ones
	Length     dag.Time `json:"length"`

	Parts []PathPart `json:"parts"`      // of the length, in the order of Bounds
	Names []PathName `json:"names"`      // those with the greatest times first
	Waits []PathWait `json:"sync_edges"` // of the graph
}

// PathPart is the part of a critical path that is bound by something.
type PathPart struct {
	Bound string   `json:"bound"`
	Time  dag.Time `json:"time"`
	Share float64  `json:"share"` // of the length
}

// PathName is the part of a critical path that is spent in the events of a name.
type PathName struct {
	Name  string   `json:"name"`
	Bound string   `json:"bound"`
	Edges int      `json:"edges"`
	Time  dag.Time `json:"time"`
}

// PathWait is an edge by which an event waits for an op of a device.
type PathWait struct {
	From PathEvent `json:"from"`
	To   PathEvent `json:"to"`
}

// PathEvent is an event. Event is its number in the file.
type PathEvent struct {
	Event       int64  `json:"event"`
	Name        string `json:"name"`
	Stream      *int64 `json:"stream"` // nil: on the host
	Correlation int64  `json:"correlation"`
}

// Bounds are what bounds the parts of a critical path: computation and waits of the host, kernels that compute,
// kernels that communicate, the time between kernels of a stream, and that between a launch and its kernel.
var Bounds = []string{"cpu_bound", "gpu_compute_bound", "gpu_communication_bound", "gpu_kernel_kernel_overhead",
	"gpu_kernel_launch_overhead"}

// Part selects the part of a trace for the critical path: from the start of range First to the end of range Last of
// those whose name contains Name. With an empty name, it is the whole trace.
type Part struct {
	Name        string
	First, Last int // from 0
}

// edgeKind is the kind of an edge of the graph.
type edgeKind uint8

const (
	edgeRuns   edgeKind = iota // in an operator, call or kernel
	edgeLaunch                 // from a call to the kernel that it launched
	edgeOrder                  // between operators of a thread, without time
	edgeGap                    // between kernels of a stream
	edgeWait                   // for an event of a device, without time
	edgeKinds
)

var edgeNames = [edgeKinds]string{"OPERATOR_KERNEL", "KERNEL_LAUNCH_DELAY", "DEPENDENCY", "KERNEL_KERNEL_DELAY",
	"SYNC_DEPENDENCY"}

// longestGap is the longest time between kernels of a stream of which the later one waits for the earlier one. HTA
// takes longer ones for unknown dependencies.
const longestGap = 1500 * dag.Microsecond

// blockingCalls are calls that wait for devices: their time is that of what they wait for. lockedCalls exclude each
// other. Names are without cuda and hip.
var (
	blockingCalls = map[string]bool{"DeviceSynchronize": true, "StreamSynchronize": true, "EventQuery": true,
		"EventSynchronize": true, "Memcpy": true, "MemcpyAsync": true}
	lockedCalls = map[string]bool{"HostAlloc": true, "LaunchKernel": true, "MemcpyAsync": true}
)

// point is the start or end of an event.
type point struct {
	at    dag.Time
	row   int32
	start bool
}

// edge is an edge of the graph. weight is part of the length; negative ones count as 0 there.
type edge struct {
	from, to int32
	kind     edgeKind
	row      int32 // of the event to which the time belongs; -1: none
	weight   dag.Time
}

// pathGraph is the graph of a part of a trace. Edges, and the edges of a point, are in the order in which they are
// added: the longest path among equal ones depends on it.
type pathGraph struct {
	rows    []kineto.Row
	details []kineto.Detail
	part    []int32 // rows of the part

	linked []int32 // by row: the launched op or the launching call, or lastUnknown
	starts []int32 // by row: points; -1: none
	ends   []int32
	points []point
	order  []int32 // points with edges, in the order of the first one
	edges  []edge
	of     map[[2]int32]int32
	in     [][]int32 // edges by point
	out    [][]int32

	blocking, locked []bool // by row
	full             bool   // there are too many edges
	hip              bool   // names of ROCm count as those of CUDA
}

const (
	unlinked    = -1 // no correlation
	lastUnknown = -2 // the other event is not in the file
)

// Paths returns the critical path of each profile, for which the profiles need Reference with details. With reference,
// they are those of HTA; without, names of ROCm's calls count as those of CUDA.
func Paths(profiles []*kineto.Profile, part Part, reference bool) ([]*Path, error) {
	paths := make([]*Path, len(profiles))
	err := par.Each(len(profiles), func(i int) (err error) {
		paths[i], err = pathOf(profiles[i], part, reference)
		return err
	})
	return paths, err
}

// pathOf returns the critical path of a part of a rank. Reference selects the names of calls that HTA knows.
func pathOf(p *kineto.Profile, part Part, reference bool) (*Path, error) {
	f := p.Reference
	g := &pathGraph{rows: f.Rows, details: f.Details, of: make(map[[2]int32]int32), hip: !reference}
	out := &Path{Rank: p.Rank, Edges: make(map[string]int), Parts: []PathPart{}, Names: []PathName{},
		Waits: []PathWait{}}
	if len(f.Rows) == 0 {
		g.describe(out, nil)
		return out, nil
	}
	var err error
	if out.From, out.To, err = g.window(p.File, part); err != nil {
		return nil, err
	}
	g.link()
	g.clip(out.From, out.To)
	g.setPoints()
	g.addLocks()
	g.addThreads()
	g.addKernels()
	if g.full {
		return nil, format.FileErrorf(p.File, "--critical-path: expected a few waits per stream and event, found too "+
			"many; select a part with --path-part")
	}
	path, ok := g.longest()
	if !ok {
		return nil, format.FileErrorf(p.File, "--critical-path: expected events that wait for earlier ones, found a "+
			"cycle of waits: the times of the recording are inconsistent; select a part with --path-part")
	}
	g.describe(out, path)
	return out, nil
}

// window returns the interval of a part.
func (g *pathGraph) window(file string, part Part) (from, to dag.Time, err error) {
	from, to = dag.MaxTime, -dag.MaxTime
	n := 0
	for i := range g.rows {
		r := &g.rows[i]
		if part.Name != "" {
			if !strings.Contains(r.Name, part.Name) {
				continue
			}
			if n++; n <= part.First || n > part.Last+1 {
				continue
			}
		}
		from, to = min(from, r.Start), max(to, r.End)
	}
	if part.Name != "" && n <= part.First {
		return 0, 0, format.FileErrorf(file, "--path-part: expected at least %d events with %q in their name, found %d",
			part.First+1, part.Name, n)
	}
	return from, to, nil
}

// link links each launch with its op.
func (g *pathGraph) link() {
	type pair struct{ host, device int32 }
	of := make(map[int64]pair)
	for i := range g.rows {
		r := &g.rows[i]
		if r.Correlation == -1 {
			continue
		}
		l, ok := of[r.Correlation]
		if !ok {
			l = pair{-1, -1}
		}
		if r.OnDevice {
			l.device = int32(i)
		} else {
			l.host = int32(i)
		}
		of[r.Correlation] = l
	}
	g.linked = make([]int32, len(g.rows))
	g.blocking, g.locked = make([]bool, len(g.rows)), make([]bool, len(g.rows))
	for i := range g.rows {
		r := &g.rows[i]
		g.linked[i] = unlinked
		if r.Correlation >= 0 {
			g.linked[i] = lastUnknown
		}
		if r.Correlation != -1 {
			l := of[r.Correlation]
			other := l.host
			if !r.OnDevice {
				other = l.device
			}
			if l.host >= 0 && l.device >= 0 {
				g.linked[i] = other
			}
		}
		name, cuda := strings.CutPrefix(r.Name, "cuda")
		if !cuda && g.hip {
			name, cuda = strings.CutPrefix(r.Name, "hip")
		}
		g.blocking[i], g.locked[i] = cuda && blockingCalls[name], cuda && lockedCalls[name]
	}
}

// clip selects the events of the host that start in an interval, and what they launched.
func (g *pathGraph) clip(from, to dag.Time) {
	inside := func(r *kineto.Row) bool { return r.Start >= from && r.Start <= to && r.End > r.Start }
	launched := make([]bool, len(g.rows)) // by an event of the host in the interval
	for i := range g.rows {
		if r := &g.rows[i]; r.Stream == -1 && g.linked[i] >= 0 && inside(r) {
			launched[g.linked[i]] = true
		}
	}
	for i := range g.rows {
		r := &g.rows[i]
		if r.Stream == -1 && inside(r) || r.Stream != -1 && (launched[i] || r.Name == "Stream Wait Event") {
			g.part = append(g.part, int32(i))
		}
	}
}

// setPoints makes the points of operators, calls and ops of devices.
func (g *pathGraph) setPoints() {
	g.starts, g.ends = make([]int32, len(g.rows)), make([]int32, len(g.rows))
	for i := range g.starts {
		g.starts[i], g.ends[i] = -1, -1
	}
	for _, i := range g.part {
		kind := g.details[i].Kind
		if kind == kineto.OperatorEvent || kind == kineto.RuntimeEvent ||
			g.rows[i].Stream != -1 && g.linked[i] != unlinked {
			g.points = append(g.points, point{g.rows[i].Start, i, true}, point{g.rows[i].End, i, false})
		}
	}
	slices.SortStableFunc(g.points, func(a, b point) int {
		return cmp.Or(cmp.Compare(a.at, b.at), cmp.Compare(a.row, b.row))
	})
	for k, p := range g.points {
		if p.start {
			g.starts[p.row] = int32(k)
		} else {
			g.ends[p.row] = int32(k)
		}
	}
	g.in, g.out = make([][]int32, len(g.points)), make([][]int32, len(g.points))
}

// add adds an edge. An edge between the same points is replaced.
func (g *pathGraph) add(from, to int32, kind edgeKind, timeless bool, row int32) {
	e := edge{from, to, kind, row, g.points[to].at - g.points[from].at}
	if timeless || kind == edgeOrder || kind == edgeWait {
		e.weight = 0
	}
	if n, ok := g.of[[2]int32{from, to}]; ok {
		g.edges[n] = e
		return
	}
	n := int32(len(g.edges))
	g.of[[2]int32{from, to}] = n
	g.edges = append(g.edges, e)
	for _, p := range []int32{from, to} {
		if len(g.in[p]) == 0 && len(g.out[p]) == 0 {
			g.order = append(g.order, p)
		}
	}
	g.out[from], g.in[to] = append(g.out[from], n), append(g.in[to], n)
}

// addLocks adds the edges between calls that exclude each other on all threads: the call that ends first runs first.
func (g *pathGraph) addLocks() {
	var open []int32
	last := int32(-1)
	for k := range g.points {
		p := &g.points[k]
		if !g.locked[p.row] {
			continue
		}
		if p.start {
			open = append(open, int32(k))
		} else {
			for n := len(open) - 1; n >= 0; n-- {
				if g.points[open[n]].row == p.row {
					g.add(open[n], int32(k), edgeRuns, false, p.row)
				} else {
					g.add(open[n], int32(k), edgeOrder, false, -1)
				}
			}
			open = open[:0]
			if last >= 0 && !g.points[last].start {
				g.add(last, int32(k), edgeOrder, false, -1)
			}
		}
		last = int32(k)
	}
}

// threadKey is a thread of a process.
type threadKey struct{ process, thread string }

// compareNumbers compares texts, numbers by value and before other texts.
func compareNumbers(a, b string) int {
	x, errX := strconv.ParseInt(a, 10, 64)
	y, errY := strconv.ParseInt(b, 10, 64)
	switch {
	case errX == nil && errY == nil:
		return cmp.Compare(x, y)
	case errX == nil:
		return -1
	case errY == nil:
		return 1
	}
	return cmp.Compare(a, b)
}

// addThreads adds the edges between the events of each thread of the host.
func (g *pathGraph) addThreads() {
	forward, backward := g.threadOf("forward"), g.threadOf("autograd")
	merge := forward != "" && backward != "" && forward != backward
	var order []threadKey
	threads := make(map[threadKey][]int32)
	for _, i := range g.part {
		d := &g.details[i]
		key := threadKey{d.Process, d.Thread}
		if merge && key.thread == backward {
			key.thread = forward
		}
		if threads[key] == nil {
			order = append(order, key)
		}
		threads[key] = append(threads[key], i)
	}
	slices.SortFunc(order, func(a, b threadKey) int {
		return cmp.Or(compareNumbers(a.process, b.process), compareNumbers(a.thread, b.thread))
	})
	for _, key := range order {
		list := threads[key]
		if !slices.ContainsFunc(list, func(i int32) bool { return g.rows[i].Stream >= 0 }) {
			g.addThread(list)
		}
	}
}

// threadOf returns the only thread with operators and annotations whose name has a part; "" if there are several, or
// thread 0.
func (g *pathGraph) threadOf(part string) string {
	found := ""
	matches := make(map[string]bool)
	for _, i := range g.part {
		d := &g.details[i]
		if d.Kind != kineto.OperatorEvent && d.Kind != kineto.AnnotationEvent {
			continue
		}
		name := g.rows[i].Name
		match, known := matches[name]
		if !known {
			match = strings.Contains(name, part)
			matches[name] = match
		}
		switch {
		case !match:
		case found != "" && found != d.Thread:
			return ""
		default:
			found = d.Thread
		}
	}
	if found == "0" {
		return ""
	}
	return found
}

// turn is the start or end of an event of a thread.
type turn struct {
	at, took dag.Time
	row      int32
	start    bool
}

// compareTurns orders the starts and ends of events of a thread so that an event encloses those that it calls.
func compareTurns(x, y turn) int {
	if x.row == y.row {
		if x.start {
			return -1
		}
		return 1
	}
	sign := func(first bool) int {
		if first {
			return -1
		}
		return 1
	}
	switch {
	case x.at != y.at:
		return cmp.Compare(x.at, y.at)
	case x.start == y.start && x.start:
		return cmp.Or(cmp.Compare(y.took, x.took), cmp.Compare(x.row, y.row))
	case x.start == y.start:
		return cmp.Or(cmp.Compare(x.took, y.took), cmp.Compare(y.row, x.row))
	case x.took > 0 && y.took > 0:
		return sign(!x.start)
	case x.took == 0 && y.took == 0:
		return cmp.Compare(x.row, y.row)
	}
	return sign(x.start)
}

// frame is an event of a thread with those that it calls.
type frame struct {
	row    int32
	parent int32 // frame
	calls  []int32
}

// addThread adds the edges between the events of a thread: from the start of an event to the start of the first one
// that it calls, from the end of that to the start of the next one, and so on.
func (g *pathGraph) addThread(list []int32) {
	turns := make([]turn, 0, 2*len(list))
	for _, i := range list {
		r := &g.rows[i]
		took := max(r.End-r.Start, 0)
		turns = append(turns, turn{r.Start, took, i, true}, turn{r.Start + took, took, i, false})
	}
	slices.SortStableFunc(turns, compareTurns)
	frames := []frame{{row: -1, parent: -1}}
	stack := []int32{0}
	for _, t := range turns {
		switch top := stack[len(stack)-1]; {
		case t.start:
			frames = append(frames, frame{row: t.row, parent: top})
			n := int32(len(frames) - 1)
			frames[top].calls = append(frames[top].calls, n)
			stack = append(stack, n)
		case len(stack) > 1:
			stack = stack[:len(stack)-1]
		}
	}
	w := walk{g: g, last: -1}
	type visit struct{ frame, next int32 }
	visits := []visit{{0, 0}}
	for len(visits) > 0 {
		v := &visits[len(visits)-1]
		f := &frames[v.frame]
		if int(v.next) < len(f.calls) {
			n := f.calls[v.next]
			v.next++
			w.enter(&frames[n], frames)
			visits = append(visits, visit{n, 0})
			continue
		}
		w.leave(f, frames)
		visits = visits[:len(visits)-1]
	}
}

// walk passes the events of a thread.
type walk struct {
	g      *pathGraph
	last   int32 // point
	depth  int
	parent int32 // row that calls that of the last point; -1: none
}

// lock reports whether the edges between two points are those of addLocks.
func (w *walk) lock(to int32) bool {
	a, b := &w.g.points[w.last], &w.g.points[to]
	return w.g.locked[a.row] && w.g.locked[b.row] && (a.start || !b.start)
}

// pass adds the edge from the last point.
func (w *walk) pass(to int32, kind edgeKind, timeless bool) {
	if w.last < 0 || w.lock(to) {
		return
	}
	a, b := &w.g.points[w.last], &w.g.points[to]
	row := w.parent
	switch {
	case a.start:
		row = a.row
	case !b.start:
		row = b.row
	}
	w.g.add(w.last, to, kind, timeless, row)
}

func (w *walk) enter(f *frame, frames []frame) {
	at := w.g.starts[f.row]
	if at < 0 {
		return
	}
	kind := edgeRuns
	if w.depth == 0 {
		kind = edgeOrder
	}
	w.pass(at, kind, false)
	w.last, w.parent = at, frames[f.parent].row
	w.depth++
}

func (w *walk) leave(f *frame, frames []frame) {
	if f.row < 0 || w.g.ends[f.row] < 0 {
		return
	}
	at := w.g.ends[f.row]
	w.pass(at, edgeRuns, w.g.blocking[f.row])
	w.last, w.parent = at, frames[f.parent].row
	w.depth--
}

// describe sets the statistics of the graph and of its longest path, which is a list of edges.
func (g *pathGraph) describe(out *Path, path []int32) {
	out.Points = len(g.points)
	for i := range g.edges {
		e := &g.edges[i]
		out.Edges[edgeNames[e.kind]]++
		if e.kind == edgeWait {
			out.Waits = append(out.Waits, PathWait{g.event(e.from), g.event(e.to)})
		}
	}
	events := make(map[int32]bool)
	parts := make(map[string]dag.Time)
	type key struct{ name, bound string }
	index := make(map[key]int)
	for n, k := range path {
		e := &g.edges[k]
		if n == 0 {
			events[g.points[e.from].row] = true
		}
		events[g.points[e.to].row] = true
		out.Length += e.weight
		bound, row := g.bound(e)
		if bound == "" || e.weight == 0 {
			continue
		}
		parts[bound] += e.weight
		x := key{g.rows[row].Name, bound}
		at, ok := index[x]
		if !ok {
			at = len(out.Names)
			index[x] = at
			out.Names = append(out.Names, PathName{Name: x.name, Bound: bound})
		}
		out.Names[at].Edges++
		out.Names[at].Time += e.weight
	}
	if len(path) > 0 {
		out.PathPoints = len(path) + 1
	}
	out.PathEvents = len(events)
	for _, bound := range Bounds {
		p := PathPart{Bound: bound, Time: parts[bound]}
		if out.Length > 0 {
			p.Share = float64(p.Time) / float64(out.Length)
		}
		out.Parts = append(out.Parts, p)
	}
	slices.SortStableFunc(out.Names, func(a, b PathName) int { return cmp.Compare(b.Time, a.Time) })
}

// bound returns what bounds an edge, "" for edges without time, and the row to which the time belongs.
func (g *pathGraph) bound(e *edge) (bound string, row int32) {
	switch e.kind {
	case edgeGap:
		return "gpu_kernel_kernel_overhead", e.row
	case edgeLaunch:
		return "gpu_kernel_launch_overhead", g.points[e.to].row
	case edgeOrder, edgeWait:
		return "", -1
	}
	switch {
	case e.row < 0:
		return "", -1
	case g.rows[e.row].Stream < 0:
		return "cpu_bound", e.row
	case kindOf(g.rows[e.row].Name) == communication:
		return "gpu_communication_bound", e.row
	}
	return "gpu_compute_bound", e.row
}

func (g *pathGraph) event(at int32) PathEvent {
	r := &g.rows[g.points[at].row]
	e := PathEvent{Event: r.Index, Name: r.Name, Correlation: r.Correlation}
	if r.Stream != -1 {
		e.Stream = &r.Stream
	}
	return e
}

// longest returns the edges of the longest path; ok is false if the graph has a cycle. Among equal paths it is the one
// whose points, in topological order, and whose edges come first.
func (g *pathGraph) longest() (path []int32, ok bool) {
	left := make([]int, len(g.points))
	var sorted []int32
	for _, p := range g.order {
		if left[p] = len(g.in[p]); left[p] == 0 {
			sorted = append(sorted, p)
		}
	}
	for n := 0; n < len(sorted); n++ {
		for _, k := range g.out[sorted[n]] {
			to := g.edges[k].to
			if left[to]--; left[to] == 0 {
				sorted = append(sorted, to)
			}
		}
	}
	if len(sorted) < len(g.order) {
		return nil, false
	}
	length, by := make([]dag.Time, len(g.points)), make([]int32, len(g.points))
	last := int32(-1)
	for _, p := range sorted {
		by[p] = -1
		for _, k := range g.in[p] {
			if n := length[g.edges[k].from] + max(g.edges[k].weight, 0); by[p] < 0 || n > length[p] {
				length[p], by[p] = n, k
			}
		}
		if last < 0 || length[p] > length[last] {
			last = p
		}
	}
	for last >= 0 && by[last] >= 0 {
		path = append(path, by[last])
		last = g.edges[by[last]].from
	}
	slices.Reverse(path)
	return path, true
}

// ParsePart parses NAME, N:NAME or N-M:NAME, where ranges with the name count from 0.
func ParsePart(text string) (p Part, err error) {
	numbers, name, found := strings.Cut(text, ":")
	first, last, several := strings.Cut(numbers, "-")
	if !several {
		last = first
	}
	a, errA := strconv.ParseUint(first, 10, 31)
	b, errB := strconv.ParseUint(last, 10, 31)
	if !found || errA != nil || errB != nil {
		p.Name = text
	} else {
		p = Part{name, int(a), int(b)}
	}
	if p.Name == "" || p.Last < p.First {
		return p, fmt.Errorf("expected a part of a name, such as ProfilerStep, or with its number, such as "+
			"0:ProfilerStep or 1-3:ProfilerStep, found %q", text)
	}
	return p, nil
}
