package fio

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/tracedag/tracedag/dag"
	"github.com/tracedag/tracedag/formats/format"
	"github.com/tracedag/tracedag/formats/internal/blockio"
)

func losses(t *dag.Trace) []format.Loss {
	l := blockio.Losses(t, func(string) bool { return false })
	rounded := int64(0)
	for i := range t.Ranks {
		for op, release := range t.Ranks[i].Release {
			if t.Ranks[i].Kind[op] == dag.IO && release%dag.Microsecond != 0 {
				rounded++
			}
		}
	}
	l.Add("times rounded to whole microseconds", rounded)
	return l
}

// write writes version 3: it adds and opens all files, then lists the accesses, then closes the files.
func write(w io.Writer, t *dag.Trace, _ format.WriteOptions) error {
	if err := blockio.Check(t); err != nil {
		return fmt.Errorf("a fio log cannot represent the trace: %w", err)
	}
	files := names(t)
	units := make([]int32, 0, len(files))
	for unit := range files {
		units = append(units, unit)
	}
	slices.Sort(units)

	out := bufio.NewWriterSize(w, 1<<18)
	out.WriteString(headerStart + "3" + headerEnd + "\n")
	for _, unit := range units {
		fmt.Fprintf(out, "0 %s add\n0 %s open\n", files[unit], files[unit])
	}
	end := int64(0)
	for rank, op := range t.Records() {
		r := t.Ranks[rank]
		action := " read "
		if r.Subkind.At(op) == dag.Write {
			action = " write "
		}
		end = microseconds(r.Release.At(op))
		line := strconv.AppendInt(out.AvailableBuffer(), end, 10)
		line = append(line, ' ')
		line = append(line, files[r.Peer.At(op)]...)
		line = append(line, action...)
		line = strconv.AppendInt(line, r.Tag.At(op), 10)
		line = append(line, ' ')
		line = strconv.AppendInt(line, r.Bytes.At(op), 10)
		if _, err := out.Write(append(line, '\n')); err != nil {
			return err
		}
	}
	for _, unit := range units {
		fmt.Fprintf(out, "%d %s close\n", end, files[unit])
	}
	return out.Flush()
}

// microseconds returns a time in whole microseconds. It rounds halves up, unless the result exceeds the largest
// time.
func microseconds(t dag.Time) int64 {
	us := int64(t / dag.Microsecond)
	if t%dag.Microsecond >= dag.Microsecond/2 && us < int64(dag.MaxTime/dag.Microsecond) {
		us++
	}
	return us
}

// maxName is the length in bytes of the longest file name that fio reads.
const maxName = 255

// names returns the file name of each unit: the name in the trace's attributes, if fio can read it and no other
// unit has it.
func names(t *dag.Trace) map[int32]string {
	var attrs struct {
		Fio facts `json:"fio"`
	}
	if t.Attrs != "" && json.Unmarshal([]byte(t.Attrs), &attrs) != nil {
		attrs.Fio.Units = nil
	}
	names := make(map[int32]string)
	taken := make(map[string]bool)
	for i := range t.Ranks {
		r := t.Ranks[i]
		last := int32(-1)
		for op, kind := range r.Kind {
			unit := r.Peer.At(op)
			if kind != dag.IO || unit == last {
				continue
			}
			last = unit
			if names[unit] != "" {
				continue
			}
			name := ""
			if int(unit) < len(attrs.Fio.Units) {
				name = attrs.Fio.Units[unit]
			}
			if !isName(name) || taken[name] {
				name = fmt.Sprintf("unit%d", unit)
			}
			for taken[name] {
				name += "_"
			}
			names[unit], taken[name] = name, true
		}
	}
	return names
}

// isName reports whether fio can read a file name in a log.
func isName(name string) bool {
	return name != "" && len(name) <= maxName && utf8.ValidString(name) && !strings.ContainsFunc(name, isSpace)
}

func isSpace(c rune) bool {
	return c == ' ' || '\t' <= c && c <= '\r'
}
