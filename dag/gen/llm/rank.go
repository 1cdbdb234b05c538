package llm

import (
	"slices"

	"github.com/tracedag/tracedag/dag"
	"github.com/tracedag/tracedag/dag/attr"
)

// writer generates a rank. Its calcs run in sequence, in order. So do its collectives; each also depends on the earlier
// messages and accesses to remote memory, so that ranks cannot deadlock: see docs/reference/generators/llm.md.
//
// Ops are indices; -1 is none.
type writer struct {
	*plan
	b         *dag.RankBuilder // nil: only count
	ops, deps int

	at      place
	units   []unit           // of a step
	comm    [numGroups]int32 // -1: the rank is alone
	calcs   int              // the last calc
	colls   [numGroups]int   // the last collective of each group
	coll    int              // the last collective
	loose   []int            // messages and accesses to remote memory since then
	stored  int              // the last store of gradients in remote memory
	updated int              // last op of the last step
	pending []int            // dependencies of the next calc
	ended   [2]int           // the last calc of the last pass, and of the one before
	step    int
	list    []int // dependencies of the current op
}

// Streams, numbered as in traces of Chakra's format.
const (
	computeStream = 0
	networkStream = 2
	poolStream    = 3
)

// write appends all ops.
func (w *writer) write() {
	for g := range w.comm {
		w.comm[g] = w.layout.comm(group(g), w.at)
		w.colls[g] = -1
	}
	w.calcs, w.coll, w.stored, w.updated, w.ended = -1, -1, -1, -1, [2]int{-1, -1}
	w.units = w.p.units(w.at[Pipeline])
	for w.step = range w.p.Steps {
		if w.b != nil {
			w.b.Step(int32(w.step + 1))
		}
		w.writeStep()
	}
}

func (w *writer) writeStep() {
	data := -1 // op whose result the unit uses
	fetched := w.fetch(&w.units[0], nil)
	for i := range w.units {
		u := &w.units[i]
		w.pending = append(w.pending, fetched...)
		if fetched = fetched[:0]; i+1 < len(w.units) {
			fetched = w.fetch(&w.units[i+1], fetched)
		}
		if u.opens {
			data = w.receive(u)
		}
		data = w.unit(u, data)
		if u.closes {
			w.ended = [2]int{w.calcs, w.ended[0]}
			w.send(u, data)
		}
		if u.backward {
			w.reduceGradients(u)
		}
	}
	w.optimize()
}

// add appends an op.
func (w *writer) add(op dag.Op) int {
	w.ops++
	w.deps += len(w.list)
	if w.b != nil {
		w.b.Add(op, w.list...)
	}
	w.list = w.list[:0]
	return w.ops - 1
}

// after makes the current op depend on others.
func (w *writer) after(ops ...int) {
	for _, op := range ops {
		if op >= 0 && !slices.Contains(w.list, op) {
			w.list = append(w.list, op)
		}
	}
}

// calc appends a calc that depends on the previous one and on its inputs.
func (w *writer) calc(name string, k work, data int) int {
	w.after(data)
	w.after(w.pending...)
	w.after(w.calcs)
	w.pending = w.pending[:0]
	return w.compute(name, k.flops, k.elements*w.p.DtypeBytes)
}

func (w *writer) compute(name string, flops, bytes int64) int {
	op := dag.Op{Kind: dag.Calc, Flops: flops, Bytes: bytes, Stream: computeStream, Name: name}
	if w.p.PeakFlops > 0 {
		op.Duration = max(dag.AtRate(flops, w.p.PeakFlops), dag.AtRate(bytes, w.p.MemoryBandwidth))
	}
	w.calcs = w.add(op)
	return w.calcs
}

// collective appends a collective that depends on the data. For a group of one rank it appends nothing and returns the
// data.
func (w *writer) collective(name string, kind dag.Subkind, g group, bytes int64, data int) int {
	if w.comm[g] < 0 {
		return data
	}
	w.after(data)
	if w.p.ConcurrentCollectives {
		for k, comm := range w.comm {
			if comm == w.comm[g] { // groups of all ranks have one communicator
				w.after(w.colls[k])
			}
		}
	} else {
		w.after(w.coll)
		w.after(w.loose...)
	}
	w.loose = w.loose[:0]
	w.coll = w.add(dag.Op{
		Kind: dag.Coll, Subkind: kind, Bytes: bytes, Comm: w.comm[g], Dims: w.layout.dims[g], Stream: networkStream,
		Name: name,
	})
	w.colls[g] = w.coll
	return w.coll
}

// receive appends the receive of the input of a pass, if another stage sends it. It is posted when the previous pass
// begins.
func (w *writer) receive(u *unit) int {
	p := w.p
	part := u.chunk*p.PP + w.at[Pipeline]
	from := part - 1
	name := "activations"
	if u.backward {
		from, name = part+1, "gradients"
	}
	if from < 0 || from >= p.virtualStages() {
		return -1
	}
	w.after(w.ended[1])
	return w.add(dag.Op{
		Kind: dag.Recv, Peer: w.stage(from), Tag: w.tag(u, part), Bytes: w.activations(1), Stream: networkStream,
		Name: name,
	})
}

