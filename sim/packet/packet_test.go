package packet

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/tracedag/tracedag/dag"
	_ "github.com/tracedag/tracedag/internal/testheap"
	"github.com/tracedag/tracedag/sim"
	"github.com/tracedag/tracedag/sim/topology"
)

// leafSpine is two racks of two hosts and one spine, at 200 Gb/s (40 ps a byte) and 500 ns a link.
const leafSpine = "leafspine:hosts=4,tor=2,spines=1,rate=200Gbps,latency=500ns"

func parse(t testing.TB, spec string) *topology.Network {
	t.Helper()
	net, err := topology.Parse(spec)
	if err != nil {
		t.Fatal(err)
	}
	return net
}

// try is the configuration of a test run.
type try struct {
	network   string
	transport string
	compat    Compat
	rules     *Compat // of the coupling, if not compat
	set       func(o *Options)
}

func (r try) run(t testing.TB, trace *dag.Trace) (*sim.Result, *Report) {
	t.Helper()
	if r.transport == "" {
		r.transport = "ndp"
	}
	p, err := NewParams(r.transport, r.compat)
	if err != nil {
		t.Fatal(err)
	}
	net := parse(t, r.network)
	rules := r.compat
	if r.rules != nil {
		rules = *r.rules
	}
	replay, err := Compile(dag.FromTrace(trace), rules, t.Logf)
	if err != nil {
		t.Fatal(err)
	}
	o := Options{Network: net, Params: p}
	if o.Placement, err = packed(len(trace.Ranks), net.Hosts, 1); err != nil {
		t.Fatal(err)
	}
	if r.set != nil {
		r.set(&o)
	}
	result, report, err := replay.Run(o)
	if err != nil {
		t.Fatal(err)
	}
	return result, report
}

// messages returns a trace of messages that start at once: source, destination, bytes.
func messages(ranks int, list ...[3]int) *dag.Trace {
	b := dag.NewBuilder(ranks)
	for i, m := range list {
		b.Rank(m[0]).Send(int32(m[1]), int64(m[2]), int64(i))
		b.Rank(m[1]).Recv(int32(m[0]), int64(m[2]), int64(i))
	}
	return b.Trace()
}

// TestOneMessage compares a single message with the time of its packets.
func TestOneMessage(t *testing.T) {
	const wire = 500_000 // ps
	for _, test := range []struct {
		to, bytes int
		want      dag.Time // delivery of the last byte
	}{
		{1, 1000, 2 * (1064*40 + wire)},              // one packet over two links
		{3, 1000, 4 * (1064*40 + wire)},              // and over four
		{3, 4096, 4 * (4160*40 + wire)},              // a full packet
		{3, 0, 4 * (64*40 + wire)},                   // a header
		{3, 10 * 4096, 4*(4160*40+wire) + 9*4160*40}, // ten packets
		// A short packet waits behind full ones at each link.
		{3, 4096 + 100, 4*(4160*40+wire) + 164*40},
	} {
		for _, name := range []string{"ndp", "mprdma", "constant", "swiftlike"} {
			set := func(o *Options) {
				for _, p := range []string{"initial", "cap"} {
					if _, ok := o.Params.TransportParams[p]; ok {
						o.Params.TransportParams[p] = 4
					}
				}
			}
			result, report := try{network: leafSpine, transport: name, set: set}.run(t, messages(4, [3]int{0, test.to, test.bytes}))
			f := report.Flows[0]
			if got := f.Delivered - f.Start; got != test.want || !result.Complete {
				t.Errorf("%s: %d bytes to %d: %v, want %v", name, test.bytes, test.to, got, test.want)
			}
			if back := f.Acknowledged - f.Delivered; back != dag.Time(2*(test.to/2+1)*(64*40+wire)) {
				t.Errorf("%s: %d bytes to %d: the ack takes %v", name, test.bytes, test.to, back)
			}
		}
	}
}

// TestNDPAlone compares with the closed form of NDP: the window at line rate, then the rate of pulls.
func TestNDPAlone(t *testing.T) {
	const rtt, period = 4*(4160*40+500_000) + 4*(64*40+500_000), 168_080
	for _, n := range []int{10, 30, 2000} {
		_, report := try{network: leafSpine, set: func(o *Options) { o.Params.TransportParams["window"] = 40 }}.run(t,
			messages(4, [3]int{0, 3, n * 4096}))
		want := dag.Time(rtt + (n-1)*4160*40)
		if n > 40 {
			want = max(want, dag.Time(2*rtt+(n-41)*period))
		}
		if f := report.Flows[0]; f.Acknowledged-f.Start != want {
			t.Errorf("%d packets: %v, want %v", n, f.Acknowledged-f.Start, want)
		}
	}
}

