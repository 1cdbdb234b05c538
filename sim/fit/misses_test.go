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

// TestOtherNetwork checks when parameters were estimated with another network.
func TestOtherNetwork(t *testing.T) {
	for _, c := range []struct {
		topology, name string
		same           bool
	}{
		{"a/x.xml", "x.xml", true},
		{"x.xml", "y.xml", false},
		{"Switch(16)@10GB/s,1us", "Switch(16)@10GB/s,1us", true},
		{"Switch(16)@10GB/s,1us", "Ring(16)@1GB/s,1us", false},
		{"fattree:k=4,rate=25GB/s", "fattree:k=8,rate=25GB/s", false},
	} {
		f := &File{Topology: c.topology}
		if f.On(c.name) != c.same || (f.OtherNetwork(c.name) == "") != c.same {
			t.Errorf("%s and %s: %q, expected the same network: %v", c.topology, c.name, f.OtherNetwork(c.name), c.same)
		}
	}
	if text := (*File)(nil).OtherNetwork("x.xml"); text != "" {
		t.Errorf("without a file: %q", text)
	}
}
