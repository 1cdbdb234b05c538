package simulate

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/tracedag/tracedag/internal/cli/clitest"
	"github.com/tracedag/tracedag/internal/golden"
	"github.com/tracedag/tracedag/sim/flit"
	"github.com/tracedag/tracedag/sim/measure"
)

// smallDragonfly is the preset of the dragonfly with packets of 8 flits.
var smallDragonfly = []string{"--backend", "flit", "--preset", "graph500-dragonfly",
	"--topology", "dragonfly:p=2,a=4,h=2,latency=8ns,globallatency=80ns",
	"--set", "packet-flits=8,injection-buffer=256,local-buffer=32,global-buffer=256,output-buffer=32,pipeline=3"}

// flitJSON is a result of the backend, of a trace or of synthetic traffic.
type flitJSON struct {
	Backend  string
	Model    string
	Complete bool
	Params   flit.Params
	Traffic  flit.Traffic
	Makespan int64   `json:"makespan_ps"`
	Finish   []int64 `json:"finish_ps"`
	Accepted float64 `json:"accepted_load"`
	Error    string
	Stats    struct {
		Cycles, Flits, Packets, Messages uint64
		FlitLatency                      float64                      `json:"flit_latency"`
		Network                          float64                      `json:"flit_network_latency"`
		Packet                           measure.Distribution[uint64] `json:"packet_latency"`
		Links                            jsonTable
		Use                              jsonTable `json:"link_use"`
		VCs                              []flit.VCReport
		Stalls                           []flit.StallReport
	} `json:"backend_stats"`
}

// messagesGOAL writes a trace of messages, each from one rank to another, and returns its name.
func messagesGOAL(t *testing.T, bytes string, pairs ...[2]int) string {
	t.Helper()
	ranks := 0
	for _, p := range pairs {
		ranks = max(ranks, p[0]+1, p[1]+1)
	}
	names := strings.Split("0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15", " ")
	var b strings.Builder
	b.WriteString("num_ranks " + names[ranks] + "\n")
	for r := range ranks {
		b.WriteString("rank " + names[r] + " {\n")
		for i, p := range pairs {
			if p[0] == r {
				b.WriteString("s" + names[i] + ": send " + bytes + "b to " + names[p[1]] + "\n")
			}
			if p[1] == r {
				b.WriteString("r" + names[i] + ": recv " + bytes + "b from " + names[p[0]] + "\n")
			}
		}
		b.WriteString("}\n")
	}
	path := filepath.Join(t.TempDir(), "x.goal")
	if err := os.WriteFile(path, []byte(b.String()), 0o666); err != nil {
		t.Fatal(err)
	}
	return path
}

// flitRun runs a trace, and returns its result.
func flitRun(t *testing.T, args ...string) (d flitJSON) {
	t.Helper()
	r := clitest.Run(newCommand, append([]string{"--backend", "flit", "--json"}, args...)...)
	if err := json.Unmarshal([]byte(r.Stdout), &d); err != nil {
		t.Fatalf("%v: status %d, %s", err, r.Status, r.Stderr)
	}
	return d
}

// TestFlitPresets runs a message on each preset, whose times are those of the rules.
func TestFlitPresets(t *testing.T) {
	// 8 flits: the head takes a cycle on the link, one for the router and one on the next link.
	d := flitRun(t, messagesGOAL(t, "128", [2]int{0, 1}))
	if !d.Complete || d.Model != "minimal" || d.Makespan != 10_000 || d.Stats.Cycles != 10 || d.Stats.Flits != 8 ||
		d.Stats.FlitLatency != 6.5 || d.Stats.Network != 6.5 || d.Stats.Packet.Mean != 10 {
		t.Errorf("vef-switch: got %+v", d)
	}
	// One packet of 1024 flits to the same router: 1 + 200 + 1024 cycles, of which the receive waits for the first flit
	// only.
	d = flitRun(t, "--preset", "graph500-dragonfly", messagesGOAL(t, "100", [2]int{0, 1}))
	if !d.Complete || d.Stats.Packets != 1 || d.Stats.Flits != 1024 || d.Stats.Packet.Mean != 1225 || d.Finish[1] != 201*800 {
		t.Errorf("graph500-dragonfly: got %+v", d)
	}
	if uses := d.Stats.Use.column("links"); !slices.Equal(uses, []float64{72, 108, 72}) || len(d.Stats.Links.Rows) != 252 {
		t.Errorf("%v links by kind, %d in all", uses, len(d.Stats.Links.Rows))
	}
	if len(d.Stats.VCs) != 3+4+2 || len(d.Stats.Stalls) != 5 {
		t.Errorf("%d virtual channels, %d causes of stalls", len(d.Stats.VCs), len(d.Stats.Stalls))
	}
}

