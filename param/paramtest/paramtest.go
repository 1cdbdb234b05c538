// Package paramtest has the fuzz target that the owners of parameter tables share.
package paramtest

import (
	"slices"
	"testing"

	"github.com/tracedag/tracedag/param"
)

// Fuzz sets parameters of tables to arbitrary texts. A text that is refused leaves all values of the table, and the
// value of an accepted text is printed in a form that gives the same value again. Each call of a table returns a fresh
// one.
func Fuzz(f *testing.F, tables ...func() param.Set) {
	for i, table := range tables {
		for k, p := range table() {
			f.Add(uint16(i), uint16(k), p.Value.String())
			for _, text := range slices.Concat(p.Choices, p.Shown) {
				f.Add(uint16(i), uint16(k), text)
			}
		}
	}
	f.Fuzz(func(t *testing.T, i, k uint16, text string) {
		table := tables[int(i)%len(tables)]
		set := table()
		if len(set) == 0 {
			return
		}
		at := int(k) % len(set)
		before := values(set)
		p := &set[at]
		if err := p.Value.Set(text); err != nil {
			if after := values(set); !slices.Equal(after, before) {
				t.Errorf("%s %q: refused (%v), but %q became %q", p.Name, text, err, before, after)
			}
			return
		}
		printed := p.Value.String()
		if printed == "" {
			return
		}
		again := table()
		if err := again[at].Value.Set(printed); err != nil {
			t.Errorf("%s %q: printed as %q, which is refused: %v", p.Name, text, printed, err)
		} else if got := again[at].Value.String(); got != printed {
			t.Errorf("%s %q: printed as %q, and this as %q", p.Name, text, printed, got)
		}
	})
}

func values(set param.Set) (texts []string) {
	for i := range set {
		texts = append(texts, set[i].Value.String())
	}
	return texts
}
