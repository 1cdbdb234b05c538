// Package par runs loops on all processors. Errors and results do not depend on the order in which goroutines run: of
// several errors it returns that of the lowest index, and Ordered yields results in the order of the inputs.
//
// Interrupted and Watch end long loops when a context ends.
package par

import (
	"iter"
	"runtime"
	"sync"
	"sync/atomic"
)

// For calls do for 0, 1, ... n-1.
func For(n int, do func(i int)) {
	Each(n, func(i int) error {
		do(i)
		return nil
	})
}

// ForWith calls do for 0, 1, ... n-1. Each goroutine calls start first and passes its value to all its calls. ForWith
// returns the values of all goroutines in arbitrary order.
func ForWith[S any](n int, start func() S, do func(s S, i int)) []S {
	all, _ := EachWith(n, start, func(s S, i int) error {
		do(s, i)
		return nil
	})
	return all
}

// Each calls do for 0, 1, ... n-1. After an error it starts no further calls. It returns the error of the lowest index.
func Each(n int, do func(i int) error) error {
	return EachOn(runtime.GOMAXPROCS(0), n, do)
}

// EachOn is Each with at most the given number of goroutines.
func EachOn(threads, n int, do func(i int) error) error {
	start := func() struct{} { return struct{}{} }
	_, err := EachOnWith(threads, n, start, func(_ struct{}, i int) error { return do(i) })
	return err
}

// EachWith calls do for 0, 1, ... n-1. Each goroutine calls start first and passes its value to all its calls. After
// an error it starts no further calls. It returns the values of all goroutines, in arbitrary order, and the error of
// the lowest index.
func EachWith[S any](n int, start func() S, do func(s S, i int) error) ([]S, error) {
	return EachOnWith(runtime.GOMAXPROCS(0), n, start, do)
}

// Blocks divides 0, 1, ... n-1 into blocks of the given size; the last may be shorter. Each goroutine calls start
// first, then the returned function for each of its blocks, from from (inclusive) to to (exclusive).
func Blocks(n, size int, start func() (do func(from, to int))) {
	ForWith((n+size-1)/size, start, func(do func(from, to int), block int) {
		do(block*size, min((block+1)*size, n))
	})
}

// EachOnWith is EachWith with at most the given number of goroutines.
func EachOnWith[S any](threads, n int, start func() S, do func(s S, i int) error) ([]S, error) {
	threads = max(min(threads, n), 0)
	all := make([]S, threads)
	if threads == 1 {
		all[0] = start()
		for i := range n {
			if err := do(all[0], i); err != nil {
				return all, err
			}
		}
		return all, nil
	}
	var (
		next    atomic.Int64
		running sync.WaitGroup
		lock    sync.Mutex
		failed  = n // the lowest index with an error
		first   error
	)
	for thread := range threads {
		running.Go(func() {
			s := start()
			all[thread] = s
			for {
				i := int(next.Add(1)) - 1
				if i >= n {
					return
				}
				err := do(s, i)
				if err == nil {
					continue
				}
				next.Store(int64(n)) // calls for lower indices have ended or are in progress
				lock.Lock()
				if i < failed {
					failed, first = i, err
				}
				lock.Unlock()
			}
		})
	}
	running.Wait()
	return all, first
}

// Ordered applies work to the inputs on the given number of goroutines and yields the results in the order of the
// inputs. Each goroutine has its own work function, made by start. At most ahead+1 results besides the next one are
// in progress or wait to be yielded. inputs runs on a separate goroutine. After a break in the loop over the results,
// Ordered takes no further inputs and waits for all calls of work.
func Ordered[In, Out any](inputs iter.Seq[In], threads, ahead int, start func() (work func(In) Out)) iter.Seq[Out] {
	type task struct {
		in  In
		out chan<- Out
	}
	return func(yield func(Out) bool) {
		tasks := make(chan task)
		outs := make(chan chan Out, ahead)
		stop := make(chan struct{})
		var running sync.WaitGroup
		defer running.Wait()
		defer close(stop)
		for range threads {
			running.Go(func() {
				work := start()
				for t := range tasks {
					t.out <- work(t.in)
				}
			})
		}
		running.Go(func() {
			defer close(tasks)
			defer close(outs)
			// The channels are reused: ahead channels are in outs, one is being received from, and one is about to be
			// sent.
			ring := make([]chan Out, ahead+2)
			i := 0
			for in := range inputs {
				out := ring[i]
				if out == nil {
					out = make(chan Out, 1)
					ring[i] = out
				}
				if i++; i == len(ring) {
					i = 0
				}
				select {
				case outs <- out:
				case <-stop:
					return
				}
				select {
				case tasks <- task{in, out}:
				case <-stop:
					return
				}
			}
		})
		for out := range outs {
			if !yield(<-out) {
				return
			}
		}
	}
}

// Indices returns the sequence 0, 1, ... n-1.
func Indices(n int) iter.Seq[int] {
	return func(yield func(int) bool) {
		for i := range n {
			if !yield(i) {
				return
			}
		}
	}
}
