// Package cli is the command line of the programs: flags for traces, progress, messages, errors, exit statuses and
// provenance. Package formats/tracefile reads and writes the files. docs/reference/cli.md documents the behavior.
//
// A program consists of a function that returns its cobra command, and a main function that calls [Main]:
//
//	func main() { os.Exit(cli.Main(newCommand, formats.All)) }
package cli

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime/debug"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"unicode"

	"github.com/schollz/progressbar/v3"
	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/tracedag/tracedag/formats/format"
	"github.com/tracedag/tracedag/formats/tracefile"
	"github.com/tracedag/tracedag/internal/conf"
	"github.com/tracedag/tracedag/internal/limit"
	"github.com/tracedag/tracedag/internal/stdout"
)

// Exit statuses. After a signal, the status is 128 plus the number of the signal.
const (
	ExitOK     = 0
	ExitFailed = 1 // invalid input, or a failed operation
	ExitUsage  = 2 // invalid flags or arguments
	ExitLoss   = 3 // --strict, and the output format cannot hold all data of the trace

	exitClosedPipe = 128 + 13 // SIGPIPE: the reader of the output is gone
)

// Program is one run of a program: arguments, streams and common flags. Its methods, except Run, may be called
// concurrently.
type Program struct {
	Args           []string // as in os.Args: the program's path first
	Stdin          io.Reader
	Stdout, Stderr io.Writer
	Formats        format.List
	Version        string

	Quiet   bool // -q: print only errors on stderr
	Verbose bool // -v: also report each step on stderr
	Trouble int  // exit status after a failure if ExitFailed has another meaning, as in diff; 0: ExitFailed

	Warned func(message string) // receives each warning, also with -q; nil: discard

	of     *Program // the program with many inputs, one of which this one works on; nil for others
	input  string   // that input
	name   string   // of the root command
	output *output
	ran    bool // the arguments were valid and a command began its work

	helpErr error // error of --help

	messages sync.Mutex // guards Stderr and bar
	bar      *progressbar.ProgressBar

	showing atomic.Bool // a Progress is shown

	outputs       *tracefile.Outputs
	exits         *exits
	memory        limit.Memory
	process       bool // the program may end the process
	recordsOrigin bool // it writes traces with provenance
	recordsPaths  bool // --record-paths

	part bool // it works for another program, whose files these are
}

// Main runs the program of newCommand on the arguments and streams of the process and returns the exit status. On
// SIGINT, SIGTERM or SIGHUP it removes unfinished outputs and exits.
func Main(newCommand func(*Program) *cobra.Command, formats format.List) int {
	return MainOf(os.Args, newCommand, formats)
}

// MainOf is [Main] with other arguments, the program's path first.
func MainOf(args []string, newCommand func(*Program) *cobra.Command, formats format.List) int {
	p := &Program{
		Args: args, Stdin: os.Stdin, Stdout: stdout.Open(), Stderr: os.Stderr,
		Formats: formats, Version: buildVersion(), outputs: new(tracefile.Outputs), exits: new(exits),
	}
	p.handleSignals()
	p.process = true
	return p.Run(newCommand)
}

// Run runs the program of newCommand and returns the exit status. It removes unfinished outputs.
func (p *Program) Run(newCommand func(*Program) *cobra.Command) int {
	if p.outputs == nil {
		p.outputs = new(tracefile.Outputs)
	}
	if p.exits == nil {
		p.exits = new(exits)
	}
	if !p.part {
		defer p.outputs.RemoveAll()
		p.outputs.Info = p.Info
	}
	defer p.memory.Stop()
	p.output = &output{w: p.Stdout}
	return p.Try(func() error {
		root := newCommand(p)
		p.name = root.Name()
		p.setUp(root)
		err := root.Execute()
		switch {
		case p.output.err != nil:
			return p.output.err
		case err != nil && !p.ran:
			return &usageError{message: exclusive(err.Error())}
		case err == nil:
			return p.helpErr
		}
		return err
	})
}

