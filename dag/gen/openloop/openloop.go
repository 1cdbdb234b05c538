// Package openloop generates traces of messages that do not wait for each other: they come at random times, however
// busy the network is. It is what the generators dag/gen/dcnw, dag/gen/flows and dag/gen/workload have in common.
//
// Message k of a workload, counted from 0 in the order of time, is a send of its source task, released at its time, and
// a receive of its destination without dependencies, both with tag k.
package openloop

import (
	"cmp"
	"fmt"
	"math"

	"github.com/tracedag/tracedag/dag"
)

// Workload describes the messages between some tasks, one a rank. Sources are uniform over the tasks.
type Workload struct {
	Title    string
	Tasks    int      // 2..MaxTasks
	Messages int64    // 0..MaxMessages
	Clock    dag.Time // times are multiples of it; 1 ps or more
	MeanGap  float64  // mean time between successive messages of the workload, in picoseconds; 0 or more
	End      dag.Time // what would come later comes now; a multiple of Clock; 0: nothing is too late
	Classes  []Class  // kinds of message; one or more
	Seed     int64    // of every random choice
}

// Class is a kind of message.
type Class struct {
	Share       float64 // how much of all messages is of this class, relative to the shares of the others
	Sizes       Sizes
	Destination Law
}

// Limits of a workload.
const (
	MaxTasks    = 1 << 20
	MaxMessages = 1 << 40
	MaxBytes    = 1 << 50 // of a message

	maxTied = 1 << 22 // messages in a tick, on average: those of a tick are in memory at a time
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

// Check returns an error, a ParamError where it is a parameter's, for what NewSource would refuse without having to
// look at tables of destinations.
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

// checkTimes refuses workloads that last longer than times can tell, and those with more messages in a tick than fit
// into memory.
func (w *Workload) checkTimes() error {
	n := float64(w.Messages)
	if !(w.MeanGap >= 0) {
		return fmt.Errorf("the mean time between messages is %v ps, expected 0 or more", w.MeanGap)
	}
	if tied := min(n, float64(w.Clock)/w.MeanGap); tied > maxTied {
		return &ParamError{"clock", w.Clock.String(),
			fmt.Sprintf("so short that at most %d messages come in a tick (these are about %.3g)", maxTied, tied)}
	}
	if w.End > 0 {
		return nil
	}
	// Of the n gaps together the standard deviation is sqrt(n) mean gaps.
	if last := (n + 40*math.Sqrt(n)) * w.MeanGap; last > float64(dag.MaxTime/2) {
		return &ParamError{"messages", fmt.Sprint(w.Messages),
			fmt.Sprintf("so few that they take at most %v (these take about %.3g s)", dag.MaxTime/2,
				n*w.MeanGap/float64(dag.Second))}
	}
	return nil
}
