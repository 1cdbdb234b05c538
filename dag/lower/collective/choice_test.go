package collective

import (
	"math"
	"strings"
	"testing"

	"github.com/tracedag/tracedag/dag"
	"github.com/tracedag/tracedag/internal/units"
)

// TestTablesAreComplete checks that the rules of every table cover every collective at all sizes.
func TestTablesAreComplete(t *testing.T) {
	for _, table := range tables {
		for _, kind := range allCollectives {
			rules := table.choice().rules[kind]
			if len(rules) == 0 {
				t.Fatalf("%s: nothing for %v", table.name, kind)
			}
			last := rules[len(rules)-1]
			last.selection = selection{}
			if last != unconditional {
				t.Errorf("%s: the last rule for %v has conditions", table.name, kind)
			}
		}
	}
}

// TestTables checks the tables at sizes on both sides of their thresholds.
func TestTables(t *testing.T) {
	tests := []struct {
		table   string
		kind    dag.Subkind
		size    int64
		members int
		want    string
	}{
		{"default", dag.Allreduce, 1<<20 + 1, 4, "ring"},
		{"mpich", dag.Bcast, 1 << 30, 7, "binomial"},
		{"mpich", dag.Bcast, 12288, 8, "binomial"},
		{"mpich", dag.Bcast, 12289, 8, "scatterrecdoubling"},
		{"mpich", dag.Bcast, 12289, 9, "scatterallgather"},
		{"mpich", dag.Bcast, 524289, 8, "scatterallgather"},
		{"mpich", dag.Reduce, 2048, 8, "binomial"},
		{"mpich", dag.Reduce, 2049, 8, "rabenseifner"},
		{"mpich", dag.Reduce, 2049, 1024, "binomial"}, // fewer elements than ranks
		{"mpich", dag.Allreduce, 8, 4, "recdoubling"},
		{"mpich", dag.Allreduce, 1024, 4, "rabenseifner"},
		{"mpich", dag.Allgather, 524287, 16, "recdoubling"},
		{"mpich", dag.Allgather, 524288, 16, "ring"},
		{"mpich", dag.Allgather, 81919, 15, "bruck"},
		{"mpich", dag.Allgather, 81920, 15, "ring"},
		{"mpich", dag.Alltoall, 8 * 256, 8, "bruck"},
		{"mpich", dag.Alltoall, 8 * 257, 8, "linear"},
		{"mpich", dag.Alltoall, 7 * 256, 7, "linear"},
		{"mpich", dag.Alltoall, 8 * 32769, 8, "pairwise"},
		{"mpich", dag.ReduceScatter, 524287, 5, "rechalving"},
		{"smpi-ompi", dag.ReduceScatter, 64 << 10, 3, "butterfly"},
		{"smpi-ompi", dag.ReduceScatter, 2047, 63, "rechalvingbuffered"},
		{"smpi-ompi", dag.ReduceScatter, 2048, 63, "butterfly"},
		{"smpi-ompi", dag.ReduceScatter, 512 << 10, 63, "ringbuffered"},
		{"smpi-ompi", dag.ReduceScatter, 255, 64, "linear"},
		{"smpi-ompi", dag.ReduceScatter, 511, 64, "rechalvingbuffered"},
		{"smpi-ompi", dag.ReduceScatter, 512, 64, "butterfly"},
		{"smpi-ompi", dag.ReduceScatter, 2048, 64, "rechalvingbuffered"},
		{"smpi-ompi", dag.ReduceScatter, 4096, 64, "butterfly"},
		{"smpi-ompi", dag.ReduceScatter, 1023, 256, "rechalvingbuffered"},
		{"smpi-ompi", dag.ReduceScatter, 1024, 256, "butterfly"},
		{"smpi-ompi", dag.ReduceScatter, 8192, 512, "rechalvingbuffered"},
		{"smpi-ompi", dag.ReduceScatter, 16384, 1024, "rechalvingbuffered"},
		{"smpi-ompi", dag.ReduceScatter, 4096, 2048, "butterfly"},
		{"smpi-ompi", dag.ReduceScatter, 8191, 4096, "rechalvingbuffered"},
		{"smpi-ompi", dag.Allgather, 63 * 2048, 63, "shift"},
		{"smpi-ompi", dag.Allgather, 62 * 2048, 62, "neighborexchange"},
		{"smpi-mvapich2", dag.Bcast, 64 << 10, 8, "binomial"},
		{"smpi-mvapich2", dag.Bcast, 64 << 10, 9, "scatterallgatherup"},
		{"smpi-mvapich2", dag.Bcast, 64 << 10, 10, "scatterrecdoublingspread"},
		{"smpi-mvapich2", dag.Bcast, 256<<10 + 1, 9, "scatterrecdoublingspread"},
		{"smpi-mvapich2", dag.Bcast, 512 << 10, 32, "scatterallgatherup"},
		{"smpi-impi", dag.Barrier, 0, 3, "fan"},
		{"smpi-impi", dag.Barrier, 0, 64, "recdoublinghigh"},
		{"smpi-impi", dag.Bcast, 681, 2, "relaychain"},
		{"smpi-impi", dag.Bcast, 682, 2, "relaybinomial"},
		{"smpi-impi", dag.Bcast, 24, 8, "relaychain"},
		{"smpi-impi", dag.Bcast, 24, 9, "binomial"},
		{"smpi-impi", dag.Allreduce, 15504, 16, "recdoubling"},
		{"smpi-impi", dag.Allreduce, 15505, 16, "halvingthenallgather"},
		{"smpi-impi", dag.Allreduce, 93783, 17, "recdoubling"},
		{"smpi-impi", dag.Allreduce, 817658, 17, "reducethenbcast"},
		{"smpi-impi", dag.Allgather, 16 * 6076, 16, "chosengatherthenbcast"},
		{"smpi-impi", dag.Allgather, 16 * 6077, 16, "recdoublingspread"},
		{"smpi-impi", dag.Alltoall, 32 * 60, 32, "bruck"},
		{"smpi-impi", dag.Alltoall, 32 * 61, 32, "scattered"},
		{"smpi-impi", dag.ReduceScatter, 46083, 16, "recdoubling"},
		{"smpi-impi", dag.ReduceScatter, 46084, 16, "pairwise"},
		{"smpi-impi", dag.Gather, 33 * 349696, 33, "sequential"},
		{"smpi-mvapich2", dag.Reduce, 256 << 10, 16, "knomialnonblocking"},
		{"smpi-mvapich2", dag.Reduce, 64 << 10, 17, "binomial"},
		{"smpi-mvapich2", dag.Reduce, 256<<10 + 8, 64, "rabenseifnernear"},
		{"smpi-mvapich2", dag.Reduce, 16 << 20, 600, "binomial"},
		{"smpi-mvapich2", dag.Allreduce, 1024, 16, "recdoubling"},
		{"smpi-mvapich2", dag.Allreduce, 1032, 16, "rabenseifnernear"},
		{"smpi-mvapich2", dag.Allreduce, 16 << 10, 17, "recdoubling"},
		{"smpi-mvapich2", dag.Allgatherv, 27 * 512, 27, "recdoubling"},
		{"smpi-mvapich2", dag.Allgatherv, 27*512 + 1, 27, "ringsegments"},
		{"smpi-mvapich2", dag.Alltoall, 32 * 32, 32, "recdoublingspread"},
		{"smpi-mvapich2", dag.Alltoall, 32 * 2048, 32, "bruck"},
		{"smpi-mvapich2", dag.Alltoall, 32 * 2049, 32, "scattered"},
		{"smpi-mvapich2", dag.ReduceScatter, 64, 16, "linear"},
		{"smpi-mvapich2", dag.ReduceScatter, 64<<10 + 8, 16, "pairwise"},
		{"mpich", dag.ReduceScatter, 524288, 5, "pairwise"},
		{"openmpi", dag.Barrier, 0, 3, "recdoubling"},
		{"openmpi", dag.Barrier, 0, 4, "linear"},
		{"openmpi", dag.Barrier, 0, 5000, "dissemination"},
		{"openmpi", dag.Bcast, 2047, 32, "binomial"},
		{"openmpi", dag.Bcast, 2048, 32, "knomial"},
		{"openmpi", dag.Bcast, 1 << 20, 16, "scatterrecdoubling"},
		{"openmpi", dag.Allreduce, 8191, 8, "recdoubling"},
		{"openmpi", dag.Allreduce, 8192, 8, "rabenseifner"},
		{"openmpi", dag.Allgather, 64 * 511, 64, "recdoubling"},
		{"openmpi", dag.Allgather, 64 * 512, 64, "neighborexchange"},
		{"openmpi", dag.Allgather, 64 * 65536, 64, "ring"},
		{"openmpi", dag.Alltoall, 64 * 1023, 64, "bruck"},
		{"openmpi", dag.Alltoall, 64 * 1024, 64, "linear"},
		{"openmpi", dag.Alltoall, 64 << 18, 64, "pairwise"},
		{"openmpi", dag.Scan, 8, 64, "linear"},
	}
	for _, test := range tests {
		c, err := ParseChoice(test.table)
		if err != nil {
			t.Fatal(err)
		}
		if got := c.find(test.kind, traits{size: test.size, members: test.members}).name; got != test.want {
			t.Errorf("%s gives %s to %v of %d bytes on %d, expected %s", test.table, got, test.kind, test.size,
				test.members, test.want)
		}
	}
}

