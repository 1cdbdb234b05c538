package measure

import (
	"fmt"
	"io"
	"slices"
	"strconv"

	"github.com/tracedag/tracedag/dag"
	"github.com/tracedag/tracedag/sim"
)

// Steps are the steps of the ops of a trace, such as the iterations of training, for [Breakdown].
type Steps struct {
	ranks []rankSteps // ranks of the compiled trace; see Observe
}

// rankSteps maps the ops of a rank to steps.
type rankSteps struct {
	numbers []int32    // steps with ops on the rank, ascending, from 1
	place   dag.Narrow // by op: 1 + index of its step in numbers; 0: none
}

// NewSteps returns the steps of a trace with the given number of ranks, or nil if it has none.
func NewSteps(meta dag.Meta, ranks int) *Steps {
	if meta.Steps == 0 {
		return nil
	}
	return &Steps{make([]rankSteps, ranks)}
}

// Observe records the steps of ranks of the compiled trace; first is the number of the first one. Calls for different
// ranks may be concurrent.
func (s *Steps) Observe(first int, ranks []*dag.Rank) {
	for i := range ranks {
		s.ranks[first+i].observe(ranks[i])
	}
}

func (s *rankSteps) observe(r *dag.Rank) {
	of := make([]int32, r.Step.Len())
	r.Step.Copy(of, 0)
	var changes []int32 // steps that differ from that of the previous op
	before := int32(0)
	for _, step := range of {
		if step != before && step > 0 {
			changes = append(changes, step)
		}
		before = step
	}
	slices.Sort(changes)
	s.numbers = slices.Clone(slices.Compact(changes))
	at := 0 // in numbers, of the previous op
	for i, step := range of {
		if step <= 0 {
			of[i] = 0
			continue
		}
		if s.numbers[at] != step {
			at, _ = slices.BinarySearch(s.numbers, step)
		}
		of[i] = int32(at) + 1
	}
	s.place = dag.Narrow{}
	s.place.SetRange(0, of)
}

// stepTimes records the ends of the steps of a run.
type stepTimes struct {
	steps *Steps
	start []uint32   // sim.Layout.Start
	unit  dag.Time   // of times
	ends  [][]uint64 // by rank and step, as in rankSteps.numbers: latest end of an op of the step; 0: none
}

func (t *stepTimes) begin(l *sim.Layout) {
	t.start, t.unit = l.Start, l.Unit
	t.ends = make([][]uint64, min(len(t.steps.ranks), l.Ranks()))
	for rank := range t.ends {
		t.ends[rank] = make([]uint64, len(t.steps.ranks[rank].numbers))
	}
}

// ended records the end of a span of an op.
func (t *stepTimes) ended(rank, op uint32, end uint64) {
	if place := t.steps.ranks[rank].place.At(int(op - t.start[rank])); place > 0 {
		latest := &t.ends[rank][place-1]
		*latest = max(*latest, end)
	}
}

// stepParts are the parts of a step, over all ranks with ops of the step. Times are in ticks.
type stepParts struct {
	number     int32 // 0: the time after the last step of each rank
	ranks      int
	begin, end uint64 // from the first rank's begin to the last one's end
	ticks      [parts]wide
	unit       dag.Time
}

// add adds the parts of a rank from begin to end.
func (p *stepParts) add(begin, end uint64, ticks *[parts]uint64) {
	if p.ranks == 0 || begin < p.begin {
		p.begin = begin
	}
	p.ranks++
	p.end = max(p.end, end)
	for k, n := range ticks {
		p.ticks[k].add(n)
	}
}

// divide returns the parts of all steps, ascending, and at the end those of the remaining time. A step of a rank begins
// when the previous one of the rank ends, or at 0, and ends with its last op, so that the parts of the steps of a rank
// and of its remaining time add up to its finish.
func (t *stepTimes) divide(finish []sim.Clock, ranks []activity) []stepParts {
	var numbers []int32
	for rank := range t.ends {
		if own := t.steps.ranks[rank].numbers; !slices.Equal(own, numbers) {
			numbers = append(numbers, own...)
			slices.Sort(numbers)
			numbers = slices.Compact(numbers)
		}
	}
	all := make([]stepParts, len(numbers)+1)
	for i := range all {
		all[i].unit = t.unit
		if i < len(numbers) {
			all[i].number = numbers[i]
		}
	}
	for rank := range finish {
		last, a := finish[rank].Ticks, &activity{}
		if rank < len(ranks) {
			a = &ranks[rank]
		}
		s, at := a.sweep(), 0
		if rank < len(t.ends) {
			for k, number := range t.steps.ranks[rank].numbers {
				begin := s.now
				end := max(begin, min(t.ends[rank][k], last))
				ticks := s.until(end)
				for numbers[at] != number {
					at++
				}
				all[at].add(begin, end, &ticks)
			}
		}
		if begin := s.now; begin < last {
			ticks := s.until(last)
			all[len(numbers)].add(begin, last, &ticks)
		}
	}
	return all
}

func (t *stepTimes) finish(r *sim.Result, ranks []activity) {
	all := t.divide(r.Finish, ranks)
	if rest := len(all) - 1; all[rest].ranks == 0 {
		all = all[:rest]
	}
	r.Add(sim.Section{Key: "breakdown_steps", Value: stepList(all), At: sim.Detail,
		Tables: func(w io.Writer) { printSteps(w, t.unit, all) }})
}

// stepList is the parts of all steps as a member of a result.
type stepList []stepParts

// WriteJSON writes a JSON array with an object per step.
func (l stepList) WriteJSON(w io.Writer) error {
	line := []byte{'['}
	for i := range l {
		p := &l[i]
		if i > 0 {
			line = append(line, ',')
		}
		line = fmt.Appendf(line, `{"step":%d,"ranks":%d,"begin_ps":`, p.number, p.ranks)
		line, _ = sim.Clock{Ticks: p.begin, Unit: p.unit}.AppendText(line)
		line = append(line, `,"end_ps":`...)
		line, _ = sim.Clock{Ticks: p.end, Unit: p.unit}.AppendText(line)
		for k := range p.ticks {
			line = fmt.Appendf(line, `,"%s_ps":%v`, partNames[k].key, p.ticks[k].picoseconds(p.unit))
		}
		line = append(line, '}')
		if _, err := w.Write(line); err != nil {
			return err
		}
		line = line[:0]
	}
	_, err := w.Write(append(line, ']'))
	return err
}

// printSteps prints the parts of each step, as means of its ranks.
func printSteps(w io.Writer, unit dag.Time, all []stepParts) {
	rows := make([]partRow, 0, len(all))
	for i := range all {
		p := &all[i]
		if p.number == 0 || p.ranks == 0 {
			continue
		}
		row := partRow{label: strconv.Itoa(int(p.number))}
		var time wide
		for k := range p.ticks {
			row.ticks[k] = p.ticks[k].over(uint64(p.ranks))
			time.add(row.ticks[k])
		}
		row.time = time.low
		rows = append(rows, row)
	}
	printParts(w, "step", "time per rank", unit, rows)
}
