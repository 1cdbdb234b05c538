// Package sweep3d generates traces of the wavefronts of discrete ordinates codes such as Sweep3D: sweeps over a grid of
// ranks from each of its corners (Koch, Baker, Alcouffe: Solution of the first-order form of the 3D discrete ordinates
// equation on a massively parallel processor, Transactions of the American Nuclear Society 65, 1992).
//
// docs/reference/generators/sweep3d.md defines the model.
package sweep3d

import (
	"fmt"
	"math"
	"math/bits"

	"github.com/tracedag/tracedag/dag"
	"github.com/tracedag/tracedag/dag/gen/rankwise"
)

// Params describe a run.
type Params struct {
	GridX, GridY int      // ranks along x and y: 1 or more, product 1..2^24
	X, Y, Z      int64    // cells of a rank along each dimension: 1..2^20
	ZBlock       int64    // planes of cells per block (mk): 1..Z
	Angles       int64    // of an octant: 1..2^20
	AngleBlock   int64    // angles per block (mmi): 1..angles
	FluxBytes    int64    // per cell face and angle: 0 or more; no message is larger than 2^38 bytes
	Grind        dag.Time // computation of a cell for an angle: 0 or more
	Iterations   int      // 1 or more
}

// Default returns 8 x 8 ranks with 50 x 50 x 50 cells each and 6 angles per octant.
func Default() Params {
	return Params{
		GridX: 8, GridY: 8, X: 50, Y: 50, Z: 50, ZBlock: 10, Angles: 6, AngleBlock: 3, FluxBytes: 8,
		Grind: 10 * dag.Nanosecond, Iterations: 2,
	}
}

// Limits that keep sizes and counts in range.
const (
	maxRanks = 1 << 24
	maxSide  = 1 << 20 // of cells and angles
	maxBytes = 1 << 38 // of a message
	maxSteps = 1 << 28 // computations of a rank
)

const octants = 8

// errorBytes is the size of the largest change of a flux, which all ranks reduce after an iteration.
const errorBytes = 8

// NewSource returns the trace of a run.
func NewSource(p Params) (*rankwise.Source, error) {
	if err := p.check(); err != nil {
		return nil, fmt.Errorf("sweep3d: %w", err)
	}
	s, err := rankwise.NewSource(rankwise.Model{
		Title: fmt.Sprintf("sweep3d, %d x %d ranks, %d x %d x %d cells each, %d iterations", p.GridX, p.GridY, p.X, p.Y,
			p.Z, p.Iterations),
		Ranks: p.GridX * p.GridY,
		Kinds: []dag.Kind{dag.Calc, dag.Send, dag.Recv, dag.Coll},
		Steps: p.Iterations,
		Count: p.count,
		Fill:  p.fill,
	})
	if err != nil {
		return nil, fmt.Errorf("sweep3d: %w", err)
	}
	return s, nil
}

func (p *Params) check() error {
	for _, side := range []struct {
		name        string
		value, most int64
	}{
		{"x", p.X, maxSide}, {"y", p.Y, maxSide}, {"z", p.Z, maxSide}, {"z block", p.ZBlock, p.Z},
		{"angles", p.Angles, maxSide}, {"angle block", p.AngleBlock, p.Angles},
	} {
		if side.value < 1 || side.value > side.most {
			return fmt.Errorf("%s is %d, expected 1..%d", side.name, side.value, side.most)
		}
	}
	switch {
	case p.GridX < 1 || p.GridY < 1 || p.GridX > maxRanks/p.GridY:
		return fmt.Errorf("grid is %d x %d, expected 1..%d ranks", p.GridX, p.GridY, maxRanks)
	case p.FluxBytes < 0 || tooMuch(maxBytes, max(p.X, p.Y), p.ZBlock, p.AngleBlock, p.FluxBytes):
		return fmt.Errorf("flux bytes is %d, expected 0 or more and messages of at most %d bytes", p.FluxBytes,
			int64(maxBytes))
	case p.Grind < 0 || tooMuch(math.MaxInt64, p.X, p.Y, p.ZBlock, p.AngleBlock, int64(p.Grind)):
		return fmt.Errorf("grind time is %v, expected 0 or more and computations of at most %v", p.Grind, dag.MaxTime)
	case p.Iterations < 1 || tooMuch(maxSteps, octants, p.angleBlocks(), p.zBlocks(), int64(p.Iterations)):
		return fmt.Errorf("iterations is %d, expected 1 or more and at most %d computations", p.Iterations, maxSteps)
	}
	return nil
}

