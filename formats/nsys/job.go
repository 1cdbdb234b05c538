// This file joins the exports of a job: its GPUs, their nodes, and all communicators.

package nsys

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"
	"strconv"

	"github.com/tracedag/tracedag/formats/format"
	"github.com/tracedag/tracedag/internal/par"
)

// job is all exports of a job.
type job struct {
	ctx     context.Context // ends the work early; nil: never
	reports []*report
	gpus    []gpu
	hosts   []string // of the nodes
	comms   []comm
	commOf  map[uint64]int32
	warn    func(string, ...any)
	options *Options
}

// gpu is a GPU, a rank of the trace.
type gpu struct {
	report *report
	proc   int32
	node   int32
	local  int32   // number in the process
	events []int32 // of the report, in launch order
	start  int64   // start of its time
	stop   int64   // end of its time, if needed
	ranks  []commRank
}

// commRank is a process's communicator from a GPU's view.
type commRank struct {
	comm int32 // of the job
	rank int32 // -1: the GPU has no rank
}

// comm is a communicator.
type comm struct {
	id             uint64
	size           int32        // from its annotations
	gpus           []int32      // by rank
	members        []commMember // by rank
	rings          [][]int32    // by channel: ranks, from 0
	trees          [][]int32    // by channel: the parent of each rank
	channelsDiffer bool         // in rings or trees
}

// commMember is a rank of a communicator.
type commMember struct {
	*localRank
	gpu int32
}

// name returns the communicator's name in the trace and in messages.
func (c *comm) name() string {
	return "0x" + strconv.FormatUint(c.id, 16)
}

// newJob joins the reports, which are in file order.
func newJob(ctx context.Context, reports []*report, own *Options, warn func(string, ...any)) (*job, error) {
	j := &job{ctx: ctx, reports: reports, commOf: make(map[uint64]int32), warn: warn, options: own}
	for _, r := range reports {
		if err := par.Interrupted(ctx); err != nil {
			return nil, err
		}
		events := r.byProcess()
		for _, p := range r.made {
			if w := &r.procs[p].window; max(w.marks[0], w.marks[1]) > 1 {
				j.warn("%s: process %d has several profiled parts; they are read from the start of the first to the "+
					"end of "+
					"the last", r.name,
					r.procs[p].pid)
			}
			if err := r.placeRanks(p, events[p]); err != nil {
				return nil, &format.FileError{File: r.name, Err: err}
			}
		}
	}
	for _, r := range reports {
		for _, p := range r.made {
			if err := j.addProcess(r, p); err != nil {
				return nil, &format.FileError{File: r.name, Err: err}
			}
		}
	}
	if len(j.gpus) == 0 {
		return nil, &format.FileError{File: reports[0].name, Err: errNoComm}
	}
	for c := range j.comms {
		if err := j.comms[c].complete(j); err != nil {
			file := j.gpus[j.comms[c].members[0].gpu].report.name
			return nil, format.FileErrorf(file, "communicator %s: %w", j.comms[c].name(), err)
		}
	}
	for g := range j.gpus {
		j.gpus[g].findRanks(j)
	}
	for _, r := range reports {
		if err := j.assign(r); err != nil {
			return nil, &format.FileError{File: r.name, Err: err}
		}
	}
	return j, nil
}

// byProcess returns the events of each process in launch order.
func (r *report) byProcess() [][]int32 {
	of := make([][]int32, len(r.procs))
	for i := range r.events {
		p := r.events[i].proc
		of[p] = append(of[p], int32(i))
	}
	for _, list := range of {
		slices.SortStableFunc(list, func(a, b int32) int { return cmp.Compare(r.events[a].host, r.events[b].host) })
	}
	return of
}

