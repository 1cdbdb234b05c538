// This file selects ops for the list of ops: by rank, kind, time, job and name.

package tracecat

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/tracedag/tracedag/dag"
	"github.com/tracedag/tracedag/internal/cli"
	"github.com/tracedag/tracedag/internal/units"
)

// filter is the flags that select ops. The zero value selects all.
type filter struct {
	ranks  units.RankSet
	kinds  kindSet
	window units.Window
	jobs   []string // names or numbers
	name   string
}

// filterFlags are the names of the flags of a filter.
var filterFlags = [...]string{"rank", "kind", "window", "job", "name"}

// register adds the flags to the command.
func (f *filter) register(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.Var(&f.ranks, "rank", "list only ops of these `ranks`, such as 3 or 0,4-7; repeatable")
	flags.Var(&f.kinds, "kind", "list only ops of these `kinds`: send,recv or allreduce")
	cli.CompleteWith(cmd, "kind", kindNames())
	flags.Var(&f.window, "window", "list only ops in the time `FROM..TO`: 1ms..5ms or 5ms..")
	flags.StringSliceVar(&f.jobs, "job", nil, "list only ops of these `jobs`, by name or number")
	flags.StringVar(&f.name, "name", "", "list only ops whose name has `TEXT`, or is like *TEXT?")
}

// selection is a filter for one trace.
type selection struct {
	ranks []int // ascending
	kinds *kindSet
	times *units.Window
	jobs  []int32 // ascending; nil: all
	name  namePattern
	all   bool // all ops of the ranks
}

// of returns the filter for a trace, or an error about ranks or jobs that it does not have.
func (f *filter) of(h *dag.Header) (*selection, error) {
	s := &selection{kinds: &f.kinds, times: &f.window, name: newNamePattern(f.name)}
	var err error
	if s.ranks, err = f.ranks.Of(h.Ranks); err != nil {
		return nil, err
	}
	for _, job := range f.jobs {
		n := slices.Index(h.Jobs, job)
		if n < 0 {
			number, err := strconv.ParseUint(job, 10, 31)
			if jobs := max(1, len(h.Jobs)); err != nil || number >= uint64(jobs) {
				return nil, fmt.Errorf("there is no job %.60q, the trace has %s", job, jobsText(h.Jobs))
			}
			n = int(number)
		}
		s.jobs = append(s.jobs, int32(n))
	}
	s.all = !f.kinds.set && !f.window.IsSet() && s.jobs == nil && f.name == ""
	return s, nil
}

// jobsText describes the jobs of a trace for messages.
func jobsText(jobs []string) string {
	const most = 8
	if len(jobs) == 0 {
		return "only job 0"
	}
	text := fmt.Sprintf("%d: %s", len(jobs), strings.Join(jobs[:min(len(jobs), most)], ", "))
	if len(jobs) > most {
		text += ", ..."
	}
	return text
}

// selects reports whether the filter selects op i of a selected rank.
func (s *selection) selects(r *dag.Rank, i int) bool {
	return s.all || s.kinds.has(r.Kind[i], r.Subkind.At(i)) && inWindow(s.times, r, i) &&
		(s.jobs == nil || slices.Contains(s.jobs, r.Job.At(i))) && s.name.matches(r.Name.At(i))
}

// kindSet is a flag with kinds and subkinds: "send,recv", "allreduce".
type kindSet struct {
	set      bool
	kinds    [dag.NumKinds]bool
	subkinds [dag.NumSubkinds]bool
	text     string
}

// kindNames returns the names that a kindSet accepts.
func kindNames() (names []string) {
	for k := range dag.Kind(dag.NumKinds) {
		names = append(names, k.String())
	}
	for s := dag.NoSubkind + 1; s < dag.NumSubkinds; s++ {
		names = append(names, s.String())
	}
	return names
}

// Set adds kinds to the set.
func (s *kindSet) Set(text string) error {
	for name := range strings.SplitSeq(text, ",") {
		if kind, ok := dag.ParseKind(name); ok {
			s.kinds[kind] = true
		} else if subkind, ok := dag.ParseSubkind(name); ok && subkind != dag.NoSubkind {
			s.subkinds[subkind] = true
		} else {
			return fmt.Errorf("expected kinds of op (%s), found %.40q", strings.Join(kindNames(), ", "), name)
		}
	}
	s.set, s.text = true, strings.TrimPrefix(s.text+","+text, ",")
	return nil
}

// String returns the kinds in the syntax of Set.
func (s *kindSet) String() string { return s.text }

// Type returns the placeholder in help.
func (s *kindSet) Type() string { return "kinds" }

func (s *kindSet) has(kind dag.Kind, subkind dag.Subkind) bool {
	return !s.set || s.kinds[kind] || s.subkinds[subkind]
}

// inWindow reports whether the measured time of an op overlaps the window or, if the op was not measured, its release
// time lies in it.
func inWindow(w *units.Window, r *dag.Rank, i int) bool {
	if !w.IsSet() {
		return true
	}
	start, end := r.Measured(i)
	switch {
	case start == dag.Unmeasured && end == dag.Unmeasured:
		start = r.Release.At(i)
		end = start
	case start == dag.Unmeasured:
		start = end
	case end == dag.Unmeasured:
		end = start
	}
	return w.Overlaps(start, end)
}

// namePattern matches names: a text that they contain, or, with * or ?, a pattern of the whole name.
type namePattern struct {
	text string
	glob bool
}

func newNamePattern(text string) namePattern {
	return namePattern{text, strings.ContainsAny(text, "*?")}
}

// matches reports whether the pattern matches a name. It takes time proportional to the product of the lengths at most.
func (p namePattern) matches(name string) bool {
	if !p.glob {
		return strings.Contains(name, p.text)
	}
	at, i := 0, 0        // in the pattern and in the name
	star, retry := -1, 0 // the last *, and the end of the text that it matches
	pattern, text := []rune(p.text), []rune(name)
	for i < len(text) {
		switch {
		case at < len(pattern) && pattern[at] == '*':
			star, retry = at, i
			at++
		case at < len(pattern) && (pattern[at] == '?' || pattern[at] == text[i]):
			at++
			i++
		case star >= 0:
			retry++
			at, i = star+1, retry
		default:
			return false
		}
	}
	for at < len(pattern) && pattern[at] == '*' {
		at++
	}
	return at == len(pattern)
}
