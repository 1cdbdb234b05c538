package formats

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/tracedag/tracedag/dag"
	"github.com/tracedag/tracedag/formats/format"
)

// The names of differences that are not fields.
const (
	diffOps   = "ops"
	diffNodes = "nodes"
	diffComms = "communicator ranks"
)

// lossNames are the differences that losses name, by a part of their text.
var lossNames = map[string][]string{
	"release times":              {"release"},
	"times rounded":              {"release"},
	"start times":                {"release", "deps"},
	"rounded":                    {"duration"},
	"durations":                  {"duration"},
	"sizes":                      {"bytes", "recv_bytes"},
	"received sizes":             {"recv_bytes"},
	"tags":                       {"tag"},
	"flops":                      {"flops"},
	"floating-point":             {"flops"},
	"communicators":              {"comm", diffComms},
	"streams":                    {"stream"},
	"NICs":                       {"nic"},
	"peers":                      {"peer"},
	"roots":                      {"peer"},
	"wildcard":                   {"peer", "tag"},
	"jobs":                       {"job"},
	"host":                       {"host"},
	"dimensions":                 {"dims"},
	"priorities":                 {"priority"},
	"names":                      {"name"},
	"no label":                   {"name"},
	"attributes":                 {"attrs"},
	"node numbers":               {"attrs"},
	"measured times":             {"measured_start", "measured_end"},
	"dependencies":               {"deps", "start_deps", "dependents", "start_dependents"},
	"orders of dependents":       {"dependents", "start_dependents"},
	"markers":                    {"subkind", "duration"},
	"addresses":                  {"tag"},
	format.LossNodes:             {diffNodes},
	"skipped":                    {diffOps},
	"decomposed":                 {diffOps},
	"written as computation":     {diffOps},
	"ranks, which the units":     {diffOps},
	"ranks without messages":     {diffOps, diffComms},
	"wait for an event":          {diffOps},
	"computation after the last": {diffOps},
	"become calcs of a clock":    {diffOps},
	"which dependencies replace": {diffOps},
}

// losses returns the losses of a trace.
func (c *conformance) losses(t *dag.Trace) []format.Loss {
	if c.format.Losses == nil {
		return nil
	}
	return c.format.Losses(t)
}

// checkLosses compares the losses of traces with the differences after they were written and read. The traces are
// that of the sample, and that with one change each.
func (c *conformance) checkLosses(s sample) {
	if !c.written() {
		return
	}
	t := s.trace
	if t == nil {
		t = func() *dag.Trace { return c.mustRead(s.files) }
	}
	if l := c.losses(t()); len(l) > 0 && !s.loses {
		c.errorf("the trace of a sample loses %v", l)
	}
	c.checkLossesOf("as it is", t())
	for _, v := range variants(t, c.oneSize) {
		if problems := dag.Validate(v.trace); len(problems) > 0 {
			c.Fatalf("%s: %v", v.name, problems[0])
		}
		c.checkLossesOf(v.name, v.trace)
	}
}

func (c *conformance) checkLossesOf(name string, t *dag.Trace) {
	losses := c.losses(t)
	files, err := c.write(t, format.WriteOptions{})
	if err != nil {
		return // a trace that the format cannot hold at all
	}
	r := c.read(files, format.ReadOptions{})
	if r.err != nil {
		c.errorf("%s: %v, reading what was written:\n%s", name, r.err, show(files))
		return
	}
	if problems := dag.Validate(r.trace); len(problems) > 0 {
		c.errorf("%s: %v, reading what was written:\n%s", name, problems[0], show(files))
	}
	named := map[string]bool{}
	for _, l := range losses {
		known := false
		for part, names := range lossNames {
			if strings.Contains(l.Kind, part) {
				known = true
				for _, name := range names {
					named[name] = true
				}
			}
		}
		if !known {
			c.errorf("%s: the suite does not know what the loss %q names", name, l.Kind)
		}
	}
	if c.rewrites {
		return
	}
	for _, d := range c.changed(t, r.trace) {
		if !named[d] && !named[diffOps] {
			c.errorf("%s: %q differs and no loss names it: %v", name, d, losses)
		}
	}
}

// changed returns the names of the differences between a trace and the one that is read back.
func (c *conformance) changed(t, back *dag.Trace) []string {
	t, back = c.comparable(t), c.comparable(back)
	return differences(t, back, c.sorted)
}

