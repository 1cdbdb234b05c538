package lower

import (
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"

	"github.com/tracedag/tracedag/dag"
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

// forEachRank calls work(rank, r, scratch) for every rank of the source, as InParallel does; r is good until work returns.
func forEachRank[S any](s Source, newScratch func() S, work func(rank int, r *dag.Rank, scratch S) error) error {
	type own struct {
		scratch S
		read    func(dag.Batch) ([]dag.Rank, error)
	}
	batches := s.Batches()
	newOwn := func() own { return own{newScratch(), s.Reader()} }
	return InParallel(len(batches), newOwn, func(k int, o own) error {
		return forEachOf(batches[k], o.read, o.scratch, work)
	})
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
