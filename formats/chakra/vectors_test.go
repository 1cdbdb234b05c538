package chakra

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/tracedag/tracedag/dag"
	"github.com/tracedag/tracedag/formats/format"
)

// vector is the description of a file in manifest.json.
type vector struct {
	File      string          `json:"file"`
	JSON      string          `json:"json"`
	SHA256    string          `json:"sha256"`
	Frames    int             `json:"frames"`
	Nodes     int             `json:"nodes"`
	Version   string          `json:"version"`
	Types     map[string]int  `json:"node_types"`
	Attrs     map[string]int  `json:"attrs"`
	IDs       []any           `json:"ids_in_file_order"`
	Waves     [][]json.Number `json:"ready_waves_data_and_ctrl"`
	Identical *bool           `json:"reencode_identical"`
	Text      string          `json:"input"`
}

// vectors returns the good files of testdata, and those of other projects where their folder is known.
func vectors(t *testing.T) map[string]vector {
	folders := []string{"testdata"}
	if foreign := os.Getenv("TRACEDAG_VECTORS"); foreign != "" {
		folders = append(folders, filepath.Join(foreign, "chakra"))
	} else {
		t.Log("TRACEDAG_VECTORS is not set: the samples of other projects are not read")
	}
	all := make(map[string]vector)
	for _, folder := range folders {
		content, err := os.ReadFile(filepath.Join(folder, "manifest.json"))
		if err != nil {
			t.Fatal(err)
		}
		d := json.NewDecoder(bytes.NewReader(content))
		d.UseNumber()
		var list []vector
		if err := d.Decode(&list); err != nil {
			t.Fatal(err)
		}
		for _, v := range list {
			if v.SHA256 == "" { // bad, in an old schema, or compressed
				continue
			}
			name := v.File
			v.File = filepath.Join(folder, v.File)
			if v.JSON != "" {
				v.JSON = filepath.Join(folder, v.JSON)
			}
			all[name] = v
		}
	}
	return all
}

func readFile(t testing.TB, name string) []byte {
	t.Helper()
	content, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return content
}

// Nothing of a file is lost on the way through the store, as protobuf or as JSON.
func TestRoundTrip(t *testing.T) {
	for name, v := range vectors(t) {
		t.Run(name, func(t *testing.T) {
			content := readFile(t, v.File)
			if !Format.Detect(content[:min(len(content), format.DetectBytes)]) {
				t.Error("not detected")
			}
			trace, err := Format.Read([]*format.Input{input(v.File, content)}, quiet)
			if err != nil {
				t.Fatal(err)
			}
			if v.Identical != nil && !*v.Identical {
				f := messages(t, content)
				content = wire(&f)
			}
			stored := throughStore(t, trace)
			if got := encode(t, &Format, stored)[".0.et"]; !bytes.Equal(got, content) {
				t.Errorf("%d bytes become %d others", len(content), len(got))
			}
			if l := Format.Losses(stored); l != nil {
				t.Errorf("losses: %v", l)
			}
			checkSound(t, stored)
			if v.JSON != "" {
				checkJSON(t, v, stored, content)
			}
		})
	}
}

// checkJSON checks that a trace becomes the JSON of a vector, and that becomes the content.
func checkJSON(t *testing.T, v vector, stored *dag.Trace, content []byte) {
	text := readFile(t, v.JSON)
	if !JSON.Detect(text[:min(len(text), format.DetectBytes)]) {
		t.Error("the JSON is not detected")
	}
	if got := encode(t, &JSON, stored)[".0.json"]; !bytes.Equal(got, text) {
		t.Errorf("the JSON is\n%s, want\n%s", got, text)
	}
	trace, err := JSON.Read([]*format.Input{input(v.JSON, text)}, quiet)
	if err != nil {
		t.Fatal(err)
	}
	want := content
	if strings.Contains(v.File, "noncanonical") { // JSON has no unknown fields
		if l := fmt.Sprint(JSON.Losses(stored)); l != "[1 op: fields and values that Chakra's JSON cannot represent]" {
			t.Errorf("losses as JSON: %v", l)
		}
		f := messages(t, content)
		f.Nodes[len(f.Nodes)-1].Unknown = nil
		want = wire(&f)
	} else if l := JSON.Losses(stored); l != nil {
		t.Errorf("losses as JSON: %v", l)
	}
	if got := encode(t, &Format, throughStore(t, trace))[".0.et"]; !bytes.Equal(got, want) {
		t.Error("what is read from JSON is not the same")
	}
}

