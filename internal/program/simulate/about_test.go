package simulate

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/tracedag/tracedag/internal/cli/clitest"
)

// described is the section "run" of a result.
type described struct {
	Run struct {
		Program, Version string
		Command          []string
		Seed             int64
		Trace            *struct {
			Name, Title, Format, SHA256 string
			Inputs                      []struct{ Name, SHA256 string }
			Ranks                       int
			Ops                         int64
		}
		Topology *struct {
			Given                  string
			Hosts, Switches, Links int
			Rates                  []struct {
				Bits  int64 `json:"bits_s"`
				Links int
			}
			Placement string
			Failures  []string
		}
		Settings       map[string]string
		Point, ID      string
		Index, Replica int
		Factors        map[string]string
		Units          map[string]string
		Warnings       []string
	}
}

func describedBy(t *testing.T, stdin string, args ...string) (d described) {
	t.Helper()
	r := clitest.Session{Stdin: strings.NewReader(stdin)}.Run(newCommand, append(args, "--json")...)
	first, _, _ := strings.Cut(r.Stdout, "\n")
	if err := json.Unmarshal([]byte(first), &d); err != nil || d.Run.Program != "simulate" || d.Run.Version == "" {
		t.Fatalf("%v: %v, %s, in %.500s", args, err, r.Stderr, r.Stdout)
	}
	if !strings.HasPrefix(first, `{"run":`) || !slices.Equal(d.Run.Command[1:], append(args, "--json")) {
		t.Errorf("%v: %.500s", args, first)
	}
	return d
}

// TestRunDescribed checks the description of runs.
func TestRunDescribed(t *testing.T) {
	path := storedFile(t, pairs(4).Trace())
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	sum := sha256.Sum256(content)
	want := hex.EncodeToString(sum[:])
	other := filepath.Join(t.TempDir(), "other.parquet")
	if err := os.WriteFile(other, content, 0o666); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{path, other, "-"} {
		d := describedBy(t, string(content), name)
		if trace := d.Run.Trace; trace.SHA256 != want || trace.Format != "store" || trace.Ranks != 4 || trace.Ops == 0 {
			t.Errorf("%s: %+v, expected the digest %s", name, trace, want)
		}
	}
	two := describedBy(t, "", path, "--trace", other, "--seed", "7")
	again := describedBy(t, "", other, "--trace", path)
	if two.Run.Seed != 7 || len(two.Run.Trace.Inputs) != 2 || two.Run.Trace.SHA256 != again.Run.Trace.SHA256 ||
		two.Run.Trace.SHA256 == want {
		t.Errorf("two traces: %+v", two.Run.Trace)
	}

	d := describedBy(t, "", "-q", "--backend", "packet", "--topology", "leafspine:hosts=4,tor=2", "--placement", "random:1",
		"--fail", "tor0-agg0", "--set", "rto=2ms", path)
	top := d.Run.Topology
	if top == nil || top.Given != "leafspine:hosts=4,tor=2" || top.Hosts != 4 || top.Switches != 4 || top.Links != 8 ||
		len(top.Rates) != 1 || top.Rates[0].Bits != 100e9 || top.Rates[0].Links != 8 || top.Placement != "random:1" ||
		!slices.Equal(top.Failures, []string{"tor0-agg0"}) {
		t.Errorf("topology %+v", top)
	}
	if d.Run.Units["params.transport_params.rto"] != "ps" || len(d.Run.Settings) != 4 || d.Run.Settings["set.rto"] != "2ms" ||
		d.Run.Settings["fail"] != "tor0-agg0" {
		t.Errorf("units %v, settings %v", d.Run.Units, d.Run.Settings)
	}
	if d := describedBy(t, "", "-q", path, "--params", "ai", "--sweep", "L=1us,2us"); len(d.Run.Settings) != 2 ||
		d.Run.Settings["L"] != "1us" || d.Run.Factors["L"] != "1us" {
		t.Errorf("settings %v", d.Run.Settings)
	}
	d = describedBy(t, "", "--backend", "flit", "--topology", "star:hosts=4", "--synthetic", "uniform", "--load", "0.1",
		"--warmup", "10", "--measure", "10")
	if d.Run.Trace != nil || d.Run.Topology.Hosts != 4 || d.Run.Units["packet_latency"] != "cycles" || len(d.Run.Warnings) == 0 {
		t.Errorf("synthetic traffic: %+v", d.Run)
	}
}

