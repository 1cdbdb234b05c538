package dag

import (
	"encoding/json"
	"math"
	"math/big"
	"math/rand/v2"
	"reflect"
	"runtime"
	"slices"
	"testing"
)

// handTrace is small enough to count by hand.
func handTrace() *Trace {
	return build(3, func(b *Builder) {
		b.AddComm(NewComm("pair", []int32{0, 2}))
		b.Meta().Nodes, b.Meta().Jobs = []int32{7, 7, 9}, []string{"a", "b"}

		r := b.Rank(0) // calcs in a diamond, then sends
		r.Add(Op{Kind: Calc, Duration: 10, Flops: 5})
		r.Add(Op{Kind: Calc, Duration: 20, Stream: 1, Flops: 6}, 0)
		r.Add(Op{Kind: Calc, Duration: 35, Stream: 2, NIC: 9}, 0)
		r.Add(Op{Kind: Calc, Duration: 5, Stream: 1000}, 1, 2)
		r.Send(1, 100, 0, 3)
		r.Add(Op{Kind: Send, Peer: 1, Bytes: 300, NIC: 1}, 3)
		r.Add(Op{Kind: Send, Peer: 2, Bytes: 0, NIC: 1, Release: 77}, 3)

		r = b.Rank(1) // a chain by start: 4 can finish at 50 + 4
		r.Recv(0, 100, 0, 2)
		r.Recv(0, 300, 0)
		r.Calc(50)
		r.Calc(3)
		r.RequiresStart(3, 2) // starts at 0
		r.Calc(4)
		r.Requires(4, 2)
		r.Calc(1)
		r.RequiresStart(5, 4) // starts at 50

		r = b.Rank(2)
		r.Recv(0, 0, 0)
		r.Add(Op{Kind: Coll, Subkind: Allreduce, Bytes: 64, Comm: 1, Duration: 1000})
		r.Add(Op{Kind: Mem, Subkind: Load, Bytes: 32, Duration: 1000})
		r.Add(Op{Kind: IO, Subkind: Write, Bytes: 512, Release: 99})
		r.Add(Op{Kind: IO, Subkind: Read, Bytes: 1024})
		r.Send(0, 7, 0)
	})
}

func TestSummarize(t *testing.T) {
	want := &Stats{
		Ranks: 3, Nodes: 2, Comms: 2, Jobs: 2,
		Counts: Counts{
			Ops:       19,
			Kinds:     KindCounts{Calc: 8, Send: 4, Recv: 3, Coll: 1, Mem: 1, IO: 2},
			Subkinds:  SubkindCounts{Allreduce: 1, Load: 1, Write: 1, Read: 1},
			SentBytes: TotalOf(407), ReceivedBytes: TotalOf(400), CollectiveBytes: TotalOf(64), MemBytes: TotalOf(32),
			IOBytes:  TotalOf(1536),
			CalcTime: big.NewInt(128), Flops: TotalOf(11), LastRelease: 99,
			Deps: 9, StartDeps: 2,
		},
		Streams: 4, NICs: 2,
		Messages:      Messages{Count: 4, Min: 0, Median: 7, Mean: 101.75, Max: 300},
		Depth:         Depth{Ops: 4, Rank: 0},
		Width:         Width{Ops: 6, Rank: 2, Level: 1},
		CriticalPath:  CriticalPath{Time: 54, Rank: 1},
		RankOps:       Spread{Min: TotalOf(6), Mean: 19.0 / 3, Max: TotalOf(7)},
		RankSentBytes: Spread{Mean: 407.0 / 3, Max: TotalOf(400)},
		RankCalcTime:  Spread{Mean: 128.0 / 3, Max: TotalOf(70)},
	}
	got := Summarize(handTrace())
	counts, err := Count(FromTrace(handTrace()))
	if err != nil || !reflect.DeepEqual(counts, want.Counts) {
		t.Errorf("Count: %v, got\n%+v\nwant\n%+v", err, counts, want.Counts)
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got\n%+v\nwant\n%+v", got, want)
	}
	text, err := json.Marshal(got)
	if err != nil {
		t.Fatal(err)
	}
	if string(text) != handJSON {
		t.Errorf("JSON is\n%s", text)
	}
}

