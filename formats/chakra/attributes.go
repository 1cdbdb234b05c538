// This file maps attributes of nodes to columns of ops, and defines the attributes of ops that come from no file.

package chakra

import (
	"math"
	"strconv"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/tracedag/tracedag/dag"
	"github.com/tracedag/tracedag/dag/attr"
)

// column is a field of an op that an attribute represents.
type column uint8

const (
	noColumn column = iota
	hostColumn
	flopsColumn
	bytesColumn
	peerColumn
	tagColumn
	collectiveColumn
	groupColumn
	dimsColumn
	priorityColumn
	rootColumn
)

// Names of attributes. The name for roots is tracedag's own; other programs ignore it.
const (
	hostName       = "is_cpu_op"
	flopsName      = "num_ops"
	tensorName     = "tensor_size"
	sizeName       = "comm_size"
	sourceName     = "comm_src"
	destName       = "comm_dst"
	tagName        = "comm_tag"
	collectiveName = "comm_type"
	groupName      = "pg_name"
	dimsName       = "involved_dim"
	priorityName   = "comm_priority"
	rootName       = "root"
	gatherName     = "gather"     // tracedag's own, see attr.MemAccess
	locationName   = "tensor_loc" // 1: local memory; 2: remote memory
	oldGroupName   = "comm_group" // name of pg_name until 2025
)

// columnOf returns the column of the first attribute with a name in a node of the type.
func columnOf(t NodeType, name []byte) column {
	if string(name) == hostName {
		return hostColumn
	}
	switch t {
	case CompNode:
		switch string(name) {
		case flopsName:
			return flopsColumn
		case tensorName:
			return bytesColumn
		}
	case MemLoadNode, MemStoreNode:
		if string(name) == tensorName {
			return bytesColumn
		}
	case CommSendNode, CommRecvNode:
		switch string(name) {
		case sizeName:
			return bytesColumn
		case tagName:
			return tagColumn
		case destName:
			if t == CommSendNode {
				return peerColumn
			}
		case sourceName:
			if t == CommRecvNode {
				return peerColumn
			}
		}
	case CommCollNode:
		switch string(name) {
		case collectiveName:
			return collectiveColumn
		case sizeName:
			return bytesColumn
		case groupName:
			return groupColumn
		case dimsName:
			return dimsColumn
		case priorityName:
			return priorityColumn
		case rootName:
			return rootColumn
		}
	}
	return noColumn
}

// fit is how well a column represents the value of an attribute.
type fit uint8

const (
	fits    fit = iota
	clamped     // the column has the nearest value in range
	misfit      // the value has another kind
)

// number returns the value of a numeric column for the value of an attribute.
func (c column) number(kind Kind, num uint64) (int64, fit) {
	v := int64(num)
	switch kind {
	case BoolVal, Int32Val, Int64Val, Uint32Val, Sint32Val, Sint64Val, Fixed32Val, Sfixed32Val, Sfixed64Val:
	case Uint64Val, Fixed64Val:
		if v < 0 && c != hostColumn {
			v, how := c.number(Int64Val, math.MaxInt64)
			return v, max(how, clamped)
		}
	default:
		return 0, misfit
	}
	switch c {
	case hostColumn:
		if v != 0 {
			return 1, fits
		}
	case flopsColumn, bytesColumn:
		if v < 0 {
			return 0, clamped
		}
	case peerColumn, rootColumn:
		if v < 0 || v > math.MaxInt32 {
			return math.MaxInt32, clamped // neither a rank nor a wildcard
		}
	case tagColumn:
		// Tags are 32 bits in every simulator. Negative tags are mapped above the others, because -1 matches any tag
		// here.
		return int64(uint32(v)), fitIf(v >= math.MinInt32 && v <= math.MaxUint32)
	case collectiveColumn:
		if v < 0 || v >= numCollectives {
			return 0, misfit
		}
	case priorityColumn:
		if p := min(max(v, math.MinInt32), math.MaxInt32); p != v {
			return p, clamped
		}
	}
	return v, fits
}

func fitIf(ok bool) fit {
	if ok {
		return fits
	}
	return clamped
}

// collectives are the kinds of collective by their number in comm_type.
var collectives = [numCollectives]dag.Subkind{
	AllReduce: dag.Allreduce, Reduce: dag.Reduce, AllGather: dag.Allgather, Gather: dag.Gather, Scatter: dag.Scatter,
	Broadcast: dag.Bcast, AllToAll: dag.Alltoall, ReduceScatter: dag.ReduceScatter,
	ReduceScatterBlock: dag.ReduceScatter, Barrier: dag.Barrier,
}

