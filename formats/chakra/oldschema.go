// This file reads files of the schemas before 0.0.4, of 2023, and converts their nodes to the current schema.
// docs/reference/formats/chakra.md describes the differences.

package chakra

import (
	"errors"
	"strconv"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/tracedag/tracedag/formats/format"
)

// schema is an old schema.
type schema struct {
	name     string
	metadata bool            // the first message is metadata
	nodes    bool            // the nodes are those of the current schema
	shifted  bool            // node types lack METADATA_NODE
	kinds    map[uint64]Kind // kinds of attribute values, by field number; nil: attributes are fields of the node
	calls    []int64         // current comm_type, by old comm_type; -1: none
}

var (
	schema001 = &schema{name: "0.0.1", shifted: true, calls: []int64{-1, AllReduce, AllToAll, AllGather, ReduceScatter}}
	schema002 = &schema{
		name: "0.0.2", shifted: true, calls: []int64{AllReduce, AllToAll, AllGather, ReduceScatter},
		kinds: map[uint64]Kind{4: FloatVal, 5: Int64Val, 6: StringVal,
			7: FloatVal + listOf, 8: Int64Val + listOf, 9: StringVal + listOf},
	}
	schema003 = &schema{
		name: "0.0.3", calls: []int64{AllReduce, AllToAll, AllGather, ReduceScatter},
		kinds: map[uint64]Kind{4: BoolVal, 5: FloatVal, 6: Int64Val, 7: StringVal,
			8: BoolVal + listOf, 9: FloatVal + listOf, 10: Int64Val + listOf, 11: StringVal + listOf},
	}
	schema003Late = &schema{
		name: "0.0.3", metadata: true, calls: []int64{AllReduce, AllToAll, AllGather, ReduceScatter, Broadcast},
		kinds: map[uint64]Kind{4: BoolVal, 5: FloatVal, 6: Uint64Val, 7: Int64Val, 8: StringVal,
			9: BoolVal + listOf, 10: FloatVal + listOf, 11: Uint64Val + listOf, 12: Int64Val + listOf,
			13: StringVal + listOf},
	}
	schema004First = &schema{name: "0.0.4 of its first day", metadata: true, nodes: true}
	noSchema       = &schema{} // current nodes without the required metadata
)

// oldSchema returns the old schema of a file, or nil for the current one. In current metadata field 1 is text. In
// old metadata it has attributes, or the first message is a node, whose field 1 is a number.
func oldSchema(data []byte) *schema {
	body, k := bytesOf(data)
	if k < 0 || len(body) == 0 {
		return nil
	}
	tag, k := varint(body)
	if tag == nodeID {
		return nodeSchema(data)
	}
	if tag != metaVersion {
		return nil
	}
	attr, k := bytesOf(body[k:])
	if k < 0 || len(attr) == 0 || uint64(attr[0]) != attrName {
		return nil
	}
	old := schema004First
	err := fields(attr, func(tag, _ uint64, _, _ []byte) *malformed {
		if tag == oldAttrType {
			old = schema003Late
		}
		return nil
	})
	if err != nil {
		return nil
	}
	return old
}

// Tags of old messages.
const (
	oldNodeType   = 3<<3 | uint64(protowire.VarintType)
	oldNodeParent = 4<<3 | uint64(protowire.VarintType)
	oldNodeAttr   = 11<<3 | uint64(protowire.BytesType)

	oldAttrType = 2<<3 | uint64(protowire.VarintType)
)

// nodeSchema distinguishes the schemas without metadata by the first decisive node. Only 0.0.1 has no attributes;
// the current schema has them in field 10, where 0.0.1 has a number. Fields 4 to 6 of an attribute have different
// types in 0.0.2 and 0.0.3.
func nodeSchema(data []byte) *schema {
	found := schema001
	decided := false
	s := source{data: data}
	s.frames(format.ReadOptions{Lenient: true}, func(start, end int) error {
		fields(data[start:end], func(tag, _ uint64, attr, _ []byte) *malformed {
			switch {
			case tag == nodeAttr && found == schema001:
				found = noSchema
			case tag == oldNodeAttr && !decided:
				found, decided = attrSchema(attr)
			}
			return nil
		})
		if decided {
			return errStop
		}
		return nil
	})
	return found
}

// attrSchema returns the schema of an old attribute, and whether it is certain.
func attrSchema(attr []byte) (found *schema, sure bool) {
	found = schema003
	fields(attr, func(tag, _ uint64, _, _ []byte) *malformed {
		number, typ := tag>>3, protowire.Type(tag&7)
		if number < 4 || number > 6 {
			return nil
		}
		sure = true
		if number == 5 && typ == protowire.VarintType || number == 4 && typ != protowire.VarintType ||
			number == 6 && typ == protowire.BytesType {
			found = schema002
		}
		return nil
	})
	return found, sure
}

var errStop = errors.New("enough")

// convert splits a file in an old schema and converts its nodes.
func (s *source) convert(old *schema, o format.ReadOptions) error {
	if old == noSchema {
		return s.wrong(0, inMessage, "the metadata of a Chakra trace", "a node")
	}
	s.schema = old.name
	var wire []byte
	first := old.metadata
	err := s.frames(o, func(start, end int) error {
		body := s.data[start:end]
		wrong := func(m *malformed) error {
			return s.wrong(m.offsetIn(s.data), inMessage, "a message of the schema "+old.name+": "+m.expected, m.found)
		}
		if first {
			first = false
			m := fields(body, func(tag, _ uint64, value, _ []byte) *malformed {
				switch {
				case tag != metaVersion:
					return nil
				case old.nodes:
					return parseAttr(&s.meta.Attr, value)
				}
				a, m := old.attr(value)
				s.meta.Attr = append(s.meta.Attr, a)
				return m
			})
			if m != nil {
				return wrong(m)
			}
			return nil
		}
		if old.nodes {
			id, m := idOf(body)
			if m != nil {
				return wrong(m)
			}
			s.nodes = append(s.nodes, frame{id: id, start: start, end: end})
			return nil
		}
		n, m := old.node(body)
		if m != nil {
			return wrong(m)
		}
		begin := len(wire)
		wire = n.append(wire)
		s.nodes = append(s.nodes, frame{id: n.ID, start: begin, end: len(wire)})
		return nil
	})
	if !old.nodes {
		s.data, s.made = wire, true
	}
	return err
}

