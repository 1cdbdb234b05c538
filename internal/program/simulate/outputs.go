package simulate

import (
	"errors"
	"io"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"github.com/tracedag/tracedag/internal/cli"
	"github.com/tracedag/tracedag/internal/provenance"
	"github.com/tracedag/tracedag/internal/tables"
)

// fewReplicas is the number of runs per point below which intervals are wide.
const fewReplicas = 5

// outputs writes the tables that the flags request.
type outputs struct {
	tables *tables.Tables // nil without tables
	files  []*cli.Output
}

// tableFiles returns the names of the files of tables, by table.
func (o *options) tableFiles() map[string]string {
	return map[string]string{"points": o.points, "results": o.results, "summary": o.summary}
}

// checkTables returns an error if the flags of tables are invalid.
func (r *run) checkTables() error {
	o := r.o
	switch {
	case o.csv != "" && !slices.Contains(tables.Names, o.csv):
		return cli.Usagef("--csv: expected %s, found %q", strings.Join(tables.Names, ", "), o.csv)
	case o.csv != "" && o.json:
		return cli.Usagef("--json and --csv exclude each other")
	}
	used := make(map[string]string) // tables by clean name of the file
	for _, table := range tables.Names {
		name := o.tableFiles()[table]
		switch ending := strings.ToLower(filepath.Ext(name)); {
		case name == "":
		case ending != ".csv" && ending != ".parquet":
			return cli.Usagef("--%s: %s: expected a name that ends with .csv or .parquet", table, name)
		case used[filepath.Clean(name)] != "":
			return cli.Usagef("--%s and --%s name the same file, %s", used[filepath.Clean(name)], table, name)
		default:
			used[filepath.Clean(name)] = table
			if err := r.p.CheckOutput(name, ending == ".parquet"); err != nil {
				return err
			}
		}
	}
	return nil
}

// openTables begins the tables of runs. out is standard output, which receives that of --csv.
func (r *run) openTables(out *cli.Output, runs []*provenance.Run) (*outputs, error) {
	o := &outputs{}
	var all []tables.Output
	if r.o.csv != "" {
		all = append(all, tables.Output{Table: r.o.csv, W: out})
	}
	for _, table := range tables.Names {
		name := r.o.tableFiles()[table]
		if name == "" {
			continue
		}
		file, err := r.p.Create(name, false)
		if err != nil {
			o.close()
			return nil, err
		}
		o.files = append(o.files, file)
		parquet := strings.EqualFold(filepath.Ext(name), ".parquet")
		all = append(all, tables.Output{Table: table, Parquet: parquet, W: file})
	}
	if len(all) > 0 {
		replicas := 0
		for _, a := range runs {
			replicas = max(replicas, a.Replica+1)
		}
		if replicas > 1 && replicas < fewReplicas && (r.o.csv == "summary" || r.o.summary != "") {
			r.p.Info("the intervals of the summary come from %d runs per point; use %d seeds or more", replicas, fewReplicas)
		}
		o.tables = tables.New(all, slices.Sorted(maps.Keys(runs[0].Factors)), replicas)
	}
	return o, nil
}

// add adds a result to the tables. write writes its JSON document.
func (o *outputs) add(write func(w io.Writer) error) error {
	if o.tables == nil {
		return nil
	}
	document, w := io.Pipe()
	written := make(chan error, 1)
	go func() {
		err := write(w)
		w.CloseWithError(err)
		written <- err
	}()
	err := o.tables.Add(document)
	document.CloseWithError(errors.Join(err, io.ErrClosedPipe))
	if writing := <-written; err == nil && !errors.Is(writing, io.ErrClosedPipe) {
		err = writing
	}
	return err
}

// commit completes the tables.
func (o *outputs) commit() error {
	if o.tables == nil {
		return nil
	}
	if err := o.tables.Close(); err != nil {
		return err
	}
	for _, file := range o.files {
		if err := file.Commit(); err != nil {
			return err
		}
	}
	return nil
}

// close discards incomplete tables.
func (o *outputs) close() {
	for _, file := range o.files {
		file.Close()
	}
}
