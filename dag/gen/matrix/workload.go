// The steps that generate the flows of a workload.

package matrix

import (
	"encoding/binary"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/tracedag/tracedag/dag"
	"github.com/tracedag/tracedag/dag/gen/openloop"
	"github.com/tracedag/tracedag/internal/par"
)

// Report holds the properties of a generated workload.
type Report struct {
	Nodes              int      `json:"nodes"`
	Flows              int      `json:"flows"`               // packed ones
	Copies             int64    `json:"copies"`              // copies of all flows in the trace, in sequence
	SumSizes           int64    `json:"sum_sizes"`           // bytes of the flows
	RawDuration        float64  `json:"raw_duration"`        // from first to last arrival as drawn, in us
	InterarrivalFactor float64  `json:"interarrival_factor"` // factor from raw_duration to duration
	Duration           float64  `json:"duration"`            // from first to last arrival at the load, in us
	LoadRate           float64  `json:"load_rate"`           // bytes of the flows per us of duration
	Load               float64  `json:"load"`                // relative to all nodes' capacity for sending
	PortRoom           float64  `json:"port_room"`           // bytes that a port can carry in the duration
	SizeDistance       *float64 `json:"size_distance"`       // of the sizes from their distribution; nil: unknown
	IntervalDistance   *float64 `json:"interarrival_distance"`
	PackingDistance    float64  `json:"packing_distance"` // of the bytes of the pairs from the node matrix
	InterRackShare     *float64 `json:"inter_rack_share"` // of all bytes, in the node matrix; nil: no racks
	NegativeCells      int      `json:"negative_cells"`   // cells of the node matrix that were set to 0
	MatrixCorrected    bool     `json:"matrix_corrected"` // nodes would have exceeded their capacity
	MaxSourceUse       float64  `json:"max_source_port_use"`
	MaxDestinationUse  float64  `json:"max_destination_port_use"` // bytes of the fullest port relative to its room
}

// random returns the random stream for one purpose.
func random(seed int64, purpose string) *rand.Rand {
	var key [32]byte
	binary.LittleEndian.PutUint64(key[0:], uint64(seed))
	copy(key[16:], purpose)
	return rand.New(rand.NewChaCha8(key))
}

// NewSource generates the flows of a workload and returns their trace. The same parameters and seed give the same
// trace. Errors are ParamErrors, an UnpackableError, and an OverloadError.
func NewSource(p Params, seed int64) (*openloop.Source, *Report, error) {
	w, err := generate(p, seed)
	if err != nil {
		return nil, nil, err
	}
	s, err := newSource(w, maxBatch)
	return s, &w.report, err
}

// Target returns the node matrix that the flows of a workload follow, without generating them. It is corrected for the
// capacity of nodes if the load is above 0. Errors are those of NewSource.
func Target(p Params, seed int64) (*Matrix, *Report, error) {
	if err := p.Check(); err != nil {
		return nil, nil, err
	}
	w := &workload{Params: p, seed: seed, report: Report{Nodes: p.Nodes}}
	if err := w.makeMatrix(); err != nil {
		return nil, nil, err
	}
	w.report.LoadRate = p.Load * p.Capacity * float64(p.Nodes) / 2
	return w.matrix, &w.report, w.checkMatrix()
}

// generate generates the flows.
func generate(p Params, seed int64) (*workload, error) {
	if err := p.Check(); err != nil {
		return nil, err
	}
	w := &workload{Params: p, seed: seed, report: Report{Nodes: p.Nodes, Copies: 1}, began: time.Now()}
	for _, step := range []func() error{w.makeMatrix, w.drawValues, w.adjustLoad, w.checkMatrix, w.pack, w.arrive} {
		if err := step(); err != nil {
			return nil, err
		}
		if err := par.Interrupted(w.Context); err != nil {
			return nil, err
		}
	}
	return w, nil
}

// workload is the state of generating a workload.
type workload struct {
	Params
	seed   int64
	report Report
	matrix *Matrix
	sizes  []int64    // of each flow; descending while flows are packed, then in the order of arrival
	gaps   []float64  // between arrivals, in microseconds; the last is not used
	routes []uint32   // of each flow, source << 16 | destination
	times  []dag.Time // of arrival
	began  time.Time
}

// makeMatrix sets the node matrix, or copies the given one.
func (w *workload) makeMatrix() (err error) {
	if w.Matrix != nil {
		w.matrix = &Matrix{w.Matrix.N, slices.Clone(w.Matrix.Cells), w.Matrix.Racks}
		w.report.NegativeCells = w.matrix.normalise()
	} else if w.matrix, err = w.Recipe.Matrix(w.Nodes, random(w.seed, "matrix")); err != nil {
		return &openloop.ParamError{Param: "matrix", Found: w.Recipe.Kind, Expected: "a matrix that can be made: " +
			err.Error()}
	} else if w.Racks > 0 && w.InterRack > 0 {
		w.report.NegativeCells = w.matrix.shareRacks(w.Racks, w.InterRack)
	}
	if w.Racks > 0 {
		w.matrix.Racks = racksOf(w.Nodes, w.Racks)
	}
	return nil
}

