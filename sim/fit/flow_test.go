package fit

import (
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

// flowTruth is a machine of the flow backend: factors above some bytes that travel, overheads and thresholds.
var flowTruth = struct {
	factors                 Factors
	send, sendEach          float64
	recv, recvEach          float64
	nonBlocking             float64
	async, detached         int64
	latency, rate, envelope float64
	recvFrom                int64 // size from which receives take recvEach
}{
	Factors{From: []int64{0, 4111}, Latency: []float64{2, 3}, Bandwidth: []float64{0.5, 0.9}},
	3e-7, 2e-11, 4e-7, 4e-11, 2e-7, 1024, 65536, 1e-6, 12.5e9, 16, 0,
}

// flowTable returns measurements of the machine on two paths, the second with twice the latency, with 2 % of noise
// unless random is nil.
func flowTable(random *rand.Rand) *Table {
	noise := func() float64 {
		if random == nil {
			return 1
		}
		return 1 + 0.02*random.NormFloat64()
	}
	table := &Table{Name: "machine", Tool: "csv"}
	for bytes := int64(1); bytes <= 4<<20; bytes = max(bytes+1, bytes*3/2) {
		table.Rows = append(table.Rows, flowRows(bytes)...)
	}
	slices.SortStableFunc(table.Rows, func(a, b Measurement) int {
		return strings.Compare(a.Test+a.Where, b.Test+b.Where)
	})
	for i := range table.Rows {
		table.Rows[i].Seconds *= noise()
	}
	return table
}

// flowRows returns the measurements of a size.
func flowRows(bytes int64) (rows []Measurement) {
	m := &flowTruth
	lat, bw := m.factors.at(bytes + 16)
	send, recv := m.send+m.sendEach*float64(bytes), m.recv+m.recvEach*float64(bytes)
	if bytes < m.recvFrom {
		recv = m.recv / 2
	}
	for path, where := range []string{"0-1", "0-2"} {
		transfer := m.latency*float64(path+1)*lat + (float64(bytes)+m.envelope)/(m.rate*bw)
		way, late, receive, call := transfer+send+recv, send, recv, send
		if bytes >= m.async {
			receive = transfer + recv
		}
		if bytes >= m.detached {
			way, late, receive, call = transfer, 0.1+transfer, transfer, transfer
		}
		for test, seconds := range map[string]float64{PingPong: way, SendCall: call, SendLate: late,
			RecvLate: receive, IsendCall: m.nonBlocking} {
			rows = append(rows, Measurement{Test: test, Where: where, Bytes: bytes, Seconds: seconds})
		}
	}
	return rows
}

func flowOptions(seed uint64, draws int) FlowOptions {
	return FlowOptions{Options: Options{Seed: seed, Draws: draws}, Topology: "x.xml", Envelope: 16,
		Route: func(where string) (Route, error) {
			r := Route{Latency: flowTruth.latency, Rate: flowTruth.rate}
			if where == "0-2" {
				r.Latency *= 2
			}
			return r, nil
		}}
}

// TestFlow: parameters of a machine without noise are those of the machine.
func TestFlow(t *testing.T) {
	f, err := Flow([]*Table{flowTable(nil)}, flowOptions(1, 100))
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]float64{"async_small": 1024, "detached": 65536} {
		if p := f.Parameters[name]; !(p.Low <= want && want <= p.High) {
			t.Errorf("%s is %v, expected %g in its interval", name, p, want)
		}
	}
	for _, bytes := range []int64{8, 1000, 8000, 30000, 1 << 20} {
		s := f.segment(bytes)
		lat, bw := flowTruth.factors.at(bytes + 16)
		want := map[string]float64{"latency_factor": lat, "bandwidth_factor": bw, "ois": flowTruth.nonBlocking,
			"os": flowTruth.send, "os_per_byte": flowTruth.sendEach, "or": flowTruth.recv,
			"or_per_byte": flowTruth.recvEach}
		for name, v := range want {
			if bytes >= 1024 && strings.HasPrefix(name, "o") || bytes < 256 && strings.HasSuffix(name, "_per_byte") {
				continue // tables do not tell or above async_small
			}
			if got := s.Parameters[name].Value; math.Abs(got/v-1) > 0.01 {
				t.Errorf("%d bytes: %s is %g, expected %g", bytes, name, got, v)
			}
		}
	}
	if r := f.Residuals[0]; r.Largest > 0.01 {
		t.Errorf("residuals %+v", r)
	}
}

