package dag

import (
	"runtime"
	"testing"
)

// The limits of memory that the model keeps to.
const (
	maxBytesPerOp  = 48
	maxBytesPerDep = 4
)

// profile is a kind of trace, with every column in use that formats of its kind use.
type profile struct {
	name string
	make func(ops int) *Trace
}

// profileRanks is how many ranks the traces of the profiles have.
const profileRanks = 16

// each returns a trace of the given number of ops, the k-th op of each rank made by fill, which adds one.
func each(ops int, fill func(r *RankBuilder, id, k int)) *Trace {
	return build(profileRanks, func(b *Builder) {
		b.Meta().Jobs = []string{"a", "b"}
		for id := range profileRanks {
			for k := range ops / profileRanks {
				fill(b.Rank(id), id, k)
			}
		}
	})
}

var profiles = []profile{
	{"goal", func(ops int) *Trace { return each(ops, goalOp) }},
	{"late", func(ops int) *Trace {
		return build(profileRanks, func(b *Builder) {
			for id := range profileRanks {
				r := b.Rank(id)
				r.KeepOrder()
				for k := range ops / profileRanks {
					goalOp(r, id, k)
				}
				for k := ops/profileRanks - 1; k > 1; k -= 2 {
					r.Requires(k, k-2)
				}
			}
		})
	}},
	{"collectives", func(ops int) *Trace {
		subkinds := []Subkind{Allreduce, Bcast, Alltoallv, ReduceScatter}
		return each(ops, func(r *RankBuilder, id, k int) {
			op := Op{Kind: Coll, Subkind: subkinds[k/2%4], Bytes: int64(k) << 10, RecvBytes: int64(k), Peer: 2, Stream: 1}
			if k%2 == 0 {
				op = Op{Kind: Calc, Duration: Time(k) * Microsecond}
			}
			r.Add(op, before(k, 1)...)
		})
	}},
	{"storage", func(ops int) *Trace {
		return each(ops, func(r *RankBuilder, id, k int) {
			op := Op{Kind: IO, Subkind: Read, Bytes: 4096, Tag: int64(k) * 4096, Release: Time(k) * Microsecond, Stream: 3}
			if k%3 == 0 {
				op.Subkind = Write
			}
			r.Add(op, before(k, 8)...)
		})
	}},
	{"flows", func(ops int) *Trace {
		return each(ops, func(r *RankBuilder, id, k int) {
			distance := 1 + k/2%(profileRanks-1)
			op := Op{Kind: Send, Peer: int32((id + distance) % profileRanks), Bytes: int64(k) * 100, Tag: int64(k / 2), NIC: 1,
				Job: 1, Release: Time(k) * Microsecond}
			if k%2 == 1 {
				op.Kind, op.Release, op.Peer = Recv, 0, int32((id+profileRanks-distance)%profileRanks)
			}
			r.Add(op)
		})
	}},
	{"chakra", func(ops int) *Trace {
		return each(ops, func(r *RankBuilder, id, k int) {
			op := Op{Kind: Calc, Bytes: int64(k), Duration: Time(k) * Microsecond, Flops: int64(k) << 20, Stream: 7}
			switch k % 8 {
			case 0:
				op = Op{Kind: Calc, Subkind: Marker, Host: 1, Stream: 1}
			case 5:
				op = Op{Kind: Coll, Subkind: Allreduce, Bytes: int64(k) << 10, Stream: 20, Dims: 0b101, Priority: int32(k % 100)}
			case 6:
				op = Op{Kind: Send, Peer: int32(id+1) % profileRanks, Bytes: 5, Tag: int64(k)}
			case 7:
				op = Op{Kind: Recv, Peer: int32(id+profileRanks-1) % profileRanks, Bytes: 5, Tag: int64(k - 1)}
			}
			r.Add(op, before(k, 1, 3)...)
		})
	}},
}

// goalOp adds an op that a GOAL file can hold, with a message to the next rank and one from the previous in four ops.
func goalOp(r *RankBuilder, id, k int) {
	op := Op{Kind: Calc, Duration: Time(k) * Nanosecond, Stream: int32(k % 4)}
	switch k % 4 {
	case 2:
		op = Op{Kind: Send, Peer: int32(id+1) % profileRanks, Bytes: int64(k), Tag: int64(k), NIC: 1}
	case 3:
		op = Op{Kind: Recv, Peer: int32(id+profileRanks-1) % profileRanks, Bytes: int64(k), Tag: int64(k - 1), NIC: 2}
	}
	r.Add(op, before(k, 1)...)
	if k > 2 && k%2 == 0 {
		r.RequiresStart(k, k-2)
	}
}

// before returns the ops that lie the given distances before op k.
func before(k int, distances ...int) []int {
	var ops []int
	for _, d := range distances {
		if k >= d {
			ops = append(ops, k-d)
		}
	}
	return ops
}

// size returns what the columns of a rank take, by their capacity, and that of the lists of dependencies apart. The
// orders of dependents count as dependencies: those that deviate are stored a second time.
func (r *Rank) size() (columns, deps int) {
	columns = cap(r.Kind) + cap(r.Subkind) + 8*(cap(r.Bytes)+cap(r.RecvBytes)+cap(r.Tag)+cap(r.Duration)+cap(r.Flops)+
		cap(r.Release)+cap(r.MeasuredStart)+cap(r.MeasuredEnd)) + 4*cap(r.Peer)
	for _, c := range []*Narrow{&r.Comm, &r.Stream, &r.NIC, &r.Job, &r.Host, &r.Dims, &r.Priority} {
		columns += cap(c.small) + 4*cap(c.wide)
	}
	for _, c := range []*Text{&r.Name, &r.Attrs} {
		columns += 4*cap(c.end) + cap(c.data)
	}
	for _, e := range []*Edges{&r.Deps, &r.StartDeps, &r.Order, &r.StartOrder} {
		columns += 4 * cap(e.End)
		deps += 4 * cap(e.Off)
	}
	return columns, deps
}

