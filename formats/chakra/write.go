// This file writes traces: every op becomes a node, either restored from its attributes or in a form that
// simulators accept.

package chakra

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/tracedag/tracedag/dag"
	"github.com/tracedag/tracedag/dag/attr"
	"github.com/tracedag/tracedag/formats/format"
)

// version is the schema version of files that come from no other file.
const version = "0.0.4"

// outputSize is the size of a write in bytes.
const outputSize = 256 << 10

func write(create func(suffix string) (io.Writer, error), t *dag.Trace, o format.WriteOptions) error {
	return writeFiles(create, t, o, false, ".et",
		func(b []byte, m *Metadata) []byte { return appendFrame(b, m.append) },
		func(b []byte, n *Node) []byte { return appendFrame(b, n.append) })
}

func writeJSON(create func(suffix string) (io.Writer, error), t *dag.Trace, o format.WriteOptions) error {
	return writeFiles(create, t, o, true, ".json",
		func(b []byte, m *Metadata) []byte {
			p := printer{b: b}
			p.metadata(m)
			return p.b
		},
		func(b []byte, n *Node) []byte {
			n.unwire()
			p := printer{b: b}
			p.node(n)
			return p.b
		})
}

// writeFiles writes a trace in the form of two functions that encode messages.
func writeFiles(create func(suffix string) (io.Writer, error), t *dag.Trace, o format.WriteOptions, json bool,
	ending string, metadata func([]byte, *Metadata) []byte, node func([]byte, *Node) []byte) error {
	p, err := newPlan(t, o)
	if err != nil {
		return err
	}
	if o.Losses != nil {
		if err := o.Losses(p.losses(json)); err != nil {
			return err
		}
	}
	p.warn(o)
	w := new(rankWriter)
	for rank := range t.Ranks {
		if err := w.begin(p, rank); err != nil {
			return err
		}
		file, err := create("." + strconv.Itoa(rank) + ending)
		if err != nil {
			return err
		}
		out := bufio.NewWriterSize(file, outputSize)
		m, recorded := p.metadata(rank)
		b := metadata(nil, &m)
		if !recorded && w.r.Len() == 0 {
			b = node(b, idleNode())
		}
		for k := range w.r.Len() {
			if _, err := out.Write(b); err != nil {
				return err
			}
			b = node(b[:0], w.node(w.inFile(k)))
		}
		if _, err := out.Write(b); err != nil {
			return err
		}
		if err := out.Flush(); err != nil {
			return err
		}
	}
	return p.writeGroups(create)
}

// metadata returns the metadata of a rank's file, and whether it comes from a file.
func (p *plan) metadata(rank int) (Metadata, bool) {
	if p.known != nil {
		if m, ok := p.known.metadataOf(rank); ok {
			return m, true
		}
	}
	return Metadata{Version: version}, false
}

// idleNode returns the node of a rank without ops, because ASTRA-sim refuses a file without nodes.
func idleNode() *Node {
	return &Node{Name: "idle", Type: CompNode, wired: appendUsual(nil, &dag.Op{Kind: dag.Calc}, "", attr.MemAccess{})}
}

// writeGroups writes the file of communicators, if there are any besides the one of all ranks.
func (p *plan) writeGroups(create func(suffix string) (io.Writer, error)) error {
	comms := p.t.Comms
	if len(comms) < 2 {
		return nil
	}
	file, err := create(groupsEnding)
	if err != nil {
		return err
	}
	out := bufio.NewWriterSize(file, outputSize)
	var b []byte
	for i := 1; i < len(comms); i++ {
		b = append(b[:0], ", "...)
		if i == 1 {
			b = append(b[:0], '{')
		}
		b = append(append(append(b, '"'), p.groups[i]...), `": [`...)
		for k, rank := range comms[i].Members() {
			if k > 0 {
				b = append(b, ", "...)
			}
			b = strconv.AppendInt(b, int64(rank), 10)
		}
		if _, err := out.Write(append(b, ']')); err != nil {
			return err
		}
	}
	if err := out.WriteByte('}'); err != nil {
		return err
	}
	return out.Flush()
}

