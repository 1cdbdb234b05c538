package flow_test

import (
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/tracedag/tracedag/dag"
	"github.com/tracedag/tracedag/dag/attr"
	"github.com/tracedag/tracedag/dag/lower/collective"
	_ "github.com/tracedag/tracedag/internal/testheap"
	"github.com/tracedag/tracedag/sim"
	"github.com/tracedag/tracedag/sim/backends"
)

// message is a message from a time on.
type message struct {
	from, to int
	bytes    int64
	at       dag.Time
}

// traceOf returns a trace of messages between the given number of ranks.
func traceOf(ranks int, messages ...message) *dag.Trace {
	b := dag.NewBuilder(ranks)
	for i, m := range messages {
		b.Rank(m.from).Send(int32(m.to), m.bytes, int64(i), b.Rank(m.from).Calc(m.at))
		b.Rank(m.to).Recv(int32(m.from), m.bytes, int64(i))
	}
	return b.Trace()
}

// ends runs a trace and returns the completion of each flow, in the order of their starts.
func ends(t *testing.T, trace *dag.Trace, set ...string) (all []dag.Time) {
	t.Helper()
	r, err := backends.Run(trace, "flow", backends.Set(set...))
	if err != nil || !r.Complete {
		t.Fatal(set, err)
	}
	var text strings.Builder
	r.Section("flows").Value.(*sim.Table).WriteCSV(&text)
	for _, line := range strings.Split(strings.TrimSpace(text.String()), "\n")[1:] {
		var f [7]int64
		for i, cell := range strings.Split(line, ",")[:len(f)] {
			var err error
			if f[i], err = strconv.ParseInt(cell, 10, 64); err != nil {
				t.Fatal(line, err)
			}
		}
		if f[4] < f[6] {
			t.Errorf("%v: flow %s is faster than alone", set, line)
		}
		all = append(all, dag.Time(f[3]+f[4]))
	}
	return all
}

// TestTimes compares completions with hand calculations. A byte takes 80 ps on a link of the star, and a path 2 us.
func TestTimes(t *testing.T) {
	const us, mb = dag.Microsecond, 1_000_000
	star := "topology=star:hosts=4,rate=100Gbps,latency=1us"
	spines := "topology=leafspine:hosts=4,tor=2,spines=2,rate=100Gbps/25Gbps,latency=1us"
	one := []message{{0, 1, mb, 0}}
	opposite := []message{{0, 1, mb, 0}, {1, 0, mb, 0}}
	across := []message{{0, 2, mb, 0}}
	for _, c := range []struct {
		name     string
		messages []message
		set      []string
		want     []dag.Time
	}{
		{"alone", one, []string{star}, []dag.Time{82 * us}},
		{"empty", []message{{0, 1, 0, 0}}, []string{star}, []dag.Time{2 * us}},
		{"switch latency", one, []string{star + ",switchlatency=3us"}, []dag.Time{85 * us}},
		{"two to one host", []message{{0, 2, mb, 0}, {1, 2, mb, 0}}, []string{star}, []dag.Time{162 * us, 162 * us}},
		{"the second starts later", []message{{0, 2, mb, 0}, {1, 2, mb, 40 * us}}, []string{star},
			[]dag.Time{122 * us, 162 * us}}, // half done, then half the rate; the second has half left at 122 us
		{"max-min: a third link is free for the rest", []message{{0, 2, mb, 0}, {1, 2, mb, 0}, {1, 3, mb, 0}},
			[]string{star}, []dag.Time{162 * us, 162 * us, 162 * us}},
		{"window", one, []string{star, "tcp-gamma=4000"}, []dag.Time{1002 * us}}, // 4000 B / (2 * 2 us) = 1 GB/s
		{"window of cm02", one, []string{star, "flow-model=cm02", "cross-traffic=on"}, []dag.Time{82 * us}},
		{"latency factor", one, []string{star, "latency-factor=10"}, []dag.Time{100 * us}},
		{"bandwidth factor", one, []string{star, "bandwidth-factor=0.8"}, []dag.Time{102 * us}},
		{"cross-traffic", opposite, []string{star, "cross-traffic=on"}, []dag.Time{86 * us, 86 * us}}, // C / 1.05
		{"opposite flows", opposite, []string{star}, []dag.Time{82 * us, 82 * us}},
		{"factors by size", one, []string{star, "flow-model=smpi", "bandwidth-factor=1"},
			[]dag.Time{80*us + 23287200}}, // 11.6436 * 2 us
		{"replaced factors by size", one, []string{star, "flow-model=smpi", "bandwidth-factor=1", "latency-factor=2"},
			[]dag.Time{84 * us}},
		{"weight by latency", []message{{0, 2, mb, 0}, {1, 2, mb, 0}},
			[]string{star, "flow-model=cm02", "cross-traffic=off"},
			[]dag.Time{162 * us, 162 * us}},
		{"spray", across, []string{spines}, []dag.Time{164 * us}}, // 50 Gb/s
		{"one path", across, []string{spines, "balance=flow"}, []dag.Time{324 * us}},
		{"fixed: one path per destination", []message{{0, 2, mb, 0}, {1, 3, mb, 0}}, []string{spines, "balance=fixed"},
			[]dag.Time{324 * us, 324 * us}},
		{"fixed: one destination", []message{{0, 2, mb, 0}, {1, 2, mb, 0}}, []string{spines, "balance=fixed"},
			[]dag.Time{644 * us, 644 * us}},
		{"least", []message{{0, 2, mb, 0}, {1, 2, mb, 0}}, []string{spines, "balance=least"},
			[]dag.Time{324 * us, 324 * us}},
	} {
		if got := ends(t, traceOf(4, c.messages...), c.set...); !slices.Equal(got, c.want) {
			t.Errorf("%s: got %v, expected %v", c.name, got, c.want)
		}
	}
}

