package par

import (
	"errors"
	"fmt"
	"runtime"
	"slices"
	"sync/atomic"
	"testing"
)

// withProcessors runs a test on one processor and on several.
func withProcessors(t *testing.T, test func(t *testing.T)) {
	for _, n := range []int{1, 2, 7} {
		t.Run(fmt.Sprintf("GOMAXPROCS=%d", n), func(t *testing.T) {
			defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(n))
			test(t)
		})
	}
}

func TestFor(t *testing.T) {
	withProcessors(t, func(t *testing.T) {
		for _, n := range []int{0, 1, 2, 5, 1000} {
			calls := make([]int, n)
			For(n, func(i int) { calls[i]++ })
			if want := slices.Repeat([]int{1}, n); !slices.Equal(calls, want) {
				t.Errorf("%d indices: calls %v", n, calls)
			}
		}
	})
}

func TestForWith(t *testing.T) {
	withProcessors(t, func(t *testing.T) {
		for _, n := range []int{0, 1, 2, 5, 1000} {
			sum := 0
			sums := ForWith(n, func() *int { return new(int) }, func(s *int, i int) { *s += i + 1 })
			for _, s := range sums {
				sum += *s
			}
			if len(sums) > runtime.GOMAXPROCS(0) || sum != n*(n+1)/2 {
				t.Errorf("%d indices: sums of %d goroutines are %d, want %d", n, len(sums), sum, n*(n+1)/2)
			}
		}
	})
}

func TestEachReturnsErrorOfLowestIndex(t *testing.T) {
	withProcessors(t, func(t *testing.T) {
		for range 100 {
			var calls atomic.Int64
			err := Each(1000, func(i int) error {
				calls.Add(1)
				if i >= 3 && i%3 == 0 {
					return fmt.Errorf("index %d", i)
				}
				runtime.Gosched()
				return nil
			})
			if err == nil || err.Error() != "index 3" {
				t.Fatalf("error %v, want that of index 3", err)
			}
			// Each goroutine ends at its first error, one of three calls.
			if n := calls.Load(); n < 4 || n > 1+3*int64(runtime.GOMAXPROCS(0)) {
				t.Errorf("%d calls, want none after the error", n)
			}
		}
	})
}

func TestEachOn(t *testing.T) {
	for _, threads := range []int{1, 2, 3, 100} {
		var running, most atomic.Int64
		var calls [50]atomic.Int64
		err := EachOn(threads, len(calls), func(i int) error {
			n := running.Add(1)
			for m := most.Load(); n > m && !most.CompareAndSwap(m, n); m = most.Load() {
			}
			runtime.Gosched()
			calls[i].Add(1)
			running.Add(-1)
			return nil
		})
		if err != nil || most.Load() > int64(threads) {
			t.Errorf("%d threads: %d calls at a time, %v", threads, most.Load(), err)
		}
		for i := range calls {
			if n := calls[i].Load(); n != 1 {
				t.Errorf("%d threads: %d calls for %d", threads, n, i)
			}
		}
	}
}

func TestEachWithReturnsValuesAfterError(t *testing.T) {
	withProcessors(t, func(t *testing.T) {
		failure := errors.New("failure")
		all, err := EachWith(10, func() *int { return new(int) }, func(s *int, i int) error {
			*s++
			return failure
		})
		calls := 0
		for _, s := range all {
			calls += *s
		}
		if err != failure || calls < 1 || calls > runtime.GOMAXPROCS(0) {
			t.Errorf("%d calls, error %v", calls, err)
		}
	})
}

func TestBlocks(t *testing.T) {
	withProcessors(t, func(t *testing.T) {
		for _, n := range []int{0, 1, 4, 5, 103} {
			calls := make([]int, n)
			Blocks(n, 4, func() func(from, to int) {
				return func(from, to int) {
					if from%4 != 0 || to-from < 1 || to-from > 4 {
						t.Errorf("block %d to %d", from, to)
					}
					for i := from; i < to; i++ {
						calls[i]++
					}
				}
			})
			if want := slices.Repeat([]int{1}, n); !slices.Equal(calls, want) {
				t.Errorf("%d indices: calls %v", n, calls)
			}
		}
	})
}

func TestOrdered(t *testing.T) {
	withProcessors(t, func(t *testing.T) {
		for _, n := range []int{0, 1, 2, 100} {
			for _, threads := range []int{1, 2, 5} {
				for _, ahead := range []int{0, 1, 3, 20} {
					testOrdered(t, n, threads, ahead)
				}
			}
		}
	})
}

func testOrdered(t *testing.T, n, threads, ahead int) {
	var started atomic.Int64
	var yielded atomic.Int64
	work := func() func(int) int {
		started.Add(1)
		return func(i int) int {
			if done := int(yielded.Load()); i > done+ahead+1 {
				t.Errorf("work on %d, %d results were yielded, %d may be ahead", i, done, ahead)
			}
			for range i % 3 {
				runtime.Gosched()
			}
			return i * i
		}
	}
	i := 0
	for got := range Ordered(Indices(n), threads, ahead, work) {
		if got != i*i {
			t.Fatalf("result %d is %d", i, got)
		}
		i++
		yielded.Add(1)
	}
	if i != n || started.Load() != int64(threads) {
		t.Errorf("%d results of %d, by %d goroutines of %d", i, n, started.Load(), threads)
	}
}

func TestOrderedStops(t *testing.T) {
	withProcessors(t, func(t *testing.T) {
		for stop := range 10 {
			var working atomic.Int64
			work := func() func(int) int {
				return func(i int) int {
					working.Add(1)
					runtime.Gosched()
					working.Add(-1)
					return i
				}
			}
			for got := range Ordered(Indices(1<<30), 3, 4, work) {
				if got == stop {
					break
				}
			}
			if n := working.Load(); n != 0 {
				t.Errorf("%d calls go on after the loop", n)
			}
		}
	})
}

func BenchmarkFor(b *testing.B) {
	b.ReportAllocs()
	var sink [64]int
	For(b.N, func(i int) { sink[i&63] = i })
}

func BenchmarkOrdered(b *testing.B) {
	b.ReportAllocs()
	for range Ordered(Indices(b.N), runtime.GOMAXPROCS(0), 2*runtime.GOMAXPROCS(0), func() func(int) int {
		return func(i int) int { return i }
	}) {
	}
}
