package format

import (
	"slices"

	"github.com/tracedag/tracedag/dag"
)

// Losses collects kinds of loss.
type Losses []Loss

// Add adds a kind of loss if there is any of it.
func (l *Losses) Add(what string, count int64) {
	if count > 0 {
		*l = append(*l, Loss{What: what, Count: count})
	}
}

// LossNodes is the loss of formats without the nodes of ranks.
const LossNodes = "the nodes that their ranks run on"

// eventFields are the fields that formats which list single events have no columns for, in the order of their losses.
var eventFields = [...]dag.FieldID{
	dag.FieldDuration, dag.FieldRecvBytes, dag.FieldFlops, dag.FieldComm, dag.FieldStream, dag.FieldNIC, dag.FieldJob,
	dag.FieldMeasuredStart,
}

// AddFields adds the fields that formats which list single events have no columns for: durations, received sizes,
// operations, communicators, streams, network interfaces, jobs and measured times.
func (l *Losses) AddFields(t *dag.Trace) {
	for _, id := range eventFields {
		l.AddField(t, id)
	}
}

// AddField adds a field that the format has no column for.
func (l *Losses) AddField(t *dag.Trace, id dag.FieldID) {
	count := int64(0)
	for i := range t.Ranks {
		if r := &t.Ranks[i]; id == dag.FieldMeasuredStart {
			count += Measured(r)
		} else {
			count += dag.Fields[id].Of(r).Present()
		}
	}
	l.Add(dag.Fields[id].Lost, count)
}

// AddNodes adds the nodes that the ranks of a trace run on, where they are Placed.
func (l *Losses) AddNodes(t *dag.Trace) {
	if Placed(t.Nodes) {
		l.Add(LossNodes, t.Ops())
	}
}

// Placed reports whether the nodes of ranks need saying: whether not every rank i runs on node i.
func Placed(nodes []int32) bool {
	for rank, node := range nodes {
		if int(node) != rank {
			return true
		}
	}
	return false
}

// Hints are the fields that few formats have: which ops run on the host, dimensions and priorities of collectives, and
// every field of the model that no list of losses names.
var Hints = func() (hints []dag.FieldID) {
	for id, f := range dag.Fields {
		if f.Lost != "" && !slices.Contains(eventFields[:], dag.FieldID(id)) {
			hints = append(hints, dag.FieldID(id))
		}
	}
	return hints
}()

// AddHints adds the Hints, except those that the format holds or reports itself.
func (l *Losses) AddHints(t *dag.Trace, except ...dag.FieldID) {
	for _, id := range Hints {
		if !slices.Contains(except, id) {
			l.AddField(t, id)
		}
	}
}

// Measured returns how many ops of a rank have measured times.
func Measured(r *dag.Rank) int64 {
	n := int64(0)
	for op := range max(len(r.MeasuredStart), len(r.MeasuredEnd)) {
		if start, end := r.Measured(op); start != dag.Unmeasured || end != dag.Unmeasured {
			n++
		}
	}
	return n
}
