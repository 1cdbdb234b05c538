package mpi

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/tracedag/tracedag/dag"
	"github.com/tracedag/tracedag/formats/format"
	"github.com/tracedag/tracedag/formats/goal"
)

// expectation is a file with the schedule that Schedgen makes of a trace.
type expectation struct {
	Converter   string
	Trace       string // rank 0's file
	Options     string
	IdenticalTo string `json:"identical_to"`
	BinSHA256   string `json:"bin_sha256"`
	Stderr      map[string]int64
	Counts      struct{ Sends, Recvs, Execs, Reqs, Hosts int64 }
	LogGOPSim   []struct { // what that computes for the schedule, in nanoseconds
		Params map[string]int64
		Status string
		Finish []uint64
	}
}

// vectorFolders returns testdata, with the traces that were made for these tests, and the folder with those of others
// if there is one.
func vectorFolders(t *testing.T) []string {
	folders := []string{"testdata"}
	if vectors := os.Getenv("TRACEDAG_VECTORS"); vectors != "" {
		folders = append(folders, filepath.Join(vectors, "liballprof"))
	} else {
		t.Log("TRACEDAG_VECTORS is not set: the traces of other projects are not read")
	}
	return folders
}

// parseOptions reads a command line of Schedgen.
func parseOptions(t *testing.T, e *expectation) *Options {
	o := &Options{Variant: "upstream", TimeMult: 1000, Extrapolate: 1}
	if e.Converter == "schedgen-atlahs" {
		o.Variant = "atlahs"
	}
	words := strings.Fields(e.Options)
	for len(words) > 0 {
		flag := words[0]
		words = words[1:]
		number := func() int64 {
			n, err := strconv.ParseInt(words[0], 10, 64)
			if err != nil {
				t.Fatal(err)
			}
			words = words[1:]
			return n
		}
		switch flag {
		case "--timemult":
			o.TimeMult = number()
		case "--cpu":
			o.CPU = int32(number())
		case "--nb":
			o.Nonblocking = number()
		case "--traces-extr":
			o.Extrapolate = int(number())
		case "--traces-nops":
			o.Collectives = int(number())
		case "--traces-nbcify":
			o.Prepost = int32(number())
		case "--traces-nop2p":
			o.NoPointToPoint = true
		case "--traces-nocolls":
			o.NoCollectives = true
		case "--traces-print": // comments
			number()
		default:
			t.Fatalf("option %s", flag)
		}
	}
	return o
}

// traceFiles returns the files of the trace of which the path is rank 0's.
func traceFiles(t *testing.T, path string) []*format.Input {
	t.Helper()
	entries, err := os.ReadDir(filepath.Dir(path))
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
	}
	names, err = files(filepath.Base(path), names)
	if err != nil {
		t.Fatal(err)
	}
	var inputs []*format.Input
	for _, name := range names {
		text, err := os.ReadFile(filepath.Join(filepath.Dir(path), name))
		if err != nil {
			t.Fatal(err)
		}
		inputs = append(inputs, &format.Input{Name: name, Reader: bytes.NewReader(text)})
	}
	return inputs
}

// binary returns the trace as GOAL binary.
func binary(t *testing.T, trace *dag.Trace) []byte {
	t.Helper()
	var out bytes.Buffer
	if err := goal.Binary.Write(&out, trace, format.WriteOptions{Compat: true, Warn: t.Errorf}); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// The schedules that Schedgen makes of traces, op for op.
func TestSchedgenVectors(t *testing.T) {
	for _, folder := range vectorFolders(t) {
		paths, err := filepath.Glob(filepath.Join(folder, "*.expected.json"))
		if err != nil || len(paths) == 0 {
			t.Fatalf("%s: no vectors (%v)", folder, err)
		}
		for _, path := range paths {
			t.Run(strings.TrimSuffix(filepath.Base(path), ".expected.json"), func(t *testing.T) {
				checkVector(t, folder, path)
			})
		}
	}
}

func checkVector(t *testing.T, folder, path string) {
	e := readExpectation(t, path)
	want := e
	if e.IdenticalTo != "" {
		want = readExpectation(t, filepath.Join(folder, e.IdenticalTo+".expected.json"))
	}
	said := map[string]int64{}
	warn := func(message string, args ...any) {
		if message == "schedgen: %s (%s)" {
			n, _, _ := strings.Cut(args[1].(string), " ")
			said[args[0].(string)], _ = strconv.ParseInt(n, 10, 64)
		}
	}
	trace, err := read(traceFiles(t, filepath.Join(folder, e.Trace)), format.ReadOptions{Own: parseOptions(t, e),
		Compat: true, Warn: warn})
	if err != nil {
		t.Fatal(err)
	}
	counts, stats := want.Counts, expectation{}.Counts
	stats.Hosts = int64(len(trace.Ranks))
	for i := range trace.Ranks {
		r := trace.Ranks[i]
		stats.Reqs += int64(len(r.Deps.Off) + len(r.StartDeps.Off))
		for _, kind := range r.Kind {
			switch kind {
			case dag.Send:
				stats.Sends++
			case dag.Recv:
				stats.Recvs++
			default:
				stats.Execs++
			}
		}
	}
	if stats != counts {
		t.Errorf("made %+v, want %+v", stats, counts)
	}
	sum := sha256.Sum256(binary(t, trace))
	if got := hex.EncodeToString(sum[:]); want.BinSHA256 == "" || got != want.BinSHA256 {
		t.Errorf("the binary has SHA-256 %s, want %s", got, want.BinSHA256)
	}
	for message, n := range e.Stderr {
		if got := said[message]; got != n && !strings.HasPrefix(message, "line was: ") {
			t.Errorf("said %q %d times, want %d", message, got, n)
		}
	}
}

func readExpectation(t *testing.T, path string) *expectation {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	e := new(expectation)
	if err := json.Unmarshal(text, e); err != nil {
		t.Fatal(err)
	}
	return e
}
