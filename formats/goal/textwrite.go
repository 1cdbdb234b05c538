// This file writes GOAL text in one canonical form: every statement in column one, every op with a label, every message
// with a tag, and each dependency as soon as both its ops are written.

package goal

import (
	"io"
	"strconv"

	"github.com/tracedag/tracedag/dag"
	"github.com/tracedag/tracedag/formats/format"
)

func writeText(w io.Writer, t *dag.Trace, o format.WriteOptions) error {
	if err := check(t, o.Compat); err != nil {
		return err
	}
	out := output{w: w}
	out.buf = append(out.buf, "num_ranks "...)
	out.buf = strconv.AppendInt(out.buf, int64(len(t.Ranks)), 10)
	out.buf = append(out.buf, '\n')
	for i := range t.Ranks {
		out.buf = append(out.buf, "\nrank "...)
		out.buf = strconv.AppendInt(out.buf, int64(i), 10)
		out.buf = append(out.buf, " {\n"...)
		writeBlock(&out, &t.Ranks[i])
		out.buf = append(out.buf, "}\n"...)
		if out.err != nil {
			break
		}
	}
	return out.flush()
}

// writeBlock writes the ops and dependencies of a rank.
func writeBlock(out *output, r *dag.Rank) {
	labels := chooseLabels(r)
	deps := newLineOrder(&r.Deps, r.Len(), &r.Order)
	start := newLineOrder(&r.StartDeps, r.Len(), &r.StartOrder)
	for i := range r.Kind {
		out.buf = append(labels.append(out.buf, i), ": "...)
		out.buf = appendOp(out.buf, r, i)
		writeDependencies(out, &labels, deps.after(i), " requires ")
		writeDependencies(out, &labels, start.after(i), " irequires ")
		out.spill()
	}
	writeDependencies(out, &labels, deps.rest(), " requires ")
	writeDependencies(out, &labels, start.rest(), " irequires ")
}

func writeDependencies(out *output, labels *labelChoice, lines []edge, word string) {
	for _, e := range lines {
		out.buf = labels.append(out.buf, int(e.op))
		out.buf = append(out.buf, word...)
		out.buf = labels.append(out.buf, int(e.on))
		out.buf = append(out.buf, '\n')
		out.spill()
	}
}

// appendOp appends the statement of op i without its label.
func appendOp(b []byte, r *dag.Rank, i int) []byte {
	kind := r.Kind[i]
	switch kind {
	case dag.Calc:
		b = strconv.AppendUint(append(b, "calc "...), nanoseconds(r.CalcTime(i)), 10)
	case dag.Send:
		b = strconv.AppendUint(append(b, "send "...), uint64(r.Bytes.At(i)), 10)
		b = strconv.AppendUint(append(b, "b to "...), uint64(uint32(r.Peer.At(i))), 10)
	case dag.Recv:
		b = strconv.AppendUint(append(b, "recv "...), uint64(r.Bytes.At(i)), 10)
		b = appendOrAny(append(b, "b from "...), uint32(r.Peer.At(i)))
	}
	if kind != dag.Calc {
		b = appendOrAny(append(b, " tag "...), uint32(r.Tag.At(i)))
	}
	if cpu := r.Stream.At(i); cpu != 0 {
		b = strconv.AppendInt(append(b, " cpu "...), int64(cpu), 10)
	}
	if nic := r.NIC.At(i); nic != 0 && kind != dag.Calc {
		b = strconv.AppendInt(append(b, " nic "...), int64(nic), 10)
	}
	return append(b, '\n')
}

// appendOrAny appends a source or tag; the highest of both means any.
func appendOrAny(b []byte, value uint32) []byte {
	if value == anySource {
		return append(b, "-1"...)
	}
	return strconv.AppendUint(b, uint64(value), 10)
}

// labelChoice says which ops of a rank keep their name as label; the others take their canonical label.
type labelChoice struct {
	names *dag.Text
	keeps []bool // as long as some op keeps its name
}

func (c *labelChoice) append(b []byte, op int) []byte {
	if op < len(c.keeps) && c.keeps[op] {
		return append(b, c.names.At(op)...)
	}
	return appendCanonical(b, op)
}

// chooseLabels picks the label of every op, so that all of a rank differ. An op keeps its name where that is a label
// and no earlier op has it; an op that takes its canonical label takes it from any op that is called so.
func chooseLabels(r *dag.Rank) labelChoice {
	named := r.Name.Len()
	if named == 0 {
		return labelChoice{}
	}
	keeps := make([]bool, named)
	taken := make(map[string]bool, named)
	robbed := make(map[int]int) // of each op whose canonical label another op is called, that op
	for i := range named {
		name := r.Name.At(i)
		if !isLabel(name) || taken[name] {
			continue
		}
		keeps[i], taken[name] = true, true
		if op, ok := canonicalOp([]byte(name)); ok && op != i && op < r.Len() {
			robbed[op] = i
		}
	}
	if len(robbed) > 0 {
		for i := range r.Len() {
			if i < named && keeps[i] {
				continue
			}
			for op, ok := robbed[i]; ok && keeps[op]; op, ok = robbed[op] {
				keeps[op] = false
			}
		}
	}
	return labelChoice{&r.Name, keeps}
}

// isLabel reports whether a name can stand as a label.
func isLabel(name string) bool {
	switch name {
	case "", "send", "recv", "calc", "rank", "num_ranks":
		return false
	}
	return identifierEnd([]byte(name), 0) == len(name)
}

// lostNames returns how many names of a rank cannot be labels.
func lostNames(r *dag.Rank) int64 {
	lost := int64(0)
	choice := chooseLabels(r)
	for i, keeps := range choice.keeps {
		if !keeps && r.Name.At(i) != "" {
			lost++
		}
	}
	return lost
}