// CollectiveNumber returns the comm_type of a kind of collective, or -1.
func CollectiveNumber(s dag.Subkind) int64 {
	for number, subkind := range collectives {
		if subkind == s {
			return int64(number)
		}
	}
	return -1
}

// noDims are the dimensions of a collective that involves none: a dimension that no network has.
const noDims = 1 << 30

// maxDims is the maximum number of dimension flags in a column.
const maxDims = 30

// dims returns the dimensions of flags.
func dims(flags []uint64) (int64, fit) {
	mask, how := int64(0), fits
	for d, flag := range flags {
		switch {
		case flag == 0:
		case d < maxDims:
			mask |= 1 << d
		default:
			how = clamped
		}
	}
	if mask == 0 && len(flags) > 0 {
		mask = noDims
	}
	return mask, how
}

// flags returns the dimension flags, up to the last dimension involved.
func flags(mask int32) []uint64 {
	if mask == noDims {
		return []uint64{0}
	}
	var flags []uint64
	for ; mask > 0; mask >>= 1 {
		flags = append(flags, uint64(mask&1))
	}
	return flags
}

// valueOf returns the value of a column of an op.
func (c column) valueOf(op *dag.Op) int64 {
	switch c {
	case hostColumn:
		return int64(op.Host)
	case flopsColumn:
		return op.Flops
	case bytesColumn:
		return op.Bytes
	case peerColumn, rootColumn:
		return int64(op.Peer)
	case tagColumn:
		return op.Tag
	case collectiveColumn:
		return CollectiveNumber(op.Subkind)
	case dimsColumn:
		return int64(op.Dims)
	case priorityColumn:
		return int64(op.Priority)
	}
	return 0
}

// set sets a numeric column of an op.
func (c column) set(op *dag.Op, v int64) {
	switch c {
	case hostColumn:
		op.Host = int32(v)
	case flopsColumn:
		op.Flops = v
	case bytesColumn:
		op.Bytes = v
	case peerColumn, rootColumn:
		op.Peer = int32(v)
	case tagColumn:
		op.Tag = v
	case collectiveColumn:
		op.Subkind = collectives[v]
	case dimsColumn:
		op.Dims = int32(v)
	case priorityColumn:
		op.Priority = int32(v)
	}
}

// usualKind returns the usual kind of a column's attribute.
func (c column) usualKind(op *dag.Op) Kind {
	switch c {
	case hostColumn:
		return BoolVal
	case bytesColumn:
		if op.Kind == dag.Calc || op.Kind == dag.Mem {
			return Uint64Val
		}
	case peerColumn, tagColumn, priorityColumn, rootColumn:
		return Int32Val
	case groupColumn:
		return StringVal
	case dimsColumn:
		return BoolVal + listOf
	}
	return Int64Val
}

// attr returns the attribute for a column of an op, of the given kind if possible. group is the name of the op's
// communicator.
func (c column) attr(name string, kind Kind, op *dag.Op, group string) Attr {
	switch c {
	case groupColumn:
		return String(name, group)
	case dimsColumn:
		return Attr{Name: name, Kind: BoolVal + listOf, nums: flags(op.Dims)}
	}
	if _, how := c.number(kind, 0); how == misfit {
		kind = c.usualKind(op)
	}
	v := uint64(c.valueOf(op))
	switch kind {
	case BoolVal:
		v = min(v, 1)
	case Int32Val, Sint32Val, Sfixed32Val:
		v = uint64(int64(int32(v)))
	case Uint32Val, Fixed32Val:
		v = uint64(uint32(v))
	}
	return Attr{Name: name, Kind: kind, num: v}
}

// typeOf returns the node type of an op that comes from no file.
func typeOf(op *dag.Op) NodeType {
	switch op.Kind {
	case dag.Send:
		return CommSendNode
	case dag.Recv:
		return CommRecvNode
	case dag.Coll:
		return CommCollNode
	case dag.Mem:
		if op.Subkind == dag.Store {
			return MemStoreNode
		}
		return MemLoadNode
	}
	return CompNode
}

// localMemory is the value of tensor_loc for the memory of the accelerator.
const localMemory = 1

// memAccess returns the description of an access to memory in the attributes of the current node.
func (r *rankReader) memAccess() (a attr.MemAccess) {
	for i := range r.attrs {
		switch v, how := bytesColumn.number(r.attrs[i].kind, r.attrs[i].num); {
		case how != fits:
		case string(r.attrs[i].name) == gatherName:
			a.Gather = v
		case string(r.attrs[i].name) == locationName:
			a.Local = v == localMemory
		}
	}
	return a
}

