package llm

import "fmt"

// plan is the data that all ranks of a run share.
type plan struct {
	p      *Params
	slice  slice
	costs  costs
	layout *layout
	names  [numUnitKinds][]unitNames
}

// unitKind is the kind of a part of the model.
type unitKind uint8

const (
	embedding unitKind = iota
	layer
	output
	numUnitKinds
)

// unit is the forward or backward pass of a micro-batch through the embedding, a layer or the output layer.
type unit struct {
	pass
	kind          unitKind
	layer         int
	opens, closes bool // the first or the last unit of its pass
	final         bool // the last backward of its part of the model in a step: its gradients are complete
}

// piece is a calc of a unit, or a kind of collective.
type piece uint8

const (
	qkv piece = iota
	attention
	projection
	mlp
	router
	weightsOfAttention
	whole // of an embedding or output layer
	tensorParallel
	expertParallel
	parameters
	gradients
	numPieces
)

var pieceNames = [numPieces]string{
	"qkv", "attention", "projection", "mlp", "router", "attention", "", "tensor parallel", "expert parallel",
	"parameters", "gradients",
}

// phase is the result that a calc computes of its piece.
type phase uint8

const (
	forward phase = iota
	recompute
	inputGradients
	weightGradients
	bothGradients
	numPhases
)

var phaseNames = [numPhases]string{" forward", " recompute", " input gradients", " weight gradients", " gradients"}

// unitNames are the names of the ops of a unit; names of collectives lack the phase.
type unitNames [numPieces][numPhases]string

func newPlan(p *Params, net *network) *plan {
	s := slice{&p.Model, int64(p.TP), int64(p.EP)}
	pl := &plan{p: p, slice: s, costs: p.costs(&s), layout: newLayout(p, net)}
	pl.names[embedding] = []unitNames{namesOf("embedding")}
	pl.names[output] = []unitNames{namesOf("output")}
	for i := range p.Layers {
		pl.names[layer] = append(pl.names[layer], namesOf(fmt.Sprintf("layer %d", i)))
	}
	return pl
}

func namesOf(unit string) (names unitNames) {
	for piece := range names {
		base := unit
		if pieceNames[piece] != "" {
			base += " " + pieceNames[piece]
		}
		for phase := range names[piece] {
			names[piece][phase] = base
			if piece < int(tensorParallel) {
				names[piece][phase] += phaseNames[phase]
			}
		}
	}
	return names
}

// units returns the units of a stage in a step, in order.
func (p *Params) units(stage int) []unit {
	var list []unit
	backward := make([]int, p.VirtualStages) // passes so far, of each part
	for _, pass := range p.passes(stage) {
		part := p.part(pass.chunk*p.PP + stage)
		first := len(list)
		for i := range part {
			u := part[i]
			if pass.backward {
				u = part[len(part)-1-i]
			}
			u.pass = pass
			list = append(list, u)
		}
		if pass.backward {
			backward[pass.chunk]++
		}
		for i := first; i < len(list); i++ {
			list[i].final = backward[pass.chunk] == p.MicroBatches
		}
		list[first].opens, list[len(list)-1].closes = true, true
	}
	return list
}

// part returns the units of a part of the model.
func (p *Params) part(virtualStage int) (part []unit) {
	if virtualStage == 0 && p.Vocab > 0 {
		part = append(part, unit{kind: embedding})
	}
	first, last := p.layers(virtualStage)
	for i := first; i < last; i++ {
		part = append(part, unit{kind: layer, layer: i})
	}
	if virtualStage == p.virtualStages()-1 && p.Vocab > 0 {
		part = append(part, unit{kind: output})
	}
	return part
}

// weights returns a rank's parameters of a unit.
func (pl *plan) weights(u *unit) weights {
	switch u.kind {
	case embedding:
		return weights{dense: pl.slice.embeddingWeights()}
	case output:
		return weights{dense: pl.slice.outputWeights(pl.p.PP == 1)}
	}
	w := pl.slice.layerWeights(u.layer)
	if pl.p.EP == 1 && pl.p.Pool != PoolExperts { // experts are data parallel in the same group as the rest
		return weights{dense: w.dense + w.experts}
	}
	return w
}

// shards returns the parts of parameters whose optimizer states the rank keeps.
func (pl *plan) shards(w weights) weights {
	p := pl.p
	if p.ZeRO > 0 || p.Pool == PoolAll {
		w.dense = divideUp(w.dense, p.DP)
	}
	if p.ZeRO > 0 || p.Pool != PoolNone {
		w.experts = divideUp(w.experts, p.DP/p.EP)
	}
	return w
}

// expertGroup returns the group of ranks with the same experts.
func (pl *plan) expertGroup() group {
	if pl.p.EP == 1 {
		return dataGroup
	}
	return expertDataGroup
}

// pooled reports whether the parameters of a group of ranks live in the pool: the experts or the others.
func (pl *plan) pooled(experts bool) bool {
	return pl.p.Pool == PoolAll || pl.p.Pool == PoolExperts && experts
}

func divideUp(n int64, by int) int64 {
	return (n + int64(by) - 1) / int64(by)
}
