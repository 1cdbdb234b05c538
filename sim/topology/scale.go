package topology

import (
	"fmt"
	"math"

	"github.com/tracedag/tracedag/dag"
)

// Scale multiplies the latencies of links and switches, and the rates of links. It returns an error if one is beyond
// the limits of a [Link]; then some are multiplied.
func (n *Network) Scale(latency, rate float64) error {
	for i := range n.Links {
		l := &n.Links[i]
		bits, wire := math.Round(float64(l.Rate)*rate), math.Round(float64(l.Latency)*latency)
		if !(bits >= 1 && bits <= maxRate && wire >= 0 && wire <= float64(maxLatency)) {
			return fmt.Errorf("expected links of 1 bit/s to 8 Tb/s and latencies of at most %v, found link %d with "+
				"%g bit/s and %g ps", maxLatency, i, bits, wire)
		}
		l.Rate, l.Latency = int64(bits), dag.Time(wire)
	}
	for i, t := range n.SwitchLatency {
		within := math.Round(float64(t) * latency)
		if !(within >= 0 && within <= float64(maxLatency)) {
			return fmt.Errorf("expected latencies of switches of at most %v, found %g ps", maxLatency, within)
		}
		n.SwitchLatency[i] = dag.Time(within)
	}
	return nil
}
