// Flows in the order of their times.

package workload

import (
	"encoding/binary"
	"math/rand/v2"

	"github.com/tracedag/tracedag/dag"
	"github.com/tracedag/tracedag/dag/gen/openloop"
)

// stream draws the flows of all jobs.
type stream struct {
	jobs  []*jobStream
	drawn []openloop.Message
}

func newStream(p *Params, seed int64) *stream {
	s := &stream{drawn: make([]openloop.Message, 0, drawAtOnce)}
	for i := range p.Jobs {
		s.jobs = append(s.jobs, newJobStream(p, i, seed))
	}
	return s
}

// drawAtOnce is the number of flows drawn at a time.
const drawAtOnce = 1024

// Next returns the next flows, none at the end. Flows of the same time are in the order of jobs, then of sources. They
// are valid until the next call.
func (s *stream) Next() []openloop.Message {
	s.drawn = s.drawn[:0]
	for len(s.drawn) < drawAtOnce {
		var first *jobStream
		for _, j := range s.jobs {
			if j.some && (first == nil || j.flow.Time < first.flow.Time) {
				first = j
			}
		}
		if first == nil {
			break
		}
		s.drawn = append(s.drawn, first.flow)
		first.advance()
	}
	return s.drawn
}

// jobStream draws the flows of a job.
type jobStream struct {
	*Job
	flow openloop.Message // the next one, if any
	some bool

	gap     float64 // mean, of a source, in picoseconds
	end     dag.Time
	left    int64
	sources []process
	queue   []arrival // of the sources: a binary heap by time, then by source
	router  *router
	sizes   *rand.ChaCha8
	senders []int32 // remaining senders of the current incast
}

// arrival is the next time of a source.
type arrival struct {
	time   dag.Time
	source int32
}

// draws returns the random stream for one quantity of a job, so that workloads that differ in one quantity share the
// others.
func draws(seed int64, job int, quantity string) *rand.ChaCha8 {
	var key [32]byte
	binary.LittleEndian.PutUint64(key[0:], uint64(seed))
	binary.LittleEndian.PutUint64(key[8:], uint64(job))
	copy(key[16:], quantity)
	return rand.NewChaCha8(key)
}

func newJobStream(p *Params, job int, seed int64) *jobStream {
	j := &p.Jobs[job]
	s := &jobStream{
		Job: j, flow: openloop.Message{Job: uint8(job)}, end: dag.MaxTime / 2, router: newRouter(&j.Pattern, p.Ranks,
			draws(seed, job, "destination")), sizes: draws(seed, job, "size"),
	}
	if j.Duration > 0 {
		s.end = j.Duration
	}
	s.left, _ = j.flows(p.Ranks)
	var sources int
	s.gap, sources = j.gap(p.Ranks)
	s.sources, s.queue = make([]process, sources), make([]arrival, sources)
	seeds := draws(seed, job, "gap")
	for i := range s.sources {
		source := &s.sources[i]
		source.clock = openloop.NewClock(p.Clock, 0)
		source.random.Seed(seeds.Uint64(), seeds.Uint64())
		s.queue[i] = arrival{source.first(&j.Arrivals, s.gap), int32(i)}
	}
	for i := len(s.queue)/2 - 1; i >= 0; i-- {
		s.down(i)
	}
	s.advance()
	return s
}

// advance draws the next flow.
func (s *jobStream) advance() {
	if s.some = s.left > 0; !s.some {
		return
	}
	if len(s.senders) == 0 {
		if s.some = s.event(); !s.some {
			return
		}
	}
	if s.Pattern.Kind == Incast {
		s.flow.Source = s.senders[0]
		s.senders = s.senders[1:]
	}
	s.left--
	s.flow.Bytes = s.Sizes.Draw(s.sizes.Uint64())
}

// event advances to the next time at which a source sends, and reports whether it is before the end.
func (s *jobStream) event() bool {
	next := s.queue[0]
	if next.time >= s.end {
		return false
	}
	source := &s.sources[next.source]
	s.flow.Time = next.time
	if s.Pattern.Kind == Incast {
		s.senders, s.flow.Destination = s.router.incast()
	} else {
		s.flow.Source = next.source
		s.flow.Destination = s.router.destination(next.source, source.sent)
		source.sent++
	}
	s.queue[0].time = source.next(&s.Arrivals, s.gap)
	s.down(0)
	return true
}

// down moves arrival i of the queue to its place below.
func (s *jobStream) down(i int) {
	moved := s.queue[i]
	for {
		child := 2*i + 1
		if child >= len(s.queue) {
			break
		}
		if right := child + 1; right < len(s.queue) && s.queue[right].before(s.queue[child]) {
			child = right
		}
		if !s.queue[child].before(moved) {
			break
		}
		s.queue[i] = s.queue[child]
		i = child
	}
	s.queue[i] = moved
}

func (a arrival) before(b arrival) bool {
	return a.time < b.time || a.time == b.time && a.source < b.source
}
