// This file reads records of keywords and values.

package model

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/tracedag/tracedag/dag/gen/openloop"
	"github.com/tracedag/tracedag/formats/format"
)

// place is a position in a file.
type place struct {
	file string
	line int64
}

func (l place) fail(expected, found string) error {
	return &format.SyntaxError{File: l.file, Line: l.line, Class: "ext", Expected: expected, Found: found}
}

// quote returns a field for a message, shortened if it is long.
func quote(field string) string {
	const most = 60
	if len(field) > most {
		return strconv.Quote(field[:most]) + "..."
	}
	return strconv.Quote(field)
}

// record is the current record. Its fields are the unread ones.
type record struct {
	place
	fields []string
}

// word returns the next field. The name describes it in errors.
func (r *record) word(name string) (string, error) {
	if len(r.fields) == 0 {
		return "", r.fail(name, "the end of the line")
	}
	field := r.fields[0]
	r.fields = r.fields[1:]
	return field, nil
}

// parser reads the records of a model.
type parser struct {
	header  Header
	options *Options
	warn    func(message string, args ...any)
	record
	rest  []Line
	files []string // files read
}

// next proceeds to the next record. The name describes it in errors.
func (p *parser) next(name string) error {
	if len(p.rest) == 0 {
		return p.fail(name+" on the next line", "the end of the file")
	}
	p.line, p.fields = p.rest[0].Number, p.rest[0].Fields
	p.rest = p.rest[1:]
	return nil
}

// end returns an error if there are more records.
func (p *parser) end() error {
	if len(p.rest) == 0 {
		return nil
	}
	return place{p.file, p.rest[0].Number}.fail("the end of the file", quote(p.rest[0].Fields[0]))
}

func (p *parser) explain(err error) error {
	return p.place.explain(err, p.header)
}

// keyword is a keyword followed by a value.
type keyword struct {
	name     string
	value    value
	optional bool
}

// value is the type of a field.
type value interface {
	parse(field string) bool // reports whether it is valid
	String() string          // for messages
}

// keywords reads the rest of the record: keywords with their values in any order, each at most once, and, unless
// dist is nil, at most one distribution.
func (r *record) keywords(dist *openloop.Distribution, words ...keyword) error {
	seen := make([]bool, len(words))
	seenDist := false
	for len(r.fields) > 0 {
		name, _ := r.word("")
		if k := find(words, name); k >= 0 {
			if seen[k] {
				return r.fail(words[k].name+" once", "it twice")
			}
			seen[k] = true
			field, err := r.word("the value of " + words[k].name)
			if err != nil {
				return err
			}
			if !words[k].value.parse(field) {
				return r.fail(fmt.Sprintf("%s %v", words[k].name, words[k].value), quote(field))
			}
			continue
		}
		d, ok := openloop.ParseDistribution(name)
		if !ok || dist == nil {
			return r.fail(listOf(words, dist != nil), quote(name))
		}
		if seenDist {
			return r.fail("one distribution", "two, the second "+quote(name))
		}
		*dist, seenDist = d, true
	}
	for k, w := range words {
		if !seen[k] && !w.optional {
			return r.fail(w.name+" and its value", "none")
		}
	}
	return nil
}

func find(words []keyword, name string) int {
	for k := range words {
		if strings.EqualFold(words[k].name, name) {
			return k
		}
	}
	return -1
}

// listOf lists the keywords for a message.
func listOf(words []keyword, dist bool) string {
	var names []string
	for _, w := range words {
		names = append(names, w.name)
	}
	if dist {
		names = append(names, "UNIFORM", "POISSON", "GAUSS")
	}
	last := len(names) - 1
	if last == 0 {
		return names[0]
	}
	return strings.Join(names[:last], ", ") + " or " + names[last]
}

// count is a whole number from 1 to most.
type count struct {
	to   *int64
	most int64
}

func (c count) parse(field string) bool {
	v, err := strconv.ParseUint(field, 10, 63) // no sign
	*c.to = int64(v)
	return err == nil && v >= 1 && int64(v) <= c.most
}

func (c count) String() string {
	return fmt.Sprintf("1..%d", c.most)
}

// number is a number with optional decimals.
type number struct {
	to       *float64
	in       func(float64) bool
	expected string
}

func (n number) parse(field string) bool {
	if strings.Trim(field, "0123456789.eE+-") != "" { // excludes infinities, NaN and hexadecimal numbers
		return false
	}
	v, err := strconv.ParseFloat(field, 64)
	*n.to = v
	return err == nil && n.in(v)
}

func (n number) String() string {
	return n.expected
}

func positive(v float64) bool { return v > 0 }

func percent(v float64) bool { return v >= 0 && v <= 100 }

func probability(v float64) bool { return v > 0 && v <= 1 }

// formatFloat returns the shortest number that parses as v.
func formatFloat(v float64) string {
	return strconv.FormatFloat(v, 'g', -1, 64)
}
