package rescale

import (
	"fmt"
	"math/bits"
	"slices"

	"github.com/tracedag/tracedag/dag"
)

// call is what the ops of a slot of the skeleton have in common.
type call struct {
	kind        dag.Kind
	sub         dag.Subkind
	rule        rule
	at          vector
	tag         int64
	comm        int32 // kind of communicator
	stream, nic int32
}

// describe returns the call for a message.
func (c *call) describe() string {
	switch {
	case c.kind == dag.Coll && c.rule == alone:
		return c.sub.String()
	case c.kind == dag.Coll:
		return fmt.Sprintf("%v with root %s", c.sub, c.rule.describe(c.at))
	case c.kind == dag.Send:
		return fmt.Sprintf("send to %s, tag %d", c.rule.describe(c.at), c.tag)
	}
	return fmt.Sprintf("recv from %s, tag %d", c.rule.describe(c.at), c.tag)
}

// group is the messages that one rule describes.
type group struct {
	comm int32
	tag  int64
}

// exchange is the messages of a group.
type exchange struct {
	group
	pairs    []pair
	sent     []int         // messages of each pair, also if another group has the same pairs
	byRank   []priced      // costs of rankRules
	first    int           // number of the first group with the same pairs: programs number iterations by tags
	repeated bool          // that is another group
	cube     bool          // the edges of a hypercube
	parts    map[pair]rule // of mixed
}

// sequences are the messages and collectives of each rank, as numbers of calls.
type sequences struct {
	calls  []call
	number map[call]int32
	ops    [][]int32 // of each rank: indices of ops
	ids    [][]int32 // of each rank: numbers of calls
}

// isMessage reports whether ops of a kind have a partner.
func isMessage(k dag.Kind) bool { return k == dag.Send || k == dag.Recv }

// tagBase is what tags are counted from.
type tagBase uint8

const (
	fromZero     tagBase = iota
	fromSender           // the rank of the sender plus a number
	fromReceiver         // the rank of the receiver plus a number
)

// of returns the base of the tag of a message.
func (b tagBase) of(sender, receiver int32) int64 {
	switch b {
	case fromSender:
		return int64(sender)
	case fromReceiver:
		return int64(receiver)
	}
	return 0
}

// tagBaseOf returns what the tags of the trace are counted from: a rank if that makes far fewer different ones.
func tagBaseOf(t *dag.Trace) tagBase {
	var different [3]map[int64]bool
	for base := range different {
		different[base] = map[int64]bool{}
	}
	for rank, r := range t.Ranks {
		for i, kind := range r.Kind {
			if kind == dag.Send && r.Tag.At(i) >= 0 {
				for base := range different {
					different[base][r.Tag.At(i)-tagBase(base).of(int32(rank), r.Peer.At(i))] = true
				}
			}
		}
	}
	all := len(different[fromZero])
	for _, base := range []tagBase{fromSender, fromReceiver} {
		if 2*all >= len(t.Ranks) && 4*len(different[base]) <= all {
			return base
		}
	}
	return fromZero
}

// tagOf returns the tag of a message, from the base of tags.
func (m *model) tagOf(rank, i int) int64 {
	r := m.from.Ranks[rank]
	tag, peer := r.Tag.At(i), r.Peer.At(i)
	switch {
	case m.tags == fromZero || tag < 0 || !isMessage(r.Kind[i]) || peer < 0:
		return tag
	case r.Kind[i] == dag.Send:
		return tag - m.tags.of(int32(rank), peer)
	}
	return tag - m.tags.of(peer, int32(rank))
}

