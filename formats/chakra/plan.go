// This file determines, before writing, the data that files need and the trace lacks: communicator numbers, 32-bit
// tags, and receives with the sizes of their messages.

package chakra

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"

	"github.com/tracedag/tracedag/dag"
	"github.com/tracedag/tracedag/formats/format"
)

// maxTag is the limit of the tags that simulators distinguish.
const maxTag = 500_000_000

// plan is the plan for writing a trace.
type plan struct {
	t        *dag.Trace // with clocks
	original *dag.Trace
	known    *knowledge        // of the files that the trace was read from; nil: none
	jobs     []bool            // for a merged trace: which of its jobs were read from such files
	layouts  map[string]layout // by name
	groups   []string          // number of each communicator
	tags     map[message]int32 // tags that differ from the trace
	sizes    []map[int32]int64 // by rank: sizes of receives that differ from the trace
	markers  int64             // markers that dependencies replace
	uneven   int64             // collectives with different sizes per member, replaced by even ones
	*clocks
}

// message is the scope of a tag.
type message struct {
	comm int32
	tag  int64
}

// newPlan returns the plan of a trace, or an error if the format cannot represent the trace.
func newPlan(t *dag.Trace, o format.WriteOptions) (*plan, error) {
	if len(t.Ranks) == 0 {
		return nil, errors.New("expected at least 1 rank, found none")
	}
	original := t
	t, uneven := withEven(t)
	for rank := range t.Ranks {
		if err := check(t, rank); err != nil {
			return nil, err
		}
	}
	for i := range t.Comms {
		if err := t.Comms[i].Check(len(t.Ranks)); err != nil {
			return nil, fmt.Errorf("communicator %d: %w", i, err)
		}
	}
	p := &plan{t: t, original: original, uneven: uneven, clocks: new(clocks), layouts: make(map[string]layout)}
	if own := format.Own(o.Own, newWriteOptions); !own.NoClock && !o.Compat {
		var err error
		if p.t, p.clocks, err = withClocks(t, own); err != nil {
			return nil, err
		}
	}
	p.joinMarkers()
	p.remember()
	p.numberGroups()
	if err := p.numberTags(); err != nil {
		return nil, err
	}
	p.matchSizes()
	return p, nil
}

// evenOf has the collectives with equal sizes in place of those with a size per member.
var evenOf = map[dag.Subkind]dag.Subkind{dag.Alltoallv: dag.Alltoall, dag.Allgatherv: dag.Allgather}

// withEven returns the trace with even collectives in place of uneven ones of the same total size, and their number.
func withEven(t *dag.Trace) (*dag.Trace, int64) {
	out, replaced := t, int64(0)
	for rank, r := range t.Ranks {
		own := false
		for i, s := range r.Subkind {
			even, ok := evenOf[s]
			if !ok || r.Kind[i] != dag.Coll {
				continue
			}
			if !own {
				if out == t {
					c := *t
					c.Ranks = slices.Clone(t.Ranks)
					out = &c
				}
				r.Subkind = slices.Clone(r.Subkind)
				own = true
			}
			r.Subkind[i] = even
			replaced++
		}
		if own {
			out.Ranks[rank] = r
		}
	}
	return out, replaced
}

// joinMarkers replaces markers by dependencies.
func (p *plan) joinMarkers() {
	t := *p.t
	t.Ranks = slices.Clone(t.Ranks)
	for rank, r := range t.Ranks {
		if without, removed := withoutMarkers(r); removed > 0 {
			t.Ranks[rank] = without.Keep()
			p.markers += removed
		}
	}
	if p.markers > 0 {
		p.t = &t
	}
}

// check returns an error if a rank has an op that no node can represent.
func check(t *dag.Trace, rank int) error {
	r := t.Ranks[rank]
	if err := r.CheckReferences(); err != nil {
		return fmt.Errorf("rank %d: %w", rank, err)
	}
	wrong := func(i int, problem string, args ...any) error {
		return fmt.Errorf("rank %d, op %d: %s", rank, i, fmt.Sprintf(problem, args...))
	}
	if slices.ContainsFunc(r.Deps.Off, func(off int32) bool { return off <= 0 }) {
		if cycle := findCycle(r); cycle != nil {
			return wrong(cycle[0], "cyclic dependency of %d ops", len(cycle))
		}
	}
	for i, kind := range r.Kind {
		peer, subkind := r.Peer.At(i), r.Subkind.At(i)
		switch {
		case kind == dag.Recv && peer == dag.AnySource:
			return wrong(i, "a receive from any source, which Chakra cannot express")
		case kind == dag.Recv && r.Tag.At(i) == dag.AnyTag:
			return wrong(i, "a receive with any tag, which Chakra cannot express")
		case (kind == dag.Send || kind == dag.Recv) && peer < 0:
			return wrong(i, "a %v with rank %d", kind, peer)
		case kind == dag.Coll && CollectiveNumber(subkind) < 0:
			return wrong(i, "Chakra has no %v (%s); --lower needed sends them as messages", subkind,
				format.CountOps(countOps(t, kind, subkind)))
		case kind >= dag.IO:
			return wrong(i, "Chakra has no storage accesses (%s); --lower needed sends them as messages",
				format.CountOps(countOps(t, kind, dag.NoSubkind)))
		case !subkind.Of(kind):
			return wrong(i, "a %v cannot be of the kind %v", kind, subkind)
		case r.Bytes.At(i) < 0 || r.Flops.At(i) < 0 || r.Duration.At(i) < 0:
			return wrong(i, "expected a size, time and flops of 0 or more, found a negative one")
		}
		if comm := r.Comm.At(i); comm < 0 || int(comm) >= max(1, len(t.Comms)) {
			return wrong(i, "expected one of %d communicators, found %d", len(t.Comms), comm)
		}
	}
	return nil
}

