package exec_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/tracedag/tracedag/dag"
	_ "github.com/tracedag/tracedag/internal/testheap"
	"github.com/tracedag/tracedag/sim"
	"github.com/tracedag/tracedag/sim/backends"
)

// TestMain runs a scripted peer if the test binary is started as one.
func TestMain(m *testing.M) {
	if len(os.Args) > 2 && os.Args[1] == "-script" {
		script(os.Args[2])
		return
	}
	os.Exit(m.Run())
}

// script is a peer that writes a part of a text after each hello, run and stats; "|" separates parts, ";" lines.
func script(text string) {
	parts := strings.Split(text, "|")
	in := bufio.NewScanner(os.Stdin)
	for in.Scan() {
		word, _, _ := strings.Cut(in.Text(), " ")
		if word == "bye" {
			return
		}
		if word != "hello" && word != "run" && word != "stats" || len(parts) == 0 {
			continue
		}
		fmt.Print(strings.ReplaceAll(parts[0], ";", "\n"))
		if parts = parts[1:]; len(parts) == 1 && strings.HasPrefix(parts[0], "exit") {
			os.Exit(3)
		}
	}
}

// scripted returns the name of the backend with a scripted peer.
func scripted(text string) string {
	return fmt.Sprintf("exec:'%s' -script '%s'", os.Args[0], text)
}

// reference builds the reference peer and returns its path.
func reference(t testing.TB) string {
	t.Helper()
	peer := filepath.Join(t.TempDir(), "exec-peer")
	build := exec.Command("go", "build", "-buildvcs=false", "-o", peer, "../../docs/examples/exec-peer")
	if output, err := build.CombinedOutput(); err != nil {
		t.Fatalf("building the reference peer: %v\n%s", err, output)
	}
	return peer
}

// vectors returns the folder of the Python peer, or skips the test.
func vectors(t testing.TB) string {
	t.Helper()
	folder := os.Getenv("TRACEDAG_VECTORS")
	if folder == "" {
		t.Skip("TRACEDAG_VECTORS is not set: the Python peer is not run")
	}
	if _, err := exec.LookPath("python3"); err != nil {
		t.Skip("no python3")
	}
	return filepath.Join(folder, "exec")
}

// pingPong returns a trace in which k messages of a size go back and forth.
func pingPong(k int, size int64) *dag.Trace {
	b := dag.NewBuilder(2)
	var last [2][]int
	for i := range k {
		from, to := i%2, 1-i%2
		last[from] = []int{b.Rank(from).Send(int32(to), size, int64(i), last[from]...)}
		last[to] = []int{b.Rank(to).Recv(int32(from), size, int64(i), last[to]...)}
	}
	return b.Trace()
}

// burst returns a trace of k messages of 1000 bytes from rank 0 to rank 1, all ready at time 0.
func burst(k int) *dag.Trace {
	b := dag.NewBuilder(2)
	for i := range k {
		b.Rank(0).Send(1, 1000, int64(i))
		b.Rank(1).Recv(0, 1000, int64(i))
	}
	return b.Trace()
}

