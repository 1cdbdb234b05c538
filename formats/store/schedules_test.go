package store

// Application-like schedules to measure the store on, and the GOAL binary to measure it against (its layout is
// specified in docs/reference/formats/goal.md).

import (
	"encoding/binary"
	"math/rand/v2"
	"testing"

	"github.com/tracedag/tracedag/dag"
)

// schedule is a family of traces of any size.
type schedule struct {
	name  string
	ranks int
	hard  bool // mostly random numbers, or hardly any repetition within a row group
	// build appends about ops ops to rank r.
	build func(p *program, r, ranks, ops int)
}

// trace builds a trace of about ops ops.
func (s schedule) trace(tb testing.TB, ops int) *dag.Trace {
	tb.Helper()
	b := dag.NewBuilder(s.ranks)
	for r := range s.ranks {
		p := program{RankBuilder: b.Rank(r), rng: rand.New(rand.NewPCG(1, uint64(r))), last: -1}
		s.build(&p, r, s.ranks, ops/s.ranks)
	}
	return b.Trace()
}

// program is a rank's schedule in the making: most ops depend on the one before.
type program struct {
	*dag.RankBuilder
	rng  *rand.Rand
	last int
}

func (p *program) deps() []int {
	if p.last < 0 {
		return nil
	}
	return []int{p.last}
}

func (p *program) calc(ns int64) {
	p.last = p.Add(dag.Op{Kind: dag.Calc, Duration: dag.Time(ns) * dag.Nanosecond}, p.deps()...)
}

// jitter returns a length within 5 % of ns.
func (p *program) jitter(ns int64) int64 {
	return ns + p.rng.Int64N(ns/10+1) - ns/20
}

// exchange sends to one rank and receives from another at once, then joins.
func (p *program) exchange(to, from int, bytes, tag int64) {
	deps := p.deps()
	s := p.Send(int32(to), bytes, tag, deps...)
	r := p.Recv(int32(from), bytes, tag, deps...)
	p.last = p.Add(dag.Op{Kind: dag.Calc}, s, r)
}

func (p *program) recursiveDoubling(r, ranks int, bytes, tag int64) {
	for d := 1; d < ranks; d *= 2 {
		if peer := r ^ d; peer < ranks {
			p.exchange(peer, peer, bytes, tag)
		}
	}
}

func (p *program) ring(r, ranks int, bytes, tag int64) {
	for step := range 2 * (ranks - 1) {
		p.exchange((r+1)%ranks, (r+ranks-1)%ranks, bytes/int64(ranks), tag+int64(step))
	}
}

func (p *program) halo(r, ranks, width int, tag int64) {
	x, y, height := r%width, r/width, ranks/width
	neighbours := [4]int{
		y*width + (x+1)%width, y*width + (x+width-1)%width,
		(y+1)%height*width + x, (y+height-1)%height*width + x,
	}
	deps := p.deps()
	var all []int
	for side, n := range neighbours {
		all = append(all, p.Recv(int32(n), 8192, tag+int64(side^1), deps...))
	}
	for side, n := range neighbours {
		all = append(all, p.Send(int32(n), 8192, tag+int64(side), deps...))
	}
	p.last = p.Add(dag.Op{Kind: dag.Calc}, all...)
}

// pipeline trains in stages that pass microbatches on, replicas of which combine their gradients by a ring; length
// varies the lengths of the computations.
func (p *program) pipeline(r, ranks, ops int, length func(ns int64) int64) {
	const stages, microbatches = 8, 16
	stage, replica := r%stages, r/stages
	p.until(ops, func(i int) {
		for m := range microbatches {
			if stage > 0 {
				p.last = p.Recv(int32(r-1), 4<<20, int64(m), p.deps()...)
			}
			p.calc(length(3000000))
			if stage < stages-1 {
				p.Send(int32(r+1), 4<<20, int64(m), p.last)
			}
		}
		for m := range microbatches {
			if stage < stages-1 {
				p.last = p.Recv(int32(r+1), 4<<20, int64(100+m), p.deps()...)
			}
			p.calc(length(6000000))
			if stage > 0 {
				p.Send(int32(r-1), 4<<20, int64(100+m), p.last)
			}
		}
		replicas := ranks / stages
		for step := range 2 * (replicas - 1) {
			next, previous := (replica+1)%replicas, (replica+replicas-1)%replicas
			p.exchange(next*stages+stage, previous*stages+stage, 1<<20, int64(200+step))
		}
	})
}

