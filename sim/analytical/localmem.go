// This file tracks the tensors in the memory of each NPU, like ASTRA-sim with track-local-mem.

package analytical

import (
	"bufio"
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"slices"

	"github.com/tracedag/tracedag/dag/attr"
)

// Tensor is data that ops read and write in the memory of their NPU.
type Tensor = attr.Tensor

// LocalMem is the memory use of an NPU. A tensor exists from the issue of the op that writes it to the end of the last
// op that reads it. A tensor that is read but not written exists from the start; a tensor that is not read remains.
type LocalMem struct {
	Peak     int64 // largest number of bytes at any time
	Rewrites int   // writes of existing tensors, which have no effect

	tensors []heldTensor // in order of first use
	usage   []usage      // by time
}

// heldTensor is a tensor and the ops that use it. If ops give different sizes, the first counts.
type heldTensor struct {
	Tensor
	written use
	reads   []use // by end
}

// use is the use of a tensor by an op from issue to end, in nanoseconds.
type use struct {
	begin, end uint64
	op         int // noUser: it existed before all ops
}

const noUser = -1

// beforehand is the write time of a tensor that existed before all ops.
var beforehand = use{0, 10, noUser}

// usage is the number of bytes in use from a time on.
type usage struct {
	time  uint64
	bytes int64
}

// opTimes contains the times of the ops of an NPU.
type opTimes struct {
	issued []uint64 // by op; before that, the time at which it became ready
	ended  []use    // in order of their ends

	// For the critical path; nil without.
	causes []opCause // by op
	lanes  []uint32  // by lane: the last op that ended there, plus 1; 0: none
	last   uint32    // the last op that ended, plus 1
}

func newOpTimes(graphs []*graph, path bool) []opTimes {
	times := make([]opTimes, len(graphs))
	for r, g := range graphs {
		times[r].issued = make([]uint64, len(g.waits))
		if path {
			times[r].causes, times[r].lanes = make([]opCause, len(g.waits)), make([]uint32, g.lanes)
		}
	}
	return times
}

// hasEnded records that an op ends now.
func (e *engine) hasEnded(r int32, i uint32) {
	t := &e.opTimes[r]
	t.ends(i, e.npus[r].g.ops[i].lane)
	if e.o.Tensors != nil {
		t.ended = append(t.ended, use{t.issued[i], e.queue.now, int(i)})
	}
	if e.layout != nil {
		e.reportOp(r, i, t.issued[i])
	}
}

// localMem adds the memory use of the NPUs to a result.
func (e *engine) localMem(result *Result) error {
	result.LocalMem = make([]LocalMem, len(e.npus))
	for r := range result.LocalMem {
		m := &result.LocalMem[r]
		if err := m.fill(r, e.opTimes[r].ended, e.o.Tensors); err != nil {
			return err
		}
		result.NPUs.PeakMemory = append(result.NPUs.PeakMemory, m.Peak)
	}
	return nil
}

// fill collects the tensors used by the ops of a rank.
func (m *LocalMem) fill(rank int, uses []use, of func(rank, op int) (reads, writes []Tensor, err error)) error {
	known := make(map[string]int)
	all := int64(0)
	add := func(t Tensor, written use) error {
		if t.Bytes > math.MaxInt64-all {
			return fmt.Errorf("expected at most %[2]d bytes of tensors on rank %[1]d, found more", rank,
				int64(math.MaxInt64))
		}
		all += t.Bytes
		known[t.Name] = len(m.tensors)
		m.tensors = append(m.tensors, heldTensor{Tensor: t, written: written})
		return nil
	}
	for _, u := range uses {
		reads, writes, err := of(rank, u.op)
		if err != nil {
			return err
		}
		for _, t := range reads {
			if t.Bytes <= 0 {
				continue
			}
			if _, ok := known[t.Name]; !ok {
				if err := add(t, beforehand); err != nil {
					return err
				}
			}
			held := &m.tensors[known[t.Name]]
			held.reads = append(held.reads, u)
		}
		for _, t := range writes {
			if t.Bytes <= 0 {
				continue
			}
			if _, ok := known[t.Name]; ok {
				m.Rewrites++
			} else if err := add(t, u); err != nil {
				return err
			}
		}
	}
	m.sum()
	return nil
}

