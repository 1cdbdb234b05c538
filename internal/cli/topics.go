// This file prints the options of formats, passes and backends when help is asked for one of them.

package cli

import (
	"fmt"
	"io"
	"slices"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// topic is the options of one owner, which help lists on request.
type topic struct {
	owner  string
	names  []string // by which users ask for it, too
	groups []Group
}

type topics []*topic

func isHelp(arg string) bool { return arg == "--help" || arg == "-h" }

// topicsOf returns the topics of a command, in the order of their flags.
func topicsOf(cmd *cobra.Command) (all topics) {
	var seen []*Options
	cmd.Flags().VisitAll(func(f *pflag.Flag) {
		c, ok := f.Value.(*collected)
		if !ok || slices.Contains(seen, c.of) {
			return
		}
		seen = append(seen, c.of)
		for _, g := range c.of.groups {
			if !g.Topic {
				continue
			}
			i := slices.IndexFunc(all, func(t *topic) bool { return t.owner == g.Owner })
			if i < 0 {
				i, all = len(all), append(all, &topic{owner: g.Owner})
			}
			all[i].groups = append(all[i].groups, g)
			all[i].names = append(all[i].names, g.Names...)
		}
	})
	return all
}

// find returns the topic of a name, nil if there is none.
func (all topics) find(name string) *topic {
	for _, t := range all {
		if t.owner == name || slices.Contains(t.names, name) {
			return t
		}
	}
	return nil
}

// own reports whether a flag belongs to topics alone.
func (all topics) own(f *pflag.Flag) bool {
	c, ok := f.Value.(*collected)
	if !ok || all == nil {
		return false
	}
	for _, g := range c.of.groups {
		if !g.Topic && g.Params.Find(f.Name) != nil {
			return false
		}
	}
	return true
}

// print lists the topics, a line each.
func (all topics) print(w io.Writer, cmd *cobra.Command) {
	if len(all) == 0 {
		return
	}
	fmt.Fprintf(w, "\nFurther options (%s --help NAME lists them):\n", cmd.CommandPath())
	for _, t := range all {
		fmt.Fprintf(w, "  %-12s %s\n", t.owner, t.groups[0].Title)
	}
}

// print lists the options of the topic.
func (t *topic) print(w io.Writer, cmd *cobra.Command) {
	fmt.Fprintf(w, "%s, options of %s - %s\n", cmd.CommandPath(), t.owner, t.groups[0].Title)
	for _, g := range t.groups {
		if g.Page != "" {
			fmt.Fprintf(w, "\n%s\n", g.Page)
		}
	}
	for _, g := range t.groups {
		printGroup(w, "Options", g.Params)
	}
}
