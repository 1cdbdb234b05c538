package nodes

import (
	"runtime"
	"sync"
	"sync/atomic"
)

// each calls work for every new rank, on all processors. Of several errors it returns that of the lowest rank.
func (s *Source) each(work func(rank int, w *Writer, feed func(int, *Writer) error) error) error {
	var (
		wait   sync.WaitGroup
		lock   sync.Mutex
		next   atomic.Int64
		failed = len(s.sizes)
		first  error
	)
	for range min(len(s.sizes), runtime.GOMAXPROCS(0)) {
		wait.Go(func() {
			w, feed := newWriter(), s.ranks.Feed()
			for {
				rank := int(next.Add(1)) - 1
				if rank >= len(s.sizes) {
					return
				}
				if err := work(rank, w, feed); err != nil {
					lock.Lock()
					if rank < failed {
						failed, first = rank, err
					}
					lock.Unlock()
					return // every lower rank has been taken
				}
			}
		})
	}
	wait.Wait()
	return first
}
