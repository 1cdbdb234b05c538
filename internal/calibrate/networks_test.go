package calibrate

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/tracedag/tracedag/dag/lower/collective"
	"github.com/tracedag/tracedag/sim/fit"
)

// pingPongTable returns the times of ping-pongs between ranks 0 and others on a backend, and those of calls if they are
// given, with noise.
func pingPongTable(t *testing.T, backend string, settings [][2]string, others []int, call float64,
	noise func() float64) *fit.Table {
	t.Helper()
	table := &fit.Table{Name: "t", Tool: "csv"}
	sizes := []int64{1, 2, 4, 16, 64, 256, 512, 768, 1024, 1536, 2048, 3072, 4096, 8192, 12288, 16384, 32768, 65536,
		1 << 17, 1 << 18, 1 << 19, 1 << 20}
	for _, other := range others {
		where := fmt.Sprintf("0-%d", other)
		times, err := pingPongs(context.Background(), where, sizes, replayOn(backend, settings))
		if err != nil {
			t.Fatal(err)
		}
		for i, bytes := range sizes {
			table.Rows = append(table.Rows, fit.Measurement{Test: fit.PingPong, Where: where, Bytes: bytes,
				Seconds: times[i] * (1 + noise())})
		}
	}
	if call > 0 {
		for _, bytes := range sizes[:8] {
			for _, test := range []string{fit.SendCall, fit.RecvLate} {
				table.Rows = append(table.Rows, fit.Measurement{Test: test, Bytes: bytes, Seconds: call * (1 + noise())})
			}
		}
	}
	return table
}

func silence() float64 { return 0 }

// checkEstimate compares a parameter with the truth, which its interval contains but for the given tolerance.
func checkEstimate(t *testing.T, f *fit.File, name string, truth, tolerance float64) {
	t.Helper()
	p, is := f.Parameters[name]
	if !is || math.Abs(p.Value/truth-1) > tolerance || p.Low > truth*(1+tolerance) || p.High < truth*(1-tolerance) {
		t.Errorf("%s is %g in %g..%g, expected %g; remarks %q", name, p.Value, p.Low, p.High, truth, f.Remarks)
	}
}

// TestPacket estimates the parameters of machines that are the packet backend itself.
func TestPacket(t *testing.T) {
	const network = "leafspine:hosts=32,tor=8,spines=4,rate=10Gbps,latency=1us"
	machine := func(mss, header string) [][2]string {
		return [][2]string{{"topology", network}, {"transport", "dctcp"}, {"o", "400"}, {"mss", mss},
			{"header-size", header}, {"latency-factor", "1.3"}, {"bandwidth-factor", "0.8"}}
	}
	estimate := func(t *testing.T, table *fit.Table) *fit.File {
		t.Helper()
		f, err := Estimate(context.Background(), []*fit.Table{table}, Options{Backend: "packet", Topology: network,
			Transport: "dctcp", Threads: 1})
		if err != nil {
			t.Fatal(err)
		}
		return f
	}
	t.Run("calls", func(t *testing.T) {
		f := estimate(t, pingPongTable(t, "packet", machine("1024", "100"), []int{1, 31}, 400e-9, silence))
		checkEstimate(t, f, "o", 400e-9, 0.001)
		checkEstimate(t, f, "mss", 1024, 0)
		checkEstimate(t, f, "header_size", 100, 0.02)
		checkEstimate(t, f, "latency_factor", 1.3, 0.002)
		checkEstimate(t, f, "bandwidth_factor", 0.8, 0.002)
		if r := f.Residuals[0]; r.Largest > 0.002 {
			t.Errorf("largest error %g, expected that of a machine without noise", r.Largest)
		}
	})
	t.Run("distances", func(t *testing.T) {
		f := estimate(t, pingPongTable(t, "packet", machine("4096", "64"), []int{1, 31}, 0, silence))
		checkEstimate(t, f, "o", 400e-9, 0.02)
		checkEstimate(t, f, "mss", 4096, 0)
		checkEstimate(t, f, "latency_factor", 1.3, 0.005)
		checkEstimate(t, f, "bandwidth_factor", 0.8, 0.005)
	})
	t.Run("one distance", func(t *testing.T) {
		f := estimate(t, pingPongTable(t, "packet", machine("4096", "64"), []int{31}, 0, silence))
		for name, truth := range map[string]float64{"o": 400e-9, "latency_factor": 1.3} {
			if p := f.Parameters[name]; p.Low != 0 || p.High < truth {
				t.Errorf("%s is in %g..%g, expected an interval from 0 to more than %g", name, p.Low, p.High, truth)
			}
		}
		if !strings.Contains(strings.Join(f.Remarks, "\n"), "not determined apart") {
			t.Errorf("remarks %q do not name what is not determined", f.Remarks)
		}
	})
	t.Run("noise", func(t *testing.T) {
		if testing.Short() {
			t.Skip("computes long on one thread")
		}
		inside, all := 0, 0
		exact := pingPongTable(t, "packet", machine("4096", "64"), []int{1, 31}, 400e-9, silence)
		for seed := range uint64(20) {
			random := rand.New(rand.NewPCG(seed, 3))
			table := *exact
			table.Rows = nil
			for _, m := range exact.Rows {
				m.Seconds *= 1 + 0.02*random.NormFloat64()
				table.Rows = append(table.Rows, m)
			}
			f := estimate(t, &table)
			for name, truth := range map[string]float64{"o": 400e-9, "mss": 4096, "header_size": 64,
				"latency_factor": 1.3, "bandwidth_factor": 0.8} {
				if all++; f.Parameters[name].Low <= truth && truth <= f.Parameters[name].High {
					inside++
				} else {
					t.Logf("seed %d: %s is %+v, expected %g", seed, name, f.Parameters[name], truth)
				}
			}
		}
		t.Logf("%d of %d intervals contain the truth", inside, all)
		if inside < all*90/100 {
			t.Errorf("%d of %d intervals contain the truth", inside, all)
		}
	})
}

