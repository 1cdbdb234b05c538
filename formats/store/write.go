package store

import (
	"errors"
	"fmt"
	"io"
	"iter"
	"math"
	"runtime"
	"sync/atomic"

	"github.com/tracedag/tracedag/dag"
	"github.com/tracedag/tracedag/internal/par"
	"github.com/tracedag/tracedag/internal/parquet"
)

// A row group has groupRanks ranks of mean length, but at least minGroupRows and at most usualGroupRows rows; of longer
// ranks, it has fewRanks, but at most maxGroupRows rows. More ranks compress better, because compression restarts with
// each row group and ranks resemble each other; fewer rows take less memory, and let a reader of a single rank read
// less. With usualGroupRows, conversions of texts take 64 MiB.
const (
	groupRanks     = 32
	fewRanks       = 8
	minGroupRows   = 1 << 18
	usualGroupRows = 3 << 17
	maxGroupRows   = 1 << 20
	// maxGroupEdges ends a row group early if ops have many dependencies.
	maxGroupEdges = 1 << 24
)

// Write writes the trace to w as one Parquet file, sequentially. Equal traces give equal bytes.
func Write(w io.Writer, t *dag.Trace) error {
	keys, err := metadata(t.Meta, t.Comms, len(t.Ranks), t.Ops())
	if err != nil {
		return err
	}
	if err := checkRanks(t.Ranks, 0, len(t.Comms), &t.Meta); err != nil {
		return err
	}
	return writeGroups(w, keys, divide(t.Ops(), len(t.Ranks), inMemory(t.Ranks)), false)
}

// WriteSource writes the bytes of Write from a source. It has only a few row groups and batches in memory.
func WriteSource(w io.Writer, s dag.Source) error {
	return writeSource(w, s, false)
}

// writeSource is WriteSource. If frugal is set, one encoder, which takes up to 30 bytes per row, works beside one
// reader of large batches or several of small ones.
func writeSource(w io.Writer, s dag.Source, frugal bool) error {
	h, err := s.Header()
	if err != nil {
		return err
	}
	keys, err := metadata(h.Meta, h.Comms, h.Ranks, h.Ops)
	if err != nil {
		return err
	}
	return writeGroups(w, keys, divide(h.Ops, h.Ranks, readAhead(s, h, frugal)), frugal)
}

// writeGroups writes the trace that is divided into groups.
func writeGroups(w io.Writer, keys []parquet.KeyValue, groups iter.Seq2[[]segment, error], frugal bool) error {
	out := &fileWriter{w: w}
	out.write([]byte(parquet.Magic))
	if err := out.groups(groups, frugal); err != nil {
		return err
	}
	footer := appendFooter(nil, out.offset, out.done, keys, string(out.sums))
	if len(footer) > math.MaxInt32 {
		return errors.New("expected less than 2 GiB of metadata, found more")
	}
	out.write(footer)
	return out.err
}

// inMemory yields the ranks.
func inMemory(ranks []*dag.Rank) iter.Seq2[packedRank, error] {
	return func(yield func(packedRank, error) bool) {
		for i := range ranks {
			if !yield(packedRank{Rank: ranks[i]}, nil) {
				return
			}
		}
	}
}

