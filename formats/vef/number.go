// This file parses numbers.

package vef

import (
	"math/big"
	"strconv"
	"strings"

	"github.com/tracedag/tracedag/dag"
)

// digits returns the number at p and the position behind it. The number wraps if it has more than 19 digits.
func digits(b []byte, p int) (value uint64, next int) {
	d := b[p] - '0'
	for d <= 9 {
		value = 10*value + uint64(d)
		p++
		d = b[p] - '0'
	}
	return value, p
}

// parseCount parses a whole number of 0 or more.
func parseCount(word string) (int64, bool) {
	v, err := strconv.ParseUint(word, 10, 63)
	return int64(v), err == nil
}

// maxTimeDigits is the maximum length of a decimal time, longer than any meaningful one.
const maxTimeDigits = 100

// parseTime parses a time in clock ticks with optional decimals and exponent. It returns the time in picoseconds,
// rounded half up, and whether it was rounded.
func parseTime(word string, clock dag.Time) (t dag.Time, rounded, ok bool) {
	mantissa, exponent, _ := strings.Cut(strings.ToLower(word), "e")
	if len(word) > maxTimeDigits || len(exponent) > 3 || mantissa == "" || strings.Trim(mantissa, "0123456789.") != "" {
		return 0, false, false
	}
	ticks, ok := new(big.Rat).SetString(word)
	if !ok {
		return 0, false, false
	}
	ticks.Mul(ticks, new(big.Rat).SetInt64(int64(clock)))
	rounded = !ticks.IsInt()
	ticks.Add(ticks, big.NewRat(1, 2))
	ps := new(big.Int).Quo(ticks.Num(), ticks.Denom())
	if !ps.IsInt64() {
		return 0, false, false
	}
	return dag.Time(ps.Int64()), rounded, true
}
