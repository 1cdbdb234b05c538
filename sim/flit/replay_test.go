package flit

import (
	"encoding/json"
	"math/rand/v2"
	"reflect"
	"runtime"
	"strings"
	"testing"

	"github.com/tracedag/tracedag/dag"
	"github.com/tracedag/tracedag/dag/gen/graph500"
	"github.com/tracedag/tracedag/sim"
)

// TestPacedSends: where sends end when their interface has taken them, and no sooner than a rank has handed them over, the next
// begins then; where they do not, all are there at once.
func TestPacedSends(t *testing.T) {
	for _, c := range []struct {
		injected, paced bool
		sends, last     uint64 // when the sender and the receiver are done, in cycles
	}{
		// All at once: 3 packets of 8 flits one after the other; heads are received after 3, 11 and 19 cycles.
		{false, false, 0, 19 + 7},
		// The source queue takes them at once, too, but each in a cycle of its own.
		{true, false, 2, 19 + 7},
		// The first is handed over from cycle 0 to 7, in which the second comes.
		{true, true, 3 * 7, 19 + 7},
	} {
		p := Presets()[0].Params
		p.Coupling.Injected, p.Coupling.Paced = c.injected, c.paced
		b := dag.NewBuilder(2)
		for i := range 3 {
			send := b.Rank(0).Send(1, 128, 0)
			recv := b.Rank(1).Recv(0, 128, 0)
			if i > 0 {
				b.Rank(0).Requires(send, send-1)
				b.Rank(1).Requires(recv, recv-1)
			}
		}
		replay, err := Compile(dag.FromTrace(b.Trace()))
		if err != nil {
			t.Fatal(err)
		}
		result, _, err := replay.Run(Options{Network: mustParse(t, "star:hosts=2,latency=1ns"), Params: p})
		if err != nil || !result.Complete {
			t.Fatalf("not complete, error %v", err)
		}
		if got := [2]uint64{result.Finish[0].Ticks / 1000, result.Finish[1].Ticks / 1000}; got != [2]uint64{c.sends, c.last} {
			t.Errorf("injected %v, paced %v: ranks end in cycles %v, want %d and %d", c.injected, c.paced, got, c.sends, c.last)
		}
	}
}

// TestOrder checks that messages of one time reach their NIC in rank order, and that ranks of a host answer in the
// cycle in which they receive.
func TestOrder(t *testing.T) {
	b := dag.NewBuilder(6)
	for rank := 3; rank >= 0; rank-- {
		b.Rank(rank).Send(4, 128, int64(rank))
	}
	before := -1
	for rank := range 4 {
		recv := b.Rank(4).Recv(int32(rank), 128, int64(rank))
		if before >= 0 {
			b.Rank(4).Requires(recv, before)
		}
		before = recv
	}
	b.Rank(4).Send(0, 16, 9, before)
	b.Rank(0).Recv(4, 16, 9)
	replay, err := Compile(dag.FromTrace(b.Trace()))
	if err != nil {
		t.Fatal(err)
	}
	p := Presets()[0].Params
	result, _, err := replay.Run(Options{Network: mustParse(t, "star:hosts=2,latency=1ns"), Params: p, Placement: Placement{Cores: 4}})
	if err != nil {
		t.Fatal(err)
	}
	const last = 3 + 4*8 - 1 // the answer leaves in this cycle, and takes 3
	if got := result.Finish[0].Ticks / 1000; got != last+3 || !result.Complete {
		t.Errorf("the answer is there in cycle %d, want %d", got, last+3)
	}
}

