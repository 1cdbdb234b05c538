package backends_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/big"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/tracedag/tracedag/dag"
	"github.com/tracedag/tracedag/param"
	"github.com/tracedag/tracedag/sim"
	"github.com/tracedag/tracedag/sim/backends"
	"github.com/tracedag/tracedag/sim/measure"
)

// TestMain builds the reference peer of the backend exec.
func TestMain(m *testing.M) {
	folder, err := os.MkdirTemp("", "peer")
	if err != nil {
		panic(err)
	}
	peer := filepath.Join(folder, "exec-peer")
	build := exec.Command("go", "build", "-buildvcs=false", "-o", peer, "../../docs/examples/exec-peer")
	if output, err := build.CombinedOutput(); err != nil {
		panic(fmt.Sprintf("building the reference peer: %v\n%s", err, output))
	}
	configurations = append(configurations, configuration{backend: "exec:" + peer},
		configuration{backend: "exec:" + peer + " --serial", params: []string{"send-ends=delivered", "o=10"}})
	status := m.Run()
	os.RemoveAll(folder)
	os.Exit(status)
}

// configurations are the configurations that the suite runs: every backend, with the parameters that it needs for a number
// of ranks.
var configurations = []configuration{
	{backend: "loggops"},
	{backend: "loggops", params: []string{"model=loggopsim"}, wraps: true},
	{backend: "loggops", params: []string{"model=atlahs"}, wraps: true},
	{backend: "analytical", network: "network=Ring(%d)@50GB/s,500ns"},
	{backend: "analytical", network: "network=Switch(%d)@50GB/s,500ns", params: []string{"congestion=aware"}},
	{backend: "packet", network: "topology=star:hosts=%d,rate=100Gbps,latency=500ns"},
	{backend: "packet", network: "topology=star:hosts=%d,rate=100Gbps,latency=500ns", params: []string{"transport=dctcp", "S=1000"}},
	{backend: "packet", network: "topology=star:hosts=%d,rate=100Gbps,latency=500ns", params: []string{"compat=atlahs"}, atlahs: true},
	{backend: "flow", network: "topology=star:hosts=%d,rate=100Gbps,latency=500ns"},
	{backend: "flow", network: "topology=star:hosts=%d,rate=100Gbps,latency=500ns", params: []string{"flow-model=lv08",
		"S=1000", "balance=least", "o=100"}},
	{backend: "flit", network: "topology=star:hosts=%d"},
	{backend: "ideal"},
	{backend: "slots", network: "topology=star:hosts=%d,rate=100Gbps", params: []string{"slot=10us"}},
	{backend: "slots", network: "topology=star:hosts=%d,rate=100Gbps", params: []string{"slot=1us", "scheduler=random"}},
}

type configuration struct {
	backend string
	network string   // parameter with the number of ranks, at least 2; "": none
	params  []string // further ones

	wraps  bool // clocks are nanoseconds that wrap around at 2^64, as those of the reference simulators
	atlahs bool // as in ATLAHS, messages to the own rank are calcs and empty messages have a byte
}

func (c *configuration) String() string {
	return strings.Join(append([]string{backends.Named(c.backend).Name}, c.params...), " ")
}

// set returns the parameters for a number of ranks.
func (c *configuration) set(ranks int) []string {
	set := slices.Clone(c.params)
	if c.network != "" {
		set = append(set, fmt.Sprintf(c.network, max(2, ranks)))
	}
	return set
}

func (c *configuration) options(ranks int) []backends.Option {
	return []backends.Option{backends.Set(c.set(ranks)...)}
}

// configure returns the configured backend for two ranks.
func (c *configuration) configure(t *testing.T, env *sim.Env) sim.Backend {
	t.Helper()
	b := backends.Named(c.backend).New()
	texts := make(param.Texts)
	for _, text := range c.set(2) {
		name, value, _ := strings.Cut(text, "=")
		texts[name] = append(texts[name], value)
	}
	if err := b.Params().Apply(texts); err != nil {
		t.Fatal(err)
	}
	if err := b.Check(env); err != nil {
		t.Fatal(err)
	}
	return b
}

