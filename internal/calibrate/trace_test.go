package calibrate

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/tracedag/tracedag/dag"
	"github.com/tracedag/tracedag/sim/fit"
)

// messageTrace builds a trace of messages from rank 0 to rank 1.
type messageTrace struct {
	*dag.Builder
	tag int64
}

// message adds a message that was sent and posted at times in ns, and the end of its receive. If the receive returns
// at once, the next op starts with it.
func (r *messageTrace) message(bytes int64, sent, posted, end dag.Time, returns bool) {
	r.tag++
	r.Rank(0).Measure(r.Rank(0).Send(1, bytes, r.tag), sent*dag.Nanosecond, sent*dag.Nanosecond)
	recv := r.Rank(1).Recv(0, bytes, r.tag)
	r.Rank(1).Measure(recv, posted*dag.Nanosecond, end*dag.Nanosecond)
	if returns {
		r.Rank(1).RequiresStart(r.Rank(1).Calc(0), recv)
	}
}

// TestFromTrace: the table has the lower envelope of receives that waited, and no other receives.
func TestFromTrace(t *testing.T) {
	r := &messageTrace{Builder: dag.NewBuilder(2)}
	now := dag.Time(0)
	for _, bytes := range []int64{0, 1000, 2000, 4000} {
		took := 2000 + dag.Time(bytes)
		for i := range dag.Time(40) {
			now += 1_000_000
			r.message(bytes, now, now-100, now+took+i*10, false) // contention: up to 390 ns
			r.message(bytes, now, now+10, now+20, false)         // late receive
			r.message(bytes, now, now-10, now+5, true)           // returns at once
		}
		r.message(bytes, now, now-100, now-50, false) // clocks differ
	}
	r.message(9000, now, now-1, now+11000, false)
	table, err := FromTrace(context.Background(), r.Trace(), Options{})
	if err != nil {
		t.Fatal(err)
	}
	if len(table.Rows) != 5 {
		t.Fatalf("found %v, expected five sizes", table.Rows)
	}
	for _, m := range table.Rows {
		// The 5 % quantile of 40 samples is the third one.
		want := float64(2000+m.Bytes+20) * 1e-9
		if m.Bytes == 9000 {
			want = 11e-6
		}
		if m.Test != fit.PingPong || m.Where != "" || m.Seconds < want*(1-1e-9) || m.Seconds > want*(1+1e-9) {
			t.Errorf("found %v, expected %g s", m, want)
		}
	}
	table.Name = "x.parquet"
	f, err := Estimate(context.Background(), []*fit.Table{table}, Options{Seed: 1, Threads: 1})
	if err != nil {
		t.Fatal(err)
	}
	remarks := strings.Join(f.Remarks, "\n")
	for _, want := range []string{"x.parquet: times of a trace instead of a ping-pong", "of 161 receives that waited",
		"1 of 5 sizes have fewer than 20", "4 receives end before their sends start"} {
		if !strings.Contains(remarks, want) {
			t.Errorf("remarks %s, expected %q", remarks, want)
		}
	}
	if g := f.Segments[0].Parameters["G"].Value; g < 0.99e-9 || g > 1.01e-9 {
		t.Errorf("G is %g s/B, expected 1 ns/B", g)
	}
	_, err = Estimate(context.Background(), []*fit.Table{table}, Options{Backend: "packet", Topology: "star:hosts=2"})
	if err == nil || !strings.Contains(err.Error(), "x.parquet: expected times with places") {
		t.Errorf("packet: error %v", err)
	}
	_, err = FromTrace(context.Background(), r.Trace(), Options{Backend: "packet"})
	if err == nil || !strings.Contains(err.Error(), "expected the backend loggops or flow for the times of a trace") {
		t.Errorf("packet: error %v", err)
	}
}

// TestFromTraceErrors checks traces that have no times of messages.
func TestFromTraceErrors(t *testing.T) {
	b := dag.NewBuilder(2)
	b.Rank(0).Send(1, 8, 0)
	b.Rank(1).Recv(0, 8, 0)
	if _, err := FromTrace(context.Background(), b.Trace(), Options{}); !errors.Is(err, ErrUnmeasured) {
		t.Errorf("unmeasured: error %v", err)
	}
	r := &messageTrace{Builder: dag.NewBuilder(2)}
	r.message(8, 100, 200, 300, false)
	if _, err := FromTrace(context.Background(), r.Trace(), Options{}); err == nil ||
		!strings.Contains(err.Error(), "found none") {
		t.Errorf("late receive: error %v", err)
	}
	r = &messageTrace{Builder: dag.NewBuilder(2)}
	r.message(8, 100, 50, 300, false)
	r.Rank(1).Recv(dag.AnySource, 8, 0)
	if _, err := FromTrace(context.Background(), r.Trace(), Options{}); err == nil ||
		!strings.Contains(err.Error(), "any source") {
		t.Errorf("any source: error %v", err)
	}
}
