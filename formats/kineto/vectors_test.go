package kineto

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"io"
	"math/big"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/tracedag/tracedag/dag"
	"github.com/tracedag/tracedag/formats/format"
)

// expected is what an independent program found in the files of a set.
type expected struct {
	Origin json.Number `json:"origin_ns"`
	Ranks  []struct {
		File string `json:"file"`
		DAG  struct {
			Ops           int                       `json:"device_ops"`
			Kinds         map[string]int            `json:"kinds"`
			Streams       map[string]map[string]int `json:"streams"`
			WithoutLaunch int                       `json:"without_launch"`
			Waits         [][2]int64                `json:"event_waits"`
			Communication json.RawMessage           `json:"communication"`
			Counts        []talkExpected            `json:"communication_counts"`
		} `json:"dag"`
		Exact map[string]*int64 `json:"exact_ps"`
	} `json:"ranks"`
}

// talkExpected is a communication, or several equal ones.
type talkExpected struct {
	Stream int64  `json:"stream"`
	Start  int64  `json:"ts_ps"`
	Took   int64  `json:"dur_ps"`
	Kernel string `json:"kernel"`
	From   string `json:"from"`
	Kind   string `json:"kind"`
	In     *int64 `json:"in_bytes"`
	Out    *int64 `json:"out_bytes"`
	Group  string `json:"pg"`
	Ranks  []int32
	Seq    *int64
	Dst    *int32 `json:"dst_rank"`
	Src    *int32 `json:"src_rank"`
	Count  int
}

// truth is what the generator of a set did.
type truth struct {
	Ranks []struct {
		Waits   [][2]int64 `json:"event_waits"`
		Streams map[string][]struct {
			Name, Kind string
			Start      int64 `json:"start_ps"`
			Took       int64 `json:"dur_ps"`
			Bytes      int64
			In         int64 `json:"in_bytes"`
			Out        int64 `json:"out_bytes"`
			Group      []int32
			Peer       *int32
		}
	}
}

// plainFile returns the content of a file, decompressed.
func plainFile(t testing.TB, path string) []byte {
	t.Helper()
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if bytes.HasPrefix(content, []byte("\x1f\x8b")) {
		z, err := gzip.NewReader(bytes.NewReader(content))
		if err != nil {
			t.Fatal(err)
		}
		if content, err = io.ReadAll(z); err != nil {
			t.Fatal(err)
		}
	}
	return content
}

// readPaths reads the files as a trace, with the job for the checks of its parts.
func readPaths(t testing.TB, paths []string, own *Options) (*job, *dag.Trace, []string) {
	t.Helper()
	var warnings []string
	o := &readOptions{own: own, steps: []string{stepName}, keepHost: own.KeepHost,
		warn: func(message string, args ...any) { warnings = append(warnings, fmt.Sprintf(message, args...)) }}
	var all []*recording
	for _, path := range paths {
		r, err := readRecording(&format.Input{Name: path, Reader: bytes.NewReader(plainFile(t, path))}, o)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, r)
	}
	j, err := newJob(all, o)
	if err != nil {
		t.Fatal(err)
	}
	j.setComms()
	if err := j.match(); err != nil {
		t.Fatal(err)
	}
	j.report()
	trace, err := j.trace()
	if err != nil {
		t.Fatal(err)
	}
	if problems := dag.Validate(trace); len(problems) > 0 {
		t.Fatal(problems[0])
	}
	return j, trace, warnings
}

// sets are the folders of vectors with expectations.
func sets(t *testing.T) []string {
	root := os.Getenv("TRACEDAG_VECTORS")
	if root == "" {
		t.Skip("TRACEDAG_VECTORS does not name the folder of vectors")
	}
	found, _ := filepath.Glob(filepath.Join(root, "kineto", "*", "expected.json"))
	if len(found) == 0 {
		t.Fatal("no vectors")
	}
	return found
}