// TestIdle checks which collectives without data send nothing.
func TestIdle(t *testing.T) {
	for _, test := range []struct {
		choice string
		kind   dag.Subkind
		size   int64
		want   string
	}{
		{"smpi-mpich", dag.Allreduce, 0, "idle"},
		{"smpi-mpich", dag.Allgatherv, 0, "idle"},
		{"smpi-mpich", dag.Allreduce, 1, "recdoubling"},
		{"smpi-mpich", dag.Bcast, 0, "relaybinomial"},
		{"smpi-mpich;bcast=linear", dag.Allreduce, 0, "idle"},
		{"smpi-mpich;allreduce=ring", dag.Allreduce, 0, "ring"},
		{"smpi-mpich;allreduce=ring:>8", dag.Allreduce, 0, "idle"},
		{"smpi-ompi", dag.Allreduce, 0, "reducethenbcast"},
		{"mpich", dag.Allreduce, 0, "recdoubling"},
	} {
		c, err := ParseChoice(test.choice)
		if err != nil {
			t.Fatal(err)
		}
		if got := c.find(test.kind, traits{size: test.size, members: 16}).name; got != test.want {
			t.Errorf("%s: %v of %d bytes is %s, expected %s", test.choice, test.kind, test.size, got, test.want)
		}
		if got := c.Selected(test.kind, test.size, 16); got == "idle" {
			t.Errorf("%s: %v of %d bytes is %s, which is no name", test.choice, test.kind, test.size, got)
		}
	}
}

