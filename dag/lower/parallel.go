package lower

import (
	"runtime"
	"sync"
	"sync/atomic"
)

// forEachRank calls work(rank, scratch) for every rank 0..n-1, on all processors; scratch is a processor's own, as
// newScratch makes it. Of several errors it returns that of the lowest rank, whatever the order of events.
func forEachRank[S any](n int, newScratch func() S, work func(rank int, scratch S) error) error {
	var (
		wait   sync.WaitGroup
		lock   sync.Mutex
		next   atomic.Int64
		failed = n // the lowest rank with an error
		first  error
	)
	for range min(n, runtime.GOMAXPROCS(0)) {
		wait.Go(func() {
			scratch := newScratch()
			for {
				rank := int(next.Add(1)) - 1
				if rank >= n {
					return
				}
				err := work(rank, scratch)
				if err == nil {
					continue
				}
				lock.Lock()
				if rank < failed {
					failed, first = rank, err
				}
				lock.Unlock()
				return // every lower rank has been taken, by this processor or another
			}
		})
	}
	wait.Wait()
	return first
}
