// This file binds the generator dag/gen/matrix to its flags and files.

package main

import (
	"cmp"
	"encoding/json"
	"errors"
	"io"
	"math"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/tracedag/tracedag/dag/gen/matrix"
	"github.com/tracedag/tracedag/dag/gen/openloop"
	"github.com/tracedag/tracedag/formats/format"
	"github.com/tracedag/tracedag/internal/cli"
	"github.com/tracedag/tracedag/internal/units"
)

// matrixRun is the flags of the generator, before the files that they name are read.
type matrixRun struct {
	generation
	cmd                     *cobra.Command
	params                  matrix.Params
	seed                    int64
	preset, recipe          string
	sizeLaw, gapLaw         string
	nodeMatrix, sizes, gaps string // files, like the next
	sizePMF, gapPMF         string
	reportFile              string
	report                  *cli.Output
}

func newMatrix(p *cli.Program) *cobra.Command {
	m := matrixRun{params: matrix.Default()}
	cmd := &cobra.Command{
		Use:   "matrix",
		Short: "flows that follow a node matrix, as TrafPy makes them",
		Long: `Matrix makes a trace of flows whose sizes and times follow given distributions, at a given load, and
whose bytes are spread over the pairs of nodes as a node matrix says, without more than a port can
carry. The distributions and the matrix are those of a benchmark set of TrafPy, or given by laws or
files. --report tells how closely they are met.

Sizes are in bytes, times in files and laws in microseconds. Laws are such as
weibull:alpha=4.7,lambda=4100,round=1; see docs/generators/matrix.md.`,
		Example: `  tracegen matrix | simulate
  tracegen matrix --preset social_media_cloud --nodes 128 --racks 4 --load 0.3 -o social.parquet
  tracegen matrix --node-matrix M.csv --sizes S.csv.gz --interarrivals T.csv.gz --load 0.5 \
    --capacity 12500 --report r.json -o flows.parquet`,
		Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error { return m.run() },
	}
	m.cmd = cmd
	params, flags := &m.params, cmd.Flags()
	flags.SortFlags = false
	flags.StringVar(&m.preset, "preset", "uniform",
		"whose distributions and matrix: "+strings.Join(matrix.Presets(), ", "))
	cli.CompleteWith(cmd, "preset", matrix.Presets())
	flags.IntVar(&params.Nodes, "nodes", params.Nodes, "number of nodes, one a rank")
	flags.IntVar(&params.Racks, "racks", 0, "number of racks of consecutive nodes; 0: racks do not matter")
	flags.Float64Var(&params.InterRack, "inter-rack", 0, "part of all bytes that leaves its rack (default: the preset's)")
	flags.Float64Var(&params.Load, "load", params.Load,
		"what nodes send, relative to half their capacity; 0: times stay as drawn")
	flags.Var((*capacity)(&params.Capacity), "capacity",
		"of a node, half of it for each direction: in bytes per microsecond or with another unit")
	flags.IntVar(&params.Flows, "flows", 0, "number of flows, at least (default: 5 for each pair of nodes)")
	flags.IntVar(&params.MaxFlows, "max-flows", params.MaxFlows, "number of flows, at most")
	flags.Float64Var(&params.Threshold, "threshold", params.Threshold,
		"Jensen-Shannon distance of drawn sizes and times to which more are drawn")
	cli.TimeVar(flags, &params.MinDuration, "min-duration", 0, 0, "repeat all flows until the last arrives then or later")
	flags.StringVar(&m.sizeLaw, "size-dist", "", "`law` of the sizes")
	flags.StringVar(&m.gapLaw, "interarrival-dist", "", "`law` of the times between arrivals")
	flags.StringVar(&m.recipe, "matrix", "", "`recipe` of the node matrix: "+strings.Join(matrix.Kinds(), ", ")+
		", the last two as nodes:fraction=0.2,share=0.55")
	flags.StringVar(&m.nodeMatrix, "node-matrix", "", "read the node matrix from `FILE`")
	flags.StringVar(&m.sizes, "sizes", "", "read the sizes from `FILE`")
	flags.StringVar(&m.gaps, "interarrivals", "", "read the times between arrivals from `FILE`")
	flags.StringVar(&m.sizePMF, "size-pmf", "", "read the mass function of the sizes from `FILE`")
	flags.StringVar(&m.gapPMF, "interarrival-pmf", "", "read the mass function of the times between arrivals from `FILE`")
	flags.BoolVar(&params.AutoCorrect, "auto-correct", false, "spread over other nodes what is above a node's capacity")
	flags.BoolVar(&params.IgnorePorts, "ignore-ports", false, "pack as if ports had room for everything")
	flags.StringVar(&m.reportFile, "report", "", "write the distances and loads that are reached to `FILE`, as JSON")
	flags.Int64Var(&m.seed, "seed", 1, "seed of every random choice")
	// There is nothing to lower, and --report is that of the generator.
	m.p = p
	m.write.Register(p, cmd, "output `file` (default: standard output)")
	cmd.MarkFlagsMutuallyExclusive("node-matrix", "matrix")
	cmd.MarkFlagsMutuallyExclusive("node-matrix", "inter-rack")
	cmd.MarkFlagsMutuallyExclusive("size-pmf", "size-dist")
	cmd.MarkFlagsMutuallyExclusive("interarrival-pmf", "interarrival-dist")
	return cmd
}

