package graph500

import (
	"bytes"
	"fmt"
	"math"
	"math/big"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/tracedag/tracedag/dag"
	"github.com/tracedag/tracedag/formats/store"
	_ "github.com/tracedag/tracedag/internal/testheap"
	"github.com/tracedag/tracedag/sim/loggops"
)

// small returns a search that is quick to make.
func small() Params {
	p := Default()
	p.Scale, p.Nodes, p.RootDegree = 14, 12, 16
	return p
}

// variants are searches with different kinds of ops.
func variants() map[string]Params {
	all := map[string]Params{"default": small()}
	add := func(name string, change func(p *Params)) {
		p := small()
		change(&p)
		all[name] = p
	}
	add("two", func(p *Params) { p.Nodes = 2 })
	add("three", func(p *Params) { p.Nodes, p.Coalescing = 3, 1; p.Scale = 6 })
	add("none", func(p *Params) { p.Notices = NoNotices })
	add("paper", func(p *Params) { p.Injection, p.Rest, p.Eq7 = PaperInjection, 0, PrintedEq7 })
	add("tiny", func(p *Params) { p.Scale, p.EdgeFactor, p.RootDegree = 1, 1, 1 })
	add("one level", func(p *Params) { p.MaxLevels = 1 })
	add("more processes than queries", func(p *Params) { p.Scale, p.EdgeFactor, p.Nodes, p.RootDegree = 4, 1, 70, 3 })
	return all
}

func mustMake(t *testing.T, p Params, seed int64) *dag.Trace {
	t.Helper()
	tr, err := readAll(NewSource(p, seed))
	if err != nil {
		t.Fatal(err)
	}
	return tr
}

// replay returns how long a run takes, with sends that end at once, or when they have been received.
func replay(t *testing.T, tr *dag.Trace, p loggops.Params) dag.Time {
	t.Helper()
	compiled, err := loggops.Compile(dag.FromTrace(tr), loggops.Strict, t.Logf)
	if err != nil {
		t.Fatal(err)
	}
	r, err := compiled.Run(loggops.Options{Params: p})
	if err != nil || !r.Complete {
		t.Fatalf("%s: not complete, error %v", tr.Title, err)
	}
	return dag.Time(r.Makespan.Ticks)
}

// TestSound: traces are valid, complete, and match the headers of their sources.
func TestSound(t *testing.T) {
	for name, p := range variants() {
		for seed := range int64(3) {
			s, err := newSource(p, seed, []int{exactProcesses, 0}[seed%2])
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			tr, err := dag.ReadAll(s)
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			if problems, n := dag.ValidateLimit(tr, 3); n > 0 {
				t.Fatalf("%s: %d problems: %v", name, n, problems)
			}
			h, err := s.Header()
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			if tr.Ops() != h.Ops {
				t.Errorf("%s: %d ops, the source says %d", name, tr.Ops(), h.Ops)
			}
			params, err := loggops.Preset("hpc")
			if err != nil {
				t.Fatal(err)
			}
			for _, params.S = range []int64{0, 1 << 40} {
				replay(t, tr, params)
			}
			read := s.NewReader(dag.All)
			for _, batch := range h.Batches {
				ranks, err := read(batch)
				if err != nil || !reflect.DeepEqual(ranks, tr.Ranks[batch.First:batch.Last]) {
					t.Fatalf("%s: batch %+v is not what the trace has, error %v", name, batch, err)
				}
				ops, deps := int64(0), int64(0)
				for i := range ranks {
					ops += int64(ranks[i].Len())
					deps += int64(len(ranks[i].Deps.Off))
				}
				if seed%2 == 0 && (ops != batch.Ops || deps > batch.Deps) {
					t.Errorf("%s: batch %+v has %d ops and %d dependencies", name, batch, ops, deps)
				}
			}
		}
	}
}

// TestSameBytes: only the seed and the parameters determine the bytes.
func TestSameBytes(t *testing.T) {
	write := func(seed int64, whole bool) string {
		s, err := NewSource(small(), seed)
		if err != nil {
			t.Fatal(err)
		}
		var out bytes.Buffer
		if whole {
			tr, err := dag.ReadAll(s)
			if err != nil {
				t.Fatal(err)
			}
			err = store.Write(&out, tr)
			if err != nil {
				t.Fatal(err)
			}
		} else if err := store.WriteSource(&out, s); err != nil {
			t.Fatal(err)
		}
		return out.String()
	}
	want := write(1, false)
	if write(1, true) != want {
		t.Error("the whole trace is another than its parts")
	}
	if write(2, false) == want {
		t.Error("another seed makes the same trace")
	}
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(0))
	for _, n := range []int{1, 3} {
		runtime.GOMAXPROCS(n)
		if write(1, false) != want || write(1, true) != want {
			t.Errorf("GOMAXPROCS %d makes another trace", n)
		}
	}
}

