// This file converts the nodes of a rank to ops.

package chakra

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"math"
	"slices"
	"strconv"

	"github.com/tracedag/tracedag/dag"
	"github.com/tracedag/tracedag/dag/attr"
	"github.com/tracedag/tracedag/formats/format"
)

// The streams of ops. Simulators run at most one op of each stream at a time.
const (
	computeStream = iota // computation on the accelerator
	hostStream           // work of the host processor
	dataStream           // communication, memory accesses, and ops without a duration
)

// maxMicros is the longest duration of an op in microseconds.
const maxMicros = uint64(dag.MaxTime / dag.Microsecond)

// rankReader converts the nodes of a rank to ops. Ranks share it; only its results are per rank.
type rankReader struct {
	o *format.ReadOptions
	s *source
	b dag.RankBuilder

	groups  *groups
	layouts map[string]*layout // layouts of the ranks read so far, by key
	notices *notices

	// The current node.
	node    wireNode
	attrs   []wireAttr
	columns []column // columns of the attributes
	lists   []Attr   // attributes that are lists
	group   string   // name of the op's communicator
	missing [2][]dangling
	deps    []int

	usual, key, text []byte
	place            int    // position of the previous node in the file
	id               uint64 // of the previous node

	keepClock bool     // nodes of a clock are computations like others
	ticks     []int32  // ops of the clock
	ticked    dag.Time // end of the last of them
}

// dangling is a dependency on a missing node: its position in the list, and the number of the node.
type dangling [2]uint64

// read converts a file to the ops of a rank, in the order of node numbers. The nodes of a clock become release times.
func (r *rankReader) read(s *source) (dag.Rank, error) {
	own := format.Own(r.o.Own, func() *Options { return new(Options) })
	r.keepClock = own.KeepClock
	rank, err := r.readNodes(s)
	if err == nil && !r.restoreReleases(&rank) {
		r.keepClock = true // the marked nodes are no clock
		rank, err = r.readNodes(s)
	}
	return rank, err
}

func (r *rankReader) readNodes(s *source) (rank dag.Rank, err error) {
	g, err := newGraph(s)
	if err != nil {
		return rank, err
	}
	r.s, r.b, r.place, r.id = s, dag.RankBuilder{}, -1, math.MaxUint64
	r.ticks, r.ticked = r.ticks[:0], 0
	r.b.Reserve(len(s.nodes), len(s.nodes))
	backward := true
	for i := range s.nodes {
		k := g.place(i)
		if m := r.node.parse(s.node(k)); m != nil {
			return rank, s.wrongMessage(k, m)
		}
		ordered, err := r.resolve(g, i, k)
		if err != nil {
			return rank, err
		}
		backward = backward && ordered
		if err := r.add(k); err != nil {
			return rank, err
		}
	}
	rank = r.b.Rank()
	if err := r.b.Err(); err != nil {
		return rank, &format.FileError{File: s.name, Err: err}
	}
	if !backward {
		if cycle := findCycle(&rank); cycle != nil {
			return rank, s.wrongNode(g.place(cycle[0]), inGraph, "acyclic dependencies", describeCycle(cycle, g.ids))
		}
	}
	return rank, nil
}

// resolve finds the dependencies of node i by number, k in the file, and reports whether all precede it.
func (r *rankReader) resolve(g *graph, i, k int) (bool, error) {
	r.deps = r.deps[:0]
	ordered := true
	for list, ids := range [2][]uint64{r.node.ctrl, r.node.data} {
		r.missing[list] = r.missing[list][:0]
		for at, id := range ids {
			on := g.find(id)
			switch {
			case on == i:
				return false, r.s.wrongNode(k, inGraph, "acyclic dependencies", fmt.Sprintf("node %d, which waits for "+
					"itself", id))
			case on >= 0:
				r.deps = append(r.deps, on)
				ordered = ordered && on < i
				continue
			}
			if list == 0 && r.o.Compat || list == 1 && !r.o.Lenient {
				return false, r.s.wrongNode(k, inGraph, "a dependency on a node of the file",
					fmt.Sprintf("node %d, which waits for node %d", r.node.id, id))
			}
			r.notices.add(danglingNotice+notice(list), r.s.name, r.node.id)
			r.missing[list] = append(r.missing[list], dangling{uint64(at), id})
		}
	}
	return ordered, nil
}

