// Package chakra reads and writes Chakra execution traces (https://github.com/mlcommons/chakra): one file per rank
// with its graph of computation and communication, as protobuf messages or as JSON.
//
// docs/reference/formats/chakra.md describes the files and the mapping of nodes to ops of package dag. Data that
// the model lacks is kept in the attributes of ops and of the trace, so that writing restores the same nodes.
package chakra

import (
	"bytes"
	"encoding/json"
	"unicode"
	"unicode/utf8"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/tracedag/tracedag/dag"
	"github.com/tracedag/tracedag/dag/lower"
	"github.com/tracedag/tracedag/dag/lower/collective"
	"github.com/tracedag/tracedag/formats/format"
)

// Format is the protobuf form, which simulators read.
var Format = format.Format{
	Name:         "chakra",
	Modes:        format.Modes{Compat: true, Lenient: true, CompatOutput: true},
	Title:        "Chakra execution traces (.et), one file per rank",
	Tensors:      Tensors,
	Extensions:   []string{".et"},
	Binary:       true,
	Detect:       detect,
	Files:        func(name string, folder []string) ([]string, error) { return files(name, folder, ".et") },
	Read:         read,
	Paired:       true,
	Options:      Table,
	WriteOptions: writeTable,
	Lacks:        lacks,
	Losses:       func(t *dag.Trace) []format.Loss { return losses(t, format.WriteOptions{}, false) },
	WriteFiles:   write,
}

// JSON is the form of Chakra's jsonizer.
var JSON = format.Format{
	Name:         "chakrajson",
	Modes:        format.Modes{Compat: true, Lenient: true, CompatOutput: true},
	Title:        "Chakra execution traces as JSON (Chakra's jsonizer), one file per rank",
	Extensions:   []string{".json"},
	Detect:       detectJSON,
	Files:        func(name string, folder []string) ([]string, error) { return files(name, folder, ".json") },
	Read:         readJSON,
	Paired:       true,
	Options:      Table,
	WriteOptions: writeTable,
	Lacks:        lacks,
	Losses:       func(t *dag.Trace) []format.Loss { return losses(t, format.WriteOptions{}, true) },
	WriteFiles:   writeJSON,
}

// lacks describes the ops that neither form has, or that the schema numbers but simulators refuse because it has no
// roots. The schema has one size for all members of a collective.
var lacks = lower.Lacks{
	Collectives: collective.Selection{
		Kinds: func(kind dag.Subkind) bool {
			switch kind {
			case dag.Allreduce, dag.Allgather, dag.ReduceScatter, dag.Alltoall, dag.Bcast, dag.Barrier:
				return false
			}
			return true
		},
		Uneven: func(kind dag.Subkind) bool { return kind == dag.ReduceScatter },
	},
	Storage: true,
}

// detect reports whether a file begins with the messages of a trace. Since they have no signature, all of head
// must be such messages, and one of them must have a name and its other required fields.
func detect(head []byte) bool {
	sure := false
	for first := true; len(head) > 0; first = false {
		length, k := varint(head)
		if k < 0 {
			return sure // cut off, or an unreadable trace
		}
		body := head[k:]
		cut := length > uint64(len(body))
		if !cut {
			body = body[:length]
		}
		head = head[k+len(body):]
		likely, evident := looksLikeNode(body, cut)
		if tag, _ := varint(body); first && tag != nodeID {
			likely, evident = looksLikeMetadata(body, cut)
		}
		if !likely {
			return false
		}
		sure = sure || evident
	}
	return sure
}

// looksLikeMetadata reports whether bytes, which may be cut off, can be the metadata of a file, and whether they
// have a version or an attribute, which other data is unlikely to have.
func looksLikeMetadata(b []byte, cut bool) (likely, evident bool) {
	err := fields(b, func(tag, _ uint64, value, _ []byte) *malformed {
		if tag != metaVersion && tag != metaAttr || !isWord(value) && !isNamed(value) {
			return bad(value, "", "")
		}
		evident = true
		return nil
	})
	if err == nil || !cut {
		return err == nil, evident
	}
	if evident { // cut off only within a later attribute
		return true, true
	}
	// The first attribute is cut off, but not its name.
	tag, k := varint(b)
	if k < 0 || tag != metaVersion && tag != metaAttr {
		return false, false
	}
	_, size := varint(b[k:])
	return true, size > 0 && isNamed(b[k+size:])
}

// isWord reports whether bytes are one line of text, such as a version.
func isWord(b []byte) bool {
	return len(b) > 0 && utf8.Valid(b) && bytes.IndexFunc(b, unicode.IsControl) < 0
}

// isNamed reports whether bytes begin with the name of an attribute.
func isNamed(b []byte) bool {
	if len(b) == 0 || uint64(b[0]) != attrName {
		return false
	}
	name, k := bytesOf(b[1:])
	return k > 0 && isWord(name)
}

// looksLikeNode reports whether bytes, which may be cut off, can be a node, and whether they have a name and a
// type.
func looksLikeNode(b []byte, cut bool) (likely, evident bool) {
	named, typed := false, false
	for len(b) > 0 {
		tag, k := varint(b)
		if k < 0 {
			return cut, named && typed
		}
		b = b[k:]
		size, err := skip(tag, b)
		num, typ := protowire.DecodeTag(tag)
		known := num <= 20 // the maximum of all schemas
		if num < 1 || typ == protowire.StartGroupType || typ == protowire.EndGroupType ||
			err != nil && !(cut && known) {
			return false, false
		}
		if err != nil {
			return true, named && typed
		}
		switch value := b[:size]; {
		case num == 1 && typ != protowire.VarintType || num == 2 && typ != protowire.BytesType ||
			num == 3 && typ != protowire.VarintType:
			return false, false
		case num == 2:
			name, _ := bytesOf(value)
			named = len(name) > 0
			if !utf8.Valid(name) {
				return false, false
			}
		case num == 3:
			number, _ := varint(value)
			typed = number < uint64(numNodeTypes)
			if !typed {
				return false, false
			}
		}
		b = b[size:]
	}
	return true, named && typed
}

// detectJSON reports whether a file begins with an object with members that only the messages of a trace have: the
// type of a node, or an attribute with a value of some kind.
func detectJSON(head []byte) bool {
	head = bytes.TrimPrefix(head, []byte("\ufeff"))
	d := json.NewDecoder(bytes.NewReader(head))
	depth, list := 0, 0 // depth: open brackets; list: 1 if the file is one list
	key, isKey := "", false
	var open []json.Delim
	for {
		t, err := d.Token()
		if err != nil {
			return false
		}
		if b, ok := t.(json.Delim); ok {
			if b == '[' && depth == 0 {
				list = 1
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
			if _, kind := kindNamed(key); kind && level == 3 {
				return true // {"attr": [{"int64Val": ...
			}
			switch schemaName(key) {
			case "version", "attr", "id", "name", "type", "ctrl_deps", "data_deps", "start_time_micros",
				"duration_micros", "inputs", "outputs":
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
