package analytical

// MemoryKind is where an NPU's remote memory is.
type MemoryKind uint8

// The kinds of remote memory. All but HierarchicalPool are those of ASTRA-sim's public memory backend.
const (
	NoExpansion MemoryKind = iota
	PerNPU
	PerNode
	Pool
	HierarchicalPool // the pool of the ASTRA-sim 2.0 paper, reached through in-node and out-node switches
)

// Memory is the configuration of remote memory.
type Memory struct {
	Kind         MemoryKind
	Latency      float64 // nanoseconds
	Bandwidth    float64 // 10^9 bytes a second
	Nodes        int     // PerNode, HierarchicalPool: how many
	NPUsPerNode  int     // likewise
	Hierarchical *HierarchicalMemory
}

// HierarchicalMemory is what only HierarchicalPool has.
type HierarchicalMemory struct{}
