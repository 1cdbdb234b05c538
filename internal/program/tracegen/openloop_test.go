package tracegen

import (
	"crypto/sha256"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"runtime"
	"strings"
	"testing"

	"github.com/tracedag/tracedag/dag"
	"github.com/tracedag/tracedag/dag/gen/dcnw"
	"github.com/tracedag/tracedag/dag/gen/flows"
	"github.com/tracedag/tracedag/dag/gen/openloop"
	"github.com/tracedag/tracedag/formats"
	"github.com/tracedag/tracedag/formats/format"
	"github.com/tracedag/tracedag/formats/vef/model"
	"github.com/tracedag/tracedag/internal/cli/clitest"
)

// traceOf returns the trace of a generator's source.
func traceOf(t *testing.T, s *openloop.Source, err error) *dag.Trace {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	tr, err := dag.ReadAll(s)
	if err != nil {
		t.Fatal(err)
	}
	return tr
}

func TestDCNW(t *testing.T) {
	params := dcnw.Default()
	params.Messages = 3000
	s, err := dcnw.NewSource(params, 1)
	want := traceOf(t, s, err)
	got, first := generate(t, "dcnw", "--messages", "3000")
	same(t, got, want)
	if p := got.Provenance; len(p) != 1 || p[0].Seed == nil || *p[0].Seed != 1 {
		t.Errorf("provenance %+v", p)
	}
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	if _, again := generate(t, "dcnw", "--messages", "3000"); again != first {
		t.Error("one processor gives other bytes")
	}

	params.Sizes, _ = dcnw.Workload("FB_WEB")
	params.Tasks, params.Messages, params.Clock, params.Load = 20, 500, 7, 2.5
	params.Destination = openloop.DestinationPolicy{Distribution: openloop.Poisson}
	s, err = dcnw.NewSource(params, 9)
	want = traceOf(t, s, err)
	args := strings.Fields("dcnw --sizes fb_web --tasks 20 --messages 500 --clock 7ps --seed 9")
	for _, load := range []string{"2.5", "2.5Gbps", "2500Mbit/s", "312.5MB/s", "25e-1"} {
		got, _ = generate(t, append(args, "--load", load, "--destination", "poisson")...)
		same(t, got, want)
	}
	params.Destination = openloop.DestinationPolicy{Distribution: openloop.Gauss, Sigma: 0.25}
	s, err = dcnw.NewSource(params, 9)
	got, _ = generate(t, append(args, "--load", "2.5", "--destination", "Normal", "--gauss-sigma-frac", "0.25")...)
	same(t, got, traceOf(t, s, err))
}

const sizeTable = "900\n100 0.25\n1000 0.75\n1500 1\n"

// inFolder runs the test in a new folder with a file of sizes in a subfolder.
func inFolder(t *testing.T) {
	t.Chdir(t.TempDir())
	if err := os.Mkdir("data", 0o777); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile("data/sizes.txt", []byte(sizeTable), 0o666); err != nil {
		t.Fatal(err)
	}
}

func TestCDCNW(t *testing.T) {
	inFolder(t)
	params := dcnw.Default()
	var err error
	if params.Sizes, _, err = dcnw.ReadCurve("sizes.txt", strings.NewReader(sizeTable)); err != nil {
		t.Fatal(err)
	}
	params.Tasks, params.Messages = 10, 700
	s, err := dcnw.NewSource(params, 3)
	want := traceOf(t, s, err)
	got, _ := generate(t, "cdcnw", "data/sizes.txt", "--tasks", "10", "--messages", "700", "--seed", "3")
	same(t, got, want)
	inputs := []dag.Input{{Name: "sizes.txt", SHA256: fmt.Sprintf("%x", sha256.Sum256([]byte(sizeTable)))}}
	if !reflect.DeepEqual(got.Provenance[0].Inputs, inputs) {
		t.Errorf("inputs %+v, want %+v", got.Provenance[0].Inputs, inputs)
	}

	if err := os.WriteFile("bad.txt", []byte("1700\n"+sizeTable[4:]), 0o666); err != nil {
		t.Fatal(err)
	}
	warned := clitest.Run(newCommand, "cdcnw", "bad.txt", "--messages", "10")
	const warning = "tracegen: warning: bad.txt: states a mean of 1700 bytes, but the mean of its sizes is 900\n"
	if warned.Status != 0 || warned.Stderr != warning {
		t.Errorf("exit status %d, stderr %q, want %q", warned.Status, warned.Stderr, warning)
	}
	if err := os.WriteFile("bad.txt", []byte("1 0.5\n1 1\n"), 0o666); err != nil {
		t.Fatal(err)
	}
	for file, want := range map[string]string{
		"bad.txt":  "bad.txt:2: expected a size above the 1 of the line before, found 1\n",
		"none.txt": "none.txt: no such file",
	} {
		got := clitest.Run(newCommand, "cdcnw", file)
		if got.Status != 1 || got.Stdout != "" || !strings.Contains(got.Stderr, want) {
			t.Errorf("%s: exit status %d, stderr %q, want %q", file, got.Status, got.Stderr, want)
		}
	}
}

