package memory

import (
	"math"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"sync"
	"time"
)

// Watch observes the memory of the process until stop is called. If data in use exceeds 7/8 of the limit in bytes, it
// calls exceeded once, with an [*Error], in a goroutine of its own. The rest is for garbage and the code of the
// program; to keep within it, Watch sets the soft limit of the Go runtime ([debug.SetMemoryLimit], GOMEMLIMIT) to 7/8
// of the limit, unless it is lower. stop restores it.
//
// A library passes a [context.CancelCauseFunc]. Watch observes the whole process, so one limit should apply to all its
// parts.
func Watch(limit int64, exceeded func(error)) (stop func()) {
	if limit == NoLimit {
		return func() {}
	}
	w := &watch{limit: limit, data: limit / 8 * 7, other: newResident()}
	before := debug.SetMemoryLimit(-1)
	debug.SetMemoryLimit(min(before, w.data))
	done := make(chan struct{})
	var running sync.WaitGroup
	running.Go(func() {
		defer w.other.close()
		for {
			timer := time.NewTimer(w.pause())
			select {
			case <-done:
				timer.Stop()
				return
			case <-timer.C:
			}
			if w.exceeded() {
				go exceeded(&Error{Limit: limit})
				return
			}
		}
	})
	return sync.OnceFunc(func() {
		close(done)
		running.Wait()
		debug.SetMemoryLimit(before)
	})
}

// watch is the state of Watch.
type watch struct {
	limit, data int64 // of all memory, and of data in use, in bytes
	samples     [3]metrics.Sample
	other       *resident
}

const (
	growth   = 8 << 30 // bytes per second: no program fills memory faster
	minPause = time.Millisecond
	maxPause = 100 * time.Millisecond
)

// pause returns the time in which the program cannot reach the limit.
func (w *watch) pause() time.Duration {
	room := float64(w.threshold()-w.used()) / growth * float64(time.Second)
	return min(max(time.Duration(room), minPause), maxPause)
}

// threshold is the memory in use, including garbage, from which data may be too much.
func (w *watch) threshold() int64 { return w.limit/16*15 + w.limit%16 }

// exceeded reports whether data in use exceeds its limit. Garbage does not count: collection may only be late.
func (w *watch) exceeded() bool {
	switch used := w.used(); {
	case used <= w.threshold():
		return false
	case used/2 > w.limit: // the runtime keeps garbage near the limit; this is data
		return true
	}
	runtime.GC()
	return w.used()-w.free() > w.data
}

// used returns the memory that the Go runtime has from the system, as GOMEMLIMIT counts it, or that of the process if
// that is more: SQLite has memory of its own.
func (w *watch) used() int64 {
	w.read()
	return max(w.value(0)-w.value(1), w.other.bytes())
}

// free returns the part of used that holds nothing and can be returned to the system.
func (w *watch) free() int64 { return w.value(2) }

func (w *watch) read() {
	if w.samples[0].Name == "" {
		w.samples[0].Name = "/memory/classes/total:bytes"
		w.samples[1].Name = "/memory/classes/heap/released:bytes"
		w.samples[2].Name = "/memory/classes/heap/free:bytes"
	}
	metrics.Read(w.samples[:])
}

func (w *watch) value(i int) int64 { return bytesOf(w.samples[i]) }

// bytesOf returns the value of a metric in bytes, 0 if the runtime does not have it.
func bytesOf(s metrics.Sample) int64 {
	if s.Value.Kind() != metrics.KindUint64 {
		return 0
	}
	return int64(min(s.Value.Uint64(), math.MaxInt64))
}
