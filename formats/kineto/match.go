// This file finds which communications of different ranks belong together.

package kineto

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/tracedag/tracedag/dag"
	"github.com/tracedag/tracedag/formats/format"
)

// comm is a communicator of the job.
type comm struct {
	name    string
	members []int32 // ranks of the trace
	size    int     // in the job, with members that have no file
}

// setComms assigns each group of each recording to a communicator. Communicator 0 has all ranks.
func (j *job) setComms() {
	j.comms = []comm{{size: j.world}}
	for i := range j.ranks {
		j.comms[0].members = append(j.comms[0].members, int32(i))
	}
	known := make(map[string]int32)
	for i := range j.ranks {
		t := j.ranks[i].talk
		j.setOrdinals(&j.ranks[i])
		for k := range t.groups {
			g := &t.groups[k]
			if g.unknown {
				continue
			}
			key := fmt.Sprint(g.members, " ", g.about, " ", g.ordinal)
			n, ok := known[key]
			if !ok {
				n = int32(len(j.comms))
				known[key] = n
				j.comms = append(j.comms, j.newComm(g))
			}
			g.comm = n
		}
	}
}

// newComm returns the communicator of a group, with the members that have files.
func (j *job) newComm(g *group) comm {
	c := comm{name: g.name, size: len(g.members)}
	if g.about != "" && g.about != "undefined" {
		c.name = strings.TrimSpace(g.name + " " + g.about)
	}
	if g.members == nil {
		c.members, c.size = j.comms[0].members, j.world
		return c
	}
	for _, m := range g.members {
		if at := j.rankOf(m); at >= 0 && !slices.Contains(c.members, at) {
			c.members = append(c.members, at)
		}
	}
	return c
}

// setOrdinals numbers the groups of a rank with the same members and description by their names.
func (j *job) setOrdinals(r *rank) {
	t := r.talk
	names := make(map[string][]string)
	key := func(members []int32, about string) string {
		if members == nil || len(members) == j.world && isAll(members) {
			return "all " + about
		}
		return fmt.Sprint(members, " ", about)
	}
	for k := range t.groups {
		if g := &t.groups[k]; !g.unknown {
			if g.members != nil && len(g.members) == j.world && isAll(g.members) {
				g.members = nil
			}
			of := key(g.members, g.about)
			names[of] = append(names[of], g.name)
		}
	}
	for i := range r.meta.groups {
		p := &r.meta.groups[i]
		if p.ranks == nil && !p.all {
			continue
		}
		of := key(p.ranks, p.about)
		if len(names[of]) > 0 {
			names[of] = append(names[of], p.name)
		}
	}
	for of := range names {
		slices.SortFunc(names[of], compareNames)
		names[of] = slices.Compact(names[of])
	}
	for k := range t.groups {
		if g := &t.groups[k]; !g.unknown {
			g.ordinal = int32(slices.Index(names[key(g.members, g.about)], g.name))
		}
	}
}

func isAll(members []int32) bool {
	for i, m := range members {
		if int(m) != i {
			return false
		}
	}
	return true
}

// compareNames compares names of groups, numbers by value.
func compareNames(a, b string) int {
	x, errX := strconv.ParseUint(a, 10, 63)
	y, errY := strconv.ParseUint(b, 10, 63)
	if errX == nil && errY == nil {
		return cmp.Compare(x, y)
	}
	return cmp.Compare(a, b)
}

// end of a communication: of a collective on a communicator, or of messages from a rank to another one.
type meeting struct {
	comm     int32
	src, dst int32 // -1: a collective
}

// participant is the communications of a rank at a meeting, in order.
type participant struct {
	rank int32
	list []int32 // of the rank's talk
}

