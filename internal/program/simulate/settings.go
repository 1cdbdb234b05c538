package simulate

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/pflag"

	"github.com/tracedag/tracedag/internal/cli"
	"github.com/tracedag/tracedag/internal/manual"
	"github.com/tracedag/tracedag/param"
	"github.com/tracedag/tracedag/sim"
)

// output is the heading of flags that do not change results.
const output = "Output"

// silent are further flags that do not change a run, or that a result has elsewhere.
var silent = []string{"backend", "seed", "sweep", "threads", "alone", "compare", "breakdown", "timing", "points",
	"results", "summary", "report", "quiet", "verbose", "max-memory"}

// settings returns the options on the command line that differ from their default and may change results, by name, in
// the text that the program prints. Keys of --set have the prefix "set.".
func (r *run) settings() (map[string]string, error) {
	initial, given, unset := r.kind.New(), r.kind.New(), r.kind.New()
	if err := r.o.own.Apply(given.Params()); err != nil {
		return nil, err
	}
	isSet := func(p param.Param) bool { return p.Name == "set" }
	if err := r.o.own.Apply(slices.DeleteFunc(slices.Clone(unset.Params()), isSet)); err != nil {
		return nil, err
	}
	all := make(map[string]string)
	add := func(name, text, by string) {
		if text != by {
			all[name] = text
		}
	}
	r.o.flags.Visit(func(f *pflag.Flag) {
		p := given.Params().Find(f.Name)
		texts := strings.Join(cli.FlagTexts(f), ",")
		switch {
		case manual.InSection(f, output) || p != nil && p.Heading == output || slices.Contains(silent, f.Name):
		case p == nil:
			add(f.Name, texts, f.DefValue)
		case !isSet(*p):
			add(p.Name, cmp.Or(p.Value.String(), texts), defaultOf(initial.Params().Find(p.Name)))
		}
	})
	for _, key := range given.Params().Keys() {
		add("set."+key.Name, key.Value.String(), textOf(unset.Params(), key.Name))
	}
	return all, nil
}

// defaultOf returns the text of the default of a parameter with its default.
func defaultOf(p *param.Param) string {
	if p == nil {
		return ""
	}
	return cmp.Or(p.Value.String(), p.Initial)
}

// textOf returns the text of a parameter, or "" if the table has none with this name.
func textOf(set param.Set, name string) string {
	if p := set.Find(name); p != nil {
		return p.Value.String()
	}
	return ""
}

// points returns the descriptions of the points of the grid.
func (r *run) points() ([]*about, error) {
	backend := r.kind.New()
	if err := r.o.own.Apply(backend.Params()); err != nil {
		return nil, err
	}
	quiet := *r.env
	quiet.Warn, quiet.Advise, quiet.Explain, quiet.CheckOutput = nil, nil, nil, nil
	if err := backend.Check(&quiet); err != nil { // some parameters depend on the network
		return nil, err
	}
	runs := make(map[string]int) // by point
	all := make([]*about, len(r.grid))
	for i, point := range r.grid {
		a := *r.about
		a.Index, a.Factors, a.Settings = i, make(map[string]string), maps.Clone(a.Settings)
		// A point whose values exclude each other fails later, with this error.
		err := backend.Params().Override(point)
		for _, setting := range point {
			text := setting.Number.RatString()
			if err == nil {
				text = cmp.Or(textOf(backend.Params(), setting.Name), text)
			}
			if setting.Name == "seed" && setting.Number.IsInt() {
				a.Seed = setting.Number.Num().Int64()
				continue
			}
			p := backend.Params().Find(setting.Name)
			name := setting.Name
			if p != nil && p.Key && backend.Params().Find("set") != nil {
				name = "set." + name
			}
			a.Factors[setting.Name], a.Settings[name] = text, text
		}
		a.identify(r.kind.Name)
		a.Replica = runs[a.Point]
		runs[a.Point]++
		all[i] = &a
	}
	return all, nil
}

// curvePoints returns the descriptions of the points of a load curve.
func (r *run) curvePoints(points []sim.CurvePoint) []*about {
	all := make([]*about, len(points))
	for i := range points {
		a := *r.about
		a.Index, a.Factors, a.Settings = i, points[i].Factors, maps.Clone(a.Settings)
		maps.Copy(a.Settings, a.Factors)
		a.Topology, a.Units = points[i].Topology, points[i].Units
		a.identify(r.kind.Name)
		r.describe(&a, nil)
		all[i] = &a
	}
	return all
}
