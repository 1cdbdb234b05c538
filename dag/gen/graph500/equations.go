package graph500

// The equations of the paper, by their numbers in it.

import "math"

// equations holds the variables of eq. 4 to 16.
type equations struct {
	scale, edgeFactor float64
	rootDegree        float64
	eq7               Equation7
	hIntDiv           bool
}

func (p *Params) equations(rootDegree int64) *equations {
	return &equations{float64(p.Scale), float64(p.EdgeFactor), float64(rootDegree), p.Eq7, p.HIntDiv}
}

// mean returns the mean number of edges that all processes explore in a level from 1 on, if enough edges are left:
// eq. 4 to 7.
func (w *equations) mean(level int) float64 {
	s, f, l := w.scale, w.edgeFactor, float64(level)
	a := -0.133 + 0.0046*s + math.Exp(0.01257*f-0.1829*s-math.Exp(1.75-0.7*l))
	b := 2 - l*(0.91+0.002*f-0.012*s)
	var c float64
	if w.eq7 == PrintedEq7 {
		c = math.Exp(1+(1+0.004*f)*(-0.81+0.8411*math.Log(s))) * math.Exp(-(l-2.8)*(l-2.8)/30)
	} else {
		c = math.Exp(1 + (1+0.004*f)*(-1.105+1.01*math.Log(s))*math.Exp(-(l-3.2)*(l-3.2)/8))
	}
	x := math.Log(w.rootDegree)
	return finite(math.Exp(a*x*x + b*x + c))
}

// sigma returns the standard deviation of the number of explored edges: eq. 16.
func (w *equations) sigma(level int) float64 {
	var ln float64
	switch level {
	case 1:
		ln = w.f1(1)
	case 2:
		ln = max(w.f1(1), w.f1(2))
	case 3:
		ln = max(w.f1(2), w.f2(4))
	default:
		ln = w.f2(level)
	}
	return finite(math.Exp(ln))
}

// f1 is eq. 8, with 10 to 12.
func (w *equations) f1(level int) float64 {
	s, f, l := w.scale, w.edgeFactor, float64(level)
	d := 0.002*s - 0.14 - (0.015*s-0.285)*(0.56+0.033*f)*(l-1)
	e := 0.97 - (l-1)*(4.438-0.168*s)*(0.83+0.01*f) // F in the paper
	g := ((2.1+l)*(5.35+0.093*s) - 13.625) * (1.23 - (2.9+0.69*l)/f)
	x := math.Log(w.rootDegree)
	return d*x*x + e*x + g
}

// f2 is eq. 9, with 13 to 15.
func (w *equations) f2(level int) float64 {
	s, f, l := w.scale, w.edgeFactor, float64(level)
	tenth := s / 10
	if w.hIntDiv {
		tenth = math.Floor(tenth)
	}
	h := math.Exp2(l) * (0.011 + 0.00012*f) * math.Exp(1.7-tenth)
	j := 1 - math.Exp((1-0.012*f)*(9.55-1.3*l-s*(0.6-0.1*l)))
	k := 13*(0.062*s-0.046)*(2-0.24*l) - j
	return k/math.Pow(w.rootDegree, h) + j
}

// queries returns the number of queries that each of n processes sends to others for the explored edges: eq. 1.
func queries(edges, n float64) float64 {
	return edges / n * (n - 1) / n
}

// destinations returns the number of processes, out of n, that receive queries of one process: eq. 2.
func destinations(queries, n float64) float64 {
	return -n * math.Expm1(queries*math.Log1p(-1/n))
}

// messages returns the number of messages of at most coalescing queries that a process sends: eq. 3.
func messages(queries, destinations float64, coalescing int64) float64 {
	if queries == 0 {
		return 0
	}
	return math.Ceil(queries/float64(coalescing)/destinations) * destinations
}

// injectionProbability is eq. 17: the share of time in which a process that only injects does so, from the time of a
// packet on the link, p_s t_c, and the time of a query, in the same unit. Above 1 the process is never the bottleneck.
func injectionProbability(packetTime, queryTime float64, coalescing int64) float64 {
	return packetTime / (queryTime * float64(coalescing))
}

// rootDegree returns the distribution of the degree of the root next to its value.
func (p *Params) rootDegree(value, seed int64) RootDegree {
	s := p.rootSummary(seed)
	text, _ := p.Degrees.MarshalText()
	return RootDegree{
		Value: value, Mu: s.lnMean, Sigma: s.lnDev, Median: s.percentile(0.5), Mean: s.mean, P90: s.percentile(0.9),
		P99: s.percentile(0.99), Distribution: string(text), Weighted: p.Degrees.Weighted,
	}
}

// rootDegreeDistribution returns the mean and the standard deviation of the logarithm of the root's degree: eq. 18
// and 19.
func rootDegreeDistribution(scale int) (mu, sigma float64) {
	s := float64(scale)
	return s*math.Log(0.3604) + 1.0661704*s, 0.079313065 * s
}

// finite limits a result to the largest finite number, because JSON has no infinity.
func finite(x float64) float64 {
	return min(x, math.MaxFloat64)
}
