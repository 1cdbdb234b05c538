// Package gpustats computes statistics of GPU traces: the breakdown of time, the overlap of communication and
// computation, idle time and the lengths of queues, as HolisticTraceAnalysis (HTA) defines them.
// docs/reference/gpustats.md describes them.
package gpustats

import (
	"cmp"
	"slices"

	"github.com/tracedag/tracedag/dag"
	"github.com/tracedag/tracedag/formats/format"
	"github.com/tracedag/tracedag/formats/kineto"
)

// Stats are the statistics of a job. Times are in picoseconds.
type Stats struct {
	Ranks  []Rank   `json:"ranks"`
	Spread []Spread `json:"spread"` // over the ranks with ops
	Types  []Type   `json:"types"`  // sums over ranks

	Stragglers []Straggler `json:"stragglers"` // without Reference

	// Candidates are the ranks that HTA takes for stragglers if it looks for 1, 2, ... ones, with Reference.
	Candidates [][]int32 `json:"straggler_candidates,omitempty"`

	Paths []*Path `json:"critical_paths,omitempty"` // if they were requested

	// Reference: the statistics are those of HTA, with its events, steps and rounding.
	Reference bool `json:"hta"`
}

// Rank is the statistics of a rank.
type Rank struct {
	Rank  int32    `json:"rank"`
	File  string   `json:"file"`
	First dag.Time `json:"first"` // start of the first op; 0 is the first op of the job, with Reference of the file
	Last  dag.Time `json:"last"`  // end of the last op

	KernelTime    dag.Time `json:"kernel_time"`   // Last - First
	Busy          dag.Time `json:"busy"`          // union of all ops
	Idle          dag.Time `json:"idle"`          // KernelTime - Busy
	Compute       dag.Time `json:"compute"`       // union of computation
	NonCompute    dag.Time `json:"non_compute"`   // Busy - Compute
	Communication dag.Time `json:"communication"` // union of communication
	Memory        dag.Time `json:"memory"`        // union of copies and sets
	Overlapped    dag.Time `json:"overlapped"`    // communication during computation
	Exposed       dag.Time `json:"exposed"`       // Communication - Overlapped

	Types   []Type   `json:"types"`
	Streams []Stream `json:"streams"`
	Queues  []Queue  `json:"queues"`
	Kernels []Kernel `json:"kernels"` // computation, communication, memory

	Breakdown []Kernel `json:"kernel_breakdown,omitempty"` // with Reference: the kernels as HTA summarizes them

	Launches    Launches     `json:"launches"`
	Collectives []Collective `json:"collectives"` // without Reference

	SharedBusBW float64 `json:"shared_busbw,omitempty"` // of all communication, in GB/s; without Reference
}

// Type is the time in which exactly these kinds of ops run.
type Type struct {
	Name string   `json:"name"` // such as "COMPUTATION overlapping COMMUNICATION"
	Time dag.Time `json:"time"`
}

// Stream is the time between the ops of a stream. It may be negative if ops overlap.
type Stream struct {
	Device     int64    `json:"device"` // 0 with Stats.Reference
	Stream     int64    `json:"stream"`
	HostWait   dag.Time `json:"host_wait"`   // the op was launched after the end of the previous one
	KernelWait dag.Time `json:"kernel_wait"` // else, if the gap is less than 30 us
	Other      dag.Time `json:"other"`
}

// Queue is the distribution of the length of the queue of a stream: of the launched ops that did not start. It counts
// the lengths after each launch and start.
type Queue struct {
	Device int64   `json:"device"` // 0 with Stats.Reference
	Stream int64   `json:"stream"`
	Count  int     `json:"count"`
	Mean   float64 `json:"mean"`
	Std    float64 `json:"std"` // of a sample; 0 for one length
	Min    float64 `json:"min"`
	P25    float64 `json:"p25"`
	P50    float64 `json:"p50"`
	P75    float64 `json:"p75"`
	Max    float64 `json:"max"`

	Full dag.Time `json:"full"` // time with 1024 ops and more
}

// Spread is the distribution of a time over the ranks with ops.
type Spread struct {
	Name string   `json:"name"` // as the member of Rank
	Min  dag.Time `json:"min"`
	Mean float64  `json:"mean"`
	Max  dag.Time `json:"max"`

	MinRank int32 `json:"min_rank"` // the first one
	MaxRank int32 `json:"max_rank"` // the first one
}

// kind is the kind of an op.
type kind uint8

const (
	computation kind = iota
	communication
	memory
	other // counts as busy only
	kinds = other
)

var kindNames = [kinds]string{"COMPUTATION", "COMMUNICATION", "MEMORY"}

// item is an op on a device, or an event that counts as one.
type item struct {
	start, end dag.Time
	place      place
	kind       kind
	idles      bool // the gap before it counts as idle
	launched   bool
	launch     dag.Time
	name       string
}

// place is a stream.
type place struct{ device, stream int64 }

func (p place) compare(other place) int {
	return cmp.Or(cmp.Compare(p.device, other.device), cmp.Compare(p.stream, other.stream))
}

// change is a change of the length of a queue.
type change struct {
	at    dag.Time
	step  int // 1 or -1
	place place
}

