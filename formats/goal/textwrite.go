// This file writes GOAL text in a canonical form: every statement in column one, every op with a label, every
// message with a tag, and each dependency as soon as both its ops are written.

package goal

import (
	"runtime"
	"slices"

	"github.com/tracedag/tracedag/dag"
)

// clockComment is the line before the first calc of a clock.
const clockComment = "// clock"

func writeTextHead(out *output, ranks int) {
	out.buf = append(out.buf, "num_ranks "...)
	out.buf = appendDecimal(out.buf, uint64(ranks))
	out.buf = append(out.buf, '\n')
}

var (
	wordCalc      = newWord(": calc ")
	wordSend      = newWord(": send ")
	wordTo        = newWord("b to ")
	wordRecv      = newWord(": recv ")
	wordFrom      = newWord("b from ")
	wordTag       = newWord(" tag ")
	wordCPU       = newWord(" cpu ")
	wordNIC       = newWord(" nic ")
	wordRequires  = newWord(" requires ")
	wordIrequires = newWord(" irequires ")
)

// writeBlock writes a rank. If it begins with a clock, a comment marks that.
func writeBlock(out *output, rank int, r *dag.Rank, clocked bool) error {
	out.buf = append(out.buf, "\nrank "...)
	out.buf = appendDecimal(out.buf, uint64(rank))
	out.buf = append(out.buf, " {\n"...)
	if clocked {
		out.buf = append(out.buf, clockComment+"\n"...)
	}
	labels := chooseLabels(r)
	deps := newLineOrder(&r.Deps, r.Len(), &r.Order)
	start := newLineOrder(&r.StartDeps, r.Len(), &r.StartOrder)
	if labels.canonical() && deps.plain() && start.plain() {
		writePlain(out, r)
	} else {
		writeOrdered(out, r, &labels, &deps, &start)
	}
	out.buf = append(out.buf, "}\n"...)
	return nil
}

// A large rank is formatted in pieces of pieceOps ops, unless a piece has more than pieceDeps dependencies.
const (
	pieceOps  = 1 << 12
	pieceDeps = 8 * pieceOps
)

// writePlain writes the ops of a rank with canonical labels whose dependencies can follow their op. It formats
// several pieces at the same time, unless the output itself is kept.
func writePlain(out *output, r *dag.Rank) {
	pieces := (r.Len() + pieceOps - 1) / pieceOps
	workers := min(runtime.GOMAXPROCS(0), pieces/2)
	if out.w == nil || workers < 2 {
		writeOps(out, r, 0, r.Len())
		return
	}
	piece := func(i int) (first, last int, small bool) {
		first, last = i*pieceOps, min((i+1)*pieceOps, r.Len())
		deps := depsBefore(&r.Deps, last) - depsBefore(&r.Deps, first)
		start := depsBefore(&r.StartDeps, last) - depsBefore(&r.StartDeps, first)
		return first, last, deps+start <= pieceDeps
	}
	out.flush()
	taken := 0
	format := func(i int, out *output) error {
		if first, last, small := piece(i); small {
			writeOps(out, r, first, last)
		}
		return nil
	}
	inOrder(pieces, slices.Repeat([]func(int, *output) error{format}, workers), func(formatted *output) error {
		first, last, small := piece(taken)
		taken++
		if small {
			return out.take(formatted)
		}
		writeOps(out, r, first, last)
		return out.flush()
	})
}

// depsBefore returns the number of dependencies of the ops before op i.
func depsBefore(e *dag.Edges, i int) int64 {
	if i = min(i, len(e.End)); i == 0 {
		return 0
	}
	return int64(e.End[i-1])
}

// writeOps writes ops first to last-1 in the form of writePlain.
func writeOps(out *output, r *dag.Rank, first, last int) {
	for i := first; i < last; i++ {
		label := canonicalWord(i)
		out.buf = appendOp(appendWord(out.buf, &label), r, i)
		writeList(out, &label, i, r.Deps.Of(i), wordRequires)
		writeList(out, &label, i, r.StartDeps.Of(i), wordIrequires)
		out.spill()
	}
}

