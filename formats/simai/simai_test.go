package simai

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/tracedag/tracedag/dag"
	"github.com/tracedag/tracedag/dag/attr"
	"github.com/tracedag/tracedag/formats/format"
	"github.com/tracedag/tracedag/formats/tracefile"
)

const (
	head    = recomputing + " model_parallel_NPU_group: 2 ep: 2 pp: 1 vpp: 1 ga: 1 all_gpus: 8 pp_comm: 0\n"
	rowLine = "mlp -1 10 ALLREDUCE 64 20 ALLREDUCE 128 30 ALLREDUCE_DP_EP 256 100\n"
)

func readText(text string, o format.ReadOptions) (*dag.Trace, []string, error) {
	var warnings []string
	o.Warn = func(message string, args ...any) { warnings = append(warnings, fmt.Sprintf(message, args...)) }
	t, err := read([]*format.Input{{Name: "w.txt", Reader: strings.NewReader(text)}}, o)
	return t, warnings, err
}

func mustRead(t *testing.T, text string, o format.ReadOptions) *dag.Trace {
	t.Helper()
	trace, _, err := readText(text, o)
	if err != nil {
		t.Fatal(err)
	}
	return trace
}

func TestErrors(t *testing.T) {
	for _, c := range []struct {
		text, want string
		ranks      int
	}{
		{"", "w.txt:1: expected a policy", 0},
		{"\n1\n", "w.txt:1: expected a policy", 0},
		{"DATA\n1\n", "--from astratext", 0},
		{recomputing + " ep:\n1\n", "w.txt:1: expected the value of ep, found the end of the line", 0},
		{recomputing + " ep: -1\n1\n", "w.txt:1: expected the value of ep, 0 or more", 0},
		{recomputing + " ep: 1 ep: 2\n1\n", "w.txt:1: expected ep once", 0},
		{recomputing + " checkpoints: 3 1 2\n1\n", "w.txt:1: expected 3 layers after checkpoints, found", 0},
		{recomputing + " checkpoints: 1 7\n1\n" + rowLine, "w.txt:1: expected layers below 1", 8},
		{recomputing + " checkpoint_initiates: 1 0\n1\n" + rowLine, "w.txt:1: expected a checkpoint before layer 0", 8},
		{head + "1 2\n", "w.txt:2: expected a number of layers and no other field", 0},
		{head + "1\nmlp -1 1\n", "w.txt:3: expected the 12 fields of a row", 0},
		{head + "1\n" + strings.Replace(rowLine, "20", "2.5", 1), "w.txt:3: expected a time in ns, 0 or more", 0},
		{head + "1\n" + strings.Replace(rowLine, " 64 ", " -64 ", 1), "w.txt:3: expected a size in bytes", 0},
		{head + "1\n" + strings.Replace(rowLine, " 20 ", " 9223372036854775807 ", 1), "w.txt:3: expected a time of at", 0},
		{head + "1\n" + strings.Replace(rowLine, "64 20 ALLREDUCE", "64 20 5", 1), "w.txt:3: expected a collective", 0},
		{head + "1\n" + strings.Replace(rowLine, " 64 ", " 9223372036854775807 ", 1), "w.txt:3: expected a size of at", 0},
		{strings.Replace(head, ": 8", ": 65538", 1) + "1\n" + rowLine, "request them with --ranks", 0},
		{head + "1\n" + rowLine, "7 GPUs: expected a multiple of 2", 7},
		{head + "1\n" + rowLine, "6 GPUs are 3 data parallel replicas: expected a multiple of the expert", 6},
		{head + "1\n" + rowLine, "expected at most 1048576 GPUs", 1 << 30},
	} {
		o := format.ReadOptions{Own: &Options{Ranks: c.ranks}}
		if _, _, err := readText(c.text, o); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%.90q: got %v, want %s", c.text, err, c.want)
		}
	}
	o := format.ReadOptions{Own: &Options{Passes: 1 << 30}}
	if _, _, err := readText(head+"1\n"+rowLine, o); err == nil || !strings.Contains(err.Error(), "--passes") {
		t.Errorf("many passes: %v", err)
	}
	staged := strings.Replace(head, "pp: 1", "pp: 2", 1)
	o = format.ReadOptions{Own: &Options{Ranks: 16}, Compat: true}
	if _, _, err := readText(staged+"1\n"+rowLine, o); err == nil || !strings.Contains(err.Error(), "overlap") {
		t.Errorf("overlapping groups: %v", err)
	}
}

