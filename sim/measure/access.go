package measure

import (
	"cmp"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/tracedag/tracedag/dag"
	"github.com/tracedag/tracedag/dag/attr"
	"github.com/tracedag/tracedag/internal/report"
	"github.com/tracedag/tracedag/internal/units"
	"github.com/tracedag/tracedag/sim"
)

// ioLatency is the distribution of storage access latencies, by [NearestRank].
type ioLatency struct {
	Distribution[dag.Time]
}

// MarshalJSON returns the distribution with times in whole picoseconds.
func (l *ioLatency) MarshalJSON() ([]byte, error) {
	picoseconds := func(t dag.Time) string { return strconv.FormatInt(int64(t), 10) }
	return l.JSON("_ps", picoseconds, "count", "mean", "p50", "p99", "p99.9", "max"), nil
}

// IsStorage reports whether a trace consists of lowered storage accesses.
func IsStorage(meta dag.Meta) bool {
	return attr.HasStorage(meta.Attrs)
}

// Accesses returns an observer that measures the latency of each storage access lowered to messages: from the start of
// its first op on its host to the end of its last op. It adds the section "io_latency" and others whose names begin
// with it. trace is the lowered trace with its attributes. If list is not nil, the observer writes a CSV line per
// access to it; a write error is the caller's to notice. With figures, it also adds distribution functions.
func Accesses(trace *dag.Trace, list io.Writer, figures bool) Observer {
	return &accessTimes{trace: trace, list: list, figures: figures, places: make(map[attr.IOAccess]uint32)}
}

// access is a storage access. Its times are in the backend's unit.
type access struct {
	number     attr.IOAccess
	host       uint32 // rank
	recorded   bool   // record is known
	record     attr.IORecord
	pending    uint32 // number of its sends and receives that have not run
	start, end uint64 // start is math.MaxUint64 until an op has run
}

// accessTimes records the start and end of each access.
type accessTimes struct {
	trace    *dag.Trace
	list     io.Writer // nil: none
	figures  bool
	places   map[attr.IOAccess]uint32
	accesses []access
	op       []uint32 // by op of the program: the place of its access plus 1, and ran; 0: none
	unit     dag.Time
}

// ran is the bit of an op that has run.
const ran = 1 << 31

func (a *accessTimes) Begin(l *sim.Layout) {
	a.unit = l.Unit
	a.op = make([]uint32, l.NumOps())
	for rank, r := range a.trace.Ranks {
		for op := range r.Attrs.Len() {
			text := r.Attrs.At(op)
			number, ok := attr.ParseIOAccess(text)
			if !ok {
				continue
			}
			place, seen := a.places[number]
			if !seen {
				place = uint32(len(a.accesses))
				a.places[number] = place
				a.accesses = append(a.accesses, access{number: number, host: uint32(rank), start: math.MaxUint64})
			}
			one := &a.accesses[place]
			if !one.recorded {
				one.record, one.recorded = attr.ParseIORecord(text)
			}
			if r.Kind[op] != dag.Calc {
				one.pending++
			}
			a.op[l.Start[rank]+uint32(op)] = place + 1
		}
	}
}

func (a *accessTimes) Span(s sim.Span) {
	place := a.op[s.Op]
	if place == 0 || s.Kind == sim.WaitSpan {
		return
	}
	one := &a.accesses[place&^ran-1]
	one.start, one.end = min(one.start, s.Start), max(one.end, s.End)
	if place&ran == 0 && s.Kind != sim.CalcSpan {
		one.pending--
		a.op[s.Op] |= ran
	}
}

func (a *accessTimes) Transfer(sim.Transfer) {}
func (a *accessTimes) End() error            { return nil }

// latency returns the latency of an access, and whether it has ended. In a complete run, an access without busy streams
// has no bytes and therefore latency 0.
func (a *accessTimes) latency(one *access, complete bool) (t dag.Time, ended bool) {
	if one.start == math.MaxUint64 {
		return 0, complete
	}
	return dag.Time(one.end-one.start) * a.unit, complete || one.pending == 0
}

