package cli

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
)

// compatFlag is the flag --compat of readers, which turns their own compatibility on. In programs that name simulators it
// may be followed by one of them, and then means that.
type compatFlag struct{ f *ReadFlags }

// optionalValues is the annotation of a flag that may have a value behind it, of which these are all.
const optionalValues = "optional values"

func (c *compatFlag) Set(s string) error {
	if slices.Contains(c.f.Simulators, s) {
		c.f.Simulator = s
		return nil
	}
	on, err := strconv.ParseBool(s)
	if err != nil {
		return fmt.Errorf("expected %s or nothing, found %q", strings.Join(c.f.Simulators, ", "), s)
	}
	c.f.Compat = on
	return nil
}

// String returns the simulator, "false" if none is named.
func (c *compatFlag) String() string {
	if c.f == nil || c.f.Simulator == "" {
		return "false"
	}
	return c.f.Simulator
}

// Type says that the flag is used without a value.
func (c *compatFlag) Type() string { return "bool" }

func (f *ReadFlags) registerCompat(cmd *cobra.Command) {
	flags := cmd.Flags()
	text := "accept and do what the format's reference program does, its mistakes included"
	if len(f.Simulators) > 0 {
		text += "; followed by " + strings.Join(f.Simulators, " or ") + ": have the backend do what that simulator does"
	}
	flags.VarPF(&compatFlag{f}, "compat", "", text).NoOptDefVal = "true"
	if len(f.Simulators) > 0 {
		flags.SetAnnotation("compat", optionalValues, f.Simulators)
	}
}

// withOptionalValues returns the arguments with the values of such flags joined to them, for they would be taken for
// arguments.
func withOptionalValues(cmd *cobra.Command, args []string) []string {
	var joined []string
	for i := 0; i < len(args); i++ {
		arg := args[i]
		if arg == "--" {
			return append(joined, args[i:]...)
		}
		if name, long := strings.CutPrefix(arg, "--"); long && i+1 < len(args) {
			if flag := cmd.Flags().Lookup(name); flag != nil && slices.Contains(flag.Annotations[optionalValues], args[i+1]) {
				i++
				arg += "=" + args[i]
			}
		}
		joined = append(joined, arg)
	}
	return joined
}
