package fit

import (
	"encoding/json"
	"io"
	"math"
	"slices"
)

// curve has the ping-pongs of a path in a table, and the fitted time over size. Times are in picoseconds.
type curve struct {
	Name     string    `json:"name"` // of the path, or of the table if it names none, or of both
	Bytes    []int64   `json:"bytes"`
	Measured []float64 `json:"measured_ps"`
	Fitted   []float64 `json:"fitted_ps"` // of the same sizes
	Sizes    []int64   `json:"line_bytes"`
	Line     []float64 `json:"line_ps"` // of Sizes, ascending, close enough for a line
}

// WriteCurves writes the data of a picture of the fit as a JSON object: cuts, the first sizes of segments in bytes, and
// curves, one for each path of each table of ping-pongs, with measured and fitted times. A file that was parsed has no
// curves.
func (f *File) WriteCurves(w io.Writer) error {
	cuts := []int64{}
	for _, s := range f.Segments {
		if s.From > 0 {
			cuts = append(cuts, s.From)
		}
	}
	return json.NewEncoder(w).Encode(map[string]any{"title": "fit of " + f.Backend, "cuts": cuts, "curves": f.curves})
}

// perOctave is the number of places of a line from a size to the double of it.
const perOctave = 8

// curves returns the curves of the ping-pongs in the order of tables and paths. The file has its segments.
func (e *estimate) curves(predict func(path int, bytes int64) float64) (all []*curve) {
	const picoseconds = 1e12 // per second
	for _, t := range e.tables {
		byPath := make(map[string]*curve)
		for _, m := range t.Rows {
			if m.Test != PingPong {
				continue
			}
			c := byPath[m.Where]
			if c == nil {
				c = &curve{Name: m.Where}
				if m.Where == "" {
					c.Name = t.Name
				} else if len(e.tables) > 1 {
					c.Name = t.Name + ", " + m.Where
				}
				byPath[m.Where], all = c, append(all, c)
			}
			c.Bytes = append(c.Bytes, m.Bytes)
			c.Measured = append(c.Measured, m.Seconds*picoseconds)
			c.Fitted = append(c.Fitted, predict(slices.Index(e.paths, m.Where), m.Bytes)*picoseconds)
		}
		for where, c := range byPath {
			path := slices.Index(e.paths, where)
			for _, size := range e.places(c.Bytes) {
				if took := predict(path, size); !math.IsNaN(took) {
					c.Sizes, c.Line = append(c.Sizes, size), append(c.Line, took*picoseconds)
				}
			}
		}
	}
	return all
}

// places returns the sizes of a line that spans measured sizes: these, both sides of each cut, and some between.
func (e *estimate) places(measured []int64) []int64 {
	least, most := slices.Min(measured), slices.Max(measured)
	all := slices.Clone(measured)
	for _, s := range e.file.Segments {
		if s.From > least && s.From <= most {
			all = append(all, s.From-1, s.From)
		}
	}
	for size := float64(max(least, 1)); size < float64(most); size *= math.Pow(2, 1.0/perOctave) {
		all = append(all, int64(size))
	}
	slices.Sort(all)
	return slices.Compact(all)
}
