package tracegen

import (
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/tracedag/tracedag/dag"
	"github.com/tracedag/tracedag/dag/gen/horovod"
	"github.com/tracedag/tracedag/dag/gen/pattern"
	"github.com/tracedag/tracedag/formats"
	"github.com/tracedag/tracedag/formats/base"
	"github.com/tracedag/tracedag/formats/format"
	"github.com/tracedag/tracedag/internal/cli/clitest"
	_ "github.com/tracedag/tracedag/internal/testheap"
)

// generate runs tracegen, which must succeed, and returns the trace and the bytes that it writes.
func generate(t *testing.T, args ...string) (*dag.Trace, string) {
	t.Helper()
	got := clitest.Run(newCommand, args...)
	if got.Status != 0 || got.Stderr != "" {
		t.Fatalf("tracegen %q: exit status %d, stderr %q", args, got.Status, got.Stderr)
	}
	trace, err := formats.All.Named(formats.Default).Read(
		[]*format.Input{{Name: "store", Reader: strings.NewReader(got.Stdout)}}, format.ReadOptions{Warn: t.Errorf})
	if err != nil {
		t.Fatalf("tracegen %q: %v", args, err)
	}
	return trace, got.Stdout
}

// same compares the ops of two traces.
func same(t *testing.T, got, want *dag.Trace) {
	t.Helper()
	if len(got.Ranks) != len(want.Ranks) || got.Title != want.Title {
		t.Fatalf("%d ranks, title %q; want %d, %q", len(got.Ranks), got.Title, len(want.Ranks), want.Title)
	}
	for rank := range want.Ranks {
		g, w := got.Ranks[rank], want.Ranks[rank]
		if g.Len() != w.Len() {
			t.Fatalf("rank %d: %d ops, want %d", rank, g.Len(), w.Len())
		}
		for i := range w.Len() {
			if g.Op(i) != w.Op(i) {
				t.Fatalf("rank %d, op %d: %+v, want %+v", rank, i, g.Op(i), w.Op(i))
			}
		}
	}
}

func TestHorovod(t *testing.T) {
	want, err := readAll(horovod.NewSource(horovod.Default(), 1))
	if err != nil {
		t.Fatal(err)
	}
	got, first := generate(t, "horovod")
	same(t, got, want)
	seed := int64(1)
	provenance := []dag.Provenance{
		{Program: "tracegen", Version: clitest.Version, Command: []string{"tracegen", "horovod"}, Seed: &seed},
	}
	if !reflect.DeepEqual(got.Provenance, provenance) {
		t.Errorf("provenance %+v, want %+v", got.Provenance, provenance)
	}
	if _, again := generate(t, "horovod"); again != first {
		t.Error("two runs give different bytes")
	}

	params := horovod.Params{
		Workers: 3, Batches: 2, Layers: 2, Jitter: 0.25,
		Layer: horovod.Layer{
			Compute: 5 * dag.Millisecond, NegotiationLoop: 1200 * dag.Nanosecond, GathervBytes: 100, GathervTotalBytes: 2048,
			GathervProbability: 0.5, BcastBytes: 2000, AllreduceBytes: 1 << 20,
		},
	}
	differs := params.Layer
	differs.Compute, differs.BcastBytes = 7*dag.Millisecond, 64<<10
	params.Overrides = map[int]horovod.Layer{1: differs}
	if want, err = readAll(horovod.NewSource(params, 9)); err != nil {
		t.Fatal(err)
	}
	// The override comes before a flag that it inherits from.
	got, _ = generate(t, "horovod", "--layer", "1:compute=7ms,bcast-bytes=64KiB", "--workers", "3", "--batches", "2",
		"--layers", "2", "--jitter", "0.25", "--compute", "5ms", "--negotiation-loop", "1.2us", "--gatherv-bytes", "100",
		"--gatherv-total-bytes", "2KiB", "--gatherv-probability", "0.5", "--bcast-bytes", "2kB",
		"--allreduce-bytes", "1MiB", "--seed", "9")
	same(t, got, want)
	if got.Provenance[0].Seed == nil || *got.Provenance[0].Seed != 9 {
		t.Errorf("provenance %+v, want seed 9", got.Provenance)
	}
}

func TestHorovodListing(t *testing.T) {
	// The published example, with less to make.
	params := horovod.Listing()
	params.Workers, params.Layer.GathervProbability = 3, 0.5
	large := params.Overrides[3]
	large.GathervProbability = 0.5
	params.Overrides = map[int]horovod.Layer{3: large}
	args := []string{"horovod", "--workers", "3", "--listing", "--gatherv-probability", "0.5"}
	check := func(args ...string) {
		t.Helper()
		want, err := readAll(horovod.NewSource(params, 1))
		if err != nil {
			t.Fatal(err)
		}
		got, _ := generate(t, args...)
		same(t, got, want)
	}
	check(args...)

	large.Compute = dag.Millisecond // keeps its larger tensors
	params.Overrides = map[int]horovod.Layer{1: params.Layer, 3: large}
	params.Clock, params.TimeStep = 500, 1500
	check(append(args, "--layer", "3:compute=1ms", "--layer", "1:compute=20ms", "--clock", "500ps", "--time-step",
		"1.5ns")...)

	params.Batches, params.Layers, params.Overrides = 2, 3, nil // without layer 3
	check(append(args, "--layers", "3", "--batches", "2", "--clock", "500ps", "--time-step", "1.5ns")...)
}

