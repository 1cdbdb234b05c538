// This file completes profiles of Kineto with what execution traces record: the sizes, groups and partners of
// communication, and the operators and floating-point operations of kernels.

package pytorch

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/tracedag/tracedag/dag"
	"github.com/tracedag/tracedag/formats/chakra"
	"github.com/tracedag/tracedag/formats/chakra/nodejson"
	"github.com/tracedag/tracedag/formats/format"
	"github.com/tracedag/tracedag/formats/kineto"
	"github.com/tracedag/tracedag/internal/par"
)

// completion completes the profile of a rank with its execution trace.
type completion struct {
	traces map[int64]*trace // by rank
	single bool             // there is one trace and one profile
	p      *profile
	t      *trace // nil: there is none for the rank
	comms  map[calledAt]*kineto.Comm
	notes  map[int32]deviceNote // by ordinal
}

// calledAt identifies an event of the host.
type calledAt struct {
	thread string
	start  dag.Time
	name   string
}

// deviceNote is what the trace states about a device op.
type deviceNote struct {
	flops int64
	attrs string
}

// readProfiles reads the profiles of a job, each completed by the execution trace of its rank.
func readProfiles(traces, profiles []*format.Input, o format.ReadOptions) (*dag.Trace, error) {
	list := make([]*trace, len(traces))
	err := par.Each(len(traces), func(i int) error {
		t := &trace{file: traces[i].Name}
		list[i] = t
		err := nodejson.Read(o.Context, traces[i], "nodes", t)
		var cut *nodejson.CutError
		if errors.As(err, &cut) {
			t.cut, err = cut.Elements, nil
			t.adopt()
		}
		if err != nil {
			return err
		}
		if _, err := t.metadata(); err != nil {
			return err
		}
		if t.linked {
			return format.FileErrorf(t.file, "expected an execution trace without times beside profiles, found a "+
				"linked one: read it alone")
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	ranks := make(map[int64]*trace)
	for i, t := range list {
		rank, ok := nodejson.Rank(traces[i].Name)
		if len(list) == 1 && !ok {
			rank, ok = 0, true
		}
		switch other := ranks[int64(rank)]; {
		case !ok:
			return nil, format.FileErrorf(t.file, "expected a file name with a rank number, as in et_3.json")
		case other != nil:
			return nil, format.FileErrorf(t.file, "expected one execution trace per rank, found rank %d also in %s",
				rank, other.file)
		}
		ranks[int64(rank)] = t
	}
	completions, all := make([]*completion, len(profiles)), make([]kineto.Completion, len(profiles))
	for i, in := range profiles {
		completions[i] = &completion{traces: ranks, single: len(list) == 1 && len(profiles) == 1,
			p: newProfile(in.Name)}
		all[i] = completions[i]
	}
	result, err := kineto.ReadCompleted(profiles, all, o)
	if err != nil {
		return nil, err
	}
	used := make(map[*trace]bool)
	for _, c := range completions {
		if c.t == nil {
			o.Warn("%s: no execution trace of the rank: its profile is read alone", c.p.file)
			continue
		}
		used[c.t] = true
		if c.t.cut > 0 {
			o.Warn("%s: the file ends early; its %d whole nodes were read", c.t.file, c.t.cut)
		}
		c.t.links.warnNames(c.t, o.Warn)
	}
	for _, t := range list {
		if !used[t] {
			o.Warn("%s: no profile of the rank: the execution trace is discarded, because it has no times", t.file)
		}
	}
	return result, nil
}

// Event implements [kineto.Completion].
func (c *completion) Event(e *kineto.Event) error { return c.p.add(e) }

// Groups implements [kineto.Completion].
func (c *completion) Groups(rank int64) ([]kineto.Group, error) {
	p := c.p
	p.sort()
	if c.t = c.traces[rank]; c.single {
		for _, t := range c.traces {
			c.t = t
		}
	}
	t := c.t
	if t == nil {
		return nil, nil
	}
	if err := t.match(p); err != nil {
		return nil, err
	}
	t.completeAll()
	t.matchGloo(p)
	c.comms = make(map[calledAt]*kineto.Comm)
	for i := range p.host {
		h := &p.host[i]
		if h.op == none {
			continue
		}
		if k := t.ops[h.op].talk; k != nil && !k.direct {
			c.comms[calledAt{h.process + "/" + h.thread, h.start, h.name}] = k.comm()
		}
	}
	if err := c.note(); err != nil {
		return nil, err
	}
	var groups []kineto.Group
	for _, g := range t.groups {
		k := kineto.Group{Name: g.Name, About: g.About}
		for _, r := range g.Ranks {
			if r < 0 || r > mostRank {
				return nil, format.FileErrorf(t.file, "expected ranks of 0 to %d in the process group %q, found %d",
					int64(mostRank), g.Name, r)
			}
			k.Ranks = append(k.Ranks, int32(r))
		}
		groups = append(groups, k)
	}
	return groups, nil
}

// mostRank is the largest rank of a process group.
const mostRank = 1<<31 - 1

// Comm implements [kineto.Completion].
func (c *completion) Comm(thread string, start dag.Time, name string) *kineto.Comm {
	return c.comms[calledAt{thread, start, name}]
}

// Device implements [kineto.Completion].
func (c *completion) Device(ordinal int32) (flops int64, attrs string) {
	n := c.notes[ordinal]
	return n.flops, n.attrs
}

// comm returns the communication for the profile.
func (k *talk) comm() *kineto.Comm {
	c := &kineto.Comm{Call: k.call, In: k.bytes, Out: k.out, Group: k.group, Seq: k.seq, Peer: k.peer, Start: k.start,
		Stride: k.stride, Size: k.size}
	if k.even && k.subkind == dag.Alltoallv {
		c.Call = "all_to_all"
	}
	if k.kind == dag.Recv {
		c.In, c.Out = 0, max(k.bytes, k.out)
	}
	return c
}

// matchGloo matches annotations of Gloo, which are on other threads in the profile, by their order, if the profile has
// as many of a name as the trace.
func (t *trace) matchGloo(p *profile) {
	const prefix = "gloo:"
	matched := make(map[int]bool)
	free := make(map[string][]int) // by name: ops of the profile by start
	for i := range p.host {
		h := &p.host[i]
		if h.op != none {
			matched[h.op] = true
		} else if strings.HasPrefix(h.name, prefix) {
			free[h.name] = append(free[h.name], i)
		}
	}
	waiting := make(map[string][]int)
	for i := range t.ops { // in the order of calls
		if o := &t.ops[i]; !matched[i] && strings.HasPrefix(o.Name, prefix) {
			waiting[o.Name] = append(waiting[o.Name], i)
		}
	}
	for name, ops := range waiting {
		if len(free[name]) == len(ops) {
			for k, i := range ops {
				p.host[free[name][k]].op = i
			}
		}
	}
}

// note finds the operators of device ops. The floating-point operations of an operator are those of its longest kernel.
func (c *completion) note() error {
	t, p := c.t, c.p
	calls, err := t.callersOf(p)
	if err != nil {
		return err
	}
	flops := t.countFlops()
	c.notes = make(map[int32]deviceNote, len(p.devices))
	longest := make(map[int]int) // by operator: device op
	for i := range t.ops {
		for _, k := range calls[i] {
			c.notes[p.devices[k].ordinal] = deviceNote{attrs: t.ops[i].describe()}
			for at, steps := i, 0; at != none && steps < mostCallers; at, steps = t.ops[at].parent, steps+1 {
				if flops[at] == 0 {
					continue
				}
				if other, ok := longest[at]; !ok || p.devices[k].took > p.devices[other].took {
					longest[at] = k
				}
				break
			}
		}
	}
	for at, k := range longest {
		n := c.notes[p.devices[k].ordinal]
		n.flops = flops[at]
		c.notes[p.devices[k].ordinal] = n
	}
	return nil
}

// longestShapes is the longest text of the shapes of tensors that is kept of an operator.
const longestShapes = 1 << 10

// describe returns the attribute of the kernels that an operator launched.
func (o *op) describe() string {
	text := fmt.Sprintf(`"pytorch":{"et_id":%d`, o.ID)
	if len(o.shapes) > 0 {
		text += `,"inputs":` + o.shapes
	}
	if len(o.outShapes) > 0 {
		text += `,"outputs":` + o.outShapes
	}
	return text + "}"
}

// countFlops returns the floating-point operations of each op: those of matrix products and convolutions, by the shapes
// of their tensors. The innermost of nested operators counts.
func (t *trace) countFlops() []int64 {
	flops := make([]int64, len(t.ops))
	inner := make([]bool, len(t.ops))
	for i := range t.ops {
		o := &t.ops[i]
		if o.device {
			continue
		}
		if flops[i] = flopsOf(o.Name, o.shapes, o.outShapes); flops[i] == 0 {
			continue
		}
		for at, steps := o.parent, 0; at != none && steps < mostNestedOps; at, steps = t.ops[at].parent, steps+1 {
			if inner[at] {
				break
			}
			inner[at] = true
		}
	}
	for i := range flops {
		if inner[i] {
			flops[i] = 0
		}
	}
	return flops
}

// addFlops adds the floating-point operations and the bytes of tensors to the nodes of a trace without times.
func (t *trace) addFlops() {
	t.findCallers()
	for i, flops := range t.countFlops() {
		if o := &t.ops[i]; flops > 0 && o.talk == nil {
			o.Attr = append(o.Attr, chakra.Int64("num_ops", flops), chakra.Uint64("tensor_size", uint64(o.moved)))
		}
	}
}

// mostNestedOps is the largest number of operators around another that are searched.
const mostNestedOps = 64

// flopsOf returns the floating-point operations of an operator, two for each product of a matrix product or
// convolution; 0 for other operators.
func flopsOf(name, inputs, outputs string) int64 {
	first, ok := flopsInputs[name]
	if !ok {
		return 0
	}
	var in, out []json.RawMessage
	if json.Unmarshal([]byte(inputs), &in) != nil || len(in) < first+2 {
		return 0
	}
	a, b := dims(in[first]), dims(in[first+1])
	total := int64(2)
	times := func(sizes ...int64) {
		for _, s := range sizes {
			if s < 0 || s > 0 && total > mostFlops/s {
				total = 0
				return
			}
			total *= s
		}
	}
	switch n := len(a); {
	case strings.Contains(name, "conv"):
		if json.Unmarshal([]byte(outputs), &out) != nil || len(out) < 1 || len(b) < 3 || len(dims(out[0])) < 3 {
			return 0
		}
		times(dims(out[0])...)
		times(b[1:]...) // channels of a group, and the kernel
	case name == "aten::linear":
		if len(b) != 2 || n < 1 || a[n-1] != b[1] {
			return 0
		}
		times(a...)
		times(b[0])
	case n < 2 || n != len(b) || a[n-1] != b[n-2]:
		return 0
	default:
		times(a...)
		times(b[n-1])
	}
	return total
}

// mostFlops is the largest number of floating-point operations of an operator.
const mostFlops = 1 << 62

// flopsInputs are the operators whose floating-point operations are counted, with the number of their first factor.
var flopsInputs = map[string]int{
	"aten::mm": 0, "aten::bmm": 0, "aten::linear": 0, "aten::addmm": 1, "aten::addmm_": 1, "aten::baddbmm": 1,
	"aten::baddbmm_": 1, "aten::convolution": 0, "aten::conv1d": 0, "aten::conv2d": 0, "aten::conv3d": 0,
}

// dims returns the sizes of a tensor; nil if they are no list of numbers.
func dims(shape json.RawMessage) (sizes []int64) {
	if json.Unmarshal(shape, &sizes) != nil {
		return nil
	}
	return sizes
}
