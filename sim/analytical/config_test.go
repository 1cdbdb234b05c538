package analytical

import (
	"fmt"
	"math"
	"reflect"
	"slices"
	"strings"
	"testing"
)

// warnings collects the warnings of a reader.
type warnings []string

func (w *warnings) add(message string, args ...any) {
	*w = append(*w, fmt.Sprintf(message, args...))
}

// expect checks that there is one warning for each of the texts, in order, which has it.
func (w warnings) expect(t *testing.T, texts ...string) {
	t.Helper()
	if len(w) != len(texts) {
		t.Errorf("got warnings %q, expected some of %q", []string(w), texts)
		return
	}
	for i, text := range texts {
		if !strings.Contains(w[i], text) {
			t.Errorf("got the warning %q, expected one with %q", w[i], text)
		}
	}
}

func TestReadNetwork(t *testing.T) {
	const text = `# a comment with [brackets]
topology: [ Ring, FullyConnected, "Switch" ]
npus_count: [ 4, 2, 8 ]
bandwidth:
  - 100.0
  - 14.285714285714286
  - 2.5e1
latency: [ 50, 500.0, 0 ]  # ns
nics: 3
`
	var w warnings
	n, err := ReadNetwork([]byte(text), "n.yml", w.add)
	if err != nil {
		t.Fatal(err)
	}
	want := []Dim{{Ring, 4, 100, 50}, {FullyConnected, 2, 100.0 / 7, 500}, {Switch, 8, 25, 0}}
	if !slices.Equal(n.Dims, want) || n.NPUs() != 64 {
		t.Errorf("got %v, expected %v", n.Dims, want)
	}
	w.expect(t, `n.yml:9: unknown key "nics"`)
}

// TestReadOddYAML reads unusual network files.
func TestReadOddYAML(t *testing.T) {
	want := []Dim{{Ring, 4, 50, 500}, {Switch, 4, 50, 500}}
	for _, text := range []string{
		"\ufefftopology: [Ring, Switch]\nnpus_count: [4, 4]\nbandwidth: [50, 50]\nlatency: [500, 500]\n",
		"topology: [Ring, Switch]\r\nnpus_count: [&n 4, *n]\r\nbandwidth: [50, 50]\r\nlatency: &l [500, 500]\r\n",
		"topology: [Ring, Switch]\nnpus_count: &a [4, 4]\nbandwidth: &a [50, 50]\nlatency: [&b 500, *b]\n",
		"--- &all\ntopology: [Ring, Switch]\nlatency: &x [500, &y 500]\nbandwidth: [&x 50, *x]\nnpus_count: [&y 4, *y]\n",
	} {
		var w warnings
		n, err := ReadNetwork([]byte(text), "n.yml", w.add)
		if err != nil || !slices.Equal(n.Dims, want) {
			t.Errorf("%q: got %v, %v", text, n.Dims, err)
		}
		w.expect(t)
	}
	same := "topology: &t [Ring, Ring]\nnpus_count: &a [4, 4]\nbandwidth: *a\nlatency: *a\nagain: *t\n"
	var w warnings
	n, err := ReadNetwork([]byte(same), "n.yml", w.add)
	if err != nil || !slices.Equal(n.Dims, []Dim{{Ring, 4, 4, 4}, {Ring, 4, 4, 4}}) {
		t.Errorf("%q: got %v, %v", same, n.Dims, err)
	}
	w.expect(t, `n.yml:5: unknown key "again"`)
}

