// This file finds the members of communicators.
//
// A trace identifies a communicator by a handle of the process, the process's rank in it and its size. The other
// members follow from the calls that create communicators. The resolver executes these calls on all ranks in
// parallel, as MPI does.

package mpi

import (
	"cmp"
	"fmt"
	"iter"
	"math/bits"
	"slices"

	"github.com/tracedag/tracedag/dag"
)

// communicators are the communicators of a rank's file before their members are known.
type communicators struct {
	instances []instance
	byKey     map[keyInEpoch]int32
	lastKey   keyInEpoch // of the last look-up
	lastFound int32
	latest    map[commKey]int32
	epoch     int32 // number of communicators freed; only a free can change the meaning of a handle
	events    []commEvent

	parts       bool        // calls of call.parts
	histories   []uint64    // of the instances, see history
	meetings    [][]meeting // likewise, see resolver.meetings
	guessed     finding     // communicators with several candidates
	strided     finding     // communicators whose members follow from the ranks in them
	misnumbered finding     // communicators of all ranks in which the file's rank differs from its name
	setUp       finding     // calls that create communicators
	setUpFor    dag.Time    // time in setUp
}

type keyInEpoch struct {
	commKey
	epoch int32
}

// instance is a communicator as a rank identifies it in a part of its file.
type instance struct {
	commKey
	line  int64  // first use
	again bool   // another instance has the same commKey
	group *group // nil: unknown
}

// commEvent is a call of a rank that uses, creates or frees a communicator.
type commEvent struct {
	do         action // commInfo for the first use of an instance
	inst       int32  // the instance used, or the parent of a new one
	color, key int64  // of a split
	address    uint64 // of the variable that is set or freed
}

// communicator returns the number of the instance in a line.
func (r *rankReader) communicator(f *fields) (int32, error) {
	if !f.hasComm {
		r.second = true
		if !isWorldHandle(f.comm.handle) {
			return 0, r.fail(inCall, "a communicator as HANDLE,RANK,SIZE", fmt.Sprintf("only the handle %d, as "+
				"liballprof2 writes it: its traces do not include the members", int64(f.comm.handle)))
		}
		f.comm.rank, f.comm.size = r.rank, r.ranks
	}
	if r.library == unknownLibrary {
		r.library = libraryOf(f.comm.handle)
	}
	if f.comm.size > r.ranks {
		return 0, r.fail(inFiles, fmt.Sprintf("a file for each of the %d ranks of a communicator", f.comm.size),
			fmt.Sprintf("no file of rank %d", r.ranks))
	}
	key := keyInEpoch{f.comm, r.epoch}
	if key == r.lastKey && len(r.instances) > 0 {
		return r.lastFound, nil
	}
	i, known := r.byKey[key]
	if !known {
		if r.byKey == nil {
			r.byKey, r.latest = make(map[keyInEpoch]int32), make(map[commKey]int32)
		}
		i = int32(len(r.instances))
		earlier, again := r.latest[f.comm]
		if again {
			r.instances[earlier].again = true
		}
		r.instances = append(r.instances, instance{commKey: f.comm, line: r.line, again: again})
		r.byKey[key], r.latest[f.comm] = i, i
		r.events = append(r.events, commEvent{do: commInfo, inst: i})
	}
	r.lastKey, r.lastFound = key, i
	return i, nil
}

// isWorldHandle reports whether a Fortran handle is MPI_COMM_WORLD in Open MPI or MPICH.
func isWorldHandle(handle uint64) bool {
	return handle == 0 || handle == 0x44000000
}

// communicatorCall records a call that creates or frees a communicator.
func (r *rankReader) communicatorCall(c *call, f *fields) error {
	if c.do == commFree {
		r.epoch++
		r.events = append(r.events, commEvent{do: commFree, address: f.request})
		return nil
	}
	parent, err := r.communicator(f)
	if err != nil {
		return err
	}
	r.events = append(r.events, commEvent{do: c.do, inst: parent, color: f.numbers[0], key: f.numbers[1],
		address: f.request})
	return nil
}

