// Package openloop generates traces of messages with random arrival times that do not depend on the network. The
// generators in dag/gen/dcnw, dag/gen/flows, dag/gen/matrix and dag/gen/workload are built on it.
//
// Message k of a workload, counted from 0 in the order of time, is a send of its source task, released at its time, and
// a receive of its destination without dependencies, both with tag k.
package openloop

import (
	"cmp"
	"context"
	"fmt"
	"math"

	"github.com/tracedag/tracedag/dag"
)

// Workload describes the messages between tasks, one per rank. Sources are uniform over the tasks.
type Workload struct {
	Title    string
	Tasks    int      // 2..MaxTasks
	Messages int64    // 0..MaxMessages
	Clock    dag.Time // times are multiples of it; 1 ps or more
	MeanGap  float64  // mean time between successive messages of the workload, in picoseconds; 0 or more
	End      dag.Time // later messages come at this time; a multiple of Clock; 0: no limit
	Classes  []Class  // kinds of message; one or more
	Seed     int64    // of every random choice

	Context context.Context // ends NewSource and reading early, with an error that wraps its cause; nil: never
}

// Class is a kind of message.
type Class struct {
	Share       float64 // part of all messages, relative to the shares of the other classes
	Sizes       Sizes
	Destination DestinationPolicy
}

// Limits of a workload.
const (
	MaxTasks    = 1 << 20
	MaxMessages = 1 << 40
	MaxBytes    = 1 << 50 // of a message

	maxTied = 1 << 22 // mean number of messages in a tick: those of one tick are in memory together
)

// LineError reports a line of an input file that does not parse.
type LineError struct {
	Line            int64 // from 1
	Expected, Found string
}

func (e *LineError) Error() string {
	return fmt.Sprintf("line %d: expected %s, found %s", e.Line, e.Expected, e.Found)
}

// ParamError reports a parameter out of range. The generators name parameters as the flags of tracegen do.
type ParamError struct {
	Param    string // such as "load"
	Found    string
	Expected string // such as "above 0"
}

func (e *ParamError) Error() string {
	return fmt.Sprintf("%s is %s, expected %s", e.Param, e.Found, e.Expected)
}

// InRange returns a ParamError unless the value is from least to most.
func InRange[T int | int64 | dag.Time](param string, value, least, most T) error {
	if value < least || value > most {
		return &ParamError{param, fmt.Sprint(value), fmt.Sprintf("%v..%v", least, most)}
	}
	return nil
}

// Check validates the workload, except for tables of destinations. The error for a parameter is a *ParamError.
func (w *Workload) Check() error {
	err := cmp.Or(
		InRange("tasks", w.Tasks, 2, MaxTasks),
		InRange("messages", w.Messages, 0, MaxMessages),
		InRange("clock", w.Clock, 1, dag.MaxTime/2),
	)
	for _, c := range w.Classes {
		err = cmp.Or(err, c.Sizes.check())
	}
	return cmp.Or(err, w.checkTimes())
}

// checkTimes returns an error for workloads longer than the range of times, and for more messages in a tick than fit
// into memory.
func (w *Workload) checkTimes() error {
	n := float64(w.Messages)
	if !(w.MeanGap >= 0) {
		return fmt.Errorf("the mean time between messages is %v ps, expected 0 or more", w.MeanGap)
	}
	if tied := min(n, float64(w.Clock)/w.MeanGap); tied > maxTied {
		return &ParamError{"clock", w.Clock.String(),
			fmt.Sprintf("shorter, with at most %d messages per tick (found about %.3g)", maxTied, tied)}
	}
	if w.End > 0 {
		return nil
	}
	// The sum of n gaps has a standard deviation of sqrt(n) mean gaps.
	if last := (n + 40*math.Sqrt(n)) * w.MeanGap; last > float64(dag.MaxTime/2) {
		return &ParamError{"messages", fmt.Sprint(w.Messages),
			fmt.Sprintf("so few that they take at most %v (these take about %.3g s)", dag.MaxTime/2,
				n*w.MeanGap/float64(dag.Second))}
	}
	return nil
}