// checkSound checks the invariants of every trace that was read.
func checkSound(t testing.TB, trace *dag.Trace) {
	t.Helper()
	for rank := range trace.Ranks {
		if err := trace.Ranks[rank].CheckReferences(); err != nil {
			t.Fatal(err)
		}
	}
	for _, p := range dag.Validate(trace) {
		switch p.Class {
		case dag.BadPeer, dag.UnmatchedSend, dag.UnmatchedRecv: // of ranks whose files are not there
		default:
			t.Error(p)
		}
	}
}

// The files hold what the protobuf library finds in them.
func TestManifest(t *testing.T) {
	for name, v := range vectors(t) {
		t.Run(name, func(t *testing.T) {
			content := readFile(t, v.File)
			if sum := fmt.Sprintf("%x", sha256.Sum256(content)); sum != v.SHA256 {
				t.Fatalf("another file than the manifest's: %s", sum)
			}
			f := messages(t, content)
			if len(f.Nodes) != v.Nodes || v.Frames != v.Nodes+1 || f.Metadata.Version != v.Version {
				t.Errorf("%d nodes, version %q", len(f.Nodes), f.Metadata.Version)
			}
			types, attrs := make(map[string]int), make(map[string]int)
			for i := range f.Nodes {
				n := &f.Nodes[i]
				types[n.Type.String()]++
				for k := range n.Attr {
					kind := n.Attr[k].Kind.wireName()
					if n.Attr[k].Kind == NoValue {
						kind = "None"
					}
					attrs[n.Attr[k].Name+":"+kind]++
				}
				if i < len(v.IDs) && v.IDs[i] != "..." && fmt.Sprint(n.ID) != fmt.Sprint(v.IDs[i]) {
					t.Errorf("node %d has the number %d, want %v", i, n.ID, v.IDs[i])
				}
			}
			if !reflect.DeepEqual(types, v.Types) || !reflect.DeepEqual(attrs, v.Attrs) {
				t.Errorf("types %v, want %v; attributes %v, want %v", types, v.Types, attrs, v.Attrs)
			}
			if v.Waves == nil {
				return
			}
			trace, err := Format.Read([]*format.Input{input(v.File, content)}, quiet)
			if err != nil {
				t.Fatal(err)
			}
			for i, wave := range waves(trace.Ranks[0]) {
				var want []string
				if i < len(v.Waves) {
					for _, id := range v.Waves[i] {
						want = append(want, id.String())
					}
				}
				if !slices.Equal(wave, want) {
					t.Fatalf("the nodes %v are ready in wave %d, want %v", wave, i, want)
				}
			}
		})
	}
}

// waves returns the numbers of the nodes that become ready when all of the earlier waves are done.
func waves(r *dag.Rank) [][]string {
	level := make([]int, r.Len())
	var all [][]string
	for left := r.Len(); left > 0; {
		var wave []string
		var ops []int
	ops:
		for i := range level {
			if level[i] != 0 {
				continue
			}
			for _, off := range r.Deps.Of(i) {
				if level[i-int(off)] == 0 {
					continue ops
				}
			}
			wave, ops = append(wave, fmt.Sprint(r.ID(i))), append(ops, i)
		}
		for _, i := range ops {
			level[i] = len(all) + 1
		}
		left -= len(ops)
		all = append(all, wave)
	}
	return all
}