// exchanges returns the pairs of ranks of each group of messages, in the order of the first messages.
func (m *model) exchanges() []*exchange {
	var all []*exchange
	known := map[group]*exchange{}
	seen := map[group]map[pair]int{}
	for rank, r := range m.from.Ranks {
		for i, kind := range r.Kind {
			if !isMessage(kind) || kind == dag.Recv && (r.Peer.At(i) == dag.AnySource || r.Tag.At(i) == dag.AnyTag) {
				continue
			}
			g := group{r.Comm.At(i), m.tagOf(rank, i)}
			if known[g] == nil {
				known[g], seen[g] = &exchange{group: g}, map[pair]int{}
				all = append(all, known[g])
			}
			x := known[g]
			p := pair{int32(rank), r.Peer.At(i)}
			if kind == dag.Recv {
				p.from, p.to = p.to, p.from
			}
			n, known := seen[g][p]
			if !known {
				n = len(x.pairs)
				seen[g][p] = n
				x.pairs, x.sent = append(x.pairs, p), append(x.sent, 0)
			}
			if kind == dag.Send {
				x.sent[n]++
			}
		}
	}
	firsts := map[string]int{}
	var key []byte
	for i, x := range all {
		key = key[:0]
		for _, p := range x.pairs {
			key = numbers(key, []int32{p.from, p.to})
		}
		x.first, x.repeated = i, false
		if n, known := firsts[string(key)]; known {
			x.first, x.repeated, x.pairs = n, true, all[n].pairs
		} else {
			firsts[string(key)] = i
		}
	}
	return all
}

// rankRules are the rules for messages that do not depend on the grid, the preferred ones first.
var rankRules = []rule{onLine, byXor, fixed, mirrored, transpose, reverse, left, right, binary}

// priced is a rule and its cost.
type priced struct {
	rule            rule
	cost, irregular int
}

// dense reports whether ranks have more partners than neighbors on a grid, such as all other ranks.
func (x *exchange) dense(ranks int) bool {
	const most = 100 // more than 3^maxDims
	return len(x.pairs) > most*ranks
}

// price sets the costs of the rules that do not depend on the grid.
func (x *exchange) price(s *space) {
	x.byRank = nil
	for _, r := range rankRules {
		if cost, irregular, ok := s.cost(r, x.pairs); ok {
			x.byRank = append(x.byRank, priced{r, cost, irregular})
		}
	}
	if !slices.ContainsFunc(x.byRank, func(p priced) bool { return p.irregular == 0 }) {
		if cost, ok := x.mix(s); ok {
			x.byRank = append(x.byRank, priced{rule: mixed, cost: cost})
		}
	}
}

// mix divides the messages into exchanges by exclusive or with powers of two and permutations, in which all ranks take
// part, and returns their cost.
func (x *exchange) mix(s *space) (cost int, ok bool) {
	x.parts = map[pair]rule{}
	all := map[pair]bool{}
	for _, p := range x.pairs {
		all[p] = true
	}
	take := func(r rule, v vector) bool {
		var own []pair
		for rank := range s.ranks {
			to, exists := s.partner(r, v, rank)
			p := pair{int32(rank), int32(to)}
			if _, taken := x.parts[p]; exists && (taken || !all[p]) {
				return false
			}
			if exists {
				own = append(own, p)
			}
		}
		for _, p := range own {
			x.parts[p] = r
		}
		return len(own) > 0
	}
	if s.ranks&(s.ranks-1) != 0 || len(x.pairs) > s.ranks*bits.Len(uint(s.ranks)) {
		return 0, false
	}
	for v := int32(1); int(v) < s.ranks; v *= 2 {
		if take(byXor, vector{v}) {
			cost += 2
		}
	}
	for _, r := range []rule{mirrored, transpose, reverse, left, right} {
		if take(r, vector{}) {
			cost++
		}
	}
	return cost, len(x.parts) == len(x.pairs)
}

// findCubes marks the groups whose messages go along the edges of a hypercube of all ranks, if those of all dimensions
// are there. The edges are as well those of a grid of two ranks along each dimension, which is less likely. It returns
// whether there are twins: all ranks send messages of two tags along each edge, as to both neighbors on a periodic
// grid. Twins are along the given grid of several dimensions, and no cubes.
func findCubes(s *space, all []*exchange, grid []int) (twins bool) {
	edges, again := 0, againOf(all)
	var cubes []*exchange
	for _, x := range all {
		if x.repeated || len(x.pairs)%s.ranks != 0 {
			continue
		}
		counts := map[int32]int{}
		for _, p := range x.pairs {
			counts[p.from^p.to]++
		}
		whole, own := true, 0
		for v, n := range counts {
			whole = whole && n == s.ranks && v&(v-1) == 0
			own |= int(v)
		}
		if whole {
			cubes, edges = append(cubes, x), edges|own
		}
	}
	const least = 16 // ranks: fewer are a grid more often
	if s.ranks < least || edges != s.ranks-1 {
		return false
	}
	twins = !slices.ContainsFunc(cubes, func(x *exchange) bool { return len(x.pairs) != s.ranks || !again[x.first] })
	if twins && len(grid) > 1 {
		return false
	}
	for _, x := range cubes {
		x.cube = true
		x.byRank = slices.DeleteFunc(x.byRank, func(p priced) bool { return p.rule != byXor })
	}
	return twins
}