// compile compiles a trace. A backend that needs as many ranks as its network has, at least two, gets empty ranks.
func (c *configuration) compile(t *testing.T, trace *dag.Trace) sim.Replay {
	t.Helper()
	if c.backend == "analytical" && len(trace.Ranks) < 2 {
		more := *trace
		more.Ranks = append(slices.Clone(trace.Ranks), dag.NewRanks(2-len(trace.Ranks))...)
		trace = &more
	}
	replay, err := backends.Compile(trace, c.backend, c.options(len(trace.Ranks))...)
	if err != nil {
		t.Fatal(err)
	}
	return replay
}

func (c *configuration) run(t *testing.T, trace *dag.Trace) *sim.Result {
	t.Helper()
	r, err := c.compile(t, trace).Run(sim.RunOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// forAll runs a test with every configuration.
func forAll(t *testing.T, test func(t *testing.T, c *configuration)) {
	for i := range configurations {
		c := &configurations[i]
		t.Run(c.String(), func(t *testing.T) { test(t, c) })
	}
}

func TestEveryBackendIsTested(t *testing.T) {
	for _, kind := range backends.All {
		if kind.Name == "busbw" { // it sums up the rows of one format and runs no op
			continue
		}
		if !slices.ContainsFunc(configurations, func(c configuration) bool { return backends.Named(c.backend).Name == kind.Name }) {
			t.Errorf("no configuration of the backend %s", kind.Name)
		}
		if backends.Named(kind.Name) == nil || kind.Title == "" {
			t.Errorf("entry %+v", kind)
		}
	}
}

// document returns the result as JSON without the figures of the wall clock.
func document(t *testing.T, r *sim.Result) string {
	t.Helper()
	var b bytes.Buffer
	if err := r.WriteJSON(&b); err != nil {
		t.Fatal(err)
	}
	var members map[string]json.RawMessage
	if err := json.Unmarshal(b.Bytes(), &members); err != nil {
		t.Fatalf("%v in %.500s", err, &b)
	}
	delete(members, "wall_s")
	delete(members, "ops_per_s")
	text, err := json.Marshal(members)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// exchanges returns a trace in which random pairs of ranks exchange messages, with calcs between.
func exchanges(ranks, rounds int) *dag.Trace {
	random := rand.New(rand.NewPCG(1, 2))
	b := dag.NewBuilder(ranks)
	last := make([][]int, ranks)
	for round := range rounds {
		order := random.Perm(ranks)
		for k := 0; k+1 < ranks; k += 2 {
			from, to := order[k], order[k+1]
			size, tag := random.Int64N(40_000), int64(round)
			calc := b.Rank(from).Calc(dag.Time(random.IntN(1000))*dag.Nanosecond, last[from]...)
			last[from] = []int{b.Rank(from).Send(int32(to), size, tag, calc)}
			last[to] = []int{b.Rank(to).Recv(int32(from), size, tag, last[to]...)}
		}
	}
	return b.Trace()
}

func TestResultsDoNotDependOnThreads(t *testing.T) {
	trace := exchanges(16, 40)
	forAll(t, func(t *testing.T, c *configuration) {
		first := ""
		for _, threads := range []int{1, 2, 16} {
			func() {
				defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(threads))
				r, err := c.compile(t, trace).Run(sim.RunOptions{Threads: threads})
				if err != nil {
					t.Fatal(err)
				}
				if got := document(t, r); first == "" {
					first = got
				} else if got != first {
					t.Errorf("%d threads: got\n%s\nwant\n%s", threads, got, first)
				}
			}()
		}
	})
}

func TestClones(t *testing.T) {
	trace := exchanges(8, 10)
	forAll(t, func(t *testing.T, c *configuration) {
		replay := c.compile(t, trace)
		first, second := replay.Clone(), replay.Clone()
		again := second.Clone()
		want := ""
		for i, r := range []sim.Replay{first, second, replay, again} {
			result, err := r.Run(sim.RunOptions{})
			if err != nil {
				t.Fatal(err)
			}
			if got := document(t, result); i == 0 {
				want = got
			} else if got != want {
				t.Errorf("replay %d: got\n%s\nwant\n%s", i, got, want)
			}
		}
	})
}

// TestSmallTraces runs minimal valid traces. All complete.
func TestSmallTraces(t *testing.T) {
	calc := dag.NewBuilder(1)
	calc.Rank(0).Calc(7*dag.Microsecond, calc.Rank(0).Calc(3*dag.Microsecond))
	self := dag.NewBuilder(2)
	for rank := range int32(2) {
		r := self.Rank(int(rank))
		r.Send(rank, 1000, 5)
		r.Recv(rank, 1000, 5)
	}
	empty := dag.NewBuilder(4)
	for rank := range int32(4) {
		r := empty.Rank(int(rank))
		r.Send((rank+1)%4, 0, 0)
		r.Recv((rank+3)%4, 0, 0)
	}
	for _, test := range []struct {
		name     string
		trace    *dag.Trace
		ops      int64
		messages int64
		bytes    int64
		least    dag.Time // makespan
	}{
		{"no ops", dag.NewBuilder(4).Trace(), 0, 0, 0, 0},
		{"no ranks", dag.NewBuilder(0).Trace(), 0, 0, 0, 0},
		{"one rank", calc.Trace(), 2, 0, 0, 10 * dag.Microsecond},
		{"self messages", self.Trace(), 4, 2, 2000, 0},
		{"empty messages", empty.Trace(), 8, 4, 0, 0},
	} {
		t.Run(test.name, func(t *testing.T) {
			forAll(t, func(t *testing.T, c *configuration) {
				r := c.run(t, test.trace)
				if !r.Complete || r.NeverRun != 0 || r.Unended != 0 || len(r.Stuck) > 0 || r.Unmatched.Count() > 0 || r.Ops != test.ops {
					t.Errorf("got %s", document(t, r))
				}
				messages, size := test.messages, test.bytes
				if c.atlahs && test.name == "self messages" {
					messages, size = 0, 0
				} else if c.atlahs && test.name == "empty messages" {
					size = messages
				}
				if r.Messages != messages || r.Bytes != size {
					t.Errorf("%d messages of %d bytes, want %d of %d", r.Messages, r.Bytes, messages, size)
				}
				if got := picoseconds(r.Makespan); got.Cmp(big.NewInt(int64(test.least))) < 0 {
					t.Errorf("makespan %v, want %v at least", r.Makespan, test.least)
				}
			})
		})
	}
}

func picoseconds(c sim.Clock) *big.Int {
	n := new(big.Int).SetUint64(c.Ticks)
	return n.Mul(n, big.NewInt(int64(c.Unit)))
}

func TestStuckTraces(t *testing.T) {
	b := dag.NewBuilder(4)
	b.Rank(0).Calc(dag.Microsecond)
	b.Rank(1).Calc(dag.Microsecond, b.Rank(1).Recv(2, 100, 9))
	trace := b.Trace()
	forAll(t, func(t *testing.T, c *configuration) {
		r := c.run(t, trace)
		if r.Complete || r.NeverRun != 1 || len(r.Stuck) != 2 {
			t.Fatalf("got %s", document(t, r))
		}
		if s := r.Stuck[0]; s.Rank != 1 || s.Op != 0 || s.Kind != "recv" || !strings.Contains(s.Waits, "rank 2") {
			t.Errorf("stuck: %+v", s)
		}
		if s := r.Stuck[1]; s.Rank != 1 || s.Op != 1 || s.Kind != "calc" || !strings.Contains(s.Waits, "op 0") {
			t.Errorf("stuck: %+v", s)
		}
	})
}

func TestIdealIsALowerBound(t *testing.T) {
	for _, trace := range []*dag.Trace{exchanges(2, 30), exchanges(16, 20)} {
		ideal, err := backends.Run(trace, "ideal")
		if err != nil {
			t.Fatal(err)
		}
		forAll(t, func(t *testing.T, c *configuration) {
			if r := c.run(t, trace); picoseconds(r.Makespan).Cmp(picoseconds(ideal.Makespan)) < 0 {
				t.Errorf("makespan %v, want at least %v, without a network", r.Makespan, ideal.Makespan)
			}
		})
	}
}

// TestTooLong runs calcs that take twice and 1100 times the longest whole nanoseconds of a dag.Time.
func TestTooLong(t *testing.T) {
	const longest = dag.MaxTime / dag.Nanosecond * dag.Nanosecond
	for _, calcs := range []int{2, 1100} {
		b := dag.NewBuilder(2)
		var last []int
		for range calcs {
			last = []int{b.Rank(0).Calc(longest, last...)}
		}
		trace := b.Trace()
		forAll(t, func(t *testing.T, c *configuration) {
			r, err := c.compile(t, trace).Run(sim.RunOptions{})
			if !c.wraps {
				late := new(sim.TooLongError)
				if !errors.As(err, &late) || late.Rank != 0 || late.Op > 1 || late.Kind != dag.Calc {
					t.Errorf("%d calcs: error %v, want %v at a calc of rank 0", calcs, err, sim.ErrTooLong)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if want := uint64(calcs) * uint64(longest/dag.Nanosecond); !r.Complete || r.Makespan.Ticks != want {
				t.Errorf("%d calcs: makespan %d ns, want %d", calcs, r.Makespan.Ticks, want)
			}
			if flag, _ := sectionOf(r, "overflow").(sim.Overflow); flag.Message == "" || flag.Wrapped {
				t.Errorf("%d calcs: flag %+v, expected times beyond 106 days", calcs, flag)
			}
		})
	}
}

// expiring is a context that ends at a check.
type expiring struct {
	context.Context
	left  atomic.Int64 // checks before the end
	after atomic.Int64 // checks that found the end
}

func (c *expiring) Err() error {
	if c.left.Add(-1) >= 0 {
		return nil
	}
	c.after.Add(1)
	return context.Canceled
}

// long returns a trace whose runs take many ops and events.
func long() *dag.Trace {
	b := dag.NewBuilder(2)
	var last [2][]int
	for round := range 40_000 {
		for rank := range 2 {
			r := b.Rank(rank)
			send := r.Send(int32(1-rank), 5000, int64(round), r.Calc(dag.Microsecond, last[rank]...))
			last[rank] = []int{send, r.Recv(int32(1-rank), 5000, int64(round))}
		}
	}
	return b.Trace()
}

func TestRunEndsWithContext(t *testing.T) {
	trace := long()
	forAll(t, func(t *testing.T, c *configuration) {
		replay := c.compile(t, trace)
		for _, checks := range []int64{0, 1, 3} {
			for _, threads := range []int{1, 4} {
				ctx := &expiring{Context: t.Context()}
				ctx.left.Store(checks)
				r, err := replay.Clone().Run(sim.RunOptions{Context: ctx, Threads: threads})
				if !errors.Is(err, context.Canceled) {
					t.Fatalf("%d checks, %d threads: error %v, complete %v, %d checks left", checks, threads, err, r != nil && r.Complete,
						ctx.left.Load())
				}
				if n := ctx.after.Load(); n > 20 {
					t.Errorf("%d checks, %d threads: %d more after the end", checks, threads, n)
				}
			}
		}
		ctx := &expiring{Context: t.Context()}
		ctx.left.Store(1 << 40)
		if r, err := replay.Clone().Run(sim.RunOptions{Context: ctx}); err != nil || !r.Complete {
			t.Errorf("with a context that goes on: error %v", err)
		}
	})
}

func TestCompileEndsWithContext(t *testing.T) {
	b := dag.NewBuilder(4)
	for rank := range 4 {
		for range 100_000 {
			b.Rank(rank).Calc(dag.Microsecond)
		}
	}
	trace := b.Trace()
	forAll(t, func(t *testing.T, c *configuration) {
		for _, checks := range []int64{0, 1, 4} {
			ctx := &expiring{Context: t.Context()}
			ctx.left.Store(checks)
			_, err := backends.Compile(trace, c.backend, append(c.options(4), backends.Context(ctx))...)
			if !errors.Is(err, context.Canceled) {
				t.Errorf("%d checks: error %v", checks, err)
			}
		}
	})
}

// TestMessageEndsWithContext checks that a run ends with its context while a single message is in flight.
func TestMessageEndsWithContext(t *testing.T) {
	b := dag.NewBuilder(2)
	b.Rank(0).Send(1, 1<<30, 0)
	b.Rank(1).Recv(0, 1<<30, 0)
	trace := b.Trace()
	forAll(t, func(t *testing.T, c *configuration) {
		if c.backend != "packet" && c.backend != "flit" {
			t.Skip("a message is a few events")
		}
		ctx := &expiring{Context: t.Context()}
		ctx.left.Store(4)
		if _, err := c.compile(t, trace).Run(sim.RunOptions{Context: ctx}); !errors.Is(err, context.Canceled) {
			t.Errorf("error %v", err)
		}
		if n := ctx.after.Load(); n > 20 {
			t.Errorf("%d checks after the end", n)
		}
	})
}

func TestSweepEndsWithContext(t *testing.T) {
	replay, err := backends.Compile(exchanges(4, 10), "loggops")
	if err != nil {
		t.Fatal(err)
	}
	points, err := measure.ParseGrid("L=1us..1000us:1000", backends.Named("loggops").New().Params())
	if err != nil {
		t.Fatal(err)
	}
	for _, threads := range []int{1, 3} {
		ctx, cancel := context.WithCancel(t.Context())
		sweep := measure.Sweep{Replay: replay, Points: points, Options: sim.RunOptions{Context: ctx, Threads: threads}}
		seen := 0
		err := sweep.Run(func(point int, r *sim.Result, err error) error {
			if seen++; err != nil || !r.Complete {
				t.Errorf("point %d: %v", point, err)
			}
			if point == 10 {
				cancel()
			}
			return nil
		})
		if !errors.Is(err, context.Canceled) || seen != 11 {
			t.Errorf("%d threads: %d points, error %v", threads, seen, err)
		}
	}
}

func TestSyntheticTrafficEndsWithContext(t *testing.T) {
	for _, loads := range []string{"0.5", "0.1..0.9:5"} {
		for _, threads := range []int{1, 4} {
			b := backends.Named("flit").New()
			texts := param.Texts{"preset": {"graph500-dragonfly"}, "synthetic": {"uniform"}, "load": {loads}, "measure": {"1000000000"}}
			if err := b.Params().Apply(texts); err != nil {
				t.Fatal(err)
			}
			env := &sim.Env{Given: func(name string) bool { return name == "threads" }}
			if err := b.Check(env); err != nil {
				t.Fatal(err)
			}
			ctx := &expiring{Context: t.Context()}
			ctx.left.Store(30)
			_, err := b.(sim.Standalone).RunAlone(env, sim.RunOptions{Context: ctx, Threads: threads})
			if !errors.Is(err, context.Canceled) {
				t.Errorf("loads %s, %d threads: error %v", loads, threads, err)
			}
		}
	}
}

// TestNilEnv checks that backends work without a caller's functions. Durations that are no whole nanoseconds make some
// of them warn.
func TestNilEnv(t *testing.T) {
	b := dag.NewBuilder(2)
	b.Rank(0).Calc(1)
	b.Rank(1).Add(dag.Op{Kind: dag.Calc, Flops: 5, Duration: 3})
	source := dag.FromTrace(b.Trace())
	forAll(t, func(t *testing.T, c *configuration) {
		for _, env := range []*sim.Env{nil, {}} {
			backend := c.configure(t, env)
			backend.Lowers(nil)
			backend.Lowers(source)
			replay, err := backend.Compile(source, env)
			if err != nil {
				t.Fatal(err)
			}
			if r, err := replay.Run(sim.RunOptions{}); err != nil || !r.Complete {
				t.Errorf("error %v", err)
			}
		}
	})
}

// TestParams checks the tables of parameters.
func TestParams(t *testing.T) {
	for _, kind := range backends.All {
		t.Run(kind.Name, func(t *testing.T) {
			seen := make(map[string]bool)
			for _, p := range kind.New().Params() {
				for _, name := range append([]string{p.Name}, p.Aliases...) {
					if seen[name] || name == "" {
						t.Errorf("the name %q is there twice or empty", name)
					}
					seen[name] = true
				}
				switch {
				case p.Help == "":
					t.Errorf("%s has no help", p.Name)
				case regexp.MustCompile(`\bdefault\b`).MatchString(p.Help):
					t.Errorf("%s: the help has the default: %q", p.Name, p.Help)
				case strings.HasSuffix(p.Help, "."):
					t.Errorf("%s: the help ends with a full stop: %q", p.Name, p.Help)
				}
				checkDefault(t, kind, p.Name)
			}
		})
	}
}

// checkDefault checks that a parameter takes the text of its default and keeps its value.
func checkDefault(t *testing.T, kind sim.Kind, name string) {
	b := kind.New()
	value := b.Params().Find(name).Value
	before := value.String()
	if before == "" {
		return
	}
	if err := value.Set(before); err != nil {
		t.Errorf("%s does not take its default %q: %v", name, before, err)
	}
	if after := value.String(); after != before {
		t.Errorf("%s: %q became %q", name, before, after)
	}
	if fresh := kind.New(); !reflect.DeepEqual(texts(b), texts(fresh)) {
		t.Errorf("%s: setting the default %q changes others: %v, want %v", name, before, texts(b), texts(fresh))
	}
}

// texts returns the values of all parameters.
func texts(b sim.Backend) (all []string) {
	for _, p := range b.Params() {
		all = append(all, p.Name+"="+p.Value.String())
	}
	return all
}

// TestSweptParams checks that sweeps can set all parameters that they should.
func TestSweptParams(t *testing.T) {
	forAll(t, func(t *testing.T, c *configuration) {
		for _, name := range c.configure(t, nil).Params().Swept() {
			checkSwept(t, c.configure(t, nil), name)
		}
	})
}

// checkSwept checks that a parameter takes the number 1, and then the number of its default again.
func checkSwept(t *testing.T, b sim.Backend, name string) {
	set := func(n *big.Rat) string {
		if err := b.Params().Override([]param.Setting{{Name: name, Number: n}}); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		return b.Params().Find(name).Value.String()
	}
	value := b.Params().Find(name).Value.(param.Number)
	before := value.String()
	one := big.NewRat(1, 1)
	if text := set(one); text != "" {
		if got, err := value.Parse(text); err != nil || got.Cmp(one) != 0 {
			t.Errorf("%s: 1 became %q, which is %v, error %v", name, text, got, err)
		}
	}
	if before == "" {
		return
	}
	n, err := value.Parse(before)
	if err != nil {
		t.Errorf("%s: %v", name, err)
	} else if after := set(n); after != before {
		t.Errorf("%s: %q became %q", name, before, after)
	}
}

// TestMarkers checks that ops that take no time count as run.
func TestMarkers(t *testing.T) {
	b := dag.NewBuilder(2)
	for rank := range 2 {
		r := b.Rank(rank)
		marker := r.Add(dag.Op{Subkind: dag.Marker})
		r.Add(dag.Op{Subkind: dag.Marker}, r.Add(dag.Op{Duration: dag.Microsecond}, marker))
	}
	trace := b.Trace()
	forAll(t, func(t *testing.T, c *configuration) {
		if r := c.run(t, trace); !r.Complete || r.NeverRun != 0 || r.Unended != 0 {
			t.Errorf("complete: %v, %d never ran, %d did not end", r.Complete, r.NeverRun, r.Unended)
		}
	})
}
