package store

// Checks of a file without a digest: the parts of the footer must agree with each other and with the pages.

import (
	"fmt"
	"slices"

	"github.com/tracedag/tracedag/internal/parquet"
)

// checkOverlap checks that no two chunks have bytes in common.
func (f *File) checkOverlap() error {
	type place struct {
		start, end    int64
		group, column int
	}
	var places []place
	for i := range f.groups {
		for column, c := range f.groups[i].chunks {
			if f.leaves[column].Index >= 0 {
				places = append(places, place{c.Start(), c.Start() + c.CompressedSize, f.groups[i].number, column})
			}
		}
	}
	slices.SortFunc(places, func(a, b place) int { return int(min(max(a.start-b.start, -1), 1)) })
	for i := 1; i < len(places); i++ {
		if a, b := places[i-1], places[i]; b.start < a.end {
			expected := fmt.Sprintf("column %s of row group %d after column %s of row group %d, which ends at %d",
				columns[b.column].name, b.group, columns[a.column].name, a.group, a.end)
			return f.syntaxError(b.start, expected, "pages of both")
		}
	}
	return nil
}

// bounds are the statistics of a chunk, which its values must obey.
type bounds struct {
	ordered  bool // min and max are known
	min, max int64
	nulls    int64 // expected; -1: unknown
	found    int64 // NULLs seen
}

// boundsOf returns the statistics of a chunk; none if a digest makes their check unnecessary.
func (f *File) boundsOf(c *parquet.Chunk, l parquet.Leaf) bounds {
	b := bounds{nulls: -1}
	if f.unverified == "" {
		return b
	}
	if l.MaxDef > 0 && l.MaxRep == 0 {
		b.nulls = c.Nulls
	}
	if width := l.Type.Width(); l.Integers && !l.Unsigned && len(c.Min) == width && len(c.Max) == width {
		b.ordered, b.min, b.max = true, statistic(c.Min), statistic(c.Max)
	}
	return b
}

// checkNulls checks the number of NULLs of a chunk, after its last page.
func (b *bounds) checkNulls() error {
	if b.nulls >= 0 && b.found != b.nulls {
		return fmt.Errorf("expected %d NULLs, as in the statistics, found %d", b.nulls, b.found)
	}
	return nil
}

// inBounds checks values against the statistics.
func inBounds[T ~uint8 | ~int32 | ~int64](b *bounds, values []T) error {
	if !b.ordered {
		return nil
	}
	for _, v := range values {
		if int64(v) < b.min || int64(v) > b.max {
			return fmt.Errorf("value %d, expected %d..%d, as in the statistics", int64(v), b.min, b.max)
		}
	}
	return nil
}
