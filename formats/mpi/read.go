// This file reads the files of a trace and combines their ranks.

package mpi

import (
	"errors"
	"fmt"
	"slices"

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
		ranks[i] = &rankReader{ctx: o.Context, file: in.Name, rank: int32(i), ranks: int32(len(inputs)),
			lenient: o.Lenient}
	}
	err = par.Each(len(ranks), func(i int) error { return ranks[i].read(inputs[i]) })
	if err != nil {
		return nil, err
	}
	computed := !exchanged(ranks, o.Warn)
	if err := par.Each(len(ranks), func(i int) error { return ranks[i].build(computed) }); err != nil {
		return nil, err
	}
	resolveCommunicators(ranks)
	t := &dag.Trace{Comms: number(ranks), Ranks: dag.NewRanks(len(ranks))}
	if err := par.Each(len(ranks), func(i int) error { return ranks[i].translate() }); err != nil {
		return nil, err
	}
	var problems problems
	for i, r := range ranks {
		problems.collect(r.file, &r.problems)
		t.Ranks[i] = r.dag.Keep()
		t.Steps = max(t.Steps, r.steps)
	}
	if !o.Lenient {
		if err := checkFiles(ranks); err != nil {
			return nil, err
		}
		if err := problems.err(); err != nil {
			return nil, err
		}
	}
	problems.warn(o.Warn)
	warn(ranks, o)
	alignClocks(t, ranks, o.Warn)
	return t, chooseRequests(t, ranks)
}

// read reads the lines of a rank's file.
func (r *rankReader) read(in *format.Input) error {
	if err := format.EachLines(r.ctx, in.Reader, r.lines); err != nil {
		return readingError(in.Name, r.line, err)
	}
	return nil
}

// exchanged reports whether the gaps before MPI_Finalize are exchanges of the tracer, which measured clocks between the
// last call and the end of MPI_Finalize. Every rank takes part, in a hundred round trips or more: if the gap of one
// rank is shorter than a microsecond, the tracer noted the start of MPI_Finalize before. A warning gives the length of
// gaps that exceed 1 % of the time of a rank.
func exchanged(ranks []*rankReader, warn func(string, ...any)) bool {
	var longest, sum dag.Time
	long := false
	for _, r := range ranks {
		switch {
		case !r.closing || !r.whole:
		case r.tail < dag.Microsecond:
			return false
		default:
			longest = max(longest, r.tail)
			sum += r.tail
			long = long || r.tail > (r.last-r.first)/100
		}
	}
	if long {
		warn("the time before MPI_Finalize is not computation, because the tracer measured clocks there: at most %v, "+
			"%v on all ranks", longest, sum)
	}
	return true
}

// build makes the DAG of the rank after the whole file has been read. computed is true if the last gap is computation
// although the tracer measured clocks.
func (r *rankReader) build(computed bool) error {
	if computed && r.tail > 0 {
		r.closeGap(r.last + r.tail)
	}
	r.closeTests()
	for i := range r.all {
		r.complete(int32(i))
	}
	r.dag = r.b.Rank()
	if err := r.b.Err(); err != nil {
		return &format.FileError{File: r.file, Err: err}
	}
	for _, i := range r.undone {
		r.drop(int(i))
	}
	r.keepLone()
	r.b = dag.RankBuilder{}
	return nil
}

// readingError adds the position to an error of reading a file after the given number of lines.
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

// translate converts communicators, and ranks in them, to those of the trace. An op of a communicator with unknown
// members becomes a calc of duration 0 and is counted.
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
			r.drop(i)
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
			r.unidentified = true
			r.problems.merge(problem{class: inCall, line: in.line, count: n,
				text: fmt.Sprintf("calls on communicators of %d ranks that the trace does not identify", in.size)})
		}
	}
	return nil
}

// checkFiles returns an error if a trace with communicators of unknown members, or with ranks in none, has files of
// several runs: more than the ranks of the largest communicator, or with largest communicators of different sizes.
func checkFiles(ranks []*rankReader) error {
	if !slices.ContainsFunc(ranks, func(r *rankReader) bool { return r.unidentified || len(r.instances) == 0 }) {
		return nil
	}
	largest := func(r *rankReader) (key commKey) {
		for i := range r.instances {
			if in := &r.instances[i]; in.size > key.size {
				key = in.commKey
			}
		}
		return key
	}
	var first, other *rankReader // with largest communicators of different sizes
	numbered := true             // as in them
	for _, r := range ranks {
		key := largest(r)
		switch {
		case key.size == 0:
			continue
		case first == nil:
			first = r
		case other == nil && key.size != largest(first).size:
			other = r
		}
		numbered = numbered && key.rank == r.rank
	}
	switch {
	case first == nil:
	case other == nil && int(largest(first).size) < len(ranks):
		size := largest(first).size
		return format.FileErrorf(ranks[size].file, "%s: expected %d files, as many as the ranks of the largest "+
			"communicator, found %d: those from rank %d on are perhaps of another run; name the files of one run only",
			inFiles, size, len(ranks), size)
	case other != nil && numbered:
		return format.FileErrorf(other.file, "%s: expected files of one run, found a largest communicator of %d "+
			"ranks, and one of %d in %s; name the files of one run only", inFiles, largest(other).size,
			largest(first).size, first.file)
	}
	return nil
}

