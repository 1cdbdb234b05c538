package calibrate

import (
	"context"
	"math"
	"os"
	"path/filepath"
	"testing"

	"github.com/tracedag/tracedag/sim/fit"
	"github.com/tracedag/tracedag/sim/flow"
)

// TestOverheads compares os and or of a machine with its options, between and beyond the few sizes of its calls: each
// of sizes on the line of smaller calls, and their sum above, which ping-pongs have.
func TestOverheads(t *testing.T) {
	folder := os.Getenv("TRACEDAG_VECTORS")
	if folder == "" {
		t.Skip("set TRACEDAG_VECTORS to the folder of third-party sample files")
	}
	folder = filepath.Join(folder, "smpi")
	truth := readTruth(t, filepath.Join(folder, "star1g.options"))
	route, _, err := flow.Routes(context.Background(), filepath.Join(folder, "star1g.xml"), true)
	if err != nil {
		t.Fatal(err)
	}
	name := filepath.Join(folder, "micro-star1g-16.csv")
	data, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	table, err := fit.Read(name, data)
	if err != nil {
		t.Fatal(err)
	}
	f, err := fit.Flow([]*fit.Table{table}, fit.FlowOptions{Options: fit.Options{Draws: 10}, Models: flow.Factors(),
		Envelope: flow.DefaultEnvelope, Route: roundTrips(route)})
	if err != nil {
		t.Fatal(err)
	}
	for _, bytes := range []int64{2000, 5000, 8192, 9000, 12288, 40000, 65000} {
		s := segmentOf(f, bytes)
		sum, expected := 0.0, 0.0
		for _, name := range []string{"os", "or"} {
			got := s.Parameters[name].Value + s.Parameters[name+"_per_byte"].Value*float64(bytes)
			v := truth.at(name, bytes)
			want := v[0] + v[1]*float64(bytes)
			sum, expected = sum+got, expected+want
			if bytes <= 8192 && math.Abs(got/want-1) > 0.01 {
				t.Errorf("%s of %d bytes is %.4g s, expected %.4g s", name, bytes, got, want)
			}
			if p := s.Parameters[name+"_per_byte"]; p.Low > v[1]*1.01 || p.High < v[1]*0.99 {
				t.Errorf("%s_per_byte of %d bytes is in %.4g..%.4g, expected %.4g", name, bytes, p.Low, p.High, v[1])
			}
		}
		if math.Abs(sum/expected-1) > 0.01 {
			t.Errorf("os + or of %d bytes is %.4g s, expected %.4g s", bytes, sum, expected)
		}
	}
}
