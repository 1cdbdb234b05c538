package simulate

import (
	"fmt"
	"strconv"

	"github.com/tracedag/tracedag/internal/cli"
	"github.com/tracedag/tracedag/internal/report"
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
	label := l.name
	if l.title != "" {
		label += ": " + strconv.Quote(l.title)
	}
	if err := result.WriteTable(out, fmt.Sprintf("%s, %d ranks, %d ops", label, l.ranks, result.Ops)); err != nil {
		return err
	}
	return out.Commit()
}