// TestFlowBetweenCalls: ping-pongs determine detached, and the slope of or from 512 bytes on, where calls have every
// fourth power of two only, so that one size has this slope.
func TestFlowBetweenCalls(t *testing.T) {
	usual := flowTruth
	defer func() { flowTruth = usual }()
	flowTruth.detached, flowTruth.async, flowTruth.recvFrom, flowTruth.recvEach = 40000, 4000, 512, 6e-11
	table := flowTable(nil)
	for power := int64(1); power <= 4<<20; power *= 4 {
		table.Rows = append(table.Rows, flowRows(power)...)
	}
	table.Rows = slices.DeleteFunc(table.Rows, func(m Measurement) bool {
		return m.Test != PingPong && m.Bytes&(m.Bytes-1) != 0
	})
	f, err := Flow([]*Table{table}, flowOptions(1, 20))
	if err != nil {
		t.Fatal(err)
	}
	if p := f.Parameters["detached"]; !(p.Low <= 40000 && 40000 <= p.High && p.High < 65536) {
		t.Errorf("detached is %+v, expected 40000 and its neighbors", p)
	}
	for name, want := range map[string]float64{"or_per_byte": 6e-11, "or": 4e-7, "bandwidth_factor": 0.9,
		"latency_factor": 3, "ois_per_byte": 0} {
		if got := f.segment(20000).Parameters[name].Value; math.Abs(got-want) > 0.01*want {
			t.Errorf("%s is %g, expected %g", name, got, want)
		}
	}
	if got := f.segment(600).Parameters["or"].Value; math.Abs(got-4e-7) > 1e-8 {
		t.Errorf("or of 600 bytes is %g, expected 4e-07", got)
	}
	if r := f.Residuals[0]; r.Largest > 0.005 {
		t.Errorf("residuals %+v", r)
	}
}

// TestFlowSums: a known model that explains the sizes of calls, and those from detached on, gives os + or between.
// Calls have no or there.
func TestFlowSums(t *testing.T) {
	usual := flowTruth
	defer func() { flowTruth = usual }()
	flowTruth.async, flowTruth.recvFrom, flowTruth.recvEach = 2048, 5000, 0
	table := flowTable(nil)
	for power := int64(1); power <= 4<<20; power *= 4 {
		table.Rows = append(table.Rows, flowRows(power)...)
	}
	table.Rows = slices.DeleteFunc(table.Rows, func(m Measurement) bool {
		return m.Test != PingPong && m.Bytes&(m.Bytes-1) != 0
	})
	o := flowOptions(1, 20)
	known := flowTruth.factors
	known.Model = "known"
	o.Models = []Factors{known}
	f, err := Flow([]*Table{table}, o)
	if err != nil || f.Model != "known" {
		t.Fatalf("model %q (%v)", f.Model, err)
	}
	for bytes, or := range map[int64]float64{600: 2e-7, 3000: 2e-7, 8000: 4e-7, 40000: 4e-7} {
		s := f.segment(bytes)
		sum := s.Parameters["os"].Value + s.Parameters["or"].Value +
			(s.Parameters["os_per_byte"].Value+s.Parameters["or_per_byte"].Value)*float64(bytes)
		if want := flowTruth.send + flowTruth.sendEach*float64(bytes) + or; math.Abs(sum/want-1) > 0.005 {
			t.Errorf("%d bytes: os + or is %g, expected %g", bytes, sum, want)
		}
	}
}

