// Package fft generates traces of distributed fast Fourier transforms: one-dimensional transforms of each rank's data,
// with transposes between them (alltoall collectives). In two dimensions the ranks own slabs of the grid and transpose
// all together; in three they own pencils, and transpose within the columns and the rows of a grid of ranks
// (Pekurovsky: P3DFFT: A Framework for Parallel Computations of Fourier Transforms in Three Dimensions, SIAM Journal on
// Scientific Computing 34(4), 2012).
//
// docs/reference/generators/fft.md defines the model.
package fft

import (
	"fmt"
	"math/bits"
	"strings"

	"github.com/tracedag/tracedag/dag"
	"github.com/tracedag/tracedag/dag/gen/rankwise"
)

// Params describe a run.
type Params struct {
	Size          []int64 // elements along each of 2 or 3 dimensions: powers of two up to 2^30
	Rows, Columns int     // of the grid of ranks: powers of two, product 1..2^20
	ElementBytes  int64   // 1..2^10; a rank has at most 2^38 bytes
	FlopRate      int64   // floating-point operations per second of a rank: 1 or more
	Inverse       bool    // an inverse follows each transform
	Iterations    int     // 1..2^20
}

// Default returns transforms and inverse transforms of 512 x 512 x 512 complex numbers on 8 x 8 ranks.
func Default() Params {
	return Params{
		Size: []int64{512, 512, 512}, Rows: 8, Columns: 8, ElementBytes: 16, FlopRate: 10e9, Inverse: true,
		Iterations: 5,
	}
}

// Limits that keep sizes and counts in range.
const (
	maxSide         = 1 << 30
	maxRanks        = 1 << 20
	maxElementBytes = 1 << 10
	maxBytes        = 1 << 38 // of a rank
	maxIterations   = 1 << 20
)

// NewSource returns the trace of a run.
func NewSource(p Params) (*rankwise.Source, error) {
	if err := p.check(); err != nil {
		return nil, fmt.Errorf("fft: %w", err)
	}
	stages, err := p.stages()
	if err != nil {
		return nil, fmt.Errorf("fft: %w", err)
	}
	ops := 0
	for _, s := range stages {
		ops++
		if s.members > 1 {
			ops++
		}
	}
	total := int64(ops) * int64(p.Iterations)
	s, err := rankwise.NewSource(rankwise.Model{
		Title: fmt.Sprintf("fft, size %s, %d x %d ranks, %d iterations", p.size(), p.Rows, p.Columns, p.Iterations),
		Ranks: p.Rows * p.Columns,
		Comms: p.comms(),
		Kinds: []dag.Kind{dag.Calc, dag.Coll},
		Steps: p.Iterations,
		Count: func(int) (ops, deps int64) { return total, total },
		Fill:  func(rank int, b *dag.RankBuilder) { p.fill(rank, stages, b) },
	})
	if err != nil {
		return nil, fmt.Errorf("fft: %w", err)
	}
	return s, nil
}

func (p *Params) check() error {
	if n := len(p.Size); n != 2 && n != 3 {
		return fmt.Errorf("size has %d dimensions, expected 2 or 3", n)
	}
	for _, n := range p.Size {
		if n < 1 || n > maxSide || n&(n-1) != 0 {
			return fmt.Errorf("size is %s, expected powers of two up to %d", p.size(), maxSide)
		}
	}
	for _, n := range []int{p.Rows, p.Columns} {
		if n < 1 || n > maxRanks || n&(n-1) != 0 || p.Rows*p.Columns > maxRanks {
			return fmt.Errorf("grid is %d x %d, expected powers of two, 1..%d ranks", p.Rows, p.Columns, maxRanks)
		}
	}
	rows, columns := int64(p.Rows), int64(p.Columns)
	switch {
	case len(p.Size) == 2 && rows*columns > min(p.Size[0], p.Size[1]):
		return fmt.Errorf("grid is %d x %d, expected no more ranks than elements along any dimension of %s", rows,
			columns, p.size())
	case len(p.Size) == 3 && (rows > min(p.Size[0], p.Size[1]) || columns > min(p.Size[1], p.Size[2])):
		return fmt.Errorf("grid is %d x %d, expected no more rows than elements along the first two dimensions of %s, "+
			"and columns along the last two", rows, columns, p.size())
	case p.ElementBytes < 1 || p.ElementBytes > maxElementBytes:
		return fmt.Errorf("element bytes is %d, expected 1..%d", p.ElementBytes, maxElementBytes)
	case p.block() > maxBytes/p.ElementBytes:
		return fmt.Errorf("size is %s, expected at most %d bytes per rank", p.size(), int64(maxBytes))
	case p.FlopRate < 1:
		return fmt.Errorf("flop rate is %d, expected 1 or more", p.FlopRate)
	case p.Iterations < 1 || p.Iterations > maxIterations:
		return fmt.Errorf("iterations is %d, expected 1..%d", p.Iterations, maxIterations)
	}
	return nil
}