// text shows the ops of a rank.
func text(r *dag.Rank) (lines []string) {
	for i := range r.Len() {
		op := r.Op(i)
		line := fmt.Sprintf("%d %v", i, op.Kind)
		if op.Kind == dag.Calc {
			line += fmt.Sprintf(" %v", op.Duration)
		} else {
			line += fmt.Sprintf(" %d tag %d %dB", op.Peer, op.Tag, op.Bytes)
		}
		for _, off := range r.Deps.Of(i) {
			line += fmt.Sprintf(" <%d", i-int(off))
		}
		lines = append(lines, line)
	}
	return lines
}

// TestLevelZero: only the process of the root sends queries and notices, all take part in the all-reduce.
func TestLevelZero(t *testing.T) {
	p := small()
	p.Nodes, p.MaxLevels, p.RootDegree, p.RootProcess, p.QueryTime, p.ControlBytes = 3, 1, 5, 1, 0, 8
	p.ConsumeMin = 7 * dag.Nanosecond
	tr := mustMake(t, p, 1)
	// 4 of 5 edges lead to other processes, of which floor(3 (1 - (2/3)^4)) = 2 get some: 2 messages of up to 256.
	peers := []int32{tr.Ranks[1].Peer.At(5), tr.Ranks[1].Peer.At(7)}
	root := []string{
		"0 recv 0 tag 2 8B", "1 recv 2 tag 2 8B",
		"2 calc 800ps", fmt.Sprintf("3 send %d tag 0 4096B <2", tr.Ranks[1].Peer.At(3)),
		"4 calc 800ps <3", fmt.Sprintf("5 send %d tag 0 4096B <4", peers[0]),
		"6 send 0 tag 1 8B <5", "7 send 2 tag 1 8B <6",
		"8 send 0 tag 3 8B <0 <1 <7", "9 send 2 tag 3 8B <8",
	}
	if got := text(tr.Ranks[1]); !slices.Equal(got, root) {
		t.Errorf("the root's process does\n%s", strings.Join(got, "\n"))
	}
	for _, rank := range []int{0, 2} {
		var want []string
		last := ""
		for _, peer := range []int32{tr.Ranks[1].Peer.At(3), tr.Ranks[1].Peer.At(5)} {
			if int(peer) == rank {
				n := len(want)
				want = append(want, fmt.Sprintf("%d recv 1 tag 0 4096B", n), fmt.Sprintf("%d calc 7ns <%d", n+1, n))
				last += fmt.Sprintf(" <%d", n+1)
			}
		}
		n := len(want)
		want = append(want, fmt.Sprintf("%d recv 1 tag 1 8B", n), fmt.Sprintf("%d send 1 tag 2 8B%s <%d", n+1, last, n),
			fmt.Sprintf("%d recv 1 tag 3 8B <%d", n+2, n+1))
		if got := text(tr.Ranks[rank]); !slices.Equal(got, want) {
			t.Errorf("rank %d does\n%s\nexpected\n%s", rank, strings.Join(got, "\n"), strings.Join(want, "\n"))
		}
	}
}

// TestWork: processes consume all sent queries, and generation takes the time of the parameters.
func TestWork(t *testing.T) {
	for _, injection := range []Injection{ReferenceInjection, PaperInjection} {
		p := small()
		p.Scale, p.Injection = 17, injection
		s := newSearch(&p, 1)
		total := amount{}
		for _, level := range s.levels {
			a := sum(level)
			total.queries += a.queries
			total.messages += a.messages
		}
		tr := mustMake(t, p, 1)
		consumed, generated := dag.Time(0), dag.Time(0)
		for i := range tr.Ranks {
			r := tr.Ranks[i]
			for op := range r.Len() {
				if r.Stream.At(op) != 0 {
					t.Fatalf("rank %d, op %d is on another stream", i, op)
				}
				if r.Kind[op] != dag.Calc {
					continue
				}
				if on := r.Deps.Of(op); len(on) == 1 && r.Kind[op-int(on[0])] == dag.Recv &&
					r.Tag.At(op-int(on[0]))%tagsOfLevel == queryTag {
					consumed += r.Duration.At(op)
				} else {
					generated += r.Duration.At(op)
				}
			}
		}
		if want := dag.Time(total.queries) * p.QueryTime; consumed != want {
			t.Errorf("%v is consumed, expected %v", consumed, want)
		}
		want := float64(p.QueryTime) * 256
		if injection == ReferenceInjection {
			want = max(want/1024, float64(p.Cycle)) // once per cycle at most
		}
		want *= float64(total.messages)
		if math.Abs(float64(generated)-want) > 0.05*want {
			t.Errorf("injection %v: generating takes %v, expected %v", injection, generated, dag.Time(want))
		}
	}
}

