package loggops_test

import (
	"fmt"
	"math/big"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/tracedag/tracedag/dag"
	"github.com/tracedag/tracedag/formats/format"
	"github.com/tracedag/tracedag/formats/goal"
	"github.com/tracedag/tracedag/sim"
	"github.com/tracedag/tracedag/sim/loggops"
)

// nanoParams returns parameters given in nanoseconds.
func nanoParams(L, o, g, G, O, S int64) loggops.Params {
	return loggops.Params{L: dag.Time(L) * dag.Nanosecond, Overhead: dag.Time(o) * dag.Nanosecond,
		Gap: dag.Time(g) * dag.Nanosecond, GPerByte: big.NewRat(G*1000, 1), OPerByte: big.NewRat(O*1000, 1), S: S}
}

func parseGoal(t *testing.T, text string) *dag.Trace {
	t.Helper()
	trace, err := goal.Text.Read([]*format.Input{{Name: "test.goal", Reader: strings.NewReader(text)}},
		format.ReadOptions{Warn: t.Logf})
	if err != nil {
		t.Fatal(err)
	}
	return trace
}

func runStrict(t *testing.T, trace *dag.Trace, params loggops.Params) *sim.Result {
	t.Helper()
	r, err := run(trace, loggops.Strict, loggops.Options{Params: params}, t.Logf)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func nanoseconds(finish []sim.Clock) []uint64 {
	var ns []uint64
	for _, c := range finish {
		ns = append(ns, c.Ticks/1000)
	}
	return ns
}

// TestStrictRules compares each rule of the strict model in docs/reference/backends/loggops.md with hand-computed
// times. Times are nanoseconds; L = 2500, o = 1500, g = 1000, G = 6 unless a case has others.
func TestStrictRules(t *testing.T) {
	usual := nanoParams(2500, 1500, 1000, 6, 0, 65535)
	for _, c := range []struct {
		name   string
		params loggops.Params
		goal   string
		finish []uint64
	}{
		{
			name: "eager message", params: usual,
			goal:   "num_ranks 2\nrank 0 {\nsend 101b to 1\n}\nrank 1 {\nrecv 101b from 0\n}\n",
			finish: []uint64{1500, 1500 + 2500 + 600 + 1500},
		},
		{
			name: "zero bytes cost no negative time", params: usual,
			goal:   "num_ranks 2\nrank 0 {\nsend 0b to 1\n}\nrank 1 {\nrecv 0b from 0\n}\n",
			finish: []uint64{1500, 5500},
		},
		{
			name: "overhead per byte at both ends", params: nanoParams(2500, 1500, 1000, 6, 2, 65535),
			goal:   "num_ranks 2\nrank 0 {\nsend 101b to 1\n}\nrank 1 {\nrecv 101b from 0\n}\n",
			finish: []uint64{1700, 1700 + 2500 + 600 + 1700},
		},
		{
			name: "the message's size counts, not the receive's", params: usual,
			goal:   "num_ranks 2\nrank 0 {\nsend 101b to 1\n}\nrank 1 {\nrecv 1000000b from 0\n}\n",
			finish: []uint64{1500, 6100},
		},
		{
			name: "a late receive takes its message at once", params: usual,
			goal: "num_ranks 2\nrank 0 {\nsend 101b to 1\n}\n" +
				"rank 1 {\nc: calc 50000\nr: recv 101b from 0\nr requires c\n}\n",
			finish: []uint64{1500, 51500},
		},
		{
			// The request is at the receiver at 1500 + 2500, the answer at the sender at 6500, the data there at 9600.
			name: "rendezvous, receive first", params: nanoParams(2500, 1500, 1000, 6, 0, 100),
			goal:   "num_ranks 2\nrank 0 {\nsend 101b to 1\n}\nrank 1 {\nrecv 101b from 0\n}\n",
			finish: []uint64{7100, 9600 + 1500},
		},
		{
			// The receive is posted at 10000, the answer at the sender at 12500.
			name: "rendezvous, receive last", params: nanoParams(2500, 1500, 1000, 6, 0, 100),
			goal: "num_ranks 2\nrank 0 {\ns: send 101b to 1\nc: calc 5\nc requires s\n}\n" +
				"rank 1 {\nc: calc 10000\nr: recv 101b from 0\nr requires c\n}\n",
			finish: []uint64{13100 + 5, 15600 + 1500},
		},
		{
			// The second message waits for the NIC until 1500 + 1000 + 600; its first byte arrives at 5600, when the
			// receiving NIC is free, for that took the first at 4000.
			name: "gap between messages", params: usual,
			goal: "num_ranks 2\nrank 0 {\nsend 101b to 1 tag 1\nsend 101b to 1 tag 2\n}\n" +
				"rank 1 {\nrecv 101b from 0 tag 1 cpu 1\nrecv 101b from 0 tag 2 cpu 2\n}\n",
			finish: []uint64{3000, 5600 + 600 + 1500},
		},
		{
			// Both first bytes arrive at 4000. The second message enters at 4000 + 1000 + 600.
			name: "incast: a NIC receives one message at a time", params: usual,
			goal: "num_ranks 3\nrank 0 {\nsend 101b to 2\n}\nrank 1 {\nsend 101b to 2\n}\n" +
				"rank 2 {\nrecv 101b from 0 cpu 1\nrecv 101b from 1 cpu 2\n}\n",
			finish: []uint64{1500, 1500, 5600 + 600 + 1500},
		},
		{
			name: "dependencies carry time across streams", params: usual,
			goal:   "num_ranks 1\nrank 0 {\na: calc 1000\nb: calc 500 cpu 1\nb requires a\n}\n",
			finish: []uint64{1500},
		},
		{
			name: "streams overlap, ops on one do not", params: usual,
			goal:   "num_ranks 1\nrank 0 {\ncalc 1000\ncalc 1000\ncalc 1500 cpu 1\n}\n",
			finish: []uint64{2000},
		},
		{
			// The stream serves ready ops in order of arrival: b is ready at 10, c at 5.
			name: "ready first, served first", params: usual,
			goal: "num_ranks 1\nrank 0 {\na: calc 100\nx: calc 10 cpu 1\ny: calc 5 cpu 2\nb: calc 1000\nc: calc 1\n" +
				"b requires x\nc requires y\nd: calc 7 cpu 3\nd requires c\n}\n",
			finish: []uint64{1101},
		},
		{
			name: "a receive occupies its own stream", params: usual,
			goal: "num_ranks 2\nrank 0 {\nsend 1b to 1 cpu 3\n}\n" +
				"rank 1 {\ncalc 100000\nr: recv 1b from 0 cpu 1\nc: calc 10 cpu 1\nc requires r\n}\n",
			finish: []uint64{1500, 100000},
		},
		{
			// The calc on the receive's stream ends at 100000; the receive is served then.
			name: "a receive waits for its stream", params: usual,
			goal:   "num_ranks 2\nrank 0 {\nsend 1b to 1\n}\nrank 1 {\ncalc 100000\nrecv 1b from 0\n}\n",
			finish: []uint64{1500, 101500},
		},
		{
			name: "a calc of no length takes no stream", params: usual,
			goal: "num_ranks 1\nrank 0 {\ncalc 100000\na: calc 5 cpu 1\nz: calc 0\nz requires a\n" +
				"b: calc 7 cpu 1\nb requires z\n}\n",
			finish: []uint64{100000},
		},
		{
			// b may start when a has started, at 100.
			name: "start dependencies", params: usual,
			goal: "num_ranks 1\nrank 0 {\nx: calc 100\na: calc 1000\na requires x\nb: calc 300 cpu 1\nb irequires a\n" +
				"c: calc 1 cpu 2\nc requires b\n}\n",
			finish: []uint64{1100},
		},
		{
			// A receive starts when it is posted, a send when its stream takes it.
			name: "start of receives and sends", params: usual,
			goal: "num_ranks 2\nrank 0 {\nx: calc 700\ns: send 1b to 1\nc: calc 9000 cpu 1\nc irequires s\n}\n" +
				"rank 1 {\nr: recv 1b from 0\nc: calc 9000 cpu 1\nc irequires r\n}\n",
			finish: []uint64{700 + 9000, 9000},
		},
		{
			name: "message to oneself", params: usual,
			goal:   "num_ranks 1\nrank 0 {\nsend 101b to 0\nrecv 101b from 0\n}\n",
			finish: []uint64{6100},
		},
		{
			// On NIC 1 the second message arrives first. It is of 1 byte and meets the second receive all the same, so the
			// first gets 100001 bytes: there at 1500 + 2500 + 600000.
			name: "messages of one pair do not overtake", params: nanoParams(2500, 1500, 1000, 6, 0, 1000000),
			goal: "num_ranks 2\nrank 0 {\nsend 100001b to 1\nsend 1b to 1 nic 1\n}\n" +
				"rank 1 {\na: recv 100001b from 0\nb: recv 1b from 0 cpu 1\nc: calc 1000000 cpu 1\nc requires b\n}\n",
			finish: []uint64{3000, 5500 + 1500 + 1000000},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := runStrict(t, parseGoal(t, c.goal), c.params)
			if got := nanoseconds(r.Finish); !slices.Equal(got, c.finish) {
				t.Errorf("finish %v, expected %v", got, c.finish)
			}
			if !r.Complete {
				t.Errorf("not complete: %+v", r.Stuck)
			}
		})
	}
}

