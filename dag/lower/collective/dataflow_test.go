package collective

import (
	"fmt"
	"os"
	"sort"
	"testing"

	"github.com/tracedag/tracedag/dag"
)

// This file checks the data flow of every algorithm for 1 to 70 members. It executes the schedules of all members on
// symbolic data: the value of each byte is the set of members whose contributions it holds. Algorithms state the data
// of each message (contents). The tests check that the sender has that data at the time, that its size is the message
// size, that no contribution is reduced twice, and that every member ends with the result that MPI defines.

const mostMembers = 70

// members is a set of at most 128 members.
type members [2]uint64

func only(i int) (m members) {
	m[i/64] = 1 << (i % 64)
	return m
}

func upTo(n int) members { // the members 0..n-1
	return members{1<<min(n, 64) - 1, 1<<max(0, n-64) - 1}
}

func (m members) or(o members) members  { return members{m[0] | o[0], m[1] | o[1]} }
func (m members) and(o members) members { return members{m[0] & o[0], m[1] & o[1]} }

// TestDataFlow proves every algorithm correct.
func TestDataFlow(t *testing.T) {
	for i := range len(algorithms) + len(allCollectives) {
		var a *algorithm
		if i < len(algorithms) {
			a = &algorithms[i]
		} else {
			a = direct[allCollectives[i-len(algorithms)]].algorithm
		}
		t.Run(name(a.kind, "/", a.name), func(t *testing.T) {
			t.Parallel()
			f := flow{central: a.kind == dag.Barrier && a.name == "direct", sparse: a.name == "ringsegments",
				padded: a.name == "halvingthenallgather"}
			for _, parameters := range variants(a) {
				u := direct[a.kind]
				if u.algorithm != a {
					var err error
					if u, err = parseSelection(a.kind, a.name+parameters); err != nil {
						t.Fatal(err)
					}
				}
				for n := 1; n <= mostMembers; n++ {
					if n > 17 && n%7 > 0 && n != 32 && n != 33 && n != 64 && os.Getenv("TRACEDAG_LONG") == "" ||
						n > 9 && testing.Short() {
						continue
					}
					for _, c := range calls(a, n) {
						f.reducing = n%2 == 0 && a.kind != dag.Barrier
						if err := f.check(&u, c); err != nil {
							t.Fatalf("%d members, root %d, %d bytes %v, parameters %q: %v", n, c.Root, c.Bytes, c.starts,
								parameters, err)
						}
						if f.reducing = !f.reducing; n > 9 || a.kind == dag.Barrier {
							continue
						}
						if err := f.check(&u, c); err != nil {
							t.Fatalf("reductions as steps %t, %d members, root %d, %d bytes %v, parameters %q: %v", f.reducing,
								n, c.Root, c.Bytes, c.starts, parameters, err)
						}
					}
				}
			}
		})
	}
}

// variants returns the parameters to test.
func variants(a *algorithm) []string {
	all := []string{""}
	if a.segments {
		all = append(all, "(segment=19)")
	}
	switch a.parameter.name {
	case "k":
		all = append(all, "(k=3)", "(k=64)")
		if a.segments {
			all = append(all, "(k=2,segment=5)")
		}
	case "group":
		all = append(all, "(group=1)", "(group=7)")
	case "chains":
		all = append(all, "(chains=3)", "(chains=8,segment=5)", "(chains=1000)")
	}
	if a.parameter.min == 1 && a.parameter.name == "k" {
		all = append(all, "(k=1)")
	}
	return all
}