func TestFlitFlags(t *testing.T) {
	trace := messagesGOAL(t, "100", [2]int{0, 1})
	preset, err := flit.FindPreset("graph500-dragonfly")
	if err != nil {
		t.Fatal(err)
	}
	want := preset.Params
	want.Cycle, want.Routing, want.Seed, want.Coupling.Overhead = 1000, flit.UGAL, 7, 2_000_000
	want.Pipeline, want.InputArbiter, want.TransitFirst, want.Threshold = 3, flit.RoundRobin, false, flit.Length{N: -4}
	want.PiggybackThreshold, want.RestrictionThreshold = flit.Length{N: 5 * 1024}, flit.Length{N: 5 * 1024}
	d := flitRun(t, "--preset", "graph500-dragonfly", "--routing", "ugal", "--seed", "7", "--o", "2us", "--set",
		"cycle=1ns,pipeline=3", "--set", "input-arbiter=rr,transit-first=off,ugal-threshold=-4", trace)
	if !reflect.DeepEqual(d.Params, want) {
		t.Errorf("got %+v, expected %+v", d.Params, want)
	}
}

// TestFlitParameters sets each parameter to its value in another preset and checks that it is in effect.
// TestFlitPlacement checks the placement of ranks by the makespan, or by the links that carry flits.
func TestFlitPlacement(t *testing.T) {
	pair := messagesGOAL(t, "128", [2]int{0, 1})
	dir := t.TempDir()
	hosts, links := filepath.Join(dir, "hosts"), filepath.Join(dir, "links.csv")
	if err := os.WriteFile(hosts, []byte("# one a line\n5\n5\n"), 0o666); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		args     []string
		makespan int64
		to       string // the host that has the receiver
	}{
		{nil, 10_000, "host1"},
		{[]string{"--cores", "2"}, 1_000, ""},
		{[]string{"--topology", "star:hosts=2", "--cores", "1"}, 10_000, "host1"},
		{[]string{"--placement", "strided:3"}, 10_000, "host3"},
		{[]string{"--placement", "nodes"}, 10_000, "host1"},
		{[]string{"--placement", hosts}, 1_000, ""},
		{[]string{"--placement", "random"}, 10_000, "host"},
	} {
		d := flitRun(t, append(c.args, "--ports", links, pair)...)
		if d.Makespan != c.makespan {
			t.Errorf("%v: makespan %d, expected %d", c.args, d.Makespan, c.makespan)
		}
		text, err := os.ReadFile(links)
		if err != nil {
			t.Fatal(err)
		}
		rows, err := csv.NewReader(bytes.NewReader(text)).ReadAll()
		if err != nil || len(rows) < 3 {
			t.Fatalf("%v: %v, %d rows", c.args, err, len(rows))
		}
		if busy := rows[1][3] != "0"; busy != (c.to != "") || !strings.HasPrefix(rows[1][1], c.to) {
			t.Errorf("%v: the busiest link is %v, expected one to %q", c.args, rows[1], c.to)
		}
	}
	// 9 ranks on 8 hosts: as few a host as are needed is two.
	if d := flitRun(t, messagesGOAL(t, "128", [2]int{0, 1}, [2]int{0, 8})); d.Stats.Packets != 1 || d.Stats.Messages != 1 {
		t.Errorf("got %+v", d.Stats)
	}
}

