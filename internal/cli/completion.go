// This file offers values of flags to shells.

package cli

import (
	"context"
	"slices"
	"strings"

	"github.com/spf13/cobra"
)

// completions are the values that shells offer for the flags of a command. The context of the command holds them until
// offerCompletions passes them to cobra, which keeps them, and so the command, until the process ends: commands of
// points of a study never pass them.
type completions struct {
	cmd    *cobra.Command
	values map[string]func() []string // by flag
}

type completionsKey struct{}

// completionsOf returns the completions of a command.
func completionsOf(cmd *cobra.Command) *completions {
	ctx := cmd.Context()
	if ctx == nil {
		ctx = context.Background()
	}
	c, ok := ctx.Value(completionsKey{}).(*completions)
	if !ok || c.cmd != cmd { // none, or those of the parent
		c = &completions{cmd: cmd, values: make(map[string]func() []string)}
		cmd.SetContext(context.WithValue(ctx, completionsKey{}, c))
	}
	return c
}

// CompleteWith registers the values that shells offer for a flag, also for the items of a list after the first.
func CompleteWith(cmd *cobra.Command, flag string, values []string) {
	completeFrom(cmd, flag, func() []string { return values })
}

// completeFrom is [CompleteWith] for values that are known later. Without values, shells offer files.
func completeFrom(cmd *cobra.Command, flag string, values func() []string) {
	completionsOf(cmd).values[flag] = values
}

// offerCompletions passes the completions of a command and its subcommands to cobra.
func offerCompletions(cmd *cobra.Command) {
	for flag, values := range completionsOf(cmd).values {
		if err := cmd.RegisterFlagCompletionFunc(flag, completion(values)); err != nil {
			panic(err) // no such flag
		}
	}
	for _, sub := range cmd.Commands() {
		offerCompletions(sub)
	}
}

// completion returns the function that completes an item of a list.
func completion(values func() []string) cobra.CompletionFunc {
	return func(_ *cobra.Command, _ []string, text string) (offered []string, d cobra.ShellCompDirective) {
		list := text[:strings.LastIndexAny(text, ",;")+1]
		for _, value := range values() {
			if d |= cobra.ShellCompDirectiveNoFileComp; strings.HasSuffix(value, "=") || strings.HasSuffix(value, ":") {
				d |= cobra.ShellCompDirectiveNoSpace
			}
			if value = list + value; !slices.Contains(offered, value) { // owners may share values
				offered = append(offered, value)
			}
		}
		return offered, d
	}
}
