// This file finds the steps of a program, such as the iterations of training, by its annotations.

package nsys

import (
	"slices"
	"strings"
)

// stepRange is a range that a program annotated as a step, with its number. Times are those of the report.
type stepRange struct {
	start, end int64
	number     int32
}

// stepNames are the names of steps unless an option gives another, longer ones first.
var stepNames = []string{"iteration", "iter", "step"}

// mostStep is the highest number of a step. Steps of a trace count from 1, so that 0 becomes 1.
const mostStep = 1<<31 - 2

// stepNumber returns the number after the first name of a step in a text, such as 17 in "iteration 17" and
// "ProfilerStep#17", and whether there is one. Case does not matter. Blanks and the characters _ # : = may be between.
func stepNumber(text string, names []string) (number int32, found bool) {
	for at := range len(text) {
		for _, name := range names {
			if len(text)-at <= len(name) || text[at]|0x20 != name[0]|0x20 ||
				!strings.EqualFold(text[at:at+len(name)], name) {
				continue
			}
			rest := strings.TrimLeft(text[at+len(name):], " _#:=")
			n, digits := int64(0), 0
			for digits < len(rest) && digitAt(rest, digits) && n <= mostStep {
				n = 10*n + int64(rest[digits]-'0')
				digits++
			}
			if digits > 0 && n <= mostStep {
				return int32(n), true
			}
		}
	}
	return 0, false
}

// step stores a range that may be a step. A range that starts within an earlier one of its process is a part of that.
func (m *machine) step(row *annotationRow) {
	if row.globalTid == 0 || row.end == unknownTime || checkTimes(row.start, row.end) != nil {
		return
	}
	number, found := stepNumber(row.text, m.r.stepNames)
	if !found {
		return
	}
	key := processKey(row.globalTid)
	if known := m.steps[key]; len(known) > 0 && row.start < known[len(known)-1].end {
		return
	}
	m.steps[key] = append(m.steps[key], stepRange{row.start, row.end, number})
}

// stepAt returns the step of a process at a time: its number plus first, or 0 if there is none.
func (r *report) stepAt(proc int32, time int64, first int32) int32 {
	known := r.steps[r.procs[proc].key]
	after, _ := slices.BinarySearchFunc(known, time, func(s stepRange, t int64) int {
		if s.start <= t {
			return -1
		}
		return 1
	})
	if after == 0 || time > known[after-1].end {
		return 0
	}
	return known[after-1].number + first
}

// steps returns the highest number of a step in the trace, and the difference to the numbers in the reports: 1 if one
// of them is 0, because those of traces count from 1.
func (j *job) steps() (highest, first int32) {
	for _, r := range j.reports {
		for _, known := range r.steps {
			for _, s := range known {
				highest = max(highest, s.number)
				if s.number == 0 {
					first = 1
				}
			}
		}
	}
	return highest + first, first
}
