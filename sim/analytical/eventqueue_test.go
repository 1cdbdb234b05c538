package analytical

import (
	"math/rand/v2"
	"testing"
)

// plainQueue is the event queue of ASTRA-sim: a list of events per time, and per NPU and time a list that takes one place
// in the list of the time.
type plainQueue struct {
	now   uint64
	times map[uint64][]plainEvent
	own   map[plainKey][]event
	pass  []event // the remaining events of an NPU
	at    plainKey
}

type plainKey struct {
	npu  int32
	time uint64
}

type plainEvent struct {
	own   bool
	event event
}

func (a *plainQueue) add(time uint64, ev event) {
	if ev.kind() > lastOfNPU {
		a.times[time] = append(a.times[time], plainEvent{event: ev})
		return
	}
	k := plainKey{ev.npu(), time}
	if a.at == k {
		a.pass = append(a.pass, ev)
		return
	}
	if len(a.own[k]) == 0 {
		a.times[time] = append(a.times[time], plainEvent{own: true, event: ev})
	}
	a.own[k] = append(a.own[k], ev)
}

func (a *plainQueue) take() (event, bool) {
	for {
		if len(a.pass) > 0 {
			ev := a.pass[0]
			a.pass = a.pass[1:]
			return ev, true
		}
		a.at = plainKey{npu: -1}
		list := a.times[a.now]
		if len(list) == 0 {
			delete(a.times, a.now)
			if len(a.times) == 0 {
				return 0, false
			}
			next := ^uint64(0)
			for t := range a.times {
				next = min(next, t)
			}
			a.now = next
			continue
		}
		a.times[a.now] = list[1:]
		e := list[0]
		if !e.own {
			return e.event, true
		}
		a.at = plainKey{e.event.npu(), a.now}
		a.pass = a.own[a.at]
		delete(a.own, a.at)
	}
}

// TestEventQueue compares with plainQueue while random events are added and taken.
func TestEventQueue(t *testing.T) {
	for seed := range uint64(200) {
		random := rand.New(rand.NewPCG(seed, 1))
		const npus = 3
		fast := newEventQueue(npus)
		plain := &plainQueue{times: map[uint64][]plainEvent{}, own: map[plainKey][]event{}, at: plainKey{npu: -1}}
		number := uint32(0)
		add := func() {
			spans := []uint64{1, 3, 10, 5000, 1 << 22, 1 << 40}
			span := spans[random.IntN(len(spans))]
			delay := random.Uint64N(span)
			number++
			k := kind(1 + random.IntN(int(nicFree)))
			ev := newEvent(k, random.Int32N(npus), number)
			fast.add(fast.now+delay, ev)
			plain.add(plain.now+delay, ev)
		}
		for range 20 {
			add()
		}
		for n := 0; ; n++ {
			ev, ok := fast.take()
			v, more := plain.take()
			if ev != v || ok != more || fast.now != plain.now {
				t.Fatalf("seed %d, event %d: %x at %d (%v), expected %x at %d (%v)", seed, n, ev, fast.now, ok, v, plain.now, more)
			}
			if !ok {
				break
			}
			for n < 3000 && random.IntN(5) < 2 {
				add()
			}
		}
	}
}
