package memory_test

import (
	"context"
	"fmt"
	"strings"

	"github.com/tracedag/tracedag/formats"
	"github.com/tracedag/tracedag/memory"
)

// Read a trace within 1 GiB: numbers that cannot fit are errors before memory is allocated for them, and memory that
// grows beyond the limit cancels the context.
func ExampleWatch() {
	const limit = 1 << 30
	ctx, cancel := context.WithCancelCause(memory.WithLimit(context.Background(), limit))
	stop := memory.Watch(limit, cancel)
	defer stop()
	claim := strings.NewReader("num_ranks 4000000000\nrank 0 {\n}\n")
	_, err := formats.Read("-", formats.Options{Context: ctx, Stdin: claim})
	text, _, _ := strings.Cut(err.Error(), " need")
	fmt.Println(text)
	// Output: <stdin>: line 1: 4000000000 ranks
}
