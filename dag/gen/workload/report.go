// Properties of generated flows.

package workload

import (
	"math"
	"slices"

	"github.com/tracedag/tracedag/dag"
	"github.com/tracedag/tracedag/dag/gen/openloop"
)

// Report holds the properties of the flows of a workload, next to the requested ones.
type Report struct {
	Ranks int         `json:"ranks"`
	Flows int64       `json:"flows"`
	Bytes int64       `json:"bytes"`
	Jobs  []JobReport `json:"jobs"`
}

// JobReport holds the properties of the flows of a job.
type JobReport struct {
	Name         string   `json:"name"`
	Sizes        string   `json:"sizes"`
	Rule         string   `json:"rule"`
	Pattern      string   `json:"pattern"`
	Arrivals     string   `json:"arrivals"`
	Flows        int64    `json:"flows"`
	Bytes        int64    `json:"bytes"`
	Last         dag.Time `json:"last_ps"`         // start of the last flow
	MeanSize     float64  `json:"mean_size"`       // bytes
	CurveMean    float64  `json:"curve_mean_size"` // bytes
	SizeDistance float64  `json:"size_distance"`   // Kolmogorov distance of the sizes from their distribution
	Rate         float64  `json:"rate_bps"`        // bits per second of all hosts, up to the duration or the last flow
	WantedRate   float64  `json:"wanted_rate_bps"`
	Load         *float64 `json:"load,omitempty"` // Rate divided by the rate of all links, if known
	WantedLoad   *float64 `json:"wanted_load,omitempty"`
}

// tally counts flows.
type tally struct {
	params *Params
	jobs   []jobTally
}

type jobTally struct {
	flows, bytes int64 // bytes: at most 2^63 - 1
	sum          float64
	last         dag.Time
	marks        []int64 // sizes in bytes
	cdf          []float64
	counts       []int64 // flows up to each mark and above the previous one
}

func newTally(p *Params) *tally {
	t := &tally{p, make([]jobTally, len(p.Jobs))}
	for i := range t.jobs {
		j, c := &t.jobs[i], p.Jobs[i].Sizes
		j.marks, j.cdf = c.Marks()
		for k := range j.marks {
			j.marks[k] *= c.Unit
		}
		j.counts = make([]int64, len(j.marks))
	}
	return t
}

func (t *tally) add(flows []openloop.Message) {
	for i := range flows {
		f := &flows[i]
		j := &t.jobs[f.Job]
		j.flows++
		j.bytes = add(j.bytes, f.Bytes)
		j.sum += float64(f.Bytes)
		j.last = f.Time
		k, _ := slices.BinarySearch(j.marks, f.Bytes)
		j.counts[k]++
	}
}

// distance returns the largest difference between the distributions at the marks.
func (j *jobTally) distance() float64 {
	most, sum := 0.0, int64(0)
	for k, n := range j.counts {
		sum += n
		most = max(most, math.Abs(float64(sum)/float64(j.flows)-j.cdf[k]))
	}
	return most
}

func (t *tally) report() Report {
	r := Report{Ranks: t.params.Ranks}
	for i := range t.jobs {
		j, of := &t.params.Jobs[i], &t.jobs[i]
		gap, sources := j.gap(t.params.Ranks)
		each := 1
		if j.Pattern.Kind == Incast {
			each = j.Pattern.Degree
		}
		one := JobReport{
			Name: j.Name, Sizes: j.Sizes.Name, Rule: j.Sizes.Rule.String(), Pattern: j.Pattern.Kind.String(),
			Arrivals: j.Arrivals.Process.String(), Flows: of.flows, Bytes: of.bytes, Last: of.last,
			CurveMean: j.Sizes.Mean(), WantedRate: 8e12 * j.Sizes.Mean() / gap * float64(sources*each),
		}
		if of.flows > 0 {
			one.MeanSize = of.sum / float64(of.flows)
			one.SizeDistance = of.distance()
		}
		span := of.last
		if j.Duration > 0 && (j.Flows == 0 || of.flows < j.Flows) {
			span = j.Duration
		}
		if span > 0 {
			one.Rate = 8e12 * of.sum / float64(span)
		}
		r.Flows += of.flows
		r.Bytes = add(r.Bytes, of.bytes)
		r.Jobs = append(r.Jobs, one)
	}
	return r
}

// add returns the sum of two numbers of bytes, at most the largest int64.
func add(a, b int64) int64 {
	if a > math.MaxInt64-b {
		return math.MaxInt64
	}
	return a + b
}
