// This file reads GOAL text: the statements of a file, line by line. docs/reference/formats/goal.md gives their
// syntax.
//
// The reference uses a lexer that takes the longest token and needs no blanks between tokens; so does this reader.
// It has a window of whole lines, so that no statement is split, and one block at a time.

package goal

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"strconv"
	"unicode/utf8"

	"github.com/tracedag/tracedag/dag"
	"github.com/tracedag/tracedag/formats/format"
	"github.com/tracedag/tracedag/memory"
)

func readText(inputs []*format.Input, o format.ReadOptions) (*dag.Trace, error) {
	in, err := format.Single(inputs, "a GOAL schedule")
	if err != nil {
		return nil, err
	}
	var ranks []*dag.Rank
	var marks []int32 // of the ranks
	r := newTextReader(in.Name, o)
	r.take = func(rank *dag.Rank, marked int32) error {
		ranks, marks = append(ranks, rank.Keep()), append(marks, marked)
		return nil
	}
	if err := r.read(in.Reader); err != nil {
		return nil, err
	}
	if err := restoreReleases(ranks, o, marks); err != nil {
		return nil, format.InFile(in.Name, err)
	}
	return newTrace(ranks), nil
}

func newTextReader(file string, o format.ReadOptions) *textReader {
	return &textReader{ctx: o.Context, file: file, compat: o.Compat, warn: o.Warn, line: 1, clock: -1}
}

// unmarked is the stream of the clock of a rank without a marked one.
const unmarked = -1

type textReader struct {
	ctx    context.Context // carries the limit of memory; may be nil
	file   string
	compat bool
	warn   func(message string, args ...any)

	line     int64 // current line, from 1
	comment  int64 // first line of the current block comment, 0 outside
	numRanks int64 // 0: not given yet
	open     bool  // whether a block is open
	block    block // ops of the open block, or ops before the next one
	rank     int   // of the open block, or of the next one
	clock    int   // the op of the block before which a comment marks a clock; -1: none
	done     bool  // whether the last block is closed; only comments may follow
	ignored  bool  // whether something else follows, which is not read

	base int64 // offset of the lines that are parsed
	at   int64 // offset behind the latest closed block

	// take takes the next rank, which is valid until it returns if reuse is set, and the stream of its marked clock.
	take  func(r *dag.Rank, marked int32) error
	reuse bool     // the ranks share the columns of the block
	parts *parting // passes long blocks on in parts; nil: none
}

// read parses a whole file.
func (r *textReader) read(src io.Reader) error {
	err := format.EachLines(r.ctx, src, func(lines []byte) error {
		if err := r.parse(lines); err != nil {
			return err
		}
		if r.ignored {
			return format.ErrStop
		}
		r.base += int64(len(lines))
		return nil
	})
	var syntax *format.SyntaxError
	switch {
	case err == nil && !r.done:
		return r.end()
	case errors.Is(err, format.ErrLongLine):
		return r.syntaxError("a shorter line", err.Error())
	case err != nil && !errors.As(err, &syntax):
		return &format.FileError{File: r.file, Err: err}
	}
	return err
}

// end reports a file that ends within a comment or block, or too early.
func (r *textReader) end() error {
	const found = "end of file"
	switch last := int64(r.rank) + 1; {
	case r.comment != 0:
		return r.syntaxError(fmt.Sprintf(`"*/" to end the comment of line %d`, r.comment), found)
	case r.numRanks == 0:
		return r.syntaxError("num_ranks", found)
	case last == r.numRanks && (r.open || last == 1):
		r.warn("%s:%d: the file ends within the block of rank %d", r.file, r.line, last-1)
		r.at = r.base
		return r.finishBlock()
	case r.open:
		return r.syntaxError(`"}"`, found)
	default:
		return r.syntaxError(fmt.Sprintf("the blocks of ranks %d to %d", last-1, r.numRanks-1), found)
	}
}

// Classes of the bytes of identifiers; other bytes have class 0.
const (
	letter = 1 + iota
	digit  // digits and underscore, not as the first byte
)

