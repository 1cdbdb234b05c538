package event

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

// TestWheelSameTime fills a bucket with events of few times in descending order of their keys.
func TestWheelSameTime(t *testing.T) {
	const n, times = 50_000, 3
	w := NewWheel(10)
	for k := range uint64(n) {
		w.Push(Event{Time: 5<<10 + k%times, Key: n - k})
	}
	last := w.Pop()
	for range n - 1 {
		e := w.Pop()
		if !last.before(e) {
			t.Fatalf("%v before %v", last, e)
		}
		last = e
	}
}

// TestQueue compares the queue with sorting.
func TestQueue(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for round := range 200 {
		var q Queue
		var want []Event
		next := func(i int) Event { return Event{Time: random.Uint64N(50), Key: uint64(i)<<32 | 7} }
		for i := range round {
			e := next(i)
			q.Push(e)
			want = append(want, e)
			if random.IntN(3) == 0 {
				slices.SortFunc(want, order)
				if got := q.Pop(); got != want[0] {
					t.Fatalf("popped %v, expected %v", got, want[0])
				}
				want = want[1:]
			}
		}
		slices.SortFunc(want, order)
		for _, w := range want {
			if got := q.Pop(); got != w {
				t.Fatalf("popped %v, expected %v", got, w)
			}
		}
		if q.Len() != 0 {
			t.Fatalf("%d events left", q.Len())
		}
	}
}

func order(a, b Event) int {
	if a.before(b) {
		return -1
	}
	return 1
}

// BenchmarkQueue pops an event and pushes a later one, over queues of different lengths.
func BenchmarkQueue(b *testing.B) {
	for _, n := range []int{16, 1 << 10, 1 << 16, 1 << 20} {
		b.Run(sizeName(n), func(b *testing.B) {
			random := rand.New(rand.NewPCG(1, 2))
			var q Queue
			for i := range n {
				q.Push(Event{Time: random.Uint64N(1000), Key: uint64(i) << 32})
			}
			b.ReportAllocs()
			key := uint64(n)
			for b.Loop() {
				e := q.Pop()
				q.Push(Event{Time: e.Time + key*7919%1000, Key: key << 32})
				key++
			}
		})
	}
}

func sizeName(n int) string {
	switch {
	case n >= 1<<20:
		return "1Mi"
	case n >= 1<<16:
		return "64Ki"
	case n >= 1<<10:
		return "1Ki"
	}
	return "16"
}

// TestWheel compares the wheel with the heap, with times near and far, before the earliest, and around the end of the
// range.
func TestWheel(t *testing.T) {
	for seed := range uint64(400) {
		random := rand.New(rand.NewPCG(seed, 3))
		var q Queue
		w := Wheel{grain: uint(seed % 4 * 3)}
		last := uint64(0)
		if seed%5 == 0 {
			last = 1<<64 - 1000
		}
		key := uint64(1 << 20)
		for range 2000 {
			if q.Len() != w.Len() {
				t.Fatalf("seed %d: %d events, expected %d", seed, w.Len(), q.Len())
			}
			if q.Len() > 0 && random.IntN(5) < 2 {
				if got, want := w.NotBefore(), q.Next(); got > want {
					t.Fatalf("seed %d: not before %d, expected no more than %d", seed, got, want)
				}
				if got, want := w.Next(), q.Next(); got != want {
					t.Fatalf("seed %d: next at %d, expected %d", seed, got, want)
				}
				got, want := w.Pop(), q.Pop()
				if got != want {
					t.Fatalf("seed %d: popped %v, expected %v", seed, got, want)
				}
				last = got.Time
				continue
			}
			e := Event{Time: last + random.Uint64N(1<<random.IntN(20)), Key: key << 32}
			switch random.IntN(20) {
			case 0:
				e.Time = last - random.Uint64N(100)
			case 1:
				e.Time = random.Uint64()
			case 2, 3:
				e.Time = last
			}
			if random.IntN(8) == 0 { // an older number, as events that go back into the queue have
				e.Key -= uint64(random.IntN(1000)) << 40
			}
			key += 1 << 12
			q.Push(e)
			w.Push(e)
		}
	}
}

