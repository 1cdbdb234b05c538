package measure

import (
	"cmp"
	"encoding/csv"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"math/big"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
	"unicode"
	"unicode/utf8"

	"github.com/tracedag/tracedag/dag"
	"github.com/tracedag/tracedag/internal/units"
	"github.com/tracedag/tracedag/sim"
)

// WriteJSON writes the difference between files a and b as a JSON object.
func (d *KeptDifference) WriteJSON(w io.Writer, a, b string) error {
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	return e.Encode(struct {
		A string `json:"a"`
		B string `json:"b"`
		*KeptDifference
	}{a, b, d})
}

// WriteCSV writes a row per value that differs. The column part is "run" for what ran, "origin" for values that do not
// count as a difference, "result" for single values, "list" for values in lists, and "point" for results that only one
// file has.
func (d *KeptDifference) WriteCSV(w io.Writer) error {
	out := csv.NewWriter(w)
	out.Write([]string{"point", "part", "metric", "item", "a", "b", "relative"})
	for i := range d.Points {
		p := &d.Points[i]
		point := p.Point.String()
		for _, c := range p.Run {
			part := "run"
			if c.Origin {
				part = "origin"
			}
			out.Write(csvRow(point, part, &c))
		}
		for _, c := range p.Results {
			part := "result"
			if c.List != "" {
				part = "list"
			}
			out.Write(csvRow(point, part, &c))
		}
	}
	for _, p := range d.OnlyA {
		out.Write([]string{p.String(), "point", "", "", "present", "", ""})
	}
	for _, p := range d.OnlyB {
		out.Write([]string{p.String(), "point", "", "", "", "present", ""})
	}
	out.Flush()
	return out.Error()
}

func csvRow(point, part string, c *Change) []string {
	relative := ""
	if c.Relative != nil {
		relative = strconv.FormatFloat(*c.Relative, 'g', -1, 64)
	}
	item := ""
	if c.Item != "" {
		item = printable(c.Item)
	}
	return []string{point, part, printable(c.Metric), item, plainText(c.A), plainText(c.B), relative}
}

// String returns the parameters of the point, such as "L=1us queue=100kB".
func (p Point) String() string {
	parts := make([]string, len(p))
	for i, parameter := range p {
		name := strings.TrimSuffix(strings.TrimSuffix(parameter.Name, "_ps"), "_bytes")
		parts[i] = printable(name) + "=" + valueText(parameter.Value, new(treeDiff).unitOf(parameter.Name))
	}
	return strings.Join(parts, " ")
}

// listedChange is a row of a table: a change and the point of its results.
type listedChange struct {
	point string
	*Change
}

// WriteTable writes the difference between files a and b as tables. The tables of lists have the changes with the
// largest effect only.
func (d *KeptDifference) WriteTable(w io.Writer, a, b string) error {
	tab := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintf(tab, "a\t%s\nb\t%s\n", printable(a), printable(b))
	fmt.Fprintf(tab, "values\t%d of %d differ\n", d.Differ, d.Compared)
	tab.Flush()
	for _, only := range []struct {
		file   string
		points []Point
	}{{"a", d.OnlyA}, {"b", d.OnlyB}} {
		for i, p := range only.points {
			if i == sim.ListedRanks {
				fmt.Fprintf(w, "%d more results are only in %s\n", len(only.points)-i, only.file)
				break
			}
			fmt.Fprintf(w, "only in %s: the result with %s\n", only.file, cmp.Or(p.String(), "the same parameters"))
		}
	}
	tables := d.tables()
	for _, t := range tables {
		t.write(tab)
	}
	return tab.Flush()
}

// changeTable is a table of changes.
type changeTable struct {
	list   string // "" for single values
	run    bool
	points bool // the results have several points
	rows   []listedChange
}

// tables returns the tables in order: what ran, single values, lists.
func (d *KeptDifference) tables() []*changeTable {
	points := len(d.Points) > 1
	run, single := &changeTable{run: true}, &changeTable{points: points}
	tables := []*changeTable{run, single}
	byList := map[string]*changeTable{"": single}
	seen := map[string]bool{}
	for i := range d.Points {
		p := &d.Points[i]
		point := ""
		if points {
			point = p.Point.String()
		}
		for k := range p.Run {
			c := &p.Run[k]
			if key := strings.Join([]string{c.Metric, c.Item, string(c.A), string(c.B)}, "\n"); !seen[key] {
				seen[key] = true
				run.rows = append(run.rows, listedChange{Change: c})
			}
		}
		for k := range p.Results {
			c := &p.Results[k]
			t := byList[c.List]
			if t == nil {
				t = &changeTable{list: c.List, points: points}
				byList[c.List] = t
				tables = append(tables, t)
			}
			t.rows = append(t.rows, listedChange{point, c})
		}
	}
	for _, t := range tables[1:] {
		slices.SortStableFunc(t.rows, func(x, y listedChange) int { return cmp.Compare(y.effect, x.effect) })
	}
	return tables
}

