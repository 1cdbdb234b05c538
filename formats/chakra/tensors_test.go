package chakra

import (
	"fmt"
	"strings"
	"testing"

	"github.com/tracedag/tracedag/formats/format"
)

func TestTensors(t *testing.T) {
	for _, test := range []struct {
		attrs         []Attr
		reads, writes string
		err           string
	}{
		{nil, "[]", "[]", ""},
		{[]Attr{Bool(hostName, false), Strings(inputsName, "a", "1048576.0", "b", "12"), Strings(outputsName, "c", "0")},
			"[{a 1048576} {b 12}]", "[{c 0}]", ""},
		{[]Attr{Strings(outputsName, "c", "1e3"), String("twice", "a"), String("twice", "b")}, "[]", "[{c 1000}]", ""},
		{[]Attr{Strings(inputsName, "a", "9.9"), {Name: "odd", Unknown: []byte{0x78, 1}}}, "[{a 9}]", "[]", ""},
		{[]Attr{String(inputsName, "a"), Strings(outputsName)}, "[]", "[]", ""},
		{[]Attr{Strings(inputsName, "a")}, "", "", "inputs of rank 0, op 0: expected names and sizes, found 1 texts"},
		{[]Attr{Strings(outputsName, "a", "-1")}, "", "", `size of tensor "a": expected a number of bytes, found "-1"`},
		{[]Attr{Strings(outputsName, "a", "1e19")}, "", "", `expected a number of bytes, found "1e19"`},
		{[]Attr{Strings(outputsName, "a", "NaN")}, "", "", `expected a number of bytes, found "NaN"`},
	} {
		file := File{Nodes: []Node{{ID: 7, Name: "n", Type: CompNode, DurationMicros: 1, Attr: test.attrs}}}
		trace, err := Build([]File{file}, format.ReadOptions{}, []string{"f"})
		if err != nil {
			t.Fatal(err)
		}
		reads, writes, err := Tensors(trace)(0, 0)
		if test.err != "" {
			if err == nil || !strings.Contains(err.Error(), test.err) {
				t.Errorf("%v: got error %v, expected %s", test.attrs, err, test.err)
			}
			continue
		}
		if err != nil || fmt.Sprint(reads) != test.reads || fmt.Sprint(writes) != test.writes {
			t.Errorf("%v: got %v, %v, %v, expected %s, %s", test.attrs, reads, writes, err, test.reads, test.writes)
		}
	}
}
