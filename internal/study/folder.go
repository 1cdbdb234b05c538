package study

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/tracedag/tracedag/internal/grid"
	"github.com/tracedag/tracedag/internal/par"
	"github.com/tracedag/tracedag/internal/provenance"
	"github.com/tracedag/tracedag/internal/results"
)

// keep stores the study file in the folder. If another one is there, the study must contain all of its runs: its
// options are the same, and its axes have its values at least.
func keep(folder results.Folder, text []byte, s *grid.Study) error {
	name := filepath.Join(string(folder), "study.yml")
	before, err := os.ReadFile(name)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		if err := os.MkdirAll(string(folder), 0o777); err != nil {
			return err
		}
	case err != nil:
		return err
	case bytes.Equal(before, text):
		return nil
	default:
		old, err := grid.Read(before, name, nil, nil)
		if err != nil {
			return fmt.Errorf("%w; the folder has the results of another study, use a new one", err)
		}
		if change := s.Changed(old); change != "" {
			return fmt.Errorf("%s: the folder has the results of a study with other settings (%s); only axes, traces "+
				"and seeds may grow: use a new folder", name, change)
		}
	}
	return folder.Replace("study.yml", text)
}

// bare returns the description of a run without what depends on other runs of the study.
func bare(a provenance.Run) provenance.Run {
	a.Study, a.Index, a.Replica, a.Factors = "", 0, 0, map[string]string{}
	return a
}

// place adds its place in a study to the line of a kept run, and returns the version of the program that ran it.
func place(line []byte, a *provenance.Run) (placed []byte, version string, err error) {
	own, rest, err := description(line)
	if err != nil {
		return nil, "", err
	}
	r := &provenance.Run{}
	if err := json.Unmarshal(own, r); err != nil {
		return nil, "", err
	}
	r.Study, r.Index, r.Replica, r.Factors = a.Study, a.Index, a.Replica, a.Factors
	described, err := marshal(r)
	if err != nil {
		return nil, "", err
	}
	return slices.Concat([]byte(describes), described, rest), r.Version, nil
}

// describes is the begin of the line of a run.
const describes = `{"run":`

// description returns the object that describes a run, with which its line begins, and the rest of the line.
func description(line []byte) (own, rest []byte, err error) {
	rest, found := bytes.CutPrefix(line, []byte(describes))
	depth, quoted := 0, false
	for i := 0; found && i < len(rest); i++ {
		switch c := rest[i]; {
		case quoted && c == '\\':
			i++
		case c == '"':
			quoted = !quoted
		case quoted:
		case c == '{':
			depth++
		case c == '}':
			if depth--; depth == 0 {
				return rest[:i+1], rest[i+1:], nil
			}
		}
	}
	return nil, nil, errors.New("expected a line that begins with the description of its run")
}

// marshal returns JSON without escaping <, > and &.
func marshal(v any) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	err := e.Encode(v)
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), err
}

// Tally counts the runs of a plan.
type Tally struct {
	Total, Done, Incomplete, Failed, Limited, Todo int
	First, Last                                    time.Time // when the first and the last run ended
}

// eachOf calls work with each run of a plan and its kept form, nil if it has none, concurrently, and then do in the
// order of the grid.
func eachOf[T any](s *results.Store, p *Plan, work func(run int, k *results.Kept) (T, error),
	do func(run int, t T) error) error {
	type result struct {
		of  T
		err error
	}
	read := func(run int) (r result) {
		k, err := s.Read(p.Runs[run].About.ID)
		if r.err = err; err == nil {
			r.of, r.err = work(run, k)
		}
		return r
	}
	run := 0
	for r := range par.Ordered(par.Indices(len(p.Runs)), 8, 64, func() func(int) result { return read }) {
		if r.err != nil {
			return r.err
		}
		if err := do(run, r.of); err != nil {
			return err
		}
		run++
	}
	return nil
}

// state is the state of a run in a folder.
type state struct {
	there  bool
	status results.Status
	at     time.Time
}

// states returns the states of all runs of a plan.
func (p *Plan) states(s *results.Store) ([]state, error) {
	all := make([]state, len(p.Runs))
	err := par.EachOn(8, len(all), func(run int) (err error) {
		r := &all[run]
		r.status, r.at, r.there, err = s.Status(p.Runs[run].About.ID)
		return err
	})
	return all, err
}

func (t *Tally) add(s state) {
	switch {
	case !s.there:
		t.Todo++
		return
	case s.status == results.Failed:
		t.Failed++
	case s.status == results.Limited:
		t.Limited++
	case s.status == results.Incomplete:
		t.Incomplete++
		t.Done++
	default:
		t.Done++
	}
	if t.First.IsZero() || s.at.Before(t.First) {
		t.First = s.at
	}
	if s.at.After(t.Last) {
		t.Last = s.at
	}
}

// Remaining estimates the time for the runs to do from the times at which others ended; 0 if it is unknown.
func (t *Tally) Remaining() time.Duration {
	ended := t.Total - t.Todo
	if ended < 2 || t.Todo == 0 {
		return 0
	}
	return t.Last.Sub(t.First) / time.Duration(ended-1) * time.Duration(t.Todo)
}
