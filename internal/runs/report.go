package runs

import (
	"path/filepath"
	"strings"

	"github.com/tracedag/tracedag/internal/cli"
	"github.com/tracedag/tracedag/internal/report"
	"github.com/tracedag/tracedag/sim"
)

// CheckReport checks the name of the page. A file with the ending .json is that of --lowered.
func (o *Options) CheckReport() error {
	switch strings.ToLower(filepath.Ext(o.Outputs.Page)) {
	case ".html":
	case ".json":
		if o.Lower.Counts != "" {
			return cli.Usagef("--report FILE.json and --lowered exclude each other")
		}
		o.Lower.Counts, o.Outputs.Page = o.Outputs.Page, ""
	default:
		if o.Outputs.Page != "" {
			return cli.Usagef("--report: %s: expected a name that ends with .html, or .json for the counts of "+
				"--lowered", o.Outputs.Page)
		}
	}
	return nil
}

// CheckOutputs returns an error about a page or picture of a backend that cannot be written. alone is for synthetic
// traffic.
func (o *Options) CheckOutputs(p *cli.Program, kind *sim.Kind, sweep, alone bool) error {
	if err := o.Outputs.Begin(kind.Name, sweep, alone, o.Own.Given); err != nil {
		return cli.Usagef("%v", err)
	}
	return o.CreateOutputs(p)
}

// CreateOutputs sets the function that creates files, and returns an error about the name of one.
func (o *Options) CreateOutputs(p *cli.Program) error {
	o.Outputs.Create = func(name string) (report.File, error) { return p.Create(name, false) }
	for _, name := range o.Outputs.Names() {
		if err := p.CheckOutput(name, true); err != nil {
			return err
		}
	}
	return nil
}
