// This file completes an execution trace with the profile of the same process, by the rules of Chakra's linker.

package pytorch

import (
	"cmp"
	"context"
	"slices"
	"sort"
	"strconv"
	"strings"

	"github.com/tracedag/tracedag/dag"
	"github.com/tracedag/tracedag/formats/chakra"
	"github.com/tracedag/tracedag/formats/format"
	"github.com/tracedag/tracedag/internal/par"
)

// threadGap is the time without an op after which a thread waits for the others.
const threadGap = 1000 * dag.Microsecond

// linking is what linking found.
type linking struct {
	matched, of int64 // ops of the execution trace
	misnamed    int64 // with another name in the profile
	orphans     int64 // device ops without a launch or an operator around it
}

// link adds times and device ops to the trace. Ops get new ids: those of device ops follow that of their caller.
func (t *trace) link(ctx context.Context, p *profile) error {
	if err := t.match(p); err != nil {
		return err
	}
	if err := p.setExclusive(ctx, t.compat); err != nil {
		return format.FileErrorf(p.file, "%w", err)
	}
	p.setThreadDeps()
	callers, err := t.callersOf(p)
	if err != nil {
		return err
	}
	t.build(p, callers)
	t.linked = true
	return nil
}

// match finds the op of the profile of each op of the trace, and sorts those of the trace.
func (t *trace) match(p *profile) error {
	if err := t.checkProcess(p); err != nil {
		return err
	}
	slices.SortStableFunc(t.ops, func(a, b op) int { return cmp.Compare(a.ID, b.ID) })
	for i := range t.ops {
		t.byID[t.ops[i].ID] = i
	}
	if p.numbered {
		t.matchNumbers(p)
	} else {
		t.matchOrder(p)
	}
	l := &t.links
	for i := range t.ops {
		if !strings.HasPrefix(t.ops[i].Name, "[pytorch|") {
			l.of++
		}
	}
	if l.matched*2 < l.of || (l.matched-l.misnamed)*2 < l.matched {
		return format.FileErrorf(t.file, "expected the execution trace of the run that %s profiled, found %d of %d "+
			"nodes in it, %d of them with another name: give files of one run", p.file, l.matched, l.of, l.misnamed)
	}
	return nil
}

// checkProcess returns an error if the profile is of another process.
func (t *trace) checkProcess(p *profile) error {
	if len(p.host) == 0 {
		return nil // nothing matches
	}
	for i := range p.host {
		n, err := strconv.ParseUint(p.host[i].process, 10, 64)
		if err != nil || n == t.pid { // old profiles have no process
			return nil
		}
	}
	return format.FileErrorf(t.file, "expected the execution trace and the profile %s to be of one process, found "+
		"process %d and %s: give files of one run", p.file, t.pid, p.host[0].process)
}

// matchNumbers matches ops by the numbers of their record functions.
func (t *trace) matchNumbers(p *profile) {
	of := make(map[int64]int, len(p.host))
	for i := range p.host {
		if rf := p.host[i].rf; rf > 0 {
			of[rf] = i
		}
	}
	for i := range t.ops {
		o := &t.ops[i]
		k, ok := of[o.rf]
		if !ok || o.rf <= 0 || o.device || p.host[k].op != none {
			continue
		}
		p.host[k].op = i
		t.links.matched++
		if p.host[k].name != o.Name {
			t.links.misnamed++
		}
	}
}

// matchOrder matches ops by their order: the names of the ops of a thread, in ascending id order, are a contiguous part
// of those of a thread of the profile. Annotations of Gloo may be on other threads in the profile.
func (t *trace) matchOrder(p *profile) {
	threads := make(map[int64][]int)
	for i := range t.ops {
		if o := &t.ops[i]; !strings.HasPrefix(o.Name, "[pytorch|") && !o.device {
			threads[o.thread] = append(threads[o.thread], i)
		}
	}
	hosts := make(map[string][]int)
	var names []string
	for i := range p.host {
		key := p.host[i].process + "/" + p.host[i].thread
		if hosts[key] == nil {
			names = append(names, key)
		}
		hosts[key] = append(hosts[key], i)
	}
	for _, list := range hosts {
		slices.SortStableFunc(list, func(a, b int) int {
			x, y := &p.host[a], &p.host[b]
			if x.order >= 0 && y.order >= 0 {
				return cmp.Compare(x.order, y.order)
			}
			return cmp.Or(cmp.Compare(x.start, y.start), cmp.Compare(y.took, x.took))
		})
	}
	numbers := make([]int64, 0, len(threads))
	for n := range threads {
		numbers = append(numbers, n)
	}
	slices.SortFunc(numbers, func(a, b int64) int { // the longest part first: it fixes the time of the others
		return cmp.Or(cmp.Compare(len(threads[b]), len(threads[a])), cmp.Compare(a, b))
	})
	taken := make(map[string]bool)
	var from, to dag.Time
	fixed := false
	for _, n := range numbers {
		all := threads[n]
		plain := slices.DeleteFunc(slices.Clone(all), func(i int) bool {
			return strings.HasPrefix(t.ops[i].Name, "gloo:")
		})
		for _, ops := range [][]int{all, plain} {
			best, at, most := "", 0, dag.Time(-1)
			for _, key := range names {
				if taken[key] {
					continue
				}
				list := hosts[key]
				for _, first := range t.windows(p, ops, list) {
					overlap := dag.Time(0)
					if fixed {
						last := &p.host[list[first+len(ops)-1]]
						overlap = max(0, min(to, last.end())-max(from, p.host[list[first]].start))
					}
					if overlap > most {
						best, at, most = key, first, overlap
					}
				}
			}
			if best == "" {
				continue
			}
			taken[best] = true
			for k, i := range ops {
				h := &p.host[hosts[best][at+k]]
				h.op = i
				if !fixed || h.start < from {
					from = h.start
				}
				fixed, to = true, max(to, h.end())
			}
			t.links.matched += int64(len(ops))
			break
		}
	}
}

