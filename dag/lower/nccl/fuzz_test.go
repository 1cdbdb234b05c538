package nccl

import (
	"bytes"
	"context"
	"strings"
	"testing"

	"github.com/tracedag/tracedag/dag"
)

// FuzzAttributes lowers two ranks with arbitrary attributes of trace and calls. Lowering must fail, or all messages
// must have partners.
func FuzzAttributes(f *testing.F) {
	f.Add(`{"nccl":{"comms":{"c":{"rings":[[0,1]],"trees":[[-1,0]]}}}}`, `{"nccl":{"algo":"ring","proto":"simple","type":4,`+
		`"chunk_steps":4,"slice_steps":2,"step_size":64,"channels":[[0,50,10,5],[1,3,10,10]],"in_place":true}}`,
		`{"nccl":{"proto":"ll","chunk":16,"grouped":true}}`)
	f.Add(`{"jobs":[{"nccl":{"comms":{"c":{"channels":3}}}}]}`, `{"nccl":{"algo":"tree","proto":"ll128","type":1,"channels":[[0,9,2,2]]}}`, "")
	for _, algorithm := range []string{"nvls", "nvls_tree", "pat"} {
		f.Add("", `{"nccl":{"algo":"`+algorithm+`","proto":"simple","type":2,"chunk_steps":1,"slice_steps":1,"step_size":64,`+
			`"channels":[[0,90,10,5],[1,3,10,10]]}}`, "")
	}
	f.Add("", `{"nccl":{"grouped":true}}`, `{"nccl":null}`)
	f.Fuzz(func(t *testing.T, trace, coll, message string) {
		b := dag.NewBuilder(2)
		b.Meta().Attrs = trace
		comm := b.AddComm(dag.NewComm("c", []int32{0, 1}))
		for rank := range int32(2) {
			r := b.Rank(int(rank))
			r.Add(dag.Op{Kind: dag.Coll, Subkind: dag.Allreduce, Comm: comm, Bytes: 100, Attrs: coll})
			r.Add(dag.Op{Kind: dag.Send, Peer: 1 - rank, Bytes: 100, Attrs: message})
			r.Add(dag.Op{Kind: dag.Recv, Peer: 1 - rank, Bytes: 100, Attrs: message})
		}
		if c, err := parseCall(coll, dag.Coll); err == nil {
			for _, ch := range c.channels {
				if ch.work/ch.chunk*max(c.slices, 1) > 1<<10 {
					t.Skip("it takes long")
				}
			}
		}
		l, err := Lower(context.Background(), b.Trace(), Options{AssumeRing: true})
		if err != nil {
			return
		}
		lowered, err := dag.ReadAll(l)
		if err != nil {
			t.Fatal(err)
		}
		if problems := dag.Validate(lowered); len(problems) > 0 {
			t.Error(problems[0])
		}
	})
}

func FuzzGrouping(f *testing.F) {
	for _, text := range []string{"num_of_nodes: 4\nnum_gpus_per_node: 2\n", "num_gpus_list: [1, 3, 4]", "num_gpus_list: &x [1]\ny: *x",
		"{", "num_of_nodes: 99999999999", "- 1"} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		counts, err := parseGrouping(text, "f", 8)
		if err != nil {
			if counts != nil || !strings.HasPrefix(err.Error(), "f: ") {
				t.Errorf("%v, error %v", counts, err)
			}
			return
		}
		if b := dag.NewBuilder(8); len(counts) > 0 {
			if grouped, err := Regroup(b.Trace(), counts); err == nil && len(grouped.Nodes) != 8 {
				t.Errorf("%v puts 8 ranks on the nodes %v", counts, grouped.Nodes)
			}
		}
	})
}

func FuzzTable(f *testing.F) {
	f.Add([]byte(`{"NPKIT_EVENT_GPU_RECV_REDUCE_SEND":{"8":[10],"16":[30,50]},"NPKIT_EVENT_GPU_DIRECT_RECV_COPY_SEND":{"100":[1]}}`), int64(12))
	f.Fuzz(func(t *testing.T, text []byte, size int64) {
		table, err := ReadTable(bytes.NewReader(text))
		if err != nil {
			return
		}
		if ns := table.reduce.mean(size); ns < 0 || ns > maxNS {
			t.Errorf("%d bytes take %d ns", size, ns)
		}
	})
}
