package dag

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
)

// TestRecords compares the order of records without ties with that of a sort.
func TestRecords(t *testing.T) {
	type place struct {
		time     Time
		rank, op int
	}
	for seed := range uint64(200) {
		rng := rand.New(rand.NewPCG(seed, 0))
		b := NewBuilder(1 + rng.IntN(6))
		var want []place
		for rank := range b.ranks {
			time := Time(0)
			for op := range rng.IntN(20) {
				if time += Time(rng.Int64N(3)); rng.IntN(40) == 0 {
					time = 0
				}
				if rng.IntN(30) == 0 {
					b.Rank(rank).Calc(1)
					continue
				}
				b.Rank(rank).Add(Op{Kind: IO, Subkind: Read, Release: time})
				want = append(want, place{time, rank, op})
			}
		}
		slices.SortFunc(want, func(a, b place) int {
			return cmp.Or(cmp.Compare(a.time, b.time), cmp.Compare(a.rank, b.rank), cmp.Compare(a.op, b.op))
		})
		i := 0
		for rank, op := range b.Trace().Records() {
			if i == len(want) || want[i].rank != rank || want[i].op != op {
				t.Fatalf("seed %d: record %d is op %d of rank %d", seed, i, op, rank)
			}
			i++
		}
		if i != len(want) {
			t.Fatalf("seed %d: %d records, expected %d", seed, i, len(want))
		}
	}
}

// TestRecordTies checks the order of records of the same time with places of their own, some of which cannot be.
func TestRecordTies(t *testing.T) {
	b := NewBuilder(3)
	add := func(rank int, release Time, attrs string) {
		b.Rank(rank).Add(Op{Kind: IO, Subkind: Read, Release: release, Attrs: attrs})
	}
	add(0, 1, `{"tie":2,"x":1}`)
	add(0, 1, ``)
	add(1, 1, `{"tie":0}`)
	add(1, 1, `{"tie":9}`)
	add(1, 2, ``)
	add(2, 1, `{"tie":0}`)
	add(2, 2, `{"tie":0}`)
	got := ""
	for rank, op := range b.Trace().Records() {
		got += fmt.Sprintf(" %d.%d", rank, op)
		if len(got) > 100 {
			break
		}
	}
	if want := " 1.0 0.1 0.0 1.1 2.0 2.1 1.2"; got != want {
		t.Errorf("%s, expected%s", got, want)
	}
}
