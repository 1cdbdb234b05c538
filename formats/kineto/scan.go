// This file reads JSON as profilers write it: fast, streaming, and beyond damage.

package kineto

import (
	"bytes"
	"errors"
	"io"
	"math"
	"slices"
	"unicode/utf8"

	"github.com/tracedag/tracedag/formats/format"
)

// Results of the lexer in place of a position.
const (
	short = -1 // the text ends early
	bad   = -2 // it is no JSON, not even by the rules of recovery
)

// lexer reads JSON values in a text. Its methods take a position in the text and return the position after what they
// read, or short or bad.
//
// A quotation mark ends a string only if one of , : } ] follows it, possibly after blanks: profilers do not escape
// those in names. Numbers may be any word, such as NaN.
type lexer struct {
	b     []byte
	final bool // the text ends the file, so that nothing can follow

	// literal reads strings that have no escapes at all, for names such as C:\new\: after a quotation mark that ends
	// the value of a member, a comma must precede another member.
	literal bool
}

// blanks returns the position of the first character that is not blank.
func (l *lexer) blanks(i int) int {
	for i < len(l.b) && (l.b[i] == ' ' || l.b[i] == '\n' || l.b[i] == '\r' || l.b[i] == '\t') {
		i++
	}
	return i
}

// span is a part of a text.
type span struct{ from, to int }

func (l *lexer) of(s span) []byte { return l.b[s.from:s.to] }

// text reads a string at position i, which has a quotation mark. It returns the part between the marks.
func (l *lexer) text(i int) (span, int) {
	from := i + 1
	for at := from; ; {
		n := bytes.IndexByte(l.b[at:], '"')
		if n < 0 {
			return span{}, short
		}
		at += n
		if !l.literal && at > from && l.b[at-1] == '\\' && l.escaped(from, at) {
			at++
			continue
		}
		switch l.ends(at + 1) {
		case yes:
			return span{from, at}, at + 1
		case unknown:
			return span{}, short
		}
		at++
	}
}

// escaped reports whether the character at a position of a string from a position on is escaped: whether an odd number
// of backslashes precedes it.
func (l *lexer) escaped(from, at int) bool {
	n := 0
	for at-n > from && l.b[at-n-1] == '\\' {
		n++
	}
	return n%2 == 1
}

type answer uint8

const (
	no answer = iota
	yes
	unknown // the text is too short
)

// ends reports whether a quotation mark before position i ends a string.
func (l *lexer) ends(i int) answer {
	i = l.blanks(i)
	if i == len(l.b) {
		if l.final {
			return yes
		}
		return unknown
	}
	switch l.b[i] {
	case ':', '}', ']':
		return yes
	case ',':
		if l.literal {
			return l.memberAt(i + 1)
		}
		return yes
	}
	return no
}

// memberAt reports whether a member of an object begins at position i, or a value of a list that is no string.
func (l *lexer) memberAt(i int) answer {
	if i = l.blanks(i); i == len(l.b) {
		return unknown
	}
	if l.b[i] != '"' {
		return no
	}
	n := bytes.IndexByte(l.b[i+1:], '"')
	if n < 0 {
		return unknown
	}
	if i = l.blanks(i + n + 2); i == len(l.b) {
		return unknown
	}
	if l.b[i] == ':' {
		return yes
	}
	return no
}

// value skips a value of any kind.
func (l *lexer) value(i int) int {
	if i >= len(l.b) {
		return short
	}
	switch l.b[i] {
	case '"':
		_, i = l.text(i)
		return i
	case '{', '[':
		return l.nested(i)
	}
	return l.word(i)
}

// word skips a number, or a word such as true and NaN.
func (l *lexer) word(i int) int {
	from := i
	for i < len(l.b) && inWord[l.b[i]] {
		i++
	}
	switch {
	case i == len(l.b):
		return short
	case i == from:
		return bad
	}
	return i
}

var inWord = func() (in [256]bool) {
	for _, c := range "0123456789+-.abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ" {
		in[c] = true
	}
	return in
}()

// nested skips an object or a list.
func (l *lexer) nested(i int) int {
	depth := 0
	for ; i < len(l.b); i++ {
		if !structural[l.b[i]] {
			continue
		}
		switch l.b[i] {
		case '"':
			if _, i = l.text(i); i < 0 {
				return i
			}
			i--
		case '{', '[':
			depth++
		default:
			if depth--; depth == 0 {
				return i + 1
			}
		}
	}
	return short
}

var structural = [256]bool{'"': true, '{': true, '}': true, '[': true, ']': true}

