// This file lists ops, one a line.

package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"strconv"
	"unicode"
	"unicode/utf8"

	"github.com/tracedag/tracedag/dag"
	"github.com/tracedag/tracedag/internal/cli"
)

// listOps prints the ops of the ranks asked for.
func (v *view) listOps(out io.Writer, r *cli.Read) error {
	ranks, err := v.ranks.of(len(r.Trace.Ranks))
	if err != nil {
		return cli.InFile(r.Name, err)
	}
	l := lister{out: out, left: v.head}
	l.appendOp = appendOpJSON
	if !v.json {
		l.setColumns(r.Trace, ranks)
	}
	for _, rank := range ranks {
		if err := l.list(rank, &r.Trace.Ranks[rank]); err != nil {
			return err
		}
	}
	return l.flush()
}

// lister prints ops, many at a time.
type lister struct {
	out      io.Writer
	left     int64 // lines to print; -1: no limit
	lines    []byte
	appendOp func(line []byte, rank int, r *dag.Rank, i int) []byte
}

func (l *lister) list(rank int, r *dag.Rank) error {
	for i := 0; i < r.Len() && l.left != 0; i++ {
		l.lines = l.appendOp(l.lines, rank, r, i)
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

// column is a column of the listing that is there only where an op has something in it.
type column struct {
	heading string
	used    func(r *dag.Rank) bool
	append  func(line []byte, r *dag.Rank, i int) []byte
}

var rareColumns = []column{
	{"recv_bytes", func(r *dag.Rank) bool { return len(r.RecvBytes) > 0 }, func(line []byte, r *dag.Rank, i int) []byte {
		return appendNonzero(line, r.RecvBytes.At(i))
	}},
	{"flops", func(r *dag.Rank) bool { return len(r.Flops) > 0 }, func(line []byte, r *dag.Rank, i int) []byte {
		return appendNonzero(line, r.Flops.At(i))
	}},
	{"release", func(r *dag.Rank) bool { return len(r.Release) > 0 }, func(line []byte, r *dag.Rank, i int) []byte {
		return appendNonzeroTime(line, r.Release.At(i))
	}},
	{"job", func(r *dag.Rank) bool { return r.Job.Len() > 0 }, func(line []byte, r *dag.Rank, i int) []byte {
		return strconv.AppendInt(line, int64(r.Job.At(i)), 10)
	}},
	{"host", func(r *dag.Rank) bool { return r.Host.Len() > 0 }, func(line []byte, r *dag.Rank, i int) []byte {
		return appendNonzero(line, int64(r.Host.At(i)))
	}},
	{"dims", func(r *dag.Rank) bool { return r.Dims.Len() > 0 }, func(line []byte, r *dag.Rank, i int) []byte {
		return appendNonzero(line, int64(r.Dims.At(i)))
	}},
	{"priority", func(r *dag.Rank) bool { return r.Priority.Len() > 0 }, func(line []byte, r *dag.Rank, i int) []byte {
		return appendNonzero(line, int64(r.Priority.At(i)))
	}},
	{"measured_start", isMeasured, func(line []byte, r *dag.Rank, i int) []byte {
		start, _ := r.Measured(i)
		return appendMeasured(line, start)
	}},
	{"measured_end", isMeasured, func(line []byte, r *dag.Rank, i int) []byte {
		_, end := r.Measured(i)
		return appendMeasured(line, end)
	}},
	{"name", func(r *dag.Rank) bool { return r.Name.Len() > 0 }, func(line []byte, r *dag.Rank, i int) []byte {
		return appendText(line, r.Name.At(i))
	}},
	{"attrs", func(r *dag.Rank) bool { return r.Attrs.Len() > 0 }, func(line []byte, r *dag.Rank, i int) []byte {
		return appendText(line, r.Attrs.At(i))
	}},
}

func isMeasured(r *dag.Rank) bool { return len(r.MeasuredStart) > 0 || len(r.MeasuredEnd) > 0 }

// setColumns prints the headings, and sets appendOp for them.
func (l *lister) setColumns(t *dag.Trace, ranks []int) {
	var rare []column
	for _, c := range rareColumns {
		for _, rank := range ranks {
			if c.used(&t.Ranks[rank]) {
				rare = append(rare, c)
				break
			}
		}
	}
	l.lines = append(l.lines,
		"rank\top\tkind\tsubkind\tbytes\tpeer\ttag\tcomm\tduration\tstream\tnic\tdeps\tstart_deps"...)
	for _, c := range rare {
		l.lines = append(append(l.lines, '\t'), c.heading...)
	}
	l.lines = append(l.lines, '\n')
	l.appendOp = func(line []byte, rank int, r *dag.Rank, i int) []byte {
		line = appendOpText(line, rank, r, i)
		for _, c := range rare {
			line = c.append(append(line, '\t'), r, i)
		}
		return append(line, '\n')
	}
}

// appendOpText appends the columns that every listing has.
func appendOpText(line []byte, rank int, r *dag.Rank, i int) []byte {
	kind, subkind := r.Kind[i], r.Subkind.At(i)
	line = strconv.AppendInt(line, int64(rank), 10)
	line = strconv.AppendInt(append(line, '\t'), int64(i), 10)
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
	line = appendDeps(append(line, '\t'), &r.Deps, i)
	return appendDeps(append(line, '\t'), &r.StartDeps, i)
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

// appendOrAny appends a peer or a tag, of which -1 is the wildcard.
func appendOrAny(line []byte, n int64) []byte {
	if n == -1 {
		return append(line, "any"...)
	}
	return strconv.AppendInt(line, n, 10)
}

// appendDeps appends the numbers of the ops that op i depends on.
func appendDeps(line []byte, e *dag.Edges, i int) []byte {
	off := e.Of(i)
	if len(off) == 0 {
		return append(line, '-')
	}
	for k, o := range off {
		if k > 0 {
			line = append(line, ',')
		}
		line = strconv.AppendInt(line, int64(i)-int64(o), 10)
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

// appendText appends a text of the trace as one field of a line: in quotes where it could be taken for something else.
func appendText(line []byte, s string) []byte {
	switch {
	case s == "":
		return append(line, '-')
	case s == "-" || s[0] == '"' || !isPlain(s):
		return strconv.AppendQuote(line, s)
	}
	return append(line, s...)
}

// isPlain reports whether s has no control characters, which could also confuse a terminal.
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

// appendOpJSON appends an op as a JSON object and a line break.
func appendOpJSON(line []byte, rank int, r *dag.Rank, i int) []byte {
	kind, subkind := r.Kind[i], r.Subkind.At(i)
	line = strconv.AppendInt(append(line, `{"rank":`...), int64(rank), 10)
	line = strconv.AppendInt(append(line, `,"op":`...), int64(i), 10)
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
	number("bytes", r.Bytes.At(i), kind != dag.Calc)
	number("recv_bytes", r.RecvBytes.At(i), false)
	number("peer", int64(r.Peer.At(i)), message || subkind.Rooted())
	number("tag", r.Tag.At(i), message)
	number("comm", int64(r.Comm.At(i)), message || kind == dag.Coll)
	number("duration_ps", int64(r.Duration.At(i)), kind == dag.Calc)
	number("flops", r.Flops.At(i), false)
	number("release_ps", int64(r.Release.At(i)), false)
	number("stream", int64(r.Stream.At(i)), false)
	number("nic", int64(r.NIC.At(i)), false)
	number("job", int64(r.Job.At(i)), false)
	number("host", int64(r.Host.At(i)), false)
	number("dims", int64(r.Dims.At(i)), false)
	number("priority", int64(r.Priority.At(i)), false)
	line = appendDepsJSON(line, `,"deps":[`, &r.Deps, i)
	line = appendDepsJSON(line, `,"start_deps":[`, &r.StartDeps, i)
	start, end := r.Measured(i)
	if start != dag.Unmeasured {
		number("measured_start_ps", int64(start), true)
	}
	if end != dag.Unmeasured {
		number("measured_end_ps", int64(end), true)
	}
	if name := r.Name.At(i); name != "" {
		line = appendJSON(append(line, `,"name":`...), name)
	}
	if attrs := r.Attrs.At(i); attrs != "" {
		line = appendJSON(append(line, `,"attrs":`...), rawOrText(attrs))
	}
	return append(line, "}\n"...)
}

func appendDepsJSON(line []byte, key string, e *dag.Edges, i int) []byte {
	off := e.Of(i)
	if len(off) == 0 {
		return line
	}
	line = append(line, key...)
	for k, o := range off {
		if k > 0 {
			line = append(line, ',')
		}
		line = strconv.AppendInt(line, int64(i)-int64(o), 10)
	}
	return append(line, ']')
}

// rawOrText returns attributes as the JSON that they should be, or as a string where they are not.
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
