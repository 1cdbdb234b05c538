package analytical

import (
	"fmt"
	"math"
)

// MemoryKind is where the memory is that an NPU's loads and stores go to.
type MemoryKind uint8

// The kinds of memory. The first four are those of ASTRA-sim's public memory backend, the others those of the ASTRA-sim
// 2.0 paper (Won et al., ISPASS 2023, section IV-D).
const (
	NoExpansion      MemoryKind = iota // none
	PerNPU                             // a memory for each NPU
	PerNode                            // one for the NPUs of a node, which serves one access at a time
	Pool                               // one for all NPUs, which serves one access at a time
	HierarchicalPool                   // groups of memory, reached through out-node and in-node switches
	Local                              // a memory for each NPU, with a bandwidth that need not be a whole number
)

// Memory is the configuration of memory.
type Memory struct {
	Kind        MemoryKind
	Latency     float64 // nanoseconds
	Bandwidth   float64 // 10^9 bytes a second; not of HierarchicalPool
	Nodes       int     // PerNode, HierarchicalPool: how many
	NPUsPerNode int     // likewise
	// Hierarchical has what only HierarchicalPool has.
	Hierarchical *HierarchicalMemory
}

// HierarchicalMemory is a pool of memory outside of the nodes. Chunks of a tensor come from the remote memory groups
// through out-node switches to the in-node switch of each node, and from there to its NPUs.
type HierarchicalMemory struct {
	Switches  int     // out-node switches
	Groups    int     // remote memory groups
	ChunkSize int64   // bytes
	MemSideBW float64 // of the out-node fabric on the side of the memory, in 10^9 bytes a second
	GPUSideBW float64 // likewise on the side of the nodes
	InNodeBW  float64 // of the fabric within a node, likewise
	// InSwitch has the switches carry out collectives on the way: a load is an all-gather, a store a reduce-scatter.
	InSwitch bool
}

// NoServer is what [Memory.Server] returns where accesses do not wait for each other.
const NoServer = -1

// Server returns the number of the memory that serves one access at a time, first come first served, at which those of
// the given NPU wait.
func (m *Memory) Server(npu int) int {
	switch m.Kind {
	case PerNode:
		return npu / m.NPUsPerNode
	case Pool:
		return 0
	}
	return NoServer
}

// Check returns an error if the memory is none for so many NPUs.
func (m *Memory) Check(npus int) error {
	places := m.Nodes * m.NPUsPerNode
	switch {
	case m.Kind == PerNode && places < npus:
		return fmt.Errorf("the memory is for %d nodes of %d NPUs, and the network has %d: num-nodes times "+
			"num-npus-per-node must be at least that", m.Nodes, m.NPUsPerNode, npus)
	case m.Kind == HierarchicalPool && places != npus:
		return fmt.Errorf("the memory is for %d nodes of %d NPUs, and the network has %d: num-nodes times "+
			"num-npus-per-node must be that", m.Nodes, m.NPUsPerNode, npus)
	}
	return nil
}

// AccessTime returns how long an access of so many bytes takes once it is served, in nanoseconds, at most
// math.MaxInt64. With HierarchicalPool that is under the assumption that all NPUs access as much at the same time. Not
// for NoExpansion.
func (m *Memory) AccessTime(bytes int64) int64 {
	if m.Kind == HierarchicalPool || m.Kind == Local {
		return wholeNanoseconds(m.Latency + m.transferTime(bytes))
	}
	latency, transfer := wholeNanoseconds(m.Latency), wholeNanoseconds(m.transferTime(bytes))
	if latency > math.MaxInt64-transfer {
		return math.MaxInt64
	}
	return latency + transfer
}

// wholeNanoseconds drops the fraction of a time.
func wholeNanoseconds(ns float64) int64 {
	if ns >= math.MaxInt64 {
		return math.MaxInt64
	}
	return int64(ns)
}

// Stages returns how long a chunk takes on each of its ways, in nanoseconds: from a memory group to the out-node
// switches, from there to a node, and from its in-node switch to the NPUs.
func (m *Memory) Stages() [3]float64 {
	h := m.Hierarchical
	c, r, s := float64(h.ChunkSize), float64(h.Groups), float64(h.Switches)
	if h.InSwitch {
		return [3]float64{c / h.MemSideBW, r * c / h.GPUSideBW, r * s * c / h.InNodeBW}
	}
	nodes, npus := float64(m.Nodes), float64(m.Nodes*m.NPUsPerNode)
	return [3]float64{c / h.MemSideBW, r * c / (nodes * h.GPUSideBW), r * s * c / (npus * h.InNodeBW)}
}

// Loads returns how many bytes each link carries in all on the three ways of [Memory.Stages] when every NPU accesses so
// many bytes.
func (m *Memory) Loads(bytes int64) [3]float64 {
	h := m.Hierarchical
	w, r, s := float64(bytes), float64(h.Groups), float64(h.Switches)
	nodes, npus := float64(m.Nodes), float64(m.Nodes*m.NPUsPerNode)
	if h.InSwitch {
		return [3]float64{w * npus / (r * s), w * npus / s, w * npus}
	}
	return [3]float64{w * npus / (r * s), npus / nodes * w / s, w}
}

// Chunks returns how many chunks each memory group sends through each out-node switch when every NPU accesses so many
// bytes; what is left over is a chunk of its own.
func (m *Memory) Chunks(bytes int64) float64 {
	h := m.Hierarchical
	npus := float64(m.Nodes * m.NPUsPerNode)
	return math.Ceil(float64(bytes) * npus / (float64(h.Groups) * float64(h.Switches) * float64(h.ChunkSize)))
}

// transferTime returns how long an access takes without the latency, in nanoseconds. With HierarchicalPool the chunks go
// through the three ways in a pipeline, each of whose steps lasts as long as the slowest way that has a chunk then.
func (m *Memory) transferTime(bytes int64) float64 {
	switch m.Kind {
	case Local:
		return float64(bytes) / m.Bandwidth
	case HierarchicalPool:
		t, n := m.Stages(), m.Chunks(bytes)
		switch {
		case n < 1:
			return 0
		case n == 1:
			return t[0] + t[1] + t[2]
		}
		return t[0] + max(t[0], t[1]) + (n-2)*max(t[0], t[1], t[2]) + max(t[1], t[2]) + t[2]
	}
	return float64(bytes) / math.Trunc(m.Bandwidth) // a whole number in ASTRA-sim
}
