package openloop

import (
	"encoding/binary"
	"math/bits"
	"math/rand/v2"
	"slices"

	"github.com/tracedag/tracedag/dag"
)

// Message is one message of a workload.
type Message struct {
	Time                dag.Time
	Bytes               int64
	Source, Destination int32
	Job                 uint8
}

// plan is a workload with its tables, for any number of streams.
type plan struct {
	Workload
	shares       *table          // of the classes; nil: one class
	destinations []*destinations // of each class
}

func newPlan(w Workload) (*plan, error) {
	p := &plan{Workload: w}
	byPolicy := map[DestinationPolicy]*destinations{}
	var shares []float64
	for _, c := range w.Classes {
		policy := c.Destination
		if byPolicy[policy] == nil {
			d, err := newDestinations(policy, w.Tasks)
			if err != nil {
				return nil, err
			}
			byPolicy[policy] = d
		}
		p.destinations = append(p.destinations, byPolicy[policy])
		shares = append(shares, c.Share)
	}
	if len(shares) > 1 {
		p.shares = newTable(accumulate(shares))
	}
	return p, nil
}

// draws returns the random stream for one quantity. Every message takes one number of the stream of each quantity, so
// that workloads that differ in one quantity share the others, message by message.
func (p *plan) draws(quantity string) *rand.ChaCha8 {
	var key [32]byte
	binary.LittleEndian.PutUint64(key[0:], uint64(p.Seed))
	copy(key[16:], quantity)
	return rand.NewChaCha8(key)
}

// routes draws the class, source and destination of messages.
type routes struct {
	*plan
	sources, classes, destinations *rand.ChaCha8
}

func (p *plan) routes() *routes {
	return &routes{p, p.draws("source"), p.draws("class"), p.draws("destination")}
}

func (r *routes) next() (class int, source, destination int32) {
	source = int32(Scale(r.sources.Uint64(), uint64(r.Tasks)))
	if r.shares != nil {
		class = r.shares.find(Scale(r.classes.Uint64(), tableUnit))
	}
	return class, source, r.plan.destinations[class].draw(r.destinations.Uint64(), source)
}

// stream draws the messages of a workload in the order of their times, and of their sources within a tick.
type stream struct {
	routes      *routes
	gaps, sizes *rand.ChaCha8
	clock       Clock
	left        int64     // messages not drawn yet
	drawn       []Message // the latest ones
	complete    int       // messages before it are of ticks that are drawn completely
}

func (p *plan) stream() *stream {
	return &stream{
		routes: p.routes(), gaps: p.draws("gap"), sizes: p.draws("size"), clock: NewClock(p.Clock, p.End),
		left: p.Messages,
	}
}

// drawAtOnce is the number of messages drawn at a time.
const drawAtOnce = 1024

// Next returns the next messages, none at the end. They are valid until the next call.
func (s *stream) Next() []Message {
	s.drawn = append(s.drawn[:0], s.drawn[s.complete:]...)
	s.complete = 0
	for s.complete == 0 && s.left > 0 {
		s.draw(int(min(drawAtOnce, s.left)))
	}
	if s.left == 0 {
		s.complete = len(s.drawn)
	}
	sortTies(s.drawn[:s.complete])
	return s.drawn[:s.complete]
}

func (s *stream) draw(n int) {
	p := s.routes.plan
	s.left -= int64(n)
	s.drawn = slices.Grow(s.drawn, n)
	for range n {
		m := Message{Time: s.clock.Advance(float64(Exponential(s.gaps.Uint64()) * p.MeanGap))}
		var class int
		class, m.Source, m.Destination = s.routes.next()
		m.Bytes = p.Classes[class].Sizes.Draw(s.sizes.Uint64())
		if k := len(s.drawn); k > 0 && s.drawn[k-1].Time != m.Time {
			s.complete = k
		}
		s.drawn = append(s.drawn, m)
	}
}

// sortTies sorts neighbouring messages of the same time by their sources.
func sortTies(messages []Message) {
	for i := 0; i < len(messages); {
		end := i + 1
		for end < len(messages) && messages[end].Time == messages[i].Time {
			end++
		}
		if end > i+1 {
			slices.SortStableFunc(messages[i:end], func(a, b Message) int { return int(a.Source - b.Source) })
		}
		i = end
	}
}

// Clock adds gaps in units of 2^-64 ps, and rounds the time to the nearest tick.
type Clock struct {
	tick     uint64 // in ps, like the next ones
	end      uint64 // latest time
	ps, frac uint64 // the time plus half a tick, so that rounding down rounds to the nearest
}

// NewClock returns a clock at time 0 with ticks of 1 ps or more that stops at end; 0: at the largest time.
func NewClock(tick, end dag.Time) Clock {
	if end == 0 {
		end = dag.MaxTime - tick
	}
	c := Clock{tick: uint64(tick), end: uint64(end) + uint64(tick)/2, ps: uint64(tick) / 2}
	if tick%2 != 0 {
		c.frac = 1 << 63
	}
	return c
}

// Advance moves the clock by a number of picoseconds and returns the time.
func (c *Clock) Advance(gap float64) dag.Time {
	if gap >= 1<<62 {
		c.ps = c.end
		gap = 0
	}
	whole := int64(gap)
	part := uint64(int64((gap-float64(whole))*(1<<63))) << 1
	var carry uint64
	c.frac, carry = bits.Add64(c.frac, part, 0)
	c.ps = min(c.ps+uint64(whole)+carry, c.end)
	return dag.Time(c.ps - c.ps%c.tick)
}
