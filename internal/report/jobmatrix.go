package report

import (
	"math/big"
	"slices"
)

// matrixJobs is the largest number of jobs with a matrix.
const matrixJobs = 256

// jobRows returns the rows of the matrix of bytes of each job, from the first to the one after the last; nil
// if a row has ranks of several jobs.
func jobRows(root value) (rows [][2]int) {
	matrix, jobs := root.get("matrix"), root.get("jobs").all()
	all, ranks := matrix.get("bytes").len(), root.get("finish_ps").len()
	edge := int(max(1, min(matrix.get("ranks_per_row").number(), maxExact*maxExact)))
	if len(jobs) < 2 || len(jobs) > matrixJobs {
		return nil
	}
	owned := make([]bool, all)
	for _, job := range jobs {
		first, count := job.get("first_rank"), job.get("ranks")
		from, n := int(min(first.number(), 1<<40)), int(min(count.number(), 1<<40))
		end := from + n
		if !first.isNumber() || from < 0 || n < 1 || end > ranks || from%edge != 0 || end%edge != 0 && end != ranks {
			return nil
		}
		one := [2]int{from / edge, (end + edge - 1) / edge}
		if one[1] > all || slices.Contains(owned[one[0]:one[1]], true) {
			return nil
		}
		for i := one[0]; i < one[1]; i++ {
			owned[i] = true
		}
		rows = append(rows, one)
	}
	return rows
}

// deriveJobMatrix returns the bytes from job to job, or nil if the matrix of ranks does not have them.
func deriveJobMatrix(root value) map[string]any {
	rows := jobRows(root)
	if rows == nil {
		return nil
	}
	bytes := root.get("matrix", "bytes")
	type pair struct {
		Src   int      `json:"src"`
		Dst   int      `json:"dst"`
		Bytes *big.Int `json:"bytes"`
	}
	matrix, pairs := make([][]*big.Int, len(rows)), []pair{}
	total, between := new(big.Int), new(big.Int)
	for src, from := range rows {
		for dst, to := range rows {
			sum := new(big.Int)
			for row := from[0]; row < from[1]; row++ {
				for column := to[0]; column < to[1]; column++ {
					sum.Add(sum, bytes.at(row).at(column).integer())
				}
			}
			matrix[src] = append(matrix[src], sum)
			if sum.Sign() > 0 {
				pairs = append(pairs, pair{src, dst, sum})
			}
			if total.Add(total, sum); src != dst {
				between.Add(between, sum)
			}
		}
	}
	slices.SortStableFunc(pairs, func(a, b pair) int { return b.Bytes.Cmp(a.Bytes) })
	return map[string]any{"bytes": matrix, "total_bytes": total, "between_bytes": between,
		"largest": pairs[:min(len(pairs), busiest)]}
}

// jobTraffic writes the bytes from job to job.
func (p *page) jobTraffic() {
	matrix, jobs := p.root.get("report", "job_matrix"), p.root.get("jobs")
	if matrix.get("bytes").len() == 0 || jobs.len() != matrix.get("bytes").len() {
		return
	}
	says := new(sentence).add("The jobs send ").show(matrix.get("total_bytes"), size).add(", of which ").
		show(matrix.get("between_bytes"), size).add(" to other jobs.")
	values := &table{caption: "Pairs of jobs with most bytes", headings: []string{"from", "to", "bytes"}}
	for _, v := range matrix.get("largest").all() {
		name := func(end string) string { return show(jobs.at(int(v.get(end).number())).get("name"), plain) }
		values.rows = append(values.rows, []string{name("src"), name("dst"), show(v.get("bytes"), size)})
	}
	p.body.WriteString("<p>" + says.html.String() + "</p>\n")
	p.figure("Bytes from job to job, on a logarithmic scale", says,
		heat(cells{of: matrix.get("bytes"), noun: "job", edge: 1, names: jobs}, size), values)
}
