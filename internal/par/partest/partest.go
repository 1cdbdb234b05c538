// Package partest tests that long calls end with their context.
package partest

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
)

// EndsWithContext checks that call ends with [context.Canceled] if its context ends at the first check or in the middle
// of all checks of a complete call. A complete call must succeed and check at least min times.
func EndsWithContext(t *testing.T, min int64, call func(ctx context.Context) error) {
	t.Helper()
	never := newCountdown(t.Context(), 0)
	if err := call(never); err != nil {
		t.Fatalf("a complete call: %v", err)
	}
	checks := never.checks.Load()
	if checks < min {
		t.Fatalf("a complete call checks the context %d times, want %d or more", checks, min)
	}
	for _, at := range []int64{1, checks/2 + 1} {
		ends := newCountdown(t.Context(), at)
		if err := call(ends); !errors.Is(err, context.Canceled) {
			t.Errorf("a call whose context ends at check %d of %d: error %v", at, checks, err)
		}
		if late := ends.checks.Load() - at; late > checks/2+16 {
			t.Errorf("a call whose context ends at check %d of %d goes on for %d checks", at, checks, late)
		}
	}
}

// countdown is a context that counts the calls of Err, and ends in one of them.
type countdown struct {
	context.Context
	cancel context.CancelFunc
	checks atomic.Int64
	last   int64 // number of the call that ends it; 0: never
}

func newCountdown(parent context.Context, last int64) *countdown {
	c := &countdown{last: last}
	c.Context, c.cancel = context.WithCancel(parent)
	return c
}

// Err returns the error of the context.
func (c *countdown) Err() error {
	if c.checks.Add(1) == c.last {
		c.cancel()
	}
	return c.Context.Err()
}
