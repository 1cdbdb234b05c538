package collective

import "github.com/tracedag/tracedag/dag"

// noStep, in place of the number of a step, is no dependency.
const noStep int32 = -1

// lanes is the number of message lanes of a schedule.
const lanes = 2

// Schedule is the part of one member in one collective: its messages and their dependencies. Peers are positions in
// the communicator. A schedule reuses its memory after [Schedule.Reset].
type Schedule struct {
	Steps    []Step
	after    []int32 // dependencies of all steps
	lane     uint8   // lane of the next steps
	reducing bool    // reductions are steps
	err      error   // first error of an algorithm or its phases

	stageDeps  []int32   // dependencies of steps without others: the last steps before the current stage
	stageStack []int32   // stageDeps of the current stage and of those around it
	children   []int32   // memory of treeNode.children
	hierarchy  hierarchy // memory of setHierarchy
	contents   *contents // nil except in tests
}

// Step is one message of a schedule, a [dag.Send] or a [dag.Recv]. If the lowering gives reductions a time, a
// [dag.Calc] behind a receive is the reduction of its data; Bytes is then the number of bytes reduced. A Calc of 0
// bytes waits for a receive.
type Step struct {
	Kind    dag.Kind
	Awaited bool // a later step waits for this one; the others are the last steps of the schedule
	// the member may go on after the start of the message; matters only to protocols with other costs of such messages
	NonBlocking bool
	Follows     bool   // the start of the step before precedes this one
	Lane        uint8  // 0..lanes-1; messages of different lanes never match
	Peer        int32  // position of the partner
	Bytes       int64  // message size
	end         uint32 // end of the step's dependencies in Schedule.after
}

// span is a range of bytes of the data of a collective, which wraps around after the last byte. The data is the vector,
// or the members' blocks in order, or for an all-to-all the contribution of member 0, then that of member 1, ...
type span struct{ from, bytes int64 }

// contents records the data of each message and its use by the receiver. Tests attach it to a schedule to prove that
// every member gets the result that MPI defines.
type contents struct {
	spans  []span
	held   [][]span // data of each step, in spans
	onRecv []onRecv // of each step; overwrite for sends
	// by send whose message has not the member's present data: the receive of the data, or ownData
	relayed map[int32]int32
}

// ownData, in place of a receive, is the data with which a member enters the collective.
const ownData int32 = -1

// onRecv is the use of received data.
type onRecv uint8

const (
	overwrite    onRecv = iota // replace the member's own data
	reduce                     // reduce into the member's own data
	reducePrefix               // reduce into the member's own data and into its result of a scan
)

// Reset removes all steps.
func (s *Schedule) Reset() {
	s.Steps, s.after, s.lane, s.err = s.Steps[:0], s.after[:0], 0, nil
	if s.contents != nil {
		c := s.contents
		c.spans, c.held, c.onRecv = c.spans[:0], c.held[:0], c.onRecv[:0]
		clear(c.relayed)
	}
}

// After returns the steps that step i waits for. The slice is empty for the first steps of the schedule.
func (s *Schedule) After(i int) []int32 {
	start := uint32(0)
	if i > 0 {
		start = s.Steps[i-1].end
	}
	return s.after[start:s.Steps[i].end]
}

// last returns the number of the last step, noStep if there is none.
func (s *Schedule) last() int32 {
	return int32(len(s.Steps) - 1)
}

// ends returns the number of steps without dependencies (entries) and of steps without dependents (exits).
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

// Send appends a send to position to, which waits for the steps after, and returns its number.
func (s *Schedule) Send(to int, bytes int64, after ...int32) int32 {
	return s.add(dag.Send, to, span{0, bytes}, overwrite, after)
}

// post appends a non-blocking send of the data x.
func (s *Schedule) post(to int, x span, after ...int32) int32 {
	i := s.add(dag.Send, to, x, overwrite, after)
	s.Steps[i].NonBlocking = true
	return i
}

// expect appends a non-blocking receive of the data x, which replaces the member's own.
func (s *Schedule) expect(from int, x span, after ...int32) int32 {
	i := s.add(dag.Recv, from, x, overwrite, after)
	s.Steps[i].NonBlocking = true
	return i
}

// await appends a step for the wait for a non-blocking receive, after another step.
func (s *Schedule) await(received, after int32) int32 {
	return s.add(dag.Calc, 0, span{}, overwrite, []int32{received, after})
}

// wait is await for a receive whose data is reduced, after another step; if follows, it
// begins after the start of the step before. It returns the last step: the reduction, if that is a step.
func (s *Schedule) wait(received, after int32, follows bool) int32 {
	i := s.await(received, after)
	if follows {
		s.follow(i)
	}
	bytes := s.Steps[received].Bytes
	if !s.reducing || bytes == 0 {
		return i
	}
	i = s.add(dag.Calc, 0, span{}, overwrite, []int32{i})
	s.Steps[i].Bytes = bytes
	return i
}

// follow makes a step begin after the start of the step before.
func (s *Schedule) follow(step int32) {
	s.Steps[step].Follows = true
}

// Recv appends a receive from position from, which waits for the steps after, and returns its number.
func (s *Schedule) Recv(from int, bytes int64, after ...int32) int32 {
	return s.add(dag.Recv, from, span{0, bytes}, overwrite, after)
}

// send appends a send of the data x. It ignores noStep among the steps after.
func (s *Schedule) send(to int, x span, after ...int32) int32 {
	return s.add(dag.Send, to, x, overwrite, after)
}

// recv appends a receive of the data x, which replaces the member's own.
func (s *Schedule) recv(from int, x span, after ...int32) int32 {
	return s.add(dag.Recv, from, x, overwrite, after)
}

