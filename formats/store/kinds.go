package store

import (
	"slices"

	"github.com/tracedag/tracedag/dag"
	"github.com/tracedag/tracedag/internal/parquet"
)

// kinds returns the kinds of op that the trace may have; for files of this package, exactly the kinds that it has.
// It checks all pages of the column without decoding them. That ensures that the file has as many ops as the
// footer states, before a caller allocates memory for them.
func (f *File) kinds() ([]dag.Kind, error) {
	found := make([]kindSet, len(f.groups))
	err := parallel(len(f.groups), func(i int) error {
		d := decoders.get()
		defer decoders.put(d)
		return f.addKinds(&found[i], d, &f.groups[i])
	})
	if err != nil {
		return nil, f.wrap(inColumn("kind", err))
	}
	return dag.KindsOf(func(kind dag.Kind) bool {
		return slices.ContainsFunc(found, func(s kindSet) bool { return s[kind] })
	}), nil
}

// kindSet is a set of kinds.
type kindSet [dag.NumKinds]bool

// addKinds adds the kinds that a chunk may have: those in its dictionary, or all if it has pages without a
// dictionary. Unknown ones are errors only where a row has one, which a reader of the column finds.
func (f *File) addKinds(set *kindSet, d *decoder, g *group) error {
	raw, err := f.chunk(d, g, colKind)
	if err != nil {
		return err
	}
	all, err := d.Dictionary(&g.chunks[colKind], raw, func(body []byte, n int) error {
		return parquet.PlainTexts(body, n, func(_ int, s string) error {
			if kind, ok := dag.ParseKind(s); ok {
				set[kind] = true
			}
			return nil
		})
	})
	for kind := range set {
		set[kind] = set[kind] || !all
	}
	return f.located(err)
}
