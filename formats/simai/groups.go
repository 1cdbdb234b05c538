// This file divides ranks into groups, as SimCCL does.

package simai

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/tracedag/tracedag/dag"
)

// group is a kind of group of ranks.
type group int8

const (
	noGroup         group = iota - 1
	tensorGroup           // TP
	dataGroup             // DP
	expertGroup           // EP
	dataExpertGroup       // DP_EP: data parallel replicas of the same experts
	numGroups
)

var groupNames = [numGroups]string{"TP", "DP", "EP", "DP_EP"}

// layout is the division of ranks into groups.
type layout struct {
	ranks, tp, dp, pp, ep int
	stated                bool // the number of ranks is known
	simai                 bool // SimCCL's expert groups, which ignore the stages
}

// layout returns the division of the given number of ranks; 0: of all_gpus.
func (w *workload) layout(ranks int, compat bool) (*layout, error) {
	value := func(name string) int { return int(min(max(w.header[name], 1), maxRanks+1)) }
	l := &layout{ranks: ranks, tp: value("model_parallel_NPU_group"), pp: value("pp"), ep: value("ep"), stated: true,
		simai: compat}
	if l.ranks == 0 {
		l.stated = w.header["all_gpus"] > 0
		l.ranks = value("all_gpus")
		if !l.stated {
			if l.tp > maxRanks/l.pp/l.ep {
				l.ranks = maxRanks + 1
			} else {
				l.ranks = l.tp * l.pp * l.ep
			}
		}
	}
	if ranks == 0 && l.ranks > maxStated {
		return nil, fmt.Errorf("expected at most %d GPUs, found more; request them with --ranks", maxStated)
	}
	if l.ranks > maxRanks {
		return nil, fmt.Errorf("expected at most %d GPUs, found more", maxRanks)
	}
	if l.tp > l.ranks/l.pp || l.ranks%(l.tp*l.pp) != 0 {
		return nil, fmt.Errorf("%d GPUs: expected a multiple of %d, tensor parallel size (model_parallel_NPU_group) "+
			"%d times %d pipeline stages (pp); set another number with --ranks", l.ranks, l.tp*l.pp, l.tp, l.pp)
	}
	if l.dp = l.ranks / (l.tp * l.pp); l.dp%l.ep != 0 {
		return nil, fmt.Errorf("%d GPUs are %d data parallel replicas: expected a multiple of the expert parallel "+
			"size (ep) %d; set another number with --ranks", l.ranks, l.dp, l.ep)
	}
	if l.simai && l.pp > 1 && w.uses(dataExpertGroup) && l.dp > l.ep {
		return nil, fmt.Errorf("SimAI's groups DP_EP overlap for %d pipeline stages, so that no rank program can use "+
			"them; read without --compat", l.pp)
	}
	return l, nil
}

// uses reports whether a row has a collective of the kind of group.
func (w *workload) uses(g group) bool {
	for i := range w.rows {
		for _, p := range w.rows[i].phases {
			if p.group == g {
				return true
			}
		}
	}
	return false
}

// size returns the number of ranks of each group.
func (l *layout) size(g group) int {
	switch g {
	case tensorGroup:
		return l.tp
	case dataGroup:
		return l.dp
	case expertGroup:
		return l.ep
	}
	return l.dp / l.ep
}

// of returns the group of a rank: its first member and the distance between members.
//
// Ranks are numbered tensor position first, then pipeline stage, then replica. With SimCCL's expert groups, experts are
// neighboring blocks of TP ranks, whatever the stage; otherwise the replicas of a stage. Both agree for one stage.
func (l *layout) of(g group, rank int) (first, stride int) {
	replica := l.ranks / l.dp // distance of replicas
	switch {
	case l.size(g) == 1:
		return rank, 1
	case g == tensorGroup:
		return rank / l.tp * l.tp, 1
	case g == dataGroup:
		return rank % replica, replica
	}
	if l.simai {
		replica = l.tp
	}
	position, within := rank/replica, rank%replica
	if g == expertGroup {
		return position/l.ep*l.ep*replica + within, replica
	}
	return position%l.ep*replica + within, l.ep * replica
}

// addComms adds the communicators of a kind of group to the trace and returns that of each rank.
func (l *layout) addComms(t *dag.Trace, g group) []int32 {
	comms := make([]int32, l.ranks)
	size, number := l.size(g), 0
	for rank := range comms {
		first, stride := l.of(g, rank)
		if rank != first {
			comms[rank] = comms[first]
			continue
		}
		comms[rank] = int32(len(t.Comms))
		t.Comms = append(t.Comms, dag.Comm{Name: strings.ToLower(groupNames[g]) + strconv.Itoa(number),
			Ranges: []dag.Range{{First: int32(first), Stride: int32(stride), Count: int32(size)}}})
		number++
	}
	return comms
}