// group is a communicator of the trace.
type group struct {
	members []int32
	set     int32 // number of the member set; equal sets share a number
	comm    int32 // in the DAG; -1 until it is used
	arrived []arrival
	witness *witness // first member known to use it that has a history; nil if none is known
	users   []witness
	met     []meeting // of the first users, by the collective
	counted int       // number of these users
}

// witness is a rank that uses a group, and its instance.
type witness struct{ rank, inst int32 }

// arrival is a member of a group that has reached a call which creates a communicator.
type arrival struct {
	rank  int32
	event *commEvent
}

func (g *group) has(rank int32, key commKey) bool {
	return g != nil && len(g.members) == int(key.size) && g.members[key.rank] == rank
}

// created is a communicator that a rank has created.
type created struct {
	group  *group
	order  int // among all that the rank has created
	handle uint64
	bound  bool // whether handle is known
	freed  bool
}

// place is the rank and the size of a communicator at one member.
type place struct{ rank, size int32 }

// alike are unused communicators of a rank with the same members.
type alike struct {
	set  int32
	made []*created // in order of creation; those before first may be in use or freed
}

// resolver finds the groups of all instances.
type resolver struct {
	ranks   []*rankReader
	world   *group
	cursors []commCursor
	stuck   []int32 // ranks that begin to use one of several candidates
	sets    map[string]int32
	members [][]int32  // by set
	clocks  []dag.Time // to add to the measured times of each rank; nil: not set yet
}

// commCursor is the progress of a rank.
type commCursor struct {
	next      int
	waits     bool
	made      int // number of communicators created
	byAddress map[uint64][]*created
	unused    map[*group]*created
	byPlace   map[place][]*alike
	byHandle  map[uint64]*group
	inWorld   bool // the handle of the world is known
}

// resolveCommunicators sets the groups of all instances, as far as they can be determined.
func resolveCommunicators(ranks []*rankReader) {
	world := make([]int32, len(ranks))
	for i := range world {
		world[i] = int32(i)
	}
	v := &resolver{ranks: ranks, cursors: make([]commCursor, len(ranks)), sets: map[string]int32{}}
	for i := range v.cursors {
		v.cursors[i] = commCursor{byAddress: map[uint64][]*created{}, unused: map[*group]*created{},
			byPlace: map[place][]*alike{}, byHandle: map[uint64]*group{}}
	}
	v.world = v.newGroup(world)
	v.world.comm = 0
	for work := slices.Clone(world); len(work) > 0; {
		for len(work) > 0 {
			rank := work[len(work)-1]
			work = v.advance(rank, work[:len(work)-1])
		}
		for by := byHandle; by <= byGuess && len(work) == 0; by++ {
			work = v.clarify(work, by)
		}
		if len(work) > 0 {
			continue
		}
		for rank := range v.cursors {
			if c := &v.cursors[rank]; c.waits { // if other ranks do not arrive, the communicators stay unknown
				c.waits = false
				g := v.ranks[rank].instances[v.ranks[rank].events[c.next-1].inst].group
				g.arrived = g.arrived[:0]
				work = append(work, int32(rank))
			}
		}
	}
	v.findWorld()
	v.matchRest()
	v.matchStrides()
}

// newGroup returns a new communicator of the given ranks.
func (v *resolver) newGroup(members []int32) *group {
	key := make([]byte, 0, 4*len(members))
	for _, rank := range members {
		key = append(key, byte(rank), byte(rank>>8), byte(rank>>16), byte(rank>>24))
	}
	set, known := v.sets[string(key)]
	if !known {
		set = int32(len(v.members))
		v.sets[string(key)] = set
		v.members = append(v.members, members)
	}
	return &group{members: v.members[set], set: set, comm: -1}
}

