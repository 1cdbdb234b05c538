// This file parses the lines of a workload text.

package simai

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/tracedag/tracedag/dag"
	"github.com/tracedag/tracedag/dag/attr"
	"github.com/tracedag/tracedag/formats/format"
)

// The policies.
const (
	transformer = "HYBRID_TRANSFORMER"              // no recomputation
	recomputing = "HYBRID_TRANSFORMER_FWD_IN_BCKWD" // the backward pass recomputes activations
	micro       = "MICRO"                           // collectives of the weights only
)

// workload is a parsed text.
type workload struct {
	policy string
	header map[string]int64 // values of line 1 by name
	// Rows that keep their activations, and rows at which the backward pass first recomputes, in ascending order.
	checkpoints, initiates []int
	stated                 int64 // number of rows in line 2
	rows                   []row
	short                  int64 // rows of 11 fields
	ignored                int64 // collectives with a size that are none for SimAI
}

// row has the phases forward, gradient of the input and gradient of the weights.
type row struct {
	name   string
	phases [numPhases]phase
}

const (
	forward = iota
	input
	weight
	numPhases
)

// phase is a computation and the collective after it.
type phase struct {
	time  dag.Time
	kind  dag.Subkind // NoSubkind: no collective
	group group       // noGroup without a collective
	bytes int64       // as in the text
}

// size returns the size of the collective that SimAI runs: it raises small ones of the forward pass.
func (p *phase) size(of int) int64 {
	const least = 4096
	if of == forward && p.bytes > 0 {
		return max(p.bytes, least)
	}
	return p.bytes
}

// bases are the collectives in the order in which SimAI compares the beginnings of words.
var bases = []struct {
	name string
	kind dag.Subkind
}{
	{"ALLREDUCE", dag.Allreduce},
	{"ALLTOALL", dag.Alltoall},
	{"ALLGATHER", dag.Allgather},
	{"REDUCESCATTER", dag.ReduceScatter},
}

// names are the names of numbers in line 1.
var names = []string{"model_parallel_NPU_group", "ep", "pp", "vpp", "ga", "all_gpus", "pp_comm"}

// parser parses the lines of a text.
type parser struct {
	file   string
	line   int64
	compat bool
	w      *workload
}

func (p *parser) fail(expected, found string) error {
	return &format.SyntaxError{File: p.file, Line: p.line, Expected: expected, Found: found}
}

func parse(file string, content []byte, compat bool) (*workload, error) {
	p := &parser{file: file, compat: compat, w: &workload{header: map[string]int64{}}}
	for line := range strings.Lines(string(content)) {
		p.line++
		if !utf8.ValidString(line) {
			return nil, p.fail("UTF-8", "other bytes")
		}
		if err := p.parseLine(strings.Fields(line)); err != nil {
			return nil, err
		}
	}
	if p.line < 2 {
		p.line++
		return nil, p.fail("a policy, and on the second line a number of layers", "the end of the file")
	}
	return p.w, p.checkRows()
}

func (p *parser) parseLine(fields []string) (err error) {
	switch {
	case p.line == 1:
		return p.parseHeader(fields)
	case p.line == 2:
		if len(fields) != 1 {
			return p.fail("a number of layers and no other field", strconv.Itoa(len(fields))+" fields")
		}
		p.w.stated, err = p.number(fields[0], "a number of layers")
		return err
	case len(fields) == 0:
		return nil
	}
	return p.parseRow(fields)
}

// number parses a number of 0 or more; what names it for errors.
func (p *parser) number(field, what string) (int64, error) {
	v, err := strconv.ParseInt(field, 10, 64)
	if err != nil || v < 0 {
		return 0, p.fail(what+", 0 or more", quote(field))
	}
	return v, nil
}

