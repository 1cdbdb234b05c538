package grid

import (
	"fmt"
	"strings"

	"github.com/tracedag/tracedag/param"
)

// Numbers returns the parameter that defines the numbers of an option, or nil if its values are texts.
type Numbers func(name string) param.Number

// ParseSweep parses the axes of --sweep: NAME=VALUES separated by semicolons. Values are separated by commas, or by |
// if one contains a comma; each is a text, in quotes if it contains a separator, or a range FROM..TO:N or
// FROM..TO:N:log.
func ParseSweep(text string, numbers Numbers) ([]Axis, error) {
	var axes []Axis
	seen := make(map[string]bool)
	parts, err := split(text, ';')
	if err != nil {
		return nil, err
	}
	for _, part := range parts {
		name, values, found := strings.Cut(strings.TrimSpace(part), "=")
		switch {
		case !found || name == "":
			return nil, fmt.Errorf("expected NAME=VALUES;..., found %q", part)
		case seen[name]:
			return nil, fmt.Errorf("parameter %s occurs twice, expected once", name)
		}
		seen[name] = true
		items, err := split(values, '|')
		if err == nil && len(items) == 1 {
			items, err = split(values, ',')
		}
		if err != nil {
			return nil, err
		}
		for i := range items {
			items[i] = unquote(items[i])
		}
		axis, err := newAxis(name, name, items, numbers)
		if err != nil {
			return nil, err
		}
		axes = append(axes, axis)
	}
	return axes, nil
}

// newAxis returns the axis of the values of an option. name is that of the factor.
func newAxis(name, option string, items []string, numbers Numbers) (a Axis, err error) {
	s := scale{}
	if numbers != nil {
		s.number = numbers(option)
	}
	for _, item := range items {
		values, err := s.values(item, option == SeedName)
		if err != nil {
			return a, fmt.Errorf("%s: %w", name, err)
		}
		for _, v := range values {
			factor, set := v, v
			factor.Name, set.Name, set.Factor = name, option, name
			a.Values = append(a.Values, Value{Factors: []Setting{factor}, Sets: []Setting{set}})
		}
		if len(a.Values) > MaxRuns {
			return a, fmt.Errorf("%s: expected at most %d values, found more", name, MaxRuns)
		}
	}
	return a, nil
}

// split splits a text at a separator outside of quotes.
func split(text string, separator byte) (parts []string, err error) {
	quote, from := byte(0), 0
	for i := range len(text) {
		switch c := text[i]; {
		case quote != 0:
			if c == quote {
				quote = 0
			}
		case c == '"' || c == '\'':
			quote = c
		case c == separator:
			parts = append(parts, text[from:i])
			from = i + 1
		}
	}
	if quote != 0 {
		return nil, fmt.Errorf("expected a closing %c, found the end of %q", quote, text)
	}
	return append(parts, text[from:]), nil
}

// unquote removes the quotes around a value.
func unquote(text string) string {
	text = strings.TrimSpace(text)
	if n := len(text); n >= 2 && (text[0] == '"' || text[0] == '\'') && text[n-1] == text[0] {
		return text[1 : n-1]
	}
	return text
}
