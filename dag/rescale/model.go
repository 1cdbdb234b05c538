package rescale

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/tracedag/tracedag/dag"
	"github.com/tracedag/tracedag/internal/par"
	"github.com/tracedag/tracedag/memory"
)

// model is the structure of a program, found in its trace.
type model struct {
	ctx  context.Context
	from *dag.Trace
	old  space

	members  [][]int32 // of each communicator
	tags     tagBase
	mixed    map[group]map[pair]rule // of messages of groups with that rule
	commKind []int32                 // of each communicator: see kindOf; -1: not part of the grid
	twins    bool                    // two messages along each edge of a hypercube

	slots []slot  // messages, collectives and calcs
	order []int32 // slots in the order of the program
	opAt  [][]int32
	loops []loop
	facts facts

	inCalls map[int32][]dag.Time // of slots: time in calls of MPI on each rank, if any
	lone    map[int32]loner      // of slots: what one rank alone has of the computation
}

// slot is an op of the program that each rank has once or not at all.
type slot struct {
	call      *call // nil for calcs
	template  dag.Op
	join      bool    // a calc without length that waits for messages
	needs     []int32 // of a join that some ranks lack: one of these slots must be there
	always    bool    // all ranks with the partner have it
	feature   feature // otherwise decides who has it
	table     map[int32]bool
	size      size    // of Bytes
	recv      size    // of RecvBytes
	counts    *counts // by partner, or nil
	uncounted bool    // counts follow no rule
	edges     []edge
	place     int32 // in the order

	ascending bool // the dependencies of the ops are in ascending order
}

// edge is a dependency on another slot.
type edge struct {
	on    int32
	start bool // waits for its start
}

// Refusal is an error about a trace without a structure that can be extrapolated.
type Refusal struct{ Reason string }

func (e *Refusal) Error() string { return "not rescaled: " + e.Reason }

func refuse(format string, args ...any) error {
	return &Refusal{fmt.Sprintf(format, args...)}
}

// check returns an error for traces that are not those of an SPMD program.
func check(ctx context.Context, t *dag.Trace) error {
	p := len(t.Ranks)
	switch {
	case p < 4:
		return refuse("the trace has %d ranks; expected 4 or more, to see how partners depend on the rank", p)
	case len(t.Jobs) > 1:
		return refuse("the trace has %d jobs; expected one (traceconv can rescale each before it merges them)",
			len(t.Jobs))
	}
	for rank, r := range t.Ranks {
		if err := par.Interrupted(ctx); err != nil {
			return err
		}
		if err := r.CheckReferences(); err != nil {
			return fmt.Errorf("rank %d: %w", rank, err)
		}
		for i, kind := range r.Kind {
			peer, comm := r.Peer.At(i), r.Comm.At(i)
			switch {
			case kind == dag.Mem || kind == dag.IO:
				return refuse("rank %d: op %d: expected calcs, messages and collectives, found %v", rank, i, kind)
			case r.Release.At(i) != 0:
				return refuse("rank %d: op %d: release time %v has no known value on other ranks", rank, i,
					r.Release.At(i))
			case isMessage(kind) && (int(peer) >= p || peer < 0 && (kind == dag.Send || peer != dag.AnySource)):
				return refuse("rank %d: op %d: peer %d, expected 0..%d", rank, i, peer, p-1)
			case kind != dag.Calc && (comm < 0 || int(comm) >= len(t.Comms)):
				return refuse("rank %d: op %d: communicator %d, expected 0..%d", rank, i, comm, len(t.Comms)-1)
			}
		}
	}
	for i := range t.Comms {
		if err := t.Comms[i].Check(p); err != nil {
			return fmt.Errorf("communicator %d: %w", i, err)
		}
	}
	return nil
}

