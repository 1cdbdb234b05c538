// This file writes traces: the actions of all ranks in one file.

package simgrid

import (
	"bufio"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/tracedag/tracedag/dag"
	"github.com/tracedag/tracedag/dag/attr"
	"github.com/tracedag/tracedag/formats/format"
)

// appendPlain appends the line of a blocking message in bytes, without the rank.
func appendPlain(line []byte, op *dag.Op) []byte {
	name := "send"
	if op.Kind == dag.Recv {
		name = "recv"
	}
	return appendMessage(line, name, op)
}

func appendMessage(line []byte, name string, op *dag.Op) []byte {
	peer, tag := int64(op.Peer), writtenTag(op.Tag)
	if op.Kind == dag.Recv {
		peer, tag = writtenSource(op.Peer), writtenReceived(op.Tag)
	}
	return appendInts(append(line, name...), peer, tag, op.Bytes, typeByte)
}

// appendInts appends numbers with a blank before each.
func appendInts(line []byte, numbers ...int64) []byte {
	for _, n := range numbers {
		line = strconv.AppendInt(append(line, ' '), n, 10)
	}
	return line
}

// writtenSource returns the source of a receive in the file.
func writtenSource(peer int32) int64 {
	if peer == dag.AnySource {
		return anySource
	}
	return int64(peer)
}

// writtenReceived returns the tag of a receive in the file.
func writtenReceived(tag int64) int64 {
	if tag == dag.AnyTag {
		return anyTag
	}
	return writtenTag(tag)
}

// writtenTag returns the tag of a message in the file: tags below -1, such as those of lowered collectives, become tags
// that no program has, because negative ones are wildcards.
func writtenTag(tag int64) int64 {
	if tag < dag.AnyTag {
		return tag + 1<<31
	}
	return tag
}

// isPlain reports whether the op of one rank alone determines the line of a collective.
func isPlain(op *dag.Op, ranks int) bool {
	switch op.Subkind {
	case dag.Barrier, dag.Bcast, dag.Reduce, dag.Allreduce, dag.Scan, dag.Exscan, dag.Gather, dag.Allgather:
		return true
	case dag.Scatter, dag.Alltoall:
		return op.Bytes%int64(ranks) == 0
	}
	return false
}

// plainCollective returns the line of a collective that the op of one rank alone determines, or "".
func plainCollective(op *dag.Op, ranks int) string {
	if !isPlain(op, ranks) {
		return ""
	}
	n := int64(ranks)
	root := ""
	if op.Subkind.Rooted() {
		root = fmt.Sprintf(" %d", op.Peer)
	}
	reduction := func(bytes int64) (count int64, datatype int) {
		element, _ := attr.ParseElement(op.Attrs)
		datatype, element = elementsOf([]block{{bytes: bytes, element: element}}, block.sent)
		return bytes / element, datatype
	}
	switch op.Subkind {
	case dag.Barrier:
		return "barrier"
	case dag.Bcast:
		return fmt.Sprintf("bcast %d%s %d", max(op.Bytes, op.RecvBytes), root, typeByte)
	case dag.Reduce:
		count, datatype := reduction(max(op.Bytes, op.RecvBytes))
		return fmt.Sprintf("reduce %d 0%s %d", count, root, datatype)
	case dag.Allreduce, dag.Scan, dag.Exscan:
		count, datatype := reduction(op.Bytes)
		return fmt.Sprintf("%v %d 0 %d", op.Subkind, count, datatype)
	case dag.Gather, dag.Allgather:
		return fmt.Sprintf("%v %d %d%s %d %d", op.Subkind, op.Bytes, op.Bytes, root, typeByte, typeByte)
	case dag.Scatter:
		block := op.RecvBytes
		if op.Bytes > 0 {
			block = op.Bytes / n
		}
		return fmt.Sprintf("scatter %d %d%s %d %d", block, block, root, typeByte, typeByte)
	case dag.Alltoall:
		return fmt.Sprintf("alltoall %d %d %d %d", op.Bytes/n, op.Bytes/n, typeByte, typeByte)
	}
	return ""
}

// writer writes a trace, or only looks for errors and counts what would be lost.
type writer struct {
	*WriteOptions
	t       *dag.Trace
	out     *bufio.Writer // nil: write nothing
	counts  bool          // count what would be lost
	blocks  [][]block     // of the collectives, by instance
	invents int64         // orders that the trace does not have
	forward int64         // dependencies on later ops
	flops   bool          // a duration is written as flops
	lost    lostCounts
}

type lostCounts struct{ markers, uneven, timed, tags, attrs, received int64 }

// block is the sizes of a member of a collective. element is that of an element, 0 if it is not stated.
type block struct{ bytes, received, element int64 }