// placeRanks assigns the ranks of a process's communicators to its devices. A process with kernels on one device
// has one GPU. With several devices, the ranks of a communicator, in annotation order, get the devices on which it
// had kernels, in the order of its first launches there. A rank without known kernels gets the first device
// without a rank of the communicator.
func (r *report) placeRanks(proc int32, events []int32) error {
	p := &r.procs[proc]
	devices := make([][]int32, len(p.comms)) // by communicator: numbers of the process's GPUs with its kernels
	for _, i := range events {
		e := &r.events[i]
		device := r.streams[e.stream].device
		g := int32(slices.IndexFunc(p.gpus, func(g procGPU) bool { return g.device == device }))
		if g < 0 {
			g = int32(len(p.gpus))
			p.gpus = append(p.gpus, procGPU{device: device})
		}
		for _, m := range r.members[e.first : e.first+e.count] {
			if !slices.Contains(devices[m.comm], g) {
				devices[m.comm] = append(devices[m.comm], g)
			}
		}
	}
	for c := range p.comms {
		comm := &p.comms[c]
		if len(devices[c]) > len(comm.ranks) {
			return fmt.Errorf("communicator %#x: process %d has %d ranks, but kernels on %d devices", comm.id,
				p.pid, len(comm.ranks), len(devices[c]))
		}
		comm.place(devices[c], p.gpus)
	}
	for c := range p.comms {
		for k := range p.comms[c].ranks {
			if rank := &p.comms[c].ranks[k]; rank.gpu < 0 {
				rank.gpu = p.freeGPU(p.comms[c].id)
			}
		}
	}
	return nil
}

// place assigns GPUs of the process on which the communicator had kernels to ranks: by device if the annotations
// of the ranks have it, else in order.
func (c *localComm) place(gpus []int32, all []procGPU) {
	byDevice := make([]int, len(gpus))
	for i, g := range gpus {
		byDevice[i] = slices.IndexFunc(c.ranks, func(r localRank) bool { return r.device == all[g].device })
	}
	told := !slices.Contains(byDevice, -1)
	for i, g := range gpus {
		if told {
			c.ranks[byDevice[i]].gpu = g
		} else {
			c.ranks[i].gpu = g
		}
	}
}

// freeGPU returns the first GPU of the process without a rank of a communicator.
func (p *process) freeGPU(id uint64) int32 {
	taken := make([]bool, len(p.gpus))
	for c := range p.comms {
		for _, rank := range p.comms[c].ranks {
			if p.comms[c].id == id && rank.gpu >= 0 {
				taken[rank.gpu] = true
			}
		}
	}
	g := slices.Index(taken, false)
	if g < 0 {
		g = len(p.gpus)
		p.gpus = append(p.gpus, procGPU{device: -1})
	}
	return int32(g)
}

// addProcess adds a process's GPUs and its ranks of communicators.
func (j *job) addProcess(r *report, proc int32) error {
	p := &r.procs[proc]
	node := int32(slices.Index(j.hosts, r.host))
	if node < 0 {
		node = int32(len(j.hosts))
		j.hosts = append(j.hosts, r.host)
	}
	for g := range p.gpus {
		p.gpus[g].number = int32(len(j.gpus))
		j.gpus = append(j.gpus, gpu{report: r, proc: proc, local: int32(g), node: node})
	}
	for c := range p.comms {
		local := &p.comms[c]
		number, ok := j.commOf[local.id]
		if !ok {
			number = int32(len(j.comms))
			j.commOf[local.id] = number
			j.comms = append(j.comms, comm{id: local.id})
		}
		if err := j.addRanks(number, local, p); err != nil {
			return fmt.Errorf("communicator %s: %w", j.comms[number].name(), err)
		}
	}
	return nil
}

// addRanks adds a process's ranks of a communicator.
func (j *job) addRanks(number int32, local *localComm, p *process) error {
	c := &j.comms[number]
	if c.size == 0 {
		c.size = local.nranks
	}
	for k := range local.ranks {
		rank := &local.ranks[k]
		if local.nranks != c.size {
			return fmt.Errorf("rank %d (process %d) has a size of %d ranks, others %d", rank.rank, p.pid,
				local.nranks, c.size)
		}
		c.members = append(c.members, commMember{rank, p.gpus[rank.gpu].number})
	}
	return nil
}

