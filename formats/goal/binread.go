// This file reads GOAL binaries, rank by rank in parallel from a regular file, or sequentially from a pipe.
//
// The reader checks all redundant data: the jump table, running totals, dependency counts, roots, and the highest
// cpu and nic. Writing the trace of an accepted binary therefore gives the same binary.

package goal

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"

	"github.com/tracedag/tracedag/dag"
	"github.com/tracedag/tracedag/formats/format"
	"github.com/tracedag/tracedag/internal/par"
	"github.com/tracedag/tracedag/memory"
)

// Sizes of the parts of a binary in bytes. The jump table counts from the end of the magic.
const (
	magicSize   = 8
	headerSize  = magicSize + 6
	jumpSize    = 16 // per rank
	sectionHead = 8
	recordSize  = 39
	indexSize   = 4

	recordSizeV2 = 104 // version 2 is incompatible
)

// Types of a node record.
const (
	typeSend = 1
	typeRecv = 2
	typeCalc = 3
)

var kindOfType = [...]dag.Kind{typeSend: dag.Send, typeRecv: dag.Recv, typeCalc: dag.Calc}

// trusted is the number of ops of a rank for which memory is allocated before they are read.
const trusted = 1 << 20

func readBinary(inputs []*format.Input, o format.ReadOptions) (*dag.Trace, error) {
	in, err := format.Single(inputs, "a GOAL schedule")
	if err != nil {
		return nil, err
	}
	src := &part{file: in.Name, src: in.Reader}
	fileEnd := int64(-1)
	if in.At != nil {
		src.src = io.NewSectionReader(in.At, 0, in.Size)
		fileEnd = in.Size
	}
	h, err := readHeader(o.Context, src, fileEnd)
	if err != nil {
		return nil, err
	}
	var ranks []*dag.Rank
	var used used
	if in.At != nil {
		ranks, used, err = readRanks(in, h)
	} else {
		ranks, used, err = streamRanks(src, h)
	}
	if err != nil {
		return nil, err
	}
	for _, problem := range []error{h.checkUnits(in.Name, used.units), h.checkEnd(src, fileEnd)} {
		switch {
		case problem == nil:
		case o.Lenient && errors.As(problem, new(*format.SyntaxError)):
			o.Warn("%v", problem)
		default:
			return nil, problem
		}
	}
	if err := restoreReleases(ranks, o, nil); err != nil {
		return nil, format.InFile(in.Name, err)
	}
	if used.addressed > 0 {
		o.Warn("%s: %d calcs have a peer, tag or NIC, which has no effect; the file may be damaged", in.Name,
			used.addressed)
	}
	return newTrace(ranks), nil
}

// unitMax is the highest cpu and nic of some ops.
type unitMax struct{ cpu, nic uint8 }

func (m unitMax) with(other unitMax) unitMax {
	return unitMax{max(m.cpu, other.cpu), max(m.nic, other.nic)}
}

// used sums up the ops of ranks.
type used struct {
	units     unitMax
	addressed int64 // calcs with a peer, tag or NIC
}

func (u *used) add(v used) {
	u.units = u.units.with(v.units)
	u.addressed += v.addressed
}

// binaryHeader is the part before the sections of the ranks.
type binaryHeader struct {
	units unitMax
	ends  []int64 // end of each rank's section in the file
}

// start returns the start of a rank's section in the file.
func (h *binaryHeader) start(rank int) int64 {
	if rank == 0 {
		return headerSize + jumpSize*int64(len(h.ends))
	}
	return h.ends[rank-1]
}

