package sim

import (
	"context"
	"fmt"
	"io"
	"strings"
	"sync"

	"github.com/tracedag/tracedag/dag"
	"github.com/tracedag/tracedag/dag/attr"
	"github.com/tracedag/tracedag/param"
)

// Backend is one configured simulation backend. A new value has the default configuration; [Backend.Params] describes
// and changes it. Callers call Params, Check, Lowers and Compile in this order, and may call Compile again for other
// traces.
type Backend interface {
	// Traits returns the properties of the backend that callers need before a run.
	Traits() Traits

	// Params returns the table of the backend's parameters, bound to this configuration.
	Params() param.Set

	// Check validates the configuration and loads the files that it names. A [*param.Error] names the invalid
	// parameter.
	Check(env *Env) error

	// Lowers selects the collectives to lower to messages before Compile. It returns nil if the backend runs all of
	// them itself. Before the trace is open, s is nil and the result may select more collectives than necessary.
	Lowers(s dag.Source) func(dag.Subkind) bool

	// Compile prepares a trace. The source must stay open until the last run's result has been printed.
	Compile(s dag.Source, env *Env) (Replay, error)
}

// Replay is a compiled trace. Run uses the replay up, so callers call Clone first. With an error, Run returns a result
// with at least the backend, model and parameters, or nil if the settings are invalid. A replay that may have a
// temporary file, in common with its clones, is an [io.Closer].
type Replay interface {
	Clone() Replay
	Run(o RunOptions) (*Result, error)
}

// Recycler is a replay whose memory later clones can use. After Recycle, neither the replay nor its result may be used.
type Recycler interface {
	Replay
	Recycle()
}

// Kind is an entry in the registry of backends.
type Kind struct {
	Name  string
	Title string         // one line of help
	New   func() Backend // a fresh configuration
	Lists []Listing      // tables of presets, transports and so on

	// With returns a fresh configuration for the text after the name and a colon, as in exec:COMMAND. nil: the backend
	// takes no text.
	With func(text string) Backend
	Text string // text of New; see [FindKind]
}

// FullName returns the name with its text, such as exec:COMMAND.
func (k *Kind) FullName() string {
	if k.Text == "" {
		return k.Name
	}
	return k.Name + ":" + k.Text
}

// FindKind returns the backend with a name such as packet or exec:COMMAND, or nil.
func FindKind(kinds []Kind, name string) *Kind {
	name, text, with := strings.Cut(name, ":")
	for i := range kinds {
		k := &kinds[i]
		switch {
		case k.Name != name || with && k.With == nil:
		case !with:
			return k
		default:
			bound := *k
			bound.Text, bound.New = text, func() Backend { return k.With(text) }
			return &bound
		}
	}
	return nil
}

// Placer is a backend that places ranks on hosts independently of the ops of a trace.
type Placer interface {
	// Hosts returns the first host of each rank, or nil if the user chose no placement.
	Hosts(ranks int) ([]uint32, error)
}

// HostNodes returns the hosts of ranks, as nodes, if the trace names no nodes and the user chose a placement; else nil.
func HostNodes(b Backend, h *dag.Header) ([]int32, error) {
	placer, ok := b.(Placer)
	if !ok || h.Nodes != nil {
		return nil, nil
	}
	hosts, err := placer.Hosts(h.Ranks)
	if hosts == nil || err != nil {
		return nil, err
	}
	nodes := make([]int32, len(hosts))
	for i, host := range hosts {
		nodes[i] = int32(host)
	}
	return nodes, nil
}

// Listing is a table that a program prints for the flag --list-NAME.
type Listing struct {
	Name  string // for example "transports"
	Help  string
	Print func(w io.Writer)
}

// Traits are the properties of a backend that callers need before a run.
type Traits struct {
	Timelines []string // file name endings of timelines in formats of its own ([TimelineWriter]), such as ".viz"
	Nodes     bool     // the backend uses the node numbers of ranks
	Path      bool     // with its current parameters, the backend finds the critical path
	Memory    bool     // the backend runs memory accesses
	Storage   bool     // the backend runs storage accesses
}

