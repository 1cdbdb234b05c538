// This file declares the kinds of parameters.

package storage

import (
	"errors"
	"fmt"
	"math"
	"math/bits"

	"github.com/tracedag/tracedag/dag"
	"github.com/tracedag/tracedag/internal/units"
	"github.com/tracedag/tracedag/param"
)

// size declares a number of bytes from least to most.
func size(at *int64, name, help string, least, most int64) param.Param {
	return param.Size(at, name, help).Range(least, most).Expect(fmt.Sprintf("a whole number of bytes from %s to %s, "+
		"such as 4096, 4kB or 4KiB", units.FormatSize(least), units.FormatSize(most)))
}

// duration declares a service time in whole nanoseconds.
func duration(at *dag.Time, name, help string) param.Param {
	whole := func() error {
		if *at%dag.Nanosecond != 0 {
			return errors.New("a fraction of a nanosecond")
		}
		return nil
	}
	return param.Time(at, name, help).Check(whole).Expect("a whole number of nanoseconds up to 106 days, " +
		"such as 683ns or 1.5us")
}

// toggle declares a boolean parameter, which is on without a value.
func toggle(at *bool, name, help string) param.Param {
	p := param.New(&onOff{at}, name, help)
	p.Bare = "on"
	return p
}

// onOff is a boolean value.
type onOff struct{ at *bool }

func (o *onOff) Type() string { return "on|off" }

func (o *onOff) String() string {
	if *o.at {
		return "on"
	}
	return "off"
}

func (o *onOff) Set(text string) error {
	if text != "on" && text != "off" {
		return fmt.Errorf("expected on or off, found %q", text)
	}
	*o.at = text == "on"
	return nil
}

const maxNS = int64(dag.MaxTime / dag.Nanosecond)

// rate is a service rate in bytes per second.
type rate struct {
	perSecond int64
	num, den  int64 // a byte takes num/den nanoseconds
	short     int64 // largest number of bytes whose time needs 64 bits only
}

func newRate(perSecond int64) rate {
	r := rate{perSecond: perSecond, num: 1e9, den: perSecond}
	for a, b := r.num, r.den; ; a, b = b, a%b {
		if b == 0 {
			r.num, r.den = r.num/a, r.den/a
			break
		}
	}
	r.short = (math.MaxInt64 - r.den) / r.num
	return r
}

func (r *rate) Type() string { return "rate" }

func (r *rate) String() string { return units.FormatSize(r.perSecond) + "/s" }

func (r *rate) Set(text string) error {
	parsed, err := units.ParseRate(text, "")
	perSecond, exact := parsed.BytesPerSecond()
	if err != nil || !exact {
		return fmt.Errorf("expected a rate of 1B/s or more, such as 6GB/s or 25Gbps, found %q", text)
	}
	*r = newRate(perSecond)
	return nil
}

// time returns the service time of the given bytes in nanoseconds, rounded up. It returns false if the time exceeds
// [dag.MaxTime].
func (r *rate) time(bytes int64) (ns int64, ok bool) {
	if bytes <= r.short {
		ns = (bytes*r.num + r.den - 1) / r.den
		return ns, ns <= maxNS
	}
	high, low := bits.Mul64(uint64(bytes), uint64(r.num))
	low, carry := bits.Add64(low, uint64(r.den-1), 0)
	if high += carry; high >= uint64(r.den) {
		return 0, false
	}
	quotient, _ := bits.Div64(high, low, uint64(r.den))
	return int64(quotient), quotient <= uint64(maxNS)
}