// Compute returns the statistics of profiles: exact ones of the whole trace, or with reference those of HTA, for which
// the profiles need Reference. It fails if the events of a correlation are too many for HTA's copies of them.
func Compute(profiles []*kineto.Profile, reference bool) (*Stats, error) {
	s := &Stats{Ranks: make([]Rank, len(profiles)), Reference: reference}
	steps := make(map[string]bool)
	for _, p := range profiles {
		if reference {
			for _, name := range p.Reference.Steps {
				steps[name] = true
			}
		}
	}
	var sums types
	for i, p := range profiles {
		var items []item
		var changes []change
		var launches []launch
		if reference {
			var err error
			mtia := profiles[0].Reference.MTIA
			if items, changes, launches, err = referenceItems(p.Reference, len(steps) > 1, mtia); err != nil {
				return nil, format.InFile(p.File, err)
			}
		} else {
			items, changes, launches = exactItems(p)
		}
		r := &s.Ranks[i]
		r.Rank, r.File = p.Rank, p.File
		r.Types, r.Streams, r.Queues, r.Collectives = []Type{}, []Stream{}, queues(changes), []Collective{}
		r.Kernels, r.Launches = kernelsOf(items), launchesOf(launches)
		if reference {
			r.Breakdown = summaryOf(r.Kernels)
		} else {
			r.Collectives = collectivesOf(p)
		}
		if len(items) > 0 {
			t := r.measure(items)
			for k := range t {
				sums[k] += t[k]
			}
		}
		if !reference {
			r.SharedBusBW = sharedBandwidth(p, r.Communication)
		}
	}
	s.Types, s.Stragglers = sums.list(), []Straggler{}
	if reference {
		s.Candidates = candidates(profiles, len(steps) > 1)
	} else {
		s.Stragglers = stragglers(profiles)
	}
	s.spread()
	return s, nil
}

// exactItems returns the ops of a profile, the changes of queues and the launches.
func exactItems(p *kineto.Profile) (items []item, changes []change, launches []launch) {
	items = make([]item, len(p.Ops))
	for i := range p.Ops {
		o := &p.Ops[i]
		items[i] = item{o.Start, o.End, place{o.Device, o.Stream}, computation, true, o.Launched, o.LaunchStart,
			o.Name}
		switch o.Class {
		case kineto.Communication:
			items[i].kind = communication
		case kineto.Memory:
			items[i].kind = memory
		}
		if o.Launched {
			changes = append(changes, change{o.LaunchStart, 1, items[i].place}, change{o.Start, -1, items[i].place})
			launches = append(launches, launch{o.LaunchEnd - o.LaunchStart, o.End - o.Start,
				max(0, o.Start-o.LaunchEnd)})
		}
	}
	return items, changes, launches
}

// measure sets the statistics of a rank.
func (r *Rank) measure(items []item) types {
	slices.SortStableFunc(items, func(a, b item) int { return cmp.Compare(a.start, b.start) })
	var of [kinds]union
	var all union
	for i := range items {
		x := &items[i]
		all.add(x.start, x.end)
		if x.kind < kinds {
			of[x.kind].add(x.start, x.end)
		}
	}
	n := len(all.all)
	r.First, r.Last = all.all[0].start, all.all[n-1].end
	r.KernelTime, r.Busy = r.Last-r.First, all.length()
	r.Idle = r.KernelTime - r.Busy
	r.Compute, r.Communication, r.Memory = of[computation].length(), of[communication].length(), of[memory].length()
	r.NonCompute = r.Busy - r.Compute
	r.Overlapped = of[computation].common(&of[communication])
	r.Exposed = r.Communication - r.Overlapped
	t := typesOf(&of)
	r.Types = t.list()
	r.Streams = idleTimes(items)
	return t
}

// mostKernelWait is the gap from which idle time has an unknown reason.
const mostKernelWait = 30 * dag.Microsecond

// idleTimes returns the idle time of each stream, of items by start.
func idleTimes(items []item) []Stream {
	index := make(map[place]int)
	var streams []Stream
	var ends []dag.Time
	for i := range items {
		x := &items[i]
		if !x.idles {
			continue
		}
		k, ok := index[x.place]
		if !ok {
			index[x.place] = len(streams)
			streams = append(streams, Stream{Device: x.place.device, Stream: x.place.stream})
			ends = append(ends, x.end)
			continue
		}
		gap := x.start - ends[k]
		switch {
		case x.launched && x.launch > ends[k]:
			streams[k].HostWait += gap
		case gap < mostKernelWait:
			streams[k].KernelWait += gap
		default:
			streams[k].Other += gap
		}
		ends[k] = x.end
	}
	slices.SortFunc(streams, func(a, b Stream) int {
		return place{a.Device, a.Stream}.compare(place{b.Device, b.Stream})
	})
	return streams
}

// spread sets the spread over ranks.
func (s *Stats) spread() {
	s.Spread = []Spread{}
	for _, m := range [...]struct {
		name string
		of   func(*Rank) dag.Time
	}{
		{"kernel_time", func(r *Rank) dag.Time { return r.KernelTime }},
		{"idle", func(r *Rank) dag.Time { return r.Idle }},
		{"compute", func(r *Rank) dag.Time { return r.Compute }},
		{"non_compute", func(r *Rank) dag.Time { return r.NonCompute }},
		{"communication", func(r *Rank) dag.Time { return r.Communication }},
		{"memory", func(r *Rank) dag.Time { return r.Memory }},
		{"overlapped", func(r *Rank) dag.Time { return r.Overlapped }},
		{"exposed", func(r *Rank) dag.Time { return r.Exposed }},
	} {
		d := Spread{Name: m.name}
		n := 0
		for i := range s.Ranks {
			r := &s.Ranks[i]
			if r.KernelTime == 0 && r.Busy == 0 {
				continue
			}
			v := m.of(r)
			if n == 0 || v < d.Min {
				d.Min, d.MinRank = v, r.Rank
			}
			if n == 0 || v > d.Max {
				d.Max, d.MaxRank = v, r.Rank
			}
			d.Mean += float64(v)
			n++
		}
		if n > 0 {
			d.Mean /= float64(n)
			s.Spread = append(s.Spread, d)
		}
	}
}
