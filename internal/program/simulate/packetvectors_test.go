package simulate

import (
	"bytes"
	"cmp"
	"compress/gzip"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/tracedag/tracedag/internal/cli/clitest"
	"github.com/tracedag/tracedag/internal/golden"
	"github.com/tracedag/tracedag/sim/packet"
)

var packetLong = flag.Bool("packet.long", false,
	"run the reference runs of many packets, too; they need TRACEDAG_VECTORS")

// shortRun is up to how many events of the reference a run is short.
const shortRun = 1_500_000

// packetVector is a run of a reference program and its result.
type packetVector struct {
	ID        string
	Class     string
	Kind      string
	Simulator struct{ Name, Program string }
	Inputs    struct{ Traffic, Goal string }
	Args      string
	Topology  *struct{ File string }
	Params    struct{ Protocol string }
	Summary   struct {
		FCT vectorFCT `json:"fct_ps"`
	}
	Determinism struct {
		OtherSeeds json.RawMessage `json:"other_seeds"`
	}
	Host *struct {
		Max    float64
		ByRank []float64 `json:"by_rank"`
	} `json:"host_finish_ns"`
	Counters map[string]float64
	Paths    *struct {
		Columns []string
		Rows    [][]*float64
	}
	Flows    struct{ Rows [][]*float64 }
	Unlisted int `json:"flows_not_listed"`
	Spread   struct{ Mean, P99 float64 }
}

type vectorFCT struct{ Mean, P99 float64 }

// otherSeeds returns the outcomes of other seeds; none where they are the same.
func (v *packetVector) otherSeeds() (seeds []vectorSeed) {
	if json.Unmarshal(v.Determinism.OtherSeeds, &seeds) != nil {
		return nil
	}
	return seeds
}

type vectorSeed struct {
	FCT  vectorFCT `json:"fct_ps"`
	Host float64   `json:"max_host_finish_ns"`
}

// referenceTransports are our names of the reference programs' protocols.
var referenceTransports = map[string]string{
	"ndp": "ndp", "eqds": "eqds", "swift": "swift", "roce": "roce", "hpcc": "hpcc", "tcp": "tcp", "dctcp": "dctcp",
	"uec-nscc": "nscc", "uec-rccc": "rccc", "atlahs-ndp": "ndp", "atlahs-eqds": "eqds", "atlahs-uec/mprdma": "mprdma",
	"atlahs-uec/default(constant window)": "constant", "atlahs-uec/swift_like": "swiftlike", "atlahs-uec/min_cc": "single",
}

// referenceBalances are the names of load-balancing policies by the argument of -strat.
var referenceBalances = map[string]string{
	"ecmp_host": "spray", "perm": "permute", "rand": "random", "ecmp_ar": "adaptive", "ecmp_rr": "roundrobin",
}

