package simulate

import (
	"encoding/csv"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/tracedag/tracedag/dag"
	"github.com/tracedag/tracedag/formats"
	"github.com/tracedag/tracedag/internal/cli/clitest"
	"github.com/tracedag/tracedag/sim/fit"
)

// TestFit: --fit writes a file that --params reads, and its JSON equals the file.
func TestFit(t *testing.T) {
	table, err := filepath.Abs("../../../testdata/fit/machine.csv")
	if err != nil {
		t.Fatal(err)
	}
	keepResults(t, nil)
	text := clitest.Run(newCommand, "--fit", "--fit-out", "machine.json", table)
	warned := "simulate: warning: the parameters miss measured times: window by up to 3.9%; predicted times of such " +
		"messages are off by up to 3.9%\n"
	if text.Status != 0 || text.Stderr != warned || !strings.Contains(text.Stdout, "\nbytes from  L ") &&
		!strings.Contains(text.Stdout, "bytes from") {
		t.Fatalf("status %d, stdout %s, stderr %s", text.Status, text.Stdout, text.Stderr)
	}
	data, err := os.ReadFile("machine.json")
	if err != nil {
		t.Fatal(err)
	}
	if r := clitest.Run(newCommand, "--fit", "--json", table); r.Status != 0 || r.Stdout != string(data) {
		t.Errorf("--json prints %s, expected the file %s", r.Stdout, data)
	}
	if _, err := fit.Parse(data); err != nil {
		t.Error(err)
	}
	r := clitest.Run(newCommand, "--params", "./machine.json", "ring.parquet")
	if r.Status != 0 || !strings.Contains(r.Stdout, "2 segments of size") {
		t.Errorf("status %d, stdout %s, stderr %s", r.Status, r.Stdout, r.Stderr)
	}
	r = clitest.Run(newCommand, "--params", "./machine.json", "--topology", "fattree:k=4", "ring.parquet")
	if r.Status != 0 || !strings.Contains(r.Stderr, "its latencies replace L of ./machine.json") {
		t.Errorf("status %d, stderr %s, expected a warning about L", r.Status, r.Stderr)
	}
	makespan := func(args ...string) string {
		r := clitest.Run(newCommand, append(args, "ring.parquet", "--json")...)
		var result struct {
			Makespan json.Number `json:"makespan_ps"`
		}
		if err := json.Unmarshal([]byte(r.Stdout), &result); err != nil {
			t.Fatalf("%v: %v, %s", args, err, r.Stderr)
		}
		return result.Makespan.String()
	}
	// Flags replace the values of all segments.
	same := []string{"--L", "1us", "--o", "100ns", "--G", "0.1", "--O", "0", "--g", "5ns", "--S", "1MiB"}
	if a, b := makespan(append([]string{"--params", "./machine.json"}, same...)...), makespan(same...); a != b {
		t.Errorf("makespan %s with flags over a file, expected that of the flags, %s", a, b)
	}
	if a, b := makespan("--params", "./machine.json", "--L", "1us"), makespan("--L", "1us", "--params", "./machine.json"); a != b {
		t.Errorf("makespans %s and %s depend on the order of flags", a, b)
	}
	if r := clitest.Run(newCommand, "--model", "loggopsim", "--params", "./machine.json", "ring.parquet"); r.Status != 2 ||
		!strings.Contains(r.Stderr, "use a parameter file with --model strict") {
		t.Errorf("status %d, stderr %s", r.Status, r.Stderr)
	}
}

