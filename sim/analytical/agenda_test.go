package analytical

import (
	"math/rand/v2"
	"testing"
)

// plainAgenda is the agenda as ASTRA-sim has it: a list of events for each time, and for each NPU a list for each time,
// which has one place in the list of the time.
type plainAgenda struct {
	now   uint64
	times map[uint64][]plainEvent
	own   map[plainKey][]what
	pass  []what // what is left of an NPU's events
	at    plainKey
}

type plainKey struct {
	npu  int32
	time uint64
}

type plainEvent struct {
	own  bool
	what what
}

func (a *plainAgenda) add(time uint64, w what) {
	if w.kind() > lastOfNPU {
		a.times[time] = append(a.times[time], plainEvent{what: w})
		return
	}
	k := plainKey{w.npu(), time}
	if a.at == k {
		a.pass = append(a.pass, w)
		return
	}
	if len(a.own[k]) == 0 {
		a.times[time] = append(a.times[time], plainEvent{own: true, what: w})
	}
	a.own[k] = append(a.own[k], w)
}

func (a *plainAgenda) take() (what, bool) {
	for {
		if len(a.pass) > 0 {
			w := a.pass[0]
			a.pass = a.pass[1:]
			return w, true
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
			return e.what, true
		}
		a.at = plainKey{e.what.npu(), a.now}
		a.pass = a.own[a.at]
		delete(a.own, a.at)
	}
}

// TestAgenda adds random events while random events happen.
func TestAgenda(t *testing.T) {
	for seed := range uint64(200) {
		random := rand.New(rand.NewPCG(seed, 1))
		const npus = 3
		fast := newAgenda(npus)
		plain := &plainAgenda{times: map[uint64][]plainEvent{}, own: map[plainKey][]what{}, at: plainKey{npu: -1}}
		number := uint32(0)
		add := func() {
			spans := []uint64{1, 3, 10, 5000, 1 << 22, 1 << 40}
			span := spans[random.IntN(len(spans))]
			delay := random.Uint64N(span)
			number++
			k := kind(1 + random.IntN(int(readyToSend)))
			w := newWhat(k, random.Int32N(npus), number)
			fast.add(fast.now+delay, w)
			plain.add(plain.now+delay, w)
		}
		for range 20 {
			add()
		}
		for n := 0; ; n++ {
			w, ok := fast.take()
			v, more := plain.take()
			if w != v || ok != more || fast.now != plain.now {
				t.Fatalf("seed %d, event %d: %x at %d (%v), expected %x at %d (%v)", seed, n, w, fast.now, ok, v, plain.now, more)
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