// warn reports data that simulators refuse or ignore, unless it was read from such files.
func (p *plan) warn(o format.WriteOptions) {
	if o.Warn == nil {
		return
	}
	var idle, empty, own, refused, bcasts, gathers int64
	for rank := range p.t.Ranks {
		r := p.t.Ranks[rank]
		if _, recorded := p.metadata(rank); r.Len() == 0 {
			add(&idle, !recorded)
		}
		if p.known != nil {
			continue
		}
		for i, kind := range r.Kind {
			switch kind {
			case dag.Send:
				add(&empty, r.Bytes.At(i) == 0)
				add(&own, int(r.Peer.At(i)) == rank)
			case dag.Mem:
				access, _ := attr.ParseMemAccess(r.Attrs.At(i))
				add(&gathers, access.Gather > 1)
			case dag.Coll:
				subkind := r.Subkind.At(i)
				add(&bcasts, subkind == dag.Bcast)
				add(&refused, subkind == dag.Barrier || subkind == dag.Reduce || subkind == dag.Gather ||
					subkind == dag.Scatter)
			}
		}
	}
	for _, w := range [...]struct {
		count int64
		text  string
	}{
		{idle, "%d idle ranks get a computation of duration 0, because ASTRA-sim refuses files without nodes"},
		{empty, "%d messages have 0 bytes, which ASTRA-sim refuses"},
		{own, "%d messages go from a rank to itself, which ASTRA-sim refuses"},
		{refused, "%d ops of barriers, reduces, gathers or scatters, which ASTRA-sim refuses: lower them " +
			"(--lower collectives)"},
		{bcasts, "%d ops of bcasts, for which ASTRA-sim takes their recorded duration or 1 ns, " +
			"unless they are lowered (--lower collectives)"},
		{gathers, "%d accesses to memory gather or reduce data of several ranks on the way, which ASTRA-sim ignores: " +
			"it accesses the data of each rank alone"},
	} {
		if w.count > 0 {
			o.Warn(w.text, w.count)
		}
	}
}

// opAttrs are the attributes of an op, as rankReader.setAttrs writes them.
type opAttrs struct {
	ID           *uint64         `json:"id"`
	Place        *int64          `json:"place"`
	Ctrl         int             `json:"ctrl"`
	DanglingCtrl []dangling      `json:"dangling_ctrl"`
	DanglingData []dangling      `json:"dangling_data"`
	Duration     *uint64         `json:"duration"`
	Start        *uint64         `json:"start"`
	Inputs       *storedIO       `json:"inputs"`
	Outputs      *storedIO       `json:"outputs"`
	Type         string          `json:"type"`
	Layout       string          `json:"layout"`
	Attr         json.RawMessage `json:"attr"`
	Wire         []byte          `json:"wire"`
	Unknown      []byte          `json:"unknown"`
	attr.MemAccess
}

type storedIO struct {
	Values  string `json:"values"`
	Shapes  string `json:"shapes"`
	Types   string `json:"types"`
	Unknown []byte `json:"unknown"`
}

func (s *storedIO) io() *IOInfo {
	if s == nil {
		return nil
	}
	return &IOInfo{s.Values, s.Shapes, s.Types, s.Unknown}
}

// rankWriter converts the ops of a rank to nodes. Ranks share it.
type rankWriter struct {
	p     *plan
	r     *dag.Rank
	rank  int
	attrs []*opAttrs // of each op with attributes of this format
	ids   []uint64   // nil: the op's index
	order []int32    // the ops in file order; nil: op order
	start [][]int32  // per op: the ops that must finish before the starts that it waits for

	n          Node
	a          []Attr
	usual      []byte
	foreign    int64 // ops whose attributes are of another format
	renumbered bool  // the node numbers differ from those in the ops' attributes

	ticked dag.Time // end of the clock's nodes so far
}

// begin begins a rank.
func (w *rankWriter) begin(p *plan, rank int) error {
	*w = rankWriter{p: p, r: p.t.Ranks[rank], rank: rank, attrs: w.attrs[:0], a: w.a, usual: w.usual,
		n: Node{CtrlDeps: w.n.CtrlDeps, DataDeps: w.n.DataDeps}}
	for i := range w.r.Attrs.Len() {
		text := w.r.Attrs.At(i)
		var a *opAttrs
		if text != "" {
			a = new(opAttrs)
			if !p.ours(w.r.Job.At(i)) || json.Unmarshal([]byte(text), a) != nil {
				if a = otherAttrs(text, w.r.Kind[i]); a == nil {
					w.foreign++
				}
			}
		}
		w.attrs = append(w.attrs, a)
	}
	w.number()
	w.arrange()
	var err error
	if w.start, err = inheritStarts(w.r); err != nil {
		return fmt.Errorf("rank %d: %w", rank, err)
	}
	return nil
}

