// This file declares flags from tables of parameters.

package cli

import (
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/tracedag/tracedag/internal/manual"
	"github.com/tracedag/tracedag/internal/origin"
	"github.com/tracedag/tracedag/param"
)

// Options are the flags of a command that owners declare as tables. The flags only collect texts, because the owners in
// use are known only after all flags are parsed.
type Options struct {
	flags  *pflag.FlagSet
	texts  param.Texts
	owners map[string][]string // owners by flag; "" for the program itself
	values map[string][]string // values that shells offer, by flag
	others map[string][]string // further names, by flag
}

// NewOptions returns an empty set of options of a command.
func NewOptions(cmd *cobra.Command) *Options {
	return &Options{cmd.Flags(), param.Texts{}, map[string][]string{}, map[string][]string{}, map[string][]string{}}
}

// Add defines the flags of a group. Owners may share a flag, also with the command (--seed).
func (o *Options) Add(cmd *cobra.Command, g manual.Group) {
	for i := range g.Params {
		p := &g.Params[i]
		if p.Key {
			continue
		}
		o.others[p.Name] = append(o.others[p.Name], p.Aliases...)
		for k, name := range p.Names() {
			o.define(cmd, &g, p, name, k > 0 || p.Hide)
			o.owners[name] = append(o.owners[name], g.Owner)
		}
	}
	if g.Topic {
		manual.Of(cmd).Add(g)
	}
}

func (o *Options) define(cmd *cobra.Command, g *manual.Group, p *param.Param, name string, hidden bool) {
	o.values[name] = append(o.values[name], g.Params.Completions(p)...)
	if o.flags.Lookup(name) != nil {
		return
	}
	letter := p.Letter
	if name != p.Name {
		letter = ""
	}
	f := o.flags.VarPF(&collected{of: o, texts: o.texts, name: name, kind: p.ArgName(), bare: p.Bare != "",
		write: p.Beside}, name,
		letter, p.Usage())
	f.DefValue, f.NoOptDefVal, f.Hidden = p.Initial, p.Bare, hidden
	origin.Mark(f, !p.Beside)
	g.Place(f, p.Heading)
	if p.Bare == "" {
		completeFrom(cmd, name, func() []string { return o.values[name] })
	}
}

// collected is a flag that collects its texts.
type collected struct {
	of    *Options
	texts param.Texts
	name  string
	kind  string
	bare  bool
	write bool // names outputs
}

func (c *collected) String() string { return strings.Join(c.texts[c.name], ",") }

// Type returns the placeholder in help; "bool" makes a flag that needs no value.
func (c *collected) Type() string {
	if c.bare {
		return "bool"
	}
	return c.kind
}

func (c *collected) Set(text string) error {
	c.texts[c.name] = append(c.texts[c.name], text)
	return nil
}

// Outputs returns the names of outputs on the command line.
func (c *collected) Outputs() []string {
	if c.write {
		return c.texts[c.name]
	}
	return nil
}

// Texts returns the texts of the flag on the command line.
func (c *collected) Texts() []string { return c.texts[c.name] }

// FlagTexts returns the texts of a flag on the command line: all texts of an owner's flag, the value of a flag of the
// command.
func FlagTexts(f *pflag.Flag) []string {
	if c, ok := f.Value.(*collected); ok {
		return c.texts[c.name]
	}
	return []string{f.Value.String()}
}

// Text returns the last text of a flag on the command line, "" if there is none.
func (o *Options) Text(name string) string {
	f := o.flags.Lookup(name)
	if f == nil || !f.Changed {
		return ""
	}
	texts := FlagTexts(f)
	return texts[len(texts)-1]
}

// Given reports whether the command line sets a flag, by any of its names.
func (o *Options) Given(name string) bool {
	return o.flags.Changed(name) || slices.ContainsFunc(o.others[name], o.flags.Changed)
}

// Apply sets the parameters of a table from their flags. Its errors are usage errors.
func (o *Options) Apply(set param.Set) error {
	texts := make(param.Texts, len(o.texts))
	for i := range set {
		for _, name := range set[i].Names() {
			if f := o.flags.Lookup(name); f != nil && f.Changed {
				texts[name] = FlagTexts(f)
			}
		}
	}
	return FlagError(set.Apply(texts))
}

// FlagError converts an [*param.Error] to a usage error that names the flag, and returns any other error unchanged.
func FlagError(err error) error {
	bad, ok := err.(*param.Error)
	switch {
	case !ok:
		return err
	case bad.Name == "":
		return Usagef("%v", bad.Err)
	case bad.Text != "":
		return Usagef("invalid argument %q for \"--%s\" flag: %v", bad.Text, bad.Name, bad.Err)
	}
	return Usagef("--%v", bad)
}

// Foreign returns an error if the command line sets a flag of an owner that the run does not use.
func (o *Options) Foreign(kind string, used ...string) error {
	var foreign error
	o.flags.Visit(func(f *pflag.Flag) {
		of := o.owners[f.Name]
		shared := func(owner string) bool { return owner == "" || slices.Contains(used, owner) }
		if len(of) == 0 || foreign != nil || slices.ContainsFunc(of, shared) || !o.collects(f) {
			return
		}
		last, owners := len(of)-1, of[len(of)-1]+" "+kind
		if last > 0 {
			owners = strings.Join(of[:last], ", ") + " and " + owners + "s"
		}
		foreign = Usagef("--%s is for the %s, not for %s", f.Name, owners, strings.Join(used, ", "))
	})
	return foreign
}

// collects reports whether a flag belongs to owners only, not also to the command.
func (o *Options) collects(f *pflag.Flag) bool {
	_, is := f.Value.(*collected)
	return is
}

// Owners returns the owners of a flag.
func (o *Options) Owners(flag string) []string {
	return o.owners[flag]
}
