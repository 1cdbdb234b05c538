// Package horovod generates traces of data-parallel training with Horovod: workers that compute, negotiate which
// tensors are ready on all of them, and reduce those.
//
// The model is that of F. J. Andújar et al., "Extending the VEF traces framework to model data center network
// workloads", The Journal of Supercomputing, 2023 (doi:10.1007/s11227-022-04692-0). docs/generators/horovod.md has the
// state machine as it is built here.
package horovod

import (
	"fmt"
	"runtime"
	"sync/atomic"

	"golang.org/x/sync/errgroup"

	"github.com/tracedag/tracedag/dag"
)

// Sizes of the negotiation's fixed messages in bytes.
const (
	gatherBytes = 4  // every worker, before its announcement
	lengthBytes = 4  // the master, before its answer
	emptyBytes  = 25 // an announcement or an answer without content
)

// Generate returns the trace of a run. The same parameters and seed give the same trace.
func Generate(p Params, seed int64) (*dag.Trace, error) {
	if err := p.check(); err != nil {
		return nil, fmt.Errorf("horovod: %w", err)
	}
	iterations := negotiate(&p, seed)
	ops, total := int64(0), int64(0)
	for _, n := range iterations {
		ops += opsOf(int64(n))
		total += int64(n)
	}
	if ops > maxOps {
		return nil, fmt.Errorf("horovod: %d ops a rank, expected at most %d", ops, maxOps)
	}
	t := &dag.Trace{Comms: []dag.Comm{dag.World(p.Workers)}, Ranks: make([]dag.Rank, p.Workers)}
	t.Title = fmt.Sprintf("Horovod, %d workers, %d batches, %d layers", p.Workers, p.Batches, p.Layers)
	announced := make([]int64, total)
	eachWorker(p.Workers, func(w int) {
		t.Ranks[w] = worker(&p, w, seed, iterations, int(ops), announced)
	})
	setReceived(&t.Ranks[0], announced)
	return t, nil
}

// opsOf returns the number of ops of a layer that takes so many iterations.
func opsOf[N int64 | float64](iterations N) N {
	return 2 + 5*iterations - 1 // compute and allreduce; four collectives and a wait for each but the last
}

// eachWorker calls work for every worker, on all processors.
func eachWorker(workers int, work func(w int)) {
	var group errgroup.Group
	group.SetLimit(runtime.GOMAXPROCS(0))
	for w := range workers {
		group.Go(func() error {
			work(w)
			return nil
		})
	}
	_ = group.Wait() // work returns no error
}

// negotiate returns how many iterations the negotiation of each layer of each batch takes: as many as the worker that
// is ready last.
func negotiate(p *Params, seed int64) []int64 {
	iterations := make([]int64, p.Batches*p.Layers)
	eachWorker(p.Workers, func(w int) {
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
	})
	return iterations
}

// worker returns the rank of worker w, whose ops wait each for the one before. It adds what the worker contributes to
// each gatherv to announced.
func worker(p *Params, w int, seed int64, iterations []int64, ops int, announced []int64) dag.Rank {
	r := newChain(ops)
	d := newDraws(seed, w, p.Jitter)
	iteration := 0 // of the whole run, an index of announced
	bcast := func(bytes int64) {
		if w == 0 {
			r.collective(dag.Bcast, bytes, 0)
		} else {
			r.collective(dag.Bcast, 0, bytes)
		}
	}
	for i, n := range iterations {
		l := p.layer(i % p.Layers)
		r.calc(d.time(d.compute, l.Compute))
		sum := int64(0)
		for k := range n {
			if w == 0 {
				r.collective(dag.Gather, gatherBytes, gatherBytes*int64(p.Workers))
			} else {
				r.collective(dag.Gather, gatherBytes, 0)
			}
			size := int64(emptyBytes)
			if sum < l.GathervTotalBytes {
				if a := d.announcement(l); a > 0 {
					sum += a
					size = a
				}
			}
			r.collective(dag.Gatherv, size, 0)
			atomic.AddInt64(&announced[iteration], size)
			iteration++
			bcast(lengthBytes)
			if k < n-1 {
				bcast(emptyBytes)
				r.calc(d.time(d.loop, l.NegotiationLoop))
			} else {
				bcast(l.BcastBytes)
			}
		}
		r.collective(dag.Allreduce, l.AllreduceBytes, 0)
	}
	return r.rank
}

// setReceived enters what the master receives in each gatherv.
func setReceived(master *dag.Rank, announced []int64) {
	for i, kind := range master.Subkind {
		if kind == dag.Gatherv {
			master.RecvBytes[i] = announced[0]
			announced = announced[1:]
		}
	}
}

// chain makes a rank whose ops wait each for the one before.
type chain struct {
	rank dag.Rank
	n    int // ops so far
}

func newChain(ops int) *chain {
	c := &chain{rank: dag.Rank{
		Kind:      make([]dag.Kind, ops),
		Subkind:   make([]dag.Subkind, ops),
		Bytes:     make([]int64, ops),
		RecvBytes: make([]int64, ops),
		Duration:  make([]dag.Time, ops),
		Deps:      dag.Edges{End: make([]uint32, ops), Off: make([]int32, ops-1)},
	}}
	for i := range c.rank.Deps.Off {
		c.rank.Deps.Off[i] = 1
		c.rank.Deps.End[i+1] = uint32(i + 1)
	}
	return c
}

func (c *chain) calc(d dag.Time) {
	c.rank.Duration[c.n] = d // of kind Calc, the zero value
	c.n++
}

func (c *chain) collective(kind dag.Subkind, bytes, recvBytes int64) {
	c.rank.Kind[c.n], c.rank.Subkind[c.n] = dag.Coll, kind
	c.rank.Bytes[c.n], c.rank.RecvBytes[c.n] = bytes, recvBytes
	c.n++
}
