// Package units parses and formats quantities with units: times, sizes, transfer rates, rates of floating-point
// operations, counts and sets of numbers.
//
// A quantity is a decimal number such as 1500, 0.5 or 2e9 and a unit; spaces between them are ignored. Conversion is
// exact: a value that is not a whole number of picoseconds or bytes is an error, never rounded. Every flag, parameter
// and configuration file uses this package, so all accept the same spellings. File formats that define their own
// numbers do not use it.
package units

import (
	"errors"
	"fmt"
	"math"
	"math/big"
	"strconv"
	"strings"

	"github.com/tracedag/tracedag/dag"
)

// unit is the name of a unit and its size in base units.
type unit struct {
	name string
	size int64
}

var timeUnits = []unit{
	{"ps", int64(dag.Picosecond)}, {"ns", int64(dag.Nanosecond)}, {"us", int64(dag.Microsecond)},
	{"\u00b5s", int64(dag.Microsecond)}, {"\u03bcs", int64(dag.Microsecond)}, // micro sign and Greek letter mu
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

// ErrUnit is matched by errors.Is for a number with an unknown unit or without a required unit.
var ErrUnit = errors.New("unknown unit")

// unitError is an ErrUnit whose text lists the units.
type unitError string

func (e unitError) Error() string        { return string(e) }
func (e unitError) Is(target error) bool { return target == ErrUnit }

const (
	errTimeUnit = unitError("expected a number with unit ps, ns, us, ms or s")
	errSizeUnit = unitError("expected a number with no unit or one such as B, kB (1000), KiB (1024), MB or MiB")
)

var errNumber = errors.New("expected a number such as 1500, 0.5 or 2e9")

// CutNumber splits text into its leading decimal number and the rest. The number has no sign, at most 40 digits, and
// an exponent between -99 and 99.
func CutNumber(text string) (number *big.Rat, rest string, err error) {
	end := func(from int) int {
		for from < len(text) && text[from] >= '0' && text[from] <= '9' {
			from++
		}
		return from
	}
	at := end(0)
	digits := at
	if at < len(text) && text[at] == '.' {
		fraction := end(at + 1)
		digits += fraction - at - 1
		at = fraction
	}
	if digits == 0 || digits > 40 {
		return nil, "", errNumber
	}
	if at < len(text) && (text[at] == 'e' || text[at] == 'E') { // an exponent, unless it is the start of a unit
		exponent := at + 1
		if exponent < len(text) && (text[exponent] == '-' || text[exponent] == '+') {
			exponent++
		}
		if to := end(exponent); to > exponent {
			if to-exponent > 2 {
				return nil, "", errNumber
			}
			at = to
		}
	}
	number, ok := new(big.Rat).SetString(text[:at])
	if !ok {
		return nil, "", errNumber
	}
	return number, text[at:], nil
}

// cutQuantity splits text into its number and its unit.
func cutQuantity(text string) (number *big.Rat, unit string, err error) {
	number, rest, err := CutNumber(text)
	return number, strings.TrimSpace(rest), err
}

// whole returns n * size if that is a whole number in the range of int64.
func whole(n *big.Rat, size int64, base string) (int64, error) {
	n = new(big.Rat).Mul(n, new(big.Rat).SetInt64(size))
	if !n.IsInt() {
		return 0, fmt.Errorf("expected a whole number of %s", base)
	}
	if !n.Num().IsInt64() {
		return 0, fmt.Errorf("expected at most %d %s", int64(math.MaxInt64), base)
	}
	return n.Num().Int64(), nil
}

func quantityError(quantity, text string, err error) error {
	return fmt.Errorf("%s: %w, found %q", quantity, err, text)
}

// ParseTime parses a non-negative time such as 3.7us. A number without a unit is in units of bare; if bare is 0, the
// unit is required, except for 0. ParseTime is the inverse of dag.Time.String.
func ParseTime(text string, bare dag.Time) (dag.Time, error) {
	n, name, err := cutQuantity(text)
	if err != nil {
		return 0, quantityError("time", text, err)
	}
	size, ok := findUnit(timeUnits, name)
	if name == "" {
		size, ok = int64(bare), bare != 0 || n.Sign() == 0
	}
	if !ok {
		return 0, quantityError("time", text, errTimeUnit)
	}
	t, err := whole(n, size, "picoseconds")
	if err != nil {
		return 0, quantityError("time", text, err)
	}
	return dag.Time(t), nil
}

// ParseSize parses a size such as 4096, 64KiB or 1.5MB and returns it in bytes.
func ParseSize(text string) (int64, error) {
	n, name, err := cutQuantity(text)
	if err != nil {
		return 0, quantityError("size", text, err)
	}
	size, ok := findUnit(sizeUnits, name)
	if name == "" {
		size, ok = 1, true
	}
	if !ok {
		return 0, quantityError("size", text, errSizeUnit)
	}
	bytes, err := whole(n, size, "bytes")
	if err != nil {
		return 0, quantityError("size", text, err)
	}
	return bytes, nil
}

// FormatSize formats a size in bytes exactly, in the unit that needs the fewest characters. ParseSize is its inverse
// for sizes of 0 or more.
func FormatSize(bytes int64) string {
	if bytes < 0 {
		return strconv.FormatInt(bytes, 10) + "B"
	}
	best := strconv.FormatInt(bytes, 10) + "B"
	for _, u := range sizeUnits {
		if bytes < u.size || u.size == 1 {
			continue
		}
		if bytes%u.size == 0 { // the common case
			if text := strconv.FormatInt(bytes/u.size, 10) + u.name; len(text) <= len(best) {
				best = text
			}
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

// ParseCount parses a whole number from least to most.
func ParseCount(text string, least, most int64) (int64, error) {
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || n < least || n > most {
		return 0, fmt.Errorf("expected a whole number from %d to %d, found %.40q", least, most, text)
	}
	return n, nil
}