func (m *matrixRun) run() error {
	if m.reportFile == "-" && (m.write.Output == "" || m.write.Output == "-") {
		return cli.Usagef("--report: the trace goes to standard output already")
	}
	if err := m.setLaws(); err != nil {
		return err
	}
	to, err := m.p.Target(m.write)
	if err != nil {
		return err
	}
	s, err := m.source()
	if m.report != nil {
		defer m.report.Close()
	}
	var param *openloop.ParamError
	if errors.As(err, &param) {
		return cli.Usagef("%v", flagError(err))
	} else if err != nil {
		return err
	}
	meta := s.Meta()
	m.describe(&meta, &m.seed, to)
	if err := m.p.WriteSource(cli.WithMeta(s, meta), to); err != nil || m.report == nil {
		return err
	}
	return m.report.Commit()
}

// setLaws sets the preset, and the laws and the recipe that are given instead of its own.
func (m *matrixRun) setLaws() error {
	interRack := m.params.InterRack
	if !m.params.Use(m.preset) {
		return cli.Usagef("--preset: expected one of %s, found %q", strings.Join(matrix.Presets(), ", "), m.preset)
	}
	if m.cmd.Flags().Changed("inter-rack") {
		if m.params.Racks == 0 {
			return cli.Usagef("--inter-rack needs --racks")
		}
		m.params.InterRack = interRack
	}
	var err error
	if m.sizeLaw != "" {
		if m.params.Sizes.Law, err = matrix.ParseLaw(m.sizeLaw); err != nil {
			return cli.Usagef("--size-dist: %v", err)
		}
	}
	if m.gapLaw != "" {
		if m.params.Interarrivals.Law, err = matrix.ParseLaw(m.gapLaw); err != nil {
			return cli.Usagef("--interarrival-dist: %v", err)
		}
	}
	if m.recipe != "" {
		if m.params.Recipe, err = matrix.ParseMatrixLaw(m.recipe); err != nil {
			return cli.Usagef("--matrix: %v", err)
		}
	}
	return nil
}

