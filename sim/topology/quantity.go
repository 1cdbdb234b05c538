package topology

import (
	"fmt"

	"github.com/tracedag/tracedag/dag"
	"github.com/tracedag/tracedag/internal/units"
)

// parseRate parses a rate such as 200Gbps or 25GB/s, or a number in Gb/s, and returns bit/s.
func parseRate(s string) (int64, error) {
	rate, err := units.ParseRate(s, "Gbps")
	bits, exact := rate.BitsPerSecond()
	if err != nil || !exact || bits > maxRate {
		return 0, fmt.Errorf("expected a rate such as 200Gbps, or a number of Gb/s, up to 8Tbps, found %q", s)
	}
	return bits, nil
}

// parseTime parses a time such as 500ns or 1.5us, or a number in nanoseconds.
func parseTime(s string) (dag.Time, error) {
	t, err := units.ParseTime(s, dag.Nanosecond)
	if err != nil || t > maxLatency {
		return 0, fmt.Errorf("expected a time such as 500ns, or a number of nanoseconds, up to %v, found %q",
			maxLatency, s)
	}
	return t, nil
}