// create records that a rank has created a communicator, in which it has the given rank.
func (c *commCursor) create(g *group, number int, address uint64) {
	m := &created{group: g, order: c.made}
	c.made++
	c.byAddress[address] = append(c.byAddress[address], m)
	c.unused[g] = m
	at := place{int32(number), int32(len(g.members))}
	for _, a := range c.byPlace[at] {
		if a.set == g.set {
			a.made = append(a.made, m)
			return
		}
	}
	c.byPlace[at] = append(c.byPlace[at], &alike{g.set, []*created{m}})
}

// advance executes the events of a rank up to a call that other ranks must reach. It appends to work the ranks
// that can continue as a result.
func (v *resolver) advance(rank int32, work []int32) []int32 {
	r, c := v.ranks[rank], &v.cursors[rank]
	for c.next < len(r.events) {
		e := &r.events[c.next]
		c.next++
		switch e.do {
		case commInfo:
			if !v.use(rank, e.inst) {
				v.stuck = append(v.stuck, rank)
				return work
			}
		case commFree:
			c.free(e.address)
		case commSplit, commDup:
			g := r.instances[e.inst].group
			if g == nil {
				continue
			}
			g.arrived = append(g.arrived, arrival{rank, e})
			if len(g.arrived) < len(g.members) {
				c.waits = true
				return work
			}
			for _, a := range g.arrived {
				if a.rank != rank {
					v.cursors[a.rank].waits = false
					work = append(work, a.rank)
				}
			}
			v.make(g)
			g.arrived = g.arrived[:0]
		}
	}
	return work
}

// free removes the communicator in a variable.
func (c *commCursor) free(address uint64) {
	made := c.byAddress[address]
	if len(made) == 0 {
		return
	}
	m := made[len(made)-1]
	c.byAddress[address] = made[:len(made)-1]
	m.freed = true
	delete(c.unused, m.group)
	if m.bound && c.byHandle[m.handle] == m.group {
		delete(c.byHandle, m.handle)
	}
}

// make executes a call that all members of a group have reached.
func (v *resolver) make(g *group) {
	slices.SortFunc(g.arrived, func(x, y arrival) int { return cmp.Compare(x.rank, y.rank) })
	do := g.arrived[0].event.do
	for _, a := range g.arrived {
		if a.event.do != do {
			return // the calls differ
		}
	}
	position := make(map[int32]int, len(g.members))
	for i, rank := range g.members {
		position[rank] = i
	}
	if do == commDup {
		dup := &group{members: g.members, set: g.set, comm: -1}
		for _, a := range g.arrived {
			v.cursors[a.rank].create(dup, position[a.rank], a.event.address)
		}
		return
	}
	slices.SortFunc(g.arrived, func(x, y arrival) int {
		return cmp.Or(cmp.Compare(x.event.color, y.event.color), cmp.Compare(x.event.key, y.event.key),
			cmp.Compare(position[x.rank], position[y.rank]))
	})
	for rest := g.arrived; len(rest) > 0; {
		n := 1
		for n < len(rest) && rest[n].event.color == rest[0].event.color {
			n++
		}
		if rest[0].event.color >= 0 { // MPI_UNDEFINED is negative
			members := make([]int32, n)
			for i, a := range rest[:n] {
				members[i] = a.rank
			}
			part := v.newGroup(members)
			for i, a := range rest[:n] {
				v.cursors[a.rank].create(part, i, a.event.address)
			}
		}
		rest = rest[n:]
	}
}

// use finds the group of an instance that a rank begins to use. It returns false if there are several candidates,
// so that the rank cannot continue.
func (v *resolver) use(rank, inst int32) bool {
	in, c := &v.ranks[rank].instances[inst], &v.cursors[rank]
	g := c.byHandle[in.handle]
	switch {
	case g.has(rank, in.commKey):
	case !c.inWorld && v.world.has(rank, in.commKey):
		g, c.inWorld = v.world, true
	default:
		candidates := c.candidates(in.commKey)
		switch {
		case len(candidates) > 1:
			return false
		case len(candidates) == 1:
			v.bind(rank, inst, candidates[0].made[0])
			return true
		case in.size > 1:
			return true // unknown
		}
		g = v.newGroup([]int32{rank})
	}
	in.group = g
	c.byHandle[in.handle] = g
	return true
}

