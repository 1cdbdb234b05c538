// Package nodejson reads the common structure of Chakra's JSON dialects: one file per rank, an object with a long
// list of nodes among its members.
package nodejson

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/tracedag/tracedag/formats/format"
	"github.com/tracedag/tracedag/internal/units"
	"github.com/tracedag/tracedag/memory"
)

// File receives the parts of a file in order. line is the first line of a part.
type File interface {
	Member(line int64, name string, value json.RawMessage) error // of the object, other than the list
	Node(line int64, value json.RawMessage) error                // of the list
}

// valueShare is the part of the limit of memory that a member or node may take: it is decoded from a copy.
const valueShare = 16

// Read reads the object in the input. Its member called list has the nodes and must exist. A member or node of more
// than a sixteenth of the limit of memory of the context, which may be nil, is an error. A file that ends early after
// an
// element of the list, or whose compressed data is damaged there, is a [*CutError].
func Read(ctx context.Context, in *format.Input, list string, f File) error {
	limit := memory.Limit(ctx)
	r := &reader{file: in.Name, lines: lines{src: in.Reader, limit: limit}, list: list, parts: f}
	r.dec = json.NewDecoder(&r.lines)
	err := r.object()
	var syntax *format.SyntaxError
	switch {
	case err == nil || errors.As(err, &syntax):
		return err
	case r.lines.tooLong():
		return format.FileErrorf(in.Name, "line %d: %w", r.lines.at(r.dec.InputOffset()), r.lines.err)
	case r.lines.err != nil:
		err := format.FileErrorf(in.Name, "reading: %w", r.lines.err)
		if damage := new(format.DamagedError); r.elements > 0 && errors.As(r.lines.err, &damage) {
			return &CutError{Elements: r.elements, Err: err}
		}
		return err
	case err == io.EOF || err == io.ErrUnexpectedEOF:
		err := Fail(r.file, r.lines.end(), "more JSON", "the end of the file")
		if r.elements > 0 {
			return &CutError{Elements: r.elements, Err: err}
		}
		return err
	}
	return r.fail("JSON", err.Error())
}

type reader struct {
	file  string
	lines lines
	dec   *json.Decoder
	list  string
	parts File

	elements int64 // of the list that were read
}

// CutError reports a file that ends within its list, or between the list and its own end.
type CutError struct {
	Elements int64 // of the list that were received
	Err      error
}

func (e *CutError) Error() string { return e.Err.Error() }

// Unwrap returns the error of syntax.
func (e *CutError) Unwrap() error { return e.Err }

// fail returns an error about the next token.
func (r *reader) fail(expected, found string) error {
	return Fail(r.file, r.lines.at(r.dec.InputOffset()), expected, found)
}

// Fail returns an error about a line.
func Fail(file string, line int64, expected, found string) error {
	return &format.SyntaxError{File: file, Line: line, Expected: expected, Found: found}
}

func (r *reader) object() error {
	if err := r.delim('{', "an object"); err != nil {
		return err
	}
	found := false
	for r.dec.More() {
		key, err := r.dec.Token()
		if err != nil {
			return err
		}
		name := key.(string) // the key of an object is a string
		switch {
		case name != r.list:
			err = r.member(name)
		case found:
			err = r.fail("one list called "+name, "another")
		default:
			found = true
			err = r.array()
		}
		if err != nil {
			return err
		}
	}
	if err := r.delim('}', "the end of the object"); err != nil {
		return err
	}
	if !found {
		return r.fail("a list called "+r.list, "the end of the object")
	}
	if _, err := r.dec.Token(); err != io.EOF {
		return r.fail("the end of the file", "more data after the object")
	}
	return nil
}

func (r *reader) member(name string) error {
	value, line, err := r.value()
	if err != nil {
		return err
	}
	return r.parts.Member(line, name, value)
}

func (r *reader) array() error {
	if err := r.delim('[', r.list+" to be a list"); err != nil {
		return err
	}
	for r.dec.More() {
		element, line, err := r.value()
		if err != nil {
			return err
		}
		if err := r.parts.Node(line, element); err != nil {
			return err
		}
		r.elements++
	}
	return r.delim(']', "the end of "+r.list)
}

func (r *reader) delim(want json.Delim, expected string) error {
	found, err := r.dec.Token()
	if err != nil {
		return err
	}
	if found != want {
		return r.fail(expected, fmt.Sprintf("%.60q", fmt.Sprint(found)))
	}
	return nil
}

// value returns the next value and its first line.
func (r *reader) value() (json.RawMessage, int64, error) {
	var value json.RawMessage
	if err := r.dec.Decode(&value); err != nil {
		return nil, 0, err
	}
	return value, r.lines.at(r.dec.InputOffset() - int64(len(value))), nil
}

// lines is a reader that maps offsets to lines.
type lines struct {
	src   io.Reader
	err   error  // error of reading
	start int64  // last offset requested
	line  int64  // number of lines before it
	ahead []byte // data read from there on
	limit int64  // of memory, in bytes
}

// tooLong reports whether a value was too long.
func (l *lines) tooLong() bool {
	var limit *memory.Error
	return errors.As(l.err, &limit)
}

func (l *lines) Read(b []byte) (int, error) {
	if most := l.limit / valueShare; int64(len(l.ahead)) > most {
		l.err = &memory.Error{What: "values of more than " + units.FormatSize(most), Limit: l.limit}
		return 0, l.err
	}
	n, err := l.src.Read(b)
	l.ahead = append(l.ahead, b[:n]...)
	if err != nil && err != io.EOF {
		l.err = err
	}
	return n, err
}

// at returns the line of an offset, from 1. Offsets must be ascending.
func (l *lines) at(offset int64) int64 {
	n := offset - l.start
	l.line += int64(bytes.Count(l.ahead[:n], []byte("\n")))
	l.start, l.ahead = offset, l.ahead[n:]
	return l.line + 1
}

// end returns the last line.
func (l *lines) end() int64 {
	return l.at(l.start + int64(len(l.ahead)))
}

// Show returns a value for a message, shortened if it is long.
func Show(value json.RawMessage) string {
	const most = 60
	switch {
	case value == nil:
		return "nothing"
	case len(value) > most:
		return strings.ToValidUTF8(string(value[:most]), "") + "..."
	}
	return string(value)
}

// Int returns value as an integer.
func Int(value json.RawMessage) (int64, bool) {
	n, err := strconv.ParseInt(string(value), 10, 64)
	return n, err == nil
}

// Uint returns value as an integer of 0 or more.
func Uint(value json.RawMessage) (uint64, bool) {
	n, err := strconv.ParseUint(string(value), 10, 64)
	return n, err == nil
}

// String returns value as a string.
func String(value json.RawMessage) (string, bool) {
	var s *string
	err := json.Unmarshal(value, &s)
	if err != nil || s == nil {
		return "", false
	}
	return *s, true
}
