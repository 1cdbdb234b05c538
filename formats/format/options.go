package format

import (
	"math"

	"github.com/tracedag/tracedag/dag"
	"github.com/tracedag/tracedag/param"
)

// Options are the options of a format beyond those that all formats share. Params describes and sets them; call it
// only once per value.
type Options interface {
	Params() param.Set
}

// OptionTable describes the options of a format, or of several formats that share them.
type OptionTable struct {
	Name  string         // help topic, such as "nsys"
	Title string         // title of the options in help
	New   func() Options // returns the defaults

	// Misplaced returns the warning or error about an option for a trace of a format without it, or "" and nil to
	// ignore the option. If nil, all such options are ignored.
	Misplaced func(option, value, trace string, f *Format) (warning string, err error)
}

// Checker is implemented by options that depend on each other. Check returns the error of the complete set; a
// [*param.Error] names the option.
type Checker interface{ Check() error }

// Imitator is implemented by options that can select the output of another program, including its bugs. Reading
// and writing then work as with Compat.
type Imitator interface{ Imitates() bool }

// Random is implemented by options of formats that generate traces at random. RandomSeed returns the seed in use.
type Random interface{ RandomSeed() *int64 }

// Own returns the options of a format as their own type, or the defaults if own has another type.
func Own[T Options](own Options, defaults func() T) T {
	if t, ok := own.(T); ok {
		return t
	}
	return defaults()
}

// Within limits a whole-number parameter to least..most.
func Within[T ~int | ~int32 | ~int64](p param.Param, at *T, least, most int64) param.Param {
	return p.Check(func() error {
		if v := int64(*at); v < least || v > most {
			return param.Errorf(p.Name, "expected %d..%d, found %d", least, most, v)
		}
		return nil
	})
}

// RanksParam declares the number of ranks of a trace that describes a workload for any number of ranks; 0: the
// minimum.
func RanksParam(at *int) param.Param {
	return Within(param.Int(at, "ranks", "number of ranks of a workload that fits any number of ranks"),
		at, 0, math.MaxInt32)
}

// CycleParam declares the unit of time of an input that does not define it; 0: the format's usual unit.
func CycleParam(at *dag.Time) param.Param {
	return param.Time(at, "cycle", "duration of one cycle, for inputs with times in cycles (default: by format)")
}