// comparable returns a trace without the attributes that describe lines of a file, and the communicators that no op
// names.
func (c *conformance) comparable(t *dag.Trace) *dag.Trace {
	out := *t
	out.Ranks = dag.CopyRanks(t.Ranks)
	used := int32(0)
	for i := range out.Ranks {
		r := out.Ranks[i]
		if r.Len() == 0 {
			continue
		}
		var attrs dag.Text
		for op := range r.Len() {
			used = max(used, r.Comm.At(op))
			attrs.Append(op, c.foreignAttrs(t, r.Attrs.At(op)))
		}
		r.Attrs = attrs
	}
	out.Comms = t.Comms[:min(int(used)+1, len(t.Comms))]
	return &out
}

// foreignAttrs returns attributes without those of the format itself.
func (c *conformance) foreignAttrs(t *dag.Trace, text string) string {
	var all map[string]json.RawMessage
	if text == "" || json.Unmarshal([]byte(text), &all) != nil {
		return text
	}
	for _, key := range c.ownAttrs {
		if key == "*" && t.Attrs != "" {
			return ""
		}
		delete(all, key)
	}
	if len(all) == 0 {
		return ""
	}
	out, err := json.Marshal(all)
	if err != nil {
		panic(err)
	}
	return string(out)
}

// variant is a trace with a change.
type variant struct {
	name  string
	trace *dag.Trace
}

// value is a value of a field that most formats cannot hold.
type value struct {
	field dag.FieldID
	n     int64
	text  string
	kinds []dag.Kind // that it is set for; nil: all
}

// values has no fields without a meaning for a kind, such as the tag of a calc.
var values = []value{
	{field: dag.FieldBytes, n: 12345, kinds: []dag.Kind{dag.Calc, dag.Mem, dag.IO}},
	{field: dag.FieldRecvBytes, n: 77, kinds: []dag.Kind{dag.Coll}},
	{field: dag.FieldPeer, n: 1, kinds: []dag.Kind{dag.IO}},
	{field: dag.FieldTag, n: 9000, kinds: []dag.Kind{dag.Coll, dag.IO}},
	{field: dag.FieldDuration, n: 1},
	{field: dag.FieldDuration, n: int64(1500 * dag.Nanosecond)},
	{field: dag.FieldDuration, n: int64(3 * dag.Millisecond)},
	{field: dag.FieldFlops, n: 1000},
	{field: dag.FieldRelease, n: 1},
	{field: dag.FieldRelease, n: int64(20 * dag.Millisecond)},
	{field: dag.FieldStream, n: 3},
	{field: dag.FieldStream, n: 300},
	{field: dag.FieldNIC, n: 3},
	{field: dag.FieldNIC, n: 300},
	{field: dag.FieldJob, n: 1},
	{field: dag.FieldHost, n: 1},
	{field: dag.FieldDims, n: 3},
	{field: dag.FieldPriority, n: -5},
	{field: dag.FieldName, text: "x"},
	{field: dag.FieldName, text: "two words \"quoted\", é"},
	{field: dag.FieldName, text: "\xff"},
	{field: dag.FieldAttrs, text: `{"other":1}`},
	{field: dag.FieldMeasuredStart, n: int64(dag.Millisecond)},
	{field: dag.FieldMeasuredStart, n: 1},
}

