package cpu

import "testing"

// TestPrefetch prefetches elements in and far out of range, none of which may fault.
func TestPrefetch(t *testing.T) {
	array := make([]uint64, 4)
	for _, i := range []uint32{0, 3, 4, 1 << 31, 1<<32 - 1} {
		Prefetch(array, i)
		Prefetch([]uint64(nil), i)
	}
	PrefetchLine(^uintptr(0))
	PrefetchLines(0, ^uintptr(0))
}

// TestInHugePages checks that the advice keeps the slice as it is, for arrays below, at and above a huge page.
func TestInHugePages(t *testing.T) {
	for _, n := range []int{0, 1, 1 << 18, 1<<20 + 3} {
		s := make([]uint64, n, n+5)
		got := InHugePages(s)
		if len(got) != n || cap(got) != n+5 || n > 0 && &got[0] != &s[0] {
			t.Fatalf("%d elements: got another slice", n)
		}
		for i := range got {
			if got[i] != 0 {
				t.Fatalf("%d elements: element %d is %d, expected 0", n, i, got[i])
			}
			got[i] = uint64(i)
		}
	}
	if InHugePages([]byte(nil)) != nil {
		t.Fatal("nil became another slice")
	}
}