// writeList writes the dependencies of op i.
func writeList(out *output, label *word, i int, list []int32, word *word) {
	for _, off := range list {
		b := appendWord(appendWord(out.buf, label), word)
		out.buf = append(appendCanonical(b, i-int(off)), '\n')
		out.spill()
	}
}

// writeOrdered writes the ops of a rank, and the dependencies in line order.
func writeOrdered(out *output, r *dag.Rank, labels *labelChoice, deps, start *lineOrder) {
	write := func(lines []edge, word *word) {
		for _, e := range lines {
			b := appendWord(labels.append(out.buf, int(e.op)), word)
			out.buf = append(labels.append(b, int(e.on)), '\n')
			out.spill()
		}
	}
	for i := range r.Kind {
		out.buf = appendOp(labels.append(out.buf, i), r, i)
		write(deps.after(i), wordRequires)
		write(start.after(i), wordIrequires)
		out.spill()
	}
	write(deps.rest(), wordRequires)
	write(start.rest(), wordIrequires)
}

// appendOp appends the statement after the label of op i.
func appendOp(b []byte, r *dag.Rank, i int) []byte {
	kind := r.Kind[i]
	switch kind {
	case dag.Calc:
		b = appendDecimal(appendWord(b, wordCalc), nanoseconds(r.CalcTime(i)))
	case dag.Send:
		b = appendDecimal(appendWord(b, wordSend), uint64(r.Bytes.At(i)))
		b = appendDecimal(appendWord(b, wordTo), uint64(uint32(r.Peer.At(i))))
	case dag.Recv:
		b = appendDecimal(appendWord(b, wordRecv), uint64(r.Bytes.At(i)))
		b = appendOrAny(appendWord(b, wordFrom), uint32(r.Peer.At(i)))
	}
	if kind != dag.Calc {
		b = appendOrAny(appendWord(b, wordTag), uint32(r.Tag.At(i)))
	}
	if cpu := r.Stream.At(i); cpu != 0 {
		b = appendDecimal(appendWord(b, wordCPU), uint64(cpu))
	}
	if nic := r.NIC.At(i); nic != 0 && kind != dag.Calc {
		b = appendDecimal(appendWord(b, wordNIC), uint64(nic))
	}
	return append(b, '\n')
}

// appendOrAny appends a source or tag; the highest value of both matches any.
func appendOrAny(b []byte, value uint32) []byte {
	if value == anySource {
		return append(b, "-1"...)
	}
	return appendDecimal(b, uint64(value))
}

// labelChoice selects the ops of a rank whose label is their name; the others have their canonical label.
type labelChoice struct {
	names *dag.Text
	keeps []bool // covers the ops up to the last one that keeps its name
}

// canonical reports whether all ops have their canonical label.
func (c *labelChoice) canonical() bool {
	return len(c.keeps) == 0
}

func (c *labelChoice) append(b []byte, op int) []byte {
	if op < len(c.keeps) && c.keeps[op] {
		return append(b, c.names.At(op)...)
	}
	return appendCanonical(b, op)
}

// chooseLabels chooses distinct labels for all ops of a rank. An op keeps its name if that is a label and no
// earlier op has it. An op with a canonical label takes it away from an op of that name.
func chooseLabels(r *dag.Rank) labelChoice {
	named := r.Name.Len()
	if named == 0 {
		return labelChoice{}
	}
	keeps := make([]bool, named)
	taken := make(map[string]bool, named)
	robbed := make(map[int]int) // key: op whose canonical label is another op's name; value: that other op
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

// isLabel reports whether a name is valid as a label.
func isLabel(name string) bool {
	switch name {
	case "", "send", "recv", "calc", "rank", "num_ranks":
		return false
	}
	return identifierEnd([]byte(name), 0) == len(name)
}

// namesLost returns the number of names of a rank that cannot be labels.
func namesLost(r *dag.Rank) int64 {
	lost := int64(0)
	choice := chooseLabels(r)
	for i, keeps := range choice.keeps {
		if !keeps && r.Name.At(i) != "" {
			lost++
		}
	}
	return lost
}
