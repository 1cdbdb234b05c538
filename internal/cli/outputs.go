// This file writes traces that are many files, which are there all of them whole or none.

package cli

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/tracedag/tracedag/dag"
	"github.com/tracedag/tracedag/formats/format"
	"github.com/tracedag/tracedag/internal/units"
)

// writeFiles writes a trace in a format of many files. That of a trace with one rank is called as the user says, where that
// is a name for a file: it has an ending, or is standard output.
func (p *Program) writeFiles(to *Target, t *dag.Trace) error {
	progress := p.Progress("writing", -1, "B")
	defer progress.Close()
	start := time.Now()
	out := &outputs{p: p, prefix: filesPrefix(to.Path, to.Format), format: to.Format, progress: progress}
	switch stdout := isStdout(to.Path); {
	case len(t.Ranks) == 1 && to.named && (stdout || out.prefix != to.Path):
		if out.only = to.Path; stdout {
			out.only = "-"
		}
	case stdout:
		return Usagef("a trace in %s is many files: name them with -o, as in -o FOLDER/NAME%s", to.Format.Name,
			to.Format.Extensions[0])
	}
	defer out.close()
	err := to.Format.WriteFiles(out.create, t, to.options(p))
	if out.err == nil {
		out.err = out.finish()
	}
	if out.err != nil {
		return out.err
	}
	if err != nil {
		return InFile(to.Name(), err)
	}
	if err := out.commit(); err != nil {
		return err
	}
	p.Explain("%s: wrote %d ops as %d files in %s, %s, in %v", to.Name(), t.Ops(), len(out.done), to.Format.Name,
		units.FormatSize(out.size), time.Since(start).Round(time.Millisecond))
	return nil
}

// outputs are the files of a trace. They have their names only after commit.
type outputs struct {
	p        *Program
	prefix   string // what the names of all begin with
	only     string // the name of rank 0's file, where there is no other rank and the user says how it is called; else ""
	format   *format.Format
	progress *Progress

	done []*Output // complete, but for the last
	w    *countingWriter
	size int64 // of those before the last
	err  error // of a file that could not be created or completed
}

// filesPrefix returns what the names of the files begin with of a trace that is written to path: path itself, without the
// ending that the format gives its files, nor the rank where it names the file of rank 0.
func filesPrefix(path string, f *format.Format) string {
	ending := filepath.Ext(path)
	if !slices.Contains(f.Extensions, strings.ToLower(ending)) {
		return path
	}
	folder, base := filepath.Split(strings.TrimSuffix(path, ending))
	switch base {
	case "":
		return path
	case RankZero:
		return folder + base
	}
	return folder + strings.TrimSuffix(base, RankZero)
}

// create begins the next file, whose name ends with suffix.
func (o *outputs) create(suffix string) (io.Writer, error) {
	if err := o.finish(); err != nil {
		o.err = err
		return nil, err
	}
	name := o.prefix + suffix
	if o.only != "" {
		if strings.HasPrefix(suffix, RankZero) {
			name = o.only
		} else if isStdout(o.only) {
			o.p.Warn("what belongs into a file of its own, called NAME%s, is left out", suffix)
			return io.Discard, nil
		}
	}
	out, err := o.p.Create(name, false)
	if err != nil {
		o.err = err
		return nil, err
	}
	o.done = append(o.done, out)
	o.w = &countingWriter{w: out, progress: o.progress}
	return o.w, nil
}

// finish completes the last file, without giving it its name.
func (o *outputs) finish() error {
	if o.w == nil {
		return nil
	}
	out := o.done[len(o.done)-1]
	if o.w.err != nil {
		return out.writeError(o.w.err)
	}
	if err := out.finish(); err != nil {
		return err
	}
	o.size += o.w.n
	o.w, out.Writer = nil, nil
	return nil
}

// commit gives all files, which must be complete, their names, and removes those of a trace that had the same name and
// more files. Where something cannot be done, all is as it was before.
func (o *outputs) commit() error {
	stale, err := o.stale()
	if err != nil {
		return err
	}
	if err := o.p.temps.replace(o.done, stale); err != nil {
		return err
	}
	if n := len(stale); n > 0 {
		o.p.Info("%s: removed what was left of the trace that was there before: %s to %s, %d files", o.prefix, stale[0],
			stale[n-1], n)
	}
	return nil
}

// stale returns the files that would be taken for files of the trace and are not.
func (o *outputs) stale() ([]string, error) {
	if len(o.done) == 0 || o.format.Files == nil || o.only != "" {
		return nil, nil
	}
	folder, first := filepath.Split(o.done[0].name)
	names, err := plainNames(filepath.Clean(folder + "."))
	if err != nil {
		return nil, err
	}
	written := make(map[string]bool, len(o.done))
	for _, out := range o.done {
		name := filepath.Base(out.name)
		written[name] = true
		names = append(names, name)
	}
	slices.Sort(names)
	found, err := o.format.Files(first, slices.Compact(names))
	if err != nil {
		return nil, InFile(o.done[0].name, err)
	}
	found = slices.DeleteFunc(found, func(name string) bool { return written[name] })
	for i := range found {
		found[i] = folder + found[i]
	}
	return found, nil
}

// close removes what was not committed.
func (o *outputs) close() {
	for _, out := range o.done {
		out.Close()
	}
}

// replace gives the outputs their names and removes the stale files. Where something cannot be done, it undoes the rest.
func (t *temporaries) replace(done []*Output, stale []string) (err error) {
	t.mu.Lock() // to the end: a signal waits
	defer t.mu.Unlock()
	type renaming struct{ from, to string }
	var made []renaming
	rename := func(from, to string) error {
		err := os.Rename(from, to)
		if err == nil {
			made = append(made, renaming{from, to})
		}
		return err
	}
	var aside []string // where files are kept that go
	putAside := func(path string) error {
		if _, err := os.Lstat(path); errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		for {
			to := t.name(filepath.Dir(path))
			if _, err := os.Lstat(to); err == nil {
				continue
			}
			aside = append(aside, to)
			return rename(path, to)
		}
	}
	defer func() {
		if err == nil {
			return
		}
		for _, r := range slices.Backward(made) {
			os.Rename(r.to, r.from)
		}
	}()
	for _, out := range done {
		if out.temp == "" {
			continue
		}
		if err := putAside(out.final); err != nil {
			return out.writeError(renameCause(err))
		}
		if err := rename(out.temp, out.final); err != nil {
			return out.writeError(renameCause(err))
		}
	}
	for _, path := range stale {
		if err := putAside(path); err != nil {
			return fmt.Errorf("%s: removing: %w", path, renameCause(err))
		}
	}
	for _, path := range aside {
		os.Remove(path)
	}
	for _, out := range done {
		delete(t.paths, out.temp)
		out.temp = ""
	}
	return nil
}

// renameCause returns the error of a renaming without the names.
func renameCause(err error) error {
	var link *os.LinkError
	if errors.As(err, &link) {
		return link.Err
	}
	return cause(err)
}
