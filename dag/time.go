package dag

import (
	"math"
	"math/bits"
	"strconv"
)

// Time is a point in time since the start of the trace, or a duration, in picoseconds. Its range is 106 days.
type Time int64

// Units of time.
const (
	Picosecond  Time = 1
	Nanosecond       = 1000 * Picosecond
	Microsecond      = 1000 * Nanosecond
	Millisecond      = 1000 * Microsecond
	Second           = 1000 * Millisecond
)

// MaxTime is the latest representable time, about 106.75 days.
const MaxTime Time = math.MaxInt64

// Unmeasured is the measured time of an op that the tracer did not time.
const Unmeasured Time = math.MinInt64

// String returns t exactly, in the largest unit not above t (at most seconds): "1.5us", "-90s", "0s".
func (t Time) String() string {
	return string(t.AppendTo(nil))
}

// AppendTo appends the text of String to dst.
func (t Time) AppendTo(dst []byte) []byte {
	units := [...]struct {
		size uint64
		name string
	}{
		{uint64(Second), "s"}, {uint64(Millisecond), "ms"}, {uint64(Microsecond), "us"}, {uint64(Nanosecond), "ns"},
		{uint64(Picosecond), "ps"},
	}
	magnitude := uint64(t)
	if t < 0 {
		dst, magnitude = append(dst, '-'), -magnitude
	}
	for _, u := range units {
		if magnitude < u.size {
			continue
		}
		dst = strconv.AppendUint(dst, magnitude/u.size, 10)
		if rest := magnitude % u.size; rest != 0 {
			point := len(dst)
			dst = strconv.AppendUint(dst, u.size+rest, 10) // a 1, which the point replaces, and all digits of rest
			dst[point] = '.'
			for dst[len(dst)-1] == '0' {
				dst = dst[:len(dst)-1]
			}
		}
		return append(dst, u.name...)
	}
	return append(dst, "0s"...)
}

// AtRate returns the time of an amount at a rate per second, rounded up, at most MaxTime. The amount must be 0 or
// more, the rate above 0.
func AtRate(amount, rate int64) Time {
	high, low := bits.Mul64(uint64(amount), uint64(Second))
	low, carry := bits.Add64(low, uint64(rate-1), 0)
	if high += carry; high >= uint64(rate) {
		return MaxTime
	}
	quotient, _ := bits.Div64(high, low, uint64(rate))
	return Time(min(quotient, uint64(MaxTime)))
}