var identifierBytes = func() (class [256]uint8) {
	for c := range 256 {
		switch {
		case 'a' <= c|0x20 && c|0x20 <= 'z':
			class[c] = letter
		case '0' <= c && c <= '9', c == '_':
			class[c] = digit
		}
	}
	return class
}()

// identifierEnd returns the end of the identifier at p, or p if there is none.
func identifierEnd(b []byte, p int) int {
	if p == len(b) || identifierBytes[b[p]] != letter {
		return p
	}
	for p < len(b) && identifierBytes[b[p]] != 0 {
		p++
	}
	return p
}

// In the functions below, b is whole lines and p a position in them; a returned position is the next one.

func skipBlanks(b []byte, p int) int {
	for b[p] == ' ' || b[p] == '\t' {
		p++
	}
	return p
}

// newline returns the position behind the line end at p, or -1 if there is none.
func newline(b []byte, p int) int {
	switch {
	case b[p] == '\n':
		return p + 1
	case b[p] == '\r' && b[p+1] == '\n':
		return p + 2
	}
	return -1
}

func startsWith(b []byte, p int, token string) bool {
	return len(b)-p > len(token) && string(b[p:p+len(token)]) == token
}

const statement = `"num_ranks", "rank", "calc", "send", "recv", a label, "}" or a comment`