// drop converts an op to a calc of duration 0.
func (r *rankReader) drop(i int) {
	d := &r.dag
	d.Kind[i] = dag.Calc
	d.Subkind.Set(i, dag.NoSubkind)
	d.Bytes.Set(i, 0)
	d.RecvBytes.Set(i, 0)
	d.Peer.Set(i, 0)
	d.Tag.Set(i, 0)
	d.Comm.Set(i, 0)
}

// warn reports suspicious data of the trace.
func warn(ranks []*rankReader, o format.ReadOptions) {
	var backward, unwaited, cancelled, misnumbered, guessed, strided, cut, polled, setUp finding
	polledFor, setUpFor, total := 0.0, 0.0, 0.0
	for _, r := range ranks {
		polled.merge(r.file, &r.polled)
		polledFor += float64(r.polledFor)
		setUp.merge(r.file, &r.setUp)
		setUpFor += float64(r.setUpFor)
		if last := len(r.dag.Kind) - 1; last >= 0 {
			begin, _ := r.dag.Measured(0)
			_, end := r.dag.Measured(last)
			total += float64(end - begin)
		}
		cancelled.merge(r.file, &r.cancelled)
		guessed.merge(r.file, &r.guessed)
		strided.merge(r.file, &r.strided)
		if !r.over {
			cut.merge(r.file, &finding{count: 1})
		}
		backward.merge(r.file, &r.backward)
		unwaited.merge(r.file, &r.unwaited)
		misnumbered.merge(r.file, &r.misnumbered)
	}
	if misnumbered.count > 0 {
		o.Warn("%s:%d: the rank in the communicator of all ranks differs from the file name; "+
			"the file name is used (%s in all)", misnumbered.file, misnumbered.line, times(misnumbered.count))
	}
	if backward.count > 0 {
		o.Warn("%s:%d: a call starts before the end of the previous one, or ends before its start; "+
			"its gap counts as 0 (%s in all)", backward.file, backward.line, times(backward.count))
	}
	if unwaited.count > 0 {
		o.Warn("%s:%d: a request is never completed (%s in all)", unwaited.file, unwaited.line,
			times(unwaited.count))
	}
	if cancelled.count > 0 {
		o.Warn("%s:%d: MPI_Cancel of a receive; it is assumed to have no message (%s in all)", cancelled.file,
			cancelled.line, times(cancelled.count))
	}
	if guessed.count > 0 {
		o.Warn("%s:%d: a communicator has several candidates; one whose calls overlap most in time is used "+
			"(%s in all). Its members may be wrong; then times are wrong, or the simulation does not end. Record a "+
			"grid with sides of different lengths, or call a different collective first on each communicator",
			guessed.file, guessed.line, times(guessed.count))
	}
	if strided.count > 0 {
		o.Warn("%s:%d: the trace does not list the members of a communicator; they follow from the ranks in it, a "+
			"fixed stride apart (%s in all)", strided.file, strided.line, times(strided.count))
	}
	if polled.count > 0 {
		o.Warn("%s:%d: SMPI's MPI_Waitsome takes 100 us or more for each request that it tests (option smpi/test); "+
			"the recorded time is kept (%s in all, %.3g %% of the time of the ranks)", polled.file, polled.line,
			times(polled.count), 100*polledFor/max(total, polledFor, 1))
	}
	if share := setUpFor / max(total, setUpFor, 1); share >= longSetUp {
		o.Warn("%s:%d: calls that create communicators, such as MPI_Comm_split, keep their recorded time on any "+
			"machine (%s in all, %.3g %% of the time of the ranks)", setUp.file, setUp.line, times(setUp.count),
			100*share)
	}
	warnOfEnds(&cut, o.Warn)
}

// longSetUp is the least share of calls that create communicators in the time of the ranks that is a warning.
const longSetUp = 0.01

// warnOfEnds reports the files without an end.
func warnOfEnds(cut *finding, warn func(string, ...any)) {
	switch {
	case cut.count == 1:
		warn("%s: the file ends without MPI_Finalize", cut.file)
	case cut.count > 1:
		warn("%d files end without MPI_Finalize, the first is %s", cut.count, cut.file)
	}
}

// finding counts a kind of suspicious data.
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

