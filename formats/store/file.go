package store

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"strconv"
	"sync"

	"github.com/tracedag/tracedag/dag"
	"github.com/tracedag/tracedag/formats/format"
	"github.com/tracedag/tracedag/internal/parquet"
	"github.com/tracedag/tracedag/memory"
)

// File is an open store. Several goroutines may read its ranks in parallel.
type File struct {
	at     io.ReaderAt
	size   int64
	name   string
	leaves [numColumns]parquet.Leaf
	groups []group
	descr  *description
	header func() (*dag.Header, error) // created once
	spool  io.Closer                   // copy of a pipe; nil for a file
	ctx    context.Context             // carries the limit of memory; may be nil

	pagesEnd   int64    // offset of the footer
	version    string   // schema version; "": not stated
	newer      string   // the schema version, if newer than this program's
	unverified string   // why the file has no digest; "": it has one
	sums       []string // the checksums of each row group in the digest
}

// group is a row group of a file.
type group struct {
	number      int // in the footer
	rows        int
	first, last int32 // its ranks
	chunks      [numColumns]parquet.Chunk
	sums        [numColumns]uint32 // checksums of the chunks, if the file has a digest
}

// Limits on the counts in a file in proportion to its size, so that a small file cannot exhaust the memory. They
// exceed the best compression: row groups of this package need at least two bytes per thousand rows.
const (
	maxRowsPerByte = 1 << 11
	// maxEmptyRanks limits the number of ranks minus the number of ops, for readers and the writer.
	maxEmptyRanks = 1 << 20
)

// Open opens the store in the first size bytes of r, which must stay open while the File is in use. Errors contain
// name. Open reads only the footer.
func Open(r io.ReaderAt, size int64, name string) (*File, error) {
	f := &File{at: r, size: size, name: name}
	f.header = sync.OnceValues(f.makeHeader)
	err := guard(f.open)
	if err != nil {
		return nil, f.wrap(err)
	}
	return f, nil
}

// wrap adds the file's name to an error without one.
func (f *File) wrap(err error) error {
	if s := (*format.SyntaxError)(nil); errors.As(err, &s) {
		return err
	}
	return &format.FileError{File: f.name, Err: err}
}

// syntaxError returns an error at an offset of the file.
func (f *File) syntaxError(offset int64, expected, found string) error {
	return &format.SyntaxError{File: f.name, Offset: offset, Expected: expected, Found: found}
}

func (f *File) open() error {
	footer, offset, err := f.footer()
	if err != nil {
		return err
	}
	m, err := parquet.ReadFooter(footer)
	if err != nil {
		return f.syntaxError(offset, "a Parquet footer", err.Error())
	}
	f.pagesEnd = offset
	if err := f.checkDigest(m, footer, offset); err != nil {
		return err
	}
	keys := keyValues(m.Keys)
	minor, err := checkVersion(keys[keyVersion])
	if err != nil {
		return err
	}
	if minor > minorVersion {
		f.newer = keys[keyVersion]
	}
	if err := f.findColumns(m.Schema); err != nil {
		return err
	}
	if err := f.findGroups(m); err != nil {
		return err
	}
	if f.unverified != "" {
		if err := f.checkOverlap(); err != nil {
			return err
		}
	}
	if err := f.checkWhole(keys, minor); err != nil {
		return err
	}
	ranks, err := f.countRanks(keys)
	if err != nil {
		return err
	}
	f.version = keys[keyVersion]
	f.descr, err = describe(keys, ranks)
	return err
}

// Version returns the schema version of the file, "" if it states none, as files of other programs.
func (f *File) Version() string { return f.version }

// checkWhole checks that a file of this package, which states its number of ops, is complete: it has that many ops
// and all columns. Files of other programs may omit columns of zeros.
func (f *File) checkWhole(keys map[string]string, minor int) error {
	text, ok := keys[keyOps]
	if !ok {
		return nil
	}
	if n, err := strconv.ParseInt(text, 10, 64); err != nil || n != f.numOps() {
		return fmt.Errorf("%s: expected %d, the number of rows, found %q", keyOps, f.numOps(), text)
	}
	for i := range f.leaves {
		if f.leaves[i].Index < 0 && since(i) <= minor {
			return fmt.Errorf("expected a column %s, found none", columns[i].name)
		}
	}
	return nil
}

// footerEnd is the number of bytes after the footer: its length and the magic.
const footerEnd = 8