const handJSON = `{"ranks":3,"nodes":2,"communicators":2,"jobs":2,"ops":19,` +
	`"ops_by_kind":{"calc":8,"send":4,"recv":3,"coll":1,"mem":1,"io":2},` +
	`"ops_by_subkind":{"allreduce":1,"load":1,"read":1,"write":1},` +
	`"sent_bytes":407,"received_bytes":400,"collective_bytes":64,"mem_bytes":32,"io_bytes":1536,` +
	`"calc_ps":128,"flops":11,"last_release_ps":99,"deps":9,"start_deps":2,"blocked_ops":0,"streams":4,"nics":2,` +
	`"messages":{"count":4,"min_bytes":0,"median_bytes":7,"mean_bytes":101.75,"max_bytes":300},` +
	`"depth":{"ops":4,"rank":0},"width":{"ops":6,"rank":2,"level":1},"critical_path":{"time_ps":54,"rank":1},` +
	`"rank_ops":{"min":6,"mean":6.333333333333333,"max":7},` +
	`"rank_sent_bytes":{"min":0,"mean":135.66666666666666,"max":400},` +
	`"rank_calc_ps":{"min":0,"mean":42.666666666666664,"max":70}}`

func TestSummarizeNothing(t *testing.T) {
	for _, n := range []int{0, 2} {
		got := Summarize(build(n, func(*Builder) {}))
		want := &Stats{
			Ranks: n, Nodes: n, Comms: 1, Jobs: 1, Counts: Counts{CalcTime: new(big.Int)},
			Depth: Depth{Rank: -1}, Width: Width{Rank: -1}, CriticalPath: CriticalPath{Rank: -1},
		}
		if got.CalcTime.Sign() != 0 {
			t.Errorf("%d ranks: calc time %v", n, got.CalcTime)
		}
		got.CalcTime = want.CalcTime
		if !reflect.DeepEqual(got, want) {
			t.Errorf("%d ranks: got\n%+v\nwant\n%+v", n, got, want)
		}
	}
}

// TestSummarizeExtremes: sums beyond 64 bits, on one rank and over ranks.
func TestSummarizeExtremes(t *testing.T) {
	trace := build(3, func(b *Builder) {
		for i := range 3 {
			r := b.Rank(i)
			r.Calc(MaxTime - 1)
			r.Calc(MaxTime, 0)
			r.Calc(-5, 1)
			r.Send(0, math.MaxInt64, 0)
			r.Send(0, math.MaxInt64-1, 0)
		}
	})
	s := Summarize(trace)
	if want := "55340232221128654824"; s.CalcTime.String() != want { // 3 (2^63 - 2 + 2^63 - 1 - 5)
		t.Errorf("calc time %v, want %s", s.CalcTime, want)
	}
	if s.CriticalPath != (CriticalPath{Time: MaxTime, Rank: 0, Longer: true}) || s.RankCalcTime.Max != TotalOf(int64(MaxTime)-1, int64(MaxTime), -5) {
		t.Errorf("critical path %v, calc time of a rank %v", s.CriticalPath, s.RankCalcTime)
	}
	if s.SentBytes.String() != "55340232221128654839" || s.RankSentBytes.Min != TotalOf(math.MaxInt64, math.MaxInt64-1) || s.Messages.Median != math.MaxInt64-1 {
		t.Errorf("sent bytes %v, by rank %v, messages %v", s.SentBytes, s.RankSentBytes, s.Messages)
	}
	if want := float64(math.MaxInt64); s.Messages.Mean != want {
		t.Errorf("mean message %v, want %v", s.Messages.Mean, want)
	}
	sent := TotalOf(math.MaxInt64, math.MaxInt64-1)
	if want := []Pair{{0, 0, 2, sent}, {1, 0, 2, sent}, {2, 0, 2, sent}}; !slices.Equal(
		Matrix(trace), want) {
		t.Errorf("matrix %v, want %v", Matrix(trace), want)
	}
}