// TestAcksOfNothing checks that acknowledgements which take nothing change nothing.
func TestAcksOfNothing(t *testing.T) {
	random := sim.NewRandom(1, 0, 0)
	var messages []message
	for range 2000 {
		m := message{int(random.Below(16)), int(random.Below(15)), int64(1000 + random.Below(1_000_000)),
			dag.Time(random.Below(100_000_000))}
		if m.to >= m.from {
			m.to++
		}
		messages = append(messages, m)
	}
	set := []string{"topology=fattree:k=4,rate=100Gbps,latency=1us", "flow-model=lv08", "balance=fixed"}
	want := ends(t, traceOf(16, messages...), append(set, "cross-traffic=false")...)
	if got := ends(t, traceOf(16, messages...), append(set, "ack-share=0")...); !slices.Equal(got, want) {
		t.Errorf("the ends are %v, expected %v", got, want)
	}
}

// TestRounding checks that an end is the first whole picosecond not before the exact time.
func TestRounding(t *testing.T) {
	for bytes := int64(1); bytes < 2000; bytes += 7 {
		for _, rate := range []int64{7, 93, 400} { // Gb/s
			want := dag.Time((bytes*8000 + rate - 1) / rate)
			set := fmt.Sprintf("topology=star:hosts=2,rate=%dGbps,latency=0s", rate)
			if got := ends(t, traceOf(2, message{0, 1, bytes, 0}), set); got[0] != want {
				t.Errorf("%d bytes at %d Gb/s: got %v, expected %v", bytes, rate, got[0], want)
			}
		}
	}
}

