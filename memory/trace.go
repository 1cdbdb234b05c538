package memory

import (
	"context"

	"github.com/tracedag/tracedag/dag"
)

// Least memory in bytes of a rank, without ops, and of an op. A rank takes 8 bytes in the trace, and programs keep
// counts, offsets and communicators of it. An op takes a byte for its kind, four for the end of its list of
// dependencies and four or eight in each further column; real ones have two to five of these.
const (
	rankBytes = 64
	opBytes   = 9
)

// CheckRanks returns an [*Error] if a trace with the product of the counts as the number of ranks cannot be in memory.
func CheckRanks(ctx context.Context, counts ...int64) error {
	return Check(ctx, "ranks", rankBytes, counts...)
}

// CheckOps is [CheckRanks] for ops.
func CheckOps(ctx context.Context, counts ...int64) error {
	return Check(ctx, "ops", opBytes, counts...)
}

// CheckTrace returns an [*Error] if the trace of a header cannot be in memory as a whole.
func CheckTrace(ctx context.Context, h *dag.Header) error {
	if err := CheckRanks(ctx, int64(h.Ranks)); err != nil {
		return err
	}
	if h.Stable { // ranks may share columns
		return CheckBatches(ctx, h)
	}
	return CheckOps(ctx, h.Ops)
}

// CheckBatches returns an [*Error] if a batch of a header cannot be in memory.
func CheckBatches(ctx context.Context, h *dag.Header) error {
	for i := range h.Batches {
		b := &h.Batches[i]
		if err := Check(ctx, "ranks of one batch", rankBytes, int64(b.Last-b.First)); err != nil {
			return err
		}
		if h.Stable && b.Last-b.First != 1 {
			continue
		}
		if err := Check(ctx, "ops of one batch", opBytes, b.Ops); err != nil {
			return err
		}
	}
	return nil
}

// ReadTrace reads the whole trace, as [dag.ReadAll], after [CheckTrace].
func ReadTrace(ctx context.Context, s dag.Source) (*dag.Trace, error) {
	h, err := s.Header()
	if err != nil {
		return nil, err
	}
	if err := CheckTrace(ctx, h); err != nil {
		return nil, err
	}
	return dag.ReadAll(s)
}
