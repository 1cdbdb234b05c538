// This file formats parameters for help and documentation.

package param

import (
	"fmt"
	"slices"
	"strings"
)

// In returns the parameter below a heading of help and documentation.
func (p Param) In(heading string) Param { p.Heading = heading; return p }

// Under puts the named parameters below a heading of help and documentation, and returns the table. It panics if a name
// is missing.
func (s Set) Under(heading string, names ...string) Set {
	for _, name := range names {
		p := s.Find(name)
		if p == nil {
			panic("param: no parameter " + name)
		}
		p.Heading = heading
	}
	return s
}

// Section is the parameters of a table below one heading.
type Section struct {
	Heading string // "" for flags without a heading
	Keys    bool   // --set and --sweep set the parameters; they have no flags of their own
	Params  []*Param
}

// Sections returns the parameters that help lists by heading, flags first, in the order of the table.
func (s Set) Sections() (sections []*Section) {
	for _, keys := range []bool{false, true} {
		first := len(sections)
		for i := range s {
			p := &s[i]
			if p.Hide || p.Key != keys {
				continue
			}
			heading := p.Heading
			if heading == "" && keys {
				heading = keysHeading(s)
			}
			at := first
			for at < len(sections) && sections[at].Heading != heading {
				at++
			}
			if at == len(sections) {
				sections = append(sections, &Section{Heading: heading, Keys: keys})
			}
			sections[at].Params = append(sections[at].Params, p)
		}
	}
	return sections
}

// keysHeading returns the default heading of keys.
func keysHeading(s Set) string {
	if s.Find("set") != nil {
		return "Keys of --set"
	}
	return "Parameters of --sweep"
}

// Placeholder returns the placeholder that help prints for a type of value, such as "SIZE"; "" for a switch.
func Placeholder(kind string) string {
	switch kind {
	case "bool", "":
		return ""
	case "int", "int32", "int64", "uint", "count":
		return "N"
	case "float", "number":
		return "X"
	case "string", "strings", "stringArray":
		return "TEXT"
	}
	if strings.Contains(kind, "|") { // the values
		return kind
	}
	return strings.ToUpper(kind)
}

// Signature returns the syntax of the parameter, such as "--queue SIZE" or, for a key of --set, "window=N".
func (p *Param) Signature() string {
	value := Placeholder(p.ArgName())
	switch {
	case p.Key && (p.ArgName() == "" || value != "" && strings.Contains("[:", value[:1])): // with its own separator
		return p.Name + value
	case p.Key && value == "":
		return p.Name + "=on|off"
	case p.Key:
		return p.Name + "=" + value
	case p.Bare != "" || value == "":
		return "--" + p.Name
	}
	return "--" + p.Name + " " + value
}

// Usage returns the help text without the default. It lists the choices unless the text or the placeholder names them.
func (p *Param) Usage() string {
	if len(p.Choices) > 0 && !strings.Contains(p.Arg, "|") && !strings.Contains(p.Help, p.Choices[0]) {
		return p.Help + ": " + strings.Join(p.Choices, ", ")
	}
	return p.Help
}

// Markdown returns the tables of the parameters for a page of documentation, one per heading. General is the heading of
// the parameters that have none.
func (s Set) Markdown(general string) string {
	var b strings.Builder
	sections := s.Sections()
	for _, section := range sections {
		heading, name := section.Heading, "flag"
		if section.Keys {
			name = "key"
		}
		if heading == "" {
			heading = general
		}
		if len(sections) > 1 {
			fmt.Fprintf(&b, "\n%s:\n\n", heading)
		}
		fmt.Fprintf(&b, "| %s | default | |\n| --- | --- | --- |\n", name)
		for _, p := range section.Params {
			signature := p.Signature()
			if p.Letter != "" {
				signature = "-" + p.Letter + ", " + signature
			}
			fmt.Fprintf(&b, "| `%s` | %s | %s |\n", cell(signature), cell(p.Initial), cell(p.Usage()))
		}
	}
	return strings.TrimPrefix(b.String(), "\n")
}

// cell returns a text for a cell of a Markdown table.
func cell(text string) string {
	return strings.NewReplacer("|", `\|`, "\n", " ", "<", "&lt;").Replace(text)
}

// Completions returns the values of a parameter that shells offer. Those of the parameter "set" are the keys of the
// set, with an equals sign and the values that are names.
func (s Set) Completions(p *Param) (values []string) {
	values = slices.Concat(p.Choices, p.Shown)
	if p.Name != "set" {
		return values
	}
	for _, key := range s.Keys() {
		if len(key.Choices) == 0 {
			values = append(values, key.Name+"=")
		}
		for _, choice := range key.Choices {
			values = append(values, key.Name+"="+choice)
		}
	}
	return values
}