// candidates returns the unused communicators of a rank that match an instance.
func (c *commCursor) candidates(key commKey) []*alike {
	at := place{key.rank, key.size}
	left := slices.DeleteFunc(c.byPlace[at], func(a *alike) bool {
		for len(a.made) > 0 && (a.made[0].bound || a.made[0].freed) {
			a.made = a.made[1:]
		}
		return len(a.made) == 0
	})
	c.byPlace[at] = left
	return left
}

// bind assigns an instance to a communicator that its rank has created.
func (v *resolver) bind(rank, inst int32, m *created) {
	in, c := &v.ranks[rank].instances[inst], &v.cursors[rank]
	m.bound, m.handle = true, in.handle
	delete(c.unused, m.group)
	in.group = m.group
	c.byHandle[in.handle] = m.group
	m.group.users = append(m.group.users, witness{rank, inst})
	if m.group.witness == nil && v.ranks[rank].hasHistory(inst) {
		m.group.witness = &witness{rank, inst}
	}
}

// criterion is a rule to select one of several communicators.
type criterion uint8

const (
	byHandle criterion = iota // other members use the same handle
	byTime                    // only this one's collectives overlap
	byGuess
)

// clarify appends to work the stuck ranks for which choose finds a communicator; by a guess, all of them.
func (v *resolver) clarify(work []int32, by criterion) []int32 {
	slices.Sort(v.stuck)
	v.stuck = slices.DeleteFunc(v.stuck, func(rank int32) bool {
		r := v.ranks[rank]
		inst := r.events[v.cursors[rank].next-1].inst
		m := v.choose(rank, inst, by)
		if m == nil {
			return false
		}
		v.bind(rank, inst, m)
		work = append(work, rank)
		return true
	})
	return work
}

// choose selects the communicator of an instance from those that its rank has created, or returns nil if the criterion
// leaves several. It excludes communicators on which other members call other collectives. Among the rest it prefers
// one for which other members have the same handle, because handles are often equal on all ranks, then the only one
// that can be in the measured times.
func (v *resolver) choose(rank, inst int32, by criterion) *created {
	r, c := v.ranks[rank], &v.cursors[rank]
	in := &r.instances[inst]
	possible := func(m *created) bool {
		w := m.group.witness
		return w == nil || !r.hasHistory(inst) || v.ranks[w.rank].history(w.inst) == r.history(inst)
	}
	candidates := c.candidates(in.commKey)
	one := slices.IndexFunc(candidates, func(a *alike) bool { return a.first(possible) != nil })
	if one < 0 { // some of the files are wrong
		possible = func(*created) bool { return true }
		one = 0
	}
	if !slices.ContainsFunc(candidates[one+1:], func(a *alike) bool { return a.first(possible) != nil }) {
		return candidates[one].first(possible)
	}
	switch by {
	case byHandle:
		return v.sameHandle(rank, inst, candidates, possible)
	case byTime:
		m, sole := v.mostOverlapping(rank, inst, candidates, possible)
		if !sole {
			return nil
		}
		return m
	}
	r.guessed.add(in.line)
	m, _ := v.mostOverlapping(rank, inst, candidates, possible)
	return m
}

// sameHandle returns the only candidate for which another member has the same handle, or nil.
func (v *resolver) sameHandle(rank, inst int32, candidates []*alike, possible func(*created) bool) (same *created) {
	c := &v.cursors[rank]
	handle := v.ranks[rank].instances[inst].handle
	for _, a := range candidates {
		for _, other := range v.members[a.set] {
			m := c.unused[v.cursors[other].byHandle[handle]]
			if m != nil && m.group.set == a.set && possible(m) {
				if same != nil && same != m {
					return nil
				}
				same = m
			}
		}
	}
	return same
}

