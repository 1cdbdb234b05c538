// This file reads the files of a trace, and makes one trace of their ranks.

package mpi

import (
	"errors"
	"fmt"

	"github.com/tracedag/tracedag/dag"
	"github.com/tracedag/tracedag/formats/format"
	"github.com/tracedag/tracedag/internal/par"
)

func read(inputs []*format.Input, o format.ReadOptions) (*dag.Trace, error) {
	inputs, err := byRank(inputs)
	if err != nil {
		return nil, err
	}
	if optionsOf(&o).Variant != "" {
		return readSchedgen(inputs, o)
	}
	ranks := make([]*rankReader, len(inputs))
	for i, in := range inputs {
		ranks[i] = &rankReader{file: in.Name, rank: int32(i), ranks: int32(len(inputs)), lenient: o.Lenient}
	}
	err = par.Each(len(ranks), func(i int) error { return ranks[i].read(inputs[i]) })
	if err != nil {
		return nil, err
	}
	resolveCommunicators(ranks)
	t := &dag.Trace{Comms: number(ranks), Ranks: make([]dag.Rank, len(ranks))}
	if err := par.Each(len(ranks), func(i int) error { return ranks[i].translate() }); err != nil {
		return nil, err
	}
	var problems problems
	for i, r := range ranks {
		problems.collect(r.file, &r.problems)
		t.Ranks[i] = r.dag
	}
	if !o.Lenient {
		if err := problems.err(); err != nil {
			return nil, err
		}
	}
	problems.warn(o.Warn)
	warn(ranks, o)
	alignClocks(ranks, o.Warn)
	return t, nil
}

// read reads the file of a rank.
func (r *rankReader) read(in *format.Input) error {
	if err := format.EachLines(in.Reader, r.lines); err != nil {
		return readingError(in.Name, r.line, err)
	}
	r.closeTests()
	for i := range r.all {
		r.settle(int32(i))
	}
	r.dag = r.b.Rank()
	if err := r.b.Err(); err != nil {
		return &format.FileError{File: in.Name, Err: err}
	}
	for _, i := range r.undone {
		r.leaveOut(int(i))
	}
	r.b = dag.RankBuilder{}
	return nil
}

// readingError says where reading a file failed, so many lines of which were read before.
func readingError(file string, lines int64, err error) error {
	var syntax *format.SyntaxError
	switch {
	case errors.As(err, &syntax):
		return err
	case errors.Is(err, format.ErrLongLine):
		return &format.SyntaxError{File: file, Line: lines + 1, Class: inLine, Expected: "a shorter line",
			Found: err.Error()}
	}
	return &format.FileError{File: file, Err: err}
}

// translate turns communicators and ranks in them into those of the trace. An op of a communicator whose members are
// not known becomes a calc of no length, and is counted.
func (r *rankReader) translate() error {
	d := &r.dag
	plain := true
	for i := range r.instances {
		plain = plain && r.instances[i].group != nil && r.instances[i].group.comm == 0
	}
	if plain && d.Comm.Len() == 0 {
		return nil
	}
	left := make([]int64, len(r.instances))
	for i, kind := range d.Kind {
		if kind == dag.Calc {
			continue
		}
		inst := d.Comm.At(i)
		g := r.instances[inst].group
		if g == nil {
			left[inst]++
			r.leaveOut(i)
			continue
		}
		d.Comm.Set(i, g.comm)
		hasPeer := kind != dag.Coll || d.Subkind.At(i).Rooted()
		if peer := d.Peer.At(i); hasPeer && peer >= 0 {
			d.Peer.Set(i, g.members[peer])
		}
	}
	for inst, n := range left {
		if n > 0 {
			in := &r.instances[inst]
			r.problems.merge(problem{class: inCall, line: in.line, count: n,
				what: fmt.Sprintf("calls on communicators of %d ranks which the trace does not name", in.size)})
		}
	}
	return nil
}

// leaveOut makes an op a calc of no length.
func (r *rankReader) leaveOut(i int) {
	d := &r.dag
	d.Kind[i] = dag.Calc
	d.Subkind.Set(i, dag.NoSubkind)
	d.Bytes.Set(i, 0)
	d.RecvBytes.Set(i, 0)
	d.Peer.Set(i, 0)
	d.Tag.Set(i, 0)
	d.Comm.Set(i, 0)
}

