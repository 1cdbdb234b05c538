// This file matches ops of different ranks: sends with receives, and the parts of a collective.

package vef

import (
	"fmt"

	"github.com/tracedag/tracedag/dag"
)

// findInstances collects the collectives: the k-th collective op of each member of a communicator, by index, is
// its part in instance k of that communicator. The members must agree on the kind.
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

// countInstances creates the communicators with collectives, and the number of instances of each.
func (p *plan) countInstances() error {
	t := p.t
	counts := make([]int64, len(t.Comms)) // of ops
	for rank := range t.Ranks {
		r := t.Ranks[rank]
		for op, subkind := range r.Subkind {
			if subkind == dag.NoSubkind || r.Kind[op] != dag.Coll {
				continue
			}
			comm := r.Comm.At(op)
			if comm < 0 || int(comm) >= len(t.Comms) {
				return fmt.Errorf("rank %d, op %d: expected one of the trace's %d communicators, found %d", rank, op,
					len(t.Comms), comm)
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
				return fmt.Errorf("communicator %d of %d ranks: expected equally many collective ops on each rank, "+
					"found %d in total", i, size, ops)
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

// addParts adds the collective ops of a rank to their instances.
func (p *plan) addParts(rank int) error {
	r := p.t.Ranks[rank]
	if len(r.Subkind) == 0 {
		return nil
	}
	type part struct{ position, next int32 }
	parts := map[int32]*part{}
	latest, pt := int32(-1), (*part)(nil) // the latest communicator, which usually repeats
	for op, kind := range r.Kind {
		if kind != dag.Coll {
			continue
		}
		if i := r.Comm.At(op); i != latest {
			if latest, pt = i, parts[i]; pt == nil {
				pt = &part{position: p.groups[i].position(int32(rank))}
				if pt.position < 0 {
					return fmt.Errorf("op %d: expected a collective of a communicator with this rank, "+
						"found communicator %d", op, i)
				}
				parts[i] = pt
			}
		}
		k := p.firstInstance[latest] + int(pt.next)
		if k >= p.firstInstance[latest+1] {
			return fmt.Errorf("op %d: communicator %d has more collectives on this rank than on others", op, latest)
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

// addPart adds a collective op to its instance.
func (p *plan) addPart(g *collectiveInstance, r *dag.Rank, i int) error {
	op, root := uint8(vefOp(r.Subkind.At(i))), int32(0)
	if rooted(op) {
		if root = r.Peer.At(i); root == dag.UnknownRoot {
			root = p.groups[g.comm].tasks[0]
		}
		if p.groups[g.comm].position(root) < 0 {
			return fmt.Errorf("op %d (%v): root %d is no member of communicator %d", i, r.Subkind.At(i),
				root, g.comm)
		}
	}
	if g.parts == 0 {
		g.op, g.root = op, root
	}
	if g.op != op || g.root != root {
		return fmt.Errorf("op %d (%v, root %d): other members of communicator %d have a %s with root %d", i,
			r.Subkind.At(i), root, g.comm, opNames[g.op], g.root)
	}
	g.parts++
	g.sum += r.Bytes.At(i)
	return nil
}

// matchByTag matches sends with receives if each message has a tag of its own and the tags are small numbers, as
// in a trace read from VEF. It counts the messages.
func (p *plan) matchByTag() {
	sends, recvs := int64(0), int64(0)
	for rank := range p.t.Ranks {
		r := p.t.Ranks[rank]
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
		r := p.t.Ranks[rank]
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
		r := p.t.Ranks[rank]
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
			from := p.t.Ranks[peer]
			if send < 0 || send >= from.Len() || from.Peer.At(send) != int32(rank) ||
				from.Comm.At(send) != r.Comm.At(op) {
				return
			}
		}
	}
	p.sendOf, p.matched = sendOf, true
}
