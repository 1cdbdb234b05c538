package chakra

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/tracedag/tracedag/formats/format"
)

func TestFiles(t *testing.T) {
	folder := []string{"a.01.et", "a.0.json", "a.et", "notes", "a.comm_groups.json"}
	var ranks []string
	for rank := range 11 {
		ranks = append(ranks, fmt.Sprintf("a.%d.et", rank))
		folder = append(folder, fmt.Sprintf("a.%d.et", 10-rank))
	}
	all := strings.Join(ranks, " ") + " a.comm_groups.json"
	gap := []string{"x.0.et", "x.2.et"}
	two := append(slices.Clone(folder), "b.0.et.gz", "b.1.et.zst", "b.x.et")
	for _, c := range []struct {
		format format.Format
		name   string
		folder []string
		want   string
	}{
		{Format, "", folder, all},
		{Format, "a.0.et", folder, all},
		{Format, "a.2.et", folder, "a.2.et"},
		{Format, "a.et", folder, "a.et"},
		{Format, "b.0.et.gz", two, "b.0.et.gz b.1.et.zst"},
		{Format, "", two, "expected one trace in the folder, found 2 with the prefixes a, b: name the file of rank 0"},
		{Format, "", []string{"notes"}, ""},
		{Format, "", gap, "the file of rank 1 is missing"},
		{Format, "x.0.et", gap, "x.0.et, for the file of rank 1 is missing"},
		{JSON, "", folder, "a.0.json a.comm_groups.json"},
	} {
		names, err := c.format.Files(c.name, c.folder)
		got := strings.Join(names, " ")
		if err != nil {
			got = strings.Join(append(names, err.Error()), ", for ")
		}
		if got != c.want {
			t.Errorf("%s: the files of %q are %s, want %s", c.format.Name, c.name, got, c.want)
		}
	}
}

func TestByRank(t *testing.T) {
	content := wire(&File{Nodes: []Node{collectiveNode("1")}})
	for _, c := range []struct {
		names, want string
	}{
		{"x.1.et x.0.et", ""},
		{"x.5.et", ""},
		{"anything", ""},
		{"x.0.et x.2.et", "x.0.et: files: the file of rank 1 is missing"},
		{"x.1.et x.2.et", "x.1.et: files: the file of rank 0 is missing"},
		{"x.0.et y.0.et", "y.0.et: files: expected one file of rank 0, found also x.0.et"},
		{"x.0.et x.et", "x.et: files: expected a file name with a rank number, as in PREFIX.0.et"},
	} {
		var inputs []*format.Input
		for _, name := range strings.Fields(c.names) {
			inputs = append(inputs, input(name, content))
		}
		_, err := Format.Read(inputs, quiet)
		if c.want == "" && err != nil || c.want != "" && (err == nil || err.Error() != c.want) {
			t.Errorf("%s: error %v, want %s", c.names, err, c.want)
		}
	}
}

// The file of groups beside a trace counts, unless another is named.
func TestGroupsBeside(t *testing.T) {
	content := wire(&File{Nodes: []Node{collectiveNode("1")}})
	for _, named := range []bool{false, true} {
		o, want := quiet, "[1 0]"
		if named {
			want = "[0 1]"
			o.Own, o.OpenFile = namedGroups(`{"1": [0, 1]}`)
		}
		trace, err := Format.Read([]*format.Input{input("x.0.et", content), input("x.1.et", content),
			input("dir/x.comm_groups.json", []byte(`{"1": [1, 0]}`))}, o)
		if err != nil {
			t.Fatal(err)
		}
		if got := fmt.Sprint(trace.Comms[1].Members()); got != want {
			t.Errorf("members %s, want %s", got, want)
		}
	}
}

