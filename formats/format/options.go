package format

import (
	"math"

	"github.com/tracedag/tracedag/dag"
	"github.com/tracedag/tracedag/param"
)

// Options are the options of a format beyond those that all formats share. Params describes and sets them; it must be
// called only once per value.
type Options interface {
	Params() param.Set
}

// OptionTable describes the options of a format, or of several formats that share them.
type OptionTable struct {
	Name  string         // by which users ask for help, such as "nsys"
	Title string         // of the options, in help
	New   func() Options // the defaults

	// Misplaced returns the warning or error about an option that was given for a trace of a format without it; "" and
	// nil: it is ignored. nil: all are.
	Misplaced func(option, value, trace string, f *Format) (warning string, err error)
}

// Checker is implemented by options that depend on each other. Check returns what is wrong once all are set; a
// [*param.Error] names the option.
type Checker interface{ Check() error }

// Imitator is implemented by options that can ask for the output of another program, its mistakes included. Reading and
// writing are then as with Compat.
type Imitator interface{ Imitates() bool }

// Random is implemented by options of formats that generate traces with random choices.
type Random interface{ RandomSeed() *int64 }

// Own returns the options of a format as their type; defaults makes them if there are none.
func Own[T Options](own Options, defaults func() T) T {
	if t, ok := own.(T); ok {
		return t
	}
	return defaults()
}

// Within returns the parameter with a range of its whole number, both ends included.
func Within[T ~int | ~int32 | ~int64](p param.Param, at *T, least, most int64) param.Param {
	return p.Check(func() error {
		if v := int64(*at); v < least || v > most {
			return param.Errorf(p.Name, "expected %d..%d, found %d", least, most, v)
		}
		return nil
	})
}

// RanksParam declares the number of ranks of a trace that is generated for any number of them; 0: the least.
func RanksParam(at *int) param.Param {
	return Within(param.Int(at, "ranks", "number of ranks, if the input describes a workload for any number of them"),
		at, 0, math.MaxInt32)
}

// CycleParam declares the unit of times in an input that leaves it open; 0: the format's usual one.
func CycleParam(at *dag.Time) param.Param {
	return param.Time(at, "cycle", "length of a cycle, if the input counts times in cycles (default: the format's)")
}
