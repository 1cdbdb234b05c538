// This file reads messages from JSON, in the form of jsonwrite.go and in all forms that protobuf's mapping allows:
// field names as in the schema, enumeration numbers, 64-bit numbers with or without quotes.

package chakra

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/tracedag/tracedag/formats/format"
)

// takeJSON splits a file of JSON: a sequence of objects, with or without space between them, or a list of objects.
// The first object is the metadata, unless it has members that only nodes have.
func (s *source) takeJSON() error {
	text := bytes.TrimPrefix(s.data, []byte("\ufeff"))
	lines := lineCounter{text: text}
	wrong := func(offset int64, err error) error {
		return &format.SyntaxError{File: s.name, Line: lines.at(offset), Class: inMessage,
			Expected: "Chakra's messages in JSON", Found: err.Error()}
	}
	if !utf8.Valid(text) {
		return wrong(int64(len(text)), errors.New("text in invalid UTF-8"))
	}
	d := json.NewDecoder(bytes.NewReader(text))
	list := bytes.HasPrefix(bytes.TrimLeft(text, " \t\r\n"), []byte("["))
	if list {
		if _, err := d.Token(); err != nil {
			return wrong(d.InputOffset(), err)
		}
	}
	var wire []byte
	s.lines = []int64{}
	for first := true; ; first = false {
		start := d.InputOffset()
		if list && !d.More() {
			break
		}
		var raw json.RawMessage
		err := d.Decode(&raw)
		if err == io.EOF && !list && !first {
			break
		}
		if err != nil {
			return wrong(max(start, offsetOf(err, text)), err)
		}
		start = d.InputOffset() - int64(len(raw))
		if first && isMetadata(raw) {
			if err := s.meta.parseJSON(raw); err != nil {
				return wrong(start, err)
			}
			continue
		}
		var n Node
		if err := n.parseJSON(raw); err != nil {
			return wrong(start, err)
		}
		begin := len(wire)
		wire = n.append(wire)
		s.nodes = append(s.nodes, frame{id: n.ID, start: begin, end: len(wire)})
		s.lines = append(s.lines, lines.at(start))
	}
	if list {
		if _, err := d.Token(); err != nil {
			return wrong(d.InputOffset(), err)
		}
		if _, err := d.Token(); err != io.EOF {
			return wrong(d.InputOffset(), errors.New("more data after the list"))
		}
	}
	s.data = wire
	return nil
}

// offsetOf returns the offset of the error in the text, as far as err gives it.
func offsetOf(err error, text []byte) int64 {
	var syntax *json.SyntaxError
	switch {
	case errors.As(err, &syntax):
		return syntax.Offset
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return int64(len(text))
	}
	return 0
}

// lineCounter finds the lines of mostly ascending offsets.
type lineCounter struct {
	text  []byte
	known int64 // the lines up to here are counted
	lines int64
}

func (l *lineCounter) at(offset int64) int64 {
	if offset < l.known {
		l.known, l.lines = 0, 0
	}
	offset = min(offset, int64(len(l.text)))
	l.lines += int64(bytes.Count(l.text[l.known:offset], []byte("\n")))
	l.known = offset
	return l.lines + 1
}

// isMetadata reports whether an object has only members that metadata may have.
func isMetadata(raw json.RawMessage) bool {
	var members map[string]json.RawMessage
	if json.Unmarshal(raw, &members) != nil {
		return false
	}
	for name := range members {
		if name != "version" && name != "attr" {
			return false
		}
	}
	return true
}

// members calls take with each member of an object, under its name in the schema. It skips members that are null.
// The text must be valid JSON.
func members(raw json.RawMessage, kind string, take func(name string, value json.RawMessage) error) error {
	if raw[0] != '{' {
		return fmt.Errorf("%s that is no object", kind)
	}
	var seen [maxFields]string
	count := 0
	for rest := space(raw[1:]); rest[0] != '}'; rest = next(rest) {
		size := valueSize(rest)
		key, err := parseText(rest[:size])
		if err != nil {
			return err
		}
		name := schemaName(key)
		if slices.Contains(seen[:count], name) {
			return fmt.Errorf("%s with two members %q", kind, key)
		}
		rest = space(space(rest[size:])[1:]) // skip the colon
		size = valueSize(rest)
		value := json.RawMessage(rest[:size])
		rest = rest[size:]
		if value[0] == 'n' {
			continue
		}
		err = errMember
		if count < maxFields {
			seen[count] = name
			count++
			err = take(name, value)
		}
		switch {
		case err == errMember:
			return fmt.Errorf("%s with an unknown member %q", kind, key)
		case err != nil:
			return fmt.Errorf("%s: %w", key, err)
		}
	}
	return nil
}

// maxFields is the maximum number of fields of a message that may be present at the same time.
const maxFields = 16