func TestFlitErrors(t *testing.T) {
	trace := messagesGOAL(t, "128", [2]int{0, 1}, [2]int{0, 8})
	ring := filepath.Join(t.TempDir(), "ring")
	var b strings.Builder
	for i, name := range []string{"0", "1", "2", "3", "4"} {
		next := []string{"1", "2", "3", "4", "0"}[i]
		b.WriteString("h" + name + " s" + name + " 100Gbps 1ns\ns" + name + " s" + next + " 100Gbps 1ns\n")
	}
	if err := os.WriteFile(ring, []byte(b.String()), 0o666); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		args   []string
		status int
		want   string
	}{
		{[]string{"--preset", "x"}, 2, `unknown preset "x"`},
		{[]string{"--routing", "x"}, 2, `unknown routing "x"`},
		{[]string{"--set", "x=1"}, 2, `found "x"`},
		{[]string{"--set", "pipeline"}, 2, `expected NAME=VALUE, found "pipeline"`},
		{[]string{"--set", "pipeline=0"}, 2, "pipeline: expected 1 to 65535, found 0"},
		{[]string{"--set", "pipeline=two"}, 2, `expected a whole number, found "two"`},
		{[]string{"--set", "pad-packets=1"}, 2, `expected on or off, found "1"`},
		{[]string{"--set", "input-arbiter=x"}, 2, `unknown arbiter "x"`},
		{[]string{"--set", "cycle=x"}, 2, "cycle"},
		{[]string{"--topology", "star:hosts=0"}, 1, "hosts"},
		{[]string{"--placement", "x"}, 2, `nodes or a file, found "x"`},
		{[]string{"--placement", "strided:0"}, 2, "strided"},
		{[]string{"--cores", "-1"}, 2, "--cores"},
		{[]string{"--cores", "1"}, 1, "9 ranks with 1 per host need 9 hosts, but the network has 8"},
		{[]string{"--placement", "nodes"}, 1, "rank 8 is on node 8, but the network has only 8 hosts"},
		{[]string{"--load", "0.5"}, 2, "--load needs --synthetic"},
		{[]string{"--transport", "ndp"}, 2, "--transport is for the packet backend, not for flit"},
		{[]string{"--timeline", "x.viz"}, 2, ".json or .json.gz or .pftrace"},
		{[]string{"--routing", "ugal"}, 1, "routing ugal is for dragonflies"},
		{[]string{"--topology", ring}, 1, "routing minimal may deadlock: s"},
		{[]string{"--synthetic", "uniform", "--topology", ring}, 1, "routing minimal may deadlock: s"},
		{[]string{"--synthetic", "x"}, 2, `unknown pattern "x"`},
		{[]string{"--synthetic", "uniform+1"}, 2, "uniform+1"},
		{[]string{"--synthetic", "uniform:1"}, 2, "uniform:1"},
		{[]string{"--synthetic", "adversarial+1"}, 2, "adversarial traffic needs a dragonfly"},
		{[]string{"--synthetic", "adversarial+9", "--preset", "graph500-dragonfly"}, 2, "expected I from 1 to 8, found 9"},
		{[]string{"--synthetic", "adversarial+x", "--preset", "graph500-dragonfly"}, 2, `found "x"`},
		{[]string{"--synthetic", "hotspot:2"}, 2, `expected a share of 0 to 1, found "2"`},
		{[]string{"--synthetic", "hotspot:0.1:x"}, 2, `found "x"`},
		{[]string{"--synthetic", "hotspot:0.1:8"}, 2, "expected hosts 0 to 7, found 8"},
		{[]string{"--synthetic", "uniform", "--load", "9"}, 2, `expected 0 to 8 flits per cycle and host, found "9"`},
		{[]string{"--synthetic", "uniform", "--load", "0..1"}, 2, "FROM..TO:N"},
		{[]string{"--synthetic", "uniform", "--warmup", "-1"}, 2, "--warmup"},
		{[]string{"--synthetic", "uniform", "--measure", "0"}, 2, "--measure"},
		{[]string{"--synthetic", "uniform", "--sweep", "seed=1,2"}, 2, "expected one load and one routing per point, found 10"},
		{[]string{"--synthetic", "uniform", "--json", "--csv"}, 2, "--json and --csv exclude each other"},
		{[]string{"--synthetic", "uniform", "--ports", "x.csv"}, 2, "--ports needs a single run"},
		{[]string{"--synthetic", "uniform", trace}, 2, "--synthetic needs no trace"},
	} {
		args := append([]string{"--backend", "flit"}, c.args...)
		if !slices.Contains(c.args, "--synthetic") {
			args = append(args, trace)
		}
		r := clitest.Run(newCommand, args...)
		if r.Status != c.status || !strings.Contains(r.Stderr, c.want) || strings.Count(r.Stderr, "\n") != 1 {
			t.Errorf("%v: status %d, %q, expected %d, %q", c.args, r.Status, r.Stderr, c.status, c.want)
		}
		if slices.Contains(c.args, ring) && strings.Count(r.Stderr, " -> ") != 5 {
			t.Errorf("%q does not name a cycle of 5 channels", r.Stderr)
		}
	}
}

// TestFlitSynthetic checks the tables of a small curve: the same whatever the threads.
func TestFlitSynthetic(t *testing.T) {
	args := append(slices.Clone(smallDragonfly), "--synthetic", "uniform", "--load", "0.1,0.4..0.8:3", "--warmup", "500", "--measure",
		"1000")
	var all strings.Builder
	for _, form := range [][]string{{"--csv=summary"}, nil, {"--json"}} {
		var first clitest.Result
		for _, threads := range []string{"1", "4"} {
			r := clitest.Run(newCommand, append(append(slices.Clone(args), "--threads", threads), form...)...)
			const few = "simulate: warning: only 931 packets were measured at load 0.1 (1 of 4 loads have fewer than 1000): means and " +
				"percentiles are unreliable; use --measure 2000\n"
			if r.Status != 0 || r.Stderr != few {
				t.Fatalf("%v: status %d, %s", form, r.Status, r.Stderr)
			}
			if threads == "1" {
				first = r
			} else if strings.ReplaceAll(r.Stdout, `"--threads","4"`, `"--threads","1"`) != first.Stdout {
				t.Errorf("%v: another result with %s threads", form, threads)
			}
		}
		if slices.Equal(form, []string{"--json"}) {
			checkSyntheticJSON(t, first.Stdout)
		} else {
			all.WriteString(first.Stdout)
		}
	}
	golden.Check(t, filepath.Join("testdata", "flit-synthetic.txt"), all.String())
}

