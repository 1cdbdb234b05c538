// This file defines the data of an export: its processes, communicators, NCCL calls and kernels.

package nsys

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/tracedag/tracedag/internal/par"
)

// report is the NCCL data of one export. Times are nanoseconds since its session began.
type report struct {
	name    string   // name of the file, for messages
	host    string   // "": unknown
	version string   // version of the exporting program; "": unknown
	epoch   int64    // start of the session since 1970; 0: unknown
	session [2]int64 // start and end of the session; unknownTime: unknown

	procs    []process
	procOf   map[uint64]int32 // by the process's key in the file
	streams  []gpuStream
	streamOf map[gpuStream]int32

	kernels       []kernel
	launches      []launch // host calls that launched NCCL kernels, by thread and time
	graphNodes    []graphNode
	graphOrigin   map[nodeKey]int64        // by node of an instantiated graph: its node in the original graph
	graphLaunches map[correlationKey]int64 // times at which the host launched graphs
	graphRuns     int64                    // number of runs of graphs whose nodes were not traced
	syncs         []syncRow                // by time
	syncCalls     map[correlationKey]int32
	annotated     bool    // there are annotations of an NCCL patched for ATLAHS
	linked        bool    // some kernel was found by its launch
	made          []int32 // processes that created communicators, in that order
	mixedGroups   int64   // groups whose annotations do not assign work to kernels
	incomplete    []incompleteCall
	cut           int64 // calls at the end without a kernel

	events  []event
	members []member
	attrs   texts

	watch     par.Watch              // for loops over rows
	stepNames []string               // names of steps in annotations
	steps     map[uint64][]stepRange // by process, by time

	lenient  bool
	problems []problem
	place    func() string // current position, for messages
}

// process is a process that has created a communicator or has NCCL kernels.
type process struct {
	key    uint64
	pid    int64
	comms  []localComm
	commOf map[uint64]int32 // by hash or address: the latest one with that name
	inits  int              // number of communicators created, counting each rank
	window window
	gpus   []procGPU
}

// window is the profiled part of a process.
type window struct {
	start, stop int64
	marks       [2]int32 // number of marks of each kind
}

// contains reports whether a time is in the window.
func (w *window) contains(t int64) bool {
	return w.start <= t && t <= w.stop
}

// localComm is a process's part of a communicator: one rank, or one rank per device.
type localComm struct {
	id     uint64
	nranks int32
	ranks  []localRank // in annotation order
}

// localRank is a rank of a communicator in a process.
type localRank struct {
	rank   int32
	rings  []neighbours // by channel
	trees  []neighbours
	device int32 // from its annotation; -1: unknown
	gpu    int32 // number in the process
}

// neighbours are the neighbours of a rank in a ring or tree.
type neighbours struct {
	present bool
	prev    int32    // ring
	next    int32    // ring; tree: the parent
	down    [3]int32 // tree
}

// procGPU is a device of a process.
type procGPU struct {
	device int32
	number int32 // of the GPU in the trace
}

// gpuStream identifies a stream of a GPU in a report.
type gpuStream struct {
	proc            int32
	device, context int32
	stream          int64
}

// kernel is one execution of an NCCL kernel.
type kernel struct {
	start, end  int64
	correlation int64
	graphNode   int64 // 0: launched by itself
	stream      int32 // an index of streams
	kind        kernelKind
	used        bool
}

// launch is a call that launched an NCCL kernel, or a graph with NCCL kernels.
type launch struct {
	thread uint64
	start  int64
	kernel int32
}

// graphNode is the creation of a node of a CUDA graph.
type graphNode struct {
	thread uint64
	start  int64
	node   int64
}

// nodeKey identifies a node of a graph.
type nodeKey struct {
	proc uint64
	node int64
}

// event is the work of one NCCL kernel, or of the kernels of a group of calls.
type event struct {
	start, end       int64 // of the kernels; start is unknown until they are found
	host             int64 // launch of the kernel; determines the order of events
	call, done       int64 // start and end of the call of NCCL
	at               int64 // planning by NCCL, which decides whether the event is in the window
	first            int32 // members
	count            int32
	proc             int32
	stream           int32 // an index of report.streams; -1: unknown so far
	launches         int32 // number of its kernels
	annotationStream uint64
	graphNode        int64 // 0: none
	order            int32 // among events of the same host time; runs of a graph have the order of the captured events
}

