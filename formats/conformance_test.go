package formats

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"iter"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"runtime/debug"
	"runtime/metrics"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/tracedag/tracedag/dag"
	"github.com/tracedag/tracedag/formats/format"
)

// The suite that every format runs. Each check is a function of a subject: a format, small samples of it, and the
// exceptions that the format is known to make. A format that is in All and not in subjects runs with the samples that it
// writes itself; one that is only read needs an entry in subjects.

// subject is a format with its samples and properties.
type subject struct {
	format  string
	samples []sample

	detected []string    // formats that the samples may be in; nil: only their own
	unsound  []dag.Class // problems that readers of the format leave to dag.Validate
	claims   []string    // short inputs that claim much

	// Properties that decide how a trace is compared with the one that is read back. The table states the reasons.
	ownAttrs []string // keys of attributes that describe lines of the file; "*": any, in a trace that has been read
	sorted   bool     // files are sorted by time, ops of a rank as the files
	oneSize  bool     // a message has one size, that of its send
	rewrites bool     // dependencies become others, so that columns cannot be compared
}

// sample is a small trace in a format.
type sample struct {
	files []file // nil: the format writes trace
	trace func() *dag.Trace
	limit int  // damaged variants to try at most, of each kind; 0: maxDamaged
	model bool // its numbers choose the size of a generated trace
	loses bool // the format loses some of the trace
}

type file struct{ name, text string }

const (
	maxDamaged = 2000
	maxMemory  = 256 << 20        // bytes that reading an input below 1 MiB may allocate in all
	maxTime    = 60 * time.Second // of one call, on a busy machine
)

func TestConformance(t *testing.T) {
	known := make(map[string]subject)
	for _, s := range subjects() {
		if known[s.format] = s; All.Named(s.format) == nil {
			t.Errorf("the suite tests %q, which is not registered", s.format)
		}
	}
	for i := range All {
		s, listed := known[All[i].Name]
		if !listed {
			s = selfWritten(t, &All[i])
		}
		t.Run(s.format, func(t *testing.T) {
			c := &conformance{T: t, subject: s, format: All.Named(s.format), shown: map[string]bool{}}
			c.checkRegistration()
			c.checkTables()
			for i := range s.samples {
				c.sample(&c.samples[i])
			}
			for _, sample := range c.samples {
				c.checkDetection(sample)
				c.checkRead(sample)
				c.checkOptions(sample)
				c.checkDamage(sample)
				c.checkHuge(sample)
				c.checkRoundTrip(sample)
				c.checkLosses(sample)
			}
			c.checkClaims()
			c.checkNilWarn()
			c.checkFailingWriter()
		})
	}
}

// selfWritten returns a format that is not listed with the sample that it writes of a trace of messages.
func selfWritten(t *testing.T, f *format.Format) subject {
	if f.Write == nil && f.WriteFiles == nil {
		t.Fatalf("%s is only read: give the suite a sample of it", f.Name)
	}
	s := madeOf(exchange)
	s.loses = f.Losses != nil && len(f.Losses(exchange())) > 0
	return subject{format: f.Name, samples: []sample{s}, unsound: schedule}
}

// conformance is the test of one format.
type conformance struct {
	*testing.T
	subject
	format *format.Format
	shown  map[string]bool // kinds of failures
	from   string          // format to read files in; "": detected
	warned bool            // the last reading warned about a file
}

// errorf reports a failure. It shows only the first of several failures that differ in numbers only.
func (c *conformance) errorf(message string, args ...any) {
	c.Helper()
	text := fmt.Sprintf(message, args...)
	kind, _, _ := strings.Cut(text, "\n")
	if kind = numbers.ReplaceAllString(kind, ""); c.shown[kind] {
		c.Fail()
		return
	}
	c.shown[kind] = true
	c.Error(text)
}

