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

// NPUStats are statistics per NPU in nanoseconds. The time of a class of ops is the length of the union of their
// intervals from issue to end.
type NPUStats struct {
	Cycles    []uint64 `json:"cycles"`          // finish of the NPU
	Exposed   []uint64 `json:"exposed"`         // Cycles minus all accelerator calcs, modulo 2^64
	WallTime  []uint64 `json:"wall_time"`       // end of the last op
	CommTime  []uint64 `json:"comm_time"`       // sends, receives and collectives
	GPUTime   []uint64 `json:"gpu_time"`        // calcs of the accelerator
	CPUTime   []uint64 `json:"cpu_time"`        // calcs of the host
	RemoteMem []uint64 `json:"remote_mem_time"` // loads and stores
	// Overlap is GPUTime + CommTime - WallTime, modulo 2^64, if both are present, and 0 otherwise.
	Overlap []uint64 `json:"total_compute_communication_overlap"`

	// Means over the time of all calcs in the roofline model: share of compute-bound calcs, utilization of peak
	// performance and of memory bandwidth, all in percent, and flops per byte. They have three decimals, as printed by
	// ASTRA-sim.
	ComputeBound  []Decimal `json:"compute_bound_percentage,omitempty"`
	ComputeUse    []Decimal `json:"average_compute_utilization,omitempty"`
	MemoryUse     []Decimal `json:"average_memory_utilization,omitempty"`
	MeanIntensity []Decimal `json:"average_operation_intensity,omitempty"`

	PeakMemory  []int64  `json:"peak_memory_usage,omitempty"` // LocalMem.Peak
	ExposedComm []uint64 `json:"exposed_comm_time"`           // Breakdown.ExposedComm
	// loads and stores without concurrent calcs or communication
	ExposedMemory []uint64 `json:"exposed_mem_time"`
	Idle          []uint64 `json:"idle_time"` // idle time

	Breakdown Breakdown `json:"breakdown"`

	Wrapped []string `json:"-"` // names of lists with values below 0, which are given modulo 2^64
}

// statUnits are the units of NPUStats in results.
var statUnits = map[string]string{
	"": "ns", "compute_bound_percentage": "%", "average_compute_utilization": "%", "average_memory_utilization": "%",
	"average_operation_intensity": "FLOP/B", "peak_memory_usage": "B",
}

// Decimal is a number printed with at most three decimals.
type Decimal float64

// MarshalJSON returns the number with at most three decimals, without trailing zeros.
func (d Decimal) MarshalJSON() ([]byte, error) {
	rounded, err := strconv.ParseFloat(strconv.FormatFloat(float64(d), 'f', 3, 64), 64)
	if err != nil || math.IsInf(rounded, 0) || math.IsNaN(rounded) {
		return []byte("null"), nil
	}
	return json.Marshal(rounded)
}

// Breakdown divides the time of each NPU until its finish into five parts, in nanoseconds, as the ASTRA-sim 2.0 paper
// does (section V-B): an op is exposed when no op of an earlier part runs. The parts of an NPU that finished add up to
// NPUStats.Cycles.
type Breakdown struct {
	Compute        []uint64 `json:"compute"`               // a calc runs
	ExposedComm    []uint64 `json:"exposed_communication"` // sends, receives, collectives, accesses that gather
	ExposedRemote  []uint64 `json:"exposed_remote_memory"` // other accesses to remote memory
	ExposedLocal   []uint64 `json:"exposed_local_memory"`  // accesses to local memory
	Idle           []uint64 `json:"idle"`
	Mean           Mean     `json:"mean"`
	ExposedGathers []uint64 `json:"exposed_pool_gather"` // part of ExposedComm: only accesses that gather
	// ComputeMemoryBound is the part of Compute with a calc that the memory bandwidth limits in the roofline model.
	ComputeMemoryBound []uint64 `json:"compute_memory_bound"`
}

// Mean is the mean over all NPUs of the parts of a [Breakdown], rounded to whole nanoseconds.
type Mean struct {
	Compute       uint64 `json:"compute"`
	ExposedComm   uint64 `json:"exposed_communication"`
	ExposedRemote uint64 `json:"exposed_remote_memory"`
	ExposedLocal  uint64 `json:"exposed_local_memory"`
	Idle          uint64 `json:"idle"`
}

// part is a part of a breakdown in order of precedence. Parts of gathers count as communication.
type part uint8

const (
	partCompute part = iota
	partComm
	partGather
	partRemote
	partLocal
	partIdle
	parts
)

// part returns the part of the breakdown that an op belongs to while no op of an earlier part runs.
func (e *engine) part(o *op) part {
	switch o.class() {
	case classGPU, classCPU:
		return partCompute
	case classComm:
		return partComm
	case classMemory:
		switch {
		case o.peer > 1:
			return partGather
		case o.local || e.o.Memory.Kind == Local:
			return partLocal
		}
		return partRemote
	}
	return partIdle
}

// class is a class of ops in the statistics.
type class uint8

const (
	classGPU class = iota
	classCPU
	classComm
	classMemory
	classes
	classNone = classes
)

func (o *op) class() class {
	switch o.kind {
	case opCompute:
		if o.lane == laneHost {
			return classCPU
		}
		return classGPU
	case opMemory:
		return classMemory
	case opMarker:
		return classNone
	}
	return classComm
}

// npuStats are the counters of an NPU.
type npuStats struct {
	finished  bool
	cycles    uint64 // finish of the NPU
	last      uint64 // end of the last op
	computing uint64 // sum of the durations of accelerator calcs
	issued    int

	active [classes]int32
	had    [classes]bool
	since  [classes]uint64 // issue of the first active op of the class
	total  [classes]uint64

	running     [parts]int32 // ops by part of the breakdown
	spent       [parts]uint64
	changed     uint64 // last change of running
	memoryBound uint64 // time with a calc that the memory bandwidth limits
	boundUntil  uint64 // end of such calcs so far

	calcs                            uint64  // time of all calcs from issue to end
	bound                            uint64  // time of compute-bound calcs
	computeUse, memoryUse, intensity float64 // sums weighted by duration
}