// calls returns the participants at position 0 of n to test.
func calls(a *algorithm, n int) (all []Participant) {
	roots := []int{0}
	if a.kind.Rooted() {
		roots = []int{0, n / 3, n - 1}
		if n <= 8 {
			roots = roots[:0]
			for root := range n {
				roots = append(roots, root)
			}
		}
	}
	nodes := []*nodeMap{nil}
	if a.nodes {
		nodes = append(nodes, nodesOf(n, func(i int) int { return i / 4 }), nodesOf(n, func(i int) int { return i % 3 }),
			nodesOf(n, func(i int) int { return i * i % 7 / 3 }), nodesOf(n, func(int) int { return 5 }),
			nodesOf(n, func(i int) int { return i / 3 % 5 }))
	}
	for _, root := range roots {
		for _, nodes := range nodes {
			call := Participant{Kind: a.kind, Members: n, Root: root, nodes: nodes}
			if hasTable(a.kind) {
				for _, size := range []func(i int) int64{
					func(int) int64 { return 0 },
					func(i int) int64 { return int64(i) * int64(i) * 13 % 11 },
					func(i int) int64 { return int64(i/(n-1)) * 9 },
				} {
					if n == 1 {
						size = func(int) int64 { return 3 }
					}
					call.starts = []int64{0}
					for i := range n {
						call.starts = append(call.starts, call.starts[i]+size(i))
					}
					call.Bytes = call.starts[n]
					all = append(all, call)
				}
				call.starts = nil
			}
			if a.kind == dag.Alltoallv {
				all = append(all, withCounts(call))
			}
			if hasTable(a.kind) && a.kind != dag.ReduceScatter {
				continue
			}
			for _, bytes := range sizes(n) {
				call.Bytes = bytes
				all = append(all, call)
			}
			if a.dividesElements {
				call.Bytes, call.element = 3*int64(2*n+n/2+3), 3
				all = append(all, call)
				call.element = 0
			}
		}
	}
	return all
}

// sharedBytes returns the bytes that member i sends to member j of an alltoallv with counts.
func sharedBytes(i, j int) int64 { return int64((5*i + 3*j*j + i*j) % 4) }

// withCounts returns the call of an alltoallv with counts by partner.
func withCounts(call Participant) Participant {
	n := call.Members
	begins := make([]int64, n*n+1) // of each share
	call.starts = []int64{0}
	for i := range n {
		for j := range n {
			begins[n*i+j+1] = begins[n*i+j] + sharedBytes(i, j)
		}
		call.starts = append(call.starts, begins[n*i+n])
	}
	call.Bytes = begins[n*n]
	call.origin = func(i, j int) int64 { return begins[n*i+j] }
	return call
}

// sizes returns the sizes to test: 0, less than n, a multiple of n and another one; for many members, only two of them.
func sizes(n int) []int64 {
	all := []int64{0, 1, int64(n), int64(2*n + n/2 + 3)}
	if n > 24 {
		return []int64{all[n%3], all[3]}
	}
	return all
}

func nodesOf(n int, node func(i int) int) *nodeMap {
	of := make([]int32, n)
	for i := range of {
		of[i] = int32(node(i))
	}
	return newNodeMap(of)
}

// flow executes the schedules of all members. It reuses its memory for the next collective.
type flow struct {
	c         Participant
	reducing  bool // reductions are steps
	central   bool // members of a barrier other than the first wait for the first only
	sparse    bool // empty blocks are not sent
	padded    bool // the data is longer than the vector, n equal parts, if n is a power of two
	schedules [mostMembers]Schedule
	base      [mostMembers + 1]int // number of each member's first step
	steps     []flowStep
	ready     []int32
	unmatched [2][][]int32 // sends and receives of each pair and lane

	cells  int
	cellAt []int32     // cell of each byte
	edges  []bool      // a cell begins at the byte
	first  []int32     // first byte of each cell
	values []members   // received values, cell by cell
	lists  []int32     // last entry by member and cell
	entry  []flowEntry // received values of a cell
}

// flowStep is a step of a member.
type flowStep struct {
	member, index int32
	partner       int32 // number of the other end
	waits         int32 // number of incomplete dependencies
	next          []int32
	before        []uint64 // steps of its member that end before it begins
	begun         []uint64 // steps of its member that begin before it
	heard         members  // members on which it depends
}

// flowEntry is a value that a member received for a cell.
type flowEntry struct {
	step  int32
	value members
	more  int32 // previous entry; -1: none
}

func (f *flow) check(u *selection, c Participant) error {
	f.c = c
	if err := f.plan(u); err != nil {
		return err
	}
	if c.Members == 1 {
		return nil
	}
	if err := f.match(); err != nil {
		return err
	}
	if err := f.cut(); err != nil {
		return err
	}
	if err := f.run(); err != nil {
		return err
	}
	return f.result()
}

