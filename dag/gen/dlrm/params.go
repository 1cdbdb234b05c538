package dlrm

import (
	"context"
	"fmt"
	"math"

	"github.com/tracedag/tracedag/dag"
)

// Params describe a training run.
type Params struct {
	Ranks      int   // N: 1 or more
	MiniBatch  int64 // B: samples of a step, a multiple of Ranks; 0: Ranks x LocalBatch
	LocalBatch int64 // B / N: samples of a rank; 0: given by MiniBatch

	Tables      int64   // T: a multiple of Ranks; table t is on rank t mod N
	Rows        int64   // of a table; they cost no time
	Dim         int64   // D: elements of a row
	Pooling     int64   // P: rows that a sample reads of a table
	Bottom      []int64 // widths of the bottom MLP: dense features, then outputs of each layer; the last is Dim
	Top         []int64 // outputs of each layer of the top MLP
	DtypeBytes  int64   // w: bytes of an element: 1..8
	Interaction Interaction
	Bucket      Bucket
	Steps       int

	// The speed of an accelerator, for the durations of calcs; both 0: no durations.
	PeakFlops       int64 // floating-point operations per second
	MemoryBandwidth int64 // bytes per second

	Context context.Context // ends reading early, with an error that wraps its cause; nil: never
}

// Interaction combines rows of tables and the result of the bottom MLP.
type Interaction uint8

// The interactions.
const (
	Dot Interaction = iota // products of all pairs of them, beside the result of the bottom MLP
	Cat                    // all of them
)

// String returns the name on the command line.
func (i Interaction) String() string { return [...]string{"dot", "cat"}[i] }

// Bucket is the gradients that an allreduce sums.
type Bucket uint8

// The buckets.
const (
	PerLayer Bucket = iota // those of a layer
	All                    // those of both MLPs
)

// String returns the name on the command line.
func (b Bucket) String() string { return [...]string{"layer", "all"}[b] }

// presets are published runs. docs/reference/generators/dlrm.md has their sources.
var presets = []struct {
	name   string
	params Params
}{
	{"paper", Params{
		Ranks: 1024, LocalBatch: 16, Tables: 1024, Rows: 1_000_000, Dim: 128, Pooling: 1,
		Bottom: []int64{13, 512, 512, 512, 512, 512, 512, 128},
		Top:    []int64{256, 2176, 2176, 2176, 2176, 2176, 1008, 496, 320, 160, 256, 1},
		Steps:  1, DtypeBytes: 2, Interaction: Cat, Bucket: All,
	}},
	{"atlahs", Params{
		Ranks: 4, MiniBatch: 2048, Tables: 8, Rows: 80_000, Dim: 64, Pooling: 1,
		Bottom: []int64{128, 128, 128, 128, 64}, Top: []int64{512, 512, 512, 256, 1}, Steps: 1, DtypeBytes: 4,
	}},
	{"dlrm-small", Params{
		Ranks: 64, LocalBatch: 48, Tables: 64, Rows: 100_000, Dim: 16, Pooling: 1,
		Bottom: []int64{13, 512, 512, 512, 16}, Top: []int64{512, 512, 512, 1}, Steps: 1, DtypeBytes: 2,
		Interaction: Cat,
	}},
}

// Presets returns the names of the published runs.
func Presets() (names []string) {
	for _, p := range presets {
		names = append(names, p.name)
	}
	return names
}

// Preset returns a published run.
func Preset(name string) (Params, error) {
	for _, p := range presets {
		if p.name == name {
			return p.params, nil
		}
	}
	return Params{}, fmt.Errorf("no run %q, expected one of %v", name, Presets())
}

// batch returns B.
func (p *Params) batch() int64 {
	if p.MiniBatch > 0 {
		return p.MiniBatch
	}
	return p.LocalBatch * int64(p.Ranks)
}

// exchanged returns the bytes of a rank in an alltoall: a pooled row per sample of each of its tables.
func (p *Params) exchanged() int64 {
	return p.batch() * (p.Tables / int64(p.Ranks)) * p.Dim * p.DtypeBytes
}

// topInputs returns the inputs of the top MLP.
func (p *Params) topInputs() int64 {
	if p.Interaction == Cat {
		return (p.Tables + 1) * p.Dim
	}
	return p.Dim + p.Tables*(p.Tables+1)/2
}

// MLPParameters returns the number of parameters of both MLPs, which have no biases.
func (p *Params) MLPParameters() (sum int64) {
	for _, l := range append(layers("", p.Bottom[0], p.Bottom[1:]), layers("", p.topInputs(), p.Top)...) {
		sum += l.in * l.out
	}
	return sum
}

