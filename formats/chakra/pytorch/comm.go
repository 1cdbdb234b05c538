// This file finds the communication that host ops record, for traces without kernels.

package pytorch

import (
	"encoding/json"
	"math"
	"strings"

	"github.com/tracedag/tracedag/dag"
	"github.com/tracedag/tracedag/formats/chakra"
	"github.com/tracedag/tracedag/formats/chakra/nodejson"
	"github.com/tracedag/tracedag/formats/kineto"
)

// talk is a communication of the host, or a wait for one.
type talk struct {
	kind    dag.Kind
	subkind dag.Subkind
	record  bool // record_param_comms
	direct  bool // a call of c10d, which has the partner of a message or the root of a collective
	wait    bool
	sized   bool
	bytes   int64
	out     int64  // bytes of the tensors out; 0: unknown
	call    string // as in all_reduce
	group   string // name; "": unknown
	id      int64  // of the process group in schemas without names; 0: unknown
	seq     int64  // number of the communication; -1: unknown
	peer    int64  // rank in the group; -1: unknown
	tag     int64
	start   int64 // of the ranks of the group in the job, with a stride; -1: unknown
	stride  int64
	size    int64 // of the group; 0: unknown
	even    bool  // all splits among the members are equal
	waited  bool  // a later op waits for it
	beside  *talk // the call before an annotation that another thread made after it, with the same caller
}

// record is the op that stores the arguments of a communication.
const record = "record_param_comms"

// talk returns the communication that a host op records, nil if it records none.
func (p *opReader) talk(o *op, n *node) *talk {
	annotation := strings.Contains(o.Name, ":") && !strings.HasPrefix(o.Name, "c10d::")
	direct := strings.HasPrefix(o.Name, "c10d::send") || strings.HasPrefix(o.Name, "c10d::recv") || rootedCalls[o.Name]
	if o.Name != record && !annotation && !direct {
		return nil
	}
	t := &talk{record: o.Name == record, direct: direct, seq: -1, peer: -1, start: -1}
	name := o.Name
	switch {
	case t.record:
		name = t.fromRecord(n)
	case direct:
		name = strings.TrimSuffix(strings.TrimPrefix(name, "c10d::"), "_")
		t.fromCall(n)
	case !isLibrary(name):
		return nil
	}
	if _, t.call, _ = strings.Cut(name, ":"); t.call == "" {
		t.call = name
	}
	if t.wait = t.record && name == "wait"; t.wait {
		return t
	}
	ok := false
	if t.kind, t.subkind, ok = kineto.Operation(name); !ok {
		return nil
	}
	t.bytes, t.sized = tensorBytes(n.in)
	t.out, _ = tensorBytes(n.out)
	t.fromAttributes(n)
	if o.group != "" {
		t.group = o.group
	}
	return t
}

// rootedCalls are the calls whose first number is the root, a rank of the group.
var rootedCalls = map[string]bool{
	"c10d::broadcast_": true, "c10d::reduce_": true, "c10d::gather_": true, "c10d::scatter_": true,
}

// isLibrary reports whether a name is an annotation of a library for communication.
func isLibrary(name string) bool {
	library, _, _ := strings.Cut(name, ":")
	switch library {
	case "nccl", "rccl", "hccl", "xccl", "gloo", "mpi", "ucc":
		return true
	}
	return false
}

// values decodes the values and types of inputs.
func (t *tensors) values() (values []json.RawMessage, types []string) {
	if t == nil || json.Unmarshal(t.Values, &values) != nil || json.Unmarshal(t.Types, &types) != nil {
		return nil, nil
	}
	n := min(len(values), len(types))
	return values[:n], types[:n]
}

// fromRecord reads the arguments of record_param_comms. It returns the name of the call. Schemas differ in the
// arguments, but the first string is the name, the first number the sequence number, and a pair the group.
func (t *talk) fromRecord(n *node) (name string) {
	values, types := n.in.values()
	numbers := 0
	even := true // splits among the members
	var list []int64
	for i, kind := range types {
		switch {
		case kind == "String" && name == "":
			name, _ = nodejson.String(values[i])
		case strings.HasPrefix(kind, "GenericList[Int") && name != "":
			even = even && allEqual(values[i])
		case strings.HasPrefix(kind, "Tuple[String"):
			var pair []string
			if json.Unmarshal(values[i], &pair) == nil && len(pair) > 0 {
				t.group = pair[0]
			}
		case kind == "Int":
			v, ok := nodejson.Int(values[i])
			if numbers++; !ok {
				continue
			}
			switch {
			case numbers == 1:
				t.seq = v
			case numbers == 2 && name == "" && t.group == "":
				t.id = v
			case name != "":
				list = append(list, v)
			}
		}
	}
	if len(list) >= 3 { // start, stride and size of the group
		t.start, t.stride, t.size = list[0], list[1], max(list[2], 0)
	}
	t.even = even
	return name
}

