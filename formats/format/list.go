package format

import (
	"path/filepath"
	"slices"
	"strings"

	"github.com/tracedag/tracedag/dag"
	"github.com/tracedag/tracedag/dag/attr"
)

// Default is the name of the default output format: the store, the only format without losses, which also keeps
// the provenance.
const Default = "store"

// List is a set of formats in probe order.
type List []Format

// Named returns the format called name, or nil.
func (l List) Named(name string) *Format {
	for i := range l {
		if l[i].Name == name {
			return &l[i]
		}
	}
	return nil
}

// ForPath returns the first format with the ending of path, or nil. It ignores case.
func (l List) ForPath(path string) *Format {
	ending := strings.ToLower(filepath.Ext(path))
	for i := range l {
		if slices.Contains(l[i].Extensions, ending) {
			return &l[i]
		}
	}
	return nil
}

// Detect returns the readable formats that match head, which is the first DetectBytes bytes of a file or all of a
// shorter one. It returns several formats if the content is ambiguous.
func (l List) Detect(head []byte) List {
	var found List
	for _, f := range l {
		if f.Read != nil && f.Detect != nil && f.Detect(head) {
			found = append(found, f)
		}
	}
	return found
}

// Readable returns the formats that can be read.
func (l List) Readable() List {
	return slices.DeleteFunc(slices.Clone(l), func(f Format) bool { return f.Read == nil })
}

// Writable returns the formats that can be written.
func (l List) Writable() List {
	return slices.DeleteFunc(slices.Clone(l), func(f Format) bool {
		return f.Write == nil && f.WriteFiles == nil
	})
}

// Names returns the names of the formats.
func (l List) Names() []string {
	names := make([]string, len(l))
	for i := range l {
		names[i] = l[i].Name
	}
	return names
}

// Tensors returns the function of the format whose ops have tensors, or nil.
func (l List) Tensors() func(t *dag.Trace) func(rank, op int) (reads, writes []attr.Tensor, err error) {
	for i := range l {
		if l[i].Tensors != nil {
			return l[i].Tensors
		}
	}
	return nil
}
