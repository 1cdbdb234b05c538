package dag

import (
	"bytes"
	"encoding/json"
	"strconv"
	"strings"
	"unicode/utf8"
)

// MarshalJSON returns the provenance as JSON. Arguments and file names that are not UTF-8, which JSON cannot hold, are
// quoted as shells do: $'caf\xe9.goal'.
func (p Provenance) MarshalJSON() ([]byte, error) {
	type plain Provenance // without methods
	q := plain(p)
	if q.Command != nil {
		q.Command = make([]string, len(p.Command))
		for i, word := range p.Command {
			q.Command[i] = quoteBytes(word)
		}
	}
	if q.Inputs != nil {
		q.Inputs = make([]Input, len(p.Inputs))
		for i, in := range p.Inputs {
			q.Inputs[i] = Input{Name: quoteBytes(in.Name), SHA256: in.SHA256}
		}
	}
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false) // the caller's encoder escapes the result if it escapes at all
	if err := e.Encode(q); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), nil
}

// UnmarshalJSON reads the result of MarshalJSON.
func (p *Provenance) UnmarshalJSON(text []byte) error {
	type plain Provenance
	if err := json.Unmarshal(text, (*plain)(p)); err != nil {
		return err
	}
	for i, word := range p.Command {
		p.Command[i] = unquoteBytes(word)
	}
	for i, in := range p.Inputs {
		p.Inputs[i].Name = unquoteBytes(in.Name)
	}
	return nil
}

// quoteBytes returns s, or s in quotes $'...' if it is not UTF-8 or looks quoted.
func quoteBytes(s string) string {
	if utf8.ValidString(s) && !strings.HasPrefix(s, "$'") {
		return s
	}
	const hex = "0123456789abcdef"
	b := []byte("$'")
	for len(s) > 0 {
		r, n := utf8.DecodeRuneInString(s)
		switch {
		case r == utf8.RuneError && n == 1:
			b = append(b, '\\', 'x', hex[s[0]>>4], hex[s[0]&15])
		case r == '\\' || r == '\'':
			b = append(b, '\\', s[0])
		default:
			b = append(b, s[:n]...)
		}
		s = s[n:]
	}
	return string(append(b, '\''))
}

// unquoteBytes returns the string of which quoteBytes returned q. A string that quoteBytes cannot return, as foreign
// programs write, is returned unchanged.
func unquoteBytes(q string) string {
	if len(q) < 3 || !strings.HasPrefix(q, "$'") || !strings.HasSuffix(q, "'") {
		return q
	}
	var b []byte
	for s := q[2 : len(q)-1]; len(s) > 0; {
		n := 1
		switch {
		case s[0] != '\\':
			b = append(b, s[0])
		case len(s) >= 4 && s[1] == 'x':
			c, err := strconv.ParseUint(s[2:4], 16, 8)
			if err != nil {
				return q
			}
			b, n = append(b, byte(c)), 4
		case len(s) >= 2:
			b, n = append(b, s[1]), 2
		default:
			return q
		}
		s = s[n:]
	}
	if s := string(b); quoteBytes(s) == q {
		return s
	}
	return q
}
