package slots

import (
	"bytes"
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/tracedag/tracedag/dag"
	"github.com/tracedag/tracedag/dag/jobgraph"
	"github.com/tracedag/tracedag/param"
	"github.com/tracedag/tracedag/sim"
)

// jobTrace returns the trace of jobs.
func jobTrace(t *testing.T, hosts int, control jobgraph.Control, jobs ...jobgraph.Job) *dag.Trace {
	t.Helper()
	trace, err := jobgraph.Trace(t.Context(), hosts, jobs, control)
	if err != nil {
		t.Fatal(err)
	}
	return trace
}

// bothControls are the choices of storing orders across machines.
var bothControls = []jobgraph.Control{jobgraph.Messages, jobgraph.Attributes}

// TestJobByHand checks completion times of jobs by hand. The first job sends 15 packets in slots 1 and 2, runs for 5 us,
// and sends 5 packets in slot 4; its control edges take no time. The second one's edges are all control: 4 + 6 us.
func TestJobByHand(t *testing.T) {
	const us = dag.Microsecond
	first := jobgraph.Job{Name: "a", Arrival: 3 * us, Ops: 4, Edges: []jobgraph.Edge{
		{Tail: 0, Head: 1, Source: 0, Destination: 2, Bytes: 1500},
		{Tail: 0, Head: 2, Source: 1, Destination: 0, Control: true},
		{Tail: 1, Head: 3, Source: 1, Destination: 0, Bytes: 500, Run: 5 * us},
		{Tail: 2, Head: 3, Source: 2, Destination: 1, Control: true, Run: 4 * us},
		{Tail: 2, Head: 1, Source: 2, Destination: 2, Control: true, Run: 4 * us},
	}}
	second := jobgraph.Job{Name: "b", Arrival: 13 * us, Ops: 4, Edges: []jobgraph.Edge{
		{Tail: 0, Head: 1, Source: 0, Destination: 2, Control: true},
		{Tail: 1, Head: 2, Source: 1, Destination: 0, Control: true, Run: 4 * us},
		{Tail: 2, Head: 3, Source: 2, Destination: 1, Control: true, Run: 6 * us},
	}}
	for _, control := range bothControls {
		d := runOn(t, jobTrace(t, 3, control, first, second), append(star, "scheduler=srpt")...)
		if want := []float64{27, 15}; !slices.Equal(d.times(), want) || !d.Complete || d.NeverRun != 0 {
			t.Errorf("control %d: completion times %v us, expected %v; complete %v", control, d.times(), want, d.Complete)
		}
		for name, want := range map[string]float64{
			"arrived_jobs": 2, "completed_jobs": 2, "dropped_jobs": 0, "running_jobs": 0, "mean_jct_ps": 28.5e6,
			"max_jct_ps": 47e6, "p99_jct_ps": 46.63e6, "sd_jct_ps": 18.5e6, "jobs_dropped": 0, "window_from_ps": 1.3e6,
		} {
			if got := d.KPIs[name]; got == nil || *got != want {
				t.Errorf("control %d, %s: %v, expected %v", control, name, value(got), want)
			}
		}
	}
}

