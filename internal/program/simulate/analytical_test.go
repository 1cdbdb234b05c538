package simulate

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/tracedag/tracedag/dag"
	"github.com/tracedag/tracedag/dag/gen/collective"
	"github.com/tracedag/tracedag/formats/chakra"
	"github.com/tracedag/tracedag/formats/format"
	"github.com/tracedag/tracedag/internal/cli/clitest"
)

// npuDocument is the analytical backend's part of the result.
type npuDocument struct {
	Backend, Model string
	Params         map[string]any
	Complete       bool
	Makespan       int64   `json:"makespan_ps"`
	Finish         []int64 `json:"finish_ps"`
	Messages       int64
	NPUs           npuArrays `json:"npu_stats"`
	Error          string
}

// npuArrays are the arrays of npu_stats.
type npuArrays map[string][]json.Number

func (a *npuArrays) UnmarshalJSON(text []byte) error {
	var members map[string]json.RawMessage
	if err := json.Unmarshal(text, &members); err != nil {
		return err
	}
	*a = make(npuArrays)
	for name, text := range members {
		if name == "breakdown" {
			continue
		}
		var list []json.Number
		if err := json.Unmarshal(text, &list); err != nil {
			return err
		}
		(*a)[name] = list
	}
	return nil
}

// allreduceFile returns a file with an allreduce of 1 MiB.
func allreduceFile(t *testing.T, ranks int) string {
	t.Helper()
	p := collective.Default()
	p.Size, p.Ranks = 1<<20, ranks
	trace, err := readAll(collective.NewSource(p))
	if err != nil {
		t.Fatal(err)
	}
	return storedFile(t, trace)
}

// configFile writes a configuration to a file of a temporary folder.
func configFile(t *testing.T, name, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(text), 0o666); err != nil {
		t.Fatal(err)
	}
	return path
}

// ringSystem is the configuration of ASTRA-sim's own regression test, on 8 NPUs, which expects 117780 ns.
const ringSystem = `{
	"scheduling-policy": "LIFO", "endpoint-delay": 10, "active-chunks-per-dimension": 1, "preferred-dataset-splits": 4,
	"all-reduce-implementation": ["ring"], "all-gather-implementation": ["ring"],
	"collective-optimization": "localBWAware", "local-mem-bw": 50, "boost-mode": 0
}`

func runAnalytical(t *testing.T, args ...string) npuDocument {
	t.Helper()
	r := clitest.Run(newCommand, append([]string{"--backend", "analytical", "--json"}, args...)...)
	if r.Status != 0 || r.Stderr != "" {
		t.Fatalf("%q: status %d, stderr %q", args, r.Status, r.Stderr)
	}
	var d npuDocument
	if err := json.Unmarshal([]byte(r.Stdout), &d); err != nil {
		t.Fatalf("%v in %.500s", err, r.Stdout)
	}
	return d
}

func TestAnalytical(t *testing.T) {
	trace := allreduceFile(t, 8)
	system := configFile(t, "s.json", ringSystem)
	network := configFile(t, "n.yml", "topology: [ Ring ]\nnpus_count: [ 8 ]\nbandwidth: [ 50.0 ]\nlatency: [ 500.0 ]\n")
	memory := configFile(t, "m.json", `{"memory-type": "NO_MEMORY_EXPANSION"}`)
	for _, args := range [][]string{
		{"--network", network}, {"--network", "Ring(8)@50GB/s,500ns"}, {"--network", network, "--congestion", "aware"},
		{"--network", network, "--memory", memory},
	} {
		d := runAnalytical(t, append(args, "--system", system, trace)...)
		want := slices.Repeat([]json.Number{"117780"}, 8)
		if !d.Complete || d.Makespan != 117780000 || !slices.Equal(d.NPUs["cycles"], want) ||
			!slices.Equal(d.NPUs["exposed"], want) || !slices.Equal(d.NPUs["comm_time"], want) || d.Messages != 448 {
			t.Errorf("%q: got %+v", args, d)
		}
		if model := map[bool]string{false: "unaware", true: "aware"}[slices.Contains(args, "aware")]; d.Model != model {
			t.Errorf("%q: got model %q", args, d.Model)
		}
		if d.Params["network"] != "Ring(8)" || d.Params["bw0_GiBps"] != 50.0 || d.Params["splits"] != 4.0 {
			t.Errorf("%q: got params %v", args, d.Params)
		}
	}
}

