// Package conf reads configuration files in YAML or JSON into trees of nodes with line numbers. Files are untrusted,
// so size, nesting, line length and brackets are limited.
package conf

import (
	"bytes"
	"fmt"
)

// Node is a value of a configuration file or of the command line.
type Node struct {
	Line    int64 // from 1; 0 on the command line
	Kind    Kind
	Text    string   // text of a scalar as written, without quotes; for Other, the name of its kind in YAML
	List    []Node   // elements, for List
	Members []Member // members, for Map, in the order of the file; keys may repeat
}

// Member is a key of a mapping and its value.
type Member struct {
	Key   string
	Line  int64
	Value Node
}

// Kind is the kind of a node.
type Kind uint8

// Kinds of nodes. Word is a value of the command line; it may be any scalar. Other is a YAML node that is neither a
// plain value nor a list or mapping, such as an alias without an anchor; only [ReadLoose] returns it.
const (
	Text Kind = iota
	Number
	Bool
	Null
	List
	Map
	Word
	Other
)

// Found describes the node for the part "found" of messages.
func (n *Node) Found() string {
	switch n.Kind {
	case Text, Word:
		return fmt.Sprintf("%.60q", n.Text)
	case Null:
		return "nothing"
	case List:
		return "a list"
	case Map:
		return "a mapping"
	}
	return fmt.Sprintf("%.60s", n.Text)
}

// YAMLName returns the YAML name of the kind of the node.
func (n *Node) YAMLName() string {
	return [...]string{"string", "number", "boolean", "null", "sequence", "mapping", "string", n.Text}[n.Kind]
}

// Has reports whether a mapping has a key.
func (n *Node) Has(key string) bool {
	for i := range n.Members {
		if n.Members[i].Key == key {
			return true
		}
	}
	return false
}

// Error reports unexpected content of a file. Errors of the YAML parser and exceeded limits are plain errors with the
// name of the file and, if known, the line.
type Error struct {
	File     string
	Line     int64
	Key      string // key of the value; "": none
	Expected string
	Found    string
}

// Error returns "FILE:LINE: KEY: expected X, found Y".
func (e *Error) Error() string {
	key := ""
	if e.Key != "" {
		key = e.Key + ": "
	}
	return fmt.Sprintf("%s:%d: %sexpected %s, found %s", e.File, e.Line, key, e.Expected, e.Found)
}

// Limits of files. The YAML parser takes stack for each level of nesting, and its time for a key grows with the
// number of previous keys. JSON has a separate reader and may be larger; the caller limits its size.
const (
	MaxYAMLSize     = 1 << 17 // bytes
	maxYAMLLine     = 4096    // bytes
	maxYAMLBrackets = 1000
	maxDepth        = 16
)

// Read reads a file of YAML or, if it begins with a brace, of JSON. YAML must be one document without anchors and
// aliases, and keys are words. An empty file is a Null node.
func Read(text []byte, name string) (Node, error) {
	text = trimMark(text)
	if begin := bytes.TrimLeft(text, " \t\r\n"); len(begin) > 0 && begin[0] == '{' {
		return readJSON(text, name)
	}
	return (&yamlReader{name: name}).read(text)
}

// ReadLoose reads the first document of a YAML file as yaml-cpp does: aliases become the nodes of their anchors, and
// every plain value may be a key. An empty file is a Null node.
func ReadLoose(text []byte, name string) (Node, error) {
	return (&yamlReader{name: name, loose: true, anchors: map[string]Node{}}).read(trimMark(text))
}

// trimMark removes the byte order mark that some editors write at the start of UTF-8 files.
func trimMark(text []byte) []byte {
	return bytes.TrimPrefix(text, []byte("\ufeff"))
}
