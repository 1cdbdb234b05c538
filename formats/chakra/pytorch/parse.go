// This file parses the members of a trace and of its nodes.

package pytorch

import (
	"encoding/json"
	"math"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/tracedag/tracedag/formats/chakra"
	"github.com/tracedag/tracedag/formats/chakra/nodejson"
	"github.com/tracedag/tracedag/formats/format"
)

// trace is a file.
type trace struct {
	file  string
	attrs [len(members)]chakra.Attr
	ops   []op
	byID  map[uint64]int // index of each op by id

	schema string
	pid    uint64
	compat bool  // convert as Chakra's converter does in any case
	linked bool  // a node has what a linker adds
	cut    int64 // number of whole nodes of a file that ends early; 0: it does not
	groups []processGroup
	syncs  int64 // number of converted ops with a sync_dep

	links linking
	pair  *profile // to link; nil: none

	talksOnHost bool // communication is that of host ops, for lack of kernels
}

// op is a node of a trace with its converted node.
type op struct {
	chakra.Node
	line      int64
	parent    int // the calling op, or none if it is missing
	parentID  uint64
	hasParent bool
	device    bool   // it ran on the GPU
	group     string // process group
	interDep  uint64 // dependency on another thread; 0: none
	sync      bool
	bytes     int64  // of a communication
	talk      *talk  // communication of a host op; nil: none
	rf        int64  // number of the record function
	shapes    string // of the inputs, as in the file; "": unknown or long
	outShapes string
	moved     int64 // bytes of the tensors, if the floating-point operations may count
	thread    int64 // in the order of first calls
	waits     bool  // it waits for the communication waitsFor
	waitsFor  uint64
	converted bool
}

const none = -1

// node is a node of a trace in the file. A missing member is nil.
type node struct {
	ID             json.RawMessage `json:"id"`
	Name           json.RawMessage `json:"name"`
	Parent         json.RawMessage `json:"ctrl_deps"`
	Inputs         json.RawMessage `json:"inputs"`
	Outputs        json.RawMessage `json:"outputs"`
	Exclusive      json.RawMessage `json:"exclusive_dur"`
	InterThreadDep json.RawMessage `json:"inter_thread_dep"`
	SyncDep        []any           `json:"sync_dep"`
	Category       json.RawMessage `json:"cat"`
	Stream         json.RawMessage `json:"stream"`
	Group          json.RawMessage `json:"pg_name"`
	Attrs          []attribute     `json:"attrs"`
	flat

	in, out *tensors
}

type attribute struct {
	Name  string          `json:"name"`
	Value json.RawMessage `json:"value"`
}

// flat is the members that a node of schema 1.0.1 has in place of attributes and of members of members.
type flat struct {
	Caller       json.RawMessage `json:"parent"`
	RFID         json.RawMessage `json:"rf_id"`
	FwParent     json.RawMessage `json:"fw_parent"`
	SeqID        json.RawMessage `json:"seq_id"`
	Scope        json.RawMessage `json:"scope"`
	Thread       json.RawMessage `json:"tid"`
	FwThread     json.RawMessage `json:"fw_tid"`
	Schema       json.RawMessage `json:"op_schema"`
	InputShapes  json.RawMessage `json:"input_shapes"`
	InputTypes   json.RawMessage `json:"input_types"`
	OutputShapes json.RawMessage `json:"output_shapes"`
	OutputTypes  json.RawMessage `json:"output_types"`
}

// nest moves the members of a flat node to their places in later schemas.
func (n *node) nest() {
	f := &n.flat
	n.Parent = f.Caller
	n.Attrs = nil
	for i, value := range []json.RawMessage{f.RFID, f.FwParent, f.SeqID, f.Scope, f.Thread, f.FwThread, f.Schema} {
		if value != nil {
			name := schemaOfOp
			if i < len(numbers) {
				name = numbers[i]
			}
			n.Attrs = append(n.Attrs, attribute{name, value})
		}
	}
	n.in = &tensors{n.Inputs, f.InputShapes, f.InputTypes}
	n.out = &tensors{n.Outputs, f.OutputShapes, f.OutputTypes}
}

