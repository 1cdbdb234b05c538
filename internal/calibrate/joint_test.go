package calibrate

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/tracedag/tracedag/dag/lower/collective"
	"github.com/tracedag/tracedag/sim/fit"
)

// callsTruth are the overheads of a machine without small messages that start at once, so that no late receive shows or
// alone: fixed times in seconds and times per byte by the first size.
type callsTruth struct {
	send, receive map[int64][2]float64
	nonBlocking   float64
	detached      int64
}

// at returns the time of a call.
func timeOf(segments map[int64][2]float64, bytes int64) float64 {
	first := int64(0)
	for from := range segments {
		if from <= bytes {
			first = max(first, from)
		}
	}
	return segments[first][0] + segments[first][1]*float64(bytes)
}

// texts returns the table of a setting, whose entries apply above a size.
func textOf(segments map[int64][2]float64) string {
	var texts []string
	for from, v := range segments {
		texts = append(texts, fmt.Sprintf("%d:%g:%g", max(from-1, 0), v[0], v[1]))
	}
	slices.SortFunc(texts, func(a, b string) int { return len(a) - len(b) }) // the first is 0
	return strings.Join(texts, ";")
}

// tableOf returns the times that the machine has on a network with further settings.
func (c *callsTruth) tableOf(t *testing.T, network string, further ...[2]string) *fit.Table {
	t.Helper()
	settings := append([][2]string{{"topology", network}, {"protocol", "smpi"}, {"async-small", "0"},
		{"detached", fmt.Sprint(c.detached)}, {"os", textOf(c.send)}, {"or", textOf(c.receive)},
		{"ois", fmt.Sprintf("0:%g", c.nonBlocking)}}, further...)
	replay := replayOn("flow", settings)
	table := &fit.Table{Name: "t", Tool: "csv"}
	var sizes []int64
	for bytes := int64(1); bytes <= 1<<20; bytes *= 2 {
		if sizes = append(sizes, bytes); bytes > 2 {
			sizes = append(sizes, bytes/2*3)
		}
	}
	for _, where := range []string{"0-1", "0-31"} {
		add := func(test string, bytes int64, seconds float64) {
			m := fit.Measurement{Test: test, Where: where, Bytes: bytes, Seconds: seconds}
			if test == fit.Window {
				m.Window = 16
			}
			table.Rows = append(table.Rows, m)
		}
		times, err := pingPongs(context.Background(), where, sizes, replay)
		if err != nil {
			t.Fatal(err)
		}
		for i, bytes := range sizes {
			add(fit.PingPong, bytes, times[i])
			if bytes&(bytes-1) != 0 || bytes&0x55555555 == 0 {
				continue
			}
			send := timeOf(c.send, bytes)
			late := send
			if bytes >= c.detached {
				send, late = times[i], 0.1
			}
			add(fit.SendCall, bytes, send)
			add(fit.SendLate, bytes, late)
			add(fit.IsendCall, bytes, c.nonBlocking)
			add(fit.RecvLate, bytes, times[i]-timeOf(c.send, min(bytes, c.detached-1)))
			for _, test := range []string{fit.Window, fit.Exchange} {
				m := fit.Measurement{Test: test, Where: where, Bytes: bytes, Window: 16}
				seconds, err := shared(context.Background(), m, collective.Choice{}, replay)
				if err != nil {
					t.Fatal(err)
				}
				add(test, bytes, seconds)
			}
		}
	}
	return table
}

