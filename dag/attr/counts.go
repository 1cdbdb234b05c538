package attr

import (
	"strconv"
)

// Counts are the bytes of an alltoallv by partner, in the order of the members of the communicator, the member itself
// included. The sums are the bytes and the received bytes of the op.
type Counts struct {
	Send []int64 `json:"send"`
	Recv []int64 `json:"recv"`
}

const counts = "counts"

// Append appends the member "counts" to b.
func (c *Counts) Append(b []byte) []byte {
	b = append(b, `"counts":{"send":[`...)
	b = appendNumbers(b, c.Send)
	b = append(b, `],"recv":[`...)
	b = appendNumbers(b, c.Recv)
	return append(b, "]}"...)
}

func appendNumbers(b []byte, numbers []int64) []byte {
	for i, n := range numbers {
		if i > 0 {
			b = append(b, ',')
		}
		b = strconv.AppendInt(b, n, 10)
	}
	return b
}

// WithCounts returns attributes with the member "counts" behind their other members.
func WithCounts(attrs string, c *Counts) string {
	return with(attrs, string(c.Append(nil)))
}

// Even reports whether the counts of each list are equal, so that the sums determine them.
func (c *Counts) Even() bool {
	for _, list := range [][]int64{c.Send, c.Recv} {
		for _, n := range list {
			if n != list[0] {
				return false
			}
		}
	}
	return true
}

// ParseCounts returns the member "counts" of attributes. It returns false if there is none, or if a count is negative.
func ParseCounts(attrs string) (c Counts, ok bool) {
	if !Decode(attrs, counts, &c) {
		return Counts{}, false
	}
	for _, list := range [][]int64{c.Send, c.Recv} {
		for _, n := range list {
			if n < 0 {
				return Counts{}, false
			}
		}
	}
	return c, true
}
