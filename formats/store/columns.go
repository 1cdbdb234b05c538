package store

// Decoding of columns for [File.ReadRanks] and [File.NewReader]: decoding of values in all page types, and
// transfer to ranks.

import (
	"errors"
	"fmt"
	"slices"
	"unsafe"

	"github.com/tracedag/tracedag/dag"
	"github.com/tracedag/tracedag/internal/cpu"
	"github.com/tracedag/tracedag/internal/parquet"
)

// columnReader reads a column of blocks sequentially into memory that it reuses. A decoded block is valid until
// the next read.
type columnReader interface {
	of(c chunkReader)
	read(d *decoder, b *block) error
	// deliver sets a column of rank k of the block's ranks with rows to the given rows. Ranks must be delivered in
	// order.
	deliver(to dag.Values, k int, rows rows)
	// outOfRange reports whether the block may have a value outside the range of the field.
	outOfRange() bool
	// tidy releases memory that the delivered columns do not use.
	tidy()

	// share makes the column use memory that other columns use after pack.
	share(m *sharedMemory)
	// pack makes the decoded block compact. Before deliver, open then opens rows of it, from which the rows of deliver
	// count. They are valid until the next read or open.
	pack()
	open(rows rows)
}

// columnSet is the readers of the model's fields.
type columnSet struct {
	readers [numColumns]columnReader // nil: the file lacks the column, or it is not wanted
}

// newColumnSets returns n sets of readers of the wanted columns that the file has.
func newColumnSets(f *File, wanted dag.Columns, n int) []columnSet {
	sets, m := make([]columnSet, n), newReaderMemory(n)
	for i := range sets {
		sets[i].fill(f, wanted, m)
	}
	return sets
}

// fill creates the readers in the memory of m.
func (c *columnSet) fill(f *File, wanted dag.Columns, m *readerMemory) {
	for id := range dag.Fields {
		column := fieldColumn + id
		if f.leaves[column].Index < 0 || !wanted.Has(dag.FieldID(id)) {
			continue
		}
		r := m.reader(dag.Fields[id].Of(&m.rank), dag.Fields[id].Limit(len(f.descr.comms), &f.descr.Meta))
		r.of(chunkReader{file: f, column: column, leaf: f.leaves[column]})
		c.readers[column] = r
	}
}

// readerMemory is the readers of columnSets, with one allocation per type of reader.
type readerMemory struct {
	rank dag.Rank // without values, to determine the types of its columns

	kind    []valueReader[dag.Kind]
	subkind []valueReader[dag.Subkind]
	int32s  []valueReader[int32]
	int64s  []valueReader[int64]
	times   []valueReader[dag.Time]
	narrow  []narrowReader
	lists   []listReader
	texts   []textReader
	stamps  []timesReader
}

// newReaderMemory returns the memory of n columnSets.
func newReaderMemory(n int) *readerMemory {
	return &readerMemory{
		kind: make([]valueReader[dag.Kind], n), subkind: make([]valueReader[dag.Subkind], n),
		int32s: make([]valueReader[int32], n*fieldCounts.int32s),
		int64s: make([]valueReader[int64], n*fieldCounts.int64s),
		times:  make([]valueReader[dag.Time], n*fieldCounts.times),
		narrow: make([]narrowReader, n*fieldCounts.narrow), lists: make([]listReader, n*fieldCounts.lists),
		texts: make([]textReader, n*fieldCounts.texts), stamps: make([]timesReader, n*fieldCounts.stamps),
	}
}

// fieldCounts is the number of fields of each type.
var fieldCounts = func() (n struct{ int32s, int64s, times, narrow, lists, texts, stamps int }) {
	for _, f := range dag.Fields {
		switch f.Of(new(dag.Rank)).(type) {
		case *dag.Column[int32]:
			n.int32s++
		case *dag.Column[int64]:
			n.int64s++
		case *dag.Column[dag.Time]:
			n.times++
		case *dag.Narrow:
			n.narrow++
		case *dag.Edges:
			n.lists++
		case *dag.Text:
			n.texts++
		case *dag.Times:
			n.stamps++
		}
	}
	return n
}()

