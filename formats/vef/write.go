// This file writes plain VEF: the header, the communicators, and a record for each message and each part in a
// collective, each after its dependencies.

package vef

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"runtime"
	"slices"
	"strconv"

	"github.com/tracedag/tracedag/dag"
	"github.com/tracedag/tracedag/formats/format"
	"github.com/tracedag/tracedag/internal/par"
)

func write(w io.Writer, t *dag.Trace, o format.WriteOptions) error {
	if len(t.Ranks) == 0 {
		return errors.New("expected at least 1 rank, found none")
	}
	p, err := newPlan(t)
	if err != nil {
		return fmt.Errorf("VEF cannot represent the trace: %w", err)
	}
	old := format.Own(o.Own, newWriteOptions).Version == 1
	p.chooseClock(old)
	if old && p.clock != defaultClock {
		return fmt.Errorf("VEF version 1 has a fixed clock of %v: expected multiples of it as times; "+
			"--vef-version 3 has no fixed clock", defaultClock)
	}
	order := newOrdering(p)
	if err := order.run(); err != nil {
		return fmt.Errorf("VEF cannot represent the trace: %w", err)
	}
	out := writer{ordering: order, w: w}
	out.header(old)
	for i := range p.t.Comms {
		out.communicator(i)
	}
	out.records()
	return out.flush()
}

// chooseClock sets the clock tick: the longest tick that divides all times and the tick that the trace was read
// with, or the default.
func (p *plan) chooseClock(old bool) {
	p.clock = defaultClock
	if known := p.facts(); known != nil {
		if known.Clock > 0 && !old {
			p.clock = known.Clock
		}
		p.dropWorld = known.Kind == plain && known.Communicators == len(p.t.Comms)-1
	}
	for i := range p.drafts {
		if delay := p.drafts[i].delay; delay%p.clock != 0 {
			p.clock = divisor(delay, p.clock)
		}
	}
	for rank := range p.t.Ranks {
		p.dropWorld = p.dropWorld && !hasWorldCollective(p.t.Ranks[rank])
	}
}

// divisor returns the greatest common divisor.
func divisor(a, b dag.Time) dag.Time {
	for b != 0 {
		a, b = b, a%b
	}
	return a
}

func hasWorldCollective(r *dag.Rank) bool {
	if len(r.Subkind) == 0 {
		return false
	}
	for op, kind := range r.Kind {
		if kind == dag.Coll && r.Comm.At(op) == 0 {
			return true
		}
	}
	return false
}

// facts returns the facts from reading the trace, or nil if it does not come from VEF.
func (p *plan) facts() *facts {
	var attrs struct{ VEF *facts }
	if p.t.Attrs == "" || json.Unmarshal([]byte(p.t.Attrs), &attrs) != nil {
		return nil
	}
	return attrs.VEF
}

// onlySend reports whether no message depends on a reception or a collective.
func (p *plan) onlySend() bool {
	for i := range p.drafts {
		if d := &p.drafts[i]; d.kind == message && d.dep > depSend {
			return false
		}
	}
	return true
}

// writer writes the ordered records.
type writer struct {
	*ordering
	w   io.Writer
	buf []byte
	err error
}

func (w *writer) flush() error {
	if w.err == nil && len(w.buf) > 0 {
		_, w.err = w.w.Write(w.buf)
		w.buf = w.buf[:0]
	}
	return w.err
}

// spill writes the buffer if it is large.
func (w *writer) spill() {
	if len(w.buf) >= 1<<16 {
		_ = w.flush() // flush keeps the error
	}
}

func (w *writer) header(old bool) {
	magic := "VEF3 "
	if old {
		magic = "VEF "
	}
	comms := len(w.t.Comms)
	if w.dropWorld {
		comms--
	}
	w.buf = append(w.buf, magic...)
	for _, n := range []int64{int64(len(w.t.Ranks)), w.plan.messages, int64(comms), int64(len(w.instances)),
		w.participations} {
		w.buf = append(strconv.AppendInt(w.buf, n, 10), ' ')
	}
	if w.onlySend() {
		w.buf = append(w.buf, "TRUE"...)
	} else {
		w.buf = append(w.buf, "FALSE"...)
	}
	if !old {
		w.buf = strconv.AppendInt(append(w.buf, ' '), int64(w.clock), 10)
	}
	w.buf = append(w.buf, '\n')
}

