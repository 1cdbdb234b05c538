package fit

import (
	"errors"
	"fmt"
	"math"
	"slices"
)

// AnalyticalOptions select how the parameters of the analytical backend are estimated.
type AnalyticalOptions struct {
	Options
	Network    string // for the file
	Congestion string // unaware or aware
	Dims       int    // of the network
	// Crossed returns, for each dimension, the number of links that a message takes between the ranks that a table
	// names, and the number of times that it waits for its bytes there.
	Crossed func(where string) (links, transfers []int, err error)
}

// Analytical estimates the parameters of the analytical backend on a given network: latency and bandwidth of the links
// of each dimension. A message takes the latency of each link and, once per link or, without congestion, once in all,
// the time of its bytes. It needs ping-pongs. The remarks of the file name what the tables do not determine.
func Analytical(tables []*Table, o AnalyticalOptions) (*File, error) {
	common, err := newEstimate(tables, o.Options, &File{Backend: "analytical", Model: o.Congestion,
		Topology: o.Network, Segments: []FileSegment{}})
	if err != nil {
		return nil, err
	}
	e := &analyticalEstimate{estimate: *common, dims: o.Dims}
	for _, where := range e.paths {
		links, transfers, err := o.Crossed(where)
		if err != nil {
			return nil, err
		}
		e.links, e.transfers = append(e.links, links), append(e.transfers, transfers)
	}
	if err := e.solveAll(); err != nil {
		return nil, err
	}
	e.describe()
	return e.file, nil
}

// analyticalEstimate is the state of the estimation. Unknowns are the latency and the seconds per byte of each
// dimension that messages cross.
type analyticalEstimate struct {
	estimate
	dims             int
	links, transfers [][]int // by path and dimension
	crossed          []int   // dimensions
	unknowns         []float64
}

// equations returns the rows of points.
func (e *analyticalEstimate) equations(points []Point) []equation {
	rows := make([]equation, len(points))
	for i, p := range points {
		rows[i] = equation{e.columns(p.Path, p.Bytes), p.Seconds, p.Seconds}
	}
	return rows
}

// columns returns the coefficients of the unknowns in the time of a message.
func (e *analyticalEstimate) columns(path int, bytes int64) (columns []float64) {
	for _, d := range e.crossed {
		columns = append(columns, float64(e.links[path][d]), float64(e.transfers[path][d])*float64(bytes))
	}
	return columns
}

// predict returns the time of a message, in whole nanoseconds as the backend has it.
func (e *analyticalEstimate) predict(path int, bytes int64) float64 {
	row := equation{columns: e.columns(path, bytes)}
	return math.Floor(row.at(e.unknowns)*1e9+1e-6) / 1e9
}

// solveAll estimates the unknowns with their intervals.
func (e *analyticalEstimate) solveAll() error {
	for d := range e.dims {
		if slices.ContainsFunc(e.links, func(links []int) bool { return links[d] > 0 }) {
			e.crossed = append(e.crossed, d)
			continue
		}
		e.file.Remark("lat%d and bw%d are not determined: no ping-pong takes a link of dimension %d; those of the "+
			"network stay", d, d, d)
	}
	rows := e.equations(e.points)
	if !independent(rows) {
		return errors.New("ping-pongs do not determine latency and bandwidth of each dimension apart: add some " +
			"between ranks that differ in one dimension alone, of several sizes")
	}
	e.unknowns, _ = fitLinear(rows)
	predicted, errs := make([]float64, len(rows)), make([]float64, len(rows))
	scale := enlargement(len(rows), len(rows)-len(e.unknowns))
	for i, r := range rows {
		predicted[i] = r.at(e.unknowns)
		if errs[i] = -1; predicted[i] > 0 {
			errs[i] = scale * (r.value/predicted[i] - 1)
		}
	}
	drawn := make([][]float64, len(e.unknowns))
	for range e.draws {
		for i := range rows {
			rows[i].value = redraw(predicted[i], errs, e.random)
			rows[i].scale = rows[i].value
		}
		found, _ := fitLinear(rows)
		for k, v := range found {
			drawn[k] = append(drawn[k], v)
		}
	}
	for k, d := range e.crossed {
		latency, perByte := e.unknowns[2*k], e.unknowns[2*k+1]
		if perByte < leastPerByte {
			return fmt.Errorf("dimension %d: expected times that grow with the size of messages, found times that do "+
				"not: add larger messages", d)
		}
		low, high := interval(drawn[2*k])
		e.file.set(fmt.Sprintf("lat%d", d), exactly(latency, "s").hull(low, high))
		low, high = interval(drawn[2*k+1])
		e.file.set(fmt.Sprintf("bw%d", d), exactly(1/perByte, "B/s").hull(1/max(high, leastPerByte),
			1/max(low, leastPerByte)))
	}
	return nil
}

// leastPerByte is the shortest time of a byte in seconds: 10^15 bytes per second.
const leastPerByte = 1e-15

// independent reports whether the columns of equations do not depend on each other.
func independent(rows []equation) bool {
	n := len(rows[0].columns)
	a, free := make([][]float64, n), make([]bool, n)
	for i := range a {
		a[i], free[i] = make([]float64, n), true
		for _, r := range rows {
			for j, y := range r.columns {
				a[i][j] += r.columns[i] * y / (r.scale * r.scale)
			}
		}
	}
	return solveFree(a, make([]float64, n), free, dependent) != nil
}

// describe adds residuals and what the tables do not determine.
func (e *analyticalEstimate) describe() {
	if len(Only(e.tables, SendCall))+len(Only(e.tables, RecvLate)) > 0 {
		e.file.Remark("latencies contain the processor times of sends and receives, which the backend does not have: " +
			"processors are free meanwhile")
	}
	e.file.Remark("endpoint-delay, splits and the other parameters of the system are not estimated")
	e.residuals(e.predict)
	e.coarse("the backend has one latency and one bandwidth per dimension")
	e.sharing()
}
