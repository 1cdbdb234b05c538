package collective

import (
	"fmt"
	"testing"

	"github.com/tracedag/tracedag/dag"
)

// The replay executes a trace of at most 64 ranks without time and follows data through it: every op has a set of
// ranks, which it passes on through dependencies and messages.

type replay struct {
	trace   *dag.Trace
	sources [][]uint64 // set of each op, by rank
	sends   []sent
}

type sent struct {
	from, to int32
	bytes    int64
	tag      int64
	comm     int32
	sources  uint64
	op       int32
}

type channel struct {
	from, to, comm int32
	tag            int64
}

// run computes dependence: the set of an op is the ranks on whose marked ops it depends.
func run(t *testing.T, tr *dag.Trace, mark func(rank, op int) bool) *replay {
	t.Helper()
	gives := func(rank, op int) uint64 {
		if mark(rank, op) {
			return 1 << rank
		}
		return 0
	}
	return follow(t, tr, gives, func(m *sent) uint64 { return m.sources })
}

// follow executes the trace. gives returns the elements that an op adds to its set, holds the elements of the sender's
// set that a message carries. It fails the test if the trace does not complete, or if the sizes of a send and its
// receive differ.
func follow(t *testing.T, tr *dag.Trace, gives func(rank, op int) uint64, holds func(m *sent) uint64) *replay {
	t.Helper()
	re := &replay{trace: tr, sources: make([][]uint64, len(tr.Ranks))}
	waits := make([][]int, len(tr.Ranks))
	ends, starts := make([]dag.Dependents, len(tr.Ranks)), make([]dag.Dependents, len(tr.Ranks))
	var ready, posted [][2]int32
	for rank := range tr.Ranks {
		r := tr.Ranks[rank]
		if err := r.CheckReferences(); err != nil {
			t.Fatalf("rank %d: %v", rank, err)
		}
		re.sources[rank] = make([]uint64, r.Len())
		waits[rank] = make([]int, r.Len())
		ends[rank], starts[rank] = r.Dependents(), r.StartDependents()
		for i := range r.Len() {
			waits[rank][i] = r.Deps.Count(i) + r.StartDeps.Count(i)
			re.sources[rank][i] = gives(rank, i)
		}
		for i := range r.Len() {
			if waits[rank][i] == 0 {
				ready = append(ready, [2]int32{int32(rank), int32(i)})
			}
		}
	}
	inFlight := map[channel][]sent{}
	expecting := map[channel][]int32{}
	done := 0
	release := func(rank, op int32) {
		if waits[rank][op]--; waits[rank][op] == 0 {
			ready = append(ready, [2]int32{rank, op})
		}
	}
	finish := func(rank, op int32) {
		done++
		for _, d := range ends[rank].Of(int(op)) {
			re.sources[rank][d] |= re.sources[rank][op]
			release(rank, d)
		}
	}
	arrive := func(rank, op int32, m *sent) {
		if want := tr.Ranks[rank].Bytes.At(int(op)); want != m.bytes {
			t.Fatalf("rank %d, op %d receives %d bytes from rank %d, expected %d", rank, op, m.bytes, m.from, want)
		}
		re.sources[rank][op] |= holds(m)
		finish(rank, op)
	}
	for len(ready) > 0 {
		rank, op := ready[0][0], ready[0][1]
		ready = ready[1:]
		for _, d := range starts[rank].Of(int(op)) {
			release(rank, d)
		}
		o := tr.Ranks[rank].Op(int(op))
		switch o.Kind {
		case dag.Send:
			m := sent{rank, o.Peer, o.Bytes, o.Tag, o.Comm, re.sources[rank][op], op}
			re.sends = append(re.sends, m)
			c := channel{rank, o.Peer, o.Comm, o.Tag}
			if e := expecting[c]; len(e) > 0 {
				expecting[c] = e[1:]
				arrive(o.Peer, e[0], &m)
			} else {
				inFlight[c] = append(inFlight[c], m)
			}
			finish(rank, op)
		case dag.Recv:
			c := channel{o.Peer, rank, o.Comm, o.Tag}
			if f := inFlight[c]; len(f) > 0 {
				inFlight[c] = f[1:]
				arrive(rank, op, &f[0])
			} else {
				expecting[c] = append(expecting[c], op)
				posted = append(posted, [2]int32{rank, op})
			}
		case dag.Calc:
			finish(rank, op)
		default:
			t.Fatalf("rank %d, op %d is a %v", rank, op, o.Kind)
		}
	}
	if done != int(tr.Ops()) {
		for _, p := range posted {
			t.Logf("posted: rank %d, op %d", p[0], p[1])
		}
		t.Fatalf("%d of %d ops ran", done, tr.Ops())
	}
	for c, f := range inFlight {
		if len(f) > 0 {
			t.Fatalf("%d messages left from rank %d to rank %d", len(f), c.from, c.to)
		}
	}
	return re
}

// permutation returns the ranks 0..n-1 in a fixed order that is not ascending.
func permutation(n int) []int32 {
	ranks := make([]int32, n)
	for i := range ranks {
		ranks[i] = int32(i)
	}
	for i := range ranks { // a fixed shuffle
		j := (i*7 + 3) % n
		ranks[i], ranks[j] = ranks[j], ranks[i]
	}
	return ranks
}

func set(ranks ...int32) uint64 {
	s := uint64(0)
	for _, r := range ranks {
		s |= 1 << r
	}
	return s
}

func name(parts ...any) string {
	return fmt.Sprint(parts...)
}
