// This file has the types of parameter values.

package storage

import (
	"errors"
	"fmt"
	"math"
	"math/bits"
	"slices"
	"strconv"
	"strings"

	"github.com/tracedag/tracedag/dag"
	"github.com/tracedag/tracedag/internal/units"
)

// word is one of a list of words.
type word struct {
	is   string
	from []string
}

func (w *word) String() string { return w.is }

func (w *word) Set(text string) error {
	if !slices.Contains(w.from, text) {
		return fmt.Errorf("expected %s", strings.Join(w.from, " or "))
	}
	w.is = text
	return nil
}

// toggle is a boolean value, on or off.
type toggle struct{ on bool }

func (t *toggle) String() string {
	if t.on {
		return "on"
	}
	return "off"
}

func (t *toggle) Set(text string) error {
	w := word{from: []string{"on", "off"}}
	err := w.Set(text)
	t.on = w.is == "on"
	return err
}

// count is a whole number from 1 to most.
type count struct{ n, most int64 }

func (c *count) String() string { return strconv.FormatInt(c.n, 10) }

func (c *count) Set(text string) error {
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || n < 1 || n > c.most {
		return fmt.Errorf("expected a whole number from 1 to %d", c.most)
	}
	c.n = n
	return nil
}

// size is a number of bytes from least to most.
type size struct{ bytes, least, most int64 }

func (s *size) String() string { return units.FormatSize(s.bytes) }

func (s *size) Set(text string) error {
	bytes, err := units.ParseSize(text)
	if err != nil || bytes < s.least || bytes > s.most {
		return fmt.Errorf("expected a whole number of bytes from %s to %s, such as 4096, 4kB or 4KiB",
			units.FormatSize(s.least), units.FormatSize(s.most))
	}
	s.bytes = bytes
	return nil
}

// duration is a service time in whole nanoseconds.
type duration struct{ ns int64 }

const maxNS = int64(dag.MaxTime / dag.Nanosecond)

func (d *duration) String() string { return (dag.Time(d.ns) * dag.Nanosecond).String() }

func (d *duration) Set(text string) error {
	t, err := units.ParseTime(text, 0)
	if err != nil || t%dag.Nanosecond != 0 {
		return errors.New("expected a whole number of nanoseconds up to 106 days, such as 683ns or 1.5us")
	}
	d.ns = int64(t / dag.Nanosecond)
	return nil
}

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

func (r *rate) String() string { return units.FormatSize(r.perSecond) + "/s" }

func (r *rate) Set(text string) error {
	parsed, err := units.ParseRate(text, "")
	perSecond, exact := parsed.BytesPerSecond()
	if err != nil || !exact {
		return errors.New("expected a rate of 1B/s or more, such as 6GB/s or 25Gbps")
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
