package measure

import (
	"cmp"
	"encoding/json"
	"fmt"
	"math/big"
	"slices"
	"strconv"
	"strings"

	"github.com/tracedag/tracedag/internal/conf"
	"github.com/tracedag/tracedag/internal/report"
)

// KeptDifference is the difference between two files of results. That of the exchanged files is the same with the sides
// exchanged.
type KeptDifference struct {
	Equal    bool    `json:"equal"`    // no value differs that is compared
	Compared int64   `json:"compared"` // number of values compared
	Differ   int64   `json:"differ"`   // number of values that differ
	Points   []Pair  `json:"points"`   // pairs of results with a difference
	OnlyA    []Point `json:"only_a"`   // results that only a has
	OnlyB    []Point `json:"only_b"`
}

// Point are the parameters that distinguish a result from others of its file; empty for a single result.
type Point []Parameter

// Parameter is a parameter and its value in JSON; nil if the result does not have it.
type Parameter struct {
	Name  string          `json:"name"`
	Value json.RawMessage `json:"value"`
}

// Pair is a pair of results and their differences.
type Pair struct {
	Point   Point    `json:"point"`
	Run     []Change `json:"run"`     // what ran: in the order of the file
	Results []Change `json:"results"` // by effect, lists after single values
}

// Change is a value that differs.
type Change struct {
	// Metric is the path of the value in the object, without places in lists, such as "fct_ps.p99". Item is the place
	// in a list: the name of a job, link or port, "rank 3", or an index. List is the metric of the outermost list.
	Metric string `json:"metric"`
	Item   string `json:"item,omitempty"`
	List   string `json:"list,omitempty"`
	// Origin marks a value that describes the origin of a result, such as the command line. It does not count as a
	// difference.
	Origin bool            `json:"origin,omitempty"`
	A      json.RawMessage `json:"a,omitempty"` // in JSON; nil: absent
	B      json.RawMessage `json:"b,omitempty"`
	// Relative is (b - a) / |a|; nil unless both are numbers and a is not 0.
	Relative *float64 `json:"relative,omitempty"`

	unit   string
	effect float64 // |b - a| / max(|a|, |b|); 2 for values that are not numbers
}

// Members of a result that describe what ran.
var described = []string{"run", "backend", "model", "params", "traffic"}

// Members of the description of a run that describe its origin: equal runs may differ in them.
var origins = []string{
	"run.program", "run.version", "run.commit", "run.command", "run.trace.name", "run.trace.inputs",
	"run.trace.command",
}

// Members that are not compared: wall-clock figures, units of other members, and those that follow from others and from
// the place in a grid.
var ignored = []string{"wall_s", "ops_per_s", "run.units", "run.point", "run.id", "run.index", "run.replica",
	"run.factors", "report"}

// CompareKept compares the results of two files. A single result is compared with a single result. With several, the
// parameters that vary within a file distinguish results, and results with equal values of them are compared; those
// with the same values are paired in order.
//
// A list of texts is one value. The values of other lists are paired by index. Those of lists of objects and of tables
// (objects with "columns" and "rows") are paired by their texts, such as the name of a port, and by members that number
// them (rank, job, flow, vc), or by index if that does not identify each.
func CompareKept(a, b []Kept) *KeptDifference {
	d := &KeptDifference{Points: []Pair{}, OnlyA: []Point{}, OnlyB: []Point{}}
	describedA, describedB := descriptions(a), descriptions(b)
	axes := varying(describedA)
	for _, axis := range varying(describedB) {
		if !slices.Contains(axes, axis) {
			axes = append(axes, axis)
		}
	}
	slices.Sort(axes)
	waiting := map[string][]int{} // results of b by the values of the axes, in order
	for i := range b {
		key := keyOf(describedB[i], axes)
		waiting[key] = append(waiting[key], i)
	}
	paired := make([]bool, len(b))
	for i := range a {
		key := keyOf(describedA[i], axes)
		if len(waiting[key]) == 0 {
			d.OnlyA = append(d.OnlyA, pointOf(describedA[i], axes))
			continue
		}
		k := waiting[key][0]
		waiting[key] = waiting[key][1:]
		paired[k] = true
		d.pair(pointOf(describedA[i], axes), &a[i].root, &b[k].root)
	}
	for k := range b {
		if !paired[k] {
			d.OnlyB = append(d.OnlyB, pointOf(describedB[k], axes))
		}
	}
	d.Equal = d.Differ == 0 && len(d.OnlyA)+len(d.OnlyB) == 0
	return d
}

