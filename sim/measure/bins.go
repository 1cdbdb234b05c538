package measure

import (
	"cmp"
	"errors"
	"math"
	"slices"
	"sort"
	"strconv"
	"strings"

	"github.com/tracedag/tracedag/internal/units"
)

// Bins divides messages, flows or accesses by their size. The zero value divides by decades: up to 1 B, 10 B, 100 B and
// so on. *Bins is a value of package param.
type Bins struct {
	deciles bool
	bounds  []uint64 // largest sizes of the bins but for the last one, ascending; nil: decades
}

// errBins describes the texts of bins.
var errBins = errors.New("expected decades, deciles, or the largest size of each bin in ascending order, such as " +
	"10KB,100KB,1MB")

// Set parses "decades", "deciles" or a list of sizes.
func (b *Bins) Set(text string) error {
	switch text {
	case "decades":
		*b = Bins{}
		return nil
	case "deciles":
		*b = Bins{deciles: true}
		return nil
	}
	var bounds []uint64
	for part := range strings.SplitSeq(text, ",") {
		size, err := units.ParseSize(strings.TrimSpace(part))
		if err != nil || size < 0 || len(bounds) > 0 && uint64(size) <= bounds[len(bounds)-1] {
			return errBins
		}
		bounds = append(bounds, uint64(size))
	}
	*b = Bins{bounds: bounds}
	return nil
}

// String returns the bins in a form that Set parses.
func (b *Bins) String() string {
	switch {
	case b.deciles:
		return "deciles"
	case b.bounds == nil:
		return "decades"
	}
	texts := make([]string, len(b.bounds))
	for i, size := range b.bounds {
		texts[i] = units.FormatSize(int64(size))
	}
	return strings.Join(texts, ",")
}

// Type returns the placeholder in help.
func (b *Bins) Type() string { return "bins" }

// decades are the bounds of bins by decades.
var decades = func() (bounds []uint64) {
	for size := uint64(1); size <= 1e18; size *= 10 {
		bounds = append(bounds, size)
	}
	return bounds
}()

// Bin is the sizes from From to To, both included.
type Bin struct {
	Name     string // such as 10kB..100kB, which excludes 10 kB, or decile 1
	From, To uint64 // To is math.MaxUint64 in a bin without an upper bound; deciles: smallest and largest size
	Members  []int  // indices of the sizes, by size, then ascending
}

// Open reports whether the bin has no upper bound.
func (b *Bin) Open() bool { return b.To == math.MaxUint64 }

// Divide returns the bins that contain at least one of the sizes, in ascending order. Decile k of n sizes in ascending
// order, equal ones by index, has sizes floor((k-1)n/10) to floor(kn/10)-1, counted from 0.
func (b *Bins) Divide(sizes []uint64) (bins []Bin) {
	order := make([]int, len(sizes))
	for i := range order {
		order[i] = i
	}
	slices.SortFunc(order, func(i, k int) int {
		return cmp.Or(cmp.Compare(sizes[i], sizes[k]), cmp.Compare(i, k))
	})
	if b.deciles {
		return deciles(sizes, order)
	}
	bounds := b.bounds
	if bounds == nil {
		bounds = decades
	}
	for len(order) > 0 {
		k, _ := slices.BinarySearch(bounds, sizes[order[0]])
		bin := Bin{To: math.MaxUint64}
		from, to := "0B", ""
		if k > 0 {
			bin.From, from = bounds[k-1]+1, units.FormatSize(int64(bounds[k-1]))
		}
		if k < len(bounds) {
			bin.To, to = bounds[k], units.FormatSize(int64(bounds[k]))
		}
		n := sort.Search(len(order), func(i int) bool { return sizes[order[i]] > bin.To })
		bin.Name, bin.Members = from+".."+to, order[:n:n]
		bins, order = append(bins, bin), order[n:]
	}
	return bins
}

// deciles returns ten groups with about equal numbers of members; with fewer than ten sizes, those with one.
func deciles(sizes []uint64, order []int) (bins []Bin) {
	const groups = 10
	for k := range groups {
		first, end := k*len(order)/groups, (k+1)*len(order)/groups
		if first == end {
			continue
		}
		bins = append(bins, Bin{
			Name: "decile " + strconv.Itoa(k+1), From: sizes[order[first]], To: sizes[order[end-1]],
			Members: order[first:end:end],
		})
	}
	return bins
}
