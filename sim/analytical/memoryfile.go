// This file reads ASTRA-sim's memory configurations. docs/reference/backends/analytical.md lists their keys.

package analytical

import (
	"math"
	"strings"
)

// memoryTypes are the values of the key memory-type.
var memoryTypes = []string{
	NoExpansion:      "NO_MEMORY_EXPANSION",
	PerNPU:           "PER_NPU_MEMORY_EXPANSION",
	PerNode:          "PER_NODE_MEMORY_EXPANSION",
	Pool:             "MEMORY_POOL",
	HierarchicalPool: "HIERARCHICAL_POOL",
	Local:            "LOCAL",
}

// String returns the kind's name in ASTRA-sim's memory files.
func (k MemoryKind) String() string {
	return memoryTypes[k]
}

// ReadMemory reads a memory configuration file; name is the file name for errors and warnings. It calls warn for keys
// without effect; nil discards warnings.
func ReadMemory(text []byte, name string, warn func(message string, args ...any)) (Memory, error) {
	f, err := openConfig(text, name, warn)
	if err != nil {
		return Memory{}, err
	}
	if !f.has("memory-type") {
		f.fail("memory-type", "one of "+strings.Join(memoryTypes, ", "))
		return Memory{}, f.err
	}
	kinds := []MemoryKind{NoExpansion, PerNPU, PerNode, Pool, HierarchicalPool, Local}
	m := Memory{Kind: choice(f, "memory-type", NoExpansion, memoryTypes, kinds)}
	if m.Kind == PerNode || m.Kind == HierarchicalPool {
		m.Nodes, m.NPUsPerNode = f.count("num-nodes"), f.count("num-npus-per-node")
	}
	switch m.Kind {
	case PerNPU, PerNode, Pool:
		// integers in ASTRA-sim: a bandwidth below 1 divides by zero
		m.Latency = float64(f.integer("remote-mem-latency", 0, 0, maxTicks))
		m.Bandwidth = float64(f.required("remote-mem-bw").integer("remote-mem-bw", 1, 1, maxTicks))
		f.missing("remote-mem-latency", "0")
	case Local:
		m.Latency = f.number("latency", 0, 0, maxTicks)
		m.Bandwidth = f.required("bandwidth").positive("bandwidth")
		f.missing("latency", "0")
	case HierarchicalPool:
		m.Latency = f.number("remote-mem-latency", 0, 0, maxTicks)
		m.Hierarchical = &HierarchicalMemory{
			Switches:  f.count("num-out-node-switches"),
			Groups:    f.count("num-remote-memory-groups"),
			ChunkSize: f.required("chunk-size").integer("chunk-size", 1, 1, maxTicks),
			GPUSideBW: f.required("gpu-side-bw").positive("gpu-side-bw"),
			InNodeBW:  f.required("in-node-bw").positive("in-node-bw"),
			InSwitch:  f.flag("in-switch"),
		}
		m.Hierarchical.MemSideBW = f.memSideBW(m.Hierarchical.Switches)
	}
	for _, key := range memoryKeys {
		f.ignore(key, " with "+m.Kind.String())
	}
	return m, f.close()
}

// memoryKeys are the keys used by some kind of memory.
var memoryKeys = []string{
	"num-nodes", "num-npus-per-node", "remote-mem-latency", "remote-mem-bw", "latency", "bandwidth",
	"num-out-node-switches", "num-remote-memory-groups", "chunk-size", "mem-side-bw", "gpu-side-bw", "in-node-bw",
	"remote-mem-group-bw",
	"in-switch",
}

// memSideBW returns the bandwidth of a link of a memory group, which has one to each switch.
func (f *configFile) memSideBW(switches int) float64 {
	switch group := "remote-mem-group-bw"; {
	case !f.has(group):
		return f.required("mem-side-bw").positive("mem-side-bw")
	case f.has("mem-side-bw"):
		f.fail(group, "either this key, of all links of a group, or mem-side-bw, of one of them")
		return 1
	default:
		return f.positive(group) / float64(switches)
	}
}

// maxTicks is the longest time in a configuration in nanoseconds: about 104 days; doubles are exact up to it.
const maxTicks = 1 << 53

// required fails if the key is missing.
func (f *configFile) required(key string) *configFile {
	if !f.has(key) {
		f.fail(key, "a number")
	}
	return f
}

// positive returns a number above 0.
func (f *configFile) positive(key string) float64 {
	v := f.number(key, 1, 0, math.MaxFloat64)
	if v == 0 {
		f.fail(key, "a number above 0")
	}
	return v
}

// count returns a count of at least one.
func (f *configFile) count(key string) int {
	return int(f.required(key).integer(key, 1, 1, maxNetworkNPUs))
}
