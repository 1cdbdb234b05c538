package measure

import (
	"fmt"
	"io"
	"math/big"
	"math/bits"
	"strconv"

	"github.com/tracedag/tracedag/dag"
	"github.com/tracedag/tracedag/sim"
)

// part is a part of a breakdown. docs/reference/simulate.md defines them.
type part uint8

const (
	computePart part = iota
	overlappedPart
	overheadPart
	commPart
	remoteMemPart
	localMemPart
	storagePart
	waitPart
	idlePart
	parts
)

// partNames are the JSON names without the unit, and the columns of the table.
var partNames = [parts]struct{ key, column string }{
	{"compute", "compute"}, {"overlapped", "overlapped"}, {"overhead", "overhead"},
	{"exposed_comm", "exposed communication"}, {"exposed_remote_mem", "exposed remote memory"},
	{"exposed_local_mem", "exposed local memory"}, {"exposed_storage", "exposed storage"}, {"wait", "wait"},
	{"idle", "idle"},
}

// Breakdown returns an observer that divides the time of each rank until its finish into parts, and adds the section
// "breakdown". With jobs or steps, which may be nil, it also does so for each job or step.
func Breakdown(jobs *Jobs, steps *Steps) Observer {
	b := &breakdown{jobs: jobs}
	if steps != nil {
		b.steps = &stepTimes{steps: steps}
	}
	return b
}

type breakdown struct {
	jobs   *Jobs
	steps  *stepTimes // nil: without
	layout *sim.Layout
	ranks  []activity   // by rank
	shares [][]activity // with jobs, by rank with ops of several jobs, then as in jobRank.jobs; nil for other ranks
}

// activity is what happens on a rank: the times of each class of ops.
type activity struct {
	classes [classes]intervals
	end     uint64 // latest end of a span
}

// class is a class of activities, by descending priority: an instant belongs to the first class that is active.
type class uint8

const (
	computeClass class = iota
	overheadClass
	commClass
	memClass
	storageClass
	waitClass
	classes
)

var classOf = [...]class{
	sim.CalcSpan: computeClass, sim.SendSpan: overheadClass, sim.RecvSpan: overheadClass, sim.NoiseSpan: overheadClass,
	sim.MemSpan: memClass, sim.IOSpan: storageClass, sim.CommSpan: commClass, sim.WaitSpan: waitClass,
	sim.CollWaitSpan: waitClass,
}

func (b *breakdown) Begin(l *sim.Layout) {
	b.layout = l
	b.ranks = make([]activity, l.Ranks())
	if b.steps != nil {
		b.steps.begin(l)
	}
	if b.jobs == nil {
		return
	}
	b.shares = make([][]activity, l.Ranks())
	for rank := range b.shares {
		if r := &b.jobs.ranks[rank]; r.shared {
			b.shares[rank] = make([]activity, len(r.jobs))
		}
	}
}

func (b *breakdown) Span(s sim.Span) {
	b.add(s.Rank, s.Op, classOf[s.Kind], s.Start, s.End)
	if b.steps != nil {
		b.steps.ended(s.Rank, s.Op, s.End)
	}
	if b.shares != nil && b.shares[s.Rank] != nil {
		a := b.share(s.Rank, s.Op)
		a.end = max(a.end, s.End)
	}
}

func (b *breakdown) Transfer(t sim.Transfer) {
	b.add(t.Source, t.Send, commClass, t.Begun, t.Arrived)
	if t.Recv != sim.NoOp {
		b.add(t.Target, t.Recv, commClass, t.Begun, t.Arrived)
	} else {
		b.ranks[t.Target].classes[commClass].add(t.Begun, t.Arrived)
	}
}

func (b *breakdown) End() error { return nil }

func (b *breakdown) add(rank, op uint32, c class, start, end uint64) {
	b.ranks[rank].classes[c].add(start, end)
	if b.shares != nil && b.shares[rank] != nil {
		b.share(rank, op).classes[c].add(start, end)
	}
}

// share returns the activity of an op's job on a rank with ops of several jobs.
func (b *breakdown) share(rank, op uint32) *activity {
	return &b.shares[rank][b.jobs.ranks[rank].place.At(b.layout.Index(rank, op))]
}

// times are the parts of the time of a rank until its finish, in ticks of Unit: their sum is the finish.
type times struct {
	Unit  dag.Time
	Ticks [parts]uint64
}

// members appends the parts as members of a JSON object, in picoseconds.
func (p *times) members(b []byte) []byte {
	for k, ticks := range p.Ticks {
		if k > 0 {
			b = append(b, ',')
		}
		b = append(b, '"')
		b = append(b, partNames[k].key...)
		b = append(b, `_ps":`...)
		b, _ = sim.Clock{Ticks: ticks, Unit: p.Unit}.AppendText(b)
	}
	return b
}

