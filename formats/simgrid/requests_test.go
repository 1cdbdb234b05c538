package simgrid

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/tracedag/tracedag/dag"
)

// linear is requests as SimGrid searches them: one after the other.
type linear []request

// oldest returns the index of the request that a wait for a key completes, or -1.
func (l linear) oldest(k key, rank int) int {
	wild := -1
	for i, q := range l {
		if q.key == k {
			return i
		}
		if wild < 0 && q.destination == k.destination && int(k.destination) == rank &&
			(q.source == dag.AnySource || q.source == k.source) && (q.tag == dag.AnyTag || q.tag == k.tag) {
			wild = i
		}
	}
	return wild
}

// TestRequests compares requests with a linear search in random sequences of calls.
func TestRequests(t *testing.T) {
	const rank = 1
	rnd := rand.New(rand.NewPCG(1, 2))
	for _, grow := range []int{2, 5, 9} { // of ten calls
		var r requests
		var l linear
		found, over := 0, 0
		for op := range 20_000 {
			k := key{int32(rnd.IntN(5)) - 1, int32(rnd.IntN(2)), int64(rnd.IntN(4)) - 1}
			if rnd.IntN(10) < grow {
				r.add(k, op)
				l = append(l, request{key: k, op: op})
			} else if rnd.IntN(500) == 0 {
				r.clear()
				l = l[:0]
			} else {
				at := l.oldest(k, rank)
				on, own, ok := r.oldest(k, rank)
				if ok != (at >= 0) || ok && (on != l[at].op || own != l[at].key) {
					t.Fatalf("op %d: %v: found op %d, %v, %v, expected index %d", op, k, on, own, ok, at)
				}
				if ok {
					found++
					if removed := r.removeFirst(own); removed != on {
						t.Fatalf("op %d: removed op %d, expected %d", op, removed, on)
					}
					l = slices.Delete(l, at, at+1)
					over = on
				}
			}
			if r.left != len(l) || r.has(op) != (len(l) > 0 && l[len(l)-1].op == op) ||
				r.has(over) != slices.ContainsFunc(l, func(q request) bool { return q.op == over }) {
				t.Fatalf("op %d: %d requests under way, expected %d", op, r.left, len(l))
			}
		}
		var left, expected []int
		for op := range r.ops {
			left = append(left, op)
		}
		for _, q := range l {
			expected = append(expected, q.op)
		}
		if !slices.Equal(left, expected) || found == 0 {
			t.Errorf("%d requests under way, expected %d; %d were found", len(left), len(expected), found)
		}
		if len(r.all) > 2*len(l)+fewRequests+1 {
			t.Errorf("%d requests in memory, %d are under way", len(r.all), len(l))
		}
	}
}