// TestWheelPopBefore compares PopBefore with the heap in windows of time: all events before the end of a window are
// popped while more are pushed, most of them for later windows, and the next window starts at NotBefore or slightly
// later.
func TestWheelPopBefore(t *testing.T) {
	for seed := range uint64(300) {
		random := rand.New(rand.NewPCG(seed, 13))
		var q Queue
		w := Wheel{grain: uint(seed % 4 * 3)}
		number := uint64(0)
		push := func(time uint64) {
			number++
			e := Event{Time: time, Key: number << 32}
			q.Push(e)
			w.Push(e)
		}
		length := uint64(1) << random.IntN(16)
		at := uint64(0)
		if seed%5 == 0 {
			at = 1<<63 - random.Uint64N(100)
		}
		for range 20 {
			push(at + random.Uint64N(4*length))
		}
		for pushes, empty := 0, 0; q.Len() > 0; empty++ {
			start := w.NotBefore()
			if start > q.Next() || empty > wheels+1 {
				t.Fatalf("seed %d: not before %d, expected %d or less, found nothing %d times", seed, start, q.Next(), empty)
			}
			at = start + length
			for {
				got, ok := w.PopBefore(at)
				if ok != (q.Next() < at) {
					t.Fatalf("seed %d: popped %v, %v before %d, expected at %d", seed, got, ok, at, q.Next())
				}
				if !ok {
					break
				}
				if want := q.Pop(); got != want {
					t.Fatalf("seed %d: popped %v, expected %v", seed, got, want)
				}
				empty = 0
				if pushes++; pushes > 1000 {
					continue
				}
				switch random.IntN(4) {
				case 0: // in the window, or close behind
					push(got.Time + random.Uint64N(length))
				case 1: // at the same time
					push(got.Time)
				case 2:
					push(got.Time + random.Uint64N(1<<random.IntN(40)))
				case 3: // an older number, as events that waited at a clock
					old := Event{Time: got.Time, Key: random.Uint64N(number)<<32 | number}
					q.Push(old)
					w.Push(old)
				}
			}
			for range random.IntN(3) {
				if pushes < 1000 { // as exchanged between windows: not before the end of the one that was
					push(at + random.Uint64N(1<<random.IntN(20)))
				}
			}
			if random.IntN(10) == 0 { // before all that is there: now may be ahead of it
				push(at - random.Uint64N(length))
				at -= length
			}
			if q.Len() != w.Len() {
				t.Fatalf("seed %d: %d events, expected %d", seed, w.Len(), q.Len())
			}
		}
		if _, ok := w.PopBefore(1 << 63); ok || w.NotBefore() != math.MaxUint64 || w.Next() != math.MaxUint64 {
			t.Fatalf("seed %d: more came out", seed)
		}
	}
}

// BenchmarkWheel is BenchmarkQueue for the wheel.
func BenchmarkWheel(b *testing.B) {
	for _, n := range []int{16, 1 << 10, 1 << 16, 1 << 20} {
		b.Run(sizeName(n), func(b *testing.B) {
			random := rand.New(rand.NewPCG(1, 2))
			var w Wheel
			for i := range n {
				w.Push(Event{Time: random.Uint64N(1000), Key: uint64(i) << 32})
			}
			b.ReportAllocs()
			key := uint64(n)
			for b.Loop() {
				e := w.Pop()
				w.Push(Event{Time: e.Time + key*7919%1000, Key: key << 32})
				key++
			}
		})
	}
}

// holdTimes are how far ahead the events of a packet-level network are pushed, in picoseconds: half of them a wire's
// latency, the others the serialisation of a full packet, of a small one, or of any.
func holdTimes() []uint64 {
	random := rand.New(rand.NewPCG(4, 5))
	times := make([]uint64, 1<<12)
	for i := range times {
		switch random.IntN(8) {
		case 0:
			times[i] = 2560
		case 1:
			times[i] = 2560 + 40*random.Uint64N(4096)
		case 2, 3:
			times[i] = 166_400
		default:
			times[i] = 500_000
		}
	}
	return times
}

// TestHold compares wheels of several grains with the heap, over the times of a packet-level network.
func TestHold(t *testing.T) {
	times := holdTimes()
	for _, grain := range []uint{0, 5, 8, 10, 20} {
		for _, n := range []int{1, 30, 3000} {
			random := rand.New(rand.NewPCG(uint64(n), 6))
			var q Queue
			w := NewWheel(grain)
			number := uint64(0)
			push := func(time uint64) {
				e := Event{Time: time, Key: number << 32}
				number++
				q.Push(e)
				w.Push(e)
			}
			for range n {
				push(10 * random.Uint64N(50_000))
			}
			for range 30_000 {
				want, got := q.Pop(), w.Pop()
				if got != want {
					t.Fatalf("grain %d, %d events: popped %v, expected %v", grain, n, got, want)
				}
				switch random.IntN(16) {
				case 0: // a timeout
					push(got.Time + 1<<(20+random.IntN(20)))
				case 1: // right away
					push(got.Time + random.Uint64N(2))
				default:
					push(got.Time + times[random.IntN(len(times))])
				}
			}
		}
	}
}

// BenchmarkHold pops an event and pushes a later one, like a packet-level network with the given number of pending
// events. The high half of keys ascends.
func BenchmarkHold(b *testing.B) {
	times := holdTimes()
	for _, n := range []int{100, 1000, 10_000, 100_000} {
		random := rand.New(rand.NewPCG(1, 2))
		first := make([]Event, n)
		for i := range first {
			first[i] = Event{Time: 10 * random.Uint64N(50_000), Key: uint64(i) << 32}
		}
		b.Run(fmt.Sprintf("Queue/%d", n), func(b *testing.B) {
			var q Queue
			for _, e := range first {
				q.Push(e)
			}
			b.ReportAllocs()
			number := uint64(n)
			for b.Loop() {
				e := q.Pop()
				q.Push(Event{Time: e.Time + times[number%uint64(len(times))], Key: number << 32})
				number++
			}
		})
		for _, grain := range []uint{0, 8, 10} {
			b.Run(fmt.Sprintf("Wheel,grain=%d/%d", grain, n), func(b *testing.B) {
				w := NewWheel(grain)
				for _, e := range first {
					w.Push(e)
				}
				b.ReportAllocs()
				number := uint64(n)
				for b.Loop() {
					e := w.Pop()
					w.Push(Event{Time: e.Time + times[number%uint64(len(times))], Key: number << 32})
					number++
				}
			})
		}
	}
}
