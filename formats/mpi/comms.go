// This file finds the members of communicators.
//
// A trace names a communicator by a handle of the process at hand, the process's rank in it and its size. Who the
// others are shows from the calls that make communicators: those are followed on all ranks at the same time, as MPI
// executes them.

package mpi

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/tracedag/tracedag/dag"
)

// communicators are those of a rank's file, before their members are known.
type communicators struct {
	instances []instance
	byKey     map[keyInEpoch]int32
	lastKey   keyInEpoch // of the last look-up
	lastFound int32
	epoch     int32 // how many communicators were freed: only then can a handle mean something new
	events    []commEvent

	misnumbered finding // communicators of all ranks in which the file's rank is not that of its name
}

type keyInEpoch struct {
	commKey
	epoch int32
}

// instance is a communicator as a rank names it in a part of its file.
type instance struct {
	commKey
	line  int64  // where it is first used
	group *group // nil: not known
}

// commEvent is something that a rank does with communicators.
type commEvent struct {
	do         action // commInfo for the first use of an instance
	inst       int32  // used, or the one that a new one is made from
	color, key int64  // of a split
	address    uint64 // of the variable that is set or freed
}

// communicator returns the number of the instance that a line names.
func (r *rankReader) communicator(f *fields) (int32, error) {
	if !f.hasComm {
		r.second = true
		if !isWorldHandle(f.comm.handle) {
			return 0, r.fail(inCall, "a communicator as HANDLE,RANK,SIZE", fmt.Sprintf("the handle %d alone, as liballprof2 "+
				"writes it: who its members are is not in its traces", int64(f.comm.handle)))
		}
		f.comm.rank, f.comm.size = r.rank, r.ranks
	}
	if f.comm.size > r.ranks {
		return 0, r.fail(inFiles, fmt.Sprintf("a file for each of the %d ranks of a communicator", f.comm.size),
			fmt.Sprintf("none of rank %d", r.ranks))
	}
	key := keyInEpoch{f.comm, r.epoch}
	if key == r.lastKey && len(r.instances) > 0 {
		return r.lastFound, nil
	}
	i, known := r.byKey[key]
	if !known {
		if r.byKey == nil {
			r.byKey = make(map[keyInEpoch]int32)
		}
		i = int32(len(r.instances))
		r.instances = append(r.instances, instance{commKey: f.comm, line: r.line})
		r.byKey[key] = i
		r.events = append(r.events, commEvent{do: commInfo, inst: i})
	}
	r.lastKey, r.lastFound = key, i
	return i, nil
}

// isWorldHandle reports whether a Fortran handle is that of MPI_COMM_WORLD, in Open MPI or MPICH.
func isWorldHandle(handle uint64) bool {
	return handle == 0 || handle == 0x44000000
}

// communicatorCall notes a call that makes or frees a communicator.
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
	comm    int32 // in the DAG; -1 until it is used
	arrived []arrival
}

// arrival is a member of a group that has come to a call which makes a communicator of it.
type arrival struct {
	rank  int32
	event *commEvent
}

func (g *group) has(rank int32, key commKey) bool {
	return g != nil && len(g.members) == int(key.size) && g.members[key.rank] == rank
}

// created is a communicator that a rank has made.
type created struct {
	group   *group
	address uint64
	handle  uint64
	bound   bool // whether handle is known
}

// resolver finds the groups of all instances.
type resolver struct {
	ranks   []*rankReader
	world   *group
	cursors []commCursor
}

// commCursor is how far a rank has come.
type commCursor struct {
	next     int
	waits    bool
	made     []created
	byHandle map[uint64]*group
	inWorld  bool    // the handle of the world is known
	unclear  []int32 // instances that may be one of several of made
}

// resolveCommunicators sets the groups of all instances, as far as they can be known.
func resolveCommunicators(ranks []*rankReader) {
	world := make([]int32, len(ranks))
	for i := range world {
		world[i] = int32(i)
	}
	v := &resolver{ranks: ranks, world: &group{members: world}, cursors: make([]commCursor, len(ranks))}
	work := slices.Clone(world)
	for len(work) > 0 {
		for len(work) > 0 {
			rank := work[len(work)-1]
			work = v.advance(rank, work[:len(work)-1])
		}
		for v.clarify() {
		}
		for rank := range v.cursors {
			if c := &v.cursors[rank]; c.waits { // for ranks that do not come: what they were to make stays unknown
				c.waits = false
				g := v.ranks[rank].instances[v.ranks[rank].events[c.next-1].inst].group
				g.arrived = g.arrived[:0]
				work = append(work, int32(rank))
			}
		}
	}
	v.findWorld()
	v.matchRest()
}

