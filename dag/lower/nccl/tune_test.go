package nccl

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/tracedag/tracedag/dag"
	"github.com/tracedag/tracedag/dag/attr"
)

// TestPrediction compares predicted times with calculations by hand; the comments have them, in us, with bytes / (1000
// *
// GB/s) as the last term.
func TestPrediction(t *testing.T) {
	const (
		intel = iota
		amd
	)
	node := model{version: v220, gpu: hopper, ranks: 8, nodes: 1, channels: 12, intra: 30, inter: 30, switched: true}
	newest := node
	newest.version = v230
	cluster := model{version: v223, gpu: ampere, cpu: amd, near: true, ranks: 32, nodes: 4, channels: 8, intra: 24, inter: 24}
	pci := model{version: v220, gpu: volta, pci: true, ranks: 4, nodes: 4, channels: 2, intra: 12, inter: 12}
	single := model{version: v223, gpu: hopper, ranks: 16, nodes: 16, channels: 1, intra: 48, inter: 48}
	last := single
	last.version = v230
	b200 := model{version: v230, gpu: blackwell, ranks: 32, nodes: 4, channels: 8, intra: 45, inter: 45, switched: true}
	b200Node := b200
	b200Node.ranks, b200Node.nodes, b200Node.channels = 8, 1, 16
	pair := model{version: v223, gpu: hopper, ranks: 16, nodes: 2, channels: 8, intra: 45, inter: 45, switched: true}
	slow := model{version: v220, gpu: hopper, cpu: intel, ranks: 8, nodes: 2, channels: 4, intra: 24, inter: 24}
	old := model{version: v220, gpu: volta, ranks: 8, nodes: 2, channels: 4, intra: 12, inter: 12}
	for _, c := range []struct {
		m     model
		kind  dag.Subkind
		a     algorithm
		p     protocol
		bytes int64
		want  float64
	}{
		// 6.6 + 14*0.6 + bytes / (min(87.7, 360/4) * 8/14)
		{node, dag.Allreduce, ring, ll, 64 << 10, 16.307731},
		// 6.6 + 7*0.6 + bytes / (min(87.7, 360/3) * 8/7)
		{node, dag.Allgather, ring, ll, 8 << 20, 94.494778},
		// 14 + 14*1.9 + bytes / (min(0.92*360, 12*36.7) * 8/14)
		{node, dag.Allreduce, ring, ll128, 1 << 20, 46.140483},
		// 8.4 + 14*3.4 + bytes / (360 * 8/14)
		{node, dag.Allreduce, ring, simple, 1 << 30, 5275.578311},
		// 6.8 + 2*7*0.6 + bytes / (min(min(0.92*360, 12*38.7)/3.8, 87.7)/2 * 0.6), factor 10
		{node, dag.Allreduce, tree, ll, 64 << 10, 17.706409},
		// 14 + 2*7*1.25 + bytes / (min(331.2*7/9, 12*36.7)/2 * 0.6), factor 14
		{node, dag.Allreduce, tree, ll128, 1 << 20, 45.068530},
		// 0 + 2*7*28 + bytes / (331.2/2 * 0.9), factor 22
		{node, dag.Allreduce, tree, simple, 256 << 20, 2193.096726},
		// 23 + bytes / (360 * 5/6)
		{node, dag.Allreduce, nvls, simple, 1 << 30, 3602.139413},
		// 25 + bytes / (360 * 0.85 * 8/14)
		{newest, dag.Allreduce, nvls, simple, 1 << 30, 6165.680366},
		// 6.6 + (62-8)*max(0.6, 2) + 8*2.7 + bytes / (min(19, 192/4) * 32/62)
		{cluster, dag.Allreduce, ring, ll, 64 << 10, 142.882947},
		// (8.4 + (62-8)*max(3.4, 3*2) + 8*14) * 1.4 + bytes / (192 * 32/62)
		{cluster, dag.Allreduce, ring, simple, 1 << 30, 11457.445333},
		// 8.4 + 54*6 + 8*14 + bytes / (192 * 32/62): 32 bytes a rank and channel
		{cluster, dag.Allreduce, ring, simple, 8 << 10, 444.482667},
		// 8.4 + 2*(7*4 + 2*14) + bytes / (min(0.92*192, 8*17.8)/2 * 0.5), factor 14
		{cluster, dag.Allreduce, tree, simple, 1 << 20, 149.854382},
		// 14 + 2*(7*1.25 + 2*8.5) + bytes / (min(142.4*120/128, 8*20)/2 * 0.6)
		{cluster, dag.Allreduce, tree, ll128, 1 << 20, 91.681673},
		// 14 + (31-3)*max(1.9, 2) + 3*4 + bytes / (min(0.92*192, 8*20) * 32/31)
		{cluster, dag.ReduceScatter, ring, ll128, 32 << 20, 285.161600},
		// 14 + (6-8)*2.5 + 8*4 + bytes / (min(0.7*24, 2*20) * 4/6)
		{pci, dag.Allreduce, ring, ll128, 1 << 20, 134.622857},
		// (8.4 + (6-8)*5.7 + 8*14) * 1.9 + bytes / (24 * 4/6)
		{pci, dag.Allreduce, ring, simple, 64 << 20, 4401.404},
		// 8 + 4*14/3.5 + 2.8*16 + bytes / (48 * 0.85 / 2)
		{single, dag.Allgather, pat, simple, 16 << 20, 891.212549},
		// 8 + 4*14/3.5 + 2.8*16 + bytes / (48 * 0.75 / 2)
		{last, dag.ReduceScatter, pat, simple, 16 << 20, 1000.867556},
		// 25 + 2*2*20.9 + bytes / (8 * min(45, 45/2) * 32/62)
		{b200, dag.Allreduce, nvlsTree, simple, 1 << 30, 11666.237689},
		// 25 + 2*1*14 + bytes / (8 * 45 * 5/6)
		{pair, dag.Allreduce, nvlsTree, simple, 1 << 30, 3632.139413},
		// 8.4 + (8-2)*max(3.4, 3) + 2*14 + bytes / 96
		{slow, dag.Bcast, ring, simple, 64 << 20, 755.850667},
		// 6.8 + 2*(3*0.6 + 1*5) + bytes / (min(min(0.92*48, 4*18.5)/3.8, 39)/2 * 0.7), factor 6
		{old, dag.Allreduce, tree, ll, 4 << 10, 21.407039},
		// 6.6 + 14*0.6 + bytes / (min(282, 720/4) * 8/14)
		{b200Node, dag.Allreduce, ring, ll, 64 << 20, 667.447289},
	} {
		if got := c.m.time(c.kind, c.a, c.p, c.bytes); math.Abs(got-c.want) > 1e-6*c.want {
			t.Errorf("%v of %d bytes by %s %s, %d ranks on %d nodes: %.6f us, expected %.6f", c.kind, c.bytes,
				algorithmNames[c.a], protocolNames[c.p], c.m.ranks, c.m.nodes, got, c.want)
		}
	}
}

