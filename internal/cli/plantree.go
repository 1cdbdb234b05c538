// This file reads the syntax of plan files: YAML, or JSON, which is read apart because such files may be large.

package cli

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"

	"github.com/tracedag/tracedag/formats/format"
)

// planNode is a value in a plan file.
type planNode struct {
	line    int64 // 0: it is from the command line
	kind    planKind
	text    string // of a scalar
	list    []planNode
	members []planMember
}

type planMember struct {
	key   string
	line  int64
	value planNode
}

type planKind uint8

const (
	planText planKind = iota
	planNumber
	planBool
	planNull
	planList
	planMap
	planWord // of the command line, where all is text
)

// found returns what a node is, for messages.
func (n *planNode) found() string {
	switch n.kind {
	case planText, planWord:
		return fmt.Sprintf("%.60q", n.text)
	case planNull:
		return "nothing"
	case planList:
		return "a list"
	case planMap:
		return "a mapping"
	}
	return fmt.Sprintf("%.60s", n.text)
}

// Limits of plan files. The parser of YAML needs stack for each level of nesting, and for each key time for all
// before it.
const (
	maxPlanSize     = 4 << 20
	maxYAMLPlan     = 1 << 17
	maxYAMLLine     = 4096
	maxYAMLBrackets = 1000
	maxPlanDepth    = 16
)

// parsePlan reads the syntax of a plan file.
func parsePlan(text []byte, name string) (planNode, error) {
	text = bytes.TrimPrefix(text, []byte("\ufeff"))
	if begin := bytes.TrimLeft(text, " \t\r\n"); len(begin) > 0 && begin[0] == '{' {
		return parseJSONPlan(text, name)
	}
	return parseYAMLPlan(text, name)
}

// jsonPlan is a JSON text that is being read.
type jsonPlan struct {
	name    string
	text    []byte
	decoder *json.Decoder
	counted int64 // bytes of which the lines were counted
	line    int64
}

func parseJSONPlan(text []byte, name string) (planNode, error) {
	p := &jsonPlan{name: name, text: text, decoder: json.NewDecoder(bytes.NewReader(text)), line: 1}
	p.decoder.UseNumber()
	n, err := p.value(0)
	if err != nil {
		return n, err
	}
	if _, err := p.decoder.Token(); err != io.EOF {
		return n, p.fail("the end of the file", "more")
	}
	return n, nil
}

func (p *jsonPlan) fail(expected, found string) error {
	return &format.SyntaxError{File: p.name, Line: p.at(), Expected: expected, Found: found}
}

// at returns the line of the last token.
func (p *jsonPlan) at() int64 {
	offset := p.decoder.InputOffset()
	p.line += int64(bytes.Count(p.text[p.counted:offset], []byte("\n")))
	p.counted = offset
	return p.line
}

func (p *jsonPlan) token() (json.Token, error) {
	t, err := p.decoder.Token()
	if err != nil {
		var syntax *json.SyntaxError
		switch {
		case errors.As(err, &syntax):
			p.line = 1 + int64(bytes.Count(p.text[:min(max(syntax.Offset-1, 0), int64(len(p.text)))], []byte("\n")))
			return nil, &format.SyntaxError{File: p.name, Line: p.line, Expected: "JSON", Found: syntax.Error()}
		default:
			return nil, p.fail("JSON", "the end of the file")
		}
	}
	return t, nil
}

func (p *jsonPlan) value(depth int) (planNode, error) {
	t, err := p.token()
	if err != nil {
		return planNode{}, err
	}
	n := planNode{line: p.at()}
	switch t := t.(type) {
	case nil:
		n.kind = planNull
	case bool:
		n.kind, n.text = planBool, fmt.Sprint(t)
	case json.Number:
		n.kind, n.text = planNumber, t.String()
	case string:
		n.text = t
	case json.Delim:
		if depth == maxPlanDepth {
			return n, p.fail(fmt.Sprintf("at most %d levels", maxPlanDepth), "more")
		}
		if t == '[' {
			n.kind = planList
			return n, p.elements(&n, depth)
		}
		n.kind = planMap
		return n, p.mapping(&n, depth)
	}
	return n, nil
}

func (p *jsonPlan) elements(n *planNode, depth int) error {
	for p.decoder.More() {
		element, err := p.value(depth + 1)
		if err != nil {
			return err
		}
		n.list = append(n.list, element)
	}
	_, err := p.token()
	return err
}