func TestFlows(t *testing.T) {
	params := flows.Default()
	params.Messages = 3000
	s, err := flows.NewSource(params, 1)
	want := traceOf(t, s, err)
	got, _ := generate(t, "flows", "--messages", "3000")
	same(t, got, want)

	params = flows.Params{Tasks: 9, Messages: 400, Clock: 500, Ticks: 2000, Classes: []flows.Class{
		{MinKB: 1, MaxKB: 4, Percent: 12.5, Destination: openloop.DestinationPolicy{Distribution: openloop.Poisson}},
		{MinKB: 2048, MaxKB: 2048, Percent: 87.5, Destination: openloop.DestinationPolicy{Distribution: openloop.Gauss, Sigma: 0.5}},
	}}
	s, err = flows.NewSource(params, 4)
	want = traceOf(t, s, err)
	got, _ = generate(t, "flows", "--tasks", "9", "--messages", "400", "--clock", "500ps", "--time", "1us", "--class",
		"min=1KiB,max=4096,percent=12.5", "--class", "percent=87.5,destination=gauss,min=2MiB,max=2MiB", "--destination",
		"poisson", "--gauss-sigma-frac", "0.5", "--seed", "4")
	same(t, got, want)
}

// TestSpecs checks that reading the extended traces of --emit-spec gives the traces of the generators.
func TestSpecs(t *testing.T) {
	inFolder(t)
	for args, want := range map[string]string{
		"dcnw": "VEF3 128 2000000 0 0 0 FALSE 1000\nEXT DCNW\nGOOGLE_ALL GAUSS LOAD 0.5\n",
		"flows": "VEF3 128 2000000 0 0 0 FALSE 1000\nEXT FLOWS\nCLASSES 2 TIME 200000000 UNIFORM\n" +
			"0 MIN 1 MAX 10 PERC 80\n1 MIN 1024 MAX 10240 PERC 20 GAUSS\n",
		"cdcnw data/sizes.txt --load 2.5 --destination uniform --clock 5ps --messages 9 --tasks 4": "" +
			"VEF3 4 9 0 0 0 FALSE 5\nEXT CDCNW\ndata/sizes.txt UNIFORM LOAD 2.5\n",
	} {
		got := clitest.Run(newCommand, append(strings.Fields(args), "--emit-spec")...)
		if got.Status != 0 || got.Stderr != "" || got.Stdout != want {
			t.Errorf("tracegen %s: exit status %d, stderr %q, stdout %q, want %q", args, got.Status, got.Stderr,
				got.Stdout, want)
		}
	}
	if err := os.Mkdir("out", 0o777); err != nil {
		t.Fatal(err)
	}
	for _, args := range []string{
		"dcnw --messages 300 --load 0.3",
		"dcnw --messages 300 --load 3.7GB/s --sizes W5 --tasks 3 --clock 17ns --destination uniform",
		"cdcnw data/sizes.txt --messages 200 --tasks 100",
		"flows --messages 300 --time 1ms",
		"flows --messages 300 --class min=3KiB,max=9KiB,percent=33.333 --class min=1KiB,max=1MiB,percent=66.667 " +
			"--destination poisson --clock 250ps",
	} {
		words := strings.Fields(args)
		want, _ := generate(t, append(words, "--seed", "5")...)
		file := filepath.Join("out", "spec.vef")
		if got := clitest.Run(newCommand, append(words, "--emit-spec", "-o", file)...); got.Status != 0 {
			t.Fatalf("tracegen %s: exit status %d, stderr %q", args, got.Status, got.Stderr)
		}
		text, err := os.Open(file)
		if err != nil {
			t.Fatal(err)
		}
		got, err := formats.All.Named("vef").Read([]*format.Input{{Name: file, Reader: text}},
			format.ReadOptions{Warn: t.Errorf, Own: &model.Options{Seed: 5}})
		text.Close()
		if err != nil {
			t.Fatal(err)
		}
		got.Title = want.Title
		same(t, got, want)
	}
}

