// Package storage generates traces of storage accesses with the statistics of another trace or of a built-in profile.
// docs/reference/generators/storage.md describes the model.
package storage

import (
	"context"
	"encoding/binary"
	"fmt"
	"math/bits"
	"math/rand/v2"

	"github.com/tracedag/tracedag/dag"
	"github.com/tracedag/tracedag/internal/par"
)

// Params are the parameters of a workload.
type Params struct {
	Profile *Profile
	Records int64 // 1..MaxRecords

	Context context.Context // ends Generate early, with an error that wraps its cause; nil: never
}

// MaxRecords is the limit of the records of a trace.
const MaxRecords = 1 << 30

// Default returns 5,000 records of the profile "financial".
func Default() Params {
	return Params{Profile: Builtin("financial"), Records: 5000}
}

// Generate returns a trace of io ops: a rank for each unit with records, in ascending order. The same parameters and
// seed give the same trace. It returns an error if the records take longer than [dag.MaxTime].
func Generate(p Params, seed int64) (*dag.Trace, error) {
	if p.Records < 1 || p.Records > MaxRecords {
		return nil, fmt.Errorf("records is %d, expected 1..%d", p.Records, MaxRecords)
	}
	units := make([]unit, len(p.Profile.units))
	popularity := distribution{step: 1}
	for i := range units {
		units[i].of(&p.Profile.units[i])
		popularity.bins = append(popularity.bins, bin{int64(i), int64(i), units[i].count()})
	}
	choose := newSampler(popularity)
	choices := draws(seed, "unit")
	watch := par.Watch{Context: p.Context}
	for range p.Records {
		if err := watch.Err(); err != nil {
			return nil, err
		}
		units[choose.draw(choices.Uint64())].records++
	}
	for i := range units {
		units[i].begin()
	}
	g := recordStream{
		gapSampler: newSampler(p.Profile.gaps), gaps: draws(seed, "gap"), directions: draws(seed, "direction"),
		sizes: draws(seed, "size"), jumps: draws(seed, "jump"),
	}
	choices = draws(seed, "unit")
	for range p.Records {
		if err := watch.Err(); err != nil {
			return nil, err
		}
		if err := g.add(&units[choose.draw(choices.Uint64())]); err != nil {
			return nil, err
		}
	}
	t := &dag.Trace{Meta: dag.Meta{Title: fmt.Sprintf("storage, %s, %d records", p.Profile.Name, p.Records)}}
	for i := range units {
		if units[i].records > 0 {
			t.Ranks = append(t.Ranks, units[i].rank)
		}
	}
	t.Comms = []dag.Comm{dag.World(len(t.Ranks))}
	return t, nil
}

// draws returns the random stream for one quantity. Every record takes one number of the stream of each quantity, so
// that profiles that differ in one quantity share the others, record by record.
func draws(seed int64, quantity string) *rand.ChaCha8 {
	var key [32]byte
	binary.LittleEndian.PutUint64(key[0:], uint64(seed))
	copy(key[16:], quantity)
	return rand.NewChaCha8(key)
}

// recordStream draws records in sequence.
type recordStream struct {
	gapSampler                     sampler
	gaps, directions, sizes, jumps *rand.ChaCha8
	started                        bool
	now                            dag.Time
}

// add draws a record of a unit.
func (g *recordStream) add(u *unit) error {
	gap := dag.Time(g.gapSampler.draw(g.gaps.Uint64()))
	if g.started {
		if gap > dag.MaxTime-g.now {
			return fmt.Errorf("the records take more than %v", dag.MaxTime)
		}
		g.now += gap
	}
	g.started = true
	u.add(g.now, g.directions.Uint64(), g.sizes.Uint64(), g.jumps.Uint64())
	return nil
}

// unit is a unit whose records are being drawn.
type unit struct {
	*unitProfile
	readSizes, writeSizes, distances sampler

	records int64 // to be drawn
	rank    dag.Rank
	n       int    // drawn
	end     uint64 // of the last access, from low
}

func (u *unit) of(p *unitProfile) {
	u.unitProfile = p
	u.readSizes, u.writeSizes, u.distances = newSampler(p.reads.sizes), newSampler(p.writes.sizes), newSampler(p.jumps)
}

// count returns the number of accesses that the profile was measured from.
func (u *unit) count() int64 {
	return u.reads.count + u.writes.count
}

// begin allocates the unit's records.
func (u *unit) begin() {
	n := u.records
	u.rank = dag.Rank{
		Kind: make([]dag.Kind, n), Subkind: make([]dag.Subkind, n), Bytes: make([]int64, n), Peer: make([]int32, n),
		Tag: make([]int64, n), Release: make([]dag.Time, n),
	}
	for i := range u.rank.Kind {
		u.rank.Kind[i], u.rank.Peer[i] = dag.IO, u.number
	}
}

// add appends the record at a time that uniform bits select.
func (u *unit) add(time dag.Time, direction, size, jump uint64) {
	subkind, sizes := dag.Write, &u.writeSizes
	if number, _ := bits.Mul64(direction, uint64(u.count())); number < uint64(u.reads.count) {
		subkind, sizes = dag.Read, &u.readSizes
	}
	bytes := sizes.draw(size)
	r, i := &u.rank, u.n
	r.Subkind[i], r.Bytes[i], r.Tag[i], r.Release[i] = subkind, bytes, u.place(bytes, jump), time
	u.n++
}

// place returns the address of the next access. Uniform bits select its distance from the end of the last one, modulo
// the range from low to high. The access ends at high at the latest.
func (u *unit) place(bytes int64, jump uint64) int64 {
	size := uint64(u.high - u.low)
	at := uint64(u.start - u.low)
	if u.n > 0 && size > 0 {
		distance := u.distances.draw(jump)
		if distance %= int64(size); distance < 0 {
			distance += int64(size)
		}
		at = (u.end + uint64(distance)) % size
	}
	at = min(at, size-uint64(bytes))
	u.end = at + uint64(bytes)
	return u.low + int64(at)
}
