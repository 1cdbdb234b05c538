//go:build linux || darwin

package tracefile

import (
	"io"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/tracedag/tracedag/dag"
	"github.com/tracedag/tracedag/formats/format"
)

// streamed is a source for a conversion that calls a function in its first pass.
type streamed struct {
	dag.Source
	first func()
}

func (s *streamed) Header() (*dag.Header, error) {
	s.first()
	return s.Source.Header()
}

func (s *streamed) Once(func(ranks, first int, next []*dag.Rank) error) error {
	s.first()
	return nil
}

func (s *streamed) Disagreement() (string, error) { return "", nil }

// TestStreamToPipe checks that a named pipe is opened once, after the first pass: a program that reads it sees the end
// of the file when it is closed. An output that is opened before blocks, because the pipe has no reader yet.
func TestStreamToPipe(t *testing.T) {
	path := filepath.Join(t.TempDir(), "x.stream")
	if err := syscall.Mkfifo(path, 0o600); err != nil {
		t.Skip(err)
	}
	streams := format.Format{
		Name: "stream", Extensions: []string{".stream"},
		Write: texts.Write,
		WriteSource: func(w io.Writer, _ dag.Source, o format.WriteOptions) error {
			_, err := io.WriteString(w, "two passes")
			return err
		},
		WriteOnce: func(w io.Writer, s format.Stream, o format.WriteOptions) (int64, error) {
			t.Error("written in one pass")
			return 0, s.Once(nil)
		},
	}
	received := make(chan string, 1)
	trace := dag.FromTrace(dag.NewBuilder(1).Trace())
	s := &streamed{Source: trace, first: func() {
		go func() {
			content, err := os.ReadFile(path)
			if err != nil {
				t.Error(err)
			}
			received <- string(content)
		}()
	}}
	read := func() (dag.Source, error) { return trace, nil }
	done, err := WriteStream(format.List{streams}, path, s, read, WriteOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if got := <-received; got != "two passes" || done.Bytes != int64(len(got)) {
		t.Errorf("the pipe received %q, wrote %d bytes", got, done.Bytes)
	}
}