func TestParseChoice(t *testing.T) {
	const mib = 1 << 20
	tests := []struct {
		text string
		kind dag.Subkind
		size int64
		want string
	}{
		{"", dag.Allreduce, mib, "recdoubling"},
		{"", dag.Allreduce, mib + 1, "ring"},
		{"allreduce=ring", dag.Allreduce, 0, "ring"},
		{"allreduce=ring:>1KiB,recdoubling", dag.Allreduce, 1024, "recdoubling"},
		{"allreduce=ring:>1KiB,recdoubling", dag.Allreduce, 1025, "ring"},
		{"allreduce=ring:>=1kB,recdoubling", dag.Allreduce, 1000, "ring"},
		{"allreduce=recdoubling:<=8B,ring", dag.Allreduce, 8, "recdoubling"},
		{"allreduce=recdoubling:<8,ring", dag.Allreduce, 8, "ring"},
		{"allreduce=recdoubling:<=8,ring", dag.Allreduce, 9, "ring"},
		{"allreduce=ring:<10", dag.Allreduce, 11, "recdoubling"}, // falls back to the defaults
		{"allreduce=ring:<10", dag.Allreduce, 2 * mib, "ring"},
		{" allreduce = ring : >= 1 MB ; gather = linear ", dag.Allreduce, 1e6, "ring"},
		{" allreduce = ring : >= 1 MB ; gather = linear ", dag.Gather, 0, "linear"},
		{"allreduce=ring,gather=linear", dag.Gather, 0, "linear"},
		{"allreduce=ring,gather=linear", dag.Allreduce, 0, "ring"},
		{"collectives=ring", dag.Allreduce, 0, "ring"},
		{"collectives=ring", dag.Gather, 0, "binomial"},
		{"collectives=ring,linear", dag.Gather, 0, "linear"},
		{"gather=binomial;collectives=linear", dag.Gather, 0, "binomial"},
		{"gather=binomial;collectives=linear", dag.Scatter, 0, "linear"},
		{"allreduce=ring:>=9223372036854775807,recdoubling", dag.Allreduce, math.MaxInt64, "ring"},
		{"allreduce=ring:>1KiB&<=2KiB,rabenseifner", dag.Allreduce, 2048, "ring"},
		{"allreduce=ring:>1KiB&<=2KiB,rabenseifner", dag.Allreduce, 2049, "rabenseifner"},
		{"allreduce=ring:size>1KiB,rabenseifner", dag.Allreduce, 1024, "rabenseifner"},
		{"allreduce=ring:ranks>=16,rabenseifner", dag.Allreduce, 1, "ring"},
		{"allreduce=ring : ranks > 16 , rabenseifner", dag.Allreduce, 1, "rabenseifner"},
		{"allreduce=ring:>1MiB&ranks<=16,rabenseifner", dag.Allreduce, 2 * mib, "ring"},
		{"allreduce=ring:>1MiB&ranks<=16,rabenseifner", dag.Allreduce, mib, "rabenseifner"},
		{"allreduce=ring:pof2,rabenseifner", dag.Allreduce, 1, "ring"},
		{"allreduce=ring:!pof2,rabenseifner", dag.Allreduce, 1, "rabenseifner"},
		{"alltoall=bruck:block<=8,linear", dag.Alltoall, 16*8 + 15, "bruck"},
		{"alltoall=bruck:block<=8,linear", dag.Alltoall, 16 * 9, "linear"},
		{"alltoall=bruck:blockup<=8,linear", dag.Alltoall, 16 * 8, "bruck"},
		{"alltoall=bruck:blockup<=8,linear", dag.Alltoall, 16*8 + 1, "linear"},
		{"alltoall=bruck:blockup<1,linear", dag.Alltoall, 0, "bruck"},
		{"alltoall=bruck:evenranks,linear", dag.Alltoall, 1, "bruck"},
		{"alltoall=bruck:!evenranks,linear", dag.Alltoall, 1, "linear"},
		{"allgatherv=bruck:elements<=81920,ring", dag.Allgatherv, 8*81920 + 7, "bruck"}, // of unknown size: 8 bytes
		{"allgatherv=bruck:elements<=81920,ring", dag.Allgatherv, 8 * 81921, "ring"},
		{"scatterv=linear:!even,sequential", dag.Scatterv, 1, "sequential"},
		{"mpich", dag.Allreduce, mib, "rabenseifner"},
		{"mpich;allreduce=ring", dag.Allreduce, mib, "ring"},
		{"mpich, allreduce=ring:<8", dag.Allreduce, mib, "rabenseifner"},
		{"mpich;collectives=linear", dag.Scan, 1, "linear"},
		{"mpich;collectives=linear", dag.Allreduce, mib, "rabenseifner"},
		{"openmpi", dag.Scan, 1, "linear"},
		{"default;bcast=chain", dag.Allreduce, mib, "recdoubling"},
	}
	for _, test := range tests {
		c, err := ParseChoice(test.text)
		if err != nil {
			t.Errorf("%q: %v", test.text, err)
			continue
		}
		if got := c.find(test.kind, traits{size: test.size, members: 16}).name; got != test.want {
			t.Errorf("%q gives %s to %v of %d bytes, expected %s", test.text, got, test.kind, test.size, test.want)
		}
	}
}

