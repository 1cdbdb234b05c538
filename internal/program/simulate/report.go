package simulate

import (
	"path/filepath"
	"strings"

	"github.com/tracedag/tracedag/internal/cli"
	"github.com/tracedag/tracedag/internal/report"
)

// checkReport checks the name of the page. A file with the ending .json is that of --lowered.
func (r *run) checkReport() error {
	switch o := r.o; strings.ToLower(filepath.Ext(o.outputs.Page)) {
	case ".html":
	case ".json":
		if o.lower.Counts != "" {
			return cli.Usagef("--report FILE.json and --lowered exclude each other")
		}
		o.lower.Counts, o.outputs.Page = o.outputs.Page, ""
	default:
		if o.outputs.Page != "" {
			return cli.Usagef("--report: %s: expected a name that ends with .html, or .json for the counts of "+
				"--lowered",
				o.outputs.Page)
		}
	}
	return nil
}

// checkOutputs returns an error about a page or picture that cannot be written.
func (r *run) checkOutputs(sweep, alone bool) error {
	if err := r.o.outputs.Begin(r.kind.Name, sweep, alone, r.o.own.Given); err != nil {
		return cli.Usagef("%v", err)
	}
	return r.o.createOutputs(r.p)
}

// createOutputs sets the function that creates files, and returns an error about the name of one.
func (o *options) createOutputs(p *cli.Program) error {
	o.outputs.Create = func(name string) (report.File, error) { return p.Create(name, false) }
	for _, name := range o.outputs.Names() {
		if err := p.CheckOutput(name, true); err != nil {
			return err
		}
	}
	return nil
}
