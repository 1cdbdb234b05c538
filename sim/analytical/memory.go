package analytical

import (
	"fmt"
	"math"
)

// MemoryKind is the kind of memory accessed by an NPU's loads and stores.
type MemoryKind uint8

// Kinds of memory. The first four are those of ASTRA-sim's public memory backend, the next two those of the ASTRA-sim
// 2.0 paper (Won et al., ISPASS 2023, section IV-D). The paper names the others without equations (figure 5).
const (
	NoExpansion          MemoryKind = iota // none
	PerNPU                                 // one memory per NPU
	PerNode                                // one memory per node, which serves one access at a time
	Pool                                   // one memory for all NPUs, which serves one access at a time
	HierarchicalPool                       // memory groups behind out-node and in-node switches
	Local                                  // one memory per NPU, with a possibly fractional bandwidth
	MultiLevelSwitchPool                   // memory groups behind a tree of switches
	RingPool                               // NPUs and memory groups on a ring
	MeshPool                               // NPUs and memory groups on a mesh
)

// Memory is the memory configuration.
type Memory struct {
	Kind        MemoryKind
	Latency     float64 // in nanoseconds
	Bandwidth   float64 // 10^9 bytes per second; not for pools other than Pool
	Nodes       int     // PerNode, HierarchicalPool: number of nodes
	NPUsPerNode int     // PerNode, HierarchicalPool: NPUs per node

	Hierarchical *HierarchicalMemory // HierarchicalPool only
	MultiLevel   *MultiLevelMemory   // MultiLevelSwitchPool only
	Direct       *DirectMemory       // RingPool and MeshPool only

	npus int // of the network, from Check
}

// HierarchicalMemory is a memory pool outside the nodes. Chunks of a tensor pass from the remote memory groups through
// out-node switches to the in-node switch of each node, and from there to its NPUs.
type HierarchicalMemory struct {
	Switches  int     // number of out-node switches
	Groups    int     // number of remote memory groups
	ChunkSize int64   // in bytes
	MemSideBW float64 // out-node fabric on the memory side, 10^9 bytes per second
	GPUSideBW float64 // out-node fabric on the node side, 10^9 bytes per second
	InNodeBW  float64 // in-node fabric, 10^9 bytes per second
	// InSwitch makes the switches run collectives in transit: a load is an all-gather, a store a reduce-scatter.
	InSwitch bool
}

// MultiLevelMemory is a memory pool above the root of a tree of switches.
type MultiLevelMemory struct {
	Radix     []int     // by level, from the NPUs up: links of a switch toward the NPUs
	Bandwidth []float64 // of the link of an NPU, of a switch of each level upward, 10^9 bytes per second
	ChunkSize int64     // in bytes
	InSwitch  bool      // as HierarchicalMemory.InSwitch
}

// noServer is the result of Memory.server if accesses do not wait for each other.
const noServer = -1

// server returns the number of the memory that serves the NPU's accesses one at a time in order of arrival, or
// noServer.
func (m *Memory) server(npu int) int {
	switch m.Kind {
	case PerNode:
		return npu / m.NPUsPerNode
	case Pool:
		return 0
	}
	return noServer
}

// Check returns an error if the memory is invalid for the given number of NPUs. Otherwise it prepares the memory for
// that number, which accesses require.
func (m *Memory) Check(npus int) error {
	if m.npus == npus {
		return nil
	}
	places := m.Nodes * m.NPUsPerNode
	switch {
	case m.Kind == PerNode && places < npus:
		return fmt.Errorf("the memory has %d nodes of %d NPUs, but the network has %d NPUs: expected num-nodes times "+
			"num-npus-per-node to be at least this number", m.Nodes, m.NPUsPerNode, npus)
	case m.Kind == HierarchicalPool && places != npus:
		return fmt.Errorf("the memory has %d nodes of %d NPUs, but the network has %d NPUs: expected num-nodes times "+
			"num-npus-per-node to be this number", m.Nodes, m.NPUsPerNode, npus)
	case m.Kind == MultiLevelSwitchPool && m.MultiLevel.below(len(m.MultiLevel.Radix)) != float64(npus):
		return fmt.Errorf("the memory has switches of radix %v, but the network has %d NPUs: expected the product of "+
			"radix to be this number", m.MultiLevel.Radix, npus)
	case m.Direct != nil:
		if err := m.Direct.route(npus); err != nil {
			return err
		}
	}
	m.npus = npus
	return nil
}

