// This file lists ops, one per line.

package tracecat

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"unicode"
	"unicode/utf8"

	"github.com/tracedag/tracedag/dag"
	"github.com/tracedag/tracedag/formats/format"
	"github.com/tracedag/tracedag/internal/cli"
	"github.com/tracedag/tracedag/internal/par"
)

// listOps prints the selected ops of a trace, batch by batch.
func (v *view) listOps(p *cli.Program, s *source) (err error) {
	sectioned, h, err := s.outline()
	if err != nil {
		return err
	}
	selected, err := v.filter.of(h)
	if err != nil {
		return format.InFile(s.in.Name, err)
	}
	var sections *scan
	if sectioned != nil {
		sections = &scan{Sectioned: sectioned, sections: sectioned.Sections(), selected: selected, named: s.named}
	}
	l := lister{left: v.head, selected: selected, appendOp: appendOpJSON}
	var heading []byte
	if !v.json {
		var used [dag.NumFields]bool
		if sections != nil {
			used, err = sections.usedFields()
		} else {
			used, err = usedFields(s, h, selected.ranks)
		}
		if err != nil {
			return err
		}
		c := newColumns(func(id dag.FieldID) bool { return used[id] })
		l.appendOp, heading = c.appendOp, c.appendHeadings(nil)
	}
	if cli.IsTerminal(p.Stdout) {
		s.in.DoneReading() // a progress bar would disturb the list
	}
	screen, err := v.terminal.open(p, !v.json)
	if err != nil {
		return err
	}
	l.out, l.lines = screen, heading
	if sections != nil {
		return screen.close(sections.list(&l))
	}
	return screen.close(l.listAll(s, h))
}

// usedFields returns the fields of which a rank of the trace has values. ranks is in ascending order.
func usedFields(s *source, h *dag.Header, ranks []int) (used [dag.NumFields]bool, err error) {
	type worker struct {
		read dag.Reader
		used [dag.NumFields]bool
	}
	newWorker := func() *worker { return &worker{read: s.NewReader(dag.All)} }
	workers, err := par.EachWith(len(h.Batches), newWorker, func(w *worker, i int) error {
		b := h.Batches[i]
		own := within(ranks, b)
		if len(own) == 0 {
			return nil
		}
		read, err := w.read.Ranks(b)
		if err != nil {
			return err
		}
		for _, rank := range own {
			for _, id := range rareFields {
				w.used[id] = w.used[id] || isUsed(read[rank-b.First], id)
			}
		}
		return nil
	})
	for _, w := range workers {
		if w != nil {
			for id := range used {
				used[id] = used[id] || w.used[id]
			}
		}
	}
	return used, err
}

// within returns the ranks of a batch. ranks is in ascending order.
func within(ranks []int, b dag.Batch) []int {
	from, _ := slices.BinarySearch(ranks, b.First)
	to, _ := slices.BinarySearch(ranks, b.Last)
	return ranks[from:to]
}

// lister prints ops through a buffer.
type lister struct {
	out      io.Writer
	left     int64 // lines left to print; -1 for no limit
	selected *selection
	lines    []byte
	appendOp func(line []byte, rank, op int, r *dag.Rank, i int) []byte
}

// listAll prints the selected ops of all ranks.
func (l *lister) listAll(s dag.Source, h *dag.Header) error {
	read := s.NewReader(dag.All)
	for _, b := range h.Batches {
		own := within(l.selected.ranks, b)
		if len(own) == 0 {
			continue
		}
		if l.left == 0 {
			break
		}
		ranks, err := read.Ranks(b)
		if err != nil {
			return errors.Join(err, l.flush())
		}
		for _, rank := range own {
			if err := l.list(rank, 0, ranks[rank-b.First]); err != nil {
				return err
			}
		}
	}
	return l.flush()
}