// TestRegimes: the time of a run grows with that of a query where the processes are the bottleneck, and is that of the
// network where they are not; then it is the bandwidth that counts, not the latency.
func TestRegimes(t *testing.T) {
	run := func(query dag.Time, bandwidth, latency int64) float64 {
		p := small()
		p.Scale, p.Nodes, p.QueryTime = 17, 16, query
		return float64(replay(t, mustMake(t, p, 1), loggops.Params{
			L: dag.Time(latency) * dag.Nanosecond, GPerByte: big.NewRat(8000, bandwidth), OPerByte: new(big.Rat),
			S: 1 << 30,
		}))
	}
	const gbps, ns = 40, 100
	network := run(0, gbps, ns)
	for _, query := range []dag.Time{10, 100, 1000} { // ps
		if got := run(query, gbps, ns); got > 1.05*network || got < network {
			t.Errorf("query time %v: %.4g ps, expected about %.4g as without any", query, got, network)
		}
	}
	// Above 3.2 ns, the time of a full message on the link by its queries, the processes are the bottleneck.
	base := run(32*dag.Nanosecond, gbps, ns)
	if base < 3*network {
		t.Errorf("query time 32ns: %.4g ps, expected far more than the network's %.4g", base, network)
	}
	for _, factor := range []int64{2, 4, 16} {
		got := run(32*dag.Nanosecond*dag.Time(factor), gbps, ns)
		if ratio := got / base / float64(factor); ratio < 0.9 || ratio > 1.05 {
			t.Errorf("query time 32ns x %d: %.4g ps, expected so many times %.4g", factor, got, base)
		}
	}
	for _, factor := range []int64{2, 4} {
		if got := network / run(0, factor*gbps, ns); got < 0.8*float64(factor) || got > float64(factor) {
			t.Errorf("bandwidth x %d: %.3f times as fast", factor, got)
		}
	}
	if got := run(0, gbps, 10*ns) / network; got < 1 || got > 1.05 {
		t.Errorf("latency x 10: %.3f times as long", got)
	}
	if got := run(512*dag.Nanosecond, 10*gbps, ns) / run(512*dag.Nanosecond, gbps, ns); got < 0.95 || got > 1 {
		t.Errorf("bandwidth x 10 where processes are the bottleneck: %.3f times as long", got)
	}
}

func TestRefused(t *testing.T) {
	for want, change := range map[string]func(p *Params){
		"scale is 0, expected 1..44":                             func(p *Params) { p.Scale = 0 },
		"scale is 45, expected 1..44":                            func(p *Params) { p.Scale = 45 },
		"edge-factor is 1025, expected 1..1024":                  func(p *Params) { p.EdgeFactor = 1025 },
		"nodes is 1, expected 2..1048576":                        func(p *Params) { p.Nodes = 1 },
		"coalescing is 0, expected 1..1073741824":                func(p *Params) { p.Coalescing = 0 },
		"packet-phits is 0, expected 1..1048576":                 func(p *Params) { p.PacketPhits = 0 },
		"message-bytes is -1, expected 0..274877906944":          func(p *Params) { p.MessageBytes = -1 },
		"control-bytes is -1, expected 0..274877906944":          func(p *Params) { p.ControlBytes = -1 },
		"max-levels is 17, expected 1..16":                       func(p *Params) { p.MaxLevels = 17 },
		"root-degree is -1, expected 1..524288, the ends of all": func(p *Params) { p.RootDegree = -1 },
		"root-degree is 524289, expected 1..524288, the ends":    func(p *Params) { p.RootDegree = 524289 },
		"root-process is 12, expected 0..11, or -1":              func(p *Params) { p.RootProcess = 12 },
		"query-time is 2s, expected 0s..1s":                      func(p *Params) { p.QueryTime = 2 * dag.Second },
		"consume-min is 2s, expected 0s..1s":                     func(p *Params) { p.ConsumeMin = 2 * dag.Second },
		"query-time is 1s and coalescing 1073741824, expected a": func(p *Params) {
			p.QueryTime, p.Coalescing = dag.Second, 1<<30
		},
		"variation is NaN, expected 0..1":                func(p *Params) { p.Variation = math.NaN() },
		"variation is 1.5, expected 0..1":                func(p *Params) { p.Variation = 1.5 },
		"rest is -0.1, expected 0..1":                    func(p *Params) { p.Rest = -0.1 },
		"no equation 7 with the number 2":                func(p *Params) { p.Eq7 = 2 },
		"no injection with the number 2":                 func(p *Params) { p.Injection = 2 },
		"no notices with the number 2":                   func(p *Params) { p.Notices = 2 },
		"ops, expected at most 67108864: use more nodes": func(p *Params) { p.Scale = 36 },
	} {
		p := small()
		change(&p)
		_, err := NewSource(p, 1)
		if err == nil || !strings.HasPrefix(err.Error(), "graph500: ") || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, expected %s", err, want)
		}
	}
}

