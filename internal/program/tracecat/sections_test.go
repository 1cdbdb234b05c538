package tracecat

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/tracedag/tracedag/dag"
	"github.com/tracedag/tracedag/formats"
	"github.com/tracedag/tracedag/formats/format"
	"github.com/tracedag/tracedag/formats/store"
	"github.com/tracedag/tracedag/internal/cli/clitest"
)

// countingReader counts the bytes read.
type countingReader struct {
	io.ReaderAt
	bytes atomic.Int64
}

func (r *countingReader) ReadAt(b []byte, offset int64) (int, error) {
	r.bytes.Add(int64(len(b)))
	return r.ReaderAt.ReadAt(b, offset)
}

// sectionsStore returns a store of three row groups of 32 ranks. Measured times rise with the rank, the last rank has
// another job and names, and rank 70 alone receives.
func sectionsStore(t *testing.T) []byte {
	b := dag.NewBuilder(96)
	at := dag.Time(0)
	for rank := range 96 {
		for i := range 1 << 13 {
			at += dag.Nanosecond + dag.Time((i*i)%977)
			op := dag.Op{Kind: dag.Send, Peer: 70, Bytes: int64(i % 77), Timed: true, MeasuredStart: at, MeasuredEnd: at + 7}
			switch {
			case rank == 70 && i%1000 == 1:
				op.Kind, op.Peer = dag.Recv, 5
			case rank == 95:
				op.Job, op.Name = 1, fmt.Sprint("op ", i)
			}
			if i > 0 {
				b.Rank(rank).Add(op, i-1)
			} else {
				b.Rank(rank).Add(op)
			}
		}
	}
	trace := b.Trace()
	trace.Jobs = []string{"first", "second"}
	var file bytes.Buffer
	if err := store.Write(&file, trace); err != nil {
		t.Fatal(err)
	}
	return file.Bytes()
}

// withoutSections hides that a source has sections.
type withoutSections struct{ dag.Source }

// TestSections checks that the list of a store, which is read by row groups, is that of a source without sections, and
// that it costs the bytes of the row groups with selected ops.
func TestSections(t *testing.T) {
	file := sectionsStore(t)
	footer := int64(binary.LittleEndian.Uint32(file[len(file)-8:])) + 1000
	list := func(args string, hide bool) (clitest.Result, int64) {
		at := &countingReader{ReaderAt: bytes.NewReader(file)}
		s := clitest.Session{Stdin: strings.NewReader("something"), Formats: formats.List{{
			Name:   "test",
			Detect: func([]byte) bool { return true },
			Read:   store.Format.Read,
			Open: func(*format.Input, format.ReadOptions) (dag.Source, error) {
				f, err := store.Open(at, int64(len(file)), "test.parquet")
				if err != nil || !hide {
					return f, err
				}
				return withoutSections{f}, nil
			},
		}}}
		return s.Run(New, append([]string{"--ops"}, strings.Fields(args)...)...), at.bytes.Load()
	}
	group := int64(len(file)) * 3 / 5 // more than one of the three row groups, less than two
	for _, c := range []struct {
		args string
		most int64 // bytes of pages
	}{
		{"--rank 40 --head 40", group},
		{"--rank 40 --head 40 --json", group},
		{"--rank 95 --name 8191", group + group/4},
		{"--window 300us..301us", group},
		{"--window 300us..301us --json", group},
		{"--window 300us..301us --rank 0,33-95", group},
		{"--window 9s..", 0},
		{"--window ..1us --json", group},
		{"--kind recv", group},
		{"--kind calc", group / 4},
		{"--kind allreduce,barrier", group / 4},
		{"--job second --head 9", group},
		{"--job 1 --rank 0-63 --json", 0},
		{"--name 81*1", group},
		{"--name nix --json", group},
		{"--kind recv --rank 0-63", group / 4},
		{"--head 0", 0},
		{"--rank 0,95 --head 3", 2 * group},
	} {
		got, read := list(c.args, false)
		want, all := list(c.args, true)
		if got != want || got.Status != 0 {
			t.Errorf("%s: %+v, expected %+v", c.args, got, want)
		}
		if read > c.most+footer {
			t.Errorf("%s: read %d bytes, expected at most %d of pages and %d of the footer; without sections %d", c.args,
				read, c.most, footer, all)
		}
	}
	file[len(file)/8] ^= 1
	if got, _ := list("--rank 95 --head 3", false); got.Status != 0 {
		t.Errorf("damage in a row group that is not read: %+v", got)
	}
	if got, _ := list("--rank 0 --head 3", false); got.Status != 1 || !strings.Contains(got.Stderr, "the file is damaged") {
		t.Errorf("damage in a row group that is read: %+v", got)
	}
}