// windows returns where the names of ops are in those of host ops, by the algorithm of Knuth, Morris and Pratt.
func (t *trace) windows(p *profile, ops, list []int) (found []int) {
	if len(ops) == 0 || len(ops) > len(list) {
		return nil
	}
	name := func(k int) string { return t.ops[ops[k]].Name }
	back := make([]int, len(ops))
	for i, k := 1, 0; i < len(ops); i++ {
		for k > 0 && name(i) != name(k) {
			k = back[k-1]
		}
		if name(i) == name(k) {
			k++
		}
		back[i] = k
	}
	for i, k := 0, 0; i < len(list); i++ {
		for k > 0 && (k == len(ops) || p.host[list[i]].name != name(k)) {
			k = back[k-1]
		}
		if p.host[list[i]].name == name(k) {
			k++
		}
		if k == len(ops) {
			found = append(found, i+1-k)
		}
	}
	return found
}

// byThread returns the host ops of each thread, in the order of their starts, and the threads.
func (p *profile) byThread() (threads map[string][]int, names []string) {
	threads = make(map[string][]int)
	for i := range p.host {
		n := p.host[i].thread
		if threads[n] == nil {
			names = append(names, n)
		}
		threads[n] = append(threads[n], i)
	}
	return threads, names
}

// setExclusive sets the time of each host op in which no other op of its thread within it runs. The longest of ops
// that start together contains the others, but Chakra's linker takes the shortest as the first.
func (p *profile) setExclusive(ctx context.Context, compat bool) error {
	watch := par.Watch{Context: ctx}
	threads, names := p.byThread()
	for _, n := range names {
		list := slices.Clone(threads[n])
		slices.SortStableFunc(list, func(a, b int) int {
			x, y := &p.host[a], &p.host[b]
			longer := cmp.Compare(y.took, x.took)
			if compat {
				longer = -longer
			}
			return cmp.Or(cmp.Compare(x.start, y.start), longer)
		})
		for k, i := range list {
			o := &p.host[i]
			o.exclusive = o.took
			covered := o.start
			for _, j := range list[k+1:] {
				in := &p.host[j]
				if err := watch.Err(); err != nil {
					return err
				}
				if in.start > o.end() {
					break
				}
				if in.end() <= o.end() && in.end() > covered {
					o.exclusive -= in.end() - max(in.start, covered)
					covered = in.end()
				}
			}
		}
	}
	return nil
}

// setThreadDeps makes the ops of a thread behind a gap wait for the last op of the other threads that began before.
func (p *profile) setThreadDeps() {
	threads, names := p.byThread()
	for _, n := range names {
		list := threads[n]
		dep := int32(-1)
		for k, i := range list {
			o := &p.host[i]
			if k == 0 || o.start-p.host[list[k-1]].end() > threadGap {
				if last := p.lastBefore(o.start, n); last >= 0 {
					dep = last
				} else {
					dep = -1
				}
			}
			o.dep = dep
		}
	}
}

// lastBefore returns the last host op on another thread that began before a time, the first of those that began
// together; -1: none.
func (p *profile) lastBefore(at dag.Time, thread string) int32 {
	found := int32(-1)
	for i := sort.Search(len(p.host), func(i int) bool { return p.host[i].start >= at }) - 1; i >= 0; i-- {
		if found >= 0 && p.host[i].start != p.host[found].start {
			break
		}
		if p.host[i].thread != thread {
			found = int32(i)
		}
	}
	return found
}

// callersOf returns the device ops that each op of the trace launched.
func (t *trace) callersOf(p *profile) (map[int][]int, error) {
	threads, _ := p.byThread()
	calls := make(map[int][]int)
	for i := range p.devices {
		d := &p.devices[i]
		l, ok := p.launches[d.correlation]
		if l.twice {
			return nil, format.FileErrorf(p.file, "expected one launch with the correlation %d of the kernel %.60q, "+
				"found two", d.correlation, d.name)
		}
		caller := none
		if ok {
			caller = p.caller(d, l, threads[l.thread])
		}
		if caller == none || p.host[caller].op == none {
			t.links.orphans++
			continue
		}
		at := p.host[caller].op
		calls[at] = append(calls[at], i)
	}
	return calls, nil
}