// add adds the op of the current node, k in the file.
func (r *rankReader) add(k int) error {
	n := &r.node
	op := dag.Op{Name: string(n.name)}
	switch n.typ {
	case CompNode:
		op.Kind = dag.Calc
	case MemLoadNode:
		op.Kind, op.Subkind = dag.Mem, dag.Load
	case MemStoreNode:
		op.Kind, op.Subkind = dag.Mem, dag.Store
	case CommSendNode:
		op.Kind = dag.Send
	case CommRecvNode:
		op.Kind = dag.Recv
	case CommCollNode:
		op.Kind, op.Peer = dag.Coll, dag.UnknownRoot
	default:
		op.Kind, op.Subkind = dag.Calc, dag.Marker
	}
	if err := r.parseAttrs(k); err != nil {
		return err
	}
	if err := r.setColumns(&op, k); err != nil {
		return err
	}
	if op.Kind == dag.Coll && !op.Subkind.Rooted() {
		op.Peer = 0
	}
	if n.typ == MetadataNode && len(n.inputs) > 0 {
		r.defineGroups()
	}
	r.setTimes(&op)
	op.Stream = streamOf(&op)
	if !r.keepClock && r.isClock() {
		r.addTick(&op)
	} else if err := r.setAttrs(&op, k); err != nil {
		return err
	}
	r.b.Add(op, r.deps...)
	r.place, r.id = k, n.id
	return nil
}

// streamOf returns the stream of an op.
func streamOf(op *dag.Op) int32 {
	switch {
	case op.Host != 0:
		return hostStream
	case op.Kind != dag.Calc || op.Subkind == dag.Marker:
		return dataStream
	}
	return computeStream
}

// parseAttrs parses the attributes of the current node, and finds their columns.
func (r *rankReader) parseAttrs(k int) error {
	n := &r.node
	r.attrs = slices.Grow(r.attrs[:0], len(n.attrs))[:len(n.attrs)]
	r.columns = slices.Grow(r.columns[:0], len(n.attrs))[:len(n.attrs)]
	seen := uint32(0)
	for i, body := range n.attrs {
		a := &r.attrs[i]
		if m := a.parse(body); m != nil {
			return r.s.wrongMessage(k, m)
		}
		c := columnOf(n.typ, a.name)
		if c == noColumn && resembles(a.name) {
			r.notices.add(nameNotice, r.s.name, n.id)
		}
		if c == rootColumn && r.o.Compat {
			c = noColumn // ASTRA-sim does not know it
		}
		if seen&(1<<c) != 0 {
			c = noColumn // the first attribute of a name counts
		}
		seen |= 1 << c &^ (1 << noColumn)
		r.columns[i] = c
	}
	return nil
}

// columnIs returns the attribute of a column, or nil.
func (r *rankReader) columnIs(c column) *wireAttr {
	if i := slices.Index(r.columns, c); i >= 0 {
		return &r.attrs[i]
	}
	return nil
}

// setColumns sets the fields of an op from attributes.
func (r *rankReader) setColumns(op *dag.Op, k int) error {
	r.group = ""
	if op.Kind == dag.Coll {
		if err := r.checkCollective(op, k); err != nil {
			return err
		}
	}
	for i, c := range r.columns {
		a := &r.attrs[i]
		switch c {
		case noColumn:
			continue
		case groupColumn:
			if a.kind != StringVal {
				if err := r.misfit(k, i, "text"); err != nil {
					return err
				}
				continue
			}
			op.Comm, r.group = r.groups.of(a.value)
		case dimsColumn:
			if a.kind != BoolVal+listOf {
				if err := r.misfit(k, i, "a list of flags"); err != nil {
					return err
				}
				continue
			}
			var list Attr
			if m := list.parseList(BoolVal, a.value); m != nil {
				return r.s.wrongMessage(k, m)
			}
			mask, how := dims(list.nums)
			if how != fits {
				r.notices.add(clampedNotice, r.s.name, r.node.id)
			}
			op.Dims = int32(mask)
		default:
			v, how := c.number(a.kind, a.num)
			if how == misfit {
				if c == rootColumn {
					r.columns[i] = noColumn // an attribute of another program
				} else if err := r.misfit(k, i, "a whole number"); err != nil {
					return err
				}
				continue
			}
			if how == clamped {
				r.notices.add(clampedNotice, r.s.name, r.node.id)
			}
			c.set(op, v)
		}
	}
	r.complete(op)
	return nil
}

