// This file lists and checks published sets.

package tracecat

import (
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/tracedag/tracedag/dag"
	"github.com/tracedag/tracedag/internal/cli"
	"github.com/tracedag/tracedag/internal/dataset"
	"github.com/tracedag/tracedag/internal/publish"
	"github.com/tracedag/tracedag/internal/units"
)

// showSet prints what the flags select of a published set.
func (v *view) showSet(p *cli.Program, cmd *cobra.Command, folder string, flags cli.ReadFlags) error {
	for _, name := range []string{"ops", "matrix", "check", "stats", "report"} {
		if cmd.Flags().Changed(name) {
			return cli.Usagef("--%s is about a trace, %s is a published set; name one of its stores", name, folder)
		}
	}
	return v.listSet(p, folder, flags)
}

// listSet prints the catalogue of a published set: a table, CSV, or a JSON object per trace. Without a catalogue, it
// lists the stores of the set.
func (v *view) listSet(p *cli.Program, folder string, flags cli.ReadFlags) error {
	rows, err := publish.Catalogue(folder)
	if errors.Is(err, fs.ErrNotExist) {
		stores, findErr := storesOf(folder)
		if findErr != nil {
			return findErr
		}
		p.Warn("%s: no %s: reading every store", folder, dataset.CatalogueName)
		return v.list(p, stores, flags)
	}
	if err != nil {
		return err
	}
	out, err := p.Create("-", false)
	if err != nil {
		return err
	}
	defer out.Close()
	rows = rows[:v.limit(len(rows))]
	switch {
	case v.json:
		err = writeRowsJSON(out, rows)
	case v.csv:
		err = writeRowsCSV(out, rows)
	default:
		err = writeRows(out, rows)
	}
	if err != nil {
		return err
	}
	return out.Commit()
}

// storesOf returns the stores in the folder of stores of a set.
func storesOf(folder string) (stores []string, err error) {
	err = filepath.WalkDir(filepath.Join(folder, dataset.TracesName), func(name string, e fs.DirEntry,
		err error) error {
		if err == nil && !e.IsDir() && strings.HasSuffix(name, ".parquet") {
			stores = append(stores, name)
		}
		return err
	})
	return stores, err
}

// writeRows prints the columns by which people select.
func writeRows(w io.Writer, rows []dataset.Row) error {
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprint(table, "trace\tworkload\tformat\tranks\tops\tmessages\tsent\tcritical path\tlicence\ttitle\n")
	for i := range rows {
		r := &rows[i]
		sent := "-"
		if r.BytesSent != nil {
			sent = units.FormatSize(*r.BytesSent)
		}
		title := "-"
		if r.Title != "" {
			title = textOf(r.Title)
		}
		fmt.Fprintf(table, "%s\t%s\t%s\t%d\t%d\t%d\t%s\t%v\t%s\t%s\n", plain(r.Trace), plain(r.Workload),
			plain(r.SourceFormat), r.Ranks, r.Ops, r.Messages, sent, dag.Time(r.CriticalPathPS), plain(r.License),
			title)
	}
	return table.Flush()
}

// writeRowsJSON writes a line per trace with all columns in their order.
func writeRowsJSON(w io.Writer, rows []dataset.Row) error {
	for i := range rows {
		line := []byte{'{'}
		for k, v := range rows[i].Values() {
			if k > 0 {
				line = append(line, ',')
			}
			line = fmt.Appendf(line, "%q:", v.Name)
			value, err := marshal(v.Value)
			if err != nil {
				return err
			}
			line = append(line, value...)
		}
		if _, err := w.Write(append(line, '}', '\n')); err != nil {
			return err
		}
	}
	return nil
}

// marshal returns a value as JSON without escapes for HTML.
func marshal(value any) ([]byte, error) {
	var b strings.Builder
	encoder := json.NewEncoder(&b)
	encoder.SetEscapeHTML(false)
	err := encoder.Encode(value)
	return []byte(strings.TrimSuffix(b.String(), "\n")), err
}

// writeRowsCSV writes all columns. NULL is empty; tags are separated by semicolons.
func writeRowsCSV(w io.Writer, rows []dataset.Row) error {
	out := csv.NewWriter(w)
	var cells []string
	for _, c := range dataset.CatalogueColumns() {
		cells = append(cells, c.Name)
	}
	out.Write(cells)
	for i := range rows {
		cells = cells[:0]
		for _, v := range rows[i].Values() {
			switch value := v.Value.(type) {
			case nil:
				cells = append(cells, "")
			case []string:
				cells = append(cells, strings.Join(value, ";"))
			default:
				cells = append(cells, fmt.Sprint(value))
			}
		}
		out.Write(cells)
	}
	out.Flush()
	return out.Error()
}

// isSet reports whether the only argument is the folder of a published set.
func isSet(names []string) bool {
	if len(names) != 1 {
		return false
	}
	info, err := os.Stat(names[0])
	return err == nil && info.IsDir() && publish.IsSet(names[0])
}
