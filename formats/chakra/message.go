// This file defines the messages of a Chakra trace.

package chakra

import (
	"math"
	"slices"
)

// File is the content of the file of one rank.
type File struct {
	Metadata Metadata
	Nodes    []Node
}

// Metadata is the first message of a file (GlobalMetadata).
type Metadata struct {
	Version string
	Attr    []Attr
	Unknown []byte // fields outside the schema, in wire format
}

// Node is a node of the graph of a rank.
type Node struct {
	ID                              uint64 // unique in the file
	Name                            string
	Type                            NodeType
	CtrlDeps, DataDeps              []uint64 // IDs of the nodes that must finish first
	StartTimeMicros, DurationMicros uint64   // measured
	Inputs, Outputs                 *IOInfo
	Attr                            []Attr
	Unknown                         []byte // fields outside the schema, in wire format

	wired []byte // further attributes, before the others, in wire format
}

// IOInfo describes the inputs or the outputs of a node, as text of Python lists.
type IOInfo struct {
	Values, Shapes, Types string
	Unknown               []byte
}

// NodeType is the type of a node. The numbers are those of the schema.
type NodeType uint8

// The types of nodes.
const (
	InvalidNode NodeType = iota
	MetadataNode
	MemLoadNode
	MemStoreNode
	CompNode
	CommSendNode
	CommRecvNode
	CommCollNode

	numNodeTypes
)

var nodeTypeNames = [numNodeTypes]string{
	"INVALID_NODE", "METADATA_NODE", "MEM_LOAD_NODE", "MEM_STORE_NODE", "COMP_NODE", "COMM_SEND_NODE",
	"COMM_RECV_NODE", "COMM_COLL_NODE",
}

// typeNamed is the inverse of [NodeType.String].
func typeNamed(name string) (NodeType, bool) {
	i := slices.Index(nodeTypeNames[:], name)
	return NodeType(max(i, 0)), i >= 0
}

// String returns the name of the type in the schema, such as "COMP_NODE".
func (t NodeType) String() string {
	return nodeTypeNames[t]
}

// The kinds of collective, the values of the attribute comm_type (CollectiveCommType).
const (
	AllReduce = iota
	Reduce
	AllGather
	Gather
	Scatter
	Broadcast
	AllToAll
	ReduceScatter
	ReduceScatterBlock
	Barrier

	numCollectives
)

// Kind is the kind of an attribute's value: the field number of the member of its oneof that is set.
type Kind uint8

// The kinds of value. Each scalar has an odd number, and the list of such scalars the next number.
const (
	NoValue     Kind = 0
	DoubleVal   Kind = 3
	FloatVal    Kind = 5
	Int32Val    Kind = 7
	Int64Val    Kind = 9
	Uint32Val   Kind = 11
	Uint64Val   Kind = 13
	Sint32Val   Kind = 15
	Sint64Val   Kind = 17
	Fixed32Val  Kind = 19
	Fixed64Val  Kind = 21
	Sfixed32Val Kind = 23
	Sfixed64Val Kind = 25
	BoolVal     Kind = 27
	StringVal   Kind = 29
	BytesVal    Kind = 31
	firstKind        = DoubleVal
	lastKind         = BytesVal + 1
	listOf      Kind = 1 // list of scalar k: k + listOf
)

// scalar returns the kind of the elements, and whether k is the kind of a list.
func (k Kind) scalar() (Kind, bool) {
	if k != NoValue && k%2 == 0 {
		return k - listOf, true
	}
	return k, false
}

// Attr is an attribute of a node or of a file: a name and a value of one of many kinds. The functions named after
// the kinds, such as [Int64], create one.
type Attr struct {
	Name, Doc string
	Kind      Kind
	Unknown   []byte // fields outside the schema, in wire format

	// The value. Numbers have 64 bits: integers as two's complement or zero-extended, floats as their bits, which for
	// a float are the lower 32.
	num         uint64
	text        string
	nums        []uint64
	texts       []string
	listUnknown []byte // as Unknown, for the message of a list
}

// Bool returns an attribute of kind bool_val.
func Bool(name string, v bool) Attr {
	a := Attr{Name: name, Kind: BoolVal}
	if v {
		a.num = 1
	}
	return a
}

// Int32 returns an attribute of kind int32_val.
func Int32(name string, v int32) Attr {
	return Attr{Name: name, Kind: Int32Val, num: uint64(int64(v))}
}

// Int64 returns an attribute of kind int64_val.
func Int64(name string, v int64) Attr {
	return Attr{Name: name, Kind: Int64Val, num: uint64(v)}
}

// Uint64 returns an attribute of kind uint64_val.
func Uint64(name string, v uint64) Attr {
	return Attr{Name: name, Kind: Uint64Val, num: v}
}

// Double returns an attribute of kind double_val.
func Double(name string, v float64) Attr {
	return Attr{Name: name, Kind: DoubleVal, num: math.Float64bits(v)}
}

// String returns an attribute of kind string_val.
func String(name, v string) Attr {
	return Attr{Name: name, Kind: StringVal, text: v}
}

// Strings returns an attribute of kind string_list.
func Strings(name string, v ...string) Attr {
	return Attr{Name: name, Kind: StringVal + listOf, texts: slices.Clone(v)}
}

// Bools returns an attribute of kind bool_list.
func Bools(name string, v ...bool) Attr {
	a := Attr{Name: name, Kind: BoolVal + listOf}
	for _, b := range v {
		n := uint64(0)
		if b {
			n = 1
		}
		a.nums = append(a.nums, n)
	}
	return a
}
