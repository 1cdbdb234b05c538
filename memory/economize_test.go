package memory

import (
	"runtime"
	"runtime/debug"
	"testing"
)

// heapGrowth returns the growth of the heap between collections in percent.
func heapGrowth() int {
	percent := debug.SetGCPercent(-1)
	debug.SetGCPercent(percent)
	return percent
}

// TestEconomize checks that the limit depends on the data in use, and that the last stop restores the settings.
func TestEconomize(t *testing.T) {
	const before = 1 << 40
	defer debug.SetGCPercent(debug.SetGCPercent(defaultGrowth))
	defer debug.SetMemoryLimit(debug.SetMemoryLimit(before))
	first, second := Economize(), Economize()
	data := make([]byte, 3*frugalMemory)
	runtime.GC()
	economy.Lock()
	tune()
	economy.Unlock()
	if limit := debug.SetMemoryLimit(-1); limit < 3*frugalMemory*9/8 || limit > 4*frugalMemory {
		t.Errorf("limit %d for %d bytes of data", limit, len(data))
	}
	runtime.KeepAlive(data)
	first()
	first()
	if heapGrowth() == defaultGrowth || debug.SetMemoryLimit(-1) == before {
		t.Error("restored while in use")
	}
	second()
	if got, limit := heapGrowth(), debug.SetMemoryLimit(-1); got != defaultGrowth || limit != before {
		t.Errorf("afterwards the heap grows by %d %% and the limit is %d, expected %d and %d", got, limit, defaultGrowth,
			int64(before))
	}
	debug.SetGCPercent(7)
	debug.SetMemoryLimit(frugalMemory / 2)
	stop := Economize()
	if got, limit := heapGrowth(), debug.SetMemoryLimit(-1); got != 7 || limit != frugalMemory/2 {
		t.Errorf("the heap grows by %d %%, the limit is %d; expected lower settings to stay", got, limit)
	}
	stop()
}