// node parses a node.
func (old *schema) node(body []byte) (Node, *malformed) {
	var n Node
	m := fields(body, func(tag, number uint64, value, _ []byte) (m *malformed) {
		switch tag {
		case nodeID:
			n.ID = number
		case nodeName:
			n.Name, m = text(value)
		case oldNodeType:
			if old.shifted && number > 0 {
				number++
			}
			if number >= uint64(numNodeTypes) {
				return bad(value, "a type of node", strconv.FormatUint(number, 10))
			}
			n.Type = NodeType(number)
		case oldNodeParent:
			n.DataDeps = append(n.DataDeps, number)
		case nodeCtrl: // parents, packed
			for len(value) > 0 {
				id, k := varint(value)
				if k < 0 {
					return bad(value, errVarint, "the end of a list, or more")
				}
				n.DataDeps = append(n.DataDeps, id)
				value = value[k:]
			}
		default:
			if old.kinds == nil {
				old.addField(&n, tag>>3, number)
			} else {
				m = old.addPart(&n, tag, value)
			}
		}
		return m
	})
	return n, m
}

// addPart adds an attribute of a node, or a part of the description of its inputs and outputs.
func (old *schema) addPart(n *Node, tag uint64, value []byte) (m *malformed) {
	if protowire.Type(tag&7) != protowire.BytesType {
		return nil
	}
	switch number := tag >> 3; {
	case number >= 5 && number <= 10:
		io := &n.Inputs
		if number >= 8 {
			io = &n.Outputs
		}
		if *io == nil {
			*io = new(IOInfo)
		}
		*[]*string{&(*io).Values, &(*io).Shapes, &(*io).Types}[(number-5)%3], m = text(value)
	case tag == oldNodeAttr:
		var a Attr
		if a, m = old.attr(value); m != nil {
			return m
		}
		switch a.Name {
		case "runtime":
			n.DurationMicros = a.num
			return nil
		case collectiveName:
			a = Int64(a.Name, old.call(a.num))
		}
		n.Attr = append(n.Attr, a)
	}
	return m
}

// call returns the current comm_type.
func (old *schema) call(number uint64) int64 {
	if number < uint64(len(old.calls)) {
		return old.calls[number]
	}
	return -1
}

// attr parses an attribute. Its type gives the field of the value: type plus 4.
func (old *schema) attr(body []byte) (Attr, *malformed) {
	var a Attr
	var list []byte
	typ, typed := uint64(0), false
	m := fields(body, func(tag, number uint64, _, _ []byte) *malformed {
		if tag == oldAttrType {
			typ, typed = number, true
		}
		return nil
	})
	if m != nil {
		return a, m
	}
	if typed {
		a.Kind = old.kinds[typ+4]
	}
	m = fields(body, func(tag, number uint64, value, whole []byte) (m *malformed) {
		switch kind := old.kinds[tag>>3]; {
		case tag == attrName:
			a.Name, m = text(value)
		case tag == 3<<3|uint64(protowire.BytesType):
			a.Doc, m = text(value)
		case kind == NoValue || kind != a.Kind && typed:
		default:
			a.Kind = kind
			scalar, isList := kind.scalar()
			switch {
			case isList:
				_, k := varint(whole)
				list = protowire.AppendTag(list, listValues, protowire.Type(tag&7))
				list = append(list, whole[k:]...)
			case protowire.Type(tag&7) != scalar.wireType():
			case scalar == StringVal:
				a.text, m = text(value)
			default:
				a.num = scalar.normal(number)
			}
		}
		return m
	})
	if scalar, isList := a.Kind.scalar(); m == nil && isList {
		m = a.parseList(scalar, list)
	}
	return a, m
}

// addField adds the attribute for a field of a 0.0.1 node, under its later name.
func (old *schema) addField(n *Node, field, v uint64) {
	add := func(a Attr) { n.Attr = append(n.Attr, a) }
	switch field {
	case 5:
		add(Uint64("tensor_loc", v))
	case 6:
		add(Uint64(tensorName, v))
	case 7:
		n.DurationMicros = v
	case 8:
		add(Uint64("input_tensor_loc", v))
	case 9:
		add(Uint64("input_tensor_size", v))
	case 10:
		add(Uint64("output_tensor_loc", v))
	case 11:
		add(Uint64("output_tensor_size", v))
	case 12:
		add(Int64(flopsName, int64(v)))
	case 13:
		add(Int64(collectiveName, old.call(v)))
	case 14:
		if last := len(n.Attr) - 1; last >= 0 && n.Attr[last].Name == dimsName {
			n.Attr[last].nums = append(n.Attr[last].nums, min(v, 1))
		} else {
			add(Bools(dimsName, v != 0))
		}
	case 15:
		if v != 0 {
			add(String(groupName, strconv.FormatUint(v, 10)))
		}
	case 16:
		add(Int32(sourceName, int32(v)))
	case 17:
		add(Int32(destName, int32(v)))
	case 18:
		add(Int64(sizeName, int64(v)))
	case 19:
		add(Int32(tagName, int32(v)))
	case 20:
		add(Int32(priorityName, int32(v)))
	}
}