// reader returns a reader for columns of a type, whose values must be below limit if that is not 0.
func (m *readerMemory) reader(column dag.Values, limit uint64) columnReader {
	switch column.(type) {
	case *dag.Column[dag.Kind]:
		r := next(&m.kind)
		r.parse, r.required = dag.ParseKind, true
		return r
	case *dag.Column[dag.Subkind]:
		r := next(&m.subkind)
		r.parse = dag.ParseSubkind
		return r
	case *dag.Column[int32]:
		r := next(&m.int32s)
		r.limit = limit
		return r
	case *dag.Column[int64]:
		r := next(&m.int64s)
		r.limit = limit
		return r
	case *dag.Column[dag.Time]:
		r := next(&m.times)
		r.limit = limit
		return r
	case *dag.Narrow:
		r := next(&m.narrow)
		r.limit(limit)
		return r
	case *dag.Edges:
		return next(&m.lists)
	case *dag.Text:
		return next(&m.texts)
	case *dag.Times:
		r := next(&m.stamps)
		r.absent = dag.Unmeasured
		return r
	}
	panic(fmt.Sprintf("no reader of columns of type %T", column))
}

// next removes and returns the first element of s.
func next[T any](s *[]T) *T {
	first := &(*s)[0]
	*s = (*s)[1:]
	return first
}

// deliver sets the columns of rank k of the block's ranks with rows. Ranks must be delivered in order. Columns
// without a reader stay unchanged.
func (c *columnSet) deliver(r *dag.Rank, k int, rows rows) {
	for id := range dag.Fields {
		if reader := c.readers[fieldColumn+id]; reader != nil {
			reader.deliver(dag.Fields[id].Of(r), k, rows)
		}
	}
}

// suspect reports whether the block may have invalid values.
func (c *columnSet) suspect() bool {
	return slices.ContainsFunc(c.readers[:], func(r columnReader) bool { return r != nil && r.outOfRange() })
}

// sameLists reports whether rank k of the block has as many rows as the rank before, and the same lists in all columns.
func (c *columnSet) sameLists(k int) bool {
	same := false
	for _, reader := range c.readers {
		if r, is := reader.(*listReader); is && len(r.offsets) > 0 {
			if !r.like.same(k) {
				return false
			}
			same = true
		}
	}
	return same
}

// chunkReader is the context of a column reader in the file.
type chunkReader struct {
	file   *File
	column int
	leaf   parquet.Leaf
}

func (c *chunkReader) of(column chunkReader) {
	*c = column
}

// pages reads the pages of a row group.
func (c *chunkReader) pages(d *decoder, g *group, r parquet.PageReader) error {
	return c.file.pages(d, g, c.column, r)
}

// buffer is the values of rows that are set in order. It allocates no memory before the first value that is not
// absent.
type buffer[T parquet.Number] struct {
	values []T
	rows   int
	most   int // rows to allocate memory for, if more
	absent T
	used   bool // values has all rows set so far; if false, all rows are absent

	shared *sharedMemory // memory of values until pack, unless they are bytes, and of rows opened; nil: no such memory
	packed packedColumn  // all rows after pack
	bytes  []T           // those instead
}

// begin empties the buffer for the given number of rows.
func (b *buffer[T]) begin(rows int, absent T) {
	b.rows, b.absent, b.used = rows, absent, false
}

// room returns the memory for the values of rows first to last-1, the next to set.
func (b *buffer[T]) room(first, last int) []T {
	if !b.used {
		switch {
		case b.shared == nil:
		case isByte[T]():
			b.values = b.bytes
		default:
			b.values = room[T](&b.shared.values, b.rows)
		}
		if cap(b.values) < b.rows {
			b.values = make([]T, b.rows, max(b.rows, b.most))
			if b.most > 0 { // it is reused
				cpu.InHugePages(b.values)
			}
		}
		b.values = b.values[:b.rows]
		parquet.Fill(b.values[:first], b.absent)
		b.used = true
	}
	return b.values[first:last]
}

// skip makes rows first to last-1, the next to set, absent.
func (b *buffer[T]) skip(first, last int) {
	if b.used {
		parquet.Fill(b.values[first:last], b.absent)
	}
}

// pack makes the rows compact, unless they are bytes.
func (b *buffer[T]) pack() {
	switch {
	case !b.used:
	case isByte[T]():
		b.bytes = b.values
	default:
		b.packed, b.values = packValues(b.values, b.packed.data), nil
	}
}

// open sets values to some rows after pack.
func (b *buffer[T]) open(rows rows) {
	if !b.used {
		return
	}
	b.values = take[T](b.shared, rows.last-rows.first)
	if isByte[T]() {
		copy(b.values, b.bytes[rows.first:])
	} else {
		unpack(&b.packed, b.values, rows.first)
	}
}

