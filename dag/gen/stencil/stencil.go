// Package stencil generates traces of stencil codes: in each iteration each rank computes on its block of a grid of
// cells, and exchanges the cells along its border with neighbouring ranks.
//
// docs/reference/generators/stencil.md defines the model.
package stencil

import (
	"fmt"
	"math/bits"
	"strings"

	"github.com/tracedag/tracedag/dag"
	"github.com/tracedag/tracedag/dag/gen/rankwise"
)

// Params describe a run. Lists have a value for each dimension, or one for all.
type Params struct {
	Grid       []int    // ranks along each of 1 to 6 dimensions; product 1..2^24
	Cells      []int64  // of a rank's block along each dimension: 1 or more
	Halo       []int64  // layers of cells that neighbours need along each dimension: 0..cells
	CellBytes  int64    // 0 or more; no message is larger than 2^38 bytes
	Periodic   bool     // the first and the last rank along a dimension are neighbours
	Diagonal   bool     // ranks that touch in an edge or a corner are neighbours
	Iterations int      // 1 or more
	Compute    dag.Time // computation of each rank in an iteration: 0 or more

	Allreduces     int   // of all ranks, one after another, at the end of an iteration: 0..2^20
	AllreduceBytes int64 // 1..2^38 bytes
}

// Default returns a 7-point stencil on 4 x 4 x 4 ranks with 64 x 64 x 64 cells of 8 bytes each.
func Default() Params {
	return Params{
		Grid: []int{4, 4, 4}, Cells: []int64{64}, Halo: []int64{1}, CellBytes: 8,
		Iterations: 10, Compute: 100 * dag.Microsecond, AllreduceBytes: 8,
	}
}

// presets are skeletons of applications, see docs/reference/generators/stencil.md.
var presets = []struct {
	name   string
	params Params
}{
	{"lulesh", Params{
		Grid: []int{4, 4, 4}, Cells: []int64{31}, Halo: []int64{1}, CellBytes: 72, Diagonal: true,
		Iterations: 10, Compute: 10 * dag.Millisecond, Allreduces: 1, AllreduceBytes: 8,
	}},
	{"hpcg", Params{
		Grid: []int{4, 4, 4}, Cells: []int64{104}, Halo: []int64{1}, CellBytes: 8, Diagonal: true,
		Iterations: 10, Compute: 70 * dag.Millisecond, Allreduces: 3, AllreduceBytes: 8,
	}},
	{"milc4d", Params{
		Grid: []int{4, 4, 2, 2}, Cells: []int64{8}, Halo: []int64{3}, CellBytes: 24, Periodic: true,
		Iterations: 10, Compute: 5 * dag.Millisecond, Allreduces: 2, AllreduceBytes: 8,
	}},
	{"cloverleaf", Params{
		Grid: []int{8, 8}, Cells: []int64{480}, Halo: []int64{2}, CellBytes: 120,
		Iterations: 10, Compute: 50 * dag.Millisecond, Allreduces: 1, AllreduceBytes: 8,
	}},
}

// Presets returns the names of the skeletons of applications.
func Presets() (names []string) {
	for _, p := range presets {
		names = append(names, p.name)
	}
	return names
}

// Preset returns the skeleton of an application.
func Preset(name string) (Params, error) {
	for _, p := range presets {
		if p.name == name {
			return p.params, nil
		}
	}
	return Params{}, fmt.Errorf("no preset %q, expected one of %s", name, strings.Join(Presets(), ", "))
}

// Limits that keep sizes and counts in range.
const (
	maxDims       = 6
	maxRanks      = 1 << 24
	maxBytes      = 1 << 38 // of a message
	maxIterations = 1 << 30
	maxAllreduces = 1 << 20
)

// neighbour is a direction in which ranks have neighbours.
type neighbour struct {
	offset [maxDims]int // -1, 0 or 1 along each dimension
	bytes  int64        // of the messages in this direction
}