// tooMuch reports whether the product of non-negative factors exceeds most.
func tooMuch(most uint64, factors ...int64) bool {
	product := uint64(1)
	for _, f := range factors {
		hi, lo := bits.Mul64(product, uint64(f))
		if hi > 0 || lo > most {
			return true
		}
		product = lo
	}
	return false
}

func (p *Params) zBlocks() int64 {
	return (p.Z + p.ZBlock - 1) / p.ZBlock
}

func (p *Params) angleBlocks() int64 {
	return (p.Angles + p.AngleBlock - 1) / p.AngleBlock
}

// upstream returns the neighbours that a rank receives from in an octant, and downstream those that it sends to; -1 at
// the border. Octants are numbered by the directions of the sweep: bit 1 is set for ascending x, bit 2 for ascending y.
// Bit 0 is for z, along which there is one rank.
func (p *Params) upstream(rank, octant int) (x, y int) {
	return p.beside(rank, octant, 1)
}

func (p *Params) downstream(rank, octant int) (x, y int) {
	return p.beside(rank, octant, -1)
}

func (p *Params) beside(rank, octant, back int) (x, y int) {
	column, row := rank%p.GridX, rank/p.GridX
	dx, dy := back, back
	if octant&2 != 0 {
		dx = -dx
	}
	if octant&4 != 0 {
		dy = -dy
	}
	x, y = -1, -1
	if c := column + dx; c >= 0 && c < p.GridX {
		x = rank + dx
	}
	if r := row + dy; r >= 0 && r < p.GridY {
		y = rank + dy*p.GridX
	}
	return x, y
}

// count returns the number of ops of a rank. In every octant it sends to or receives from each neighbour.
func (p *Params) count(rank int) (ops, deps int64) {
	upX, upY := p.upstream(rank, 0)
	downX, downY := p.downstream(rank, 0)
	neighbours := int64(0)
	for _, n := range []int{upX, upY, downX, downY} {
		if n >= 0 {
			neighbours++
		}
	}
	calcs := octants * p.angleBlocks() * p.zBlocks()
	messages := calcs * neighbours
	n := int64(p.Iterations)
	return n * (calcs + messages + 1), n * (calcs + 2*messages + 1)
}

// fill appends the ops of a rank.
func (p *Params) fill(rank int, b *dag.RankBuilder) {
	last := -1 // the previous computation or collective
	for i := range p.Iterations {
		b.Step(int32(i + 1))
		for octant := range octants {
			upX, upY := p.upstream(rank, octant)
			downX, downY := p.downstream(rank, octant)
			for angle := int64(0); angle < p.Angles; angle += p.AngleBlock {
				angles := min(p.AngleBlock, p.Angles-angle)
				for z := int64(0); z < p.Z; z += p.ZBlock {
					work := min(p.ZBlock, p.Z-z) * angles // planes times angles
					sizeX, sizeY := p.Y*work*p.FluxBytes, p.X*work*p.FluxBytes
					recvX, recvY := recv(b, upX, sizeX, last), recv(b, upY, sizeY, last)
					calc := b.Calc(dag.Time(p.X*p.Y*work) * p.Grind)
					require(b, calc, last)
					require(b, calc, recvX)
					require(b, calc, recvY)
					send(b, downX, sizeX, calc)
					send(b, downY, sizeY, calc)
					last = calc
				}
			}
		}
		last = b.Add(dag.Op{Kind: dag.Coll, Subkind: dag.Allreduce, Bytes: errorBytes}, last)
	}
}

// recv appends a receive that depends on last, and returns it; -1 if there is no peer.
func recv(b *dag.RankBuilder, peer int, bytes int64, last int) int {
	if peer < 0 {
		return -1
	}
	op := b.Recv(int32(peer), bytes, 0)
	require(b, op, last)
	return op
}

func send(b *dag.RankBuilder, peer int, bytes int64, calc int) {
	if peer >= 0 {
		b.Send(int32(peer), bytes, 0, calc)
	}
}

func require(b *dag.RankBuilder, op, on int) {
	if on >= 0 {
		b.Requires(op, on)
	}
}
