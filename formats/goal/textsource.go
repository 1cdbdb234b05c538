// This file reads a large text once, block by block, or twice: for the header, and again batch by batch. It is never in
// memory as a whole.

package goal

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync"

	"github.com/tracedag/tracedag/dag"
	"github.com/tracedag/tracedag/formats/format"
	"github.com/tracedag/tracedag/internal/par"
)

const (
	// smallText is the largest text in bytes that is read as a whole: it takes less memory than the buffers of a
	// conversion.
	smallText = 8 << 20
	// batchText is the number of bytes of text from which a batch is complete.
	batchText = 1 << 19
	// longBlock is the number of bytes from which a batch is read piece by piece.
	longBlock = 4 << 20
	// longBatch is the number of ops from which a reader keeps no memory of a batch.
	longBatch = 1 << 16
)

// streamText opens a text for a conversion batch by batch. It returns nil for a text that has to be read as a whole:
// one without random access, a small one, and one whose clock depends on all ranks.
func streamText(in *format.Input, o format.ReadOptions) (format.Stream, error) {
	own := format.Own(o.Own, func() *Options { return new(Options) })
	if in.At == nil || in.Size <= smallText || own.Clock == ClockAuto {
		return nil, nil
	}
	return newTextSource(in, o, own, batchText), nil
}

// newTextSource returns the source of a text whose batches have the given number of bytes or more.
func newTextSource(in *format.Input, o format.ReadOptions, own *Options, batch int64) *textSource {
	t := &textSource{in: in, o: o, own: own, batch: batch, long: longBatch, part: partOps}
	t.header = sync.OnceValues(func() (*dag.Header, error) {
		if t.known != nil {
			return t.known, nil
		}
		h, err := t.scan(nil, true)
		if errors.Is(err, errClocked) {
			h, err = t.scan(nil, false)
		}
		return h, err
	})
	return t
}

// textSource is the trace of a text. A batch is whole blocks.
type textSource struct {
	in  *format.Input
	o   format.ReadOptions
	own *Options

	batch  int64                       // least number of bytes of a batch but the last
	long   int                         // number of ops from which blocks may be read in parts
	part   int                         // number of ops of a part
	header func() (*dag.Header, error) // created once
	known  *dag.Header                 // set by Once
	places []place                     // of the batches
	ends   *dag.MessageEnds
	warned int // number of warnings that were reported
}

// place is the part of a text that has the blocks of a batch.
type place struct {
	from, to int64
	line     int64 // of from
	lag      int   // of one rank that can be read in parts; else 0
}

// Header returns the header. The first call reads the text, and reports its errors and warnings.
func (t *textSource) Header() (*dag.Header, error) { return t.header() }

// Close does nothing: the caller closes the input.
func (t *textSource) Close() error { return nil }

// Once reads the text.
func (t *textSource) Once(take func(ranks, first int, next []*dag.Rank) error) (err error) {
	t.known, err = t.scan(take, false)
	return err
}

const (
	// onceOps is the number of ops from which Once passes on the ranks that it has read.
	onceOps = 1 << 12
	// longRank is the number of ops from which Once reads on only after a rank was taken.
	longRank = 1 << 17
)

