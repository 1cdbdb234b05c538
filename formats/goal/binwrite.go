// This file writes GOAL binaries, byte for byte as txt2bin writes the same schedule.

package goal

import (
	"encoding/binary"
	"fmt"
	"math"

	"github.com/tracedag/tracedag/dag"
)

var typeOfKind = [...]uint8{dag.Send: typeSend, dag.Recv: typeRecv, dag.Calc: typeCalc}

// writeHeader writes the part before the sections.
func writeHeader(out *output, found *survey) error {
	ranks := uint64(len(found.sections))
	if ranks > math.MaxUint32 {
		return fmt.Errorf("expected at most %d ranks in a GOAL binary, found %d", uint32(math.MaxUint32), ranks)
	}
	out.buf = binary.LittleEndian.AppendUint64(out.buf, magic)
	out.buf = binary.LittleEndian.AppendUint32(out.buf, uint32(ranks))
	out.buf = append(out.buf, found.units.cpu, found.units.nic)
	at := headerSize - magicSize + jumpSize*ranks
	for _, size := range found.sections {
		out.buf = binary.LittleEndian.AppendUint64(out.buf, at)
		at += size
		out.buf = binary.LittleEndian.AppendUint64(out.buf, at)
		out.spill()
	}
	return nil
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

// rootCount returns the number of ops without dependencies.
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
