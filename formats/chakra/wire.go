// This file decodes and encodes messages in protobuf's wire format
// (https://protobuf.dev/programming-guides/encoding/). The messages are those of Chakra's et_def.proto.
//
// Input may have fields in any order, numbers packed or not, fields outside the schema, and messages in several
// parts. Output has fields in ascending order and packed numbers, so that the usual form is restored byte for
// byte.

package chakra

import (
	"slices"
	"strconv"
	"unicode/utf8"

	"google.golang.org/protobuf/encoding/protowire"
)

// The tags of fields: field number and wire type.
const (
	metaVersion = 1<<3 | uint64(protowire.BytesType)
	metaAttr    = 2<<3 | uint64(protowire.BytesType)

	nodeID         = 1<<3 | uint64(protowire.VarintType)
	nodeName       = 2<<3 | uint64(protowire.BytesType)
	nodeType       = 3<<3 | uint64(protowire.VarintType)
	nodeCtrl       = 4<<3 | uint64(protowire.BytesType)
	nodeCtrlSingle = 4<<3 | uint64(protowire.VarintType)
	nodeData       = 5<<3 | uint64(protowire.BytesType)
	nodeDataSingle = 5<<3 | uint64(protowire.VarintType)
	nodeStart      = 6<<3 | uint64(protowire.VarintType)
	nodeDuration   = 7<<3 | uint64(protowire.VarintType)
	nodeInputs     = 8<<3 | uint64(protowire.BytesType)
	nodeOutputs    = 9<<3 | uint64(protowire.BytesType)
	nodeAttr       = 10<<3 | uint64(protowire.BytesType)

	ioValues = 1<<3 | uint64(protowire.BytesType)
	ioShapes = 2<<3 | uint64(protowire.BytesType)
	ioTypes  = 3<<3 | uint64(protowire.BytesType)

	attrName = 1<<3 | uint64(protowire.BytesType)
	attrDoc  = 2<<3 | uint64(protowire.BytesType)

	listValues = 1 // of every list message
)

// malformed reports an error in bytes, which begins at rest. The capacity of rest gives its distance from the end
// of the data, see offsetIn.
type malformed struct {
	rest            []byte
	expected, found string
}

// offsetIn returns the offset of the error in data, or 0 in a message of several parts, which were joined
// elsewhere.
func (m *malformed) offsetIn(data []byte) int64 {
	if at := cap(data) - cap(m.rest); at >= 0 && at <= len(data) {
		return int64(at)
	}
	return 0
}

func bad(rest []byte, expected, found string) *malformed {
	return &malformed{rest, expected, found}
}

const (
	errVarint = "a number of at most 64 bits"
	errText   = "text in UTF-8"
)

// varint is protowire.ConsumeVarint, with the shortest numbers inline.
func varint(b []byte) (uint64, int) {
	if len(b) > 0 && b[0] < 0x80 {
		return uint64(b[0]), 1
	}
	return protowire.ConsumeVarint(b)
}

// bytesOf is protowire.ConsumeBytes, with the shortest lengths inline.
func bytesOf(b []byte) ([]byte, int) {
	if len(b) > 0 && b[0] < 0x80 {
		if n := int(b[0]) + 1; n <= len(b) {
			return b[1:n], n
		}
	}
	return protowire.ConsumeBytes(b)
}

// skip returns the length of the field at the beginning of b, without its tag.
func skip(tag uint64, b []byte) (int, *malformed) {
	num, typ := protowire.DecodeTag(tag)
	if num < 1 {
		return 0, bad(b, "a field number", "an invalid one")
	}
	n := protowire.ConsumeFieldValue(num, typ, b)
	if n < 0 {
		return 0, bad(b, "a field of a message", protowire.ParseError(n).Error())
	}
	return n, nil
}

// fields calls take with every field of a message: its tag, its value if that is a number or bytes, and the whole
// field.
func fields(b []byte, take func(tag, number uint64, value, whole []byte) *malformed) *malformed {
	for len(b) > 0 {
		tag, k := varint(b)
		if k < 0 {
			return bad(b, "the tag of a field", protowire.ParseError(k).Error())
		}
		n, err := skip(tag, b[k:])
		if err != nil {
			return err
		}
		value := b[k : k+n]
		var number uint64
		switch protowire.Type(tag & 7) {
		case protowire.VarintType:
			number, _ = varint(value)
		case protowire.BytesType:
			value, _ = bytesOf(value)
		case protowire.Fixed32Type:
			v, _ := protowire.ConsumeFixed32(value)
			number = uint64(v)
		case protowire.Fixed64Type:
			number, _ = protowire.ConsumeFixed64(value)
		}
		if err := take(tag, number, value, b[:k+n]); err != nil {
			return err
		}
		b = b[k+n:]
	}
	return nil
}

