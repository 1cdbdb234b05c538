package store

// Work on all cores.

import (
	"fmt"
	"iter"
	"runtime"
	"sync"
	"sync/atomic"
)

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

// inOrder does work on the inputs, in as many goroutines as workers, each with a function of its own that newWork
// makes, and yields the results in the order of the inputs. As many as ahead are under way beside the one that is due.
func inOrder[In, Out any](inputs iter.Seq[In], workers, ahead int, newWork func() func(In) Out) iter.Seq[Out] {
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
		for range workers {
			running.Go(func() {
				work := newWork()
				for t := range tasks {
					t.out <- work(t.in)
				}
			})
		}
		running.Go(func() {
			defer close(tasks)
			defer close(outs)
			for in := range inputs {
				out := make(chan Out, 1)
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
