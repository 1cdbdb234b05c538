package rescale

import "github.com/tracedag/tracedag/param"

// Params describes the options.
func (o *Options) Params() param.Set {
	return param.Set{
		param.Count(&o.Ranks, "rescale", "number of ranks of the new trace", maxRanks),
		param.OneOf(&o.Scaling, "scaling",
			"weak: each rank keeps its share of the data; strong: the whole keeps its size", Weak, Strong),
		param.Dims(&o.Grid, "new-grid", "ranks along each dimension of the new grid, the fastest first; empty: chosen"),
		param.Dims(&o.OldGrid, "old-grid", "ranks along each dimension of the recorded grid; empty: found"),
		param.Bool(&o.FixedRounds, "fixed-rounds", "keep the number of rounds that neighbors on a ring exchange "+
			"messages"),
	}
}
