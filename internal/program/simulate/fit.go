package simulate

import (
	"io"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/tracedag/tracedag/formats/format"
	"github.com/tracedag/tracedag/internal/calibrate"
	"github.com/tracedag/tracedag/internal/cli"
	"github.com/tracedag/tracedag/internal/manual"
	"github.com/tracedag/tracedag/memory"
	"github.com/tracedag/tracedag/sim/fit"
)

// fitFlags are the flags of --fit.
type fitFlags struct {
	wanted bool
	file   string // of parameters
}

const fitPage = `--fit estimates the parameters of the loggops backend, model strict, from tables of micro-benchmarks:

  simulate --fit --fit-out machine.json pingpong.csv osu_latency.txt
  simulate --params machine.json trace.parquet

Tables are CSV with a header (bytes or size, and a time or rate with its unit, such as seconds, us or MB/s; optionally
test, where and ranks), or the output of OSU micro-benchmarks, NetPIPE 3, nccl-tests or netgauge. A table without a test
is a ping-pong, half of a round trip. Other tests separate the parameters: send_call (time in the call), recv_late
(time in a receive long after its message), send_late (time in a send whose receive is late) and windowN (N messages at
once).

The result has segments of message size with L, G, o and O, each with its 95 % interval, the residuals, and what the
tables do not determine. Times of collectives, with their number of ranks, identify algorithms for --collective. --json
prints the parameter file; --seed selects the draws of the intervals.`

// register adds the flags. All flags before have a heading or topic.
func (f *fitFlags) register(cmd *cobra.Command, flags *pflag.FlagSet) {
	flags.BoolVar(&f.wanted, "fit", false, "estimate parameters of loggops from tables of measured times")
	cli.OutputVar(flags, &f.file, "fit-out", "write the parameters to `FILE`, for --params")
	manual.Topic(cmd, manual.Group{Owner: "fit", Title: "parameters from measured times", Page: fitPage,
		File: "docs/reference/fit.md"})
}

// fit estimates parameters from the tables.
func (o *options) fit(p *cli.Program, args []string) error {
	if len(args) == 0 {
		return cli.Usagef("--fit needs tables of measured times: name files, or - for standard input")
	}
	if err := o.checkKept("fit", "fit-out", "json", "seed"); err != nil {
		return err
	}
	names, err := p.InputNames(args)
	if err != nil {
		return err
	}
	seed, err := o.Flags.GetInt64("seed")
	if err != nil {
		return err
	}
	var tables []*fit.Table
	for _, name := range names {
		table, err := readTable(p, name)
		if err != nil {
			return err
		}
		tables = append(tables, table)
	}
	estimate, err := calibrate.Estimate(p.Context(), tables, calibrate.Options{Seed: uint64(seed), Threads: o.Threads,
		Version: p.Version})
	if err != nil {
		return err
	}
	if o.fitting.file != "" {
		if err := write(p, o.fitting.file, estimate.Write); err != nil {
			return err
		}
	}
	print := estimate.WriteTable
	if o.JSON {
		print = estimate.Write
	}
	return write(p, "", print)
}

func readTable(p *cli.Program, name string) (*fit.Table, error) {
	in, err := p.Open(name, false)
	if err != nil {
		return nil, err
	}
	defer in.Close()
	data, err := memory.ReadContent(p.Context(), in.Reader)
	if err != nil {
		return nil, format.InFile(in.Name, err)
	}
	return fit.Read(in.Name, data)
}

// write writes an output; "" is standard output.
func write(p *cli.Program, name string, print func(io.Writer) error) error {
	out, err := p.Create(name, false)
	if err != nil {
		return err
	}
	defer out.Close()
	if err := print(out); err != nil {
		return out.Failed(err)
	}
	return out.Commit()
}