// until calls iteration with a running number until the rank has the given number of ops.
func (p *program) until(ops int, iteration func(i int)) {
	for i := 0; p.Len() < ops; i++ {
		iteration(i)
	}
}

// schedules are the families that the store's size is measured on.
var schedules = []schedule{
	{"stencil", 1000, false, func(p *program, r, ranks, ops int) {
		p.until(ops, func(i int) {
			p.calc(50000)
			p.halo(r, ranks, 40, 0)
			if i%4 == 3 {
				p.recursiveDoubling(r, ranks, 8, 100)
			}
		})
	}},
	{"stencil-jitter", 1000, false, func(p *program, r, ranks, ops int) {
		p.until(ops, func(i int) {
			p.calc(p.jitter(50000))
			p.halo(r, ranks, 40, int64(i)*8)
			if i%4 == 3 {
				p.recursiveDoubling(r, ranks, 8, int64(i)*8+4)
			}
		})
	}},
	{"ring-allreduce", 256, false, func(p *program, r, ranks, ops int) {
		p.until(ops, func(i int) {
			p.calc(p.jitter(2000000))
			p.ring(r, ranks, 25<<20, int64(i)*1000)
		})
	}},
	{"recursive-doubling", 1024, false, func(p *program, r, ranks, ops int) {
		p.until(ops, func(i int) {
			p.calc(p.jitter(100000))
			p.recursiveDoubling(r, ranks, 65536, int64(i))
		})
	}},
	{"all-to-all", 512, false, func(p *program, r, ranks, ops int) {
		p.until(ops, func(i int) {
			p.calc(300000)
			deps, all := p.deps(), []int(nil)
			for k := 1; k < ranks; k++ {
				all = append(all, p.Recv(int32((r+ranks-k)%ranks), 4096, int64(i), deps...))
				all = append(all, p.Send(int32((r+k)%ranks), 4096, int64(i), deps...))
			}
			p.last = p.Add(dag.Op{Kind: dag.Calc}, all...)
		})
	}},
	{"all-to-all-pairwise", 512, false, func(p *program, r, ranks, ops int) {
		p.until(ops, func(i int) {
			p.calc(p.jitter(300000))
			for k := 1; k < ranks; k++ {
				p.exchange(r^k, r^k, 4096, int64(k))
			}
		})
	}},
	{"pipeline", 256, false, func(p *program, r, ranks, ops int) {
		p.pipeline(r, ranks, ops, func(ns int64) int64 { return ns + int64(r%8)*10007 })
	}},
	{"pipeline-jitter", 256, true, func(p *program, r, ranks, ops int) {
		p.pipeline(r, ranks, ops, p.jitter)
	}},
	{"horovod", 64, false, func(p *program, r, ranks, ops int) {
		layers := rand.New(rand.NewPCG(7, 7))
		var lengths, sizes []int64
		for range 50 {
			lengths = append(lengths, 100000+layers.Int64N(2000000))
			sizes = append(sizes, 4096+layers.Int64N(16<<20))
		}
		communication := -1
		p.until(ops, func(i int) {
			for l := range lengths {
				p.calc(p.jitter(lengths[l]))
				if l%10 != 9 {
					continue
				}
				compute := p.last
				last := compute
				for step := range 2 * (ranks - 1) {
					deps := []int{last}
					if communication >= 0 && step == 0 {
						deps = append(deps, communication)
					}
					tag := int64(i*5+l/10)<<16 | int64(step)
					op := dag.Op{Kind: dag.Send, Peer: int32((r + 1) % ranks), Bytes: sizes[l] / int64(ranks), Tag: tag,
						Stream: 1}
					p.Add(op, deps...)
					op.Kind, op.Peer = dag.Recv, int32((r+ranks-1)%ranks)
					last = p.Add(op, deps...)
				}
				communication = last
			}
			p.last = p.Add(dag.Op{Kind: dag.Calc}, p.last, communication)
		})
	}},
	{"random-peers", 1000, true, func(p *program, r, ranks, ops int) {
		p.until(ops, func(i int) {
			p.calc(p.jitter(50000))
			p.exchange(p.rng.IntN(ranks), p.rng.IntN(ranks), 64*(1+p.rng.Int64N(64)), int64(i))
		})
	}},
	{"server", 257, true, func(p *program, r, ranks, ops int) {
		if r == 0 {
			p.until(ops*20, func(i int) {
				client := int32(1 + i%(ranks-1))
				p.last = p.Recv(client, 256, 1, p.deps()...)
				p.calc(2000)
				p.last = p.Send(client, 1<<20, 2, p.last)
			})
			return
		}
		p.until(ops, func(i int) {
			p.last = p.Send(0, 256, 1, p.deps()...)
			p.last = p.Recv(0, 1<<20, 2, p.last)
			p.calc(p.jitter(80000))
		})
	}},
	{"few-long-ranks", 8, true, func(p *program, r, ranks, ops int) {
		p.until(ops, func(i int) {
			p.calc(p.jitter(10000))
			p.ring(r, ranks, 1<<20, int64(i)*16)
		})
	}},
}