func (a *accessTimes) Finish(r *sim.Result) {
	slices.SortFunc(a.accesses, func(x, y access) int { return cmp.Compare(x.number, y.number) })
	if a.list != nil {
		a.table(r.Complete).WriteCSV(a.list)
	}
	var all ioGroup
	kinds := [2]ioGroup{{name: "read"}, {name: "write"}}
	hosts, devices := make(map[int64]*ioGroup), make(map[int64]*ioGroup)
	for i := range a.accesses {
		one := &a.accesses[i]
		t, ended := a.latency(one, r.Complete)
		if !ended {
			continue
		}
		all.add(one, t)
		groupOf(hosts, int64(one.host)).add(one, t)
		if one.recorded {
			kinds[kindOf(one)].add(one, t)
			groupOf(devices, int64(one.record.Unit)).add(one, t)
		}
	}
	if len(all.latencies) == 0 {
		return
	}
	total := &ioLatency{NearestRank(slices.Clone(all.latencies))}
	r.Add(sim.Section{Key: "io_latency", Value: total, Units: map[string]string{"": "ps"}, RowsAfter: "messages",
		Rows: []sim.Row{
			sim.Rowf("I/O latency", "%d accesses, mean %v, p50 %v, p99 %v, p99.9 %v, max %v", total.Count,
				dag.Time(math.Round(total.Mean)), total.P50, total.P99, total.P999, total.Max),
		}})
	byHost, byUnit := ioGroups(hosts), ioGroups(devices)
	var byKind, bySize []ioGroup
	for i := range kinds {
		if len(kinds[i].latencies) > 0 {
			byKind = append(byKind, kinds[i])
			bySize = append(bySize, kinds[i].bySize()...)
		}
	}
	for i := range bySize {
		bySize[i].summarize()
	}
	for i := range byKind {
		byKind[i].summarize()
	}
	buckets := newBuckets(a, r.Complete)
	add := func(key string, t *sim.Table) {
		if t.Rows > 0 {
			r.Add(sim.Section{Key: key, Value: t})
		}
	}
	add("io_latency_by_kind", ioTable(byKind, []string{"kind"}, func(t *sim.Table, g *ioGroup) { t.Text(g.name) }))
	add("io_latency_by_size", ioTable(bySize, []string{"kind", "size", "from_bytes", "to_bytes"},
		func(t *sim.Table, g *ioGroup) {
			t.Text(g.name)
			t.Text(g.bin.Name)
			t.Uint(g.bin.From)
			if g.bin.Open() {
				t.Null()
			} else {
				t.Uint(g.bin.To)
			}
		}))
	add("io_latency_by_host", ioTable(byHost, []string{"host"}, func(t *sim.Table, g *ioGroup) { t.Int(g.number) }))
	add("io_latency_by_unit", ioTable(byUnit, []string{"unit"}, func(t *sim.Table, g *ioGroup) { t.Int(g.number) }))
	add("io_latency_histogram", bucketTable(buckets))
	if a.figures && len(byKind) > 0 {
		r.Add(sim.Section{Key: "io_latency_cdf", Value: ioCurves(byKind, bySize)})
	}
	r.Add(sim.Section{Tables: func(w io.Writer) {
		printIO(w, byKind, bySize, byHost, byUnit)
		printBuckets(w, buckets)
	}})
}

// kindOf returns 0 for a read and 1 for a write.
func kindOf(one *access) int {
	if one.record.Write {
		return 1
	}
	return 0
}

// table lists the accesses.
func (a *accessTimes) table(complete bool) *sim.Table {
	t := &sim.Table{Columns: []string{"access", "host", "unit", "kind", "bytes", "start_ps", "latency_ps"}}
	for i := range a.accesses {
		one := &a.accesses[i]
		t.Begin()
		t.Uint(uint64(one.number))
		t.Uint(uint64(one.host))
		if one.recorded {
			t.Int(int64(one.record.Unit))
			t.Text([...]string{"read", "write"}[kindOf(one)])
			t.Int(one.record.Bytes)
		} else {
			t.Null()
			t.Null()
			t.Null()
		}
		if one.start == math.MaxUint64 {
			t.Null()
		} else {
			t.Int(int64(dag.Time(one.start) * a.unit))
		}
		if latency, ended := a.latency(one, complete); ended {
			t.Int(int64(latency))
		} else {
			t.Null()
		}
	}
	return t
}

