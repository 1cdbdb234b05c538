package gpustats

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/tracedag/tracedag/dag"
	"github.com/tracedag/tracedag/formats/format"
	"github.com/tracedag/tracedag/formats/kineto"
)

// expected is what an independent program computed of a set.
type expected struct {
	Ranks []struct {
		File  string
		Exact map[string]*int64 `json:"exact_ps"`
		HTA   *struct {
			Temporal map[string]float64
			Overlap  struct {
				Communication, Overlapped float64
				Pctg                      *float64
			}
			Idle   map[string]map[string]float64
			Types  map[string]float64 `json:"kernel_types"`
			Queues map[string]struct {
				Count                              int
				Mean, Std, Min, P25, P50, P75, Max float64
			} `json:"queue"`
			Kernels map[string]struct {
				Names, Events int
				Sum           float64
				Top           [][]any
			}
		}
	}
}

func readFile(t testing.TB, path string) *format.Input {
	t.Helper()
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if bytes.HasPrefix(content, []byte("\x1f\x8b")) {
		z, err := gzip.NewReader(bytes.NewReader(content))
		if err != nil {
			t.Fatal(err)
		}
		if content, err = io.ReadAll(z); err != nil {
			t.Fatal(err)
		}
	}
	return &format.Input{Name: path, Reader: bytes.NewReader(content)}
}

func micros(t dag.Time) float64 { return float64(t) / 1e6 }

func percent(part, whole dag.Time) float64 {
	return math.RoundToEven(100*float64(part)/float64(whole)*100) / 100
}

func TestVectors(t *testing.T) {
	root := os.Getenv("TRACEDAG_VECTORS")
	if root == "" {
		t.Skip("TRACEDAG_VECTORS is not set")
	}
	sets, err := filepath.Glob(filepath.Join(root, "kineto", "*", "expected.json"))
	if err != nil || len(sets) == 0 {
		t.Fatal("no sets: ", err)
	}
	for _, set := range sets {
		t.Run(filepath.Base(filepath.Dir(set)), func(t *testing.T) { checkSet(t, set) })
	}
}

