// Package conf reads configuration files in YAML or JSON into trees of nodes with their lines. Files come from
// anywhere, so size, nesting, line length and brackets are limited.
package conf

import (
	"bytes"
	"fmt"
)

// Node is a value of a configuration file or of the command line.
type Node struct {
	Line    int64 // from 1; 0 on the command line
	Kind    Kind
	Text    string   // of a scalar as it is written, without quotes; of Other the name of its kind in YAML
	List    []Node   // elements of a List
	Members []Member // of a Map, in the order of the file; keys may repeat
}

// Member is a key of a mapping and its value.
type Member struct {
	Key   string
	Line  int64
	Value Node
}

// Kind is the kind of a node.
type Kind uint8

// Kinds of nodes. Word is a value of the command line, which may stand for any scalar. Other is a part of YAML that is
// neither a plain value nor a list or mapping, such as an alias without an anchor; only [ReadLoose] returns it.
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

// Found describes the node for messages that say what was found.
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

// YAMLName returns the name that YAML has for the kind of the node.
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

// Error is something else in a file than was expected. Errors of the YAML parser and of exceeded limits are plain
// errors with the file's name and, if it is known, the line.
type Error struct {
	File     string
	Line     int64
	Key      string // the key whose value it is; "": none
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

// Limits of files. The YAML parser needs stack for each level of nesting, and its time for a key grows with the number
// of keys before it, so JSON is read apart and may be larger. The caller limits the size of JSON.
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

// ReadLoose reads the first document of a file of YAML as yaml-cpp does: aliases stand for the nodes of their anchors,
// and every plain value may be a key. An empty file is a Null node.
func ReadLoose(text []byte, name string) (Node, error) {
	return (&yamlReader{name: name, loose: true, anchors: map[string]Node{}}).read(trimMark(text))
}

// trimMark removes the byte order mark with which some editors begin files in UTF-8.
func trimMark(text []byte) []byte {
	return bytes.TrimPrefix(text, []byte("\ufeff"))
}
