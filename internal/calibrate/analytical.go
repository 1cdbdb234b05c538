package calibrate

import (
	"cmp"
	"context"

	"github.com/tracedag/tracedag/sim/analytical"
	"github.com/tracedag/tracedag/sim/fit"
)

// estimateAnalytical estimates the parameters of analytical on a network. The backend runs collectives by itself, so
// there is no replay to identify their algorithms.
func estimateAnalytical(_ context.Context, tables []*fit.Table, o Options) (*fit.File, replayer, error) {
	if err := checkPlaces(tables, "analytical"); err != nil {
		return nil, nil, err
	}
	congestion := cmp.Or(o.Congestion, "unaware")
	network, err := analytical.LoadNetwork(o.Network, congestion)
	if err != nil {
		return nil, nil, err
	}
	f, err := fit.Analytical(tables, fit.AnalyticalOptions{Options: fit.Options{Seed: o.Seed}, Network: o.Network,
		Congestion: congestion, Dims: len(network.Dims),
		Crossed: func(where string) (links, transfers []int, err error) {
			from, to, err := ends(where)
			if err != nil {
				return nil, nil, err
			}
			return network.Crossed(from, to)
		}})
	if err != nil {
		return nil, nil, err
	}
	collectives := 0
	for _, t := range tables {
		for _, m := range t.Rows {
			if _, is := subkind(m.Test); is {
				collectives++
			}
		}
	}
	if collectives > 0 {
		f.Remark("%d times of collectives are not used: the backend has algorithms of its own, which --system selects",
			collectives)
	}
	return f, nil, nil
}
