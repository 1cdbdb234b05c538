package mpi

import (
	"bufio"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"strconv"
	"strings"

	"github.com/tracedag/tracedag/dag/gen/schedgen"
	"github.com/tracedag/tracedag/formats/format"
	"github.com/tracedag/tracedag/param"
)

// Options are those of Schedgen for traces, under their names there. docs/reference/formats/mpi.md describes them.
type Options struct {
	Variant        string  // "upstream" or "atlahs"; "": no schedule, but the trace as it is
	TimeMult       int64   // timemult: nanoseconds of a microsecond
	CPU            int32   // cpu: where computation runs
	Nonblocking    int64   // nb: nanoseconds of a calc at the start of each rank; 0: none
	Poll           int64   // nb-poll: nanoseconds of the pieces that it is cut into; 0: one piece
	Extrapolate    int     // traces-extr: number of copies of the ranks, at least 1
	Collectives    int     // traces-nops: number of collectives of each rank to convert; 0: all
	NoPointToPoint bool    // traces-nop2p
	NoCollectives  bool    // traces-nocolls
	Prepost        int32   // traces-nbcify: microseconds by which collectives start early
	StartFile      string  // traces-start: file of Start; it is updated. "": none
	Start          []Place // where to begin in the file of each rank; nil: as StartFile says, or at the front

	given []string // options that were set, in the order of the table
}

// Place is a place in a rank's file.
type Place struct {
	Offset int64
	Time   float64 // microseconds: when the call before that place ended
}

var table = &format.OptionTable{
	Name: "mpi", Title: "schedules of Schedgen from MPI traces",
	New: func() format.Options { return newOptions() },
	Misplaced: func(option, _, trace string, f *format.Format) (string, error) {
		if option != schedgenOption {
			return "", nil
		}
		return "", fmt.Errorf("--schedgen is for MPI traces, and %s is %s", trace, f.Name)
	},
}

const schedgenOption = "schedgen"

func newOptions() *Options { return &Options{TimeMult: 1000, Extrapolate: 1} }

func optionsOf(o *format.ReadOptions) *Options { return format.Own(o.Own, newOptions) }

// Params returns the table of the options.
func (o *Options) Params() param.Set {
	names := schedgen.VariantNames()
	variant := param.Choice(&o.Variant, schedgenOption, "", names...)
	variant.Help = "make of an MPI trace the schedule that Schedgen of this variant makes: " +
		strings.Join(names, " (LogGOPSim), ")
	set := param.Set{
		format.Within(param.Int(&o.TimeMult, "timemult", "nanoseconds that a microsecond of the trace becomes"),
			&o.TimeMult, math.MinInt32, math.MaxInt32),
		format.Within(param.Int(&o.CPU, "cpu", "cpu that computes"), &o.CPU, 0, math.MaxUint8),
		format.Within(param.Int(&o.Nonblocking, "nb", "nanoseconds of computation at the start of each rank"),
			&o.Nonblocking, 0, math.MaxInt32),
		format.Within(param.Int(&o.Poll, "nb-poll", "length of the pieces that --nb is cut into"), &o.Poll, 0,
			math.MaxInt32),
		format.Within(param.Int(&o.Extrapolate, "traces-extr", "factor by which to extrapolate the number of ranks"),
			&o.Extrapolate, 1, 1<<20),
		format.Within(param.Int(&o.Collectives, "traces-nops", "number of collectives of each rank to convert; 0: all"),
			&o.Collectives, 0, math.MaxInt32),
		param.Bool(&o.NoPointToPoint, "traces-nop2p", "skip point-to-point messages"),
		param.Bool(&o.NoCollectives, "traces-nocolls", "skip collectives"),
		format.Within(param.Int(&o.Prepost, "traces-nbcify", "microseconds by which collectives start early"),
			&o.Prepost, math.MinInt32, math.MaxInt32),
		param.File(&o.StartFile, "traces-start",
			"file that says where to begin in each rank's trace; with --traces-nops it is updated"),
	}
	for i := range set {
		name := set[i].Name
		set[i].Help = "with --schedgen: " + set[i].Help
		set[i] = set[i].Check(func() error {
			o.given = append(o.given, name)
			return nil
		})
	}
	return append(param.Set{variant}, set...)
}

// Check returns an error if there are options of a schedule and none is asked for.
func (o *Options) Check() error {
	if o.Variant == "" && len(o.given) > 0 {
		return param.Needs(o.given[0], "--"+schedgenOption)
	}
	return nil
}

// Imitates reports whether a schedule is asked for, which is that of Schedgen, its mistakes included.
func (o *Options) Imitates() bool { return o.Variant != "" }

// resolved returns the options with the places that the file says.
func (o *Options) resolved() (*Options, error) {
	if o.Start != nil || o.StartFile == "" {
		return o, nil
	}
	places, err := readPlaces(o.StartFile)
	if err != nil {
		return nil, err
	}
	with := *o
	with.Start = places
	return &with, nil
}

// readPlaces reads where to begin in the files of the ranks, an offset and a time on each line. A file that is not
// there has no lines: all begin at the front.
func readPlaces(path string) ([]Place, error) {
	places := []Place{}
	file, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return places, nil
	}
	if err != nil {
		return nil, err
	}
	defer file.Close()
	lines := bufio.NewScanner(file)
	for lines.Scan() {
		wrong := &format.SyntaxError{File: path, Line: int64(len(places)) + 1,
			Expected: "a byte offset and a time in microseconds", Found: fmt.Sprintf("%.60q", lines.Text())}
		offset, time, _ := strings.Cut(strings.TrimSpace(lines.Text()), " ")
		var place Place
		if place.Offset, err = strconv.ParseInt(offset, 10, 32); err != nil || place.Offset < 0 {
			return nil, wrong
		}
		if place.Time, err = strconv.ParseFloat(strings.TrimSpace(time), 64); err != nil {
			return nil, wrong
		}
		places = append(places, place)
	}
	if err := lines.Err(); err != nil {
		return nil, format.FileErrorf(path, "reading: %w", format.Cause(err))
	}
	return places, nil
}

// formatPlaces returns the text that readPlaces reads.
func formatPlaces(places []Place) (text []byte) {
	for _, place := range places {
		text = fmt.Appendf(text, "%d %.30g\n", place.Offset, place.Time)
	}
	return text
}