// countOps returns the number of ops of a kind, and of a subkind unless that is NoSubkind.
func countOps(t *dag.Trace, kind dag.Kind, subkind dag.Subkind) (n int64) {
	for rank := range t.Ranks {
		r := t.Ranks[rank]
		for i, k := range r.Kind {
			if k == kind && (subkind == dag.NoSubkind || r.Subkind.At(i) == subkind) {
				n++
			}
		}
	}
	return n
}

// remember finds the data about the files that the trace was read from.
func (p *plan) remember() {
	p.jobs = p.addJobs([]byte(p.t.Attrs), &p.known)
	if len(p.jobs) != len(p.t.Jobs) {
		p.jobs = nil // a job without such data had jobs itself, so that job numbers are ambiguous
	}
}

// addJobs adds the layouts in the attributes of a trace, and returns which of its jobs come from files of this
// format. The jobs of a merged trace may be merged traces themselves. If the trace is not merged, known receives
// its knowledge.
func (p *plan) addJobs(text json.RawMessage, known **knowledge) []bool {
	var attrs struct {
		Chakra *knowledge        `json:"chakra"`
		Jobs   []json.RawMessage `json:"jobs"`
	}
	if len(text) == 0 || json.Unmarshal(text, &attrs) != nil || attrs.Chakra != nil || attrs.Jobs == nil {
		*known = attrs.Chakra
		p.addLayouts(attrs.Chakra)
		return []bool{attrs.Chakra != nil}
	}
	var jobs []bool
	for _, job := range attrs.Jobs {
		var own *knowledge
		jobs = append(jobs, p.addJobs(job, &own)...)
	}
	return jobs
}

func (p *plan) addLayouts(k *knowledge) {
	if k == nil {
		return
	}
	for id, stored := range k.Layouts {
		if l, ok := stored.layout(); ok {
			p.layouts[id] = l
		}
	}
}

// ours reports whether the attributes of a job's ops are of this format.
func (p *plan) ours(job int32) bool {
	return p.known != nil || job >= 0 && int(job) < len(p.jobs) && p.jobs[job]
}

// numberGroups assigns every communicator a number: its name, if that is a unique number, else its number in the
// trace or, if that is taken, a free one.
func (p *plan) numberGroups() {
	comms := p.t.Comms
	p.groups = make([]string, max(1, len(comms)))
	p.groups[0] = "0"
	taken := make(map[string]bool, len(comms))
	for i := 1; i < len(comms); i++ {
		if name := comms[i].Name; isGroupNumber(name) && !taken[name] {
			p.groups[i], taken[name] = name, true
		}
	}
	free := 1
	for i := 1; i < len(comms); i++ {
		if p.groups[i] != "" {
			continue
		}
		number := strconv.Itoa(i)
		for taken[number] {
			number = strconv.Itoa(free)
			free++
		}
		p.groups[i], taken[number] = number, true
	}
}

// keepsName reports whether a communicator keeps its name, as one from a file does.
func (p *plan) keepsName(comm int32) bool {
	return comm == 0 || p.known != nil || p.t.Comms[comm].Name == "" || p.t.Comms[comm].Name == p.groups[comm]
}

// keepsTag reports whether a message can keep its tag. The tags of files stay unchanged.
func (p *plan) keepsTag(m message) bool {
	limit := int64(maxTag)
	if p.known != nil {
		limit = 1 << 32
	}
	return m.comm == 0 && 0 <= m.tag && m.tag < limit
}

