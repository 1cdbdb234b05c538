package tracefile

import (
	"context"
	"errors"
	"io"
	"os"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/klauspost/compress/gzip"

	"github.com/tracedag/tracedag/dag"
	"github.com/tracedag/tracedag/formats/format"
)

// texts is a format of texts that begin with "plain", of one rank with an op for each byte.
var texts = format.Format{
	Name: "plain", Extensions: []string{".plain"},
	Detect: func(head []byte) bool { return strings.HasPrefix(string(head), "plain") },
	Read: func(inputs []*format.Input, o format.ReadOptions) (*dag.Trace, error) {
		o.Warn("a warning")
		n, err := io.Copy(io.Discard, inputs[0].Reader)
		b := dag.NewBuilder(1)
		for range n {
			b.Rank(0).Calc(1)
		}
		return b.Trace(), err
	},
	Losses: func(t *dag.Trace) []format.Loss { return []format.Loss{{Kind: "all", Count: t.Ops()}} },
	Write: func(w io.Writer, t *dag.Trace, o format.WriteOptions) error {
		o.Warn("a warning")
		_, err := io.WriteString(w, "plain")
		return err
	},
}

// endless is a reader without end. It calls cancel in one of its calls.
type endless struct {
	calls, last atomic.Int64
	cancel      func()
}

func (e *endless) Read(b []byte) (int, error) {
	switch n := e.calls.Add(1); n {
	case 1:
		return copy(b, "plain"+strings.Repeat("x", format.DetectBytes)), nil // as long as detection needs
	case e.last.Load():
		e.cancel()
	}
	return copy(b, "x"), nil
}

func TestReadingIsCancelled(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	input := &endless{cancel: cancel}
	opened, err := Open(format.List{texts}, []string{"-"}, Options{Context: ctx, From: "plain", Stdin: input})
	if err != nil {
		t.Fatal(err)
	}
	defer opened.Close()
	last := input.calls.Load() + 1000
	input.last.Store(last)
	_, err = opened.Read()
	var file *format.FileError
	if !errors.Is(err, context.Canceled) || !errors.As(err, &file) || file.File != "<stdin>" {
		t.Errorf("error %v", err)
	}
	if late := input.calls.Load() - last; late > 10 {
		t.Errorf("reading goes on for %d calls", late)
	}
	if _, err := Open(format.List{texts}, []string{"-"}, Options{Context: ctx, Stdin: &endless{}}); !errors.Is(err, context.Canceled) {
		t.Errorf("opening with an ended context: %v", err)
	}
}

// Without functions, warnings and progress are discarded.
func TestZeroOptions(t *testing.T) {
	t.Chdir(t.TempDir())
	formats := format.List{texts}
	done, err := Write(formats, "x.plain", dag.NewBuilder(1).Trace(), WriteOptions{})
	if err != nil || done.Format.Name != "plain" || done.Bytes != 5 || done.Files != 1 {
		t.Fatalf("wrote %+v, %v", done, err)
	}
	trace, err := Read(formats, "x.plain", Options{})
	if err != nil || trace.Ops() != 5 {
		t.Fatalf("read %v, %v", trace, err)
	}
	var loss *LossError
	if _, err := Write(formats, "y.plain", trace, WriteOptions{Strict: true}); !errors.As(err, &loss) || loss.Losses[0].Count != 5 {
		t.Errorf("a strict write returns %v", err)
	}
	if files, err := os.ReadDir("."); err != nil || len(files) != 1 {
		t.Errorf("there are the files %v, %v", files, err)
	}
}

// A compression that only external programs read is named with the command that reads it.
func TestForeignCompression(t *testing.T) {
	t.Chdir(t.TempDir())
	for head, command := range map[string]string{
		"\xfd7zXZ\x00\x00\x04": "xz -dc x | traceconv", "BZh91AY&SY\x00": "bzip2 -dc x | traceconv",
	} {
		if err := os.WriteFile("x", []byte(head), 0o666); err != nil {
			t.Fatal(err)
		}
		_, err := Open(format.List{texts}, []string{"x"}, Options{})
		if err == nil || !strings.Contains(err.Error(), command) {
			t.Errorf("%q: error %v, want %s", head, err, command)
		}
		_, err = Open(format.List{texts}, []string{"-"}, Options{Stdin: strings.NewReader(head)})
		if want := strings.Replace(command, " x ", " ", 1); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q in a pipe: error %v, want %s", head, err, want)
		}
	}
	if _, err := Open(format.List{texts}, []string{"-"}, Options{Stdin: strings.NewReader("BZh, not bzip2")}); err == nil ||
		!strings.Contains(err.Error(), "unknown format") {
		t.Errorf("a text that begins like bzip2 data: %v", err)
	}
}