// descriptions returns the scalar values that describe each result by path.
func descriptions(all []Kept) []map[string]string {
	out := make([]map[string]string, len(all))
	for i := range all {
		values := map[string]string{}
		for _, key := range described {
			if n := member(&all[i].root, key); n != nil {
				describe(values, key, n)
			}
		}
		out[i] = values
	}
	return out
}

func describe(values map[string]string, path string, n *conf.Node) {
	if slices.Contains(origins, path) || slices.Contains(ignored, path) || path == "run.warnings" {
		return
	}
	switch n.Kind {
	case conf.Map:
		for i := range n.Members {
			describe(values, path+"."+n.Members[i].Key, &n.Members[i].Value)
		}
	case conf.List:
		for i := range n.List {
			describe(values, fmt.Sprintf("%s[%d]", path, i), &n.List[i])
		}
	default:
		values[path] = string(jsonOf(n))
	}
}

// varying returns the paths of which results have different values. A result without a value, such as that of a point
// that failed, does not make it vary.
func varying(all []map[string]string) (axes []string) {
	first, varies := map[string]string{}, map[string]bool{}
	for _, values := range all {
		for path, value := range values {
			if was, ok := first[path]; !ok {
				first[path] = value
			} else if was != value {
				varies[path] = true
			}
		}
	}
	for path := range varies {
		axes = append(axes, path)
	}
	return axes
}

func keyOf(values map[string]string, axes []string) string {
	var b strings.Builder
	for _, axis := range axes {
		b.WriteString(values[axis])
		b.WriteByte('\n') // JSON of a scalar has none
	}
	return b.String()
}

func pointOf(values map[string]string, axes []string) Point {
	p := Point{}
	for _, axis := range axes {
		if value, ok := values[axis]; ok {
			p = append(p, Parameter{strings.TrimPrefix(axis, "params."), json.RawMessage(value)})
		}
	}
	return p
}

// pair compares two results and adds their differences.
func (d *KeptDifference) pair(point Point, a, b *conf.Node) {
	w := treeDiff{total: d, ranksA: lengthOf(member(a, "finish_ps")), ranksB: lengthOf(member(b, "finish_ps"))}
	for i, n := range [...]*conf.Node{a, b} {
		w.units[i] = member(member(n, "run"), "units")
	}
	w.members("", place{}, a, b)
	p := Pair{Point: point, Run: []Change{}, Results: []Change{}}
	var lists []string // in order of appearance
	for _, c := range w.changes {
		first, _, _ := strings.Cut(c.Metric, ".")
		if slices.Contains(described, first) {
			p.Run = append(p.Run, c)
			continue
		}
		p.Results = append(p.Results, c)
		if !slices.Contains(lists, c.List) {
			lists = append(lists, c.List)
		}
	}
	slices.SortStableFunc(p.Run, func(x, y Change) int { return cmp.Compare(boolInt(x.Origin), boolInt(y.Origin)) })
	order := make(map[string]int, len(lists)) // single values first
	for i, list := range lists {
		order[list] = i + 1
	}
	order[""] = 0
	slices.SortStableFunc(p.Results, func(x, y Change) int {
		return cmp.Or(cmp.Compare(order[x.List], order[y.List]), cmp.Compare(y.effect, x.effect))
	})
	if len(w.changes) > 0 {
		d.Points = append(d.Points, p)
	}
}

// derived are members of a result that figures need and that repeat or refine others.
var derived = []string{"network", "fct_cdf", "slowdown_cdf", "io_latency_cdf", "queues", "matrix"}