// allEqual reports whether a list has only equal numbers.
func allEqual(list json.RawMessage) bool {
	var numbers []int64
	if json.Unmarshal(list, &numbers) != nil {
		return false
	}
	for _, n := range numbers {
		if n != numbers[0] {
			return false
		}
	}
	return true
}

// fromCall reads the partner and the tag of a message from the call, which has them behind the group.
func (t *talk) fromCall(n *node) {
	values, types := n.in.values()
	var list []int64
	for i, kind := range types {
		if v, ok := nodejson.Int(values[i]); ok && kind == "Int" {
			list = append(list, v)
		}
	}
	if len(list) > 0 && list[0] >= 0 && list[0] <= math.MaxInt32 {
		t.peer = list[0]
	}
	if len(list) > 1 && list[1] >= 0 && list[1] <= math.MaxInt32 {
		t.tag = list[1]
	}
}

// fromAttributes reads the attributes that schemas from 1.1.0 on have.
func (t *talk) fromAttributes(n *node) {
	elements, out, size := int64(0), int64(0), int64(0)
	for _, a := range n.Attrs {
		v, isNumber := nodejson.Int(a.Value)
		switch a.Name {
		case "in_msg_nelems":
			elements = v
		case "out_msg_nelems":
			out = v
		case "pg_size":
			t.size = max(v, 0)
		case "dtype":
			s, _ := nodejson.String(a.Value)
			size = kineto.ElementSize(s)
		case "global_rank_start":
			if isNumber {
				t.start = v
			}
		case "global_rank_stride":
			if isNumber {
				t.stride = v
			}
		}
	}
	if t.out == 0 && size > 0 && out > 0 && out <= math.MaxInt64/size {
		t.out = out * size
	}
	if (!t.sized || t.bytes == 0) && size > 0 && elements > 0 && elements <= math.MaxInt64/size {
		t.bytes, t.sized = elements*size, true
	}
}

// tensorBytes returns the size of the tensors in inputs; ok is false if there are none or they cannot be read.
func tensorBytes(inputs *tensors) (total int64, ok bool) {
	values, types := inputs.values()
	for i, kind := range types {
		if strings.Contains(kind, "Tensor") {
			total, ok = addTensors(total, ok, values[i], mostNested)
		}
	}
	return total, ok
}

// mostNested is the largest depth of lists of tensors.
const mostNested = 8

// addTensors adds the size of a tensor, or of those in nested lists.
func addTensors(total int64, ok bool, value json.RawMessage, depth int) (int64, bool) {
	var list []json.RawMessage
	if depth == 0 || json.Unmarshal(value, &list) != nil || len(list) == 0 {
		return total, ok
	}
	if list[0][0] != '[' {
		n, isTensor := tensorSize(value)
		if isTensor && n <= math.MaxInt64-total {
			return total + n, true
		}
		return total, ok
	}
	for _, inner := range list {
		total, ok = addTensors(total, ok, inner, depth-1)
	}
	return total, ok
}

// processGroup is a process group that the trace declares.
type processGroup struct {
	Name  string  `json:"pg_name"`
	About string  `json:"pg_desc"`
	ID    int64   `json:"backend_id"`
	Ranks []int64 `json:"ranks"` // none: all
}

// declared returns the process groups in the inputs of a declaration: a text that is JSON.
func declared(inputs *tensors) []processGroup {
	values, _ := inputs.values()
	if len(values) == 0 {
		return nil
	}
	text, ok := nodejson.String(values[0])
	var groups []processGroup
	if !ok || json.Unmarshal([]byte(text), &groups) != nil {
		return nil
	}
	return groups
}

// communicate decides which host ops are the communication of a trace without kernels: the records, and annotations of
// libraries that have no record. It completes their groups and partners.
func (t *trace) communicate() {
	t.talksOnHost = true
	t.findCallers()
	t.findBeside()
	recorded := make([]bool, len(t.ops)) // by op: a record is in its calls
	for i := range t.ops {
		if k := t.ops[i].talk; k == nil || !k.record || k.wait {
			continue
		}
		for c, steps := t.ops[i].parent, 0; c != none && !recorded[c] && steps < mostCallers; steps++ {
			recorded[c] = true
			c = t.ops[c].parent
		}
	}
	for i := range t.ops {
		k := t.ops[i].talk
		switch {
		case k == nil || k.wait:
			continue
		case k.direct, !k.record && (recorded[i] || t.inRecord(i)):
			if k.direct {
				continue // only the source of partners
			}
			t.ops[i].talk = nil
			continue
		}
		t.complete(i)
	}
	for i := range t.ops {
		if k := t.ops[i].talk; k != nil && k.direct {
			t.ops[i].talk = nil
		}
	}
	t.findWaits()
}