// match finds the instances of all communications.
func (j *job) match() error {
	j.setPeers()
	meetings := make(map[meeting][]participant)
	for i := range j.ranks {
		t := j.ranks[i].talk
		for k := range t.list {
			c := &t.list[k]
			m, ok := j.meeting(int32(i), c)
			if !ok {
				c.unrelated = true
				continue
			}
			list := meetings[m]
			if n := len(list); n == 0 || list[n-1].rank != int32(i) {
				list = append(list, participant{rank: int32(i)})
			}
			last := &list[len(list)-1]
			last.list = append(last.list, int32(k))
			meetings[m] = list
		}
	}
	keys := slices.SortedFunc(maps.Keys(meetings), func(a, b meeting) int {
		return cmp.Or(cmp.Compare(a.comm, b.comm), cmp.Compare(a.src, b.src), cmp.Compare(a.dst, b.dst))
	})
	for _, m := range keys {
		if err := j.matchOne(m, meetings[m]); err != nil {
			return err
		}
		if m.src < 0 {
			j.dropUnordered(meetings[m])
			j.setUneven(meetings[m])
			j.setCounts(meetings[m], &j.comms[m.comm])
		}
	}
	return nil
}

// meeting returns where a communication of a rank takes place; ok is false if it has no partners in the trace.
func (j *job) meeting(at int32, c *communication) (m meeting, ok bool) {
	comm := j.ranks[at].talk.groups[c.group].comm
	_, isCollective := c.op.subkind()
	switch {
	case c.op <= opSendRecv:
		return m, false
	case isCollective:
		x := &j.comms[comm]
		return meeting{comm, -1, -1}, x.size > 1 && slices.Contains(x.members, at)
	case c.peer < 0:
		j.partnerless++
		return m, false
	}
	peer := j.rankOf(c.peer)
	if peer < 0 {
		j.partnerless++
		return m, false
	}
	c.peer = peer
	if c.op == opSend {
		return meeting{comm, at, peer}, true
	}
	return meeting{comm, peer, at}, true
}

// setUneven makes an alltoall uneven on all members if its parts differ on one, or its sizes between members.
func (j *job) setUneven(all []participant) {
	sizes, uneven := make(map[int32]int64), make(map[int32]bool)
	each := func(do func(c *communication)) {
		for _, p := range all {
			for k := range p.list {
				c := j.at(p, k)
				if s, _ := c.op.subkind(); !c.unrelated && (s == dag.Alltoall || s == dag.Alltoallv) {
					do(c)
				}
			}
		}
	}
	each(func(c *communication) {
		size, seen := sizes[c.instance]
		if c.op == collective(dag.Alltoallv) || seen && size != c.bytes {
			uneven[c.instance] = true
		}
		sizes[c.instance] = c.bytes
	})
	each(func(c *communication) {
		if uneven[c.instance] {
			c.op = collective(dag.Alltoallv)
		}
	})
}

// dropUnordered drops collectives that some member executed before an earlier one: the order of ops is that of
// collectives.
func (j *job) dropUnordered(all []participant) {
	late := make(map[int32]bool)
	for _, p := range all {
		slices.Sort(p.list)
		highest, last := int32(-1), int32(-1)
		for k := range p.list {
			c := j.at(p, k)
			if c.unrelated {
				continue
			}
			if c.instance < highest && c.at != last {
				late[c.instance] = true
			}
			highest, last = max(highest, c.instance), c.at
		}
	}
	if len(late) == 0 {
		return
	}
	for _, p := range all {
		for k := range p.list {
			if c := j.at(p, k); !c.unrelated && late[c.instance] {
				j.drop(p, k, k+1)
			}
		}
	}
}

// matchOne matches the communications of one meeting.
func (j *job) matchOne(m meeting, all []participant) error {
	expected := len(j.comms[m.comm].members)
	if m.src >= 0 {
		if expected = 2; m.src == m.dst {
			return j.matchSelf(all[0])
		}
	}
	if len(all) < expected {
		for _, p := range all {
			j.drop(p, 0, len(p.list))
		}
		return nil
	}
	if j.numbered(all) {
		return j.matchNumbers(m, all)
	}
	return j.matchOrder(m, all)
}