type tensors struct {
	Values json.RawMessage `json:"values"`
	Shapes json.RawMessage `json:"shapes"`
	Types  json.RawMessage `json:"types"`
}

// Member receives a member of the file.
func (t *trace) Member(line int64, name string, value json.RawMessage) error {
	i := slices.IndexFunc(members[:], func(m member) bool { return m.name == name })
	if i < 0 {
		return nil
	}
	if members[i].isText {
		s, ok := nodejson.String(value)
		if !ok {
			return t.fail(line, name+" to be a string", nodejson.Show(value))
		}
		if name == schemaOfFile && !schemas[s] {
			return t.fail(line, "one of the schemas 1.0.1, 1.0.2-, 1.0.3-, 1.0.4-, 1.1.0- and 1.1.1-chakra.0.0.4, "+
				"and 1.1.1-chakra.1.0.0", nodejson.Show(value))
		}
		if name == schemaOfFile {
			t.schema = s
		}
		t.attrs[i] = chakra.String(name, s)
		return nil
	}
	n, ok := nodejson.Uint(value)
	if !ok {
		return t.fail(line, name+" to be an integer", nodejson.Show(value))
	}
	if name == "pid" {
		t.pid = n
	}
	t.attrs[i] = chakra.Uint64(name, n)
	return nil
}

// member is a member of a file that is kept.
type member struct {
	name   string
	isText bool
}

const (
	schemaOfFile = "schema"
	finish       = "finish_ts" // the last of the members
)

var members = [...]member{
	{schemaOfFile, true}, {"pid", false}, {"time", true}, {"start_ts", false}, {finish, false},
}

// metadata returns the metadata at the beginning of a file.
func (t *trace) metadata() (chakra.Metadata, error) {
	for i, a := range t.attrs {
		if a.Name == "" && members[i].name == finish {
			return chakra.Metadata{Attr: slices.Clone(t.attrs[:i])}, nil // the process ended early
		}
		if a.Name == "" {
			return chakra.Metadata{}, format.FileErrorf(t.file, "expected an object with a member %s", members[i].name)
		}
	}
	return chakra.Metadata{Attr: slices.Clone(t.attrs[:])}, nil
}

// Node receives a node.
func (t *trace) Node(line int64, value json.RawMessage) error {
	if !utf8.Valid(value) {
		return t.fail(line, "UTF-8", "other bytes")
	}
	var n node
	if err := json.Unmarshal(value, &n); err != nil {
		return t.fail(line, "a node", err.Error())
	}
	if t.isFlat() {
		n.nest()
	} else if err := n.unnest(); err != nil {
		return t.fail(line, "a node", err.Error())
	}
	for _, a := range n.Attrs {
		switch a.Name { // attributes replace members
		case "cat":
			n.Category = a.Value
		case "stream":
			n.Stream = a.Value
		case "pg_name":
			n.Group = a.Value
		}
	}
	p := opReader{trace: t, line: line}
	o := op{line: line, parent: none}
	p.read(&o, &n)
	if p.err != nil {
		return p.err
	}
	if t.byID == nil {
		t.byID = map[uint64]int{}
	}
	if _, twice := t.byID[o.ID]; twice {
		return t.fail(line, "an id that no other node has", strconv.FormatUint(o.ID, 10))
	}
	t.byID[o.ID] = len(t.ops)
	t.ops = append(t.ops, o)
	return nil
}

// isFlat reports whether the nodes are those of schema 1.0.1.
func (t *trace) isFlat() bool { return t.schema == "1.0.1" }

// unnest decodes the inputs and outputs.
func (n *node) unnest() error {
	if n.Inputs != nil {
		if err := json.Unmarshal(n.Inputs, &n.in); err != nil {
			return err
		}
	}
	if n.Outputs == nil {
		return nil
	}
	return json.Unmarshal(n.Outputs, &n.out)
}

