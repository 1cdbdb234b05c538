package tracegen

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"reflect"
	"runtime"
	"strings"
	"testing"

	"github.com/tracedag/tracedag/dag"
	"github.com/tracedag/tracedag/dag/gen/sizes"
	workloads "github.com/tracedag/tracedag/dag/gen/workload"
	"github.com/tracedag/tracedag/internal/cli/clitest"
)

// workloadTrace returns the trace of parameters.
func workloadTrace(t *testing.T, p workloads.Params, seed int64) *dag.Trace {
	t.Helper()
	s, err := workloads.NewSource(p, seed)
	if err != nil {
		t.Fatal(err)
	}
	return traceOf(t, s.Source, nil)
}

func TestWorkload(t *testing.T) {
	params := workloads.Default()
	params.Jobs[0].Flows = 3000
	want := workloadTrace(t, params, 1)
	got, first := generate(t, "workload", "--flows", "3000")
	same(t, got, want)
	if p := got.Provenance; len(p) != 1 || p[0].Seed == nil || *p[0].Seed != 1 {
		t.Errorf("provenance %+v", p)
	}
	for _, load := range [][]string{{"--rate", "6.4Tbps"}, {"--rate", "800GB/s"}, {"--load", "0.125", "--link", "400Gbps"}} {
		got, _ = generate(t, append([]string{"workload", "--flows", "3000"}, load...)...)
		same(t, got, want)
	}
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	if _, again := generate(t, "workload", "--flows", "3000"); again != first {
		t.Error("one processor gives other bytes")
	}
}

func TestWorkloadMix(t *testing.T) {
	inFolder(t)
	if err := os.WriteFile("own.csv", []byte("size,cdf\n1000,0.5\n3000,1\n"), 0o666); err != nil {
		t.Fatal(err)
	}
	params := workloads.Default()
	params.Ranks, params.Clock = 40, 10
	job := params.Jobs[0]
	job.Flows, job.Duration = 0, dag.Millisecond
	bulk, own, bursts := job, job, job
	bulk.Name, bulk.Rate = "bulk", 0.25*50e9*40
	bulk.Arrivals.Process, bulk.Arrivals.Sigma = workloads.Lognormal, 1.5
	bulk.Sizes, _ = sizes.Named("w4")
	var err error
	if own.Sizes, err = sizes.Read("own.csv", strings.NewReader("1000 0.5\n3000 1"), sizes.CSV, sizes.Linear); err != nil {
		t.Fatal(err)
	}
	own.Name, own.Rate, own.Flows = "job1", 1e12, 100
	own.Pattern.Kind, own.Pattern.Fraction, own.Pattern.Node = workloads.Hotspot, 0.75, 3
	bursts.Name, bursts.Sizes, bursts.Rate = "bursts", sizes.Constant(20_000), 0.5*50e9*40
	bursts.Pattern.Kind, bursts.Pattern.Degree, bursts.Pattern.Period = workloads.Incast, 5, 100*dag.Microsecond
	bursts.Arrivals.Process = workloads.Periodic
	params.Jobs = []workloads.Job{bulk, own, bursts}
	want := workloadTrace(t, params, 7)

	args := []string{"workload", "--ranks", "40", "--clock", "10ps", "--seed", "7", "--duration", "1ms", "--link", "50Gbps",
		"--mix", "name=bulk,load=0.25,sizes=W4,arrivals=lognormal,sigma=1.5",
		"--mix", "sizes=own.csv,rule=linear,rate=1Tbps,flows=100,pattern=hotspot,fraction=0.75,node=3",
		"--mix", "name=bursts,sizes=20KB,pattern=incast,degree=5,period=100us", "--report", "r.json"}
	got, _ := generate(t, args...)
	same(t, got, want)
	if !reflect.DeepEqual(got.Jobs, []string{"bulk", "job1", "bursts"}) {
		t.Errorf("jobs %q", got.Jobs)
	}
	sum := fmt.Sprintf("%x", sha256.Sum256([]byte("size,cdf\n1000,0.5\n3000,1\n")))
	if inputs := got.Provenance[0].Inputs; !reflect.DeepEqual(inputs, []dag.Input{{Name: "own.csv", SHA256: sum}}) {
		t.Errorf("inputs %+v", inputs)
	}
	text, err := os.ReadFile("r.json")
	if err != nil {
		t.Fatal(err)
	}
	var r workloads.Report
	if err := json.Unmarshal(text, &r); err != nil {
		t.Fatal(err)
	}
	if r.Flows*2 != got.Ops() || len(r.Jobs) != 3 || r.Jobs[0].WantedLoad == nil || math.Abs(*r.Jobs[0].WantedLoad-0.25) > 1e-9 ||
		r.Jobs[1].Load != nil || r.Jobs[1].Flows != 100 || r.Jobs[2].Flows != 50 {
		t.Errorf("report %s", text)
	}
}

