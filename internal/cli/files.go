// This file opens inputs and creates outputs for a program.

package cli

import (
	"errors"

	"github.com/spf13/pflag"

	"github.com/tracedag/tracedag/formats/tracefile"
)

// Input is an open input file or pipe, decompressed.
type Input = tracefile.Input

// Output is an output file or standard output. A file has its name only after Commit: until then it does not exist, or
// is the one that was there before.
type Output = tracefile.Output

// RankZero stands in the name of the file of rank 0 between that of the trace and the ending.
const RankZero = tracefile.RankZero

// Open opens the input called name, "-" for standard input. Input.Digest may be called if digest is set.
func (p *Program) Open(name string, digest bool) (*Input, error) {
	return tracefile.OpenInput(name, tracefile.Options{Stdin: p.Stdin, Digest: digest})
}

// TotalSize returns the size of the inputs in bytes, as stored, -1 if it is not known.
func (p *Program) TotalSize(names []string) int64 {
	return tracefile.TotalSize(names, p.Stdin)
}

// DistinctTraces returns the inputs without those that are files of a trace whose file of rank 0 is among them, too, in
// the format called from, or if that is empty as their names tell.
func (p *Program) DistinctTraces(names []string, from string) []string {
	return tracefile.DistinctTraces(p.Formats, names, from)
}

// InputNames returns the inputs that the arguments name: standard input if there are none, which then must not be a
// terminal.
func (p *Program) InputNames(args []string) ([]string, error) {
	if len(args) == 0 {
		if isTerminal(p.Stdin) {
			return nil, Usagef("no input: name a file, or pipe a trace into %s", p.name)
		}
		return []string{"-"}, nil
	}
	stdins := 0
	for _, name := range args {
		if name == "-" {
			stdins++
		}
		if name == "" {
			return nil, Usagef("an input has an empty name")
		}
	}
	if stdins > 1 {
		return nil, Usagef("standard input (-) can be read only once")
	}
	return args, nil
}

// Create begins the output called path, "" or "-" for standard output, which must not be a terminal if binary is set.
// The caller must call Close, and Commit before that if all went well.
func (p *Program) Create(path string, binary bool) (*Output, error) {
	if !isStdout(path) {
		return p.outputs.Create(path)
	}
	if err := p.CheckOutput(path, binary); err != nil {
		return nil, err
	}
	return tracefile.Stdout(p.stdout), nil
}

// CheckOutput returns the error that Create would return if it is known without creating anything, so that it precedes
// long work.
func (p *Program) CheckOutput(path string, binary bool) error {
	if !isStdout(path) {
		return tracefile.CheckOutput(path)
	}
	if binary && isTerminal(p.Stdout) {
		return Usagef("not writing binary data to a terminal: name a file with -o, or pipe it on")
	}
	return nil
}

// outputName is the value of a flag that names an output. An empty name is an error, as a script with an unset variable
// gives it.
type outputName string

func (o *outputName) Set(name string) error {
	if name == "" {
		return errors.New(`expected a file name, or "-" for standard output, found an empty name`)
	}
	*o = outputName(name)
	return nil
}

func (o *outputName) String() string { return string(*o) }
func (o *outputName) Type() string   { return "string" }

// OutputVar adds a flag that names an output file to the command. An empty name is an error of usage.
func OutputVar(flags *pflag.FlagSet, at *string, name, usage string) {
	flags.Var((*outputName)(at), name, usage)
}

func isStdout(path string) bool {
	return path == "" || path == "-"
}
