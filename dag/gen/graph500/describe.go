package graph500

// The results of the model's equations, for people and programs.

import (
	"fmt"
	"strings"
)

// Description holds the results of the equations for a search, in real numbers; only the root is drawn. The JSON names
// are those of the command line.
type Description struct {
	Scale       int    `json:"scale"`
	EdgeFactor  int    `json:"edge_factor"`
	Nodes       int    `json:"nodes"`
	Coalescing  int64  `json:"coalescing"`
	Eq7         string `json:"eq7"`
	HIntDiv     bool   `json:"h_intdiv"`
	TotalEdges  int64  `json:"total_edges"` // twice the edges: each is explored from both ends
	RootProcess int    `json:"root_process"`

	RootDegree RootDegree `json:"root_degree"`
	Levels     []Level    `json:"levels"`

	// InjectionProbability is eq. 17; nil if the link is unknown or a query takes no time.
	InjectionProbability *float64 `json:"injection_probability,omitempty"`

	// Groups are the processes with query times of their own.
	Groups []GroupDescription `json:"groups,omitempty"`
}

// GroupDescription is the result of eq. 17 for processes with a query time of their own.
type GroupDescription struct {
	Processes   string  `json:"processes"` // such as 0-3+7
	QueryTimeNS float64 `json:"query_time_ns"`

	InjectionProbability *float64 `json:"injection_probability,omitempty"` // as in Description
}

// RootDegree is the degree of the root, drawn or given, and the distribution of drawn ones.
type RootDegree struct {
	Value  int64   `json:"value"`
	Mu     float64 `json:"mu"`    // mean of the logarithm: eq. 18 if lognormal
	Sigma  float64 `json:"sigma"` // standard deviation of the logarithm: eq. 19 if lognormal
	Median float64 `json:"median"`
	Mean   float64 `json:"mean"`
	P90    float64 `json:"p90"` // 90 % of the degrees are not above
	P99    float64 `json:"p99"`

	Distribution string `json:"distribution"` // as in the flag
	Weighted     bool   `json:"weighted"`     // by ends of edges
}

// Level is a level of the search. In level 0 the edges are those of the root.
type Level struct {
	Level              int     `json:"level"`
	Mean               float64 `json:"mean"`                 // edges explored by all processes: eq. 4
	Sigma              float64 `json:"sigma"`                // standard deviation of that: eq. 16
	MeanTruncated      float64 `json:"mean_truncated"`       // the mean, at most the remaining edges
	QueriesPerProcess  float64 `json:"queries_per_process"`  // eq. 1 of the truncated mean
	Destinations       float64 `json:"destinations"`         // eq. 2
	MessagesPerProcess float64 `json:"messages_per_process"` // eq. 3
}

// Describe returns the results of the equations. A byte takes byteTime picoseconds on a node's link; 0: unknown.
func Describe(p Params, seed int64, byteTime float64) (*Description, error) {
	if err := p.check(); err != nil {
		return nil, fmt.Errorf("graph500: %w", err)
	}
	root, degree := p.drawRoot(seed)
	d := &Description{
		Scale: p.Scale, EdgeFactor: p.EdgeFactor, Nodes: p.Nodes, Coalescing: p.Coalescing, Eq7: p.Eq7.String(),
		HIntDiv: p.HIntDiv, TotalEdges: p.totalEdges(), RootProcess: root, RootDegree: p.rootDegree(degree, seed),
	}
	c, n := p.curve(degree), float64(p.Nodes)
	for l := range p.MaxLevels {
		level := Level{Level: l, Mean: c.Mean[l], Sigma: c.Sigma[l], MeanTruncated: c.Truncated[l]}
		level.QueriesPerProcess = queries(level.MeanTruncated, n)
		level.Destinations = destinations(level.QueriesPerProcess, n)
		level.MessagesPerProcess = messages(level.QueriesPerProcess, level.Destinations, p.Coalescing)
		d.Levels = append(d.Levels, level)
	}
	d.InjectionProbability = p.injection(pace{int64(p.QueryTime), 1}, byteTime)
	for i := range p.Groups {
		own := p.Groups[i].pace(p.QueryTime)
		processes, _, _ := strings.Cut(p.Groups[i].String(), "=")
		d.Groups = append(d.Groups, GroupDescription{processes, own.picoseconds() / 1000, p.injection(own, byteTime)})
	}
	return d, nil
}

// injection returns eq. 17 for a query time, or nil if the link is unknown or a query takes no time.
func (p *Params) injection(own pace, byteTime float64) *float64 {
	if byteTime <= 0 || own.time == 0 {
		return nil
	}
	probability := injectionProbability(byteTime*float64(p.messageBytes()), own.picoseconds(), p.Coalescing)
	return &probability
}
