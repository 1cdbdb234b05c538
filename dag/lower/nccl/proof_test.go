package nccl

import (
	"context"
	"fmt"
	"math/bits"
	"math/rand/v2"
	"testing"

	"github.com/tracedag/tracedag/dag"
	"github.com/tracedag/tracedag/dag/lower/nodes"
)

// This file proves the algorithms correct: it runs the lowered ops of one collective in random orders that respect
// their
// dependencies, on symbolic data. The value of a cell is the set of ranks whose contributions it holds. A contribution
// must not be reduced twice, no data may be used before it is there, and in the end every rank must have the result,
// with
// every contribution once.

// effect is what an op does with a cell.
type effect struct {
	does
	cell
}

// set is a set of at most 128 ranks.
type set [2]uint64

func one(i int32) (s set) {
	s[i/64] = 1 << (i % 64)
	return s
}

func (s set) or(o set) set        { return set{s[0] | o[0], s[1] | o[1]} }
func (s set) overlaps(o set) bool { return s[0]&o[0] != 0 || s[1]&o[1] != 0 }

// proven is the execution of a lowered collective.
type proven struct {
	kind    dag.Subkind
	root    int32
	trace   *dag.Trace
	nodeOf  []int32
	effects []map[int32][]effect // by rank and op

	memory, buffer, published []map[cell]set
	held                      []map[int32][]cellValue // by rank and receive
	sent                      map[[3]int64][]cellValue
}

type cellValue struct {
	cell
	value set
}

// prove lowers one collective of all ranks, of the given bytes of one rank, and runs it in several orders. It returns
// the
// lowered trace.
func prove(t *testing.T, name string, o Options, kind dag.Subkind, root int32, bytes int64, attrs string,
	nodeOf []int32) *dag.Trace {
	t.Helper()
	n := len(nodeOf)
	j := newJob(n, nodeOf...)
	op := dag.Op{Kind: dag.Coll, Subkind: kind, Bytes: bytes, Peer: root}
	if kind == dag.ReduceScatter {
		op.Bytes *= int64(n)
	}
	for rank := range int32(n) {
		j.add(rank, op, attrs)
	}
	l, err := newLowering(context.Background(), j.Trace(), &o)
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	p := &proven{kind: kind, root: root, nodeOf: nodeOf, effects: make([]map[int32][]effect, n)}
	for i := range p.effects {
		p.effects[i] = make(map[int32][]effect)
	}
	s, err := nodes.Apart(context.Background(), l)
	if err == nil {
		err = l.assignTags()
	}
	if err == nil {
		l.proof = func(rank, op int32, d does, c cell) {
			p.effects[rank][op] = append(p.effects[rank][op], effect{d, c})
		}
		p.trace, err = s.ReadAll()
	}
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	for _, problem := range dag.Validate(p.trace) {
		t.Fatalf("%s: %v", name, problem)
	}
	size := l.comms[0].instances[0].call.typeSize
	for seed := range uint64(2) {
		if err := p.run(rand.New(rand.NewPCG(seed, 1)), bytes/size); err != nil {
			t.Fatalf("%s, order %d: %v", name, seed, err)
		}
	}
	return p.trace
}

