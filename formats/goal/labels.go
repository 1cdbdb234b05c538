// This file resolves the labels of one block of a GOAL text.

package goal

import (
	"bytes"
	"hash/maphash"
	"slices"

	"github.com/tracedag/tracedag/dag"
)

// labelTable maps the labels of a block to their ops. Labels with the prefix of the first label and a number, as
// in generated schedules, are looked up by that number, others in a hash table.
type labelTable struct {
	prefix  []byte
	numbers []int32 // 1 + the op of prefix and number, 0: none

	// sequence is the number of the first ops of the block whose labels are the prefix and 1, 2, ... They are not in
	// numbers, which is empty unless sequence is 0.
	sequence int

	seed    maphash.Seed
	slots   []labelSlot // the length is a power of two
	entries []labelEntry
	text    []byte
}

// labelSlot is a slot of the hash table.
type labelSlot struct {
	hash  uint32 // upper half of the label's hash; it distinguishes most labels without access to the entry
	entry int32  // 1 + an index of entries, 0: free
}

type labelEntry struct {
	text int // start of the label in text; it ends at the next label's start
	op   int32
}

// parseNumber returns the value of digits. ok is false if they have leading zeros or exceed the number of an op.
func parseNumber(digits []byte) (number uint64, ok bool) {
	const longest = 10
	if len(digits) == 0 || len(digits) > longest || digits[0] == '0' && len(digits) > 1 {
		return 0, false
	}
	for _, d := range digits {
		if d -= '0'; d > 9 {
			return 0, false
		}
		number = 10*number + uint64(d)
	}
	return number, true
}

// canonicalOp returns the op of a canonical label, which is "l" and the op's index plus 1.
func canonicalOp(label []byte) (op int, ok bool) {
	if len(label) < 2 || label[0] != 'l' {
		return 0, false
	}
	number, ok := parseNumber(label[1:])
	if !ok || number == 0 || number > dag.MaxOps {
		return 0, false
	}
	return int(number) - 1, true
}

// appendCanonical appends the canonical label of an op.
func appendCanonical(b []byte, op int) []byte {
	return appendDecimal(append(b, 'l'), uint64(op)+1)
}

// canonicalWord returns the canonical label of an op.
func canonicalWord(op int) (w word) {
	w.text[0] = 'l'
	w.n = len(appendDecimal(w.text[:1], uint64(op)+1))
	return w
}

// number returns the number of a label that has the prefix.
func (t *labelTable) number(label []byte) (number uint64, ok bool) {
	n := len(t.prefix)
	if n == 0 || len(label) < n || string(label[:n]) != string(t.prefix) {
		return 0, false
	}
	return parseNumber(label[n:])
}

// setPrefix sets the prefix to the text before the number of a label.
func (t *labelTable) setPrefix(label []byte) {
	prefix := bytes.TrimRight(label, "0123456789")
	if _, ok := parseNumber(label[len(prefix):]); ok {
		t.prefix = append(t.prefix, prefix...)
	}
}

// define defines a label as the name of an op, unless it is defined. Ops must come in ascending order. It reports
// whether the label is the canonical one of the op.
func (t *labelTable) define(label []byte, op int) (canonical bool) {
	if len(t.prefix) == 0 {
		t.setPrefix(label)
	}
	number, ok := t.number(label)
	if ok && t.inSequence(number, op) {
		t.sequence++
		return string(t.prefix) == "l"
	}
	t.spread()
	// sparse numbers go to the hash table, because a large number would need much memory
	if !ok || number > 1024+2*uint64(op) {
		t.insert(label, op)
		own, ok := canonicalOp(label)
		return ok && own == op
	}
	for uint64(len(t.numbers)) <= number {
		t.numbers = append(t.numbers, 0)
	}
	if t.numbers[number] == 0 && t.find(label) < 0 {
		t.numbers[number] = int32(op) + 1
	}
	return number == uint64(op)+1 && string(t.prefix) == "l"
}

