package dag

import (
	"math"
	"strconv"
)

// Time is a point in time since the start of the trace, or a length of time, in picoseconds. Its range is 106 days.
type Time int64

// Lengths of time.
const (
	Picosecond  Time = 1
	Nanosecond       = 1000 * Picosecond
	Microsecond      = 1000 * Nanosecond
	Millisecond      = 1000 * Microsecond
	Second           = 1000 * Millisecond
)

// MaxTime is the latest representable time, about 106.75 days.
const MaxTime Time = math.MaxInt64

// Unmeasured stands in the measured columns for an op that the tracer did not time.
const Unmeasured Time = math.MinInt64

// String returns t exactly, in the largest unit that needs no more than three digits before the point: "1.5us".
func (t Time) String() string {
	units := [...]struct {
		size Time
		name string
	}{{Second, "s"}, {Millisecond, "ms"}, {Microsecond, "us"}, {Nanosecond, "ns"}, {Picosecond, "ps"}}
	if t == 0 {
		return "0s"
	}
	sign, magnitude := "", uint64(t)
	if t < 0 {
		sign, magnitude = "-", -magnitude
	}
	for _, u := range units {
		size := uint64(u.size)
		if magnitude < size {
			continue
		}
		text := sign + strconv.FormatUint(magnitude/size, 10)
		if rest := magnitude % size; rest != 0 {
			digits := strconv.FormatUint(size+rest, 10)[1:]
			for digits[len(digits)-1] == '0' {
				digits = digits[:len(digits)-1]
			}
			text += "." + digits
		}
		return text + u.name
	}
	panic("unreachable: every nonzero time is at least a picosecond")
}
