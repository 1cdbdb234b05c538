package store

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"runtime"
	"sync"

	"github.com/tracedag/tracedag/dag"
)

// A row group holds groupRanks ranks of mean length where that makes no fewer than minGroupRows rows and no more than
// maxGroupRows. More rows make a smaller file, for compression starts anew with each; fewer let a reader that wants a
// single rank read less.
const (
	groupRanks   = 32
	minGroupRows = 1 << 18
	maxGroupRows = 1 << 20
	// maxGroupEdges ends a row group early where ops have many dependencies.
	maxGroupEdges = 1 << 24
)

// Write writes the trace to w as one Parquet file, front to back. The same trace makes the same bytes.
func Write(w io.Writer, t *dag.Trace) error {
	return writeGroups(w, t, split)
}

// writeGroups writes the trace in the row groups into which split divides it.
func writeGroups(w io.Writer, t *dag.Trace, split func(t *dag.Trace) [][]segment) error {
	keys, err := metadata(t)
	if err != nil {
		return err
	}
	if err := checkRanks(t.Ranks, 0, len(t.Comms), len(t.Jobs)); err != nil {
		return err
	}
	out := &fileWriter{w: w}
	out.write([]byte(magic))
	if err := out.groups(split(t)); err != nil {
		return err
	}
	footer := appendFooter(nil, out.done, keys)
	if len(footer) > math.MaxInt32 {
		return errors.New("the metadata of the trace is too long for the store")
	}
	footer = binary.LittleEndian.AppendUint32(footer, uint32(len(footer)))
	out.write(append(footer, magic...))
	return out.err
}

// split divides the ops of a trace into row groups, at the boundaries of ranks except within one that is too long.
func split(t *dag.Trace) [][]segment {
	rows := int64(minGroupRows)
	if n := int64(len(t.Ranks)); n > 0 {
		rows = min(max(groupRanks*t.Ops()/n, minGroupRows), maxGroupRows)
	}
	var groups [][]segment
	var group []segment
	room, edgeRoom := rows, int64(maxGroupEdges)
	flush := func() {
		if len(group) > 0 {
			groups = append(groups, group)
		}
		group, room, edgeRoom = nil, rows, maxGroupEdges
	}
	for i := range t.Ranks {
		r := &t.Ranks[i]
		n, edges := int64(r.Len()), edgesOf(r)
		if n > room || edges > edgeRoom {
			flush()
		}
		for first := int64(0); first < n; {
			last := n
			if pieces := max((n+rows-1)/rows, (edges+maxGroupEdges-1)/maxGroupEdges); pieces > 1 {
				last = min(first+(n+pieces-1)/pieces, n)
			}
			group = append(group, segment{number: int32(i), rank: r, first: int(first), last: int(last)})
			if last < n {
				flush()
			}
			room -= last - first
			first = last
		}
		edgeRoom -= edges
	}
	flush()
	return groups
}

// edgesOf returns how many dependencies a rank has.
func edgesOf(r *dag.Rank) int64 {
	return int64(len(r.Deps.Off)) + int64(len(r.StartDeps.Off))
}

// fileWriter writes chunks as they come and remembers where they lie.
type fileWriter struct {
	w      io.Writer
	offset int64
	err    error
	done   []groupMeta
}

// groupMeta is what the footer says of a row group.
type groupMeta struct {
	rows   int64
	chunks []chunkMeta // by column
}

func (w *fileWriter) write(b []byte) {
	if w.err != nil {
		return
	}
	n, err := w.w.Write(b)
	w.offset += int64(n)
	w.err = err
}

// encoded is a chunk that a worker delivers.
type encoded struct {
	chunk chunk
	err   error
}

// groups encodes the row groups, all columns of a few groups at the same time, and writes them in order.
func (w *fileWriter) groups(groups [][]segment) error {
	type task struct {
		column int
		rows   []segment
		n      int
		result chan<- encoded
	}
	workers := runtime.GOMAXPROCS(0)
	tasks := make(chan task)
	results := make(chan chan encoded, (workers+1)*numColumns) // in the order of the file; bounds what waits
	stop := make(chan struct{})
	var running sync.WaitGroup
	defer running.Wait()
	defer close(stop)
	for range workers {
		running.Go(func() {
			e := encoders.Get().(*encoder)
			defer encoders.Put(e)
			for t := range tasks {
				c, err := e.encode(t.column, t.rows, t.n)
				t.result <- encoded{c, err}
			}
		})
	}
	running.Go(func() {
		defer close(tasks)
		for _, g := range groups {
			n := rowsOf(g)
			for column := range numColumns {
				result := make(chan encoded, 1)
				select {
				case results <- result:
				case <-stop:
					return
				}
				select {
				case tasks <- task{column, g, n, result}:
				case <-stop:
					return
				}
			}
		}
	})
	for _, g := range groups {
		meta := groupMeta{rows: int64(rowsOf(g)), chunks: make([]chunkMeta, numColumns)}
		for column := range numColumns {
			r := <-<-results
			if r.err != nil {
				return fmt.Errorf("writing ranks %d to %d: %w", g[0].number, g[len(g)-1].number, r.err)
			}
			meta.chunks[column] = r.chunk.meta.at(w.offset)
			if w.write(r.chunk.data); w.err != nil {
				return w.err
			}
		}
		w.done = append(w.done, meta)
	}
	return nil
}

func rowsOf(group []segment) int {
	n := 0
	for _, s := range group {
		n += s.last - s.first
	}
	return n
}

// at returns the chunk's metadata with the offsets of its pages in the file, in which it begins at offset.
func (m chunkMeta) at(offset int64) chunkMeta {
	if m.firstPage > 0 {
		m.dictionaryOffset = offset
	}
	m.firstPage += offset
	return m
}