func TestParameters(t *testing.T) {
	tests := []struct {
		text    string
		k       int
		segment int64
	}{
		{"kary", 4, 0},
		{"chain", 1, 0},
		{"kary(k=3)", 3, 0},
		{"kary(segment=64KiB)", 4, 65536},
		{"kary( k = 3 , segment = 64 KiB )", 3, 65536},
		{"chain(segment=1,chains=2)", 2, 1},
		{"chain(segment=1.5MB)", 1, 1_500_000},
		{"chain()", 1, 0},
	}
	for _, test := range tests {
		for _, rest := range []string{"", ",linear", ":>=0&ranks>1;reduce=linear"} {
			c, err := ParseChoice("bcast=" + test.text + rest)
			if err != nil {
				t.Errorf("%q: %v", test.text, err)
				continue
			}
			if u := c.find(dag.Bcast, traits{size: 8, members: 2}); u.k != test.k || u.segment != test.segment {
				t.Errorf("%q: %d and segments of %d bytes, expected %d and %d", test.text, u.k, u.segment, test.k,
					test.segment)
			}
		}
	}
}

func TestParseChoiceErrors(t *testing.T) {
	tests := []struct{ text, want string }{
		{"ring", "expected COLLECTIVE=ALGORITHM, or first one of the tables default, mpich, openmpi, smpi-default, " +
			`smpi-mpich, smpi-ompi, smpi-mvapich2, smpi-impi, found "ring"`},
		{"alreduce=ring", `expected a collective such as allreduce, or collectives or reduction, found "alreduce"; ` +
			`did you mean "allreduce"?`},
		{"load=ring", `found "load"`},
		{"=ring", `found ""`},
		{"allreduce=rung", `no algorithm "rung" for allreduce, expected recdoubling or ring or ringremainder or `},
		{"allreduce=rabenseifer", `or hierarchical; did you mean "rabenseifner"?`},
		{"allreduce=", `no algorithm "" for allreduce`},
		{"collectives=rung", `no collective has an algorithm "rung"; did you mean "ring"?`},
		{"allreduce=ring;allreduce=ring", "allreduce is listed twice"},
		{"collectives=ring;collectives=binomial", "collectives is listed twice"},
		{"allreduce=ring:1MiB", `expected a bound such as >1MiB, found "1MiB"`},
		{"allreduce=ring:=1MiB", `expected a bound such as >1MiB`},
		{"allreduce=ring:", `expected a bound such as >1MiB, found ""`},
		{"allreduce=ring:>", `expected a bound such as >1MiB, found ">"`},
		{"allreduce=ring:>-1", "expected a whole number of bytes"},
		{"allreduce=ring:>1.5", `expected a whole number of bytes`},
		{"allreduce=ring:>1Mib", `expected a unit such as kB or MiB, found "Mib"`},
		{"allreduce=ring:>9223372036854775807", "no larger number exists"},
		{"allreduce=ring:>9223372036854775808", "expected a whole number of bytes up to 9223372036854775807"},
		{"bcast=linear;mpich", "expected the table mpich before everything else"},
		{"mpich;mpich", "expected the table mpich before everything else"},
		{"allreduce=ring:>1MiB,ranks>8", `no algorithm "ranks>8" for allreduce`},
		{"allreduce=ring:ranks", `expected a bound such as ranks>=8, found ""`},
		{"allreduce=ring:ranks>1KiB", `expected a bound such as ranks>=8, found ">1KiB": expected a whole number`},
		{"allreduce=ring:ranks>-1", `expected a whole number up to 2147483647`},
		{"allreduce=ring:block=3", `expected a bound such as block>1KiB, found "=3"`},
		{"allreduce=ring:>1&", `expected a bound such as >1MiB, found ""`},
		{"allreduce=ring:pof3", `expected a bound such as >1MiB, found "pof3"`},
		{"bcast=kary(k=0)", `"kary(k=0)": k is "0", expected a whole number of 1 or more`},
		{"bcast=knomial(k=1)", `k is "1", expected a whole number of 2 or more`},
		{"bcast=kary(k=two)", `k is "two", expected a whole number of 1 or more`},
		{"bcast=kary(k=4294967298)", `expected a whole number of 1 or more`},
		{"bcast=kary(k=2,k=3)", `k is listed twice`},
		{"bcast=kary(chains=2)", `no parameter "chains", expected k or segment`},
		{"bcast=chain(segment=x)", `segment "x": expected a whole number of bytes`},
		{"bcast=chain(segment)", `expected an algorithm such as chain(segment=64KiB), found "chain(segment)"`},
		{"bcast=chain(segment=4", `expected an algorithm such as chain(segment=64KiB), found "chain(segment=4"`},
		{"bcast=chain(segment=4)x", `expected an algorithm such as chain(segment=64KiB)`},
		{"bcast=linear(segment=4)", `bcast by linear has no parameters, found "segment"`},
		{"allreduce=ring:>8388608TiB", "expected at most 9223372036854775807 bytes"},
	}
	for _, test := range tests {
		_, err := ParseChoice(test.text)
		if err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%q: error %v, expected %s", test.text, err, test.want)
		}
	}
}

