package sim

import (
	"math/rand/v2"
	"slices"
	"testing"
)

// TestCalendar compares the calendar with a sorted list.
func TestCalendar(t *testing.T) {
	type due struct {
		window uint64
		rank   uint32
	}
	for seed := range uint64(100) {
		random := rand.New(rand.NewPCG(seed, 5))
		ranks := []int{1, 5, 64, 65, 5000}[seed%5]
		var c calendar
		c.init(ranks)
		var want []due
		add := func(now uint64) {
			d := due{now + random.Uint64N(1<<random.IntN(12)), random.Uint32N(uint32(ranks))}
			if random.IntN(4) == 0 {
				d.window = now
			}
			c.add(d.rank, d.window)
			if !slices.Contains(want, d) {
				want = append(want, d)
			}
		}
		for range 20 {
			add(0)
		}
		last, idle := uint64(0), 0
		for round := 0; len(want) > 0; round++ {
			slices.SortFunc(want, func(a, b due) int {
				if a.window != b.window {
					return int(a.window) - int(b.window)
				}
				return int(a.rank) - int(b.rank)
			})
			now := c.next()
			if now > want[0].window || round > 0 && now < last {
				t.Fatalf("seed %d: next is window %d after %d, but a rank is due in %d", seed, now, last, want[0].window)
			}
			if now == last && now < want[0].window {
				idle++
			}
			last = now
			var got, expected []uint32
			for len(want) > 0 && want[0].window == now {
				expected, want = append(expected, want[0].rank), want[1:]
			}
			c.turnTo(now)
			c.take(func(rank uint32) { got = append(got, rank) })
			if !slices.Equal(got, expected) {
				t.Fatalf("seed %d: in window %d ranks %v are due, expected %v", seed, now, got, expected)
			}
			for range min(3, 300-round) {
				c.next() // which must not move anything
				add(now)
			}
		}
		if c.next() != never {
			t.Fatalf("seed %d: more is due", seed)
		}
		if idle > 0 {
			t.Errorf("seed %d: the calendar came upon the same empty window again", seed)
		}
	}
}