func TestReadNetworkErrors(t *testing.T) {
	lines := func(topology, npus, bandwidth, latency string) string {
		return "topology: " + topology + "\nnpus_count: " + npus + "\nbandwidth: " + bandwidth + "\nlatency: " + latency
	}
	for _, c := range []struct{ text, want string }{
		{"", "n.yml: expected a mapping, found nothing"},
		{"[1]", "n.yml:1: expected a mapping, found sequence"},
		{"a: [1", "n.yml:1: "},
		{"topology: [Ring]", "n.yml: expected a key npus_count, found none"},
		{lines("Ring", "[4]", "[1]", "[1]"), "n.yml:1: topology: expected a list, found Ring"},
		{lines("[[Ring]]", "[4]", "[1]", "[1]"), "n.yml:1: topology: expected plain values, found sequence"},
		{lines("[Torus]", "[4]", "[1]", "[1]"), "n.yml:1: topology: expected one of Ring, FullyConnected, Switch, found Torus"},
		{lines("[]", "[]", "[]", "[]"), "n.yml:1: topology: expected at least one dimension, found none"},
		{lines("[Ring, Ring]", "[4]", "[1, 1]", "[1, 1]"),
			"n.yml:2: npus_count: expected 2 values, as many as topology has, found 1"},
		{lines("[Ring]", "&n [4]", "[*m]", "[1]"), "n.yml:3: bandwidth: expected plain values, found alias"},
		{lines("[Ring]", "*n", "&n [4]", "[1]"), "n.yml:2: npus_count: expected plain values, found alias"},
		{lines("[Ring]", "&n [*n]", "[4]", "[1]"), "n.yml:2: npus_count: expected plain values, found sequence"},
		{lines("[Ring]", "[1]", "[1]", "[1]"), "n.yml:2: npus_count: expected a whole number of 2 or more, found 1"},
		{lines("[Ring]", "[4.0]", "[1]", "[1]"), "n.yml:2: npus_count: expected a whole number of 2 or more, found 4.0"},
		{lines("[Ring]", "[-4]", "[1]", "[1]"), "n.yml:2: npus_count: expected a whole number of 2 or more, found -4"},
		{lines("[Ring]", "[4]", "[0]", "[1]"), "n.yml:3: bandwidth: expected a number above 0, found 0"},
		{lines("[Ring]", "[4]", "[.inf]", "[1]"), "n.yml:3: bandwidth: expected plain values, found inf"},
		{lines("[Ring]", "[4]", "[1e999]", "[1]"), "n.yml:3: bandwidth: expected a number above 0, found 1e999"},
		{lines("[Ring]", "[4]", "[fast]", "[1]"), "n.yml:3: bandwidth: expected a number above 0, found fast"},
		{lines("[Ring]", "[4]", "[1]", "[-1]"), "n.yml:4: latency: expected a number of 0 or more, found -1"},
		{lines("[Ring, Ring]", "[65536, 65536]", "[1, 1]", "[1, 1]"), "n.yml:2: npus_count: expected at most 16777216 NPUs"},
		{strings.Repeat("- ", 1e4), "n.yml: expected lines of at most"},
		{strings.Repeat("[\n", 1e4), "n.yml: expected at most 1000 opening brackets"},
		{strings.Repeat("a\n", 1e6), "n.yml: expected a file of at most"},
	} {
		var w warnings
		_, err := ReadNetwork([]byte(c.text), "n.yml", w.add)
		if err == nil || !strings.HasPrefix(err.Error(), c.want) {
			t.Errorf("%.60q: got %v, expected %s", c.text, err, c.want)
		}
	}
}

