// This file has the rules by which Chakra's converter turns the calls of a trace into a graph.

package pytorch

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/tracedag/tracedag/formats/chakra"
)

// rootName is the name of threads.
const rootName = "[pytorch|profiler|execution_trace|thread]"

// isRoot reports whether an op is a thread, the root of the thread's calls.
func (o *op) isRoot() bool {
	return o.Name == rootName ||
		o.Name == "[pytorch|profiler|execution_graph|thread]"
}

// adopt makes threads the callers of ops whose caller is missing in a file that ends early, because files have callers
// behind their calls.
func (t *trace) adopt() {
	var roots []int
	latest := uint64(0)
	for i := range t.ops {
		if o := &t.ops[i]; o.isRoot() {
			roots = append(roots, i)
		}
		latest = max(latest, t.ops[i].ID)
	}
	if len(roots) == 0 {
		if len(t.ops) == 0 || latest == math.MaxUint64 {
			return
		}
		root := op{line: t.ops[0].line, parent: none}
		root.ID, root.Name = latest+1, rootName
		root.Inputs, root.Outputs = new(chakra.IOInfo), new(chakra.IOInfo)
		for _, name := range numbers {
			root.Attr = append(root.Attr, chakra.Int64(name, 0))
		}
		root.Attr = append(root.Attr, chakra.String(schemaOfOp, ""), chakra.Bool(onHost, true))
		roots = append(roots, len(t.ops))
		t.byID[root.ID] = len(t.ops)
		t.ops = append(t.ops, root)
	}
	of := make(map[int64]uint64) // root by thread
	for i := range t.ops {
		o := &t.ops[i]
		if at, there := t.byID[o.parentID]; there && o.hasParent && t.ops[at].isRoot() {
			of[o.thread] = o.parentID
		}
	}
	for i := range t.ops {
		o := &t.ops[i]
		if _, there := t.byID[o.parentID]; o.isRoot() || there && o.hasParent || o.ID == processID {
			continue
		}
		root, known := of[o.thread]
		if !known {
			root = t.ops[roots[0]].ID
		}
		o.parentID, o.hasParent = root, true
	}
}

// processID is the id of the process, which calls the threads.
const processID = 1

// isGroup reports whether an op declares process groups.
func (o *op) isGroup() bool {
	return strings.Contains(o.Name, "process_group:init")
}

// communicates reports whether an op is an NCCL kernel.
func (o *op) communicates() bool {
	return o.device && !o.isGroup() &&
		(strings.Contains(o.Name, "ncclKernel") || strings.Contains(o.Name, "ncclDevKernel"))
}

// runsAside reports whether an op is a communication of the host for which a later op waits, so that its thread does
// not wait for it before.
func (o *op) runsAside(t *trace) bool { return t.talksOnHost && o.talk != nil && o.talk.waited }

// convert returns the nodes of the trace, in ascending id order.
func (t *trace) convert() ([]chakra.Node, error) {
	calls := t.linkCalls()
	order, err := t.convertOps()
	if err != nil {
		return nil, err
	}
	w := walker{trace: t, calls: calls, visited: make([]bool, len(t.ops))}
	for _, i := range order {
		if t.ops[i].isRoot() {
			if err := w.walk(i); err != nil {
				return nil, err
			}
		}
	}
	needed, err := t.needed(order)
	if err != nil {
		return nil, err
	}
	nodes := make([]chakra.Node, 0, len(order))
	for _, i := range order {
		if o := &t.ops[i]; len(o.DataDeps) > 0 || needed[i] {
			nodes = append(nodes, o.Node)
			if o.sync {
				t.syncs++
			}
		}
	}
	slices.SortFunc(nodes, func(a, b chakra.Node) int { return cmp.Compare(a.ID, b.ID) })
	return nodes, nil
}

// linkCalls finds the caller of each op. It returns the calls of each op, in file order.
func (t *trace) linkCalls() [][]int {
	t.findCallers()
	calls := make([][]int, len(t.ops))
	for i := range t.ops {
		if parent := t.ops[i].parent; parent != none {
			calls[parent] = append(calls[parent], i)
		}
	}
	return calls
}

// findCallers finds the caller of each op.
func (t *trace) findCallers() {
	for i := range t.ops {
		if o := &t.ops[i]; o.hasParent {
			if parent, there := t.byID[o.parentID]; there {
				o.parent = parent
			}
		}
	}
}

// byNumber returns the ops in ascending id order, which is that of their calls.
func (t *trace) byNumber() []int {
	order := make([]int, len(t.ops))
	for i := range order {
		order[i] = i
	}
	slices.SortFunc(order, func(a, b int) int { return cmp.Compare(t.ops[a].ID, t.ops[b].ID) })
	return order
}

// convertOps converts ops to nodes without data dependencies, and returns them in the converter's order. An op on
// the GPU follows the op that launched it; if that is missing, or on the GPU itself, the op is dropped.
func (t *trace) convertOps() ([]int, error) {
	launched := make([][]int, len(t.ops))
	for i := range t.ops {
		if o := &t.ops[i]; o.device && o.parent != none {
			launched[o.parent] = append(launched[o.parent], i)
		}
	}
	order := make([]int, 0, len(t.ops))
	convert := func(i int) error {
		o := &t.ops[i]
		if !o.converted {
			order = append(order, i)
		}
		if o.parent != none && t.ops[o.parent].converted {
			o.CtrlDeps = []uint64{o.parentID}
		}
		o.converted = true
		return t.setType(o)
	}
	for i := range t.ops {
		if o := &t.ops[i]; o.device && !o.isGroup() {
			continue
		}
		if err := convert(i); err != nil {
			return nil, err
		}
		for _, k := range launched[i] {
			if err := convert(k); err != nil {
				return nil, err
			}
		}
	}
	return order, nil
}

