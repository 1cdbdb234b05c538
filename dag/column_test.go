package dag

import (
	"slices"
	"testing"
)

// TestEqualColumns compares columns in the same memory, in other memory, and of other values and lengths.
func TestEqualColumns(t *testing.T) {
	values := []int32{0, 7, 255, 256, -1}
	for n := range len(values) + 1 {
		for k := range len(values) + 1 {
			a, b := Column[int32](slices.Clone(values[:n])), Column[int32](slices.Clone(values[:k]))
			if a.Equal(b) != (n == k) || !a.Equal(a) {
				t.Errorf("columns of %d and %d values: equal %v", n, k, a.Equal(b))
			}
			var c, d Narrow
			c.SetRange(0, values[:n])
			d.SetRange(0, values[:k])
			if c.Equal(&d) != (c.Len() == d.Len()) || !c.Equal(&c) {
				t.Errorf("narrow columns of %d and %d values: equal %v", n, k, c.Equal(&d))
			}
		}
	}
	a, b := Column[int32]{1, 2}, Column[int32]{1, 3}
	if a.Equal(b) {
		t.Errorf("%v and %v are equal", a, b)
	}
	e, f := Edges{End: []uint32{0, 1}, Off: []int32{1}}, Edges{End: []uint32{0, 1}, Off: []int32{1}}
	if !e.Equal(&f) {
		t.Errorf("%v and %v differ", e, f)
	}
	f.Off[0] = -1
	if e.Equal(&f) {
		t.Errorf("%v and %v are equal", e, f)
	}
}
