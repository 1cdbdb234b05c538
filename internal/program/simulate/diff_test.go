package simulate

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tracedag/tracedag/dag/gen/pattern"
	"github.com/tracedag/tracedag/formats"
	"github.com/tracedag/tracedag/internal/cli/clitest"
	"github.com/tracedag/tracedag/internal/golden"
)

// keepResults writes a ring and results of it to a new folder, the current one: of each command by file name.
func keepResults(t *testing.T, commands map[string]string) {
	t.Helper()
	t.Chdir(t.TempDir())
	trace, err := pattern.Generate("ring", pattern.Params{Ranks: 4, Bytes: 1 << 16, Iterations: 1, Compute: 1000})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := formats.Write("ring.parquet", trace, formats.WriteOptions{}); err != nil {
		t.Fatal(err)
	}
	for name, args := range commands {
		r := clitest.Run(newCommand, append(strings.Fields(args), "--json")...)
		if r.Status != 0 {
			t.Fatalf("simulate %s: %s", args, r.Stderr)
		}
		if err := os.WriteFile(name, []byte(r.Stdout), 0o666); err != nil {
			t.Fatal(err)
		}
	}
}

// TestDiff: results of each backend equal themselves and differ from those with another parameter, which comes first.
func TestDiff(t *testing.T) {
	const packet = "ring.parquet --backend packet --topology leafspine:hosts=4,tor=2 "
	keepResults(t, map[string]string{
		"loggops.a": "ring.parquet", "loggops.b": "ring.parquet --L 5us",
		"packet.a": packet, "packet.b": packet + "--transport dctcp",
		"ideal.a": "ring.parquet --backend ideal", "ideal.b": "ring.parquet --backend ideal --seed 2",
		"analytical.a": "ring.parquet --backend analytical --network Ring(4)@50GB/s,500ns",
		"analytical.b": "ring.parquet --backend analytical --network Ring(4)@25GB/s,500ns",
		"flit.a":       "ring.parquet --backend flit --topology mesh:dims=2x2",
		"flit.b":       "ring.parquet --backend flit --topology mesh:dims=2x2 --set packet-flits=4",
		"sweep.a":      "ring.parquet --sweep L=1us,2us,3us", "sweep.b": "ring.parquet --sweep L=2us,3us,4us --o 1us",
		"load.a": "--backend flit --synthetic uniform --topology mesh:dims=2x2 --load 0.1,0.2",
		"load.b": "--backend flit --synthetic uniform --topology mesh:dims=2x2 --load 0.2,0.3",
	})
	for _, name := range []string{"loggops", "packet", "ideal", "analytical", "flit", "sweep", "load"} {
		a, b := name+".a", name+".b"
		if r := clitest.Run(newCommand, "--diff", a, a); r.Status != 0 || r.Stdout+r.Stderr != "" {
			t.Errorf("%s and itself: status %d, stdout %q, stderr %q", name, r.Status, r.Stdout, r.Stderr)
		}
		text := clitest.Run(newCommand, "--diff", a, b)
		if text.Status != 1 || text.Stderr != "" || !strings.Contains(text.Stdout, "\nwhat ran ") {
			t.Errorf("%s: status %d, stdout %q, stderr %q", name, text.Status, text.Stdout, text.Stderr)
		}
		object := clitest.Run(newCommand, "--diff", "--json", a, b)
		var d struct{ Equal *bool }
		if err := json.Unmarshal([]byte(object.Stdout), &d); err != nil || d.Equal == nil || *d.Equal || object.Status != 1 {
			t.Errorf("%s: status %d, %v: %s", name, object.Status, err, object.Stdout)
		}
		csv := clitest.Run(newCommand, "--diff", "--csv", a, b)
		if !strings.HasPrefix(csv.Stdout, "point,part,metric,item,a,b,relative\n") || csv.Status != 1 {
			t.Errorf("%s: status %d, CSV %s", name, csv.Status, csv.Stdout)
		}
	}
}

// TestDiffGolden compares kept results.
func TestDiffGolden(t *testing.T) {
	for _, name := range []string{"packet", "sweep"} {
		for _, form := range []string{"", "--json", "--csv"} {
			t.Chdir("testdata")
			r := clitest.Run(newCommand, strings.Fields("--diff kept."+name+".a.json kept."+name+".b.json "+form)...)
			t.Chdir("..")
			if r.Status != 1 || r.Stderr != "" {
				t.Errorf("%s %s: status %d, stderr %q", name, form, r.Status, r.Stderr)
			}
			file := "diff." + name + strings.Replace(form, "--", ".", 1) + ".golden"
			golden.Check(t, filepath.Join("testdata", file), r.Stdout)
		}
	}
}

func TestDiffUsage(t *testing.T) {
	keepResults(t, map[string]string{"a.json": "ring.parquet"})
	if err := os.WriteFile("bad.json", []byte("{\n\"backend\": }"), 0o666); err != nil {
		t.Fatal(err)
	}
	for args, want := range map[string]string{
		"a.json":                          "simulate: --diff compares two files of results, found 1",
		"a.json a.json a.json":            "simulate: --diff compares two files of results, found 3",
		"a.json a.json --backend packet":  "simulate: --diff runs no simulation: --backend has no effect on it",
		"a.json a.json --json --csv":      "simulate: --json and --csv exclude each other",
		"a.json nix":                      "simulate: nix: no such file or directory",
		"bad.json a.json":                 "bad.json:2: expected JSON, found invalid character '}'",
		"a.json ring.parquet":             "ring.parquet:1: expected JSON",
		"a.json - --json":                 "<stdin>:1: expected a result of simulate --json, found an empty file",
		"a.json a.json --queue 1 --csv":   "--queue has no effect",
		"a.json a.json --max-memory 1MiB": "simulate: ",
	} {
		if r := clitest.Run(newCommand, append(strings.Fields(args), "--diff")...); r.Status != 2 || r.Stdout != "" ||
			!strings.Contains(r.Stderr, want) {
			t.Errorf("simulate --diff %s: status %d, stdout %q, stderr %q, want %q", args, r.Status, r.Stdout, r.Stderr, want)
		}
	}
}
