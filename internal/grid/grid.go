// Package grid defines grids of simulations: every combination of traces, options, generators and seeds. It reads them
// from study files and from the text of --sweep. docs/reference/studies.md describes both.
package grid

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

// Point is a combination of values.
type Point struct {
	Factors []Setting
	Sets    []Setting
}

// Points returns the combinations of the values of all axes that fit the rules.
func (s *Study) Points() ([]Point, error) {
	all := []Point{{Sets: s.Set}}
	for i := range s.Axes {
		values := s.Axes[i].Values
		if len(values) == 0 || len(all) > MaxRuns/len(values) {
			return nil, fmt.Errorf("expected at most %d points, found %d x %d with the values of %s", MaxRuns, len(all),
				len(values), s.Axes[i].Names())
		}
		grown := make([]Point, 0, len(all)*len(values))
		for _, p := range all {
			for _, v := range values {
				grown = append(grown, Point{slices.Concat(p.Factors, v.Factors), slices.Concat(p.Sets, v.Sets)})
			}
		}
		all = grown
	}
	return slices.DeleteFunc(all, func(p Point) bool {
		fits := func(r Rule) bool { return r.fits(&p) }
		return len(s.Only) > 0 && !slices.ContainsFunc(s.Only, fits) || slices.ContainsFunc(s.Exclude, fits)
	}), nil
}

// Names returns the names of the factors of an axis.
func (a *Axis) Names() string {
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
func (r Rule) fits(p *Point) bool {
	for _, c := range r {
		found := Last(p.Factors, c.Name)
		if found == nil {
			found = Last(p.Sets, c.Name)
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

// Last returns the last setting with a name, or nil.
func Last(settings []Setting, name string) *Setting {
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
		s := []Setting{{Name: SeedName, Text: strconv.FormatInt(seed, 10)}}
		a.Values = append(a.Values, Value{Factors: s, Sets: s})
	}
	return a
}

// Names of settings that are no flags of the backend.
const (
	SeedName      = "seed"
	TraceName     = "trace"
	HeldGenerator = "generator.seed" // holds the seed of the generator
	HeldSimulator = "simulate.seed"  // holds the seed of the simulator
)

// FlowsName is the table of runs that a study can keep, a list of results with a row per message.
const FlowsName = "flows"

// Changed describes what a study lacks of another one, "" if nothing.
func (s *Study) Changed(old *Study) string {
	if s.Name != old.Name {
		return fmt.Sprintf("name: was %s, is %s", old.Name, s.Name)
	}
	for i := range old.Set {
		a := old.Set[i]
		if b := Last(s.Set, a.Name); b == nil || b.Text != Last(old.Set, a.Name).Text {
			return fmt.Sprintf("set: %s was %s, is %s", a.Name, a.Text, textOr(b, "absent"))
		}
	}
	for _, b := range s.Set {
		if Last(old.Set, b.Name) == nil {
			return fmt.Sprintf("set: %s was absent, is %s", b.Name, b.Text)
		}
	}
	for _, t := range old.Traces {
		u := s.Trace(t.Name)
		if u == nil || strings.Join(u.Generate, " ") != strings.Join(t.Generate, " ") {
			return fmt.Sprintf("traces: %s is not the same", t.Name)
		}
	}
	for i := range old.Axes {
		for _, v := range old.Axes[i].Values {
			if !s.hasValue(v) {
				return fmt.Sprintf("the axis %s lacks the value %s", old.Axes[i].Names(), Describe(v.Sets))
			}
		}
	}
	return ""
}

func textOr(s *Setting, absent string) string {
	if s == nil || s.Absent {
		return absent
	}
	return s.Text
}

// hasValue reports whether an axis has a value.
func (s *Study) hasValue(v Value) bool {
	want := Describe(v.Sets)
	for i := range s.Axes {
		for _, other := range s.Axes[i].Values {
			if Describe(other.Sets) == want {
				return true
			}
		}
	}
	return len(s.Axes) == 0
}

// OptionsOf returns the options that axes set.
func OptionsOf(axes []Axis) (names []string) {
	for i := range axes {
		for _, s := range axes[i].Values[0].Sets {
			names = append(names, s.Name)
		}
	}
	return names
}

// Describe returns the text of factors for messages.
func Describe(factors []Setting) string {
	var words []string
	for _, f := range factors {
		if f.Absent {
			words = append(words, f.Name+" absent")
		} else {
			words = append(words, f.Name+"="+f.Text)
		}
	}
	if len(words) == 0 {
		return "without axes"
	}
	return strings.Join(words, ", ")
}
