package simulate

import (
	"context"
	"encoding/json"
	"fmt"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/tracedag/tracedag/dag"
	"github.com/tracedag/tracedag/dag/compose"
	"github.com/tracedag/tracedag/dag/gen/collective"
	"github.com/tracedag/tracedag/internal/cli/clitest"
	"github.com/tracedag/tracedag/sim/measure"
)

// ns is the unit of time in these tests. Their networks have an overhead of 2 ns, a latency of 10 ns and 1 ns per byte.
const ns = dag.Nanosecond

var nsNetwork = []string{"--L", "10", "--o", "2", "--g", "0", "--G", "1", "--O", "0", "--json"}

// parsedOutcome is an element of the jobs in the JSON result, with times in nanoseconds.
type parsedOutcome struct {
	name                    string
	firstRank               int // -1: none is stated
	ranks                   int
	start, finish, makespan float64
	compute, exposed        float64
	aloneFinish, alone      float64 // 0: not stated, as of the last
	slowdown                float64
}

func parseOutcomes(t *testing.T, text string) (outcomes []parsedOutcome) {
	t.Helper()
	var d struct {
		Jobs []struct {
			Name      string
			FirstRank *int `json:"first_rank"`
			Ranks     int
			Start     float64 `json:"start_ps"`
			Finish    float64 `json:"finish_ps"`
			Makespan  float64 `json:"makespan_ps"`
			Compute   float64 `json:"compute_ps"`
			Exposed   float64 `json:"exposed_compute_ps"`
			Share     float64 `json:"exposed_compute_share"`
			AloneEnd  float64 `json:"alone_finish_ps"`
			Alone     float64 `json:"alone_makespan_ps"`
			Slowdown  float64
		}
	}
	if err := json.Unmarshal([]byte(text), &d); err != nil {
		t.Fatalf("%v in %.500s", err, text)
	}
	for _, j := range d.Jobs {
		o := parsedOutcome{j.Name, -1, j.Ranks, j.Start / 1e3, j.Finish / 1e3, j.Makespan / 1e3, j.Compute / 1e3,
			j.Exposed / 1e3, j.AloneEnd / 1e3, j.Alone / 1e3, j.Slowdown}
		if j.FirstRank != nil {
			o.firstRank = *j.FirstRank
		}
		if j.Compute > 0 && j.Share != j.Exposed/j.Compute || j.Compute == 0 && j.Share != 0 {
			t.Errorf("job %s: a share of %v of %v is exposed, %v", j.Name, j.Share, j.Compute, j.Exposed)
		}
		outcomes = append(outcomes, o)
	}
	return outcomes
}

// tenants returns a trace of two jobs on the same two ranks, joined by calcs that take no time. Streams 0 and 1 are
// a's, 2 and 3 are b's. In ns:
//
//	a, rank 0: calc 0..100, send 0..2 of 51 bytes that are on the way 2..62
//	a, rank 1: calc 0..40, recv 62..64, calc 64..94
//	b, rank 0: calc 10..30, recv 37..39
//	b, rank 1: calc 10..15, send 15..17 of 11 bytes that are on the way 17..37
func tenants() *dag.Trace {
	b := dag.NewBuilder(2)
	b.Meta().Jobs = []string{"a", "b"}
	add := func(rank int, op dag.Op, deps ...int) int { return b.Rank(rank).Add(op, deps...) }
	first := [2]int{add(0, dag.Op{}), add(1, dag.Op{})}
	last := [2][]int{
		{
			add(0, dag.Op{Duration: 100 * ns}, first[0]),
			add(0, dag.Op{Kind: dag.Send, Peer: 1, Bytes: 51, Stream: 1}, first[0]),
		},
		{
			add(1, dag.Op{Duration: 40 * ns}, first[1]),
		},
	}
	a := add(1, dag.Op{Kind: dag.Recv, Peer: 0, Bytes: 51, Stream: 1}, first[1])
	last[1] = append(last[1], add(1, dag.Op{Duration: 30 * ns}, a))
	x := add(0, dag.Op{Duration: 20 * ns, Release: 10 * ns, Stream: 2, Job: 1}, first[0])
	last[0] = append(last[0], add(0, dag.Op{Kind: dag.Recv, Peer: 1, Bytes: 11, Tag: 1, Stream: 3, Job: 1}, x))
	y := add(1, dag.Op{Duration: 5 * ns, Release: 10 * ns, Stream: 2, Job: 1}, first[1])
	last[1] = append(last[1], add(1, dag.Op{Kind: dag.Send, Peer: 0, Bytes: 11, Tag: 1, Stream: 2, Job: 1}, y))
	for rank := range last {
		add(rank, dag.Op{}, last[rank]...)
	}
	return b.Trace()
}

