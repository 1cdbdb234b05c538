package llm

import (
	"container/heap"
	"fmt"
	"math/rand/v2"

	"github.com/tracedag/tracedag/dag"
)

// oneAtATime replays a trace as ASTRA-sim would: a rank does one calc at a time, has one send, collective or memory
// access on its way at a time and any number of receives, and of what is ready begins the lowest op first. Sends end
// when they arrive, received or not. All times are drawn. It returns what is wrong: ops that never end, or members that
// are not in the same collective.
func oneAtATime(tr *dag.Trace, seed uint64) string {
	r := replay{
		trace: tr, random: rand.New(rand.NewPCG(seed, 1)), ranks: make([]rankState, len(tr.Ranks)),
		arrived: map[message]int{}, posted: map[message][]int{}, entered: map[instance]*meeting{},
	}
	for rank := range r.ranks {
		s := &r.ranks[rank]
		ops := tr.Ranks[rank]
		s.dependents = ops.Dependents()
		s.waits = make([]int, ops.Len())
		for i := range s.waits {
			if s.waits[i] = ops.Deps.Count(i); s.waits[i] == 0 {
				heap.Push(&s.ready, i)
			}
		}
		s.issued = make([]int, len(tr.Comms))
		r.begin(rank)
	}
	for len(r.ends) > 0 {
		e := heap.Pop(&r.ends).(end)
		r.now = e.time
		r.finish(e.rank, e.op)
	}
	if r.wrong != "" {
		return r.wrong
	}
	for rank := range r.ranks {
		if n := tr.Ranks[rank].Len(); r.ranks[rank].done < n {
			return fmt.Sprintf("rank %d did %d of %d ops", rank, r.ranks[rank].done, n)
		}
	}
	return ""
}

type replay struct {
	trace   *dag.Trace
	random  *rand.Rand
	now     int
	ranks   []rankState
	ends    ends
	arrived map[message]int       // messages without a receive
	posted  map[message][]int     // receives without a message, by op
	entered map[instance]*meeting // collectives that not all members have begun
	wrong   string
}

type rankState struct {
	dependents dag.Dependents
	waits      []int // of each op, for how many others
	ready      ints
	computing  bool
	talking    bool
	issued     []int // collectives begun, by communicator
	done       int
}

type message struct {
	from, to int
	tag      int64
}

type instance struct {
	comm   int32
	number int
}

type meeting struct {
	ranks, ops []int
}

// begin begins what a rank can.
func (r *replay) begin(rank int) {
	s := &r.ranks[rank]
	ops := r.trace.Ranks[rank]
	var later []int
	for s.ready.Len() > 0 {
		i := heap.Pop(&s.ready).(int)
		busy := &s.talking
		if ops.Kind[i] == dag.Calc {
			busy = &s.computing
		}
		switch {
		case ops.Kind[i] == dag.Recv:
			m := message{int(ops.Peer.At(i)), rank, ops.Tag.At(i)}
			if r.arrived[m] > 0 {
				r.arrived[m]--
				r.end(rank, i, 0)
			} else {
				r.posted[m] = append(r.posted[m], i)
			}
		case *busy:
			later = append(later, i)
		case ops.Kind[i] == dag.Coll:
			*busy = true
			r.enter(rank, i)
		default:
			*busy = true
			r.end(rank, i, 1+r.random.IntN(100))
		}
	}
	for _, i := range later {
		heap.Push(&s.ready, i)
	}
}

// enter begins the part of a rank in a collective, which ends some time after the last.
func (r *replay) enter(rank, op int) {
	comm := r.trace.Ranks[rank].Comm.At(op)
	at := instance{comm, r.ranks[rank].issued[comm]}
	r.ranks[rank].issued[comm]++
	m := r.entered[at]
	if m == nil {
		m = &meeting{}
		r.entered[at] = m
	}
	m.ranks, m.ops = append(m.ranks, rank), append(m.ops, op)
	if first, own := r.trace.Ranks[m.ranks[0]].Op(m.ops[0]), r.trace.Ranks[rank].Op(op); first.Subkind != own.Subkind ||
		first.Bytes != own.Bytes || first.Name != own.Name {
		r.wrong = fmt.Sprintf("rank %d is in %+v, rank %d in %+v", m.ranks[0], first, rank, own)
	}
	if len(m.ranks) == r.trace.Comms[comm].Size() {
		takes := 1 + r.random.IntN(100)
		for k := range m.ranks {
			r.end(m.ranks[k], m.ops[k], takes+r.random.IntN(10))
		}
		delete(r.entered, at)
	}
}

func (r *replay) end(rank, op, after int) {
	heap.Push(&r.ends, end{r.now + after, rank, op})
}

// finish ends an op.
func (r *replay) finish(rank, op int) {
	s := &r.ranks[rank]
	ops := r.trace.Ranks[rank]
	switch ops.Kind[op] {
	case dag.Calc:
		s.computing = false
	case dag.Coll, dag.Send, dag.Mem:
		s.talking = false
	}
	s.done++
	for _, d := range s.dependents.Of(op) {
		if s.waits[d]--; s.waits[d] == 0 {
			heap.Push(&s.ready, int(d))
		}
	}
	r.begin(rank)
	if ops.Kind[op] == dag.Send {
		m := message{rank, int(ops.Peer.At(op)), ops.Tag.At(op)}
		if list := r.posted[m]; len(list) > 0 {
			r.posted[m] = list[1:]
			r.finish(m.to, list[0])
		} else {
			r.arrived[m]++
		}
	}
}

type ints []int

func (h ints) Len() int           { return len(h) }
func (h ints) Less(i, j int) bool { return h[i] < h[j] }
func (h ints) Swap(i, j int)      { h[i], h[j] = h[j], h[i] }
func (h *ints) Push(x any)        { *h = append(*h, x.(int)) }
func (h *ints) Pop() any {
	last := (*h)[len(*h)-1]
	*h = (*h)[:len(*h)-1]
	return last
}

type end struct{ time, rank, op int }

type ends []end

func (h ends) Len() int { return len(h) }
func (h ends) Less(i, j int) bool {
	if h[i].time != h[j].time {
		return h[i].time < h[j].time
	}
	if h[i].rank != h[j].rank {
		return h[i].rank < h[j].rank
	}
	return h[i].op < h[j].op
}
func (h ends) Swap(i, j int) { h[i], h[j] = h[j], h[i] }
func (h *ends) Push(x any)   { *h = append(*h, x.(end)) }
func (h *ends) Pop() any {
	last := (*h)[len(*h)-1]
	*h = (*h)[:len(*h)-1]
	return last
}
