package collective

import (
	"context"
	"math"
	"math/bits"
	"reflect"
	"strings"
	"testing"

	"github.com/tracedag/tracedag/dag"
)

// reducedBytes returns the number of bytes that each member of n reduces, or their sum in the first entry if only that
// is known (sum); nil if neither is. Every member contributes x bytes, a multiple of n; 4 members share a node.
func reducedBytes(kind dag.Subkind, algorithm string, n int, x int64) (each []int64, sum bool) {
	doubling := func(n int) int64 { // allreduce recdoubling
		power := floorPower(n)
		return x * int64(power*(bits.Len(uint(power))-1)+n-power)
	}
	total := x * int64(n-1)
	exclusive := kind == dag.Exscan
	perRank := func(times func(me int) int) (each []int64, sum bool) {
		for me := range n {
			each = append(each, x*int64(times(me)))
		}
		return each, false
	}
	switch kind {
	case dag.Allreduce:
		leaders := (n + 3) / 4
		switch {
		case algorithm == "recdoubling":
			total = doubling(n)
		case algorithm == "hierarchical" && x <= 2048:
			total = x*int64(n-leaders) + doubling(leaders)
		case algorithm == "twolevel":
			total = doubling(leaders) + int64(n/4)*doubling(4)
			if n%4 > 0 {
				total += doubling(n % 4)
			}
		}
	case dag.ReduceScatter:
		if algorithm == "recdoubling" {
			if n&(n-1) != 0 {
				return nil, false
			}
			total = x*int64(n*(bits.Len(uint(n))-1)) - total
		}
	case dag.Scan, dag.Exscan:
		switch algorithm {
		case "recdoubling":
			return perRank(func(me int) (times int) {
				for bit := 1; bit < n; bit *= 2 {
					if me^bit < n {
						times++
						if me&bit != 0 {
							times++
						}
					}
				}
				if exclusive && me > 0 {
					times--
				}
				return times
			})
		case "linear":
			return perRank(func(me int) int {
				if me == 0 || exclusive && me == n-1 {
					return 0
				}
				return 1
			})
		}
		return perRank(func(me int) int {
			if exclusive {
				return max(0, me-1)
			}
			return me
		})
	case dag.Reduce:
	default:
		total = 0
	}
	return []int64{total}, true
}

// TestReductions checks the time of reductions by every algorithm against closed forms: in total per rank, or per
// trace where the form is a sum. Messages remain the same, and a time of 0 changes nothing.
func TestReductions(t *testing.T) {
	const perByte = 40 // ps
	for i := range algorithms {
		a := &algorithms[i]
		t.Run(name(a.kind, "/", a.name), func(t *testing.T) {
			t.Parallel()
			for _, parameters := range variants(a) {
				for _, n := range []int{2, 3, 4, 5, 7, 8, 12, 16, 17} {
					if n > 5 && testing.Short() {
						continue
					}
					for _, bytes := range []int64{int64(8 * n), int64(512 * n)} {
						checkReductions(t, a, parameters, n, bytes, perByte)
					}
				}
			}
		})
	}
}

func checkReductions(t *testing.T, a *algorithm, parameters string, n int, bytes int64, perByte dag.Time) {
	t.Helper()
	if strings.Contains(parameters, "segment=5") {
		bytes = int64(8 * n)
	}
	b := dag.NewBuilder(n)
	for rank := range n {
		op := dag.Op{Kind: dag.Coll, Subkind: a.kind, Bytes: bytes}
		b.Meta().Nodes = append(b.Meta().Nodes, int32(rank/4))
		b.Rank(rank).Add(op)
	}
	tr := b.Trace()
	lowered := func(suffix string) *dag.Trace {
		choice, err := ParseChoice(a.kind.String() + "=" + a.name + parameters + suffix)
		if err != nil {
			t.Fatal(err)
		}
		out, err := Lower(context.Background(), tr, choice)
		if err != nil {
			t.Fatal(err)
		}
		return out
	}
	without, zero, with := lowered(""), lowered(";reduction=0"), lowered(";reduction=40ps/B")
	if !reflect.DeepEqual(without, zero) {
		t.Fatalf("%d members%s: a reduction time of 0 changes the trace", n, parameters)
	}
	run(t, with, func(int, int) bool { return false }) // completes
	want, sum := reducedBytes(a.kind, a.name, n, bytes)
	total := dag.Time(0)
	for rank := range n {
		spent := dag.Time(0)
		var messages [2][]dag.Op
		for k, tr := range []*dag.Trace{without, with} {
			r := tr.Ranks[rank]
			for i := range r.Len() {
				op := r.Op(i)
				if op.Kind == dag.Calc {
					if k == 1 {
						spent += op.Duration
					}
					continue
				}
				messages[k] = append(messages[k], op)
			}
		}
		if !reflect.DeepEqual(messages[0], messages[1]) {
			t.Fatalf("%d members%s: rank %d has other messages with a reduction time", n, parameters, rank)
		}
		total += spent
		if want != nil && !sum && spent != perByte*dag.Time(want[rank]) {
			t.Fatalf("%d members%s, %d bytes: rank %d reduces for %v, expected %d bytes at 40ps/B", n, parameters, bytes,
				rank, spent, want[rank])
		}
	}
	if sum && total != perByte*dag.Time(want[0]) {
		t.Fatalf("%d members%s, %d bytes: ranks reduce for %v, expected %d bytes at 40ps/B", n, parameters, bytes, total,
			want[0])
	}
}

// TestReductionOutOfRange checks the error of a reduction that takes too long.
func TestReductionOutOfRange(t *testing.T) {
	b := dag.NewBuilder(2)
	for rank := range 2 {
		b.Rank(rank).Add(dag.Op{Kind: dag.Coll, Subkind: dag.Allreduce, Bytes: math.MaxInt64 / 2})
	}
	choice, err := ParseChoice("allreduce=recdoubling;reduction=1s/B")
	if err != nil {
		t.Fatal(err)
	}
	_, err = LowerSource(context.Background(), dag.FromTrace(b.Trace()), choice)
	if err == nil || !strings.Contains(err.Error(), "rank 0, op 0: a reduction of 4611686018427387903 bytes at 1B/s") {
		t.Errorf("error %v", err)
	}
}