func TestParseNetwork(t *testing.T) {
	for _, c := range []struct {
		text string
		want []Dim
		as   string // as it is written, where that is different
	}{
		{"Ring(4)_FullyConnected(2)_Switch(8)@100,50,25GB/s,50,500,1000ns",
			[]Dim{{Ring, 4, 100, 50}, {FullyConnected, 2, 50, 500}, {Switch, 8, 25, 1000}},
			"Ring(4)_FullyConnected(2)_Switch(8)@100,50,25GiB/s,50,500,1000ns"},
		{"R(4)_FC(2)_SW(8)@100GB/s,0.5ns", []Dim{{Ring, 4, 100, 0.5}, {FullyConnected, 2, 100, 0.5}, {Switch, 8, 100, 0.5}},
			"Ring(4)_FullyConnected(2)_Switch(8)@100GiB/s,0.5ns"},
		{"FC(2)_FC(3)@1e3GB/s,0,1ns", []Dim{{FullyConnected, 2, 1000, 0}, {FullyConnected, 3, 1000, 1}},
			"FullyConnected(2)_FullyConnected(3)@1000GiB/s,0,1ns"},
		{"R(4)_SW(8)@8.589934592Gbps,2GiB/s,1,2us", []Dim{{Ring, 4, 1, 1000}, {Switch, 8, 2, 2000}},
			"Ring(4)_Switch(8)@1,2GiB/s,1000,2000ns"},
		{"R(4)@400Gb/s,500ps", []Dim{{Ring, 4, 5e10 / (1 << 30), 0.5}}, "Ring(4)@46.566128730773926GiB/s,0.5ns"},
	} {
		n, err := ParseNetwork(c.text)
		if err != nil || !slices.Equal(n.Dims, c.want) {
			t.Errorf("%s: got %v, %v", c.text, n.Dims, err)
			continue
		}
		if n.String() != c.as {
			t.Errorf("%s: written as %s, expected %s", c.text, n, c.as)
		}
	}
	for _, c := range []struct{ text, want string }{
		{"", "expected @"},
		{"Ring(4)", "expected @"},
		{"@1GB/s,1ns", "expected a dimension such as Ring(4)"},
		{"Ring(4)_@1GB/s,1ns", "expected a dimension such as Ring(4)"},
		{"Ring(1)@1GB/s,1ns", "expected a dimension such as Ring(4) with at least 2 NPUs"},
		{"Ring(4@1GB/s,1ns", "expected a dimension such as Ring(4)"},
		{"Torus(4)@1GB/s,1ns", "expected Ring (R), FullyConnected (FC) or Switch (SW)"},
		{"Ring(4)@1GB/s", "expected bandwidths and latencies"},
		{"Ring(4)@1GB/s1ns", `expected a number, found "1GB/s1ns"`},
		{"Ring(4)@1ns,1GB/s", "expected bandwidths and latencies"},
		{"Ring(4)@1GB/s,1ns,1GB/s", "expected bandwidths and latencies"},
		{"Ring(4)@1GB/s,1", "expected bandwidths and latencies"},
		{"Ring(4)@1GB,1ns", `expected a unit such as GB/s, Gbps, ns or us, found "GB"`},
		{"Ring(4)@1ns/B,1ns", `expected a unit such as GB/s, Gbps, ns or us, found "ns/B"`},
		{"Ring(4)@1TB/s,1ns", "expected bandwidths in GB/s, which is 2^30 bytes per second"},
		{"Ring(4)@1e308Tbps,1ns", "expected a bandwidth above 0"},
		{"Ring(4)@1GB/s,1e308s", "expected a latency of at least 0"},
		{"Ring(4)@1,2GB/s,1ns", "bandwidth: expected 1 number, found 2"},
		{"Ring(4)_FC(2)@1,2,3GB/s,1ns", "bandwidth: expected 1 number or 2, found 3"},
		{"Ring(4)@0GB/s,1ns", "expected a bandwidth above 0"},
		{"Ring(4)@infGB/s,1ns", `expected a number, found "infGB/s"`},
		{"Ring(4)@1GB/s,-1ns", "expected a latency of at least 0"},
		{"Ring(65536)_Ring(65536)@1GB/s,1ns", "expected at most 16777216 NPUs"},
	} {
		if _, err := ParseNetwork(c.text); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: got %v, expected %s", c.text, err, c.want)
		}
	}
}

