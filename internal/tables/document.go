package tables

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/tracedag/tracedag/internal/units"
)

// document is what the tables take from the JSON document of a run.
type document struct {
	run struct {
		Study, Point, ID, Version string
		Index                     int64
		Replica                   int32
		Seed                      int64
		Factors                   json.RawMessage
		Trace                     struct {
			Name, SHA256 string
			Command      []string
		}
		Topology struct{ Given, Placement string }
		Settings map[string]string
		Units    map[string]string
	}
	backend, model, failed string
	status                 string // of a run that failed; "": failed
	complete               value  // NULL for synthetic traffic
	params, traffic        json.RawMessage
	numbers                []metric
	kept                   []metric // numbers that the tables show
}

// metric is a number of a result.
type metric struct {
	path  string // names in the document, separated by dots
	scope string // such as rank=3; "": the whole run
	unit  string
	float float64
	whole value // NULL unless it is an integer of 64 bits
}

// maxDepth is the largest depth of objects in a result.
const maxDepth = 64

// parse reads the document of a run.
func parse(r io.Reader) (*document, error) {
	d := &document{}
	p := &parser{document: d, json: json.NewDecoder(r)}
	p.json.UseNumber()
	if err := p.begin('{'); err != nil {
		return nil, err
	}
	for p.json.More() {
		name, err := p.name()
		if err == nil {
			err = p.member(name)
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
	}
	if _, err := p.json.Token(); err != nil {
		return nil, err
	}
	if d.run.ID == "" {
		return nil, errors.New("expected a description of the run (\"run\"), found none")
	}
	return d, nil
}

type parser struct {
	*document
	json *json.Decoder
}

func (p *parser) begin(want json.Delim) error {
	found, err := p.json.Token()
	if err == nil && found != want {
		err = fmt.Errorf("expected %v, found %v", want, found)
	}
	return err
}

func (p *parser) name() (string, error) {
	token, err := p.json.Token()
	name, _ := token.(string)
	return name, err
}

// member reads a member of the document. It skips members that describe the run or an error and contain no results, and
// wall-clock figures.
func (p *parser) member(name string) error {
	switch name {
	case "run":
		return p.json.Decode(&p.run)
	case "backend":
		return p.json.Decode(&p.backend)
	case "model":
		return p.json.Decode(&p.model)
	case "params":
		return p.json.Decode(&p.params)
	case "error":
		return p.json.Decode(&p.failed)
	case "status":
		return p.json.Decode(&p.status)
	case "complete":
		p.complete.present = true
		var complete bool
		err := p.json.Decode(&complete)
		if complete {
			p.complete.int = 1
		}
		return err
	case "traffic":
		return p.json.Decode(&p.traffic)
	case "stuck", "leftover", "overflow", "wall_s", "ops_per_s":
		return p.json.Decode(new(json.RawMessage))
	}
	return p.value(name, 0)
}

// value reads the numbers of a value.
func (p *parser) value(path string, depth int) error {
	if depth > maxDepth {
		return errors.New("the document is nested too deep")
	}
	token, err := p.json.Token()
	if err != nil {
		return err
	}
	switch token := token.(type) {
	case json.Number:
		p.add(path, "", token)
	case json.Delim:
		if token == '[' {
			return p.array(path)
		}
		return p.object(path, depth)
	}
	return nil
}

func (p *parser) object(path string, depth int) error {
	for first := true; p.json.More(); first = false {
		name, err := p.name()
		switch {
		case err != nil:
		case first && name == "columns":
			return p.table(path)
		default:
			err = p.value(path+"."+name, depth+1)
		}
		if err != nil {
			return err
		}
	}
	_, err := p.json.Token()
	return err
}

// array reads a list: of numbers by rank, or of objects that name what they are of.
func (p *parser) array(path string) error {
	for i := 0; p.json.More(); i++ {
		var item any
		if err := p.json.Decode(&item); err != nil {
			return err
		}
		switch item := item.(type) {
		case json.Number:
			p.add(path, "rank="+strconv.Itoa(i), item)
		case map[string]any:
			names := slices.Sorted(maps.Keys(item))
			values := make([]any, len(names))
			for k, name := range names {
				values[k] = item[name]
			}
			p.item(path, i, names, values)
		}
	}
	_, err := p.json.Token()
	return err
}

// table reads a table after its key "columns": an object with the names of columns and a list of rows.
func (p *parser) table(path string) error {
	var columns []string
	if err := p.json.Decode(&columns); err != nil {
		return err
	}
	for p.json.More() {
		name, err := p.name()
		if err != nil {
			return err
		}
		if name != "rows" {
			if err := p.json.Decode(new(json.RawMessage)); err != nil {
				return err
			}
			continue
		}
		if err := p.begin('['); err != nil {
			return err
		}
		for i := 0; p.json.More(); i++ {
			var row []any
			if err := p.json.Decode(&row); err != nil {
				return err
			}
			if len(row) == len(columns) {
				p.item(path, i, columns, row)
			}
		}
		if _, err := p.json.Token(); err != nil {
			return err
		}
	}
	_, err := p.json.Token()
	return err
}

// item adds the numbers of an entry of a list. Its texts and numbers such as rank identify it; without any, in a table
// the first column does, and otherwise its place. Entries that are messages, flows or ops have no place in the tables,
// as there may be millions.
func (p *parser) item(path string, place int, names []string, values []any) {
	if slices.Contains(names, "op") || slices.Contains(names, "flow") ||
		slices.Contains(names, "src") && slices.Contains(names, "dst") {
		return
	}
	list := path[strings.LastIndexByte(path, '.')+1:]
	var scope []string
	identifies := make([]bool, len(names))
	for i, name := range names {
		text, isText := values[i].(string)
		if number, is := values[i].(json.Number); is && (name == "rank" || name == "vc" || name == "host" ||
			name == "unit" || name == "step" || name == "size_bytes") {
			text, isText = number.String(), true
		}
		if !isText {
			continue
		}
		if name == "name" {
			name = singular(list)
		}
		identifies[i] = true
		scope = append(scope, name+"="+text)
	}
	if len(names) == 0 {
		return
	}
	if len(scope) == 0 {
		scope = []string{singular(list) + "=" + strconv.Itoa(place)}
		if number, is := values[0].(json.Number); is && strings.HasSuffix(list, "_by_size") {
			identifies[0], scope[0] = true, "size="+formatSize(number)
		}
	}
	for i, name := range names {
		if !identifies[i] {
			p.any(path+"."+name, strings.Join(scope, ","), values[i])
		}
	}
}

// any adds the numbers of a value of an entry.
func (p *parser) any(path, scope string, v any) {
	switch v := v.(type) {
	case json.Number:
		p.add(path, scope, v)
	case map[string]any:
		for _, name := range slices.Sorted(maps.Keys(v)) {
			p.any(path+"."+name, scope, v[name])
		}
	}
}

// singular returns the name of an entry of a list.
func singular(list string) string {
	return strings.TrimSuffix(list[strings.LastIndexByte(list, '_')+1:], "s")
}

func formatSize(n json.Number) string {
	if bytes, err := n.Int64(); err == nil {
		return units.FormatSize(bytes)
	}
	return n.String() + "B"
}

func (p *parser) add(path, scope string, n json.Number) {
	m := metric{path: path, scope: scope, unit: p.unit(path)}
	var err error
	if m.float, err = n.Float64(); err != nil { // out of range
		m.float = math.NaN()
	}
	if i, err := strconv.ParseInt(n.String(), 10, 64); err == nil {
		m.whole = integer(i)
	}
	p.numbers = append(p.numbers, m)
}

// unit returns the unit of a number: that which the run declares for its path or for the longest path above it, else
// that which its name or the nearest name above it contains, else "1".
func (p *parser) unit(path string) string {
	if path[strings.LastIndexByte(path, '.')+1:] == "count" {
		return "1"
	}
	for at := path; at != ""; at = at[:max(0, strings.LastIndexByte(at, '.'))] {
		if unit := p.run.Units[at]; unit != "" {
			return unit
		}
	}
	names := strings.Split(path, ".")
	for i := len(names) - 1; i >= 0; i-- {
		if unit := unitOf(names[i]); unit != "" {
			return unit
		}
	}
	return "1"
}

// unitOf returns the unit that a name contains, or "". Units are words of the name: fct_ps_at_sender is in ps.
func unitOf(name string) string {
	words := strings.Split(name, "_")
	last := len(words) - 1
	switch {
	case slices.Contains(words, "ps"):
		return "ps"
	case words[last] == "bytes":
		return "B"
	case words[last] == "gbps":
		return "Gb/s"
	case words[last] == "s" && last > 0 && words[last-1] == "bits":
		return "b/s"
	case words[last] == "s" && last > 0 && words[last-1] == "per":
		return "1/s"
	case words[last] == "s" && last > 0:
		return "s"
	case words[last] == "percentage":
		return "%"
	}
	return ""
}
