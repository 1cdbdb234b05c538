package ideal

import (
	"bufio"
	"fmt"
	"io"
	"strconv"

	"github.com/tracedag/tracedag/dag"
)

// opField is a column of the op table and a member of its JSON objects. append returns false for an op without the
// field.
type opField struct {
	name   string
	text   bool // a string in JSON
	append func(b []byte, op *timedOp) ([]byte, bool)
}

// timedOp is an op with its start and end.
type timedOp struct {
	rank, index int
	kind        dag.Kind
	r           *dag.Rank
	times       *Timeline
}

var opFields = []opField{
	{"rank", false, func(b []byte, op *timedOp) ([]byte, bool) {
		return strconv.AppendInt(b, int64(op.rank), 10), true
	}},
	{"op", false, func(b []byte, op *timedOp) ([]byte, bool) {
		return strconv.AppendInt(b, int64(op.index), 10), true
	}},
	{"kind", true, func(b []byte, op *timedOp) ([]byte, bool) { return append(b, op.kind.String()...), true }},
	{"subkind", true, func(b []byte, op *timedOp) ([]byte, bool) {
		subkind := op.r.Subkind.At(op.index)
		return append(b, subkind.String()...), subkind != dag.NoSubkind
	}},
	{"peer", false, func(b []byte, op *timedOp) ([]byte, bool) {
		rooted := op.kind == dag.Coll && op.r.Subkind.At(op.index).Rooted()
		return strconv.AppendInt(b, int64(op.r.Peer.At(op.index)), 10), rooted || op.isMessage()
	}},
	{"tag", false, func(b []byte, op *timedOp) ([]byte, bool) {
		return strconv.AppendInt(b, op.r.Tag.At(op.index), 10), op.kind == dag.Coll || op.isMessage()
	}},
	{"comm", false, func(b []byte, op *timedOp) ([]byte, bool) {
		return strconv.AppendInt(b, int64(op.r.Comm.At(op.index)), 10), op.kind == dag.Coll || op.isMessage()
	}},
	{"bytes", false, func(b []byte, op *timedOp) ([]byte, bool) {
		return strconv.AppendInt(b, op.r.Bytes.At(op.index), 10), op.kind != dag.Calc
	}},
	{"start_ps", false, func(b []byte, op *timedOp) ([]byte, bool) {
		return appendTime(b, op.times.Start(op.rank, op.index))
	}},
	{"end_ps", false, func(b []byte, op *timedOp) ([]byte, bool) {
		return appendTime(b, op.times.End(op.rank, op.index))
	}},
}

func (op *timedOp) isMessage() bool {
	return op.kind == dag.Send || op.kind == dag.Recv
}

func appendTime(b []byte, t dag.Time) ([]byte, bool) {
	return strconv.AppendInt(b, int64(t), 10), t != Never
}

// opTable prints the start and end of each op, ordered by rank and op. It reads the trace again, batch by batch.
type opTable struct {
	source dag.Source
	times  *Timeline
}

// WriteJSON writes an array of objects, one per op.
func (t *opTable) WriteJSON(w io.Writer) error {
	out := bufio.NewWriterSize(w, 1<<16)
	out.WriteByte('[')
	first := true
	err := t.eachOp(func(op *timedOp, line []byte) []byte {
		if !first {
			line = append(line, ',')
		}
		first = false
		return appendOpObject(line, op)
	}, out)
	if err != nil {
		return err
	}
	out.WriteByte(']')
	return out.Flush()
}

// print writes a line of tab-separated cells per op.
func (t *opTable) print(w io.Writer) error {
	out := bufio.NewWriterSize(w, 1<<16)
	writeOpHeader(out)
	if err := t.eachOp(func(op *timedOp, line []byte) []byte { return appendOpRow(line, op) }, out); err != nil {
		return err
	}
	return out.Flush()
}

// eachOp writes the line of each op.
func (t *opTable) eachOp(appendOp func(op *timedOp, line []byte) []byte, w io.Writer) error {
	h, err := t.source.Header()
	if err != nil {
		return err
	}
	read := t.source.NewReader(dag.Replay)
	var line []byte
	for _, batch := range h.Batches {
		ranks, err := read(batch)
		if err != nil {
			return fmt.Errorf("reading it again: %w", err)
		}
		for i := range ranks {
			op := timedOp{rank: batch.First + i, r: ranks[i], times: t.times}
			if n := t.times.Ops(op.rank); op.r.Len() != n {
				return fmt.Errorf("reading it again: rank %d has %d ops, expected %d as before", op.rank, op.r.Len(), n)
			}
			for op.index, op.kind = range op.r.Kind {
				line = appendOp(&op, line[:0])
				if _, err := w.Write(line); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

func writeOpHeader(w io.Writer) {
	for k, field := range opFields {
		if k > 0 {
			io.WriteString(w, "\t")
		}
		io.WriteString(w, field.name)
	}
	io.WriteString(w, "\n")
}

// appendOpRow appends a table row; missing fields are empty.
func appendOpRow(line []byte, op *timedOp) []byte {
	for k, field := range opFields {
		if k > 0 {
			line = append(line, '\t')
		}
		if with, has := field.append(line, op); has {
			line = with
		}
	}
	return append(line, '\n')
}

// appendOpObject appends a JSON object. It omits missing fields, except times, which become null.
func appendOpObject(line []byte, op *timedOp) []byte {
	line = append(line, '{')
	for k, field := range opFields {
		before := len(line)
		if k > 0 {
			line = append(line, ',')
		}
		line = append(append(append(line, '"'), field.name...), '"', ':')
		if field.text {
			line = append(line, '"')
		}
		value := len(line)
		with, has := field.append(line, op)
		switch {
		case has && field.text:
			line = append(with, '"')
		case has:
			line = with
		case field.name == "start_ps" || field.name == "end_ps":
			line = append(line[:value], "null"...)
		default:
			line = line[:before]
		}
	}
	return append(line, '}')
}