func run(t testing.TB, trace *dag.Trace, backend string, set ...string) *sim.Result {
	t.Helper()
	r, err := backends.Run(trace, backend, backends.Set(set...))
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// TestTranscript sends the lines of the transcript to both reference peers and compares their answers.
func TestTranscript(t *testing.T) {
	folder := vectors(t)
	text, err := os.ReadFile(filepath.Join(folder, "transcript.txt"))
	if err != nil {
		t.Fatal(err)
	}
	var questions, answers string
	for line := range strings.Lines(string(text)) {
		if q, is := strings.CutPrefix(line, "> "); is {
			questions += q
		} else if a, is := strings.CutPrefix(line, "< "); is {
			answers += a
		}
	}
	for _, command := range [][]string{
		{"python3", filepath.Join(folder, "peer.py"), "--serial"}, {reference(t), "--serial"},
	} {
		peer := exec.Command(command[0], command[1:]...)
		peer.Stdin = strings.NewReader(questions)
		if got, err := peer.Output(); err != nil || string(got) != answers {
			t.Errorf("%s: error %v, answers\n%s\nwant\n%s", command[0], err, got, answers)
		}
	}
}

// TestPingPong compares the time of k messages with k (L + B G), without overheads.
func TestPingPong(t *testing.T) {
	peers := []string{"exec:" + reference(t) + " --latency 3us --rate 100"}
	if os.Getenv("TRACEDAG_VECTORS") != "" {
		peers = append(peers, "exec:python3 "+filepath.Join(vectors(t), "peer.py")+" --latency 3000000")
	}
	for _, peer := range peers {
		for _, k := range []int{1, 2, 100} {
			for _, size := range []int64{0, 1, 8192} {
				for _, ends := range []string{"start", "sent", "delivered"} {
					r := run(t, pingPong(k, size), peer, "send-ends="+ends)
					if want := uint64(k) * uint64(3_000_000+80*size); r.Makespan.Ticks != want || !r.Complete {
						t.Errorf("%s, %d messages of %d bytes, %s: %v, want %d ps", peer, k, size, ends, r.Makespan, want)
					}
				}
			}
		}
	}
}

// TestToken compares a token in a ring with LogGOPS, whose time of a message is L + (B - 1) G.
func TestToken(t *testing.T) {
	b := dag.NewBuilder(5)
	var last [5][]int
	for i := range 23 {
		from, to := i%5, (i+1)%5
		send := b.Rank(from).Send(int32(to), 4096, 1, b.Rank(from).Calc(dag.Time(1000+i), last[from]...))
		last[from] = []int{send}
		last[to] = []int{b.Rank(to).Recv(int32(from), 4096, 1, last[to]...)}
	}
	trace := b.Trace()
	got := run(t, trace, "exec:"+reference(t)+" --latency 2us --rate 400", "send-ends=start")
	want := run(t, trace, "loggops", "L=2.00002us", "o=0", "g=0", "G=400Gbps", "O=0", "S=1GB")
	for rank := range want.Finish {
		if got.Finish[rank] != want.Finish[rank] {
			t.Errorf("rank %d finishes at %v, with loggops at %v", rank, got.Finish[rank], want.Finish[rank])
		}
	}
}

// TestFailures runs peers that break a rule. The trace has one message of 1000 bytes from rank 0 to rank 1.
func TestFailures(t *testing.T) {
	const (
		ready = "ready x 1 sent stats;|"
		at3   = "sent 0 3;now 3;|"
	)
	for script, want := range map[string]string{
		"hello;":                              `line 1 of its output: expected a line of the protocol, found "hello"`,
		"now 3;":                              `line 1 of its output: expected "ready NAME VERSION [FEATURE...]", the answer to hello, found "now 3"`,
		"ready x;":                            `line 1 of its output: expected "ready NAME VERSION [FEATURE...]", found "ready x"`,
		"ready x  1;":                         `expected "ready NAME VERSION [FEATURE...]"`,
		"error no license;":                   `reports an error: "no license"`,
		"":                                    `expected an answer to "hello" within 1s, found none; increase --exec-timeout`,
		ready:                                 `expected an answer to "run" within 1s`,
		ready + "now":                         `expected an answer to "run" within 1s`,
		ready + "now 5;":                      `line 2 of its output: expected "now -" or reports, the answer to "run -", found "now 5"`,
		ready + "now -1;":                     `line 2 of its output: expected "now T", found "now -1"`,
		ready + "now 05x;":                    `expected "now T", found "now 05x"`,
		ready + "sent 1 3;":                   `expected the ID of a message that was sent, below 1, found "sent 1 3"`,
		ready + "done 0 3;now 3;":             `expected "sent 0 T" before or together with "done 0 T", found "now 3"`,
		ready + "sent 0 3;sent 0 3;":          `expected one "sent ID T" per message`,
		ready + "sent 0 3;done 0 3;done 0 3;": `expected one "done ID T" per message`,
		ready + "sent 0 3;done 0 4;":          `expected the time 3 ps of the first report of the answer, found "done 0 4"`,
		ready + "sent 0 3;now 4;":             `expected "now 3", found "now 4"`,
		ready + "sent 0 3;now -;":             `expected the time of the reports, 3 ps, found "now -"`,
		ready + at3 + "done 0 2;":             `line 4 of its output: expected a time that is not before 3 ps, found "done 0 2"`,
		ready + "stat a 1;":                   `the answer to run, found "stat a 1"`,
		ready + at3 + "done 0 5;now 5;|sent 0 5;":          `the answer to stats, found "sent 0 5"`,
		ready + at3 + "done 0 5;now 5;|stat a 1;stat a 2;": `expected different keys, found "stat a 2"`,
		ready + at3 + "done 0 5;now 5;|stat a;":            `expected "stat KEY VALUE", found "stat a"`,
		ready + "sent 0 9223372036854775808;":              `expected "sent ID T", found "sent 0 9223372036854775808"`,
		ready + "sent 0 3 4;":                              `expected "sent ID T", found "sent 0 3 4"`,
		ready + at3 + "error out of memory;":               `reports an error: "out of memory"`,
		ready + "\x1b[2J\xff;":                             `found "\x1b[2J\xff"`,
		ready + "sent 0 3|exit":                            `line 2 of its output: expected an LF at the end of the line, found "sent 0 3" and the end of the output`,
		ready + "sent 0 3;|exit":                           `it ended before the answer to "run": exit status 3`,
		"ready x 1 stats;|sent 0 3;":                       `expected no "sent ID T" from a peer without the feature sent`,
	} {
		t.Run(script, func(t *testing.T) {
			t.Parallel()
			started := time.Now()
			_, err := backends.Run(burst(1), scripted(script), backends.Set("exec-timeout=1s"))
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("error %v, want %s", err, want)
			}
			if took := time.Since(started); took > 10*time.Second {
				t.Errorf("it took %v", took)
			}
		})
	}
}