// referenceFlags returns the flags of simulate for the arguments of a reference program, by the table in
// docs/reference/backends/packet.md.
func referenceFlags(v *packetVector, inputs string) ([]string, error) {
	args := make(map[string]string)
	words := strings.Fields(v.Args)
	for i, word := range words {
		if strings.HasPrefix(word, "-") {
			args[word] = ""
			if i+1 < len(words) {
				args[word] = words[i+1]
			}
		}
	}
	trace := filepath.Join(inputs, filepath.Base(v.Inputs.Traffic))
	if v.Kind != "cm" {
		trace = filepath.Join(inputs, filepath.Base(v.Inputs.Goal))
	}
	if v.Simulator.Name == "lgs" {
		return []string{"--backend", "loggops", "--model", "atlahs", "--L", args["-L"], "--o", args["-o"], "--g", args["-g"], "--G",
			args["-G"], "--O", "0", "--S", "0", trace}, nil
	}
	transport := referenceTransports[v.Params.Protocol]
	if _, err := packet.FindTransport(transport); err != nil {
		return nil, fmt.Errorf("%s: %w", v.Params.Protocol, err)
	}
	flags := []string{"--backend", "packet", "--transport", transport}
	atlahs := v.Simulator.Name == "atlahs"
	switch {
	case !atlahs:
		flags = append(flags, "--compat", "htsim")
	default:
		flags = append(flags, "--compat", "atlahs")
	}
	if v.Topology != nil {
		flags = append(flags, "--topology", filepath.Join(inputs, filepath.Base(v.Topology.File)))
	} else { // the whole tree of three tiers
		flags = append(flags, "--topology", "fattree:tiers=3,hosts="+args["-nodes"]+",latency=1us,rate="+args["-linkspeed"]+"Mbps")
	}
	mss, err := strconv.Atoi(args["-mtu"])
	if err != nil {
		return nil, err
	}
	packetSize := mss // unit of -q
	switch transport {
	case "eqds", "nscc", "rccc":
		mss -= 64
	}
	flags = append(flags, "--mss", strconv.Itoa(mss))
	queue, _ := strconv.Atoi(args["-q"])
	switch {
	case args["-max_queue_size"] != "":
		flags = append(flags, "--queue", args["-max_queue_size"])
	case v.Simulator.Program == "uec", queue == 0: // -q is ignored
	case transport == "ndp" && atlahs:
		flags = append(flags, "--queue", strconv.Itoa(queue))
	default:
		flags = append(flags, "--queue", strconv.Itoa(queue*packetSize))
	}
	if cwnd, _ := strconv.Atoi(args["-cwnd"]); cwnd > 0 {
		flags = append(flags, "--set", fmt.Sprintf("window=%d", cwnd))
	}
	if paths := args["-paths"]; paths != "" && transport != "roce" && transport != "hpcc" {
		flags = append(flags, "--entropy", paths)
	} else if v.Simulator.Name == "uet" {
		flags = append(flags, "--entropy", "64") // its default
	}
	if balance := referenceBalances[args["-strat"]]; balance != "" && balance != "spray" {
		flags = append(flags, "--balance", balance)
	}
	if i := slices.Index(words, "-pfc_thresholds"); i >= 0 {
		flags = append(flags, "--set", "pfc-low="+words[i+1]+",pfc-high="+words[i+2])
	}
	if transport == "hpcc" && v.Topology == nil { // with a topology file pauses take no time
		flags = append(flags, "--set", "pfc-delay=1us")
	}
	if end := args["-end"]; end != "" && (!atlahs || v.Kind == "cm") { // others run until nothing is left to do
		flags = append(flags, "--end", end+"us")
	}
	return append(flags, trace), nil
}

// packetDocument is the tested part of a result.
type packetDocument struct {
	Complete bool
	Makespan json.Number   `json:"makespan_ps"`
	Finish   []json.Number `json:"finish_ps"`
	FCT      *vectorFCT    `json:"fct_ps"`
	Counters map[string]float64
	Flows    struct{ Rows [][]*float64 }
}

// TestPacketVectors repeats the runs of the reference programs (see testdata/packet/README.md) and compares the
// results.
func TestPacketVectors(t *testing.T) {
	if testing.Short() {
		t.Skip("computes long on one thread")
	}
	vectors, inputs := readPacketVectors(t)
	skipped := make([]string, 0, len(vectors))
	for _, v := range vectors {
		if !*packetLong && v.events() > shortRun {
			skipped = append(skipped, v.ID)
			continue
		}
		t.Run(v.ID, func(t *testing.T) {
			t.Parallel()
			v.test(t, inputs)
		})
	}
	if len(skipped) > 0 {
		t.Logf("%d runs are long, and only done with -packet.long: %s", len(skipped), strings.Join(skipped, " "))
	}
}

func (v *packetVector) events() float64 {
	if events := v.Counters["events"]; events > 0 {
		return events
	}
	return 0
}