// Changes returns the values that differ for a page, the results before what ran, without the origin of results.
func (d *KeptDifference) Changes() (all []report.Change) {
	for _, pair := range d.Points {
		for _, c := range slices.Concat(pair.Results, pair.Run) {
			first, _, _ := strings.Cut(c.Metric, ".")
			if !c.Origin && !slices.Contains(derived, first) {
				all = append(all, report.Change{Metric: c.Metric, Item: c.Item, A: c.A, B: c.B})
			}
		}
	}
	return all
}

func boolInt(b bool) int {
	if b {
		return 1
	}
	return 0
}

func lengthOf(n *conf.Node) int {
	if n == nil || n.Kind != conf.List {
		return -1
	}
	return len(n.List)
}

// treeDiff compares two results.
type treeDiff struct {
	total          *KeptDifference
	units          [2]*conf.Node
	ranksA, ranksB int // of the results; -1: unknown
	changes        []Change
}

// place is the place of a value in lists.
type place struct{ list, item string }

// in returns the place of an element of a list at this place.
func (p place) in(list, item string) place {
	return place{cmp.Or(p.list, list), strings.TrimPrefix(p.item+" "+item, " ")}
}

// value compares two values, of which one may be nil.
func (w *treeDiff) value(metric string, at place, a, b *conf.Node) {
	switch {
	case a != nil && b != nil && a.Kind == conf.Map && b.Kind == conf.Map:
		if ta, tb := newRows(a), newRows(b); ta != nil && tb != nil {
			w.rows(metric, at, ta, tb)
		} else {
			w.members(metric+".", at, a, b)
		}
	case a != nil && b != nil && a.Kind == conf.List && b.Kind == conf.List:
		w.list(metric, at, a.List, b.List)
	default:
		w.leaf(metric, at, a, b)
	}
}

// members compares the members of two mappings: those of a in order, then those that only b has.
func (w *treeDiff) members(prefix string, at place, a, b *conf.Node) {
	inB := make(map[string]*conf.Node, len(b.Members))
	for i := range b.Members {
		inB[b.Members[i].Key] = &b.Members[i].Value
	}
	inA := make(map[string]bool, len(a.Members))
	for i := range a.Members {
		key := a.Members[i].Key
		inA[key] = true
		if !slices.Contains(ignored, prefix+key) {
			w.value(prefix+key, at, &a.Members[i].Value, inB[key])
		}
	}
	for i := range b.Members {
		if key := b.Members[i].Key; !inA[key] && !slices.Contains(ignored, prefix+key) {
			w.value(prefix+key, at, nil, &b.Members[i].Value)
		}
	}
}

// list compares two lists.
func (w *treeDiff) list(metric string, at place, a, b []conf.Node) {
	if slices.ContainsFunc(a, isMap) || slices.ContainsFunc(b, isMap) {
		namesA, namesB := namesOf(a, identity), namesOf(b, identity)
		w.named(metric, at, len(a), len(b), namesA, namesB, func(at place, i, k int) {
			w.value(metric, at, elementOf(a, i), elementOf(b, k))
		})
		return
	}
	if areTexts(a) && areTexts(b) && len(a)+len(b) > 0 {
		w.leaf(metric, at, &conf.Node{Kind: conf.List, List: a}, &conf.Node{Kind: conf.List, List: b})
		return
	}
	noun := ""
	if len(a) == w.ranksA && len(b) == w.ranksB {
		noun = "rank "
	}
	for i := range max(len(a), len(b)) {
		w.value(metric, at.in(metric, noun+strconv.Itoa(i)), elementOf(a, i), elementOf(b, i))
	}
}

func isMap(n conf.Node) bool { return n.Kind == conf.Map }

// areTexts reports whether all elements of a list are texts, as those of a command line.
func areTexts(list []conf.Node) bool {
	return !slices.ContainsFunc(list, func(n conf.Node) bool { return n.Kind != conf.Text })
}

