package flow_test

import (
	"archive/tar"
	"bufio"
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"math/big"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/tracedag/tracedag/dag"
	"github.com/tracedag/tracedag/dag/lower/collective"
	"github.com/tracedag/tracedag/formats/format"
	"github.com/tracedag/tracedag/formats/simgrid"
	"github.com/tracedag/tracedag/param"
	"github.com/tracedag/tracedag/sim"
	"github.com/tracedag/tracedag/sim/backends"
)

// end returns the end of the last op of a rank.
func end(r *sim.Result, rank int) dag.Time {
	return dag.Time(r.Finish[rank].Ticks) * r.Finish[rank].Unit
}

// TestSMPI compares the three protocols with hand calculations. A byte takes 80 ps, a path 2 us, and 16 bytes travel
// with each message.
func TestSMPI(t *testing.T) {
	const us, ns = dag.Microsecond, dag.Nanosecond
	set := []string{"topology=star:hosts=2,rate=100Gbps,latency=1us", "os=0:1e-6:1e-10", "ois=0:7e-7",
		"or=0:5e-7:2e-10", "async-small=1000", "detached=5000"}
	for _, c := range []struct {
		name       string
		bytes      int64
		posted     dag.Time // of the receive
		send, recv dag.Time // ends
	}{
		// os = 1 us + 98.4 ns, the bytes take 80 ns, or = 500 ns + 196.8 ns.
		{"at once, receive posted", 984, 0, 1098400, 1098400 + 2*us + 80*ns + 696800},
		{"at once, receive late", 984, 10 * us, 1098400, 10*us + 696800},
		{"without bytes", 0, 0, us, us + 2*us + 1280 + 500*ns},
		{"just below the threshold", 999, 10 * us, 1099900, 10*us + 699800},
		// os = 1 us + 398.4 ns, the bytes take 320 ns, or = 500 ns + 796.8 ns.
		{"detached, receive posted", 3984, 0, 1398400, 1398400 + 2*us + 320*ns + 1296800},
		{"detached, receive late", 3984, 10 * us, 1398400, 12*us + 320*ns + 1296800},
		{"at the first threshold", 1000, 10 * us, 1100000, 12*us + 81280 + 700*ns},
		// No overheads; the bytes take 800 ns.
		{"synchronous, receive posted", 9984, 0, 2*us + 800*ns, 2*us + 800*ns},
		{"synchronous, receive late", 9984, 10 * us, 12*us + 800*ns, 12*us + 800*ns},
		{"at the second threshold", 5000, 10 * us, 12*us + 401280, 12*us + 401280},
	} {
		for _, path := range []bool{false, true} {
			var o sim.RunOptions
			if path {
				o.Path = &sim.PathOptions{}
			}
			b := dag.NewBuilder(2)
			b.Rank(0).Send(1, c.bytes, 0)
			b.Rank(1).Recv(0, c.bytes, 0, b.Rank(1).Calc(c.posted))
			r, err := backends.Run(b.Trace(), "flow", backends.Set(set...), backends.Options(o))
			if path && err == nil && dag.Time(r.Path.Length()) != c.recv {
				t.Errorf("%s: critical path of %v, expected %v", c.name, dag.Time(r.Path.Length()), c.recv)
			}
			if err != nil || !r.Complete || end(r, 0) != c.send || end(r, 1) != c.recv {
				t.Errorf("%s: ends %v (%v), expected %v and %v", c.name, r.Finish, err, c.send, c.recv)
			}
		}
	}
}