// plan computes the schedules of all members.
func (f *flow) plan(u *selection) error {
	f.steps = f.steps[:0]
	for me := range f.c.Members {
		call, s := f.c, &f.schedules[me]
		if s.contents == nil {
			s.contents = &contents{}
		}
		s.Reset()
		s.reducing = f.reducing
		call.Me = me
		if call.origin != nil {
			call.sends, call.recvs = nil, nil
			for i := range call.Members {
				call.sends = append(call.sends, sharedBytes(me, i))
				call.recvs = append(call.recvs, sharedBytes(i, me))
			}
		}
		if err := u.plan(&call, s); err != nil {
			return err
		}
		if f.c.Members == 1 && len(s.Steps) > 0 {
			return fmt.Errorf("%d steps", len(s.Steps))
		}
		f.base[me] = len(f.steps)
		words := (len(s.Steps) + 63) / 64
		before, begun := make([]uint64, words*len(s.Steps)), make([]uint64, words*len(s.Steps))
		for i := range s.Steps {
			step := flowStep{member: int32(me), index: int32(i), partner: -1, before: before[words*i:][:words],
				begun: begun[words*i:][:words]}
			follows := func(a int32) {
				for w, bits := range f.steps[f.base[me]+int(a)].begun {
					step.begun[w] |= bits
				}
				step.begun[a/64] |= 1 << (a % 64)
			}
			if s.Steps[i].Follows {
				follows(int32(i) - 1)
			}
			for _, a := range s.After(i) {
				if a < 0 || int(a) >= i {
					return fmt.Errorf("step %d of member %d waits for step %d", i, me, a)
				}
				step.waits++
				on := &f.steps[f.base[me]+int(a)]
				on.next = append(on.next, int32(len(f.steps)))
				for w, bits := range on.before {
					step.before[w] |= bits
				}
				step.before[a/64] |= 1 << (a % 64)
				follows(a)
			}
			f.steps = append(f.steps, step)
		}
	}
	f.base[f.c.Members] = len(f.steps)
	return nil
}

func (f *flow) step(number int32) *Step {
	s := &f.steps[number]
	return &f.schedules[s.member].Steps[s.index]
}

// precedes reports whether a step of a member precedes another.
func (f *flow) precedes(a, b int32) bool {
	i := f.steps[a].index
	return f.steps[b].before[i/64]>>(i%64)&1 != 0
}

// begins reports whether a step of a member begins before another.
func (f *flow) begins(a, b int32) bool {
	i := f.steps[a].index
	return f.steps[b].begun[i/64]>>(i%64)&1 != 0
}

// used returns the step at whose end the data of a receive is in use: its reduction if that is a step.
func (f *flow) used(recv int32) int32 {
	s := &f.schedules[f.steps[recv].member]
	if next := f.steps[recv].index + 1; int(next) < len(s.Steps) && s.Steps[next].Kind == dag.Calc &&
		s.Steps[next].Bytes > 0 {
		return recv + 1
	}
	return recv
}

// match pairs the k-th send from one member to another in a lane with the k-th receive. It returns an error if
// dependencies do not determine the order at both ends.
func (f *flow) match() error {
	n := f.c.Members
	for kind := range f.unmatched {
		for len(f.unmatched[kind]) < n*n*lanes {
			f.unmatched[kind] = append(f.unmatched[kind], nil)
		}
		for i := range f.unmatched[kind] {
			f.unmatched[kind][i] = f.unmatched[kind][i][:0]
		}
	}
	for number := range f.steps {
		me, s := int(f.steps[number].member), f.step(int32(number))
		if s.Kind == dag.Calc {
			continue
		}
		peer, kind, from, to := int(s.Peer), 0, me, int(s.Peer)
		if s.Kind == dag.Recv {
			kind, from, to = 1, peer, me
		}
		if peer < 0 || peer >= n || s.Lane >= lanes {
			return fmt.Errorf("member %d deals with member %d in lane %d", me, peer, s.Lane)
		}
		list := &f.unmatched[kind][(from*n+to)*lanes+int(s.Lane)]
		if k := len(*list); k > 0 && !f.begins((*list)[k-1], int32(number)) {
			return fmt.Errorf("%v %d of member %d with member %d is not certain to come before %d", s.Kind,
				f.steps[(*list)[k-1]].index, me, peer, f.steps[number].index)
		}
		*list = append(*list, int32(number))
	}
	for i, sends := range f.unmatched[0][:n*n*lanes] {
		recvs := f.unmatched[1][i]
		if len(sends) != len(recvs) {
			return fmt.Errorf("member %d sends %d messages to member %d, which receives %d", i/lanes/n, len(sends),
				i/lanes%n, len(recvs))
		}
		for k, send := range sends {
			recv := recvs[k]
			if f.step(send).Bytes != f.step(recv).Bytes {
				return fmt.Errorf("member %d sends %d bytes to member %d, which receives %d", i/lanes/n,
					f.step(send).Bytes, i/lanes%n, f.step(recv).Bytes)
			}
			f.steps[send].partner, f.steps[recv].partner = recv, send
			f.steps[send].next = append(f.steps[send].next, recv)
			f.steps[recv].waits++
		}
	}
	return nil
}

