// This file reads and prints quantities with units. They are written as a decimal number directly followed by a unit,
// and converted exactly: what is not a whole number of bytes or picoseconds is an error, never rounded.

package cli

import (
	"errors"
	"fmt"
	"math/big"
	"strconv"
	"strings"

	"github.com/spf13/pflag"

	"github.com/tracedag/tracedag/dag"
)

// unit is the name of a unit, and how many base units it has.
type unit struct {
	name string
	size int64
}

var timeUnits = []unit{
	{"ps", int64(dag.Picosecond)}, {"ns", int64(dag.Nanosecond)}, {"us", int64(dag.Microsecond)},
	{"\u00b5s", int64(dag.Microsecond)}, {"\u03bcs", int64(dag.Microsecond)}, // both characters that look like a mu
	{"ms", int64(dag.Millisecond)}, {"s", int64(dag.Second)},
}

var sizeUnits = []unit{
	{"B", 1},
	{"KB", 1e3}, {"kB", 1e3}, {"MB", 1e6}, {"GB", 1e9}, {"TB", 1e12}, {"PB", 1e15}, {"EB", 1e18},
	{"KiB", 1 << 10}, {"MiB", 1 << 20}, {"GiB", 1 << 30}, {"TiB", 1 << 40}, {"PiB", 1 << 50}, {"EiB", 1 << 60},
}

var bitUnits = []unit{
	{"bit", 1}, {"b", 1},
	{"Kbit", 1e3}, {"kbit", 1e3}, {"Mbit", 1e6}, {"Gbit", 1e9}, {"Tbit", 1e12},
	{"Kb", 1e3}, {"kb", 1e3}, {"Mb", 1e6}, {"Gb", 1e9}, {"Tb", 1e12},
}

func findUnit(units []unit, name string) (int64, bool) {
	for _, u := range units {
		if u.name == name {
			return u.size, true
		}
	}
	return 0, false
}

var errNumber = errors.New("expected a number such as 1500, 0.5 or 2e9")

// splitNumber splits s into the decimal number that it begins with and the rest. The number has no sign, at most 40
// digits, and an exponent between -99 and 99.
func splitNumber(s string) (*big.Rat, string, error) {
	end := func(from int) int {
		for from < len(s) && s[from] >= '0' && s[from] <= '9' {
			from++
		}
		return from
	}
	at := end(0)
	digits := at
	if at < len(s) && s[at] == '.' {
		fraction := end(at + 1)
		digits += fraction - at - 1
		if fraction == at+1 {
			return nil, "", errNumber
		}
		at = fraction
	}
	if digits == 0 || digits > 40 || s[0] == '.' {
		return nil, "", errNumber
	}
	if at < len(s) && (s[at] == 'e' || s[at] == 'E') { // an exponent, unless a unit begins with it
		exponent := at + 1
		if exponent < len(s) && (s[exponent] == '-' || s[exponent] == '+') {
			exponent++
		}
		if to := end(exponent); to > exponent {
			if to-exponent > 2 {
				return nil, "", errNumber
			}
			at = to
		}
	}
	n, ok := new(big.Rat).SetString(s[:at])
	if !ok {
		return nil, "", errNumber
	}
	return n, s[at:], nil
}

// whole returns n * size where that is a whole number in the range of int64.
func whole(n *big.Rat, size int64, of string) (int64, error) {
	n = new(big.Rat).Mul(n, new(big.Rat).SetInt64(size))
	if !n.IsInt() {
		return 0, fmt.Errorf("expected a whole number of %s", of)
	}
	if !n.Num().IsInt64() {
		return 0, fmt.Errorf("expected at most %d %s", int64(1<<63-1), of)
	}
	return n.Num().Int64(), nil
}

func quantityError(what, s string, err error) error {
	return fmt.Errorf("%s: %w, found %q", what, err, s)
}

// ParseTime parses a length of time such as 3.7us, not negative. A number without a unit is in units of bare; where
// that is 0, only 0 may have none. It is the inverse of dag.Time.String.
func ParseTime(s string, bare dag.Time) (dag.Time, error) {
	n, name, err := splitNumber(s)
	if err != nil {
		return 0, quantityError("time", s, err)
	}
	size, ok := findUnit(timeUnits, name)
	if name == "" {
		size, ok = int64(bare), bare != 0 || n.Sign() == 0
	}
	if !ok {
		return 0, quantityError("time", s, errors.New("expected a number with unit ps, ns, us, ms or s"))
	}
	t, err := whole(n, size, "picoseconds")
	if err != nil {
		return 0, quantityError("time", s, err)
	}
	return dag.Time(t), nil
}

// ParseSize parses a size such as 4096, 64KiB or 1.5MB, and returns it in bytes.
func ParseSize(s string) (int64, error) {
	n, name, err := splitNumber(s)
	if err != nil {
		return 0, quantityError("size", s, err)
	}
	size, ok := findUnit(sizeUnits, name)
	if name == "" {
		size, ok = 1, true
	}
	if !ok {
		return 0, quantityError("size", s,
			errors.New("expected a number with no unit or one such as B, kB (1000), KiB (1024), MB or MiB"))
	}
	bytes, err := whole(n, size, "bytes")
	if err != nil {
		return 0, quantityError("size", s, err)
	}
	return bytes, nil
}

// FormatSize returns a size in bytes as ParseSize reads it, exactly, in the unit that needs the fewest characters.
func FormatSize(bytes int64) string {
	if bytes < 0 {
		return strconv.FormatInt(bytes, 10) + "B"
	}
	best := strconv.FormatInt(bytes, 10) + "B"
	for _, u := range sizeUnits {
		if bytes < u.size || u.size == 1 {
			continue
		}
		number, exact := decimal(big.NewRat(bytes, u.size))
		if text := number + u.name; exact && len(text) <= len(best) {
			best = text
		}
	}
	return best
}