// NewSource returns the trace of a run.
func NewSource(p Params) (*rankwise.Source, error) {
	if err := p.check(); err != nil {
		return nil, fmt.Errorf("stencil: %w", err)
	}
	neighbours, err := p.neighbours()
	if err != nil {
		return nil, fmt.Errorf("stencil: %w", err)
	}
	ranks := 1
	for _, n := range p.Grid {
		ranks *= n
	}
	kinds := []dag.Kind{dag.Calc, dag.Send, dag.Recv}
	title := fmt.Sprintf("stencil, grid %s, %d neighbours, %d iterations", p.grid(), len(neighbours), p.Iterations)
	if p.Allreduces > 0 {
		kinds = append(kinds, dag.Coll)
		title += fmt.Sprintf(", allreduces per iteration: %d", p.Allreduces)
	}
	s, err := rankwise.NewSource(rankwise.Model{
		Title: title,
		Ranks: ranks,
		Kinds: kinds,
		Steps: p.Iterations,
		Count: func(rank int) (ops, deps int64) {
			messages := int64(len(p.messages(rank, neighbours, 1)) + len(p.messages(rank, neighbours, -1)))
			n, sums := int64(p.Iterations), int64(p.Allreduces)
			last := max(1, messages) // ops for which the next iteration waits
			if sums > 0 {
				deps = n * (last + sums - 1)
				last = 1
			}
			return n * (1 + messages + sums), deps + n*messages + (n-1)*last
		},
		Fill: func(rank int, b *dag.RankBuilder) { p.fill(rank, neighbours, b) },
	})
	if err != nil {
		return nil, fmt.Errorf("stencil: %w", err)
	}
	return s, nil
}

func (p *Params) check() error {
	dims := len(p.Grid)
	if dims < 1 || dims > maxDims {
		return fmt.Errorf("grid has %d dimensions, expected 1..%d", dims, maxDims)
	}
	if n := len(p.Cells); n != 1 && n != dims {
		return fmt.Errorf("cells has %d dimensions, expected 1 or %d", n, dims)
	}
	if n := len(p.Halo); n != 1 && n != dims {
		return fmt.Errorf("halo has %d dimensions, expected 1 or %d", n, dims)
	}
	ranks := 1
	for d, n := range p.Grid {
		if n < 1 || n > maxRanks/ranks {
			return fmt.Errorf("grid is %s, expected 1..%d ranks in total", p.grid(), maxRanks)
		}
		ranks *= n
		if cells := along(p.Cells, d); cells < 1 {
			return fmt.Errorf("cells is %d, expected 1 or more", cells)
		}
		if halo := along(p.Halo, d); halo < 0 || halo > along(p.Cells, d) {
			return fmt.Errorf("halo is %d, expected 0..%d, at most the number of cells", halo, along(p.Cells, d))
		}
	}
	switch {
	case p.CellBytes < 0:
		return fmt.Errorf("cell bytes is %d, expected 0 or more", p.CellBytes)
	case p.Iterations < 1 || p.Iterations > maxIterations:
		return fmt.Errorf("iterations is %d, expected 1..%d", p.Iterations, maxIterations)
	case p.Allreduces < 0 || p.Allreduces > maxAllreduces:
		return fmt.Errorf("allreduces is %d, expected 0..%d", p.Allreduces, maxAllreduces)
	case p.Allreduces > 0 && (p.AllreduceBytes < 1 || p.AllreduceBytes > maxBytes):
		return fmt.Errorf("allreduce bytes is %d, expected 1..%d", p.AllreduceBytes, int64(maxBytes))
	case p.Compute < 0:
		return fmt.Errorf("compute time is %v, expected 0 or more", p.Compute)
	}
	return nil
}

// grid returns the ranks along each dimension as the flag takes them, such as "4x4x4".
func (p *Params) grid() string {
	return strings.ReplaceAll(strings.Trim(fmt.Sprint(p.Grid), "[]"), " ", "x")
}

