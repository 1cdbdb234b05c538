package dag

import (
	"fmt"
	"math"
	"math/rand/v2"
	"reflect"
	"runtime"
	"slices"
	"testing"

	_ "github.com/tracedag/tracedag/internal/testheap"
)

func TestTimeString(t *testing.T) {
	for _, c := range []struct {
		time Time
		want string
	}{
		{0, "0s"},
		{1, "1ps"},
		{-1, "-1ps"},
		{999, "999ps"},
		{1000, "1ns"},
		{1001, "1.001ns"},
		{1500 * Nanosecond, "1.5us"},
		{999999, "999.999ns"},
		{10 * Millisecond, "10ms"},
		{Second + 1, "1.000000000001s"},
		{-90 * Second, "-90s"},
		{MaxTime, "9223372.036854775807s"},
		{math.MinInt64, "-9223372.036854775808s"},
	} {
		if got := c.time.String(); got != c.want {
			t.Errorf("Time(%d).String() = %q, want %q", int64(c.time), got, c.want)
		}
		if got := string(c.time.AppendTo([]byte("t=100"))); got != "t=100"+c.want {
			t.Errorf("Time(%d) appended to t=100: %q", int64(c.time), got)
		}
	}
}

func TestKindNames(t *testing.T) {
	for k := range Kind(NumKinds) {
		if got, ok := ParseKind(k.String()); !ok || got != k {
			t.Errorf("ParseKind(%q) = %v, %v", k.String(), got, ok)
		}
	}
	for s := range Subkind(NumSubkinds) {
		if got, ok := ParseSubkind(s.String()); !ok || got != s {
			t.Errorf("ParseSubkind(%q) = %v, %v", s.String(), got, ok)
		}
	}
	if _, ok := ParseKind("kind(6)"); ok {
		t.Error("ParseKind accepts a kind that does not exist")
	}
	if _, ok := ParseSubkind("subkind(99)"); ok {
		t.Error("ParseSubkind accepts a subkind that does not exist")
	}
	if got := Kind(200).String() + " " + Subkind(201).String(); got != "kind(200) subkind(201)" {
		t.Errorf("names of kinds that do not exist: %q", got)
	}
}

func TestSubkindOf(t *testing.T) {
	first := map[Kind]Subkind{Coll: Barrier, Mem: Load, IO: Read}
	last := map[Kind]Subkind{Coll: Exscan, Mem: Store, IO: Write}
	for k := range Kind(NumKinds) {
		for s := range Subkind(NumSubkinds + 3) {
			want := s == NoSubkind || k == Calc && s == Marker
			if low, has := first[k]; has {
				want = s >= low && s <= last[k]
			}
			if got := s.Of(k); got != want {
				t.Errorf("%v.Of(%v) = %v, want %v", s, k, got, want)
			}
		}
	}
}

func TestSubkindRooted(t *testing.T) {
	rooted := []Subkind{Bcast, Reduce, Gather, Gatherv, Scatter, Scatterv}
	for s := range Subkind(NumSubkinds) {
		if got, want := s.Rooted(), slices.Contains(rooted, s); got != want {
			t.Errorf("%v.Rooted() = %v, want %v", s, got, want)
		}
	}
}

func TestColumnAgainstMap(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 1))
	for range 200 {
		var column Column[int64]
		model := map[int]int64{}
		for range random.IntN(100) {
			i, v := random.IntN(60), random.Int64N(3)-1
			column.Set(i, v)
			model[i] = v
		}
		for _, c := range []Column[int64]{column, trim(column)} {
			for i := range 70 {
				if c.At(i) != model[i] {
					t.Fatalf("op %d is %d, want %d", i, c.At(i), model[i])
				}
			}
		}
	}
}

// TestExtendForgetsOldValues checks that values beyond the length of a slice do not reappear.
func TestExtendForgetsOldValues(t *testing.T) {
	s := extend([]int32{1, 2, 3}[:1], 3)
	if !slices.Equal(s, []int32{1, 0, 0}) {
		t.Errorf("extended to %v, want [1 0 0]", s)
	}
}

