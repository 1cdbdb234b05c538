package store

// Reading of row groups in parts.

import (
	"cmp"
	"slices"
	"sync"

	"github.com/tracedag/tracedag/dag"
)

// gradual is a File with batches that are smaller than its row groups.
type gradual struct {
	*File
	header func() (*dag.Header, error) // created once
	whole  []dag.Batch                 // those of the file
	ops    int64                       // limit of batches of several ranks
}

const (
	// gradualOps is the number of ops up to which several ranks are one batch.
	gradualOps = 1 << 16
	// wholeOps is the number of ops up to which batches are read as a whole, which takes less time.
	wholeOps = 1 << 19
)

// Gradual returns a source of the same trace that takes less memory to read, and more time, if row groups are large:
// its batches have one rank, or several of at most 65,536 ops together. A reader keeps a row group in compact form, in
// about a third of the memory, and decodes it once if batches are read in order.
func (f *File) Gradual() dag.Source {
	for _, b := range f.batches() {
		if b.Ops > wholeOps {
			return f.gradually(gradualOps)
		}
	}
	return f
}

// gradually returns a source with batches of one rank, or of several of at most some ops together.
func (f *File) gradually(ops int64) dag.Source {
	g := &gradual{File: f, ops: ops}
	g.header = sync.OnceValues(g.makeHeader)
	return g
}

func (g *gradual) Header() (*dag.Header, error) { return g.header() }

func (g *gradual) makeHeader() (h *dag.Header, err error) {
	all, err := g.File.Header()
	if err != nil {
		return nil, err
	}
	own := *all
	g.whole, own.Batches = all.Batches, nil
	d, b := newDecoder(), new(block)
	g.eachBatch(func(whole dag.Batch, groups []group) {
		if err != nil {
			return
		}
		b.groups = groups
		err = guard(func() error { return b.findRows(g.File, d, whole.First, whole.Last) })
		own.Batches = divideBatch(own.Batches, whole, b.ranks, g.ops)
	})
	if err != nil {
		return nil, g.wrap(err)
	}
	return &own, nil
}

// divideBatch appends the parts of a batch, of one rank or of several of at most some ops. ranks are those with rows.
func divideBatch(parts []dag.Batch, whole dag.Batch, ranks []rankRows, most int64) []dag.Batch {
	part := dag.Batch{First: whole.First}
	add := func(last int) {
		part.Last = last
		// Each op of the others has an entry at least.
		part.Deps = max(whole.Deps-(whole.Ops-part.Ops), 0)
		part.StartDeps = max(whole.StartDeps-(whole.Ops-part.Ops), 0)
		parts = append(parts, part)
		part = dag.Batch{First: last}
	}
	for _, r := range ranks {
		ops := int64(r.last - r.first)
		if part.Ops > 0 && part.Ops+ops > most {
			add(r.number)
		}
		part.Ops += ops
	}
	add(whole.Last)
	return parts
}

// NewReader returns a reader as [File.NewReader] does.
func (g *gradual) NewReader(columns dag.Columns) dag.Reader {
	r := &gradualReader{source: g, batchReader: g.newBatchReader(columns)}
	r.packs = true
	for _, reader := range r.block.columns.readers {
		if reader != nil {
			reader.share(&r.memory)
		}
	}
	return r.reader(r.read)
}

// gradualReader reads parts of batches.
type gradualReader struct {
	*batchReader
	source *gradual
	loaded dag.Batch // the batch in memory
	memory sharedMemory
}

func (r *gradualReader) read(b dag.Batch) error {
	if _, err := r.source.Header(); err != nil {
		return err
	}
	if b.First < r.loaded.First || b.Last > r.loaded.Last {
		k, found := slices.BinarySearchFunc(r.source.whole, b.First, func(b dag.Batch, first int) int {
			return cmp.Compare(b.First, first)
		})
		if !found {
			k--
		}
		whole := r.source.whole[max(k, 0)]
		r.loaded = dag.Batch{}
		if err := r.load(whole); err != nil {
			return err
		}
		r.loaded = whole
	}
	at := func(rank int) int {
		i, _ := slices.BinarySearchFunc(r.block.ranks, rank, func(r rankRows, rank int) int { return r.number - rank })
		return i
	}
	first := at(b.First)
	ranks := r.block.ranks[first:at(b.Last)]
	if len(ranks) > 0 {
		of := rows{ranks[0].first, ranks[len(ranks)-1].last}
		r.memory.taken = 0
		for _, reader := range r.block.columns.readers {
			if reader != nil {
				reader.open(of)
			}
		}
	}
	return r.deliver(b, ranks, first)
}