func TestReadSystem(t *testing.T) {
	for _, c := range []struct {
		text string
		want SystemFile
		warn []string
	}{
		{`{"scheduling-policy": "EXPLICIT", "collective-optimization": "localBWAware", "preferred-dataset-splits": 4,
			"active-chunks-per-dimension": 2, "endpoint-delay": 3.9, "local-mem-bw": 1.5, "boost-mode": 0,
			"all-reduce-implementation": ["ring", "direct", "direct17", "halvingDoubling", "doubleBinaryTree"],
			"all-gather-implementation": ["oneRing"], "reduce-scatter-implementation": ["oneDirect"],
			"all-to-all-implementation": ["oneDirect3", "ring"]}`,
			SystemFile{System: System{
				Scheduling: Explicit, LocalBWAware: true, Splits: 4, ActiveChunks: 2, Queues: 1, EndpointDelay: 3, LocalMemBW: 1.5,
				Implementations: [numCollectives][]Algorithm{
					AllReduce: {{Name: RingAlgorithm}, {Name: Direct}, {Name: Direct, Window: 17}, {Name: HalvingDoubling},
						{Name: DoubleBinaryTree}},
					AllGather:     {{Name: RingAlgorithm, One: true}},
					ReduceScatter: {{Name: Direct, One: true}},
					AllToAll:      {{Name: Direct, One: true, Window: 3}},
				},
			}, ownDelay: true},
			[]string{"s.json:2: endpoint-delay: 3.9 is truncated to 3", "s.json:5: all-to-all-implementation: entries after oneDirect3"},
		},
		{"{}", SystemFile{System: System{Splits: 1, ActiveChunks: 1, Queues: 1, EndpointDelay: 10}},
			[]string{"collective-optimization is missing", "preferred-dataset-splits is missing"}},
		{"\ufeff" + `{"collective-optimization": "baseline", "preferred-dataset-splits": 1,
			"reduce-scatter-implementation": ["ring"]}`,
			SystemFile{System: System{Splits: 1, ActiveChunks: 1, Queues: 1, EndpointDelay: 10,
				Implementations: [numCollectives][]Algorithm{ReduceScatter: {{Name: RingAlgorithm}}}}},
			[]string{"s.json: local-mem-bw is missing; the default is 0: reductions take no time"}},
		{`{"collective-optimization": "baseline", "preferred-dataset-splits": 1, "replay-only": 1,
			"all-reduce-implementation": ["ring"]}`,
			SystemFile{System: System{Splits: 1, ActiveChunks: 1, Queues: 1, EndpointDelay: 10, ReplayOnly: true,
				Implementations: [numCollectives][]Algorithm{AllReduce: {{Name: RingAlgorithm}}}}}, nil},
		{`{"collective-optimization": "baseline", "preferred-dataset-splits": 1, "all-gather-implementation": ["ring"]}`,
			SystemFile{System: System{Splits: 1, ActiveChunks: 1, Queues: 1, EndpointDelay: 10,
				Implementations: [numCollectives][]Algorithm{AllGather: {{Name: RingAlgorithm}}}}}, nil},
		{`{"collective-optimization": "baseline", "preferred-dataset-splits": 1,
			"model-shared-bus": 1, "L": 5.7, "o": 1, "g": 2, "G": 0.1, "local-reduction-delay": 4,
			"roofline-enabled": true, "peak-perf": 312, "local-mem-bw": 2039, "track-local-mem": 1,
			"all-reduce-implementation-custom": ["x/y"], "per-node-custom-implementation": "nodes.yml",
			"inter-dimension-scheduling": "offlineGreedyFlex", "intra-dimension-scheduling": "SCF"}`,
			SystemFile{
				System: System{Splits: 1, ActiveChunks: 1, Queues: 1, EndpointDelay: 10, LocalMemBW: 2039, Roofline: true,
					PeakPerf: 312, InterDimension: ThemisFlex,
					IntraDimension: SmallestFirst,
					SharedBus:      &SharedBus{L: 5, O: 1, G: 2, GPerByte: float64(float32(0.1)), ReductionDelay: 4}},
				CustomTraces: [numCollectives]string{AllReduce: "x/y"}, CustomNodesFile: "nodes.yml",
				LocalMemTrace: "local_mem_trace",
			}, nil},
		{`{"collective-optimization": "baseline", "preferred-dataset-splits": 1, "boost-mode": 1, "trace-enabled": 1,
			"L": 5, "peak-perf": 3, "local-mem-trace-filename": "x",
			"Comment": "x", "active-chunks-per-dimension": 3, "active-chunks-per-dimension": 2}`,
			SystemFile{System: System{Splits: 1, ActiveChunks: 2, Queues: 1, EndpointDelay: 10}},
			[]string{`s.json:3: duplicate key "active-chunks-per-dimension", first in line 3`,
				"s.json:2: peak-perf: has no effect without roofline-enabled",
				"s.json:2: L: has no effect without model-shared-bus",
				"s.json:2: local-mem-trace-filename: has no effect without track-local-mem",
				"s.json:1: boost-mode: not supported", "s.json:1: trace-enabled: not supported",
				`s.json:3: unknown key "Comment" is ignored`}},
	} {
		var w warnings
		s, err := ReadSystem([]byte(c.text), "s.json", w.add)
		if err != nil {
			t.Errorf("%s: %v", c.text, err)
			continue
		}
		if !reflect.DeepEqual(*s, c.want) {
			t.Errorf("%s: got %+v, expected %+v", c.text, *s, c.want)
		}
		w.expect(t, c.warn...)
	}
}