func TestSummarizeBlocked(t *testing.T) {
	trace := calcs(6, func(_ *Trace, r *Rank) {
		r.Deps = Edges{ // 1 and 2 wait for each other, 3 for 2, 5 for 4, 4 for an op that does not exist
			End: []uint32{0, 1, 2, 3, 4, 5},
			Off: []int32{-1, 1, 1, -7, 1},
		}
	})
	s := Summarize(trace)
	if s.BlockedOps != 3 || s.Depth != (Depth{2, 0}) || s.Width != (Width{2, 0, 1}) || s.CriticalPath.Time != 2 {
		t.Errorf("blocked %d, depth %v, width %v, critical path %v", s.BlockedOps, s.Depth, s.Width, s.CriticalPath)
	}
	all := Summarize(calcs(2, func(_ *Trace, r *Rank) { r.Deps = Edges{End: []uint32{1, 2}, Off: []int32{0, 0}} }))
	if all.BlockedOps != 2 || all.Depth != (Depth{0, -1}) || all.Width != (Width{0, -1, 0}) ||
		all.CriticalPath != (CriticalPath{Rank: -1}) {
		t.Errorf("all blocked: %+v", all)
	}
}

// TestStatsAgainstNaive compares depth, width and critical path with recursion by their definitions, and the order
// statistics of messages with sorting, on random traces.
func TestStatsAgainstNaive(t *testing.T) {
	random := rand.New(rand.NewPCG(8, 1))
	for round := range 500 {
		var sizes []int64
		var depth Depth
		var width Width
		critical := CriticalPath{Rank: -1}
		depth.Rank, width.Rank = -1, -1
		ranks := 1 + random.IntN(4)
		trace := build(ranks, func(b *Builder) {
			for id := range ranks {
				n := random.IntN(15)
				number := random.Perm(n) // op k of the order in which the ops can run is number[k]
				r := b.Rank(id)
				for range n {
					op := Op{Kind: Kind(random.IntN(2)), Duration: Time(random.IntN(5)), Peer: int32(random.IntN(ranks))}
					if op.Kind == Send {
						op.Bytes = random.Int64N(1 << (1 + random.IntN(62)))
						if round%2 == 0 {
							op.Bytes = random.Int64N(3)
						}
						sizes = append(sizes, op.Bytes)
					}
					r.Add(op)
				}
				deps, starts := make([][]int, n), make([][]int, n)
				for k := 1; k < n; k++ {
					for range random.IntN(3) {
						op, on := number[k], number[random.IntN(k)]
						if random.IntN(3) > 0 {
							r.Requires(op, on)
							deps[op] = append(deps[op], on)
						} else {
							r.RequiresStart(op, on)
							starts[op] = append(starts[op], on)
						}
					}
				}
				var level func(op int) int64
				level = func(op int) int64 {
					l := int64(0)
					for _, on := range slices.Concat(deps[op], starts[op]) {
						l = max(l, level(on))
					}
					return l + 1
				}
				var start, finish func(op int) Time
				start = func(op int) (at Time) {
					for _, on := range deps[op] {
						at = max(at, finish(on))
					}
					for _, on := range starts[op] {
						at = max(at, start(on))
					}
					return at
				}
				finish = func(op int) Time {
					if r.rank.Kind[op] != Calc {
						return start(op)
					}
					return start(op) + r.rank.Duration.At(op)
				}
				counts := make([]int64, n+1)
				for op := range n {
					l := level(op)
					counts[l]++
					if l > depth.Ops {
						depth = Depth{l, id}
					}
					if f := finish(op); critical.Rank < 0 || f > critical.Time {
						critical = CriticalPath{Time: f, Rank: id}
					}
				}
				for l, count := range counts {
					if count > width.Ops {
						width = Width{count, id, int64(l)}
					}
				}
			}
		})
		s := Summarize(trace)
		if s.Depth != depth || s.Width != width || s.CriticalPath != critical {
			t.Fatalf("round %d: got %v %v %v, want %v %v %v", round, s.Depth, s.Width, s.CriticalPath, depth, width, critical)
		}
		slices.Sort(sizes)
		if n := len(sizes); n > 0 {
			m := s.Messages
			if m.Count != int64(n) || m.Min != sizes[0] || m.Median != sizes[(n-1)/2] || m.Max != sizes[n-1] {
				t.Fatalf("round %d: messages %+v of sizes %v", round, m, sizes)
			}
		}
		naive := map[[2]int32]Pair{}
		for id := range trace.Ranks {
			for i := range trace.Ranks[id].Len() {
				if op := trace.Ranks[id].Op(i); op.Kind == Send {
					key := [2]int32{int32(id), op.Peer}
					p := naive[key]
					p.Bytes.add(op.Bytes)
					naive[key] = Pair{key[0], key[1], p.Messages + 1, p.Bytes}
				}
			}
		}
		matrix := Matrix(trace)
		sorted := slices.IsSortedFunc(matrix, func(x, y Pair) int { return int(x.Src*100 + x.Dst - y.Src*100 - y.Dst) })
		if len(matrix) != len(naive) || !sorted {
			t.Fatalf("matrix %v, want %v, sorted", matrix, naive)
		}
		for _, p := range matrix {
			if naive[[2]int32{p.Src, p.Dst}] != p {
				t.Fatalf("pair %v, want %v", p, naive[[2]int32{p.Src, p.Dst}])
			}
		}
	}
}

