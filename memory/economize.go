package memory

import (
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"sync"
)

// economy is the state of Economize.
var economy struct {
	sync.Mutex
	users  int
	before int // the growth of the heap without Economize, in percent
}

// frugalHeap is the size in bytes to which the heap grows before a collection, unless that is less than leastRoom or
// more than mostRoom percent of the data in use. A collection is cheap: work on traces has few large objects without
// pointers.
const (
	frugalHeap = 30 << 20
	leastRoom  = 20
	mostRoom   = 400
)

// Economize makes the process keep less garbage until stop is called: the heap grows to about 30 MiB before a
// collection, or by a fifth of the data in use if that needs more, unless GOGC asks for less ([debug.SetGCPercent]).
// Calls may overlap.
func Economize() (stop func()) {
	economy.Lock()
	defer economy.Unlock()
	if economy.users++; economy.users == 1 {
		economy.before = debug.SetGCPercent(mostRoom)
		tune()
		tuneAfterCollection()
	}
	return sync.OnceFunc(func() {
		economy.Lock()
		defer economy.Unlock()
		if economy.users--; economy.users == 0 {
			debug.SetGCPercent(economy.before)
		}
	})
}

// tune sets the growth of the heap for the data in use.
func tune() {
	sample := []metrics.Sample{{Name: "/gc/heap/live:bytes"}}
	metrics.Read(sample)
	percent := mostRoom
	if sample[0].Value.Kind() == metrics.KindUint64 {
		live := int64(max(sample[0].Value.Uint64(), 1))
		percent = int(min(max((frugalHeap-live)*100/live, leastRoom), mostRoom))
	}
	if economy.before >= 0 {
		percent = min(percent, economy.before)
	}
	debug.SetGCPercent(percent)
}

// tuneAfterCollection calls tune after each collection while Economize is in effect.
func tuneAfterCollection() {
	runtime.SetFinalizer(new(collected), func(*collected) {
		economy.Lock()
		defer economy.Unlock()
		if economy.users > 0 {
			tune()
			tuneAfterCollection()
		}
	})
}

// collected is an object that the next collection finds unused. It has a size of its own, so that no other object
// shares its memory.
type collected struct{ _ [16]byte }
