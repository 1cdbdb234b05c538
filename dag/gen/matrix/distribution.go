// Mass functions of sizes and interarrival times, from named distributions.

package matrix

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
)

// Distribution is a distribution of sizes or interarrival times.
type Distribution struct {
	Family     string    // one of Families
	Params     []float64 // parameters of the family, in the order of Families
	Modes      []Mode    // of multimodal
	Background float64   // of multimodal: number of values spread over Min..Max, relative to the values of the modes
	Min, Max   float64   // values outside are drawn again; infinite: no limit
	Round      float64   // values are rounded to multiples of it, but not below Min; 0: no rounding
}

// Mode is a skew-normal component of a multimodal distribution.
type Mode struct {
	Location, Skew, Scale float64
	Draws                 int // number of values drawn from it
}

// draws is the number of values drawn for the mass function of a family other than uniform and multimodal.
const draws = 150_000

const (
	maxDraws   = 1 << 24 // of a multimodal distribution, in total
	maxSupport = 1 << 22 // values of a uniform distribution

	maxDistinct = 1 << 30 // values over which a background is spread
)

// family is a family of distributions: the names of its parameters and a function that draws a value. Parameters in
// positive must be above 0.
type family struct {
	name     string
	params   []string
	positive []string
	draw     func(p []float64, random *rand.Rand) float64
}

var families = []family{
	{"exponential", []string{"beta"}, []string{"beta"}, func(p []float64, random *rand.Rand) float64 {
		return p[0] * random.ExpFloat64()
	}},
	{"lognormal", []string{"mu", "sigma"}, []string{"sigma"}, func(p []float64, random *rand.Rand) float64 {
		return math.Exp(p[0] + float64(p[1]*random.NormFloat64()))
	}},
	{"weibull", []string{"alpha", "lambda"}, []string{"alpha", "lambda"}, func(p []float64, random *rand.Rand) float64 {
		return p[1] * math.Pow(random.ExpFloat64(), 1/p[0])
	}},
	{"pareto", []string{"alpha", "mode"}, []string{"alpha", "mode"}, func(p []float64, random *rand.Rand) float64 {
		return p[1] * math.Exp(random.ExpFloat64()/p[0])
	}},
	{"normal", []string{"loc", "scale"}, []string{"scale"}, func(p []float64, random *rand.Rand) float64 {
		return p[0] + float64(p[1]*random.NormFloat64())
	}},
	{"skewnorm", []string{"a", "loc", "scale"}, []string{"scale"}, func(p []float64, random *rand.Rand) float64 {
		return skewNormal(p[0], p[1], p[2], random)
	}},
	{name: "uniform"},
	{name: "multimodal"},
}

// skewNormal draws from Azzalini's skew-normal distribution.
func skewNormal(skew, location, scale float64, random *rand.Rand) float64 {
	delta := skew / math.Hypot(1, skew)
	half := math.Abs(random.NormFloat64())
	z := float64(delta*half) + float64(random.NormFloat64()/math.Hypot(1, skew))
	return location + float64(scale*z)
}

// Families returns the families of distributions with the names of their parameters, such as "weibull:alpha,lambda".
func Families() []string {
	var names []string
	for _, f := range families {
		names = append(names, strings.TrimSuffix(f.name+":"+strings.Join(f.params, ","), ":"))
	}
	return names
}

