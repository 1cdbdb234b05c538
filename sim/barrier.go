package sim

import (
	"runtime"
	"sync"
	"sync/atomic"
)

// Barrier lets threads wait for each other repeatedly. Waits are mostly short, so a thread first spins; if that takes
// long, it sleeps, since the others may need its processor.
type Barrier struct {
	threads  int32
	looks    int // spins before a thread sleeps
	waiting  atomic.Int32
	round    atomic.Uint32
	sleeping atomic.Int32
	mutex    sync.Mutex
	turned   sync.Cond // signals a change of round
}

// NewBarrier returns a barrier for the given number of threads.
func NewBarrier(threads int) *Barrier {
	b := &Barrier{threads: int32(threads), looks: 1 << 16} // tens of microseconds, about the time to wake up
	if threads > runtime.GOMAXPROCS(0) {
		b.looks = 1 << 4
	}
	b.turned.L = &b.mutex
	return b
}

// Wait returns when all threads have called it. Their earlier writes are then visible to all.
func (b *Barrier) Wait() {
	round := b.round.Load()
	if b.waiting.Add(1) == b.threads {
		b.waiting.Store(0)
		b.round.Add(1)
		if b.sleeping.Load() > 0 {
			b.mutex.Lock() // threads about to sleep either see the new round or sleep already
			b.turned.Broadcast()
			b.mutex.Unlock()
		}
		return
	}
	for range b.looks {
		if b.round.Load() != round {
			return
		}
	}
	b.mutex.Lock()
	b.sleeping.Add(1)
	for b.round.Load() == round {
		b.turned.Wait()
	}
	b.sleeping.Add(-1)
	b.mutex.Unlock()
}