// isByte reports whether values of the type are bytes.
func isByte[T parquet.Number]() bool { return unsafe.Sizeof(T(0)) == 1 }

// sharedMemory is memory for the values of a block, which columns use one after the other until pack, and then for
// those of the rows opened.
type sharedMemory struct {
	values []int64
	taken  int // of values, by rows opened
}

// take returns memory for n values of rows opened.
func take[T parquet.Number](m *sharedMemory, n int) []T {
	words := (n*int(unsafe.Sizeof(T(0))) + 7) / 8
	if words > cap(m.values)-m.taken {
		return make([]T, n)
	}
	rest := m.values[m.taken:m.taken]
	m.taken += words
	return room[T](&rest, n)[:n]
}

// value is a type whose values need no further memory.
type value interface{ ~uint8 | ~int32 | ~int64 }

// valueReader reads a column with one value per row.
type valueReader[T value] struct {
	chunkReader
	absent   T                        // value of NULL
	required bool                     // NULL is an error, and the values are needed even if all are absent
	limit    uint64                   // values must be in 0..limit-1; 0: no limit
	parse    func(s string) (T, bool) // parser for columns of strings; nil for integers

	block   buffer[T]
	suspect bool // the block may have a value beyond the limit
	unknown unknownLabels
	bounds  bounds // of the current row group

	group   buffer[T] // a row group of which the block needs only a part
	numbers []T       // values of the dictionary
	dense   []T       // values of a page with NULLs
	like    likeRanks

	decoder *decoder
	out     *buffer[T] // destination of the current row group
	row     int        // its next row
	loaded  bool       // whether the current chunk has a dictionary
}

func (r *valueReader[T]) read(d *decoder, b *block) error {
	r.block.most = b.mostRows
	r.block.begin(b.rows, r.absent)
	r.suspect, r.decoder, r.unknown = false, d, r.unknown[:0]
	r.like.begin(b)
	at := 0
	for i := range b.parts {
		p := &b.parts[i]
		n := p.last - p.first
		if err := r.readPart(p, at); err != nil {
			return err
		}
		if err := r.checkLabels(b, at, at+n); err != nil {
			return err
		}
		at += n
	}
	return nil
}

// readPart reads a part of a row group into the block, starting at the given row.
func (r *valueReader[T]) readPart(p *part, row int) error {
	if p.whole() {
		return r.readGroup(p.group, &r.block, row)
	}
	r.group.begin(p.group.rows, r.absent)
	if err := r.readGroup(p.group, &r.group, 0); err != nil {
		return err
	}
	after := row + p.last - p.first
	if r.group.used {
		copy(r.block.room(row, after), r.group.values[p.first:p.last])
	} else {
		r.block.skip(row, after)
	}
	return nil
}

// readGroup reads a row group into a buffer, starting at the given row.
func (r *valueReader[T]) readGroup(g *group, out *buffer[T], row int) error {
	r.out, r.row = out, row
	r.numbers, r.loaded = r.numbers[:0], false
	r.bounds = r.file.boundsOf(&g.chunks[r.column], r.leaf)
	if err := r.pages(r.decoder, g, r); err != nil {
		return err
	}
	return r.bounds.checkNulls()
}

func (r *valueReader[T]) Dictionary(body []byte, n int) (err error) {
	r.loaded = true
	if r.parse != nil {
		r.numbers, err = parquet.LabelDictionary(r.numbers, body, n, r.label)
		return err
	}
	r.numbers, err = parquet.IntegerDictionary(r.numbers, body, n, r.leaf)
	for _, v := range r.numbers {
		r.check(uint64(v))
	}
	return err
}

// check marks the block as suspect if a value, or the bitwise or of several, exceeds the limit.
func (r *valueReader[T]) check(all uint64) {
	if r.limit > 0 && all >= r.limit {
		r.suspect = true
	}
}

func (r *valueReader[T]) Page(p *parquet.Page) error {
	first := r.row
	r.row += p.N
	if p.HasDictionary() && !r.loaded {
		return errors.New("a page without a dictionary")
	}
	switch {
	case r.required:
	case p.AllNull(r.leaf):
		r.bounds.found += int64(p.N)
		r.out.skip(first, r.row)
		return nil
	case p.HasDictionary() && len(r.numbers) == 1 && r.numbers[0] == r.absent:
		r.bounds.nulls = -1 // they are not told from absent values
		r.out.skip(first, r.row)
		return nil
	}
	dst := r.out.room(first, r.row)
	if r.leaf.MaxDef == 0 {
		if numbers, ok := r.comparable(p); ok {
			return r.decodeRanks(dst, numbers, first)
		}
		return r.decode(dst, p)
	}
	present, err := r.decoder.Present(p, r.leaf)
	if err != nil {
		return err
	}
	return r.scatter(dst, p, present)
}

