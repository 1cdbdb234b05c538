// This file joins the recordings of a job: its ranks, their clocks, and what they lack.

package kineto

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/tracedag/tracedag/dag"
	"github.com/tracedag/tracedag/formats/format"
	"github.com/tracedag/tracedag/formats/internal/clocks"
	"github.com/tracedag/tracedag/internal/par"
)

// job is all recordings of a job.
type job struct {
	o     *readOptions
	ranks []rank          // of the trace, ascending
	index map[int32]int32 // of ranks, by rank of the job
	world int             // ranks of the job
	comms []comm

	origin      int64 // of measured times: nanoseconds
	partnerless int64 // messages with a partner that has no file
	dropped     int64 // communications that some members lack
}

// rank is a rank of the trace.
type rank struct {
	*recording
	global int32 // rank in the job
	talk   *talk
	waits  *waits
	offset dag.Time // of its times to those of the job
	vary   *variation
}

// rankOf returns the rank of the trace with a rank of the job, -1 if that has no file.
func (j *job) rankOf(global int32) int32 {
	if at, ok := j.index[global]; ok {
		return at
	}
	return -1
}

// newJob joins recordings.
func newJob(all []*recording, o *readOptions) (*job, error) {
	j := &job{o: o, ranks: make([]rank, len(all)), index: make(map[int32]int32)}
	if err := setRanks(all); err != nil {
		return nil, err
	}
	slices.SortStableFunc(all, func(a, b *recording) int { return cmp.Compare(a.meta.rank, b.meta.rank) })
	for i, r := range all {
		j.ranks[i] = rank{recording: r, global: int32(r.meta.rank)}
		j.index[j.ranks[i].global] = int32(i)
		j.world = max(j.world, int(r.meta.world), int(r.meta.rank)+1)
	}
	if err := j.keepSteps(); err != nil {
		return nil, err
	}
	j.setClocks()
	par.For(len(all), func(i int) {
		r := &j.ranks[i]
		r.talk, r.waits = r.communicate(), r.findWaits()
	})
	for i := range j.ranks {
		for _, g := range j.ranks[i].talk.groups {
			for _, m := range g.members {
				j.world = max(j.world, int(m)+1)
			}
		}
	}
	for i := range j.ranks {
		j.ranks[i].warn(o.warn)
	}
	if o.own.Replicate {
		return j, j.replicate()
	}
	return j, j.checkPresent()
}

// setRanks finds the ranks of recordings that do not state them.
func setRanks(all []*recording) error {
	names := make([]string, len(all))
	for i, r := range all {
		names[i] = r.name
	}
	byName := ranksByName(names)
	of := make(map[int64]string)
	for i, r := range all {
		if r.meta.rank < 0 {
			if n, ok := parseRank(r.name); ok {
				r.meta.rank = n
			} else if byName != nil {
				r.meta.rank = byName[i]
			} else if len(all) == 1 {
				r.meta.rank = 0
			} else {
				return format.FileErrorf(r.name, "expected the rank in distributedInfo or in the file's name, as in "+
					"rank3.json, found neither")
			}
		}
		if other, ok := of[r.meta.rank]; ok {
			return format.FileErrorf(r.name, "expected one file per rank, found rank %d also in %s", r.meta.rank, other)
		}
		of[r.meta.rank] = r.name
	}
	return nil
}

