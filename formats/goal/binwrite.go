// This file writes GOAL binaries, with the very bytes that txt2bin makes of the same schedule.

package goal

import (
	"encoding/binary"
	"fmt"
	"io"
	"math"

	"github.com/tracedag/tracedag/dag"
	"github.com/tracedag/tracedag/formats/format"
)

var typeOfKind = [...]uint8{dag.Send: typeSend, dag.Recv: typeRecv, dag.Calc: typeCalc}

func writeBinary(w io.Writer, t *dag.Trace, o format.WriteOptions) error {
	if err := check(t, o.Compat); err != nil {
		return err
	}
	if uint64(len(t.Ranks)) > math.MaxUint32 {
		return fmt.Errorf("GOAL cannot hold %d ranks: at most %d", len(t.Ranks), uint32(math.MaxUint32))
	}
	out := output{w: w}
	writeHeader(&out, t)
	for i := range t.Ranks {
		writeSection(&out, &t.Ranks[i])
		if out.err != nil {
			break
		}
	}
	return out.flush()
}

// output collects what is written. After an error it writes nothing more.
type output struct {
	w   io.Writer
	buf []byte
	err error
}

// spill writes the buffer out when it is large. Callers append to buf and spill now and then.
func (o *output) spill() {
	if len(o.buf) >= chunk {
		o.flush()
	}
}

func (o *output) flush() error {
	if o.err == nil {
		_, o.err = o.w.Write(o.buf)
	}
	o.buf = o.buf[:0]
	return o.err
}

// writeHeader writes all that stands before the sections.
func writeHeader(out *output, t *dag.Trace) {
	var units unitMax
	for i := range t.Ranks {
		r := &t.Ranks[i]
		units = units.with(unitMax{highest(&r.Stream), highest(&r.NIC)})
	}
	out.buf = binary.LittleEndian.AppendUint64(out.buf, magic)
	out.buf = binary.LittleEndian.AppendUint32(out.buf, uint32(len(t.Ranks)))
	out.buf = append(out.buf, units.cpu, units.nic)
	at := uint64(headerSize-magicSize) + jumpSize*uint64(len(t.Ranks))
	for i := range t.Ranks {
		out.buf = binary.LittleEndian.AppendUint64(out.buf, at)
		at += sectionSize(&t.Ranks[i])
		out.buf = binary.LittleEndian.AppendUint64(out.buf, at)
		out.spill()
	}
}

func highest(c *dag.Narrow) (m uint8) {
	for i := range c.Len() {
		m = max(m, uint8(c.At(i)))
	}
	return m
}

func sectionSize(r *dag.Rank) uint64 {
	edges := uint64(len(r.Deps.Off)) + uint64(len(r.StartDeps.Off))
	return sectionHead + indexSize*uint64(rootCount(r)) + recordSize*uint64(r.Len()) + indexSize*edges
}

// rootCount returns how many ops have no dependencies.
func rootCount(r *dag.Rank) uint32 {
	n := uint32(0)
	for i := range r.Len() {
		if r.Deps.Count(i)+r.StartDeps.Count(i) == 0 {
			n++
		}
	}
	return n
}

// writeSection writes a rank.
func writeSection(out *output, r *dag.Rank) {
	n := r.Len()
	out.buf = binary.LittleEndian.AppendUint32(out.buf, uint32(n))
	out.buf = binary.LittleEndian.AppendUint32(out.buf, rootCount(r))
	for i := range n {
		if r.Deps.Count(i)+r.StartDeps.Count(i) == 0 {
			out.buf = binary.LittleEndian.AppendUint32(out.buf, uint32(i))
			out.spill()
		}
	}
	requires, irequires := r.Dependents(), r.StartDependents()
	writeRecords(out, r, &requires, &irequires)
	for i := range n {
		for _, lists := range [...]*dag.Dependents{&requires, &irequires} {
			for _, op := range lists.Of(i) {
				out.buf = binary.LittleEndian.AppendUint32(out.buf, uint32(op))
				out.spill()
			}
		}
	}
}

func writeRecords(out *output, r *dag.Rank, requires, irequires *dag.Dependents) {
	index := uint32(0)
	var rec [recordSize]byte
	for i, kind := range r.Kind {
		value := uint64(r.Bytes.At(i))
		if kind == dag.Calc {
			value = nanoseconds(r.CalcTime(i))
		}
		a, s := uint32(len(requires.Of(i))), uint32(len(irequires.Of(i)))
		binary.LittleEndian.PutUint32(rec[0:], uint32(r.Deps.Count(i)+r.StartDeps.Count(i)))
		rec[4] = typeOfKind[kind]
		binary.LittleEndian.PutUint32(rec[5:], uint32(r.Peer.At(i)))
		binary.LittleEndian.PutUint64(rec[9:], value)
		binary.LittleEndian.PutUint32(rec[17:], uint32(r.Tag.At(i))) // AnyTag is 2^32-1
		rec[21], rec[22] = uint8(r.Stream.At(i)), uint8(r.NIC.At(i))
		binary.LittleEndian.PutUint32(rec[23:], a)
		binary.LittleEndian.PutUint32(rec[27:], index)
		binary.LittleEndian.PutUint32(rec[31:], s)
		binary.LittleEndian.PutUint32(rec[35:], index+a)
		index += a + s
		out.buf = append(out.buf, rec[:]...)
		out.spill()
	}
}
