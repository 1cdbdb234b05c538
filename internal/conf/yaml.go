package conf

import (
	"bytes"
	"errors"
	"fmt"
	"strings"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"
)

// yamlReader builds the nodes of a YAML file.
type yamlReader struct {
	name    string
	loose   bool
	anchors map[string]Node // of a loose file: nodes by anchor, so far
}

func (r *yamlReader) read(text []byte) (Node, error) {
	docs, err := r.parse(text)
	var problem yaml.Error
	switch {
	case errors.As(err, &problem) && problem.GetToken() != nil && problem.GetToken().Position != nil:
		return Node{}, fmt.Errorf("%s:%d: %s", r.name, problem.GetToken().Position.Line, problem.GetMessage())
	case err != nil:
		return Node{}, fmt.Errorf("%s: %w", r.name, err)
	case len(docs) == 0:
		return Node{Line: 1, Kind: Null}, nil
	case len(docs) > 1 && !r.loose:
		return Node{}, &Error{File: r.name, Line: lineOf(docs[1]), Expected: "one document", Found: "a second"}
	}
	return r.node(docs[0], 0)
}

// parse returns the documents of a file that are not empty; of a loose file only the first one.
func (r *yamlReader) parse(text []byte) (docs []ast.Node, err error) {
	if err := r.checkLimits(text); err != nil {
		return nil, err
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
	if r.loose && len(file.Docs) > 1 {
		file.Docs = file.Docs[:1]
	}
	for _, doc := range file.Docs {
		if doc.Body != nil {
			docs = append(docs, doc.Body)
		}
	}
	return docs, nil
}

// checkLimits checks the limits that bound time and stack of the parser. Messages about strict files, which may also
// be JSON, mention that JSON has other limits.
func (r *yamlReader) checkLimits(text []byte) error {
	json := func(hint string) string {
		if r.loose {
			return ""
		}
		return ": " + hint
	}
	if len(text) > MaxYAMLSize {
		return fmt.Errorf("expected at most %d bytes of YAML, found %d%s", MaxYAMLSize, len(text),
			json("JSON may be larger"))
	}
	if n := bytes.Count(text, []byte("[")) + bytes.Count(text, []byte("{")); n > maxYAMLBrackets {
		return fmt.Errorf("expected at most %d opening brackets, found %d%s", maxYAMLBrackets, n,
			json("JSON may have more"))
	}
	for line := range bytes.Lines(text) {
		if len(line) > maxYAMLLine {
			return fmt.Errorf("expected lines of at most %d bytes, found one of %d%s", maxYAMLLine, len(line),
				json("those of JSON may be longer"))
		}
	}
	return nil
}

// lineOf returns the line of a node, 1 if the parser has none.
func lineOf(n ast.Node) int64 {
	if n == nil || n.GetToken() == nil || n.GetToken().Position == nil {
		return 1
	}
	return int64(n.GetToken().Position.Line)
}

func typeName(n ast.Node) string {
	return strings.ToLower(n.Type().YAMLName())
}

// node converts a node of the parser.
func (r *yamlReader) node(from ast.Node, depth int) (Node, error) {
	n := Node{Line: lineOf(from)}
	if depth > maxDepth {
		return n, &Error{File: r.name, Line: n.Line, Expected: fmt.Sprintf("at most %d levels", maxDepth),
			Found: "more"}
	}
	switch from := from.(type) {
	case nil, *ast.NullNode:
		n.Kind = Null
	case *ast.StringNode:
		n.Text = from.Value
	case *ast.LiteralNode:
		n.Text = from.Value.Value
	case *ast.IntegerNode, *ast.FloatNode:
		n.Kind, n.Text = Number, from.GetToken().Value
	case *ast.BoolNode:
		n.Kind, n.Text = Bool, from.GetToken().Value
	case *ast.SequenceNode:
		n.Kind = List
		for _, element := range from.Values {
			value, err := r.node(element, depth+1)
			if err != nil {
				return n, err
			}
			n.List = append(n.List, value)
		}
	case ast.MapNode:
		n.Kind = Map
		err := r.members(&n, from, depth)
		return n, err
	case *ast.AnchorNode:
		if r.loose {
			return r.anchored(from, depth)
		}
		return n, r.unexpected(from)
	case *ast.AliasNode:
		if named, ok := r.anchors[from.Value.String()]; ok {
			named.Line = n.Line
			return named, nil
		}
		return r.other(from)
	default:
		return r.other(from)
	}
	return n, nil
}

// anchored returns the node of an anchor. An alias of the anchor within it becomes an empty list or mapping.
func (r *yamlReader) anchored(from *ast.AnchorNode, depth int) (Node, error) {
	name := from.Name.String()
	self := Node{Line: lineOf(from)}
	switch from.Value.(type) {
	case *ast.SequenceNode:
		self.Kind = List
	case ast.MapNode:
		self.Kind = Map
	}
	r.anchors[name] = self
	n, err := r.node(from.Value, depth)
	n.Line = self.Line
	r.anchors[name] = n
	return n, err
}

// other returns a node of kind Other for a loose file, otherwise an error.
func (r *yamlReader) other(from ast.Node) (Node, error) {
	n := Node{Line: lineOf(from), Kind: Other, Text: typeName(from)}
	if r.loose {
		return n, nil
	}
	return n, r.unexpected(from)
}

func (r *yamlReader) unexpected(from ast.Node) error {
	return &Error{File: r.name, Line: lineOf(from), Expected: "a plain value, a list or a mapping",
		Found: typeName(from)}
}

// members adds the members of a mapping to n.
func (r *yamlReader) members(n *Node, from ast.MapNode, depth int) error {
	for entries := from.MapRange(); entries.Next(); {
		m := Member{Line: lineOf(entries.Key())}
		switch key := entries.Key().(type) {
		case *ast.StringNode:
			m.Key = key.Value
		case *ast.IntegerNode, *ast.FloatNode, *ast.BoolNode:
			if !r.loose {
				return &Error{File: r.name, Line: n.Line, Expected: "a key that is a word", Found: typeName(key)}
			}
			m.Key = key.GetToken().Value
		default:
			if !r.loose {
				return &Error{File: r.name, Line: n.Line, Expected: "a key that is a word", Found: typeName(key)}
			}
			return &Error{File: r.name, Line: m.Line, Expected: "a key", Found: typeName(key)}
		}
		var err error
		if m.Value, err = r.node(entries.Value(), depth+1); err != nil {
			return err
		}
		n.Members = append(n.Members, m)
	}
	return nil
}