// TestAnalyticalDefaultSystem checks the system without --system against the closed forms of ring and halvingDoubling.
func TestAnalyticalDefaultSystem(t *testing.T) {
	trace := allreduceFile(t, 8)
	for network, want := range map[string]int64{
		"R(8)@50GB/s,500ns":  15*10 + 14*(500+2441),
		"SW(8)@50GB/s,500ns": 7*10 + 2*(10765+5882+3441),
	} {
		if d := runAnalytical(t, "--network", network, trace); d.Makespan != want*1000 {
			t.Errorf("%s: got %d ps, expected %d ns", network, d.Makespan, want)
		}
	}
}

func TestAnalyticalScalesInjection(t *testing.T) {
	trace := allreduceFile(t, 8)
	system := configFile(t, "s.json", ringSystem)
	d := runAnalytical(t, "--network", "R(8)@50GB/s,500ns", "--system", system, "--injection-scale", "2.5", trace)
	if want := int64(117780+4*15*15) * 1000; d.Makespan != want {
		t.Errorf("got %d ps, expected %d", d.Makespan, want)
	}
}

func TestAnalyticalTable(t *testing.T) {
	system := configFile(t, "s.json", ringSystem)
	for ranks, want := range map[string][]string{
		"8":  {"makespan    117.78us", "parameters  Ring(8)@50GiB/s,500ns splits=4", "\n7    117.78us  0s       117.78us"},
		"32": {"\nmean  ", "\nmin   ", "\nmax   "},
	} {
		n := map[string]int{"8": 8, "32": 32}[ranks]
		network := "Ring(" + ranks + ")@50GB/s,500ns"
		r := clitest.Run(newCommand, "--backend", "analytical", "--network", network, "--system", system, allreduceFile(t, n))
		for _, text := range want {
			if !strings.Contains(r.Stdout, text) {
				t.Errorf("%s ranks: expected %q in %s%s", ranks, text, r.Stdout, r.Stderr)
			}
		}
	}
}

func TestAnalyticalSweep(t *testing.T) {
	trace := allreduceFile(t, 8)
	system := configFile(t, "s.json", ringSystem)
	args := []string{"--backend", "analytical", "--network", "Ring(8)@50GB/s,500ns", "--system", system}
	const grid = "bw0=50,100GB/s;lat=500,1us;splits=1..4:2;endpoint-delay=10"
	r := clitest.Run(newCommand, append(args, "--sweep", grid, trace)...)
	if r.Status != 0 || r.Stderr != "" {
		t.Fatalf("status %d, stderr %q", r.Status, r.Stderr)
	}
	var got []int64
	for line := range strings.Lines(r.Stdout) {
		var d npuDocument
		if err := json.Unmarshal([]byte(line), &d); err != nil {
			t.Fatal(err)
		}
		got = append(got, d.Makespan/1000)
	}
	var want []int64
	for _, serial := range [][2]float64{{2441.40625, 610.3515625}, {1220.703125, 305.17578125}} { // by bandwidth
		for _, latency := range []float64{500, 1000} {
			for i, chunks := range []int64{1, 4} {
				message := int64(latency + serial[i])
				reduction := 3 * ((1 << 17) / chunks / 50)
				want = append(want, chunks*(15*10+14*message+7*reduction))
			}
		}
	}
	if !slices.Equal(got, want) {
		t.Errorf("got %v ns, expected %v", got, want)
	}
	one := rowsOf(t, append(args, "--sweep", "bw0=50;bw=3", "--csv", trace)...)
	if one[0]["makespan_ps"] != "117780000" {
		t.Errorf("bw0 does not go before bw: %v", one)
	}
	rows := rowsOf(t, append(args, "--sweep", "bw=50..100:2", "--csv", trace)...)
	if len(rows) != 2 || rows[0]["topology"] != "Ring(8)@50GB/s,500ns" || rows[0]["makespan_ps"] != "117780000" ||
		!strings.Contains(rows[0]["params"], `"bw0_GiBps":50,`) || !strings.Contains(rows[1]["params"], `"bw0_GiBps":100,`) ||
		rows[0]["factors"] != `{"bw":"50"}` || rows[1]["factors"] != `{"bw":"100"}` {
		t.Errorf("got %v", rows)
	}
	for _, sweep := range []string{"bw0=0", "bw1=5", "splits=0", "splits=1.5", "lat0=-1", "lat0=5GB/s", "peak-perf=1",
		"endpoint-delay=3s", "local-mem-bw=nan", "queues=5000"} {
		if r := clitest.Run(newCommand, append(args, "--sweep", sweep, trace)...); r.Status != 2 {
			t.Errorf("%s: status %d, %s", sweep, r.Status, r.Stderr)
		}
	}
}

