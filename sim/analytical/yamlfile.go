// This file reads YAML mappings of configuration.

package analytical

import (
	"fmt"
	"strconv"

	"github.com/tracedag/tracedag/internal/conf"
)

// yamlFile is a YAML mapping of scalars and lists of scalars during reading. Its methods set err to the first error.
type yamlFile struct {
	name    string
	members []yamlMember
	warn    func(string, ...any)
	err     error
}

type yamlMember struct {
	key    string
	line   int64
	isList bool
	list   []conf.Node // of a scalar, only that
}

// openYAML reads a mapping.
func openYAML(text []byte, name string, warn func(string, ...any)) (*yamlFile, error) {
	if len(text) > conf.MaxYAMLSize {
		return nil, fmt.Errorf("%s: expected a file of at most %d bytes, found %d", name, conf.MaxYAMLSize, len(text))
	}
	root, err := conf.ReadLoose(text, name)
	switch {
	case err != nil:
		return nil, err
	case root.Kind == conf.Null:
		return nil, fmt.Errorf("%s: expected a mapping, found nothing", name)
	case root.Kind != conf.Map:
		return nil, fmt.Errorf("%s:%d: expected a mapping, found %s", name, root.Line, root.YAMLName())
	}
	if warn == nil {
		warn = func(string, ...any) {}
	}
	f := &yamlFile{name: name, warn: warn}
	for _, from := range root.Members {
		m := yamlMember{key: from.Key, line: from.Line, list: []conf.Node{from.Value}}
		if from.Value.Kind == conf.List {
			m.isList, m.list = true, from.Value.List
		}
		for _, v := range m.list {
			if v.Kind != conf.Text && v.Kind != conf.Number && v.Kind != conf.Bool {
				return nil, fmt.Errorf("%s:%d: %s: expected plain values, found %s", name, v.Line, m.key, v.YAMLName())
			}
		}
		f.members = append(f.members, m)
	}
	return f, nil
}

// member returns a member. A missing member is an error.
func (f *yamlFile) member(key string) yamlMember {
	for _, m := range f.members {
		if m.key == key {
			return m
		}
	}
	if f.err == nil {
		f.err = fmt.Errorf("%s: expected a key %s, found none", f.name, key)
	}
	return yamlMember{line: 1}
}

// list returns the values of a key.
func (f *yamlFile) list(key string) []conf.Node {
	m := f.member(key)
	if f.err == nil && !m.isList {
		f.fail(m.line, key, "a list", m.list[0].Text)
	}
	return m.list
}

func (f *yamlFile) fail(line int64, key, expected, found string) {
	if f.err == nil {
		f.err = fmt.Errorf("%s:%d: %s: expected %s, found %s", f.name, line, key, expected, shorten(found))
	}
}

// warnUnknown warns about unknown keys.
func (f *yamlFile) warnUnknown(known ...string) {
	for _, m := range f.members {
		found := false
		for _, key := range known {
			found = found || key == m.key
		}
		if !found {
			f.warn("%s:%d: unknown key %s is ignored", f.name, m.line, strconv.Quote(shorten(m.key)))
		}
	}
}
