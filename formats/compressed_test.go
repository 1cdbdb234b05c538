package formats

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"

	"github.com/tracedag/tracedag/dag"
	"github.com/tracedag/tracedag/formats/tracefile"
	_ "github.com/tracedag/tracedag/internal/testheap"
)

// compressors compress a text as the programs of these names do.
var compressors = []struct {
	ending   string
	compress func(t *testing.T, text string) []byte
}{
	{".gz", func(t *testing.T, text string) []byte {
		var b bytes.Buffer
		return compressedBy(t, &b, gzip.NewWriter(&b), text)
	}},
	{".zst", func(t *testing.T, text string) []byte {
		var b bytes.Buffer
		z, err := zstd.NewWriter(&b, zstd.WithEncoderConcurrency(1), zstd.WithEncoderCRC(true))
		if err != nil {
			t.Fatal(err)
		}
		return compressedBy(t, &b, z, text)
	}},
}

func compressedBy(t *testing.T, b *bytes.Buffer, z io.WriteCloser, text string) []byte {
	t.Helper()
	_, err := io.WriteString(z, text)
	if err == nil {
		err = z.Close()
	}
	if err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// A compressed trace with a flipped bit is an error or the same trace; a cut one, and one that other data follow, is
// an error, or a warning in formats that survive damage. Errors begin with the name of the file.
func TestDamagedCompression(t *testing.T) {
	for _, s := range subjects() {
		t.Run(s.format, func(t *testing.T) {
			t.Parallel()
			c := &conformance{T: t, subject: s, format: All.Named(s.format), shown: map[string]bool{}}
			if s.detected != nil {
				c.from = s.format
			}
			for i := range s.samples {
				c.sample(&c.samples[i])
				for _, z := range compressors {
					c.checkCompressed(c.samples[i].files, z.ending, z.compress)
				}
			}
		})
	}
}

func (c *conformance) checkCompressed(files []file, ending string, compress func(*testing.T, string) []byte) {
	damages, stride := 20, 4 // between header and checksum of each file; in these
	switch {
	case testing.Short():
		damages = 5
	case os.Getenv("TRACEDAG_LONG") != "":
		damages, stride = 100, 1
	}
	turn := (len(c.format.Name) + len(files[0].text)) % stride // formats and samples have different bits, together all
	folder := c.TempDir()
	paths := make([]string, len(files))
	contents := make([][]byte, len(files))
	for i, f := range files {
		paths[i] = filepath.Join(folder, f.name+ending)
		contents[i] = compress(c.T, f.text)
		c.store(paths[i], contents[i])
	}
	want, err := c.readPaths(paths, nil)
	if err != nil {
		c.Fatalf("%s: %v", paths[0], err)
	}
	for i, content := range contents {
		check := func(damage string, damaged []byte, refused bool) {
			c.store(paths[i], damaged)
			got, err := c.readPaths(paths, nil)
			c.checkDamagedCompression(damage+" of "+files[i].name+ending, paths, want, got, err, refused)
			if len(files) > 1 {
				return
			}
			got, err = c.readPaths([]string{"-"}, damaged) // without the name
			c.checkDamagedCompression(damage+" of a pipe of "+files[i].name+ending, []string{"<stdin>"}, want, got, err, refused)
		}
		header, checksum := 8*min(12, len(content)), 8*max(0, len(content)-8)
		step := (checksum-header)/damages | 1 // odd, so that each bit of a byte has its turn
		for bit := turn; bit < 8*len(content); bit += stride {
			if header < bit && bit < checksum {
				bit = min(bit-stride+step, checksum+turn)
			}
			damaged := bytes.Clone(content)
			damaged[bit/8] ^= 1 << (bit % 8)
			check(fmt.Sprintf("bit %d", bit), damaged, bit >= checksum)
		}
		for n := 0; n < len(content); n += max(1, len(content)/30) {
			check(fmt.Sprintf("the first %d bytes", n), content[:n], true)
		}
		for _, trailing := range []string{"x", "garbage", "\x1f\x8b", "\x28\xb5\x2f\xfd", strings.Repeat("x", 100000)} {
			check(fmt.Sprintf("%.10q behind", trailing), append(bytes.Clone(content), trailing...), true)
		}
		c.store(paths[i], content)
	}
}

func (c *conformance) store(path string, content []byte) {
	if err := os.WriteFile(path, content, 0o666); err != nil {
		c.Fatal(err)
	}
}

func (c *conformance) readPaths(paths []string, stdin []byte) (*dag.Trace, error) {
	c.warned = false
	t, err := tracefile.Open(All, paths, tracefile.Options{
		From: c.from, Stdin: bytes.NewReader(stdin), Digest: true,
		Warn: func(message string, args ...any) {
			for _, path := range append([]string{"<stdin>"}, paths...) {
				c.warned = c.warned || strings.HasPrefix(fmt.Sprintf(message, args...), path)
			}
		},
	})
	if err != nil {
		return nil, err
	}
	defer t.Close()
	trace, err := t.Read()
	if err == nil {
		_, err = t.Inputs()
	}
	return trace, err
}

func (c *conformance) checkDamagedCompression(damage string, paths []string, want, got *dag.Trace, err error, refused bool) {
	if err != nil {
		for _, path := range paths {
			if strings.HasPrefix(err.Error(), path) {
				return
			}
		}
		c.errorf("%s: error %q does not begin with the file's name", damage, err)
		return
	}
	if refused && !(c.format.Survives && c.warned) {
		c.errorf("%s: accepted", damage)
	} else if d := differences(want, got, false); d != nil && !(c.format.Survives && c.warned) {
		c.errorf("%s: accepted without a warning, different %q", damage, d)
	}
}
