package nsys

import (
	"slices"
	"testing"

	"github.com/tracedag/tracedag/formats/format"
)

func TestStepNumber(t *testing.T) {
	for text, want := range map[string]int32{
		"iteration 17": 17, "Iter_3": 3, "step: 0": 0, "ProfilerStep#5": 5, "train/ITERATION=12, lr 3": 12, "step7of9": 7,
		"step 2147483646": 2147483646, "batch 1 step 2": 2,
		"step": -1, "": -1, "step ": -1, "timestep_embedding 3": -1, "stepping 4": -1, "steps 4": -1, "step 2147483647": -1,
		"step 99999999999999999999": -1, "step -1": -1, "phase 4": -1,
	} {
		n, found := stepNumber(text, stepNames)
		if !found {
			n = -1
		}
		if n != want {
			t.Errorf("%q: step %d, expected %d", text, n, want)
		}
	}
	if n, found := stepNumber("Phase 4, step 5", []string{"phase"}); n != 4 || !found {
		t.Errorf("another name: step %d, %v", n, found)
	}
}

// TestSteps has an AllReduce before the first step, two in the first step, of which one is in a range within it, one
// between the steps, and one in the last step on another thread.
func TestSteps(t *testing.T) {
	for _, c := range []struct {
		outer, inner, named string
		want                []int32
	}{
		{"iteration", "step", "", []int32{0, 0, 6, 6, 6, 6, 0, 0, 8, 8}},
		{"Micro", "step", "", []int32{0, 0, 0, 0, 78, 78, 0, 0, 0, 0}},
		{"epoch", "step", "Epoch", []int32{0, 0, 6, 6, 6, 6, 0, 0, 8, 8}},
		{"none", "step 0, ", "", []int32{0, 0, 0, 0, 1, 1, 0, 0, 0, 0}},
	} {
		m := twoProcesses(func(p *testProcess, rank int) {
			p.init(0xabc, 0x1, rank, 2)
			at := int64(10000)
			reduce := func(p *testProcess) {
				p.allReduce(0xabc, 0x10, 400, int64(rank), 7, at, at+500)
				at += 1000
			}
			reduce(p)
			first := p.push("%s 6,", c.outer)
			reduce(p)
			within := p.push("%s 78", c.inner)
			reduce(p)
			p.pop(within)
			p.pop(first)
			reduce(p)
			second := p.push("%s #8,", c.outer)
			reduce(p.thread(1))
			p.pop(second)
		})
		trace, warnings, err := readFiles(format.ReadOptions{Own: &Options{StepRange: c.named}}, m.write(t, t.TempDir()))
		if err != nil || len(warnings) > 0 {
			t.Fatal(err, warnings)
		}
		if trace.Steps != slices.Max(c.want) {
			t.Errorf("%s: %d steps", c.outer, trace.Steps)
		}
		for rank, r := range trace.Ranks {
			var got []int32
			for i := range r.Len() {
				got = append(got, r.Step.At(i))
			}
			if !slices.Equal(got, c.want) {
				t.Errorf("%s: rank %d: steps %v, expected %v", c.outer, rank, got, c.want)
			}
		}
	}
}
