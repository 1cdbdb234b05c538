package store

// Decoding of columns, for [File.ReadRanks] and [File.NewReader] alike: of their values, whatever the pages that they are
// in, and into ranks.

import (
	"errors"
	"fmt"
	"slices"

	"github.com/tracedag/tracedag/dag"
	"github.com/tracedag/tracedag/internal/parquet"
)

// columnReader reads a column of blocks, one after the other, into memory that it keeps: what it makes of a block is
// valid until it reads the next.
type columnReader interface {
	read(d *decoder, b *block) error
	// tidy lets go of memory that what was made of the block is not in.
	tidy()
}

// columnSet is readers of all columns.
type columnSet struct {
	kind                         valueReader[dag.Kind]
	subkind                      valueReader[dag.Subkind]
	bytes, recvBytes, tag, flops valueReader[int64]
	peer                         valueReader[int32]
	duration, release            valueReader[dag.Time]
	measuredStart, measuredEnd   valueReader[dag.Time]
	comm, stream, nic, job       narrowReader
	host, dims, priority         narrowReader
	deps, startDeps              listReader
	dependents, startDependents  listReader
	name, attrs                  textReader

	readers [numColumns]columnReader // nil: the file does not have the column, or it is read otherwise
}

// newColumnSet returns readers of the columns that the file has, except those named.
func newColumnSet(f *File, except ...int) *columnSet {
	c := &columnSet{}
	c.kind.parse, c.kind.required = parseKind, true
	c.subkind.parse = parseSubkind
	for _, v := range []*valueReader[int64]{&c.bytes, &c.recvBytes, &c.flops} {
		v.limit = 1 << 63
	}
	c.duration.limit, c.release.limit = 1<<63, 1<<63
	c.measuredStart.absent, c.measuredEnd.absent = dag.Unmeasured, dag.Unmeasured
	c.comm.limit(uint64(max(1, len(f.descr.comms))))
	c.job.limit(uint64(max(1, len(f.descr.Jobs))))
	c.stream.limit(1 << 31)
	c.nic.limit(1 << 31)
	c.host.limit(1 << 31)
	c.dims.limit(1 << 31)
	for column, r := range [numColumns]interface {
		columnReader
		of(c chunkReader)
	}{
		colKind: &c.kind, colSubkind: &c.subkind, colBytes: &c.bytes, colRecvBytes: &c.recvBytes, colPeer: &c.peer,
		colTag: &c.tag, colComm: &c.comm, colDuration: &c.duration, colFlops: &c.flops, colRelease: &c.release,
		colStream: &c.stream, colNIC: &c.nic, colJob: &c.job, colHost: &c.host, colDims: &c.dims, colPriority: &c.priority,
		colDeps: &c.deps, colStartDeps: &c.startDeps, colDependents: &c.dependents,
		colStartDependents: &c.startDependents, colName: &c.name, colAttrs: &c.attrs,
		colMeasuredStart: &c.measuredStart, colMeasuredEnd: &c.measuredEnd,
	} {
		if r == nil || f.leaves[column].Index < 0 || slices.Contains(except, column) {
			continue
		}
		r.of(chunkReader{file: f, column: column, leaf: f.leaves[column]})
		c.readers[column] = r
	}
	return c
}

// deliver sets r to rank k of those with rows in the block that was read, whose rows are given. Ranks must be delivered
// in order.
func (c *columnSet) deliver(r *dag.Rank, k int, rows rows) {
	r.Kind = c.kind.values(rows)
	r.Subkind = c.subkind.values(rows)
	r.Bytes = c.bytes.values(rows)
	r.RecvBytes = c.recvBytes.values(rows)
	r.Peer = c.peer.values(rows)
	r.Tag = c.tag.values(rows)
	r.Comm = c.comm.values(rows)
	r.Duration = c.duration.values(rows)
	r.Flops = c.flops.values(rows)
	r.Release = c.release.values(rows)
	r.Stream = c.stream.values(rows)
	r.NIC = c.nic.values(rows)
	r.Job = c.job.values(rows)
	r.Host = c.host.values(rows)
	r.Dims = c.dims.values(rows)
	r.Priority = c.priority.values(rows)
	r.Deps = c.deps.edges(rows)
	r.StartDeps = c.startDeps.edges(rows)
	r.Order = c.dependents.edges(rows)
	r.StartOrder = c.startDependents.edges(rows)
	r.Name = c.name.text(k)
	r.Attrs = c.attrs.text(k)
	r.MeasuredStart = c.measuredStart.values(rows)
	r.MeasuredEnd = c.measuredEnd.values(rows)
}