// readHeader reads and checks the header and the jump table. fileEnd is the length of the file, or -1 if it is
// unknown.
func readHeader(ctx context.Context, src *part, fileEnd int64) (*binaryHeader, error) {
	b, err := src.next(headerSize)
	if err != nil {
		return nil, err
	}
	switch m := binary.LittleEndian.Uint64(b); m {
	case magic:
	case magicUsedUp:
		found := fmt.Sprintf("magic %d: a simulation with --save-mem has consumed the file; write it again", m)
		return nil, src.errorAt(0, found, "a GOAL binary (magic %d)", magic)
	default:
		return nil, src.errorAt(0, fmt.Sprintf("magic %d", m), "a GOAL binary (magic %d)", magic)
	}
	n := int64(binary.LittleEndian.Uint32(b[magicSize:]))
	h := &binaryHeader{units: unitMax{b[magicSize+4], b[magicSize+5]}}
	if n == 0 {
		return nil, src.errorAt(magicSize, "0", "at least 1 rank")
	}
	tableEnd := headerSize + jumpSize*n
	if fileEnd >= 0 && tableEnd > fileEnd {
		return nil, src.errorAt(magicSize, n, "at most %d ranks in %d bytes", (fileEnd-headerSize)/jumpSize, fileEnd)
	}
	if err := memory.CheckRanks(ctx, n); err != nil {
		return nil, format.FileErrorf(src.file, "offset %d: %w", magicSize, err)
	}
	end := tableEnd
	for range n {
		at := src.at
		if b, err = src.next(jumpSize); err != nil {
			return nil, err
		}
		start, stop := binary.LittleEndian.Uint64(b), binary.LittleEndian.Uint64(b[8:])
		if start != uint64(end-magicSize) {
			return nil, src.errorAt(at, start, "the start of rank %d at %d", len(h.ends), end-magicSize)
		}
		limit := int64(math.MaxInt64)
		if fileEnd >= 0 {
			limit = fileEnd
		}
		if least := uint64(end + sectionHead - magicSize); stop < least || stop > uint64(limit-magicSize) {
			return nil, src.errorAt(at+8, stop, "the end of rank %d in %d..%d", len(h.ends), least, limit-magicSize)
		}
		end = int64(stop) + magicSize
		h.ends = append(h.ends, end)
	}
	return h, nil
}

// checkUnits returns an error if the header's highest cpu or nic differs from the ops'.
func (h *binaryHeader) checkUnits(file string, used unitMax) error {
	if h.units == used {
		return nil
	}
	return &format.SyntaxError{File: file, Offset: magicSize + 4,
		Expected: fmt.Sprintf("highest cpu %d and nic %d, as in the ops", used.cpu, used.nic),
		Found:    fmt.Sprintf("%d and %d", h.units.cpu, h.units.nic)}
}

// checkEnd returns an error if data follows the last rank.
func (h *binaryHeader) checkEnd(src *part, fileEnd int64) error {
	end := h.ends[len(h.ends)-1]
	if fileEnd > end {
		return src.errorAt(end, fmt.Sprintf("%d more bytes", fileEnd-end), "end of file")
	}
	if fileEnd < 0 {
		if _, err := src.next(1); err == nil {
			return src.errorAt(end, "more bytes", "end of file")
		} else if !errors.As(err, new(*format.SyntaxError)) {
			return err
		}
	}
	return nil
}

// streamRanks reads all ranks sequentially.
func streamRanks(src *part, h *binaryHeader) (ranks []*dag.Rank, sum used, err error) {
	var d rankDecoder
	for i := range h.ends {
		rank, err := d.decode(src, i, h.ends[i]-h.start(i))
		if err != nil {
			return nil, sum, err
		}
		ranks = append(ranks, rank.Keep())
	}
	return ranks, d.used, nil
}

// readRanks reads the ranks of a regular file in parallel. If several have errors, it returns that of the lowest
// rank.
func readRanks(in *format.Input, h *binaryHeader) (ranks []*dag.Rank, sum used, err error) {
	ranks = dag.NewRanks(len(h.ends))
	type reader struct {
		decoder rankDecoder
		src     part
	}
	start := func() *reader { return &reader{src: part{file: in.Name}} }
	readers, err := par.EachWith(len(ranks), start, func(r *reader, i int) error {
		size := h.ends[i] - h.start(i)
		r.src.src, r.src.at, r.src.data = io.NewSectionReader(in.At, h.start(i), size), h.start(i), nil
		rank, err := r.decoder.decode(&r.src, i, size)
		ranks[i] = rank.Keep()
		return err
	})
	for _, r := range readers {
		sum.add(r.decoder.used)
	}
	return ranks, sum, err
}

// part reads a part of a file sequentially through a buffer.
type part struct {
	file string
	src  io.Reader
	at   int64 // offset of the unread bytes in the file
	buf  []byte
	data []byte // the unread bytes of buf
}

// chunk is the maximum number of bytes of part.next.
const chunk = 128 << 10

// next returns the next n bytes, at most chunk. They are valid until the next call.
func (p *part) next(n int) ([]byte, error) {
	if len(p.data) < n {
		if len(p.buf) < n {
			// there may be many small ranks
			p.buf = make([]byte, min(2*chunk, max(1<<10, 4*n)))
		}
		have := copy(p.buf, p.data)
		more, err := io.ReadAtLeast(p.src, p.buf[have:], n-have)
		p.data = p.buf[:have+more]
		if err == io.EOF || err == io.ErrUnexpectedEOF {
			return nil, p.errorAt(p.at+int64(len(p.data)), "end of file", "%d more bytes", n-len(p.data))
		}
		if err != nil {
			return nil, format.FileErrorf(p.file, "reading: %w", err)
		}
	}
	b := p.data[:n]
	p.data = p.data[n:]
	p.at += int64(n)
	return b, nil
}

