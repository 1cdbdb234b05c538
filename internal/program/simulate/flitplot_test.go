package simulate

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tracedag/tracedag/internal/cli/clitest"
)

func TestFlitPlot(t *testing.T) {
	dir := t.TempDir()
	for name, begins := range map[string]string{"x.svg": "<?xml", "x.PNG": "\x89PNG", "x.pdf": "%PDF"} {
		path := filepath.Join(dir, name)
		r := clitest.Run(newCommand, "--backend", "flit", "--synthetic", "uniform", "--load", "0.1..0.9:3", "--warmup", "100",
			"--measure", "200", "--plot", path)
		picture, err := os.ReadFile(path)
		if err != nil || r.Status != 0 || !bytes.HasPrefix(picture, []byte(begins)) || !strings.Contains(r.Stdout, "0.9") {
			t.Errorf("%s: %v, status %d, %.20q", name, err, r.Status, picture)
		}
	}
	r := clitest.Run(newCommand, "--backend", "flit", "--synthetic", "uniform", "--plot", filepath.Join(dir, "x.gif"))
	if r.Status != 2 || !strings.Contains(r.Stderr, ".svg, .png or .pdf") {
		t.Errorf("status %d, %s", r.Status, r.Stderr)
	}
}

// TestFlitRoutings runs two algorithms at once, and compares their points with those of single runs.
func TestFlitRoutings(t *testing.T) {
	picture := filepath.Join(t.TempDir(), "x.svg")
	run := func(args ...string) []string {
		t.Helper()
		r := clitest.Run(newCommand, append([]string{"--backend", "flit", "--topology", "torus:dims=4x4", "--synthetic",
			"uniform", "--warmup", "200", "--measure", "2000", "-q"}, args...)...)
		if r.Status != 0 {
			t.Fatalf("%v: status %d, %s", args, r.Status, r.Stderr)
		}
		return strings.Split(strings.TrimSpace(r.Stdout), "\n")
	}
	number := func(line string) string { // from the routing algorithm on
		_, rest, _ := strings.Cut(line, `"model":`)
		return rest
	}
	both := run("--load", "0.1,0.4", "--routing", "min,adaptive", "--json", "--plot", picture)
	single := append(run("--load", "0.1,0.4", "--json"), run("--load", "0.1,0.4", "--routing", "adaptive", "--json")...)
	if len(both) != 4 || len(single) != 4 {
		t.Fatalf("%d and %d lines", len(both), len(single))
	}
	for i := range both {
		if number(both[i]) == "" || number(both[i]) != number(single[i]) {
			t.Errorf("line %d: %s, expected %s", i, both[i], single[i])
		}
	}
	svg, err := os.ReadFile(picture)
	if err != nil || !bytes.Contains(svg, []byte(">adaptive</text>")) || !bytes.Contains(svg, []byte(">minimal</text>")) {
		t.Errorf("%v, %.100s", err, svg)
	}
	table := strings.Join(run("--load", "0.1", "--precision", "0.1", "--routing", "minimal,adaptive"), "\n")
	for _, part := range []string{"routing minimal, adaptive,", "measured to 10 %", "packets", "interval", "±"} {
		if !strings.Contains(table, part) {
			t.Errorf("%s lacks %s", table, part)
		}
	}
	table = strings.Join(run("--load", "saturation", "--precision", "0.2", "--routing", "minimal,adaptive"), "\n")
	if strings.Count(table, "±") != 4 || !strings.Contains(table, "zero-load latency") {
		t.Error(table)
	}
	for _, test := range []struct {
		args []string
		want string
	}{
		{[]string{"--routing", "minimal,adaptive", "x.goal"}, "--routing needs --synthetic for several algorithms"},
		{[]string{"--routing", "minimal,min", "--synthetic", "uniform"}, "expected each algorithm once"},
		{[]string{"--routing", "minimal,none", "--synthetic", "uniform"}, `unknown routing "none"`},
		{[]string{"--precision", "0.1", "x.goal"}, "--precision needs --synthetic"},
		{[]string{"--precision", "0.6", "--synthetic", "uniform"}, "0 to 0.5"},
		{[]string{"--plot", "ranks=x.svg", "--synthetic", "uniform"}, "expected one of load, latency"},
	} {
		r := clitest.Run(newCommand, append([]string{"--backend", "flit"}, test.args...)...)
		if r.Status != 2 || !strings.Contains(r.Stderr, test.want) {
			t.Errorf("%v: status %d, %s", test.args, r.Status, r.Stderr)
		}
	}
}
