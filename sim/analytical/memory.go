package analytical

import (
	"fmt"
	"math"
)

// MemoryKind is the kind of memory accessed by an NPU's loads and stores.
type MemoryKind uint8

// Kinds of memory. The first four are those of ASTRA-sim's public memory backend, the others those of the ASTRA-sim 2.0
// paper (Won et al., ISPASS 2023, section IV-D).
const (
	NoExpansion      MemoryKind = iota // none
	PerNPU                             // one memory per NPU
	PerNode                            // one memory per node, which serves one access at a time
	Pool                               // one memory for all NPUs, which serves one access at a time
	HierarchicalPool                   // memory groups behind out-node and in-node switches
	Local                              // one memory per NPU, with a possibly fractional bandwidth
)

// Memory is the memory configuration.
type Memory struct {
	Kind        MemoryKind
	Latency     float64 // in nanoseconds
	Bandwidth   float64 // 10^9 bytes per second; not for HierarchicalPool
	Nodes       int     // PerNode, HierarchicalPool: number of nodes
	NPUsPerNode int     // PerNode, HierarchicalPool: NPUs per node
	// Hierarchical is set for HierarchicalPool only.
	Hierarchical *HierarchicalMemory
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

// Check returns an error if the memory is invalid for the given number of NPUs.
func (m *Memory) Check(npus int) error {
	places := m.Nodes * m.NPUsPerNode
	switch {
	case m.Kind == PerNode && places < npus:
		return fmt.Errorf("the memory has %d nodes of %d NPUs, but the network has %d NPUs: expected num-nodes times "+
			"num-npus-per-node to be at least this number", m.Nodes, m.NPUsPerNode, npus)
	case m.Kind == HierarchicalPool && places != npus:
		return fmt.Errorf("the memory has %d nodes of %d NPUs, but the network has %d NPUs: expected num-nodes times "+
			"num-npus-per-node to be this number", m.Nodes, m.NPUsPerNode, npus)
	}
	return nil
}

// accessTime returns the service time of an access of the given bytes in nanoseconds, at most math.MaxInt64. For
// HierarchicalPool it assumes that all NPUs access the same amount concurrently. It must not be called for NoExpansion.
func (m *Memory) accessTime(bytes int64) int64 {
	if m.Kind == HierarchicalPool || m.Kind == Local {
		return wholeNanoseconds(m.Latency + m.transferTime(bytes))
	}
	latency, transfer := wholeNanoseconds(m.Latency), wholeNanoseconds(m.transferTime(bytes))
	if latency > math.MaxInt64-transfer {
		return math.MaxInt64
	}
	return latency + transfer
}

// wholeNanoseconds truncates a time.
func wholeNanoseconds(ns float64) int64 {
	if ns >= math.MaxInt64 {
		return math.MaxInt64
	}
	return int64(ns)
}

// Stages returns the time of a chunk in each stage in nanoseconds: from a memory group to the out-node switches, from
// there to a node, and from its in-node switch to the NPUs.
func (m *Memory) Stages() [3]float64 {
	h := m.Hierarchical
	c, r, s := float64(h.ChunkSize), float64(h.Groups), float64(h.Switches)
	if h.InSwitch {
		return [3]float64{c / h.MemSideBW, r * c / h.GPUSideBW, r * s * c / h.InNodeBW}
	}
	nodes, npus := float64(m.Nodes), float64(m.Nodes*m.NPUsPerNode)
	return [3]float64{c / h.MemSideBW, r * c / (nodes * h.GPUSideBW), r * s * c / (npus * h.InNodeBW)}
}

// Loads returns the total bytes per link in each stage of [Memory.Stages] if every NPU accesses the given bytes.
func (m *Memory) Loads(bytes int64) [3]float64 {
	h := m.Hierarchical
	w, r, s := float64(bytes), float64(h.Groups), float64(h.Switches)
	nodes, npus := float64(m.Nodes), float64(m.Nodes*m.NPUsPerNode)
	if h.InSwitch {
		return [3]float64{w * npus / (r * s), w * npus / s, w * npus}
	}
	return [3]float64{w * npus / (r * s), npus / nodes * w / s, w}
}

// Chunks returns the number of chunks that each memory group sends through each out-node switch if every NPU accesses
// the given bytes. A remainder is a separate chunk.
func (m *Memory) Chunks(bytes int64) float64 {
	h := m.Hierarchical
	npus := float64(m.Nodes * m.NPUsPerNode)
	return math.Ceil(float64(bytes) * npus / (float64(h.Groups) * float64(h.Switches) * float64(h.ChunkSize)))
}

// transferTime returns the time of an access without latency, in nanoseconds. For HierarchicalPool the three stages
// form a pipeline; the slowest stage with a chunk determines the time of each step.
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
	return float64(bytes) / math.Trunc(m.Bandwidth) // an integer in ASTRA-sim
}