// footer returns the footer's bytes and their offset.
func (f *File) footer() ([]byte, int64, error) {
	const ends = footerEnd
	tail := make([]byte, ends)
	if f.size < int64(len(parquet.Magic))+ends {
		return nil, 0, f.syntaxError(0, "a Parquet file", fmt.Sprintf("%d bytes", f.size))
	}
	head := make([]byte, len(parquet.Magic))
	if err := f.read(head, 0); err != nil {
		return nil, 0, err
	}
	if string(head) != parquet.Magic {
		return nil, 0, f.syntaxError(0, strconv.Quote(parquet.Magic), strconv.Quote(string(head)))
	}
	if err := f.read(tail, f.size-ends); err != nil {
		return nil, 0, err
	}
	if string(tail[4:]) != parquet.Magic {
		return nil, 0, f.syntaxError(f.size-4, strconv.Quote(parquet.Magic)+" at the end of the file",
			strconv.Quote(string(tail[4:]))+"; the file may be incomplete")
	}
	n := int64(binary.LittleEndian.Uint32(tail))
	offset := f.size - ends - n
	if offset < int64(len(parquet.Magic)) {
		return nil, 0, f.syntaxError(f.size-ends, "the length of the footer", strconv.FormatInt(n, 10))
	}
	footer := make([]byte, n)
	return footer, offset, f.read(footer, offset)
}

// read fills b from an offset within the file.
func (f *File) read(b []byte, offset int64) error {
	n, err := f.at.ReadAt(b, offset)
	if n == len(b) {
		return nil
	}
	if err == io.EOF || err == nil {
		return f.syntaxError(offset+int64(n), fmt.Sprintf("%d more bytes", len(b)-n), "the end of the file")
	}
	return format.FileErrorf(f.name, "reading at offset %d: %w", offset, err)
}

// decoder is the state of decoding chunks, one at a time.
type decoder struct {
	*parquet.Decoder
	ranks rankReader
}

func newDecoder() *decoder {
	return &decoder{Decoder: parquet.NewDecoder()}
}

// decoders is a pool for all files, because the tables of a decoder are large and files may be small and many.
var decoders = newPool(newDecoder)

// pages passes the pages of a column of a row group to r.
func (f *File) pages(d *decoder, g *group, column int, r parquet.PageReader) error {
	raw, err := f.chunk(d, g, column)
	if err != nil {
		return err
	}
	return f.located(d.Pages(&g.chunks[column], raw, f.leaves[column], r))
}

// chunk reads the stored bytes of a chunk into memory of the decoder, and checks them against the digest.
func (f *File) chunk(d *decoder, g *group, column int) ([]byte, error) {
	c := &g.chunks[column]
	raw := d.Buffer(c.CompressedSize)
	if err := f.read(raw, c.Start()); err != nil {
		return nil, err
	}
	return raw, f.checkSum(g, column, raw)
}

// located adds the position in the file to an error about a chunk.
func (f *File) located(err error) error {
	if err == nil {
		return nil // avoids the allocation below
	}
	if e := (*parquet.Error)(nil); errors.As(err, &e) {
		return f.syntaxError(e.Offset, e.Expected, e.Found)
	}
	return err
}

// findColumns finds the columns in the schema by name.
func (f *File) findColumns(schema []parquet.Element) error {
	for i := range f.leaves {
		f.leaves[i].Index = -1
	}
	if len(schema) == 0 {
		return errors.New("expected a schema, found none")
	}
	byName := make(map[string]int, numColumns)
	for i, c := range columns {
		byName[c.name] = i
	}
	rest, index := schema[1:], 0
	for range schema[0].Children {
		if len(rest) == 0 {
			return errors.New("incomplete schema")
		}
		field := parquet.FieldSize(rest)
		if field == 0 {
			return errors.New("incomplete schema")
		}
		leaves := 0
		for _, e := range rest[:field] {
			if e.Children == 0 {
				leaves++
			}
		}
		if column, ok := byName[rest[0].Name]; ok {
			if f.leaves[column].Index >= 0 {
				return fmt.Errorf("column %s: expected one, found two", rest[0].Name)
			}
			l, err := newLeaf(columns[column].shape, rest[:field])
			if err != nil {
				return inColumn(rest[0].Name, err)
			}
			l.Index = index
			f.leaves[column] = l
		}
		index += leaves
		rest = rest[field:]
	}
	for _, column := range []int{colRank, colKind} {
		if f.leaves[column].Index < 0 {
			return fmt.Errorf("expected a column %s, as every tracedag store has, found none", columns[column].name)
		}
	}
	return nil
}