// total returns the size of the collective's data.
func (f *flow) total() int64 {
	c := &f.c
	if f.padded && c.Members&(c.Members-1) == 0 {
		return c.paddedPart() * int64(c.Members)
	}
	switch c.Kind {
	case dag.Barrier, dag.Bcast, dag.Reduce, dag.Allreduce, dag.Scan, dag.Exscan, dag.Scatter:
		return c.Bytes
	}
	if c.starts != nil {
		return c.starts[c.Members]
	}
	if c.Kind == dag.ReduceScatter {
		return c.Bytes
	}
	return c.Bytes * int64(c.Members)
}

// held returns the data of a step's message.
func (f *flow) held(number int32) []span {
	s := &f.steps[number]
	return f.schedules[s.member].contents.held[s.index]
}

// cut divides the data into cells that every message and member holds completely or not at all.
func (f *flow) cut() error {
	total := f.total()
	f.edges = append(f.edges[:0], make([]bool, total+1)...)
	mark := func(x span) {
		f.edges[x.from] = true
		f.edges[(x.from+x.bytes-1)%total+1] = true
	}
	for number := range f.steps {
		sum := int64(0)
		for _, x := range f.held(int32(number)) {
			if x.from < 0 || x.from > total || x.bytes < 0 || x.bytes > total {
				return fmt.Errorf("a message of member %d holds bytes %d to %d of %d", f.steps[number].member, x.from,
					x.from+x.bytes-1, total)
			}
			sum += x.bytes
			if x.bytes > 0 {
				mark(x)
			}
		}
		if s := f.step(int32(number)); s.Bytes != sum && s.Kind != dag.Calc {
			return fmt.Errorf("a message of member %d has %d bytes and holds %d", f.steps[number].member, s.Bytes, sum)
		}
	}
	for at := int64(0); at < total; at++ {
		if at == 0 || f.origin(at) != f.origin(at-1) || f.target(at) != f.target(at-1) {
			f.edges[at] = true
		}
	}
	f.cellAt, f.first, f.cells = f.cellAt[:0], f.first[:0], 0
	for at := range total {
		if f.edges[at] {
			f.first = append(f.first, int32(at))
			f.cells++
		}
		f.cellAt = append(f.cellAt, int32(f.cells-1))
	}
	f.cellAt = append(f.cellAt, int32(f.cells))
	return nil
}

// blockOf returns the block that contains a byte, of n blocks of total bytes as in partStart.
func blockOf(total int64, n int, at int64) int {
	for i := range n {
		size := total / int64(n)
		if int64(i) < total%int64(n) {
			size++
		}
		if at < size {
			return i
		}
		at -= size
	}
	panic("beyond the last block")
}

// place returns the member whose block contains a byte, and the bounds of the block.
func (f *flow) place(at int64) (i int, begin, end int64) {
	c := &f.c
	if c.starts == nil {
		i = int(at / c.Bytes)
		return i, int64(i) * c.Bytes, int64(i+1) * c.Bytes
	}
	for c.starts[i+1] <= at {
		i++
	}
	return i, c.starts[i], c.starts[i+1]
}

// origin returns the member that initially has a byte, -1 if every member has its own.
func (f *flow) origin(at int64) int {
	switch c := &f.c; c.Kind {
	case dag.Bcast, dag.Scatter, dag.Scatterv:
		return c.Root
	case dag.Gather, dag.Gatherv, dag.Allgather, dag.Allgatherv, dag.Alltoall, dag.Alltoallv:
		i, _, _ := f.place(at)
		return i
	}
	return -1
}