// TestAnalytical estimates the parameters of machines that are the analytical backend itself.
func TestAnalytical(t *testing.T) {
	const network = "Ring(4)_Switch(2)_FC(4)@%s"
	for _, congestion := range []string{"unaware", "aware"} {
		t.Run(congestion, func(t *testing.T) {
			settings := [][2]string{{"network", fmt.Sprintf(network, "10,5,2GB/s,2000,3000,5000ns")},
				{"congestion", congestion}}
			replay := replayOn("analytical", settings)
			table := &fit.Table{Name: "t", Tool: "csv"}
			for _, where := range []string{"0-1", "0-2", "0-4", "0-8", "0-31"} {
				from, to, _ := ends(where)
				for bytes := int64(1); bytes <= 1<<22; bytes *= 4 {
					s := newScene(32)
					s.send(from, to, bytes)
					s.receive(to, from, bytes)
					s.mark()
					at, _, err := s.run(context.Background(), collective.Choice{}, replay)
					if err != nil {
						t.Fatal(err)
					}
					table.Rows = append(table.Rows, fit.Measurement{Test: fit.PingPong, Where: where, Bytes: bytes,
						Seconds: at[to][0]})
				}
			}
			f, err := Estimate(context.Background(), []*fit.Table{table}, Options{Backend: "analytical",
				Network: fmt.Sprintf(network, "1GB/s,1us"), Congestion: congestion, Threads: 1})
			if err != nil {
				t.Fatal(err)
			}
			for d, truth := range [][2]float64{{10, 2000}, {5, 3000}, {2, 5000}} {
				checkEstimate(t, f, fmt.Sprintf("bw%d", d), truth[0]*(1<<30), 0.003)
				checkEstimate(t, f, fmt.Sprintf("lat%d", d), truth[1]*1e-9, 0.003)
			}
			if r := f.Residuals[0]; r.Largest > 0.003 {
				t.Errorf("largest error %g, expected that of a machine without noise", r.Largest)
			}
		})
	}
}

// TestNetworkErrors: tables and networks that do not determine parameters are errors or remarks.
func TestNetworkErrors(t *testing.T) {
	table := &fit.Table{Name: "t", Tool: "csv"}
	for bytes := int64(1); bytes <= 1<<16; bytes *= 2 {
		table.Rows = append(table.Rows, fit.Measurement{Test: fit.PingPong, Where: "0-5", Bytes: bytes,
			Seconds: 1e-6 + float64(bytes)*1e-9})
	}
	flat := &fit.Table{Name: "t", Tool: "csv"}
	for _, m := range table.Rows {
		m.Seconds = 1e-6
		flat.Rows = append(flat.Rows, m)
	}
	for _, tt := range []struct {
		table  *fit.Table
		o      Options
		expect string
	}{
		{table, Options{Backend: "analytical", Network: "Ring(4)_Ring(4)@1GB/s,1us", Congestion: "aware"},
			"in one dimension alone"},
		{table, Options{Backend: "analytical", Network: "Ring(4)@1GB/s,1us"}, "expected ranks below 4"},
		{table, Options{Backend: "analytical", Network: "Ring(4)"}, "expected @"},
		{flat, Options{Backend: "analytical", Network: "Ring(8)@1GB/s,1us"}, "times that grow"},
		{table, Options{Backend: "packet", Topology: "star:hosts=4", Transport: "ndp"}, "expected ranks below 4"},
		{table, Options{Backend: "packet", Topology: "star", Transport: "ndp"}, "--topology"},
		{table, Options{Backend: "packet", Topology: "star:hosts=8", Transport: "x"}, "unknown transport"},
		{&fit.Table{Name: "t", Tool: traceTool, Rows: table.Rows}, Options{Backend: "packet", Topology: "star:hosts=8"},
			"times with places for the backend packet"},
		{table, Options{Backend: "slots"}, "expected one of the backends loggops, flow, packet, analytical"},
	} {
		tt.o.Threads = 1
		if _, err := Estimate(context.Background(), []*fit.Table{tt.table}, tt.o); err == nil ||
			!strings.Contains(err.Error(), tt.expect) {
			t.Errorf("%+v: error %v, expected %q", tt.o, err, tt.expect)
		}
	}
	f, err := Estimate(context.Background(), []*fit.Table{table}, Options{Backend: "analytical",
		Network: "Ring(4)_Ring(4)@1GB/s,1us", Threads: 1})
	if err != nil {
		t.Fatal(err)
	}
	if _, is := f.Parameters["lat1"]; is || !strings.Contains(strings.Join(f.Remarks, "\n"), "lat1 and bw1 are not") {
		t.Errorf("parameters %v, remarks %q, expected none of dimension 1", f.Parameters, f.Remarks)
	}
}
