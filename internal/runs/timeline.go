// This file opens the file of --timeline.

package runs

import (
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/tracedag/tracedag/internal/cli"
	"github.com/tracedag/tracedag/internal/manual"
	"github.com/tracedag/tracedag/internal/units"
	"github.com/tracedag/tracedag/sim"
	"github.com/tracedag/tracedag/sim/timeline"
)

// TimelineFlags are the flags of timelines.
type TimelineFlags struct {
	File   string // name; "": none
	ranks  units.RankSet
	window units.Window
}

// Register adds the flags of timelines. The command's help lists only the first.
func (f *TimelineFlags) Register(cmd *cobra.Command) {
	flags := cmd.Flags()
	cli.OutputVar(flags, &f.File, "timeline", "write a timeline `FILE` (\"--help timeline\")")
	flags.Var(&f.ranks, "timeline-ranks", "include only these `ranks`, such as 0..63,128; repeatable")
	flags.Var(&f.window, "timeline-window", "include only what overlaps the time `FROM..TO`: 1ms..5ms or 5ms..")
	for _, name := range []string{"timeline-ranks", "timeline-window"} {
		manual.InTopic(cmd, name, "timeline")
	}
}

// check returns an error if the name of the file selects no format of the backend, or if flags conflict.
func (f *TimelineFlags) check(kind *sim.Kind, traits sim.Traits) error {
	filter := ""
	if f.window.IsSet() {
		filter = "--timeline-window"
	}
	if len(f.ranks) > 0 {
		filter = "--timeline-ranks"
	}
	switch own := slices.Contains(traits.Timelines, ownEnding(f.File)); {
	case f.File == "" && filter != "":
		return cli.Usagef("%s needs --timeline", filter)
	case f.File == "" || timeline.EndingOf(f.File) != "":
		return nil
	case !own:
		return cli.Usagef("--timeline: %s: expected a name that ends with %s", f.File,
			strings.Join(append(slices.Clone(timeline.Endings), traits.Timelines...), " or "))
	case filter != "":
		return cli.Usagef("%s: %s timelines of the %s backend contain all ranks and times; use a name that ends with "+
			"%s", filter, ownEnding(f.File), kind.Name, strings.Join(timeline.Endings, " or "))
	}
	return nil
}

// ownEnding returns the ending of a file name in a format of a backend.
func ownEnding(name string) string {
	return strings.ToLower(filepath.Ext(name))
}

// NewTimeline returns the timeline of a run, which writes to w.
func (r *Setup) NewTimeline(w io.Writer, l *Loaded) (sim.Timeline, error) {
	f := &r.Options.Timeline
	ending := timeline.EndingOf(f.File)
	if ending == "" {
		return r.Backend.(sim.TimelineWriter).NewTimeline(w, ownEnding(f.File))
	}
	o := l.timelineOptions()
	if f.window.IsSet() {
		o.Window = &timeline.Window{From: f.window.From, To: f.window.To}
	}
	if len(f.ranks) > 0 {
		var err error
		if o.Ranks, err = f.ranks.Of(l.Ranks); err != nil {
			return nil, fmt.Errorf("--timeline-ranks: %w", err)
		}
	}
	return timeline.New(w, ending, o), nil
}

// timelineOptions returns the options that name the ops of a trace.
func (l *Loaded) timelineOptions() timeline.Options {
	o := timeline.Options{Trace: l.Trace}
	if l.Collectives != nil {
		o.Collective, o.Kept = l.Collectives.Of, l.Collectives.Kept
	}
	return o
}
