package collective

import (
	"strings"
	"testing"

	"github.com/tracedag/tracedag/dag"
)

// TestDataFlowFindsMistakes checks that the data-flow check rejects wrong algorithms.
func TestDataFlowFindsMistakes(t *testing.T) {
	neighbours := func(c *Participant) (right, left int) {
		return (c.Me + 1) % c.Members, (c.Me - 1 + c.Members) % c.Members
	}
	tests := []struct {
		mistake string
		kind    dag.Subkind
		plan    func(c *Participant, s *Schedule)
		want    string
	}{
		{"nothing is sent", dag.Barrier, func(*Participant, *Schedule) {}, "member 0 depends on"},
		{"one round is missing", dag.Allgather, func(c *Participant, s *Schedule) {
			right, left := neighbours(c)
			x := newExchange(s, noStep)
			for k := range c.Members - 2 {
				x.round(right, c.block((c.Me-k+c.Members)%c.Members), left, c.block((left-k+c.Members)%c.Members))
			}
		}, "member 0 depends on"},
		{"data is sent on before it is there", dag.Bcast, func(c *Participant, s *Schedule) {
			if c.Me > 0 {
				s.recv(c.Me-1, c.whole())
			}
			if c.Me < c.Members-1 {
				s.send(c.Me+1, c.whole())
			}
		}, "member 1 sends to member 2: it has no byte 0"},
		{"contributions come twice", dag.Allreduce, func(c *Participant, s *Schedule) {
			barrierDissemination(c, s)
		}, "is reduced twice"},
		{"a partial result is passed round", dag.Allreduce, func(c *Participant, s *Schedule) {
			right, left := neighbours(c)
			x := newExchange(s, noStep)
			for range c.Members - 1 {
				x.reduce(right, c.whole(), left, c.whole())
			}
		}, "is reduced twice"},
		{"own data is lost", dag.Reduce, func(c *Participant, s *Schedule) {
			if c.Me == 0 {
				for i := 1; i < c.Members; i++ {
					s.recv(i, c.whole())
				}
			} else {
				s.send(0, c.whole())
			}
		}, "in any order"},
		{"the last receive wins", dag.Reduce, func(c *Participant, s *Schedule) {
			if c.Me == 0 {
				last := noStep
				for i := 1; i < c.Members; i++ {
					last = s.recv(i, c.whole(), last)
				}
			} else {
				s.send(0, c.whole())
			}
		}, "member 0 has of byte 0 the contributions of"},
		{"sizes differ", dag.Bcast, func(c *Participant, s *Schedule) {
			if c.Me == 0 {
				for i := 1; i < c.Members; i++ {
					s.send(i, c.whole())
				}
			} else {
				s.recv(0, span{0, c.Bytes - 1})
			}
		}, "member 0 sends 7 bytes to member 1, which receives 6"},
		{"other bytes are expected", dag.Bcast, func(c *Participant, s *Schedule) {
			if c.Me == 0 {
				for i := 1; i < c.Members; i++ {
					s.send(i, c.parts(7, 0, 3))
					s.send(i, c.parts(7, 3, 7), s.last())
				}
			} else {
				s.recv(0, c.parts(7, 4, 7))
				s.recv(0, c.parts(7, 0, 4), s.last())
			}
		}, "member 0 sends [{0 3}] to member 1, which expects [{4 3}]"},
		{"two messages may overtake each other", dag.Bcast, func(c *Participant, s *Schedule) {
			if c.Me == 0 {
				for i := 1; i < c.Members; i++ {
					s.send(i, c.parts(2, 0, 1))
					s.send(i, c.parts(2, 1, 2))
				}
			} else {
				s.recv(0, c.parts(2, 0, 1))
				s.recv(0, c.parts(2, 1, 2), s.last())
			}
		}, "is not certain to come before"},
		{"everyone waits for everyone", dag.Barrier, func(c *Participant, s *Schedule) {
			right, left := neighbours(c)
			s.send(right, c.whole(), s.combine(left, c.whole()))
		}, "of 10 steps never run"},
		{"a message has no receiver", dag.Barrier, func(c *Participant, s *Schedule) {
			right, _ := neighbours(c)
			s.send(right, c.whole())
		}, "sends 1 messages to member 1, which receives 0"},
		{"a size is not that of the blocks", dag.Alltoall, func(c *Participant, s *Schedule) {
			x := newExchange(s, noStep)
			right, left := neighbours(c)
			x.round(right, c.share(c.Me, right), left, c.share(left, c.Me))
			s.setContents(x.sent, func(add func(span)) { add(c.share(c.Me, right)); add(c.share(c.Me, left)) })
		}, "bytes and holds"},
	}
	for _, test := range tests {
		u := selection{algorithm: &algorithm{kind: test.kind, plan: test.plan}}
		var f flow
		err := f.check(&u, Participant{Kind: test.kind, Members: 5, Bytes: 7})
		if err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: error %v, expected %s", test.mistake, err, test.want)
		}
	}
}
