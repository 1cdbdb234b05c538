package pytorch

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/tracedag/tracedag/formats/chakra"
	"github.com/tracedag/tracedag/formats/format"
)

// The files in testdata, and what the converter of Chakra makes of them, are compared in package dialects.

// call returns a node with the members that each must have, and others.
func call(id int, name string, caller int, others string) string {
	var attrs []string
	for _, n := range numbers {
		attrs = append(attrs, fmt.Sprintf(`{"name": %q, "value": 1}`, n))
	}
	return fmt.Sprintf(`{"id": %d, "name": %q, "ctrl_deps": %d, "inputs": {"values": [], "shapes": [], "types": []},
 "outputs": {"values": [], "shapes": [], "types": []}, "attrs": [%s, {"name": "op_schema", "value": ""}]%s}`,
		id, name, caller, strings.Join(attrs, ", "), others)
}

const thread = "[pytorch|profiler|execution_trace|thread]"

// file returns a trace on whose line 2 the first node begins.
func file(nodes ...string) string {
	return `{"schema": "1.1.1-chakra.1.0.0", "pid": 1, "time": "t", "start_ts": 1, "finish_ts": 2, "nodes": [` + "\n" +
		strings.Join(nodes, ",\n") + "]}"
}

func readNodes(text string) ([]chakra.Node, error) {
	f, err := (&trace{file: "p.json"}).read(&format.Input{Name: "p.json", Reader: strings.NewReader(text)})
	return f.Nodes, err
}

// show returns ids, types and dependencies of nodes.
func show(nodes []chakra.Node) string {
	var b strings.Builder
	for _, n := range nodes {
		fmt.Fprintf(&b, "%d %v %v %v\n", n.ID, n.Type, n.CtrlDeps, n.DataDeps)
	}
	return b.String()
}

// Each rule of the conversion on its own.
func TestRules(t *testing.T) {
	const gpu = `, "cat": "kernel"`
	for name, c := range map[string]struct {
		nodes []string
		want  string
	}{
		"host operators wait for the one before": {
			[]string{call(1, thread, 0, ""), call(4, "c", 1, ""), call(2, "a", 1, ""), call(3, "b", 2, "")},
			"1 COMP_NODE [] []\n2 COMP_NODE [1] [1]\n3 COMP_NODE [2] [2]\n4 COMP_NODE [1] [3]\n",
		},
		"the first kernel waits for the last node, the second for the last operator": {
			[]string{call(1, thread, 0, ""), call(2, "a", 1, ""), call(3, "k", 2, gpu), call(4, "k", 2, gpu), call(5, "b", 1, "")},
			"1 COMP_NODE [] []\n2 COMP_NODE [1] [1]\n3 COMP_NODE [2] [2]\n4 COMP_NODE [2] [2]\n5 COMP_NODE [1] [2]\n",
		},
		"another thread": {
			[]string{call(1, thread, 0, ""), call(2, "a", 1, ""), call(3, thread, 0, ""),
				call(4, "b", 3, `, "inter_thread_dep": 2`)},
			"1 COMP_NODE [] []\n2 COMP_NODE [1] [1]\n3 COMP_NODE [] []\n4 COMP_NODE [3] [2 3]\n",
		},
		"nodes without a thread are left out": {
			[]string{call(7, "process", 7, ""), call(1, thread, 7, ""), call(2, "a", 1, ""), call(3, "k", 9, gpu),
				call(4, "b", 5, "")},
			"1 COMP_NODE [7] []\n2 COMP_NODE [1] [1]\n",
		},
		"a caller behind the node is no dependency": {
			[]string{call(2, "a", 1, ""), call(1, thread, 0, "")},
			"1 COMP_NODE [] []\n2 COMP_NODE [] [1]\n",
		},
		"types": {
			[]string{call(1, thread, 0, ""), call(2, "## process_group:init ##", 1, ""),
				call(3, "ncclDevKernel_AllReduce", 2, gpu), call(4, "c10d::send", 1, ""),
				call(5, "ncclDevKernel_SendRecv", 4, gpu), call(6, "nccl:recv", 1, ""), call(7, "record_param_comms", 6, ""),
				call(8, "ncclDevKernel_SendRecv", 7, gpu), call(9, "ncclDevKernel_SendRecv", 2, gpu)},
			"1 COMP_NODE [] []\n2 METADATA_NODE [1] [1]\n3 COMM_COLL_NODE [2] [2]\n4 COMP_NODE [1] [2]\n" +
				"5 COMM_SEND_NODE [4] [4]\n6 COMP_NODE [1] [4]\n7 COMP_NODE [6] [6]\n8 COMM_RECV_NODE [7] [7]\n" +
				"9 COMM_COLL_NODE [2] [2]\n",
		},
	} {
		nodes, err := readNodes(file(c.nodes...))
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if got := show(nodes); got != c.want {
			t.Errorf("%s: got\n%swant\n%s", name, got, c.want)
		}
	}
}

