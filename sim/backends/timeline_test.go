package backends_test

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tracedag/tracedag/dag"
	"github.com/tracedag/tracedag/sim"
	"github.com/tracedag/tracedag/sim/timeline"
)

// timelineOf runs a trace and returns its timeline in a format.
func timelineOf(t *testing.T, c *configuration, ending string, o timeline.Options) []byte {
	t.Helper()
	var b bytes.Buffer
	w := timeline.New(&b, ending, o)
	if _, err := c.compile(t, o.Trace).Run(sim.RunOptions{Timeline: w}); err != nil {
		t.Fatal(err)
	}
	w.About = map[string]string{"run": "it"}
	if err := w.End(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// collectiveMessages gives a part of the messages of a trace the tags of collectives, and some ops names.
func collectiveMessages(r *rand.Rand, trace *dag.Trace) *dag.Trace {
	shift := int64(r.IntN(3))
	for _, rank := range trace.Ranks {
		for i := range rank.Kind {
			if tag := rank.Tag.At(i); rank.Kind[i] != dag.Calc && tag >= 3 {
				rank.Tag.Set(i, dag.CollectiveTag-tag-shift)
			}
			if i%5 == 2 {
				rank.Name.Append(i, []string{"gemm", "a \"b\"\\\n\x01", "\xff\xfe", "日本"}[i%4])
			}
		}
	}
	return trace
}

// TestTimelineFormats checks, on every backend, that both formats have the same slices, arrows and description, that
// equal runs have equal bytes, and the rules of slices: they do not overlap on a row, each message begins not before its
// send and is on time, and each receive ends not before its message.
func TestTimelineFormats(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 8))
	for range 3 {
		trace := collectiveMessages(r, phases(r, 5))
		forAll(t, func(t *testing.T, c *configuration) {
			o := timeline.Options{Trace: trace}
			chrome, native := timelineOf(t, c, ".json", o), timelineOf(t, c, ".pftrace", o)
			if !bytes.Equal(chrome, timelineOf(t, c, ".json", o)) || !bytes.Equal(native, timelineOf(t, c, ".pftrace", o)) {
				t.Error("equal runs have different timelines")
			}
			zip, err := gzip.NewReader(bytes.NewReader(timelineOf(t, c, ".json.gz", o)))
			if err != nil {
				t.Fatal(err)
			}
			if unzipped, err := io.ReadAll(zip); err != nil || !bytes.Equal(unzipped, chrome) {
				t.Errorf("the compressed form differs, error %v", err)
			}
			if len(native) > len(chrome)/2 {
				t.Errorf(".pftrace has %d bytes, .json %d", len(native), len(chrome))
			}
			a, b := decodeChrome(t, chrome).sorted(), decodePerfetto(t, native).sorted()
			if len(a.slices) != len(b.slices) || a.about != b.about || a.about != `{"run":"it"}` {
				t.Fatalf("%d and %d slices, %s and %s", len(a.slices), len(b.slices), a.about, b.about)
			}
			for i := range a.slices {
				if x, y := a.slices[i].key(), b.slices[i].key(); x != y {
					t.Fatalf("slice in JSON: %s\nin pftrace: %s", x, y)
				}
			}
			checkMessages(t, c, trace, b)
		})
	}
}