// run executes the ops in a random order. elements is the size of the call.
func (p *proven) run(draw *rand.Rand, elements int64) error {
	n := len(p.trace.Ranks)
	p.sent = make(map[[3]int64][]cellValue)
	clear := func(m *[]map[cell]set) {
		*m = make([]map[cell]set, n)
		for i := range *m {
			(*m)[i] = make(map[cell]set)
		}
	}
	clear(&p.memory)
	clear(&p.buffer)
	clear(&p.published)
	p.held = make([]map[int32][]cellValue, n)
	type at struct{ rank, op int32 }
	waits, after, ready := make(map[at]int), make(map[at][]at), []at(nil)
	receive := make(map[[3]int64]at)
	for rank := range int32(n) {
		p.held[rank] = make(map[int32][]cellValue)
		r := p.trace.Ranks[rank]
		for i := range int32(r.Len()) {
			if r.Kind[i] == dag.Recv {
				receive[[3]int64{int64(r.Peer.At(int(i))), int64(rank), r.Tag.At(int(i))}] = at{rank, i}
			}
		}
	}
	for rank := range int32(n) {
		r := p.trace.Ranks[rank]
		for i := range int32(r.Len()) {
			a := at{rank, i}
			for _, off := range r.Deps.Of(int(i)) {
				after[at{rank, i - off}] = append(after[at{rank, i - off}], a)
				waits[a]++
			}
			if r.Kind[i] == dag.Send {
				to := receive[[3]int64{int64(rank), int64(r.Peer.At(int(i))), r.Tag.At(int(i))}]
				after[a] = append(after[a], to)
				waits[to]++
			}
		}
	}
	for rank := range int32(n) {
		for i := range int32(p.trace.Ranks[rank].Len()) {
			if waits[at{rank, i}] == 0 {
				ready = append(ready, at{rank, i})
			}
		}
	}
	done := 0
	for len(ready) > 0 {
		k := draw.IntN(len(ready))
		a := ready[k]
		ready[k] = ready[len(ready)-1]
		ready = ready[:len(ready)-1]
		if err := p.execute(a.rank, a.op); err != nil {
			return fmt.Errorf("rank %d, op %d: %w", a.rank, a.op, err)
		}
		done++
		for _, next := range after[a] {
			if waits[next]--; waits[next] == 0 {
				ready = append(ready, next)
			}
		}
	}
	if int64(done) != p.trace.Ops() {
		return fmt.Errorf("%d of %d ops ran", done, p.trace.Ops())
	}
	return p.check(elements)
}

// own returns what a rank contributes to a cell.
func (p *proven) own(rank int32, c cell) set {
	if p.kind == dag.Allgather && c.part != int64(rank) || p.kind == dag.Bcast && p.root != rank {
		return set{}
	}
	return one(rank)
}

func (p *proven) get(rank int32, c cell) set {
	if v, known := p.memory[rank][c]; known {
		return v
	}
	return p.own(rank, c)
}

func (p *proven) execute(rank, op int32) error {
	r := p.trace.Ranks[rank]
	peer, tag := int64(0), int64(0)
	if r.Kind[op] != dag.Calc {
		peer, tag = int64(r.Peer.At(int(op))), r.Tag.At(int(op))
	}
	for _, e := range p.effects[rank][op] {
		// Ring indices of parts count down from the rank's own.
		n := int64(len(p.effects))
		c := e.cell
		c.part = (c.part%n + n) % n
		switch e.does {
		case sendsOn:
			key := [3]int64{int64(rank), peer, tag}
			v := p.get(rank, c)
			if v == (set{}) {
				return fmt.Errorf("sends %+v, which it does not have", c)
			}
			p.sent[key] = append(p.sent[key], cellValue{c, v})
		case holds, keeps:
			found := false
			for _, m := range p.sent[[3]int64{peer, int64(rank), tag}] {
				if m.cell == c {
					found = true
					if e.does == keeps {
						p.memory[rank][c] = m.value
					} else {
						p.held[rank][op] = append(p.held[rank][op], m)
					}
				}
			}
			if !found {
				return fmt.Errorf("receives %+v, which was not sent", c)
			}
		case copiesInto, reducesInto:
			v, found := p.get(rank, c), false
			for _, off := range r.Deps.Of(int(op)) {
				for _, m := range p.held[rank][op-off] {
					if m.cell != c {
						continue
					}
					found = true
					if e.does == reducesInto && v.overlaps(m.value) {
						return fmt.Errorf("%+v is reduced twice with %b", c, m.value)
					}
					if v = v.or(m.value); e.does == copiesInto {
						v = m.value
					}
				}
			}
			if !found {
				return fmt.Errorf("works on %+v without waiting for it", c)
			}
			p.memory[rank][c] = v
		case publishes:
			p.published[rank][c] = p.get(rank, c)
		case reducesInSwitch:
			sum := set{}
			for other, node := range p.nodeOf {
				if node != p.nodeOf[rank] {
					continue
				}
				v, known := p.published[other][c]
				if !known || sum.overlaps(v) {
					return fmt.Errorf("reduces %+v, which rank %d did not publish once", c, other)
				}
				sum = sum.or(v)
			}
			p.memory[rank][c] = sum
		case spreads:
			for other, node := range p.nodeOf {
				if node == p.nodeOf[rank] {
					p.buffer[other][c] = p.get(rank, c)
				}
			}
		case gathers:
			v, known := p.buffer[rank][c]
			if !known {
				return fmt.Errorf("copies %+v, which is not there", c)
			}
			p.memory[rank][c] = v
		}
	}
	return nil
}

