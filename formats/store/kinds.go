package store

import (
	"fmt"
	"slices"

	"github.com/tracedag/tracedag/dag"
)

// Kinds returns the kinds of op that the trace may have: those that it has, in a file of this package. It looks at all
// pages of the column without decoding them, and so makes sure that there are pages for as many ops as the footer tells,
// before anyone makes room for those.
func (f *File) Kinds() ([]dag.Kind, error) {
	found := make([]kindSet, len(f.groups))
	err := parallel(len(f.groups), func(i int) error {
		d := f.decoder()
		defer f.decoders.Put(d)
		return f.addKinds(&found[i], d, &f.groups[i].chunks[colKind])
	})
	if err != nil {
		return nil, f.wrap(fmt.Errorf("column kind: %w", err))
	}
	var kinds []dag.Kind
	for kind := range dag.Kind(dag.NumKinds) {
		if slices.ContainsFunc(found, func(s kindSet) bool { return s[kind] }) {
			kinds = append(kinds, kind)
		}
	}
	return kinds, nil
}

// kindSet is a set of kinds.
type kindSet [dag.NumKinds]bool

// addKinds adds the kinds that a chunk may have: those in its dictionary, or all where there are pages without.
func (f *File) addKinds(set *kindSet, d *decoder, c *chunkMeta) error {
	return f.eachPage(d, c, func(h pageHeader, body []byte) error {
		if h.typ == pageDictionary {
			body, err := d.dictionaryPage(h, body, c)
			if err != nil {
				return err
			}
			kinds, err := loadLabels[dag.Kind](nil, body, int(h.values), parseKind)
			for _, kind := range kinds {
				set[kind] = true
			}
			return err
		}
		if p := (page{encoding: h.encoding}); !p.hasNumbers() {
			for kind := range set {
				set[kind] = true
			}
		}
		return nil
	})
}
