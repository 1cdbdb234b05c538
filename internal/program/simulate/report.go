package simulate

import (
	"bytes"
	"io"
	"path/filepath"
	"strings"

	"github.com/tracedag/tracedag/internal/cli"
	"github.com/tracedag/tracedag/internal/report"
	"github.com/tracedag/tracedag/sim"
)

// checkReport turns on what the page of --report needs. A file with the ending .json is that of --lowered.
func (r *run) checkReport() error {
	o := r.o
	if o.report == "" {
		return nil
	}
	switch strings.ToLower(filepath.Ext(o.report)) {
	case ".json":
		if o.lower.Counts != "" {
			return cli.Usagef("--report FILE.json and --lowered exclude each other")
		}
		o.lower.Counts, o.report = o.report, ""
		return nil
	case ".html":
	default:
		return cli.Usagef("--report: %s: expected a name that ends with .html, or .json for the counts of --lowered",
			o.report)
	}
	o.breakdown = o.breakdown || o.sweep == ""
	return r.p.CheckOutput(o.report, false)
}

// page writes the page of --report. It returns nil without one.
func (r *run) page(result *sim.Result) (*report.Report, error) {
	if r.o.report == "" {
		return nil, nil
	}
	var document bytes.Buffer
	if err := result.WriteJSON(&document); err != nil {
		return nil, err
	}
	page, err := report.Simulation(document.Bytes())
	if err != nil {
		return nil, err
	}
	return page, r.writePage(page)
}

func (r *run) writePage(page *report.Report) error {
	out, err := r.p.Create(r.o.report, false)
	if err != nil {
		return err
	}
	defer out.Close()
	if err := page.WriteHTML(out); err != nil {
		return err
	}
	return out.Commit()
}

// pageOfPoints collects the points of a sweep or load curve for the page of --report.
type pageOfPoints struct {
	r     *run
	sweep report.Sweep
}

// add adds a point. write writes its JSON document.
func (s *pageOfPoints) add(write func(w io.Writer) error) error {
	if s.r.o.report == "" {
		return nil
	}
	var document bytes.Buffer
	if err := write(&document); err != nil {
		return err
	}
	return s.sweep.Add(document.Bytes())
}

// commit writes the page, if any.
func (s *pageOfPoints) commit() error {
	if s.r.o.report == "" {
		return nil
	}
	page, err := s.sweep.Report()
	if err != nil {
		return err
	}
	return s.r.writePage(page)
}