// matchSelf matches messages of a rank to itself, a send and a receive at a time.
func (j *job) matchSelf(p participant) error {
	var n [2]int32
	list := j.ranks[p.rank].talk.list
	for _, k := range p.list {
		end := list[k].op - opSend
		list[k].instance = n[end]
		n[end]++
	}
	for _, k := range p.list {
		list[k].unrelated = list[k].instance >= min(n[0], n[1])
	}
	return nil
}

func (j *job) at(p participant, k int) *communication { return &j.ranks[p.rank].talk.list[p.list[k]] }

// drop makes communications of a participant unrelated: their partners are not in the trace.
func (j *job) drop(p participant, from, to int) {
	for k := from; k < to; k++ {
		j.at(p, k).unrelated = true
		j.dropped++
	}
}

// numbered reports whether all communications have ascending numbers.
func (j *job) numbered(all []participant) bool {
	for _, p := range all {
		slices.SortStableFunc(p.list, func(a, b int32) int {
			list := j.ranks[p.rank].talk.list
			if list[a].seq < 0 || list[b].seq < 0 {
				return 0
			}
			return cmp.Compare(list[a].seq, list[b].seq)
		})
		last := int64(-1)
		for k := range p.list {
			seq := j.at(p, k).seq
			if seq <= last {
				slices.Sort(p.list)
				return false
			}
			last = seq
		}
	}
	return true
}

// matchNumbers matches communications by their numbers.
func (j *job) matchNumbers(m meeting, all []participant) error {
	members := make(map[int64]int)
	for _, p := range all {
		for k := range p.list {
			members[j.at(p, k).seq]++
		}
	}
	var common []int64
	for seq, n := range members {
		if n == len(all) {
			common = append(common, seq)
		}
	}
	slices.Sort(common)
	if len(common) == 0 && m.src >= 0 { // both ends may count messages differently
		return j.matchOrder(m, all)
	}
	for _, p := range all {
		for k := range p.list {
			c := j.at(p, k)
			n, found := slices.BinarySearch(common, c.seq)
			if found {
				c.instance = int32(n)
				if err := j.agree(m, all[0], p, c); err != nil {
					return err
				}
				continue
			}
			if n > 0 && n < len(common) && m.src >= 0 {
				return j.matchOrder(m, all)
			}
			if n > 0 && n < len(common) {
				if err := j.hole(m, all, p, c); err != nil {
					return err
				}
			}
			j.drop(p, k, k+1)
		}
	}
	return nil
}

// where describes a meeting for messages.
func (j *job) where(m meeting) string {
	name := "of all ranks"
	if m.comm > 0 {
		name = strconv.Quote(j.comms[m.comm].name)
	}
	if m.src >= 0 {
		return fmt.Sprintf("group %s: messages from rank %d to rank %d", name, j.ranks[m.src].global,
			j.ranks[m.dst].global)
	}
	return "group " + name
}

// hole reports a collective that a rank lacks although it has earlier and later ones, unless its file is damaged.
func (j *job) hole(m meeting, all []participant, p participant, c *communication) error {
	lacks := int32(0)
	for _, q := range all {
		if !slices.ContainsFunc(q.list, func(k int32) bool { return j.ranks[q.rank].talk.list[k].seq == c.seq }) {
			if j.ranks[q.rank].damaged() {
				return nil // its file is reported
			}
			lacks = q.rank
		}
	}
	err := format.FileErrorf(j.ranks[p.rank].name, "%s: rank %d has %v number %d, which rank %d lacks between others",
		j.where(m), j.ranks[p.rank].global, c, c.seq, j.ranks[lacks].global)
	return j.problem(err, "such communications become computation")
}

