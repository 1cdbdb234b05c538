package results

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/klauspost/compress/zstd"
)

// A pack is a file of records in several frames of Zstandard, so that damage costs the runs of a frame, and so that a
// run is read without the others. Any program for Zstandard decompresses it.
const (
	packRuns  = 1000     // runs of a full pack
	packSize  = 64 << 20 // text of a full pack in bytes
	frameSize = 64 << 10 // text of a frame in bytes; a longer record is a frame
	ending    = ".jsonl.zst"
	blockSize = 128 << 10 // largest text of a block of Zstandard
	frameMost = 1 << 30   // largest text of a frame
)

// packs returns the folder of packs.
func (f Folder) packs() string { return filepath.Join(string(f), "packs") }

// newDecoder returns a decoder of frames.
func newDecoder() *zstd.Decoder {
	z, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxMemory(frameMost))
	if err != nil {
		panic(err) // the options are valid
	}
	return z
}

// frameLength returns the size of the frame at the beginning of a file, 0 if it is damaged. The text of a whole frame
// is in proportion to its blocks.
func frameLength(data []byte) int {
	var h zstd.Header
	if h.Decode(data) != nil || h.Skippable {
		return 0
	}
	at, blocks := h.HeaderSize, 0
	for last := false; !last; blocks++ {
		if at+3 > len(data) {
			return 0
		}
		head := int(data[at]) | int(data[at+1])<<8 | int(data[at+2])<<16
		last = head&1 == 1
		size, kind := head>>3, head>>1&3
		if kind == 3 || size > blockSize {
			return 0
		}
		if kind == 1 { // one byte, repeated
			size = 1
		}
		at += 3 + size
	}
	if h.HasCheckSum {
		at += 4
	}
	if at > len(data) || h.HasFCS && h.FrameContentSize > uint64(blocks)*blockSize {
		return 0
	}
	return at
}

var magic = []byte{0x28, 0xb5, 0x2f, 0xfd}

// frames calls do with the place, the size and the text of each whole frame of a file. The text is valid during the
// call. It reports whether the whole file consists of such frames.
func frames(data []byte, do func(at, size int, text []byte)) (whole bool) {
	z := newDecoder()
	defer z.Close()
	whole = true
	var text []byte
	for at := 0; at < len(data); {
		size := frameLength(data[at:])
		if size > 0 {
			var err error
			if text, err = z.DecodeAll(data[at:at+size], text[:0]); err != nil {
				size = 0
			}
		}
		if size > 0 {
			do(at, size, text)
			at += size
			continue
		}
		whole = false
		next := bytes.Index(data[at+1:], magic)
		if next < 0 {
			return false
		}
		at += 1 + next
	}
	return whole
}

// packWriter writes a pack, which appears with commit.
type packWriter struct {
	folder  Folder
	z       *zstd.Encoder
	file    *os.File
	w       *bufio.Writer
	text    []byte // of the next frame
	frame   []byte
	sum     [sha256.Size]byte // of all sums so far
	runs    int
	written int // text in bytes
}

// newPack begins a pack.
func (f Folder) newPack() (*packWriter, error) {
	if err := os.MkdirAll(f.packs(), 0o777); err != nil {
		return nil, err
	}
	file, err := createBeside(filepath.Join(f.packs(), "pack"))
	if err != nil {
		return nil, err
	}
	z, err := zstd.NewWriter(nil, zstd.WithEncoderConcurrency(1), zstd.WithEncoderLevel(zstd.SpeedFastest),
		zstd.WithEncoderCRC(true))
	if err != nil {
		file.Close()
		os.Remove(file.Name())
		return nil, err
	}
	return &packWriter{folder: f, z: z, file: file, w: bufio.NewWriterSize(file, 1<<16)}, nil
}

// add adds a record.
func (p *packWriter) add(record []byte) error {
	if len(p.text) > 0 && len(p.text)+len(record) > frameSize {
		if err := p.flush(); err != nil {
			return err
		}
	}
	p.text = append(p.text, record...)
	one := sha256.Sum256(record)
	p.sum = sha256.Sum256(append(p.sum[:], one[:]...))
	p.runs++
	p.written += len(record)
	return nil
}

// full reports whether the pack takes no further runs.
func (p *packWriter) full() bool { return p.runs >= packRuns || p.written >= packSize }

// flush writes a frame.
func (p *packWriter) flush() error {
	if len(p.text) == 0 {
		return nil
	}
	p.frame = p.z.EncodeAll(p.text, p.frame[:0])
	p.text = p.text[:0]
	_, err := p.w.Write(p.frame)
	return err
}

// commit gives the pack its name, which its content decides, and returns it. sync writes it to the disk before.
func (p *packWriter) commit(shard string, sync bool) (name string, err error) {
	if err := errors.Join(p.flush(), p.w.Flush()); err != nil {
		return "", err
	}
	if sync {
		if err := p.file.Sync(); err != nil {
			return "", err
		}
	}
	if err := p.file.Close(); err != nil {
		return "", err
	}
	name = fmt.Sprintf("%s-%x%s", shard, p.sum[:8], ending)
	if err := os.Rename(p.file.Name(), filepath.Join(p.folder.packs(), name)); err != nil {
		return "", err
	}
	p.file = nil
	return name, nil
}

// close discards a pack that is not committed.
func (p *packWriter) close() {
	p.z.Close()
	if p.file != nil {
		p.file.Close()
		os.Remove(p.file.Name())
	}
}

// listPacks returns the names of the packs.
func (f Folder) listPacks() (names []string, err error) {
	entries, err := os.ReadDir(f.packs())
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	for _, e := range entries {
		if name := e.Name(); strings.HasSuffix(name, ending) && !strings.HasPrefix(name, ".") {
			names = append(names, name)
		}
	}
	return names, err
}