// TestStrictRelease checks that ops wait for their release.
func TestStrictRelease(t *testing.T) {
	b := dag.NewBuilder(1)
	b.Rank(0).Add(dag.Op{Duration: 100 * dag.Nanosecond, Release: 5 * dag.Microsecond})
	b.Rank(0).Add(dag.Op{Duration: 10 * dag.Nanosecond, Release: 50 * dag.Nanosecond}, 0)
	r := runStrict(t, b.Trace(), nanoParams(1, 1, 1, 1, 0, 1))
	if r.Makespan.Ticks != 5110*1000 {
		t.Errorf("makespan %v, expected 5.11us", r.Makespan)
	}
}

// TestStrictPerByte checks that times per byte that are no whole picoseconds do not accumulate rounding errors.
func TestStrictPerByte(t *testing.T) {
	trace := parseGoal(t, "num_ranks 2\nrank 0 {\nsend 3000001b to 1\n}\nrank 1 {\nrecv 3000001b from 0\n}\n")
	params := nanoParams(0, 0, 0, 0, 0, 1<<40)
	params.GPerByte = big.NewRat(1000, 3) // 3 GB/s
	if r := runStrict(t, trace, params); r.Makespan.Ticks != 1e9 {
		t.Errorf("makespan %v, expected 1ms", r.Makespan)
	}
}