// BenchmarkRank makes ranks of a large trace.
func BenchmarkRank(b *testing.B) {
	p := Default()
	p.Scale, p.Nodes, p.RootDegree = 36, 10_000, 16
	s, err := NewSource(p, 1)
	if err != nil {
		b.Fatal(err)
	}
	h, err := s.Header()
	if err != nil {
		b.Fatal(err)
	}
	read, ops, rank := s.NewReader(dag.All), 0, 0
	for b.Loop() {
		ranks, err := read(h.Batches[rank%len(h.Batches)])
		if err != nil {
			b.Fatal(err)
		}
		for i := range ranks {
			ops += ranks[i].Len()
		}
		rank++
	}
	b.ReportMetric(float64(ops)/b.Elapsed().Seconds(), "ops/s")
}

// readAll returns the trace of a source, or the error of making the source.
func readAll[S dag.Source](s S, err error) (*dag.Trace, error) {
	if err != nil {
		return nil, err
	}
	return dag.ReadAll(s)
}

// TestGeneration: with cycles, a process succeeds with the same probability in each; without, times are exponential.
func TestGeneration(t *testing.T) {
	for _, c := range []struct{ query, cycle dag.Time }{{1500, 800}, {15_000, 800}, {40_000, 800}, {40_000, 0},
		{0, 800}, {0, 0}} {
		p := Default()
		p.QueryTime, p.Cycle = c.query, c.cycle
		mean := float64(c.query) * 256 / 1024
		first, sum := 0.0, 0.0
		const samples = 100_000
		for i := range samples {
			got := p.generation(p.paceOf(0), -math.Log((float64(i)+0.5)/samples)) // quantiles of the distribution
			if c.cycle > 0 && (got < c.cycle || got%c.cycle > 0) {
				t.Fatalf("%v with cycles of %v", got, c.cycle)
			}
			if got == c.cycle {
				first++
			}
			sum += float64(got)
		}
		want := max(mean, float64(c.cycle))
		if math.Abs(sum/samples-want) > 0.002*want+1 {
			t.Errorf("queries of %v, cycles of %v: mean %v, expected %v", c.query, c.cycle, sum/samples, want)
		}
		if chance := min(1, float64(c.cycle)/mean); c.cycle > 0 && math.Abs(first/samples-chance) > 0.001 {
			t.Errorf("queries of %v, cycles of %v: %v in the first cycle, expected %v", c.query, c.cycle, first/samples,
				chance)
		}
	}
}

// TestWrittenLevels checks traces of some levels of a search: together they have the ops of the whole, with the same peers and
// times, and each has as many as announced.
func TestWrittenLevels(t *testing.T) {
	for _, notices := range []Notices{AllNotices, NoNotices} {
		p := small()
		p.Notices = notices
		whole := mustMake(t, p, 3)
		levels := 0
		for op := range whole.Ranks[0].Len() {
			levels = max(levels, int(whole.Ranks[0].Op(op).Tag/tagsOfLevel)+1)
		}
		var parts []*dag.Trace
		for level := range levels {
			p.Levels = &Span{level, level}
			parts = append(parts, mustMake(t, p, 3))
		}
		for rank := range whole.Ranks {
			var want, got []dag.Op
			for op := range whole.Ranks[rank].Len() {
				want = append(want, whole.Ranks[rank].Op(op))
			}
			for _, part := range parts {
				for op := range part.Ranks[rank].Len() {
					got = append(got, part.Ranks[rank].Op(op))
				}
			}
			if !reflect.DeepEqual(got, want) {
				t.Fatalf("notices %v, rank %d: %d ops in levels, %d in the whole", notices, rank, len(got), len(want))
			}
		}
		p.Levels = &Span{levels, levels + 3}
		if _, err := NewSource(p, 3); err == nil || !strings.Contains(err.Error(), fmt.Sprintf("has the levels 0-%d",
			levels-1)) {
			t.Errorf("levels behind the search: error %v", err)
		}
	}
}
