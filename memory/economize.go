package memory

import (
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"sync"
)

// economy is the state of Economize, and the settings without it.
var economy struct {
	sync.Mutex
	users   int
	percent int
	limit   int64
}

// Between collections, the heap grows to six times the data in use, unless the memory of the Go runtime would exceed
// frugalMemory or, if that is more, the data, an eighth of it and runtimeMemory. Collections are cheap: work on traces
// has few large objects without pointers.
const (
	frugalGrowth  = 500 // percent
	frugalMemory  = 34 << 20
	runtimeMemory = 8 << 20

	defaultGrowth = 100 // percent, of the Go runtime
)

// Economize makes the process keep less garbage until stop is called: about 34 MiB of memory or, for more data, an
// eighth of the data. It sets the growth of the heap, unless GOGC is below 100, and lowers the soft limit of memory
// ([debug.SetGCPercent], [debug.SetMemoryLimit]). Calls may overlap.
func Economize() (stop func()) {
	economy.Lock()
	defer economy.Unlock()
	if economy.users++; economy.users == 1 {
		economy.percent, economy.limit = debug.SetGCPercent(frugalGrowth), debug.SetMemoryLimit(-1)
		if 0 <= economy.percent && economy.percent < defaultGrowth {
			debug.SetGCPercent(economy.percent)
		}
		tune()
		tuneAfterCollection()
	}
	return sync.OnceFunc(func() {
		economy.Lock()
		defer economy.Unlock()
		if economy.users--; economy.users == 0 {
			debug.SetGCPercent(economy.percent)
			debug.SetMemoryLimit(economy.limit)
		}
	})
}

// tune sets the limit for the data in use at the last collection.
func tune() {
	sample := []metrics.Sample{{Name: "/gc/heap/live:bytes"}}
	metrics.Read(sample)
	live := bytesOf(sample[0])
	debug.SetMemoryLimit(min(max(frugalMemory, live+live/8+runtimeMemory), economy.limit))
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