// drawValues draws equally many sizes and times between arrivals.
func (w *workload) drawValues() error {
	sizes, err := w.values(&w.Sizes, Size)
	if err != nil {
		return err
	}
	gaps, err := w.values(&w.Interarrivals, Interarrival)
	if err != nil {
		return err
	}
	switch {
	case sizes.given && gaps.given && len(sizes.values) != len(gaps.values):
		return &openloop.ParamError{
			Param: "interarrivals", Found: fmt.Sprintf("%d values", len(gaps.values)),
			Expected: fmt.Sprintf("one for each of the %d sizes", len(sizes.values)),
		}
	case gaps.given:
		sizes.redraw(len(gaps.values))
	case sizes.given:
		gaps.redraw(len(sizes.values))
	default:
		sizes.draw(w.Threshold, w.Flows, w.MaxFlows)
		gaps.draw(w.Threshold, len(sizes.values), w.MaxFlows)
		if len(gaps.values) > len(sizes.values) {
			sizes.redraw(len(gaps.values))
		}
	}
	w.report.SizeDistance, w.report.IntervalDistance = sizes.known(), gaps.known()
	w.gaps = gaps.values
	return w.setSizes(sizes.values)
}

// setSizes sets the sizes of flows.
func (w *workload) setSizes(sizes []float64) error {
	w.sizes = make([]int64, len(sizes))
	for i, v := range sizes {
		w.sizes[i] = int64(v)
	}
	w.report.Flows = len(w.sizes)
	for _, z := range w.sizes {
		if w.report.SumSizes += z; w.report.SumSizes > maxTotal {
			return &openloop.ParamError{Param: "sizes", Found: fmt.Sprintf("more than %d bytes in total",
				int64(maxTotal)),
				Expected: "at most as many"}
		}
	}
	return nil
}

// drawn are the values of one quantity.
type drawn struct {
	given    bool
	values   []float64
	sampler  *sampler // nil: unknown distribution
	random   *rand.Rand
	distance float64
}

func (w *workload) values(v *Values, q Quantity) (*drawn, error) {
	d := &drawn{given: v.Given != nil, values: v.Given, random: random(w.seed, q.String())}
	pmf := v.PMF
	if pmf == nil && !d.given {
		var err error
		if pmf, err = v.Distribution.PMF(random(w.seed, q.String()+" law")); err != nil {
			return nil, &openloop.ParamError{Param: q.String() + "-dist", Found: v.Distribution.Family,
				Expected: "a distribution with enough values in range: " + err.Error()}
		}
		if i := slices.IndexFunc(pmf.Values, func(value float64) bool { return !q.has(value) }); i >= 0 {
			return nil, &openloop.ParamError{Param: q.String() + "-dist",
				Found: fmt.Sprintf("a distribution that gives %v",
					pmf.Values[i]), Expected: q.expected() + ": set min, max and round"}
		}
	}
	if pmf != nil {
		d.sampler = newSampler(pmf)
		d.sampler.watch.Context = w.Context
	}
	if pmf != nil && d.given {
		d.distance = pmf.Distance(d.values)
	}
	return d, nil
}

func (d *drawn) draw(threshold float64, n, most int) {
	d.values, d.distance = d.sampler.sampleUntil(threshold, n, most, d.random)
}

// redraw draws n values, whatever their distance, unless there are n already.
func (d *drawn) redraw(n int) {
	if len(d.values) != n {
		d.values = make([]float64, n)
		d.distance = d.sampler.sample(d.values, d.random)
	}
}

func (d *drawn) known() *float64 {
	if d.sampler == nil {
		return nil
	}
	distance := d.distance
	return &distance
}

// adjustLoad computes the factor of all times between arrivals that gives the load.
func (w *workload) adjustLoad() error {
	r := &w.report
	var duration exactSum
	for _, gap := range w.gaps[:len(w.gaps)-1] {
		duration.add(gap)
	}
	r.RawDuration = duration.value()
	if r.RawDuration == 0 {
		r.RawDuration = 1e6 // all flows arrive at once
	}
	capacity := w.Capacity * float64(w.Nodes) / 2
	r.InterarrivalFactor = 1
	if w.Load > 0 {
		r.InterarrivalFactor = float64(r.SumSizes) / r.RawDuration / capacity / w.Load
	}
	r.Duration = r.RawDuration * r.InterarrivalFactor
	r.LoadRate = float64(r.SumSizes) / r.Duration
	r.Load = r.LoadRate / capacity
	r.PortRoom = w.Capacity * r.Duration / 2
	if !(r.Duration < float64(dag.MaxTime/4)/float64(dag.Microsecond)) {
		return &openloop.ParamError{Param: "load", Found: fmt.Sprint(w.Load),
			Expected: fmt.Sprintf("a load at which the flows take less than %v (these take %.4g s)", dag.MaxTime/4,
				r.Duration/1e6)}
	}
	return nil
}

// exactSum adds floats without accumulating rounding errors.
type exactSum struct{ high, low float64 }

func (s *exactSum) add(v float64) {
	sum := s.high + v
	rest := sum - s.high
	s.low += (s.high - (sum - rest)) + (v - rest)
	s.high = sum
}

