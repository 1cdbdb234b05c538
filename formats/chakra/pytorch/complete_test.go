package pytorch

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tracedag/tracedag/dag"
	"github.com/tracedag/tracedag/formats/format"
)

// readFolder reads execution traces and profiles.
func readFolder(t *testing.T, patterns ...string) (*dag.Trace, []string) {
	t.Helper()
	var in []*format.Input
	for _, pattern := range patterns {
		names, err := filepath.Glob(filepath.Join(vectorFolder(t), pattern))
		if err != nil || len(names) == 0 {
			t.Fatal(pattern, err)
		}
		for _, name := range names {
			in = append(in, input(t, name))
		}
	}
	var warnings []string
	trace, err := read(in, format.ReadOptions{Warn: func(text string, args ...any) {
		warnings = append(warnings, fmt.Sprintf(text, args...))
	}})
	if err != nil {
		t.Fatal(err)
	}
	if problems := dag.Validate(trace); len(problems) > 0 {
		t.Error(problems)
	}
	return trace, warnings
}

// collectives lists the collectives of a rank: kind, bytes and root.
func collectives(r *dag.Rank) string {
	var list []string
	for i := range r.Len() {
		if r.Kind[i] == dag.Coll {
			list = append(list, fmt.Sprint(r.Subkind.At(i), " ", r.Bytes.At(i), " ", r.Peer.At(i)))
		}
	}
	return strings.Join(list, ", ")
}

// Profiles have the sizes of communication that execution traces record, the roots of Gloo's broadcasts, and the
// operators of kernels with their floating-point operations. All kernels of the profile are there.
func TestCompleted(t *testing.T) {
	const dlrm = "alltoall 24576 0, alltoall 192 0, alltoall 1536 0, alltoallv 13568 0, allreduce 1576964 0, " +
		"alltoall 24576 0, allreduce 448 0, allreduce 907840 0"
	const gloo = "bcast 36 0, bcast 4 0, allreduce 555944 0, allreduce 555944 0"
	for _, c := range []struct {
		patterns []string
		rank     int
		want     string
	}{
		{[]string{"dlrm_derived/kineto_*", "dlrm_derived/et_*"}, 0, dlrm},
		{[]string{"dlrm_derived/et_*", "dlrm_derived/kineto_*"}, 1, dlrm},
		{[]string{"dlrm8/*.gz", "../kineto/dlrm8/*.gz"}, 0, dlrm},
		{[]string{"ddp_cnn2/*.gz"}, 0, gloo},
		{[]string{"ddp_cnn2/*.gz"}, 1, gloo},
	} {
		trace, _ := readFolder(t, c.patterns...)
		if got := collectives(trace.Ranks[c.rank]); got != c.want {
			t.Errorf("%v: rank %d: %s, want %s", c.patterns, c.rank, got, c.want)
		}
	}
	trace, _ := readFolder(t, "dlrm_derived/kineto_*", "dlrm_derived/et_*")
	kernels, named, flops := 0, 0, int64(0)
	r := trace.Ranks[1]
	for i := range r.Len() {
		if r.Stream.At(i) > 0 && r.Host.At(i) == 0 {
			kernels++
		}
		if strings.Contains(r.Attrs.At(i), `"et_id":`) {
			named++
		}
		flops += r.Flops.At(i)
	}
	// 262 of 326 kernels and copies have a launch in the profile.
	if named != 262 || kernels < 326 || flops == 0 {
		t.Errorf("%d ops on streams, %d with an operator, %d flops", kernels, named, flops)
	}
}

// Ranks may have a profile only, but not only an execution trace.
func TestUnpaired(t *testing.T) {
	trace, warnings := readFolder(t, "dlrm_derived/kineto_*", "dlrm_derived/et_0*")
	if len(trace.Ranks) != 2 || len(warnings) == 0 || !strings.Contains(warnings[len(warnings)-1],
		"no execution trace of the rank: its profile is read alone") {
		t.Errorf("%d ranks, %q", len(trace.Ranks), warnings)
	}
}

