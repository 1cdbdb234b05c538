// Package horovod generates traces of data-parallel training with Horovod: workers that compute, negotiate which
// tensors are ready on all of them, and reduce those.
//
// The model is that of F. J. Andújar et al., "Extending the VEF traces framework to model data center network
// workloads", The Journal of Supercomputing, 2023 (doi:10.1007/s11227-022-04692-0).
// docs/reference/generators/horovod.md has the state machine as implemented here.
package horovod

import (
	"sync/atomic"

	"github.com/tracedag/tracedag/internal/par"
)

// Sizes of the negotiation's fixed messages in bytes.
const (
	gatherBytes = 4  // every worker, before its announcement
	lengthBytes = 4  // the master, before its answer
	emptyBytes  = 25 // an announcement or an answer without content
)

// opsOf returns the number of ops of a layer with the given number of iterations.
func opsOf[N int64 | float64](iterations N) N {
	return 2 + 5*iterations - 1 // compute, allreduce; four collectives and a wait per iteration, no last wait
}

// negotiate returns the number of iterations of the negotiation of each layer of each batch: that of the
// last ready worker.
func negotiate(p *Params, seed int64) ([]int64, error) {
	iterations := make([]int64, p.Batches*p.Layers)
	err := par.Each(p.Workers, func(w int) error {
		d := newDraws(seed, w, p.Jitter)
		for i := range iterations {
			l := p.layer(i % p.Layers)
			n := int64(0)
			for announced := int64(0); announced < l.GathervTotalBytes; n++ {
				announced += d.announcement(l)
			}
			for {
				most := atomic.LoadInt64(&iterations[i])
				if n <= most || atomic.CompareAndSwapInt64(&iterations[i], most, n) {
					break
				}
			}
		}
		return par.Interrupted(p.Context)
	})
	return iterations, err
}

// announcedBytes returns the bytes that the master receives in each iteration of the run: all workers' announcements.
func announcedBytes(p *Params, seed int64, iterations []int64) ([]int64, error) {
	total := int64(0)
	for _, n := range iterations {
		total += n
	}
	sums := make([]int64, total)
	for i := range sums {
		sums[i] = int64(p.Workers) * emptyBytes
	}
	err := par.Each(p.Workers, func(w int) error {
		d := newDraws(seed, w, p.Jitter)
		first := int64(0) // of the layer
		for i, n := range iterations {
			l := p.layer(i % p.Layers)
			at := first
			for announced := int64(0); announced < l.GathervTotalBytes; at++ {
				if a := d.announcement(l); a > 0 {
					announced += a
					atomic.AddInt64(&sums[at], a-emptyBytes)
				}
			}
			first += n
		}
		return par.Interrupted(p.Context)
	})
	return sums, err
}
