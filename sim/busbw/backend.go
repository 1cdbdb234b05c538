package busbw

import (
	"errors"
	"fmt"
	"io"
	"math"

	"github.com/tracedag/tracedag/dag"
	"github.com/tracedag/tracedag/dag/attr"
	"github.com/tracedag/tracedag/param"
	"github.com/tracedag/tracedag/sim"
)

// Backend is the registry entry of this backend.
var Backend = sim.Kind{
	Name:  "busbw",
	Title: "sum of bus bandwidths, as SimAI; SimAI workloads only",
	New: func() sim.Backend {
		return &backend{machine: machine{GPUs: 8, NVLink: 360, NIC: 48.5, NICs: 8, PPOverlap: 1}}
	},
}

// backend is the configuration of the backend.
type backend struct{ machine machine }

func (b *backend) Traits() sim.Traits { return sim.Traits{} }

func (b *backend) Params() param.Set {
	const most = 1 << 16
	m := &b.machine
	share := func(at *float64, name, group string) param.Param {
		return param.Float(at, name, "share of the collectives of "+group+" that computation hides, 0 to 1").Check(
			func() error {
				if !(*at >= 0 && *at <= 1) {
					return param.Errorf(name, "expected 0 to 1, found %v", *at)
				}
				return nil
			}).Sweep()
	}
	rate := func(at *float64, name, of string) param.Param {
		return param.Float(at, name, "rate of "+of+" in GiB/s").Check(func() error {
			if !(*at >= 1e-3 && *at <= 1e6) {
				return param.Errorf(name, "expected 0.001 to 1000000 GiB/s, found %v", *at)
			}
			return nil
		}).Sweep()
	}
	return param.Set{
		param.Count(&m.GPUs, "server-gpus", "GPUs per server", most).Sweep(),
		param.Count(&m.NICs, "server-nics", "NICs per server", most).Sweep(),
		rate(&m.NVLink, "nvlink", "the NVLinks of a GPU"),
		rate(&m.NIC, "nic", "a NIC"),
		share(&m.DPOverlap, "dp-overlap", "weights"),
		share(&m.EPOverlap, "ep-overlap", "experts"),
		share(&m.TPOverlap, "tp-overlap", "tensor parallelism"),
		param.Float(&m.PPOverlap, "pp-overlap", "share of the messages between stages that computation hides, above "+
			"0 to 1").
			Check(func() error {
				if !(m.PPOverlap >= 1e-6 && m.PPOverlap <= 1) {
					return param.Errorf("pp-overlap", "expected 0.000001 to 1, found %v", m.PPOverlap)
				}
				return nil
			}).Sweep(),
	}
}

func (b *backend) Check(*sim.Env) error { return nil }

func (b *backend) Lowers(dag.Source) func(dag.Subkind) bool { return nil }

func (b *backend) Compile(s dag.Source, env *sim.Env) (sim.Replay, error) {
	h, err := s.Header()
	if err != nil {
		return nil, err
	}
	w, ok := attr.ParseSimAI(h.Attrs)
	if !ok {
		return nil, errors.New("the backend busbw sums over the rows of a workload text of SimAI: expected a trace " +
			"of the format simai, found another; use another --backend")
	}
	return &configured{b, env.OrEmpty(), &w, h.Ranks, h.Ops}, nil
}

// configured is a workload with the backend's configuration.
type configured struct {
	b     *backend
	env   *sim.Env
	w     *attr.SimAI
	ranks int
	ops   int64
}

func (c *configured) Clone() sim.Replay { return c }

func (c *configured) Run(o sim.RunOptions) (*sim.Result, error) {
	b := *c.b
	if err := b.Params().Override(o.Settings); err != nil {
		return nil, err
	}
	m := &b.machine
	result := &sim.Result{Backend: Backend.Name, Params: sim.Values{
		{Name: "server_gpus", Value: m.GPUs}, {Name: "server_nics", Value: m.NICs},
		{Name: "nvlink", Value: m.NVLink, Unit: "GiB/s"}, {Name: "nic", Value: m.NIC, Unit: "GiB/s"},
		{Name: "dp_overlap", Value: m.DPOverlap}, {Name: "ep_overlap", Value: m.EPOverlap},
		{Name: "tp_overlap", Value: m.TPOverlap}, {Name: "pp_overlap", Value: m.PPOverlap}}}
	r, err := m.report(c.w)
	if err != nil {
		return result, err
	}
	const perMicro = float64(dag.Microsecond)
	if r.Total*perMicro > float64(dag.MaxTime) {
		return result, fmt.Errorf("a total of %g us: expected at most %v", r.Total, dag.MaxTime)
	}
	if n := len(r.Undefined); n > 0 {
		c.env.Warn("collectives without a bandwidth take no time: %d, such as %s; SimAI's formula leaves their "+
			"groups less than a NIC or a GPU of a server", n, r.Undefined[0])
	}
	result.Complete, result.Ops = true, c.ops
	result.Makespan = sim.Clock{Ticks: uint64(math.Round(r.Total * perMicro)), Unit: 1}
	for range c.ranks {
		result.Finish = append(result.Finish, result.Makespan)
	}
	result.Add(sim.Section{Key: "busbw", Value: r, Ranks: true, Tables: r.print})
	result.Add(sim.Section{Key: "busbw_rows", Value: r.table()})
	return result, nil
}

// table returns the rows with times in microseconds and bandwidths in GiB/s, as in SimAI's report of layers.
func (r *Report) table() *sim.Table {
	t := &sim.Table{Columns: []string{"row"}}
	for _, phase := range []string{"fwd", "ig", "wg"} {
		for _, column := range []string{"compute_us", "comm_us", "exposed_us", "algbw_gib_s", "busbw_gib_s"} {
			t.Columns = append(t.Columns, phase+"_"+column)
		}
	}
	for i := range r.rows {
		t.Begin()
		t.Text(r.rows[i].name)
		for _, p := range r.rows[i].phases {
			t.Float(float64(p.compute)/1000, 3)
			t.Float(float64(p.comm)/1000, 3)
			t.Float(p.exposed, 3)
			t.Float(p.algbw, 4)
			t.Float(p.busbw, 4)
		}
	}
	return t
}

// print prints the parts of the total and their shares.
func (r *Report) print(w io.Writer) {
	fmt.Fprintln(w, "part\ttime\tshare")
	for _, part := range []struct {
		name string
		us   float64
	}{
		{"computation", r.Compute}, {"exposed DP", r.DP}, {"exposed DP_EP", r.DPEP}, {"exposed TP", r.TP},
		{"exposed EP", r.EP}, {"exposed PP", r.PP}, {"pipeline bubble", r.Bubble}, {"total", r.Total},
	} {
		if part.name == "exposed PP" && part.us == 0 {
			continue // the default
		}
		fmt.Fprintf(w, "%s\t%v\t%.1f%%\n", part.name, dag.Time(math.Round(part.us*float64(dag.Microsecond))),
			100*part.us/max(r.Total, 1e-9))
	}
}
