package sim

import (
	"context"

	"github.com/tracedag/tracedag/internal/par"
)

// Progress counts ops and reports them periodically.
type Progress struct {
	Func     func(ops int64) // receives the number of ops since the last call; nil: none
	Ops      int64           // number of ops run
	reported int64
}

// progressOps is the number of ops between two reports, a power of two.
const progressOps = 1 << 16

// Ran counts an op.
func (p *Progress) Ran() {
	if p.Ops++; p.Ops%progressOps == 0 {
		p.Report()
	}
}

// Report reports the ops since the last report.
//
//go:noinline // so that Ran is
func (p *Progress) Report() {
	if p.Func != nil {
		p.Func(p.Ops - p.reported)
	}
	p.reported = p.Ops
}

// Add adds the count of other, including ops already reported.
func (p *Progress) Add(other *Progress) {
	p.Ops += other.Ops
	p.reported += other.reported
}

// Interrupted returns nil until ctx ends, and then an error that wraps the context's cause. It returns nil for a nil
// context. Long loops call it every few milliseconds.
func Interrupted(ctx context.Context) error {
	return par.Interrupted(ctx)
}

// ProgressUntil returns a function for [Progress.Func]. It calls progress, unless that is nil, and after the end of ctx
// calls stop with the error of [Interrupted].
func ProgressUntil(ctx context.Context, progress func(ops int64), stop func(error)) func(ops int64) {
	if ctx == nil {
		return progress
	}
	return func(ops int64) {
		if progress != nil {
			progress(ops)
		}
		if err := Interrupted(ctx); err != nil {
			stop(err)
		}
	}
}