func (v *packetVector) test(t *testing.T, inputs string) {
	flags, err := referenceFlags(v, inputs)
	if err != nil {
		t.Fatal(err)
	}
	flags = append(flags, "--json")
	if v.Paths != nil {
		flags = append(flags, "--paths", v.writePaths(t))
	}
	switch {
	case v.Simulator.Name == "lgs":
		v.compareFinish(t, runVector(t, flags, 1), 0)
	case strings.HasPrefix(v.ID, "goal-micro-"):
		d := runVector(t, flags, 1)
		v.compareFlows(t, d)
		v.compareFinish(t, d, 0)
	case v.Class == "exact" && v.Kind == "cm", v.Class == "exact given paths":
		v.compareFlows(t, runVector(t, flags, 1))
	case v.Class == "exact":
		// Which of several ops of the same nanosecond goes first is undefined in the reference, and it moves the times.
		v.compareFinish(t, runVector(t, flags, 1), 1e-4)
	default:
		v.compareMeans(t, flags)
	}
}

// writePaths writes the recorded paths to a file, and returns its name.
func (v *packetVector) writePaths(t *testing.T) string {
	text, err := json.Marshal(map[string]any{"paths": map[string]any{"columns": v.Paths.Columns, "rows": v.Paths.Rows}})
	if err != nil {
		t.Fatal(err)
	}
	name := filepath.Join(t.TempDir(), "paths.json")
	if err := os.WriteFile(name, text, 0o666); err != nil {
		t.Fatal(err)
	}
	return name
}

func runVector(t *testing.T, flags []string, seed int) *packetDocument {
	t.Helper()
	flags = append(flags[:len(flags):len(flags)], "--seed", strconv.Itoa(seed))
	r := clitest.Run(newCommand, flags...)
	if r.Stdout == "" {
		t.Fatalf("simulate %s: status %d, %s", strings.Join(flags, " "), r.Status, r.Stderr)
	}
	var d packetDocument
	if err := json.Unmarshal([]byte(r.Stdout), &d); err != nil {
		t.Fatal(err)
	}
	return &d
}

// The columns of flows.
const (
	flowSrc, flowDst, flowBytes, flowStart, flowFCT, flowDelivered = 0, 1, 2, 3, 4, 5
)

// compareFlows compares every flow to the picosecond. Flows are known by their ends and start, for numbers differ.
func (v *packetVector) compareFlows(t *testing.T, d *packetDocument) {
	t.Helper()
	want, got := sortedFlows(v.Flows.Rows), sortedFlows(d.Flows.Rows)
	if len(got) != len(want) {
		t.Fatalf("%d flows, expected %d", len(got), len(want))
	}
	bad := 0
	for i, w := range want {
		g := got[i]
		for _, column := range []int{flowSrc, flowDst, flowBytes, flowStart, flowFCT, flowDelivered} {
			if w[column] == nil { // the program does not know
				continue
			}
			if g[column] == nil || *g[column] != *w[column] {
				if bad++; bad <= 3 {
					t.Errorf("flow %d: got %s, expected %s", i, flowText(g), flowText(w))
				}
				break
			}
		}
	}
	if bad > 3 {
		t.Errorf("%d of %d flows differ", bad, len(want))
	}
}

func sortedFlows(rows [][]*float64) [][]*float64 {
	sorted := slices.Clone(rows)
	slices.SortStableFunc(sorted, func(a, b []*float64) int {
		for _, column := range []int{flowStart, flowSrc, flowDst, flowBytes, flowFCT} {
			if x, y := a[column], b[column]; x != nil && y != nil && *x != *y {
				return cmp.Compare(*x, *y)
			}
		}
		return 0
	})
	return sorted
}

func flowText(row []*float64) string {
	var text []string
	for _, v := range row[:flowDelivered+1] {
		if v == nil {
			text = append(text, "null")
		} else {
			text = append(text, strconv.FormatFloat(*v, 'f', -1, 64))
		}
	}
	return strings.Join(text, " ")
}