// TestSharedRanks checks the figures of jobs on the same ranks, whatever the threads and whoever listens.
func TestSharedRanks(t *testing.T) {
	path := storedFile(t, tenants())
	want := []parsedOutcome{
		{name: "a", ranks: 2, finish: 100, makespan: 100, compute: 170, exposed: 38 + 2 + 30},
		{name: "b", ranks: 2, start: 10, finish: 39, makespan: 29, compute: 25, exposed: 7 + 5},
	}
	for _, threads := range []string{"1", "2", "8"} {
		for _, more := range [][]string{nil, {"--timeline", filepath.Join(t.TempDir(), "t.json")}} {
			args := append([]string{path, "--S", "1000", "--threads", threads}, nsNetwork...)
			r := clitest.Run(newCommand, append(args, more...)...)
			if got := parseOutcomes(t, r.Stdout); r.Status != 0 || !reflect.DeepEqual(got, want) {
				t.Errorf("status %d, %+v, expected %+v; %s", r.Status, got, want, r.Stderr)
			}
		}
	}
	r := clitest.Run(newCommand, append([]string{path, "--sweep", "S=100,1000"}, nsNetwork[:10]...)...)
	for line := range strings.Lines(r.Stdout) {
		if got := parseOutcomes(t, line); !reflect.DeepEqual(got, want) {
			t.Errorf("in a sweep: %+v, expected %+v; %s", got, want, r.Stderr)
		}
	}
	r = clitest.Run(newCommand, path, "--backend", "ideal", "--json")
	want = []parsedOutcome{
		{name: "a", ranks: 2, finish: 100, makespan: 100, compute: 140, exposed: 140}, // streams do not matter
		{name: "b", ranks: 2, start: 10, finish: 30, makespan: 20, compute: 25, exposed: 25},
	}
	if got := parseOutcomes(t, r.Stdout); r.Status != 0 || !reflect.DeepEqual(got, want) {
		t.Errorf("ideal: status %d, %+v, expected %+v; %s", r.Status, got, want, r.Stderr)
	}
	r = clitest.Run(newCommand, path, "--backend", "ideal")
	if line := "b 0..1 10ns 30ns 20ns 100%"; !strings.Contains(squeezed(r.Stdout), line) {
		t.Errorf("no %q in\n%s", line, r.Stdout)
	}
}

// apart returns a trace of two jobs in which a has ranks 0 and 2, b rank 1, and no job rank 3.
func apart(a0, a2, b1 []dag.Op) *dag.Trace {
	b := dag.NewBuilder(4)
	b.Meta().Jobs = []string{"a", "b"}
	for rank, ops := range [][]dag.Op{a0, b1, a2} {
		for i, op := range ops {
			op.Job = int32(rank & 1)
			if i > 0 && op.Stream == ops[i-1].Stream {
				b.Rank(rank).Add(op, i-1)
			} else {
				b.Rank(rank).Add(op)
			}
		}
	}
	return b.Trace()
}

