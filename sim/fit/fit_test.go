package fit

import (
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"testing"
)

// vectors returns the folder of the recordings under SMPI.
func vectors(t *testing.T) string {
	t.Helper()
	dir := os.Getenv("TRACEDAG_VECTORS")
	if dir == "" {
		t.Skip("set TRACEDAG_VECTORS to the folder of third-party sample files")
	}
	return filepath.Join(dir, "smpi")
}

func readFile(t *testing.T, path string) *Table {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	table, err := Read(filepath.Base(path), data)
	if err != nil {
		t.Fatal(err)
	}
	return table
}

// TestSplitVectors checks that the segments of noiseless ping-pongs pass within 1 % of each point and bracket the
// thresholds of the machine, in bytes on the wire, which are 16 more than those of the message.
func TestSplitVectors(t *testing.T) {
	files, err := filepath.Glob(filepath.Join(vectors(t), "micro-*.csv"))
	if err != nil || len(files) == 0 {
		t.Fatal("no tables", err)
	}
	for _, file := range files {
		table := readFile(t, file)
		points, paths := Points(Only([]*Table{table}, PingPong))
		segments, err := Split(points)
		if err != nil {
			t.Fatal(err)
		}
		worst := 0.0
		for _, p := range points {
			worst = max(worst, math.Abs(At(segments, p.Path, p.Bytes)/p.Seconds-1))
		}
		t.Logf("%s: %d points on %v, worst %.4f %%", table.Name, len(points), paths, 100*worst)
		for _, s := range segments {
			t.Logf("  from %d (%d, %d]: start %.4g s, %.4g s/B", s.From, s.CutAfter, s.Least, s.Start, s.PerByte)
		}
		if worst > 0.01 {
			t.Errorf("%s: a point is %.3g %% off", table.Name, 100*worst)
		}
		if !slices.IsSortedFunc(segments, func(a, b Segment) int { return int(a.From - b.From) }) {
			t.Errorf("%s: segments out of order", table.Name)
		}
	}
}

// TestLogGOPS estimates parameters from tables with known parameters, without and with noise.
func TestLogGOPS(t *testing.T) {
	table := synthetic(nil)
	f, err := LogGOPS([]*Table{table}, Options{Seed: 1, Draws: 200})
	if err != nil {
		t.Fatal(err)
	}
	near := func(name string, got, want float64) {
		t.Helper()
		if math.Abs(got-want) > 1e-3*want+1e-15 {
			t.Errorf("%s is %g, expected %g", name, got, want)
		}
	}
	near("S", f.Parameters["S"].Value, 65535)
	for i, want := range truth {
		if i >= len(f.Segments) {
			t.Fatalf("%d segments, expected %d", len(f.Segments), len(truth))
		}
		p := f.Segments[i].Parameters
		near("from", float64(f.Segments[i].From), float64(want.from))
		near("L", p["L"].Value, want.latency)
		near("G", p["G"].Value, want.perByte)
		near("o_send", p["o_send"].Value, want.send)
		near("o_recv", p["o_recv"].Value, want.recv)
	}
}

// TestIntervals checks that 95 % intervals contain the truth in most of 20 tables with 2 % of noise.
func TestIntervals(t *testing.T) {
	inside, all := 0, 0
	for seed := range uint64(20) {
		f, err := LogGOPS([]*Table{synthetic(rand.New(rand.NewPCG(seed, 7)))}, Options{Seed: seed, Draws: 100})
		if err != nil {
			t.Fatal(err)
		}
		for _, want := range truth {
			for i := range f.Segments {
				s := &f.Segments[i]
				middle := want.from + want.from/2 + 300
				if s.From <= middle && (s.To == 0 || middle < s.To) {
					for name, v := range map[string]float64{"L": want.latency, "G": want.perByte, "o_send": want.send,
						"o_recv": want.recv} {
						all++
						if p := s.Parameters[name]; p.Low > v*(1+1e-9) || v > p.High*(1+1e-9) {
							t.Logf("seed %d from %d: %s is %.4g in %.4g..%.4g, expected %.4g", seed, s.From, name,
								p.Value, p.Low, p.High, v)
						}
						if p := s.Parameters[name]; p.Low <= v*(1+1e-9) && v <= p.High*(1+1e-9) {
							inside++
						}
					}
				}
			}
		}
	}
	t.Logf("%d of %d intervals contain the truth", inside, all)
	if inside < all*93/100 {
		t.Errorf("%d of %d intervals contain the truth", inside, all)
	}
}

// truth has the parameters of a machine, by segment.
var truth = []struct {
	from                         int64
	latency, perByte, send, recv float64
}{
	{0, 2e-6, 1e-9, 3e-7, 4e-7},
	{8192, 3e-6, 5e-10, 3e-7, 4e-7},
}

// synthetic returns the table of the machine, with 2 % of noise unless random is nil.
func synthetic(random *rand.Rand) *Table {
	noise := func() float64 {
		if random == nil {
			return 1
		}
		return 1 + 0.02*random.NormFloat64()
	}
	table := &Table{Name: "synthetic", Tool: "csv"}
	add := func(test string, bytes int64, seconds float64) {
		table.Rows = append(table.Rows, Measurement{Test: test, Bytes: bytes, Seconds: seconds * noise()})
	}
	for bytes := int64(1); bytes <= 4<<20; bytes = max(bytes+1, bytes*5/4) {
		p := truth[0]
		if bytes >= truth[1].from {
			p = truth[1]
		}
		way := p.send + p.latency + float64(bytes-1)*p.perByte + p.recv
		late := p.send
		if bytes > 65535 {
			way += 2 * truth[0].latency // the round trip of a rendezvous
			late = 1e-3 + way
		} else {
			add(SendCall, bytes, p.send)
			add(RecvLate, bytes, p.recv)
		}
		add(PingPong, bytes, way)
		add(SendLate, bytes, late)
	}
	return table
}
