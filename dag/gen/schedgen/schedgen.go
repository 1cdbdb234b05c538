// Package schedgen generates the schedules of Schedgen, the generator of LogGOPSim and of ATLAHS, op for op.
// docs/reference/generators/schedgen.md defines them.
//
// Patterns and readers of MPI traces build them from the same parts. An [Emitter] appends to a rank of a trace; the
// functions [Dissemination], [BinomialBcast], [BinomialReduce], [LinearAlltoall] and [RecursiveDoubling] emit the ops
// of one rank in a [Call]:
//
//	e := schedgen.NewEmitter(rankBuilder)
//	e.Mark()
//	schedgen.BinomialBcast(e, schedgen.Call{Ranks: n, Rank: rank, Root: root, Bytes: bytes, Tag: tag})
//	end := e.Calc(0, 0)
//	for _, op := range e.Last(nil) { // sends and receives that no op depends on
//		e.Requires(end, op)
//	}
package schedgen

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/tracedag/tracedag/dag"
	"github.com/tracedag/tracedag/dag/gen/rankwise"
)

// Variant is one of the two programs, which differ in some patterns.
type Variant uint8

// The variants.
const (
	Upstream Variant = iota // of LogGOPSim
	ATLAHS
)

var variantNames = [...]string{Upstream: "upstream", ATLAHS: "atlahs"}

// String returns the variant's name, such as "upstream".
func (v Variant) String() string {
	return variantNames[v]
}

// VariantNames returns the names of all variants.
func VariantNames() []string {
	return slices.Clone(variantNames[:])
}

// ParseVariant is the inverse of [Variant.String].
func ParseVariant(name string) (Variant, bool) {
	i := slices.Index(variantNames[:], name)
	return Variant(max(i, 0)), i >= 0
}

// None is the value of an absent time.
const None dag.Time = -1

// Params are the options of Schedgen.
type Params struct {
	Variant     Variant
	Ranks       int      // commsize: 1..2^24; random bisections round it down to an even number
	Bytes       int64    // datasize: 0..2^38
	Root        int      // a rank; any number for linear_alltoallv
	SegmentSize int64    // of the pipelined patterns: 1..2^38
	NWay        int      // of nwaydissemination: 1..2^16
	CPU         int      // of the computations of NB: 0..255
	NB          dag.Time // computation of every rank before the pattern, or None
	NBPoll      dag.Time // length of the pieces of NB; 0: one piece
	RplDepCmp   dag.Time // computation of allreduce_recdoub in place of dependencies on receives, or None
	SkewRatio   int64    // a2av-skew-ratio of linear_alltoallv: 1 or more
	Outcast     bool     // of linear_alltoallv

	Context context.Context // ends NewSource and reading early, with an error that wraps its cause; nil: never
}

// Default returns the defaults of Schedgen.
func Default() Params {
	return Params{Ranks: 8, Bytes: 1, SegmentSize: 1, NWay: 1, NB: None, RplDepCmp: None, SkewRatio: 1}
}

// Limits that keep sizes and counts in range.
const (
	maxRanks = 1 << 24
	maxBytes = 1 << 38
	maxSteps = 1 << 30 // of a rank, of any kind
	maxNWay  = 1 << 16
	maxCPU   = 255
)