// TestSendsLeave checks that a send ends when its last byte leaves its host, or in SimGrid's models when it arrives: a
// message that depends on it starts then. A byte takes 80 ps, and a path 2 us.
func TestSendsLeave(t *testing.T) {
	const us, mb = dag.Microsecond, 1_000_000
	star := "topology=star:hosts=4,rate=100Gbps,latency=1us"
	for _, c := range []struct {
		name  string
		bytes int64    // of the message to rank 1
		other dag.Time // start of another message of 1 MB to rank 1; 0: none
		set   []string
		want  dag.Time // start of the message to rank 2
	}{
		{"long", mb, 0, nil, 80 * us},
		{"short", 100, 0, nil, 8000}, // before its first byte arrives
		{"empty", 0, 0, nil, 0},
		{"SimGrid's models", mb, 0, []string{"flow-model=cm02", "cross-traffic=off"}, 82 * us},
		{"SMPI's protocol", mb, 0, []string{"detached=1", "envelope=1"}, 82*us + 80},
		{"no latency", mb, 0, []string{"latency-factor=0"}, 80 * us},
		{"latency factor", mb, 0, []string{"latency-factor=10"}, 80 * us},
		{"half the rate at last", mb, 40 * us, nil, 120 * us},
		{"half the rate after the last byte left", mb, 80 * us, nil, 80 * us},
		{"rendezvous", mb, 0, []string{"S=1"}, 84 * us},
		{"a link fails", mb, 0, []string{"fail=host1@42us..62us"}, 100 * us},
		{"a link fails after the last byte left", mb, 0, []string{"fail=host1@81us..162us"}, 80 * us},
		{"a link fails before the first byte arrives", mb, 0, []string{"fail=host1@1us..42us"}, 120 * us},
		{"no path at first", 100, 0, []string{"fail=host1@0s..42us"}, 42*us + 8000},
	} {
		b := dag.NewBuilder(4)
		first := b.Rank(0).Send(1, c.bytes, 0)
		b.Rank(0).Send(2, 7, 0, first)
		b.Rank(1).Recv(0, c.bytes, 0)
		b.Rank(2).Recv(0, 7, 0)
		if c.other > 0 {
			b.Rank(3).Send(1, mb, 1, b.Rank(3).Calc(c.other))
			b.Rank(1).Recv(3, mb, 1)
		}
		r, err := backends.Run(b.Trace(), "flow", backends.Set(append(c.set, star)...))
		if err != nil || !r.Complete {
			t.Fatal(c.name, err)
		}
		var text strings.Builder
		r.Section("flows").Value.(*sim.Table).WriteCSV(&text)
		starts := map[string]string{} // by destination
		for line := range strings.Lines(text.String()) {
			f := strings.Split(line, ",")
			if f[0] == "0" {
				starts[f[1]] = f[3]
			}
		}
		want := c.want
		if slices.Contains(c.set, "S=1") {
			want += 4 * us // request and answer
		}
		if starts["2"] != strconv.FormatInt(int64(want), 10) {
			t.Errorf("%s: the next message starts at %s ps, expected %v", c.name, starts["2"], want)
		}
	}
}

// TestRendezvous checks that a message above S starts after its request and the answer, and waits for its receive.
func TestRendezvous(t *testing.T) {
	star := "topology=star:hosts=2,rate=100Gbps,latency=1us"
	for _, c := range []struct {
		late dag.Time // of the receive
		set  []string
		want dag.Time
	}{
		{0, []string{"S=1MB"}, 82 * dag.Microsecond},
		{0, []string{"S=1"}, 86 * dag.Microsecond},
		{50 * dag.Microsecond, []string{"S=1"}, 134 * dag.Microsecond}, // answer, latency, bytes
		{0, []string{"S=1", "latency-factor=2"}, 92 * dag.Microsecond},
	} {
		b := dag.NewBuilder(2)
		b.Rank(0).Send(1, 1_000_000, 0)
		b.Rank(1).Recv(0, 1_000_000, 0, b.Rank(1).Calc(c.late))
		if got := ends(t, b.Trace(), append(c.set, star)...); got[0] != c.want {
			t.Errorf("%v, receive after %v: got %v, expected %v", c.set, c.late, got[0], c.want)
		}
	}
}

