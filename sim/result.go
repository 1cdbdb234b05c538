package sim

import (
	"encoding/json"
	"strconv"
	"time"

	"github.com/tracedag/tracedag/dag"
)

// Result is the outcome of a run, with the same fields for every backend. [Result.WriteJSON] writes it with its
// sections.
type Result struct {
	Backend  string    `json:"backend"`
	Model    string    `json:"model,omitempty"` // which of the backend's models, where it has several
	Params   Values    `json:"params"`          // the backend's parameters, as they were used
	Complete bool      `json:"complete"`        // every op ran, and every message met its receive
	Aborted  string    `json:"aborted,omitempty"`
	Makespan Clock     `json:"makespan_ps"`       // the latest finish
	Finish   []Clock   `json:"finish_ps"`         // by rank: when its last op finished
	Ops      int64     `json:"ops"`               // of the trace
	NeverRun int64     `json:"never_run"`         // ops that did not run
	Unended  int64     `json:"unended,omitempty"` // ops that began and did not end, where the backend tells
	Events   int64     `json:"events"`            // handled, as the backend counts them
	Messages int64     `json:"messages"`          // sent
	Bytes    int64     `json:"bytes"`             // of the messages sent
	Leftover *Leftover `json:"leftover,omitempty"`
	Stuck    []Stuck   `json:"stuck,omitempty"` // the first ops that did not run or were not matched
	Wall     Seconds   `json:"wall_s"`          // of the replay proper
	OpsPerS  float64   `json:"ops_per_s"`       // ops that ran, by wall time

	Settings string    `json:"-"` // parameters in one line for people; "": none
	Sections []Section `json:"-"` // results beyond the common fields
	Cells    []string  `json:"-"` // values of Traits.Columns in tables of sweeps
	Times    OpTimes   `json:"-"` // of all ops; nil: the backend does not record them
}

// Clock is a time that a backend reports: Ticks of Unit each. Backends that reproduce a simulator whose clocks wrap
// around report what those show, which may be more than dag.Time holds; in JSON it is the exact number of picoseconds.
type Clock struct {
	Ticks uint64
	Unit  dag.Time
}

// AppendText appends the clock in picoseconds.
func (c Clock) AppendText(b []byte) ([]byte, error) {
	b = strconv.AppendUint(b, c.Ticks, 10)
	if c.Ticks == 0 {
		return b, nil
	}
	for u := c.Unit; u >= 10; u /= 10 {
		b = append(b, '0')
	}
	return b, nil
}

// MarshalJSON returns the clock in picoseconds.
func (c Clock) MarshalJSON() ([]byte, error) {
	return c.AppendText(nil)
}

// String returns the clock as a time where dag.Time holds it, in picoseconds otherwise.
func (c Clock) String() string {
	if c.Ticks <= uint64(dag.MaxTime/c.Unit) {
		return (dag.Time(c.Ticks) * c.Unit).String()
	}
	b, _ := c.AppendText(nil)
	return string(b) + "ps (wrapped around)"
}

// Seconds is a wall-clock duration, in seconds in JSON.
type Seconds time.Duration

// MarshalJSON returns the duration in seconds.
func (s Seconds) MarshalJSON() ([]byte, error) {
	return json.Marshal(time.Duration(s).Seconds())
}

// Leftover lists the messages and receives that found no partner, by rank.
type Leftover struct {
	Unexpected map[int][][2]int64 `json:"unexpected"` // messages without a receive: source and tag
	Receive    map[int][][2]int64 `json:"receive"`    // receives without a message: source and tag, -1 = any
}

// Count returns how many there are; l may be nil.
func (l *Leftover) Count() int64 {
	n := int64(0)
	if l != nil {
		for _, lists := range [...]map[int][][2]int64{l.Unexpected, l.Receive} {
			for _, list := range lists {
				n += int64(len(list))
			}
		}
	}
	return n
}

// Stuck is an op that did not run, or ran but waits for a partner.
type Stuck struct {
	Rank  int    `json:"rank"`
	Op    int    `json:"op"` // its index within the rank
	Kind  string `json:"kind"`
	Waits string `json:"waits_for"`
	Node  string `json:"node,omitempty"` // what the trace's own format calls the op, where that is known
}

// MaxStuck is how many stuck ops a result lists.
const MaxStuck = 10

// Finished fills in the wall time and the rate.
func (r *Result) Finished(started time.Time) {
	wall := max(time.Since(started), time.Nanosecond)
	r.Wall = Seconds(wall)
	r.OpsPerS = float64(r.Ops-r.NeverRun) / wall.Seconds()
}
