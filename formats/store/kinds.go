package store

import (
	"errors"
	"fmt"
	"slices"

	"github.com/tracedag/tracedag/dag"
)

// Kinds returns the kinds of op that the trace may have: those that it has, in a file of this package. It looks at all
// pages of the column without decoding them, and so makes sure that there are pages for as many ops as the footer tells,
// before anyone makes room for those.
func (f *File) Kinds() ([]dag.Kind, error) {
	var has [dag.NumKinds]bool
	found := make([]kindFinder, len(f.groups))
	err := parallel(len(f.groups), func(i int) error {
		d := f.decoder()
		defer f.decoders.Put(d)
		return found[i].find(f, d, &f.groups[i].chunks[colKind])
	})
	if err != nil {
		return nil, f.wrap(fmt.Errorf("column kind: %w", err))
	}
	for _, group := range found {
		for kind := range has {
			has[kind] = has[kind] || group.may[kind]
		}
	}
	var kinds []dag.Kind
	for kind, has := range has {
		if has {
			kinds = append(kinds, dag.Kind(kind))
		}
	}
	return kinds, nil
}

// kindFinder finds the kinds that a chunk may have: those in its dictionary, or all where there are pages without.
type kindFinder struct {
	may [dag.NumKinds]bool
}

func (k *kindFinder) find(f *File, d *decoder, c *chunkMeta) error {
	return f.eachPage(d, c, func(h pageHeader, body []byte) error {
		p := page{encoding: h.encoding}
		switch {
		case h.typ == pageDictionary:
			return d.dictionaryPage(h, body, c, k)
		case !p.hasNumbers():
			k.may = [dag.NumKinds]bool(slices.Repeat([]bool{true}, dag.NumKinds))
		}
		return nil
	})
}

func (k *kindFinder) dictionary(body []byte, n int) error {
	kinds, err := loadLabels[dag.Kind](nil, body, n, parseKind)
	for _, kind := range kinds {
		k.may[kind] = true
	}
	return err
}

func (k *kindFinder) page(*page) error {
	return errors.New("not asked for")
}