// numberTags assigns new tags to messages whose tags are too large or negative, or which are on a communicator,
// where the same tag has another meaning. The new tags are the lowest unused ones, in the order of the old tags.
func (p *plan) numberTags() error {
	p.tags = make(map[message]int32)
	var others []message
	for rank := range p.t.Ranks {
		eachMessage(p.t.Ranks[rank], func(i int, m message) {
			if !p.keepsTag(m) {
				if _, known := p.tags[m]; !known {
					p.tags[m] = 0
					others = append(others, m)
				}
			}
		})
	}
	if len(others) == 0 {
		return nil
	}
	kept := make(map[int64]bool)
	for rank := range p.t.Ranks {
		eachMessage(p.t.Ranks[rank], func(i int, m message) {
			if p.keepsTag(m) {
				kept[m.tag%maxTag] = true
			}
		})
	}
	slices.SortFunc(others, func(x, y message) int {
		return cmp.Or(cmp.Compare(x.comm, y.comm), cmp.Compare(x.tag, y.tag))
	})
	free := int64(0)
	for _, m := range others {
		for kept[free] {
			free++
		}
		if free >= maxTag {
			return fmt.Errorf("expected at most %d different tags of messages, the number that Chakra's simulators "+
				"distinguish, found more", maxTag)
		}
		p.tags[m] = int32(free)
		free++
	}
	return nil
}

// eachMessage calls do for the messages of a rank.
func eachMessage(r *dag.Rank, do func(i int, m message)) {
	for i, kind := range r.Kind {
		if kind == dag.Send || kind == dag.Recv {
			do(i, message{r.Comm.At(i), r.Tag.At(i)})
		}
	}
}

// tag returns the tag of a message.
func (p *plan) tag(m message) int64 {
	if len(p.tags) > 0 {
		if tag, ok := p.tags[m]; ok {
			return int64(tag)
		}
	}
	return m.tag
}

// transfer is one end of a message.
type transfer struct {
	source, dest int32
	tag, bytes   int64
	op           int32 // op at its end
}

// matchSizes determines the sizes of receives. Simulators match a message only with a receive of the same size,
// whereas a receive of a trace may be larger. Messages with equal source, destination and tag are matched in
// order. Receives from files keep their sizes.
func (p *plan) matchSizes() {
	p.sizes = make([]map[int32]int64, len(p.t.Ranks))
	if p.sizesAgree() {
		return
	}
	var ends [2][]transfer // of sends and of receives
	for rank := range p.t.Ranks {
		p.eachTransfer(rank, func(kind dag.Kind, x transfer) { ends[kind-dag.Send] = append(ends[kind-dag.Send], x) })
	}
	channel := func(x, y transfer) int {
		return cmp.Or(cmp.Compare(x.source, y.source), cmp.Compare(x.dest, y.dest), cmp.Compare(x.tag, y.tag))
	}
	for _, e := range ends {
		slices.SortStableFunc(e, channel)
	}
	sends, recvs := ends[0], ends[1]
	for len(recvs) > 0 {
		n := 1
		for n < len(recvs) && channel(recvs[n], recvs[0]) == 0 {
			n++
		}
		first, _ := slices.BinarySearchFunc(sends, recvs[0], channel)
		last := first
		for last < len(sends) && channel(sends[last], recvs[0]) == 0 {
			last++
		}
		p.matchChannel(sends[first:last], recvs[:n])
		recvs = recvs[n:]
	}
}

// matchChannel sets the sizes of receives to those of the messages, unless both are equal in another order.
func (p *plan) matchChannel(sends, recvs []transfer) {
	bytes := func(all []transfer) []int64 {
		b := make([]int64, len(all))
		for i := range all {
			b[i] = all[i].bytes
		}
		slices.Sort(b)
		return b
	}
	if slices.Equal(bytes(sends), bytes(recvs)) {
		return
	}
	for i, recv := range recvs[:min(len(sends), len(recvs))] {
		if sends[i].bytes == recv.bytes {
			continue
		}
		sizes := &p.sizes[recv.dest]
		if *sizes == nil {
			*sizes = make(map[int32]int64)
		}
		(*sizes)[recv.op] = sends[i].bytes
	}
}

func (p *plan) eachTransfer(rank int, do func(kind dag.Kind, x transfer)) {
	r := p.t.Ranks[rank]
	eachMessage(r, func(i int, m message) {
		if p.ours(r.Job.At(i)) {
			return
		}
		x := transfer{source: int32(rank), dest: r.Peer.At(i), tag: p.tag(m), bytes: r.Bytes.At(i), op: int32(i)}
		if r.Kind[i] == dag.Recv {
			x.source, x.dest = x.dest, x.source
		}
		do(r.Kind[i], x)
	})
}

// sizesAgree reports whether messages and receives have the same sizes, by a hash of each.
func (p *plan) sizesAgree() bool {
	sum := uint64(0)
	mix := func(h, v uint64) uint64 {
		h = (h ^ v) * 0x9e3779b97f4a7c15
		return h ^ h>>29
	}
	for rank := range p.t.Ranks {
		p.eachTransfer(rank, func(kind dag.Kind, x transfer) {
			h := mix(mix(mix(math.MaxUint32, uint64(x.source)<<32|uint64(x.dest)), uint64(x.tag)), uint64(x.bytes))
			if kind == dag.Recv {
				h = -h
			}
			sum += h
		})
	}
	return sum == 0
}
