// This file opens inputs and creates outputs for a program.

package cli

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"

	"github.com/spf13/pflag"

	"github.com/tracedag/tracedag/formats/tracefile"
)

// Input is an open input file or pipe, decompressed.
type Input = tracefile.Input

// Output is an output file or standard output. Commit gives a file its name; an existing file is unchanged until then.
type Output = tracefile.Output

// RankZero is the part of the name of rank 0's file between the name of the trace and the ending.
const RankZero = tracefile.RankZero

// Open opens the named input, "-" for standard input. Input.Digest requires digest to be set.
func (p *Program) Open(name string, digest bool) (*Input, error) {
	p.limits().Use(name)
	return tracefile.OpenInput(name, tracefile.Options{Stdin: p.Stdin, Digest: digest, Context: p.Context()})
}

// ReadFile reads the named input, "-" for standard input, up to a byte more than limit: its parser refuses that.
func (p *Program) ReadFile(name string, limit int64) ([]byte, error) {
	in, err := p.Open(name, false)
	if err != nil {
		return nil, err
	}
	defer in.Close()
	return io.ReadAll(io.LimitReader(in.Reader, limit+1))
}

// TotalSize returns the stored (compressed) size of the inputs in bytes, -1 if it is unknown.
func (p *Program) TotalSize(names []string) int64 {
	return tracefile.TotalSize(names, p.Stdin)
}

// DistinctTraces returns one input per trace: it omits the files of other ranks if the inputs contain the file of rank
// 0. The format is from, or if that is empty the one that the names of the inputs suggest.
func (p *Program) DistinctTraces(names []string, from string) []string {
	return tracefile.DistinctTraces(p.Formats, names, from)
}

// InputNames returns the inputs that the arguments name. Without arguments it returns standard input, or an error if
// that is a terminal.
func (p *Program) InputNames(args []string) ([]string, error) {
	if len(args) == 0 {
		if IsTerminal(p.Stdin) {
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

// Create opens the output at path, "" or "-" for standard output. It returns an error for binary data on a terminal.
// The caller must call Close, and after success Commit before it.
func (p *Program) Create(path string, binary bool) (*Output, error) {
	if !isStdout(path) {
		return p.outputs.Create(path)
	}
	if err := p.CheckOutput(path, binary); err != nil {
		return nil, err
	}
	return tracefile.Stdout(p.output), nil
}

// WriteOutput writes the text that print prints to the output at path, "" or "-" for standard output.
func (p *Program) WriteOutput(path string, print func(io.Writer) error) error {
	out, err := p.Create(path, false)
	if err != nil {
		return err
	}
	defer out.Close()
	if err := print(out); err != nil {
		return out.Failed(err)
	}
	return out.Commit()
}

// CheckOutput returns the errors of Create that need no file, so that they precede long work.
func (p *Program) CheckOutput(path string, binary bool) error {
	if !isStdout(path) {
		return tracefile.CheckOutput(path)
	}
	if binary && IsTerminal(p.Stdout) {
		return Usagef("not writing binary data to a terminal: name a file with -o, or pipe it to another program")
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

// Outputs returns the name.
func (o *outputName) Outputs() []string { return []string{string(*o)} }

// namesOutputs is implemented by values of flags that name outputs.
type namesOutputs interface{ Outputs() []string }

// checkOutputs returns an error if two flags name one output, of which one would be lost, or if a flag other than
// --output, which may convert a trace in place, names a file that the program reads.
func checkOutputs(flags *pflag.FlagSet, args []string) (err error) {
	inputs := map[string]string{} // what names an input, by clean name
	for _, name := range args {
		inputs[filepath.Clean(name)] = "an input"
	}
	flags.Visit(func(f *pflag.Flag) {
		if _, writes := f.Value.(namesOutputs); !writes || isInput(f.Value) {
			for _, text := range FlagTexts(f) {
				inputs[filepath.Clean(text)] = "a file of --" + f.Name
			}
		}
	})
	outputs := map[string]string{} // flags by clean name
	flags.Visit(func(f *pflag.Flag) {
		value, writes := f.Value.(namesOutputs)
		if !writes || err != nil {
			return
		}
		for _, name := range value.Outputs() {
			clean := filepath.Clean(name)
			info, missing := os.Stat(name)
			switch first, again := outputs[clean]; {
			case !isStdout(name) && missing == nil && !info.Mode().IsRegular(): // such as /dev/null, or a folder
			case again && isStdout(name):
				err = Usagef("--%s and --%s both write to standard output; name a file", first, f.Name)
			case again:
				err = Usagef("--%s and --%s name the same file, %s", first, f.Name, name)
			case missing == nil && f.Name != "output" && inputs[clean] != "":
				err = Usagef("--%s would replace %s, which is %s; name another file", f.Name, name, inputs[clean])
			}
			outputs[clean] = f.Name
		}
	})
	return err
}

// KeepStdout returns an error if a flag names standard output as its file, to which the command prints the named text.
func KeepStdout(flags *pflag.FlagSet, text string) (err error) {
	flags.Visit(func(f *pflag.Flag) {
		if value, writes := f.Value.(namesOutputs); writes && slices.ContainsFunc(value.Outputs(), isStdout) {
			err = Usagef("--%s and %s both write to standard output; name a file", f.Name, text)
		}
	})
	return err
}

// isInput reports whether the value of a flag of an owner names no output.
func isInput(value pflag.Value) bool {
	c, ok := value.(*collected)
	return ok && !c.write
}

// RegisterSync adds the flag that leaves outputs in memory to the command. In a part of another program the flag has no
// effect: the other program decides about the files of both, and parts run concurrently.
func (p *Program) RegisterSync(flags *pflag.FlagSet) {
	noSync := &p.outputs.NoSync
	if p.part {
		noSync = new(*noSync)
	}
	flags.BoolVar(noSync, "no-sync", *noSync, "do not flush outputs to the disk (faster)")
}

// NoSync reports whether outputs need not be flushed to the disk.
func (p *Program) NoSync() bool { return p.outputs.NoSync }

// OnStop makes signals that end the process call a function before, which replaces an earlier one; nil: none. The
// function must not use outputs of the program.
func (p *Program) OnStop(do func()) { p.outputs.OnStop(do) }

// OutputVar adds a flag that names an output file to the command. An empty name is an error of usage.
func OutputVar(flags *pflag.FlagSet, at *string, name, usage string) {
	flags.Var((*outputName)(at), name, usage)
}

func isStdout(path string) bool {
	return path == "" || path == "-"
}