// parseHeader parses the policy and the pairs of a name and a value.
func (p *parser) parseHeader(fields []string) error {
	if len(fields) == 0 {
		return p.fail("a policy, such as "+recomputing, "an empty line")
	}
	p.w.policy = fields[0]
	switch p.w.policy {
	case transformer, recomputing, micro:
	default:
		return p.fail(recomputing+", "+transformer+" or "+micro+"; other policies are those of ASTRA-sim (--from "+
			"astratext)", quote(p.w.policy))
	}
	for rest := fields[1:]; len(rest) > 0; {
		name, colon := strings.CutSuffix(rest[0], ":")
		rest = rest[1:]
		known := slices.Contains(names, name) && (colon || name == "pp_comm")
		layers := colon && (name == "checkpoints" || name == "checkpoint_initiates")
		if !known && !layers {
			continue // a name that SimAI does not know either, or its value
		}
		if len(rest) == 0 {
			return p.fail("the value of "+name, "the end of the line")
		}
		text := rest[0]
		if name == "pp_comm" { // a fraction if sequence parallelism divides it
			text, _, _ = strings.Cut(text, ".")
		}
		v, err := p.number(text, "the value of "+name)
		if err != nil {
			return err
		}
		rest = rest[1:]
		if _, again := p.w.header[name]; again {
			return p.fail(name+" once", "it twice")
		}
		p.w.header[name] = v
		if layers {
			if rest, err = p.parseLayers(name, v, rest); err != nil {
				return err
			}
		}
	}
	return nil
}

// parseLayers parses the row numbers after a number of rows. It returns the remaining fields.
func (p *parser) parseLayers(name string, count int64, rest []string) ([]string, error) {
	if int64(len(rest)) < count {
		return nil, p.fail(fmt.Sprintf("%d layers after %s", count, name), strconv.Itoa(len(rest)))
	}
	var layers []int
	for _, field := range rest[:count] {
		l, err := p.number(field, "the number of a layer")
		if err != nil {
			return nil, err
		}
		if !p.compat || len(layers) == 0 { // SimAI reads the first number as often as there are numbers
			layers = append(layers, int(min(l, math.MaxInt32)))
		}
	}
	slices.Sort(layers)
	layers = slices.Compact(layers)
	if name == "checkpoints" {
		p.w.checkpoints = layers
	} else {
		p.w.initiates = layers
	}
	return rest[count:], nil
}

// parseRow parses
//
//	name -1 fwd_time fwd_comm fwd_size ig_time ig_comm ig_size wg_time wg_comm wg_size update_time
//
// It ignores the second field and the last, which may be absent.
func (p *parser) parseRow(fields []string) (err error) {
	const columns = 12
	if len(fields) != columns && len(fields) != columns-1 {
		return p.fail(fmt.Sprintf("the %d fields of a row, or %d without the last", columns, columns-1),
			strconv.Itoa(len(fields)))
	}
	if len(fields) < columns {
		p.w.short++
	}
	if len(p.w.rows) == maxRows {
		return p.fail(fmt.Sprintf("at most %d rows", maxRows), "another")
	}
	r := row{name: fields[0]}
	for i := range r.phases {
		if r.phases[i], err = p.parsePhase(i, fields[2+3*i:][:3]); err != nil {
			return err
		}
	}
	p.w.rows = append(p.w.rows, r)
	return nil
}

// parsePhase parses a time in nanoseconds, a collective and its size.
func (p *parser) parsePhase(of int, fields []string) (ph phase, err error) {
	ns, err := p.number(fields[0], "a time in ns")
	if err != nil {
		return ph, err
	}
	if ns > int64(dag.MaxTime/dag.Nanosecond) {
		return ph, p.fail(fmt.Sprintf("a time of at most %v", dag.MaxTime), quote(fields[0])+" ns")
	}
	ph.time = dag.Time(ns) * dag.Nanosecond
	if ph.bytes, err = p.number(fields[2], "a size in bytes"); err != nil {
		return ph, err
	}
	if ph.bytes > maxBytes {
		return ph, p.fail(fmt.Sprintf("a size of at most %d bytes", int64(maxBytes)), quote(fields[2]))
	}
	if _, err := strconv.ParseInt(fields[1], 10, 64); err == nil { // a field is absent
		return ph, p.fail("a collective or NONE", quote(fields[1]))
	}
	ph.group = noGroup
	for _, b := range bases {
		suffix, is := strings.CutPrefix(fields[1], b.name)
		if !is {
			continue
		}
		if ph.group = groupOf(suffix, of); ph.group != noGroup {
			ph.kind = b.kind
		}
		break
	}
	if ph.group == noGroup {
		if ph.bytes > 0 && fields[1] != "NONE" {
			p.w.ignored++
		}
		ph.bytes = 0
	}
	return ph, nil
}