// checkCollective converts a collective of unknown kind to a computation. The tracer records two parts of
// PyTorch's collectives: the call on the host, which has no kind, and the kernel on the accelerator.
func (r *rankReader) checkCollective(op *dag.Op, k int) error {
	found := "none"
	if a := r.columnIs(collectiveColumn); a != nil {
		_, how := collectiveColumn.number(a.kind, a.num)
		if how == fits {
			return nil
		}
		found = a.kind.wireName()
		if _, how := priorityColumn.number(a.kind, a.num); how != misfit {
			found = strconv.FormatInt(int64(a.num), 10)
		}
	}
	host := false
	if a := r.columnIs(hostColumn); a != nil {
		v, _ := hostColumn.number(a.kind, a.num)
		host = v != 0
	}
	switch {
	case host && found == "none":
	case r.o.Lenient:
		r.notices.add(collectiveNotice, r.s.name, r.node.id)
	default:
		return r.s.wrongNode(k, inNode, fmt.Sprintf("the kind of collective of node %d, %s from 0 to 9", r.node.id,
			collectiveName), found)
	}
	op.Kind, op.Peer = dag.Calc, 0
	for i, c := range r.columns {
		if c != hostColumn {
			r.columns[i] = noColumn
		}
	}
	return nil
}

// misfit handles an attribute of an unexpected kind.
func (r *rankReader) misfit(k, attr int, expected string) error {
	a := &r.attrs[attr]
	if r.o.Lenient {
		r.notices.add(misfitNotice, r.s.name, r.node.id)
		return nil
	}
	return r.s.wrongNode(k, inNode, fmt.Sprintf("%s in the attribute %s of node %d", expected, a.name, r.node.id),
		a.kind.wireName())
}

// defineGroups adds the communicators that the current node of metadata defines.
func (r *rankReader) defineGroups() {
	var io IOInfo
	if io.parse(r.node.inputs) == nil {
		if defined, ok := processGroups(io.Values, r.s.name); ok {
			r.groups.defined = append(r.groups.defined, defined...)
			return
		}
	}
	if bytes.Contains(r.node.name, []byte("process_group:init")) {
		r.notices.add(groupsNotice, r.s.name, r.node.id)
	}
}

// complete sets defaults for missing attributes of a node, and corrects impossible ones.
func (r *rankReader) complete(op *dag.Op) {
	n := &r.node
	communication := op.Kind == dag.Send || op.Kind == dag.Recv || op.Kind == dag.Coll
	if communication && op.Host != 0 {
		op.Host = 0
		r.notices.add(hostNotice, r.s.name, n.id)
	}
	if op.Kind == dag.Coll && op.Comm == 0 && !r.o.Compat && r.columnIs(groupColumn) == nil {
		r.oldGroup(op)
	}
	if communication && r.columnIs(bytesColumn) == nil {
		r.notices.add(sizeNotice, r.s.name, n.id)
	}
	if op.Kind == dag.Send || op.Kind == dag.Recv {
		if r.columnIs(peerColumn) == nil {
			r.notices.add(peerNotice, r.s.name, n.id)
		}
		if r.columnIs(tagColumn) == nil {
			r.notices.add(tagNotice, r.s.name, n.id)
		}
	}
}

// oldGroup sets the communicator of a collective from the attribute's old name.
func (r *rankReader) oldGroup(op *dag.Op) {
	for i := range r.attrs {
		a := &r.attrs[i]
		if string(a.name) == oldGroupName {
			if v, how := bytesColumn.number(a.kind, a.num); how == fits && v > 0 {
				op.Comm, r.group = r.groups.of(strconv.AppendInt(nil, v, 10))
			}
			return
		}
	}
}

// setTimes sets the times of an op.
func (r *rankReader) setTimes(op *dag.Op) {
	n := &r.node
	duration := dag.Time(min(n.duration, maxMicros)) * dag.Microsecond
	if n.duration > maxMicros {
		r.notices.add(timeNotice, r.s.name, n.id)
	}
	op.Duration = duration // of a marker, too, because the file has it
	switch {
	case n.start == 0:
	case n.start > maxMicros:
		r.notices.add(timeNotice, r.s.name, n.id)
	default:
		op.Timed = true
		op.MeasuredStart = dag.Time(n.start) * dag.Microsecond
		op.MeasuredEnd = op.MeasuredStart + min(duration, dag.MaxTime-op.MeasuredStart)
	}
}

