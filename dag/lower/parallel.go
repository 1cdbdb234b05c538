package lower

import (
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"

	"github.com/tracedag/tracedag/dag"
)

// forEachRank calls work(rank, r, scratch) for every rank of the source, on all processors; scratch is a processor's
// own, as newScratch makes it, and r is good until work returns. Of several errors it returns that of the lowest rank,
// whatever the order of events.
func forEachRank[S any](s Source, newScratch func() S, work func(rank int, r *dag.Rank, scratch S) error) error {
	var (
		wait    sync.WaitGroup
		lock    sync.Mutex
		next    atomic.Int64
		batches = s.Batches()
		failed  = len(batches) // the lowest batch with an error
		first   error
	)
	for range min(len(batches), runtime.GOMAXPROCS(0)) {
		wait.Go(func() {
			scratch, read := newScratch(), s.Reader()
			for {
				k := int(next.Add(1)) - 1
				if k >= len(batches) {
					return
				}
				err := forEachOf(batches[k], read, scratch, work)
				if err == nil {
					continue
				}
				lock.Lock()
				if k < failed {
					failed, first = k, err
				}
				lock.Unlock()
				return // every lower batch has been taken, by this processor or another
			}
		})
	}
	wait.Wait()
	return first
}

func forEachOf[S any](b dag.Batch, read func(dag.Batch) ([]dag.Rank, error), scratch S,
	work func(rank int, r *dag.Rank, scratch S) error) error {
	ranks, err := readBatch(read, b)
	if err != nil {
		return err
	}
	for i := range ranks {
		if err := work(b.First+i, &ranks[i], scratch); err != nil {
			return err
		}
	}
	return nil
}

func readBatch(read func(dag.Batch) ([]dag.Rank, error), b dag.Batch) ([]dag.Rank, error) {
	ranks, err := read(b)
	if err == nil && len(ranks) != b.Last-b.First {
		err = fmt.Errorf("%d ranks were read as ranks %d to %d", len(ranks), b.First, b.Last-1)
	}
	return ranks, err
}
