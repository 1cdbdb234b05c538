package horovod

import (
	"fmt"

	"github.com/tracedag/tracedag/dag"
)

// Source is the trace of a run, generated rank by rank on demand.
type Source struct {
	p          Params
	seed       int64
	iterations []int64 // of each layer of each batch
	received   []int64 // by the master in each iteration of the run
	ops        int     // of each rank
	header     dag.Header
}

// NewSource returns the trace of a run. The same parameters and seed give the same trace. It draws the negotiations,
// which determine the length of the trace.
func NewSource(p Params, seed int64) (*Source, error) {
	if err := p.Check(); err != nil {
		return nil, err
	}
	iterations, err := negotiate(&p, seed)
	if err != nil {
		return nil, fmt.Errorf("horovod: %w", err)
	}
	s := &Source{p: p, seed: seed, iterations: iterations}
	ops := int64(0)
	for _, n := range s.iterations {
		ops += opsOf(n)
	}
	if ops > maxOps {
		return nil, fmt.Errorf("horovod: %d ops per rank, expected at most %d", ops, maxOps)
	}
	s.ops = int(ops)
	if s.received, err = announcedBytes(&p, seed, s.iterations); err != nil {
		return nil, fmt.Errorf("horovod: %w", err)
	}
	s.header = dag.Header{
		Meta: dag.Meta{
			Title: p.title(),
		},
		Comms: []dag.Comm{dag.World(p.Workers)}, Ranks: p.Workers, Ops: int64(s.ops) * int64(p.Workers),
		Kinds: []dag.Kind{dag.Calc, dag.Coll}, Batches: s.divide(),
	}
	if p.Batches > 1 {
		s.header.Steps = int32(p.Batches)
	}
	return s, nil
}

// title returns the title of the trace.
func (p *Params) title() string {
	title := "Horovod"
	if p.Network != "" {
		title += " with " + p.Network
	}
	return fmt.Sprintf("%s, %d workers, %d batches, %d layers", title, p.Workers, p.Batches, p.Layers)
}

// Header returns the header.
func (s *Source) Header() (*dag.Header, error) {
	return &s.header, nil
}

// batchOps is the limit of the ops in a batch of several ranks.
const batchOps = 1 << 16

// divide divides the ranks into batches of little memory: one rank, or several short ones.
func (s *Source) divide() []dag.Batch {
	size := max(1, batchOps/s.ops)
	batches := make([]dag.Batch, 0, (s.p.Workers+size-1)/size)
	for first := 0; first < s.p.Workers; first += size {
		last := min(first+size, s.p.Workers)
		n := int64(last - first)
		batches = append(batches, dag.Batch{First: first, Last: last, Ops: n * int64(s.ops), Deps: n * int64(s.ops-1)})
	}
	return batches
}

// NewReader returns a reader that generates all columns of the ranks of a batch, in memory that it reuses.
func (s *Source) NewReader(dag.Columns) dag.Reader {
	var ranks []*dag.Rank
	return func(b dag.Batch) ([]*dag.Rank, error) {
		if b.First < 0 || b.Last > s.p.Workers || b.First > b.Last {
			return nil, fmt.Errorf("horovod: no batch of ranks %d to %d in a trace of %d ranks",
				b.First, b.Last-1, s.p.Workers)
		}
		n := b.Last - b.First
		for len(ranks) < n {
			ranks = append(ranks, s.blank())
		}
		for i := range n {
			s.fill(ranks[i], b.First+i)
		}
		return ranks[:n], nil
	}
}

// Close does nothing.
func (s *Source) Close() error {
	return nil
}

// blank returns a rank with the data that all ranks share: the ops, each dependent on the previous one.
func (s *Source) blank() *dag.Rank {
	r := &dag.Rank{
		Kind:      make([]dag.Kind, s.ops),
		Subkind:   make([]dag.Subkind, s.ops),
		Bytes:     make([]int64, s.ops),
		RecvBytes: make([]int64, s.ops),
		Duration:  make([]dag.Time, s.ops),
		Deps:      dag.Edges{End: make([]uint32, s.ops), Off: make([]int32, s.ops-1)},
	}
	for i := range r.Deps.Off {
		r.Deps.Off[i] = 1
		r.Deps.End[i+1] = uint32(i + 1)
	}
	if s.header.Steps > 0 {
		r.Step = s.steps()
	}
	next := 0
	collective := func(kind dag.Subkind) {
		r.Kind[next], r.Subkind[next] = dag.Coll, kind
		next++
	}
	for _, n := range s.iterations {
		for range n {
			next++ // the computation or the wait, of kind Calc, the zero value
			collective(dag.Gather)
			collective(dag.Gatherv)
			collective(dag.Bcast)
			collective(dag.Bcast)
		}
		collective(dag.Allreduce)
	}
	return r
}

// steps returns the batch of each op, from 1.
func (s *Source) steps() (column dag.Narrow) {
	steps := make([]int32, 0, s.ops)
	for i, n := range s.iterations {
		for range opsOf(n) {
			steps = append(steps, int32(i/s.p.Layers)+1)
		}
	}
	column.SetRange(0, steps)
	return column
}

// fill sets the data of worker w.
func (s *Source) fill(r *dag.Rank, w int) {
	d := newDraws(s.seed, w, s.p.Jitter)
	next, iteration := 0, 0 // op and iteration of the whole run
	sizes := func(bytes, masterReceives int64) {
		if w > 0 {
			masterReceives = 0
		}
		r.Bytes[next], r.RecvBytes[next] = bytes, masterReceives
		next++
	}
	bcast := func(bytes int64) {
		if w == 0 {
			r.Bytes[next], r.RecvBytes[next] = bytes, 0
		} else {
			r.Bytes[next], r.RecvBytes[next] = 0, bytes
		}
		next++
	}
	for i, n := range s.iterations {
		l := s.p.layer(i % s.p.Layers)
		wait := s.p.timeDistribution(l.NegotiationLoop)
		compute := s.p.timeDistribution(l.Compute)
		r.Duration[next] = compute.draw(d.compute)
		next++
		announced := int64(0)
		for k := range n {
			sizes(gatherBytes, gatherBytes*int64(s.p.Workers))
			size := int64(emptyBytes)
			if announced < l.GathervTotalBytes {
				if a := d.announcement(l); a > 0 {
					announced += a
					size = a
				}
			}
			sizes(size, s.received[iteration])
			iteration++
			bcast(lengthBytes)
			if k == n-1 {
				bcast(l.BcastBytes)
				break
			}
			bcast(emptyBytes)
			r.Duration[next] = wait.draw(d.loop)
			next++
		}
		sizes(l.AllreduceBytes, 0)
	}
}