func TestNarrowAgainstMap(t *testing.T) {
	random := rand.New(rand.NewPCG(2, 1))
	values := []int32{0, 0, 0, 1, 255, 256, -1, math.MaxInt32, math.MinInt32}
	for round := range 600 {
		var column Narrow
		model := map[int]int32{}
		kinds := len(values)
		if round%2 == 0 {
			kinds = 5 // stays narrow
		}
		for range random.IntN(12) {
			first := random.IntN(60)
			run := make([]int32, random.IntN(20))
			for k := range run {
				run[k] = values[random.IntN(kinds)]
				model[first+k] = run[k]
			}
			if random.IntN(2) == 0 {
				column.SetRange(first, run)
				continue
			}
			for k, v := range run {
				column.Set(first+k, v)
			}
		}
		if random.IntN(2) == 0 {
			column.trim()
		}
		if kinds == 5 && column.wide != nil {
			t.Fatal("small values are stored wide")
		}
		first := random.IntN(90)
		dst := slices.Repeat([]int32{-7}, random.IntN(100))
		column.Copy(dst, first)
		for k, got := range dst {
			if got != model[first+k] {
				t.Fatalf("Copy gives %d for op %d, want %d", got, first+k, model[first+k])
			}
		}
		for i := range 100 {
			if got := column.At(i); got != model[i] {
				t.Fatalf("op %d is %d, want %d", i, got, model[i])
			}
			if i >= column.Len() && model[i] != 0 {
				t.Fatalf("op %d beyond the length %d is %d", i, column.Len(), model[i])
			}
		}
	}
}

func TestText(t *testing.T) {
	var text Text
	if text.At(0) != "" || text.Len() != 0 {
		t.Error("an empty column holds something")
	}
	want := []string{"", "", "first", "", "second", "ünïcode\x00", "", ""}
	for i, s := range want {
		if !text.Append(i, s) {
			t.Fatalf("Append(%d, %q) refused", i, s)
		}
	}
	text.trim()
	for i, s := range want {
		if got := text.At(i); got != s {
			t.Errorf("op %d is %q, want %q", i, got, s)
		}
	}
	if text.Len() != 6 {
		t.Errorf("Len() = %d, want 6", text.Len())
	}
	for _, i := range []int{0, 3, 5} {
		if text.Append(i, "late") {
			t.Errorf("Append(%d) accepted, after op 5", i)
		}
	}
	if got := text.At(5); got != want[5] {
		t.Errorf("op 5 is %q after refused calls, want %q", got, want[5])
	}
}

// randomEdges returns the dependencies of n ops, and the edges one by one.
func randomEdges(random *rand.Rand, n int) (Edges, [][2]int) {
	var e Edges
	var list [][2]int
	for i := range n {
		for range max(0, random.IntN(6)-2) {
			on := random.IntN(n)
			e.Append(i, int32(i-on))
			list = append(list, [2]int{i, on})
		}
	}
	return e, list
}

func TestDependentsAgainstNaive(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 1))
	for range 300 {
		n := random.IntN(30) + 1
		edges, list := randomEdges(random, n)
		want := make([][]int32, n)
		for _, e := range list {
			want[e[1]] = append(want[e[1]], int32(e[0]))
		}
		var order Edges
		for i := range want {
			if random.IntN(3) == 0 {
				random.Shuffle(len(want[i]), func(a, b int) { want[i][a], want[i][b] = want[i][b], want[i][a] })
				for _, d := range want[i] {
					order.Append(i, d-int32(i))
				}
			}
		}
		rank := Rank{Kind: make([]Kind, n), Deps: edges, Order: order, StartDeps: edges, StartOrder: order}
		if err := rank.CheckReferences(); err != nil {
			t.Fatal(err)
		}
		for _, dependents := range []Dependents{rank.Dependents(), rank.StartDependents()} {
			for i := range n {
				if !slices.Equal(dependents.Of(i), want[i]) {
					t.Fatalf("dependents of op %d: %v, want %v", i, dependents.Of(i), want[i])
				}
			}
		}
	}
}