// TestSMPIScattered compares an alltoallv of two ranks in groups with a hand calculation. Rank 1 calls 15 us later, when
// the message of rank 0 has arrived: it sends before it takes that message, 700 ns and 500 ns.
func TestSMPIScattered(t *testing.T) {
	const us, ns = dag.Microsecond, dag.Nanosecond
	choice, err := collective.ParseChoice("smpi-mpich")
	if err != nil {
		t.Fatal(err)
	}
	b := dag.NewBuilder(2)
	for rank := range 2 {
		r := b.Rank(rank)
		r.Add(dag.Op{Kind: dag.Coll, Subkind: dag.Alltoallv, Bytes: 1968, RecvBytes: 1968},
			r.Calc(dag.Time(rank)*15*us))
	}
	result, err := backends.Run(b.Trace(), "flow", backends.Collectives(choice), backends.Set(
		"topology=star:hosts=2,rate=100Gbps,latency=1us", "os=0:0", "ois=0:7e-7", "or=0:5e-7", "async-small=5000",
		"detached=5000"))
	if err != nil || !result.Complete {
		t.Fatal(result, err)
	}
	// 984 bytes and an envelope of 16 bytes take 80 ns.
	for rank, want := range []dag.Time{15*us + 700*ns + 2*us + 80*ns + 500*ns, 15*us + 700*ns + 500*ns} {
		if got := end(result, rank); got != want {
			t.Errorf("rank %d ends at %v, expected %v", rank, got, want)
		}
	}
}

// TestSMPINonBlocking compares non-blocking sends with hand calculations: what follows them waits for their overhead
// only, also if their message is large.
func TestSMPINonBlocking(t *testing.T) {
	const us, ns = dag.Microsecond, dag.Nanosecond
	for _, c := range []struct {
		bytes     int64
		wait, end dag.Time
	}{
		{984, 3700 * ns, 700*ns + 2*us + 80*ns + 696800}, // the send ended before the wait
		{99984, 10*us + 700*ns, 10*us + 700*ns},          // 0.7 us + 2 us + 8 us
	} {
		b := dag.NewBuilder(2)
		send := b.Rank(0).Send(1, c.bytes, 0)
		calc := b.Rank(0).Calc(3 * us)
		b.Rank(0).RequiresStart(calc, send)
		b.Rank(0).Calc(0, send, calc)
		b.Rank(1).Recv(0, c.bytes, 0)
		r, err := backends.Run(b.Trace(), "flow", backends.Set("topology=star:hosts=2,rate=100Gbps,latency=1us",
			"os=0:1e-6:1e-10", "ois=0:7e-7", "or=0:5e-7:2e-10", "async-small=1000", "detached=5000"))
		if err != nil || !r.Complete || end(r, 0) != c.wait || end(r, 1) != c.end {
			t.Errorf("%d bytes: ends %v (%v), expected %v and %v", c.bytes, r.Finish, err, c.wait, c.end)
		}
	}
}

// TestSMPISendrecv compares MPI_Sendrecv with a hand calculation: the receive begins at the end of the overhead of the
// send, 700 ns. Rank 1 calls 500 ns later. A third message of the same op makes the messages those of a collective.
func TestSMPISendrecv(t *testing.T) {
	const us, ns = dag.Microsecond, dag.Nanosecond
	for _, third := range []bool{false, true} {
		b := dag.NewBuilder(2)
		for rank := range 2 {
			r, other := b.Rank(rank), int32(1-rank)
			begin := r.Calc(dag.Time(rank) * 500 * ns)
			r.Send(other, 2000, 0, begin)
			r.Recv(other, 2000, 0, begin)
			if third {
				r.Recv(other, 0, 1, begin)
			}
		}
		for rank := range 2 {
			if third {
				b.Rank(rank).Send(int32(1-rank), 0, 1)
			}
		}
		result, err := backends.Run(b.Trace(), "flow", backends.Set("topology=star:hosts=2,rate=100Gbps,latency=1us",
			"os=0:0", "ois=0:7e-7", "or=0:0", "async-small=1000", "detached=5000"))
		if err != nil || !result.Complete {
			t.Fatal(result, err)
		}
		want := 1200*ns + 2*us + 161280
		got := end(result, 1)
		if third == (got == want) {
			t.Errorf("third message %t: rank 1 ends at %v; %v is the end of MPI_Sendrecv", third, got, want)
		}
	}
}

