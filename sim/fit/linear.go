package fit

import "math"

// equation is a row of a linear model without constant: coefficients of unknowns of at least 0, the value, and the time
// to which its error is relative.
type equation struct {
	columns []float64
	value   float64
	scale   float64
}

// fitLinear returns the unknowns of at least 0 with the least relative errors, with Huber's weights, and the sum of
// Huber's function of the errors. An unknown whose column depends on others is 0.
func fitLinear(rows []equation) (unknowns []float64, cost float64) {
	n := len(rows[0].columns)
	weight := make([]float64, len(rows))
	for i := range weight {
		weight[i] = 1
	}
	a, b := make([][]float64, n), make([]float64, n)
	for i := range a {
		a[i] = make([]float64, n)
	}
	last := math.Inf(1)
	for range rounds {
		clear(b)
		for i := range a {
			clear(a[i])
		}
		for k, r := range rows {
			w := weight[k] / (r.scale * r.scale)
			for i, x := range r.columns {
				b[i] += w * x * r.value
				for j, y := range r.columns {
					a[i][j] += w * x * y
				}
			}
		}
		unknowns = nonNegative(a, b)
		cost = 0
		for k, r := range rows {
			e := math.Abs(r.at(unknowns)-r.value) / r.scale
			if weight[k] = 1; e <= huber {
				cost += e * e
			} else {
				weight[k] = huber / e
				cost += 2*huber*e - huber*huber
			}
		}
		if cost >= last*(1-1e-6) {
			break
		}
		last = cost
	}
	return unknowns, cost
}

// at returns the value that unknowns give.
func (r *equation) at(unknowns []float64) (sum float64) {
	for i, x := range r.columns {
		sum += x * unknowns[i]
	}
	return sum
}

// dependent is the share of a column that others do not explain, squared, from which it does not depend on them.
const dependent = 1e-9

// nonNegative solves normal equations for unknowns of at least 0 (Lawson and Hanson, Solving Least Squares Problems,
// 1974, chapter 23).
func nonNegative(a [][]float64, b []float64) []float64 {
	n := len(b)
	x, free, barred := make([]float64, n), make([]bool, n), make([]bool, n)
	for range 3 * n {
		best, most := -1, 0.0
		for j := range n {
			if free[j] || barred[j] || a[j][j] == 0 {
				continue
			}
			gradient := b[j]
			for k := range n {
				gradient -= a[j][k] * x[k]
			}
			if gradient /= math.Sqrt(a[j][j]); gradient > most {
				best, most = j, gradient
			}
		}
		if best < 0 || most <= 1e-12 {
			break
		}
		free[best] = true
		for {
			s := solveFree(a, b, free, dependent)
			if s == nil {
				free[best], barred[best] = false, true
				break
			}
			step := 1.0
			for j := range n {
				if free[j] && s[j] <= 0 {
					step = min(step, x[j]/(x[j]-s[j]))
				}
			}
			done := true
			for j := range n {
				if !free[j] {
					continue
				}
				if x[j] += step * (s[j] - x[j]); s[j] <= 0 && x[j] <= 1e-15*math.Abs(s[j]) {
					x[j], free[j], done = 0, false, false
				}
			}
			if done {
				copy(x, s)
				break
			}
		}
	}
	return x
}

// solveFree solves the normal equations of the free unknowns by Cholesky's decomposition; the others are 0. It returns
// nil if columns depend on each other.
func solveFree(a [][]float64, b []float64, free []bool, dependent float64) []float64 {
	var at []int
	for j, is := range free {
		if is {
			at = append(at, j)
		}
	}
	l := make([][]float64, len(at))
	y := make([]float64, len(at))
	for i, row := range at {
		l[i] = make([]float64, i+1)
		for j := range i + 1 {
			v := a[row][at[j]]
			for k := range j {
				v -= l[i][k] * l[j][k]
			}
			if j < i {
				l[i][j] = v / l[j][j]
				continue
			}
			if v <= dependent*a[row][row] {
				return nil
			}
			l[i][i] = math.Sqrt(v)
		}
		y[i] = b[row]
		for k := range i {
			y[i] -= l[i][k] * y[k]
		}
		y[i] /= l[i][i]
	}
	x := make([]float64, len(b))
	for i := len(at) - 1; i >= 0; i-- {
		v := y[i]
		for k := i + 1; k < len(at); k++ {
			v -= l[k][i] * x[at[k]]
		}
		x[at[i]] = v / l[i][i]
	}
	return x
}
