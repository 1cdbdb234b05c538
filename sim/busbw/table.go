// This file has the efficiencies of collectives by size and number of nodes.

package busbw

import "fmt"

// sizes are the message sizes of the rows of the tables, in bytes: 16 MiB to 16 GiB.
var sizes = [...]int64{16 << 20, 32 << 20, 64 << 20, 128 << 20, 256 << 20, 512 << 20, 1 << 30, 2 << 30, 4 << 30,
	8 << 30, 16 << 30}

// table has a row for each size. Its columns are 1, 2, 4, 8, 16, 32, 64 and 128 nodes, and the all-to-alls of experts
// over whole servers.
type table [len(sizes)][columns]float64

const (
	columns = 9
	experts = 8 // column of all-to-alls of experts over whole servers
)

// allToAll has the efficiencies of all-to-alls, as measured by SimAI's authors.
var allToAll = table{
	{0.44, 0.52, 0.67, 0.64, 0.62, 1, 1, 1, 0.86},
	{0.51, 0.63, 0.68, 0.67, 0.66, 1, 1, 1, 0.92},
	{0.6, 0.72, 0.83, 0.82, 0.66, 1, 1, 1, 0.94},
	{0.65, 0.76, 0.9, 0.85, 0.72, 1, 1, 1, 0.94},
	{0.7, 0.79, 0.92, 0.87, 0.75, 1, 1, 1, 0.94},
	{0.71, 0.8, 0.94, 0.89, 0.81, 1, 1, 1, 0.95},
	{0.74, 0.81, 0.94, 0.92, 0.85, 1, 1, 1, 0.96},
	{0.76, 0.81, 0.95, 0.93, 0.88, 1, 1, 1, 0.96},
	{0.77, 0.8, 0.95, 0.94, 0.89, 1, 1, 1, 0.96},
	{0.78, 0.8, 0.95, 0.94, 0.9, 1, 1, 1, 0.96},
	{0.78, 0.8, 0.95, 0.94, 0.9, 1, 1, 1, 0.96},
}

// nicLimited has the efficiencies of all-gathers and reduce-scatters that NICs limit, as measured by SimAI's authors.
var nicLimited = table{
	{0.45, 0.32, 0.24, 0.13, 0.05, 0.044, 0.021, 0.0087, 0.86},
	{0.55, 0.47, 0.38, 0.24, 0.11, 0.052, 0.042, 0.021225, 0.92},
	{0.65, 0.5, 0.53, 0.39, 0.21, 0.106, 0.051, 0.04405, 0.94},
	{0.69, 0.67, 0.67, 0.54, 0.38, 0.205, 0.107, 0.0533, 0.94},
	{0.73, 0.85, 0.77, 0.69, 0.57, 0.387, 0.209, 0.1027, 0.94},
	{0.76, 0.89, 0.85, 0.78, 0.73, 0.562, 0.384, 0.1902, 0.95},
	{0.77, 0.92, 0.93, 0.9, 0.76, 0.74, 0.563, 0.314575, 0.96},
	{0.78, 0.94, 0.94, 0.94, 0.92, 0.758, 0.745, 0.553525, 0.96},
	{0.79, 0.95, 0.95, 0.95, 0.95, 0.923, 0.755, 0.740175, 0.96},
	{0.8, 0.95, 0.96, 0.96, 0.96, 0.953, 0.914, 0.7648, 0.96},
	{0.81, 0.96, 0.96, 0.96, 0.96, 0.957, 0.958, 0.919175, 0.96},
}

// nvLimited has the efficiencies of all-gathers and reduce-scatters that NVLink limits, as measured by SimAI's authors.
var nvLimited = table{
	{0.45, 0.55, 0.34, 0.16, 0.08, 1, 1, 1, 0.86},
	{0.55, 0.68, 0.6, 0.34, 0.16, 1, 1, 1, 0.92},
	{0.65, 0.74, 0.71, 0.62, 0.33, 1, 1, 1, 0.94},
	{0.69, 0.8, 0.74, 0.7, 0.65, 1, 1, 1, 0.94},
	{0.73, 0.84, 0.79, 0.78, 0.72, 1, 1, 1, 0.94},
	{0.76, 0.86, 0.86, 0.82, 0.75, 1, 1, 1, 0.95},
	{0.77, 0.87, 0.87, 0.86, 0.83, 1, 1, 1, 0.96},
	{0.78, 0.87, 0.87, 0.87, 0.86, 1, 1, 1, 0.96},
	{0.79, 0.88, 0.88, 0.88, 0.87, 1, 1, 1, 0.96},
	{0.8, 0.88, 0.88, 0.88, 0.88, 1, 1, 1, 0.96},
	{0.81, 0.88, 0.88, 0.88, 0.88, 1, 1, 1, 0.96},
}

// column returns the column of a number of nodes.
func column(nodes int64) int {
	for c := range experts {
		if nodes == 1<<c {
			return c
		}
	}
	return 4
}

// efficiency returns the share of the bandwidth that a collective of a size reaches.
func (t *table) efficiency(size int64, column int) (float64, error) {
	last := t[len(t)-1][column]
	switch {
	case size == 0:
		return 1, nil
	case size < sizes[0]:
		return t[0][column] / last, nil
	}
	for i := range len(sizes) - 1 {
		if low, high := sizes[i], sizes[i+1]; size <= high {
			share := float64(size-low) / float64(high-low)
			return (t[i][column] + (t[i+1][column]-t[i][column])*share) / last, nil
		}
	}
	return 0, fmt.Errorf("a size of %d bytes: expected at most 16 GiB, where SimAI's tables end", size)
}
