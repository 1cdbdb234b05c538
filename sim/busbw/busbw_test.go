package busbw

import (
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"testing"

	"github.com/tracedag/tracedag/dag/attr"
	"github.com/tracedag/tracedag/formats"
	"github.com/tracedag/tracedag/formats/tracefile"
)

// TestVectors compares the sums of published workloads with an independent calculation.
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
			Analytical *struct {
				Options struct {
					GPS int64
					NV  float64
					NIC float64
					NPS int64
					DP  float64 `json:"dp_o"`
					EP  float64 `json:"ep_o"`
					TP  float64 `json:"tp_o"`
				}
				DP, TP, EP, Compute, Exposed, Bubble, Total float64
				DPEP                                        float64 `json:"DP_EP"`
				Undefined                                   *string
			} `json:"analytical_us"`
		}
	}
	if err := json.Unmarshal(content, &expected); err != nil {
		t.Fatal(err)
	}
	compared := 0
	for name, all := range expected.Workload {
		for _, e := range all {
			if e.Analytical == nil {
				continue
			}
			compared++
			in, err := tracefile.Open(formats.All, []string{filepath.Join(folder, "workload", name)},
				tracefile.Options{Warn: t.Logf})
			if err != nil {
				t.Fatal(err)
			}
			trace, err := in.Read()
			in.Close()
			if err != nil {
				t.Fatal(err)
			}
			w, _ := attr.ParseSimAI(trace.Attrs)
			want, o := e.Analytical, e.Analytical.Options
			m := machine{GPUs: o.GPS, NVLink: o.NV, NIC: o.NIC, NICs: o.NPS, DPOverlap: o.DP, EPOverlap: o.EP, TPOverlap: o.TP, PPOverlap: 1}
			got, err := m.report(&w)
			if err != nil {
				t.Fatal(err)
			}
			for i, pair := range [][2]float64{{got.DP, want.DP}, {got.DPEP, want.DPEP}, {got.TP, want.TP}, {got.EP, want.EP},
				{got.Compute, want.Compute}, {got.Exposed, want.Exposed}, {got.Bubble, want.Bubble}, {got.Total, want.Total}} {
				if math.Abs(pair[0]-pair[1]) > 1e-5*math.Max(1, pair[1]) {
					t.Errorf("%s %+v: figure %d: %v, want %v", name, m, i, pair[0], pair[1])
				}
			}
			if (len(got.Undefined) > 0) != (want.Undefined != nil) {
				t.Errorf("%s %+v: undefined %q", name, m, got.Undefined)
			}
		}
	}
	if compared < 6 {
		t.Errorf("%d comparisons", compared)
	}
}

// TestFormula compares single collectives with the formulas of SimAI.
func TestFormula(t *testing.T) {
	m := machine{GPUs: 8, NVLink: 360, NIC: 48.5, NICs: 8, PPOverlap: 1}
	for _, c := range []struct {
		group, coll string
		size, n     int64
		g           groups
		want        int64
		defined     bool
	}{
		{"TP", "allreduce", 1000, 8, groups{8, 1, 1}, 15_000, true}, // below 1 MiB
		{"TP", "allreduce", 1000, 3, groups{3, 1, 1}, 0, true},
		{"TP", "allreduce", 1 << 30, 8, groups{8, 1, 1}, 4_861_111, true},      // 2/360 s times 7/8
		{"TP", "allgather", 16 << 30, 4, groups{4, 1, 1}, 33_333_333, true},    // 16/360 s times 3/4
		{"DP", "reducescatter", 1 << 30, 2, groups{8, 1, 2}, 10_309_278, true}, // a NIC of each server
		{"DP_EP", "reducescatter", 1 << 30, 1, groups{8, 2, 2}, 0, true},
		{"TP", "allreduce", 1 << 30, 1, groups{1, 1, 1}, 0, false},
	} {
		p := attr.SimAIPhase{Coll: c.coll, Group: c.group}
		got, defined, err := m.time(&p, c.size, c.n, c.g)
		if err != nil || got != c.want || defined != c.defined {
			t.Errorf("%+v: %d, %v, %v", c, got, defined, err)
		}
	}
	if _, _, err := m.time(&attr.SimAIPhase{Coll: "allgather", Group: "TP"}, 16<<30+1, 8, groups{8, 1, 1}); err == nil {
		t.Error("a size beyond the tables is accepted")
	}
}

// TestRows compares the bandwidths of a row with hand calculations, and the time of messages between stages.
func TestRows(t *testing.T) {
	m := machine{GPUs: 8, NVLink: 360, NIC: 48.5, NICs: 8, PPOverlap: 0.5}
	w := attr.SimAI{GPUs: 16, TP: 8, PP: 2, EP: 1, GA: 4, VPP: 2, PPComm: 1 << 20, Rows: []attr.SimAIRow{{Name: "a",
		Forward: attr.SimAIPhase{Time: 7000, Coll: "allreduce", Group: "TP", Bytes: 1 << 30}}}}
	r, err := m.report(&w)
	if err != nil {
		t.Fatal(err)
	}
	p := r.rows[0].phases[0] // 2/360 s times 7/8
	if p.compute != 7000 || p.comm != 4_861_111 || math.Abs(p.algbw-360*8.0/14) > 1e-3 || math.Abs(p.busbw-360) > 1e-3 {
		t.Errorf("%+v", p)
	}
	if want := math.Trunc(math.Trunc(16.0/1024/0.5*1e6) * 0.5); r.PP != want || r.Total != r.Compute+r.Exposed+r.Bubble+want {
		t.Errorf("messages between stages: %v us, want %v", r.PP, want)
	}
}

func TestRefused(t *testing.T) {
	m := machine{GPUs: 8, NVLink: 360, NIC: 48.5, NICs: 8, PPOverlap: 1}
	for _, w := range []attr.SimAI{{}, {GPUs: 8, TP: 8, PP: 1}, {GPUs: 8, TP: 4, PP: 2, EP: 1}, {GPUs: 1 << 40, TP: 1, PP: 1, EP: 1}} {
		if _, err := m.report(&w); err == nil {
			t.Errorf("accepted: %+v", w)
		}
	}
}