// list prints the selected ops of a rank, or of a part of it that begins with the op of number first.
func (l *lister) list(rank, first int, r *dag.Rank) error {
	for i := 0; i < r.Len() && l.left != 0; i++ {
		if !l.selected.selects(r, i) {
			continue
		}
		l.lines = l.appendOp(l.lines, rank, first+i, r, i)
		l.left = max(l.left-1, -1)
		if len(l.lines) > 1<<16 {
			if err := l.flush(); err != nil {
				return err
			}
		}
	}
	return nil
}

func (l *lister) flush() error {
	_, err := l.out.Write(l.lines)
	l.lines = l.lines[:0]
	return err
}

// fixedFields are the fields of every listing.
var fixedFields = [...]dag.FieldID{
	dag.FieldKind, dag.FieldSubkind, dag.FieldBytes, dag.FieldPeer, dag.FieldTag, dag.FieldComm, dag.FieldDuration,
	dag.FieldStream, dag.FieldNIC, dag.FieldDeps, dag.FieldStartDeps,
}

// rareFields are the fields that a listing has only if an op has a value: all fields except fixedFields and the orders
// of dependents, texts last.
var rareFields = func() (rare []dag.FieldID) {
	var texts []dag.FieldID
	for id, f := range dag.Fields {
		if slices.Contains(fixedFields[:], dag.FieldID(id)) {
			continue
		}
		switch f.Of(new(dag.Rank)).(type) {
		case *dag.Edges:
		case *dag.Text:
			texts = append(texts, dag.FieldID(id))
		default:
			rare = append(rare, dag.FieldID(id))
		}
	}
	return append(rare, texts...)
}()

// isUsed reports whether a rank has values of a field. The two measured times count as one field.
func isUsed(r *dag.Rank, id dag.FieldID) bool {
	if id == dag.FieldMeasuredStart || id == dag.FieldMeasuredEnd {
		return len(r.MeasuredStart) > 0 || len(r.MeasuredEnd) > 0
	}
	return dag.Fields[id].Of(r).Len() > 0
}

// appendField appends the value of a field of op i.
func appendField(line []byte, r *dag.Rank, id dag.FieldID, i int) []byte {
	switch column := dag.Fields[id].Of(r).(type) {
	case *dag.Column[int32]:
		return appendNonzero(line, int64(column.At(i)))
	case *dag.Column[int64]:
		return appendNonzero(line, column.At(i))
	case *dag.Column[dag.Time]:
		return appendNonzeroTime(line, column.At(i))
	case *dag.Narrow:
		if id == dag.FieldJob { // jobs count from 0
			return strconv.AppendInt(line, int64(column.At(i)), 10)
		}
		return appendNonzero(line, int64(column.At(i)))
	case *dag.Times:
		return appendMeasured(line, column.At(i))
	case *dag.Text:
		return appendText(line, column.At(i))
	}
	panic(fmt.Sprintf("no listing of field %s", dag.Fields[id].Name))
}

// columns are the columns of a list: those of every list, and rare ones.
type columns struct{ rare []dag.FieldID }

// newColumns returns the columns of a list of ops that use some fields.
func newColumns(used func(dag.FieldID) bool) (c columns) {
	for _, id := range rareFields {
		if used(id) {
			c.rare = append(c.rare, id)
		}
	}
	return c
}

// appendHeadings appends a line of headings.
func (c columns) appendHeadings(line []byte) []byte {
	line = append(line, "rank\top\tkind\tsubkind\tbytes\tpeer\ttag\tcomm\tduration\tstream\tnic\tdeps\tstart_deps"...)
	for _, id := range c.rare {
		line = append(append(line, '\t'), dag.Fields[id].Name...)
	}
	return append(line, '\n')
}

// appendOp appends op i of r as a line. op is its index in the trace, from which the offsets of dependencies count.
func (c columns) appendOp(line []byte, rank, op int, r *dag.Rank, i int) []byte {
	line = appendOpText(line, rank, op, r, i)
	for _, id := range c.rare {
		line = appendField(append(line, '\t'), r, id, i)
	}
	return append(line, '\n')
}

