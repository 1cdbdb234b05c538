// This file finds the steps of the program.

package kineto

import (
	"bytes"
	"slices"

	"github.com/tracedag/tracedag/dag"
	"github.com/tracedag/tracedag/formats/format"
)

// stepName begins the annotations of the steps of torch.profiler.
const stepName = "ProfilerStep#"

// mostStep is the highest number of a step. Steps of a trace count from 1, so that 0 becomes 1.
const mostStep = 1<<31 - 2

// stepNumber returns the number in the name of a step, which other text may follow.
func stepNumber(name []byte, prefixes []string) (int32, bool) {
	rest, ok := bytes.CutPrefix(name, []byte(prefixes[0]))
	n, digits := int64(0), 0
	for ok && digits < len(rest) && rest[digits]-'0' <= 9 && n <= mostStep {
		n = 10*n + int64(rest[digits]-'0')
		digits++
	}
	return int32(n), digits > 0 && n <= mostStep
}

// stepAt returns the step at a time: its number plus first, or 0 if there is none.
func (r *recording) stepAt(at dag.Time, first int32) int32 {
	lo, hi := 0, len(r.steps)
	for lo < hi {
		if mid := (lo + hi) / 2; r.steps[mid].start <= at {
			lo = mid + 1
		} else {
			hi = mid
		}
	}
	if lo == 0 || at > r.steps[lo-1].end {
		return 0
	}
	return r.steps[lo-1].number + first
}

// stepsOf returns the highest number of a step in the trace, and the difference to the numbers of the files: 1 if one
// of
// them is 0.
func (j *job) stepsOf() (highest, first int32) {
	for i := range j.ranks {
		for _, s := range j.ranks[i].steps {
			highest = max(highest, s.number)
			if s.number == 0 {
				first = 1
			}
		}
	}
	return highest + first, first
}

// keepSteps removes the device ops that were not launched in the steps that the options select.
func (j *job) keepSteps() error {
	keep := j.o.own.steps
	if !keep.some {
		return nil
	}
	if keep.last {
		for i := range j.ranks {
			for _, s := range j.ranks[i].steps {
				keep.first = max(keep.first, s.number)
			}
		}
		keep.most = keep.first
	}
	kept := 0
	for i := range j.ranks {
		r := j.ranks[i].recording
		r.ops = slices.DeleteFunc(r.ops, func(o deviceOp) bool {
			if o.correlation < 0 {
				return true
			}
			n := r.stepAt(r.calls[o.correlation].start, 1) - 1
			return n < keep.first || n > keep.most
		})
		kept += len(r.ops)
	}
	if kept == 0 {
		return format.FileErrorf(j.ranks[0].name, "--steps %s: expected ops in such steps, found none: ProfilerStep#N "+
			"annotates steps", j.o.own.Steps)
	}
	return nil
}
