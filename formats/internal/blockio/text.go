package blockio

import (
	"bytes"
	"errors"
	"fmt"

	"github.com/tracedag/tracedag/formats/format"
)

// Verdict is the result of parsing a correct line.
type Verdict uint8

// Verdicts on a line.
const (
	Taken   Verdict = iota // a record of the trace, or a structural line of the file
	Skipped                // neither a read nor a write: counted in a warning
	End                    // the last line to read
)

// occurrences counts lines for a warning.
type occurrences struct {
	count, first int64 // number of lines, and line number of the first
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
	number  int64 // line number of the current line

	skipped, others, rounded occurrences
	firstSkipped             format.SyntaxError
}

// EachLine reads a text and calls parse with every line that is not empty and does not begin with "#". It removes
// a carriage return at the end of a line. A line that parse fails is an error, or with o.Lenient is skipped with a
// warning.
func EachLine(in *format.Input, o *format.ReadOptions, parse func(*Line) Verdict) error {
	r := &textReader{in: in, options: o, parse: parse}
	if err := format.EachLines(o.Context, in.Reader, r.lines); err != nil {
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
		case Skipped:
			r.others.add(r.number)
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

// skip skips the current line, which has an error. In strict mode it returns the error.
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

// readingError adds the position to an error of reading.
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
	if r.others.count > 0 {
		r.options.Warn("%s:%d: neither a read nor a write, skipped (%s in all)", r.in.Name, r.others.first,
			Lines(r.others.count))
	}
	if r.rounded.count > 0 {
		r.options.Warn("%s:%d: a time is rounded to picoseconds (%s in all)", r.in.Name, r.rounded.first,
			Lines(r.rounded.count))
	}
}

// FirstLine reports whether is accepts the first line of a file that is not empty and not a comment. It returns
// false if head ends within that line.
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

// Lines formats a number of lines.
func Lines(n int64) string {
	if n == 1 {
		return "1 line"
	}
	return fmt.Sprintf("%d lines", n)
}
