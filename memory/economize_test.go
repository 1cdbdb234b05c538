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

// TestEconomize checks that the growth of the heap depends on the data in use, and is restored at the last stop.
func TestEconomize(t *testing.T) {
	defer debug.SetGCPercent(debug.SetGCPercent(100))
	first, second := Economize(), Economize()
	data := make([]byte, 3*frugalHeap)
	runtime.GC()
	economy.Lock()
	tune()
	economy.Unlock()
	if got := heapGrowth(); got != leastRoom {
		t.Errorf("with much data, the heap grows by %d %%, expected %d", got, leastRoom)
	}
	runtime.KeepAlive(data)
	first()
	first()
	if got := heapGrowth(); got == 100 {
		t.Error("restored while in use")
	}
	second()
	if got := heapGrowth(); got != 100 {
		t.Errorf("the heap grows by %d %% afterwards, expected 100", got)
	}
	debug.SetGCPercent(7)
	stop := Economize()
	if got := heapGrowth(); got != 7 {
		t.Errorf("the heap grows by %d %%, expected 7, as before", got)
	}
	stop()
	if got := heapGrowth(); got != 7 {
		t.Errorf("the heap grows by %d %% afterwards, expected 7", got)
	}
}
