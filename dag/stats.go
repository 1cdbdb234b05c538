package dag

import (
	"fmt"
	"math"
	"math/big"

	"github.com/tracedag/tracedag/internal/par"
)

// Counts are the sums over the ops of a trace. JSON names contain the units. Totals and CalcTime are exact.
type Counts struct {
	Ops int64 `json:"ops"`

	Kinds    KindCounts    `json:"ops_by_kind"`
	Subkinds SubkindCounts `json:"ops_by_subkind"`

	SentBytes       Total    `json:"sent_bytes"`       // of sends
	ReceivedBytes   Total    `json:"received_bytes"`   // of receives
	CollectiveBytes Total    `json:"collective_bytes"` // contributed to collectives, by all members
	MemBytes        Total    `json:"mem_bytes"`
	IOBytes         Total    `json:"io_bytes"`
	CalcTime        *big.Int `json:"calc_ps"` // sum over calcs on all ranks; may exceed MaxTime
	Flops           Total    `json:"flops"`
	LastRelease     Time     `json:"last_release_ps"`

	Deps      int64 `json:"deps"`
	StartDeps int64 `json:"start_deps"`
}

// Stats summarizes the contents of a trace. JSON names contain the units.
type Stats struct {
	Ranks int `json:"ranks"`
	Nodes int `json:"nodes"` // distinct nodes of the ranks
	Comms int `json:"communicators"`
	Jobs  int `json:"jobs"`

	Counts

	// BlockedOps counts ops that can never run: they are on a cycle of dependencies or wait for such an op. Depth,
	// Width and CriticalPath skip them.
	BlockedOps int64 `json:"blocked_ops"`

	Streams int `json:"streams"` // maximum over ranks of the number of streams that its ops use
	NICs    int `json:"nics"`    // maximum over ranks of the number of NICs that its communication uses

	Messages Messages `json:"messages"`

	Depth        Depth        `json:"depth"`
	Width        Width        `json:"width"`
	CriticalPath CriticalPath `json:"critical_path"`

	RankOps       Spread `json:"rank_ops"`
	RankSentBytes Spread `json:"rank_sent_bytes"`
	RankCalcTime  Spread `json:"rank_calc_ps"`
}

// KindCounts counts ops by kind.
type KindCounts [NumKinds]int64

// MarshalJSON returns an object of all kinds by name, in the order of the constants.
func (c KindCounts) MarshalJSON() ([]byte, error) {
	object := []byte{'{'}
	for kind, count := range c {
		object = appendCount(object, Kind(kind).String(), count)
	}
	return append(object, '}'), nil
}

// SubkindCounts counts ops by subkind; NoSubkind stays 0.
type SubkindCounts [NumSubkinds]int64

// MarshalJSON returns an object of the subkinds that occur by name, in the order of the constants.
func (c SubkindCounts) MarshalJSON() ([]byte, error) {
	object := []byte{'{'}
	for subkind, count := range c {
		if count > 0 {
			object = appendCount(object, Subkind(subkind).String(), count)
		}
	}
	return append(object, '}'), nil
}

func appendCount(object []byte, name string, count int64) []byte {
	if len(object) > 1 {
		object = append(object, ',')
	}
	return fmt.Appendf(object, "%q:%d", name, count)
}

// Messages summarizes the sizes of sent messages. The median of an even number is the lower of the middle two.
type Messages struct {
	Count  int64   `json:"count"`
	Min    int64   `json:"min_bytes"`
	Median int64   `json:"median_bytes"`
	Mean   float64 `json:"mean_bytes"`
	Max    int64   `json:"max_bytes"`
}

// Depth is the longest chain of dependencies, of either kind, within one rank.
type Depth struct {
	Ops  int64 `json:"ops"`  // ops in the chain
	Rank int   `json:"rank"` // first rank with such a chain, -1 if there is none
}