// goalBinarySize returns the size of the trace as a GOAL binary.
func goalBinarySize(t *dag.Trace) int64 {
	size := int64(14 + 16*len(t.Ranks))
	for i := range t.Ranks {
		r := t.Ranks[i]
		size += 8 + 39*int64(r.Len()) + 4*int64(len(r.Deps.Off)+len(r.StartDeps.Off))
		for op := range r.Len() {
			if r.Deps.Count(op)+r.StartDeps.Count(op) == 0 {
				size += 4
			}
		}
	}
	return size
}

// goalBinary returns the trace as a GOAL binary, times in nanoseconds.
func goalBinary(t *dag.Trace) []byte {
	le := binary.LittleEndian
	out := make([]byte, 0, goalBinarySize(t))
	out = le.AppendUint64(out, 4223)
	out = le.AppendUint32(out, uint32(len(t.Ranks)))
	out = append(out, 0, 0)
	table := len(out)
	out = append(out, make([]byte, 16*len(t.Ranks))...)
	for i := range t.Ranks {
		r := t.Ranks[i]
		le.PutUint64(out[table+16*i:], uint64(len(out)-8))
		var roots []uint32
		for op := range r.Len() {
			if r.Deps.Count(op)+r.StartDeps.Count(op) == 0 {
				roots = append(roots, uint32(op))
			}
		}
		out = le.AppendUint32(out, uint32(r.Len()))
		out = le.AppendUint32(out, uint32(len(roots)))
		for _, root := range roots {
			out = le.AppendUint32(out, root)
		}
		finish, start := r.Dependents(), r.StartDependents()
		total := uint32(0)
		for op := range r.Len() {
			size, kind := r.Bytes.At(op), byte(r.Kind[op])
			if kind == 0 {
				size, kind = int64(r.Duration.At(op)/dag.Nanosecond), 3
			}
			out = le.AppendUint32(out, uint32(r.Deps.Count(op)+r.StartDeps.Count(op)))
			out = append(out, kind)
			out = le.AppendUint32(out, uint32(r.Peer.At(op)))
			out = le.AppendUint64(out, uint64(size))
			out = le.AppendUint32(out, uint32(r.Tag.At(op)))
			out = append(out, byte(r.Stream.At(op)), byte(r.NIC.At(op)))
			out = le.AppendUint32(out, uint32(len(finish.Of(op))))
			out = le.AppendUint32(out, total)
			total += uint32(len(finish.Of(op)))
			out = le.AppendUint32(out, uint32(len(start.Of(op))))
			out = le.AppendUint32(out, total)
			total += uint32(len(start.Of(op)))
		}
		for op := range r.Len() {
			for _, d := range finish.Of(op) {
				out = le.AppendUint32(out, uint32(d))
			}
			for _, d := range start.Of(op) {
				out = le.AppendUint32(out, uint32(d))
			}
		}
		le.PutUint64(out[table+16*i+8:], uint64(len(out)-8))
	}
	return out
}
