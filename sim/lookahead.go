package sim

import "unsafe"

// Coming returns what the event is about that comes out after k others, where that is known without work: for a look
// ahead at what memory will be needed. Events that are pushed meanwhile may come before it.
func (w *Wheel) Coming(k int) (what uint32, ok bool) {
	if i := w.done + k; i < w.ready {
		return w.today[i].What(), true
	}
	return 0, false
}

// Fetch has the processor bring the first two cache lines of an element of an array into the cache. It never fails,
// whatever the element.
func Fetch[T any](array []T, i uint32) {
	const line = 64
	at := uintptr(unsafe.Pointer(unsafe.SliceData(array))) + uintptr(i)*unsafe.Sizeof(*new(T))
	prefetch(at, at+line)
}
