package analytical

import (
	"fmt"
	"io"
	"slices"

	"github.com/tracedag/tracedag/dag"
	"github.com/tracedag/tracedag/sim"
)

// printBreakdown prints how NPUs spend their time: per NPU if there are few, otherwise the mean and the extremes.
func printBreakdown(w io.Writer, s *NPUStats) {
	if len(s.Cycles) == 0 {
		return
	}
	rows := []struct {
		label string
		of    []uint64
	}{
		{"finish", s.Cycles}, {"compute", s.Breakdown.Compute}, {"exposed communication", s.Breakdown.ExposedComm},
		{"exposed remote memory", s.Breakdown.ExposedRemote}, {"exposed local memory", s.Breakdown.ExposedLocal},
		{"idle", s.Breakdown.Idle},
	}
	fmt.Fprint(w, "\nNPU")
	for _, r := range rows {
		fmt.Fprintf(w, "\t%s", r.label)
	}
	fmt.Fprintln(w)
	line := func(name string, of func([]uint64) uint64) {
		fmt.Fprint(w, name)
		for _, r := range rows {
			fmt.Fprintf(w, "\t%v", sim.Clock{Ticks: of(r.of), Unit: dag.Nanosecond})
		}
		fmt.Fprintln(w)
	}
	if n := len(s.Cycles); n <= sim.ListedRanks {
		for npu := range n {
			line(fmt.Sprint(npu), func(times []uint64) uint64 { return times[npu] })
		}
		return
	}
	line("mean", mean)
	line("min", slices.Min[[]uint64])
	line("max", slices.Max[[]uint64])
}

// mean returns the mean in whole nanoseconds, 0 without times.
func mean(times []uint64) uint64 {
	if len(times) == 0 {
		return 0
	}
	sum := 0.0
	for _, t := range times {
		sum += float64(t)
	}
	return uint64(sum/float64(len(times)) + 0.5)
}
