// This file buffers the rows of unordered forms until all are read.

package nsys

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/tracedag/tracedag/formats/format"
)

// buffered is the rows of an export in the order of reading.
type buffered struct {
	r           *report
	annotations []annotationRow
	kernels     []kernelRow
	launches    []launchRow
}

// launchRow is a row of the table of host calls.
type launchRow struct {
	start, globalTid, correlation int64
}

// finish processes the annotations, in order, after all other rows.
func (b *buffered) finish() (*report, error) {
	r := b.r
	for i := range b.kernels {
		if err := r.watch.Err(); err != nil {
			return nil, err
		}
		if err := r.problem("such kernels are skipped", r.addKernel(&b.kernels[i])); err != nil {
			return nil, &format.FileError{File: r.name, Err: err}
		}
	}
	index := r.byCorrelation()
	for _, l := range b.launches {
		if err := r.watch.Err(); err != nil {
			return nil, err
		}
		r.addLaunch(index, l.start, l.globalTid, l.correlation)
	}
	r.sortLaunches()
	slices.SortStableFunc(b.annotations, func(x, y annotationRow) int { return cmp.Compare(x.start, y.start) })
	m := newMachine(r)
	at := int64(0)
	r.place = func() string { return fmt.Sprintf("%s:%d", r.name, at) }
	for i := range b.annotations {
		if err := r.watch.Err(); err != nil {
			return nil, err
		}
		at = b.annotations[i].row
		if err := m.annotation(&b.annotations[i]); err != nil {
			return nil, &format.FileError{File: r.place(), Err: err}
		}
	}
	r.place = func() string { return r.name }
	if err := m.finish(); err != nil {
		return nil, &format.FileError{File: r.name, Err: err}
	}
	return r, nil
}

// addAnnotation stores an annotation.
func (b *buffered) addAnnotation(row annotationRow) {
	if row.end < row.start {
		row.end = unknownTime // some versions write 0 or -1 for none
	}
	b.annotations = append(b.annotations, row)
}