func (t *changeTable) write(tab *tabwriter.Writer) {
	if len(t.rows) == 0 {
		return
	}
	defer tab.Flush()
	metrics := t.list == "" || slices.ContainsFunc(t.rows, func(c listedChange) bool { return c.Metric != t.list })
	heading := ""
	if t.points {
		heading = "point\t"
	}
	switch {
	case t.run:
		heading += "what ran"
	case t.list == "":
		heading += "result"
	case metrics:
		heading += printable(t.list) + "\tmetric"
	default:
		heading += printable(t.list)
	}
	fmt.Fprintf(tab, "\n%s\ta\tb", heading)
	if !t.run {
		fmt.Fprint(tab, "\tchange")
	}
	fmt.Fprintln(tab)
	for i, c := range t.rows {
		if t.list != "" && i == sim.ListedRanks {
			fmt.Fprintf(tab, "%d more; --json and --csv list all\n", len(t.rows)-i)
			break
		}
		if t.points {
			fmt.Fprintf(tab, "%s\t", c.point)
		}
		if t.list == "" {
			item := ""
			if c.Item != "" {
				item = " " + printable(c.Item)
			}
			fmt.Fprintf(tab, "%s%s", printable(c.Metric), item)
		} else {
			fmt.Fprint(tab, printable(c.Item))
			if metrics {
				metric := strings.TrimPrefix(strings.TrimPrefix(c.Metric, t.list), ".")
				fmt.Fprintf(tab, "\t%s", printable(cmp.Or(metric, "value")))
			}
		}
		fmt.Fprintf(tab, "\t%s\t%s", valueText(c.A, c.unit), valueText(c.B, c.unit))
		if !t.run {
			fmt.Fprintf(tab, "\t%s", c.change())
		}
		fmt.Fprintln(tab)
	}
}

// change describes the relative change.
func (c *Change) change() string {
	switch {
	case c.A == nil:
		return "only in b"
	case c.B == nil:
		return "only in a"
	case c.Relative == nil:
		return "-"
	case math.Abs(*c.Relative) >= 100:
		return fmt.Sprintf("x%.4g", 1+*c.Relative)
	}
	return fmt.Sprintf("%+.4g%%", 100**c.Relative)
}

// longestText is the number of characters of a text in a table.
const longestText = 60

// valueText formats a value for a table: times and sizes with their unit, long texts shortened.
func valueText(value json.RawMessage, unit string) string {
	text := plainText(value)
	if value == nil {
		return "-"
	}
	if n, ok := new(big.Int).SetString(string(value), 10); ok && n.IsInt64() && n.Sign() >= 0 {
		switch unit {
		case "ps":
			return dag.Time(n.Int64()).String()
		case "B":
			return units.FormatSize(n.Int64())
		}
	}
	if utf8.RuneCountInString(text) > longestText {
		text = string([]rune(text)[:longestText-3]) + "..."
	}
	if unit != "" && value[0] != '"' && value[0] != 'n' {
		text += " " + printable(unit)
	}
	return text
}

// plainText returns a value in JSON as text, without quotes unless it has control characters.
func plainText(value json.RawMessage) string {
	var texts []string
	switch {
	case len(value) > 0 && value[0] == '[' && json.Unmarshal(value, &texts) == nil:
		return printable(strings.Join(texts, " "))
	case len(value) == 0 || value[0] != '"':
		return string(value)
	}
	var text string
	if json.Unmarshal(value, &text) != nil {
		return string(value)
	}
	return printable(text)
}

// printable returns s, quoted if it is empty or has characters that could control a terminal.
func printable(s string) string {
	if s == "" {
		return `""`
	}
	for _, r := range s {
		if unicode.IsControl(r) || r == utf8.RuneError {
			return strconv.Quote(s)
		}
	}
	return s
}