func TestWarning(t *testing.T) {
	var warnings []string
	o := format.ReadOptions{Warn: func(message string, args ...any) {
		warnings = append(warnings, fmt.Sprintf(message, args...))
	}}
	text := file(call(1, thread, 0, ""), call(2, "a", 1, `, "sync_dep": [1]`), call(3, "b", 9, `, "sync_dep": [1]`))
	_, err := read([]*format.Input{{Name: "p.json", Reader: strings.NewReader(text)}}, o)
	const want = "p.json: sync_dep is ignored, as by Chakra's converter (1 nodes)"
	if err != nil || !slices.Contains(warnings, want) {
		t.Errorf("got %q, %v", warnings, err)
	}
}

func TestErrors(t *testing.T) {
	first := call(1, thread, 0, "")
	lines := strings.Count(first, "\n") + 1
	second := fmt.Sprintf("p.json:%d: ", 2+lines)
	kernel := func(name, inputs string) string {
		n := call(2, "a", 1, "") + ",\n" + call(3, name, 2, `, "cat": "kernel"`)
		at := strings.LastIndex(n, `"inputs": {`)
		end := at + strings.IndexByte(n[at:], '}') + 1
		return n[:at] + `"inputs": ` + inputs + n[end:]
	}
	third := fmt.Sprintf("p.json:%d: ", 2+2*lines)
	const none = `{"values": [], "shapes": [], "types": []}`
	for name, c := range map[string]struct{ text, want string }{
		"no JSON":         {"[", `p.json:1: expected an object, found "["`},
		"old schema":      {"\n" + `{"schema": "1.0.1", "nodes": [{}]}`, "p.json:2: expected one of the schemas 1.0.2-"},
		"no schema":       {`{"nodes": []}`, "p.json: expected an object with a member schema"},
		"no time":         {`{"schema": "1.1.1-chakra.0.0.4", "pid": 1, "nodes": []}`, "with a member time"},
		"odd pid":         {`{"pid": "1", "nodes": []}`, `p.json:1: expected pid to be an integer, found "1"`},
		"odd time":        {`{"time": 1, "nodes": []}`, "p.json:1: expected time to be a string, found 1"},
		"no nodes":        {`{"schema": "1.1.1-chakra.0.0.4"}`, "expected a list called nodes"},
		"node":            {file(first, "3"), second + "expected a node, found json: cannot unmarshal number"},
		"id":              {file(first, strings.Replace(first, `"id": 1`, `"id": -1`, 1)), second + "expected id to be an integer"},
		"twice":           {file(first, first), second + "expected an id that no other node has, found 1"},
		"no name":         {file(first, `{"id": 2}`), second + "expected name to be a string, found nothing"},
		"no caller":       {file(first, `{"id": 2, "name": "a"}`), second + "expected ctrl_deps to be the id of a node"},
		"callers":         {file(first, `{"id": 2, "name": "a", "ctrl_deps": [1]}`), "expected ctrl_deps to be the id of a node, found [1]"},
		"no inputs":       {file(first, `{"id": 2, "name": "a", "ctrl_deps": null}`), second + "expected inputs to be an object"},
		"no types":        {file(first, strings.Replace(call(2, "a", 1, ""), `, "types": []`, "", 1)), "expected inputs.types to be there"},
		"no attribute":    {file(first, strings.Replace(call(2, "a", 1, ""), "seq_id", "seq", 1)), "expected the attribute seq_id to be an integer, found nothing"},
		"no op_schema":    {file(first, strings.Replace(call(2, "a", 1, ""), "op_schema", "schema", 1)), "expected the attribute op_schema"},
		"duration":        {file(first, call(2, "a", 1, `, "exclusive_dur": -1`)), "expected exclusive_dur to be a duration"},
		"long duration":   {file(first, call(2, "a", 1, `, "exclusive_dur": 1e20`)), "expected exclusive_dur to be a duration"},
		"stream":          {file(first, call(2, "a", 1, `, "stream": 1.5`)), "expected stream to be an integer, found 1.5"},
		"group":           {file(first, call(2, "a", 1, `, "pg_name": 7`)), "expected pg_name to be a string, found 7"},
		"dependency":      {file(first, call(2, "a", 1, `, "inter_thread_dep": 99`)), second + "expected inter_thread_dep to be a node of the trace, found 99"},
		"no UTF-8":        {file(first, call(2, "a", 1, ", \"x\": \"\xff\"")), second + "expected UTF-8"},
		"thread in one":   {file(first, call(2, thread, 1, "")), second + "expected a thread that is not called by another, found node 2"},
		"collective":      {file(first, kernel("ncclDevKernel_Generic", none)), third + "expected the name of a collective"},
		"tensor":          {file(first, kernel("ncclKernel_AllReduce", `{"values": [[1,2,3]], "shapes": [], "types": ["Tensor(int)"]}`)), third + "expected a tensor to be a list with numbers of elements and bytes, found [1,2,3]"},
		"long tensor":     {file(first, kernel("ncclKernel_AllReduce", `{"values": [[[0,0,0,9000000000000000000,2]]], "shapes": [], "types": ["GenericList[Tensor(int)]"]}`)), "expected a tensor to be"},
		"tensor list":     {file(first, kernel("ncclKernel_AllReduce", `{"values": [1], "shapes": [], "types": ["GenericList[Tensor(int)]"]}`)), "expected a GenericList[Tensor(int)] to be a list, found 1"},
		"types of tensor": {file(first, kernel("ncclKernel_AllReduce", `{"values": [], "shapes": [], "types": 1}`)), "expected inputs of a communication to be lists"},
		"no grandparent":  {file(call(1, "record_param_comms", 9, ""), call(2, "ncclDevKernel_SendRecv", 1, `, "cat": ""`)), "p.json:2: expected a caller of record_param_comms among the nodes, found 9"},
	} {
		_, err := readNodes(c.text)
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: got %v, want %s", name, err, c.want)
		}
		var syntax *format.SyntaxError
		if !errors.As(err, &syntax) && !strings.Contains(c.want, "with a member") {
			t.Errorf("%s: %v has no line", name, err)
		}
	}
}

