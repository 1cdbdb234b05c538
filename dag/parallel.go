package dag

import (
	"runtime"
	"sync"
	"sync/atomic"
)

// inParallel calls work for 0, 1, ... n-1, from as many goroutines as there are processors, and returns when all are
// done. Each goroutine uses a scratch value of its own, which it makes first; they are returned, in no meaningful
// order.
func inParallel[S any](n int, scratch func() S, work func(s S, i int)) []S {
	all := make([]S, min(n, runtime.GOMAXPROCS(0)))
	var next atomic.Int64
	var done sync.WaitGroup
	for w := range all {
		all[w] = scratch()
		done.Go(func() {
			for {
				i := int(next.Add(1)) - 1
				if i >= n {
					return
				}
				work(all[w], i)
			}
		})
	}
	done.Wait()
	return all
}