func TestWorkloadUsage(t *testing.T) {
	inFolder(t)
	if err := os.WriteFile("bad.txt", []byte("10 0.5\n5 1\n"), 0o666); err != nil {
		t.Fatal(err)
	}
	for args, want := range map[string]string{
		"extra":                             "unknown command",
		"--ranks 1":                         "--ranks is 1, expected 2..1048576",
		"--load 0":                          "--load is 0, expected above 0",
		"--load 60":                         "--load is 60, expected above 0 and at most 10, where 1 is the rate of --link",
		"--load nan":                        "--load",
		"--load NaN":                        `expected a number, found "NaN"`,
		"--load 0.5 --rate 1Gbps":           "expected --load and --link, or --rate",
		"--flows -1":                        "--flows is -1, expected 0..1099511627776",
		"--flows 0":                         "--flows is 0, expected 1 or more, or a duration",
		"--arrivals never":                  "expected one of poisson, periodic, lognormal, onoff",
		"--arrivals lognormal --sigma 9":    "--sigma is 9, expected above 0 and at most 4",
		"--pattern incast --degree 128":     "--degree is 128, expected 1..127",
		"--pattern shift --shift 0":         "--shift is 0, expected 1..127",
		"--pattern star":                    "expected one of uniform, permutation, alltoall, shift, hotspot, incast",
		"--sizes w4 --rule linear":          "--rule applies to files only: the rule of w4 is step",
		"--sizes 0":                         "--sizes is 0, expected 1..1125899906842624",
		"--mix load":                        `--mix: expected name=NAME or a flag of a job such as load=0.2, found "load" in "load"`,
		"--mix seed=3":                      `found "seed=3"`,
		"--mix load=x":                      "--mix: load=x: ",
		"--mix load=0.1,rate=1Gbps":         "expected a load and a link, or a rate",
		"--report -":                        "--report: the trace already uses standard output",
		"--mix pattern=hotspot,fraction=-1": "--fraction is -1, expected 0..1",
	} {
		got := clitest.Run(newCommand, append([]string{"workload"}, strings.Fields(args)...)...)
		if got.Status != 2 || got.Stdout != "" || !strings.Contains(got.Stderr, want) {
			t.Errorf("%s: exit status %d, stderr %q, want %q", args, got.Status, got.Stderr, want)
		}
	}
	for file, want := range map[string]string{
		"bad.txt": "bad.txt:2: expected a size of at least the 10 of the line before, found 5\n",
		"websrch": "--sizes: neither a name that tracegen workload --help lists, nor a size, nor a file: open websrch: no such file",
	} {
		got := clitest.Run(newCommand, "workload", "--sizes", file)
		if got.Status != 1 || got.Stdout != "" || !strings.Contains(got.Stderr, want) {
			t.Errorf("%s: exit status %d, stderr %q, want %q", file, got.Status, got.Stderr, want)
		}
	}
}