// TestCommands runs commands that are no peers.
func TestCommands(t *testing.T) {
	for command, want := range map[string]string{
		"exec:/nonexistent/peer":               "starting the simulator",
		"exec:":                                "exec needs a command",
		"exec":                                 "exec needs a command",
		"exec:peer 'x":                         "expected a closing ', found the end",
		"exec:sh -c 'kill -9 $$'":              "signal: killed",
		"exec:sh -c 'exit 7'":                  "exit status 7",
		"exec:cat /dev/zero":                   "expected a line of at most 65535 bytes, found",
		"exec:yes":                             `found "y"`,
		"exec:sh -c 'exec sleep 1000'":         "within 1s",
		"exec:sh -c 'sleep 1000 & sleep 1000'": "within 1s",
		"exec:sh -c 'trap : TERM; echo x; sleep 1000'":    `found "x"`,
		"exec:sh -c 'exec >&-; sleep 1000'":               "it closed its standard input or output",
		"exec:sh -c 'exec <&-; echo error bad; sleep 99'": `reports an error: "bad"`,
	} {
		t.Run(command, func(t *testing.T) {
			t.Parallel()
			_, err := backends.Run(burst(1), command, backends.Set("exec-timeout=1s"))
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("error %v, want %s", err, want)
			}
		})
	}
}

// TestCancel cancels a run while its peer does not answer.
func TestCancel(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	time.AfterFunc(100*time.Millisecond, cancel)
	_, err := backends.Run(burst(1), "exec:sleep 1000", backends.Context(ctx), backends.Set("exec-timeout=0"))
	if !errors.Is(err, context.Canceled) {
		t.Errorf("error %v", err)
	}
}

// TestExit checks the status of a peer after a complete run.
func TestExit(t *testing.T) {
	peer := "exec:sh -c 'read x; echo ready x 1; read x; read x; echo done 0 0; echo now 0; read x; exit 4'"
	if _, err := backends.Run(burst(1), peer); err == nil || !strings.Contains(err.Error(), "exit status 4") {
		t.Errorf("error %v", err)
	}
}

// TestLost runs a peer that never delivers a message.
func TestLost(t *testing.T) {
	r := run(t, burst(2), scripted("ready x 1;|done 0 5;now 5;|now -;"))
	if r.Complete || r.Makespan.Ticks != 5 || len(r.Stuck) != 1 {
		t.Errorf("complete %v, makespan %v, stuck %+v", r.Complete, r.Makespan, r.Stuck)
	}
}

