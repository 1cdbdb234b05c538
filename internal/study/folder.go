package study

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/tracedag/tracedag/internal/grid"
	"github.com/tracedag/tracedag/internal/par"
	"github.com/tracedag/tracedag/internal/provenance"
)

// Folder is the folder of a study's results: study.yml, a copy of the study file; runs/RR/RUN.json, a file per run;
// traces, those that the study generates.
//
// The file of a run is a line of JSON, as simulate --json prints it but without its place in the study, and a line with
// the SHA-256 of the first. It appears under its name when it is complete, so killing a process at any moment leaves
// whole files only. Processes that run the same run write the same bytes.
type Folder string

// Traces returns the folder of generated traces.
func (f Folder) Traces() string { return filepath.Join(string(f), "traces") }

// path returns the name of the file of a run.
func (f Folder) path(id string) string {
	return filepath.Join(string(f), "runs", id[:2], id+".json")
}

// Keep stores the study file in the folder. If another one is there, the study must contain all of its runs: its
// options are the same, and its axes have its values at least.
func (f Folder) Keep(text []byte, s *grid.Study) error {
	name := filepath.Join(string(f), "study.yml")
	before, err := os.ReadFile(name)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		if err := os.MkdirAll(string(f), 0o777); err != nil {
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
	return replace(name, text)
}

// temporary makes names of files to rename different.
var temporary atomic.Int64

// replace writes a file that appears complete or not at all.
func replace(name string, text []byte) error {
	folder, base := filepath.Split(name)
	var out *os.File
	var beside string
	for {
		beside = fmt.Sprintf("%s.%s.%d-%d", folder, base, os.Getpid(), temporary.Add(1))
		var err error
		if out, err = os.OpenFile(beside, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o666); err == nil {
			break
		}
		if !errors.Is(err, fs.ErrExist) { // a killed process of the same number, as in containers, may have left one
			return err
		}
	}
	_, err := out.Write(text)
	if closing := out.Close(); err == nil {
		err = closing
	}
	if err == nil {
		err = os.Rename(beside, name)
	}
	if err != nil {
		os.Remove(beside)
	}
	return err
}

// Write stores the line of a run, without its place in the study; see [Execution.Bare].
func (f Folder) Write(id string, line []byte, status Status) error {
	text := slices.Concat(line, trailer(line, id, status))
	name := f.path(id)
	err := replace(name, text)
	if errors.Is(err, fs.ErrNotExist) {
		if err = os.MkdirAll(filepath.Dir(name), 0o777); err == nil {
			err = replace(name, text)
		}
	}
	return err
}

// clean removes files that killed processes left unfinished. It spares files of the last hour, which may be of a
// process that runs.
func (f Folder) clean() {
	left, _ := filepath.Glob(filepath.Join(string(f), "runs", "*", ".*.json.*"))
	for _, name := range left {
		if info, err := os.Stat(name); err == nil && time.Since(info.ModTime()) > time.Hour {
			os.Remove(name)
		}
	}
}

// trailer returns the line after the line of a run, which shows that the file is whole.
func trailer(line []byte, id string, status Status) []byte {
	sum := sha256.Sum256(line)
	return fmt.Appendf(nil, "sha256:%x %s %s\n", sum, id, statuses[status])
}

var statuses = [...]string{Done: "done", Incomplete: "incomplete", Limited: LimitStatus, Failed: "failed"}

// bare returns the description of a run without what depends on other runs of the study.
func bare(a provenance.Run) provenance.Run {
	a.Study, a.Index, a.Replica, a.Factors = "", 0, 0, map[string]string{}
	return a
}

// place adds its place in a study to the line of a kept run, and returns the version of the program that ran it.
func place(line []byte, a *provenance.Run) (placed []byte, version string, err error) {
	var kept struct {
		Run *provenance.Run `json:"run"`
	}
	if err := json.Unmarshal(line, &kept); err != nil {
		return nil, "", err
	}
	r := kept.Run
	r.Study, r.Index, r.Replica, r.Factors = a.Study, a.Index, a.Replica, a.Factors
	placed, err = describeAs(line, r)
	return placed, r.Version, err
}

// describeAs replaces the description of a run, with which its line begins.
func describeAs(line []byte, by *provenance.Run) ([]byte, error) {
	const begin = `{"run":`
	rest, found := bytes.CutPrefix(line, []byte(begin))
	if !found {
		return nil, errors.New("expected a line that begins with the description of its run")
	}
	decoder := json.NewDecoder(bytes.NewReader(rest))
	var raw json.RawMessage
	if err := decoder.Decode(&raw); err != nil {
		return nil, err
	}
	described, err := marshal(by)
	if err != nil {
		return nil, err
	}
	return append(append([]byte(begin), described...), rest[decoder.InputOffset():]...), nil
}

// marshal returns JSON without escaping <, > and &.
func marshal(v any) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	err := e.Encode(v)
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), err
}

