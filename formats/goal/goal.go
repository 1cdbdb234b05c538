// Package goal reads and writes GOAL (Group Operation Assembly Language), the schedules of the LogGOPSim and
// ATLAHS simulators, as text and as binary. docs/reference/formats/goal.md describes the formats and their mapping
// to package dag.
package goal

import (
	"bytes"
	"encoding/binary"
	"io"
	"math"

	"github.com/tracedag/tracedag/dag"
	"github.com/tracedag/tracedag/dag/lower"
	"github.com/tracedag/tracedag/formats/format"
)

// Text is the text form, one statement per line.
var Text = format.Format{
	Name:         "goal",
	Modes:        format.Modes{Compat: true, CompatOutput: true},
	Title:        "GOAL schedules of LogGOPSim and ATLAHS, text",
	Extensions:   []string{".goal"},
	Detect:       detectText,
	Read:         readText,
	Stream:       streamText,
	Paired:       true,
	Options:      readTable,
	WriteOptions: writeTable,
	Lacks:        lower.Everything(),
	Losses:       func(t *dag.Trace) []format.Loss { return losses(t, false) },
	Write: func(w io.Writer, t *dag.Trace, o format.WriteOptions) error {
		return writeSource(w, dag.FromTrace(t), o, false)
	},
	WriteSource: func(w io.Writer, s dag.Source, o format.WriteOptions) error {
		return writeSource(w, s, o, false)
	},
	WriteOnce: func(w io.Writer, s format.Stream, o format.WriteOptions) (int64, error) {
		return writeOnce(w, s, o, false)
	},
}

// Binary is the binary form, which the simulators run.
var Binary = format.Format{
	Name:         "goalbin",
	Modes:        format.Modes{Lenient: true, CompatOutput: true},
	Title:        "GOAL schedules of LogGOPSim and ATLAHS, binary (txt2bin)",
	Extensions:   []string{".bin", ".goalbin"},
	Binary:       true,
	Detect:       detectBinary,
	Read:         readBinary,
	Paired:       true,
	Options:      readTable,
	WriteOptions: writeTable,
	Lacks:        lower.Everything(),
	Losses:       func(t *dag.Trace) []format.Loss { return losses(t, true) },
	Write: func(w io.Writer, t *dag.Trace, o format.WriteOptions) error {
		return writeSource(w, dag.FromTrace(t), o, true)
	},
	WriteSource: func(w io.Writer, s dag.Source, o format.WriteOptions) error {
		return writeSource(w, s, o, true)
	},
	WriteOnce: func(w io.Writer, s format.Stream, o format.WriteOptions) (int64, error) {
		return writeOnce(w, s, o, true)
	},
}

// The first eight bytes of a binary, and their value after a simulation that frees memory during the run.
const (
	magic       = 4223
	magicUsedUp = 2342
)

// The values of a 32-bit GOAL peer and tag that match anything.
const (
	anySource = math.MaxUint32
	anyTag    = math.MaxUint32
)

// maxNanoseconds is the longest computation that dag.Time can represent, 106 days.
const maxNanoseconds = math.MaxInt64 / int64(dag.Nanosecond)

func detectBinary(head []byte) bool {
	if len(head) < 8 {
		return false
	}
	m := binary.LittleEndian.Uint64(head)
	return m == magic || m == magicUsedUp
}

// detectText reports whether the first statement is num_ranks or opens a block.
func detectText(head []byte) bool {
	for {
		head = bytes.TrimLeft(head, " \t\r\n")
		var comment string
		switch {
		case bytes.HasPrefix(head, []byte("//")):
			comment = "\n"
		case bytes.HasPrefix(head, []byte("/*")):
			comment = "*/"
		default:
			return startsText(head)
		}
		end := bytes.Index(head[2:], []byte(comment))
		if end < 0 {
			return false
		}
		head = head[2+end+len(comment):]
	}
}

func startsText(head []byte) bool {
	word := head[:identifierEnd(head, 0)]
	number := bytes.TrimLeft(head[len(word):], " \t")
	rest := bytes.TrimLeft(number, "0123456789")
	if len(rest) == len(number) {
		return false
	}
	switch string(word) {
	case "num_ranks":
		return true
	case "rank":
		return bytes.HasPrefix(bytes.TrimLeft(rest, " \t"), []byte("{"))
	}
	return false
}

// newTrace returns the trace of the given ranks.
func newTrace(ranks []*dag.Rank) *dag.Trace {
	return &dag.Trace{Comms: []dag.Comm{dag.World(len(ranks))}, Ranks: ranks}
}

// fromTag converts a 32-bit GOAL tag to a tag of package dag.
func fromTag(tag uint32) int64 {
	if tag == anyTag {
		return dag.AnyTag
	}
	return int64(tag)
}
