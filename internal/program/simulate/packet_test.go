package simulate

import (
	"encoding/csv"
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/tracedag/tracedag/internal/cli/clitest"
	"github.com/tracedag/tracedag/sim/packet"
)

const (
	packetInputs = packetTestdata + "/inputs/"
	permutation  = packetInputs + "perm_16_2MiB.cm"
	leafSpine    = "leafspine:hosts=16,tor=4,spines=4,rate=200Gbps,latency=500ns"
)

// packetRun runs the packet backend, and returns its result.
func packetRun(t *testing.T, args ...string) (d packetJSON, text string) {
	t.Helper()
	r := clitest.Run(newCommand, append([]string{"--backend", "packet", "--topology", leafSpine, "--json"}, args...)...)
	if err := json.Unmarshal([]byte(r.Stdout), &d); err != nil {
		t.Fatalf("%v: status %d, %s", err, r.Status, r.Stderr)
	}
	return d, r.Stdout
}

type packetJSON struct {
	Complete bool
	Params   struct {
		MSS      int64              `json:"mss_bytes"`
		Queue    int64              `json:"queue_bytes"`
		MarkMost int64              `json:"ecn_kmax_bytes"`
		Own      map[string]float64 `json:"transport_params"`
		Balance  string
		Coupling struct {
			O int64 `json:"o_ps"`
			S int64 `json:"S_bytes"`
		}
	}
	Makespan  int64            `json:"makespan_ps"`
	Last      int64            `json:"last_completion_ps"`
	FCT       map[string]int64 `json:"fct_ps"`
	Slowdown  map[string]float64
	Goodput   float64 `json:"goodput_gbps"`
	Jain      float64 `json:"jain_fairness_of_flow_throughput"`
	Counters  map[string]int64
	Unlisted  int              `json:"flows_not_listed"`
	Quantiles map[string]int64 `json:"fct_quantiles_ps"`
	Sizes     jsonTable        `json:"fct_by_size"`
	Missing   struct {
		Count int
		First jsonTable
	} `json:"incomplete_flows"`
	Tiers, Ports, Flows jsonTable
}

type jsonTable struct {
	Columns []string
	Rows    [][]any
}

// column returns the numbers of a column.
func (t *jsonTable) column(name string) (values []float64) {
	at := slices.Index(t.Columns, name)
	for _, row := range t.Rows {
		v, _ := row[at].(float64)
		values = append(values, v)
	}
	return values
}

func TestPacketResult(t *testing.T) {
	d, text := packetRun(t, "--sample", "1us", permutation)
	if !d.Complete || len(d.Flows.Rows) != 16 || d.Missing.Count != 0 || d.Params.MSS != 4096 || d.Params.Queue == 0 {
		t.Errorf("got %.1000s", text)
	}
	if _, again := packetRun(t, "--sample", "1us", permutation); again != text {
		t.Error("the same run twice gave two results")
	}
	sum, bytes := 0.0, 0.0
	fct := d.Flows.column("fct_ps_at_sender")
	for i, v := range fct {
		sum += v
		bytes += d.Flows.column("bytes")[i]
	}
	if mean := int64(sum/16 + 0.5); d.FCT["mean"] != mean || d.FCT["max"] != int64(slices.Max(fct)) {
		t.Errorf("mean %d, max %d, expected %d, %v", d.FCT["mean"], d.FCT["max"], mean, slices.Max(fct))
	}
	if got := bytes * 8000 / float64(d.Last); got != d.Goodput {
		t.Errorf("goodput %v, expected %v", d.Goodput, got)
	}
	if d.Slowdown["min"] < 1 || d.Slowdown["max"] < d.Slowdown["p99"] || d.Jain <= 0 || d.Jain > 1 {
		t.Errorf("slowdown %v, Jain %v", d.Slowdown, d.Jain)
	}
	// The sums of sent, lost and marked packets are the same for tiers and ports.
	for _, column := range []string{"packets", "bytes", "trims", "drops", "ecn_marks"} {
		tiers, ports := 0.0, 0.0
		for _, v := range d.Tiers.column(column) {
			tiers += v
		}
		for _, v := range d.Ports.column(column) {
			ports += v
		}
		if tiers != ports {
			t.Errorf("%s: tiers %v, ports %v", column, tiers, ports)
		}
	}
	for _, v := range d.Ports.column("mean_data_queue_bytes") {
		if longest := slices.Max(d.Ports.column("max_data_queue_bytes")); v < 0 || v > longest {
			t.Errorf("mean queue %v, the longest %v", v, longest)
		}
	}
}

