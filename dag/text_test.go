package dag

import "testing"

// TestTextAppendFrom copies a column of strings, the ops in another order.
func TestTextAppendFrom(t *testing.T) {
	var from, to Text
	for i, s := range []string{"a", "", "bc", ""} {
		from.Append(i, s)
	}
	order := []int{2, 1, 7, 0, 2, 3}
	for i, k := range order {
		if !to.AppendFrom(i, &from, k) {
			t.Errorf("op %d: not appended", i)
		}
	}
	for i, k := range order {
		if got, want := to.At(i), from.At(k); got != want {
			t.Errorf("op %d has %q, expected %q", i, got, want)
		}
	}
	if to.Len() != 5 || to.AppendFrom(2, &from, 0) || !to.AppendFrom(2, &from, 1) {
		t.Errorf("%d strings, or one was put before the last", to.Len())
	}
}