// check checks the result and that the cells cover all elements.
func (p *proven) check(elements int64) error {
	n := int32(len(p.effects))
	all := set{}
	for rank := range n {
		all = all.or(one(rank))
	}
	cells := make(map[cell]bool)
	for rank := range n {
		for _, effects := range p.effects[rank] {
			for _, e := range effects {
				e.part = (e.part%int64(n) + int64(n)) % int64(n)
				cells[e.cell] = true
			}
		}
	}
	carried := int64(0)
	for c := range cells {
		carried += c.n
		for rank := range n {
			var want set
			switch p.kind {
			case dag.Allreduce:
				want = all
			case dag.Allgather:
				want = one(int32(c.part))
			case dag.ReduceScatter:
				if int64(rank) != c.part {
					continue
				}
				want = all
			case dag.Bcast:
				want = one(p.root)
			case dag.Reduce:
				if rank != p.root {
					continue
				}
				want = all
			}
			if got := p.get(rank, c); got != want {
				return fmt.Errorf("rank %d has of %+v the contributions %b, expected %b", rank, c, got, want)
			}
		}
	}
	if p.kind == dag.Allgather || p.kind == dag.ReduceScatter {
		elements *= int64(n)
	}
	if carried != elements {
		return fmt.Errorf("the messages carry %d elements, expected %d", carried, elements)
	}
	return nil
}

// spread returns the nodes of n ranks on nodes of equal size.
func spread(n, perNode int) []int32 {
	of := make([]int32, n)
	for i := range of {
		of[i] = int32(i / perNode)
	}
	return of
}

// sizesToProve are bytes of a rank: one element, some chunks, and many loops with a rest.
var sizesToProve = []int64{4, 1000, 4 << 10, 100_000, 5<<20 + 4}

func TestDataFlowRingAndTree(t *testing.T) {
	kinds := []dag.Subkind{dag.Allreduce, dag.Allgather, dag.ReduceScatter, dag.Bcast, dag.Reduce}
	for _, n := range []int{2, 3, 4, 7} {
		for _, bytes := range sizesToProve {
			for _, proto := range protocolNames {
				o := Options{Algorithm: "ring", Protocol: proto}
				for _, kind := range kinds {
					prove(t, fmt.Sprint(kind, " ring ", proto, " ", n, " ranks ", bytes), o, kind, int32(n)-1, bytes, "",
						spread(n, 2))
				}
				o.Algorithm = "tree"
				prove(t, fmt.Sprint("tree ", proto, " ", n, " ranks ", bytes), o, dag.Allreduce, 0, bytes, "", spread(n, 2))
			}
		}
	}
}

func TestDataFlowNVLS(t *testing.T) {
	for _, registered := range []bool{false, true} {
		for _, bytes := range sizesToProve {
			o := Options{Algorithm: "nvls", Registered: registered}
			for _, n := range []int{2, 3, 4, 8} {
				for _, kind := range []dag.Subkind{dag.Allreduce, dag.Allgather, dag.ReduceScatter} {
					prove(t, fmt.Sprint(kind, " nvls ", n, " ranks ", bytes, registered), o, kind, 0, bytes, "", spread(n, n))
				}
			}
			o.Algorithm = "nvls_tree"
			for _, c := range [][2]int{{2, 1}, {4, 2}, {6, 2}, {7, 1}, {12, 3}, {16, 4}, {8, 8}} {
				prove(t, fmt.Sprint("nvls_tree ", c, " ranks ", bytes, registered), o, dag.Allreduce, 0, bytes, "",
					spread(c[0], c[1]))
			}
		}
	}
}

