package analytical

import (
	"fmt"
	"testing"

	"github.com/tracedag/tracedag/dag"
	_ "github.com/tracedag/tracedag/internal/testheap"
)

// allreduce returns a trace of one all-reduce.
func allreduce(ranks int, bytes int64) *dag.Trace {
	b := dag.NewBuilder(1)
	b.Rank(0).Add(dag.Op{Kind: dag.Coll, Subkind: dag.Allreduce, Bytes: bytes, Stream: 2})
	one := b.Trace()
	t := &dag.Trace{Comms: []dag.Comm{dag.World(ranks)}, Ranks: dag.NewRanks(ranks)}
	for r := range t.Ranks {
		t.Ranks[r] = one.Ranks[0]
	}
	return t
}

// torus returns a network of rings, and a system for it.
func torus(dims, size int) Options {
	o := Options{System: System{LocalBWAware: true, Splits: 1, ActiveChunks: 1, Queues: 1, EndpointDelay: 10, LocalMemBW: 50}}
	for range dims {
		o.Network.Dims = append(o.Network.Dims, Dim{Ring, size, 50, 500})
		for c := range o.System.Implementations {
			o.System.Implementations[c] = append(o.System.Implementations[c], Algorithm{Name: RingAlgorithm})
		}
	}
	return o
}

// table3 returns a row of table III of the ASTRA-sim 2.0 paper.
func table3(sizes ...int) Options {
	o := Options{System: System{LocalBWAware: true, Splits: 64, ActiveChunks: 1, Queues: 1, EndpointDelay: 1,
		LocalMemBW: 500000}}
	for i, n := range sizes {
		o.Network.Dims = append(o.Network.Dims, Dim{Switch, n, []float64{1000, 200, 100, 50}[i], 1})
		o.System.Implementations[AllReduce] = append(o.System.Implementations[AllReduce], Algorithm{Name: HalvingDoubling})
	}
	return o
}

func BenchmarkCollective(b *testing.B) {
	for _, c := range []struct {
		name  string
		o     Options
		bytes int64
		want  uint64 // nanoseconds; 0: not known
	}{
		{"torus 16x16x16", torus(3, 16), 1 << 20, 0},
		{"torus 32x32x32", torus(3, 32), 1 << 20, 0},
		{"table III 16_8_8_4, 64 chunks", table3(16, 8, 8, 4), 1 << 30, 1879168},
	} {
		for _, aware := range []bool{false, true} {
			b.Run(fmt.Sprintf("%s/aware=%v", c.name, aware), func(b *testing.B) {
				c.o.Network.Aware = aware
				t := allreduce(c.o.Network.NPUs(), c.bytes)
				var messages int64
				b.ReportAllocs()
				for b.Loop() {
					p, err := Compile(dag.FromTrace(t))
					if err != nil {
						b.Fatal(err)
					}
					r, err := p.Run(c.o)
					if err != nil || !r.Complete || !aware && c.want != 0 && r.Makespan.Ticks != c.want {
						b.Fatal(err, r.Makespan, r.Stuck)
					}
					messages += r.Messages
				}
				b.ReportMetric(float64(messages)/b.Elapsed().Seconds(), "messages/s")
			})
		}
	}
}

// training returns a trace like that of a training step: calcs that depend on a few of those before them, messages to the
// next rank, and now and then an all-reduce.
func training(ranks, nodes int) *dag.Trace {
	b := dag.NewBuilder(ranks)
	for r := range ranks {
		rank := b.Rank(r)
		last, state := -1, uint64(1)
		for i := range nodes {
			var deps []int
			if last >= 0 {
				deps = append(deps, last)
			}
			state = state*6364136223846793005 + 1442695040888963407
			switch {
			case i%1000 == 997:
				last = rank.Add(dag.Op{Kind: dag.Coll, Subkind: dag.Allreduce, Bytes: 1 << 20, Stream: 2}, deps...)
			case i%50 == 48:
				rank.Add(dag.Op{Kind: dag.Send, Peer: int32((r + 1) % ranks), Bytes: 1 << 16, Tag: int64(i), Stream: 2}, deps...)
			case i%50 == 49:
				last = rank.Add(dag.Op{Kind: dag.Recv, Peer: int32((r + ranks - 1) % ranks), Bytes: 1 << 16, Tag: int64(i - 1)},
					deps...)
			default:
				if i > 20 && state>>60 == 0 {
					deps = append(deps, i-int(state>>33%20)-1)
				}
				k := rank.Add(dag.Op{Kind: dag.Calc, Duration: dag.Time(1+state>>59) * dag.Microsecond}, deps...)
				if state>>58%4 != 0 {
					last = k
				}
			}
		}
	}
	return b.Trace()
}

func BenchmarkTraining(b *testing.B) {
	t := training(64, 100_000)
	o := Options{System: System{LocalBWAware: true, Splits: 4, ActiveChunks: 1, Queues: 1, EndpointDelay: 10}}
	o.Network.Dims = []Dim{{Ring, 8, 100, 500}, {Switch, 8, 50, 500}}
	for c := range o.System.Implementations {
		o.System.Implementations[c] = []Algorithm{{Name: RingAlgorithm}, {Name: HalvingDoubling}}
	}
	var nodes int64
	b.ReportAllocs()
	for b.Loop() {
		p, err := Compile(dag.FromTrace(t))
		if err != nil {
			b.Fatal(err)
		}
		r, err := p.Run(o)
		if err != nil || !r.Complete {
			b.Fatal(err)
		}
		nodes += r.Ops
	}
	b.ReportMetric(float64(nodes)/b.Elapsed().Seconds(), "nodes/s")
}

// BenchmarkReady has ever more ops that are ready at once.
func BenchmarkReady(b *testing.B) {
	for _, n := range []int{2_000, 200_000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			builder := dag.NewBuilder(2)
			for r := range 2 {
				for range n {
					builder.Rank(r).Add(dag.Op{Kind: dag.Calc, Duration: dag.Microsecond})
				}
			}
			p, err := Compile(dag.FromTrace(builder.Trace()))
			if err != nil {
				b.Fatal(err)
			}
			o := Options{System: System{Splits: 1, ActiveChunks: 1, Queues: 1}}
			o.Network.Dims = []Dim{{Switch, 2, 50, 500}}
			for b.Loop() {
				if _, err := p.Run(o); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(b.N)*float64(2*n)/b.Elapsed().Seconds(), "nodes/s")
		})
	}
}
