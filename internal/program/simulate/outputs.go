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
func (o *options) checkTables(p *cli.Program) error {
	switch {
	case o.csv != "" && !slices.Contains(tables.Names, o.csv):
		return cli.Usagef("--csv: expected %s, found %q", strings.Join(tables.Names, ", "), o.csv)
	case o.csv != "" && o.JSON:
		return cli.Usagef("--json and --csv exclude each other")
	}
	for _, table := range tables.Names {
		name := o.tableFiles()[table]
		switch ending := strings.ToLower(filepath.Ext(name)); {
		case name == "":
		case ending != ".csv" && ending != ".parquet":
			return cli.Usagef("--%s: %s: expected a name that ends with .csv or .parquet", table, name)
		default:
			if err := p.CheckOutput(name, ending == ".parquet"); err != nil {
				return err
			}
		}
	}
	return nil
}

// openTables begins the tables of runs. out is standard output, which receives that of --csv.
func (o *options) openTables(p *cli.Program, out *cli.Output, runs []*provenance.Run) (*tables.Tables, error) {
	replicas := provenance.Replicas(runs)
	if replicas > 1 && replicas < tables.Few && (o.csv == "summary" || o.summary != "") {
		p.Info("the intervals of the summary come from %d runs per point; use %d seeds or more", replicas, tables.Few)
	}
	t := tables.New(slices.Sorted(maps.Keys(runs[0].Factors)), replicas)
	if o.csv != "" {
		t.Write(o.csv, false, out)
	}
	for _, table := range tables.Names {
		name := o.tableFiles()[table]
		if name == "" {
			continue
		}
		file, err := p.Create(name, false)
		if err != nil {
			t.Close()
			return nil, err
		}
		t.WriteFile(table, strings.EqualFold(filepath.Ext(name), ".parquet"), file)
	}
	return t, nil
}