// target returns the member that must end with a byte, -1 for all members, -2 for the root.
func (f *flow) target(at int64) int {
	switch c := &f.c; c.Kind {
	case dag.Reduce, dag.Gather, dag.Gatherv:
		return -2
	case dag.Scatterv:
		i, _, _ := f.place(at)
		return i
	case dag.ReduceScatter:
		if c.starts != nil {
			i, _, _ := f.place(at)
			return i
		}
		return blockOf(c.Bytes, c.Members, at)
	case dag.Scatter:
		return blockOf(c.Bytes, c.Members, at)
	case dag.Alltoall, dag.Alltoallv:
		i, begin, end := f.place(at)
		if c.origin != nil {
			return sort.Search(c.Members-1, func(j int) bool { return c.origin(i, j+1) > at })
		}
		return blockOf(end-begin, c.Members, at-begin)
	}
	return -1
}

// eachCell calls visit for the cells of a message in order.
func (f *flow) eachCell(number int32, visit func(cell int32)) {
	total := int64(len(f.cellAt) - 1)
	for _, x := range f.held(number) {
		if x.bytes == 0 {
			continue
		}
		end := x.from + x.bytes
		for cell := f.cellAt[x.from]; cell < f.cellAt[min(end, total)]; cell++ {
			visit(cell)
		}
		if end > total {
			for cell := int32(0); cell < f.cellAt[end-total]; cell++ {
				visit(cell)
			}
		}
	}
}

// run executes all steps.
func (f *flow) run() error {
	f.lists = f.lists[:0]
	for range f.c.Members * f.cells {
		f.lists = append(f.lists, -1)
	}
	f.entry, f.ready = f.entry[:0], f.ready[:0]
	for number := range f.steps {
		if f.steps[number].waits == 0 {
			f.ready = append(f.ready, int32(number))
		}
	}
	for done := 0; done < len(f.ready); done++ {
		number := f.ready[done]
		s := &f.steps[number]
		s.heard = s.heard.or(only(int(s.member)))
		if f.step(number).Kind == dag.Recv {
			if err := f.receive(number); err != nil {
				return err
			}
		}
		for _, next := range s.next {
			f.steps[next].heard = f.steps[next].heard.or(s.heard)
			if f.steps[next].waits--; f.steps[next].waits == 0 {
				f.ready = append(f.ready, next)
			}
		}
	}
	if len(f.ready) < len(f.steps) {
		return fmt.Errorf("%d of %d steps never run", len(f.steps)-len(f.ready), len(f.steps))
	}
	return nil
}

// receive stores the values of a message at the receiver.
func (f *flow) receive(number int32) (err error) {
	s := &f.steps[number]
	f.values = f.values[:0]
	f.eachCell(s.partner, func(cell int32) {
		value, e := f.sentValue(s.partner, cell)
		if e == nil && value == (members{}) {
			e = fmt.Errorf("it has no byte %d", f.first[cell])
		}
		if e != nil && err == nil {
			err = fmt.Errorf("member %d sends to member %d: %w", f.steps[s.partner].member, s.member, e)
		}
		f.values = append(f.values, value)
	})
	if err != nil {
		return err
	}
	k := 0
	f.eachCell(number, func(cell int32) {
		list := &f.lists[int(s.member)*f.cells+int(cell)]
		if k < len(f.values) {
			f.entry = append(f.entry, flowEntry{number, f.values[k], *list})
			*list = int32(len(f.entry) - 1)
		}
		k++
	})
	same := k == len(f.values)
	sent, received := f.held(s.partner), f.held(number)
	for i := range min(len(sent), len(received)) {
		same = same && (sent[i] == received[i] || sent[i].bytes == 0 && received[i].bytes == 0)
	}
	if !same || len(sent) != len(received) {
		return fmt.Errorf("member %d sends %v to member %d, which expects %v", f.steps[s.partner].member, sent,
			s.member, received)
	}
	return nil
}

// sentValue returns the value of a cell in the message of a send.
func (f *flow) sentValue(number, cell int32) (members, error) {
	s := &f.steps[number]
	received, relayed := f.schedules[s.member].contents.relayed[s.index]
	switch {
	case !relayed:
		return f.value(int(s.member), number, cell)
	case received == ownData:
		return only(int(s.member)), nil
	}
	for i := f.lists[int(s.member)*f.cells+int(cell)]; i >= 0; i = f.entry[i].more {
		if e := &f.entry[i]; e.step == int32(f.base[s.member])+received && f.precedes(e.step, number) {
			return e.value, nil
		}
	}
	return members{}, nil
}

