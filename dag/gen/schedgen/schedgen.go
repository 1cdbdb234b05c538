// Package schedgen generates the schedules of Schedgen, the generator of LogGOPSim and of ATLAHS, op for op.
// docs/generators/schedgen.md defines them.
//
// Patterns and readers of MPI traces build them from the same parts. An [Emitter] appends to a rank of a trace; the
// functions [Dissemination], [BinomialBcast], [BinomialReduce], [LinearAlltoall] and [RecursiveDoubling] emit what one
// rank does in a [Call]:
//
//	e := schedgen.NewEmitter(rankBuilder)
//	e.Mark()
//	schedgen.BinomialBcast(e, schedgen.Call{Ranks: n, Rank: rank, Root: root, Bytes: bytes, Tag: tag})
//	end := e.Calc(0, 0)
//	for _, op := range e.Last(nil) { // the sends and receives that nothing waits for
//		e.Requires(end, op)
//	}
package schedgen