// text returns bytes as a string, which must be UTF-8.
func text(b []byte) (string, *malformed) {
	if !utf8.Valid(b) {
		return "", bad(b, errText, "other bytes")
	}
	return string(b), nil
}

// wireNode is a node in wire format: its parts are slices of the file. Nodes share it.
type wireNode struct {
	id, start, duration uint64
	typ                 NodeType
	name                []byte
	ctrl, data          []uint64
	inputs, outputs     []byte // nil: none
	attrs               [][]byte
	block               []byte // all attributes with their tags, if they are adjacent; else nil
	unknown             []byte
}

// parse parses a node.
func (n *wireNode) parse(b []byte) *malformed {
	*n = wireNode{ctrl: n.ctrl[:0], data: n.data[:0], attrs: n.attrs[:0]}
	var first []byte // the message from its first attribute on
	last := 0        // capacity after the last attribute
	together := true // the attributes are adjacent
	for len(b) > 0 {
		field := b
		tag, k := varint(b)
		if k < 0 {
			return bad(b, "the tag of a field of a node", protowire.ParseError(k).Error())
		}
		b = b[k:]
		switch tag {
		case nodeID:
			n.id, k = varint(b)
		case nodeName:
			n.name, k = bytesOf(b)
		case nodeType:
			var typ uint64
			typ, k = varint(b)
			if typ = uint64(uint32(typ)); typ >= uint64(numNodeTypes) && k > 0 {
				return bad(b, "a type of node, 0 to 7", strconv.FormatInt(int64(int32(typ)), 10))
			}
			n.typ = NodeType(typ)
		case nodeCtrlSingle, nodeDataSingle:
			var id uint64
			id, k = varint(b)
			if tag == nodeCtrlSingle {
				n.ctrl = append(n.ctrl, id)
			} else {
				n.data = append(n.data, id)
			}
		case nodeCtrl, nodeData:
			var packed []byte
			packed, k = bytesOf(b)
			list := &n.ctrl
			if tag == nodeData {
				list = &n.data
			}
			for len(packed) > 0 {
				id, size := varint(packed)
				if size < 0 {
					return bad(packed, errVarint, "the end of a list, or more")
				}
				*list = append(*list, id)
				packed = packed[size:]
			}
		case nodeStart:
			n.start, k = varint(b)
		case nodeDuration:
			n.duration, k = varint(b)
		case nodeInputs:
			k = mergeBytes(&n.inputs, b)
		case nodeOutputs:
			k = mergeBytes(&n.outputs, b)
		case nodeAttr:
			var attr []byte
			attr, k = bytesOf(b)
			n.attrs = append(n.attrs, attr)
			if first == nil {
				first = field
			} else if cap(field) != last {
				together = false
			}
			last = cap(b) - max(0, k)
		default:
			size, err := skip(tag, b)
			if err != nil {
				return err
			}
			n.unknown = append(n.unknown, field[:k+size]...)
			k = size
		}
		if k < 0 {
			return bad(b, "the value of a field of a node", protowire.ParseError(k).Error())
		}
		b = b[k:]
	}
	if first != nil && together {
		n.block = first[:cap(first)-last]
	}
	if !utf8.Valid(n.name) {
		return bad(n.name, errText, "other bytes in the name of a node")
	}
	return nil
}

// mergeBytes appends a message field to its earlier parts, and returns its length. Concatenation merges messages.
func mergeBytes(message *[]byte, b []byte) int {
	part, k := protowire.ConsumeBytes(b)
	switch {
	case k < 0:
	case *message == nil:
		*message = part[:len(part):cap(part)]
	default:
		*message = append((*message)[:len(*message):len(*message)], part...)
	}
	return k
}

// wireAttr is an attribute in wire format.
type wireAttr struct {
	name, doc []byte
	kind      Kind
	num       uint64 // as in Attr
	value     []byte // of a string, of bytes, or the message of a list
	unknown   []byte
}

