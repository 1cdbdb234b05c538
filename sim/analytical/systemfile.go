// This file reads ASTRA-sim's system configurations. docs/reference/backends/analytical.md lists their keys.

package analytical

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

// SystemFile is the content of a system configuration file.
type SystemFile struct {
	System
	// CustomTraces are the traces for System.Custom: file name prefixes, one file per NPU; "": none.
	CustomTraces [numCollectives]string
	// CustomNodesFile is a file for [ReadCustomNodes], which lists the traces for System.CustomNodes; "": none.
	CustomNodesFile string
	// LocalMemTrace is the file name prefix of [LocalMem] traces; "": none.
	LocalMemTrace string

	ownDelay bool // the file has an end-point delay
}

// ScaleInjection multiplies the end-point delay, if the file has one, by x and truncates it, like ASTRA-sim's flag
// --injection-scale.
func (s *SystemFile) ScaleInjection(x float64) error {
	if !s.ownDelay {
		return nil
	}
	scaled := float64(s.EndpointDelay) * x
	if !(scaled >= 0 && scaled <= maxCount) {
		return fmt.Errorf("expected an end-point delay from 0 to %d ns, found %d times %v", maxCount,
			s.EndpointDelay, x)
	}
	s.EndpointDelay = int64(scaled)
	return nil
}

// collectiveKeys are the names of collectives in keys.
var collectiveKeys = [numCollectives]string{
	AllReduce: "all-reduce", AllGather: "all-gather", ReduceScatter: "reduce-scatter", AllToAll: "all-to-all",
}

// String returns the collective's name in ASTRA-sim's system files.
func (c Collective) String() string {
	return collectiveKeys[c]
}

// maxCount limits counts, which are 32-bit numbers in ASTRA-sim.
const maxCount = math.MaxInt32

// Limits of counts that use memory at every NPU.
const (
	MaxSplits = 1 << 20 // limit of System.Splits
	MaxQueues = 1 << 10 // limit of System.Queues
)

const defaultEndpointDelay = 10

// ReadSystem reads a system configuration file; name is the file name for errors and warnings. It calls warn for keys
// without effect; nil discards warnings. Queues, injection scale and rendezvous are flags of ASTRA-sim, not keys of the
// file: the result has one queue.
func ReadSystem(text []byte, name string, warn func(message string, args ...any)) (*SystemFile, error) {
	f, err := openConfig(text, name, warn)
	if err != nil {
		return nil, err
	}
	s := &SystemFile{System: System{Queues: 1}, ownDelay: f.has("endpoint-delay")}
	s.Scheduling = choice(f, "scheduling-policy", LIFO, []string{"LIFO", "FIFO", "EXPLICIT"},
		[]Scheduling{LIFO, FIFO, Explicit})
	s.LocalBWAware = choice(f, "collective-optimization", false, []string{"baseline", "localBWAware"},
		[]bool{false, true})
	f.missing("collective-optimization", "baseline: an all-reduce passes each dimension with all of its bytes")
	f.missing("preferred-dataset-splits", "1")
	s.Splits = int(f.integer("preferred-dataset-splits", 1, 1, MaxSplits))
	s.ActiveChunks = int(f.integer("active-chunks-per-dimension", 1, 1, maxCount))
	s.EndpointDelay = f.integer("endpoint-delay", defaultEndpointDelay, 0, maxCount)
	s.LocalMemBW = f.number("local-mem-bw", 0, 0, math.MaxFloat64)
	f.readImplementations(s)
	f.readCompute(s)
	if s.reduces() {
		f.missing("local-mem-bw", "0: reductions take no time")
	}
	s.MemoryOverlap = f.flag("memory-overlap")
	f.readSharedBus(s)
	f.readPolicies(s)
	if f.flag("track-local-mem") {
		s.LocalMemTrace = f.text("local-mem-trace-filename", "local_mem_trace")
		if s.LocalMemTrace == "" {
			f.fail("local-mem-trace-filename", "a file name prefix")
		}
	}
	f.ignore("local-mem-trace-filename", " without track-local-mem")
	for _, key := range []string{"boost-mode", "trace-enabled"} {
		if f.flag(key) {
			f.warn("%s: not supported, no effect", f.at(key))
		}
	}
	return s, f.close()
}

// readImplementations reads the algorithms of collectives.
func (f *configFile) readImplementations(s *SystemFile) {
	for c := range numCollectives {
		key := collectiveKeys[c] + "-implementation"
		names := f.texts(key)
		for k, name := range names {
			a, err := parseAlgorithm(name)
			if err != nil && f.err == nil {
				f.err = fmt.Errorf("%s: %w", f.at(key), err)
			}
			s.Implementations[c] = append(s.Implementations[c], a)
			if a.One && k < len(names)-1 {
				f.warn("%s: entries after %s, which includes all NPUs, have no effect", f.at(key), name)
				break
			}
		}
		key += "-custom"
		if custom := f.texts(key); len(custom) == 1 {
			s.CustomTraces[c] = custom[0]
		} else if len(custom) > 1 {
			f.fail(key, "a list with one trace for all dimensions")
		}
	}
	s.CustomNodesFile = f.text("per-node-custom-implementation", "")
}

