package backends_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/tracedag/tracedag/dag"
	"github.com/tracedag/tracedag/sim"
	"github.com/tracedag/tracedag/sim/backends"
)

// TestShortReceives checks that all backends warn about receives that are shorter than their messages, and only about
// these, and that the messages take the same time.
func TestShortReceives(t *testing.T) {
	pair := func(sent, received int64) *dag.Trace {
		b := dag.NewBuilder(2)
		b.Rank(0).Send(1, sent, 3)
		b.Rank(1).Recv(0, received, 3)
		return b.Trace()
	}
	for i := range configurations {
		c := &configurations[i]
		var ends []string
		for _, received := range []int64{5000, 6000, 4999, 0} {
			var got []string
			r, err := backends.Run(pair(5000, received), c.backend,
				append(c.options(2), backends.Env(&sim.Env{Warn: func(message string, args ...any) {
					got = append(got, fmt.Sprintf(message, args...))
				}}))...)
			if err != nil {
				t.Fatalf("%v: %v", c, err)
			}
			ends = append(ends, fmt.Sprint(r.Makespan))
			want := fmt.Sprintf("rank 1 op 0 receives %d bytes of a message of 5000 bytes from rank 0, op 0 (1 such", received)
			warned := slices.ContainsFunc(got, func(text string) bool { return strings.HasPrefix(text, want) })
			if short := received < 5000; warned != short || !short && len(got) > 0 {
				t.Errorf("%v: %d bytes received: %q", c, received, got)
			}
		}
		for _, end := range ends {
			if end != ends[0] {
				t.Errorf("%v: makespans %v", c, ends)
			}
		}
	}
}
