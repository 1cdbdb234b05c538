package clocks

import (
	"slices"
	"testing"
)

func TestCorrections(t *testing.T) {
	e := make(Ends)
	for _, late := range []int64{7, 100, 5} { // host 1 is 7 behind host 0
		e.Add(0, 1, late)
	}
	e.Add(1, 3, -20) // host 3 is 20 ahead of host 1
	if got := e.Corrections(4, 1000); !slices.Equal(got, []int64{0, 7, 0, -13}) {
		t.Errorf("%v", got)
	}
	if got := e.Corrections(4, 10); !slices.Equal(got, []int64{0, 7, 0, -10}) {
		t.Errorf("limited: %v", got)
	}
}
