package tracefile

import (
	"context"
	"io"
	"path/filepath"
	"testing"

	"github.com/tracedag/tracedag/dag"
	"github.com/tracedag/tracedag/formats/format"
	"github.com/tracedag/tracedag/memory"
)

// TestSmallLimit checks that a format writes with little memory under a small limit of memory, or when asked to.
func TestSmallLimit(t *testing.T) {
	frugal := false
	formats := format.List{{
		Name: "stream", Extensions: []string{".stream"},
		Write: texts.Write,
		WriteSource: func(w io.Writer, _ dag.Source, o format.WriteOptions) error {
			frugal = o.Frugal
			return nil
		},
	}}
	for _, c := range []struct {
		limit       int64
		asked, want bool
	}{{smallLimit - 1, false, true}, {smallLimit, false, false}, {smallLimit, true, true}} {
		o := WriteOptions{Context: memory.WithLimit(context.Background(), c.limit), Frugal: c.asked}
		source := dag.FromTrace(dag.NewBuilder(1).Trace())
		if _, err := WriteSource(formats, filepath.Join(t.TempDir(), "x.stream"), source, o); err != nil {
			t.Fatal(err)
		}
		if frugal != c.want {
			t.Errorf("limit %d, asked %v: frugal %v, expected %v", c.limit, c.asked, frugal, c.want)
		}
	}
}