// Width is the largest number of ops of one rank on one level. The level of an op is the number of ops in the longest
// chain of dependencies, of either kind, that ends with it.
type Width struct {
	Ops   int64 `json:"ops"`
	Rank  int   `json:"rank"`  // first rank with such a level, -1 if there is none
	Level int64 `json:"level"` // first such level of the rank, from 1
}

// CriticalPath is the longest chain of dependent calcs of one rank, by time: a lower bound of the run time of the
// trace. Ops of other kinds take no time in it, and release times and streams are ignored.
type CriticalPath struct {
	Time Time `json:"time_ps"` // at most MaxTime
	Rank int  `json:"rank"`    // first rank with such a path, -1 if there is none
	// Longer reports that the path may take longer than Time, which is MaxTime.
	Longer bool `json:"longer,omitempty"`
}

// Spread is the minimum, mean and maximum over all ranks.
type Spread struct {
	Min  Total   `json:"min"`
	Mean float64 `json:"mean"`
	Max  Total   `json:"max"`
}

// Summarize computes the statistics of a trace, on all processors, in time nearly linear in its size. It accepts any
// trace: invalid values count as they are, dependencies on ops that do not exist are ignored, and negative durations
// take no time on a critical path.
func Summarize(t *Trace) *Stats {
	ranks := make([]rankTotals, len(t.Ranks))
	tallies := par.ForWith(len(t.Ranks), newTally, func(s *tally, i int) { ranks[i] = s.count(t.Ranks[i], i) })
	all := newTally()
	for _, s := range tallies {
		all.merge(s)
	}
	s := all.stats()
	s.Ranks, s.Nodes, s.Comms, s.Jobs = len(t.Ranks), t.nodes(), len(t.Comms), t.jobs()
	s.Messages.Median = t.medianMessage(&s.Messages)
	s.RankOps = spread(ranks, func(r *rankTotals) Total { return r.ops })
	s.RankSentBytes = spread(ranks, func(r *rankTotals) Total { return r.sent })
	s.RankCalcTime = spread(ranks, func(r *rankTotals) Total { return r.calc })
	return s
}

// Count sums over the ops of a source, several batches in parallel. If several batches fail, it returns the error of
// the first of them.
func Count(s Source) (Counts, error) {
	h, err := s.Header()
	if err != nil {
		return Counts{}, err
	}
	type worker struct {
		*tally
		read Reader
	}
	newWorker := func() worker { return worker{newTally(), s.NewReader(Replay)} }
	workers, err := par.EachWith(len(h.Batches), newWorker, func(w worker, i int) error {
		ranks, err := w.read.Ranks(h.Batches[i])
		for _, r := range ranks {
			w.add(r)
		}
		return err
	})
	if err != nil {
		return Counts{}, err
	}
	all := newTally()
	for _, w := range workers {
		all.merge(w.tally)
	}
	return all.counts(), nil
}

// nodes returns the number of distinct nodes of the ranks.
func (t *Trace) nodes() int {
	if t.Nodes == nil {
		return len(t.Ranks)
	}
	nodes := make(map[int32]struct{})
	for _, node := range t.Nodes {
		nodes[node] = struct{}{}
	}
	return len(nodes)
}

// rankTotals are the values of one rank that a [Spread] summarizes.
type rankTotals struct {
	ops, sent, calc Total
}

func spread(ranks []rankTotals, value func(r *rankTotals) Total) Spread {
	if len(ranks) == 0 {
		return Spread{}
	}
	var total Total
	first := value(&ranks[0])
	s := Spread{Min: first, Max: first}
	for i := range ranks {
		v := value(&ranks[i])
		total.addSum(v)
		if v.Compare(s.Min) < 0 {
			s.Min = v
		}
		if v.Compare(s.Max) > 0 {
			s.Max = v
		}
	}
	s.Mean = total.mean(int64(len(ranks)))
	return s
}