// setAttrs sets the attributes of an op: the data of the node that its columns and dependencies lack.
func (r *rankReader) setAttrs(op *dag.Op, k int) error {
	n := &r.node
	b := append(r.text[:0], '{')
	if n.id != r.id+1 {
		b = append(attr.NodeID(n.id).Append(b), ',')
	}
	if k != r.place+1 {
		b = append(b, `"place":`...)
		b = append(strconv.AppendInt(b, int64(k), 10), ',')
	}
	if ctrl := len(n.ctrl) - len(r.missing[0]); ctrl > 0 {
		b = append(b, `"ctrl":`...)
		b = append(strconv.AppendInt(b, int64(ctrl), 10), ',')
	}
	for list, name := range [2]string{`"dangling_ctrl":[`, `"dangling_data":[`} {
		if len(r.missing[list]) == 0 {
			continue
		}
		b = append(b, name...)
		for _, d := range r.missing[list] {
			b = append(strconv.AppendUint(append(b, '['), d[0], 10), ',')
			b = append(strconv.AppendUint(b, d[1], 10), "],"...)
		}
		b = append(b[:len(b)-1], "],"...)
	}
	if n.duration > maxMicros {
		b = append(b, `"duration":`...)
		b = append(strconv.AppendUint(b, n.duration, 10), ',')
	}
	if n.start > maxMicros {
		b = append(b, `"start":`...)
		b = append(strconv.AppendUint(b, n.start, 10), ',')
	}
	var m *malformed
	if b, m = appendIO(b, `"inputs":`, n.inputs); m == nil {
		b, m = appendIO(b, `"outputs":`, n.outputs)
	}
	if m == nil {
		var access attr.MemAccess
		if op.Kind == dag.Mem {
			if access = r.memAccess(); access != (attr.MemAccess{}) {
				b = append(access.Append(b), ',')
			}
		}
		r.usual = appendUsual(r.usual[:0], op, r.group, access)
		if typeOf(op) != n.typ || n.block == nil || string(r.usual) != string(n.block) {
			b, m = r.appendAttrs(b, op)
		}
	}
	if m != nil {
		return r.s.wrongMessage(k, m)
	}
	if len(n.unknown) > 0 {
		b = appendBase64(b, `"unknown":`, n.unknown)
		r.notices.add(unknownNotice, r.s.name, n.id)
	}
	if len(b) > 1 {
		b[len(b)-1] = '}'
		op.Attrs = string(b)
	}
	r.text = b
	return nil
}

// appendIO appends a member with the description of a node's inputs or outputs, if there is one.
func appendIO(b []byte, name string, body []byte) ([]byte, *malformed) {
	if body == nil {
		return b, nil
	}
	var io wireIO
	if m := io.parse(body); m != nil {
		return b, m
	}
	b = append(append(b, name...), '{')
	end := len(b)
	for i, name := range [...]string{`"values":`, `"shapes":`, `"types":`} {
		if text := io.texts[i]; len(text) > 0 {
			b = append(appendString(append(b, name...), text), ',')
		}
	}
	if len(io.unknown) > 0 {
		b = appendBase64(b, `"unknown":`, io.unknown)
	}
	if len(b) > end {
		b = b[:len(b)-1]
	}
	return append(b, "},"...), nil
}

func appendBase64(b []byte, name string, data []byte) []byte {
	b = append(append(b, name...), '"')
	b = base64.StdEncoding.AppendEncode(b, data)
	return append(b, `",`...)
}

// appendAttrs appends the attributes of the current node, unless they are the usual ones. Usually these are the
// name of their layout, and the values that the op's columns lack.
func (r *rankReader) appendAttrs(b []byte, op *dag.Op) ([]byte, *malformed) {
	l := r.layout()
	r.lists = slices.Grow(r.lists[:0], len(r.attrs))[:len(r.attrs)]
	described, odd := false, false
	for i := range r.attrs {
		a := &r.attrs[i]
		described = described || len(a.doc) > 0
		if _, list := a.kind.scalar(); !list {
			odd = odd || len(a.unknown) > 0 || oddNaN(a.kind, a.num)
			continue
		}
		var m *malformed
		if r.lists[i], m = a.attr(); m != nil {
			return b, m
		}
		odd = odd || !r.lists[i].fitsJSON()
	}
	if odd || described || l.repeats {
		return r.appendVerbatim(b, op, odd)
	}
	l.used = true
	b = append(b, `"layout":"`...)
	b = append(append(b, l.id...), `",`...)
	values := len(b)
	b = append(b, `"attr":{`...)
	empty := len(b)
	for i := range r.attrs {
		a := &r.attrs[i]
		if a.kind == NoValue || r.implied(i, op) {
			continue
		}
		b = append(appendString(b, a.name), ':')
		switch _, list := a.kind.scalar(); {
		case list:
			b = appendCompactValue(b, &r.lists[i])
		case a.kind == StringVal:
			b = appendString(b, a.value)
		default:
			b = appendCompactValue(b, &Attr{Kind: a.kind, num: a.num, text: string(a.value)})
		}
		b = append(b, ',')
	}
	if len(b) == empty {
		return b[:values], nil
	}
	b[len(b)-1] = '}'
	return append(b, ','), nil
}