// problem returns an error, or warns about it if the reader is lenient.
func (j *job) problem(err error, skipped string) error {
	if !j.o.lenient {
		return fmt.Errorf("%w; with --lenient %s", err, skipped)
	}
	j.o.warn("%v; %s", err, skipped)
	return nil
}

// agree checks that a communication agrees with that of the first participant.
func (j *job) agree(m meeting, first, p participant, c *communication) error {
	k, _ := slices.BinarySearchFunc(first.list, c.seq, func(k int32, seq int64) int {
		return cmp.Compare(j.ranks[first.rank].talk.list[k].seq, seq)
	})
	if f := j.at(first, k); !f.like(c) {
		return j.differ(m, first, p, f, c, k)
	}
	return nil
}

// like reports whether two communications can be the same: equal kinds, and equal sizes if all members have the same.
func (c *communication) like(d *communication) bool {
	kind := func(o operation) operation {
		switch o {
		case opRecv:
			return opSend
		case collective(dag.Alltoallv):
			return collective(dag.Alltoall)
		}
		return o
	}
	return kind(c.op) == kind(d.op) && (!c.sized || !d.sized || !c.op.sized() || !d.op.sized() || c.bytes == d.bytes)
}

// String describes a communication for messages.
func (c *communication) String() string {
	name := [...]string{"an unknown communication", "no communication", "sends and receives", "send", "recv"}
	text := ""
	if s, ok := c.op.subkind(); ok {
		text = s.String()
	} else {
		text = name[c.op]
	}
	if !c.sized {
		return text
	}
	return fmt.Sprintf("%s of %d bytes", text, c.bytes)
}

func (j *job) differ(m meeting, first, p participant, f, c *communication, at int) error {
	return format.FileErrorf(j.ranks[p.rank].name, "%s: communication %d (from 0) is %v on rank %d, and %v on rank "+
		"%d: expected traces of the same steps with all their events", j.where(m), at, f, j.ranks[first.rank].global, c,
		j.ranks[p.rank].global)
}

// matchOrder matches communications by their order: from the start if all agree, else over the longest common part.
func (j *job) matchOrder(m meeting, all []participant) error {
	first := all[0]
	from, to := 0, len(first.list) // of the first that all have
	shifts := make([]int, len(all))
	for i, p := range all[1:] {
		shift, ok := j.align(first, p)
		if !ok {
			if slices.ContainsFunc(all, func(p participant) bool { return j.ranks[p.rank].damaged() }) {
				for _, p := range all {
					j.drop(p, 0, len(p.list))
				}
				return nil
			}
			k := 0
			for k < min(len(first.list), len(p.list))-1 && j.at(first, k).like(j.at(p, k)) {
				k++
			}
			return j.differ(m, first, p, j.at(first, k), j.at(p, k), k)
		}
		shifts[i+1] = shift
		from, to = max(from, shift), min(to, shift+len(p.list))
	}
	to = max(from, to)
	for i, p := range all {
		for k := range p.list {
			at := k + shifts[i]
			if at < from || at >= to {
				j.drop(p, k, k+1)
			} else {
				j.at(p, k).instance = int32(at - from)
			}
		}
	}
	return nil
}

// mostCompared bounds the comparisons to align two lists, so that periodic ones do not take quadratic time.
const mostCompared = 1 << 24

// align returns the number by which the communications of p are later in the list of first: that with the longest
// part in common, which must be half of the shorter list; among those, the one with the closest ends.
func (j *job) align(first, p participant) (shift int, ok bool) {
	n, k := len(first.list), len(p.list)
	if n == k && j.agrees(first, p, 0) == n {
		return 0, true
	}
	best, distance, left := (min(n, k)+1)/2-1, math.Inf(1), mostCompared
	for overlap := min(n, k); overlap > 0 && overlap >= best && left > 0; overlap-- {
		var shifts []int
		if overlap == min(n, k) {
			for s := min(0, n-k); s <= max(0, n-k); s++ {
				shifts = append(shifts, s)
			}
		} else {
			shifts = []int{n - overlap, overlap - k}
		}
		for _, s := range shifts {
			compared := j.agrees(first, p, s)
			left -= compared + 1
			if compared < overlap {
				continue
			}
			if d := j.distance(first, p, s); overlap > best || d < distance {
				best, distance, shift, ok = overlap, d, s, true
			}
			if left <= 0 {
				break
			}
		}
	}
	return shift, ok
}

