package sim

import (
	"cmp"
	"fmt"
	"math"
	"math/bits"
	"strings"

	"github.com/tracedag/tracedag/dag"
)

// Outcome is the raw outcome of a replay, with the numbers of ops. [Outcome.Result] converts it to a [Result].
type Outcome struct {
	Finish     []uint64 // by rank, in Program.Unit
	Events     int64
	Messages   int64
	Bytes      int64
	Ran        Set        // ops that started; nil: all
	Eager      uint64     // sends of at most this many bytes end without their receive, unless listed in Unended
	Unexpected [][]uint32 // by rank: sends whose messages arrived and matched no receive
	Posted     [][]uint32 // by rank: posted receives that matched no message
	Unended    []uint32   // ops that started and did not end, ascending; those of Unexpected and Posted are optional
	Aborted    string     // reason for an early stop; "" if there was none
}

// Set is a set of ops of a program, by number.
type Set []uint64

// newSet returns an empty set for ops 0 to n-1.
func newSet(n int) Set {
	return make(Set, (n+63)/64)
}

// Add adds op i.
func (s Set) Add(i uint32) {
	s[i/64] |= 1 << (i % 64)
}

// Ran returns the set of ops with the given flag; n is their number. In windows, it returns nil for all ops.
func (p *Program) Ran(n int64, flag uint8) Set {
	if p.windows != nil {
		return p.windows.ran(p, n, flag)
	}
	s := newSet(p.NumOps())
	if n == int64(p.NumOps()) { // the usual case; avoids a scan of all ops
		for i := range s {
			s[i] = math.MaxUint64
		}
		if rest := p.NumOps() % 64; rest != 0 {
			s[len(s)-1] = 1<<rest - 1
		}
		return s
	}
	if p.folded != nil {
		for i := range p.folded.State {
			if p.folded.State[i]&flag != 0 {
				s.Add(uint32(i))
			}
		}
		return s
	}
	for i := range p.Ops {
		if p.Ops[i].Flags&flag != 0 {
			s.Add(uint32(i))
		}
	}
	return s
}

// Count returns the number of ops in the set.
func (s Set) Count() int64 {
	n := 0
	for _, word := range s {
		n += bits.OnesCount64(word)
	}
	return int64(n)
}

// Has reports whether op i is in the set. A nil set has all ops.
func (s Set) Has(i uint32) bool {
	return s == nil || s[i/64]&(1<<(i%64)) != 0
}

// Result returns the result of the program's replay, without the fields set by the backend.
func (o *Outcome) Result(p *Program) *Result {
	r := &Result{
		Ops: int64(p.NumOps()), Events: o.Events, Messages: o.Messages, Bytes: o.Bytes, Aborted: o.Aborted,
		Finish: make([]Clock, len(o.Finish)), Makespan: Clock{Unit: p.Unit},
	}
	for rank, finish := range o.Finish {
		r.Finish[rank] = Clock{finish, p.Unit}
		r.Makespan.Ticks = max(r.Makespan.Ticks, finish)
	}
	if p.SendBytes > math.MaxInt64 { // the replay loop's sum may have wrapped around
		r.SetBytes(o.sentBytes(p))
	}
	if o.Ran != nil {
		r.NeverRun = r.Ops - o.Ran.Count()
	}
	r.Unmatched = o.unmatched(p)
	r.Complete = r.NeverRun == 0 && r.Unmatched == nil && len(o.Unended) == 0 && r.Aborted == ""
	if !r.Complete {
		p.Unfold()
		alone := o.alone(p)
		r.Unended = o.underWay(p, alone)
		r.Stuck = o.stuck(p, alone)
	}
	return r
}

// sentBytes returns the exact bytes of the sends that ran: high * 2^64 + low.
func (o *Outcome) sentBytes(p *Program) (high, low uint64) {
	p.EachOp(func(op *Op, index uint32) {
		if op.Flags&IsColl == IsSend && o.Ran.Has(p.Start[op.Rank]+index) {
			var carry uint64
			low, carry = bits.Add64(low, op.Size, 0)
			high += carry
		}
	})
	return high, low
}

// alone returns the sends and receives without a partner.
func (o *Outcome) alone(p *Program) Set {
	alone := newSet(p.NumOps())
	for _, lists := range [][][]uint32{o.Posted, o.Unexpected} {
		for _, list := range lists {
			for _, i := range list {
				alone.Add(i)
			}
		}
	}
	return alone
}

// underWay returns the number of sends and receives that have a partner and did not end.
func (o *Outcome) underWay(p *Program, alone Set) int64 {
	n := int64(0)
	for _, i := range o.Unended {
		if p.op(i).IsMessage() && !alone.Has(i) {
			n++
		}
	}
	return n
}

// unmatched lists the messages and receives without a partner; nil if there are none.
func (o *Outcome) unmatched(p *Program) *Unmatched {
	l := &Unmatched{Unexpected: map[int][][2]int64{}, Receive: map[int][][2]int64{}}
	for rank, sends := range o.Unexpected {
		for _, i := range sends {
			op := p.op(i)
			l.Unexpected[rank] = append(l.Unexpected[rank], [2]int64{int64(op.Rank), p.Tag(op)})
		}
	}
	for rank, recvs := range o.Posted {
		for _, i := range recvs {
			op := p.op(i)
			l.Receive[rank] = append(l.Receive[rank], [2]int64{int64(op.Peer), p.Tag(op)})
		}
	}
	if len(l.Unexpected)+len(l.Receive) == 0 {
		return nil
	}
	return l
}

