package calibrate

import (
	"fmt"

	"github.com/tracedag/tracedag/sim/fit"
)

// checkRanks returns an error about the first measurement between two ranks, of a test with such a place, one of which
// is no host of the network. It names the file and the line.
func checkRanks(tables []*fit.Table, hosts int, network string) error {
	for _, t := range tables {
		for _, m := range t.Rows {
			if m.Test != fit.PingPong && m.Test != fit.Exchange && m.Test != fit.Window {
				continue
			}
			from, to, err := ends(m.Where)
			if err == nil && (from < 0 || to < 0 || max(from, to) >= hosts) {
				err = fmt.Errorf("expected ranks below %d, the number of hosts of %s, found %d and %d: rank i is on "+
					"host i; give the topology of the machine", hosts, network, from, to)
			}
			if err != nil && m.Line > 0 {
				return fmt.Errorf("%s:%d: %w", t.Name, m.Line, err)
			} else if err != nil {
				return fmt.Errorf("%s: %w", t.Name, err)
			}
		}
	}
	return nil
}
