package spool

import (
	"context"
	"errors"
	"io"
	"os"
	"runtime"
	"strings"
	"testing"

	"github.com/tracedag/tracedag/formats/format"
	"github.com/tracedag/tracedag/memory"
)

// endless is an input of zeros after a head. It counts the bytes read.
type endless struct {
	head string
	read int64
}

func (e *endless) Read(b []byte) (int, error) {
	clear(b)
	if e.read < int64(len(e.head)) {
		b = b[:copy(b, e.head[e.read:])]
	}
	e.read += int64(len(b))
	return len(b), nil
}

func TestCopy(t *testing.T) {
	const limit = 3 << 20
	t.Setenv("TMPDIR", t.TempDir())
	ctx := memory.WithLimit(context.Background(), limit)
	for _, c := range []struct {
		name  string
		in    io.Reader
		bytes int64
		want  string // error
	}{
		{"whole", strings.NewReader("MAGIC and more"), 14, ""},
		{"magic only", strings.NewReader("MAGIC"), 5, ""},
		{"at the limit", io.LimitReader(&endless{head: "MAGIC"}, limit), limit, ""},
		{"above", io.LimitReader(&endless{head: "MAGIC"}, limit+1), limit + 1,
			"x: copying to a temporary file: temporary files of more bytes need more memory than the limit of 3MiB; " +
				"set a higher limit with --max-memory, or name an uncompressed file"},
		{"endless", &endless{head: "MAGIC"}, limit + 1<<16, "x: copying to a temporary file: temporary files"},
		{"zeros", &endless{}, 5, `x: offset 0: expected "MAGIC", found "\x00\x00\x00\x00\x00"`},
		{"short", strings.NewReader("MAG"), 3, ""},
		{"short zeros", strings.NewReader("\x00"), 1, `x: offset 0: expected "MAGIC", found "\x00"`},
		{"empty", strings.NewReader(""), 0, ""},
		{"broken", &failing{}, 0, "x: reading: broken"},
	} {
		counted := &counter{r: c.in}
		f, err := Copy(ctx, &format.Input{Name: "x", Reader: counted}, "spool-*", "MAGIC", c.name != "whole")
		switch {
		case (err != nil) != (c.want != "") || err != nil && !strings.HasPrefix(err.Error(), c.want):
			t.Errorf("%s: %v, want %q", c.name, err, c.want)
		case counted.read > c.bytes:
			t.Errorf("%s: read %d bytes, want at most %d", c.name, counted.read, c.bytes)
		}
		if f == nil {
			continue
		}
		if info, err := f.Stat(); err != nil || f.Size != c.bytes || info.Size() != c.bytes {
			t.Errorf("%s: %d bytes, %v", c.name, f.Size, err)
		}
		if err := f.Close(); err != nil {
			t.Errorf("%s: %v", c.name, err)
		}
	}
	if left, _ := os.ReadDir(os.Getenv("TMPDIR")); len(left) > 0 {
		t.Errorf("files remain: %v", left)
	}
}

type counter struct {
	r    io.Reader
	read int64
}

func (c *counter) Read(b []byte) (int, error) {
	n, err := c.r.Read(b)
	c.read += int64(n)
	return n, err
}

type failing struct{}

func (*failing) Read([]byte) (int, error) { return 0, errors.New("broken") }

// TestCopyUnnamed checks that a file without a name is in no folder while its content is copied, so that none remains if
// the process is killed then.
func TestCopyUnnamed(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("the system removes no open files")
	}
	folder := t.TempDir()
	t.Setenv("TMPDIR", folder)
	for _, named := range []bool{false, true} {
		seen := 0
		look := &watcher{Reader: io.LimitReader(&endless{head: "MAGIC"}, 1<<20), do: func() {
			files, err := os.ReadDir(folder)
			if err != nil {
				t.Fatal(err)
			}
			seen = max(seen, len(files))
		}}
		f, err := Copy(context.Background(), &format.Input{Name: "x", Reader: look}, "spool-*", "MAGIC", named)
		if err != nil {
			t.Fatal(err)
		}
		if named != (seen == 1) {
			t.Errorf("named %v: %d files during copying", named, seen)
		}
		if b := make([]byte, 5); f.Size != 1<<20 {
			t.Errorf("named %v: %d bytes", named, f.Size)
		} else if _, err := f.ReadAt(b, 0); err != nil || string(b) != "MAGIC" {
			t.Errorf("named %v: %q, %v", named, b, err)
		}
		if err := f.Close(); err != nil {
			t.Error(err)
		}
	}
}

// watcher calls a function at each read.
type watcher struct {
	io.Reader
	do func()
}

func (w *watcher) Read(b []byte) (int, error) {
	w.do()
	return w.Reader.Read(b)
}
