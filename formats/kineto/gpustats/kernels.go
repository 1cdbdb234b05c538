// This file measures kernels, their launches, and collectives.

package gpustats

import (
	"cmp"
	"math"
	"slices"

	"github.com/tracedag/tracedag/dag"
	"github.com/tracedag/tracedag/formats/kineto"
)

// Kernel is the ops of a kind with a name.
type Kernel struct {
	Kind  string   `json:"kind"` // as in Type
	Name  string   `json:"name"`
	Count int64    `json:"count"`
	Sum   dag.Time `json:"sum"`
	Min   dag.Time `json:"min"`
	Mean  float64  `json:"mean"`
	Max   dag.Time `json:"max"`
	Std   float64  `json:"std"` // of a sample; 0 for one op

	kind  kind
	times []dag.Time
}

// kernelsOf returns the ops by kind and name, those with the greatest sums first.
func kernelsOf(items []item) []Kernel {
	type key struct {
		kind kind
		name string
	}
	index := make(map[key]int)
	list := []Kernel{}
	for i := range items {
		x := &items[i]
		if x.kind >= kinds {
			continue
		}
		k, ok := index[key{x.kind, x.name}]
		if !ok {
			k = len(list)
			index[key{x.kind, x.name}] = k
			list = append(list, Kernel{Kind: kindNames[x.kind], Name: x.name, kind: x.kind})
		}
		list[k].times = append(list[k].times, x.end-x.start)
	}
	for i := range list {
		list[i].measure()
	}
	slices.SortStableFunc(list, func(a, b Kernel) int {
		return cmp.Or(cmp.Compare(a.kind, b.kind), cmp.Compare(b.Sum, a.Sum), cmp.Compare(a.Name, b.Name))
	})
	return list
}

// measure sets the distribution of times, and frees them.
func (k *Kernel) measure() {
	k.Count = int64(len(k.times))
	k.Min, k.Max = slices.Min(k.times), slices.Max(k.times)
	for _, t := range k.times {
		k.Sum += t
	}
	k.Mean = float64(k.Sum) / float64(k.Count)
	if k.Count > 1 {
		squares := 0.0
		for _, t := range k.times {
			squares += (float64(t) - k.Mean) * (float64(t) - k.Mean)
		}
		k.Std = math.Sqrt(squares / float64(k.Count-1))
	}
	k.times = nil
}

// launch is the launch of an op.
type launch struct{ call, op, delay dag.Time }

// Launches is the distribution of the delays of launches: from the end of the call to the start of the op, 0 if the op
// starts earlier.
type Launches struct {
	Count int     `json:"count"`
	Mean  float64 `json:"mean"`
	P50   float64 `json:"p50"`
	P99   float64 `json:"p99"`

	Max dag.Time `json:"max"`

	Short      int `json:"short"`       // ops that are shorter than their call
	LongCalls  int `json:"long_calls"`  // calls of more than 50 us
	LongDelays int `json:"long_delays"` // delays of more than 100 us
}

func launchesOf(list []launch) (l Launches) {
	if len(list) == 0 {
		return l
	}
	l.Count = len(list)
	delays := make([]dag.Time, len(list))
	for i, x := range list {
		delays[i] = x.delay
		l.Mean += float64(x.delay)
		if x.op < x.call {
			l.Short++
		}
		if x.call > 50*dag.Microsecond {
			l.LongCalls++
		}
		if x.delay > 100*dag.Microsecond {
			l.LongDelays++
		}
	}
	slices.Sort(delays)
	l.Mean /= float64(l.Count)
	l.P50, l.P99, l.Max = quantile(delays, 0.5), quantile(delays, 0.99), delays[len(delays)-1]
	return l
}

