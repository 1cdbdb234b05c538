package sim

import (
	"runtime"
	"sync"
	"testing"
)

// TestBarrier makes threads, up to many more than processors, write values that the others read in the next round, like
// groups. The race detector finds violations.
func TestBarrier(t *testing.T) {
	for _, c := range []struct{ threads, looks int }{
		{1, 0}, {2, -1}, {2, 0}, {3, 1}, {runtime.GOMAXPROCS(0), -1}, {8*runtime.GOMAXPROCS(0) + 1, -1}, {50, 0},
	} {
		b := NewBarrier(c.threads)
		if c.looks >= 0 {
			b.spins = c.looks // all sleep, and sometimes while the round turns
		}
		rounds := 20000 / c.threads
		said := make([][2]int, c.threads) // by thread, and by round modulo 2
		wrong := make([]int, c.threads)
		var threads sync.WaitGroup
		for me := range c.threads {
			threads.Go(func() {
				for round := range rounds {
					said[me][round%2] = round
					b.Wait()
					for other := range said {
						if said[other][round%2] != round {
							wrong[me]++
						}
					}
				}
			})
		}
		threads.Wait()
		for me, n := range wrong {
			if n > 0 {
				t.Errorf("%d threads: thread %d came through before others %d times", c.threads, me, n)
			}
		}
	}
}