// parse parses an attribute.
func (a *wireAttr) parse(b []byte) *malformed {
	*a = wireAttr{}
	for len(b) > 0 {
		field := b
		tag, k := varint(b)
		if k < 0 {
			return bad(b, "the tag of a field of an attribute", protowire.ParseError(k).Error())
		}
		b = b[k:]
		switch tag {
		case attrName:
			a.name, k = bytesOf(b)
		case attrDoc:
			a.doc, k = bytesOf(b)
		default:
			kind := Kind(min(tag>>3, 255))
			if kind < firstKind || kind > lastKind || protowire.Type(tag&7) != kind.wireType() {
				size, err := skip(tag, b)
				if err != nil {
					return err
				}
				a.unknown = append(a.unknown, field[:k+size]...)
				b = b[size:]
				continue
			}
			if k = a.parseValue(kind, b); k >= 0 && kind == StringVal && !utf8.Valid(a.value) {
				return bad(a.value, errText, "other bytes in an attribute's value")
			}
		}
		if k < 0 {
			return bad(b, "the value of a field of an attribute", protowire.ParseError(k).Error())
		}
		b = b[k:]
	}
	if !utf8.Valid(a.name) {
		return bad(a.name, errText, "other bytes in the name of an attribute")
	}
	if !utf8.Valid(a.doc) {
		return bad(a.doc, errText, "other bytes in the description of an attribute")
	}
	return nil
}

// parseValue parses the value of an attribute and returns its length. The last value of an attribute counts, but
// lists of one kind are joined.
func (a *wireAttr) parseValue(kind Kind, b []byte) int {
	var k int
	switch kind.wireType() {
	case protowire.VarintType:
		a.num, k = varint(b)
		a.num = kind.normal(a.num)
	case protowire.Fixed32Type:
		var v uint32
		v, k = protowire.ConsumeFixed32(b)
		a.num = kind.normal(uint64(v))
	case protowire.Fixed64Type:
		a.num, k = protowire.ConsumeFixed64(b)
	default:
		if _, list := kind.scalar(); !list || a.kind != kind {
			a.value = nil
		}
		k = mergeBytes(&a.value, b)
	}
	a.kind = kind
	return k
}

// wireType returns the wire type of the kind.
func (k Kind) wireType() protowire.Type {
	switch k {
	case FloatVal, Fixed32Val, Sfixed32Val:
		return protowire.Fixed32Type
	case DoubleVal, Fixed64Val, Sfixed64Val:
		return protowire.Fixed64Type
	case Int32Val, Int64Val, Uint32Val, Uint64Val, Sint32Val, Sint64Val, BoolVal:
		return protowire.VarintType
	}
	return protowire.BytesType
}

// normal converts a number of the kind from wire format to Attr's representation.
func (k Kind) normal(v uint64) uint64 {
	switch k {
	case Int32Val, Sfixed32Val:
		return uint64(int64(int32(v)))
	case Uint32Val:
		return uint64(uint32(v))
	case Sint32Val:
		return uint64(protowire.DecodeZigZag(uint64(uint32(v))))
	case Sint64Val:
		return uint64(protowire.DecodeZigZag(v))
	case BoolVal:
		return min(v, 1)
	}
	return v
}

// appendNumber appends a number of the kind in wire format, without a tag.
func (k Kind) appendNumber(b []byte, v uint64) []byte {
	switch k.wireType() {
	case protowire.Fixed32Type:
		return protowire.AppendFixed32(b, uint32(v))
	case protowire.Fixed64Type:
		return protowire.AppendFixed64(b, v)
	}
	if k == Sint32Val || k == Sint64Val {
		v = protowire.EncodeZigZag(int64(v))
	}
	return protowire.AppendVarint(b, v)
}

// attr returns the attribute as a message of its own.
func (a *wireAttr) attr() (Attr, *malformed) {
	m := Attr{Name: string(a.name), Doc: string(a.doc), Kind: a.kind, Unknown: a.unknown, num: a.num}
	scalar, list := a.kind.scalar()
	switch {
	case a.kind == StringVal || a.kind == BytesVal:
		m.num, m.text = 0, string(a.value)
	case list:
		m.num = 0
		return m, m.parseList(scalar, a.value)
	}
	return m, nil
}

