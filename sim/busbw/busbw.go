// Package busbw is a backend that computes the time of a workload of SimAI as its analytical mode does: by the bus
// bandwidth of each collective, without a simulation.
//
// docs/reference/backends/busbw.md has the formulas.
package busbw

import (
	"fmt"
	"math"

	"github.com/tracedag/tracedag/dag"
	"github.com/tracedag/tracedag/dag/attr"
)

// machine is the network of the GPUs.
type machine struct {
	GPUs   int64   // per server
	NVLink float64 // GiB/s of a GPU
	NIC    float64 // GiB/s of a NIC
	NICs   int64   // per server

	DPOverlap, EPOverlap, TPOverlap float64 // shares of collectives that computation hides, 0 to 1
	PPOverlap                       float64 // share of messages between stages that is hidden, above 0 to 1
}

// check returns an error if the sizes of groups are not those of a text.
func check(w *attr.SimAI) error {
	const most = 1 << 20
	for _, size := range [...]int64{w.GPUs, w.TP, w.PP, w.EP} {
		if size < 1 || size > most {
			return fmt.Errorf("a size of %d in the attribute simai of the trace: expected 1 to %d", size, most)
		}
	}
	return nil
}

// Report is SimAI's report, in microseconds.
type Report struct {
	Compute   float64  `json:"compute_us"`
	DP        float64  `json:"dp_us"` // exposed times of collectives by group
	DPEP      float64  `json:"dp_ep_us"`
	TP        float64  `json:"tp_us"`
	EP        float64  `json:"ep_us"`
	PP        float64  `json:"pp_us"` // messages between stages
	Exposed   float64  `json:"exposed_us"`
	Bubble    float64  `json:"bubble_us"`
	Total     float64  `json:"total_us"`
	Undefined []string `json:"undefined,omitempty"` // collectives without a bandwidth, which take no time

	rows []rowReport
}

// rowReport is the part of a row of the text.
type rowReport struct {
	name   string
	phases [3]phaseReport // forward, gradients of the input, gradients of the weights
}

// phaseReport is a computation and its collective. Times are in ns.
type phaseReport struct {
	compute, comm int64
	exposed       float64 // in us
	algbw, busbw  float64 // GiB/s; 0 without a collective
}

// bandwidths sets the bandwidths of a collective of a size among n ranks: size per time, and that times the share of
// the data that a link carries.
func (p *phaseReport) bandwidths(kind string, size, n int64) {
	if p.comm <= 0 {
		return
	}
	const gib = 1 << 30
	p.algbw = float64(size) / float64(p.comm) * 1e9 / gib
	p.busbw = p.algbw * float64(n-1) / float64(n)
	if kind == "allreduce" {
		p.busbw *= 2
	}
}

// groups are the sizes of groups of ranks.
type groups struct {
	tp, ep, dp int64
}

// bandwidth is the bandwidth of a group of nodes with GPUs and NICs each.
func (m *machine) bandwidth(kind string, nodes, gpus, nics int64) (rate float64, nvLimits bool) {
	switch nic := float64(nics) * m.NIC; {
	case nodes*gpus == 1 || nics < 1:
		return 0, false
	case nodes == 1:
		return m.NVLink, false // SimAI then uses the efficiencies of NICs
	case kind == alltoall:
		return nic / float64(gpus) * float64(nodes*gpus-1) / float64((nodes-1)*gpus), false
	case gpus == 1:
		return nic, false
	default:
		nv := m.NVLink
		if nic > nv {
			nv *= float64(gpus) / float64(gpus-1)
		}
		return min(nv, nic), nv < nic
	}
}

const alltoall = "alltoall"

// small are the times of collectives below 1 MiB in ns, by number of ranks.
var small = map[int64]int64{2: 10e3, 4: 12e3, 8: 15e3, 16: 66e3, 32: 135e3, 64: 200e3, 128: 320e3}