// memory is the memory of a trace.
type memory struct {
	ops, deps        int
	columns, offsets int // bytes by capacity
	heap             int // bytes by the runtime's count
}

func (m memory) perOp() float64 { return float64(m.columns) / float64(m.ops) }

func (m memory) perDep() float64 { return float64(m.offsets) / float64(m.deps) }

// heapPerOp is what the heap holds beside maxBytesPerDep for every dependency.
func (m memory) heapPerOp() float64 { return float64(m.heap-maxBytesPerDep*m.deps) / float64(m.ops) }

func measure(p profile, ops int) memory {
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	trace := p.make(ops)
	runtime.GC()
	runtime.ReadMemStats(&after)
	m := memory{ops: int(trace.Ops()), heap: int(after.HeapAlloc) - int(before.HeapAlloc)}
	for i := range trace.Ranks {
		r := trace.Ranks[i]
		columns, deps := r.size()
		m.columns += columns
		m.offsets += deps
		m.deps += len(r.Deps.Off) + len(r.StartDeps.Off) + len(r.Order.Off) + len(r.StartOrder.Off)
	}
	return m
}

// TestMemory holds the model to its limits, spare capacity and the allocator's rounding included.
func TestMemory(t *testing.T) {
	if testing.Short() {
		t.Skip("computes long on one thread")
	}
	for _, p := range profiles {
		t.Run(p.name, func(t *testing.T) {
			m := measure(p, 1_000_000)
			if m.ops < 1_000_000 {
				t.Fatalf("%d ops", m.ops)
			}
			if got := m.perOp(); got > maxBytesPerOp {
				t.Errorf("%.2f bytes an op, limit %d", got, maxBytesPerOp)
			}
			if got := m.perDep(); m.deps > 0 && got > maxBytesPerDep {
				t.Errorf("%.3f bytes a dependency, limit %d", got, maxBytesPerDep)
			}
			if got := m.heapPerOp(); got > maxBytesPerOp {
				t.Errorf("%.2f bytes an op on the heap, limit %d", got, maxBytesPerOp)
			}
		})
	}
}

// BenchmarkMemory builds traces and reports their memory and the speed of building.
func BenchmarkMemory(b *testing.B) {
	for _, p := range profiles {
		b.Run(p.name, func(b *testing.B) {
			var m memory
			for b.Loop() {
				m = measure(p, 1_000_000)
			}
			b.ReportMetric(m.perOp(), "B/op-columns")
			b.ReportMetric(m.heapPerOp(), "B/op-heap")
			if m.deps > 0 {
				b.ReportMetric(m.perDep(), "B/dep")
				b.ReportMetric(float64(m.deps)/float64(m.ops), "deps/op")
			}
			b.ReportMetric(float64(m.ops)*float64(b.N)/b.Elapsed().Seconds(), "ops/s")
		})
	}
}

// benchmarkWhole runs functions of a whole trace.
func benchmarkWhole(b *testing.B, run func(t *Trace) int) {
	for _, p := range profiles {
		b.Run(p.name, func(b *testing.B) {
			trace := p.make(4_000_000)
			found := 0
			for b.Loop() {
				found = run(trace)
			}
			b.ReportMetric(float64(trace.Ops())*float64(b.N)/b.Elapsed().Seconds(), "ops/s")
			b.ReportMetric(float64(found), "found")
		})
	}
}

// TestProfiles checks that the measured traces are valid.
func TestProfiles(t *testing.T) {
	for _, p := range profiles {
		if problems := Validate(p.make(960)); len(problems) > 0 {
			t.Errorf("%s: %d problems, the first: %v", p.name, len(problems), problems[0])
		}
	}
}

func BenchmarkBuild(b *testing.B) {
	for _, p := range profiles {
		b.Run(p.name, func(b *testing.B) {
			for b.Loop() {
				p.make(4_000_000)
			}
			b.ReportMetric(4_000_000*float64(b.N)/b.Elapsed().Seconds(), "ops/s")
		})
	}
}

func BenchmarkValidate(b *testing.B) {
	benchmarkWhole(b, func(t *Trace) int { return len(Validate(t)) })
}

// BenchmarkValidateBroken validates traces in which about every other op has a problem.
func BenchmarkValidateBroken(b *testing.B) {
	benchmarkWhole(b, func(t *Trace) int {
		for i := range t.Ranks {
			r := t.Ranks[i]
			for k := range r.Tag {
				r.Tag[k] = int64(k) // a tag of its own for each op of a rank: no receive matches
			}
		}
		_, n := ValidateLimit(t, 10)
		return n
	})
}

func BenchmarkDisagreement(b *testing.B) {
	benchmarkWhole(b, func(t *Trace) int { return len(Disagreement(t)) })
}

func BenchmarkSummarize(b *testing.B) {
	benchmarkWhole(b, func(t *Trace) int { return Summarize(t).Streams })
}

func BenchmarkMatrix(b *testing.B) {
	benchmarkWhole(b, func(t *Trace) int { return len(Matrix(t)) })
}

func BenchmarkDependents(b *testing.B) {
	benchmarkWhole(b, func(t *Trace) int {
		n := 0
		for i := range t.Ranks {
			d := t.Ranks[i].Dependents()
			n += len(d.Op)
		}
		return n
	})
}