// mostCallers is the largest number of callers of a communication that are searched.
const mostCallers = 8

// inRecord reports whether an annotation is called by a record.
func (t *trace) inRecord(i int) bool {
	for c, steps := t.ops[i].parent, 0; c != none && steps < mostCallers; steps++ {
		if k := t.ops[c].talk; k != nil && k.record {
			return true
		}
		c = t.ops[c].parent
	}
	return false
}

// findBeside finds the call of each annotation that is not called by it.
func (t *trace) findBeside() {
	type key struct {
		caller  int
		kind    dag.Kind
		subkind dag.Subkind
	}
	latest := make(map[key]*talk)
	for _, i := range t.byNumber() {
		k := t.ops[i].talk
		if k == nil || k.wait || k.record {
			continue
		}
		if at := (key{t.ops[i].parent, k.kind, k.subkind}); k.direct {
			latest[at] = k
		} else {
			k.beside = latest[at]
		}
	}
}

// complete finds the group and the partner of a communication.
func (t *trace) complete(i int) {
	k := t.ops[i].talk
	for g := range t.groups {
		if k.group == "" && k.id != 0 && t.groups[g].ID == k.id {
			k.group = t.groups[g].Name
		}
	}
	if k.kind == dag.Coll && !k.subkind.Rooted() {
		return
	}
	for c, steps := t.ops[i].parent, 0; c != none && steps < mostCallers && k.peer < 0; steps++ {
		if call := t.ops[c].talk; call != nil && call.direct && call.kind == k.kind && call.subkind == k.subkind {
			k.peer, k.tag = call.peer, call.tag
		}
		c = t.ops[c].parent
	}
	if k.peer < 0 && k.beside != nil {
		k.peer, k.tag = k.beside.peer, k.beside.tag
	}
	if k.peer < 0 {
		return
	}
	for g := range t.groups { // ranks of the group to those of the job
		if d := &t.groups[g]; d.Name == k.group && len(d.Ranks) > 0 {
			if k.peer < int64(len(d.Ranks)) {
				k.peer = d.Ranks[k.peer]
			}
			return
		}
	}
	if k.start >= 0 && k.stride > 0 && k.start <= math.MaxInt32 && k.stride <= math.MaxInt32 {
		k.peer = k.start + k.peer*k.stride
	}
}

// findWaits finds the communication for which each wait waits: the last one before it with its number.
func (t *trace) findWaits() {
	type key struct {
		group string
		seq   int64
	}
	latest := make(map[key]int)
	of := make(map[int64]int) // by number, of waits without a group
	for _, i := range t.byNumber() {
		k := t.ops[i].talk
		switch {
		case k == nil || k.seq < 0:
		case k.wait:
			on, ok := latest[key{k.group, k.seq}]
			if k.group == "" {
				on, ok = of[k.seq]
			}
			if ok {
				t.ops[on].talk.waited = true
				t.ops[i].waitsFor = t.ops[on].ID
				t.ops[i].waits = true
			}
		default:
			latest[key{k.group, k.seq}], of[k.seq] = i, i
		}
	}
}

// setTalk makes a host op the node of its communication.
func (t *trace) setTalk(o *op) {
	k := o.talk
	if k == nil || k.wait {
		return
	}
	switch k.kind {
	case dag.Send:
		o.Type = chakra.CommSendNode
	case dag.Recv:
		o.Type = chakra.CommRecvNode
	default:
		o.Type = chakra.CommCollNode
		o.Attr = append(o.Attr, chakra.Int64("comm_type", kindOf(k.subkind)))
	}
	for i := range o.Attr {
		if o.Attr[i].Name == onHost {
			o.Attr[i] = chakra.Bool(onHost, false)
		}
	}
	o.Attr = append(o.Attr, chakra.Int64("comm_size", k.bytes))
	if k.group != "" {
		o.Attr = append(o.Attr, chakra.String("pg_name", k.group))
	}
	if k.kind == dag.Coll {
		return
	}
	if k.peer >= 0 && k.peer <= math.MaxInt32 {
		side := "comm_dst"
		if k.kind == dag.Recv {
			side = "comm_src"
		}
		o.Attr = append(o.Attr, chakra.Int32(side, int32(k.peer)))
	}
	o.Attr = append(o.Attr, chakra.Int32("comm_tag", int32(k.tag)))
}

// kindOf returns Chakra's number of a collective. Chakra has no uneven ones.
func kindOf(s dag.Subkind) int64 {
	switch s {
	case dag.Alltoallv:
		s = dag.Alltoall
	case dag.Allgatherv:
		s = dag.Allgather
	}
	return chakra.CollectiveNumber(s)
}
