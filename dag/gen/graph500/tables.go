package graph500

// Measurements as tables, for people and as CSV.

import (
	"encoding/csv"
	"encoding/json"
	"fmt"
	"io"
	"strconv"
	"text/tabwriter"
)

// table is a table of a measurement.
type table uint8

const (
	levelsTable table = iota
	degreesTable
	binsTable
)

// String returns the name on the command line.
func (t table) String() string { return [...]string{"levels", "degrees", "bins"}[t] }

// rows returns a table with its names of columns.
func (r *Measured) rows(t table) [][]string {
	integer := func(n int64) string { return strconv.FormatInt(n, 10) }
	real := func(x float64) string { return strconv.FormatFloat(x, 'g', 6, 64) }
	var rows [][]string
	switch t {
	case degreesTable:
		rows = append(rows, []string{"degree", "vertices"})
		for _, d := range r.DegreeHistogram {
			rows = append(rows, []string{integer(d[0]), integer(d[1])})
		}
	case binsTable:
		rows = append(rows, []string{"from", "to", "roots"})
		for i, n := range r.Bins.Counts {
			rows = append(rows, []string{real(float64(i) * r.Bins.Width), real(float64(i+1) * r.Bins.Width),
				integer(n)})
		}
	default:
		rows = append(rows, []string{"from", "to", "roots", "degree", "level", "mean", "sd", "model mean", "model sd"})
		for _, d := range r.Levels {
			for level, mean := range d.Mean {
				rows = append(rows, []string{integer(d.From), integer(d.To), integer(d.Roots), real(d.MeanDegree),
					strconv.Itoa(level), real(mean), real(d.Deviation[level]), real(d.ModelMean[level]),
					real(d.ModelDeviation[level])})
			}
		}
	}
	return rows
}

// writeCSV writes a table.
func (r *Measured) writeCSV(w io.Writer, t table) error {
	return csv.NewWriter(w).WriteAll(r.rows(t))
}

// writeJSON writes all results.
func (r *Measured) writeJSON(w io.Writer) error {
	encoder := json.NewEncoder(w)
	encoder.SetIndent("", "  ")
	return encoder.Encode(r)
}

// write prints the graph, a table and, with levels, the errors of the model.
func (r *Measured) write(w io.Writer, t table) error {
	tab := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintf(tab, "graph\tscale %d, edge factor %d, seed %d\n", r.Scale, r.EdgeFactor, r.Seed)
	fmt.Fprintf(tab, "vertices\t%d, of which %.2f %% have no edge; largest degree %d\n",
		r.Vertices, 100*float64(r.Isolated)/float64(r.Vertices), r.MaxDegree)
	fmt.Fprintf(tab, "ends of edges\t%d; %d self-loops dropped\n", r.Ends, r.SelfLoops)
	fmt.Fprintf(tab, "searches\t%d\n", r.Roots)
	if t == levelsTable {
		for _, e := range r.Errors {
			fmt.Fprintf(tab, "error of the model\tlevel %s: mean %.1f %%, median %.1f %%, below 18 %% for %.1f %% of "+
				"%d degrees\n",
				e.Level, 100*e.Mean, 100*e.Median, 100*e.Below18, e.Degrees)
		}
	}
	if err := tab.Flush(); err != nil {
		return err
	}
	fmt.Fprintln(w)
	return writeRows(w, r.rows(t))
}

// writeRows prints a table in aligned columns.
func writeRows(w io.Writer, rows [][]string) error {
	tab := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	for _, row := range rows {
		for _, cell := range row {
			fmt.Fprintf(tab, "%s\t", cell)
		}
		fmt.Fprintln(tab)
	}
	return tab.Flush()
}
