package graph500

// Distributions of the degree of the root.

import (
	"bufio"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"

	"github.com/tracedag/tracedag/dag/gen/openloop"
)

// DegreeKind is a kind of distribution of the degree of the root.
type DegreeKind uint8

// The kinds.
const (
	LognormalDegrees DegreeKind = iota // eq. 18 and 19, rounded up
	PowerDegrees                       // P(d) ~ d^-Exponent from Least to the ends of all edges
	RMATDegrees                        // of a vertex of the Kronecker graph
	NoisyRMATDegrees                   // of a vertex of a Kronecker graph whose levels have noise
	MeasuredDegrees                    // of a vertex of a graph with the given degrees
)

// Degrees is a distribution of the degree of the root. Vertices of degree 0 are no roots.
type Degrees struct {
	Kind     DegreeKind
	Exponent float64       // of PowerDegrees, from 1 to 20
	Least    int64         // of PowerDegrees, at least 1
	Noise    float64       // of NoisyRMATDegrees, from 0 to 0.19
	Counts   []DegreeCount // of MeasuredDegrees, ascending
	File     string        // with Counts, for messages

	// Weighted draws the end of an edge instead of a vertex, so that a degree d is d times as likely.
	Weighted bool
}

// DegreeCount is a number of vertices of a degree.
type DegreeCount struct{ Degree, Vertices int64 }

// Limits of distributions.
const (
	maxExponent    = 20
	maxNoise       = edgeB // of Seshadhri et al.: min((a+d)/2, b)
	maxDegreeLines = 1 << 22
	maxVertices    = 1 << maxScale
)

// degreeNames are the names of kinds without parameters, by kind, and the prefixes of others.
var degreeNames = [...]string{"lognormal", "power", "rmat", "rmat-noise", "file"}

// MarshalText returns the distribution as in the flag, such as power:2.5,3.
func (d *Degrees) MarshalText() ([]byte, error) {
	text := degreeNames[d.Kind]
	switch d.Kind {
	case PowerDegrees:
		text += fmt.Sprintf(":%v,%d", d.Exponent, d.Least)
	case NoisyRMATDegrees:
		text += fmt.Sprintf(":%v", d.Noise)
	case MeasuredDegrees:
		text += ":" + d.File
	}
	return []byte(text), nil
}

// UnmarshalText parses a distribution.
func (d *Degrees) UnmarshalText(text []byte) (err error) {
	name, value, hasValue := strings.Cut(string(text), ":")
	kind := slices.Index(degreeNames[:], strings.ToLower(name))
	next := Degrees{Kind: DegreeKind(kind), Weighted: d.Weighted}
	const expected = "expected lognormal, power:ALPHA[,MIN], rmat, rmat-noise:B or file:FILE"
	switch {
	case kind < 0:
		return fmt.Errorf("%.40q, %s", text, expected)
	case hasValue != (next.Kind != LognormalDegrees && next.Kind != RMATDegrees):
		return fmt.Errorf("%.40q, %s", text, expected)
	case next.Kind == PowerDegrees:
		exponent, least, hasLeast := strings.Cut(value, ",")
		if next.Exponent, err = strconv.ParseFloat(exponent, 64); err != nil {
			return fmt.Errorf("exponent %.40q, expected a number from 1 to %d", exponent, maxExponent)
		}
		if next.Least = 1; hasLeast {
			if next.Least, err = strconv.ParseInt(least, 10, 64); err != nil {
				return fmt.Errorf("least degree %.40q, expected a whole number from 1 on", least)
			}
		}
	case next.Kind == NoisyRMATDegrees:
		if next.Noise, err = strconv.ParseFloat(value, 64); err != nil {
			return fmt.Errorf("noise %.40q, expected a number from 0 to %v", value, maxNoise)
		}
	case next.Kind == MeasuredDegrees:
		if next.File = value; value == "" {
			return fmt.Errorf("no file, %s", expected)
		}
	}
	*d = next
	return nil
}