func TestCheckReferences(t *testing.T) {
	three := []Kind{Calc, Calc, Calc}
	for _, c := range []struct {
		name string
		rank Rank
		want string
	}{
		{"empty", Rank{}, ""},
		{"forward", Rank{Kind: three, Deps: Edges{End: []uint32{1}, Off: []int32{-2}}}, ""},
		{"negative op", Rank{Kind: three, Deps: Edges{End: []uint32{1}, Off: []int32{1}}},
			"deps: op 0 depends on op -1, expected 0..2"},
		{"op too high", Rank{Kind: three, StartDeps: Edges{End: []uint32{1}, Off: []int32{-3}}},
			"start_deps: op 0 depends on op 3, expected 0..2"},
		{"far away", Rank{Kind: three, Deps: Edges{End: []uint32{0, 0, 1}, Off: []int32{math.MinInt32}}},
			"deps: op 2 depends on op 2147483650, expected 0..2"},
		{"too many lists", Rank{Kind: three, Deps: Edges{End: []uint32{0, 0, 0, 0}}}, "deps: 4 lists for 3 ops"},
		{"not monotone", Rank{Kind: three, Deps: Edges{End: []uint32{1, 0}, Off: []int32{-1}}},
			"deps: the list of op 1 ends at offset 0, expected 1..1"},
		{"end beyond", Rank{Kind: three, Deps: Edges{End: []uint32{2}, Off: []int32{-1}}},
			"deps: the list of op 0 ends at offset 2, expected 0..1"},
		{"left over", Rank{Kind: three, Deps: Edges{End: []uint32{1}, Off: []int32{-1, -1}}},
			"deps: the lists contain 1 of 2 offsets"},
		{"offsets alone", Rank{Kind: three, StartDeps: Edges{Off: []int32{1}}}, "start_deps: the lists contain 0 of 1 offsets"},
		{"order of nothing", Rank{Kind: three, Order: Edges{End: []uint32{1}, Off: []int32{1}}},
			"deps: op 0 has 0 dependents, their order lists 1"},
		{"order too long", Rank{Kind: three, Order: Edges{End: []uint32{0, 0, 0, 0}}},
			"deps: order of dependents: 4 lists for 3 ops"},
		{"order not monotone", Rank{Kind: three, Order: Edges{End: []uint32{1, 0}, Off: []int32{1}}},
			"deps: order of dependents: the list of op 1 ends at offset 0, expected 1..1"},
		{"order out of range",
			Rank{Kind: three, Deps: Edges{End: []uint32{0, 1}, Off: []int32{1}},
				Order: Edges{End: []uint32{1}, Off: []int32{-1}}},
			"deps: the order of op 0's dependents lists op -1, expected 0..2"},
		{"order of others",
			Rank{Kind: three, Deps: Edges{End: []uint32{0, 1}, Off: []int32{1}},
				Order: Edges{End: []uint32{1}, Off: []int32{2}}},
			"deps: the order of op 0's dependents does not list op 1 once for each time it depends on it"},
		{"order repeats",
			Rank{Kind: three, Deps: Edges{End: []uint32{0, 1, 2}, Off: []int32{1, 2}},
				Order: Edges{End: []uint32{2}, Off: []int32{2, 2}}},
			"deps: the order of op 0's dependents does not list op 1 once for each time it depends on it"},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := ""
			if err := c.rank.CheckReferences(); err != nil {
				got = err.Error()
			}
			if got != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}

// TestCheckReferencesRandom has lists of random offsets, some of which lead nowhere, and finds the first by hand.
func TestCheckReferencesRandom(t *testing.T) {
	random := rand.New(rand.NewPCG(5, 1))
	refused := 0
	for range 3000 {
		n := 1 + random.IntN(60)
		reach := 1 + random.IntN(n)
		r := Rank{Kind: make([]Kind, n)}
		want := ""
		for i := range n {
			for range random.IntN(3) {
				on := i - random.IntN(min(reach, i+1))
				if random.IntN(4*n) == 0 {
					on = random.IntN(3*n) - n
				}
				r.Deps.Append(i, int32(i-on))
				if want == "" && (on < 0 || on >= n) {
					want = fmt.Sprintf("deps: op %d depends on op %d, expected 0..%d", i, on, n-1)
					refused++
				}
			}
		}
		got := ""
		if err := r.CheckReferences(); err != nil {
			got = err.Error()
		}
		if got != want {
			t.Fatalf("got %q, want %q of %+v", got, want, r.Deps)
		}
	}
	if refused < 300 || refused > 2700 {
		t.Errorf("%d of 3000 were to be refused", refused)
	}
}

// TestBuilderEdges adds edges in random order and compares the rank with separate lists.
func TestBuilderEdges(t *testing.T) {
	random := rand.New(rand.NewPCG(4, 1))
	for round := range 600 {
		var b RankBuilder
		keep := round%2 == 0
		if keep {
			b.KeepOrder()
		}
		n := random.IntN(25) + 1
		var deps, start [][2]int // in the order of the calls
		for i := range n {
			var direct []int
			for range random.IntN(3) {
				on := random.IntN(n) // may be a forward reference
				direct = append(direct, on)
				deps = append(deps, [2]int{i, on})
			}
			if got := b.Add(Op{Kind: Calc, Duration: Time(i)}, direct...); got != i || b.Len() != i+1 {
				t.Fatalf("op %d was given the index %d, Len() = %d", i, got, b.Len())
			}
			for range random.IntN(4) {
				op, on := i-random.IntN(min(i+1, 1+random.IntN(8))), random.IntN(n)
				if random.IntN(2) == 0 {
					b.Requires(op, on)
					deps = append(deps, [2]int{op, on})
				} else {
					b.RequiresStart(op, on)
					start = append(start, [2]int{op, on})
				}
			}
		}
		rank := b.Rank()
		if err := b.Err(); err != nil {
			t.Fatal(err)
		}
		if err := rank.CheckReferences(); err != nil {
			t.Fatal(err)
		}
		compareWithCalls(t, n, deps, &rank.Deps, &rank.Order, rank.Dependents(), keep)
		compareWithCalls(t, n, start, &rank.StartDeps, &rank.StartOrder, rank.StartDependents(), keep)
	}
}

func compareWithCalls(t *testing.T, n int, calls [][2]int, edges, order *Edges, dependents Dependents, keep bool) {
	t.Helper()
	wantOff, wantDependents := make([][]int32, n), make([][]int32, n)
	for _, c := range calls {
		wantOff[c[0]] = append(wantOff[c[0]], int32(c[0]-c[1]))
		wantDependents[c[1]] = append(wantDependents[c[1]], int32(c[0]))
	}
	for i := range n {
		if !slices.Equal(edges.Of(i), wantOff[i]) || edges.Count(i) != len(wantOff[i]) {
			t.Fatalf("dependencies of op %d: %v, want %v", i, edges.Of(i), wantOff[i])
		}
		ascending := slices.IsSorted(wantDependents[i])
		if !keep {
			slices.Sort(wantDependents[i])
		}
		if !slices.Equal(dependents.Of(i), wantDependents[i]) {
			t.Fatalf("dependents of op %d: %v, want %v", i, dependents.Of(i), wantDependents[i])
		}
		if explicit := len(order.Of(i)) > 0; explicit != (keep && !ascending) {
			t.Fatalf("op %d with dependents %v: order stored: %v, kept: %v", i, wantDependents[i], explicit, keep)
		}
	}
}

func TestBuilderRefusesImpossibleIndices(t *testing.T) {
	for _, c := range [][2]int{{-1, 0}, {2, 0}, {math.MaxInt, 0}, {0, -1}, {0, MaxOps}, {0, math.MaxInt}} {
		b := NewBuilder(2)
		r := b.Rank(1)
		r.Calc(1)
		r.Calc(1, 0)
		r.Requires(c[0], c[1])
		r.RequiresStart(c[0], c[1])
		r.Requires(0, 1)
		want := "rank 1: " + errIndex.Error()
		if err := b.Err(); err == nil || err.Error() != want {
			t.Errorf("edge %v: %v, want %q", c, err, want)
		}
		trace := b.Trace()
		if err := b.Err(); err == nil || err.Error() != want {
			t.Errorf("edge %v, after Trace: %v, want %q", c, err, want)
		}
		if got := trace.Ranks[1].Deps; !slices.Equal(got.Off, []int32{-1, 1}) || len(trace.Ranks[1].StartDeps.Off) > 0 {
			t.Errorf("edge %v left the dependencies %v", c, got)
		}
	}
}

// TestBuilderUnknownTarget: a dependency on an op that is never added must survive as an error, in every path of the
// builder.
func TestBuilderUnknownTarget(t *testing.T) {
	var b RankBuilder
	b.KeepOrder()
	b.Calc(1)
	b.Calc(1)
	b.Requires(1, 0)
	b.Requires(0, 5) // late
	rank := b.Rank()
	if err := rank.CheckReferences(); err == nil || err.Error() != "deps: op 0 depends on op 5, expected 0..1" {
		t.Error(err)
	}
}

func TestBuilderTrace(t *testing.T) {
	b := NewBuilder(3)
	b.Meta().Title = "three"
	comm := b.AddComm(NewComm("pair", []int32{2, 0}))
	op := Op{
		Kind: Coll, Subkind: Bcast, Bytes: 1, RecvBytes: 2, Peer: 2, Tag: -5, Comm: comm, Duration: 3, Flops: 4,
		Release: 5, Stream: 6, NIC: 7, Job: 300, Host: 1, Dims: 0b1001, Priority: -8, Name: "n", Attrs: "{}", Timed: true,
		MeasuredStart: -1, MeasuredEnd: 9,
	}
	b.Rank(2).Calc(5)
	b.Rank(2).Add(op, 0)
	b.Rank(2).Send(1, 10, 11, 1)
	b.Rank(1).Recv(AnySource, 10, AnyTag)
	trace := b.Trace()
	if trace.Title != "three" || len(trace.Comms) != 2 || trace.Ops() != 4 || len(trace.Ranks) != 3 {
		t.Errorf("trace %+v", trace)
	}
	rank := trace.Ranks[2]
	if got := rank.Op(1); got != op {
		t.Errorf("op 1 is %+v, want %+v", got, op)
	}
	if got, want := rank.Op(0), (Op{Kind: Calc, Duration: 5}); got != want {
		t.Errorf("op 0 is %+v, want %+v", got, want)
	}
	if got, want := rank.Op(2), (Op{Kind: Send, Peer: 1, Bytes: 10, Tag: 11}); got != want {
		t.Errorf("op 2 is %+v, want %+v", got, want)
	}
	if start, end := rank.Measured(2); start != Unmeasured || end != Unmeasured {
		t.Errorf("op 2 was measured from %v to %v", start, end)
	}
	if got, want := trace.Ranks[1].Op(0), (Op{Kind: Recv, Peer: -1, Bytes: 10, Tag: -1}); got != want {
		t.Errorf("op 0 of rank 1 is %+v, want %+v", got, want)
	}
	if b.Err() != nil {
		t.Error(b.Err())
	}
}

// A clone is equal, and does not change with the original.
func TestRankClone(t *testing.T) {
	build := func() Rank {
		b := NewBuilder(1)
		r := b.Rank(0)
		for i := range 3 {
			n := int32(100 * i) // in the last op too wide for a byte
			op := fullOp(t, i)
			op.Comm, op.NIC, op.Job, op.Priority = n, n, 2*n, -n
			r.Add(op)
			r.RequiresStart(i, 0)
		}
		r.KeepOrder()
		for _, op := range []int{2, 1} {
			r.Requires(op, 0)
			r.RequiresStart(op, 0)
		}
		return *b.Trace().Ranks[0]
	}
	original, want := build(), build()
	clone := *original.Clone()
	if !reflect.DeepEqual(clone, want) {
		t.Errorf("the clone is %+v, want %+v", clone, want)
	}
	v := reflect.ValueOf(&original).Elem()
	for i := range v.NumField() {
		if v.Field(i).IsZero() && v.Type().Field(i).Name != "StartOrder" {
			t.Errorf("%s is not tried", v.Type().Field(i).Name)
		}
	}
	for _, f := range Fields {
		switch c := f.Of(&original).(type) {
		case *Column[Kind]:
			(*c)[0] = 0
		case *Column[Subkind]:
			(*c)[0] = 0
		case *Column[int32]:
			(*c)[0] = 0
		case *Column[int64]:
			(*c)[0] = 0
		case *Column[Time]:
			(*c)[0] = 0
		case *Times:
			(*c)[0] = 0
		case *Narrow:
			c.Set(1, 77)
		case *Edges:
			c.Off[0], c.End[len(c.End)-1] = 77, 77
		case *Text:
			c.data[0], c.end[0] = 'x', 77
		default:
			t.Errorf("%s is not tried", f.Name)
		}
	}
	if !reflect.DeepEqual(clone, want) {
		t.Errorf("the clone changes with the original: %+v, want %+v", clone, want)
	}
}

// The attributes of an op, or of an earlier op, determine its ID.
func TestRankID(t *testing.T) {
	for _, c := range []struct {
		attrs []string // of the ops
		want  []uint64
	}{
		{[]string{"", "", ""}, []uint64{0, 1, 2}},
		{[]string{"", `{"id":7}`, "", `{"x":1}`, `{"x":{"id":3},"id":20}`, ""}, []uint64{0, 7, 8, 9, 20, 21}},
		{[]string{`{"id":18446744073709551615}`}, []uint64{math.MaxUint64}},
		{[]string{`{"id":5}`, `{"id":-1}`, `{"id":"9"}`, `{"id":null}`, `{"x":{"id":3}}`, `{"id":8`, `{"id" : 9}`},
			[]uint64{5, 6, 7, 8, 9, 10, 9}},
	} {
		var b RankBuilder
		for _, attrs := range c.attrs {
			b.Add(Op{Attrs: attrs})
		}
		b.Calc(1)
		r := b.Rank()
		all := append(c.want, c.want[len(c.want)-1]+1)
		for i, want := range all {
			if got := r.ID(i); got != want {
				t.Errorf("attributes %q: op %d is %d, want %d", c.attrs, i, got, want)
			}
		}
		if got := r.IDs(); !slices.Equal(got, all) {
			t.Errorf("attributes %q: ops are %d, want %d", c.attrs, got, all)
		}
	}
}

func TestCommAgainstList(t *testing.T) {
	random := rand.New(rand.NewPCG(5, 1))
	for range 2000 {
		n := random.IntN(20) + 1
		ranks := make([]int32, random.IntN(n+1))
		for i, r := range random.Perm(n)[:len(ranks)] {
			ranks[i] = int32(r)
		}
		if random.IntN(2) == 0 {
			slices.Sort(ranks)
		}
		want := ""
		if len(ranks) > 1 && random.IntN(4) == 0 {
			ranks[0] = ranks[1+random.IntN(len(ranks)-1)]
			want = fmt.Sprintf("rank %d is listed twice", ranks[0])
		}
		c := NewComm("c", ranks)
		if got := c.Members(); !slices.Equal(got, ranks) || c.Size() != len(ranks) {
			t.Fatalf("%v became %v", ranks, got)
		}
		got := ""
		if err := c.Check(n); err != nil {
			got = err.Error()
		}
		if got != want {
			t.Fatalf("%v: %q, want %q", c.Ranges, got, want)
		}
		for r := int32(-2); r < int32(n)+2; r++ {
			if c.Contains(r) != slices.Contains(ranks, r) {
				t.Fatalf("%v.Contains(%d) = %v", c.Ranges, r, c.Contains(r))
			}
		}
		inOrder := len(ranks) == n
		for i, r := range ranks {
			inOrder = inOrder && int(r) == i
		}
		if c.isWorld(n) != inOrder {
			t.Fatalf("%v.isWorld(%d) = %v", c.Ranges, n, c.isWorld(n))
		}
	}
}

// TestRangeCommon compares the arithmetic with plain lists, for all small ranges.
func TestRangeCommon(t *testing.T) {
	var ranges []Range
	for first := range int32(12) {
		for stride := int32(-5); stride <= 5; stride++ {
			for count := int32(1); count <= 4; count++ {
				if last := first + stride*(count-1); last >= 0 && last < 12 && (stride != 0 || count == 1) {
					ranges = append(ranges, Range{first, stride, count})
				}
			}
		}
	}
	for _, r := range ranges {
		members := (&Comm{Ranges: []Range{r}}).Members()
		for _, q := range ranges {
			want := int32(-1)
			for rank := int32(11); rank >= 0; rank-- {
				if slices.Contains(members, rank) && q.contains(rank) {
					want = rank
				}
			}
			got, ok := r.common(q)
			if ok != (want >= 0) || ok && got != want {
				t.Fatalf("%v and %v have %d in common (%v), want %d", r, q, got, ok, want)
			}
		}
	}
}

func TestCommCheck(t *testing.T) {
	const huge = math.MaxInt32
	for _, c := range []struct {
		ranges []Range
		n      int
		want   string
	}{
		{nil, 0, ""},
		{nil, 5, ""},
		{[]Range{{0, 1, 5}}, 5, ""},
		{[]Range{{4, -1, 5}}, 5, ""},
		{[]Range{{0, 1, 6}}, 5, "range of 6 ranks from 0 in steps of 1, expected ranks in 0..4"},
		{[]Range{{4, -1, 6}}, 5, "range of 6 ranks from 4 in steps of -1, expected ranks in 0..4"},
		{[]Range{{0, 1, 0}}, 5, "range of 0 ranks from 0 in steps of 1, expected ranks in 0..4"},
		{[]Range{{-1, 1, 2}}, 5, "range of 2 ranks from -1 in steps of 1, expected ranks in 0..4"},
		{[]Range{{5, 1, 1}}, 5, "range of 1 ranks from 5 in steps of 1, expected ranks in 0..4"},
		{[]Range{{0, huge, huge}}, 5, "range of 2147483647 ranks from 0 in steps of 2147483647, expected ranks in 0..4"},
		{[]Range{{0, 0, huge}}, 5, "more members than the 5 ranks of the trace"},
		{[]Range{{3, 0, 4}}, 5, "rank 3 is listed twice"},
		{[]Range{{0, 0, huge}}, huge, "rank 0 is listed twice"},
		{[]Range{{0, 2, huge / 4}, {1, 2, huge / 4}}, huge, ""},
		{[]Range{{0, 3, huge / 8}, {4, 7, huge / 8}}, huge, "rank 18 is listed twice"},
		{[]Range{{huge - 1, 0, 1}, {0, 2, huge / 2}}, huge, ""},
		{[]Range{{huge - 2, 0, 1}, {1, 2, huge / 2}}, huge, "rank 2147483645 is listed twice"},
	} {
		comm := Comm{Ranges: c.ranges}
		got := ""
		if err := comm.Check(c.n); err != nil {
			got = err.Error()
		}
		if got != c.want {
			t.Errorf("%v of %d: %q, want %q", c.ranges, c.n, got, c.want)
		}
	}
}

func TestCommEqual(t *testing.T) {
	a, b := Comm{Ranges: []Range{{0, 1, 2}, {2, 1, 2}}}, World(4)
	if !a.Equal(&b) {
		t.Error("different ranges of the same ranks are not equal")
	}
	b.Name = "x"
	if a.Equal(&b) {
		t.Error("communicators with different names are equal")
	}
	if c, d := NewComm("", []int32{0, 1}), NewComm("", []int32{1, 0}); c.Equal(&d) {
		t.Error("communicators in different order are equal")
	}
}

// TestEmptyRanks checks the cost of ranks without ops, and that no operation on them changes the rank that they share.
func TestEmptyRanks(t *testing.T) {
	const ranks = 200_000
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	b := NewBuilder(ranks)
	b.Rank(7).Calc(5)
	b.Rank(ranks-1).Send(7, 1, 0)
	tr := b.Trace()
	h, err := FromTrace(tr).Header()
	if err != nil {
		t.Fatal(err)
	}
	copied, err := ReadAll(WithHeader(FromTrace(tr), h))
	if err != nil {
		t.Fatal(err)
	}
	if problems := Validate(tr); len(problems) == 0 {
		t.Error("a send without receive is valid")
	}
	copied.Ranks = CopyRanks(copied.Ranks)
	runtime.GC()
	runtime.ReadMemStats(&after)
	if used := float64(after.HeapAlloc-before.HeapAlloc) / ranks; used > 24 {
		t.Errorf("%.0f bytes per rank without ops", used)
	}
	ops := 0
	for rank, r := range copied.Ranks {
		if r.Len() > 0 == (tr.Ranks[rank] == r) {
			t.Errorf("rank %d of %d ops: %p, copied %p", rank, r.Len(), tr.Ranks[rank], r)
		}
		ops += r.Len()
	}
	if ops != 2 || len(copied.Ranks) != ranks || !reflect.DeepEqual(*NewRanks(1)[0], Rank{}) {
		t.Errorf("%d ops on %d ranks; the shared rank is %+v", ops, len(copied.Ranks), *NewRanks(1)[0])
	}
	runtime.KeepAlive(tr)
}
