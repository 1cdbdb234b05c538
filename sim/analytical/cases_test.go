package analytical_test

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/tracedag/tracedag/dag"
	"github.com/tracedag/tracedag/formats/chakra"
	"github.com/tracedag/tracedag/formats/format"
	"github.com/tracedag/tracedag/sim/analytical"
)

// casesFolders contain runs of ASTRA-sim with their output; testdata/cases/README.md describes the form.
var casesFolders = flag.String("cases", "testdata/cases,testdata/bus", "folders with cases.json and the files it names")

// simulationCase is an entry of cases.json.
type simulationCase struct {
	ID           string
	NPUs         int
	Workload     string
	Replicated   bool   `json:"replicated_rank0"`
	CommGroups   string `json:"comm_groups"`
	Network      string
	System       string
	RemoteMemory string `json:"remote_memory"`
	Queues       int    `json:"num_queues_per_dim"`
	Rendezvous   bool
	Injection    *float64 `json:"injection_scale"`
	// By backend (unaware, aware, aware_multidim) and key. "all" stands for every NPU, and null for 0.
	Expected map[string]map[string]struct {
		All    *json.Number
		PerNPU []json.Number `json:"per_npu"`
	}

	folder string
}

func readCases(t testing.TB) (all []simulationCase) {
	t.Helper()
	for folder := range strings.SplitSeq(*casesFolders, ",") {
		var cases []simulationCase
		if err := json.Unmarshal(readCaseFile(t, folder, "cases.json"), &cases); err != nil {
			t.Fatal(err)
		}
		for _, c := range cases {
			c.folder = folder
			all = append(all, c)
		}
	}
	return all
}

func readCaseFile(t testing.TB, folder, name string) []byte {
	t.Helper()
	content, err := os.ReadFile(filepath.Join(folder, name))
	if err != nil {
		t.Fatal(err)
	}
	return content
}

// trace reads the case's workload.
func (c *simulationCase) trace(t testing.TB) *dag.Trace {
	t.Helper()
	o := format.ReadOptions{Warn: func(message string, args ...any) { t.Errorf("reading: "+message, args...) }}
	files := c.NPUs
	if c.Replicated {
		files, o.Ranks = 1, c.NPUs
	}
	var inputs []*format.Input
	for rank := range files {
		inputs = append(inputs, openCaseFile(t, c.folder, fmt.Sprintf("%s.%d.et", c.Workload, rank)))
	}
	if c.CommGroups != "" {
		o.Own = &chakra.Options{CommGroups: c.CommGroups}
		o.OpenFile = func(name string) *format.Input { return openCaseFile(t, c.folder, name) }
	}
	trace, err := chakra.Format.Read(inputs, o)
	if err != nil {
		t.Fatal(err)
	}
	return trace
}

func openCaseFile(t testing.TB, folder, name string) *format.Input {
	t.Helper()
	content := string(readCaseFile(t, folder, name))
	return &format.Input{
		Name: filepath.Base(name), Reader: strings.NewReader(content),
		Head: []byte(content[:min(len(content), format.DetectBytes)]),
		At:   strings.NewReader(content), Size: int64(len(content)),
	}
}

// options reads the case's configuration for a backend.
func (c *simulationCase) options(t testing.TB, backend string) analytical.Options {
	t.Helper()
	warn := func(message string, args ...any) { t.Logf(message, args...) }
	network, err := analytical.ReadNetwork(readCaseFile(t, c.folder, c.Network), c.Network, warn)
	if err != nil {
		t.Fatal(err)
	}
	network.Aware = backend != "unaware"
	file, err := analytical.ReadSystem(readCaseFile(t, c.folder, c.System), c.System, warn)
	if err != nil {
		t.Fatal(err)
	}
	if c.Injection != nil {
		if err := file.ScaleInjection(*c.Injection); err != nil {
			t.Fatal(err)
		}
	}
	file.System.Queues, file.System.Rendezvous = c.Queues, c.Rendezvous
	memory, err := analytical.ReadMemory(readCaseFile(t, c.folder, c.RemoteMemory), c.RemoteMemory, warn)
	if err != nil {
		t.Fatal(err)
	}
	return analytical.Options{Network: network, System: file.System, Memory: memory, ExactSizes: true}
}