// chosen is a choice of rules for all groups.
type chosen struct {
	cost  int
	rules [][]priced // of each group, the cheapest first
	clear bool       // all groups have the same rule, and no partners are irregular
}

// choose ranks the rules of each group by their cost. The total cost grows with the number of different rules.
func choose(s *space, all []*exchange) chosen {
	var c chosen
	different := map[rule]bool{}
	for _, x := range all {
		if x.repeated {
			c.cost += c.rules[x.first][0].cost
			c.rules = append(c.rules, c.rules[x.first])
			continue
		}
		var list []priced
		if len(s.grid) > 1 && !x.dense(s.ranks) && !x.cube {
			if cost, irregular, ok := s.cost(onGrid, x.pairs); ok {
				list = append(list, priced{onGrid, cost, irregular})
			}
		}
		list = append(list, x.byRank...)
		slices.SortStableFunc(list, func(a, b priced) int { return a.cost - b.cost })
		c.cost += list[0].cost
		different[list[0].rule] = true
		most := 2*list[0].cost + 2
		c.rules = append(c.rules, slices.DeleteFunc(list, func(p priced) bool { return p.cost > most }))
	}
	c.cost += len(different)
	// The torus of 4 x 4 ranks is a hypercube, so an exclusive or is not clear.
	c.clear = len(different) == 0 || len(different) == 1 && !different[byXor]
	c.clear = c.clear && !slices.ContainsFunc(c.rules, func(list []priced) bool {
		return list[0].irregular > 0
	})
	return c
}

// tokens returns the calls of all ranks under rules for the groups. Groups that only names, if any, are the only ones.
func (m *model) tokens(rules map[group]rule, only *group) *sequences {
	q := &sequences{number: map[call]int32{}}
	signs := m.signs(rules, only)
	for rank, r := range m.from.Ranks {
		var ops, ids []int32
		messages := 0
		for i, kind := range r.Kind {
			if kind != dag.Coll && !isMessage(kind) {
				continue
			}
			g := group{r.Comm.At(i), m.tagOf(rank, i)}
			if only != nil && (kind == dag.Coll || g != *only) {
				continue
			}
			c := m.callOf(rank, i, rules[g])
			if isMessage(kind) && signs != nil {
				c.at = signs[rank][messages]
			}
			if isMessage(kind) {
				messages++
			}
			n, known := q.number[c]
			if !known {
				n = int32(len(q.calls))
				q.number[c] = n
				q.calls = append(q.calls, c)
			}
			ops, ids = append(ops, int32(i)), append(ids, n)
		}
		q.ops, q.ids = append(q.ops, ops), append(q.ids, ids)
	}
	return q
}

// callOf returns the call of an op whose messages follow a rule.
func (m *model) callOf(rank, i int, by rule) call {
	r := m.from.Ranks[rank]
	c := call{kind: r.Kind[i], sub: r.Subkind.At(i), stream: r.Stream.At(i), nic: r.NIC.At(i),
		comm: m.commKind[r.Comm.At(i)]}
	peer := r.Peer.At(i)
	switch {
	case c.kind == dag.Coll:
		if c.sub.Rooted() && peer >= 0 {
			c.rule = member
			members := m.members[r.Comm.At(i)]
			at := slices.Index(members, peer)
			if at == len(members)-1 && at > 0 {
				at = -1
			}
			c.at[0] = int32(at)
		}
	case c.kind == dag.Recv && peer == dag.AnySource:
		c.rule, c.tag = anyone, r.Tag.At(i)
	default:
		c.tag, c.rule = m.tagOf(rank, i), by
		p := pair{int32(rank), peer}
		if r.Tag.At(i) == dag.AnyTag {
			c.rule = onLine
			if len(m.old.grid) > 1 {
				c.rule = onGrid
			}
		}
		if by == mixed {
			sent := p
			if c.kind == dag.Recv {
				sent = pair{p.to, p.from}
			}
			c.rule = m.mixed[group{r.Comm.At(i), c.tag}][sent]
		}
		if c.kind == dag.Recv && c.rule == left {
			c.rule = right // the inverse
		} else if c.kind == dag.Recv && c.rule == right {
			c.rule = left
		}
		c.at, _ = m.old.value(c.rule, p)
	}
	return c
}

