package format

import (
	"io"
	"slices"
	"strings"
	"testing"

	"github.com/tracedag/tracedag/dag"
)

func TestList(t *testing.T) {
	starts := func(text string) func([]byte) bool {
		return func(head []byte) bool { return strings.HasPrefix(string(head), text) }
	}
	read := func([]*Input, ReadOptions) (*dag.Trace, error) { return nil, nil }
	write := func(io.Writer, *dag.Trace, WriteOptions) error { return nil }
	list := List{
		{Name: "one", Extensions: []string{".one", ".x"}, Detect: starts("1"), Read: read, Write: write},
		{Name: "two", Extensions: []string{".two", ".x"}, Detect: starts("12"), Read: read},
		{Name: "three", Extensions: []string{".three", ".x"}, Write: write},
		{Name: "pages", WriteFiles: func(func(string) (io.Writer, error), *dag.Trace, WriteOptions) error { return nil }},
	}
	for name, want := range map[string]bool{"one": true, "two": true, "three": true, "": false, "ONE": false, "four": false} {
		if got := list.Named(name); (got != nil) != want || want && got.Name != name {
			t.Errorf("Named(%q) = %v", name, got)
		}
	}
	for path, want := range map[string]string{
		"a.one": "one", "b/a.ONE": "one", "a.x": "one", "a.two": "two", "a.three": "three", "one": "", "": "", "a.one/b": "",
	} {
		got := ""
		if f := list.ForPath(path); f != nil {
			got = f.Name
		}
		if got != want {
			t.Errorf("ForPath(%q) = %q, want %q", path, got, want)
		}
	}
	for head, want := range map[string][]string{"1": {"one"}, "12": {"one", "two"}, "2": {}, "": {}} {
		if got := list.Detect([]byte(head)).Names(); !slices.Equal(got, want) {
			t.Errorf("Detect(%q) = %q, want %q", head, got, want)
		}
	}
	if got := list.Readable().Names(); !slices.Equal(got, []string{"one", "two"}) {
		t.Errorf("readable: %q", got)
	}
	if got := list.Writable().Names(); !slices.Equal(got, []string{"one", "three", "pages"}) {
		t.Errorf("writable: %q", got)
	}
}