// tally counts ranks. The result does not depend on their order.
type tally struct {
	kinds           KindCounts
	subkinds        SubkindCounts
	bytes           [NumKinds]Total
	calc, flops     Total
	ops             int64
	deps, startDeps int64
	blocked         int64
	lastRelease     Time
	streams, nics   int
	least, greatest int64 // message size
	depth           Depth
	width           Width
	critical        CriticalPath

	levels   levels
	distinct distinct
}

func newTally() *tally {
	return &tally{
		least: math.MaxInt64, greatest: math.MinInt64,
		depth: Depth{Rank: -1}, width: Width{Rank: -1}, critical: CriticalPath{Rank: -1},
	}
}

// count adds rank number id.
func (s *tally) count(r *Rank, id int) rankTotals {
	sent, calc := s.add(r)
	s.streams = max(s.streams, s.distinct.count(r, &r.Stream, func(Kind) bool { return true }))
	s.nics = max(s.nics, s.distinct.count(r, &r.NIC, func(k Kind) bool { return k == Send || k == Recv || k == Coll }))
	s.levels.find(r)
	s.blocked += s.levels.blocked
	if depth := s.levels.depth(); depth > 0 {
		s.peak(Depth{Ops: depth, Rank: id}, s.levels.width(id), CriticalPath{Time: s.levels.last, Rank: id,
			Longer: s.levels.last == MaxTime})
	}
	return rankTotals{ops: TotalOf(int64(r.Len())), sent: sent, calc: calc}
}

// add adds the sums over the ops of a rank. It returns the bytes sent and the time of the calcs.
func (s *tally) add(r *Rank) (sent, calc Total) {
	sent, calc = s.countOps(r)
	s.bytes[Send].addSum(sent)
	s.calc.addSum(calc)
	s.ops += int64(r.Len())
	s.deps += int64(len(r.Deps.Off))
	s.startDeps += int64(len(r.StartDeps.Off))
	return sent, calc
}

// countOps adds the counts of single ops. It returns the bytes sent and the time of the calcs, which it does not add.
func (s *tally) countOps(r *Rank) (sent, calc Total) {
	for i, kind := range r.Kind {
		if kind >= NumKinds {
			continue
		}
		s.kinds[kind]++
		bytes := r.Bytes.At(i)
		switch kind {
		case Calc:
			calc.add(int64(r.CalcTime(i)))
		case Send:
			sent.add(bytes)
			s.least, s.greatest = min(s.least, bytes), max(s.greatest, bytes)
		default:
			s.bytes[kind].add(bytes)
		}
	}
	for _, subkind := range r.Subkind {
		if subkind != NoSubkind && subkind < NumSubkinds {
			s.subkinds[subkind]++
		}
	}
	for _, flops := range r.Flops {
		s.flops.add(flops)
	}
	for _, release := range r.Release {
		s.lastRelease = max(s.lastRelease, release)
	}
	return sent, calc
}

// peak updates the maxima with those of a rank.
func (s *tally) peak(depth Depth, width Width, critical CriticalPath) {
	if higher(depth.Ops, depth.Rank, s.depth.Ops, s.depth.Rank) {
		s.depth = depth
	}
	if higher(width.Ops, width.Rank, s.width.Ops, s.width.Rank) {
		s.width = width
	}
	if higher(int64(critical.Time), critical.Rank, int64(s.critical.Time), s.critical.Rank) {
		s.critical = critical
	}
}

// higher reports whether value is higher than best, or equal and of an earlier rank. Rank -1 means no value.
func higher(value int64, rank int, best int64, bestRank int) bool {
	if rank < 0 || bestRank < 0 {
		return rank >= 0
	}
	return value > best || value == best && rank < bestRank
}

