// This file collects output that several goroutines produce.

package goal

import (
	"io"
	"sync/atomic"

	"github.com/tracedag/tracedag/internal/par"
)

// output collects the output. After an error it writes nothing more.
type output struct {
	w   io.Writer // nil: everything is kept
	buf []byte
	err error

	kept, spare [][]byte // kept: data before buf; spare: buffers for reuse
}

// spill writes out the buffer if it is large. Callers append to buf and call spill regularly.
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

// take writes out the data that another output has kept. The receiver's own buffer must be empty.
func (o *output) take(part *output) error {
	for _, b := range part.kept {
		o.write(b)
		part.spare = append(part.spare, b[:0])
	}
	o.write(part.buf)
	part.kept, part.buf = part.kept[:0], part.buf[:0]
	return o.err
}

// inOrder does work for 0, 1, ..., n-1, with each function in a goroutine of its own, and calls take with the
// results in order. Work receives a zero T or one that take has processed. inOrder returns the error of the lowest
// number.
func inOrder[T any](n int, workers []func(i int, t *T) error, take func(t *T) error) error {
	type result struct {
		t   *T
		err error
	}
	spare := 2 * len(workers) // maximum number of numbers in progress
	free := make(chan *T, spare)
	for range spare {
		free <- new(T)
	}
	var next atomic.Int64
	start := func() func(int) result {
		work := workers[next.Add(1)-1]
		return func(i int) result {
			t := <-free
			return result{t, work(i, t)}
		}
	}
	for r := range par.Ordered(par.Indices(n), len(workers), spare-2, start) {
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
