// Package chakra reads and writes Chakra execution traces (https://github.com/mlcommons/chakra): a file for each rank,
// with the graph of what it computes and communicates, as protobuf messages or as JSON.
//
// docs/formats/chakra.md describes the files and how a node becomes an op of package dag. What the model does not have
// is kept in the attributes of ops and of the trace, so that writing gives the same nodes again.
package chakra

import (
	"bytes"
	"encoding/json"
	"strings"
	"unicode"
	"unicode/utf8"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/tracedag/tracedag/formats/format"
)

// Format is the protobuf form, which simulators read.
var Format = format.Format{
	Name:       "chakra",
	Title:      "Chakra execution traces (.et), one file a rank",
	Extensions: []string{".et"},
	Binary:     true,
	Detect:     detect,
	Files:      func(name string, folder []string) ([]string, error) { return files(name, folder, ".et") },
	Read:       read,
	Losses:     losses,
	WriteFiles: write,
}

// JSON is the form that Chakra's jsonizer prints.
var JSON = format.Format{
	Name:       "chakrajson",
	Title:      "Chakra execution traces as JSON, as Chakra's jsonizer prints them, one file a rank",
	Extensions: []string{".json"},
	Detect:     detectJSON,
	Files:      func(name string, folder []string) ([]string, error) { return files(name, folder, ".json") },
	Read:       readJSON,
	Losses:     jsonLosses,
	WriteFiles: writeJSON,
}

// detect reports whether a file begins with the messages of a trace. Nothing marks them, so all of head must be such
// messages, and one of them must have some text.
func detect(head []byte) bool {
	sure := false
	for i, rest := 0, head; len(rest) > 0; i++ {
		length, k := varint(rest)
		if k < 0 {
			return sure && len(head) == format.DetectBytes
		}
		body := rest[k:]
		whole := length <= uint64(len(body))
		if whole {
			body, rest = body[:length], body[length:]
		} else if rest = nil; len(head) < format.DetectBytes {
			return false
		}
		var likely, evident bool
		if likely, evident = looksLike(body, whole, i == 0); !likely {
			return false
		}
		sure = sure || evident
	}
	return sure
}

// looksLike reports whether bytes, whole or cut off, are a message of a trace: the first one, or a node; and whether
// they have something that says so.
func looksLike(b []byte, whole, first bool) (likely, evident bool) {
	named := false // has a name or an attribute
	typed := false
	for len(b) > 0 {
		tag, k := varint(b)
		if k < 0 {
			return !whole, evident
		}
		b = b[k:]
		num, typ := protowire.DecodeTag(tag)
		if num < 1 || num > 20 || typ != protowire.BytesType && typ != protowire.VarintType {
			return false, false
		}
		n := protowire.ConsumeFieldValue(num, typ, b)
		if n < 0 && whole {
			return false, false
		}
		value := b
		if n >= 0 {
			value, b = b[:n], b[n:]
		} else {
			b = nil
		}
		switch {
		case typ == protowire.BytesType && num <= 2:
			_, k := varint(value)
			if k < 0 {
				return n < 0, false
			}
			if len(value) == k {
				continue
			}
			text := value[k:]
			if text[0] == byte(attrName) { // an attribute, whose first field is its name
				if text = text[1:]; len(text) < 2 || int(text[0]) >= len(text) {
					continue
				}
				text = text[1 : 1+int(text[0])]
			}
			if !printable(text, n < 0) {
				return false, false
			}
			named = true
		case tag == nodeType:
			if v, _ := varint(value); v >= uint64(numNodeTypes) {
				return false, false
			}
			typed = true
		}
	}
	return true, named && (first || typed)
}

// printable reports whether text has no control characters but the white space of names. It may be cut within a
// character.
func printable(text []byte, cut bool) bool {
	for len(text) > 0 {
		r, size := utf8.DecodeRune(text)
		if r == utf8.RuneError && size == 1 {
			return cut && !utf8.FullRune(text)
		}
		if unicode.IsControl(r) {
			return false
		}
		text = text[size:]
	}
	return true
}

// detectJSON reports whether a file begins with an object that has what only the messages of a trace have: a node's
// type, or an attribute with a value of some kind.
func detectJSON(head []byte) bool {
	head = bytes.TrimPrefix(head, []byte("\ufeff"))
	d := json.NewDecoder(bytes.NewReader(head))
	depth, list := 0, 0 // of brackets; 1 where all is one list
	key, isKey := "", false
	var open []json.Delim
	for {
		t, err := d.Token()
		if err != nil {
			return false
		}
		if b, ok := t.(json.Delim); ok {
			switch {
			case b == '[' && depth == 0:
				list = 1
			case b == '{' && depth == list:
			}
			if b == '{' || b == '[' {
				open = append(open, b)
			} else {
				open = open[:len(open)-1]
			}
			depth = len(open)
			isKey = depth > 0 && open[depth-1] == '{'
			continue
		}
		if depth == 0 {
			return false
		}
		if open[depth-1] == '{' && isKey {
			key, _ = t.(string)
			isKey = false
			level := depth - list
			if _, kind := kindNamed(key); kind && level == 2 {
				return true // {"attr": [{"int64Val": ...
			}
			switch snake(key) {
			case "version", "attr", "id", "name", "type", "ctrl_deps", "data_deps", "start_time_micros", "duration_micros",
				"inputs", "outputs":
			default:
				if level == 1 {
					return false
				}
			}
			continue
		}
		if s, ok := t.(string); ok && key == "type" && depth-list == 1 {
			_, ok := typeNamed(s)
			return ok
		}
		isKey = open[depth-1] == '{'
	}
}

var _ = strings.Cut