func TestReadSystemErrors(t *testing.T) {
	for _, c := range []struct{ text, want string }{
		{"", "s.json:1: expected a JSON object, found the end of the file"},
		{"[]", "s.json:1: expected a JSON object, found ["},
		{"{\n\"a\": }", "s.json:2: expected a value of \"a\": "},
		{"{\n\"a\": 1", "s.json:2: expected the end of the object, found the end of the file"},
		{"{\n\"a\": [1", "s.json:2: expected a value of \"a\", found the end of the file"},
		{"{} {}", "s.json:1: expected nothing after the object, found \"{}\""},
		{`{"scheduling-policy": "lifo"}`, "s.json:1: scheduling-policy: expected one of LIFO, FIFO, EXPLICIT, found \"lifo\""},
		{`{"scheduling-policy": 1}`, "s.json:1: scheduling-policy: expected a string, found 1"},
		{`{"collective-optimization": null}`, "s.json:1: collective-optimization: expected a string, found null"},
		{`{"preferred-dataset-splits": 0}`, "s.json:1: preferred-dataset-splits: expected a number from 1 to 1048576, found 0"},
		{`{"preferred-dataset-splits": 0.5}`, "s.json:1: preferred-dataset-splits: expected a number from 1"},
		{`{"preferred-dataset-splits": 1e300}`, "s.json:1: preferred-dataset-splits: expected a number from 1"},
		{`{"preferred-dataset-splits": 1e400}`, "s.json:1: preferred-dataset-splits: expected a number from 1"},
		{`{"replay-only": "1"}`, `s.json:1: replay-only: expected 0 or 1, found "1"`},
		{`{"model-shared-bus": "1"}`, `s.json:1: model-shared-bus: expected 0 or 1, found "1"`},
		{`{"endpoint-delay": -1}`, "s.json:1: endpoint-delay: expected a number from 0"},
		{`{"endpoint-delay": "1"}`, "s.json:1: endpoint-delay: expected a number from 0"},
		{`{"all-reduce-implementation": "ring"}`, "s.json:1: all-reduce-implementation: expected a list of strings"},
		{`{"all-reduce-implementation": []}`, "s.json:1: all-reduce-implementation: expected at least one string"},
		{`{"all-reduce-implementation": ["direct0"]}`, "s.json:1: all-reduce-implementation: expected ring, direct,"},
		{`{"all-reduce-implementation": ["ring3"]}`, "s.json:1: all-reduce-implementation: expected ring, direct,"},
		{`{"all-reduce-implementation": ["oneDoubleBinaryTree"]}`, "s.json:1: all-reduce-implementation: expected ring,"},
		{`{"all-reduce-implementation": ["direct99999999999999999999"]}`, "s.json:1: all-reduce-implementation: expected"},
		{`{"all-reduce-implementation-custom": ["a", "b"]}`, "s.json:1: all-reduce-implementation-custom: expected a list with one"},
		{`{"inter-dimension-scheduling": "Themis"}`, "s.json:1: inter-dimension-scheduling: expected one of baseline"},
		{`{"roofline-enabled": 1, "local-mem-bw": 5}`, "s.json: peak-perf: expected a number above 0"},
		{`{"roofline-enabled": 1, "peak-perf": 5, "local-mem-bw": 0}`, "s.json:1: local-mem-bw: expected a number above 0"},
		{strings.Repeat(" ", 1<<21), "s.json: expected a configuration file of at most"},
	} {
		var w warnings
		if _, err := ReadSystem([]byte(c.text), "s.json", w.add); err == nil || !strings.HasPrefix(err.Error(), c.want) {
			t.Errorf("%.80q: got %v, expected %s", c.text, err, c.want)
		}
	}
}

func TestSystemFor(t *testing.T) {
	network, err := ParseNetwork("Ring(4)_Switch(6)@100GB/s,1ns")
	if err != nil {
		t.Fatal(err)
	}
	all := func(Collective) bool { return true }
	for _, c := range []struct {
		implementations string // all-reduce
		uses            func(Collective) bool
		warn            []string
		left            int
	}{
		{"ring direct", all, nil, 2},
		{"ring", all, []string{"has 1 entries, but the network has 2 dimensions: NPUs that differ in the others (1) take no part"}, 1},
		{"oneRing", all, nil, 1},
		{"ring oneRing", all, nil, 2},
		{"ring direct ring", all, []string{"has 3 entries, but the network has 2 dimensions: the last 1 have no effect"}, 2},
		{"halvingDoubling halvingDoubling", all, []string{"needs a power of two of NPUs, but dimension 1 has 6"}, 2},
		{"oneHalvingDoubling", all, []string{"needs a power of two of NPUs, but the network has 24"}, 1},
		{"ring direct ring", func(c Collective) bool { return c != AllReduce }, nil, 2},
	} {
		var s System
		for _, name := range strings.Fields(c.implementations) {
			a, err := parseAlgorithm(name)
			if err != nil {
				t.Fatal(err)
			}
			s.Implementations[AllReduce] = append(s.Implementations[AllReduce], a)
		}
		s.ActiveChunks, s.Queues = 1, 1
		var w warnings
		fitted := s.For(&network, c.uses, w.add)
		w.expect(t, c.warn...)
		if got := len(fitted.Implementations[AllReduce]); got != c.left {
			t.Errorf("%s: %d are left, expected %d", c.implementations, got, c.left)
		}
	}
	var w warnings
	s := System{ActiveChunks: 2, Queues: 1}
	s.Implementations[AllToAll] = []Algorithm{{Name: HalvingDoubling}, {Name: DoubleBinaryTree}}
	square := Network{Dims: []Dim{{Ring, 4, 1, 1}, {Ring, 4, 1, 1}}}
	s.For(&square, all, w.add)
	w.expect(t, "halvingDoubling does not support all-to-all", "doubleBinaryTree does not support all-to-all",
		"up to 2 chunks run concurrently")
	square.Aware = true
	w = nil
	s.For(&square, func(Collective) bool { return false }, w.add)
	w.expect(t)
}