// gathers returns an error unless the memory can gather the parts of the given number of ranks in a load, and reduce
// them in a store; 1: a plain access, 0: as the memory does by default.
func (m *Memory) gathers(ranks int32) error {
	switch {
	case int(ranks) > m.npus:
		return fmt.Errorf("gathers the parts of %d ranks, but the network has %d NPUs", ranks, m.npus)
	case ranks > 1 && !m.inSwitch():
		return fmt.Errorf("gathers the parts of %d ranks in the memory's switches: this needs a memory with "+
			"\"in-switch\": 1, such as HIERARCHICAL_POOL, found %v; or generate the trace with --pool-gather network",
			ranks, m.Kind)
	}
	return nil
}

// inSwitch reports whether switches run collectives in transit.
func (m *Memory) inSwitch() bool {
	return m.Hierarchical != nil && m.Hierarchical.InSwitch || m.MultiLevel != nil && m.MultiLevel.InSwitch
}

// gathered returns the number of ranks whose parts an access gathers, which an op may leave open with 0.
func (m *Memory) gathered(ranks int32) float64 {
	if ranks > 0 {
		return float64(ranks)
	}
	if m.inSwitch() {
		return float64(m.npus)
	}
	return 1
}

// accessTime returns the service time of an access of the given bytes in nanoseconds, at most math.MaxInt64. For pools
// other than Pool it assumes that all NPUs access the same amount concurrently. ranks is the number of ranks whose
// parts the access gathers; see [Memory.gathers]. It must not be called for NoExpansion.
func (m *Memory) accessTime(bytes int64, ranks int32) int64 {
	switch m.Kind {
	case PerNPU, PerNode, Pool:
		latency, transfer := wholeNanoseconds(m.Latency), wholeNanoseconds(m.transferTime(bytes, ranks))
		if latency > math.MaxInt64-transfer {
			return math.MaxInt64
		}
		return latency + transfer
	}
	return wholeNanoseconds(m.Latency + m.transferTime(bytes, ranks))
}

// wholeNanoseconds truncates a time.
func wholeNanoseconds(ns float64) int64 {
	if !(ns < math.MaxInt64) {
		return math.MaxInt64
	}
	return int64(ns)
}

// stage is a stage of the pipeline of chunks between memory and NPUs.
type stage struct {
	load float64 // bytes per link of an access, per byte that an NPU accesses
	time float64 // of a chunk in nanoseconds
}

// stage returns stage k, counted from the memory, of an access that gathers the parts of g ranks. NPUs with consecutive
// numbers gather the same parts.
func (h *HierarchicalMemory) stage(k int, m *Memory, g float64) stage {
	c, r, s := float64(h.ChunkSize), float64(h.Groups), float64(h.Switches)
	nodes, npus := float64(m.Nodes), float64(m.Nodes*m.NPUsPerNode)
	switch k {
	case 0:
		return stage{npus / (r * s), c / h.MemSideBW}
	case 1:
		switch parts := copies(float64(m.NPUsPerNode), g); g {
		case npus: // the paper's equations, to the last bit
			return stage{g / s, r * c / h.GPUSideBW}
		case 1:
			return stage{npus / nodes / s, r * c / (nodes * h.GPUSideBW)}
		default:
			return stage{g * parts / s, r * c * g * parts / (npus * h.GPUSideBW)}
		}
	}
	if g == npus {
		return stage{g, r * s * c / h.InNodeBW}
	}
	return stage{g, r * s * c * g / (npus * h.InNodeBW)}
}

// copies returns the number of groups of g NPUs with parts of their own among n NPUs: the gathered data passes the link
// to these NPUs once per group.
func copies(n, g float64) float64 {
	return math.Ceil(n / g)
}

