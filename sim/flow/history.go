// This file keeps what results need of the flows of a replay in windows, in bounded memory.

package flow

import (
	"context"
	"encoding/binary"
	"errors"
	"math"
	"unsafe"

	"github.com/tracedag/tracedag/dag"
	"github.com/tracedag/tracedag/internal/report"
	"github.com/tracedag/tracedag/memory"
	"github.com/tracedag/tracedag/sim"
	"github.com/tracedag/tracedag/sim/measure"
)

// totals are sums over flows that ended, added in the order of their starts, since rounding depends on it.
type totals struct {
	bytes        float64
	sum, squares float64 // of throughputs in bytes per picosecond, of the flows in the window
}

// add adds a flow. The throughput is 0 outside of the window.
func (t *totals) add(bytes, throughput float64) {
	t.bytes += bytes
	t.sum += throughput
	t.squares += throughput * throughput
}

// throughput returns the bytes per picosecond of a flow that ended, or 0 if it took no time.
func (r *record) throughput() float64 {
	if r.end == r.start {
		return 0
	}
	return float64(r.bytes) / float64(r.end-r.start)
}

// slowdown returns the time of a flow that ended divided by that without others; ok is false if the latter is 0.
func (r *record) slowdown() (slowdown float64, ok bool) {
	ideal := r.ideal()
	return float64(r.end-r.start) / float64(ideal), ideal > 0
}

// history has the flows of a replay in windows that are too many to be listed one by one. The coupling has the records
// of flows under way only, and reuses their places.
type history struct {
	window        measure.Window
	open          int // flows under way
	excluded      int // flows outside of the window
	last          uint64
	fct, slowdown *measure.Tally
	order         startOrder
	free          []uint32 // elements of coupling.records
}

// The order of starts takes a 32nd of the limit of memory, and records of listed flows a tenth at the start.
const (
	orderShare  = 32
	recordShare = 10
)

// roomForRecords returns the number of records of listed flows for which a replay in windows has memory from the start
// on; more memory is taken as needed.
func roomForRecords(ctx context.Context) int {
	return int(memory.Limit(ctx) / recordShare / int64(unsafe.Sizeof(record{})))
}

// newHistory returns the history of a run that has records of all its flows. It removes those of flows that ended.
func newHistory(c *coupling) (*history, error) {
	limit := memory.Limit(c.ctx)
	h := &history{window: c.window, fct: measure.NewTally(limit), slowdown: measure.NewTally(limit),
		order: startOrder{most: int(min(max(limit/orderShare/pendingBytes, 4), 1<<12))}}
	for i := range c.records {
		r := &c.records[i]
		err := h.begin(r)
		if err == nil && r.end != unfinished {
			err = h.end(uint32(i+1), r)
		}
		if err != nil {
			return h, err
		}
	}
	var records []record
	for i := range c.active {
		if x := &c.active[i]; x.running {
			records = append(records, c.records[x.record])
			x.record = uint32(len(records) - 1)
		}
	}
	c.records = records
	return h, nil
}

// begin takes the next flow.
func (h *history) begin(r *record) error {
	h.open++
	if !h.window.Holds(dag.Time(r.start)) {
		h.excluded++
	}
	return h.order.push()
}

// end takes the end of a flow. Numbers begin at 1.
func (h *history) end(number uint32, r *record) error {
	h.open--
	h.last = max(h.last, r.end)
	throughput := 0.0
	if h.window.Holds(dag.Time(r.start)) {
		throughput = r.throughput()
		if err := h.fct.Add(float64(r.end - r.start)); err != nil {
			return err
		}
		if slowdown, ok := r.slowdown(); ok {
			if err := h.slowdown.Add(slowdown); err != nil {
				return err
			}
		}
	}
	return h.order.set(number-1, pending{float64(r.bytes), throughput})
}

// results sets the results of all flows.
func (h *history) results(c *coupling, r *results, figures bool) (err error) {
	r.open, r.excluded, r.last = h.open, h.excluded, h.last
	if err := h.order.advance(true); err != nil {
		return err
	}
	r.totals = h.order.totals
	if r.fct, err = h.fct.Interpolate(); err != nil {
		return err
	}
	if r.slowdown, err = h.slowdown.Interpolate(); err != nil || !figures {
		return err
	}
	numbers, counts, err := h.fct.Counts(c.ctx)
	if err != nil {
		return err
	}
	r.fctCurve = report.NewCountedCurve(numbers, counts, report.CurvePoints, picoseconds)
	if numbers, counts, err = h.slowdown.Counts(c.ctx); err != nil {
		return err
	}
	r.slowdownCurve = report.NewCountedCurve(numbers, counts, report.CurvePoints, number6)
	return nil
}