func TestEmitSpec(t *testing.T) {
	listing, err := os.ReadFile("testdata/listing8.vef")
	if err != nil {
		t.Fatal(err)
	}
	for args, want := range map[string]string{
		"horovod --listing --emit-spec": string(listing),
		"horovod --emit-spec --workers 4 --batches 3 --layers 1 --clock 500ps --compute 1234567ps": "" +
			"VEF3 4 0 0 0 0 FALSE 500\n" +
			"EXT HOROVOD\n" +
			"BATCHES 3 LAYERS 1\n" +
			"DEFAULT COMPUTE_MS 0.001234567 NEGOTIATION_LOOP_MS 1.5 GATV_BYTES 60 GATV_TOTAL_BYTES 600 GATV_PROB 0.25 " +
			"BCAST_BYTES 1000 ARED_KBYTES 51200\n",
	} {
		got := clitest.Run(newCommand, strings.Fields(args)...)
		if got.Status != 0 || got.Stderr != "" || got.Stdout != want {
			t.Errorf("tracegen %s: exit status %d, stderr %q, stdout %q, want %q", args, got.Status, got.Stderr, got.Stdout,
				want)
		}
	}
	file := filepath.Join(t.TempDir(), "x.vef")
	got := clitest.Run(newCommand, "horovod", "--emit-spec", "--to", "vef", "--jitter", "0", "--seed", "5")
	want := "tracegen: warning: the file cannot hold --jitter: repeat it in the command that reads the file\n" +
		"tracegen: warning: the file cannot hold --seed: repeat it in the command that reads the file\n"
	if got.Status != 0 || got.Stderr != want || !strings.HasPrefix(got.Stdout, "VEF3 8 0 ") {
		t.Errorf("exit status %d, stderr %q, stdout %q", got.Status, got.Stderr, got.Stdout)
	}
	clitest.Run(newCommand, "horovod", "--listing", "--emit-spec", "-o", file)
	if got, err := os.ReadFile(file); err != nil || string(got) != string(listing) {
		t.Errorf("the file holds %q, %v", got, err)
	}
}

func TestPattern(t *testing.T) {
	for _, x := range pattern.Patterns() {
		want, err := pattern.Generate(x.Name, pattern.Default())
		if err != nil {
			t.Fatal(err)
		}
		got, _ := generate(t, "pattern", x.Name)
		same(t, got, want)
		if len(got.Provenance) != 1 || got.Provenance[0].Seed != nil {
			t.Errorf("%s: provenance %+v", x.Name, got.Provenance)
		}
	}
	want, err := pattern.Generate("binomial",
		pattern.Params{Ranks: 5, Bytes: 3000, Iterations: 2, Compute: 1500, Root: 3})
	if err != nil {
		t.Fatal(err)
	}
	got, _ := generate(t, "pattern", "binomial", "--ranks", "5", "--bytes", "3kB", "--iterations", "2",
		"--compute", "1.5ns", "--root", "3")
	same(t, got, want)
}

func TestLower(t *testing.T) {
	got, _ := generate(t, "horovod", "--lower", "collectives")
	for rank := range got.Ranks {
		for i, k := range got.Ranks[rank].Kind {
			if k == dag.Coll {
				t.Fatalf("rank %d, op %d is still a collective", rank, i)
			}
		}
	}
	goal := clitest.Run(newCommand, "horovod", "--lower", "collectives", "--to", "goal")
	if goal.Status != 0 || !strings.HasPrefix(goal.Stdout, "num_ranks 8\n") {
		t.Errorf("exit status %d, stderr %q, stdout %.50q", goal.Status, goal.Stderr, goal.Stdout)
	}
}