func (p *Params) check() error {
	switch {
	case int(p.Variant) >= len(variantNames):
		return fmt.Errorf("variant is %d, expected 0..%d", p.Variant, len(variantNames)-1)
	case p.Ranks < 1 || p.Ranks > maxRanks:
		return fmt.Errorf("ranks is %d, expected 1..%d", p.Ranks, maxRanks)
	case p.Bytes < 0 || p.Bytes > maxBytes:
		return fmt.Errorf("bytes is %d, expected 0..%d", p.Bytes, int64(maxBytes))
	case p.SegmentSize < 1 || p.SegmentSize > maxBytes:
		return fmt.Errorf("segmentsize is %d, expected 1..%d", p.SegmentSize, int64(maxBytes))
	case p.NWay < 1 || p.NWay > maxNWay:
		return fmt.Errorf("nway is %d, expected 1..%d", p.NWay, maxNWay)
	case p.CPU < 0 || p.CPU > maxCPU:
		return fmt.Errorf("cpu is %d, expected 0..%d", p.CPU, maxCPU)
	case p.NB < None:
		return fmt.Errorf("nb is %v, expected 0 or more", p.NB)
	case p.NBPoll < 0:
		return fmt.Errorf("nb-poll is %v, expected 0 or more", p.NBPoll)
	case p.NBPoll > 0 && p.NB/p.NBPoll >= maxSteps:
		return fmt.Errorf("nb is %v and nb-poll %v, expected fewer than %d computations", p.NB, p.NBPoll, maxSteps)
	case p.RplDepCmp < None:
		return fmt.Errorf("rpl-dep-cmp is %v, expected 0 or more", p.RplDepCmp)
	case p.SkewRatio < 1:
		return fmt.Errorf("a2av-skew-ratio is %d, expected 1 or more", p.SkewRatio)
	}
	return nil
}

// Pattern is a pattern of Schedgen.
type Pattern struct {
	Name  string // also Schedgen's name
	Title string // one line of help
	Has   []Variant

	// prepare validates the parameters that only this pattern uses, and returns the function that emits a rank.
	prepare func(p *Params, seed int64) (plan, error)
}

// plan emits the ops of a rank.
type plan func(e *Emitter, rank int)

// Patterns returns all patterns, by name.
func Patterns() []Pattern {
	return slices.Clone(patterns)
}

// find returns the pattern of a name. It returns an error if the variant lacks it.
func find(name string, v Variant) (*Pattern, error) {
	var names []string
	for i := range patterns {
		if x := &patterns[i]; slices.Contains(x.Has, v) {
			if x.Name == name {
				return x, nil
			}
			names = append(names, x.Name)
		}
	}
	return nil, fmt.Errorf("%s has no pattern %q, expected one of %s", v, name, strings.Join(names, ", "))
}

// NewSource returns the trace of a pattern. The lower 32 bits of the seed determine the random bisections; nothing else
// is random.
func NewSource(pattern string, p Params, seed int64) (*rankwise.Source, error) {
	if err := p.check(); err != nil {
		return nil, fmt.Errorf("schedgen: %w", err)
	}
	x, err := find(pattern, p.Variant)
	if err != nil {
		return nil, fmt.Errorf("schedgen: %w", err)
	}
	plan, err := x.prepare(&p, seed)
	if err != nil {
		return nil, fmt.Errorf("schedgen: %s: %w", pattern, err)
	}
	emit := func(e *Emitter, rank int) {
		emitLocal(e, &p)
		plan(e, rank)
	}
	s, err := rankwise.NewSource(rankwise.Model{
		Title:   fmt.Sprintf("Schedgen (%s) %s, %d ranks, %d bytes", p.Variant, pattern, p.Ranks, p.Bytes),
		Ranks:   p.Ranks,
		Context: p.Context,
		Kinds:   []dag.Kind{dag.Calc, dag.Send, dag.Recv},
		Count: func(rank int) (ops, deps int64) {
			var e Emitter
			emit(&e, rank)
			return int64(e.ops), e.deps
		},
		Fill: func(rank int, b *dag.RankBuilder) { emit(NewEmitter(b), rank) },
	})
	if err != nil {
		return nil, fmt.Errorf("schedgen: %s: %w", pattern, err)
	}
	return s, nil
}

// emitLocal emits the computation that overlaps with a non-blocking collective.
func emitLocal(e *Emitter, p *Params) {
	if p.NB == None {
		return
	}
	if p.NBPoll == 0 {
		e.Calc(p.NB, int32(p.CPU))
		return
	}
	calcs := p.NB / p.NBPoll
	if p.NB%p.NBPoll > 0 {
		calcs++
	}
	last := none
	for range calcs {
		calc := e.Calc(p.NBPoll, int32(p.CPU))
		if last != none {
			e.Requires(calc, last)
		}
		last = calc
	}
}
