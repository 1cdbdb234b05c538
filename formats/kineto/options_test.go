package kineto

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/tracedag/tracedag/dag"
	"github.com/tracedag/tracedag/formats/format"
)

// sample reads the files of testdata after a change of their texts.
func sample(t *testing.T, own *Options, change func(rank int, text string) string) (*dag.Trace, error) {
	t.Helper()
	var inputs []*format.Input
	for i, name := range []string{"rank0.json", "rank1.json"} {
		text := string(plainFile(t, "../../testdata/kineto/"+name))
		if change != nil {
			text = change(i, text)
		}
		inputs = append(inputs, &format.Input{Name: name, Reader: strings.NewReader(text)})
	}
	return read(inputs, format.ReadOptions{Own: own, Warn: func(string, ...any) {}})
}

// named returns the durations of a rank's ops with a name.
func named(r *dag.Rank, name string) (durations []dag.Time) {
	for k := range r.Len() {
		if r.Name.At(k) == name {
			durations = append(durations, r.Duration.At(k))
		}
	}
	return durations
}

func TestGaps(t *testing.T) {
	for _, c := range []struct {
		gaps       string
		kernelGap  dag.Time
		host, gap  int
		firstCalcs dag.Time // of the first gemm
	}{
		{gapsNone, 0, 0, 0, 40250 * dag.Nanosecond},
		{gapsHost, 0, 2, 0, 40250 * dag.Nanosecond},
		{gapsAll, 30 * dag.Microsecond, 2, 1, 40625 * dag.Nanosecond},
		{gapsAll, 0, 2, 3, 40250 * dag.Nanosecond},
	} {
		own := newOptions()
		own.Gaps, own.KernelGap = c.gaps, c.kernelGap
		trace, err := sample(t, own, nil)
		if err != nil {
			t.Fatal(err)
		}
		r := trace.Ranks[0]
		if host, gap := len(named(r, "host")), len(named(r, "gap")); host != c.host || gap != c.gap ||
			named(r, "gemm")[0] != c.firstCalcs {
			t.Errorf("%+v: %d on the host, %d others, %v", c, host, gap, named(r, "gemm"))
		}
	}
}

func TestSteps(t *testing.T) {
	later := func(_ int, text string) string { // the last kernel and the message belong to step 4
		return strings.Replace(text, `"dur": 400,`, `"dur": 100,`, 1)
	}
	for steps, want := range map[string]int{"": 6, "3": 4, "last": 4, "2-3": 4, "0-9": 4} {
		own := newOptions()
		own.Steps, own.Gaps = steps, gapsNone
		trace, err := sample(t, own, later)
		if err != nil || trace.Ranks[0].Len() != want {
			t.Errorf("%q: %v, %v", steps, err, trace)
		}
	}
	for _, steps := range []string{"4", "x", "3-2", "-1"} {
		own := newOptions()
		own.Steps = steps
		if _, err := sample(t, own, later); err == nil {
			t.Errorf("%q is accepted", steps)
		}
	}
}

// TestAlignClocks shifts the clock of a rank by 3 ms, and corrects it.
func TestAlignClocks(t *testing.T) {
	shift := func(rank int, text string) string {
		if rank == 1 {
			return strings.Replace(text, `1727743122000000000`, `1727743122003000000`, 1)
		}
		return text
	}
	for _, align := range []bool{false, true} {
		own := newOptions()
		own.AlignClocks = align
		trace, err := sample(t, own, shift)
		if err != nil {
			t.Fatal(err)
		}
		var ends []dag.Time
		for _, r := range trace.Ranks {
			k := slices.Index(r.Kind, dag.Coll)
			_, end := r.Measured(k)
			ends = append(ends, end)
		}
		if (ends[0] == ends[1]) != align {
			t.Errorf("aligned %v: %v", align, ends)
		}
	}
}

// TestOnlyPresent reads one of two ranks.
func TestOnlyPresent(t *testing.T) {
	text := string(plainFile(t, "../../testdata/kineto/rank1.json"))
	for _, present := range []bool{false, true} {
		own := newOptions()
		own.OnlyPresent = present
		trace, err := read([]*format.Input{{Name: "rank1.json", Reader: strings.NewReader(text)}},
			format.ReadOptions{Own: own, Warn: func(string, ...any) {}})
		if !present {
			if err == nil || !strings.Contains(err.Error(), "rank 0") {
				t.Errorf("a missing rank: %v", err)
			}
			continue
		}
		if err != nil || len(trace.Ranks) != 1 || slices.Contains(trace.Ranks[0].Kind, dag.Recv) {
			t.Errorf("%v", err)
		}
	}
}

// TestMismatch reads ranks that disagree.
func TestMismatch(t *testing.T) {
	for _, c := range []struct{ old, new, message string }{
		{`"In msg nelems": 262144`, `"In msg nelems": 5`, "allreduce of 524288 bytes on rank 0, and allreduce of 10 bytes on rank 1"},
		{`"rank": 1`, `"rank": 0`, "found rank 0 also in rank0.json"},
	} {
		_, err := sample(t, newOptions(), func(rank int, text string) string {
			if rank == 0 {
				return text
			}
			return strings.ReplaceAll(text, c.old, c.new)
		})
		if err == nil || !strings.Contains(err.Error(), c.message) {
			t.Errorf("%s: %v", c.new, err)
		}
	}
}

