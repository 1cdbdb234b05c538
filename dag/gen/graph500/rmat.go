package graph500

// Degrees of vertices of Kronecker graphs: Groër, Sullivan, Poole, "A mathematical analysis of the R-MAT random graph
// generator", Networks 58, 2011; with noise: Seshadhri, Pinar, Kolda, "An in-depth analysis of stochastic Kronecker
// graphs", Journal of the ACM 60, 2013.

import (
	"math"
	"math/rand/v2"
	"slices"
)

// The probabilities of the quadrants in the specification of Graph500.
const (
	edgeA = 0.57
	edgeB = 0.19
	edgeC = 0.19
	edgeD = 0.05
)

// kronecker is the distribution of the degree of a vertex. As b = c, the ends of edges that leave and that enter a
// vertex have the same probability, and their sum is binomial. A self-loop counts twice.
type kronecker struct {
	ends int64        // of all edges
	bits [][2]float64 // for each level, the probability that an end has a 0, and a 1
}

// kronecker returns the distribution; the noise is drawn from the seed.
func (p *Params) kronecker(seed int64) *kronecker {
	k := &kronecker{ends: p.totalEdges()}
	noise := draws(seed, 0, 0, "degree noise")
	for range p.Scale {
		mu := 0.0
		if p.Degrees.Kind == NoisyRMATDegrees {
			mu = p.Degrees.Noise * (2*noise.Float64() - 1)
		}
		zero := edgeA + edgeB + mu - 2*mu*edgeA/(edgeA+edgeD)
		one := edgeC + edgeD + mu - 2*mu*edgeD/(edgeA+edgeD)
		k.bits = append(k.bits, [2]float64{zero, one})
	}
	return k
}

// draw draws the degree of a vertex with neighbors, or of the vertex at the end of an edge.
func (k *kronecker) draw(r *rand.Rand, weighted bool) int64 {
	for {
		chance, bits := 1.0, r.Uint64()
		for i, b := range k.bits {
			bit := bits >> i & 1
			if weighted {
				bit = 0
				if r.Float64() >= b[0] {
					bit = 1
				}
			}
			chance *= b[bit]
		}
		if weighted { // this end, and any of the others
			return 1 + drawBinomial(r, k.ends-1, chance)
		}
		if degree := drawBinomial(r, k.ends, chance); degree > 0 {
			return degree
		}
	}
}

// drawBinomial draws the number of successes of n trials, going from the most likely number to both sides.
func drawBinomial(r *rand.Rand, n int64, p float64) int64 {
	mode := min(int64(float64(n+1)*p), n)
	odds := p / (1 - p)
	u := r.Float64()
	low, high := mode, mode
	pLow := math.Exp(logBinomialAt(float64(n), p, float64(mode)))
	pHigh := pLow
	if u -= pLow; u < 0 {
		return mode
	}
	for (low > 0 && pLow > 0) || (high < n && pHigh > 0) {
		if high < n {
			pHigh *= float64(n-high) / float64(high+1) * odds
			high++
			if u -= pHigh; u < 0 {
				return high
			}
		}
		if low > 0 {
			pLow *= float64(low) / float64(n-low+1) / odds
			low--
			if u -= pLow; u < 0 {
				return low
			}
		}
	}
	return mode // the rounding errors of all
}

// logBinomialAt returns the logarithm of the probability of x successes of n trials, by the saddle point of Loader,
// "Fast and accurate computation of binomial probabilities", 2000.
func logBinomialAt(n, p, x float64) float64 {
	switch x {
	case 0:
		return n * math.Log1p(-p)
	case n:
		return n * math.Log(p)
	}
	return stirlingError(n) - stirlingError(x) - stirlingError(n-x) - deviance(x, n*p) - deviance(n-x, n*(1-p)) -
		0.5*math.Log(2*math.Pi*x*((n-x)/n))
}

// stirlingError returns ln n! minus Stirling's approximation (n+1/2) ln n - n + ln(2 pi)/2, for n from 1 on.
func stirlingError(n float64) float64 {
	if n < 16 {
		lg, _ := math.Lgamma(n + 1)
		return lg - (n+0.5)*math.Log(n) + n - math.Log(2*math.Pi)/2
	}
	square := n * n
	return (1.0/12 - (1.0/360-(1.0/1260-1.0/1680/square)/square)/square) / n
}

// deviance returns x ln(x/mean) + mean - x without cancellation.
func deviance(x, mean float64) float64 {
	if math.Abs(x-mean) >= 0.1*(x+mean) {
		return x*math.Log(x/mean) + mean - x
	}
	v := (x - mean) / (x + mean)
	s, term := (x-mean)*v, 2*x*v
	for j := 3.0; ; j += 2 {
		term *= v * v
		next := s + term/j
		if next == s {
			return s
		}
		s = next
	}
}