// scan reads the text for the header. It passes the ranks to take, unless that is nil, while it reads on: copies of
// them, or long ranks themselves. With parts, which take does not allow, it keeps no long rank in memory, and finds
// those that can be read in parts.
func (t *textSource) scan(take func(ranks, first int, next []*dag.Rank) error, parts bool) (*dag.Header, error) {
	h := &dag.Header{Unreleased: true}
	t.places, t.ends = nil, nil
	next, ops := []*dag.Rank(nil), 0
	hand := newHandover(take)
	defer hand.close()
	var seen [dag.NumKinds]bool
	var invalid error // the first error of a clock, after those of the syntax
	from := place{line: 1}
	batch := dag.Batch{}
	r := newTextReader(t.in.Name, t.o)
	r.reuse = true
	warnings := 0
	r.warn = func(message string, args ...any) {
		if warnings++; warnings > t.warned { // a scan whose ranks were refused may have warned
			t.warned = warnings
			t.o.Warn(message, args...)
		}
	}
	behind := int64(1) // the line behind the latest block
	closeBatch := func(last int) {
		from.to, batch.Last = min(r.at, t.in.Size), last // lines may end in a line feed that the file lacks
		h.Batches, t.places = append(h.Batches, batch), append(t.places, from)
		h.Ops += batch.Ops
		batch, from = dag.Batch{First: batch.Last}, place{from: r.at, line: behind}
	}
	add := func(rank *dag.Rank) {
		if t.ends == nil { // the number of ranks is known at the end of the first block
			t.ends = dag.NewMessageEnds(int(r.numRanks))
		}
		t.ends.Add(r.rank, rank)
		for _, kind := range rank.Kind {
			seen[kind] = true
		}
		h.Unreleased = h.Unreleased && rank.Release.Present() == 0
		batch.Ops += int64(rank.Len())
	}
	if parts && t.own.Clock != ClockStream {
		r.parts = &parting{ops: t.long, whole: true, clocked: t.own.Clock == ClockNone}
		r.parts.take = func(part dag.Run) error {
			if part.First == 0 && batch.First < r.rank { // a rank in parts is a batch of its own
				closeBatch(r.rank)
			}
			add(part.Ops)
			return nil
		}
		r.parts.end = func(lag int) error {
			behind = r.line
			batch.Deps, batch.StartDeps = r.block.deps.count(), r.block.start.count()
			if lag <= longestLag {
				from.lag = max(lag, 1)
			}
			closeBatch(r.rank + 1)
			return nil
		}
	}
	r.take = func(block *dag.Rank, marked int32) error {
		behind = r.line
		rank, err := t.own.restored(r.rank, block, marked)
		if err != nil {
			rank, invalid = block, cmp.Or(invalid, err)
		}
		add(rank)
		batch.Deps += int64(len(rank.Deps.Off))
		batch.StartDeps += int64(len(rank.StartDeps.Off))
		if r.at-from.from >= t.batch {
			closeBatch(r.rank + 1)
		}
		if take == nil {
			return nil
		}
		long := rank.Len() >= longRank
		if !long {
			rank = rank.Clone()
		}
		next = append(next, rank.Keep())
		if ops += rank.Len(); ops < onceOps && int64(r.rank) < r.numRanks-1 {
			return nil
		}
		group := next
		next, ops = nil, 0
		return hand.give(group, int(r.numRanks), r.rank+1-len(group), long)
	}
	err := r.read(io.NewSectionReader(t.in.At, 0, t.in.Size))
	if taken := hand.close(); taken != nil { // the reader stops because of it
		err = taken
	}
	if err != nil {
		return nil, err
	}
	if invalid != nil {
		return nil, format.InFile(t.in.Name, invalid)
	}
	if batch.First < r.rank {
		closeBatch(r.rank)
	}
	h.Kinds = dag.KindsOf(func(kind dag.Kind) bool { return seen[kind] })
	h.Ranks = int(r.numRanks)
	h.Comms = []dag.Comm{dag.World(h.Ranks)}
	return h, nil
}

// Disagreement returns [dag.Disagreement] of the trace. It reads the text again if its receives have wildcards, or if
// there is a disagreement.
func (t *textSource) Disagreement() (string, error) {
	h, err := t.Header()
	if err != nil || t.ends.Agree() {
		return "", err
	}
	t.ends.ByRank()
	read := t.NewReader(dag.Replay)
	for _, b := range h.Batches {
		if err := par.Interrupted(t.o.Context); err != nil {
			return "", fmt.Errorf("reading the trace: %w", err)
		}
		if t.InParts(b) {
			err := t.ReadParts(b, func(part dag.Run) error {
				t.ends.Add(b.First, part.Ops)
				return nil
			})
			if err != nil {
				return "", err
			}
			continue
		}
		ranks, err := read.Ranks(b)
		if err != nil {
			return "", err
		}
		for i, r := range ranks {
			t.ends.Add(b.First+i, r)
		}
	}
	return t.ends.Disagreement(), nil
}

// NewReader returns a reader. It reads all columns.
func (t *textSource) NewReader(dag.Columns) dag.Reader {
	r := &batchReader{source: t}
	r.text.take = r.take
	return r.read
}

// batchReader reads batches of a text.
type batchReader struct {
	source  *textSource
	text    textReader
	content []byte
	ranks   []*dag.Rank
	used    usedColumns // by the last long batch
}

func (r *batchReader) take(rank *dag.Rank, marked int32) error {
	restored, err := r.source.own.restored(r.text.rank, rank, marked)
	if err != nil {
		return err
	}
	r.ranks = append(r.ranks, restored.Keep())
	return nil
}