func TestDataFlowPAT(t *testing.T) {
	for n := 2; n <= 40; n++ {
		for i, bytes := range sizesToProve {
			if n > 9 && (n+i)%len(sizesToProve) != 0 {
				continue
			}
			o := Options{Algorithm: "pat"}
			for _, kind := range []dag.Subkind{dag.Allgather, dag.ReduceScatter} {
				prove(t, fmt.Sprint(kind, " pat ", n, " ranks ", bytes), o, kind, 0, bytes, "", spread(n, 1))
			}
		}
	}
}

// TestPAT checks that every rank sends all parts but its own, in messages over power-of-two distances, and that no
// chain of messages is longer than the trees are deep.
func TestPAT(t *testing.T) {
	const bytes = 1000
	for n := 2; n <= 33; n++ {
		for _, kind := range []dag.Subkind{dag.Allgather, dag.ReduceScatter} {
			name := fmt.Sprint(kind, " ", n, " ranks")
			trace := prove(t, name, Options{Algorithm: "pat", Channels: 1}, kind, 0, bytes, "", spread(n, 1))
			levels := bits.Len(uint(n - 1))
			for rank := range trace.Ranks {
				messages, sent := 0, int64(0)
				r := trace.Ranks[rank]
				for i, k := range r.Kind {
					if k != dag.Send {
						continue
					}
					messages, sent = messages+1, sent+r.Bytes.At(i)
					distance := (rank - int(r.Peer.At(i)) + n) % n
					if kind == dag.Allgather {
						distance = n - distance
					}
					if bits.OnesCount(uint(distance)) != 1 {
						t.Errorf("%s: a message from rank %d to rank %d", name, rank, r.Peer.At(i))
					}
				}
				if sent != int64(n-1)*bytes {
					t.Errorf("%s: rank %d sends %d bytes, expected %d", name, rank, sent, (n-1)*bytes)
				}
				if n&(n-1) == 0 && messages != levels {
					t.Errorf("%s: rank %d sends %d messages, expected %d", name, rank, messages, levels)
				}
			}
			least := 0 // a part from distance s is sent on as often as s has bits
			for s := 1; s < n; s++ {
				least = max(least, bits.OnesCount(uint(s)))
			}
			if got := longestChain(trace); got < least || got > levels {
				t.Errorf("%s: a chain of %d messages, expected %d to %d", name, got, least, levels)
			}
		}
	}
	for _, c := range []struct{ bytes, n, want int64 }{
		{1000, 16, 8}, {1 << 20, 64, 8}, {256 << 10, 64, 16}, {128 << 10, 64, 32}, {1 << 20, 4, 2}, {1 << 20, 2, 1},
	} {
		if got := aggregation(c.bytes, 512<<10, c.n); got != c.want {
			t.Errorf("%d parts of %d bytes: messages of %d parts, expected %d", c.n, c.bytes, got, c.want)
		}
	}
}

// longestChain returns the greatest number of messages that follow each other.
func longestChain(trace *dag.Trace) (longest int) {
	depth := make([][]int, len(trace.Ranks)) // messages up to and including each op
	sent := make(map[[3]int64]int)
	at := make([]int, len(trace.Ranks))
	for rank := range depth {
		depth[rank] = make([]int, trace.Ranks[rank].Len())
	}
	for moved := true; moved; {
		moved = false
		for rank, r := range trace.Ranks {
			for ; at[rank] < r.Len(); at[rank]++ {
				i := at[rank]
				for _, off := range r.Deps.Of(i) {
					depth[rank][i] = max(depth[rank][i], depth[rank][i-int(off)])
				}
				switch r.Kind[i] {
				case dag.Send:
					depth[rank][i]++
					sent[[3]int64{int64(rank), int64(r.Peer.At(i)), r.Tag.At(i)}] = depth[rank][i]
				case dag.Recv:
					d, known := sent[[3]int64{int64(r.Peer.At(i)), int64(rank), r.Tag.At(i)}]
					if !known {
						goto next
					}
					depth[rank][i] = max(depth[rank][i], d)
				}
				longest = max(longest, depth[rank][i])
				moved = true
			}
		next:
		}
	}
	return longest
}