const unknownTime = math.MinInt64

// member is a collective, or a piece of a send or receive, of an event.
type member struct {
	bytes    int64
	attrs    int32 // an index of report.attrs, of the text up to "in_place"
	replayed int32 // as attrs, with the channels derived from their budgets; 0: the same
	comm     int32 // of the process
	peer     int32 // rank in the communicator: the root or the partner
	inPlace  int32 // rank for which buffers are in place; anyRank, noRank
	instance int32 // number among its communicator's collectives, or its pair's pieces
	op       opKind
	algo     uint8
	proto    uint8
}

const (
	noRank  = -1
	anyRank = -2
)

// incompleteCall is a call that NCCL recorded incompletely.
type incompleteCall struct {
	proc    int32
	start   int64
	missing string
}

// texts are distinct strings. Number 0 is "".
type texts struct {
	all []string
	of  map[string]int32
}

func (t *texts) number(text []byte) int32 {
	if n, ok := t.of[string(text)]; ok {
		return n
	}
	if t.of == nil {
		t.of = map[string]int32{"": 0}
		t.all = []string{""}
		if len(text) == 0 {
			return 0
		}
	}
	n := int32(len(t.all))
	s := string(text)
	t.all = append(t.all, s)
	t.of[s] = n
	return n
}

// problem is a kind of error that --lenient skips and reports once.
type problem struct {
	effect string // consequence, at the end of the warning
	first  string
	count  int64
}

// problem returns err, unless --lenient skips it. effect describes the consequence of skipping.
func (r *report) problem(effect string, err error) error {
	if err == nil || !r.lenient {
		return err
	}
	for i := range r.problems {
		if p := &r.problems[i]; p.effect == effect {
			p.count++
			return nil
		}
	}
	first := err.Error()
	if !strings.HasPrefix(first, r.name) {
		first = r.place() + ": " + first
	}
	r.problems = append(r.problems, problem{effect, first, 1})
	return nil
}

// warn reports the skipped problems.
func (r *report) warn(warn func(string, ...any)) {
	for _, p := range r.problems {
		if p.count == 1 {
			warn("%s; %s", p.first, p.effect)
		} else {
			warn("%s, and %d more; %s", p.first, p.count-1, p.effect)
		}
	}
}

func newReport(name string, o *reportOptions) *report {
	return &report{
		place: func() string { return name }, name: name, lenient: o.lenient, stepNames: o.steps,
		watch:  par.Watch{Context: o.ctx},
		procOf: make(map[uint64]int32), streamOf: make(map[gpuStream]int32),
		graphOrigin:   make(map[nodeKey]int64),
		graphLaunches: make(map[correlationKey]int64), session: [2]int64{unknownTime, unknownTime},
	}
}

// setSession sets the times of the session if they are valid.
func (r *report) setSession(start, stop int64) {
	if start != unknownTime && stop != unknownTime && checkTimes(start, stop) == nil {
		r.session = [2]int64{start, stop}
	}
}

// process returns the number of the process with a key.
func (r *report) process(key uint64) int32 {
	if p, ok := r.procOf[key]; ok {
		return p
	}
	p := int32(len(r.procs))
	r.procs = append(r.procs, process{key: key, pid: int64(key & 0xffffff), commOf: make(map[uint64]int32),
		window: window{start: unknownTime, stop: math.MaxInt64}})
	r.procOf[key] = p
	return p
}

// processKey returns the key of the process in a globalTid or globalPid: all bits except the thread's.
func processKey(globalID int64) uint64 {
	return uint64(globalID) >> 24
}

// kernelKind is the purpose of a kernel, by its name.
type kernelKind uint8

const (
	kernelOther    = kernelKind(numOps) + iota // of a kind without a number here
	kernelSendRecv                             // sends and receives
	kernelGeneric                              // any kind
)