// TestStats checks counters and settings of results.
func TestStats(t *testing.T) {
	r := run(t, burst(1), scripted("ready net 2 stats;|done 0 5;now 5;|stat drops 3;stat load 0.5;stat text a b;end;"),
		"set=queue=5", "set=name=a b", "set=queue=6")
	stats := fmt.Sprint(r.Section("backend_stats").Value)
	if want := "[{drops 3 } {load 0.5 } {text a b }]"; stats != want {
		t.Errorf("counters %s, want %s", stats, want)
	}
	if got := fmt.Sprint(r.Params.Get("set")); r.Model != "net" || got != "[{queue 5,6 } {name a b }]" {
		t.Errorf("model %s, settings %s", r.Model, got)
	}
}

// TestWindow runs a peer that reports two times in an answer. The second send is late by 3 ps.
func TestWindow(t *testing.T) {
	b := dag.NewBuilder(2)
	b.Rank(0).Send(1, 1, 1)
	b.Rank(1).Send(0, 1, 2, b.Rank(1).Recv(0, 1, 1))
	b.Rank(0).Recv(1, 1, 2)
	b.Rank(0).Send(1, 1, 3)
	b.Rank(1).Recv(0, 1, 3)
	peer := scripted("ready x 1 window;|done 0 5;done 1 7;now 8;|done 2 20;now 20;")
	r := run(t, b.Trace(), peer, "exec-window=10ps")
	if !r.Complete || r.Makespan.Ticks != 20 || r.Section("late_sends").Value != int64(1) ||
		r.Section("largest_lateness_ps").Value != uint64(3) {
		t.Errorf("makespan %v, %v late sends by %v", r.Makespan, r.Section("late_sends").Value,
			r.Section("largest_lateness_ps").Value)
	}
	if _, err := backends.Run(b.Trace(), scripted("ready x 1;"), backends.Set("exec-window=10ps")); err == nil ||
		!strings.Contains(err.Error(), "lacks the feature window; remove --exec-window") {
		t.Errorf("error %v", err)
	}
}

// BenchmarkMoments runs a ping-pong, one exchange of lines per message.
func BenchmarkMoments(b *testing.B) {
	peer := "exec:" + reference(b)
	trace := pingPong(b.N, 8)
	b.ResetTimer()
	run(b, trace, peer, "send-ends=start")
	b.ReportMetric(2*float64(b.N)/b.Elapsed().Seconds(), "moments/s")
}

// BenchmarkBatch runs messages that are handed over together.
func BenchmarkBatch(b *testing.B) {
	peer := "exec:" + reference(b)
	trace := burst(b.N)
	b.ResetTimer()
	run(b, trace, peer, "send-ends=start")
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "messages/s")
}

// flow is a message of a comparison with a plain program of ns-3.
type flow struct {
	start          dag.Time
	source, target int // hosts
	bytes          int64
}