// nextIndices appends the next n indices to dst.
func (p *part) nextIndices(dst []uint32, n int64) ([]uint32, error) {
	for n > 0 {
		count := min(n, chunk/indexSize)
		b, err := p.next(int(count) * indexSize)
		if err != nil {
			return nil, err
		}
		for ; len(b) > 0; b = b[indexSize:] {
			dst = append(dst, binary.LittleEndian.Uint32(b))
		}
		n -= count
	}
	return dst, nil
}

func (p *part) errorAt(offset int64, found any, expected string, args ...any) error {
	return &format.SyntaxError{
		File: p.file, Offset: offset, Expected: fmt.Sprintf(expected, args...), Found: fmt.Sprint(found),
	}
}

// rankDecoder decodes sections one after the other and reuses its memory.
type rankDecoder struct {
	used used // of all ranks so far

	// The current section.
	src      *part
	rank     int
	n        int   // nodes
	records  int64 // offset of the records in the file
	appendix int64 // offset of the appendix in the file

	// The lists of the section, and per node the values that the trace does not keep.
	roots     []uint32
	missing   []uint32 // dependency count
	requires  []uint32 // number of nodes that require this one
	irequires []uint32 // number of nodes that irequire this one
	edges     []uint32 // the appendix
	cpu, nic  []int32  // of a chunk of records
}

// decode reads the section of a rank, which has size bytes.
func (d *rankDecoder) decode(src *part, rank int, size int64) (dag.Rank, error) {
	d.src, d.rank = src, rank
	start := src.at
	b, err := src.next(sectionHead)
	if err != nil {
		return dag.Rank{}, err
	}
	n, roots := int64(binary.LittleEndian.Uint32(b)), int64(binary.LittleEndian.Uint32(b[4:]))
	if n > dag.MaxOps {
		return dag.Rank{}, src.errorAt(start, n, "at most %d nodes in rank %d", dag.MaxOps, d.rank)
	}
	if roots > n {
		return dag.Rank{}, src.errorAt(start+4, roots, "at most %d roots in rank %d", n, d.rank)
	}
	body := size - sectionHead - indexSize*roots
	appendix := body - recordSize*n
	version2 := n > 0 && body >= recordSizeV2*n && body%indexSize == 0
	if appendix < 0 || appendix%indexSize != 0 || appendix/indexSize > math.MaxUint32 {
		if version2 {
			found := fmt.Sprintf("version 2 of the format (records of %d bytes), which is not supported", recordSizeV2)
			return dag.Rank{}, src.errorAt(start, found, "node records of %d bytes", recordSize)
		}
		return dag.Rank{}, src.errorAt(start, fmt.Sprintf("%d bytes", size), "a section of %d bytes, and 4 for each "+
			"dependency, for the %d nodes and %d roots of rank %d", size-appendix, n, roots, d.rank)
	}
	d.n = int(n)
	d.records = start + sectionHead + indexSize*roots
	d.appendix = d.records + recordSize*n
	r, err := d.body(roots, appendix/indexSize)
	if e := (*format.SyntaxError)(nil); version2 && errors.As(err, &e) {
		e.Found += " (or is this version 2 of the format, which is not supported?)"
	}
	return r, err
}

// body reads a section without its head.
func (d *rankDecoder) body(roots, edges int64) (r dag.Rank, err error) {
	if d.roots, err = d.src.nextIndices(d.roots[:0], roots); err != nil {
		return r, err
	}
	requires, irequires, err := d.decodeRecords(&r)
	if err != nil {
		return r, err
	}
	if requires+irequires != edges {
		return r, d.src.errorAt(d.appendix, edges, "%d dependencies in the appendix of rank %d, the sum of its nodes",
			requires+irequires, d.rank)
	}
	if err := d.checkRoots(); err != nil {
		return r, err
	}
	if d.edges, err = d.src.nextIndices(d.edges[:0], edges); err != nil {
		return r, err
	}
	for i, op := range d.edges {
		if op >= uint32(d.n) {
			return r, d.src.errorAt(d.appendix+indexSize*int64(i), op, "a node of rank %d in 0..%d", d.rank, d.n-1)
		}
	}
	return r, d.decodeEdges(&r, requires, irequires)
}

