package mpi

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"os"
	"strconv"
	"strings"

	"github.com/tracedag/tracedag/dag/gen/schedgen"
	"github.com/tracedag/tracedag/formats/format"
	"github.com/tracedag/tracedag/param"
)

// Options are Schedgen's options for traces, under their names there. docs/reference/formats/mpi.md describes
// them.
type Options struct {
	Variant        string  // "upstream" or "atlahs"; "": the trace itself, no schedule
	TimeMult       int64   // timemult: nanoseconds per microsecond of the trace
	CPU            int32   // cpu: CPU of the computation
	Nonblocking    int64   // nb: nanoseconds of a calc at the start of each rank; 0: none
	Poll           int64   // nb-poll: nanoseconds of the pieces of that calc; 0: one piece
	Extrapolate    int     // traces-extr: number of copies of the ranks, at least 1
	Collectives    int     // traces-nops: number of collectives per rank to convert; 0: all
	NoPointToPoint bool    // traces-nop2p
	NoCollectives  bool    // traces-nocolls
	Prepost        int32   // traces-nbcify: microseconds by which collectives start early
	StartFile      string  // traces-start: file of Start, which is updated; "": none
	Start          []Place // where to begin in the file of each rank; nil: as in StartFile, or at the beginning

	given []string // options that were set, in table order
}

// Place is a position in a rank's file.
type Place struct {
	Offset int64
	Time   float64 // microseconds: end of the call before the position
}

var table = &format.OptionTable{
	Name: "mpi", Title: "Schedgen schedules from MPI traces",
	New: func() format.Options { return newOptions() },
	Misplaced: func(option, _, trace string, f *format.Format) (string, error) {
		if option != schedgenOption {
			return "", nil
		}
		return "", fmt.Errorf("--schedgen: expected an MPI trace, found %s in format %s", trace, f.Name)
	},
}

const schedgenOption = "schedgen"

func newOptions() *Options { return &Options{TimeMult: 1000, Extrapolate: 1} }

func optionsOf(o *format.ReadOptions) *Options { return format.Own(o.Own, newOptions) }

// Params returns the parameters of the options.
func (o *Options) Params() param.Set {
	names := schedgen.VariantNames()
	variant := param.Choice(&o.Variant, schedgenOption, "", names...)
	variant.Help = "convert an MPI trace to the schedule of this Schedgen variant: " +
		strings.Join(names, " (LogGOPSim), ")
	set := param.Set{
		format.Within(param.Int(&o.TimeMult, "timemult", "nanoseconds per microsecond of the trace"),
			&o.TimeMult, math.MinInt32, math.MaxInt32),
		format.Within(param.Int(&o.CPU, "cpu", "CPU of the computation"), &o.CPU, 0, math.MaxUint8),
		format.Within(param.Int(&o.Nonblocking, "nb", "nanoseconds of computation at the start of each rank"),
			&o.Nonblocking, 0, math.MaxInt32),
		format.Within(param.Int(&o.Poll, "nb-poll", "nanoseconds per piece of --nb; 0: one piece"), &o.Poll, 0,
			math.MaxInt32),
		format.Within(param.Int(&o.Extrapolate, "traces-extr", "number of copies of the ranks"),
			&o.Extrapolate, 1, 1<<20),
		format.Within(param.Int(&o.Collectives, "traces-nops", "number of collectives per rank to convert; 0: all"),
			&o.Collectives, 0, math.MaxInt32),
		param.Bool(&o.NoPointToPoint, "traces-nop2p", "skip point-to-point messages"),
		param.Bool(&o.NoCollectives, "traces-nocolls", "skip collectives"),
		format.Within(param.Int(&o.Prepost, "traces-nbcify", "microseconds by which collectives start early"),
			&o.Prepost, math.MinInt32, math.MaxInt32),
		param.File(&o.StartFile, "traces-start",
			"file with the start position in each rank's trace; --traces-nops updates it"),
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

// Check returns an error if options of a schedule are set without a variant.
func (o *Options) Check() error {
	if o.Variant == "" && len(o.given) > 0 {
		return param.Needs(o.given[0], "--"+schedgenOption)
	}
	return nil
}

// Imitates reports whether a schedule is requested, which reproduces Schedgen including its bugs.
func (o *Options) Imitates() bool { return o.Variant != "" }

// resolved returns the options with the positions in StartFile.
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

// readPlaces reads the start positions in the files of the ranks, an offset and a time per line. If the file does
// not exist, it returns no positions, and all ranks begin at the beginning.
func readPlaces(path string) ([]Place, error) {
	file, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return []Place{}, nil
	}
	if err != nil {
		return nil, err
	}
	defer file.Close()
	return parsePlaces(file, path)
}

// parsePlaces reads the start positions from the content of a file.
func parsePlaces(file io.Reader, path string) ([]Place, error) {
	places := []Place{}
	lines := bufio.NewScanner(file)
	for lines.Scan() {
		wrong := &format.SyntaxError{File: path, Line: int64(len(places)) + 1,
			Expected: "a byte offset and a time in microseconds", Found: fmt.Sprintf("%.60q", lines.Text())}
		offset, time, _ := strings.Cut(strings.TrimSpace(lines.Text()), " ")
		var place Place
		var err error
		if place.Offset, err = strconv.ParseInt(offset, 10, 32); err != nil || place.Offset < 0 {
			return nil, wrong
		}
		if place.Time, err = strconv.ParseFloat(strings.TrimSpace(time), 64); err != nil ||
			math.IsNaN(place.Time) || math.IsInf(place.Time, 0) {
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
