package store

import (
	"fmt"

	"github.com/tracedag/tracedag/internal/par"
)

// parallel is par.Each, with panics turned into errors.
func parallel(n int, do func(i int) error) error {
	return par.Each(n, func(i int) error {
		return guard(func() error { return do(i) })
	})
}

// guard calls f and turns a panic, which only a mistake in this package can cause, into an error: files come from
// anywhere.
func guard(f func() error) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("internal error: %v", r)
		}
	}()
	return f()
}