func sameTexts(a, b []conf.Node) bool {
	return slices.EqualFunc(a, b, func(x, y conf.Node) bool { return x.Text == y.Text })
}

// elementOf returns an element of a list, nil if there is none.
func elementOf(list []conf.Node, i int) *conf.Node {
	if i < 0 || i >= len(list) {
		return nil
	}
	return &list[i]
}

// named calls each for the pairs of elements with the same name, or with the same index unless both lists have names.
// It passes -1 for an element that a list lacks.
func (w *treeDiff) named(metric string, at place, na, nb int, a, b []string, each func(at place, i, k int)) {
	if a == nil || b == nil {
		for i := range max(na, nb) {
			k := i
			if i >= nb {
				k = -1
			}
			if i < na {
				each(at.in(metric, strconv.Itoa(i)), i, k)
			} else {
				each(at.in(metric, strconv.Itoa(i)), -1, k)
			}
		}
		return
	}
	inB := make(map[string]int, len(b))
	for k, name := range b {
		inB[name] = k
	}
	for i, name := range a {
		k, ok := inB[name]
		if !ok {
			k = -1
		}
		delete(inB, name)
		each(at.in(metric, name), i, k)
	}
	for k, name := range b {
		if _, left := inB[name]; left {
			each(at.in(metric, name), -1, k)
		}
	}
}

// namesOf returns the identities of elements, nil unless each has its own.
func namesOf[T any](list []T, identity func(*T) string) []string {
	names := make([]string, len(list))
	seen := make(map[string]bool, len(list))
	for i := range list {
		name := identity(&list[i])
		if name == "" || seen[name] {
			return nil
		}
		seen[name] = true
		names[i] = name
	}
	return names
}

// numbering are the names of members that number the elements of a list.
var numbering = []string{"rank", "job", "step", "flow", "vc"}

// identity joins the values that identify an object of a list; "" if it has none.
func identity(n *conf.Node) string {
	var parts []string
	for i := range n.Members {
		parts = appendIdentity(parts, n.Members[i].Key, &n.Members[i].Value)
	}
	return strings.Join(parts, " ")
}

func appendIdentity(parts []string, key string, n *conf.Node) []string {
	switch {
	case n.Kind == conf.Text && n.Text != "":
		return append(parts, n.Text)
	case n.Kind == conf.Number && slices.Contains(numbering, key):
		return append(parts, key+" "+n.Text)
	}
	return parts
}

// rows is a table: an object with lists of columns and rows.
type rows struct {
	columns []string
	rows    []conf.Node
}

// newRows returns the table that an object is, nil if it is none.
func newRows(n *conf.Node) *rows {
	columns, values := member(n, "columns"), member(n, "rows")
	if len(n.Members) != 2 || lengthOf(columns) < 1 || lengthOf(values) < 0 {
		return nil
	}
	t := &rows{rows: values.List}
	for i := range columns.List {
		c := &columns.List[i]
		if c.Kind != conf.Text || slices.Contains(t.columns, c.Text) {
			return nil
		}
		t.columns = append(t.columns, c.Text)
	}
	for i := range t.rows {
		if lengthOf(&t.rows[i]) != len(t.columns) {
			return nil
		}
	}
	return t
}

func (t *rows) identity(row *conf.Node) string {
	var parts []string
	for i := range row.List {
		parts = appendIdentity(parts, t.columns[i], &row.List[i])
	}
	return strings.Join(parts, " ")
}

// cell returns a value of a row, nil if there is none.
func (t *rows) cell(row int, column string) *conf.Node {
	i := slices.Index(t.columns, column)
	if row < 0 || row >= len(t.rows) || i < 0 {
		return nil
	}
	return &t.rows[row].List[i]
}

