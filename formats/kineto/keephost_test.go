package kineto

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/tracedag/tracedag/dag"
	"github.com/tracedag/tracedag/formats/format"
)

// replayStarts returns the starts and ends of ops if all take their recorded durations.
func replayStarts(r *dag.Rank) (start, end []dag.Time) {
	start, end = make([]dag.Time, r.Len()), make([]dag.Time, r.Len())
	for i := range end {
		for _, off := range r.Deps.Of(i) {
			start[i] = max(start[i], end[i-int(off)])
		}
		for _, off := range r.StartDeps.Of(i) {
			start[i] = max(start[i], start[i-int(off)])
		}
		end[i] = start[i] + r.Duration.At(i)
	}
	return start, end
}

// TestKeepHost keeps a thread that launches two kernels, waits for them, and launches a third one.
func TestKeepHost(t *testing.T) {
	event := func(category, name string, start, took int, args string) string {
		thread, process := 1, 1
		if category == "kernel" {
			thread, process = 7, 0
		}
		return fmt.Sprintf(`{"ph":"X","cat":%q,"name":%q,"pid":%d,"tid":%d,"ts":%d,"dur":%d,"args":{%s}}`, category, name,
			process, thread, 1000+start, took, args)
	}
	text := "[" + strings.Join([]string{
		event("cpu_op", "aten::a", 0, 20, ""),
		event("cuda_runtime", "cudaLaunchKernel", 5, 3, `"correlation":1`),
		event("cuda_runtime", "cudaLaunchKernel", 12, 2, `"correlation":2`),
		event("cuda_runtime", "cudaDeviceSynchronize", 25, 75, `"correlation":9`),
		event("cuda_runtime", "cudaLaunchKernel", 110, 5, `"correlation":3`),
		event("kernel", "first", 9, 41, `"stream":7,"device":0,"correlation":1`),
		event("kernel", "second", 51, 47, `"stream":7,"device":0,"correlation":2`),
		event("kernel", "third", 117, 10, `"stream":7,"device":0,"correlation":3`),
	}, ",") + "]"
	own := newOptions()
	own.KeepHost = true
	trace, err := read([]*format.Input{{Name: "rank0.json", Reader: strings.NewReader(text)}},
		format.ReadOptions{Own: own, Warn: func(string, ...any) {}})
	if err != nil {
		t.Fatal(err)
	}
	if problems := dag.Validate(trace); len(problems) > 0 {
		t.Fatal(problems[0])
	}
	r := trace.Ranks[0]
	_, ends := replayStarts(r)
	zero, _ := r.Measured(0)
	for i, end := range ends {
		if _, measured := r.Measured(i); end != measured-zero {
			t.Errorf("%s ends at %v, measured %v", r.Name.At(i), end, measured-zero)
		}
	}
	// The second kernel takes 20 us more: it, the wait for it and all that follows end 20 us later.
	second := slices.Index(namesOf(r), "second")
	r.Duration.Set(second, r.Duration.At(second)+20*dag.Microsecond)
	_, later := replayStarts(r)
	for i, name := range namesOf(r) {
		want := dag.Time(0)
		if ends[i] >= ends[second] {
			want = 20 * dag.Microsecond
		}
		if later[i]-ends[i] != want {
			t.Errorf("op %d %s: %v later, expected %v", i, name, later[i]-ends[i], want)
		}
	}
	for _, name := range []string{"aten::a", "launch", "device synchronization", "second", "third"} {
		if !slices.Contains(namesOf(r), name) {
			t.Errorf("no op %s in %q", name, namesOf(r))
		}
	}
}

func namesOf(r *dag.Rank) (names []string) {
	for i := range r.Len() {
		names = append(names, r.Name.At(i))
	}
	return names
}

// TestKeepHostVectors replays recordings with the threads of the host: each rank ends when it was measured.
func TestKeepHostVectors(t *testing.T) {
	for _, path := range sets(t) {
		folder := filepath.Dir(path)
		if strings.HasSuffix(folder, "two_of_128") {
			continue
		}
		files, err := filepath.Glob(filepath.Join(folder, "*.json.gz"))
		if err != nil {
			t.Fatal(err)
		}
		files = slices.DeleteFunc(files, func(name string) bool { return strings.Contains(name, "truth") })
		own := newOptions()
		own.KeepHost, own.OnlyPresent = true, len(files) == 1
		_, trace, _ := readPaths(t, files, own)
		for rank, r := range trace.Ranks {
			first, last, late := dag.MaxTime, -dag.MaxTime, 0
			for i := range r.Len() {
				start, end := r.Measured(i)
				first, last = min(first, start), max(last, end)
			}
			_, ends := replayStarts(r)
			for i, end := range ends {
				if _, measured := r.Measured(i); end != measured-first {
					late++
				}
			}
			if end := slices.Max(ends); end != last-first {
				t.Errorf("%s: rank %d ends at %v, measured %v; %d of %d ops differ", filepath.Base(folder), rank, end, last-first,
					late, len(ends))
			} else if late > 0 {
				t.Logf("%s: rank %d: %d of %d ops differ", filepath.Base(folder), rank, late, len(ends))
			}
		}
	}
}