// member reads a member of an object at position i, after a brace or a comma. The value is any value, with its marks if
// it is a string. It returns the position of the comma or brace after it.
func (l *lexer) member(i int) (name, value span, next int) {
	if i = l.blanks(i); i >= len(l.b) {
		return name, value, short
	}
	if l.b[i] != '"' {
		return name, value, bad
	}
	name, i = l.text(i)
	if i < 0 {
		return name, value, i
	}
	if i = l.blanks(i); i >= len(l.b) {
		return name, value, short
	}
	if l.b[i] != ':' {
		return name, value, bad
	}
	i = l.blanks(i + 1)
	value.from = i
	if i = l.value(i); i < 0 {
		return name, value, i
	}
	value.to = i
	if i = l.blanks(i); i >= len(l.b) {
		return name, value, short
	}
	if l.b[i] != ',' && l.b[i] != '}' {
		return name, value, bad
	}
	return name, value, i
}

// each calls do with each member of the object that a text is, until do returns false.
func (l *lexer) each(object span, do func(name, value []byte) bool) {
	if object.to-object.from < 2 || l.b[object.from] != '{' {
		return
	}
	inner := lexer{b: l.b[:object.to], final: true, literal: l.literal}
	for i := object.from + 1; ; i++ {
		if i = inner.blanks(i); i < object.to && inner.b[i] == '}' {
			return
		}
		var name, value span
		if name, value, i = inner.member(i); i < 0 || !do(inner.of(name), inner.of(value)) || inner.b[i] == '}' {
			return
		}
	}
}

// elements calls do with each element of a list.
func elements(list []byte, do func(value []byte)) {
	if len(list) < 2 || list[0] != '[' {
		return
	}
	l := lexer{b: list, final: true}
	for i := 1; ; i++ {
		i = l.blanks(i)
		if i >= len(list) || list[i] == ']' {
			return
		}
		from := i
		if i = l.value(i); i < 0 {
			return
		}
		do(list[from:i])
		if i = l.blanks(i); i >= len(list) || list[i] != ',' {
			return
		}
	}
}

// unquote returns the content of a string with its marks, and other values as they are.
func unquote(value []byte) []byte {
	if len(value) < 2 || value[0] != '"' || value[len(value)-1] != '"' {
		return value
	}
	return value[1 : len(value)-1]
}

// plain returns a string without marks as UTF-8 without escapes.
func plain(text []byte) []byte {
	if bytes.IndexByte(text, '\\') < 0 && utf8.Valid(text) {
		return text
	}
	out := make([]byte, 0, len(text))
	for i := 0; i < len(text); i++ {
		if text[i] != '\\' || i+1 == len(text) {
			out = append(out, text[i])
			continue
		}
		i++
		switch c := text[i]; c {
		case '"', '\\', '/':
			out = append(out, c)
		case 'n', 't', 'r', 'b', 'f':
			out = append(out, ' ')
		case 'u':
			r, ok := hexRune(text[i+1:])
			if !ok {
				out = append(out, '\\', 'u')
				continue
			}
			out = utf8.AppendRune(out, r)
			i += 4
		default: // a backslash that is not escaped
			out = append(out, '\\', c)
		}
	}
	return bytes.ToValidUTF8(out, []byte("\uFFFD"))
}

// hexRune returns the character with four hexadecimal digits at the start of a text.
func hexRune(text []byte) (r rune, ok bool) {
	if len(text) < 4 {
		return 0, false
	}
	for _, c := range text[:4] {
		digit := bytes.IndexByte([]byte("0123456789abcdef"), c|0x20)
		if c < '0' || digit < 0 {
			return 0, false
		}
		r = r<<4 | rune(digit)
	}
	return r, true
}

// window is the part of an input that is in memory.
type window struct {
	r      io.Reader
	b      []byte // from the first byte that is still needed
	buffer []byte // whole memory
	offset int64  // of b in the input
	final  bool   // the input ends with b
	most   int    // largest size
	err    error  // of reading, other than the end

	damage *format.DamagedError // of compressed data, which ends there; nil: none
}

const windowSize = 256 << 10

var errLongValue = errors.New("a value is longer than the memory that it may take")

// skip removes n bytes.
func (w *window) skip(n int) {
	w.b = w.b[n:]
	w.offset += int64(n)
}

