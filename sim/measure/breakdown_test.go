package measure

import (
	"math/rand/v2"
	"testing"

	"github.com/tracedag/tracedag/dag"
	"github.com/tracedag/tracedag/sim"
)

// TestDivide compares the parts of random activities with a count of every tick.
func TestDivide(t *testing.T) {
	const finish = 300
	r := rand.New(rand.NewPCG(1, 2))
	for range 500 {
		a := new(activity)
		var active [classes][finish]bool
		at := 0
		for range r.IntN(200) {
			at = max(0, at+r.IntN(40)-15)
			c, start, end := class(r.IntN(int(classes))), at, at+r.IntN(30)-2
			a.classes[c].add(uint64(start), uint64(max(0, end)))
			for k := start; k < min(end, finish); k++ {
				active[c][k] = true
			}
		}
		var want [parts]uint64
		for k := range finish {
			switch {
			case active[computeClass][k] && active[commClass][k]:
				want[overlappedPart]++
			case active[computeClass][k]:
				want[computePart]++
			case active[overheadClass][k]:
				want[overheadPart]++
			case active[commClass][k]:
				want[commPart]++
			case active[memClass][k]:
				want[remoteMemPart]++
			case active[storageClass][k]:
				want[storagePart]++
			case active[waitClass][k]:
				want[waitPart]++
			default:
				want[idlePart]++
			}
		}
		if got := a.divide(sim.Clock{Ticks: finish, Unit: dag.Picosecond}); got.Ticks != want {
			t.Fatalf("parts %v, expected %v", got.Ticks, want)
		}
	}
}

// TestOrderedIntervals compares the union of intervals, added in nearly the right order or in any, with a count of every
// tick.
func TestOrderedIntervals(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	coded, late := 0, 0
	for range 400 {
		var s intervals
		covered := make(map[int]bool)
		at, spread, pace := 0, 1+r.IntN(60), 1+r.IntN(12)
		if r.IntN(8) == 0 {
			spread = 2000 // any order
		}
		for range r.IntN(600) {
			at += r.IntN(pace)
			start := max(0, at-r.IntN(spread))
			end := start + r.IntN(4)
			if r.IntN(20) == 0 {
				end += r.IntN(60)
			}
			s.add(uint64(start), uint64(end))
			for k := start; k < end; k++ {
				covered[k] = true
			}
		}
		all, outside := s.beside(new(intervals))
		if all != uint64(len(covered)) || outside != all {
			t.Fatalf("a union of %d, %d of it beside nothing, expected %d", all, outside, len(covered))
		}
		if s.old != nil {
			coded, late = coded+len(s.old.chunks), late+len(s.old.late)
		}
		union := s.read()
		for before := union.next(); before.end > 0; {
			i := union.next()
			if i.end > 0 && i.start <= before.end {
				t.Fatalf("intervals %v and %v touch or are out of order", before, i)
			}
			for k := before.start; k < before.end; k++ {
				if !covered[int(k)] {
					t.Fatalf("interval %v covers %d, which no added one does", before, k)
				}
			}
			before = i
		}
	}
	if coded < 300 || late < 300 {
		t.Errorf("%d chunks and %d late intervals test nothing", coded, late)
	}
}