// chances returns the distinct probabilities of vertices at the end of an edge, and their weights. With noise, all
// levels differ, so logarithms of probabilities are rounded to a grid: each between two points is divided among them.
func (k *kronecker) chances(weighted bool) (chances, weights []float64) {
	const step = 1.0 / 256
	same := !slices.ContainsFunc(k.bits, func(b [2]float64) bool { return b != k.bits[0] })
	if same {
		return k.classes(weighted)
	}
	lowest := 0.0
	for _, b := range k.bits {
		lowest += math.Log(b[1])
	}
	cells := make([]float64, int(-lowest/step)+2+len(k.bits))
	cells[0] = 1
	for _, b := range k.bits {
		next := make([]float64, len(cells))
		for bit, share := range [2]float64{0.5, 0.5} {
			if weighted {
				share = b[bit]
			}
			shift := -math.Log(b[bit]) / step
			whole := int(shift)
			part := shift - float64(whole)
			for i, w := range cells {
				if w > 0 {
					next[i+whole] += w * share * (1 - part)
					next[i+whole+1] += w * share * part
				}
			}
		}
		cells = next
	}
	for i, w := range cells {
		if w > 0 {
			chances, weights = append(chances, math.Exp(-float64(i)*step)), append(weights, w)
		}
	}
	return chances, weights
}

// classes returns the probabilities and weights of vertices by the number of ones among their bits.
func (k *kronecker) classes(weighted bool) (chances, weights []float64) {
	s, b := len(k.bits), k.bits[0]
	one := 0.5
	if weighted {
		one = b[1]
	}
	for ones := range s + 1 {
		chances = append(chances, math.Pow(b[0], float64(s-ones))*math.Pow(b[1], float64(ones)))
		weights = append(weights, math.Exp(logBinomialAt(float64(s), one, float64(ones))))
	}
	return chances, weights
}

// summary is the moments and percentiles of a distribution of degrees from 1 on.
type summary struct {
	mean          float64
	lnMean, lnDev float64 // of the logarithm
	percentile    func(share float64) float64
}

// summary computes the sums over the numbers of successes of all binomial distributions.
func (k *kronecker) summary(weighted bool) summary {
	n, shift := k.ends, int64(0)
	if weighted {
		n, shift = n-1, 1
	}
	chances, weights := k.chances(weighted)
	all, mean, ln, square := 0.0, 0.0, 0.0, 0.0
	for i, p := range chances {
		b := binomialOf{n, p}
		all += weights[i] * (1 - b.below(-shift)) // the share of degrees above 0
		mean += weights[i] * (b.mean() + float64(shift))
		first, second := b.logarithms(shift)
		ln, square = ln+weights[i]*first, square+weights[i]*second
	}
	ln, square = ln/all, square/all
	below := func(degree int64) float64 {
		share := all - 1
		for i, p := range chances {
			share += weights[i] * binomialOf{n, p}.below(degree-shift)
		}
		return share / all
	}
	return summary{mean / all, ln, math.Sqrt(square - ln*ln), func(share float64) float64 {
		return float64(percentile(share, 1, n+shift, below))
	}}
}

// percentile returns the lowest degree of a range at which a distribution function reaches a share.
func percentile(share float64, least, most int64, below func(degree int64) float64) int64 {
	for least < most {
		mid := least + (most-least)/2
		if below(mid) >= share {
			most = mid
		} else {
			least = mid + 1
		}
	}
	return least
}

// binomialOf is a binomial distribution.
type binomialOf struct {
	n int64
	p float64
}

func (b binomialOf) mean() float64 { return float64(b.n) * b.p }

// isLarge reports whether the normal distribution and the first terms of its series are exact enough.
func (b binomialOf) isLarge() bool { return b.mean() > 1e4 }

// window returns a range outside of which there is no number with a probability above 1e-30.
func (b binomialOf) window() (from, to int64) {
	margin := 12*math.Sqrt(b.mean()) + 40
	return max(0, int64(b.mean()-margin)), min(b.n, int64(b.mean()+margin))
}

// below returns the probability of at most x successes.
func (b binomialOf) below(x int64) float64 {
	from, to := b.window()
	switch {
	case x < from:
		return 0
	case x >= to:
		return 1
	case b.isLarge():
		deviation := math.Sqrt(b.mean() * (1 - b.p))
		return math.Erfc((b.mean()-float64(x)-0.5)/deviation/math.Sqrt2) / 2
	}
	sum := 0.0
	for i := from; i <= x; i++ {
		sum += math.Exp(logBinomialAt(float64(b.n), b.p, float64(i)))
	}
	return sum
}

// logarithms returns the sums of ln(x+shift) and of its square over numbers from 1 on, times their probabilities.
func (b binomialOf) logarithms(shift int64) (first, second float64) {
	if b.isLarge() {
		ln, part := math.Log(b.mean()), (1-b.p)/b.mean()
		return ln - part/2, ln*ln + part*(1-ln)
	}
	from, to := b.window()
	for x := max(from, 1-shift); x <= to; x++ {
		chance, ln := math.Exp(logBinomialAt(float64(b.n), b.p, float64(x))), math.Log(float64(x+shift))
		first, second = first+chance*ln, second+chance*ln*ln
	}
	return first, second
}
