package store

import (
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"

	"github.com/tracedag/tracedag/dag"
)

// checkRanks returns an error, that of the first rank with one, if a rank has what no file may have: references that
// lead nowhere, unknown kinds, negative sizes or times. first is the number of the first of the ranks.
func checkRanks(ranks []dag.Rank, first, comms, jobs int) error {
	return parallel(len(ranks), func(i int) error {
		if err := checkRank(&ranks[i], comms, jobs); err != nil {
			return fmt.Errorf("rank %d: %w", first+i, err)
		}
		return nil
	})
}

func checkRank(r *dag.Rank, comms, jobs int) error {
	for i, k := range r.Kind {
		if k >= dag.NumKinds {
			return fmt.Errorf("op %d: unknown kind %d", i, uint8(k))
		}
	}
	for i, s := range r.Subkind {
		if s >= dag.NumSubkinds {
			return fmt.Errorf("op %d: unknown subkind %d", i, uint8(s))
		}
	}
	for _, err := range []error{
		notNegative(colBytes, r.Bytes), notNegative(colRecvBytes, r.RecvBytes), notNegative(colDuration, r.Duration),
		notNegative(colFlops, r.Flops), notNegative(colRelease, r.Release),
		below(colComm, &r.Comm, int64(max(1, comms))), below(colJob, &r.Job, int64(max(1, jobs))),
		below(colStream, &r.Stream, 1<<31), below(colNIC, &r.NIC, 1<<31),
	} {
		if err != nil {
			return err
		}
	}
	return r.CheckReferences()
}

func notNegative[T ~int64](column int, values []T) error {
	all := T(0)
	for _, v := range values {
		all |= v
	}
	if all >= 0 {
		return nil
	}
	for i, v := range values {
		if v < 0 {
			return fmt.Errorf("op %d: %s is %d, expected 0 or more", i, columns[column].name, v)
		}
	}
	return nil
}

// below returns an error if a value of the column is not in 0..limit-1.
func below(column int, values *dag.Narrow, limit int64) error {
	for i := range values.Len() {
		if v := values.At(i); v < 0 || int64(v) >= limit {
			return fmt.Errorf("op %d: %s is %d, expected 0..%d", i, columns[column].name, v, limit-1)
		}
	}
	return nil
}

// parallel calls do with 0..n-1 on all cores and returns the error of the lowest number that has one. A panic, which
// only a mistake in this package can cause, becomes an error: files come from anywhere.
func parallel(n int, do func(i int) error) error {
	var (
		next    atomic.Int64
		running sync.WaitGroup
		lock    sync.Mutex
		failed  = n
		first   error
	)
	for range min(n, runtime.GOMAXPROCS(0)) {
		running.Go(func() {
			for {
				i := int(next.Add(1)) - 1
				if i >= n {
					return
				}
				err := guard(func() error { return do(i) })
				if err == nil {
					continue
				}
				next.Store(int64(n)) // lower numbers are done or under way
				lock.Lock()
				if i < failed {
					failed, first = i, err
				}
				lock.Unlock()
			}
		})
	}
	running.Wait()
	return first
}

// guard calls f and turns a panic into an error.
func guard(f func() error) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("internal error: %v", r)
		}
	}()
	return f()
}