// A cycle is found when the trace is built.
func TestCycle(t *testing.T) {
	text := file(call(1, thread, 0, ""), call(2, "a", 1, `, "inter_thread_dep": 3`), call(3, "b", 1, ""))
	in := &format.Input{Name: "p.json", Reader: strings.NewReader(text)}
	if _, err := read([]*format.Input{in}, format.ReadOptions{Warn: t.Logf}); err == nil || !strings.Contains(err.Error(), "3") {
		t.Errorf("got %v", err)
	}
}

func FuzzRead(f *testing.F) {
	f.Add(file(call(1, thread, 0, ""), call(2, "nccl:send", 1, `, "inter_thread_dep": 1`),
		call(3, "ncclDevKernel_SendRecv", 2, `, "cat": "", "pg_name": "1", "exclusive_dur": 1.5, "stream": null`)))
	f.Add(file(call(2, "## process_group:init ##", 1, `, "cat": null, "sync_dep": [1]`), call(1, thread, 1, "")))
	tensors := `{"values": [[1,2,0,4,8,"cuda:0"],[[1,2,0,4,8]]], "shapes": [], "types": ["Tensor(int)","GenericList[Tensor(int)]"]}`
	f.Add(strings.Replace(file(call(1, thread, 0, ""), call(3, "ncclKernel_AllReduce", 1, `, "cat": ""`)),
		`{"values": [], "shapes": [], "types": []}`, tensors, 3))
	f.Fuzz(func(t *testing.T, text string) {
		in := &format.Input{Name: "p.json", Reader: strings.NewReader(text)}
		trace, err := read([]*format.Input{in}, format.ReadOptions{Warn: func(string, ...any) {}})
		if err != nil {
			return
		}
		if err := trace.Ranks[0].CheckReferences(); err != nil {
			t.Error(err)
		}
	})
}