// setType sets the type of an op, and the attributes of communications.
func (t *trace) setType(o *op) error {
	o.Type = chakra.CompNode
	switch {
	case o.isGroup():
		o.Type = chakra.MetadataNode
		return nil
	case !o.communicates():
		if t.talksOnHost {
			t.setTalk(o)
		}
		return nil
	}
	if o.talk != nil { // of the callers of a kernel
		t.setTalk(o)
		return nil
	}
	o.Type = chakra.CommCollNode
	if strings.Contains(o.Name, sendRecvKernel) {
		if err := t.setSendRecv(o); err != nil {
			return err
		}
	}
	if o.Type == chakra.CommCollNode {
		comm, ok := collective(o.Name)
		if !ok {
			return t.fail(o.line, "a collective name: allreduce, alltoall, allgather, "+
				"reducescatter or broadcast", fmt.Sprintf("%.60q", o.Name))
		}
		o.Attr = append(o.Attr, chakra.Int64("comm_type", comm))
	}
	o.Attr = append(o.Attr, chakra.Int64("comm_size", o.bytes))
	if o.group != "" {
		o.Attr = append(o.Attr, chakra.String("pg_name", o.group))
	}
	return nil
}

// sendRecvKernel is NCCL's kernel for sends and receives, which its all-to-all uses, too.
const sendRecvKernel = "ncclDevKernel_SendRecv"

// setSendRecv determines the purpose of a send/receive kernel from the names of its callers.
func (t *trace) setSendRecv(o *op) error {
	caller := &t.ops[o.parent]
	if caller.Name == "record_param_comms" {
		if caller.group != "" {
			o.group = caller.group
		}
		if caller.parent == none {
			return t.fail(caller.line, "a caller of record_param_comms among the nodes",
				strconv.FormatUint(caller.parentID, 10))
		}
		caller = &t.ops[caller.parent]
	}
	switch {
	case strings.Contains(caller.Name, "send"):
		o.Type = chakra.CommSendNode
	case strings.Contains(caller.Name, "recv"):
		o.Type = chakra.CommRecvNode
	}
	return nil
}

// collective returns the kind of collective (comm_type) of a kernel, by its name.
func collective(name string) (int64, bool) {
	plain := strings.ToLower(strings.NewReplacer("_", "", "-", "").Replace(name))
	for _, known := range []struct {
		name string
		comm int64
	}{
		{"allreduce", chakra.AllReduce},
		{"alltoall", chakra.AllToAll},
		{"allgather", chakra.AllGather},
		{"reducescatter", chakra.ReduceScatter},
		{"broadcast", chakra.Broadcast},
	} {
		if strings.Contains(plain, known.name) {
			return known.comm, true
		}
	}
	return chakra.AllToAll, strings.Contains(name, sendRecvKernel)
}

// walker converts calls to dependencies.
type walker struct {
	*trace
	calls   [][]int
	visited []bool
	stack   []int
}

// walk visits the calls of a thread, callers first, in id order. An op on the host waits for the previous host op.
// An op on the GPU waits for the last op of any kind; afterwards the last host op takes that role again.
func (w *walker) walk(root int) error {
	lastOnHost, last := none, none
	w.stack = append(w.stack[:0], root)
	for len(w.stack) > 0 {
		i := w.stack[len(w.stack)-1]
		w.stack = w.stack[:len(w.stack)-1]
		o := &w.ops[i]
		if i != root && o.isRoot() {
			return w.fail(o.line, "a thread that is not called by another", "node "+strconv.FormatUint(o.ID, 10))
		}
		w.visited[i] = true
		if o.device && !o.isGroup() || o.runsAside(w.trace) {
			w.waitFor(o, last)
			last = lastOnHost
		} else {
			if o.waits {
				o.addDep(o.waitsFor)
			}
			if o.interDep != 0 {
				o.addDep(o.interDep)
			}
			w.waitFor(o, lastOnHost)
			lastOnHost, last = i, i
		}
		w.push(w.calls[i])
	}
	return nil
}

func (w *walker) waitFor(o *op, other int) {
	if other != none {
		o.addDep(w.ops[other].ID)
	}
}

func (o *op) addDep(id uint64) {
	if !slices.Contains(o.DataDeps, id) { // there are at most three
		o.DataDeps = append(o.DataDeps, id)
	}
}

// push adds calls so that the one with the lowest id comes next.
func (w *walker) push(calls []int) {
	start := len(w.stack)
	for _, i := range calls {
		if w.ops[i].converted && !w.visited[i] {
			w.stack = append(w.stack, i)
		}
	}
	slices.SortFunc(w.stack[start:], func(a, b int) int { return cmp.Compare(w.ops[b].ID, w.ops[a].ID) })
}

// needed reports for each op whether another waits for it.
func (t *trace) needed(order []int) ([]bool, error) {
	needed := make([]bool, len(t.ops))
	for _, i := range order {
		for _, id := range t.ops[i].DataDeps {
			k, there := t.byID[id]
			if !there || !t.ops[k].converted {
				return nil, t.fail(t.ops[i].line, "inter_thread_dep to be a node of the trace",
					strconv.FormatUint(id, 10))
			}
			needed[k] = true
		}
	}
	return needed, nil
}