// compareFinish compares the per-rank finish times and the makespan, in whole nanoseconds, within a relative tolerance.
func (v *packetVector) compareFinish(t *testing.T, d *packetDocument, tolerance float64) {
	t.Helper()
	if !d.Complete {
		t.Error("incomplete")
	}
	for rank, want := range v.Host.ByRank {
		if rank >= len(d.Finish) {
			t.Fatalf("%d ranks, expected %d", len(d.Finish), len(v.Host.ByRank))
		}
		if got := nanoseconds(t, d.Finish[rank]); math.Abs(got-want) > tolerance*want {
			t.Errorf("rank %d finishes at %v ns, expected %v", rank, got, want)
		}
	}
	if got, want := nanoseconds(t, d.Makespan), v.Host.Max; math.Abs(got-want) > tolerance*want {
		t.Errorf("makespan %v ns, expected %v (%.3g%% off)", got, want, 100*(got/want-1))
	}
}

func nanoseconds(t *testing.T, ps json.Number) float64 {
	t.Helper()
	n, err := ps.Int64()
	if err != nil {
		t.Fatal(err)
	}
	return float64(n / 1000)
}

// ourSeeds is how many seeds of ours are averaged, as many as most reference runs have.
const ourSeeds = 3

// compareMeans compares means over seeds. Random streams cannot be matched, so two such means differ by chance as much
// as the seeds do among themselves: the tolerance is the spread of the reference's seeds or that of ours, whichever is
// wider. But a spread of three seeds is itself a rough estimate, so it is at least 3 % for the mean of the times of
// flows, and 10 % for their 99 % quantile, which is that of one or two flows in most runs, and for the makespan, the
// end of the last. The bound for runs that the reference cannot repeat is 15 %: only the shape counts.
func (v *packetVector) compareMeans(t *testing.T, flags []string) {
	t.Helper()
	seeds := append([]vectorSeed{{FCT: v.Summary.FCT}}, v.otherSeeds()...)
	if v.Host != nil {
		seeds[0].Host = v.Host.Max
	}
	var ours []vectorSeed
	for seed := 1; seed <= ourSeeds; seed++ {
		d := runVector(t, flags, seed)
		if d.FCT == nil {
			t.Fatal("no flow ended")
		}
		one := vectorSeed{FCT: *d.FCT}
		if v.Host != nil {
			one.Host = nanoseconds(t, d.Makespan)
		}
		ours = append(ours, one)
		if !d.Complete && v.ID != "swift-incast32-lossy" { // where the reference does not complete
			t.Errorf("seed %d: incomplete", seed)
		}
	}
	shape := 0.0
	if v.Class == "not reproducible" {
		shape = 15
	}
	check := func(what string, of func(*vectorSeed) float64, least float64) {
		t.Helper()
		want, wantSpread := meanOf(seeds, of)
		got, gotSpread := meanOf(ours, of)
		off, tolerance := 100*(got/want-1), max(least, shape, wantSpread, gotSpread)
		if !(math.Abs(off) <= tolerance) {
			t.Errorf("%s is %.5g, expected %.5g: %+.2f %%, allowed %.2f %%", what, got, want, off, tolerance)
		} else {
			t.Logf("%s %+.2f %% (allowed %.2f %%)", what, off, tolerance)
		}
	}
	check("mean", func(s *vectorSeed) float64 { return s.FCT.Mean }, max(3, v.Spread.Mean))
	if shape == 0 {
		check("p99", func(s *vectorSeed) float64 { return s.FCT.P99 }, max(10, v.Spread.P99))
	}
	if v.Host != nil {
		check("makespan", func(s *vectorSeed) float64 { return s.Host }, 10)
	}
}

// meanOf returns the mean of a figure over seeds, and by how many percent the largest is above the smallest.
func meanOf(seeds []vectorSeed, of func(*vectorSeed) float64) (mean, spread float64) {
	least, most := of(&seeds[0]), of(&seeds[0])
	for i := range seeds {
		v := of(&seeds[i])
		mean += v / float64(len(seeds))
		least, most = min(least, v), max(most, v)
	}
	return mean, 100 * (most/least - 1)
}