// TestIncast checks that all messages are delivered however small the queues and however many the senders, and that no
// packet is created or lost in the network.
func TestIncast(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for _, transport := range Transports {
		// All policies except those for dragonflies.
		for _, balance := range []Balance{ByFlow, ByHost, Spray, Permute, Random, Fixed, RoundRobin, Adaptive, Flowlet} {
			for _, compat := range []Compat{CompatNone, CompatHTSim} {
				var list [][3]int
				for range 30 {
					list = append(list, [3]int{random.IntN(12), 12 + random.IntN(4), 1 + random.IntN(300_000)})
				}
				name := fmt.Sprint(transport.Name, balance, compat)
				set := func(o *Options) {
					o.Params.Balance, o.Params.Queue = balance, 10*4160
				}
				result, report := try{network: "leafspine:hosts=16,tor=4,spines=2,rate=100Gbps,latency=200ns",
					transport: transport.Name, compat: compat, set: set}.run(t, messages(16, list...))
				if compat != CompatNone && !result.Complete {
					continue // htsim's transports may not repair such losses
				}
				if !result.Complete {
					t.Errorf("%s: %v", name, result.Stuck)
				}
				for _, f := range report.Flows {
					if f.Delivered < f.Start+report.Ideal[f.index(report)] {
						t.Errorf("%s: %+v is faster than possible", name, f)
					}
				}
			}
		}
	}
}

func (f *Flow) index(r *Report) int {
	return slices.IndexFunc(r.Flows, func(g Flow) bool { return g.ID == f.ID })
}

// TestDeterministic checks that runs give the same result whatever GOMAXPROCS, and another result with another seed.
func TestDeterministic(t *testing.T) {
	var list [][3]int
	for i := range 15 {
		list = append(list, [3]int{i, 15, 200_000})
	}
	run := func(seed int64) []Flow {
		_, report := try{network: "leafspine:hosts=16,tor=4,spines=4", transport: "mprdma", set: func(o *Options) {
			o.Params.Seed, o.Params.Queue = seed, 20*4160
		}}.run(t, messages(16, list...))
		return report.Flows
	}
	want := run(1)
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	if got := run(1); !reflect.DeepEqual(got, want) {
		t.Error("a second run with one processor differs")
	}
	if got := run(2); reflect.DeepEqual(got, want) {
		t.Error("another seed makes no difference")
	}
}

// TestCoupling checks the coupling of ranks and network: overheads, gaps, rendezvous and local messages.
func TestCoupling(t *testing.T) {
	const way = 4 * (1064*40 + 500_000) // of 1000 bytes
	const there = 4 * (64*40 + 500_000) // of a control packet
	after := func(bytes int) *dag.Trace {
		b := dag.NewBuilder(4)
		b.Rank(0).Calc(1000, b.Rank(0).Send(3, int64(bytes), 0))
		b.Rank(3).Calc(1000, b.Rank(3).Recv(0, int64(bytes), 0))
		return b.Trace()
	}
	for _, test := range []struct {
		name         string
		trace        *dag.Trace
		c            Coupling
		first, other dag.Time // when ranks 0 and 3 finish
	}{
		{"eager", after(1000), Coupling{Rendezvous: 1000}, 1064*40 + 1000, way + 1000},
		{"acknowledged", after(1000), Coupling{Rendezvous: 1000, AckEnds: true}, way + there + 1000, way + 1000},
		{"overhead", after(1000), Coupling{Rendezvous: 1000, Overhead: 70}, 70 + 1064*40 + 1000, 70 + way + 70 + 1000},
		{"rendezvous", after(1000), Coupling{Rendezvous: 999}, 2*there + 1064*40 + 1000, 2*there + way + 1000},
		{"gap", messages(4, [3]int{0, 3, 1000}, [3]int{0, 3, 1000}), Coupling{Rendezvous: 1000, Gap: 300_000},
			300_000 + 1064*40, 300_000 + way},
	} {
		result, _ := try{network: leafSpine, set: func(o *Options) { o.Params.Coupling = test.c }}.run(t, test.trace)
		if first, other := dag.Time(result.Finish[0].Ticks), dag.Time(result.Finish[3].Ticks); first != test.first || other != test.other {
			t.Errorf("%s: ranks 0 and 3 finish at %v and %v, want %v and %v", test.name, first, other, test.first, test.other)
		}
	}
	result, report := try{network: leafSpine, set: func(o *Options) {
		o.Placement = Placement{Hosts: []uint32{2, 2, 2, 2}, NICs: 1}
		o.Params.Coupling.LocalLatency, o.Params.Coupling.LocalRate = 300, 8e12
	}}.run(t, after(1000))
	if got := result.Makespan.Ticks; got != 300+1000+1000 || len(report.Flows) != 0 {
		t.Errorf("on one host: %d ps, %d flows", got, len(report.Flows))
	}
}

