package storage

import (
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/tracedag/tracedag/dag"
)

// Profile is what is known of the accesses of a trace.
type Profile struct {
	Name  string
	gaps  distribution  // times between one record and the next, in picoseconds
	units []unitProfile // ascending; one or more
}

// unitProfile is what is known of the accesses to a storage unit.
type unitProfile struct {
	number        int32
	reads, writes accesses     // one or more in all
	start         int64        // the first address
	low, high     int64        // all accesses are to bytes low to high-1
	jumps         distribution // bytes from the end of an access to the start of the next; 0: it is sequential
}

// accesses is what is known of the reads or the writes of a unit.
type accesses struct {
	count int64
	sizes distribution // in bytes
}

// builtin are the profiles that come with the generator.
var builtin = []*Profile{&financial, &websearch}

// Names returns the names of the built-in profiles.
func Names() []string {
	var names []string
	for _, p := range builtin {
		names = append(names, p.Name)
	}
	return names
}

// Builtin returns the built-in profile of a name, nil if there is none: "financial", of transactions at a financial
// institution, or "websearch", of a search engine.
func Builtin(name string) *Profile {
	for _, p := range builtin {
		if p.Name == name {
			return p
		}
	}
	return nil
}

// maxBins is about how many bins a distribution of a profile has at most.
const maxBins = 1 << 16

// Like returns the profile of the io ops of a trace.
func Like(t *dag.Trace) (*Profile, error) {
	return measureProfile(t, maxBins)
}

// gapBins is how many times the bins of other distributions that of the gaps has, of which there is only one, and whose
// mean is the rate of the whole trace.
const gapBins = 8

// measureProfile returns the profile of a trace, with distributions of about so many bins.
func measureProfile(t *dag.Trace, bins int) (*Profile, error) {
	byNumber := map[int32]*unitValues{}
	var units []*unitValues
	var gaps []int64
	last := dag.Time(-1)
	for rank, op := range t.Records() {
		a, err := accessOf(&t.Ranks[rank], op)
		if err != nil {
			return nil, fmt.Errorf("rank %d, op %d: %w", rank, op, err)
		}
		u := byNumber[a.unit]
		if u == nil {
			u = &unitValues{unit: unitProfile{number: a.unit, start: a.address, low: a.address}, end: a.address}
			byNumber[a.unit] = u
			units = append(units, u)
		} else {
			u.jumps = append(u.jumps, a.address-u.end)
		}
		u.add(&a)
		if last >= 0 {
			gaps = append(gaps, int64(a.time-last))
		}
		last = a.time
	}
	if len(units) == 0 {
		return nil, errors.New("the trace has no storage accesses (io ops)")
	}
	slices.SortFunc(units, func(a, b *unitValues) int { return int(a.unit.number) - int(b.unit.number) })
	p := &Profile{Name: "like " + t.Title, gaps: measure(gaps, gapBins*bins)}
	for _, u := range units {
		p.units = append(p.units, u.measure(bins))
	}
	return p, nil
}

// access is an io op.
type access struct {
	unit           int32
	address, bytes int64
	write          bool
	time           dag.Time
}

func accessOf(r *dag.Rank, op int) (access, error) {
	a := access{r.Peer.At(op), r.Tag.At(op), r.Bytes.At(op), r.Subkind.At(op) == dag.Write, r.Release.At(op)}
	if a.unit < 0 || a.address < 0 || a.bytes < 0 || a.address > math.MaxInt64-a.bytes || a.time < 0 {
		return a, fmt.Errorf("%d bytes at address %d of unit %d at %v, expected nothing below 0, and an end below 2^63",
			a.bytes, a.address, a.unit, a.time)
	}
	return a, nil
}

// unitValues is a unit that is being measured.
type unitValues struct {
	unit                 unitProfile
	end                  int64 // of the last access
	jumps, reads, writes []int64
}

func (u *unitValues) add(a *access) {
	u.end = a.address + a.bytes
	u.unit.low, u.unit.high = min(u.unit.low, a.address), max(u.unit.high, u.end)
	if a.write {
		u.writes = append(u.writes, a.bytes)
	} else {
		u.reads = append(u.reads, a.bytes)
	}
}

func (u *unitValues) measure(bins int) unitProfile {
	unit := u.unit
	unit.reads = accesses{int64(len(u.reads)), measure(u.reads, bins)}
	unit.writes = accesses{int64(len(u.writes)), measure(u.writes, bins)}
	unit.jumps = measure(u.jumps, bins)
	return unit
}
