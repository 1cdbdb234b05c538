package storage

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"testing"

	"github.com/tracedag/tracedag/dag"
	"github.com/tracedag/tracedag/sim/ideal"
	"github.com/tracedag/tracedag/sim/loggops"
)

// randomRecords returns records of all kinds: several units with gaps between their numbers, equal times, and accesses
// of 0 bytes, within a slice, at its bounds and over several slices of 1 MiB.
func randomRecords(seed uint64, n int) []record {
	rng := rand.New(rand.NewPCG(seed, 0))
	units := []int32{0, 1, 2, 5, 9}
	records := make([]record, n)
	time := dag.Time(rng.Int64N(2)) * dag.Second
	for i := range records {
		time += dag.Time(rng.Int64N(3)*rng.Int64N(50_000_001)) * 7
		records[i] = record{
			unit: units[rng.IntN(len(units))], address: rng.Int64N(1<<14) * 512, bytes: rng.Int64N(9) * 512,
			write: rng.IntN(2) == 0, time: time,
		}
		switch rng.IntN(10) {
		case 0:
			records[i].address &^= 1<<20 - 1
		case 1:
			records[i].bytes = rng.Int64N(6 << 20)
		case 2:
			records[i].bytes = 1<<20 - records[i].address%(1<<20)
		}
	}
	return records
}

var choices = []string{
	"directdrive",
	"directdrive:order=timed,lookup=none",
	"directdrive:order=window:3,place=spread,quorum=2,space=shared",
	"directdrive:order=none,replicas=64,read-replica=random:7",
	"directdrive:mount=off,replicas=1,read-replica=first,header=42",
	"directdrive:slice=64KiB,n_slb=2,n_gs=3,n_mds=2,n_ccs=3,n_bss=5,replicas=5,order=timed",
	"directdrive:compat",
	"directdrive:compat,order=none,place=spread,n_bss=4,n_ccs=2,slice=4KiB",
	"directdrive:compat,order=window:2",
}

// TestProperties checks on random traces that the lowered trace is valid, completes and is deterministic, and that its
// messages, calcs and bytes match the formulas of docs/reference/storage.md.
func TestProperties(t *testing.T) {
	seeds := uint64(20)
	if testing.Short() {
		seeds = 3
	}
	for seed := range seeds {
		records := randomRecords(seed, 60)
		tr := traceOf(records...)
		for _, text := range choices {
			lowered, report := mustLower(t, tr, text)
			if problems := dag.Validate(lowered); len(problems) > 0 {
				t.Fatalf("seed %d, %s: %v", seed, text, problems[0])
			}
			again, _ := mustLower(t, tr, text)
			if !reflect.DeepEqual(lowered, again) {
				t.Fatalf("seed %d, %s: not the same twice", seed, text)
			}
			c := mustParse(t, text)
			if !c.arch.compat() {
				if want := expected(&c, records); *report != want {
					t.Errorf("seed %d, %s: the report is %+v, expected %+v", seed, text, *report, want)
				}
			}
			if calcs := report.Calcs + report.Gaps + report.Markers; 2*report.Messages+calcs != lowered.Ops() {
				t.Errorf("seed %d, %s: %d ops for %+v", seed, text, lowered.Ops(), *report)
			}
			checkLabels(t, fmt.Sprintf("seed %d, %s", seed, text), lowered, records)
			for _, run := range []func(testing.TB, *dag.Trace) dag.Time{runStrict, runIdeal} {
				run(t, lowered)
			}
		}
	}
}

// expected returns the report by the formulas.
func expected(c *Choice, records []record) Report {
	d := c.arch.(*directDrive)
	var e Report
	message := func(bytes int64) {
		e.Messages++
		e.SendBytes += bytes + c.common.header
	}
	calc := func(ns int64) {
		e.Calcs++
		e.CalcNS += ns
	}
	hosts := map[int32]bool{}
	before := map[int32][]int64{} // parts of the records of each host
	for _, r := range records {
		if !hosts[r.unit] {
			hosts[r.unit] = true
			if d.mounts {
				for range 6 {
					message(4096)
				}
				calc(683)
			}
		}
		parts := int64(0)
		for start, left := r.address, r.bytes; left > 0; parts++ {
			bytes := min(left, d.slice-start%d.slice)
			start += bytes
			left -= bytes
			switch {
			case r.write:
				message(bytes)
				message(4096)
				calc((2*bytes + 2) / 3)
				for range d.replicas {
					message(bytes)
					message(1024)
					calc((2*bytes + 2) / 3)
				}
			default:
				if d.lookup == "ccs" {
					message(1024)
					message(4096)
					calc(683)
				}
				message(1024)
				message(bytes)
				calc((bytes + 5) / 6)
			}
		}
		e.SliceOps += parts
		if c.common.order.kind == "timed" {
			e.Gaps++
		}
		await := int64(0)
		switch distance := c.common.order.distance(); {
		case c.common.order.kind == "timed" && d.mounts:
			await = 2
		case distance > 0 && len(before[r.unit]) >= distance:
			await = before[r.unit][len(before[r.unit])-distance]
		case d.mounts:
			await = 1
		}
		if parts == 0 || parts*await > parts+await+1 {
			e.Markers++
		}
		before[r.unit] = append(before[r.unit], max(1, parts))
	}
	e.Ranks = int64(len(hosts)) + d.slb + d.gs + d.mds + d.ccs + d.bss
	return e
}

