// Package vef reads and writes VEF traces, the workloads of the TraceLib simulators: plain ones, which list messages
// and collectives record by record, and extended ones (EXT), which describe a workload model.
//
// The format, its authors' papers and the mapping to package dag are described in docs/reference/formats/vef.md.
package vef

import (
	"bytes"

	"github.com/tracedag/tracedag/dag"
	"github.com/tracedag/tracedag/formats/format"
	"github.com/tracedag/tracedag/formats/vef/model"
)

// Format is VEF.
var Format = format.Format{
	Name:         "vef",
	Title:        "VEF, the MPI traces and traffic models of the TraceLib simulators",
	Extensions:   []string{".vef"},
	Detect:       detect,
	Read:         read,
	Options:      model.Table,
	Open:         open,
	Generates:    true,
	Losses:       losses,
	Write:        write,
	WriteOptions: writeTable,
}

// defaultClock is the length of a clock tick where the header does not give it.
const defaultClock = dag.Nanosecond

// The classes of mistakes.
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

// originStream is the stream of the calcs that count the time since the start of the trace: they are clocks, not
// computation, and must neither delay what runs on stream 0 nor be delayed by it.
const originStream = 1

// plain is the kind of a trace that is no model.
const plain = "mpi"

// facts is what dag.Meta.Attrs says of a trace that was read from VEF, under the key "vef".
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

// maxSummary is how many collectives the facts list at most: a larger trace lists none.
const maxSummary = 1000

type collectiveSummary struct {
	ID   int64  `json:"id"`
	Op   string `json:"op"`
	Comm int32  `json:"comm"`
	Root *int32 `json:"root"`
}

// isMagic reports whether a VEF file may begin with the word. The reader does not tell the magics apart.
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