// variants returns traces with a change of one field of the last op of each kind, and with other changes that formats
// may lose. fresh returns the trace without them.
func variants(fresh func() *dag.Trace, oneSize bool) []variant {
	var all []variant
	add := func(name string, change func(t *dag.Trace)) {
		t := fresh()
		change(t)
		all = append(all, variant{name, t})
	}
	base := fresh()
	for kind := range dag.Kind(dag.NumKinds) {
		rank, op := last(base, kind)
		if op < 0 {
			continue
		}
		for _, v := range values {
			if v.kinds != nil && !slices.Contains(v.kinds, kind) {
				continue
			}
			add(fmt.Sprintf("%s %d%q of a %v", dag.Fields[v.field].Name, v.n, v.text, kind), func(t *dag.Trace) {
				v.set(t, rank, op)
			})
		}
	}
	for kind := range dag.Kind(dag.NumKinds) {
		add(fmt.Sprintf("one more %v", kind), func(t *dag.Trace) { appendOp(t, kind) })
	}
	add("other nodes", func(t *dag.Trace) {
		t.Nodes = nil
		for i := range t.Ranks {
			t.Nodes = append(t.Nodes, int32(len(t.Ranks)-i-1))
		}
	})
	add("other tags", func(t *dag.Trace) {
		eachMessage(t, func(r *dag.Rank, op int) {
			if tag := r.Tag.At(op); tag >= 0 {
				r.Tag.Set(op, 3*tag+5)
			}
		})
	})
	add("other sizes", func(t *dag.Trace) {
		eachMessage(t, func(r *dag.Rank, op int) { r.Bytes.Set(op, r.Bytes.At(op)+1) })
	})
	if !oneSize {
		add("larger receives", func(t *dag.Trace) {
			eachMessage(t, func(r *dag.Rank, op int) {
				if r.Kind[op] == dag.Recv {
					r.Bytes.Set(op, r.Bytes.At(op)+1)
				}
			})
		})
	}
	add("another communicator", func(t *dag.Trace) {
		members := []int32{}
		for i := range t.Ranks {
			members = slices.Insert(members, 0, int32(i))
		}
		t.Comms = append(slices.Clone(t.Comms), dag.NewComm("", members))
		eachMessage(t, func(r *dag.Rank, op int) { r.Comm.Set(op, int32(len(t.Comms)-1)) })
	})
	for _, start := range []bool{false, true} {
		add(fmt.Sprintf("one more dependency, of the start: %v", start), func(t *dag.Trace) {
			r := t.Ranks[0]
			for i := range t.Ranks {
				if t.Ranks[i].Len() > r.Len() {
					r = t.Ranks[i]
				}
			}
			edges := &r.Deps
			if start {
				edges = &r.StartDeps
			}
			addEdge(edges, r.Len(), r.Len()-1, int32(r.Len()-1))
		})
	}
	return all
}

// last returns the last op of a kind.
func last(t *dag.Trace, kind dag.Kind) (rank, op int) {
	for rank = len(t.Ranks) - 1; rank >= 0; rank-- {
		for op = t.Ranks[rank].Len() - 1; op >= 0; op-- {
			if t.Ranks[rank].Kind[op] == kind {
				return rank, op
			}
		}
	}
	return 0, -1
}

func eachMessage(t *dag.Trace, change func(r *dag.Rank, op int)) {
	for i := range t.Ranks {
		for op, kind := range t.Ranks[i].Kind {
			if kind == dag.Send || kind == dag.Recv {
				change(t.Ranks[i], op)
			}
		}
	}
}

// set sets the field of an op.
func (v *value) set(t *dag.Trace, rank, op int) {
	r := t.Change(rank)
	switch column := dag.Fields[v.field].Of(r).(type) {
	case *dag.Column[int32]:
		column.Set(op, int32(v.n))
	case *dag.Column[int64]:
		column.Set(op, v.n)
	case *dag.Column[dag.Time]:
		column.Set(op, dag.Time(v.n))
	case *dag.Narrow:
		column.Set(op, int32(v.n))
	case *dag.Text:
		var changed dag.Text
		for i := range r.Len() {
			text := column.At(i)
			if i == op {
				text = v.text
			}
			changed.Append(i, text)
		}
		*column = changed
	case *dag.Times:
		r.MeasuredStart = measured(r.MeasuredStart, op, dag.Time(v.n))
		r.MeasuredEnd = measured(r.MeasuredEnd, op, dag.Time(2*v.n))
	default:
		panic(fmt.Sprintf("no values of %T", column))
	}
	if v.field == dag.FieldJob {
		t.Jobs = []string{"a", "b"}
	}
}

func measured(times []dag.Time, op int, at dag.Time) []dag.Time {
	times = slices.Clone(times)
	for len(times) <= op {
		times = append(times, dag.Unmeasured)
	}
	times[op] = at
	return times
}

