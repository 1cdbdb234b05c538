package ideal

import "github.com/tracedag/tracedag/dag"

// recorded is a source whose ops all take their recorded durations, as calcs do.
type recorded struct{ dag.Source }

func (r recorded) Header() (*dag.Header, error) {
	h, err := r.Source.Header()
	if err != nil {
		return nil, err
	}
	calcs := *h
	calcs.Kinds = []dag.Kind{dag.Calc}
	return &calcs, nil
}

func (r recorded) NewReader(columns dag.Columns) dag.Reader {
	read := r.Source.NewReader(columns)
	return func(b dag.Batch) ([]*dag.Rank, error) {
		ranks, err := read(b)
		if err != nil {
			return nil, err
		}
		calcs := make([]*dag.Rank, len(ranks))
		for i, r := range ranks {
			c := *r
			c.Kind, c.Subkind = make([]dag.Kind, r.Len()), nil
			calcs[i] = &c
		}
		return calcs, nil
	}
}