// TestNICs runs a rank with several NICs, each a host of the network.
func TestNICs(t *testing.T) {
	b := dag.NewBuilder(2)
	for nic := range 2 {
		b.Rank(0).Add(dag.Op{Kind: dag.Send, Peer: 1, Bytes: 40960, Tag: int64(nic), NIC: int32(nic)})
		b.Rank(1).Add(dag.Op{Kind: dag.Recv, Peer: 0, Bytes: 40960, Tag: int64(nic), NIC: int32(nic)})
	}
	trace := b.Trace()
	_, report := try{network: "star:hosts=4", set: func(o *Options) { o.Placement, _ = packed(2, 4, 2) }}.run(t, trace)
	for i, f := range report.Flows {
		if int(f.Source) != i || int(f.Target) != 2+i || f.Delivered != report.Flows[0].Delivered {
			t.Errorf("flow %d: %+v", i, f)
		}
	}
}

// TestUnfinished checks that a result names incomplete ops.
func TestUnfinished(t *testing.T) {
	net := parse(t, leafSpine)
	links, err := net.LinkByName("tor0-agg0")
	if err != nil {
		t.Fatal(err)
	}
	cut := Failure{Links: links, At: dag.Microsecond}
	result, report := try{network: leafSpine, set: func(o *Options) {
		o.Failures, o.Params.End = []Failure{cut}, 10*dag.Millisecond
	}}.run(t, messages(4, [3]int{0, 3, 1 << 20}, [3]int{0, 1, 1 << 20}))
	if result.Complete || report.Incomplete != 1 || !strings.Contains(fmt.Sprint(result.Stuck), "its message to reach rank 3") {
		t.Errorf("complete %v, %d incomplete, %v", result.Complete, report.Incomplete, result.Stuck)
	}
	// The message completes when the link works again, and the other message is not delayed.
	cut.Until = 5 * dag.Millisecond
	result, report = try{network: leafSpine, set: func(o *Options) { o.Failures = []Failure{cut} }}.run(t,
		messages(4, [3]int{0, 3, 1 << 20}, [3]int{0, 1, 1 << 20}))
	if !result.Complete || report.Flows[0].Delivered < cut.Until || report.Flows[1].Delivered > dag.Millisecond {
		t.Errorf("%+v", report.Flows)
	}
}

// TestFailures checks that flows continue over the remaining paths, and that a slower link slows its flows.
func TestFailures(t *testing.T) {
	const network = "leafspine:hosts=4,tor=2,spines=2,rate=200Gbps,latency=500ns"
	net := parse(t, network)
	links, err := net.LinkByName("tor0-agg1")
	if err != nil {
		t.Fatal(err)
	}
	trace := messages(4, [3]int{0, 3, 4 << 20})
	run := func(f ...Failure) dag.Time {
		result, report := try{network: network, set: func(o *Options) {
			o.Failures, o.Params.Balance = f, Permute
		}}.run(t, trace)
		if !result.Complete {
			t.Errorf("%v: %v", f, result.Stuck)
		}
		return report.Flows[0].Delivered
	}
	whole := run()
	down := run(Failure{Links: links, At: 20 * dag.Microsecond})
	slow := run(Failure{Links: links, At: 20 * dag.Microsecond, Rate: 10e9})
	if down < whole || down > whole+2*dag.Millisecond || slow < 2*whole {
		t.Errorf("%v whole, %v with a link down, %v with a slow one", whole, down, slow)
	}
	for _, f := range []Failure{{}, {Links: []int{99}}, {Links: links, At: 5, Until: 5}, {Links: links, Rate: -1}} {
		p, _ := NewParams("ndp", CompatNone)
		r, _ := Compile(dag.FromTrace(trace), CompatNone, t.Logf)
		place, _ := packed(4, 4, 1)
		if _, _, err := r.Run(Options{Network: net, Params: p, Placement: place, Failures: []Failure{f}}); err == nil {
			t.Errorf("%+v is accepted", f)
		}
	}
}

