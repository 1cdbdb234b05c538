package store

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"hash"
	"io"
	"math"
	"slices"

	"github.com/tracedag/tracedag/dag"
	"github.com/tracedag/tracedag/internal/par"
)

// ContentSHA256 returns the digest of the ops of a trace in hexadecimal, which does not depend on the trace's encoding:
// a store has that of the trace in memory, whatever its compression, row groups and schema version. It is the SHA-256
// of the name of each column, a zero byte and the SHA-256 of the column's values, in the order of [Columns], and then
// of "ranks", a zero byte and the number of ranks. docs/reference/store.md specifies the bytes of values. Metadata such
// as communicators and nodes are not part of it. The trace is read once, batch by batch.
func ContentSHA256(s dag.Source) (string, error) {
	h, err := s.Header()
	if err != nil {
		return "", err
	}
	var sums [numColumns]contentSum
	for column := range sums {
		sums[column] = contentSum{Hash: sha256.New(), absent: absentBytes(columns[column].shape)}
	}
	read := s.NewReader(dag.All)
	for _, b := range h.Batches {
		ranks, err := read.Ranks(b)
		if err != nil {
			return "", err
		}
		par.For(numColumns, func(i int) {
			column := readOrder[i]
			sum := &sums[column]
			for k, r := range ranks {
				sum.add(column, b.First+k, r)
			}
			sum.flush()
		})
	}
	all := sha256.New()
	empty := make(map[string][]byte) // digests of columns without values, many of which are equal
	for column := range sums {
		io.WriteString(all, columns[column].name+"\x00")
		all.Write(sums[column].digest(empty))
	}
	io.WriteString(all, "ranks\x00")
	all.Write(binary.LittleEndian.AppendUint64(nil, uint64(h.Ranks)))
	return hex.EncodeToString(all.Sum(nil)), nil
}

// noText is the length of an absent string.
const noText = math.MaxUint32

// absentBytes returns the bytes of a row without a value.
func absentBytes(s shape) []byte {
	switch s {
	case label, list:
		return make([]byte, 4) // a length
	case optText:
		return binary.LittleEndian.AppendUint32(nil, noText)
	case optInt64s:
		return binary.LittleEndian.AppendUint64(nil, 1<<63)
	}
	return make([]byte, 8)
}

// contentSum is the digest of the values of a column.
type contentSum struct {
	hash.Hash
	absent []byte // of a row without a value
	lead   int    // rows without a value so far, if begun is not set
	begun  bool   // the column has a value, and the rows before it are hashed
	buffer []byte
	narrow []int32
}

const contentBuffer = 32 << 10

// digest returns the digest of the column. empty has those of columns that have no values.
func (c *contentSum) digest(empty map[string][]byte) []byte {
	if c.begun {
		return c.Sum(nil)
	}
	sum, found := empty[string(c.absent)]
	if !found {
		c.begin()
		c.flush()
		sum = c.Sum(nil)
		empty[string(c.absent)] = sum
	}
	return sum
}

// begin hashes the rows before the first value.
func (c *contentSum) begin() {
	if !c.begun {
		c.begun = true
		c.skip(c.lead)
	}
}

// skip adds n rows without a value.
func (c *contentSum) skip(n int) {
	if !c.begun {
		c.lead += n
		return
	}
	for range n {
		c.room(len(c.absent))
		c.buffer = append(c.buffer, c.absent...)
	}
}

// add adds a column of a rank.
func (c *contentSum) add(column, rank int, r *dag.Rank) {
	n := r.Len()
	if column == colRank {
		c.begin()
		for range n {
			c.integer(int64(rank))
		}
		return
	}
	all := values(r, column)
	rows := min(n, all.Len())
	if rows > 0 {
		c.begin()
	}
	switch v := all.(type) {
	case *dag.Column[dag.Kind]:
		addLabels(c, (*v)[:rows])
	case *dag.Column[dag.Subkind]:
		addLabels(c, (*v)[:rows])
	case *dag.Column[int32]:
		addIntegers(c, (*v)[:rows])
	case *dag.Column[int64]:
		addIntegers(c, (*v)[:rows])
	case *dag.Column[dag.Time]:
		addIntegers(c, (*v)[:rows])
	case *dag.Narrow:
		c.narrow = slices.Grow(c.narrow[:0], rows)[:rows]
		v.Copy(c.narrow, 0)
		addIntegers(c, c.narrow)
	case *dag.Times:
		for _, t := range (*v)[:rows] {
			if t == dag.Unmeasured {
				c.skip(1)
			} else {
				c.integer(int64(t))
			}
		}
	case *dag.Text:
		for i := range rows {
			if s := v.At(i); s == "" {
				c.skip(1)
			} else {
				c.text(s)
			}
		}
	case *dag.Edges:
		for i := range rows {
			offsets := v.Of(i)
			c.length(len(offsets))
			addIntegers(c, offsets)
		}
	}
	c.skip(n - rows)
}

func addIntegers[T ~int32 | ~int64](c *contentSum, values []T) {
	for _, v := range values {
		c.integer(int64(v))
	}
}

// addLabels adds the names of kinds.
func addLabels[T interface {
	~uint8
	String() string
}](c *contentSum, values []T) {
	for _, v := range values {
		c.text(v.String())
	}
}

// room flushes the buffer unless it has room for some bytes.
func (c *contentSum) room(n int) {
	if len(c.buffer)+n > contentBuffer {
		c.flush()
	}
}

func (c *contentSum) integer(v int64) {
	c.room(8)
	c.buffer = binary.LittleEndian.AppendUint64(c.buffer, uint64(v))
}

func (c *contentSum) length(n int) {
	c.room(4)
	c.buffer = binary.LittleEndian.AppendUint32(c.buffer, uint32(n))
}

func (c *contentSum) text(s string) {
	c.length(len(s))
	c.room(len(s))
	c.buffer = append(c.buffer, s...)
}

// flush hashes the buffer.
func (c *contentSum) flush() {
	c.Write(c.buffer)
	c.buffer = c.buffer[:0]
}