// checkMessages checks the slices of messages with their sends and receives.
func checkMessages(t *testing.T, c *configuration, trace *dag.Trace, d *drawn) {
	t.Helper()
	byFlow := map[string]drawnSlice{}
	for _, s := range d.slices {
		if s.flow == "" {
			continue
		}
		if _, twice := byFlow[s.flow]; twice {
			t.Errorf("two slices of arrow %s", s.flow)
		}
		byFlow[s.flow] = s
	}
	sends := 0
	for rank, ops := range trace.Ranks {
		for i := range ops.Kind {
			if ops.Kind[i] != dag.Send {
				continue
			}
			sends++
			want := fmt.Sprintf("op=%d peer=%d bytes=%d tag=%d ", i, ops.Peer.At(i), ops.Bytes.At(i), ops.Tag.At(i))
			at := slices.IndexFunc(d.slices, func(s drawnSlice) bool {
				return s.cat == "message" && s.track == fmt.Sprintf("rank %d/NIC %d", rank, ops.NIC.At(i)) && s.args == want
			})
			if at < 0 {
				t.Fatalf("rank %d: no message %s", rank, want)
			}
			message := d.slices[at]
			id := message.flow[1:]
			send, recv := byFlow["s"+id], byFlow["f"+id]
			if send.args != want || send.start > message.start {
				t.Errorf("send %+v of message %+v", send, message)
			}
			late := c.backend == "loggops" && c.wraps && recv.flow == "" // has no arrow there
			if !late && (recv.cat != "recv" || recv.start < message.start || recv.end < message.end) {
				t.Errorf("receive %+v of message %+v", recv, message)
			}
			if tag := ops.Tag.At(i); tag <= dag.CollectiveTag {
				if name := fmt.Sprintf("collective #%d", dag.CollectiveTag-tag); message.name != name || send.name != name {
					t.Errorf("message %+v of send %+v: expected the name %s", message, send, name)
				}
			}
		}
	}
	if len(byFlow) > 3*sends {
		t.Errorf("%d slices with arrows for %d messages", len(byFlow), sends)
	}
	for _, s := range d.slices {
		if s.cat != "message" && s.cat != "collective" && s.cat != "wait" {
			continue
		}
		if s.end < s.start || strings.HasPrefix(s.track, "/") {
			t.Errorf("slice %+v", s)
		}
	}
}

// TestTimelineFilters checks that filters keep the slices of ranks and of a window and nothing else.
func TestTimelineFilters(t *testing.T) {
	r := rand.New(rand.NewPCG(9, 10))
	trace := collectiveMessages(r, phases(r, 6))
	forAll(t, func(t *testing.T, c *configuration) {
		all := decodePerfetto(t, timelineOf(t, c, ".pftrace", timeline.Options{Trace: trace})).sorted()
		window := timeline.Window{From: 3 * dag.Microsecond, To: 9 * dag.Microsecond}
		o := timeline.Options{Trace: trace, Ranks: []int{1, 4}, Window: &window}
		part := decodePerfetto(t, timelineOf(t, c, ".pftrace", o)).sorted()
		var want []string
		for _, s := range all.slices {
			if strings.HasPrefix(s.track, "rank 1/") || strings.HasPrefix(s.track, "rank 4/") {
				if s.start < 9000 && s.end >= 3000 { // ends in the last nanosecond may be outside
					want = append(want, s.key())
				}
			}
		}
		var got []string
		for _, s := range part.slices {
			if s.start < 9000 {
				got = append(got, s.key())
			} else if s.start > 9000 {
				t.Errorf("slice %+v", s)
			}
		}
		slices.Sort(want)
		slices.Sort(got)
		if !slices.Equal(got, want) {
			t.Errorf("%d slices, expected %d", len(got), len(want))
		}
	})
}

// TestTimelineOfAnotherTrace: a timeline whose trace is not the one that runs has an error, not slices of wrong ops.
func TestTimelineOfAnotherTrace(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	trace, other := phases(r, 4), phases(r, 3)
	for want, o := range map[string]timeline.Options{
		"expected the ":             {Trace: other},
		"expected 0 to 3, found 4":  {Trace: trace, Ranks: []int{0, 4}},
		"expected 0 to 3, found -1": {Trace: trace, Ranks: []int{-1}},
	} {
		w := timeline.New(io.Discard, ".json", o)
		c := &configuration{backend: "packet", params: []string{"topology=star:hosts=4", "sample=1us"}}
		if _, err := c.compile(t, trace).Run(sim.RunOptions{Timeline: w}); err != nil {
			t.Fatal(err)
		}
		if err := w.End(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v", err)
		}
	}
}