func TestMatrixOfHandTrace(t *testing.T) {
	want := []Pair{{0, 1, 2, TotalOf(400)}, {0, 2, 1, Total{}}, {2, 0, 1, TotalOf(7)}}
	if got := Matrix(handTrace()); !slices.Equal(got, want) {
		t.Errorf("matrix %v, want %v", got, want)
	}
}

// TestResultsAreDeterministic runs on one and on several processors.
func TestResultsAreDeterministic(t *testing.T) {
	random := rand.New(rand.NewPCG(9, 1))
	trace := build(60, func(b *Builder) {
		for i := range 60 {
			for range 50 {
				b.Rank(i).Send(int32(random.IntN(61)), random.Int64N(100), int64(random.IntN(3)))
				b.Rank(i).Recv(int32(random.IntN(61)-1), 1, int64(random.IntN(3)-1))
				b.Rank(i).Add(Op{Kind: Coll, Subkind: Subkind(random.IntN(3)), Peer: int32(random.IntN(70))})
				b.Rank(i).Requires(random.IntN(b.Rank(i).Len()), random.IntN(b.Rank(i).Len()))
			}
		}
	})
	procs := runtime.GOMAXPROCS(1)
	defer runtime.GOMAXPROCS(procs)
	problems, stats, matrix := Validate(trace), Summarize(trace), Matrix(trace)
	if len(problems) == 0 {
		t.Fatal("nothing is wrong with a random trace")
	}
	runtime.GOMAXPROCS(8)
	for range 5 {
		if !reflect.DeepEqual(Validate(trace), problems) {
			t.Fatal("Validate depends on the number of processors")
		}
		if !reflect.DeepEqual(Summarize(trace), stats) {
			t.Fatal("Summarize depends on the number of processors")
		}
		if !slices.Equal(Matrix(trace), matrix) {
			t.Fatal("Matrix depends on the number of processors")
		}
	}
}

func TestSum(t *testing.T) {
	random := rand.New(rand.NewPCG(10, 1))
	values := []int64{0, 1, -1, math.MaxInt64, math.MinInt64, math.MaxInt64 - 1}
	for range 1000 {
		var s Total
		want := new(big.Int)
		for range random.IntN(20) {
			v := values[random.IntN(len(values))]
			s.add(v)
			want.Add(want, big.NewInt(v))
		}
		if s.Big().Cmp(want) != 0 {
			t.Fatalf("sum is %v, want %v", s.Big(), want)
		}
		nearest := int64(math.MaxInt64)
		if want.IsInt64() {
			nearest = want.Int64()
		} else if want.Sign() < 0 {
			nearest = math.MinInt64
		}
		if s.Int64() != nearest {
			t.Fatalf("sum %v as int64 is %d, want %d", want, s.Int64(), nearest)
		}
	}
}

// TestWidths compares the ops by level with the depth and the number of ops of traces of one rank.
func TestWidths(t *testing.T) {
	b := NewBuilder(2)
	r := b.Rank(0) // a diamond
	r.Calc(1)
	r.Calc(1, 0)
	r.Calc(1, 0)
	r.Calc(1, 1, 2)
	b.Rank(1).Calc(1)
	if got := Widths(b.Trace()); !slices.Equal(got, []int64{2, 2, 1}) {
		t.Errorf("ops by level: %v, want 2 2 1", got)
	}
	if got := Widths(&Trace{}); len(got) > 0 {
		t.Errorf("levels of an empty trace: %v", got)
	}
}