// TestAnalyticalLowers checks which collectives the backend runs itself.
func TestAnalyticalLowers(t *testing.T) {
	barrier := func(root int32, kind dag.Subkind) string {
		b := dag.NewBuilder(4)
		for rank := range 4 {
			b.Rank(rank).Add(dag.Op{Kind: dag.Coll, Subkind: kind, Bytes: 1 << 20, Peer: root, Duration: 7 * dag.Microsecond})
			b.Rank(rank).Add(dag.Op{Kind: dag.Coll, Subkind: dag.Allreduce, Bytes: 1 << 20}, 0)
		}
		return storedFile(t, b.Trace())
	}
	const network = "R(4)@50GB/s,500ns"
	const allreduce = 6 * (500 + 4882)
	const own = 7*10 + allreduce // without the ops before it
	if d := runAnalytical(t, "--network", network, barrier(dag.UnknownRoot, dag.Bcast)); d.Makespan != (own+7000)*1000 {
		t.Errorf("bcast of unknown root: got %d ps, expected %d ns", d.Makespan, own+7000)
	}
	d := runAnalytical(t, "--network", network, "--collective", "bcast=linear", barrier(0, dag.Bcast))
	if d.Messages != 3+24 || d.Makespan <= own*1000 {
		t.Errorf("bcast: got %d messages, %d ps", d.Messages, d.Makespan)
	}
	d = runAnalytical(t, "--network", network, "--collective", "barrier=linear", barrier(0, dag.Barrier))
	if d.Messages != 6+24 || d.Makespan <= own*1000 {
		t.Errorf("barrier: got %d messages, %d ps", d.Messages, d.Makespan)
	}
}

// TestUndefinedGroups checks that a trace with an undefined communicator is an error.
func TestUndefinedGroups(t *testing.T) {
	b := dag.NewBuilder(8)
	group := b.AddComm(dag.NewComm("7", []int32{0, 1, 2, 3, 4, 5, 6, 7}))
	for rank := range 8 {
		b.Rank(rank).Add(dag.Op{Kind: dag.Coll, Subkind: dag.Allreduce, Bytes: 1 << 20, Comm: group})
	}
	trace := b.Trace()
	trace.Attrs = `{"chakra": {"undefined_groups": ["7"]}}`
	path := storedFile(t, trace)
	for _, backend := range [][]string{{"analytical", "--network", "R(8)@50GB/s,500ns"}, {"loggops"}, {"ideal"}} {
		args := append([]string{path, "--backend"}, backend...)
		r := clitest.Run(newCommand, args...)
		if r.Status != 1 || !strings.Contains(r.Stderr, `communicator "7" is undefined`) {
			t.Errorf("%q: status %d, %s", backend, r.Status, r.Stderr)
		}
		if r := clitest.Run(newCommand, append(args, "--lenient")...); r.Status != 0 {
			t.Errorf("%q: status %d, %s", backend, r.Status, r.Stderr)
		}
	}
}

