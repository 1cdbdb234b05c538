// This file writes JSON values in Python's form, in which Chakra's traces keep tensors.

package pytorch

import (
	"encoding/json"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"
)

// python returns Python's str() of a JSON value.
func python(value json.RawMessage) string {
	if s, isString := pythonString(value); isString {
		return s
	}
	w := &writer{json: value, text: make([]byte, 0, len(value)+len(value)/8)}
	w.value()
	return string(w.text)
}

// pythonString returns value as a string.
func pythonString(value json.RawMessage) (string, bool) {
	if len(value) == 0 || value[0] != '"' {
		return "", false
	}
	var s string
	err := json.Unmarshal(value, &s)
	return s, err == nil
}

// writer converts a value, which must be valid JSON and UTF-8.
type writer struct {
	json  []byte // the rest of it
	text  []byte // repr() of the converted part
	chars []rune // of the current string
}

// next skips space and returns the next character.
func (w *writer) next() byte {
	for w.json[0] == ' ' || w.json[0] == '\t' || w.json[0] == '\n' || w.json[0] == '\r' {
		w.json = w.json[1:]
	}
	return w.json[0]
}

func (w *writer) value() {
	switch w.next() {
	case '[':
		w.list(']', w.value)
	case '{':
		w.list('}', func() {
			w.value()
			w.next() // the colon
			w.json = w.json[1:]
			w.text = append(w.text, ": "...)
			w.value()
		})
	case '"':
		w.string()
	case 't':
		w.word("true", "True")
	case 'f':
		w.word("false", "False")
	case 'n':
		w.word("null", "None")
	default:
		w.number()
	}
}

func (w *writer) word(json, python string) {
	w.json = w.json[len(json):]
	w.text = append(w.text, python...)
}

// list writes the elements between brackets, the first of which comes next.
func (w *writer) list(end byte, element func()) {
	w.text = append(w.text, w.json[0])
	w.json = w.json[1:]
	for first := true; w.next() != end; first = false {
		if !first {
			w.json = w.json[1:] // the comma
			w.text = append(w.text, ", "...)
		}
		element()
	}
	w.text = append(w.text, end)
	w.json = w.json[1:]
}

func (w *writer) number() {
	n := 0
	for n < len(w.json) && strings.IndexByte("+-.0123456789Ee", w.json[n]) >= 0 {
		n++
	}
	number := string(w.json[:n])
	w.json = w.json[n:]
	switch {
	case strings.ContainsAny(number, ".Ee"):
		f, _ := strconv.ParseFloat(number, 64) // a number out of range is infinite
		w.text = appendFloat(w.text, f)
	case number == "-0":
		w.text = append(w.text, '0')
	default:
		w.text = append(w.text, number...)
	}
}

// appendFloat appends Python's repr() of a float: the fewest digits, with an exponent below 1e-4 and from 1e16 on.
func appendFloat(dst []byte, f float64) []byte {
	scientific := strconv.FormatFloat(f, 'e', -1, 64)
	_, digits, ok := strings.Cut(scientific, "e")
	exponent, err := strconv.Atoi(digits)
	if !ok || err != nil { // infinite; a number in JSON is never NaN
		return append(dst, strings.ToLower(strings.TrimPrefix(scientific, "+"))...)
	}
	if exponent < -4 || exponent >= 16 {
		return append(dst, scientific...)
	}
	start := len(dst)
	dst = strconv.AppendFloat(dst, f, 'f', -1, 64)
	if !strings.Contains(string(dst[start:]), ".") {
		dst = append(dst, ".0"...)
	}
	return dst
}

// string writes a string as a Python literal.
func (w *writer) string() {
	runes := w.runes()
	quote := '\''
	if slices.Contains(runes, '\'') && !slices.Contains(runes, '"') {
		quote = '"'
	}
	w.text = utf8.AppendRune(w.text, quote)
	for _, r := range runes {
		w.rune(r, quote)
	}
	w.text = utf8.AppendRune(w.text, quote)
}

func (w *writer) rune(r, quote rune) {
	const hex = "0123456789abcdef"
	digits, letter := 0, byte(0)
	switch {
	case r == '\\' || r == quote:
		w.text = append(w.text, '\\', byte(r))
	case r == '\n':
		w.text = append(w.text, `\n`...)
	case r == '\r':
		w.text = append(w.text, `\r`...)
	case r == '\t':
		w.text = append(w.text, `\t`...)
	case unicode.IsPrint(r):
		w.text = utf8.AppendRune(w.text, r)
	case r <= 0xff:
		digits, letter = 2, 'x'
	case r <= 0xffff:
		digits, letter = 4, 'u'
	default:
		digits, letter = 8, 'U'
	}
	if digits > 0 {
		w.text = append(w.text, '\\', letter)
		for digits > 0 {
			digits--
			w.text = append(w.text, hex[r>>(4*digits)&15])
		}
	}
}

// runes reads a string. It keeps unpaired surrogates.
func (w *writer) runes() []rune {
	w.json = w.json[1:]
	runes := w.chars[:0]
	for w.json[0] != '"' {
		r, size := utf8.DecodeRune(w.json)
		if r == '\\' {
			r, size = w.escape()
		}
		w.json = w.json[size:]
		if n := len(runes) - 1; n >= 0 && utf16.DecodeRune(runes[n], r) != unicode.ReplacementChar {
			runes[n] = utf16.DecodeRune(runes[n], r)
			continue
		}
		runes = append(runes, r)
	}
	w.json = w.json[1:]
	w.chars = runes
	return runes
}

// escape returns the character of the current escape sequence, and the length of the sequence.
func (w *writer) escape() (rune, int) {
	switch c := w.json[1]; c {
	case 'b':
		return '\b', 2
	case 'f':
		return '\f', 2
	case 'n':
		return '\n', 2
	case 'r':
		return '\r', 2
	case 't':
		return '\t', 2
	case 'u':
		n, _ := strconv.ParseUint(string(w.json[2:6]), 16, 16)
		return rune(n), 6
	default:
		return rune(c), 2
	}
}
