// This file reads ASTRA-sim's memory configurations. docs/reference/backends/analytical.md lists their keys.

package analytical

import (
	"fmt"
	"math"
	"strings"
)

// memoryTypes are the values of the key memory-type.
var memoryTypes = []string{
	NoExpansion:          "NO_MEMORY_EXPANSION",
	PerNPU:               "PER_NPU_MEMORY_EXPANSION",
	PerNode:              "PER_NODE_MEMORY_EXPANSION",
	Pool:                 "MEMORY_POOL",
	HierarchicalPool:     "HIERARCHICAL_POOL",
	Local:                "LOCAL",
	MultiLevelSwitchPool: "MULTILEVEL_SWITCH_POOL",
	RingPool:             "RING_POOL",
	MeshPool:             "MESH_POOL",
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
	kinds := []MemoryKind{NoExpansion, PerNPU, PerNode, Pool, HierarchicalPool, Local, MultiLevelSwitchPool, RingPool,
		MeshPool}
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
	case MultiLevelSwitchPool:
		m.Latency = f.number("remote-mem-latency", 0, 0, maxTicks)
		m.MultiLevel = f.readMultiLevel()
	case RingPool, MeshPool:
		m.Latency = f.number("remote-mem-latency", 0, 0, maxTicks)
		m.Direct = f.readDirect(m.Kind)
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
	"remote-mem-group-bw", "in-switch", "levels", "radix", "bw", "order", "link-bw", "hop-latency", "mesh-columns",
	"mesh-rows", "memory-columns",
}

// maxLevels limits the levels of switches. More than this many levels of two or more links have too many NPUs.
const maxLevels = 32

// readMultiLevel reads a tree of switches.
func (f *configFile) readMultiLevel() *MultiLevelMemory {
	l := &MultiLevelMemory{
		ChunkSize: f.required("chunk-size").integer("chunk-size", 1, 1, maxTicks), InSwitch: f.flag("in-switch"),
	}
	levels := int(f.required("levels").integer("levels", 1, 1, maxLevels))
	npus := 1
	for _, radix := range f.numbers("radix", levels, 1, maxNetworkNPUs) {
		if radix != math.Trunc(radix) || int(radix) > maxNetworkNPUs/npus {
			f.fail("radix", fmt.Sprintf("integers with a product of at most %d", maxNetworkNPUs))
			break
		}
		npus *= int(radix)
		l.Radix = append(l.Radix, int(radix))
	}
	l.Bandwidth = f.numbers("bw", levels+1, math.SmallestNonzeroFloat64, math.MaxFloat64)
	return l
}

// numbers returns a list of the given number of numbers in a range.
func (f *configFile) numbers(key string, count int, least, most float64) (list []float64) {
	expected := fmt.Sprintf("a list of %d numbers", count)
	if least > 0 {
		expected += " above 0"
	}
	if !f.required(key).decode(key, expected, &list) {
		return nil
	}
	if len(list) != count {
		f.fail(key, expected)
	}
	for _, v := range list {
		if v < least || v > most {
			f.fail(key, expected)
		}
	}
	return list
}

// readDirect reads a ring or a mesh.
func (f *configFile) readDirect(kind MemoryKind) *DirectMemory {
	d := &DirectMemory{
		ChunkSize: f.required("chunk-size").integer("chunk-size", 1, 1, maxTicks),
		Bandwidth: f.required("link-bw").positive("link-bw"), HopLatency: f.number("hop-latency", 0, 0, maxTicks),
	}
	if kind == RingPool {
		d.Groups = f.count("num-remote-memory-groups")
		choice(f, "order", true, []string{"alternate"}, []bool{true})
		return d
	}
	d.Columns, d.Rows = f.count("mesh-columns"), f.count("mesh-rows")
	d.Everywhere = choice(f.required("memory-columns"), "memory-columns", false, []string{"both", "every"},
		[]bool{false, true})
	return d
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