// Env connects a configured backend with its caller. All fields are optional; methods of a nil Env do nothing.
type Env struct {
	Context context.Context                   // ends Compile early; see [Interrupted]. nil: no limit
	Warn    func(message string, args ...any) // prints a warning about unexpected results; nil: discard
	Advise  func(message string, args ...any) // prints advice about a result, for interactive users; nil: discard
	Explain func(message string, args ...any) // prints details of the work; nil: discard
	Threads int                               // worker threads for preparation; 0: all cores

	// Log prints a line that another program wrote to its standard error. Calls may be concurrent. If nil, such lines
	// are discarded.
	Log func(line string)

	// AtExit registers a function that the caller calls before a signal ends the program. It returns a function that
	// removes it. If nil, signals end the context of the run or nothing.
	AtExit func(stop func()) (remove func())

	// Create starts an output file. CheckOutput returns an error if a file name is invalid; it is called before a run.
	// If nil, the backend writes no files.
	Create      func(name string) (Output, error)
	CheckOutput func(name string, binary bool) error

	// Read reads a trace in the named format. The label names the trace in messages. If nil, the backend reads no
	// traces.
	Read func(name, format string) (t *dag.Trace, label string, err error)

	// Tensors returns a function that finds the tensors read and written by an op of a trace. If nil, tensors are
	// unknown.
	Tensors func(t *dag.Trace) func(rank, op int) (reads, writes []attr.Tensor, err error)

	// Progress starts a progress display. If nil, there is none.
	Progress func(title string, total int64, unit string) Meter

	// Given reports whether the caller set the named parameter or flag. If nil, it set none.
	Given func(name string) bool

	Sharing Sharing // whether the ranks on a node share its NICs, in backends with NICs

	// Properties of the whole command, for checks of parameters that exclude each other.
	Sweep bool // many runs with different parameters
	Path  bool // the caller prints the critical path
	JSON  bool // the output has the whole result
	Jobs  bool // the caller compares jobs with isolated runs, or times with recorded ones
}

// Meter displays progress. Add counts work done since the last call.
type Meter interface {
	Add(n int64)
	Close()
}

// OrEmpty returns e, or an empty Env if e is nil.
func (e *Env) OrEmpty() *Env {
	if e == nil {
		return &Env{}
	}
	return e
}

// Warnf prints a warning about unexpected results.
func (e *Env) Warnf(message string, args ...any) {
	if e != nil && e.Warn != nil {
		e.Warn(message, args...)
	}
}

// WarnOnce returns a function like [Env.Warnf] that prints each text once, for warnings of several concurrent runs.
func (e *Env) WarnOnce() func(message string, args ...any) {
	if e == nil || e.Warn == nil {
		return func(string, ...any) {}
	}
	var mu sync.Mutex
	seen := make(map[string]bool)
	return func(message string, args ...any) {
		text := fmt.Sprintf(message, args...)
		mu.Lock()
		defer mu.Unlock()
		if !seen[text] {
			seen[text] = true
			e.Warn("%s", text)
		}
	}
}

// Explainf prints details of the work.
func (e *Env) Explainf(message string, args ...any) {
	if e != nil && e.Explain != nil {
		e.Explain(message, args...)
	}
}

// IsGiven reports whether the caller set the named parameter or flag.
func (e *Env) IsGiven(name string) bool {
	return e != nil && e.Given != nil && e.Given(name)
}

// Meter starts a progress display for a total of work in the given unit.
func (e *Env) Meter(title string, total int64, unit string) Meter {
	if e == nil || e.Progress == nil {
		return noMeter{}
	}
	return e.Progress(title, total, unit)
}

type noMeter struct{}

func (noMeter) Add(int64) {}
func (noMeter) Close()    {}

// Output is a file written atomically: Commit makes it visible, Close without Commit discards it.
type Output interface {
	io.Writer
	Commit() error
	Close()
}

// RunOptions are the options of a run of a compiled trace.
type RunOptions struct {
	Context  context.Context // ends the run early; see [Interrupted]. nil: no limit
	Settings []param.Setting // parameters that replace the backend's configuration at a point of a sweep
	Timeline Timeline        // receives the run; nil: none
	Path     *PathOptions    // adds the critical path to the result; see [Traits.Path]. nil: no
	Progress func(ops int64) // receives the number of ops run since the last call; nil: none
	Threads  int             // worker threads, which do not change results; 0: one thread
	Files    bool            // write the files named by parameters
	Figures  bool            // add the data of figures to the result: distributions, the network, queues over time
}

// TimelineWriter is implemented by backends that write timelines in formats of their own ([Traits.Timelines]).
// NewTimeline returns a writer for the format of the file name ending. Package timeline writes the formats that all
// backends share.
type TimelineWriter interface {
	NewTimeline(w io.Writer, ending string) (Timeline, error)
}

// Replicator is implemented by backends that can run a trace of one rank on every rank of a machine. Replicas returns
// the number of ranks, or 0 if the trace contains all ranks.
type Replicator interface {
	Replicas() int
}

// Standalone is implemented by backends that can run without a trace, depending on their parameters.
type Standalone interface {
	StandsAlone() bool
	// RunAlone runs all points and returns the results in order.
	RunAlone(env *Env, o RunOptions) (Curve, error)
}

// Curve is the result of a [Standalone] run.
type Curve interface {
	Points() []CurvePoint         // in order
	WriteTable(w io.Writer) error // human-readable
}

// CurvePoint is the result of a point of a [Curve].
type CurvePoint struct {
	Name     string            // for messages, such as "load 0.5"
	Value    any               // JSON object
	Units    map[string]string // units of numbers in Value whose names do not end with their unit, by path
	Topology *Topology         // network
	Factors  map[string]string // what differs from point to point, by name of the parameter
	Failed   string            // error of a point without a result; "": none
}