func TestWarnings(t *testing.T) {
	short := strings.Replace(rowLine, " 100\n", "\n", 1)
	for _, c := range []struct {
		text string
		want []string
	}{
		{head + "1\n" + rowLine, nil},
		{head + "839\n" + rowLine, []string{"announces 839 layers, and the text has 1 rows"}},
		{head + "1\n" + short, []string{"rows without the last field: 1"}},
		{head + "1\n" + strings.Replace(rowLine, "10 ALLREDUCE ", "10 BROADCAST ", 1), []string{"BROADCAST"}},
		{head + "1\n" + strings.Replace(rowLine, "ALLREDUCE_DP_EP", "ALLREDUCEALLTOALL", 1), []string{"discarded: 1"}},
		{transformer + "\n1\n" + rowLine, []string{"set it with --ranks"}},
		{strings.Replace(head, "pp: 1", "pp: 2", 1) + "1\n" + rowLine, []string{"pipeline stage", "pp is 2 and pp_comm 0"}},
		{strings.Replace(head, "pp_comm: 0", "pp_comm 6291456.5", 1) + "1\n" + rowLine,
			[]string{"6291456 bytes", "pp is 1 and pp_comm 6291456"}},
	} {
		_, got, err := readText(c.text, format.ReadOptions{})
		if err != nil || !slices.EqualFunc(got, c.want, strings.Contains) {
			t.Errorf("%q: got %q, %v, want %q", c.text, got, err, c.want)
		}
	}
}

// ops lists the ops of rank 0 with their dependencies.
func ops(t *dag.Trace) string {
	var b strings.Builder
	r := t.Ranks[0]
	for i := range r.Len() {
		op := r.Op(i)
		fmt.Fprintf(&b, "%d %s", i, op.Name)
		for _, off := range r.Deps.Of(i) {
			fmt.Fprintf(&b, " %d", i-int(off))
		}
		b.WriteByte('\n')
	}
	return b.String()
}

func TestOrder(t *testing.T) {
	two := "2\n" + strings.Replace(rowLine, "mlp", "a", 1) + strings.Replace(rowLine, "mlp", "b", 1)
	forward := "0 a_FWD\n1 a_FWD_COMM 0\n2 b_FWD 1\n3 b_FWD_COMM 2\n"
	for text, want := range map[string]string{
		head + two: forward + "4 b_IG 3\n5 b_IG_COMM 4\n6 b_WG 5\n7 b_WG_COMM 6\n" +
			"8 a_IG 6\n9 a_IG_COMM 8\n10 a_WG 9\n11 a_WG_COMM 10\n",
		transformer + " all_gpus: 8\n" + two: forward + "4 b_IG 3\n5 b_IG_COMM 4\n6 b_WG 4\n7 b_WG_COMM 6\n" +
			"8 a_IG 6 5\n9 a_IG_COMM 8\n10 a_WG 8\n11 a_WG_COMM 10\n",
		strings.Replace(head, "pp_comm", "checkpoints: 1 0 checkpoint_initiates: 1 1 pp_comm", 1) + two: forward +
			"4 a_FWD 3\n5 a_FWD_COMM 4\n6 b_IG 5\n7 b_IG_COMM 6\n8 b_WG 7\n9 b_WG_COMM 8\n" +
			"10 a_IG 8\n11 a_IG_COMM 10\n12 a_WG 11\n13 a_WG_COMM 12\n",
		micro + " all_gpus: 8\n" + two: "0 a_WG_COMM\n1 b_WG_COMM\n",
	} {
		if got := ops(mustRead(t, text, format.ReadOptions{})); got != want {
			t.Errorf("%s\ngot:\n%swant:\n%s", text, got, want)
		}
	}
	// A row without work forward passes on what it waits for: the weights of the previous pass, too.
	idle := "c -1 0 NONE 0 0 NONE 0 5 ALLREDUCE 8 1\n"
	o := format.ReadOptions{Own: &Options{Passes: 2}}
	got := ops(mustRead(t, head+"2\n"+idle+strings.Replace(idle, "c -1 0", "d -1 7", 1), o))
	want := "0 d_FWD\n1 d_WG 0\n2 d_WG_COMM 1\n3 c_WG 1\n4 c_WG_COMM 3\n" +
		"5 d_FWD 3 4 2\n6 d_WG 5\n7 d_WG_COMM 6\n8 c_WG 6\n9 c_WG_COMM 8\n"
	if got != want {
		t.Errorf("two passes: got:\n%swant:\n%s", got, want)
	}
}

