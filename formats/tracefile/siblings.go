// This file finds the files of traces that are many files.

package tracefile

import (
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

// firstOfPrefix returns the file of rank 0 of the trace whose files are called name, their rank and an ending of the
// format, as in name.0.et: the format called from, or where that is empty any whose traces are many files. The name may
// have the ending, too, as that of an output does. Where there is no such file it may be name.et, of a trace of one
// rank. It returns name itself where there is a file of that name, or none of the others.
func firstOfPrefix(formats format.List, name, from string) string {
	if _, err := os.Lstat(name); err == nil || name == "-" {
		return name
	}
	for _, f := range formats.Readable() {
		if f.Files == nil || from != "" && f.Name != from {
			continue
		}
		for _, ending := range f.Extensions {
			name := strings.TrimSuffix(name, ending) // as -o NAME.et calls such a trace
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

// RankZero is what the name of the file of rank 0 has between that of the trace and the ending.
const RankZero = ".0"

// filesOfFolder returns the files of the trace in a folder, in a format whose traces are many files: the one called
// from, or where that is empty whichever finds some. Of anything but a folder, or where there is no such trace, it
// returns the name alone.
func filesOfFolder(formats format.List, name, from string) ([]string, error) {
	info, err := os.Stat(name)
	if err != nil || !info.IsDir() {
		return []string{name}, nil // Open says what is wrong with it
	}
	for _, f := range formats.Readable() {
		if f.Files == nil || from != "" && f.Name != from {
			continue
		}
		files, err := filesIn(name, "", &f)
		if len(files) > 0 || err != nil {
			return files, err
		}
	}
	return []string{name}, nil
}

// DistinctTraces returns the inputs without those that are files of a trace whose file of rank 0 is among them, too, in
// the format called from, or where that is empty as their names tell.
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

// siblings returns the files of the trace to which the one called path belongs.
func siblings(path string, f *format.Format) ([]string, error) {
	folder, base := filepath.Split(path)
	if folder == "" {
		folder = "."
	}
	files, err := filesIn(folder, base, f)
	for i := range files {
		if filepath.Base(files[i]) == base {
			files[i] = path // as it was given
		}
	}
	return files, err
}

// filesIn returns the files of a folder that make up the trace to which the one called name belongs, or where that is
// "" the trace that the folder has.
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

// sameButDigits reports whether two names of files of a trace differ in digits only, as those of different ranks do.
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

// plainNames returns the names of the plain files in a folder, ascending, without the hidden ones.
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

// plain reports whether an entry of a folder is a plain file or a link to one. Another, such as a pipe, may have no
// end.
func plain(folder string, e fs.DirEntry) bool {
	if e.Type()&fs.ModeSymlink == 0 {
		return e.Type().IsRegular()
	}
	info, err := os.Stat(filepath.Join(folder, e.Name()))
	return err != nil || info.Mode().IsRegular() // Open says what is wrong with a link that leads nowhere
}

// laterInput is one of many files of a trace. It is opened when it is first read and closed at its end, so that there
// may be more files than can be open at the same time.
type laterInput struct {
	o    *opener
	name string

	in     *Input    // while it is open
	opened bool      // whether it was read from
	done   bool      // whether it was read to its end
	sum    dag.Input // then
}

func (l *laterInput) Read(b []byte) (int, error) {
	if l.done {
		return 0, io.EOF
	}
	if err := l.open(); err != nil {
		var reading *readError
		if errors.As(err, &reading) { // who reads knows the name
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

// end closes the file, having taken its digest.
func (l *laterInput) end() (err error) {
	l.done = true
	if l.o.digest {
		l.sum, err = l.in.Digest()
	}
	l.Close()
	return err
}

// Digest returns what Input.Digest does.
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
