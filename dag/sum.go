package dag

import (
	"math"
	"math/big"
	"math/bits"
)

// sum is a sum of int64 values that cannot overflow: the compute time of a large machine over a day exceeds int64
// picoseconds. The zero value is zero.
type sum struct {
	high int64
	low  uint64
}

func (s *sum) add(v int64) {
	s.addSum(sum{high: v >> 63, low: uint64(v)})
}

func (s *sum) addSum(t sum) {
	low, carry := bits.Add64(s.low, t.low, 0)
	s.low = low
	s.high += t.high + int64(carry)
}

// int64 returns the sum, or the int64 nearest to it.
func (s sum) int64() int64 {
	switch {
	case s.high == int64(s.low)>>63:
		return int64(s.low)
	case s.high < 0:
		return math.MinInt64
	}
	return math.MaxInt64
}

func (s sum) big() *big.Int {
	b := new(big.Int).Lsh(big.NewInt(s.high), 64)
	return b.Add(b, new(big.Int).SetUint64(s.low))
}

// mean returns the sum divided by n, 0 if n is 0.
func (s sum) mean(n int64) float64 {
	if n == 0 {
		return 0
	}
	mean, _ := new(big.Rat).SetFrac(s.big(), big.NewInt(n)).Float64()
	return mean
}

// addTimes adds two non-negative times, at most MaxTime.
func addTimes(a, b Time) Time {
	if a > MaxTime-b {
		return MaxTime
	}
	return a + b
}