func TestPacketMaxFlows(t *testing.T) {
	d, _ := packetRun(t, "--max-flows", "15", permutation)
	if d.Flows.Rows != nil || d.Unlisted != 16 || d.Quantiles["0"] != d.FCT["min"] || d.Quantiles["50"] != d.FCT["p50"] ||
		d.Quantiles["99.9"] != d.FCT["p99.9"] || d.Quantiles["100"] != d.FCT["max"] {
		t.Errorf("quantiles %v of %v", d.Quantiles, d.FCT)
	}
}

func TestPacketFlags(t *testing.T) {
	d, _ := packetRun(t, "--transport", "mprdma", "--queue", "100kB", "--ecn", "20%,80%", "--o", "1us", "--S", "1MiB", "--balance",
		"permute", "--set", "rto=2ms,cap=3", permutation)
	if d.Params.Queue != 100_000 || d.Params.MarkMost != 80_000 || d.Params.Coupling.O != 1_000_000 ||
		d.Params.Coupling.S != 1<<20 || d.Params.Own["rto"] != 2e9 || d.Params.Own["cap"] != 3 || d.Params.Balance != "permute" {
		t.Errorf("got %+v", d.Params)
	}
}

// TestPacketOverhead checks that an overhead that loggops shares with this backend makes the run longer by that of a
// send and a receive.
func TestPacketOverhead(t *testing.T) {
	single := packetInputs + "single_16_4KiB.cm"
	without, _ := packetRun(t, single)
	with, _ := packetRun(t, "--o", "1us", single)
	if with.Makespan != without.Makespan+2_000_000 {
		t.Errorf("makespans %d, %d", without.Makespan, with.Makespan)
	}
}

func TestPacketIncomplete(t *testing.T) {
	r := clitest.Run(newCommand, "--backend", "packet", "--topology", leafSpine, "--end", "50us", "--json", permutation)
	var d packetJSON
	if err := json.Unmarshal([]byte(r.Stdout), &d); err != nil {
		t.Fatal(err)
	}
	if r.Status != 1 || d.Complete || d.Missing.Count != 16 || len(d.Missing.First.Rows) != 16 ||
		!strings.Contains(r.Stderr, "flow 1 from host 0 to host 14, 2097152 bytes, started at 1us, was never delivered") {
		t.Errorf("status %d, %s, %.2000s", r.Status, r.Stderr, r.Stdout)
	}
	for _, row := range d.Flows.Rows {
		if row[flowFCT] != nil || row[flowDelivered] != nil {
			t.Errorf("flow %v", row)
		}
	}
}

func TestPacketFiles(t *testing.T) {
	dir := t.TempDir()
	flows, ports, samples := filepath.Join(dir, "f.csv"), filepath.Join(dir, "p.csv"), filepath.Join(dir, "s.csv")
	d, _ := packetRun(t, "--flows", flows, "--ports", ports, "--samples", samples, "--sample", "1us", "--timeline",
		filepath.Join(dir, "t.json"), permutation)
	for _, file := range []struct {
		name    string
		rows    int
		columns []string
	}{{flows, 16, append(slices.Clone(d.Flows.Columns), "job", "class", "name")}, {ports, len(d.Ports.Rows), d.Ports.Columns}, {samples, -1, nil}} {
		f, err := os.Open(file.name)
		if err != nil {
			t.Fatal(err)
		}
		rows, err := csv.NewReader(f).ReadAll()
		f.Close()
		if err != nil || file.rows >= 0 && len(rows) != file.rows+1 || file.columns != nil && !slices.Equal(rows[0], file.columns) {
			t.Errorf("%s: %d rows, %v", file.name, len(rows), err)
		}
	}
}

