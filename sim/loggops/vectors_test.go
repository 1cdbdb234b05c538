package loggops_test

import (
	"bytes"
	"encoding/json"
	"math/big"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/tracedag/tracedag/dag"
	"github.com/tracedag/tracedag/formats/format"
	"github.com/tracedag/tracedag/formats/goal"
	"github.com/tracedag/tracedag/sim"
	"github.com/tracedag/tracedag/sim/loggops"
)

const vectors = "../../formats/goal/testdata/vectors"

// expectedRun is a run of a reference simulator, as the vectors describe it.
type expectedRun struct {
	Params   params
	Status   string
	Events   int64
	Finish   []uint64
	NeverRun int64 `json:"never_run"`
	Leftover struct {
		Unexpected map[int][][2]int64
		Receive    map[int][][2]int64
	}
}

type params struct {
	values map[string]json.Number
}

func (p *params) UnmarshalJSON(b []byte) error {
	p.values = map[string]json.Number{}
	return json.Unmarshal(b, &p.values)
}

// loggops returns the parameters, which are in nanoseconds.
func (p params) loggops(t *testing.T) loggops.Params {
	rat := func(name string) *big.Rat {
		r, ok := new(big.Rat).SetString(p.values[name].String())
		if !ok {
			t.Fatalf("parameter %s is %q", name, p.values[name])
		}
		return r.Mul(r, big.NewRat(1000, 1))
	}
	time := func(name string) dag.Time { return dag.Time(rat(name).Num().Int64()) }
	return loggops.Params{L: time("L"), Overhead: time("o"), Gap: time("g"), GPerByte: rat("G"), OPerByte: rat("O"),
		S: int64(time("S")) / 1000}
}

func readBinary(t *testing.T, path string) *dag.Trace {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	trace, err := goal.Binary.Read([]*format.Input{{Name: path, Reader: bytes.NewReader(data)}},
		format.ReadOptions{Warn: t.Logf})
	if err != nil {
		t.Fatal(err)
	}
	return trace
}

// cases returns the names of the vectors that give runs, and a trace.
func cases(t *testing.T) []string {
	files, err := filepath.Glob(vectors + "/*.expected.json")
	if err != nil || len(files) == 0 {
		t.Fatal("no vectors: ", err)
	}
	var names []string
	for _, f := range files {
		name := strings.TrimSuffix(filepath.Base(f), ".expected.json")
		switch name {
		case "noise", "qstat": // of another form
		case "field_limits": // has a calc of 584 years, more than dag.Time holds
		default:
			names = append(names, name)
		}
	}
	return names
}

// TestReferenceModels compares both models with the results of the reference programs.
func TestReferenceModels(t *testing.T) {
	runs := 0
	for _, name := range cases(t) {
		t.Run(name, func(t *testing.T) {
			text, err := os.ReadFile(filepath.Join(vectors, name+".expected.json"))
			if err != nil {
				t.Fatal(err)
			}
			var expected struct{ LogGOPSim, ATLAHS []expectedRun }
			if err := json.Unmarshal(text, &expected); err != nil {
				t.Fatal(err)
			}
			for model, list := range map[loggops.Model][]expectedRun{
				loggops.LogGOPSim: expected.LogGOPSim, loggops.ATLAHS: expected.ATLAHS,
			} {
				for _, want := range list {
					trace := readBinary(t, filepath.Join(vectors, name+".bin"))
					got, err := run(trace, model, loggops.Options{Params: want.Params.loggops(t)}, t.Logf)
					if err != nil {
						t.Fatalf("%s %v: %v", model, want.Params.values, err)
					}
					runs++
					compare(t, model, want, got)
				}
			}
		})
	}
	if runs < 100 {
		t.Errorf("only %d runs were compared", runs)
	}
}

func compare(t *testing.T, model loggops.Model, want expectedRun, got *sim.Result) {
	t.Helper()
	var finish []uint64
	for _, c := range got.Finish {
		finish = append(finish, c.Ticks)
	}
	if want.Finish != nil && !slices.Equal(finish, want.Finish) {
		t.Errorf("%s %v: finish\n%v, expected\n%v", model, want.Params.values, finish, want.Finish)
	}
	if got.Events != want.Events && want.Status != "abort" {
		t.Errorf("%s %v: %d events, expected %d", model, want.Params.values, got.Events, want.Events)
	}
	if got.NeverRun != want.NeverRun && want.Status != "abort" {
		t.Errorf("%s %v: %d ops never ran, expected %d", model, want.Params.values, got.NeverRun, want.NeverRun)
	}
	if (want.Status == "abort") != (got.Aborted != "") {
		t.Errorf("%s %v: aborted %q, expected %s", model, want.Params.values, got.Aborted, want.Status)
	}
	if complete := want.Status == "complete" && want.NeverRun == 0; got.Complete != complete {
		t.Errorf("%s %v: complete is %v, expected %s", model, want.Params.values, got.Complete, want.Status)
	}
	if want.Status == "unmatched" {
		var left sim.Unmatched
		if got.Unmatched != nil {
			left = *got.Unmatched
		}
		equalQueues(t, "unexpected", left.Unexpected, want.Leftover.Unexpected)
		equalQueues(t, "receive", left.Receive, want.Leftover.Receive)
	}
}

// equalQueues compares queues by host; the vectors write any as 2^32-1.
func equalQueues(t *testing.T, what string, got, want map[int][][2]int64) {
	t.Helper()
	if len(got) != len(want) {
		t.Errorf("%d hosts with %s, expected %d", len(got), what, len(want))
	}
	for host, list := range want {
		for i := range list {
			for k, v := range list[i] {
				if v == 1<<32-1 {
					list[i][k] = -1
				}
			}
		}
		if !slices.Equal(got[host], list) {
			t.Errorf("%s of host %d: %v, expected %v", what, host, got[host], list)
		}
	}
}

// run compiles and runs a trace.
func run(trace *dag.Trace, m loggops.Model, o loggops.Options, warn func(string, ...any)) (*sim.Result, error) {
	replay, err := loggops.Compile(dag.FromTrace(trace), m, warn)
	if err != nil {
		return nil, err
	}
	return replay.Run(o)
}
