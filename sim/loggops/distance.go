// This file takes the latency of messages from the paths of a network.

package loggops

import (
	"fmt"

	"github.com/tracedag/tracedag/dag"
	"github.com/tracedag/tracedag/param"
	"github.com/tracedag/tracedag/sim"
	"github.com/tracedag/tracedag/sim/topology"
)

// distances is the network whose paths give latencies.
type distances struct {
	topology  string // "": none
	placement topology.Placement
	placed    bool                // the caller chose the placement
	latencies *topology.Latencies // nil: none
}

// check loads the network.
func (d *distances) check(m Model, env *sim.Env) (err error) {
	d.placed = env.IsGiven("placement")
	switch {
	case d.topology == "" && d.placed:
		return param.Needs("placement", "--topology")
	case d.topology == "":
		return nil
	case m != Strict:
		return param.Errorf("topology", "expected --model strict, found %s, which has one latency for all pairs of "+
			"ranks", m)
	case env.IsGiven("L"):
		return param.Exclude("topology", "L")
	}
	if d.latencies, err = topology.NewLatencies(env.Context, d.topology); err != nil {
		return fmt.Errorf("--topology: %w", err)
	}
	return d.placement.CheckNames(d.latencies.Names)
}

// place returns the hosts of the ranks. nodes are those of the trace.
func (d *distances) place(r *Replay, nodes []int32, seed int64) ([]uint32, error) {
	by, ranks := d.placement, r.program.Ranks()
	if r.nodes != nil && !d.placed {
		by = topology.NodePlacement
	}
	hosts, err := by.Place(ranks, d.latencies.Hosts(), 1, seed, nodes)
	if err != nil {
		return nil, err
	}
	return hosts, topology.CheckHosts(hosts, 1, ranks, d.latencies.Hosts())
}

// leastLatency returns a lower bound of the latencies between ranks on some hosts, in picoseconds.
func leastLatency(l *topology.Latencies, hosts []uint32) uint64 {
	used := make([]bool, l.Hosts())
	least := l.Least()
	for _, host := range hosts {
		if used[host] {
			least = min(least, l.Between(host, host))
		}
		used[host] = true
	}
	return uint64(max(least, dag.Time(0)))
}