func TestSizes(t *testing.T) {
	for text, want := range map[string][2]int64{ // forward, TP of 2 ranks
		"ALLREDUCE 64": {4096, 0}, "ALLTOALL 5000": {5000, 0}, "ALLGATHER 8193": {4097, 8194},
		"REDUCESCATTER 8192": {8192, 4096}, "REDUCESCATTER 8193": {8193, 0},
	} {
		r := mustRead(t, head+"1\nx -1 0 "+text+" 0 NONE 0 0 NONE 0 1\n", format.ReadOptions{}).Ranks[0]
		if got := [2]int64{r.Bytes.At(0), r.RecvBytes.At(0)}; r.Len() != 1 || got != want {
			t.Errorf("%s: %v, want %v", text, got, want)
		}
	}
	if r := mustRead(t, head+"1\nx -1 0 ALLREDUCE 0 0 NONE 0 0 REDUCESCATTER 1 1\n", format.ReadOptions{}).Ranks[0]; r.Len() != 1 ||
		r.Bytes.At(0) != 1 {
		t.Errorf("sizes 0 and 1: %d ops", r.Len())
	}
}

// TestGroups compares the groups with the sets of section "Groups" of the documentation, rank by rank.
func TestGroups(t *testing.T) {
	for _, c := range []struct {
		ranks, tp, pp, ep int
		simai             bool
		want              map[group][][]int // some groups
	}{
		{8, 2, 1, 2, false, map[group][][]int{tensorGroup: {{0, 1}, {6, 7}}, dataGroup: {{0, 2, 4, 6}, {1, 3, 5, 7}},
			expertGroup: {{0, 2}, {1, 3}, {4, 6}}, dataExpertGroup: {{0, 4}, {3, 7}}}},
		{16, 2, 2, 2, false, map[group][][]int{dataGroup: {{0, 4, 8, 12}, {3, 7, 11, 15}},
			expertGroup: {{0, 4}, {9, 13}}, dataExpertGroup: {{0, 8}, {7, 15}}}},
		{16, 2, 2, 2, true, map[group][][]int{dataGroup: {{0, 4, 8, 12}}, expertGroup: {{0, 2}, {13, 15}}}},
	} {
		l := &layout{ranks: c.ranks, tp: c.tp, pp: c.pp, ep: c.ep, dp: c.ranks / c.tp / c.pp, simai: c.simai}
		for g := range numGroups {
			if group(g) == dataExpertGroup && c.simai {
				continue // they overlap
			}
			trace := dag.Trace{Comms: []dag.Comm{dag.World(c.ranks)}}
			of := l.addComms(&trace, group(g))
			for rank, comm := range of {
				if !trace.Comms[comm].Contains(int32(rank)) || trace.Comms[comm].Size() != l.size(group(g)) {
					t.Errorf("%+v: group %s of rank %d: %v", c, groupNames[g], rank, trace.Comms[comm])
				}
			}
			for _, want := range c.want[group(g)] {
				comm := trace.Comms[of[want[0]]]
				for i, member := range comm.Members() {
					if int(member) != want[i] {
						t.Errorf("%+v: group %s: %v, want %v", c, groupNames[g], comm.Members(), want)
						break
					}
				}
			}
		}
	}
}

func TestDetect(t *testing.T) {
	for text, want := range map[string]bool{
		head + "2\n": true, transformer + "\t\r\n 3 \r\n": true, recomputing + "\nx\n": false, "DATA\n54\n": false,
		"HYBRID_DLRM 4\n8\n": false, recomputing: false, "": false, "HYBRID_TRANSFORMERS\n1\n": false,
	} {
		if got := detect([]byte(text)); got != want {
			t.Errorf("detect(%q) = %v", text, got)
		}
	}
}

