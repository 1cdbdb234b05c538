package analytical

// Algorithm is the algorithm of a collective in one dimension.
type Algorithm struct {
	Name   AlgorithmName
	Window int  // Direct: maximum number of messages in flight; 0: one per peer
	One    bool // one logical ring of all NPUs, by number, across dimensions
}

// AlgorithmName is the name of an algorithm.
type AlgorithmName uint8

// Algorithms of ASTRA-sim's system layer.
const (
	RingAlgorithm AlgorithmName = iota
	Direct
	HalvingDoubling
	DoubleBinaryTree
)

// Collective is a collective supported by the system layer.
type Collective uint8

// Collectives.
const (
	AllReduce Collective = iota
	AllGather
	ReduceScatter
	AllToAll
	numCollectives
)

// Scheduling is the policy that orders the collectives of an NPU.
type Scheduling uint8

// Scheduling policies.
const (
	LIFO Scheduling = iota
	FIFO
	Explicit // by the priority of each collective
)

// InterDimension is the policy that orders the dimensions for the chunks of a collective.
type InterDimension uint8

// Inter-dimension policies. Themis: Rashidi et al., "Themis", ISCA 2022.
const (
	Ascending InterDimension = iota
	Themis
	ThemisFlex
	RoundRobin
)

// IntraDimension is the policy that orders the phases within a dimension.
type IntraDimension uint8

// Intra-dimension policies.
const (
	FIFOOrder IntraDimension = iota
	RG
	SmallestFirst
	LessRemainingPhaseFirst
)

// SharedBus is the bus between an NPU and its memory, which replaces the end-point delay. Its parameters are those of
// LogGP in nanoseconds; GPerByte is per byte.
type SharedBus struct {
	L, O, G        int64
	GPerByte       float64
	ReductionDelay int64 // per 100 bytes reduced on the bus, in addition to 50 ns and the reduction time
}

// System is the configuration of the system layer, which runs on each NPU.
type System struct {
	Scheduling      Scheduling
	LocalBWAware    bool                        // collective-optimization; false: baseline
	Implementations [numCollectives][]Algorithm // by dimension
	// Custom are collectives given as traces of sends, receives and calcs, with one rank per NPU; nil: none.
	Custom         [numCollectives]*Program
	CustomNodes    map[uint64]*Program // the same for single ops, by node number (dag.Rank.ID)
	Splits         int                 // preferred-dataset-splits: chunks per collective, at least 1
	ActiveChunks   int                 // active-chunks-per-dimension, at least 1
	Queues         int                 // queues per dimension, at least 1
	EndpointDelay  int64               // in nanoseconds, including the injection scale, at least 0
	LocalMemBW     float64             // 10^9 bytes per second; 0: reductions take no time
	PeakPerf       float64             // 10^12 floating-point operations per second
	Roofline       bool
	MemoryOverlap  bool // memory accesses overlap with communication; they share a place in ASTRA-sim
	ReplayOnly     bool
	Rendezvous     bool
	InterDimension InterDimension
	IntraDimension IntraDimension
	SharedBus      *SharedBus // nil: none
}
