package par

import (
	"context"
	"fmt"
)

// Interrupted returns nil until ctx ends, and then an error that wraps its cause. A nil ctx never ends. Long loops call
// it every few milliseconds.
func Interrupted(ctx context.Context) error {
	if ctx == nil || ctx.Err() == nil {
		return nil
	}
	return fmt.Errorf("interrupted: %w", context.Cause(ctx))
}

// Watch checks a context for a loop over small items, such as rows of a file. A watch is for one goroutine.
type Watch struct {
	Context context.Context // nil: never ends
	calls   uint32
}

// watchCalls is the number of calls of Err per check.
const watchCalls = 1 << 14

// Err returns the error of [Interrupted] in every 2^14th call, and nil in the others.
func (w *Watch) Err() error {
	if w.calls++; w.calls%watchCalls != 0 {
		return nil
	}
	return Interrupted(w.Context)
}