// check returns an error about the parameters of a distribution of degrees up to most.
func (d *Degrees) check(most int64) error {
	switch {
	case d.Kind > MeasuredDegrees:
		return fmt.Errorf("no distribution of degrees with the number %d", d.Kind)
	case d.Kind == PowerDegrees && !(d.Exponent >= 1 && d.Exponent <= maxExponent):
		return fmt.Errorf("the exponent of degrees is %v, expected 1..%d", d.Exponent, maxExponent)
	case d.Kind == PowerDegrees && (d.Least < 1 || d.Least > most):
		return fmt.Errorf("the least degree is %d, expected 1..%d, the ends of all edges", d.Least, most)
	case d.Kind == NoisyRMATDegrees && !(d.Noise >= 0 && d.Noise <= maxNoise):
		return fmt.Errorf("the noise of degrees is %v, expected 0..%v", d.Noise, maxNoise)
	case d.Kind != MeasuredDegrees:
		return nil
	}
	vertices := int64(0)
	for i, c := range d.Counts {
		switch {
		case c.Degree < 1 || c.Degree > most:
			return fmt.Errorf("%s: degree %d, expected 1..%d, the ends of all edges: check --scale and --edge-factor",
				d.File, c.Degree, most)
		case i > 0 && c.Degree <= d.Counts[i-1].Degree:
			return fmt.Errorf("%s: degree %d is there twice or not in order, expected each once", d.File, c.Degree)
		case c.Vertices < 1 || c.Vertices > maxVertices-vertices:
			return fmt.Errorf("%s: %d vertices of degree %d, expected 1..2^%d in all", d.File, c.Vertices, c.Degree,
				maxScale)
		}
		vertices += c.Vertices
	}
	if vertices == 0 {
		return fmt.Errorf("%s: no vertices, expected lines with a degree and a number of vertices", d.File)
	}
	return nil
}

// ReadDegrees reads lines with a degree and its number of vertices, separated by spaces, a tab or a comma. Empty lines,
// lines that start with # and a first line of names are skipped, and so is degree 0. An error is an
// [openloop.LineError] or of r.
func ReadDegrees(r io.Reader) ([]DegreeCount, error) {
	var counts []DegreeCount
	lines := bufio.NewScanner(r)
	number := int64(0)
	for lines.Scan() {
		number++
		line := strings.TrimSpace(lines.Text())
		if line == "" || line[0] == '#' || number == 1 && (line[0] < '0' || line[0] > '9') && line[0] != '-' {
			continue
		}
		fields := strings.FieldsFunc(line, func(r rune) bool { return r == ' ' || r == '\t' || r == ',' })
		c, ok := parseDegree(fields)
		if !ok || len(counts) == maxDegreeLines {
			return nil, &openloop.LineError{Line: number, Found: fmt.Sprintf("%.60q", line),
				Expected: fmt.Sprintf("a degree and a number of vertices up to 2^%d, in at most %d lines",
					maxScale, maxDegreeLines)}
		}
		if c.Degree > 0 && c.Vertices > 0 {
			counts = append(counts, c)
		}
	}
	slices.SortFunc(counts, func(a, b DegreeCount) int { return int(min(max(a.Degree-b.Degree, -1), 1)) })
	return counts, lines.Err()
}

func parseDegree(fields []string) (c DegreeCount, ok bool) {
	if len(fields) != 2 {
		return c, false
	}
	degree, err := strconv.ParseUint(fields[0], 10, 63)
	vertices, err2 := strconv.ParseUint(fields[1], 10, 63)
	return DegreeCount{int64(degree), int64(vertices)}, err == nil && err2 == nil && vertices <= maxVertices
}

// drawRootDegree draws the degree of a root.
func (p *Params) drawRootDegree(seed int64, r *rand.Rand) int64 {
	d := &p.Degrees
	switch d.Kind {
	case PowerDegrees:
		return d.power(p.totalEdges()).draw(r)
	case RMATDegrees, NoisyRMATDegrees:
		return p.kronecker(seed).draw(r, d.Weighted)
	case MeasuredDegrees:
		return d.drawCount(r)
	}
	mu, sigma := p.lognormal()
	degree := math.Ceil(math.Exp(mu + sigma*r.NormFloat64()))
	return int64(min(max(degree, 1), float64(p.totalEdges())))
}

// lognormal returns eq. 18 and 19 for a vertex, or for the end of an edge: the logarithm of a lognormal number that is
// as many times as likely as its value is normal with the mean mu + sigma^2.
func (p *Params) lognormal() (mu, sigma float64) {
	mu, sigma = rootDegreeDistribution(p.Scale)
	if p.Degrees.Weighted {
		mu += sigma * sigma
	}
	return mu, sigma
}

// drawCount draws a degree of the file.
func (d *Degrees) drawCount(r *rand.Rand) int64 {
	all := 0.0
	for _, c := range d.Counts {
		all += d.weight(c)
	}
	at := r.Float64() * all
	for _, c := range d.Counts {
		if at -= d.weight(c); at < 0 {
			return c.Degree
		}
	}
	return d.Counts[len(d.Counts)-1].Degree
}

// weight returns a number proportional to the probability of a degree.
func (d *Degrees) weight(c DegreeCount) float64 {
	if d.Weighted {
		return float64(c.Vertices) * float64(c.Degree)
	}
	return float64(c.Vertices)
}

// powerLaw is P(d) ~ d^-exponent from least to most.
type powerLaw struct {
	exponent    float64
	least, most int64
}

