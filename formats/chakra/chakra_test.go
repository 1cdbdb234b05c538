package chakra

import (
	"bytes"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/tracedag/tracedag/dag"
	"github.com/tracedag/tracedag/formats/format"
	"github.com/tracedag/tracedag/formats/store"
	_ "github.com/tracedag/tracedag/internal/testheap"
)

// input returns a plain file.
func input(name string, content []byte) *format.Input {
	return &format.Input{Name: name, Reader: bytes.NewReader(content), Head: content[:min(len(content), format.DetectBytes)],
		At: bytes.NewReader(content), Size: int64(len(content))}
}

// options returns options that put warnings into a list.
func options(warnings *[]string) format.ReadOptions {
	return format.ReadOptions{Warn: func(message string, args ...any) {
		*warnings = append(*warnings, fmt.Sprintf(message, args...))
	}}
}

var quiet = format.ReadOptions{Warn: func(string, ...any) {}}

// encode returns the files of a trace, by suffix.
func encode(t testing.TB, f *format.Format, trace *dag.Trace) map[string][]byte {
	t.Helper()
	files := make(map[string]*bytes.Buffer)
	err := f.WriteFiles(func(suffix string) (io.Writer, error) {
		files[suffix] = new(bytes.Buffer)
		return files[suffix], nil
	}, trace, format.WriteOptions{Warn: t.Logf})
	if err != nil {
		t.Fatal(err)
	}
	contents := make(map[string][]byte)
	for suffix, file := range files {
		contents[suffix] = file.Bytes()
	}
	return contents
}

// decode reads the files of a trace that encode returned.
func decode(t testing.TB, f *format.Format, files map[string][]byte, o format.ReadOptions) *dag.Trace {
	t.Helper()
	var inputs []*format.Input
	for _, suffix := range slices.Sorted(maps.Keys(files)) {
		inputs = append(inputs, input("x"+suffix, files[suffix]))
	}
	trace, err := f.Read(inputs, o)
	if err != nil {
		t.Fatal(err)
	}
	return trace
}

// throughStore returns the trace as the store keeps it.
func throughStore(t testing.TB, trace *dag.Trace) *dag.Trace {
	t.Helper()
	var file bytes.Buffer
	if err := store.Write(&file, trace); err != nil {
		t.Fatal(err)
	}
	stored, err := store.Format.Read([]*format.Input{input("store", file.Bytes())}, quiet)
	if err != nil {
		t.Fatal(err)
	}
	return stored
}

// messages returns the messages of a rank's file.
func messages(t testing.TB, content []byte) File {
	t.Helper()
	s := source{name: "file", data: content}
	if err := s.take(quiet); err != nil {
		t.Fatal(err)
	}
	f := File{Metadata: s.meta}
	for k := range s.nodes {
		var w wireNode
		if m := w.parse(s.node(k)); m != nil {
			t.Fatal(s.wrongMessage(k, m))
		}
		n, m := w.node()
		if m != nil {
			t.Fatal(s.wrongMessage(k, m))
		}
		f.Nodes = append(f.Nodes, n)
	}
	return f
}

// wire returns a file with the messages.
func wire(f *File) []byte {
	b := appendFrame(nil, f.Metadata.append)
	for i := range f.Nodes {
		b = appendFrame(b, f.Nodes[i].append)
	}
	return b
}

// lines prints the ops of a rank, one per line, with their nonzero fields.
func lines(r *dag.Rank) string {
	var b strings.Builder
	for i := range r.Kind {
		op := r.Op(i)
		fmt.Fprintf(&b, "%d %v", r.ID(i), op.Kind)
		if op.Subkind != dag.NoSubkind {
			fmt.Fprintf(&b, " %v", op.Subkind)
		}
		for _, f := range []struct {
			name  string
			value int64
		}{
			{"bytes", op.Bytes}, {"peer", int64(op.Peer)}, {"tag", op.Tag}, {"comm", int64(op.Comm)}, {"flops", op.Flops},
			{"stream", int64(op.Stream)}, {"host", int64(op.Host)}, {"dims", int64(op.Dims)},
			{"priority", int64(op.Priority)},
		} {
			if f.value != 0 {
				fmt.Fprintf(&b, " %s=%d", f.name, f.value)
			}
		}
		if op.Duration != 0 {
			fmt.Fprintf(&b, " %v", op.Duration)
		}
		if op.Timed {
			fmt.Fprintf(&b, " [%v %v]", op.MeasuredStart, op.MeasuredEnd)
		}
		for _, off := range r.Deps.Of(i) {
			fmt.Fprintf(&b, " <%d", r.ID(i-int(off)))
		}
		b.WriteByte('\n')
	}
	return b.String()
}
