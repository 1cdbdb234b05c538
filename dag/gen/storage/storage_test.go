package storage

import (
	"bufio"
	"bytes"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/tracedag/tracedag/dag"
	"github.com/tracedag/tracedag/internal/golden"
)

// builtinBins is about how many bins the distributions of built-in profiles have.
const builtinBins = 32

// readSPC returns the trace of a file of the Storage Performance Council's format, with blocks of 512 bytes.
func readSPC(t *testing.T, path string) *dag.Trace {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	number := func(text string) int64 {
		n, err := strconv.ParseInt(text, 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	b := dag.NewBuilder(32)
	units := 0
	for lines := bufio.NewScanner(f); lines.Scan(); {
		fields := strings.Split(lines.Text(), ",")
		subkind := dag.Read
		if strings.EqualFold(fields[3], "w") {
			subkind = dag.Write
		}
		whole, decimals, _ := strings.Cut(fields[4], ".")
		unit := int(number(fields[0]))
		units = max(units, unit+1)
		b.Rank(unit).Add(dag.Op{
			Kind: dag.IO, Subkind: subkind, Bytes: number(fields[2]), Peer: int32(unit), Tag: 512 * number(fields[1]),
			Release: dag.Time(number(whole))*dag.Second + dag.Time(number((decimals + "000000")[:6]))*dag.Microsecond,
		})
	}
	tr := b.Trace()
	tr.Ranks = tr.Ranks[:units]
	return tr
}

// TestBuiltin measures the built-in profiles again.
func TestBuiltin(t *testing.T) {
	folder := os.Getenv("TRACEDAG_VECTORS")
	if folder == "" {
		t.Skip("TRACEDAG_VECTORS is not set: the traces of other projects are not read")
	}
	for name, c := range map[string]struct {
		file, about string
	}{
		"financial": {"financial1_5000.spc",
			"The first 5,000 records of Financial1 of the UMass trace repository, of transactions at a financial\n" +
				"# institution. Times after the first 949 records are from a copy that has them to 8 us."},
		"websearch": {"websearch_5000.spc",
			"The first 5,000 records of the trace wsrch-small that comes with the simulator MQSim, which looks like one\n" +
				"# of WebSearch1 to 3 of the UMass trace repository, of a search engine."},
	} {
		p, err := measureProfile(readSPC(t, filepath.Join(folder, "spc", c.file)), builtinBins)
		if err != nil {
			t.Fatal(err)
		}
		p.Name = name
		if golden.Update() {
			writeProfile(t, p, c.about)
		} else if !reflect.DeepEqual(p, Builtin(name)) {
			t.Errorf("%s is not what is measured; -update makes it so", name)
		}
	}
}

// writeProfile writes a built-in profile.
func writeProfile(t *testing.T, p *Profile, about string) {
	var b bytes.Buffer
	distribution := func(d distribution) {
		fmt.Fprintf(&b, " %d\n", d.step)
		for _, x := range d.bins {
			fmt.Fprintf(&b, "%d %d %d\n", x.low, x.high, x.weight)
		}
	}
	fmt.Fprintf(&b, "# %s\n# Measured by measureProfile with %d bins.\ngaps", about, builtinBins)
	distribution(p.gaps)
	for _, u := range p.units {
		fmt.Fprintf(&b, "unit %d %d %d %d\nreads %d", u.number, u.start, u.low, u.high, u.reads.count)
		distribution(u.reads.sizes)
		fmt.Fprintf(&b, "writes %d", u.writes.count)
		distribution(u.writes.sizes)
		b.WriteString("jumps")
		distribution(u.jumps)
	}
	golden.Write(t, filepath.Join("profiles", p.Name+".txt"), b.Bytes())
}

func mustGenerate(t testing.TB, p Params, seed int64) *dag.Trace {
	t.Helper()
	tr, err := Generate(p, seed)
	if err != nil {
		t.Fatal(err)
	}
	if problems := dag.Validate(tr); len(problems) > 0 {
		t.Fatal(problems[0])
	}
	return tr
}

// checkShare fails if, of n draws, a part of the given probability came k times, which is unlikely.
func checkShare(t *testing.T, what string, k, n int64, probability float64) {
	t.Helper()
	mean := float64(n) * probability
	deviation := math.Sqrt(mean * (1 - probability))
	if deviation == 0 && float64(k) != mean || deviation > 0 && math.Abs(float64(k)-mean)/deviation > 4.5 {
		t.Errorf("%s: %d of %d, expected about %.1f, give or take %.1f", what, k, n, mean, deviation)
	}
}

// checkValues compares values with the distribution that they come from: how many are in each bin, and their mean.
func checkValues(t *testing.T, what string, values []int64, d distribution) {
	t.Helper()
	counts := make([]int64, len(d.bins))
	total, mean, square, sum := int64(0), 0.0, 0.0, 0.0
	for _, b := range d.bins {
		total += b.weight
	}
	for _, b := range d.bins {
		share := float64(b.weight) / float64(total)
		middle := (float64(b.low) + float64(b.high)) / 2
		k := float64(b.high-b.low)/float64(d.step) + 1 // numbers of the bin
		mean += share * middle
		square += share * (middle*middle + float64(d.step)*float64(d.step)*(k*k-1)/12)
	}
	for _, v := range values {
		sum += float64(v)
		found := false
		for i, b := range d.bins {
			if b.low <= v && v <= b.high && (v-b.low)%d.step == 0 {
				counts[i]++
				found = true
			}
		}
		if !found {
			t.Fatalf("%s: %d is in no bin", what, v)
		}
	}
	for i, b := range d.bins {
		checkShare(t, fmt.Sprintf("%s: %d to %d", what, b.low, b.high), counts[i], int64(len(values)),
			float64(b.weight)/float64(total))
	}
	if n := float64(len(values)); n > 0 {
		deviation := math.Sqrt(max(0, square-mean*mean) / n)
		if math.Abs(sum/n-mean) > 4.5*deviation+1e-9*math.Abs(mean) {
			t.Errorf("%s: the mean is %.6g, expected %.6g, give or take %.2g", what, sum/n, mean, deviation)
		}
	}
}

// TestStatistics compares the statistics of generated traces with those of their profiles.
func TestStatistics(t *testing.T) {
	const n = 200_000
	for _, name := range Names() {
		p := Builtin(name)
		tr := mustGenerate(t, Params{Profile: p, Records: n}, 3)
		total := int64(0)
		for _, u := range p.units {
			total += u.reads.count + u.writes.count
		}
		var gaps []int64
		last := dag.Time(-1)
		for rank, op := range tr.Records() {
			now := tr.Ranks[rank].Release.At(op)
			if last >= 0 {
				gaps = append(gaps, int64(now-last))
			} else if now != 0 {
				t.Errorf("%s: begins at %v", p.Name, now)
			}
			last = now
		}
		checkValues(t, p.Name+" gaps", gaps, p.gaps)
		for i, u := range p.units {
			where := fmt.Sprintf("%s unit %d", p.Name, u.number)
			if got := tr.Ranks[i].Peer.At(0); got != u.number {
				t.Fatalf("%s: rank %d is of unit %d", where, i, got)
			}
			checkUnit(t, where, &u, tr.Ranks[i], n, float64(u.reads.count+u.writes.count)/float64(total))
		}
	}
}

// checkUnit compares the records of a unit, of n in all, with its profile.
func checkUnit(t *testing.T, where string, u *unitProfile, r *dag.Rank, n int64, popularity float64) {
	t.Helper()
	records := int64(r.Len())
	checkShare(t, where, records, n, popularity)
	var reads, writes []int64
	jumps := make([]int64, len(u.jumps.bins)) // those that can come from a bin and from no other
	shared := int64(0)
	end, size := u.start, u.high-u.low
	for i := range r.Len() {
		address, bytes := r.Tag.At(i), r.Bytes.At(i)
		if address < u.low || address+bytes > u.high {
			t.Fatalf("%s: %d bytes at %d, expected %d to %d", where, bytes, address, u.low, u.high)
		}
		if r.Subkind.At(i) == dag.Read {
			reads = append(reads, bytes)
		} else {
			writes = append(writes, bytes)
		}
		if i > 0 {
			if k := u.binOf(address-end, size); k >= 0 && address+bytes < u.high {
				jumps[k]++
			} else {
				shared++
			}
		}
		end = address + bytes
	}
	checkShare(t, where+" reads", int64(len(reads)), records, float64(u.reads.count)/float64(u.reads.count+u.writes.count))
	checkValues(t, where+" sizes of reads", reads, u.reads.sizes)
	checkValues(t, where+" sizes of writes", writes, u.writes.sizes)
	total := int64(0)
	for _, b := range u.jumps.bins {
		total += b.weight
	}
	for k, b := range u.jumps.bins {
		expected := float64(records-1) * float64(b.weight) / float64(total)
		// Shared values may belong to any bin.
		if d := 5*math.Sqrt(expected) + 4; float64(jumps[k]) > expected+d || float64(jumps[k]+shared) < expected-d {
			t.Errorf("%s: %d jumps (and %d that can come from several bins) of %d to %d bytes, expected about %.1f", where,
				jumps[k], shared, b.low, b.high, expected)
		}
	}
}

// binOf returns the bin from which a distance in a circle of the given size comes, -1 where it can come from several.
func (u *unitProfile) binOf(distance, size int64) int {
	found := -1
	for k, b := range u.jumps.bins {
		for _, d := range [...]int64{distance - size, distance, distance + size} {
			if b.low <= d && d <= b.high {
				if found >= 0 {
					return -1
				}
				found = k
			}
		}
	}
	return found
}

// TestLike measures a small trace.
func TestLike(t *testing.T) {
	b := dag.NewBuilder(2)
	b.Meta().Title = "it"
	add := func(rank int, unit int32, subkind dag.Subkind, address, bytes int64, time dag.Time) {
		b.Rank(rank).Add(dag.Op{Kind: dag.IO, Subkind: subkind, Peer: unit, Tag: address, Bytes: bytes, Release: time})
	}
	add(0, 4, dag.Write, 1000, 500, 70)
	add(0, 4, dag.Write, 1500, 500, 80)
	add(0, 4, dag.Read, 1000, 200, 80)
	add(1, 9, dag.Read, 0, 10, 110)
	add(0, 4, dag.Write, 1700, 100, 120)
	got, err := Like(b.Trace())
	if err != nil {
		t.Fatal(err)
	}
	want := &Profile{
		Name: "like it",
		gaps: distribution{10, []bin{{0, 0, 1}, {10, 10, 2}, {30, 30, 1}}},
		units: []unitProfile{
			{
				number: 4, start: 1000, low: 1000, high: 2000,
				reads:  accesses{1, distribution{1, []bin{{200, 200, 1}}}},
				writes: accesses{3, distribution{400, []bin{{100, 100, 1}, {500, 500, 2}}}},
				jumps:  distribution{500, []bin{{-1000, -1000, 1}, {0, 0, 1}, {500, 500, 1}}},
			},
			{number: 9, high: 10, reads: accesses{1, distribution{1, []bin{{10, 10, 1}}}}},
		},
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("%+v, expected %+v", got, want)
	}
	tr := mustGenerate(t, Params{Profile: got, Records: 1000}, 1)
	if len(tr.Ranks) != 2 || tr.Ops() != 1000 {
		t.Errorf("%d ranks, %d ops", len(tr.Ranks), tr.Ops())
	}
}

// TestLikeItself measures a generated trace, and generates a similar one.
func TestLikeItself(t *testing.T) {
	first := mustGenerate(t, Params{Profile: Builtin("financial"), Records: 50_000}, 1)
	p, err := Like(first)
	if err != nil {
		t.Fatal(err)
	}
	again := mustGenerate(t, Params{Profile: p, Records: 50_000}, 2)
	for i := range again.Ranks {
		where := fmt.Sprintf("unit %d", p.units[i].number)
		checkUnit(t, where, &p.units[i], again.Ranks[i], 50_000, float64(first.Ranks[i].Len())/50_000)
	}
}

// TestPrefix checks that a trace of fewer records is the beginning of one of more.
func TestPrefix(t *testing.T) {
	few, many := mustGenerate(t, Params{Profile: Builtin("websearch"), Records: 500}, 1), mustGenerate(t, Params{Profile: Builtin("websearch"), Records: 5000}, 1)
	for rank := range few.Ranks {
		f, m := few.Ranks[rank], many.Ranks[rank]
		for i := range f.Len() {
			if f.Op(i) != m.Op(i) {
				t.Fatalf("rank %d, op %d is %+v, expected %+v", rank, i, f.Op(i), m.Op(i))
			}
		}
	}
}

// TestDeterministic checks that a trace hangs on the parameters and the seed alone.
func TestDeterministic(t *testing.T) {
	a, b := mustGenerate(t, Default(), 1), mustGenerate(t, Default(), 1)
	if !reflect.DeepEqual(a, b) {
		t.Error("not the same twice")
	}
	if reflect.DeepEqual(a, mustGenerate(t, Default(), 2)) {
		t.Error("the same with another seed")
	}
}

func TestMeasure(t *testing.T) {
	for _, c := range []struct {
		values []int64
		bins   int
		want   distribution
	}{
		{nil, 5, distribution{}},
		{[]int64{7}, 5, distribution{1, []bin{{7, 7, 1}}}},
		{[]int64{5, 1, 3, 1}, 9, distribution{2, []bin{{1, 1, 2}, {3, 3, 1}, {5, 5, 1}}}},
		{[]int64{1, 1, 1, 1, 1, 1, 1, 1, 100, 101}, 3, distribution{1, []bin{{1, 1, 8}, {100, 100, 1}, {101, 101, 1}}}},
		{[]int64{0, 10, 20, 30, 40, 40, 40, 40, 50, 60}, 3,
			distribution{10, []bin{{0, 0, 1}, {10, 10, 1}, {20, 30, 2}, {40, 40, 4}, {50, 60, 2}}}},
		{[]int64{-60, -50, -30, -20, -10}, 1, distribution{10, []bin{{-60, -50, 2}, {-30, -20, 2}, {-10, -10, 1}}}},
		{[]int64{math.MinInt64 + 1, math.MaxInt64}, 1,
			distribution{1, []bin{{math.MinInt64 + 1, math.MinInt64 + 1, 1}, {math.MaxInt64, math.MaxInt64, 1}}}},
	} {
		if got := measure(append([]int64(nil), c.values...), c.bins); !reflect.DeepEqual(got, c.want) {
			t.Errorf("%v: %v, expected %v", c.values, got, c.want)
		}
	}
}

// TestHostile checks profiles of traces with the largest and smallest values, and errors.
func TestHostile(t *testing.T) {
	one := func(ops ...dag.Op) *dag.Trace {
		b := dag.NewBuilder(1)
		for _, op := range ops {
			op.Kind = dag.IO
			b.Rank(0).Add(op)
		}
		return b.Trace()
	}
	const most = math.MaxInt64
	for _, ops := range [][]dag.Op{
		{{Subkind: dag.Read}},
		{{Subkind: dag.Read, Bytes: most}, {Subkind: dag.Write, Tag: most}},
		{{Subkind: dag.Read, Tag: most - 1, Bytes: 1}, {Subkind: dag.Read, Bytes: 1}, {Subkind: dag.Read, Tag: most}},
	} {
		p, err := Like(one(ops...))
		if err != nil {
			t.Error(err)
			continue
		}
		mustGenerate(t, Params{Profile: p, Records: 500}, 1)
	}
	for _, op := range []dag.Op{{Bytes: -1}, {Tag: -1}, {Peer: -1}, {Release: -1}, {Tag: most, Bytes: 1}} {
		if _, err := Like(one(op)); err == nil {
			t.Errorf("no error for %+v", op)
		}
	}
	if _, err := Like(one()); err == nil {
		t.Error("no error for no accesses")
	}
	for _, n := range []int64{-1, 0, MaxRecords + 1} {
		if _, err := Generate(Params{Profile: Builtin("financial"), Records: n}, 1); err == nil {
			t.Errorf("no error for %d records", n)
		}
	}
	slow, err := Like(one(dag.Op{}, dag.Op{Release: dag.MaxTime / 2}))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Generate(Params{Profile: slow, Records: 4}, 1); err == nil || !strings.Contains(err.Error(), "more than 9223372") {
		t.Error(err)
	}
}

// TestBatches checks that traces do not depend on the division into batches, whatever the order of reading.
func TestBatches(t *testing.T) {
	for _, name := range Names() {
		for _, records := range []int64{1, 7, 3000} {
			p := Params{Profile: Builtin(name), Records: records}
			want := mustGenerate(t, p, 4)
			for _, limit := range []int64{1, 100, 1000} {
				s, err := newSource(p, 4, limit)
				if err != nil {
					t.Fatal(err)
				}
				h, err := s.Header()
				if err != nil || h.Ranks != len(want.Ranks) || h.Ops != want.Ops() {
					t.Fatalf("%d ranks, %d ops, expected %d and %d, error %v", h.Ranks, h.Ops, len(want.Ranks), want.Ops(), err)
				}
				read := s.NewReader(dag.All)
				for _, b := range slices.Backward(h.Batches) {
					ranks, err := read(b)
					if err != nil || !reflect.DeepEqual(ranks, want.Ranks[b.First:b.Last]) {
						t.Fatalf("%s, %d records: batch %+v differs, error %v", name, records, b, err)
					}
					if b.Ops > limit && b.Last-b.First > 1 {
						t.Errorf("batch %+v, expected at most %d ops", b, limit)
					}
				}
				if _, err := read(dag.Batch{First: 0, Last: h.Ranks + 1}); err == nil {
					t.Error("no error for a batch that is not in the header")
				}
			}
		}
	}
}

// TestBatchMemory checks that a batch is in use, not the trace.
func TestBatchMemory(t *testing.T) {
	const records, limit = 1_000_000, 200_000
	inUse := func() int64 {
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return int64(m.HeapAlloc)
	}
	before := inUse()
	s, err := newSource(Params{Profile: Builtin("financial"), Records: records}, 1, limit)
	if err != nil {
		t.Fatal(err)
	}
	h, err := s.Header()
	if err != nil || len(h.Batches) < 4 {
		t.Fatalf("batches %+v, error %v", h.Batches, err)
	}
	read := s.NewReader(dag.All)
	for _, b := range h.Batches {
		ranks, err := read(b)
		if err != nil {
			t.Fatal(err)
		}
		if used := inUse() - before; used > 36*b.Ops+4<<20 {
			t.Errorf("batch %+v: %d bytes in use", b, used)
		}
		runtime.KeepAlive(ranks)
	}
}

func TestBuiltinNames(t *testing.T) {
	for _, name := range Names() {
		if p := Builtin(name); p == nil || p.Name != name {
			t.Errorf("%s: %v", name, p)
		}
	}
	if Builtin("x") != nil {
		t.Error("there is x")
	}
}

// BenchmarkGenerate generates a million records.
func BenchmarkGenerate(b *testing.B) {
	const records = 1_000_000
	for _, name := range Names() {
		p := Builtin(name)
		b.Run(p.Name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := Generate(Params{Profile: p, Records: records}, 1); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(records*float64(b.N)/b.Elapsed().Seconds(), "ops/s")
		})
	}
}

// BenchmarkLike measures a trace of a million records.
func BenchmarkLike(b *testing.B) {
	const records = 1_000_000
	tr := mustGenerate(b, Params{Profile: Builtin("financial"), Records: records}, 1)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := Like(tr); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(records*float64(b.N)/b.Elapsed().Seconds(), "ops/s")
}