// newLeaf returns the layout of a column of the given shape in the elements of a field.
func newLeaf(s shape, field []parquet.Element) (parquet.Leaf, error) {
	l, err := parquet.NewLeaf(field)
	switch {
	case err != nil:
		return l, err
	case s == list && l.MaxRep != 1:
		return l, errors.New("expected a list")
	case s != list && len(field) > 1, s != list && l.MaxRep > 0:
		return l, errors.New("expected plain values, found lists or structures")
	case s == label || s == optText:
		if l.Type != parquet.ByteArray {
			return l, fmt.Errorf("expected strings, found %v", l.Type)
		}
	case l.Type != parquet.Int32 && l.Type != parquet.Int64:
		return l, fmt.Errorf("expected integers, found %v", l.Type)
	case !l.Integers:
		return l, errors.New("expected integers, found decimals, dates or times")
	}
	return l, nil
}

// findGroups checks the row groups and finds the ranks of each.
func (f *File) findGroups(m *parquet.Footer) error {
	limit, rows := f.size*maxRowsPerByte, int64(0)
	for i, g := range m.Groups {
		if g.Rows < 0 || g.Rows > math.MaxInt32 || rows+g.Rows > limit {
			return fmt.Errorf("row group %d: %d rows do not fit into a file of %d bytes", i, g.Rows, f.size)
		}
		rows += g.Rows
		if g.Rows == 0 {
			continue
		}
		out := group{number: i, rows: int(g.Rows)}
		if err := f.setSums(&out, len(g.Chunks)); err != nil {
			return err
		}
		for column := range numColumns {
			l := f.leaves[column]
			if l.Index < 0 {
				continue
			}
			if l.Index >= len(g.Chunks) {
				return fmt.Errorf("row group %d: expected a column %s, found none", i, columns[column].name)
			}
			c := g.Chunks[l.Index]
			if err := f.checkChunk(c, l, g.Rows); err != nil {
				return inColumn(fmt.Sprintf("%s of row group %d", columns[column].name, i), err)
			}
			out.chunks[column] = c
		}
		if err := f.findRanks(&out); err != nil {
			return err
		}
		if n := len(f.groups); n > 0 && f.groups[n-1].last > out.first {
			return fmt.Errorf("row group %d: expected rows sorted by rank, found rank %d after rank %d",
				i, out.first, f.groups[n-1].last)
		}
		f.groups = append(f.groups, out)
	}
	return nil
}

// checkChunk checks the footer's description of a chunk.
func (f *File) checkChunk(c parquet.Chunk, l parquet.Leaf, rows int64) error {
	start := c.Start()
	switch {
	case c.Type != l.Type:
		return fmt.Errorf("expected values of type %v, found %v", l.Type, c.Type)
	case c.Values < rows, l.MaxRep == 0 && c.Values != rows, c.Values > f.size*maxRowsPerByte, c.Values > math.MaxInt32:
		return fmt.Errorf("expected %d values, found %d", rows, c.Values)
	case start < int64(len(parquet.Magic)), c.CompressedSize < 0, start > f.pagesEnd,
		c.CompressedSize > f.pagesEnd-start:
		expected := fmt.Sprintf("%d bytes of pages before the footer at %d", c.CompressedSize, f.pagesEnd)
		return f.syntaxError(start, expected, "fewer")
	}
	return nil
}

// findRanks sets the first and last rank of a row group, from the statistics if present, else from the column.
func (f *File) findRanks(g *group) error {
	c := &g.chunks[colRank]
	width := c.Type.Width()
	if len(c.Min) == width && len(c.Max) == width && !f.leaves[colRank].Unsigned {
		first, last := statistic(c.Min), statistic(c.Max)
		if first >= 0 && first <= last && last < math.MaxInt32 {
			g.first, g.last = int32(first), int32(last)
			return nil
		}
	}
	g.last = math.MaxInt32
	d := decoders.get()
	defer decoders.put(d)
	runs, err := f.rankRuns(d, g)
	if err != nil {
		return err
	}
	g.first, g.last = runs[0].rank, runs[len(runs)-1].rank
	return nil
}