// parse parses whole lines.
func (r *textReader) parse(b []byte) error {
	err := r.passOn()
	if err != nil {
		return err
	}
	lineStart := true
	for p := 0; p < len(b); {
		if r.comment != 0 {
			p, lineStart = r.skipComment(b, p), false
			continue
		}
		if r.done {
			if p = skipBlanks(b, p); newline(b, p) < 0 && (b[p] != '/' || b[p+1] != '/' && b[p+1] != '*') {
				r.warn("%s:%d: text follows the block of the last rank, %d; it is ignored", r.file, r.line,
					r.rank-1)
				r.ignored = true
				return nil
			}
		}
		if b[p] == ' ' || b[p] == '\t' {
			p = skipBlanks(b, p)
			// The reference drops the byte after blanks before a statement. Indentation is accepted here, which
			// changes the meaning of no valid file; blanks elsewhere are an error.
			if !lineStart && newline(b, p) < 0 {
				return r.unexpected(b, p, "end of line (a statement begins in the first column of its line)")
			}
		}
		lineStart = false
		switch c := b[p]; {
		case identifierBytes[c] == letter:
			if next := r.usualLines(b, p); next > p {
				p, lineStart = next, true
				continue
			}
			p, lineStart, err = r.word(b, p)
		case newline(b, p) > 0:
			p, lineStart = newline(b, p), true
			r.line++
		case c == '}':
			p++
			r.at = r.base + int64(p)
			err = r.closeBlock()
		case c == '/' && b[p+1] == '/':
			end := p + bytes.IndexByte(b[p:], '\n')
			if r.open && r.clock < 0 && string(bytes.TrimRight(b[p:end], " \t\r")) == clockComment {
				if r.clock = r.block.ops(); r.block.base > 0 && !r.parts.clocked {
					return errClocked
				}
			}
			p = end + 1
			r.line++
			lineStart = true
		case c == '/' && b[p+1] == '*':
			p += 2
			r.comment = r.line
		default:
			err = r.unexpected(b, p, statement)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// skipComment returns the position behind the current block comment.
func (r *textReader) skipComment(b []byte, p int) int {
	body := b[p:]
	end := bytes.Index(body, []byte("*/"))
	if end >= 0 {
		body = body[:end+2]
		r.comment = 0
	}
	r.line += int64(bytes.Count(body, []byte{'\n'}))
	return p + len(body)
}

// word parses a statement that begins with a keyword or a label. All but num_ranks and rank end with their line.
func (r *textReader) word(b []byte, p int) (next int, lineEnd bool, err error) {
	end := identifierEnd(b, p)
	word := b[p:end]
	switch string(word) {
	case "num_ranks":
		next, err = r.ranksStatement(b, end)
		return next, false, err
	case "rank":
		next, err = r.rankStatement(b, end)
		return next, false, err
	case "calc":
		next, err = r.calc(b, end, nil)
		return next, true, err
	case "send":
		next, err = r.message(b, end, nil, dag.Send)
		return next, true, err
	case "recv":
		next, err = r.message(b, end, nil, dag.Recv)
		return next, true, err
	}
	next, err = r.labelled(b, end, word)
	return next, true, err
}

// labelled parses the statement after a label.
func (r *textReader) labelled(b []byte, p int, label []byte) (int, error) {
	p = skipBlanks(b, p)
	switch {
	case b[p] == ':':
		p = skipBlanks(b, p+1)
		switch {
		case startsWith(b, p, "calc"):
			return r.calc(b, p+4, label)
		case startsWith(b, p, "send"):
			return r.message(b, p+4, label, dag.Send)
		case startsWith(b, p, "recv"):
			return r.message(b, p+4, label, dag.Recv)
		}
		return p, r.unexpected(b, p, `"calc", "send" or "recv"`)
	case startsWith(b, p, "requires"):
		return r.dependency(b, p+8, label, &r.block.deps)
	case startsWith(b, p, "irequires"):
		return r.dependency(b, p+9, label, &r.block.start)
	}
	return p, r.unexpected(b, p, `":", "requires" or "irequires" after a label`)
}

// dependency parses the right side of a dependency and adds it to the list.
func (r *textReader) dependency(b []byte, p int, label []byte, to *edgeList) (int, error) {
	p = skipBlanks(b, p)
	end := identifierEnd(b, p)
	if end == p {
		return p, r.unexpected(b, p, "a label")
	}
	next, err := r.lineEnd(b, end)
	if err != nil {
		return p, err
	}
	op := r.block.labels.lookup(label)
	if op < 0 {
		return p, r.undefined(label)
	}
	on := r.block.labels.lookup(b[p:end])
	if on < 0 {
		return p, r.undefined(b[p:end])
	}
	to.add(op, on, r.block.ops())
	r.line++
	return next, nil
}

// calc parses a statement after the keyword calc, and adds the op.
func (r *textReader) calc(b []byte, p int, label []byte) (int, error) {
	length, p, err := r.number(b, p, calcLength)
	if err != nil {
		return p, err
	}
	cpu := uint64(0)
	if p = skipBlanks(b, p); startsWith(b, p, "cpu") {
		if cpu, p, err = r.number(b, p+3, cpuNumber); err != nil {
			return p, err
		}
		p = skipBlanks(b, p)
	} else if newline(b, p) < 0 {
		return p, r.unexpected(b, p, `"cpu" or end of line`)
	}
	next, err := r.lineEnd(b, p)
	if err != nil {
		return p, err
	}
	i, err := r.add(dag.Calc, label)
	r.block.duration.Set(i, dag.Time(length)*dag.Nanosecond)
	r.block.cpu.Set(i, int32(cpu))
	return next, err
}

// message parses a statement after the keyword send or recv, and adds the op.
func (r *textReader) message(b []byte, p int, label []byte, kind dag.Kind) (int, error) {
	n, p, err := r.number(b, p, messageSize)
	if err != nil {
		return p, err
	}
	if p = skipBlanks(b, p); b[p] != 'b' {
		return p, r.unexpected(b, p, `"b" (bytes)`)
	}
	peer, p, err := r.partner(b, skipBlanks(b, p+1), kind)
	if err != nil {
		return p, err
	}
	tag, cpu, nic := uint64(0), uint64(0), uint64(0)
	p = skipBlanks(b, p)
	expected := `"tag", "cpu", "nic" or end of line`
	if startsWith(b, p, "tag") {
		expected = `"cpu", "nic" or end of line`
		if tag, p, err = r.numberOrAny(b, p+3, tagNumber); err != nil {
			return p, err
		}
		p = skipBlanks(b, p)
	}
	if startsWith(b, p, "cpu") {
		expected = `"nic" or end of line`
		if cpu, p, err = r.number(b, p+3, cpuNumber); err != nil {
			return p, err
		}
		p = skipBlanks(b, p)
	}
	if startsWith(b, p, "nic") {
		expected = "end of line"
		if nic, p, err = r.number(b, p+3, nicNumber); err != nil {
			return p, err
		}
		p = skipBlanks(b, p)
	}
	next := newline(b, p)
	if next < 0 {
		return p, r.unexpected(b, p, expected)
	}
	i, err := r.add(kind, label)
	r.block.bytes.Set(i, int64(n))
	r.block.peer.Set(i, int32(uint32(peer)))
	r.block.tag.Set(i, fromTag(uint32(tag)))
	r.block.cpu.Set(i, int32(cpu))
	r.block.nic.Set(i, int32(nic))
	return next, err
}

// partner parses the target of a send or the source of a receive.
func (r *textReader) partner(b []byte, p int, kind dag.Kind) (uint64, int, error) {
	if kind == dag.Send {
		if !startsWith(b, p, "to") {
			return 0, p, r.unexpected(b, p, `"to"`)
		}
		return r.number(b, p+2, targetRank)
	}
	if !startsWith(b, p, "from") {
		return 0, p, r.unexpected(b, p, `"from"`)
	}
	return r.numberOrAny(b, p+4, sourceRank)
}

// add adds an op to the block.
func (r *textReader) add(kind dag.Kind, label []byte) (int, error) {
	blk := &r.block
	i := len(blk.kind)
	if blk.ops() == dag.MaxOps {
		return i, r.tooMuch(errTooMuch)
	}
	if label != nil {
		if err := blk.label(label); err != nil {
			return i, r.tooMuch(err)
		}
	}
	blk.kind = append(blk.kind, kind)
	r.line++
	return i, nil
}

// lineEnd parses blanks and the end of the line, without counting it.
func (r *textReader) lineEnd(b []byte, p int) (int, error) {
	p = skipBlanks(b, p)
	next := newline(b, p)
	if next < 0 {
		return p, r.unexpected(b, p, "end of line")
	}
	return next, nil
}

// ranksStatement parses a statement after the keyword num_ranks.
func (r *textReader) ranksStatement(b []byte, p int) (int, error) {
	n, next, err := r.number(b, p, ranksNumber)
	if err != nil {
		return p, err
	}
	if r.rank > 0 && int64(n) != r.numRanks {
		return p, r.syntaxError(fmt.Sprintf("num_ranks %d, as before the first block", r.numRanks),
			strconv.FormatUint(n, 10))
	}
	if err := memory.CheckRanks(r.ctx, int64(min(n, math.MaxInt64))); err != nil {
		return p, fmt.Errorf("line %d: %w", r.line, err)
	}
	r.numRanks = int64(n)
	return next, nil
}

// rankStatement parses a statement after the keyword rank, and opens the block.
func (r *textReader) rankStatement(b []byte, p int) (int, error) {
	rank, p, err := r.number(b, p, rankNumber)
	if err != nil {
		return p, err
	}
	if p = skipBlanks(b, p); b[p] != '{' {
		return p, r.unexpected(b, p, `"{" on the same line`)
	}
	if r.open {
		return p, r.syntaxError(fmt.Sprintf(`"}" to close the block of rank %d`, r.rank),
			fmt.Sprintf("the block of rank %d", rank))
	}
	if rank != uint64(r.rank) {
		return p, r.syntaxError(fmt.Sprintf("the block of rank %d (all ranks in order, each once)", r.rank),
			fmt.Sprintf("the block of rank %d", rank))
	}
	r.open = true
	return p + 1, nil
}

// closeBlock closes a block at its closing brace.
func (r *textReader) closeBlock() error {
	if !r.open {
		return r.syntaxError("an open block to close", `"}"`)
	}
	if r.numRanks == 0 {
		return r.syntaxError("num_ranks, at least 1, before the first block ends", "none")
	}
	r.open = false
	return r.finishBlock()
}

// finishBlock passes the current block on as a rank.
func (r *textReader) finishBlock() error {
	if r.inParts() {
		return r.finishParts()
	}
	rank, err := r.block.finish(r.reuse)
	if err != nil {
		return r.tooMuch(err)
	}
	marked := int32(unmarked)
	if r.clock >= 0 && r.clock < rank.Len() {
		marked = rank.Stream.At(r.clock)
	}
	if err := r.take(&rank, marked); err != nil {
		return err
	}
	r.endBlock()
	return nil
}

// endBlock prepares for the next block.
func (r *textReader) endBlock() {
	r.clock = -1
	r.rank++
	r.done = int64(r.rank) == r.numRanks
}

// field is a number of the syntax: its name, its largest value, and its width in bits in the reference.
type field struct {
	name string
	max  uint64
	bits int
}

var (
	calcLength  = &field{"the nanoseconds of a calc", uint64(maxNanoseconds), 64}
	messageSize = &field{"a size in bytes", math.MaxInt64, 64}
	targetRank  = &field{"a rank", math.MaxInt32, 32}
	sourceRank  = &field{"a rank or -1", math.MaxInt32, 32}
	tagNumber   = &field{"a tag or -1", math.MaxUint32, 32}
	cpuNumber   = &field{"a cpu", math.MaxUint8, 8}
	nicNumber   = &field{"a nic", math.MaxUint8, 8}
	ranksNumber = &field{"the number of ranks", math.MaxUint32, 32}
	rankNumber  = &field{"a rank", math.MaxUint32, 32}
)

// number parses blanks and a number.
func (r *textReader) number(b []byte, p int, f *field) (value uint64, next int, err error) {
	p = skipBlanks(b, p)
	next = p
	for {
		d := b[next] - '0'
		if d > 9 {
			break
		}
		value = 10*value + uint64(d) // wraps, as in the reference
		next++
	}
	if value > f.max || next-p > 19 || next == p {
		value, err = r.unusual(b, p, next, value, f)
	}
	return value, next, err
}

// numberOrAny parses blanks and a number, or -1, which matches any source or tag.
func (r *textReader) numberOrAny(b []byte, p int, f *field) (value uint64, next int, err error) {
	p = skipBlanks(b, p)
	if startsWith(b, p, "-1") {
		return math.MaxUint32, p + 2, nil
	}
	return r.number(b, p, f)
}

// unusual handles a number b[p:next] that is missing, long or out of range; value is its value modulo 2^64.
func (r *textReader) unusual(b []byte, p, next int, value uint64, f *field) (uint64, error) {
	if next == p {
		return 0, r.unexpected(b, p, f.name)
	}
	const longest = 20 // digits of the largest uint64
	limit := f.max
	if !r.compat && (f == cpuNumber || f == nicNumber) {
		limit = math.MaxInt32 // only binaries limit them to 8 bits
	}
	digits := bytes.TrimLeft(b[p:next], "0")
	if len(digits) <= longest {
		exact, err := strconv.ParseUint("0"+string(digits), 10, 64)
		if err == nil && (exact <= limit || f == sourceRank && exact == anySource) {
			return exact, nil
		}
	}
	if r.compat && (f.bits < 64 || value <= f.max) {
		return value & (1<<f.bits - 1), nil
	}
	return 0, r.syntaxError(fmt.Sprintf("%s in 0..%d", f.name, limit), excerpt(digits))
}

func (r *textReader) syntaxError(expected, found string) error {
	return &format.SyntaxError{File: r.file, Line: r.line, Expected: expected, Found: found}
}

// unexpected returns the error about an unexpected token at p.
func (r *textReader) unexpected(b []byte, p int, expected string) error {
	if newline(b, p) > 0 {
		return r.syntaxError(expected, "end of line")
	}
	end := p
	for identifierBytes[b[end]] != 0 {
		end++
	}
	if end == p {
		_, width := utf8.DecodeRune(b[p:])
		end += width
	}
	return r.syntaxError(expected, strconv.Quote(excerpt(b[p:end])))
}

func (r *textReader) undefined(label []byte) error {
	return r.syntaxError("a label that an earlier line of the block defines",
		"the undefined label "+strconv.Quote(excerpt(label)))
}

func (r *textReader) tooMuch(err error) error {
	return r.syntaxError(err.Error(), "more")
}

// excerpt returns a token for a message, shortened if it is long.
func excerpt(token []byte) string {
	const most = 40
	if len(token) > most {
		return string(token[:most]) + "..."
	}
	return string(token)
}