func TestPacketSweep(t *testing.T) {
	rows := rowsOf(t, "--backend", "packet", "--topology", leafSpine, "--sweep", "queue=20kB,1MB;window=2,50;mss=0,4KiB", "--csv",
		permutation)
	if len(rows) != 8 || rows[0]["status"] != "failed" || rows[0]["error"] == "" || rows[0]["makespan_ps"] != "" ||
		rows[1]["status"] != "done" || rows[1]["error"] != "" { // for there are no packets without payload
		t.Fatalf("got %v", rows)
	}
	if !strings.Contains(rows[1]["params"], `"queue_bytes":20000,`) || !strings.Contains(rows[7]["params"], `"queue_bytes":1000000,`) ||
		rows[1]["factors"] != `{"mss":"4KiB","queue":"20kB","window":"2"}` {
		t.Errorf("got %v", rows)
	}
	alone, _ := packetRun(t, "--queue", "20kB", "--set", "window=2", permutation)
	if makespan := strconv.FormatInt(alone.Makespan, 10); rows[1]["makespan_ps"] != makespan {
		t.Errorf("makespan %s in a sweep, %s alone", rows[1]["makespan_ps"], makespan)
	}
}

func TestPacketPlacement(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "hosts.txt")
	if err := os.WriteFile(file, []byte("# by rank\n"+strings.Repeat("3\n", 16)), 0o666); err != nil {
		t.Fatal(err)
	}
	makespans := make(map[string]int64)
	for _, law := range []string{"packed", "random", "strided:4", "nodes", file} {
		d, _ := packetRun(t, "--placement", law, permutation)
		makespans[law] = d.Makespan
	}
	if makespans[file] >= makespans["packed"] { // for all ranks are on one host
		t.Errorf("makespans %v", makespans)
	}
	if makespans["nodes"] != makespans["packed"] { // for nothing places these ranks
		t.Errorf("makespans %v", makespans)
	}
	d, _ := packetRun(t, "--placement", file, "--local-rate", "8Gbps", "--local-latency", "5us", permutation)
	if want := int64(1_000_000 + 5_000_000 + 2<<20*1000); d.Makespan != want {
		t.Errorf("makespan %d on one host, expected %d", d.Makespan, want)
	}
}

func TestPacketErrors(t *testing.T) {
	dir := t.TempDir()
	bad := filepath.Join(dir, "bad.txt")
	if err := os.WriteFile(bad, []byte("0\n1\nx\n"), 0o666); err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		args   []string
		status int
		says   string
	}{
		{[]string{"--topology", ""}, 2, "needs a network"},
		{[]string{"--transport", "x"}, 2, `unknown transport "x"`},
		{[]string{"--compat=x"}, 2, "htsim, atlahs"},
		{[]string{"--coupling", "x"}, 2, "expected own, htsim or atlahs"},
		{[]string{"--balance", "x"}, 2, "unknown policy"},
		{[]string{"--set", "x=1"}, 2, `unknown parameter "x"`},
		{[]string{"--set", "rto"}, 2, "expected NAME=VALUE"},
		{[]string{"--set", "rto=1"}, 2, "expected a number with unit"},
		{[]string{"--set", "window=0"}, 2, "window"},
		{[]string{"--mss", "0"}, 2, "--mss: expected 1 to"},
		{[]string{"--ecn", "10%,1kB"}, 2, "sizes or as percentages"},
		{[]string{"--ecn", "2kB,1kB"}, 2, "not below KMIN"},
		{[]string{"--ecn", "120%"}, 2, "0% to 100%"},
		{[]string{"--fail", "tor0-agg9"}, 2, "--fail"},
		{[]string{"--fail", "tor0-agg0@5ms..2ms"}, 2, "expected an end after 5ms"},
		{[]string{"--fail", "tor0-agg0@5ms:0Gbps"}, 2, "rate"},
		{[]string{"--placement", "x"}, 2, "nodes or a file, found"},
		{[]string{"--placement", bad}, 1, bad + ":3: expected the number of a host"},
		{[]string{"--placement", "strided:x"}, 2, "expected a whole number"},
		{[]string{"--nics", "2"}, 1, "16 ranks with 2 NICs"},
		{[]string{"--paths", bad}, 1, bad + ":1: expected source"},
		{[]string{"--paths", bad, "--balance", "spray"}, 2, "--paths needs --balance fixed"},
		{[]string{"--samples", "x.csv"}, 2, "--samples needs --sample"},
		{[]string{"--flows", "x.csv", "--sweep", "seed=1,2"}, 2, "--flows and --sweep"},
		{[]string{"--timeline", "x.viz"}, 2, ".json"},
		{[]string{"--compat", "atlahs", "--coupling", "atlahs", "--end", "1ms"}, 2, "--end"},
		{[]string{"--L", "1us"}, 2, "--L is for the loggops backend, not for packet"},
		{[]string{"--ops"}, 2, "--ops is for the ideal backend"},
	} {
		args := append([]string{"--backend", "packet", "--topology", leafSpine}, test.args...)
		r := clitest.Run(newCommand, append(args, permutation)...)
		if r.Status != test.status || !strings.Contains(r.Stderr, test.says) || r.Stdout != "" {
			t.Errorf("%v: status %d, %s", test.args, r.Status, r.Stderr)
		}
	}
	r := clitest.Run(newCommand, "--queue", "1MB", permutation)
	if r.Status != 2 || !strings.Contains(r.Stderr, "--queue is for the packet backend, not for loggops") {
		t.Errorf("status %d, %s", r.Status, r.Stderr)
	}
}