// TestSprayOfBundles checks that flows take the same time on a fat tree, whose ports are bundles, and on the same
// network
// as a list of links, in which each port is a link.
func TestSprayOfBundles(t *testing.T) {
	var links strings.Builder // k=4, with the hosts and switches of the fat tree
	for h := range 16 {
		fmt.Fprintf(&links, "h%02d t%d 100 1000\n", h, h/2)
	}
	for tor := range 8 {
		for a := range 2 {
			fmt.Fprintf(&links, "t%d a%d 100 1000\n", tor, tor/2*2+a)
		}
	}
	for agg := range 8 {
		for c := range 2 {
			fmt.Fprintf(&links, "a%d c%d 100 1000\n", agg, agg%2+2*c)
		}
	}
	file := filepath.Join(t.TempDir(), "tree")
	if err := os.WriteFile(file, []byte(links.String()), 0o644); err != nil {
		t.Fatal(err)
	}
	random := sim.NewRandom(1, 2, 3)
	var messages []message
	for range 300 {
		m := message{int(random.Below(16)), int(random.Below(16)), int64(random.Below(1 << 20)),
			dag.Time(random.Below(100)) * dag.Microsecond}
		if m.from != m.to {
			messages = append(messages, m)
		}
	}
	trace := traceOf(16, messages...)
	for _, model := range []string{"flow-model=fair", "flow-model=cm02", "flow-model=lv08", "flow-model=smpi"} {
		a := ends(t, trace, model, "topology=fattree:k=4,rate=100Gbps,latency=1us")
		b := ends(t, trace, model, "topology="+file)
		for i := range a {
			if d := a[i] - b[i]; d < -1 || d > 1 {
				t.Fatalf("%s: flow %d ends at %v as bundles, at %v as links", model, i+1, a[i], b[i])
			}
		}
	}
}

// overheads are the bytes of NDP in packets of 4 KiB: headers of 64 B and a pull rate of 99 % forward, and an
// acknowledgement and a pull of 64 B each backward.
var overheads = []string{"bandwidth-factor=0.975", "cross-traffic=true", "ack-share=0.031"}

// TestPacket compares makespans of large messages with the packet backend and its transport ndp, sprayed evenly over a
// permutation of the paths and by hashes of 128 entropy values.
func TestPacket(t *testing.T) {
	collectives := func(kind dag.Subkind, bytes int64) *dag.Trace {
		b := dag.NewBuilder(16)
		for rank := range 16 {
			b.Rank(rank).Add(dag.Op{Kind: dag.Coll, Subkind: kind, Bytes: bytes, Peer: -1})
		}
		return b.Trace()
	}
	bytes := int64(16 << 20)
	if testing.Short() {
		bytes /= 4
	}
	var list []message
	for rank := range 16 {
		list = append(list, message{rank, 15 - rank, bytes, 0})
	}
	ring, exchange, permutation := collectives(dag.Allreduce, bytes), collectives(dag.Alltoall, bytes), traceOf(16, list...)
	const even, over = "fattree:k=4,rate=100Gbps,latency=500ns",
		"leafspine:hosts=16,tor=8,oversubscription=4,rate=100Gbps,latency=500ns"
	for _, c := range []struct {
		name, topology, algorithms string
		trace                      *dag.Trace
		hashed                     bool // compare runs with 128 entropy values
	}{
		{"ring allreduce", even, "allreduce=ring", ring, true},
		{"all-to-all at once", even, "alltoall=linear", exchange, true},
		{"all-to-all in pairs", even, "alltoall=pairwise", exchange, false},
		{"permutation", even, "allreduce=ring", permutation, true},
		{"permutation, 4:1 oversubscription", over, "allreduce=ring", permutation, true},
	} {
		choice, err := collective.ParseChoice(c.algorithms)
		if err != nil {
			t.Fatal(err)
		}
		makespan := func(backend string, set ...string) float64 {
			r, err := backends.Run(c.trace, backend, backends.Collectives(choice),
				backends.Set(append(set, "topology="+c.topology)...))
			if err != nil || !r.Complete {
				t.Fatal(c.name, backend, err)
			}
			return float64(r.Makespan.Ticks)
		}
		compare := func(flow, packet float64, sprayed string) {
			t.Logf("%s, %s: %.4g us, packet %.4g us, %+.1f%%", c.name, sprayed, flow/1e6, packet/1e6, 100*(flow/packet-1))
			if math.Abs(flow/packet-1) > 0.1 {
				t.Errorf("%s, %s: %.4g us, on packet %.4g us", c.name, sprayed, flow/1e6, packet/1e6)
			}
		}
		compare(makespan("flow", overheads...), makespan("packet", "balance=permute"), "evenly")
		if c.hashed {
			compare(makespan("flow", append(overheads, "entropy=128")...), makespan("packet", "balance=spray"), "by hashes")
		}
	}
}

