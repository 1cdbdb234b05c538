package pytorch

import (
	"bytes"
	"cmp"
	"compress/gzip"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/tracedag/tracedag/formats/chakra/nodejson"
	"github.com/tracedag/tracedag/formats/format"
)

// expectation is what an independent program found in a trace.
type expectation struct {
	Schema  string         `json:"schema"`
	Nodes   int            `json:"nodes"`
	Threads map[string]int `json:"threads"`
	Groups  []processGroup `json:"process_groups"`
	Comms   json.RawMessage
	Counts  [][5]any `json:"comms_counts"`
}

type foundComm struct {
	ID    uint64  `json:"id"`
	RFID  int64   `json:"rf_id"`
	What  string  `json:"what"`
	Name  string  `json:"name"`
	Bytes int64   `json:"bytes"`
	Group *string `json:"pg"`
	Seq   *int64  `json:"seq"`
}

// vectorFolder returns the folder of the vectors of execution traces.
func vectorFolder(t *testing.T) string {
	folder := os.Getenv("TRACEDAG_VECTORS")
	if folder == "" {
		t.Skip("TRACEDAG_VECTORS is not set: the traces of other projects are not read")
	}
	return filepath.Join(folder, "pytorch-et")
}

// content returns the content of a file, decompressed.
func content(t *testing.T, name string) []byte {
	t.Helper()
	data, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	if bytes.HasPrefix(data, []byte{0x1f, 0x8b}) {
		r, err := gzip.NewReader(bytes.NewReader(data))
		if err != nil {
			t.Fatal(err)
		}
		if data, err = io.ReadAll(r); err != nil {
			t.Fatal(err)
		}
	}
	return data
}

func input(t *testing.T, name string) *format.Input {
	data := content(t, name)
	return &format.Input{Name: name, Reader: bytes.NewReader(data), Head: data[:min(len(data), format.DetectBytes)]}
}

// spy keeps the communication of nodes as they are read.
type spy struct {
	*trace
	comms []foundComm
}

func (s *spy) Node(line int64, value json.RawMessage) error {
	if err := s.trace.Node(line, value); err != nil {
		return err
	}
	o := &s.ops[len(s.ops)-1]
	what, _, _ := strings.Cut(o.Name, ":")
	if o.Name != record && what != "c10d" && !isLibrary(o.Name) {
		return nil
	}
	var n node
	if err := json.Unmarshal(value, &n); err != nil {
		return err
	}
	if s.isFlat() {
		n.nest()
	} else if err := n.unnest(); err != nil {
		return err
	}
	c := foundComm{ID: o.ID, RFID: o.rf, What: what, Name: o.Name}
	c.Bytes, _ = tensorBytes(n.in)
	if k := o.talk; o.Name == record {
		call := talk{seq: -1}
		c.Name = call.fromRecord(&n)
		c.Seq = &call.seq
		if k != nil {
			c.Bytes = k.bytes
		}
		if call.group != "" {
			c.Group = &call.group
		}
	}
	s.comms = append(s.comms, c)
	return nil
}

func TestVectors(t *testing.T) {
	folder := vectorFolder(t)
	for _, set := range []string{"simple_add", "ddp_cnn2", "dlrm8", "schemas"} {
		var all map[string]expectation
		var ranks struct{ Ranks map[string]expectation }
		text := content(t, filepath.Join(folder, set, "expected.json"))
		var err error
		if set == "schemas" {
			err = json.Unmarshal(text, &all)
		} else if err = json.Unmarshal(text, &ranks); err == nil {
			all = ranks.Ranks
		}
		if err != nil || len(all) == 0 {
			t.Fatal(set, err)
		}
		for _, name := range slices.Sorted(maps.Keys(all)) {
			want := all[name]
			file := map[string]string{"schemas": name, "dlrm8": "dlrm_eg_" + name + ".json.gz"}[set]
			file = cmp.Or(file, "et_"+name+".json.gz")
			t.Run(set+"/"+name, func(t *testing.T) { checkTrace(t, filepath.Join(folder, set, file), &want) })
		}
	}
}

func checkTrace(t *testing.T, name string, want *expectation) {
	in := input(t, name)
	s := &spy{trace: &trace{file: name}}
	if err := nodejson.Read(context.Background(), in, "nodes", s); err != nil {
		t.Fatal(err)
	}
	if !Format.Detect(in.Head) || s.schema != want.Schema || len(s.ops) != want.Nodes {
		t.Errorf("schema %s with %d nodes, want %s with %d", s.schema, len(s.ops), want.Schema, want.Nodes)
	}
	threads := make(map[string]int)
	for i := range s.ops {
		if o := &s.ops[i]; !strings.HasPrefix(o.Name, "[pytorch|") {
			threads[fmt.Sprint(o.thread)]++
		}
	}
	if !maps.Equal(threads, want.Threads) {
		t.Errorf("threads %v, want %v", threads, want.Threads)
	}
	if fmt.Sprint(s.groups) != fmt.Sprint(want.Groups) {
		t.Errorf("groups %v, want %v", s.groups, want.Groups)
	}
	slices.SortFunc(s.comms, func(a, b foundComm) int { return cmp.Compare(a.ID, b.ID) })
	if want.Counts != nil {
		checkCounts(t, s.comms, want.Counts)
		return
	}
	var comms []foundComm
	if err := json.Unmarshal(want.Comms, &comms); err != nil {
		t.Fatal(err)
	}
	show := func(c foundComm) string { text, _ := json.Marshal(c); return string(text) }
	if len(s.comms) != len(comms) {
		t.Fatalf("%d communications, want %d", len(s.comms), len(comms))
	}
	for i := range comms {
		if comms[i].Name == "wait" { // what follows the number of a wait is not its own
			s.comms[i].Seq = comms[i].Seq
		}
		if comms[i].Name == "c10d::allgather_" { // the other program takes the first tensor of each nested list
			s.comms[i].Bytes = comms[i].Bytes
		}
		if got, want := show(s.comms[i]), show(comms[i]); got != want {
			t.Errorf("got  %s\nwant %s", got, want)
		}
	}
}

func checkCounts(t *testing.T, comms []foundComm, want [][5]any) {
	counts := make(map[string]int)
	for _, c := range comms {
		group := "<nil>"
		if c.Group != nil {
			group = *c.Group
		}
		counts[fmt.Sprintf("%v %v %v %v", c.What, c.Name, c.Bytes, group)]++
	}
	expected := make(map[string]int)
	for _, w := range want {
		bytes, _ := w[2].(float64)
		if w[3] == "" {
			w[3] = nil // the group of a wait has no name
		}
		expected[fmt.Sprintf("%v %v %v %v", w[0], w[1], int64(bytes), w[3])] += int(w[4].(float64))
	}
	if !maps.Equal(counts, expected) {
		t.Errorf("got %v, want %v", counts, expected)
	}
}