// sum computes the memory use over time.
func (m *LocalMem) sum() {
	var changes []usage
	for i := range m.tensors {
		t := &m.tensors[i]
		changes = append(changes, usage{t.written.begin, t.Bytes})
		if n := len(t.reads); n > 0 {
			changes = append(changes, usage{t.reads[n-1].end, -t.Bytes})
		}
	}
	slices.SortFunc(changes, func(a, b usage) int { return cmp.Compare(a.time, b.time) })
	now := int64(0)
	for i, c := range changes {
		now += c.bytes
		if i+1 < len(changes) && changes[i+1].time == c.time {
			continue
		}
		m.usage = append(m.usage, usage{c.time, now})
		m.Peak = max(m.Peak, now)
	}
}

// Processes of a local memory trace, added to the NPU's number.
const (
	usesProcess      = 0
	lifetimesProcess = 1e6
	usageProcess     = 2e6
)

// memEvent is an event of a local memory trace.
type memEvent struct {
	Name    string         `json:"name"`
	Sort    string         `json:"cat"`
	Phase   string         `json:"ph"`
	Time    float64        `json:"ts"` // in microseconds
	Process int            `json:"pid"`
	Thread  *int           `json:"tid,omitempty"` // tensor number
	Args    map[string]any `json:"args"`
}

// WriteTrace writes the memory use of an NPU in Chromium's Trace Event Format, like ASTRA-sim: reads and writes of each
// tensor with their ops, the lifetime of each tensor, and the memory use over time. node returns the name and the
// number of an op.
func (m *LocalMem) WriteTrace(w io.Writer, npu int, node func(op int) (name string, id uint64)) error {
	out := bufio.NewWriter(w)
	out.WriteString(`{"traceEvents":[`)
	separator := "\n"
	var failed error
	write := func(e memEvent, t uint64) {
		e.Time = float64(t) / 1000
		text, err := json.Marshal(&e)
		failed = cmp.Or(failed, err)
		out.WriteString(separator)
		out.Write(text)
		separator = ",\n"
	}
	used := func(i int, sort string, u use) {
		name, id := "UNDEFINED", uint64(math.MaxUint64)
		if u.op != noUser {
			name, id = node(u.op)
		}
		t := &m.tensors[i]
		e := memEvent{Name: t.Name, Sort: sort, Process: usesProcess + npu, Thread: &i,
			Args: map[string]any{"size": t.Bytes, "node_name": name, "node_id": id}}
		e.Phase = "B"
		write(e, u.begin)
		e.Phase = "E"
		write(e, u.end)
	}
	for i := range m.tensors {
		for _, u := range m.tensors[i].reads {
			used(i, "tensorRead", u)
		}
	}
	for i := range m.tensors {
		used(i, "tensorWrite", m.tensors[i].written)
	}
	for i := range m.tensors {
		t := &m.tensors[i]
		e := memEvent{Name: t.Name, Sort: "tensorLifetime", Phase: "B", Process: lifetimesProcess + npu, Thread: &i,
			Args: map[string]any{"size": t.Bytes}}
		write(e, t.written.begin)
		if n := len(t.reads); n > 0 {
			e.Phase = "E"
			write(e, t.reads[n-1].end)
		}
	}
	for _, u := range m.usage {
		write(memEvent{Name: "GPU Memory Usage (MB)", Sort: "GPU Memory", Phase: "C", Process: usageProcess + npu,
			Args: map[string]any{"Memory_MB": float64(u.bytes) / (1 << 20)}}, u.time)
	}
	out.WriteString("\n]}\n")
	return cmp.Or(failed, out.Flush())
}
