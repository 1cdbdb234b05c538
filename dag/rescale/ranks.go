package rescale

import (
	"fmt"
	"math/bits"
	"slices"

	"github.com/tracedag/tracedag/dag"
)

// feature is a property of a rank that may decide whether it makes a call, and of what size.
type feature struct {
	kind featureKind
	dim  int
	call *call // of isRoot, inTree, belowTree and multiples
}

type featureKind uint8

const (
	noFeature  featureKind = iota
	side                   // first, last or neither along a dimension of the grid
	lineSide               // the same along the line of ranks
	parity                 // of the coordinate
	lineParity             // of the rank
	checker                // parity of the sum of coordinates
	half                   // lower or upper half of the ranks
	corner                 // sides along all dimensions
	isRoot                 // of the collective
	inTree                 // remainder modulo twice the displacement: a binomial tree from the leaves
	belowTree              // the rank against the displacement: a binomial tree from the root
	multiples              // whether all coordinates are multiples of the displacement: a coarse level
	residue                // remainder of the rank modulo dim: nodes of as many ranks
)

// of returns the value of the feature for a rank.
func (f feature) of(s *space, rank int) int32 {
	end := func(c, n int) int32 {
		switch c {
		case 0:
			return 0
		case n - 1:
			return 2
		}
		return 1
	}
	switch f.kind {
	case side:
		return end(int(s.coordinates(rank)[f.dim]), s.grid[f.dim])
	case lineSide:
		return end(rank, s.ranks)
	case parity:
		return s.coordinates(rank)[f.dim] & 1
	case lineParity:
		return int32(rank & 1)
	case checker:
		sum := int32(0)
		for _, c := range s.coordinates(rank) {
			sum += c
		}
		return sum & 1
	case half:
		return int32(2 * rank / s.ranks)
	case corner:
		value := int32(0)
		c := s.coordinates(rank)
		for d, n := range s.grid {
			value = 3*value + end(int(c[d]), n)
		}
		return value
	case isRoot:
		if n, size := s.memberOf(f.call.comm, rank); n == f.call.root(size) {
			return 1
		}
	case inTree:
		return multiple(rank%(2*f.call.distance()), f.call.distance())
	case multiples:
		step := int32(max(f.call.at.step(), 1)) // halved rounds may end at 0
		if f.call.rule == onLine {
			return min(int32(rank)%step, 1)
		}
		for _, c := range s.coordinates(rank) {
			if c%step != 0 {
				return 1
			}
		}
	case residue:
		return int32(rank % f.dim)
	case belowTree:
		return multiple(rank/f.call.distance()*f.call.distance(), f.call.distance())
	}
	return 0
}

// multiple returns 0 and 1 for n = 0 and n = d, and 2 for others.
func multiple(n, d int) int32 {
	switch n {
	case 0:
		return 0
	case d:
		return 1
	}
	return 2
}

// distance returns the distance of the partner along the line of ranks, 1 for other rules.
func (c *call) distance() int {
	d := int(c.at[0])
	if (c.rule != onLine && c.rule != byXor) || d == 0 {
		return 1
	}
	return max(d, -d)
}

// memberOf returns the place of a rank in its communicator of a kind, and the number of members.
func (s *space) memberOf(kind int32, rank int) (n, size int) {
	mask := kind >> 8
	if mask == 0 {
		return rank, s.ranks
	}
	c := s.coordinates(rank)
	size = 1
	for d, length := range s.grid {
		if mask&(1<<d) != 0 {
			n += int(c[d]) * size
			size *= length
		}
	}
	return n, size
}

// root returns the place of the root in a communicator.
func (c *call) root(size int) int {
	if c.at[0] < 0 {
		return size - 1
	}
	return int(c.at[0])
}

func (f feature) describe() string {
	if f.kind == residue {
		return fmt.Sprintf("remainder of the rank modulo %d", f.dim)
	}
	return []string{"all ranks", fmt.Sprintf("place along %c", axes[f.dim]), "first or last rank",
		fmt.Sprintf("parity along %c", axes[f.dim]), "parity of the rank", "parity of the sum of coordinates",
		"half of the ranks", "places along all dimensions", "root or not",
		"place in a binomial tree", "place in a binomial tree", "level of the grid"}[f.kind]
}

// features returns the features of ranks, the simplest first. Those of one value per rank would fit anything.
func (s *space) features() []feature {
	list := []feature{{kind: lineSide}}
	for d := range s.grid {
		list = append(list, feature{kind: side, dim: d})
	}
	list = append(list, feature{kind: lineParity})
	for d, n := range s.grid {
		if n > 2 {
			list = append(list, feature{kind: parity, dim: d})
		}
	}
	return append(list, feature{kind: checker}, feature{kind: half})
}

