// This file reads JSON objects of ASTRA-sim's configuration files key by key. Errors name the line of the key, and
// unknown keys cause warnings.

package analytical

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"
)

// maxConfigSize is the largest valid size of a configuration file in bytes.
const maxConfigSize = 1 << 20

// byteOrderMark starts UTF-8 files of some editors. It is ignored.
var byteOrderMark = []byte("\ufeff")

// configFile is a JSON object during reading. Its methods return the default if the key is missing. The first invalid
// value sets err; later results are undefined.
type configFile struct {
	name    string
	members map[string]*configMember
	order   []string             // keys in file order
	warn    func(string, ...any) // discards once err is set, and if the caller passed nil
	err     error
}

type configMember struct {
	line  int
	value json.RawMessage
	used  bool
}

// openConfig reads an object. The last value of a duplicate key counts, as in ASTRA-sim.
func openConfig(text []byte, name string, warn func(string, ...any)) (*configFile, error) {
	f := &configFile{name: name, members: map[string]*configMember{}}
	f.warn = func(message string, args ...any) {
		if f.err == nil && warn != nil {
			warn(message, args...)
		}
	}
	if len(text) > maxConfigSize {
		return nil, fmt.Errorf("%s: expected a configuration file of at most %d bytes, found %d", name, maxConfigSize,
			len(text))
	}
	text = bytes.TrimPrefix(text, byteOrderMark)
	in := json.NewDecoder(bytes.NewReader(text))
	// The decoder's position precedes the spaces, commas and colons before the next value.
	line := func() int {
		at := in.InputOffset()
		rest := text[at:]
		at += int64(len(rest) - len(bytes.TrimLeft(rest, " \t\r\n,:")))
		return 1 + bytes.Count(text[:at], []byte("\n"))
	}
	syntax := func(expected string, err error) error {
		if err == io.EOF || err == io.ErrUnexpectedEOF {
			return fmt.Errorf("%s:%d: expected %s, found the end of the file", name, line(), expected)
		}
		return fmt.Errorf("%s:%d: expected %s: %w", name, line(), expected, err)
	}
	if start, err := in.Token(); err != nil {
		return nil, syntax("a JSON object", err)
	} else if start != json.Delim('{') {
		return nil, fmt.Errorf("%s:1: expected a JSON object, found %v", name, start)
	}
	for in.More() {
		keyLine := line()
		token, err := in.Token()
		if err != nil {
			return nil, syntax("a key", err)
		}
		key, _ := token.(string) // guaranteed by the decoder
		m := &configMember{line: keyLine}
		if err := in.Decode(&m.value); err != nil {
			return nil, syntax(fmt.Sprintf("a value of %q", key), err)
		}
		if before := f.members[key]; before != nil {
			f.warn("%s:%d: duplicate key %q, first in line %d: the last value counts", name, m.line, key, before.line)
		} else {
			f.order = append(f.order, key)
		}
		f.members[key] = m
	}
	if _, err := in.Token(); err != nil {
		return nil, syntax("the end of the object", err)
	}
	if rest := bytes.TrimSpace(text[in.InputOffset():]); len(rest) > 0 {
		return nil, fmt.Errorf("%s:%d: expected nothing after the object, found %q", name, line(),
			shorten(string(rest)))
	}
	return f, nil
}

// shorten shortens a text for a message.
func shorten(s string) string {
	if len(s) > 40 {
		return s[:40] + "..."
	}
	return s
}

func (f *configFile) has(key string) bool {
	return f.members[key] != nil
}

// at returns the file and line of a key.
func (f *configFile) at(key string) string {
	if m := f.members[key]; m != nil {
		return fmt.Sprintf("%s:%d: %s", f.name, m.line, key)
	}
	return fmt.Sprintf("%s: %s", f.name, key)
}

// fail reports an invalid value of a key.
func (f *configFile) fail(key, expected string) {
	if f.err != nil {
		return
	}
	found := "nothing"
	if m := f.members[key]; m != nil {
		found = shorten(string(m.value))
	}
	f.err = fmt.Errorf("%s: expected %s, found %s", f.at(key), expected, found)
}

// decode decodes the value of a key into v. It reports whether the key is present with a valid value.
func (f *configFile) decode(key, expected string, v any) bool {
	m := f.members[key]
	if m == nil {
		return false
	}
	m.used = true
	if string(m.value) == "null" || json.Unmarshal(m.value, v) != nil {
		f.fail(key, expected)
		return false
	}
	return true
}

// number returns a number in a range. Like ASTRA-sim, it reads true as 1 and false as 0.
func (f *configFile) number(key string, missing, least, most float64) float64 {
	expected := fmt.Sprintf("a number of %v or more", least)
	if most < math.MaxFloat64 {
		expected = fmt.Sprintf("a number from %.0f to %.0f", least, most)
	}
	return f.numberAs(key, expected, missing, least, most)
}

// numberAs is number with the expected value's description for errors.
func (f *configFile) numberAs(key, expected string, missing, least, most float64) float64 {
	var v any
	if !f.decode(key, expected, &v) {
		return missing
	}
	switch v := v.(type) {
	case bool:
		if v {
			return f.inRange(key, expected, 1, least, most)
		}
		return f.inRange(key, expected, 0, least, most)
	case float64:
		return f.inRange(key, expected, v, least, most)
	}
	f.fail(key, expected)
	return missing
}

func (f *configFile) inRange(key, expected string, v, least, most float64) float64 {
	if v < least || v > most {
		f.fail(key, expected)
	}
	return v
}

// integer is number truncated to an integer, as in ASTRA-sim.
func (f *configFile) integer(key string, missing, least, most int64) int64 {
	v := f.number(key, float64(missing), float64(least), float64(most))
	if v != math.Trunc(v) {
		f.warn("%s: %v is truncated to %v, as in ASTRA-sim", f.at(key), v, math.Trunc(v))
	}
	return int64(v)
}

// flag reports whether a number is not 0.
func (f *configFile) flag(key string) bool {
	return f.numberAs(key, "0 or 1", 0, -math.MaxFloat64, math.MaxFloat64) != 0
}

func (f *configFile) text(key, missing string) string {
	f.decode(key, "a string", &missing)
	return missing
}

// texts returns a list of strings, or nil if the key is missing.
func (f *configFile) texts(key string) (list []string) {
	if f.decode(key, "a list of strings", &list) && len(list) == 0 {
		f.fail(key, "at least one string")
	}
	return list
}

// choice returns the value for the key's string, which must be one of names.
func choice[T any](f *configFile, key string, missing T, names []string, values []T) T {
	if !f.has(key) {
		return missing
	}
	text := f.text(key, "")
	for i, name := range names {
		if name == text {
			return values[i]
		}
	}
	f.fail(key, "one of "+strings.Join(names, ", "))
	return missing
}

// ignore warns that a key, if present, has no effect, and why.
func (f *configFile) ignore(key, why string) {
	if m := f.members[key]; m != nil && !m.used {
		m.used = true
		f.warn("%s: has no effect%s", f.at(key), why)
	}
}

// missing warns about the consequence of a missing key.
func (f *configFile) missing(key, consequence string) {
	if !f.has(key) {
		f.warn("%s: %s is missing; the default is %s", f.name, key, consequence)
	}
}

// close warns about unknown keys, and returns the first error.
func (f *configFile) close() error {
	for _, key := range f.order {
		if !f.members[key].used {
			f.warn("%s:%d: unknown key %s is ignored", f.name, f.members[key].line, strconv.Quote(shorten(key)))
		}
	}
	return f.err
}
