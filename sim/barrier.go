package sim

import (
	"runtime"
	"sync"
	"sync/atomic"
)

// Barrier synchronizes threads repeatedly. Waits are mostly short, so a thread first spins; then it sleeps, since the
// other threads may need its processor.
type Barrier struct {
	threads  int32
	spins    int // number of spins before a thread sleeps
	waiting  atomic.Int32
	round    atomic.Uint32
	sleeping atomic.Int32
	mutex    sync.Mutex
	turned   sync.Cond // signals a change of round
}

// NewBarrier returns a barrier for the given number of threads.
func NewBarrier(threads int) *Barrier {
	b := &Barrier{threads: int32(threads), spins: 1 << 16} // tens of microseconds, about the wake-up time of a thread
	if threads > min(runtime.GOMAXPROCS(0), runtime.NumCPU()) {
		b.spins = 1 << 4
	}
	b.turned.L = &b.mutex
	return b
}

// Wait returns when all threads have called it. Their earlier writes are then visible to all threads.
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
	for range b.spins {
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
