package nccl

import (
	"context"
	"fmt"
	"slices"

	"github.com/goccy/go-yaml"

	"github.com/tracedag/tracedag/dag"
	"github.com/tracedag/tracedag/dag/attr"
	"github.com/tracedag/tracedag/memory"
)

// Regroup returns the trace with its ranks assigned to nodes in ascending order. counts has the number of ranks of each
// node, 1 or more; their sum must be the number of ranks. The result shares all else with t. Regroup works on any
// trace.
//
// Regroup discards the NCCL connections of communicators in the attributes of the trace; lowering then connects the
// ranks by default. A ring visits the nodes in ascending order, and in each node its ranks. In a tree, the ranks of a
// node form a chain from the lowest to the highest rank, and the nodes form NCCL's double binary tree: the highest rank
// of a node sends to the lowest rank of the parent node; even channels have the first tree, odd channels the second.
// The number of channels and all calls remain.
func Regroup(t *dag.Trace, counts []int) (*dag.Trace, error) {
	total := 0
	for node, n := range counts {
		if n < 1 {
			return nil, fmt.Errorf("regrouping: node %d gets %d ranks, expected 1 or more", node, n)
		}
		if total += n; total > len(t.Ranks) {
			break
		}
	}
	if total != len(t.Ranks) {
		return nil, fmt.Errorf("regrouping: the nodes get %d ranks in total, expected %d as in the trace", total,
			len(t.Ranks))
	}
	out := *t
	out.Nodes = make([]int32, 0, total)
	for node, n := range counts {
		for range n {
			out.Nodes = append(out.Nodes, int32(node))
		}
	}
	var err error
	out.Attrs, err = attr.EditNCCLTopologies(t.Attrs, func(c attr.NCCLTopology) attr.NCCLTopology {
		return attr.NCCLTopology{Channels: max(len(c.Rings), len(c.Trees), c.Channels)}
	})
	if err != nil {
		return nil, fmt.Errorf("regrouping: the attributes of the trace: %w", err)
	}
	return &out, nil
}

// ReadGrouping reads the number of ranks of each node from a file in the form of node_gpu_config.yaml of ATLAHS, for a
// trace with the given number of ranks. Errors begin with the name of the file.
func ReadGrouping(path string, ranks int) ([]int, error) {
	text, err := memory.ReadFile(context.Background(), path)
	if err != nil {
		return nil, err
	}
	return parseGrouping(text, path, ranks)
}

// parseGrouping is ReadGrouping of the text of a file.
func parseGrouping(text []byte, path string, ranks int) ([]int, error) {
	var g struct {
		Nodes   *int  `yaml:"num_of_nodes"`
		PerNode *int  `yaml:"num_gpus_per_node"`
		List    []int `yaml:"num_gpus_list"`
	}
	if err := yaml.UnmarshalWithOptions(text, &g, yaml.Strict()); err != nil {
		return nil, fmt.Errorf("%s: %s", path, yaml.FormatError(err, false, false))
	}
	switch {
	case g.Nodes != nil && g.PerNode != nil:
		if *g.Nodes < 1 || *g.PerNode < 1 || *g.Nodes > ranks || *g.PerNode > ranks {
			return nil, fmt.Errorf("%s: %d nodes of %d GPUs each, expected %d GPUs in total as in the trace",
				path, *g.Nodes,
				*g.PerNode, ranks)
		}
		return slices.Repeat([]int{*g.PerNode}, *g.Nodes), nil
	case len(g.List) > 0:
		return g.List, nil
	}
	return nil, fmt.Errorf("%s: expected num_of_nodes and num_gpus_per_node, or num_gpus_list", path)
}