// TestDefaultSystem checks that there is nothing to warn about.
func TestDefaultSystem(t *testing.T) {
	network, err := ParseNetwork("Ring(3)_Switch(6)_FC(5)_Switch(8)@100GB/s,1ns")
	if err != nil {
		t.Fatal(err)
	}
	var w warnings
	s := DefaultSystem(&network).For(&network, func(Collective) bool { return true }, w.add)
	w.expect(t)
	if got := fmt.Sprint(s.Implementations[AllReduce]); got != "[ring direct direct halvingDoubling]" {
		t.Errorf("got %s", got)
	}
}

func TestScaleInjection(t *testing.T) {
	for _, c := range []struct {
		text  string
		scale float64
		want  int64
	}{{`{"endpoint-delay": 7}`, 1.5, 10}, {`{"endpoint-delay": 7}`, 0, 0}, {`{}`, 1.5, 10}} {
		s, err := ReadSystem([]byte(c.text), "s.json", new(warnings).add)
		if err != nil {
			t.Fatal(err)
		}
		if err := s.ScaleInjection(c.scale); err != nil || s.EndpointDelay != c.want {
			t.Errorf("%s scaled by %v: got %d, %v", c.text, c.scale, s.EndpointDelay, err)
		}
	}
	s := SystemFile{System: System{EndpointDelay: 7}, ownDelay: true}
	for _, scale := range []float64{-1, 1e10, math.NaN()} {
		if err := s.ScaleInjection(scale); err == nil {
			t.Errorf("scaled by %v: got %d", scale, s.EndpointDelay)
		}
	}
}

func TestReadCustomNodes(t *testing.T) {
	nodes, err := ReadCustomNodes([]byte("3: a/b\n18446744073709551615: \"c d\"\n"), "c.yml")
	want := map[uint64]string{3: "a/b", 1<<64 - 1: "c d"}
	if err != nil || !reflect.DeepEqual(nodes, want) {
		t.Errorf("got %v, %v", nodes, err)
	}
	for _, c := range []struct{ text, want string }{
		{"a: b", "c.yml:1: expected an op number, found a"},
		{"1: b\n2: [c]", "c.yml:2: 2: expected the file prefix of a trace, found a list"},
		{"1: b\n1: c", "c.yml:2: "},
	} {
		if _, err := ReadCustomNodes([]byte(c.text), "c.yml"); err == nil || !strings.HasPrefix(err.Error(), c.want) {
			t.Errorf("%q: got %v, expected %s", c.text, err, c.want)
		}
	}
}