// setClocks finds the origin of measured times, the first device op of all ranks, and the offset of each rank.
func (j *job) setClocks() {
	start := func(r *rank) (ns int64, ok bool) { // of the first op, rounded down
		us := r.origin
		if us > math.MaxInt64/1000/2 || us < -math.MaxInt64/1000/2 || r.meta.base > math.MaxInt64/2 {
			return 0, false
		}
		return r.meta.base + us*1000, true
	}
	first, found := int64(0), false
	for i := range j.ranks {
		r := &j.ranks[i]
		at, ok := start(r)
		if !ok || r.first() == noTime {
			continue
		}
		if at += floorNs(r.first()); !found || at < first {
			first, found = at, true
		}
	}
	if !found {
		return
	}
	j.origin = first
	apart := false
	for i := range j.ranks {
		r := &j.ranks[i]
		at, ok := start(r)
		at -= first
		if !ok || at > mostMicros*1000 || at < -mostMicros*1000 {
			apart = true
			if at = 0; r.first() != noTime {
				at = -floorNs(r.first())
			}
		}
		r.offset = dag.Time(at) * dag.Nanosecond
	}
	if apart {
		j.o.warn("%s: the clocks of the ranks differ by more than 26 days: their measured times are not on one clock",
			j.ranks[0].name)
	}
	least := noTime // picoseconds beyond whole nanoseconds
	for i := range j.ranks {
		if r := &j.ranks[i]; r.first() != noTime {
			least = min(least, r.first()+r.offset)
		}
	}
	for i := range j.ranks {
		j.ranks[i].offset -= least
	}
}

// alignClocks corrects the clocks of hosts so that collectives end at the same time on all of them. Without names of
// hosts each rank is one.
func (j *job) alignClocks() {
	hosts := make(map[string]int32)
	of := make([]int32, len(j.ranks))
	for i := range j.ranks {
		name := j.ranks[i].meta.host
		if name == "" {
			name = fmt.Sprint("rank ", i)
		}
		if _, ok := hosts[name]; !ok {
			hosts[name] = int32(len(hosts))
		}
		of[i] = hosts[name]
	}
	type key struct{ comm, instance int32 }
	type end struct {
		host int32
		at   dag.Time
	}
	ends, first := make(clocks.Ends), make(map[key]end)
	for i := range j.ranks {
		t := j.ranks[i].talk
		for k := range t.list {
			c := &t.list[k]
			if s, ok := c.op.subkind(); !ok || s.Rooted() || c.unrelated {
				continue
			}
			x := key{t.groups[c.group].comm, c.instance}
			at := j.endOf(int32(i), c)
			if f, ok := first[x]; !ok {
				first[x] = end{of[i], at}
			} else if f.host != of[i] {
				ends.Add(f.host, of[i], int64(f.at-at))
			}
		}
	}
	corrections := ends.Corrections(len(hosts), mostMicros*1_000_000)
	for i := range j.ranks {
		j.ranks[i].offset += dag.Time(corrections[of[i]])
	}
}

// floorNs returns a time in nanoseconds, rounded down.
func floorNs(t dag.Time) int64 {
	ns := int64(t / dag.Nanosecond)
	if t < 0 && t%dag.Nanosecond != 0 {
		ns--
	}
	return ns
}

const noTime = dag.Time(math.MaxInt64)

// first returns the start of the first device op, noTime if there is none.
func (r *recording) first() dag.Time {
	if len(r.ops) == 0 {
		return noTime
	}
	return r.ops[0].start
}

// warn reports damage and events that cannot be used.
func (r *rank) warn(warn func(string, ...any)) {
	r.warnDamage(warn)
	if len(r.ops) == 0 && len(r.operators) == 0 {
		warn("%s: no ops: rank %d is empty", r.name, r.global)
	}
	t := r.talk
	if len(t.foreign) > 0 {
		slices.Sort(t.foreign)
		warn("%s: kernels that communicate without NCCL count as computation: %s", r.name, abbreviated(t.foreign))
	}
	if t.irregular != "" {
		warn("%s: the list of the ranks of group %q is cut and irregular: its rest continues the first two", r.name,
			t.irregular)
	}
}