// TestNVLSBytes checks the bytes over the link of each GPU: S + S/n for an allreduce of S bytes, S for an allgather
// and a
// reduce-scatter of S bytes in total; and that registered buffers need no copies.
func TestNVLSBytes(t *testing.T) {
	for _, n := range []int{2, 4, 8} {
		for _, registered := range []bool{false, true} {
			for _, kind := range []dag.Subkind{dag.Allreduce, dag.Allgather, dag.ReduceScatter} {
				const whole = 64 << 20
				o := testOptions(t)
				o.Algorithm, o.Registered = "nvls", registered
				own, through := int64(whole), int64(whole+whole/n)
				if kind != dag.Allreduce {
					own, through = int64(whole/n), whole
				}
				j := newJob(n, spread(n, n)...)
				for rank := range int32(n) {
					j.add(rank, dag.Op{Kind: dag.Coll, Subkind: kind, Bytes: own, RecvBytes: own}, "")
				}
				_, r := mustLower(t, j.Trace(), o)
				for rank := range n {
					if got := r.SwitchBytes[rank]; got != through {
						t.Errorf("%v of %d GPUs: GPU %d moves %d bytes, expected %d", kind, n, rank, got, through)
					}
				}
				// 150 GB/s; every transfer is rounded down to whole ns.
				ns := float64(through) * float64(n) / 150
				if got := float64(r.Calcs[0].Transfer); got > ns || got < ns*0.999 {
					t.Errorf("%v of %d GPUs: transfers of %v ns, expected %v", kind, n, got, ns)
				}
				copying := map[dag.Subkind]int64{dag.Allreduce: 2}[kind]
				if kind != dag.Allreduce {
					copying = 1
				}
				if (r.Calcs[0].ReduceCopy == 0) != registered || r.Network.Messages != 0 {
					t.Errorf("%v of %d GPUs, registered %v: %+v, %+v", kind, n, registered, r.Calcs[0], r.Network)
				}
				if registered {
					continue
				}
				// Every byte is copied in chunks of 64 or 128 KiB at 28 GB/s or more.
				if low := copying * whole * int64(n) / 40; r.Calcs[0].ReduceCopy < low {
					t.Errorf("%v of %d GPUs: copies of %d ns, expected %d or more", kind, n, r.Calcs[0].ReduceCopy, low)
				}
			}
		}
	}
}

// TestNVLSTreeBytes checks that a part crosses every edge of the tree between nodes once in each direction.
func TestNVLSTreeBytes(t *testing.T) {
	const bytes = 32 << 20
	for _, count := range []int{2, 3, 4, 8} {
		o := testOptions(t)
		o.Algorithm = "nvls_tree"
		j := newJob(4*count, spread(4*count, 4)...)
		for rank := range int32(4 * count) {
			j.add(rank, dag.Op{Kind: dag.Coll, Subkind: dag.Allreduce, Bytes: bytes}, "")
		}
		_, r := mustLower(t, j.Trace(), o)
		if want := int64(2 * (count - 1) * bytes); r.Network.Bytes != want || !r.SendRecvAgree {
			t.Errorf("%d nodes: %d bytes between nodes, expected %d", count, r.Network.Bytes, want)
		}
	}
}

