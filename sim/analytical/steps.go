package analytical

import (
	"math/bits"
	"slices"
)

// outcomeOfSteps returns the outcome of a collective of one phase, in which every NPU has one message in flight per
// chunk: a step at an NPU starts when the NPU has both ended the step before and received its message. The offsets are
// the times at which the NPUs issue it; nil: all are 0. It is nil if the run has failed.
func (e *engine) outcomeOfSteps(p *phase, form *shape, offsets []uint64, chunks uint64) *outcome {
	// Chunks that run concurrently have the same times, because they take the same way through different rounds.
	atOnce := uint64(e.perQueue)
	rounds := (chunks + atOnce - 1) / atOnce
	out := &outcome{delay: p.delay, n: p.n, stride: p.stride}
	if p.comm >= 0 {
		out.stride = 0
	}
	w := newStepTimes(e, p, form, offsets)
	early := uint64(0) // messages that arrive before their receives are posted
	for round := uint64(0); round < rounds; round++ {
		inRound := min(atOnce, chunks-round*atOnce)
		copy(w.before, w.start)
		count, ok := w.round(out)
		if !ok {
			e.fail(errOrder)
			return nil
		}
		early += count * inRound
		e.progress.Report()
		if e.err != nil {
			return nil
		}
		// If all NPUs end as they started, the remaining rounds repeat this one.
		left := rounds - round - 1
		period := w.start[0] - w.before[0]
		for i := range w.start {
			if w.start[i]-w.before[i] != period {
				left = 0
			}
		}
		if left == 0 {
			continue
		}
		if hi, shift := bits.Mul64(period, left); hi != 0 || shift > latest || w.start[0]+shift > latest {
			e.fail(errOrder)
			return nil
		}
		for i := range w.trigger {
			w.trigger[i] += period * left
		}
		early += count * (chunks - (round+1)*atOnce)
		out.period, out.repeats = period, left
		break
	}
	out.triggers, out.reduces = w.trigger, p.reduces(p.sends)
	if out.reduces {
		out.reduction = p.reductionOf(p.sends, e.system)
	}
	if slices.Max(out.triggers) == slices.Min(out.triggers) {
		out.triggers = out.triggers[:1]
	}
	messages, reductions := uint64(p.sends), uint64(0)
	for step := range p.sends + 1 {
		if p.reduces(step) {
			reductions++
		}
	}
	perNPU := uint64(p.n) * chunks
	out.messages = int64(perNPU * messages)
	out.events = int64(perNPU*(2*messages+1+reductions) + early)
	for step := range p.sends {
		hi, lo := bits.Mul64(w.size(step), perNPU)
		var carry uint64
		out.bytesLow, carry = bits.Add64(out.bytesLow, lo, 0)
		out.bytesHigh += hi + carry
	}
	return out
}

// stepTimes are the times of the NPUs in a round of outcomeOfSteps, by position, or a single one if all are equal.
type stepTimes struct {
	e       *engine
	p       *phase
	form    *shape
	before  []uint64 // start of the round before
	start   []uint64 // start of the round
	act     []uint64 // when the next message is sent and its receive is posted
	trigger []uint64 // when the message before was received
	next    []uint64
	delays  []uint64 // from the sender, for messages of size delayed in step
	delayed uint64
	step    int32
}

func newStepTimes(e *engine, p *phase, form *shape, offsets []uint64) *stepTimes {
	n := int(p.n)
	if offsets == nil && form.uniform {
		n = 1
	}
	w := &stepTimes{e: e, p: p, form: form, step: -1}
	for _, list := range []*[]uint64{&w.before, &w.start, &w.act, &w.trigger, &w.next, &w.delays} {
		*list = make([]uint64, n)
	}
	copy(w.start, offsets)
	return w
}

// size returns the size of the message of a step.
func (w *stepTimes) size(step int32) uint64 {
	if w.p.algorithm == HalvingDoubling {
		return w.p.halved(step)
	}
	return w.p.message
}