// TestUndefinedGroupsOnce checks that an undefined communicator causes one message: the error, or the warning of
// --lenient. Merged traces fail if one of them has an undefined communicator.
func TestUndefinedGroupsOnce(t *testing.T) {
	node := `{"id": "1", "type": "COMM_COLL_NODE", "attr": [{"name": "is_cpu_op", "boolVal": false},
		{"name": "comm_type", "int64Val": "0"}, {"name": "comm_size", "int64Val": "1024"},
		{"name": "pg_name", "stringVal": "7"}]}`
	path := configFile(t, "x.0.json", `{"version": "1.0.0"}`+node)
	for _, args := range [][]string{{path}, {path, "--trace", path}, {"--trace", path + "@1us"}} {
		args = append(args, "--backend", "ideal")
		r := clitest.Run(newCommand, args...)
		if r.Status != 1 || strings.Count(r.Stderr, "\n") != 1 || !strings.Contains(r.Stderr, `communicator "7" is undefined`) {
			t.Errorf("%q: status %d, %s", args, r.Status, r.Stderr)
		}
		r = clitest.Run(newCommand, append(args, "--lenient")...)
		if r.Status != 0 || !strings.Contains(r.Stderr, `communicator "7" is undefined`) {
			t.Errorf("%q, lenient: status %d, %s", args, r.Status, r.Stderr)
		}
	}
}

// TestAnalyticalNamesNodes checks that messages have the numbers of nodes in Chakra's format.
func TestAnalyticalNamesNodes(t *testing.T) {
	b := dag.NewBuilder(2)
	for rank := range 2 {
		b.Rank(rank).Add(dag.Op{Kind: dag.Coll, Subkind: dag.Allreduce, Bytes: 10})
	}
	b.Rank(1).Add(dag.Op{Kind: dag.Recv, Peer: 0, Bytes: 5, Tag: 3, Attrs: `{"id":42}`})
	trace := b.Trace()
	trace.Attrs = `{"chakra": {}}`
	r := clitest.Run(newCommand, "--backend", "analytical", "--network", "R(2)@1GB/s,1ns", "--json", storedFile(t, trace))
	if r.Status != 1 || !strings.Contains(r.Stderr, "rank 1 op 1 (recv, node 42) waits for a message of 5 bytes") ||
		!strings.Contains(r.Stdout, `"node":"42"`) {
		t.Errorf("status %d, %s%s", r.Status, r.Stderr, r.Stdout)
	}
}

func TestAnalyticalReplicates(t *testing.T) {
	b := dag.NewBuilder(1)
	b.Rank(0).Add(dag.Op{Kind: dag.Coll, Subkind: dag.Allreduce, Bytes: 1 << 20})
	system := configFile(t, "s.json", ringSystem)
	d := runAnalytical(t, "--network", "R(8)@50GB/s,500ns", "--system", system, "--replicate-rank0", storedFile(t, b.Trace()))
	if d.Makespan != 117780000 || len(d.Finish) != 8 {
		t.Errorf("got %+v", d)
	}
}