// decodeRecords reads the node records into the columns of r. It returns the number of dependencies of both kinds
// that the records announce.
func (d *rankDecoder) decodeRecords(r *dag.Rank) (requires, irequires int64, err error) {
	d.missing, d.requires, d.irequires = d.missing[:0], d.requires[:0], d.irequires[:0]
	if d.n == 0 {
		return 0, 0, nil
	}
	const most = chunk / recordSize
	room := min(d.n, trusted)
	kind := make([]dag.Kind, 0, room)
	peer := make([]int32, 0, room)
	tag := make([]int64, 0, room)
	bytes := make([]int64, 0, room)
	duration := make([]dag.Time, 0, room)
	d.cpu, d.nic = lengthen(d.cpu, most, most), lengthen(d.nic, most, most)
	total := uint64(0) // dependencies so far
	for first := 0; first < d.n; {
		count := min(d.n-first, most)
		b, err := d.src.next(count * recordSize)
		if err != nil {
			return 0, 0, err
		}
		end := first + count
		kind, peer, tag = lengthen(kind, end, d.n), lengthen(peer, end, d.n), lengthen(tag, end, d.n)
		bytes, duration = lengthen(bytes, end, d.n), lengthen(duration, end, d.n)
		d.missing = lengthen(d.missing, end, d.n)
		d.requires = lengthen(d.requires, end, d.n)
		d.irequires = lengthen(d.irequires, end, d.n)
		var units unitMax
		addressed := int64(0)
		for i := first; i < end; i++ {
			rec := b[:recordSize]
			b = b[recordSize:]
			typ, value := rec[4], binary.LittleEndian.Uint64(rec[9:])
			switch {
			case typ == typeCalc && value <= uint64(maxNanoseconds):
				duration[i] = dag.Time(value) * dag.Nanosecond
				if binary.LittleEndian.Uint32(rec[5:])|binary.LittleEndian.Uint32(rec[17:])|uint32(rec[22]) != 0 {
					addressed++
				}
			case (typ == typeSend || typ == typeRecv) && value <= math.MaxInt64:
				bytes[i] = int64(value)
			default:
				return 0, 0, d.badRecord(i, typ, value)
			}
			kind[i] = kindOfType[typ]
			peer[i] = int32(binary.LittleEndian.Uint32(rec[5:]))
			tag[i] = fromTag(binary.LittleEndian.Uint32(rec[17:]))
			cpu, nic := rec[21], rec[22]
			d.cpu[i-first], d.nic[i-first] = int32(cpu), int32(nic)
			units = units.with(unitMax{cpu, nic})
			d.missing[i] = binary.LittleEndian.Uint32(rec)
			a, aIndex := binary.LittleEndian.Uint32(rec[23:]), binary.LittleEndian.Uint32(rec[27:])
			s, sIndex := binary.LittleEndian.Uint32(rec[31:]), binary.LittleEndian.Uint32(rec[35:])
			if uint64(aIndex) != total || uint64(sIndex) != total+uint64(a) {
				return 0, 0, d.badIndex(i, total, a, aIndex, sIndex)
			}
			total += uint64(a) + uint64(s)
			irequires += int64(s)
			d.requires[i], d.irequires[i] = a, s
		}
		if units.cpu > 0 {
			r.Stream.SetRange(first, d.cpu[:count])
		}
		if units.nic > 0 {
			r.NIC.SetRange(first, d.nic[:count])
		}
		d.used.add(used{units, addressed})
		first = end
	}
	r.Kind, r.Peer, r.Tag = kind, compact(peer), compact(tag)
	r.Bytes, r.Duration = compact(bytes), compact(duration)
	return int64(total) - irequires, irequires, nil
}

// lengthen returns s with length n; its final length is limit. New values of a slice that was never longer are 0.
func lengthen[T any](s []T, n, limit int) []T {
	if n <= cap(s) {
		return s[:n]
	}
	return append(make([]T, 0, min(limit, max(n, 2*cap(s)))), s...)[:n]
}

// compact returns a column without trailing zeros and without most of their memory.
func compact[T int32 | int64 | dag.Time](s []T) []T {
	n := len(s)
	for n > 0 && s[n-1] == 0 {
		n--
	}
	switch {
	case n == 0:
		return nil
	case len(s)-n <= len(s)/16:
		return s[:n]
	}
	return append(make([]T, 0, n), s[:n]...)
}