// parseKernel reports whether a kernel is an NCCL kernel, and its kind.
func parseKernel(name string) (kernelKind, bool) {
	if !strings.HasPrefix(name, "ncclKernel") && !strings.HasPrefix(name, "ncclDevKernel") {
		return 0, false
	}
	words := strings.FieldsFunc(name, func(c rune) bool { return c == '_' || c == '(' || c == ')' })
	if len(words) < 2 {
		return kernelOther, true
	}
	switch words[1] {
	case "SendRecv":
		return kernelSendRecv, true
	case "Generic":
		return kernelGeneric, true
	}
	if i := slices.Index(opNames[:], words[1]); i >= 0 && !opKind(i).p2p() {
		return kernelKind(i), true
	}
	return kernelOther, true
}

// kernelRow is a row of the table of kernels.
type kernelRow struct {
	start, end, device, context, stream, correlation, globalPid, graphNode int64
	kind                                                                   kernelKind
}

// addKernel adds an NCCL kernel.
func (r *report) addKernel(row *kernelRow) error {
	if err := checkTimes(row.start, row.end); err != nil {
		return err
	}
	s := gpuStream{proc: r.process(processKey(row.globalPid)), device: int32(row.device), context: int32(row.context),
		stream: row.stream}
	stream, ok := r.streamOf[s]
	if !ok {
		stream = int32(len(r.streams))
		r.streams = append(r.streams, s)
		r.streamOf[s] = stream
	}
	node := row.graphNode
	if node < 0 {
		node = 0 // some versions write -1 for none
	}
	if len(r.kernels) == math.MaxInt32 {
		return fmt.Errorf("expected at most %d kernels of NCCL, found more", math.MaxInt32)
	}
	r.kernels = append(r.kernels, kernel{start: row.start, end: row.end, correlation: row.correlation,
		graphNode: node, stream: stream, kind: row.kind})
	return nil
}

// latest is the latest time of a trace in nanoseconds, half of the maximum.
const latest = math.MaxInt64 / 1000 / 4

func checkTimes(start, end int64) error {
	switch {
	case start < -latest || start > latest:
		return fmt.Errorf("expected a start between -%d and %[1]d ns, found %d", int64(latest), start)
	case end < start || end > latest:
		return fmt.Errorf("expected an end from %d to %d ns, found %d", start, int64(latest), end)
	}
	return nil
}

// correlationKey identifies a call and its launches.
type correlationKey struct {
	proc        uint64
	correlation int64
}

// byCorrelation returns the kernels by their launches. Kernels of graphs are included only if no other kernel has
// the same key.
func (r *report) byCorrelation() map[correlationKey]int32 {
	index := make(map[correlationKey]int32, len(r.kernels))
	for i := range r.kernels {
		k := &r.kernels[i]
		key := correlationKey{r.procs[r.streams[k.stream].proc].key, k.correlation}
		if _, ok := index[key]; !ok {
			index[key] = int32(i)
		}
	}
	return index
}

// sortLaunches sorts the launches by thread and time.
func (r *report) sortLaunches() {
	order := func(a, b launch) int {
		return cmp.Or(cmp.Compare(a.thread, b.thread), cmp.Compare(a.start, b.start))
	}
	if !slices.IsSortedFunc(r.launches, order) {
		slices.SortStableFunc(r.launches, order)
	}
	slices.SortStableFunc(r.graphNodes, func(a, b graphNode) int {
		return cmp.Or(cmp.Compare(a.thread, b.thread), cmp.Compare(a.start, b.start))
	})
}

// addLaunch adds a call of the host if it launched an NCCL kernel or a graph with one.
func (r *report) addLaunch(index map[correlationKey]int32, start, globalTid, correlation int64) {
	key := correlationKey{processKey(globalTid), correlation}
	k, ok := index[key]
	switch {
	case !ok:
	case r.kernels[k].graphNode != 0:
		r.graphLaunches[key] = start
	default:
		r.launches = append(r.launches, launch{thread: uint64(globalTid), start: start, kernel: k})
	}
}

// addGraphNode adds the creation of a node of a graph.
func (r *report) addGraphNode(start, globalTid, node, original int64) {
	if node <= 0 {
		return
	}
	if original > 0 {
		r.graphOrigin[nodeKey{processKey(globalTid), node}] = original
	}
	r.graphNodes = append(r.graphNodes, graphNode{thread: uint64(globalTid), start: start, node: node})
}

// reportOptions configure the reading of an export.
type reportOptions struct {
	ctx     context.Context // ends reading early; nil: never
	lenient bool
	syncs   bool     // read the waits of streams
	steps   []string // names of steps in annotations
}
