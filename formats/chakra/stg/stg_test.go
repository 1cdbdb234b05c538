package stg

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tracedag/tracedag/formats/format"
)

// The files in testdata, and what STG's other backend makes of the same graphs, are compared in package dialects.

func readText(text string) error {
	in := &format.Input{Name: "g.json", Reader: strings.NewReader(text)}
	_, err := read([]*format.Input{in}, format.ReadOptions{Warn: func(string, ...any) {}})
	return err
}

func TestErrors(t *testing.T) {
	const common = `"id": 1, "name": "n"`
	for node, want := range map[string]string{
		`1`:                                  "g.json:2: expected a node, found json: cannot unmarshal",
		`{"name": "n"}`:                      "g.json:2: expected a node with an id",
		`{"id": -1}`:                         "g.json:2: expected a node, found json: cannot unmarshal number -1",
		`{"id": 1, "node_type": 4}`:          "g.json:2: expected a node, found json: cannot unmarshal number",
		`{` + common + `}`:                   `g.json:2: expected a node_type such as comp_node, found ""`,
		`{` + common + `, "node_type": "x"}`: `such as comp_node, found "x"`,
		`{` + common + `, "node_type": "comp_node", "num_ops": 1}`:                       "a comp_node to have num_ops and",
		`{` + common + `, "node_type": "mem_load_node"}`:                                 "a mem_load_node to have",
		`{` + common + `, "node_type": "coll_comm_node", "comm_type": "REDUCE"}`:         "for comm_type",
		`{` + common + `, "node_type": "comm_send_node", "comm_size": 1}`:                "comm_tag and comm_dst",
		`{` + common + `, "node_type": "comm_recv_node", "comm_size": 1, "comm_src": 1}`: "comm_tag and comm_src",
	} {
		if err := readText("{\"nodes\": [\n" + node + "]}"); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %s", node, err, want)
		}
	}
}

func TestDetect(t *testing.T) {
	for text, want := range map[string]bool{
		`{"nodes": [{"id": 1, "name": "a", "node_type": "comp_node"`: true,
		` { "nodes":[ {"node_type":"mem_load_node"}]}`:               true,
		`{"nodes": [{"id": 1, "name": "a", "ctrl_deps": 1`:           false,
		`{"nodes": []}`: false,
		`{"edges": []}`: false,
	} {
		if got := detect([]byte(text)); got != want {
			t.Errorf("detect(%s) = %v", text, got)
		}
	}
}

func FuzzRead(f *testing.F) {
	names, err := filepath.Glob("testdata/*.json")
	if err != nil || len(names) == 0 {
		f.Fatal("no graphs in testdata")
	}
	for _, name := range names {
		text, err := os.ReadFile(name)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(string(text))
	}
	f.Fuzz(func(t *testing.T, text string) {
		in := &format.Input{Name: "g.json", Reader: strings.NewReader(text)}
		trace, err := read([]*format.Input{in}, format.ReadOptions{Warn: func(string, ...any) {}})
		if err != nil {
			return
		}
		if err := trace.Ranks[0].CheckReferences(); err != nil {
			t.Error(err)
		}
	})
}
