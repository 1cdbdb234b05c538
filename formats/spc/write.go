package spc

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/tracedag/tracedag/dag"
	"github.com/tracedag/tracedag/formats/format"
	"github.com/tracedag/tracedag/formats/internal/blockio"
)

// styleOf returns the style in which a trace is written: the style in its attributes, with enough decimals for its
// times.
func styleOf(t *dag.Trace) style {
	var attrs struct {
		SPC style `json:"spc"`
	}
	s := usual
	if t.Attrs != "" && json.Unmarshal([]byte(t.Attrs), &attrs) == nil {
		if attrs.SPC.Block > 0 {
			s.Block = attrs.SPC.Block
		}
		if d := attrs.SPC.Decimals; d > 0 && d <= maxDecimals {
			s.Decimals = d
		}
		if attrs.SPC.Opcodes == "rw" {
			s.Opcodes = "rw"
		}
	}
	for i := range t.Ranks {
		r := t.Ranks[i]
		for op, kind := range r.Kind {
			if d := decimals(r.Release.At(op), s.Decimals); kind == dag.IO && d > s.Decimals &&
				keptLine(r.Attrs.At(op)) == "" {
				s.Decimals = d
			}
		}
	}
	return s
}

// units is the time of the last decimal, by number of decimals.
var units = func() (units [maxDecimals + 1]dag.Time) {
	unit := dag.Second
	for i := range units {
		units[i] = unit
		unit /= 10
	}
	return units
}()

// decimals returns the number of decimals that a time needs, at least least.
func decimals(t dag.Time, least int) int {
	for t%units[least] != 0 {
		least++
	}
	return least
}

func losses(t *dag.Trace) []format.Loss {
	l := blockio.Losses(t, func(attrs string) bool { return keptLine(attrs) != "" })
	rounded, block := int64(0), styleOf(t).Block
	for i := range t.Ranks {
		for op, address := range t.Ranks[i].Tag {
			if t.Ranks[i].Kind[op] == dag.IO && address%block != 0 {
				rounded++
			}
		}
	}
	l.Add(fmt.Sprintf("addresses rounded down to blocks of %d bytes", block), rounded)
	return l
}

func write(w io.Writer, t *dag.Trace, _ format.WriteOptions) error {
	if err := blockio.Check(t); err != nil {
		return fmt.Errorf("an SPC trace cannot represent the trace: %w", err)
	}
	s := styleOf(t)
	out := bufio.NewWriterSize(w, 1<<18)
	for rank, op := range t.Records() {
		r := t.Ranks[rank]
		line := s.append(out.AvailableBuffer(), r, op)
		if _, err := out.Write(append(line, '\n')); err != nil {
			return err
		}
	}
	return out.Flush()
}

// append appends the line of an op.
func (s *style) append(line []byte, r *dag.Rank, op int) []byte {
	record := blockio.Record{Time: r.Release.At(op), Unit: r.Peer.At(op), Address: r.Tag.At(op), Bytes: r.Bytes.At(op),
		Write: r.Subkind.At(op) == dag.Write}
	if op < r.Attrs.Len() {
		if kept := keptLine(r.Attrs.At(op)); s.matches(kept, &record) {
			return append(line, kept...)
		}
	}
	line = strconv.AppendInt(line, int64(record.Unit), 10)
	line = append(line, ',')
	line = strconv.AppendInt(line, record.Address/s.Block, 10)
	line = append(line, ',')
	line = strconv.AppendInt(line, record.Bytes, 10)
	opcode := s.Opcodes[0]
	if record.Write {
		opcode = s.Opcodes[1]
	}
	line = append(line, ',', opcode, ',')
	return appendSeconds(line, record.Time, decimals(record.Time, s.Decimals))
}

// matches reports whether a line describes a record.
func (s *style) matches(line string, record *blockio.Record) bool {
	if line == "" || strings.Contains(line, "\n") || strings.HasSuffix(line, "\r") {
		return false
	}
	l := blockio.NewLine([]byte(line))
	var parsed blockio.Record
	parse(l, s.Block, &parsed)
	return !l.Failed() && parsed.Unit == record.Unit && parsed.Address == record.Address &&
		parsed.Bytes == record.Bytes && parsed.Write == record.Write && parsed.Time == record.Time
}

// appendSeconds appends a time in seconds.
func appendSeconds(line []byte, t dag.Time, decimals int) []byte {
	line = strconv.AppendInt(line, int64(t/dag.Second), 10)
	line = append(line, '.')
	point := len(line)
	line = strconv.AppendInt(line, int64((dag.Second+t%dag.Second)/units[decimals]), 10)
	return append(line[:point], line[point+1:]...) // remove the leading 1, which keeps the zeros
}
