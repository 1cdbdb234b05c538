package storage

import (
	"embed"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/tracedag/tracedag/dag"
)

// Profile is the statistics of the accesses of a trace.
type Profile struct {
	Name  string
	gaps  distribution  // times between successive records, in picoseconds
	units []unitProfile // ascending; one or more
}

// unitProfile is the statistics of the accesses to a storage unit.
type unitProfile struct {
	number        int32
	reads, writes accesses     // one or more in all
	start         int64        // the first address
	low, high     int64        // all accesses are to bytes low to high-1
	jumps         distribution // bytes from the end of an access to the start of the next; 0: sequential
}

// accesses is the statistics of the reads or the writes of a unit.
type accesses struct {
	count int64
	sizes distribution // in bytes
}

//go:embed profiles/*.txt
var profiles embed.FS

// Names returns the names of the built-in profiles: "financial", of transactions at a financial institution, and
// "websearch", of a search engine.
func Names() []string {
	return []string{"financial", "websearch"}
}

// Builtin returns the built-in profile of a name, nil if there is none.
func Builtin(name string) *Profile {
	if !slices.Contains(Names(), name) {
		return nil
	}
	text, err := profiles.ReadFile("profiles/" + name + ".txt")
	if err != nil {
		panic(err) // it is part of the program
	}
	p, err := parseProfile(name, string(text))
	if err != nil {
		panic(err)
	}
	return p
}

// parseProfile parses a profile: the lines "gaps STEP", "unit NUMBER START LOW HIGH", and below each unit
// "reads COUNT STEP", "writes COUNT STEP" and "jumps STEP", each but unit followed by the bins "LOW HIGH WEIGHT" of its
// distribution. Lines that begin with # are comments.
func parseProfile(name, text string) (*Profile, error) {
	p := &Profile{Name: name}
	var u *unitProfile
	d := &p.gaps
	for line := range strings.Lines(text) {
		fields := strings.Fields(line)
		if fields[0] == "#" {
			continue
		}
		word := ""
		if fields[0][0] >= 'a' {
			word, fields = fields[0], fields[1:]
		}
		n := make([]int64, len(fields))
		for i := range fields {
			var err error
			if n[i], err = strconv.ParseInt(fields[i], 10, 64); err != nil {
				return nil, fmt.Errorf("profile %s: %q: %w", name, line, err)
			}
		}
		switch word {
		case "gaps":
			d.step = n[0]
		case "unit":
			p.units = append(p.units, unitProfile{number: int32(n[0]), start: n[1], low: n[2], high: n[3]})
			u = &p.units[len(p.units)-1]
		case "reads":
			u.reads.count, d = n[0], &u.reads.sizes
			d.step = n[1]
		case "writes":
			u.writes.count, d = n[0], &u.writes.sizes
			d.step = n[1]
		case "jumps":
			d = &u.jumps
			d.step = n[0]
		default:
			d.bins = append(d.bins, bin{n[0], n[1], n[2]})
		}
	}
	return p, nil
}

// maxBins is the approximate limit of the bins of a distribution.
const maxBins = 1 << 16

// Like returns the profile of the io ops of a trace.
func Like(t *dag.Trace) (*Profile, error) {
	return measureProfile(t, maxBins)
}

// gapBins is the ratio of the bins for gaps to those of other distributions. A profile has one distribution of gaps,
// and its mean determines the rate of the whole trace.
const gapBins = 8

// measureProfile returns the profile of a trace, with distributions of about the given number of bins.
func measureProfile(t *dag.Trace, bins int) (*Profile, error) {
	byNumber := map[int32]*unitValues{}
	var units []*unitValues
	var gaps []int64
	last := dag.Time(-1)
	for rank, op := range t.Records() {
		a, err := accessOf(t.Ranks[rank], op)
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