// caller returns the last host op of the launch's thread that began before and has the number of the device op, else
// the last that began before.
func (p *profile) caller(d *deviceOp, l launch, list []int) int {
	last := none
	isNCCL := strings.Contains(strings.ToLower(d.name), "nccl")
	for k := sort.Search(len(list), func(k int) bool { return p.host[list[k]].start >= l.start }) - 1; k >= 0; k-- {
		o := &p.host[list[k]]
		if isNCCL && o.name == "nccl:coalesced" {
			continue
		}
		if o.external == d.external {
			return list[k]
		}
		if last == none {
			last = list[k]
		}
	}
	return last
}

// completeAll finds the groups and partners of all communications.
func (t *trace) completeAll() {
	t.findCallers()
	t.findBeside()
	for i := range t.ops {
		if k := t.ops[i].talk; k != nil && !k.wait && !k.direct {
			t.complete(i)
		}
	}
}

// build makes the linked ops.
func (t *trace) build(p *profile, calls map[int][]int) {
	host := make([]*hostOp, len(t.ops))
	for i := range p.host {
		if o := &p.host[i]; o.op != none {
			host[o.op] = o
		}
	}
	t.completeAll()
	ids := make(map[uint64]uint64, len(t.ops))
	old := t.ops
	ops := make([]op, 0, len(old)+len(p.devices))
	at := make([]uint64, len(old)) // new ids
	for i := range old {
		at[i] = uint64(len(ops))
		ids[old[i].ID] = at[i]
		o := old[i]
		o.ID = at[i]
		if h := host[i]; h != nil {
			o.setMicros(h.exclusive)
			if h.dep >= 0 {
				if on := p.host[h.dep].op; on != none && on < i {
					o.interDep = at[on]
				}
			}
		}
		ops = append(ops, o)
		for _, k := range calls[i] {
			d := t.deviceNode(i, &p.devices[k], uint64(len(ops)))
			d.parentID = at[i]
			ops = append(ops, d)
		}
	}
	t.ops, t.byID = ops, make(map[uint64]int, len(ops))
	for i := range ops {
		o := &ops[i]
		t.byID[o.ID] = i
		o.parent = none // an index of the old ops
		if o.hasParent && !o.device {
			o.parentID, o.hasParent = newID(ids, o.parentID)
		}
	}
}

func newID(ids map[uint64]uint64, id uint64) (uint64, bool) {
	n, ok := ids[id]
	return n, ok
}

// setMicros sets the duration, in whole microseconds.
func (o *op) setMicros(d dag.Time) {
	if !strings.Contains(o.Name, "Optimizer.step") {
		o.DurationMicros = uint64(max(d, 0) / dag.Microsecond)
	}
}

// deviceNode returns the node of a device op, a copy of that of its caller.
func (t *trace) deviceNode(at int, d *deviceOp, id uint64) op {
	caller := &t.ops[at]
	o := *caller
	o.Node.Attr = slices.Clone(caller.Attr[:len(numbers)+1])
	o.ID, o.Name, o.hasParent, o.device = id, d.name, true, true
	o.group, o.talk, o.interDep, o.sync, o.waits = "", nil, 0, false, false
	o.DurationMicros = 0
	o.setMicros(d.took)
	if strings.Contains(d.name, "ncclDevKernel") {
		o.group = d.group
	}
	if o.communicates() && !t.compat {
		o.talk = t.talkAround(at, d.group)
	}
	o.Attr = append(o.Attr, chakra.Bool(onHost, false))
	if d.hasStream {
		o.Attr = append(o.Attr, chakra.Int64("stream", d.stream))
	}
	return o
}

// talkAround returns the communication that the callers of a kernel record: that of the nearest record, else that of
// the nearest annotation; nil: none. The profile's name of the group, if any, replaces that in the trace.
func (t *trace) talkAround(i int, group string) *talk {
	var found *talk
	for steps := 0; i != none && steps < mostCallers; steps++ {
		if k := t.ops[i].talk; k != nil && !k.wait && !k.direct && (found == nil || k.record && !found.record) {
			found = k
		}
		i = t.ops[i].parent
	}
	if found == nil || group == "" {
		return found
	}
	k := *found
	k.group = group
	return &k
}

// warnNames reports matches of different names.
func (l *linking) warnNames(t *trace, warn func(string, ...any)) {
	if l.misnamed > 0 {
		warn("%s: %d nodes have another name in the profile", t.file, l.misnamed)
	}
}

// warn reports how much was linked.
func (l *linking) warn(t *trace, warn func(string, ...any)) {
	if n := l.of - l.matched; n > 0 {
		warn("%s: %d of %d nodes are not in the profile: they take no time", t.file, n, l.of)
	}
	l.warnNames(t, warn)
	if l.orphans > 0 {
		warn("%s: %d kernels and copies are dropped: the profile lacks the calls that launched them, or the operators "+
			"around these", t.file, l.orphans)
	}
}