func (w *writer) communicator(i int) {
	if w.dropWorld {
		if i--; i < 0 {
			return
		}
	}
	w.buf = strconv.AppendInt(append(w.buf, 'C'), int64(i), 10)
	if w.dropWorld {
		i++
	}
	for _, rank := range w.t.Comms[i].Members() {
		w.buf = strconv.AppendInt(append(w.buf, ' '), int64(rank), 10)
		w.spill()
	}
	w.buf = append(w.buf, '\n')
}

// chunk is the number of records that a goroutine formats at a time.
const chunk = 1 << 13

// records writes all records: all processors format chunks, which are written in order.
func (w *writer) records() {
	records := w.ordering.records
	lines := make([][]byte, runtime.GOMAXPROCS(0))
	for len(records) > 0 && w.flush() == nil {
		taken := min(len(lines)*chunk, len(records))
		par.For(len(lines), func(k int) {
			lines[k] = lines[k][:0]
			for _, rec := range records[min(k*chunk, taken):min((k+1)*chunk, taken)] {
				lines[k] = w.appendLine(lines[k], rec)
			}
		})
		records = records[taken:]
		for _, text := range lines {
			if w.err == nil {
				_, w.err = w.w.Write(text)
			}
		}
	}
}

// appendLine appends the line of a record.
func (w *writer) appendLine(b []byte, rec ordered) []byte {
	d := &w.drafts[rec.draft]
	if d.kind == participation {
		g := &w.instances[d.other]
		comm := g.comm
		if w.dropWorld {
			comm--
		}
		send, recv := w.sizes(g, w.t.Ranks[d.rank], d)
		b = append(appendNumber(append(b, 'G'), uint64(w.collectives[d.other])), ' ')
		b = append(appendNumber(b, uint64(comm)), ' ', '0'+g.op, ' ')
		b = append(appendNumber(b, uint64(d.rank)), ' ')
		b = append(appendNumber(b, uint64(send)), ' ')
		b = append(appendNumber(b, uint64(recv)), ' ')
	} else {
		b = append(appendNumber(b, uint64(d.number-1)), ' ')
		b = append(appendNumber(b, uint64(d.rank)), ' ')
		b = append(appendNumber(b, uint64(d.other)), ' ')
		b = append(appendNumber(b, uint64(d.size)), ' ')
	}
	ticks := uint64(d.delay)
	if w.clock == defaultClock {
		ticks /= uint64(defaultClock) // much faster than division by a variable
	} else {
		ticks /= uint64(w.clock)
	}
	b = append(appendNumber(append(b, '0'+d.dep, ' '), ticks), ' ')
	switch d.dep {
	case depNone:
		b = append(b, "-1"...)
	case depCollective:
		b = append(b, 'G')
		fallthrough
	default:
		b = appendNumber(b, uint64(rec.ref))
	}
	return append(b, '\n')
}

// appendNumber is strconv.AppendUint, optimized for short numbers.
func appendNumber(b []byte, n uint64) []byte {
	if n < 10 {
		return append(b, '0'+byte(n))
	}
	if n >= 1e8 {
		return strconv.AppendUint(b, n, 10)
	}
	digits, m := 2, uint32(n)
	for limit := uint32(100); limit <= m; limit *= 10 {
		digits++
	}
	end := len(b) + digits
	b = slices.Grow(b, 8)[:end]
	for m >= 100 {
		end -= 2
		rest := m % 100
		m /= 100
		b[end], b[end+1] = pairs[2*rest], pairs[2*rest+1]
	}
	if m >= 10 {
		b[end-2], b[end-1] = pairs[2*m], pairs[2*m+1]
	} else {
		b[end-1] = '0' + byte(m)
	}
	return b
}

// pairs is the digits of the numbers below 100.
var pairs = func() (p [200]byte) {
	for i := range 100 {
		p[2*i], p[2*i+1] = '0'+byte(i/10), '0'+byte(i%10)
	}
	return p
}()
