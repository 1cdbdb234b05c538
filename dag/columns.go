package dag

import (
	"math"
	"slices"
)

// FieldID is a field of an op: the column of a [Rank] and the row of [Fields].
type FieldID uint8

// The fields, in the order in which files store them.
const (
	FieldKind FieldID = iota
	FieldSubkind
	FieldBytes
	FieldRecvBytes
	FieldPeer
	FieldTag
	FieldComm
	FieldDuration
	FieldFlops
	FieldRelease
	FieldStream
	FieldNIC
	FieldJob
	FieldHost
	FieldDims
	FieldPriority
	FieldDeps
	FieldStartDeps
	FieldOrder
	FieldStartOrder
	FieldName
	FieldAttrs
	FieldMeasuredStart
	FieldMeasuredEnd
	FieldStep
	NumFields
)

// ValueRange is the range of valid values of a field.
type ValueRange uint8

// The ranges.
const (
	AnyValue    ValueRange = iota
	NotNegative            // 0 or more
	CommIndex              // an index of Trace.Comms
	JobIndex               // an index of Meta.Jobs, or 0 without jobs
	StepNumber             // 0 to Meta.Steps
)

// Field describes a column of [Rank]. Code that handles all columns alike uses [Fields]; code that reads one column
// at every op uses the field of Rank.
type Field struct {
	Name   string // in listings, messages and files; without a unit
	Plural string // in messages about the length of the column; "" for columns with their own checks
	Lost   string // reported by formats that cannot store the field; "" if formats report it themselves
	Range  ValueRange
	Replay bool                 // read by backends
	Since  int                  // minor version of the model, 1.Since, that introduced it
	Of     func(r *Rank) Values // returns the column of a rank
}

// Fields describes all fields, by FieldID. A new field needs a column in Rank and a row here.
var Fields = [NumFields]Field{
	FieldKind: {
		Name: "kind", Replay: true,
		Of: func(r *Rank) Values { return (*Column[Kind])(&r.Kind) },
	},
	FieldSubkind: {
		Name: "subkind", Plural: "subkinds", Replay: true,
		Of: func(r *Rank) Values { return &r.Subkind },
	},
	FieldBytes: {
		Name: "bytes", Plural: "bytes", Range: NotNegative, Replay: true,
		Of: func(r *Rank) Values { return &r.Bytes },
	},
	FieldRecvBytes: {
		Name: "recv_bytes", Plural: "recv_bytes", Lost: "received sizes", Range: NotNegative, Replay: true,
		Of: func(r *Rank) Values { return &r.RecvBytes },
	},
	FieldPeer: {
		Name: "peer", Plural: "peers", Replay: true,
		Of: func(r *Rank) Values { return &r.Peer },
	},
	FieldTag: {
		Name: "tag", Plural: "tags", Replay: true,
		Of: func(r *Rank) Values { return &r.Tag },
	},
	FieldComm: {
		Name: "comm", Plural: "communicators", Lost: "communicators", Range: CommIndex, Replay: true,
		Of: func(r *Rank) Values { return &r.Comm },
	},
	FieldDuration: {
		Name: "duration", Plural: "durations", Lost: "durations", Range: NotNegative, Replay: true,
		Of: func(r *Rank) Values { return &r.Duration },
	},
	FieldFlops: {
		Name: "flops", Plural: "flops", Lost: "flops", Range: NotNegative, Replay: true,
		Of: func(r *Rank) Values { return &r.Flops },
	},
	FieldRelease: {
		Name: "release", Plural: "release times", Range: NotNegative, Replay: true,
		Of: func(r *Rank) Values { return &r.Release },
	},
	FieldStream: {
		Name: "stream", Plural: "streams", Lost: "streams", Range: NotNegative, Replay: true,
		Of: func(r *Rank) Values { return &r.Stream },
	},
	FieldNIC: {
		Name: "nic", Plural: "nics", Lost: "NICs", Range: NotNegative, Replay: true,
		Of: func(r *Rank) Values { return &r.NIC },
	},
	FieldJob: {
		Name: "job", Plural: "jobs", Lost: "jobs", Range: JobIndex,
		Of: func(r *Rank) Values { return &r.Job },
	},
	FieldHost: {
		Name: "host", Plural: "hosts", Lost: "execution on the host", Range: NotNegative, Replay: true, Since: 1,
		Of: func(r *Rank) Values { return &r.Host },
	},
	FieldDims: {
		Name: "dims", Plural: "dimensions", Lost: "network dimensions of collectives", Range: NotNegative, Replay: true,
		Since: 1,
		Of:    func(r *Rank) Values { return &r.Dims },
	},
	FieldPriority: {
		Name: "priority", Plural: "priorities", Lost: "priorities", Replay: true, Since: 1,
		Of: func(r *Rank) Values { return &r.Priority },
	},
	FieldDeps: {
		Name: "deps", Replay: true,
		Of: func(r *Rank) Values { return &r.Deps },
	},
	FieldStartDeps: {
		Name: "start_deps", Replay: true,
		Of: func(r *Rank) Values { return &r.StartDeps },
	},
	FieldOrder: {
		Name: "dependents", Replay: true,
		Of: func(r *Rank) Values { return &r.Order },
	},
	FieldStartOrder: {
		Name: "start_dependents", Replay: true,
		Of: func(r *Rank) Values { return &r.StartOrder },
	},
	FieldName: {
		Name: "name", Plural: "names",
		Of: func(r *Rank) Values { return &r.Name },
	},
	FieldAttrs: {
		Name: "attrs", Plural: "attrs",
		Of: func(r *Rank) Values { return &r.Attrs },
	},
	FieldMeasuredStart: {
		Name: "measured_start", Plural: "measured times", Lost: "measured times",
		Of: func(r *Rank) Values { return (*Times)(&r.MeasuredStart) },
	},
	FieldMeasuredEnd: { // messages mention it with measured_start
		Name: "measured_end",
		Of:   func(r *Rank) Values { return (*Times)(&r.MeasuredEnd) },
	},
	FieldStep: {
		Name: "step", Plural: "steps", Lost: "steps", Range: StepNumber, Since: 3,
		Of: func(r *Rank) Values { return &r.Step },
	},
}