// estimateOf returns the estimate of a table with noise.
func estimateOf(t *testing.T, network string, table *fit.Table, noise float64, seed uint64) *fit.File {
	t.Helper()
	random := rand.New(rand.NewPCG(seed, 7))
	noisy := *table
	noisy.Rows = slices.Clone(table.Rows)
	for i := range noisy.Rows {
		noisy.Rows[i].Seconds *= 1 + noise*random.NormFloat64()
	}
	f, err := Estimate(context.Background(), []*fit.Table{&noisy}, Options{Backend: "flow", Topology: network,
		Threads: 1})
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// callOf returns os or or of a message.
func callOf(f *fit.File, name string, bytes int64) float64 {
	s := segmentOf(f, bytes)
	return s.Parameters[name].Value + s.Parameters[name+"_per_byte"].Value*float64(bytes)
}

const pairNetwork = "leafspine:hosts=32,tor=8,spines=4,rate=10Gbps,latency=1us"

// TestReceivesOfWindows: windows, exchanges and the factors of SMPI determine or of a machine on which no late receive
// shows it, and detached; noise does not change the factors that are recognized.
func TestReceivesOfWindows(t *testing.T) {
	truth := callsTruth{map[int64][2]float64{0: {8e-7, 2e-11}}, map[int64][2]float64{0: {7e-7, 1e-10}}, 5e-7, 65536}
	table := truth.tableOf(t, pairNetwork, [2]string{"flow-model", "smpi"})
	noises := []float64{0, 0.01, 0.01}
	switch {
	case testing.Short():
		noises = noises[:1]
	case os.Getenv("TRACEDAG_LONG") == "":
		noises = noises[:2]
	}
	for seed, noise := range noises {
		f := estimateOf(t, pairNetwork, table, noise, uint64(seed))
		if f.Model != "smpi" || segmentOf(f, 1<<20).Parameters["latency_factor"].Value != 11.6436 {
			t.Errorf("noise %g: model %s with %+v, expected the factors of SMPI", noise, f.Model, segmentOf(f, 1<<20))
		}
		if p := f.Parameters["detached"]; p.Low > 65536 || p.High < 65536 {
			t.Errorf("noise %g: detached is %+v, expected 65536 in its interval", noise, p)
		}
		for _, bytes := range []int64{1, 1000, 10000, 60000} {
			if got, want := callOf(f, "or", bytes), timeOf(truth.receive, bytes); math.Abs(got/want-1) > 0.002+10*noise {
				t.Errorf("noise %g: or of %d bytes is %g s, expected %g s", noise, bytes, got, want)
			}
		}
		for _, r := range f.Residuals {
			if r.Mean > 0.001+1.2*noise {
				t.Errorf("noise %g: mean error %+v", noise, r)
			}
		}
	}
}

// TestOverheadsOfExchanges: os, or and factors with cuts between the sizes of calls, on a machine with factors of its
// own.
func TestOverheadsOfExchanges(t *testing.T) {
	if testing.Short() {
		t.Skip("computes long on one thread")
	}
	truth := callsTruth{map[int64][2]float64{0: {7e-7, 0}, 5001: {9e-7, 3e-11}},
		map[int64][2]float64{0: {5e-7, 0}, 5001: {8e-7, 2e-11}}, 4e-7, 32768}
	table := truth.tableOf(t, pairNetwork, [2]string{"bw-factors", "0:0.6;3000:0.8;30000:0.92"},
		[2]string{"lat-factors", "0:1.2;3000:1.6;30000:2.5"})
	f := estimateOf(t, pairNetwork, table, 0, 1)
	for _, bytes := range []int64{100, 4000, 16384} {
		for name, segments := range map[string]map[int64][2]float64{"os": truth.send, "or": truth.receive} {
			if got, want := callOf(f, name, bytes), timeOf(segments, bytes); math.Abs(got/want-1) > 0.005 {
				t.Errorf("%s of %d bytes is %g s, expected %g s", name, bytes, got, want)
			}
		}
	}
	for _, bytes := range []int64{6000, 30000} {
		got := callOf(f, "os", bytes) + callOf(f, "or", bytes)
		if want := timeOf(truth.send, bytes) + timeOf(truth.receive, bytes); math.Abs(got/want-1) > 0.005 {
			t.Errorf("os + or of %d bytes is %g s, expected %g s", bytes, got, want)
		}
		for name, want := range map[string]float64{"os_per_byte": 3e-11, "or_per_byte": 2e-11} {
			if p := segmentOf(f, bytes).Parameters[name]; p.Low > want || p.High < want {
				t.Errorf("%s of %d bytes is %+v, expected %g in the interval: calls have one size there", name, bytes, p,
					want)
			}
		}
	}
	for bytes, want := range map[int64]float64{2000: 0.6, 10000: 0.8, 1 << 19: 0.92} {
		if got := segmentOf(f, bytes).Parameters["bandwidth_factor"].Value; math.Abs(got/want-1) > 0.005 {
			t.Errorf("bandwidth_factor of %d bytes is %g, expected %g", bytes, got, want)
		}
	}
	for _, r := range f.Residuals {
		if r.Largest > 0.005 {
			t.Errorf("errors %+v", r)
		}
	}
}
