package dag

import (
	"bytes"
	"cmp"
	"fmt"
	"math/bits"
	"slices"

	"github.com/tracedag/tracedag/internal/par"
)

// Difference is the difference between two traces, a and b, that [Compare] returns. The difference between b and a is
// the same with the sides exchanged.
type Difference struct {
	// Facts are the differences in the header and in the sums over all ops. Names are those of the members of [Stats]
	// in JSON, such as "ops_by_kind.send".
	Facts []Fact `json:"facts"`
	// Fields are the fields of ops in which ops of the same rank and index differ.
	Fields []FieldDifference `json:"fields"`
	// Ranks is the number of ranks with different ops. Ops is the number of ops that both traces have, by rank and
	// index, and that differ in a field.
	Ranks int   `json:"ranks_differ"`
	Ops   int64 `json:"ops_differ"`
	// First is the first op, by rank and index, that differs or that only one trace has; nil if there is none.
	First *OpDifference `json:"-"`
}

// Equal reports whether there is no difference.
func (d *Difference) Equal() bool {
	return len(d.Facts) == 0 && len(d.Fields) == 0 && d.First == nil
}

// Fact is a value of the header or a sum that differs.
type Fact struct {
	Name  string `json:"name"`
	Where string `json:"where,omitempty"` // first place that differs, such as "rank 3", for values with several
	Count int    `json:"count,omitempty"` // number of places that differ, for values with several
	A     any    `json:"a"`
	B     any    `json:"b"`
}

// FieldDifference counts the ops that differ in a field.
type FieldDifference struct {
	Field FieldID `json:"-"`
	Name  string  `json:"field"`
	Ops   int64   `json:"ops"`
	Rank  int     `json:"first_rank"` // rank and index of the first such op
	Op    int     `json:"first_op"`
}

// OpDifference is an op that differs.
type OpDifference struct {
	Rank, Op int
	// A and B are ranks with this op only, which has the index 0. Offsets of its dependencies are relative to Op. A is
	// nil if only b has the op, B if only a has it.
	A, B *Rank
}

// Digester is implemented by sources that may have a digest of their ops. Sources of the same type and with equal
// digests have equal ops.
type Digester interface {
	Digest() string // "" if there is none
	Verify() error  // returns an error unless the ops have the digest
}

// Compare compares two traces rank by rank, several batches in parallel. It keeps one batch of each trace per
// goroutine in memory. Ops are compared by rank and index.
//
// Formats other than the store keep neither titles nor provenance. Titles are compared if both traces have one;
// provenance is never compared.
//
// If both sources are a [Digester] with equal digests, Compare verifies the digests instead of comparing the ops.
func Compare(a, b Source) (*Difference, error) {
	ha, err := a.Header()
	if err != nil {
		return nil, err
	}
	hb, err := b.Header()
	if err != nil {
		return nil, err
	}
	d := &Difference{Facts: headerFacts(ha, hb), Fields: []FieldDifference{}}
	if same, err := sameDigest(a, b); same || err != nil {
		return d, err
	}
	segments := segmentsOf(ha, hb)
	workers, err := par.EachWith(len(segments), func() *comparison { return newComparison(a, b) },
		func(c *comparison, i int) error { return c.segment(&segments[i]) })
	if err != nil {
		return nil, err
	}
	all := newComparison(a, b)
	for _, w := range workers {
		all.merge(w)
	}
	all.report(d)
	return d, nil
}

// sameDigest reports whether both sources have the same digest, after verifying it.
func sameDigest(a, b Source) (bool, error) {
	da, isA := a.(Digester)
	db, isB := b.(Digester)
	if !isA || !isB || da.Digest() == "" || da.Digest() != db.Digest() {
		return false, nil
	}
	if err := da.Verify(); err != nil {
		return false, err
	}
	return true, db.Verify()
}