func (s *tally) merge(o *tally) {
	for i := range s.kinds {
		s.kinds[i] += o.kinds[i]
		s.bytes[i].addSum(o.bytes[i])
	}
	for i := range s.subkinds {
		s.subkinds[i] += o.subkinds[i]
	}
	s.calc.addSum(o.calc)
	s.flops.addSum(o.flops)
	s.ops += o.ops
	s.deps += o.deps
	s.startDeps += o.startDeps
	s.blocked += o.blocked
	s.lastRelease = max(s.lastRelease, o.lastRelease)
	s.streams, s.nics = max(s.streams, o.streams), max(s.nics, o.nics)
	s.least, s.greatest = min(s.least, o.least), max(s.greatest, o.greatest)
	s.peak(o.depth, o.width, o.critical)
}

// counts returns the sums.
func (s *tally) counts() Counts {
	return Counts{
		Ops: s.ops, Kinds: s.kinds, Subkinds: s.subkinds,
		SentBytes: s.bytes[Send], ReceivedBytes: s.bytes[Recv], CollectiveBytes: s.bytes[Coll],
		MemBytes: s.bytes[Mem], IOBytes: s.bytes[IO],
		CalcTime: s.calc.Big(), Flops: s.flops, LastRelease: s.lastRelease,
		Deps: s.deps, StartDeps: s.startDeps,
	}
}

func (s *tally) stats() *Stats {
	stats := &Stats{
		Counts: s.counts(), BlockedOps: s.blocked,
		Streams: s.streams, NICs: s.nics,
		Depth: s.depth, Width: s.width, CriticalPath: s.critical,
	}
	if n := s.kinds[Send]; n > 0 {
		stats.Messages = Messages{Count: n, Min: s.least, Max: s.greatest, Mean: s.bytes[Send].mean(n)}
	}
	return stats
}

// distinct counts distinct values of a column.
type distinct struct {
	small [256]bool
	large map[int32]struct{}
}

// count returns the number of distinct values over the ops of the relevant kinds.
func (d *distinct) count(r *Rank, column *Narrow, matters func(Kind) bool) int {
	d.small = [256]bool{}
	clear(d.large)
	n := 0
	for i, kind := range r.Kind {
		if !matters(kind) {
			continue
		}
		switch v := column.At(i); {
		case uint32(v) >= uint32(len(d.small)):
			if d.large == nil {
				d.large = make(map[int32]struct{})
			}
			d.large[v] = struct{}{}
		case !d.small[v]:
			d.small[v] = true
			n++
		}
	}
	return n + len(d.large)
}

// medianMessage returns the median message size, the lower of the middle two for an even number; m must have the
// other statistics. It finds the 16-bit digits of the median, starting with the first that differs between messages.
func (t *Trace) medianMessage(m *Messages) int64 {
	if m.Count == 0 {
		return 0
	}
	unsigned := func(size int64) uint64 { return uint64(size) ^ 1<<63 } // order-preserving
	least, greatest := unsigned(m.Min), unsigned(m.Max)
	before := (m.Count - 1) / 2 // rank of the median among the messages that start with its known digits
	median := uint64(0)         // the digits known so far
	for shift := 48; shift >= 0; shift -= 16 {
		if least>>shift == greatest>>shift {
			median = least >> shift
			continue
		}
		digits := t.countDigits(func(size int64) (digit uint16, counts bool) {
			key := unsigned(size)
			return uint16(key >> shift), key>>(shift+16) == median
		})
		digit := 0
		for ; before >= digits[digit]; digit++ {
			before -= digits[digit]
		}
		median = median<<16 | uint64(digit)
	}
	return int64(median ^ 1<<63)
}

// countDigits counts the digits of message sizes.
func (t *Trace) countDigits(digit func(size int64) (digit uint16, counts bool)) []int64 {
	counts := par.ForWith(len(t.Ranks), func() []int64 { return make([]int64, 1<<16) }, func(counts []int64, i int) {
		r := t.Ranks[i]
		for k, kind := range r.Kind {
			if kind != Send {
				continue
			}
			if d, ok := digit(r.Bytes.At(k)); ok {
				counts[d]++
			}
		}
	})
	for _, other := range counts[1:] {
		for d, n := range other {
			counts[0][d] += n
		}
	}
	return counts[0]
}