// Values is a column of any type: a pointer to a [Column] of [Kind], [Subkind], int32, int64 or [Time], or a *[Narrow],
// *[Edges], *[Text] or *[Times].
type Values interface {
	// Len returns the number of stored values. All later ops have no value: zero, empty or Unmeasured.
	Len() int
	// Present returns the number of ops with a value: one that is not zero, empty or Unmeasured.
	Present() int64
	// trim releases spare capacity.
	trim()
	// clone copies a column of the same type.
	clone(from Values)
	// reserve allocates space in an empty column for as many values as a column of the same type has.
	reserve(like Values)
	// gather sets an empty column to the values of the given ops of a column of the same type. A negative op has no
	// value. It returns false if the values do not fit.
	gather(from Values, ops []int32) bool
	// set sets the value of op i to that of op k of a column of the same type. It returns false if the value does not
	// fit.
	set(i int, from Values, k int) bool
	// differ calls report for each op below n, ascending, whose value differs from that in a column of the same type.
	differ(other Values, n int, report func(i int))
}

// Copier copies the fields of ops from one rank to another, column by column.
type Copier struct {
	columns []struct{ from, to Values }
}

// Reset sets the ranks. Copy copies the columns with values in from, without the excepted columns and without edges.
func (c *Copier) Reset(to, from *Rank, except ...FieldID) {
	c.columns = c.columns[:0]
	for id := range Fields {
		f := &Fields[id]
		column := f.Of(from)
		if _, ok := column.(*Edges); ok || column.Len() == 0 || slices.Contains(except, FieldID(id)) {
			continue
		}
		c.columns = append(c.columns, struct{ from, to Values }{column, f.Of(to)})
	}
}

// Copy copies op k of the source to op i, which must not precede an op that was copied. It returns false if the
// strings do not fit.
func (c *Copier) Copy(i, k int) bool {
	ok := true
	for _, column := range c.columns {
		ok = column.to.set(i, column.from, k) && ok
	}
	return ok
}

// Gather returns a rank of the given ops of r, without dependencies. A negative op becomes a calc without values. It
// returns false if the strings do not fit.
func (r *Rank) Gather(ops []int32) (Rank, bool) {
	out := new(Rank)
	for id := range Fields {
		f := &Fields[id]
		column := f.Of(r)
		if _, ok := column.(*Edges); ok || column.Len() == 0 && FieldID(id) != FieldKind {
			continue
		}
		if !f.Of(out).gather(column, ops) {
			return Rank{}, false
		}
	}
	return *out, true
}

// Clone returns a copy of the rank that shares no memory with it.
func (r *Rank) Clone() *Rank {
	out := new(Rank)
	for id := range Fields {
		f := &Fields[id]
		f.Of(out).clone(f.Of(r))
	}
	return out
}

// trim releases the spare capacity of all columns.
func (r *Rank) trim() {
	for id := range Fields {
		Fields[id].Of(r).trim()
	}
}

// Len returns the number of stored values. All later ops have the value zero.
func (c *Column[T]) Len() int {
	return len(*c)
}

// Present returns the number of values that are not zero.
func (c *Column[T]) Present() int64 {
	n := int64(0)
	for _, v := range *c {
		if v != 0 {
			n++
		}
	}
	return n
}

func (c *Column[T]) trim() {
	*c = trim(*c)
}

func (c *Column[T]) clone(from Values) {
	*c = slices.Clone(*from.(*Column[T]))
}

func (c *Column[T]) reserve(like Values) {
	*c = room(*like.(*Column[T]))
}

func (c *Column[T]) gather(from Values, ops []int32) bool {
	values, out := *from.(*Column[T]), make([]T, len(ops))
	for i, op := range ops {
		if uint(op) < uint(len(values)) {
			out[i] = values[op]
		}
	}
	*c = out
	return true
}

func (c *Column[T]) set(i int, from Values, k int) bool {
	c.Set(i, from.(*Column[T]).At(k))
	return true
}

