package calibrate

import (
	"context"
	"errors"
	"slices"

	"github.com/tracedag/tracedag/dag"
	"github.com/tracedag/tracedag/dag/lower/collective"
	"github.com/tracedag/tracedag/sim"
)

// replayer returns, for each rank of a trace of sends, receives and calcs, when some calcs end, in seconds, and when
// the rank finishes. marks has the indexes of these calcs in each rank. Calls may be concurrent.
type replayer func(ctx context.Context, t *dag.Trace, marks [][]int) (at [][]float64, end []float64, err error)

// scene is a trace of what a benchmark does, in which each rank has one op after the other.
type scene struct {
	ranks   int
	marks   int // of each rank
	builder *dag.Builder
}

func newScene(ranks int) *scene { return &scene{ranks: ranks, builder: dag.NewBuilder(ranks)} }

// add adds an op to a rank behind its last one.
func (s *scene) add(rank int, op dag.Op) {
	if r := s.builder.Rank(rank); r.Len() > 0 {
		r.Add(op, r.Len()-1)
	} else {
		r.Add(op)
	}
}

// collective adds a collective of all ranks. size is the input of each rank or of the root.
func (s *scene) collective(kind dag.Subkind, size int64) {
	for r := range s.ranks {
		op := dag.Op{Kind: dag.Coll, Subkind: kind, Bytes: size, Peer: -1}
		if kind.Rooted() {
			op.Peer = 0
		}
		if kind == dag.Barrier || kind == dag.Scatter && r > 0 {
			op.Bytes = 0
		}
		s.add(r, op)
	}
}

// markName is the name of the calcs whose times count.
const markName = "mark"

// mark marks the time of each rank.
func (s *scene) mark() {
	s.marks++
	for r := range s.ranks {
		s.add(r, dag.Op{Kind: dag.Calc, Name: markName, Duration: 1})
	}
}

// pause lets time pass on each rank, longer than what a message leaves behind.
func (s *scene) pause() {
	for r := range s.ranks {
		s.add(r, dag.Op{Kind: dag.Calc, Duration: dag.Second})
	}
}

// send and receive add a blocking message.
func (s *scene) send(from, to int, bytes int64) {
	s.add(from, dag.Op{Kind: dag.Send, Peer: int32(to), Bytes: bytes})
}

func (s *scene) receive(to, from int, bytes int64) {
	s.add(to, dag.Op{Kind: dag.Recv, Peer: int32(from), Bytes: bytes})
}

// exchange adds a send and a receive of a rank, as MPI_Sendrecv has them: the receive is posted behind the send.
func (s *scene) exchange(rank, with int, bytes int64) {
	r := s.builder.Rank(rank)
	var before []int
	if r.Len() > 0 {
		before = []int{r.Len() - 1}
	}
	send := r.Add(dag.Op{Kind: dag.Send, Peer: int32(with), Bytes: bytes}, before...)
	receive := r.Add(dag.Op{Kind: dag.Recv, Peer: int32(with), Bytes: bytes}, before...)
	r.RequiresStart(receive, send)
	r.Add(dag.Op{Kind: dag.Calc}, send, receive)
}

// incast adds messages of ranks 1 to n to rank 0.
func (s *scene) incast(n int, bytes int64) {
	for r := 1; r <= n; r++ {
		s.send(r, 0, bytes)
		s.receive(0, r, bytes)
	}
}

// window adds non-blocking messages and an empty answer.
func (s *scene) window(from, to int, bytes int64, n int) {
	here, there := s.builder.Rank(from), s.builder.Rank(to)
	first, second := here.Len()-1, there.Len()-1
	var sends, receives []int
	for i := range n {
		send := dag.Op{Kind: dag.Send, Peer: int32(to), Bytes: bytes, Tag: int64(i)}
		receive := dag.Op{Kind: dag.Recv, Peer: int32(from), Bytes: bytes, Tag: int64(i)}
		if i == 0 {
			sends, receives = append(sends, here.Add(send, first)), append(receives, there.Add(receive, second))
			continue
		}
		sends, receives = append(sends, here.Add(send)), append(receives, there.Add(receive))
		here.RequiresStart(sends[i], sends[i-1])
		there.RequiresStart(receives[i], receives[i-1])
	}
	here.Add(dag.Op{Kind: dag.Calc}, sends...)
	there.Add(dag.Op{Kind: dag.Calc}, receives...)
	s.send(to, from, 0)
	s.receive(from, to, 0)
}

// run returns when each rank passes its marks, and when it ends.
func (s *scene) run(ctx context.Context, choice collective.Choice, time replayer) (at [][]float64, end []float64,
	err error) {
	trace, marks, err := s.lower(ctx, choice)
	if err != nil {
		return nil, nil, err
	}
	return time(ctx, trace, marks)
}

// lower returns the trace of messages, and the indexes of the marks of each rank.
func (s *scene) lower(ctx context.Context, choice collective.Choice) (trace *dag.Trace, marks [][]int, err error) {
	if err := s.builder.Err(); err != nil {
		return nil, nil, err
	}
	if trace, err = collective.Lower(ctx, s.builder.Trace(), choice); err != nil {
		return nil, nil, err
	}
	marks = make([][]int, len(trace.Ranks))
	for r, rank := range trace.Ranks {
		for i := range rank.Len() {
			if rank.Kind[i] == dag.Calc && rank.Name.At(i) == markName {
				marks[r] = append(marks[r], i)
			}
		}
		if len(marks[r]) != s.marks {
			return nil, nil, errors.New("the mark of a measurement is missing")
		}
	}
	return trace, marks, nil
}

// longestOf returns the longest time of a rank between its first two marks.
func longestOf(at [][]float64) (longest float64) {
	for _, t := range at {
		longest = max(longest, t[1]-t[0])
	}
	return longest
}

// clock is a timeline that records when marked calcs end.
type clock struct {
	layout *sim.Layout
	marks  [][]int
	at     [][]float64
}

func (c *clock) Begin(l *sim.Layout) {
	c.layout, c.at = l, make([][]float64, l.Ranks())
	for r := range c.at {
		c.at[r] = make([]float64, len(c.marks[r]))
	}
}

// times returns what a replayer returns of a run.
func (c *clock) times(result *sim.Result, err error) (at [][]float64, end []float64, _ error) {
	if err != nil {
		return nil, nil, err
	}
	if !result.Complete {
		return nil, nil, errors.New("expected a trace that ends, found one that waits")
	}
	for _, clock := range result.Finish {
		end = append(end, float64(clock.Ticks)*float64(clock.Unit)/float64(dag.Second))
	}
	return c.at, end, nil
}

func (c *clock) Transfer(sim.Transfer) {}
func (c *clock) End() error            { return nil }

func (c *clock) Span(s sim.Span) {
	if s.Kind != sim.CalcSpan {
		return
	}
	if i := slices.Index(c.marks[s.Rank], c.layout.Index(s.Rank, s.Op)); i >= 0 {
		c.at[s.Rank][i] = float64(s.End) * float64(c.layout.Unit) / float64(dag.Second)
	}
}
