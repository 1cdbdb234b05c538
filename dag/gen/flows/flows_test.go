package flows

import (
	"bytes"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/tracedag/tracedag/dag"
	"github.com/tracedag/tracedag/dag/gen/openloop"
	"github.com/tracedag/tracedag/internal/golden"
)

// send is a flow as its source has it.
type send struct {
	time                dag.Time
	source, destination int32
	bytes               int64
}

// sends returns the flows of a workload in the order of their numbers.
func sends(t testing.TB, p Params, seed int64) []send {
	t.Helper()
	s, err := NewSource(p, seed)
	if err != nil {
		t.Fatal(err)
	}
	tr, err := dag.ReadAll(s)
	if err != nil {
		t.Fatal(err)
	}
	all := make([]send, p.Messages)
	for rank := range tr.Ranks {
		r := tr.Ranks[rank]
		for i := range r.Len() {
			if r.Kind[i] == dag.Send {
				all[r.Tag[i]] = send{r.Release[i], int32(rank), r.Peer[i], r.Bytes[i]}
			}
		}
	}
	return all
}

func TestGolden(t *testing.T) {
	p := Default()
	p.Messages = 40
	var got bytes.Buffer
	for k, m := range sends(t, p, 1) {
		fmt.Fprintf(&got, "%d: %d -> %d, %d bytes at %v\n", k, m.source, m.destination, m.bytes, m.time)
	}
	golden.Check(t, "testdata/flows.golden", got.String())
}

// TestLaws looks at a million flows of the published example.
func TestLaws(t *testing.T) {
	p := Default()
	p.Messages = 1_000_000
	all := sends(t, p, 2)
	end := dag.Time(p.Ticks) * p.Clock
	if gap := float64(all[900_000].time) / 900_000 / float64(p.Clock); math.Abs(gap/p.MeanGap()-1) > 0.005 {
		t.Errorf("mean gap %v ticks, want %v", gap, p.MeanGap())
	}
	var sizes [2][]float64
	near := 0 // flows of the second class within four standard deviations of the middle
	for _, m := range all {
		if m.time > end {
			t.Fatalf("a flow starts at %v", m.time)
		}
		class := 0
		if m.bytes > 10*1024 {
			class = 1
			if m.destination >= 64-32 && m.destination < 64+32 {
				near++
			}
		}
		sizes[class] = append(sizes[class], float64(m.bytes))
	}
	mean := 0.0
	for i, c := range p.Classes {
		slices.Sort(sizes[i])
		least, most := sizes[i][0], sizes[i][len(sizes[i])-1]
		min, max := float64(c.MinKB*1024), float64(c.MaxKB*1024)
		if least < min || least > min+0.001*(max-min) || most > max || most < max-0.001*(max-min) {
			t.Errorf("class %d has sizes %v to %v, want %v to %v", i, least, most, min, max)
		}
		if i == 0 && (least != min || most != max) { // 9217 sizes and 800 000 flows
			t.Errorf("class %d has sizes %v to %v, want %v to %v", i, least, most, min, max)
		}
		distance := 0.0
		for k, s := range sizes[i] {
			distance = math.Max(distance, math.Abs((s-min)/(max-min)-float64(k)/float64(len(sizes[i]))))
			mean += s / float64(p.Messages)
		}
		if limit := 2 / math.Sqrt(float64(len(sizes[i]))); distance > limit {
			t.Errorf("class %d: Kolmogorov distance %v of the sizes, want at most %v", i, distance, limit)
		}
		// Standard deviation of the share: 0.04 %.
		if share := float64(len(sizes[i])) / float64(p.Messages) * 100; math.Abs(share-c.Percent) > 0.2 {
			t.Errorf("class %d has %v %% of the flows, want %v %%", i, share, c.Percent)
		}
	}
	if math.Abs(mean/p.MeanBytes()-1) > 0.01 {
		t.Errorf("mean size %v, want %v", mean, p.MeanBytes())
	}
	if part := float64(near) / float64(len(sizes[1])); part < 0.9998 {
		t.Errorf("%v of the flows of the second class go near the middle", part)
	}
}

