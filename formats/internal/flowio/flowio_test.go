package flowio

import (
	"math"
	"testing"

	"github.com/tracedag/tracedag/dag"
)

func TestAppendDecimal(t *testing.T) {
	for _, test := range []struct {
		time          dag.Time
		exp, decimals int
		want          string
	}{
		{0, 12, 9, "0.000000000"}, {0, 12, 0, "0"}, {1, 12, 9, "0.000000000001"}, {2_000_000_001_000, 12, 9, "2.000000001"},
		{1_500_000, 6, 0, "1.5"}, {1_500_000, 6, 1, "1.5"}, {1_000_000, 6, 1, "1.0"}, {1_000_000, 6, 0, "1"}, {7, 0, 0, "7"},
		{7, 0, 2, "7.00"}, {math.MaxInt64, 12, 0, "9223372.036854775807"}, {10_010, 6, 3, "0.01001"}, {999_999, 6, 0, "0.999999"},
	} {
		if got := string(AppendDecimal([]byte("x"), test.time, test.exp, test.decimals)); got != "x"+test.want {
			t.Errorf("%d ps in units of 10^%d ps, %d decimals: %s, want %s", test.time, test.exp, test.decimals, got[1:], test.want)
		}
	}
}

// Flows are in the order of their times, or as they are numbered.
func TestSends(t *testing.T) {
	b := dag.NewBuilder(3)
	for _, f := range []struct {
		rank int
		tag  int64
		time dag.Time
	}{{2, 1, 5}, {0, 2, 5}, {1, 0, 9}, {0, 3, 0}} {
		b.Rank(f.rank).Add(dag.Op{Kind: dag.Send, Tag: f.tag, Release: f.time})
	}
	trace := b.Trace()
	order := func(fileOrder bool) (tags [4]int64) {
		for i, s := range Sends(trace, fileOrder, nil) {
			tags[i] = trace.Ranks[s.Rank].Tag.At(int(s.Op))
		}
		return tags
	}
	if got := order(false); got != [4]int64{3, 1, 2, 0} {
		t.Errorf("by time %v", got)
	}
	if got := order(true); got != [4]int64{0, 1, 2, 3} {
		t.Errorf("by number %v", got)
	}
	trace.Ranks[0].Tag[0] = 3
	if got := order(true); got != [4]int64{3, 1, 3, 0} {
		t.Errorf("with a number twice %v", got)
	}
}