// ioGroup is a group of accesses.
type ioGroup struct {
	name      string
	number    int64 // of a host or unit
	bin       Bin   // of sizes
	sizes     []uint64
	latencies []dag.Time
	summary   Distribution[dag.Time]
}

func (g *ioGroup) add(one *access, t dag.Time) {
	g.sizes, g.latencies = append(g.sizes, uint64(max(0, one.record.Bytes))), append(g.latencies, t)
}

func (g *ioGroup) summarize() { g.summary = NearestRank(g.latencies) }

// groupOf returns the group of a number.
func groupOf(groups map[int64]*ioGroup, number int64) *ioGroup {
	if groups[number] == nil {
		groups[number] = &ioGroup{number: number}
	}
	return groups[number]
}

// ioGroups returns the groups with their summaries, by number.
func ioGroups(groups map[int64]*ioGroup) (all []ioGroup) {
	for _, g := range groups {
		g.summarize()
		all = append(all, *g)
	}
	slices.SortFunc(all, func(x, y ioGroup) int { return cmp.Compare(x.number, y.number) })
	return all
}

// bySize divides a group by decades of size.
func (g *ioGroup) bySize() (groups []ioGroup) {
	for _, bin := range new(Bins).Divide(g.sizes) {
		part := ioGroup{name: g.name, bin: bin}
		for _, i := range bin.Members {
			part.latencies = append(part.latencies, g.latencies[i])
		}
		groups = append(groups, part)
	}
	return groups
}

// ioTable lists groups. label adds the cells that identify a group.
func ioTable(groups []ioGroup, labels []string, label func(*sim.Table, *ioGroup)) *sim.Table {
	t := &sim.Table{Columns: append(labels, "count", "mean_ps", "p50_ps", "p95_ps", "p99_ps", "p99.9_ps", "max_ps")}
	for i := range groups {
		s := &groups[i].summary
		t.Begin()
		label(t, &groups[i])
		t.Int(s.Count)
		t.Float(s.Mean, 0)
		for _, v := range [...]dag.Time{s.P50, s.P95, s.P99, s.P999, s.Max} {
			t.Int(int64(v))
		}
	}
	return t
}

// ioCurve is the distribution function of the latencies of a group.
type ioCurve struct {
	Kind  string        `json:"kind"`
	Size  *string       `json:"size"` // nil: all sizes
	Count int           `json:"count"`
	Curve *report.Curve `json:"cdf"`
}

// ioCurves returns the distribution functions of groups by kind, and by kind and size, whose latencies are ascending.
func ioCurves(byKind, bySize []ioGroup) (all []ioCurve) {
	const pointsBySize = 128
	curve := func(g *ioGroup, points int) *report.Curve {
		latencies := make([]float64, len(g.latencies))
		for i, t := range g.latencies {
			latencies[i] = float64(t)
		}
		return report.NewCurve(latencies, points, func(t float64) string { return strconv.FormatInt(int64(t), 10) })
	}
	for i := range byKind {
		g := &byKind[i]
		all = append(all, ioCurve{g.name, nil, len(g.latencies), curve(g, report.CurvePoints)})
	}
	for i := range bySize {
		g := &bySize[i]
		all = append(all, ioCurve{g.name, &g.bin.Name, len(g.latencies), curve(g, pointsBySize)})
	}
	return all
}

// ioListed is the largest number of hosts and of units in the human-readable table.
const ioListed = 5

