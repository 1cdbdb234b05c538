// This file adds the common flags, help and error handling to the cobra commands of all programs.

package cli

import (
	"errors"
	"fmt"
	"os"
	"regexp"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"golang.org/x/term"

	"github.com/tracedag/tracedag/internal/manual"
	"github.com/tracedag/tracedag/param"
)

// setUp adds the common flags, help and version to the program's root command.
func (p *Program) setUp(root *cobra.Command) {
	root.SilenceErrors, root.SilenceUsage = true, true
	root.DisableSuggestions = true
	root.Version = p.Version
	root.SetVersionTemplate("{{.Name}} {{.Version}}\n")
	root.SetArgs(append([]string{}, manual.First(p.Args[1:])...))
	root.SetIn(p.Stdin)
	root.SetOut(p.output)
	root.SetErr(p.Stderr)
	root.SetHelpFunc(p.help)
	root.SetFlagErrorFunc(flagError)
	root.CompletionOptions.HiddenDefaultCmd = true
	flags := root.PersistentFlags()
	flags.BoolVarP(&p.Quiet, "quiet", "q", false, "print errors only")
	flags.BoolVarP(&p.Verbose, "verbose", "v", false, "report each step on stderr")
	p.memory.Register(flags)
	Aside(flags, "quiet", "verbose", "max-memory")
	flags.SortFlags = false
	root.Flags().Bool("version", false, "print the version")
	p.addMan(root)
	root.SetHelpCommand(&cobra.Command{ // for completion only: manual.First replaces "help TOPIC"
		Use: "help [TOPIC]", Short: "print help about a topic", Hidden: true,
		ValidArgsFunction: func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
			topics := manual.Of(root).Topics()
			for _, sub := range root.Commands() {
				if sub.IsAvailableCommand() {
					topics = append(topics, sub.Name())
				}
			}
			return topics, cobra.ShellCompDirectiveNoFileComp
		},
	})
	p.watch(root)
	if !p.part {
		offerCompletions(root)
	}
}

// watch sets p.ran when a command begins its work: earlier errors are usage errors.
func (p *Program) watch(cmd *cobra.Command) {
	if run := cmd.RunE; run != nil {
		cmd.RunE = func(cmd *cobra.Command, args []string) error {
			p.ran = true
			if err := checkOutputs(cmd.Flags(), args); err != nil {
				return err
			}
			p.limitMemory(cmd.Context())
			return run(cmd, takeSimulator(cmd, args))
		}
	}
	if check := cmd.Args; check != nil {
		cmd.Args = func(cmd *cobra.Command, args []string) error { return check(cmd, withoutSimulator(cmd, args)) }
	}
	cmd.InitDefaultHelpFlag()
	cmd.Flags().Lookup("help").Usage = "print help, or --help TOPIC: about a topic"
	for _, sub := range cmd.Commands() {
		p.watch(sub)
	}
}

// flagError adds the nearest flag to the error about an unknown one.
func flagError(cmd *cobra.Command, err error) error {
	var unknown *pflag.NotExistError
	if !errors.As(err, &unknown) || unknown.GetSpecifiedShortnames() != "" {
		return err
	}
	var names []string
	add := func(f *pflag.Flag) {
		if !f.Hidden {
			names = append(names, f.Name)
		}
	}
	cmd.Flags().VisitAll(add)
	cmd.InheritedFlags().VisitAll(add)
	name := unknown.GetSpecifiedName()
	return fmt.Errorf("unknown flag: --%s%s", name, flagSuggestion(name, names))
}

// together matches the error of flags that cobra's groups exclude.
var together = regexp.MustCompile(`^if any flags in the group .* none of the others can be; \[(.*)\] were all set$`)

// exclusive rewords the error about flags that exclude each other. It returns other messages as they are.
func exclusive(message string) string {
	m := together.FindStringSubmatch(message)
	if m == nil {
		return message
	}
	return "--" + strings.Join(strings.Fields(m[1]), " and --") + " exclude each other"
}

func flagSuggestion(name string, names []string) string {
	if near := param.Nearest(name, names); near != "" {
		return "; did you mean --" + near + "?"
	}
	return ""
}

// NoSuch returns a usage error about an unknown name of a kind, such as "backend". The error lists the known names and
// suggests the nearest one.
func NoSuch(kind, name string, names []string) error {
	return Usagef("no %s %q, expected one of %s%s", kind, name, strings.Join(names, ", "),
		param.Suggest(name, names))
}

// help prints the help of a command or topic.
func (p *Program) help(cmd *cobra.Command, args []string) {
	if err := manual.Print(cmd.OutOrStdout(), p.width(), cmd, args); err != nil {
		p.helpErr = Usagef("%v", err)
	}
}

// width returns the width of the terminal on standard output in columns, 0 if it is not a terminal.
func (p *Program) width() int {
	width := 0
	if f, ok := p.Stdout.(*os.File); ok {
		width, _, _ = term.GetSize(int(f.Fd()))
	}
	return width
}
