// Package generator is the contract between workload models and the programs that offer them. A model declares a
// [Generator] in its own folder; package dag/gen lists all of them.
package generator

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/tracedag/tracedag/dag"
	"github.com/tracedag/tracedag/param"
)

// Generator is an entry of the registry.
type Generator struct {
	Name    string // such as "fft"
	Title   string // one line of help
	Group   string // heading in lists of generators
	Page    string // long help
	Example string // command lines for help

	// Argument is the name of the parameter that command lines give without a flag; "" for none. It is a key of the
	// table ([param.Param.Only]).
	Argument string

	Exclusive [][]string // sets of parameters of which at most one can be given
	Lowered   bool       // traces have only sends and receives: there is nothing to lower

	New func() Config // a configuration with the defaults

	// Small and Large are texts of parameters for two runs of up to some thousands of ops, Large with several times the
	// ops of Small. Tests use them.
	Small, Large param.Texts
}

// Config is one configuration of a generator. Params describes and sets it; it must be called only once per value.
type Config interface {
	Params() param.Set

	// Source returns the trace of the configuration, which starts with the defaults. An error is about the parameters
	// unless it is a [*Failure] or one that env returned. The env may be nil.
	Source(env *Env) (dag.Source, error)
}

// Env connects a generator with its caller. Every field may be nil.
type Env struct {
	// Warn reports a deviation from the parameters that the user may not expect.
	Warn func(message string, args ...any)

	// Explain reports a detail of the generation, such as the time of its steps.
	Explain func(message string, args ...any)

	// Open passes the input file of a name, and its name for messages, to a function.
	Open func(name string, read func(name string, r io.Reader) error) error

	// Read passes the trace in the file of a name, in any format, to a function.
	Read func(name string, use func(t *dag.Trace) error) error

	// Report takes the report of a generator with a [Report], if its file was named.
	Report func(report any) error

	// Context ends Config.Source early, and reading from the source that it returns, with an error that wraps the
	// context's cause. [dag.WithContext] ends reading from any source. nil: never.
	Context context.Context

	// Progress begins to show progress; add counts work, done ends it.
	Progress func(title, unit string) (add func(n int64), done func())
}

var errNoFiles = errors.New("this program reads no files for generators")

// OrEmpty returns e, or an empty Env if e is nil.
func (e *Env) OrEmpty() *Env {
	if e == nil {
		return &Env{}
	}
	return e
}

// Warnf calls Warn.
func (e *Env) Warnf(message string, args ...any) {
	if e != nil && e.Warn != nil {
		e.Warn(message, args...)
	}
}

// OpenFile calls Open.
func (e *Env) OpenFile(name string, read func(name string, r io.Reader) error) error {
	if e == nil || e.Open == nil {
		return &Failure{fmt.Errorf("%s: %w", name, errNoFiles)}
	}
	return e.Open(name, read)
}

// OpenTrace calls Read.
func (e *Env) OpenTrace(name string, use func(t *dag.Trace) error) error {
	if e == nil || e.Read == nil {
		return &Failure{fmt.Errorf("%s: %w", name, errNoFiles)}
	}
	return e.Read(name, use)
}

// PutReport calls Report.
func (e *Env) PutReport(report any) error {
	if e == nil || e.Report == nil {
		return nil
	}
	return e.Report(report)
}

// StartProgress calls Progress.
func (e *Env) StartProgress(title, unit string) (add func(n int64), done func()) {
	if e == nil || e.Progress == nil {
		return func(int64) {}, func() {}
	}
	return e.Progress(title, unit)
}

// Failure is an error for which no single parameter is at fault, such as flows that cannot be packed.
type Failure struct{ Err error }

func (f *Failure) Error() string { return f.Err.Error() }

// Unwrap returns the reason.
func (f *Failure) Unwrap() error { return f.Err }

// Random is implemented by configurations of generators that draw random numbers.
type Random interface{ RandomSeed() *int64 }

// Reporter is implemented by configurations that can report properties of the trace. ReportFile returns the file of the
// report, "" for none.
type Reporter interface{ ReportFile() string }

// Printer is implemented by configurations that can print a text instead of generating a trace. Prints reports whether
// they do, and by which parameter.
type Printer interface {
	Prints() (name string, prints bool)
	Print(env *Env, w io.Writer) error
}

// Seed is the seed of a random generator. Configurations embed it.
type Seed struct{ Value int64 }

// DefaultSeed is the seed of configurations that set no other.
const DefaultSeed = 1

// NewSeed returns the default seed.
func NewSeed() Seed { return Seed{DefaultSeed} }

// RandomSeed returns the seed.
func (s *Seed) RandomSeed() *int64 { return &s.Value }

// SeedParam declares the seed.
func (s *Seed) SeedParam() param.Param {
	return param.Int(&s.Value, "seed", "seed of all random choices")
}

// Report names the file of a report. Configurations embed it.
type Report struct{ file string }

// ReportFile returns the file, "" for none.
func (r *Report) ReportFile() string { return r.file }

// ReportParam declares the file; contents describes the report.
func (r *Report) ReportParam(contents string) param.Param {
	return param.File(&r.file, "report", "JSON file for "+contents).Output()
}

// Value is a parameter and its value as a text that the parameter accepts.
type Value struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

// Values lists the parameters of a table with their current values.
func Values(set param.Set) []Value {
	values := make([]Value, len(set))
	for i := range set {
		values[i] = Value{set[i].Name, set[i].Value.String()}
	}
	return values
}

// Groups of generators, in the order of lists.
const (
	Training     = "Machine learning"
	Applications = "Applications"
	Patterns     = "Communication patterns"
	Traffic      = "Open-loop traffic"
	Storage      = "Storage"
)

// Groups are the headings in lists of generators, in order.
func Groups() []string {
	return []string{Training, Applications, Patterns, Traffic, Storage}
}

// Ranks declares the number of ranks.
func Ranks[T ~int | ~int32 | ~int64](at *T) param.Param {
	return param.Int(at, "ranks", "number of ranks").Alias("workers", "nodes", "tasks", "hosts", "npus")
}

// RanksOf is [Ranks] for a model that calls its ranks by another name, such as "worker".
func RanksOf[T ~int | ~int32 | ~int64](at *T, name string) param.Param {
	p := Ranks(at)
	p.Help += "; each rank is one " + name
	return p
}

// From returns the results of a constructor as a Source and an error, so that an error has no source.
func From[S dag.Source](s S, err error) (dag.Source, error) {
	if err != nil {
		return nil, err
	}
	return s, nil
}

// Assign sets one parameter of a table, for parameters whose value is a list of settings.
func Assign(set param.Set, name, value string) error {
	err := set.Apply(param.Texts{name: {value}})
	if bad, ok := err.(*param.Error); ok {
		return fmt.Errorf("invalid argument %q for \"--%s\" flag: %w", value, name, bad.Err)
	}
	return err
}
