package analytical

// Algorithm is how a collective is carried out in one dimension.
type Algorithm struct {
	Name   AlgorithmName
	Window int  // Direct: how many messages may be on the way at the same time; 0: as many as there are peers
	One    bool // one logical ring of all NPUs, in the order of their numbers, whatever the dimensions
}

// AlgorithmName names an algorithm.
type AlgorithmName uint8

// The algorithms of ASTRA-sim's system layer.
const (
	RingAlgorithm AlgorithmName = iota
	Direct
	HalvingDoubling
	DoubleBinaryTree
)

// Collective is a collective that the system layer carries out itself.
type Collective uint8

// The collectives.
const (
	AllReduce Collective = iota
	AllGather
	ReduceScatter
	AllToAll
	numCollectives
)

// Scheduling is the order in which the collectives of an NPU go first.
type Scheduling uint8

// The scheduling policies.
const (
	LIFO Scheduling = iota
	FIFO
	Explicit // by the priority of each
)

// InterDimension is how the chunks of a collective are sent through the dimensions.
type InterDimension uint8

// The policies between dimensions. Themis is the paper's (Rashidi et al., "Themis", ISCA 2022).
const (
	Ascending InterDimension = iota
	Themis
	ThemisFlex
	RoundRobin
)

// IntraDimension is the order in which phases wait for a dimension.
type IntraDimension uint8

// The policies within a dimension.
const (
	FIFOOrder IntraDimension = iota
	RG
	SmallestFirst
	LessRemainingPhaseFirst
)

// SharedBus is the bus between an NPU and its memory that takes the place of the end-point delay, with the parameters of
// LogGP in nanoseconds (GPerByte: a byte).
type SharedBus struct {
	L, O, G        int64
	GPerByte       float64
	ReductionDelay int64 // of 100 bytes that are reduced on the bus, on top of 50 ns and the reduction time
}

// System is the configuration of the system layer: how each NPU carries out its ops.
type System struct {
	Scheduling      Scheduling
	LocalBWAware    bool                        // collective-optimization; false: baseline
	Implementations [numCollectives][]Algorithm // by dimension
	// Custom are collectives that are given as a trace of sends, receives and calcs, a rank for each NPU; nil: none.
	Custom         [numCollectives]*Program
	CustomNodes    map[uint64]*Program // likewise, of single ops, by the number of the node (dag.Rank.ID)
	Splits         int                 // preferred-dataset-splits: into how many chunks a collective is cut; 1 or more
	ActiveChunks   int                 // active-chunks-per-dimension; 1 or more
	Queues         int                 // in each dimension; 1 or more
	EndpointDelay  int64               // in nanoseconds, injection scale applied; 0 or more
	LocalMemBW     float64             // in 10^9 bytes a second; 0: reductions take no time
	PeakPerf       float64             // in 10^12 floating-point operations a second
	Roofline       bool
	ReplayOnly     bool
	Rendezvous     bool
	InterDimension InterDimension
	IntraDimension IntraDimension
	SharedBus      *SharedBus // nil: none
}
