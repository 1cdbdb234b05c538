package pattern

import (
	"context"
	"fmt"
	"math"

	"github.com/tracedag/tracedag/dag"
)

// Params describe a trace of a communication pattern.
type Params struct {
	Ranks      int      // 1..2^24
	Bytes      int64    // 0..2^38; its meaning depends on the pattern
	Iterations int      // 1 or more
	Compute    dag.Time // computation of every rank at the start of each iteration; 0 or more
	Root       int      // a rank; for patterns with a root

	Context context.Context // ends NewSource and reading early, with an error that wraps its cause; nil: never
}

// Default returns 16 ranks that exchange 64 KiB ten times, with 100 us of computation before each.
func Default() Params {
	return Params{Ranks: 16, Bytes: 64 << 10, Iterations: 10, Compute: 100 * dag.Microsecond}
}

// Limits that keep sizes and counts in range.
const (
	maxRanks = 1 << 24
	maxBytes = 1 << 38 // of a message: sums over all ranks are in range
	maxOps   = 1 << 30 // of a rank
)

func (p *Params) check() error {
	switch {
	case p.Ranks < 1 || p.Ranks > maxRanks:
		return fmt.Errorf("ranks is %d, expected 1..%d", p.Ranks, maxRanks)
	case p.Bytes < 0 || p.Bytes > maxBytes:
		return fmt.Errorf("bytes is %d, expected 0..%d", p.Bytes, int64(maxBytes))
	case p.Iterations < 1 || p.Iterations > math.MaxInt32:
		return fmt.Errorf("iterations is %d, expected 1..%d", p.Iterations, math.MaxInt32)
	case p.Compute < 0:
		return fmt.Errorf("compute time is %v, expected 0 or more", p.Compute)
	case p.Root < 0 || p.Root >= p.Ranks:
		return fmt.Errorf("root is %d, expected 0..%d", p.Root, p.Ranks-1)
	}
	return nil
}
