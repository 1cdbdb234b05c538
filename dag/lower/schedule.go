package lower

import "github.com/tracedag/tracedag/dag"

// None stands for no step where an algorithm names the step that another one waits for.
const None int32 = -1

// Schedule is what one member does in one collective: its messages, each after the steps that it waits for. Peers are
// positions in the communicator. A schedule keeps its memory from one use to the next.
type Schedule struct {
	Steps []Step
	after []int32
}

// Step is one message of a schedule, a [dag.Send] or a [dag.Recv].
type Step struct {
	Kind    dag.Kind
	Awaited bool  // whether a later step waits for this one; the others are the schedule's last steps
	Peer    int32 // position of the partner
	Bytes   int64
	end     uint32 // where the step's list ends in Schedule.after
}

// Reset empties the schedule.
func (s *Schedule) Reset() {
	s.Steps, s.after = s.Steps[:0], s.after[:0]
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
	return s.add(dag.Send, to, bytes, after)
}

// Recv appends a receive from position from, like Send.
func (s *Schedule) Recv(from int, bytes int64, after ...int32) int32 {
	return s.add(dag.Recv, from, bytes, after)
}

func (s *Schedule) add(kind dag.Kind, peer int, bytes int64, after []int32) int32 {
	for _, a := range after {
		if a != None {
			s.after = append(s.after, a)
			s.Steps[a].Awaited = true
		}
	}
	s.Steps = append(s.Steps, Step{Kind: kind, Peer: int32(peer), Bytes: bytes, end: uint32(len(s.after))})
	return s.last()
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

func (x *exchange) round(to int, sendBytes int64, from int, recvBytes int64) {
	sent := x.schedule.Send(to, sendBytes, x.sent, x.rcvd)
	x.rcvd = x.schedule.Recv(from, recvBytes, x.sent, x.rcvd)
	x.sent = sent
}