// TestDragonfly lets all hosts of a group send to the next group. The one link between the groups limits minimal
// routing. Valiant paths have many links, and UGAL uses them only where that helps.
func TestDragonfly(t *testing.T) {
	const network, hosts = "dragonfly:p=2,a=4,h=2,rate=100Gbps,latency=100ns,globallatency=500ns", 8
	net := parse(t, network)
	run := func(balance Balance, list ...[3]int) *Report {
		result, report := try{network: network, set: func(o *Options) { o.Params.Balance = balance }}.run(t, messages(net.Hosts, list...))
		if !result.Complete {
			t.Fatalf("%v: %v", balance, result.Stuck)
		}
		return report
	}
	var adversarial [][3]int
	for i := range hosts {
		adversarial = append(adversarial, [3]int{i, hosts + i, 1 << 20})
	}
	least := dag.Time(hosts << 20 * 80) // over one link of 100 Gb/s
	minimal, valiant, ugal := run(ByFlow, adversarial...), run(Valiant, adversarial...), run(UGAL, adversarial...)
	if minimal.Last < least || valiant.Last > least*2/3 || ugal.Last > least*2/3 {
		t.Errorf("%v minimal, %v with detours, %v with UGAL; one link takes %v", minimal.Last, valiant.Last, ugal.Last, least)
	}
	alone := [3]int{0, 3*hosts + 5, 1000}
	direct, detour := run(UGAL, alone).Flows[0], run(Valiant, alone).Flows[0]
	if want := run(ByFlow, alone).Flows[0]; direct != want || detour.Delivered <= want.Delivered {
		t.Errorf("alone: UGAL %+v, Valiant %+v, minimal %+v", direct, detour, want)
	}
	p, _ := NewParams("ndp", CompatNone)
	p.Balance = UGAL
	if _, err := newNetwork(&Options{Network: parse(t, leafSpine), Params: p}); err == nil {
		t.Error("UGAL on a leaf-spine is accepted")
	}
}

// TestQueueings checks that all messages are delivered with each queueing discipline of a transport and short queues.
func TestQueueings(t *testing.T) {
	var list [][3]int
	for i := range 12 {
		list = append(list, [3]int{i, 12 + i%4, 100_000 + i})
	}
	for _, transport := range Transports {
		for _, queueing := range Queueings() {
			p, _ := NewParams(transport.Name, CompatNone)
			p.Queueing = queueing
			if p.Check() != nil {
				if queueing != "trim" && queueing != "pfc" {
					t.Errorf("%s: %v", transport.Name, p.Check())
				}
				continue
			}
			set := func(o *Options) {
				o.Params.Queueing, o.Params.Queue, o.Params.End = queueing, 12*4160, 10*dag.Second
				o.Params.ECNMin, o.Params.ECNMax = 5*4160, 5*4160
			}
			result, report := try{network: "leafspine:hosts=16,tor=4,spines=2,rate=100Gbps,latency=200ns",
				transport: transport.Name, set: set}.run(t, messages(16, list...))
			if !result.Complete {
				t.Errorf("%s, %s: %v, %+v", transport.Name, queueing, result.Stuck, report.Counters)
			}
			if marks := report.Counters.Marks > 0; strings.HasPrefix(queueing, "ecn") && !marks {
				t.Errorf("%s, %s: no marks", transport.Name, queueing)
			}
		}
	}
}

// TestEnd checks that the network stops at the end of a run, and that later messages are not delivered.
func TestEnd(t *testing.T) {
	b := dag.NewBuilder(4)
	b.Rank(0).Send(3, 10<<20, 0)
	b.Rank(3).Recv(0, 10<<20, 0)
	b.Rank(1).Send(2, 1000, 1, b.Rank(1).Calc(dag.Second))
	b.Rank(2).Recv(1, 1000, 1)
	const end = 100 * dag.Microsecond
	result, report := try{network: leafSpine, set: func(o *Options) { o.Params.End = end }}.run(t, b.Trace())
	if result.Complete || result.Aborted == "" || report.Incomplete != 1 || len(report.Flows) != 1 || report.Flows[0].Delivered != 0 {
		t.Errorf("%+v, %+v", result, report.Flows)
	}
	if got := dag.Time(result.Finish[1].Ticks); got != dag.Second {
		t.Errorf("rank 1 is done at %v", got)
	}
}

// packed places rank r on the r-th group of nics hosts.
func packed(ranks, hosts, nics int) (Placement, error) {
	p := topology.DefaultPlacement
	at, err := p.Place(ranks, hosts, nics, 1, nil)
	return Placement{Hosts: at, NICs: nics}, err
}