// value returns the value of a cell at a member before a step, or at the end if number is -1.
func (f *flow) value(member int, number, cell int32) (v members, err error) {
	switch origin := f.origin(int64(f.first[cell])); origin {
	case -1, member:
		v = only(member)
	}
	list := f.lists[member*f.cells+int(cell)]
	latest := int32(-1) // last receive that overwrites
	visit := func(do func(e *flowEntry, action onRecv)) {
		for i := list; i >= 0; i = f.entry[i].more {
			if e := &f.entry[i]; number < 0 || f.precedes(f.used(e.step), number) {
				do(e, f.schedules[member].contents.onRecv[f.steps[e.step].index])
			}
		}
	}
	visit(func(e *flowEntry, action onRecv) {
		if action == overwrite && (latest < 0 || f.precedes(latest, e.step)) {
			latest, v = e.step, e.value
		}
	})
	visit(func(e *flowEntry, action onRecv) {
		switch {
		case e.step == latest || latest >= 0 && f.precedes(e.step, latest):
		case action == overwrite || latest >= 0 && !f.precedes(latest, e.step):
			err = fmt.Errorf("steps %d and %d write byte %d in any order", f.steps[e.step].index, f.steps[latest].index,
				f.first[cell])
		case v.and(e.value) != members{} && f.c.Kind != dag.Barrier:
			err = fmt.Errorf("byte %d is reduced twice with the contributions of %b", f.first[cell], v.and(e.value))
		default:
			v = v.or(e.value)
		}
	})
	return v, err
}

// prefix returns the scan result of a member for a cell.
func (f *flow) prefix(member int, cell int32) (v members, err error) {
	if f.c.Kind == dag.Scan {
		v = only(member)
	}
	for i := f.lists[member*f.cells+int(cell)]; i >= 0; i = f.entry[i].more {
		e := &f.entry[i]
		if f.schedules[member].contents.onRecv[f.steps[e.step].index] != reducePrefix {
			continue
		}
		if v.and(e.value) != (members{}) {
			return v, fmt.Errorf("byte %d is reduced twice with the contributions of %b", f.first[cell], v.and(e.value))
		}
		v = v.or(e.value)
	}
	return v, nil
}

// result checks the final values of every member, and the members on which they depend.
func (f *flow) result() error {
	for me := range f.c.Members {
		heard := only(me)
		for number := f.base[me]; number < f.base[me+1]; number++ {
			heard = heard.or(f.steps[number].heard)
		}
		if needs := f.needs(me); heard.and(needs) != needs && !f.sparse {
			return fmt.Errorf("member %d depends on %b, needs %b", me, heard, needs)
		}
		if f.c.Kind == dag.Barrier {
			continue
		}
		for cell := range int32(f.cells) {
			if err := f.checkCell(me, cell); err != nil {
				return err
			}
		}
	}
	return nil
}

// needs returns the members on which a member's result depends, even for 0 bytes.
func (f *flow) needs(me int) members {
	switch c := &f.c; c.Kind {
	case dag.Bcast, dag.Scatter, dag.Scatterv:
		return only(c.Root)
	case dag.Reduce, dag.Gather, dag.Gatherv:
		if me != c.Root {
			return members{}
		}
	case dag.Scan, dag.Exscan:
		return upTo(me)
	case dag.Barrier:
		if f.central && me != 0 {
			return only(0)
		}
	}
	return upTo(f.c.Members)
}

func (f *flow) checkCell(me int, cell int32) error {
	c, at := &f.c, int64(f.first[cell])
	switch target := f.target(at); target {
	case -1, me:
	case -2:
		if me != c.Root {
			return nil
		}
	default:
		return nil
	}
	want := upTo(c.Members)
	if origin := f.origin(at); origin >= 0 {
		want = only(origin)
	}
	got, err := f.value(me, -1, cell)
	switch c.Kind {
	case dag.Scan:
		want = upTo(me + 1)
		got, err = f.prefix(me, cell)
	case dag.Exscan:
		want = upTo(me)
		got, err = f.prefix(me, cell)
	}
	if err != nil {
		return fmt.Errorf("member %d: %w", me, err)
	}
	if got != want {
		return fmt.Errorf("member %d has of byte %d the contributions of %b, expected %b", me, at, got, want)
	}
	return nil
}