// sample writes the files of a sample that is given as a trace.
func (c *conformance) sample(s *sample) {
	if s.files != nil {
		return
	}
	files, err := c.write(s.trace(), format.WriteOptions{})
	if err != nil {
		c.Fatalf("a sample cannot be written: %v", err)
	}
	s.files = files
}

// checkRegistration checks the name, title and endings of a format.
func (c *conformance) checkRegistration() {
	f := c.format
	if !regexp.MustCompile(`^[a-z][a-z0-9]*$`).MatchString(f.Name) {
		c.errorf("the name %q is not lower-case letters and digits", f.Name)
	}
	if f.Title == "" || strings.HasSuffix(f.Title, ".") || strings.ContainsAny(f.Title, "\n\t") {
		c.errorf("the title %q is not one line without a full stop", f.Title)
	}
	for _, ending := range f.Extensions {
		if !regexp.MustCompile(`^\.[a-z0-9-]+$`).MatchString(ending) {
			c.errorf("the ending %q is not a point and lower-case letters", ending)
		}
	}
	written := f.Write != nil || f.WriteFiles != nil
	switch {
	case f.Read == nil && !written:
		c.errorf("neither reads nor writes")
	case f.Write != nil && f.WriteFiles != nil:
		c.errorf("writes both one file and many")
	case written && len(f.Extensions) == 0:
		c.errorf("writes, and has no file name ending")
	case f.Detect == nil:
		c.errorf("cannot be detected")
	case f.Losses != nil && !written, f.WriteSource != nil && f.Write == nil, f.Open != nil && f.Read == nil:
		c.errorf("has functions that nothing can use")
	}
	if written && All.ForPath("x"+f.Extensions[0]).Name != f.Name {
		c.errorf("the usual ending %s suggests %s", f.Extensions[0], All.ForPath("x"+f.Extensions[0]).Name)
	}
}

// checkDetection checks that a sample is detected as the format it is in, and cut or foreign beginnings never panic.
func (c *conformance) checkDetection(s sample) {
	want := c.detected
	if want == nil {
		want = []string{c.format.Name}
	}
	first := head(s.files[0].text)
	if got := All.Detect(first).Names(); !slices.Equal(got, want) {
		c.errorf("%s is detected as %q, want %q", s.files[0].name, got, want)
	}
	for _, f := range All {
		for n := range min(len(first), 512) {
			f.Detect(first[:n])
		}
	}
	for _, head := range []string{"", "\x00", "{", "<", "\n", strings.Repeat("\xff", format.DetectBytes),
		strings.Repeat("[", format.DetectBytes), strings.Repeat("\n", format.DetectBytes)} {
		if c.format.Detect([]byte(head)) {
			c.errorf("a file that begins with %.10q is detected", head)
		}
	}
}

// checkRead checks that a sample is read without an error as a valid trace, from a file and through a pipe, and that
// the trace of Open is that of Read.
func (c *conformance) checkRead(s sample) {
	want := c.mustRead(s.files)
	if want.Ops() == 0 {
		c.errorf("%s: no ops", s.files[0].name)
	}
	in := inputs(s.files)
	for _, input := range in {
		input.At, input.Reader = nil, pipe(input.Reader)
	}
	r := c.readInputs(in, s.files, format.ReadOptions{})
	if r.err != nil {
		c.errorf("%s: through a pipe: %v", s.files[0].name, r.err)
	} else if d := differences(want, r.trace, false); d != nil {
		c.errorf("%s: through a pipe: different %q", s.files[0].name, d)
	}
	if c.format.Files == nil {
		if r := c.read(slices.Concat(s.files, s.files), format.ReadOptions{}); r.err == nil {
			c.errorf("two files are read as one trace")
		}
	}
	if c.format.Open == nil {
		return
	}
	source, err := c.format.Open(inputs(s.files)[0], format.ReadOptions{Warn: discard})
	if err != nil {
		c.errorf("%s: opened: %v", s.files[0].name, err)
		return
	}
	if source == nil {
		return
	}
	defer source.Close()
	if got, err := dag.ReadAll(source); err != nil {
		c.errorf("%s: opened: %v", s.files[0].name, err)
	} else if d := differences(want, got, false); d != nil {
		c.errorf("%s: opened: different %q", s.files[0].name, d)
	}
}

