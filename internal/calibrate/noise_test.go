package calibrate

import (
	"context"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/tracedag/tracedag/sim/fit"
	"github.com/tracedag/tracedag/sim/flow"
)

// TestNoise adds 2 % of noise to the tables of machines, and checks that 95 % intervals contain the true values, which
// are options of SimGrid.
func TestNoise(t *testing.T) {
	folder := os.Getenv("TRACEDAG_VECTORS")
	if folder == "" {
		t.Skip("set TRACEDAG_VECTORS to the folder of third-party sample files")
	}
	if testing.Short() {
		t.Skip("computes long on one thread")
	}
	folder = filepath.Join(folder, "smpi")
	seeds := uint64(8)
	if os.Getenv("TRACEDAG_LONG") != "" {
		seeds = 20
	}
	for _, machine := range []struct{ platform, ranks string }{{"star1g", "16"}, {"fattree100g", "16"},
		{"dragonfly25g", "32"}} {
		t.Run(machine.platform, func(t *testing.T) {
			platform := filepath.Join(folder, machine.platform+".xml")
			truth := readTruth(t, filepath.Join(folder, machine.platform+".options"))
			route, _, err := flow.Routes(context.Background(), platform, true)
			if err != nil {
				t.Fatal(err)
			}
			name := filepath.Join(folder, "micro-"+machine.platform+"-"+machine.ranks+".csv")
			data, err := os.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			inside, all := 0, 0
			for seed := range seeds {
				table, err := fit.Read(name, data)
				if err != nil {
					t.Fatal(err)
				}
				random := rand.New(rand.NewPCG(seed, 9))
				for i := range table.Rows {
					table.Rows[i].Seconds *= 1 + 0.02*random.NormFloat64()
				}
				f, err := fit.Flow([]*fit.Table{table}, fit.FlowOptions{
					Options: fit.Options{Seed: seed, Draws: 200}, Models: flow.Factors(), Envelope: flow.DefaultEnvelope,
					Route: roundTrips(route)})
				if err != nil {
					t.Fatal(err)
				}
				check := func(what string, p fit.Parameter, v float64) {
					all++
					if p.Low <= v*(1+1e-9) && v <= p.High*(1+1e-9) {
						inside++
						return
					}
					t.Logf("seed %d, model %s: %s is %.5g in %.5g..%.5g, expected %.5g", seed, f.Model, what, p.Value,
						p.Low, p.High, v)
				}
				for _, name := range []string{"async_small", "detached"} {
					check(name, f.Parameters[name], truth.thresholds[name])
				}
				for _, bytes := range []int64{16, 600, 6000, 30000, 1 << 20} {
					s := segmentOf(f, bytes)
					at := strconv.FormatInt(bytes, 10) + " bytes: "
					w := bytes + flow.DefaultEnvelope
					check(at+"latency_factor", s.Parameters["latency_factor"], truth.at("lat-factor", w)[0])
					check(at+"bandwidth_factor", s.Parameters["bandwidth_factor"], truth.at("bw-factor", w)[0])
					for _, name := range []string{"os", "or", "ois"} {
						if bytes < 4096 { // where the tables have enough sizes
							check(at+name, s.Parameters[name], truth.at(name, bytes)[0])
						}
					}
				}
			}
			t.Logf("%d of %d intervals contain the truth", inside, all)
			if inside < all*92/100 {
				t.Errorf("%d of %d intervals contain the truth", inside, all)
			}
		})
	}
}

// truth are the options of a machine.
type truth struct {
	tables     map[string][][3]float64 // first size, values
	thresholds map[string]float64
}

// at returns the values of a table that hold for a size.
func (t *truth) at(name string, bytes int64) (values [2]float64) {
	for i, e := range t.tables[name] {
		if i == 0 || float64(bytes) > e[0] {
			values = [2]float64{e[1], e[2]}
		}
	}
	return values
}

func readTruth(t *testing.T, file string) *truth {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	known := &truth{map[string][][3]float64{}, map[string]float64{"async_small": 0, "detached": 65536}}
	for _, m := range flow.Factors() {
		if m.Model == "smpi" {
			for i, from := range m.From {
				known.tables["lat-factor"] = append(known.tables["lat-factor"], [3]float64{float64(from), m.Latency[i]})
				known.tables["bw-factor"] = append(known.tables["bw-factor"], [3]float64{float64(from), m.Bandwidth[i]})
			}
		}
	}
	for line := range strings.Lines(string(text)) {
		name, value, _ := strings.Cut(strings.TrimPrefix(strings.TrimSpace(line), "smpi/"), ":")
		switch name {
		case "async-small-thresh", "send-is-detached-thresh":
			v, err := strconv.ParseFloat(value, 64)
			if err != nil {
				t.Fatal(line, err)
			}
			known.thresholds[map[string]string{"async-small-thresh": "async_small",
				"send-is-detached-thresh": "detached"}[name]] = v
		case "os", "or", "ois", "lat-factor", "bw-factor":
			known.tables[name] = nil
			for entry := range strings.SplitSeq(value, ";") {
				var e [3]float64
				for i, cell := range strings.Split(entry, ":") {
					if e[i], err = strconv.ParseFloat(cell, 64); err != nil {
						t.Fatal(line, err)
					}
				}
				known.tables[name] = append(known.tables[name], e)
			}
		}
	}
	return known
}

// segmentOf returns the segment of a parameter file for a size.
func segmentOf(f *fit.File, bytes int64) fit.FileSegment {
	s := f.Segments[0]
	for _, next := range f.Segments {
		if next.From <= bytes {
			s = next
		}
	}
	return s
}
