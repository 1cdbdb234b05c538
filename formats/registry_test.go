package formats

import (
	"slices"
	"testing"
)

func TestDefault(t *testing.T) {
	if f := All.Named(Default); f == nil || f.Read == nil || f.Write == nil {
		t.Errorf("the default format %q cannot be read and written", Default)
	}
}

// Storage traces, all of which are lines of numbers, are distinguished.
func TestStorageTracesAreTold(t *testing.T) {
	for head, want := range map[string][]string{
		"0,303567,3584,w,0.000000\n":                                    {"spc"},
		"0,303567,3584,W,1500\n":                                        {"blktracer"},
		"128166372003061629,hm,0,Read,383496192,32768,413\n":            {"msr"},
		"  8,0    1        1     0.000000000  3013  Q   R 0 + 8 [dd]\n": {"blkparse"},
		"fio version 2 iolog\nf add\n":                                  {"fio"},
		"0.5 0 303567 7 0\n":                                            {"disksim"},
		"500 0 303567 7 0\n":                                            {"disksim", "mqsim"},
	} {
		if got := All.Detect([]byte(head)).Names(); !slices.Equal(got, want) {
			t.Errorf("%q is detected as %q, want %q", head, got, want)
		}
	}
}