func (p *jsonPlan) mapping(n *planNode, depth int) error {
	for p.decoder.More() {
		key, err := p.token()
		if err != nil {
			return err
		}
		m := planMember{line: p.at()}
		m.key, _ = key.(string) // the decoder lets nothing else be a key
		if m.value, err = p.value(depth + 1); err != nil {
			return err
		}
		n.members = append(n.members, m)
	}
	_, err := p.token()
	return err
}

func parseYAMLPlan(text []byte, name string) (planNode, error) {
	docs, err := parseYAML(text)
	var problem yaml.Error
	switch {
	case errors.As(err, &problem) && problem.GetToken() != nil && problem.GetToken().Position != nil:
		return planNode{}, fmt.Errorf("%s:%d: %s", name, problem.GetToken().Position.Line, problem.GetMessage())
	case err != nil:
		return planNode{}, fmt.Errorf("%s: %w", name, err)
	case len(docs) == 0:
		return planNode{}, &format.SyntaxError{File: name, Line: 1, Expected: "a mapping", Found: "nothing"}
	case len(docs) > 1:
		return planNode{}, &format.SyntaxError{File: name, Line: yamlLine(docs[1]), Expected: "one document",
			Found: "a second"}
	}
	return yamlValue(docs[0], name, 0)
}

// parseYAML returns the documents of a file.
func parseYAML(text []byte) (docs []ast.Node, err error) {
	if len(text) > maxYAMLPlan {
		return nil, fmt.Errorf("expected at most %d bytes of YAML, found %d: JSON may be larger", maxYAMLPlan, len(text))
	}
	if n := bytes.Count(text, []byte("[")) + bytes.Count(text, []byte("{")); n > maxYAMLBrackets {
		return nil, fmt.Errorf("expected at most %d opening brackets, found %d: JSON may have more", maxYAMLBrackets, n)
	}
	for line := range bytes.Lines(text) {
		if len(line) > maxYAMLLine {
			return nil, fmt.Errorf("expected lines of at most %d bytes, found one of %d: those of JSON may be longer",
				maxYAMLLine, len(line))
		}
	}
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("expected YAML: the parser failed: %v", r)
		}
	}()
	file, err := parser.ParseBytes(text, 0)
	if err != nil {
		return nil, err
	}
	for _, doc := range file.Docs {
		if doc.Body != nil {
			docs = append(docs, doc.Body)
		}
	}
	return docs, nil
}

func yamlLine(n ast.Node) int64 {
	if n == nil || n.GetToken() == nil || n.GetToken().Position == nil {
		return 1
	}
	return int64(n.GetToken().Position.Line)
}

// yamlValue returns a node of a plan.
func yamlValue(from ast.Node, name string, depth int) (planNode, error) {
	n := planNode{line: yamlLine(from)}
	fail := func(expected, found string) error {
		return &format.SyntaxError{File: name, Line: n.line, Expected: expected, Found: found}
	}
	if depth > maxPlanDepth {
		return n, fail(fmt.Sprintf("at most %d levels", maxPlanDepth), "more")
	}
	switch from := from.(type) {
	case nil, *ast.NullNode:
		n.kind = planNull
	case *ast.StringNode:
		n.text = from.Value
	case *ast.LiteralNode:
		n.text = from.Value.Value
	case *ast.IntegerNode, *ast.FloatNode:
		n.kind, n.text = planNumber, from.GetToken().Value
	case *ast.BoolNode:
		n.kind, n.text = planBool, fmt.Sprint(from.Value)
	case *ast.SequenceNode:
		n.kind = planList
		for _, element := range from.Values {
			value, err := yamlValue(element, name, depth+1)
			if err != nil {
				return n, err
			}
			n.list = append(n.list, value)
		}
	case ast.MapNode:
		n.kind = planMap
		for entries := from.MapRange(); entries.Next(); {
			key, ok := entries.Key().(*ast.StringNode)
			if !ok {
				return n, fail("a key that is a word", strings.ToLower(entries.Key().Type().YAMLName()))
			}
			value, err := yamlValue(entries.Value(), name, depth+1)
			if err != nil {
				return n, err
			}
			n.members = append(n.members, planMember{key.Value, yamlLine(key), value})
		}
	default:
		return n, fail("a plain value, a list or a mapping", strings.ToLower(from.Type().YAMLName()))
	}
	return n, nil
}
