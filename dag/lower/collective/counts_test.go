package collective

import (
	"context"
	"strings"
	"testing"

	"github.com/tracedag/tracedag/dag"
	"github.com/tracedag/tracedag/dag/attr"
)

// exchanged returns a trace of one alltoallv with the given counts: row i has the bytes that rank i sends. Ranks with
// equal counts do not state them.
func exchanged(counts [][]int64) *dag.Trace {
	b := dag.NewBuilder(len(counts))
	for i := range counts {
		op := dag.Op{Kind: dag.Coll, Subkind: dag.Alltoallv}
		var c attr.Counts
		for j := range counts {
			c.Send, c.Recv = append(c.Send, counts[i][j]), append(c.Recv, counts[j][i])
			op.Bytes, op.RecvBytes = op.Bytes+counts[i][j], op.RecvBytes+counts[j][i]
		}
		if !c.Even() {
			op.Attrs = attr.WithCounts("", &c)
		}
		b.Rank(i).Add(op)
	}
	return b.Trace()
}

// TestCounts checks the sizes of the messages of an alltoallv with counts by partner, at ranks with and without them.
func TestCounts(t *testing.T) {
	counts := [][]int64{{9, 4, 4, 1}, {4, 4, 4, 4}, {4, 4, 4, 4}, {0, 4, 4, 7}}
	for _, algorithm := range []string{"linear", "pairwise", "scattered(group=2)", "ordered", "shift",
		"linearreverse"} {
		choice, err := ParseChoice("alltoallv=" + algorithm)
		if err != nil {
			t.Fatal(err)
		}
		lowered, err := Lower(context.Background(), exchanged(counts), choice)
		if err != nil {
			t.Fatal(algorithm, err)
		}
		for rank, r := range lowered.Ranks {
			messages := 0
			for i, kind := range r.Kind {
				peer := int(r.Peer.At(i))
				want := int64(-1)
				switch kind {
				case dag.Send:
					want = counts[rank][peer]
				case dag.Recv:
					want = counts[peer][rank]
				default:
					continue
				}
				messages++
				if r.Bytes.At(i) != want {
					t.Errorf("%s: rank %d: %v with %d of %d bytes, expected %d", algorithm, rank, kind, peer, r.Bytes.At(i),
						want)
				}
			}
			if messages != 6 {
				t.Errorf("%s: %d messages of rank %d", algorithm, messages, rank)
			}
		}
	}
}

// TestBadCounts checks that counts with wrong lengths and sums, and counts on which members disagree, are errors.
func TestBadCounts(t *testing.T) {
	for want, change := range map[string]func(c *attr.Counts){
		"bytes of 1 partners that it sends, expected 2":         func(c *attr.Counts) { c.Send = c.Send[:1] },
		"the bytes by partner that it receives do not sum to 5": func(c *attr.Counts) { c.Recv[0]++ },
		"disagree on the bytes that one sends to another":       func(c *attr.Counts) { c.Send = []int64{1, 3} },
		"the bytes by partner that it sends do not sum to 4":    func(c *attr.Counts) { c.Send[0] = 1 << 62 },
		"bytes of 3 partners that it receives, expected 2":      func(c *attr.Counts) { c.Recv = []int64{1, 1, 3} },
	} {
		trace := exchanged([][]int64{{2, 2}, {3, 1}})
		r := trace.Ranks[0]
		c, _ := attr.ParseCounts(r.Attrs.At(0))
		change(&c)
		var text dag.Text
		text.Append(0, attr.WithCounts("", &c))
		r.Attrs = text
		_, err := Lower(context.Background(), trace, Choice{})
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, expected %q", err, want)
		}
	}
}