// TestStrictCollectiveTags checks that a receive of any tag leaves the messages of lowered collectives alone.
func TestStrictCollectiveTags(t *testing.T) {
	b := dag.NewBuilder(2)
	b.Rank(0).Send(1, 8, dag.CollectiveTag)
	b.Rank(0).Send(1, 8, 7, 0)
	b.Rank(1).Recv(dag.AnySource, 8, dag.AnyTag)
	b.Rank(1).Recv(0, 8, dag.CollectiveTag, 0)
	if r := runStrict(t, b.Trace(), nanoParams(1, 1, 1, 1, 0, 100)); !r.Complete {
		t.Errorf("not complete: %+v", r.Stuck)
	}
}

// TestStrictNoise checks a processor that loses 10 of every 100 ns.
func TestStrictNoise(t *testing.T) {
	trace := parseGoal(t, "num_ranks 2\nrank 0 {\na: calc 900\nb: calc 1800\nb requires a\n}\nrank 1 {\ncalc 90\n}\n")
	noise, err := loggops.ReadNoise(strings.NewReader("90 10\n"), "noise")
	if err != nil {
		t.Fatal(err)
	}
	r, err := run(trace, loggops.Strict, loggops.Options{Params: nanoParams(1, 1, 1, 1, 0, 1), Noise: noise},
		t.Logf)
	if err != nil {
		t.Fatal(err)
	}
	if got := nanoseconds(r.Finish); !slices.Equal(got, []uint64{3000, 100}) {
		t.Errorf("finish %v, expected [3000 100]", got)
	}
	stats := r.Section("backend_stats").Value.(loggops.Stats)
	if got := nanoseconds(stats.Noise); !slices.Equal(got, []uint64{300, 10}) {
		t.Errorf("noise %v, expected [300 10]", got)
	}
}

