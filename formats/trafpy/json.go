// This file reads and writes the table as JSON: one object of columns, or, as TrafPy writes it, that object as the
// text of a JSON string.

package trafpy

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/tracedag/tracedag/dag"
	"github.com/tracedag/tracedag/dag/jobgraph"
	"github.com/tracedag/tracedag/formats/format"
	"github.com/tracedag/tracedag/memory"
)

// detectJSON reports whether the first column is one of TrafPy's, or the file a pickle, which is then refused.
func detectJSON(head []byte) bool {
	if isPickle(head) {
		return true
	}
	head = bytes.TrimLeft(head, blanks)
	if len(head) > 0 && head[0] == '"' {
		head = bytes.ReplaceAll(head[1:], []byte(`\"`), []byte(`"`))
	}
	s := scanner{text: head}
	s.expect('{')
	name := s.string()
	s.expect(':')
	s.expect('[')
	return s.err == nil && (column(string(name)) >= 0 || string(name) == jobID)
}

func readJSON(inputs []*format.Input, o format.ReadOptions) (*dag.Trace, error) {
	in, err := format.Single(inputs, "a list of flows")
	if err != nil {
		return nil, err
	}
	text, err := memory.ReadContent(o.Context, in.Reader)
	if err != nil {
		return nil, format.FileErrorf(in.Name, "reading: %w", err)
	}
	if isPickle(text) {
		return nil, &format.FileError{File: in.Name, Err: errPickle}
	}
	if trimmed := bytes.TrimLeft(text, blanks); len(trimmed) > 0 && trimmed[0] == '"' {
		var inner string
		if err := json.Unmarshal(text, &inner); err != nil {
			return nil, decodeError(in.Name, err, len(text))
		}
		text = []byte(inner)
	}
	t, err := newTable(in, &o)
	if err != nil {
		return nil, err
	}
	if isJobs(text) {
		return readJobs(t, text)
	}
	s := scanner{file: in.Name, text: text}
	if err := s.table(t); err != nil {
		return nil, err
	}
	return t.trace()
}

func decodeError(file string, err error, size int) error {
	var syntax *json.SyntaxError
	offset := int64(size)
	if errors.As(err, &syntax) {
		offset = syntax.Offset
	}
	return &format.SyntaxError{File: file, Offset: offset, Expected: "a JSON string", Found: err.Error()}
}

const blanks = " \t\r\n"

// scanner parses a text sequentially. It keeps the first error.
type scanner struct {
	file string
	text []byte
	at   int
	err  error
}

func (s *scanner) fail(expected string) {
	found := "the end"
	if s.at < len(s.text) {
		found = fmt.Sprintf("%q", s.text[s.at:min(len(s.text), s.at+20)])
	}
	s.failWith(s.at, expected, found)
}

func (s *scanner) failWith(at int, expected, found string) {
	if s.err == nil {
		s.err = &format.SyntaxError{File: s.file, Offset: int64(at), Expected: expected, Found: found}
	}
}

// peek returns the next byte that is no blank, or 0 at the end or after an error.
func (s *scanner) peek() byte {
	for s.at < len(s.text) && strings.IndexByte(blanks, s.text[s.at]) >= 0 {
		s.at++
	}
	if s.at == len(s.text) || s.err != nil {
		return 0
	}
	return s.text[s.at]
}

func (s *scanner) expect(c byte) {
	if s.peek() != c {
		s.fail(fmt.Sprintf("%q", c))
		return
	}
	s.at++
}

// more skips the comma before another item, or the end of a list.
func (s *scanner) more(first bool, end byte) bool {
	switch c := s.peek(); {
	case s.err != nil:
		return false
	case c == end:
		s.at++
		return false
	case first:
		return true
	case c == ',':
		s.at++
		return true
	}
	s.fail(fmt.Sprintf(`"," or %q`, end))
	return false
}