// warnDamage reports damage and events without a time that can be used.
func (r *recording) warnDamage(warn func(string, ...any)) {
	d := &r.damage
	if d.events > 0 {
		warn("%s: offset %d: damaged events were skipped: %d in all; %d events were read", r.name, d.offset, d.events,
			d.read)
	}
	switch {
	case d.cause != nil:
		warn("%s: offset %d of the decompressed data: %v; the %d whole events before were read", r.name, d.cut,
			d.cause, d.read)
	case d.end:
		warn("%s: offset %d: the file ends early; the %d whole events before were read", r.name, d.cut, d.read)
	}
	if n := r.dropped.instant; n > 0 {
		warn("%s: %d events whose duration is no number of microseconds have a duration of 0", r.name, n)
	}
	if n := r.dropped.endless; n > 0 {
		warn("%s: %d events longer than a week were skipped", r.name, n)
	}
	if n := r.dropped.far + r.dropped.timeless; n > 0 {
		warn("%s: %d events without a time near the others were skipped", r.name, n)
	}
}

// abbreviated returns the first of a list of names for a message.
func abbreviated(names []string) string {
	const most = 3
	short := make([]string, 0, most)
	for _, n := range names[:min(len(names), most)] {
		short = append(short, strings.ToValidUTF8(fmt.Sprintf("%.60s", n), ""))
	}
	text := strings.Join(short, ", ")
	if len(names) > most {
		text += fmt.Sprintf(" and %d more", len(names)-most)
	}
	return text
}

// checkPresent returns an error if ranks without files communicate with those of the trace.
func (j *job) checkPresent() error {
	if j.o.own.OnlyPresent || len(j.ranks) == j.world {
		return nil
	}
	talks := false
	for i := range j.ranks {
		t := j.ranks[i].talk
		talks = talks || slices.ContainsFunc(t.list, func(c communication) bool {
			g := &t.groups[c.group]
			_, isCollective := c.op.subkind()
			return isCollective && len(g.members) != 1 || c.op == opSend || c.op == opRecv
		})
	}
	if !talks {
		return nil
	}
	return format.FileErrorf(j.ranks[0].name, "expected a file of each of the %d ranks of the job, found none of %s: "+
		"name their folder, give --only-present to reduce groups to the ranks with files, or --replicate to copy "+
		"these to the others", j.world, j.missing())
}

// missing lists the ranks without files.
func (j *job) missing() string {
	var parts []string
	present := slices.Sorted(maps.Keys(j.index))
	from := int32(0)
	for _, p := range append(present, int32(j.world)) {
		switch {
		case p == from+1:
			parts = append(parts, fmt.Sprint(from))
		case p > from:
			parts = append(parts, fmt.Sprintf("%d to %d", from, p-1))
		}
		from = p + 1
	}
	const most = 10
	if len(parts) > most {
		parts = append(parts[:most], "others")
	}
	return "rank " + strings.Join(parts, ", ")
}

// report warns about communication that is incomplete.
func (j *job) report() {
	unsized, unnamed, unknown := int64(0), int64(0), int64(0)
	for i := range j.ranks {
		t := j.ranks[i].talk
		unsized += t.unsized
		unnamed += t.unnamed
		for k := range t.list {
			if c := &t.list[k]; t.groups[c.group].unknown && !c.unrelated {
				unknown++
			}
		}
	}
	name := j.ranks[0].name
	if unsized > 0 {
		j.o.warn("%s: the sizes of %d communications are unknown and count as 0: the profiler recorded no shapes",
			name, unsized)
	}
	if unnamed > 0 {
		j.o.warn("%s: %d kernels that communicate count as computation: neither arguments nor annotations tell what "+
			"they did", name, unnamed)
	}
	if unknown > 0 && len(j.ranks) > 2 {
		j.o.warn("%s: the process groups of %d communications are unknown; their members are taken to be all ranks",
			name, unknown)
	}
	if j.partnerless > 0 {
		j.o.warn("%s: %d messages from or to ranks without files or of unknown rank count as computation", name,
			j.partnerless)
	}
	if j.dropped > 0 {
		j.o.warn("%s: %d communications that some members lack, at the ends of profiles or in damaged files, "+
			"count as computation", name,
			j.dropped)
	}
}