// space returns b without leading white space.
func space(b []byte) []byte {
	for len(b) > 0 && (b[0] == ' ' || b[0] == '\n' || b[0] == '\t' || b[0] == '\r') {
		b = b[1:]
	}
	return b
}

// next returns the text from the next member or element of an object or list, after a value, or from the closing
// bracket.
func next(b []byte) []byte {
	if b = space(b); b[0] == ',' {
		return space(b[1:])
	}
	return b
}

// valueSize returns the length of the value at the beginning of b.
func valueSize(b []byte) int {
	depth := 0
	for i := 0; ; i++ {
		switch b[i] {
		case '"':
			for i++; b[i] != '"'; i++ {
				if b[i] == '\\' {
					i++
				}
			}
		case '{', '[':
			depth++
			continue
		case '}', ']':
			depth--
		default:
			if depth > 0 {
				continue
			}
			for i+1 < len(b) && !bytes.ContainsRune([]byte(" \n\t\r,}]:"), rune(b[i+1])) {
				i++
			}
		}
		if depth == 0 {
			return i + 1
		}
	}
}

// errMember reports an unknown member.
var errMember = errors.New("no such member")

// schemaNames maps the JSON names of fields to their different names in the schema.
var schemaNames = func() map[string]string {
	names := map[string]string{
		"ctrlDeps": "ctrl_deps", "dataDeps": "data_deps", "startTimeMicros": "start_time_micros",
		"durationMicros": "duration_micros", "docString": "doc_string",
	}
	for _, kind := range kindNames {
		names[kind.camel] = kind.snake
	}
	return names
}()

// schemaName returns the name of a field in the schema.
func schemaName(name string) string {
	if s, other := schemaNames[name]; other {
		return s
	}
	return name
}

func (m *Metadata) parseJSON(raw json.RawMessage) error {
	return members(raw, "metadata", func(name string, value json.RawMessage) (err error) {
		switch name {
		case "version":
			m.Version, err = parseText(value)
		case "attr":
			m.Attr, err = parseAttrs(value)
		default:
			err = errMember
		}
		return err
	})
}

func (n *Node) parseJSON(raw json.RawMessage) error {
	return members(raw, "a node", func(name string, value json.RawMessage) (err error) {
		switch name {
		case "id":
			n.ID, err = parseID(value)
		case "name":
			n.Name, err = parseText(value)
		case "type":
			n.Type, err = parseType(value)
		case "ctrl_deps":
			n.CtrlDeps, err = parseList(value, parseID)
		case "data_deps":
			n.DataDeps, err = parseList(value, parseID)
		case "start_time_micros":
			n.StartTimeMicros, err = parseID(value)
		case "duration_micros":
			n.DurationMicros, err = parseID(value)
		case "inputs":
			n.Inputs, err = parseIO(value)
		case "outputs":
			n.Outputs, err = parseIO(value)
		case "attr":
			n.Attr, err = parseAttrs(value)
		default:
			err = errMember
		}
		return err
	})
}

func parseText(raw json.RawMessage) (s string, err error) {
	if raw[0] == '"' && bytes.IndexByte(raw, '\\') < 0 {
		return string(raw[1 : len(raw)-1]), nil
	}
	if err := json.Unmarshal(raw, &s); err != nil {
		return "", fmt.Errorf("%.40s, not text", raw)
	}
	return s, nil
}

func parseID(raw json.RawMessage) (uint64, error) {
	return parseScalar(Uint64Val, raw)
}

func parseType(raw json.RawMessage) (NodeType, error) {
	if raw[0] == '"' {
		name, err := parseText(raw)
		if err != nil {
			return 0, err
		}
		if t, ok := typeNamed(name); ok {
			return t, nil
		}
	} else if v, err := parseScalar(Int32Val, raw); err == nil && v < uint64(numNodeTypes) {
		return NodeType(v), nil
	}
	return 0, fmt.Errorf("%.40s, not a type of node", raw)
}

func parseList[T any](raw json.RawMessage, parse func(json.RawMessage) (T, error)) ([]T, error) {
	if raw[0] != '[' {
		return nil, fmt.Errorf("%.40s, not a list", raw)
	}
	var list []T
	for rest := space(raw[1:]); rest[0] != ']'; rest = next(rest) {
		size := valueSize(rest)
		element, err := parse(json.RawMessage(rest[:size]))
		if err != nil {
			return nil, err
		}
		list = append(list, element)
		rest = rest[size:]
	}
	return list, nil
}

func parseIO(raw json.RawMessage) (*IOInfo, error) {
	io := new(IOInfo)
	return io, members(raw, "an object", func(name string, value json.RawMessage) (err error) {
		switch name {
		case "values":
			io.Values, err = parseText(value)
		case "shapes":
			io.Shapes, err = parseText(value)
		case "types":
			io.Types, err = parseText(value)
		default:
			err = errMember
		}
		return err
	})
}

