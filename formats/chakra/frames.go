// This file splits a file into its messages: each follows its length, a varint. The first is the metadata, the
// others are the nodes.

package chakra

import (
	"cmp"
	"fmt"
	"slices"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/tracedag/tracedag/dag"
	"github.com/tracedag/tracedag/formats/format"
)

// The classes of errors.
const (
	inFiles   = "files"   // a rank's file is missing or duplicate
	inFrame   = "frame"   // a message is longer than the file
	inMessage = "message" // bytes that are no message, or invalid JSON
	inGraph   = "graph"   // duplicate node numbers, dependencies on missing nodes, or cycles
	inNode    = "node"    // invalid attributes
	inGroups  = "groups"  // communicators
)

// source is the file of a rank, split into encoded nodes.
type source struct {
	name   string
	data   []byte
	meta   Metadata
	nodes  []frame // in file order
	lines  []int64 // lines of nodes that come from a text
	made   bool    // the nodes come from no file
	schema string  // an old schema from which the nodes were converted; "": the current one
	cut    string  // message about a skipped end; "": none
}

// frame is the position of a node's message in a file.
type frame struct {
	id         uint64
	start, end int
}

// node returns the message of node k.
func (s *source) node(k int) []byte {
	return s.data[s.nodes[k].start:s.nodes[k].end]
}

// wrong returns an error at an offset of the file.
func (s *source) wrong(offset int64, class, expected, found string) error {
	return &format.SyntaxError{File: s.name, Offset: offset, Class: class, Expected: expected, Found: found}
}

// wrongNode returns an error about node k.
func (s *source) wrongNode(k int, class, expected, found string) error {
	switch {
	case s.lines != nil:
		return &format.SyntaxError{File: s.name, Line: s.lines[k], Class: class, Expected: expected, Found: found}
	case s.made:
		return format.FileErrorf(s.name, "%s: expected %s, found %s", class, expected, found)
	}
	return s.wrong(int64(s.nodes[k].start), class, expected, found)
}

// wrongMessage returns an error about malformed bytes of node k.
func (s *source) wrongMessage(k int, m *malformed) error {
	at := m.offsetIn(s.data)
	if f := s.nodes[k]; at < int64(f.start) || at > int64(f.end) {
		at = int64(f.start)
	}
	if s.lines != nil || s.made {
		return s.wrongNode(k, inMessage, m.expected, m.found)
	}
	return s.wrong(at, inMessage, m.expected, m.found)
}

// take splits the file.
func (s *source) take(o format.ReadOptions) error {
	if len(s.data) == 0 {
		return s.wrong(0, inFrame, "a trace, which begins with the metadata of its file", "an empty file")
	}
	if old := oldSchema(s.data); old != nil {
		return s.convert(old, o)
	}
	first := true
	err := s.frames(o, func(start, end int) error {
		body := s.data[start:end]
		if first {
			first = false
			if m := s.meta.parse(body); m != nil {
				return s.wrong(m.offsetIn(s.data), inMessage, "the metadata of a Chakra trace: "+m.expected, m.found)
			}
			return nil
		}
		s.nodes = append(s.nodes, frame{start: start, end: end})
		id, m := idOf(body)
		if m != nil {
			return s.wrongMessage(len(s.nodes)-1, m)
		}
		k := len(s.nodes) - 1
		s.nodes[k].id = id
		if k > 0 && id == s.nodes[k-1].id { // before there are too many
			return s.twice(k)
		}
		return nil
	})
	if err == nil && first { // a lone part of a message, which was skipped
		return s.wrong(0, inFrame, "the metadata of a Chakra trace", "less")
	}
	return err
}

