// Package tracegen is the program tracegen: its flags and its output. Command tracegen and package tracedag run it.
package tracegen

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/tracedag/tracedag/dag/gen/generator"
	"github.com/tracedag/tracedag/formats/vef/model"
	"github.com/tracedag/tracedag/internal/cli"
	"github.com/tracedag/tracedag/internal/manual"
	"github.com/tracedag/tracedag/param"
)

// New returns a function that returns the program's command with the given generators.
func New(generators []*generator.Generator) func(*cli.Program) *cobra.Command {
	return func(p *cli.Program) *cobra.Command { return newTracegen(p, generators) }
}

func newTracegen(p *cli.Program, generators []*generator.Generator) *cobra.Command {
	var names []string
	for _, g := range generators {
		names = append(names, g.Name)
	}
	cmd := &cobra.Command{
		Use:   "tracegen",
		Short: "make a synthetic trace",
		Long: `Generate the trace of a workload model.

The trace goes to standard output or to a file, as a store (Parquet) unless --to or the name
of the file selects another format. The same flags and seed generate the same bytes.`,
		Example: `  tracegen horovod | simulate
  tracegen horovod --ranks 64 --seed 7 -o horovod.parquet
  tracegen pattern ring --ranks 16 --bytes 1MiB -o ring.goal`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) > 0 {
				return fmt.Errorf("unknown command %q%s", args[0], param.Suggest(args[0], names))
			}
			return nil
		},
		RunE: func(*cobra.Command, []string) error {
			return cli.MissingName("expected the name of a generator, such as horovod", list(generators))
		},
	}
	p.AddCatalog(cmd, "list", "list the generators", func() []cli.Entry { return entries(generators) })
	for _, group := range generator.Groups() {
		cmd.AddGroup(&cobra.Group{ID: group, Title: group})
	}
	for _, g := range generators {
		cmd.AddCommand(newGenerator(p, g))
	}
	return cmd
}

// list returns a line per generator: name and title.
func list(generators []*generator.Generator) (lines []string) {
	for _, g := range generators {
		lines = append(lines, fmt.Sprintf("  %-13s %s", g.Name, g.Title))
	}
	return lines
}

// entries describes the generators.
func entries(generators []*generator.Generator) (all []cli.Entry) {
	for _, g := range generators {
		config := g.New()
		e := cli.Entry{
			Name: g.Name, Title: g.Title, Group: g.Group, Aliases: []string{}, Capabilities: []string{},
			Parameters: cli.Parameters(config.Params(), g.Argument),
		}
		_, random := config.(generator.Random)
		for _, c := range []struct {
			name string
			has  bool
		}{{"random", random}, {"collectives", !g.Lowered}, {"extended VEF", model.Describes(config)}} {
			if c.has {
				e.Capabilities = append(e.Capabilities, c.name)
			}
		}
		all = append(all, e)
	}
	return all
}

// newGenerator returns the command of a generator.
func newGenerator(p *cli.Program, g *generator.Generator) *cobra.Command {
	r := &run{p: p, generator: g, config: g.New()}
	r.params = r.config.Params()
	cmd := &cobra.Command{
		Use: g.Name, Short: g.Title, Long: g.Page, Example: g.Example, GroupID: g.Group, Args: cobra.NoArgs,
		RunE: func(_ *cobra.Command, args []string) error {
			if g.Argument != "" && len(args) == 0 {
				return missingArgument(g, r.params.Find(g.Argument))
			}
			return r.run(args)
		},
	}
	if argument := r.params.Find(g.Argument); argument != nil {
		cmd.Use += " " + strings.ToUpper(argument.Name)
		cmd.ValidArgs = argument.Choices
		cmd.Args = func(_ *cobra.Command, args []string) error {
			if len(args) > 1 {
				return fmt.Errorf("expected one argument, found %d", len(args))
			}
			return nil
		}
	}
	flags := cmd.Flags()
	flags.SortFlags = false
	r.options = cli.NewOptions(cmd)
	manual.Of(cmd).Add(manual.Group{Owner: g.Name, Title: g.Title, Doc: "generators/" + g.Name, Topic: true,
		Quiet: true, Params: r.params})
	r.options.Add(cmd, manual.Group{Owner: g.Name, Title: "Options of " + g.Name, Params: r.params})
	for _, names := range g.Exclusive {
		cmd.MarkFlagsMutuallyExclusive(names...)
	}
	if model.Describes(r.config) {
		flags.BoolVar(&r.emitSpec, "emit-spec", false,
			"write the extended VEF trace (EXT) that describes the model, not the trace of the model")
	}
	r.registerOutput(cmd)
	return cmd
}

// missingArgument returns the error about a missing argument of a generator. It lists the choices with their
// descriptions from the generator's help.
func missingArgument(g *generator.Generator, argument *param.Param) error {
	if len(argument.Choices) == 0 {
		return cli.Usagef("expected the %s, as in tracegen %s %s", argument.Help, g.Name,
			strings.ToUpper(argument.Name))
	}
	var lines []string
	for _, choice := range argument.Choices {
		line := "  " + choice
		for text := range strings.SplitSeq(g.Page, "\n") {
			if fields := strings.Fields(text); strings.HasPrefix(text, "  ") && len(fields) > 0 && fields[0] == choice {
				line = text
			}
		}
		lines = append(lines, line)
	}
	return cli.MissingName(fmt.Sprintf("expected the %s, as in tracegen %s %s", argument.Help, g.Name,
		argument.Choices[0]), lines)
}
