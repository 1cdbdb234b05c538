package flow

import (
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"slices"
	"testing"
)

// vector is a run of SimGrid.
type vector struct {
	Config struct {
		LatencyFactor   float64 `json:"latency_factor"`
		BandwidthFactor float64 `json:"bandwidth_factor"`
		WeightS         float64 `json:"weight_S"`
		Gamma           float64 `json:"tcp_gamma"`
		CrossTraffic    bool    `json:"crosstraffic"`
	}
	Links []struct {
		Name    string
		BW, Lat float64
		Sharing string
	}
	Routes []struct {
		Src, Dst string
		Links    []string
		Lat      float64
	}
	Flows []struct {
		ID       int
		Src, Dst string
		Start    float64
		Bytes    float64
		Finish   float64
	}
}

// TestVectors compares ends of flows with SimGrid.
func TestVectors(t *testing.T) {
	folder := os.Getenv("TRACEDAG_VECTORS")
	if folder == "" {
		t.Skip("TRACEDAG_VECTORS names no folder of vectors")
	}
	paths, err := filepath.Glob(filepath.Join(folder, "flow", "cases", "*.json"))
	if err != nil || len(paths) == 0 {
		t.Fatalf("no cases: %v", err)
	}
	worst := 0.0
	for _, path := range paths {
		t.Run(filepath.Base(path), func(t *testing.T) {
			text, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			var v vector
			if err := json.Unmarshal(text, &v); err != nil {
				t.Fatal(err)
			}
			finish := v.run()
			for i, f := range v.Flows {
				d := math.Abs(finish[i]/psPerSecond-f.Finish) / f.Finish
				if worst = max(worst, d); !(d <= 1e-9) {
					t.Errorf("flow %d ends at %.12g s, in SimGrid at %.12g s: %.2g", f.ID, finish[i]/psPerSecond,
						f.Finish, d)
				}
			}
		})
	}
	t.Logf("largest relative difference %.2g", worst)
}

func (v *vector) run() (finish []float64) {
	number := map[string]uint32{}
	var links []link
	latency := map[string]float64{}
	for i, l := range v.Links {
		number[l.Name] = uint32(i)
		latency[l.Name] = l.Lat
		links = append(links, link{capacity: l.BW, fat: l.Sharing == "fatpipe"})
	}
	type pair struct{ src, dst string }
	routes := map[pair][]string{}
	for _, r := range v.Routes {
		routes[pair{r.Src, r.Dst}] = r.Links
	}
	s := newFluid(links)
	order := make([]int, len(v.Flows))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int {
		switch d := v.Flows[a].Start - v.Flows[b].Start; {
		case d < 0:
			return -1
		case d > 0:
			return 1
		}
		return 0
	})
	finish = make([]float64, len(v.Flows))
	which := map[uint32]int{}
	var ended []uint32
	for len(order) > 0 || len(which) > 0 {
		start := math.Inf(1)
		if len(order) > 0 {
			start = v.Flows[order[0]].Start * psPerSecond
		}
		if next := s.next(); next <= start {
			ended = s.step(ended[:0])
			for _, f := range ended {
				finish[which[f]] = s.now
				delete(which, f)
				s.release(f)
			}
			continue
		}
		f := &v.Flows[order[0]]
		m := model{latencyFactor: v.Config.LatencyFactor, bandwidthFactor: v.Config.BandwidthFactor,
			weightS: v.Config.WeightS, gamma: int64(v.Config.Gamma), crossTraffic: v.Config.CrossTraffic,
			acks: simGridACKs}
		along := func(src, dst string) *path {
			p, seconds := &path{}, 0.0
			for _, name := range routes[pair{src, dst}] {
				p.hops = append(p.hops, hop{number[name], 1})
				seconds += latency[name]
			}
			p.latency = seconds * psPerSecond
			return p
		}
		r := &route{}
		m.fill(r, s.links, along(f.Src, f.Dst), along(f.Dst, f.Src))
		d := m.flow(uint64(f.Bytes), r)
		which[s.add(start, f.Bytes, &d)] = order[0]
		order = order[1:]
	}
	return finish
}
