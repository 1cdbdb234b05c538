// Package stg reads the JSON of the Symbolic Tensor Graph generator (STG), and converts it as STG writes Chakra
// traces.
//
// docs/reference/formats/stg.md describes the files.
package stg

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strconv"

	"github.com/tracedag/tracedag/dag"
	"github.com/tracedag/tracedag/formats/chakra"
	"github.com/tracedag/tracedag/formats/chakra/nodejson"
	"github.com/tracedag/tracedag/formats/format"
)

// Format is STG's JSON, one file per rank.
var Format = format.Format{
	Name:    "stg",
	Modes:   format.Modes{Compat: true, Lenient: true},
	Title:   "STG (Symbolic Tensor Graph) graphs as JSON, one file per rank",
	Detect:  detect,
	Files:   nodejson.Files,
	Read:    read,
	Options: chakra.Table,
}

var (
	beginning = regexp.MustCompile(`^\s*\{\s*"nodes"\s*:\s*\[\s*\{`)
	nodeType  = regexp.MustCompile(`"node_type"\s*:\s*"`)
)

func detect(head []byte) bool {
	return beginning.Match(head) && nodeType.Match(head)
}

func read(inputs []*format.Input, o format.ReadOptions) (*dag.Trace, error) {
	return nodejson.ReadRanks(inputs, o, func(_ int, in *format.Input) (chakra.File, error) {
		g := &graph{file: in.Name}
		g.result.Metadata.Attr = []chakra.Attr{chakra.String("schema", "symbolic_tensor_network")}
		err := nodejson.Read(o.Context, in, "nodes", g)
		return g.result, err
	})
}

// graph is a file.
type graph struct {
	file   string
	result chakra.File
}

// Member ignores a member of the file; none has a meaning.
func (g *graph) Member(int64, string, json.RawMessage) error {
	return nil
}

// node is a node in the file. A missing member is nil.
type node struct {
	ID         *uint64  `json:"id"`
	Name       string   `json:"name"`
	Type       string   `json:"node_type"`
	DataDeps   []uint64 `json:"data_deps"`
	CtrlDeps   []uint64 `json:"ctrl_deps"`
	Inputs     []tensor `json:"inputs"`
	Outputs    []tensor `json:"outputs"`
	NumOps     *int64   `json:"num_ops"`
	TensorSize *uint64  `json:"tensor_size"`
	OpType     string   `json:"op_type"`
	CommSize   *int64   `json:"comm_size"`
	CommType   string   `json:"comm_type"`
	CommGroup  *int64   `json:"comm_group"`
	CommTag    *int32   `json:"comm_tag"`
	CommSrc    *int32   `json:"comm_src"`
	CommDst    *int32   `json:"comm_dst"`
}

type tensor struct {
	Name string      `json:"name"`
	Size json.Number `json:"size"`
}

var types = map[string]chakra.NodeType{
	"comp_node":      chakra.CompNode,
	"coll_comm_node": chakra.CommCollNode,
	"comm_send_node": chakra.CommSendNode,
	"comm_recv_node": chakra.CommRecvNode,
	"mem_load_node":  chakra.MemLoadNode,
	"mem_store_node": chakra.MemStoreNode,
}

var collectives = map[string]int64{
	"ALL_REDUCE":     chakra.AllReduce,
	"ALL_GATHER":     chakra.AllGather,
	"ALL_TO_ALL":     chakra.AllToAll,
	"REDUCE_SCATTER": chakra.ReduceScatter,
}

// Node receives a node.
func (g *graph) Node(line int64, value json.RawMessage) error {
	var n node
	if err := json.Unmarshal(value, &n); err != nil {
		return nodejson.Fail(g.file, line, "a node", err.Error())
	}
	kind, known := types[n.Type]
	switch {
	case n.ID == nil:
		return nodejson.Fail(g.file, line, "a node with an id", nodejson.Show(value))
	case !known:
		return nodejson.Fail(g.file, line, "a node_type such as comp_node", fmt.Sprintf("%.60q", n.Type))
	}
	attrs, missing := n.attrs(kind)
	if missing != "" {
		return nodejson.Fail(g.file, line, "a "+n.Type+" to have "+missing, nodejson.Show(value))
	}
	g.result.Nodes = append(g.result.Nodes, chakra.Node{
		ID: *n.ID, Name: n.Name, Type: kind, CtrlDeps: unique(n.CtrlDeps), DataDeps: unique(n.DataDeps), Attr: attrs,
	})
	return nil
}

// unique returns the ids without duplicates.
func unique(ids []uint64) []uint64 {
	if len(ids) < 2 {
		return ids
	}
	seen := make(map[uint64]bool, len(ids))
	return slices.DeleteFunc(ids, func(id uint64) bool {
		twice := seen[id]
		seen[id] = true
		return twice
	})
}

// attrs returns the attributes that STG writes for a node of a type, or the missing member.
func (n *node) attrs(kind chakra.NodeType) (attrs []chakra.Attr, missing string) {
	if n.Inputs != nil {
		attrs = []chakra.Attr{list("inputs", n.Inputs), list("outputs", n.Outputs)}
	}
	switch kind {
	case chakra.CompNode:
		if n.NumOps == nil || n.TensorSize == nil {
			return nil, "num_ops and tensor_size"
		}
		return append(attrs, chakra.Int64("num_ops", *n.NumOps), chakra.Uint64("tensor_size", *n.TensorSize),
			chakra.String("op_type", n.OpType)), ""
	case chakra.MemLoadNode, chakra.MemStoreNode:
		if n.TensorSize == nil {
			return nil, "tensor_size"
		}
		return append(attrs, chakra.Uint64("tensor_size", *n.TensorSize)), ""
	case chakra.CommCollNode:
		comm, known := collectives[n.CommType]
		if n.CommSize == nil || !known {
			return nil, "comm_size, and ALL_REDUCE, ALL_GATHER, ALL_TO_ALL or REDUCE_SCATTER for comm_type"
		}
		attrs = append(attrs, chakra.Int64("comm_size", *n.CommSize), chakra.Int64("comm_type", comm))
		if n.CommGroup != nil {
			attrs = append(attrs, chakra.String("pg_name", strconv.FormatInt(*n.CommGroup, 10)))
		}
	case chakra.CommSendNode:
		if n.CommSize == nil || n.CommTag == nil || n.CommDst == nil {
			return nil, "comm_size, comm_tag and comm_dst"
		}
		attrs = append(attrs, chakra.Int64("comm_size", *n.CommSize), chakra.Int32("comm_tag", *n.CommTag),
			chakra.Int32("comm_dst", *n.CommDst))
	default:
		if n.CommSize == nil || n.CommTag == nil || n.CommSrc == nil {
			return nil, "comm_size, comm_tag and comm_src"
		}
		attrs = append(attrs, chakra.Int64("comm_size", *n.CommSize), chakra.Int32("comm_tag", *n.CommTag),
			chakra.Int32("comm_src", *n.CommSrc))
	}
	return append(attrs, chakra.Int32("is_cpu_op", 0)), ""
}

// list returns an attribute with alternating names and sizes, without a value if there are none.
func list(name string, tensors []tensor) chakra.Attr {
	if len(tensors) == 0 {
		return chakra.Attr{Name: name}
	}
	words := make([]string, 0, 2*len(tensors))
	for _, t := range tensors {
		words = append(words, t.Name, t.Size.String())
	}
	return chakra.Strings(name, words...)
}
