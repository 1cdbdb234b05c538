// This file has the flag for lowering collectives.

package cli

import (
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/tracedag/tracedag/dag/lower"
	"github.com/tracedag/tracedag/formats/format"
)

// LowerFlags are the flags of a program that can turn high-level ops into sends, receives and calcs.
type LowerFlags struct {
	rules []string
}

// Register adds the flags to the command.
func (f *LowerFlags) Register(cmd *cobra.Command) {
	cmd.Flags().StringArrayVar(&f.rules, "lower", nil,
		"turn collectives into sends and receives, by a `choice` of algorithms such as collectives=ring or "+
			"'mpich;allreduce=ring:>1MiB&ranks>=8,recdoubling', or just collectives for the default ones; may be repeated")
}

// Asked reports whether the flags ask for anything.
func (f *LowerFlags) Asked() bool {
	return len(f.rules) > 0
}

// Pass returns the function that the flags ask for, one that returns its argument where they ask for nothing. What it
// returns is made while it is read.
func (f *LowerFlags) Pass() (func(format.Source) (format.Source, error), error) {
	if len(f.rules) == 0 {
		return func(s format.Source) (format.Source, error) { return s, nil }, nil
	}
	rules := slices.DeleteFunc(slices.Clone(f.rules), func(rule string) bool {
		return strings.TrimSpace(rule) == "collectives"
	})
	choice, err := lower.ParseChoice(strings.Join(rules, ";"))
	if err != nil {
		return nil, Usagef("--lower: %v", err)
	}
	return func(s format.Source) (format.Source, error) { return lower.SourceOf(s, choice) }, nil
}