func TestOpenLoopUsage(t *testing.T) {
	inFolder(t)
	for args, want := range map[string]string{
		"dcnw extra":                          "unknown command",
		"dcnw --tasks 1":                      "--tasks is 1, expected 2..1048576",
		"dcnw --messages -1":                  "--messages is -1, expected 0..",
		"dcnw --messages -1 --emit-spec":      "--messages is -1, expected 0..",
		"dcnw --clock 0":                      "--clock is 0s, expected 1ps..",
		"dcnw --load 0":                       `"--load" flag`,
		"dcnw --load -1":                      `"--load" flag`,
		"dcnw --load 1e99":                    `"--load" flag`,
		"dcnw --load 0s/B":                    "finite rate",
		"dcnw --load fast":                    `"--load" flag`,
		"dcnw --load 1e-8 --messages 1000000": "--messages is 1000000, expected so few",
		"dcnw --load 1e9 --clock 1s --messages 5000000": "--clock is 1s, expected shorter",
		"dcnw --sizes W6":                           `"--sizes" flag: expected one of FB_KEYVALUE, `,
		"dcnw --destination north":                  `"--destination" flag: expected one of uniform, poisson, gauss`,
		"dcnw --gauss-sigma-frac 0":                 "--gauss-sigma-frac is 0, expected above 0",
		"cdcnw":                                     "as in tracegen cdcnw FILE",
		"cdcnw data/sizes.txt --load 0":             `"--load" flag`,
		"cdcnw data/sizes.txt --tasks 1":            "--tasks is 1",
		"flows --time 1ps":                          "--time is 1ps, expected a multiple of the clock's 1ns",
		"flows --time 0":                            "--time is 0, expected 1..",
		"flows --clock 0":                           "--clock is 0s, expected 1ps or more",
		"flows --tasks 1":                           "--tasks is 1",
		"flows --class 1":                           `percent=NUMBER or destination=DISTRIBUTION, found "1" in "1"`,
		"flows --class size=1":                      `found "size=1"`,
		"flows --class min=x":                       `--class: min=x: invalid argument "x"`,
		"flows --class min=1,max=1KiB,percent=1":    "--class: expected sizes in whole KiB",
		"flows --class min=1KiB,max=1KiB,percent=1": "--class is 1 % of the flows in total, expected 100 %",
		"flows --class max=1KiB,percent=100":        "--class 0: min is 0 KB, expected 1..",
		"flows --class min=2KiB,max=1KiB,percent=100 --emit-spec": "--class 0: max is 1 KB, expected 2..",
	} {
		got := clitest.Run(newCommand, strings.Fields(args)...)
		if got.Status != 2 || got.Stdout != "" || !strings.Contains(got.Stderr, want) {
			t.Errorf("tracegen %s: exit status %d, stdout %.50q, stderr %q; want 2 and %q", args, got.Status, got.Stdout,
				got.Stderr, want)
		}
	}
	got := clitest.Session{Stdin: strings.NewReader(sizeTable)}.Run(newCommand, "cdcnw", "-", "--emit-spec")
	if got.Status != 2 || !strings.Contains(got.Stderr, "--emit-spec: the sizes must be in a file") {
		t.Errorf("exit status %d, stderr %q", got.Status, got.Stderr)
	}
	got = clitest.Session{Stdin: strings.NewReader(sizeTable)}.Run(newCommand, "cdcnw", "-", "--messages", "5")
	if got.Status != 0 || got.Stdout == "" {
		t.Errorf("exit status %d, stderr %q", got.Status, got.Stderr)
	}
}
