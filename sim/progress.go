package sim

import (
	"context"
	"fmt"
)

// Progress counts ops and reports them now and then.
type Progress struct {
	Tell func(ops int64) // called with the number of ops since the last call, unless nil
	Ops  int64           // that ran
	told int64
}

// progressOps is the number of ops between two reports.
const progressOps = 1 << 16

// Ran counts an op.
func (p *Progress) Ran() {
	if p.Ops++; p.Ops-p.told >= progressOps {
		p.Report()
	}
}

// Report reports the ops since the last report.
func (p *Progress) Report() {
	if p.Tell != nil {
		p.Tell(p.Ops - p.told)
	}
	p.told = p.Ops
}

// Add adds the count of another, including what it has reported.
func (p *Progress) Add(other *Progress) {
	p.Ops += other.Ops
	p.told += other.told
}

// Interrupted returns nil until a context ends, and then an error that wraps the context's. A nil context never ends.
// Long loops call it every few milliseconds.
func Interrupted(ctx context.Context) error {
	if ctx == nil {
		return nil
	}
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("interrupted: %w", err)
	}
	return nil
}

// TellUntil returns a function for [Progress.Tell] that calls tell, unless that is nil, and stop with the error of
// [Interrupted] once the context has ended.
func TellUntil(ctx context.Context, tell func(ops int64), stop func(error)) func(ops int64) {
	if ctx == nil {
		return tell
	}
	return func(ops int64) {
		if tell != nil {
			tell(ops)
		}
		if err := Interrupted(ctx); err != nil {
			stop(err)
		}
	}
}