// rows compares two tables.
func (w *treeDiff) rows(metric string, at place, a, b *rows) {
	columns := slices.Clone(a.columns)
	for _, c := range b.columns {
		if !slices.Contains(columns, c) {
			columns = append(columns, c)
		}
	}
	namesA, namesB := namesOf(a.rows, a.identity), namesOf(b.rows, b.identity)
	w.named(metric, at, len(a.rows), len(b.rows), namesA, namesB, func(at place, i, k int) {
		if i < 0 || k < 0 {
			w.leaf(metric, at, elementOf(a.rows, i), elementOf(b.rows, k))
			return
		}
		for _, c := range columns {
			w.value(metric+"."+c, at, a.cell(i, c), b.cell(k, c))
		}
	})
}

// leaf compares two values as a whole: scalars, lists of texts, or values of different kinds.
func (w *treeDiff) leaf(metric string, at place, a, b *conf.Node) {
	w.total.Compared++
	if a != nil && b != nil && a.Kind == b.Kind && a.Kind != conf.Map && a.Text == b.Text &&
		(a.Kind != conf.List || sameTexts(a.List, b.List)) {
		return
	}
	c := Change{Metric: metric, Item: at.item, List: at.list, A: jsonOf(a), B: jsonOf(b), effect: 2}
	if a != nil && b != nil && a.Kind == conf.Number && b.Kind == conf.Number {
		x, okX := new(big.Rat).SetString(a.Text)
		y, okY := new(big.Rat).SetString(b.Text)
		if okX && okY {
			if x.Cmp(y) == 0 { // such as 1 and 1.0
				return
			}
			c.measure(x, y)
		}
	}
	c.unit = w.unitOf(metric)
	for _, origin := range origins {
		c.Origin = c.Origin || metric == origin || strings.HasPrefix(metric, origin+".")
	}
	if !c.Origin {
		w.total.Differ++
	}
	w.changes = append(w.changes, c)
}

// measure sets the relative change and the effect of a number that changes from a to b.
func (c *Change) measure(a, b *big.Rat) {
	change := new(big.Rat).Sub(b, a)
	largest := new(big.Rat).Abs(a)
	if x := new(big.Rat).Abs(b); x.Cmp(largest) > 0 {
		largest = x
	}
	c.effect, _ = new(big.Rat).Quo(new(big.Rat).Abs(change), largest).Float64()
	if a.Sign() != 0 {
		relative, _ := new(big.Rat).Quo(change, new(big.Rat).Abs(a)).Float64()
		if relative <= maxFinite && relative >= -maxFinite {
			c.Relative = &relative
		}
	}
}

// maxFinite is a bound of relative changes that JSON can hold.
const maxFinite = 1e300

// unitOf returns the unit of a metric: that which a result states, or the end of a part of its name.
func (w *treeDiff) unitOf(metric string) string {
	for _, units := range w.units {
		if n := member(units, metric); n != nil && n.Kind == conf.Text {
			return n.Text
		}
	}
	for part := range strings.SplitSeq(metric, ".") {
		switch {
		case strings.HasSuffix(part, "_ps"):
			return "ps"
		case strings.HasSuffix(part, "_bytes") || part == "bytes":
			return "B"
		}
	}
	return ""
}

// jsonOf returns a scalar or a list of texts as JSON, and a description of a list or mapping as a JSON text; nil for
// nil.
func jsonOf(n *conf.Node) json.RawMessage {
	switch {
	case n == nil:
		return nil
	case n.Kind == conf.Null:
		return json.RawMessage("null")
	case n.Kind == conf.Number || n.Kind == conf.Bool:
		return json.RawMessage(n.Text)
	}
	text := n.Text
	switch {
	case n.Kind == conf.List && areTexts(n.List):
		texts := make([]string, len(n.List))
		for i := range n.List {
			texts[i] = n.List[i].Text
		}
		quoted, _ := json.Marshal(texts) // texts can be encoded
		return quoted
	case n.Kind == conf.List:
		text = fmt.Sprintf("(a list of %d)", len(n.List))
	case n.Kind == conf.Map:
		text = fmt.Sprintf("(%d members)", len(n.Members))
	}
	quoted, _ := json.Marshal(text) // texts can be encoded
	return quoted
}
