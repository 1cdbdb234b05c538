// This file parses the lines of generated schedules, with one blank between tokens and labels of a prefix and a
// number, without the tests that other lines need.

package goal

import (
	"encoding/binary"
	"math/bits"

	"github.com/tracedag/tracedag/dag"
)

// Literals as the eight bytes that begin them, in the order of memory.
var (
	headRequire  = eight(" require")
	headIRequire = eight(" irequir")
	headCalc     = eight(": calc  ") & (1<<56 - 1)
	headSend     = eight(": send  ") & (1<<56 - 1)
	headRecv     = eight(": recv  ") & (1<<56 - 1)
	headTo       = eight("b to    ") & (1<<40 - 1)
	headFrom     = eight("b from  ") & (1<<56 - 1)
	headTag      = eight(" tag    ") & (1<<40 - 1)
	headCPU      = eight(" cpu    ") & (1<<40 - 1)
	headNIC      = eight(" nic    ") & (1<<40 - 1)
)

func eight(s string) uint64 { return binary.LittleEndian.Uint64([]byte(s)) }

// A line is parsed here if fastRoom bytes follow its start: more than the longest line has, and the bytes that are
// read behind its end.
const (
	fastRoom      = 160
	longestPrefix = 16
)

// usualLines parses lines from p on, the start of a statement, and returns the position of the first line
// that it does not parse: one of another form, with a new or unknown label, with a large number, or with an error.
func (r *textReader) usualLines(b []byte, p int) int {
	blk, labels := &r.block, &r.block.labels
	n := len(labels.prefix)
	if n == 0 || n > longestPrefix || len(labels.entries) > 0 {
		return p
	}
	prefix, canonical := string(labels.prefix), string(labels.prefix) == "l"
	begins := func(p int) bool { return b[p] == prefix[0] && (n == 1 || string(b[p:p+n]) == prefix) }
	lines := int64(0)
	for len(b)-p > fastRoom && begins(p) {
		number, q, ok := usualNumber(b, p+n)
		if !ok {
			break
		}
		word := binary.LittleEndian.Uint64(b[q:])
		if word == headRequire || word == headIRequire {
			to, ending, k := &blk.deps, "s ", 10
			if word == headIRequire {
				to, ending, k = &blk.start, "es ", 11
			}
			if string(b[q+8:q+k]) != ending || !begins(q+k) {
				break
			}
			target, end, ok := usualNumber(b, q+k+n)
			if !ok || b[end] != '\n' || max(number, target) >= labels.known() {
				break
			}
			op, on := labels.op(number), labels.op(target)
			if op == 0 || on == 0 {
				break
			}
			to.add(int(op)-1, int(on)-1, blk.ops())
			lines++
			p = end + 1
			continue
		}
		i, op := len(blk.kind), blk.ops()
		if number < labels.known() || number > 1024+2*uint64(op) || op == dag.MaxOps {
			break
		}
		label := b[p:q]
		var kind dag.Kind
		var value, peer, tag, cpu, nic uint64
		switch word & (1<<56 - 1) {
		case headCalc:
			kind = dag.Calc
			value, q, ok = usualNumber(b, q+7)
		case headSend, headRecv:
			kind = dag.Send
			size, skip := headTo, 5
			mask := uint64(1<<40 - 1)
			if word&(1<<56-1) == headRecv {
				kind, size, skip, mask = dag.Recv, headFrom, 7, 1<<56-1
			}
			if value, q, ok = usualNumber(b, q+7); !ok || binary.LittleEndian.Uint64(b[q:])&mask != size {
				ok = false
				break
			}
			if peer, q, ok = usualNumber(b, q+skip); !ok {
				break
			}
			if binary.LittleEndian.Uint64(b[q:])&(1<<40-1) == headTag {
				if tag, q, ok = usualNumber(b, q+5); !ok {
					break
				}
			}
		default:
			ok = false
		}
		if ok && b[q] != '\n' && binary.LittleEndian.Uint64(b[q:])&(1<<40-1) == headCPU {
			cpu, q, ok = usualNumber(b, q+5)
		}
		if ok && b[q] != '\n' && kind != dag.Calc && binary.LittleEndian.Uint64(b[q:])&(1<<40-1) == headNIC {
			nic, q, ok = usualNumber(b, q+5)
		}
		if !ok || b[q] != '\n' || max(cpu, nic) > cpuNumber.max {
			break
		}
		if labels.inSequence(number, op) {
			labels.sequence++
		} else {
			labels.spread()
			for uint64(len(labels.numbers)) < number {
				labels.numbers = append(labels.numbers, 0)
			}
			labels.numbers = append(labels.numbers, int32(op)+1)
		}
		if (!canonical || number != uint64(op)+1) && !blk.name.Append(i, string(label)) {
			break
		}
		blk.kind = append(blk.kind, kind)
		if kind == dag.Calc {
			blk.duration.Set(i, dag.Time(value)*dag.Nanosecond)
		} else {
			blk.bytes.Set(i, int64(value))
			blk.peer.Set(i, int32(peer))
			blk.tag.Set(i, int64(tag))
		}
		if cpu|nic != 0 {
			blk.cpu.Set(i, int32(cpu))
			blk.nic.Set(i, int32(nic))
		}
		lines++
		p = q + 1
	}
	r.line += lines
	return p
}

// usualNumber parses a number of one to eight digits that does not begin with 0 unless it is 0. It reads ten bytes.
func usualNumber(b []byte, p int) (value uint64, next int, ok bool) {
	const each = 0x0101010101010101
	text := binary.LittleEndian.Uint64(b[p:])
	digits := text ^ '0'*each
	others := (digits + (0x80-10)*each | digits) & (0x80 * each) // its lowest bit is in the first byte that is no digit
	n := bits.TrailingZeros64(others) / 8
	digits <<= 64 - 8*n // the last digit is in the highest byte
	digits = digits*10 + digits>>8
	const pairs = 0x000000ff000000ff // every second pair of digits
	value = (digits&pairs*(100+1000000<<32) + digits>>16&pairs*(1+10000<<32)) >> 32
	p += n
	return value, p, n == 1 || n > 1 && text&0xff != '0' && (n < 8 || b[p]-'0' > 9)
}