func (t *trace) fail(line int64, expected, found string) error {
	return nodejson.Fail(t.file, line, expected, found)
}

// opReader reads the members of a node, and keeps the first error.
type opReader struct {
	*trace
	line int64
	err  error
}

func (p *opReader) check(ok bool, member, expected string, found json.RawMessage) {
	if !ok && p.err == nil {
		p.err = p.fail(p.line, member+" to be "+expected, nodejson.Show(found))
	}
}

func (p *opReader) read(o *op, n *node) {
	var ok bool
	o.ID, ok = nodejson.Uint(n.ID)
	p.check(ok, "id", "an integer", n.ID)
	o.Name, ok = nodejson.String(n.Name)
	p.check(ok, "name", "a string", n.Name)
	p.parent(o, n.Parent)
	o.device = !isNull(n.Category)
	o.DurationMicros = p.micros(n.Exclusive)
	if strings.Contains(o.Name, "Optimizer.step") {
		o.DurationMicros = 0 // it spans most of a training step, and its calls are listed, too
	}
	if !isNull(n.InterThreadDep) {
		o.interDep, ok = nodejson.Uint(n.InterThreadDep)
		p.check(ok, "inter_thread_dep", "the id of a node", n.InterThreadDep)
	}
	o.sync = len(n.SyncDep) > 0
	if n.Group != nil {
		o.group, ok = nodejson.String(n.Group)
		p.check(ok, "pg_name", "a string", n.Group)
	}
	o.Inputs = p.io("inputs", n.in)
	o.Outputs = p.io("outputs", n.out)
	p.attrs(o, n)
	if p.err == nil && o.communicates() {
		o.bytes = p.bytes(n.in)
	}
	if p.err != nil {
		return
	}
	p.linked = p.linked || o.device || n.Exclusive != nil
	if o.isGroup() {
		p.groups = append(p.groups, declared(n.in)...)
	}
	if !o.device {
		o.shapes, o.outShapes = shapesOf(n.in), shapesOf(n.out)
		if _, counted := flopsInputs[o.Name]; counted {
			in, _ := tensorBytes(n.in)
			out, _ := tensorBytes(n.out)
			o.moved = in + min(out, math.MaxInt64-in)
		}
		o.talk = p.talk(o, n)
		if p.pair != nil {
			o.bytes, _ = tensorBytes(n.in) // of a kernel that it launches
		}
	}
}

// shapesOf returns the shapes of tensors if they are short.
func shapesOf(t *tensors) string {
	if t == nil || len(t.Shapes) > longestShapes || string(t.Shapes) == "[]" {
		return ""
	}
	return string(t.Shapes)
}

func isNull(value json.RawMessage) bool {
	return value == nil || string(value) == "null"
}

// parent reads the node that called this one. Some nodes have none.
func (p *opReader) parent(o *op, value json.RawMessage) {
	if value == nil {
		p.check(false, "ctrl_deps", "the id of a node", value)
	}
	if isNull(value) {
		return
	}
	id, ok := nodejson.Int(value)
	if ok && id < 0 {
		return
	}
	o.parentID, o.hasParent = nodejson.Uint(value)
	p.check(o.hasParent, "ctrl_deps", "the id of a node", value)
}

// micros reads a duration in whole microseconds. Nodes that were not linked have none.
func (p *opReader) micros(value json.RawMessage) uint64 {
	if value == nil {
		return 0
	}
	if n, ok := nodejson.Uint(value); ok {
		return n
	}
	f, err := strconv.ParseFloat(string(value), 64)
	ok := err == nil && f > -1 && f < 1<<64
	p.check(ok, "exclusive_dur", "a duration in microseconds", value)
	if !ok {
		return 0
	}
	return uint64(math.Abs(math.Trunc(f)))
}