// suspect reports whether the block that was read may have values that no file may have.
func (c *columnSet) suspect() bool {
	return c.bytes.suspect || c.recvBytes.suspect || c.flops.suspect || c.duration.suspect || c.release.suspect ||
		c.comm.suspect() || c.stream.suspect() || c.nic.suspect() || c.job.suspect() ||
		c.host.suspect() || c.dims.suspect()
}

// chunkReader is what a reader of a column has to know of the file.
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
	return c.file.pages(d, &g.chunks[c.column], c.leaf, r)
}

// buffer is the values of rows that are set in order, in memory that is not touched before there is a value that is not
// absent.
type buffer[T parquet.Number] struct {
	values []T
	rows   int
	absent T
	used   bool // values has all rows, those set so far with their values; else they all are absent
}

// begin empties the buffer for the given number of rows.
func (b *buffer[T]) begin(rows int, absent T) {
	b.rows, b.absent, b.used = rows, absent, false
}

// room returns rows first to last-1, the next to be set, for their values.
func (b *buffer[T]) room(first, last int) []T {
	if !b.used {
		b.values = parquet.Resize(b.values, b.rows)
		parquet.Fill(b.values[:first], b.absent)
		b.used = true
	}
	return b.values[first:last]
}

// skip makes rows first to last-1, the next to be set, absent.
func (b *buffer[T]) skip(first, last int) {
	if b.used {
		parquet.Fill(b.values[first:last], b.absent)
	}
}

// valueReader reads a column of one value a row.
type valueReader[T parquet.Number] struct {
	chunkReader
	absent   T                         // what NULL stands for
	required bool                      // NULL is an error, and the values are wanted even if all are absent
	limit    uint64                    // values must be in 0..limit-1; 0: any will do
	parse    func(s string) (T, error) // of the strings of which the column is, if it is not of integers

	block   buffer[T]
	suspect bool // a value of the block may be beyond the limit

	group   buffer[T] // of a row group of which the block takes a part only
	numbers []T       // the values of the dictionary
	dense   []T       // the values of a page with NULLs

	decoder *decoder
	out     *buffer[T] // where the row group at hand goes
	row     int        // the row of it that is next
	loaded  bool       // the chunk at hand has a dictionary
}

func (r *valueReader[T]) read(d *decoder, b *block) error {
	r.block.begin(b.rows, r.absent)
	r.suspect, r.decoder = false, d
	at := 0
	for i := range b.parts {
		p := &b.parts[i]
		n := p.last - p.first
		if p.whole() {
			if err := r.readGroup(p.group, &r.block, at); err != nil {
				return err
			}
			at += n
			continue
		}
		r.group.begin(p.group.rows, r.absent)
		if err := r.readGroup(p.group, &r.group, 0); err != nil {
			return err
		}
		if r.group.used {
			copy(r.block.room(at, at+n), r.group.values[p.first:p.last])
		} else {
			r.block.skip(at, at+n)
		}
		at += n
	}
	return nil
}

// readGroup reads a row group into the rows of a buffer from the given one on.
func (r *valueReader[T]) readGroup(g *group, out *buffer[T], row int) error {
	r.out, r.row = out, row
	r.numbers, r.loaded = r.numbers[:0], false
	return r.pages(r.decoder, g, r)
}

func (r *valueReader[T]) Dictionary(body []byte, n int) (err error) {
	r.loaded = true
	if r.parse != nil {
		r.numbers, err = parquet.LabelDictionary(r.numbers, body, n, r.parse)
		return err
	}
	r.numbers, err = parquet.IntegerDictionary(r.numbers, body, n, r.leaf)
	for _, v := range r.numbers {
		r.check(uint64(v))
	}
	return err
}

