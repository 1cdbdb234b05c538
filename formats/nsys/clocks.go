// This file maps the measured times of different files to one clock.

package nsys

import (
	"math"
	"slices"

	"github.com/tracedag/tracedag/formats/internal/clocks"
)

// clocks returns, for each report, the offset that maps its times to a common clock on which the earliest session
// begins at 0.
func (j *job) clocks() []int64 {
	offsets := make([]int64, len(j.reports))
	earliest, last := int64(math.MaxInt64), int64(math.MinInt64)
	for _, r := range j.reports {
		if r.epoch <= 0 {
			if len(j.reports) > 1 && !j.options.AlignClocks {
				j.warn("%s: the file has no start time of its session: the measured times of different files are "+
					"not on "+
					"one clock", r.name)
			}
			return offsets
		}
		earliest, last = min(earliest, r.epoch), max(last, r.epoch)
	}
	if last-earliest > latest {
		j.warn("the sessions began more than %d days apart; the measured times of different files are not on one clock",
			int64(latest)/int64(24*3600*1e9))
		return offsets
	}
	for i, r := range j.reports {
		offsets[i] = r.epoch - earliest
	}
	return offsets
}

// align corrects the offsets of the nodes so that collectives end at the same time on all nodes. Each node shifts
// by the median over the collectives that it shares with a corrected node; the first node is the reference.
// Collectives with a root do not count, because their members end at different times.
func (j *job) align(offsets []int64) {
	of := make(map[*report]int64, len(offsets))
	for i, r := range j.reports {
		of[r] = offsets[i]
	}
	ends := make(clocks.Ends) // how much later the first node's ends are
	first := make(map[[2]int32]nodeEnd)
	for g := range j.gpus {
		gpu := &j.gpus[g]
		r := gpu.report
		for _, i := range gpu.events {
			e := &r.events[i]
			for k := e.first; k < e.first+e.count; k++ {
				m := &r.members[k]
				if m.op != opAllReduce && m.op != opAllGather && m.op != opReduceScatter {
					continue
				}
				key := [2]int32{gpu.ranks[m.comm].comm, m.instance}
				f, ok := first[key]
				if !ok {
					first[key] = nodeEnd{gpu.node, e.end + of[r]}
				} else if f.node != gpu.node {
					ends.Add(f.node, gpu.node, f.end-e.end-of[r])
				}
			}
		}
	}
	corrections := ends.Corrections(len(j.hosts), latest)
	for i, r := range j.reports {
		if node := slices.Index(j.hosts, r.host); node >= 0 {
			offsets[i] += corrections[node]
		}
	}
}

// nodeEnd is the end of a collective on a node.
type nodeEnd struct {
	node int32
	end  int64
}