// Errors in a file state their position.
func TestBad(t *testing.T) {
	for _, c := range []struct{ name, want, lenient string }{
		{"empty", "offset 0: frame: expected a trace, which begins with the metadata of its file, found an empty file", ""},
		{"truncated_body", "offset 191: frame: expected a message of 29 bytes, found 26 to the end of the file",
			"offset 191: expected a message of 29 bytes, found 26 to the end of the file: the rest is skipped"},
		{"truncated_length", "offset 221: frame: expected the length of a message, found unexpected EOF",
			"offset 221: expected the length of a message, found unexpected EOF: the rest is skipped"},
		{"cycle", "offset 9: graph: expected acyclic dependencies, found a cycle of 3: node 1 waits for node 3, which waits for " +
			"node 2, which waits for node 1", ""},
		{"self_dep", "offset 9: graph: expected acyclic dependencies, found node 1, which waits for itself", ""},
		{"dangling_data_dep", "offset 36: graph: expected a dependency on a node of the file, found node 2, which waits for node 77",
			"node 2 has a data dependency on a missing node; the dependency is skipped"},
		{"duplicate_id", "offset 36: graph: expected a number that no other node has, found another node 1", ""},
		{"garbage_body", "offset 9: message: expected the tag of a field of a node, found unexpected EOF", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			name := filepath.Join("testdata/bad", c.name+".et")
			_, err := Format.Read([]*format.Input{input(name, readFile(t, name))}, quiet)
			if err == nil || err.Error() != name+": "+c.want {
				t.Errorf("error %v, want %s", err, c.want)
			}
			var warnings []string
			o := options(&warnings)
			o.Lenient = true
			trace, err := Format.Read([]*format.Input{input(name, readFile(t, name))}, o)
			switch {
			case c.lenient == "" && (err == nil || err.Error() != name+": "+c.want):
				t.Errorf("leniently: error %v, want %s", err, c.want)
			case c.lenient != "" && (err != nil || len(warnings) != 1 || warnings[0] != name+": "+c.lenient):
				t.Errorf("leniently: error %v, warnings %q, want %q", err, warnings, c.lenient)
			case c.lenient != "":
				checkSound(t, trace)
			}
		})
	}
}

// Nodes of today without metadata before them are not taken for a schema of old.
func TestNoMetadata(t *testing.T) {
	content := wire(&File{Nodes: []Node{{ID: 1, Name: "a", Type: CompNode, Attr: []Attr{Bool(hostName, false)}}}})[1:]
	_, err := Format.Read([]*format.Input{input("x", content)}, quiet)
	if want := "x: offset 0: message: expected the metadata of a Chakra trace, found a node"; err == nil || err.Error() != want {
		t.Errorf("error %v, want %s", err, want)
	}
	if _, err := Format.Read(nil, quiet); err == nil {
		t.Error("no error without files")
	}
}

// Unusual but valid files are read and written unchanged.
func TestOdd(t *testing.T) {
	for _, c := range []struct{ name, want, warning, compat string }{
		{"metadata_only", "", "", ""},
		{"empty_metadata", "1 calc 5us\n", "", ""},
		{"zero_length_frame_middle", "0 calc marker stream=2\n1 calc 5us\n2 calc 5us\n", "", ""},
		{"dangling_ctrl_dep", "1 calc 5us\n2 calc 5us\n",
			"node 2 has a control dependency on a missing node; the dependency is skipped",
			"offset 36: graph: expected a dependency on a node of the file, found node 2, which waits for node 77"},
	} {
		t.Run(c.name, func(t *testing.T) {
			name := filepath.Join("testdata/bad", c.name+".et")
			content := readFile(t, name)
			var warnings []string
			trace, err := Format.Read([]*format.Input{input(name, content)}, options(&warnings))
			if err != nil {
				t.Fatal(err)
			}
			if got := strings.Join(warnings, "\n"); got != c.warning && got != name+": "+c.warning {
				t.Errorf("warnings %q, want %q", got, c.warning)
			}
			if got := lines(trace.Ranks[0]); got != c.want {
				t.Errorf("read\n%s, want\n%s", got, c.want)
			}
			if got := encode(t, &Format, throughStore(t, trace))[".0.et"]; !bytes.Equal(got, content) {
				t.Errorf("written as %q, want %q", got, content)
			}
			_, err = Format.Read([]*format.Input{input(name, content)}, format.ReadOptions{Compat: true, Warn: t.Logf})
			if c.compat == "" && err != nil || c.compat != "" && (err == nil || err.Error() != name+": "+c.compat) {
				t.Errorf("as the reference: error %v, want %q", err, c.compat)
			}
		})
	}
}