func (s *exactSum) value() float64 {
	return s.high + s.low
}

// OverloadError reports a node that would send or receive more than its capacity.
type OverloadError struct {
	Node           int
	Load, Capacity float64 // in bytes per microsecond
}

func (e *OverloadError) Error() string {
	return fmt.Sprintf("the node matrix has node %d send or receive %.6g bytes/us at this load, expected at most its "+
		"capacity of %.6g; a lower load or automatic correction would do", e.Node, e.Load, e.Capacity)
}

// checkMatrix returns an error if a node exceeds its capacity, or corrects the matrix.
func (w *workload) checkMatrix() error {
	if node, load := w.matrix.overloaded(w.report.LoadRate, w.Capacity); node >= 0 {
		if !w.AutoCorrect {
			return &OverloadError{node, load, w.Capacity}
		}
		w.matrix.correct(w.report.LoadRate, w.Capacity)
		w.matrix.normalise()
		w.report.MatrixCorrected = true
	}
	if w.Racks > 0 {
		share := 0.0
		for i, v := range w.matrix.Cells {
			if Rack(i/w.Nodes, w.Nodes, w.Racks) != Rack(i%w.Nodes, w.Nodes, w.Racks) {
				share += v
			}
		}
		w.report.InterRackShare = &share
	}
	return nil
}

// pack assigns routes to the flows, in random order, and reports their distance from the matrix.
func (w *workload) pack() error {
	sampled := time.Now()
	slices.Sort(w.sizes)
	slices.Reverse(w.sizes)
	r := &w.report
	room := int64(math.MaxInt64)
	if !w.IgnorePorts {
		room = portRoom(r.PortRoom)
	}
	total := float64(r.SumSizes)
	targets := func(pair int) float64 { return w.matrix.Cells[pair] * total }
	p := newPacker(w.Nodes, targets, r.SumSizes, room, random(w.seed, "ties"))
	w.routes = make([]uint32, len(w.sizes))
	const often = 1 << 16
	for flow, bytes := range w.sizes {
		pair := p.place(bytes)
		if pair < 0 {
			return p.unpackable(flow, bytes, room)
		}
		w.routes[flow] = uint32(pair)/uint32(w.Nodes)<<16 | uint32(pair)%uint32(w.Nodes)
		if (flow+1)%often != 0 {
			continue
		}
		if err := par.Interrupted(w.Context); err != nil {
			return err
		}
		if w.Placed != nil {
			w.Placed(often)
		}
	}
	if w.Took != nil {
		w.Took(sampled.Sub(w.began), time.Since(sampled))
	}
	w.measure()
	shuffle := random(w.seed, "shuffle")
	shuffle.Shuffle(len(w.sizes), func(i, j int) {
		w.sizes[i], w.sizes[j] = w.sizes[j], w.sizes[i]
		w.routes[i], w.routes[j] = w.routes[j], w.routes[i]
	})
	return nil
}

// portRoom returns the room of a port in whole bytes. It compensates for rounding errors of the product of floats.
func portRoom(bytes float64) int64 {
	return int64(min(bytes*(1+1e-12), maxTotal))
}

// measure reports the distance of the packed flows from the matrix, and the use of ports.
func (w *workload) measure() {
	packed := make([]int64, w.Nodes*w.Nodes)
	for flow, route := range w.routes {
		packed[int(route>>16)*w.Nodes+int(route&0xffff)] += w.sizes[flow]
	}
	r := &w.report
	r.PackingDistance = packingDistance(w.matrix.Cells, packed, r.SumSizes)
	sent, received := make([]int64, w.Nodes), make([]int64, w.Nodes)
	for pair, bytes := range packed {
		sent[pair/w.Nodes] += bytes
		received[pair%w.Nodes] += bytes
	}
	r.MaxSourceUse = float64(slices.Max(sent)) / r.PortRoom
	r.MaxDestinationUse = float64(slices.Max(received)) / r.PortRoom
}

// packingDistance returns the distance of the bytes of pairs from their targets.
func packingDistance(cells []float64, packed []int64, total int64) float64 {
	d := divergence{sumP: sum(cells), sumQ: 1}
	for pair, p := range cells {
		d.add(p, float64(packed[pair])/float64(total))
	}
	return d.distance()
}

// arrive sets the arrival times of flows, and the number of copies.
func (w *workload) arrive() error {
	w.times = make([]dag.Time, len(w.gaps))
	var at exactSum
	for i := range w.times {
		w.times[i] = dag.Time(math.Round(at.value() * w.report.InterarrivalFactor * float64(dag.Microsecond)))
		at.add(w.gaps[i])
	}
	w.gaps = nil
	last := w.times[len(w.times)-1]
	if w.MinDuration > 0 && last == 0 {
		return &openloop.ParamError{Param: "min-duration", Found: w.MinDuration.String(),
			Expected: "0: all flows arrive at once"}
	}
	copies := int64(1)
	for dag.Time(copies)*last < w.MinDuration && 2*copies*int64(len(w.times)) <= int64(w.MaxFlows) {
		copies *= 2
	}
	w.report.Copies = copies
	return nil
}
