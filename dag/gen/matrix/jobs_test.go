package matrix

import (
	"fmt"
	"math"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/tracedag/tracedag/dag"
	"github.com/tracedag/tracedag/dag/jobgraph"
	"github.com/tracedag/tracedag/internal/golden"
)

// jobParams returns a workload of jobs of a preset.
func jobParams(t *testing.T, preset string) JobParams {
	t.Helper()
	p := JobParams{Params: Default(), Jobs: 200, Connectivity: 1.5, DataShare: 0.8, RunDeviation: 0.2}
	if !p.Use(preset) {
		t.Fatalf("no preset %s", preset)
	}
	return p
}

// TestJobs checks the statistics of 200 jobs of 80 ops.
func TestJobs(t *testing.T) {
	p := jobParams(t, "tensorflow")
	p.Racks = 4
	p.Ops.Distribution = mustParse(ParseDistribution("uniform:min=80,max=80"))
	jobs, r, err := NewJobs(p, 1)
	if err != nil {
		t.Fatal(err)
	}
	if len(jobs) != 200 || r.Jobs != 200 || r.Ops != 200*80 {
		t.Fatalf("%d jobs, report %+v", len(jobs), r)
	}
	inner, ends, data, edges, total := 0, 0, 0, 0, int64(0)
	ratio, ratios, squares := 0.0, 0.0, 0.0
	for i := range jobs {
		j := &jobs[i]
		if err := j.Check(p.Nodes); err != nil { // acyclic, and each op between source and sink
			t.Fatalf("job %d: %v", i, err)
		}
		if j.Ops != 82 || i > 0 && j.Arrival < jobs[i-1].Arrival {
			t.Fatalf("job %d: %d ops, arrival %v", i, j.Ops, j.Arrival)
		}
		into, out := j.In(), j.Out()
		for n := range j.Edges {
			e := &j.Edges[n]
			if edges++; !e.Control {
				data++
				total += e.Bytes
				if e.Source == e.Destination || e.Bytes < 1 || e.Bytes > 1 && e.Bytes%25 != 0 {
					t.Fatalf("job %d: %+v", i, e)
				}
			}
			if e.Tail == 0 || e.Head == 81 {
				ends++
				if e.Tail == 0 && e.Run != 0 {
					t.Fatalf("the source of job %d runs %v", i, e.Run)
				}
			} else {
				inner++
			}
		}
		for op := int32(1); op < 81; op++ {
			megabytes := int64(0)
			for _, n := range append(append([]int32{}, into(op)...), out(op)...) {
				megabytes += j.Edges[n].Bytes / 1_000_000
			}
			run := j.Edges[out(op)[0]].Run
			for _, n := range out(op) {
				if j.Edges[n].Run != run {
					t.Fatalf("op %d of job %d runs %v and %v", op, i, run, j.Edges[n].Run)
				}
			}
			if megabytes > 0 {
				x := float64(run) / 1e6 / float64(megabytes)
				ratio, ratios, squares = ratio+x, ratios+1, squares+(x-1)*(x-1)
			}
		}
	}
	if mean, want := float64(inner)/200, 259.6; math.Abs(mean/want-1) > 0.05 {
		t.Errorf("%v edges between ops of a job, expected %v", mean, want)
	}
	if ends < 200*2 {
		t.Errorf("%d edges of sources and sinks", ends)
	}
	if share := float64(data) / float64(edges); math.Abs(share-0.8) > 0.01 {
		t.Errorf("share of data %v, expected 0.8", share)
	}
	if mean, sd := ratio/ratios, math.Sqrt(squares/ratios); math.Abs(mean-1) > 0.01 || math.Abs(sd-0.2) > 0.01 {
		t.Errorf("run times have mean %v and deviation %v of those by data, expected 1 and 0.2", mean, sd)
	}
	last := float64(jobs[199].Arrival) / 1e6
	if load := float64(total) / last / (64 * 12500 / 2); total != r.SumSizes || math.Abs(load-0.5) > 1e-9 {
		t.Errorf("%d bytes in %v us: load %v, expected 0.5", total, last, load)
	}
	if *r.InterRackShare < 0.2-1e-9 || *r.InterRackShare > 0.2+1e-9 || r.PackingDistance > 0.1 {
		t.Errorf("inter-rack share %v, packing distance %v", *r.InterRackShare, r.PackingDistance)
	}
}

// TestJobsGrow checks that jobs are drawn until the numbers of ops are as close to their distribution as required.
func TestJobsGrow(t *testing.T) {
	p := jobParams(t, "tensorflow")
	p.Jobs, p.Threshold = 5, 0.1
	jobs, r, err := NewJobs(p, 1)
	if err != nil || len(jobs) <= 5 || *r.OpsDistance > 0.1 {
		t.Fatalf("%d jobs, error %v", len(jobs), err)
	}
	for i := range jobs {
		if n := jobs[i].Ops - 2; n < 50 || n > 200 || n%10 != 0 {
			t.Errorf("job %d has %d ops", i, n)
		}
	}
	again, _, err := NewJobs(p, 1)
	if err != nil || !reflect.DeepEqual(again, jobs) {
		t.Errorf("other jobs of the same seed, error %v", err)
	}
	if other, _, _ := NewJobs(p, 2); reflect.DeepEqual(other, jobs) {
		t.Error("the same jobs of another seed")
	}
}