// pass accounts for the time since the last change.
func (s *npuStats) pass(now uint64) {
	d := now - s.changed
	s.changed = now
	if d == 0 {
		return
	}
	for k := range partIdle {
		if s.running[k] > 0 {
			s.spent[k] += d
			return
		}
	}
	s.spent[partIdle] += d
}

// boundByMemory counts a calc of duration t that starts now and that the memory bandwidth limits. Calcs may overlap.
func (s *npuStats) boundByMemory(now, t uint64) {
	if end := now + t; end > s.boundUntil {
		s.memoryBound += end - max(now, s.boundUntil)
		s.boundUntil = end
	}
}

func (s *npuStats) begin(o *op, p part, now uint64) {
	s.issued++
	k := o.class()
	if k == classNone {
		return
	}
	s.pass(now)
	s.running[p]++
	if s.active[k] == 0 {
		s.since[k] = now
	}
	s.active[k]++
	s.had[k] = true
}

func (s *npuStats) end(o *op, p part, now uint64) {
	s.last = now
	k := o.class()
	if k == classNone {
		return
	}
	s.pass(now)
	s.running[p]--
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

// result computes the result from the counters.
func (e *engine) result() *Result {
	n := len(e.npus)
	r := &Result{Result: &sim.Result{
		Backend: "analytical", Model: "unaware", Ops: e.p.ops, Events: e.events, Messages: e.messages,
		Finish: make([]sim.Clock, n), Makespan: sim.Clock{Unit: dag.Nanosecond},
	}}
	if e.o.Network.Aware {
		r.Model = "aware"
	}
	r.SetBytes(e.bytesHigh, e.bytesLow)
	s := &r.NPUs
	b := &s.Breakdown
	exposed, overlapped := false, false // values below 0
	for _, times := range []*[]uint64{
		&s.Cycles, &s.Exposed, &s.WallTime, &s.CommTime, &s.GPUTime, &s.CPUTime, &s.RemoteMem, &s.Overlap,
		&s.ExposedComm, &s.ExposedMemory, &s.Idle, &b.Compute, &b.ExposedComm, &b.ExposedRemote, &b.ExposedLocal,
		&b.Idle, &b.ExposedGathers, &b.ComputeMemoryBound,
	} {
		*times = make([]uint64, 0, n)
	}
	issued := int64(0)
	for i := range e.npus {
		c := &e.npus[i].stats
		issued += int64(c.issued)
		cycles := c.last
		if c.finished {
			cycles = c.cycles
			c.pass(cycles)
		}
		r.Finish[i] = sim.Clock{Ticks: cycles, Unit: dag.Nanosecond}
		r.Makespan.Ticks = max(r.Makespan.Ticks, cycles)
		s.Cycles = append(s.Cycles, cycles)
		s.Exposed = append(s.Exposed, cycles-c.computing)
		exposed = exposed || cycles < c.computing
		s.WallTime = append(s.WallTime, c.last)
		s.CommTime = append(s.CommTime, c.total[classComm])
		s.GPUTime = append(s.GPUTime, c.total[classGPU])
		s.CPUTime = append(s.CPUTime, c.total[classCPU])
		s.RemoteMem = append(s.RemoteMem, c.total[classMemory])
		overlap := uint64(0)
		if c.had[classGPU] && c.had[classComm] {
			overlap = c.total[classGPU] + c.total[classComm] - c.last
			overlapped = overlapped || c.total[classGPU]+c.total[classComm] < c.last
		}
		s.Overlap = append(s.Overlap, overlap)
		s.ExposedComm = append(s.ExposedComm, c.spent[partComm]+c.spent[partGather])
		s.ExposedMemory = append(s.ExposedMemory, c.spent[partRemote]+c.spent[partLocal])
		s.Idle = append(s.Idle, c.spent[partIdle])
		b.Compute = append(b.Compute, c.spent[partCompute])
		b.ExposedComm = append(b.ExposedComm, c.spent[partComm]+c.spent[partGather])
		b.ExposedRemote = append(b.ExposedRemote, c.spent[partRemote])
		b.ExposedLocal = append(b.ExposedLocal, c.spent[partLocal])
		b.Idle = append(b.Idle, c.spent[partIdle])
		b.ExposedGathers = append(b.ExposedGathers, c.spent[partGather])
		b.ComputeMemoryBound = append(b.ComputeMemoryBound, c.memoryBound)
		if e.system.Roofline {
			time := float64(c.calcs + 1) // as in ASTRA-sim, which thereby avoids a division by 0
			s.ComputeBound = append(s.ComputeBound, Decimal(100*(float64(c.bound)/time)))
			s.ComputeUse = append(s.ComputeUse, Decimal(100*(c.computeUse/time)))
			s.MemoryUse = append(s.MemoryUse, Decimal(100*(c.memoryUse/time)))
			s.MeanIntensity = append(s.MeanIntensity, Decimal(c.intensity/time))
		}
	}
	b.Mean = Mean{mean(b.Compute), mean(b.ExposedComm), mean(b.ExposedRemote), mean(b.ExposedLocal), mean(b.Idle)}
	if exposed {
		s.Wrapped = append(s.Wrapped, "exposed")
	}
	if overlapped {
		s.Wrapped = append(s.Wrapped, "total_compute_communication_overlap")
	}
	r.NeverRun, r.Unended = r.Ops-issued, issued-e.progress.Ops
	e.explain(r.Result)
	return r
}
