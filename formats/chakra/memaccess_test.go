package chakra

import (
	"bytes"
	"io"
	"strings"
	"testing"

	"github.com/tracedag/tracedag/dag"
	"github.com/tracedag/tracedag/formats/format"
)

// TestGather writes accesses of a trace of another origin and reads them again: the attribute gather and the location
// survive, and the writer warns about what ASTRA-sim ignores.
func TestGather(t *testing.T) {
	b := dag.NewBuilder(1)
	for _, attrs := range []string{`{"gather":4}`, `{"gather":1}`, "", `{"local":true}`, `{"gather":2,"local":true}`} {
		b.Rank(0).Add(dag.Op{Kind: dag.Mem, Subkind: dag.Store, Bytes: 9, Stream: dataStream, Attrs: attrs})
	}
	trace := b.Trace()
	if l := losses(trace, format.WriteOptions{}, false); len(l) != 0 {
		t.Errorf("losses %v", l)
	}
	var file bytes.Buffer
	var warned []string
	o := format.WriteOptions{Warn: func(message string, _ ...any) { warned = append(warned, message) }}
	create := func(string) (io.Writer, error) { return &file, nil }
	if err := Format.WriteFiles(create, trace, o); err != nil {
		t.Fatal(err)
	}
	if len(warned) != 1 || !strings.Contains(warned[0], "gather or reduce data of several ranks") {
		t.Errorf("warnings %q", warned)
	}
	inputs := []*format.Input{{Name: "x.0.et", Reader: bytes.NewReader(file.Bytes())}}
	read, err := Format.Read(inputs, format.ReadOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for i := range trace.Ranks[0].Len() {
		if got, want := read.Ranks[0].Op(i), trace.Ranks[0].Op(i); got.Attrs != want.Attrs || got.Bytes != want.Bytes {
			t.Errorf("op %d: %+v, expected %+v", i, got, want)
		}
	}
}
