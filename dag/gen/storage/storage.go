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
)

// Params are the parameters of a workload.
type Params struct {
	Profile *Profile
	Records int64 // 1..MaxRecords

	Context context.Context // ends NewSource and reading early, with an error that wraps its cause; nil: never
}

// MaxRecords is the limit of the records of a trace.
const MaxRecords = 1 << 30

// Default returns 5,000 records of the profile "financial".
func Default() Params {
	return Params{Profile: Builtin("financial"), Records: 5000}
}

// Generate returns a trace in memory. See [NewSource].
func Generate(p Params, seed int64) (*dag.Trace, error) {
	s, err := NewSource(p, seed)
	if err != nil {
		return nil, err
	}
	return dag.ReadAll(s)
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
	choose, gap                           sampler
	units, gaps, directions, sizes, jumps *rand.ChaCha8
	started                               bool
	now                                   dag.Time
}

// next draws the unit of the next record and moves to its time. The caller draws the other quantities, or skips them.
func (g *recordStream) next() (unit int64, err error) {
	unit = g.choose.draw(g.units.Uint64())
	gap := dag.Time(g.gap.draw(g.gaps.Uint64()))
	if g.started {
		if gap > dag.MaxTime-g.now {
			return 0, fmt.Errorf("the records take more than %v", dag.MaxTime)
		}
		g.now += gap
	}
	g.started = true
	return unit, nil
}

// skip skips the quantities of a record that next does not draw.
func (g *recordStream) skip() {
	g.directions.Uint64()
	g.sizes.Uint64()
	g.jumps.Uint64()
}

// model draws the records of a unit.
type model struct {
	*unitProfile
	readSizes, writeSizes, distances sampler
}

func newModel(p *unitProfile) model {
	return model{p, newSampler(p.reads.sizes), newSampler(p.writes.sizes), newSampler(p.jumps)}
}

// count returns the number of accesses that the profile was measured from.
func (m *model) count() int64 {
	return m.reads.count + m.writes.count
}

// unit is a unit whose records are being drawn.
type unit struct {
	*model
	rank dag.Rank
	n    int    // drawn
	end  uint64 // of the last access, from low
}

// newUnit returns a unit with memory for n records.
func newUnit(m *model, n int64) *unit {
	u := &unit{model: m}
	u.rank = dag.Rank{
		Kind: make([]dag.Kind, n), Subkind: make([]dag.Subkind, n), Bytes: make([]int64, n), Peer: make([]int32, n),
		Tag: make([]int64, n), Release: make([]dag.Time, n),
	}
	for i := range u.rank.Kind {
		u.rank.Kind[i], u.rank.Peer[i] = dag.IO, u.number
	}
	return u
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