// gzipped returns the text as gzip data.
func gzipped(t *testing.T, text string) string {
	t.Helper()
	var b strings.Builder
	z := gzip.NewWriter(&b)
	if _, err := io.WriteString(z, text); err != nil {
		t.Fatal(err)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// The members of a gzip file and the zeros of a tape are read; compressed data of another kind than the name promises
// is an error.
func TestCompressedFiles(t *testing.T) {
	t.Chdir(t.TempDir())
	member := gzipped(t, "plain")
	const zstdFrame = "\x28\xb5\x2f\xfd\x00\x58\x29\x00\x00plain"
	for _, c := range []struct{ name, content, want string }{
		{"x.gz", member, ""},
		{"x", member + member, ""},
		{"x.gz", member + "\x00\x00\x00", ""},
		{"x.gz", gzipped(t, "") + member, ""},
		{"x.zst", zstdFrame, ""},
		{"x.zst", "\x50\x2a\x4d\x18\x01\x00\x00\x00x" + zstdFrame, ""},
		{"x.gz", member + "\x00\x00x", "x.gz: reading: damaged gzip data: expected the end of the data or more"},
		{"x.gz", member + member[:9], "x.gz: reading: truncated gzip data"},
		{"x.gz", "\x1f\x8b\x09" + member[3:], "x.gz: reading: damaged gzip data"},
		{"x.gz", "plain", "x.gz: reading: expected gzip data, as the name promises, found other data"},
		{"x.GZ", "", "x.GZ: reading: expected gzip data, as the name promises, found an empty file"},
		{"x.zst", member, "x.zst: reading: expected zstd data, as the name promises, found gzip data"},
		{"x.zst", zstdFrame + "\x00", "x.zst: reading: truncated zstd data"},
		{"x.zst", zstdFrame + "plain", "x.zst: reading: damaged zstd data: expected the end of the data or more"},
	} {
		if err := os.WriteFile(c.name, []byte(c.content), 0o666); err != nil {
			t.Fatal(err)
		}
		_, err := Read(format.List{texts}, c.name, Options{})
		if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.HasPrefix(err.Error(), c.want)) {
			t.Errorf("%s with %q: error %v, want %q", c.name, c.content, err, c.want)
		}
	}
}

// stopping is a format whose reader stops after the first byte.
var stopping = format.Format{
	Name: "stopping", Detect: func([]byte) bool { return true },
	Read: func(inputs []*format.Input, o format.ReadOptions) (*dag.Trace, error) {
		for _, in := range append(inputs, o.OpenFile("beside.gz")) {
			if _, err := io.ReadFull(in.Reader, make([]byte, 1)); err != nil {
				return nil, err
			}
		}
		return dag.NewBuilder(1).Trace(), nil
	},
	Files: func(string, []string) ([]string, error) { return nil, &format.MissingError{} },
}

// The rest of compressed files is verified even if the reader stops before.
func TestRestIsVerified(t *testing.T) {
	t.Chdir(t.TempDir())
	good := gzipped(t, strings.Repeat("plain", 1e5))
	bad := good[:len(good)-1] + "\xff"
	names := []string{"first.gz", "second.gz", "beside.gz"}
	for damaged := -1; damaged < len(names); damaged++ {
		for i, name := range names {
			content := good
			if i == damaged {
				content = bad
			}
			if err := os.WriteFile(name, []byte(content), 0o666); err != nil {
				t.Fatal(err)
			}
		}
		opened, err := Open(format.List{stopping}, names[:2], Options{Digest: true})
		if err != nil {
			t.Fatal(err)
		}
		_, err = opened.Read()
		if damaged < 0 {
			inputs, digestErr := opened.Inputs()
			if err != nil || digestErr != nil || len(inputs) != 3 || inputs[0].SHA256 != inputs[2].SHA256 {
				t.Errorf("error %v, %v, inputs %v", err, digestErr, inputs)
			}
		} else if want := names[damaged] + ": reading: damaged gzip data: gzip: invalid checksum"; err == nil || err.Error() != want {
			t.Errorf("error %v, want %s", err, want)
		}
		opened.Close()
	}
}

// A name without an ending, a folder in the path with a point, and a hidden file select the store.
func TestOutputFormat(t *testing.T) {
	t.Chdir(t.TempDir())
	store := format.Format{Name: format.Default, Extensions: []string{".parquet"}, Write: texts.Write}
	formats := format.List{store, texts}
	for path, want := range map[string]string{
		"": "store", "-": "store", "x": "store", "v1.2/x": "store", ".x": "store", "x.": "store", "X.PLAIN": "plain",
	} {
		if f, err := OutputFormat(formats, "", path); err != nil || f.Name != want {
			t.Errorf("%q: %v, %v; want %s", path, f, err, want)
		}
	}
	if f, err := OutputFormat(formats, "plain", "x.foo"); err != nil || f.Name != "plain" {
		t.Errorf("a named format: %v, %v", f, err)
	}
	if err := os.Mkdir("pipe.foo", 0o777); err != nil {
		t.Fatal(err)
	}
	if _, err := OutputFormat(formats, "", "pipe.foo"); err != nil {
		t.Errorf("a path that is no regular file: %v", err)
	}
}

func TestErrorsHaveTypes(t *testing.T) {
	t.Chdir(t.TempDir())
	formats := format.List{texts}
	if err := os.WriteFile("x", []byte("plain"), 0o666); err != nil {
		t.Fatal(err)
	}
	option := func(err error, want string) {
		t.Helper()
		var bad *OptionError
		if !errors.As(err, &bad) || err.Error() != want {
			t.Errorf("error %v, want %s", err, want)
		}
	}
	_, err := Open(formats, []string{"x"}, Options{From: "no"})
	option(err, `from: expected one of plain, found "no"`)
	_, err = Write(formats, "y", new(dag.Trace), WriteOptions{To: "no"})
	option(err, `to: expected one of plain, found "no"`)
	_, err = Write(formats, ".", new(dag.Trace), WriteOptions{To: "plain"})
	option(err, "output: expected an output file, found the directory .")
	_, err = Write(formats, "x.gz", new(dag.Trace), WriteOptions{})
	option(err, `output x.gz: outputs are not compressed; compress it in a pipe, as in "... --to store | gzip > x.gz"`)
	_, err = Write(formats, "x.foo", new(dag.Trace), WriteOptions{})
	option(err, "output x.foo: no format has the ending .foo: expected .plain, or a format named with --to")
	var many *TooManyFilesError
	if _, err = Open(formats, []string{"x", "x"}, Options{}); !errors.As(err, &many) || many.Files != 2 {
		t.Errorf("two files: %v", err)
	}
	if _, err = Open(formats, nil, Options{}); err == nil {
		t.Error("no file is opened")
	}
}
