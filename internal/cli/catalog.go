// This file lists formats, generators and backends with their parameters, as tables and as JSON.

package cli

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/tracedag/tracedag/formats/format"
	"github.com/tracedag/tracedag/internal/manual"
	"github.com/tracedag/tracedag/param"
)

// Entry describes a format, generator or backend. docs/reference/cli.md documents its JSON form.
type Entry struct {
	Name         string      `json:"name"`
	Title        string      `json:"title"`
	Group        string      `json:"group,omitempty"`
	Aliases      []string    `json:"aliases"`      // endings of file names for a format
	Capabilities []string    `json:"capabilities"` // such as "read"
	Parameters   []Parameter `json:"parameters"`
}

// Parameter describes a parameter of an entry.
type Parameter struct {
	Name     string              `json:"name"`
	Aliases  []string            `json:"aliases"`
	Kind     string              `json:"kind"` // "flag", "key" of --set, or "argument"
	Type     string              `json:"type"`
	Unit     string              `json:"unit,omitempty"` // base unit in results
	Default  string              `json:"default,omitempty"`
	Choices  []string            `json:"choices,omitempty"`
	Synonyms map[string][]string `json:"synonyms,omitempty"` // by choice
	Sweep    bool                `json:"sweep"`
	Repeated bool                `json:"repeated"`
	Doc      string              `json:"doc"`
}

// unitsOf are the base units of types.
var unitsOf = map[string]string{"time": "ps", "size": "B"}

// Parameters describes a table of parameters. argument names the key that is a positional argument; "" for none.
func Parameters(set param.Set, argument string) []Parameter {
	all := []Parameter{}
	for i := range set {
		p := &set[i]
		if p.Hide {
			continue
		}
		kind := "flag"
		switch {
		case p.Key && p.Name == argument:
			kind = "argument"
		case p.Key:
			kind = "key"
		}
		d := Parameter{
			Name: p.Name, Aliases: append([]string{}, p.Aliases...), Kind: kind, Type: p.Value.Type(),
			Unit: unitsOf[p.Value.Type()], Default: p.Initial, Choices: p.Choices, Sweep: p.Sweeps,
			Repeated: p.Repeated,
			Doc:      p.Help,
		}
		for _, s := range p.Synonyms {
			if d.Synonyms == nil {
				d.Synonyms = map[string][]string{}
			}
			d.Synonyms[s.Choice] = append(d.Synonyms[s.Choice], s.Names...)
		}
		all = append(all, d)
	}
	return all
}

// formatEntries describes formats.
func formatEntries(all format.List) (entries []Entry) {
	for i := range all {
		f := &all[i]
		e := Entry{
			Name: f.Name, Title: f.Title, Aliases: append([]string{}, f.Extensions...), Parameters: []Parameter{},
			Capabilities: []string{},
		}
		for _, c := range []struct {
			name string
			has  bool
		}{
			{"read", f.Read != nil || f.Open != nil}, {"write", f.Write != nil || f.WriteFiles != nil},
			{"several files", f.Files != nil}, {"detected", f.Detect != nil}, {"binary", f.Binary},
			{"read in batches", f.Open != nil}, {"write in batches", f.WriteSource != nil},
			{"describes workloads", f.Generates},
		} {
			if c.has {
				e.Capabilities = append(e.Capabilities, c.name)
			}
		}
		for _, t := range []*format.OptionTable{f.Options, f.WriteOptions} {
			if t == nil {
				continue
			}
			for _, p := range Parameters(t.New().Params(), "") {
				if !slices.ContainsFunc(e.Parameters, func(have Parameter) bool { return have.Name == p.Name }) {
					e.Parameters = append(e.Parameters, p)
				}
			}
		}
		entries = append(entries, e)
	}
	return entries
}

// AddFormats adds the command that lists formats to the root command.
func (p *Program) AddFormats(root *cobra.Command) {
	p.AddCatalog(root, "formats", "list the formats", func() []Entry { return formatEntries(p.Formats) })
}

// AddCatalog adds a hidden command that lists entries, as a table or with --json as JSON.
func (p *Program) AddCatalog(root *cobra.Command, name, title string, entries func() []Entry) {
	var asJSON bool
	cmd := &cobra.Command{
		Use: name, Short: title, Args: cobra.NoArgs, Hidden: true, ValidArgsFunction: cobra.NoFileCompletions,
		Long: strings.ToUpper(title[:1]) + title[1:] + " with their capabilities.\n\n" +
			"--json adds their parameters: an array of objects, which docs/reference/cli.md describes.",
		RunE: func(*cobra.Command, []string) error {
			out, err := p.Create("", false)
			if err != nil {
				return err
			}
			defer out.Close()
			if asJSON {
				encoder := json.NewEncoder(out)
				encoder.SetEscapeHTML(false)
				encoder.SetIndent("", "  ")
				if err := encoder.Encode(entries()); err != nil {
					return err
				}
				return out.Commit()
			}
			for _, line := range manual.Table(catalogRows(entries()), p.width()) {
				fmt.Fprintln(out, line)
			}
			return out.Commit()
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON with all parameters")
	root.AddCommand(cmd)
}

func catalogRows(entries []Entry) [][]string {
	rows := [][]string{{"name", "title", "capabilities"}}
	for i := range entries {
		e := &entries[i]
		rows = append(rows, []string{e.Name, e.Title, strings.Join(e.Capabilities, ", ")})
	}
	return rows
}