// TestAllowed checks which algorithms and protocols the library has for a collective on a machine.
func TestAllowed(t *testing.T) {
	names := func(m *model, kind dag.Subkind) string {
		var all []string
		for a := range algorithm(len(algorithmNames)) {
			for p := range protocol(protocols) {
				if m.allows(kind, a, p) {
					all = append(all, algorithmNames[a]+" "+protocolNames[p])
				}
			}
		}
		return strings.Join(all, ", ")
	}
	const (
		rings = "ring ll, ring ll128, ring simple"
		trees = "tree ll, tree ll128, tree simple, "
	)
	for _, c := range []struct {
		o            Options
		ranks, nodes int
		kind         dag.Subkind
		want         string
	}{
		{Options{GPU: "hopper"}, 8, 1, dag.Allreduce, trees + rings + ", nvls simple"},
		{Options{GPU: "hopper"}, 8, 1, dag.Allgather, rings + ", nvls simple"},
		{Options{GPU: "hopper"}, 8, 1, dag.Bcast, rings},
		{Options{GPU: "hopper"}, 16, 2, dag.Allreduce, trees + rings + ", nvls_tree simple"},
		{Options{GPU: "hopper"}, 16, 2, dag.ReduceScatter, rings},
		{Options{GPU: "hopper"}, 15, 2, dag.Allreduce, trees + rings},
		{Options{GPU: "hopper", Intra: "nvlink-mesh"}, 4, 1, dag.Allreduce, trees + rings},
		{Options{GPU: "ampere"}, 8, 1, dag.Allreduce, trees + rings},
		{Options{GPU: "ampere", NICs: 2}, 16, 2, dag.Allreduce, "tree ll, tree simple, ring ll, ring simple"},
		{Options{Intra: "pci"}, 8, 1, dag.Allreduce, "tree ll, tree simple, ring ll, ring simple"},
		{Options{Version: "2.20"}, 4, 4, dag.Allgather, rings},
		{Options{Version: "2.23"}, 4, 4, dag.Allgather, rings + ", pat simple"},
		{Options{Version: "2.23"}, 8, 4, dag.Allgather, rings},
		{Options{Version: "2.23"}, 4, 4, dag.Reduce, rings},
	} {
		if got := names(newModel(&c.o, c.ranks, c.nodes, 8, 0), c.kind); got != c.want {
			t.Errorf("%+v, %d ranks on %d nodes, %v: %s, expected %s", c.o, c.ranks, c.nodes, c.kind, got, c.want)
		}
	}
}