func (b block) sent() int64 { return b.bytes }

func losses(t *dag.Trace) []format.Loss {
	w := newWriter(nil, t, newWriteOptions())
	w.counts = true
	if w.check() != nil || w.all() != nil {
		return nil
	}
	var l format.Losses
	l.Add("dependencies on later ops", w.forward)
	l.Add("dependencies that a sequence of calls adds", w.invents)
	l.Add("markers", w.lost.markers)
	l.Add("sizes of blocks of collectives, which are made even", w.lost.uneven)
	l.Add("received sizes", w.lost.received)
	l.Add("durations that become flops", w.lost.timed)
	l.Add("tags below -1, written plus 2147483648", w.lost.tags)
	l.Add("attributes", w.lost.attrs)
	for _, id := range [...]dag.FieldID{dag.FieldStream, dag.FieldNIC, dag.FieldJob, dag.FieldMeasuredStart} {
		l.AddField(t, id)
	}
	comms, names, releases := int64(0), int64(0), int64(0)
	for _, r := range t.Ranks {
		comms += r.Comm.Present()
		names += r.Name.Present()
		releases += r.Release.Present()
	}
	l.Add("communicators", comms)
	l.Add("release times", releases)
	l.Add("names", names)
	l.AddRareFields(t)
	l.AddNodes(t)
	return l
}

func newWriter(out *bufio.Writer, t *dag.Trace, o *WriteOptions) *writer {
	return &writer{WriteOptions: o, t: t, out: out}
}

func write(to io.Writer, t *dag.Trace, o format.WriteOptions) error {
	own := format.Own(o.Own, newWriteOptions)
	if err := newWriter(nil, t, own).check(); err != nil {
		return err
	}
	trial := newWriter(nil, t, own) // finds errors before the first byte
	if err := trial.all(); err != nil {
		return err
	}
	out := bufio.NewWriter(to)
	if trial.flops {
		fmt.Fprintf(out, "# compute: durations at %d flops per second\n", own.Speed)
	}
	if err := newWriter(out, t, own).all(); err != nil {
		return err
	}
	return out.Flush()
}

// check returns an error if the format has no line for an op.
func (w *writer) check() error {
	if len(w.t.Ranks) == 0 {
		return fmt.Errorf("expected at least 1 rank, found none")
	}
	for rank, r := range w.t.Ranks {
		for i, kind := range r.Kind {
			switch kind {
			case dag.Mem, dag.IO:
				return fmt.Errorf("rank %d: op %d: expected calcs, messages and collectives, found %v; use --lower "+
					"needed",
					rank, i, kind)
			case dag.Coll:
				if !w.world(r.Comm.At(i)) {
					return fmt.Errorf("rank %d: op %d: expected collectives of all ranks, found %v on communicator "+
						"%d; use --lower collectives", rank, i, r.Subkind.At(i), r.Comm.At(i))
				}
				if r.Subkind.At(i).Rooted() && r.Peer.At(i) < 0 {
					return fmt.Errorf("rank %d: op %d: expected the root of %v, found none", rank, i, r.Subkind.At(i))
				}
			case dag.Send, dag.Recv:
				if tag := r.Tag.At(i); tag < math.MinInt32 || tag == dag.AnyTag && kind == dag.Send {
					return fmt.Errorf("rank %d: op %d: expected a tag of %d or more, and none that matches any at a "+
						"send, found %d", rank, i, math.MinInt32, tag)
				}
			}
		}
	}
	return nil
}

// world reports whether a communicator has all ranks in order.
func (w *writer) world(comm int32) bool {
	if comm == 0 {
		return true
	}
	world := dag.World(len(w.t.Ranks))
	return int(comm) < len(w.t.Comms) && w.t.Comms[comm].Equal(&world)
}

// all writes all ranks.
func (w *writer) all() error {
	for _, r := range w.t.Ranks {
		instance := 0
		for i, kind := range r.Kind {
			if kind != dag.Coll {
				continue
			}
			if instance == len(w.blocks) {
				w.blocks = append(w.blocks, nil)
			}
			element, _ := attr.ParseElement(r.Attrs.At(i))
			w.blocks[instance] = append(w.blocks[instance], block{r.Bytes.At(i), r.RecvBytes.At(i), element})
			instance++
		}
	}
	for rank, r := range w.t.Ranks {
		if err := w.writeRank(rank, r); err != nil {
			return fmt.Errorf("rank %d: %w", rank, err)
		}
	}
	return nil
}

// rankWriter writes the actions of one rank.
type rankWriter struct {
	*writer
	context
	prefix   string
	r        *dag.Rank
	posted   requests
	started  []bool // ops whose start another op waits for
	blocking int    // the last op that blocks; -1: none
	instance int    // of the next collective
	awaited  []int  // result of the latest call of own
	line     []byte // of the latest call of print
	err      error
}

