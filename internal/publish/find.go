package publish

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/tracedag/tracedag/formats/format"
	"github.com/tracedag/tracedag/formats/tracefile"
	"github.com/tracedag/tracedag/internal/par"
)

// Input is a trace to be published: a file, or the folder or the file of rank 0 of a trace of many files.
type Input struct {
	Path  string
	Given bool // the user named it; otherwise it was found in a folder
}

// finder finds the inputs.
type finder struct {
	ctx              context.Context
	formats          format.List
	from             string
	include, exclude []string
	skip             fs.FileInfo // the set itself
	roots            []string    // resolved folders that the user named

	found []Input
	seen  map[string]bool // resolved paths of the files found
}

// find returns the inputs that the arguments name, sorted by path: files, the traces in folders and below, and those
// that match a pattern. Hidden files and folders, and the set's folder, are skipped. A link is followed if it was
// named, or if it leads to a file in the named folders. include and exclude are patterns of base names or of paths
// relative to the named folder; they apply to files in folders.
func (o *Options) find() ([]Input, error) {
	f := &finder{ctx: o.Context, formats: o.Formats, from: o.From, include: o.Include, exclude: o.Exclude,
		seen: make(map[string]bool)}
	for _, pattern := range slices.Concat(f.include, f.exclude) {
		if _, err := path.Match(pattern, "x"); err != nil {
			return nil, fmt.Errorf("pattern %q: %w", pattern, err)
		}
	}
	f.skip, _ = os.Stat(o.Folder)
	names, err := expand(o.Inputs)
	if err != nil {
		return nil, err
	}
	for _, name := range names {
		if resolved, err := filepath.EvalSymlinks(name); err == nil {
			f.roots = append(f.roots, resolved)
		}
	}
	for _, name := range names {
		info, err := os.Stat(name)
		switch {
		case err != nil, !info.IsDir(): // opening it reports the error, or finds the files of its ranks
			f.add(name, true)
		case f.skip != nil && os.SameFile(info, f.skip):
			return nil, fmt.Errorf("%s: expected traces to add, found the set itself", name)
		default:
			if err := f.folder(name, ""); err != nil {
				return nil, err
			}
		}
	}
	return f.distinct(), nil
}

// expand replaces patterns by the names that match, unless a file has the name of the pattern.
func expand(args []string) ([]string, error) {
	var names []string
	for _, arg := range args {
		if _, err := os.Lstat(arg); err == nil || !strings.ContainsAny(arg, "*?[") {
			names = append(names, arg)
			continue
		}
		found, err := filepath.Glob(arg)
		if err != nil {
			return nil, fmt.Errorf("pattern %q: %w", arg, err)
		}
		if !strings.HasPrefix(filepath.Base(arg), ".") { // hidden files, as a shell
			found = slices.DeleteFunc(found, func(name string) bool { return filepath.Base(name)[0] == '.' })
		}
		if len(found) == 0 {
			return nil, fmt.Errorf("%s: expected files that match the pattern, found none", arg)
		}
		names = append(names, found...)
	}
	return names, nil
}

// add adds an input unless it was found already.
func (f *finder) add(name string, given bool) {
	key, err := filepath.EvalSymlinks(name)
	if err != nil {
		key = filepath.Clean(name)
	}
	if absolute, err := filepath.Abs(key); err == nil {
		key = absolute
	}
	if !f.seen[key] {
		f.seen[key] = true
		f.found = append(f.found, Input{Path: name, Given: given})
	}
}

// folder adds the traces in a folder. relative is its path below the named folder.
func (f *finder) folder(name, relative string) error {
	if err := par.Interrupted(f.ctx); err != nil {
		return err
	}
	entries, err := os.ReadDir(name)
	if err != nil {
		return err
	}
	var files, folders []string
	visible := 0
	for _, e := range entries {
		if e.Name()[0] == '.' {
			continue
		}
		visible++
		full, below := filepath.Join(name, e.Name()), path.Join(relative, e.Name())
		switch info, err := f.target(full, e); {
		case err != nil:
			return err
		case info == nil:
		case info.IsDir():
			if f.skip == nil || !os.SameFile(info, f.skip) {
				folders = append(folders, e.Name())
			}
		case info.Mode().IsRegular() && f.selected(e.Name(), below):
			files = append(files, full)
		}
	}
	traces := tracefile.DistinctTraces(f.formats, files, f.from)
	if len(traces) == 1 && len(files) > 1 && len(files) == visible { // the folder names the trace
		f.add(name, relative == "")
	} else {
		for _, trace := range traces {
			f.add(trace, false)
		}
	}
	for _, folder := range folders {
		if err := f.folder(filepath.Join(name, folder), path.Join(relative, folder)); err != nil {
			return err
		}
	}
	return nil
}

// target returns what an entry of a folder is, nil for a link that is not followed.
func (f *finder) target(full string, e fs.DirEntry) (fs.FileInfo, error) {
	if e.Type()&fs.ModeSymlink == 0 {
		return e.Info()
	}
	resolved, err := filepath.EvalSymlinks(full)
	if err != nil {
		return nil, nil // a dangling link
	}
	inside := slices.ContainsFunc(f.roots, func(root string) bool {
		below, err := filepath.Rel(root, resolved)
		return err == nil && filepath.IsLocal(below)
	})
	info, err := os.Stat(full)
	if err != nil || info.IsDir() || !inside {
		return nil, nil
	}
	return info, nil
}

// selected reports whether the patterns select a file.
func (f *finder) selected(base, relative string) bool {
	matches := func(pattern string) bool {
		atBase, _ := path.Match(pattern, base)
		whole, _ := path.Match(pattern, relative)
		return atBase || whole
	}
	return (len(f.include) == 0 || slices.ContainsFunc(f.include, matches)) &&
		!slices.ContainsFunc(f.exclude, matches)
}

// distinct returns the inputs in the order of their paths, without the files of a trace whose file of rank 0 is among
// them.
func (f *finder) distinct() []Input {
	names := make([]string, len(f.found))
	for i, in := range f.found {
		names[i] = in.Path
	}
	keep := make(map[string]bool)
	for _, name := range tracefile.DistinctTraces(f.formats, names, f.from) {
		keep[name] = true
	}
	inputs := slices.DeleteFunc(f.found, func(in Input) bool { return !keep[in.Path] })
	slices.SortStableFunc(inputs, func(a, b Input) int { return strings.Compare(a.Path, b.Path) })
	return inputs
}

// baseName returns the name of an input without the endings of formats and compression, and without the rank of a file
// of rank 0.
func baseName(formats format.List, input string) string {
	absolute, err := filepath.Abs(input)
	if err != nil {
		absolute = input
	}
	base := filepath.Base(absolute)
	if info, err := os.Stat(input); err == nil && info.IsDir() {
		return base
	}
	return tracefile.BaseName(formats, base)
}
