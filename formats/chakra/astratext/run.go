// This file runs through the layers of a workload.

package astratext

import "github.com/tracedag/tracedag/formats/chakra"

// run is the nodes of rank 0, with ids from 0.
type run struct {
	*workload
	nodes []chakra.Node
	done  []done // latest nodes of each layer
}

// done are the latest nodes of a layer, or nothing.
type done struct {
	forward, forwardComm, input, inputComm, weight, weightComm int
}

const nothing = -1

// run runs the given number of passes over the layers.
func (w *workload) run(passes int) []chakra.Node {
	r := &run{workload: w, done: make([]done, len(w.layers))}
	for i := range r.done {
		r.done[i] = done{nothing, nothing, nothing, nothing, nothing, nothing}
	}
	for range passes {
		kinds[w.kind](r)
	}
	return r.nodes
}

// add adds a node that depends on the parents, some of which may be nothing, and returns it.
func (r *run) add(n chakra.Node, parents ...int) int {
	id := len(r.nodes)
	n.ID = uint64(id)
	for _, p := range parents {
		if p != nothing {
			n.DataDeps = append(n.DataDeps, uint64(p))
		}
	}
	r.nodes = append(r.nodes, n)
	return id
}

// micro runs collectives without dependencies.
func (r *run) micro() {
	for i := range r.layers {
		r.add(r.layers[i].weight.collective)
	}
}

// data runs data parallelism: the NPUs reduce the weight gradients.
func (r *run) data() {
	latest := nothing
	for i := range r.layers {
		l, d := &r.layers[i], &r.done[i]
		latest = r.add(l.forward.compute, latest, d.weightComm)
	}
	for i := len(r.layers) - 1; i >= 0; i-- {
		l, d := &r.layers[i], &r.done[i]
		d.weight = r.add(l.weight.compute, latest)
		d.weightComm = r.add(l.weight.collective, d.weight)
		if i > 0 {
			latest = r.add(l.input.compute, d.weight)
		}
	}
}

// model runs model parallelism: the NPUs exchange activations and their gradients, and in the hybrid kinds reduce
// the weight gradients, too.
func (r *run) model() {
	hybrid := r.kind != "MODEL"
	latest := nothing
	for i := range r.layers {
		l, d := &r.layers[i], &r.done[i]
		if hybrid {
			d.forward = r.add(l.forward.compute, d.weightComm, latest)
		} else {
			d.forward = r.add(l.forward.compute, latest, d.weight)
		}
		latest = r.add(l.forward.collective, d.forward)
	}
	parents := []int{latest}
	for i := len(r.layers) - 1; i >= 0; i-- {
		l, d := &r.layers[i], &r.done[i]
		d.input = r.add(l.input.compute, parents...)
		if int64(len(r.layers)-i) != r.count {
			d.inputComm = r.add(l.input.collective, d.input)
		}
		d.weight = r.add(l.weight.compute, d.input)
		if hybrid {
			d.weightComm = r.add(l.weight.collective, d.weight)
		}
		parents = []int{d.weight, d.inputComm}
	}
}

// dlrm runs the hybrid of recommendation models: the embeddings, the first layer, are distributed over the NPUs;
// the other layers are replicated.
func (r *run) dlrm() {
	latest := nothing
	for i := range r.layers {
		l, d := &r.layers[i], &r.done[i]
		before := d.weightComm
		if before == nothing {
			before = d.weight
		}
		embeddings := nothing
		if i == r.lastBottom {
			embeddings = r.done[0].forwardComm
		}
		latest = r.add(l.forward.compute, before, latest, embeddings)
		if l.forward.comm == allToAll {
			d.forwardComm = r.add(l.forward.collective, latest)
		}
	}
	for i := len(r.layers) - 1; i >= 0; i-- {
		l, d := &r.layers[i], &r.done[i]
		d.weight = r.add(l.weight.compute, latest, d.inputComm)
		if l.weight.comm != none {
			d.weightComm = r.add(l.weight.collective, d.weight)
		}
		if i > 0 {
			latest = r.add(l.input.compute, d.weight)
		}
		if i == r.lastBottom+1 {
			r.done[0].inputComm = r.add(r.layers[0].input.collective, latest)
		}
	}
}