func statistic(b []byte) int64 {
	if len(b) == 4 {
		return int64(int32(binary.LittleEndian.Uint32(b)))
	}
	return int64(binary.LittleEndian.Uint64(b))
}

// countRanks returns the number of ranks in the metadata, or, without metadata, the number that the rows need.
func (f *File) countRanks(keys map[string]string) (int, error) {
	needed := int64(0)
	if n := len(f.groups); n > 0 {
		needed = int64(f.groups[n-1].last) + 1
	}
	ranks := needed
	if text, ok := keys[keyRanks]; ok {
		n, err := strconv.ParseInt(text, 10, 32)
		if err != nil || n < needed {
			return 0, fmt.Errorf("%s: expected a number of %d or more, found %q", keyRanks, needed, text)
		}
		ranks = n
	}
	if ops := f.numOps(); ranks > maxEmptyRanks+ops {
		return 0, fmt.Errorf("expected at most %d more ranks than ops, found %d ranks and %d ops", maxEmptyRanks, ranks,
			ops)
	}
	return int(ranks), nil
}

// Close releases the resources of Open. It does not close the reader given to Open.
func (f *File) Close() error {
	if f.spool == nil {
		return nil
	}
	return f.spool.Close()
}

// Header returns the header. The first call reads the pages of the kind column without decoding them.
func (f *File) Header() (*dag.Header, error) {
	return f.header()
}

func (f *File) makeHeader() (*dag.Header, error) {
	kinds, err := f.kinds()
	if err != nil {
		return nil, err
	}
	return &dag.Header{
		Meta: f.descr.Meta, Comms: f.descr.comms, Ranks: f.descr.ranks, Ops: f.numOps(), Kinds: kinds,
		Batches: f.batches(), Unreleased: f.unreleased(),
	}, nil
}

// unreleased reports whether the statistics of a file with a digest show that no op has a release time.
func (f *File) unreleased() bool {
	if f.unverified != "" {
		return false
	}
	for i := range f.groups {
		if b := f.Bounds(i, dag.FieldRelease); !b.Known || !b.None {
			return false
		}
	}
	return true
}

// numOps returns the number of ops of the trace.
func (f *File) numOps() int64 {
	n := int64(0)
	for i := range f.groups {
		n += int64(f.groups[i].rows)
	}
	return n
}

// batches divides all ranks into the shortest runs that share no row group. A program that reads batch by batch
// reads every row group once and needs memory for one batch.
func (f *File) batches() []dag.Batch {
	var batches []dag.Batch
	f.eachBatch(func(b dag.Batch, _ []group) { batches = append(batches, b) })
	return batches
}

// eachBatch calls do with each batch, in order, and its row groups.
func (f *File) eachBatch(do func(b dag.Batch, groups []group)) {
	b, first := dag.Batch{}, 0
	skip := func(to int) { // empty ranks
		for b.Ops == 0 && to-b.First > mostEmpty {
			b.Last = b.First + mostEmpty
			do(b, nil)
			b = dag.Batch{First: b.Last}
		}
	}
	for i := range f.groups {
		g := &f.groups[i]
		skip(int(g.first))
		b.Ops += int64(g.rows)
		b.Deps += g.chunks[colDeps].Values
		b.StartDeps += g.chunks[colStartDeps].Values
		if i+1 < len(f.groups) && f.groups[i+1].first == g.last {
			continue
		}
		b.Last = int(g.last) + 1
		do(b, f.groups[first:i+1])
		b, first = dag.Batch{First: b.Last}, i+1
	}
	skip(f.descr.ranks)
	if b.First < f.descr.ranks {
		b.Last = f.descr.ranks
		do(b, nil)
	}
}

// mostEmpty is the maximum number of empty ranks at the start of a batch; they need memory, too.
const mostEmpty = 1 << 12

// ReadAll reads the whole trace, all columns of all batches in parallel.
func (f *File) ReadAll() (*dag.Trace, error) {
	if err := memory.CheckTrace(f.ctx, &dag.Header{Ranks: f.descr.ranks, Ops: f.numOps()}); err != nil {
		return nil, f.wrap(err)
	}
	ranks, err := f.ReadRanks(0, f.descr.ranks)
	if err != nil {
		return nil, err
	}
	return &dag.Trace{Meta: f.descr.Meta, Comms: f.descr.comms, Ranks: ranks}, nil
}