// A trace is detected by its beginning, and nothing else is taken for one.
func TestDetect(t *testing.T) {
	var files []string
	for _, pattern := range []string{"testdata/*/*.et", "testdata/et/*.json", "*/testdata/*.et"} {
		names, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, names...)
	}
	for _, name := range files {
		content := readFile(t, name)
		if strings.Contains(name, "bad/") || strings.Contains(name, "comm_group") {
			continue
		}
		for _, size := range []int{len(content), 200} {
			head := content[:min(len(content), size, format.DetectBytes)]
			if size == 200 && len(content) > 200 && strings.HasSuffix(name, ".json") {
				continue // where a value begins may be anywhere
			}
			binary, text := detect(head), detectJSON(head)
			if binary != strings.HasSuffix(name, ".et") || text == binary {
				t.Errorf("%s, of which %d bytes are seen, is detected as binary: %v, as JSON: %v", name, len(head), binary, text)
			}
		}
	}
	for _, head := range []string{
		"", "\x00", "\x00\x00\x00", "{", "{}", "[]", "[1]", "{}{}", `{"version":"1"}`, `{"nodes":[{"type":"COMP_NODE"}]}`,
		`{"schema":"1.1.1-chakra.0.0.4","nodes":[]}`, `{"1":[0,1]}`, `{"name":"x","type":"module"}`,
		`{"workload_graph":[{"Id":1}]}`, `{"attr":[{"name":"x"}]}`, "\n\x08\n\x06abcdef", "num_ranks 2\n", "2\n0 1\n1 0\n", "PAR1",
		strings.Repeat("0 1\n", 2000), strings.Repeat("\n", 5000), strings.Repeat("\x01\n", 3000),
		"VEF3 4 5 0 0 0\n", "Sizes\n1 2\n", "MPI_Init:1:2\n", "\x7f\x10\x00\x00\x00\x00\x00\x00",
		"8\n" + strings.Repeat("1234567 ", 200),
	} {
		head = head[:min(len(head), format.DetectBytes)]
		if detect([]byte(head)) || detectJSON([]byte(head)) {
			t.Errorf("%.40q is taken for a trace: binary %v, JSON %v", head, detect([]byte(head)), detectJSON([]byte(head)))
		}
	}
	for _, head := range []string{
		`{"id":1,"type":"COMP_NODE"`, "\ufeff [ {\"version\":\"1\"},\n{\"type\" : \"COMM_COLL_NODE\"}", `{"attr":[{"name":"x","int64_val":`,
		`{"attr":[{"name":"x","stringVal":"cut`, "{}\n{\"data_deps\":[1],\"type\":\"COMP_NODE\"}",
	} {
		if !detectJSON([]byte(head)) {
			t.Errorf("%q is not taken for JSON", head)
		}
	}
}

// JSON is read in all forms that protobuf's mapping allows.
func TestJSONForms(t *testing.T) {
	want := `{"version":"1"}{"id":"5","name":"n","type":"COMP_NODE","dataDeps":["7"],"durationMicros":"3","attr":[` +
		`{"name":"a","int32Val":-2},{"name":"b","doubleVal":1.5},{"name":"c","bytesVal":"+/8="},{"name":"d","floatVal":"NaN"}]}` +
		`{"id":"7"}`
	for name, text := range map[string]string{
		"lines": `{"version":"1"}` + "\n" + `{"id":5,"name":"n","type":4,"data_deps":[7],"duration_micros":3.0,"attr":[` +
			`{"name":"a","int32_val":"-2"},{"name":"b","doubleVal":"1.5"},{"name":"c","bytesVal":"-_8"},{"floatVal":"NaN","name":"d"}]}` +
			"\r\n" + `{"id":"7","name":null,"attr":[]}` + "\n",
		"list": "\ufeff[\n" + `{"version":"1"},{"id":"5e0","name":"n","type":"COMP_NODE","dataDeps":["7"],"durationMicros":30e-1,"attr":[` +
			`{"name":"a","int32Val":-2},{"name":"b","doubleVal":15e-1},{"name":"c","bytesVal":"+/8"},{"name":"d","floatVal":"NaN"}]},` +
			`{"id":7}]`,
		"as the jsonizer": want,
	} {
		trace, err := JSON.Read([]*format.Input{input(name, []byte(text))}, quiet)
		if err != nil {
			t.Error(err)
			continue
		}
		got := strings.NewReplacer("\n", "", " ", "").Replace(string(encode(t, &JSON, trace)[".0.json"]))
		if got != want {
			t.Errorf("%s: read\n%s, want\n%s", name, got, want)
		}
	}
	trace, err := JSON.Read([]*format.Input{input("x", []byte(`{"id":"1","type":"COMP_NODE"}{"id":"2","type":"COMP_NODE"}`))}, quiet)
	if err != nil || trace.Ranks[0].Len() != 2 {
		t.Errorf("without metadata: error %v", err)
	}
}

