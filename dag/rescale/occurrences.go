package rescale

import (
	"container/heap"

	"github.com/tracedag/tracedag/dag"
)

// occurrence is the n-th time that a rank makes a call.
type occurrence struct {
	call int32
	n    int32
}

// ordering sorts occurrences.
type ordering struct {
	of     []occurrence
	number map[occurrence]int32
	key    []float64 // place in the sequence of the first rank that has it, from 0 to 1
	after  [][]int32 // occurrences that follow on some rank
	before []int32   // number of occurrences that precede on some rank and are not sorted
	ready  []int32   // a heap
}

func (o *ordering) Len() int      { return len(o.ready) }
func (o *ordering) Swap(i, j int) { o.ready[i], o.ready[j] = o.ready[j], o.ready[i] }
func (o *ordering) Push(x any)    { o.ready = append(o.ready, x.(int32)) }

func (o *ordering) Pop() any {
	last := o.ready[len(o.ready)-1]
	o.ready = o.ready[:len(o.ready)-1]
	return last
}

func (o *ordering) Less(i, j int) bool {
	a, b := o.ready[i], o.ready[j]
	if o.key[a] != o.key[b] {
		return o.key[a] < o.key[b]
	}
	return a < b
}

// byOccurrence aligns a part of the sequences of all ranks by counting: the n-th time that a rank makes a call is the
// n-th time of every rank that makes it. It returns false if no order of the calls is that of all ranks.
func (k *skeleton) byOccurrence(parts [][]int32) bool {
	o := &ordering{number: map[occurrence]int32{}}
	distinct := map[string]bool{}
	var text []byte
	mapped := make([][]int32, len(parts))
	edges := map[[2]int32]bool{}
	counts := make([]int32, len(k.q.calls))
	for rank, part := range parts {
		clear(counts)
		list := make([]int32, len(part))
		for i, c := range part {
			x := occurrence{c, counts[c]}
			counts[c]++
			n, known := o.number[x]
			if !known {
				n = int32(len(o.of))
				o.number[x] = n
				o.of = append(o.of, x)
				o.key = append(o.key, (float64(i)+0.5)/float64(len(part)))
				o.after, o.before = append(o.after, nil), append(o.before, 0)
			}
			list[i] = n
		}
		mapped[rank] = list
		if text = numbers(text[:0], part); distinct[string(text)] {
			continue
		}
		distinct[string(text)] = true
		for i := 1; i < len(list); i++ {
			if e := [2]int32{list[i-1], list[i]}; !edges[e] {
				edges[e] = true
				o.after[e[0]] = append(o.after[e[0]], e[1])
				o.before[e[1]]++
			}
		}
	}
	k.pairUp(o)
	order := o.sort(k.q.calls)
	if len(order) < len(o.of) {
		return false
	}
	first := int32(len(k.calls))
	for _, x := range o.of {
		k.calls = append(k.calls, x.call)
	}
	for _, n := range order {
		k.order = append(k.order, first+n)
	}
	for rank, list := range mapped {
		for _, n := range list {
			k.slots[rank] = append(k.slots[rank], first+n)
		}
	}
	return true
}

// numbers appends the bytes of numbers.
func numbers(to []byte, list []int32) []byte {
	for _, n := range list {
		to = append(to, byte(n), byte(n>>8), byte(n>>16), byte(n>>24))
	}
	return to
}

// pairUp gives receives the place of the send that passes the message on in the same direction. Ranks between two
// neighbors, if the trace has none, receive and then send.
func (k *skeleton) pairUp(o *ordering) {
	const before = 1e-9
	sends := map[call]int32{}
	for id, c := range k.q.calls {
		if c.kind == dag.Send {
			sends[c] = int32(id)
		}
	}
	for n, x := range o.of {
		c := k.q.calls[x.call]
		if c.kind != dag.Recv {
			continue
		}
		c.kind = dag.Send
		for d := range c.at {
			c.at[d] = -c.at[d]
		}
		if send, known := sends[c]; known {
			if at, known := o.number[occurrence{send, x.n}]; known {
				o.key[n] = o.key[at] - before
			}
		}
	}
}

// sort returns the occurrences in an order that agrees with that of all ranks; fewer if there is none. The messages of
// one rank with many others follow each other.
func (o *ordering) sort(calls []call) (order []int32) {
	for n, before := range o.before {
		if before == 0 {
			o.ready = append(o.ready, int32(n))
		}
	}
	heap.Init(o)
	for len(o.ready) > 0 {
		for n := heap.Pop(o).(int32); n >= 0; {
			order = append(order, n)
			follows := int32(-1)
			for _, next := range o.after[n] {
				if o.before[next]--; o.before[next] > 0 {
					continue
				}
				a, b := &calls[o.of[n].call], &calls[o.of[next].call]
				if follows < 0 && a.rule == fixed && b.rule == fixed && a.kind == b.kind && a.tag == b.tag {
					follows = next
				} else {
					heap.Push(o, next)
				}
			}
			n = follows
		}
	}
	return order
}
