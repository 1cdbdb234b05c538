package loggops_test

import (
	"os"
	"strings"
	"testing"

	"github.com/tracedag/tracedag/dag"
	"github.com/tracedag/tracedag/sim/loggops"
)

// FuzzReadNoise checks that whatever ReadNoise accepts can be used by every model: a run ends or fails with an error.
func FuzzReadNoise(f *testing.F) {
	trace, err := os.ReadFile(vectors + "/noise_trace.txt")
	if err != nil {
		f.Fatal(err)
	}
	f.Add(string(trace))
	f.Add("0 5\n0 5\n1 0\n")
	f.Add("# only a comment\n1e3\t0.5")
	f.Add("90 10\r\n90 10")
	f.Fuzz(func(t *testing.T, text string) {
		noise, err := loggops.ReadNoise(strings.NewReader(text), "noise")
		if err != nil {
			return
		}
		for _, model := range loggops.Models {
			b := dag.NewBuilder(2)
			b.Rank(0).Send(1, 100, 0, b.Rank(0).Calc(123456*dag.Nanosecond))
			b.Rank(1).Calc(7*dag.Microsecond, b.Rank(1).Recv(0, 100, 0))
			r, err := run(b.Trace(), model, loggops.Options{Params: nanoParams(10, 20, 30, 2, 1, 64), Noise: noise}, t.Logf)
			if err == nil && !r.Complete {
				t.Errorf("%s: not complete: %+v", model, r.Stuck)
			}
		}
	})
}