// TestNS3 compares the arrivals of concurrent messages on ns-3 with those of a plain program of ns-3. It needs ns-3: its
// headers and libraries in the paths of g++.
func TestNS3(t *testing.T) {
	if testing.Short() {
		t.Skip("compiles ns3-peer.cc")
	}
	probe := exec.Command("g++", "-fsyntax-only", "-x", "c++", "-")
	probe.Stdin = strings.NewReader("#include <ns3/applications-module.h>\n")
	if err := probe.Run(); err != nil {
		t.Skip("no g++ or no ns-3 (apt-get install libns3-dev)")
	}
	compile := func(source string, libraries ...string) string {
		program := filepath.Join(t.TempDir(), "program")
		build := exec.Command("g++", append([]string{"-O2", "-o", program, source, "-lns3-core", "-lns3-network",
			"-lns3-internet", "-lns3-point-to-point"}, libraries...)...)
		if output, err := build.CombinedOutput(); err != nil {
			t.Fatalf("g++ %s: %v\n%s", source, err, output)
		}
		return program
	}
	peer, plain := compile("../../docs/examples/ns3-peer.cc"), compile("testdata/ns3-flows.cc", "-lns3-applications")

	const hosts = 16
	var permutation, incast, mixed []flow
	for i := range hosts {
		start := dag.Time(i*100_001) * dag.Picosecond
		permutation = append(permutation, flow{start, i, (i + 5) % hosts, 200_000 + int64(i)*1001})
		incast = append(incast, flow{start, 1 + i%(hosts-1), 0, 50_000})
		mixed = append(mixed, flow{start * 37, i * 7 % hosts, (i*3 + 1) % hosts, int64(i) * 40_000})
	}
	const spine = "topology=leafspine"
	for _, c := range []struct {
		name  string
		flows []flow
		set   []string
	}{
		{"one message", []flow{{0, 0, 1, 10_000_000}}, nil},
		{"permutation on a star", permutation, nil},
		{"incast on a star", incast, []string{"rate=25Gbps"}},
		{"permutation on a leaf-spine", permutation, []string{spine, "tor=4", "spines=2"}},
		{"incast on a leaf-spine", incast, []string{spine, "tor=8", "spines=4", "rate=25Gbps", "uplink=10Gbps"}},
		{"mixed on a leaf-spine", mixed, []string{spine, "tor=3", "spines=1", "delay=2us"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, want := arrivals(t, peer, hosts, c.flows, c.set), plainArrivals(t, plain, hosts, c.flows, c.set)
			for i, f := range c.flows {
				if got[i] != want[i] {
					t.Errorf("%+v arrives at %d ps, in a plain program at %d ps", f, got[i], want[i])
				}
			}
			if len(c.flows) == 1 && (got[0] < 8e9 || got[0] > 9e9) {
				t.Errorf("10 MB over two links of 10 Gb/s take %d ps, expected 8 to 9 ms", got[0])
			}
		})
	}
}

// arrivals runs each flow as a message between two ranks of its own, and returns the times at which the receivers
// finish, in picoseconds.
func arrivals(t *testing.T, peer string, hosts int, flows []flow, set []string) (times []uint64) {
	t.Helper()
	b := dag.NewBuilder(2 * len(flows))
	placement := ""
	for i, f := range flows {
		source, target := 2*i, 2*i+1
		b.Rank(source).Add(dag.Op{Kind: dag.Send, Peer: int32(target), Bytes: f.bytes, Release: f.start})
		b.Rank(target).Recv(int32(source), f.bytes, 0)
		placement += fmt.Sprintf("%d\n%d\n", f.source, f.target)
	}
	file := filepath.Join(t.TempDir(), "placement")
	if err := os.WriteFile(file, []byte(placement), 0o600); err != nil {
		t.Fatal(err)
	}
	settings := []string{"send-ends=start", fmt.Sprintf("hosts=%d", hosts), "placement=" + file}
	for _, text := range set {
		settings = append(settings, "set="+text)
	}
	r := run(t, b.Trace(), "exec:"+peer, settings...)
	if !r.Complete {
		t.Fatalf("not complete: %+v", r.Stuck)
	}
	for i := range flows {
		times = append(times, r.Finish[2*i+1].Ticks)
	}
	return times
}

// plainArrivals returns the times at which the flows end in a program of ns-3 without tracedag, in picoseconds.
func plainArrivals(t *testing.T, plain string, hosts int, flows []flow, set []string) (times []uint64) {
	t.Helper()
	lines := ""
	for _, f := range flows {
		lines += fmt.Sprintf("%d %d %d %d\n", int64(f.start/dag.Picosecond), f.source, f.target, max(f.bytes, 1))
	}
	command := exec.Command(plain, append([]string{fmt.Sprint(hosts)}, set...)...)
	command.Stdin = strings.NewReader(lines)
	output, err := command.Output()
	if err != nil {
		t.Fatal(err)
	}
	for _, word := range strings.Fields(string(output)) {
		at, err := strconv.ParseUint(word, 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		times = append(times, at)
	}
	if len(times) != len(flows) {
		t.Fatalf("%d flows, %d times", len(flows), len(times))
	}
	return times
}
