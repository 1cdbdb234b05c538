package blockio

import (
	"bytes"
	"fmt"
	"math"

	"github.com/tracedag/tracedag/dag"
)

// Line is a line of a trace that is taken apart from left to right. The first thing that is not as expected is kept;
// what is parsed after that means nothing.
type Line struct {
	text     []byte // without the end of the line
	at       int    // what is next
	odd      bool   // some number has zeros in front, or there were blanks that need not be there
	rounded  bool   // some time had digits below a picosecond
	failed   bool
	expected string
	found    string
}

// NewLine returns a line to take apart.
func NewLine(text []byte) *Line {
	return &Line{text: text}
}

// Text returns the line. It is good until the next line is read.
func (l *Line) Text() []byte {
	return l.text
}

// Odd reports whether there were blanks behind a comma, or numbers with zeros in front of them.
func (l *Line) Odd() bool {
	return l.odd
}

// Rounded reports whether a time was not a whole number of picoseconds.
func (l *Line) Rounded() bool {
	return l.rounded
}

// Failed reports whether the line is not as expected.
func (l *Line) Failed() bool {
	return l.failed
}

// Fail says what was expected at the place that was reached.
func (l *Line) Fail(expected string) {
	l.failAt(l.at, expected)
}

// FailWith says what was expected, and what there is instead.
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

// field returns the field that begins at a place, or what is shown of it.
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

// End reports whether the end of the line is reached.
func (l *Line) End() bool {
	return l.at == len(l.text)
}

// Next returns the next byte, 0 at the end of the line.
func (l *Line) Next() byte {
	if l.at < len(l.text) {
		return l.text[l.at]
	}
	return 0
}

// Offset returns how many bytes of the line are behind.
func (l *Line) Offset() int {
	return l.at
}

// Comma steps over a comma.
func (l *Line) Comma() {
	if l.Next() != ',' {
		l.Fail(`"," and another field`)
		return
	}
	l.at++
}

// Blanks steps over blanks, if there are any.
func (l *Line) Blanks() {
	for l.at < len(l.text) && isBlank(l.text[l.at]) {
		l.at++
		l.odd = true
	}
}

// Gap steps over the blanks between two fields.
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

// Peek returns what is left of the field, which ends at a blank or comma.
func (l *Line) Peek() []byte {
	end := l.at
	for end < len(l.text) && l.text[end] != ',' && !isBlank(l.text[end]) {
		end++
	}
	return l.text[l.at:end]
}

// Word steps over what is left of the field, and returns it.
func (l *Line) Word() []byte {
	word := l.Peek()
	l.at += len(word)
	return word
}

// Name steps over what comes before the next blank or the end of the line, and returns it.
func (l *Line) Name() []byte {
	from := l.at
	for l.at < len(l.text) && !isBlank(l.text[l.at]) {
		l.at++
	}
	return l.text[from:l.at]
}

// Number parses a decimal number of 0 to most, without a sign.
func (l *Line) Number(what string, most int64) int64 {
	at := l.at
	v, ok := l.digits()
	if (!ok || v > uint64(most)) && !l.failed {
		l.failAt(at, fmt.Sprintf("%s (0..%d)", what, most))
	}
	return int64(v)
}

// digits steps over a decimal number and returns it, unless there is none or it needs more than 64 bits.
func (l *Line) digits() (v uint64, ok bool) {
	const most = 19 // digits, which 64 bits always suffice for
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

// Time parses a decimal number, with or without a point and more digits, of units of 10^exp picoseconds (exp 0 to 12).
// It returns the time and how many digits there are behind the point, -1 if there is no point. Digits below a
// picosecond are rounded, halves up.
func (l *Line) Time(what string, exp int) (t dag.Time, decimals int) {
	start := l.at
	v, ok := l.digits()
	switch {
	case l.at == start:
		l.Fail(what)
		return 0, -1
	case !ok || v > math.MaxInt64/powers[exp]:
		l.failAt(start, what+" of at most 106 days")
		return 0, -1
	}
	v *= powers[exp]
	if l.Next() != '.' {
		return dag.Time(v), -1
	}
	l.at++
	fraction, decimals := l.fraction(exp)
	if decimals == 0 {
		l.Fail("digits behind the point")
	}
	if v += fraction; v > math.MaxInt64 {
		l.failAt(start, what+" of at most 106 days")
	}
	return dag.Time(v), decimals
}

// fraction steps over the digits behind a point, and returns how many there are and what they make of 10^exp.
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