// power returns the distribution of degrees up to most; a weight d lowers the exponent by 1.
func (d *Degrees) power(most int64) powerLaw {
	law := powerLaw{d.Exponent, d.Least, most}
	if d.Weighted {
		law.exponent--
	}
	return law
}

// area returns the integral of x^-exponent.
func (l powerLaw) area(from, to float64) float64 {
	rest := 1 - l.exponent
	if math.Abs(rest) < 1e-9 {
		return math.Log(to / from)
	}
	return math.Pow(from, rest) * math.Expm1(rest*math.Log(to/from)) / rest
}

// draw rounds a number of the continuous distribution from least-1/2 to most+1/2. x^-exponent is convex, so its
// integral around a degree is at least its value there, and the quotient is the probability to accept.
func (l powerLaw) draw(r *rand.Rand) int64 {
	from, to := float64(l.least)-0.5, float64(l.most)+0.5
	rest, span := 1-l.exponent, math.Log(to/from)
	for {
		u := r.Float64()
		x := from * math.Exp(u*span)
		if math.Abs(rest) >= 1e-9 {
			x = from * math.Exp(math.Log1p(u*math.Expm1(rest*span))/rest)
		}
		degree := min(max(math.Round(x), float64(l.least)), float64(l.most))
		if r.Float64()*l.area(degree-0.5, degree+0.5) <= math.Pow(degree, -l.exponent) {
			return int64(degree)
		}
	}
}

// sum adds up the weights d^-exponent, times ln^power d, of the degrees up to most.
func (l powerLaw) sum(most int64, power int) float64 {
	weight := func(x float64) float64 {
		w := math.Pow(x/float64(l.least), -l.exponent)
		for range power {
			w *= math.Log(x)
		}
		return w
	}
	const each = 4096 // degrees that are added one by one; others are integrated between halves
	total := 0.0
	end := min(most, l.least+each-1)
	for d := l.least; d <= end; d++ {
		total += weight(float64(d))
	}
	if end == most {
		return total
	}
	return total + integral(weight, float64(end)+0.5, float64(most)+0.5)
}

// integral integrates a smooth function of the logarithm of x, by Simpson's rule.
func integral(f func(x float64) float64, from, to float64) float64 {
	const steps = 2000
	h := math.Log(to/from) / steps
	total := 0.0
	for i := range steps + 1 {
		factor := float64(2 + 2*(i%2))
		if i == 0 || i == steps {
			factor = 1
		}
		x := from * math.Exp(float64(i)*h)
		total += factor * f(x) * x
	}
	return total * h / 3
}

// summary returns the moments of the distribution and its percentiles.
func (l powerLaw) summary() summary {
	all := l.sum(l.most, 0)
	higher := l
	higher.exponent--
	ln, square := l.sum(l.most, 1)/all, l.sum(l.most, 2)/all
	mean := float64(l.least) * higher.sum(l.most, 0) / all
	below := func(degree int64) float64 { return l.sum(degree, 0) / all }
	return summary{mean, ln, math.Sqrt(max(0, square-ln*ln)), func(share float64) float64 {
		return float64(percentile(share, l.least, l.most, below))
	}}
}

// countSummary returns the moments of the degrees of the file and their percentiles.
func (d *Degrees) countSummary() summary {
	all, mean, ln, square := 0.0, 0.0, 0.0, 0.0
	for _, c := range d.Counts {
		w, log := d.weight(c), math.Log(float64(c.Degree))
		all, mean, ln, square = all+w, mean+w*float64(c.Degree), ln+w*log, square+w*log*log
	}
	ln, square = ln/all, square/all
	return summary{mean / all, ln, math.Sqrt(max(0, square-ln*ln)), func(share float64) float64 {
		sum := 0.0
		for _, c := range d.Counts {
			if sum += d.weight(c); sum >= share*all {
				return float64(c.Degree)
			}
		}
		return float64(d.Counts[len(d.Counts)-1].Degree)
	}}
}

// rootSummary returns the moments of the distribution of the root's degree. Those of the lognormal distribution are of
// its numbers before they are rounded up.
func (p *Params) rootSummary(seed int64) summary {
	d := &p.Degrees
	switch d.Kind {
	case PowerDegrees:
		return d.power(p.totalEdges()).summary()
	case RMATDegrees, NoisyRMATDegrees:
		return p.kronecker(seed).summary(d.Weighted)
	case MeasuredDegrees:
		return d.countSummary()
	}
	mu, sigma := p.lognormal()
	return summary{math.Exp(mu + sigma*sigma/2), mu, sigma, func(share float64) float64 {
		return math.Exp(mu + sigma*math.Sqrt2*math.Erfinv(2*share-1))
	}}
}