// parseList parses the message of a list of scalars.
func (a *Attr) parseList(scalar Kind, b []byte) *malformed {
	const packed = listValues<<3 | uint64(protowire.BytesType)
	single := listValues<<3 | uint64(scalar.wireType())
	return fields(b, func(tag, number uint64, value, whole []byte) *malformed {
		switch {
		case tag == single && single != packed:
			a.nums = append(a.nums, scalar.normal(number))
		case tag == single:
			if scalar == StringVal && !utf8.Valid(value) {
				return bad(value, errText, "other bytes in a list of text")
			}
			a.texts = append(a.texts, string(value))
		case tag == packed:
			for len(value) > 0 {
				k := protowire.ConsumeFieldValue(listValues, scalar.wireType(), value)
				if k < 0 {
					return bad(value, errVarint, "the end of a list, or more")
				}
				v, _ := varint(value)
				switch scalar.wireType() {
				case protowire.Fixed32Type:
					v32, _ := protowire.ConsumeFixed32(value)
					v = uint64(v32)
				case protowire.Fixed64Type:
					v, _ = protowire.ConsumeFixed64(value)
				}
				a.nums = append(a.nums, scalar.normal(v))
				value = value[k:]
			}
		default:
			a.listUnknown = append(a.listUnknown, whole...)
		}
		return nil
	})
}

// appendMessage appends a message that is a field of another; body appends its content.
func appendMessage(b []byte, tag uint64, body func([]byte) []byte) []byte {
	b = protowire.AppendVarint(b, tag)
	start := len(b)
	b = body(append(b, 0))
	return fixLength(b, start)
}

// fixLength sets the byte at start to the length of the data after it, and inserts bytes if it needs more.
func fixLength(b []byte, start int) []byte {
	n := len(b) - start - 1
	extra := protowire.SizeVarint(uint64(n)) - 1
	for range extra {
		b = append(b, 0)
	}
	if extra > 0 {
		copy(b[start+1+extra:], b[start+1:start+1+n])
	}
	protowire.AppendVarint(b[:start], uint64(n))
	return b
}

// appendText appends a text field unless it is empty.
func appendText(b []byte, tag uint64, s string) []byte {
	if s == "" {
		return b
	}
	return protowire.AppendString(protowire.AppendVarint(b, tag), s)
}

// append appends the fields of an attribute.
func (a *Attr) append(b []byte) []byte {
	b = appendText(b, attrName, a.Name)
	b = appendText(b, attrDoc, a.Doc)
	if a.Kind != NoValue {
		scalar, list := a.Kind.scalar()
		b = protowire.AppendTag(b, protowire.Number(a.Kind), a.Kind.wireType())
		switch {
		case list:
			start := len(b)
			b = fixLength(a.appendList(append(b, 0), scalar), start)
		case scalar == StringVal || scalar == BytesVal:
			b = protowire.AppendString(b, a.text)
		default:
			b = scalar.appendNumber(b, a.num)
		}
	}
	return append(b, a.Unknown...)
}

func (a *Attr) appendList(b []byte, scalar Kind) []byte {
	for _, s := range a.texts {
		b = protowire.AppendTag(b, listValues, protowire.BytesType)
		b = protowire.AppendString(b, s)
	}
	if len(a.nums) > 0 {
		b = protowire.AppendTag(b, listValues, protowire.BytesType)
		start := len(b)
		b = append(b, 0)
		for _, v := range a.nums {
			b = scalar.appendNumber(b, v)
		}
		b = fixLength(b, start)
	}
	return append(b, a.listUnknown...)
}

// appendAttrs appends attributes as fields with the tag.
func appendAttrs(b []byte, tag uint64, attrs []Attr) []byte {
	for i := range attrs {
		b = appendMessage(b, tag, attrs[i].append)
	}
	return b
}

// append appends the fields of file metadata.
func (m *Metadata) append(b []byte) []byte {
	b = appendText(b, metaVersion, m.Version)
	b = appendAttrs(b, metaAttr, m.Attr)
	return append(b, m.Unknown...)
}

// parse parses file metadata.
func (m *Metadata) parse(b []byte) *malformed {
	*m = Metadata{}
	return fields(b, func(tag, _ uint64, value, whole []byte) (err *malformed) {
		switch tag {
		case metaVersion:
			m.Version, err = text(value)
		case metaAttr:
			err = parseAttr(&m.Attr, value)
		default:
			m.Unknown = append(m.Unknown, whole...)
		}
		return err
	})
}