// result is the outcome of one call of Read.
type result struct {
	trace    *dag.Trace
	err      error
	warnings int
	warning  string // the first
}

// read reads files like programs do, and checks the rules of every call of Read: it does not panic, it ends, it
// allocates at most maxMemory, and its error begins with a file name and is no internal one.
func (c *conformance) read(files []file, o format.ReadOptions) result {
	c.Helper()
	return c.readInputs(inputs(files), files, o)
}

func (c *conformance) readInputs(in []*format.Input, files []file, o format.ReadOptions) (r result) {
	c.Helper()
	o.Warn = func(message string, args ...any) {
		if r.warnings++; r.warnings == 1 {
			r.warning = fmt.Sprintf(message, args...)
		}
	}
	defer func() {
		if p := recover(); p != nil {
			c.errorf("panic: %v, reading\n%s\n%s", p, show(files), debug.Stack())
			r.err = errPanic
		}
	}()
	watchdog := time.AfterFunc(maxTime, func() {
		panic(fmt.Sprintf("%s hangs, reading\n%s", c.format.Name, show(files)))
	})
	defer watchdog.Stop()
	before := allocated()
	r.trace, r.err = c.format.Read(in, o)
	if n := allocated() - before; n > maxMemory {
		c.errorf("%d MiB allocated for %d bytes, reading\n%s", n>>20, size(files), show(files))
	}
	if r.err == nil {
		return r
	}
	r.err = format.InFile(files[0].name, r.err) // as tracefile does
	if r.trace != nil {
		c.errorf("a trace and an error, %v", r.err)
	}
	named := slices.ContainsFunc(files, func(f file) bool { return strings.HasPrefix(r.err.Error(), f.name+":") })
	if !named || strings.Contains(r.err.Error(), "internal error") {
		c.errorf("the error %q does not begin with a file name, or is internal", r.err)
	}
	return r
}

var errPanic = errors.New("panic")

// mustRead reads files that must be a valid trace.
func (c *conformance) mustRead(files []file) *dag.Trace {
	c.Helper()
	r := c.read(files, format.ReadOptions{})
	if r.err != nil {
		c.Fatalf("%v, reading\n%s", r.err, show(files))
	}
	if problems := dag.Validate(r.trace); len(problems) > 0 {
		c.errorf("%v, reading\n%s", problems[0], show(files))
	}
	return r.trace
}

// damages returns how many damaged variants of a kind to try.
func (s *sample) damages() int {
	limit := s.limit
	if limit == 0 {
		limit = maxDamaged
	}
	if testing.Short() {
		limit = (limit + 19) / 20
	}
	return limit
}

// checkDamage reads a sample cut off at each byte, and with one wrong byte.
func (c *conformance) checkDamage(s sample) {
	limit := s.damages()
	for files := range truncated(s.files, limit) {
		c.checkDamaged(files)
	}
	for files := range flipped(s.files, limit) {
		c.checkDamaged(files)
	}
}

// checkDamaged reads damaged files, strictly and leniently.
func (c *conformance) checkDamaged(files []file) {
	strict := c.read(files, format.ReadOptions{})
	lenient := c.read(files, format.ReadOptions{Lenient: true})
	for _, r := range []result{strict, lenient} {
		if r.err == nil {
			c.checkSound(r.trace, files)
		}
	}
	switch {
	case strict.err == errPanic || lenient.err == errPanic:
	case strict.err == nil && lenient.err != nil:
		c.errorf("the lenient error is %v, and there is no strict one, reading\n%s", lenient.err, show(files))
	case strict.err == nil:
		if d := differences(strict.trace, lenient.trace, false); d != nil {
			c.errorf("other %q if lenient, reading\n%s", d, show(files))
		}
	case lenient.err == nil && lenient.warnings == 0:
		c.errorf("no warning if lenient, the strict error is %v, reading\n%s", strict.err, show(files))
	}
}

