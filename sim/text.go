package sim

import (
	"fmt"
	"io"
	"text/tabwriter"
	"time"

	"github.com/tracedag/tracedag/internal/units"
)

// WriteTable writes the result as tables for people. The label describes the trace, such as its name.
func (r *Result) WriteTable(w io.Writer, label string) error {
	tab := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	rows := r.summary(label)
	for _, row := range rows {
		fmt.Fprintf(tab, "%s\t%s\n", row.Label, row.Text)
	}
	ranks := true
	for i := range r.Sections {
		if s := &r.Sections[i]; s.Ranks {
			s.Tables(tab)
			ranks = false
		}
	}
	if n := len(r.Finish); ranks && n > 0 && n <= ListedRanks {
		fmt.Fprintln(tab, "\nrank\tfinish")
		for rank, finish := range r.Finish {
			fmt.Fprintf(tab, "%d\t%v\n", rank, finish)
		}
	}
	for _, late := range []bool{false, true} {
		for i := range r.Sections {
			if s := &r.Sections[i]; s.Tables != nil && !s.Ranks && (s.At == Late) == late {
				s.Tables(tab)
			}
		}
	}
	return tab.Flush()
}

// summary returns the rows above the tables: the common rows, each followed by the rows of sections that follow it.
func (r *Result) summary(label string) (rows []Row) {
	add := func(row Row) {
		rows = append(rows, row)
		for i := range r.Sections {
			if s := &r.Sections[i]; s.RowsAfter == row.Label {
				rows = append(rows, s.Rows...)
			}
		}
	}
	add(Rowf("trace", "%s", label))
	if r.Settings == "" {
		add(Rowf("backend", "%s", r.Backend))
	} else {
		add(Rowf("backend", "%s, model %s", r.Backend, r.Model))
		add(Rowf("parameters", "%s", r.Settings))
	}
	if t := r.Topology; t != nil && t.Links > 0 {
		add(Rowf("topology", "%v", t))
	}
	if !r.Complete {
		add(Rowf("complete", "no: %s", r.incomplete()))
	}
	add(Rowf("makespan", "%v", r.Makespan))
	if len(r.Finish) > 0 {
		first, last := extremes(r.Finish)
		add(Rowf("finish", "first rank %d at %v, last rank %d at %v", first, r.Finish[first], last, r.Finish[last]))
	}
	add(Rowf("messages", "%d, %s", r.Messages, formatBytes(r)))
	wall := time.Duration(r.Wall)
	add(Rowf("replay", "%d events in %v, %.3g ops/s", r.Events, wall.Round(time.Microsecond), r.OpsPerS))
	for i := range r.Sections {
		if s := &r.Sections[i]; s.RowsAfter == "" {
			rows = append(rows, s.Rows...)
		}
	}
	return rows
}

// formatBytes formats the bytes of the messages sent.
func formatBytes(r *Result) string {
	if r.ExactBytes != nil {
		return r.ExactBytes.String() + "B"
	}
	return units.FormatSize(r.Bytes)
}

// extremes returns the ranks that finish first and last; among equals, the lowest rank.
func extremes(finish []Clock) (first, last int) {
	for rank, f := range finish {
		if f.Ticks < finish[first].Ticks {
			first = rank
		}
		if f.Ticks > finish[last].Ticks {
			last = rank
		}
	}
	return first, last
}

// Explain prints the reasons of an incomplete run with the given function. The messages begin with a name.
func (r *Result) Explain(print func(message string, args ...any), name string) {
	if r.Aborted != "" {
		print("%s: aborted: %s", name, r.Aborted)
	}
	print("%s: incomplete: %s", name, r.incomplete())
	for _, s := range r.Stuck {
		op := fmt.Sprintf("op %d (%s)", s.Op, s.Kind)
		if s.Node != "" {
			op = fmt.Sprintf("op %d (%s, node %s)", s.Op, s.Kind, s.Node)
		}
		print("%s: rank %d %s waits for %s", name, s.Rank, op, s.Waits)
	}
	if total := r.NeverRun + max(r.Unmatched.Count(), r.Unended); total > int64(len(r.Stuck)) {
		print("%s: and %d more", name, total-int64(len(r.Stuck)))
	}
	for i := range r.Sections {
		for _, line := range r.Sections[i].Incomplete {
			print("%s: %s", name, line)
		}
	}
}

// incomplete returns the counts of ops and messages that did not complete.
func (r *Result) incomplete() string {
	s := fmt.Sprintf("%d of %d ops never ran, ", r.NeverRun, r.Ops)
	if r.Unended > 0 {
		s += fmt.Sprintf("%d more did not complete, ", r.Unended)
	}
	return s + fmt.Sprintf("%d messages and receives found no partner", r.Unmatched.Count())
}
