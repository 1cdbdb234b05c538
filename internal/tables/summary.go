package tables

import (
	"encoding/json"
	"maps"
	"math"
	"slices"
	"strings"
)

// summaryColumns returns the columns of the summary of runs with the given factors.
func summaryColumns(axes []string, reference *Reference) (columns []column) {
	for _, axis := range axes {
		columns = append(columns, column{axis, textColumn})
	}
	columns = append(columns, column{"metric", textColumn}, column{"unit", textColumn}, column{"n", int64Column},
		column{"mean", doubleColumn}, column{"sd", doubleColumn}, column{"ci95_low", doubleColumn},
		column{"ci95_high", doubleColumn}, column{"min", doubleColumn}, column{"p50", doubleColumn},
		column{"max", doubleColumn}, column{"failed", int64Column})
	if reference != nil {
		columns = append(columns, column{"pairs", int64Column}, column{"ratio", doubleColumn},
			column{"ratio_low", doubleColumn}, column{"ratio_high", doubleColumn})
	}
	return columns
}

// summary collects the numbers of points and writes the rows of a point with its last replica.
type summary struct {
	writers  []tableWriter
	axes     []string
	replicas int
	open     map[string]*openPoint // by point
	order    []string              // open points, in the order of their first run
	quantile map[int]float64       // of Student's t distribution, by degrees of freedom

	reference *Reference            // nil: none
	points    map[string]*openPoint // all points by factors, with a reference
}

// openPoint is a point some of whose replicas may follow.
type openPoint struct {
	factors  []string // values by axis
	runs     int
	failed   int64
	values   map[string]*series // by metric
	finished bool
}

type series struct {
	unit   string
	values []float64
	seeds  map[int64]float64 // values by seed, with a reference
}

func newSummary(axes []string, replicas int, reference *Reference) *summary {
	return &summary{axes: axes, replicas: replicas, open: make(map[string]*openPoint), quantile: make(map[int]float64),
		reference: reference, points: make(map[string]*openPoint)}
}

func (s *summary) add(d *document) error {
	pt := s.open[d.run.Point]
	if pt == nil {
		pt = &openPoint{factors: make([]string, len(s.axes)), values: make(map[string]*series)}
		var factors map[string]string
		if json.Unmarshal(d.run.Factors, &factors) == nil {
			for i, axis := range s.axes {
				pt.factors[i] = factors[axis]
			}
		}
		s.open[d.run.Point] = pt
		if s.reference != nil {
			s.points[strings.Join(pt.factors, "\x00")] = pt
		}
		s.order = append(s.order, d.run.Point)
	}
	pt.runs++
	if d.failed != "" {
		pt.failed++
	}
	for i := range d.kept {
		m := &d.kept[i]
		if m.scope != "" || math.IsNaN(m.float) {
			continue
		}
		of := pt.values[m.path]
		if of == nil {
			of = &series{unit: m.unit}
			pt.values[m.path] = of
		}
		of.values = append(of.values, m.float)
		if s.reference != nil {
			if of.seeds == nil {
				of.seeds = make(map[int64]float64)
			}
			of.seeds[d.run.Seed] = m.float
		}
	}
	if pt.finished = pt.runs >= s.replicas && s.reference == nil; !pt.finished {
		return nil
	}
	for len(s.order) > 0 && s.open[s.order[0]].finished {
		if err := s.end(); err != nil {
			return err
		}
	}
	return nil
}

// end writes the rows of the first open point.
func (s *summary) end() error {
	pt := s.open[s.order[0]]
	delete(s.open, s.order[0])
	s.order = s.order[1:]
	var metrics []string
	for metric := range pt.values {
		metrics = append(metrics, metric)
	}
	if len(metrics) == 0 { // all runs failed
		metrics = []string{"makespan_ps"}
		pt.values["makespan_ps"] = &series{unit: "ps"}
	}
	slices.Sort(metrics)
	for _, metric := range metrics {
		var row []value
		for _, factor := range pt.factors {
			row = append(row, text(factor))
		}
		of := pt.values[metric]
		row = append(row, text(metric), text(of.unit), integer(int64(len(of.values))))
		row = append(append(row, s.statistics(of.values)...), integer(pt.failed))
		if s.reference != nil {
			row = append(row, s.ratio(pt, metric)...)
		}
		for _, w := range s.writers {
			if err := w.write(row); err != nil {
				return err
			}
		}
	}
	return nil
}

