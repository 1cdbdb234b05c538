package slots

import (
	"fmt"
	"math/big"
	"strings"

	"github.com/tracedag/tracedag/param"
)

// schedulers are the names of --scheduler.
var schedulers = []string{"srpt", "fs", "ff", "random", "lambda", "maxmin"}

// schedulerSynonyms are further names of schedulers.
var schedulerSynonyms = []param.Synonym{
	{Choice: "fs", Names: []string{"fair-share", "fairshare"}},
	{Choice: "ff", Names: []string{"first-fit", "firstfit"}},
	{Choice: "random", Names: []string{"rand"}}, {Choice: "lambda", Names: []string{"lambda-share"}},
	{Choice: "maxmin", Names: []string{"max-min"}},
}

// policy is a scheduler with its parameter.
type policy struct {
	name  string
	share *big.Rat // lambda: share of the capacity for srpt, 0 to 1
	text  string   // of share

	// compat repeats TrafPy's schedulers where its code wastes capacity or prefers some hosts.
	compat bool
}

// parsePolicy parses a scheduler such as srpt or lambda:0.5.
func parsePolicy(text string) (policy, error) {
	name, share, given := strings.Cut(text, ":")
	p := policy{name: param.Resolve(name, schedulers, schedulerSynonyms...)}
	known := false
	for _, s := range schedulers {
		known = known || s == p.name
	}
	switch {
	case !known || given && p.name != "lambda":
		return p, fmt.Errorf("expected srpt, fs, ff, random, lambda:SHARE or maxmin, found %q%s", text,
			param.Suggest(name, schedulers))
	case p.name != "lambda":
		return p, nil
	case !given:
		share = "0.5"
	}
	var valid bool
	if len(share) <= maxShareDigits && !strings.ContainsAny(share, "eEpP_/xXbBoO") {
		p.share, valid = new(big.Rat).SetString(share)
	}
	if !valid || p.share.Sign() < 0 || p.share.Cmp(big.NewRat(1, 1)) > 0 {
		return p, fmt.Errorf("expected lambda:SHARE with a share from 0 to 1, such as lambda:0.5, found %q", text)
	}
	p.text = share
	return p, nil
}

// maxShareDigits is the largest number of characters of a share.
const maxShareDigits = 20

// String returns the scheduler in a form that parsePolicy reads.
func (p policy) String() string {
	if p.name == "lambda" {
		return "lambda:" + p.text
	}
	return p.name
}

// parts returns the parts into which the scheduler divides the capacity of each edge.
func (p policy) parts() []*big.Rat {
	all := big.NewRat(1, 1)
	if p.name == "lambda" {
		return []*big.Rat{new(big.Rat).Sub(all, p.share), p.share}
	}
	return []*big.Rat{all}
}

// schedule fills s.take with the packets that each flow sends in the slot. No edge exceeds its budget, and at least one
// flow sends a packet.
func (p policy) schedule(s *slot) {
	s.open(0)
	s.compat = p.compat
	switch p.name {
	case "srpt":
		s.srpt()
	case "fs":
		s.fairShare()
	case "ff":
		s.firstFit()
	case "random":
		s.random()
	case "maxmin":
		s.maxMin()
	case "lambda":
		s.fairShare()
		for i, packets := range s.take {
			s.need[i] -= packets
		}
		s.shared = append(s.shared[:0], s.take...)
		clear(s.take)
		s.open(1)
		s.srpt()
		for i, packets := range s.shared {
			s.take[i] += packets
			s.need[i] += packets
		}
	}
}

// fairShare proposes equal shares on each edge in rounds: each flow gets the packets of the flow with the fewest left,
// at most an equal share of the rest of the budget. The edge stops when the rest is less than its number of flows.
func (s *slot) fairShare() {
	s.sort(func(i int) int64 { return s.need[i] })
	s.list(s.order)
	s.levels = resized(s.levels, len(s.used))
	for d := range s.used {
		s.levels[d] = s.equalShare(s.listed(uint32(d)), s.room[d])
	}
	for i, need := range s.need {
		// An edge with fewer packets than flows proposes none, and does not count. The shares of the other edges may
		// then exceed it.
		packets := int64(0)
		for _, d := range s.path(i) {
			if l := min(need, s.levels[d]); l > 0 && (packets == 0 || l < packets) {
				packets = l
			}
		}
		if packets == 0 {
			packets = min(need, 1) // all edges have more flows than packets
		}
		s.takeUpTo(i, packets)
	}
}