// signs returns the displacement of each message of each rank if some dimensions are periodic and have two ranks, so
// that both neighbors are the same rank; otherwise nil. Sends to that rank alternate between the directions in the
// order that the ranks use in longer dimensions; a receive has the direction of its message.
func (m *model) signs(rules map[group]rule, only *group) [][]vector {
	s := &m.old
	pairs := false
	for d, n := range s.grid {
		pairs = pairs || n == 2 && s.periodic[d]
	}
	if !pairs || len(s.grid) == 1 {
		return nil
	}
	first, both := m.firstSign(rules)
	type channel struct {
		from, to, comm int32
		tag            int64
	}
	sent := map[channel][]vector{}
	all := make([][]vector, len(m.from.Ranks))
	each := func(do func(rank, n int, c *call, ch channel)) {
		for rank, r := range m.from.Ranks {
			n := 0
			for i, kind := range r.Kind {
				g := group{r.Comm.At(i), m.tagOf(rank, i)}
				if !isMessage(kind) || only != nil && g != *only {
					continue
				}
				c := m.callOf(rank, i, rules[g])
				ch := channel{int32(rank), r.Peer.At(i), g.comm, g.tag}
				if kind == dag.Recv {
					ch.from, ch.to = ch.to, ch.from
				}
				do(rank, n, &c, ch)
				n++
			}
		}
	}
	turns := map[pair]map[vector]bool{}
	each(func(rank, n int, c *call, ch channel) {
		v := c.at
		if c.kind == dag.Send && c.rule == onGrid {
			for d := range s.grid {
				if v[d] == 0 || s.grid[d] != 2 || !s.periodic[d] {
					continue
				}
				v[d] = first
				of := pair{int32(rank), int32(d)}
				if turns[of] == nil {
					turns[of] = map[vector]bool{}
				}
				if both && turns[of][c.at] {
					v[d] = -first
				}
				turns[of][c.at] = !turns[of][c.at]
			}
		}
		if c.kind == dag.Send {
			sent[ch] = append(sent[ch], v)
		}
		all[rank] = append(all[rank], v)
	})
	each(func(rank, n int, c *call, ch channel) {
		if c.kind != dag.Recv || c.rule != onGrid || len(sent[ch]) == 0 {
			return
		}
		v := sent[ch][0]
		sent[ch] = sent[ch][1:]
		for d := range v {
			v[d] = -v[d]
		}
		all[rank][n] = v
	})
	return all
}

// firstSign returns the direction of the first send along a dimension of three ranks or more by a rank that has both
// neighbors, and whether such a rank sends in both directions. Without such a dimension it is -1.
func (m *model) firstSign(rules map[group]rule) (first int32, both bool) {
	for rank, r := range m.from.Ranks {
		place := m.old.coordinates(rank)
		for i, kind := range r.Kind {
			if kind != dag.Send {
				continue
			}
			c := m.callOf(rank, i, rules[group{r.Comm.At(i), m.tagOf(rank, i)}])
			if c.rule != onGrid {
				continue
			}
			for d, n := range m.old.grid {
				inside := m.old.periodic[d] || place[d] > 0 && int(place[d]) < n-1
				if v := c.at[d]; n > 2 && inside && v != 0 {
					sign := max(-1, min(1, v))
					if first == 0 {
						first = sign
					}
					both = both || sign != first
				}
			}
		}
		if first != 0 {
			return first, both
		}
	}
	return -1, true
}