// TestFitNetworks: files of the backends packet and analytical select the backend, its network and its model, and flags
// replace their values.
func TestFitNetworks(t *testing.T) {
	keepResults(t, nil)
	table := "where,bytes,seconds\n"
	for bytes := 1; bytes <= 1<<20; bytes *= 2 {
		table += fmt.Sprintf("0-1,%d,%g\n", bytes, 3e-6+float64(bytes)*1e-9)
	}
	if err := os.WriteFile("t.csv", []byte(table), 0o666); err != nil {
		t.Fatal(err)
	}
	result := func(args string) (r struct {
		Backend  string         `json:"backend"`
		Model    string         `json:"model"`
		Makespan int64          `json:"makespan_ps"`
		Params   map[string]any `json:"params"`
	}) {
		t.Helper()
		out := clitest.Run(newCommand, strings.Fields(args+" --json ring.parquet")...)
		if err := json.Unmarshal([]byte(out.Stdout), &r); err != nil {
			t.Fatalf("%s: %v, %s", args, err, out.Stderr)
		}
		return r
	}
	for _, tt := range []struct{ backend, model, network, other string }{
		{"packet", "dctcp", "--topology star:hosts=4,rate=10Gbps --transport dctcp", "--transport ndp"},
		{"analytical", "aware", "--network Ring(4)@1GB/s,1us --congestion aware", "--congestion unaware"},
	} {
		r := clitest.Run(newCommand, strings.Fields("--fit --fit-out f.json --plot fit=f.svg --fit-backend "+tt.backend+" "+
			tt.network+" t.csv")...)
		if r.Status != 0 || !strings.Contains(r.Stdout, "backend     "+tt.backend+", model "+tt.model+"\n") {
			t.Fatalf("%s: status %d, stdout %s, stderr %s", tt.backend, r.Status, r.Stdout, r.Stderr)
		}
		fitted := result("--params ./f.json")
		if fitted.Backend != tt.backend || fitted.Model != tt.model {
			t.Errorf("backend %s, model %s, expected %s, %s", fitted.Backend, fitted.Model, tt.backend, tt.model)
		}
		if other := result("--params ./f.json " + tt.other); other.Model == tt.model {
			t.Errorf("%s has no effect on the model %s", tt.other, other.Model)
		}
		if tt.backend == "packet" {
			if faster := result("--params ./f.json --bandwidth-factor 4"); faster.Makespan >= fitted.Makespan {
				t.Errorf("makespan %d ps on faster links, expected less than %d", faster.Makespan, fitted.Makespan)
			}
			if _, is := fitted.Params["bandwidth_factor"]; !is {
				t.Errorf("parameters %v lack bandwidth_factor", fitted.Params)
			}
			continue
		}
		if bw, _ := fitted.Params["bw0_GiBps"].(float64); math.Abs(bw-1e9/(1<<30)) > 1e-3 {
			t.Errorf("parameters %v, expected the bandwidth 1e9 B/s", fitted.Params)
		}
	}
}

