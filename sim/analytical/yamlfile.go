// This file reads YAML mappings of configuration.

package analytical

import (
	"bytes"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"
)

// yamlFile is a YAML mapping of scalars and lists of scalars that is being read. Its methods set err to what is wrong
// first.
type yamlFile struct {
	name    string
	members []yamlMember
	warn    func(string, ...any)
	err     error
}

type yamlMember struct {
	key    string
	line   int
	isList bool
	list   []yamlValue // of a scalar, that alone
}

type yamlValue struct {
	line int
	text string
}

// Limits of a YAML file. The parser needs stack for each level of nesting, and for each key time for all before it.
const (
	maxYAMLSize     = 1 << 17
	maxYAMLLine     = 4096
	maxYAMLBrackets = 1000
)

// openYAML reads a mapping.
func openYAML(text []byte, name string, warn func(string, ...any)) (*yamlFile, error) {
	body, err := parseYAML(bytes.TrimPrefix(text, byteOrderMark))
	var problem yaml.Error
	switch {
	case errors.As(err, &problem) && problem.GetToken() != nil && problem.GetToken().Position != nil:
		return nil, fmt.Errorf("%s:%d: %s", name, problem.GetToken().Position.Line, problem.GetMessage())
	case err != nil:
		return nil, fmt.Errorf("%s: %w", name, err)
	case body == nil:
		return nil, fmt.Errorf("%s: expected a mapping, found nothing", name)
	}
	if warn == nil {
		warn = func(string, ...any) {}
	}
	f := &yamlFile{name: name, warn: warn}
	anchors := anchors{}
	mapping, ok := anchors.resolve(body).(ast.MapNode)
	if !ok {
		return nil, fmt.Errorf("%s:%d: expected a mapping, found %s", name, nodeLine(body), kindOf(body))
	}
	for entries := mapping.MapRange(); entries.Next(); {
		m := yamlMember{line: nodeLine(entries.Key())}
		if m.key, ok = scalar(entries.Key()); !ok {
			return nil, fmt.Errorf("%s:%d: expected a key, found %s", name, m.line, kindOf(entries.Key()))
		}
		values := []ast.Node{entries.Value()}
		if sequence, ok := anchors.resolve(entries.Value()).(*ast.SequenceNode); ok {
			m.isList, values = true, sequence.Values
		}
		for _, v := range values {
			resolved := anchors.resolve(v)
			text, ok := scalar(resolved)
			if !ok {
				return nil, fmt.Errorf("%s:%d: %s: expected plain values, found %s", name, nodeLine(v), m.key, kindOf(resolved))
			}
			m.list = append(m.list, yamlValue{nodeLine(v), text})
		}
		f.members = append(f.members, m)
	}
	return f, nil
}

// parseYAML returns what a file has in its first document, nil if nothing.
func parseYAML(text []byte) (body ast.Node, err error) {
	if len(text) > maxYAMLSize {
		return nil, fmt.Errorf("expected a file of at most %d bytes, found %d", maxYAMLSize, len(text))
	}
	if n := bytes.Count(text, []byte("[")) + bytes.Count(text, []byte("{")); n > maxYAMLBrackets {
		return nil, fmt.Errorf("expected at most %d opening brackets, found %d", maxYAMLBrackets, n)
	}
	for line := range bytes.Lines(text) {
		if len(line) > maxYAMLLine {
			return nil, fmt.Errorf("expected lines of at most %d bytes, found one of %d", maxYAMLLine, len(line))
		}
	}
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("expected YAML: the parser failed: %v", r)
		}
	}()
	file, err := parser.ParseBytes(text, 0)
	if err != nil || len(file.Docs) == 0 {
		return nil, err
	}
	return file.Docs[0].Body, nil
}

// anchors are the nodes of a file that aliases can name.
type anchors map[string]ast.Node

// resolve returns the node that an anchor gives a name, or that an alias names, which it is to see in their order in the
// file. An alias without an anchor, and all other nodes, it returns as they are.
func (a anchors) resolve(n ast.Node) ast.Node {
	switch n := n.(type) {
	case *ast.AnchorNode:
		a[n.Name.String()] = n.Value
		return n.Value
	case *ast.AliasNode:
		if named := a[n.Value.String()]; named != nil {
			return named
		}
	}
	return n
}

// scalar returns the text of a plain value as it is written, without quotes.
func scalar(n ast.Node) (string, bool) {
	switch n := n.(type) {
	case *ast.StringNode:
		return n.Value, true
	case *ast.IntegerNode, *ast.FloatNode, *ast.BoolNode:
		return n.GetToken().Value, true
	}
	return "", false
}

func nodeLine(n ast.Node) int {
	if n == nil || n.GetToken() == nil || n.GetToken().Position == nil {
		return 1
	}
	return n.GetToken().Position.Line
}

// kindOf returns what a node is, for messages.
func kindOf(n ast.Node) string {
	if n == nil {
		return "nothing"
	}
	return strings.ToLower(n.Type().YAMLName())
}

// member returns a member; none where there is none, which is an error then.
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
func (f *yamlFile) list(key string) []yamlValue {
	m := f.member(key)
	if f.err == nil && !m.isList {
		f.fail(m.line, key, "a list", m.list[0].text)
	}
	return m.list
}

func (f *yamlFile) fail(line int, key, expected, found string) {
	if f.err == nil {
		f.err = fmt.Errorf("%s:%d: %s: expected %s, found %s", f.name, line, key, expected, shorten(found))
	}
}

// warnUnknown warns about keys that are none of the given.
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