func TestVectors(t *testing.T) {
	for _, path := range sets(t) {
		folder := filepath.Dir(path)
		t.Run(filepath.Base(folder), func(t *testing.T) {
			if filepath.Base(folder) == "two_of_128" {
				checkSampled(t, folder)
				return
			}
			var want expected
			if err := json.Unmarshal(plainFile(t, path), &want); err != nil {
				t.Fatal(err)
			}
			var paths []string
			for _, r := range want.Ranks {
				paths = append(paths, filepath.Join(folder, r.File))
			}
			own := newOptions()
			own.OnlyPresent = len(paths) == 1
			j, trace, warnings := readPaths(t, paths, own)
			for i := range want.Ranks {
				checkParts(t, &want, i, j)
				checkExact(t, &want, i, j, trace)
			}
			checkTruth(t, folder, j, trace)
			damaged := slices.ContainsFunc(warnings, func(w string) bool { return strings.Contains(w, "ends early") })
			if damaged != strings.HasSuffix(folder, "truncated") {
				t.Errorf("warnings %q", warnings)
			}
		})
	}
}

// checkSampled checks that files with samples of events, whose collectives do not correspond, are refused.
func checkSampled(t *testing.T, folder string) {
	var inputs []*format.Input
	for _, name := range []string{"sampled_rank-0.json.gz", "sampled_rank-1.json.gz"} {
		content := plainFile(t, filepath.Join(folder, name))
		inputs = append(inputs, &format.Input{Name: name, Reader: bytes.NewReader(content)})
	}
	own := newOptions()
	own.OnlyPresent = true
	_, err := read(inputs, format.ReadOptions{Own: own, Warn: func(string, ...any) {}})
	if err == nil || !strings.Contains(err.Error(), "on rank 0, and") {
		t.Errorf("error %v", err)
	}
}

// checkParts compares device ops, streams, waits and communication.
func checkParts(t *testing.T, all *expected, i int, j *job) {
	t.Helper()
	want, r := &all.Ranks[i].DAG, &j.ranks[i]
	if want.Ops == 0 { // the expectations have no ops of the host
		if len(r.onHost) == 0 || len(r.onHost) != len(r.talk.list) || r.talk.unsized > 0 {
			t.Errorf("rank %d: %d communications of the host, %d in all", i, len(r.onHost), len(r.talk.list))
		}
		return
	}
	kinds, without := map[string]int{}, 0
	streams := map[string]map[string]int{}
	for k := range r.ops {
		o := &r.ops[k]
		kind := [...]string{"compute", "mem", "communication", "compute"}[o.class]
		kinds[kind]++
		s := fmt.Sprint(r.streams[o.stream].stream)
		if streams[s] == nil {
			streams[s] = map[string]int{}
		}
		streams[s][kind]++
		if o.correlation < 0 {
			without++
		}
	}
	if len(r.ops) != want.Ops || fmt.Sprint(kinds) != fmt.Sprint(want.Kinds) || without != want.WithoutLaunch ||
		fmt.Sprint(streams) != fmt.Sprint(want.Streams) {
		t.Errorf("rank %d: %d ops %v in %v, %d without launch; want %d %v in %v, %d", i, len(r.ops), kinds, streams, without,
			want.Ops, want.Kinds, want.Streams, want.WithoutLaunch)
	}
	if len(want.Waits) > 0 {
		checkWaits(t, r, want.Waits)
	}
	var single []talkExpected
	if want.Counts != nil {
		checkCounts(t, r, want.Counts)
		return
	}
	if err := json.Unmarshal(want.Communication, &single); err != nil {
		t.Fatal(err)
	}
	if len(single) != len(r.talk.list) {
		t.Fatalf("rank %d: %d communications, want %d", i, len(r.talk.list), len(single))
	}
	for k := range single {
		x, c := &single[k], &r.talk.list[k]
		o := &r.ops[c.at]
		if int64(o.start+r.offset) != x.Start || int64(o.took) != x.Took || r.streams[o.stream].stream != x.Stream ||
			kindName(c) != x.Kind || !sameBytes(c, x) || x.Seq != nil && c.seq != *x.Seq ||
			x.Group != "" && r.talk.groups[c.group].name != x.Group {
			t.Errorf("rank %d: communication %d is %+v %+v, want %+v", i, k, c, o, x)
		}
		if x.Ranks != nil {
			members := r.talk.groups[c.group].members
			if members == nil {
				members = j.comms[0].members
			}
			if !slices.Equal(members, x.Ranks) {
				t.Errorf("rank %d: communication %d of %v, want %v", i, k, members, x.Ranks)
			}
		}
		if peer := x.Dst; c.op == opSend && peer != nil && j.ranks[c.peer].global != *peer {
			t.Errorf("rank %d: communication %d to %d, want %d", i, k, c.peer, *peer)
		}
	}
}

