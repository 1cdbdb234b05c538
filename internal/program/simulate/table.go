package simulate

import (
	"fmt"
	"io"
	"strconv"
	"text/tabwriter"
	"time"

	"github.com/tracedag/tracedag/internal/cli"
	"github.com/tracedag/tracedag/internal/report"
	"github.com/tracedag/tracedag/internal/units"
	"github.com/tracedag/tracedag/sim"
)

// print prints a result in the form that the flags select.
func (r *run) print(out *cli.Output, l *loaded, result *sim.Result, page *report.Report) error {
	if r.o.csv != "" {
		return out.Commit()
	}
	if r.o.json {
		write := result.WriteJSON
		if page != nil {
			write = page.WriteJSON
		}
		if err := write(out); err != nil {
			return fmt.Errorf("%s: %w", l.name, err)
		}
		out.WriteString("\n")
		return out.Commit()
	}
	for i := range result.Sections {
		if instead := result.Sections[i].Instead; instead != nil {
			if err := instead(out); err != nil {
				return fmt.Errorf("%s: %w", l.name, err)
			}
			return out.Commit()
		}
	}
	printTable(out, l, result)
	return out.Commit()
}

// printTable prints a result as a table.
func printTable(w io.Writer, l *loaded, r *sim.Result) {
	tab := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	rows := summary(l, r)
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
	if n := len(r.Finish); ranks && n > 0 && n <= sim.ListedRanks {
		fmt.Fprintln(tab, "\nrank\tfinish")
		for rank, finish := range r.Finish {
			fmt.Fprintf(tab, "%d\t%v\n", rank, finish)
		}
	}
	for _, late := range []bool{false, true} {
		for i := range r.Sections {
			if s := &r.Sections[i]; s.Tables != nil && !s.Ranks && (s.At == sim.Late) == late {
				s.Tables(tab)
			}
		}
	}
	tab.Flush()
}

// summary returns the rows above the tables: the common rows, each followed by the rows of sections that follow it.
func summary(l *loaded, r *sim.Result) (rows []sim.Row) {
	add := func(row sim.Row) {
		rows = append(rows, row)
		for i := range r.Sections {
			if s := &r.Sections[i]; s.RowsAfter == row.Label {
				rows = append(rows, s.Rows...)
			}
		}
	}
	trace := l.name
	if l.title != "" {
		trace += ": " + strconv.Quote(l.title)
	}
	add(sim.Rowf("trace", "%s, %d ranks, %d ops", trace, l.ranks, r.Ops))
	if r.Settings == "" {
		add(sim.Rowf("backend", "%s", r.Backend))
	} else {
		add(sim.Rowf("backend", "%s, model %s", r.Backend, r.Model))
		add(sim.Rowf("parameters", "%s", r.Settings))
	}
	if t := r.Topology; t != nil && t.Links > 0 {
		add(sim.Rowf("topology", "%v", t))
	}
	if !r.Complete {
		add(sim.Rowf("complete", "no: %s", incomplete(r)))
	}
	add(sim.Rowf("makespan", "%v", r.Makespan))
	if len(r.Finish) > 0 {
		first, last := extremes(r.Finish)
		add(sim.Rowf("finish", "first rank %d at %v, last rank %d at %v", first, r.Finish[first], last, r.Finish[last]))
	}
	add(sim.Rowf("messages", "%d, %s", r.Messages, formatBytes(r)))
	wall := time.Duration(r.Wall)
	add(sim.Rowf("replay", "%d events in %v, %.3g ops/s", r.Events, wall.Round(time.Microsecond), r.OpsPerS))
	for i := range r.Sections {
		if s := &r.Sections[i]; s.RowsAfter == "" {
			rows = append(rows, s.Rows...)
		}
	}
	return rows
}

// formatBytes formats the bytes of the messages sent.
func formatBytes(r *sim.Result) string {
	if r.ExactBytes != nil {
		return r.ExactBytes.String() + "B"
	}
	return units.FormatSize(r.Bytes)
}

// extremes returns the ranks that finish first and last; among equals, the lowest rank.
func extremes(finish []sim.Clock) (first, last int) {
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