// along returns the value of a list for dimension d.
func along(list []int64, d int) int64 {
	if len(list) == 1 {
		return list[0]
	}
	return list[d]
}

// neighbours returns all directions in which ranks may have neighbours, ascending by their offsets. A dimension of one
// rank, or without halo, has no neighbours.
func (p *Params) neighbours() ([]neighbour, error) {
	dims := len(p.Grid)
	all := 1 // 3 to the number of dimensions
	for range dims {
		all *= 3
	}
	var list []neighbour
	for code := range all {
		n := neighbour{bytes: p.CellBytes}
		nonzero, possible := 0, true
		for d, rest := dims-1, code; d >= 0; d, rest = d-1, rest/3 {
			n.offset[d] = rest%3 - 1
			width := along(p.Cells, d)
			if n.offset[d] != 0 {
				nonzero++
				width = along(p.Halo, d)
				possible = possible && p.Grid[d] > 1 && width > 0
			}
			if hi, lo := bits.Mul64(uint64(n.bytes), uint64(width)); hi > 0 || lo > maxBytes {
				n.bytes = maxBytes + 1
			} else {
				n.bytes = int64(lo)
			}
		}
		if !possible || nonzero == 0 || nonzero > 1 && !p.Diagonal {
			continue
		}
		if n.bytes > maxBytes {
			return nil, fmt.Errorf("a message to a neighbour exceeds %d bytes", int64(maxBytes))
		}
		list = append(list, n)
	}
	return list, nil
}

// peer returns the rank that lies in the direction of n, or the opposite one for sign -1, if there is one.
func (p *Params) peer(rank int, n *neighbour, sign int) (peer int, ok bool) {
	stride := 1
	for d := len(p.Grid) - 1; d >= 0; d-- {
		size := p.Grid[d]
		at := rank%size + sign*n.offset[d]
		rank /= size
		if at < 0 || at >= size {
			if !p.Periodic {
				return 0, false
			}
			at = (at + size) % size
		}
		peer += at * stride
		stride *= size
	}
	return peer, true
}

// message is one that a rank sends or receives in each iteration.
type message struct {
	peer       int32
	bytes, tag int64
}

// messages returns the messages that a rank sends, or receives for sign -1. The tag of a message is the number of its
// direction, because in a periodic dimension of two ranks both neighbours are the same rank.
func (p *Params) messages(rank int, neighbours []neighbour, sign int) []message {
	list := make([]message, 0, len(neighbours))
	for i := range neighbours {
		if peer, ok := p.peer(rank, &neighbours[i], sign); ok {
			list = append(list, message{int32(peer), neighbours[i].bytes, int64(i)})
		}
	}
	return list
}

// fill appends the ops of a rank.
func (p *Params) fill(rank int, neighbours []neighbour, b *dag.RankBuilder) {
	sends, recvs := p.messages(rank, neighbours, 1), p.messages(rank, neighbours, -1)
	exchange := max(1, len(sends)+len(recvs)) // number of its ops; the computation if there is no exchange
	before := exchange                        // number of ops for which the next computation waits
	if p.Allreduces > 0 {
		before = 1
	}
	requires := func(op, before int) {
		for other := op - before; other < op; other++ {
			b.Requires(op, other)
		}
	}
	for i := range p.Iterations {
		b.Step(int32(i + 1))
		calc := b.Calc(p.Compute)
		if i > 0 {
			requires(calc, before)
		}
		for _, m := range sends {
			b.Send(m.peer, m.bytes, m.tag, calc)
		}
		for _, m := range recvs {
			b.Recv(m.peer, m.bytes, m.tag, calc)
		}
		for k := range p.Allreduces {
			sum := b.Add(dag.Op{Kind: dag.Coll, Subkind: dag.Allreduce, Bytes: p.AllreduceBytes})
			if k == 0 {
				requires(sum, exchange)
			} else {
				requires(sum, 1)
			}
		}
	}
}