// inSequence reports whether the label of the prefix and a number, of an op, continues the sequence.
func (t *labelTable) inSequence(number uint64, op int) bool {
	return op == t.sequence && number == uint64(op)+1 && len(t.numbers)+len(t.entries) == 0
}

// spread enters the labels of the sequence in numbers.
func (t *labelTable) spread() {
	if t.sequence == 0 {
		return
	}
	t.numbers = slices.Grow(t.numbers, t.sequence+1)[:t.sequence+1]
	for i := range t.numbers {
		t.numbers[i] = int32(i)
	}
	t.sequence = 0
}

// known returns a number above those of all labels with the prefix that are not in the hash table.
func (t *labelTable) known() uint64 {
	if t.sequence > 0 {
		return uint64(t.sequence) + 1
	}
	return uint64(len(t.numbers))
}

// op returns 1 + the op of the prefix and a number below known, 0 if there is none.
func (t *labelTable) op(number uint64) int32 {
	if t.sequence > 0 {
		return int32(number)
	}
	return t.numbers[number]
}

// lookup returns the op of a label, or -1.
func (t *labelTable) lookup(label []byte) int {
	number, ok := t.number(label)
	if ok && number < t.known() && t.op(number) > 0 {
		return int(t.op(number)) - 1
	}
	return t.find(label)
}

// find looks a label up in the hash table.
func (t *labelTable) find(label []byte) int {
	if len(t.entries) == 0 {
		return -1
	}
	if entry := t.slots[t.slot(label, maphash.Bytes(t.seed, label))].entry; entry > 0 {
		return int(t.entries[entry-1].op)
	}
	return -1
}

// slot returns the slot of a label in the hash table, or a free one for it.
func (t *labelTable) slot(label []byte, hash uint64) uint64 {
	mask := uint64(len(t.slots) - 1)
	for at := hash & mask; ; at = (at + 1) & mask {
		s := t.slots[at]
		if s.entry == 0 || s.hash == uint32(hash>>32) && bytes.Equal(t.label(int(s.entry-1)), label) {
			return at
		}
	}
}

func (t *labelTable) label(entry int) []byte {
	end := len(t.text)
	if entry+1 < len(t.entries) {
		end = t.entries[entry+1].text
	}
	return t.text[t.entries[entry].text:end]
}

// insert adds a label to the hash table if it is new.
func (t *labelTable) insert(label []byte, op int) {
	if len(t.slots) == 0 {
		t.seed = maphash.MakeSeed()
		t.slots = make([]labelSlot, 64)
	}
	if 2*len(t.entries) >= len(t.slots) {
		t.slots = make([]labelSlot, 2*len(t.slots))
		for i := range t.entries {
			t.place(int32(i)+1, t.label(i))
		}
	}
	hash := maphash.Bytes(t.seed, label)
	at := t.slot(label, hash)
	if t.slots[at].entry > 0 {
		return
	}
	t.entries = append(t.entries, labelEntry{len(t.text), int32(op)})
	t.text = append(t.text, label...)
	t.slots[at] = labelSlot{uint32(hash >> 32), int32(len(t.entries))}
}

// place adds a new entry to a hash table.
func (t *labelTable) place(entry int32, label []byte) {
	hash := maphash.Bytes(t.seed, label)
	t.slots[t.slot(label, hash)] = labelSlot{uint32(hash >> 32), entry}
}

// reset empties the table for the next block. It shrinks a hash table that the block used little of, so that one
// large block does not slow down later ones.
func (t *labelTable) reset() {
	t.prefix, t.numbers, t.sequence = t.prefix[:0], t.numbers[:0], 0
	if len(t.entries) == 0 {
		return
	}
	clear(t.slots)
	if len(t.slots) > 64 && 8*len(t.entries) < len(t.slots) {
		t.slots = t.slots[:len(t.slots)/2]
	}
	t.entries, t.text = t.entries[:0], t.text[:0]
}