// combine appends a receive of the data x, which the member reduces into its own.
func (s *Schedule) combine(from int, x span, after ...int32) int32 {
	return s.reduced(s.add(dag.Recv, from, x, reduce, after), 1)
}

// absorb appends a non-blocking receive of the data x, which the member reduces into its own, and returns the number of
// the receive.
func (s *Schedule) absorb(from int, x span, after ...int32) int32 {
	received := int32(len(s.Steps))
	s.combine(from, x, after...)
	s.Steps[received].NonBlocking = true
	return received
}

// combinePrefix appends a receive of the data x, which enters the member's result of a scan by the given number of
// reductions.
func (s *Schedule) combinePrefix(from int, x span, reductions int, after ...int32) int32 {
	return s.reduced(s.add(dag.Recv, from, x, reducePrefix, after), reductions)
}

// reduced appends the reductions of received data, which wait for the steps after, too. It returns the last step: the
// receive itself if reductions are no steps or there is nothing to reduce.
func (s *Schedule) reduced(received int32, reductions int, after ...int32) int32 {
	bytes := s.Steps[received].Bytes
	if !s.reducing || bytes == 0 || reductions == 0 {
		return received
	}
	waits := [2]int32{received, noStep}
	i := s.add(dag.Calc, 0, span{}, overwrite, append(waits[:1], after...))
	s.Steps[i].Bytes = bytes * int64(reductions) // bytes is at most MaxInt64 / Members
	return i
}

func (s *Schedule) add(kind dag.Kind, peer int, x span, action onRecv, after []int32) int32 {
	free := true
	for _, a := range after {
		if a != noStep {
			s.after = append(s.after, a)
			s.Steps[a].Awaited = true
			free = false
		}
	}
	if free && len(s.stageDeps) > 0 {
		s.after = append(s.after, s.stageDeps...)
		for _, a := range s.stageDeps {
			s.Steps[a].Awaited = true
		}
	}
	s.Steps = append(s.Steps, Step{
		Kind: kind, Lane: s.lane, Peer: int32(peer), Bytes: x.bytes, end: uint32(len(s.after)),
	})
	if s.contents != nil {
		c := s.contents
		c.spans = append(c.spans, x)
		c.held, c.onRecv = append(c.held, c.spans[len(c.spans)-1:]), append(c.onRecv, action)
	}
	return s.last()
}

// setContents records the data of a message that is not one span.
func (s *Schedule) setContents(step int32, each func(add func(span))) {
	if s.contents != nil {
		c, begin := s.contents, len(s.contents.spans)
		each(func(x span) { c.spans = append(c.spans, x) })
		c.held[step] = c.spans[begin:]
	}
}

// setRelayed records that the message of a step is the data of a receive as it arrived, or ownData. received may be the
// reduction of that data.
func (s *Schedule) setRelayed(step, received int32) {
	if s.contents != nil {
		if received != ownData && s.Steps[received].Kind == dag.Calc {
			received--
		}
		if s.contents.relayed == nil {
			s.contents.relayed = map[int32]int32{}
		}
		s.contents.relayed[step] = received
	}
}

// stage appends the steps that plan appends, as a stage that begins when all steps before it have completed. The peers
// that plan gives are positions in a subset of the communicator; member maps them to positions in the communicator.
func (s *Schedule) stage(member func(position int32) int32, plan func()) {
	begin, outer, mark := len(s.Steps), s.stageDeps, len(s.stageStack)
	for i := range s.Steps {
		if !s.Steps[i].Awaited {
			s.stageStack = append(s.stageStack, int32(i))
		}
	}
	s.stageDeps = s.stageStack[mark:]
	plan()
	s.stageDeps, s.stageStack = outer, s.stageStack[:mark]
	for i := begin; i < len(s.Steps); i++ {
		s.Steps[i].Peer = member(s.Steps[i].Peer)
	}
}

// exchange is a sequence of rounds. In each round the member sends one message and receives another concurrently, as
// MPI_Sendrecv does; both messages wait for both messages of the previous round.
type exchange struct {
	schedule   *Schedule
	sent, rcvd int32 // last step of each direction
	// sends are blocking and begin behind the start of the receive of their round
	blocking bool
}

// newExchange returns an exchange whose first round waits for the step after.
func newExchange(s *Schedule, after int32) exchange {
	return exchange{schedule: s, sent: noStep, rcvd: after}
}

// round appends a round whose received data replaces the member's own.
func (x *exchange) round(to int, out span, from int, in span) {
	x.sendrecv(to, out, from, in, overwrite, 0)
}

// reduce appends a round whose received data is reduced into the member's own.
func (x *exchange) reduce(to int, out span, from int, in span) {
	x.sendrecv(to, out, from, in, reduce, 1)
}

// sendrecv appends a round whose received data is used by the given number of reductions, which begin when both
// messages of the round have completed.
func (x *exchange) sendrecv(to int, out span, from int, in span, action onRecv, reductions int) {
	s, after := x.schedule, [2]int32{x.sent, x.rcvd}
	if x.blocking {
		begun := s.await(x.rcvd, noStep) // a send and a receive after the same step would be those of MPI_Sendrecv
		posted := s.add(dag.Recv, from, in, action, []int32{x.rcvd})
		sent := s.send(to, out, begun)
		s.follow(sent)
		x.sent, x.rcvd = noStep, s.wait(posted, sent, false)
		return
	}
	x.sent = s.add(dag.Send, to, out, overwrite, after[:])
	x.rcvd = s.reduced(s.add(dag.Recv, from, in, action, after[:]), reductions, x.sent)
}