// check marks the block as suspect if a value, or all bits of several together, are beyond the limit.
func (r *valueReader[T]) check(all uint64) {
	if r.limit > 0 && all >= r.limit {
		r.suspect = true
	}
}

func (r *valueReader[T]) Page(p *parquet.Page) error {
	first := r.row
	r.row += p.N
	if p.HasDictionary() && !r.loaded {
		return errors.New("it has no dictionary")
	}
	if r.allAbsent(p) {
		r.out.skip(first, r.row)
		return nil
	}
	dst := r.out.room(first, r.row)
	if r.leaf.MaxDef == 0 {
		return r.decode(dst, p)
	}
	present, err := r.decoder.Present(p, r.leaf)
	if err != nil {
		return err
	}
	return r.scatter(dst, p, present)
}

// decode decodes the len(dst) values that a page has.
func (r *valueReader[T]) decode(dst []T, p *parquet.Page) error {
	if r.parse != nil {
		return parquet.Labels(r.decoder.Decoder, dst, p, r.numbers, r.parse)
	}
	all, err := parquet.Integers(r.decoder.Decoder, dst, p, r.leaf, r.numbers)
	r.check(uint64(all))
	return err
}

// allAbsent reports whether a page shows at once that it has nothing but absent values.
func (r *valueReader[T]) allAbsent(p *parquet.Page) bool {
	if r.required {
		return false
	}
	if p.HasDictionary() && len(r.numbers) == 1 && r.numbers[0] == r.absent {
		return true
	}
	return p.AllNull(r.leaf)
}

// scatter decodes the values of a page to the rows in which they are present.
func (r *valueReader[T]) scatter(dst []T, p *parquet.Page, present []uint8) error {
	count := 0
	for _, one := range present {
		count += int(one)
	}
	if r.required && count < len(present) {
		return parquet.ErrNull
	}
	r.dense = parquet.Resize(r.dense, count)
	if err := r.decode(r.dense, p); err != nil {
		return err
	}
	k := 0
	for i, one := range present {
		dst[i] = r.absent
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

// values returns the values of some rows of the block, without the absent ones at the end.
func (r *valueReader[T]) values(of rows) []T {
	if !r.block.used {
		return nil
	}
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

func parseKind(s string) (dag.Kind, error) {
	if k, ok := dag.ParseKind(s); ok {
		return k, nil
	}
	return 0, fmt.Errorf("unknown kind %q", s)
}

func parseSubkind(s string) (dag.Subkind, error) {
	if k, ok := dag.ParseSubkind(s); ok {
		return k, nil
	}
	return 0, fmt.Errorf("unknown subkind %q", s)
}

// narrowReader reads a column of a [dag.Narrow]: a byte a value while no block has one that does not fit.
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
		r.isWide = true // or what else is wrong shows again
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

func (r *narrowReader) values(of rows) dag.Narrow {
	if r.isWide {
		return dag.NewNarrow(nil, r.wide.values(of))
	}
	return dag.NewNarrow(r.small.values(of), nil)
}

func (r *narrowReader) suspect() bool {
	return r.small.suspect || r.wide.suspect
}

// textReader reads a column of optional strings.
type textReader struct {
	chunkReader
	texts []dag.Text // of the ranks of the block; nil: there are none

	block   *block
	decoder *decoder
	part    *part
	at      int      // row of the block at which the part begins
	row     int      // row of its group that is next
	rank    int      // of the block, the one at hand
	strings []string // the values of the dictionary
}

func (r *textReader) read(d *decoder, b *block) error {
	r.texts, r.block, r.decoder, r.at, r.rank = nil, b, d, 0, 0
	for i := range b.parts {
		r.part, r.row, r.strings = &b.parts[i], 0, nil
		if err := r.pages(d, r.part.group, r); err != nil {
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
		return nil
	}
	var rows []int // of the values, in the group
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

// append gives a row of the block a string.
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

// text returns the strings of rank k of the block.
func (r *textReader) text(k int) dag.Text {
	if r.texts == nil {
		return dag.Text{}
	}
	return r.texts[k]
}