// TestStrictNoiseByStep compares noise with steps through the detours of one picosecond each.
func TestStrictNoiseByStep(t *testing.T) {
	for seed := range int64(200) {
		random := rand.New(rand.NewPCG(uint64(seed), 3))
		var lines strings.Builder
		busy := map[int64]bool{} // nanoseconds of the period in which there is a detour
		end, at := int64(0), random.Int64N(3)
		for range 1 + random.IntN(4) {
			at += 1 + random.Int64N(4)
			length := random.Int64N(4)
			fmt.Fprintf(&lines, "%d %d\n", at, length)
			for k := at; k < at+length; k++ {
				busy[k] = true
			}
			end = max(end, at+length)
		}
		if len(busy) == int(end) {
			continue // no time between the detours
		}
		noise, err := loggops.ReadNoise(strings.NewReader(lines.String()), "noise")
		if err != nil {
			t.Fatal(err)
		}
		noise.Seed = seed
		length := 1 + random.Int64N(3*end)
		trace := parseGoal(t, fmt.Sprintf("num_ranks 1\nrank 0 {\ncalc %d\n}\n", length))
		r, err := run(trace, loggops.Strict, loggops.Options{Params: nanoParams(1, 1, 1, 1, 0, 1), Noise: noise}, t.Logf)
		if err != nil {
			t.Fatal(err)
		}
		// The run begins at some point of the period; one of them must give the result.
		possible := false
		left, now := length*1000, int64(0)
		for offset := int64(0); offset < end*1000 && !possible; offset++ {
			for left > 0 {
				if !busy[now/1000%end] {
					left--
				}
				now++
			}
			possible = uint64(now-offset) == r.Makespan.Ticks
			if !busy[offset/1000] { // a start one later loses this picosecond
				left++
			}
		}
		if !possible {
			t.Errorf("seed %d: noise\n%s\ncalc of %d ns: no start in the noise gives %v", seed, lines.String(), length, r.Makespan)
		}
	}
}

// TestTooLong checks that times beyond 106 days are refused wherever they come up, and never wrap around.
func TestTooLong(t *testing.T) {
	noise, err := loggops.ReadNoise(strings.NewReader("0 1000000000000\n1000000000001 0"), "noise")
	if err != nil {
		t.Fatal(err)
	}
	slow := nanoParams(9e15, 0, 9e15, 0, 0, 1e12)
	slow.GPerByte = big.NewRat(1e12, 1)
	for name, c := range map[string]struct {
		goal string
		o    loggops.Options
	}{
		"noise": {"num_ranks 1\nrank 0 {\ncalc 1000000\n}\n",
			loggops.Options{Params: nanoParams(1, 1, 1, 1, 0, 1), Noise: noise}},
		"gap per byte": {"num_ranks 2\nrank 0 {\nsend 9000000000b to 1 tag 1\nsend 1b to 1 tag 2\n}\n" +
			"rank 1 {\nrecv 1b from 0 tag 2\n}\n", loggops.Options{Params: slow}},
		"overhead per byte": {"num_ranks 2\nrank 0 {\nsend 9000000000000000b to 1\n}\nrank 1 {\nrecv 1b from 0\n}\n",
			loggops.Options{Params: nanoParams(1, 1, 1, 0, 5, 0)}},
	} {
		if r, err := run(parseGoal(t, c.goal), loggops.Strict, c.o, t.Logf); err == nil || !strings.Contains(err.Error(), "106 days") {
			t.Errorf("%s: error %v, result %+v", name, err, r)
		}
	}
}