// divide divides the given number of ops into row groups, at boundaries of ranks except within a rank that is too
// long.
func divide(ops int64, ranks int, all iter.Seq2[packedRank, error]) iter.Seq2[[]segment, error] {
	rows := int64(minGroupRows)
	if ranks > 0 {
		rows = min(max(groupRanks*ops/int64(ranks), minGroupRows), usualGroupRows)
		rows = max(rows, min(fewRanks*ops/int64(ranks), maxGroupRows))
	}
	return func(yield func([]segment, error) bool) {
		var group []segment
		room, edgeRoom := rows, int64(maxGroupEdges)
		flush := func() bool {
			full := group
			group, room, edgeRoom = nil, rows, maxGroupEdges
			return len(full) == 0 || yield(full, nil)
		}
		number := int32(-1)
		piece := int64(0) // number of rows of the pieces of the current rank
		taken := int64(0) // number of rows of the current piece that are in the group
		for r, err := range all {
			if err != nil {
				yield(nil, err)
				return
			}
			n, edges := r.size()
			before := int64(r.part.first) // ops of the rank before r
			if before == 0 {
				number++
				if (n > room || edges > edgeRoom) && !flush() {
					return
				}
				pieces := max((n+rows-1)/rows, (edges+maxGroupEdges-1)/maxGroupEdges, 1)
				piece = (n + pieces - 1) / pieces
			}
			for first, end := before, before+int64(r.Len()); first < end; {
				last := min(first+piece-first%piece, end)
				group = append(group, segment{number: number, rank: r, first: int(first - before),
					last: int(last - before)})
				taken += last - first
				first = last
				if last%piece > 0 && last < n {
					continue
				}
				if last < n && !flush() {
					return
				}
				room -= taken
				taken = 0
			}
			if before+int64(r.Len()) == n {
				edgeRoom -= edges
			}
		}
		flush()
	}
}

// fileWriter writes chunks sequentially and records their offsets.
type fileWriter struct {
	w      io.Writer
	offset int64
	err    error
	done   []parquet.RowGroup
	sums   []byte // checksums of the chunks written, as the digest has them
}

func (w *fileWriter) write(b []byte) {
	if w.err != nil {
		return
	}
	n, err := w.w.Write(b)
	w.offset += int64(n)
	w.err = err
}

// task is the encoding of a column of a row group.
type task struct {
	column int
	rows   []segment
	n      int
	chunk  parquet.EncodedChunk // result
	sum    uint32               // checksum of the chunk
	err    error
}

// groups encodes the row groups, some columns at the same time unless frugal is set, and writes them in order. It reads
// the next row group when the last columns of the previous one are encoded, so that one is in memory.
func (w *fileWriter) groups(groups iter.Seq2[[]segment, error], frugal bool) error {
	workers := runtime.GOMAXPROCS(0)
	if frugal {
		workers = 1
	}
	tasks := func(yield func(task) bool) {
		for g, err := range groups {
			for column := range numColumns {
				if !yield(task{column: column, rows: g, n: rowsOf(g), err: err}) {
					return
				}
			}
		}
	}
	var used []*encoder
	defer func() {
		for _, e := range used {
			encoders.put(e)
		}
	}()
	for range workers {
		e := encoders.get()
		e.Frugal = frugal
		used = append(used, e)
	}
	var next atomic.Int32
	start := func() func(task) task {
		e := used[next.Add(1)-1]
		return func(t task) task { return encodeTask(e, t) }
	}
	for t := range par.Ordered(tasks, workers, workers-1, start) {
		if t.err != nil {
			return t.err
		}
		if t.column == 0 {
			w.done = append(w.done, parquet.RowGroup{Rows: int64(t.n), Chunks: make([]parquet.Chunk, numColumns)})
			w.sums = append(w.sums, ' ')
		}
		w.done[len(w.done)-1].Chunks[t.column] = t.chunk.Meta.At(w.offset)
		w.sums = appendSum(w.sums, t.sum)
		if w.write(t.chunk.Data); w.err != nil {
			return w.err
		}
	}
	return nil
}

func encodeTask(e *encoder, t task) task {
	if t.err != nil {
		return t
	}
	t.chunk, t.err = e.encode(t.column, t.rows, t.n)
	if t.column == numColumns-1 {
		e.release()
	}
	t.sum = chunkSum(t.chunk.Data)
	if t.err != nil {
		t.err = fmt.Errorf("writing ranks %d to %d: %w", t.rows[0].number, t.rows[len(t.rows)-1].number, t.err)
	}
	return t
}

func rowsOf(group []segment) int {
	n := 0
	for _, s := range group {
		n += s.last - s.first
	}
	return n
}
