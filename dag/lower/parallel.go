package lower

import (
	"runtime"
	"sync"
	"sync/atomic"
)

// InParallel calls work(i, scratch) for 0, 1, ... n-1, on all processors; scratch is a processor's own, as newScratch makes
// it. Of several errors it returns that of the lowest number, whatever the order of events.
func InParallel[S any](n int, newScratch func() S, work func(i int, scratch S) error) error {
	var (
		wait   sync.WaitGroup
		lock   sync.Mutex
		next   atomic.Int64
		failed = n // the lowest number with an error
		first  error
	)
	for range min(n, runtime.GOMAXPROCS(0)) {
		wait.Go(func() {
			scratch := newScratch()
			for {
				i := int(next.Add(1)) - 1
				if i >= n {
					return
				}
				err := work(i, scratch)
				if err == nil {
					continue
				}
				lock.Lock()
				if i < failed {
					failed, first = i, err
				}
				lock.Unlock()
				return // every lower number has been taken, by this processor or another
			}
		})
	}
	wait.Wait()
	return first
}
