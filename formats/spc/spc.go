// Package spc reads and writes traces of the Storage Performance Council: one read or write per line, as defined
// by the "SPC Trace File Format Specification", revision 1.0.1. docs/reference/formats/spc.md describes the
// mapping.
package spc

import (
	"encoding/json"
	"fmt"
	"math"
	"strings"
	"unicode/utf8"

	"github.com/tracedag/tracedag/dag"
	"github.com/tracedag/tracedag/formats/format"
	"github.com/tracedag/tracedag/formats/internal/blockio"
)

// Format is the SPC trace format.
var Format = format.Format{
	Name:       "spc",
	Modes:      format.Modes{Lenient: true},
	Title:      "SPC block-storage traces, including the UMass collection",
	Extensions: []string{".spc"},
	Detect:     func(head []byte) bool { return blockio.FirstLine(head, isRecord) },
	Read:       read,
	Options:    blockio.Table,
	Losses:     losses,
	Write:      write,
}

// style is the layout of a file's lines, the content of dag.Meta.Attrs under the key "spc".
type style struct {
	Block    int64  `json:"block"`    // block size in bytes, the unit of addresses
	Decimals int    `json:"decimals"` // decimals of times
	Opcodes  string `json:"opcodes"`  // "rw" or "RW"
}

// usual is the style of traces from other formats.
var usual = style{Block: blockio.SectorSize, Decimals: 6, Opcodes: "RW"}

// maxDecimals is the number of decimals of a time in whole picoseconds.
const maxDecimals = 12

// form is the layout of a record's line.
type form struct {
	decimals int
	opcode   byte
	more     bool // there are optional fields
}

// parse parses a line with addresses in blocks.
func parse(l *blockio.Line, block int64, r *blockio.Record) form {
	var f form
	r.Unit = int32(l.Number("a unit number", math.MaxInt32))
	next(l)
	r.Address = l.Number("an address in blocks", math.MaxInt64/block) * block
	next(l)
	r.Bytes = l.Number("a size in bytes", math.MaxInt64)
	next(l)
	f.opcode = opcode(l)
	r.Write = f.opcode|0x20 == 'w'
	next(l)
	r.Time, f.decimals = l.Time("a time in seconds", maxDecimals)
	if f.decimals < 0 {
		l.Fail(`"." and decimals of a time in seconds`)
	}
	if f.more = !l.End(); f.more && l.Next() != ',' {
		l.Fail(`"," and optional fields, or the end of the line`)
	}
	return f
}

// next skips the comma between fields and the blanks behind it.
func next(l *blockio.Line) {
	l.Comma()
	l.Blanks()
}

// opcode parses the direction.
func opcode(l *blockio.Line) byte {
	word := l.Peek()
	if len(word) != 1 || word[0]|0x20 != 'r' && word[0]|0x20 != 'w' {
		l.Fail("R or W")
		return 'r'
	}
	l.Word()
	return word[0]
}

func isRecord(l *blockio.Line) bool {
	parse(l, 1, &blockio.Record{})
	return !l.Failed()
}

func read(inputs []*format.Input, o format.ReadOptions) (*dag.Trace, error) {
	in, err := format.Single(inputs, "a storage trace")
	if err != nil {
		return nil, err
	}
	_, block, err := blockio.BlockSize(&o)
	if err != nil {
		return nil, err
	}
	c := blockio.NewCollector(in, &o)
	s := style{Block: block}
	noText := int64(0)
	var record blockio.Record
	err = blockio.EachLine(in, &o, func(l *blockio.Line) blockio.Verdict {
		f := parse(l, block, &record)
		if l.Failed() {
			return blockio.Taken
		}
		if s.Opcodes == "" {
			s.Decimals, s.Opcodes = min(f.decimals, maxDecimals), "RW"
			if f.opcode >= 'a' {
				s.Opcodes = "rw"
			}
		}
		record.Attrs = nil
		if f.more || l.Odd() || f.decimals != s.Decimals || f.opcode >= 'a' != (s.Opcodes == "rw") {
			if utf8.Valid(l.Text()) {
				record.Attrs = keep(l.Text())
			} else {
				noText++
			}
		}
		return c.Add(l, &record)
	})
	if err != nil {
		return nil, err
	}
	if noText > 0 {
		o.Warn("%s: %s with optional fields in invalid UTF-8, which are not kept", in.Name,
			blockio.Lines(noText))
	}
	t, err := c.Trace()
	if err != nil {
		return nil, err
	}
	if t.Attrs, err = attributes(s); err != nil {
		return nil, err
	}
	return t, nil
}

// attributes returns the attributes of a trace with a style.
func attributes(s style) (string, error) {
	text, err := json.Marshal(map[string]style{"spc": s})
	return string(text), err
}

// lineAttrs is the attributes of an op whose record is not in the file's style.
type lineAttrs struct {
	SPC struct {
		Line string `json:"line"`
	} `json:"spc"`
}

// keep returns attributes that contain a line.
func keep(line []byte) []byte {
	var a lineAttrs
	a.SPC.Line = string(line)
	text, err := json.Marshal(a)
	if err != nil {
		panic(fmt.Sprintf("unreachable: a string cannot be encoded: %v", err))
	}
	return text[1 : len(text)-1]
}

// keptLine returns the line in the attributes, or "".
func keptLine(attrs string) string {
	var a lineAttrs
	if !strings.Contains(attrs, `"spc"`) || json.Unmarshal([]byte(attrs), &a) != nil {
		return ""
	}
	return a.SPC.Line
}