// TestAnalyticalCases repeats ASTRA-sim's runs on up to 64 NPUs from their files.
func TestAnalyticalCases(t *testing.T) {
	const folder = "../../../sim/analytical/testdata/cases/"
	text, err := os.ReadFile(folder + "cases.json")
	if err != nil {
		t.Fatal(err)
	}
	var cases []struct {
		ID, Workload, Network, System string
		NPUs                          int
		Memory                        string `json:"remote_memory"`
		Groups                        string `json:"comm_groups"`
		Queues                        int    `json:"num_queues_per_dim"`
		Replicated                    bool   `json:"replicated_rank0"`
		Expected                      map[string]map[string]struct {
			All    *json.Number
			PerNPU []json.Number `json:"per_npu"`
		}
	}
	if err := json.Unmarshal(text, &cases); err != nil {
		t.Fatal(err)
	}
	ran := 0
	for _, c := range cases {
		if c.NPUs > 64 {
			continue
		}
		ran++
		for backend, expected := range c.Expected {
			congestion, _, _ := strings.Cut(backend, "_")
			args := []string{"--backend", "analytical", "--json", "--congestion", congestion, "--network", folder + c.Network,
				"--system", folder + c.System, "--memory", folder + c.Memory, "--queues-per-dim", fmt.Sprint(c.Queues)}
			if c.Groups != "" {
				args = append(args, "--comm-groups", folder+c.Groups)
			}
			if c.Replicated {
				args = append(args, "--replicate-rank0")
			}
			r := clitest.Run(newCommand, append(args, folder+c.Workload)...)
			var d npuDocument
			if err := json.Unmarshal([]byte(r.Stdout), &d); err != nil || r.Status != 0 {
				t.Errorf("%s: status %d, %v, %s", c.ID, r.Status, err, r.Stderr)
				continue
			}
			want := expected["cycles"].PerNPU
			if all := expected["cycles"].All; all != nil {
				want = slices.Repeat([]json.Number{*all}, c.NPUs)
			}
			if !slices.Equal(d.NPUs["cycles"], want) {
				t.Errorf("%s, %s: got cycles %v, expected %v", c.ID, backend, d.NPUs["cycles"], want)
			}
		}
	}
	if ran == 0 {
		t.Error("no case ran")
	}
}

// chakraFiles writes a trace as Chakra files of the given prefix.
func chakraFiles(t *testing.T, prefix string, trace *dag.Trace) {
	t.Helper()
	create := func(suffix string) (io.Writer, error) {
		f, err := os.Create(prefix + suffix)
		if err == nil {
			t.Cleanup(func() { f.Close() })
		}
		return f, err
	}
	if err := chakra.Format.WriteFiles(create, trace, format.WriteOptions{Warn: t.Logf}); err != nil {
		t.Fatal(err)
	}
}

// shift returns a trace in which each of 4 ranks sends a message to the rank at a distance.
func shift(bytes int64, distance int) *dag.Trace {
	b := dag.NewBuilder(4)
	for rank := range 4 {
		b.Rank(rank).Send(int32((rank+distance)%4), bytes, 0)
		b.Rank(rank).Recv(int32((rank+4-distance)%4), bytes, 0)
	}
	return b.Trace()
}