func (p *opReader) io(member string, t *tensors) *chakra.IOInfo {
	if t == nil {
		p.check(false, member, "an object", nil)
		return nil
	}
	p.check(t.Values != nil, member+".values", "there", nil)
	p.check(t.Shapes != nil, member+".shapes", "there", nil)
	p.check(t.Types != nil, member+".types", "there", nil)
	if p.err != nil {
		return nil
	}
	return &chakra.IOInfo{Values: python(t.Values), Shapes: python(t.Shapes), Types: python(t.Types)}
}

// The attributes of every node, in the order of writing.
var numbers = [...]string{"rf_id", "fw_parent", "seq_id", "scope", "tid", "fw_tid"}

const (
	schemaOfOp = "op_schema"
	onHost     = "is_cpu_op"
)

// attrs reads the attributes of a node of any type.
func (p *opReader) attrs(o *op, n *node) {
	var values [len(numbers)]json.RawMessage
	var schema json.RawMessage
	for _, a := range n.Attrs {
		if a.Name == schemaOfOp {
			schema = a.Value
		}
		for i, name := range numbers {
			if a.Name == name {
				values[i] = a.Value
			}
		}
	}
	o.Attr = make([]chakra.Attr, 0, len(numbers)+6)
	for i, name := range numbers {
		v, ok := nodejson.Int(values[i])
		p.check(ok, "the attribute "+name, "an integer", values[i])
		o.Attr = append(o.Attr, chakra.Int64(name, v))
		switch name {
		case "rf_id":
			o.rf = v
		case "tid":
			o.thread = v
		}
	}
	s, ok := nodejson.String(schema)
	p.check(ok, "the attribute "+schemaOfOp, "a string", schema)
	o.Attr = append(o.Attr, chakra.String(schemaOfOp, s), chakra.Bool(onHost, !o.device))
	stream, ok := int64(0), true
	if n.Stream != nil {
		if isNull(n.Stream) {
			return
		}
		stream, ok = nodejson.Int(n.Stream)
		p.check(ok, "stream", "an integer", n.Stream)
	}
	o.Attr = append(o.Attr, chakra.Int64("stream", stream))
}

// bytes returns the size of the tensors among the inputs.
func (p *opReader) bytes(inputs *tensors) int64 {
	var values []json.RawMessage
	var types []string
	if json.Unmarshal(inputs.Values, &values) != nil || json.Unmarshal(inputs.Types, &types) != nil {
		p.check(false, "inputs of a communication", "lists of values and types", inputs.Values)
		return 0
	}
	total := int64(0)
	for i := range min(len(values), len(types)) {
		switch {
		case strings.HasPrefix(types[i], "GenericList[Tensor"):
			var list []json.RawMessage
			p.check(json.Unmarshal(values[i], &list) == nil, "a "+types[i], "a list", values[i])
			for _, tensor := range list {
				total = p.sum(total, tensor)
			}
		case strings.Contains(types[i], "Tensor"):
			total = p.sum(total, values[i])
		}
	}
	return total
}

// sum adds the size of a tensor: a list whose fourth element is the number of elements and whose fifth is the size
// of an element in bytes.
func (p *opReader) sum(total int64, tensor json.RawMessage) int64 {
	n, ok := tensorSize(tensor)
	if ok && n <= math.MaxInt64-total {
		return total + n
	}
	p.check(false, "a tensor", "a list with numbers of elements and bytes", tensor)
	return total
}

// tensorSize returns the bytes of a tensor.
func tensorSize(tensor json.RawMessage) (n int64, ok bool) {
	var parts []json.RawMessage
	if json.Unmarshal(tensor, &parts) != nil || len(parts) < 5 {
		return 0, false
	}
	elements, ok1 := nodejson.Uint(parts[3])
	size, ok2 := nodejson.Uint(parts[4])
	if !ok1 || !ok2 || elements != 0 && size > math.MaxInt64/elements {
		return 0, false
	}
	return int64(elements * size), true
}