// TestReductionOfChoice checks the time of reductions in a choice.
func TestReductionOfChoice(t *testing.T) {
	for text, want := range map[string]units.Rate{
		"":                                      {},
		"reduction=0":                           {Num: 0, Den: 1},
		"reduction=0.25":                        {Num: 250, Den: 1},
		"mpich;allreduce=ring;reduction=40ps/B": {Num: 40, Den: 1},
		" reduction = 3GB/s ; collectives=linear": {Num: 1000, Den: 3},
	} {
		c, err := ParseChoice(text)
		if err != nil || c.reduction != want {
			t.Errorf("%q: %v, %v, expected %v", text, c.reduction, err, want)
		}
	}
	for text, want := range map[string]string{
		"reduction=":                        "reduction: expected a time per byte such as 0.25ns/B",
		"reduction=-1ns/B":                  "reduction: expected a time per byte such as 0.25ns/B",
		"reduction=4GB":                     "reduction: expected a time per byte such as 0.25ns/B",
		"reduction=1ns/B:>1MiB":             "reduction: expected a time per byte such as 0.25ns/B",
		"reduction=1ns/B,reduction=2":       "reduction is listed twice",
		"allreduce=ring,reduction=1,linear": `expected COLLECTIVE=ALGORITHM`,
		"reducion=1ns/B":                    `did you mean "reduction"?`,
	} {
		if _, err := ParseChoice(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: error %v, expected %s", text, err, want)
		}
	}
}