// segment returns the segment of a size.
func (f *File) segment(bytes int64) *FileSegment {
	i := len(f.Segments) - 1
	for i > 0 && bytes < f.Segments[i].From {
		i--
	}
	return &f.Segments[i]
}

// TestFlowKnown: a known table of factors replaces fitted ones if it explains the times.
func TestFlowKnown(t *testing.T) {
	o := flowOptions(1, 20)
	known := flowTruth.factors
	known.Model = "known"
	wrong := Factors{Model: "wrong", From: []int64{0}, Latency: []float64{2}, Bandwidth: []float64{0.5}}
	o.Models = []Factors{wrong, known}
	f, err := Flow([]*Table{flowTable(rand.New(rand.NewPCG(1, 2)))}, o)
	if err != nil || f.Model != "known" || f.segment(1 << 20).Parameters["bandwidth_factor"].Value != 0.9 {
		t.Errorf("model %q (%v)", f.Model, err)
	}
	o.Models = []Factors{wrong}
	if f, err = Flow([]*Table{flowTable(nil)}, o); err != nil || f.Model != "smpi" {
		t.Errorf("model %q (%v)", f.Model, err)
	}
}

// TestFlowUndetermined: a ping-pong alone has wide intervals and remarks.
func TestFlowUndetermined(t *testing.T) {
	table := flowTable(nil)
	table.Rows = Only([]*Table{table}, PingPong)
	f, err := Flow([]*Table{table}, flowOptions(1, 20))
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"os is", "or is", "ois is", "async_small is", "detached is"} {
		if !slices.ContainsFunc(f.Remarks, func(r string) bool { return strings.HasPrefix(r, name) }) {
			t.Errorf("no remark %q in %q", name, f.Remarks)
		}
	}
	if p := f.Segments[0].Parameters["os"]; p.Value != 0 || p.High < 5e-7 {
		t.Errorf("os %v, expected an interval from 0", p)
	}
	o := flowOptions(1, 20)
	o.Route = func(string) (Route, error) { return Route{Rate: 1}, nil }
	if _, err := Flow([]*Table{table}, o); err == nil || !strings.Contains(err.Error(), "give the topology a latency") {
		t.Errorf("error %v", err)
	}
}

// TestFlowIntervals checks that 95 % intervals contain the truth in most of 20 tables with 2 % of noise.
func TestFlowIntervals(t *testing.T) {
	inside, all := 0, 0
	for seed := range uint64(20) {
		f, err := Flow([]*Table{flowTable(rand.New(rand.NewPCG(seed, 3)))}, flowOptions(seed, 200))
		if err != nil {
			t.Fatal(err)
		}
		check := func(name string, p Parameter, v float64) {
			all++
			if p.Low <= v*(1+1e-9) && v <= p.High*(1+1e-9) {
				inside++
			} else {
				t.Logf("seed %d: %s is %g in %g..%g, expected %g", seed, name, p.Value, p.Low, p.High, v)
			}
		}
		for _, bytes := range []int64{200, 20000, 1 << 20} {
			s := f.segment(bytes)
			lat, bw := flowTruth.factors.at(bytes + 16)
			check("latency_factor", s.Parameters["latency_factor"], lat)
			check("bandwidth_factor", s.Parameters["bandwidth_factor"], bw)
		}
		first := f.segment(200).Parameters
		check("os", first["os"], flowTruth.send)
		check("or", first["or"], flowTruth.recv)
		check("ois", first["ois"], flowTruth.nonBlocking)
		check("os_per_byte", first["os_per_byte"], flowTruth.sendEach)
		check("async_small", f.Parameters["async_small"], 1024)
		check("detached", f.Parameters["detached"], 65536)
	}
	t.Logf("%d of %d intervals contain the truth", inside, all)
	if inside < all*95/100 {
		t.Errorf("%d of %d intervals contain the truth", inside, all)
	}
}
