package flow

import (
	"slices"
	"strings"
	"testing"

	"github.com/tracedag/tracedag/dag"
	"github.com/tracedag/tracedag/sim"
)

// TestOverheads checks that the entry with the largest size below the argument applies, or the first.
func TestOverheads(t *testing.T) {
	var s smpi
	if err := s.setOverheads(&s.send)("8192:2e-6;100:1e-6:1e-10:0"); err != nil {
		t.Fatal(err)
	}
	for bytes, want := range map[uint64]uint64{0: 1_000_000, 100: 1_010_000, 8192: 1_819_200, 8193: 2_000_000} {
		if got := s.send.at(bytes); got != want {
			t.Errorf("%d bytes take %d ps, expected %d", bytes, got, want)
		}
	}
	if got := overheads(nil).at(5); got != 0 {
		t.Errorf("without a table: %d ps", got)
	}
	if text := s.send.String(); text != "100:1e-06:1e-10;8192:2e-06:0" {
		t.Errorf("printed as %s", text)
	}
}

// TestFactorTable checks that factors at a size are those of the entry before, and 1 below the first entry.
func TestFactorTable(t *testing.T) {
	b := newBackend()
	if err := b.setBandwidths("10:0.5;20:0.25"); err != nil {
		t.Fatal(err)
	}
	if err := b.setModel("smpi"); err != nil { // keeps the table
		t.Fatal(err)
	}
	for bytes, want := range map[uint64]float64{10: 1, 11: 0.5, 20: 0.5, 21: 0.25} {
		if _, got := b.model.factors(bytes); got != want {
			t.Errorf("%d bytes: factor %g, expected %g", bytes, got, want)
		}
	}
	if latency, _ := b.model.factors(300); latency != 1.95341 {
		t.Errorf("latency factor %g, expected that of the model", latency)
	}
}

// TestBadTables checks that tables with errors are refused.
func TestBadTables(t *testing.T) {
	for _, text := range []string{"", "5", "5:", "x:1", "-1:1", "0:-1", "0:nan", "0:inf", "0:1e9", "0:0:0:1", "5:1;5:2",
		"0:1;;5:1", "18446744073709551615:1"} {
		if table, err := parseTable(text, 2, 0, largestSeconds); err == nil {
			t.Errorf("%q is read as %v", text, table)
		}
	}
	if _, err := parseFactors("0:0", 1/largestFactor); err == nil {
		t.Error("no error for a bandwidth factor of 0")
	}
}

// FuzzTable checks that tables are in ascending order and have values in range.
func FuzzTable(f *testing.F) {
	f.Add("0:1e-6:2e-11;16384:5e-7:0")
	f.Add("0:0:0:0:0")
	f.Fuzz(func(t *testing.T, text string) {
		table, err := parseTable(text, 2, 0, largestSeconds)
		if err != nil {
			return
		}
		if len(table) == 0 {
			t.Fatal("an empty table")
		}
		for i, e := range table {
			if i > 0 && e.from <= table[i-1].from || len(e.values) == 0 ||
				!(slices.Min(e.values) >= 0 && slices.Max(e.values) <= largestSeconds) {
				t.Errorf("entry %d of %v", i, table)
			}
		}
	})
}

// TestParseOptions checks the forms of lines, and the number of a line with an error.
func TestParseOptions(t *testing.T) {
	got, err := parseOptions("# machine\r\n\n--cfg=smpi/os:0:1e-6:0\r\n smpi/async-small-thresh:65536\n")
	want := []option{{3, "smpi/os", "0:1e-6:0"}, {4, "smpi/async-small-thresh", "65536"}}
	if err != nil || !slices.Equal(got, want) {
		t.Errorf("read as %v (%v), expected %v", got, err, want)
	}
	for _, text := range []string{"smpi/os:0:0\nsmpi/os", "\n:5", "\nsmpi/os=5:1"} {
		if _, err := parseOptions(text); err == nil || !strings.HasPrefix(err.Error(), "line 2: ") {
			t.Errorf("%q: error %v", text, err)
		}
	}
}

// FuzzOptions checks that files of options never fail with a panic, and that their names are words.
func FuzzOptions(f *testing.F) {
	f.Add("--cfg=smpi/os:0:1e-6:0\n# x\nsmpi/wtime:0")
	f.Fuzz(func(t *testing.T, text string) {
		options, err := parseOptions(text)
		if err != nil {
			return
		}
		for _, o := range options {
			if o.name == "" || strings.ContainsAny(o.name, " :\n") || o.line < 1 {
				t.Errorf("option %+v", o)
			}
		}
	})
}

// TestSendCalls checks which sends are non-blocking, and which are copies.
func TestSendCalls(t *testing.T) {
	b := dag.NewBuilder(2)
	r := b.Rank(0)
	start := r.Calc(0)
	blocking := r.Send(1, 8, 0, start)
	isend := r.Send(1, 8, 1, blocking)
	next := r.Calc(dag.Microsecond)
	r.RequiresStart(next, isend)
	wait := r.Calc(0, next, isend)
	exchange := r.Send(1, 8, 2, wait) // with the receive, as in MPI_Sendrecv
	back := r.Recv(1, 8, 3, wait)
	end := r.Calc(0, exchange, back)
	last := r.Send(1, 8, 4, end)
	other := r.Add(dag.Op{Kind: dag.Send, Peer: 1, Bytes: 8, Tag: 5, Stream: 1}, end) // on another stream
	self := r.Send(0, 8, 6, last)                                                     // MPI_Sendrecv with itself
	selfBack := r.Recv(0, 8, 7, last)
	toSelf := r.Send(0, 8, 8, self, selfBack) // its receive is from any rank
	r.Recv(dag.AnySource, 8, 8, self, selfBack)
	p, err := sim.Compile(dag.FromTrace(b.Trace()), sim.CompileOptions{DenseStreams: true})
	if err != nil {
		t.Fatal(err)
	}
	calls := sendCalls(p)
	for op, want := range map[int]sendCall{blocking: waits, isend: returns, exchange: returns, last: waits,
		other: waits, self: copies, toSelf: returns} {
		if calls[op] != want {
			t.Errorf("op %d: call %v, expected %v", op, calls[op], want)
		}
	}
}
