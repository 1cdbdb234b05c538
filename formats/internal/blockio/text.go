package blockio

import (
	"bytes"
	"errors"
	"fmt"

	"github.com/tracedag/tracedag/formats/format"
)

// Verdict is what a parser makes of a line that is as expected.
type Verdict uint8

// Verdicts on a line.
const (
	Taken   Verdict = iota // a record of the trace, or something that belongs to the form of the file
	LeftOut                // neither reads nor writes: counted in a warning
	End                    // nothing that follows is wanted
)

// occurrences counts something that is worth a warning.
type occurrences struct {
	count, first int64 // how many lines, and the number of the first
}

func (o *occurrences) add(line int64) {
	if o.count == 0 {
		o.first = line
	}
	o.count++
}

// textReader reads a file line by line.
type textReader struct {
	in      *format.Input
	options *format.ReadOptions
	parse   func(*Line) Verdict
	line    Line
	number  int64 // of the line at hand

	skipped, leftOut, rounded occurrences
	firstSkipped              format.SyntaxError
}

// EachLine reads a text and calls parse with every line but empty ones and those that begin with "#". A carriage return
// at the end of a line is not part of it. Lines that parse says are not as expected are an error, or with o.Lenient are
// left out with a warning.
func EachLine(in *format.Input, o *format.ReadOptions, parse func(*Line) Verdict) error {
	r := &textReader{in: in, options: o, parse: parse}
	if err := format.EachLines(in.Reader, r.lines); err != nil {
		return r.readingError(err)
	}
	r.warn()
	return nil
}

// lines reads whole lines.
func (r *textReader) lines(lines []byte) error {
	for len(lines) > 0 {
		end := bytes.IndexByte(lines, '\n')
		text := lines[:end]
		lines = lines[end+1:]
		r.number++
		if n := len(text); n > 0 && text[n-1] == '\r' {
			text = text[:n-1]
		}
		if !isContent(text) {
			continue
		}
		r.line = Line{text: text}
		verdict := r.parse(&r.line)
		switch {
		case r.line.failed:
			if err := r.skip(); err != nil {
				return err
			}
			continue
		case r.line.rounded:
			r.rounded.add(r.number)
		}
		switch verdict {
		case LeftOut:
			r.leftOut.add(r.number)
		case End:
			return format.ErrStop
		}
	}
	return nil
}

// isContent reports whether a line is neither empty nor a comment.
func isContent(line []byte) bool {
	for _, c := range line {
		if !isBlank(c) {
			return line[0] != '#'
		}
	}
	return false
}

// skip skips the line at hand, which is not as expected, unless that is an error.
func (r *textReader) skip() error {
	if r.skipped.count == 0 {
		r.firstSkipped = format.SyntaxError{File: r.in.Name, Line: r.number, Expected: r.line.expected,
			Found: r.line.found}
		if !r.options.Lenient {
			return &r.firstSkipped
		}
	}
	r.skipped.add(r.number)
	return nil
}

// readingError says where reading failed.
func (r *textReader) readingError(err error) error {
	var syntax *format.SyntaxError
	switch {
	case errors.As(err, &syntax):
		return err
	case errors.Is(err, format.ErrLongLine):
		return &format.SyntaxError{File: r.in.Name, Line: r.number + 1, Expected: "a shorter line", Found: err.Error()}
	}
	return &format.FileError{File: r.in.Name, Err: err}
}

func (r *textReader) warn() {
	if r.skipped.count > 0 {
		r.options.Warn("%v (%s skipped in all)", &r.firstSkipped, Lines(r.skipped.count))
	}
	if r.leftOut.count > 0 {
		r.options.Warn("%s:%d: neither a read nor a write: left out (%s in all)", r.in.Name, r.leftOut.first,
			Lines(r.leftOut.count))
	}
	if r.rounded.count > 0 {
		r.options.Warn("%s:%d: a time is rounded to picoseconds (%s in all)", r.in.Name, r.rounded.first,
			Lines(r.rounded.count))
	}
}

// FirstLine reports whether the first line of a file that parse looks at is as it expects. Like EachLine it passes over
// empty lines and comments. Of a line that the head of the file ends in, the rest is not known: it is none.
func FirstLine(head []byte, is func(*Line) bool) bool {
	for whole := len(head) < format.DetectBytes; len(head) > 0; {
		text, rest, more := bytes.Cut(head, []byte("\n"))
		if !more && !whole {
			return false
		}
		if text = bytes.TrimSuffix(text, []byte("\r")); isContent(text) {
			return is(NewLine(text))
		}
		head = rest
	}
	return false
}

// Lines returns a number of lines in words.
func Lines(n int64) string {
	if n == 1 {
		return "1 line"
	}
	return fmt.Sprintf("%d lines", n)
}