func (s *summary) close() error {
	for len(s.order) > 0 {
		if err := s.end(); err != nil {
			return err
		}
	}
	return nil
}

// ratio returns the number of seeds that a point shares with its reference, and the ratio of a number and its interval.
func (s *summary) ratio(pt *openPoint, metric string) []value {
	none := []value{integer(0), {}, {}, {}}
	at := slices.Index(s.axes, s.reference.Axis)
	if at < 0 {
		return none
	}
	factors := slices.Clone(pt.factors)
	factors[at] = s.reference.Value
	to := s.points[strings.Join(factors, "\x00")]
	if to == nil || to.values[metric] == nil {
		return none
	}
	of := pt.values[metric].seeds
	var logarithms []float64
	for _, seed := range slices.Sorted(maps.Keys(of)) {
		if base := to.values[metric].seeds[seed]; base > 0 && of[seed] > 0 {
			logarithms = append(logarithms, math.Log(of[seed]/base))
		}
	}
	if len(logarithms) == 0 {
		return none
	}
	statistics := s.statistics(logarithms) // mean, deviation, low, high
	row := []value{integer(int64(len(logarithms)))}
	for _, v := range []value{statistics[0], statistics[2], statistics[3]} {
		if v.present {
			v.float = math.Exp(v.float)
		}
		row = append(row, v)
	}
	return row
}

// statistics returns mean, standard deviation, both ends of the interval that contains the mean with a probability of
// 95 %, minimum, median and maximum.
func (s *summary) statistics(values []float64) []value {
	n := len(values)
	if n == 0 {
		return make([]value, 7)
	}
	slices.Sort(values)
	mean := 0.0
	for i, v := range values {
		mean += (v - mean) / float64(i+1)
	}
	if values[0] == values[n-1] {
		mean = values[0]
	}
	row := []value{number(mean), {}, {}, {}, number(values[0]), number(median(values)), number(values[n-1])}
	if n < 2 {
		return row
	}
	squares := 0.0
	for _, v := range values {
		squares += (v - mean) * (v - mean)
	}
	deviation := math.Sqrt(squares / float64(n-1))
	t, known := s.quantile[n-1]
	if !known {
		t = studentT975(n - 1)
		s.quantile[n-1] = t
	}
	half := t * deviation / math.Sqrt(float64(n))
	row[1], row[2], row[3] = number(deviation), number(mean-half), number(mean+half)
	return row
}

// median returns the median of ascending values.
func median(values []float64) float64 {
	n := len(values)
	if n%2 == 1 {
		return values[n/2]
	}
	low, high := values[n/2-1], values[n/2]
	return low + (high-low)/2
}

// studentT975 returns the 0.975-quantile of Student's t distribution with the given degrees of freedom. Up to 1,000 it
// solves the exact distribution function (Abramowitz and Stegun, 26.7.3 and 26.7.4); above, it expands the quantile of
// the normal distribution (26.7.5), whose error is below 1e-14 there.
func studentT975(freedom int) float64 {
	const normal = 1.959963984540054
	if freedom > 1000 {
		x, v := normal, float64(freedom)
		x2 := x * x
		return x + x*(x2+1)/(4*v) + x*((5*x2+16)*x2+3)/(96*v*v) + x*(((3*x2+19)*x2+17)*x2-15)/(384*v*v*v) +
			x*((((79*x2+776)*x2+1482)*x2-1920)*x2-945)/(92160*v*v*v*v)
	}
	low, high := 0.0, math.Pi/2 // of atan(t / sqrt(freedom))
	for range 200 {
		middle := low + (high-low)/2
		if middle == low || middle == high {
			break
		}
		if within(middle, freedom) < 0.95 {
			low = middle
		} else {
			high = middle
		}
	}
	return math.Tan(high) * math.Sqrt(float64(freedom))
}

// within returns the probability of a value between -t and t for t = tan(angle) sqrt(freedom).
func within(angle float64, freedom int) float64 {
	sin, cos := math.Sincos(angle)
	if freedom%2 == 0 {
		term, sum := 1.0, 1.0
		for k := 2; k < freedom; k += 2 {
			term *= cos * cos * float64(k-1) / float64(k)
			sum += term
		}
		return sin * sum
	}
	sum := 0.0
	if freedom > 1 {
		term := cos
		sum = term
		for k := 3; k < freedom; k += 2 {
			term *= cos * cos * float64(k-1) / float64(k)
			sum += term
		}
	}
	return 2 / math.Pi * (angle + sin*sum)
}