// headerFacts compares the headers.
func headerFacts(a, b *Header) []Fact {
	facts := []Fact{}
	add := func(f Fact, differs bool) {
		if differs {
			facts = append(facts, f)
		}
	}
	add(Fact{Name: "title", A: a.Title, B: b.Title}, a.Title != "" && b.Title != "" && a.Title != b.Title)
	add(Fact{Name: "ranks", A: a.Ranks, B: b.Ranks}, a.Ranks != b.Ranks)
	nodes := places(min(a.Ranks, b.Ranks), "rank", func(rank int) (any, any, bool) {
		return a.node(rank), b.node(rank), a.node(rank) == b.node(rank)
	})
	nodes.Name = "node"
	add(nodes, nodes.Count > 0)
	add(Fact{Name: "jobs", A: max(1, len(a.Jobs)), B: max(1, len(b.Jobs))}, max(1, len(a.Jobs)) != max(1, len(b.Jobs)))
	jobs := places(min(len(a.Jobs), len(b.Jobs)), "job", func(job int) (any, any, bool) {
		return a.Jobs[job], b.Jobs[job], a.Jobs[job] == b.Jobs[job]
	})
	jobs.Name = "job_name"
	add(jobs, jobs.Count > 0)
	add(Fact{Name: "steps", A: a.Steps, B: b.Steps}, a.Steps != b.Steps)
	add(Fact{Name: "communicators", A: len(a.Comms), B: len(b.Comms)}, len(a.Comms) != len(b.Comms))
	comms := places(min(len(a.Comms), len(b.Comms)), "communicator", func(i int) (any, any, bool) {
		c, d := &a.Comms[i], &b.Comms[i]
		if i == 0 && a.Ranks != b.Ranks || c.Name == d.Name && (slices.Equal(c.Ranges, d.Ranges) || c.Equal(d)) {
			return nil, nil, true // communicator 0 is all ranks
		}
		return c.text(d), d.text(c), false
	})
	comms.Name = "communicator"
	add(comms, comms.Count > 0)
	add(Fact{Name: "attrs", A: a.Attrs, B: b.Attrs}, a.Attrs != b.Attrs)
	return facts
}

// places compares n values and returns their number and the first that differs.
func places(n int, noun string, values func(i int) (a, b any, equal bool)) (f Fact) {
	for i := range n {
		a, b, equal := values(i)
		if equal {
			continue
		}
		if f.Count++; f.Count == 1 {
			f.Where, f.A, f.B = fmt.Sprintf("%s %d", noun, i), a, b
		}
	}
	return f
}

// node returns the node of a rank.
func (m *Meta) node(rank int) int32 {
	if m.Nodes == nil || rank >= len(m.Nodes) {
		return int32(rank)
	}
	return m.Nodes[rank]
}

// text describes a communicator that differs from another: its name, its size and its first member that differs.
func (c *Comm) text(other *Comm) string {
	members, others := c.Members(), other.Members()
	at := 0
	for at < min(len(members), len(others)) && members[at] == others[at] {
		at++
	}
	text := fmt.Sprintf("%d ranks", len(members))
	if c.Name != "" {
		text = c.Name + ", " + text
	}
	if at < len(members) {
		text += fmt.Sprintf(", member %d is rank %d", at, members[at])
	}
	return text
}

// segment is a run of ranks that no batch of either trace crosses.
type segment struct {
	first, last int // last is exclusive
	a, b        []Batch
}

// segmentsOf divides the ranks of both traces into segments. The ranks that only one trace has belong to the last.
func segmentsOf(a, b *Header) (all []segment) {
	ranks := max(a.Ranks, b.Ranks)
	s := segment{}
	i, k := 0, 0
	for i < len(a.Batches) || k < len(b.Batches) {
		endA, endB := 0, 0 // ends of the batches of the segment
		for grown := true; grown; {
			grown = false
			if i < len(a.Batches) && (len(s.a) == 0 || endA < endB) {
				endA, i, grown = a.Batches[i].Last, i+1, true
				s.a = a.Batches[i-len(s.a)-1 : i]
			}
			if k < len(b.Batches) && (len(s.b) == 0 || endB < endA) {
				endB, k, grown = b.Batches[k].Last, k+1, true
				s.b = b.Batches[k-len(s.b)-1 : k]
			}
		}
		s.last = max(endA, endB)
		if i == len(a.Batches) && k == len(b.Batches) {
			s.last = ranks
		}
		all = append(all, s)
		s = segment{first: s.last}
	}
	return all
}

// comparison compares segments of two traces.
type comparison struct {
	readA, readB   Reader
	countA, countB *tally
	fields         [NumFields]FieldDifference
	ranks          int
	ops            int64
	first          *OpDifference
	marks          []uint64 // ops of the rank that differ, as a set
}

func newComparison(a, b Source) *comparison {
	return &comparison{readA: a.NewReader(All), readB: b.NewReader(All), countA: newTally(), countB: newTally()}
}

// batchCursor returns the ranks of consecutive batches one by one.
type batchCursor struct {
	read    Reader
	batches []Batch
	ranks   []*Rank // those that are left of the current batch
}

