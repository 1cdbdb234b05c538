package measure

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strconv"

	"github.com/tracedag/tracedag/dag"
)

// Distribution summarizes a set of values. Min to Max are 0 without values. P999, the 99.9th percentile, is also 0 if
// the creator does not compute it.
type Distribution[T ~int64 | ~uint64 | ~float64] struct {
	Count int64   `json:"count"`
	Mean  float64 `json:"mean"`
	Min   T       `json:"min"`
	P50   T       `json:"p50"`
	P95   T       `json:"p95"`
	P99   T       `json:"p99"`
	P999  T       `json:"p99.9,omitzero"`
	Max   T       `json:"max"`
}

// Interpolate sorts the values and summarizes them. Percentiles interpolate linearly; see [Quantile].
func Interpolate(values []float64) Distribution[float64] {
	if len(values) == 0 {
		return Distribution[float64]{}
	}
	slices.Sort(values)
	sum := 0.0
	for _, v := range values {
		sum += v
	}
	return Distribution[float64]{
		Count: int64(len(values)), Min: values[0], Mean: sum / float64(len(values)), P50: Quantile(values, 0.5),
		P95: Quantile(values, 0.95), P99: Quantile(values, 0.99), P999: Quantile(values, 0.999),
		Max: values[len(values)-1],
	}
}

// Quantile returns the p-quantile, p from 0 to 1, of ascending values; there must be at least one. It interpolates
// linearly between the two values around position (n-1)p (method R-7 of Hyndman and Fan, 1996).
func Quantile(values []float64, p float64) float64 {
	i, share := quantilePosition(int64(len(values)), p)
	if i+1 >= int64(len(values)) {
		return values[len(values)-1]
	}
	return interpolate(values[i], values[i+1], share)
}

// quantilePosition returns the position of the p-quantile of n ascending values, from 0, and its share of the way to
// the next one.
func quantilePosition(n int64, p float64) (position int64, share float64) {
	at := float64(n-1) * p
	return int64(at), at - math.Floor(at)
}

// interpolate returns the value at a share of the way between two values.
func interpolate(a, b, share float64) float64 { return a + (b-a)*share }

// NearestRank sorts the values and summarizes them. Percentile p is one of the values: the ceil(p/100 n)-th of the n
// ascending values, counted from 1.
func NearestRank[T ~int64 | ~uint64 | ~float64](values []T) Distribution[T] {
	n := len(values)
	if n == 0 {
		return Distribution[T]{}
	}
	sum := 0.0
	for _, v := range values {
		sum += float64(v)
	}
	slices.Sort(values)
	at := func(p float64) T { return values[int(math.Ceil(p*float64(n)))-1] }
	return Distribution[T]{
		Count: int64(n), Mean: sum / float64(n), Min: values[0], P50: at(0.5), P95: at(0.95), P99: at(0.99),
		P999: at(0.999), Max: values[n-1],
	}
}

// Short rounds a time to four digits, for tables.
func Short(t dag.Time) dag.Time {
	unit := dag.Time(1)
	for t/unit >= 10_000 {
		unit *= 10
	}
	if t > dag.MaxTime-unit/2 {
		return t
	}
	return (t + unit/2) / unit * unit
}

// JSON returns a JSON object with the fields named by JSON names, in this order, for results that do not use the type's
// own members. All names but count end with suffix, such as "_ps". format converts a value to a JSON number; the mean
// is rounded if T is an integer.
func (d *Distribution[T]) JSON(suffix string, format func(T) string, names ...string) json.RawMessage {
	mean := d.Mean
	if T(1)/2 == 0 {
		mean = math.Round(mean)
	}
	values := map[string]T{
		"mean": T(mean), "min": d.Min, "p50": d.P50, "p95": d.P95, "p99": d.P99, "p99.9": d.P999, "max": d.Max,
	}
	object := []byte{'{'}
	for i, name := range names {
		if i > 0 {
			object = append(object, ',')
		}
		if name == "count" {
			object = strconv.AppendInt(append(object, `"count":`...), d.Count, 10)
			continue
		}
		v, known := values[name]
		if !known {
			panic("no member " + name + " of a distribution")
		}
		object = fmt.Appendf(object, "%q:%s", name+suffix, format(v))
	}
	return append(object, '}')
}