// complete checks that each rank exists once, and builds rings and trees from the neighbours of ranks.
func (c *comm) complete(j *job) error {
	slices.SortStableFunc(c.members, func(a, b commMember) int { return cmp.Compare(a.rank, b.rank) })
	for i := 1; i < len(c.members); i++ {
		if a, b := c.members[i-1], c.members[i]; a.rank == b.rank && a.gpu != b.gpu {
			return fmt.Errorf("expected each rank once, found rank %d in %s and in "+
				"%s", a.rank, j.processOf(a), j.processOf(b))
		}
	}
	c.members = slices.CompactFunc(c.members, func(a, b commMember) bool { return a.rank == b.rank })
	if missing := int(c.size) - len(c.members); missing > 0 {
		first := 0
		for first < len(c.members) && c.members[first].rank == int32(first) {
			first++
		}
		return fmt.Errorf("%d of %d ranks are missing, the first is rank %d; name the exports of all processes",
			missing, c.size, first)
	}
	c.gpus = make([]int32, len(c.members))
	ranks := make(map[int32]int32, len(c.members)) // by GPU
	for i, m := range c.members {
		if other, ok := ranks[m.gpu]; ok {
			return fmt.Errorf("ranks %d and %d are on one GPU: %s", other, m.rank, j.processOf(m))
		}
		c.gpus[i], ranks[m.gpu] = m.gpu, m.rank
	}
	rings, trees := 0, 0
	for _, m := range c.members {
		rings, trees = max(rings, len(m.rings)), max(trees, len(m.trees))
	}
	for channel := range rings {
		ring, err := c.ring(channel)
		if err != nil {
			return fmt.Errorf("ring of channel %d: %w", channel, err)
		}
		c.rings = append(c.rings, ring)
	}
	for channel := range trees {
		tree, err := c.tree(channel)
		if err != nil {
			return fmt.Errorf("tree of channel %d: %w", channel, err)
		}
		c.trees = append(c.trees, tree)
	}
	differ := func(all [][]int32) bool {
		return slices.ContainsFunc(all, func(x []int32) bool { return !slices.Equal(x, all[0]) })
	}
	c.channelsDiffer = differ(c.rings) || differ(c.trees)
	return nil
}

// processOf describes the place of a member for messages.
func (j *job) processOf(m commMember) string {
	g := &j.gpus[m.gpu]
	return fmt.Sprintf("process %d of %s", g.report.procs[g.proc].pid, g.report.name)
}

// ring returns the ranks in the order of a channel's ring, rank 0 first.
func (c *comm) ring(channel int) ([]int32, error) {
	order := make([]int32, 0, len(c.members))
	rank := int32(0)
	for range c.members {
		l := c.members[rank]
		if channel >= len(l.rings) || !l.rings[channel].present {
			return nil, fmt.Errorf("rank %d has no annotation of its neighbours", rank)
		}
		next := l.rings[channel].next
		if following := c.members[next]; channel >= len(following.rings) || following.rings[channel].prev != rank {
			return nil, fmt.Errorf("rank %d is followed by rank %d, which does not have %[1]d as its predecessor",
				rank, next)
		}
		if order = append(order, rank); next == 0 && len(order) < len(c.members) {
			return nil, fmt.Errorf("expected a ring of %d ranks, found %d", len(c.members), len(order))
		}
		rank = next
	}
	if rank != 0 {
		return nil, fmt.Errorf("expected a ring that leads back to rank 0")
	}
	return order, nil
}