// TestModel checks the channels and bandwidths of machines.
func TestModel(t *testing.T) {
	for _, c := range []struct {
		o                               Options
		ranks, nodes, perNode, channels int
		wantChannels                    int
		want                            float64
	}{
		{Options{}, 8, 1, 8, 0, 12, 30.9},            // 18 links of 20.6
		{Options{GPU: "ampere"}, 8, 1, 8, 0, 12, 20}, // 12 links of 20
		{Options{GPU: "ampere"}, 16, 2, 8, 0, 8, 25}, // a NIC of 25 per GPU
		{Options{}, 16, 2, 8, 0, 8, 46.35},           // 8 NICs of 50 are faster than NVLink
		{Options{NICs: 4}, 16, 2, 8, 0, 4, 50},       // every second GPU has a NIC
		{Options{NICs: 4}, 2, 2, 8, 0, 1, 50},        // one GPU of each node
		{Options{NICs: 4, NICRate: 25e9}, 16, 4, 4, 0, 4, 25},
		{Options{LinkRate: 450e9}, 8, 1, 8, 24, 24, 18.75}, // channels of the trace
		{Options{Intra: "pci"}, 4, 1, 4, 0, 2, 24},
	} {
		m := newModel(&c.o, c.ranks, c.nodes, c.perNode, c.channels)
		if m.channels != c.wantChannels || math.Abs(m.intra-c.want) > 1e-9 || m.inter != m.intra {
			t.Errorf("%+v, %d ranks on %d nodes: %d channels of %v and %v GB/s, expected %d of %v", c.o, c.ranks, c.nodes,
				m.channels, m.intra, m.inter, c.wantChannels, c.want)
		}
	}
}

// group returns a communicator of ranks on nodes.
func group(t *testing.T, ranks, perNode int) *comm {
	t.Helper()
	members := make([]int32, ranks)
	for i := range members {
		members[i] = int32(i)
	}
	topology, err := newTopology(attr.NCCLTopology{}, members, spread(ranks, perNode))
	if err != nil {
		t.Fatal(err)
	}
	return &comm{members: members, topology: topology, perNode: perNode, chosen: make(map[choiceKey]*call)}
}