// first returns the first unused and possible communicator, or nil if there is none among many.
func (a *alike) first(possible func(*created) bool) *created {
	for m := range a.all(possible) {
		return m
	}
	return nil
}

// all iterates over the unused and possible communicators among the first ones.
func (a *alike) all(possible func(*created) bool) iter.Seq[*created] {
	const many = 64
	return func(yield func(*created) bool) {
		for _, m := range a.made[:min(many, len(a.made))] {
			if !m.bound && !m.freed && possible(m) && !yield(m) {
				return
			}
		}
	}
}

// hasHistory reports whether all calls on an instance are known.
func (r *rankReader) hasHistory(inst int32) bool {
	return r.whole && len(r.problems.list) == 0 && !r.instances[inst].again
}

// history returns a hash of the collectives that a rank calls on an instance. All members have the same history.
func (r *rankReader) history(inst int32) uint64 {
	if r.histories == nil {
		r.histories = make([]uint64, len(r.instances))
		d := &r.dag
		for i, kind := range d.Kind {
			if kind != dag.Coll {
				continue
			}
			subkind := d.Subkind.At(i)
			call := uint64(subkind)
			if subkind.Rooted() {
				call |= uint64(d.Peer.At(i)+1) << 8
			}
			const prime = 0x9e3779b97f4a7c15
			h := &r.histories[d.Comm.At(i)]
			*h = bits.RotateLeft64((*h^call)*prime, 29)
		}
	}
	return r.histories[inst]
}

// findWorld assigns the first communicator of all ranks to the world on ranks whose number in it differs from
// their file name, if the other ranks' numbers agree. It reports whether it did.
func (v *resolver) findWorld() {
	known := slices.ContainsFunc(v.cursors, func(c commCursor) bool { return c.inWorld })
	for rank, r := range v.ranks {
		if !known || v.cursors[rank].inWorld {
			continue
		}
		full := slices.IndexFunc(r.instances, func(in instance) bool { return int(in.size) == len(v.ranks) })
		if full >= 0 && r.instances[full].group == nil {
			handle := r.instances[full].handle
			for i := range r.instances {
				if in := &r.instances[i]; in.handle == handle && int(in.size) == len(v.ranks) && in.group == nil {
					in.group = v.world
					r.misnumbered.add(in.line)
				}
			}
		}
	}
}

// matchRest finds the groups of the instances that no call explains: those of all ranks by their order; others by
// handle, if as many ranks use it as it has members, each with a different rank in it.
func (v *resolver) matchRest() {
	type family struct {
		handle uint64
		size   int32
		order  int32
	}
	index := map[family]int{}
	var families [][]*instance
	var users [][]int32
	for rank, r := range v.ranks {
		full := int32(0)
		for i := range r.instances {
			in := &r.instances[i]
			if in.group != nil {
				continue
			}
			key := family{handle: in.handle, size: in.size}
			if int(in.size) == len(v.ranks) {
				full++
				key = family{size: in.size, order: full}
			}
			k, known := index[key]
			if !known {
				k = len(families)
				index[key] = k
				families, users = append(families, nil), append(users, nil)
			}
			families[k] = append(families[k], in)
			users[k] = append(users[k], int32(rank))
		}
	}
	for k, instances := range families {
		size := int(instances[0].size)
		if len(instances) != size {
			continue
		}
		g := &group{members: make([]int32, size), comm: -1}
		for i := range g.members {
			g.members[i] = -1
		}
		complete := true
		for i, in := range instances {
			twice := i > 0 && users[k][i-1] == users[k][i]
			complete = complete && !twice && g.members[in.rank] < 0
			g.members[in.rank] = users[k][i]
		}
		if complete {
			for _, in := range instances {
				in.group = g
			}
		}
	}
}

