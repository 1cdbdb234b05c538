package measure

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

func parseBins(t *testing.T, text string) *Bins {
	t.Helper()
	var b Bins
	if err := b.Set(text); err != nil {
		t.Fatal(err)
	}
	if again := b.String(); b.Set(again) != nil || b.String() != again {
		t.Errorf("%s: %s is not read back", text, again)
	}
	return &b
}

// TestBins compares bins with ones worked out by hand.
func TestBins(t *testing.T) {
	const open = math.MaxUint64
	sizes := []uint64{10_000, 1, 10_001, 0, 5_000_000, 100_000, 99}
	for _, test := range []struct {
		bins string
		want []Bin
	}{
		{"decades", []Bin{
			{"0B..1B", 0, 1, []int{3, 1}}, {"10B..100B", 11, 100, []int{6}}, {"1kB..10kB", 1001, 10_000, []int{0}},
			{"10kB..100kB", 10_001, 100_000, []int{2, 5}}, {"1MB..10MB", 1_000_001, 10_000_000, []int{4}},
		}},
		{"10KB,100KB,1MB", []Bin{
			{"0B..10kB", 0, 10_000, []int{3, 1, 6, 0}}, {"10kB..100kB", 10_001, 100_000, []int{2, 5}},
			{"1MB..", 1_000_001, open, []int{4}},
		}},
		{"0B", []Bin{{"0B..0B", 0, 0, []int{3}}, {"0B..", 1, open, []int{1, 6, 0, 2, 5, 4}}}},
		{"deciles", []Bin{ // 7 sizes: 0, 0, 1, 2, 2, 3, 4, 4, 5, 6, 7
			{"decile 2", 0, 0, []int{3}}, {"decile 3", 1, 1, []int{1}}, {"decile 5", 99, 99, []int{6}},
			{"decile 6", 10_000, 10_000, []int{0}}, {"decile 8", 10_001, 10_001, []int{2}},
			{"decile 9", 100_000, 100_000, []int{5}}, {"decile 10", 5_000_000, 5_000_000, []int{4}},
		}},
	} {
		got := parseBins(t, test.bins).Divide(slices.Clone(sizes))
		same := slices.EqualFunc(got, test.want, func(a, b Bin) bool {
			return a.Name == b.Name && a.From == b.From && a.To == b.To && slices.Equal(a.Members, b.Members)
		})
		if !same {
			t.Errorf("%s: %+v, expected %+v", test.bins, got, test.want)
		}
	}
	for _, text := range []string{"", "octiles", "10KB,10KB", "1MB,10KB", "-1B", "10KB,", "10ms"} {
		b := Bins{deciles: true}
		if err := b.Set(text); err == nil || !b.deciles {
			t.Errorf("%q: %v, %v", text, err, b)
		}
	}
}

// TestDecilesDivideEqualSizes compares deciles of 25 flows, most of one size, with those of HPCC's fct_analysis.py: the
// flows sorted by size, cut at i n / 10.
func TestDecilesDivideEqualSizes(t *testing.T) {
	sizes := slices.Repeat([]uint64{1000}, 23)
	sizes = append(sizes, 500, 9000)
	at, next := 0, []int{2, 5, 7, 10, 12, 15, 17, 20, 22, 25} // ends of the groups
	order := []int{23}
	for i := range 23 {
		order = append(order, i)
	}
	order = append(order, 24)
	bins := parseBins(t, "deciles").Divide(sizes)
	for k := range bins {
		if want := order[at:next[k]]; !slices.Equal(bins[k].Members, want) {
			t.Errorf("decile %d: %v, expected %v", k+1, bins[k].Members, want)
		}
		at = next[k]
	}
	if len(bins) != 10 || bins[0].From != 500 || bins[0].To != 1000 || bins[9].To != 9000 || bins[9].Open() {
		t.Errorf("%+v", bins)
	}
}

// TestBinsEqualNaiveOnes compares bins of random sizes with a search through all bounds.
func TestBinsEqualNaiveOnes(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for range 300 {
		sizes := make([]uint64, random.IntN(60))
		for i := range sizes {
			sizes[i] = random.Uint64() >> random.IntN(64) >> 1
		}
		var bounds []uint64
		for range 1 + random.IntN(8) {
			bounds = append(bounds, random.Uint64()>>random.IntN(64)>>1)
		}
		slices.Sort(bounds)
		b := &Bins{bounds: slices.Compact(bounds)}
		if random.IntN(2) == 0 {
			b = &Bins{}
		}
		bounds = b.bounds
		if bounds == nil {
			for power := uint64(1); power <= 1e18; power *= 10 {
				bounds = append(bounds, power)
			}
		}
		seen, last := make([]int, len(sizes)), -1
		for _, bin := range b.Divide(sizes) {
			if len(bin.Members) == 0 {
				t.Fatalf("%v of %v: empty bin %+v", b, sizes, bin)
			}
			for _, i := range bin.Members {
				seen[i]++
				place := 0 // of the first bound that is at least the size
				for place < len(bounds) && bounds[place] < sizes[i] {
					place++
				}
				from, to := uint64(0), uint64(math.MaxUint64)
				if place > 0 {
					from = bounds[place-1] + 1
				}
				if place < len(bounds) {
					to = bounds[place]
				}
				if bin.From != from || bin.To != to || place < last {
					t.Fatalf("%v: %d B is in %+v, expected %d..%d", b, sizes[i], bin, from, to)
				}
				last = place
			}
		}
		if slices.ContainsFunc(seen, func(n int) bool { return n != 1 }) {
			t.Fatalf("%v of %v: members %v", b, sizes, seen)
		}
	}
}
