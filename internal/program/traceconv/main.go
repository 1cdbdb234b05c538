// Package traceconv is the program traceconv: its flags and its output. Command traceconv and package tracedag run it.
package traceconv

import (
	"cmp"
	"os"
	"runtime"
	"slices"

	"github.com/spf13/cobra"

	"github.com/tracedag/tracedag/dag"
	"github.com/tracedag/tracedag/formats/format"
	"github.com/tracedag/tracedag/internal/batch"
	"github.com/tracedag/tracedag/internal/cli"
	"github.com/tracedag/tracedag/internal/cluster"
	"github.com/tracedag/tracedag/internal/jobs"
	"github.com/tracedag/tracedag/internal/manual"
	"github.com/tracedag/tracedag/internal/origin"
	"github.com/tracedag/tracedag/memory"
)

// New returns the program's command.
func New(p *cli.Program) *cobra.Command {
	p.Args = versionOfSet(p.Args)
	var c conversion
	var read cli.ReadFlags
	var write cli.WriteFlags
	var lowering cli.LowerFlags
	var planning jobs.PlanFlags
	var shards cluster.Flags
	var set publishing
	var rescale rescaling
	var jobs int
	cmd := &cobra.Command{
		Use:   "traceconv [FILE...]",
		Short: "convert, merge and edit traces",
		Long: `Convert a trace to another format, merge traces as jobs, or edit a trace.

FILE is a trace in any format that can be read; the default is standard input. gzip and zstd are decompressed. A trace
of one file per rank is named by its folder, its file of rank 0, or the common part of the names. -o FOLDER/ converts
each FILE on its own. Outputs appear complete or not at all; losses are reported on standard error.`,
		Example: `  traceconv x.goal -o x.parquet
  traceconv traces/ -o app.parquet
  traceconv --lower collectives=ring x.parquet -o x.goal
  traceconv --job train.parquet,count=4 --job app.goal@5ms -o x.parquet`,
		Args: cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			if jobs < 1 {
				return cli.Usagef("--jobs: expected 1 or more, found %d", jobs)
			}
			plan, err := planning.Plan(p, args)
			if err != nil {
				return err
			}
			rescales, err := rescale.asked(cmd)
			if err != nil {
				return err
			}
			if rescales && plan != nil {
				return cli.Usagef("--rescale is for single traces: rescale each job in a run of its own")
			}
			names := args
			toSet, err := set.asked(cmd)
			switch {
			case err != nil:
				return err
			case toSet && plan != nil:
				return cli.Usagef("a plan makes one trace: write it to a file with -o, and publish the file")
			case plan == nil:
				if !toSet {
					if names, err = p.InputNames(args); err != nil {
						return err
					}
				}
				edit, err := planning.Edit(p)
				if err != nil {
					return err
				}
				if edit != nil {
					c.edit = func(t *dag.Trace, name string) (dag.Source, error) {
						t, err := edit(t, name)
						return dag.FromTrace(t), err
					}
				}
				if rescales {
					rescale.options.Seed, _ = cmd.Flags().GetInt64("seed")
					c.seed, c.edit = &rescale.options.Seed, rescale.edit(p, edit)
				}
			}
			output, err := p.OutputFormat(write, namedOutput(write.Output))
			if err != nil {
				return err
			}
			if !toSet && !isFolder(write.Output) {
				if err := c.batch.single(&lowering); err != nil {
					return err
				}
			}
			lowering.For(output)
			if c.lower, err = lowering.Pass(); err != nil {
				return err
			}
			if c.passInputs, err = lowering.Inputs(); err != nil {
				return err
			}
			if rescales {
				if (toSet || isFolder(write.Output)) && rescale.report != "" {
					return cli.Usagef("--rescale-report is for a single output")
				}
				if err := p.CheckOutput(rescale.report, false); err != nil {
					return err
				}
				second, err := rescale.open(p, read)
				if err != nil {
					return err
				}
				c.passInputs = append(c.passInputs, second...)
			}
			c.p, c.read, c.write, c.lowers, c.retitle = p, read, &write, lowering.Asked(), cmd.Flags().Changed("title")
			write.Imitate(&read)
			if toSet {
				return c.publish(&set, cmd, args, jobs)
			}
			if isFolder(write.Output) {
				if plan != nil {
					return cli.Usagef("a plan makes one trace: name a file with -o")
				}
				if lowering.Reports() {
					return cli.Usagef("--lowered is for a single output")
				}
				if c.shard, err = shards.Shard(os.Getenv); err != nil {
					return err
				}
				return c.convertAll(names, write, jobs)
			}
			if shards.Given() {
				return cli.Usagef("--shard is for many inputs: name a folder, as in -o out/")
			}
			to, err := p.Target(write)
			if err != nil {
				return err
			}
			if plan != nil {
				for _, name := range args {
					c.files = append(c.files, p.Named(dag.Input{Name: name})[0].Name)
				}
				return c.compose(plan, to)
			}
			return c.convert(names, to, nil)
		},
	}
	flags := cmd.Flags()
	flags.SortFlags = false
	set.register(cmd)
	c.batch.register(cmd)
	shards.Register(cmd, "inputs")
	manual.Topic(cmd, manual.Group{Owner: "shards", Title: "parts of a batch, for tasks of a cluster", Page: shardsPage,
		File: "docs/reference/cli.md"})
	flags.StringVar(&c.title, "title", "", "title of the trace")
	flags.IntVarP(&jobs, "jobs", "j", runtime.GOMAXPROCS(0), "inputs converted concurrently")
	flags.Lookup("jobs").DefValue = "all cores"
	cli.Aside(flags, "jobs")
	write.Register(p, cmd, "output `file`, or a folder for one output per input")
	read.Register(p, cmd)
	lowering.Register(p, cmd)
	planning.Register(cmd)
	rescale.register(cmd)
	p.AddFormats(cmd)
	return cmd
}