// TestPrototyping checks the preset, whose values are constant, and a load of 0.
func TestPrototyping(t *testing.T) {
	p := jobParams(t, "prototyping")
	p.Jobs, p.Load = 7, 0
	jobs, _, err := NewJobs(p, 3)
	if err != nil || len(jobs) != 7 {
		t.Fatalf("%d jobs, error %v", len(jobs), err)
	}
	for i := range jobs {
		if jobs[i].Ops != 12 || int64(jobs[i].Arrival) != int64(i)*10_000_000_000 {
			t.Errorf("job %d: %d ops, arrival %v", i, jobs[i].Ops, jobs[i].Arrival)
		}
		for _, e := range jobs[i].Edges {
			if e.Bytes != 10 && !e.Control || e.Run != 0 {
				t.Errorf("job %d: %+v", i, e)
			}
		}
	}
}

// TestJobGraphs checks graphs at the limits of connectivity, and of one op.
func TestJobGraphs(t *testing.T) {
	p := jobParams(t, "prototyping")
	p.Jobs, p.Connectivity, p.IgnorePorts = 3, 1000, true
	for ops, edges := range map[string]int{"uniform:min=1,max=1": 2, "uniform:min=10,max=10": 45 + 2} {
		p.Ops.Distribution = mustParse(ParseDistribution(ops))
		jobs, _, err := NewJobs(p, 1)
		if err != nil {
			t.Fatal(err)
		}
		for i := range jobs {
			if err := jobs[i].Check(p.Nodes); err != nil || len(jobs[i].Edges) != edges {
				t.Errorf("%s: %d edges, expected %d, error %v", ops, len(jobs[i].Edges), edges, err)
			}
		}
	}
}

// TestJobErrors checks parameters out of range.
func TestJobErrors(t *testing.T) {
	for want, change := range map[string]func(p *JobParams){
		"jobs is 0, expected 1..1048576":          func(p *JobParams) { p.Jobs = 0 },
		"connectivity is -1, expected 0..1000":    func(p *JobParams) { p.Connectivity = -1 },
		"data-share is NaN, expected 0..1":        func(p *JobParams) { p.DataShare = math.NaN() },
		"data-share is 0, expected a share":       func(p *JobParams) { p.DataShare = 0 },
		"run-time-sd is 11, expected 0..10":       func(p *JobParams) { p.RunDeviation = 11 },
		"ops-dist is a distribution that gives 0": func(p *JobParams) { p.Ops.Distribution = mustParse(ParseDistribution("uniform:min=0,max=3")) },
		"load is 0.96, expected 0..0.95":          func(p *JobParams) { p.Load = 0.96 },
	} {
		p := jobParams(t, "prototyping")
		change(&p)
		if _, _, err := NewJobs(p, 1); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("error %v, expected %q", err, want)
		}
	}
}

// TestJobsGolden lists all ops of a small trace in each form.
func TestJobsGolden(t *testing.T) {
	p := jobParams(t, "tensorflow")
	p.Nodes, p.Racks, p.Jobs, p.Threshold = 3, 0, 2, 1
	p.Ops = Values{Distribution: mustParse(ParseDistribution("uniform:min=2,max=4"))}
	p.AutoCorrect = true
	jobs, _, err := NewJobs(p, 4)
	if err != nil {
		t.Fatal(err)
	}
	var text strings.Builder
	for number, control := range controls {
		trace, err := jobgraph.Trace(t.Context(), p.Nodes, jobs, jobgraph.Control(number))
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(&text, "control %s, jobs %q\n", control, trace.Jobs)
		for rank, r := range trace.Ranks {
			for i := range r.Len() {
				op := r.Op(i)
				fmt.Fprintf(&text, "%d.%d job %d: ", rank, i, op.Job)
				if op.Kind == dag.Calc {
					fmt.Fprintf(&text, "calc %d ps, stream %d", op.Duration, op.Stream)
				} else {
					fmt.Fprintf(&text, "%v rank %d, %d bytes, tag %d", op.Kind, op.Peer, op.Bytes, op.Tag)
				}
				if op.Release > 0 {
					fmt.Fprintf(&text, ", at %d ps", op.Release)
				}
				for _, off := range r.Deps.Of(i) {
					fmt.Fprintf(&text, ", after %d.%d", rank, i-int(off))
				}
				text.WriteString(strings.TrimRight(" "+op.Attrs, " ") + "\n")
			}
		}
	}
	golden.Check(t, filepath.Join("testdata", "jobs.txt"), text.String())
}