// fitPresence finds out which ranks have a slot.
func (m *model) fitPresence(i int32) error {
	s := &m.slots[i]
	if s.call == nil {
		m.fitCalc(i)
		return nil
	}
	var with, without []int32
	for rank, op := range m.opAt[i] {
		switch {
		case op >= 0:
			with = append(with, int32(rank))
		case m.exists(s.call, rank):
			without = append(without, int32(rank))
		}
	}
	if s.always = len(without) == 0; s.always {
		return nil
	}
	features := m.old.features()
	if c := s.call; isMessage(c.kind) && c.distance()&(c.distance()-1) == 0 && (c.rule == onLine || c.rule == byXor) {
		features = append([]feature{{kind: inTree}, {kind: belowTree}}, features...)
	}
	if c := s.call; (c.rule == onLine || c.rule == onGrid) && c.at.step() > 1 {
		features = append(features, feature{kind: multiples})
	}
	features = append(features, m.residues(s.call)...)
	for _, f := range features {
		f.call = s.call
		table := map[int32]bool{}
		fits := true
		for n, ranks := range [][]int32{with, without} {
			for _, rank := range ranks {
				v := f.of(&m.old, int(rank))
				has, known := table[v]
				table[v] = n == 0
				fits = fits && (!known || has == (n == 0))
			}
		}
		if fits {
			s.feature, s.table = f, table
			return nil
		}
	}
	op := m.opAt[i][with[0]]
	return refuse("rank %d: op %d: %s: made by ranks %s (peers %s), not by ranks %s, which no rule explains", with[0],
		op, s.call.describe(), firstOf(with), firstOf(m.peers(i, with)), firstOf(without))
}

// residues returns the features of ranks in nodes of k ranks each, whose messages stay in the node; each node has the
// same, and there are several.
func (m *model) residues(c *call) (all []feature) {
	if !isMessage(c.kind) || c.rule != onLine || len(m.old.grid) > 1 {
		return nil
	}
	const least, most = 3, 1 << 10
	for k := max(least, c.distance()+1); 2*k <= m.old.ranks && k <= most; k++ {
		if m.old.ranks%k == 0 {
			all = append(all, feature{kind: residue, dim: k})
		}
	}
	return all
}

// peers returns the peers of the ops of a slot.
func (m *model) peers(i int32, ranks []int32) (all []int32) {
	for _, rank := range ranks {
		all = append(all, m.from.Ranks[rank].Peer.At(int(m.opAt[i][rank])))
	}
	return all
}

// fitCalc finds out which ranks have a calc. Ranks without one of the other ranks have one of no length, unless it only
// waits for messages that they lack.
func (m *model) fitCalc(i int32) {
	s := &m.slots[i]
	if !s.join || !slices.Contains(m.opAt[i], -1) {
		return
	}
	for _, e := range s.edges {
		if c := m.slots[e.on].call; c != nil && isMessage(c.kind) {
			s.needs = append(s.needs, e.on)
		}
	}
}

// sizeKind is how a size depends on the rank.
type sizeKind uint8

const (
	constant sizeKind = iota // equal on all ranks
	byPlace                  // by a feature
	drawn                    // that of a recorded rank
)

// size is the size of a slot.
type size struct {
	kind    sizeKind
	value   int64
	feature feature
	table   map[int32]int64
}

// fitSizes finds out how the sizes of a slot depend on the rank.
func (m *model) fitSizes(i int32) {
	s := &m.slots[i]
	if s.call == nil {
		return
	}
	s.size = m.fitSize(i, func(r *dag.Rank, op int) int64 { return r.Bytes.At(op) })
	s.recv = m.fitSize(i, func(r *dag.Rank, op int) int64 { return r.RecvBytes.At(op) })
}

func (m *model) fitSize(i int32, of func(r *dag.Rank, op int) int64) size {
	values := map[int]int64{}
	same := true
	first := int64(-1)
	for rank, op := range m.opAt[i] {
		if op < 0 {
			continue
		}
		v := of(m.from.Ranks[rank], int(op))
		values[rank] = v
		if first < 0 {
			first = v
		}
		same = same && v == first
	}
	if same {
		return size{kind: constant, value: first}
	}
	features := m.old.features()
	if m.old.ranks > 2*pow(3, len(m.old.grid)) {
		features = append(features, feature{kind: corner})
	}
	if c := m.slots[i].call; c.rule == member { // the root and the others
		features = []feature{{kind: isRoot, call: c}}
	}
	for _, f := range features {
		table := map[int32]int64{}
		fits := true
		for rank := range m.old.ranks {
			v, has := values[rank]
			if !has {
				continue
			}
			at := f.of(&m.old, rank)
			known, ok := table[at]
			table[at] = v
			fits = fits && (!ok || known == v)
		}
		if fits {
			return size{kind: byPlace, value: first, feature: f, table: table}
		}
	}
	return size{kind: drawn, value: first}
}

func pow(a, n int) int {
	p := 1
	for range n {
		p *= a
	}
	return p
}

// scaleBytes returns bytes times numerator/denominator, rounded to a multiple of the largest power of two up to 8 that
// divides bytes.
func scaleBytes(n int64, numerator, denominator int64) int64 {
	if n == 0 || numerator == denominator {
		return n
	}
	unit := int64(1) << min(3, bits.TrailingZeros64(uint64(n)))
	high, low := bits.Mul64(uint64(n/unit), uint64(numerator))
	if high >= uint64(denominator) {
		return 1<<63 - 1
	}
	quotient, rest := bits.Div64(high, low, uint64(denominator))
	if rest >= uint64(denominator)-rest {
		quotient++
	}
	if quotient > uint64((1<<62)/unit) {
		return 1<<63 - 1
	}
	return int64(quotient) * unit
}
