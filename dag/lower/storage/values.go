// This file has the kinds of values that parameters have.

package storage

import (
	"errors"
	"fmt"
	"math"
	"math/big"
	"math/bits"
	"slices"
	"strconv"
	"strings"

	"github.com/tracedag/tracedag/dag"
)

// word is one of some words.
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

// toggle is on or off.
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

// count is a whole number of 1 or more.
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

// size is a number of bytes.
type size struct{ bytes, least, most int64 }

var sizeUnits = []unitOf{
	{"", 1}, {"EiB", 1 << 60}, {"PiB", 1 << 50}, {"TiB", 1 << 40}, {"GiB", 1 << 30}, {"MiB", 1 << 20}, {"KiB", 1 << 10},
	{"EB", 1e18}, {"PB", 1e15}, {"TB", 1e12}, {"GB", 1e9}, {"MB", 1e6}, {"kB", 1e3}, {"KB", 1e3}, {"B", 1},
}

func (s *size) String() string { return format(s.bytes, sizeUnits) }

func (s *size) Set(text string) error {
	bytes, err := parse(text, sizeUnits)
	if err != nil || bytes < s.least || bytes > s.most {
		return fmt.Errorf("expected a whole number of bytes from %s to %s, such as 4096, 4kB or 4KiB",
			format(s.least, sizeUnits), format(s.most, sizeUnits))
	}
	s.bytes = bytes
	return nil
}

// duration is a time that something takes, in whole nanoseconds.
type duration struct{ ns int64 }

const maxNS = int64(dag.MaxTime / dag.Nanosecond)

var timeUnits = []unitOf{{"s", 1e9}, {"ms", 1e6}, {"us", 1e3}, {"ns", 1}}

func (d *duration) String() string { return (dag.Time(d.ns) * dag.Nanosecond).String() }

func (d *duration) Set(text string) error {
	ns, err := parse(text, timeUnits)
	if text == "0" {
		ns, err = 0, nil
	}
	if err != nil || ns > maxNS {
		return errors.New("expected a whole number of nanoseconds up to 106 days, such as 683ns or 1.5us")
	}
	d.ns = ns
	return nil
}

// rate is how many bytes are served in a second.
type rate struct {
	perSecond int64
	num, den  int64 // a byte takes num/den nanoseconds
	short     int64 // so many bytes at most are counted in 64 bits
}

var rateUnits = func() (units []unitOf) {
	for _, u := range sizeUnits[1:] {
		units = append(units, unitOf{u.name + "/s", u.size})
	}
	return units
}()

var bitRateUnits = []unitOf{{"Tbps", 1e12 / 8}, {"Gbps", 1e9 / 8}, {"Mbps", 1e6 / 8}, {"kbps", 1e3 / 8}}

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

func (r *rate) String() string { return format(r.perSecond, rateUnits) }

func (r *rate) Set(text string) error {
	perSecond, err := parse(text, slices.Concat(rateUnits, bitRateUnits))
	if err != nil || perSecond < 1 {
		return errors.New("expected a rate of 1B/s or more, such as 6GB/s or 25Gbps")
	}
	*r = newRate(perSecond)
	return nil
}

// time returns how many nanoseconds so many bytes take, rounded up, and whether a trace can have such a time.
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

// unitOf is a unit by name.
type unitOf struct {
	name string
	size int64
}

// parse reads a decimal number that is directly followed by a unit, exactly.
func parse(text string, units []unitOf) (int64, error) {
	end := strings.IndexFunc(text, func(r rune) bool { return (r < '0' || r > '9') && r != '.' })
	if end < 0 {
		end = len(text)
	}
	number, unit := text[:end], text[end:]
	u := slices.IndexFunc(units, func(u unitOf) bool { return u.name == unit })
	n, ok := new(big.Rat).SetString(number)
	if u < 0 || !ok || len(number) > 40 {
		return 0, errors.New("not a quantity")
	}
	n.Mul(n, new(big.Rat).SetInt64(units[u].size))
	if !n.IsInt() || !n.Num().IsInt64() {
		return 0, errors.New("not a whole number in range")
	}
	return n.Num().Int64(), nil
}

// format returns a number exactly, in the unit that needs the fewest characters.
func format(n int64, units []unitOf) string {
	best := ""
	for _, u := range units {
		if u.size > max(n, 1) {
			continue
		}
		number := big.NewRat(n, u.size)
		digits, exact := number.FloatPrec()
		if text := number.FloatString(digits) + u.name; exact && u.name != "" && (best == "" || len(text) < len(best)) {
			best = text
		}
	}
	return best
}
