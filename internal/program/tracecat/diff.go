// This file prints the difference between two traces.

package tracecat

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"math/big"
	"reflect"
	"strconv"
	"strings"
	"text/tabwriter"

	"github.com/tracedag/tracedag/dag"
	"github.com/tracedag/tracedag/internal/cli"
	"github.com/tracedag/tracedag/internal/shell"
)

// exitTrouble is the exit status of a comparison that failed, as in diff and cmp.
const exitTrouble = 2

// difference is the JSON form of a comparison.
type difference struct {
	A     side `json:"a"`
	B     side `json:"b"`
	Equal bool `json:"equal"`
	*dag.Difference
	First *firstOp `json:"first,omitempty"`
}

// side describes one of the traces.
type side struct {
	Input      string           `json:"input"`
	Format     string           `json:"format"`
	Provenance []dag.Provenance `json:"provenance"`
}

// firstOp is the first op that differs, as the list of ops prints it; nil if a trace does not have it.
type firstOp struct {
	Rank int             `json:"rank"`
	Op   int             `json:"op"`
	A    json.RawMessage `json:"a"`
	B    json.RawMessage `json:"b"`
}

// compare prints the difference between two traces and returns the error for its exit status.
func (v *view) compare(p *cli.Program, names []string, flags cli.ReadFlags) error {
	p.Trouble = exitTrouble
	var d difference
	var traces [2]*source
	for i, at := range [...]*side{&d.A, &d.B} {
		s, err := open(p, names[i], flags)
		if err != nil {
			return err
		}
		defer s.Close()
		h, err := s.Header()
		if err != nil {
			return err
		}
		*at = side{Input: s.in.Name, Format: s.in.Format.Name, Provenance: append([]dag.Provenance{}, h.Provenance...)}
		traces[i] = s
	}
	var err error
	if d.Difference, err = dag.Compare(traces[0], traces[1]); err != nil {
		return err
	}
	for _, s := range traces {
		s.in.DoneReading()
	}
	d.Equal = d.Difference.Equal()
	out, err := p.Create("-", false)
	if err != nil {
		return err
	}
	defer out.Close()
	if v.json {
		err = d.writeJSON(out)
	} else {
		err = d.writeText(out.Writer)
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
	p.Explain("%s and %s have equal contents", d.A.Input, d.B.Input)
	return nil
}

func (d *difference) writeJSON(w io.Writer) error {
	if f := d.Difference.First; f != nil {
		d.First = &firstOp{Rank: f.Rank, Op: f.Op, A: opJSON(f, f.A), B: opJSON(f, f.B)}
	}
	encoder := json.NewEncoder(w)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "  ")
	return encoder.Encode(d)
}

// opJSON returns an op as a JSON object, null if the trace does not have it.
func opJSON(f *dag.OpDifference, r *dag.Rank) json.RawMessage {
	if r == nil {
		return json.RawMessage("null")
	}
	return appendOpJSON(nil, f.Rank, f.Op, r, 0)
}

// writeText prints the difference, and nothing if the traces are equal.
func (d *difference) writeText(w *bufio.Writer) error {
	if d.Equal {
		return nil
	}
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintf(table, "a\t%s, %s%s\n", plain(d.A.Input), d.A.Format, d.origin(d.A))
	fmt.Fprintf(table, "b\t%s, %s%s\n", plain(d.B.Input), d.B.Format, d.origin(d.B))
	table.Flush()
	if len(d.Facts) > 0 {
		fmt.Fprint(table, "\n\ta\tb\tb - a\n")
		for i := range d.Facts {
			writeFact(table, &d.Facts[i])
		}
		table.Flush()
	}
	if len(d.Fields) > 0 {
		fmt.Fprint(table, "\nfield\tops that differ\tfirst\n")
		for _, f := range d.Fields {
			fmt.Fprintf(table, "%s\t%d\trank %d, op %d\n", f.Name, f.Ops, f.Rank, f.Op)
		}
		table.Flush()
	}
	if f := d.Difference.First; f != nil {
		fmt.Fprintf(w, "\nops differ on %s; of the ops that both have, %d differ\n",
			plural(d.Ranks, "rank"), d.Ops)
		fmt.Fprintf(w, "first: op %d of rank %d\n", f.Op, f.Rank)
		d.writeFirst(table, f)
	}
	return table.Flush()
}