// TestVectors compares the rows of published workloads with an independent count.
func TestVectors(t *testing.T) {
	folder := os.Getenv("TRACEDAG_VECTORS")
	if folder == "" {
		t.Skip("set TRACEDAG_VECTORS to the folder of vectors")
	}
	folder = filepath.Join(folder, "simai")
	content, err := os.ReadFile(filepath.Join(folder, "expected.json"))
	if err != nil {
		t.Fatal(err)
	}
	var expected struct {
		Workload map[string][]struct {
			Header      map[string]any
			Layers      int
			ComputeNS   map[string]int64 `json:"compute_ns"`
			Collectives map[string]int64
			Bytes       map[string]int64
		}
	}
	if err := json.Unmarshal(content, &expected); err != nil {
		t.Fatal(err)
	}
	for name, all := range expected.Workload {
		want := all[0]
		in, err := tracefile.Open(format.List{Format}, []string{filepath.Join(folder, "workload", name)},
			tracefile.Options{From: "simai", Warn: t.Logf})
		if err != nil {
			t.Fatal(err)
		}
		trace, err := in.Read()
		in.Close()
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		rows, ok := attrOf(trace)
		if !ok || len(rows) != want.Layers {
			t.Fatalf("%s: %d rows, want %d", name, len(rows), want.Layers)
		}
		times, counts, sizes := map[string]int64{}, map[string]int64{}, map[string]int64{}
		for _, r := range rows {
			for phase, p := range r {
				times[phase] += p.Time
				if p.Coll != "" {
					key := phase + " " + p.Coll + " " + p.Group
					counts[key]++
					sizes[key] += p.Bytes
				}
			}
		}
		for key, n := range want.Collectives {
			if !strings.HasSuffix(key, "None") && (counts[key] != n || sizes[key] != want.Bytes[key]) {
				t.Errorf("%s: %s: %d of %d bytes, want %d of %d", name, key, counts[key], sizes[key], n, want.Bytes[key])
			}
		}
		for key, ns := range want.ComputeNS {
			if times[key] != ns {
				t.Errorf("%s: %s computes %d ns, want %d", name, key, times[key], ns)
			}
		}
		if want.Header["policy"] != micro { // nothing is recomputed: rank 0 computes what the rows say
			sum := dag.Time(0)
			for i := range trace.Ranks[0].Len() {
				sum += trace.Ranks[0].CalcTime(i)
			}
			if all := dag.Time(times["fwd"]+times["ig"]+times["wg"]) * dag.Nanosecond; sum != all {
				t.Errorf("%s: rank 0 computes %v, want %v", name, sum, all)
			}
		}
	}
}

// attrOf returns the phases of each row by name.
func attrOf(t *dag.Trace) (rows []map[string]attr.SimAIPhase, ok bool) {
	a, ok := attr.ParseSimAI(t.Attrs)
	for _, r := range a.Rows {
		rows = append(rows, map[string]attr.SimAIPhase{"fwd": r.Forward, "ig": r.Input, "wg": r.Weight})
	}
	return rows, ok
}

func FuzzRead(f *testing.F) {
	f.Add(head+"1\n"+rowLine, uint8(0), uint8(1), false)
	f.Add(transformer+"\tep: 2 checkpoints: 1 0 checkpoint_initiates: 1 1 pp_comm 3.5\n2\n"+rowLine+rowLine, uint8(8),
		uint8(2), true)
	f.Add(micro+"\n1\n"+rowLine, uint8(4), uint8(3), true)
	f.Fuzz(func(t *testing.T, text string, ranks, passes uint8, compat bool) {
		o := format.ReadOptions{Compat: compat, Own: &Options{Ranks: int(ranks), Passes: int(passes % 4)}}
		if ranks == 0 && strings.Contains(text, "000") {
			return // many ranks, which tests of limits cover
		}
		trace, _, err := readText(text, o)
		if err != nil {
			return
		}
		if problems := dag.Validate(trace); len(problems) > 0 {
			t.Errorf("%q: %v", text, problems)
		}
	})
}