// ParseDistribution parses a distribution such as "weibull:alpha=4.7,lambda=4100,min=1,max=1e6,round=25" or
// "multimodal:mode=40/-1/60/10000,mode=1/4/1000,background=0.05,min=1,max=1e5,round=25". A mode is location, skew,
// scale and draws (default 10000).
func ParseDistribution(text string) (*Distribution, error) {
	name, rest, _ := strings.Cut(text, ":")
	l := &Distribution{Family: name, Min: math.Inf(-1), Max: math.Inf(1)}
	f := l.family()
	if f == nil {
		return nil, fmt.Errorf("expected one of %s, found %q", strings.Join(Families(), " "), name)
	}
	l.Params = make([]float64, len(f.params))
	missing := slices.Clone(f.params)
	numbers := map[string]*float64{"min": &l.Min, "max": &l.Max, "round": &l.Round}
	for i, p := range f.params {
		numbers[p] = &l.Params[i]
	}
	if name == "multimodal" {
		numbers["background"] = &l.Background
	}
	err := eachSetting(rest, func(key, value string) error {
		if key == "mode" && name == "multimodal" {
			return l.addMode(value)
		}
		to, ok := numbers[key]
		if !ok {
			return fmt.Errorf("%s has no parameter %q", name, key)
		}
		var err error
		if *to, err = number(value); err != nil {
			return err
		}
		missing = slices.DeleteFunc(missing, func(p string) bool { return p == key })
		return nil
	})
	if err != nil {
		return nil, err
	}
	if len(missing) > 0 {
		return nil, fmt.Errorf("%s needs %s=NUMBER", name, missing[0])
	}
	return l, l.check()
}

func (l *Distribution) addMode(text string) error {
	parts, err := numbers(text)
	if err != nil {
		return err
	}
	if len(parts) == 3 {
		parts = append(parts, 10_000)
	}
	if len(parts) != 4 || parts[3] != math.Trunc(parts[3]) || parts[3] < 1 || parts[3] > maxDraws {
		return fmt.Errorf("expected mode=LOCATION/SKEW/SCALE/DRAWS with 1..%d draws, found %q", maxDraws, text)
	}
	l.Modes = append(l.Modes, Mode{parts[0], parts[1], parts[2], int(parts[3])})
	return nil
}

func (l *Distribution) family() *family {
	for i := range families {
		if families[i].name == l.Family {
			return &families[i]
		}
	}
	return nil
}

// check returns an error for a distribution without values in range.
func (l *Distribution) check() error {
	f := l.family()
	if f == nil || len(l.Params) != len(f.params) {
		return fmt.Errorf("expected the family of one of %s, found %s with %d parameters",
			strings.Join(Families(), " "), l.Family, len(l.Params))
	}
	for i, p := range f.params {
		if slices.Contains(f.positive, p) && !(l.Params[i] > 0) {
			return fmt.Errorf("%s is %v, expected above 0", p, l.Params[i])
		}
	}
	bounded := l.Min > math.Inf(-1) && l.Max < math.Inf(1)
	switch {
	case !(l.Min <= l.Max):
		return fmt.Errorf("min is %v and max is %v, expected min at most max", l.Min, l.Max)
	case l.Round < 0:
		return fmt.Errorf("round is %v, expected 0 or more", l.Round)
	case l.Family == "uniform" && !bounded:
		return fmt.Errorf("uniform needs min=NUMBER and max=NUMBER")
	case l.Background > 0 && !bounded:
		return fmt.Errorf("a background needs min=NUMBER and max=NUMBER")
	case l.Background > 0 && (l.Max-l.Min)/l.step() >= maxDistinct:
		return fmt.Errorf("a background from %v to %v in steps of %v, expected at most %d values", l.Min, l.Max,
			l.step(), maxDistinct)
	case l.Family == "uniform" && (l.Max-l.Min)/l.step() >= maxSupport:
		return fmt.Errorf("values from %v to %v in steps of %v, expected at most %d values", l.Min, l.Max,
			l.step(), maxSupport)
	case l.Family != "multimodal":
		return nil
	case len(l.Modes) == 0:
		return fmt.Errorf("multimodal needs mode=LOCATION/SKEW/SCALE")
	case l.Background < 0:
		return fmt.Errorf("background is %v, expected 0 or more", l.Background)
	}
	all := 0
	for _, m := range l.Modes {
		if !(m.Scale > 0) {
			return fmt.Errorf("the scale of a mode is %v, expected above 0", m.Scale)
		}
		all += m.Draws
	}
	if float64(all)*(1+l.Background) > maxDraws {
		return fmt.Errorf("%.4g values to draw, expected at most %d", float64(all)*(1+l.Background), maxDraws)
	}
	return nil
}