// Part returns a program with other arguments, args[0] first, that works for p: it shares the files and the limit of
// memory, prints nothing but errors, and has warnings of its own. memory is a lower limit in bytes; 0: that of p.
func (p *Program) Part(args []string, memory int64) *Program {
	q := &Program{Args: args, Stdin: p.Stdin, Stdout: io.Discard, Stderr: p.Stderr, Formats: p.Formats,
		Version: p.Version, Quiet: true, name: p.name, outputs: p.outputs, exits: p.exits, part: true}
	q.memory.Join(p.limits(), memory)
	return q
}

// For returns a program that works on one of many inputs for p. Its warnings begin with the name of the input, and
// warned receives them and the messages about losses, also with -q.
func (p *Program) For(input string, warned func(message string)) *Program {
	return &Program{Args: p.Args, Stdin: p.Stdin, Stdout: p.Stdout, Stderr: p.Stderr, Formats: p.Formats,
		Version: p.Version, Quiet: p.Quiet, Verbose: p.Verbose, Trouble: p.Trouble, Warned: warned, of: p, input: input,
		name: p.name, output: p.output, outputs: p.outputs, exits: p.exits, part: true,
		recordsOrigin: p.recordsOrigin, recordsPaths: p.recordsPaths}
}

// limits returns the limit of memory.
func (p *Program) limits() *limit.Memory {
	if p.of != nil {
		return p.of.limits()
	}
	return &p.memory
}

// Try calls work, prints its error and returns the exit status for it. A panic is a failure.
func (p *Program) Try(work func() error) (status int) {
	defer func() {
		if r := recover(); r != nil {
			p.reportPanic(r, debug.Stack())
			status = p.failed()
		}
	}()
	if err := work(); err != nil {
		return p.report(err)
	}
	return ExitOK
}

// report prints an error and returns the exit status for it.
func (p *Program) report(err error) int {
	var usage *usageError
	var reported reportedError
	var option *tracefile.OptionError
	var loss *tracefile.LossError
	switch {
	case errors.As(err, &reported):
		return int(reported)
	case errors.Is(err, syscall.EPIPE):
		return exitClosedPipe
	case errors.As(err, &usage):
		status := p.reportUsage(usage.message)
		for _, line := range usage.choices {
			p.printLine(line)
		}
		return status
	case errors.As(err, &option) && option.Option == "output" && option.Value == "": // of any flag for a file
		return p.reportUsage(option.Err.Error())
	case errors.As(err, &option) && option.Option == "output":
		return p.reportUsage("-o" + strings.TrimPrefix(option.Error(), option.Option))
	case errors.As(err, &option):
		return p.reportUsage("--" + option.Error())
	case errors.As(err, &loss):
		p.printf("%s", message(err))
		return ExitLoss
	}
	var syntax *format.SyntaxError
	var wrong *conf.Error
	var damaged *format.DamagedError
	var file *format.FileError
	if errors.As(err, &syntax) && strings.HasPrefix(err.Error(), syntax.File) ||
		errors.As(err, &wrong) && strings.HasPrefix(err.Error(), wrong.File) ||
		errors.As(err, &damaged) && errors.As(err, &file) && strings.HasPrefix(err.Error(), file.File) {
		p.printLine(err.Error()) // FILE:LINE first, as in compilers: editors find the place
		return p.failed()
	}
	p.printf("%s", message(err))
	return p.failed()
}

// failed returns the exit status after a failure.
func (p *Program) failed() int { return max(ExitFailed, p.Trouble) }

func (p *Program) reportUsage(message string) int {
	p.printf("%s (see '%s --help')", message, p.name)
	return ExitUsage
}

func (p *Program) reportPanic(r any, stack []byte) {
	p.printf("internal error: %v; please report it with the output of -v", r)
	if p.Verbose {
		p.messages.Lock()
		defer p.messages.Unlock()
		p.Stderr.Write(stack)
	}
}

// Error prints an error that does not end the program at once.
func (p *Program) Error(format string, args ...any) {
	p.printf(format, args...)
}

// Warn prints a warning, unless -q is set: the result may differ from the expected one. Its arguments are those of
// fmt.Printf.
func (p *Program) Warn(format string, args ...any) {
	message := fmt.Sprintf(format, args...)
	if p.of != nil && !isAbout(message, p.input) {
		message = p.input + ": " + message
	}
	if p.Warned != nil {
		p.Warned(message)
	}
	if !p.Quiet {
		p.printf("warning: %s", message)
	}
}

