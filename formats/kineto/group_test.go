package kineto

import (
	"fmt"
	"strings"
	"testing"

	"github.com/tracedag/tracedag/dag"
	"github.com/tracedag/tracedag/formats/format"
)

// TestGroup reads calls that one kernel executes: a send and a receive, inside the annotation of the group or before
// it.
func TestGroup(t *testing.T) {
	for _, outer := range []int{1, 50} { // start of the annotation
		var inputs []*format.Input
		for rank := range 2 {
			event := func(cat, name string, start, took int, args string) string {
				return fmt.Sprintf(`{"ph":"X","cat":%q,"name":%q,"pid":1,"tid":1,"ts":%d,"dur":%d,"args":{%s}}`, cat, name,
					start, took, args)
			}
			call := func(name string, start, src, dst int) string {
				return event("cpu_op", "record_param_comms", start, 10, fmt.Sprintf(`"Collective name": %q, "dtype": "Float", `+
					`"In msg nelems": 25, "Out msg nelems": 25, "Src Rank": %d, "Dst Rank": %d, "Process Group Name": "0", `+
					`"Process Group Ranks": "[0, 1]", "Group size": 2`, name, src, dst))
			}
			args := `"stream": 20, "device": 0, "correlation": 9, "Collective name": "coalesced", "In msg nelems": 50, ` +
				`"Out msg nelems": 50, "dtype": "Float", "Group size": 2, "Process Group Name": "0"`
			text := `{"distributedInfo": {"rank": ` + fmt.Sprint(rank) + `, "world_size": 2}, "traceEvents": [` + strings.Join([]string{
				event("user_annotation", "nccl:coalesced", outer, 100-outer, ""),
				call("send", 10, rank, 1-rank), call("recv", 30, 1-rank, rank),
				event("cuda_runtime", "cudaLaunchKernelExC", 60, 5, `"correlation": 9`),
				event("kernel", "ncclDevKernel_SendRecv(x)", 80, 40, args),
			}, ",") + `]}`
			inputs = append(inputs, &format.Input{Name: fmt.Sprintf("rank%d.json", rank), Reader: strings.NewReader(text)})
		}
		trace, err := read(inputs, format.ReadOptions{Warn: func(message string, args ...any) { t.Errorf(message, args...) }})
		if err != nil {
			t.Fatal(err)
		}
		if problems := dag.Validate(trace); len(problems) > 0 {
			t.Fatal(problems[0])
		}
		for i, r := range trace.Ranks {
			if r.Len() != 2 || r.Kind[0] != dag.Send || r.Kind[1] != dag.Recv || r.Bytes.At(0) != 100 || r.Bytes.At(1) != 100 ||
				r.Peer.At(0) != int32(1-i) || r.Attrs.At(0) != "" || r.Attrs.At(1) != `{"nccl":{"grouped":true}}` {
				t.Errorf("annotation at %d, rank %d: %+v, %+v", outer, i, r.Op(0), r.Op(1))
			}
		}
	}
}