// packetTestdata has the runs that are short and their inputs; see its README.md. TRACEDAG_VECTORS, where it is set,
// has all.
const packetTestdata = "testdata/packet"

// TestPacketTestdata checks that the runs and inputs in testdata are those of TRACEDAG_VECTORS; -update copies them.
func TestPacketTestdata(t *testing.T) {
	folder := os.Getenv("TRACEDAG_VECTORS")
	if folder == "" {
		t.Skip("TRACEDAG_VECTORS is not set")
	}
	folder = filepath.Join(folder, "packet")
	var runs bytes.Buffer
	lines := json.NewEncoder(&runs)
	inputs := make(map[string]bool)
	for _, v := range readAllPacketVectors(t, folder) {
		if v.events() > shortRun || strings.HasPrefix(v.ID, "study-") {
			continue
		}
		for _, name := range []string{v.Inputs.Traffic, v.Inputs.Goal} {
			inputs[name] = true
		}
		if v.Topology != nil {
			inputs[v.Topology.File] = true
		}
		if err := lines.Encode(v); err != nil {
			t.Fatal(err)
		}
	}
	delete(inputs, "")
	name := filepath.Join(packetTestdata, "runs.jsonl.gz")
	if golden.Update() {
		var packed bytes.Buffer
		w := gzip.NewWriter(&packed)
		w.Write(runs.Bytes())
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		golden.Write(t, name, packed.Bytes())
	}
	if got := unpacked(t, name); !bytes.Equal(got, runs.Bytes()) {
		t.Errorf("%s is out of date: run with -update", name)
	}
	for input := range inputs {
		want, err := os.ReadFile(filepath.Join(folder, input))
		if err != nil {
			t.Fatal(err)
		}
		name := filepath.Join(packetTestdata, input)
		if golden.Update() {
			golden.Write(t, name, want)
		}
		if got, err := os.ReadFile(name); err != nil || !bytes.Equal(got, want) {
			t.Errorf("%s is out of date: run with -update (%v)", name, err)
		}
	}
}

func unpacked(t *testing.T, name string) []byte {
	t.Helper()
	f, err := os.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	text, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	content, err := io.ReadAll(text)
	if err != nil {
		t.Fatal(err)
	}
	return content
}

// readPacketVectors returns the reference runs, and the folder of their inputs.
func readPacketVectors(t *testing.T) (vectors []*packetVector, inputs string) {
	t.Helper()
	if folder := os.Getenv("TRACEDAG_VECTORS"); folder != "" {
		folder = filepath.Join(folder, "packet")
		return readAllPacketVectors(t, folder), filepath.Join(folder, "inputs")
	}
	if *packetLong {
		t.Fatal("-packet.long needs TRACEDAG_VECTORS")
	}
	text := unpacked(t, filepath.Join(packetTestdata, "runs.jsonl.gz"))
	for runs := json.NewDecoder(bytes.NewReader(text)); ; {
		v := new(packetVector)
		if err := runs.Decode(v); err == io.EOF {
			return vectors, filepath.Join(packetTestdata, "inputs")
		} else if err != nil {
			t.Fatal(err)
		}
		vectors = append(vectors, v)
	}
}

func readAllPacketVectors(t *testing.T, folder string) (vectors []*packetVector) {
	t.Helper()
	var index struct {
		List []struct {
			ID, File, Class string
			Spread          struct{ Mean, P99 float64 } `json:"spread_over_seeds_percent"`
		}
	}
	readJSONFile(t, filepath.Join(folder, "index.json"), &index)
	for _, entry := range index.List {
		v := new(packetVector)
		readJSONFile(t, filepath.Join(folder, entry.File), v)
		v.Class, v.Spread = entry.Class, entry.Spread
		vectors = append(vectors, v)
	}
	return vectors
}

func readJSONFile(t *testing.T, name string, into any) {
	t.Helper()
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(text, into); err != nil {
		t.Fatalf("%s: %v", name, err)
	}
}
