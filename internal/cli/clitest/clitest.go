// Package clitest runs the programs in tests: in the process of the test, or as child processes.
package clitest

import (
	"bytes"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/spf13/cobra"

	"github.com/tracedag/tracedag/formats"
	"github.com/tracedag/tracedag/internal/cli"
)

// Version is the version of the programs that Session runs.
const Version = "test"

// Session is the environment of a program. The zero value has empty input and no terminals.
type Session struct {
	Stdin    io.Reader
	Formats  formats.List // nil: all
	Terminal string       // which streams are terminals, such as "stdin stdout stderr"
	Stdout   io.Writer    // instead of Result.Stdout
}

// Result is the exit status and the output of a program.
type Result struct {
	Status         int
	Stdout, Stderr string
}

// Run runs the program in this process.
func (s Session) Run(newCommand func(*cli.Program) *cobra.Command, args ...string) Result {
	is := func(stream string) bool { return strings.Contains(s.Terminal, stream) }
	if s.Stdin == nil {
		s.Stdin = strings.NewReader("")
	}
	if s.Formats == nil {
		s.Formats = formats.All
	}
	var stdout, stderr buffer
	if s.Stdout == nil {
		s.Stdout = &stdout
	}
	p := &cli.Program{
		Args:    append([]string{"/somewhere/program"}, args...),
		Stdin:   reader{s.Stdin, is("stdin")},
		Stdout:  writer{s.Stdout, is("stdout")},
		Stderr:  writer{&stderr, is("stderr")},
		Formats: s.Formats,
		Version: Version,
	}
	status := p.Run(newCommand)
	return Result{status, stdout.String(), stderr.String()}
}

// Run runs the program in this process, with empty input and no terminals.
func Run(newCommand func(*cli.Program) *cobra.Command, args ...string) Result {
	return Session{}.Run(newCommand, args...)
}

// Main runs the tests of a package. In a process that is started by the name of one of the programs, as from the folder
// of Link, it runs that program instead. It does not return; TestMain calls it.
func Main(m *testing.M, programs map[string]func() int) {
	if run := programs[filepath.Base(os.Args[0])]; run != nil {
		os.Exit(run())
	}
	os.Exit(m.Run())
}

// Link returns a folder with the named programs, which are the test binary: its TestMain calls Main.
func Link(t testing.TB, names ...string) string {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	folder := t.TempDir()
	for _, name := range names {
		if err := os.Symlink(self, filepath.Join(folder, name)); err != nil {
			t.Fatal(err)
		}
	}
	return folder
}

// Stderr returns the current content of the program's stderr.
func Stderr(p *cli.Program) string {
	return p.Stderr.(writer).Writer.(*buffer).String()
}

type reader struct {
	io.Reader
	terminal bool
}

func (r reader) IsTerminal() bool { return r.terminal }

type writer struct {
	io.Writer
	terminal bool
}

func (w writer) IsTerminal() bool { return w.terminal }

// buffer is a bytes.Buffer for concurrent use.
type buffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (b *buffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.Write(p)
}

func (b *buffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.String()
}