// TestShared: the published variants share all flows except for the varied property.
func TestShared(t *testing.T) {
	p := Default()
	p.Messages, p.Ticks = 20_000, 2_000_000
	base := sends(t, p, 1)
	p.Classes = slices.Clone(p.Classes)
	p.Classes[1].Destination = openloop.DestinationPolicy{}
	differ := 0
	for k, m := range sends(t, p, 1) {
		if m.time != base[k].time || m.source != base[k].source || m.bytes != base[k].bytes {
			t.Fatalf("uniform: flow %d is %+v, not %+v", k, m, base[k])
		}
		if m != base[k] {
			differ++
			if m.bytes <= 10*1024 {
				t.Fatalf("uniform: flow %d of the first class is %+v, not %+v", k, m, base[k])
			}
		}
	}
	if differ < 3000 {
		t.Errorf("uniform: %d flows differ", differ)
	}
	p.Classes[0].Percent, p.Classes[1].Percent = 50, 50
	for k, m := range sends(t, p, 1) {
		if m.time != base[k].time || m.source != base[k].source {
			t.Fatalf("other shares: flow %d is %+v, not %+v", k, m, base[k])
		}
	}
}

func TestAllAtOnce(t *testing.T) {
	p := Default()
	p.Messages, p.Ticks = 10_000, 1
	all := sends(t, p, 1)
	for k, m := range all[1:] {
		if before := all[k]; m.source < before.source && m.time == before.time {
			t.Fatalf("flow %d is from task %d, the one before, of the same tick, from task %d", k+1, m.source, before.source)
		}
	}
	if middle := all[4000:6000]; middle[0].time != 0 || middle[len(middle)-1].time != p.Clock {
		t.Errorf("flow 4000 starts at %v, flow 5999 at %v, expected the two ticks", middle[0].time, middle[len(middle)-1].time)
	}
}

func TestRefused(t *testing.T) {
	for want, vary := range map[string]func(*Params){
		"tasks is 1, expected 2..":                                func(p *Params) { p.Tasks = 1 },
		"messages is -1, expected 0..":                            func(p *Params) { p.Messages = -1 },
		"clock is 0s, expected":                                   func(p *Params) { p.Clock = 0 },
		"time is 0, expected 1..":                                 func(p *Params) { p.Ticks = 0 },
		"time is 9223372036854775807, expected 1..":               func(p *Params) { p.Ticks = math.MaxInt64 },
		"class 1: min is 0 KB, expected 1..":                      func(p *Params) { p.Classes[1].MinKB = 0 },
		"class 0: max is 0 KB, expected 1..":                      func(p *Params) { p.Classes[0].MaxKB = 0 },
		"class 0: max is 9223372036854775807 KB, expected":        func(p *Params) { p.Classes[0].MaxKB = math.MaxInt64 },
		"class 1: percent is -1, expected 0..100":                 func(p *Params) { p.Classes[1].Percent = -1 },
		"class 1: percent is NaN, expected 0..100":                func(p *Params) { p.Classes[1].Percent = math.NaN() },
		"class is 100.02 % of the flows in total, expected 100 %": func(p *Params) { p.Classes[1].Percent = 20.02 },
		"class is 0 % of the flows in total, expected 100 %":      func(p *Params) { p.Classes = nil },
		"clock is 1ns, expected shorter":                          func(p *Params) { p.Messages, p.Ticks = 1e12, 1 },
		"gauss-sigma-frac is 0, expected above 0":                 func(p *Params) { p.Classes[1].Destination.Sigma = 0 },
		"messages is 1000000000000, expected fewer, with at most": func(p *Params) { p.Messages, p.Ticks = 1e12, 1e12 },
	} {
		p := Default()
		p.Messages = 1000
		vary(&p)
		if _, err := NewSource(p, 1); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want %q", err, want)
		}
	}
	p := Default()
	for _, percent := range []float64{19.99, 20.01} {
		p.Messages, p.Classes[1].Percent = 0, percent
		if _, err := NewSource(p, 1); err != nil {
			t.Error(err)
		}
	}
	p.Classes = []Class{{MinKB: 1, MaxKB: 1, Percent: 33.33}, {MinKB: 1, MaxKB: 1, Percent: 33.33},
		{MinKB: 1, MaxKB: 1, Percent: 33.33}}
	if _, err := NewSource(p, 1); err != nil {
		t.Error(err)
	}
}

// BenchmarkGenerate makes the ranks of the published example.
func BenchmarkGenerate(b *testing.B) {
	ops := int64(0)
	for b.Loop() {
		s, err := NewSource(Default(), 1)
		if err != nil {
			b.Fatal(err)
		}
		if _, err := dag.ReadAll(s); err != nil {
			b.Fatal(err)
		}
		h, err := s.Header()
		if err != nil {
			b.Fatal(err)
		}
		ops += h.Ops
	}
	b.ReportMetric(float64(ops)/b.Elapsed().Seconds(), "ops/s")
}
