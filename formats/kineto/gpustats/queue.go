// This file measures the queues of streams.

package gpustats

import (
	"cmp"
	"math"
	"slices"

	"github.com/tracedag/tracedag/dag"
)

// fullQueue is the length from which a queue counts as full: that of CUDA.
const fullQueue = 1024

// queues returns the lengths of the queues of streams. Launches come before other changes at the same time.
func queues(changes []change) []Queue {
	slices.SortFunc(changes, func(a, b change) int {
		return cmp.Or(a.place.compare(b.place), cmp.Compare(a.at, b.at), cmp.Compare(b.step, a.step))
	})
	list := []Queue{}
	var lengths []int64
	for len(changes) > 0 {
		q := Queue{Device: changes[0].place.device, Stream: changes[0].place.stream}
		n := 1
		for n < len(changes) && changes[n].place == changes[0].place {
			n++
		}
		lengths = lengths[:0]
		length := int64(0)
		for i, c := range changes[:n] {
			length += int64(c.step)
			lengths = append(lengths, length)
			if length >= fullQueue && i+1 < n {
				q.Full += changes[i+1].at - c.at
			}
		}
		q.measure(lengths)
		list = append(list, q)
		changes = changes[n:]
	}
	return list
}

// measure sets the distribution of lengths. It sorts them.
func (q *Queue) measure(lengths []int64) {
	slices.Sort(lengths)
	q.Count = len(lengths)
	sum := int64(0)
	for _, v := range lengths {
		sum += v
	}
	q.Mean = float64(sum) / float64(q.Count)
	squares := 0.0
	for _, v := range lengths {
		squares += (float64(v) - q.Mean) * (float64(v) - q.Mean)
	}
	if q.Count > 1 {
		q.Std = math.Sqrt(squares / float64(q.Count-1))
	}
	q.Min, q.Max = float64(lengths[0]), float64(lengths[q.Count-1])
	q.P25, q.P50, q.P75 = quantile(lengths, 0.25), quantile(lengths, 0.5), quantile(lengths, 0.75)
}

// quantile returns a quantile of sorted numbers by linear interpolation.
func quantile[N int64 | dag.Time](sorted []N, q float64) float64 {
	whole, part := math.Modf(float64(len(sorted)-1) * q)
	i := int(whole)
	if i+1 == len(sorted) {
		return float64(sorted[i])
	}
	return float64(sorted[i]) + float64(sorted[i+1]-sorted[i])*part
}
