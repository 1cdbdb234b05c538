package conf

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
)

// jsonReader builds the nodes of a JSON text.
type jsonReader struct {
	name    string
	text    []byte
	decoder *json.Decoder
	counted int64 // bytes whose newlines are counted in line
	line    int64
}

// ReadJSON reads a file of JSON values one after the other, such as JSON lines. Keys of a mapping may repeat.
func ReadJSON(text []byte, name string) (all []Node, err error) {
	r := newJSONReader(text, name)
	for r.decoder.More() {
		n, err := r.value(0)
		if err != nil {
			return nil, err
		}
		all = append(all, n)
	}
	if _, err := r.decoder.Token(); err != io.EOF {
		return nil, r.fail("a JSON value or the end of the file", "other text")
	}
	return all, nil
}

func newJSONReader(text []byte, name string) *jsonReader {
	r := &jsonReader{name: name, text: text, decoder: json.NewDecoder(bytes.NewReader(text)), line: 1}
	r.decoder.UseNumber()
	return r
}

func readJSON(text []byte, name string) (Node, error) {
	r := newJSONReader(text, name)
	n, err := r.value(0)
	if err != nil {
		return n, err
	}
	if _, err := r.decoder.Token(); err != io.EOF {
		return n, r.fail("the end of the file", "more")
	}
	return n, nil
}

func (r *jsonReader) fail(expected, found string) error {
	return &Error{File: r.name, Line: r.at(), Expected: expected, Found: found}
}

// at returns the line of the last token.
func (r *jsonReader) at() int64 {
	offset := r.decoder.InputOffset()
	r.line += int64(bytes.Count(r.text[r.counted:offset], []byte("\n")))
	r.counted = offset
	return r.line
}

func (r *jsonReader) token() (json.Token, error) {
	t, err := r.decoder.Token()
	if err != nil {
		var syntax *json.SyntaxError
		switch {
		case errors.As(err, &syntax):
			r.line = 1 + int64(bytes.Count(r.text[:min(max(syntax.Offset-1, 0), int64(len(r.text)))], []byte("\n")))
			return nil, &Error{File: r.name, Line: r.line, Expected: "JSON", Found: syntax.Error()}
		default:
			return nil, r.fail("JSON", "the end of the file")
		}
	}
	return t, nil
}

func (r *jsonReader) value(depth int) (Node, error) {
	t, err := r.token()
	if err != nil {
		return Node{}, err
	}
	n := Node{Line: r.at()}
	switch t := t.(type) {
	case nil:
		n.Kind = Null
	case bool:
		n.Kind, n.Text = Bool, fmt.Sprint(t)
	case json.Number:
		n.Kind, n.Text = Number, t.String()
	case string:
		n.Text = t
	case json.Delim:
		if depth == maxDepth {
			return n, r.fail(fmt.Sprintf("at most %d levels", maxDepth), "more")
		}
		if t == '[' {
			n.Kind = List
			err = r.elements(&n, depth)
		} else {
			n.Kind = Map
			err = r.mapping(&n, depth)
		}
	}
	return n, err
}

func (r *jsonReader) elements(n *Node, depth int) error {
	for r.decoder.More() {
		element, err := r.value(depth + 1)
		if err != nil {
			return err
		}
		n.List = append(n.List, element)
	}
	_, err := r.token()
	return err
}

func (r *jsonReader) mapping(n *Node, depth int) error {
	for r.decoder.More() {
		key, err := r.token()
		if err != nil {
			return err
		}
		m := Member{Line: r.at()}
		m.Key, _ = key.(string) // the decoder accepts only strings as keys
		if m.Value, err = r.value(depth + 1); err != nil {
			return err
		}
		n.Members = append(n.Members, m)
	}
	_, err := r.token()
	return err
}
