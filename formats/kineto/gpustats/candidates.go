// This file computes what HTA summarizes: kernels beyond the greatest ones, and candidates for stragglers.

package gpustats

import (
	"cmp"
	"math"
	"slices"
	"strings"

	"github.com/tracedag/tracedag/dag"
	"github.com/tracedag/tracedag/formats/kineto"
)

// Kernels beyond mostNamed become one, and so do those beyond the quantile namedPart of the running sums.
const (
	mostNamed = 10
	namedPart = 0.8
)

// summaryOf returns the kernels of a rank as HTA summarizes them, by kind and name: with more than ten names of a kind,
// the distributions are those of the sums of names.
func summaryOf(kernels []Kernel) []Kernel {
	list := []Kernel{}
	for from := 0; from < len(kernels); {
		to := from
		for to < len(kernels) && kernels[to].kind == kernels[from].kind {
			to++
		}
		own := slices.Clone(kernels[from:to])
		if len(own) > mostNamed {
			own = joined(own)
		}
		slices.SortStableFunc(own, func(a, b Kernel) int { return cmp.Compare(a.Name, b.Name) })
		list = append(list, own...)
		from = to
	}
	return list
}

// joined returns the kernels of a kind, which are those with the greatest sums first, with one for the last ones.
func joined(kernels []Kernel) []Kernel {
	running := make([]dag.Time, len(kernels))
	sum := dag.Time(0)
	for i := range kernels {
		sum += kernels[i].Sum
		running[i] = sum
	}
	limit := quantile(slices.Sorted(slices.Values(running)), namedPart)
	other := Kernel{Kind: kernels[0].Kind, Name: "others", kind: kernels[0].kind}
	var list []Kernel
	for i, k := range kernels {
		if i < mostNamed && float64(running[i]) <= limit {
			one := Kernel{Kind: k.Kind, Name: k.Name, kind: k.kind, times: []dag.Time{k.Sum}}
			one.measure()
			list = append(list, one)
		} else {
			other.times = append(other.times, k.Sum)
		}
	}
	if len(other.times) > 0 {
		other.measure()
		list = append(list, other)
	}
	return list
}

// Candidates for stragglers are long kernels: of at least leastShare of the mean time of a step.
const leastShare = 0.01

// mostCandidates is the largest number of candidates.
const mostCandidates = 16

// late is the last long kernel of communication of a name on a stream of a rank in a step.
type late struct {
	rank, step int32
	at         int // number of the profile
	start      dag.Time
	took       dag.Time
}

// candidates returns the ranks that HTA takes for stragglers if it looks for 1, 2, ... ones, each list ascending.
// several reports whether the last step does not count.
func candidates(profiles []*kineto.Profile, several bool) [][]int32 {
	type key struct {
		stream int64
		name   string
	}
	first, last := dag.MaxTime, -dag.MaxTime
	steps := make(map[int32]bool)
	all := make(map[key]map[[2]int32]*late) // by rank and step
	var long []struct {
		key
		late
	}
	for at, p := range profiles {
		f := p.Reference
		for _, s := range f.StepRanges {
			if several && s.Start >= f.LastStep {
				continue
			}
			steps[s.Number] = true
			first, last = min(first, f.Shift+s.Start), max(last, f.Shift+s.End)
		}
		host := make(map[int64]int) // last row of the host by correlation
		for i := range f.Rows {
			if r := &f.Rows[i]; !r.OnDevice && r.Correlation >= 0 {
				host[r.Correlation] = i
			}
		}
		for i := range f.Rows {
			r := &f.Rows[i]
			if !r.OnDevice || r.Stream <= 0 {
				continue
			}
			h, ok := host[r.Correlation]
			if !ok || several && f.Rows[h].Start >= f.LastStep {
				continue
			}
			step, ok := f.StepAt(f.Rows[h].Start)
			if !ok {
				continue
			}
			last = max(last, f.Shift+r.End)
			if step > 0 && strings.HasPrefix(r.Name, "ncclKernel") {
				long = append(long, struct {
					key
					late
				}{key{r.Stream, r.Name}, late{p.Rank, step, at, f.Shift + r.Start, r.End - r.Start}})
			}
		}
	}
	if len(steps) == 0 {
		return nil
	}
	mean := float64(last-first) / float64(len(steps))
	for i := range long {
		x := &long[i]
		if float64(x.took) < mean*leastShare {
			continue
		}
		if all[x.key] == nil {
			all[x.key] = make(map[[2]int32]*late)
		}
		all[x.key][[2]int32{x.rank, x.step}] = &x.late
	}
	best, most := key{}, math.Inf(-1)
	for k, list := range all {
		if d := spreadOf(list); d > most || d == most && (k.stream < best.stream ||
			k.stream == best.stream && k.name < best.name) {
			best, most = k, d
		}
	}
	if math.IsInf(most, -1) {
		return nil
	}
	return latest(all[best])
}

// spreadOf returns the mean over steps of the standard deviation of durations over ranks, -Inf if no step has two
// ranks.
func spreadOf(list map[[2]int32]*late) float64 {
	byStep := make(map[int32][]dag.Time)
	for _, x := range list {
		byStep[x.step] = append(byStep[x.step], x.took)
	}
	sum, n := 0.0, 0
	for _, times := range byStep {
		if len(times) > 1 {
			slices.Sort(times)
			k := Kernel{times: times}
			k.measure()
			sum += math.Round(k.Std) // whole numbers have the same sum in any order
			n++
		}
	}
	if n == 0 {
		return math.Inf(-1)
	}
	return sum / float64(n)
}

// latest returns the ranks that start last, most often over the steps, for 1, 2, ... ranks per step.
func latest(list map[[2]int32]*late) (all [][]int32) {
	byStep := make(map[int32][]*late)
	ranks := make(map[int32]bool)
	for _, x := range list {
		byStep[x.step] = append(byStep[x.step], x)
		ranks[x.rank] = true
	}
	fewest := mostCandidates
	for _, own := range byStep {
		slices.SortFunc(own, func(a, b *late) int {
			return cmp.Or(cmp.Compare(b.start, a.start), cmp.Compare(a.rank, b.rank))
		})
		fewest = min(fewest, len(own))
	}
	order := make([]int32, 0, len(ranks))
	for r := range ranks {
		order = append(order, r)
	}
	for k := 1; k <= fewest; k++ {
		count := make(map[int32]int)
		for _, own := range byStep {
			for _, x := range own {
				if x.start >= own[k-1].start {
					count[x.rank]++
				}
			}
		}
		slices.SortFunc(order, func(a, b int32) int {
			return cmp.Or(cmp.Compare(count[b], count[a]), cmp.Compare(a, b))
		})
		found := slices.Clone(order[:min(k, len(order))])
		slices.Sort(found)
		all = append(all, found)
	}
	return all
}