// next returns the next rank, nil after the last.
func (c *batchCursor) next() (*Rank, error) {
	for len(c.ranks) == 0 {
		if len(c.batches) == 0 {
			return nil, nil
		}
		var err error
		if c.ranks, err = c.read.Ranks(c.batches[0]); err != nil {
			return nil, err
		}
		c.batches = c.batches[1:]
	}
	r := c.ranks[0]
	c.ranks = c.ranks[1:]
	return r, nil
}

func (c *comparison) segment(s *segment) error {
	a, b := batchCursor{read: c.readA, batches: s.a}, batchCursor{read: c.readB, batches: s.b}
	for rank := s.first; rank < s.last; rank++ {
		ra, err := a.next()
		if err != nil {
			return err
		}
		rb, err := b.next()
		if err != nil {
			return err
		}
		if ra != nil {
			c.countA.add(ra)
		}
		if rb != nil {
			c.countB.add(rb)
		}
		c.compare(rank, ra, rb)
	}
	return nil
}

// compare compares a rank. A trace without the rank counts as a rank without ops.
func (c *comparison) compare(rank int, a, b *Rank) {
	if a == nil {
		a = &none
	}
	if b == nil {
		b = &none
	}
	if a == b {
		return
	}
	n := min(a.Len(), b.Len())
	if words := (n + 63) / 64; len(c.marks) < words {
		c.marks = make([]uint64, words)
	}
	first := n // the first op that differs
	marked := false
	for id := range Fields {
		f := &c.fields[id]
		report := func(i int) {
			if f.Ops++; f.Ops == 1 || rank < f.Rank { // ranks may come in any order, ops of a rank ascend
				f.Rank, f.Op = rank, i
			}
			first, marked = min(first, i), true
			c.marks[i/64] |= 1 << (i % 64)
		}
		switch FieldID(id) {
		case FieldOrder:
			differentOrder(&a.Deps, &b.Deps, &a.Order, &b.Order, a.Len(), b.Len(), report)
		case FieldStartOrder:
			differentOrder(&a.StartDeps, &b.StartDeps, &a.StartOrder, &b.StartOrder, a.Len(), b.Len(), report)
		default:
			Fields[id].Of(a).differ(Fields[id].Of(b), n, report)
		}
	}
	if marked {
		for i, word := range c.marks[:(n+63)/64] {
			c.ops += int64(bits.OnesCount64(word))
			c.marks[i] = 0
		}
	}
	if !marked && a.Len() == b.Len() {
		return
	}
	c.ranks++
	if c.first == nil || rank < c.first.Rank {
		c.first = &OpDifference{Rank: rank, Op: first, A: a.single(first), B: b.single(first)}
	}
}

// differentOrder reports the ops whose dependents have different orders, unless the dependencies themselves differ.
func differentOrder(depsA, depsB, orderA, orderB *Edges, opsA, opsB int, report func(i int)) {
	if len(orderA.Off)+len(orderB.Off) == 0 || orderA.Equal(orderB) || opsA != opsB || !depsA.Equal(depsB) {
		return
	}
	a, b := depsA.Dependents(opsA, orderA), depsB.Dependents(opsB, orderB)
	for i := range opsA {
		if !slices.Equal(a.Of(i), b.Of(i)) {
			report(i)
		}
	}
}

// single returns a rank with op i only, nil if there is no such op. Offsets of dependencies stay relative to i.
func (r *Rank) single(i int) *Rank {
	if i >= r.Len() {
		return nil
	}
	out, _ := r.Gather([]int32{int32(i)}) // the texts of one op fit
	for _, e := range [...]struct{ from, to *Edges }{
		{&r.Deps, &out.Deps}, {&r.StartDeps, &out.StartDeps},
	} {
		for _, off := range e.from.Of(i) {
			e.to.Append(0, off)
		}
	}
	return &out
}

func (c *comparison) merge(o *comparison) {
	c.countA.merge(o.countA)
	c.countB.merge(o.countB)
	c.ranks += o.ranks
	c.ops += o.ops
	if c.first == nil || o.first != nil && o.first.Rank < c.first.Rank {
		c.first = o.first
	}
	for id := range c.fields {
		f, g := &c.fields[id], &o.fields[id]
		if g.Ops == 0 {
			continue
		}
		if f.Ops == 0 || g.Rank < f.Rank {
			f.Rank, f.Op = g.Rank, g.Op
		}
		f.Ops += g.Ops
	}
}