// divide returns the parts of the time of an activity until a finish.
func (a *activity) divide(finish sim.Clock) times {
	s := a.sweep()
	return times{Unit: finish.Unit, Ticks: s.until(finish.Ticks)}
}

// sweep divides the time of an activity from its start on.
type sweep struct {
	left [classes]cursor
	next [classes]interval // of each class: the first that ends after now; empty: none
	now  uint64
}

func (a *activity) sweep() *sweep {
	s := new(sweep)
	for c := range s.left {
		s.left[c] = a.classes[c].read()
		s.next[c] = s.left[c].next()
	}
	return s
}

// until returns the parts of the time from now until an end, which becomes now.
func (s *sweep) until(end uint64) (ticks [parts]uint64) {
	for s.now < end {
		// The classes that are active now, and the time of the next change.
		active, change, comm := classes, end, false
		for c := range s.next {
			i := &s.next[c]
			for i.end > 0 && i.end <= s.now {
				*i = s.left[c].next()
			}
			switch {
			case i.end == 0:
			case i.start > s.now:
				change = min(change, i.start)
			default:
				change = min(change, i.end)
				active = min(active, class(c))
				comm = comm || class(c) == commClass
			}
		}
		ticks[partOf(active, comm)] += change - s.now
		s.now = change
	}
	return ticks
}

// partOf returns the part of a time in which a class is the first that is active; comm reports whether communication is
// active too.
func partOf(active class, comm bool) part {
	switch {
	case active == computeClass && comm:
		return overlappedPart
	case active == classes:
		return idlePart
	}
	return [...]part{computePart, overheadPart, commPart, remoteMemPart, storagePart, waitPart}[active]
}

// total is a sum of parts in picoseconds, which may exceed the range of dag.Time.
type total [parts]*big.Int

func (t *total) add(p *times) {
	unit := big.NewInt(int64(p.Unit))
	for k, ticks := range p.Ticks {
		if t[k] == nil {
			t[k] = new(big.Int)
		}
		ps := new(big.Int).SetUint64(ticks)
		t[k].Add(t[k], ps.Mul(ps, unit))
	}
}

// MarshalJSON returns the parts in picoseconds.
func (t *total) MarshalJSON() ([]byte, error) {
	return append(t.members([]byte{'{'}), '}'), nil
}

func (t *total) members(b []byte) []byte {
	for k := range t {
		if k > 0 {
			b = append(b, ',')
		}
		b = fmt.Appendf(b, `"%s_ps":%v`, partNames[k].key, t.of(part(k)))
	}
	return b
}

func (t *total) of(k part) *big.Int {
	if t[k] == nil {
		return new(big.Int)
	}
	return t[k]
}

// share returns a part as a share of all.
func (t *total) share(k part) float64 {
	sum := new(big.Int)
	for k := range t {
		sum.Add(sum, t.of(part(k)))
	}
	if sum.Sign() == 0 {
		return 0
	}
	share, _ := new(big.Rat).SetFrac(t.of(k), sum).Float64()
	return share
}

// jobParts are the parts of a job, over all of its ranks.
type jobParts struct {
	name string
	total
}

// MarshalJSON returns the name and the parts in picoseconds.
func (j *jobParts) MarshalJSON() ([]byte, error) {
	name, err := sim.MarshalJSON(j.name)
	if err != nil {
		return nil, err
	}
	return append(j.members(fmt.Appendf(nil, `{"name":%s,`, name)), '}'), nil
}

// rankParts are the parts of all ranks, by rank.
type rankParts []times

// WriteJSON writes a JSON array with an object per rank.
func (r rankParts) WriteJSON(w io.Writer) error {
	line := []byte{'['}
	for rank := range r {
		if rank > 0 {
			line = append(line, ',')
		}
		line = fmt.Appendf(line, `{"rank":%d,`, rank)
		line = append(r[rank].members(line), '}')
		if _, err := w.Write(line); err != nil {
			return err
		}
		line = line[:0]
	}
	_, err := w.Write(append(line, ']'))
	return err
}

// print prints the parts of each rank.
func (r rankParts) print(w io.Writer, finish []sim.Clock) {
	rows := make([]partRow, len(r))
	for rank := range r {
		rows[rank] = partRow{strconv.Itoa(rank), finish[rank].Ticks, r[rank].Ticks}
	}
	if len(r) > 0 {
		printParts(w, "rank", "finish", r[0].Unit, rows)
	}
}