// source reads the files and makes the flows.
func (m *matrixRun) source() (format.Source, error) {
	if m.reportFile != "" {
		if err := m.p.CheckOutput(m.reportFile, false); err != nil {
			return nil, err
		}
	}
	params := &m.params
	if err := cmp.Or(
		readInto(m, m.nodeMatrix, &params.Matrix, matrix.ReadMatrix),
		readInto(m, m.sizes, &params.Sizes.Given, matrix.Size.ReadValues),
		readInto(m, m.gaps, &params.Interarrivals.Given, matrix.Interarrival.ReadValues),
		readInto(m, m.sizePMF, &params.Sizes.PMF, matrix.Size.ReadPMF),
		readInto(m, m.gapPMF, &params.Interarrivals.PMF, matrix.Interarrival.ReadPMF),
	); err != nil {
		return nil, err
	}
	if err := m.setCounts(); err != nil {
		return nil, err
	}
	progress := m.p.Progress("packing", -1, "flows")
	params.Placed = progress.Add
	s, report, err := matrix.NewSource(*params, m.seed)
	progress.Close()
	if err != nil {
		return nil, err
	}
	m.warn(report)
	if m.reportFile == "" {
		return s, nil
	}
	return s, m.writeReport(report)
}

// setCounts sets the numbers of nodes and flows that were not given.
func (m *matrixRun) setCounts() error {
	params := &m.params
	if params.Matrix != nil {
		if m.cmd.Flags().Changed("nodes") && params.Nodes != params.Matrix.N {
			return cli.Usagef("--nodes is %d, expected %d, as %s has", params.Nodes, params.Matrix.N, m.nodeMatrix)
		}
		params.Nodes = params.Matrix.N
	}
	if !m.cmd.Flags().Changed("flows") {
		pairs := min(params.Nodes, matrix.MaxNodes) * min(params.Nodes, matrix.MaxNodes)
		params.Flows = max(1, min(5*pairs, params.MaxFlows, matrix.MaxFlows))
	}
	return nil
}

// warn says what is not as the flags ask.
func (m *matrixRun) warn(r *matrix.Report) {
	if r.NegativeCells > 0 {
		m.p.Warn("%d cells of the node matrix were below 0 and are 0 now", r.NegativeCells)
	}
	if r.MatrixCorrected {
		m.p.Warn("nodes would have had more than their capacity: the node matrix was corrected")
	}
	m.warnDistance("sizes", r.SizeDistance)
	m.warnDistance("times between arrivals", r.IntervalDistance)
	if end := float64(m.params.MinDuration) / 1e6; float64(r.Copies)*r.Duration < end {
		m.p.Warn("the flows end before --min-duration: --max-flows forbids more")
	}
}

func (m *matrixRun) warnDistance(what string, distance *float64) {
	if distance != nil && *distance > m.params.Threshold {
		m.p.Warn("the distance of the %s from their distribution is %.3g", what, *distance)
	}
}

func (m *matrixRun) writeReport(r *matrix.Report) (err error) {
	text, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return err
	}
	if m.report, err = m.p.Create(m.reportFile, false); err != nil {
		return err
	}
	_, err = m.report.Write(append(text, '\n'))
	return m.report.Failed(err)
}

// readInto reads a file, if there is one to read.
func readInto[T any](m *matrixRun, name string, to *T, parse func(io.Reader) (T, error)) error {
	if name == "" {
		return nil
	}
	in, err := m.p.Open(name, true, nil)
	if err != nil {
		return err
	}
	defer in.Close()
	*to, err = parse(in.Reader)
	var wrong *openloop.LineError
	if errors.As(err, &wrong) {
		return &format.SyntaxError{File: in.Name, Line: wrong.Line, Expected: wrong.Expected, Found: wrong.Found}
	} else if err != nil {
		return cli.InFile(in.Name, err)
	}
	input, err := in.Digest()
	m.inputs = append(m.inputs, input)
	return err
}

// capacity is in bytes per microsecond, which is also the unit of one without.
type capacity float64

func (c *capacity) String() string { return strconv.FormatFloat(float64(*c), 'g', -1, 64) }
func (c *capacity) Type() string   { return "rate" }

func (c *capacity) Set(s string) error {
	if v, err := strconv.ParseFloat(s, 64); err == nil && !math.IsNaN(v) {
		*c = capacity(v)
		return nil
	}
	rate, err := units.ParseRate(s, "")
	if err != nil {
		return err
	}
	*c = capacity(1e6 * float64(rate.Den) / float64(rate.Num))
	return nil
}