// close removes the temporary files.
func (h *history) close() error {
	if h == nil {
		return nil
	}
	return errors.Join(h.fct.Close(), h.slowdown.Close(), h.order.close())
}

// startOrder adds flows to totals in the order of their starts, although they end in another one. It keeps those behind
// a flow under way: the latest ones in memory, the others in a temporary file.
type startOrder struct {
	totals
	most   int    // chunks in memory
	next   uint32 // the first flow that is not in the totals, counted from 0
	pushed uint32
	chunks []pendingChunk // from that of next on
	stored int            // chunks behind the first one that are in the file
	spare  []*pendingFlows
	file   *sim.Scratch
	end    int64
	buffer []byte
}

// pending is what a flow adds to totals.
type pending struct {
	bytes, throughput float64 // bytes are underWay until its end
}

const underWay = -1

// Lengths of chunks in flows and in bytes.
const (
	chunkFlows   = 1 << 10
	flowBytes    = 8 + 8
	pendingBytes = chunkFlows * flowBytes
)

type pendingFlows [chunkFlows]pending

// pendingChunk is consecutive flows, in memory or at a position of the file.
type pendingChunk struct {
	flows *pendingFlows // nil: in the file
	at    int64
}

// push adds a flow that starts.
func (o *startOrder) push() error {
	if o.pushed%chunkFlows == 0 {
		if len(o.chunks)-o.stored >= o.most {
			if err := o.store(); err != nil {
				return err
			}
		}
		o.chunks = append(o.chunks, pendingChunk{flows: o.empty()})
	}
	o.chunks[len(o.chunks)-1].flows[o.pushed%chunkFlows] = pending{bytes: underWay}
	o.pushed++
	return nil
}

// empty returns memory for a chunk.
func (o *startOrder) empty() *pendingFlows {
	n := len(o.spare)
	if n == 0 {
		return new(pendingFlows)
	}
	flows := o.spare[n-1]
	o.spare = o.spare[:n-1]
	return flows
}

// store moves the earliest chunk in memory, except the first, to the file.
func (o *startOrder) store() (err error) {
	if o.file == nil {
		o.file, err = sim.NewScratch("tracedag-flows-*", "of flows of a replay that exceeds the limit of memory")
		if err != nil {
			return err
		}
	}
	o.stored++
	c := &o.chunks[o.stored]
	b := o.buffer[:0]
	for i := range c.flows {
		b = c.flows[i].append(b)
	}
	o.buffer = b
	if _, err := o.file.WriteAt(b, o.end); err != nil {
		return o.file.Fail(err)
	}
	o.spare = append(o.spare, c.flows)
	c.flows, c.at = nil, o.end
	o.end += pendingBytes
	return nil
}

// load moves the first chunk from the file to memory.
func (o *startOrder) load() error {
	c := &o.chunks[0]
	if _, err := o.file.ReadAt(o.buffer[:pendingBytes], c.at); err != nil {
		return o.file.Fail(err)
	}
	c.flows = o.empty()
	for i := range c.flows {
		b := o.buffer[i*flowBytes:]
		c.flows[i] = pending{math.Float64frombits(binary.LittleEndian.Uint64(b)),
			math.Float64frombits(binary.LittleEndian.Uint64(b[8:]))}
	}
	if o.stored--; o.stored == 0 {
		o.end = 0
	}
	return nil
}

func (p *pending) append(b []byte) []byte {
	b = binary.LittleEndian.AppendUint64(b, math.Float64bits(p.bytes))
	return binary.LittleEndian.AppendUint64(b, math.Float64bits(p.throughput))
}

// set takes the end of a flow.
func (o *startOrder) set(flow uint32, p pending) error {
	c := &o.chunks[flow/chunkFlows-o.next/chunkFlows]
	if c.flows == nil {
		var b [flowBytes]byte
		if _, err := o.file.WriteAt(p.append(b[:0]), c.at+int64(flow%chunkFlows)*flowBytes); err != nil {
			return o.file.Fail(err)
		}
		return nil
	}
	if c.flows[flow%chunkFlows] = p; flow != o.next {
		return nil
	}
	return o.advance(false)
}

// advance adds flows to the totals up to the first one under way, or if all is true, all that ended.
func (o *startOrder) advance(all bool) error {
	for o.next < o.pushed {
		p := &o.chunks[0].flows[o.next%chunkFlows]
		switch {
		case p.bytes != underWay:
			o.add(p.bytes, p.throughput)
		case !all:
			return nil
		}
		if o.next++; o.next%chunkFlows != 0 {
			continue
		}
		o.spare = append(o.spare, o.chunks[0].flows)
		if o.chunks = o.chunks[1:]; o.stored > 0 {
			if err := o.load(); err != nil {
				return err
			}
		}
	}
	return nil
}

func (o *startOrder) close() error {
	if o.file == nil {
		return nil
	}
	return o.file.Close()
}
