package dag

import (
	"slices"

	"github.com/tracedag/tracedag/internal/par"
)

// participation is the collectives of one rank on one communicator.
type participation struct {
	comm, rank int32
	ops        []int32 // by index
}

// checkCollectives compares the collectives of the members of each communicator.
func (v *validation) checkCollectives() {
	byComm := v.collectParticipations()
	found := make([][]finding, len(byComm))
	par.ForWith(len(found), func() *collectiveCheck { return &collectiveCheck{trace: v.trace} },
		func(c *collectiveCheck, i int) {
			if len(byComm[i]) > 0 && v.comms[i] {
				c.comm, c.findings = int32(i), nil
				c.check(byComm[i])
				found[i] = c.findings
			}
		})
	v.findings = append(v.findings, slices.Concat(found...)...)
}

// collectParticipations lists the participations in each communicator by rank.
func (v *validation) collectParticipations() [][]participation {
	byRank := make([][]participation, len(v.trace.Ranks))
	par.For(len(byRank), func(i int) {
		byRank[i] = v.participations(int32(i))
	})
	byComm := make([][]participation, len(v.trace.Comms))
	for _, participations := range byRank {
		for _, p := range participations {
			byComm[p.comm] = append(byComm[p.comm], p)
		}
	}
	return byComm
}

// participations returns the participations of one rank, by communicator.
func (v *validation) participations(rank int32) []participation {
	r := v.trace.Ranks[rank]
	var ops []int32
	for i, kind := range r.Kind {
		if kind == Coll && inRange(r.Comm.At(i), len(v.trace.Comms)) {
			ops = append(ops, int32(i))
		}
	}
	slices.SortStableFunc(ops, func(x, y int32) int { return int(r.Comm.At(int(x))) - int(r.Comm.At(int(y))) })
	var all []participation
	for len(ops) > 0 {
		comm, n := r.Comm.At(int(ops[0])), 1
		for n < len(ops) && r.Comm.At(int(ops[n])) == comm {
			n++
		}
		all = append(all, participation{comm: comm, rank: rank, ops: ops[:n]})
		ops = ops[n:]
	}
	return all
}

// collectiveCheck checks the collectives of one communicator at a time.
type collectiveCheck struct {
	trace    *Trace
	comm     int32
	members  membership
	findings []finding
}

func (c *collectiveCheck) add(rank int32, op int32, rule rule, a, b int64) {
	c.findings = append(c.findings, finding{rank: rank, op: op, rule: rule, a: a, b: b})
}

// check compares the collectives of the members with each other; all lists the ranks with collectives on the
// communicator.
func (c *collectiveCheck) check(all []participation) {
	comm := &c.trace.Comms[c.comm]
	queries := len(all)
	for _, p := range all {
		queries += len(p.ops)
	}
	c.members = newMembership(comm, queries)
	members := all[:0]
	for _, p := range all {
		if c.members.has(p.rank) {
			members = append(members, p)
			continue
		}
		for _, op := range p.ops {
			c.add(p.rank, op, ruleMember, 0, 0)
		}
	}
	if len(members) == 0 {
		return
	}
	if absent := comm.Size() - len(members); absent > 0 {
		c.add(firstAbsent(comm, members), -1, ruleAbsent, int64(c.comm), int64(absent))
	}
	usual := c.majority(members)
	for _, p := range members {
		c.compare(p, usual)
	}
	r := c.trace.Ranks[usual.rank]
	for _, op := range usual.ops {
		root := r.Peer.At(int(op))
		if r.Subkind.At(int(op)).Rooted() && inRange(root, len(c.trace.Ranks)) && !c.members.has(root) {
			c.add(usual.rank, op, ruleRoot, 0, 0)
		}
	}
}

// firstAbsent returns the first rank of the communicator that is not in members, which must be a proper subset.
func firstAbsent(comm *Comm, members []participation) int32 {
	for _, r := range comm.Ranges {
		for k := range r.Count {
			rank := r.First + k*r.Stride
			if _, found := slices.BinarySearchFunc(members, rank, func(p participation, rank int32) int {
				return int(p.rank) - int(rank)
			}); !found {
				return rank
			}
		}
	}
	panic("unreachable: a communicator has more ranks than members that take part")
}

// majority returns the participation that more than half of the members share, if there is one, and otherwise that of
// some member, by the algorithm of R. S. Boyer and J S. Moore, "MJRTY: a fast majority vote algorithm" (1991).
func (c *collectiveCheck) majority(members []participation) participation {
	usual, votes := members[0], 0
	for _, p := range members {
		switch _, same := c.firstDifference(p, usual); {
		case votes == 0:
			usual, votes = p, 1
		case same:
			votes++
		default:
			votes--
		}
	}
	return usual
}

// firstDifference returns the length of the common prefix of p and q, and whether p and q are equal.
func (c *collectiveCheck) firstDifference(p, q participation) (int, bool) {
	r, s := c.trace.Ranks[p.rank], c.trace.Ranks[q.rank]
	n := min(len(p.ops), len(q.ops))
	for k := range n {
		i, j := int(p.ops[k]), int(q.ops[k])
		subkind := r.Subkind.At(i)
		if subkind != s.Subkind.At(j) || subkind.Rooted() && r.Peer.At(i) != s.Peer.At(j) {
			return k, false
		}
	}
	return n, len(p.ops) == len(q.ops)
}

// compare reports the first difference between p and the usual participation.
func (c *collectiveCheck) compare(p, usual participation) {
	k, same := c.firstDifference(p, usual)
	switch {
	case same:
	case k == len(p.ops):
		c.add(p.rank, -1, ruleTooFew, int64(c.comm), int64(usual.rank))
	case k == len(usual.ops):
		c.add(p.rank, p.ops[k], ruleTooMany, 0, int64(usual.rank))
	default:
		c.add(p.rank, p.ops[k], ruleDiffers, int64(usual.ops[k]), int64(usual.rank))
	}
}

// membership tests whether ranks are members of a communicator: by its ranges if there are few, otherwise by a set of
// ranks.
type membership struct {
	comm   *Comm
	sorted []int32
}

// newMembership chooses the faster test for about the given number of queries.
func newMembership(comm *Comm, queries int) membership {
	m := membership{comm: comm}
	if int64(queries)*int64(len(comm.Ranges)) > int64(queries)+8*int64(comm.Size()) {
		m.sorted = comm.Members()
		slices.Sort(m.sorted)
	}
	return m
}

func (m *membership) has(rank int32) bool {
	if m.sorted == nil {
		return m.comm.Contains(rank)
	}
	_, found := slices.BinarySearch(m.sorted, rank)
	return found
}
