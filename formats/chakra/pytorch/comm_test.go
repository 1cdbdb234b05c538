package pytorch

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/tracedag/tracedag/dag"
	"github.com/tracedag/tracedag/formats/format"
)

// inputs returns a node with inputs.
func inputs(id int, name string, caller int, values, types string) string {
	return strings.Replace(call(id, name, caller, ""), `"values": [], "shapes": [], "types": []`,
		fmt.Sprintf(`"values": %s, "shapes": [], "types": %s`, values, types), 1)
}

// readTrace reads files, and returns the trace and the warnings.
func readTrace(t *testing.T, files ...string) (*dag.Trace, []string) {
	t.Helper()
	var all []*format.Input
	for rank, text := range files {
		all = append(all, &format.Input{Name: fmt.Sprintf("p.%d.json", rank), Reader: strings.NewReader(text)})
	}
	var warnings []string
	trace, err := read(all, format.ReadOptions{Warn: func(message string, args ...any) {
		warnings = append(warnings, fmt.Sprintf(message, args...))
	}})
	if err != nil {
		t.Fatal(err)
	}
	return trace, warnings
}

// Messages of a process group have the rank in the job of their partner, and their waits wait for them.
func TestMessages(t *testing.T) {
	groups := strings.ReplaceAll(`["[{\"pg_name\": \"1\", \"ranks\": [1, 2]}, {\"pg_name\": \"0\", \"ranks\": []}]"]`,
		"\n", "")
	rank := func(name string, peer int) string {
		return file(call(1, thread, 0, ""), inputs(2, "## process_group:init ##", 1, groups, `["String"]`),
			inputs(3, "c10d::"+name, 1, fmt.Sprintf(`[[[5,6,0,8,4,"cpu"]], "<Object>", %d, 7]`, peer),
				`["GenericList[Tensor(float)]", "Object", "Int", "Int"]`),
			inputs(4, "record_param_comms", 3, fmt.Sprintf(`[[[5,6,0,8,4,"cpu"]], 3, ["1", "x"], 0, %q, [], []]`,
				strings.Trim(name, "_")), `["GenericList[Tensor(float)]", "Int", "Tuple[String,String]", "Int", "String",
				"GenericList[]", "GenericList[]"]`),
			call(5, "nccl:"+strings.Trim(name, "_"), 4, ""),
			call(8, "aten::add", 1, ""),
			inputs(9, "record_param_comms", 1, `[3, ["1", "x"], 0, "wait", [], []]`, `["Int", "Tuple[String,String]", "Int",
				"String", "GenericList[]", "GenericList[]"]`))
	}
	none := file(call(1, thread, 0, ""), inputs(2, "## process_group:init ##", 1, groups, `["String"]`))
	trace, warnings := readTrace(t, none, rank("send", 1), rank("recv_", 0))
	if problems := dag.Validate(trace); len(problems) > 0 {
		t.Error(problems)
	}
	for at, want := range map[int]string{1: "send to 2, 32 bytes, tag 7", 2: "recv to 1, 32 bytes, tag 7"} {
		r := trace.Ranks[at]
		found := ""
		for i := range r.Len() {
			if k := r.Kind[i]; k == dag.Send || k == dag.Recv {
				found += fmt.Sprintf("%v to %d, %d bytes, tag %d", k, r.Peer.At(i), r.Bytes.At(i), r.Tag.At(i))
			}
		}
		if found != want {
			t.Errorf("rank %d: %s, want %s", at, found, want)
		}
	}
	if !slices.ContainsFunc(warnings, func(w string) bool { return strings.Contains(w, "no times and no kernels") }) {
		t.Errorf("warnings %q", warnings)
	}
	nodes, err := readNodes(rank("send", 1))
	if got := show(nodes); err != nil || !strings.Contains(got, "8 COMP_NODE [1] [5]") ||
		!strings.Contains(got, "9 COMP_NODE [1] [4 8]") {
		t.Errorf("%v\n%s", err, got)
	}
}

// A file that ends early has its whole nodes.
func TestCut(t *testing.T) {
	text := `{"schema": "1.0.1", "pid": 1, "time": "t", "start_ts": 1, "nodes": [` + "\n"
	node := func(id int, name string) string {
		return fmt.Sprintf(`{"name": %q, "id": %d, "rf_id": 1, "parent": 2, "fw_parent": 0, "seq_id": -1, "scope": 0,
 "tid": 1, "fw_tid": 0, "op_schema": "", "inputs": [], "input_shapes": [], "input_types": [], "outputs": [],
 "output_shapes": [], "output_types": []}`, name, id)
	}
	text += strings.Replace(node(2, "[pytorch|profiler|execution_graph|thread]"), `"parent": 2`, `"parent": 1`, 1) + ",\n" +
		node(3, "aten::add") + ",\n" + node(4, "aten::mul")
	trace, warnings := readTrace(t, text[:len(text)-9])
	if n := trace.Ranks[0].Len(); n != 2 {
		t.Errorf("%d ops", n)
	}
	lost := strings.Replace(text, "execution_graph|thread", "other", 1) // the thread itself is in the rest of the file
	if trace, _ := readTrace(t, lost[:len(lost)-9]); trace.Ranks[0].Len() != 3 {
		t.Errorf("%d ops without a thread", trace.Ranks[0].Len())
	}
	const want = "p.0.json: the file ends early; its 2 whole nodes were read"
	if !slices.Contains(warnings, want) {
		t.Errorf("warnings %q", warnings)
	}
}