// appendOp appends an op of a kind to a trace: a message to the first and last rank, a collective to all.
func appendOp(t *dag.Trace, kind dag.Kind) {
	final := len(t.Ranks) - 1
	add := func(rank int, op dag.Op) {
		r := t.Change(rank)
		i := r.Len()
		r.Kind = append(slices.Clone(r.Kind), op.Kind)
		r.Subkind.Set(i, op.Subkind)
		r.Bytes.Set(i, op.Bytes)
		r.Peer.Set(i, op.Peer)
		r.Tag.Set(i, op.Tag)
		r.Duration.Set(i, op.Duration)
	}
	switch kind {
	case dag.Calc:
		add(final, dag.Op{Duration: dag.Millisecond})
	case dag.Send, dag.Recv:
		add(0, dag.Op{Kind: dag.Send, Peer: int32(final), Bytes: 9, Tag: 99})
		add(final, dag.Op{Kind: dag.Recv, Peer: 0, Bytes: 9, Tag: 99})
	case dag.Coll:
		for rank := range t.Ranks {
			add(rank, dag.Op{Kind: dag.Coll, Subkind: dag.Allreduce, Bytes: 64})
		}
	case dag.Mem:
		add(final, dag.Op{Kind: dag.Mem, Subkind: dag.Load, Bytes: 64})
	case dag.IO:
		add(final, dag.Op{Kind: dag.IO, Subkind: dag.Read, Bytes: 512})
	}
}

// addEdge makes an op of a rank of n ops wait for one more. It comes first: formats that list only dependents, such as
// GOAL's binary, give the dependencies of an op in ascending order.
func addEdge(e *dag.Edges, n, op int, offset int32) {
	var changed dag.Edges
	for i := range n {
		offsets := slices.Clone(e.Of(i))
		if i == op && !slices.Contains(offsets, offset) {
			offsets = slices.Insert(offsets, 0, offset)
		}
		for _, off := range offsets {
			changed.Append(i, off)
		}
	}
	*e = changed
}

// differences returns the names of the fields and other parts in which two traces differ; nil if they are equal.
// If the order of ops does not matter, the values of each column of a rank are compared sorted, and dependencies not.
func differences(a, b *dag.Trace, anyOrder bool) []string {
	found := map[string]bool{}
	if len(a.Ranks) != len(b.Ranks) {
		return []string{diffOps}
	}
	for i := range a.Ranks {
		r, s := a.Ranks[i], b.Ranks[i]
		if r.Len() != s.Len() {
			return []string{diffOps}
		}
		for id := range dag.Fields {
			f := &dag.Fields[id]
			x, y := texts(f.Of(r), r.Len()), texts(f.Of(s), s.Len())
			if anyOrder {
				if _, ok := f.Of(r).(*dag.Edges); ok {
					continue
				}
				slices.Sort(x)
				slices.Sort(y)
			}
			if !slices.Equal(x, y) {
				found[f.Name] = true
			}
		}
	}
	if len(a.Comms) != len(b.Comms) || !slices.EqualFunc(a.Comms, b.Comms, sameMembers) {
		found[diffComms] = true
	}
	if format.Placed(a.Nodes) != format.Placed(b.Nodes) || format.Placed(a.Nodes) && !slices.Equal(a.Nodes, b.Nodes) {
		found[diffNodes] = true
	}
	return slices.Sorted(maps.Keys(found))
}

func sameMembers(a, b dag.Comm) bool {
	a.Name, b.Name = "", ""
	return a.Equal(&b)
}

// texts returns the values of a column of a rank of n ops.
func texts(column dag.Values, n int) []string {
	out := make([]string, n)
	for i := range out {
		switch column := column.(type) {
		case *dag.Column[dag.Kind]:
			out[i] = column.At(i).String()
		case *dag.Column[dag.Subkind]:
			out[i] = column.At(i).String()
		case *dag.Column[int32]:
			out[i] = strconv.Itoa(int(column.At(i)))
		case *dag.Column[int64]:
			out[i] = strconv.FormatInt(column.At(i), 10)
		case *dag.Column[dag.Time]:
			out[i] = strconv.FormatInt(int64(column.At(i)), 10)
		case *dag.Narrow:
			out[i] = strconv.Itoa(int(column.At(i)))
		case *dag.Text:
			out[i] = column.At(i)
		case *dag.Times:
			out[i] = strconv.FormatInt(int64(column.At(i)), 10)
		case *dag.Edges:
			out[i] = fmt.Sprint(column.Of(i))
		default:
			panic(fmt.Sprintf("no comparison of %T", column))
		}
	}
	return out
}