func TestReadMemory(t *testing.T) {
	for _, c := range []struct {
		text string
		want Memory
		warn []string
	}{
		{`{"memory-type": "NO_MEMORY_EXPANSION"}`, Memory{}, nil},
		{`{"memory-type": "PER_NPU_MEMORY_EXPANSION", "remote-mem-latency": 100.5, "remote-mem-bw": 7, "num-nodes": 2, "x": 1}`,
			Memory{Kind: PerNPU, Latency: 100, Bandwidth: 7}, []string{"remote-mem-latency: 100.5 is truncated to 100",
				"num-nodes: has no effect with PER_NPU_MEMORY_EXPANSION", `unknown key "x"`}},
		{`{"memory-type": "PER_NODE_MEMORY_EXPANSION", "num-nodes": 2, "num-npus-per-node": 4, "remote-mem-latency": 100,
			"remote-mem-bw": 100}`, Memory{Kind: PerNode, Latency: 100, Bandwidth: 100, Nodes: 2, NPUsPerNode: 4}, nil},
		{`{"memory-type": "MEMORY_POOL", "remote-mem-bw": 100}`, Memory{Kind: Pool, Bandwidth: 100},
			[]string{"m.json: remote-mem-latency is missing; the default is 0"}},
		{`{"memory-type": "LOCAL", "bandwidth": 100}`, Memory{Kind: Local, Bandwidth: 100},
			[]string{"m.json: latency is missing; the default is 0"}},
		{`{"memory-type": "LOCAL", "latency": 0.5, "bandwidth": 2.5}`, Memory{Kind: Local, Latency: 0.5, Bandwidth: 2.5}, nil},
		{`{"memory-type": "HIERARCHICAL_POOL", "num-nodes": 16, "num-npus-per-node": 8, "num-out-node-switches": 4,
			"num-remote-memory-groups": 2, "chunk-size": 1048576, "mem-side-bw": 100, "gpu-side-bw": 50.5, "in-node-bw": 256,
			"remote-mem-latency": 12.5, "in-switch": 1}`,
			Memory{Kind: HierarchicalPool, Latency: 12.5, Nodes: 16, NPUsPerNode: 8, Hierarchical: &HierarchicalMemory{
				Switches: 4, Groups: 2, ChunkSize: 1 << 20, MemSideBW: 100, GPUSideBW: 50.5, InNodeBW: 256, InSwitch: true}}, nil},
	} {
		var w warnings
		m, err := ReadMemory([]byte(c.text), "m.json", w.add)
		if err != nil || !reflect.DeepEqual(m, c.want) {
			t.Errorf("%s: got %+v, %v", c.text, m, err)
		}
		w.expect(t, c.warn...)
	}
	for _, c := range []struct{ text, want string }{
		{`{}`, "m.json: memory-type: expected one of NO_MEMORY_EXPANSION, PER_NPU_MEMORY_EXPANSION, PER_NODE_MEMORY_EXPANSION, MEMORY_POOL, HIERARCHICAL_POOL, LOCAL, MULTILEVEL_SWITCH_POOL, RING_POOL, MESH_POOL, found nothing"},
		{`{"memory-type": "POOL", "remote-mem-bw": 1, "x": 2}`, "m.json:1: memory-type: expected one of NO_MEMORY_EXPANSION, "},
		{`{"memory-type": "MEMORY_POOL"}`, "m.json: remote-mem-bw: expected a number, found nothing"},
		{`{"memory-type": "MEMORY_POOL", "remote-mem-bw": 0.5}`, "m.json:1: remote-mem-bw: expected a number from 1 to"},
		{`{"memory-type": "PER_NODE_MEMORY_EXPANSION", "remote-mem-bw": 1, "num-nodes": 2}`,
			"m.json: num-npus-per-node: expected a number, found nothing"},
		{`{"memory-type": "LOCAL", "bandwidth": 0}`, "m.json:1: bandwidth: expected a number above 0, found 0"},
		{`{"memory-type": "HIERARCHICAL_POOL"}`, "m.json: num-nodes: expected a number, found nothing"},
	} {
		var w warnings
		if _, err := ReadMemory([]byte(c.text), "m.json", w.add); err == nil || !strings.HasPrefix(err.Error(), c.want) {
			t.Errorf("%s: got %v, expected %s", c.text, err, c.want)
		}
		w.expect(t)
	}
}

func TestMemoryCheck(t *testing.T) {
	for _, c := range []struct {
		memory Memory
		npus   int
		good   bool
	}{
		{Memory{Kind: Pool}, 7, true},
		{Memory{Kind: PerNode, Nodes: 2, NPUsPerNode: 4}, 7, true},
		{Memory{Kind: PerNode, Nodes: 2, NPUsPerNode: 4}, 9, false},
		{Memory{Kind: HierarchicalPool, Nodes: 2, NPUsPerNode: 4}, 8, true},
		{Memory{Kind: HierarchicalPool, Nodes: 2, NPUsPerNode: 4}, 7, false},
	} {
		if err := c.memory.Check(c.npus); (err == nil) != c.good {
			t.Errorf("%v for %d NPUs: %v", c.memory.Kind, c.npus, err)
		}
	}
}

