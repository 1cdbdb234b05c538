package fit

import "testing"

// TestMisses: residuals above 2 % have a text, others none.
func TestMisses(t *testing.T) {
	f := &File{Residuals: []Residual{{Table: "a.csv", Largest: 0.019}, {Test: "window", Largest: 0.02}}}
	if text := f.Misses(); text != "" {
		t.Errorf("found %q, expected none", text)
	}
	f.Residuals = append(f.Residuals, Residual{Table: "b.csv", Largest: 0.29}, Residual{Table: "c.csv", Largest: 0.1},
		Residual{Test: "exchange", Largest: 0.036})
	const want = "the parameters miss measured times: pingpong by up to 29%, exchange by up to 3.6%; predicted times " +
		"of such messages are off by up to 29%"
	if text := f.Misses(); text != want {
		t.Errorf("found %q, expected %q", text, want)
	}
}
