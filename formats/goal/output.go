// This file collects what is written, and lets several goroutines make it.

package goal

import (
	"io"
	"sync"
	"sync/atomic"
)

// output collects what is written. After an error it writes nothing more.
type output struct {
	w   io.Writer // nil: everything is kept
	buf []byte
	err error

	kept, spare [][]byte // what is kept before buf, and buffers for more
}

// spill empties the buffer when it is large. Callers append to buf and spill now and then.
func (o *output) spill() {
	if len(o.buf) >= chunk {
		o.empty()
	}
}

func (o *output) empty() {
	if o.w != nil {
		o.flush()
		return
	}
	o.kept = append(o.kept, o.buf)
	if last := len(o.spare) - 1; last >= 0 {
		o.buf, o.spare = o.spare[last], o.spare[:last]
	} else {
		o.buf = make([]byte, 0, cap(o.buf))
	}
}

// flush writes out the buffer.
func (o *output) flush() error {
	o.write(o.buf)
	o.buf = o.buf[:0]
	return o.err
}

func (o *output) write(b []byte) {
	if o.err == nil {
		_, o.err = o.w.Write(b)
	}
}

// take writes out what another output has kept. Its own buffer must be empty.
func (o *output) take(part *output) error {
	for _, b := range part.kept {
		o.write(b)
		part.spare = append(part.spare, b[:0])
	}
	o.write(part.buf)
	part.kept, part.buf = part.kept[:0], part.buf[:0]
	return o.err
}

// inOrder does work for 0, 1, ..., n-1, with each of the functions in a goroutine of its own, and calls take with the
// results in order. Work gets the zero T or one as take has left it. It returns the error of the lowest number that has
// one.
func inOrder[T any](n int, workers []func(i int, t *T) error, take func(t *T) error) error {
	type result struct {
		t   *T
		err error
	}
	var wait sync.WaitGroup
	var next atomic.Int64
	// Whoever takes a number has a T first, so that all numbers under way are less than spare apart.
	spare := 2 * len(workers)
	free := make(chan *T, spare)
	done := make([]chan result, spare)
	for i := range done {
		done[i] = make(chan result, 1)
		free <- new(T)
	}
	stop := make(chan struct{})
	defer wait.Wait()
	defer close(stop)
	for _, work := range workers {
		wait.Go(func() {
			for {
				var t *T
				select {
				case t = <-free:
				case <-stop:
					return
				}
				i := int(next.Add(1)) - 1
				if i >= n {
					return
				}
				err := work(i, t)
				done[i%spare] <- result{t, err}
			}
		})
	}
	for i := range n {
		r := <-done[i%spare]
		if r.err != nil {
			return r.err
		}
		if err := take(r.t); err != nil {
			return err
		}
		free <- r.t
	}
	return nil
}
