package sim

import (
	"runtime"
	"sync"
	"sync/atomic"
)

// Barrier lets a number of threads wait for each other, over and over. The waits are mostly short, so a thread first looks
// again and again whether the others have come; if that takes long, it sleeps, for the others may want its processor.
type Barrier struct {
	threads  int32
	looks    int // how often a thread looks before it sleeps
	waiting  atomic.Int32
	round    atomic.Uint32
	sleeping atomic.Int32
	mutex    sync.Mutex
	turned   sync.Cond // the round has changed
}

// NewBarrier returns a barrier for so many threads.
func NewBarrier(threads int) *Barrier {
	b := &Barrier{threads: int32(threads), looks: 1 << 16} // some tens of microseconds: to wake up takes as long
	if threads > runtime.GOMAXPROCS(0) {
		b.looks = 1 << 4
	}
	b.turned.L = &b.mutex
	return b
}

// Wait returns when as many threads as the barrier is for wait. What they did before is then seen by all.
func (b *Barrier) Wait() {
	round := b.round.Load()
	if b.waiting.Add(1) == b.threads {
		b.waiting.Store(0)
		b.round.Add(1)
		if b.sleeping.Load() > 0 {
			b.mutex.Lock() // those that are about to sleep either see the new round or sleep by now
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
