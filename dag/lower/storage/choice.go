package storage

import (
	"fmt"
	"strings"

	"github.com/tracedag/tracedag/dag/attr"
	"github.com/tracedag/tracedag/param"
)

// Choice is a storage system with the values of its parameters. The zero value is the first system with its defaults.
type Choice struct {
	system *system
	arch   architecture
	common *common
}

// common are the parameters of every system.
type common struct {
	order  order
	place  string
	header int64 // bytes
}

func newCommon() *common { return &common{order: order{kind: "serial"}, place: "grouped"} }

func (c *common) params() param.Set {
	return param.Set{
		param.New(&c.order, "order",
			"dependency of a host's accesses: serial: the previous one; window:N: the N-th "+
				"previous one; timed: their time in the trace; none: no dependency").
			Placeholder("serial|window:N|timed|none"),
		param.Choice(&c.place, "place", "ranks of the servers: grouped: after the hosts, kind by kind; "+
			"spread: among the hosts", "grouped", "spread").Placeholder("grouped|spread"),
		size(&c.header, "header", "bytes added to every message", 0, maxMessage).Default("0B"),
	}
}

// find returns the named system, nil if there is none.
func find(name string) *system {
	for i := range systems {
		if systems[i].name == name {
			return &systems[i]
		}
	}
	return nil
}

// Names returns the names of all storage systems.
func Names() []string {
	var names []string
	for _, s := range systems {
		names = append(names, s.name)
	}
	return names
}

// Default returns a system of [Names] with its defaults.
func Default(name string) *Choice { return &Choice{system: find(name)} }

// ParseChoice parses a choice such as
//
//	directdrive:slice=1MiB,replicas=3,order=timed,lookup=none
//
// that is, a system, then optionally ":" and parameters. docs/reference/storage.md lists them. A boolean parameter
// without a value is on. Spaces are ignored; "-" and "_" in a name are equivalent.
func ParseChoice(text string) (Choice, error) {
	name, settings, _ := strings.Cut(text, ":")
	c := Choice{system: find(strings.TrimSpace(name))}
	if c.system == nil {
		return Choice{}, fmt.Errorf("expected one of %s, found %q%s", strings.Join(Names(), ", "), name,
			param.Suggest(name, Names()))
	}
	c.complete()
	given := map[string]bool{}
	for setting := range strings.SplitSeq(settings, ",") {
		if setting = strings.TrimSpace(setting); setting == "" {
			continue
		}
		if err := c.set(setting, given); err != nil {
			return Choice{}, err
		}
	}
	return c, c.arch.check(given)
}

// complete replaces the zero value by the default system with its defaults.
func (c *Choice) complete() {
	if c.system == nil {
		c.system = &systems[0]
	}
	if c.arch == nil {
		c.arch, c.common = c.system.new(), newCommon()
	}
}

// set sets a parameter from a text such as "slice=1MiB".
func (c *Choice) set(setting string, given map[string]bool) error {
	name, text, found := strings.Cut(setting, "=")
	name, text = strings.TrimSpace(name), strings.TrimSpace(text)
	all := c.Params()
	p := all.Find(name)
	switch {
	case p == nil:
		return all.SetKey(name, text)
	case given[p.Name]:
		return fmt.Errorf("%s is listed twice", p.Name)
	case !found && p.Bare == "":
		return fmt.Errorf("expected %s=VALUE, such as %s=%v", p.Name, p.Name, p.Value)
	case !found:
		text = p.Bare
	}
	given[p.Name] = true
	return all.SetKey(p.Name, text)
}

// Params returns the table of the parameters, which are keys of --lower.
func (c *Choice) Params() param.Set {
	c.complete()
	all := append(c.arch.params(), c.common.params()...)
	for i := range all {
		if name := all[i].Name; strings.Contains(name, "-") {
			all[i] = all[i].Alias(strings.ReplaceAll(name, "-", "_"))
		} else if strings.Contains(name, "_") {
			all[i] = all[i].Alias(strings.ReplaceAll(name, "_", "-"))
		}
	}
	return all.AsKeys("Keys of " + c.system.name)
}

// About returns a description of the system.
func (c *Choice) About() string {
	c.complete()
	return c.system.about
}

// addTo returns the attributes of a trace with those of the choice added.
func (c *Choice) addTo(attrs string) (string, error) {
	settings := attr.Storage{"system": c.system.name}
	for _, p := range c.Params() {
		settings[p.Name] = p.Value.String()
	}
	attrs, err := settings.AddTo(attrs)
	if err != nil {
		return "", fmt.Errorf("the attributes of the trace: %w", err)
	}
	return attrs, nil
}