func kindName(c *communication) string {
	switch s, ok := c.op.subkind(); {
	case ok && s == dag.Alltoallv:
		return "alltoall" // the expectations do not distinguish them
	case ok:
		return s.String()
	case c.op == opSend:
		return "send"
	case c.op == opRecv:
		return "recv"
	}
	return "sendrecv"
}

// sameBytes compares sizes as far as the expectations and the model have both.
func sameBytes(c *communication, x *talkExpected) bool {
	if x.Kind == "barrier" {
		return c.bytes == 0
	}
	return (x.In == nil || c.bytes == *x.In) && (x.Out == nil || c.recv == 0 || c.recv == *x.Out)
}

func checkCounts(t *testing.T, r *rank, want []talkExpected) {
	t.Helper()
	total := 0
	for _, x := range want {
		total += x.Count
		n, took := 0, int64(0)
		for k := range r.talk.list {
			c := &r.talk.list[k]
			o := &r.ops[c.at]
			kernel, _, _ := strings.Cut(r.texts.text(o.name), "(")
			if kernel == x.Kernel && kindName(c) == x.Kind && sameBytes(c, &x) && r.streams[o.stream].stream == x.Stream &&
				(x.Group == "" || x.Group == r.talk.groups[c.group].name) {
				n++
				took += int64(o.took)
			}
		}
		if n != x.Count || took != x.Took {
			t.Errorf("rank %d: %d communications in %d ps, want %+v", r.global, n, took, x)
		}
	}
	if total != len(r.talk.list) {
		t.Errorf("rank %d: %d communications, want %d", r.global, len(r.talk.list), total)
	}
}

// checkWaits compares the waits of streams, pairs of correlations.
func checkWaits(t *testing.T, r *rank, want [][2]int64) {
	t.Helper()
	pairs := map[[2]int64]bool{}
	for _, w := range want {
		pairs[w] = true
	}
	found := map[[2]int64]bool{}
	for _, e := range r.waits.events {
		found[[2]int64{r.launchOf(e[1]).correlation, r.launchOf(e[0]).correlation}] = true
	}
	if fmt.Sprint(found) != fmt.Sprint(pairs) {
		t.Errorf("rank %d: waits\n%v, want\n%v", r.global, found, pairs)
	}
}

// replay returns the ends of ops if all take their recorded durations.
func replay(r *dag.Rank) []dag.Time {
	end := make([]dag.Time, r.Len())
	for i := range end {
		for _, off := range r.Deps.Of(i) {
			end[i] = max(end[i], end[i-int(off)])
		}
		end[i] += r.Duration.At(i)
	}
	return end
}

// checkExact compares measured times and their replay.
func checkExact(t *testing.T, all *expected, i int, j *job, trace *dag.Trace) {
	t.Helper()
	want, r := all.Ranks[i].Exact, trace.Ranks[i]
	if want["first"] == nil {
		return
	}
	if j.origin != originOf(t, all.Origin) {
		t.Errorf("origin %d ns, want %v", j.origin, all.Origin)
	}
	first, last := dag.MaxTime, dag.Time(0)
	for k := range r.Len() {
		if start, end := r.Measured(k); r.Name.At(k) != "host" && r.Name.At(k) != "gap" {
			first, last = min(first, start), max(last, end)
		}
	}
	if int64(first) != *want["first"] || int64(last) != *want["last"] {
		t.Errorf("rank %d: measured %d..%d, want %d..%d", i, first, last, *want["first"], *want["last"])
	}
	ends := replay(r)
	if end := slices.Max(ends); end != last-first {
		t.Errorf("rank %d: the replay ends at %v, measured %v", i, end, last-first)
	}
	late := 0
	for k := range ends {
		if _, end := r.Measured(k); ends[k] != end-first {
			late++
		}
	}
	if late > 0 {
		t.Logf("rank %d: %d of %d ops end late in the replay", i, late, len(ends))
	}
}