// Limits that keep sizes and counts in range.
const (
	maxRanks  = 1 << 20
	maxTables = 1 << 20
	maxWidth  = 1 << 20
	maxLayers = 1 << 10
	maxOps    = 1 << 24 // of a rank, about
)

// check returns an error that names the first parameter outside its range.
func (p *Params) check() error {
	for _, l := range []struct {
		name               string
		value, least, most int64
	}{
		{"ranks", int64(p.Ranks), 1, maxRanks},
		{"mini-batch", p.MiniBatch, 0, 1 << 40},
		{"local-batch", p.LocalBatch, 0, 1 << 20},
		{"tables", p.Tables, 1, maxTables},
		{"rows", p.Rows, 1, 1 << 40},
		{"dim", p.Dim, 1, 1 << 16},
		{"pooling", p.Pooling, 1, 1 << 16},
		{"dtype-bytes", p.DtypeBytes, 1, 8},
		{"steps", int64(p.Steps), 1, maxOps},
		{"peak-flops", p.PeakFlops, 0, math.MaxInt64},
		{"mem-bw", p.MemoryBandwidth, 0, math.MaxInt64},
	} {
		if l.value < l.least || l.value > l.most {
			return fmt.Errorf("%s is %d, expected %d..%d", l.name, l.value, l.least, l.most)
		}
	}
	for _, mlp := range []struct {
		name   string
		widths []int64
		least  int
	}{{"bottom", p.Bottom, 2}, {"top", p.Top, 1}} {
		if n := len(mlp.widths); n < mlp.least || n > maxLayers {
			return fmt.Errorf("%s has %d widths, expected %d..%d", mlp.name, n, mlp.least, maxLayers)
		}
		for _, w := range mlp.widths {
			if w < 1 || w > maxWidth {
				return fmt.Errorf("%s has a width of %d, expected 1..%d", mlp.name, w, maxWidth)
			}
		}
	}
	return p.checkShape()
}

// checkShape compares parameters with each other.
func (p *Params) checkShape() error {
	ranks, last := int64(p.Ranks), p.Bottom[len(p.Bottom)-1]
	switch {
	case p.batch() == 0:
		return fmt.Errorf("mini-batch and local-batch are 0, expected one of them")
	case p.batch()%ranks != 0:
		return fmt.Errorf("mini-batch is %d, expected a multiple of ranks, %d", p.batch(), ranks)
	case p.Tables%ranks != 0:
		return fmt.Errorf("tables is %d, expected a multiple of ranks, %d, so that all ranks exchange equal parts",
			p.Tables, ranks)
	case last != p.Dim:
		return fmt.Errorf("bottom ends with %d, expected dim, %d", last, p.Dim)
	case p.Interaction > Cat:
		return fmt.Errorf("no interaction %d", p.Interaction)
	case p.Bucket > All:
		return fmt.Errorf("no bucket %d", p.Bucket)
	case (p.PeakFlops == 0) != (p.MemoryBandwidth == 0):
		return fmt.Errorf("peak-flops is %d and mem-bw %d, expected both or neither", p.PeakFlops, p.MemoryBandwidth)
	}
	if ops := float64(p.Steps) * 4 * float64(len(p.Bottom)+len(p.Top)+4); ops > maxOps {
		return fmt.Errorf("up to about %.3g ops per rank, expected at most %d", ops, maxOps)
	}
	return p.checkSizes()
}

// checkSizes returns an error if a number of operations, bytes or picoseconds may not fit its field. It compares upper
// bounds of all of them.
func (p *Params) checkSizes() error {
	batch, tables, dim := float64(p.batch()), float64(p.Tables), float64(p.Dim)
	widest := float64(max(p.topInputs(), 1))
	matrix := widest * maxWidth
	flops := max(4*batch*matrix, 4*batch*(tables+1)*(tables+1)*dim)
	bytes := 8 * (3*batch*tables*float64(p.Pooling)*dim + 4*batch*(widest+maxWidth) + maxLayers*matrix)
	if most := max(flops, bytes); most >= math.MaxInt64 {
		return fmt.Errorf("a calc has up to %.3g operations or bytes, expected at most %d", most, int64(math.MaxInt64))
	}
	if p.PeakFlops > 0 {
		longest := max(flops/float64(p.PeakFlops), bytes/float64(p.MemoryBandwidth))
		if longest > float64(dag.MaxTime)/float64(dag.Second)/2 {
			return fmt.Errorf("a calc takes up to %.3g s, expected at most %v", longest, dag.MaxTime/2)
		}
	}
	return nil
}
