package tracefile

import (
	"bytes"
	"compress/gzip"
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/klauspost/compress/zstd"

	"github.com/tracedag/tracedag/formats/format"
)

// mostContent is the largest content that FuzzDecompress compares.
const mostContent = 1 << 20

// FuzzDecompress compares the content of gzip and zstd data with that of readers of the whole at once. Data that
// those refuse are refused as damaged.
func FuzzDecompress(f *testing.F) {
	var gz, zst bytes.Buffer
	compress := func(w io.WriteCloser, text string) {
		if _, err := io.WriteString(w, text); err != nil {
			f.Fatal(err)
		}
		if err := w.Close(); err != nil {
			f.Fatal(err)
		}
	}
	for _, text := range []string{"", "num_ranks 1\n", strings.Repeat("rank 0 {\n}\n", 100)} {
		compress(gzip.NewWriter(&gz), text)
		z, err := zstd.NewWriter(&zst, zstd.WithEncoderConcurrency(1))
		if err != nil {
			f.Fatal(err)
		}
		compress(z, text)
		f.Add(bytes.Clone(gz.Bytes()))
		f.Add(bytes.Clone(zst.Bytes()))
	}
	f.Add(append(bytes.Clone(gz.Bytes()), 0, 0, 0))
	f.Add(append(bytes.Clone(zst.Bytes()), 'x'))
	f.Add([]byte("\x1f\x8b\b\x80\x00\x00\x00\x00\x12\xff\x01\x00\x00\xff\xff\x00\x00\x00\x00\x00\x00\x00\x00"))
	f.Add([]byte("\x50\x2a\x4d\x18\x04\x00\x00\x00abcd\x28\xb5\x2f\xfd\x00\x00\x01\x00\x00"))
	reference, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxMemory(1<<30),
		zstd.WithDecoderMaxWindow(maxWindow))
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		kind := compression(data[:min(len(data), 64)])
		if kind != "gzip" && kind != "zstd" {
			return
		}
		got, err := decompressed(data)
		if len(got) > mostContent {
			return
		}
		var want []byte
		var wantErr error
		if kind == "gzip" {
			// Zeros behind the data are padding, as many as are none of its own.
			for padding := len(data) - len(bytes.TrimRight(data, "\x00")); padding >= 0; padding-- {
				var r *gzip.Reader
				if r, wantErr = gzip.NewReader(bytes.NewReader(data[:len(data)-padding])); wantErr != nil {
					continue
				}
				if want, wantErr = io.ReadAll(io.LimitReader(r, mostContent+1)); wantErr == nil {
					break
				}
			}
		} else {
			want, wantErr = reference.DecodeAll(data, nil)
		}
		var damaged *format.DamagedError
		switch {
		case err == nil && (wantErr != nil || !bytes.Equal(got, want)):
			t.Errorf("%d bytes of %s, expected %d, error %v", len(got), kind, len(want), wantErr)
		case err != nil && !errors.As(err, &damaged):
			t.Errorf("error %v of type %T", err, err)
		case err != nil && wantErr == nil && !reservedFlags(data):
			t.Errorf("error %v, expected %d bytes of %s", err, len(want), kind)
		}
	})
}

// reservedFlags reports whether data may have a gzip header with reserved flags, which readers must refuse (RFC 1952,
// section 2.3.1) and the standard library accepts.
func reservedFlags(data []byte) bool {
	const header = "\x1f\x8b\x08"
	for at := bytes.Index(data, []byte(header)); at >= 0 && at+3 < len(data); {
		if data[at+3]&0xe0 != 0 {
			return true
		}
		next := bytes.Index(data[at+1:], []byte(header))
		if next < 0 {
			break
		}
		at += 1 + next
	}
	return false
}

// decompressed returns the content of compressed data, at most one byte more than mostContent.
func decompressed(data []byte) ([]byte, error) {
	in, err := OpenInput("-", Options{Stdin: bytes.NewReader(data)})
	if err != nil {
		return nil, err
	}
	defer in.Close()
	content, err := io.ReadAll(io.LimitReader(in.Reader, mostContent+1))
	if err == nil && len(content) <= mostContent {
		err = in.Finish()
	}
	return content, err
}