// badRecord returns the error about the type or size of a node.
func (d *rankDecoder) badRecord(i int, typ uint8, value uint64) error {
	at := d.records + recordSize*int64(i)
	switch typ {
	case typeCalc:
		return d.src.errorAt(at+9, value, "the nanoseconds of a calc in 0..%d", maxNanoseconds)
	case typeSend, typeRecv:
		return d.src.errorAt(at+9, value, "a size in bytes in 0..%d", int64(math.MaxInt64))
	}
	return d.src.errorAt(at+4, typ, "type 1, 2 or 3 of node %d of rank %d", i, d.rank)
}

// badIndex returns the error about the index field of a node that differs from the running total of the
// dependencies.
func (d *rankDecoder) badIndex(i int, total uint64, a, aIndex, sIndex uint32) error {
	at, want, found := int64(27), total, aIndex
	if uint64(aIndex) == total {
		at, want, found = 35, total+uint64(a), sIndex
	}
	return d.src.errorAt(d.records+recordSize*int64(i)+at, found, "index %d in node %d of rank %d", want, i, d.rank)
}

// checkRoots returns an error unless the roots are the nodes without dependencies, in ascending order.
func (d *rankDecoder) checkRoots() error {
	at := d.records - indexSize*int64(len(d.roots))
	k := 0
	for i, missing := range d.missing {
		if missing != 0 {
			continue
		}
		if k == len(d.roots) {
			return d.src.errorAt(at+indexSize*int64(k), "none", "node %d as a further root of rank %d", i, d.rank)
		}
		if d.roots[k] != uint32(i) {
			return d.src.errorAt(at+indexSize*int64(k), d.roots[k], "node %d as the next root of rank %d", i, d.rank)
		}
		k++
	}
	if k < len(d.roots) {
		return d.src.errorAt(at+indexSize*int64(k), len(d.roots), "%d roots of rank %d", k, d.rank)
	}
	return nil
}

// decodeEdges converts the appendix, which lists the dependents of each node, to the dependencies of r.
func (d *rankDecoder) decodeEdges(r *dag.Rank, requires, irequires int64) error {
	counts := make([]uint32, d.n)
	var startCounts []uint32
	if irequires > 0 {
		startCounts = make([]uint32, d.n)
	}
	edges := d.edges
	for i, n := range d.requires {
		for _, op := range edges[:n] {
			counts[op]++
		}
		edges = edges[n:]
		n = d.irequires[i]
		for _, op := range edges[:n] {
			startCounts[op]++
		}
		edges = edges[n:]
	}
	for i, missing := range d.missing {
		found := uint64(counts[i])
		if startCounts != nil {
			found += uint64(startCounts[i])
		}
		if found != uint64(missing) {
			return d.src.errorAt(d.records+recordSize*int64(i), missing,
				"%d dependencies of node %d of rank %d, as many as the appendix has", found, i, d.rank)
		}
	}
	if requires > 0 {
		r.Deps, r.Order = d.fill(counts, requires, d.requires, d.irequires, false)
	}
	if irequires > 0 {
		r.StartDeps, r.StartOrder = d.fill(startCounts, irequires, d.irequires, d.requires, true)
	}
	return nil
}

// fill returns the dependencies of one kind. total is their number, counts their number per node, and lists the
// number of dependents per node in the appendix. others is the number of dependents of the other kind, which stand
// before them or, if behind is set, after them at each node.
func (d *rankDecoder) fill(counts []uint32, total int64, lists, others []uint32, behind bool) (edges, order dag.Edges) {
	edges = dag.Edges{End: counts, Off: make([]int32, total)}
	startsFromCounts(edges.End)
	rest := d.edges
	for on, n := range lists {
		if behind {
			rest = rest[others[on]:]
		}
		ascending, last := true, uint32(0)
		for _, op := range rest[:n] {
			at := edges.End[op]
			edges.End[op]++ // filling the list moves the start to the end
			edges.Off[at] = int32(op) - int32(on)
			ascending = ascending && last <= op
			last = op
		}
		if !ascending {
			for _, op := range rest[:n] {
				order.Append(on, int32(op)-int32(on))
			}
		}
		rest = rest[n:]
		if !behind {
			rest = rest[others[on]:]
		}
	}
	last := len(edges.End)
	for last > 1 && edges.End[last-1] == edges.End[last-2] {
		last--
	}
	edges.End = edges.End[:last]
	return edges, order
}
