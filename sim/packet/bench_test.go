package packet

import (
	"fmt"
	"testing"

	"github.com/tracedag/tracedag/dag"
	"github.com/tracedag/tracedag/sim/topology"
)

// benchmark replays a trace repeatedly, and reports events per second and the time per packet and port.
func benchmark(b *testing.B, net *topology.Network, trace *dag.Trace, transport string, compat Compat) {
	b.Helper()
	b.ReportAllocs()
	replay, err := Compile(dag.FromTrace(trace), compat, b.Logf)
	if err != nil {
		b.Fatal(err)
	}
	params, err := NewParams(transport, compat)
	if err != nil {
		b.Fatal(err)
	}
	placement, err := packed(len(trace.Ranks), net.Hosts, 1)
	if err != nil {
		b.Fatal(err)
	}
	var events, hops int64
	for b.Loop() {
		result, report, err := replay.Clone().Run(Options{Network: net, Params: params, Placement: placement})
		if err != nil || !result.Complete {
			b.Fatal(err, result.Stuck)
		}
		events += result.Events
		for i := range report.Ports {
			hops += int64(report.Ports[i].Packets)
		}
	}
	b.ReportMetric(float64(events)/b.Elapsed().Seconds(), "events/s")
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(hops), "ns/hop")
	b.ReportMetric(float64(hops)/float64(b.N), "hops/op")
}

// halfway returns a trace in which each rank sends to the one half the ranks and one further.
func halfway(ranks int, bytes int64) *dag.Trace {
	b := dag.NewBuilder(ranks)
	for r := range ranks {
		to := (r + ranks/2 + 1) % ranks
		b.Rank(r).Send(int32(to), bytes, 0)
		b.Rank(to).Recv(int32(r), bytes, 0)
	}
	return b.Trace()
}

func BenchmarkPermutation(b *testing.B) {
	net := parse(b, "leafspine:hosts=128,tor=16,spines=16,rate=200Gbps,latency=500ns")
	trace := halfway(128, 10<<20)
	for _, t := range Transports {
		b.Run(t.Name, func(b *testing.B) { benchmark(b, net, trace, t.Name, CompatNone) })
	}
	b.Run("ndp/htsim", func(b *testing.B) { benchmark(b, net, trace, "ndp", CompatHTSim) })
}

// BenchmarkScale runs the same amount of data in fat trees of 16 to 8192 hosts. The time per packet and port should not
// depend on the size.
func BenchmarkScale(b *testing.B) {
	volume := int64(4 << 30)
	if testing.Short() {
		volume = 256 << 20
	}
	for _, k := range []int{4, 8, 16, 32} {
		hosts := k * k * k / 4
		net := parse(b, fmt.Sprintf("fattree:k=%d,rate=200Gbps,latency=500ns", k))
		trace := halfway(hosts, volume/int64(hosts))
		b.Run(fmt.Sprint(hosts), func(b *testing.B) { benchmark(b, net, trace, "ndp", CompatNone) })
	}
}

// BenchmarkRing runs a ring allreduce of 64 MiB over 256 ranks: 130,560 dependent messages.
func BenchmarkRing(b *testing.B) {
	ranks, bytes := 256, int64(64<<20)
	if testing.Short() {
		ranks = 64
	}
	builder := dag.NewBuilder(ranks)
	for r := range ranks {
		rank := builder.Rank(r)
		var before []int
		for step := range 2 * (ranks - 1) {
			rank.Send(int32((r+1)%ranks), bytes/int64(ranks), int64(step), before...)
			before = []int{rank.Recv(int32((r+ranks-1)%ranks), bytes/int64(ranks), int64(step), before...)}
		}
	}
	trace := builder.Trace()
	net := parse(b, "leafspine:hosts=256,tor=16,spines=16,rate=200Gbps,latency=500ns")
	b.Run("mprdma", func(b *testing.B) { benchmark(b, net, trace, "mprdma", CompatNone) })
	b.Run("mprdma/atlahs", func(b *testing.B) { benchmark(b, net, trace, "mprdma", CompatATLAHS) })
}