// appendOpText appends the columns of every listing.
func appendOpText(line []byte, rank, op int, r *dag.Rank, i int) []byte {
	kind, subkind := r.Kind[i], r.Subkind.At(i)
	line = strconv.AppendInt(line, int64(rank), 10)
	line = strconv.AppendInt(append(line, '\t'), int64(op), 10)
	line = append(append(line, '\t'), kind.String()...)
	line = append(line, '\t')
	if subkind == dag.NoSubkind {
		line = append(line, '-')
	} else {
		line = append(line, subkind.String()...)
	}
	line = append(line, '\t')
	if kind == dag.Calc {
		line = appendNonzero(line, r.Bytes.At(i))
	} else {
		line = strconv.AppendInt(line, r.Bytes.At(i), 10)
	}
	message := kind == dag.Send || kind == dag.Recv
	line = append(line, '\t')
	switch peer := r.Peer.At(i); {
	case message:
		line = appendOrAny(line, int64(peer))
	case subkind.Rooted() && peer != dag.UnknownRoot:
		line = strconv.AppendInt(line, int64(peer), 10)
	case subkind.Rooted():
		line = append(line, '-')
	default:
		line = appendNonzero(line, int64(peer))
	}
	line = append(line, '\t')
	if message {
		line = appendOrAny(line, r.Tag.At(i))
	} else {
		line = appendNonzero(line, r.Tag.At(i))
	}
	line = append(line, '\t')
	if message || kind == dag.Coll {
		line = strconv.AppendInt(line, int64(r.Comm.At(i)), 10)
	} else {
		line = appendNonzero(line, int64(r.Comm.At(i)))
	}
	line = append(line, '\t')
	if duration := r.Duration.At(i); kind == dag.Calc || duration != 0 {
		line = duration.AppendTo(line)
	} else {
		line = append(line, '-')
	}
	line = strconv.AppendInt(append(line, '\t'), int64(r.Stream.At(i)), 10)
	line = strconv.AppendInt(append(line, '\t'), int64(r.NIC.At(i)), 10)
	line = appendDeps(append(line, '\t'), op, r.Deps.Of(i))
	return appendDeps(append(line, '\t'), op, r.StartDeps.Of(i))
}

func appendNonzero(line []byte, n int64) []byte {
	if n == 0 {
		return append(line, '-')
	}
	return strconv.AppendInt(line, n, 10)
}

func appendNonzeroTime(line []byte, t dag.Time) []byte {
	if t == 0 {
		return append(line, '-')
	}
	return t.AppendTo(line)
}

func appendMeasured(line []byte, t dag.Time) []byte {
	if t == dag.Unmeasured {
		return append(line, '-')
	}
	return t.AppendTo(line)
}

// appendOrAny appends a peer or a tag; -1 is the wildcard.
func appendOrAny(line []byte, n int64) []byte {
	if n == -1 {
		return append(line, "any"...)
	}
	return strconv.AppendInt(line, n, 10)
}

// appendDeps appends the numbers of the ops that an op depends on.
func appendDeps(line []byte, op int, off []int32) []byte {
	if len(off) == 0 {
		return append(line, '-')
	}
	for k, o := range off {
		if k > 0 {
			line = append(line, ',')
		}
		line = strconv.AppendInt(line, int64(op)-int64(o), 10)
	}
	return line
}

func appendInts(line []byte, separator byte, numbers ...int64) []byte {
	for i, n := range numbers {
		if i > 0 {
			line = append(line, separator)
		}
		line = strconv.AppendInt(line, n, 10)
	}
	return line
}

// appendText appends a text of the trace as one field of a line, quoted if it is ambiguous.
func appendText(line []byte, s string) []byte {
	switch {
	case s == "":
		return append(line, '-')
	case s == "-" || s[0] == '"' || !isPlain(s):
		return strconv.AppendQuote(line, s)
	}
	return append(line, s...)
}

// isPlain reports whether s has no control or invalid characters, which could also control a terminal.
func isPlain(s string) bool {
	for _, r := range s {
		if unicode.IsControl(r) || r == utf8.RuneError {
			return false
		}
	}
	return true
}

// plain returns s, quoted if it is not plain.
func plain(s string) string {
	if isPlain(s) {
		return s
	}
	return strconv.Quote(s)
}

