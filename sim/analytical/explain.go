package analytical

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strconv"

	"github.com/tracedag/tracedag/sim"
)

// size is what the time of an access to a pool depends on.
type size struct {
	bytes uint64
	ranks int32 // whose parts the access gathers; 0: as the memory does by default
}

// accesses returns the distinct sizes of the accesses of all ranks, the largest first.
func (p *Program) accesses() (list []size) {
	known := make(map[size]bool)
	last := (*graph)(nil)
	for _, g := range p.graphs {
		if g == last {
			continue
		}
		last = g
		for i := range g.waits {
			if o := &g.ops[i]; o.kind == opMemory && !known[size{o.bytes, o.peer}] {
				known[size{o.bytes, o.peer}] = true
				list = append(list, size{o.bytes, o.peer})
			}
		}
	}
	slices.SortFunc(list, func(a, b size) int {
		return cmp.Or(cmp.Compare(b.bytes, a.bytes), cmp.Compare(a.ranks, b.ranks))
	})
	return list
}

// explained is an access in the result.
type explained struct {
	Bytes  uint64          `json:"bytes_per_npu"`
	Ranks  float64         `json:"gather,omitempty"`
	Stages []explainedLink `json:"links"`
	Waves  float64         `json:"stages,omitempty"` // n of the paper
	Hops   float64         `json:"mean_hops,omitempty"`
	Time   float64         `json:"time_ns"` // without the fraction that accesses drop
}

// explainedLink is the traffic of a link in the result.
type explainedLink struct {
	Name  string  `json:"name"`
	Load  float64 `json:"load_bytes"`
	Share float64 `json:"load_w"` // in units of the bytes per NPU
	Time  float64 `json:"chunk_ns"`
}

// explain returns the section about the accesses.
func (m *Memory) explain(accesses []size) sim.Section {
	list := make([]explained, 0, len(accesses))
	for _, a := range accesses {
		list = append(list, m.explainAccess(a))
	}
	return sim.Section{Key: "memory_pool", Value: list,
		Units: map[string]string{"bytes_per_npu": "B", "gather": "ranks", "stages": "chunks", "mean_hops": "links",
			"links.load_w": "W"},
		Tables: func(w io.Writer) {
			for i := range list {
				list[i].print(w)
			}
		}}
}

func (m *Memory) explainAccess(a size) explained {
	bytes := int64(a.bytes)
	e := explained{Bytes: a.bytes, Time: m.Latency + m.transferTime(bytes, a.ranks)}
	if d := m.Direct; d != nil {
		e.Hops = d.hops
		e.Stages = []explainedLink{{Name: "busiest link", Load: d.load * float64(bytes), Share: d.load,
			Time: float64(d.ChunkSize) / d.Bandwidth}}
		return e
	}
	e.Ranks, e.Waves = m.gathered(a.ranks), m.Chunks(bytes)
	loads, times := m.Loads(bytes, a.ranks), m.Stages(a.ranks)
	for k, load := range loads {
		e.Stages = append(e.Stages, explainedLink{m.linkName(k), load, m.stage(k, e.Ranks).load, times[k]})
	}
	return e
}

// linkName returns the name of the links of stage k.
func (m *Memory) linkName(k int) string {
	if m.Kind == HierarchicalPool {
		return [...]string{"memory group to switch", "switch to node", "node's switch to NPU"}[k]
	}
	switch level := len(m.MultiLevel.Radix) - k; level {
	case 0:
		return "switch to NPU"
	case len(m.MultiLevel.Radix):
		return "memory to root"
	default:
		return fmt.Sprintf("into switch of level %d", level)
	}
}

// print prints the loads and times of an access.
func (e *explained) print(w io.Writer) {
	number := func(x float64) string { return strconv.FormatFloat(x, 'f', -1, 64) }
	fmt.Fprintf(w, "\naccess\tW = %d B per NPU", e.Bytes)
	switch {
	case e.Hops > 0:
		fmt.Fprintf(w, ", %s links on average", number(e.Hops))
	case e.Ranks > 1:
		fmt.Fprintf(w, ", gathered among %s ranks, n = %s stages", number(e.Ranks), number(e.Waves))
	default:
		fmt.Fprintf(w, ", n = %s stages", number(e.Waves))
	}
	fmt.Fprintf(w, ", %s ns\nlink\tload\tload (W)\tchunk (ns)\n", number(e.Time))
	for k, s := range e.Stages {
		fmt.Fprintf(w, "%s\t%s B\t%s W\tt%d = %s\n", s.Name, number(s.Load), number(s.Share), k+1, number(s.Time))
	}
}
