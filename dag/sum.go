package dag

import (
	"cmp"
	"math"
	"math/big"
	"math/bits"
	"strconv"
)

// Total is a sum of int64 values that cannot overflow: the compute time of a large machine over a day exceeds int64
// picoseconds. The zero value is zero. Its JSON number is exact and may exceed 64 bits.
type Total struct {
	high int64
	low  uint64
}

// TotalOf returns the sum of values.
func TotalOf(values ...int64) Total {
	var t Total
	for _, v := range values {
		t.add(v)
	}
	return t
}

// Compare returns -1, 0 or 1 if s is less than, equal to or greater than t.
func (s Total) Compare(t Total) int {
	return cmp.Or(cmp.Compare(s.high, t.high), cmp.Compare(s.low, t.low))
}

// Fits reports whether the sum is an int64.
func (s Total) Fits() bool {
	return s.high == int64(s.low)>>63
}

// String returns the decimal digits of the sum.
func (s Total) String() string {
	if s.Fits() {
		return strconv.FormatInt(int64(s.low), 10)
	}
	return s.Big().String()
}

// MarshalJSON returns the sum as a number.
func (s Total) MarshalJSON() ([]byte, error) {
	return []byte(s.String()), nil
}

func (s *Total) add(v int64) {
	s.addSum(Total{high: v >> 63, low: uint64(v)})
}

func (s *Total) addSum(t Total) {
	low, carry := bits.Add64(s.low, t.low, 0)
	s.low = low
	s.high += t.high + int64(carry)
}

// Int64 returns the sum, or the int64 nearest to it.
func (s Total) Int64() int64 {
	switch {
	case s.Fits():
		return int64(s.low)
	case s.high < 0:
		return math.MinInt64
	}
	return math.MaxInt64
}

// Float returns the float64 nearest to the sum.
func (s Total) Float() float64 {
	return s.mean(1)
}

// Big returns the sum.
func (s Total) Big() *big.Int {
	b := new(big.Int).Lsh(big.NewInt(s.high), 64)
	return b.Add(b, new(big.Int).SetUint64(s.low))
}

// mean returns the sum divided by n, 0 if n is 0.
func (s Total) mean(n int64) float64 {
	if n == 0 {
		return 0
	}
	mean, _ := new(big.Rat).SetFrac(s.Big(), big.NewInt(n)).Float64()
	return mean
}

// addTimes adds two non-negative times, at most MaxTime.
func addTimes(a, b Time) Time {
	if a > MaxTime-b {
		return MaxTime
	}
	return a + b
}
