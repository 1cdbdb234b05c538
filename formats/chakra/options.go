package chakra

import (
	"fmt"
	"os"
	"strings"

	"github.com/tracedag/tracedag/formats/format"
	"github.com/tracedag/tracedag/internal/units"
	"github.com/tracedag/tracedag/param"
)

// Options are the options of Chakra traces and of all formats converted to them.
type Options struct {
	CommGroups string // file that defines the communicators by name; "": the file beside the trace, if it exists
	KeepClock  bool   // keep the computations of clocks instead of release times
}

// Table is the option table of Chakra traces.
var Table = &format.OptionTable{
	Name: "chakra", Title: "Chakra traces",
	New:       func() format.Options { return new(Options) },
	Misplaced: Misplaced,
}

const (
	commGroups  = "comm-groups"
	clockStream = "clock-stream" // also an option of GOAL
)

// Params returns the parameters of the options.
func (o *Options) Params() param.Set {
	stream := param.Func("STREAM", clockStream, "none to keep the computations of a clock (default: they become "+
		"release times)", func(text string) error {
		o.KeepClock = text == "none" // a stream names the clock of a GOAL schedule
		return nil
	})
	return param.Set{param.File(&o.CommGroups, commGroups,
		"file that defines the communicators of a Chakra trace, in ASTRA-sim's form; a file called empty is none"),
		stream}
}

// ClockMode is the form of the calcs that express release times.
type ClockMode uint8

// The forms.
const (
	ClockMicros   ClockMode = iota // durations in whole microseconds, which every simulator reads
	ClockRoofline                  // operations, which take exact nanoseconds in a roofline model
)

// WriteOptions are the options of writing Chakra traces.
type WriteOptions struct {
	NoClock bool      // discard release times
	Clock   ClockMode // of the calcs that express release times
	Peak    int64     // peak performance for ClockRoofline, in operations per second
}

// defaultPeak is the default of WriteOptions.Peak: 1000 operations per nanosecond.
const defaultPeak = 1e12

func newWriteOptions() *WriteOptions { return &WriteOptions{Peak: defaultPeak} }

var writeTable = &format.OptionTable{
	Name: "chakra", Title: "Chakra traces, written",
	New: func() format.Options { return newWriteOptions() },
}

// Params returns the parameters of the options.
func (o *WriteOptions) Params() param.Set {
	mode := param.Func("MODE", "chakra-clock", "release times: micros (whole microseconds, for every simulator), or "+
		"roofline, roofline:PEAK (exact nanoseconds in a roofline model of that peak-perf, by default 1TFLOPS)",
		func(text string) (err error) {
			name, peak, given := strings.Cut(text, ":")
			switch {
			case text == "micros":
				o.Clock = ClockMicros
			case name == "roofline":
				o.Clock, o.Peak = ClockRoofline, defaultPeak
				if given {
					o.Peak, err = units.ParseFLOPS(peak)
				}
			default:
				return fmt.Errorf("expected micros, roofline or roofline:PEAK, found %q", text)
			}
			return err
		}).Default("micros").Offer("micros", "roofline", "roofline:")
	return param.Set{param.Bool(&o.NoClock, "no-clock",
		"discard release times instead of writing them as calcs of a clock"), mode}
}

// Misplaced warns about a file of communicators for a trace of another format.
func Misplaced(option, value, trace string, f *format.Format) (warning string, err error) {
	if option != commGroups || !namesGroups(value) {
		return "", nil
	}
	return fmt.Sprintf("%s: --comm-groups %s is not used: a %s trace defines its communicators itself", trace, value,
		f.Name), nil
}

// namesGroups reports whether name is a file of communicators. As in ASTRA-sim, a name that contains "empty" means
// none, unless such a file exists.
func namesGroups(name string) bool {
	if name == "" || !strings.Contains(name, "empty") {
		return name != ""
	}
	_, err := os.Stat(name)
	return err == nil
}

// GroupsFile returns the file of communicators in the options, or nil.
func GroupsFile(o *format.ReadOptions) *format.Input {
	own := format.Own(o.Own, func() *Options { return new(Options) })
	if o.OpenFile == nil || !namesGroups(own.CommGroups) {
		return nil
	}
	return o.OpenFile(own.CommGroups)
}