// TestLL128Estimate checks the times of LL128 without measurements.
func TestLL128Estimate(t *testing.T) {
	lower := func(o Options) *Report {
		j := newJob(2, 0, 1)
		for rank := range int32(2) {
			j.add(rank, dag.Op{Kind: dag.Coll, Subkind: dag.Reduce, Bytes: 131072}, "")
		}
		_, r := mustLower(t, j.Trace(), o)
		return r
	}
	o := Options{Machine: "clariden", Protocol: "ll128", Channels: 1}
	fast := o
	fast.Protocol = "simple"
	r, s := lower(o), lower(fast)
	// One piece of 131072 bytes with LL128, and with Simple.
	if want := int64(float64(s.Calcs[0].ReduceCopy) / 0.92); r.Estimated != 1 || r.Untimed != 0 ||
		r.Calcs[0].ReduceCopy < want-2 || r.Calcs[0].ReduceCopy > want+2 {
		t.Errorf("%d ns of %d estimated pieces, expected %d; by Simple %d", r.Calcs[0].ReduceCopy, r.Estimated, want,
			s.Calcs[0].ReduceCopy)
	}
	simple, _, err := MachineTables("ault")
	if err != nil {
		t.Fatal(err)
	}
	o.Simple = simple // measured tables: nothing is estimated
	if r := lower(o); r.Estimated != 0 || r.Untimed != 1 {
		t.Errorf("%+v", r)
	}
	o.LL128 = simple
	if r := lower(o); r.Estimated != 0 || r.Untimed != 0 || r.Calcs[0].ReduceCopy == 0 {
		t.Errorf("%+v", r)
	}
}

// TestChoices checks the choices in the report.
func TestChoices(t *testing.T) {
	j := newJob(4, 0, 0, 1, 1)
	const described = `{"algo":"ring","proto":"simple","type":4,"chunk_steps":4,"slice_steps":2,"step_size":524288,` +
		`"channels":[[0,1000,524288,500]]}`
	for range 2 {
		for rank := range int32(4) {
			j.add(rank, dag.Op{Kind: dag.Coll, Subkind: dag.Allreduce, Bytes: 4000}, described)
		}
		j.gap()
	}
	for rank := range int32(4) {
		j.add(rank, dag.Op{Kind: dag.Coll, Subkind: dag.Allgather, Bytes: 1 << 20}, "")
	}
	trace := j.Trace()
	texts := func(o Options) (all []string) {
		_, r := mustLower(t, trace, o)
		for _, c := range r.Choices {
			text := fmt.Sprint(c.Calls, " ", c.Collective, " ", c.Bytes, " ", c.Algorithm, " ", c.Protocol, ", ", c.Why)
			for _, b := range c.Best {
				text += fmt.Sprintf(", %s %s %.1f", b.Algorithm, b.Protocol, b.US)
			}
			all = append(all, text)
		}
		return all
	}
	for _, c := range []struct {
		o    Options
		want []string
	}{
		{Options{}, []string{"2 AllReduce 4000 ring simple, trace", "1 AllGather 1048576 ring simple, size"}},
		{Options{Protocol: "ll"}, []string{"2 AllReduce 4000 ring simple, trace", "1 AllGather 1048576 ring ll, options"}},
		// Two NICs of 50 GB/s: ring Simple 8.4 + 2*3.4 + 14 + 4 MiB / (100 * 4/3); ring LL128 14 + 2*1.9 + 4 + 4 MiB /
		// (min(92, 2*36.7) * 4/3).
		{Options{Version: "2.30"}, []string{"2 AllReduce 4000 ring simple, trace",
			"1 AllGather 1048576 ring simple, least predicted time, ring simple 60.7, ring ll128 64.7"}},
		// Ring LL 6.6 + (6-4)*1 + 4*2.7 + 4000 / (25 * 4/6); tree LL 6.8 + 2*(0.6 + 5) + 4000 / (2*41.4/3.8/2 * 0.8).
		{Options{Version: "2.30", Retune: true}, []string{
			"2 AllReduce 4000 tree ll, least predicted time, tree ll 18.5, ring ll 19.6",
			"1 AllGather 1048576 ring simple, least predicted time, ring simple 60.7, ring ll128 64.7"}},
	} {
		if got := texts(c.o); fmt.Sprint(got) != fmt.Sprint(c.want) {
			t.Errorf("%+v: %q, expected %q", c.o, got, c.want)
		}
	}
}
