package graph500

// Binomial random numbers.

import (
	"math"
	"math/bits"
	"math/rand/v2"
)

// binomial draws the number of successes of n trials with probability part/whole, from 1/3 to 1/2.
func binomial(r *rand.PCG, n int64, part, whole uint64) int64 {
	const few = 32
	if n > few {
		return binomialOfMany(r, n, float64(part)/float64(whole))
	}
	below, _ := bits.Div64(part, 0, whole)
	k := int64(0)
	for range n {
		if r.Uint64() < below {
			k++
		}
	}
	return k
}

// binomialOfMany is algorithm BTRS of Hörmann, "The generation of binomial random variates", Journal of Statistical
// Computation and Simulation 46, 1993. It needs n p >= 10 and p <= 1/2.
func binomialOfMany(r *rand.PCG, trials int64, p float64) int64 {
	n := float64(trials)
	deviation := math.Sqrt(n * p * (1 - p))
	b := 1.15 + 2.53*deviation
	a := -0.0873 + 0.0248*b + 0.01*p
	c := n*p + 0.5
	box := 0.92 - 4.2/b // most values fall into this box and are accepted
	for {
		u, v := uniform(r)-0.5, uniform(r)
		us := 0.5 - math.Abs(u)
		k := math.Floor((2*a/us+b)*u + c)
		if us >= 0.07 && v <= box {
			return int64(k)
		}
		if k < 0 || k > n {
			continue
		}
		alpha := (2.83 + 5.1/b) * deviation
		if math.Log(v*alpha/(a/(us*us)+b)) <= logBinomial(n, p, k) {
			return int64(k)
		}
	}
}

// logBinomial returns the logarithm of the probability of k successes minus that of the most likely number.
func logBinomial(n, p, k float64) float64 {
	odds := p / (1 - p)
	m := math.Floor((n + 1) * p)
	return (m+0.5)*math.Log((m+1)/(odds*(n-m+1))) + (n+1)*math.Log((n-m+1)/(n-k+1)) +
		(k+0.5)*math.Log(odds*(n-k+1)/(k+1)) +
		stirlingRest(m) + stirlingRest(n-m) - stirlingRest(k) - stirlingRest(n-k)
}

// stirlingRest returns ln k! minus Stirling's approximation (k+1/2) ln(k+1) - (k+1) + ln(2 pi)/2.
func stirlingRest(k float64) float64 {
	const exact = 10
	if k < exact {
		lg, _ := math.Lgamma(k + 1)
		return lg - (k+0.5)*math.Log(k+1) + (k + 1) - math.Log(2*math.Pi)/2
	}
	square := (k + 1) * (k + 1)
	return (1.0/12 - (1.0/360-1.0/1260/square)/square) / (k + 1)
}

// uniform returns a number in (0, 1).
func uniform(r *rand.PCG) float64 {
	return (float64(r.Uint64()>>12) + 0.5) / (1 << 52)
}
