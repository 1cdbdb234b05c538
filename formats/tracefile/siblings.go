// This file finds the files of traces with many files.

package tracefile

import (
	"cmp"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/tracedag/tracedag/dag"
	"github.com/tracedag/tracedag/formats/format"
)

// firstOfPrefix returns the file of rank 0 of the trace called name: name, the rank and an ending of the format,
// as in name.0.et. The format is the one called from, or, if that is empty, any format with many files per trace.
// The name may include the ending, as the name of an output does. If that file does not exist, name.et of a trace
// with one rank is tried. firstOfPrefix returns name itself if a file has that name or none of the others exists.
func firstOfPrefix(formats format.List, name, from string) string {
	if _, err := os.Lstat(name); err == nil || name == "-" {
		return name
	}
	for _, f := range formats.Readable() {
		if f.Files == nil || from != "" && f.Name != from {
			continue
		}
		for _, ending := range f.Extensions {
			name := strings.TrimSuffix(name, ending) // "-o NAME.et" names such a trace, too
			for _, rank := range []string{RankZero, ""} {
				for _, compressed := range []string{"", ".gz", ".zst"} {
					file := name + rank + ending + compressed
					if info, err := os.Stat(file); err == nil && !info.IsDir() {
						return file
					}
				}
			}
		}
	}
	return name
}

// RankZero is the part of the file name of rank 0 between the trace's name and the ending.
const RankZero = ".0"

// BaseName returns the base name of a file without the ending of its compression and of a known format, and without the
// rank in the name of rank 0's file.
func BaseName(formats format.List, name string) string {
	base := filepath.Base(name)
	for _, ending := range []string{".gz", ".zst"} {
		base = cutEnding(base, ending)
	}
	for i := range formats {
		for _, ending := range formats[i].Extensions {
			if shorter := cutEnding(base, ending); shorter != base {
				if formats[i].Files != nil {
					shorter = cutEnding(shorter, RankZero)
				}
				return shorter
			}
		}
	}
	return base
}

// cutEnding returns a name without the ending, ignoring case, unless the result is empty.
func cutEnding(name, ending string) string {
	if n := len(name) - len(ending); n > 0 && strings.EqualFold(name[n:], ending) {
		return name[:n]
	}
	return name
}

// filesOfFolder returns the files of the trace in a folder, in the format called from, or, if that is empty, in
// the first format with many files per trace that finds some and detects the first of them. If none does, the first
// format that finds some decides. If name is no folder or has no such trace, it returns name alone.
func filesOfFolder(formats format.List, name, from string, o *opener) ([]string, error) {
	info, err := os.Stat(name)
	if err != nil || !info.IsDir() {
		return []string{name}, nil // Open reports the error
	}
	found := []string{name}
	var foundErr error
	for _, f := range formats.Readable() {
		if f.Files == nil || from != "" && f.Name != from {
			continue
		}
		files, err := filesIn(name, "", &f)
		if len(files) == 0 && err == nil {
			continue
		}
		if err == nil && (from != "" || f.Detect == nil || f.Detect(o.head(files[0]))) {
			return files, nil
		}
		if len(found) == 1 && found[0] == name && foundErr == nil {
			found, foundErr = files, err
		}
	}
	return found, foundErr
}

// head returns the beginning of a file, nil if it cannot be read.
func (o *opener) head(name string) []byte {
	in, err := (&opener{ctx: o.ctx}).open(name)
	if err != nil {
		return nil
	}
	defer in.Close()
	return in.Head
}

// DistinctTraces returns the inputs without the other files of a trace whose file of rank 0 is among them. The
// format is the one called from, or, if that is empty, follows from the names.
func DistinctTraces(formats format.List, names []string, from string) []string {
	readable := formats.Readable()
	parts := make(map[string]bool) // by clean path
	for _, name := range names {
		if parts[filepath.Clean(name)] {
			continue
		}
		of := readable.ForPath(name)
		for i := range readable {
			f := &readable[i]
			if f.Files == nil || from != "" && f.Name != from || from == "" && of != nil && f.Name != of.Name {
				continue
			}
			if files, err := siblings(name, f); err == nil && len(files) > 1 && files[0] == name {
				for _, part := range files[1:] {
					parts[filepath.Clean(part)] = true
				}
				break
			}
		}
	}
	return slices.DeleteFunc(slices.Clone(names), func(name string) bool { return parts[filepath.Clean(name)] })
}

