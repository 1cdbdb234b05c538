package format

import (
	"slices"

	"github.com/tracedag/tracedag/dag"
)

// Losses collects kinds of loss.
type Losses []Loss

// Add adds a kind of loss if count is not 0.
func (l *Losses) Add(what string, count int64) {
	if count > 0 {
		*l = append(*l, Loss{Kind: what, Count: count})
	}
}

// LossNodes is the loss of formats that do not keep the nodes of ranks.
const LossNodes = "the nodes that their ranks run on"

// eventFields are the fields without a column in formats that list single events, in the order of their losses.
var eventFields = [...]dag.FieldID{
	dag.FieldDuration, dag.FieldRecvBytes, dag.FieldFlops, dag.FieldComm, dag.FieldStream, dag.FieldNIC, dag.FieldJob,
	dag.FieldMeasuredStart,
}

// AddFields adds the fields without a column in formats that list single events: durations, received sizes,
// operations, communicators, streams, NICs, jobs and measured times.
func (l *Losses) AddFields(t *dag.Trace) {
	for _, id := range eventFields {
		l.AddField(t, id)
	}
}

// AddField adds a field without a column in the format.
func (l *Losses) AddField(t *dag.Trace, id dag.FieldID) {
	count := int64(0)
	for i := range t.Ranks {
		if r := t.Ranks[i]; id == dag.FieldMeasuredStart {
			count += Measured(r)
		} else {
			count += dag.Fields[id].Of(r).Present()
		}
	}
	l.Add(dag.Fields[id].Lost, count)
}

// AddNodes adds the nodes of the trace's ranks if they are [Placed].
func (l *Losses) AddNodes(t *dag.Trace) {
	if Placed(t.Nodes) {
		l.Add(LossNodes, t.Ops())
	}
}

// Placed reports whether nodes differs from the default, rank i on node i.
func Placed(nodes []int32) bool {
	for rank, node := range nodes {
		if int(node) != rank {
			return true
		}
	}
	return false
}

// RareFields are the fields that few formats have: ops that run on the host, dimensions and priorities of
// collectives, and every field of the model without a loss text of its own.
var RareFields = func() (hints []dag.FieldID) {
	for id, f := range dag.Fields {
		if f.Lost != "" && !slices.Contains(eventFields[:], dag.FieldID(id)) {
			hints = append(hints, dag.FieldID(id))
		}
	}
	return hints
}()

// AddRareFields adds the RareFields, except those that the format keeps or reports itself.
func (l *Losses) AddRareFields(t *dag.Trace, except ...dag.FieldID) {
	for _, id := range RareFields {
		if !slices.Contains(except, id) {
			l.AddField(t, id)
		}
	}
}

// Measured returns the number of ops of a rank with measured times.
func Measured(r *dag.Rank) int64 {
	n := int64(0)
	for op := range max(len(r.MeasuredStart), len(r.MeasuredEnd)) {
		if start, end := r.Measured(op); start != dag.Unmeasured || end != dag.Unmeasured {
			n++
		}
	}
	return n
}