func checkSet(t *testing.T, set string) {
	content, err := os.ReadFile(set)
	if err != nil {
		t.Fatal(err)
	}
	var want expected
	if err := json.Unmarshal(content, &want); err != nil {
		t.Fatal(err)
	}
	var inputs []*format.Input
	for _, r := range want.Ranks {
		inputs = append(inputs, readFile(t, filepath.Join(filepath.Dir(set), r.File)))
	}
	profiles, err := kineto.ReadProfiles(inputs, format.ReadOptions{Warn: func(string, ...any) {}}, kineto.Events{Reference: true})
	if err != nil {
		t.Fatal(err)
	}
	exact, err := Compute(profiles, false)
	if err != nil {
		t.Fatal(err)
	}
	hta, err := Compute(profiles, true)
	if err != nil {
		t.Fatal(err)
	}
	if filepath.Base(filepath.Dir(set)) == "dlrm8" { // HTA finds rank 7, too
		if len(exact.Stragglers) == 0 || exact.Stragglers[0].Rank != 7 {
			t.Errorf("expected straggler 7, found %v", exact.Stragglers)
		}
		want := "[[7] [2 7] [2 6 7]]"
		if len(hta.Candidates) < 3 || fmt.Sprint(hta.Candidates[:3]) != want {
			t.Errorf("expected candidates %v, found %v", want, hta.Candidates)
		}
	}
	for i := range want.Ranks {
		w := &want.Ranks[i]
		if base := filepath.Base(exact.Ranks[i].File); base != w.File {
			t.Fatalf("rank %d is %s, expected %s", i, base, w.File)
		}
		checkExact(t, &exact.Ranks[i], w.Exact)
		if got, other := exact.Ranks[i].Launches.Count, launched(profiles[i]); got != other {
			t.Errorf("%s: expected %d launches, found %d", w.File, other, got)
		}
		r := &hta.Ranks[i]
		if w.HTA == nil {
			if r.Busy != 0 || len(r.Streams) > 0 {
				t.Errorf("%s: expected no ops, found %v", w.File, r)
			}
			continue
		}
		got := map[string]float64{"idle": micros(r.Idle), "compute": micros(r.Compute),
			"non_compute": micros(r.NonCompute), "kernel_time": micros(r.KernelTime),
			"idle_pctg": percent(r.Idle, r.KernelTime), "compute_pctg": percent(r.Compute, r.KernelTime),
			"non_compute_pctg": percent(r.NonCompute, r.KernelTime)}
		checkMap(t, w.File, got, w.HTA.Temporal)
		o := w.HTA.Overlap
		if micros(r.Communication) != o.Communication || micros(r.Overlapped) != o.Overlapped {
			t.Errorf("%s: overlap: expected %v, found %v of %v", w.File, o, r.Overlapped, r.Communication)
		}
		if o.Pctg != nil && math.Abs(percent(r.Overlapped, r.Communication)-*o.Pctg) > 1e-9 {
			t.Errorf("%s: overlap: expected %v %%, found %v", w.File, *o.Pctg, percent(r.Overlapped, r.Communication))
		}
		got = make(map[string]float64)
		for _, x := range r.Types {
			got[x.Name] = micros(x.Time)
		}
		checkMap(t, w.File, got, w.HTA.Types)
		if len(r.Streams) != len(w.HTA.Idle) {
			t.Errorf("%s: expected %d streams, found %d", w.File, len(w.HTA.Idle), len(r.Streams))
		}
		for _, s := range r.Streams {
			got := map[string]float64{"host_wait": micros(s.HostWait), "kernel_wait": micros(s.KernelWait),
				"other": micros(s.Other)}
			checkMap(t, fmt.Sprint(w.File, " stream ", s.Stream), got, w.HTA.Idle[fmt.Sprint(s.Stream)])
		}
		checkKernels(t, r, func(kind string) (names, events int, sum float64, top [][]any) {
			k := w.HTA.Kernels[kind]
			return k.Names, k.Events, k.Sum, k.Top
		})
		if len(r.Queues) != len(w.HTA.Queues) {
			t.Errorf("%s: expected %d queues, found %d", w.File, len(w.HTA.Queues), len(r.Queues))
		}
		for _, q := range r.Queues {
			x := w.HTA.Queues[fmt.Sprint(q.Stream)]
			if q.Count != x.Count || math.Abs(q.Mean-x.Mean) > 5.1e-5 || math.Abs(q.Std-x.Std) > 5.1e-5 ||
				q.Min != x.Min || q.P25 != x.P25 || q.P50 != x.P50 || q.P75 != x.P75 || q.Max != x.Max {
				t.Errorf("%s: queue: expected %v, found %v", w.File, x, q)
			}
		}
	}
}

// checkKernels compares kernels with the expected numbers of names and events, sums, and names with the largest sums.
func checkKernels(t *testing.T, r *Rank, of func(kind string) (names, events int, sum float64, top [][]any)) {
	t.Helper()
	for _, kind := range kindNames {
		names, events, sum, top := of(kind)
		byName := make(map[string]Kernel)
		count, total := 0, dag.Time(0)
		for _, k := range r.Kernels {
			if k.Kind == kind {
				byName[k.Name[:min(len(k.Name), 200)]] = k
				names--
				count += int(k.Count)
				total += k.Sum
			}
		}
		if names != 0 || count != events || math.Abs(micros(total)-sum) > 1e-6 {
			t.Errorf("%s: %s: %d names missing; expected %d ops of %v us, found %d of %v", r.File, kind, names, events,
				sum, count, micros(total))
		}
		for _, x := range top {
			name := x[0].(string)
			k := byName[name]
			for i, v := range []float64{micros(k.Sum), micros(k.Max), micros(k.Min), k.Mean / 1e6, k.Std / 1e6} {
				if len(name) < 200 && math.Abs(v-x[i+1].(float64)) > 5.1e-4 {
					t.Errorf("%s: %s: value %d: expected %v, found %v", r.File, name, i, x[i+1], v)
				}
			}
		}
	}
}