// reduces reports whether some collective reduces data.
func (s *SystemFile) reduces() bool {
	return !s.ReplayOnly && (len(s.Implementations[AllReduce]) > 0 || len(s.Implementations[ReduceScatter]) > 0)
}

// readCompute reads the compute parameters.
func (f *configFile) readCompute(s *SystemFile) {
	s.ReplayOnly, s.Roofline = f.flag("replay-only"), f.flag("roofline-enabled")
	if !s.Roofline {
		f.ignore("peak-perf", " without roofline-enabled")
		return
	}
	s.PeakPerf = f.number("peak-perf", 0, 0, math.MaxFloat64)
	for _, key := range []string{"peak-perf", "local-mem-bw"} {
		if !f.has(key) || f.number(key, 0, 0, math.MaxFloat64) == 0 {
			f.fail(key, "a number above 0, as roofline-enabled needs it")
		}
	}
	if s.ReplayOnly {
		f.warn("%s: has no effect with replay-only", f.at("roofline-enabled"))
	}
}

// readSharedBus reads the memory bus. Like ASTRA-sim, it keeps parameters in single precision, and truncates all except
// G.
func (f *configFile) readSharedBus(s *SystemFile) {
	keys := []string{"L", "o", "g", "G", "local-reduction-delay"}
	if f.numberAs("model-shared-bus", "0 or 1", 0, -maxCount, maxCount) != 1 {
		for _, key := range keys {
			f.ignore(key, " without model-shared-bus")
		}
		return
	}
	whole := func(key string) int64 {
		return int64(float32(f.number(key, 0, 0, maxCount)))
	}
	s.SharedBus = &SharedBus{
		L: whole("L"), O: whole("o"), G: whole("g"), GPerByte: float64(float32(f.number("G", 0, 0, maxCount))),
		ReductionDelay: f.integer("local-reduction-delay", 1, 0, maxCount),
	}
}

// readPolicies reads keys used only by the first version of ASTRA-sim.
func (f *configFile) readPolicies(s *SystemFile) {
	s.InterDimension = choice(f, "inter-dimension-scheduling", Ascending,
		[]string{"baseline", "ascending", "themis", "offlineGreedy", "themisFlex", "offlineGreedyFlex", "roundRobin"},
		[]InterDimension{Ascending, Ascending, Themis, Themis, ThemisFlex, ThemisFlex, RoundRobin})
	s.IntraDimension = choice(f, "intra-dimension-scheduling", FIFOOrder,
		[]string{"FIFO", "RG", "smallestFirst", "SCF", "lessRemainingPhaseFirst"},
		[]IntraDimension{FIFOOrder, RG, SmallestFirst, SmallestFirst, LessRemainingPhaseFirst})
}

// algorithmNames are the names of algorithms in values.
var algorithmNames = [...]string{
	RingAlgorithm: "ring", Direct: "direct", HalvingDoubling: "halvingDoubling", DoubleBinaryTree: "doubleBinaryTree",
}

// String returns the algorithm in the syntax of parseAlgorithm.
func (a Algorithm) String() string {
	name := algorithmNames[a.Name]
	if a.One {
		name = "one" + strings.ToUpper(name[:1]) + name[1:]
	}
	if a.Name == Direct && a.Window > 0 {
		name += strconv.Itoa(a.Window)
	}
	return name
}

// parseAlgorithm parses the name of an algorithm in ASTRA-sim's system files: ring, direct, direct3, halvingDoubling,
// doubleBinaryTree, oneRing, oneDirect, oneDirect3 or oneHalvingDoubling.
func parseAlgorithm(text string) (Algorithm, error) {
	name := strings.TrimRight(text, "0123456789")
	window := text[len(name):]
	for k := range algorithmNames {
		for _, one := range []bool{false, true} {
			a := Algorithm{Name: AlgorithmName(k), One: one}
			if name != a.String() || one && a.Name == DoubleBinaryTree {
				continue
			}
			if window == "" {
				return a, nil
			}
			if n, err := strconv.Atoi(window); a.Name == Direct && err == nil && n > 0 && n <= maxCount {
				a.Window = n
				return a, nil
			}
		}
	}
	return Algorithm{}, fmt.Errorf("expected ring, direct, direct followed by its window from 1, "+
		"halvingDoubling, doubleBinaryTree, oneRing, oneDirect or oneHalvingDoubling, found %q", shorten(text))
}

// ReadCustomNodes reads a YAML mapping from op numbers to the file name prefixes of their traces.
func ReadCustomNodes(text []byte, name string) (map[uint64]string, error) {
	f, err := openYAML(text, name, nil)
	if err != nil {
		return nil, err
	}
	nodes := make(map[uint64]string, len(f.members))
	for _, m := range f.members {
		id, err := strconv.ParseUint(m.key, 10, 64)
		if err != nil {
			return nil, fmt.Errorf("%s:%d: expected an op number, found %s", name, m.line, shorten(m.key))
		}
		if m.isList {
			return nil, fmt.Errorf("%s:%d: %d: expected the file prefix of a trace, found a list", name, m.line, id)
		}
		nodes[id] = m.list[0].Text
	}
	return nodes, nil
}