// frames calls take with the position of each message of the file.
func (s *source) frames(o format.ReadOptions, take func(start, end int) error) error {
	for at := 0; at < len(s.data); {
		length, k := varint(s.data[at:])
		rest := len(s.data) - at - max(k, 0)
		if k < 0 || length > uint64(rest) {
			expected, found := fmt.Sprintf("a message of %d bytes", length),
				fmt.Sprintf("%d to the end of the file", rest)
			if k < 0 {
				expected, found = "the length of a message", protowire.ParseError(k).Error()
			}
			if o.Lenient {
				s.cut = fmt.Sprintf("%s: offset %d: expected %s, found %s: the rest is skipped", s.name, at,
					expected, found)
				return nil
			}
			return s.wrong(int64(at), inFrame, expected, found)
		}
		at += k
		if err := take(at, at+int(length)); err != nil {
			return err
		}
		at += int(length)
	}
	return nil
}

// idOf returns the number of a node, which usually is its first field.
func idOf(b []byte) (uint64, *malformed) {
	id := uint64(0)
	for len(b) > 0 {
		tag, k := varint(b)
		if k < 0 {
			return 0, bad(b, "the tag of a field of a node", protowire.ParseError(k).Error())
		}
		b = b[k:]
		switch {
		case tag == nodeID:
			id, k = varint(b)
		case tag > 7 && tag&7 == uint64(protowire.BytesType):
			_, k = bytesOf(b)
		default:
			var m *malformed
			if k, m = skip(tag, b); m != nil {
				return 0, m
			}
		}
		if k < 0 {
			return 0, bad(b, "the value of a field of a node", protowire.ParseError(k).Error())
		}
		b = b[k:]
	}
	return id, nil
}

// twice returns the error about the duplicate number of node k.
func (s *source) twice(k int) error {
	return s.wrongNode(k, inGraph, "a number that no other node has", fmt.Sprintf("another node %d", s.nodes[k].id))
}

// graph is the order of the nodes of a file by number, and an index of them.
type graph struct {
	order []int32 // nodes by ascending number, as positions in the file; nil: file order
	ids   []uint64
	table []int32 // for dense numbers from ids[0] on: 1 + the node's position in the order
}

// newGraph sorts the nodes of a file by number. Numbers must be unique.
func newGraph(s *source) (*graph, error) {
	if len(s.nodes) > dag.MaxOps {
		return nil, format.FileErrorf(s.name, "expected at most %d nodes, found %d", dag.MaxOps, len(s.nodes))
	}
	g := &graph{ids: make([]uint64, len(s.nodes))}
	ascending := true
	for k, f := range s.nodes {
		g.ids[k] = f.id
		ascending = ascending && (k == 0 || s.nodes[k-1].id < f.id)
	}
	if !ascending {
		g.order = make([]int32, len(s.nodes))
		for k := range g.order {
			g.order[k] = int32(k)
		}
		slices.SortStableFunc(g.order, func(x, y int32) int { return cmp.Compare(s.nodes[x].id, s.nodes[y].id) })
		for i, k := range g.order {
			g.ids[i] = s.nodes[k].id
			if i > 0 && g.ids[i] == g.ids[i-1] {
				return nil, s.twice(int(k))
			}
		}
	}
	if n := len(g.ids); n > 0 {
		if span := g.ids[n-1] - g.ids[0]; span < uint64(4*n) && span != uint64(n-1) {
			g.table = make([]int32, span+1)
			for i, id := range g.ids {
				g.table[id-g.ids[0]] = int32(i) + 1
			}
		}
	}
	return g, nil
}

// place returns the position in the file of the i-th node by number.
func (g *graph) place(i int) int {
	if g.order == nil {
		return i
	}
	return int(g.order[i])
}

// find returns the position by number of the node with number id, or -1.
func (g *graph) find(id uint64) int {
	n := len(g.ids)
	if n == 0 || id < g.ids[0] || id > g.ids[n-1] {
		return -1
	}
	d := id - g.ids[0]
	switch {
	case g.table != nil:
		return int(g.table[d]) - 1
	case g.ids[n-1]-g.ids[0] == uint64(n-1):
		return int(d)
	}
	if i, found := slices.BinarySearch(g.ids, id); found {
		return i
	}
	return -1
}
