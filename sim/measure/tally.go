// This file counts values that may be too many for memory.

package measure

import (
	"bufio"
	"cmp"
	"container/heap"
	"context"
	"encoding/binary"
	"errors"
	"io"
	"math"
	"slices"

	"github.com/tracedag/tracedag/memory"
	"github.com/tracedag/tracedag/sim"
)

// Tally counts values without a limit of their number. In memory are different values and how often each appears; what
// exceeds the memory goes to a temporary file, sorted. Nothing is approximate.
type Tally struct {
	most   int      // different values in memory
	recent []uint64 // values that counted does not have yet, as bits of numbers
	// In ascending order; scratch has the memory of the next merge.
	counted, scratch []countedBits
	n                int64
	different        int64 // as of Interpolate
	file             *sim.Scratch
	runs             []int64 // ends in the file
	mostRuns         int
}

// countedBits is a value and how often it appears. Bits of numbers of at least 0 have the order of the numbers.
type countedBits struct {
	bits  uint64
	count int64
}

const (
	// fewestCounted is the least number of different values in memory.
	fewestCounted = 1 << 12
	// tallyShare is the number of bytes of a limit for each different value in memory, which takes 52.
	tallyShare = 52 * 64
	// mostRuns is the number of sorted runs in the file that are merged at a time.
	mostRuns = 256
	// runBuffer is the number of bytes read and written at a time.
	runBuffer = 4 << 10
)

// NewTally returns an empty tally that takes at most a 64th of a limit of memory in bytes, and about 1.5 MiB to merge
// runs.
func NewTally(limit int64) *Tally {
	most := int(min(max(limit/tallyShare, fewestCounted), 1<<22))
	return &Tally{most: most, mostRuns: mostRuns}
}

// Add counts a value of at least 0.
func (t *Tally) Add(value float64) error {
	t.n++
	t.recent = append(t.recent, math.Float64bits(value+0)) // no negative zero
	if len(t.recent) < t.most/2 {
		return nil
	}
	t.merge()
	if len(t.counted) <= t.most {
		return nil
	}
	return t.spill()
}

// merge moves the recent values to the counted ones.
func (t *Tally) merge() {
	slices.Sort(t.recent)
	into, k := t.scratch[:0], 0
	for i := 0; i < len(t.recent); {
		bits, first := t.recent[i], i
		for i < len(t.recent) && t.recent[i] == bits {
			i++
		}
		for ; k < len(t.counted) && t.counted[k].bits < bits; k++ {
			into = append(into, t.counted[k])
		}
		c := countedBits{bits, int64(i - first)}
		if k < len(t.counted) && t.counted[k].bits == bits {
			c.count += t.counted[k].count
			k++
		}
		into = append(into, c)
	}
	t.counted, t.scratch = append(into, t.counted[k:]...), t.counted
	t.recent = t.recent[:0]
}

// spill moves the counted values to the file, and merges its runs if they are many.
func (t *Tally) spill() error {
	if t.file == nil {
		if err := t.create(); err != nil {
			return err
		}
	}
	w := t.writer()
	for _, c := range t.counted {
		w.add(c)
	}
	t.counted = t.counted[:0]
	if err := w.end(t); err != nil || len(t.runs) < t.mostRuns {
		return err
	}
	before, runs := t.file, t.runs
	defer before.Close()
	if err := t.create(); err != nil {
		return err
	}
	w = t.writer()
	if err := mergeRuns(before, runs, nil, func(c countedBits) { w.add(c) }); err != nil {
		return err
	}
	return w.end(t)
}

// create starts a file without runs.
func (t *Tally) create() (err error) {
	t.runs = nil
	t.file, err = sim.NewScratch("tracedag-values-*", "of values of a replay that exceeds the limit of memory")
	return err
}

// Close removes the temporary file.
func (t *Tally) Close() error {
	if t.file == nil {
		return nil
	}
	return t.file.Close()
}

// runWriter writes a run: differences of bits, and counts.
type runWriter struct {
	*bufio.Writer
	position int64
	last     uint64
	number   [2 * binary.MaxVarintLen64]byte
}

// writer returns a writer of a run behind the others.
func (t *Tally) writer() *runWriter {
	at := int64(0)
	if len(t.runs) > 0 {
		at = t.runs[len(t.runs)-1]
	}
	return &runWriter{Writer: bufio.NewWriterSize(io.NewOffsetWriter(t.file, at), runBuffer), position: at}
}

func (w *runWriter) add(c countedBits) {
	b := binary.AppendUvarint(w.number[:0], c.bits-w.last)
	b = binary.AppendUvarint(b, uint64(c.count))
	w.last = c.bits
	w.position += int64(len(b))
	w.Write(b) // Flush returns the error
}