// equalShare returns the packets that an edge proposes to each flow with at least as many left. The flows are ordered
// by
// their packets left.
func (s *slot) equalShare(flows []uint32, room int64) (level int64) {
	least, n := int64(len(flows)), int64(len(flows))
	for n > 0 {
		round := min(s.need[flows[0]]-level, room/n)
		level += round
		room -= round * n
		for len(flows) > 0 && s.need[flows[0]] == level {
			flows = flows[1:]
		}
		n = int64(len(flows))
		if room < least || round == 0 || s.compat && room == least {
			break
		}
	}
	return level
}

// takeUpTo makes a flow send the given packets, or as many as fit.
func (s *slot) takeUpTo(i int, packets int64) {
	path := s.path(i)
	if packets = min(packets, s.fits(path)); packets > 0 {
		s.take[i] = packets
		s.occupy(path, packets)
	}
}

// firstFit proposes packets to flows at random, and resolves in queue order: a flow takes what fits.
func (s *slot) firstFit() {
	s.proposeAtRandom()
	s.open(0)
	if s.compat {
		s.firstFitOfTrafPy()
		return
	}
	for i, packets := range s.packets {
		s.takeUpTo(i, packets)
	}
}

// random proposes packets to flows at random. A flow that does not fit gives up or replaces others, both with
// probability 1/2.
func (s *slot) random() {
	s.proposeAtRandom()
	s.open(0)
	s.rank = resized(s.rank, len(s.flows))
	order := resized(s.order, len(s.flows))
	for i := range s.flows {
		s.rank[i], order[i] = uint32(i), uint32(i)
	}
	s.order = order
	s.resolve(func(int, uint32) bool { return s.draw.Uint64()&1 == 1 })
	if s.compat {
		s.clip()
	}
}

// proposeAtRandom fills the budget of each edge with all packets of flows, drawn with equal probability.
func (s *slot) proposeAtRandom() {
	s.list(s.inOrder())
	s.packets = zeroed(s.packets, len(s.flows))
	if s.compat {
		s.proposeRepeatedly()
		return
	}
	for d := range s.used {
		flows, room := s.listed(uint32(d)), s.room[d]
		for ; room > 0 && len(flows) > 0; flows = flows[1:] {
			if len(flows) > 1 {
				k := s.draw.IntN(len(flows))
				flows[0], flows[k] = flows[k], flows[0]
			}
			i := flows[0]
			packets := min(s.need[i], room)
			room -= packets
			s.propose(i, packets)
		}
	}
}

// propose notes the proposal of an edge: the least of all edges that propose packets counts.
func (s *slot) propose(i uint32, packets int64) {
	if had := s.packets[i]; packets > 0 && (had == 0 || packets < had) {
		s.packets[i] = packets
	}
}

// srpt proposes packets by the remaining time of flows alone, the shortest first. A flow that does not fit replaces
// flows with more remaining time.
func (s *slot) srpt() {
	s.sort(func(i int) int64 {
		narrowest := s.fits(s.path(i))
		if narrowest == 0 { // in a part of the capacity
			return 1 << 62
		}
		return (s.need[i] + narrowest - 1) / narrowest
	})
	if s.compat {
		s.orderByQueue()
	}
	s.packets = zeroed(s.packets, len(s.flows))
	s.rank = resized(s.rank, len(s.flows))
	last := uint32(len(s.order)) - 1
	for k, i := range s.order {
		s.rank[i] = last - uint32(k) // heaps have the longest first
		for _, d := range s.path(int(i)) {
			packets := min(s.need[i], s.room[d])
			s.room[d] -= packets
			s.propose(i, packets)
		}
	}
	for a, b := 0, len(s.order)-1; a < b; a, b = a+1, b-1 { // by rank
		s.order[a], s.order[b] = s.order[b], s.order[a]
	}
	s.open(s.part)
	if s.compat {
		costs := s.costs()
		s.resolve(func(i int, taken uint32) bool { return costs[s.order[taken]] >= costs[i] })
		return
	}
	s.resolve(func(i int, taken uint32) bool { return taken < s.rank[i] })
}