// TestExposedCompute checks the compute time without concurrent communication; job b only computes.
func TestExposedCompute(t *testing.T) {
	calc := func(length dag.Time, stream int32) dag.Op { return dag.Op{Duration: length * ns, Stream: stream} }
	send := dag.Op{Kind: dag.Send, Peer: 2, Bytes: 11, Stream: 9}
	recv := dag.Op{Kind: dag.Recv, Peer: 0, Bytes: 11}
	allreduce := dag.Op{Kind: dag.Coll, Subkind: dag.Allreduce, Comm: 1, Bytes: 8, Stream: 1}
	for _, c := range []struct {
		name   string
		args   []string
		a0, a2 []dag.Op
		want   parsedOutcome // of job a
	}{
		// In flight 2..22, received 100..102.
		{"unexpected message", []string{"--S", "1000"}, []dag.Op{send}, []dag.Op{calc(100, 0), recv},
			parsedOutcome{finish: 102, compute: 100, exposed: 80}},
		// Requested 0..2, granted at 60, in flight 60..80, received 80..82.
		{"rendezvous", []string{"--S", "0"}, []dag.Op{calc(100, 0), send}, []dag.Op{calc(50, 0), recv, calc(7, 0)},
			parsedOutcome{finish: 100, compute: 157, exposed: 78 + 50 + 7}},
		{"streams side by side", []string{"--S", "1000"}, []dag.Op{calc(30, 0), calc(50, 1), calc(20, 1)}, nil,
			parsedOutcome{finish: 70, compute: 70, exposed: 70}},
		{"nothing but messages", []string{"--S", "1000"}, []dag.Op{send}, []dag.Op{recv}, parsedOutcome{finish: 24}},
		// On rank 0, the allreduce waits for rank 2 from 10 to 30.
		{"collective", []string{"--backend", "ideal"}, []dag.Op{calc(15, 0), calc(10, 1), allreduce},
			[]dag.Op{calc(30, 1), allreduce}, parsedOutcome{finish: 30, compute: 45, exposed: 10 + 30}},
	} {
		args := append(c.args, storedFile(t, withComm(apart(c.a0, c.a2, []dag.Op{calc(20, 0)}))))
		if c.args[0] == "--S" {
			args = append(args, nsNetwork...)
		}
		r := clitest.Run(newCommand, append(args, "--json")...)
		c.want.name, c.want.firstRank, c.want.makespan, c.want.ranks = "a", -1, c.want.finish, 2
		if c.a2 == nil {
			c.want.firstRank, c.want.ranks = 0, 1
		}
		b := parsedOutcome{name: "b", firstRank: 1, ranks: 1, finish: 20, makespan: 20, compute: 20, exposed: 20}
		want := []parsedOutcome{c.want, b}
		if got := parseOutcomes(t, r.Stdout); r.Status != 0 || !reflect.DeepEqual(got, want) {
			t.Errorf("%s: status %d, %+v, expected %+v; %s", c.name, r.Status, got, want, r.Stderr)
		}
	}
}

// withComm adds a communicator of ranks 0 and 2.
func withComm(t *dag.Trace) *dag.Trace {
	t.Comms = append(t.Comms, dag.NewComm("a", []int32{0, 2}))
	return t
}

// TestAnalyticalCompute compares exposed compute with the analytical backend's own counts, for jobs on separate ranks
// and, where calcs of no time between them last a nanosecond, on the same ranks.
func TestAnalyticalCompute(t *testing.T) {
	b := dag.NewBuilder(4)
	for rank := range 4 {
		r := b.Rank(rank)
		c := r.Calc(dag.Time(3+rank) * dag.Microsecond)
		coll := r.Add(dag.Op{Kind: dag.Coll, Subkind: dag.Allreduce, Bytes: 1 << 16}, c)
		r.Calc(7*dag.Microsecond, c)
		r.Calc(dag.Microsecond, coll)
	}
	path := storedFile(t, b.Trace())
	analytical := []string{"--backend", "analytical", "--network", "Ring(4)@50GB/s,500ns", "--json"}
	r := clitest.Run(newCommand, append(analytical, "--trace", path+"@1us")...)
	var d struct {
		NPUs struct {
			GPU     []int64 `json:"gpu_time"`
			Comm    []int64 `json:"comm_time"`
			Exposed []int64 `json:"exposed_comm_time"`
		} `json:"npu_stats"`
	}
	if err := json.Unmarshal([]byte(r.Stdout), &d); err != nil || r.Status != 0 {
		t.Fatal(err, r.Stderr)
	}
	compute, exposed := 0.0, 0.0
	for npu, gpu := range d.NPUs.GPU {
		compute += float64(gpu)
		exposed += float64(gpu - (d.NPUs.Comm[npu] - d.NPUs.Exposed[npu]))
	}
	got := parseOutcomes(t, r.Stdout)
	if len(got) != 1 || got[0].compute != compute || got[0].exposed != exposed || exposed == compute || exposed == 0 {
		t.Errorf("%+v, expected %v of %v exposed", got, exposed, compute)
	}

	path = storedFile(t, tenants())
	r = clitest.Run(newCommand, "--backend", "analytical", "--network", "Ring(2)@50GB/s,500ns", "--json", path)
	// The calcs of zero duration take 1 ns here. A message takes 500 ns and 0.02 ns per byte: at both ends for all of a's
	// first calcs, and of b's for the one on the receiver, before the receive is posted.
	want := []parsedOutcome{
		{name: "a", ranks: 2, start: 1, finish: 531, makespan: 530, compute: 170, exposed: 30},
		{name: "b", ranks: 2, start: 10, finish: 515, makespan: 505, compute: 25, exposed: 10},
	}
	if got := parseOutcomes(t, r.Stdout); !reflect.DeepEqual(got, want) {
		t.Errorf("%+v, expected %+v; %s", got, want, r.Stderr)
	}
}

