// This file declares what is kept of a file.

package kineto

import (
	"bytes"

	"github.com/tracedag/tracedag/dag"
)

// recording is the content of a file: one process, nearly always one rank. Times are relative to its origin.
type recording struct {
	name string // of the file
	meta metadata

	origin    int64 // microseconds of the first event
	hasOrigin bool

	texts    texts
	streams  []deviceStream
	streamOf map[deviceStream]int32
	threads  texts // process and thread

	ops       []deviceOp
	calls     []call
	marks     []mark
	args      []commArgs
	syncs     []deviceSync
	steps     []stepRange
	operators []operator
	onHost    map[int64]int32 // annotation of each op that communicates, of recordings without devices
	notes     []note          // of a completion
	runsOps   bool            // there are device ops, so that operators are not kept
	reference *Reference      // nil: not needed

	damage  damage
	dropped droppedEvents
}

// deviceStream is a stream of a device.
type deviceStream struct{ device, stream int64 }

// deviceOp is an event of a device.
type deviceOp struct {
	start, took dag.Time
	correlation int64 // after link: index of the call, -1 if none
	bytes       int64 // of a copy
	name        int32
	stream      int32
	args        int32 // of communication: index; -1: none
	graph       int32 // CUDA graph, as text; 0: none
	class       class
	ordinal     int32 // in the file; with a completion, the index of its note, -1: none
}

func (o *deviceOp) end() dag.Time { return o.start + o.took }

// call is a call of the host into the runtime.
type call struct {
	start, took dag.Time
	correlation int64
	thread      int32
	kind        callKind
	launches    bool // a device op has its correlation
}

func (c *call) end() dag.Time { return c.start + c.took }

// mark is an annotation of communication, or the record of its arguments.
type mark struct {
	start, end dag.Time
	thread     int32
	args       int32 // index, -1: none
	op         operation
	record     bool // record_param_comms
	group      bool // encloses the calls of a group
	wait       bool // record of a wait
	launches   bool // a communication was launched in it
	name       int32
}

// deviceSync is a wait that a device recorded.
type deviceSync struct {
	kind        syncKind
	correlation int64 // of the call
	device      int64
	stream      int64 // -1: unknown or all
	source      int64 // of a wait of a stream: the stream with the event
	record      int64 // correlation of the recording of the event
}

type syncKind uint8

const (
	syncWait    syncKind = iota // a stream waits for an event
	syncStream                  // the host waits for a stream
	syncContext                 // the host waits for all streams
	syncEvent                   // the host waits for an event
)

// operator is an operator on the host, for recordings without devices.
type operator struct {
	start, end dag.Time
	thread     int32
	name       int32
}

// stepRange is a range that the program annotated as a step.
type stepRange struct {
	start, end dag.Time
	number     int32
}

// damage is what could not be read.
type damage struct {
	offset int64 // of the first damaged event
	events int64 // damaged ones
	end    bool  // the file ends early, at offset if no event is damaged before
	cut    int64 // offset of the end
	read   int64 // events that were read
	cause  error // damage of compressed data, which ends at cut; nil: none
}

// damaged reports whether a part of the file could not be read.
func (r *recording) damaged() bool {
	return r.damage.end || r.damage.events > 0 || r.damage.cause != nil
}

// droppedEvents counts events of devices that were read and not kept.
type droppedEvents struct {
	timeless int64 // without a start
	endless  int64 // longer than a week
	instant  int64 // kept, with a duration of 0 instead of one that is no number
	far      int64 // further from the first event than times can express
}

// texts numbers different texts. Number 0 is the empty text.
type texts struct {
	all  []string
	of   map[string]int32
	last []byte
	at   int32
}

// number returns the number of a text.
func (t *texts) number(text []byte) int32 {
	if t.all == nil {
		t.all, t.of = []string{""}, map[string]int32{"": 0}
	}
	if bytes.Equal(text, t.last) {
		return t.at
	}
	n, ok := t.of[string(text)]
	if !ok {
		n = int32(len(t.all))
		t.all = append(t.all, string(text))
		t.of[t.all[n]] = n
	}
	t.last, t.at = append(t.last[:0], text...), n
	return n
}

func (t *texts) text(n int32) string {
	if int(n) < len(t.all) {
		return t.all[n]
	}
	return ""
}
