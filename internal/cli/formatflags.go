// This file declares the flags for the options of formats.

package cli

import (
	"slices"
	"strings"
	"sync"

	"github.com/spf13/cobra"

	"github.com/tracedag/tracedag/docs"
	"github.com/tracedag/tracedag/formats/format"
	"github.com/tracedag/tracedag/internal/manual"
)

// formatFlags are the flags for the read options or the write options of formats. A nil *formatFlags has none.
type formatFlags struct {
	options *Options
	tables  []*format.OptionTable
	seed    bool // --seed has no other use than that of formats

	mutex  sync.Mutex
	taken  map[string]bool // options that the format of some trace has
	lacked []string        // options that the format of some trace lacks, in the order of the tables
}

// newFormatFlags adds the flags of the formats' tables to the command.
// After a run, warnings of p name those without effect.
func newFormatFlags(p *Program, cmd *cobra.Command, formats format.List,
	table func(*format.Format) *format.OptionTable) *formatFlags {
	f := &formatFlags{options: NewOptions(cmd), taken: map[string]bool{}}
	for i := range formats {
		g := manual.Group{
			Owner: formats[i].Name, Title: formats[i].Title, Doc: "formats/" + formats[i].Name, Topic: true,
			Quiet: true,
		}
		if t := table(&formats[i]); t != nil {
			g.Params = t.New().Params()
		}
		if docs.Has(g.Doc) {
			manual.Of(cmd).Add(g)
		}
	}
	for i := range formats {
		t := table(&formats[i])
		if t == nil || slices.Contains(f.tables, t) {
			continue
		}
		f.tables = append(f.tables, t)
		g := manual.Group{Owner: t.Name, Title: t.Title, Topic: true, Params: t.New().Params()}
		for k := range formats {
			if table(&formats[k]) == t {
				g.Names = append(g.Names, formats[k].Name)
			}
		}
		f.options.Add(cmd, g)
	}
	before := cmd.PostRun
	cmd.PostRun = func(cmd *cobra.Command, args []string) {
		if before != nil {
			before(cmd, args)
		}
		f.warnUnused(p)
	}
	return f
}

// configured are the options of the formats, set by the flags.
type configured map[*format.OptionTable]format.Options

// of returns the options of a table, nil if there is none.
func (c configured) of(t *format.OptionTable) format.Options {
	if own := c[t]; own != nil || t == nil {
		return own
	}
	return t.New()
}

// imitates reports whether any options select the output of another program.
func (c configured) imitates() bool {
	for _, own := range c {
		if i, ok := own.(format.Imitator); ok && i.Imitates() {
			return true
		}
	}
	return false
}

// apply returns the options of all formats.
func (f *formatFlags) apply() (configured, error) {
	all := configured{}
	if f == nil {
		return all, nil
	}
	for _, t := range f.tables {
		own := t.New()
		if err := f.options.Apply(own.Params()); err != nil {
			return nil, err
		}
		if c, ok := own.(format.Checker); ok {
			if err := c.Check(); err != nil {
				return nil, FlagError(err)
			}
		}
		all[t] = own
	}
	return all, nil
}

// ranksOption is the option of which warnings state the ranks of the trace.
const ranksOption = "ranks"

// ignoresRanks reports whether the command line sets the option --ranks, which the table lacks.
func (f *formatFlags) ignoresRanks(of *format.OptionTable) bool {
	if f == nil || len(f.options.Owners(ranksOption)) == 0 || !f.options.Given(ranksOption) {
		return false
	}
	return of == nil || of.New().Params().Find(ranksOption) == nil
}

// misplaced returns warnings, or an error, about flags for options that the trace's format lacks.
func (f *formatFlags) misplaced(of *format.OptionTable, trace string,
	found *format.Format) (warnings []string, err error) {
	if f == nil {
		return nil, nil
	}
	known := map[string]bool{}
	if of != nil {
		for _, name := range of.New().Params().Names() {
			known[name] = true
		}
	}
	f.mutex.Lock()
	defer f.mutex.Unlock()
	for name := range known {
		f.taken[name] = true
	}
	for _, t := range f.tables {
		for _, name := range t.New().Params().Names() {
			if known[name] || !f.options.Given(name) {
				continue
			}
			known[name] = true
			warning := ""
			if t.Misplaced != nil {
				if warning, err = t.Misplaced(name, f.options.Text(name), trace, found); err != nil {
					return nil, Usagef("%v", err)
				}
			}
			if warning != "" {
				warnings = append(warnings, warning)
			} else if f.belongs(name) && !slices.Contains(f.lacked, name) {
				f.lacked = append(f.lacked, name)
			}
		}
	}
	return warnings, nil
}

// belongs reports whether a flag is for options of formats only and has no warning of its own.
func (f *formatFlags) belongs(name string) bool {
	if name == "seed" {
		return f.seed
	}
	return name != ranksOption && f.options.collects(f.options.flags.Lookup(name))
}

// warnUnused warns about flags for options that the format of no trace had.
func (f *formatFlags) warnUnused(p *Program) {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	for _, name := range f.lacked {
		if !f.taken[name] {
			p.Warn("--%s has no effect: no trace of this run has a format with this option (%s)", name,
				strings.Join(f.options.Owners(name), ", "))
		}
	}
}
