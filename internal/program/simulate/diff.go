package simulate

import (
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/pflag"

	"github.com/tracedag/tracedag/formats/format"
	"github.com/tracedag/tracedag/internal/cli"
	"github.com/tracedag/tracedag/internal/report"
	"github.com/tracedag/tracedag/sim/measure"
)

// exitTrouble is the exit status of a comparison that failed, as in diff and cmp.
const exitTrouble = 2

// keptFlags are the flags for kept results, with those of outputs.
var keptFlags = []string{"quiet", "verbose", "max-memory", "no-sync"}

// checkKept returns an error about a flag that has no effect on kept results.
func (o *options) checkKept(flag string, others ...string) (err error) {
	o.Flags.Visit(func(f *pflag.Flag) {
		if err == nil && f.Name != flag && !slices.Contains(others, f.Name) && !slices.Contains(keptFlags, f.Name) {
			err = cli.Usagef("--%s runs no simulation: --%s has no effect on it", flag, f.Name)
		}
	})
	if err == nil && o.JSON && o.csv != "" {
		err = cli.Usagef("--json and --csv exclude each other")
	}
	return err
}

// readKept reads a file of results, and returns its name, too.
func readKept(p *cli.Program, arg string) (kept []measure.Kept, text []byte, name string, err error) {
	in, err := p.Open(arg, false)
	if err != nil {
		return nil, nil, "", err
	}
	defer in.Close()
	kept, text, err = measure.LoadKept(p.Context(), in.Reader, in.Name)
	return kept, text, in.Name, format.InFile(in.Name, err)
}

// drawKept writes the page and the pictures of kept results.
func (o *options) drawKept(p *cli.Program, args []string) error {
	if len(args) > 0 || !o.Outputs.Any() {
		return cli.Usagef("--from-result needs --report or --plot, and no trace")
	}
	if err := o.checkKept("from-result", o.drawFlags...); err != nil {
		return err
	}
	if ending := strings.ToLower(filepath.Ext(o.Outputs.Page)); o.Outputs.Page != "" && ending != ".html" {
		return cli.Usagef("--report: %s: expected a name that ends with .html", o.Outputs.Page)
	}
	if err := o.CreateOutputs(p); err != nil {
		return err
	}
	all := make([]report.Kept, len(o.fromResults))
	var first []measure.Kept
	for i, arg := range o.fromResults {
		kept, text, name, err := readKept(p, arg)
		if err != nil {
			return err
		}
		all[i] = report.Kept{Name: name, Document: text}
		if first == nil {
			first = kept
		} else {
			all[i].Changes = measure.CompareKept(first, kept).Changes()
		}
	}
	return o.Outputs.WriteKept(all)
}

// diff compares two files of results.
func (o *options) diff(p *cli.Program, args []string) error {
	if len(args) != 2 {
		return cli.Usagef("--diff compares two files of results, found %d", len(args))
	}
	if _, err := p.InputNames(args); err != nil {
		return err
	}
	if err := o.checkKept("diff", "json", "csv"); err != nil {
		return err
	}
	p.Trouble = exitTrouble
	var kept [2][]measure.Kept
	var names [2]string
	for i, arg := range args {
		var err error
		if kept[i], _, names[i], err = readKept(p, arg); err != nil {
			return err
		}
	}
	d := measure.CompareKept(kept[0], kept[1])
	out, err := p.Create("", false)
	if err != nil {
		return err
	}
	defer out.Close()
	switch {
	case o.JSON:
		err = d.WriteJSON(out, names[0], names[1])
	case o.csv != "":
		err = d.WriteCSV(out)
	case !d.Equal:
		err = d.WriteTable(out, names[0], names[1])
	}
	if err != nil {
		return err
	}
	if err := out.Commit(); err != nil {
		return err
	}
	if !d.Equal {
		return cli.Reported(cli.ExitFailed)
	}
	p.Explain("%s and %s have equal results, %d values", names[0], names[1], d.Compared)
	return nil
}
