package format

import "github.com/tracedag/tracedag/dag"

// Losses collects kinds of loss.
type Losses []Loss

// Add adds a kind of loss if there is any of it.
func (l *Losses) Add(what string, count int64) {
	if count > 0 {
		*l = append(*l, Loss{What: what, Count: count})
	}
}

// What several formats cannot express.
const (
	LossNodes      = "the nodes that their ranks run on"
	LossHosts      = "that they run on the host"
	LossDims       = "network dimensions of collectives"
	LossPriorities = "priorities"
)

// AddFields adds what formats that are lists of single events have no columns for: durations, received sizes, operations,
// communicators, streams, network interfaces, jobs and measured times.
func (l *Losses) AddFields(t *dag.Trace) {
	var durations, received, flops, comms, streams, nics, jobs, measured int64
	for i := range t.Ranks {
		r := &t.Ranks[i]
		durations += Nonzero(r.Duration)
		received += Nonzero(r.RecvBytes)
		flops += Nonzero(r.Flops)
		comms += NonzeroNarrow(&r.Comm)
		streams += NonzeroNarrow(&r.Stream)
		nics += NonzeroNarrow(&r.NIC)
		jobs += NonzeroNarrow(&r.Job)
		measured += Measured(r)
	}
	l.Add("durations", durations)
	l.Add("received sizes", received)
	l.Add("flops", flops)
	l.Add("communicators", comms)
	l.Add("streams", streams)
	l.Add("network interfaces", nics)
	l.Add("jobs", jobs)
	l.Add("measured times", measured)
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

// AddHints adds what only simulators of accelerators look at: which ops run on the host, and the dimensions and
// priorities of collectives.
func (l *Losses) AddHints(t *dag.Trace) {
	var hosts, dims, priorities int64
	for i := range t.Ranks {
		r := &t.Ranks[i]
		hosts += NonzeroNarrow(&r.Host)
		dims += NonzeroNarrow(&r.Dims)
		priorities += NonzeroNarrow(&r.Priority)
	}
	l.Add(LossHosts, hosts)
	l.Add(LossDims, dims)
	l.Add(LossPriorities, priorities)
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

// Nonzero returns how many values of a column are not zero.
func Nonzero[T ~int64](column dag.Column[T]) int64 {
	n := int64(0)
	for _, v := range column {
		if v != 0 {
			n++
		}
	}
	return n
}

// NonzeroNarrow returns how many values of a column are not zero.
func NonzeroNarrow(column *dag.Narrow) int64 {
	n := int64(0)
	for i := range column.Len() {
		if column.At(i) != 0 {
			n++
		}
	}
	return n
}

// Texts returns how many strings of a column are not empty.
func Texts(column *dag.Text) int64 {
	n := int64(0)
	for i := range column.Len() {
		if column.At(i) != "" {
			n++
		}
	}
	return n
}
