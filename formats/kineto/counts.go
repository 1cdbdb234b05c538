// This file finds the bytes by partner of uneven all-to-alls.

package kineto

import (
	"slices"
	"strings"

	"github.com/tracedag/tracedag/dag"
	"github.com/tracedag/tracedag/dag/attr"
)

// counts returns the bytes by partner that the arguments of an uneven alltoall of n members state, nil if they do not
// state those of all members. An empty list stands for equal parts.
func (r *recording) counts(a *commArgs, n int) *attr.Counts {
	gives, gets := trimList(r.texts.text(a.gives)), trimList(r.texts.text(a.gets))
	for _, list := range []string{gives, gets} { // one has parts, so that n is checked before memory is taken for it
		if list != "" && strings.Count(list, ",") != n-1 {
			return nil
		}
	}
	send, ok := split(gives, a.in, a.element, n)
	if !ok {
		return nil
	}
	recv, ok := split(gets, a.out, a.element, n)
	if !ok {
		return nil
	}
	return &attr.Counts{Send: send, Recv: recv}
}

// trimList returns a list without its brackets.
func trimList(list string) string { return strings.Trim(list, " []") }

// split returns the bytes of n parts in a list without brackets, which sum to a total of elements.
func split(list string, total, element int64, n int) (parts []int64, ok bool) {
	if total < 0 || element <= 0 || total > mostBytes/element {
		return nil, false
	}
	if list == "" {
		return evenParts(total*element, n)
	}
	rest := total
	for text := range strings.SplitSeq(list, ",") {
		part, ok := parseInt([]byte(strings.TrimSpace(text)))
		if !ok || part < 0 || part > rest {
			return nil, false
		}
		rest -= part
		parts = append(parts, part*element)
	}
	return parts, rest == 0
}

// evenParts returns n equal parts of a number of bytes.
func evenParts(bytes int64, n int) (parts []int64, ok bool) {
	if n == 0 || bytes%int64(n) != 0 {
		return nil, false
	}
	return slices.Repeat([]int64{bytes / int64(n)}, n), true
}

// setCounts keeps the bytes by partner of the alltoalls of a communicator if all members state them and agree. A
// member whose arguments state no parts has equal ones.
func (j *job) setCounts(all []participant, c *comm) {
	n := len(c.members)
	of := make(map[int32][]*communication) // by instance: of the members
	for _, p := range all {
		at := slices.Index(c.members, p.rank)
		for k := range p.list {
			x := j.at(p, k)
			if s, _ := x.op.subkind(); x.unrelated || s != dag.Alltoallv {
				continue
			}
			if of[x.instance] == nil {
				of[x.instance] = make([]*communication, n)
			}
			of[x.instance][at] = x
		}
	}
	for _, members := range of {
		if n != c.size || !agree(members) {
			for _, x := range members {
				if x != nil {
					x.counts = nil
				}
			}
		}
	}
}

// agree reports whether each member of an alltoall sends to each other one what that one receives. It sets the counts
// of members with equal parts.
func agree(members []*communication) bool {
	for _, x := range members {
		if x == nil || !x.sized {
			return false
		}
		if x.counts == nil && !x.uneven {
			send, divides := evenParts(x.bytes, len(members))
			recv, alsoDivides := evenParts(x.recv, len(members))
			if divides && alsoDivides {
				x.counts = &attr.Counts{Send: send, Recv: recv}
			}
		}
		if x.counts == nil {
			return false
		}
	}
	for i, x := range members {
		for k, y := range members {
			if x.counts.Send[k] != y.counts.Recv[i] {
				return false
			}
		}
	}
	return true
}