// TestSMPINonBlockingCollective compares a non-blocking allreduce of three ranks with hand calculations: two sends of
// 700 ns each begin it, the program goes on, and the wait ends with two receives of 500 ns + 196.8 ns each, not before
// the work and the message in between.
func TestSMPINonBlockingCollective(t *testing.T) {
	const us, ns = dag.Microsecond, dag.Nanosecond
	choice, err := collective.ParseChoice("smpi-mpich")
	if err != nil {
		t.Fatal(err)
	}
	for _, message := range []bool{false, true} {
		b := dag.NewBuilder(3)
		for rank := range 3 {
			r := b.Rank(rank)
			begin := r.Add(dag.Op{Kind: dag.Coll, Subkind: dag.Allreduce, Bytes: 984})
			work := r.Calc(100 * us)
			r.RequiresStart(work, begin)
			switch {
			case message && rank == 0:
				work = r.Calc(50*us, r.Send(1, 984, 7, work))
			case message && rank == 1:
				work = r.Calc(50*us, r.Recv(0, 984, 7, work))
			}
			r.Calc(0, work, begin)
		}
		lowered, err := collective.Lower(context.Background(), b.Trace(), choice)
		if err != nil {
			t.Fatal(err)
		}
		r, err := backends.Run(lowered, "flow", backends.Set("topology=star:hosts=3,rate=100Gbps,latency=1us",
			"ois=0:7e-7", "os=0:1e-6:1e-10", "or=0:5e-7:2e-10", "async-small=1000", "detached=5000"))
		if err != nil || !r.Complete {
			t.Fatal(r, err)
		}
		want := [3]dag.Time{2*700*ns + 100*us + 2*696800}
		want[1], want[2] = want[0], want[0]
		if message {
			want[0] += 1098400 + 50*us
			want[1] += 1098400 + 2*us + 80*ns + 696800 + 50*us
		}
		for rank := range want {
			if got := end(r, rank); got != want[rank] {
				t.Errorf("message %t: rank %d ends at %v, expected %v", message, rank, got, want[rank])
			}
		}
	}
}

// TestSMPISynchronous checks that without a threshold of small messages even empty ones wait for their receive, and
// that a send that never ends is reported.
func TestSMPISynchronous(t *testing.T) {
	set := backends.Set("topology=star:hosts=2,rate=100Gbps,latency=1us", "protocol=smpi", "detached=0")
	r, err := backends.Run(traceOf(2, message{0, 1, 0, 0}), "flow", set)
	if err != nil || end(r, 0) != 2*dag.Microsecond+1280 || end(r, 1) != end(r, 0) {
		t.Errorf("ends %v (%v)", r.Finish, err)
	}
	b := dag.NewBuilder(2)
	b.Rank(0).Calc(0, b.Rank(0).Send(1, 0, 0))
	if r, err = backends.Run(b.Trace(), "flow", set); err != nil || r.Complete {
		t.Errorf("complete without a receive (%v)", err)
	}
}

// TestSMPIErrors checks that parameters of another protocol are errors.
func TestSMPIErrors(t *testing.T) {
	for set, want := range map[string]string{"o=1us": "protocol smpi", "S=64KiB": "protocol smpi",
		"os=0:x": "expected numbers", "protocol=strict": "found strict"} {
		env := &sim.Env{Given: func(name string) bool { return set == "protocol=strict" && name == "protocol" }}
		_, err := backends.Run(traceOf(2, message{0, 1, 1, 0}), "flow", backends.Env(env),
			backends.Set("topology=star:hosts=2,rate=1Gbps", "detached=1KiB", set))
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: error %v", set, err)
		}
	}
}

