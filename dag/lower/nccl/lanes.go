package nccl

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/tracedag/tracedag/dag"
	"github.com/tracedag/tracedag/internal/par"
)

// lane is the sends and receives from one rank to another on one communicator. They match in ascending order of tags,
// and of op indices for equal tags.
type lane struct {
	laneKey
	sends, recvs []half
}

type laneKey struct{ from, to, comm int32 }

// half is one side of a message, or of a call that becomes several messages.
type half struct {
	op    int32
	count int32 // messages
	tag   int64
	bytes int64
}

// addMessage adds a send or a receive to its lane.
func (l *lowering) addMessage(rank int32, r *dag.Rank, i int, c *call, found map[laneKey]*lane) error {
	peer, tag := r.Peer.At(i), r.Tag.At(i)
	recv := r.Kind[i] == dag.Recv
	if recv && (peer == dag.AnySource || tag == dag.AnyTag) {
		return fmt.Errorf("receive from any source or with any tag, expected a known source and tag")
	}
	if peer < 0 || int(peer) >= len(l.ranks) {
		return fmt.Errorf("%v with rank %d, expected 0..%d", r.Kind[i], peer, len(l.ranks)-1)
	}
	key := laneKey{rank, peer, r.Comm.At(i)}
	if recv {
		key.from, key.to = peer, rank
	}
	known := found[key]
	if known == nil {
		known = &lane{laneKey: key}
		found[key] = known
		l.lanes = append(l.lanes, known)
	}
	h := half{op: int32(i), count: 1, tag: tag, bytes: r.Bytes.At(i)}
	if step := c.step(); step > 0 {
		count := (max(h.bytes, 0) + step - 1) / step
		if count > maxMessages {
			return fmt.Errorf("%v of %d bytes in messages of %d bytes, expected at most %d messages",
				r.Kind[i], h.bytes, step,
				maxMessages)
		}
		h.count = int32(count)
	}
	if recv {
		known.recvs = append(known.recvs, h)
	} else {
		known.sends = append(known.sends, h)
	}
	return nil
}

// step returns the bytes of one message of a send or receive; 0 means one message for all bytes.
func (c *call) step() int64 {
	if c.protocol == ll && c.chunk > 0 {
		return c.chunk / 2
	}
	return c.chunk
}

// matchLanes sorts the lanes and returns an error for a send or receive without partner.
func (l *lowering) matchLanes(ctx context.Context) error {
	slices.SortFunc(l.lanes, func(a, b *lane) int {
		return cmp.Or(cmp.Compare(a.from, b.from), cmp.Compare(a.to, b.to), cmp.Compare(a.comm, b.comm))
	})
	for _, lane := range l.lanes {
		if err := par.Interrupted(ctx); err != nil {
			return err
		}
		byTag := func(a, b half) int { return cmp.Compare(a.tag, b.tag) }
		for _, side := range [][]half{lane.sends, lane.recvs} {
			if !slices.IsSortedFunc(side, byTag) {
				slices.SortStableFunc(side, byTag)
			}
		}
		if err := lane.check(); err != nil {
			return fmt.Errorf("from rank %d to rank %d on communicator %d: %w", lane.from, lane.to, lane.comm, err)
		}
	}
	return nil
}

func (l *lane) check() error {
	for i := range max(len(l.sends), len(l.recvs)) {
		switch {
		case i >= len(l.recvs) || i < len(l.sends) && l.sends[i].tag < l.recvs[i].tag:
			return fmt.Errorf("the send with tag %d (op %d) has no receive", l.sends[i].tag, l.sends[i].op)
		case i >= len(l.sends) || l.sends[i].tag > l.recvs[i].tag:
			return fmt.Errorf("the receive with tag %d (op %d) has no send", l.recvs[i].tag, l.recvs[i].op)
		case l.sends[i].count != l.recvs[i].count:
			return fmt.Errorf("the send with tag %d is %d messages (op %d, %d bytes), its receive %d (op %d, %d bytes)",
				l.sends[i].tag,
				l.sends[i].count, l.sends[i].op, l.sends[i].bytes, l.recvs[i].count, l.recvs[i].op, l.recvs[i].bytes)
		}
	}
	return nil
}