// checkMap compares values; absent ones are 0.
func checkMap(t *testing.T, where string, got, want map[string]float64) {
	t.Helper()
	for name, v := range want {
		if math.Abs(got[name]-v) > 1e-9 {
			t.Errorf("%s: %s: expected %v, found %v", where, name, v, got[name])
		}
	}
	for name, v := range got {
		if _, ok := want[name]; !ok && v != 0 {
			t.Errorf("%s: unexpected %s: %v", where, name, v)
		}
	}
}

func checkExact(t *testing.T, r *Rank, want map[string]*int64) {
	t.Helper()
	for name, v := range map[string]dag.Time{"first": r.First, "last": r.Last, "busy": r.Busy, "idle": r.Idle,
		"compute": r.Compute, "communication": r.Communication, "memory": r.Memory,
		"comm_overlapped_by_compute": r.Overlapped, "comm_exposed": r.Exposed} {
		if w := want[name]; w == nil && v != 0 || w != nil && dag.Time(*w) != v {
			t.Errorf("%s: exact %s: expected %v, found %d", r.File, name, w, v)
		}
	}
}

func launched(p *kineto.Profile) (n int) {
	for i := range p.Ops {
		if p.Ops[i].Launched {
			n++
		}
	}
	return n
}

// TestCollectives computes bandwidths and stragglers by hand.
func TestCollectives(t *testing.T) {
	op := func(start, end dag.Time, calls ...kineto.Call) kineto.Op {
		return kineto.Op{Start: start * dag.Microsecond, End: end * dag.Microsecond, Class: kineto.Communication,
			Calls: calls}
	}
	call := func(kind string, in, out int64, instance int32) kineto.Call {
		return kineto.Call{Kind: kind, Size: 4, In: in, Out: out, Sized: true, Instance: instance}
	}
	send := kineto.Call{Kind: "send", Size: 4, In: 5000, Out: 5000, Sized: true, Comm: -1}
	barrier := call("barrier", 0, 0, 2)
	barrier.Comm = -1
	uneven := kineto.Call{Kind: "alltoallv", Size: 4, In: 3000, Out: 5000, Own: 1000, Sized: true, Comm: -1}
	s, err := Compute([]*kineto.Profile{
		{Rank: 0, Ops: []kineto.Op{op(0, 10, call("allreduce", 1e6, 1e6, 0)), op(20, 30, call("allreduce", 1e6, 1e6, 1)),
			op(40, 45, call("allgather", 1e6, 4e6, 3)), op(50, 51, send), op(60, 61, barrier), op(70, 75, send, send),
			op(80, 84, uneven)}},
		{Rank: 3, Ops: []kineto.Op{op(4, 10, call("allreduce", 1e6, 1e6, 0)), op(18, 30, call("allreduce", 1e6, 1e6, 1)),
			op(43, 45, call("allgather", 1e6, 4e6, 3))}},
	}, false)
	if err != nil {
		t.Fatal(err)
	}
	type row struct {
		kind       string
		count      int64
		algbw, bus float64
	}
	want := []row{{"allreduce", 2, 100, 150}, {"allgather", 1, 800, 600}, {"group", 1, 2, 0},
		{"alltoallv", 1, 1.25, 1}, {"send", 1, 5, 5},
		{"barrier", 1, 0, 0}}
	var got []row
	for _, c := range s.Ranks[0].Collectives {
		got = append(got, row{c.Kind, c.Count, c.AlgBW, c.BusBW})
	}
	if !slices.Equal(got, want) {
		t.Errorf("expected %v, found %v", want, got)
	}
	// 2 * 1.5 MB, 3 MB, 3 * 5000 B and 4000 B in 10 + 10 + 5 + 1 + 1 + 5 + 4 us
	if got, want := s.Ranks[0].SharedBusBW, 6019000./36e6*1000; math.Abs(got-want) > 1e-9 {
		t.Errorf("expected %v GB/s shared, found %v", want, got)
	}
	const us = dag.Microsecond
	stragglers := []Straggler{
		{3, 2, 7 * us, Delayed{"allreduce", "", 0, 4 * us, 4 * us}},
		{0, 1, 2 * us, Delayed{"allreduce", "", 1, 20 * us, 2 * us}},
	}
	if !slices.Equal(s.Stragglers, stragglers) {
		t.Errorf("expected %v, found %v", stragglers, s.Stragglers)
	}
}

