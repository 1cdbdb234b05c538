package simulate

import (
	"fmt"
	"strconv"

	"github.com/tracedag/tracedag/internal/cli"
	"github.com/tracedag/tracedag/internal/report"
	"github.com/tracedag/tracedag/internal/runs"
	"github.com/tracedag/tracedag/sim"
)

// print prints a result in the form that the flags select.
func (r *run) print(out *cli.Output, l *runs.Loaded, result *sim.Result, page *report.Report) error {
	if r.o.csv != "" {
		return out.Commit()
	}
	if r.o.JSON {
		write := result.WriteJSON
		if page != nil {
			write = page.WriteJSON
		}
		if err := write(out); err != nil {
			return fmt.Errorf("%s: %w", l.Name, err)
		}
		out.WriteString("\n")
		return out.Commit()
	}
	for i := range result.Sections {
		if instead := result.Sections[i].Instead; instead != nil {
			if err := instead(out); err != nil {
				return fmt.Errorf("%s: %w", l.Name, err)
			}
			return out.Commit()
		}
	}
	label := l.Name
	if l.Title != "" {
		label += ": " + strconv.Quote(l.Title)
	}
	if err := result.WriteTable(out, fmt.Sprintf("%s, %d ranks, %d ops", label, l.Ranks, result.Ops)); err != nil {
		return err
	}
	return out.Commit()
}