// warn says what looks wrong in the trace.
func warn(ranks []*rankReader, o format.ReadOptions) {
	var backward, unwaited, cancelled, uneven, misnumbered, guessed, cut finding
	for _, r := range ranks {
		cancelled.merge(r.file, &r.cancelled)
		uneven.merge(r.file, &r.uneven)
		guessed.merge(r.file, &r.guessed)
		if !r.over {
			cut.merge(r.file, &finding{count: 1})
		}
		backward.merge(r.file, &r.backward)
		unwaited.merge(r.file, &r.unwaited)
		misnumbered.merge(r.file, &r.misnumbered)
	}
	if misnumbered.count > 0 {
		o.Warn("%s:%d: the rank in the communicator of all ranks is not that in the file's name, "+
			"which counts (%s in all)", misnumbered.file, misnumbered.line, times(misnumbered.count))
	}
	if backward.count > 0 {
		o.Warn("%s:%d: a call that starts before the one above it has ended, or ends before it starts: "+
			"its gap counts as 0 (%s in all)", backward.file, backward.line, times(backward.count))
	}
	if unwaited.count > 0 {
		o.Warn("%s:%d: a request that no call completes (%s in all)", unwaited.file, unwaited.line,
			times(unwaited.count))
	}
	if cancelled.count > 0 {
		o.Warn("%s:%d: MPI_Cancel of a receive, for which no message is taken to come (%s in all)", cancelled.file,
			cancelled.line, times(cancelled.count))
	}
	if uneven.count > 0 {
		o.Warn("%s:%d: MPI_Alltoallv with uneven counts, of which only the sums are kept (%s in all)", uneven.file,
			uneven.line, times(uneven.count))
	}
	if guessed.count > 0 {
		o.Warn("%s:%d: a communicator that may be one of several is taken for the one that was made first (%s in all)",
			guessed.file, guessed.line, times(guessed.count))
	}
	warnOfEnds(&cut, o.Warn)
}

// warnOfEnds says how many files lack their end.
func warnOfEnds(cut *finding, warn func(string, ...any)) {
	switch {
	case cut.count == 1:
		warn("%s: the file ends without MPI_Finalize", cut.file)
	case cut.count > 1:
		warn("%d files end without MPI_Finalize, the first is %s", cut.count, cut.file)
	}
}

// finding is something that looks wrong.
type finding struct {
	file  string
	line  int64 // of the first
	count int64
}

func (f *finding) add(line int64) {
	if f.count++; f.count == 1 {
		f.line = line
	}
}

// merge adds what was found in a file.
func (f *finding) merge(file string, g *finding) {
	if f.count == 0 {
		f.file, f.line = file, g.line
	}
	f.count += g.count
}

// alignClocks puts the measured times of all ranks on one clock: that of rank 0, as far as the tracer measured how the
// others differ, from the end of the first MPI_Init on.
func alignClocks(ranks []*rankReader, warn func(string, ...any)) {
	var zero *rankReader // whose first time all are compared with
	for _, r := range ranks {
		if r.began {
			zero = r
			break
		}
	}
	if zero == nil {
		return
	}
	const most = int64(50 * 24 * 3600 * dag.Second / dag.Microsecond)
	shifts := make([]dag.Time, len(ranks))
	earliest := zero.first
	for i, r := range ranks {
		if !r.began {
			continue
		}
		us := (r.base + r.shift) - (zero.base + zero.shift)
		if us < -most || us > most {
			warn("%s: its clock is %d s off that of %s: the measured times of each rank begin at 0", r.file,
				us/1_000_000, zero.file)
			for _, r := range ranks {
				r.shiftMeasured(-r.first)
			}
			return
		}
		shifts[i] = dag.Time(us) * dag.Microsecond
		earliest = min(earliest, shifts[i]+r.first)
	}
	for i, r := range ranks {
		r.shiftMeasured(shifts[i] - earliest)
	}
}

func (r *rankReader) shiftMeasured(by dag.Time) {
	for i := range r.dag.MeasuredStart {
		r.dag.MeasuredStart[i] += by
		r.dag.MeasuredEnd[i] += by
	}
}
