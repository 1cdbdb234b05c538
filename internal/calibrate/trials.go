package calibrate

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"sync"

	"github.com/tracedag/tracedag/dag"
	"github.com/tracedag/tracedag/dag/lower/collective"
)

// trials keeps what replays found: many algorithms and pasts of a measurement have the same messages. Calls of its
// methods may be concurrent.
type trials[T any] struct {
	time  replayer
	of    func(at [][]float64, end []float64) T // what counts of the times of ranks, see [replayer]
	mutex sync.Mutex
	done  map[[sha256.Size]byte]*trial[T]
}

// trial is a replay of a trace.
type trial[T any] struct {
	once  sync.Once
	found T
	err   error
}

// Limits of the work of traces, see [work]. An all-to-all of 63 ranks at once is a light trace, which is always
// replayed. Those of more than allLight are heavy: their messages share links with thousands of others, and each that
// starts or ends changes the rates of many. They are replayed if it matters and up to allHeavy, three all-to-alls of 96
// ranks, in sum.
const (
	allLight = 16_000_000
	allHeavy = 250_000_000
)

// heavy is the error of a trace that was not replayed, for its work.
type heavy struct{ work int64 }

func (h heavy) Error() string {
	return fmt.Sprintf("expected a trace of less than %d units of work", h.work)
}

func newTrials[T any](time replayer, of func(at [][]float64, end []float64) T) *trials[T] {
	return &trials[T]{time: time, of: of, done: map[[sha256.Size]byte]*trial[T]{}}
}

// budget is the work of heavy traces that is left.
type budget int64

// allow takes the work of a trace from the budget if there is enough left.
func (b *budget) allow(work int64) bool {
	if work > int64(*b) {
		return false
	}
	*b -= budget(work)
	return true
}

// worthwhile reports whether a heavy algorithm is to be tried, if the best other one has an error: one that a table has
// unless another one explains the time about as well as a table has to, others only if none is near.
func worthwhile(least float64, inTable bool) bool {
	return least > unknown || least > tableMean && inTable
}

// run returns what counts of the times of a scene with a choice of algorithms. The error of one that takes more work
// than the limit, and was not replayed before, is [heavy].
func (t *trials[T]) run(ctx context.Context, s *scene, choice collective.Choice, limit int64) (found T, err error) {
	trace, marks, err := s.lower(ctx, choice)
	if err != nil {
		return found, err
	}
	key := digest(trace, marks)
	t.mutex.Lock()
	known := t.done[key]
	t.mutex.Unlock()
	if known == nil {
		if w := work(trace); w > limit {
			return found, heavy{w}
		}
		t.mutex.Lock()
		if known = t.done[key]; known == nil {
			known = new(trial[T])
			t.done[key] = known
		}
		t.mutex.Unlock()
	}
	known.once.Do(func() {
		at, end, err := t.time(ctx, trace, marks)
		if known.err = err; err == nil {
			known.found = t.of(at, end)
		}
	})
	return known.found, known.err
}

// work estimates what the replay of a trace takes, in units of a message that starts while another one is under way:
// the sum of squares of the numbers of messages that follow the same number of receives on their ranks.
func work(t *dag.Trace) (sum int64) {
	var messages []int64 // by the number of receives before
	var before []int32   // by op of a rank: the number of receives before its end
	for _, r := range t.Ranks {
		before = append(before[:0], make([]int32, r.Len())...)
		for i, kind := range r.Kind {
			n := int32(0)
			for _, off := range r.Deps.Of(i) {
				n = max(n, before[i-int(off)])
			}
			for _, off := range r.StartDeps.Of(i) {
				if on := i - int(off); r.Kind[on] == dag.Recv {
					n = max(n, before[on]-1)
				} else {
					n = max(n, before[on])
				}
			}
			switch kind {
			case dag.Send:
				for len(messages) <= int(n) {
					messages = append(messages, 0)
				}
				messages[n]++
			case dag.Recv:
				n++
			}
			before[i] = n
		}
	}
	for _, n := range messages {
		sum += n * n
	}
	return sum
}

// digest returns the digest of what a replay of a trace with marks depends on.
func digest(t *dag.Trace, marks [][]int) (sum [sha256.Size]byte) {
	h := sha256.New()
	var b []byte
	for rank, r := range t.Ranks {
		b = binary.AppendUvarint(b[:0], uint64(r.Len()))
		for _, m := range marks[rank] {
			b = binary.AppendUvarint(b, uint64(m))
		}
		for id := range dag.Fields {
			if f := &dag.Fields[id]; f.Replay || dag.FieldID(id) == dag.FieldAttrs {
				b = appendValues(b, f.Of(r), r.Len())
			}
		}
		h.Write(b)
	}
	return [sha256.Size]byte(h.Sum(nil))
}

// appendValues appends the values of a column of a rank of n ops.
func appendValues(b []byte, values dag.Values, n int) []byte {
	switch c := values.(type) {
	case *dag.Column[dag.Kind]:
		return appendColumn(b, *c)
	case *dag.Column[dag.Subkind]:
		return appendColumn(b, *c)
	case *dag.Column[dag.Time]:
		return appendColumn(b, *c)
	case *dag.Column[int32]:
		return appendColumn(b, *c)
	case *dag.Column[int64]:
		return appendColumn(b, *c)
	case *dag.Narrow:
		b = binary.AppendUvarint(b, uint64(c.Len()))
		for i := range c.Len() {
			b = binary.AppendVarint(b, int64(c.At(i)))
		}
		return b
	case *dag.Edges:
		for i := range n {
			off := c.Of(i)
			b = binary.AppendUvarint(b, uint64(len(off)))
			for _, o := range off {
				b = binary.AppendVarint(b, int64(o))
			}
		}
		return b
	case *dag.Text:
		b = binary.AppendUvarint(b, uint64(c.Len()))
		for i := range c.Len() {
			b = binary.AppendUvarint(b, uint64(len(c.At(i))))
			b = append(b, c.At(i)...)
		}
		return b
	}
	panic(errors.New("a column of an unknown type"))
}

func appendColumn[T ~uint8 | ~int32 | ~int64](b []byte, c []T) []byte {
	b = binary.AppendUvarint(b, uint64(len(c)))
	for _, v := range c {
		b = binary.AppendVarint(b, int64(v))
	}
	return b
}
