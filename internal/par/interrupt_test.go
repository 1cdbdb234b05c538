package par

import (
	"context"
	"errors"
	"testing"
)

func TestInterrupted(t *testing.T) {
	var none context.Context
	if err := Interrupted(none); err != nil {
		t.Errorf("without a context: %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	if err := Interrupted(ctx); err != nil {
		t.Errorf("before the end: %v", err)
	}
	cancel()
	if err := Interrupted(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("after the end: %v", err)
	}
	reason := errors.New("reason")
	caused, end := context.WithCancelCause(t.Context())
	end(reason)
	if err := Interrupted(caused); !errors.Is(err, reason) {
		t.Errorf("with a cause: %v", err)
	}
}

func TestWatch(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	w := Watch{Context: ctx}
	calls := 1
	for w.Err() == nil {
		calls++
	}
	if calls != watchCalls {
		t.Errorf("the context is checked in call %d, want %d", calls, watchCalls)
	}
	never := Watch{}
	for range 2 * watchCalls {
		if err := never.Err(); err != nil {
			t.Fatal(err)
		}
	}
}
