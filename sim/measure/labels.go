package measure

import (
	"cmp"
	"errors"
	"fmt"

	"github.com/tracedag/tracedag/dag"
	"github.com/tracedag/tracedag/dag/attr"
	"github.com/tracedag/tracedag/sim"
)

// Labels are the jobs, classes and names of the sends of a trace.
type Labels struct {
	jobs  []string // names by number; nil: the trace is a single job
	ranks []rankLabels
}

// rankLabels are the labels of the sends of a rank, by op.
type rankLabels struct {
	job         dag.Narrow
	class, name dag.Text // empty unless texts are requested
}

// labelSource is a source that records the labels of the ops read.
type labelSource struct {
	dag.Source
	labels *Labels
	texts  bool // classes and names too
}

// NewLabels returns the labels of a trace and the source that fills them as the trace is compiled. texts selects
// classes and names too.
func NewLabels(s dag.Source, h *dag.Header, texts bool) (*Labels, dag.Source) {
	l := &Labels{jobs: h.Jobs, ranks: make([]rankLabels, h.Ranks)}
	return l, &labelSource{s, l, texts}
}

func (s *labelSource) NewReader(dag.Columns) dag.Reader {
	read := s.Source.NewReader(dag.All)
	return func(b dag.Batch) ([]*dag.Rank, error) {
		ranks, err := read(b)
		if err != nil {
			return nil, err
		}
		for i := range min(len(ranks), b.Last-b.First) {
			rank := b.First + i
			if err := s.labels.ranks[rank].record(ranks[i], len(s.labels.jobs), s.texts); err != nil {
				return nil, fmt.Errorf("rank %d %w", rank, err)
			}
		}
		return ranks, nil
	}
}

// record records the labels of the sends of a rank.
func (l *rankLabels) record(r *dag.Rank, jobs int, texts bool) error {
	*l = rankLabels{}
	for op, kind := range r.Kind {
		if kind != dag.Send {
			continue
		}
		job := r.Job.At(op)
		if job < 0 || int(job) >= max(1, jobs) {
			return fmt.Errorf("op %d belongs to job %d, expected 0..%d", op, job, max(1, jobs)-1)
		}
		l.job.Set(op, job)
		if !texts {
			continue
		}
		fits := l.name.AppendFrom(op, &r.Name, op)
		if op < r.Attrs.Len() {
			fits = fits && l.class.Append(op, attr.FlowClass(r.Attrs.At(op)))
		}
		if !fits {
			return errors.New("has more than 4 GiB of names")
		}
	}
	return nil
}

// Of returns the labels of a message's send. The job is -1 if the trace is a single job.
func (l *Labels) Of(p *sim.Program, message uint32) (job int32, class, name string) {
	op := p.Index(message)
	r := &l.ranks[p.Ops[message].Rank]
	if job = r.job.At(op); l.jobs == nil {
		job = -1
	}
	return job, r.class.At(op), r.name.At(op)
}

// JobName returns the name of a job, or #N for a job N without a name.
func (l *Labels) JobName(job int32) string {
	return cmp.Or(l.jobs[job], fmt.Sprintf("#%d", job))
}

// LabelColumns are the columns that [Labels.Append] fills.
var LabelColumns = []string{"job", "class", "name"}

// Append appends the labels of a message to the row of a table; none if l is nil.
func (l *Labels) Append(t *sim.Table, p *sim.Program, message uint32) {
	if l == nil {
		return
	}
	job, class, name := l.Of(p, message)
	if job >= 0 {
		t.Text(l.JobName(job))
	} else {
		t.Null()
	}
	t.TextOrNull(class)
	t.TextOrNull(name)
}