// TestDroppedJob checks the fates of jobs by hand. In a queue of one flow, the flows of the first job exclude each
// other: the second of them drops the job, its first flow leaves the queue, and the edges behind never begin. The end
// stops the third job; without it, the last job finds the third one's flow in the queue.
func TestDroppedJob(t *testing.T) {
	const us = dag.Microsecond
	pair := func(name string, arrival dag.Time, bytes int64, n int32) jobgraph.Job {
		j := jobgraph.Job{Name: name, Arrival: arrival, Ops: 3}
		for range n {
			j.Edges = append(j.Edges, jobgraph.Edge{Head: 1, Destination: 1, Bytes: bytes})
		}
		j.Edges = append(j.Edges, jobgraph.Edge{Tail: 1, Head: 2, Source: 1, Destination: 2, Bytes: 1000, Run: us})
		return j
	}
	jobs := []jobgraph.Job{
		pair("dropped", 0, 1000, 2), pair("completed", 11*us, 1000, 1), pair("running", 52*us, 5000, 1),
		pair("late", 95*us, 1000, 1),
	}
	for _, control := range bothControls {
		for end, fates := range map[string][]string{
			"90us": {"dropped", "completed", "running", "-"}, "1s": {"dropped", "completed", "completed", "dropped"},
		} {
			var flows, table bytes.Buffer
			d := runFiles(t, jobTrace(t, 3, control, jobs...), map[string]io.Writer{"f": &flows, "j": &table},
				append(star, "max-flows=1", "flows=f", "jobs=j", "end="+end)...)
			var got []string
			for _, line := range strings.Split(strings.TrimSpace(table.String()), "\n")[1:] {
				fields := strings.Split(line, ",")
				fate := strings.Trim(fields[8], `"`)
				if got = append(got, max(fate, "-")); (fate == "completed") != (fields[7] != "") {
					t.Errorf("completion time %q of a job that is %q", fields[7], fate)
				}
			}
			if !slices.Equal(got, fates) || !d.Complete || d.NeverRun == 0 {
				t.Errorf("control %d, end %s: fates %q, expected %q; complete %v, %d never ran", control, end, got, fates,
					d.Complete, d.NeverRun)
			}
			if head := `0,0,1,1000,0,,20000000,"dropped","dropped",,` + "\n" +
				`1,0,1,1000,0,,20000000,"dropped","dropped",,`; !strings.Contains(flows.String(), head) {
				t.Errorf("control %d: flows\n%sexpected\n%s", control, &flows, head)
			}
		}
	}
}

// runFiles runs a trace, with output to the given writers by file name.
func runFiles(t *testing.T, trace *dag.Trace, files map[string]io.Writer, params ...string) (d document) {
	t.Helper()
	b := newBackend()
	texts := make(param.Texts)
	for _, text := range params {
		name, value, _ := strings.Cut(text, "=")
		texts[name] = append(texts[name], value)
	}
	if err := b.Params().Apply(texts); err != nil {
		t.Fatal(err)
	}
	env := &sim.Env{Create: func(name string) (sim.Output, error) { return memoryFile{files[name]}, nil }}
	if err := b.Check(env); err != nil {
		t.Fatal(err)
	}
	r, err := b.Compile(dag.FromTrace(trace), env)
	if err != nil {
		t.Fatal(err)
	}
	result, err := r.Run(sim.RunOptions{Files: true})
	if err != nil {
		t.Fatal(err)
	}
	return documentOf(t, result)
}

// memoryFile is an output file in memory.
type memoryFile struct{ io.Writer }

func (memoryFile) Commit() error { return nil }
func (memoryFile) Close()        {}

// randomJob returns a random job graph whose edges point from lower to higher ops.
func randomJob(r *rand.Rand, name string, hosts int) jobgraph.Job {
	j := jobgraph.Job{Name: name, Arrival: dag.Time(r.Int64N(int64(300 * dag.Microsecond))), Ops: 3 + r.Int32N(8)}
	add := func(tail, head int32) {
		e := jobgraph.Edge{Tail: tail, Head: head, Source: r.Int32N(int32(hosts)), Destination: r.Int32N(int32(hosts)),
			Control: r.IntN(4) == 0}
		if tail > 0 {
			e.Run = dag.Time(r.Int64N(4)) * 7 * dag.Microsecond / 2
		}
		if !e.Control {
			e.Bytes = 1 + r.Int64N(8000)
		}
		j.Edges = append(j.Edges, e)
	}
	for op := int32(1); op < j.Ops; op++ {
		add(r.Int32N(op), op)
		add(r.Int32N(op), op)
	}
	out := j.Out
	for op := range j.Ops - 1 {
		if len(out()(op)) == 0 {
			add(op, j.Ops-1)
		}
	}
	return j
}