func checkSyntheticJSON(t *testing.T, text string) {
	t.Helper()
	loads := []float64{0.1, 0.4, 0.6, 0.8}
	lines := strings.Split(strings.TrimSuffix(text, "\n"), "\n")
	if len(lines) != len(loads) {
		t.Fatalf("%d lines", len(lines))
	}
	for i, line := range lines {
		var d flitJSON
		if err := json.Unmarshal([]byte(line), &d); err != nil {
			t.Fatal(err)
		}
		if d.Backend != "flit" || d.Traffic.Load != loads[i] || d.Traffic.Warmup != 500 || d.Params.PacketFlits != 8 ||
			d.Accepted < 0.9*loads[i] || d.Accepted > 1.1*loads[i] {
			t.Errorf("got %+v", d)
		}
	}
}

// TestFlitPatterns runs each pattern once.
func TestFlitPatterns(t *testing.T) {
	for _, pattern := range []string{"uniform", "adversarial+3", "permutation", "hotspot:0.1:0", "hotspot:0.25:3,9"} {
		rows := rowsOf(t, append(slices.Clone(smallDragonfly), "--synthetic", pattern, "--load", "0.05", "--warmup", "500", "--measure",
			"2000", "--csv")...)
		name, _, _ := strings.Cut(strings.ReplaceAll(pattern, "+", ":"), ":")
		if len(rows) != 1 || rows[0]["status"] != "done" || rows[0]["factors"] != `{"load":"0.05"}` ||
			!strings.Contains(rows[0]["params"], `"traffic":{"pattern":"`+name+`",`) {
			t.Errorf("%s: %v", pattern, rows)
		}
	}
}

func TestFlitSweep(t *testing.T) {
	rows := rowsOf(t, "--backend", "flit", "--sweep", "pipeline=1,5;cycle=1ns,2ns", "--csv=summary", messagesGOAL(t, "128", [2]int{0, 1}))
	var got [][2]string // makespan and latency by point
	for _, row := range rows {
		switch row["metric"] {
		case "backend_stats.flit_network_latency":
			got = append(got, [2]string{"", row["mean"]})
		case "makespan_ps":
			got[len(got)-1][0] = row["mean"]
		}
	}
	want := [][2]string{{"10000", "6.5"}, {"20000", "6.5"}, {"14000", "10.5"}, {"28000", "10.5"}}
	if !slices.Equal(got, want) {
		t.Errorf("got %v, expected %v", got, want)
	}
}

func TestFlitTable(t *testing.T) {
	r := clitest.Run(newCommand, "--backend", "flit", messagesGOAL(t, "128", [2]int{0, 1}))
	for _, want := range []string{"flit latency     mean 6.5 cycles", "tor0-host1", "stalls       cycles", "input buffers"} {
		if !strings.Contains(r.Stdout, want) {
			t.Errorf("no %q in\n%s", want, r.Stdout)
		}
	}
	if r = clitest.Run(newCommand, "--list-presets"); r.Status != 0 || !strings.Contains(r.Stdout, "graph500-dragonfly: ") {
		t.Errorf("status %d, %s", r.Status, r.Stdout)
	}
}

// TestPresetsPage checks that the page of documentation lists the presets as --list-presets does.

// TestSyntheticSeeds checks that points of a sweep of synthetic traffic have the results of runs with their options.
func TestSyntheticSeeds(t *testing.T) {
	means := func(args ...string) (all []float64) {
		t.Helper()
		r := clitest.Run(newCommand, append(strings.Fields("--backend flit --topology star:hosts=8 --synthetic uniform "+
			"--warmup 100 --measure 1000 --load 0.5 --json"), args...)...)
		for _, line := range strings.Split(strings.TrimSpace(r.Stdout), "\n") {
			var point struct {
				Latency struct {
					Mean float64 `json:"mean"`
				} `json:"packet_latency"`
			}
			if err := json.Unmarshal([]byte(line), &point); err != nil {
				t.Fatalf("%v: %v: %s%s", args, err, r.Stdout, r.Stderr)
			}
			all = append(all, point.Latency.Mean)
		}
		return all
	}
	want := append(means("--seed", "1"), means("--seed", "2")...)
	if want[0] == want[1] {
		t.Fatalf("seeds do not change results: %v", want)
	}
	if got := means("--sweep", "seed=1,2"); !slices.Equal(got, want) {
		t.Errorf("axis seed: mean latencies %v, want %v", got, want)
	}
}
