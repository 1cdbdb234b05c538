// This file has the flags for the schedules that Schedgen makes of MPI traces.

package cli

import (
	"bufio"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/tracedag/tracedag/dag/gen/schedgen"
	"github.com/tracedag/tracedag/formats/format"
)

// SchedgenFlags are the options of Schedgen for MPI traces, under its own names.
type SchedgenFlags struct {
	variant                     string
	timeMult, nb, poll, prepost int64
	cpu, extr, nops             int
	noP2P, noColls              bool
	start                       string
	changed                     func(flag string) bool
}

// Register adds the flags to the command.
func (f *SchedgenFlags) Register(cmd *cobra.Command) {
	flags := cmd.Flags()
	f.changed = flags.Changed
	names := schedgen.VariantNames()
	flags.StringVar(&f.variant, "schedgen", "",
		"make of an MPI trace the schedule that Schedgen of this `variant` makes: "+strings.Join(names, " (LogGOPSim), "))
	CompleteWith(cmd, "schedgen", names)
	flags.Int64Var(&f.timeMult, "timemult", 1000, "with --schedgen: nanoseconds that a microsecond of the trace becomes")
	flags.IntVar(&f.cpu, "cpu", 0, "with --schedgen: the cpu that computes")
	flags.Int64Var(&f.nb, "nb", 0, "with --schedgen: nanoseconds of computation at the start of each rank")
	flags.Int64Var(&f.poll, "nb-poll", 0, "with --schedgen: the length of the pieces that --nb is cut into")
	flags.IntVar(&f.extr, "traces-extr", 1, "with --schedgen: extrapolate to so many times the ranks")
	flags.IntVar(&f.nops, "traces-nops", 0, "with --schedgen: only so many collectives of each rank (0: all)")
	flags.BoolVar(&f.noP2P, "traces-nop2p", false, "with --schedgen: leave out point-to-point messages")
	flags.BoolVar(&f.noColls, "traces-nocolls", false, "with --schedgen: leave out collectives")
	flags.Int64Var(&f.prepost, "traces-nbcify", 0, "with --schedgen: start collectives so many microseconds early")
	flags.StringVar(&f.start, "traces-start", "",
		"with --schedgen: `file` that says where to begin in each rank's trace; with --traces-nops it is updated")
}

// options returns what the flags ask for, nil where they ask for nothing.
func (f *SchedgenFlags) options() (*format.SchedgenOptions, error) {
	if f.changed == nil {
		return nil, nil
	}
	if f.variant == "" {
		for _, flag := range []string{"timemult", "cpu", "nb", "nb-poll", "traces-extr", "traces-nops", "traces-nop2p",
			"traces-nocolls", "traces-nbcify", "traces-start"} {
			if f.changed(flag) {
				return nil, Usagef("--%s needs --schedgen", flag)
			}
		}
		return nil, nil
	}
	if !slices.Contains(schedgen.VariantNames(), f.variant) {
		return nil, Usagef("--schedgen: expected %s, found %q", strings.Join(schedgen.VariantNames(), " or "), f.variant)
	}
	for _, number := range []struct {
		flag        string
		value       int64
		least, most int64
	}{
		{"timemult", f.timeMult, math.MinInt32, math.MaxInt32},
		{"cpu", int64(f.cpu), 0, math.MaxUint8},
		{"nb", f.nb, 0, math.MaxInt32},
		{"nb-poll", f.poll, 0, math.MaxInt32},
		{"traces-extr", int64(f.extr), 1, 1 << 20},
		{"traces-nops", int64(f.nops), 0, math.MaxInt32},
		{"traces-nbcify", f.prepost, math.MinInt32, math.MaxInt32},
	} {
		if number.value < number.least || number.value > number.most {
			return nil, Usagef("--%s: expected %d..%d, found %d", number.flag, number.least, number.most, number.value)
		}
	}
	o := &format.SchedgenOptions{
		Variant: f.variant, TimeMult: f.timeMult, CPU: int32(f.cpu), Nonblocking: f.nb, Poll: f.poll, Extrapolate: f.extr,
		Collectives: f.nops, NoPointToPoint: f.noP2P, NoCollectives: f.noColls, Prepost: int32(f.prepost),
	}
	if f.start != "" {
		places, err := readPlaces(f.start)
		if err != nil {
			return nil, err
		}
		o.Start = places
	}
	return o, nil
}

// readPlaces reads where to begin in the files of the ranks, an offset and a time on each line. A file that is not
// there is as good as one without lines: all begin at the front.
func readPlaces(path string) ([]format.Place, error) {
	places := []format.Place{}
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
		var place format.Place
		if place.Offset, err = strconv.ParseInt(offset, 10, 32); err != nil || place.Offset < 0 {
			return nil, wrong
		}
		if place.Time, err = strconv.ParseFloat(strings.TrimSpace(time), 64); err != nil {
			return nil, wrong
		}
		places = append(places, place)
	}
	if err := lines.Err(); err != nil {
		return nil, fmt.Errorf("%s: reading: %w", path, format.Cause(err))
	}
	return places, nil
}

// writePlaces writes what readPlaces reads.
func (p *Program) writePlaces(path string, places []format.Place) error {
	out, err := p.Create(path, false)
	if err != nil {
		return err
	}
	defer out.Close()
	for _, place := range places {
		fmt.Fprintf(out, "%d %.30g\n", place.Offset, place.Time)
	}
	return out.Commit()
}