// time returns the time of a collective among n ranks in ns, and whether it has a bandwidth.
func (m *machine) time(p *attr.SimAIPhase, size, n int64, g groups) (ns int64, defined bool, err error) {
	const unmeasured = 1 << 20
	if size > 1 && size < unmeasured {
		return small[n], true, nil
	}
	var b float64
	var nv bool
	perGPU := func(block int64) { // a group with a member in each block of GPUs
		if block <= m.GPUs {
			b, nv = m.bandwidth(p.Coll, n, m.GPUs/block, m.NICs/block)
		} else {
			b, nv = m.bandwidth(p.Coll, n, 1, m.NICs/m.GPUs)
		}
	}
	efficiencies, col := (*table)(nil), 0
	switch {
	case p.Group == "TP":
		nodes := max(g.tp/m.GPUs, 1)
		if g.tp <= m.GPUs {
			b, nv = m.bandwidth(p.Coll, 1, g.tp, m.NICs)
		} else {
			b, nv = m.bandwidth(p.Coll, nodes, m.GPUs, m.NICs)
		}
		col = column(nodes)
		switch {
		case p.Coll == alltoall:
			efficiencies = &allToAll
		case p.Coll == "allreduce":
		case nv:
			efficiencies = &nvLimited
		default:
			efficiencies = &nicLimited
		}
	case n <= 1:
		return 0, true, nil
	case p.Group == "EP":
		nodes := max(g.tp*n/m.GPUs, 1)
		switch {
		case g.tp*n <= m.GPUs:
			b, _ = m.bandwidth(p.Coll, 1, m.GPUs/g.tp, m.NICs)
		case g.tp > m.GPUs:
			b, _ = m.bandwidth(p.Coll, nodes, 1, m.NICs/m.GPUs)
		default:
			b, _ = m.bandwidth(p.Coll, nodes, m.GPUs/g.tp, m.NICs/g.tp)
		}
		if p.Coll == alltoall {
			efficiencies, col = &allToAll, column(nodes)
			if g.tp*n > m.GPUs && g.tp >= m.GPUs {
				col = experts
			}
		}
	case p.Group == "DP":
		perGPU(g.tp)
	default:
		perGPU(g.tp * g.ep)
	}
	share := 1.0
	if efficiencies != nil {
		if share, err = efficiencies.efficiency(size, col); err != nil {
			return 0, false, err
		}
	}
	if b <= 0 || n <= 1 {
		return 0, false, nil
	}
	const gib = 1 << 30
	t := float64(size) / gib / (float64(float32(share)) * float64(float32(b))) * 1e9
	if p.Coll == "allreduce" {
		t *= 2
	}
	t = t * float64(n-1) / float64(n)
	if t > float64(dag.MaxTime/dag.Nanosecond) {
		return 0, false, fmt.Errorf("a collective of %d bytes takes more than %v", size, dag.MaxTime)
	}
	return int64(t), true, nil
}

// report computes SimAI's sum over the rows.
func (m *machine) report(w *attr.SimAI) (*Report, error) {
	if err := check(w); err != nil {
		return nil, err
	}
	g := groups{tp: w.TP, ep: w.EP, dp: w.GPUs / (w.TP * w.PP)}
	r := &Report{}
	var bubble float64
	for i := range w.Rows {
		row := &w.Rows[i]
		phases := [...]*attr.SimAIPhase{&row.Forward, &row.Input, &row.Weight}
		var times [len(phases)]int64
		r.rows = append(r.rows, rowReport{name: row.Name})
		out := &r.rows[len(r.rows)-1]
		for k, p := range phases {
			out.phases[k].compute = p.Time
			if p.Coll == "" {
				continue
			}
			size, n := p.Bytes, g.tp // SimAI takes the group TP for DP_EP
			switch {
			case k == 2 && p.Group == "DP_EP":
				n = g.dp / g.ep
			case k == 2: // and DP for EP
				n = g.dp
			case p.Group == "EP":
				n = g.ep
			}
			if k == 0 && size > 0 {
				size = max(size, 4096)
			}
			ns, defined, err := m.time(p, size, n, g)
			if err != nil {
				return nil, fmt.Errorf("row %d (%s): %w", i+1, row.Name, err)
			}
			if !defined {
				r.Undefined = append(r.Undefined, fmt.Sprintf("row %d (%s): %s of group %s", i+1, row.Name, p.Coll,
					p.Group))
			}
			times[k], out.phases[k].comm = ns, ns
			out.phases[k].bandwidths(p.Coll, size, n)
		}
		compute := float64(row.Forward.Time+row.Input.Time+row.Weight.Time) / 1000
		if row.Name != "embedding_layer" {
			bubble += compute + float64(times[0]+times[1])/1000
		}
		overlap, of := m.TPOverlap, &r.TP
		if row.Forward.Group == "EP" {
			overlap, of = m.EPOverlap, &r.EP
		}
		exposed := func(ns int64, overlap float64) float64 { return math.Trunc(float64(ns)*(1-overlap)) / 1000 }
		for k, share := range [...]float64{overlap, overlap, m.DPOverlap} {
			out.phases[k].exposed = exposed(times[k], share)
		}
		blocking := out.phases[0].exposed + out.phases[1].exposed
		weights := out.phases[2].exposed
		*of += blocking
		if row.Weight.Group == "DP_EP" {
			r.DPEP += weights
		} else {
			r.DP += weights
		}
		r.Compute += compute
		r.Exposed += blocking + weights
	}
	if w.PP > 1 {
		if w.GA < 1 || w.VPP < 1 {
			return nil, fmt.Errorf("%d pipeline stages: expected the micro batches (ga) and layers (vpp) of the text, "+
				"found %d and %d", w.PP, w.GA, w.VPP)
		}
		r.Bubble = bubble * float64(w.PP-1) / float64(w.GA) / float64(w.VPP)
	}
	// SimAI divides by the share where a bandwidth should be.
	const gib, perUs = 1 << 30, 1e6
	r.PP = math.Trunc(2 * float64(w.VPP) * float64(w.GA) * float64(w.PPComm) / gib / m.PPOverlap * perUs)
	r.PP = math.Trunc(r.PP * (1 - m.PPOverlap))
	r.Total = r.Compute + r.Exposed + r.Bubble + r.PP
	return r, nil
}
