package dag

import "testing"

// TestClockError checks the bounds on the clocks of two ranks, from an allreduce, a bcast and a reduce.
func TestClockError(t *testing.T) {
	type times [4]Time // start and end at rank 0, then at rank 1
	for _, c := range []struct {
		kind Subkind
		at   times
		want ClockError
		ok   bool
	}{
		{Allreduce, times{0, 10, 4, 9}, ClockError{0, 9}, true},
		{Allreduce, times{0, 10, 24, 29}, ClockError{14, 29}, true}, // rank 1 enters when rank 0 has left
		{Bcast, times{5, 6, 0, 4}, ClockError{1, Unmeasured}, true}, // rank 1 leaves before the root enters
		{Bcast, times{0, 1, 5, 6}, ClockError{0, Unmeasured}, true}, // the root does not wait
		{Reduce, times{0, 1, 5, 6}, ClockError{4, Unmeasured}, true},
		{Scan, times{0, 1, 5, 6}, ClockError{0, Unmeasured}, false},
		{Allreduce, times{0, 10, 4, Unmeasured}, ClockError{0, Unmeasured}, false},
	} {
		b := NewBuilder(2)
		for rank := range 2 {
			b.Rank(rank).Add(Op{Kind: Coll, Subkind: c.kind, Bytes: 8, Timed: true, MeasuredStart: c.at[2*rank],
				MeasuredEnd: c.at[2*rank+1]})
		}
		if got, ok := ClockErrorOf(b.Trace()); got != c.want || ok != c.ok {
			t.Errorf("%v %v: %+v, %v, expected %+v, %v", c.kind, c.at, got, ok, c.want, c.ok)
		}
	}
}
