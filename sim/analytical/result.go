package analytical

import (
	"encoding/json"
	"math"
	"strconv"

	"github.com/tracedag/tracedag/dag"
	"github.com/tracedag/tracedag/sim"
)

// Result is the outcome of a run.
type Result struct {
	*sim.Result
	NPUs     NPUStats   `json:"npu_stats"`
	LocalMem []LocalMem `json:"-"` // by NPU; nil without Options.Tensors
}

// NPUStats are statistics per NPU, in nanoseconds. The time of a class of ops is the length of the union of their
// intervals from issue to end.
type NPUStats struct {
	Cycles    []uint64 `json:"cycles"`          // finish of the NPU
	Exposed   []uint64 `json:"exposed"`         // Cycles less all calcs of the accelerator, modulo 2^64
	WallTime  []uint64 `json:"wall_time"`       // end of the last op
	CommTime  []uint64 `json:"comm_time"`       // sends, receives and collectives
	GPUTime   []uint64 `json:"gpu_time"`        // calcs of the accelerator
	CPUTime   []uint64 `json:"cpu_time"`        // calcs of the host
	RemoteMem []uint64 `json:"remote_mem_time"` // loads and stores
	// GPUTime plus CommTime less WallTime, modulo 2^64, if both are present; else 0.
	Overlap []uint64 `json:"total_compute_communication_overlap"`

	// Means over the time of all calcs in the roofline model: the share of compute-bound calcs, the utilization of peak
	// performance and of memory bandwidth, all in percent, and the operations per byte. They have three decimals, as
	// printed by ASTRA-sim.
	ComputeBound  []Decimal `json:"compute_bound_percentage,omitempty"`
	ComputeUse    []Decimal `json:"average_compute_utilization,omitempty"`
	MemoryUse     []Decimal `json:"average_memory_utilization,omitempty"`
	MeanIntensity []Decimal `json:"average_operation_intensity,omitempty"`

	PeakMemory  []int64  `json:"peak_memory_usage,omitempty"` // LocalMem.Peak
	ExposedComm []uint64 `json:"exposed_comm_time"`           // communication without concurrent calcs
	// loads and stores without concurrent calcs or communication
	ExposedMemory []uint64 `json:"exposed_mem_time"`
	Idle          []uint64 `json:"idle_time"` // idle time
}

// Decimal is a number printed with three decimals.
type Decimal float64

// MarshalJSON returns the number with three decimals, without trailing zeros.
func (d Decimal) MarshalJSON() ([]byte, error) {
	rounded, err := strconv.ParseFloat(strconv.FormatFloat(float64(d), 'f', 3, 64), 64)
	if err != nil || math.IsInf(rounded, 0) || math.IsNaN(rounded) {
		return []byte("null"), nil
	}
	return json.Marshal(rounded)
}

// sort is a class of ops in the statistics.
type sort uint8

const (
	sortGPU sort = iota
	sortCPU
	sortComm
	sortMemory
	sorts
	sortNone = sorts
)

func (o *op) sort() sort {
	switch o.kind {
	case opCompute:
		if o.lane == laneHost {
			return sortCPU
		}
		return sortGPU
	case opMemory:
		return sortMemory
	case opMarker:
		return sortNone
	}
	return sortComm
}

// npuStats are the counters of an NPU.
type npuStats struct {
	finished  bool
	cycles    uint64 // finish of the NPU
	last      uint64 // end of the last op
	computing uint64 // calcs of the accelerator, sum of durations
	issued    int

	active [sorts]int32
	had    [sorts]bool
	since  [sorts]uint64 // issue of the first active op of the class
	total  [sorts]uint64

	changed                          uint64 // last change of activity
	exposedComm, exposedMemory, idle uint64

	calcs                            uint64  // of all calcs, from issue to end
	bound                            uint64  // of compute-bound calcs
	computeUse, memoryUse, intensity float64 // sums weighted by duration
}

// pass accounts for the time since the last change.
func (s *npuStats) pass(now uint64) {
	d := now - s.changed
	s.changed = now
	switch {
	case d == 0, s.active[sortGPU]+s.active[sortCPU] > 0:
	case s.active[sortComm] > 0:
		s.exposedComm += d
	case s.active[sortMemory] > 0:
		s.exposedMemory += d
	default:
		s.idle += d
	}
}

func (s *npuStats) begin(o *op, now uint64) {
	s.issued++
	k := o.sort()
	if k == sortNone {
		return
	}
	s.pass(now)
	if s.active[k] == 0 {
		s.since[k] = now
	}
	s.active[k]++
	s.had[k] = true
}

func (s *npuStats) end(o *op, now uint64) {
	s.last = now
	k := o.sort()
	if k == sortNone {
		return
	}
	s.pass(now)
	if s.active[k]--; s.active[k] == 0 {
		s.total[k] += now - s.since[k]
	}
}

// roofline counts a calc of the roofline model with the given duration in nanoseconds.
func (s *npuStats) roofline(p *point, t uint64) {
	if !p.memoryBound {
		s.bound += t
	}
	s.computeUse += p.computeUse * float64(t)
	s.memoryUse += p.memoryUse * float64(t)
	s.intensity += p.intensity * float64(t)
}

// result makes the result from the counters.
func (e *engine) result() *Result {
	n := len(e.npus)
	r := &Result{Result: &sim.Result{
		Backend: "analytical", Model: "unaware", Ops: e.p.ops, Events: e.events, Messages: e.messages, Bytes: e.bytes,
		Finish: make([]sim.Clock, n), Makespan: sim.Clock{Unit: dag.Nanosecond},
	}}
	if e.o.Network.Aware {
		r.Model = "aware"
	}
	s := &r.NPUs
	issued := int64(0)
	for i := range e.npus {
		c := &e.npus[i].stats
		issued += int64(c.issued)
		cycles := c.last
		if c.finished {
			cycles = c.cycles
		}
		r.Finish[i] = sim.Clock{Ticks: cycles, Unit: dag.Nanosecond}
		r.Makespan.Ticks = max(r.Makespan.Ticks, cycles)
		s.Cycles = append(s.Cycles, cycles)
		s.Exposed = append(s.Exposed, cycles-c.computing)
		s.WallTime = append(s.WallTime, c.last)
		s.CommTime = append(s.CommTime, c.total[sortComm])
		s.GPUTime = append(s.GPUTime, c.total[sortGPU])
		s.CPUTime = append(s.CPUTime, c.total[sortCPU])
		s.RemoteMem = append(s.RemoteMem, c.total[sortMemory])
		overlap := uint64(0)
		if c.had[sortGPU] && c.had[sortComm] {
			overlap = c.total[sortGPU] + c.total[sortComm] - c.last
		}
		s.Overlap = append(s.Overlap, overlap)
		s.ExposedComm = append(s.ExposedComm, c.exposedComm)
		s.ExposedMemory = append(s.ExposedMemory, c.exposedMemory)
		s.Idle = append(s.Idle, c.idle)
		if e.system.Roofline {
			time := float64(c.calcs + 1) // as in ASTRA-sim, which thus avoids a division by 0
			s.ComputeBound = append(s.ComputeBound, Decimal(100*(float64(c.bound)/time)))
			s.ComputeUse = append(s.ComputeUse, Decimal(100*(c.computeUse/time)))
			s.MemoryUse = append(s.MemoryUse, Decimal(100*(c.memoryUse/time)))
			s.MeanIntensity = append(s.MeanIntensity, Decimal(c.intensity/time))
		}
	}
	r.NeverRun, r.Unended = r.Ops-issued, issued-e.progress.Ops
	e.explain(r.Result)
	return r
}