func TestBadJSON(t *testing.T) {
	for text, want := range map[string]string{
		"":                                     `x:1: message: expected Chakra's messages in JSON, found EOF`,
		"{}\n{\"id\":":                         `x:2: message: expected Chakra's messages in JSON, found unexpected EOF`,
		"{}\n\n{\"x\":1}":                      `x:3: message: expected Chakra's messages in JSON, found a node with an unknown member "x"`,
		"{}{\"id\":\"-1\"}":                    `x:1: message: expected Chakra's messages in JSON, found id: "-1", not a value of the kind uint64_val`,
		"{}{\"id\":1.5}":                       `x:1: message: expected Chakra's messages in JSON, found id: 1.5, not a value of the kind uint64_val`,
		"{}{\"type\":8}":                       `x:1: message: expected Chakra's messages in JSON, found type: 8, not a type of node`,
		"{}{\"type\":\"x\"}":                   `x:1: message: expected Chakra's messages in JSON, found type: "x", not a type of node`,
		"{}{\"dataDeps\":5}":                   `x:1: message: expected Chakra's messages in JSON, found dataDeps: 5, not a list`,
		"{}{\"id\":1,\"id\":2}":                `x:1: message: expected Chakra's messages in JSON, found a node with two members "id"`,
		"{}{\"ctrlDeps\":[],\"ctrl_deps\":[]}": `x:1: message: expected Chakra's messages in JSON, found a node with two members "ctrl_deps"`,
		"{}7":                                  `x:1: message: expected Chakra's messages in JSON, found a node that is no object`,
		"{}{\"attr\":[{\"boolVal\":1}]}":       `x:1: message: expected Chakra's messages in JSON, found attr: boolVal: 1, not a value of the kind bool_val`,
		"{}{\"attr\":[{\"int32Val\":3000000000}]}": `x:1: message: expected Chakra's messages in JSON, ` +
			`found attr: int32Val: 3000000000, not a value of the kind int32_val`,
		"{}{\"attr\":[{\"int32Val\":1,\"int64Val\":1}]}": `x:1: message: expected Chakra's messages in JSON, found attr: int64Val: a second value`,
		"{}{\"attr\":[{\"bytesVal\":\"*\"}]}":            `x:1: message: expected Chakra's messages in JSON, found attr: bytesVal: "*", not base64`,
		"[{}":                                            `x:1: message: expected Chakra's messages in JSON, found EOF`,
		"[{}] {}":                                        `x:1: message: expected Chakra's messages in JSON, found more data after the list`,
		"{}\n{\"id\":1,\"dataDeps\":[9]}":                `x:2: graph: expected a dependency on a node of the file, found node 1, which waits for node 9`,
		"{}\n{\"id\":1}\n{\"id\":1}":                     `x:3: graph: expected a number that no other node has, found another node 1`,
		"{}\n{\"name\":\"\xff\"}":                        `x:2: message: expected Chakra's messages in JSON, found text in invalid UTF-8`,
	} {
		if _, err := JSON.Read([]*format.Input{input("x", []byte(text))}, quiet); err == nil || err.Error() != want {
			t.Errorf("%q: error\n%v, want\n%s", text, err, want)
		}
	}
}

// A file may come through a pipe.
func TestPipe(t *testing.T) {
	file, err := os.Open("testdata/et/stg_llama_dp2tp2pp2.0.et")
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	trace, err := Format.Read([]*format.Input{{Name: "<stdin>", Reader: file}}, quiet)
	if err != nil || trace.Ranks[0].Len() != 51 {
		t.Errorf("error %v", err)
	}
}