func TestUsage(t *testing.T) {
	for args, want := range map[string]string{
		"":                              "expected the name of a generator",
		"nothing":                       `unknown command "nothing"`,
		"horovod extra":                 "unknown command",
		"pattern":                       "expected the pattern, as in tracegen pattern alltoall",
		"pattern rng":                   "did you mean \"ring\"?",
		"horovd":                        `unknown command "horovd"; did you mean "horovod"?`,
		"horovod --rank 3":              "unknown flag: --rank; did you mean --ranks?",
		"pattern nothing":               `no pattern "nothing", expected one of alltoall, binomial`,
		"pattern ring --ranks 0":        "ranks is 0, expected 1..",
		"pattern ring --bytes 1.5":      "a whole number of bytes",
		"pattern ring --compute 5":      "with unit",
		"pattern ring --seed 1":         "unknown flag: --seed",
		"horovod --workers 1":           "workers is 1, expected 2..",
		"horovod --seed x":              "invalid argument",
		"horovod --emit-spec --to goal": "--emit-spec writes an extended VEF trace",
		"horovod --emit-spec --lower collectives":             "--emit-spec writes an extended VEF trace",
		"horovod --emit-spec --workers 1":                     "workers is 1, expected 2..",
		"horovod --emit-spec --allreduce-bytes 1000":          "a multiple of 1024 bytes",
		"horovod --clock 0.5ps":                               "--clock",
		"horovod --time-step 1.5ns":                           "time step is 1.5ns, expected a multiple of the clock's 1ns",
		"horovod --layer 1":                                   "expected LAYER:FLAG=VALUE",
		"horovod --layer x:compute=1ms":                       "expected LAYER:FLAG=VALUE",
		"horovod --layer 1:dance=1ms":                         `found "dance=1ms"`,
		"horovod --layer 1:compute":                           `found "compute"`,
		"horovod --layer 1:":                                  `found ""`,
		"horovod --layer 1:compute=fast":                      "expected a number",
		"horovod --layer 9:compute=1ms":                       "layer is 9, expected 0..2",
		"horovod --lower collectives=bad":                     "--lower",
		"horovod --to nothing":                                "--to: expected one of",
		"horovod --layer 1:compute=1ms --layer 1:compute=2ms": "layer 1 is listed twice",
	} {
		got := clitest.Run(newCommand, strings.Fields(args)...)
		if got.Status != 2 || got.Stdout != "" || !strings.Contains(got.Stderr, want) {
			t.Errorf("tracegen %s: exit status %d, stdout %.50q, stderr %q; want 2 and %q",
				args, got.Status, got.Stdout, got.Stderr, want)
		}
	}
	got := clitest.Session{Terminal: "stdout"}.Run(newCommand, "horovod")
	if got.Status != 2 || got.Stdout != "" || !strings.Contains(got.Stderr, "terminal") {
		t.Errorf("to a terminal: exit status %d, stderr %q", got.Status, got.Stderr)
	}
}

func TestHelp(t *testing.T) {
	for args, want := range map[string][]string{
		"--help": {"Generate the trace of a workload model", " Applications\n", "  horovod", "  pattern", "Examples:", "Exit status:"},
		"fft --help": {"Options of fft:\n      --size DIMS", "\nOutput:\n  -o, --output FILE", "--lower PASS",
			"\nFlags of all commands:\n  -h, --help"},
		"help horovod":           {"horovod\n", "\nLIMITS\n", "--compute TIME", "(default 20ms)", "50MiB)", "--seed N"},
		"pattern --help":         {"dissemination", "--bytes SIZE", "64KiB)"},
		"__complete pattern ":    {"ring\n", "alltoall\n"},
		"__complete pattern r":   {"ring\n"},
		"__complete horovod --t": {"--to"},
	} {
		words := strings.Split(args, " ")
		got := clitest.Run(newCommand, words...)
		for _, text := range want {
			if got.Status != 0 || !strings.Contains(got.Stdout, text) {
				t.Errorf("tracegen %s: exit status %d, output lacks %q:\n%s", args, got.Status, text, got.Stdout)
			}
		}
	}
}

// TestFormats writes traces in every format with a writer.
func TestFormats(t *testing.T) {
	if got, want := base.Formats.Writable().Names(), formats.All.Writable().Names(); !slices.Equal(got, want) {
		t.Errorf("formats %q, expected %q", got, want)
	}
}

// TestForeignFlags checks that help lists only the flags of the generator and of outputs, and that the others work.
func TestForeignFlags(t *testing.T) {
	help := clitest.Run(newCommand, "fft", "--help").Stdout
	for _, flag := range []string{"--npkit", "--vef-version", "--gpus-per-node", "--seed"} {
		if strings.Contains(help, flag) {
			t.Errorf("tracegen fft --help lists %s:\n%s", flag, help)
		}
	}
	got := clitest.Run(newCommand, "nbody", "--ranks", "2", "--to", "vef", "--vef-version", "1")
	if got.Status != 0 || !strings.HasPrefix(got.Stdout, "VEF 2 ") {
		t.Errorf("exit status %d, stderr %q, output %.20q", got.Status, got.Stderr, got.Stdout)
	}
}

// readAll returns the trace of a source, or the error of making the source.
func readAll[S dag.Source](s S, err error) (*dag.Trace, error) {
	if err != nil {
		return nil, err
	}
	return dag.ReadAll(s)
}