// printIO prints the latencies by kind, size, host and unit.
func printIO(w io.Writer, byKind, bySize, byHost, byUnit []ioGroup) {
	header := func(label string) { fmt.Fprintf(w, "\n%s\tnumber\tmean\tp50\tp95\tp99\tp99.9\tmax\n", label) }
	line := func(label string, g *ioGroup) {
		s := &g.summary
		fmt.Fprintf(w, "%s\t%d\t%v\t%v\t%v\t%v\t%v\t%v\n", label, s.Count, Short(dag.Time(math.Round(s.Mean))),
			Short(s.P50), Short(s.P95), Short(s.P99), Short(s.P999), Short(s.Max))
	}
	if len(byKind) > 0 {
		header("accesses")
	}
	for i := range byKind {
		kind := &byKind[i]
		line(kind.name, kind)
		for k := range bySize {
			if bySize[k].name == kind.name {
				size := " of more"
				if bin := &bySize[k].bin; !bin.Open() {
					size = " up to " + units.FormatSize(int64(bin.To))
				}
				line(kind.name+size, &bySize[k])
			}
		}
	}
	for _, part := range [...]struct {
		name   string
		groups []ioGroup
	}{{"host", byHost}, {"unit", byUnit}} {
		if len(part.groups) < 2 {
			continue
		}
		slowest := slices.Clone(part.groups)
		slices.SortStableFunc(slowest, func(x, y ioGroup) int { return cmp.Compare(y.summary.Mean, x.summary.Mean) })
		header(fmt.Sprintf("slowest %ss of %d", part.name, len(slowest)))
		for i := range min(ioListed, len(slowest)) {
			line(fmt.Sprintf("%s %d", part.name, slowest[i].number), &slowest[i])
		}
	}
}

// bucket is the accesses with latencies from From to To, To not included.
type bucket struct {
	from, to dag.Time
	counts   [3]int // reads, writes, unknown
}

// newBuckets returns the histogram of latencies, with bounds of 1, 2 and 5 times powers of ten, from the lowest to the
// highest latency.
func newBuckets(a *accessTimes, complete bool) []bucket {
	var bounds []dag.Time
	for power := dag.Time(1); ; power *= 10 {
		bounds = append(bounds, power)
		if power <= dag.MaxTime/2 {
			bounds = append(bounds, 2*power)
		}
		if power <= dag.MaxTime/5 {
			bounds = append(bounds, 5*power)
		}
		if power > dag.MaxTime/10 {
			break
		}
	}
	bounds = append(bounds, dag.MaxTime)
	all := make([]bucket, len(bounds))
	for i := range all {
		if all[i].to = bounds[i]; i > 0 {
			all[i].from = bounds[i-1]
		}
	}
	first, last := len(all), -1
	for i := range a.accesses {
		one := &a.accesses[i]
		t, ended := a.latency(one, complete)
		if !ended {
			continue
		}
		at, exact := slices.BinarySearch(bounds, t)
		if exact {
			at++
		}
		at = min(at, len(all)-1)
		kind := 2
		if one.recorded {
			kind = kindOf(one)
		}
		all[at].counts[kind]++
		first, last = min(first, at), max(last, at)
	}
	return all[first : last+1]
}

func bucketTable(buckets []bucket) *sim.Table {
	t := &sim.Table{Columns: []string{"latency", "from_ps", "to_ps", "reads", "writes", "accesses"}}
	for i := range buckets {
		b := &buckets[i]
		t.Begin()
		t.Text(fmt.Sprintf("%v..%v", b.from, b.to))
		t.Int(int64(b.from))
		t.Int(int64(b.to))
		t.Int(int64(b.counts[0]))
		t.Int(int64(b.counts[1]))
		t.Int(int64(b.counts[0] + b.counts[1] + b.counts[2]))
	}
	return t
}

// barWidth is the length of the longest bar of a histogram.
const barWidth = 40

// printBuckets prints the histogram.
func printBuckets(w io.Writer, buckets []bucket) {
	most := 1
	for i := range buckets {
		most = max(most, buckets[i].counts[0]+buckets[i].counts[1]+buckets[i].counts[2])
	}
	fmt.Fprintln(w, "\nlatency below\treads\twrites\taccesses")
	for i := range buckets {
		b := &buckets[i]
		n := b.counts[0] + b.counts[1] + b.counts[2]
		fmt.Fprintf(w, "%v\t%d\t%d\t%d\t%s\n", b.to, b.counts[0], b.counts[1], n,
			strings.Repeat("#", (n*barWidth+most-1)/most))
	}
}