// Present returns the number of values that are not zero.
func (c *Narrow) Present() int64 {
	n := int64(0)
	for i := range c.Len() {
		if c.At(i) != 0 {
			n++
		}
	}
	return n
}

func (c *Narrow) trim() {
	c.small, c.wide = trim(c.small), trim(c.wide)
}

func (c *Narrow) reserve(like Values) {
	*c = Narrow{small: room(like.(*Narrow).small)}
}

func (c *Narrow) clone(from Values) {
	f := from.(*Narrow)
	*c = Narrow{small: slices.Clone(f.small), wide: slices.Clone(f.wide)}
}

func (c *Narrow) gather(from Values, ops []int32) bool {
	f := from.(*Narrow)
	var values [1024]int32
	for first := 0; first < len(ops); first += len(values) {
		part := ops[first:min(first+len(values), len(ops))]
		for i, op := range part {
			if values[i] = 0; op >= 0 {
				values[i] = f.At(int(op))
			}
		}
		c.SetRange(first, values[:len(part)])
	}
	return true
}

func (c *Narrow) set(i int, from Values, k int) bool {
	c.Set(i, from.(*Narrow).At(k))
	return true
}

// Present returns the number of strings that are not empty.
func (c *Text) Present() int64 {
	n, start := int64(0), uint32(0)
	for _, end := range c.end {
		if end != start {
			n++
		}
		start = end
	}
	return n
}

func (c *Text) trim() {
	c.end, c.data = trim(c.end), trim(c.data)
}

func (c *Text) reserve(like Values) {
	l := like.(*Text)
	*c = Text{end: room(l.end), data: room(l.data)}
}

func (c *Text) clone(from Values) {
	f := from.(*Text)
	*c = Text{end: slices.Clone(f.end), data: slices.Clone(f.data)}
}

func (c *Text) gather(from Values, ops []int32) bool {
	f := from.(*Text)
	for i, op := range ops {
		if op >= 0 && !c.AppendFrom(i, f, int(op)) {
			return false
		}
	}
	return true
}

func (c *Text) set(i int, from Values, k int) bool {
	return c.AppendFrom(i, from.(*Text), k)
}

// Len returns the number of stored lists. All later ops have an empty list.
func (e *Edges) Len() int {
	return len(e.End)
}

// Present returns the number of lists that are not empty.
func (e *Edges) Present() int64 {
	n, start := int64(0), uint32(0)
	for _, end := range e.End {
		if end != start {
			n++
		}
		start = end
	}
	return n
}

func (e *Edges) trim() {
	e.End, e.Off = trim(e.End), trim(e.Off)
}

func (e *Edges) reserve(like Values) {
	l := like.(*Edges)
	*e = Edges{End: room(l.End), Off: room(l.Off)}
}

func (e *Edges) clone(from Values) {
	f := from.(*Edges)
	*e = Edges{End: slices.Clone(f.End), Off: slices.Clone(f.Off)}
}

// Edges store indices of ops relative to their own op, so they cannot be copied op by op: code that renumbers ops
// builds new edges.

func (e *Edges) gather(Values, []int32) bool {
	panic("dependencies cannot be copied op by op")
}

func (e *Edges) set(int, Values, int) bool {
	panic("dependencies cannot be copied op by op")
}

// Times is a column of measured times. Ops beyond its end are Unmeasured.
type Times []Time

// At returns the time of op i.
func (c Times) At(i int) Time {
	if uint(i) < uint(len(c)) {
		return c[i]
	}
	return Unmeasured
}

// Len returns the number of stored times. All later ops are Unmeasured.
func (c *Times) Len() int {
	return len(*c)
}

// Present returns the number of times that are not Unmeasured.
func (c *Times) Present() int64 {
	n := int64(0)
	for _, v := range *c {
		if v != Unmeasured {
			n++
		}
	}
	return n
}

func (c *Times) trim() {
	*c = trim(*c)
}

func (c *Times) reserve(like Values) {
	*c = room(*like.(*Times))
}

func (c *Times) clone(from Values) {
	*c = slices.Clone(*from.(*Times))
}

func (c *Times) gather(from Values, ops []int32) bool {
	f, out := *from.(*Times), make([]Time, len(ops))
	for i, op := range ops {
		out[i] = f.At(int(op))
	}
	*c = out
	return true
}

func (c *Times) set(i int, from Values, k int) bool {
	v := from.(*Times).At(k)
	if i >= len(*c) && v == Unmeasured {
		return true
	}
	for len(*c) <= i {
		*c = append(*c, Unmeasured)
	}
	(*c)[i] = v
	return true
}

// Limit returns the exclusive upper bound of the field's values in a trace with the given number of communicators and
// metadata; the lower bound is 0. It returns 0 if the field may have any value.
func (f *Field) Limit(comms int, m *Meta) uint64 {
	switch f.Range {
	case NotNegative:
		return math.MaxInt64 + 1
	case CommIndex:
		return uint64(max(1, comms))
	case JobIndex:
		return uint64(max(1, len(m.Jobs)))
	case StepNumber:
		return uint64(max(0, m.Steps)) + 1
	}
	return 0
}