// report adds the differences to d.
func (c *comparison) report(d *Difference) {
	d.Ranks, d.Ops, d.First = c.ranks, c.ops, c.first
	for id := range c.fields {
		if f := c.fields[id]; f.Ops > 0 {
			f.Field, f.Name = FieldID(id), Fields[id].Name
			d.Fields = append(d.Fields, f)
		}
	}
	a, b := c.countA.counts(), c.countB.counts()
	add := func(name string, a, b any, order int) {
		if order != 0 {
			d.Facts = append(d.Facts, Fact{Name: name, A: a, B: b})
		}
	}
	number := func(name string, a, b int64) { add(name, a, b, cmp.Compare(a, b)) }
	total := func(name string, a, b Total) { add(name, a, b, a.Compare(b)) }
	number("ops", a.Ops, b.Ops)
	for kind := range a.Kinds {
		number("ops_by_kind."+Kind(kind).String(), a.Kinds[kind], b.Kinds[kind])
	}
	for subkind := range a.Subkinds {
		number("ops_by_subkind."+Subkind(subkind).String(), a.Subkinds[subkind], b.Subkinds[subkind])
	}
	total("sent_bytes", a.SentBytes, b.SentBytes)
	total("received_bytes", a.ReceivedBytes, b.ReceivedBytes)
	total("collective_bytes", a.CollectiveBytes, b.CollectiveBytes)
	total("mem_bytes", a.MemBytes, b.MemBytes)
	total("io_bytes", a.IOBytes, b.IOBytes)
	add("calc_ps", a.CalcTime, b.CalcTime, a.CalcTime.Cmp(b.CalcTime))
	total("flops", a.Flops, b.Flops)
	add("last_release_ps", a.LastRelease, b.LastRelease, cmp.Compare(a.LastRelease, b.LastRelease))
	number("deps", a.Deps, b.Deps)
	number("start_deps", a.StartDeps, b.StartDeps)
}

// blockOps is the number of values that differ compares at once.
const blockOps = 1 << 10

// differ calls report for each of n ops whose values differ. stored is the number of ops with a stored value in either
// column, and same compares the values of a run of ops.
func differ(n, stored int, same func(from, to int) bool, differs func(i int) bool, report func(i int)) {
	n = min(n, stored)
	for from := 0; from < n; from += blockOps {
		to := min(from+blockOps, n)
		if same(from, to) {
			continue
		}
		for i := from; i < to; i++ {
			if differs(i) {
				report(i)
			}
		}
	}
}

func (c *Column[T]) differ(other Values, n int, report func(i int)) {
	d := *other.(*Column[T])
	if equal(*c, d) {
		return
	}
	differ(n, max(len(*c), len(d)), func(from, to int) bool {
		return to <= min(len(*c), len(d)) && slices.Equal((*c)[from:to], d[from:to])
	}, func(i int) bool { return c.At(i) != d.At(i) }, report)
}

func (c *Narrow) differ(other Values, n int, report func(i int)) {
	d := other.(*Narrow)
	if c.Equal(d) {
		return
	}
	differ(n, max(c.Len(), d.Len()), func(from, to int) bool {
		return to <= min(len(c.small), len(d.small)) && bytes.Equal(c.small[from:to], d.small[from:to])
	}, func(i int) bool { return c.At(i) != d.At(i) }, report)
}

func (c *Text) differ(other Values, n int, report func(i int)) {
	d := other.(*Text)
	if equal(c.end, d.end) && bytes.Equal(c.data, d.data) {
		return
	}
	differ(n, max(len(c.end), len(d.end)), func(int, int) bool { return false },
		func(i int) bool { return !bytes.Equal(c.of(i), d.of(i)) }, report)
}

func (e *Edges) differ(other Values, n int, report func(i int)) {
	f := other.(*Edges)
	if e.Equal(f) {
		return
	}
	differ(n, max(len(e.End), len(f.End)), func(int, int) bool { return false },
		func(i int) bool { return !slices.Equal(e.Of(i), f.Of(i)) }, report)
}

func (c *Times) differ(other Values, n int, report func(i int)) {
	d := other.(*Times)
	if equal(*c, *d) {
		return
	}
	differ(n, max(len(*c), len(*d)), func(from, to int) bool {
		return to <= min(len(*c), len(*d)) && slices.Equal((*c)[from:to], (*d)[from:to])
	}, func(i int) bool { return c.At(i) != d.At(i) }, report)
}
