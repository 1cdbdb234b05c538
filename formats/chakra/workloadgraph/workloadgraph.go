// Package workloadgraph reads the JSON that Chakra's first feeder accepted instead of a Chakra trace.
//
// docs/reference/formats/stg.md describes the files.
package workloadgraph

import (
	"encoding/json"
	"fmt"
	"regexp"
	"sync/atomic"

	"github.com/tracedag/tracedag/dag"
	"github.com/tracedag/tracedag/formats/chakra"
	"github.com/tracedag/tracedag/formats/chakra/nodejson"
	"github.com/tracedag/tracedag/formats/format"
)

// Format is the feeder's JSON, one file per rank.
var Format = format.Format{
	Name:    "workloadgraph",
	Modes:   format.Modes{Compat: true, Lenient: true},
	Title:   "workload_graph of Chakra's first feeder (JSON), one file per rank",
	Detect:  beginning.Match,
	Files:   nodejson.Files,
	Read:    read,
	Options: chakra.Table,
}

// beginning matches a member at the beginning of such a file.
var beginning = regexp.MustCompile(`^\s*\{\s*"(` + list + `|workload_name|ngpus|soc)"\s*:`)

const list = "workload_graph"

func read(inputs []*format.Input, o format.ReadOptions) (*dag.Trace, error) {
	var unknown atomic.Int64
	t, err := nodejson.ReadRanks(inputs, o, func(_ int, in *format.Input) (chakra.File, error) {
		g := &graph{file: in.Name}
		err := nodejson.Read(o.Context, in, list, g)
		unknown.Add(g.unknown)
		return g.result, err
	})
	if err == nil && unknown.Load() > 0 {
		o.Warn("%s: %d collectives without comm_type become computation", inputs[0].Name, unknown.Load())
	}
	return t, err
}

// graph is a file.
type graph struct {
	file    string
	result  chakra.File
	unknown int64 // number of collectives without a kind
}

// Member ignores a member of the file: the names of the workload and the system do not affect a simulation.
func (g *graph) Member(int64, string, json.RawMessage) error {
	return nil
}

// node is a node in the file. A missing member is nil.
type node struct {
	ID       *uint64  `json:"Id"`
	Name     string   `json:"Name"`
	Type     *uint8   `json:"NodeType"`
	OnHost   *bool    `json:"is_cpu_op"`
	Runtime  uint64   `json:"runtime"` // microseconds
	DataDeps []uint64 `json:"data_deps"`

	// of communications only
	TensorSize   *uint64 `json:"tensor_size"`
	CommType     *int64  `json:"comm_type"`
	CommPriority *int32  `json:"comm_priority"`
	CommSize     *int64  `json:"comm_size"`
	CommSrc      *int32  `json:"comm_src"`
	CommDst      *int32  `json:"comm_dst"`
	CommTag      *int32  `json:"comm_tag"`
}

// Node receives a node.
func (g *graph) Node(line int64, value json.RawMessage) error {
	var n node
	if err := json.Unmarshal(value, &n); err != nil {
		return nodejson.Fail(g.file, line, "a node", err.Error())
	}
	switch {
	case n.ID == nil || n.Type == nil:
		return nodejson.Fail(g.file, line, "a node with Id and NodeType", nodejson.Show(value))
	case *n.Type > uint8(chakra.CommCollNode):
		return nodejson.Fail(g.file, line, "a NodeType of 0 to 7", fmt.Sprint(*n.Type))
	}
	kind := chakra.NodeType(*n.Type)
	if kind == chakra.CommCollNode && n.CommType == nil {
		// Real traces have no kind, neither for the call on the host nor for the kernel, only durations.
		kind = chakra.CompNode
		g.unknown++
	}
	g.result.Nodes = append(g.result.Nodes, chakra.Node{
		ID: *n.ID, Name: n.Name, Type: kind, DataDeps: n.DataDeps, DurationMicros: n.Runtime,
		Attr: n.attrs(kind),
	})
	return nil
}

func (n *node) attrs(kind chakra.NodeType) []chakra.Attr {
	var attrs []chakra.Attr
	if n.OnHost != nil {
		attrs = append(attrs, chakra.Bool("is_cpu_op", *n.OnHost))
	}
	if kind != chakra.CommCollNode && kind != chakra.CommSendNode && kind != chakra.CommRecvNode {
		return attrs
	}
	add(&attrs, chakra.Int64, "comm_type", n.CommType)
	add(&attrs, chakra.Int64, "comm_size", n.CommSize)
	add(&attrs, chakra.Int32, "comm_priority", n.CommPriority)
	add(&attrs, chakra.Int32, "comm_src", n.CommSrc)
	add(&attrs, chakra.Int32, "comm_dst", n.CommDst)
	add(&attrs, chakra.Int32, "comm_tag", n.CommTag)
	add(&attrs, chakra.Uint64, "tensor_size", n.TensorSize)
	return attrs
}

// add adds an attribute if it is present.
func add[T any](attrs *[]chakra.Attr, attr func(string, T) chakra.Attr, name string, value *T) {
	if value != nil {
		*attrs = append(*attrs, attr(name, *value))
	}
}