// shardsPage is the help of shards.
const shardsPage = `-o FOLDER/ --shard I/N converts one of N parts of the inputs, numbered from 0.

  traceconv -o out/ --shard 3/16 traces/*.goal
  sbatch --array=0-39 --wrap 'traceconv -o out/ --shard auto --shards 40 traces/*.goal'

Inputs are sorted by name; every task needs the same list. The outputs of all parts are those of one run, byte for byte.

With --shard auto, the number of the task comes from SLURM_ARRAY_TASK_ID, else JOB_COMPLETION_INDEX (Kubernetes), else
SLURM_PROCID with SLURM_NTASKS as the number of parts (srun).`

// conversion is the work on each input.
type conversion struct {
	p       *cli.Program
	read    cli.ReadFlags
	lower   cli.Pass
	lowers  bool                                                // lower changes the trace
	edit    func(t *dag.Trace, name string) (dag.Source, error) // edits of a single trace, or nil
	seed    *int64                                              // of edit, if it draws
	retitle bool
	title   string
	shard   cluster.Shard // of the inputs for a folder
	write   *cli.WriteFlags

	batch batchFlags
	entry *batch.Entry // of the input in a batch; nil outside of one

	publishing  bool           // normalize the provenance of inputs
	storeFormat *format.Format // of the stores of a set

	files      []string    // names of the arguments, for the provenance of a composition
	passInputs []dag.Input // files that flags of passes and edits name
}

// convert converts one trace. progress counts the bytes read; it may be nil.
func (c *conversion) convert(files []string, to *cli.Target, progress *cli.Progress) error {
	in, err := c.p.OpenFiles(files, c.read, cli.ReadOptions{
		Digest: to.KeepsProvenance() || c.batch.report != "", Progress: progress,
	})
	if err != nil {
		return err
	}
	defer in.Close()
	if c.edit == nil && (in.Generates() || c.streams(in, to)) {
		if c.lowers || in.Generates() {
			return c.convertBatches(in.Source, in, to)
		}
		source := in.Source
		if to.Format.Name != in.Format.Name { // a store from a store is a matter of processors
			defer c.economize(to)()
			source = dag.Gradual(source)
		}
		return c.writeBatches(source, in, to, in.DoneReading)
	}
	if c.edit == nil && !c.lowers && c.canStream(in, to) {
		if s, err := in.Stream(); err != nil {
			return err
		} else if s != nil {
			defer c.economize(to)()
			return c.p.WriteStream(in, s, func(m *dag.Meta) error { return c.describe(m, in, to) }, to)
		}
	}
	t, err := in.Read()
	if err != nil {
		return err
	}
	if c.edit != nil || c.lowers { // the result may exceed the memory
		s := dag.FromTrace(t)
		if c.edit != nil {
			if s, err = c.edit(t, in.Name); err != nil {
				return err
			}
		}
		if c.lowers {
			if s, err = c.lower(s, in.Name); err != nil {
				return format.InFile(in.Name, err)
			}
		}
		return c.writeBatches(s, in, to, in.Close) // the output may replace the input
	}
	if err := c.describe(&t.Meta, in, to); err != nil {
		return err
	}
	in.Close() // the output may replace it
	return c.p.WriteTrace(t, to)
}

