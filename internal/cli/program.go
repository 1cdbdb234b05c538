// Package cli connects the flags of the programs with the library: flags for traces, progress, messages, errors, exit
// statuses, provenance. Package formats/tracefile reads and writes the files. docs/reference/cli.md documents the
// behavior.
//
// A program is a function that makes its cobra command for a [Program], and a main that calls [Main] with it:
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
)

// Exit statuses. A program that a signal stops has 128 plus the signal's number.
const (
	ExitOK     = 0
	ExitFailed = 1 // bad input, or something that could not be done
	ExitUsage  = 2 // bad usage
	ExitLoss   = 3 // --strict, and the output format cannot hold all of the trace

	exitClosedPipe = 128 + 13 // SIGPIPE: nobody reads the output any more
)

// Program is one run of a program: its arguments and streams, and what the common flags ask for. Its methods may be
// used by several goroutines, except Run.
type Program struct {
	Args           []string // os.Args: the program's path first
	Stdin          io.Reader
	Stdout, Stderr io.Writer
	Formats        format.List
	Version        string

	Quiet   bool // -q: nothing on stderr but errors
	Verbose bool // -v: what is being done, too

	name   string // of the root command
	stdout *stdout
	ran    bool // whether the arguments were good and a command began its work

	helpErr error // of printing help

	messages sync.Mutex // guards Stderr and bar
	bar      *progressbar.ProgressBar

	showing atomic.Bool // whether a Progress runs

	outputs tracefile.Outputs
}

// Main runs the program that newCommand makes on the arguments and streams of the process, with the formats that it
// supports, and returns the exit status.
// On SIGINT, SIGTERM or SIGHUP it removes unfinished outputs and exits.
func Main(newCommand func(*Program) *cobra.Command, formats format.List) int {
	return MainOf(os.Args, newCommand, formats)
}

// MainOf is [Main] with other arguments, the program's path first.
func MainOf(args []string, newCommand func(*Program) *cobra.Command, formats format.List) int {
	p := &Program{
		Args: args, Stdin: os.Stdin, Stdout: processStdout(), Stderr: os.Stderr,
		Formats: formats, Version: buildVersion(),
	}
	p.handleSignals()
	return p.Run(newCommand)
}

// Run runs the program that newCommand makes and returns the exit status. It leaves no unfinished outputs.
func (p *Program) Run(newCommand func(*Program) *cobra.Command) int {
	defer p.outputs.RemoveAll()
	p.stdout = &stdout{w: p.Stdout}
	return p.Try(func() error {
		root := newCommand(p)
		p.name = root.Name()
		p.setUp(root)
		err := root.Execute()
		switch {
		case p.stdout.err != nil:
			return p.stdout.err
		case err != nil && !p.ran:
			return &usageError{message: err.Error()}
		case err == nil:
			return p.helpErr
		}
		return err
	})
}

// Try calls work, which may be one of several pieces of work, tells the user if it fails, and returns the exit status
// for that. A panic is a failure.
func (p *Program) Try(work func() error) (status int) {
	defer func() {
		if r := recover(); r != nil {
			p.reportPanic(r, debug.Stack())
			status = ExitFailed
		}
	}()
	if err := work(); err != nil {
		return p.report(err)
	}
	return ExitOK
}

// report says what is wrong and returns the exit status for it.
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
			p.print(line)
		}
		return status
	case errors.As(err, &option) && option.Option == "output":
		return p.reportUsage("-o" + strings.TrimPrefix(option.Error(), option.Option))
	case errors.As(err, &option):
		return p.reportUsage("--" + option.Error())
	case errors.As(err, &loss):
		p.say("%s", message(err))
		return ExitLoss
	}
	var syntax *format.SyntaxError
	if errors.As(err, &syntax) && strings.HasPrefix(err.Error(), syntax.File) {
		p.print(err.Error()) // as compilers do, so that editors find the place
		return ExitFailed
	}
	var wrong *conf.Error
	if errors.As(err, &wrong) && strings.HasPrefix(err.Error(), wrong.File) {
		p.print(err.Error())
		return ExitFailed
	}
	p.say("%s", message(err))
	return ExitFailed
}

func (p *Program) reportUsage(message string) int {
	p.say("%s (see '%s --help')", message, p.name)
	return ExitUsage
}

func (p *Program) reportPanic(r any, stack []byte) {
	p.say("internal error: %v; please report it, with the output of -v", r)
	if p.Verbose {
		p.messages.Lock()
		defer p.messages.Unlock()
		p.Stderr.Write(stack)
	}
}

// Error tells the user of a failure that does not end the program at once.
func (p *Program) Error(format string, args ...any) {
	p.say(format, args...)
}

// Warn tells the user something that may make the result other than expected. It takes what fmt.Printf does.
func (p *Program) Warn(format string, args ...any) {
	if !p.Quiet {
		p.say("warning: "+format, args...)
	}
}

// Info tells the user something that needs no action, such as what was lost.
func (p *Program) Info(format string, args ...any) {
	if !p.Quiet {
		p.say(format, args...)
	}
}

// Explain tells the user what the program is doing, if asked to with -v.
func (p *Program) Explain(format string, args ...any) {
	if p.Verbose && !p.Quiet {
		p.say(format, args...)
	}
}

// say prints one line on stderr, after the program's name.
func (p *Program) say(format string, args ...any) {
	name := p.name
	if name == "" {
		name = filepath.Base(p.Args[0])
	}
	p.print(name + ": " + fmt.Sprintf(format, args...))
}

// print prints one line on stderr, above a progress bar.
func (p *Program) print(text string) {
	line := printable(text) + "\n"
	p.messages.Lock()
	defer p.messages.Unlock()
	if p.bar != nil {
		p.bar.Clear()
	}
	io.WriteString(p.Stderr, line)
}

// printable makes s one line without control characters, which an input could use to confuse a terminal.
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

// message is what to print for err: system errors as "FILE: what", without the system call.
func message(err error) string {
	var path *fs.PathError
	if errors.As(err, &path) && err == error(path) {
		return path.Path + ": " + path.Err.Error()
	}
	return err.Error()
}

// usageError is an error of flags or arguments. Choices are the lines that list possible arguments.
type usageError struct {
	message string
	choices []string
}

func (e *usageError) Error() string { return e.message }

// Usagef returns an error that ends the program with ExitUsage.
func Usagef(format string, args ...any) error {
	return &usageError{message: fmt.Sprintf(format, args...)}
}

// MissingName returns an error of usage about a missing argument. The program prints the lines, which list the
// possible arguments, below the message.
func MissingName(message string, choices []string) error {
	return &usageError{message, choices}
}

type reportedError int

func (e reportedError) Error() string { return fmt.Sprintf("exit status %d", int(e)) }

// Reported returns an error that ends the program with the given exit status and no message, for what the output has
// said already.
func Reported(status int) error {
	return reportedError(status)
}

// stdout is standard output. It keeps its first error.
type stdout struct {
	w   io.Writer
	err error
}

func (s *stdout) Write(b []byte) (int, error) {
	if s.err != nil {
		return 0, s.err
	}
	n, err := s.w.Write(b)
	if err != nil {
		s.err = fmt.Errorf("writing standard output: %w", format.Cause(err))
	}
	return n, s.err
}

// isTerminal reports whether stream is a terminal. Streams other than files may have a method that says so.
func isTerminal(stream any) bool {
	switch s := stream.(type) {
	case interface{ IsTerminal() bool }:
		return s.IsTerminal()
	case *os.File:
		return s != nil && term.IsTerminal(int(s.Fd()))
	}
	return false
}