// advance executes what a rank does up to a call that others have to come to, and appends to work the ranks that can go
// on because of it.
func (v *resolver) advance(rank int32, work []int32) []int32 {
	r, c := v.ranks[rank], &v.cursors[rank]
	for c.next < len(r.events) {
		e := &r.events[c.next]
		c.next++
		switch e.do {
		case commInfo:
			v.use(rank, e.inst)
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

// free forgets the communicator in a variable.
func (c *commCursor) free(address uint64) {
	for i := len(c.made) - 1; i >= 0; i-- {
		if m := c.made[i]; m.address == address {
			if m.bound && c.byHandle[m.handle] == m.group {
				delete(c.byHandle, m.handle)
			}
			c.made = slices.Delete(c.made, i, i+1)
			return
		}
	}
}

// make executes a call that all members of a group have come to.
func (v *resolver) make(g *group) {
	slices.SortFunc(g.arrived, func(x, y arrival) int { return cmp.Compare(x.rank, y.rank) })
	do := g.arrived[0].event.do
	for _, a := range g.arrived {
		if a.event.do != do {
			return // they do different things
		}
	}
	if do == commDup {
		dup := &group{members: g.members, comm: -1}
		for _, a := range g.arrived {
			c := &v.cursors[a.rank]
			c.made = append(c.made, created{group: dup, address: a.event.address})
		}
		return
	}
	position := make(map[int32]int, len(g.members))
	for i, rank := range g.members {
		position[rank] = i
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
			part := &group{members: make([]int32, n), comm: -1}
			for i, a := range rest[:n] {
				part.members[i] = a.rank
				c := &v.cursors[a.rank]
				c.made = append(c.made, created{group: part, address: a.event.address})
			}
		}
		rest = rest[n:]
	}
}

// use finds the group of an instance that a rank begins to use.
func (v *resolver) use(rank, inst int32) {
	in, c := &v.ranks[rank].instances[inst], &v.cursors[rank]
	if c.byHandle == nil {
		c.byHandle = make(map[uint64]*group)
	}
	g := c.byHandle[in.handle]
	switch {
	case g.has(rank, in.commKey):
	case !c.inWorld && v.world.has(rank, in.commKey):
		g, c.inWorld = v.world, true
	default:
		candidates := c.candidates(rank, in.commKey)
		if len(candidates) == 0 {
			if in.size > 1 {
				return
			}
			g = &group{members: []int32{rank}, comm: -1}
			break
		}
		for _, m := range candidates[1:] {
			if !slices.Equal(c.made[m].group.members, c.made[candidates[0]].group.members) {
				c.unclear = append(c.unclear, inst)
				return
			}
		}
		c.bind(candidates[0], in)
		return
	}
	in.group = g
	c.byHandle[in.handle] = g
}

// candidates returns which of the communicators that a rank has made and not used yet an instance may be.
func (c *commCursor) candidates(rank int32, key commKey) []int {
	var fit []int
	for i := range c.made {
		if m := &c.made[i]; !m.bound && m.group.has(rank, key) {
			fit = append(fit, i)
		}
	}
	return fit
}

func (c *commCursor) bind(made int, in *instance) {
	m := &c.made[made]
	m.bound, m.handle = true, in.handle
	in.group = m.group
	c.byHandle[in.handle] = m.group
}

// clarify decides between several communicators by the handles that the other members have for them, which most MPI
// libraries choose alike on all ranks. It reports whether that helped anywhere.
func (v *resolver) clarify() bool {
	helped := false
	for rank := range v.cursors {
		c := &v.cursors[rank]
		c.unclear = slices.DeleteFunc(c.unclear, func(inst int32) bool {
			in := &v.ranks[rank].instances[inst]
			candidates := c.candidates(int32(rank), in.commKey)
			if len(candidates) > 1 {
				candidates = slices.DeleteFunc(candidates, func(m int) bool {
					g := c.made[m].group
					return !slices.ContainsFunc(g.members, func(other int32) bool {
						return v.cursors[other].byHandle[in.handle] == g
					})
				})
			}
			if len(candidates) != 1 {
				return false
			}
			c.bind(candidates[0], in)
			helped = true
			return true
		})
	}
	return helped
}

// findWorld takes the first communicator of all ranks to be the world also on ranks that number themselves otherwise in
// it than the names of their files do, if others do not. It reports that.
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

// matchRest finds the groups of the instances that no call explains: those of all ranks by their order, the others by
// their handle, if just as many ranks as they have members use it and each has another rank in it.
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

// number gives the groups that ops belong to their numbers in the DAG, in the order of ranks and first uses.
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