// analyze finds the structure of a trace. It prefers the recorded grid if that is not nil.
func analyze(ctx context.Context, t *dag.Trace, recorded []int) (*model, error) {
	if err := check(ctx, t); err != nil {
		return nil, err
	}
	m := &model{ctx: ctx, from: t}
	for i := range t.Comms {
		m.members = append(m.members, t.Comms[i].Members())
	}
	m.tags = tagBaseOf(t)
	groups := m.exchanges()
	const mostGroups = 1 << 16
	if len(groups) > mostGroups {
		return nil, refuse("messages have %d different tags, expected %d or fewer: the tag has no known rule",
			len(groups),
			mostGroups)
	}
	var why error
	type attempt struct {
		space
		pure bool // all messages follow the grid
	}
	const most = 8
	var attempts []attempt
	list := m.candidates(groups, recorded)
	if len(list) == 0 {
		return nil, refuse("recorded grid %s: expected up to %d dimensions of 2 or more, whose product is the %d "+
			"ranks; omit --old-grid to find it", text(recorded), maxDims, len(t.Ranks))
	}
	for _, s := range list[:min(most, len(list))] {
		attempts = append(attempts, attempt{s, false})
	}
	for _, s := range list[:min(most, len(list))] {
		if len(s.grid) > 1 {
			attempts = append(attempts, attempt{s, true})
		}
	}
	for _, a := range attempts {
		m.slots, m.order, m.opAt, m.loops = nil, nil, nil, nil
		err := m.fit(a.space, groups, a.pure)
		var r *Refusal
		if err == nil {
			return m, nil
		} else if !errors.As(err, &r) {
			return nil, err
		}
		if why == nil {
			why = err
		}
	}
	return nil, why
}

// candidates returns the grids that may be that of the program, the most likely first: all communicators are parts of
// it, and it has the fewest different displacements.
func (m *model) candidates(groups []*exchange, recorded []int) []space {
	var list []space
	costs := map[string]int{}
	p := len(m.from.Ranks)
	line := space{ranks: p, grid: []int{p}}
	line.findPeriods(groups)
	line.ring = line.periodic[0]
	for _, x := range groups {
		if !x.repeated {
			x.price(&line)
		}
	}
	m.twins = findCubes(&line, groups, recorded)
	m.mixed = map[group]map[pair]rule{}
	for _, x := range groups {
		m.mixed[x.group] = groups[x.first].parts
	}
	sparse := slices.DeleteFunc(slices.Clone(groups), func(x *exchange) bool { return x.dense(p) })
	certain := false
	for dims := 1; dims <= maxDims && !certain; dims++ {
		for _, grid := range grids(p, dims) {
			if recorded != nil && !slices.Equal(grid, recorded) {
				continue
			}
			s := space{ranks: p, grid: grid, ring: line.ring}
			s.findPeriods(sparse)
			c := choose(&s, groups)
			if along := c.along(groups); len(along) > 0 && len(along) < len(groups) {
				s.findPeriods(along) // other messages do not show what is periodic
				c = choose(&s, groups)
			}
			foreign := m.foreign(&s)
			costs[text(grid)] = c.cost + 1000*foreign
			certain = certain || c.clear && foreign == 0
			list = append(list, s)
		}
	}
	slices.SortStableFunc(list, func(a, b space) int { return costs[text(a.grid)] - costs[text(b.grid)] })
	return list
}

// along returns the groups whose messages go along the grid.
func (c *chosen) along(groups []*exchange) (all []*exchange) {
	for i, x := range groups {
		if c.rules[i][0].rule == onGrid {
			all = append(all, x)
		}
	}
	return all
}

// foreign returns the number of communicators that are no part of the grid.
func (m *model) foreign(s *space) (n int) {
	for _, k := range kinds(s, m.members) {
		if k < 0 {
			n++
		}
	}
	return n
}

