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