// string returns the text of a string. It is valid until the next call.
func (s *scanner) string() []byte {
	if s.peek() != '"' {
		s.fail("a string")
		return nil
	}
	from := s.at
	escaped := false
	for s.at++; s.at < len(s.text); s.at++ {
		switch s.text[s.at] {
		case '\\':
			escaped = true
			s.at++
		case '"':
			s.at++
			if raw := s.text[from+1 : s.at-1]; !escaped {
				return raw
			}
			var text string
			if err := json.Unmarshal(s.text[from:s.at], &text); err != nil {
				s.failWith(from, "a string", err.Error())
			}
			return []byte(text)
		}
	}
	s.at = len(s.text)
	s.fail("the end of a string")
	return nil
}

// value returns a number or the text of a string.
func (s *scanner) value() []byte {
	if s.peek() == '"' {
		return s.string()
	}
	from := s.at
	for s.at < len(s.text) && strings.IndexByte("0123456789+-.eE", s.text[s.at]) >= 0 {
		s.at++
	}
	if s.at == from {
		s.fail("a number or a string")
	}
	return s.text[from:s.at]
}

// skip skips any value.
func (s *scanner) skip() {
	s.peek()
	d := json.NewDecoder(bytes.NewReader(s.text[s.at:]))
	var ignored json.RawMessage
	if err := d.Decode(&ignored); err != nil {
		s.fail("a value")
		return
	}
	s.at += int(d.InputOffset())
}

// table reads all columns.
func (s *scanner) table(t *table) error {
	s.expect('{')
	for first := true; s.more(first, '}'); first = false {
		s.peek()
		at := s.at
		name := string(s.string())
		s.expect(':')
		c := column(name)
		switch {
		case s.err != nil:
		case c < 0:
			t.options.Warn("%s: the column %q is not kept", s.file, name)
			s.skip()
		case t.columns[c] >= 0:
			s.failWith(at, "every column once", name+" again")
		default:
			t.columns[c] = 0
			s.column(t, c)
		}
	}
	if s.peek(); s.err == nil && s.at < len(s.text) {
		s.fail("the end")
	}
	return s.err
}

// column reads the values of a column.
func (s *scanner) column(t *table, c int) {
	s.expect('[')
	for first := true; s.more(first, ']'); first = false {
		s.peek()
		at := s.at
		value := s.value()
		if s.err != nil {
			return
		}
		if err := t.add(c, value); err != nil {
			var v *valueError
			if errors.As(err, &v) {
				s.failWith(at, v.expected, v.found)
			}
			return
		}
	}
}

func writeJSON(w io.Writer, t *dag.Trace, _ format.WriteOptions) error {
	if jobs, err := jobgraph.Read(t); err == nil && jobs != nil {
		return writeJobs(w, t, jobs)
	}
	rows, err := newRows(t)
	if err != nil {
		return err
	}
	out := bufio.NewWriterSize(w, 1<<18)
	var text, value []byte
	for c, name := range columnNames {
		before := `, "`
		if c == 0 {
			before = `{"`
		}
		fmt.Fprintf(out, `%s%s": [`, before, name)
		for k := range rows.sends {
			text = text[:0]
			if k > 0 {
				text = append(text, ", "...)
			}
			if c <= destinationNode {
				value = rows.append(value[:0], k, c)
				text = appendQuoted(text, value)
			} else {
				text = rows.append(text, k, c)
			}
			if _, err := out.Write(text); err != nil {
				return err
			}
		}
		out.WriteByte(']')
	}
	out.WriteByte('}')
	return out.Flush()
}

// appendQuoted appends a text as a JSON string.
func appendQuoted(to, text []byte) []byte {
	plain := true
	for _, c := range text {
		plain = plain && c >= ' ' && c < 0x7f && c != '"' && c != '\\'
	}
	if plain {
		to = append(to, '"')
		to = append(to, text...)
		return append(to, '"')
	}
	quoted, err := json.Marshal(string(text))
	if err != nil {
		panic(fmt.Sprintf("unreachable: a string cannot be encoded: %v", err))
	}
	return append(to, quoted...)
}