// TestManyClocks checks that high numbers of streams and NICs cost memory only where they are used.
func TestManyClocks(t *testing.T) {
	const ranks = 200000
	b := dag.NewBuilder(ranks)
	b.Rank(7).Add(dag.Op{Duration: dag.Microsecond, Stream: 65535, NIC: 255})
	b.Rank(8).Add(dag.Op{Kind: dag.Send, Peer: 9, Bytes: 5, Stream: 60000, NIC: 200})
	b.Rank(9).Add(dag.Op{Kind: dag.Recv, Peer: 8, Bytes: 5, Stream: 3})
	trace := b.Trace()
	for _, model := range loggops.Models {
		r, err := run(trace, model, loggops.Options{Params: nanoParams(10, 10, 10, 1, 0, 0)}, t.Logf)
		if err != nil || !r.Complete {
			t.Errorf("%s: %+v, %v", model, r, err)
		}
	}
	b = dag.NewBuilder(5000)
	for r := range 5000 {
		b.Rank(r).Add(dag.Op{Duration: 1000, Stream: 65535})
	}
	_, err := run(b.Trace(), loggops.LogGOPSim, loggops.Options{Params: nanoParams(1, 1, 1, 1, 1, 1)}, t.Logf)
	if err == nil || !strings.Contains(err.Error(), "327680000 clocks") {
		t.Errorf("error %v", err)
	}
}

func TestRunErrors(t *testing.T) {
	calc := "num_ranks 1\nrank 0 {\ncalc 5\n}\n"
	for _, c := range []struct {
		name   string
		trace  func() *dag.Trace
		model  loggops.Model
		o      loggops.Options
		expect string
	}{
		{"fraction of a nanosecond", func() *dag.Trace { return parseGoal(t, calc) },
			loggops.LogGOPSim, loggops.Options{Params: loggops.Params{L: 1500, GPerByte: new(big.Rat), OPerByte: new(big.Rat)}},
			"L is 1.5ns, expected whole nanoseconds"},
		{"fractional G", func() *dag.Trace { return parseGoal(t, calc) },
			loggops.LogGOPSim, loggops.Options{Params: loggops.Params{GPerByte: big.NewRat(40, 1), OPerByte: new(big.Rat)}},
			"G is 0.040000 ns per byte"},
		{"release times", func() *dag.Trace {
			b := dag.NewBuilder(1)
			b.Rank(0).Add(dag.Op{Release: 5})
			return b.Trace()
		}, loggops.ATLAHS, loggops.Options{Params: nanoParams(1, 1, 1, 1, 1, 1)}, "does not support the trace's release times"},
		{"collective", func() *dag.Trace {
			b := dag.NewBuilder(1)
			b.Rank(0).Add(dag.Op{Kind: dag.Coll, Subkind: dag.Barrier})
			return b.Trace()
		}, loggops.Strict, loggops.Options{Params: nanoParams(1, 1, 1, 1, 1, 1)}, "rank 0 op 0 is of kind coll"},
		{"no such rank", func() *dag.Trace { return parseGoal(t, "num_ranks 1\nrank 0 {\ncalc 1\nsend 5b to 9\n}\n") },
			loggops.LogGOPSim, loggops.Options{Params: nanoParams(1, 1, 1, 1, 1, 1)},
			"rank 0 op 1 sends to rank 9, expected 0..0"},
		{"too long", func() *dag.Trace {
			b := dag.NewBuilder(1)
			b.Rank(0).Calc(dag.MaxTime)
			b.Rank(0).Calc(dag.MaxTime, 0)
			return b.Trace()
		}, loggops.Strict, loggops.Options{Params: nanoParams(1, 1, 1, 1, 1, 1)}, "106 days"},
		{"negative", func() *dag.Trace { return parseGoal(t, calc) },
			loggops.Strict, loggops.Options{Params: nanoParams(-1, 1, 1, 1, 1, 1)}, "does not support negative"},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := run(c.trace(), c.model, c.o, t.Logf)
			if err == nil || !strings.Contains(err.Error(), c.expect) {
				t.Errorf("error %v, expected %q", err, c.expect)
			}
		})
	}
}

