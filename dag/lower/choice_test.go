package lower

import (
	"math"
	"strings"
	"testing"

	"github.com/tracedag/tracedag/dag"
)

func TestDefaultsNameEveryCollective(t *testing.T) {
	for _, kind := range allCollectives {
		for _, size := range []int64{0, 1, 1 << 20, 1<<20 + 1, math.MaxInt64} {
			var c Choice
			if len(defaults.rules[kind]) == 0 {
				t.Fatalf("no default for %v", kind)
			}
			if a := c.algorithm(kind, size); a.kind != kind {
				t.Errorf("%v of %d bytes gets an algorithm for %v", kind, size, a.kind)
			}
		}
	}
}

func TestParseChoice(t *testing.T) {
	const mib = 1 << 20
	tests := []struct {
		text string
		kind dag.Subkind
		size int64
		want string
	}{
		{"", dag.Allreduce, mib, "recdoubling"},
		{"", dag.Allreduce, mib + 1, "ring"},
		{"allreduce=ring", dag.Allreduce, 0, "ring"},
		{"allreduce=ring:>1KiB,recdoubling", dag.Allreduce, 1024, "recdoubling"},
		{"allreduce=ring:>1KiB,recdoubling", dag.Allreduce, 1025, "ring"},
		{"allreduce=ring:>=1kB,recdoubling", dag.Allreduce, 1000, "ring"},
		{"allreduce=recdoubling:<=8B,ring", dag.Allreduce, 8, "recdoubling"},
		{"allreduce=recdoubling:<8,ring", dag.Allreduce, 8, "ring"},
		{"allreduce=recdoubling:<=8,ring", dag.Allreduce, 9, "ring"},
		{"allreduce=ring:<10", dag.Allreduce, 11, "recdoubling"}, // falls back on the defaults
		{"allreduce=ring:<10", dag.Allreduce, 2 * mib, "ring"},
		{" allreduce = ring : >= 1 MB ; gather = linear ", dag.Allreduce, 1e6, "ring"},
		{" allreduce = ring : >= 1 MB ; gather = linear ", dag.Gather, 0, "linear"},
		{"allreduce=ring,gather=linear", dag.Gather, 0, "linear"},
		{"allreduce=ring,gather=linear", dag.Allreduce, 0, "ring"},
		{"collectives=ring", dag.Allreduce, 0, "ring"},
		{"collectives=ring", dag.Gather, 0, "binomial"},
		{"collectives=ring,linear", dag.Gather, 0, "linear"},
		{"gather=binomial;collectives=linear", dag.Gather, 0, "binomial"},
		{"gather=binomial;collectives=linear", dag.Scatter, 0, "linear"},
		{"allreduce=ring:>=9223372036854775807,recdoubling", dag.Allreduce, math.MaxInt64, "ring"},
	}
	for _, test := range tests {
		c, err := ParseChoice(test.text)
		if err != nil {
			t.Errorf("%q: %v", test.text, err)
			continue
		}
		if got := c.algorithm(test.kind, test.size).name; got != test.want {
			t.Errorf("%q gives %s to %v of %d bytes, expected %s", test.text, got, test.kind, test.size, test.want)
		}
	}
}

func TestParseChoiceErrors(t *testing.T) {
	tests := []struct{ text, want string }{
		{"ring", `expected COLLECTIVE=ALGORITHM, found "ring"`},
		{"alreduce=ring", `expected a collective such as allreduce, or collectives, found "alreduce"`},
		{"load=ring", `found "load"`},
		{"=ring", `found ""`},
		{"allreduce=rung", `no algorithm "rung" for allreduce, expected recdoubling or ring or reducebcast`},
		{"allreduce=", `no algorithm "" for allreduce`},
		{"collectives=rung", `no collective has an algorithm "rung"`},
		{"allreduce=ring;allreduce=ring", "allreduce is there twice"},
		{"collectives=ring;collectives=binomial", "collectives is there twice"},
		{"allreduce=ring:1MiB", `expected a bound such as >1MiB, found "1MiB"`},
		{"allreduce=ring:=1MiB", `expected a bound such as >1MiB`},
		{"allreduce=ring:", `expected a bound such as >1MiB, found ""`},
		{"allreduce=ring:>", `expected a bound such as >1MiB, found ">"`},
		{"allreduce=ring:>-1", "expected a whole number of bytes"},
		{"allreduce=ring:>1.5MiB", `expected a unit such as kB or MiB, found ".5MiB"`},
		{"allreduce=ring:>1Mib", `expected a unit such as kB or MiB, found "Mib"`},
		{"allreduce=ring:>9223372036854775807", "no size is larger"},
		{"allreduce=ring:>9223372036854775808", "expected a whole number of bytes up to 9223372036854775807"},
		{"allreduce=ring:>8388608TiB", "expected at most 9223372036854775807 bytes"},
	}
	for _, test := range tests {
		_, err := ParseChoice(test.text)
		if err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%q: error %v, expected %s", test.text, err, test.want)
		}
	}
}

func FuzzParseChoice(f *testing.F) {
	f.Add(Defaults)
	f.Add("collectives=ring,linear;gather=binomial:>=1MiB")
	f.Fuzz(func(t *testing.T, text string) {
		c, err := ParseChoice(text)
		if err != nil {
			return
		}
		for _, kind := range allCollectives {
			if a := c.algorithm(kind, int64(len(text))); a == nil || a.kind != kind {
				t.Errorf("%q gives %v an algorithm of another collective", text, kind)
			}
		}
	})
}