// otherAttrs returns the part of attributes of another origin that a node can have, or nil if it can have none.
func otherAttrs(text string, kind dag.Kind) *opAttrs {
	access, ok := attr.ParseMemAccess(text)
	if !ok || kind != dag.Mem || text != "{"+string(access.Append(nil))+"}" {
		return nil
	}
	return &opAttrs{MemAccess: access}
}

// of returns the attributes of an op, or nil if it has none of this format.
func (w *rankWriter) of(i int) *opAttrs {
	if i < len(w.attrs) {
		return w.attrs[i]
	}
	return nil
}

// number determines the node numbers: those of the ops' attributes if they ascend, else the indices of the ops.
func (w *rankWriter) number() {
	known := false
	for _, a := range w.attrs {
		known = known || a != nil && a.ID != nil
	}
	if !known {
		return
	}
	w.ids = make([]uint64, w.r.Len())
	next := uint64(0)
	for i := range w.ids {
		if a := w.of(i); a != nil && a.ID != nil {
			next = *a.ID
		}
		w.ids[i] = next
		if i > 0 && next <= w.ids[i-1] {
			w.ids, w.renumbered = nil, true
			return
		}
		next++
	}
}

func (w *rankWriter) id(i int) uint64 {
	if w.ids == nil {
		return uint64(i)
	}
	return w.ids[i]
}

// has reports whether a node has the number.
func (w *rankWriter) has(id uint64) bool {
	if w.ids == nil {
		return id < uint64(w.r.Len())
	}
	_, found := slices.BinarySearch(w.ids, id)
	return found
}

// arrange determines the order of the nodes in the file.
func (w *rankWriter) arrange() {
	known := false
	for _, a := range w.attrs {
		known = known || a != nil && a.Place != nil
	}
	if !known {
		return
	}
	n := w.r.Len()
	order := make([]int32, n)
	taken := make([]bool, n)
	next := int64(0)
	for i := range n {
		if a := w.of(i); a != nil && a.Place != nil {
			next = *a.Place
		}
		if next < 0 || next >= int64(n) || taken[next] {
			return
		}
		order[next], taken[next] = int32(i), true
		next++
	}
	w.order = order
}

// inFile returns the op of the k-th node of the file.
func (w *rankWriter) inFile(k int) int {
	if w.order == nil {
		return k
	}
	return int(w.order[k])
}

// node returns the node of op i. It is valid until the next call.
func (w *rankWriter) node(i int) *Node {
	op := w.r.Op(i)
	if op.Kind == dag.Send || op.Kind == dag.Recv {
		op.Tag = w.p.tag(message{op.Comm, op.Tag})
		if bytes, other := w.p.sizes[w.rank][int32(i)]; other {
			op.Bytes = bytes
		}
	}
	if oneSize(&op) {
		op.Bytes = max(op.Bytes, op.RecvBytes)
	}
	a := w.of(i)
	if a == nil {
		a = &opAttrs{}
	}
	n := &w.n
	*n = Node{
		ID: w.id(i), Name: strings.ToValidUTF8(op.Name, "\uFFFD"), Type: typeOf(&op),
		CtrlDeps: n.CtrlDeps[:0], DataDeps: n.DataDeps[:0],
		DurationMicros: micros(op.Duration), Inputs: a.Inputs.io(), Outputs: a.Outputs.io(), Unknown: a.Unknown,
	}
	w.setDeps(i, a)
	if d := a.Duration; d != nil && dag.Time(min(*d, maxMicros))*dag.Microsecond == op.Duration {
		n.DurationMicros = *d
	}
	switch {
	case op.Timed && op.MeasuredStart >= 0:
		n.StartTimeMicros = micros(op.MeasuredStart)
	case !op.Timed && a.Start != nil:
		n.StartTimeMicros = *a.Start
	}
	w.setAttrs(&op, a)
	if i < w.p.ticks(w.rank) {
		w.markClock(op.Duration)
	}
	if op.Subkind == dag.Marker && n.Type == CompNode {
		n.DurationMicros = 0 // simulators would use it as the node's duration
	}
	return n
}

// oneSize reports whether an op is a collective with one size, which some members only contribute and others only
// receive. All files have it as comm_size.
func oneSize(op *dag.Op) bool {
	return op.Kind == dag.Coll && (op.Subkind == dag.Bcast || op.Subkind == dag.Reduce)
}

