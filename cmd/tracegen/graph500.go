// This file binds the generator dag/gen/graph500 to its flags.

package main

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/tracedag/tracedag/dag"
	"github.com/tracedag/tracedag/dag/gen/graph500"
	"github.com/tracedag/tracedag/formats/format"
	"github.com/tracedag/tracedag/internal/cli"
	"github.com/tracedag/tracedag/internal/units"
)

func newGraph500(p *cli.Program) *cobra.Command {
	var g generation
	var seed int64
	var link units.Rate
	var printsModel, asJSON bool
	params := graph500.Default()
	cmd := &cobra.Command{
		Use:   "graph500",
		Short: "the breadth-first search of Graph500",
		Long: `Graph500 makes the trace of a breadth-first search of Graph500 by a model of its traffic: in each
level of the search every process generates queries, sends them in messages to random others, works
on those that it gets, and tells all others that it is done; an all-reduce ends the level.

The amounts are drawn for each process from laws that depend on the size of the graph and on the
degree of the root; --print-model prints the laws instead of a trace.`,
		Example: `  tracegen graph500 --scale 20 --nodes 72 | simulate
  tracegen graph500 --scale 26 --query-time mont-blanc --seed 7 -o search.parquet
  tracegen graph500 --print-model --scale 26 --root-degree 16 --link 40Gbps`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if printsModel {
				return g.printModel(params, seed, link, asJSON)
			}
			if asJSON || cmd.Flags().Changed("link") {
				return cli.Usagef("--json and --link are for --print-model")
			}
			return g.runSource(&seed, func() (format.Source, error) { return graph500.NewSource(params, seed) })
		},
	}
	flags := cmd.Flags()
	flags.SortFlags = false
	flags.IntVar(&params.Scale, "scale", params.Scale, "the graph has 2^scale vertices")
	flags.IntVar(&params.EdgeFactor, "edge-factor", params.EdgeFactor, "edges for each vertex")
	flags.IntVar(&params.Nodes, "nodes", params.Nodes, "number of processes, one a rank, each on a node of its own")
	flags.Int64Var(&params.Coalescing, "coalescing", params.Coalescing, "queries of a full message")
	flags.Var((*queryTime)(&params.QueryTime), "query-time",
		"what a process takes for a query, or a machine of which that is known: "+strings.Join(machineNames(), ", "))
	cli.CompleteWith(cmd, "query-time", machineNames())
	flags.Int64Var(&params.RootDegree, "root-degree", params.RootDegree, "degree of the root; 0: drawn")
	flags.IntVar(&params.RootProcess, "root-process", params.RootProcess, "process that has the root; -1: drawn")
	flags.Float64Var(&params.Variation, "variation", params.Variation,
		"what the standard deviations of the amounts are multiplied by; 0: all processes send the same")
	choiceVar(cmd, &params.Eq7, "eq7", []graph500.Equation7{graph500.ReferenceEq7, graph500.PrintedEq7},
		"form of equation 7: that of the reference program, which fits measured graphs, or that of the paper")
	flags.BoolVar(&params.HIntDiv, "h-intdiv", params.HIntDiv,
		"the division in equation 13 drops the fraction, as in the reference program")
	choiceVar(cmd, &params.Injection, "inj",
		[]graph500.Injection{graph500.ReferenceInjection, graph500.PaperInjection},
		"how long generating a message takes: the time of its queries by --packet-phits, or all of it")
	flags.Int64Var(&params.PacketPhits, "packet-phits", params.PacketPhits, "phits of a packet, for --inj ref")
	cli.TimeVar(flags, &params.ConsumeMin, "consume-min", params.ConsumeMin, 0,
		"the least that a process takes for a message that it gets, such as the time of a packet on the link")
	cli.SizeVar(flags, &params.MessageBytes, "message-bytes", params.MessageBytes,
		"size of a message, however full; 0: 16 bytes for each query of a full one")
	choiceVar(cmd, &params.Notices, "notices", []graph500.Notices{graph500.AllNotices, graph500.NoNotices},
		"who is told that a process has ended a level")
	cli.SizeVar(flags, &params.ControlBytes, "control-bytes", params.ControlBytes,
		"size of notices and of messages of the all-reduce; 0: as --message-bytes")
	flags.IntVar(&params.MaxLevels, "max-levels", params.MaxLevels, "levels at most, level 0 among them")
	flags.Float64Var(&params.Rest, "rest", params.Rest,
		"share of all queries that may be left when the search ends, from level 5 on")
	flags.Int64Var(&seed, "seed", 1, "seed of every random choice")
	flags.BoolVar(&printsModel, "print-model", false, "print what the equations of the model give, not a trace")
	flags.BoolVar(&asJSON, "json", false, "with --print-model: JSON instead of a table")
	cli.RateVar(flags, &link, "link", link, "", "with --print-model: bandwidth of a node, for the injection probability")
	g.register(p, cmd)
	return cmd
}