// kinds returns the kind of each communicator: the dimensions along which its members differ, as bits, shifted by 8,
// plus the number of earlier communicators of the same members. All ranks are 0, with the same sum. -1 is no part of
// the grid: not all places along its dimensions, or not in the order of ranks.
func kinds(s *space, members [][]int32) []int32 {
	all := make([]int32, len(members))
	earlier := map[string]int32{}
	for i, list := range members {
		if len(list) == 0 {
			all[i] = -1
			continue
		}
		first := s.coordinates(int(list[0]))
		mask, size := int32(0), 1
		for _, rank := range list {
			c := s.coordinates(int(rank))
			for d := range s.grid {
				if c[d] != first[d] {
					mask |= 1 << d
				}
			}
		}
		for d, n := range s.grid {
			if mask&(1<<d) != 0 {
				size *= n
			}
		}
		if size != len(list) || !slices.IsSorted(list) {
			all[i] = -1
			continue
		}
		key := fmt.Sprint(list)
		if size == s.ranks {
			mask = 0
		} else if mask == 0 {
			mask = 1 << maxDims // a rank alone
		}
		all[i] = mask<<8 + earlier[key]
		earlier[key]++
	}
	return all
}

// fit builds the model for a grid.
func (m *model) fit(s space, groups []*exchange, pure bool) error {
	m.old = s
	m.commKind = kinds(&s, m.members)
	for i, k := range m.commKind {
		if k >= 0 {
			continue
		}
		for rank, r := range m.from.Ranks {
			for op, kind := range r.Kind {
				if kind != dag.Calc && int(r.Comm.At(op)) == i {
					return refuse("rank %d: op %d: communicator %d of ranks %s is neither all ranks nor the rows, "+
						"columns or planes of a grid", rank, op, i, firstOf(m.members[i]))
				}
			}
		}
	}
	rules := map[group]rule{}
	compared := 0
	for i, by := range choose(&m.old, groups).rules {
		x := groups[i]
		const most = 256 // comparisons, each of which reads the trace
		switch {
		case pure:
			rules[x.group] = onGrid
		case x.repeated:
			rules[x.group] = rules[groups[x.first].group]
		case len(by) > 1 && compared < most:
			rules[x.group] = m.best(x.group, by)
			compared++
		default:
			rules[x.group] = by[0].rule
		}
	}
	q := m.tokens(rules, nil)
	k, err := alignAll(q, func(c int32, rank int) bool { return m.exists(&q.calls[c], rank) })
	if err != nil {
		return m.irregular(groups, rules)
	}
	return m.build(k)
}

// best returns the rule of a group under which the ranks have the most in common: the fewest different calls. An
// exclusive or counts twice, for its two directions.
func (m *model) best(g group, by []priced) rule {
	best, least, cost := by[0].rule, -1, 0
	for _, p := range by {
		q := m.tokens(map[group]rule{g: p.rule}, &g)
		k, err := alignAll(q, func(c int32, rank int) bool { return m.exists(&q.calls[c], rank) })
		if err != nil {
			continue
		}
		n := len(k.order)
		if p.rule == byXor {
			n *= 2
		}
		if least < 0 || n < least || n == least && p.cost < cost {
			best, least, cost = p.rule, n, p.cost
		}
	}
	return best
}

// exists reports whether a rank has the partner of a call.
func (m *model) exists(c *call, rank int) bool {
	if c.kind == dag.Coll {
		return true
	}
	_, ok := m.old.partner(c.rule, c.at, rank)
	return ok
}

// irregular describes the most irregular messages.
func (m *model) irregular(groups []*exchange, rules map[group]rule) error {
	if len(groups) == 0 {
		return refuse("the ranks make collectives in different orders, which no rule explains")
	}
	worst, most := groups[0], -1
	for _, x := range groups {
		if cost, _, ok := m.old.cost(rules[x.group], x.pairs); ok && cost > most {
			worst, most = x, cost
		}
	}
	var seen []string
	pairs := slices.Clone(worst.pairs)
	slices.SortFunc(pairs, comparePairs)
	for _, p := range pairs[:min(len(pairs), 6)] {
		seen = append(seen, fmt.Sprintf("%d to %d", p.from, p.to))
	}
	return refuse("messages of tag %d have partners that are no function of the rank: ranks %s; %d pairs in all",
		worst.tag, strings.Join(seen, ", "), len(worst.pairs))
}