// TestNetworkOnTimelines checks failures and counters of the packet backend: queues and flows end at 0, utilization is
// a percentage, and both formats agree.
func TestNetworkOnTimelines(t *testing.T) {
	b := dag.NewBuilder(4)
	for rank := 1; rank < 4; rank++ {
		b.Rank(rank).Send(0, 1<<20, int64(rank))
		b.Rank(0).Recv(int32(rank), 1<<20, int64(rank))
	}
	c := &configuration{backend: "packet", params: []string{"topology=fattree:k=4", "sample=10us",
		"fail=tor0-agg0@20us..50us", "fail=tor0-agg1@30us:1Gbps"}}
	o := timeline.Options{Trace: b.Trace()}
	chrome := decodeChrome(t, timelineOf(t, c, ".json", o)).sorted()
	native := decodePerfetto(t, timelineOf(t, c, ".pftrace", o)).sorted()
	want := []string{"20000 tor0-agg0 failed", "30000 tor0-agg1 slowed to 1Gbps", "50000 tor0-agg0 restored"}
	if !slices.Equal(chrome.marks, want) || !slices.Equal(native.marks, want) {
		t.Errorf("marks %q and %q, expected %q", chrome.marks, native.marks, want)
	}
	if len(chrome.counters) == 0 || len(chrome.counters) != len(native.counters) {
		t.Errorf("%d and %d values of counters", len(chrome.counters), len(native.counters))
	}
	last, times := map[string]string{}, map[string]int64{}
	for _, value := range native.counters {
		var at, whole int64
		var bits uint64
		words := strings.Fields(value) // time, name, value as a whole number and as a fraction
		_, err := fmt.Sscan(words[0]+" "+words[len(words)-2], &at, &whole)
		_, err2 := fmt.Sscanf(words[len(words)-1], "%x", &bits)
		if err != nil || err2 != nil {
			t.Fatalf("%q: %v, %v", value, err, err2)
		}
		key := strings.Join(words[1:len(words)-2], " ")
		if at >= times[key] {
			last[key], times[key] = fmt.Sprint(whole, bits), at
		}
		if strings.HasPrefix(key, "network/utilization") && (whole > 100 || math.Float64frombits(bits) > 100) {
			t.Errorf("%s", value)
		}
	}
	for key, value := range last {
		if value != "0 0" {
			t.Errorf("%s ends with %s", key, value)
		}
	}
	if _, sampled := last["network/flows in flight"]; !sampled {
		t.Errorf("no number of flows in %v", last)
	}
}

// TestLargeTimeline writes a million slices and reads them back. It reports the cost per slice.
func TestLargeTimeline(t *testing.T) {
	if os.Getenv("TRACEDAG_LONG") == "" {
		t.Skip("takes 20 s; runs with TRACEDAG_LONG=1")
	}
	const ranks, rounds = 64, 4000
	b := dag.NewBuilder(ranks)
	last := make([]int, ranks)
	for rank := range ranks {
		last[rank] = b.Rank(rank).Calc(dag.Microsecond)
	}
	for round := range rounds {
		for rank := range ranks {
			to := (rank + 1) % ranks
			send := b.Rank(rank).Add(dag.Op{Kind: dag.Send, Peer: int32(to), Bytes: 4096, Tag: int64(round)}, last[rank])
			recv := b.Rank(rank).Add(dag.Op{Kind: dag.Recv, Peer: int32((rank + ranks - 1) % ranks), Bytes: 4096,
				Tag: int64(round)}, last[rank])
			last[rank] = b.Rank(rank).Add(dag.Op{Duration: dag.Microsecond}, send, recv)
		}
	}
	trace := b.Trace()
	c := &configuration{backend: "loggops"}
	began := time.Now()
	if _, err := c.compile(t, trace).Run(sim.RunOptions{}); err != nil {
		t.Fatal(err)
	}
	without := time.Since(began)
	numbers := map[string]int{}
	for _, ending := range []string{".json", ".json.gz", ".pftrace"} {
		began := time.Now()
		content := timelineOf(t, c, ending, timeline.Options{Trace: trace})
		took := time.Since(began)
		switch ending {
		case ".json":
			numbers[ending] = len(decodeChrome(t, content).slices)
		case ".pftrace":
			numbers[ending] = len(decodePerfetto(t, content).slices)
		}
		n := max(numbers[".json"], 1)
		t.Logf("%s: %d slices, %d bytes each, %d ns each (the run alone: %v)", ending, n, len(content)/n,
			(took-without).Nanoseconds()/int64(n), without)
	}
	if numbers[".json"] < 1_000_000 || numbers[".json"] != numbers[".pftrace"] {
		t.Errorf("slices %v", numbers)
	}
}