// origin describes the command that made a trace, if the traces have different origins.
func (d *difference) origin(s side) string {
	if len(s.Provenance) == 0 || reflect.DeepEqual(d.A.Provenance, d.B.Provenance) {
		return ""
	}
	last := s.Provenance[len(s.Provenance)-1]
	if len(last.Command) == 0 {
		return fmt.Sprintf(", made by %s %s", plain(last.Program), plain(last.Version))
	}
	return ", made by " + shell.Join(last.Command...)
}

func plural(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

// writeFirst prints the first op that differs as the list of ops does, with a line for each trace.
func (d *difference) writeFirst(w io.Writer, f *dag.OpDifference) {
	var ranks []*dag.Rank
	for _, r := range [...]*dag.Rank{f.A, f.B} {
		if r != nil {
			ranks = append(ranks, r)
		}
	}
	columns := newColumns(func(id dag.FieldID) bool {
		for _, r := range ranks {
			if isUsed(r, id) {
				return true
			}
		}
		return false
	})
	headings := columns.appendHeadings(nil)
	fmt.Fprintf(w, "\t%s", headings)
	for i, r := range [...]*dag.Rank{f.A, f.B} {
		if r == nil {
			tabs := strings.Repeat("\t", bytes.Count(headings, []byte("\t")))
			fmt.Fprintf(w, "%c\tnone%s\n", 'a'+i, tabs)
			continue
		}
		fmt.Fprintf(w, "%c\t%s", 'a'+i, columns.appendOp(nil, f.Rank, f.Op, r, 0))
	}
}

// writeFact prints a fact as a row: its name, both values and, for numbers, their difference.
func writeFact(w io.Writer, f *dag.Fact) {
	name := f.Name[strings.LastIndexByte(f.Name, '.')+1:]
	switch {
	case f.Where != "" && f.Count > 1:
		name = fmt.Sprintf("%s of %s (%d differ)", name, f.Where, f.Count)
	case f.Where != "" && strings.HasPrefix(f.Where, name):
		name = f.Where
	case f.Where != "":
		name = fmt.Sprintf("%s of %s", name, f.Where)
	}
	a, b := wholeOf(f.A), wholeOf(f.B)
	if a == nil || b == nil || f.Where != "" {
		fmt.Fprintf(w, "%s\t%s\t%s\n", spaced(name), textOf(f.A), textOf(f.B))
		return
	}
	show := func(n *big.Int) string { return n.String() }
	if rest, ok := strings.CutSuffix(name, "_ps"); ok {
		name, show = rest+"_time", formatTime
	} else if strings.HasSuffix(name, "_bytes") {
		show = sizeOf
	}
	sign, change := "+", new(big.Int).Sub(b, a)
	if change.Sign() < 0 {
		sign = "-"
		change.Neg(change)
	}
	fmt.Fprintf(w, "%s\t%s\t%s\t%s%s\n", spaced(name), show(a), show(b), sign, show(change))
}

func spaced(name string) string { return strings.ReplaceAll(name, "_", " ") }

// wholeOf returns a value that is a whole number, nil for others.
func wholeOf(value any) *big.Int {
	switch n := value.(type) {
	case int:
		return big.NewInt(int64(n))
	case int64:
		return big.NewInt(n)
	case dag.Time:
		return big.NewInt(int64(n))
	case dag.Total:
		return n.Big()
	case *big.Int:
		return n
	}
	return nil
}

// textOf returns a text of a trace for a table: at most 60 characters, quoted if it is ambiguous.
func textOf(value any) string {
	text, ok := value.(string)
	switch {
	case !ok:
		return fmt.Sprint(value)
	case text == "":
		return "-"
	case len(text) > 60 || !isPlain(text):
		return fmt.Sprintf("%.60s", strconv.Quote(text))
	}
	return text
}