// TestLaunches measures delays by hand.
func TestLaunches(t *testing.T) {
	const us = dag.Microsecond
	got := launchesOf([]launch{{60 * us, 5 * us, 0}, {4 * us, 5 * us, 101 * us}, {5 * us, 5 * us, 1 * us}})
	want := Launches{Count: 3, Mean: 34e6, P50: 1e6, P99: 99e6, Max: 101 * us, Short: 1, LongCalls: 1, LongDelays: 1}
	if got != want {
		t.Errorf("expected %+v, found %+v", want, got)
	}
}

// FuzzCompute computes statistics of any file.
func FuzzCompute(f *testing.F) {
	for _, name := range []string{"rank0.json", "rank1.json"} {
		content, err := os.ReadFile(filepath.Join("..", "..", "..", "testdata", "kineto", name))
		if err != nil {
			f.Fatal(err)
		}
		f.Add(content)
	}
	f.Add([]byte(`[{"ph":"X","cat":"kernel","name":"k","ts":1.5,"dur":0.1,"args":{"stream":0,"correlation":0}}]`))
	f.Fuzz(func(t *testing.T, content []byte) {
		in := &format.Input{Name: "rank0.json", Reader: bytes.NewReader(content)}
		profiles, err := kineto.ReadProfiles([]*format.Input{in},
			format.ReadOptions{Warn: func(string, ...any) {}}, kineto.Events{Reference: true, Path: true})
		if err != nil {
			return
		}
		if _, err := Paths(profiles, Part{}, true); err != nil {
			t.Log(err)
		}
		for _, reference := range []bool{false, true} {
			s, err := Compute(profiles, reference)
			if err != nil {
				continue
			}
			for _, r := range s.Ranks {
				if !reference && (r.Idle < 0 || r.Exposed < 0 || r.NonCompute < 0) {
					t.Errorf("negative times: %+v", r)
				}
			}
		}
	})
}

// TestUnion compares unions and types with a count of each unit of time.
func TestUnion(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for range 300 {
		const units = 64
		var of [kinds]union
		var runs [units]int
		for k := range of {
			var list []interval
			for range random.IntN(8) {
				start := dag.Time(random.IntN(units))
				list = append(list, interval{start, start + dag.Time(random.IntN(units-int(start)))})
			}
			for at := dag.Time(0); at < units; at++ {
				for _, i := range list {
					if i.start == at {
						of[k].add(i.start, i.end)
					}
					if i.start <= at && at < i.end {
						runs[at] |= 1 << k
					}
				}
			}
		}
		var want types
		var lengths [kinds]dag.Time
		common := dag.Time(0)
		for _, set := range runs {
			if set > 0 {
				want[set]++
			}
			for k := range lengths {
				lengths[k] += dag.Time(set >> k & 1)
			}
			if set&3 == 3 {
				common++
			}
		}
		if got := typesOf(&of); got != want {
			t.Fatalf("types: expected %v, found %v", want, got)
		}
		for k := range of {
			if got := of[k].length(); got != lengths[k] {
				t.Fatalf("length: expected %d, found %d", lengths[k], got)
			}
		}
		if got := of[0].common(&of[1]); got != common {
			t.Fatalf("common: expected %d, found %d", common, got)
		}
	}
}