// round advances all NPUs by a chunk. It returns the number of messages that arrive before their receives are posted,
// and false if a time is out of range or the order of events that matters is not certain.
func (w *stepTimes) round(out *outcome) (early uint64, ok bool) {
	p := w.p
	if p.delay > latest {
		return 0, false
	}
	for i, t := range w.start {
		w.trigger[i], w.act[i] = t, t+p.delay
	}
	added := uint64(0) // when the event at w.act was added, from w.trigger
	for step := range p.sends {
		if !w.setDelays(step) {
			return 0, false
		}
		if len(w.act) == 1 {
			w.next[0] = w.act[0] + w.delays[0]
		} else {
			count, ties := w.receive(step)
			early += count
			if ties {
				more, ok := w.breakTies(out, step, added)
				if !ok {
					return 0, false
				}
				early += more
			}
		}
		w.trigger, w.next = w.next, w.trigger
		pause := p.delay
		if added = 0; p.reduces(step + 1) {
			reduction := p.reductionOf(step+1, w.e.system)
			if pause += reduction; reduction > 0 {
				added = p.delay
			}
		}
		if pause > latest {
			return 0, false
		}
		for i, t := range w.trigger {
			w.act[i] = t + pause
		}
		// At most 3 * latest were added per step, so these sums do not overflow before they are checked.
		if (step%64 == 0 || step == p.sends-1) && slices.Max(w.act) > latest {
			return 0, false
		}
	}
	copy(w.start, w.act)
	return early, true
}

// setDelays determines the delays of the messages of a step; false if one is out of range, or 0.
func (w *stepTimes) setDelays(step int32) bool {
	row, size := int32(0), w.size(step)
	if w.p.algorithm == HalvingDoubling {
		row = int32(bits.TrailingZeros32(uint32(w.p.partner(0, step))))
	}
	if row == w.step && size == w.delayed {
		return true
	}
	w.step, w.delayed = row, size
	distances := w.form.distances[row*w.p.n:]
	for i := range w.delays {
		delay, ok := w.e.links.delayOf(distances[i], size)
		if !ok || delay == 0 || delay > latest {
			return false
		}
		w.delays[i] = delay
	}
	return true
}

// receive determines when the messages of a step are received, in w.next. It returns the number of those that arrive
// before their receives are posted, and whether some arrive exactly at that time.
func (w *stepTimes) receive(step int32) (early uint64, ties bool) {
	if w.p.algorithm == HalvingDoubling {
		mask := w.p.partner(0, step)
		for i, own := range w.act {
			t := w.act[int32(i)^mask] + w.delays[i]
			if t < own {
				early++
			}
			ties = ties || t == own
			w.next[i] = max(t, own)
		}
		return early, ties
	}
	sent := w.act[len(w.act)-1]
	next, delays := w.next[:len(w.act)], w.delays[:len(w.act)]
	for i, own := range w.act {
		t := sent + delays[i]
		if t < own {
			early++
		}
		ties = ties || t == own
		next[i] = max(t, own)
		sent = own
	}
	return early, ties
}

// breakTies returns the number of messages of a step that arrive exactly when their receives are posted, but before
// them. added is when the posts were added to the event queue, from w.trigger.
func (w *stepTimes) breakTies(out *outcome, step int32, added uint64) (early uint64, ok bool) {
	n := int32(len(w.act))
	for i, own := range w.act {
		from := (int32(i) + n - 1) % n
		if w.p.algorithm == HalvingDoubling {
			from = w.p.partner(int32(i), step)
		}
		if w.act[from]+w.delays[i] != own {
			continue
		}
		switch sent, post := w.act[from], w.trigger[i]+added; {
		case sent == post || len(out.ties) == maxTies:
			return 0, false
		case sent < post:
			early++
			if out.ties == nil {
				out.ties = make(map[tie]bool)
			}
			out.ties[tie{int32(i), own}] = true
		}
	}
	return early, true
}