func (r *batchReader) read(b dag.Batch) ([]*dag.Rank, error) {
	t := r.source
	h, err := t.Header()
	if err != nil {
		return nil, err
	}
	k, found := h.Find(b)
	if !found {
		return nil, fmt.Errorf("expected a batch of the header, found ranks %d to %d", b.First, b.Last-1)
	}
	p := t.places[k]
	block, take := r.text.block, r.text.take
	r.text = *t.newReaderAt(p, b.First, h.Ranks)
	r.text.block, r.text.take = block, take
	r.text.reuse = b.Last == b.First+1 // of several ranks, each has columns of its own
	if r.text.reuse && b.Ops >= longBatch {
		r.text.block.reserve(&b, r.used)
	}
	r.ranks = r.ranks[:0]
	if err := r.parse(p, b.Last); err != nil {
		return nil, err
	}
	read := dag.Batch{First: b.First, Last: b.First + len(r.ranks)}
	for _, rank := range r.ranks {
		read.Ops += int64(rank.Len())
		read.Deps += int64(len(rank.Deps.Off))
		read.StartDeps += int64(len(rank.StartDeps.Off))
	}
	if read != h.Batches[k] {
		return nil, t.changed(b, read.Ops)
	}
	ranks := r.ranks
	if read.Ops >= longBatch { // the caller may need the memory before it reads on
		r.used = r.text.block.used()
		r.text, r.content, r.ranks = textReader{take: r.text.take}, nil, nil
	}
	return ranks, nil
}

// newReaderAt returns a reader of the blocks at a place, of which rank is the first.
func (t *textSource) newReaderAt(p place, rank, ranks int) *textReader {
	o := t.o
	o.Warn = func(string, ...any) {} // the first pass has warned
	r := newTextReader(t.in.Name, o)
	r.line, r.rank, r.numRanks = p.line, rank, int64(ranks)
	return r
}

// changed returns the error about a batch with another number of ops or other dependencies than in the first pass.
func (t *textSource) changed(b dag.Batch, ops int64) error {
	return format.FileErrorf(t.in.Name, "expected %d ops in the blocks of ranks %d to %d, and their dependencies, as "+
		"when the file was read first, found %d; the file changed during the conversion", b.Ops, b.First, b.Last-1, ops)
}

// parse parses the blocks at a place, of ranks up to last-1.
func (r *batchReader) parse(p place, last int) error {
	n := p.to - p.from
	section := io.NewSectionReader(r.source.in.At, p.from, n)
	if n > longBlock {
		if err := format.EachLines(r.source.o.Context, section, r.text.parse); err != nil {
			return err
		}
	} else {
		r.content = slices.Grow(r.content[:0], int(n)+1)[:n+1]
		if _, err := io.ReadFull(section, r.content[:n]); err != nil {
			return format.FileErrorf(r.source.in.Name, "reading at offset %d: %w", p.from, err)
		}
		r.content[n] = '\n'
		if err := r.text.parse(r.content); err != nil {
			return err
		}
	}
	if r.text.rank < last { // the file ends within the last block
		return r.text.finishBlock()
	}
	return nil
}

// handover passes ranks to a function on a goroutine of its own.
type handover struct {
	groups chan group
	taken  chan struct{} // receives after each group that is waited for
	done   chan struct{}
	err    error // of the function; after done
	once   sync.Once
}

// group is the ranks of a trace from first on.
type group struct {
	ranks []*dag.Rank
	of    int // number of ranks of the trace
	first int
	wait  bool // give waits until the function has taken them
}

// errTaken stops reading after an error of the function.
var errTaken = errors.New("taking ranks failed")

// newHandover returns a handover to a function; nil: it is not used.
func newHandover(take func(ranks, first int, next []*dag.Rank) error) *handover {
	h := &handover{groups: make(chan group, 1), taken: make(chan struct{}, 1), done: make(chan struct{})}
	if take == nil {
		close(h.done)
		return h
	}
	go func() {
		defer close(h.done)
		for g := range h.groups {
			if h.err = take(g.of, g.first, g.ranks); h.err != nil {
				return
			}
			if g.wait {
				h.taken <- struct{}{}
			}
		}
	}()
	return h
}

// give passes ranks on. With wait, the function has taken them when give returns, so that the caller may reuse their
// memory.
func (h *handover) give(ranks []*dag.Rank, of, first int, wait bool) error {
	select {
	case h.groups <- group{ranks, of, first, wait}:
	case <-h.done:
		return errTaken
	}
	if wait {
		select {
		case <-h.taken:
		case <-h.done:
			return errTaken
		}
	}
	return nil
}

// close waits until the function has taken all ranks, and returns its error.
func (h *handover) close() error {
	h.once.Do(func() { close(h.groups) })
	<-h.done
	return h.err
}
