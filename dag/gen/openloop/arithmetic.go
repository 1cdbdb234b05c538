// Elementary functions for random draws. Those of the standard library may differ in the last bit between processors,
// and so give different traces. The conversions prevent a fused multiply-add, which rounds differently.

package openloop

import "math"

// Exponential returns -ln(u) for u in (0, 1], from uniform bits in steps of 2^-53: an exponential number of mean 1, at
// most 36.8.
func Exponential(bits uint64) float64 {
	const sqrtHalf = math.Sqrt2 / 2
	m, e := math.Frexp(float64(bits>>11 + 1))
	if m < sqrtHalf {
		m *= 2
		e--
	}
	return float64(float64(53-e)*math.Ln2) - logNearOne(m)
}

// logNearOne returns ln(m) for m from sqrt(1/2) to sqrt(2), as 2 artanh((m-1)/(m+1)).
func logNearOne(m float64) float64 {
	s := (m - 1) / (m + 1)
	q := float64(s * s)
	sum := 1.0 / 21
	sum = float64(sum*q) + 1.0/19
	sum = float64(sum*q) + 1.0/17
	sum = float64(sum*q) + 1.0/15
	sum = float64(sum*q) + 1.0/13
	sum = float64(sum*q) + 1.0/11
	sum = float64(sum*q) + 1.0/9
	sum = float64(sum*q) + 1.0/7
	sum = float64(sum*q) + 1.0/5
	sum = float64(sum*q) + 1.0/3
	return 2 * (s + float64(s*float64(q*sum)))
}

// ExpMinus returns exp(-x) for x from 0 to 700.
func ExpMinus(x float64) float64 {
	const ln2High, ln2Low = 0x1.62e42feep-1, 0x1.a39ef35793c76p-33 // together ln 2; k*ln2High is exact
	k := math.Floor(float64(x/math.Ln2) + 0.5)
	r := (x - float64(k*ln2High)) - float64(k*ln2Low)
	sum := 1.0
	for n := 14.0; n > 0; n-- { // Horner's scheme for the power series of exp(-r)
		sum = 1 - float64(float64(r*sum)/n)
	}
	return math.Ldexp(sum, -int(k))
}