// below returns the number of NPUs below a link upward from a switch of the given level; level 0 is an NPU.
func (l *MultiLevelMemory) below(level int) float64 {
	n := 1.0
	for _, radix := range l.Radix[:level] {
		n *= float64(radix)
	}
	return n
}

// stage returns stage k, counted from the memory, of an access that gathers the parts of g ranks.
func (l *MultiLevelMemory) stage(k int, g float64) stage {
	level := len(l.Radix) - k
	load := l.below(level)
	if k > 0 { // the memory holds every part once
		load = g * copies(load, g)
	}
	return stage{load, float64(l.ChunkSize) * load / l.Bandwidth[level]}
}

// stages returns the number of stages, 0 for memories that are no pipeline of switches.
func (m *Memory) stages() int {
	switch m.Kind {
	case HierarchicalPool:
		return 3
	case MultiLevelSwitchPool:
		return len(m.MultiLevel.Radix) + 1
	}
	return 0
}

func (m *Memory) stage(k int, g float64) stage {
	if m.Kind == HierarchicalPool {
		return m.Hierarchical.stage(k, m, g)
	}
	return m.MultiLevel.stage(k, g)
}

// Stages returns the time of a chunk in each stage of the switches of a HierarchicalPool or MultiLevelSwitchPool, in
// nanoseconds, from the memory to the NPUs. The access gathers the parts of the given number of ranks, as in
// [Memory.Loads].
func (m *Memory) Stages(ranks int32) (times []float64) {
	for k := range m.stages() {
		times = append(times, m.stage(k, m.gathered(ranks)).time)
	}
	return times
}

// Loads returns the total bytes per link in each stage of [Memory.Stages] if every NPU accesses the given bytes: its
// own part of the data of the given number of ranks, which the switches gather. 0 ranks: all with in-switch
// collectives, otherwise 1.
func (m *Memory) Loads(bytes int64, ranks int32) (loads []float64) {
	for k := range m.stages() {
		loads = append(loads, float64(bytes)*m.stage(k, m.gathered(ranks)).load)
	}
	return loads
}

// Chunks returns the number of chunks of an access in each stage of [Memory.Stages]: of a HierarchicalPool, the chunks
// that each memory group sends through each out-node switch if every NPU accesses the given bytes. A remainder is a
// separate chunk.
func (m *Memory) Chunks(bytes int64) float64 {
	if m.Kind == MultiLevelSwitchPool {
		return math.Ceil(float64(bytes) / float64(m.MultiLevel.ChunkSize))
	}
	h := m.Hierarchical
	npus := float64(m.Nodes * m.NPUsPerNode)
	return math.Ceil(float64(bytes) * npus / (float64(h.Groups) * float64(h.Switches) * float64(h.ChunkSize)))
}

// transferTime returns the time of an access without latency, in nanoseconds.
func (m *Memory) transferTime(bytes int64, ranks int32) float64 {
	g := m.gathered(ranks)
	switch m.Kind {
	case Local:
		return float64(bytes) / m.Bandwidth
	case HierarchicalPool, MultiLevelSwitchPool:
		return m.pipelineTime(m.Chunks(bytes), g)
	case RingPool, MeshPool:
		return m.Direct.transferTime(bytes)
	}
	return float64(bytes) / math.Trunc(m.Bandwidth) // an integer in ASTRA-sim
}

// pipelineTime returns the time of n chunks in the pipeline of the stages. The slowest stage with a chunk determines
// the time of each step of a HierarchicalPool, as in the paper; in other pools each stage takes the chunks as they
// arrive.
func (m *Memory) pipelineTime(n, g float64) float64 {
	if n < 1 {
		return 0
	}
	if m.Kind == HierarchicalPool && n > 1 {
		t0, t1, t2 := m.stage(0, g).time, m.stage(1, g).time, m.stage(2, g).time
		return t0 + max(t0, t1) + (n-2)*max(t0, t1, t2) + max(t1, t2) + t2
	}
	sum, slowest := 0.0, 0.0
	for k := range m.stages() {
		t := m.stage(k, g).time
		sum, slowest = sum+t, max(slowest, t)
	}
	return sum + (n-1)*slowest
}
