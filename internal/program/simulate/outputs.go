package simulate

import (
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"github.com/tracedag/tracedag/internal/cli"
	"github.com/tracedag/tracedag/internal/provenance"
	"github.com/tracedag/tracedag/internal/tables"
)

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
func (r *run) openTables(out *cli.Output, runs []*provenance.Run) (*tables.Tables, error) {
	replicas := provenance.Replicas(runs)
	if replicas > 1 && replicas < tables.Few && (r.o.csv == "summary" || r.o.summary != "") {
		r.p.Info("the intervals of the summary come from %d runs per point; use %d seeds or more", replicas, tables.Few)
	}
	t := tables.New(slices.Sorted(maps.Keys(runs[0].Factors)), replicas)
	if r.o.csv != "" {
		t.Write(r.o.csv, false, out)
	}
	for _, table := range tables.Names {
		name := r.o.tableFiles()[table]
		if name == "" {
			continue
		}
		file, err := r.p.Create(name, false)
		if err != nil {
			t.Close()
			return nil, err
		}
		t.WriteFile(table, strings.EqualFold(filepath.Ext(name), ".parquet"), file)
	}
	return t, nil
}