// TestAnalyticalCustom checks collectives that are given as traces, of all or of single ops, in paths relative to the
// system file, and to the working directory, which comes first.
func TestAnalyticalCustom(t *testing.T) {
	folder, working := t.TempDir(), t.TempDir()
	t.Chdir(working)
	const message = 500 + 93 // of 5000 bytes, over one link
	chakraFiles(t, filepath.Join(folder, "near"), shift(5000, 1))
	chakraFiles(t, filepath.Join(folder, "far"), shift(5000, 2))
	b := dag.NewBuilder(4)
	for rank := range 4 {
		b.Rank(rank).Add(dag.Op{Kind: dag.Coll, Subkind: dag.Allreduce, Bytes: 1 << 20})
		b.Rank(rank).Add(dag.Op{Kind: dag.Coll, Subkind: dag.Allreduce, Bytes: 1 << 20, Attrs: `{"id":7}`}, 0)
	}
	trace := storedFile(t, b.Trace())
	system := filepath.Join(folder, "s.json")
	write := func(path, text string) {
		t.Helper()
		if err := os.WriteFile(path, []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	run := func(want int64) {
		t.Helper()
		d := runAnalytical(t, "--network", "R(4)@50GB/s,500ns", "--system", system, trace)
		if d.Makespan != want*1000 {
			t.Errorf("got %d ps, expected %d ns", d.Makespan, want)
		}
	}
	const common = `{"collective-optimization": "baseline", "preferred-dataset-splits": 1,
		"all-reduce-implementation-custom": ["near"]`
	write(system, common+"}")
	run(2 * message)
	write(filepath.Join(folder, "nodes.yml"), "7: far\n")
	write(system, common+`, "per-node-custom-implementation": "nodes.yml"}`)
	run(2*message + 500)
	write("nodes.yml", "0: far\n7: far\n")
	run(2 * (message + 500))
	write("nodes.yml", "7: missing\n")
	r := clitest.Run(newCommand, "--backend", "analytical", "--network", "R(4)@50GB/s,500ns", "--system", system, trace)
	if r.Status != 1 || !strings.Contains(r.Stderr, "missing: no such file") {
		t.Errorf("status %d, %s", r.Status, r.Stderr)
	}
}

func TestAnalyticalRefuses(t *testing.T) {
	trace := allreduceFile(t, 8)
	bad := configFile(t, "bad.json", "{\n\"endpoint-delay\": -1}")
	pool := configFile(t, "pool.json", `{"memory-type": "PER_NODE_MEMORY_EXPANSION", "remote-mem-bw": 1, "num-nodes": 2,
		"num-npus-per-node": 2}`)
	twoRings := configFile(t, "two.json", `{"all-reduce-implementation": ["ring"], "preferred-dataset-splits": 1,
		"collective-optimization": "baseline"}`)
	for _, c := range []struct {
		args   []string
		status int
		want   string
	}{
		{nil, 2, "--network: the analytical backend needs a network"},
		{[]string{"--network", "R(8)@1GB/s"}, 2, "--network: network \"R(8)@1GB/s\": expected bandwidths and latencies"},
		{[]string{"--network", "missing.yml"}, 1, "missing.yml: no such file"},
		{[]string{"--network", "R(8)@1GB/s,1ns", "--congestion", "some"}, 2, "--congestion: expected unaware or aware"},
		{[]string{"--network", "R(8)@1GB/s,1ns", "--queues-per-dim", "0"}, 2, "--queues-per-dim: expected 1 to"},
		{[]string{"--network", "R(8)@1GB/s,1ns", "--injection-scale", "2"}, 2, "--injection-scale needs --system"},
		{[]string{"--network", "R(8)@1GB/s,1ns", "--system", bad}, 1, "bad.json:2: endpoint-delay: expected a number from 0"},
		{[]string{"--network", "R(8)@1GB/s,1ns", "--memory", pool}, 1, "the memory has 2 nodes of 2 NPUs"},
		{[]string{"--network", "R(8)@1GB/s,1ns", "--timeline", "x.viz"}, 2, "--timeline: x.viz: expected a name that ends with .json"},
		{[]string{"--network", "R(8)@1GB/s,1ns", "--ops"}, 2, "--ops"},
		{[]string{"--network", "R(8)@1GB/s,1ns", "--L", "2"}, 2, "--L is for the loggops backend"},
		{[]string{"--network", "R(8)_R(2)@1GB/s,1ns"}, 1, "the trace has 8 ranks, but the network Ring(8)_Ring(2) has 16 NPUs; " +
			"use a network with 8 NPUs, a trace with 16 ranks, or --replicate-rank0 to run one rank on all NPUs"},
		{[]string{"--network", "R(4)@1GB/s,1ns"}, 1, "the trace has 8 ranks, but the network Ring(4) has 4 NPUs; " +
			"use a network with 8 NPUs\n"},
		{[]string{"--network", "R(4)_R(2)@1GB/s,1ns", "--system", twoRings}, 0,
			"all-reduce-implementation has 1 entries, but the network has 2 dimensions"},
	} {
		r := clitest.Run(newCommand, append(append([]string{"--backend", "analytical"}, c.args...), trace)...)
		if r.Status != c.status || !strings.Contains(r.Stderr, c.want) {
			t.Errorf("%q: status %d, %s", c.args, r.Status, r.Stderr)
		}
	}
	if r := clitest.Run(newCommand, "--network", "R(8)@1GB/s,1ns", trace); r.Status != 2 {
		t.Errorf("--network of another backend: status %d", r.Status)
	}
}

// readAll returns the trace of a source, or the error of making the source.
func readAll[S dag.Source](s S, err error) (*dag.Trace, error) {
	if err != nil {
		return nil, err
	}
	return dag.ReadAll(s)
}
