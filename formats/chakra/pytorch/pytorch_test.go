package pytorch

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/tracedag/tracedag/formats/chakra"
	"github.com/tracedag/tracedag/formats/format"
	_ "github.com/tracedag/tracedag/internal/testheap"
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
	f, err := (&trace{file: "p.json"}).read(context.Background(), &format.Input{Name: "p.json", Reader: strings.NewReader(text)})
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
			[]string{call(1, thread, 0, ""), call(2, "a", 1, ""), call(3, "k", 2, gpu), call(4, "k", 2, gpu),
				call(5, "b", 1, "")},
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
	const want = "p.json: sync_dep of 1 nodes is ignored, as by Chakra's converter"
	if err != nil || !slices.Contains(warnings, want) {
		t.Errorf("got %q, %v", warnings, err)
	}
}

func checkError(t *testing.T, text, want string) {
	t.Helper()
	_, err := readNodes(text)
	var syntax *format.SyntaxError
	if !errors.As(err, &syntax) || !strings.Contains(err.Error(), want) {
		t.Errorf("got %v, want %s", err, want)
	}
}

func TestErrors(t *testing.T) {
	for text, want := range map[string]string{
		"[": `p.json:1: expected an object, found "["`,
		"\n" + `{"schema": "1.0.0", "nodes": [{}]}`: "p.json:2: expected one of the schemas 1.0.1, 1.0.2-",
		`{"pid": "1", "nodes": []}`:                 `p.json:1: expected pid to be an integer, found "1"`,
		`{"time": 1, "nodes": []}`:                  "p.json:1: expected time to be a string, found 1",
		`{"schema": "1.1.1-chakra.0.0.4"}`:          "p.json:1: expected a list called nodes",
		file(call(1, "record_param_comms", 9, ""), call(2, "ncclDevKernel_SendRecv", 1, `, "cat": ""`)): "p.json:2: " +
			"expected a caller of record_param_comms among the nodes, found 9",
	} {
		checkError(t, text, want)
	}
	_, err := readNodes(`{"schema": "1.1.1-chakra.0.0.4", "pid": 1, "nodes": []}`)
	if err == nil || err.Error() != "p.json: expected an object with a member time" {
		t.Errorf("got %v", err)
	}
}

// Nodes behind a good one.
func TestNodeErrors(t *testing.T) {
	first := call(1, thread, 0, "")
	where := fmt.Sprintf("p.json:%d: expected ", 3+strings.Count(first, "\n"))
	for node, want := range map[string]string{
		"3":                                  "a node, found json: cannot unmarshal number",
		`{"id": -1}`:                         "id to be an integer, found -1",
		first:                                "an id that no other node has, found 1",
		`{"id": 2}`:                          "name to be a string, found nothing",
		`{"id": 2, "name": "a"}`:             "ctrl_deps to be the id of a node, found nothing",
		strings.Replace(first, "0", "[]", 1): "ctrl_deps to be the id of a node, found []",
		strings.Replace(first, "inputs", "in", 1):        "inputs to be an object",
		strings.Replace(first, "types", "kinds", 2):      "inputs.types to be there, found nothing",
		strings.Replace(first, "seq_id", "seq", 1):       "the attribute seq_id to be an integer, found nothing",
		strings.Replace(first, "op_schema", "schema", 1): "the attribute op_schema to be a string, found nothing",
		call(2, "a", 1, `, "exclusive_dur": -1`):         "exclusive_dur to be a duration in microseconds, found -1",
		call(2, "a", 1, `, "exclusive_dur": 1e20`):       "exclusive_dur to be a duration in microseconds, found 1e20",
		call(2, "a", 1, `, "stream": 1.5`):               "stream to be an integer, found 1.5",
		call(2, "a", 1, `, "pg_name": 7`):                "pg_name to be a string, found 7",
		call(2, "a", 1, `, "inter_thread_dep": 99`):      "inter_thread_dep to be a node of the trace, found 99",
		call(2, "a", 1, ", \"x\": \"\xff\""):             "UTF-8",
		call(2, thread, 1, ""):                           "a thread that is not called by another, found node 2",
	} {
		checkError(t, file(first, node), where+want)
	}
}

// Kernels of NCCL.
func TestKernelErrors(t *testing.T) {
	thread := call(1, thread, 0, "")
	where := fmt.Sprintf("p.json:%d: expected ", 3+strings.Count(thread, "\n"))
	const list = `["GenericList[Tensor(int)]"]`
	for _, c := range []struct{ name, values, types, want string }{
		{"ncclDevKernel_Generic", `[]`, `[]`, "a collective name"},
		{"ncclKernel_AllReduce", `[[1,2,3]]`, `["Tensor(int)"]`, "a tensor to be a list with numbers of elements"},
		{"ncclKernel_AllReduce", `[[[0,0,0,9000000000000000000,2]]]`, list, "a tensor to be"},
		{"ncclKernel_AllReduce", `[1]`, list, "a GenericList[Tensor(int)] to be a list, found 1"},
		{"ncclKernel_AllReduce", `[]`, `1`, "inputs of a communication to be lists of values and types, found []"},
	} {
		kernel := strings.Replace(call(2, c.name, 1, `, "cat": "kernel"`), `"values": [], "shapes": [], "types": []`,
			fmt.Sprintf(`"values": %s, "shapes": [], "types": %s`, c.values, c.types), 1)
		checkError(t, file(thread, kernel), where+c.want)
	}
}

// A cycle is found when the trace is built.
func TestCycle(t *testing.T) {
	text := file(call(1, thread, 0, ""), call(2, "a", 1, `, "inter_thread_dep": 3`), call(3, "b", 1, ""))
	in := &format.Input{Name: "p.json", Reader: strings.NewReader(text)}
	_, err := read([]*format.Input{in}, format.ReadOptions{Warn: t.Logf})
	if err == nil || !strings.Contains(err.Error(), "node 2 waits for node 3") {
		t.Errorf("got %v", err)
	}
}

func FuzzRead(f *testing.F) {
	f.Add(file(call(1, thread, 0, ""), call(2, "nccl:send", 1, `, "inter_thread_dep": 1`),
		call(3, "ncclDevKernel_SendRecv", 2, `, "cat": "", "pg_name": "1", "exclusive_dur": 1.5, "stream": null`)))
	f.Add(file(call(2, "## process_group:init ##", 1, `, "cat": null, "sync_dep": [1]`), call(1, thread, 1, "")))
	const tensors = `{"values": [[1,2,0,4,8,"cuda:0"],[[1,2,0,4,8]]], "shapes": [],
 "types": ["Tensor(int)","GenericList[Tensor(int)]"]}`
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