// checkSound checks the trace of a damaged file.
func (c *conformance) checkSound(t *dag.Trace, files []file) {
	for _, p := range dag.Validate(t) {
		if !slices.Contains(c.unsound, p.Class) {
			c.errorf("%v: %v, reading\n%s", p.Class, p, show(files))
			return
		}
	}
}

// checkHuge reads inputs below 1 MiB with a long line, many fields or a huge number.
func (c *conformance) checkHuge(s sample) {
	const size = 900_000
	for i, fill := range []string{"9", "[", "{", " ", "a", "\x00", "\xff", "\n", ",", "0 ", "\"", "1\n"} {
		text := s.files[0].text
		long := strings.Repeat(fill, size/len(fill))
		for k, cut := range []int{len(text), len(text) / 2} {
			if (i+len(text)+k)%2 > 0 && os.Getenv("TRACEDAG_LONG") == "" {
				continue // another sample has this pair
			}
			files := slices.Clone(s.files)
			files[0].text = text[:cut] + long + text[cut:]
			if r := c.read(files, format.ReadOptions{}); r.err == nil {
				c.checkSound(r.trace, files)
			}
		}
	}
	limit := s.damages()
	if s.model {
		return
	}
	for files := range inflated(s.files, c.format.Binary, limit) {
		if r := c.read(files, format.ReadOptions{}); r.err == nil {
			c.checkSound(r.trace, files)
		}
	}
}

// checkClaims checks that short inputs that claim much are refused.
func (c *conformance) checkClaims() {
	for _, text := range c.claims {
		files := []file{{c.samples[0].files[0].name, text}}
		if r := c.read(files, format.ReadOptions{}); r.err == nil {
			c.errorf("accepted: %q", text)
		}
	}
}

// write writes a trace and checks the rules of every call of Write: it writes nothing if it refuses the trace, and the
// same bytes if it is called again.
func (c *conformance) write(t *dag.Trace, o format.WriteOptions) ([]file, error) {
	o.Warn = discard
	files, err := c.writeOnce(t, o)
	if again, err2 := c.writeOnce(t, o); err2 == nil && err == nil && !slices.Equal(files, again) {
		c.errorf("the same trace is written as other bytes")
	}
	if err != nil && size(files) > 0 {
		c.errorf("%d bytes are written before the error %v", size(files), err)
	}
	return files, err
}

func (c *conformance) writeOnce(t *dag.Trace, o format.WriteOptions) (files []file, err error) {
	const stem = "sample"
	if c.format.WriteFiles == nil {
		var out bytes.Buffer
		err := c.format.Write(&out, t, o)
		return []file{{stem + c.format.Extensions[0], out.String()}}, err
	}
	var out *bytes.Buffer
	end := func() {
		if out != nil {
			files[len(files)-1].text = out.String()
		}
	}
	err = c.format.WriteFiles(func(suffix string) (io.Writer, error) {
		end()
		out = new(bytes.Buffer)
		files = append(files, file{name: stem + suffix})
		return out, nil
	}, t, o)
	end()
	return files, err
}

func (c *conformance) written() bool { return c.format.Write != nil || c.format.WriteFiles != nil }