// TestTableHead checks the lines of the table about what ran.
func TestTableHead(t *testing.T) {
	r := clitest.Run(newCommand, "--backend", "packet", "--topology", "leafspine:hosts=4,tor=2", "--placement", "random:1", "--fail",
		"tor0-agg0", "--seed", "7", storedFile(t, pairs(4).Trace()))
	const want = "leafspine:hosts=4,tor=2: 4 hosts, 4 switches, 8 links of 100Gbps, placement random:1, 1 failure\n"
	if !strings.Contains(r.Stdout, want) || !strings.Contains(squeezed(r.Stdout), "\nseed 7\n") {
		t.Errorf("status %d, %s%s", r.Status, r.Stdout, r.Stderr)
	}
	if r := clitest.Run(newCommand, storedFile(t, pairs(4).Trace())); strings.Contains(r.Stdout, "\nseed") {
		t.Errorf("default seed in %s", r.Stdout)
	}
}

// TestEqualRuns checks that equal runs have equal bytes in every output.
func TestEqualRuns(t *testing.T) {
	path := storedFile(t, pairs(4).Trace())
	packet := []string{"-q", "--backend", "packet", "--topology", "star:hosts=4", path}
	for _, args := range [][]string{
		{"--json", path}, {"--backend", "ideal", "--json", path}, append(packet, "--json"),
		{"--backend", "analytical", "--network", "Ring(4)@25GB/s,500ns", "--json", path},
		{"--backend", "flit", "--topology", "star:hosts=4", "--json", path},
		{"--sweep", "L=1us,2us", path}, {"--sweep", "L=1us,2us", "--csv", path},
		append(packet, "--sweep", "seed=1..3:3"), append(packet, "--sweep", "seed=1..3:3", "--csv"),
		{"--backend", "flit", "--topology", "star:hosts=4", "--synthetic", "uniform", "--load", "0.1,0.2", "--json"},
		{"--backend", "flit", "--topology", "star:hosts=4", "--synthetic", "uniform", "--load", "0.1,0.2", "--csv=results"},
		{"--timeline", "out", "--json", path}, append(packet, "--json", "--timeline", "out"),
	} {
		folder := t.TempDir()
		timeline := filepath.Join(folder, "x.json")
		if i := slices.Index(args, "out"); i >= 0 {
			args = slices.Clone(args)
			args[i] = timeline
		}
		var outputs, timelines [2]string
		for i := range outputs {
			r := clitest.Run(newCommand, args...)
			if r.Status != 0 || r.Stdout == "" {
				t.Fatalf("%v: status %d, %s", args, r.Status, r.Stderr)
			}
			outputs[i] = r.Stdout
			if content, err := os.ReadFile(timeline); err == nil {
				timelines[i] = string(content)
				var read struct {
					OtherData struct{ Trace struct{ SHA256 string } }
				}
				if err := json.Unmarshal(content, &read); err != nil || read.OtherData.Trace.SHA256 == "" {
					t.Errorf("%v: %v in %s", args, err, content)
				}
			}
		}
		if outputs[0] != outputs[1] || timelines[0] != timelines[1] {
			t.Errorf("%v: two runs differ:\n%s\n%s", args, outputs[0], outputs[1])
		}
	}
	if r := clitest.Run(newCommand, "--json", "--timing", path); !strings.Contains(r.Stdout, `"wall_s":`) {
		t.Errorf("no time in %s", r.Stdout)
	}
}