// micros returns a time in whole microseconds, rounded half up.
func micros(t dag.Time) uint64 {
	us := uint64(t / dag.Microsecond)
	if t%dag.Microsecond >= dag.Microsecond/2 {
		us++
	}
	return us
}

// setDeps sets the dependencies of the node of op i.
func (w *rankWriter) setDeps(i int, a *opAttrs) {
	n := &w.n
	off := w.r.Deps.Of(i)
	ctrl := min(max(a.Ctrl, 0), len(off))
	for k, o := range off {
		id := w.id(i - int(o))
		if k < ctrl {
			n.CtrlDeps = append(n.CtrlDeps, id)
		} else {
			n.DataDeps = append(n.DataDeps, id)
		}
	}
	n.CtrlDeps = w.insertDangling(n.CtrlDeps, a.DanglingCtrl)
	n.DataDeps = w.insertDangling(n.DataDeps, a.DanglingData)
	if w.start != nil {
		for _, on := range w.start[i] {
			n.DataDeps = append(n.DataDeps, w.id(int(on)))
		}
	}
}

// insertDangling restores dependencies on missing nodes at their positions.
func (w *rankWriter) insertDangling(ids []uint64, missing []dangling) []uint64 {
	for _, d := range missing {
		if at := d[0]; at <= uint64(len(ids)) && !w.has(d[1]) {
			ids = slices.Insert(ids, int(at), d[1])
		}
	}
	return ids
}

// setAttrs sets the type and the attributes of the node of an op.
func (w *rankWriter) setAttrs(op *dag.Op, a *opAttrs) {
	n := &w.n
	group := w.p.groups[op.Comm]
	typ, attrs, ok := w.stored(op, a)
	if !ok {
		w.usual = appendUsual(w.usual[:0], op, group, a.MemAccess)
		n.wired = w.usual
		return
	}
	n.Type = typ
	mapped := typ
	if op.Kind == dag.Calc && typ == CommCollNode {
		mapped = InvalidNode // its attributes are no columns
	}
	seen := uint32(0)
	for i := range attrs {
		c := columnOf(mapped, []byte(attrs[i].Name))
		if c == noColumn || seen&(1<<c) != 0 {
			continue
		}
		seen |= 1 << c
		if attrs[i].implied || w.stale(c, &attrs[i].Attr, op) {
			doc, unknown := attrs[i].Doc, attrs[i].Unknown
			attrs[i].Attr = c.attr(attrs[i].Name, attrs[i].Kind, op, group)
			attrs[i].Doc, attrs[i].Unknown = doc, unknown
		}
	}
	w.a = w.a[:0]
	for i := range attrs {
		w.a = append(w.a, attrs[i].Attr)
	}
	w.a = appendLacking(w.a, mapped, seen, op, group)
	n.Attr = w.a
}

// storedAttr is an attribute from a file.
type storedAttr struct {
	Attr
	implied bool // the op's columns have the value
}

// stored returns the stored type and attributes of an op's node. ok is false if there are none or they do not
// match the op.
func (w *rankWriter) stored(op *dag.Op, a *opAttrs) (typ NodeType, attrs []storedAttr, ok bool) {
	typ, attrs, ok = w.recall(op, a)
	return typ, attrs, ok && (typ != CommCollNode || op.Kind != dag.Calc || !knownCollective(attrs))
}

// knownCollective reports whether the attributes of a collective identify it.
func knownCollective(attrs []storedAttr) bool {
	for i := range attrs {
		if a := &attrs[i]; a.Name == collectiveName {
			_, how := collectiveColumn.number(a.Kind, a.num)
			return a.implied || how == fits
		}
	}
	return false
}

// recall is stored without the check that a collective's kind is known.
func (w *rankWriter) recall(op *dag.Op, a *opAttrs) (typ NodeType, attrs []storedAttr, ok bool) {
	if a.Layout != "" {
		l, known := w.p.layouts[a.Layout]
		if !known || !suits(l.typ, op) {
			return 0, nil, false
		}
		var values map[string]json.RawMessage
		if len(a.Attr) > 0 && json.Unmarshal(a.Attr, &values) != nil {
			return 0, nil, false
		}
		for _, s := range l.slots {
			attr := storedAttr{Attr: Attr{Name: s.name, Kind: s.kind}}
			if value, explicit := values[s.name]; !explicit {
				attr.implied = s.kind != NoValue
			} else if attr.parseValue(value) != nil {
				return 0, nil, false
			}
			attrs = append(attrs, attr)
		}
		return l.typ, attrs, true
	}
	typ = typeOf(op)
	if a.Type != "" {
		if typ, ok = typeNamed(a.Type); !ok {
			return 0, nil, false
		}
	}
	if !suits(typ, op) {
		return 0, nil, false
	}
	var list []Attr
	switch {
	case a.Wire != nil:
		var n wireNode
		if n.parse(a.Wire) != nil {
			return 0, nil, false
		}
		node, m := n.node()
		if m != nil {
			return 0, nil, false
		}
		list = node.Attr
	case len(a.Attr) > 0:
		var err error
		if list, err = parseAttrs(a.Attr); err != nil {
			return 0, nil, false
		}
	default:
		return 0, nil, false
	}
	for _, attr := range list {
		attrs = append(attrs, storedAttr{Attr: attr})
	}
	return typ, attrs, true
}