// size returns the elements along each dimension as the flag takes them, such as "512x512".
func (p *Params) size() string {
	return strings.ReplaceAll(strings.Trim(fmt.Sprint(p.Size), "[]"), " ", "x")
}

// block returns the number of elements per rank, less than 2^62: all numbers are powers of two.
func (p *Params) block() int64 {
	exponent := -bits.TrailingZeros(uint(p.Rows)) - bits.TrailingZeros(uint(p.Columns))
	for _, n := range p.Size {
		exponent += bits.TrailingZeros64(uint64(n))
	}
	return 1 << min(exponent, 61)
}

// comms returns the communicators: all ranks, then the columns, then the rows, if these have several ranks.
func (p *Params) comms() []dag.Comm {
	comms := []dag.Comm{dag.World(p.Rows * p.Columns)}
	if len(p.Size) == 2 {
		return comms
	}
	rows, columns := int32(p.Rows), int32(p.Columns)
	if rows > 1 {
		for c := range columns {
			comms = append(comms, dag.Comm{Ranges: []dag.Range{{First: c, Stride: columns, Count: rows}}})
		}
	}
	if columns > 1 {
		for r := range rows {
			comms = append(comms, dag.Comm{Ranges: []dag.Range{{First: r * columns, Stride: 1, Count: columns}}})
		}
	}
	return comms
}

// stage is a transform along one dimension, and the transpose after it.
type stage struct {
	flops   int64
	time    dag.Time
	members int                  // of the transpose; less than two: no transpose
	comm    func(rank int) int32 // of the transpose
}

// stages returns the stages of an iteration.
func (p *Params) stages() ([]stage, error) {
	var list []stage
	for _, n := range p.Size {
		// Cooley and Tukey's count: 5 n log n for n elements.
		s := stage{flops: 5 * p.block() * int64(bits.TrailingZeros64(uint64(n)))}
		hi, lo := bits.Mul64(uint64(s.flops), uint64(dag.Second))
		time, ok := uint64(0), hi < uint64(p.FlopRate)
		if ok {
			time, _ = bits.Div64(hi, lo, uint64(p.FlopRate))
		}
		if !ok || time > uint64(dag.MaxTime) {
			return nil, fmt.Errorf("flop rate is %d, expected more: a computation takes longer than %v", p.FlopRate,
				dag.MaxTime)
		}
		s.time = dag.Time(time)
		list = append(list, s)
	}
	back := len(list) - 1
	if len(p.Size) == 2 {
		list[0].members, list[0].comm = p.Rows*p.Columns, func(int) int32 { return 0 }
	} else {
		firstRow := 1
		if p.Rows > 1 {
			firstRow += p.Columns
		}
		list[0].members, list[0].comm = p.Rows, func(rank int) int32 { return int32(1 + rank%p.Columns) }
		list[1].members, list[1].comm = p.Columns, func(rank int) int32 { return int32(firstRow + rank/p.Columns) }
	}
	if !p.Inverse {
		return list, nil
	}
	for i := back; i >= 0; i-- {
		s := list[i]
		s.members = 0
		if i > 0 {
			s.members, s.comm = list[i-1].members, list[i-1].comm
		}
		list = append(list, s)
	}
	return list, nil
}

// fill appends the ops of a rank: each op depends on the previous one.
func (p *Params) fill(rank int, stages []stage, b *dag.RankBuilder) {
	add := func(op dag.Op) {
		if i := b.Add(op); i > 0 {
			b.Requires(i, i-1)
		}
	}
	for n := range p.Iterations {
		b.Step(int32(n + 1))
		for i := range stages {
			s := &stages[i]
			add(dag.Op{Kind: dag.Calc, Duration: s.time, Flops: s.flops})
			if s.members > 1 {
				add(dag.Op{Kind: dag.Coll, Subkind: dag.Alltoall, Comm: s.comm(rank),
					Bytes: p.block() * p.ElementBytes})
			}
		}
	}
}
