package report

import (
	"cmp"
	"encoding/json"
	"math/big"
	"math/bits"
	"slices"
)

// A matrix has a row per rank up to maxExact ranks, and otherwise at most maxRows rows of several ranks each. It also
// has at most maxRows rows if more than maxRows*maxRows pairs of ranks communicate, so that pages stay small.
const (
	maxExact = 512
	maxRows  = 256
)

// Sum is a sum of numbers that cannot overflow. Its JSON number is exact.
type Sum struct{ high, low uint64 }

// Add adds n.
func (s *Sum) Add(n uint64) {
	var carry uint64
	s.low, carry = bits.Add64(s.low, n, 0)
	s.high += carry
}

// SumOf returns the sum with a value. Values below 0 count as 0, those beyond 128 bits as the largest.
func SumOf(v *big.Int) Sum {
	switch {
	case v.Sign() <= 0:
		return Sum{}
	case v.BitLen() > 128:
		return Sum{^uint64(0), ^uint64(0)}
	}
	return Sum{new(big.Int).Rsh(v, 64).Uint64(), new(big.Int).And(v, new(big.Int).SetUint64(^uint64(0))).Uint64()}
}

func (s *Sum) addSum(t Sum) {
	var carry uint64
	s.low, carry = bits.Add64(s.low, t.low, 0)
	s.high += t.high + carry
}

// Big returns the sum.
func (s Sum) Big() *big.Int {
	n := new(big.Int).Lsh(new(big.Int).SetUint64(s.high), 64)
	return n.Or(n, new(big.Int).SetUint64(s.low))
}

// Compare returns -1, 0 or 1 if s is less than, equal to or greater than t.
func (s Sum) Compare(t Sum) int {
	return cmp.Or(cmp.Compare(s.high, t.high), cmp.Compare(s.low, t.low))
}

// MarshalJSON returns the sum as a number.
func (s Sum) MarshalJSON() ([]byte, error) { return s.Big().MarshalJSON() }

// cell is the traffic from the ranks of a row to those of a column.
type cell struct {
	messages int64
	bytes    Sum
}

// Matrix is the traffic from rank to rank. For many ranks, a row stands for several of them.
type Matrix struct {
	ranks int
	edge  int // ranks of a row
	rows  int
	cells []cell // by row, then column
}

// NewMatrix returns a matrix without traffic.
func NewMatrix(ranks int) *Matrix {
	m := &Matrix{ranks: ranks, edge: 1, rows: ranks}
	if ranks > maxExact {
		m.edge = (ranks + maxRows - 1) / maxRows
		m.rows = (ranks + m.edge - 1) / m.edge
	}
	m.cells = make([]cell, m.rows*m.rows)
	return m
}

// Add adds messages from a rank to another, with their bytes in all.
func (m *Matrix) Add(src, dst int, messages int64, bytes uint64) {
	c := &m.cells[src/m.edge*m.rows+dst/m.edge]
	c.messages += messages
	c.bytes.Add(bytes)
}

// AddSum is Add for a sum of bytes.
func (m *Matrix) AddSum(src, dst int, messages int64, bytes Sum) {
	c := &m.cells[src/m.edge*m.rows+dst/m.edge]
	c.messages += messages
	c.bytes.addSum(bytes)
}

// Empty reports whether there is no traffic.
func (m *Matrix) Empty() bool { return m.pairs() == 0 }

// pairs returns the number of cells with messages.
func (m *Matrix) pairs() (n int) {
	for i := range m.cells {
		if m.cells[i].messages > 0 {
			n++
		}
	}
	return n
}

// coarser returns the matrix with twice as many ranks in a row.
func (m *Matrix) coarser() *Matrix {
	c := &Matrix{ranks: m.ranks, edge: 2 * m.edge, rows: (m.rows + 1) / 2}
	c.cells = make([]cell, c.rows*c.rows)
	for i := range m.cells {
		to := &c.cells[i/m.rows/2*c.rows+i%m.rows/2]
		to.messages += m.cells[i].messages
		to.bytes.addSum(m.cells[i].bytes)
	}
	return c
}

// largest is a cell with most bytes, by the first rank of its row and column.
type largest struct {
	Src      int   `json:"src"`
	Dst      int   `json:"dst"`
	Messages int64 `json:"messages"`
	Bytes    Sum   `json:"bytes"`
}

// MarshalJSON returns the bytes by row and column, and the cells with most bytes.
func (m *Matrix) MarshalJSON() ([]byte, error) {
	for m.rows > maxRows && m.pairs() > maxRows*maxRows {
		m = m.coarser()
	}
	document := struct {
		Edge    int       `json:"ranks_per_row"`
		Pairs   int       `json:"pairs"` // rows and columns with messages
		Bytes   [][]Sum   `json:"bytes"`
		Largest []largest `json:"largest"`
	}{Edge: m.edge, Pairs: m.pairs(), Bytes: make([][]Sum, m.rows), Largest: []largest{}}
	for row := range m.rows {
		document.Bytes[row] = make([]Sum, m.rows)
		for column := range m.rows {
			c := &m.cells[row*m.rows+column]
			document.Bytes[row][column] = c.bytes
			if all := document.Largest; c.messages > 0 && (len(all) < busiest ||
				c.bytes.Compare(all[len(all)-1].Bytes) > 0) {
				one := largest{row * m.edge, column * m.edge, c.messages, c.bytes}
				all = append(all[:min(len(all), busiest-1)], one)
				slices.SortStableFunc(all, func(a, b largest) int { return b.Bytes.Compare(a.Bytes) })
				document.Largest = all
			}
		}
	}
	return json.Marshal(document)
}