// TestAlone checks runs of single jobs: jobs that share no network, jobs of which one waits for the other's message to
// leave, and all formats of the result.
func TestAlone(t *testing.T) {
	b := dag.NewBuilder(2)
	b.Meta().Jobs = []string{"a", "b"}
	for rank, op := range []dag.Op{{Kind: dag.Send, Peer: 1}, {Kind: dag.Recv, Peer: 0}} {
		r := b.Rank(rank)
		first := r.Add(dag.Op{})
		var last []int
		for job := range int32(2) {
			op.Bytes, op.Tag, op.Stream, op.Job = int64(101-50*job), int64(job), job, job
			last = append(last, r.Add(op, first))
		}
		r.Add(dag.Op{}, last...)
	}
	shared := storedFile(t, b.Trace())
	want := []parsedOutcome{
		{name: "a", ranks: 2, finish: 114, makespan: 114, aloneFinish: 114, alone: 114, slowdown: 1},
		{name: "b", ranks: 2, finish: 164, makespan: 164, aloneFinish: 64, alone: 64, slowdown: 164. / 64},
	}
	args := append([]string{shared, "--alone", "--S", "1000"}, nsNetwork...)
	for _, threads := range []string{"1", "8"} {
		r := clitest.Run(newCommand, append(args, "--threads", threads)...)
		if got := parseOutcomes(t, r.Stdout); r.Status != 0 || !reflect.DeepEqual(got, want) {
			t.Errorf("status %d, %+v, expected %+v; %s", r.Status, got, want, r.Stderr)
		}
	}
	r := clitest.Run(newCommand, args[:len(args)-1]...)
	if line := "b 0..1 0s 164ns 164ns no compute 64ns 2.562"; !strings.Contains(squeezed(r.Stdout), line) {
		t.Errorf("no %q in\n%s", line, r.Stdout)
	}

	colls := storedFile(t, withCollectives(4))
	for _, backend := range [][]string{
		{"--backend", "loggops"}, {"--backend", "ideal", "--ops"}, {"--model", "atlahs"},
		{"--backend", "analytical", "--network", "Ring(8)@50GB/s,500ns"},
	} {
		second := colls + "@5us"
		if backend[1] == "atlahs" {
			second = colls
		}
		r := clitest.Run(newCommand, append(backend, "--trace", colls, "--trace", second, "--alone", "--json")...)
		got := parseOutcomes(t, r.Stdout)
		if r.Status != 0 || r.Stderr != "" || len(got) != 2 {
			t.Fatalf("%v: status %d, %s", backend, r.Status, r.Stderr)
		}
		for i, o := range got {
			if o.firstRank != 4*i || o.ranks != 4 || o.aloneFinish != o.finish || o.alone != o.makespan || o.slowdown != 1 ||
				o.makespan != got[0].makespan || o.makespan == 0 {
				t.Errorf("%v: %+v", backend, o)
			}
		}
	}
}

// TestAloneIncomplete checks the messages about jobs that need each other's messages.
func TestAloneIncomplete(t *testing.T) {
	b := dag.NewBuilder(3)
	b.Meta().Jobs = []string{"a", "b", "c"}
	b.Rank(0).Add(dag.Op{Kind: dag.Send, Peer: 1, Bytes: 8})
	b.Rank(1).Add(dag.Op{Kind: dag.Recv, Peer: dag.AnySource, Bytes: 8, Job: 1})
	b.Rank(2).Add(dag.Op{Duration: ns, Job: 2})
	path := storedFile(t, b.Trace())
	r := clitest.Run(newCommand, path, "--alone", "--json")
	got := parseOutcomes(t, r.Stdout)
	if r.Status != 1 || len(got) != 3 || got[0].aloneFinish != 0 || got[1].aloneFinish != 0 || got[2].alone != 1 ||
		!strings.Contains(r.Stderr, path+": job b alone: rank 1 op 0 (recv) waits for a message from any rank, tag 0") {
		t.Errorf("status %d, %+v; %s", r.Status, got, r.Stderr)
	}
	r = clitest.Run(newCommand, path, "--alone")
	if !strings.Contains(squeezed(r.Stdout), "no compute incomplete ") {
		t.Error(r.Stdout)
	}
}

