package dag

import (
	"slices"

	"github.com/tracedag/tracedag/internal/par"
)

// Pair is the traffic from one rank to another.
type Pair struct {
	Src      int32 `json:"src"`
	Dst      int32 `json:"dst"`
	Messages int64 `json:"messages"`
	Bytes    Total `json:"bytes"`
}

// Matrix returns the pairs of ranks that exchange messages, sorted by Src and Dst. It counts sends. Collectives have
// no messages before lowering. It skips sends to ranks that do not exist.
func Matrix(t *Trace) []Pair {
	rows := make([][]Pair, len(t.Ranks))
	par.ForWith(len(rows), func() *matrixRow { return newMatrixRow(len(t.Ranks)) }, func(m *matrixRow, i int) {
		rows[i] = m.count(t.Ranks[i], int32(i))
	})
	return slices.Concat(rows...)
}

// matrixRow counts the messages of one sender at a time.
type matrixRow struct {
	messages []int64 // by receiver; zero between senders
	bytes    []Total
	to       []int32 // receivers of the current sender
}

func newMatrixRow(ranks int) *matrixRow {
	return &matrixRow{messages: make([]int64, ranks), bytes: make([]Total, ranks)}
}

func (m *matrixRow) count(r *Rank, src int32) []Pair {
	m.to = m.to[:0]
	for i, kind := range r.Kind {
		to := r.Peer.At(i)
		if kind != Send || !inRange(to, len(m.messages)) {
			continue
		}
		if m.messages[to] == 0 {
			m.to = append(m.to, to)
		}
		m.messages[to]++
		m.bytes[to].add(r.Bytes.At(i))
	}
	slices.Sort(m.to)
	row := make([]Pair, len(m.to))
	for i, to := range m.to {
		row[i] = Pair{Src: src, Dst: to, Messages: m.messages[to], Bytes: m.bytes[to]}
		m.messages[to], m.bytes[to] = 0, Total{}
	}
	return row
}