// printModel prints what the equations give.
func (g *generation) printModel(params graph500.Params, seed int64, link units.Rate, asJSON bool) error {
	if g.lower.Asked() || g.write.To != "" {
		return cli.Usagef("--print-model makes no trace: --to and --lower are for those")
	}
	bytePicoseconds := 0.0
	if link.Num > 0 {
		bytePicoseconds = float64(link.Num) / float64(link.Den)
	}
	d, err := graph500.Describe(params, seed, bytePicoseconds)
	if err != nil {
		return cli.Usagef("%v", err)
	}
	out, err := g.p.Create(g.write.Output, false)
	if err != nil {
		return err
	}
	defer out.Close()
	if asJSON {
		encoder := json.NewEncoder(out)
		encoder.SetIndent("", "  ")
		err = encoder.Encode(d)
	} else {
		err = printDescription(out, d)
	}
	if err != nil {
		return out.Failed(err)
	}
	return out.Commit()
}

func printDescription(w io.Writer, d *graph500.Description) error {
	tab := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintf(tab, "graph\tscale %d, edge factor %d, %d ends of edges\n", d.Scale, d.EdgeFactor, d.TotalEdges)
	fmt.Fprintf(tab, "processes\t%d, the root's is %d, %d queries a message\n", d.Nodes, d.RootProcess, d.Coalescing)
	fmt.Fprintf(tab, "equations\t7: %s, integer division in 13: %v\n", d.Eq7, d.HIntDiv)
	r := d.RootDegree
	fmt.Fprintf(tab, "root degree\t%d; drawn: median %.6g, mean %.6g, logarithm %.6g +- %.6g\n",
		r.Value, r.Median, r.Mean, r.Mu, r.Sigma)
	if d.InjectionProbability != nil {
		fmt.Fprintf(tab, "injection probability\t%.6g\n", *d.InjectionProbability)
	}
	if err := tab.Flush(); err != nil {
		return err
	}
	tab = tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprint(tab, "\nlevel\tmean\tsigma\ttruncated\tqueries\tdestinations\tmessages\t\n")
	for _, l := range d.Levels {
		fmt.Fprintf(tab, "%d\t%.6g\t%.6g\t%.6g\t%.6g\t%.6g\t%.6g\t\n", l.Level, l.Mean, l.Sigma, l.MeanTruncated,
			l.QueriesPerProcess, l.Destinations, l.MessagesPerProcess)
	}
	return tab.Flush()
}

// queryTime is a flag whose value is a time, or the name of a machine.
type queryTime dag.Time

func (q *queryTime) String() string { return dag.Time(*q).String() }
func (q *queryTime) Type() string   { return "time" }

func (q *queryTime) Set(s string) error {
	for _, m := range graph500.Machines {
		if strings.EqualFold(s, m.Name) {
			*q = queryTime(m.QueryTime)
			return nil
		}
	}
	t, err := units.ParseTime(s, 0)
	if err != nil {
		return fmt.Errorf("%w, or one of %s", err, strings.Join(machineNames(), ", "))
	}
	*q = queryTime(t)
	return nil
}

func machineNames() (names []string) {
	for _, m := range graph500.Machines {
		names = append(names, m.Name)
	}
	return names
}