// Collective is the communication of a rank with the same kind, group and size.
type Collective struct {
	Kind  string   `json:"kind"`            // "group" if a kernel executes several calls, "unknown" if it is unknown
	Group string   `json:"group,omitempty"` // name of the process group
	Ranks int      `json:"ranks"`           // members of the group
	Size  int64    `json:"size"`            // the greater of the bytes given and got; -1: unknown
	Count int64    `json:"count"`
	Sum   dag.Time `json:"sum"` // of durations, with the time in which a kernel waits for other ranks
	Min   dag.Time `json:"min"`
	Max   dag.Time `json:"max"`

	AlgBW float64 `json:"algbw,omitempty"` // algorithm bandwidth in GB/s: Size * Count / Sum; 0: unknown
	BusBW float64 `json:"busbw,omitempty"` // bus bandwidth in GB/s; 0: unknown or undefined

	factor float64
	moved  float64 // bytes times factors, of all; -1: unknown
}

// moved returns the size of a call times its bus factor: the bytes that the links of the rank carry. ok is false if it
// is unknown or undefined.
func moved(c *kineto.Call) (bytes float64, ok bool) {
	switch {
	case !c.Sized:
		return 0, false
	case c.Kind == "alltoallv":
		return float64(max(c.In, c.Out) - c.Own), c.Own >= 0
	}
	f := busFactor(c.Kind, c.Size)
	return f * float64(max(c.In, c.Out)), f > 0
}

// busFactor returns the ratio of bus and algorithm bandwidth with n ranks, by the definitions of nccl-tests and
// PARAM; 0: undefined. That of uneven all-to-alls depends on the rank's own block.
func busFactor(kind string, n int) float64 {
	if n < 1 {
		return 0
	}
	part := float64(n-1) / float64(n)
	switch kind {
	case "allreduce":
		return 2 * part
	case "allgather", "reducescatter", "alltoall", "gather", "scatter":
		return part
	case "bcast", "reduce", "send", "recv":
		return 1
	}
	return 0
}

// sharedBandwidth returns the bytes of all communication, times its factors, over the time in which any runs, in GB/s.
// Calls of unknown size do not count.
func sharedBandwidth(p *kineto.Profile, communication dag.Time) float64 {
	sum := 0.0
	for i := range p.Ops {
		for k := range p.Ops[i].Calls {
			if bytes, ok := moved(&p.Ops[i].Calls[k]); ok {
				sum += bytes
			}
		}
	}
	if communication == 0 {
		return 0
	}
	return sum / float64(communication) * 1000
}

// collectivesOf returns the communication of a profile, that with the greatest sums first.
func collectivesOf(p *kineto.Profile) []Collective {
	type key struct {
		kind, group string
		ranks       int
		size        int64
	}
	index := make(map[key]int)
	list := []Collective{}
	for i := range p.Ops {
		o := &p.Ops[i]
		if len(o.Calls) == 0 {
			continue
		}
		c := &o.Calls[0]
		k := key{c.Kind, c.Group, c.Size, max(c.In, c.Out)}
		if !c.Sized {
			k.size = -1
		}
		if len(o.Calls) > 1 {
			k.kind, k.size = "group", 0
			for _, c := range o.Calls {
				k.size += max(c.In, c.Out)
			}
		} else if c.Kind == "" {
			k.kind = "unknown"
		}
		took := o.End - o.Start
		n, ok := index[k]
		if !ok {
			n = len(list)
			index[k] = n
			list = append(list, Collective{Kind: k.kind, Group: k.group, Ranks: k.ranks, Size: k.size, Min: took,
				factor: busFactor(k.kind, k.ranks)})
		}
		x := &list[n]
		if bytes, ok := moved(c); !ok || len(o.Calls) > 1 {
			x.moved = -1
		} else if x.moved >= 0 {
			x.moved += bytes
		}
		x.Count++
		x.Sum += took
		x.Min, x.Max = min(x.Min, took), max(x.Max, took)
	}
	for i := range list {
		if x := &list[i]; x.Size > 0 && x.Sum > 0 {
			x.AlgBW = float64(x.Size) * float64(x.Count) / float64(x.Sum) * 1000 // bytes per picosecond are TB/s
			x.BusBW = x.AlgBW * x.factor
			if x.Kind == "alltoallv" {
				x.BusBW = max(x.moved, 0) / float64(x.Sum) * 1000
			}
		}
	}
	slices.SortStableFunc(list, func(a, b Collective) int { return cmp.Compare(b.Sum, a.Sum) })
	return list
}
