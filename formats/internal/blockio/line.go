package blockio

import (
	"bytes"
	"fmt"
	"math"

	"github.com/tracedag/tracedag/dag"
)

// Line is a line of a trace, parsed from left to right. It keeps the first error; results after an error have no
// meaning.
type Line struct {
	text     []byte // without the line end
	at       int    // index of the next byte
	odd      bool   // a number has leading zeros, or there are optional blanks
	rounded  bool   // a time has digits below a picosecond
	failed   bool
	expected string
	found    string
}

// NewLine returns a line to parse.
func NewLine(text []byte) *Line {
	return &Line{text: text}
}

// Text returns the line. It is valid until the next line is read.
func (l *Line) Text() []byte {
	return l.text
}

// Odd reports whether there were blanks behind a comma, or numbers with leading zeros.
func (l *Line) Odd() bool {
	return l.odd
}

// Rounded reports whether a time was not a whole number of picoseconds.
func (l *Line) Rounded() bool {
	return l.rounded
}

// Failed reports whether the line has an error.
func (l *Line) Failed() bool {
	return l.failed
}

// Fail records an error: what was expected at the current position.
func (l *Line) Fail(expected string) {
	l.failAt(l.at, expected)
}

// FailWith records an error: what was expected and what was found.
func (l *Line) FailWith(expected, found string) {
	if !l.failed {
		l.failed, l.expected, l.found = true, expected, found
	}
}

func (l *Line) failAt(at int, expected string) {
	if !l.failed {
		l.FailWith(expected, l.field(at))
	}
}

// field returns the field at a position for a message, shortened if it is long.
func (l *Line) field(at int) string {
	const most = 40
	field := l.text[at:]
	if len(field) == 0 {
		return "the end of the line"
	}
	if field[0] == ',' {
		return `","`
	}
	if end := bytes.IndexAny(field[1:], ", \t"); end >= 0 {
		field = field[:end+1]
	}
	if len(field) > most {
		return fmt.Sprintf("%q...", field[:most])
	}
	return fmt.Sprintf("%q", field)
}

// End reports whether the position is at the end of the line.
func (l *Line) End() bool {
	return l.at == len(l.text)
}

// Next returns the next byte, or 0 at the end of the line.
func (l *Line) Next() byte {
	if l.at < len(l.text) {
		return l.text[l.at]
	}
	return 0
}

// Offset returns the number of bytes before the position.
func (l *Line) Offset() int {
	return l.at
}

// Comma skips a comma.
func (l *Line) Comma() {
	if l.Next() != ',' {
		l.Fail(`"," and another field`)
		return
	}
	l.at++
}

// Blanks skips blanks, if there are any.
func (l *Line) Blanks() {
	for l.at < len(l.text) && isBlank(l.text[l.at]) {
		l.at++
		l.odd = true
	}
}

// Gap skips the blanks between two fields.
func (l *Line) Gap() {
	if at := l.at; at < len(l.text) && isBlank(l.text[at]) {
		for at < len(l.text) && isBlank(l.text[at]) {
			at++
		}
		l.at = at
		return
	}
	l.Fail("a blank and another field")
}

// Peek returns the rest of the field, which ends at a blank or comma.
func (l *Line) Peek() []byte {
	end := l.at
	for end < len(l.text) && l.text[end] != ',' && !isBlank(l.text[end]) {
		end++
	}
	return l.text[l.at:end]
}

// Word skips the rest of the field and returns it.
func (l *Line) Word() []byte {
	word := l.Peek()
	l.at += len(word)
	return word
}

// Name skips the text before the next blank or the end of the line, and returns it.
func (l *Line) Name() []byte {
	from := l.at
	for l.at < len(l.text) && !isBlank(l.text[l.at]) {
		l.at++
	}
	return l.text[from:l.at]
}

// Number parses a decimal number of 0..most without a sign. The name describes it in errors.
func (l *Line) Number(name string, most int64) int64 {
	at := l.at
	v, ok := l.digits()
	if (!ok || v > uint64(most)) && !l.failed {
		l.failAt(at, fmt.Sprintf("%s (0..%d)", name, most))
	}
	return int64(v)
}

// digits skips and returns a decimal number. ok is false if there is none or it needs more than 64 bits.
func (l *Line) digits() (v uint64, ok bool) {
	const most = 19 // digits that always fit into 64 bits
	b, at := l.text, l.at
	for at < len(b) && b[at] == '0' {
		at++
	}
	zeros, first := at-l.at, at
	for at < len(b) {
		d := b[at] - '0'
		if d > 9 {
			break
		}
		v = 10*v + uint64(d)
		at++
	}
	if zeros > 1 || zeros > 0 && at > first {
		l.odd = true
	}
	ok = at > l.at && at-first <= most
	l.at = at
	return v, ok
}

var powers = [...]uint64{1, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12}

// Time parses a decimal number, optionally with a fraction, in units of 10^exp picoseconds (exp 0 to 12). It
// returns the time and the number of digits behind the point, or -1 if there is no point. It rounds digits below a
// picosecond, halves up.
func (l *Line) Time(name string, exp int) (t dag.Time, decimals int) {
	start := l.at
	v, ok := l.digits()
	switch {
	case l.at == start:
		l.Fail(name)
		return 0, -1
	case !ok || v > math.MaxInt64/powers[exp]:
		l.failAt(start, name+" of at most 106 days")
		return 0, -1
	}
	v *= powers[exp]
	if l.Next() != '.' {
		return dag.Time(v), -1
	}
	l.at++
	fraction, decimals := l.fraction(exp)
	if decimals == 0 {
		l.Fail("digits behind the decimal point")
	}
	if v += fraction; v > math.MaxInt64 {
		l.failAt(start, name+" of at most 106 days")
	}
	return dag.Time(v), decimals
}

// fraction parses the digits behind a point. It returns their value times 10^exp, in picoseconds, and their
// number.
func (l *Line) fraction(exp int) (v uint64, digits int) {
	b, at := l.text, l.at
	for ; at < len(b); at++ {
		d := b[at] - '0'
		if d > 9 {
			break
		}
		switch digits++; {
		case digits <= exp:
			v = 10*v + uint64(d)
		case digits == exp+1 && d >= 5:
			v++
			l.rounded = true
		case d != 0:
			l.rounded = true
		}
	}
	l.at = at
	return v * powers[max(0, exp-digits)], digits
}

func isBlank(c byte) bool {
	return c == ' ' || c == '\t'
}