// TestReplicate makes eight ranks of a trace of one.
func TestReplicate(t *testing.T) {
	text := string(plainFile(t, "../../testdata/kineto/rank0.json"))
	text = strings.NewReplacer(`"world_size": 2`, `"world_size": 8`, "[0, 1]", "[0, 4]").Replace(text)
	own := newOptions()
	own.Replicate = true
	trace, err := read([]*format.Input{{Name: "rank0.json", Reader: strings.NewReader(text)}},
		format.ReadOptions{Own: own, Warn: func(string, ...any) {}})
	if err != nil {
		t.Fatal(err)
	}
	if problems := dag.Validate(trace); len(problems) > 0 {
		t.Fatal(problems[0])
	}
	if len(trace.Ranks) != 8 || len(trace.Comms) != 5 {
		t.Fatalf("%d ranks, %d communicators", len(trace.Ranks), len(trace.Comms))
	}
	for i, r := range trace.Ranks {
		k := slices.Index(r.Kind, dag.Coll)
		want := []int32{int32(i % 4), int32(i%4 + 4)}
		if got := trace.Comms[r.Comm.At(k)].Members(); !slices.Equal(got, want) {
			t.Errorf("rank %d: %v", i, got)
		}
	}
	checkVariation(t, text, trace)
	text = strings.ReplaceAll(text, "[0, 4]", "[0, 3]")
	_, err = read([]*format.Input{{Name: "rank0.json", Reader: strings.NewReader(text)}},
		format.ReadOptions{Own: own, Warn: func(string, ...any) {}})
	if err == nil || !strings.Contains(err.Error(), "do not divide the 8 ranks") {
		t.Errorf("an irregular group: %v", err)
	}
}

// checkVariation makes rank 5 of a trace slower and lets the computation of the made ranks vary.
func checkVariation(t *testing.T, text string, same *dag.Trace) {
	t.Helper()
	read := func(jitter float64, seed int64, stragglers ...string) (*dag.Trace, error) {
		own := newOptions()
		own.Replicate, own.Jitter, own.Seed, own.Stragglers = true, jitter, seed, stragglers
		if err := own.Check(); err != nil {
			return nil, err
		}
		return read([]*format.Input{{Name: "rank0.json", Reader: strings.NewReader(text)}},
			format.ReadOptions{Own: own, Warn: func(string, ...any) {}})
	}
	sum := func(trace *dag.Trace, rank int) (total dag.Time) {
		r := trace.Ranks[rank]
		for op := range r.Len() {
			if r.Kind[op] == dag.Calc {
				total += r.Duration.At(op)
			}
		}
		return total
	}
	slow, err := read(0, 1, "5=2")
	if err != nil {
		t.Fatal(err)
	}
	for i := range slow.Ranks {
		want := sum(same, i)
		if i == 5 {
			want *= 2
		}
		if got := sum(slow, i); got != want {
			t.Errorf("rank %d computes for %v, expected %v", i, got, want)
		}
	}
	one, err := read(0.1, 1)
	if err != nil {
		t.Fatal(err)
	}
	again, _ := read(0.1, 1)
	other, _ := read(0.1, 2)
	if sum(one, 0) != sum(same, 0) || sum(one, 3) == sum(same, 3) || sum(one, 3) == sum(one, 4) {
		t.Errorf("jitter: rank 0 %v, 3 %v, 4 %v, without %v", sum(one, 0), sum(one, 3), sum(one, 4), sum(same, 3))
	}
	if sum(one, 3) != sum(again, 3) || sum(one, 3) == sum(other, 3) {
		t.Errorf("jitter does not follow from the seed: %v, %v, %v", sum(one, 3), sum(again, 3), sum(other, 3))
	}
	for text, message := range map[string]string{
		"0=2": "rank 0 has a file", "8=2": "expected a rank below 8", "5": "RANK=FACTOR", "5=0": "RANK=FACTOR",
		"5=x": "RANK=FACTOR",
	} {
		if _, err := read(0, 1, text); err == nil || !strings.Contains(err.Error(), message) {
			t.Errorf("--straggler %s: %v", text, err)
		}
	}
}

// TestVariedOrder checks that the communications of ranks that vary start in the recorded order, and those of copies
// with the same times as they can.
func TestVariedOrder(t *testing.T) {
	kernel := `{"ph":"X","cat":"kernel","name":"ncclDevKernel_AllReduce","pid":0,"tid":%d,"ts":%d,"dur":5,"args":{` +
		`"stream":%[1]d,"device":0,"Collective name":"allreduce","In msg nelems":4,"Out msg nelems":4,"dtype":"Float",` +
		`"Process Group Name":"%[1]d","Process Group Ranks":"[0, 1]","Group size":2}}`
	text := `{"distributedInfo":{"rank":0,"world_size":2},"traceEvents":[` + fmt.Sprintf(kernel, 7, 10) + "," +
		fmt.Sprintf(kernel, 8, 12) + "," + fmt.Sprintf(kernel, 7, 20) + "]}"
	for _, jitter := range []float64{0, 0.1} {
		own := newOptions()
		own.Replicate, own.Jitter = true, jitter
		trace, err := read([]*format.Input{{Name: "rank0.json", Reader: strings.NewReader(text)}},
			format.ReadOptions{Own: own, Warn: func(string, ...any) {}})
		if err != nil {
			t.Fatal(err)
		}
		for rank, r := range trace.Ranks {
			last := -1
			for op, kind := range r.Kind {
				if kind != dag.Coll {
					continue
				}
				var want []int32
				if last >= 0 && jitter > 0 {
					want = []int32{int32(op - last)}
				}
				if !slices.Equal(r.StartDeps.Of(op), want) {
					t.Errorf("jitter %v: rank %d, op %d starts after %v, expected %v", jitter, rank, op, r.StartDeps.Of(op), want)
				}
				last = op
			}
			if last < 2 {
				t.Errorf("the last collective is op %d", last)
			}
		}
	}
}