// agrees returns the number of communications that agree, from the first that both have, if those of p are later.
func (j *job) agrees(first, p participant, shift int) int {
	n := 0
	for k := max(0, -shift); k < len(p.list) && k+shift < len(first.list); k++ {
		if !j.at(first, k+shift).like(j.at(p, k)) {
			return n
		}
		n++
	}
	return n
}

// distance returns the mean distance of the ends of communications.
func (j *job) distance(first, p participant, shift int) float64 {
	sum, n := 0.0, 0
	for k := max(0, -shift); k < len(p.list) && k+shift < len(first.list); k++ {
		sum += math.Abs(float64(j.endOf(first.rank, j.at(first, k+shift)) - j.endOf(p.rank, j.at(p, k))))
		n++
	}
	return sum / float64(max(n, 1))
}

// endOf returns the end of a communication on the clock of the job.
func (j *job) endOf(at int32, c *communication) dag.Time {
	r := &j.ranks[at]
	return r.ops[c.at].end() + r.offset
}

// setPeers finds the partners of messages that annotations name.
func (j *job) setPeers() {
	var unknown []message
	for i := range j.ranks {
		t := j.ranks[i].talk
		for k := range t.list {
			c := &t.list[k]
			if c.op != opSend && c.op != opRecv || c.peer >= 0 {
				continue
			}
			if g := &t.groups[c.group]; !g.unknown {
				if members := g.members; members == nil {
					c.peer = c.peerInside
				} else if int(c.peerInside) < len(members) && c.peerInside >= 0 {
					c.peer = members[c.peerInside]
				}
				continue
			}
			unknown = append(unknown, message{int32(i), c, j.endOf(int32(i), c)})
		}
	}
	j.pairByTime(unknown)
}

// message is an end of a message with an unknown partner.
type message struct {
	rank int32
	*communication
	end dag.Time
}

// nearEnds is the largest distance of the ends of a message on two clocks, and mostNear the number of candidates.
const (
	nearEnds = dag.Millisecond
	mostNear = 64
)

// pairByTime finds the partners of messages without a known group: a send and a receive of the same size whose kernels
// end together, the closest ones first.
func (j *job) pairByTime(all []message) {
	var sends, recvs []message
	for _, m := range all {
		if m.op == opSend {
			sends = append(sends, m)
		} else {
			recvs = append(recvs, m)
		}
	}
	slices.SortStableFunc(recvs, func(a, b message) int { return cmp.Compare(a.end, b.end) })
	type pair struct {
		send, recv int
		distance   dag.Time
	}
	var pairs []pair
	for i, s := range sends {
		at, _ := slices.BinarySearchFunc(recvs, s.end-nearEnds, func(m message, t dag.Time) int {
			return cmp.Compare(m.end, t)
		})
		near := 0
		for ; at < len(recvs) && recvs[at].end <= s.end+nearEnds && near < mostNear; at++ {
			if r := recvs[at]; r.rank != s.rank && r.like(s.communication) {
				pairs = append(pairs, pair{i, at, max(r.end-s.end, s.end-r.end)})
				near++
			}
		}
	}
	slices.SortStableFunc(pairs, func(a, b pair) int { return cmp.Compare(a.distance, b.distance) })
	for _, p := range pairs {
		if s, r := sends[p.send], recvs[p.recv]; s.peer < 0 && r.peer < 0 {
			s.peer, r.peer = j.ranks[r.rank].global, j.ranks[s.rank].global
		}
	}
}
