package sim

import (
	"context"
	"io"

	"github.com/tracedag/tracedag/dag"
	"github.com/tracedag/tracedag/dag/attr"
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

	// Check validates the configuration and loads the files that it names. A [*param.Error] names the parameter at
	// fault.
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

// Env connects a configured backend with its caller. Every field may be zero; methods of a nil Env do nothing.
type Env struct {
	Context context.Context                   // ends Compile early; see [Interrupted]. nil: never
	Warn    func(message string, args ...any) // reports what may make results other than expected; nil discards
	Explain func(message string, args ...any) // reports details of the work; nil discards
	Threads int                               // worker threads for preparation; 0: all

	// Create begins an output file; CheckOutput returns why a name cannot be one, before a run. Nil: the backend writes
	// no files.
	Create      func(name string) (Output, error)
	CheckOutput func(name string, binary bool) error

	// Read reads a trace of the named format and returns it with its name for messages. Nil: the backend reads no
	// traces.
	Read func(name, format string) (t *dag.Trace, label string, err error)

	// Tensors returns a function that finds the tensors which an op of a trace reads and writes. Nil: they are not
	// known.
	Tensors func(t *dag.Trace) func(rank, op int) (reads, writes []attr.Tensor, err error)

	// Progress begins a display of progress. Nil: there is none.
	Progress func(title string, total int64, unit string) Meter

	// Given reports whether the caller set a parameter or flag of a name. Nil: it set none.
	Given func(name string) bool

	// Properties of the whole invocation, for checks of parameters that exclude each other.
	Sweep      bool // many runs with different parameters
	JSON, CSV  bool // form of the printed results
	Jobs       bool // jobs are compared with running alone, or times with recorded ones
	Collective bool // the caller chose algorithms of collectives
}

// Meter displays progress.
type Meter interface {
	Add(n int64)
	Close()
}

// OrEmpty returns the Env, or one whose fields are all zero if it is nil.
func (e *Env) OrEmpty() *Env {
	if e == nil {
		return &Env{}
	}
	return e
}

// Warnf reports what may make results other than expected.
func (e *Env) Warnf(message string, args ...any) {
	if e != nil && e.Warn != nil {
		e.Warn(message, args...)
	}
}

// Explainf reports details of the work.
func (e *Env) Explainf(message string, args ...any) {
	if e != nil && e.Explain != nil {
		e.Explain(message, args...)
	}
}

// IsGiven reports whether the caller set a parameter or flag of a name.
func (e *Env) IsGiven(name string) bool {
	return e != nil && e.Given != nil && e.Given(name)
}

// Meter begins a display of progress.
func (e *Env) Meter(title string, total int64, unit string) Meter {
	if e == nil || e.Progress == nil {
		return noMeter{}
	}
	return e.Progress(title, total, unit)
}

type noMeter struct{}

func (noMeter) Add(int64) {}
func (noMeter) Close()    {}

// Output is a file that appears complete or not at all: Commit makes it appear, Close without it discards it.
type Output interface {
	io.Writer
	Commit() error
	Close()
}

// RunOptions says how to run a compiled trace.
type RunOptions struct {
	Context  context.Context // ends the run early; see [Interrupted]. nil: never
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

// TimelineWriter is implemented by backends that write timelines ([Traits.Timelines]). NewTimeline returns a writer of
// the form that the ending names. The trace is the one that is run; it is nil for a mere check.
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