func parseAttr(to *[]Attr, b []byte) *malformed {
	var w wireAttr
	if err := w.parse(b); err != nil {
		return err
	}
	a, err := w.attr()
	*to = append(*to, a)
	return err
}

// wireIO is the description of a node's inputs or outputs in wire format: values, shapes and types.
type wireIO struct {
	texts   [3][]byte
	unknown []byte
}

func (w *wireIO) parse(b []byte) *malformed {
	*w = wireIO{}
	return fields(b, func(tag, _ uint64, value, whole []byte) *malformed {
		switch tag {
		case ioValues, ioShapes, ioTypes:
			if !utf8.Valid(value) {
				return bad(value, errText, "other bytes")
			}
			w.texts[tag>>3-1] = value
		default:
			w.unknown = append(w.unknown, whole...)
		}
		return nil
	})
}

func (io *IOInfo) parse(b []byte) *malformed {
	var w wireIO
	m := w.parse(b)
	*io = IOInfo{string(w.texts[0]), string(w.texts[1]), string(w.texts[2]), w.unknown}
	return m
}

func (io *IOInfo) append(b []byte) []byte {
	b = appendText(b, ioValues, io.Values)
	b = appendText(b, ioShapes, io.Shapes)
	b = appendText(b, ioTypes, io.Types)
	return append(b, io.Unknown...)
}

// node returns the node as a message of its own.
func (n *wireNode) node() (Node, *malformed) {
	m := Node{
		ID: n.id, Name: string(n.name), Type: n.typ, CtrlDeps: slices.Clone(n.ctrl), DataDeps: slices.Clone(n.data),
		StartTimeMicros: n.start, DurationMicros: n.duration, Unknown: n.unknown,
	}
	for _, part := range [...]struct {
		io   **IOInfo
		body []byte
	}{{&m.Inputs, n.inputs}, {&m.Outputs, n.outputs}} {
		if part.body == nil {
			continue
		}
		*part.io = new(IOInfo)
		if err := (*part.io).parse(part.body); err != nil {
			return m, err
		}
	}
	for _, body := range n.attrs {
		if err := parseAttr(&m.Attr, body); err != nil {
			return m, err
		}
	}
	return m, nil
}

// append appends the fields of a node.
func (n *Node) append(b []byte) []byte {
	b = appendNonzero(b, nodeID, n.ID)
	b = appendText(b, nodeName, n.Name)
	b = appendNonzero(b, nodeType, uint64(n.Type))
	b = appendIDs(b, nodeCtrl, n.CtrlDeps)
	b = appendIDs(b, nodeData, n.DataDeps)
	b = appendNonzero(b, nodeStart, n.StartTimeMicros)
	b = appendNonzero(b, nodeDuration, n.DurationMicros)
	if n.Inputs != nil {
		b = appendMessage(b, nodeInputs, n.Inputs.append)
	}
	if n.Outputs != nil {
		b = appendMessage(b, nodeOutputs, n.Outputs.append)
	}
	b = append(b, n.wired...)
	b = appendAttrs(b, nodeAttr, n.Attr)
	return append(b, n.Unknown...)
}

// unwire decodes the wired attributes of the node, which must be valid.
func (n *Node) unwire() {
	if n.wired == nil {
		return
	}
	var w wireNode
	w.parse(n.wired)
	usual, _ := w.node()
	n.Attr, n.wired = append(usual.Attr, n.Attr...), nil
}

// appendNonzero appends a number unless it is 0.
func appendNonzero(b []byte, tag, v uint64) []byte {
	if v == 0 {
		return b
	}
	return protowire.AppendVarint(protowire.AppendVarint(b, tag), v)
}

func appendIDs(b []byte, tag uint64, ids []uint64) []byte {
	if len(ids) == 0 {
		return b
	}
	b = protowire.AppendVarint(b, tag)
	start := len(b)
	b = append(b, 0)
	for _, id := range ids {
		b = protowire.AppendVarint(b, id)
	}
	return fixLength(b, start)
}

// appendFrame appends a message to a file: its length, and the bytes that body appends.
func appendFrame(b []byte, body func([]byte) []byte) []byte {
	start := len(b)
	return fixLength(body(append(b, 0)), start)
}