// TestReductionTime checks that times of reductions are exact, rounded up, and in range.
func TestReductionTime(t *testing.T) {
	tests := []struct {
		rate  units.Rate
		bytes int64
		want  dag.Time
		ok    bool
	}{
		{units.Rate{}, 1 << 40, 0, true},
		{units.Rate{Num: 40, Den: 1}, 1000, 40000, true},
		{units.Rate{Num: 1000, Den: 3}, 3, 1000, true},
		{units.Rate{Num: 1000, Den: 3}, 4, 1334, true},
		{units.Rate{Num: 1, Den: 1}, math.MaxInt64, math.MaxInt64, true},
		{units.Rate{Num: 3, Den: 2}, math.MaxInt64, 0, false},
		{units.Rate{Num: math.MaxInt64, Den: 1}, math.MaxInt64, 0, false},
		{units.Rate{Num: math.MaxInt64, Den: math.MaxInt64 - 1}, math.MaxInt64 - 1, math.MaxInt64, true},
	}
	for _, test := range tests {
		c := Choice{reduction: test.rate}
		got, ok := c.reductionTime(test.bytes)
		if ok != test.ok || ok && got != test.want {
			t.Errorf("%d bytes at %v: %d, %t, expected %d, %t", test.bytes, test.rate, got, ok, test.want, test.ok)
		}
	}
}

// TestParams checks that ParseChoice accepts the names in the table of the collectives.
func TestParams(t *testing.T) {
	var c Choice
	set, algorithms := c.Params(), 0
	if last := len(set) - 1; set[last].Name != reductionKey {
		t.Errorf("the last key is %s, expected %s", set[last].Name, reductionKey)
	} else if err := set[last].Value.Set("2ns/B"); err != nil || c.reduction.Num != 2000 {
		t.Errorf("%s=2ns/B: %v, %v", reductionKey, c.reduction, err)
	} else {
		set = set[:last]
	}
	if len(set) != len(allCollectives) {
		t.Errorf("%d collectives, expected %d", len(set), len(allCollectives))
	}
	for _, p := range set {
		kind, ok := dag.ParseSubkind(p.Name)
		if !ok || p.Initial == "" {
			t.Errorf("%s: default %q", p.Name, p.Initial)
		}
		if err := p.Value.Set(p.Initial); err != nil || len(c.rules[kind]) == 0 {
			t.Errorf("%s=%s: %v", p.Name, p.Initial, err)
		}
		for _, signature := range p.Choices {
			algorithms++
			rule := strings.ReplaceAll(signature, "SIZE", "64KiB")
			if err := p.Value.Set(rule); err != nil || len(c.rules[kind]) != 1 {
				t.Errorf("%s=%s: %v", p.Name, rule, err)
			}
		}
	}
	completions := Completions()
	if len(completions) != algorithms+len(tables)+1 {
		t.Errorf("%d completions for %d algorithms", len(completions), algorithms)
	}
	for _, text := range completions {
		if text == reductionKey+"=" {
			text += "0"
		}
		if _, err := ParseChoice(text); err != nil {
			t.Error(err)
		}
	}
}

func FuzzParseChoice(f *testing.F) {
	f.Add(defaults)
	f.Add("collectives=ring,linear;gather=binomial:>=1MiB")
	f.Add("openmpi;bcast=kary(k=3,segment=64KiB):>1MiB&ranks>=8&!pof2,chain(chains=2)")
	f.Add("mpich;reduction=0.25ns/B;reduce=linear")
	f.Fuzz(func(t *testing.T, text string) {
		c, err := ParseChoice(text)
		if err != nil {
			return
		}
		for _, kind := range allCollectives {
			if a := c.find(kind, traits{size: int64(len(text)), members: len(text) + 1}); a == nil || a.kind != kind {
				t.Errorf("%q gives %v an algorithm of another collective", text, kind)
			}
		}
	})
}
