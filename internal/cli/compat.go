package cli

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
)

// compatFlag is the flag --compat. Without a value it enables the compatibility modes of readers. In programs that list
// simulators, a simulator may follow it and selects the compatibility mode of a backend.
type compatFlag struct {
	f    *ReadFlags
	bare int // number of occurrences without a simulator
}

func (c *compatFlag) Set(s string) error {
	if slices.Contains(c.f.Simulators, s) {
		c.f.Simulator = s
		return nil
	}
	on, err := strconv.ParseBool(s)
	if err != nil {
		return fmt.Errorf("expected %s or no value, found %q", strings.Join(c.f.Simulators, ", "), s)
	}
	c.f.Compat = on
	if on {
		c.bare++
	}
	return nil
}

// String returns the simulator, "false" if none is named.
func (c *compatFlag) String() string {
	if c.f == nil || c.f.Simulator == "" {
		return "false"
	}
	return c.f.Simulator
}

// Texts returns the value of the flag: the simulator, or whether the flag enables the compatibility modes of readers.
func (c *compatFlag) Texts() []string {
	if c.f.Simulator != "" {
		return []string{c.f.Simulator}
	}
	return []string{strconv.FormatBool(c.f.Compat)}
}

// Type returns "bool": pflag then accepts the flag without a value.
func (c *compatFlag) Type() string { return "bool" }

func (f *ReadFlags) registerCompat(cmd *cobra.Command) {
	flags := cmd.Flags()
	text := "reproduce bugs of the reference program"
	if len(f.Simulators) > 0 {
		text = "reproduce bugs of the original, such as " + f.Simulators[0]
	}
	flags.VarPF(&compatFlag{f: f}, "compat", "", text).NoOptDefVal = "true"
}

// simulatorAt returns the flag --compat of the command and the index of its value in the arguments: the first argument
// before "--" that names a simulator. The index is -1 if there is none, or if no --compat lacks a value.
func simulatorAt(cmd *cobra.Command, args []string) (*compatFlag, int) {
	flag := cmd.Flags().Lookup("compat")
	if flag == nil {
		return nil, -1
	}
	c, ok := flag.Value.(*compatFlag)
	if !ok || c.bare == 0 {
		return nil, -1
	}
	if dash := cmd.ArgsLenAtDash(); dash >= 0 {
		args = args[:dash]
	}
	return c, slices.IndexFunc(args, func(arg string) bool { return slices.Contains(c.f.Simulators, arg) })
}

// withoutSimulator returns the arguments without the simulator that --compat takes from them.
func withoutSimulator(cmd *cobra.Command, args []string) []string {
	if _, i := simulatorAt(cmd, args); i >= 0 {
		return slices.Delete(slices.Clone(args), i, i+1)
	}
	return args
}

// takeSimulator sets the flag to the simulator among the arguments and returns the other arguments.
func takeSimulator(cmd *cobra.Command, args []string) []string {
	rest := withoutSimulator(cmd, args)
	if c, i := simulatorAt(cmd, args); i >= 0 {
		c.bare--
		c.f.Simulator, c.f.Compat = args[i], c.bare > 0
	}
	return rest
}
