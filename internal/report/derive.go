package report

import (
	"cmp"
	"encoding/json"
	"math/big"
	"slices"
	"strconv"
	"strings"
)

const (
	shownRanks = 256 // the largest number of ranks with a bar each
	worstRanks = 32  // above it: the ranks that finish last
	busiest    = 10  // ports or links listed
)

// derive returns the numbers that a page shows and that the result of a simulation lacks.
func derive(root value) map[string]any {
	all := make(map[string]any)
	if ranks := deriveRanks(root); ranks != nil {
		all["ranks"] = ranks
	}
	if links := deriveLinks(root); links != nil {
		all["busiest"] = links
	}
	if matrix := deriveJobMatrix(root); matrix != nil {
		all["job_matrix"] = matrix
	}
	deriveCurves(root, all)
	if dims := root.get("run", "topology", "dims").len(); dims > 0 {
		all["dimensions"] = dims
	}
	return all
}

// partsOf returns the names of the parts of a breakdown, in the order of figures.
func partsOf(total value) (names []string) {
	for _, part := range parts {
		if total.get(part.name).known {
			names = append(names, part.name)
		}
	}
	return names
}

// ratioOf returns a quotient as JSON, nil without one.
func ratioOf(part, whole *big.Int) any {
	if whole.Sign() == 0 {
		return nil
	}
	f, _ := new(big.Rat).SetFrac(part, whole).Float64()
	return json.Number(strconv.FormatFloat(f, 'g', -1, 64))
}

func deriveRanks(root value) map[string]any {
	finish := root.get("finish_ps").all()
	if len(finish) == 0 {
		return nil
	}
	times := make([]*big.Int, len(finish))
	order := make([]int, len(finish))
	sum := new(big.Int)
	for rank := range finish {
		times[rank], order[rank] = finish[rank].integer(), rank
		sum.Add(sum, times[rank])
	}
	slices.SortStableFunc(order, func(a, b int) int { return times[b].Cmp(times[a]) }) // the last first
	mean := new(big.Int).Div(sum, big.NewInt(int64(len(finish))))
	breakdown, total := root.get("breakdown"), root.get("breakdown_total")
	names := partsOf(total)
	describe := func(rank int) map[string]any {
		one := map[string]any{"rank": rank, "finish_ps": times[rank]}
		for _, name := range names {
			one[name] = breakdown.at(rank).get(name).integer()
		}
		return one
	}
	last := describe(order[0])
	ranks := map[string]any{
		"first": describe(slices.Index(times, slices.MinFunc(times, (*big.Int).Cmp))), "last": last,
		"mean_finish_ps":  mean,
		"last_after_mean": ratioOf(new(big.Int).Sub(times[order[0]], mean), mean),
	}
	if len(names) > 0 {
		whole := new(big.Int)
		for _, name := range names {
			whole.Add(whole, total.get(name).integer())
		}
		shares, ofLast := make(map[string]any), make(map[string]any)
		for _, name := range names {
			key := shareOf(name)
			shares[key] = ratioOf(total.get(name).integer(), whole)
			ofLast[key] = ratioOf(last[name].(*big.Int), times[order[0]])
		}
		ranks["shares"], last["shares"] = shares, ofLast
	}
	if len(finish) > shownRanks {
		var worst []any
		for _, rank := range order[:worstRanks] {
			worst = append(worst, describe(rank))
		}
		ranks["worst"] = worst
		quantiles := []any{percentilesOf("finish_ps", slices.Clone(times))}
		for _, name := range names {
			of := make([]*big.Int, len(finish))
			for rank := range of {
				of[rank] = breakdown.at(rank).get(name).integer()
			}
			quantiles = append(quantiles, percentilesOf(name, of))
		}
		ranks["percentiles"] = quantiles
	}
	return ranks
}

// percentilesOf returns percentiles of times, each the smallest time that at least the share of all does not exceed.
func percentilesOf(name string, times []*big.Int) map[string]any {
	slices.SortFunc(times, (*big.Int).Cmp)
	at := func(percent int) *big.Int { return times[max(0, (len(times)*percent+99)/100-1)] }
	return map[string]any{"part": name, "min_ps": times[0], "p25_ps": at(25), "p50_ps": at(50), "p75_ps": at(75),
		"max_ps": times[len(times)-1]}
}

// linksOf returns the table of ports or links of a result, and the column of their utilization.
func linksOf(root value) (table value, use int) {
	for _, table := range []value{root.get("ports"), root.get("links"), root.get("backend_stats", "links")} {
		for i, column := range table.get("columns").all() {
			if table.get("rows").len() > 0 && unitOf(column.text()) == percent {
				return table, i
			}
		}
	}
	return value{}, -1
}

func deriveLinks(root value) map[string]any {
	table, use := linksOf(root)
	if use < 0 {
		return nil
	}
	rows := table.get("rows").all()
	slices.SortStableFunc(rows, func(a, b value) int { return cmp.Compare(b.at(use).number(), a.at(use).number()) })
	var busy []any
	for _, row := range rows[:min(len(rows), busiest)] {
		busy = append(busy, row.of)
	}
	used := 0
	for _, row := range rows {
		if row.at(use).number() > 0 {
			used++
		}
	}
	links := map[string]any{"columns": table.get("columns").of, "rows": busy}
	if !table.get("shown").known { // all of them
		links["all"], links["used"] = len(rows), used
		if all := root.get("network", "links").number(); all > 0 && table.pointer == "/ports" {
			links["all"] = int64(2 * all) // the table lists ports with traffic
		}
	}
	return links
}

// column returns the index of the first column of a table whose name begins so, -1 without one.
func column(table value, prefix string) int {
	for i, c := range table.get("columns").all() {
		if strings.HasPrefix(c.text(), prefix) {
			return i
		}
	}
	return -1
}

// deriveCurves adds the distributions of flow completion times and slowdowns to a result that lists its flows but lacks
// them.
func deriveCurves(root value, all map[string]any) {
	if root.get("fct_window").known {
		return // not all flows count
	}
	flows := root.get("flows")
	fct, delivered, ideal := column(flows, "fct_ps"), column(flows, "delivered_ps"), column(flows, "ideal_ps")
	var times, slowdowns []float64
	for _, row := range flows.get("rows").all() {
		if v := row.at(fct); v.isNumber() {
			times = append(times, v.number())
		}
		if took, least := row.at(delivered), row.at(ideal); took.isNumber() && least.number() > 0 {
			slowdowns = append(slowdowns, took.number()/least.number())
		}
	}
	for name, numbers := range map[string][]float64{"fct_cdf": times, "slowdown_cdf": slowdowns} {
		if len(numbers) < 2 || root.get(name).known {
			continue
		}
		slices.Sort(numbers)
		format := func(v float64) string { return strconv.FormatFloat(v, 'f', -1, 64) }
		if name == "slowdown_cdf" {
			format = func(v float64) string { return strconv.FormatFloat(v, 'g', 6, 64) }
		}
		all[name] = NewCurve(numbers, CurvePoints, format)
	}
}