// checkLabels checks that every record has equally many issuing and ending ops on its host, or a marker.
func checkLabels(t *testing.T, where string, tr *dag.Trace, records []record) {
	t.Helper()
	opens, ends := make([]int, len(records)), make([]int, len(records))
	for rank := range tr.Ranks {
		r := tr.Ranks[rank]
		for i := range r.Len() {
			attrs := r.Attrs.At(i)
			if attrs == "" {
				continue
			}
			n := -1
			if _, err := fmt.Sscanf(attrs, `{"io":%d`, &n); err != nil || n < 0 || n >= len(records) {
				t.Fatalf("%s: rank %d, op %d has attributes %s", where, rank, i, attrs)
			}
			switch r.Kind[i] {
			case dag.Send:
				opens[n]++
			case dag.Recv:
				ends[n]++
			default:
				opens[n]++
				ends[n]++
			}
		}
	}
	for n := range records {
		if opens[n] == 0 || opens[n] != ends[n] {
			t.Fatalf("%s: %d ops issue record %d, %d end it", where, opens[n], n, ends[n])
		}
	}
}

// runStrict returns the makespan of a trace on LogGOPS with its usual parameters.
func runStrict(t testing.TB, tr *dag.Trace) dag.Time {
	t.Helper()
	compiled, err := loggops.Compile(dag.FromTrace(tr), loggops.Strict, t.Errorf)
	if err != nil {
		t.Fatal(err)
	}
	params, err := loggops.Preset("default")
	if err != nil {
		t.Fatal(err)
	}
	result, err := compiled.Run(loggops.Options{Params: params})
	if err != nil {
		t.Fatal(err)
	}
	if !result.Complete {
		t.Fatalf("%d ops never run on LogGOPS", result.NeverRun)
	}
	return dag.Time(result.Makespan.Ticks)
}

// runIdeal returns the makespan of a trace without network.
func runIdeal(t testing.TB, tr *dag.Trace) dag.Time {
	t.Helper()
	compiled, err := ideal.Compile(dag.FromTrace(tr))
	if err != nil {
		t.Fatal(err)
	}
	result, err := compiled.Run(ideal.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if !result.Complete {
		t.Fatalf("%d ops never run", result.NeverRun)
	}
	return dag.Time(result.Makespan.Ticks)
}

// LogGOPS parameters of runStrict.
const (
	latency  = 2500 * dag.Nanosecond
	overhead = 1500 * dag.Nanosecond
	perByte  = 6 * dag.Nanosecond
	eager    = 65535
)

// travel returns the time of a message between two idle ranks.
func travel(bytes int64) dag.Time {
	t := overhead + latency + dag.Time(bytes-1)*perByte + overhead
	if bytes > eager {
		t += 2 * latency // request and reply
	}
	return t
}

// TestLatency compares the latency of single accesses on LogGOPS with a calculation by hand.
func TestLatency(t *testing.T) {
	const later = dag.Second
	for _, bytes := range []int64{1, 512, 8192, 65535, 65536, 1 << 20} {
		read := travel(1024) + 683*dag.Nanosecond + travel(4096) +
			travel(1024) + dag.Time((bytes+5)/6)*dag.Nanosecond + travel(bytes)
		short := travel(1024) + dag.Time((bytes+5)/6)*dag.Nanosecond + travel(bytes)
		service := dag.Time((2*bytes+2)/3) * dag.Nanosecond
		write := travel(bytes) + service + travel(bytes) + service + travel(1024) + travel(4096)
		for _, c := range []struct {
			choice string
			write  bool
			want   dag.Time
		}{
			{"directdrive:mount=off", false, read},
			{"directdrive:mount=off,lookup=none", false, short},
			{"directdrive:mount=off,replicas=1", true, write},
			// The second of two accesses starts long after the mount.
			{"directdrive:order=timed", false, read + later},
			{"directdrive:order=timed,lookup=none", false, short + later},
		} {
			records := []record{{bytes: bytes, write: c.write}}
			if c.want > later {
				records = []record{{bytes: 512}, {bytes: bytes, time: later}}
			}
			lowered, _ := mustLower(t, traceOf(records...), c.choice)
			if got := runStrict(t, lowered); got != c.want {
				t.Errorf("%d bytes, write %t, %s: %v, expected %v", bytes, c.write, c.choice, got, c.want)
			}
		}
	}
}

// TestIdeal compares makespans without a network with sums of service times.
func TestIdeal(t *testing.T) {
	tr := traceOf(record{bytes: 4096}, record{address: 4096, bytes: 6000, time: dag.Millisecond},
		record{unit: 3, bytes: 300, write: true, time: 5 * dag.Millisecond},
		record{unit: 3, bytes: 0, time: 7 * dag.Millisecond})
	const mount, lookup = 683 * dag.Nanosecond, 683 * dag.Nanosecond
	for choice, want := range map[string]dag.Time{
		"directdrive":             mount + 2*lookup + (683+1000)*dag.Nanosecond,
		"directdrive:lookup=none": mount + (683+1000)*dag.Nanosecond,
		"directdrive:order=timed": 7 * dag.Millisecond,
		"directdrive:order=none":  mount + lookup + 1000*dag.Nanosecond,
	} {
		lowered, _ := mustLower(t, tr, choice)
		if got := runIdeal(t, lowered); got != want {
			t.Errorf("%s: %v, expected %v", choice, got, want)
		}
	}
}