// decode decodes the len(dst) values of a page.
func (r *valueReader[T]) decode(dst []T, p *parquet.Page) error {
	if r.parse != nil {
		return parquet.Labels(r.decoder.Decoder, dst, p, r.numbers, r.label)
	}
	all, err := parquet.Integers(r.decoder.Decoder, dst, p, r.leaf, r.numbers)
	if err != nil {
		return err
	}
	r.check(uint64(all))
	return inBounds(&r.bounds, dst)
}

// comparable returns the dictionary numbers of a page if ranks of the block may share values and can be compared by
// them.
func (r *valueReader[T]) comparable(p *parquet.Page) (parquet.Numbers, bool) {
	// The check of unknown labels reads all rows.
	if !r.like.enabled || r.out != &r.block || len(r.unknown) > 0 {
		return parquet.Numbers{}, false
	}
	return p.Numbers(p.N)
}

// decodeRanks decodes the values of a page whose first row is the given row of the block. The rows of ranks with the
// numbers of the rank before stay undefined; deliver takes those of the other rank.
func (r *valueReader[T]) decodeRanks(dst []T, numbers parquet.Numbers, first int) error {
	return r.like.each(first, first+len(dst), func(of, before rows, comparable bool) (bool, error) {
		n := of.last - of.first
		if comparable && numbers.Same(of.first-first, before.first-first, n) {
			return true, nil
		}
		out := dst[of.first-first:][:n]
		if err := parquet.LookUp(out, numbers, of.first-first, r.numbers); err != nil {
			return false, err
		}
		return false, inBounds(&r.bounds, out)
	})
}

// scatter decodes the values of a page to the rows where they are present.
func (r *valueReader[T]) scatter(dst []T, p *parquet.Page, present []uint8) error {
	count := 0
	for _, one := range present {
		count += int(one)
	}
	r.bounds.found += int64(len(present) - count)
	absent := r.absent
	if r.required && count < len(present) {
		null, err := r.unknown.number(nullLabel)
		if err != nil {
			return err
		}
		absent = T(null)
	}
	r.dense = parquet.Resize(r.dense, count)
	if err := r.decode(r.dense, p); err != nil {
		return err
	}
	k := 0
	for i, one := range present {
		dst[i] = absent
		if one != 0 {
			dst[i] = r.dense[k]
			k++
		}
	}
	return nil
}

func (r *valueReader[T]) tidy() {
	r.numbers, r.dense, r.group = nil, nil, buffer[T]{}
}

func (r *valueReader[T]) share(m *sharedMemory) { r.block.shared = m }
func (r *valueReader[T]) pack()                 { r.block.pack() }
func (r *valueReader[T]) open(rows rows)        { r.block.open(rows) }

func (r *valueReader[T]) outOfRange() bool {
	return r.suspect
}

func (r *valueReader[T]) deliver(to dag.Values, k int, rows rows) {
	*to.(*dag.Column[T]) = r.values(k, rows)
}

// timesReader reads a column of measured times.
type timesReader struct{ valueReader[dag.Time] }

func (r *timesReader) deliver(to dag.Values, k int, rows rows) {
	*to.(*dag.Times) = r.values(k, rows)
}

// values returns the values of rank k of the block with the given rows, without trailing absent values.
func (r *valueReader[T]) values(k int, of rows) []T {
	if !r.block.used {
		return nil
	}
	of = r.like.rows(k, of)
	values := r.block.values[of.first:of.last:of.last]
	if r.required {
		return values
	}
	last := len(values)
	for last > 0 && values[last-1] == r.absent {
		last--
	}
	if last == 0 {
		return nil
	}
	return values[:last:last]
}

// narrowReader reads a column of a [dag.Narrow]: one byte per value until a block has a larger value.
type narrowReader struct {
	small  valueReader[uint8]
	wide   valueReader[int32]
	isWide bool
}

func (r *narrowReader) of(c chunkReader) {
	r.small.of(c)
	r.wide.of(c)
}

func (r *narrowReader) limit(n uint64) {
	r.small.limit, r.wide.limit = n, n
}

