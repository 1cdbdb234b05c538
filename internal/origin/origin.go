// Package origin makes the entries of provenance that programs write into traces. An entry depends on the trace alone:
// it has the program, the version, the seed, the flags that shape the trace and the trace's own inputs, and neither
// folders nor outputs nor other inputs of the same command. docs/reference/store.md specifies it.
package origin

import (
	"crypto/sha256"
	"encoding/hex"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/spf13/pflag"

	"github.com/tracedag/tracedag/dag"
)

// aside is the annotation of flags that do not shape a trace.
const aside = "origin-aside"

// Mark records whether a flag shapes the traces that a program writes. Flags without a mark do.
func Mark(f *pflag.Flag, shapes bool) {
	if shapes {
		delete(f.Annotations, aside)
		return
	}
	if f.Annotations == nil {
		f.Annotations = map[string][]string{}
	}
	f.Annotations[aside] = []string{"yes"}
}

// Shapes reports whether a flag shapes the traces that a program writes.
func Shapes(f *pflag.Flag) bool { return f.Annotations[aside] == nil }

// Command is the command line of an entry.
type Command struct {
	Program string
	Words   []string // arguments before the flags, such as the name of a generator
	Flags   *pflag.FlagSet
	Foreign func(*pflag.Flag) bool // whether a flag concerns other traces only; nil: none does
	Inputs  []string               // arguments after the flags
	Paths   bool                   // keep paths as given
}

// Line returns the command line: the words, the flags that the user set and that shape the trace, in the order of
// their names, and the inputs. Values that are paths keep their base name.
func (c *Command) Line() []string {
	var set []flag
	c.Flags.VisitAll(func(f *pflag.Flag) {
		if !f.Changed || !Shapes(f) || c.Foreign != nil && c.Foreign(f) {
			return
		}
		for _, text := range texts(f) {
			word := flag{name: f.Name, value: text, bare: f.NoOptDefVal != "" && text == f.NoOptDefVal}
			word.joined = f.NoOptDefVal != ""
			word.file = isFile(f)
			set = append(set, word)
		}
	})
	return line(c.Program, c.Words, set, c.Inputs, c.Paths)
}

// flag is a flag of a command line.
type flag struct {
	name, value string
	bare        bool // without value
	joined      bool // its value follows "="
	file        bool // its value is the name of a file
}

// line returns a command line in its normal form.
func line(program string, words []string, flags []flag, inputs []string, paths bool) []string {
	shortened := func(text string) string {
		if paths {
			return text
		}
		return shorten(text)
	}
	all := []string{program}
	for _, word := range words {
		all = append(all, argument(shortened(word)))
	}
	slices.SortStableFunc(flags, func(a, b flag) int { return strings.Compare(a.name, b.name) })
	for _, f := range flags {
		value := f.value
		switch {
		case paths || f.name == title:
		case f.file:
			value = base(value)
		default:
			value = shorten(value)
		}
		switch name := "--" + f.name; {
		case f.bare:
			all = append(all, name)
		case f.joined:
			all = append(all, name+"="+value)
		default:
			all = append(all, name, value)
		}
	}
	for _, name := range inputs {
		all = append(all, argument(name))
	}
	return all
}

// argument returns an argument that is no flag.
func argument(name string) string {
	if len(name) > 1 && name[0] == '-' {
		return "./" + name
	}
	return name
}

// title is the flag whose value is any text.
const title = "title"

// texts returns the values of a flag, one for each time that the command line sets it.
func texts(f *pflag.Flag) []string {
	switch v := f.Value.(type) {
	case interface{ Texts() []string }:
		return v.Texts()
	case pflag.SliceValue:
		return v.GetSlice()
	}
	return []string{f.Value.String()}
}

// isFile reports whether the value of a flag is the name of a file.
func isFile(f *pflag.Flag) bool {
	name, _ := pflag.UnquoteUsage(f)
	return strings.EqualFold(name, "file")
}

// Names returns the files of one trace by the names of an entry: the base name of a file, preceded by that of its
// folder if the trace has several files in it. The files are in the order of their names, in which numbers ascend.
func Names(inputs []dag.Input) []dag.Input {
	named := names(inputs, folder)
	slices.SortStableFunc(named, func(a, b dag.Input) int { return natural(a.Name, b.Name) })
	return named
}

// names returns the inputs by the names of an entry. folder returns the folder of a file.
func names(inputs []dag.Input, folder func(name string) string) []dag.Input {
	beside := make(map[string]int)
	for _, in := range inputs {
		beside[folder(in.Name)]++
	}
	named := slices.Clone(inputs)
	for i := range named {
		in := &named[i]
		at := folder(in.Name)
		if in.Name = base(in.Name); beside[at] > 1 && base(at) != "" {
			in.Name = base(at) + "/" + in.Name
		}
	}
	return named
}

// Digest returns the digest of the files of a trace: that of the only one, or the SHA-256 of the digests of several in
// hexadecimal, each followed by a line feed.
func Digest(inputs []dag.Input) string {
	if len(inputs) == 1 {
		return inputs[0].SHA256
	}
	sum := sha256.New()
	for _, in := range inputs {
		sum.Write([]byte(in.SHA256 + "\n"))
	}
	return hex.EncodeToString(sum.Sum(nil))
}

// WithDigest returns the value of an option. If it names a regular file, as NAME or file:NAME, then @sha256: and the
// digest of the file in hexadecimal follow. A file that cannot be read has no digest.
func WithDigest(text string) string {
	name := strings.TrimPrefix(text, "file:")
	// A named pipe must not be opened: its content is read once.
	if info, err := os.Stat(name); err != nil || !info.Mode().IsRegular() {
		return text
	}
	f, err := os.Open(name)
	if err != nil {
		return text
	}
	defer f.Close()
	sum := sha256.New()
	if _, err := io.Copy(sum, f); err != nil {
		return text
	}
	return text + "@sha256:" + hex.EncodeToString(sum.Sum(nil))
}