// siblings returns the files of the trace that includes the file called path.
func siblings(path string, f *format.Format) ([]string, error) {
	folder, base := filepath.Split(path)
	if folder == "" {
		folder = "."
	}
	files, err := filesIn(folder, base, f)
	for i := range files {
		if filepath.Base(files[i]) == base {
			files[i] = path // as the caller gave it
		}
	}
	return files, err
}

// filesIn returns the files in a folder of the trace that includes the file called name. If name is empty, it
// returns the files of the folder's only trace.
func filesIn(folder, name string, f *format.Format) ([]string, error) {
	names, err := plainNames(folder)
	if err != nil {
		return nil, err
	}
	files, err := f.Files(name, names)
	if err != nil {
		return nil, format.InFile(folder, err)
	}
	for i := range files {
		files[i] = filepath.Join(folder, files[i])
	}
	return files, nil
}

// sameButDigits reports whether two file names differ only in digits, as the files of different ranks do.
func sameButDigits(a, b string) bool {
	rest := func(name string) string {
		return strings.Map(func(r rune) rune {
			if r >= '0' && r <= '9' {
				return -1
			}
			return r
		}, filepath.Base(name))
	}
	return rest(a) == rest(b)
}

// plainNames returns the names of the regular files in a folder, ascending, without hidden files.
func plainNames(folder string) ([]string, error) {
	entries, err := os.ReadDir(folder)
	if err != nil {
		return nil, err
	}
	var names []string
	for _, e := range entries {
		if plain(folder, e) && e.Name()[0] != '.' {
			names = append(names, e.Name())
		}
	}
	return names, nil
}

// plain reports whether an entry of a folder is a regular file or a link to one. Others, such as pipes, may have
// no end.
func plain(folder string, e fs.DirEntry) bool {
	if e.Type()&fs.ModeSymlink == 0 {
		return e.Type().IsRegular()
	}
	info, err := os.Stat(filepath.Join(folder, e.Name()))
	return err != nil || info.Mode().IsRegular() // Open reports a dangling link
}

// laterInput is a file of a trace with many files. It is opened at the first read and closed at its end, so that a
// trace may have more files than a process can open.
type laterInput struct {
	o    *opener
	name string

	in     *Input    // while it is open
	opened bool      // whether it was read
	done   bool      // whether it was read to its end
	number bool      // whether it is a text that ends in a number, once done
	sum    dag.Input // digest, once done
}

func (l *laterInput) Read(b []byte) (int, error) {
	if l.done {
		return 0, io.EOF
	}
	if err := l.open(); err != nil {
		var reading *readError
		if errors.As(err, &reading) { // the caller adds the name
			return 0, reading.err
		}
		return 0, format.Cause(err)
	}
	n, err := l.in.Reader.Read(b)
	if err == io.EOF {
		if endErr := l.end(); endErr != nil {
			return n, endErr
		}
	}
	return n, err
}

func (l *laterInput) open() (err error) {
	if l.in == nil {
		l.opened = true
		l.in, err = l.o.open(l.name)
	}
	return err
}

// finish verifies the rest of the file if a reader stopped before its end.
func (l *laterInput) finish() error {
	if l.in == nil {
		return nil
	}
	err := l.in.finish(l.o.ctx)
	return cmp.Or(err, l.end())
}

// end takes the digest and closes the file.
func (l *laterInput) end() (err error) {
	l.done = true
	l.number = l.in.endsInNumber()
	if l.o.digest {
		l.sum, err = l.in.Digest()
	}
	l.Close()
	return err
}

// Digest returns the same as Input.Digest.
func (l *laterInput) Digest() (dag.Input, error) {
	if !l.done {
		if err := l.open(); err != nil {
			return dag.Input{}, err
		}
		if err := l.end(); err != nil {
			return dag.Input{}, err
		}
	}
	return l.sum, nil
}

func (l *laterInput) Close() {
	if l.in != nil {
		l.in.Close()
		l.in = nil
	}
}
