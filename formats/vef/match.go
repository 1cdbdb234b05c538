// This file finds out which ops of different ranks belong together: sends and receives, and the parts in a collective.

package vef

import (
	"fmt"

	"github.com/tracedag/tracedag/dag"
)

// findInstances collects the collectives: the k-th collective op of each member of a communicator, in the order of
// their indices, is its part in instance k of that communicator. The members must agree on what it is.
func (p *plan) findInstances() error {
	if err := p.countInstances(); err != nil || p.participations == 0 {
		return err
	}
	p.member = make([]int32, p.participations)
	p.instance = make([]int32, p.first[len(p.t.Ranks)])
	for rank := range p.t.Ranks {
		if err := p.addParts(rank); err != nil {
			return fmt.Errorf("rank %d: %w", rank, err)
		}
	}
	return nil
}

// countInstances makes the communicators that collectives run on, and as many instances as each must have.
func (p *plan) countInstances() error {
	t := p.t
	counts := make([]int64, len(t.Comms)) // of ops
	for rank := range t.Ranks {
		r := &t.Ranks[rank]
		for op, subkind := range r.Subkind {
			if subkind == dag.NoSubkind || r.Kind[op] != dag.Coll {
				continue
			}
			comm := r.Comm.At(op)
			if comm < 0 || int(comm) >= len(t.Comms) {
				return fmt.Errorf("rank %d op %d: communicator %d, expected one of the trace's %d", rank, op, comm,
					len(t.Comms))
			}
			counts[comm]++
			p.participations++
		}
	}
	p.groups, p.firstInstance = make([]comm, len(t.Comms)), make([]int, len(t.Comms)+1)
	members := int64(0)
	for i, ops := range counts {
		if ops > 0 {
			if err := t.Comms[i].Check(len(t.Ranks)); err != nil {
				return fmt.Errorf("communicator %d: %w", i, err)
			}
			size := int64(t.Comms[i].Size())
			if ops%size != 0 {
				return fmt.Errorf("communicator %d of %d ranks has %d collective ops, expected as many on each rank",
					i, size, ops)
			}
			p.groups[i], _, _ = newComm(t.Comms[i].Members())
			for range ops / size {
				p.instances = append(p.instances, collectiveInstance{comm: int32(i), members: members})
				members += size
			}
		}
		p.firstInstance[i+1] = len(p.instances)
	}
	return nil
}

// addParts enters the collective ops of a rank in their instances.
func (p *plan) addParts(rank int) error {
	r := &p.t.Ranks[rank]
	if len(r.Subkind) == 0 {
		return nil
	}
	type part struct{ position, next int32 }
	parts := map[int32]*part{}
	latest, pt := int32(-1), (*part)(nil) // the latest communicator, which most often comes again
	for op, kind := range r.Kind {
		if kind != dag.Coll {
			continue
		}
		if i := r.Comm.At(op); i != latest {
			if latest, pt = i, parts[i]; pt == nil {
				pt = &part{position: p.groups[i].position(int32(rank))}
				if pt.position < 0 {
					return fmt.Errorf("op %d is a collective of communicator %d, of which the rank is no member", op, i)
				}
				parts[i] = pt
			}
		}
		k := p.firstInstance[latest] + int(pt.next)
		if k >= p.firstInstance[latest+1] {
			return fmt.Errorf("op %d is one collective of communicator %d more than other members have", op, latest)
		}
		pt.next++
		g := &p.instances[k]
		if err := p.addPart(g, r, op); err != nil {
			return err
		}
		p.member[g.members+int64(pt.position)] = int32(op)
		p.instance[p.first[rank]+op] = int32(k)
	}
	return nil
}

// addPart enters a collective op in its instance.
func (p *plan) addPart(g *collectiveInstance, r *dag.Rank, i int) error {
	op, root := uint8(vefOp(r.Subkind.At(i))), int32(0)
	if rooted(op) {
		if root = r.Peer.At(i); root == dag.UnknownRoot {
			root = p.groups[g.comm].tasks[0]
		}
		if p.groups[g.comm].position(root) < 0 {
			return fmt.Errorf("op %d (%v) has root %d, which is no member of communicator %d", i, r.Subkind.At(i),
				root, g.comm)
		}
	}
	if g.parts == 0 {
		g.op, g.root = op, root
	}
	if g.op != op || g.root != root {
		return fmt.Errorf("op %d (%v of root %d) is a %s of root %d at other members of communicator %d", i,
			r.Subkind.At(i), root, opNames[g.op], g.root, g.comm)
	}
	g.parts++
	g.sum += r.Bytes.At(i)
	return nil
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
	if p.matched = sends == 0 && recvs == 0; p.matched || sends != recvs {
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
			if send < 0 || send >= from.Len() || from.Peer.At(send) != int32(rank) ||
				from.Comm.At(send) != r.Comm.At(op) {
				return
			}
		}
	}
	p.sendOf, p.matched = sendOf, true
}
