package measure

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/tracedag/tracedag/dag"
	"github.com/tracedag/tracedag/sim"
)

// accessTrace returns a lowered trace: n reads of 4096 B of unit 3 on rank 1, with a send and a receive each, a write of
// 10 B of unit 4 on rank 0, and an access without a record, whose number is high.
func accessTrace(n int) *dag.Trace {
	b := dag.NewBuilder(2)
	for i := range n {
		b.Rank(1).Add(dag.Op{Kind: dag.Send, Attrs: fmt.Sprintf(`{"io":%d,"read":4096,"unit":3}`, i)})
		b.Rank(1).Add(dag.Op{Kind: dag.Recv, Attrs: fmt.Sprintf(`{"io":%d}`, i)})
	}
	b.Rank(0).Add(dag.Op{Kind: dag.Send, Attrs: fmt.Sprintf(`{"io":%d,"write":10,"unit":4}`, n)})
	b.Rank(0).Add(dag.Op{Kind: dag.Calc, Attrs: `{"io":4294967295}`})
	return b.Trace()
}

// observe runs accesses of a trace: read k of n from 10 to 11+k ns, and the write from 0 to 5 ns.
func observe(n int, complete bool) (*sim.Result, string) {
	var list strings.Builder
	a := Accesses(accessTrace(n), &list, true)
	a.Begin(&sim.Layout{Unit: dag.Nanosecond, Start: []uint32{0, 2, uint32(2 + 2*n)}})
	for k := range uint32(n) {
		a.Span(sim.Span{Kind: sim.RecvSpan, Rank: 1, Op: 2 + 2*k + 1, Start: 10, End: 11 + uint64(k)})
		if complete || k%2 == 0 { // otherwise, its send did not run
			a.Span(sim.Span{Kind: sim.SendSpan, Rank: 1, Op: 2 + 2*k, Start: 10, End: 11})
			a.Span(sim.Span{Kind: sim.WaitSpan, Rank: 1, Op: 2 + 2*k, Start: 0, End: 1 << 40})
		}
	}
	a.Span(sim.Span{Kind: sim.SendSpan, Rank: 0, Op: 0, Start: 0, End: 5})
	r := &sim.Result{Complete: complete}
	a.Finish(r)
	return r, list.String()
}

// rowsOf returns the rows of a table of a result as text.
func rowsOf(t *testing.T, r *sim.Result, key string) (rows []string) {
	t.Helper()
	section := r.Section(key)
	if section == nil {
		t.Fatalf("no section %s", key)
	}
	text, err := sim.MarshalJSON(section.Value)
	if err != nil {
		t.Fatal(err)
	}
	var table struct{ Rows []json.RawMessage }
	if err := json.Unmarshal(text, &table); err != nil {
		t.Fatal(err)
	}
	for _, row := range table.Rows {
		rows = append(rows, string(row))
	}
	return rows
}

// TestAccesses compares latencies with ones worked out by hand: 1 to 1000 ns for the reads.
func TestAccesses(t *testing.T) {
	r, list := observe(1000, true)
	const reads = `1000,500500,500000,950000,990000,999000,1000000]`
	const write = `1,5000,5000,5000,5000,5000,5000]`
	for key, want := range map[string][]string{
		"io_latency_by_kind": {`["read",` + reads, `["write",` + write},
		"io_latency_by_size": {`["read","1kB..10kB",1001,10000,` + reads, `["write","1B..10B",2,10,` + write},
		"io_latency_by_host": {`[0,2,2500,0,5000,5000,5000,5000]`, `[1,` + reads},
		"io_latency_by_unit": {`[3,` + reads, `[4,` + write},
		"io_latency_histogram": {
			`["0s..1ps",0,1,0,0,1]`, `["1ns..2ns",1000,2000,1,0,1]`, `["2ns..5ns",2000,5000,3,0,3]`,
			`["5ns..10ns",5000,10000,5,1,6]`, `["10ns..20ns",10000,20000,10,0,10]`, `["20ns..50ns",20000,50000,30,0,30]`,
			`["50ns..100ns",50000,100000,50,0,50]`, `["100ns..200ns",100000,200000,100,0,100]`,
			`["200ns..500ns",200000,500000,300,0,300]`, `["500ns..1us",500000,1000000,500,0,500]`,
			`["1us..2us",1000000,2000000,1,0,1]`,
		},
	} {
		got := slices.DeleteFunc(rowsOf(t, r, key), func(row string) bool { return strings.HasSuffix(row, ",0,0,0]") })
		if !slices.Equal(got, want) {
			t.Errorf("%s: %q, expected %q", key, got, want)
		}
	}
	text, _ := sim.MarshalJSON(r.Section("io_latency").Value)
	if want := `{"count":1002,"mean_ps":499506,"p50_ps":499000,"p99_ps":990000,"p99.9_ps":999000,"max_ps":1000000}`; string(text) != want {
		t.Errorf("%s, expected %s", text, want)
	}
	lines := strings.Split(list, "\n")
	for i, want := range map[int]string{
		0: "access,host,unit,kind,bytes,start_ps,latency_ps", 1: `0,1,3,"read",4096,10000,1000`,
		1001: `1000,0,4,"write",10,0,5000`, 1002: "4294967295,0,,,,,0", 1003: "",
	} {
		if lines[i] != want {
			t.Errorf("line %d: %s, expected %s", i+1, lines[i], want)
		}
	}
}

// TestAccessesOfIncompleteRuns checks that an access counts only if all of its messages have ended.
func TestAccessesOfIncompleteRuns(t *testing.T) {
	r, list := observe(4, false)
	want := []string{`["read",2,2000,1000,3000,3000,3000,3000]`, `["write",1,5000,5000,5000,5000,5000,5000]`}
	if got := rowsOf(t, r, "io_latency_by_kind"); !slices.Equal(got, want) {
		t.Errorf("%q, expected %q", got, want)
	}
	for _, line := range []string{`1,1,3,"read",4096,10000,`, `2,1,3,"read",4096,10000,3000`, "4294967295,0,,,,,"} {
		if !slices.Contains(strings.Split(list, "\n"), line) {
			t.Errorf("%s lacks %s", list, line)
		}
	}
}
