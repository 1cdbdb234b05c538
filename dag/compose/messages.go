package compose

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/tracedag/tracedag/dag"
	"github.com/tracedag/tracedag/internal/par"
)

// place is the rank and the index of an op.
type place struct{ rank, op int32 }

// Messages calls found with the rank and the index of every send, and with those of the receive of its message. Among
// messages of equal source, tag and communicator, the k-th receive matches the k-th send, in the order of the ops. It
// skips unmatched ops. It returns an error for receives from any source or of any tag, and for the end of ctx.
func Messages(ctx context.Context, t *dag.Trace, found func(from, send, to, recv int)) error {
	return matchMessages(ctx, t, func(send, recv place) {
		found(int(send.rank), int(send.op), int(recv.rank), int(recv.op))
	})
}

// matchMessages calls found with every send and the receive of its message. Among messages of equal source, tag and
// communicator, the k-th receive matches the k-th send, in the order of the ops. It skips unmatched ops. It returns
// an error for receives from any source or of any tag.
func matchMessages(ctx context.Context, t *dag.Trace, found func(send, recv place)) error {
	start := make([]int, len(t.Ranks)+1) // start of the sends to each rank
	for rank := range t.Ranks {
		if err := par.Interrupted(ctx); err != nil {
			return err
		}
		r := t.Ranks[rank]
		for i, kind := range r.Kind {
			if kind != dag.Send && kind != dag.Recv {
				continue
			}
			peer := r.Peer.At(i)
			if kind == dag.Recv && (peer == dag.AnySource || r.Tag.At(i) == dag.AnyTag) {
				return fmt.Errorf("rank %d: op %d: receive from any source or any tag matches an unknown message", rank,
					i)
			}
			if peer < 0 || int(peer) >= len(t.Ranks) {
				return fmt.Errorf("rank %d: op %d: %v with rank %d, expected 0..%d", rank, i, kind, peer,
					len(t.Ranks)-1)
			}
			if kind == dag.Send {
				start[peer+1]++
			}
		}
	}
	for rank := range t.Ranks {
		start[rank+1] += start[rank]
	}
	sends := make([]place, start[len(t.Ranks)])
	next := slices.Clone(start)
	for rank := range t.Ranks {
		if err := par.Interrupted(ctx); err != nil {
			return err
		}
		r := t.Ranks[rank]
		for i, kind := range r.Kind {
			if kind == dag.Send {
				peer := r.Peer.At(i)
				sends[next[peer]] = place{int32(rank), int32(i)}
				next[peer]++
			}
		}
	}
	var m matching
	for rank := range t.Ranks {
		if err := par.Interrupted(ctx); err != nil {
			return err
		}
		m.match(t, int32(rank), sends[start[rank]:start[rank+1]], found)
	}
	return nil
}

// message is a send to, or a receive of, the current rank.
type message struct {
	from, comm int32
	tag        int64
	op         int32
}

// matching is the messages of a rank. It reuses its memory for the next rank.
type matching struct {
	sent, received []message
}

func (m *matching) match(t *dag.Trace, rank int32, sends []place, found func(send, recv place)) {
	m.sent, m.received = m.sent[:0], m.received[:0]
	for _, p := range sends {
		r := t.Ranks[p.rank]
		m.sent = append(m.sent, message{p.rank, r.Comm.At(int(p.op)), r.Tag.At(int(p.op)), p.op})
	}
	r := t.Ranks[rank]
	for i, kind := range r.Kind {
		if kind == dag.Recv {
			m.received = append(m.received, message{r.Peer.At(i), r.Comm.At(i), r.Tag.At(i), int32(i)})
		}
	}
	slices.SortFunc(m.sent, compareMessages)
	slices.SortFunc(m.received, compareMessages)
	sent, received := m.sent, m.received
	for len(sent) > 0 && len(received) > 0 {
		switch c := compareChannels(&sent[0], &received[0]); {
		case c < 0:
			sent = sent[1:]
		case c > 0:
			received = received[1:]
		default:
			found(place{sent[0].from, sent[0].op}, place{rank, received[0].op})
			sent, received = sent[1:], received[1:]
		}
	}
}

func compareChannels(a, b *message) int {
	if a.from != b.from {
		return cmp.Compare(a.from, b.from)
	}
	if a.comm != b.comm {
		return cmp.Compare(a.comm, b.comm)
	}
	return cmp.Compare(a.tag, b.tag)
}

func compareMessages(a, b message) int {
	if c := compareChannels(&a, &b); c != 0 {
		return c
	}
	return cmp.Compare(a.op, b.op)
}