func (w *runWriter) end(t *Tally) error {
	if err := w.Flush(); err != nil {
		return t.file.Fail(err)
	}
	t.runs = append(t.runs, w.position)
	return nil
}

// run is a sorted sequence that is merged: one of the file, or one in memory.
type run struct {
	next   countedBits
	file   *bufio.Reader // nil: in memory
	memory []countedBits
}

// advance reads the next value. It returns false at the end.
func (r *run) advance() (bool, error) {
	if r.file == nil {
		if len(r.memory) == 0 {
			return false, nil
		}
		r.next, r.memory = r.memory[0], r.memory[1:]
		return true, nil
	}
	more, err := binary.ReadUvarint(r.file)
	if errors.Is(err, io.EOF) {
		return false, nil
	}
	count, err2 := binary.ReadUvarint(r.file)
	r.next = countedBits{r.next.bits + more, int64(count)}
	return true, cmp.Or(err, err2)
}

// runHeap has the run with the smallest value first.
type runHeap []*run

func (h runHeap) Len() int           { return len(h) }
func (h runHeap) Less(i, j int) bool { return h[i].next.bits < h[j].next.bits }
func (h runHeap) Swap(i, j int)      { h[i], h[j] = h[j], h[i] }
func (h *runHeap) Push(r any)        { *h = append(*h, r.(*run)) }
func (h *runHeap) Pop() any {
	last := (*h)[len(*h)-1]
	*h = (*h)[:len(*h)-1]
	return last
}

// mergeRuns calls do with the different values of runs and of counted, in ascending order.
func mergeRuns(file *sim.Scratch, ends []int64, counted []countedBits, do func(countedBits)) error {
	runs := runHeap{{memory: counted}}
	from := int64(0)
	for _, end := range ends {
		part := io.NewSectionReader(file, from, end-from)
		runs = append(runs, &run{file: bufio.NewReaderSize(part, runBuffer)})
		from = end
	}
	n := 0
	for _, r := range runs {
		more, err := r.advance()
		if err != nil {
			return file.Fail(err)
		}
		if more {
			runs[n] = r
			n++
		}
	}
	runs = runs[:n]
	heap.Init(&runs)
	for len(runs) > 0 {
		c := countedBits{bits: runs[0].next.bits}
		for len(runs) > 0 && runs[0].next.bits == c.bits {
			c.count += runs[0].next.count
			more, err := runs[0].advance()
			switch {
			case err != nil:
				return file.Fail(err)
			case more:
				heap.Fix(&runs, 0)
			default:
				heap.Pop(&runs)
			}
		}
		do(c)
	}
	return nil
}

// Interpolate summarizes the values, to the last bit as the function [Interpolate] does.
func (t *Tally) Interpolate() (d Distribution[float64], err error) {
	t.merge()
	if d.Count = t.n; t.n == 0 {
		return d, nil
	}
	var between [4]betweenValues
	for i, p := range []float64{0.5, 0.95, 0.99, 0.999} {
		between[i].position, between[i].share = quantilePosition(t.n, p)
	}
	sum, before := 0.0, int64(0)
	t.different = 0
	err = mergeRuns(t.file, t.runs, t.counted, func(c countedBits) {
		v := math.Float64frombits(c.bits)
		if t.different++; t.different == 1 {
			d.Min = v
		}
		d.Max = v
		for range c.count { // rounding depends on the number of additions
			sum += v
		}
		for i := range between {
			between[i].visit(v, before, before+c.count)
		}
		before += c.count
	})
	d.Mean = sum / float64(t.n)
	d.P50, d.P95, d.P99, d.P999 = between[0].value(), between[1].value(), between[2].value(), between[3].value()
	return d, err
}

// betweenValues is a percentile between the values at a position, counted from 0, and the next one.
type betweenValues struct {
	position    int64
	share       float64
	lower, next float64
}

// visit takes the value of the positions from first up to, but not including, end.
func (b *betweenValues) visit(v float64, first, end int64) {
	if first <= b.position && b.position < end {
		b.lower, b.next = v, v
	}
	if first <= b.position+1 && b.position+1 < end {
		b.next = v
	}
}

func (b *betweenValues) value() float64 { return interpolate(b.lower, b.next, b.share) }

// Counts returns the different values in ascending order, and how often each appears, after Interpolate. It returns an
// error if they exceed the limit of memory of the context.
func (t *Tally) Counts(ctx context.Context) (values []float64, counts []int64, err error) {
	if err := memory.Check(ctx, "different values of a distribution", 2*(8+8), t.different); err != nil {
		return nil, nil, err
	}
	values, counts = make([]float64, 0, t.different), make([]int64, 0, t.different)
	err = mergeRuns(t.file, t.runs, t.counted, func(c countedBits) {
		values, counts = append(values, math.Float64frombits(c.bits)), append(counts, c.count)
	})
	return values, counts, err
}