func TestListTransports(t *testing.T) {
	r := clitest.Run(newCommand, "--list-transports")
	if r.Status != 0 {
		t.Fatal(r.Stderr)
	}
	for _, transport := range packet.Transports {
		if !strings.Contains(r.Stdout, "\n"+transport.Name+": ") && !strings.HasPrefix(r.Stdout, transport.Name+": ") {
			t.Errorf("%s is not listed", transport.Name)
		}
	}
}

// TestTransportsPage checks that the page of documentation lists the transports as --list-transports does.
// FuzzPacketInputs checks that no placement, paths, marks or failure makes the program panic.
// --compat may be followed by a simulator, which is no file then; other backends have none.
func TestPacketCompat(t *testing.T) {
	for _, args := range [][]string{{"--compat", "htsim", permutation}, {permutation, "--compat=htsim"}, {"--compat", "--compat", "htsim", permutation}} {
		if d, text := packetRun(t, args...); !strings.Contains(text, `"compat":"htsim"`) || !d.Complete {
			t.Errorf("%v: %s", args, text)
		}
	}
	if _, text := packetRun(t, "--compat", permutation); strings.Contains(text, `"compat":"htsim"`) {
		t.Error("--compat alone is for the format")
	}
	r := clitest.Run(newCommand, "--backend", "loggops", "--compat", "htsim", permutation)
	if r.Status != 2 || !strings.Contains(r.Stderr, "packet backend") {
		t.Errorf("status %d, %s", r.Status, r.Stderr)
	}
}

// A connection matrix may name links that are down.
func TestPacketMatrixFailures(t *testing.T) {
	const tree = "fattree:k=4,rate=100Gbps"
	file := filepath.Join(t.TempDir(), "x.cm")
	write := func(failures string) {
		text := "Nodes 16\nConnections 1\n" + failures + "0->15 id 1 start 0 size 1048576\n"
		if err := os.WriteFile(file, []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	cores := func() int {
		d, text := packetRun(t, "--topology", tree, "--balance", "permute", file)
		if !d.Complete {
			t.Fatal(text)
		}
		return len(regexp.MustCompile(`"agg[01]->core\d"`).FindAllString(text, -1))
	}
	write("")
	if got := cores(); got != 4 {
		t.Errorf("%d ways up are used", got)
	}
	write("Failures 2\nfailure switch_type AGG switch_id 0 link_id 1\nfailure switch_type AGG switch_id 1 link_id 0\n")
	if got := cores(); got != 2 {
		t.Errorf("with two links down, %d uplinks are used", got)
	}
	write("Failures 1\nfailure switch_type AGG switch_id 99 link_id 0\n")
	r := clitest.Run(newCommand, "--backend", "packet", "--topology", tree, file)
	if r.Status != 1 || !strings.Contains(r.Stderr, "expected an aggregation switch from 0 to 7, found 99") {
		t.Errorf("status %d, %s", r.Status, r.Stderr)
	}
}