// TestSummary joins the kernels beyond the tenth, and those beyond the quantile of the running sums.
func TestSummary(t *testing.T) {
	var kernels []Kernel
	for i := range 12 {
		k := Kernel{Kind: kindNames[computation], Name: fmt.Sprintf("k%02d", 11-i), times: []dag.Time{dag.Time(120 - 10*i), 5}}
		k.measure()
		kernels = append(kernels, k)
	}
	// The sums are 125, 115, ... 15, the running sums 125, 240, ... 840; their quantile 0.8 is 765 + 0.8 * 25 = 797.
	// At most 10 keep their names, of which the last two have running sums of 765 and 800.
	got := summaryOf(kernels)
	names := make([]string, len(got))
	for i, k := range got {
		names[i] = k.Name
	}
	want := []string{"k03", "k04", "k05", "k06", "k07", "k08", "k09", "k10", "k11", "others"}
	if !slices.Equal(names, want) {
		t.Fatalf("expected %v, found %v", want, names)
	}
	other := got[9]
	if other.Count != 3 || other.Sum != 35+25+15 || other.Max != 35 || other.Min != 15 || other.Mean != 25 || other.Std != 10 {
		t.Errorf("%+v", other)
	}
	if k := got[0]; k.Sum != 45 || k.Max != 45 || k.Mean != 45 || k.Std != 0 {
		t.Errorf("%+v", k)
	}
	if got := summaryOf(kernels[:10]); len(got) != 10 || got[0].Max != 30 {
		t.Errorf("%+v", got)
	}
}

// TestMTIA selects the events of the steps of MTIA: operators within the steps, what they launched, and copies that
// start in a step, whose stream is their thread if they have none.
func TestMTIA(t *testing.T) {
	text := `{"distributedInfo":{"backend":"mtia:hccl","rank":0},"traceEvents":[
{"ph":"X","cat":"user_annotation","name":"ProfilerStep#1","pid":1,"tid":1,"ts":100,"dur":100},
{"ph":"X","cat":"user_annotation","name":"ProfilerStep#2","pid":1,"tid":1,"ts":200,"dur":100},
{"ph":"X","cat":"mtia_runtime","name":"runFunction - a","pid":1,"tid":1,"ts":110,"dur":5,"args":{"correlation":1}},
{"ph":"X","cat":"mtia_runtime","name":"runFunction - b","pid":1,"tid":1,"ts":250,"dur":5,"args":{"correlation":2}},
{"ph":"X","cat":"mtia_runtime","name":"runFunction - c","pid":1,"tid":1,"ts":50,"dur":5,"args":{"correlation":3}},
{"ph":"X","cat":"mtia_ccp_events","name":"gemm","pid":0,"tid":3,"ts":120,"dur":30,"args":{"correlation":1,"stream":3}},
{"ph":"X","cat":"mtia_ccp_events","name":"gemm","pid":0,"tid":3,"ts":310,"dur":40,"args":{"correlation":2,"stream":3}},
{"ph":"X","cat":"mtia_ccp_events","name":"gemm","pid":0,"tid":3,"ts":60,"dur":10,"args":{"correlation":3,"stream":3}},
{"ph":"X","cat":"mtia_ccp_events","name":"dma_request","pid":0,"tid":9,"ts":155,"dur":20},
{"ph":"X","cat":"mtia_ccp_events","name":"dma_request","pid":0,"tid":9,"ts":301,"dur":20}]}`
	in := &format.Input{Name: "rank0.json", Reader: strings.NewReader(text)}
	profiles, err := kineto.ReadProfiles([]*format.Input{in}, format.ReadOptions{Warn: func(string, ...any) {}},
		kineto.Events{Reference: true})
	if err != nil {
		t.Fatal(err)
	}
	s, err := Compute(profiles, true)
	if err != nil {
		t.Fatal(err)
	}
	const us = dag.Microsecond
	r := &s.Ranks[0]
	if r.KernelTime != 230*us || r.Compute != 70*us || r.Memory != 20*us || r.Idle != 140*us || len(r.Streams) != 2 {
		t.Errorf("%+v", r)
	}
}
