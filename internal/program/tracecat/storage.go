// This file prints the storage accesses of a trace.

package tracecat

import (
	"fmt"

	"github.com/tracedag/tracedag/dag"
	"github.com/tracedag/tracedag/internal/units"
)

// maxHot is the number of units in the short summary.
const maxHot = 5

func (s *summary) writeStorage(t textTable, all bool) {
	io := s.Storage
	if io == nil {
		return
	}
	c := &io.Requests
	t.row("  reads", "%d (%.1f %%), %s", c.Reads, 100*float64(c.Reads)/float64(c.Total()), amount(c.ReadBytes))
	t.row("  writes", "%d (%.1f %%), %s", c.Writes, 100*float64(c.Writes)/float64(c.Total()), amount(c.WriteBytes))
	if io.IOPS > 0 {
		t.row("  rate", "%.4g requests/s, %.4g MB/s, from %v to %v", io.IOPS, io.Rate/1e6, io.First, io.Last)
	}
	for i, size := range io.Sizes {
		name := ""
		if i == 0 {
			name = "  sizes"
		}
		t.row(name, "%s to %s: %s", units.FormatSize(size.From), units.FormatSize(size.To),
			requests(size.Reads, size.Writes))
	}
	t.row("  units", "%d", io.Units)
	for i, u := range io.Hot {
		if i == maxHot && !all {
			break
		}
		t.row(fmt.Sprintf("    %d", u.Unit), "rank %d: %s, %s", u.Rank, requests(u.Reads, u.Writes), amount(u.Bytes()))
	}
	if !all {
		return
	}
	for i, at := range io.Times {
		end := io.Last
		if i+1 < len(io.Times) {
			end = io.Times[i+1].Start
		}
		rate := ""
		if seconds := float64(end-at.Start) / float64(dag.Second); seconds > 0 {
			rate = fmt.Sprintf(", %.4g requests/s, %.4g MB/s", float64(at.Total())/seconds,
				at.Bytes().Float()/seconds/1e6)
		}
		name := ""
		if i == 0 {
			name = "  over time"
		}
		t.row(name, "from %v: %s%s", at.Start, requests(at.Reads, at.Writes), rate)
	}
}

func requests(reads, writes int64) string {
	return fmt.Sprintf("%d reads, %d writes", reads, writes)
}