// TestFitFiles checks that a parameter file finds its network from other folders, and that FILE@RANKS states the number
// of ranks of a table.
func TestFitFiles(t *testing.T) {
	keepResults(t, nil)
	for _, folder := range []string{"net", "out"} {
		if err := os.Mkdir(folder, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	for name, text := range map[string]string{
		"net/p.xml": `<platform version="4.1"><cluster id="c" prefix="h" suffix="" radical="0-3" speed="1Gf" bw="1GBps"
			lat="1us"/></platform>`,
		"t.csv": "test,bytes,us\npingpong,8,1\npingpong,1000000,1001\n",
		"c.txt": "# OSU MPI Allreduce Latency Test v7.3\n# Size  Avg Latency(us)\n8  4.0\n",
	} {
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	r := clitest.Run(newCommand, "--fit", "--fit-backend", "flow", "--topology", "net/p.xml", "--fit-out", "out/m.json",
		"t.csv", "c.txt@4")
	if r.Status != 0 || !strings.Contains(r.Stdout, "allreduce   4") {
		t.Fatalf("status %d, stdout %s, stderr %s", r.Status, r.Stdout, r.Stderr)
	}
	run := func(want string) {
		t.Helper()
		r := clitest.Run(newCommand, "-q", "--params", "out/m.json", "ring.parquet")
		if !strings.Contains(r.Stdout+r.Stderr, want) {
			t.Errorf("status %d, stdout %s, stderr %s, expected %s", r.Status, r.Stdout, r.Stderr, want)
		}
	}
	run("flow")
	if err := os.Remove("net/p.xml"); err != nil {
		t.Fatal(err)
	}
	run(`out/m.json: member "topology": expected ../net/p.xml in the working folder`)
	if r := clitest.Run(newCommand, "--fit", "t.csv@x"); r.Status != 2 || !strings.Contains(r.Stderr, "expected FILE@RANKS") {
		t.Errorf("status %d, stderr %s", r.Status, r.Stderr)
	}
}

// TestFitPlot draws a fit, and compares its numbers with the table.
func TestFitPlot(t *testing.T) {
	keepResults(t, nil)
	table := "where,bytes,us\n0-1,0,1\n0-2,0,2\n"
	for _, bytes := range []int{1, 10, 100, 1000, 10000} {
		table += fmt.Sprintf("0-1,%d,%g\n0-2,%d,%g\n", bytes, 1+float64(bytes)/1000, bytes, 2+float64(bytes)/1000)
	}
	if err := os.WriteFile("t.csv", []byte(table), 0o666); err != nil {
		t.Fatal(err)
	}
	r := clitest.Run(newCommand, strings.Fields("--fit --plot fit=a.svg --plot b.svg --plot-data d.csv t.csv")...)
	if r.Status != 0 {
		t.Fatal(r.Stderr)
	}
	for _, name := range []string{"a.svg", "b.svg"} {
		if data, err := os.ReadFile(name); err != nil || !strings.Contains(string(data), "residual") {
			t.Errorf("%s: %v, %.100s", name, err, data)
		}
	}
	data, err := os.ReadFile("d.csv")
	if err != nil {
		t.Fatal(err)
	}
	rows, err := csv.NewReader(strings.NewReader(string(data))).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]int{}
	for _, row := range rows[1:] {
		seen[row[1]]++
		bytes, _ := strconv.ParseFloat(row[2], 64)
		took, _ := strconv.ParseFloat(row[3], 64)
		residual, _ := strconv.ParseFloat(row[4], 64)
		start := map[byte]float64{'1': 1e6, '2': 2e6}[row[1][2]]
		switch {
		case row[4] != "" && math.Abs(residual) > 1e-6, row[4] == "" && math.Abs(took/(start+bytes*1000)-1) > 1e-6:
			t.Errorf("%v: expected the line of the table", row)
		}
	}
	// Each picture has the five sizes above 0 of each path.
	if seen["0-1"] != 10 || seen["0-2"] != 10 || seen["0-1, residual"] != 10 || seen["0-2, fitted"] < 20 {
		t.Errorf("found rows %v", seen)
	}
}

// TestFittedSweep: the backend and the algorithms of a parameter file apply to each point of a sweep, also if the files
// are an axis.
func TestFittedSweep(t *testing.T) {
	keepResults(t, nil)
	b := dag.NewBuilder(8)
	for rank := range 8 {
		b.Rank(rank).Add(dag.Op{Kind: dag.Coll, Subkind: dag.Allgather, Bytes: 1000})
	}
	if _, err := formats.Write("gather.parquet", b.Trace(), formats.WriteOptions{}); err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{
		"loggops.json": `{"backend":"loggops","model":"strict","parameters":{},"segments":[{"from":0,"parameters":` +
			`{"L":{"value":1e-6,"unit":"s"}}}],"collective":"allgather=recdoubling"}`,
		"flow.json": `{"backend":"flow","model":"smpi","topology":"star:hosts=8,rate=100Gbps,latency=1us",` +
			`"parameters":{},"segments":[{"from":0,"parameters":{"latency_factor":{"value":2,"unit":"1"},` +
			`"bandwidth_factor":{"value":1,"unit":"1"}}}],"collective":"allgather=recdoubling"}`,
	} {
		if err := os.WriteFile(name, []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	makespans := func(args ...string) (all []string) {
		r := clitest.Run(newCommand, append(args, "gather.parquet", "--json", "-q")...)
		if r.Status != 0 {
			t.Fatalf("%v: status %d, %s", args, r.Status, r.Stderr)
		}
		for line := range strings.Lines(r.Stdout) {
			var result struct {
				Backend  string      `json:"backend"`
				Makespan json.Number `json:"makespan_ps"`
			}
			if err := json.Unmarshal([]byte(line), &result); err != nil {
				t.Fatal(err)
			}
			all = append(all, result.Backend+" "+result.Makespan.String())
		}
		return all
	}
	loggops, flow := makespans("--params", "./loggops.json"), makespans("--params", "./flow.json")
	if ring := makespans("--params", "./loggops.json", "--collective", "allgather=ring"); slices.Equal(ring, loggops) {
		t.Errorf("%v with the algorithm of the file and with ring", ring)
	}
	for _, tt := range []struct {
		args string
		want []string
	}{
		{"--params ./loggops.json --sweep g=0,0ns", slices.Concat(loggops, loggops)},
		{"--params ./flow.json --sweep envelope=16,16B", slices.Concat(flow, flow)},
		{"--sweep params=./loggops.json,./flow.json", slices.Concat(loggops, flow)},
		{"--params ./flow.json --replicas 2", slices.Concat(flow, flow)},
	} {
		if got := makespans(strings.Fields(tt.args)...); !slices.Equal(got, tt.want) {
			t.Errorf("%s: %v, expected %v", tt.args, got, tt.want)
		}
	}
}

// TestParamsUncovered: a run with an estimate warns about collectives that no measurement covers, once each.
func TestParamsUncovered(t *testing.T) {
	keepResults(t, nil)
	b := dag.NewBuilder(8)
	for rank := range 8 {
		for _, bytes := range []int64{1000, 1000, 4000} {
			b.Rank(rank).Add(dag.Op{Kind: dag.Coll, Subkind: dag.Allgather, Bytes: bytes})
		}
	}
	if _, err := formats.Write("gather.parquet", b.Trace(), formats.WriteOptions{}); err != nil {
		t.Fatal(err)
	}
	const file = `{"backend":"loggops","model":"strict","parameters":{},"segments":[{"from":0,"parameters":` +
		`{"L":{"value":1e-6,"unit":"s"}}}],"collective":"allgather=recdoubling","collectives":[{"collective":"allgather",` +
		`"ranks":8,"from":8,"to":2000,"algorithm":"recdoubling","error":0.01}]%s}`
	for name, text := range map[string]string{
		"fitted.json": fmt.Sprintf(file, `,"sources":[{"name":"t.csv","tool":"csv","sha256":""}]`),
		"made.json":   fmt.Sprintf(file, ""), // by hand
	} {
		if err := os.WriteFile(name, []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	const want = "simulate: warning: ./fitted.json: allgather of 4000 bytes, measured from 8 to 2000; the algorithm is "
	for args, warnings := range map[string]int{
		"--params ./fitted.json gather.parquet":                             1,
		"--params ./fitted.json --sweep g=0,1us gather.parquet":             1,
		"--params ./fitted.json --collective allgather=ring gather.parquet": 0,
		"--params ./made.json gather.parquet":                               0,
		"--backend flow --topology star:hosts=8,latency=1us gather.parquet": 0,
		"--params ./fitted.json --lower allgather=ring gather.parquet":      0,
		"--backend loggops --params ./fitted.json -q --json gather.parquet": 0,
	} {
		r := clitest.Run(newCommand, strings.Fields(args)...)
		if r.Status != 0 || strings.Count(r.Stderr, want) != warnings || strings.Count(r.Stderr, "warning") != warnings {
			t.Errorf("%s: status %d, stderr %q, expected %d warnings", args, r.Status, r.Stderr, warnings)
		}
	}
}

// TestFitErrors checks errors of usage and of parameter files.
func TestFitErrors(t *testing.T) {
	keepResults(t, nil)
	for name, text := range map[string]string{
		"bad.csv": "bytes,time\n1,2\n", "other.json": `{"backend":"flow","model":"","segments":[]}`,
		"unknown.json": `{"backend":"loggops","mode":1}`,
		"algorithm.json": `{"backend":"loggops","model":"strict","parameters":{},"segments":[{"from":0,"parameters":{}}],` +
			`"collective":"allreduce=nowhere"}`,
		"network.json": `{"backend":"loggops","model":"strict","topology":"star:hosts=2","parameters":{},"segments":` +
			`[{"from":0,"parameters":{}}]}`,
		"far.csv": "test,where,bytes,s\npingpong,0-1,1,1\npingpong,0-4,1,1\n",
		"gap.json": `{"backend":"loggops","model":"strict","parameters":{},"segments":[{"from":0,"to":8,"parameters":{}},` +
			`{"from":9,"parameters":{}}],"seed":1}`,
		"unit.json": `{"backend":"loggops","model":"strict","parameters":{},"segments":[{"from":0,"parameters":` +
			`{"L":{"value":1,"low":1,"high":1,"unit":"s/B"}}}],"seed":1}`,
		"null.json": `{"backend":"loggops","model":"strict","parameters":{},"segments":[{"from":0,"parameters":` +
			`{"L":{"value":null,"unit":"s"}}}]}`,
		"member.json": `{"backend":"loggops","model":"strict","parameters":{"g":{"value":1,"unit":"s","hi":2}},` +
			`"segments":[{"from":0,"parameters":{}}]}`,
		"g.json": `{"backend":"loggops","model":"strict","parameters":{"g":{"value":1e308,"unit":"s"}},` +
			`"segments":[{"from":0,"parameters":{}}]}`,
		"flow.json": `{"backend":"flow","model":"smpi","parameters":{"detached":{"value":1e308,"unit":"B"}},` +
			`"segments":[{"from":0,"parameters":{}}]}`,
		"packet.json":   `{"backend":"packet","model":"ndp","topology":"star:hosts=8","parameters":{"mss":{"value":1e99,"unit":"B"}},"segments":[]}`,
		"unit2.json":    `{"backend":"packet","model":"ndp","topology":"star:hosts=8","parameters":{"o":{"value":1,"unit":"B"}},"segments":[]}`,
		"strange.json":  `{"backend":"packet","model":"ndp","topology":"star:hosts=8","parameters":{"L":{"value":1,"unit":"s"}},"segments":[]}`,
		"segments.json": `{"backend":"packet","model":"ndp","parameters":{},"segments":[{"from":0,"parameters":{}}]}`,
		"udp.json":      `{"backend":"packet","model":"udp","topology":"star:hosts=8","parameters":{},"segments":[]}`,
		"far.json":      `{"backend":"packet","model":"ndp","topology":"star:hosts=8,latency=1s","parameters":{"latency_factor":{"value":1e5,"unit":"1"}},"segments":[]}`,
		"dims.json":     `{"backend":"analytical","model":"unaware","topology":"Ring(8)@1GB/s,1us","parameters":{"bw1":{"value":1,"unit":"B/s"}},"segments":[]}`,
		"half.json":     `{"backend":"analytical","model":"half","topology":"Ring(8)@1GB/s,1us","parameters":{},"segments":[]}`,
	} {
		if err := os.WriteFile(name, []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	tests := []struct {
		args, want string
		status     int
	}{
		{"--fit --fit-backend slots bad.csv", "--fit-backend: expected loggops, flow, packet, analytical, found \"slots\"", 2},
		{"--fit --fit-backend packet bad.csv", "--fit-backend packet needs the --topology", 2},
		{"--fit --fit-backend analytical bad.csv", "--fit-backend analytical needs the --network", 2},
		{"--fit --transport dctcp bad.csv", "--transport has no effect", 2},
		{"--fit --fit-backend flow --topology star:hosts=8 --congestion aware bad.csv", "--congestion has no effect", 2},
		{"--params ./packet.json ring.parquet", "mss is 1e+99 B, expected at most", 2},
		{"--params ./unit2.json ring.parquet", "o is 1 B, expected the unit s", 2},
		{"--params ./strange.json ring.parquet", "unknown parameter among L, expected o, mss", 2},
		{"--params ./segments.json ring.parquet", "found segments of size", 2},
		{"--params ./udp.json ring.parquet", `unknown transport "udp"`, 2},
		{"--params ./far.json ring.parquet", "--latency-factor, --bandwidth-factor: expected", 1},
		{"--params ./dims.json ring.parquet", "unknown parameter among bw1, expected lat0, bw0", 1},
		{"--params ./half.json ring.parquet", `expected the model unaware or aware, found "half"`, 1},
		{"--backend packet --params ./dims.json ring.parquet", `expected parameters of backend packet, found backend "analytical"`, 2},
		{"--fit", "--fit needs tables of measured times", 2},
		{"--fit-out x ring.parquet", "--fit-out needs --fit", 2},
		{"--fit --L 1us bad.csv", "--L has no effect", 2},
		{"--fit --plot matrix=x.svg bad.csv", "this is no picture of a fit, expected one of fit", 2},
		{"--fit --report x.html bad.csv", "--report has no effect", 2},
		{"--plot fit=x.svg ring.parquet", "this is no picture of a run", 2},
		{"--fit-trace ring.parquet ring.parquet", "--fit-trace needs --fit", 2},
		{"--fit --fit-trace ring.parquet", "ring.parquet: the trace has no measured times: record it with", 1},
		{"--fit --fit-trace none.parquet", "none.parquet", 1},
		{"--fit --from store bad.csv", "--from has no effect", 2},
		{"--fit bad.csv", `bad.csv:1: the column "time" has no unit`, 1},
		{"--backend loggops --params ./other.json ring.parquet", `expected parameters of backend loggops, model strict, found backend "flow"`, 2},
		{"--params ./unknown.json ring.parquet", `unknown field "mode"`, 2},
		{"--params ./algorithm.json ring.parquet", `algorithm.json: member "collective": collective algorithms "allreduce=` +
			`nowhere"`, 1},
		{"--params ./network.json ring.parquet", `network.json: expected no topology, found "star:hosts=2"`, 2},
		{"--fit --fit-backend flow --topology star:hosts=3,latency=1us far.csv", "far.csv:3: expected ranks below 3, the " +
			"number of hosts of star:hosts=3,latency=1us, found 0 and 4", 1},
		{"--fit --fit-backend packet --topology star:hosts=3,latency=1us far.csv", "far.csv:3: expected ranks below 3", 1},
		{"--params ./gap.json ring.parquet", "segment 2: expected ranges of sizes that begin at 0 and follow each other", 2},
		{"--params ./unit.json ring.parquet", `segment 1: "L" is 1 s/B, expected`, 2},
		{"--params ./null.json ring.parquet", `expected a parameter with "value", found none`, 2},
		{"--params ./member.json ring.parquet", `unknown field "hi"`, 2},
		{"--params ./g.json ring.parquet", "g is 1e+308 s, expected less than 10^6 s", 2},
		{"--params ./flow.json ring.parquet", "detached is 1e+308 B, expected at most", 2},
	}
	for _, tt := range tests {
		r := clitest.Run(newCommand, strings.Fields(tt.args)...)
		if r.Status != tt.status || !strings.Contains(r.Stderr, tt.want) {
			t.Errorf("%s: status %d, stderr %q, expected %d, %q", tt.args, r.Status, r.Stderr, tt.status, tt.want)
		}
	}
}
