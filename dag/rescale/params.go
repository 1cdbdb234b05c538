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
		param.Bool(&o.FixedRounds, "fixed-rounds", "keep the number of rounds, even if it is that of the ranks"),
		param.Bool(&o.GrowingRounds, "growing-rounds",
			"numbers of rounds that are that of the ranks, or a part of it, grow with them"),
		param.OneOf(&o.Growth, "growth", "growth with the ranks N of the time in calls that make communicators, and "+
			"of calcs of the first or last rank alone: fixed, log, linear, nlogn (as N log2 N), square, or unknown "+
			"(refused if it matters)",
			Unknown, Fixed, Logarithmic, Linear, Linearithmic, Quadratic),
		param.Bool(&o.Likeliest, "likeliest",
			"take the likeliest of several rules that fit, and report it, instead of refusing the trace"),
	}
}