// TestSMPIOptions checks that flags replace options of a file, and the warning about options without effect.
func TestSMPIOptions(t *testing.T) {
	file := filepath.Join(t.TempDir(), "options")
	text := "--cfg=network/crosstraffic:no\n--cfg=smpi/lat-factor:0:3\nsmpi/bw-factor:0:1\nsmpi/os:0:1e-6\n" +
		"smpi/wtime:0\nsmpi/coll-selector:mpich\nsmpi/async-small-thresh:100\n"
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	var warnings strings.Builder
	env := &sim.Env{Warn: func(m string, args ...any) { fmt.Fprintf(&warnings, m+"\n", args...) }}
	r, err := backends.Run(traceOf(2, message{0, 1, 9, 0}), "flow", backends.Env(env),
		backends.Set("topology=star:hosts=2,rate=100Gbps,latency=1us", "smpi-options="+file, "os=0:2e-6"))
	if err != nil || r.Model != "smpi" || end(r, 1) != 8*dag.Microsecond+2000 { // os, three latencies, 25 bytes
		t.Errorf("ends at %v (%v)", r.Makespan, err)
	}
	if want := file + ": these options have no effect here: smpi/wtime, smpi/coll-selector\n"; warnings.String() != want {
		t.Errorf("warning %q, expected %q", warnings.String(), want)
	}
	if err := os.WriteFile(file, []byte("smpi/os:0:x\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	_, err = backends.Run(traceOf(2, message{0, 1, 9, 0}), "flow",
		backends.Set("topology=star:hosts=2,rate=100Gbps,latency=1us", "smpi-options="+file))
	if err == nil || !strings.Contains(err.Error(), "line 1: smpi/os") {
		t.Errorf("error %v", err)
	}
}

// TestSMPISweep checks that a threshold of a sweep selects the protocol, and replaces that of the caller.
func TestSMPISweep(t *testing.T) {
	for _, set := range [][]string{{}, {"detached=1MiB"}} {
		r, err := backends.Run(traceOf(2, message{0, 1, 984, 0}), "flow",
			backends.Set(append(set, "topology=star:hosts=2,rate=100Gbps,latency=1us")...),
			backends.Options(sim.RunOptions{Settings: []param.Setting{{Name: "detached", Number: big.NewRat(984, 1)}}}))
		if want := 2*dag.Microsecond + 80*dag.Nanosecond; err != nil || end(r, 0) != want || end(r, 1) != want {
			t.Errorf("%v: ends %v (%v), expected %v", set, r.Finish, err, want)
		}
	}
}

// replay is a run of SimGrid's replayer with the largest relative difference that our rules leave. The times have six
// digits.
type replay struct {
	id, platform, choice string
	most                 float64
}

const digits = 1e-5

// dragonfly is the algorithms of the options of that platform.
const dragonfly = "allreduce=recdoubling,reduce=binomial,bcast=binomial,alltoall=pairwise,alltoallv=pairwise," +
	"allgather=shift,allgatherv=shift,barrier=dissemination"

// star is the algorithms of the options of that platform.
const star = "smpi-mpich"

// TestSMPIReplays compares times with those of SimGrid's replayer.
func TestSMPIReplays(t *testing.T) {
	folder := os.Getenv("TRACEDAG_VECTORS")
	if folder == "" {
		t.Skip("TRACEDAG_VECTORS names no folder of vectors")
	}
	folder = filepath.Join(folder, "simgrid-ti")
	text, err := os.ReadFile(filepath.Join(folder, "index.json"))
	if err != nil {
		t.Fatal(err)
	}
	var cases []struct {
		ID      string
		Replays []struct {
			Platform, Options string
			Ranks             int
			Seconds           *float64 `json:"simulated_seconds"`
		}
	}
	if err := json.Unmarshal(text, &cases); err != nil {
		t.Fatal(err)
	}
	seconds := map[[2]string]float64{}
	for _, c := range cases {
		for _, r := range c.Replays {
			if r.Seconds != nil {
				seconds[[2]string{c.ID, strings.TrimSuffix(r.Platform, ".xml")}] = *r.Seconds
			}
		}
	}
	for _, c := range []replay{
		{"a-isend-wait", "star1g", star, digits}, {"a-sendrecvop", "star1g", star, digits},
		{"a-sendrecv-sizes", "star1g", star, digits}, {"a-waitall", "star1g", star, digits},
		{"a-datatypes", "star1g", star, digits}, {"a-compute", "star1g", star, digits}, {"a-sleep", "star1g", star, digits},
		{"a-barrier", "star1g", star, 2e-4}, {"a-gather", "star1g", star, digits}, {"a-gatherv", "star1g", star, digits},
		{"a-scatter", "star1g", star, digits}, {"a-reducescatter", "star1g", star, digits},
		{"a-alltoallv", "star1g", star, digits}, {"a-alltoall", "star1g", star, digits},
		{"a-scan", "star1g", star + ";scan=sequential;exscan=sequential", digits},
		{"ti-fft-8", "fattree100g", "smpi-ompi", digits},
		{"a-ints", "dragonfly25g", dragonfly, digits}, {"a-allreduce", "dragonfly25g", dragonfly, digits},
		{"a-bcast", "dragonfly25g", dragonfly, digits}, {"a-reduce", "dragonfly25g", dragonfly, digits},
		{"ti-comd-8", "dragonfly25g", dragonfly, digits}, {"ti-jacobi-4", "dragonfly25g", dragonfly, digits},
		{"ti-sweep-6", "dragonfly25g", dragonfly, digits}, {"ti-nasis-8", "dragonfly25g", dragonfly, digits},
	} {
		t.Run(c.id, func(t *testing.T) {
			want, known := seconds[[2]string{c.id, c.platform}]
			if !known {
				t.Fatalf("no time on %s", c.platform)
			}
			actions := actionsOf(t, filepath.Join(folder, c.id+".tgz"))
			trace, err := simgrid.Format.Read([]*format.Input{{Name: c.id, Reader: bytes.NewReader(actions)}},
				format.ReadOptions{Own: &simgrid.Options{Speed: 10e9}})
			if err != nil {
				t.Fatal(err)
			}
			choice, err := collective.ParseChoice(c.choice)
			if err != nil {
				t.Fatal(err)
			}
			machine := filepath.Join(folder, c.platform)
			r, err := backends.Run(trace, "flow", backends.Collectives(choice),
				backends.Set("topology="+machine+".xml", "smpi-options="+machine+".options"))
			if err != nil || !r.Complete {
				t.Fatal(err)
			}
			got := float64(r.Makespan.Ticks) / 1e12
			t.Logf("%.6g s, SimGrid %.6g s: %+.2g", got, want, got/want-1)
			if !(math.Abs(got/want-1) <= c.most) {
				t.Errorf("%.6g s, expected %.6g s", got, want)
			}
		})
	}
}

// actionsOf returns the actions of all ranks in an archive of a trace.
func actionsOf(t *testing.T, name string) (text []byte) {
	t.Helper()
	file, err := os.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	unpacked, err := gzip.NewReader(file)
	if err != nil {
		t.Fatal(err)
	}
	for archive := tar.NewReader(unpacked); ; {
		header, err := archive.Next()
		switch {
		case errors.Is(err, io.EOF):
			return text
		case err != nil:
			t.Fatal(err)
		case !strings.HasPrefix(filepath.Base(header.Name), "rank-"):
			continue
		}
		part, err := io.ReadAll(archive)
		if err != nil {
			t.Fatal(err)
		}
		text = append(append(text, part...), '\n')
	}
}

// TestSMPIPingPong compares ping-pongs and windows of 16 messages with measurements under SMPI, which began while the
// messages of a barrier were in flight.
func TestSMPIPingPong(t *testing.T) {
	folder := os.Getenv("TRACEDAG_VECTORS")
	if folder == "" {
		t.Skip("TRACEDAG_VECTORS names no folder of vectors")
	}
	folder = filepath.Join(folder, "smpi")
	for _, c := range []struct{ platform, ranks string }{{"star1g", "32"}, {"fattree100g", "64"},
		{"dragonfly25g", "128"}} {
		t.Run(c.platform, func(t *testing.T) {
			file, err := os.Open(filepath.Join(folder, "micro-"+c.platform+"-"+c.ranks+".csv"))
			if err != nil {
				t.Fatal(err)
			}
			defer file.Close()
			machine := filepath.Join(folder, c.platform)
			count, worst := map[string]int{}, map[string]float64{}
			for lines := bufio.NewScanner(file); lines.Scan(); {
				f := strings.Split(lines.Text(), ",")
				trace := (*dag.Trace)(nil)
				var parts dag.Time = 1
				where, _ := strconv.Atoi(strings.TrimPrefix(f[1], "0-"))
				bytes, _ := strconv.ParseInt(f[2], 10, 64)
				switch f[0] {
				case "pingpong":
					trace, parts = pingPong(where, bytes), 8
				case "window16":
					trace = window(where, bytes)
				default:
					continue
				}
				want, err := strconv.ParseFloat(f[4], 64)
				if err != nil {
					t.Fatal(err)
				}
				r, err := backends.Run(trace, "flow",
					backends.Set("topology="+machine+".xml", "smpi-options="+machine+".options"))
				if err != nil || !r.Complete {
					t.Fatal(err)
				}
				got := float64(r.Finish[0].Ticks) / float64(parts) / 1e12
				d := got/want - 1
				count[f[0]]++
				worst[f[0]] = max(worst[f[0]], math.Abs(d))
				if most := map[string]float64{"pingpong": 2e-3, "window16": 5e-3}[f[0]]; !(math.Abs(d) <= most) {
					t.Errorf("%s: %.6g s, %+.2g", lines.Text(), got, d)
				}
			}
			if count["pingpong"] != 176 || count["window16"] != 22 {
				t.Errorf("%v measurements", count)
			}
			t.Logf("%v measurements, largest differences %v", count, worst)
		})
	}
}

// pingPong returns a trace of four round trips between rank 0 and another one.
func pingPong(other int, bytes int64) *dag.Trace {
	b := dag.NewBuilder(other + 1)
	here, there := []int(nil), []int(nil)
	for range 4 {
		here = []int{b.Rank(0).Send(int32(other), bytes, 0, here...)}
		there = []int{b.Rank(other).Recv(0, bytes, 0, there...)}
		there = []int{b.Rank(other).Send(0, bytes, 0, there...)}
		here = []int{b.Rank(0).Recv(int32(other), bytes, 0, here...)}
	}
	return b.Trace()
}

// window returns a trace of 16 non-blocking sends to another rank, with an empty answer.
func window(other int, bytes int64) *dag.Trace {
	b := dag.NewBuilder(other + 1)
	here, there := b.Rank(0), b.Rank(other)
	wait, taken := []int{here.Calc(0)}, []int{there.Calc(0)}
	before := []int{0, 0}
	for i := range int64(16) {
		send, recv := here.Send(int32(other), bytes, i), there.Recv(0, bytes, i)
		here.RequiresStart(send, before[0])
		there.RequiresStart(recv, before[1])
		wait, taken, before = append(wait, send), append(taken, recv), []int{send, recv}
	}
	end := here.Calc(0, wait...)
	here.RequiresStart(end, before[0])
	here.Recv(int32(other), 0, 99, end)
	end = there.Calc(0, taken...)
	there.Send(0, 0, 99, end)
	return b.Trace()
}

// TestDeferredReceives compares non-blocking receives of the protocol of SMPI with hand calculations: rank 0 posts one
// whose message is there already, sends, and waits for the receive, or for it and one whose message is late.
func TestDeferredReceives(t *testing.T) {
	const us, ns = dag.Microsecond, dag.Nanosecond
	for _, late := range []bool{false, true} {
		b := dag.NewBuilder(3)
		first, second := b.Rank(0), b.Rank(1)
		posted := first.Recv(1, 1000, 0, first.Calc(10*us))
		sent := posted
		if late {
			sent = first.Recv(2, 1000, 1)
			first.RequiresStart(sent, posted)
		}
		requests := []int{posted}
		if late {
			requests = append(requests, sent)
		}
		send := first.Send(1, 1000, 2)
		first.RequiresStart(send, sent)
		first.Calc(5*us, append(requests, send)...)
		second.Recv(0, 1000, 2, second.Send(0, 1000, 0))
		if late {
			b.Rank(2).Send(0, 1000, 1, b.Rank(2).Calc(20*us))
		}
		r, err := backends.Run(b.Trace(), "flow", backends.Set("topology=star:hosts=3,rate=8Gbps,latency=1us",
			"os=0:1e-6", "or=0:2e-6", "async-small=1MB"), backends.Options(sim.RunOptions{Path: &sim.PathOptions{}}))
		if err != nil || !r.Complete {
			t.Fatal(err)
		}
		// The send leaves at 11 us, then the overhead of the receive ends at 13 us. The late message arrives at
		// 24.016 us.
		want := []dag.Time{18 * us, 16*us + 16*ns}
		if late {
			want[0] = 31*us + 16*ns
		}
		for rank, at := range want {
			if got := end(r, rank); got != at {
				t.Errorf("late %v: rank %d ends at %v, expected %v", late, rank, got, at)
			}
		}
		waits := slices.ContainsFunc(r.Path.Steps, func(s sim.PathStep) bool {
			return s.Part != sim.PathCompute && s.Part != sim.PathOverhead
		})
		if waits != late || dag.Time(r.Path.Length()) != want[0] {
			t.Errorf("late %v: critical path of %v with %+v", late, dag.Time(r.Path.Length()), r.Path.Steps)
		}
	}
}
