package formats

import (
	"regexp"
	"slices"
	"strings"

	"github.com/tracedag/tracedag/formats/format"
)

var (
	optionTableName = regexp.MustCompile(`^[a-z][a-z0-9]*$`)
	optionName      = regexp.MustCompile(`^[a-z][a-z0-9-]*$`)
)

// tables returns the tables of options of all formats, each once.
func tables() []*format.OptionTable {
	var all []*format.OptionTable
	for _, f := range All {
		for _, table := range []*format.OptionTable{f.Options, f.WriteOptions} {
			if table != nil && !slices.Contains(all, table) {
				all = append(all, table)
			}
		}
	}
	return all
}

// checkTables checks the option tables of a format: names, help, and that the defaults are valid.
func (c *conformance) checkTables() {
	for _, table := range []*format.OptionTable{c.format.Options, c.format.WriteOptions} {
		if table == nil {
			continue
		}
		if !optionTableName.MatchString(table.Name) || table.Title == "" || strings.HasSuffix(table.Title, ".") {
			c.errorf("the option table %q has a bad name or title %q", table.Name, table.Title)
		}
		options := table.New()
		set := options.Params()
		names := map[string]bool{}
		for i := range set {
			p := &set[i]
			for _, name := range append(slices.Clone(p.Aliases), p.Name) {
				if !optionName.MatchString(name) || names[name] {
					c.errorf("the option %q has a bad name, or is there twice", name)
				}
				names[name] = true
			}
			if p.Help == "" || strings.HasSuffix(p.Help, ".") {
				c.errorf("the help %q of the option %s is no phrase", p.Help, p.Name)
			}
		}
		if checker, ok := options.(format.Checker); ok {
			if err := checker.Check(); err != nil {
				c.errorf("the default options are refused: %v", err)
			}
		}
		if again := table.New(); again == options {
			c.errorf("the option table %s makes the same options twice", table.Name)
		}
	}
}

// checkOptions checks that a sample is read and written like without options if they are the defaults, or those of
// another format.
func (c *conformance) checkOptions(s sample) {
	want := c.mustRead(s.files)
	for _, table := range tables() {
		r := c.read(s.files, format.ReadOptions{Own: table.New()})
		if r.err != nil {
			c.errorf("options %s: %v", table.Name, r.err)
		} else if d := differences(want, r.trace, false); d != nil {
			c.errorf("options %s: different %q", table.Name, d)
		}
	}
	if !c.written() {
		return
	}
	files, err := c.write(want, format.WriteOptions{})
	if err != nil {
		c.errorf("%v", err)
		return
	}
	for _, table := range tables() {
		got, err := c.write(want, format.WriteOptions{Own: table.New()})
		if err != nil || !slices.Equal(got, files) {
			c.errorf("options %s: error %v, written\n%s, else\n%s", table.Name, err, show(got), show(files))
		}
	}
}
