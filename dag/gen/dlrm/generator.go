package dlrm

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/tracedag/tracedag/dag"
	"github.com/tracedag/tracedag/dag/gen/generator"
	"github.com/tracedag/tracedag/param"
)

// Generator is the entry of the registry.
var Generator = generator.Generator{
	Name:  "dlrm",
	Title: "training steps of a recommendation model with divided embedding tables",
	Group: generator.Training,
	Page: `Dlrm generates training steps of a deep learning recommendation model: the embedding tables are divided
among the ranks, which exchange rows and their gradients in alltoalls; every rank has a replica of the
MLPs, whose gradients allreduces sum. Collectives stay collectives unless --lower is given.

Without --preset the run is that of the ASTRA-sim 2.0 paper; other flags change a preset. Calcs have no
durations unless --peak-flops and --mem-bw are given.`,
	Example: `  tracegen dlrm -o dlrm.parquet
  tracegen dlrm --preset atlahs --peak-flops 312TFLOPS --mem-bw 2TB/s | simulate --backend ideal
  tracegen dlrm --preset dlrm-small --ranks 16 --steps 10 | tracecat`,
	Exclusive: [][]string{{"mini-batch", "local-batch"}},
	New:       func() generator.Config { return newConfig() },
	Small:     param.Texts{"preset": {"atlahs"}},
	Large:     param.Texts{"preset": {"atlahs"}, "steps": {"10"}},
}

// Config is a configuration of the generator.
type Config struct {
	model   Params
	preset  string
	unknown error // the preset does not exist

	placement string
}

// roundRobin places table t on rank t mod N.
const roundRobin = "round-robin"

func newConfig() *Config {
	return &Config{model: presets[0].params, placement: roundRobin}
}

// Params describes the parameters. The preset stands first: others change it.
func (c *Config) Params() param.Set {
	p := &c.model
	preset := param.String(&c.preset, "preset", "published run; other flags change it").
		Placeholder("name").Default(presets[0].name).Check(c.usePreset)
	preset.Choices = Presets()
	return param.Set{
		preset,
		generator.Ranks(&p.Ranks),
		param.Int(&p.MiniBatch, "mini-batch", "samples per step").Check(func() error {
			p.LocalBatch = 0
			return nil
		}),
		param.Int(&p.LocalBatch, "local-batch", "samples per rank and step").Check(func() error {
			p.MiniBatch = 0
			return nil
		}),
		param.Int(&p.Tables, "tables", "embedding tables; a multiple of --ranks"),
		param.Choice(&c.placement, "sparse-placement", "placement of tables on ranks: round-robin", roundRobin),
		param.Int(&p.Rows, "rows", "rows per table"),
		param.Int(&p.Dim, "dim", "elements per row"),
		param.Int(&p.Pooling, "pooling", "rows per sample and table"),
		param.Enum((*widths)(&p.Bottom), "bottom",
			"bottom MLP: dense features and outputs of each layer, the last --dim").Placeholder("widths"),
		param.Enum((*widths)(&p.Top), "top", "top MLP: outputs of each layer").Placeholder("widths").
			Default("of the preset"),
		param.OneOf(&p.Interaction, "interaction", "interaction of tables and bottom MLP: dot (products of pairs), "+
			"cat (concatenation)", Dot, Cat),
		param.Int(&p.DtypeBytes, "dtype-bytes", "bytes per weight, activation or gradient"),
		param.OneOf(&p.Bucket, "bucket", "gradients per allreduce: layer (those of a layer), all", PerLayer, All),
		param.Int(&p.Steps, "steps", "training steps"),
		param.FLOPS(&p.PeakFlops, "peak-flops",
			"peak rate per accelerator, such as 312TFLOPS; gives calcs a duration, with --mem-bw"),
		param.Bandwidth(&p.MemoryBandwidth, "mem-bw",
			"memory bandwidth per accelerator, such as 2TB/s; gives calcs a duration, with --peak-flops"),
	}
}

// usePreset sets the parameters to the preset. Source returns the error for an unknown one.
func (c *Config) usePreset() error {
	if c.preset == "" {
		return nil
	}
	p, err := Preset(c.preset)
	if c.unknown = err; err == nil {
		c.model = p
	}
	return nil
}

// Source returns the trace.
func (c *Config) Source(env *generator.Env) (dag.Source, error) {
	if c.unknown != nil {
		return nil, fmt.Errorf("--preset: %w", c.unknown)
	}
	p := c.model
	p.Context = env.OrEmpty().Context
	return generator.From(NewSource(p))
}

// widths are the widths of an MLP.
type widths []int64

// MarshalText returns the widths, such as "13-512-128".
func (w *widths) MarshalText() ([]byte, error) {
	texts := make([]string, len(*w))
	for i, n := range *w {
		texts[i] = strconv.FormatInt(n, 10)
	}
	return []byte(strings.Join(texts, "-")), nil
}

// UnmarshalText parses widths such as 13-512-128.
func (w *widths) UnmarshalText(text []byte) error {
	var list []int64
	for part := range strings.SplitSeq(string(text), "-") {
		n, err := strconv.ParseInt(part, 10, 64)
		if err != nil || n < 1 || n > maxWidth {
			return errors.New("expected widths with - between them, such as 13-512-512-128")
		}
		list = append(list, n)
	}
	*w = list
	return nil
}