// step is the distance of evenly spread values.
func (l *Distribution) step() float64 {
	if l.Round > 0 {
		return l.Round
	}
	return 1
}

// steps returns the number of values min, min+step, ... up to max.
func (l *Distribution) steps() int { return 1 + int((l.Max-l.Min)/l.step()) }

// at returns value i of min, min+step, ...
func (l *Distribution) at(i int) float64 { return l.Min + float64(float64(i)*l.step()) }

// spread returns min, min+step, ... up to max.
func (l *Distribution) spread() []float64 {
	values := make([]float64, l.steps())
	for i := range values {
		values[i] = l.at(i)
	}
	return values
}

// PMF returns the mass function: exact for uniform, the frequencies of draws for other families.
func (l *Distribution) PMF(random *rand.Rand) (*PMF, error) {
	if err := l.check(); err != nil {
		return nil, err
	}
	if l.Family == "uniform" {
		return count(l.spread()), nil
	}
	var values []float64
	var err error
	if l.Family != "multimodal" {
		f := l.family()
		values, err = l.draw(nil, draws, func() float64 { return f.draw(l.Params, random) })
	}
	for _, m := range l.Modes {
		if err == nil {
			values, err = l.draw(values, m.Draws, func() float64 {
				return skewNormal(m.Skew, m.Location, m.Scale, random)
			})
		}
	}
	if err != nil {
		return nil, err
	}
	if l.Background > 0 {
		for range int(l.Background * float64(len(values))) {
			values = append(values, l.at(random.IntN(l.steps())))
		}
	}
	for i, v := range values {
		values[i] = l.rounded(v)
	}
	return count(values), nil
}

// draw appends n values in Min..Max.
func (l *Distribution) draw(values []float64, n int, next func() float64) ([]float64, error) {
	const maxDrawsPerValue = 1000 // on average
	for left := maxDrawsPerValue * n; n > 0; left-- {
		if left == 0 {
			return nil, fmt.Errorf("fewer than one in %d drawn values is in %v..%v", maxDrawsPerValue, l.Min, l.Max)
		}
		if v := next(); v >= l.Min && v <= l.Max && !math.IsInf(v, 0) {
			values = append(values, v)
			n--
		}
	}
	return values, nil
}

// rounded returns the nearest multiple of Round, ties to even multiples, to two decimals, and Min at least.
func (l *Distribution) rounded(v float64) float64 {
	if l.Round == 0 {
		return v
	}
	v = math.RoundToEven(v/l.Round) * l.Round
	v = math.RoundToEven(v*100) / 100
	return max(v, l.Min)
}

// eachSetting calls set for each KEY=VALUE of a list with commas.
func eachSetting(list string, set func(key, value string) error) error {
	if list == "" {
		return nil
	}
	for setting := range strings.SplitSeq(list, ",") {
		key, value, ok := strings.Cut(setting, "=")
		if !ok {
			return fmt.Errorf("expected NAME=VALUE, found %q", setting)
		}
		if err := set(key, value); err != nil {
			return fmt.Errorf("%s: %w", setting, err)
		}
	}
	return nil
}

// number parses a finite number in decimal or exponent notation.
func number(text string) (float64, error) {
	v, err := strconv.ParseFloat(text, 64)
	if err != nil || strings.Trim(text, "0123456789.eE+-") != "" {
		return 0, fmt.Errorf("expected a number, found %.40q", text)
	}
	return v, nil
}

// numbers parses numbers with slashes between them.
func numbers(text string) ([]float64, error) {
	var all []float64
	for part := range strings.SplitSeq(text, "/") {
		v, err := number(part)
		if err != nil {
			return nil, err
		}
		all = append(all, v)
	}
	return all, nil
}
