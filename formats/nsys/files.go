// This file finds the files of a trace and detects their form.

package nsys

import (
	"bytes"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/tracedag/tracedag/formats/format"
)

// form is the storage form of an export.
type form uint8

const (
	formSQLite form = iota
	formJSON
	formCSV
)

// endings are the endings of the forms, in order of preference.
var endings = [...]string{formSQLite: ".sqlite", formJSON: ".jsonl", formCSV: ".csv"}

// csvTables are the tables that a CSV dump may have, each in a file called PREFIX.TABLE.csv.
var csvTables = tablesRead

// parseName parses the name of an export's file: its form, the base without ending, and for CSV the table.
func parseName(path string) (f form, base, table string, ok bool) {
	name := filepath.Base(path)
	for _, ending := range []string{".gz", ".zst"} {
		name = strings.TrimSuffix(name, ending)
	}
	for f, ending := range endings {
		base, found := strings.CutSuffix(name, ending)
		if !found {
			continue
		}
		if form(f) != formCSV {
			return form(f), base, "", true
		}
		dot := strings.LastIndexByte(base, '.')
		if dot >= 0 && slices.Contains(csvTables, base[dot+1:]) {
			return formCSV, base[:dot], base[dot+1:], true
		}
		return formCSV, base, "", false
	}
	return formSQLite, strings.TrimSuffix(name, filepath.Ext(name)), "", false
}

// files implements format.Format.Files: a file is a trace of its own, a table has others beside it, and a folder
// has one form of export.
func files(name string, folder []string) ([]string, error) {
	folder = slices.Sorted(slices.Values(folder))
	if name != "" {
		f, base, _, ok := parseName(name)
		if !ok || f != formCSV {
			return []string{name}, nil
		}
		return slices.DeleteFunc(folder, func(other string) bool {
			g, b, _, ok := parseName(other)
			return !ok || g != f || b != base
		}), nil
	}
	for f := range endings {
		found := slices.DeleteFunc(slices.Clone(folder), func(other string) bool {
			g, _, _, ok := parseName(other)
			return !ok || g != form(f)
		})
		if len(found) > 0 {
			return found, nil
		}
	}
	return nil, nil
}

// group groups the inputs into exports.
func group(inputs []*format.Input) ([]*export, error) {
	var exports []*export
	for _, in := range inputs {
		f, base, table, _ := parseName(in.Name)
		head := in.Head
		switch {
		case len(head) == 0: // the file is not open yet; its name decides
		case isSQLite(head):
			f = formSQLite
		case isJSONLines(head):
			f = formJSON
		case isStats(head):
			return nil, format.FileErrorf(in.Name, "a table of nsys stats, which lacks NCCL's annotations: "+
				"export the report itself, with nsys export --type sqlite")
		case isTable(head) || f == formCSV && table != "":
			f = formCSV
		default:
			return nil, &format.FileError{File: in.Name, Err: notExport(in.Name)}
		}
		if f == formCSV {
			if i := slices.IndexFunc(exports, func(x *export) bool {
				return x.form == formCSV && x.base == base
			}); i >= 0 {
				exports[i].inputs = append(exports[i].inputs, in)
				continue
			}
		}
		exports = append(exports, &export{name: in.Name, base: base, inputs: []*format.Input{in}, form: f})
	}
	return exports, nil
}

// notExport returns the error about a file that is no export.
func notExport(name string) error {
	switch strings.ToLower(filepath.Ext(name)) {
	case ".nsys-rep", ".qdrep":
		return fmt.Errorf("expected an export, found a report: run nsys export --type sqlite %s", filepath.Base(name))
	}
	return fmt.Errorf("expected an nsys export (SQLite database, JSON lines or a CSV table), found another file")
}

func isSQLite(head []byte) bool { return bytes.HasPrefix(head, []byte(sqliteHeader)) }

// isJSONLines reports whether an input begins like an export as JSON lines, with the strings.
func isJSONLines(head []byte) bool {
	return bytes.HasPrefix(head, []byte(`{"data":[`))
}

// isTable reports whether an input begins with the header of a table that can be identified without its name.
func isTable(head []byte) bool {
	line, _, _ := bytes.Cut(head, []byte("\n"))
	columns := strings.Split(strings.TrimSpace(strings.TrimPrefix(string(line), "\ufeff")), ",")
	has := func(names ...string) bool {
		for _, name := range names {
			if !slices.Contains(columns, name) {
				return false
			}
		}
		return true
	}
	return has("start", "eventType", "globalTid") || has("start", "end", "streamId", "deviceId")
}

// isStats reports whether an input is a table printed by nsys stats, possibly after messages.
func isStats(head []byte) bool {
	return bytes.Contains(head, []byte("Start (ns),")) && bytes.Contains(head, []byte(",Name")) ||
		bytes.Contains(head, []byte("Start (ns),Duration (ns),CorrId,"))
}