func TestRunRefused(t *testing.T) {
	net := mustParse(t, "star:hosts=2,latency=1ns")
	p := Presets()[0].Params
	compile := func(build func(b *dag.Builder)) *Replay {
		b := dag.NewBuilder(4)
		build(b)
		r, err := Compile(dag.FromTrace(b.Trace()))
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	nothing := func(b *dag.Builder) { b.Rank(0).Calc(1) }
	for want, c := range map[string]struct {
		replay    *Replay
		placement Placement
	}{
		"rank 2 is placed on host 2, expected hosts 0 to 1 of the network": {compile(nothing), Placement{}},
		"the placement has hosts for 1 ranks, expected 4 as in the trace":  {compile(nothing), Placement{Hosts: []uint32{0}}},
		"expected at least 1 core per host, found -1":                      {compile(nothing), Placement{Cores: -1}},
		"rank 0 op 1 (send): " + sim.ErrTooLong.Error(): {compile(func(b *dag.Builder) {
			b.Rank(0).Send(3, 1, 0, b.Rank(0).Calc(dag.MaxTime))
			b.Rank(3).Recv(0, 1, 0)
		}), Placement{Cores: 2}},
	} {
		if _, _, err := c.replay.Run(Options{Network: net, Params: p, Placement: c.placement}); err == nil || err.Error() != want {
			t.Errorf("error %v, want %s", err, want)
		}
	}
	r := compile(func(b *dag.Builder) {
		b.Rank(3).Recv(0, 1, 0)
		b.Rank(0).Send(2, 1, 0)
	})
	result, _, err := r.Run(Options{Network: net, Params: p, Placement: Placement{Cores: 2}})
	if err != nil || result.Complete || result.Unmatched.Count() != 2 {
		t.Errorf("a message and a receive without partners: error %v, complete %v", err, result.Complete)
	}
	if _, _, err := r.Run(Options{Network: net, Params: p}); err == nil || !strings.Contains(err.Error(), "only once") {
		t.Errorf("error %v in a second run", err)
	}
}

// TestSameResult checks that neither the number of threads nor an earlier run of a clone changes the result.
func TestSameResult(t *testing.T) {
	tr, o := search(t, "UN/MIN", 0.25, 1, func(g *graph500.Params) { g.Scale, g.RootDegree = 14, 16 })
	compiled, err := Compile(dag.FromTrace(tr))
	if err != nil {
		t.Fatal(err)
	}
	run := func() string {
		result, report, err := compiled.Clone().Run(o)
		if err != nil {
			t.Fatal(err)
		}
		result.Wall, result.OpsPerS = 0, 0
		text, err := json.Marshal(struct {
			Result *sim.Result
			Report *Report
		}{result, report})
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	want := run()
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(0))
	for _, threads := range []int{1, 3} {
		runtime.GOMAXPROCS(threads)
		if run() != want {
			t.Errorf("GOMAXPROCS %d makes another result", threads)
		}
	}
}

// TestReplayThreads checks that several threads give the result of one.
func TestReplayThreads(t *testing.T) {
	const dragonfly = "dragonfly:p=2,a=4,h=2,arrangement=palmtree,latency=10ns,globallatency=100ns"
	for _, c := range []struct {
		topology string
		routing  Routing
	}{
		{dragonfly, UGALGlobal},
		{dragonfly, UGAL},
		{dragonfly, Minimal},
		{dragonfly, Piggyback},
		{dragonfly, Opportunistic},
		{"dragonfly:p=1,a=3,h=2,latency=1ns,globallatency=3ns", Progressive},
		{"torus:dims=5x4,latency=1ns", Adaptive},
		{"fattree:k=4,latency=2ns", Adaptive},
	} {
		for _, plain := range []bool{false, true} { // with output buffers and whole credits, and with neither
			net := mustParse(t, c.topology)
			_, p := small(t)
			p.Routing, p.LocalVCs, p.GlobalVCs = c.routing, 5, 2
			if plain {
				p.OutputBuffer, p.Speedup, p.WholeCredits, p.SourceQueue = 0, 1, false, 0
			}
			p.Coupling.Injected, p.Coupling.Paced = true, plain
			compiled, err := Compile(dag.FromTrace(randomMessages(net.Hosts, 2)))
			if err != nil {
				t.Fatal(err)
			}
			want := ""
			for _, threads := range []int{1, 2, 3} {
				if testing.Short() && (plain || threads == 2) || plain && threads == 3 {
					continue
				}
				result, report, err := compiled.Clone().Run(Options{Network: net, Params: p, Threads: threads})
				if err != nil {
					t.Fatal(err)
				}
				result.Wall, result.OpsPerS = 0, 0
				text, err := json.Marshal(struct {
					Result *sim.Result
					Report *Report
				}{result, report})
				if err != nil {
					t.Fatal(err)
				}
				if want == "" {
					want = string(text)
				}
				if string(text) != want || !result.Complete {
					t.Errorf("%s, %v, plain %v, %d threads: got\n%s\nexpected\n%s", c.topology, c.routing, plain, threads,
						text, want)
				}
			}
		}
	}
}

// randomMessages returns a trace of count messages per rank of random sizes, some of which wait for earlier ones.
func randomMessages(ranks, count int) *dag.Trace {
	random := rand.New(rand.NewPCG(1, 2))
	b := dag.NewBuilder(ranks)
	last := make([]int, ranks)
	for tag := range count {
		order := random.Perm(ranks)
		for i, from := range order {
			to, bytes := order[(i+1)%ranks], int64(1+random.IntN(1000))
			var deps []int
			if tag > 0 && random.IntN(2) == 0 {
				deps = append(deps, last[from])
			}
			b.Rank(from).Send(int32(to), bytes, int64(tag), deps...)
			last[to] = b.Rank(to).Recv(int32(from), bytes, int64(tag))
		}
	}
	return b.Trace()
}

// TestParamsText: parameters survive JSON, and presets run on their topologies.
func TestParamsText(t *testing.T) {
	for _, preset := range Presets() {
		preset.Params.Routing = UGALGlobal
		text, err := json.Marshal(preset.Params)
		if err != nil {
			t.Fatal(err)
		}
		var p Params
		if err := json.Unmarshal(text, &p); err != nil || !reflect.DeepEqual(p, preset.Params) {
			t.Errorf("%s is %+v, want %+v, error %v", text, p, preset.Params, err)
		}
		preset, err := FindPreset(preset.Name)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := newNetwork(t.Context(), mustParse(t, preset.Topology), &preset.Params); err != nil {
			t.Errorf("%s: %v", preset.Name, err)
		}
	}
	if _, err := FindPreset("none"); err == nil {
		t.Error("a preset that does not exist is no error")
	}
	var p Params
	if err := json.Unmarshal([]byte(`{"routing": "scenic"}`), &p); err == nil {
		t.Error("a routing that does not exist is no error")
	}
}