// TestUnconnected checks the error of a flow without a path.
func TestUnconnected(t *testing.T) {
	file := filepath.Join(t.TempDir(), "links")
	if err := os.WriteFile(file, []byte("h0 s0 100 1\nh1 s1 100 1\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	for _, balance := range []string{"spray", "flow", "least", "fixed"} {
		_, err := backends.Run(traceOf(2, message{0, 1, 1, 0}), "flow",
			backends.Set("topology="+file, "balance="+balance))
		if err == nil || !strings.Contains(err.Error(), "expected a path from h0 to h1, found none") {
			t.Errorf("%s: error %v", balance, err)
		}
	}
}

// TestFailures compares completions with hand calculations. A byte takes 80 ps on a link of 100 Gb/s, and a path 4 us
// between the ToRs and 2 us below one.
func TestFailures(t *testing.T) {
	const us, mb = dag.Microsecond, 1_000_000
	star := "topology=star:hosts=4,rate=100Gbps,latency=1us"
	spines := "topology=leafspine:hosts=4,tor=2,spines=2,rate=100Gbps,latency=1us"
	platform := filepath.Join(t.TempDir(), "p.xml")
	if err := os.WriteFile(platform, []byte(`<platform version="4.1"><cluster id="c" prefix="n" suffix="" radical="0-3"
		speed="1f" bw="12.5GBps" lat="1us"/></platform>`), 0o600); err != nil {
		t.Fatal(err)
	}
	one, across := []message{{0, 1, mb, 0}}, []message{{0, 2, mb, 0}}
	for _, c := range []struct {
		name     string
		messages []message
		set      []string
		want     []dag.Time
	}{
		{"slow from the start", one, []string{star, "fail=host0@0s:50Gbps"}, []dag.Time{162 * us}},
		{"slow for a time", one, []string{star, "fail=host1@42us..62us:25Gbps"}, []dag.Time{97 * us}}, // 15 us lost
		{"waits", one, []string{star, "fail=host1@42us..62us"}, []dag.Time{102 * us}},
		{"fails in the latency phase", one, []string{star, "fail=host1@1us..42us"}, []dag.Time{122 * us}},
		{"starts without a path", one, []string{star, "fail=host1@0s..42us"}, []dag.Time{124 * us}},
		{"before the flow", []message{{0, 1, mb, 50 * us}}, []string{star, "fail=host1@1us..42us"},
			[]dag.Time{132 * us}},
		{"another path", across, []string{spines, "balance=flow", "fail=agg0@10us"}, []dag.Time{84 * us}},
		{"no bytes", []message{{0, 1, 0, 0}}, []string{star, "fail=host1@1us..42us"}, []dag.Time{2 * us}},
		{"a platform", one, []string{"topology=" + platform, "fail=c_link_1@42us..62us"}, []dag.Time{102 * us}},
		{"a slower link of a platform", one, []string{"topology=" + platform, "fail=c_link_1_DOWN@42us:50Gbps"},
			[]dag.Time{122 * us}},
		{"another direction", one, []string{"topology=" + platform, "fail=c_link_1_UP@42us"}, []dag.Time{82 * us}},
	} {
		if got := ends(t, traceOf(4, c.messages...), c.set...); !slices.Equal(got, c.want) {
			t.Errorf("%s: got %v, expected %v", c.name, got, c.want)
		}
	}
	// Two flows from different hosts below one ToR share the spine that is left: with either policy, each has half of it.
	two := []message{{0, 2, mb, 0}, {1, 3, mb, 0}}
	for _, balance := range []string{"spray", "flow", "least", "fixed"} {
		got := ends(t, traceOf(4, two...), spines, "balance="+balance, "fail=agg1@0s")
		if !slices.Equal(got, []dag.Time{164 * us, 164 * us}) {
			t.Errorf("%s: got %v, expected 164us", balance, got)
		}
	}
	// The second spine comes back at 84 us, with half of the bytes left.
	got := ends(t, traceOf(4, two...), spines, "fail=agg1@0s..84us")
	if !slices.Equal(got, []dag.Time{124 * us, 124 * us}) {
		t.Errorf("restored: got %v, expected 124us", got)
	}
	// The link of a host fails for good: during one of its messages, and before another.
	r, err := backends.Run(traceOf(4, message{0, 1, mb, 0}, message{2, 1, 7, 50 * us}, message{0, 3, 8, 0}), "flow",
		backends.Set(star, "fail=host1@42us"))
	if err != nil || r.Complete {
		t.Fatalf("a link that fails for good: %v, %+v", err, r)
	}
	var said []string
	for i := range r.Sections {
		said = append(said, r.Sections[i].Incomplete...)
	}
	const reason = ": links of all paths have failed for good"
	want := []string{"no path is left for 1000000 bytes from host 0 to host 1, sent at 0s" + reason,
		"no path is left for 7 bytes from host 2 to host 1, sent at 50us" + reason}
	if !slices.Equal(said, want) {
		t.Errorf("got %q, expected %q", said, want)
	}
	for _, set := range [][]string{{star, "fail=host9"}, {star, "fail=host0@2ms..1ms"}, {"topology=" + platform, "fail=l"}} {
		if _, err := backends.Run(traceOf(4, one...), "flow", backends.Set(set...)); err == nil {
			t.Errorf("%v: no error", set)
		}
	}
}

// TestSendModes compares synchronous and buffered sends of the protocol of SMPI with hand calculations. The receive is
// posted at 10 us, a byte takes 1 ns, the path 2 us, an overhead of a send 1 us, and one of a receive 2 us.
func TestSendModes(t *testing.T) {
	const us, ns = dag.Microsecond, dag.Nanosecond
	for _, c := range []struct {
		mode       string
		bytes      int64
		async      string
		sent, done dag.Time
	}{
		{"", 1000, "0", us, 15*us + 16*ns}, // detached, but its transfer waits
		{"", 1000, "1MB", us, 12 * us},
		{attr.Ready, 1000, "1MB", us, 12 * us},
		{attr.Synchronous, 1000, "0", 13*us + 16*ns, 13*us + 16*ns},
		{attr.Synchronous, 1000, "1MB", 13*us + 16*ns, 13*us + 16*ns},
		{attr.Buffered, 1000, "0", us, 15*us + 16*ns},
		{attr.Buffered, 100_000, "0", us, 114*us + 16*ns},
		{attr.Buffered, 100_000, "1MB", us, 105*us + 16*ns},
		{"", 100_000, "0", 112*us + 16*ns, 112*us + 16*ns},
		{attr.Synchronous, 100_000, "0", 112*us + 16*ns, 112*us + 16*ns},
	} {
		b := dag.NewBuilder(2)
		send := dag.Op{Kind: dag.Send, Peer: 1, Bytes: c.bytes}
		if c.mode != "" {
			send.Attrs = attr.SendMode(c.mode)
		}
		b.Rank(0).Add(send)
		b.Rank(1).Recv(0, c.bytes, 0, b.Rank(1).Calc(10*us))
		r, err := backends.Run(b.Trace(), "flow", backends.Set("topology=star:hosts=2,rate=8Gbps,latency=1us",
			"os=0:1e-6", "or=0:2e-6", "detached=64KiB", "async-small="+c.async))
		if err != nil || !r.Complete {
			t.Fatal(c, err)
		}
		if sent, done := dag.Time(r.Finish[0].Ticks)*r.Finish[0].Unit, dag.Time(r.Finish[1].Ticks)*r.Finish[1].Unit; sent != c.sent || done != c.done {
			t.Errorf("%+v: the send ends at %v, the receive at %v", c, sent, done)
		}
	}
}

// TestBufferedSend checks that a buffered send whose start alone others depend on, MPI_Bsend, has the overhead of a
// blocking send of 1 us, and one that another op waits for that of a non-blocking send of 2 us.
func TestBufferedSend(t *testing.T) {
	const us = dag.Microsecond
	for waits, want := range map[bool]dag.Time{false: 11 * us, true: 12 * us} {
		b := dag.NewBuilder(2)
		r := b.Rank(0)
		send := r.Add(dag.Op{Kind: dag.Send, Peer: 1, Bytes: 100_000, Attrs: attr.SendMode(attr.Buffered)})
		work := r.Calc(10 * us)
		r.RequiresStart(work, send)
		if waits {
			r.Calc(0, work, send)
		}
		b.Rank(1).Recv(0, 100_000, 0)
		result, err := backends.Run(b.Trace(), "flow", backends.Set("topology=star:hosts=2,rate=8Gbps,latency=1us",
			"os=0:1e-6", "ois=0:2e-6"))
		if err != nil || !result.Complete {
			t.Fatal(err)
		}
		if got := dag.Time(result.Finish[0].Ticks) * result.Finish[0].Unit; got != want {
			t.Errorf("waits %t: rank 0 ends at %v, expected %v", waits, got, want)
		}
	}
}

// TestPersistentSends checks that the start of a persistent send, which has dependents as a non-blocking send has, has
// the overhead of a blocking one, and that of a non-blocking one without the attribute.
func TestPersistentSends(t *testing.T) {
	const us, ns = dag.Microsecond, dag.Nanosecond
	for _, c := range []struct {
		attrs string
		bytes int64
		end   dag.Time
	}{
		{"", 1000, 8 * us},
		{attr.SendMode(attr.Synchronous), 1000, 8 * us},
		{attr.PersistentSend(""), 1000, 6 * us},
		{attr.PersistentSend(attr.Synchronous), 1000, 6 * us},
		{"", 100_000, 105*us + 16*ns},
		{attr.PersistentSend(""), 100_000, 102*us + 16*ns},
		{attr.PersistentSend(attr.Synchronous), 100_000, 103*us + 16*ns},
	} {
		b := dag.NewBuilder(2)
		r := b.Rank(0)
		send := r.Add(dag.Op{Kind: dag.Send, Peer: 1, Bytes: c.bytes, Attrs: c.attrs})
		next := r.Calc(5 * us)
		r.RequiresStart(next, send)
		r.Calc(0, next, send)
		b.Rank(1).Recv(0, c.bytes, 0)
		result, err := backends.Run(b.Trace(), "flow", backends.Set("topology=star:hosts=2,rate=8Gbps,latency=1us",
			"os=0:1e-6", "ois=0:3e-6", "detached=64KiB"))
		if err != nil || !result.Complete || end(result, 0) != c.end {
			t.Errorf("%+v: ends %v, %v", c, result.Finish, err)
		}
	}
}

// TestSelfExchange checks that with the protocol of SMPI, MPI_Sendrecv of a rank with itself takes no time, whatever
// the size, and that other messages to itself do.
func TestSelfExchange(t *testing.T) {
	for _, bytes := range []int64{0, 1000, 100_000} {
		for _, wild := range []bool{false, true} {
			b := dag.NewBuilder(2)
			r := b.Rank(1)
			before := r.Calc(dag.Microsecond)
			from := int32(1)
			if wild {
				from = dag.AnySource
			}
			r.Calc(dag.Microsecond, r.Send(1, bytes, 0, before), r.Recv(from, bytes, 0, before))
			var o sim.RunOptions
			o.Path = &sim.PathOptions{}
			result, err := backends.Run(b.Trace(), "flow", backends.Set("topology=star:hosts=2,rate=8Gbps,latency=1us",
				"os=0:1e-6", "ois=0:3e-6", "or=0:2e-6"), backends.Options(o))
			if err != nil || !result.Complete {
				t.Fatal(err)
			}
			at, length := end(result, 1), dag.Time(result.Path.Length())
			if free := at == 2*dag.Microsecond; free == wild || length != at {
				t.Errorf("%d bytes, any source %v: ends at %v, critical path of %v", bytes, wild, at, length)
			}
		}
	}
}
