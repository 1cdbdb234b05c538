package store

import (
	"fmt"

	"github.com/tracedag/tracedag/internal/par"
)

// parallel is par.Each; it turns panics into errors.
func parallel(n int, do func(i int) error) error {
	return par.Each(n, func(i int) error {
		return guard(func() error { return do(i) })
	})
}

// guard calls f and turns a panic into an error. Only a bug in this package causes a panic, but files are
// untrusted.
func guard(f func() error) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("internal error: %v", r)
		}
	}()
	return f()
}