// more reads more of the input, at least one byte unless it ends. It reports whether it did.
func (w *window) more() bool {
	if w.final || w.err != nil {
		return false
	}
	if len(w.b) > len(w.buffer)/2 || w.buffer == nil {
		size := max(2*len(w.buffer), windowSize)
		if size > w.most {
			w.err = errLongValue
			return false
		}
		w.buffer = slices.Grow([]byte(nil), size)[:size]
	}
	n := copy(w.buffer, w.b)
	read := 0
	for idle := 0; read == 0 && w.err == nil && !w.final; idle++ {
		var err error
		read, err = w.r.Read(w.buffer[n:])
		switch {
		case err == io.EOF, errors.As(err, &w.damage):
			w.final = true
		case err != nil:
			w.err = err
		case idle == 100:
			w.err = io.ErrNoProgress
		}
	}
	w.b = w.buffer[:n+read]
	return read > 0
}

// micros is a time of the file: whole microseconds and picoseconds of the next one.
type micros struct {
	us int64
	ps int64 // 0..999999
}

// parseMicros reads a decimal number of microseconds, rounded to picoseconds, half to even.
func parseMicros(text []byte) (m micros, ok bool) {
	negative := false
	i := 0
	if len(text) > 0 && (text[0] == '-' || text[0] == '+') {
		negative = text[0] == '-'
		i++
	}
	from := i
	for ; i < len(text) && text[i]-'0' <= 9; i++ {
		if m.us > (math.MaxInt64-9)/10/1000 { // such times do not fit nanoseconds either
			return m, false
		}
		m.us = 10*m.us + int64(text[i]-'0')
	}
	digits := i - from
	if i < len(text) && text[i] == '.' {
		unit := int64(100_000)
		for i++; i < len(text) && text[i]-'0' <= 9 && unit > 0; i++ {
			m.ps += int64(text[i]-'0') * unit
			unit /= 10
			digits++
		}
		rest := i
		for i < len(text) && text[i]-'0' <= 9 {
			i++
		}
		m.round(trimmed(text[rest:i]))
	}
	if i < len(text) && text[i]|0x20 == 'e' {
		return parseExponent(text)
	}
	if negative {
		m = m.negated()
	}
	return m, digits > 0 && i == len(text)
}

// trimmed returns the digits beyond picoseconds without zeros at the end.
func trimmed(digits []byte) []byte { return bytes.TrimRight(digits, "0") }

// round rounds by the digits beyond picoseconds.
func (m *micros) round(rest []byte) {
	if len(rest) == 0 || rest[0] < '5' || len(rest) == 1 && rest[0] == '5' && m.ps%2 == 0 {
		return
	}
	if m.ps++; m.ps == 1_000_000 {
		m.us, m.ps = m.us+1, 0
	}
}

func (m micros) negated() micros {
	if m.ps == 0 {
		return micros{us: -m.us}
	}
	return micros{us: -m.us - 1, ps: 1_000_000 - m.ps}
}

// parseExponent reads a number such as 1.7e+15.
func parseExponent(text []byte) (m micros, ok bool) {
	at := bytes.IndexAny(text, "eE")
	power, ok := parseInt(bytes.TrimPrefix(text[at+1:], []byte("+")))
	if !ok || power < -30 || power > 30 {
		return m, false
	}
	whole, fraction, _ := bytes.Cut(text[:at], []byte("."))
	digits := append(bytes.Clone(whole), fraction...)
	point := len(whole) + int(power)
	for point > len(digits) {
		digits = append(digits, '0')
	}
	for sign := len(digits) > 0 && (digits[0] == '-' || digits[0] == '+'); point < 1 || sign && point < 2; point++ {
		if sign {
			digits = slices.Insert(digits, 1, '0')
		} else {
			digits = slices.Insert(digits, 0, '0')
		}
	}
	return parseMicros(slices.Insert(digits, point, '.'))
}

// parseInt reads a decimal integer, possibly with a fraction of zero, and one in hexadecimal.
func parseInt(text []byte) (n int64, ok bool) {
	if hex, found := bytes.CutPrefix(text, []byte("0x")); found {
		if len(hex) == 0 || len(hex) > 16 {
			return 0, false
		}
		for _, c := range hex {
			digit := bytes.IndexByte([]byte("0123456789abcdef"), c|0x20)
			if c < '0' || digit < 0 {
				return 0, false
			}
			n = n<<4 | int64(digit)
		}
		return n, true
	}
	negative := len(text) > 0 && text[0] == '-'
	if negative {
		text = text[1:]
	}
	if whole, fraction, found := bytes.Cut(text, []byte(".")); found {
		if text = whole; len(trimmed(fraction)) > 0 {
			return 0, false
		}
	}
	for _, c := range text {
		if c-'0' > 9 || n > (math.MaxInt64-9)/10 {
			return 0, false
		}
		n = 10*n + int64(c-'0')
	}
	if negative {
		n = -n
	}
	return n, len(text) > 0
}
