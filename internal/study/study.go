// Package study runs grids of simulations: every combination of traces, options, generators and seeds. A study is read
// from a file or from the text of --sweep; its runs have stable identities, so a folder of results can be completed,
// extended and merged by any number of processes. docs/reference/studies.md describes files, folders and tables.
package study

import (
	"fmt"
	"math/big"
	"slices"
	"strconv"
	"strings"
	"time"
)

// MaxRuns is the largest number of runs of a study.
const MaxRuns = 1_000_000

// Study is a grid of simulations.
type Study struct {
	Name    string
	Traces  []Trace   // by name; empty without a trace axis
	Set     []Setting // options of all points
	Axes    []Axis    // their product is the grid; the last one changes fastest
	Only    []Rule    // points that fit none of these are omitted; empty: keep all
	Exclude []Rule    // points that fit one of these are omitted
	Measure []string  // patterns of the numbers in tables; empty: all
	Keep    []string  // tables of runs to keep as Parquet, a file per run: flows
	Threads int       // worker threads of a run
	Limits  Limits
}

// Limits end a run early.
type Limits struct {
	Time   time.Duration // 0: none
	Memory int64         // in bytes; 0: that of the program
}

// Trace is a trace of a study: a file, or the words of a generator's command line. Words may contain names of axes in
// braces.
type Trace struct {
	Name     string
	File     string
	Generate []string
	Line     int64 // in the study file
}

// Setting is an option of a run. Names are those of flags without dashes, FLAG.KEY for a key of a description such as
// topology.rate, set.KEY for a key of --set, trace, and names in braces of a generator's command line.
type Setting struct {
	Name   string
	Text   string
	Number *big.Rat // exact value of a number between the ends of a range; nil: that of Text
	Absent bool     // the option has its default
	Factor string   // name of the factor whose value it is; "" for options of all points
}

// Axis is a list of values that a grid varies.
type Axis struct {
	Values []Value
	Line   int64 // in the study file; 0: none
}

// Value is a value of an axis: the factors that describe it, and the options that it sets.
type Value struct {
	Factors []Setting
	Sets    []Setting
}

// Rule selects points: each name has one of the texts.
type Rule []Condition

// Condition is a condition on a factor or option.
type Condition struct {
	Name  string
	Texts []string
}

// point is a combination of values.
type point struct {
	factors []Setting
	sets    []Setting
}

// points returns the combinations of the values of all axes that fit the rules.
func (s *Study) points() ([]point, error) {
	all := []point{{sets: s.Set}}
	for i := range s.Axes {
		values := s.Axes[i].Values
		if len(values) == 0 || len(all) > MaxRuns/len(values) {
			return nil, fmt.Errorf("expected at most %d points, found %d x %d with the values of %s", MaxRuns, len(all),
				len(values), s.Axes[i].names())
		}
		grown := make([]point, 0, len(all)*len(values))
		for _, p := range all {
			for _, v := range values {
				grown = append(grown, point{slices.Concat(p.factors, v.Factors), slices.Concat(p.sets, v.Sets)})
			}
		}
		all = grown
	}
	return slices.DeleteFunc(all, func(p point) bool {
		fits := func(r Rule) bool { return r.fits(&p) }
		return len(s.Only) > 0 && !slices.ContainsFunc(s.Only, fits) || slices.ContainsFunc(s.Exclude, fits)
	}), nil
}

// names returns the names of the factors of an axis.
func (a *Axis) names() string {
	if len(a.Values) == 0 {
		return "an axis without values"
	}
	var names []string
	for _, f := range a.Values[0].Factors {
		names = append(names, f.Name)
	}
	return strings.Join(names, ", ")
}

// fits reports whether a point fulfills all conditions. A factor takes precedence over the option of the same name.
func (r Rule) fits(p *point) bool {
	for _, c := range r {
		found := last(p.factors, c.Name)
		if found == nil {
			found = last(p.sets, c.Name)
		}
		if found == nil || !slices.ContainsFunc(c.Texts, func(text string) bool { return found.is(text) }) {
			return false
		}
	}
	return true
}

// is reports whether a setting has a value: the same text, or an equal quantity.
func (s *Setting) is(text string) bool {
	if s.Absent || s.Text == text {
		return !s.Absent
	}
	a, okA := parseQuantity(s.Text)
	b, okB := parseQuantity(text)
	return okA && okB && a.kind == b.kind && a.value.Cmp(b.value) == 0
}

// last returns the last setting with a name, or nil.
func last(settings []Setting, name string) *Setting {
	for i := len(settings) - 1; i >= 0; i-- {
		if settings[i].Name == name {
			return &settings[i]
		}
	}
	return nil
}

// Seeds returns the axis of the given seeds.
func Seeds(seeds []int64) Axis {
	var a Axis
	for _, seed := range seeds {
		s := []Setting{{Name: seedName, Text: strconv.FormatInt(seed, 10)}}
		a.Values = append(a.Values, Value{Factors: s, Sets: s})
	}
	return a
}

// Names of settings that are no flags of the backend.
const (
	seedName      = "seed"
	traceName     = "trace"
	heldGenerator = "generator.seed" // holds the seed of the generator
	heldSimulator = "simulate.seed"  // holds the seed of the simulator
)
