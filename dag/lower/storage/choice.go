package storage

import (
	"fmt"
	"slices"
	"strings"

	"github.com/tracedag/tracedag/dag/attr"
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
	place  word
	header size
}

func newCommon() *common {
	return &common{order: order{kind: "serial"}, place: word{"grouped", []string{"grouped", "spread"}},
		header: size{0, 0, maxMessage}}
}

func (c *common) parameters() []parameter {
	return []parameter{
		{"order", "what the accesses of a host wait for: serial: the one before; window:N: the N-th before; " +
			"timed: their time in the trace; none: nothing", &c.order},
		{"place", "ranks of the servers: grouped: after the hosts, kind after kind; spread: among them", &c.place},
		{"header", "bytes added to every message", &c.header},
	}
}

// parameter is a named setting.
type parameter struct {
	name, meaning string
	value         value
}

// value is the value of a parameter.
type value interface {
	Set(text string) error
	String() string // in the form that Set parses
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

// IsChoice reports whether the text begins with the name of a storage system, as texts for [ParseChoice] do.
func IsChoice(text string) bool {
	name, _, _ := strings.Cut(text, ":")
	return find(strings.TrimSpace(name)) != nil
}

// ParseChoice parses a choice such as
//
//	directdrive:slice=1MiB,replicas=3,order=timed,lookup=none
//
// that is, a system, then optionally ":" and parameters. docs/reference/storage.md lists them. A boolean parameter without a
// value is on. Spaces are ignored; "-" and "_" in a name are equivalent.
func ParseChoice(text string) (Choice, error) {
	c, err := parseChoice(text)
	if err != nil {
		return Choice{}, fmt.Errorf("storage system %q: %w", text, err)
	}
	return c, nil
}

func parseChoice(text string) (Choice, error) {
	name, settings, _ := strings.Cut(text, ":")
	c := Choice{system: find(strings.TrimSpace(name))}
	if c.system == nil {
		return Choice{}, fmt.Errorf("expected one of %s, found %q", strings.Join(Names(), ", "), name)
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
	all := c.parameters()
	i := slices.IndexFunc(all, func(p parameter) bool { return p.is(name) })
	if i < 0 {
		var names []string
		for _, p := range all {
			names = append(names, p.name)
		}
		return fmt.Errorf("expected a parameter, one of %s, found %q", strings.Join(names, ", "), name)
	}
	p := &all[i]
	if given[p.name] {
		return fmt.Errorf("%s is there twice", p.name)
	}
	given[p.name] = true
	if _, ok := p.value.(*toggle); ok && !found {
		text = "on"
	} else if !found {
		return fmt.Errorf("expected %s=VALUE, such as %s=%v", p.name, p.name, p.value)
	}
	if err := p.value.Set(text); err != nil {
		return fmt.Errorf("%s: %w, found %q", p.name, err, text)
	}
	return nil
}

// is reports whether name is a spelling of the parameter's name.
func (p *parameter) is(name string) bool {
	return strings.ReplaceAll(p.name, "_", "-") == strings.ReplaceAll(name, "_", "-")
}

func (c *Choice) parameters() []parameter {
	return append(c.arch.parameters(), c.common.parameters()...)
}

// Help returns the parameters of every system with their defaults, in lines of at most width characters unless a single
// word is longer.
func Help(width int) string {
	var b strings.Builder
	for i := range systems {
		c := Choice{system: &systems[i]}
		c.complete()
		fmt.Fprintf(&b, "%s: %s\n", c.system.name, c.system.about)
		all, column := c.parameters(), 0
		for _, p := range all {
			column = max(column, len(p.name)+len("=")+len(p.value.String()))
		}
		for _, p := range all {
			setting := fmt.Sprintf("%s=%v", p.name, p.value)
			for _, line := range fold(p.meaning, width-column-4) {
				fmt.Fprintf(&b, "  %-*s  %s\n", column, setting, line)
				setting = ""
			}
		}
	}
	return b.String()
}

// fold breaks a text into lines at spaces.
func fold(text string, width int) (lines []string) {
	for word := range strings.FieldsSeq(text) {
		last := len(lines) - 1
		if last < 0 || len(lines[last])+len(" ")+len(word) > width {
			lines = append(lines, word)
		} else {
			lines[last] += " " + word
		}
	}
	return lines
}

// addTo returns the attributes of a trace with those of the choice added.
func (c *Choice) addTo(attrs string) (string, error) {
	settings := attr.Storage{"system": c.system.name}
	for _, p := range c.parameters() {
		settings[p.name] = p.value.String()
	}
	attrs, err := settings.AddTo(attrs)
	if err != nil {
		return "", fmt.Errorf("the attributes of the trace: %w", err)
	}
	return attrs, nil
}