// TestTunedChoice checks the choices of the model, which the best of all predicted times must confirm.
func TestTunedChoice(t *testing.T) {
	for _, c := range []struct {
		o              Options
		ranks, perNode int
		kind           dag.Subkind
		bytes          int64 // of one rank
		want           string
		channels       int
	}{
		{Options{Tune: true}, 8, 8, dag.Allreduce, 1 << 10, "ring ll", 1},
		{Options{Tune: true}, 8, 8, dag.Allreduce, 256 << 20, "nvls simple", 12},
		{Options{Tune: true, Algorithm: "ring"}, 8, 8, dag.Allreduce, 256 << 20, "ring simple", 12},
		{Options{Tune: true, Protocol: "ll128"}, 8, 8, dag.Allreduce, 256 << 20, "ring ll128", 12},
		{Options{GPU: "ampere"}, 8, 8, dag.Allreduce, 256 << 20, "ring simple", 12},
		{Options{Tune: true}, 64, 8, dag.Allreduce, 1 << 10, "tree ll", 1},
		{Options{Tune: true, Channels: 3}, 8, 8, dag.Allreduce, 256 << 20, "nvls simple", 3},
		{Options{Version: "2.23"}, 64, 1, dag.Allgather, 1 << 20, "ring ll128", 1},
		{Options{Version: "2.23"}, 64, 1, dag.ReduceScatter, 24 << 10, "pat simple", 1},
		{Options{Version: "2.23", Algorithm: "pat"}, 64, 1, dag.Allgather, 1 << 20, "pat simple", 1},
		{Options{Tune: true, Algorithm: "nvls"}, 8, 8, dag.Bcast, 1 << 20, "ring ll", 12},
	} {
		got := group(t, c.ranks, c.perNode).choose(&c.o, c.kind, c.bytes, c.bytes)
		name := fmt.Sprintf("%+v, %d ranks, %v of %d bytes", c.o, c.ranks, c.kind, c.bytes)
		if text := algorithmNames[got.algorithm] + " " + protocolNames[got.protocol]; text != c.want ||
			len(got.channels) != c.channels {
			t.Errorf("%s: %s on %d channels, expected %s on %d; %+v", name, text, len(got.channels), c.want, c.channels,
				got.best)
		}
		if got.why == byPrediction && (len(got.best) == 0 || got.best[0].algorithm != got.algorithm ||
			len(got.best) > 1 && got.best[0].US > got.best[1].US) {
			t.Errorf("%s: best %+v", name, got.best)
		}
		sum := int64(0)
		for _, ch := range got.channels {
			sum += ch.work
		}
		if sum*got.typeSize != c.bytes {
			t.Errorf("%s: the channels carry %d bytes", name, sum*got.typeSize)
		}
	}
}

// TestSwitchChunks checks the chunks of NVLS by size, for 8 GPUs and 16 channels.
func TestSwitchChunks(t *testing.T) {
	for _, c := range []struct {
		a            algorithm
		bytes, chunk int64
		nodes        int
	}{
		{nvls, 1 << 30, 131072, 1}, {nvls, 64 * 128 * 131072, 131072, 1}, {nvls, 64*128*131072 - 1, 65536, 1},
		{nvls, 8 * 128 * 65536, 65536, 1}, {nvls, 8*128*65536 - 1, 32768, 1}, {nvls, 2*128*32768 - 1, 16384, 1},
		{nvlsTree, 1 << 40, 524288, 2}, {nvlsTree, 1 << 40, 65536, 4}, {nvlsTree, 128*32768 - 1, 32768, 2},
	} {
		if got := switchChunk(c.a, 524288, c.bytes, 128, c.nodes); got != c.chunk {
			t.Errorf("%s of %d bytes: chunks of %d, expected %d", algorithmNames[c.a], c.bytes, got, c.chunk)
		}
	}
	for bytes, want := range map[int64]int64{1 << 30: 576000, 1 << 20: 18000} {
		if got := treeLL128Chunk(576000, bytes, 8, 32, 4); got != want {
			t.Errorf("tree by LL128 of %d bytes: chunks of %d, expected %d", bytes, got, want)
		}
	}
}

func TestTuningErrors(t *testing.T) {
	for _, c := range []struct {
		o    Options
		want string
	}{
		{Options{Version: "2.19"}, `version: expected one of 2.20, 2.23, 2.27, 2.30, found "2.19"`},
		{Options{GPU: "pascal"}, "gpu: expected one of volta"},
		{Options{GPU: "blackwell"}, "blackwell needs version=2.30"},
		{Options{Intra: "usb"}, "intra: expected one of nvlink"},
		{Options{CPU: "z80"}, "cpu: expected one of intel, amd"},
		{Options{NICs: -1}, "nics-per-node: expected 1"},
		{Options{Unpredicted: true, GPU: "hopper"}, "tune: no excludes"},
		{Options{Algorithm: "collnet_direct"}, "CollNet, the reduction inside the network, is not modelled"},
		{Options{Algorithm: "nvls", Protocol: "ll"}, "nvls has the protocol simple only"},
		{Options{Algorithm: "pat", Version: "2.20"}, "pat needs version=2.23 or later"},
	} {
		if err := c.o.Check(); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%+v: error %v, expected %q", c.o, err, c.want)
		}
	}
	o := Options{Version: "2.23"}
	if err := o.Retuned("2.30"); err == nil || o.Retune {
		t.Errorf("error %v", err)
	}
	if err := o.Retuned("2.23"); err != nil || !o.Retune {
		t.Errorf("error %v", err)
	}
}