// Files in old schemas become the same traces as current files.
func TestOldSchemas(t *testing.T) {
	for name, want := range map[string]string{
		"v0.0.1": `{}{"name":"c","type":"COMP_NODE","durationMicros":"5","attr":[{"name":"tensor_loc","uint64Val":"1"},` +
			`{"name":"tensor_size","uint64Val":"100"},{"name":"num_ops","int64Val":"10"}]}` +
			`{"id":"1","name":"ar","type":"COMM_COLL_NODE","dataDeps":["0"],"attr":[{"name":"comm_type","int64Val":"0"},` +
			`{"name":"involved_dim","boolList":{"values":[true,true,false]}},{"name":"pg_name","stringVal":"3"},` +
			`{"name":"comm_size","int64Val":"65536"},{"name":"comm_priority","int32Val":1}]}` +
			`{"id":"2","name":"s","type":"COMM_SEND_NODE","dataDeps":["0","1"],"attr":[{"name":"comm_src","int32Val":0},` +
			`{"name":"comm_dst","int32Val":1},{"name":"comm_size","int64Val":"1024"},{"name":"comm_tag","int32Val":7}]}`,
		"v0.0.2": `{}{"name":"c","type":"COMP_NODE","durationMicros":"5","attr":[{"name":"num_ops","int64Val":"10"}]}` +
			`{"id":"1","name":"ag","type":"COMM_COLL_NODE","dataDeps":["0"],"attr":[{"name":"comm_type","int64Val":"2"},` +
			`{"name":"comm_size","int64Val":"65536"}]}`,
		"v0.0.3_july2023": `{}{"name":"c","type":"COMP_NODE","durationMicros":"5","attr":[{"name":"is_cpu_op","boolVal":false}]}` +
			`{"id":"1","name":"ag","type":"COMM_COLL_NODE","dataDeps":["0"],"attr":[{"name":"comm_type","int64Val":"2"},` +
			`{"name":"comm_size","int64Val":"65536"},{"name":"involved_dim","boolList":{"values":[true,false]}}]}`,
		"v0.0.3_aug2023": `{"attr":[{"name":"schema","stringVal":"0.0.3"}]}` +
			`{"name":"c","type":"COMP_NODE","durationMicros":"5","attr":[{"name":"is_cpu_op","boolVal":false}]}` +
			`{"id":"1","name":"rs","type":"COMM_COLL_NODE","dataDeps":["0"],"attr":[{"name":"comm_type","int64Val":"7"},` +
			`{"name":"comm_size","uint64Val":"65536"}]}`,
		"v0.0.4_first_day": `{"attr":[{"name":"schema","stringVal":"0.0.4-pre"}]}` +
			`{"name":"c","type":"COMP_NODE","durationMicros":"5"}`,
	} {
		t.Run(name, func(t *testing.T) {
			file := filepath.Join("testdata/old_schema", name+".et")
			content := readFile(t, file)
			if !Format.Detect(content) {
				t.Error("not detected")
			}
			var warnings []string
			trace, err := Format.Read([]*format.Input{input(file, content)}, options(&warnings))
			if err != nil {
				t.Fatal(err)
			}
			if !strings.Contains(strings.Join(warnings, "\n"), "has the old schema of Chakra 0.0.") {
				t.Errorf("warnings %q", warnings)
			}
			var objects strings.Builder
			d := json.NewDecoder(bytes.NewReader(encode(t, &JSON, throughStore(t, trace))[".0.json"]))
			for d.More() {
				var object json.RawMessage
				if err := d.Decode(&object); err != nil {
					t.Fatal(err)
				}
				var compact bytes.Buffer
				if err := json.Compact(&compact, object); err != nil {
					t.Fatal(err)
				}
				objects.Write(compact.Bytes())
			}
			if objects.String() != want {
				t.Errorf("read\n%s, want\n%s", objects.String(), want)
			}
		})
	}
}
