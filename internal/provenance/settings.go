package provenance

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/pflag"

	"github.com/tracedag/tracedag/internal/cli"
	"github.com/tracedag/tracedag/internal/manual"
	"github.com/tracedag/tracedag/internal/origin"
	"github.com/tracedag/tracedag/param"
	"github.com/tracedag/tracedag/sim"
)

// output is the heading of flags that do not change results.
const output = "Output"

// silent are further flags that do not change a run, or that a result has elsewhere, and reporting the topics of such
// flags.
var (
	silent = []string{"backend", "seed", "sweep", "threads", "alone", "breakdown", "report", "quiet", "verbose",
		"max-memory"}
	reporting = []string{"result", "plot", "timeline", "sweep", "study"}
)

// settings returns the options on the command line that differ from their default and may change results, by name, in
// the text that the program prints. Names of files have their digests. Keys of --set have the prefix "set.".
func (c *Command) settings() (map[string]string, error) {
	initial, given, unset := c.Kind.New(), c.Kind.New(), c.Kind.New()
	if err := c.Options.Apply(given.Params()); err != nil {
		return nil, err
	}
	// A table is long, so each is made once.
	set, initially := given.Params(), initial.Params()
	isSet := func(p param.Param) bool { return p.Name == "set" }
	without := set
	if c.Options.Given("set") {
		if err := c.Options.Apply(slices.DeleteFunc(slices.Clone(unset.Params()), isSet)); err != nil {
			return nil, err
		}
		without = unset.Params()
	}
	all := make(map[string]string)
	add := func(name, text, by string) {
		if text != by {
			all[name] = text
		}
	}
	c.Flags.Visit(func(f *pflag.Flag) {
		p := set.Find(f.Name)
		texts := strings.Join(cli.FlagTexts(f), ",")
		switch {
		case !Shapes(f, set):
		case p == nil:
			add(f.Name, texts, f.DefValue)
		case !isSet(*p):
			add(p.Name, cmp.Or(p.Value.String(), texts), defaultOf(initially.Find(p.Name)))
			if text, there := all[p.Name]; there && p.Reads {
				all[p.Name] = origin.WithDigest(text)
			}
		}
	})
	for _, key := range set.Keys() {
		add("set."+key.Name, key.Value.String(), textOf(without, key.Name))
	}
	return all, nil
}

// start is the flag of the starts of ranks, which is explained beside comparisons with recorded times, but changes
// times.
const start = "start"

// Shapes reports whether a flag may change results and is part of the settings of a run. set is the table of the
// backend.
func Shapes(f *pflag.Flag, set param.Set) bool {
	p := set.Find(f.Name)
	reports := slices.Contains(reporting, manual.TopicOf(f)) && f.Name != start
	return !manual.InSection(f, output) && !reports &&
		(p == nil || p.Heading != output) && !slices.Contains(silent, f.Name)
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

// Point is a point of a grid.
type Point struct {
	Overrides []param.Setting   // parameters that replace those of the command line
	Varied    []string          // the factors of Overrides
	Factors   map[string]string // values of the axes as given, by name
	Index     int
	Seed      *int64 // of a run whose backend has no such parameter; nil: that of the command line
}

// Points describes points. base describes the run without the grid.
func (c *Command) Points(base *Run, points []Point, env *sim.Env) ([]*Run, error) {
	var set, initially param.Set
	if slices.ContainsFunc(points, func(p Point) bool { return len(p.Overrides) > 0 }) {
		backend := c.Kind.New()
		if err := c.Options.Apply(backend.Params()); err != nil {
			return nil, err
		}
		quiet := *env
		quiet.Warn, quiet.Advise, quiet.Explain, quiet.CheckOutput = nil, nil, nil, nil
		if err := backend.Check(&quiet); err != nil { // some parameters depend on the network
			return nil, err
		}
		set, initially = backend.Params(), c.Kind.New().Params()
	}
	runs := make(map[string]int) // by point
	all := make([]*Run, len(points))
	keyed := set.Find("set") != nil
	for i := range points {
		point := &points[i]
		r := *base
		r.Index, r.Factors = point.Index, point.Factors
		if r.Factors == nil || len(point.Overrides) > 0 {
			r.Factors = make(map[string]string)
			maps.Copy(r.Factors, point.Factors)
			r.Settings = maps.Clone(r.Settings)
		}
		if point.Seed != nil {
			r.Seed = *point.Seed
		}
		// A point whose values exclude each other fails later, with this error.
		err := set.Override(point.Overrides)
		for k, setting := range point.Overrides {
			text := setting.Number.RatString()
			if err == nil {
				text = cmp.Or(textOf(set, setting.Name), text)
			}
			if setting.Name == "seed" && setting.Number.IsInt() {
				r.Seed = setting.Number.Num().Int64()
				continue
			}
			p := set.Find(setting.Name)
			name := setting.Name
			if p != nil && p.Key && keyed {
				name = "set." + name
			}
			r.Factors[point.Varied[k]], r.Settings[name] = text, text
			if p != nil && text == defaultOf(initially.Find(setting.Name)) {
				delete(r.Settings, name)
			}
		}
		r.identify(c.Kind.FullName())
		r.Replica = runs[r.Point]
		runs[r.Point]++
		all[i] = &r
	}
	return all, nil
}

// Replicas returns the largest number of runs of a point.
func Replicas(runs []*Run) int {
	most := 0
	for _, r := range runs {
		most = max(most, r.Replica+1)
	}
	return most
}

// Curve describes the points of a load curve.
func (c *Command) Curve(base *Run, points []sim.CurvePoint) []*Run {
	all := make([]*Run, len(points))
	for i := range points {
		r := *base
		r.Index, r.Factors, r.Settings = i, points[i].Factors, maps.Clone(r.Settings)
		maps.Copy(r.Settings, r.Factors)
		r.Topology, r.Units = points[i].Topology, points[i].Units
		r.identify(c.Kind.FullName())
		all[i] = &r
	}
	return all
}
