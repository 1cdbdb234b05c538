package measure

import (
	"fmt"
	"io"
	"math"
	"math/big"

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
// "breakdown". With jobs, which may be nil, it also does so for each job.
func Breakdown(jobs *Jobs) Observer {
	return &breakdown{jobs: jobs}
}

type breakdown struct {
	jobs   *Jobs
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
	p := times{Unit: finish.Unit}
	var left [classes][]interval
	for c := range left {
		a.classes[c].unite()
		left[c] = a.classes[c].all
	}
	for now := uint64(0); now < finish.Ticks; {
		// The classes that are active now, and the time of the next change.
		active, next, comm := classes, finish.Ticks, false
		for c := range classes {
			for len(left[c]) > 0 && left[c][0].end <= now {
				left[c] = left[c][1:]
			}
			if len(left[c]) == 0 {
				continue
			}
			switch i := left[c][0]; {
			case i.start > now:
				next = min(next, i.start)
			default:
				next = min(next, i.end)
				active = min(active, c)
				comm = comm || c == commClass
			}
		}
		p.Ticks[partOf(active, comm)] += next - now
		now = next
	}
	return p
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
		Tables: func(w io.Writer) { printParts(w, r.Finish, all) }})
	r.Add(sim.Section{Key: "breakdown_total", Value: sum, At: sim.Detail})
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

// printParts prints the parts of each rank if there are few, otherwise the mean and the extremes of each part.
func printParts(w io.Writer, finish []sim.Clock, ranks rankParts) {
	if len(ranks) == 0 {
		return
	}
	var used [parts]bool
	for rank := range ranks {
		for k, ticks := range ranks[rank].Ticks {
			used[k] = used[k] || ticks > 0
		}
	}
	fmt.Fprint(w, "\nrank\tfinish")
	for k, name := range partNames {
		if used[k] {
			fmt.Fprintf(w, "\t%s", name.column)
		}
	}
	fmt.Fprintln(w)
	unit := finish[0].Unit
	line := func(label string, finish uint64, of func(k int) uint64) {
		fmt.Fprintf(w, "%s\t%v", label, sim.Clock{Ticks: finish, Unit: unit})
		for k := range used {
			if used[k] {
				fmt.Fprintf(w, "\t%v", sim.Clock{Ticks: of(k), Unit: unit})
			}
		}
		fmt.Fprintln(w)
	}
	if len(ranks) <= sim.ListedRanks {
		for rank := range ranks {
			line(fmt.Sprint(rank), finish[rank].Ticks, func(k int) uint64 { return ranks[rank].Ticks[k] })
		}
		return
	}
	for _, row := range []struct {
		label string
		of    func(values func(rank int) uint64) uint64
	}{
		{"mean", func(values func(rank int) uint64) uint64 {
			sum := new(big.Int)
			for rank := range ranks {
				sum.Add(sum, new(big.Int).SetUint64(values(rank)))
			}
			return sum.Div(sum, big.NewInt(int64(len(ranks)))).Uint64()
		}},
		{"min", func(values func(rank int) uint64) uint64 {
			least := uint64(math.MaxUint64)
			for rank := range ranks {
				least = min(least, values(rank))
			}
			return least
		}},
		{"max", func(values func(rank int) uint64) uint64 {
			most := uint64(0)
			for rank := range ranks {
				most = max(most, values(rank))
			}
			return most
		}},
	} {
		line(row.label, row.of(func(rank int) uint64 { return finish[rank].Ticks }), func(k int) uint64 {
			return row.of(func(rank int) uint64 { return ranks[rank].Ticks[k] })
		})
	}
}
