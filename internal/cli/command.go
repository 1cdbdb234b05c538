// This file gives the cobra commands of all programs their common flags, help and handling of errors.

package cli

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

const exitStatusHelp = `Exit status:
  0    all went well
  1    bad input, or something that could not be done
  2    bad usage
%s  130  stopped by Ctrl-C
  141  nobody reads standard output any more
`

// setUp gives the program's root command what all programs have in common.
func (p *Program) setUp(root *cobra.Command) {
	root.SilenceErrors, root.SilenceUsage = true, true
	root.DisableSuggestions = true
	root.Version = p.Version
	root.SetVersionTemplate("{{.Name}} {{.Version}}\n")
	root.SetArgs(append([]string{}, p.Args[1:]...))
	root.SetIn(p.Stdin)
	root.SetOut(p.stdout)
	root.SetErr(p.Stderr)
	root.SetHelpFunc(help)
	root.CompletionOptions.HiddenDefaultCmd = true
	flags := root.PersistentFlags()
	flags.BoolVarP(&p.Quiet, "quiet", "q", false, "say nothing on stderr but errors")
	flags.BoolVarP(&p.Verbose, "verbose", "v", false, "explain on stderr what is being done")
	flags.SortFlags = false
	root.Flags().Bool("version", false, "print the version")
	p.watch(root)
}

// watch makes every command note that it began its work, so that errors before that are known for errors of usage.
func (p *Program) watch(cmd *cobra.Command) {
	if run := cmd.RunE; run != nil {
		cmd.RunE = func(cmd *cobra.Command, args []string) error {
			p.ran = true
			return run(cmd, takeSimulator(cmd, args))
		}
	}
	if check := cmd.Args; check != nil {
		cmd.Args = func(cmd *cobra.Command, args []string) error { return check(cmd, withoutSimulator(cmd, args)) }
	}
	for _, sub := range cmd.Commands() {
		p.watch(sub)
	}
}

// help prints the manual of cmd, or if an argument after --help names an owner of options, the part of that owner.
func help(cmd *cobra.Command, args []string) {
	w := cmd.OutOrStdout()
	topics := topicsOf(cmd)
	for i := slices.IndexFunc(args, isHelp) + 1; i < len(args); i++ {
		if t := topics.find(args[i]); i > 0 && t != nil {
			t.print(w, cmd)
			return
		}
	}
	text := cmd.Long
	if text == "" {
		text = cmd.Short
	}
	fmt.Fprintf(w, "%s - %s\n\nUsage:\n", cmd.CommandPath(), cmd.Short)
	if cmd.Runnable() && !cmd.HasAvailableSubCommands() {
		fmt.Fprintf(w, "  %s\n", cmd.UseLine())
	}
	if cmd.HasAvailableSubCommands() {
		fmt.Fprintf(w, "  %s COMMAND [flags]\n", cmd.CommandPath())
	}
	fmt.Fprintf(w, "\n%s\n", strings.TrimSpace(text))
	if cmd.HasAvailableSubCommands() {
		printCommands(w, cmd)
	}
	printSections(w, cmd)
	topics.print(w, cmd)
	if cmd.HasExample() {
		fmt.Fprintf(w, "\nExamples:\n%s\n", strings.TrimRight(cmd.Example, "\n"))
	}
	if cmd.Name() != "completion" && (cmd.Parent() == nil || cmd.Parent().Name() != "completion") {
		loss := ""
		if cmd.Flags().Lookup("strict") != nil {
			loss = "  3    nothing written, for --strict was given and something would have been lost\n"
		}
		fmt.Fprintf(w, "\n"+exitStatusHelp, loss)
		if !cmd.HasParent() {
			fmt.Fprintf(w, "\n'%s completion bash|zsh|fish|powershell' prints a completion script for that shell.\n", cmd.Name())
		}
	}
}

// printCommands lists the subcommands, by group if there are groups.
func printCommands(w io.Writer, cmd *cobra.Command) {
	list := func(group string) {
		for _, sub := range cmd.Commands() {
			if sub.IsAvailableCommand() && sub.GroupID == group {
				fmt.Fprintf(w, "  %-14s %s\n", sub.Name(), sub.Short)
			}
		}
	}
	fmt.Fprintf(w, "\nCommands (%s COMMAND --help says more):\n", cmd.CommandPath())
	list("")
	for i, group := range cmd.Groups() {
		if i > 0 {
			fmt.Fprintln(w)
		}
		fmt.Fprintf(w, " %s\n", group.Title)
		list(group.ID)
	}
}

// printSections lists the flags below the headings of their sections, and then the others.
func printSections(w io.Writer, cmd *cobra.Command) {
	var titles []string
	sections := map[string]*pflag.FlagSet{}
	topics := topicsOf(cmd)
	cmd.LocalFlags().VisitAll(func(f *pflag.Flag) {
		if topics.own(f) {
			return
		}
		title := ""
		if marks := f.Annotations[sectionAnnotation]; len(marks) > 0 {
			title = marks[0]
		}
		if sections[title] == nil {
			titles = append(titles, title)
			sections[title] = pflag.NewFlagSet(title, pflag.ContinueOnError)
			sections[title].SortFlags = false
		}
		sections[title].AddFlag(f)
	})
	for _, title := range titles {
		if title != "" {
			printFlags(w, title, sections[title].FlagUsagesWrapped(helpWidth))
		}
	}
	if rest := sections[""]; rest != nil && len(titles) == 1 {
		printFlags(w, "Flags", rest.FlagUsagesWrapped(helpWidth))
	} else if rest != nil {
		cmd.InheritedFlags().VisitAll(rest.AddFlag)
		printFlags(w, "Flags of all commands", rest.FlagUsagesWrapped(helpWidth))
		return
	}
	printFlags(w, "Flags of all commands", cmd.InheritedFlags().FlagUsagesWrapped(helpWidth))
}

func printFlags(w io.Writer, title, usages string) {
	if usages != "" {
		fmt.Fprintf(w, "\n%s:\n%s", title, usages)
	}
}