// streams reports whether a trace that is not edited is converted batch by batch. An output that replaces its input
// needs the input to be closed first.
func (c *conversion) streams(in *cli.OpenTrace, to *cli.Target) bool {
	return in.Streams() && c.canStream(in, to)
}

// canStream reports whether the output can be written from a source that reads the input meanwhile.
func (c *conversion) canStream(in *cli.OpenTrace, to *cli.Target) bool {
	return (c.lowers || to.Format.WriteSource != nil) && !in.IsFile(to.Path)
}

// economize makes a conversion that reads its input meanwhile take little memory.
func (c *conversion) economize(to *cli.Target) (stop func()) {
	to.Frugal = true
	return memory.Economize()
}

// convertBatches lowers a source that reads the input, and writes it batch by batch.
func (c *conversion) convertBatches(s dag.Source, in *cli.OpenTrace, to *cli.Target) error {
	s, err := c.lower(s, in.Name)
	if err != nil {
		return format.InFile(in.Name, err)
	}
	return c.writeBatches(s, in, to, in.DoneReading)
}

// writeBatches writes a source batch by batch, after a call of done.
func (c *conversion) writeBatches(s dag.Source, in *cli.OpenTrace, to *cli.Target, done func()) error {
	h, err := s.Header()
	if err != nil {
		return format.InFile(in.Name, err)
	}
	described := *h
	if err := c.describe(&described.Meta, in, to); err != nil {
		return err
	}
	done()
	return c.p.WriteSource(dag.WithHeader(s, &described), to)
}

// compose writes the trace of a plan.
func (c *conversion) compose(plan *jobs.Plan, to *cli.Target) error {
	plan.NoNodes = slices.Contains([]string{"goal", "goalbin"}, to.Format.Name)
	made, err := plan.Build(c.p, c.read, cli.ReadOptions{Digest: true}, c.lower)
	if err != nil {
		return err
	}
	h, err := made.Source.Header()
	if err != nil {
		return format.InFile(plan.Name(), err)
	}
	described := *h
	if c.retitle {
		described.Title = c.title
	}
	described.Provenance = append(slices.Clip(h.Provenance), c.p.Provenance(cli.Made{
		Seed: made.Seed, Inputs: append(made.Inputs, c.passInputs...), Files: c.files,
	}, c.write))
	return c.p.WriteSource(dag.WithHeader(made.Source, &described), to)
}

// describe sets the title and the provenance.
func (c *conversion) describe(meta *dag.Meta, in *cli.OpenTrace, to *cli.Target) error {
	if c.retitle {
		meta.Title = c.title
	}
	if !to.KeepsProvenance() && c.batch.report == "" {
		c.note(in, nil)
		return nil
	}
	inputs, err := in.Inputs()
	if err != nil {
		return err
	}
	if c.note(in, inputs); !to.KeepsProvenance() {
		return nil
	}
	if c.publishing {
		meta.Provenance = slices.Clone(meta.Provenance)
		for i, step := range meta.Provenance {
			meta.Provenance[i] = origin.Normalize(step)
		}
	}
	meta.Provenance = append(meta.Provenance, c.made(in, inputs))
	return nil
}

// made returns the entry of the provenance of a converted trace.
func (c *conversion) made(in *cli.OpenTrace, inputs []dag.Input) dag.Provenance {
	return c.p.Provenance(cli.Made{
		Seed: cmp.Or(c.seed, in.Seed()), Inputs: slices.Concat(inputs, c.passInputs), Files: []string{inputs[0].Name},
		From: in,
	}, c.write)
}

// note adds size and digest of an input to its entry in the report of the batch.
func (c *conversion) note(in *cli.OpenTrace, inputs []dag.Input) {
	if c.entry == nil {
		return
	}
	c.entry.Read = max(in.Size, 0)
	if len(inputs) > 0 {
		c.entry.SHA256 = origin.Digest(inputs)
	}
}