// suits reports whether the op may have been read from a node of the type.
func suits(t NodeType, op *dag.Op) bool {
	if op.Kind == dag.Calc {
		marker := op.Subkind == dag.Marker
		return t == CompNode || marker && (t == MetadataNode || t == InvalidNode) || !marker && t == CommCollNode
	}
	return t == typeOf(op)
}

// stale reports whether the attribute of a column differs from the op, because the op has changed since reading.
func (w *rankWriter) stale(c column, a *Attr, op *dag.Op) bool {
	switch c {
	case rootColumn:
		return false
	case hostColumn:
		if op.Kind != dag.Calc && op.Kind != dag.Mem {
			return false
		}
	case groupColumn:
		switch {
		case a.Kind != StringVal:
			return op.Comm != 0
		case a.text == "" || a.text == "0":
			return op.Comm != 0
		}
		return w.p.t.Comms[op.Comm].Name != a.text
	case dimsColumn:
		mask, _ := dims(a.nums)
		return a.Kind != BoolVal+listOf && op.Dims != 0 || a.Kind == BoolVal+listOf && mask != int64(op.Dims)
	case collectiveColumn:
		v, how := c.number(a.Kind, a.num)
		return how != fits || collectives[v] != op.Subkind
	}
	v, how := c.number(a.Kind, a.num)
	if how == misfit {
		v = 0
	}
	return v != c.valueOf(op)
}

// usualColumns are the columns that attributes of each node type represent, with their names.
var usualColumns = [numNodeTypes][]struct {
	column
	name string
}{
	MetadataNode: {{hostColumn, hostName}},
	InvalidNode:  {{hostColumn, hostName}},
	MemLoadNode:  {{hostColumn, hostName}, {bytesColumn, tensorName}},
	MemStoreNode: {{hostColumn, hostName}, {bytesColumn, tensorName}},
	CompNode:     {{hostColumn, hostName}, {flopsColumn, flopsName}, {bytesColumn, tensorName}},
	CommSendNode: {{peerColumn, destName}, {bytesColumn, sizeName}, {tagColumn, tagName}},
	CommRecvNode: {{peerColumn, sourceName}, {bytesColumn, sizeName}, {tagColumn, tagName}},
	CommCollNode: {{collectiveColumn, collectiveName}, {bytesColumn, sizeName}, {groupColumn, groupName},
		{dimsColumn, dimsName}, {priorityColumn, priorityName}, {rootColumn, rootName}},
}

// appendLacking appends the attributes of columns that an op has and its node lacked, because the op has changed
// since reading. seen is the set of columns with attributes.
func appendLacking(attrs []Attr, t NodeType, seen uint32, op *dag.Op, group string) []Attr {
	for _, u := range usualColumns[t] {
		if seen&(1<<u.column) != 0 {
			continue
		}
		v := u.valueOf(op)
		switch u.column {
		case groupColumn:
			if v = int64(op.Comm); hasOldGroup(attrs, group) {
				v = 0
			}
		case rootColumn:
			if !op.Subkind.Rooted() || op.Peer == dag.UnknownRoot {
				continue
			}
			v = 1
		}
		if v != 0 {
			attrs = append(attrs, u.attr(u.name, u.usualKind(op), op, group))
		}
	}
	return attrs
}

// hasOldGroup reports whether attributes have the group under its old name.
func hasOldGroup(attrs []Attr, group string) bool {
	for i := range attrs {
		if attrs[i].Name == oldGroupName {
			v, how := bytesColumn.number(attrs[i].Kind, attrs[i].num)
			return how == fits && strconv.FormatInt(v, 10) == group
		}
	}
	return false
}