// groupOf returns the group that the suffix of a collective means in a phase.
func groupOf(suffix string, of int) group {
	switch {
	case suffix == "" && of == weight:
		return dataGroup
	case suffix == "":
		return tensorGroup
	case suffix == "_EP":
		return expertGroup
	case suffix == "_DP_EP":
		return dataExpertGroup
	}
	return noGroup
}

// checkRows checks the row numbers of line 1.
func (p *parser) checkRows() error {
	w := p.w
	p.line = 1
	for _, layers := range [...][]int{w.checkpoints, w.initiates} {
		if n := len(layers); n > 0 && layers[n-1] >= len(w.rows) {
			return p.fail(fmt.Sprintf("layers below %d, the number of rows", len(w.rows)), strconv.Itoa(layers[n-1]))
		}
	}
	for _, at := range w.initiates {
		if w.checkpoint(at) < 0 {
			return p.fail(fmt.Sprintf("a checkpoint before layer %d, which initiates recomputation", at), "none")
		}
	}
	return nil
}

// checkpoint returns the last checkpoint before a row, or -1.
func (w *workload) checkpoint(at int) int {
	i, _ := slices.BinarySearch(w.checkpoints, at)
	if i == 0 {
		return -1
	}
	return w.checkpoints[i-1]
}

// warnings returns what may surprise about the text.
func (w *workload) warnings(l *layout) (list []string) {
	if w.stated != int64(len(w.rows)) {
		list = append(list, fmt.Sprintf("line 2 announces %d layers, and the text has %d rows; all rows are used",
			w.stated, len(w.rows)))
	}
	if w.short > 0 {
		list = append(list, fmt.Sprintf("rows without the last field: %d", w.short))
	}
	if w.ignored > 0 {
		list = append(list, fmt.Sprintf("collectives that SimAI does not run are discarded: %d, such as BROADCAST",
			w.ignored))
	}
	if !l.stated {
		list = append(list, fmt.Sprintf("the text has no number of GPUs (all_gpus); read for %d; set it with --ranks",
			l.ranks))
	}
	if l.pp > 1 || w.header["pp_comm"] > 0 {
		list = append(list, fmt.Sprintf("the rows are those of one pipeline stage: every rank runs them, and the "+
			"messages between %d stages (pp_comm, %d bytes for each micro batch) are not in the trace", l.pp,
			w.header["pp_comm"]))
	}
	if (l.pp == 1) != (w.header["pp_comm"] == 0) {
		list = append(list, fmt.Sprintf("pp is %d and pp_comm %d: expected pp_comm above 0 exactly if there are "+
			"several stages", l.pp, w.header["pp_comm"]))
	}
	return list
}

// attrs returns the text for backends.
func (w *workload) attrs(l *layout) *attr.SimAI {
	a := &attr.SimAI{GPUs: int64(l.ranks), TP: int64(l.tp), EP: int64(l.ep), PP: int64(l.pp), VPP: w.header["vpp"],
		GA: w.header["ga"], PPComm: w.header["pp_comm"], Rows: make([]attr.SimAIRow, len(w.rows))}
	if w.policy != micro {
		for _, name := range names[:5] {
			if w.header[name] == 0 {
				a.Unknown = append(a.Unknown, name)
			}
		}
	}
	for i := range w.rows {
		r := &w.rows[i]
		var phases [numPhases]attr.SimAIPhase
		for k := range phases {
			p := &r.phases[k]
			phases[k] = attr.SimAIPhase{Time: int64(p.time / dag.Nanosecond), Coll: p.kind.String(), Bytes: p.bytes}
			if p.group != noGroup {
				phases[k].Group = groupNames[p.group]
			}
		}
		a.Rows[i] = attr.SimAIRow{Name: r.name, Forward: phases[forward], Input: phases[input],
			Weight: phases[weight]}
	}
	return a
}

// quote returns a field for a message, shortened if it is long.
func quote(field string) string {
	const most = 60
	if len(field) > most {
		return strconv.Quote(field[:most]) + "..."
	}
	return strconv.Quote(field)
}