// matchStrides finds the groups of unknown instances from the ranks in them, as MPI_Cart_sub and MPI_Comm_create
// number them: the members of a row, column or range are a stride apart. The k-th unknown instances of a size on all
// ranks that have one, and have such a call, belong together if exactly one stride explains them all, and all members
// call the same collectives.
func (v *resolver) matchStrides() {
	type call struct{ size, order int32 }
	index := map[call]int{}
	var calls [][]witness
	for rank, r := range v.ranks {
		orders := map[int32]int32{}
		for i := range r.instances {
			size := r.instances[i].size
			if r.instances[i].group != nil || !r.parts {
				continue
			}
			key := call{size, orders[size]}
			orders[size]++
			k, known := index[key]
			if !known {
				k = len(calls)
				index[key], calls = k, append(calls, nil)
			}
			calls[k] = append(calls[k], witness{int32(rank), int32(i)})
		}
	}
	type use struct {
		rank int32
		key  commKey
	}
	earlier := map[use]*group{} // communicators of earlier parts of the files
	at := make([]*witness, len(v.ranks))
	for _, users := range calls {
		clear(at)
		for i := range users {
			at[users[i].rank] = &users[i]
		}
		stride := v.stride(users, at)
		if stride == 0 || !v.agree(users, at, stride) {
			continue
		}
		for _, first := range users {
			in := v.instance(first)
			if in.rank > 0 {
				continue
			}
			members := make([]int32, in.size)
			for j := range members {
				members[j] = first.rank + int32(j)*stride
			}
			g := earlier[use{first.rank, in.commKey}]
			if g == nil || !slices.Equal(g.members, members) {
				g = v.newGroup(members)
			}
			for _, rank := range members {
				member := v.instance(*at[rank])
				member.group = g
				earlier[use{rank, member.commKey}] = g
				v.ranks[rank].strided.add(member.line)
			}
		}
	}
}

func (v *resolver) instance(of witness) *instance {
	return &v.ranks[of.rank].instances[of.inst]
}

// stride returns the only distance of members that fits the ranks of all users in their communicators, 0 if there is
// none or more than one. at are the users by rank.
func (v *resolver) stride(users []witness, at []*witness) (found int32) {
	size := v.instance(users[0]).size
	for stride := int32(1); int(stride)*int(size-1) < len(at); stride++ {
		has := func(rank, number int32) bool {
			return rank >= 0 && int(rank) < len(at) && at[rank] != nil && v.instance(*at[rank]).rank == number
		}
		if slices.ContainsFunc(users, func(u witness) bool {
			number := v.instance(u).rank
			return number > 0 && !has(u.rank-stride, number-1) || number < size-1 && !has(u.rank+stride, number+1)
		}) {
			continue
		}
		if found > 0 {
			return 0
		}
		found = stride
	}
	return found
}

// agree reports whether each user calls the same collectives as the one that is a stride before it, as far as all calls
// are known.
func (v *resolver) agree(users []witness, at []*witness, stride int32) bool {
	return !slices.ContainsFunc(users, func(u witness) bool {
		if v.instance(u).rank == 0 {
			return false
		}
		before := at[u.rank-stride]
		return v.ranks[u.rank].hasHistory(u.inst) && v.ranks[before.rank].hasHistory(before.inst) &&
			v.ranks[u.rank].history(u.inst) != v.ranks[before.rank].history(before.inst)
	})
}

// number assigns numbers in the DAG to the groups of ops, in the order of ranks and first uses.
func number(ranks []*rankReader) []dag.Comm {
	comms := []dag.Comm{dag.World(len(ranks))}
	for _, r := range ranks {
		used := make([]bool, len(r.instances))
		for i := range r.dag.Kind {
			if r.dag.Kind[i] != dag.Calc {
				used[r.dag.Comm.At(i)] = true
			}
		}
		for i := range r.instances {
			if g := r.instances[i].group; used[i] && g != nil && g.comm < 0 {
				g.comm = int32(len(comms))
				comms = append(comms, dag.NewComm("", g.members))
			}
		}
	}
	return comms
}