// tree returns the parent of each rank in a channel's tree.
func (c *comm) tree(channel int) ([]int32, error) {
	parents := make([]int32, len(c.members))
	for rank, l := range c.members {
		if channel >= len(l.trees) || !l.trees[channel].present {
			return nil, fmt.Errorf("rank %d has no annotation of its neighbours", rank)
		}
		parents[rank] = l.trees[channel].next
	}
	for rank, l := range c.members {
		for _, child := range l.trees[channel].down {
			if child >= 0 && parents[child] != int32(rank) {
				return nil, fmt.Errorf("rank %d has rank %d as a child, whose parent is rank %d", rank,
					child, parents[child])
			}
		}
		if up := parents[rank]; up >= 0 && !slices.Contains(c.members[up].trees[channel].down[:], int32(rank)) {
			return nil, fmt.Errorf("rank %d has rank %d as its parent, which does not have %[1]d as a child",
				rank, up)
		}
	}
	seen := make([]int32, len(parents)) // one more than the rank from which a rank was first reached
	for rank := range parents {
		at := int32(rank)
		for at >= 0 && seen[at] == 0 {
			seen[at] = int32(rank) + 1
			at = parents[at]
		}
		if at >= 0 && seen[at] == int32(rank)+1 {
			return nil, fmt.Errorf("rank %d is its own ancestor", at)
		}
	}
	return parents, nil
}

// findRanks fills ranks.
func (g *gpu) findRanks(j *job) {
	p := &g.report.procs[g.proc]
	g.ranks = make([]commRank, len(p.comms))
	for c := range p.comms {
		g.ranks[c] = commRank{comm: j.commOf[p.comms[c].id], rank: -1}
		for _, rank := range p.comms[c].ranks {
			if rank.gpu == g.local {
				g.ranks[c].rank = rank.rank
			}
		}
	}
}

// assign distributes the events of a report to the GPUs.
func (j *job) assign(r *report) error {
	for i := range r.events {
		if err := r.watch.Err(); err != nil {
			return err
		}
		e := &r.events[i]
		p := &r.procs[e.proc]
		device := r.streams[e.stream].device
		k := slices.IndexFunc(p.gpus, func(q procGPU) bool { return q.device == device })
		if k < 0 {
			return fmt.Errorf("process %d: a kernel on device %d, which has no rank of any communicator", p.pid, device)
		}
		g := &j.gpus[p.gpus[k].number]
		for m := e.first; m < e.first+e.count; m++ {
			if err := g.check(j, &r.members[m]); err != nil {
				return fmt.Errorf("process %d, call at %d ns: %w", p.pid, e.call, err)
			}
		}
		g.events = append(g.events, int32(i))
	}
	for k := range j.gpus {
		g := &j.gpus[k]
		if g.report != r {
			continue
		}
		if err := par.Interrupted(j.ctx); err != nil {
			return err
		}
		slices.SortStableFunc(g.events, func(a, b int32) int {
			x, y := &r.events[a], &r.events[b]
			return cmp.Or(cmp.Compare(x.host, y.host), cmp.Compare(x.order, y.order), cmp.Compare(x.start, y.start))
		})
	}
	return nil
}

// check returns an error unless the member is valid on the GPU.
func (g *gpu) check(j *job, m *member) error {
	at := g.ranks[m.comm]
	c := &j.comms[at.comm]
	switch {
	case at.rank < 0:
		device := g.report.procs[g.proc].gpus[g.local].device
		return fmt.Errorf("a kernel of communicator %s on device %d, on which it has no rank", c.name(), device)
	case (m.op.p2p() || m.op == opBroadcast || m.op == opReduce) && (m.peer < 0 || int(m.peer) >= len(c.gpus)):
		return fmt.Errorf("communicator %s: expected a rank below %d as root or partner, found %d", c.name(),
			len(c.gpus), m.peer)
	case m.bytes > math.MaxInt64/int64(len(c.gpus)):
		return fmt.Errorf("communicator %s: %d bytes for each of %d ranks are too many", c.name(), m.bytes, len(c.gpus))
	}
	return nil
}
