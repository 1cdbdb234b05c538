package simulate

import (
	"bytes"
	"slices"

	"github.com/spf13/pflag"

	"github.com/tracedag/tracedag/formats/format"
	"github.com/tracedag/tracedag/internal/cli"
	"github.com/tracedag/tracedag/memory"
	"github.com/tracedag/tracedag/sim/measure"
)

// exitTrouble is the exit status of a comparison that failed, as in diff and cmp.
const exitTrouble = 2

// keptValue is the least memory of a value of a kept result in bytes.
const keptValue = 80

// diffFlags are the flags that a comparison uses.
var diffFlags = []string{"diff", "json", "csv", "quiet", "verbose", "max-memory", "no-sync"}

// checkDiff returns an error about a flag that a comparison does not use.
func (o *options) checkDiff() (err error) {
	o.flags.Visit(func(f *pflag.Flag) {
		if err == nil && !slices.Contains(diffFlags, f.Name) {
			err = cli.Usagef("--diff compares results as they are: --%s has no effect on them", f.Name)
		}
	})
	if err == nil && o.json && o.csv != "" {
		err = cli.Usagef("--json and --csv exclude each other")
	}
	return err
}

// diff compares two files of results.
func (o *options) diff(p *cli.Program, args []string) error {
	if len(args) != 2 {
		return cli.Usagef("--diff compares two files of results, found %d", len(args))
	}
	if _, err := p.InputNames(args); err != nil {
		return err
	}
	if err := o.checkDiff(); err != nil {
		return err
	}
	p.Trouble = exitTrouble
	var kept [2][]measure.Kept
	var names [2]string
	for i, arg := range args {
		in, err := p.Open(arg, false)
		if err != nil {
			return err
		}
		text, err := memory.ReadContent(p.Context(), in.Reader)
		names[i] = in.Name
		in.Close()
		if err != nil {
			return format.InFile(in.Name, err)
		}
		values := bytes.Count(text, []byte(",")) + bytes.Count(text, []byte("[")) + bytes.Count(text, []byte("{"))
		if err := memory.Check(p.Context(), "values", keptValue, int64(values)); err != nil {
			return format.InFile(in.Name, err)
		}
		if kept[i], err = measure.ReadKept(text, in.Name); err != nil {
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
	case o.json:
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