func originOf(t *testing.T, n json.Number) int64 {
	v, ok := new(big.Rat).SetString(n.String())
	if !ok || !v.IsInt() {
		t.Fatalf("origin %s", n)
	}
	return v.Num().Int64()
}

// checkTruth compares each op with what the generator did.
func checkTruth(t *testing.T, folder string, j *job, trace *dag.Trace) {
	t.Helper()
	path := filepath.Join(folder, "truth.json.gz")
	if _, err := os.Stat(path); err != nil {
		return
	}
	var want truth
	if err := json.Unmarshal(plainFile(t, path), &want); err != nil {
		t.Fatal(err)
	}
	if stated := !strings.HasSuffix(folder, "old") && !strings.HasSuffix(folder, "truncated"); stated &&
		checkPartners(t, trace) == 0 {
		t.Error("no uneven alltoall")
	}
	for i := range want.Ranks {
		x, r := &want.Ranks[i], trace.Ranks[i]
		whole := !j.ranks[i].damage.end
		if whole {
			checkWaits(t, &j.ranks[i], x.Waits)
		}
		label := map[string]int32{}
		for at, s := range j.ranks[i].order() {
			label[fmt.Sprint(j.ranks[i].streams[s].stream)] = int32(at) + 1
		}
		for name, list := range x.Streams {
			n := 0
			for k := range r.Len() {
				if r.Stream.At(k) != label[name] || r.Name.At(k) == "host" || r.Name.At(k) == "gap" {
					continue
				}
				if n == len(list) {
					t.Fatalf("rank %d stream %s: more than %d ops", i, name, n)
				}
				o, op := &list[n], r.Op(k)
				n++
				cut := op.Kind == dag.Calc && o.Kind != "compute" && o.Kind != "mem" && strings.HasSuffix(folder, "truncated")
				start, end := r.Measured(k)
				kind := map[string]string{"compute": "calc", "mem": "calc"}[o.Kind]
				if kind == "" {
					kind = o.Kind
				}
				got := op.Subkind.String()
				if op.Kind != dag.Coll {
					got = op.Kind.String()
				}
				old := strings.HasSuffix(folder, "old")
				if old && kind == "alltoallv" && got == "alltoall" {
					kind = got // even by chance
				}
				if !cut && got != kind || op.Name != o.Name || start != dag.Time(o.Start) || end-start != dag.Time(o.Took) {
					t.Errorf("rank %d stream %s op %d: %+v, want %+v", i, name, n, op, o)
				}
				if got != kind || kind == "calc" || kind == "barrier" {
					continue
				}
				if op.Bytes != o.In || !old && op.Kind == dag.Coll && op.RecvBytes != 0 && op.RecvBytes != o.Out {
					t.Errorf("rank %d stream %s op %d: %+v, want %+v", i, name, n, op, o)
				}
				if members := trace.Comms[op.Comm].Members(); !old && !slices.Equal(members, o.Group) {
					t.Errorf("rank %d stream %s op %d: of %v, want %+v", i, name, n, members, o)
				}
				if o.Peer != nil && op.Peer != *o.Peer {
					t.Errorf("rank %d stream %s op %d: partner %d, want %d", i, name, n, op.Peer, *o.Peer)
				}
			}
			if whole && n != len(list) {
				t.Errorf("rank %d stream %s: %d ops, want %d", i, name, n, len(list))
			}
		}
	}
}