func (w *writer) writeRank(rank int, r *dag.Rank) error {
	n := r.Len()
	c := &rankWriter{writer: w, context: context{rank: rank, ranks: len(w.t.Ranks)}, r: r,
		prefix: strconv.Itoa(rank) + " ", started: make([]bool, n), blocking: -1}
	for i := range n {
		for _, off := range r.StartDeps.Of(i) {
			if on := i - int(off); on >= 0 && on < n {
				c.started[on] = true
			}
		}
	}
	first, all := 0, lines{}
	if n > 0 && r.Kind[0] == dag.Calc && r.Subkind.At(0) == dag.Marker {
		all = linesOf(r.Attrs.At(0))
	}
	if isInit(all.Line) {
		first = 1
		c.double = all.Line != "init"
		c.emit(all.Before...)
		c.emit(all.Line)
		c.emit(all.After...)
		c.blocking = 0
	} else {
		c.emit("init")
	}
	for i := first; i < n && c.err == nil; i++ {
		i = c.op(i)
	}
	c.emit("finalize")
	return c.err
}

func isInit(line string) bool {
	return line == "init" || strings.HasPrefix(line, "init ")
}

// emit writes lines.
func (c *rankWriter) emit(lines ...string) {
	if c.out == nil {
		return
	}
	for _, line := range lines {
		c.out.WriteString(c.prefix)
		c.out.WriteString(line)
		c.out.WriteByte('\n')
	}
}

// print writes a line of a name and numbers.
func (c *rankWriter) print(name string, numbers ...int64) {
	if c.out != nil {
		c.line = appendInts(append(append(c.line[:0], c.prefix...), name...), numbers...)
		c.out.Write(append(c.line, '\n'))
	}
}

// printMessage writes a message.
func (c *rankWriter) printMessage(name string, op *dag.Op) {
	if c.out != nil {
		c.line = appendMessage(append(c.line[:0], c.prefix...), name, op)
		c.out.Write(append(c.line, '\n'))
	}
}

// isWritten reports whether attributes are no more than the bytes by partner of an alltoallv or the size of an element,
// which the line of the collective has.
func (c *rankWriter) isWritten(i int, attrs string) bool {
	if c.r.Kind[i] != dag.Coll {
		return false
	}
	switch c.r.Subkind.At(i) {
	case dag.Alltoallv:
		counts, ok := attr.ParseCounts(attrs)
		return ok && attrs == attr.WithCounts("", &counts)
	case dag.Reduce, dag.Allreduce, dag.Allgatherv, dag.ReduceScatter:
		element, ok := attr.ParseElement(attrs)
		return ok && attrs == attr.WithElement("", element) && datatypeOf(element) >= 0
	}
	return false
}

// datatypeOf returns a datatype with elements of a size in bytes, or -1.
func datatypeOf(element int64) int {
	for _, id := range [...]int{typeByte, typeShort, typeInt, typeDouble, typeLongDouble, typeLongDoubleComplex} {
		if sizes[id] == element {
			return id
		}
	}
	return -1
}

// op writes op i and returns the last op that its lines cover.
func (c *rankWriter) op(i int) int {
	r := c.r
	attrs := r.Attrs.At(i)
	kept := linesOf(attrs)
	c.emit(kept.Before...)
	defer c.emit(kept.After...)
	c.countOrder(i)
	if last, ok := c.kept(i, kept.Line); ok {
		return last
	}
	if attrs != "" && (kept.Line != "" || attrs != kept.encode()) && !c.isWritten(i, attrs) {
		c.lost.attrs++
	}
	op := r.Op(i)
	c.settle(i)
	switch op.Kind {
	case dag.Calc:
		c.calc(&op)
		c.blocking = i
	case dag.Send, dag.Recv:
		if op.RecvBytes > 0 {
			c.lost.received++
		}
		if op.Duration > 0 {
			c.lost.timed++
		}
		if op.Tag < dag.AnyTag {
			c.lost.tags++
		}
		name := "send"
		if op.Kind == dag.Recv {
			name = "recv"
		}
		if c.posts(i) {
			c.printMessage("i"+name, &op)
			c.posted.add(c.keyOf(i), i)
			break
		}
		c.printMessage(name, &op)
		c.blocking = i
	case dag.Coll:
		c.collective(i, &op)
		c.blocking = i
	}
	return i
}

