package slots

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/tracedag/tracedag/dag"
	_ "github.com/tracedag/tracedag/internal/testheap"
	"github.com/tracedag/tracedag/param"
	"github.com/tracedag/tracedag/sim"
)

// flow is a flow of a test.
type flow struct {
	from, to int
	bytes    int64
	at       dag.Time
}

// traceOf returns the trace of a list of flows.
func traceOf(hosts int, flows []flow) *dag.Trace {
	b := dag.NewBuilder(hosts)
	for i, f := range flows {
		b.Rank(f.from).Add(dag.Op{Kind: dag.Send, Peer: int32(f.to), Bytes: f.bytes, Tag: int64(i), Release: f.at})
		b.Rank(f.to).Recv(int32(f.from), f.bytes, int64(i))
	}
	return b.Trace()
}

// document is the JSON object of a result.
type document struct {
	Complete bool   `json:"complete"`
	NeverRun int    `json:"never_run"`
	Makespan int64  `json:"makespan_ps"`
	Model    string `json:"model"`
	Slots    int    `json:"slots"`
	KPIs     map[string]*float64
	Flows    struct{ Rows [][]any }
}

// compiled compiles a trace with parameters.
func compiled(t testing.TB, trace *dag.Trace, params ...string) sim.Replay {
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
	if err := b.Check(nil); err != nil {
		t.Fatal(err)
	}
	r, err := b.Compile(dag.FromTrace(trace), nil)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// runOn runs a trace and returns the JSON object of its result.
func runOn(t testing.TB, trace *dag.Trace, params ...string) (d document) {
	t.Helper()
	result, err := compiled(t, trace, params...).Run(sim.RunOptions{})
	if err != nil {
		t.Fatalf("%v: %v", params, err)
	}
	return documentOf(t, result)
}

// documentOf returns the JSON object of a result.
func documentOf(t testing.TB, result *sim.Result) (d document) {
	t.Helper()
	var out bytes.Buffer
	if err := result.WriteJSON(&out); err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(out.Bytes(), &d); err != nil {
		t.Fatal(err)
	}
	return d
}

// times returns the completion times of flows in us, in the order of arrival; -1: not completed.
func (d *document) times() (us []float64) {
	for _, row := range d.Flows.Rows {
		if row[5] == nil {
			us = append(us, -1)
		} else {
			us = append(us, row[5].(float64)/float64(dag.Microsecond))
		}
	}
	return us
}

// star is a star of three hosts with 100 bytes per us and direction, and 10 packets per slot.
var star = []string{"topology=star:hosts=3,rate=100MB/s", "slot=10us", "packet-size=100"}

// TestWorkedCase checks the completion times of two flows to one host, by hand.
func TestWorkedCase(t *testing.T) {
	const us = dag.Microsecond
	short := []flow{{0, 2, 1500, 3 * us}, {1, 2, 500, 3 * us}}
	equal := []flow{{0, 2, 1500, 3 * us}, {1, 2, 1500, 3 * us}}
	for _, c := range []struct {
		scheduler string
		flows     []flow
		want      []float64
	}{
		{"srpt", short, []float64{27, 17}},
		{"fs", short, []float64{27, 17}},
		{"maxmin", short, []float64{27, 17}},
		{"srpt", equal, []float64{27, 37}},
		{"fs", equal, []float64{37, 37}},
		{"maxmin", equal, []float64{37, 37}},
		{"lambda:0.5", equal, []float64{37, 47}},
		{"lambda", equal, []float64{37, 47}},
		{"lambda:0", equal, []float64{37, 37}},
		{"lambda:1", equal, []float64{27, 37}},
		{"srpt", []flow{{0, 2, 1, 0}, {1, 2, 1, 10*us - 1}, {1, 0, 1, 10 * us}}, []float64{20, 10 + 1e-6, 20}},
		{"srpt", []flow{{0, 2, 0, 3 * us}, {1, 1, 500, 3 * us}, {0, 1, 2001, us}}, []float64{39}},
	} {
		d := runOn(t, traceOf(3, c.flows), append(star, "scheduler="+c.scheduler)...)
		got := d.times()
		close := slices.EqualFunc(got, c.want, func(a, b float64) bool { return a-b < 1e-9 && b-a < 1e-9 })
		if !close || !d.Complete {
			t.Errorf("%s, %v: completion times %v us, expected %v, complete %v", c.scheduler, c.flows, got, c.want, d.Complete)
		}
	}
}

// TestCompat checks the rules that --compat trafpy changes: flows of equal time replace each other, and repeated draws
// waste capacity.
func TestCompat(t *testing.T) {
	const us = dag.Microsecond
	compat := append(slices.Clone(star), "compat=trafpy")
	equal := traceOf(3, []flow{{0, 2, 1500, 3 * us}, {1, 2, 1500, 3 * us}})
	if got := runOn(t, equal, append(compat, "scheduler=srpt")...); !slices.Equal(got.times(), []float64{37, 27}) {
		t.Errorf("srpt: completion times %v us, expected the second flow to replace the first", got.times())
	}
	// Two flows of four packets in a slot of ten. Half of the draws repeat the first flow, whose eight packets leave two.
	pair := traceOf(3, []flow{{0, 2, 400, 0}, {0, 2, 400, 0}})
	for _, scheduler := range []string{"ff", "random"} {
		late := 0
		for seed := range 40 {
			set := []string{"scheduler=" + scheduler, fmt.Sprint("seed=", seed)}
			if got := runOn(t, pair, append(star, set...)...); !slices.Equal(got.times(), []float64{20, 20}) {
				t.Errorf("%s, seed %d: completion times %v us without compat", scheduler, seed, got.times())
			}
			got := runOn(t, pair, append(compat, set...)...)
			if got.times()[0] > 20 || got.times()[1] > 20 {
				late++
			}
			if !got.Complete {
				t.Errorf("%s, seed %d: incomplete", scheduler, seed)
			}
		}
		if late < 8 || late > 32 {
			t.Errorf("%s: flows of %d of 40 seeds end late", scheduler, late)
		}
	}
}

// TestIndicators checks the indicators of a run by hand: of six flows of 1000 bytes, a slot each, the first arrives
// before the window, one is dropped by a queue of two flows, and one is queued at the end.
func TestIndicators(t *testing.T) {
	const us = dag.Microsecond
	var flows []flow
	for _, at := range []dag.Time{0, 41, 42, 43, 65, 70} {
		flows = append(flows, flow{0, 1, 1000, at * us})
	}
	d := runOn(t, traceOf(3, flows), append(star, "scheduler=srpt", "max-flows=2", "end=85us")...)
	if want := []float64{20, 19, 28, -1, 15, -1}; !slices.Equal(d.times(), want) {
		t.Errorf("completion times %v us, expected %v", d.times(), want)
	}
	var fates []any
	for _, row := range d.Flows.Rows {
		fates = append(fates, row[7])
	}
	if want := []any{"completed", "completed", "completed", "dropped", "completed", "queued"}; !slices.Equal(fates, want) {
		t.Errorf("fates %v, expected %v", fates, want)
	}
	window := (85 + 10 - 7) * 1e-6
	for name, want := range map[string]float64{
		"window_from_ps": 7e6, "window_until_ps": 95e6, "arrived_flows": 5, "completed_flows": 3, "dropped_flows": 1,
		"queued_flows": 1, "arrived_bytes": 5000, "completed_bytes": 3000, "mean_fct_ps": 20666667, "max_fct_ps": 28e6,
		"p99_fct_ps": 27820000, "sd_fct_ps": 5436502, "flows_dropped": 0.4, "info_dropped": 0.4,
		"load_bytes_per_s": 5000 / window, "load_frac": 5000 / window / 300e6, "throughput_bytes_per_s": 3000 / window,
		"throughput_frac": 0.6, "t_score": 1000/200./20.6666667 + 0 + 1 - 0.4*2*6 + 3000/window/300e6,
	} {
		if got := d.KPIs[name]; got == nil || *got < want-1e-7*max(want, -want) || *got > want+1e-7*max(want, -want) {
			t.Errorf("%s: %v, expected %v", name, value(got), want)
		}
	}
	if !d.Complete {
		t.Error("a dropped flow makes a list of flows incomplete")
	}
}

func value(v *float64) any {
	if v == nil {
		return nil
	}
	return *v
}

// TestDroppedDependency checks that a run is incomplete if an op waits for a flow that was dropped.
func TestDroppedDependency(t *testing.T) {
	b := dag.NewBuilder(2)
	for tag := range int64(3) {
		b.Rank(0).Send(1, 1000, tag)
		b.Rank(1).Calc(dag.Microsecond, b.Rank(1).Recv(0, 1000, tag))
	}
	result, err := compiled(t, b.Trace(), append(star, "max-flows=2")...).Run(sim.RunOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if result.Complete || result.NeverRun != 1 || len(result.Stuck) == 0 {
		t.Errorf("complete %v, %d ops never ran", result.Complete, result.NeverRun)
	}
	var text []string
	result.Explain(func(message string, args ...any) { text = append(text, fmt.Sprintf(message, args...)) }, "t")
	if !strings.Contains(strings.Join(text, "\n"), "1 of 3 flows were dropped by full queues of 2 flows") {
		t.Errorf("explanation %q", text)
	}
}

// TestSkip checks that slots of a flow alone, which are skipped, do not change results.
func TestSkip(t *testing.T) {
	const us = dag.Microsecond
	for _, scheduler := range append(schedulers, "lambda:0.3") {
		for _, bytes := range []int64{100_000, 1_234_567, 99_901} {
			alone := runOn(t, traceOf(3, []flow{{0, 2, bytes, 3 * us}}), append(star, "scheduler="+scheduler)...)
			// Calcs at the ends of slots keep the run from skipping these.
			b := dag.NewBuilder(3)
			b.Rank(0).Add(dag.Op{Kind: dag.Send, Peer: 2, Bytes: bytes, Release: 3 * us})
			b.Rank(2).Recv(0, bytes, 0)
			for range 300 {
				b.Rank(1).Calc(7 * us)
			}
			among := runOn(t, b.Trace(), append(star, "scheduler="+scheduler)...)
			if a, b := fmt.Sprint(alone.Flows, alone.Slots), fmt.Sprint(among.Flows, among.Slots); a != b {
				t.Errorf("%s, %d bytes: %s, expected %s", scheduler, bytes, a, b)
			}
		}
	}
}

// randomFlows returns random flows between the hosts of a network.
func randomFlows(r *rand.Rand, hosts, n int, most int64, during dag.Time) (flows []flow) {
	for range n {
		f := flow{r.IntN(hosts), r.IntN(hosts - 1), 1 + r.Int64N(1+r.Int64N(most)), dag.Time(r.Int64N(int64(during)))}
		if f.to >= f.from {
			f.to++
		}
		flows = append(flows, f)
	}
	return flows
}

// networks are networks of 12 hosts with paths of equal and of different lengths.
var networks = []string{
	"leafspine:hosts=12,tor=4,spines=3,rate=100MB/s/130MB/s", "torus:dims=4x3,rate=100MB/s",
	"star:hosts=12,rate=100MB/s", "dragonfly:p=1,a=4,h=1,rate=100MB/s",
}

// TestCapacity checks in each slot that no edge carries more than its budget and no flow sends more than it has, that
// some flow sends, and for the schedulers that promise it, that no further packet fits.
func TestCapacity(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	for _, scheduler := range append(schedulers, "lambda:0.1", "lambda:0.9") {
		for _, spec := range networks {
			for _, slot := range []string{"2us", "50us"} {
				hosts := 12
				flows := randomFlows(r, hosts, 200, 20_000, 200*dag.Microsecond)
				replay := compiled(t, traceOf(hosts, flows), "topology="+spec, "slot="+slot, "packet-size=100",
					"scheduler="+scheduler, "channels=1", "shortest-paths=3", "placement=random:1").(*replay)
				c, out, _, err := replay.simulate(replay.b, &sim.RunOptions{})
				if err != nil {
					t.Fatalf("%s, %s, %s: %v", scheduler, spec, slot, err)
				}
				if out.Messages != int64(len(flows)) || len(c.flows.op) != len(flows) {
					t.Fatalf("%d messages, %d flows", out.Messages, len(c.flows.op))
				}
				for i := range c.flows.op {
					if c.flows.ended[i] == 0 || c.flows.dropped[i] {
						t.Fatalf("%s, %s, %s: flow %d did not complete", scheduler, spec, slot, i)
					}
				}
			}
		}
	}
}

// TestSchedules checks single slots of random flows against the definitions.
func TestSchedules(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	policies := []policy{}
	for _, scheduler := range append(schedulers, "lambda:0.1", "lambda:0.9") {
		p, err := parsePolicy(scheduler)
		if err != nil {
			t.Fatal(err)
		}
		policies = append(policies, p, policy{p.name, p.share, p.text, true})
	}
	for _, p := range policies {
		for _, spec := range networks {
			for _, channels := range []int{1, 3} {
				b := newBackend()
				if err := b.Params().Apply(param.Texts{"topology": {spec}}); err != nil {
					t.Fatal(err)
				}
				if err := b.Check(nil); err != nil {
					t.Fatal(err)
				}
				length := 7 * dag.Microsecond
				if p.name == "maxmin" {
					length = 7 * dag.Millisecond
				}
				n, err := newNetwork(t.Context(), b.network, length, 100, channels, 2, p.parts())
				if err != nil {
					if p.share != nil || channels == 3 {
						continue
					}
					t.Fatal(err)
				}
				for round := range 40 {
					checkSchedule(t, fmt.Sprintf("%v, compat %v, %s, %d channels, round %d", p, p.compat, spec, channels,
						round), r, n, p)
				}
			}
		}
	}
}

// checkSchedule schedules random flows in one slot.
func checkSchedule(t *testing.T, name string, r *rand.Rand, n *network, p policy) {
	t.Helper()
	s := newSlot(n, r)
	const most = 200
	size := int64(3000)
	if p.name == "maxmin" {
		size *= 1000
	}
	flows := randomFlows(r, n.topology.Hosts, 1+r.IntN(most), size, 1)
	slices.SortStableFunc(flows, func(a, b flow) int { return (a.from-b.from)*1000 + a.to - b.to })
	s.resize(len(flows))
	for i, k := range r.Perm(len(flows)) {
		f := flows[i]
		s.flows[i], s.need[i], s.from[i], s.to[i] = uint32(k), (f.bytes+99)/100, uint32(f.from), uint32(f.to)
		s.pairs[i] = n.routes.between(s.from[i], s.to[i])
	}
	before := slices.Clone(s.need)
	s.place()
	p.schedule(s)
	sum, room := int64(0), make([]int64, len(s.used))
	for d, edge := range s.used {
		for _, budgets := range n.budgets {
			room[d] += budgets[int(edge)/n.channels]
		}
	}
	for i, packets := range s.take {
		if packets < 0 || packets > before[i] || s.need[i] != before[i] {
			t.Fatalf("%s: flow %d sends %d of %d packets", name, i, packets, before[i])
		}
		sum += packets
		for _, d := range s.path(i) {
			room[d] -= packets
		}
	}
	for d := range room {
		if room[d] < 0 {
			t.Fatalf("%s: edge %d exceeds its budget by %d packets", name, s.used[d], -room[d])
		}
	}
	if sum == 0 {
		t.Fatalf("%s: no flow sends", name)
	}
	if p.name != "maxmin" {
		return
	}
	// Each flow is done or has a full edge on which no other flow sends more, except for packets that do not divide.
	for i := range s.flows {
		bottleneck := s.take[i] == before[i]
		for _, d := range s.path(i) {
			largest := int64(0)
			for k := range s.flows {
				if slices.Contains(s.path(k), d) {
					largest = max(largest, s.take[k])
				}
			}
			bottleneck = bottleneck || room[d] < most && s.take[i] >= largest-most
		}
		if !bottleneck {
			t.Fatalf("%s: flow %d sends %d of %d packets without a bottleneck", name, i, s.take[i], before[i])
		}
	}
}

// TestDeterminism checks that results depend on the seed only.
func TestDeterminism(t *testing.T) {
	trace := traceOf(12, randomFlows(rand.New(rand.NewPCG(7, 8)), 12, 300, 30_000, 100*dag.Microsecond))
	for _, scheduler := range schedulers {
		set := func(seed int) []string {
			return []string{"topology=" + networks[0], "slot=10us", "packet-size=100", "scheduler=" + scheduler,
				fmt.Sprint("seed=", seed)}
		}
		a, b, other := runOn(t, trace, set(1)...), runOn(t, trace, set(1)...), runOn(t, trace, set(2)...)
		if !slices.Equal(a.times(), b.times()) {
			t.Errorf("%s: two runs differ", scheduler)
		}
		if drawn := scheduler == "ff" || scheduler == "random"; slices.Equal(a.times(), other.times()) == drawn {
			t.Errorf("%s: equal results of two seeds: %v", scheduler, !drawn)
		}
	}
}

// TestErrors checks the messages about invalid parameters.
func TestErrors(t *testing.T) {
	trace := traceOf(3, []flow{{0, 1, 100, 0}})
	for _, c := range []struct{ params, want string }{
		{"scheduler=none", `expected srpt, fs, ff, random, lambda:SHARE or maxmin, found "none"`},
		{"compat=other", "trafpy"},
		{"scheduler=srpt:1", "found \"srpt:1\""},
		{"scheduler=lambda:1.5", "expected lambda:SHARE with a share from 0 to 1"},
		{"scheduler=lambda:1e-9", "expected lambda:SHARE"},
		{"scheduler=lambda:1/3", "expected lambda:SHARE"},
		{"topology=", "needs a network"},
		{"slot=0", "expected a time above 0"},
		{"slot=1us packet-size=200", "link host0-tor0: expected a capacity of at least one packet of 200 bytes"},
		{"channels=11", "at least one packet of 100 bytes per slot of 10us and channel"},
		{"end=last-arrival", "needs a trace with release times"},
		{"end=-1s", "-1s"},
		{"measure-from=5us measure-until=5us", "expected a time after --measure-from 5us"},
		{"max-flows=0", "1"}, {"shortest-paths=257", "256"}, {"packet-size=0", "1"},
	} {
		b := newBackend()
		texts := make(param.Texts)
		for _, text := range append(slices.Clone(star), strings.Fields(c.params)...) {
			name, value, _ := strings.Cut(text, "=")
			texts[name] = []string{value}
		}
		err := b.Params().Apply(texts)
		if err == nil {
			err = b.Check(nil)
		}
		if err == nil {
			var r sim.Replay
			if r, err = b.Compile(dag.FromTrace(trace), nil); err == nil {
				_, err = r.Run(sim.RunOptions{})
			}
		}
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: error %v, expected %q", c.params, err, c.want)
		}
	}
}
