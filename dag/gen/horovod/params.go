package horovod

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"math"
	"slices"

	"github.com/tracedag/tracedag/dag"
)

// Params describe a training run.
type Params struct {
	Workers   int           // data-parallel workers, one per rank, the first of them also the master; 2..2^24
	Batches   int           // 1 or more
	Layers    int           // layers of the network, each reduced separately; 1 or more
	Layer     Layer         // of every layer
	Overrides map[int]Layer // of the layers, numbered from 0, that differ
	Jitter    float64       // standard deviation of every drawn time and size as a part of its mean; 0..1
	Clock     dag.Time      // resolution of times; 1 ps..1000 s, 0: 1 ns

	// TimeStep is the unit of drawn times: a multiple of Clock, or 0 for the largest of 1, 2, 5, 10, 20, 50, ... ticks
	// that is at most a fifth of the standard deviation. Smaller digits are noise, and take most of a file.
	TimeStep dag.Time

	Network string // in the title, if any

	Context context.Context // ends NewSource early, with an error that wraps its cause; nil: never
}

// Layer describes the work for one layer of the network in one batch.
type Layer struct {
	Compute            dag.Time // mean computation before the negotiation; 1 ps..1000 s
	NegotiationLoop    dag.Time // mean wait between two iterations of the negotiation; 1 ps..1000 s
	GathervBytes       int64    // mean size of a worker's announcement; 1..2^32
	GathervTotalBytes  int64    // announced bytes, over several iterations, that make a worker ready; 1..2^40
	GathervProbability float64  // probability of an announcement in an iteration; above 0, at most 1
	BcastBytes         int64    // answer of the master in the iteration that finds all workers ready; 1..2^40
	AllreduceBytes     int64    // size of the reduced tensors; 1..2^40
}

// Listing returns the run of the published example, listing 8 of the paper. The paper does not state workers, batches
// and layers: these are values of this package.
func Listing() Params {
	p := Params{
		Workers: 128,
		Batches: 10,
		Layers:  5,
		Layer: Layer{
			Compute:            20 * dag.Millisecond,
			NegotiationLoop:    1500 * dag.Microsecond,
			GathervBytes:       60,
			GathervTotalBytes:  600,
			GathervProbability: 0.01,
			BcastBytes:         1000,
			AllreduceBytes:     50 << 20,
		},
		Jitter: 0.1,
		Clock:  dag.Nanosecond,
	}
	large := p.Layer
	large.BcastBytes, large.AllreduceBytes = 2000, 150<<20
	p.Overrides = map[int]Layer{3: large}
	return p
}

// Default returns a small run: the layer of the published example, but with a probability of 0.25 in place of 0.01, so
// that a negotiation has some tens of iterations.
func Default() Params {
	p := Listing()
	p.Workers, p.Batches, p.Layers, p.Overrides = 8, 2, 3, nil
	p.Layer.GathervProbability = 0.25
	return p
}

// layer returns the parameters of layer i.
func (p *Params) layer(i int) *Layer {
	if l, ok := p.Overrides[i]; ok {
		return &l
	}
	return &p.Layer
}

// tick returns the resolution of the clock.
func (p *Params) tick() dag.Time {
	return cmp.Or(p.Clock, dag.Nanosecond)
}

// Limits that keep every sum of draws in its range.
const (
	maxWorkers      = 1 << 24
	maxTime         = 1000 * dag.Second
	maxBytes        = 1 << 40
	maxGathervBytes = 1 << 32
	maxOps          = 1 << 26 // of a rank: it is in memory as a whole
)

// Check returns an error that names the first parameter outside its range.
func (p *Params) Check() error {
	if err := p.check(); err != nil {
		return fmt.Errorf("horovod: %w", err)
	}
	return nil
}

func (p *Params) check() error {
	err := cmp.Or(
		inRange("workers", p.Workers, 2, maxWorkers),
		inRange("batches", p.Batches, 1, math.MaxInt32),
		inRange("layers", p.Layers, 1, math.MaxInt32),
	)
	if err == nil && !(p.Jitter >= 0 && p.Jitter <= 1) {
		err = fmt.Errorf("jitter is %v, expected 0..1", p.Jitter)
	}
	if err == nil {
		err = cmp.Or(
			inRange("clock", p.Clock, 0, maxTime),
			inRange("time step", p.TimeStep, 0, maxTime),
		)
	}
	if err == nil && p.TimeStep%p.tick() != 0 {
		err = fmt.Errorf("time step is %v, expected a multiple of the clock's %v", p.TimeStep, p.tick())
	}
	if err == nil {
		err = p.Layer.check()
	}
	if err != nil {
		return err
	}
	for _, i := range slices.Sorted(maps.Keys(p.Overrides)) {
		if err := inRange("layer", i, 0, p.Layers-1); err != nil {
			return err
		}
		l := p.Overrides[i]
		if err := l.check(); err != nil {
			return fmt.Errorf("layer %d: %w", i, err)
		}
	}
	return p.checkLength()
}

func (l *Layer) check() error {
	err := cmp.Or(
		inRange("compute time", l.Compute, dag.Picosecond, maxTime),
		inRange("negotiation loop time", l.NegotiationLoop, dag.Picosecond, maxTime),
		inRange("gatherv bytes", l.GathervBytes, 1, maxGathervBytes),
		inRange("gatherv total bytes", l.GathervTotalBytes, 1, maxBytes),
		inRange("bcast bytes", l.BcastBytes, 1, maxBytes),
		inRange("allreduce bytes", l.AllreduceBytes, 1, maxBytes),
	)
	if err == nil && !(l.GathervProbability > 0 && l.GathervProbability <= 1) {
		err = fmt.Errorf("gatherv probability is %v, expected above 0 and at most 1", l.GathervProbability)
	}
	return err
}

func inRange[T int | int64 | dag.Time](name string, value, least, most T) error {
	if value < least || value > most {
		return fmt.Errorf("%s is %v, expected %v..%v", name, value, least, most)
	}
	return nil
}

// checkLength returns an error for a run with too many expected ops, before it is drawn.
func (p *Params) checkLength() error {
	ops := func(l *Layer) float64 {
		announcements := math.Ceil(float64(l.GathervTotalBytes) / float64(l.GathervBytes))
		return opsOf(announcements / l.GathervProbability)
	}
	batch := float64(p.Layers-len(p.Overrides)) * ops(&p.Layer)
	for _, i := range slices.Sorted(maps.Keys(p.Overrides)) {
		batch += ops(p.layer(i))
	}
	if total := batch * float64(p.Batches); total > maxOps {
		return fmt.Errorf("about %.3g ops per rank, expected at most %d: fewer batches or layers, a higher gatherv "+
			"probability or a smaller part of gatherv total bytes to gatherv bytes would do", total, maxOps)
	}
	return nil
}