// checkRoundTrip checks that the trace of a sample is written, read and written again as the same bytes, and that
// writing from a source gives the same.
func (c *conformance) checkRoundTrip(s sample) {
	if !c.written() {
		return
	}
	t := c.mustRead(s.files)
	files, err := c.write(t, format.WriteOptions{})
	if err != nil {
		c.errorf("%s cannot be written: %v", s.files[0].name, err)
		return
	}
	again, err := c.write(c.mustRead(files), format.WriteOptions{})
	if err != nil || !slices.Equal(files, again) {
		c.errorf("error %v, written\n%s, then\n%s", err, show(files), show(again))
	}
	if c.format.WriteSource == nil {
		return
	}
	var out bytes.Buffer
	var told []format.Loss
	tell := func(l []format.Loss) error {
		told = l
		return nil
	}
	err = c.format.WriteSource(&out, dag.FromTrace(t), format.WriteOptions{Warn: discard, Losses: tell})
	if err != nil || out.String() != files[0].text {
		c.errorf("error %v, written from a source\n%q, else\n%s", err, out.String(), show(files))
	}
	if want := c.losses(t); !slices.Equal(told, want) {
		c.errorf("losses of a source %v, else %v", told, want)
	}
}

// checkNilWarn checks that reading and writing files without a function for warnings works like with one.
func (c *conformance) checkNilWarn() {
	folder := c.TempDir()
	for i, s := range c.samples {
		damaged := slices.Collect(flipped(s.files, 20))
		for k, files := range append(damaged, s.files) {
			at := filepath.Join(folder, fmt.Sprint(i, "-", k))
			if err := os.Mkdir(at, 0o777); err != nil {
				c.Fatal(err)
			}
			var paths []string
			for _, f := range files {
				path := filepath.Join(at, f.name)
				if err := os.WriteFile(path, []byte(f.text), 0o666); err != nil {
					c.Fatal(err)
				}
				paths = append(paths, path)
			}
			c.readWithoutWarn(paths, k == len(damaged))
		}
	}
}

// readWithoutWarn opens and reads files, and writes their trace.
func (c *conformance) readWithoutWarn(paths []string, whole bool) {
	defer func() {
		if p := recover(); p != nil {
			c.errorf("panic without Warn: %v\n%s", p, debug.Stack())
		}
	}()
	opened, err := Open(paths, Options{From: c.format.Name, Lenient: true})
	if err == nil {
		defer opened.Close()
		var t *dag.Trace
		if t, err = opened.Read(); err == nil && c.written() {
			out := filepath.Join(c.TempDir(), "out"+c.format.Extensions[0])
			_, err := Write(out, t, WriteOptions{To: c.format.Name})
			if err != nil && whole {
				c.errorf("%v", err)
			}
		}
	}
	if err != nil && whole {
		c.errorf("%v", err)
	}
}

// checkFailingWriter checks that an error of the output ends the writing and is returned.
func (c *conformance) checkFailingWriter() {
	if !c.written() {
		return
	}
	t := c.mustRead(c.samples[0].files)
	files, err := c.write(t, format.WriteOptions{})
	if err != nil {
		c.Fatal(err)
	}
	for _, room := range []int{0, 1, len(files[0].text) / 2, len(files[0].text) - 1} {
		w := &shortWriter{room}
		o := format.WriteOptions{Warn: discard}
		if c.format.Write != nil {
			err = c.format.Write(w, t, o)
		} else {
			err = c.format.WriteFiles(func(string) (io.Writer, error) { return w, nil }, t, o)
		}
		if !errors.Is(err, errFull) {
			c.errorf("room for %d bytes: error %v", room, err)
		}
	}
}

var errFull = errors.New("the disk is full")

// shortWriter is a writer with room for a given number of bytes.
type shortWriter struct{ room int }

func (w *shortWriter) Write(b []byte) (int, error) {
	if n := w.room; n < len(b) {
		w.room = 0
		return n, errFull
	}
	w.room -= len(b)
	return len(b), nil
}

// pipe returns a reader that can do nothing but read.
func pipe(r io.Reader) io.Reader { return io.MultiReader(r) }

func discard(string, ...any) {}