// send appends the send of the result of a pass, if another stage needs it. The backward pass of the last part begins
// with the result of its forward pass, also without an output layer.
func (w *writer) send(u *unit, data int) {
	p := w.p
	to := u.chunk*p.PP + w.at[Pipeline] + 1
	name := "activations"
	if u.backward {
		to, name = to-2, "gradients"
	}
	if to < 0 {
		return
	}
	if to >= p.virtualStages() {
		w.pending = append(w.pending, data)
		return
	}
	w.after(data, w.calcs)
	w.loose = append(w.loose, w.add(dag.Op{
		Kind: dag.Send, Peer: w.stage(to), Tag: w.tag(u, to), Bytes: w.activations(1), Stream: networkStream,
		Name: name,
	}))
}

// stage returns the rank with a part of the model that this rank exchanges activations with.
func (w *writer) stage(part int) int32 {
	at := w.at
	at[Pipeline] = part % w.p.PP
	return w.layout.rank(at)
}

// tag returns the tag of a message. Tags of messages between the same ranks differ.
func (w *writer) tag(u *unit, to int) int64 {
	p := w.p
	tag := (int64(w.step)*int64(p.MicroBatches)+int64(u.microBatch))*int64(p.VirtualStages) + int64(to/p.PP)
	if u.backward {
		return 2*tag + 1
	}
	return 2 * tag
}

// activations returns the size of a rank's part of the given number of copies of a micro-batch between the matrices.
func (w *writer) activations(copies int64) int64 {
	return w.p.localTokens() * copies * w.p.Hidden * w.p.DtypeBytes
}

// tensor returns the size of the given number of copies of a whole micro-batch.
func (w *writer) tensor(copies int64) int64 {
	return w.p.MicroBatch * w.p.Seq * copies * w.p.Hidden * w.p.DtypeBytes
}

// fetch appends the ops that gather the parameters of a unit, of which a rank keeps only its part. They depend on the
// earlier calcs.
func (w *writer) fetch(u *unit, list []int) []int {
	after := max(w.calcs, w.updated)
	if w.p.Pool == PoolNone {
		if w.p.ZeRO < 3 {
			return list
		}
		return w.gatherParameters(u, after, list)
	}
	own := w.shards(w.weights(u))
	list = w.fetchPart(u, dataGroup, own.dense, w.pooled(false), after, list)
	if own.experts > 0 {
		list = w.fetchPart(u, w.expertGroup(), own.experts, w.pooled(true), after, list)
	}
	return list
}

// fetchPart appends the ops that gather parameters with a pool: those of the pool, or those divided among the ranks.
func (w *writer) fetchPart(u *unit, g group, weights int64, pooled bool, after int, list []int) []int {
	switch {
	case pooled:
		bytes, name := weights*w.p.DtypeBytes, w.name(u, parameters, forward)
		if w.p.PoolGather == GatherInSwitch {
			return append(list, w.access(name, dag.Load, bytes, w.members(g), after))
		}
		return append(list, w.collective(name, dag.Allgather, g, bytes, w.access(name, dag.Load, bytes, 1, after)))
	case w.p.ZeRO == 3:
		return w.gatherPart(u, g, weights, after, list)
	}
	return list
}

// members returns the number of ranks of a group.
func (w *writer) members(g group) int {
	if g == expertDataGroup {
		return w.p.DP / w.p.EP
	}
	return w.p.DP
}

// access appends an access to the pool, which gathers the parts of the given number of ranks. The pool has a place of
// its own: collectives do not wait for accesses, since an access never waits for another rank.
func (w *writer) access(name string, kind dag.Subkind, bytes int64, ranks int, after ...int) int {
	w.after(after...)
	return w.add(dag.Op{Kind: dag.Mem, Subkind: kind, Bytes: bytes, Stream: poolStream, Name: name,
		Attrs: "{" + string(attr.MemAccess{Gather: int64(ranks)}.Append(nil)) + "}"})
}

// gatherParameters appends the collectives that gather the parameters of a unit outside the pool.
func (w *writer) gatherParameters(u *unit, after int, list []int) []int {
	own := w.shards(w.weights(u))
	if !w.pooled(false) {
		list = w.gatherPart(u, dataGroup, own.dense, after, list)
	}
	if own.experts > 0 && !w.pooled(true) {
		list = w.gatherPart(u, w.expertGroup(), own.experts, after, list)
	}
	return list
}

func (w *writer) gatherPart(u *unit, g group, weights int64, after int, list []int) []int {
	name, bytes := w.name(u, parameters, forward), weights*w.p.DtypeBytes
	if w.p.Offload {
		after = w.remote(name, dag.Load, bytes, after)
	}
	return append(list, w.collective(name, dag.Allgather, g, bytes, after))
}

