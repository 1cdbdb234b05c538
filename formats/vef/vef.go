// Package vef reads and writes VEF traces, the workloads of the TraceLib simulators: plain traces, which list
// messages and collectives record by record, and extended traces (EXT), which describe a workload model.
//
// docs/reference/formats/vef.md describes the format, its authors' papers and the mapping to package dag.
package vef

import (
	"bytes"

	"github.com/tracedag/tracedag/dag"
	"github.com/tracedag/tracedag/dag/lower"
	"github.com/tracedag/tracedag/dag/lower/collective"
	"github.com/tracedag/tracedag/formats/format"
	"github.com/tracedag/tracedag/formats/vef/model"
)

// Format is VEF.
var Format = format.Format{
	Name:         "vef",
	Modes:        format.Modes{Lenient: true},
	Title:        "VEF: MPI traces and traffic models of the TraceLib simulators",
	Extensions:   []string{".vef"},
	Detect:       detect,
	Read:         read,
	Options:      model.Table,
	Open:         open,
	Generates:    true,
	Lacks:        lower.Lacks{Collectives: collective.Selection{Kinds: lacks}, Memory: true, Storage: true},
	Losses:       losses,
	Write:        write,
	WriteOptions: writeTable,
}

// defaultClock is the clock tick if the header does not give it.
const defaultClock = dag.Nanosecond

// The classes of errors.
const (
	inHeader       = "header"
	inCommunicator = "communicator"
	inRecord       = "record"
	inDependency   = "dependency"
	inCollective   = "collective"
	inCount        = "count"
)

// The kinds of dependency of a record.
const (
	depNone       = iota // an absolute time
	depSend              // the end of a send
	depRecv              // the arrival of a message
	depCollective        // the end of the task's part in a collective
)

// The collectives.
const (
	opBroadcast = iota
	opReduce
	opAllreduce
	opGather
	opScatter
	opAllgather
	opBarrier
	opAlltoall
	numOps
)

var opNames = [numOps]string{"broadcast", "reduce", "allreduce", "gather", "scatter", "allgather",
	"barrier", "alltoall"}

// originStream is the stream of the calcs that count the time since the start of the trace. They are clocks, not
// computation: ops on stream 0 must not delay them or wait for them.
const originStream = 1

// plain is the kind of a trace without a model.
const plain = "mpi"

// facts is the content of dag.Meta.Attrs under the key "vef" of a trace read from VEF.
type facts struct {
	Kind           string              `json:"kind"`
	Magic          string              `json:"magic"`
	Tasks          int                 `json:"tasks"`
	Clock          dag.Time            `json:"clock_ps"`
	Messages       int64               `json:"messages"`
	Communicators  int                 `json:"communicators"`
	Collectives    int                 `json:"collectives"`
	Participations int64               `json:"collective_records"`
	Bytes          int64               `json:"p2p_bytes"` // of all messages
	Dependencies   [4]int64            `json:"dep_histogram"`
	OnlySend       bool                `json:"only_send_dependencies"`
	Summary        []collectiveSummary `json:"collective_summary,omitempty"`
}

// maxSummary is the maximum number of collectives that the facts list; if there are more, they list none.
const maxSummary = 1000

type collectiveSummary struct {
	ID   int64  `json:"id"`
	Op   string `json:"op"`
	Comm int32  `json:"comm"`
	Root *int32 `json:"root"`
}

// isMagic reports whether a VEF file may begin with the word. The reader treats all magics alike.
func isMagic(word []byte) bool {
	switch string(word) {
	case "VEF", "VEF2", "VEF3":
		return true
	}
	return false
}

// detect reports whether the first record begins with a magic.
func detect(head []byte) bool {
	for {
		line, rest, more := bytes.Cut(head, []byte("\n"))
		fields := bytes.Fields(line)
		if len(fields) > 0 && fields[0][0] != '#' {
			return isMagic(fields[0])
		}
		if !more {
			return false
		}
		head = rest
	}
}