// build makes the slots of the model from the aligned calls.
func (m *model) build(k *skeleton) error {
	if err := memory.Check(m.ctx, "ops of the ranks, aligned", 4, int64(2*len(k.order)+1),
		int64(len(m.from.Ranks))); err != nil {
		return err
	}
	m.slots = make([]slot, len(k.calls))
	for i, c := range k.calls {
		m.slots[i].call = &k.q.calls[c]
	}
	for range m.slots {
		m.opAt = append(m.opAt, m.noOps())
	}
	for rank, slots := range k.slots {
		for i, s := range slots {
			m.opAt[s][rank] = k.q.ops[rank][i]
		}
	}
	m.orderExchanges(k)
	m.insertCalcs(k)
	for i := range m.slots {
		s := &m.slots[i]
		for rank, op := range m.opAt[i] {
			if op >= 0 {
				s.template = m.from.Ranks[rank].Op(int(op))
				break
			}
		}
		m.keepText(i)
	}
	m.findEdges()
	for i := range m.slots {
		if err := m.fitPresence(int32(i)); err != nil {
			return err
		}
		m.fitSizes(int32(i))
		m.slots[i].counts, m.slots[i].uncounted = m.fitCounts(int32(i))
	}
	m.findLoops()
	for place, s := range m.order {
		m.slots[s].place = int32(place)
	}
	m.findFacts()
	m.findCallTimes()
	m.findLone()
	return nil
}

// exchanged is what the calls of an exchange with the ranks at a distance have in common.
type exchanged struct {
	rule rule
	away vector
	tag  int64
	comm int32
}

// direction is what the calls of such exchanges at different distances have in common.
type direction struct {
	kind dag.Kind
	rule rule
	sign vector
}

// orderExchanges orders the calls of each exchange as those of the first one. The trace may not show their order: over
// the largest distance, ranks often have one side only.
func (m *model) orderExchanges(k *skeleton) {
	first := map[direction]int{}
	at := make([]int, len(k.calls)) // place of the first call of the direction
	of := make([]exchanged, len(k.calls))
	for place, s := range k.order {
		c := m.slots[s].call
		d := direction{kind: c.kind, rule: c.rule}
		of[s] = exchanged{c.rule, c.at, c.tag, c.comm}
		for i, v := range c.at {
			d.sign[i] = min(max(v, -1), 1)
			of[s].away[i] = max(v, -v)
		}
		n, known := first[d]
		if !known {
			n, first[d] = place, place
		}
		at[s] = n
	}
	for i := range k.order {
		for j := i; j > 0; j-- {
			a, b := k.order[j-1], k.order[j]
			if !isMessage(m.slots[a].call.kind) || of[a] != of[b] || at[a] <= at[b] || m.meet(a, b) {
				break
			}
			k.order[j-1], k.order[j] = b, a
		}
	}
}

// meet reports whether a rank has two slots.
func (m *model) meet(a, b int32) bool {
	for rank, op := range m.opAt[a] {
		if op >= 0 && m.opAt[b][rank] >= 0 {
			return true
		}
	}
	return false
}

func (m *model) noOps() []int32 {
	at := make([]int32, len(m.from.Ranks))
	for i := range at {
		at[i] = -1
	}
	return at
}

// firstOf returns the first ranks of a list in words.
func firstOf(ranks []int32) string {
	var parts []string
	for i, r := range ranks {
		if i == 8 && len(ranks) > 9 {
			return strings.Join(parts, ", ") + fmt.Sprintf(" and %d more", len(ranks)-8)
		}
		parts = append(parts, fmt.Sprint(r))
	}
	return strings.Join(parts, ", ")
}
