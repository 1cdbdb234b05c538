package blockio

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/tracedag/tracedag/dag"
	"github.com/tracedag/tracedag/formats/format"
)

// collect builds a trace from records, and returns its warnings.
func collect(t *testing.T, o Options, records []Record) (*dag.Trace, string) {
	t.Helper()
	var warnings strings.Builder
	options := &format.ReadOptions{Own: &o, Warn: func(message string, args ...any) {
		fmt.Fprintf(&warnings, message+"\n", args...)
	}}
	c := NewCollector(&format.Input{Name: "x"}, options)
	for i := range records {
		l := &Line{}
		if c.Add(l, &records[i]) == End {
			break
		}
		if l.failed {
			t.Fatalf("record %d: expected %s, found %s", i, l.expected, l.found)
		}
	}
	trace, err := c.Trace()
	if err != nil {
		t.Fatal(err)
	}
	if problems := dag.Validate(trace); len(problems) > 0 {
		t.Fatal(problems[0])
	}
	return trace, warnings.String()
}

// records returns the records of a trace in order.
func records(trace *dag.Trace) []Record {
	var list []Record
	for rank, i := range trace.Records() {
		op := trace.Ranks[rank].Op(i)
		list = append(list, Record{Time: op.Release, Unit: op.Peer, Address: op.Tag, Bytes: op.Bytes,
			Write: op.Subkind == dag.Write, Duration: op.Duration})
	}
	return list
}

func same(a, b Record) bool {
	return a.Time == b.Time && a.Unit == b.Unit && a.Address == b.Address && a.Bytes == b.Bytes && a.Write == b.Write &&
		a.Duration == b.Duration
}

// Whatever the order of units at the same time, records come out as they went in.
func TestOrderIsKept(t *testing.T) {
	random := rand.New(rand.NewPCG(2, 3))
	for round := range 300 {
		var in []Record
		now, units := dag.Time(0), 1+random.Int32N(7)
		for range random.IntN(200) + 1 {
			if random.IntN(1+round%20) == 0 {
				now += dag.Time(random.IntN(3))
			}
			r := Record{Time: now, Unit: random.Int32N(units) * 100, Address: random.Int64N(9), Bytes: int64(len(in)),
				Write: random.IntN(2) == 0, Duration: dag.Time(random.IntN(2))}
			if random.IntN(9) == 0 {
				r.Attrs = []byte(`"a":1`)
			}
			in = append(in, r)
		}
		trace, _ := collect(t, Options{}, in)
		if got := records(trace); !slices.EqualFunc(got, in, same) {
			t.Fatalf("got\n%v, want\n%v", got, in)
		}
	}
}

// The order costs nothing where it is that of the ranks.
func TestOnlyDeviationsHaveAttributes(t *testing.T) {
	trace, _ := collect(t, Options{}, []Record{
		{Unit: 3}, {Unit: 5}, {Unit: 5}, {Unit: 3}, {Unit: 7}, {Unit: 4}, {Unit: 4, Time: 1}, {Unit: 3, Time: 2}, {Unit: 5, Time: 2},
	})
	var got []string
	for i := range trace.Ranks {
		r := trace.Ranks[i]
		for op := range r.Len() {
			got = append(got, fmt.Sprintf("%d%s", r.Peer[op], r.Attrs.At(op)))
		}
	}
	want := `3 3{"tie":3} 3 4{"tie":5} 4 5 5 5 7`
	if text := strings.Join(got, " "); text != want {
		t.Errorf("got %s, want %s", text, want)
	}
}

func TestDecreasingTimes(t *testing.T) {
	in := []Record{{Time: 5, Bytes: 1}, {Time: 3, Bytes: 2, Duration: 9}, {Time: 5, Unit: 1, Bytes: 3},
		{Time: -2, Unit: 1, Bytes: 4, Attrs: []byte(`"a":1`)}, {Time: 3, Bytes: 5}}
	trace, warnings := collect(t, Options{AnyOrder: true}, in)
	want := slices.Clone(in)
	slices.SortStableFunc(want, func(a, b Record) int { return cmp.Compare(a.Time, b.Time) })
	for i := range want {
		want[i].Time += 2
	}
	if got := records(trace); !slices.EqualFunc(got, want, same) {
		t.Errorf("got\n%v, want\n%v", got, want)
	}
	if trace.Ranks[1].Attrs.At(0) != `{"a":1}` {
		t.Errorf("attributes %q", trace.Ranks[1].Attrs.At(0))
	}
	if !strings.Contains(warnings, "record 2") || !strings.Contains(warnings, "(2 in all)") {
		t.Errorf("warnings %q", warnings)
	}
	c := NewCollector(&format.Input{Name: "x"}, &format.ReadOptions{})
	c.Add(&Line{}, &in[0])
	l := &Line{}
	if c.Add(l, &in[1]); !l.failed || l.found != "3ps" ||
		!strings.HasPrefix(l.expected, "a time not before the previous record's, 5ps") {
		t.Errorf("failed %v, expected %s, found %s", l.failed, l.expected, l.found)
	}
}

