package compose

import (
	"errors"
	"testing"

	"github.com/tracedag/tracedag/param"
)

// FuzzJob parses jobs of the command line: the last setting is the file, and a plan of the job has that file or names
// the wrong setting.
func FuzzJob(f *testing.F) {
	for _, text := range []string{"a.goal", "a.goal@5ms", "a,b@c@1us,start=2ns", "x,nodes=0-3,7,repeat=3", "x,window=1us..2us",
		"@", ",", "x@1h,scale-compute=1/3", "x,=", "x,placement=random:7"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if len(text) > 0 && (text[0] == '/' || text[0] == '.') {
			return // may exist
		}
		settings, err := ParseJob(text)
		if err != nil {
			return
		}
		last := settings[len(settings)-1]
		if last.Key != "file" {
			t.Fatalf("%q: settings %q", text, settings)
		}
		p, err := NewPlan(nil, [][]Setting{settings})
		var wrong *param.Error
		switch {
		case err != nil && !errors.As(err, &wrong):
			t.Errorf("%q: error %v of type %T", text, err, err)
		case err == nil && (len(p.Jobs) != 1 || p.Jobs[0].File != last.Value || p.Jobs[0].Start < 0):
			t.Errorf("%q: %+v", text, p.Jobs)
		}
	})
}

// FuzzPlacement parses placements, factors and spans of time.
func FuzzPlacement(f *testing.F) {
	for _, text := range []string{"packed", "rr", "strided:3", "random", "random:-7", "file:x", "nodes", "1/3", "0.5", "1e400",
		"1ms..2ms", "..3us", "5ns..", "1/0"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if p, err := ParsePlacement(text); err == nil {
			if p.Policy == Strided && p.Stride < 1 || p.Policy == Given && p.File == "" {
				t.Errorf("%q: %+v", text, p)
			}
		}
		if n, err := parseFactor(text); err == nil && n.Sign() < 0 {
			t.Errorf("%q is the factor %v", text, n)
		}
		if s, err := parseSpan(text); err == nil && (s.From < 0 || s.To <= s.From) {
			t.Errorf("%q is the span %+v", text, s)
		}
	})
}
