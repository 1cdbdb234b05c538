package collective

import "github.com/tracedag/tracedag/dag"

// None stands for no step where an algorithm names the step that another one waits for.
const None int32 = -1

// lanes is how many lanes a schedule's messages may have.
const lanes = 2

// Schedule is what one member does in one collective: its messages, each after the steps that it waits for. Peers are
// positions in the communicator. A schedule keeps its memory from one use to the next.
type Schedule struct {
	Steps []Step
	after []int32
	lane  uint8 // of the steps to come

	entry    []int32 // what steps to come wait for that are given nothing to wait for, the end of entries
	entries  []int32 // of the stages under way, one within the other
	children []int32 // of the branch at hand
	levels   levels
	contents *contents
}

// Step is one message of a schedule, a [dag.Send] or a [dag.Recv].
type Step struct {
	Kind    dag.Kind
	Awaited bool  // whether a later step waits for this one; the others are the schedule's last steps
	Lane    uint8 // less than lanes; messages of different lanes never match
	Peer    int32 // position of the partner
	Bytes   int64
	end     uint32 // where the step's list ends in Schedule.after
}

// span is a run of bytes of the data of a collective, in which the first byte follows the last. The data is the vector,
// or the members' blocks one behind the other; that of an all-to-all is what member 0 contributes, then member 1, ...
type span struct{ from, bytes int64 }

// contents tells what the messages of a schedule hold, and what the member does with those that it receives. A schedule
// that has it fills it: tests prove with it that every member gets what it should.
type contents struct {
	spans []span
	held  [][]span // by step, of spans
	how   []arriving
}

// arriving is what a member does with data that it receives.
type arriving uint8

const (
	keep      arriving = iota // it has the data from then on, instead of its own
	reduce                    // it reduces its own with it
	reduceAll                 // likewise, and so it does with its result of a scan
)

// Reset empties the schedule.
func (s *Schedule) Reset() {
	s.Steps, s.after, s.lane = s.Steps[:0], s.after[:0], 0
	if s.contents != nil {
		c := s.contents
		c.spans, c.held, c.how = c.spans[:0], c.held[:0], c.how[:0]
	}
}

// After returns the steps that step i waits for; a step that waits for none is one of the schedule's first.
func (s *Schedule) After(i int) []int32 {
	start := uint32(0)
	if i > 0 {
		start = s.Steps[i-1].end
	}
	return s.after[start:s.Steps[i].end]
}

// last returns the step added last, None if there is none.
func (s *Schedule) last() int32 {
	return int32(len(s.Steps) - 1)
}

// ends returns how many steps wait for none, and for how many none waits.
func (s *Schedule) ends() (entries, exits int) {
	for i := range s.Steps {
		if len(s.After(i)) == 0 {
			entries++
		}
		if !s.Steps[i].Awaited {
			exits++
		}
	}
	return entries, exits
}

// Send appends a send to position to, which waits for the steps after (but for those that are None), and returns its
// number.
func (s *Schedule) Send(to int, bytes int64, after ...int32) int32 {
	return s.add(dag.Send, to, span{0, bytes}, keep, after)
}

// Recv appends a receive from position from, like Send.
func (s *Schedule) Recv(from int, bytes int64, after ...int32) int32 {
	return s.add(dag.Recv, from, span{0, bytes}, keep, after)
}

// send is Send, of the data x.
func (s *Schedule) send(to int, x span, after ...int32) int32 {
	return s.add(dag.Send, to, x, keep, after)
}

// recv is Recv, of the data x, which takes the place of the member's own.
func (s *Schedule) recv(from int, x span, after ...int32) int32 {
	return s.add(dag.Recv, from, x, keep, after)
}

// combine is Recv, of the data x, with which the member reduces its own.
func (s *Schedule) combine(from int, x span, after ...int32) int32 {
	return s.add(dag.Recv, from, x, reduce, after)
}

func (s *Schedule) add(kind dag.Kind, peer int, x span, how arriving, after []int32) int32 {
	free := true
	for _, a := range after {
		if a != None {
			s.after = append(s.after, a)
			s.Steps[a].Awaited = true
			free = false
		}
	}
	if free && len(s.entry) > 0 {
		s.after = append(s.after, s.entry...)
		for _, a := range s.entry {
			s.Steps[a].Awaited = true
		}
	}
	s.Steps = append(s.Steps, Step{
		Kind: kind, Lane: s.lane, Peer: int32(peer), Bytes: x.bytes, end: uint32(len(s.after)),
	})
	if s.contents != nil {
		c := s.contents
		c.spans = append(c.spans, x)
		c.held, c.how = append(c.held, c.spans[len(c.spans)-1:]), append(c.how, how)
	}
	return s.last()
}

// hold tells what a message holds where that is not one span.
func (s *Schedule) hold(step int32, each func(add func(span))) {
	if s.contents != nil {
		c, begin := s.contents, len(s.contents.spans)
		each(func(x span) { c.spans = append(c.spans, x) })
		c.held[step] = c.spans[begin:]
	}
}

// stage appends what plan appends, a part that begins when all before it has ended. The peers that plan gives are
// positions in a part of the communicator; member returns the position of each in the whole.
func (s *Schedule) stage(member func(position int32) int32, plan func()) {
	begin, outer, mark := len(s.Steps), s.entry, len(s.entries)
	for i := range s.Steps {
		if !s.Steps[i].Awaited {
			s.entries = append(s.entries, int32(i))
		}
	}
	s.entry = s.entries[mark:]
	plan()
	s.entry, s.entries = outer, s.entries[:mark]
	for i := begin; i < len(s.Steps); i++ {
		s.Steps[i].Peer = member(s.Steps[i].Peer)
	}
}

// exchange is a series of rounds in each of which the member sends one message and receives another at the same time,
// as MPI_Sendrecv does: both messages of a round wait for both of the round before.
type exchange struct {
	schedule   *Schedule
	sent, rcvd int32
}

// newExchange returns the exchange whose first round waits for the step after.
func newExchange(s *Schedule, after int32) exchange {
	return exchange{schedule: s, sent: None, rcvd: after}
}

func (x *exchange) round(to int, out span, from int, in span) {
	x.do(to, out, from, in, keep)
}

// reduce is a round after which the member reduces its own data with what it received.
func (x *exchange) reduce(to int, out span, from int, in span) {
	x.do(to, out, from, in, reduce)
}

func (x *exchange) do(to int, out span, from int, in span, how arriving) {
	after := [2]int32{x.sent, x.rcvd}
	sent := x.schedule.add(dag.Send, to, out, keep, after[:])
	x.rcvd = x.schedule.add(dag.Recv, from, in, how, after[:])
	x.sent = sent
}