// Kept is a run of a folder.
type Kept struct {
	Line   []byte // JSON with a line end
	Status Status
	Error  string // of a run that failed
	At     time.Time
}

// Read returns a kept run, or nil if there is none: no file, or one that is not whole.
func (f Folder) Read(id string) (*Kept, error) {
	name := f.path(id)
	text, err := os.ReadFile(name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	at := bytes.IndexByte(text, '\n') + 1
	k := &Kept{Line: text[:at]}
	sum := sha256.Sum256(k.Line)
	var status string
	if begin := fmt.Sprintf("sha256:%x %s ", sum, id); len(text)-at > len(begin) &&
		string(text[at:at+len(begin)]) == begin {
		status = strings.TrimSuffix(string(text[at+len(begin):]), "\n")
	}
	kind := slices.Index(statuses[:], status)
	if kind < 0 || text[len(text)-1] != '\n' {
		return nil, nil
	}
	if k.Status = Status(kind); k.Status == Failed || k.Status == Limited {
		var object struct{ Error string }
		if json.Unmarshal(k.Line, &object) == nil {
			k.Error = cmp.Or(object.Error, "failed")
		}
	}
	if info, err := os.Stat(name); err == nil {
		k.At = info.ModTime()
	}
	return k, nil
}

// LimitStatus is the member "status" of the line of a run that exceeded a limit.
const LimitStatus = "limit"

// Lock gives the process the only right to run a shard, until it ends. If another process has it, the error names that.
func (f Folder) Lock(shard string) (unlock func(), err error) {
	folder := filepath.Join(string(f), "locks")
	if err := os.MkdirAll(folder, 0o777); err != nil {
		return nil, err
	}
	name := filepath.Join(folder, shard+".lock")
	file, err := os.OpenFile(name, os.O_RDWR|os.O_CREATE, 0o666)
	if err != nil {
		return nil, err
	}
	mine, err := lockFile(file)
	if err != nil {
		file.Close()
		return nil, fmt.Errorf("%s: locking: %w", name, err)
	}
	if !mine {
		holder, _ := os.ReadFile(name)
		file.Close()
		return nil, &LockedError{name, strings.TrimSpace(string(holder))}
	}
	host, _ := os.Hostname()
	file.Truncate(0)
	fmt.Fprintf(file, "process %d on %s\n", os.Getpid(), host)
	return func() { file.Close() }, nil
}

// LockedError is the error of a shard that another process runs.
type LockedError struct{ File, Holder string }

func (e *LockedError) Error() string {
	return fmt.Sprintf("%s: %s runs this shard; wait for it, or run another shard", e.File, e.Holder)
}

// Tally counts the runs of a plan.
type Tally struct {
	Total, Done, Incomplete, Failed, Limited, Todo int
	First, Last                                    time.Time // when the first and the last run ended
}

// Each calls do with each run of a plan and its kept form, nil if it has none, in the order of the grid.
func (f Folder) Each(p *Plan, do func(run int, k *Kept) error) error {
	return eachOf(f, p, func(_ int, k *Kept) (*Kept, error) { return k, nil }, do)
}

// eachOf is Folder.Each with work on each run, concurrently, before do.
func eachOf[T any](f Folder, p *Plan, work func(run int, k *Kept) (T, error), do func(run int, t T) error) error {
	type result struct {
		of  T
		err error
	}
	read := func(run int) (r result) {
		k, err := f.Read(p.Runs[run].About.ID)
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

// Count counts the runs of a plan.
func (f Folder) Count(p *Plan) (t Tally, err error) {
	t.Total = len(p.Runs)
	err = f.Each(p, func(_ int, k *Kept) error {
		t.add(k)
		return nil
	})
	return t, err
}

func (t *Tally) add(k *Kept) {
	switch {
	case k == nil:
		t.Todo++
		return
	case k.Status == Failed:
		t.Failed++
	case k.Status == Limited:
		t.Limited++
	case k.Status == Incomplete:
		t.Incomplete++
		t.Done++
	default:
		t.Done++
	}
	if t.First.IsZero() || k.At.Before(t.First) {
		t.First = k.At
	}
	if k.At.After(t.Last) {
		t.Last = k.At
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