func (r *narrowReader) read(d *decoder, b *block) error {
	if !r.isWide {
		if err := r.small.read(d, b); err == nil {
			return nil
		}
		r.isWide = true // other errors occur again in the wide reader
	}
	return r.wide.read(d, b)
}

func (r *narrowReader) tidy() {
	r.small.tidy()
	r.wide.tidy()
	if r.isWide {
		r.small.block = buffer[uint8]{}
	}
}

func (r *narrowReader) share(m *sharedMemory) {
	r.small.share(m)
	r.wide.share(m)
}

func (r *narrowReader) pack() {
	if r.isWide {
		r.wide.pack()
	} else {
		r.small.pack()
	}
}

func (r *narrowReader) open(rows rows) {
	if r.isWide {
		r.wide.open(rows)
	} else {
		r.small.open(rows)
	}
}

func (r *narrowReader) values(k int, of rows) dag.Narrow {
	if r.isWide {
		return dag.NewNarrow(nil, r.wide.values(k, of))
	}
	return dag.NewNarrow(r.small.values(k, of), nil)
}

func (r *narrowReader) deliver(to dag.Values, k int, rows rows) {
	*to.(*dag.Narrow) = r.values(k, rows)
}

func (r *narrowReader) outOfRange() bool {
	return r.small.suspect || r.wide.suspect
}

// textReader reads a column of optional strings.
type textReader struct {
	chunkReader
	texts []dag.Text // of the ranks of the block; nil: none

	block   *block
	decoder *decoder
	part    *part
	at      int      // row of the block at which the part begins
	row     int      // next row of its group
	rank    int      // current rank of the block
	strings []string // values of the dictionary
	bounds  bounds   // of the current row group
}

func (r *textReader) read(d *decoder, b *block) error {
	r.texts, r.block, r.decoder, r.at, r.rank = nil, b, d, 0, 0
	for i := range b.parts {
		r.part, r.row, r.strings = &b.parts[i], 0, nil
		r.bounds = r.file.boundsOf(&r.part.group.chunks[r.column], r.leaf)
		if err := r.pages(d, r.part.group, r); err != nil {
			return err
		}
		if err := r.bounds.checkNulls(); err != nil {
			return err
		}
		r.at += r.part.last - r.part.first
	}
	return nil
}

func (r *textReader) Dictionary(body []byte, n int) error {
	r.strings = make([]string, n)
	return parquet.PlainTexts(body, n, func(i int, s string) error {
		r.strings[i] = string([]byte(s))
		return nil
	})
}

func (r *textReader) Page(p *parquet.Page) error {
	first, l := r.row, r.leaf
	r.row += p.N
	if p.AllNull(l) {
		r.bounds.found += int64(p.N)
		return nil
	}
	var rows []int // rows of the values in the group
	if l.MaxDef > 0 {
		present, err := r.decoder.Present(p, l)
		if err != nil {
			return err
		}
		for i, one := range present {
			if one != 0 {
				rows = append(rows, first+i)
			}
		}
		r.bounds.found += int64(p.N - len(rows))
	} else {
		for i := range p.N {
			rows = append(rows, first+i)
		}
	}
	return parquet.Texts(r.decoder.Decoder, len(rows), p, r.strings, func(i int, s string) error {
		if rows[i] < r.part.first || rows[i] >= r.part.last {
			return nil
		}
		return r.append(r.at+rows[i]-r.part.first, s)
	})
}

// append sets the string of a row of the block.
func (r *textReader) append(row int, s string) error {
	if r.texts == nil {
		r.texts = make([]dag.Text, len(r.block.ranks))
	}
	for row >= r.block.ranks[r.rank].last {
		r.rank++
	}
	if !r.texts[r.rank].Append(row-r.block.ranks[r.rank].first, s) {
		return errors.New("more than 4 GiB of strings in a rank")
	}
	return nil
}

func (r *textReader) tidy() {
	r.strings = nil
}

func (r *textReader) share(*sharedMemory) {}
func (r *textReader) pack()               {}
func (r *textReader) open(rows)           {}

func (r *textReader) outOfRange() bool {
	return false
}

func (r *textReader) deliver(to dag.Values, k int, _ rows) {
	*to.(*dag.Text) = r.text(k)
}

// text returns the strings of rank k of the block.
func (r *textReader) text(k int) dag.Text {
	if r.texts == nil {
		return dag.Text{}
	}
	return r.texts[k]
}
