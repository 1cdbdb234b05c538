package graph500

// Destinations of messages. Each message goes to one of the other processes with equal probability. The numbers of a
// run's messages per destination are multinomial, and are drawn by halves: the number of messages to the first half of
// a range of processes is binomial. Each of these numbers has its own random stream, by run and range. So a receiver
// computes its number of messages from a sender by the ranges that contain it, and no draws are stored.

import (
	"math/bits"
	"math/rand/v2"
)

type targets struct {
	n    int // processes
	keys [2]uint64
}

func newTargets(n int, seed int64) targets {
	r := draws(seed, 0, 0, "targets")
	return targets{n, [2]uint64{r.Uint64(), r.Uint64()}}
}

// sent identifies a run of messages.
type sent struct{ source, level, run int }

// span is a range of the processes other than the sender, numbered without it: first to last-1.
type span struct {
	first, last int
	node        uint64 // index in the tree of ranges: 1 is the whole, 2i and 2i+1 are the halves of i
}

func (t *targets) others() span {
	return span{0, t.n - 1, 1}
}

func (s span) halves() (a, b span) {
	mid := s.first + (s.last-s.first)/2
	return span{s.first, mid, 2 * s.node}, span{mid, s.last, 2*s.node + 1}
}

func (s span) size() int { return s.last - s.first }

// split returns the number of a range's messages that go to its first half, a.
func (t *targets) split(from sent, whole, a span, messages int64) int64 {
	var r rand.PCG
	run := mix(t.keys[0] ^ (uint64(from.source)<<16 | uint64(from.level)<<8 | uint64(from.run)))
	r.Seed(run, mix(t.keys[1]^run^whole.node))
	return binomial(&r, messages, uint64(a.size()), uint64(whole.size()))
}

// mix is the finalizer of SplitMix64 (Steele, Lea, Flood: Fast splittable pseudorandom number generators, OOPSLA 2014).
func mix(x uint64) uint64 {
	x += 0x9e3779b97f4a7c15
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}

// to returns the number of messages of a run to a process other than the sender.
func (t *targets) to(from sent, process int, messages int64) int64 {
	if process > from.source {
		process--
	}
	for s := t.others(); messages > 0 && s.size() > 1; {
		a, b := s.halves()
		first := t.split(from, s, a, messages)
		if process < a.last {
			s, messages = a, first
		} else {
			s, messages = b, messages-first
		}
	}
	return messages
}

// each calls visit for all processes that receive messages of a run, ascending.
func (t *targets) each(from sent, messages int64, visit func(process int, messages int64)) {
	t.eachOf(from, t.others(), messages, visit)
}

func (t *targets) eachOf(from sent, s span, messages int64, visit func(process int, messages int64)) {
	if messages == 0 {
		return
	}
	if s.size() == 1 {
		process := s.first
		if process >= from.source {
			process++
		}
		visit(process, messages)
		return
	}
	a, b := s.halves()
	first := t.split(from, s, a, messages)
	t.eachOf(from, a, first, visit)
	t.eachOf(from, b, messages-first, visit)
}

// order appends the destinations of a run's messages in order.
func (t *targets) order(from sent, messages int64, all []int32) []int32 {
	first := len(all)
	t.each(from, messages, func(process int, messages int64) {
		for range messages {
			all = append(all, int32(process))
		}
	})
	var r rand.PCG
	run := uint64(from.source)<<16 | uint64(from.level)<<8 | uint64(from.run)
	r.Seed(mix(t.keys[1]^run), mix(t.keys[0]+run))
	list := all[first:]
	for i := len(list) - 1; i > 0; i-- {
		k, _ := bits.Mul64(r.Uint64(), uint64(i+1))
		list[i], list[k] = list[k], list[i]
	}
	return all
}