// decimal returns n as a decimal number, and whether that is exact.
func decimal(n *big.Rat) (string, bool) {
	digits, exact := n.FloatPrec()
	return n.FloatString(digits), exact
}

// Rate is how long a byte takes, exactly: Num/Den picoseconds, in lowest terms. Num is 0 where bytes take no time.
type Rate struct {
	Num, Den int64
}

var (
	picosecondsPerSecond = big.NewRat(int64(dag.Second), 1)
	errRate              = errors.New("expected a rate such as 25GB/s or 400Gbps, or a time for each byte such as 40ps/B")
)

// ParseRate parses a transfer rate such as 25GB/s, 400Gbps or 400Gbit/s, or a time for each byte such as 40ps/B. A
// number without a unit is a time for each byte in units of bare; where that is 0, it is an error.
func ParseRate(s string, bare dag.Time) (Rate, error) {
	n, name, err := splitNumber(s)
	if err != nil {
		return Rate{}, quantityError("rate", s, err)
	}
	perByte, err := picosecondsPerByte(n, name, bare)
	if err != nil {
		return Rate{}, quantityError("rate", s, err)
	}
	if !perByte.Num().IsInt64() || !perByte.Denom().IsInt64() {
		return Rate{}, quantityError("rate", s, errors.New("expected less extreme a rate or fewer digits"))
	}
	return Rate{perByte.Num().Int64(), perByte.Denom().Int64()}, nil
}

func picosecondsPerByte(n *big.Rat, unit string, bare dag.Time) (*big.Rat, error) {
	if unit == "" {
		if bare == 0 {
			return nil, errRate
		}
		return n.Mul(n, big.NewRat(int64(bare), 1)), nil
	}
	if name, ok := strings.CutSuffix(unit, "/B"); ok {
		size, ok := findUnit(timeUnits, name)
		if !ok {
			return nil, errRate
		}
		return n.Mul(n, big.NewRat(size, 1)), nil
	}
	amount, ok := strings.CutSuffix(unit, "/s")
	bits := false
	if !ok {
		amount, ok = strings.CutSuffix(unit, "ps") // as in Gbps
		bits = true
	}
	size, bytes := findUnit(sizeUnits, amount)
	if bits || !bytes {
		var isBits bool
		size, isBits = findUnit(bitUnits, amount)
		ok, bytes = ok && isBits, false
	}
	if !ok {
		return nil, errRate
	}
	if n.Sign() == 0 {
		return nil, errors.New("expected a rate above 0")
	}
	perSecond := n.Mul(n, big.NewRat(size, 1))
	if !bytes {
		perSecond.Quo(perSecond, big.NewRat(8, 1))
	}
	return perSecond.Quo(picosecondsPerSecond, perSecond), nil
}

// String returns the rate as ParseRate reads it, exactly: in bytes a second where that is a decimal number of fewer
// characters than the time for each byte. A rate that is neither (none that was parsed) is a fraction of picoseconds.
func (r Rate) String() string {
	if r.Num == 0 {
		return "0s/B"
	}
	perByte := big.NewRat(r.Num, r.Den)
	text, exact := decimal(perByte)
	text += "ps/B"
	if perByte.IsInt() {
		text = dag.Time(r.Num/r.Den).String() + "/B"
	}
	perSecond := new(big.Rat).Quo(picosecondsPerSecond, perByte)
	for _, u := range sizeUnits {
		if strings.Contains(u.name, "i") {
			continue
		}
		amount := new(big.Rat).Quo(perSecond, big.NewRat(u.size, 1))
		if number, finite := decimal(amount); finite && (!exact || len(number+u.name)+2 <= len(text)) {
			text, exact = number+u.name+"/s", true
		}
	}
	if !exact {
		return fmt.Sprintf("%d/%dps/B", r.Num, r.Den)
	}
	return text
}

// quantity is a flag with a unit.
type quantity[T fmt.Stringer] struct {
	p     *T
	kind  string
	parse func(string) (T, error)
}

func (q *quantity[T]) String() string { return (*q.p).String() }
func (q *quantity[T]) Type() string   { return q.kind }

func (q *quantity[T]) Set(s string) error {
	v, err := q.parse(s)
	if err == nil {
		*q.p = v
	}
	return err
}

// size makes the sizes of flags print as such.
type size int64

func (s size) String() string { return FormatSize(int64(s)) }

// TimeVar defines a flag for a length of time, as ParseTime reads it.
func TimeVar(flags *pflag.FlagSet, p *dag.Time, name string, value, bare dag.Time, usage string) {
	*p = value
	parse := func(s string) (dag.Time, error) { return ParseTime(s, bare) }
	flags.Var(&quantity[dag.Time]{p, "time", parse}, name, usage)
}

// SizeVar defines a flag for a size in bytes, as ParseSize reads it.
func SizeVar(flags *pflag.FlagSet, p *int64, name string, value int64, usage string) {
	*p = value
	parse := func(s string) (size, error) {
		n, err := ParseSize(s)
		return size(n), err
	}
	flags.Var(&quantity[size]{(*size)(p), "size", parse}, name, usage)
}

// RateVar defines a flag for a transfer rate, as ParseRate reads it.
func RateVar(flags *pflag.FlagSet, p *Rate, name string, value Rate, bare dag.Time, usage string) {
	*p = value
	parse := func(s string) (Rate, error) { return ParseRate(s, bare) }
	flags.Var(&quantity[Rate]{p, "rate", parse}, name, usage)
}
