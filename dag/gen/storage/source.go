package storage

import (
	"fmt"

	"github.com/tracedag/tracedag/dag"
	"github.com/tracedag/tracedag/internal/par"
)

// batchOps is the limit of the ops in a batch of several ranks. A reader takes 30 bytes for each.
const batchOps = 4 << 20

// Source is a trace of io ops, made batch by batch: each batch draws all records and keeps those of its units. It is a
// [dag.Source].
type Source struct {
	p      Params
	seed   int64
	models []model
	choose sampler
	ranks  []rankUnit
	rankOf []int32 // by unit; -1: without records
	header dag.Header
}

// rankUnit is the unit of a rank and the number of its records.
type rankUnit struct {
	unit    int32
	records int64
}

// NewSource returns a trace of io ops: a rank for each unit with records, in ascending order. The same parameters and
// seed give the same trace. It draws units and times once, to count the records of each unit. It returns an error if
// the records take longer than [dag.MaxTime].
func NewSource(p Params, seed int64) (*Source, error) {
	return newSource(p, seed, batchOps)
}

func newSource(p Params, seed, batchOps int64) (*Source, error) {
	if p.Records < 1 || p.Records > MaxRecords {
		return nil, fmt.Errorf("records is %d, expected 1..%d", p.Records, MaxRecords)
	}
	s := &Source{p: p, seed: seed, rankOf: make([]int32, len(p.Profile.units))}
	popularity := distribution{step: 1}
	for i := range p.Profile.units {
		m := newModel(&p.Profile.units[i])
		s.models = append(s.models, m)
		popularity.bins = append(popularity.bins, bin{int64(i), int64(i), m.count()})
	}
	s.choose = newSampler(popularity)
	records := make([]int64, len(s.models))
	g, watch := s.stream(), par.Watch{Context: p.Context}
	for range p.Records {
		if err := watch.Err(); err != nil {
			return nil, err
		}
		unit, err := g.next()
		if err != nil {
			return nil, err
		}
		records[unit]++
	}
	var b dag.Batch
	h := &s.header
	for unit, n := range records {
		if s.rankOf[unit] = -1; n == 0 {
			continue
		}
		rank := len(s.ranks)
		s.rankOf[unit] = int32(rank)
		s.ranks = append(s.ranks, rankUnit{int32(unit), n})
		if b.Last > b.First && b.Ops+n > batchOps {
			h.Batches = append(h.Batches, b)
			b = dag.Batch{First: rank}
		}
		b.Last = rank + 1
		b.Ops += n
	}
	h.Batches = append(h.Batches, b)
	h.Title = fmt.Sprintf("storage, %s, %d records", p.Profile.Name, p.Records)
	h.Ranks, h.Ops, h.Kinds, h.Stable = len(s.ranks), p.Records, []dag.Kind{dag.IO}, true
	h.Comms = []dag.Comm{dag.World(h.Ranks)}
	return s, nil
}

// stream returns the records from the first on.
func (s *Source) stream() *recordStream {
	return &recordStream{
		choose: s.choose, gap: newSampler(s.p.Profile.gaps),
		units: draws(s.seed, "unit"), gaps: draws(s.seed, "gap"), directions: draws(s.seed, "direction"),
		sizes: draws(s.seed, "size"), jumps: draws(s.seed, "jump"),
	}
}

// Header returns the header, which costs nothing. The number of ops of each batch is exact.
func (s *Source) Header() (*dag.Header, error) {
	return &s.header, nil
}

// Close does nothing.
func (s *Source) Close() error {
	return nil
}

// NewReader returns a reader that generates all columns of the ranks of a batch.
func (s *Source) NewReader(dag.Columns) dag.Reader {
	return func(b dag.Batch) ([]*dag.Rank, error) {
		if k, found := s.header.Find(b); !found || s.header.Batches[k] != b {
			return nil, fmt.Errorf("no batch of ranks %d to %d", b.First, b.Last-1)
		}
		return s.read(b)
	}
}

// read draws all records, and keeps those of the ranks of a batch.
func (s *Source) read(b dag.Batch) ([]*dag.Rank, error) {
	units := make([]*unit, b.Last-b.First)
	for i := range units {
		r := &s.ranks[b.First+i]
		units[i] = newUnit(&s.models[r.unit], r.records)
	}
	g, watch := s.stream(), par.Watch{Context: s.p.Context}
	for kept := int64(0); kept < b.Ops; {
		if err := watch.Err(); err != nil {
			return nil, err
		}
		number, err := g.next()
		if err != nil {
			return nil, err
		}
		rank := int(s.rankOf[number])
		if rank < b.First || rank >= b.Last {
			g.skip()
			continue
		}
		units[rank-b.First].add(g.now, g.directions.Uint64(), g.sizes.Uint64(), g.jumps.Uint64())
		kept++
	}
	ranks := dag.NewRanks(len(units))
	for i, u := range units {
		ranks[i] = u.rank.Keep()
	}
	return ranks, nil
}
