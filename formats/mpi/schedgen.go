// This file converts a trace to the schedule of Schedgen, op for op, including its bugs.
// docs/reference/formats/mpi.md describes the conversion.

package mpi

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"math"
	"slices"

	"github.com/tracedag/tracedag/dag"
	"github.com/tracedag/tracedag/dag/gen/schedgen"
	"github.com/tracedag/tracedag/formats/format"
	"github.com/tracedag/tracedag/internal/par"
	"github.com/tracedag/tracedag/memory"
)

// readSchedgen reads the files of a trace, in rank order, into the ranks of a schedule: rank h of copy x is rank h
// + H x.
func readSchedgen(inputs []*format.Input, o format.ReadOptions) (*dag.Trace, error) {
	s, err := optionsOf(&o).resolved()
	if err != nil {
		return nil, err
	}
	if s.Extrapolate < 1 || s.Extrapolate > math.MaxInt32 || int64(s.Extrapolate)*int64(len(inputs)) > math.MaxInt32 {
		return nil, fmt.Errorf("--traces-extr %d with %d ranks: expected 1..%d ranks in total", s.Extrapolate,
			len(inputs), math.MaxInt32)
	}
	if err := memory.CheckRanks(o.Context, int64(s.Extrapolate), int64(len(inputs))); err != nil {
		return nil, err
	}
	places := slices.Clone(s.Start)
	if s.Start != nil {
		places = append(places, make([]Place, max(0, len(inputs)-len(places)))...)
	}
	t := &dag.Trace{Ranks: dag.NewRanks(s.Extrapolate * len(inputs))}
	t.Comms = []dag.Comm{dag.World(len(t.Ranks))}
	files := make([]*scheduleReader, len(inputs))
	err = par.Each(len(inputs), func(h int) error {
		f := newScheduleReader(inputs[h].Name, o, h, len(inputs))
		files[h] = f
		var place *Place
		if s.Start != nil {
			place = &places[h]
		}
		if err := f.read(inputs[h].Reader, place); err != nil {
			return err
		}
		for x, c := range f.copies {
			r := c.b.Rank()
			t.Ranks[h+x*len(inputs)] = r.Keep()
			if err := c.b.Err(); err != nil {
				return &format.FileError{File: f.file, Err: err}
			}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	warnOfSchedules(files, o.Warn)
	if s.StartFile != "" && o.WriteFile != nil {
		if err := o.WriteFile(s.StartFile, formatPlaces(places[:len(inputs)])); err != nil {
			return nil, err
		}
	}
	return t, nil
}

// warnOfSchedules reports Schedgen's messages, and computations of negative length.
func warnOfSchedules(files []*scheduleReader, warn func(string, ...any)) {
	var negative, cut finding
	var said problems
	for _, f := range files {
		negative.merge(f.file, &f.negative)
		said.collect(f.file, &f.printed)
		if !f.finalized && !f.stopped {
			cut.merge(f.file, &finding{count: 1})
		}
	}
	for _, message := range said.list {
		warn("schedgen: %s (%s)", message.text, times(message.count))
	}
	if negative.count > 0 {
		warn("%s:%d: computation of negative duration, because the clock ran backwards (%s in all)", negative.file,
			negative.line, times(negative.count))
	}
	warnOfEnds(&cut, warn)
}

// scheduleReader converts the file of a rank, for all copies of the ranks at the same time.
type scheduleReader struct {
	ctx    context.Context // carries the limit of memory; may be nil
	file   string
	line   int64
	offset int64 // end of the current line
	o      *Options
	atlahs bool
	compat bool
	hosts  int // ranks with a file
	copies []*schedule

	text      []byte // current line
	cuts      []int  // positions of its separators, and its end
	negative  finding
	printed   problems // Schedgen's messages
	stopped   bool     // after the requested number of collectives
	finalized bool     // MPI_Finalize was read
}

// schedule is a rank of the schedule during conversion.
type schedule struct {
	f     *scheduleReader
	b     *dag.RankBuilder
	e     *schedgen.Emitter
	rank  int // in the schedule
	ranks int // of the schedule
	shift int // from a rank of the trace to that of this copy

	last        float64       // end of the previous call
	prev        []predecessor // ops that the next gap's calc waits for
	next        []int         // ops that wait for it
	requests    map[uint64]int
	persistent  map[uint64]persistentMessage
	comms       map[int32]uint8 // ATLAHS: the number of each handle
	collectives int
	sides       []int
}

type predecessor struct {
	op        int
	startOnly bool
}

// persistentMessage is the message of a persistent request of ATLAHS.
type persistentMessage struct {
	kind            dag.Kind
	peer, tag, comm int32
	bytes           int64
}

func newScheduleReader(file string, options format.ReadOptions, rank, hosts int) *scheduleReader {
	o := optionsOf(&options)
	f := &scheduleReader{ctx: options.Context, file: file, o: o, atlahs: o.Variant == schedgen.ATLAHS.String(),
		compat: options.Compat,
		hosts:  hosts}
	for x := range o.Extrapolate {
		b := new(dag.RankBuilder)
		s := &schedule{f: f, b: b, e: schedgen.NewEmitter(b), rank: rank + x*hosts, ranks: o.Extrapolate * hosts,
			shift: x * hosts, requests: map[uint64]int{}, persistent: map[uint64]persistentMessage{},
			comms: map[int32]uint8{}}
		s.emitNonblocking()
		f.copies = append(f.copies, s)
	}
	return f
}

// emitNonblocking emits the computation of --nb.
func (s *schedule) emitNonblocking() {
	o := s.f.o
	if o.Nonblocking <= 0 {
		return
	}
	piece, pieces := o.Nonblocking, int64(1)
	if o.Poll > 0 {
		piece, pieces = o.Poll, (o.Nonblocking+o.Poll-1)/o.Poll
	}
	for i := range pieces {
		op := s.e.Calc(dag.Time(piece)*dag.Nanosecond, o.CPU)
		if i > 0 {
			s.e.Requires(op, op-1)
		}
	}
}

// read converts the file, from place if it is not nil. If the conversion stops early, it updates place.
func (f *scheduleReader) read(src io.Reader, place *Place) error {
	skip := int64(0)
	if place != nil {
		skip = place.Offset
		for _, s := range f.copies {
			s.last = place.Time
		}
	}
	err := format.EachLines(f.ctx, src, func(lines []byte) error { return f.lines(lines, skip) })
	if err != nil {
		return readingError(f.file, f.line, err)
	}
	if place != nil && f.stopped {
		*place = Place{Offset: f.offset, Time: f.copies[len(f.copies)-1].last}
	}
	return nil
}

// lines converts the lines that end behind the offset skip.
func (f *scheduleReader) lines(b []byte, skip int64) error {
	for len(b) > 0 {
		end := bytes.IndexByte(b, '\n')
		f.text = b[:end]
		b = b[end+1:]
		f.line++
		begin := f.offset
		f.offset += int64(end) + 1
		if f.offset <= skip {
			continue
		}
		if begin < skip {
			f.text = f.text[skip-begin:]
		}
		f.text = bytes.TrimSuffix(f.text, []byte("\r"))
		if err := f.convert(); err != nil {
			return err
		}
		if f.stopped {
			return format.ErrStop
		}
	}
	return nil
}

func (f *scheduleReader) fail(expected, found string) error {
	return &format.SyntaxError{File: f.file, Line: f.line, Expected: expected, Found: found}
}

// convert converts the current line.
func (f *scheduleReader) convert() error {
	const tooLong = 4096
	if len(f.text) >= tooLong {
		return f.fail(fmt.Sprintf("a line of less than %d bytes, the limit of Schedgen", tooLong),
			fmt.Sprintf("%d bytes", len(f.text)))
	}
	fn := f.function()
	if fn == nil {
		return nil
	}
	if len(f.text) < 4 || string(f.text[:4]) != "MPI_" {
		return f.fail("a call; Schedgen parses the line as "+fn.name+" and stops",
			fmt.Sprintf("%.60q", f.text))
	}
	if fn.pointToPoint && f.o.NoPointToPoint || fn.collective && f.o.NoCollectives || fn.convert == nil {
		if fn.unimplemented {
			for range f.copies {
				f.printed.add(f.line, "", fn.lower()+" not implemented yet")
			}
		}
		return nil
	}
	f.cut()
	for _, s := range f.copies {
		if err := fn.convert(s, fn); err != nil {
			return err
		}
	}
	f.stopped = f.o.Collectives > 0 && f.copies[0].collectives == f.o.Collectives
	return nil
}

// gap emits the computation between the last call and one with the given start and end.
func (s *schedule) gap(start, end float64) error {
	d, err := s.f.nanoseconds(math.Round((start - s.last) * float64(s.f.o.TimeMult)))
	if err != nil {
		return err
	}
	calc := s.e.Calc(d, s.f.o.CPU)
	for _, op := range s.next {
		s.e.Requires(op, calc)
	}
	for _, on := range s.prev {
		if on.startOnly {
			s.e.IRequires(calc, on.op)
		} else {
			s.e.Requires(calc, on.op)
		}
	}
	s.prev, s.next = s.prev[:0], s.next[:0]
	s.last = end
	return nil
}

// nanoseconds returns a duration. If the clock runs backwards, Schedgen writes the two's complement of a negative
// duration. That is an error, except with --compat, where it is a negative duration that the GOAL writers accept.
func (f *scheduleReader) nanoseconds(ns float64) (dag.Time, error) {
	const most = math.MaxInt64 / int64(dag.Nanosecond)
	if !(ns >= -float64(most) && ns <= float64(most)) {
		return 0, f.fail("a computation of at most 106 days", fmt.Sprintf("%g ns", ns))
	}
	if ns < 0 {
		if !f.compat {
			return 0, f.fail("clocks that run forwards (--compat imitates Schedgen)",
				fmt.Sprintf("a computation of %g ns", ns))
		}
		f.negative.add(f.line)
	}
	return dag.Time(ns) * dag.Nanosecond, nil
}

// tag returns the tag of a message on a communicator.
func (s *schedule) tag(comm, tag int32) int64 {
	id := comm
	if s.f.atlahs {
		number, known := s.comms[comm]
		if !known {
			number = uint8(len(s.comms))
			s.comms[comm] = number
		}
		id = int32(number)
	}
	if id > 256 {
		s.f.printed.add(s.f.line, "", "comm too big")
	}
	if tag > 1<<23 {
		s.f.printed.add(s.f.line, "", "tag too big")
	}
	return goalTag(uint32(id<<24 | tag))
}

func goalTag(bits uint32) int64 {
	if bits == math.MaxUint32 {
		return dag.AnyTag
	}
	return int64(bits)
}

// message emits a send or receive.
func (s *schedule) message(kind dag.Kind, bytes int64, peer int32, tag int64) (int, error) {
	if bytes < 0 && !s.f.compat {
		return 0, s.f.fail("sizes of at most 31 bits (--compat imitates Schedgen)", fmt.Sprintf("%d bytes", bytes))
	}
	if kind == dag.Recv {
		if peer < dag.AnySource {
			return 0, s.f.fail("a source in the range of GOAL", fmt.Sprint(peer))
		}
		return s.e.Recv(int(peer), bytes, tag), nil
	}
	if peer < 0 {
		return 0, s.f.fail("a destination in the range of GOAL", fmt.Sprint(peer))
	}
	return s.e.Send(int(peer), bytes, tag), nil
}

// peer returns the rank of this copy for a rank of the trace.
func (s *schedule) peer(rank int32) int32 {
	wildcard := int32(-1)
	if s.f.atlahs {
		wildcard = -2
	}
	if rank == wildcard {
		return rank
	}
	return rank + int32(s.shift)
}

// coll emits a part in a collective and the gap before it. It returns the op that marks its end.
func (s *schedule) coll(emit func(*schedgen.Emitter, schedgen.Call), root int32, bytes, tag int64, start, end float64) (
	int, error) {
	if root < 0 || int(root) >= s.ranks {
		return 0, s.f.fail(fmt.Sprintf("a root in 0..%d", s.ranks-1), fmt.Sprint(root))
	}
	s.e.Mark()
	emit(s.e, schedgen.Call{Ranks: s.ranks, Rank: s.rank, Root: int(root), Bytes: bytes, Tag: tag})
	s.next = s.e.First(s.next)
	s.sides = s.e.Last(s.sides[:0])
	marker := s.e.Calc(0, 0)
	for _, op := range s.sides {
		s.e.Requires(marker, op)
	}
	early := int64(s.f.o.Prepost)
	virtual := start - float64(early)
	if virtual-s.last < 0 {
		virtual = s.last
		early = int64(truncate(start - virtual))
	}
	if early != 0 {
		d, err := s.f.nanoseconds(float64(early))
		if err != nil {
			return 0, err
		}
		s.e.IRequires(s.e.Calc(d, s.f.o.CPU), marker)
	}
	if err := s.gap(virtual, end); err != nil {
		return 0, err
	}
	s.prev = append(s.prev, predecessor{op: marker})
	s.collectives++
	return marker, nil
}

// truncate returns a double converted to int as in C.
func truncate(v float64) int32 {
	if !(v > math.MinInt32-1 && v < math.MaxInt32+1) {
		return math.MinInt32
	}
	return int32(v)
}