// sized reports whether a computation gets num_ops and tensor_size. One with only a duration does not, so that a
// simulator with a roofline model refuses it instead of treating it as empty.
func sized(op *dag.Op) bool {
	return op.Flops != 0 || op.Bytes != 0 || op.Duration == 0
}

// appendUsual appends, as fields of a node on the wire, the default attributes of an op: all that simulators read,
// of the kinds that they accept. group is the name of its communicator; access describes an access to memory.
func appendUsual(b []byte, op *dag.Op, group string, access attr.MemAccess) []byte {
	communication := op.Kind == dag.Send || op.Kind == dag.Recv || op.Kind == dag.Coll
	host := uint64(0)
	if !communication {
		host = min(uint64(uint32(op.Host)), 1)
	}
	b = appendNumber(b, hostName, BoolVal, host)
	switch op.Kind {
	case dag.Calc:
		if sized(op) || op.Subkind == dag.Marker {
			b = appendNumber(b, flopsName, Int64Val, uint64(op.Flops))
			b = appendNumber(b, tensorName, Uint64Val, uint64(op.Bytes))
		}
	case dag.Mem:
		b = appendNumber(b, tensorName, Uint64Val, uint64(op.Bytes))
		if access.Gather != 0 {
			b = appendNumber(b, gatherName, Int64Val, uint64(access.Gather))
		}
		if access.Local {
			b = appendNumber(b, locationName, Uint64Val, localMemory)
		}
	case dag.Send, dag.Recv:
		name := destName
		if op.Kind == dag.Recv {
			name = sourceName
		}
		b = appendNumber(b, name, Int32Val, uint64(int64(op.Peer)))
		b = appendNumber(b, sizeName, Int64Val, uint64(op.Bytes))
		b = appendNumber(b, tagName, Int32Val, uint64(int64(int32(op.Tag))))
	case dag.Coll:
		b = appendNumber(b, collectiveName, Int64Val, uint64(CollectiveNumber(op.Subkind)))
		b = appendNumber(b, sizeName, Int64Val, uint64(op.Bytes))
		if op.Comm != 0 {
			b = appendAttr(b, String(groupName, group))
		}
		if op.Dims != 0 {
			b = appendAttr(b, dimsColumn.attr(dimsName, NoValue, op, ""))
		}
		if op.Priority != 0 {
			b = appendNumber(b, priorityName, Int32Val, uint64(int64(op.Priority)))
		}
		if op.Subkind.Rooted() && op.Peer != dag.UnknownRoot {
			b = appendNumber(b, rootName, Int32Val, uint64(int64(op.Peer)))
		}
	}
	return b
}

// appendNumber appends, as a field of a node on the wire, an attribute with a varint value. Its name is short.
func appendNumber(b []byte, name string, kind Kind, v uint64) []byte {
	b = append(b, byte(nodeAttr))
	start := len(b)
	b = append(b, 0, byte(attrName), byte(len(name)))
	b = append(b, name...)
	tag := uint64(kind)<<3 | uint64(protowire.VarintType)
	if tag >= 0x80 {
		b = append(b, byte(tag)|0x80)
		tag >>= 7
	}
	b = append(b, byte(tag))
	if v < 0x80 {
		b = append(b, byte(v))
	} else {
		b = protowire.AppendVarint(b, v)
	}
	b[start] = byte(len(b) - start - 1)
	return b
}

func appendAttr(b []byte, a Attr) []byte {
	return appendMessage(b, nodeAttr, a.append)
}

// isGroupNumber reports whether a name is valid for a group in a file of groups: a number of 1 or more.
func isGroupNumber(name string) bool {
	n, err := strconv.ParseUint(name, 10, 31)
	return err == nil && n > 0 && name[0] != '0' && name[0] != '+'
}

// knownNames are the names of attributes with an effect.
var knownNames = [...]string{hostName, flopsName, tensorName, sizeName, tagName, destName, sourceName, collectiveName,
	groupName, dimsName, rootName, priorityName}

// resembles reports whether a name differs from a known one in exactly one byte.
func resembles(name []byte) bool {
	for _, known := range knownNames {
		if len(known) != len(name) {
			continue
		}
		differing := 0
		for i := range name {
			if name[i] != known[i] {
				differing++
			}
		}
		if differing == 1 {
			return true
		}
	}
	return false
}