// TestCases runs ASTRA-sim's cases and expects the same numbers.
func TestCases(t *testing.T) {
	for _, c := range readCases(t) {
		t.Run(c.ID, func(t *testing.T) {
			if testing.Short() && c.NPUs > 512 {
				t.Skip("large")
			}
			program, err := analytical.Compile(dag.FromTrace(c.trace(t)))
			if err != nil {
				t.Fatal(err)
			}
			for backend := range c.Expected {
				result, err := program.Run(c.options(t, backend))
				if err != nil {
					t.Errorf("%s: %v", backend, err)
					continue
				}
				c.compare(t, backend, result)
			}
		})
	}
}

// TestSampleCases runs the cases whose traces are sample files of others, which are not part of this repository.
func TestSampleCases(t *testing.T) {
	vectors := os.Getenv("TRACEDAG_VECTORS")
	if vectors == "" {
		t.Skip("TRACEDAG_VECTORS is not set: no sample files")
	}
	ours := make(map[string]bool)
	for _, c := range readCases(t) {
		ours[c.ID] = true
	}
	defer func(folders string) { *casesFolders = folders }(*casesFolders)
	*casesFolders = filepath.Join(vectors, "astrasim")
	ran := 0
	for _, c := range readCases(t) {
		if ours[c.ID] {
			continue
		}
		ran++
		program, err := analytical.Compile(dag.FromTrace(c.trace(t)))
		if err != nil {
			t.Fatalf("%s: %v", c.ID, err)
		}
		for backend := range c.Expected {
			result, err := program.Run(c.options(t, backend))
			if err != nil {
				t.Errorf("%s, %s: %v", c.ID, backend, err)
				continue
			}
			c.compare(t, backend, result)
		}
	}
	if ran == 0 {
		t.Error("there are no such cases")
	}
}

// compare checks the statistics of a run against all that is expected of the backend.
func (c *simulationCase) compare(t *testing.T, backend string, result *analytical.Result) {
	t.Helper()
	document, err := json.Marshal(result)
	if err != nil {
		t.Fatal(err)
	}
	var parsed struct {
		Complete bool                       `json:"complete"`
		Stuck    json.RawMessage            `json:"stuck"`
		Stats    map[string]json.RawMessage `json:"npu_stats"`
	}
	if err := json.Unmarshal(document, &parsed); err != nil {
		t.Fatal(err)
	}
	if !parsed.Complete {
		t.Errorf("%s: incomplete: %s", backend, parsed.Stuck)
	}
	for key, expected := range c.Expected[backend] {
		want := expected.PerNPU
		if expected.All != nil {
			want = slices.Repeat([]json.Number{*expected.All}, c.NPUs)
		}
		var got []json.Number
		if text := parsed.Stats[key]; text != nil {
			if err := json.Unmarshal(text, &got); err != nil {
				t.Fatal(err)
			}
		}
		if len(got) != len(want) {
			t.Errorf("%s: %s: got %d values, expected %d", backend, key, len(got), len(want))
			continue
		}
		differ := 0
		for npu := range want {
			if equalNumbers(got[npu], want[npu]) {
				continue
			}
			if differ++; differ <= 3 {
				t.Errorf("%s: %s: NPU %d: got %s, expected %s", backend, key, npu, got[npu], want[npu])
			}
		}
		if differ > 3 {
			t.Errorf("%s: %s: and %d NPUs more", backend, key, differ-3)
		}
	}
}

// equalNumbers compares integers by their digits, for they may exceed 53 bits, and others by their value.
func equalNumbers(a, b json.Number) bool {
	if a == b || a == "0" && b == "" {
		return true
	}
	if !strings.ContainsAny(string(a+b), ".eE") {
		return false
	}
	x, err1 := a.Float64()
	y, err2 := b.Float64()
	return err1 == nil && err2 == nil && x == y
}
