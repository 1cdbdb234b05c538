package lower

import (
	"fmt"
	"slices"

	"github.com/tracedag/tracedag/dag"
	"github.com/tracedag/tracedag/dag/lower/collective"
	"github.com/tracedag/tracedag/dag/lower/storage"
	"github.com/tracedag/tracedag/internal/par"
	"github.com/tracedag/tracedag/memory"
)

// Lacks describes the high-level ops that a format or a backend does not have. The zero value lacks none.
type Lacks struct {
	Collectives collective.Selection
	Memory      bool // memory accesses
	Storage     bool // storage accesses
}

// Everything returns the description of a target with sends, receives and calcs only.
func Everything() Lacks {
	every := func(dag.Subkind) bool { return true }
	return Lacks{Collectives: collective.Selection{Kinds: every}, Memory: true, Storage: true}
}

// prepareNeeded lowers the memory and storage accesses that the target lacks, and returns what it lacks. Storage that
// another rule names is lowered by that rule.
func (p *Passes) prepareNeeded(s dag.Source) (dag.Source, Lacks, error) {
	if p.Lacks == nil {
		return s, Lacks{}, nil
	}
	lacks, err := p.Lacks(s)
	if err != nil {
		return nil, lacks, err
	}
	h, err := s.Header()
	if err != nil {
		return nil, lacks, err
	}
	lowersStorage := lacks.Storage && p.Storage == nil && slices.Contains(h.Kinds, dag.IO)
	lowersMemory := lacks.Memory && slices.Contains(h.Kinds, dag.Mem)
	if !lowersStorage && !lowersMemory {
		return s, lacks, nil
	}
	t, err := memory.ReadTrace(p.Context, s)
	if err != nil {
		return nil, lacks, err
	}
	if lowersMemory {
		if t, err = p.lowerMemory(t); err != nil {
			return nil, lacks, err
		}
	}
	if accesses := count(t, dag.IO); lowersStorage && accesses > 0 {
		name := storage.Names()[0]
		choice, err := storage.ParseChoice(name)
		if err != nil {
			return nil, lacks, err
		}
		if t, _, err = storage.Lower(p.Context, t, choice); err != nil {
			return nil, lacks, err
		}
		p.note("--lower needed: %d storage accesses lowered to messages of %s", accesses, name)
	}
	return dag.FromTrace(t), lacks, nil
}

// count returns the number of ops of a kind.
func count(t *dag.Trace, kind dag.Kind) (n int64) {
	for rank := range t.Ranks {
		for _, k := range t.Ranks[rank].Kind {
			if k == kind {
				n++
			}
		}
	}
	return n
}

// lowerMemory returns the trace with calcs in place of memory accesses. A calc takes the duration of the access, or if
// that is 0, its bytes at the memory bandwidth of the roofline, if there is one.
func (p *Passes) lowerMemory(t *dag.Trace) (*dag.Trace, error) {
	out := *t
	out.Ranks = dag.NewRanks(len(t.Ranks))
	accesses, untimed := int64(0), int64(0)
	for rank := range t.Ranks {
		if err := par.Interrupted(p.Context); err != nil {
			return nil, fmt.Errorf("lowering memory accesses: %w", err)
		}
		r := t.Ranks[rank]
		copied := false
		for i, kind := range t.Ranks[rank].Kind {
			if kind != dag.Mem {
				continue
			}
			if !copied {
				copied = true
				r = r.Keep()
				r.Kind = append([]dag.Kind(nil), r.Kind...)
				r.Subkind = append(dag.Column[dag.Subkind](nil), r.Subkind...)
				r.Duration = append(dag.Column[dag.Time](nil), r.Duration...)
			}
			accesses++
			r.Kind[i] = dag.Calc
			r.Subkind.Set(i, dag.NoSubkind)
			if r.Duration.At(i) != 0 || r.Bytes.At(i) <= 0 {
				continue
			}
			if p.Machine == nil {
				untimed++
				continue
			}
			r.Duration.Set(i, dag.AtRate(r.Bytes.At(i), p.Machine.Bandwidth))
		}
		out.Ranks[rank] = r
	}
	if accesses == 0 {
		return t, nil
	}
	p.note("--lower needed: %d memory accesses lowered to calcs", accesses)
	if untimed > 0 {
		p.warn("%d memory accesses have no duration and take no time as calcs: --lower "+
			"roofline:peak-flops=RATE,mem-bw=RATE gives their bytes a duration", untimed)
	}
	return &out, nil
}

// lowerNeeded lowers the collectives that the target lacks.
func (p *Passes) lowerNeeded(s dag.Source, lacks Lacks) (dag.Source, error) {
	lowered, counts, err := collective.LowerNeeded(p.Context, s, p.Choice, lacks.Collectives)
	if err != nil {
		return nil, err
	}
	for kind, n := range counts.Lowered {
		if n > 0 {
			p.note("--lower needed: %d %v ops lowered to messages", n, dag.Subkind(kind))
		}
	}
	return lowered, nil
}

func (p *Passes) note(format string, args ...any) {
	if p.Note != nil {
		p.Note(format, args...)
	}
}
