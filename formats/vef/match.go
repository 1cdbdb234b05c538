// This file finds out which ops of different ranks belong together: sends and receives, and the parts in a collective.

package vef

import (
	"fmt"

	"github.com/tracedag/tracedag/dag"
)

// findInstances collects the collectives: the k-th collective op of each member of a communicator, in the order of their
// indices, is its part in instance k of that communicator.
func (p *plan) findInstances() error {
	t := p.t
	counts := make([]int, len(t.Comms)) // instances of each communicator
	known := make([]bool, len(t.Comms))
	type part struct{ comm, k, position, next int32 }
	eachPart := func(do func(rank, op int, pt *part) error) error {
		for rank := range t.Ranks {
			r := &t.Ranks[rank]
			if len(r.Subkind) == 0 {
				continue
			}
			parts := map[int32]*part{}
			var all []*part
			var pt *part
			for op, kind := range r.Kind {
				if kind != dag.Coll {
					continue
				}
				comm := r.Comm.At(op)
				if pt == nil || pt.comm != comm {
					if pt = parts[comm]; pt == nil {
						pt = &part{comm: comm}
						parts[comm] = pt
						all = append(all, pt)
						if comm < 0 || int(comm) >= len(t.Comms) {
							return fmt.Errorf("rank %d op %d: communicator %d, expected one of the trace's %d", rank, op, comm,
								len(t.Comms))
						}
						if pt.position = position(&t.Comms[comm], int32(rank)); pt.position < 0 {
							return fmt.Errorf("rank %d op %d: the rank is no member of communicator %d", rank, op, comm)
						}
					}
				}
				pt.k, pt.next = pt.next, pt.next+1
				if err := do(rank, op, pt); err != nil {
					return err
				}
			}
			for _, pt := range all {
				if known[pt.comm] && counts[pt.comm] != int(pt.next) {
					return fmt.Errorf("rank %d has %d collectives of communicator %d, other members have %d", rank, pt.next,
						pt.comm, counts[pt.comm])
				}
				counts[pt.comm], known[pt.comm] = int(pt.next), true
			}
		}
		return nil
	}
	if err := eachPart(func(int, int, *part) error { p.participations++; return nil }); err != nil {
		return err
	}
	if p.participations == 0 {
		return nil
	}
	firsts := make([]int, len(t.Comms))
	members := int64(0)
	for comm, n := range counts {
		size := t.Comms[comm].Size()
		firsts[comm] = len(p.instances)
		if int64(n)*int64(size) > p.participations {
			return fmt.Errorf("%d of %d collective ops are missing on communicator %d", int64(n)*int64(size)-p.participations,
				int64(n)*int64(size), comm)
		}
		for range n {
			p.instances = append(p.instances, collective{comm: int32(comm), members: members})
			members += int64(size)
		}
	}
	if members != p.participations {
		return fmt.Errorf("the members of the communicators have %d collective ops, expected %d", p.participations, members)
	}
	p.member = make([]int32, members)
	p.instance = make([]int32, p.first[len(t.Ranks)])
	return eachPart(func(rank, op int, pt *part) error {
		k := firsts[pt.comm] + int(pt.k)
		g := &p.instances[k]
		kind := t.Ranks[rank].Subkind.At(op)
		p.member[g.members+int64(pt.position)] = int32(op)
		p.instance[p.first[rank]+op] = int32(k)
		if o := uint8(vefOp(kind)); pt.position == 0 {
			g.op = o
		}
		return nil
	})
}

// position returns the rank's place in a communicator, -1 if it is no member.
func position(c *dag.Comm, rank int32) int32 {
	before := int32(0)
	for _, r := range c.Ranges {
		switch distance, stride := int64(rank)-int64(r.First), int64(r.Stride); {
		case distance == 0:
			return before
		case stride != 0 && distance%stride == 0 && distance/stride > 0 && distance/stride < int64(r.Count):
			return before + int32(distance/stride)
		}
		before += r.Count
	}
	return -1
}

// matchByTag matches sends with receives where each message has a tag of its own, and those are small numbers, as in a
// trace that was read from VEF. It counts the messages.
func (p *plan) matchByTag() {
	sends, recvs := int64(0), int64(0)
	for rank := range p.t.Ranks {
		r := &p.t.Ranks[rank]
		for op, kind := range r.Kind {
			switch kind {
			case dag.Send:
				sends++
			case dag.Recv:
				recvs++
			case dag.Calc:
				if r.Attrs.Len() > 0 && selfPart(r, op) == selfSendAttrs {
					p.messages++
				}
			}
		}
	}
	p.messages += sends
	limit := 4*p.messages + 1024
	if sends != recvs {
		return
	}
	sendOf := make([]uint32, limit) // one more than the number of the send
	for rank := range p.t.Ranks {
		r := &p.t.Ranks[rank]
		for op, kind := range r.Kind {
			if kind != dag.Send {
				continue
			}
			tag := r.Tag.At(op)
			if uint64(tag) >= uint64(limit) || sendOf[tag] != 0 {
				return
			}
			sendOf[tag] = uint32(p.first[rank]+op) + 1
		}
	}
	met := make([]bool, limit)
	for rank := range p.t.Ranks {
		r := &p.t.Ranks[rank]
		for op, kind := range r.Kind {
			if kind != dag.Recv {
				continue
			}
			tag, peer := r.Tag.At(op), r.Peer.At(op)
			if uint64(tag) >= uint64(limit) || sendOf[tag] == 0 || met[tag] || uint32(peer) >= uint32(len(p.t.Ranks)) {
				return
			}
			met[tag] = true
			send := int(sendOf[tag]-1) - p.first[peer]
			from := &p.t.Ranks[peer]
			if send < 0 || send >= from.Len() || from.Peer.At(send) != int32(rank) || from.Comm.At(send) != r.Comm.At(op) {
				return
			}
		}
	}
	p.sendOf = sendOf
}