func parseAttrs(raw json.RawMessage) ([]Attr, error) {
	return parseList(raw, func(raw json.RawMessage) (a Attr, err error) {
		err = members(raw, "an attribute", func(name string, value json.RawMessage) (err error) {
			switch name {
			case "name":
				a.Name, err = parseText(value)
			case "doc_string":
				a.Doc, err = parseText(value)
			default:
				kind, ok := kindNamed(name)
				if !ok {
					return errMember
				}
				if a.Kind != NoValue {
					return errors.New("a second value")
				}
				a.Kind = kind
				err = a.parseValue(value)
			}
			return err
		})
		return a, err
	})
}

// parseValue parses the value of an attribute of known kind.
func (a *Attr) parseValue(raw json.RawMessage) (err error) {
	scalar, list := a.Kind.scalar()
	textual := scalar == StringVal || scalar == BytesVal
	switch {
	case list:
		return members(raw, "a list", func(name string, value json.RawMessage) (err error) {
			switch {
			case name != "values":
				err = errMember
			case textual:
				a.texts, err = parseList(value, scalar.parseText)
			default:
				a.nums, err = parseList(value, func(raw json.RawMessage) (uint64, error) {
					return parseScalar(scalar, raw)
				})
			}
			return err
		})
	case textual:
		a.text, err = scalar.parseText(raw)
	default:
		a.num, err = parseScalar(scalar, raw)
	}
	return err
}

// parseText parses text, or bytes in base64 of either alphabet, with or without padding.
func (k Kind) parseText(raw json.RawMessage) (string, error) {
	s, err := parseText(raw)
	if err != nil || k == StringVal {
		return s, err
	}
	plain := strings.TrimRight(strings.NewReplacer("-", "+", "_", "/").Replace(s), "=")
	b, err := base64.RawStdEncoding.DecodeString(plain)
	if err != nil {
		return "", fmt.Errorf("%.40q, not base64", s)
	}
	return string(b), nil
}

// parseScalar parses a number of the kind to the representation of Attr.
func parseScalar(k Kind, raw json.RawMessage) (uint64, error) {
	v, err := k.parseNumber(raw)
	if err != nil {
		return 0, fmt.Errorf("%.40s, not a value of the kind %s", raw, k.wireName())
	}
	return v, nil
}

// errNumber reports text that is no number of a kind.
var errNumber = errors.New("no such number")

// parseNumber parses a number, or true or false.
func (k Kind) parseNumber(raw json.RawMessage) (uint64, error) {
	if k == BoolVal {
		switch string(raw) {
		case "true":
			return 1, nil
		case "false":
			return 0, nil
		}
		return 0, errNumber
	}
	s := string(raw)
	if raw[0] == '"' {
		var err error
		if s, err = parseText(raw); err != nil {
			return 0, errNumber
		}
	}
	switch k {
	case DoubleVal, FloatVal:
		bits := 64
		if k == FloatVal {
			bits = 32
		}
		f, err := strconv.ParseFloat(s, bits)
		switch {
		case s == "Infinity" || s == "-Infinity":
		case s == "NaN" && k == FloatVal:
			return floatNaN, nil
		case s == "NaN":
			return doubleNaN, nil
		case err != nil || strings.Trim(s, "0123456789+-.eE") != "":
			return 0, errNumber
		}
		if k == FloatVal {
			return uint64(math.Float32bits(float32(f))), nil
		}
		return math.Float64bits(f), nil
	case Uint32Val, Fixed32Val, Uint64Val, Fixed64Val:
		bits := 64
		if k == Uint32Val || k == Fixed32Val {
			bits = 32
		}
		v, err := strconv.ParseUint(s, 10, bits)
		if err != nil {
			v, err = wholeNumber[uint64](s, 0, math.Ldexp(1, bits))
		}
		if err != nil {
			return 0, errNumber
		}
		return v, nil
	}
	bits := 64
	if k == Int32Val || k == Sint32Val || k == Sfixed32Val {
		bits = 32
	}
	v, err := strconv.ParseInt(s, 10, bits)
	if err != nil {
		v, err = wholeNumber[int64](s, -math.Ldexp(1, bits-1), math.Ldexp(1, bits-1))
	}
	if err != nil {
		return 0, errNumber
	}
	return uint64(v), nil
}

// wholeNumber parses a whole number written as 1e3 or 5.0, from low to below high.
func wholeNumber[T int64 | uint64](s string, low, high float64) (T, error) {
	f, err := strconv.ParseFloat(s, 64)
	if err != nil || strings.Trim(s, "0123456789+-.eE") != "" || f != math.Trunc(f) || f < low || f >= high {
		return 0, errNumber
	}
	return T(f), nil
}
