package sim

import (
	"encoding/json"
	"math"
	"math/big"
	"strconv"
	"time"

	"github.com/tracedag/tracedag/dag"
)

// Result is the outcome of a run, with the same fields for every backend. [Result.WriteJSON] writes it with its
// sections.
type Result struct {
	Backend   string     `json:"backend"`
	Model     string     `json:"model,omitempty"`
	Params    Values     `json:"params"`   // parameters in use
	Complete  bool       `json:"complete"` // every op ran and every message matched a receive
	Aborted   string     `json:"aborted,omitempty"`
	Makespan  Clock      `json:"makespan_ps"`       // latest finish
	Finish    []Clock    `json:"finish_ps"`         // by rank: end of its last op
	Ops       int64      `json:"ops"`               // number of ops of the trace
	NeverRun  int64      `json:"never_run"`         // number of ops that did not run
	Unended   int64      `json:"unended,omitempty"` // number of ops that started and did not end, if reported
	Events    int64      `json:"events"`            // number of handled events; each backend defines its events
	Messages  int64      `json:"messages"`          // number of messages sent
	Bytes     int64      `json:"bytes"`             // bytes of the messages sent, at most math.MaxInt64; see TotalBytes
	Unmatched *Unmatched `json:"leftover,omitempty"`
	Stuck     []Stuck    `json:"stuck,omitempty"` // the first ops that did not run or match
	Wall      Seconds    `json:"wall_s"`          // wall-clock time of the replay; in JSON with Timing
	OpsPerS   float64    `json:"ops_per_s"`       // ops run per second of wall-clock time; in JSON with Timing

	ExactBytes *big.Int `json:"-"` // bytes of the messages sent if they exceed math.MaxInt64, else nil

	Timing   bool      `json:"-"` // JSON has the wall-clock figures, which differ from run to run
	Topology *Topology `json:"-"` // network of the run; nil if the backend has no topology
	Settings string    `json:"-"` // parameters in one line for the summary; "": none
	Sections []Section `json:"-"` // results beyond the common fields
	Path     *Path     `json:"-"` // critical path; nil: not recorded
}

// Clock is a time reported by a backend, in ticks of Unit. A backend that reproduces a simulator with wrapping clocks
// reports the simulator's values, which may exceed the range of dag.Time. JSON has the exact number of picoseconds.
type Clock struct {
	Ticks uint64
	Unit  dag.Time
}

// AppendText appends the time in picoseconds.
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

// MarshalJSON returns the time in picoseconds.
func (c Clock) MarshalJSON() ([]byte, error) {
	return c.AppendText(nil)
}

// String formats the clock as a dag.Time if it is in range, and in picoseconds otherwise.
func (c Clock) String() string {
	if c.InRange() {
		return (dag.Time(c.Ticks) * c.Unit).String()
	}
	b, _ := c.AppendText(nil)
	return string(b) + "ps (beyond 106 days)"
}

// InRange reports whether the time is at most dag.MaxTime.
func (c Clock) InRange() bool {
	return c.Ticks <= uint64(dag.MaxTime/c.Unit)
}

// TotalBytes returns the bytes of the messages sent, which may exceed math.MaxInt64. JSON has this number.
func (r *Result) TotalBytes() *big.Int {
	if r.ExactBytes != nil {
		return r.ExactBytes
	}
	return big.NewInt(r.Bytes)
}

// SetBytes sets the bytes of the messages sent to high * 2^64 + low.
func (r *Result) SetBytes(high, low uint64) {
	r.Bytes, r.ExactBytes = int64(low), nil
	if high > 0 || low > math.MaxInt64 {
		r.Bytes = math.MaxInt64
		r.ExactBytes = new(big.Int).Lsh(new(big.Int).SetUint64(high), 64)
		r.ExactBytes.Add(r.ExactBytes, new(big.Int).SetUint64(low))
	}
}

// Seconds is a wall-clock duration; JSON has seconds.
type Seconds time.Duration

// MarshalJSON returns the duration in seconds.
func (s Seconds) MarshalJSON() ([]byte, error) {
	return json.Marshal(time.Duration(s).Seconds())
}

// Unmatched lists the messages and receives without a partner, by rank.
type Unmatched struct {
	Unexpected map[int][][2]int64 `json:"unexpected"` // messages without a receive: source and tag
	Receive    map[int][][2]int64 `json:"receive"`    // receives without a message: source and tag, -1 = any
}

// Count returns the number of messages and receives; u may be nil.
func (u *Unmatched) Count() int64 {
	n := int64(0)
	if u != nil {
		for _, lists := range [...]map[int][][2]int64{u.Unexpected, u.Receive} {
			for _, list := range lists {
				n += int64(len(list))
			}
		}
	}
	return n
}

// Stuck is an op that did not run, or that ran and waits for a partner.
type Stuck struct {
	Rank  int    `json:"rank"`
	Op    int    `json:"op"` // index within the rank
	Kind  string `json:"kind"`
	Waits string `json:"waits_for"`
	Node  string `json:"node,omitempty"` // name of the op in the trace's own format, if known
}

// MaxStuck is the largest number of stuck ops in a result.
const MaxStuck = 10

// Finished sets the wall time and the rate.
func (r *Result) Finished(started time.Time) {
	wall := max(time.Since(started), time.Nanosecond)
	r.Wall = Seconds(wall)
	r.OpsPerS = float64(r.Ops-r.NeverRun) / wall.Seconds()
}