// stuck lists the first MaxStuck incomplete ops, the likely causes first: ops without a partner; then ops whose message
// the network did not deliver, and the first op of each collective that lacks ranks; then ops that never ran. Each part
// is ordered by rank and op.
func (o *Outcome) stuck(p *Program, alone Set) []Stuck {
	var stuck []Stuck
	add := func(i uint32, waits string) {
		op := p.op(i)
		stuck = append(stuck, Stuck{Rank: int(op.Rank), Op: int(i - p.Start[op.Rank]), Kind: op.Kind().String(),
			Waits: waits})
	}
	unended := newSet(p.NumOps()) // started, but did not end
	for i := range uint32(p.NumOps()) {
		if !alone.Has(i) {
			continue
		}
		op := p.op(i)
		if op.Flags&IsRecv != 0 || op.Size > o.Eager {
			unended.Add(i)
		}
		if len(stuck) < MaxStuck {
			if op.Flags&IsRecv != 0 {
				add(i, fmt.Sprintf("a message from %s, %s", OrAny("rank", int64(op.Peer)), OrAny("tag", p.Tag(op))))
			} else {
				add(i, fmt.Sprintf("a receive on rank %d, %s", op.Peer, OrAny("tag", p.Tag(op))))
			}
		}
	}
	listed := make(map[uint32]bool) // instances
	for _, i := range o.Unended {
		unended.Add(i)
		op := p.op(i)
		switch {
		case len(stuck) == MaxStuck || alone.Has(i):
		case op.Flags&IsColl == IsSend:
			add(i, fmt.Sprintf("its message to reach rank %d, %s", op.Peer, OrAny("tag", p.Tag(op))))
		case op.Flags&IsColl == IsRecv:
			add(i, fmt.Sprintf("its message to arrive from rank %d", p.Ops[op.Link()].Rank))
		case !listed[op.Match]:
			listed[op.Match] = true
			add(i, o.absent(p, i))
		}
	}
	for i := uint32(0); i < uint32(p.NumOps()) && len(stuck) < MaxStuck; i++ {
		if !o.Ran.Has(i) {
			add(i, o.waitsFor(p, i, unended))
		}
	}
	return stuck
}

// absent describes the members that the collective op i waits for.
func (o *Outcome) absent(p *Program, i uint32) string {
	first, more := uint32(NoOp), 0
	for k := range uint32(p.NumOps()) {
		if op := &p.Ops[k]; op.Flags&IsColl != IsColl || op.Match != p.Ops[i].Match || o.Ran.Has(k) || !p.awaits(i, k) {
			continue
		}
		if first == NoOp {
			first = k
		} else {
			more++
		}
	}
	if first == NoOp {
		return "its end, which the run did not reach"
	}
	text := fmt.Sprintf("rank %d to come to op %d, its part in the same %s", p.Ops[first].Rank, p.Index(first),
		p.Ops[i].Collective())
	if more > 0 {
		text += fmt.Sprintf(", and %d more", more)
	}
	return text
}

// waitsFor describes the unmet dependencies of an op that never ran. A program stores only dependents, so waitsFor
// searches all ops of the rank.
func (o *Outcome) waitsFor(p *Program, i uint32, unended Set) string {
	var unmet Unmet
	rank := p.op(i).Rank
	for on := p.Start[rank]; on < p.Start[rank+1]; on++ {
		if o.Ran.Has(on) && !unended.Has(on) {
			continue
		}
		for range p.waitsForEnd(i, on) {
			unmet.Add("end", fmt.Sprintf("op %d", on-p.Start[rank]), p.op(on).Kind())
		}
	}
	for on := p.Start[rank]; on < p.Start[rank+1]; on++ {
		if o.Ran.Has(on) {
			continue
		}
		for range p.waitsForStart(i, on) {
			unmet.Add("start", fmt.Sprintf("op %d", on-p.Start[rank]), p.op(on).Kind())
		}
	}
	return cmp.Or(unmet.String(), "its turn, which the run did not reach")
}

// Unmet formats the unmet dependencies of an op for [Stuck].Waits: the first few, and the number of the others.
type Unmet struct {
	first []string
	more  int
}

// Add adds the missing start or end (event) of an op.
func (u *Unmet) Add(event, op string, kind dag.Kind) {
	const most = 3
	if len(u.first) == most {
		u.more++
		return
	}
	u.first = append(u.first, fmt.Sprintf("the %s of %s (%s)", event, op, kind))
}

// String returns the text; "" if nothing was added.
func (u *Unmet) String() string {
	s := strings.Join(u.first, ", ")
	if u.more > 0 {
		s += fmt.Sprintf(" and %d more", u.more)
	}
	return s
}

// OrAny returns text such as "rank 5", or "any rank" for the wildcard.
func OrAny(noun string, n int64) string {
	if n == dag.AnySource {
		return "any " + noun
	}
	return fmt.Sprintf("%s %d", noun, n)
}