// implied reports whether the columns of the op determine attribute i of the current node.
func (r *rankReader) implied(i int, op *dag.Op) bool {
	a, c := &r.attrs[i], r.columns[i]
	switch c {
	case noColumn:
		return false
	case groupColumn:
		return a.kind == StringVal && string(a.value) == r.group
	case dimsColumn:
		return a.kind == BoolVal+listOf && slices.Equal(r.lists[i].nums, flags(op.Dims))
	}
	same := c.attr("", a.kind, op, "")
	return same.Kind == a.kind && same.num == a.num
}

// appendVerbatim appends the attributes of the current node verbatim: as JSON or, if that is not sufficient, in
// wire format.
func (r *rankReader) appendVerbatim(b []byte, op *dag.Op, odd bool) ([]byte, *malformed) {
	attrs := make([]Attr, len(r.attrs))
	for i := range r.attrs {
		var m *malformed
		if attrs[i], m = r.attrs[i].attr(); m != nil {
			return b, m
		}
	}
	if typ := r.node.typ; typ != typeOf(op) {
		b = append(b, `"type":"`...)
		b = append(append(b, typ.String()...), `",`...)
	}
	if odd {
		r.notices.add(unknownNotice, r.s.name, r.node.id)
		return appendBase64(b, `"wire":`, appendAttrs(nil, nodeAttr, attrs)), nil
	}
	b = append(b, `"attr":[`...)
	for i := range attrs {
		b = append(appendCompactAttr(b, &attrs[i]), ',')
	}
	b[len(b)-1] = ']'
	return append(b, ','), nil
}

// wireName returns the name of the kind in the schema, such as "int64_val".
func (k Kind) wireName() string {
	return kindNames[k].snake
}

// findCycle returns the nodes of a dependency cycle, each of which waits for the next and the last for the first,
// or nil.
func findCycle(r *dag.Rank) []int {
	n := r.Len()
	open := make([]int32, n) // number of nodes that each waits for
	for i := range n {
		open[i] = int32(r.Deps.Count(i))
	}
	dependents := r.Dependents()
	var ready []int32
	for i, count := range open {
		if count == 0 {
			ready = append(ready, int32(i))
		}
	}
	done := 0
	for ; len(ready) > 0; done++ {
		i := ready[len(ready)-1]
		ready = ready[:len(ready)-1]
		for _, d := range dependents.Of(int(i)) {
			if open[d]--; open[d] == 0 {
				ready = append(ready, d)
			}
		}
	}
	if done == n {
		return nil
	}
	// Every remaining node waits for another remaining one, which leads into a cycle.
	at := slices.IndexFunc(open, func(count int32) bool { return count > 0 })
	step := make(map[int]int)
	var path []int
	for {
		if first, seen := step[at]; seen {
			return path[first:]
		}
		step[at] = len(path)
		path = append(path, at)
		for _, off := range r.Deps.Of(at) {
			if on := at - int(off); open[on] > 0 {
				at = on
				break
			}
		}
	}
}

// namedOfCycle is the number of nodes of a cycle that a message names.
const namedOfCycle = 16

func describeCycle(cycle []int, ids []uint64) string {
	text := fmt.Sprintf("a cycle of %d: node %d", len(cycle), ids[cycle[0]])
	for i, op := range cycle[1:] {
		if i == namedOfCycle {
			text += " and so on,"
			break
		}
		text += fmt.Sprintf(" waits for node %d, which", ids[op])
	}
	return text + fmt.Sprintf(" waits for node %d", ids[cycle[0]])
}