// appendOpJSON appends op i of r as a JSON object and a line break. op is its index in the trace.
func appendOpJSON(line []byte, rank, op int, r *dag.Rank, i int) []byte {
	kind, subkind := r.Kind[i], r.Subkind.At(i)
	line = strconv.AppendInt(append(line, `{"rank":`...), int64(rank), 10)
	line = strconv.AppendInt(append(line, `,"op":`...), int64(op), 10)
	line = append(append(line, `,"kind":"`...), kind.String()...)
	if subkind != dag.NoSubkind {
		line = append(append(line, `","subkind":"`...), subkind.String()...)
	}
	line = append(line, '"')
	number := func(key string, n int64, always bool) {
		if n != 0 || always {
			line = append(append(append(line, `,"`...), key...), `":`...)
			line = strconv.AppendInt(line, n, 10)
		}
	}
	message := kind == dag.Send || kind == dag.Recv
	always := func(id dag.FieldID) bool {
		switch id {
		case dag.FieldBytes:
			return kind != dag.Calc
		case dag.FieldPeer:
			return message || subkind.Rooted()
		case dag.FieldTag:
			return message
		case dag.FieldComm:
			return message || kind == dag.Coll
		case dag.FieldDuration:
			return kind == dag.Calc
		}
		return false
	}
	for id := range dag.Fields {
		id, f := dag.FieldID(id), &dag.Fields[id]
		switch column := f.Of(r).(type) {
		case *dag.Column[int32]:
			number(f.Name, int64(column.At(i)), always(id))
		case *dag.Column[int64]:
			number(f.Name, column.At(i), always(id))
		case *dag.Column[dag.Time]:
			number(f.Name+"_ps", int64(column.At(i)), always(id))
		case *dag.Narrow:
			number(f.Name, int64(column.At(i)), always(id))
		case *dag.Times:
			if at := column.At(i); at != dag.Unmeasured {
				number(f.Name+"_ps", int64(at), true)
			}
		case *dag.Edges:
			if id == dag.FieldDeps || id == dag.FieldStartDeps {
				line = appendDepsJSON(line, f.Name, op, column.Of(i))
			}
		}
	}
	for id := range dag.Fields {
		f := &dag.Fields[id]
		column, ok := f.Of(r).(*dag.Text)
		if !ok || column.At(i) == "" {
			continue
		}
		var value any = column.At(i)
		if dag.FieldID(id) == dag.FieldAttrs {
			value = rawOrText(column.At(i))
		}
		line = append(append(append(line, `,"`...), f.Name...), `":`...)
		line = appendJSON(line, value)
	}
	return append(line, "}\n"...)
}

func appendDepsJSON(line []byte, key string, op int, off []int32) []byte {
	if len(off) == 0 {
		return line
	}
	line = append(append(append(line, `,"`...), key...), `":[`...)
	for k, o := range off {
		if k > 0 {
			line = append(line, ',')
		}
		line = strconv.AppendInt(line, int64(op)-int64(o), 10)
	}
	return append(line, ']')
}

// rawOrText returns attributes as JSON if they are valid, else as a string.
func rawOrText(attrs string) any {
	if json.Valid([]byte(attrs)) {
		return json.RawMessage(attrs)
	}
	return attrs
}

// appendJSON appends value as JSON on one line.
func appendJSON(line []byte, value any) []byte {
	var b bytes.Buffer
	encoder := json.NewEncoder(&b)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(value); err != nil {
		panic(fmt.Sprintf("encoding a %T: %v", value, err)) // strings and valid JSON can be encoded
	}
	return append(line, bytes.TrimSuffix(b.Bytes(), []byte("\n"))...)
}

// writeJSONLines writes each value as a JSON object on a line of its own.
func writeJSONLines[T any](out io.Writer, values []T) error {
	encoder := json.NewEncoder(out)
	encoder.SetEscapeHTML(false)
	for _, v := range values {
		if err := encoder.Encode(v); err != nil {
			return err
		}
	}
	return nil
}