// inputs returns files like programs open them: all but the first are opened when they are read.
func inputs(files []file) []*format.Input {
	in := make([]*format.Input, len(files))
	for i, f := range files {
		in[i] = &format.Input{Name: f.name, Reader: strings.NewReader(f.text)}
	}
	in[0].Head = head(files[0].text)
	in[0].At, in[0].Size = strings.NewReader(files[0].text), int64(len(files[0].text))
	return in
}

func head(text string) []byte { return []byte(text[:min(len(text), format.DetectBytes)]) }

func size(files []file) int {
	n := 0
	for _, f := range files {
		n += len(f.text)
	}
	return n
}

// show formats files for messages.
func show(files []file) string {
	var b strings.Builder
	for _, f := range files {
		fmt.Fprintf(&b, "%s: %.600q\n", f.name, f.text)
	}
	return b.String()
}

// allocated returns the bytes that the program has allocated since its start.
func allocated() uint64 {
	m := []metrics.Sample{{Name: "/gc/heap/allocs:bytes"}}
	metrics.Read(m)
	return m[0].Value.Uint64()
}

// offsets yields places in files, at most limit, evenly.
func offsets(files []file, limit int) iter.Seq2[int, int] {
	return func(yield func(f, at int) bool) {
		step := (size(files) + limit - 1) / limit
		next := 0
		for i, f := range files {
			for ; next < len(f.text); next += step {
				if !yield(i, next) {
					return
				}
			}
			next -= len(f.text)
		}
	}
}

// truncated yields files one of which is cut off.
func truncated(files []file, limit int) iter.Seq[[]file] {
	return func(yield func([]file) bool) {
		for i, at := range offsets(files, limit) {
			damaged := slices.Clone(files)
			damaged[i].text = damaged[i].text[:at]
			if !yield(damaged) {
				return
			}
		}
	}
}

// flipped yields files with one wrong byte.
func flipped(files []file, limit int) iter.Seq[[]file] {
	masks := [...]byte{0x01, 0x04, 0xff, 0x10, 0x20, 0x02, 0x40, 0x80, 0x08}
	return func(yield func([]file) bool) {
		k := 0
		for i, at := range offsets(files, limit) {
			damaged := slices.Clone(files)
			text := []byte(damaged[i].text)
			text[at] ^= masks[k%len(masks)]
			k++
			damaged[i].text = string(text)
			if !yield(damaged) {
				return
			}
		}
	}
}

// numbers matches the parts in which failures of one kind differ.
var numbers = regexp.MustCompile(`[0-9a-f]*[0-9][0-9a-f]*|"[^"]*"`)

// number matches the numbers of a text.
var number = regexp.MustCompile(`[0-9]+`)

// inflated yields files one number of which is huge.
func inflated(files []file, binary bool, limit int) iter.Seq[[]file] {
	huge := []uint64{99_999, 1 << 20, math.MaxInt32, math.MaxUint32, math.MaxInt64, math.MaxUint64}
	return func(yield func([]file) bool) {
		k := 0
		for i, f := range files {
			var places [][]int
			if binary {
				for at := range f.text {
					places = append(places, []int{at, min(at+1+at%8, len(f.text))})
				}
			} else {
				places = number.FindAllStringIndex(f.text, -1)
			}
			step := max(1, len(places)*len(huge)/limit)
			for ; k < len(places)*len(huge); k += step {
				place, value := places[k/len(huge)], huge[k%len(huge)]
				claim := strconv.FormatUint(value, 10)
				if binary {
					claim = string(littleEndian(value, place[1]-place[0]))
				}
				damaged := slices.Clone(files)
				damaged[i].text = f.text[:place[0]] + claim + f.text[place[1]:]
				if !yield(damaged) {
					return
				}
			}
			k = 0
		}
	}
}

func littleEndian(value uint64, size int) []byte {
	b := make([]byte, size)
	for i := range b {
		b[i] = byte(value >> (8 * i))
	}
	return b
}