// TestStrictVectors runs the vectors in the strict model: traces that are complete by MPI's rules must complete, and
// none is shorter than its longest chain of calcs.
func TestStrictVectors(t *testing.T) {
	incomplete := map[string]bool{ // each a schedule that cannot complete
		"dead_ops": true, "unmatched_tag": true, "sgat_resnet152_8": true, "sg_binarytreebcast_9_d500_root2": true,
	}
	for _, name := range cases(t) {
		if name == "sg_chained_dissem_8" { // sends to a rank that does not exist
			continue
		}
		trace := readBinary(t, vectors+"/"+name+".bin")
		r := runStrict(t, trace, nanoParams(2500, 1500, 1000, 6, 0, 65535))
		if r.Complete == incomplete[name] {
			t.Errorf("%s: complete is %v: %+v", name, r.Complete, r.Stuck)
		}
		if least := dag.Summarize(trace).CriticalPath.Time; r.Complete && r.Makespan.Ticks < uint64(least) {
			t.Errorf("%s: makespan %v is below the critical path %v", name, r.Makespan, least)
		}
	}
}

// TestStrictThreads checks that the result does not depend on the number of threads.
func TestStrictThreads(t *testing.T) {
	for seed := range uint64(20) {
		random := rand.New(rand.NewPCG(seed, 11))
		ranks := 2 + random.IntN(300)
		if seed%4 == 0 {
			ranks += 4000 // enough ranks for several threads
		}
		b := dag.NewBuilder(ranks)
		last := make([]int, ranks) // by rank: its latest op, which the next one waits for
		for r := range ranks {
			last[r] = b.Rank(r).Calc(dag.Time(random.Int64N(1e6)))
		}
		for range 20 * ranks {
			from, to := random.IntN(ranks), random.IntN(ranks)
			bytes := int64(1) << random.IntN(18)
			send := dag.Op{Kind: dag.Send, Peer: int32(to), Bytes: bytes, NIC: random.Int32N(1 + int32(seed%2))}
			recv := dag.Op{Kind: dag.Recv, Peer: int32(from), Bytes: bytes, Stream: random.Int32N(2)}
			if seed%3 == 0 && random.IntN(4) == 0 {
				recv.Peer = dag.AnySource
			}
			before := last[to] // a receive of a message from oneself must not wait for its send to end
			last[from] = b.Rank(from).Add(send, last[from])
			last[to] = b.Rank(to).Calc(dag.Time(random.Int64N(1e7)), b.Rank(to).Add(recv, before), last[to])
		}
		trace := b.Trace()
		params := nanoParams(2500, 300, 100, 1, 0, 10000)
		if seed%5 == 0 {
			params.L = dag.Time(random.Int64N(3)) // hardly any lookahead, or none
		}
		var want *sim.Result
		for _, threads := range []int{1, 2, 3, 8} {
			got, err := run(trace, loggops.Strict, loggops.Options{Params: params, Threads: threads}, t.Logf)
			if err != nil {
				t.Fatal(err)
			}
			if want == nil {
				want = got
			}
			if !slices.Equal(got.Finish, want.Finish) || got.Events != want.Events || got.Complete != want.Complete ||
				got.Messages != want.Messages {
				t.Errorf("seed %d: %d threads: makespan %v, %d events, complete %v; on one %v, %d, %v", seed, threads,
					got.Makespan, got.Events, got.Complete, want.Makespan, want.Events, want.Complete)
			}
		}
	}
}

// TestNilWarn compiles a trace that causes a warning, without a warn function.
func TestNilWarn(t *testing.T) {
	b := dag.NewBuilder(1)
	b.Rank(0).Calc(1500)
	if _, err := loggops.Compile(dag.FromTrace(b.Trace()), loggops.LogGOPSim, nil); err != nil {
		t.Error(err)
	}
}