func FuzzReadNetwork(f *testing.F) {
	f.Add([]byte("topology: [ Ring, Switch ]\nnpus_count: [ 4, 2 ]\nbandwidth: [ 100.0, 50 ]\nlatency: [ 50, 500 ] # ns\n"))
	f.Add([]byte("topology:\n- Ring\nnpus_count: &a [4]\nbandwidth: *a\nlatency: {a: 1}\n---\n"))
	f.Fuzz(func(t *testing.T, text []byte) {
		n, err := ReadNetwork(text, "f", new(warnings).add)
		if err != nil {
			return
		}
		again, err := ParseNetwork(n.String())
		if err != nil || !slices.Equal(n.Dims, again.Dims) {
			t.Errorf("%v is read as %v, %v", n, again, err)
		}
	})
}

func FuzzParseNetwork(f *testing.F) {
	f.Add("Ring(4)_FC(2)_Switch(8)@100,50,25GB/s,50,500,1000ns")
	f.Fuzz(func(t *testing.T, text string) {
		n, err := ParseNetwork(text)
		if err != nil {
			return
		}
		if again, err := ParseNetwork(n.String()); err != nil || !slices.Equal(n.Dims, again.Dims) {
			t.Errorf("%v is read as %v, %v", n, again, err)
		}
	})
}

func FuzzReadSystem(f *testing.F) {
	f.Add([]byte(`{"all-reduce-implementation": ["ring", "direct3"], "endpoint-delay": 3.9, "roofline-enabled": 1, "peak-perf": 2}`))
	f.Add([]byte(`{"model-shared-bus": 1, "G": 1e38, "track-local-mem": true, "x": [{}]}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		s, err := ReadSystem(text, "f", new(warnings).add)
		if err == nil && (s.Splits < 1 || s.ActiveChunks < 1 || s.EndpointDelay < 0) {
			t.Errorf("got %+v", s)
		}
	})
}

func FuzzReadMemory(f *testing.F) {
	f.Add([]byte(`{"memory-type": "MEMORY_POOL", "remote-mem-latency": 1, "remote-mem-bw": 100}`))
	f.Add([]byte(`{"memory-type": "HIERARCHICAL_POOL", "num-nodes": 1, "num-npus-per-node": 8, "num-out-node-switches": 4,
		"num-remote-memory-groups": 2, "chunk-size": 1, "mem-side-bw": 1e-9, "gpu-side-bw": 50.5, "in-node-bw": 256}`))
	f.Add([]byte(`{"memory-type": "MULTILEVEL_SWITCH_POOL", "levels": 2, "radix": [2, 4], "bw": [1, 2.5, 1e-9],
		"chunk-size": 7, "in-switch": 1}`))
	f.Add([]byte(`{"memory-type": "RING_POOL", "num-remote-memory-groups": 3, "link-bw": 2, "chunk-size": 10}`))
	f.Add([]byte(`{"memory-type": "MESH_POOL", "mesh-columns": 4, "mesh-rows": 2, "memory-columns": "both", "link-bw": 2,
		"chunk-size": 10}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		m, err := ReadMemory(text, "f", new(warnings).add)
		if err != nil || m.Kind == NoExpansion || m.Check(8) != nil {
			return
		}
		for _, bytes := range []int64{0, 1, 1 << 40} {
			if m.accessTime(bytes, 0) < 0 {
				t.Errorf("%+v: %d bytes take %d ns", m, bytes, m.accessTime(bytes, 0))
			}
		}
	})
}

func FuzzReadCustomNodes(f *testing.F) {
	f.Add([]byte("1: a\n2: b/c\n"))
	f.Fuzz(func(t *testing.T, text []byte) {
		if _, err := ReadCustomNodes(text, "f"); err != nil && !strings.HasPrefix(err.Error(), "f:") {
			t.Errorf("%v", err)
		}
	})
}

// TestNilWarn reads files that cause warnings, without a warn function.
func TestNilWarn(t *testing.T) {
	n, err := ReadNetwork([]byte("topology: [Ring]\nnpus_count: [6]\nbandwidth: [50]\nlatency: [500]\nnics: 3\n"), "n.yml", nil)
	if err != nil {
		t.Error(err)
	}
	f, err := ReadSystem([]byte(`{"all-reduce-implementation": ["halvingDoubling", "ring"], "nics": 3}`), "s.json", nil)
	if err != nil {
		t.Fatal(err)
	}
	f.System.For(&n, func(Collective) bool { return true }, nil)
	if _, err := ReadMemory([]byte(`{"memory-type": "NO_MEMORY_EXPANSION", "nics": 3}`), "m.json", nil); err != nil {
		t.Error(err)
	}
}
