package sim

import (
	"context"
	"io"

	"github.com/tracedag/tracedag/dag"
	"github.com/tracedag/tracedag/param"
)

// Backend is one configured simulation backend. A value has its own configuration, which starts with the defaults:
// [Backend.Params] describes and sets it. The order of calls is Params, Check, Lowers, Compile; Compile may be called
// again for other traces.
type Backend interface {
	// Traits returns the properties of the backend that callers need to know before a run.
	Traits() Traits

	// Params returns the table of the backend's parameters, bound to this configuration.
	Params() param.Set

	// Check validates the configuration and loads the files that it names. A [*param.Error] names the parameter at fault.
	Check(env *Env) error

	// Lowers returns which collectives must be lowered to messages before Compile; nil if the backend runs all of them
	// itself. The source is nil before the trace is open; the answer may then be more than is needed.
	Lowers(s dag.Source) func(dag.Subkind) bool

	// Compile prepares a trace. The source stays open until the last run's result has been printed.
	Compile(s dag.Source, env *Env) (Replay, error)
}

// Replay is a compiled trace. Clone must be called before Run, which uses the replay up. With an error, Run returns a
// result that has at least the backend, model and parameters, or nil where the settings are at fault.
type Replay interface {
	Clone() Replay
	Run(o RunOptions) (*Result, error)
}

// Kind is an entry of a registry of backends.
type Kind struct {
	Name  string
	Title string         // one line of help
	New   func() Backend // a fresh configuration
	Page  string         // documentation, which is also the long help
	Lists []Listing      // tables of presets and the like
}

// Listing is a table that a program prints by a flag --list-NAME.
type Listing struct {
	Name  string // such as "transports"
	Help  string
	Print func(w io.Writer)
}

// Traits are the properties of a backend that callers need to know before a run.
type Traits struct {
	Timelines []string // name endings of the timelines that it writes, such as ".json"; none: it writes no timelines
	NoTimes   string   // remedy to print when a timeline is asked of a backend that writes none
	Nodes     bool     // the nodes of ranks matter
	Columns   []string // names of the sweep columns that its results have beyond the common ones; see [Result.Cells]
}

// Env connects a configured backend with its caller. Every field may be zero.
type Env struct {
	Context context.Context                       // ends Compile early; nil: never
	Warn    func(message string, args ...any)     // reports what may make results other than expected; nil discards
	Create  func(name string) (Output, error)     // begins an output file; nil: the backend writes no files
	Read    func(name string) (*dag.Trace, error) // reads a trace in any format; nil: the backend reads none
	Threads int                                   // worker threads for preparation; 0: all

	// Properties of the whole invocation, for checks of parameters that exclude each other.
	Sweep      bool // many runs with different parameters
	JSON       bool // results are printed as JSON
	Jobs       bool // jobs are compared with running alone, or times with measured ones
	Collective bool // the caller chose algorithms of collectives
}

// Warnf reports what may make results other than expected.
func (e *Env) Warnf(message string, args ...any) {
	if e != nil && e.Warn != nil {
		e.Warn(message, args...)
	}
}

// Output is a file that appears complete or not at all: Commit makes it appear, Close without it discards it.
type Output interface {
	io.Writer
	Commit() error
	Close() error
}

// RunOptions says how to run a compiled trace.
type RunOptions struct {
	Context  context.Context // ends the run early; nil: never
	Settings []param.Setting // parameters that differ from the backend's configuration, at a point of a sweep
	Timeline Timeline        // receives the run; nil: nobody
	OpEnded  OpEnded         // is told when an op completes; only backends without timelines call it. nil: nobody
	Progress func(ops int64) // receives the number of ops that ran since the last call; nil: nobody
	Threads  int             // worker threads, which do not change results; 0: one
	Files    bool            // write the files that parameters name
}

// OpEnded receives the op of a rank and its times, in the backend's unit.
type OpEnded func(rank, op int, issued, ended uint64)

// OpTimes are the times of all ops in a run.
type OpTimes interface {
	Ops(rank int) int
	Ran(rank, op int) bool
	Start(rank, op int) dag.Time
	End(rank, op int) dag.Time
}

// TimelineWriter is implemented by backends that write timelines ([Traits.Timelines]). NewTimeline returns a writer of the
// form that the ending names. The trace is the one that is run; it is nil for a mere check.
type TimelineWriter interface {
	NewTimeline(w io.Writer, ending string, t *dag.Trace) (Timeline, error)
}

// Replicator is implemented by backends that run a trace of one rank on every rank of a machine. Replicas returns the
// number of ranks, 0 if the trace has them all.
type Replicator interface {
	Replicas() int
}

// Standalone is implemented by backends that run without a trace if their parameters ask for it.
type Standalone interface {
	StandsAlone() bool
	// RunAlone runs and returns the results, in order.
	RunAlone(env *Env, o RunOptions) (Curve, error)
}

// Curve is the outcome of a [Standalone] run.
type Curve interface {
	WriteJSON(w io.Writer) error // a JSON object per line
	WriteCSV(w io.Writer) error
	WriteTable(w io.Writer) error // for people
	// Failed returns the errors of points without a result.
	Failed() []error
}