func TestAloneErrors(t *testing.T) {
	one, two := storedFile(t, pairs(2).Trace()), storedFile(t, tenants())
	for _, c := range []struct {
		args   string
		status int
		want   string
	}{
		{one, 1, one + ": --alone: the trace has no jobs"},
		{two + " --sweep L=1,2", 2, "--alone and --sweep exclude each other"},
		{two + " --backend ideal --ops", 2, "add --json to use it with --alone or --compare"},
		{two + " --model loggopsim", 1, "the loggopsim model does not support the trace's release times"},
	} {
		r := clitest.Run(newCommand, append(strings.Fields(c.args), "--alone")...)
		if r.Status != c.status || !strings.Contains(r.Stderr, c.want) || r.Stdout != "" {
			t.Errorf("%s: status %d, stderr %q, stdout %.100q; expected %d, %q", c.args, r.Status, r.Stderr, r.Stdout,
				c.status, c.want)
		}
	}
	strange := tenants()
	strange.Ranks[1].Job.Set(3, 2)
	err := measure.NewJobs(strange.Meta, 2, nil).Observe(0, strange.Ranks)
	if err == nil || err.Error() != "rank 1 op 3 belongs to job 2, expected 0..1" {
		t.Error(err)
	}
}

// TestMergedBefore checks the names and starts of jobs if one trace is already merged.
func TestMergedBefore(t *testing.T) {
	one := pairs(2).Trace()
	jobs := []compose.Job{{Name: "a", Trace: one}, {Name: "b", Trace: one, Start: 3 * dag.Microsecond}}
	merged, err := compose.Merge(context.Background(), jobs)
	if err != nil {
		t.Fatal(err)
	}
	night, day := storedFile(t, merged), storedFile(t, one)
	args := append([]string{"--trace", night + "@1us", "--trace", day + "@5us", "--S", "1000"}, nsNetwork...)
	got := parseOutcomes(t, clitest.Run(newCommand, args...).Stdout)
	var names []string
	var starts []float64
	for _, o := range got {
		names, starts = append(names, fmt.Sprint(o.name, " ", o.firstRank, " ", o.ranks)), append(starts, o.start)
	}
	if !slices.Equal(names, []string{"x.parquet/a 0 2", "x.parquet/b 2 2", "x.parquet#2 4 2"}) ||
		!slices.Equal(starts, []float64{1000, 4000, 5000}) {
		t.Errorf("%v start at %v", names, starts)
	}
	for i := range got {
		if got[i].makespan != got[0].makespan || got[i].exposed != got[0].exposed {
			t.Errorf("%+v, the first %+v", got[i], got[0])
		}
	}
}

// TestSharedAsApart checks that jobs have the same times on separate ranks, from the finish times of ranks, and on
// ranks shared with a calc of zero duration of another job, from the ends of ops.
func TestSharedAsApart(t *testing.T) {
	p := collective.Default()
	p.Size, p.Ranks = 1<<20, 6
	allreduce, err := readAll(collective.NewSource(p))
	if err != nil {
		t.Fatal(err)
	}
	merged, err := compose.Merge(context.Background(), []compose.Job{
		{Name: "a", Trace: pairs(9).Trace()}, {Name: "b", Trace: withCollectives(5), Start: dag.Microsecond},
		{Name: "c", Trace: allreduce},
	})
	if err != nil {
		t.Fatal(err)
	}
	shared := *merged
	shared.Ranks = slices.Clone(merged.Ranks)
	for i := range shared.Ranks {
		r := shared.Ranks[i].Clone()
		r.Job.Set(r.Len(), (r.Job.At(0)+1)%3)
		r.Kind = append(r.Kind, dag.Calc)
		shared.Ranks[i] = r
	}
	apartPath, sharedPath := storedFile(t, merged), storedFile(t, &shared)
	for _, args := range [][]string{
		{}, {"--S", "0"}, {"--S", "0", "--G", "100", "--o", "1"}, {"--backend", "ideal"},
		{"--backend", "analytical", "--network", "Ring(20)@50GB/s,500ns"},
	} {
		want := clitest.Run(newCommand, append(args, "--json", "--alone", apartPath)...)
		got := clitest.Run(newCommand, append(args, "--json", "--alone", sharedPath)...)
		wantJobs, gotJobs := parseOutcomes(t, want.Stdout), parseOutcomes(t, got.Stdout)
		if want.Status != 0 || len(wantJobs) != 3 || !reflect.DeepEqual(gotJobs, wantJobs) {
			t.Errorf("%v: %+v, expected %+v; %s%s", args, gotJobs, wantJobs, want.Stderr, got.Stderr)
		}
		for _, o := range wantJobs {
			if o.slowdown != 1 && o.alone > 0 {
				t.Errorf("%v: %+v", args, o)
			}
		}
	}
}

// TestLongRuns checks sums that exceed 64 bits.