func TestFlops(t *testing.T) {
	for _, c := range []struct {
		name, inputs, outputs string
		want                  int64
	}{
		{"aten::mm", "[[3, 4], [4, 5]]", "[[3, 5]]", 2 * 3 * 4 * 5},
		{"aten::addmm", "[[5], [3, 4], [4, 5], [], []]", "[[3, 5]]", 2 * 3 * 4 * 5},
		{"aten::bmm", "[[7, 3, 4], [7, 4, 5]]", "", 7 * 2 * 3 * 4 * 5},
		{"aten::linear", "[[2, 3, 4], [5, 4], [5]]", "", 2 * 3 * 2 * 4 * 5},
		{"aten::convolution", "[[8, 6, 10, 10], [4, 3, 3, 3], []]", "[[8, 4, 8, 8]]", 2 * 8 * 4 * 8 * 8 * 3 * 3 * 3},
		{"aten::mm", "[[3, 4], [5, 4]]", "", 0},
		{"aten::mm", "[[3037000500, 3037000500], [3037000500, 3037000500]]", "", 0},
		{"aten::mm", "[[3, 4]]", "", 0},
		{"aten::mm", "[[3, -4], [-4, 5]]", "", 0},
		{"aten::add", "[[3, 4], [4, 5]]", "", 0},
		{"aten::convolution", "[[8], [4]]", "[]", 0},
	} {
		if got := flopsOf(c.name, c.inputs, c.outputs); got != c.want {
			t.Errorf("%+v: %d", c, got)
		}
	}
}

// Messages of profiles without arguments get their partner, size and group from execution traces, with ranks of the
// group turned into those of the job.
func TestCompletedMessages(t *testing.T) {
	groups := `["[{\"pg_name\": \"1\", \"pg_desc\": \"pairs\", \"ranks\": [0, 2]}]"]`
	pair := func(rank int, name string, peer int) (trace, profile string) {
		numbered := func(rf int, text string) string {
			return strings.Replace(text, `{"name": "rf_id", "value": 1}`, fmt.Sprintf(`{"name": "rf_id", "value": %d}`, rf), 1)
		}
		trace = file(numbered(0, call(1, thread, 0, "")), numbered(1, inputs(2, "## process_group:init ##", 1, groups, `["String"]`)),
			numbered(2, inputs(3, "c10d::"+name, 1, fmt.Sprintf(`[[[5,6,0,8,4,"cuda:0"]], "<Object>", %d, 7]`, peer),
				`["GenericList[Tensor(float)]", "Object", "Int", "Int"]`)),
			numbered(3, inputs(4, "record_param_comms", 3, fmt.Sprintf(`[[[5,6,0,8,4,"cuda:0"]], 3, ["1", "pairs"], 0, %q, [], []]`,
				strings.Trim(name, "_")), `["GenericList[Tensor(float)]", "Int", "Tuple[String,String]", "Int", "String",
				"GenericList[]", "GenericList[]"]`)))
		event := func(category, name string, at, took, rf int) string {
			return fmt.Sprintf(`{"ph": "X", "cat": %q, "name": %q, "pid": 1, "tid": 5, "ts": %d, "dur": %d,
 "args": {"External id": %d, "Record function id": %d}}`, category, name, at, took, rf, rf)
		}
		profile = fmt.Sprintf(`{"schemaVersion": 1, "distributedInfo": {"backend": "nccl", "rank": %d, "world_size": 3},
"traceEvents": [%s, %s, %s,
{"ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernelExC", "pid": 1, "tid": 5, "ts": 113, "dur": 2, "args": {"correlation": 9}},
{"ph": "X", "cat": "kernel", "name": "ncclDevKernel_SendRecv(ncclDevComm*)", "pid": 0, "tid": 7, "ts": 118, "dur": 8,
 "args": {"External id": 3, "correlation": 9, "stream": 7, "device": 0}}]}`, rank,
			event("cpu_op", "## process_group:init ##", 90, 2, 1), event("cpu_op", "c10d::"+name, 100, 30, 2),
			event("cpu_op", "record_param_comms", 110, 10, 3))
		return trace, profile
	}
	var in []*format.Input
	add := func(rank int, trace, profile string) {
		for name, text := range map[string]string{"et": trace, "kineto": profile} {
			in = append(in, &format.Input{Name: fmt.Sprintf("%s_%d.json", name, rank), Reader: strings.NewReader(text),
				Head: []byte(text)})
		}
	}
	send, sendProfile := pair(0, "send", 1)
	add(0, send, sendProfile)
	recv, recvProfile := pair(2, "recv_", 0)
	add(2, recv, recvProfile)
	idle, idleProfile := pair(1, "send", 1)
	idleProfile = idleProfile[:strings.Index(idleProfile, `{"ph": "X", "cat": "cuda_runtime"`)]
	add(1, idle, strings.TrimSuffix(strings.TrimSpace(idleProfile), ",")+"]}")
	trace, err := read(in, format.ReadOptions{Warn: t.Logf})
	if err != nil {
		t.Fatal(err)
	}
	if problems := dag.Validate(trace); len(problems) > 0 {
		t.Error(problems)
	}
	for rank, want := range map[int]string{0: "send 2 32", 2: "recv 0 32"} {
		r := trace.Ranks[rank]
		last := r.Len() - 1
		if got := fmt.Sprint(r.Kind[last], " ", r.Peer.At(last), " ", r.Bytes.At(last)); got != want {
			t.Errorf("rank %d: %s, want %s", rank, got, want)
		}
	}
}