// TestJobOrder checks, for random jobs, that each flow begins when all edges into the op before it have ended and the
// op has run, that jobs end with their last edge, and that results do not depend on how the order is stored.
func TestJobOrder(t *testing.T) {
	r := rand.New(rand.NewPCG(9, 10))
	dropped := 0
	for round := range 24 {
		var jobs []jobgraph.Job
		for n := range 1 + r.IntN(30) {
			jobs = append(jobs, randomJob(r, fmt.Sprint("j", n), 12))
		}
		var first string
		for _, control := range bothControls {
			limit := []string{"max-flows=50", "max-flows=1"}[round/len(schedulers)%2]
			replay := compiled(t, jobTrace(t, 12, control, jobs...), "topology="+networks[round%len(networks)],
				"slot=10us", "packet-size=100", "scheduler="+schedulers[round%len(schedulers)], limit).(*replay)
			c, out, _, err := replay.simulate(replay.b, &sim.RunOptions{})
			if err != nil {
				t.Fatal(err)
			}
			text := fmt.Sprint(c.flows.arrived, c.flows.ended, c.flows.dropped, c.jobs.ended, c.jobs.dropped)
			if first == "" {
				first = text
			} else if text != first {
				t.Errorf("round %d: results of control %d\n%s, expected\n%s", round, control, text, first)
			}
			if result := out.Result(replay.program); !c.jobs.complete(replay.program, out, false) ||
				slices.Contains(c.jobs.dropped, true) == result.Complete {
				t.Errorf("round %d: complete %v with dropped jobs %v", round, result.Complete, c.jobs.dropped)
			}
			for _, is := range c.jobs.dropped {
				if is {
					dropped++
				}
			}
			checkOrder(t, c, jobs)
		}
	}
	if dropped == 0 {
		t.Error("no job was dropped")
	}
}

// checkOrder checks the times of edges against their definition.
func checkOrder(t *testing.T, c *coupling, jobs []jobgraph.Job) {
	t.Helper()
	flow := make(map[uint32]int) // by edge of all jobs
	for i, m := range c.flows.op {
		edge, ok := c.jobs.edgeOf(m)
		if !ok {
			t.Fatal("a flow is no edge")
		}
		flow[edge] = i
	}
	base := uint32(0)
	for j := range jobs {
		job := &jobs[j]
		ready := make([]dag.Time, job.Ops) // edges point to higher ops
		ready[0] = job.Arrival
		end := dag.Time(0)
		if !c.jobs.dropped[j] {
			out := job.Out()
			for op := range job.Ops {
				for _, n := range out(op) {
					e := &job.Edges[n]
					at := ready[op] + e.Run
					if i, is := flow[base+uint32(n)]; is {
						if got := dag.Time(c.flows.arrived[i]); got != at {
							t.Fatalf("job %d, edge %d begins at %v, expected %v", j, n, got, at)
						}
						at = dag.Time(c.flows.ended[i])
					} else if !e.Control && e.Source != e.Destination {
						t.Fatalf("job %d, edge %d: no flow", j, n)
					}
					ready[e.Head], end = max(ready[e.Head], at), max(end, at)
				}
			}
			if got := dag.Time(c.jobs.ended[j]); got != end || c.jobs.left[j] != 0 {
				t.Fatalf("job %d ends at %v, expected %v; %d edges left", j, got, end, c.jobs.left[j])
			}
		}
		base += uint32(len(job.Edges))
	}
}

// TestJobErrors checks the messages about traces that are no job graphs.
func TestJobErrors(t *testing.T) {
	b := newBackend()
	if err := b.Params().Apply(param.Texts{"topology": {"star:hosts=3"}, "jobs": {"j"}}); err != nil {
		t.Fatal(err)
	}
	if err := b.Check(nil); err != nil {
		t.Fatal(err)
	}
	_, err := b.Compile(dag.FromTrace(traceOf(3, []flow{{0, 1, 100, 0}})), nil)
	if want := "needs a trace of job graphs"; err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("error %v, expected %q", err, want)
	}
	bad := dag.NewBuilder(2)
	bad.Meta().Jobs = []string{"a"}
	bad.Rank(0).Add(dag.Op{Kind: dag.Send, Peer: 1, Bytes: 8, Attrs: `{"edge":[1,0,1]}`})
	bad.Rank(1).Recv(0, 8, 0)
	_, err = b.Compile(dag.FromTrace(bad.Trace()), nil)
	if want := "job 0 (a): edge number 1, expected edges 0..0"; err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("error %v, expected %q", err, want)
	}
}