// isAbout reports whether a message begins with the name of an input or of one of its files.
func isAbout(message, input string) bool {
	rest, found := strings.CutPrefix(message, input)
	return found && (strings.HasSuffix(input, "/") || strings.IndexAny(rest, ":/.-_0123456789") == 0)
}

// Info prints a message that requires no action, such as a loss, unless -q is set.
func (p *Program) Info(format string, args ...any) {
	if p.of != nil && p.Warned != nil {
		p.Warned(fmt.Sprintf(format, args...))
	}
	if !p.Quiet {
		p.printf(format, args...)
	}
}

// Explain prints a message about the current step, if -v is set.
func (p *Program) Explain(format string, args ...any) {
	if p.Verbose && !p.Quiet {
		p.printf(format, args...)
	}
}

// Relay prints a line that another program wrote to its standard error. Calls may be concurrent.
func (p *Program) Relay(line string) {
	p.printLine(line)
}

// printf prints one line on stderr, prefixed by the program's name.
func (p *Program) printf(format string, args ...any) {
	name := p.name
	if name == "" {
		name = filepath.Base(p.Args[0])
	}
	p.printLine(name + ": " + fmt.Sprintf(format, args...))
}

// printLine prints one line on stderr, above the progress bar.
func (p *Program) printLine(text string) {
	if p.of != nil {
		p.of.printLine(text)
		return
	}
	line := printable(text) + "\n"
	p.messages.Lock()
	defer p.messages.Unlock()
	if p.bar != nil {
		p.bar.Clear()
	}
	io.WriteString(p.Stderr, line)
}

// printable returns s as one line without control characters: an input could use them to control a terminal.
func printable(s string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r == '\n':
			return ';'
		case r == '\t':
			return ' '
		case unicode.IsControl(r):
			return unicode.ReplacementChar
		}
		return r
	}, strings.TrimRight(s, "\n"))
}

// message returns the text of an error: "FILE: REASON" for a system error, without the system call.
func message(err error) string {
	var path *fs.PathError
	if errors.As(err, &path) && err.Error() == path.Error() {
		return path.Path + ": " + path.Err.Error()
	}
	return err.Error()
}

// usageError is an error of flags or arguments. choices are lines that list the possible arguments.
type usageError struct {
	message string
	choices []string
}

func (e *usageError) Error() string { return e.message }

// Usagef returns an error that ends the program with ExitUsage.
func Usagef(format string, args ...any) error {
	return &usageError{message: fmt.Sprintf(format, args...)}
}

// MissingName returns a usage error about a missing argument. The program prints the choices, one per line, below the
// message.
func MissingName(message string, choices []string) error {
	return &usageError{message, choices}
}

// IsUsage reports whether an error ends the program with ExitUsage.
func IsUsage(err error) bool {
	var usage *usageError
	var option *tracefile.OptionError
	return errors.As(err, &usage) || errors.As(err, &option)
}

type reportedError int

func (e reportedError) Error() string { return fmt.Sprintf("exit status %d", int(e)) }

// Reported returns an error that ends the program with an exit status and without a message, for an error that the
// output already reports.
func Reported(status int) error {
	return reportedError(status)
}

// output is standard output. It keeps the first write error and returns it for all later writes.
type output struct {
	w   io.Writer
	err error
}

func (s *output) Write(b []byte) (int, error) {
	if s.err != nil {
		return 0, s.err
	}
	n, err := s.w.Write(b)
	if err != nil {
		s.err = fmt.Errorf("writing standard output: %w", format.Cause(err))
	}
	return n, s.err
}

// IsTerminal reports whether stream is a terminal. Streams other than files may implement IsTerminal.
func IsTerminal(stream any) bool {
	switch s := stream.(type) {
	case interface{ IsTerminal() bool }:
		return s.IsTerminal()
	case *os.File:
		return s != nil && term.IsTerminal(int(s.Fd()))
	}
	return false
}