// merge adds the findings of a file.
func (f *finding) merge(file string, g *finding) {
	if f.count == 0 {
		f.file, f.line = file, g.line
	}
	f.count += g.count
}

// alignClocks maps the measured times of all ranks to the clock of rank 0, with the clock differences that the
// tracer measured, unless the collectives or the messages of the trace show that the clocks agree better without them.
// Time 0 is the end of the first MPI_Init.
func alignClocks(t *dag.Trace, ranks []*rankReader, warn func(string, ...any)) {
	unshifted := make([]dag.Time, len(ranks))
	corrected, ok := shifts(ranks, true, warn)
	shift(ranks, unshifted, corrected)
	if !ok || !slices.ContainsFunc(ranks, func(r *rankReader) bool { return r.began && r.shift != 0 }) {
		return
	}
	with, _ := dag.ClockErrorOf(t)
	early := earliness(t)
	if max(with.AtLeast, early) == 0 {
		return
	}
	plain, ok := shifts(ranks, false, nil)
	if !ok {
		return
	}
	shift(ranks, corrected, plain)
	without, _ := dag.ClockErrorOf(t)
	rest := earliness(t)
	switch {
	case max(with.AtLeast, early) <= max(without.AtLeast, rest):
		shift(ranks, plain, corrected)
	case with.AtLeast > without.AtLeast:
		warn("the clock differences that the tracer measured are not used: with them, a member of a collective enters "+
			"it %v after another one has left it, without them %v", with.AtLeast, without.AtLeast)
	default:
		warn("the clock differences that the tracer measured are not used: with them, a message is received %v before "+
			"it is sent, without them %v", early, rest)
	}
}

// earliness returns the largest time by which messages are received before they are sent. The k-th message of a rank
// from another one cannot be received before that rank has sent k messages to it.
func earliness(t *dag.Trace) (most dag.Time) {
	type pair struct{ from, to int32 }
	sent, received := map[pair][]dag.Time{}, map[pair][]dag.Time{}
	for rank, r := range t.Ranks {
		ends, starts := r.Dependents(), r.StartDependents()
		for i, kind := range r.Kind {
			begin, end := r.Measured(i)
			peer := r.Peer.At(i)
			if begin == dag.Unmeasured || peer < 0 {
				continue
			}
			switch kind {
			case dag.Send:
				p := pair{int32(rank), peer}
				sent[p] = append(sent[p], begin)
			case dag.Recv:
				if len(starts.Of(i)) > 0 { // it ends before the op that waits for it
					if waits := ends.Of(i); len(waits) == 0 {
						continue
					} else if _, end = r.Measured(int(waits[0])); end == dag.Unmeasured {
						continue
					}
				}
				p := pair{peer, int32(rank)}
				received[p] = append(received[p], end)
			}
		}
	}
	for p, ends := range received {
		begins := sent[p]
		slices.Sort(ends)
		slices.Sort(begins)
		for k, end := range ends[:min(len(ends), len(begins))] {
			most = max(most, begins[k]-end)
		}
	}
	return most
}

// shifts returns the times to add to the measured times of each rank, with or without the clock differences. If clocks
// are too far apart, each rank begins at 0, and ok is false, with a warning unless warn is nil.
func shifts(ranks []*rankReader, corrected bool, warn func(string, ...any)) (all []dag.Time, ok bool) {
	var zero *rankReader // its first time is the reference
	for _, r := range ranks {
		if r.began {
			zero = r
			break
		}
	}
	all = make([]dag.Time, len(ranks))
	if zero == nil {
		return all, true
	}
	clock := func(r *rankReader) int64 {
		if corrected {
			return r.base + r.shift
		}
		return r.base
	}
	const most = int64(50 * 24 * 3600 * dag.Second / dag.Microsecond)
	earliest := zero.first
	for i, r := range ranks {
		if !r.began {
			continue
		}
		us := clock(r) - clock(zero)
		if us < -most || us > most {
			if warn != nil {
				warn("%s: its clock differs by %d s from that of %s; the measured times of each rank begin at 0",
					r.file,
					us/1_000_000, zero.file)
			}
			for i, r := range ranks {
				all[i] = -r.first
			}
			return all, false
		}
		all[i] = dag.Time(us) * dag.Microsecond
		earliest = min(earliest, all[i]+r.first)
	}
	for i := range all {
		all[i] -= earliest
	}
	return all, true
}

// shift moves the measured times of each rank from one shift to another.
func shift(ranks []*rankReader, from, to []dag.Time) {
	for i, r := range ranks {
		r.shiftMeasured(to[i] - from[i])
	}
}

func (r *rankReader) shiftMeasured(by dag.Time) {
	for i := range r.dag.MeasuredStart {
		r.dag.MeasuredStart[i] += by
		r.dag.MeasuredEnd[i] += by
	}
}