func (b *breakdown) Finish(r *sim.Result) {
	all := make(rankParts, len(r.Finish))
	sum := new(total)
	for rank, finish := range r.Finish {
		if rank < len(b.ranks) {
			all[rank] = b.ranks[rank].divide(finish)
		} else {
			all[rank] = (&activity{}).divide(finish)
		}
		sum.add(&all[rank])
	}
	r.Add(sim.Section{Key: "breakdown", Value: all, At: sim.Detail, RowsAfter: "finish", Ranks: true,
		Rows:   []sim.Row{sim.Rowf("time of ranks", "%s", sum)},
		Tables: func(w io.Writer) { all.print(w, r.Finish) }})
	r.Add(sim.Section{Key: "breakdown_total", Value: sum, At: sim.Detail})
	if b.steps != nil {
		b.steps.finish(r, b.ranks)
	}
	if jobs := b.ofJobs(r, all); jobs != nil {
		r.Add(sim.Section{Key: "breakdown_jobs", Value: jobs, At: sim.Detail})
	}
}

// String returns the parts as shares of their sum, such as "60% compute, 40% wait", without those of 0.
func (t *total) String() string {
	text := ""
	for k := range parts {
		if t.of(k).Sign() == 0 {
			continue
		}
		if text != "" {
			text += ", "
		}
		text += fmt.Sprintf("%.4g%% %s", 100*t.share(k), partNames[k].column)
	}
	if text == "" {
		return "none"
	}
	return text
}

// ofJobs returns the parts of the jobs, or nil without jobs. A job's time on a rank that it has for itself is that of
// the rank; on another one it ends with its last op there.
func (b *breakdown) ofJobs(r *sim.Result, ranks rankParts) []*jobParts {
	if b.jobs == nil || b.layout == nil {
		return nil
	}
	all := make([]*jobParts, len(b.jobs.jobs))
	for i := range all {
		all[i] = &jobParts{name: b.jobs.jobs[i].name}
	}
	for rank := range ranks {
		of := &b.jobs.ranks[rank]
		if !of.shared {
			for _, job := range of.jobs {
				all[job].add(&ranks[rank])
			}
			continue
		}
		for place, job := range of.jobs {
			a := &b.shares[rank][place]
			p := a.divide(sim.Clock{Ticks: a.end, Unit: r.Finish[rank].Unit})
			all[job].add(&p)
		}
	}
	return all
}

// partRow is a row of a table of parts: a time and its parts, in ticks.
type partRow struct {
	label string
	time  uint64
	ticks [parts]uint64
}

// printParts prints the rows of a table if there are few, otherwise the mean and the extremes of each column. The first
// two columns are named. Parts that are 0 in all rows have no column.
func printParts(w io.Writer, label, time string, unit dag.Time, rows []partRow) {
	if len(rows) == 0 {
		return
	}
	if len(rows) > sim.ListedRanks {
		rows = spread(rows)
	}
	var used [parts]bool
	for i := range rows {
		for k, ticks := range rows[i].ticks {
			used[k] = used[k] || ticks > 0
		}
	}
	fmt.Fprintf(w, "\n%s\t%s", label, time)
	for k, name := range partNames {
		if used[k] {
			fmt.Fprintf(w, "\t%s", name.column)
		}
	}
	fmt.Fprintln(w)
	for i := range rows {
		r := &rows[i]
		fmt.Fprintf(w, "%s\t%v", r.label, sim.Clock{Ticks: r.time, Unit: unit})
		for k := range used {
			if used[k] {
				fmt.Fprintf(w, "\t%v", sim.Clock{Ticks: r.ticks[k], Unit: unit})
			}
		}
		fmt.Fprintln(w)
	}
}

// spread returns the mean, the least and the largest value of each column.
func spread(rows []partRow) []partRow {
	mean, least, most := partRow{label: "mean"}, rows[0], rows[0]
	least.label, most.label = "min", "max"
	var time wide
	var sums [parts]wide
	for i := range rows {
		r := &rows[i]
		time.add(r.time)
		least.time, most.time = min(least.time, r.time), max(most.time, r.time)
		for k, ticks := range r.ticks {
			sums[k].add(ticks)
			least.ticks[k], most.ticks[k] = min(least.ticks[k], ticks), max(most.ticks[k], ticks)
		}
	}
	n := uint64(len(rows))
	mean.time = time.over(n)
	for k := range sums {
		mean.ticks[k] = sums[k].over(n)
	}
	return []partRow{mean, least, most}
}

// wide is a sum of ticks.
type wide struct{ high, low uint64 }

func (w *wide) add(ticks uint64) {
	var carry uint64
	w.low, carry = bits.Add64(w.low, ticks, 0)
	w.high += carry
}

// over returns the mean of n addends.
func (w *wide) over(n uint64) uint64 {
	mean, _ := bits.Div64(w.high, w.low, n)
	return mean
}

// picoseconds returns the sum of ticks of the given unit in picoseconds.
func (w *wide) picoseconds(unit dag.Time) *big.Int {
	ps := new(big.Int).SetUint64(w.high)
	ps.Add(ps.Lsh(ps, 64), new(big.Int).SetUint64(w.low))
	return ps.Mul(ps, big.NewInt(int64(unit)))
}