// calc writes a computation.
func (c *rankWriter) calc(op *dag.Op) {
	switch {
	case op.Subkind == dag.Marker:
		c.lost.markers++
	case op.Flops > 0:
		if op.Duration > 0 && op.Duration != dag.AtRate(op.Flops, c.Speed) {
			c.lost.timed++
		}
		c.print("compute", op.Flops)
	case op.Duration > 0 && c.Sleep:
		c.emit("sleep " + strconv.FormatFloat(float64(op.Duration)/1e12, 'g', 17, 64))
	case op.Duration > 0:
		c.lost.timed++
		c.flops = true
		c.emit("compute " + strconv.FormatFloat(float64(op.Duration)/1e12*float64(c.Speed), 'g', 17, 64))
	default:
		c.lost.markers++ // a calc of no length leaves the waits for its requests only
	}
}

// posts reports whether a message does not block: the next op does not wait for its end.
func (c *rankWriter) posts(i int) bool {
	if c.started[i] {
		return true
	}
	if i+1 == c.r.Len() {
		return false
	}
	return !slices.Contains(c.r.Deps.Of(i+1), 1)
}

// settle writes waits for the requests that op i waits for.
func (c *rankWriter) settle(i int) {
	own := c.own(i)
	if len(own) > 1 && len(own) == c.posted.left {
		c.print("waitall", int64(len(own)))
		c.posted.clear()
		return
	}
	for _, on := range own {
		c.await(on)
	}
}

// own returns the ops of the requests under way that op i waits for, in ascending order.
func (c *rankWriter) own(i int) []int {
	c.awaited = c.awaited[:0]
	for _, off := range c.r.Deps.Of(i) {
		if on := i - int(off); c.posted.has(on) {
			c.awaited = append(c.awaited, on)
		}
	}
	slices.Sort(c.awaited)
	return slices.Compact(c.awaited)
}

// await writes a wait for the request of an op, which is under way. The oldest request of a key is over first, so that
// requests before it with the same key are waited for, too.
func (c *rankWriter) await(on int) {
	k := c.keyOf(on)
	for {
		c.print("wait", writtenSource(k.source), int64(k.destination), writtenReceived(k.tag))
		if c.posted.removeFirst(k) == on {
			return
		}
		c.invents++
	}
}

// keyOf returns the key of a request as a reader has it.
func (c *rankWriter) keyOf(i int) key {
	peer, tag := c.r.Peer.At(i), c.r.Tag.At(i)
	if tag != dag.AnyTag {
		tag = writtenTag(tag)
	}
	if c.r.Kind[i] == dag.Send {
		return key{int32(c.rank), peer, tag}
	}
	return key{peer, int32(c.rank), tag}
}

// countOrder counts the orders that differ from the dependencies of op i.
func (c *rankWriter) countOrder(i int) {
	after := c.blocking < 0
	for _, edges := range [...]*dag.Edges{&c.r.Deps, &c.r.StartDeps} {
		for _, off := range edges.Of(i) {
			if off <= 0 {
				c.forward++
			}
			after = after || off > 0 && i-int(off) >= c.blocking
		}
	}
	if !after {
		c.invents++
	}
}

// kept writes the line that an op was read from, if the op still is what the line says. It returns the last op of the
// line.
func (c *rankWriter) kept(i int, line string) (last int, ok bool) {
	words := strings.Fields(line)
	if len(words) == 0 || strings.ContainsAny(line, "\n\r#") {
		return i, false
	}
	a, err := c.parse(words)
	op := c.r.Op(i)
	if err != nil || a.op.Kind != op.Kind || a.op.Subkind != op.Subkind || a.op.Peer != op.Peer || a.op.Tag != op.Tag ||
		a.op.RecvBytes != op.RecvBytes || a.op.Flops != op.Flops || a.op.Bytes != op.Bytes && !a.unknown {
		return i, false
	}
	last = i
	switch a.verb {
	case compute:
		if a.name == "sleep" && a.op.Duration != op.Duration {
			return i, false
		}
	case exchange:
		if last = i + 1; last >= c.r.Len() || c.r.Kind[last] != dag.Recv || c.r.Peer.At(last) != a.received.Peer {
			return i, false
		}
	case wait:
		on, own, found := c.posted.oldest(a.key, c.rank)
		if !found || op.Duration > 0 || !slices.Contains(c.r.Deps.Of(i), int32(i-on)) {
			return i, false
		}
		c.posted.removeFirst(own)
	case waitAll:
		if op.Duration > 0 {
			return i, false
		}
		c.posted.clear()
	case collective:
		if a.flops > 0 {
			last = i + 1
			if last >= c.r.Len() || c.r.Kind[last] != dag.Calc || float64(c.r.Flops.At(last)) != math.Round(a.flops) {
				return i, false
			}
		}
		c.instance++
	case post:
		c.posted.add(c.keyOf(i), i)
		c.emit(line)
		return i, true
	case message:
	default:
		return i, false
	}
	c.emit(line)
	c.blocking = last
	return last, true
}