func TestLimits(t *testing.T) {
	trace, _ := collect(t, Options{MaxRecords: 2}, make([]Record, 5))
	if trace.Ops() != 2 {
		t.Errorf("%d records, want 2", trace.Ops())
	}
	c := NewCollector(&format.Input{Name: "x"}, &format.ReadOptions{})
	l := &Line{}
	if c.Add(l, &Record{Address: 1 << 62, Bytes: 1 << 62}); !l.failed {
		t.Error("bytes beyond 2^63 are accepted")
	}
	if _, err := c.Trace(); err == nil || err.Error() != "x:1: expected at least one read or write, found none" {
		t.Errorf("no records: %v", err)
	}
	l = &Line{}
	for unit := range int32(MaxUnits) {
		c.Add(l, &Record{Unit: unit})
	}
	if l.failed {
		t.Errorf("%d units: expected %s", MaxUnits, l.expected)
	}
	if c.Add(l, &Record{Unit: MaxUnits}); !l.failed {
		t.Errorf("%d units are accepted", MaxUnits+1)
	}
}

// Places that do not fit, as when ops were removed or moved, never lose or repeat a record.
func TestOrderOfAnyTrace(t *testing.T) {
	random := rand.New(rand.NewPCG(4, 5))
	for range 300 {
		ranks := 1 + random.IntN(4)
		b, count := dag.NewBuilder(ranks), 0
		for rank := range ranks {
			for range random.IntN(20) {
				op := dag.Op{Kind: dag.IO, Subkind: dag.Read, Release: dag.Time(random.IntN(4))}
				switch random.IntN(4) {
				case 0:
					op = dag.Op{Kind: dag.Calc}
				case 1:
					op.Attrs = fmt.Sprintf(`{"tie":%d}`, random.IntN(30)-2)
				}
				if op.Kind == dag.IO {
					count++
				}
				b.Rank(rank).Add(op)
			}
		}
		trace := b.Trace()
		seen, last := map[[2]int]bool{}, dag.Time(0)
		for rank, op := range trace.Records() {
			now := trace.Ranks[rank].Release.At(op)
			if seen[[2]int{rank, op}] || now < last || trace.Ranks[rank].Kind[op] != dag.IO {
				t.Fatalf("op %d of rank %d at %v after %v, seen %v", op, rank, now, last, seen)
			}
			seen[[2]int{rank, op}], last = true, now
		}
		if len(seen) != count {
			t.Fatalf("%d of %d records", len(seen), count)
		}
	}
}

func TestCheckAndLosses(t *testing.T) {
	none := func(string) bool { return false }
	bad := func(change func(op *dag.Op)) error {
		op := dag.Op{Kind: dag.IO, Subkind: dag.Write}
		change(&op)
		b := dag.NewBuilder(1)
		b.Rank(0).Add(op)
		return Check(b.Trace())
	}
	for want, change := range map[string]func(op *dag.Op){
		"": func(*dag.Op) {},
		"expected storage accesses (io ops) in the trace, found none": func(op *dag.Op) { *op = dag.Op{} },
		`rank 0, op 0: expected a read or a write, found ""`:          func(op *dag.Op) { op.Subkind = 0 },
		"rank 0, op 0: expected a unit of 0 or more, found -1":        func(op *dag.Op) { op.Peer = -1 },
		"rank 0, op 0: expected an address of 0 or more, found -512":  func(op *dag.Op) { op.Tag = -512 },
		"rank 0, op 0: expected a size of 0 or more, found -1":        func(op *dag.Op) { op.Bytes = -1 },
		"rank 0, op 0: expected a time of 0 or more, found -1":        func(op *dag.Op) { op.Release = -1 },
	} {
		if err := bad(change); (err == nil) != (want == "") || err != nil && err.Error() != want {
			t.Errorf("error %v, want %q", err, want)
		}
	}

	b := dag.NewBuilder(2)
	first := b.Rank(0).Add(dag.Op{Kind: dag.IO, Subkind: dag.Read, Duration: 1, Attrs: `{"tie":0}`, Name: "n"})
	b.Rank(0).Add(dag.Op{Kind: dag.IO, Subkind: dag.Read, Attrs: `{"a":1}`, Flops: 1, Stream: 1}, first)
	b.Rank(1).Calc(1)
	var got []string
	for _, l := range Losses(b.Trace(), none) {
		got = append(got, l.String())
	}
	want := []string{"1 op: that they are no storage reads or writes, and are skipped", "1 op: dependencies", "2 ops: durations",
		"1 op: flops", "1 op: streams", "1 op: names", "1 op: attributes", "2 ops: ranks, which the units do not determine"}
	if !slices.Equal(got, want) {
		t.Errorf("losses\n%q, want\n%q", got, want)
	}
	trace, _ := collect(t, Options{}, []Record{{Unit: 4}, {Unit: 2}, {Unit: 4}})
	if l := Losses(trace, none); len(l) > 0 {
		t.Errorf("a trace of records loses %v", l)
	}
}
