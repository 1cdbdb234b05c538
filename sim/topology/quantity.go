// This file reads rates and times, exactly: what is not a whole number of bit/s or picoseconds is an error.

package topology

import (
	"fmt"
	"math"
	"math/bits"
	"strings"

	"github.com/tracedag/tracedag/dag"
)

// unit is the name of a unit and how many base units it has.
type unit struct {
	name string
	size uint64
}

var rateUnits = []unit{
	{"", 1e9}, {"bps", 1}, {"kbps", 1e3}, {"Kbps", 1e3}, {"Mbps", 1e6}, {"Gbps", 1e9}, {"Tbps", 1e12},
	{"b/s", 1}, {"kb/s", 1e3}, {"Mb/s", 1e6}, {"Gb/s", 1e9}, {"Tb/s", 1e12},
	{"B/s", 8}, {"kB/s", 8e3}, {"MB/s", 8e6}, {"GB/s", 8e9}, {"TB/s", 8e12},
}

var timeUnits = []unit{
	{"", uint64(dag.Nanosecond)}, {"ps", uint64(dag.Picosecond)}, {"ns", uint64(dag.Nanosecond)},
	{"us", uint64(dag.Microsecond)}, {"\u00b5s", uint64(dag.Microsecond)}, {"\u03bcs", uint64(dag.Microsecond)},
	{"ms", uint64(dag.Millisecond)}, {"s", uint64(dag.Second)},
}

// parseRate reads a rate such as 200Gbps, 200Gb/s, 25GB/s, or a number of Gb/s, and returns bit/s.
func parseRate(s string) (int64, error) {
	rate, ok := parseQuantity(s, rateUnits)
	if !ok || rate == 0 || rate > maxRate {
		return 0, fmt.Errorf("expected a rate such as 200Gbps, or a number of Gb/s, up to 8Tbps, found %q", s)
	}
	return rate, nil
}

// parseTime reads a time such as 500ns or 1.5us, or a number of nanoseconds.
func parseTime(s string) (dag.Time, error) {
	t, ok := parseQuantity(s, timeUnits)
	if !ok || dag.Time(t) > maxLatency {
		return 0, fmt.Errorf("expected a time such as 500ns, or a number of nanoseconds, up to %v, found %q", maxLatency, s)
	}
	return dag.Time(t), nil
}

// parseQuantity reads a decimal number with a unit behind it. It is false where s is something else, or its value is no
// whole number in the range of int64.
func parseQuantity(s string, units []unit) (int64, bool) {
	end := strings.IndexFunc(s, func(r rune) bool { return (r < '0' || r > '9') && r != '.' })
	if end < 0 {
		end = len(s)
	}
	whole, fraction, hasPoint := strings.Cut(s[:end], ".")
	digits := whole + fraction
	if whole == "" || hasPoint && fraction == "" || len(digits) > 18 {
		return 0, false
	}
	number, scale := uint64(0), uint64(1)
	for i, digit := range []byte(digits) {
		if digit == '.' {
			return 0, false
		}
		number = number*10 + uint64(digit-'0')
		if i >= len(whole) {
			scale *= 10
		}
	}
	for _, u := range units {
		if u.name != s[end:] {
			continue
		}
		high, low := bits.Mul64(number, u.size)
		if high >= scale {
			return 0, false
		}
		value, rest := bits.Div64(high, low, scale)
		return int64(value), rest == 0 && value <= math.MaxInt64
	}
	return 0, false
}