// remote appends an access to remote memory.
func (w *writer) remote(name string, kind dag.Subkind, bytes int64, after int) int {
	w.after(after)
	op := w.add(dag.Op{Kind: dag.Mem, Subkind: kind, Bytes: bytes, Stream: networkStream, Name: name})
	w.loose = append(w.loose, op)
	return op
}

// reduceGradients appends the reduction of the gradients of a unit's parameters, if they are complete.
func (w *writer) reduceGradients(u *unit) {
	whole := w.weights(u)
	own := w.shards(whole)
	w.reducePart(u, dataGroup, whole.dense, own.dense, w.pooled(false))
	if whole.experts > 0 {
		w.reducePart(u, w.expertGroup(), whole.experts, own.experts, w.pooled(true))
	}
}

func (w *writer) reducePart(u *unit, g group, whole, own int64, pooled bool) {
	if pooled {
		w.storeGradients(u, g, whole, own)
		return
	}
	if w.p.ZeRO < 2 && !u.final {
		return
	}
	name, kind := w.name(u, gradients, forward), dag.ReduceScatter
	if w.p.ZeRO == 0 {
		kind = dag.Allreduce
	}
	sum := w.collective(name, kind, g, whole*w.p.DtypeBytes, w.calcs)
	if w.p.Offload {
		w.after(w.stored)
		w.stored = w.remote(name, dag.Store, own*w.p.DtypeBytes, sum)
	}
}

// storeGradients appends the reduction of gradients into the pool.
func (w *writer) storeGradients(u *unit, g group, whole, own int64) {
	name, bytes := w.name(u, gradients, forward), own*w.p.DtypeBytes
	if w.p.PoolGather == GatherInSwitch {
		w.stored = w.access(name, dag.Store, bytes, w.members(g), w.calcs, w.stored)
		return
	}
	sum := w.collective(name, dag.ReduceScatter, g, whole*w.p.DtypeBytes, w.calcs)
	w.stored = w.access(name, dag.Store, bytes, 1, sum, w.stored)
}

// The optimizer is Adam (Kingma and Ba, ICLR 2015, algorithm 1): operations per parameter, and bytes read and written
// of its two moments and its value, four bytes each. It also reads the gradient and writes the parameter.
const (
	optimizerFlops  = 14
	optimizerStates = 3 * 4
)

// optimize appends the end of a step.
func (w *writer) optimize() {
	p := w.p
	var units []unit
	for chunk := range p.VirtualStages {
		units = append(units, p.part(chunk*p.PP+w.at[Pipeline])...)
	}
	if w.comm[tableGroup] >= 0 {
		table := w.slice.vocabulary() * p.Hidden
		w.after(w.colls[dataGroup])
		w.collective("table gradients", dag.Allreduce, tableGroup, w.shards(weights{dense: table}).dense*p.DtypeBytes,
			w.calcs)
	}
	own := int64(0)
	for i := range units {
		shards := w.shards(w.weights(&units[i]))
		own += w.share(shards, false)
	}
	bytes := (optimizerStates + p.DtypeBytes) * own // bytes read; as many are written
	if p.Offload {
		w.after(w.colls[tableGroup], w.stored)
		w.after(w.remote("optimizer", dag.Load, bytes, w.calcs))
	}
	if own > 0 || p.Pool == PoolNone {
		w.after(w.calcs, w.colls[dataGroup], w.colls[expertDataGroup], w.colls[tableGroup])
		w.updated = w.compute("optimizer", optimizerFlops*own, 2*bytes)
	}
	w.optimizePool(units)
	if p.Offload {
		w.updated = w.remote("optimizer", dag.Store, bytes, w.updated)
	}
	if p.ZeRO == 1 || p.ZeRO == 2 {
		for i := range units {
			w.gatherParameters(&units[i], w.updated, nil)
		}
		w.pending = append(w.pending, w.colls[dataGroup], w.colls[expertDataGroup])
	}
}

// share returns the parameters that are in the pool, or those that are not.
func (w *writer) share(own weights, pooled bool) (sum int64) {
	if w.pooled(false) == pooled {
		sum += own.dense
	}
	if w.pooled(true) == pooled {
		sum += own.experts
	}
	return sum
}

// optimizePool appends the optimizer of the parameters in the pool, unit by unit.
func (w *writer) optimizePool(units []unit) {
	if w.p.Pool == PoolNone {
		return
	}
	stored := w.stored
	for i := range units {
		own := w.share(w.shards(w.weights(&units[i])), true)
		if own == 0 {
			continue
		}
		bytes := (optimizerStates + w.p.DtypeBytes) * own // bytes read; as many are written
		load := w.access("optimizer", dag.Load, bytes, 1, stored, w.colls[tableGroup])
		w.after(load, w.calcs)
		calc := w.compute("optimizer", optimizerFlops*own, 2*bytes)
		w.updated = w.access("optimizer", dag.Store, bytes, 1, calc)
	}
	w.stored = max(w.stored, w.updated)
}

func (w *writer) name(u *unit, piece piece, phase phase) string {
	return w.names[u.kind][u.layer][piece][phase]
}
